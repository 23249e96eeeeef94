//! The clock, the timer and the stand-stills of this machine, as a program sees them.

use std::fs;
use std::thread;
use std::time::Duration;

use pummel_engine::{clock, sys};
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos};
use pummel_measure::calibration::{ClockFigures, Overshoot, TimerFigures};
use pummel_measure::evidence::proc::schedstat;

/// Readings of the clock.
const READINGS: u64 = 1_000_000;

/// Sleeps of each length.
const SLEEPS: usize = 300;

/// Stand-stills that are kept.
const GAPS_KEPT: usize = 5;

/// Reads the clock again and again.
pub(super) fn clock() -> ClockFigures {
    let begin = clock::now();
    let (mut last, mut step_ns, mut backward) = (begin, Nanos::MAX, 0);
    for _ in 0..READINGS {
        let now = clock::now();
        if now > last {
            step_ns = step_ns.min(now - last);
        }
        backward += u64::from(now < last);
        last = now;
    }
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    ClockFigures {
        source: source.ok().map(|name| name.trim().to_owned()),
        reading_ps: last.saturating_sub(begin) * 1_000 / READINGS,
        step_ns: if step_ns == Nanos::MAX { 0 } else { step_ns },
        backward,
    }
}

/// Sleeps, and then spins for `look_ns` and notes when the thread did not run.
pub(super) fn timer(look_ns: Nanos) -> TimerFigures {
    // As the client threads do; where the kernel refuses it, they sleep as long as this thread.
    let _ = sys::sharpen_timers();
    let sleeps = [50 * MICROSECOND, MILLISECOND].map(|asked_ns| {
        let sleep = |_| {
            let begin = clock::now();
            thread::sleep(Duration::from_nanos(asked_ns));
            clock::now().saturating_sub(begin)
        };
        Overshoot::of(asked_ns, (0..SLEEPS).map(sleep))
    });
    let waited = run_delay_ns();
    let gaps_ns = gaps(look_ns);
    let run_delay_ns = waited.zip(run_delay_ns()).map(|(before, after)| after.saturating_sub(before));
    TimerFigures { sleeps: sleeps.to_vec(), gaps_ns, looked_ns: look_ns, run_delay_ns }
}

/// The time for which this thread was able to run so far and had no CPU; `None` if the kernel does not count it.
fn run_delay_ns() -> Option<Nanos> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    schedstat(&text).map(|(_, run_delay_ns)| run_delay_ns)
}

/// The longest times between two readings of a thread that does nothing else.
fn gaps(look_ns: Nanos) -> Vec<Nanos> {
    let begin = clock::now();
    let mut longest = [0; GAPS_KEPT];
    let mut last = begin;
    while last < begin + look_ns {
        let now = clock::now();
        let gap = now.saturating_sub(last);
        if gap > longest[GAPS_KEPT - 1] {
            longest[GAPS_KEPT - 1] = gap;
            longest.sort_unstable_by(|one, other| other.cmp(one));
        }
        last = now;
    }
    longest.to_vec()
}
