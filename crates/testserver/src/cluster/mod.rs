//! A Redis cluster of several nodes in one server: which node owns which slot, and how that changes with time.
//!
//! Follows the "Redis cluster specification" in the order of its checks and in the words of its replies. The nodes have no bus:
//! all of them know each change at once.

mod agenda;
mod changes;
mod config;
mod state;

pub use self::config::{CLUSTER_NODES_MAX, ClusterConfig, ClusterFault, Endpoint, NodeAddress};
pub(super) use self::state::Cluster;

#[cfg(test)]
mod tests;
