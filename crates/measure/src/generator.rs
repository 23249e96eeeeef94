//! The generator's own CPU time and memory, and how busy its workers were.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use pummel_logic::plan::{Arrivals, Backend, Plan, Wait};
use pummel_logic::time::Nanos;

/// The CPU time and memory of the generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generator {
    /// CPU time outside the kernel, in nanoseconds.
    pub cpu_user_ns: Nanos,
    /// CPU time inside the kernel, in nanoseconds.
    pub cpu_system_ns: Nanos,
    /// Every worker's busy time and the time it ran.
    pub workers: Vec<WorkerTime>,
    /// Most memory that the process had.
    pub peak_rss_bytes: u64,
    /// Whether client threads slept where only a reply or the next request could wake them in time.
    #[serde(default)]
    pub slept: bool,
    /// The kernel interfaces that were used: one in each process. Empty in runs without a kernel.
    #[serde(default)]
    pub backends: BTreeSet<Backend>,
    /// Why a kernel interface is not the one that was asked for; `None` where all are.
    #[serde(default)]
    pub fallbacks: BTreeSet<String>,
}

/// The busy time of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerTime {
    /// Time in turns that had something to do.
    pub busy_ns: Nanos,
    /// Time for which the worker ran, in nanoseconds.
    pub wall_ns: Nanos,
}

/// Whether workers that wait in this way sleep until a reply or the next request is there. Before requests that are due at a
/// time [`Wait::Auto`] is awake in time, and replies come to it without one.
pub fn sleeps(plan: &Plan, wait: Wait) -> bool {
    match wait {
        Wait::Block => true,
        Wait::Auto => plan.groups.iter().all(|group| group.arrivals == Arrivals::Closed),
        Wait::Spin | Wait::Brief => false,
    }
}

impl Generator {
    /// Adds the figures of another worker; memory is the most that one process had.
    pub fn merge(&mut self, other: &Generator) {
        self.cpu_user_ns += other.cpu_user_ns;
        self.cpu_system_ns += other.cpu_system_ns;
        self.workers.extend_from_slice(&other.workers);
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
        self.slept |= other.slept;
        self.backends.extend(&other.backends);
        self.fallbacks.extend(other.fallbacks.iter().cloned());
    }

    /// Share of its time that the busiest worker was busy; 0 when there was none.
    pub fn busy_share_max(&self) -> f64 {
        self.workers.iter().map(WorkerTime::busy_share).fold(0.0, f64::max)
    }
}

impl WorkerTime {
    /// Share of the time that the worker was busy.
    pub fn busy_share(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { self.busy_ns as f64 / self.wall_ns as f64 }
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Group;

    use super::*;

    #[test]
    fn workers_sleep_where_nothing_is_due_at_a_time_or_they_were_told_to() {
        let table = [
            (Wait::Block, true, true),
            (Wait::Auto, true, false),
            (Wait::Spin, false, false),
            (Wait::Brief, false, false),
        ];
        for (wait, in_closed_loop, at_times) in table {
            for (arrivals, is_asleep) in [(Arrivals::Closed, in_closed_loop), (Arrivals::Poisson, at_times)] {
                let groups = vec![Group::default(), Group { arrivals, ..Group::default() }];
                let plan = Plan { groups, ..Plan::default() };
                assert_eq!(sleeps(&plan, wait), is_asleep, "{wait:?}");
            }
        }
    }
}
