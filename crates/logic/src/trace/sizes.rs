//! The lengths of values that a trace does not say: those that its stores had.

use crate::dist::Dist;
use crate::rng::{Stream, mix, unit};

/// Keys whose last length is remembered; a key that shares its place with another one takes the place.
const PLACES: usize = 1 << 19;

/// Lengths that are kept to draw from.
const KEPT: usize = 1_024;

/// The lengths of the values of a trace so far. It takes 8 MiB, whatever the trace.
#[derive(Debug)]
pub struct Sizes {
    /// The last length of a key, with the upper half of its hash.
    last: Vec<(u32, u32)>,
    /// Lengths of stores, each with the same chance (Vitter's algorithm R), sorted again before they are drawn from.
    kept: Vec<u32>,
    is_sorted: bool,
    seen: u64,
    stream: Stream,
    /// Lengths of keys that were never stored; `None` uses the lengths of stores.
    missing: Option<Dist>,
}

impl Sizes {
    /// No length yet; chance comes from `seed`. Keys whose length is never said have lengths of `missing`, or of what was seen.
    pub fn new(seed: u64, missing: Option<Dist>) -> Sizes {
        Sizes {
            last: vec![(0, u32::MAX); PLACES],
            kept: Vec::with_capacity(KEPT),
            is_sorted: true,
            seen: 0,
            stream: Stream::from_seed(seed),
            missing,
        }
    }

    /// Notes that a key has a value of this length.
    pub fn note(&mut self, hash: u64, bytes: u32) {
        self.last[hash as usize % PLACES] = ((hash >> 32) as u32, bytes);
        self.seen += 1;
        if self.kept.len() < KEPT {
            self.kept.push(bytes);
            self.is_sorted = false;
            return;
        }
        let place = ((u128::from(self.stream.draw(self.seen)) * u128::from(self.seen)) >> 64) as usize;
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = bytes;
            self.is_sorted = false;
        }
    }

    /// Notes the length of a key's next store, where none is remembered that it has by now.
    pub fn foresee(&mut self, hash: u64, bytes: u32) {
        let (tag, known) = &mut self.last[hash as usize % PLACES];
        if *tag != (hash >> 32) as u32 || *known == u32::MAX {
            (*tag, *known) = ((hash >> 32) as u32, bytes);
        }
    }

    /// The length of a key's value: that of its last store if it is remembered, else the quantile of the lengths so far
    /// that belongs to the key; 0 if there are none.
    pub fn of(&mut self, hash: u64) -> u32 {
        let (tag, bytes) = self.last[hash as usize % PLACES];
        if tag == (hash >> 32) as u32 && bytes != u32::MAX {
            return bytes;
        }
        let quantile = mix(&[hash, 0x51ce]);
        if let Some(missing) = &self.missing {
            return missing.quantile(unit(quantile)).round() as u32;
        }
        if !self.is_sorted {
            self.kept.sort_unstable();
            self.is_sorted = true;
        }
        let place = (u128::from(quantile) * self.kept.len() as u128) >> 64;
        self.kept.get(place as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::hash::hash_bytes;

    #[test]
    fn a_key_has_the_length_of_its_last_store_and_others_draw_from_those_seen() {
        let mut sizes = Sizes::new(1, None);
        assert_eq!(sizes.of(7), 0);
        for number in 0..2_000u64 {
            sizes.note(hash_bytes(&number.to_le_bytes()), 100 + (number % 2) as u32 * 900);
        }
        assert_eq!(sizes.of(hash_bytes(&5u64.to_le_bytes())), 1_000);
        let large =
            (10_000u64..20_000).filter(|key| sizes.of(hash_bytes(&key.to_le_bytes())) == 1_000).count();
        assert!((4_000..6_000).contains(&large), "{large}");
        let key = hash_bytes(b"one of them");
        assert_eq!(sizes.of(key), sizes.of(key), "a key keeps its length");
    }

    #[test]
    fn a_key_that_is_never_stored_has_a_length_of_the_distribution_that_was_asked_for() {
        let mut sizes = Sizes::new(1, Some("uniform:50,60".parse().unwrap()));
        let key = |number: u64| hash_bytes(&number.to_le_bytes());
        sizes.note(key(1), 7);
        assert_eq!(sizes.of(key(1)), 7);
        let drawn: Vec<u32> = (2..1_000).map(|number| sizes.of(key(number))).collect();
        assert!(drawn.iter().all(|bytes| (50..=60).contains(bytes)) && drawn.contains(&53), "{drawn:?}");
    }

    #[test]
    fn a_store_that_comes_later_is_foreseen_and_one_that_came_wins() {
        let (mut sizes, key) = (Sizes::new(1, None), hash_bytes(b"k"));
        sizes.foresee(key, 5);
        assert_eq!(sizes.of(key), 5);
        sizes.note(key, 6);
        sizes.foresee(key, 7);
        assert_eq!(sizes.of(key), 6);
    }
}
