//! The options of a run on a Redis or Valkey cluster.

use serde::{Deserialize, Serialize};

use super::absent::is_default;
use crate::time::Nanos;

/// Most times that a request is sent again by default because a node named another one.
pub const REDIRECTS: u32 = 5;

/// Nodes that may join a cluster while a run goes on, beside as many as it has at the start. Each client keeps a place for a
/// connection to each of them.
pub const JOINING_MIN: usize = 8;

/// The treatment of a cluster's redirects and of its nodes' names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClusterOptions {
    /// Most times that a request is sent again because a node named another one; 0: redirects are errors.
    pub redirects: u32,
    /// Whether nodes are reached at the address in their metadata and not at the endpoint that they prefer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_ip: bool,
    /// Names of nodes that are replaced by others which can be reached from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrite: Vec<Rewrite>,
    /// Time in nanoseconds after which the map of slots is asked for although nothing shows that it changed; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_ns: Option<Nanos>,
    /// The nodes of a shard that reads are sent to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_from: ReadFrom,
}

crate::words! {
    /// The nodes of a shard that reads are sent to. All other requests are sent to the master.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum ReadFrom {
        /// Reads go to the master, as writes do.
        #[default]
        Primary = "primary",
        /// Reads go to the replicas, and wait where there is none.
        Replica = "replica",
        /// Reads go to the replicas, or to the master where none of them is connected.
        PreferReplica = "prefer-replica",
        /// Reads go to the master and the replicas alike.
        Any = "any",
    }
}

impl ReadFrom {
    /// Whether replicas are asked something.
    #[inline]
    pub fn asks_replicas(self) -> bool {
        self != ReadFrom::Primary
    }
}

/// A host, or a host with its port, that nodes name and that is replaced by another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rewrite {
    /// Host, or `host:port`, as the cluster names it.
    pub from: String,
    /// Host, or `host:port`, to connect to; without a port the port stays.
    pub to: String,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            redirects: REDIRECTS,
            by_ip: false,
            rewrite: Vec::new(),
            refresh_ns: None,
            read_from: ReadFrom::Primary,
        }
    }
}
