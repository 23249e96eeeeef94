//! The rows of CPUs that client and server share.

use std::collections::BTreeSet;

use super::case::Case;
use super::cause::{Cause, SharedMachine, Side};
use super::cpu_time::{DelayCause, cpus_of};
use super::generator_rows::taken_loss;
use super::server_use::ServerUse;
use super::shares::{RUN_DELAY_SHARE, TAKEN_SHARE, share_of};
use super::worker_loss::CpuTaker;
use crate::evidence::MachineEvidence;
use pummel_logic::time::Nanos;

/// Reports a server that used the CPU of a client thread, where the load had to wait for it.
pub fn client_waits(case: &Case<'_>) -> Option<Cause> {
    let loss = taken_loss(case)?;
    loss.cause.filter(|(taker, _)| *taker == CpuTaker::Servers)?;
    Some(Cause::SharedCpu {
        waiting: Side::Client,
        agent: loss.agent.clone(),
        server: None,
        cpus: shared_cpus(case),
        share: loss.share,
        machine: shared_machine(case),
    })
}

/// Reports a client thread that used the CPU of a server in closed loop.
pub fn closed_server_waits(case: &Case<'_>) -> Option<Cause> {
    (case.is_closed && !case.server_is_full()).then(|| server_waits(case))?
}

/// Reports a client thread that used the CPU of a server.
pub fn server_waits(case: &Case<'_>) -> Option<Cause> {
    let worst = worst_delayed(case)?;
    if !worst.delayed().is_beyond() || worst.delay_cause != Some(DelayCause::Pummel) {
        return None;
    }
    Some(Cause::SharedCpu {
        waiting: Side::Server,
        agent: None,
        server: case.server_name(&worst.address),
        cpus: shared_cpus(case),
        share: worst.run_delay(),
        machine: shared_machine(case),
    })
}

/// The server of which a thread waited for a CPU for the greatest share of its time.
pub fn worst_delayed<'c>(case: &'c Case<'_>) -> Option<&'c ServerUse> {
    case.servers.iter().max_by(|one, other| one.run_delay().total_cmp(&other.run_delay()))
}

/// The CPUs on which client threads and servers may run.
fn shared_cpus(case: &Case<'_>) -> Vec<u32> {
    let clients: BTreeSet<u32> =
        case.machines().filter_map(|machine| cpus_of(machine.worker_cpus.as_deref())).flatten().collect();
    let evidence = case.measurement.evidence.iter();
    let servers: BTreeSet<u32> = evidence
        .flat_map(|seen| &seen.servers)
        .filter_map(|server| cpus_of(server.cpus.as_deref()))
        .flatten()
        .collect();
    clients.intersection(&servers).copied().collect()
}

/// The use of the shared CPUs, where one process of the run and all servers are on one machine and each of them was seen.
fn shared_machine(case: &Case<'_>) -> Option<SharedMachine> {
    let mut machines = case.machines();
    let (Some(machine), None) = (machines.next(), machines.next()) else { return None };
    let seen = case.measurement.evidence.as_ref()?;
    let is_here = seen.servers.iter().all(|server| machine.host.is_some() && server.host == machine.host);
    let shared = shared_cpus(case);
    let is_shared = |cpu: &u32| shared.is_empty() || shared.contains(cpu);
    let used_ns: Vec<Nanos> =
        machine.used_by_cpu.iter().filter(|(cpu, _)| is_shared(cpu)).map(|(_, used_ns)| *used_ns).collect();
    let (all_ns, cpus): (Nanos, u64) = (used_ns.iter().sum(), used_ns.len() as u64);
    if !is_here || seen.servers.is_empty() || all_ns == 0 {
        return None;
    }
    let of_server = |server: &ServerUse| {
        let seen: f64 = server.threads.iter().map(|thread| thread.cpu).sum();
        server.process.or((!server.threads.is_empty()).then_some(seen))
    };
    let server_cpus = case.servers.iter().map(of_server).sum::<Option<f64>>()?;
    let client_cpus = share_of(client_ns(machine), machine.span_ns);
    let is_whole = used_ns.len() == machine.used_by_cpu.len();
    // A machine that counts the time of its CPUs by ticks sees less than what its processes used.
    let of_processes = if is_whole { (client_cpus + server_cpus) / cpus as f64 } else { 0.0 };
    Some(SharedMachine {
        cpus,
        is_whole,
        busy: share_of(all_ns, machine.span_ns.saturating_mul(cpus)).max(of_processes).min(1.0),
        client_cpus,
        server_cpus,
        software: case.readings().map(|reading| reading.software.clone()).next(),
        both_waited: case.worst_loss().is_some_and(|loss| loss.share > TAKEN_SHARE)
            && worst_delayed(case).is_some_and(|server| server.run_delay() > RUN_DELAY_SHARE),
    })
}

/// The CPU time of a process of the run, or of its client threads where only these are known.
fn client_ns(machine: &MachineEvidence) -> Nanos {
    let workers_ns = machine.workers.iter().map(|worker| worker.cpu_ns).sum();
    machine.process_ns.unwrap_or(0).max(workers_ns)
}
