//! Use of some CPUs of a machine: by this run, its servers, and all others.

use std::collections::{BTreeMap, BTreeSet};

use super::shares::CAUSE_SHARE;
use crate::evidence::provenance::cpu_list;
use crate::evidence::{Evidence, MachineEvidence, ServerEvidence, ThreadUse};
use pummel_logic::time::Nanos;

/// The CPU time on a set of CPUs of one machine, by its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// Processes of this run.
    pub pummel_ns: Nanos,
    /// Servers of this run, as far as their threads were seen.
    pub servers_ns: Nanos,
    /// All other processes; absent where a server on this machine was not seen, which would be among them.
    pub others_ns: Option<Nanos>,
}

/// The CPUs of a list such as `0-3,8`; absent for none.
pub fn cpus_of(list: Option<&str>) -> Option<BTreeSet<u32>> {
    Some(cpu_list(list?)?.into_iter().collect()).filter(|cpus: &BTreeSet<u32>| !cpus.is_empty())
}

impl CpuTime {
    /// The CPU time on these CPUs of the machine with this number; absent where the kernel did not say it.
    pub fn of(evidence: &Evidence, host: u64, cpus: &BTreeSet<u32>) -> Option<CpuTime> {
        let here = || evidence.machines.iter().filter(|machine| machine.host == Some(host));
        let used_by_cpu: &BTreeMap<u32, Nanos> =
            here().map(|machine| &machine.used_by_cpu).find(|used| !used.is_empty())?;
        let used_ns: Nanos = used_by_cpu.iter().filter(|(cpu, _)| cpus.contains(cpu)).map(|(_, ns)| ns).sum();
        let pummel_ns: Nanos = here().map(|machine| process_on(machine, cpus)).sum();
        let servers = || evidence.servers.iter();
        let is_unseen = servers().any(|server| server.threads.is_none() && server.threads_unread.is_some());
        let servers_ns: Nanos = once_each(evidence)
            .filter(|server| server.host == Some(host))
            .map(|server| server_on(server, cpus))
            .sum();
        let others_ns = used_ns.saturating_sub(pummel_ns).saturating_sub(servers_ns);
        Some(CpuTime { pummel_ns, servers_ns, others_ns: (!is_unseen).then_some(others_ns) })
    }
}

/// The servers, without the other names of one process.
fn once_each(evidence: &Evidence) -> impl Iterator<Item = &ServerEvidence> {
    let pid_of = |server: &ServerEvidence| server.reading.as_ref().and_then(|reading| reading.pid);
    let servers = &evidence.servers;
    servers.iter().enumerate().filter_map(move |(at, server)| {
        let is_known = |other: &ServerEvidence| pid_of(other).is_some() && pid_of(other) == pid_of(server);
        (!servers[..at].iter().any(is_known)).then_some(server)
    })
}

/// The CPU time of a process of the run on these CPUs. Only its client threads take much of it.
fn process_on(machine: &MachineEvidence, cpus: &BTreeSet<u32>) -> Nanos {
    let allowed = cpus_of(machine.worker_cpus.as_deref());
    let workers_ns: Nanos = machine.workers.iter().map(|worker| worker.cpu_ns).sum();
    let on_cpus = machine.workers.iter().map(|worker| thread_on(worker, allowed.as_ref(), cpus));
    let on_cpus_ns: Nanos = on_cpus.sum();
    let rest_ns = machine.process_ns.unwrap_or(0).saturating_sub(workers_ns);
    if on_cpus_ns > 0 { on_cpus_ns + rest_ns } else { 0 }
}

fn server_on(server: &ServerEvidence, cpus: &BTreeSet<u32>) -> Nanos {
    let allowed = cpus_of(server.cpus.as_deref());
    server.threads.iter().flatten().map(|thread| thread_on(thread, allowed.as_ref(), cpus)).sum()
}

/// The CPU time of a thread that may run on `allowed` CPUs on the CPUs in `cpus`: all of it, or none. A thread that may
/// run on these and on others counts for the CPU on which it ran last.
fn thread_on(thread: &ThreadUse, allowed: Option<&BTreeSet<u32>>, cpus: &BTreeSet<u32>) -> Nanos {
    let is_on = match (allowed, thread.last_cpu) {
        (Some(allowed), _) if allowed.is_subset(cpus) => true,
        (Some(allowed), _) if allowed.is_disjoint(cpus) => false,
        (_, Some(last_cpu)) => cpus.contains(&last_cpu),
        (_, None) => true,
    };
    if is_on { thread.cpu_ns } else { 0 }
}

/// User of the CPU for which a thread of a server waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayCause {
    /// Processes that are not of this run.
    Others,
    /// The client threads.
    Pummel,
    /// Other threads of the servers, which are more than their CPUs.
    Servers,
}

impl DelayCause {
    /// Finds the user of the CPU while the server's thread that waited longest for one waited; `None` where that is not
    /// known.
    pub fn of(evidence: &Evidence, server: &ServerEvidence) -> Option<DelayCause> {
        let worst = server.threads.iter().flatten().max_by_key(|thread| thread.run_delay_ns)?;
        let time = CpuTime::of(evidence, server.host?, &cpus_of(server.cpus.as_deref())?)?;
        let delay_ns = worst.run_delay_ns?;
        let users = [
            (DelayCause::Others, time.others_ns?),
            (DelayCause::Pummel, time.pummel_ns),
            (DelayCause::Servers, time.servers_ns.saturating_sub(worst.cpu_ns)),
        ];
        first_cause(users, delay_ns)
    }
}

/// The first of the users of a CPU that used it for long enough to be the cause of a time without one; `None` where none did.
pub fn first_cause<User>(
    users: impl IntoIterator<Item = (User, Nanos)>,
    without_cpu_ns: Nanos,
) -> Option<User> {
    let is_enough = |used_ns: Nanos| used_ns as f64 >= CAUSE_SHARE * without_cpu_ns as f64;
    let mut causes = users.into_iter().filter(|(_, used_ns)| without_cpu_ns > 0 && is_enough(*used_ns));
    causes.next().map(|(user, _)| user)
}
