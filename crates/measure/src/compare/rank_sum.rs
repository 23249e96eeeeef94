//! Mann and Whitney's test of two samples that are not paired, with the shift of Hodges and Lehmann.

use super::distributions::{ALPHA, TAIL, choice_sums, doubled_ranks, greatest_within, two_sided};
use super::median::{RUNS_FOR_INTERVAL, median, sorted};

/// Shift from a first sample to a second one that is not paired with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// The probability of ranks at least as lopsided where there is no shift, by the exact distribution of the ranks; ties
    /// have their mean rank.
    pub p: f64,
    /// The Hodges-Lehmann estimate of the shift: the median of all differences.
    pub estimate: f64,
    /// The 95 % interval of the shift; `None` for fewer than six numbers a side.
    pub interval: Option<(f64, f64)>,
}

impl RankSum {
    /// Tests whether `second` is shifted from `first`; `None` where one of them is empty. The time grows with the fourth
    /// power of the number of runs, so that callers bound it by [`RUNS_MAX`](super::RUNS_MAX).
    pub fn of(first: &[f64], second: &[f64]) -> Option<RankSum> {
        let differences = first.iter().flat_map(|one| second.iter().map(move |other| other - one));
        let differences = sorted(&differences.collect::<Vec<f64>>());
        let estimate = median(&differences)?;
        let together: Vec<f64> = first.iter().chain(second).copied().collect();
        let ranks = doubled_ranks(&together);
        let statistic = ranks[first.len()..].iter().sum();
        let p = two_sided(&choice_sums(&ranks, second.len()), statistic);
        Some(RankSum { p, estimate, interval: interval(&differences, first.len(), second.len()) })
    }
}

/// Whether so many runs of each side can show a difference in one of `tests` figures whose p are corrected by Holm: whether the least p
/// that there is, twice that of one of all choices of `first` runs, is small enough for all of them.
pub(super) fn can_differ(first: usize, second: usize, tests: usize) -> bool {
    let (fewer, all) = (first.min(second), first.saturating_add(second));
    // The choices are counted one by one only while they are too few.
    let needed = 2.0 * tests.max(1) as f64 / ALPHA * (1.0 - 1e-12);
    let mut choices = 1.0;
    for chosen in 0..fewer {
        choices *= (all - chosen) as f64 / (chosen + 1) as f64;
        if choices >= needed {
            return true;
        }
    }
    choices >= needed
}

/// The interval between the differences with the numbers w + 1 and mn - w, w being the greatest with P(U <= w) at most 0.025.
fn interval(differences: &[f64], first: usize, second: usize) -> Option<(f64, f64)> {
    if first.min(second) < RUNS_FOR_INTERVAL {
        return None;
    }
    let ranks: Vec<usize> = (1..=first + second).collect();
    let least = second * (second + 1) / 2;
    let outside = greatest_within(&choice_sums(&ranks, second)[least..], TAIL)?;
    Some((differences[outside], differences[differences.len() - 1 - outside]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_example_comes_out_as_published() {
        // Hollander and Wolfe, "Nonparametric Statistical Methods", example 4.1: permeability at term and at 12 to 26 weeks.
        // The sum of the ranks of the second sample is 30, its two-sided p 0.2544; the shift is -0.305.
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let result = RankSum::of(&term, &early).expect("two samples");
        assert!((result.p - 0.2544).abs() < 1e-4, "{}", result.p);
        assert!((result.estimate + 0.305).abs() < 1e-9, "{}", result.estimate);
        assert_eq!(result.interval, None, "five runs have none");
    }

    #[test]
    fn four_runs_a_side_are_the_fewest_that_can_differ() {
        let shifted = |count: i32| {
            let low: Vec<f64> = (0..count).map(f64::from).collect();
            let high: Vec<f64> = low.iter().map(|value| value + 100.0).collect();
            RankSum::of(&low, &high).expect("two samples")
        };
        assert!((shifted(3).p - 0.1).abs() < 1e-12);
        assert!((shifted(4).p - 2.0 / 70.0).abs() < 1e-12);
        assert_eq!(shifted(5).interval, None);
        assert_eq!(shifted(6).interval, Some((97.0, 103.0)));
        assert_eq!(RankSum::of(&[], &[1.0]), None);
    }

    #[test]
    fn the_more_figures_are_judged_the_more_runs_it_takes_to_show_anything() {
        // Twice one of 924 choices of 6 of 12 runs, and twice one of 3,432 choices of 7 of 14.
        let fewest = |tests| (1..30).find(|runs| can_differ(*runs, *runs, tests)).expect("there is one");
        assert_eq!([1, 2, 7, 23, 24, 85, 86].map(fewest), [4, 5, 6, 6, 7, 7, 8]);
        // A side with more runs makes up for one with fewer.
        assert!(
            can_differ(6, 7, 24) && !can_differ(6, 6, 24) && can_differ(2, 39, 1) && !can_differ(1, 38, 1)
        );
        assert!(!can_differ(0, 50, 1) && can_differ(50, 50, usize::MAX));
    }

    #[test]
    fn equal_samples_are_not_shifted() {
        let result = RankSum::of(&[2.0; 7], &[2.0; 7]).expect("two samples");
        assert_eq!((result.p, result.estimate, result.interval), (1.0, 0.0, Some((0.0, 0.0))));
    }
}
