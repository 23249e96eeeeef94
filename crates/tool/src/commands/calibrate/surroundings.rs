//! What the machine is set to, read from the kernel's files; what cannot be read is not known.

use std::fs;

use pummel_logic::measure::calibration::Surroundings;

fn read_line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// What the machine is set to.
pub(super) fn read() -> Surroundings {
    let huge_pages = read_line("/sys/kernel/mm/transparent_hugepage/enabled");
    let quota = read_line("/sys/fs/cgroup/cpu.max");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok();
    let swaps = fs::read_to_string("/proc/swaps").ok();
    Surroundings {
        governor: read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        idle_exit_us: deepest_idle_us(),
        huge_pages: huge_pages.as_deref().and_then(chosen),
        swaps: swaps.map(|text| text.lines().count() > 1),
        has_quota: quota.map(|text| !text.starts_with("max")),
        is_virtual: cpuinfo
            .map(|text| text.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"))),
    }
}

/// The word in brackets, as in `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word.to_owned())
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
    fn the_chosen_word_of_a_setting_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise".to_owned()));
        assert_eq!(chosen("always"), None);
    }
}
