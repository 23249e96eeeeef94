//! Probabilities that tests of ranks need: sums of ranks by convolution, chi-square, points of the normal distribution and of
//! Student's t, and the correction for several tests at once.

use crate::uncertainty::special::{incomplete_beta, root};

/// The greatest probability of an error that a test allows.
pub const ALPHA: f64 = 0.05;

/// The probability that is left outside of an interval at each of its ends.
pub const TAIL: f64 = 0.025;

/// The probabilities of the sums of a random subset of `ranks`, each rank being in it with probability 1/2: element s is
/// the probability of the sum s. This is the distribution of Wilcoxon's signed-rank statistic; tied observations have equal
/// ranks.
pub fn subset_sums(ranks: &[usize]) -> Vec<f64> {
    let mut sums = vec![0.0; ranks.iter().sum::<usize>() + 1];
    sums[0] = 1.0;
    let mut top = 0;
    for &rank in ranks {
        top += rank;
        for sum in (0..=top).rev() {
            let with = if sum >= rank { sums[sum - rank] } else { 0.0 };
            sums[sum] = (sums[sum] + with) / 2.0;
        }
    }
    sums
}

/// The probabilities of the sums of `size` of the `ranks`, all choices being equally likely: element s is the probability of
/// the sum s. This is the distribution of Wilcoxon's rank-sum statistic, and so of Mann and Whitney's.
pub fn choice_sums(ranks: &[usize], size: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<usize>() + 1;
    // Row k has the probability that k of the ranks so far were chosen, by sum: rank i of n is chosen with probability
    // (size - k) / (n - i).
    let mut rows = vec![vec![0.0; width]; size + 1];
    rows[0][0] = 1.0;
    let mut top = 0;
    for (at, &rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - at) as f64;
        top += rank;
        for chosen in (0..=size.min(at + 1)).rev() {
            let stays = 1.0 - (size - chosen) as f64 / left;
            let joins = (size + 1 - chosen) as f64 / left;
            for sum in (0..=top).rev() {
                let with = if chosen > 0 && sum >= rank { rows[chosen - 1][sum - rank] * joins } else { 0.0 };
                rows[chosen][sum] = rows[chosen][sum] * stays.max(0.0) + with;
            }
        }
    }
    rows.swap_remove(size)
}

/// The greatest index up to which the probabilities add up to at most `tail`; `None` where the first alone is above it.
pub fn greatest_within(probabilities: &[f64], tail: f64) -> Option<usize> {
    let mut sum = 0.0;
    let within = probabilities.iter().take_while(|probability| {
        sum += **probability;
        // Sums of halves are exact, others are not.
        sum <= tail + 1e-12
    });
    within.count().checked_sub(1)
}

/// The probability of a value at least as far out as `at`, on its side, twice: the p of a two-sided test.
pub fn two_sided(probabilities: &[f64], at: usize) -> f64 {
    let below: f64 = probabilities[..=at].iter().sum();
    let above: f64 = probabilities[at..].iter().sum();
    (2.0 * below.min(above)).min(1.0)
}

/// The ranks of numbers, doubled so that the mean rank of ties is a whole number: twice 1 for the least.
pub fn doubled_ranks(numbers: &[f64]) -> Vec<usize> {
    let rank = |number: &f64| {
        let less = numbers.iter().filter(|other| *other < number).count();
        let equal = numbers.iter().filter(|other| *other == number).count();
        2 * less + equal + 1
    };
    numbers.iter().map(rank).collect()
}

/// The probability that a chi-square variable with a whole number of degrees of freedom, at least 1, is above `x`
/// (Abramowitz and Stegun, 26.4.4 and 26.4.5).
pub fn chi_square_above(freedom: u32, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let half = x / 2.0;
    let is_odd = freedom % 2 == 1;
    let begin = if is_odd { libm::erfc(libm::sqrt(half)) } else { 0.0 };
    let terms = freedom / 2;
    let sum = (0..terms).map(|i| {
        let power = f64::from(i) + if is_odd { 0.5 } else { 0.0 };
        libm::exp(power * libm::log(half) - half - libm::lgamma(power + 1.0))
    });
    (begin + sum.sum::<f64>()).clamp(0.0, 1.0)
}

/// The point below which a standard normal variable falls with probability `probability`, from 0.5 to 1 - 1e-9.
pub fn normal_point(probability: f64) -> f64 {
    let above = |z: f64| 0.5 * libm::erfc(z / core::f64::consts::SQRT_2);
    root(0.0, 6.0, |z| above(z) - (1.0 - probability))
}

/// The point below which Student's t with `freedom` degrees of freedom falls with probability `probability`, from 0.5 to
/// 0.999.
pub fn student_t_point(probability: f64, freedom: f64) -> f64 {
    let above = |t: f64| 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    root(0.0, 400.0, |t| above(t) - (1.0 - probability))
}

/// The p of each test after Holm's step-down correction ("A simple sequentially rejective multiple test procedure", 1979): to
/// call tests significant whose corrected p is at most 0.05 makes one false claim in at most 5 of 100 comparisons, however
/// many tests there are.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut greatest: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        let left = (p.len() - place) as f64;
        greatest = greatest.max(left * p[index]).min(1.0);
        adjusted[index] = greatest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

    use super::*;

    #[test]
    fn signed_rank_points_are_those_of_the_published_table() {
        // Wilcoxon and Wilcox, "Some Rapid Approximate Statistical Procedures" (1964): two-sided 5 %.
        let table =
            [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (30, 137)];
        for (count, point) in table {
            let ranks: Vec<usize> = (1..=count).collect();
            assert_eq!(greatest_within(&subset_sums(&ranks), 0.025), Some(point), "{count} pairs");
        }
        assert_eq!(greatest_within(&subset_sums(&[1, 2, 3, 4, 5]), 0.025), None);
    }

    #[test]
    fn rank_sum_points_are_those_of_the_published_table() {
        // Mann and Whitney's U, two-sided 5 %, as in Siegel and Castellan, "Nonparametric Statistics" (1988).
        for (ours, theirs, point) in
            [(4, 4, 0), (5, 5, 2), (6, 6, 5), (4, 8, 4), (8, 8, 13), (10, 10, 23), (20, 20, 127)]
        {
            let ranks: Vec<usize> = (1..=ours + theirs).collect();
            let sums = choice_sums(&ranks, theirs);
            let least = theirs * (theirs + 1) / 2;
            assert_eq!(greatest_within(&sums[least..], 0.025), Some(point), "{ours} and {theirs}");
        }
    }

    #[test]
    fn probabilities_add_up_to_one() {
        for sums in [
            subset_sums(&[2, 5, 5, 8, 11]),
            choice_sums(&[2, 5, 5, 8, 11, 13], 2),
            choice_sums(&[2, 4, 6], 3),
        ] {
            assert!((sums.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{sums:?}");
        }
        assert_eq!(doubled_ranks(&[3.0, 1.0, 3.0, 2.0]), [7, 2, 7, 4]);
    }

    #[test]
    fn chi_square_students_t_and_the_normal_are_those_of_another_library() {
        let normal = Normal::new(0.0, 1.0).expect("a distribution");
        for probability in [0.8, 0.963_493, 0.975, 0.999] {
            let (ours, theirs) = (normal_point(probability), normal.inverse_cdf(probability));
            assert!((ours - theirs).abs() < 1e-6, "{probability}: {ours} beside {theirs}");
        }
        for freedom in [1, 2, 3, 5, 8, 19, 30] {
            let theirs = ChiSquared::new(f64::from(freedom)).expect("a distribution");
            for x in [0.01, 0.5, 2.0, 7.5, 21.67, 60.0] {
                let (ours, theirs) = (chi_square_above(freedom, x), 1.0 - theirs.cdf(x));
                assert!((ours - theirs).abs() < 1e-9, "{freedom}, {x}: {ours} beside {theirs}");
            }
        }
        for freedom in [1.0, 5.0, 9.0, 19.0] {
            let theirs = StudentsT::new(0.0, 1.0, freedom).expect("a distribution");
            for probability in [0.8, 0.975] {
                let (ours, theirs) = (student_t_point(probability, freedom), theirs.inverse_cdf(probability));
                assert!((ours - theirs).abs() < 1e-6 * theirs, "{freedom}: {ours} beside {theirs}");
            }
        }
    }

    #[test]
    fn the_least_p_pays_for_all_tests_and_no_p_falls_below_a_lesser_one() {
        let adjusted = adjusted(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(super::adjusted(&[0.04]), [0.04]);
        assert_eq!(super::adjusted(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(super::adjusted(&[]).is_empty());
    }
}
