//! What was seen of the servers and of the machines that sent the requests, in seconds.

use pummel_logic::measure::cross_checks::Utilisation;
use pummel_logic::measure::evidence::{
    CommandTimes, ConnectionEvidence, Evidence, HostNetwork, MachineEvidence, ServerCounts, ServerEvidence,
    ServerReading, ThreadUse,
};
use pummel_logic::time::{Nanos, seconds};
use serde::Serialize;

use super::figures::{micros, rounded};

#[derive(Serialize)]
pub(super) struct EvidenceOut<'a> {
    servers: Vec<ServerOut<'a>>,
    machines: Vec<MachineOut<'a>>,
}

#[derive(Serialize)]
struct ServerOut<'a> {
    address: &'a str,
    unread: Option<&'a str>,
    reading: Option<ReadingOut<'a>>,
    threads: Option<Vec<ThreadOut<'a>>>,
    threads_seconds: Option<f64>,
    threads_unread: Option<&'a str>,
}

#[derive(Serialize)]
struct ReadingOut<'a> {
    software: &'a str,
    version: &'a str,
    serving_threads: Option<u32>,
    pid: Option<u32>,
    seconds: f64,
    restarted: bool,
    cpu_s: Option<f64>,
    main_thread_cpu_s: Option<f64>,
    cpu_us_per_request: Option<f64>,
    counts: ServerCounts,
    our_requests: Option<u64>,
    memory_bytes: Option<u64>,
    memory_limit_bytes: Option<u64>,
    connections: Option<u64>,
    connections_max: Option<u64>,
    disturbances: &'a [String],
    commands: Vec<CommandOut<'a>>,
}

#[derive(Serialize)]
struct CommandOut<'a> {
    name: &'a str,
    calls: u64,
    mean_us: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

#[derive(Serialize)]
struct ThreadOut<'a> {
    name: &'a str,
    cpu_s: f64,
    run_delay_s: Option<f64>,
}

#[derive(Serialize)]
struct MachineOut<'a> {
    agent: Option<&'a str>,
    seconds: f64,
    workers: Vec<ThreadOut<'a>>,
    cpus: u32,
    steal_s: Option<f64>,
    throttled_s: Option<f64>,
    pressure_s: Option<f64>,
    connections: Option<ConnectionsOut>,
    network: Option<&'a HostNetwork>,
    unread: &'a [String],
}

#[derive(Serialize)]
struct ConnectionsOut {
    read: u64,
    retransmits: u64,
    segments_out: u64,
    busy_s: f64,
    rwnd_limited_s: f64,
    sndbuf_limited_s: f64,
}

impl EvidenceOut<'_> {
    pub(super) fn of(evidence: &Evidence) -> EvidenceOut<'_> {
        EvidenceOut {
            servers: evidence.servers.iter().map(ServerOut::of).collect(),
            machines: evidence.machines.iter().map(MachineOut::of).collect(),
        }
    }
}

impl ServerOut<'_> {
    fn of(server: &ServerEvidence) -> ServerOut<'_> {
        let threads = server.threads.as_ref();
        ServerOut {
            address: &server.address,
            unread: server.unread.as_deref(),
            reading: server.reading.as_ref().map(ReadingOut::of),
            threads: threads.map(|threads| threads.iter().map(ThreadOut::of).collect()),
            threads_seconds: threads.map(|_| seconds(server.threads_span_ns)),
            threads_unread: server.threads_unread.as_deref(),
        }
    }
}

impl ReadingOut<'_> {
    fn of(reading: &ServerReading) -> ReadingOut<'_> {
        let utilisation = Utilisation::of(reading);
        ReadingOut {
            software: &reading.software,
            version: &reading.version,
            serving_threads: reading.serving_threads,
            pid: reading.pid,
            seconds: seconds(reading.span_ns),
            restarted: reading.restarted,
            cpu_s: reading.cpu_ns.map(seconds),
            main_thread_cpu_s: reading.main_thread_cpu_ns.map(seconds),
            cpu_us_per_request: utilisation.map(|found| rounded(found.cpu_ns_per_request / 1e3)),
            counts: reading.counts,
            our_requests: reading.our_requests,
            memory_bytes: reading.memory_bytes,
            memory_limit_bytes: reading.memory_limit_bytes,
            connections: reading.connections,
            connections_max: reading.connections_max,
            disturbances: &reading.disturbances,
            commands: reading.commands.iter().map(CommandOut::of).collect(),
        }
    }
}

impl CommandOut<'_> {
    fn of(command: &CommandTimes) -> CommandOut<'_> {
        let out = |ns: Nanos| micros(ns as f64);
        CommandOut {
            name: &command.name,
            calls: command.calls,
            mean_us: out(command.mean_ns),
            p50_us: command.p50_ns.map(out),
            p99_us: command.p99_ns.map(out),
        }
    }
}

impl ThreadOut<'_> {
    fn of(thread: &ThreadUse) -> ThreadOut<'_> {
        ThreadOut {
            name: &thread.name,
            cpu_s: seconds(thread.cpu_ns),
            run_delay_s: thread.run_delay_ns.map(seconds),
        }
    }
}

impl MachineOut<'_> {
    fn of(machine: &MachineEvidence) -> MachineOut<'_> {
        MachineOut {
            agent: machine.agent.as_deref(),
            seconds: seconds(machine.span_ns),
            workers: machine.workers.iter().map(ThreadOut::of).collect(),
            cpus: machine.cpus,
            steal_s: machine.steal_ns.map(seconds),
            throttled_s: machine.throttled_ns.map(seconds),
            pressure_s: machine.pressure_ns.map(seconds),
            connections: machine.connections.as_ref().map(ConnectionsOut::of),
            network: machine.network.as_ref(),
            unread: &machine.unread,
        }
    }
}

impl ConnectionsOut {
    fn of(connections: &ConnectionEvidence) -> ConnectionsOut {
        ConnectionsOut {
            read: connections.read,
            retransmits: connections.retransmits,
            segments_out: connections.segments_out,
            busy_s: seconds(connections.busy_ns),
            rwnd_limited_s: seconds(connections.rwnd_limited_ns),
            sndbuf_limited_s: seconds(connections.sndbuf_limited_ns),
        }
    }
}
