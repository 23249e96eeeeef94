//! What was seen of the servers and of the machines that sent the requests, in seconds.

use std::collections::BTreeMap;

use pummel_logic::plan::Plan;
use pummel_logic::time::{Nanos, seconds};
use pummel_measure::evidence::server::{BackgroundSave, SaveKind};
use pummel_measure::evidence::{
    CommandTimes, ConnectionEvidence, CpuCost, ErrorCount, Evidence, HostNetwork, LatencyEvent,
    MachineEvidence, OurRequests, ProbeHalf, ServerCounts, ServerEvidence, ServerReading, SlabClass, SlotUse,
    SlowCommand, ThreadUse,
};
use serde::{Deserialize, Serialize};

use super::figures::{micros, rounded};

/// What was seen of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EvidenceResult {
    /// The servers, in the order of the plan.
    pub servers: Vec<ServerResult>,
    /// The machines that sent the requests.
    pub machines: Vec<MachineResult>,
    /// Requests of the run that several servers were sent together; absent with one server, and where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub our_requests: Option<u64>,
    /// The misses of the one command whose replies do not tell them, by the servers' counts; absent where there is none or several,
    /// and where the servers counted other lookups than those of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold_misses: Option<UntoldMissesResult>,
    /// The operations of the run with one and with ten requests in flight, after the run (`--probe`); absent
    /// where they were not probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeResult>,
}

/// The misses of a command whose replies do not tell them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UntoldMissesResult {
    /// Name of the command.
    pub command: String,
    /// Keys that it looked up.
    pub lookups: u64,
    /// Keys among them that did not exist; up to 1 % of the lookups may be those of other clients.
    pub misses: u64,
    /// Share of the keys that did not exist; null where it may be 0.
    pub share: Option<f64>,
}

/// The operations of a run with few requests in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProbeResult {
    /// One request at a time.
    pub one: ProbeHalfResult,
    /// Ten requests at a time.
    pub ten: ProbeHalfResult,
}

/// One half of a probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProbeHalfResult {
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests that were completed.
    pub completed: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// Median of the service times; null where nothing was completed.
    pub service_p50_us: Option<f64>,
}

impl ProbeHalfResult {
    fn of(half: &ProbeHalf) -> ProbeHalfResult {
        ProbeHalfResult {
            in_flight: half.in_flight,
            completed: half.completed,
            rate: rounded(half.rate()),
            service_p50_us: (half.completed > 0).then(|| micros(half.service_p50_ns as f64)),
        }
    }
}

/// What was seen of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerResult {
    /// Address of the server, as in the plan, or as in `--server-stats-at`.
    pub address: String,
    /// Why the server said nothing of itself.
    pub unread: Option<String>,
    /// What the server said of itself.
    pub reading: Option<ReadingResult>,
    /// The threads of a server on the machine of the generator.
    pub threads: Option<Vec<ThreadResult>>,
    /// Time between the two readings of the threads.
    pub threads_seconds: Option<f64>,
    /// Why the threads were not read.
    pub threads_unread: Option<String>,
    /// Attempts to connect that the listening sockets of the server (all that share its port) turned away,
    /// nearly always because the queue of new connections was full; null where the server is on another machine
    /// or in another network namespace.
    pub listen_drops: Option<u64>,
    /// Resident memory of the process at the end by the kernel (`VmRSS`); absent where the process is not on
    /// the machine of the generator, or cannot be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

/// What a server said of itself: differences of two readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReadingResult {
    /// Name of the server's software.
    pub software: String,
    /// Version of the server's software.
    pub version: String,
    /// Threads that answer requests.
    pub serving_threads: Option<u32>,
    /// The server's process.
    pub pid: Option<u32>,
    /// Time between the readings.
    pub seconds: f64,
    /// Whether the server was started anew between the readings, so that its counters count from the restart.
    pub restarted: bool,
    /// Whether the counters of a server that went on running were set to 0 between the readings (`stats reset`,
    /// `CONFIG RESETSTAT`), so that they count from an unknown moment.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counters_reset: bool,
    /// How long the server had been up at the second reading, by its own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// CPU time of the server.
    pub cpu_s: Option<f64>,
    /// CPU time of the main thread of Redis.
    pub main_thread_cpu_s: Option<f64>,
    /// Time that Redis spent inside commands, which it executes one after the other: by its event loop (7.2),
    /// otherwise the sum of the times of its commands; null for other servers.
    pub in_commands_s: Option<f64>,
    /// CPU time of the server for each request, as this run counts its requests: one with many keys is one,
    /// also with memcached, whose counters count keys. Null where it is not known how the server counts them.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the server for each key; absent where each request has one at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_key: Option<f64>,
    /// What the server counted.
    pub counts: ServerCounts,
    /// Requests of this run among the `requests` of `counts`; null where the two cannot be compared.
    pub our_requests: Option<u64>,
    /// Memory in use by the server's account: items of memcached, all that Redis allocated.
    pub memory_bytes: Option<u64>,
    /// Memory that records may take.
    pub memory_limit_bytes: Option<u64>,
    /// Connections that were open.
    pub connections: Option<u64>,
    /// Connections that the server accepts.
    pub connections_max: Option<u64>,
    /// What disturbed the server.
    pub disturbances: Vec<String>,
    /// The server's own times of commands.
    pub commands: Vec<CommandResult>,
    /// Settings that decide about records and connections, by the server's names: `maxmemory_policy`, `save`,
    /// `appendonly` and `io-threads` of Redis; `evictions`, `reqs_per_event`, `item_size_max`, `maxconns_fast`
    /// and `hashpower_init` of memcached.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Memory that the server took from the system: slab pages of memcached, resident memory of Redis.
    pub memory_taken_bytes: Option<u64>,
    /// Resident memory of the process by the server's own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// Whether the server held the first record of a load with the usual settings before the measured phase.
    /// Only a run that loads nothing and reads other keys asks for it; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_record: Option<bool>,
    /// Background saves of a RESP server that are known in time, to whole seconds. A save for a part of the
    /// measured phase makes the run unsteady.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saves: Vec<SaveResult>,
    /// Errors with which the server answered, the most frequent 16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCount>,
    /// The newest commands in the server's slow log, at most 10, without their arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow_commands: Vec<SlowCommandResult>,
    /// Entries of the server's own latency monitor between the readings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_events: Vec<LatencyEventResult>,
    /// Slab classes of memcached that have records or lost some. A class can be full while others have room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<SlabClass>,
    /// At most ten hash slots of a cluster's node, the busiest first (`--route crc16`; Valkey 8, Redis 8.2).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotResult>,
}

/// A save of a server's records in the background.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SaveResult {
    /// The file: `snapshot` or `append_only_file`.
    pub kind: String,
    /// When the save began; null where it was under way before the first reading.
    pub from_s: Option<f64>,
    /// When the save was over; null where it was not at the second reading.
    pub to_s: Option<f64>,
    /// The save in words, without its subject.
    pub says: String,
}

/// Use of one hash slot of a cluster's node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SlotResult {
    /// Number of the slot.
    pub slot: u16,
    /// Keys in the slot.
    pub keys: u64,
    /// CPU time of commands on its keys between the readings, at least; null without
    /// `cluster-slot-stats-enabled`.
    pub cpu_at_least_us: Option<f64>,
    /// Bytes that came for it.
    pub bytes_in: Option<u64>,
    /// Bytes that were sent for it.
    pub bytes_out: Option<u64>,
}

/// A command that the server calls slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SlowCommandResult {
    /// Name of the command.
    pub name: String,
    /// Time at which the command was executed, by the server's clock.
    pub at_unix_s: u64,
    /// Time of the command inside the server.
    pub took_us: f64,
}

/// An event of the server's watch on its latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LatencyEventResult {
    /// Name of the event.
    pub name: String,
    /// Time of the latest event, by the server's clock.
    pub at_unix_s: u64,
    /// How long the last one took.
    pub latest_us: f64,
    /// Time of the longest event that the server remembers.
    pub greatest_us: f64,
}

/// The server's own times of one command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CommandResult {
    /// Name of the command.
    pub name: String,
    /// How often the command was called.
    pub calls: u64,
    /// Mean time inside the server.
    pub mean_us: f64,
    /// Median since the server started.
    pub p50_us: Option<f64>,
    /// Quantile of 99 % since the server started.
    pub p99_us: Option<f64>,
    /// Quantile of 99.9 % since the server started.
    #[serde(rename = "p99.9_us")]
    pub p99_9_us: Option<f64>,
    /// A time that half of the calls between the readings did not exceed: the end of a cell that doubles in
    /// width, so the true value may be half as large.
    pub p50_at_most_us: Option<f64>,
    /// A time that 99 % of the calls between the readings did not exceed.
    pub p99_at_most_us: Option<f64>,
    /// A time that 99.9 % of the calls between the readings did not exceed.
    #[serde(rename = "p99.9_at_most_us")]
    pub p99_9_at_most_us: Option<f64>,
}

/// CPU time of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadResult {
    /// Name of the thread.
    pub name: String,
    /// CPU time.
    pub cpu_s: f64,
    /// Time in which the thread could have run and had no CPU.
    pub run_delay_s: Option<f64>,
}

/// What was seen of one machine that sent requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MachineResult {
    /// The agent of the machine; null for this machine.
    pub agent: Option<String>,
    /// Whether all servers that the machine loads are on it: their addresses are loopback or the machine's own,
    /// or they are behind unix sockets. Null where that is not known; no limit that needs the one or the other
    /// is named then.
    pub servers_are_local: Option<bool>,
    /// Time between the readings.
    pub seconds: f64,
    /// The client threads.
    pub workers: Vec<ThreadResult>,
    /// Number of CPUs.
    pub cpus: u32,
    /// CPU time that all processes of the machine used, of all CPUs together.
    pub used_s: Option<f64>,
    /// Time that the hypervisor took, of all CPUs together.
    pub steal_s: Option<f64>,
    /// Time for which the container's limit stopped the process.
    pub throttled_s: Option<f64>,
    /// Time in which some task of the machine waited for a CPU.
    pub pressure_s: Option<f64>,
    /// TCP figures of the connections.
    pub connections: Option<SocketsResult>,
    /// Network figures of the machine.
    pub network: Option<HostNetwork>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
    /// How long the longer of the two readings took.
    pub reading_s: f64,
}

/// TCP figures of the connections of one machine, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SocketsResult {
    /// Connections that were read.
    pub read: u64,
    /// Segments that were sent again, whether or not they had arrived.
    pub retransmits: u64,
    /// Segments that were sent again and had not arrived; absent where that is not known.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Segments that were sent.
    pub segments_out: u64,
    /// Time in which there was data to send.
    pub busy_s: f64,
    /// Time in which the receive window of the server was full.
    pub rwnd_limited_s: f64,
    /// Time in which the send buffer was full.
    pub sndbuf_limited_s: f64,
}

impl EvidenceResult {
    pub(super) fn of(evidence: &Evidence, plan: &Plan) -> EvidenceResult {
        let ours = evidence.ours.as_ref();
        let servers = evidence.servers.iter().map(|server| ServerResult::of(server, ours));
        EvidenceResult {
            servers: servers.collect(),
            machines: evidence.machines.iter().map(MachineResult::of).collect(),
            our_requests: evidence.our_requests,
            untold_misses: evidence.untold_misses().map(|untold| UntoldMissesResult {
                command: plan.name_of(untold.verb).to_owned(),
                lookups: untold.lookups,
                misses: untold.missed,
                share: untold.share(),
            }),
            probe: evidence.probe.as_ref().map(|probe| ProbeResult {
                one: ProbeHalfResult::of(&probe.one),
                ten: ProbeHalfResult::of(&probe.ten),
            }),
        }
    }
}

impl ServerResult {
    fn of(server: &ServerEvidence, ours: Option<&OurRequests>) -> ServerResult {
        let threads = server.threads.as_ref();
        ServerResult {
            address: server.address.clone(),
            unread: server.unread.clone(),
            reading: server.reading.as_ref().map(|reading| ReadingResult::of(reading, ours)),
            threads: threads.map(|threads| threads.iter().map(ThreadResult::of).collect()),
            threads_seconds: threads.map(|_| seconds(server.threads_span_ns)),
            threads_unread: server.threads_unread.clone(),
            listen_drops: server.listen_drops,
            resident_bytes: server.resident_bytes,
        }
    }
}

impl ReadingResult {
    fn of(reading: &ServerReading, ours: Option<&OurRequests>) -> ReadingResult {
        let cost = CpuCost::at(reading, ours);
        ReadingResult {
            software: reading.software.clone(),
            version: reading.version.clone(),
            serving_threads: reading.serving_threads,
            pid: reading.pid,
            seconds: seconds(reading.span_ns),
            restarted: reading.restarted,
            counters_reset: reading.counters_reset,
            uptime_s: reading.uptime_s,
            cpu_s: reading.cpu_ns.map(seconds),
            main_thread_cpu_s: reading.main_thread_cpu_ns.map(seconds),
            in_commands_s: reading.in_commands_ns.map(seconds),
            cpu_us_per_request: cost.map(|cost| rounded(cost.per_request_ns / 1e3)),
            cpu_us_per_key: cost.and_then(|cost| Some(rounded(cost.per_key_ns? / 1e3))),
            counts: reading.counts,
            our_requests: reading.our_requests,
            memory_bytes: reading.memory_bytes,
            memory_limit_bytes: reading.memory_limit_bytes,
            connections: reading.connections,
            connections_max: reading.connections_max,
            disturbances: reading.disturbances.clone(),
            commands: reading.commands.iter().map(CommandResult::of).collect(),
            settings: reading.settings.clone(),
            memory_taken_bytes: reading.memory_taken_bytes,
            resident_bytes: reading.resident_bytes,
            usual_record: reading.usual_record,
            saves: reading.saves.iter().map(SaveResult::of).collect(),
            errors: reading.errors.clone(),
            slow_commands: reading.slow_commands.iter().map(SlowCommandResult::of).collect(),
            latency_events: reading.latency_events.iter().map(LatencyEventResult::of).collect(),
            classes: reading.classes.clone(),
            slots: reading.slots.iter().map(SlotResult::of).collect(),
        }
    }
}

impl SaveResult {
    fn of(save: &BackgroundSave) -> SaveResult {
        let kind = match save.kind {
            SaveKind::Snapshot => "snapshot",
            SaveKind::AppendOnlyFile => "append_only_file",
        };
        SaveResult {
            kind: kind.to_owned(),
            // Whole seconds are all that servers tell.
            from_s: save.from_ns.map(|ns| seconds(ns).round()),
            to_s: save.to_ns.map(|ns| seconds(ns).round()),
            says: save.words(),
        }
    }
}

impl SlotResult {
    fn of(slot: &SlotUse) -> SlotResult {
        SlotResult {
            slot: slot.slot,
            keys: slot.keys,
            cpu_at_least_us: slot.cpu_at_least_ns.map(|ns| micros(ns as f64)),
            bytes_in: slot.bytes_in,
            bytes_out: slot.bytes_out,
        }
    }
}

impl SlowCommandResult {
    fn of(command: &SlowCommand) -> SlowCommandResult {
        SlowCommandResult {
            name: command.name.clone(),
            at_unix_s: command.at_unix_s,
            took_us: micros(command.took_ns as f64),
        }
    }
}

impl LatencyEventResult {
    fn of(event: &LatencyEvent) -> LatencyEventResult {
        LatencyEventResult {
            name: event.name.clone(),
            at_unix_s: event.at_unix_s,
            latest_us: micros(event.latest_ns as f64),
            greatest_us: micros(event.greatest_ns as f64),
        }
    }
}

impl CommandResult {
    fn of(command: &CommandTimes) -> CommandResult {
        let out = |ns: Nanos| micros(ns as f64);
        CommandResult {
            name: command.name.clone(),
            calls: command.calls,
            mean_us: out(command.mean_ns),
            p50_us: command.p50_ns.map(out),
            p99_us: command.p99_ns.map(out),
            p99_9_us: command.p99_9_ns.map(out),
            p50_at_most_us: command.p50_at_most_ns.map(out),
            p99_at_most_us: command.p99_at_most_ns.map(out),
            p99_9_at_most_us: command.p99_9_at_most_ns.map(out),
        }
    }
}

impl ThreadResult {
    fn of(thread: &ThreadUse) -> ThreadResult {
        ThreadResult {
            name: thread.name.clone(),
            cpu_s: seconds(thread.cpu_ns),
            run_delay_s: thread.run_delay_ns.map(seconds),
        }
    }
}

impl MachineResult {
    fn of(machine: &MachineEvidence) -> MachineResult {
        MachineResult {
            agent: machine.agent.clone(),
            servers_are_local: machine.servers_are_local,
            seconds: seconds(machine.span_ns),
            workers: machine.workers.iter().map(ThreadResult::of).collect(),
            cpus: machine.cpus,
            used_s: machine.used_ns.map(seconds),
            steal_s: machine.steal_ns.map(seconds),
            throttled_s: machine.throttled_ns.map(seconds),
            pressure_s: machine.pressure_ns.map(seconds),
            connections: machine.connections.as_ref().map(SocketsResult::of),
            network: machine.network.clone(),
            unread: machine.unread.clone(),
            reading_s: seconds(machine.reading_ns),
        }
    }
}

impl SocketsResult {
    fn of(connections: &ConnectionEvidence) -> SocketsResult {
        SocketsResult {
            read: connections.read,
            retransmits: connections.retransmits,
            lost: connections.lost,
            segments_out: connections.segments_out,
            busy_s: seconds(connections.busy_ns),
            rwnd_limited_s: seconds(connections.rwnd_limited_ns),
            sndbuf_limited_s: seconds(connections.sndbuf_limited_ns),
        }
    }
}
