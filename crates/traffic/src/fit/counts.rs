//! Counts of whole numbers in bounded memory, and distributions as weighted ranges that describe them.

use std::collections::BTreeMap;

use super::knots::Curve;
use pummel_logic::dist::{Dist, Range, Weighted};

/// Most different numbers that are counted separately. Beyond this number, all lose their last binary digits.
const NUMBERS_MAX: usize = 1 << 15;

/// Most ranges of the distribution of the numbers.
const RANGES_MAX: usize = 64;

/// Least share of a number that has a range of its own in the distribution.
const POINT_SHARE: f64 = 0.01;

/// Distance from the counts below which ranges are not divided further.
const TOLERANCE: f64 = 5e-4;

/// Greatest ratio between the ends of a range.
const RANGE_RATIO: f64 = 4.0;

/// Counts of whole numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueCounts {
    counts: BTreeMap<u64, f64>,
    total: f64,
    /// Number of significant binary digits that are kept; `None` if all are.
    digits: Option<u32>,
}

impl ValueCounts {
    /// Adds a number `weight` times.
    pub fn add(&mut self, number: u64, weight: f64) {
        if weight <= 0.0 {
            return;
        }
        *self.counts.entry(cut(number, self.digits)).or_default() += weight;
        self.total += weight;
        if self.counts.len() > NUMBERS_MAX {
            self.cut_further();
        }
    }

    /// The counts with every number outside `least` to `most` replaced by the nearer end.
    pub fn clamped(&self, least: u64, most: u64) -> ValueCounts {
        let mut clamped = ValueCounts { digits: self.digits, ..ValueCounts::default() };
        for (number, weight) in &self.counts {
            *clamped.counts.entry((*number).clamp(least, most)).or_default() += weight;
        }
        clamped.total = self.total;
        clamped
    }

    /// The share of the numbers, 0 to 1, below `least` or above `most`.
    pub fn outside(&self, least: u64, most: u64) -> f64 {
        let outside = self.counts.iter().filter(|(number, _)| !(least..=most).contains(*number));
        let sum: f64 = outside.map(|(_, weight)| weight).sum();
        if self.total > 0.0 { sum / self.total } else { 0.0 }
    }

    /// Sum of the weights of all numbers.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The mean of the numbers; 0 without numbers.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.counts.iter().map(|(number, weight)| *number as f64 * weight).sum();
        if self.total > 0.0 { sum / self.total } else { 0.0 }
    }

    /// The least number such that at least the share `quantile` of all numbers is not above it; 0 without numbers.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let mut sum = 0.0;
        for (number, weight) in &self.counts {
            sum += weight;
            if sum >= quantile * self.total * (1.0 - 1e-12) {
                return *number;
            }
        }
        self.counts.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// The greatest distance between two cumulative distributions (Kolmogorov and Smirnov), 0 to 1. The distance is 1
    /// if only one of them has numbers.
    pub fn distance(&self, other: &ValueCounts) -> f64 {
        match (self.total > 0.0, other.total > 0.0) {
            (false, false) => return 0.0,
            (true, true) => {}
            _ => return 1.0,
        }
        let digits = match (self.digits, other.digits) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        let mut steps: BTreeMap<u64, f64> = BTreeMap::new();
        for (counts, sign) in [(self, 1.0), (other, -1.0)] {
            for (number, weight) in &counts.counts {
                *steps.entry(cut(*number, digits)).or_default() += sign * weight / counts.total;
            }
        }
        let mut apart = 0.0;
        steps
            .values()
            .map(|step| {
                apart += step;
                f64::abs(apart)
            })
            .fold(0.0, f64::max)
    }

    /// The distribution of the numbers: numbers with a share of at least 1 % have ranges of their own, and all others
    /// are in at most 64 ranges, whose ends are placed where they describe the numbers best and are at most a factor
    /// of four apart. `None` without numbers.
    pub fn dist(&self) -> Option<Dist> {
        let is_point = |weight: f64| weight >= POINT_SHARE * self.total;
        let mut ranges: Vec<Range> = Vec::new();
        let mut others: Vec<(u64, f64)> = Vec::new();
        for (&number, &weight) in &self.counts {
            match is_point(weight) {
                true => ranges.push(Range { low: number, high: number, weight }),
                false => others.push((number, weight)),
            }
        }
        if ranges.len() == 1 && others.is_empty() {
            return Some(Dist::Fixed(ranges[0].low as f64));
        }
        ranges.extend(ranges_of(&others, self.total));
        ranges.sort_by_key(|range| (range.low, range.high));
        for range in &mut ranges {
            range.weight = rounded(100.0 * range.weight / self.total);
        }
        Weighted::new(ranges).ok().map(Dist::Weighted)
    }

    fn cut_further(&mut self) {
        let digits = self.digits.map_or(14, |digits| digits - 1).max(4);
        self.digits = Some(digits);
        let before = std::mem::take(&mut self.counts);
        for (number, weight) in before {
            *self.counts.entry(cut(number, self.digits)).or_default() += weight;
        }
    }
}

/// A number of which only the first `digits` binary digits are kept, and the others set to 0.
fn cut(number: u64, digits: Option<u32>) -> u64 {
    let Some(digits) = digits else { return number };
    let shift = (u64::BITS - number.leading_zeros()).saturating_sub(digits);
    number >> shift << shift
}

/// A weight with five significant digits, above 0.
fn rounded(weight: f64) -> f64 {
    let scale = libm::pow(10.0, 4.0 - libm::floor(libm::log10(weight)));
    let whole = libm::round(weight * scale) / scale;
    // The shortest text of the nearest number.
    if whole > 0.0 { format!("{whole:.12}").parse().unwrap_or(whole) } else { weight }
}

/// The ranges of numbers that rise, with their weights, of `total`.
fn ranges_of(numbers: &[(u64, f64)], total: f64) -> Vec<Range> {
    let Some(&(least, _)) = numbers.first() else { return Vec::new() };
    let mut xs = vec![least as f64 - 1.0];
    let mut ys = vec![0.0];
    let mut sum = 0.0;
    for &(number, weight) in numbers {
        sum += weight;
        xs.push(number as f64);
        ys.push(sum / total);
    }
    // A range begins with the first number that it has.
    let line_from = |knot: usize| xs.get(knot + 1).map_or(xs[knot], |next| next - 1.0);
    let curve = Curve { xs: &xs, ys: &ys, line_from: &line_from };
    let knots = curve.knots(&wide_apart(&xs), RANGES_MAX + 1, TOLERANCE);
    let range = |pair: &[usize]| {
        let (low, high) = (xs[pair[0] + 1] as u64, xs[pair[1]] as u64);
        Range { low, high, weight: (ys[pair[1]] - ys[pair[0]]) * total }
    };
    knots.windows(2).map(range).filter(|range| range.weight > 0.0).collect()
}

/// The numbers of points with the first, the last, and one before each power of the greatest ratio.
fn wide_apart(xs: &[f64]) -> Vec<usize> {
    let mut knots = vec![0];
    let mut limit = xs[1].max(1.0) * RANGE_RATIO;
    for (at, x) in xs.iter().enumerate().skip(2) {
        if *x > limit {
            knots.push(at - 1);
            while *x > limit {
                limit *= RANGE_RATIO;
            }
        }
    }
    knots.push(xs.len() - 1);
    knots.dedup();
    knots
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::Stream;

    fn drawn(dist: &Dist, draws: u64, seed: u64) -> ValueCounts {
        let stream = Stream::from_seed(seed);
        let mut counts = ValueCounts::default();
        (0..draws).for_each(|i| counts.add(dist.draw_size(stream.draw(i), 0, 1 << 30), 1.0));
        counts
    }

    #[test]
    fn what_is_frequent_stands_for_itself_and_the_rest_in_ranges() {
        let mut counts = ValueCounts::default();
        counts.add(3_600, 60.0);
        counts.add(0, 39.5);
        (100..200).for_each(|number| counts.add(number, 0.005));
        assert_eq!(
            counts.dist().map(|dist| dist.to_string()),
            Some("weighted:0-0@39.5,100-199@0.5,3600-3600@60".into())
        );
        let mut one = ValueCounts::default();
        one.add(200, 17.0);
        assert_eq!(one.dist(), Some(Dist::Fixed(200.0)));
        assert_eq!(ValueCounts::default().dist(), None);
    }

    #[test]
    fn the_ranges_of_a_distribution_draw_what_it_draws() {
        for text in ["etc-value", "pareto:0,178,0.348", "uniform:10,100000", "etc-key", "exponential:5000"] {
            let counts = drawn(&text.parse().expect("a distribution"), 60_000, 1);
            let dist = counts.dist().expect("numbers");
            let Dist::Weighted(weighted) = &dist else { panic!("{dist}") };
            assert!(weighted.ranges().len() <= RANGES_MAX + 100);
            let again = drawn(&dist, 60_000, 2);
            // 1.95 / sqrt(n) for each of two samples, and the tolerance of the ranges.
            assert!(counts.distance(&again) < 0.0125, "{text}: {}", counts.distance(&again));
            let (mean, found) = (counts.mean(), again.mean());
            assert!((found - mean).abs() < 0.05 * mean, "{text}: {mean} {found}");
        }
    }

    #[test]
    fn more_numbers_than_are_kept_lose_digits_and_no_weight() {
        let mut counts = ValueCounts::default();
        (0..200_000u64).for_each(|number| counts.add(number * 5_003, 1.0));
        assert!(counts.counts.len() <= NUMBERS_MAX);
        assert_eq!(counts.total(), 200_000.0);
        let median = counts.quantile(0.5) as f64;
        assert!((median / (100_000.0 * 5_003.0) - 1.0).abs() < 0.01, "{median}");
        assert!(counts.dist().is_some());
        counts.add(u64::MAX >> 12, 1.0);
        assert_eq!(counts.total(), 200_001.0);
    }

    #[test]
    fn distances_are_those_of_the_shares_below() {
        let of = |numbers: &[u64]| {
            let mut counts = ValueCounts::default();
            numbers.iter().for_each(|number| counts.add(*number, 1.0));
            counts
        };
        assert_eq!(of(&[1, 2, 3, 4]).distance(&of(&[1, 2, 3, 4, 1, 2, 3, 4])), 0.0);
        assert_eq!(of(&[1, 2]).distance(&of(&[3, 4])), 1.0);
        assert_eq!(of(&[1, 2, 3, 4]).distance(&of(&[1, 2, 9, 9])), 0.5);
        assert_eq!(of(&[]).distance(&of(&[])), 0.0);
        assert_eq!(of(&[]).distance(&of(&[1])), 1.0);
    }
}
