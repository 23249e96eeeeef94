//! The miss ratio of an LRU cache of any size, from the distances at which keys are requested again.

/// Number of bins in which a doubling of the size is divided; a size is known to 1.6 %.
const BINS_BITS: u32 = 6;

/// Lookups by the least size of a cache, in objects or in bytes, with which they hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissCurve {
    /// Lookups by their size, in bins that double 64 times in each power of two.
    bins: Vec<f64>,
    /// Lookups that hit in no cache of any size.
    never: f64,
}

/// The bin of a size.
fn bin_of(size: u64) -> usize {
    let power = (u64::BITS - size.leading_zeros()).saturating_sub(BINS_BITS + 1);
    ((u64::from(power) << BINS_BITS) + (size >> power)) as usize
}

/// The first size of a bin.
fn size_of(bin: usize) -> f64 {
    let power = (bin >> BINS_BITS).saturating_sub(1);
    ((bin - (power << BINS_BITS)) as f64) * libm::pow(2.0, power as f64)
}

impl MissCurve {
    /// Adds lookups that hit in a cache of this size or a larger one.
    pub(super) fn hit_from(&mut self, size: u64, lookups: f64) {
        let bin = bin_of(size);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0.0);
        }
        self.bins[bin] += lookups;
    }

    /// Adds lookups that hit in no cache of any size.
    pub(super) fn never_hit(&mut self, lookups: f64) {
        self.never += lookups;
    }

    /// Corrects the lookups of the shortest distance so that all lookups add up to `lookups` (SHARDS-adj: Waldspurger
    /// et al., FAST 2015).
    pub(super) fn adjust_to(&mut self, lookups: f64) {
        let counted = self.bins.iter().sum::<f64>() + self.never;
        if lookups > 0.0 {
            self.hit_from(1, lookups - counted);
        }
    }

    /// The share of the lookups, 0 to 1, that hit in an LRU cache of this size; `None` without lookups.
    pub fn hit_ratio(&self, size: f64) -> Option<f64> {
        let all = self.bins.iter().sum::<f64>() + self.never;
        if all <= 0.0 {
            return None;
        }
        let mut hits = 0.0;
        for (bin, lookups) in self.bins.iter().enumerate() {
            let (from, to) = (size_of(bin), size_of(bin + 1));
            // The sizes from `from` up to, and without, `to` are in the bin.
            let within = if to - from <= 1.0 {
                f64::from(size >= from)
            } else {
                ((size - from) / (to - from)).clamp(0.0, 1.0)
            };
            if within <= 0.0 && size < from {
                break;
            }
            hits += within * lookups;
        }
        Some((hits / all).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_where_sizes_say() {
        for size in (0..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX >> 1]) {
            let bin = bin_of(size);
            assert!(
                size_of(bin) <= size as f64 && (size as f64) < size_of(bin + 1) * (1.0 + 1e-15),
                "{size}"
            );
            assert!(size < 128 || size_of(bin + 1) / size_of(bin) <= 1.0 + 1.0 / 64.0, "{size}");
        }
    }

    #[test]
    fn a_cache_hits_what_is_asked_for_again_soon_enough() {
        let mut curve = MissCurve::default();
        curve.never_hit(2.0);
        curve.hit_from(1, 4.0);
        curve.hit_from(10, 3.0);
        curve.hit_from(1_000_000, 1.0);
        assert_eq!(curve.hit_ratio(0.0), Some(0.0));
        assert_eq!(curve.hit_ratio(1.0), Some(0.4));
        assert_eq!(curve.hit_ratio(9.0), Some(0.4));
        assert_eq!(curve.hit_ratio(10.0), Some(0.7));
        assert_eq!(curve.hit_ratio(2e6), Some(0.8));
        assert_eq!(MissCurve::default().hit_ratio(1.0), None);
        curve.adjust_to(20.0);
        assert_eq!(curve.hit_ratio(1.0), Some(0.7));
    }
}
