//! What a run saw of the cluster whose nodes it asked.

use serde::{Deserialize, Serialize};

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNode {
    /// Name of the node, `host:port`.
    pub name: String,
    /// Slots that the node owned at the end of the run; 0 for replicas and for nodes that had left.
    pub slots: u32,
}

/// What a run saw of its cluster, beside the replies to its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSeen {
    /// The nodes by their numbers, which are those of the servers in the measurement. Nodes that joined come last.
    pub nodes: Vec<ClusterNode>,
    /// Answers to the question for the map, without the first one.
    pub refreshes: u64,
    /// Questions for the map that no answer came to.
    pub refreshes_failed: u64,
    /// Maps that differed from the one before, the first one among them.
    pub generations: u64,
    /// Nodes in the last answer whose names cannot be used.
    pub unusable: u64,
}
