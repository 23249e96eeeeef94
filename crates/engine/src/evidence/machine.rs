//! The machine of this process: CPU time of its workers, what took the CPU from them, and its network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::evidence::proc::{
    self, CpuTicks, card_speed, cgroup_paths, cpu_ticks, pressure_ns, throttled_ns, used_ticks_by_cpu,
};
use pummel_measure::evidence::provenance::list_of;
use pummel_measure::evidence::{HostNetwork, MachineEvidence, ThreadUse};

use super::connections::{self, Connections};
use crate::clock;
use crate::sys;

/// Deepest control group of which the limits are read.
const CGROUP_DEPTH_MAX: usize = 32;

/// The machine at one moment. A figure that cannot be read has its reason in its place.
pub struct MachineReading {
    at: Nanos,
    /// Time that the reading took, in nanoseconds.
    took_ns: Nanos,
    workers: Vec<Option<ThreadUse>>,
    cpu_ticks: Result<CpuTicks, String>,
    used_ticks: BTreeMap<u32, u64>,
    process_ns: Nanos,
    /// CPUs that some client thread may run on.
    worker_cpus: BTreeSet<usize>,
    /// One figure for each control group from that of the process to the root.
    throttled_ns: Result<Vec<Nanos>, String>,
    pressure_ns: Result<Nanos, String>,
    connections: Result<Connections, String>,
    network: Result<HostNetwork, String>,
}

/// The places that hold the figures of this machine.
pub struct Machine {
    cpus: Vec<usize>,
    ticks_per_second: u64,
    host: Option<u64>,
    /// The directories of the control groups that may limit this process, its own first.
    cgroups: Vec<PathBuf>,
}

impl Machine {
    /// The machine of this process.
    pub fn new() -> Machine {
        let cgroups =
            fs::read_to_string("/proc/self/cgroup").map_or_else(|_| Vec::new(), |text| cgroups_of(&text));
        Machine {
            cpus: sys::allowed_cpus().unwrap_or_default(),
            ticks_per_second: sys::ticks_per_second(),
            host: host(),
            cgroups,
        }
    }

    /// Reads the machine now, with the threads of these numbers and what [`connections::OwnConnections::read`] found, which took part of the
    /// reading's time since `began`.
    pub fn read(
        &self,
        began: Nanos,
        workers: &[Option<u32>],
        connections: io::Result<Connections>,
    ) -> MachineReading {
        let reading = MachineReading {
            at: clock::now(),
            took_ns: 0,
            workers: workers.iter().map(|&number| thread_times("self", number?)).collect(),
            cpu_ticks: self.cpu_ticks(),
            used_ticks: fs::read_to_string("/proc/stat")
                .map_or_else(|_| BTreeMap::new(), |text| used_ticks_by_cpu(&text)),
            process_ns: process_ns(),
            worker_cpus: workers
                .iter()
                .flatten()
                .flat_map(|&number| sys::allowed_cpus_of(number).unwrap_or_default())
                .collect(),
            throttled_ns: self.throttled(),
            pressure_ns: text_of("/proc/pressure/cpu", "the pressure on CPUs").and_then(|text| {
                pressure_ns(&text).ok_or_else(|| unknown_form("the pressure on CPUs", "/proc/pressure/cpu"))
            }),
            connections: connections.map_err(|error| format!("TCP connections could not be read: {error}")),
            network: network(),
        };
        MachineReading { took_ns: clock::now().saturating_sub(began), ..reading }
    }

    fn cpu_ticks(&self) -> Result<CpuTicks, String> {
        let what = "what processes and a hypervisor took of the CPUs";
        cpu_ticks(&text_of("/proc/stat", what)?, &self.cpus).ok_or_else(|| unknown_form(what, "/proc/stat"))
    }

    fn throttled(&self) -> Result<Vec<Nanos>, String> {
        let levels = self
            .cgroups
            .iter()
            .filter_map(|directory| throttled_ns(&fs::read_to_string(directory.join("cpu.stat")).ok()?));
        let levels: Vec<Nanos> = levels.collect();
        match levels.is_empty() {
            true => Err("the limits of control groups could not be read: there is no cpu.stat".to_owned()),
            false => Ok(levels),
        }
    }

    /// The machine of this process, as a number that its processes have in common.
    pub fn host(&self) -> Option<u64> {
        self.host
    }

    fn used_between(&self, before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> BTreeMap<u32, Nanos> {
        let used = |(cpu, ticks): (&u32, &u64)| {
            let ticks = ticks.saturating_sub(*before.get(cpu)?);
            Some((*cpu, ticks.saturating_mul(SECOND / self.ticks_per_second)))
        };
        after.iter().filter_map(used).collect()
    }

    /// Changes of the machine between two readings.
    pub fn between(&self, before: MachineReading, after: MachineReading) -> MachineEvidence {
        let mut unread = Vec::new();
        let workers = workers_between(&before.workers, &after.workers, &mut unread);
        let ticks = both(before.cpu_ticks, after.cpu_ticks, &mut unread);
        let ticks_ns = |of: fn(CpuTicks) -> u64| {
            let (before, after) = ticks?;
            Some(of(after).saturating_sub(of(before)).saturating_mul(SECOND / self.ticks_per_second))
        };
        let throttled = both(before.throttled_ns, after.throttled_ns, &mut unread);
        let pressure = both(before.pressure_ns, after.pressure_ns, &mut unread);
        let connections = both(before.connections, after.connections, &mut unread);
        let network = both(before.network, after.network, &mut unread);
        MachineEvidence {
            agent: None,
            servers_are_local: None,
            span_ns: after.at.saturating_sub(before.at),
            workers,
            cpus: self.cpus.len() as u32,
            host: self.host,
            worker_cpus: Some(list_of(&after.worker_cpus.into_iter().collect::<Vec<_>>()))
                .filter(|list| !list.is_empty()),
            used_by_cpu: self.used_between(&before.used_ticks, &after.used_ticks),
            process_ns: Some(after.process_ns.saturating_sub(before.process_ns)),
            used_ns: ticks_ns(|ticks| ticks.used),
            steal_ns: ticks_ns(|ticks| ticks.steal),
            // A process is held back by the tightest of its groups; what the others say is part of the same time.
            throttled_ns: throttled.map(|(before, after)| {
                let levels = before.iter().zip(&after).map(|(before, after)| after.saturating_sub(*before));
                levels.max().unwrap_or(0)
            }),
            pressure_ns: pressure.map(|(before, after)| after.saturating_sub(before)),
            connections: connections.and_then(|(before, after)| connections::between(&before, &after)),
            network: network.map(|(before, after)| before.until(after)),
            unread,
            reading_ns: before.took_ns.max(after.took_ns),
        }
    }
}

/// Two figures where both were read; notes the reason where one was not.
fn both<T>(before: Result<T, String>, after: Result<T, String>, unread: &mut Vec<String>) -> Option<(T, T)> {
    match (before, after) {
        (Ok(before), Ok(after)) => Some((before, after)),
        (Err(why), _) | (_, Err(why)) => {
            unread.push(why);
            None
        }
    }
}

fn workers_between(
    before: &[Option<ThreadUse>],
    after: &[Option<ThreadUse>],
    unread: &mut Vec<String>,
) -> Vec<ThreadUse> {
    let mut missing = 0;
    let used = before.iter().zip(after).enumerate().map(|(number, pair)| match pair {
        (Some(before), Some(after)) => proc::use_between(before, after),
        _ => {
            missing += 1;
            ThreadUse { name: format!("worker-{number}"), ..ThreadUse::default() }
        }
    });
    let used: Vec<ThreadUse> = used.collect();
    if missing > 0 {
        unread.push(format!("the CPU time of {missing} of {} client threads could not be read", used.len()));
    }
    used
}

fn text_of(path: &str, what: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{what} could not be read from {path}: {error}"))
}

fn unknown_form(what: &str, path: &str) -> String {
    format!("{what} could not be read from {path}: it has another form")
}

/// The running system as a number: another after each start, and one for all containers on it.
fn host() -> Option<u64> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

fn process_ns() -> Nanos {
    let used = sys::process_cpu_time();
    used.user_ns + used.system_ns
}

/// The times of a thread of the process with this name in /proc; `None` where they cannot be read. A kernel without the
/// statistics of its scheduler has the CPU time in ticks, and no run delay.
pub fn thread_times(process: &str, number: u32) -> Option<ThreadUse> {
    let file = |name: &str| fs::read_to_string(format!("/proc/{process}/task/{number}/{name}")).ok();
    let name = file("comm")?.trim_end().to_owned();
    if let Some((cpu_ns, run_delay_ns)) = file("schedstat").and_then(|text| proc::schedstat(&text)) {
        let last_cpu = file("stat").and_then(|text| proc::last_cpu(&text));
        return Some(ThreadUse { name, cpu_ns, run_delay_ns: Some(run_delay_ns), last_cpu });
    }
    let stat = file("stat")?;
    let ticks = proc::process_stat(&stat)?.cpu_ticks;
    Some(ThreadUse {
        name,
        cpu_ns: ticks.saturating_mul(SECOND / sys::ticks_per_second()),
        run_delay_ns: None,
        last_cpu: proc::last_cpu(&stat),
    })
}

/// The directories of control groups that exist, from that of the process to the root: of version 2 where the CPU belongs
/// to it, and of version 1.
pub(super) fn cgroups_of(text: &str) -> Vec<PathBuf> {
    const MOUNT: &str = "/sys/fs/cgroup";
    let paths = cgroup_paths(text);
    if let Some((controllers, path)) = paths.cpu {
        let mounts = [Path::new(MOUNT).join(controllers), Path::new(MOUNT).join("cpu")];
        return mounts
            .iter()
            .map(|mount| levels(mount, path))
            .find(|found| !found.is_empty())
            .unwrap_or_default();
    }
    paths.unified.map(|path| levels(Path::new(MOUNT), path)).unwrap_or_default()
}

/// The directories from `path` below `mount` up to `mount` that have a `cpu.stat`. In a container the path may be that of
/// the host, of which nothing is there but the root.
fn levels(mount: &Path, path: &str) -> Vec<PathBuf> {
    let below = Path::new(path.trim_start_matches('/'));
    let levels = below.ancestors().take(CGROUP_DEPTH_MAX).map(|level| mount.join(level));
    levels.filter(|directory| directory.join("cpu.stat").exists()).collect()
}

fn network() -> Result<HostNetwork, String> {
    let what = "the network of the machine";
    let [snmp, netstat, dev] =
        ["/proc/net/snmp", "/proc/net/netstat", "/proc/net/dev"].map(|path| text_of(path, what));
    let read = HostNetwork::read(&snmp?, &netstat?, &dev?);
    let mut network = read.ok_or_else(|| unknown_form(what, "/proc/net"))?;
    for card in &mut network.cards {
        let speed = fs::read_to_string(format!("/sys/class/net/{}/speed", card.name));
        card.bits_per_second = speed.ok().and_then(|text| card_speed(&text));
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_a_thread_is_seen_between_two_readings() {
        let machine = Machine::new();
        let number = sys::thread_number();
        let workers = [Some(number), None];
        let before = machine.read(clock::now(), &workers, Ok(Connections::new()));
        let began = sys::thread_cpu_time();
        while sys::thread_cpu_time().user_ns < began.user_ns + 30_000_000 {}
        let after = machine.read(clock::now(), &workers, Ok(Connections::new()));
        let seen = machine.between(before, after);
        assert!(seen.workers[0].cpu_ns >= 10_000_000, "{seen:?}");
        assert!(seen.span_ns >= 30_000_000 && seen.cpus >= 1 && seen.steal_ns.is_some(), "{seen:?}");
        assert!(seen.used_ns.is_some_and(|used_ns| used_ns >= 10_000_000), "{seen:?}");
        assert!(seen.network.is_some() && seen.connections.is_none(), "{seen:?}");
        assert_eq!(seen.workers[1].cpu_ns, 0);
        assert!(
            seen.process_ns.is_some_and(|used_ns| used_ns >= 10_000_000) && seen.host.is_some(),
            "{seen:?}"
        );
        let ran_on = seen.workers[0].last_cpu.expect("it ran");
        assert!(seen.used_by_cpu.contains_key(&ran_on) && seen.worker_cpus.is_some(), "{seen:?}");
        assert!(seen.unread.iter().any(|why| why.contains("1 of 2 client threads")), "{seen:?}");
    }

    #[test]
    fn what_cannot_be_read_is_named_once() {
        let machine = Machine::new();
        let reading = || machine.read(clock::now(), &[], Err(io::Error::from_raw_os_error(libc::EACCES)));
        let seen = machine.between(reading(), reading());
        let about = seen.unread.iter().filter(|why| why.contains("TCP connections")).count();
        assert_eq!((about, seen.connections), (1, None));
    }
}
