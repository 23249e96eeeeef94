//! A histogram on its way to another process.

use serde::{Deserialize, Serialize};

use super::Histogram;
use super::cells::{HIGHEST, index_of};
use super::coarse::CoarseHistogram;
use super::encoding::NotAHistogram;
use super::moments::Moments;

/// A histogram on its way to another process: the cells that were counted in, and what is exact. Where it is read, its figures are
/// compared with its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct SparseHistogram {
    exact: Moments,
    /// Each cell that was counted in: the number of cells between it and the one before, and its count.
    cells: Vec<(u32, u64)>,
}

/// A sparse histogram as another process has written it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    exact: Moments,
    cells: Vec<(u32, u64)>,
}

impl TryFrom<Unchecked> for SparseHistogram {
    type Error = NotAHistogram;

    fn try_from(Unchecked { exact, cells }: Unchecked) -> Result<SparseHistogram, NotAHistogram> {
        let wrong = |what: &str| NotAHistogram(what.to_owned());
        let sparse = SparseHistogram { exact, cells };
        if sparse == SparseHistogram::default() {
            return Ok(sparse);
        }
        if exact.min > exact.max || exact.max > HIGHEST {
            return Err(wrong("its least and its greatest value cannot be"));
        }
        let last = index_of(exact.max);
        let mut count = 0u64;
        for (at, more) in sparse.places() {
            count = count.checked_add(more).ok_or_else(|| wrong("it has too many values"))?;
            if at > last {
                return Err(wrong("it has cells beyond its greatest value"));
            }
        }
        let ends = sparse.places().last().map(|(at, _)| at);
        if count != exact.count || ends != Some(last) || sparse.cells.first().is_some_and(|(gap, _)| *gap > 0)
        {
            return Err(wrong("the exact figures do not belong to it"));
        }
        Ok(sparse)
    }
}

impl Histogram {
    /// The histogram in the form that is sent to another process.
    pub fn to_sparse(&self) -> SparseHistogram {
        let mut cells = Vec::new();
        let mut gap = 0;
        for cell in self.touched_cells() {
            match cell {
                0 => gap += 1,
                count => cells.push((std::mem::take(&mut gap), *count)),
            }
        }
        SparseHistogram { exact: self.moments(), cells }
    }

    /// Adds everything that a histogram of another process counted, as if it had been recorded here.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        let SparseHistogram { exact, cells } = other;
        if cells.is_empty() {
            return;
        }
        let table = self.table(index_of(exact.max));
        for (at, count) in other.places() {
            table[at] = table[at].saturating_add(count);
        }
        self.count = self.count.saturating_add(exact.count);
        self.min = self.min.min(exact.min);
        self.max = self.max.max(exact.max);
        self.sum = self.sum.saturating_add(exact.sum);
        self.sum_squares = self.sum_squares.saturating_add(exact.sum_squares);
    }
}

impl SparseHistogram {
    /// Adds everything that a histogram of this process counted.
    pub fn add(&mut self, histogram: &Histogram) {
        self.merge(&histogram.to_sparse());
    }

    /// Adds everything that `other` counted, as if both had been one histogram from the start.
    pub fn merge(&mut self, other: &SparseHistogram) {
        let mut places: Vec<(usize, u64)> = self.places().chain(other.places()).collect();
        // A stable sort takes the two ascending runs for what they are, and merges them.
        places.sort_by_key(|(at, _)| *at);
        places.dedup_by(|more, kept| {
            let is_same = more.0 == kept.0;
            kept.1 = if is_same { kept.1.saturating_add(more.1) } else { kept.1 };
            is_same
        });
        let mut next = places.first().map_or(0, |(at, _)| *at);
        let cells =
            places.iter().map(|(at, count)| ((at - std::mem::replace(&mut next, at + 1)) as u32, *count));
        self.cells = cells.collect();
        self.exact.merge(&other.exact);
    }

    /// Adds these counts to a coarse histogram.
    pub fn fold_into(&self, coarse: &mut CoarseHistogram) {
        self.places().for_each(|(at, count)| coarse.add_fine_cell(at, count));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::tests::{of, values};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
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
        fn nothing_is_lost_on_the_way_to_another_process(one in values(), another in values()) {
            let mut merged = of(&one);
            let text = serde_json::to_string(&of(&another).to_sparse()).unwrap();
            merged.merge_sparse(&serde_json::from_str(&text).unwrap());
            let together = of(&[one, another].concat());
            prop_assert_eq!(&merged, &together);
            prop_assert!(merged.cells().eq(together.cells()));
        }

        #[test]
        fn no_cells_from_another_process_make_it_panic(
            values in values(), at in 0..200usize, gap in any::<u32>(), count in any::<u64>(), end in any::<u64>()
        ) {
            let SparseHistogram { exact, cells } = of(&values).to_sparse();
            let checked = |end: u64, cells: &[(u32, u64)]| {
                SparseHistogram::try_from(Unchecked { exact: Moments { max: end, ..exact }, cells: cells.to_vec() })
            };
            prop_assert!(checked(exact.max, &cells).is_ok());
            prop_assert!(checked(end, &cells).is_err() || index_of(end.min(HIGHEST)) == index_of(exact.max));
            let mut others = cells.clone();
            others[at % cells.len()] = (gap, count);
            if let Ok(sparse) = checked(end, &others) {
                Histogram::new().merge_sparse(&sparse);
            }
        }
    }
}
