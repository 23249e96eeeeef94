//! Recovery of a server from an overload: how much slower it was, and for how long.

use crate::compare::{mean, standard_deviation};
use crate::uncertainty::{Window, Windows};
use pummel_logic::time::{Nanos, seconds};
use serde::{Deserialize, Serialize};

/// Standard deviations from the mean from which on windows do not differ by chance alone.
const DEVIATIONS: f64 = 3.0;

/// Share of the mean below which differences are left out.
const SMALL: f64 = 0.1;

/// Least number of windows whose differences show the effect of chance.
const WINDOWS_MIN: usize = 10;

/// Aftermath of an overload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recovery {
    /// Share of the mean response before the overload by which requests were slower: 0.12 for 12 %. 0 where nothing was
    /// left.
    pub slower: f64,
    /// Duration in seconds, from the end of the overload.
    pub seconds: f64,
    /// Whether requests were still slower when the run ended.
    pub lasted: bool,
}

impl Recovery {
    /// Compares the responses in the windows of a run that was an overload for its first `overload_ns` and went on at a lower rate
    /// with those of a run at that rate before it. Requests count where they end: those of the overload that still waited are
    /// among them. `None` where one of the two is too short.
    pub fn of(before: &Windows, whole: &Windows, overload_ns: Nanos) -> Option<Recovery> {
        let length_ns = before.length_ns().max(whole.length_ns());
        let (before, whole) = (before.of_length(length_ns)?, whole.of_length(length_ns)?);
        let usual: Vec<f64> = before.iter().filter_map(mean_ns).collect();
        let after: Vec<&Window> = whole.iter().skip(overload_ns.div_ceil(length_ns) as usize).collect();
        if usual.len() < WINDOWS_MIN || after.is_empty() {
            return None;
        }
        let usual_ns = mean(&usual);
        let limit_ns = usual_ns + (DEVIATIONS * standard_deviation(&usual)?).max(SMALL * usual_ns);
        // A window without an answer is slow as well.
        let is_slow = |window: &&Window| mean_ns(window).is_none_or(|one| one > limit_ns);
        let slow: Vec<&Window> = after.iter().copied().take_while(is_slow).collect();
        let answered: Vec<f64> = slow.iter().filter_map(|window| mean_ns(window)).collect();
        let slower = if answered.is_empty() { 0.0 } else { mean(&answered) / usual_ns - 1.0 };
        Some(Recovery {
            slower,
            seconds: slow.len() as f64 * seconds(length_ns),
            lasted: slow.len() == after.len(),
        })
    }
}

/// The mean response of a window, in nanoseconds; `None` without an answer.
fn mean_ns(window: &Window) -> Option<f64> {
    let count: u64 = window.ops().map(|op| op.times[0].cells.count()).sum();
    let sum_ns: u64 = window.ops().map(|op| op.times[0].sum_ns).sum();
    (count > 0).then(|| sum_ns as f64 / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::recorder::Sample;
    use crate::uncertainty::BASE_NS;
    use pummel_logic::protocol::Verb;

    /// Windows that the overload of the tests takes.
    const OVERLOAD: usize = 5;

    /// Windows in which every response takes these times, in microseconds; 0 for a window without an answer.
    fn windows(times_us: impl IntoIterator<Item = u64>) -> Windows {
        let mut windows = Windows::new(BASE_NS);
        for (number, time_us) in (0..).zip(times_us) {
            let mut slice = Interval::new([[Verb::Get]]);
            slice.restart(number, number * BASE_NS);
            slice.end_ns = (number + 1) * BASE_NS;
            for _ in 0..if time_us > 0 { 5 } else { 0 } {
                slice.groups[0].record(&Sample::hit(0, time_us * 1_000));
            }
            windows.add(&mut slice);
        }
        windows
    }

    fn usual() -> Windows {
        windows((0..20).map(|i| 100 + i % 3))
    }

    /// The recovery from an overload after which responses took these times.
    fn recovery(after_us: impl IntoIterator<Item = u64>) -> Option<Recovery> {
        let whole = windows([9_000; OVERLOAD].into_iter().chain(after_us));
        Recovery::of(&usual(), &whole, OVERLOAD as u64 * BASE_NS)
    }

    #[test]
    fn a_server_that_is_as_before_has_nothing_left() {
        let recovery = recovery([101; 20]).expect("both are long enough");
        assert_eq!(recovery, Recovery { slower: 0.0, seconds: 0.0, lasted: false });
    }

    #[test]
    fn a_backlog_that_is_worked_off_is_told_with_its_time() {
        let after = [200, 0, 300, 101, 400].into_iter().chain([100; 15]);
        let recovery = recovery(after).expect("both are long enough");
        assert!((recovery.slower - 1.475).abs() < 0.02 && !recovery.lasted, "{recovery:?}");
        assert!((recovery.seconds - 0.3).abs() < 1e-9, "{recovery:?}");
    }

    #[test]
    fn a_server_that_stays_slow_is_told_as_that() {
        let recovery = recovery([150; 20]).expect("both are long enough");
        assert!(recovery.lasted && (recovery.seconds - 2.0).abs() < 1e-9, "{recovery:?}");
    }

    #[test]
    fn runs_whose_windows_differ_in_length_are_compared_by_the_longer_ones() {
        // 150 windows are too many, so that two of them become one.
        let whole = windows([9_000; 51].into_iter().chain([300; 3]).chain([100; 96]));
        assert_eq!(whole.length_ns(), 2 * BASE_NS);
        let usual = windows([100; 60]);
        let recovery = Recovery::of(&usual, &whole, 51 * BASE_NS).expect("both are long enough");
        assert!((recovery.seconds - 0.2).abs() < 1e-9 && !recovery.lasted, "{recovery:?}");
        assert!(
            (recovery.slower - 2.0).abs() < 0.1,
            "the window that has the end of the overload is left out"
        );
    }

    #[test]
    fn runs_that_are_too_short_say_nothing() {
        assert_eq!(Recovery::of(&windows([100; 5]), &usual(), BASE_NS), None);
        assert_eq!(recovery([]), None);
    }
}
