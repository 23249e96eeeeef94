//! A histogram with 32 cells for each doubling: small enough for every time window of a run, and an exact fold of the
//! fine one.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cells::{CELLS, highest_of, index_of, lowest_of};
use super::encoding::NotAHistogram;
use super::{Histogram, rank};
use pummel_logic::time::Nanos;

/// log2 of the number of fine cells in a coarse one.
const FOLD_BITS: u32 = 5;

/// Number of cells of a whole table.
const COARSE_CELLS: usize = ((CELLS - 1) >> FOLD_BITS) + 1;

/// Counts of values in coarse cells, over the range that was touched. They take 32 bits each, since every window of a run has them;
/// the few that grow beyond that carry over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct CoarseHistogram {
    /// Number of the first cell.
    first: u32,
    /// Counts from the first cell on, modulo 2^32.
    counts: Vec<u32>,
    /// Number of times that the count of a cell reached 2^32, by the number of the cell; only of cells where it did.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    carries: BTreeMap<u32, u32>,
}

/// A coarse histogram as another process has written it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    first: u32,
    counts: Vec<u32>,
    #[serde(default)]
    carries: BTreeMap<u32, u32>,
}

/// Only what could have been made by folding a fine histogram is read, so that its numbers ask for no memory beyond that of a whole
/// table.
impl TryFrom<Unchecked> for CoarseHistogram {
    type Error = NotAHistogram;

    fn try_from(Unchecked { first, counts, carries }: Unchecked) -> Result<CoarseHistogram, NotAHistogram> {
        let cells = first as usize..first as usize + counts.len();
        if cells.end > COARSE_CELLS || !carries.keys().all(|cell| cells.contains(&(*cell as usize))) {
            return Err(NotAHistogram("it has cells beyond the table".to_owned()));
        }
        Ok(CoarseHistogram { first, counts, carries })
    }
}

impl CoarseHistogram {
    /// The cell that counts `value`.
    pub fn cell_of(value: Nanos) -> usize {
        index_of(value.min(super::HIGHEST)) >> FOLD_BITS
    }

    /// The cell of the value at a rank of `fine`, where rank 1 is the least, and the share of that cell's values in
    /// `fine` beyond the rank; `None` where there are fewer values.
    pub fn cut_at(fine: &Histogram, rank: u64) -> Option<(usize, f64)> {
        let cell = CoarseHistogram::cell_of(fine.at_rank(rank)?);
        let (mut within, mut until) = (0u64, 0u64);
        for (index, count) in fine.touched().zip(fine.touched_cells()) {
            match (index >> FOLD_BITS).cmp(&cell) {
                Ordering::Less => until += *count,
                Ordering::Equal => (within, until) = (within + *count, until + *count),
                Ordering::Greater => break,
            }
        }
        let beyond = until.saturating_sub(rank);
        Some((cell, (beyond as f64 / within.max(1) as f64).min(1.0)))
    }

    /// Counts a value.
    pub fn record(&mut self, value: Nanos) {
        let cell = CoarseHistogram::cell_of(value);
        self.reach(cell, cell);
        let count = &mut self.counts[cell - self.first as usize];
        let (sum, is_full) = count.overflowing_add(1);
        *count = sum;
        if is_full {
            self.carry(cell, 1);
        }
    }

    /// The greatest value of the cell that a quantile from 0 to 1 falls into, which is within 3 % of the value; `None` where
    /// nothing was counted.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        let wanted = rank(quantile, self.count());
        let mut passed = 0;
        let (cell, _) = self.cells().find(|(_, count)| {
            passed += count;
            passed >= wanted
        })?;
        let last = ((cell + 1) << FOLD_BITS) - 1;
        Some(highest_of(last.min(CELLS - 1)))
    }

    /// Adds everything that a fine histogram counted.
    pub fn add(&mut self, fine: &Histogram) {
        let touched = fine.touched();
        if touched.is_empty() {
            return;
        }
        self.reach(touched.start >> FOLD_BITS, (touched.end - 1) >> FOLD_BITS);
        for (index, count) in touched.zip(fine.touched_cells()) {
            if *count != 0 {
                self.add_to(index >> FOLD_BITS, *count);
            }
        }
    }

    /// Adds a count of the fine cell of this number.
    pub(super) fn add_fine_cell(&mut self, index: usize, count: u64) {
        let cell = index >> FOLD_BITS;
        self.reach(cell, cell);
        self.add_to(cell, count);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &CoarseHistogram) {
        if other.counts.is_empty() {
            return;
        }
        let first = other.first as usize;
        self.reach(first, first + other.counts.len() - 1);
        other.cells().for_each(|(cell, more)| self.add_to(cell, more));
    }

    /// Adds to the count of a cell within the range.
    #[inline]
    fn add_to(&mut self, cell: usize, more: u64) {
        let count = &mut self.counts[cell - self.first as usize];
        let sum = u64::from(*count).saturating_add(more);
        *count = sum as u32;
        if sum > u64::from(u32::MAX) {
            self.carry(cell, (sum >> 32) as u32);
        }
    }

    /// Notes that the count of a cell reached 2^32, this many times.
    #[cold]
    fn carry(&mut self, cell: usize, times: u32) {
        let carried = self.carries.entry(cell as u32).or_default();
        *carried = carried.saturating_add(times);
    }

    /// The cells of the range, with their counts.
    fn cells(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut carries = self.carries.iter().peekable();
        (self.first as usize..).zip(&self.counts).map(move |(cell, count)| {
            let carried = carries.next_if(|(carried, _)| **carried as usize == cell);
            (cell, u64::from(*count) + carried.map_or(0, |(_, times)| u64::from(*times) << 32))
        })
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count_from(0)
    }

    /// Number of values in the cells from this one on.
    fn count_from(&self, cell: usize) -> u64 {
        let from = cell.saturating_sub(self.first as usize).min(self.counts.len());
        let low: u64 = self.counts[from..].iter().map(|count| u64::from(*count)).sum();
        let carries = self.carries.range(cell as u32..).map(|(_, times)| u64::from(*times) << 32);
        carries.fold(low, u64::saturating_add)
    }

    /// Memory of the cells.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }

    /// Number of values in one cell.
    pub fn in_cell(&self, cell: usize) -> u64 {
        let at = cell.checked_sub(self.first as usize);
        let count = at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0);
        u64::from(count) + (u64::from(self.carries.get(&(cell as u32)).copied().unwrap_or(0)) << 32)
    }

    /// Number of values in the cells after this one.
    pub fn after_cell(&self, cell: usize) -> u64 {
        self.count_from(cell + 1)
    }

    /// Number of values above `value`, whose cell is divided in the proportion in which `value` divides it in `fine`.
    pub fn above(&self, value: Nanos, fine: &Histogram) -> f64 {
        let cell = CoarseHistogram::cell_of(value);
        let fine_cells = |from: usize| (from.max(cell << FOLD_BITS))..(cell + 1) << FOLD_BITS;
        let count = |range: std::ops::Range<usize>| {
            range.filter_map(|index| fine.cells.get(index)).map(|count| *count as f64).sum::<f64>()
        };
        let (within, above) =
            (count(fine_cells(0)), count(fine_cells(index_of(value.min(super::HIGHEST)) + 1)));
        let share = if within > 0.0 { above / within } else { 0.0 };
        self.after_cell(cell) as f64 + share * self.in_cell(cell) as f64
    }

    /// The cell in which this number of values ends, and the share of its values up to there; `None` where there are fewer.
    fn end_of(&self, values: f64) -> Option<(usize, f64)> {
        let mut before = 0.0;
        let mut cells = self.cells().map(|(cell, count)| (cell, count as f64));
        cells.find_map(|(cell, count)| {
            let share = (values - before).max(0.0) / count;
            before += count;
            (count > 0.0 && before >= values).then_some((cell, share))
        })
    }

    /// The cell in which this number of values ends, and the share of its values beyond them.
    pub fn cut(&self, values: f64) -> (usize, f64) {
        let end = self.first as usize + self.counts.len();
        self.end_of(values).map_or((end, 0.0), |(cell, share)| (cell, 1.0 - share))
    }

    /// The value below which so many values lie, as if the values of a cell were spread evenly over it, in nanoseconds;
    /// `None` where there are fewer.
    pub fn interpolated(&self, values: f64) -> Option<f64> {
        let (cell, share) = self.end_of(values)?;
        let (low, next) = (lowest_of(cell << FOLD_BITS), lowest_of((cell + 1) << FOLD_BITS));
        Some(low as f64 + share * (next - low) as f64)
    }

    /// Makes room for the cells from `first` to `last`.
    fn reach(&mut self, first: usize, last: usize) {
        if self.counts.is_empty() {
            self.first = first as u32;
            self.counts = vec![0; last - first + 1];
            return;
        }
        let begin = self.first as usize;
        if first < begin {
            self.counts.splice(0..0, std::iter::repeat_n(0, begin - first));
            self.first = first as u32;
        }
        let needed = last + 1 - self.first as usize;
        if needed > self.counts.len() {
            // Of all windows of a run together the memory would double.
            self.counts.reserve_exact(needed - self.counts.len());
            self.counts.resize(needed, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_counted_one_by_one_are_found_by_their_quantiles() {
        let mut histogram = CoarseHistogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        let values = [90_000, 1_000, 5, 40_000_000, 2_000_000];
        values.iter().for_each(|value| histogram.record(*value));
        assert_eq!(histogram.count(), 5);
        for (quantile, value) in [(0.2, 5.0), (0.4, 1_000.0), (0.5, 90_000.0), (0.8, 2e6), (1.0, 4e7)] {
            let found = histogram.quantile(quantile).expect("it was counted") as f64;
            assert!(found >= value && found <= value * 1.04 + 32.0, "{quantile}: {found}");
        }
        assert_eq!(histogram, {
            let mut folded = CoarseHistogram::default();
            folded.add(&fine(values));
            folded
        });
    }

    fn fine(values: impl IntoIterator<Item = Nanos>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn the_fold_counts_what_the_fine_histogram_counts_above_every_cell() {
        let values: Vec<Nanos> = (0..5_000u64).map(|i| i * i * 7 + 3).collect();
        let mut coarse = CoarseHistogram::default();
        coarse.add(&fine(values.iter().copied()));
        assert_eq!(coarse.count(), 5_000);
        for value in [0, 3, 900, 2_047, 70_000, 1_000_000, 200_000_000] {
            let cell = CoarseHistogram::cell_of(value);
            let above = values.iter().filter(|value| CoarseHistogram::cell_of(**value) > cell).count();
            let within = values.iter().filter(|value| CoarseHistogram::cell_of(**value) == cell).count();
            assert_eq!((coarse.after_cell(cell), coarse.in_cell(cell)), (above as u64, within as u64));
        }
    }

    #[test]
    fn a_cell_counts_more_than_32_bits_have_however_its_parts_came() {
        let many = u64::from(u32::MAX);
        let (mut once, mut twice) = (Histogram::new(), Histogram::new());
        once.record_many(50_000, many);
        once.record(900);
        twice.record_many(50_000, 2 * many + 1);
        twice.record_many(900, 2);
        let mut merged = CoarseHistogram::default();
        merged.add(&once);
        assert_eq!(merged.carries.len(), 0);
        merged.record(50_000);
        let mut part = CoarseHistogram::default();
        part.add(&once);
        merged.merge(&part);
        let mut whole = CoarseHistogram::default();
        whole.add(&twice);
        assert_eq!((&merged, merged.count()), (&whole, 2 * many + 3));
        let cell = CoarseHistogram::cell_of(50_000);
        assert_eq!((whole.in_cell(cell), whole.after_cell(0)), (2 * many + 1, 2 * many + 3));
        assert_eq!(whole.quantile(0.5).map(CoarseHistogram::cell_of), Some(cell));
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<CoarseHistogram>(&text).unwrap(), whole);
    }

    #[test]
    fn a_cut_divides_its_cell_as_the_values_do() {
        let values: Vec<Nanos> = (0..5_000u64).map(|i| i * i * 7 + 3).collect();
        let fine = fine(values.iter().copied());
        for rank in [1, 2, 77, 2_500, 4_990, 5_000] {
            let (cell, share) = CoarseHistogram::cut_at(&fine, rank).expect("there are as many");
            // The values ascend, so that a rank is a place among them.
            assert_eq!(cell, CoarseHistogram::cell_of(values[rank as usize - 1]), "{rank}");
            let of_cell = |values: &[Nanos]| {
                values.iter().filter(|value| CoarseHistogram::cell_of(**value) == cell).count() as f64
            };
            let expected = of_cell(&values[rank as usize..]) / of_cell(&values);
            assert!((share - expected).abs() < 1e-12, "{rank}: {share} {expected}");
        }
        assert_eq!(CoarseHistogram::cut_at(&fine, 5_001), None);
        assert_eq!(CoarseHistogram::cut_at(&Histogram::new(), 1), None);
    }

    #[test]
    fn cells_are_a_thirtysecond_of_a_doubling() {
        for value in [2_048u64, 50_000, 1_000_000, 77_000_000] {
            let cell = CoarseHistogram::cell_of(value);
            assert_eq!(CoarseHistogram::cell_of(value * 2), cell + 32, "{value}");
        }
    }

    #[test]
    fn parts_merge_in_any_order_to_the_same_counts() {
        let (low, high) = (fine([10, 2_000, 2_000]), fine([90_000, 5_000_000]));
        let (mut one, mut other, mut whole) =
            (CoarseHistogram::default(), CoarseHistogram::default(), CoarseHistogram::default());
        one.add(&low);
        one.add(&high);
        other.add(&high);
        whole.add(&low);
        whole.merge(&other);
        other.add(&low);
        assert_eq!((&one, one.count()), (&whole, 5));
        assert_eq!(one, other);
        whole.merge(&CoarseHistogram::default());
        assert_eq!(one, whole);
    }

    #[test]
    fn a_histogram_beyond_the_table_is_not_read() {
        let mut greatest = CoarseHistogram::default();
        greatest.add(&fine([u64::MAX]));
        let read =
            |text: &str| serde_json::from_str::<CoarseHistogram>(text).map_err(|error| error.to_string());
        for good in [CoarseHistogram::default(), greatest] {
            assert_eq!(read(&serde_json::to_string(&good).unwrap()), Ok(good));
        }
        for (first, carries) in [(u32::MAX, ""), (0, ",\"carries\":{\"1\":1}")] {
            let why = read(&format!("{{\"first\":{first},\"counts\":[1]{carries}}}")).unwrap_err();
            assert!(why.contains("beyond the table"), "{why}");
        }
    }
}
