//! A histogram of nanoseconds that costs a few of them to record into.
//!
//! The layout is that of HdrHistogram with three significant digits and a lowest value of 1: values below 2,048 have a
//! cell each, and every doubling above has 1,024 cells, so that a cell is never wider than 0.1 % of its values. The
//! table reaches to 2^63 - 1 from the start and never grows; pages that no value falls into are never touched.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::time::{Nanos, SECOND};

/// Counts of values, with count, least, greatest, sum and sum of squares kept exactly beside them.
pub struct Histogram {
    cells: Box<[u64; CELLS]>,
    count: u64,
    /// Also where the touched cells begin; `u64::MAX` when there are none.
    min: Nanos,
    /// Also where the touched cells end.
    max: Nanos,
    sum: u128,
    sum_squares: u128,
}

/// What a histogram knows exactly. All zero but for `min` when nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// The least value; `u64::MAX` when there is none.
    pub min: Nanos,
    /// The greatest value.
    pub max: Nanos,
    /// Sum of the values.
    #[serde(with = "wide")]
    pub sum: u128,
    /// Sum of their squares.
    #[serde(with = "wide")]
    pub sum_squares: u128,
}

/// A histogram on its way to another process: the cells that were counted in, and what is exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseHistogram {
    exact: Moments,
    /// For each cell that was counted in, how many cells lie between it and the one before, and its count.
    cells: Vec<(u32, u64)>,
}

/// A text that holds no histogram of this kind, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAHistogram(String);

/// Greatest value that can be recorded; greater ones are recorded as this one. 292 years.
pub const HIGHEST: Nanos = (1 << 63) - 1;

/// Values up to this have squares that can be added up in 128 bits as often as anybody has memory for them.
const SMALL: Nanos = (1 << 40) - 1;

/// log2 of the number of cells for each doubling.
const HALF_BITS: u32 = 10;
/// Cells for each doubling; the values below twice this have a cell each.
const HALF: usize = 1 << HALF_BITS;
/// The greatest value that has a cell of its own.
const FINE: u64 = 2 * HALF as u64 - 1;
const CELLS: usize = index_of(HIGHEST) + 1;
/// Cells that share a page of memory.
const PAGE: usize = 512;
/// What other implementations are told to be the greatest value, unless there is a greater one.
const NOMINAL_HIGHEST: Nanos = 3_600 * SECOND;

/// How many doublings `value` lies above the values with a cell each.
#[inline]
const fn doublings(value: Nanos) -> u32 {
    (63 - HALF_BITS) - (value | FINE).leading_zeros()
}

/// The cell of `value`, which is at most [`HIGHEST`].
#[inline]
const fn index_of(value: Nanos) -> usize {
    let doublings = doublings(value);
    ((doublings as usize) << HALF_BITS) + (value >> doublings) as usize
}

/// The least value of cell `index`.
fn lowest_of(index: usize) -> Nanos {
    if index < 2 * HALF {
        return index as u64;
    }
    let doublings = (index >> HALF_BITS) - 1;
    ((index & (HALF - 1)) as u64 + HALF as u64) << doublings
}

/// The greatest value of cell `index`.
fn highest_of(index: usize) -> Nanos {
    lowest_of(index) + ((1 << doublings(lowest_of(index))) - 1)
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        // Through a vector, because memory that is asked for as zeroed is not touched.
        let cells = vec![0; CELLS].into_boxed_slice().try_into();
        Histogram {
            cells: cells.expect("the length is that of the array"),
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_squares: 0,
        }
    }

    /// Counts `value` once.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let value = value.min(HIGHEST);
        self.cells[index_of(value)] += 1;
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_squares = self.sum_squares.saturating_add(u128::from(value) * u128::from(value));
    }

    /// Counts `value` `count` times.
    #[inline]
    pub fn record_many(&mut self, value: Nanos, count: u64) {
        if count == 1 {
            return self.record(value);
        }
        if count == 0 {
            return;
        }
        let value = value.min(HIGHEST);
        self.cells[index_of(value)] += count;
        self.count += count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(count);
        let squares = (u128::from(value) * u128::from(value)).saturating_mul(u128::from(count));
        self.sum_squares = self.sum_squares.saturating_add(squares);
    }

    /// Counts each of `values` once: the same as recording them one by one, at half the price, since what is kept exactly
    /// is brought up to date once for all of them.
    pub fn record_all(&mut self, values: &[Nanos]) {
        let all = values.iter().fold(0, |all, value| all | value);
        if all == 0 {
            return self.record_many(0, values.len() as u64);
        }
        if all > SMALL {
            return values.iter().for_each(|value| self.record(*value));
        }
        let (mut min, mut max) = (self.min, self.max);
        let (mut sum, mut sum_squares) = (0u128, 0u128);
        for &value in values {
            self.cells[index_of(value)] += 1;
            min = min.min(value);
            max = max.max(value);
            sum += u128::from(value);
            sum_squares += u128::from(value) * u128::from(value);
        }
        (self.min, self.max) = (min, max);
        self.count += values.len() as u64;
        self.sum += sum;
        self.sum_squares = self.sum_squares.saturating_add(sum_squares);
    }

    /// Adds everything that `other` counted, as if it had been recorded here.
    pub fn merge(&mut self, other: &Histogram) {
        let touched = other.touched();
        for (cell, more) in self.cells[touched.clone()].iter_mut().zip(&other.cells[touched]) {
            // Read before written: most cells between the least and the greatest value are 0, and a page of zeros that
            // is only read takes no memory.
            if *more != 0 {
                *cell += more;
            }
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }

    /// The same, for the way to another process.
    pub fn to_sparse(&self) -> SparseHistogram {
        let mut cells = Vec::new();
        let mut gap = 0;
        for cell in &self.cells[self.touched()] {
            match cell {
                0 => gap += 1,
                count => cells.push((std::mem::take(&mut gap), *count)),
            }
        }
        SparseHistogram { exact: self.moments(), cells }
    }

    /// As [`Histogram::merge`], from another process.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] when the figures and the cells of `other` do not belong to each other; nothing was
    /// added then.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) -> Result<(), NotAHistogram> {
        let wrong = |what: &str| NotAHistogram(what.to_owned());
        let SparseHistogram { exact, cells } = other;
        if exact.count == 0 && cells.is_empty() {
            return Ok(());
        }
        if exact.min > exact.max || exact.max > HIGHEST {
            return Err(wrong("its least and its greatest value cannot be"));
        }
        let (first, last) = (index_of(exact.min), index_of(exact.max));
        let mut at = first;
        let mut count = 0u64;
        for (place, (gap, number)) in cells.iter().enumerate() {
            at += *gap as usize + usize::from(place > 0);
            count = count.checked_add(*number).ok_or_else(|| wrong("it has too many values"))?;
            if at > last {
                return Err(wrong("it has cells beyond its greatest value"));
            }
        }
        if count != exact.count || at != last || cells.first().is_some_and(|(gap, _)| *gap > 0) {
            return Err(wrong("the exact figures do not belong to it"));
        }
        let mut at = first;
        for (place, (gap, number)) in cells.iter().enumerate() {
            at += *gap as usize + usize::from(place > 0);
            self.cells[at] = self.cells[at].saturating_add(*number);
        }
        self.count = self.count.saturating_add(exact.count);
        self.min = self.min.min(exact.min);
        self.max = self.max.max(exact.max);
        self.sum = self.sum.saturating_add(exact.sum);
        self.sum_squares = self.sum_squares.saturating_add(exact.sum_squares);
        Ok(())
    }

    /// Forgets everything; only cells that were counted in are written.
    pub fn clear(&mut self) {
        let touched = self.touched();
        for page in self.cells[touched].chunks_mut(PAGE) {
            if page.iter().any(|cell| *cell != 0) {
                page.fill(0);
            }
        }
        self.count = 0;
        self.min = u64::MAX;
        self.max = 0;
        self.sum = 0;
        self.sum_squares = 0;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What is known exactly.
    pub fn moments(&self) -> Moments {
        Moments {
            count: self.count,
            min: self.min,
            max: self.max,
            sum: self.sum,
            sum_squares: self.sum_squares,
        }
    }

    /// The value at `rank`, where rank 1 is the least: the greatest value of its cell, as HdrHistogram reports it, but
    /// never less than the exact least nor more than the exact greatest. `None` when there are fewer values.
    pub fn at_rank(&self, rank: u64) -> Option<Nanos> {
        self.at_ranks([rank])[0]
    }

    /// [`Histogram::at_rank`] of several ascending ranks in one pass.
    ///
    /// # Panics
    /// When the ranks do not ascend.
    pub fn at_ranks<const N: usize>(&self, ranks: [u64; N]) -> [Option<Nanos>; N] {
        assert!(ranks.is_sorted(), "ranks ascend");
        let mut values = [None; N];
        let mut cells = self.cells();
        let mut passed = 0;
        let mut value = 0;
        for (rank, slot) in ranks.into_iter().zip(&mut values) {
            if rank > self.count || self.count == 0 {
                break;
            }
            while passed < rank.max(1) {
                let (_, highest, count) =
                    cells.next().expect("the cells hold as many values as were counted");
                passed += count;
                value = highest;
            }
            *slot = Some(value.clamp(self.min, self.max));
        }
        values
    }

    /// The value at a quantile from 0 to 1: that of rank ceil(quantile * count), at least 1. `None` when nothing was
    /// recorded.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        self.at_rank(rank(quantile, self.count))
    }

    /// The cells that hold something: least value, greatest value, count.
    pub fn cells(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> {
        let touched = self.touched();
        let start = touched.start;
        self.cells[touched]
            .iter()
            .enumerate()
            .filter(|(_, count)| **count != 0)
            .map(move |(at, count)| (lowest_of(start + at), highest_of(start + at), *count))
    }

    /// The same counts as the HdrHistogram library has them. What is exact here beyond the cells does not go along.
    pub fn to_hdr(&self) -> hdrhistogram::Histogram<u64> {
        let highest = NOMINAL_HIGHEST.max(self.max);
        let mut hdr = hdrhistogram::Histogram::new_with_bounds(1, highest, 3)
            .expect("these bounds and digits are within what the library allows");
        for (lowest, _, count) in self.cells() {
            hdr.record_n(lowest, count).expect("the bounds include every value");
        }
        hdr
    }

    /// The counts of a histogram of the HdrHistogram library. Least, greatest, sum and sum of squares are as exact as
    /// its cells.
    pub fn from_hdr(hdr: &hdrhistogram::Histogram<u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for cell in hdr.iter_recorded() {
            let value = cell.value_iterated_to();
            histogram.record_many(hdr.median_equivalent(value), cell.count_at_value());
        }
        if histogram.count > 0 {
            histogram.min = hdr.lowest_equivalent(hdr.min()).min(HIGHEST);
            histogram.max = hdr.max().min(HIGHEST);
        }
        histogram
    }

    /// HdrHistogram's V2 encoding, compressed and in base64: the form that HdrHistogram libraries of all languages read.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.to_hdr(), &mut bytes)
            .expect("counts fit and memory does not fail to be written");
        STANDARD.encode(bytes)
    }

    /// The histogram in a text of [`Histogram::to_base64`], or of another library's V2 encoding, compressed or not.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] for a text that is not in base64, or holds no V2 encoding of a histogram.
    pub fn from_base64(text: &str) -> Result<Histogram, NotAHistogram> {
        let bytes = STANDARD.decode(text).map_err(|error| NotAHistogram(error.to_string()))?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map(|hdr| Histogram::from_hdr(&hdr))
            .map_err(|error| NotAHistogram(error.to_string()))
    }

    /// The histogram whose cells are in a text of [`Histogram::to_base64`] and whose exact figures lie beside it.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] for a text without a histogram, and for exact figures that are not those of its
    /// cells.
    pub fn from_parts(v2: &str, exact: Moments) -> Result<Histogram, NotAHistogram> {
        let mut histogram = Histogram::from_base64(v2)?;
        let fits = exact.count == histogram.count
            && (exact.count == 0
                || (exact.max <= HIGHEST
                    && exact.min <= exact.max
                    && index_of(exact.min) == index_of(histogram.min)
                    && index_of(exact.max) == index_of(histogram.max)));
        if !fits {
            return Err(NotAHistogram("the exact figures do not belong to it".to_owned()));
        }
        (histogram.min, histogram.max) = (exact.min, exact.max);
        (histogram.sum, histogram.sum_squares) = (exact.sum, exact.sum_squares);
        Ok(histogram)
    }

    fn touched(&self) -> std::ops::Range<usize> {
        if self.count == 0 { 0..0 } else { index_of(self.min)..index_of(self.max) + 1 }
    }
}

impl SparseHistogram {
    /// Adds everything that `other` counted, as if both had been one histogram from the start.
    pub fn merge(&mut self, other: &SparseHistogram) {
        let mut cells = Vec::with_capacity(self.cells.len().max(other.cells.len()));
        let (mut ours, mut theirs) = (self.places().peekable(), other.places().peekable());
        let mut last = None;
        loop {
            let (at, count) = match (ours.peek().copied(), theirs.peek().copied()) {
                (None, None) => break,
                (Some((at, count)), Some((same, more))) if at == same => {
                    ours.next();
                    theirs.next();
                    (at, count.saturating_add(more))
                }
                (Some(first), Some(second)) if first.0 < second.0 => {
                    ours.next();
                    first
                }
                (Some(first), None) => {
                    ours.next();
                    first
                }
                (_, Some(first)) => {
                    theirs.next();
                    first
                }
            };
            let gap = last.map_or(0, |last| at - last - 1);
            cells.push((gap as u32, count));
            last = Some(at);
        }
        drop((ours, theirs));
        self.cells = cells;
        let (exact, more) = (&mut self.exact, &other.exact);
        exact.count = exact.count.saturating_add(more.count);
        exact.min = exact.min.min(more.min);
        exact.max = exact.max.max(more.max);
        exact.sum = exact.sum.saturating_add(more.sum);
        exact.sum_squares = exact.sum_squares.saturating_add(more.sum_squares);
    }

    /// The cells that were counted in, in their order, by their places in a histogram's table.
    fn places(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut at = index_of(self.exact.min.min(HIGHEST));
        self.cells.iter().enumerate().map(move |(place, (gap, count))| {
            at += *gap as usize + usize::from(place > 0);
            (at, *count)
        })
    }
}

impl Moments {
    /// Mean in nanoseconds; `None` when there is no value.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Standard deviation of these values (not an estimate for others) in nanoseconds; `None` when there is no value.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let count = u128::from(self.count);
        // Exact in whole numbers where they fit, because the difference of two large means would lose every digit.
        let spread = match (self.sum_squares.checked_mul(count), self.sum.checked_mul(self.sum)) {
            (Some(squares), Some(square)) => {
                squares.saturating_sub(square) as f64 / (count as f64 * count as f64)
            }
            _ => self.sum_squares as f64 / count as f64 - mean * mean,
        };
        Some(libm::sqrt(spread.max(0.0)))
    }

    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_squares = self.sum_squares.saturating_add(u128::from(value) * u128::from(value));
    }

    /// Adds what `other` knows.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }
}

/// The rank that a quantile means among `count` values: ceil(quantile * count), at least 1, where a product that is a
/// whole number but for rounding is that number.
pub fn rank(quantile: f64, count: u64) -> u64 {
    let product = quantile.clamp(0.0, 1.0) * count as f64;
    let whole = libm::round(product);
    let rank = if libm::fabs(product - whole) <= whole * 1e-12 { whole } else { libm::ceil(product) };
    (rank as u64).clamp(1, count.max(1))
}

impl Default for Moments {
    fn default() -> Moments {
        Moments { count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 }
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Clone for Histogram {
    fn clone(&self) -> Histogram {
        let mut copy = Histogram::new();
        copy.merge(self);
        copy
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.moments() == other.moments() && self.cells[self.touched()] == other.cells[other.touched()]
    }
}

impl Eq for Histogram {}

impl fmt::Debug for Histogram {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Histogram({:?})", self.moments())
    }
}

impl fmt::Display for NotAHistogram {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not a histogram in HdrHistogram's V2 encoding: {}", self.0)
    }
}

impl std::error::Error for NotAHistogram {}

/// A histogram as it is saved: the cells in the common encoding, the exact figures beside it.
#[derive(Serialize, Deserialize)]
struct Saved {
    exact: Moments,
    v2: String,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Saved { exact: self.moments(), v2: self.to_base64() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        Histogram::from_parts(&saved.v2, saved.exact).map_err(D::Error::custom)
    }
}

/// Whole numbers of 128 bits as decimal text, since not every data format and reader has numbers of that size.
mod wide {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

    /// Values of all magnitudes, each as likely as the other.
    fn values() -> impl Strategy<Value = Vec<Nanos>> {
        vec((any::<u64>(), 1u32..64).prop_map(|(word, assignment)| word >> assignment), 1..200)
    }

    fn of(values: &[Nanos]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    fn oracle(values: &[Nanos]) -> hdrhistogram::Histogram<u64> {
        let mut oracle = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST, 3).unwrap();
        values.iter().for_each(|value| oracle.record(*value).unwrap());
        oracle
    }

    #[test]
    fn cells_follow_each_other_without_gap_and_are_never_wider_than_a_thousandth() {
        let mut next = 0;
        for index in 0..CELLS {
            assert_eq!(lowest_of(index), next, "cell {index}");
            assert_eq!(index_of(lowest_of(index)), index);
            assert_eq!(index_of(highest_of(index)), index);
            assert!((highest_of(index) - lowest_of(index)) as f64 <= lowest_of(index) as f64 / 1000.0);
            next = highest_of(index) + 1;
        }
        assert_eq!(next, HIGHEST + 1);
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
        fn merged_ways_to_another_process_equal_one_that_recorded_everything(one in values(), another in values()) {
            let mut merged = of(&one).to_sparse();
            merged.merge(&of(&another).to_sparse());
            let together = of(&[one, another].concat()).to_sparse();
            prop_assert_eq!(&merged, &together);
            merged.merge(&Histogram::new().to_sparse());
            prop_assert_eq!(&merged, &together);
            let mut empty = Histogram::new().to_sparse();
            empty.merge(&together);
            prop_assert_eq!(&empty, &together);
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
        fn nothing_is_lost_on_the_way_through_json(values in values()) {
            let histogram = of(&values);
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }

        #[test]
        fn nothing_is_lost_on_the_way_to_another_process(one in values(), another in values()) {
            let mut merged = of(&one);
            let text = serde_json::to_string(&of(&another).to_sparse()).unwrap();
            merged.merge_sparse(&serde_json::from_str(&text).unwrap()).unwrap();
            let together = of(&[one, another].concat());
            prop_assert_eq!(&merged, &together);
            prop_assert!(merged.cells().eq(together.cells()));
        }

        #[test]
        fn no_cells_from_another_process_make_it_panic(
            values in values(), at in 0..200usize, gap in any::<u32>(), count in any::<u64>(), end in any::<u64>()
        ) {
            let mut sparse = of(&values).to_sparse();
            sparse.exact.max = end;
            prop_assert!(end == *values.iter().max().unwrap() || Histogram::new().merge_sparse(&sparse).is_err()
                || index_of(end.min(HIGHEST)) == index_of(of(&values).max));
            let cells = sparse.cells.len();
            sparse.cells[at % cells] = (gap, count);
            let _ = Histogram::new().merge_sparse(&sparse);
        }

        #[test]
        fn the_library_and_its_encoding_get_the_same_cells_and_give_them_back(values in values()) {
            let histogram = of(&values);
            prop_assert_eq!(&histogram.to_hdr(), &oracle(&values));
            prop_assert!(Histogram::from_hdr(&histogram.to_hdr()).cells().eq(histogram.cells()));
            let back = Histogram::from_base64(&histogram.to_base64()).unwrap();
            prop_assert!(back.cells().eq(histogram.cells()));
        }

        #[test]
        fn no_text_makes_the_decoder_panic(text in "[A-Za-z0-9+/]{0,64}", bytes in vec(any::<u8>(), 0..64)) {
            let _ = Histogram::from_base64(&text);
            prop_assert!(Histogram::from_base64(&STANDARD.encode(bytes)).is_err());
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
    fn an_empty_histogram_has_no_quantile_and_survives_the_encoding() {
        let empty = Histogram::new();
        assert_eq!(empty.quantile(0.5), None);
        assert_eq!(empty.at_ranks([0, 1, 2]), [None; 3]);
        assert_eq!(empty.moments().mean_ns(), None);
        assert_eq!(empty.moments().stddev_ns(), None);
        assert_eq!(Histogram::from_base64(&empty.to_base64()).unwrap(), empty);
        let text = serde_json::to_string(&empty).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), empty);
    }

    #[test]
    fn exact_figures_that_belong_to_another_histogram_are_refused() {
        let exact = of(&[1, 2, 3]).moments();
        let v2 = of(&[1_000_000, 2, 3]).to_base64();
        assert!(Histogram::from_parts(&v2, exact).is_err());
        assert!(
            Histogram::from_parts(&v2, Moments { count: 4, ..of(&[2, 3, 1_000_000]).moments() }).is_err()
        );
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
}
