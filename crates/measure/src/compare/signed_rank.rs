//! Wilcoxon's signed-rank test of paired differences, with the estimate and the interval of Hodges and Lehmann.

use super::distributions::{
    TAIL, doubled_ranks, greatest_within, normal_point, student_t_point, subset_sums, two_sided,
};
use super::median::{RUNS_FOR_INTERVAL, fair_coins, median, sorted, standard_deviation};

/// The probability with which a difference would have been seen.
const POWER: f64 = 0.8;

/// Efficiency of the test beside Student's t where differences are normal: 3 / pi.
const EFFICIENCY: f64 = 0.955;

/// Change, in standard deviations of a pair, that 4 of 5 experiments find, where few pairs make [`seen_factor`]'s formula err by up to
/// 7 %: number of pairs, greatest sum of ranks that is significant, change. By simulation of 100,000 experiments each with normal
/// differences (60,000 from ten pairs on): the test finds a change where the Walsh average of that place, counted from 0, is
/// above 0.
#[rustfmt::skip]
const FACTORS: [(usize, usize, f64); 12] = [
    (7, 2, 1.332), (8, 1, 1.548), (8, 2, 1.409), (8, 3, 1.250), (9, 1, 1.614), (9, 2, 1.478), (9, 3, 1.325),
    (10, 2, 1.537), (10, 3, 1.390), (10, 4, 1.306), (11, 3, 1.440), (11, 4, 1.361),
];

/// Statistics of paired differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// The probability of differences at least as lopsided where there is none, by the exact distribution of the ranks.
    /// Differences of 0 are left out, and ties have their mean rank.
    pub p: f64,
    /// The Hodges-Lehmann estimate of the difference: the median of the means of all pairs of differences (Walsh averages),
    /// each with itself too.
    pub estimate: f64,
    /// The 95 % interval of the difference; `None` for fewer than six pairs.
    pub interval: Option<(f64, f64)>,
    /// The least difference that a test of as many pairs finds in 4 of 5 cases; `None` for fewer than six pairs, which find none.
    pub seen: Option<f64>,
}

impl SignedRank {
    /// Tests differences, at most [`RUNS_MAX`](super::RUNS_MAX) of them; `None` where there is none.
    pub fn of(differences: &[f64]) -> Option<SignedRank> {
        let walsh = walsh_averages(differences);
        let ranks: Vec<usize> = (1..=differences.len()).collect();
        let outside = greatest_within(&subset_sums(&ranks), TAIL);
        let interval = outside.filter(|_| differences.len() >= RUNS_FOR_INTERVAL);
        Some(SignedRank {
            p: p_of(differences),
            estimate: median(&walsh)?,
            interval: interval.map(|outside| (walsh[outside], walsh[walsh.len() - 1 - outside])),
            seen: seen(differences),
        })
    }
}

/// The means of all pairs of numbers, each with itself too, in ascending order.
fn walsh_averages(numbers: &[f64]) -> Vec<f64> {
    let pairs = numbers.iter().enumerate();
    let averages =
        pairs.flat_map(|(at, one)| numbers[at..].iter().map(move |other| f64::midpoint(*one, *other)));
    sorted(&averages.collect::<Vec<f64>>())
}

fn p_of(differences: &[f64]) -> f64 {
    let moved: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let sizes: Vec<f64> = moved.iter().map(|difference| libm::fabs(*difference)).collect();
    let ranks = doubled_ranks(&sizes);
    let positive = ranks.iter().zip(&moved).filter(|(_, difference)| **difference > 0.0);
    let statistic: usize = positive.map(|(rank, _)| rank).sum();
    two_sided(&subset_sums(&ranks), statistic)
}

/// The two-sided probability that at least `most` of `all` differences have one sign, where both signs are equally likely.
pub fn sign_p(most: usize, all: usize) -> f64 {
    (2.0 * fair_coins(all).iter().skip(most).sum::<f64>()).min(1.0)
}

fn seen(differences: &[f64]) -> Option<f64> {
    seen_change(standard_deviation(differences)?, differences.len())
}

/// The least change that so many pairs find in 4 of 5 cases, where the differences of pairs have this standard deviation; `None`
/// for fewer than six pairs, which find none.
pub fn seen_change(deviation: f64, pairs: usize) -> Option<f64> {
    Some(seen_factor(pairs, 1)? * deviation)
}

/// Whether so many pairs can show a difference in one of `tests` figures whose p are corrected by Holm: whether the least p that there
/// is, 2^(1 - pairs), is small enough for all of them.
pub(super) fn can_differ(pairs: usize, tests: usize) -> bool {
    significant_sum(pairs, tests).is_some()
}

/// The least change in standard deviations of a pair that so many pairs find in 4 of 5 cases, where it is one of `tests` figures and
/// has the least p of them; `None` where they can find none.
///
/// Where only differences of one sign are significant, the probability is Phi(z)^n. Where more are, the change is that of Student's t
/// at the level that the exact test has, by the efficiency of the test (Lehmann, "Nonparametrics", 1975, chapter 4).
pub(super) fn seen_factor(pairs: usize, tests: usize) -> Option<f64> {
    let (sum, tail) = significant_sum(pairs, tests)?;
    let count = pairs as f64;
    if sum == 0 {
        return Some(normal_point(libm::pow(POWER, 1.0 / count)));
    }
    if let Some((_, _, factor)) = FACTORS.iter().find(|(of, at, _)| (*of, *at) == (pairs, sum)) {
        return Some(*factor);
    }
    let points = student_t_point(1.0 - tail, count - 1.0) + student_t_point(POWER, count - 1.0);
    Some(points / libm::sqrt(EFFICIENCY * count))
}

/// The greatest sum of the ranks of one sign that is significant for one of `tests` figures, and the probability of no greater one;
/// `None` where none is.
fn significant_sum(pairs: usize, tests: usize) -> Option<(usize, f64)> {
    let ranks: Vec<usize> = (1..=pairs).collect();
    let sums = subset_sums(&ranks);
    let sum = greatest_within(&sums, TAIL / tests.max(1) as f64)?;
    Some((sum, sums[..=sum].iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ALPHA;
    use pummel_logic::rng::{Stream, mix, unit};

    /// Hollander and Wolfe, "Nonparametric Statistical Methods", example 3.1: depression before and after a therapy. The book
    /// has T+ = 5 of 9 pairs, p = 0.039, the estimate -0.46 and the interval (-0.786, -0.010) at 96.1 %.
    const THERAPY: [f64; 9] = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];

    #[test]
    fn a_published_example_comes_out_as_published() {
        let result = SignedRank::of(&THERAPY).expect("there are pairs");
        assert!((result.p - 0.0391).abs() < 1e-4, "{}", result.p);
        assert!((result.estimate + 0.46).abs() < 1e-9, "{}", result.estimate);
        let (low, high) = result.interval.expect("nine pairs have one");
        assert!((low + 0.786).abs() < 1e-9 && (high + 0.010).abs() < 1e-9, "{low} .. {high}");
    }

    #[test]
    fn equal_sides_differ_by_nothing_and_few_pairs_prove_nothing() {
        let same = SignedRank::of(&[0.0; 10]).expect("there are pairs");
        assert_eq!(
            (same.p, same.estimate, same.interval, same.seen),
            (1.0, 0.0, Some((0.0, 0.0)), Some(0.0))
        );
        let five = SignedRank::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("there are pairs");
        assert_eq!((five.p, five.interval), (0.0625, None));
        let six = SignedRank::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("there are pairs");
        assert_eq!((six.p, six.interval), (0.03125, Some((1.0, 6.0))));
        assert_eq!(SignedRank::of(&[]), None);
        assert_eq!(SignedRank::of(&[1.0]).map(|one| one.seen), Some(None));
    }

    #[test]
    fn as_many_signs_are_as_likely_as_published() {
        // Conover, "Practical Nonparametric Statistics", table of the binomial distribution: P(X <= 2 of 12) = 0.0193.
        assert!((sign_p(10, 12) - 2.0 * 0.0193).abs() < 2e-4, "{}", sign_p(10, 12));
        assert_eq!((sign_p(6, 6), sign_p(4, 4), sign_p(3, 6), sign_p(0, 0)), (0.03125, 0.125, 1.0, 1.0));
    }

    /// Normal differences around `change` with a standard deviation of 1, by Box and Muller.
    fn differences(change: f64, pairs: usize, experiment: u64) -> Vec<f64> {
        let draws = Stream::from_seed(mix(&[experiment, pairs as u64]));
        let normal = |pair: u64| {
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(draws.draw(2 * pair))));
            radius * libm::cos(std::f64::consts::TAU * unit(draws.draw(2 * pair + 1)))
        };
        (0..pairs as u64).map(|pair| change + normal(pair)).collect()
    }

    /// The share of experiments with this change whose p is small enough for one of `tests` figures.
    fn power(change: f64, pairs: usize, tests: usize) -> f64 {
        const EXPERIMENTS: u64 = 4_000;
        let is_found =
            |seed: &u64| p_of(&differences(change, pairs, *seed)) * tests as f64 <= ALPHA * (1.0 + 1e-12);
        (0..EXPERIMENTS).filter(is_found).count() as f64 / EXPERIMENTS as f64
    }

    #[test]
    fn a_change_that_is_called_seen_is_found_in_4_of_5_experiments() {
        for pairs in 6..=12 {
            let seen = seen_change(1.0, pairs).expect("as many can find one");
            let found = power(seen, pairs, 1);
            assert!((0.77..0.85).contains(&found), "{pairs} pairs find {seen} in {found}");
        }
        for (pairs, tests) in [(7, 2), (8, 2), (8, 6), (9, 3), (10, 2), (11, 7), (12, 3), (20, 5)] {
            let seen = seen_factor(pairs, tests).expect("as many can find one");
            let found = power(seen, pairs, tests);
            assert!((0.76..0.85).contains(&found), "{pairs} pairs find {seen} in {found}, of {tests}");
        }
    }

    #[test]
    fn the_more_figures_are_judged_the_more_pairs_it_takes_to_show_anything() {
        let fewest = |tests| (1..30).find(|pairs| can_differ(*pairs, tests)).expect("there is one");
        assert_eq!([1, 2, 3, 4, 6, 7].map(fewest), [6, 7, 7, 8, 8, 9]);
        for tests in 1..8 {
            let clear: Vec<f64> = (1..=fewest(tests)).map(|pair| 100.0 + pair as f64).collect();
            assert!(p_of(&clear) * tests as f64 <= ALPHA, "{tests} figures");
            assert!(p_of(&clear[1..]) * tests as f64 > ALPHA, "{tests} figures");
        }
        assert_eq!((seen_change(1.0, 5), seen_factor(6, 2), seen_change(1.0, 0)), (None, None, None));
    }

    #[test]
    fn ties_share_their_rank() {
        // Ranks 1.5, 1.5, 3, 4: of the 16 choices of signs, two have a sum of at most 1.5 beside the empty one.
        let result = SignedRank::of(&[-1.0, 1.0, 2.0, 3.0]).expect("there are pairs");
        assert!((result.p - 2.0 * 3.0 / 16.0).abs() < 1e-12, "{}", result.p);
    }
}
