//! Tests of the counts of histograms, and of merging without a loss.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::*;
use pummel_logic::time::SECOND;

/// Values of all magnitudes, each as likely as the other.
pub(super) fn values() -> impl Strategy<Value = Vec<Nanos>> {
    vec((any::<u64>(), 1u32..64).prop_map(|(word, assignment)| word >> assignment), 1..200)
}

pub(super) fn of(values: &[Nanos]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

pub(super) fn oracle(values: &[Nanos]) -> hdrhistogram::Histogram<u64> {
    let mut oracle = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST, 3).unwrap();
    values.iter().for_each(|value| oracle.record(*value).unwrap());
    oracle
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_hdrhistogram_library(values in values(), quantile in 0.001..1.0f64) {
        let (histogram, oracle) = (of(&values), oracle(&values));
        let reported = histogram.quantile(quantile).unwrap();
        let expected = oracle.value_at_quantile(quantile);
        let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        prop_assert_eq!(reported, expected.clamp(min, max));
    }

    #[test]
    fn count_least_greatest_sum_and_squares_are_exact(values in values()) {
        let moments = of(&values).moments();
        prop_assert_eq!(moments.count, values.len() as u64);
        prop_assert_eq!(moments.min, *values.iter().min().unwrap());
        prop_assert_eq!(moments.max, *values.iter().max().unwrap());
        prop_assert_eq!(moments.sum, values.iter().map(|value| u128::from(*value)).sum::<u128>());
        let squares = values.iter().map(|value| u128::from(*value).pow(2));
        prop_assert_eq!(moments.sum_squares, squares.fold(0, u128::saturating_add));
    }

    #[test]
    fn merged_parts_equal_one_that_recorded_everything(one in values(), another in values()) {
        let mut merged = of(&one);
        merged.merge(&of(&another));
        let together = of(&[one, another].concat());
        prop_assert_eq!(&merged, &together);
        prop_assert!(merged.cells().eq(together.cells()));
    }

    #[test]
    fn recording_many_equals_recording_often(value in 0..1u64 << 50, count in 0u64..50) {
        let mut many = Histogram::new();
        many.record_many(value, count);
        prop_assert_eq!(many, of(&vec![value; count as usize]));
    }

    #[test]
    fn recording_all_together_equals_recording_one_by_one(values in values(), small in any::<bool>()) {
        let values: Vec<Nanos> = values.iter().map(|value| if small { value >> 24 } else { *value }).collect();
        let mut together = Histogram::new();
        together.record_all(&values);
        together.record_all(&[0; 3]);
        together.record_all(&[]);
        let mut one_by_one = of(&values);
        (0..3).for_each(|_| one_by_one.record(0));
        prop_assert_eq!(together, one_by_one);
    }

    #[test]
    fn a_cleared_histogram_is_a_new_one(before in values(), after in values()) {
        let mut histogram = of(&before);
        histogram.clear();
        prop_assert_eq!(&histogram, &Histogram::new());
        prop_assert!(histogram.cells.iter().all(|cell| *cell == 0));
        after.iter().for_each(|value| histogram.record(*value));
        prop_assert_eq!(histogram, of(&after));
    }
}

#[test]
fn values_beyond_the_highest_count_as_the_highest() {
    let histogram = of(&[u64::MAX, HIGHEST]);
    assert_eq!(histogram.moments().max, HIGHEST);
    assert_eq!(histogram.cells().count(), 1);
}

#[test]
fn several_ranks_in_one_pass_are_the_ranks_one_by_one() {
    let histogram = of(&[5, 5, 70, 900, 900, 10_000]);
    let ranks = [1, 2, 3, 3, 6, 7];
    assert_eq!(histogram.at_ranks(ranks), ranks.map(|rank| histogram.at_rank(rank)));
    assert_eq!(histogram.at_ranks(ranks), [Some(5), Some(5), Some(70), Some(70), Some(10_000), None]);
}

#[test]
fn mean_and_standard_deviation_are_those_of_the_values() {
    let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]).moments();
    assert_eq!(moments.mean_ns(), Some(5.0));
    assert_eq!(moments.stddev_ns(), Some(2.0));
    let far = 3_600 * SECOND;
    assert_eq!(
        of(&[far, far + 2]).moments().stddev_ns(),
        Some(1.0),
        "no digit is lost to the size of the mean"
    );
}

#[test]
fn a_rank_is_not_moved_by_rounding() {
    assert_eq!(rank(0.99, 100), 99);
    assert_eq!(rank(0.999, 1_000_000), 999_000);
    assert_eq!(rank(0.07, 100), 7, "0.07 * 100 is a little more than 7 in floating point");
    assert_eq!(rank(0.99, 101), 100);
    assert_eq!(rank(0.0, 5), 1);
    assert_eq!(rank(1.0, 5), 5);
    assert_eq!(rank(0.5, 0), 1);
}

#[test]
fn a_histogram_takes_memory_with_its_first_value_or_when_it_is_reserved() {
    let has_memory = |histogram: &Histogram| !histogram.cells.is_empty();
    let mut histogram = Histogram::new();
    histogram.merge(&Histogram::new());
    histogram.merge_sparse(&Histogram::new().to_sparse());
    histogram.record_all(&[]);
    histogram.record_many(7, 0);
    histogram.clear();
    assert!(!has_memory(&histogram) && !has_memory(&histogram.clone()));
    assert_eq!((histogram.at_rank(1), histogram.cells().count()), (None, 0));
    histogram.record(7);
    assert!(has_memory(&histogram) && has_memory(&histogram.clone()));
    let mut reserved = Histogram::new();
    reserved.reserve();
    assert!(has_memory(&reserved));
    assert_eq!(reserved, Histogram::new(), "a table of zeros counts nothing");
    // The first value that is too great for the table at first, and the last one that is not.
    for (value, cells) in [((1 << 36) - 1, CELLS_AT_FIRST), (1 << 36, CELLS)] {
        histogram.record(value);
        assert_eq!(histogram.cells.len(), cells);
    }
    assert!(histogram.cells().map(|(lowest, _, count)| (lowest, count)).eq([
        (7, 1),
        (lowest_of(CELLS_AT_FIRST - 1), 1),
        (1 << 36, 1)
    ]));
}
