//! A histogram of nanoseconds; recording into it takes a few of them.
//!
//! The layout is that of HdrHistogram with three significant digits and a lowest value of 1: values below 2,048 have a
//! cell each, and every doubling above has 1,024 cells, so that a cell is never wider than 0.1 % of its values. The
//! table reaches to 2^63 - 1. It takes memory with its first value, or with [`Histogram::reserve`], at first for values below
//! 2^36 (68 s), and for all with the first one that is greater; pages that no value falls into are never touched.

mod cells;
mod coarse;
mod encoding;
mod forms;
mod moments;
mod sketch;
mod sparse;
mod sums;

use std::fmt;

use self::cells::{CELLS, CELLS_AT_FIRST, highest_of, index_of, lowest_of};
use pummel_logic::time::Nanos;

pub use self::cells::HIGHEST;
pub use self::coarse::CoarseHistogram;
pub use self::encoding::NotAHistogram;
pub use self::moments::Moments;
pub(crate) use self::moments::wide;
pub use self::sketch::Sketch;
pub use self::sparse::SparseHistogram;
pub use self::sums::{CellSum, CellSums};

/// Counts of values, with count, least, greatest, sum and sum of squares kept exactly beside them.
pub struct Histogram {
    /// Empty until a first value is counted, and half of the table until a value is 2^36 or greater: most histograms of a run
    /// stay empty, and a table of zeros is dear where the allocator has to write it.
    cells: Vec<u64>,
    count: u64,
    /// The least value, which is also in the first touched cell; `u64::MAX` when nothing was recorded.
    min: Nanos,
    /// The greatest value, which is also in the last touched cell.
    max: Nanos,
    sum: u128,
    sum_squares: u128,
}

/// The sum of the squares of values up to this one fits into 128 bits for any number of them that fits into memory.
const SMALL: Nanos = (1 << 40) - 1;

/// Cells that share a page of memory.
const PAGE: usize = 512;

impl Histogram {
    /// An empty histogram, which has no table yet.
    pub fn new() -> Histogram {
        Histogram { cells: Vec::new(), count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 }
    }

    /// Takes the memory of the table for values below 2^36, so that recording such a value allocates nothing.
    pub fn reserve(&mut self) {
        self.table(0);
    }

    /// The table, which has the cell `index` at least.
    #[inline(always)]
    fn table(&mut self, index: usize) -> &mut [u64] {
        if index >= self.cells.len() {
            self.reach(index);
        }
        &mut self.cells
    }

    /// Adds to the cell `index`.
    #[inline(always)]
    fn add(&mut self, index: usize, count: u64) {
        match self.cells.get_mut(index) {
            Some(cell) => *cell += count,
            None => self.table(index)[index] += count,
        }
    }

    /// Allocates a table that has the cell `index`. It is not inlined, so that recording stays small.
    #[cold]
    #[inline(never)]
    fn reach(&mut self, index: usize) {
        // A new one, because memory that is asked for as zeroed is not touched.
        let mut cells = vec![0; if index < CELLS_AT_FIRST { CELLS_AT_FIRST } else { CELLS }];
        let touched = self.touched();
        cells[touched.clone()].copy_from_slice(&self.cells[touched]);
        self.cells = cells;
    }

    /// Counts `value` once.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let value = value.min(HIGHEST);
        self.add(index_of(value), 1);
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
        self.add(index_of(value), count);
        self.count += count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(count);
        let squares = (u128::from(value) * u128::from(value)).saturating_mul(u128::from(count));
        self.sum_squares = self.sum_squares.saturating_add(squares);
    }

    /// Counts each of `values` once, at half the price of recording them one by one: the exact figures are brought up to
    /// date once for all of them.
    pub fn record_all(&mut self, values: &[Nanos]) {
        // Waits and lags are often all 0.
        let all = values.iter().fold(0, |all, value| all | value);
        if all == 0 {
            return self.record_many(0, values.len() as u64);
        }
        self.record_each(values, all, |_, _| {});
    }

    /// Counts each of `values` once, and hands the place of each in `values` and its cell to `on`. `all` has the bits of
    /// all values.
    #[inline(always)]
    fn record_each(&mut self, values: &[Nanos], all: Nanos, mut on: impl FnMut(usize, usize)) {
        if all > SMALL {
            for (at, &value) in values.iter().enumerate() {
                self.record(value);
                on(at, index_of(value.min(HIGHEST)));
            }
            return;
        }
        let (mut min, mut max) = (self.min, self.max);
        let (mut sum, mut sum_squares) = (0u128, 0u128);
        // The value that has the bits of all of them is no less than any of them.
        let table = self.table(index_of(all));
        for (at, &value) in values.iter().enumerate() {
            let cell = index_of(value);
            table[cell] += 1;
            on(at, cell);
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
        if other.count == 0 {
            return;
        }
        let touched = other.touched();
        let table = self.table(touched.end - 1);
        for (cell, more) in table[touched].iter_mut().zip(other.touched_cells()) {
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

    /// Makes the histogram empty; only pages with counts are written.
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

    /// The figures that are known exactly.
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
    /// Panics when the ranks do not ascend.
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
        let start = self.touched().start;
        self.touched_cells()
            .iter()
            .enumerate()
            .filter(|(_, count)| **count != 0)
            .map(move |(at, count)| (lowest_of(start + at), highest_of(start + at), *count))
    }

    fn touched(&self) -> std::ops::Range<usize> {
        if self.count == 0 { 0..0 } else { index_of(self.min)..index_of(self.max) + 1 }
    }

    /// The cells from the least value to the greatest.
    fn touched_cells(&self) -> &[u64] {
        &self.cells[self.touched()]
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
        self.moments() == other.moments() && self.touched_cells() == other.touched_cells()
    }
}

impl Eq for Histogram {}

impl fmt::Debug for Histogram {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Histogram({:?})", self.moments())
    }
}

#[cfg(test)]
mod tests;
