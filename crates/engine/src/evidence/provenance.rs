//! The machine of this process, read from the texts and calls of the kernel for the result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use pummel_measure::evidence::proc::{card_speed, cgroup_paths};
use pummel_measure::evidence::provenance::{
    self, CARDS_MAX, CardFacts, CgroupFacts, CpuFacts, Provenance, cpu_list, line, number,
};

use crate::sys::{self, EthtoolQuestion};

/// Most bytes of a file that are read. Of a machine with many CPUs /proc/cpuinfo is longer, and costs time to write.
const FILE_MAX_BYTES: u64 = 4_096;

/// Most CPUs whose siblings are read.
const SIBLINGS_MAX: usize = 256;

/// Most files of a folder that are read.
const FILES_MAX: usize = 64;

/// Folder of the CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// Reads the machine of this process. The program is not known here.
pub fn read() -> Provenance {
    let cpuinfo = text("/proc/cpuinfo");
    let meminfo = text("/proc/meminfo");
    let memory = |name| provenance::memory_bytes(meminfo.as_deref()?, name);
    Provenance {
        host: line_of("/proc/sys/kernel/hostname"),
        kernel: sys::kernel_release().map(|release| format!("Linux {release}")),
        kernel_command_line: line_of("/proc/cmdline"),
        cpu: cpu(cpuinfo.as_deref().unwrap_or_default()),
        memory_bytes: memory("MemTotal"),
        swap_bytes: memory("SwapTotal"),
        transparent_huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| provenance::selected(&text)),
        clock_source: line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        hypervisor: hypervisor(cpuinfo.as_deref().unwrap_or_default()),
        cgroup: cgroup(),
        congestion_control: line_of("/proc/sys/net/ipv4/tcp_congestion_control"),
        cards: cards(),
        ..Provenance::default()
    }
}

/// The beginning of a file.
fn text(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first line of a file.
fn line_of(path: impl AsRef<Path>) -> Option<String> {
    line(&text(path)?)
}

/// The names in a folder, in their order.
fn names_in(path: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().take(FILES_MAX);
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn cpu(cpuinfo: &str) -> CpuFacts {
    let allowed = sys::allowed_cpus().ok();
    let online = text(format!("{CPUS}/online")).and_then(|text| cpu_list(&text));
    let first = allowed.as_ref().and_then(|cpus| cpus.first()).copied().unwrap_or(0);
    let frequency = |name: &str| text(format!("{CPUS}/cpu{first}/cpufreq/{name}"));
    let boost = || provenance::yes(&text(format!("{CPUS}/cpufreq/boost"))?);
    let no_turbo = || provenance::yes(&text(format!("{CPUS}/intel_pstate/no_turbo"))?);
    let known = names_in(format!("{CPUS}/vulnerabilities"));
    let mitigation = |name: String| Some((name.clone(), line_of(format!("{CPUS}/vulnerabilities/{name}"))?));
    CpuFacts {
        model: provenance::cpu_model(cpuinfo),
        online: online.as_ref().map(|cpus| cpus.len() as u32),
        cores: online.as_ref().and_then(|cpus| cores_of(cpus)),
        smt: text(format!("{CPUS}/smt/active")).and_then(|text| provenance::yes(&text)),
        is_pinned: allowed
            .as_ref()
            .zip(online.as_ref())
            .map(|(allowed, online)| allowed.len() < online.len()),
        allowed: allowed.as_ref().map(|cpus| provenance::list_of(cpus)),
        governor: frequency("scaling_governor").and_then(|text| line(&text)),
        frequency_min_khz: frequency("scaling_min_freq").and_then(|text| number(&text)),
        frequency_max_khz: frequency("scaling_max_freq").and_then(|text| number(&text)),
        boost: boost().or_else(|| no_turbo().map(|is_off| !is_off)),
        idle_driver: line_of(format!("{CPUS}/cpuidle/current_driver")).filter(|name| name != "none"),
        mitigations: known.into_iter().filter_map(mitigation).collect(),
    }
}

/// Number of cores of these CPUs, each known by the CPUs that are its threads.
fn cores_of(cpus: &[u32]) -> Option<u32> {
    if cpus.len() > SIBLINGS_MAX {
        return None;
    }
    let siblings = |cpu: &u32| line_of(format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"));
    let cores: Option<BTreeSet<String>> = cpus.iter().map(siblings).collect();
    cores.map(|cores| cores.len() as u32)
}

/// The hypervisor, as firmware or the kernel names it.
fn hypervisor(cpuinfo: &str) -> Option<String> {
    let vendor = line_of("/sys/class/dmi/id/sys_vendor");
    let product = line_of("/sys/class/dmi/id/product_name");
    let is_virtual = provenance::is_virtual(cpuinfo);
    match (line_of("/sys/hypervisor/type"), is_virtual) {
        (Some(name), _) => Some(name),
        (None, Some(true)) => {
            let named: Vec<String> = vendor.into_iter().chain(product).collect();
            Some(if named.is_empty() { "unknown".to_owned() } else { named.join(" ") })
        }
        (None, _) => None,
    }
}

/// The limits of the control groups of this process. A process is held back by the tightest of its groups.
fn cgroup() -> CgroupFacts {
    let of_process = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let folders = super::machine::cgroups_of(&of_process);
    let quota_1 = |folder: &Path| {
        let figure = |name: &str| text(folder.join(name))?.trim().parse::<i64>().ok();
        provenance::quota_of(figure("cpu.cfs_quota_us")?, figure("cpu.cfs_period_us")?)
    };
    let quotas = folders.iter().filter_map(|folder| {
        text(folder.join("cpu.max")).and_then(|text| provenance::cpu_max(&text)).or_else(|| quota_1(folder))
    });
    let cpu_quota_millis = quotas.min();
    let version_2 = folders.iter().find_map(|folder| line_of(folder.join("cpuset.cpus.effective")));
    let version_1 = || {
        let (mount, path) =
            (Path::new("/sys/fs/cgroup/cpuset"), cgroup_paths(&of_process).unified.unwrap_or("/"));
        let below = mount.join(path.trim_start_matches('/'));
        [below.as_path(), mount].iter().find_map(|folder| line_of(folder.join("cpuset.cpus")))
    };
    CgroupFacts { cpu_quota_millis, cpuset: version_2.or_else(version_1) }
}

fn cards() -> Vec<CardFacts> {
    const CLASS: &str = "/sys/class/net";
    let mut qdiscs = BTreeMap::new();
    // Without a list the queueing disciplines are not known.
    let _ = sys::list_links(|bytes| provenance::qdiscs(bytes, &mut qdiscs));
    let is_up = |name: &String| {
        name != "lo" && line_of(format!("{CLASS}/{name}/operstate")).is_some_and(|state| state != "down")
    };
    let names = names_in(CLASS).into_iter().filter(is_up).take(CARDS_MAX);
    names.map(|name| card(CLASS, name, &qdiscs)).collect()
}

/// The facts of a network card.
fn card(class: &str, name: String, qdiscs: &BTreeMap<String, String>) -> CardFacts {
    let folder = format!("{class}/{name}");
    let queues = names_in(format!("{folder}/queues"));
    let count = |kind: &str| Some(queues.iter().filter(|queue| queue.starts_with(kind)).count() as u32);
    let asked = |question| sys::ethtool(&name, question).ok();
    let offloads = OFFLOADS.iter().filter_map(|(offload, question)| {
        let value = provenance::ethtool_value(&asked(*question)?)?;
        Some(((*offload).to_owned(), value != 0))
    });
    CardFacts {
        driver: asked(EthtoolQuestion::Driver).and_then(|bytes| provenance::driver(&bytes)),
        bits_per_second: text(format!("{folder}/speed")).and_then(|text| card_speed(&text)),
        mtu: text(format!("{folder}/mtu")).and_then(|text| number(&text)),
        receive_queues: count("rx-").filter(|_| !queues.is_empty()),
        transmit_queues: count("tx-").filter(|_| !queues.is_empty()),
        offloads: offloads.collect(),
        coalescing: asked(EthtoolQuestion::Coalescing).and_then(|bytes| provenance::coalescing(&bytes)),
        stamps_packets: asked(EthtoolQuestion::Stamps).and_then(|bytes| provenance::stamps_packets(&bytes)),
        qdisc: qdiscs.get(&name).cloned(),
        name,
    }
}

/// Offloads by the names that `ethtool -k` gives them.
const OFFLOADS: [(&str, EthtoolQuestion); 6] = [
    ("rx-checksumming", EthtoolQuestion::ReceiveChecksums),
    ("tx-checksumming", EthtoolQuestion::TransmitChecksums),
    ("scatter-gather", EthtoolQuestion::ScatterGather),
    ("tcp-segmentation-offload", EthtoolQuestion::TcpSegmentation),
    ("generic-segmentation-offload", EthtoolQuestion::GenericSegmentation),
    ("generic-receive-offload", EthtoolQuestion::GenericReceive),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_kernel_its_cpus_and_its_memory() {
        let machine = read();
        assert!(machine.kernel.as_ref().is_some_and(|kernel| kernel.starts_with("Linux ")), "{machine:?}");
        assert!(machine.cpu.allowed.is_some() && machine.memory_bytes.is_some(), "{machine:?}");
        assert!(machine.cards.iter().all(|card| card.name != "lo"), "{machine:?}");
        assert!(machine.words().starts_with("Linux "), "{}", machine.words());
    }
}
