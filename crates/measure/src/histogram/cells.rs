//! The layout of a histogram's table: the cell of each value in nanoseconds.

use pummel_logic::time::Nanos;

/// Greatest value that can be recorded; greater ones are recorded as this one. 292 years.
pub const HIGHEST: Nanos = (1 << 63) - 1;

/// log2 of the number of cells for each doubling.
const HALF_BITS: u32 = 10;
/// Cells for each doubling; the values up to 2,047 have a cell each.
const HALF: usize = 1 << HALF_BITS;
/// The greatest value that has a cell of its own.
const FINE: u64 = 2 * HALF as u64 - 1;
/// Number of cells of a whole table.
pub(super) const CELLS: usize = index_of(HIGHEST) + 1;
/// Number of cells for values below 2^36 (68 s).
pub(super) const CELLS_AT_FIRST: usize = index_of((1 << 36) - 1) + 1;

/// Number of doublings that `value` lies above the values with a cell each.
#[inline]
const fn doublings(value: Nanos) -> u32 {
    (63 - HALF_BITS) - (value | FINE).leading_zeros()
}

/// The cell of `value`, which is at most [`HIGHEST`].
#[inline]
pub(super) const fn index_of(value: Nanos) -> usize {
    let doublings = doublings(value);
    ((doublings as usize) << HALF_BITS) + (value >> doublings) as usize
}

/// The least value of cell `index`.
pub(super) fn lowest_of(index: usize) -> Nanos {
    if index < 2 * HALF {
        return index as u64;
    }
    let doublings = (index >> HALF_BITS) - 1;
    ((index & (HALF - 1)) as u64 + HALF as u64) << doublings
}

/// The greatest value of cell `index`.
pub(super) fn highest_of(index: usize) -> Nanos {
    lowest_of(index) + ((1 << doublings(lowest_of(index))) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
