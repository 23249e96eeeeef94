//! The number of different keys: exact while all are kept, and then estimated from the same sample of keys as that of
//! a fit.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::keys::{Hashed, is_sampled};

/// Counter of different keys, or of other hashed things, in bounded memory.
#[derive(Clone, Debug)]
pub(super) struct KeyCount {
    kept: HashSet<u64, BuildHasherDefault<Hashed>>,
    /// Number of times that the sample was halved: the share 2^-`halvings` of the keys is kept.
    halvings: u32,
    keys_max: usize,
}

impl KeyCount {
    /// Makes an empty count that keeps at most `keys_max` keys.
    pub(super) fn new(keys_max: usize) -> KeyCount {
        KeyCount { kept: HashSet::default(), halvings: 0, keys_max: keys_max.max(1) }
    }

    /// Notes a key by its hash.
    pub(super) fn note(&mut self, hash: u64) {
        if !is_sampled(hash, 0, self.halvings) || self.kept.contains(&hash) {
            return;
        }
        while self.kept.len() >= self.keys_max {
            self.halvings += 1;
            let halvings = self.halvings;
            self.kept.retain(|kept| is_sampled(*kept, 0, halvings));
        }
        if is_sampled(hash, 0, self.halvings) {
            self.kept.insert(hash);
        }
    }

    /// Whether every key was counted.
    pub(super) fn is_exact(&self) -> bool {
        self.halvings == 0
    }

    /// The number of different keys; an estimate unless [`KeyCount::is_exact`].
    pub(super) fn count(&self) -> u64 {
        (self.kept.len() as u64).saturating_mul(1u64.checked_shl(self.halvings).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::workload::hash::hash_bytes;

    #[test]
    fn few_keys_are_counted_exactly_and_many_are_estimated() {
        for (keys, keys_max, most_off) in [(0u64, 64, 0), (1_000, 1_000, 0), (100_000, 8_192, 5_000)] {
            let mut count = KeyCount::new(keys_max);
            for _ in 0..2 {
                (0..keys).for_each(|key| count.note(hash_bytes(&key.to_le_bytes())));
            }
            assert!(count.count().abs_diff(keys) <= most_off, "{keys}: {}", count.count());
            assert_eq!(count.is_exact(), most_off == 0);
            assert!(count.kept.len() <= keys_max);
        }
    }
}
