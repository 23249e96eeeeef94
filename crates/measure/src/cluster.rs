//! Observations of the cluster whose nodes a run asked.

use serde::{Deserialize, Serialize};

use crate::outages::Outage;

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNode {
    /// Name of the node, `host:port`.
    pub name: String,
    /// Slots that the node owned at the end of the run; 0 for replicas and for nodes that had left.
    pub slots: u32,
}

/// A shard of a cluster: the slots that one node owned at the start, whichever nodes served them later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Number of the node that owned the slots at the start.
    pub node: u16,
    /// Number of slots.
    pub slots: u32,
    /// Records of the run whose keys lie in these slots; `None` where the run has too many to count, or keys that are not those of records.
    #[serde(default)]
    pub records: Option<u64>,
    /// Times in which too few of the shard's requests got a good reply.
    pub outages: Vec<Outage>,
}

/// Observations of a run's cluster, beside the replies to its requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSeen {
    /// The nodes by their numbers, which are those of the servers in the measurement. Nodes that joined come last.
    pub nodes: Vec<ClusterNode>,
    /// The shards as they were at the start.
    #[serde(default)]
    pub shards: Vec<Shard>,
    /// Answers to the question for the map, without the first one.
    pub refreshes: u64,
    /// Questions for the map that no answer came to.
    pub refreshes_failed: u64,
    /// Maps that differed from the one before, the first one among them.
    pub generations: u64,
    /// Nodes in the last answer whose names cannot be used.
    pub unusable: u64,
}
