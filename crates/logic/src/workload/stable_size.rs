//! Sizes that belong to the indexes of records, without a table: fixed, drawn, or at the hash of the index.

use crate::dist::Dist;
use crate::rng::Stream;

/// A size that belongs to an index: any process computes the same, and nothing is stored.
#[derive(Clone, Debug)]
pub(super) enum StableSize {
    /// All indexes have this size.
    Fixed(u64),
    /// Each index has a size that is drawn for it.
    Drawn {
        /// Draw i is for index i.
        stream: Stream,
        dist: Dist,
        min: u64,
        max: u64,
    },
    /// Each index has the value of the distribution at its hash, and `before` more.
    Hashed { dist: Dist, before: u64, min: u64, max: u64 },
    /// The most popular records have sizes of their own.
    ByRank(Box<SizeClasses>),
}

/// Sizes of records by their popularity.
#[derive(Clone, Debug)]
pub(super) struct SizeClasses {
    /// Number of records in each space of keys, and the first number that is no record's.
    records: u64,
    records_end: u64,
    /// The number from which on keys are those that records got later.
    renewed_from: u64,
    /// The first record behind each class, and the sizes of the class.
    classes: Vec<(u64, StableSize)>,
    /// The sizes of all other records.
    rest: StableSize,
}

impl SizeClasses {
    fn of(&self, index: u64) -> u64 {
        // A key that a record got at the end of a life is as popular as the record, and keys that are no records are less popular than any.
        let record = match index.checked_sub(self.renewed_from) {
            Some(renewed) => Some(renewed % self.records),
            None => (index < self.records_end).then_some(index % self.records),
        };
        let class = self.classes.iter().find(|(end, _)| record.is_some_and(|record| record < *end));
        class.map_or(&self.rest, |(_, sizes)| sizes).of_each(index)
    }
}

impl StableSize {
    /// Sizes from a distribution, cut to `min` and `max`; `seed` keeps sizes for different purposes apart.
    pub(super) fn new(dist: &Dist, seed: u64, min: u64, max: u64) -> StableSize {
        match dist {
            Dist::Fixed(_) => StableSize::Fixed(dist.draw_size(0, min, max)),
            _ => StableSize::Drawn { stream: Stream::from_seed(seed), dist: dist.clone(), min, max },
        }
    }

    /// Sizes from a distribution at the hash of the index, `before` longer, cut to `min` and `max`.
    pub(super) fn hashed(dist: Dist, before: u64, min: u64, max: u64) -> StableSize {
        let sizes = StableSize::Hashed { dist, before, min, max };
        match sizes {
            StableSize::Hashed { dist: Dist::Fixed(_), .. } => StableSize::Fixed(sizes.of_each(0)),
            sizes => sizes,
        }
    }

    /// Sizes of `records` records in each space of keys: of the classes up to the record with which each ends, and of the rest.
    /// Numbers from `records_end` on belong to no record, but those from `renewed_from` on, which records got later in their order.
    pub(super) fn by_rank(
        records: u64,
        (records_end, renewed_from): (u64, u64),
        classes: Vec<(u64, StableSize)>,
        rest: StableSize,
    ) -> StableSize {
        StableSize::ByRank(Box::new(SizeClasses { records, records_end, renewed_from, classes, rest }))
    }

    /// The size that belongs to an index.
    #[inline(always)]
    pub(super) fn of(&self, index: u64) -> u64 {
        match self {
            StableSize::Fixed(size) => *size,
            _ => self.of_each(index),
        }
    }

    /// The size that belongs to an index, also where sizes differ.
    #[inline(never)]
    fn of_each(&self, index: u64) -> u64 {
        match self {
            StableSize::Fixed(size) => *size,
            StableSize::ByRank(classes) => classes.of(index),
            StableSize::Drawn { stream, dist, min, max } => dist.draw_size(stream.draw(index), *min, *max),
            StableSize::Hashed { dist, before, min, max } => {
                // The cast takes what is negative to 0; `round` takes halves away from it, as C's does.
                (mutilate_size(dist, index).round() as u64).saturating_add(*before).clamp(*min, *max)
            }
        }
    }
}

/// The length of mutilate's key `index`: the value of the distribution at the hash of the index, in the formulas of
/// mutilate, in which exponential and Pareto values shrink where the others grow, and the two random numbers of a normal
/// value (Box and Muller) are one.
fn mutilate_size(dist: &Dist, index: u64) -> f64 {
    let share = fnv(index) as f64 / u64::MAX as f64;
    // A hash at either end of its range would be infinitely long; no index below 2^40 has one.
    let share = share.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0);
    match dist {
        Dist::Exponential { .. } | Dist::Pareto { .. } | Dist::EtcArrival => dist.upper_quantile(share),
        Dist::Normal { mean, sd } => {
            let radius = libm::sqrt(-2.0 * libm::log(share));
            mean + sd * radius * libm::cos(std::f64::consts::TAU * share)
        }
        _ => dist.quantile(share),
    }
}

/// FNV-1a over the eight bytes of a number, the lowest first (Fowler, Noll, Vo).
pub(super) fn fnv(number: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    number.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_record_got_later_has_the_sizes_of_its_record() {
        const RENEWED_FROM: u64 = 1 << 50;
        let (records, records_end) = (1_000, 4_000);
        let sizes = StableSize::by_rank(
            records,
            (records_end, RENEWED_FROM),
            vec![(10, StableSize::Fixed(1)), (100, StableSize::Fixed(2))],
            StableSize::Fixed(3),
        );
        for (record, size) in [(0, 1), (9, 1), (10, 2), (99, 2), (100, 3), (999, 3)] {
            for index in
                [record, records + record, RENEWED_FROM + record, RENEWED_FROM + 77 * records + record]
            {
                assert_eq!(sizes.of(index), size, "{index}");
            }
        }
        assert_eq!(
            [records_end, RENEWED_FROM - 1].map(|index| sizes.of(index)),
            [3, 3],
            "they are no records"
        );
    }
}
