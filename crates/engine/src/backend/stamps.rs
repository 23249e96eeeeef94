//! Receive stamps of the kernel, moved from the wall clock that they are taken with to the monotonic clock.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use pummel_logic::plan::Clock;
use pummel_logic::time::{Nanos, SECOND};

use crate::sys;

/// Greatest distance of the two monotonic readings around a wall reading, in nanoseconds. Without this check a
/// comparison was wrong by up to 4.9 ms, where the thread was preempted between its readings.
const BRACKET_NS: Nanos = 200;

/// Most tries of the comparison before the narrowest is taken, which bounds its cost on slow clocks.
const TRIES_MAX: u32 = 200;

/// Time for which a comparison is valid, in nanoseconds, since the wall clock is slewed and set during a run.
const RENEW_NS: Nanos = SECOND;

/// The socket that keeps the kernel stamping. The kernel begins to stamp some time after the first socket asked for it,
/// and stops when the last one is closed. This socket outlives all others.
static KEEPER: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Makes the kernel stamp received segments until the process ends. The first segments of a run have stamps if this is
/// called some time before the first connection.
///
/// # Errors
/// Returns the error of `socket` (EMFILE or ENFILE when no descriptor is left) or of `setsockopt` (ENOPROTOOPT, with a hint, when the
/// kernel has no receive stamps).
pub fn keep_stamping() -> io::Result<()> {
    let mut keeper = KEEPER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if keeper.is_none() {
        let socket = sys::datagram_socket()?;
        sys::set_receive_stamps(socket.as_fd()).map_err(without_stamps)?;
        *keeper = Some(socket);
    }
    Ok(())
}

/// The error of a kernel that does not stamp what it receives, with a hint; other errors as they are. Emulated kernels are like that.
fn without_stamps(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::ENOPROTOOPT) {
        return error;
    }
    let hint = format!(
        "this kernel does not stamp received packets (SO_TIMESTAMPNS: {error}); 'pummel run --clock user' needs no stamps"
    );
    io::Error::new(error.kind(), hint)
}

/// The offset between the wall clock and the monotonic clock, as one worker knows it.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    /// Wall clock minus monotonic clock, in nanoseconds.
    offset_ns: i64,
    /// When the clocks are compared again.
    renew_at: Nanos,
}

impl Stamps {
    /// The offset for a worker whose receive times are taken by `clock`; `None` for the user's clock. For the kernel's
    /// clock, the kernel stamps received segments from then on.
    ///
    /// # Errors
    /// Returns, for the kernel's clock, the error of `socket` (EMFILE or ENFILE when no descriptor is left) or of
    /// `setsockopt` (ENOPROTOOPT when the kernel has no receive stamps).
    pub fn of(clock: Clock) -> io::Result<Option<Stamps>> {
        match clock {
            Clock::Kernel => {
                keep_stamping()?;
                Ok(Some(Stamps::new()))
            }
            Clock::User => Ok(None),
        }
    }

    /// The offset by a first comparison of the clocks.
    pub fn new() -> Stamps {
        let mut stamps = Stamps { offset_ns: 0, renew_at: 0 };
        stamps.renew();
        stamps
    }

    /// Converts a time of the wall clock to the monotonic clock.
    #[inline]
    pub fn to_monotonic(&self, wall: Nanos) -> Nanos {
        wall.wrapping_sub(self.offset_ns as Nanos)
    }

    /// Compares the clocks again if the last comparison is no longer valid at `now`.
    #[inline]
    pub fn renew_when_due(&mut self, now: Nanos) {
        if now >= self.renew_at {
            self.renew();
        }
    }

    /// Compares the clocks again.
    pub fn renew(&mut self) {
        self.offset_ns = compare(sys::monotonic_ns, sys::wall_ns);
        self.renew_at = sys::monotonic_ns() + RENEW_NS;
    }
}

impl Default for Stamps {
    fn default() -> Stamps {
        Stamps::new()
    }
}

/// Wall clock minus monotonic clock, in nanoseconds. Each wall reading lies between two monotonic readings. The first
/// reading with a narrow pair counts, or the narrowest of many.
fn compare(mut monotonic: impl FnMut() -> Nanos, mut wall: impl FnMut() -> Nanos) -> i64 {
    let mut best = (Nanos::MAX, 0);
    for _ in 0..TRIES_MAX {
        let before = monotonic();
        let wall = wall();
        let width = monotonic() - before;
        if width < best.0 {
            best = (width, wall.wrapping_sub(before + width / 2) as i64);
        }
        if width <= BRACKET_NS {
            break;
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const OFFSET_NS: u64 = 1_700_000_000_000_000_000;

    #[test]
    fn a_kernel_without_stamps_is_told_with_what_to_do() {
        let text = without_stamps(io::Error::from_raw_os_error(libc::ENOPROTOOPT)).to_string();
        assert!(
            text.contains("SO_TIMESTAMPNS") && text.ends_with("'pummel run --clock user' needs no stamps"),
            "{text}"
        );
        let other = without_stamps(io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(other.raw_os_error(), Some(libc::EPERM));
    }

    /// Compares the clocks of a machine that takes `steps[n]` nanoseconds after reading number n, and no time when all
    /// steps are used up.
    fn compare_with_delays(steps: &[u64]) -> (i64, usize) {
        let (now, readings) = (Cell::new(5_000_000), Cell::new(0));
        let read = || {
            let read_at = now.get();
            now.set(read_at + steps.get(readings.get()).copied().unwrap_or(0));
            readings.set(readings.get() + 1);
            read_at
        };
        (compare(read, || read() + OFFSET_NS), readings.get())
    }

    #[test]
    fn a_narrow_comparison_is_taken_at_once() {
        let (offset, readings) = compare_with_delays(&[50, 50]);
        assert_eq!(offset.abs_diff(OFFSET_NS as i64), 0);
        assert_eq!(readings, 3);
    }

    #[test]
    fn a_preempted_comparison_is_tried_again() {
        let (offset, readings) = compare_with_delays(&[4_900_000, 40, 0, 40, 40]);
        assert_eq!(offset, OFFSET_NS as i64);
        assert_eq!(readings, 6);
    }

    #[test]
    fn on_slow_clocks_the_narrowest_comparison_counts() {
        let mut steps = vec![700; 3 * TRIES_MAX as usize];
        steps[30] = 300;
        steps[31] = 300;
        let (offset, readings) = compare_with_delays(&steps);
        assert_eq!(offset, OFFSET_NS as i64);
        assert_eq!(readings, 3 * TRIES_MAX as usize);
    }

    #[test]
    fn a_wall_reading_of_now_is_now_on_the_monotonic_clock() {
        let stamps = Stamps::new();
        let before = sys::monotonic_ns();
        let moved = stamps.to_monotonic(sys::wall_ns());
        let after = sys::monotonic_ns();
        assert!(moved + 1_000 >= before && moved <= after + 1_000, "{before} {moved} {after}");
    }

    #[test]
    fn a_comparison_is_renewed_after_a_second_and_not_before() {
        let mut stamps = Stamps { offset_ns: 1, renew_at: 10 };
        stamps.renew_when_due(9);
        assert_eq!(stamps.offset_ns, 1);
        stamps.renew_when_due(10);
        assert_ne!(stamps.offset_ns, 1);
    }
}
