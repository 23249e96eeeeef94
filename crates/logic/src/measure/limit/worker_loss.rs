//! The time that client threads could have run and did not, because their CPU was taken away.

use crate::measure::evidence::MachineEvidence;
use crate::time::Nanos;

use super::shares::share_of;

/// What the client threads of one process lost.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerLoss {
    /// Name of the agent; absent in a run without agents.
    pub agent: Option<String>,
    /// Share of its time that the worst of the threads lost.
    pub share: f64,
    /// Time that it lost, in nanoseconds.
    pub lost_ns: Nanos,
    /// What took most of it.
    pub cause: Thief,
}

/// What takes a CPU away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thief {
    /// The hypervisor, which gave the CPU to another machine (steal).
    Hypervisor,
    /// The limit of CPU time of the control group.
    ContainerLimit,
    /// Other threads of the machine that were given the CPU.
    OtherProcesses,
    /// The other client threads of the process, which has more of them than CPUs.
    OwnThreads,
}

impl Thief {
    /// The words of reports.
    pub fn words(self) -> &'static str {
        match self {
            Thief::Hypervisor => "the hypervisor",
            Thief::ContainerLimit => "the container's limit",
            Thief::OtherProcesses => "other processes",
            Thief::OwnThreads => "its own client threads, which are more than its CPUs",
        }
    }
}

impl WorkerLoss {
    /// The loss of the process that `machine` is about; absent where none of its figures is known.
    ///
    /// Steal is counted for all CPUs together and dealt to them evenly; the throttling of a control group is dealt to the
    /// threads that can run at one time. A throttled thread is still able to run, so that its run delay contains the
    /// throttling: what is more than that was taken by other processes. Client threads that are more than the CPUs take the
    /// CPU from each other: of the time in which the thread had a CPU or wanted one, the others had it for the share that
    /// they have of all time, and for more if other processes did not use the CPUs for so long: threads that wait for the
    /// same server wake up together.
    pub fn of(machine: &MachineEvidence) -> Option<WorkerLoss> {
        let cpus = u64::from(machine.cpus.max(1));
        let running = cpus.min(machine.workers.len() as u64).max(1);
        let delay_ns = machine.workers.iter().filter_map(|worker| worker.run_delay_ns).max();
        if machine.steal_ns.is_none() && machine.throttled_ns.is_none() && delay_ns.is_none() {
            return None;
        }
        let steal_ns = machine.steal_ns.unwrap_or(0) / cpus;
        let throttled_ns = machine.throttled_ns.unwrap_or(0) / running;
        let waited_ns = delay_ns.unwrap_or(0).saturating_sub(throttled_ns);
        let own_ns = own_part_ns(machine, waited_ns);
        let parts = [
            (waited_ns - own_ns, Thief::OtherProcesses),
            (own_ns, Thief::OwnThreads),
            (throttled_ns, Thief::ContainerLimit),
            (steal_ns, Thief::Hypervisor),
        ];
        let lost_ns = parts.iter().map(|(part_ns, _)| part_ns).sum();
        let cause = parts.into_iter().max_by_key(|(part_ns, _)| *part_ns)?.1;
        Some(WorkerLoss {
            agent: machine.agent.clone(),
            share: share_of(lost_ns, machine.span_ns),
            lost_ns,
            cause,
        })
    }
}

/// Of the time `waited_ns` for which the client thread that waited longest wanted a CPU, the part in which others of its process
/// had it; 0 where each may have a CPU of its own. That is at least the part that makes threads that run independently of each
/// other wait, and at least what other processes cannot have taken, since they did not use the CPUs for that long.
fn own_part_ns(machine: &MachineEvidence, waited_ns: Nanos) -> Nanos {
    let workers = &machine.workers;
    let worst = workers.iter().max_by_key(|worker| worker.run_delay_ns);
    let Some(worst) = worst.filter(|_| workers.len() > machine.cpus as usize) else { return 0 };
    let all_ns: Nanos = workers.iter().map(|worker| worker.cpu_ns).sum();
    let share = share_of(all_ns - worst.cpu_ns, machine.span_ns * u64::from(machine.cpus.max(1)));
    let by_chance_ns = (share * (worst.cpu_ns + worst.run_delay_ns.unwrap_or(0)) as f64) as Nanos;
    let others_ns = machine.used_ns.map_or(Nanos::MAX, |used_ns| used_ns.saturating_sub(all_ns));
    by_chance_ns.max(waited_ns.saturating_sub(others_ns)).min(waited_ns)
}
