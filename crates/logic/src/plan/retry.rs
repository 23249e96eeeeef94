//! The errors after which requests are sent again, and for how long.

use serde::{Deserialize, Serialize};

use crate::time::{Nanos, SECOND};

crate::words! {
    /// A kind of errors after which a request can be sent again.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[repr(u8)]
    pub enum RetryKind {
        /// The server loads its data (`LOADING`).
        Loading = "loading",
        /// The server runs a script, or has no time (`BUSY`; busy and temporary failure of memcached's binary protocol).
        Busy = "busy",
        /// The keys of the request are on both sides of a migration (`TRYAGAIN`).
        TryAgain = "tryagain",
        /// The cluster serves nothing, or not this slot (`CLUSTERDOWN`).
        ClusterDown = "clusterdown",
        /// The master of the replica that was asked is down (`MASTERDOWN`).
        MasterDown = "masterdown",
        /// The server has no memory for what is stored (`OOM`; out of memory of memcached).
        Oom = "oom",
        /// The server is a replica, which stores nothing (`READONLY`).
        ReadOnly = "readonly",
        /// The server has no longer the script of the plan (`NOSCRIPT`), which is loaded again.
        NoScript = "noscript",
        /// The connection was lost or refused.
        Lost = "lost",
        /// No reply came in time.
        Timeout = "timeout",
    }
}

/// Time from due in which a request is sent again, where none is said.
pub const RETRY_FOR_NS: Nanos = 10 * SECOND;

/// The errors after which requests are sent again, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The kinds of errors, each once.
    pub kinds: Vec<RetryKind>,
    /// Time from due in which a request is sent again, in nanoseconds.
    pub for_ns: Nanos,
}

impl RetryKind {
    /// The kinds that a plan may name. [`RetryKind::NoScript`] follows from its script.
    pub fn asked_for() -> impl Iterator<Item = RetryKind> {
        RetryKind::ALL.into_iter().filter(|kind| *kind != RetryKind::NoScript)
    }

    /// Whether the request may have been carried out although it has this error.
    pub fn is_unanswered(self) -> bool {
        matches!(self, RetryKind::Lost | RetryKind::Timeout)
    }
}
