//! The rates of mutilate's `--search` and `--scan`, step by step as the original takes them. The caller measures.

/// What a run at some rate showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Requests per second that were asked for; 0 for closed loop.
    pub asked: u32,
    /// Requests per second that were completed.
    pub rate: f64,
    /// The order statistic that was looked for, in microseconds.
    pub nth_us: f64,
}

/// What mutilate's search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The rate of the first run.
    pub peak: f64,
    /// Whether any run met the goal.
    pub met: bool,
}

/// mutilate's search for the greatest rate at which the order statistic is at most `limit_us`: a run at `first` (0 is
/// closed loop), halving between 1 and its rate until 2 % are left or the rate is below a tenth, then steps of 2 % down
/// until the goal is met or a tenth of the rate that met it before is lost. `None` when `measure` ends it.
pub fn halving(limit_us: f64, first: u32, mut measure: impl FnMut(u32) -> Option<Tried>) -> Option<Found> {
    let start = measure(first)?;
    let peak = start.rate as u32;
    let mut found = Found { peak: start.rate, met: start.nth_us <= limit_us };
    if found.met {
        return Some(found);
    }
    let (mut low, mut high, mut current, mut nth_us) = (1, peak, peak, start.nth_us);
    let mut run = |rate: u32| {
        let tried = measure(rate)?;
        found.met |= tried.nth_us <= limit_us;
        Some(tried.nth_us)
    };
    while f64::from(high) > f64::from(low) * 1.02 && f64::from(current) > f64::from(peak) * 0.1 {
        // A rate of 0 would be none at all: the closed loop.
        let middle = (((u64::from(high) + u64::from(low)) / 2) as u32).max(1);
        if middle == current {
            break;
        }
        current = middle;
        nth_us = run(current)?;
        if nth_us > limit_us { high = current } else { low = current }
    }
    while nth_us > limit_us
        && f64::from(current) > f64::from(peak) * 0.1
        && f64::from(current) > f64::from(low) * 0.9
    {
        let lower = ((u64::from(current) * 98 / 100) as u32).max(1);
        if lower == current {
            break;
        }
        current = lower;
        nth_us = run(current)?;
    }
    Some(found)
}

/// The rates from `min` to `max` that lie `step` apart.
pub fn steps(min: u32, max: u32, step: u32) -> impl Iterator<Item = u32> {
    (min..=max).step_by(step.max(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rate that is tried where requests take as long as `times` says.
    fn tried(limit_us: f64, first: u32, peak: f64, times: impl Fn(u32) -> f64) -> (Option<Found>, Vec<u32>) {
        let mut rates = Vec::new();
        let found = halving(limit_us, first, |asked| {
            rates.push(asked);
            let rate = if asked == 0 { peak } else { f64::from(asked) };
            Some(Tried { asked, rate, nth_us: times(asked) })
        });
        (found, rates)
    }

    #[test]
    fn a_peak_that_meets_the_goal_ends_the_search_at_once() {
        assert_eq!(tried(100.0, 0, 5_000.5, |_| 100.0), (Some(Found { peak: 5_000.5, met: true }), vec![0]));
    }

    #[test]
    fn a_search_halves_as_the_original_does() {
        // The original's own steps at a peak of 28168 that nothing met.
        let (found, rates) = tried(1.0, 0, 28_168.8, |_| 10.0);
        assert_eq!(rates, [0, 14_084, 7_042, 3_521, 1_761]);
        assert_eq!(found, Some(Found { peak: 28_168.8, met: false }));
    }

    #[test]
    fn a_search_ends_at_a_rate_that_met_the_goal() {
        let (found, rates) = tried(60.0, 0, 56_886.0, |rate| match rate {
            0 => 99.7,
            rate if rate > 43_000 => 70.0,
            _ => 50.0,
        });
        assert_eq!(rates[..4], [0, 28_443, 42_664, 49_775]);
        assert!(found.is_some_and(|found| found.met));
        assert!(rates.last().is_some_and(|&rate| (42_000..=43_000).contains(&rate)), "{rates:?}");
    }

    #[test]
    fn a_search_that_is_interrupted_finds_nothing() {
        assert_eq!(halving(1.0, 0, |_| None), None);
    }

    #[test]
    fn a_scan_visits_every_step_and_nothing_beyond() {
        assert_eq!(steps(1_000, 3_500, 1_000).collect::<Vec<_>>(), [1_000, 2_000, 3_000]);
        assert_eq!(steps(5, 5, 1).collect::<Vec<_>>(), [5]);
    }
}
