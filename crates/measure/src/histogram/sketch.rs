//! A histogram folded to 8 cells for each doubling, small enough for every interval of a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{HIGHEST, Histogram};
use pummel_logic::time::Nanos;

/// log2 of the cells of each doubling.
const BITS: u32 = 3;

/// Cells of each doubling.
const PER_DOUBLING: usize = 1 << BITS;

/// The counts of a histogram by coarse cell. Cell k below 8 holds the value k alone; from there on cell 8 (e - 2) + m holds the
/// values from (8 + m) 2^(e-3) up to the next cell, for e from 3 on and m from 0 to 7. It is written as a list: the first
/// cell that holds something, and the counts from there on to the last one that does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    first: usize,
    counts: Vec<u64>,
}

impl Sketch {
    /// The cell of a value.
    pub fn cell_of(value: Nanos) -> usize {
        if value < PER_DOUBLING as u64 {
            return value as usize;
        }
        let doubling = value.ilog2();
        let place = (value >> (doubling - BITS)) as usize & (PER_DOUBLING - 1);
        (doubling - BITS + 1) as usize * PER_DOUBLING + place
    }

    /// The least value of a cell.
    pub fn lowest_of(cell: usize) -> Nanos {
        let (doublings, place) = (cell / PER_DOUBLING, cell % PER_DOUBLING);
        match doublings.checked_sub(1) {
            None => place as Nanos,
            Some(shift) => ((PER_DOUBLING + place) as Nanos).checked_shl(shift as u32).unwrap_or(Nanos::MAX),
        }
    }

    /// Adds everything that a histogram holds. Its cells are parts of these, so that no count is in a wrong one.
    pub fn add(&mut self, histogram: &Histogram) {
        let moments = histogram.moments();
        if moments.count > 0 {
            self.reach(Sketch::cell_of(moments.min), Sketch::cell_of(moments.max));
        }
        for (lowest, _, count) in histogram.cells() {
            self.add_at(Sketch::cell_of(lowest), count);
        }
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Sketch) {
        if !other.counts.is_empty() {
            self.reach(other.first, other.first + other.counts.len() - 1);
        }
        for (place, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.add_at(other.first + place, *count);
        }
    }

    /// Makes room for these cells and those between them, and for no others: a run keeps thousands of sketches.
    fn reach(&mut self, first: usize, last: usize) {
        let had = self.counts.len();
        let (old_first, old_end) = if had == 0 { (first, first) } else { (self.first, self.first + had) };
        let (new_first, new_end) = (old_first.min(first), old_end.max(last + 1));
        if new_end - new_first > had {
            let mut counts = Vec::with_capacity(new_end - new_first);
            counts.resize(old_first - new_first, 0);
            counts.append(&mut self.counts);
            counts.resize(new_end - new_first, 0);
            (self.first, self.counts) = (new_first, counts);
        }
    }

    fn add_at(&mut self, cell: usize, count: u64) {
        let held = &mut self.counts[cell - self.first];
        *held = held.saturating_add(count);
    }

    /// Number of counted values.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The cells that hold something: least value, least value of the next cell, count.
    pub fn cells(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(place, count)| {
            let cell = self.first + place;
            (Sketch::lowest_of(cell), Sketch::lowest_of(cell + 1), *count)
        })
    }

    /// The upper end of the cell that holds a quantile of these values and of `beyond` greater ones, at most 12.5 % above
    /// it. `None` where the quantile is one of the greater ones, and where there is no value.
    pub fn quantile(&self, quantile: f64, beyond: u64) -> Option<Nanos> {
        let rank = super::rank(quantile, self.count().saturating_add(beyond));
        let mut sum = 0_u64;
        self.cells().find_map(|(_, end, count)| {
            sum = sum.saturating_add(count);
            (sum >= rank).then_some(end)
        })
    }
}

impl Serialize for Sketch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let first = (!self.counts.is_empty()).then_some(self.first as u64);
        serializer.collect_seq(first.into_iter().chain(self.counts.iter().copied()))
    }
}

impl<'de> Deserialize<'de> for Sketch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sketch, D::Error> {
        use serde::de::Error;
        let mut numbers = Vec::<u64>::deserialize(deserializer)?;
        if numbers.is_empty() {
            return Ok(Sketch::default());
        }
        let counts = numbers.split_off(1);
        let last = Sketch::cell_of(HIGHEST);
        let first = usize::try_from(numbers[0]).unwrap_or(usize::MAX);
        if first.saturating_add(counts.len()) > last + 1 || counts.is_empty() {
            return Err(D::Error::custom(format!(
                "the counts of cells from 0 to {last}, after the first cell, are expected"
            )));
        }
        Ok(Sketch { first, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_follow_each_other_and_hold_their_values() {
        for cell in 0..Sketch::cell_of(HIGHEST) {
            let (lowest, next) = (Sketch::lowest_of(cell), Sketch::lowest_of(cell + 1));
            assert!(lowest < next, "cell {cell}");
            assert_eq!((Sketch::cell_of(lowest), Sketch::cell_of(next - 1)), (cell, cell));
            assert!(lowest < 8 || (next - lowest) as f64 / lowest as f64 <= 0.125, "cell {cell}");
        }
    }

    #[test]
    fn folding_loses_no_value_and_its_order_does_not_matter() {
        let (mut one, mut other, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for i in 1..2_000_u64 {
            let value = i * i * 37 % 90_000_000;
            both.record(value);
            if i % 3 == 0 { one.record(value) } else { other.record(value) }
        }
        let sketch = |of: &[&Histogram]| {
            let mut sketch = Sketch::default();
            of.iter().for_each(|histogram| sketch.add(histogram));
            sketch
        };
        let mut merged = sketch(&[&other]);
        merged.merge(&sketch(&[&one]));
        assert_eq!(merged, sketch(&[&both]));
        assert_eq!(merged.count(), both.count());
        for quantile in [0.01, 0.5, 0.99, 1.0] {
            let (coarse, fine) = (merged.quantile(quantile, 0).unwrap(), both.quantile(quantile).unwrap());
            assert!(
                coarse as f64 >= fine as f64 * 0.998 && coarse as f64 <= fine as f64 * 1.13,
                "{quantile}: {coarse} {fine}"
            );
        }
        assert_eq!(merged.quantile(0.99, both.count()), None);
    }

    #[test]
    fn a_sketch_has_room_for_the_cells_that_it_was_given_and_for_no_others() {
        let of = |values: &[Nanos]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let mut sketch = Sketch::default();
            sketch.add(&histogram);
            sketch
        };
        let mut sketch = of(&[5_000, 9_000, 70_000]);
        for more in [of(&[]), of(&[8_000]), of(&[1_000_000]), of(&[300, 40_000_000]), of(&[HIGHEST])] {
            sketch.merge(&more);
            let cells = sketch.counts.len();
            assert_eq!(sketch.counts.capacity(), cells);
            assert!(
                sketch.counts.first() > Some(&0) && sketch.counts.last() > Some(&0),
                "{:?}",
                sketch.counts
            );
        }
        assert_eq!((sketch.count(), of(&[]).counts.capacity()), (8, 0));
    }

    #[test]
    fn a_sketch_is_written_as_a_list_and_wrong_lists_are_refused() {
        let mut histogram = Histogram::new();
        [9, 9, 11].into_iter().for_each(|value| histogram.record(value));
        let mut sketch = Sketch::default();
        sketch.add(&histogram);
        let text = serde_json::to_string(&sketch).unwrap();
        assert_eq!(text, "[9,2,0,1]");
        assert_eq!(serde_json::from_str::<Sketch>(&text).unwrap(), sketch);
        assert_eq!(serde_json::from_str::<Sketch>("[]").unwrap(), Sketch::default());
        for wrong in ["[5]", "[18446744073709551615,1]", "[100000,1]", "[-1,2]", "{}"] {
            assert!(serde_json::from_str::<Sketch>(wrong).is_err(), "{wrong}");
        }
    }
}
