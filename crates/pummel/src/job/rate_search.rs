//! The rates of mutilate's `--search` and `--scan`, step by step as the original takes them. The caller measures.

/// mutilate's search for the greatest rate at which an order statistic is at most a limit: a run at a first rate (0 is closed loop),
/// halving between 1 and its rate until 2 % are left or the rate is below a tenth, then steps of 2 % down until the goal is met or a
/// tenth of the rate that met it before is lost.
#[derive(Clone, Debug, Default)]
pub struct Halving {
    limit_us: f64,
    first: u32,
    /// The completed rate of the first run; `None` before it.
    peak: Option<f64>,
    low: u32,
    high: u32,
    /// The rate of the last run.
    current: u32,
    /// The order statistic of the last run.
    nth_us: f64,
    steps_down: bool,
    met: bool,
}

impl Halving {
    /// A search that begins at the rate `first`.
    pub fn new(limit_us: f64, first: u32) -> Halving {
        Halving { limit_us, first, low: 1, ..Halving::default() }
    }

    /// The rate of the next run, in requests per second; `None` where the search is over.
    pub fn next_rate(&mut self) -> Option<u32> {
        let Some(peak) = self.peak else { return Some(self.first) };
        let [low, high, current] = [self.low, self.high, self.current].map(f64::from);
        let is_high = current > f64::from(peak as u32) * 0.1;
        if !self.steps_down && high > low * 1.02 && is_high {
            // A rate of 0 would be none at all: the closed loop.
            let middle = (((u64::from(self.high) + u64::from(self.low)) / 2) as u32).max(1);
            if middle != self.current {
                self.current = middle;
                return Some(middle);
            }
        }
        self.steps_down = true;
        let lower = ((u64::from(self.current) * 98 / 100) as u32).max(1);
        let is_sought = self.nth_us > self.limit_us && is_high && current > low * 0.9;
        if !is_sought || lower == self.current {
            return None;
        }
        self.current = lower;
        Some(lower)
    }

    /// Takes a run: the rate that it completed, and its order statistic in microseconds.
    pub fn handle(&mut self, rate: f64, nth_us: f64) {
        let is_met = nth_us <= self.limit_us;
        self.nth_us = nth_us;
        self.met |= is_met;
        if self.peak.is_none() {
            (self.peak, self.high, self.current) = (Some(rate), rate as u32, rate as u32);
            // A peak that meets the goal ends the search at once.
            self.steps_down = is_met;
        } else if !self.steps_down {
            if is_met { self.low = self.current } else { self.high = self.current }
        }
    }

    /// The rate of the first run; `None` before it.
    pub fn peak(&self) -> Option<f64> {
        self.peak
    }

    /// Whether any run met the goal.
    pub fn met(&self) -> bool {
        self.met
    }
}

/// The rates from `min` to `max` that lie `step` apart.
pub fn steps(min: u32, max: u32, step: u32) -> impl Iterator<Item = u32> {
    (min..=max).step_by(step.max(1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search where requests take as long as `times` says, and every rate that is tried.
    fn tried(limit_us: f64, first: u32, peak: f64, times: impl Fn(u32) -> f64) -> (Halving, Vec<u32>) {
        let (mut search, mut rates) = (Halving::new(limit_us, first), Vec::new());
        while let Some(asked) = search.next_rate() {
            rates.push(asked);
            search.handle(if asked == 0 { peak } else { f64::from(asked) }, times(asked));
        }
        (search, rates)
    }

    #[test]
    fn a_peak_that_meets_the_goal_ends_the_search_at_once() {
        let (search, rates) = tried(100.0, 0, 5_000.5, |_| 100.0);
        assert_eq!((search.peak(), search.met(), rates), (Some(5_000.5), true, vec![0]));
    }

    #[test]
    fn a_search_halves_as_the_original_does() {
        // The original's own steps at a peak of 28168 that nothing met.
        let (search, rates) = tried(1.0, 0, 28_168.8, |_| 10.0);
        assert_eq!(rates, [0, 14_084, 7_042, 3_521, 1_761]);
        assert_eq!((search.peak(), search.met()), (Some(28_168.8), false));
    }

    #[test]
    fn a_search_ends_at_a_rate_that_met_the_goal() {
        let (search, rates) = tried(60.0, 0, 56_886.0, |rate| match rate {
            0 => 99.7,
            rate if rate > 43_000 => 70.0,
            _ => 50.0,
        });
        assert_eq!(rates[..4], [0, 28_443, 42_664, 49_775]);
        assert!(search.met());
        assert!(rates.last().is_some_and(|&rate| (42_000..=43_000).contains(&rate)), "{rates:?}");
    }

    #[test]
    fn a_scan_visits_every_step_and_nothing_beyond() {
        assert_eq!(steps(1_000, 3_500, 1_000).collect::<Vec<_>>(), [1_000, 2_000, 3_000]);
        assert_eq!(steps(5, 5, 1).collect::<Vec<_>>(), [5]);
    }
}
