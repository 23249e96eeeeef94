//! The reply to `CLUSTER SLOTS`: ranges of slots with the nodes that serve them.

use super::nodes::NodeName;

/// A node as a reply names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Host and port to connect to.
    pub name: NodeName,
    /// Identity of the node in its cluster, for reports; empty where the server gives none.
    pub id: String,
}

/// Neighbouring slots that the same nodes serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot of the range.
    pub first: u16,
    /// The last slot of the range, at least the first one and below [`SLOTS`](super::SLOTS).
    pub last: u16,
    /// The node that serves writes; `None` where no usable name of it is given.
    pub master: Option<NodeSeen>,
    /// The replicas of the master that have usable names.
    pub replicas: Vec<NodeSeen>,
}

/// The ranges of slots that a node lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotsReply {
    /// The ranges in the order of the reply. They need not cover all slots.
    pub ranges: Vec<SlotRange>,
    /// Number of nodes in the ranges that have no usable name.
    pub unusable: u32,
}
