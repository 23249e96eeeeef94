//! The mean, the variance and the median of numbers, and the interval of the median that order statistics give it.

use super::distributions::{TAIL, greatest_within};

/// Runs that an interval of their median takes: the least and the greatest of fewer contain it in less than 95 of 100 cases.
pub const RUNS_FOR_INTERVAL: usize = 6;

/// The mean of numbers, of which there is one at least.
pub fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The variance of a sample; `None` for fewer than two numbers.
pub fn variance(numbers: &[f64]) -> Option<f64> {
    let mean = mean(numbers);
    let squares: f64 = numbers.iter().map(|number| (number - mean) * (number - mean)).sum();
    (numbers.len() > 1).then(|| squares / (numbers.len() - 1) as f64)
}

/// The standard deviation of a sample; `None` for fewer than two numbers.
pub fn standard_deviation(numbers: &[f64]) -> Option<f64> {
    variance(numbers).map(libm::sqrt)
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The 95 % interval of the median from order statistics: of N sorted values those with the numbers l and N + 1 - l, l being
/// the greatest with P(Bin(N, 1/2) < l) at most 0.025. No distribution is assumed. `None` for fewer than
/// [`RUNS_FOR_INTERVAL`] values.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    if count < RUNS_FOR_INTERVAL {
        return None;
    }
    let rank = greatest_within(&fair_coins(count), TAIL)? + 1;
    let sorted = sorted(values);
    Some((sorted[rank - 1], sorted[count - rank]))
}

/// Numbers in ascending order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The probabilities of 0, 1, ... heads in `count` throws of a fair coin.
pub(super) fn fair_coins(count: usize) -> Vec<f64> {
    let mut heads = vec![0.0; count + 1];
    heads[0] = 1.0;
    for throws in 1..=count {
        for head in (0..=throws).rev() {
            let with = if head > 0 { heads[head - 1] } else { 0.0 };
            heads[head] = f64::midpoint(heads[head], with);
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_is_that_of_the_published_ranks() {
        // Conover, "Practical Nonparametric Statistics", and the sign test: ranks of 95 % intervals.
        for (count, rank) in [(6, 1), (7, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (30, 10)] {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let ends = (f64::from(rank), f64::from(count + 1 - rank));
            assert_eq!(median_interval(&values), Some(ends), "{count}");
        }
    }

    #[test]
    fn few_runs_have_a_median_and_no_interval() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
    }
}
