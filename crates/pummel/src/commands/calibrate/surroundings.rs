//! The settings of the machine, and the other uses of its CPUs, during a calibration; facts that cannot be read are
//! unknown.

use std::fs;

use pummel_engine::evidence::provenance;
use pummel_engine::sys;
use pummel_logic::time::Nanos;
use pummel_measure::calibration::Surroundings;
use pummel_measure::evidence::proc::{cgroup_paths, throttled_ns};
use pummel_measure::evidence::provenance::cpu_list;

/// The machine when a calibration began.
pub(super) struct Watch {
    reading: Reading,
}

/// The counters of the machine at one moment.
struct Reading {
    /// Ticks of the CPUs of this process: all, and those that a hypervisor took.
    own: Option<(u64, u64)>,
    /// Ticks of sibling CPUs, which share a core with a CPU of this process and are not its own: all ticks, and busy
    /// ones.
    siblings: Option<(u64, u64)>,
    throttled_ns: Option<Nanos>,
    /// Interrupts of each network card on the CPUs of this process.
    interrupts: Vec<(String, u64)>,
}

impl Watch {
    /// Reads the counters of the machine.
    pub(super) fn begin() -> Watch {
        Watch { reading: Reading::now() }
    }

    /// The settings of the machine, and the differences of its counters since the beginning.
    pub(super) fn end(self) -> Surroundings {
        let (before, after) = (self.reading, Reading::now());
        let permille = |before: Option<(u64, u64)>, after: Option<(u64, u64)>| {
            let ((all, part), (all_after, part_after)) = (before?, after?);
            let ticks = all_after.checked_sub(all).filter(|ticks| *ticks > 0)?;
            Some(part_after.saturating_sub(part) * 1_000 / ticks)
        };
        let grew = |(name, count): &&(String, u64)| {
            before.interrupts.iter().any(|(known, counted)| known == name && count > counted)
        };
        let card = after.interrupts.iter().find(grew).map(|(name, _)| name.clone());
        let machine = provenance::read();
        Surroundings {
            governor: machine.cpu.governor,
            idle_exit_us: deepest_idle_us(),
            huge_pages: machine.transparent_huge_pages,
            swaps: machine.swap_bytes.map(|bytes| bytes > 0),
            throttled_ns: before
                .throttled_ns
                .zip(after.throttled_ns)
                .map(|(one, other)| other.saturating_sub(one)),
            steal_permille: permille(before.own, after.own),
            siblings_busy_permille: permille(before.siblings, after.siblings),
            interrupting_card: card.filter(|_| runs("irqbalance")),
        }
    }
}

impl Reading {
    fn now() -> Reading {
        let own = sys::allowed_cpus().unwrap_or_default();
        let siblings: Vec<usize> =
            own.iter().flat_map(|cpu| siblings_of(*cpu)).filter(|cpu| !own.contains(cpu)).collect();
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let sum = |cpus: &[usize], part: fn(&CpuTicks) -> u64| {
            let ticks: Option<Vec<CpuTicks>> = cpus.iter().map(|cpu| ticks_of(&stat, *cpu)).collect();
            let ticks = ticks.filter(|ticks| !ticks.is_empty())?;
            Some((ticks.iter().map(|ticks| ticks.all).sum(), ticks.iter().map(part).sum()))
        };
        let interrupts = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        let cards = provenance::read().cards.into_iter();
        Reading {
            own: sum(&own, |ticks| ticks.steal),
            siblings: sum(&siblings, |ticks| ticks.busy),
            throttled_ns: throttled(),
            interrupts: cards
                .map(|card| {
                    let count = interrupts_of(&interrupts, &card.name, &own);
                    (card.name, count)
                })
                .collect(),
        }
    }
}

/// The ticks of one CPU since the machine was started.
struct CpuTicks {
    all: u64,
    busy: u64,
    steal: u64,
}

/// The ticks of a CPU in the text of `/proc/stat`, whose columns are user, nice, system, idle, iowait, irq, softirq,
/// steal and the time of guests (user time already includes the last).
fn ticks_of(stat: &str, cpu: usize) -> Option<CpuTicks> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.try_into().ok()?;
    let busy = user + nice + system + irq + softirq;
    Some(CpuTicks { all: busy + idle + iowait + steal, busy, steal })
}

/// The interrupts of a card on these CPUs in the text of `/proc/interrupts`: its queues are named after it.
fn interrupts_of(text: &str, card: &str, cpus: &[usize]) -> u64 {
    let mut lines = text.lines();
    let columns: Vec<Option<usize>> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let is_of_card = |line: &&str| {
        let name = line.rsplit([' ', ',']).next().unwrap_or_default();
        name.strip_prefix(card).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let count = |line: &str| -> u64 {
        let counts = line.split_ascii_whitespace().skip(1).zip(&columns);
        let ours = counts.filter(|(_, cpu)| cpu.is_some_and(|cpu| cpus.contains(&cpu)));
        ours.filter_map(|(count, _)| count.parse::<u64>().ok()).sum()
    };
    lines.filter(is_of_card).map(count).sum()
}

/// The CPUs that share a core with a CPU, itself too.
fn siblings_of(cpu: usize) -> Vec<usize> {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
    let list = text.ok().and_then(|text| cpu_list(&text)).unwrap_or_default();
    list.into_iter().map(|cpu| cpu as usize).collect()
}

/// The time for which the limits of its control groups have held this process back: the longest time of one of them.
fn throttled() -> Option<Nanos> {
    let of_process = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = cgroup_paths(&of_process).unified.unwrap_or("/").to_owned();
    let folders =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"].map(|mount| [format!("{mount}{path}"), mount.to_owned()]);
    let texts =
        folders.iter().flatten().filter_map(|folder| fs::read_to_string(format!("{folder}/cpu.stat")).ok());
    texts.filter_map(|text| throttled_ns(&text)).max()
}

/// Whether a process of this name runs.
fn runs(name: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_it = |path: std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    processes.map(|entry| entry.path()).any(is_it)
}

fn deepest_idle_us() -> Option<u64> {
    let states = fs::read_dir("/sys/devices/system/cpu/cpu0/cpuidle").ok()?;
    let exits = states.flatten().filter_map(|state| {
        let read = |name| fs::read_to_string(state.path().join(name)).ok()?.trim().parse::<u64>().ok();
        (read("disable")? == 0).then(|| read("latency")).flatten()
    });
    exits.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_of_a_cpu_are_those_of_its_line() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 9 10\ncpu1 0 0 0 5 0 0 0 0 0 0\ncpu11 1 1 1 1 1 1 1\nintr 5\n";
        let ticks = ticks_of(stat, 0).expect("it is there");
        assert_eq!((ticks.all, ticks.busy, ticks.steal), (72, 19, 8));
        assert_eq!(ticks_of(stat, 1).map(|ticks| ticks.all), Some(5));
        for cpu in [2, 11] {
            assert!(ticks_of(stat, cpu).is_none(), "no line, or a line of an old kernel");
        }
    }

    #[test]
    fn the_interrupts_of_a_card_are_those_of_its_queues_on_these_cpus() {
        let text = "           CPU0       CPU2\n  24:   5    7   PCI-MSI 1-edge      eth0-rx-0\n  25:   1    2   PCI-MSI 2-edge   eth0\n  \
                    26:  90   90   PCI-MSI 3-edge   eth01-rx\nNMI:  3  4  Non-maskable\n";
        assert_eq!(interrupts_of(text, "eth0", &[0, 2]), 15);
        assert_eq!(interrupts_of(text, "eth0", &[2, 1]), 9);
        assert_eq!(interrupts_of(text, "eth1", &[0]), 0);
        assert_eq!(interrupts_of("", "eth0", &[0]), 0);
    }
}
