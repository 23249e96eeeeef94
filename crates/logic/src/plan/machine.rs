//! The part of a Plan that is about the machine: threads, kernel interfaces, sockets, TLS.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::absent::is_default;

/// Threads and what they use of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Workers; each has one thread and one event loop.
    pub threads: u32,
    /// CPUs that workers are pinned to, in turn; empty: not pinned.
    pub cpus: Vec<usize>,
    /// Kernel interface that carries the load.
    pub backend: Backend,
    /// The way in which a worker waits for the next due time.
    pub wait: Wait,
    /// The clock that decides when a reply arrived.
    pub clock: Clock,
    /// The requests that are stamped when they leave; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<TransmitSampling>,
}

/// The choice of requests that are stamped when they leave this machine, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransmitSampling {
    /// One request in so many is stamped.
    pub every: u32,
    /// Whether a request is also stamped where it enters the queueing discipline of the device.
    pub scheduled: bool,
    /// Whether the network card also stamps requests and their replies, by its own clock.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hardware: bool,
}

impl fmt::Display for TransmitSampling {
    /// Writes the sampling as `--stamps` takes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.hardware, self.scheduled) {
            (true, _) => "nic",
            (false, true) => "tx+sched",
            (false, false) => "tx",
        };
        write!(out, "{kind}:{}", self.every)
    }
}

crate::words! {
    /// A kernel interface.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Backend {
        /// The best that the kernel offers.
        Auto = "auto",
        /// The edge-triggered epoll.
        Epoll = "epoll",
        /// io_uring, and epoll where the machine does not give it.
        Uring = "uring",
    }
}

/// The way in which a worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Sleep in the kernel up to shortly before the due time, then spin; only sleep where there is no due time.
    Auto,
    /// Spin, and never sleep.
    Spin,
    /// Sleep, and never spin.
    Block,
    /// Look for a moment before sleeping: for one request at a time, whose reply is nearly there.
    Brief,
}

crate::words! {
    /// The clock that decides when a reply arrived.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Clock {
        /// The kernel's receive stamp.
        #[default]
        Kernel = "kernel",
        /// The worker's own reading when it took the bytes; for comparison with other tools.
        User = "user",
    }
}

/// Options of every socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// Whether TCP_NODELAY is set.
    pub nodelay: bool,
    /// SO_LINGER in seconds; 0 makes closing send a reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linger_s: Option<u32>,
    /// SO_SNDBUF in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_buffer: Option<u32>,
    /// Addresses to connect from, in turn; empty: the kernel's choice.
    pub source: Vec<String>,
}

/// TLS: the authorities that are trusted, and the certificate of this side.
///
/// Files are named by their paths and read where the run takes place, so that neither a saved Plan nor a result holds
/// a private key; an agent needs them at the same paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// PEM file with the certificates of the authorities that are trusted; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// PEM file with our certificate, then those that lead to its authority; present exactly when `key` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// PEM file with the private key of our certificate, not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Name or IP address that servers' certificates must be for; absent: the host in the name of each server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Take every certificate: the connection is encrypted, but to whom is not known. `ca` has no effect then.
    #[serde(default)]
    pub insecure: bool,
}
