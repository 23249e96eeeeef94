//! Readings of the kernel on a machine that sent requests: its CPUs, its connections and its network.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use pummel_logic::time::Nanos;

/// One process that sent requests, and its machine. A figure that could not be read is absent, and `unread` says why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineEvidence {
    /// Name of the agent; absent in a run without agents, and for the controller's own share.
    pub agent: Option<String>,
    /// Whether all servers that the process loads are on its machine: their resolved addresses are loopback or addresses of the
    /// machine, or they are behind unix sockets. Absent where that is not known.
    #[serde(default)]
    pub servers_are_local: Option<bool>,
    /// Time between the two readings, in nanoseconds.
    pub span_ns: Nanos,
    /// The client threads, in the order of the workers.
    pub workers: Vec<ThreadUse>,
    /// CPUs that the process may run on.
    pub cpus: u32,
    /// Number that is the same for all processes on one running machine and different for all other machines.
    #[serde(default)]
    pub host: Option<u64>,
    /// CPUs that the client threads may run on, as the kernel lists them; absent where that is not known.
    #[serde(default)]
    pub worker_cpus: Option<String>,
    /// CPU time of all processes on each CPU of the machine, by the numbers of the CPUs.
    #[serde(default)]
    pub used_by_cpu: BTreeMap<u32, Nanos>,
    /// CPU time of this process, including its client threads.
    #[serde(default)]
    pub process_ns: Option<Nanos>,
    /// CPU time of all processes of the machine on the CPUs that the process may run on, all together.
    #[serde(default)]
    pub used_ns: Option<Nanos>,
    /// Time that the hypervisor took from those CPUs, all together.
    pub steal_ns: Option<Nanos>,
    /// Time for which the limit of the control group held the process back.
    pub throttled_ns: Option<Nanos>,
    /// Time in which some process of the machine waited for a CPU (`some` of the CPU's pressure).
    pub pressure_ns: Option<Nanos>,
    /// The run's own TCP connections; absent where there were none.
    pub connections: Option<ConnectionEvidence>,
    /// The network of the whole machine.
    pub network: Option<HostNetwork>,
    /// Why figures are missing, each as a sentence without its full stop.
    pub unread: Vec<String>,
    /// Duration of the longer of the two readings of the machine.
    #[serde(default)]
    pub reading_ns: Nanos,
}

/// The CPU time of a thread: since it began, or between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// Name of the thread.
    pub name: String,
    /// CPU time of the thread.
    pub cpu_ns: Nanos,
    /// Time for which the thread could have run and had no CPU; absent where the kernel does not count it.
    pub run_delay_ns: Option<Nanos>,
    /// CPU on which the thread ran last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_cpu: Option<u32>,
}

/// The TCP connections of a process, all together; connections that closed in between are counted as far as they were
/// seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionEvidence {
    /// Connections that were read.
    pub read: u64,
    /// Segments that were sent again, whether or not they had arrived.
    pub retransmits: u64,
    /// Segments that were sent again and had not arrived: but for those of which the peer said that they arrived twice. Absent
    /// where a peer, or the kernel of this machine, does not say that.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Segments that were sent.
    pub segments_out: u64,
    /// Time in which data waited to be sent or to be acknowledged.
    pub busy_ns: Nanos,
    /// Part of `busy_ns` in which the receiver's window was full.
    pub rwnd_limited_ns: Nanos,
    /// Part of `busy_ns` in which the send buffer was full.
    pub sndbuf_limited_ns: Nanos,
}

/// The network of a machine: since it started, or between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostNetwork {
    /// TCP segments that were sent.
    pub segments_out: u64,
    /// TCP segments that were sent again.
    pub retransmits: u64,
    /// Number of expired TCP timers.
    pub timeouts: u64,
    /// Number of connections that were rejected because the queue of a listening socket was full.
    pub listen_overflows: u64,
    /// Network cards but for loopback; between two readings those that carried something.
    pub cards: Vec<CardUse>,
}

/// The use of a network card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardUse {
    /// Name of the card.
    pub name: String,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// Speed of the card in bits per second; absent where the card does not say.
    pub bits_per_second: Option<u64>,
    /// Packets that the card or its driver dropped, in both directions.
    pub dropped: u64,
    /// Packets beyond what the cloud allows the machine; absent where the driver does not count them.
    pub allowance_exceeded: Option<u64>,
}
