//! The time that client threads could have run and did not, because their CPU was taken away, and by whom.

use super::cpu_time::{CpuTime, cpus_of, first_cause};
use super::shares::{CAUSE_SHARE, Judged, TAKEN_SHARE, share_of};
use crate::evidence::{Evidence, MachineEvidence};
use crate::measurement::Measurement;
use pummel_logic::time::Nanos;
use serde::{Deserialize, Serialize};

/// Loss of CPU time of the client threads of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerLoss {
    /// Name of the agent; absent in a run without agents.
    pub agent: Option<String>,
    /// Share of its time that the worst of the threads lost.
    pub share: f64,
    /// Time that the worst thread lost, in nanoseconds.
    pub lost_ns: Nanos,
    /// Time that each taker took, as far as it is known. Together they are at most what was lost.
    pub parts: Vec<(CpuTaker, Nanos)>,
    /// The taker that took most, where it is known, and what it took.
    pub cause: Option<(CpuTaker, Nanos)>,
}

/// Taker of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuTaker {
    /// The hypervisor, which gave the CPU to another machine (steal).
    Hypervisor,
    /// The limit of CPU time of the control group.
    ContainerLimit,
    /// Other threads of the machine that were given the CPU.
    OtherProcesses,
    /// The other client threads of the process, which has more of them than CPUs.
    OwnThreads,
    /// Other agents of the run on the machine.
    Agents,
    /// The servers of the run.
    Servers,
}

impl WorkerLoss {
    /// The share of their time that the client threads of the process lost.
    pub fn taken(&self) -> Judged {
        Judged { value: self.share, bound: TAKEN_SHARE }
    }

    /// The losses of all processes of a run, as far as one of their figures is known.
    pub fn all_of(evidence: &Evidence) -> Vec<WorkerLoss> {
        evidence.machines.iter().filter_map(|machine| WorkerLoss::of(evidence, machine)).collect()
    }

    /// The taker that explains half of the stalls of the client threads or more, and what it took; `None` where none does.
    pub fn of_stalls(&self, measurement: &Measurement) -> Option<(CpuTaker, Nanos)> {
        let workers = measurement.generator.workers.len().max(1);
        let stalled_ns = measurement.counters.turns.stalled_ns as f64 / workers as f64;
        self.cause.filter(|(_, taken_ns)| *taken_ns as f64 >= CAUSE_SHARE * stalled_ns)
    }

    /// The loss of the process that `machine` is about; absent where none of its figures is known.
    ///
    /// Steal is counted for all CPUs together and dealt to them evenly; the throttling of a control group is summed over the CPUs and
    /// dealt to the threads that can run at one time. A throttled thread is still able to run, so that its run delay contains the
    /// throttling: what is more than that was taken by others. Client threads that are more than the CPUs take the
    /// CPU from each other: of the time in which the thread had a CPU or wanted one, the others had it for the share that
    /// they have of all time, and for more if other processes did not use the CPUs for so long: threads that wait for the
    /// same server wake up together. What is left was taken by whoever used these CPUs for half of it at least.
    fn of(evidence: &Evidence, machine: &MachineEvidence) -> Option<WorkerLoss> {
        let cpus = u64::from(machine.cpus.max(1));
        let running = cpus.min(machine.workers.len() as u64).max(1);
        let delay_ns = machine.workers.iter().filter_map(|worker| worker.run_delay_ns).max();
        if machine.steal_ns.is_none() && machine.throttled_ns.is_none() && delay_ns.is_none() {
            return None;
        }
        // The parts are of one time, so that together they are no longer than the run.
        let mut left_ns = machine.span_ns;
        let mut part = |ns: Nanos| {
            let part_ns = ns.min(left_ns);
            left_ns -= part_ns;
            part_ns
        };
        let throttled_ns = part(machine.throttled_ns.unwrap_or(0) / running);
        let waited_ns = part(delay_ns.unwrap_or(0).saturating_sub(throttled_ns));
        let steal_ns = part(machine.steal_ns.unwrap_or(0) / cpus);
        let lost_ns = throttled_ns + waited_ns + steal_ns;
        let own_ns = own_part_ns(machine, waited_ns);
        let mut parts = vec![
            (CpuTaker::OwnThreads, own_ns),
            (CpuTaker::ContainerLimit, throttled_ns),
            (CpuTaker::Hypervisor, steal_ns),
        ];
        let rest_ns = waited_ns - own_ns;
        parts.extend(taker_of(evidence, machine, rest_ns).map(|taker| (taker, rest_ns)));
        parts.retain(|(_, part_ns)| *part_ns > 0);
        let most = parts.iter().copied().max_by_key(|(_, part_ns)| *part_ns);
        let is_much = |part_ns: Nanos| {
            part_ns as f64 >= CAUSE_SHARE * lost_ns as f64 || share_of(part_ns, machine.span_ns) > TAKEN_SHARE
        };
        Some(WorkerLoss {
            agent: machine.agent.clone(),
            share: share_of(lost_ns, machine.span_ns),
            lost_ns,
            cause: most.filter(|(_, part_ns)| is_much(*part_ns)),
            parts,
        })
    }
}

/// Finds the taker of the CPUs of the client threads for `lost_ns`; `None` where that is not known.
///
/// The CPU time of others is what is left of the time for which these CPUs were used: without that of this run, and
/// without that of its servers. A run delay alone names no taker.
fn taker_of(evidence: &Evidence, machine: &MachineEvidence, lost_ns: Nanos) -> Option<CpuTaker> {
    let time = CpuTime::of(evidence, machine.host?, &cpus_of(machine.worker_cpus.as_deref())?)?;
    let own_ns = machine.process_ns.unwrap_or(0);
    let users = [
        (CpuTaker::OtherProcesses, time.others_ns?),
        (CpuTaker::Servers, time.servers_ns),
        (CpuTaker::Agents, time.pummel_ns.saturating_sub(own_ns)),
    ];
    first_cause(users, lost_ns)
}

/// Part of the time `waited_ns`, for which the client thread that waited longest wanted a CPU, in which others of its
/// process had it; 0 where each may have a CPU of its own. That is at least the part that makes threads that run
/// independently of each other wait, and at least what other processes cannot have taken, since they did not use the
/// CPUs for that long.
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
