//! The forms of a histogram as fields of structs that are merged.

use pummel_logic::merge::{Clear, Merge};

use super::{CellSums, CoarseHistogram, Histogram, Moments, Sketch, SparseHistogram};

/// Lets the forms of a histogram be fields of structs that are merged.
macro_rules! merges {
    ($($Own:ty, $Other:ty: $by:path;)*) => {$(
        impl Merge<$Other> for $Own {
            fn merge(&mut self, other: &$Other) {
                $by(self, other);
            }
        }
    )*};
}

merges! {
    Histogram, Histogram: Histogram::merge;
    Histogram, SparseHistogram: Histogram::merge_sparse;
    SparseHistogram, SparseHistogram: SparseHistogram::merge;
    SparseHistogram, Histogram: SparseHistogram::add;
    CoarseHistogram, CoarseHistogram: CoarseHistogram::merge;
    Sketch, Sketch: Sketch::merge;
    CellSums, CellSums: CellSums::merge;
    Moments, Moments: Moments::merge;
}

impl Clear for Histogram {
    fn clear(&mut self) {
        Histogram::clear(self);
    }
}

impl Clear for CellSums {
    fn clear(&mut self) {
        CellSums::clear(self);
    }
}
