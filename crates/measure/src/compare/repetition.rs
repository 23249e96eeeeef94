//! Statistics of several runs of one configuration: how far they differ, whether they fall in two groups, how to divide
//! the time.

use super::distributions::chi_square_above;
use super::median::{median, sorted, standard_deviation};
use serde::{Deserialize, Serialize};

/// The level of the test whether runs differ by more than chance within them explains.
const LEVEL: f64 = 0.01;

/// Widths of a 95 % interval in standard deviations.
const INTERVAL_WIDTH: f64 = 3.92;

/// A gap between two groups of runs is wider than so many standard deviations within a run.
const GAP_WIDTH: f64 = 4.0;

/// A figure of one run, above 0, and the 95 % interval of it within the run where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigure {
    /// Value of the figure.
    pub value: f64,
    /// The ends of its interval.
    pub within: Option<(f64, f64)>,
}

/// Spread of a figure between the runs of one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSpread {
    /// Standard deviation of the logarithms of the figures: about the relative standard deviation between runs.
    pub between: f64,
    /// Standard deviation of the logarithm that chance within a run makes, from the intervals of the runs: the median of
    /// (ln U - ln L) / 3.92; `None` where no run has an interval.
    pub within: Option<f64>,
    /// Whether the runs differ by more than chance within them explains: (N - 1) s_B^2 / s_W^2 is above the 99 % point of
    /// chi-square with N - 1 degrees of freedom. `None` where chance within a run is not known.
    #[serde(rename = "beyond_chance")]
    pub is_beyond_chance: Option<bool>,
    /// The two groups that the runs fall in, where they do.
    pub groups: Option<Groups>,
}

/// Two groups of runs, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Groups {
    /// Numbers of runs.
    pub runs: [usize; 2],
    /// Medians of the figure in the groups.
    pub medians: [f64; 2],
}

impl RunSpread {
    /// The spread of two runs or more; `None` for fewer, and where a figure is not above 0.
    pub fn of(runs: &[RunFigure]) -> Option<RunSpread> {
        if runs.iter().any(|run| run.value.is_nan() || run.value <= 0.0) {
            return None;
        }
        let logs: Vec<f64> = runs.iter().map(|run| libm::log(run.value)).collect();
        let between = standard_deviation(&logs)?;
        let widths: Vec<f64> = runs.iter().filter_map(RunFigure::deviation).collect();
        let within = median(&widths).filter(|within| *within > 0.0);
        let is_beyond_chance = within.map(|within| {
            let freedom = (runs.len() - 1) as u32;
            let statistic = f64::from(freedom) * between * between / (within * within);
            chi_square_above(freedom, statistic) < LEVEL
        });
        let groups = within.and_then(|within| Groups::of(&logs, within));
        Some(RunSpread { between, within, is_beyond_chance, groups })
    }

    /// The length of a run in seconds that makes the interval of the median least for the whole time of the experiment, where a run
    /// costs `fixed_s` seconds beside the `measured_s` that it measures: sqrt(c w / T^2) with w = s_W^2 measured_s, and T^2 = s_B^2 - s_W^2,
    /// since the variance of the figures of runs has that of chance within a run in it (Kalibera and Jones, "Rigorous Benchmarking in
    /// Reasonable Time", 2013). `None` where chance within a run is not known, or the runs do not differ by more than that explains.
    pub fn advised_s(&self, fixed_s: f64, measured_s: f64) -> Option<f64> {
        let within = self.within.filter(|_| self.is_beyond_chance == Some(true))?;
        let own = self.between * self.between - within * within;
        if own <= 0.0 || fixed_s <= 0.0 {
            return None;
        }
        let per_second = within * within * measured_s;
        Some(libm::sqrt(fixed_s * per_second / own))
    }
}

impl RunFigure {
    /// The relative standard deviation of chance within the run.
    fn deviation(&self) -> Option<f64> {
        let (low, high) = self.within.filter(|(low, high)| *low > 0.0 && high > low)?;
        Some((libm::log(high) - libm::log(low)) / INTERVAL_WIDTH)
    }
}

impl Groups {
    /// The groups of logarithms between which the widest gap is above half of their range and above four times `within`.
    fn of(logs: &[f64], within: f64) -> Option<Groups> {
        let logs = sorted(logs);
        let gaps = logs.windows(2).enumerate().map(|(at, pair)| (at + 1, pair[1] - pair[0]));
        let (cut, gap) = gaps.max_by(|one, other| one.1.total_cmp(&other.1))?;
        let range = logs[logs.len() - 1] - logs[0];
        // Of two runs the gap is all of the range, and of three nearly always above half of it: no group of one names a state.
        let are_groups = cut.min(logs.len() - cut) >= 2;
        if !are_groups || gap <= range / 2.0 || gap <= GAP_WIDTH * within {
            return None;
        }
        let middle = |logs: &[f64]| median(logs).map(libm::exp);
        Some(Groups {
            runs: [cut, logs.len() - cut],
            medians: [middle(&logs[..cut])?, middle(&logs[cut..])?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::{Stream, unit};

    fn runs(values: &[f64], half_width: f64) -> Vec<RunFigure> {
        let run = |value: &f64| RunFigure {
            value: *value,
            within: Some((value * (1.0 - half_width), value * (1.0 + half_width))),
        };
        values.iter().map(run).collect()
    }

    #[test]
    fn runs_that_differ_as_much_as_chance_within_them_are_not_accused() {
        let values = [100.0, 101.0, 99.5, 100.4, 98.9, 100.2];
        let spread = RunSpread::of(&runs(&values, 0.02)).expect("six runs");
        assert_eq!((spread.is_beyond_chance, spread.groups), (Some(false), None));
        let wide = RunSpread::of(&runs(&values, 0.001)).expect("six runs");
        assert_eq!(wide.is_beyond_chance, Some(true));
    }

    #[test]
    fn two_states_of_a_server_are_named() {
        let values = [100.0, 116.0, 101.0, 117.0, 99.0, 115.0, 100.5];
        let spread = RunSpread::of(&runs(&values, 0.02)).expect("seven runs");
        let groups = spread.groups.expect("two groups");
        assert_eq!(groups.runs, [4, 3]);
        assert!((groups.medians[0] - 100.25).abs() < 0.01 && (groups.medians[1] - 116.0).abs() < 0.01);
        // One run that is far off is no group.
        let one = RunSpread::of(&runs(&[100.0, 101.0, 99.0, 100.0, 130.0], 0.02)).expect("five runs");
        assert_eq!((one.groups, one.is_beyond_chance), (None, Some(true)));
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let bare: Vec<RunFigure> = [1.0, 2.0].map(|value| RunFigure { value, within: None }).to_vec();
        let spread = RunSpread::of(&bare).expect("two runs");
        assert_eq!((spread.within, spread.is_beyond_chance, spread.groups), (None, None, None));
        assert_eq!(spread.advised_s(1.0, 10.0), None);
        assert_eq!(RunSpread::of(&bare[..1]), None);
        assert_eq!(RunSpread::of(&runs(&[1.0, 0.0], 0.1)), None);
    }

    #[test]
    fn dear_starts_and_noisy_runs_ask_for_long_runs() {
        let spread =
            RunSpread { between: 0.02, within: Some(0.01), is_beyond_chance: Some(true), groups: None };
        // c = 4 s, w = 0.0001 * 10 s, T^2 = 0.0004 - 0.0001: sqrt(0.004 / 0.0003).
        let run_s = spread.advised_s(4.0, 10.0).expect("everything is known");
        assert!((run_s - 3.651).abs() < 1e-3, "{run_s}");
        // w = 0.000225 * 10 s, T^2 = 0.0004 - 0.000225: sqrt(0.009 / 0.000175).
        let noisier =
            RunSpread { within: Some(0.015), ..spread }.advised_s(4.0, 10.0).expect("everything is known");
        assert!((noisier - 7.171).abs() < 1e-3, "{noisier}");
    }

    #[test]
    fn runs_that_differ_by_chance_within_them_have_no_best_length() {
        let spread =
            RunSpread { between: 0.02, within: Some(0.02), is_beyond_chance: Some(true), groups: None };
        assert_eq!(spread.advised_s(4.0, 10.0), None);
        for is_beyond_chance in [None, Some(false)] {
            let unknown = RunSpread { within: Some(0.01), is_beyond_chance, ..spread };
            assert_eq!(unknown.advised_s(4.0, 10.0), None);
        }
    }

    #[test]
    fn the_advised_length_is_that_of_the_true_deviations() {
        // Runs of 10 s whose figures vary by 2 % from run to run and by 3 % within each, and 4 s around each of them:
        // sqrt(4 * 0.0009 * 10 / 0.0004) s are best.
        let mut near = 0;
        for seed in 0..20 {
            let draws = Stream::from_seed(seed);
            let normal = |at: u64| (0..12).map(|part| unit(draws.draw(12 * at + part))).sum::<f64>() - 6.0;
            let run = |at: u64| {
                let value = 100.0 * libm::exp(0.02 * normal(2 * at) + 0.03 * normal(2 * at + 1));
                let half = libm::exp(1.96 * 0.03);
                RunFigure { value, within: Some((value / half, value * half)) }
            };
            let runs: Vec<RunFigure> = (0..1_000).map(run).collect();
            let run_s = RunSpread::of(&runs).and_then(|spread| spread.advised_s(4.0, 10.0));
            near += u32::from(run_s.is_some_and(|run_s| (run_s / 9.487 - 1.0).abs() < 0.25));
        }
        assert!(near >= 17, "{near} of 20");
    }
}
