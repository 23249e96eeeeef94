//! Sums of another figure by coarse cell of a histogram: how much of what was counted belongs to something else.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Histogram;
use super::cells::{CELLS, HIGHEST, index_of};
use super::encoding::NotAHistogram;
use pummel_logic::time::Nanos;

/// log2 of the cells of a histogram that share a sum: 8 sums for each doubling, so that the values of one lie within 13 %
/// of each other; below 2,048 they are 128 wide.
const SHARED_BITS: u32 = 7;

/// Number of sums of the table.
const SUMS: usize = ((CELLS - 1) >> SHARED_BITS) + 1;

/// The sums of a second figure of the values in a histogram, by coarse cell of the first. It takes 4 KiB and never grows.
#[derive(Clone, PartialEq, Eq)]
pub struct CellSums(Box<[u64; SUMS]>);

impl CellSums {
    /// Adds `figure` to the sum of the cell that counts `value`.
    #[inline]
    pub(super) fn add_at(&mut self, cell: usize, figure: u64) {
        let sum = &mut self.0[cell >> SHARED_BITS];
        *sum = sum.wrapping_add(figure);
    }

    /// Adds `figure` times `count` for `value`.
    pub fn add(&mut self, value: Nanos, figure: u64, count: u64) {
        self.add_at(index_of(value.min(HIGHEST)), figure.wrapping_mul(count));
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &CellSums) {
        self.0.iter_mut().zip(other.0.iter()).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }

    /// Makes all sums 0.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The sum of all cells.
    pub fn total(&self) -> u128 {
        self.0.iter().map(|sum| u128::from(*sum)).sum()
    }

    /// Whether all sums are 0.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|sum| *sum == 0)
    }

    /// The coarse cells of a histogram that hold something: least value, greatest value, count, the sum of the values by the
    /// middles of their fine cells, and the sum of the second figure.
    pub fn beside(&self, histogram: &Histogram) -> Vec<CellSum> {
        let mut cells: Vec<(usize, CellSum)> = Vec::new();
        for (lowest, highest, count) in histogram.cells() {
            let coarse = index_of(lowest) >> SHARED_BITS;
            let sum = (lowest as f64 + highest as f64) / 2.0 * count as f64;
            match cells.last_mut().filter(|(last, _)| *last == coarse) {
                Some((_, cell)) => {
                    (cell.highest, cell.count) = (highest, cell.count + count);
                    cell.sum += sum;
                }
                None => {
                    let beside = self.0[coarse];
                    cells.push((coarse, CellSum { lowest, highest, count, sum, beside }));
                }
            }
        }
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    /// The share of the second figure in the first, from 0 to 1, over the values in the coarse cell of `value`, which are
    /// within 13 % of it. `None` when the histogram has none there.
    pub fn share_near(&self, histogram: &Histogram, value: Nanos) -> Option<f64> {
        let coarse = index_of(value.min(HIGHEST)) >> SHARED_BITS;
        let cells = histogram.cells().filter(|(lowest, ..)| index_of(*lowest) >> SHARED_BITS == coarse);
        let whole: f64 =
            cells.map(|(lowest, highest, count)| (lowest as f64 + highest as f64) / 2.0 * count as f64).sum();
        (whole > 0.0).then(|| (self.0[coarse] as f64 / whole).min(1.0))
    }
}

/// One coarse cell of a histogram with the sum of a second figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellSum {
    /// The least value that the cell holds.
    pub lowest: Nanos,
    /// The greatest value that the cell holds.
    pub highest: Nanos,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of the second figure.
    pub beside: u64,
}

impl Histogram {
    /// Counts each of `values` as [`Histogram::record_all`] does, and adds the figure at its place in `figures` to `sums`.
    ///
    /// # Panics
    /// Panics when there are fewer figures than values.
    pub fn record_all_beside(&mut self, values: &[Nanos], figures: &[u64], sums: &mut CellSums) {
        let figures = &figures[..values.len()];
        let all = values.iter().fold(0, |all, value| all | value);
        self.record_each(values, all, |at, cell| sums.add_at(cell, figures[at]));
    }
}

impl Default for CellSums {
    fn default() -> CellSums {
        CellSums(vec![0; SUMS].into_boxed_slice().try_into().expect("the length is that of the array"))
    }
}

impl fmt::Debug for CellSums {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CellSums({})", self.total())
    }
}

/// The sums that are not 0, each with its place.
impl Serialize for CellSums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sums = self.0.iter().enumerate().filter(|(_, sum)| **sum != 0);
        serializer.collect_seq(sums.map(|(at, sum)| (at as u32, *sum)))
    }
}

impl<'de> Deserialize<'de> for CellSums {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CellSums, D::Error> {
        let mut sums = CellSums::default();
        for (at, more) in Vec::<(u32, u64)>::deserialize(deserializer)? {
            let wrong = || NotAHistogram("a sum lies beyond the greatest value".to_owned());
            let sum = sums.0.get_mut(at as usize).ok_or_else(|| serde::de::Error::custom(wrong()))?;
            *sum = sum.saturating_add(more);
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_values_near_a_value() {
        let (mut histogram, mut sums) = (Histogram::new(), CellSums::default());
        // A hundred values of 50 us with a tenth of something else, and three of 2 ms that are nearly all of it.
        histogram.record_all_beside(&[50_000; 100], &[5_000; 100], &mut sums);
        histogram.record_all_beside(&[2_000_000; 3], &[1_900_000; 3], &mut sums);
        let near = |value| sums.share_near(&histogram, value);
        assert!((near(50_000).unwrap() - 0.1).abs() < 0.001, "{:?}", near(50_000));
        assert!((near(2_000_000).unwrap() - 0.95).abs() < 0.001, "{:?}", near(2_000_000));
        assert_eq!(near(900_000), None);
        assert_eq!(sums.total(), 100 * 5_000 + 3 * 1_900_000);
    }

    #[test]
    fn values_of_all_sizes_are_counted_as_without_sums() {
        for values in [vec![0, 0, 0], vec![1, 2_047, 2_048, 90_000], vec![5, 1 << 41, u64::MAX]] {
            let (mut plain, mut beside, mut sums) = (Histogram::new(), Histogram::new(), CellSums::default());
            plain.record_all(&values);
            beside.record_all_beside(&values, &[1, 2, 3, 4], &mut sums);
            assert_eq!(plain, beside);
            assert_eq!(sums.total(), (1..=values.len() as u128).sum::<u128>(), "{values:?}");
        }
    }

    #[test]
    fn sums_merge_and_are_saved_exactly() {
        let (mut one, mut other) = (CellSums::default(), CellSums::default());
        one.add(100, 7, 3);
        other.add(120, 1, 1);
        other.add(1 << 60, 9, 1);
        let saved = serde_json::to_string(&other).unwrap();
        one.merge(&serde_json::from_str(&saved).unwrap());
        assert_eq!((one.total(), one.is_zero()), (31, false));
        assert!(serde_json::from_str::<CellSums>("[[4000000000,1]]").is_err());
        one.clear();
        assert!(one.is_zero() && one == CellSums::default());
    }
}
