//! Description of a cluster at its start, and of its changes with time.

use pummel_logic::time::Nanos;

/// Most nodes of a cluster.
pub const CLUSTER_NODES_MAX: u32 = 64;

/// A cluster at its start. The slots are dealt out as `redis-cli --cluster create` does.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Addresses of the nodes, at least one and at most [`CLUSTER_NODES_MAX`].
    pub nodes: Vec<NodeAddress>,
    /// Number of the first nodes that own slots at the start, at least one. The others are replicas of them in turn.
    pub masters: usize,
    /// Form in which the nodes are named.
    pub endpoint: Endpoint,
    /// Changes of the cluster, with their times after its start. Their nodes exist.
    pub faults: Vec<ClusterFault>,
}

/// Address at which a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// IP address, without brackets.
    pub ip: String,
    /// Port of the node.
    pub port: u16,
}

/// Form in which nodes are named to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The IP address.
    Ip,
    /// A host name, the same for all nodes.
    Name(String),
    /// A question mark, as of a node whose host name is not set.
    Unset,
    /// An empty word.
    Empty,
    /// Null in `CLUSTER SLOTS`, and an empty word in redirects.
    Null,
}

/// Change of a cluster, at a time after its start. Nodes are counted from 0; the next node is the next one that serves slots, and
/// the first node follows the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterFault {
    /// A slot moves to the node after its owner, key by key, for a second.
    Migrate {
        /// Number of the slot.
        slot: u16,
        /// Time at which the migration begins, in nanoseconds.
        at_ns: Nanos,
    },
    /// A node gives all its slots to its first replica, whose replica it becomes; without one, to the next node, and serves none any
    /// more.
    Demote {
        /// Number of the node.
        node: usize,
        /// Time of the change, in nanoseconds.
        at_ns: Nanos,
    },
    /// A node dies. A second later its first replica, or without one the next node, has its slots and its items.
    Kill {
        /// Number of the node.
        node: usize,
        /// Time of the death, in nanoseconds.
        at_ns: Nanos,
    },
    /// No node serves a key.
    Down {
        /// Time at which it begins, in nanoseconds.
        from_ns: Nanos,
        /// Time at which it ends, in nanoseconds.
        until_ns: Nanos,
    },
}
