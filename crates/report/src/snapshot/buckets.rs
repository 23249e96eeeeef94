//! Times in the buckets of Prometheus: 20 classic ones with a 1-2-5 scale, and native ones of schema 5.
//!
//! Both are filled from the cells of a histogram, which are at most 0.1 % wide. A cell belongs to the bucket of its least
//! value, so that a time may be counted one bucket too low where it lies less than 0.1 % above the bucket's bound.

use std::collections::BTreeMap;

use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use pummel_measure::histogram::Histogram;

/// The upper bounds of the classic buckets: the number of seconds as Prometheus writes it, and nanoseconds.
pub const CLASSIC_BOUNDS: [(&str, Nanos); 20] = [
    ("5e-06", 5 * MICROSECOND),
    ("1e-05", 10 * MICROSECOND),
    ("2e-05", 20 * MICROSECOND),
    ("5e-05", 50 * MICROSECOND),
    ("0.0001", 100 * MICROSECOND),
    ("0.0002", 200 * MICROSECOND),
    ("0.0005", 500 * MICROSECOND),
    ("0.001", MILLISECOND),
    ("0.002", 2 * MILLISECOND),
    ("0.005", 5 * MILLISECOND),
    ("0.01", 10 * MILLISECOND),
    ("0.02", 20 * MILLISECOND),
    ("0.05", 50 * MILLISECOND),
    ("0.1", 100 * MILLISECOND),
    ("0.2", 200 * MILLISECOND),
    ("0.5", 500 * MILLISECOND),
    ("1", SECOND),
    ("2", 2 * SECOND),
    ("5", 5 * SECOND),
    ("10", 10 * SECOND),
];

/// The schema of the native buckets: 32 for each doubling, each 2.2 % wide.
pub const NATIVE_SCHEMA: i32 = 5;

/// Native buckets of each doubling.
const PER_DOUBLING: f64 = 32.0;

/// Counts of times by bucket. They only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeBuckets {
    /// Counts of each classic bucket alone, the last for times above all bounds.
    classic: [u64; CLASSIC_BOUNDS.len() + 1],
    /// Times of each native bucket, by its index i: those above 2^((i-1)/32) s and up to 2^(i/32) s.
    native: BTreeMap<i32, u64>,
    /// Times of 0 ns, which no native bucket holds.
    zeros: u64,
    count: u64,
    sum_ns: u128,
}

impl TimeBuckets {
    /// Adds everything that a histogram holds.
    pub fn add(&mut self, histogram: &Histogram) {
        let moments = histogram.moments();
        self.count += moments.count;
        self.sum_ns += moments.sum;
        let (mut class, mut index, mut bound_ns) = (0, i32::MIN, 0.0);
        for (lowest, _, count) in histogram.cells() {
            while class < CLASSIC_BOUNDS.len() && lowest > CLASSIC_BOUNDS[class].1 {
                class += 1;
            }
            self.classic[class] += count;
            if lowest == 0 {
                self.zeros += count;
                continue;
            }
            if lowest as f64 > bound_ns {
                index = native_index(lowest);
                bound_ns = native_bound_ns(index);
            }
            *self.native.entry(index).or_default() += count;
        }
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all times, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / SECOND as f64
    }

    /// The number of times up to each of the [`CLASSIC_BOUNDS`].
    pub fn cumulative(&self) -> [u64; CLASSIC_BOUNDS.len()] {
        let mut sum = 0;
        std::array::from_fn(|at| {
            sum += self.classic[at];
            sum
        })
    }

    /// The native buckets that hold something, by ascending index.
    pub fn native(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        self.native.iter().map(|(index, count)| (*index, *count))
    }

    /// How many times were 0 ns.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }
}

/// The index of the native bucket of a time above 0.
fn native_index(ns: Nanos) -> i32 {
    ((ns as f64 / SECOND as f64).log2() * PER_DOUBLING).ceil() as i32
}

/// The upper bound of a native bucket, in nanoseconds.
fn native_bound_ns(index: i32) -> f64 {
    (f64::from(index) / PER_DOUBLING).exp2() * SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(times: &[Nanos]) -> TimeBuckets {
        let mut histogram = Histogram::new();
        times.iter().for_each(|ns| histogram.record(*ns));
        let mut buckets = TimeBuckets::default();
        buckets.add(&histogram);
        buckets
    }

    #[test]
    fn bounds_are_the_seconds_that_their_words_say() {
        for (words, ns) in CLASSIC_BOUNDS {
            assert_eq!(words.parse::<f64>().map(|s| (s * 1e9).round() as u64), Ok(ns), "{words}");
        }
        assert!(CLASSIC_BOUNDS.windows(2).all(|pair| pair[0].1 < pair[1].1));
    }

    #[test]
    fn a_time_at_a_bound_is_below_it_and_one_beyond_all_is_in_the_count_alone() {
        let seen = buckets(&[0, 5_000, 5_100, 10 * SECOND, 11 * SECOND]);
        let cumulative = seen.cumulative();
        assert_eq!((cumulative[0], cumulative[1], cumulative[18], cumulative[19]), (2, 3, 3, 4));
        assert_eq!((seen.count(), seen.zeros()), (5, 1));
        assert!((seen.sum_s() - 21.0000101).abs() < 1e-9);
    }

    #[test]
    fn native_buckets_hold_each_time_once_and_within_their_bounds() {
        let times: Vec<Nanos> = (0..4_000).map(|step| 1 + (1.007_f64.powi(step) as u64)).collect();
        let seen = buckets(&times);
        assert_eq!(seen.native().map(|(_, count)| count).sum::<u64>(), 4_000);
        for (index, _) in seen.native() {
            let (low, high) = (native_bound_ns(index - 1), native_bound_ns(index));
            // A cell counts by its least value, which is up to a thousandth less.
            let held = times.iter().any(|ns| *ns as f64 > low * 0.999 && *ns as f64 <= high * 1.001);
            assert!(held, "bucket {index} holds what it may not");
        }
        assert_eq!(buckets(&[SECOND]).native().collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(buckets(&[SECOND * 2]).native().collect::<Vec<_>>(), [(32, 1)]);
    }

    #[test]
    fn what_is_added_twice_is_there_twice() {
        let mut histogram = Histogram::new();
        histogram.record_many(70_000, 3);
        let mut seen = TimeBuckets::default();
        seen.add(&histogram);
        seen.add(&histogram);
        assert_eq!((seen.count(), seen.cumulative()[4], seen.cumulative()[3]), (6, 6, 0));
    }
}
