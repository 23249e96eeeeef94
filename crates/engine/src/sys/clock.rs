//! The clocks of the kernel, and local time.

use std::fs;

use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::events::LocalTime;

fn clock_ns(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; the clocks asked for exist on every Linux.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert!(result == 0, "clock_gettime failed for a clock that always exists");
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// The monotonic clock (CLOCK_MONOTONIC) in nanoseconds, read by a call of the vDSO.
#[inline]
pub fn monotonic_ns() -> Nanos {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Whether CLOCK_MONOTONIC of the kernel equals that of this process, so that io_uring, which ignores time namespaces
/// (time_namespaces(7)), can be given points of time. Returns false where that cannot be found out.
pub fn monotonic_is_the_kernels() -> bool {
    match fs::read_to_string("/proc/self/timens_offsets") {
        Ok(offsets) => !is_shifted(&offsets),
        // The kernel has no time namespaces, or /proc is not mounted.
        Err(_) => fs::exists("/proc/self/status").unwrap_or(false),
    }
}

/// Lines of a clock's name, and its offset in seconds and nanoseconds.
fn is_shifted(offsets: &str) -> bool {
    offsets.lines().any(|line| line.split_whitespace().skip(1).any(|number| number != "0"))
}

/// The time since the machine started, in nanoseconds (CLOCK_BOOTTIME).
pub fn since_boot_ns() -> Nanos {
    clock_ns(libc::CLOCK_BOOTTIME)
}

/// The wall clock (CLOCK_REALTIME) in nanoseconds since 1970, with which receive stamps are taken.
#[inline]
pub fn wall_ns() -> Nanos {
    clock_ns(libc::CLOCK_REALTIME)
}

/// The local date and time so many seconds after the beginning of 1970 (UTC).
pub fn local_time(unix_s: u64) -> LocalTime {
    let time = unix_s as _;
    // SAFETY: tm is numbers and a pointer that may be null; all zeroes is a value.
    let mut shown: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are valid for the call, which writes nothing else. A time that has no year leaves zeroes.
    unsafe { libc::localtime_r(&time, &mut shown) };
    LocalTime {
        year: shown.tm_year + 1900,
        month: shown.tm_mon + 1,
        day: shown.tm_mday,
        hour: shown.tm_hour,
        minute: shown.tm_min,
        second: shown.tm_sec,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_never_runs_backwards() {
        let mut last = monotonic_ns();
        for _ in 0..10_000 {
            let now = monotonic_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_clocks_of_a_time_namespace_are_told_apart() {
        assert!(!is_shifted("monotonic           0         0\nboottime            0         0\n"));
        assert!(is_shifted("monotonic      100000         0\nboottime            0         0\n"));
        assert!(is_shifted("monotonic          -1 999999999\nboottime            0         0\n"));
    }
}
