//! The lengths and the times to live of values that a trace does not have: those of its stores.

use pummel_logic::dist::Dist;
use pummel_logic::rng::{Stream, mix, unit};

/// Keys whose last store is remembered; a key that shares its place with another one takes the place.
const PLACES: usize = 1 << 19;

/// Stores that are kept to draw from.
const KEPT: usize = 1_024;

/// Value of an unknown length or time to live.
const UNKNOWN: u32 = u32::MAX;

/// A store of a key, as far as its trace says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Length of the value in bytes; `None` if the trace does not say it.
    pub bytes: Option<u32>,
    /// Time to live in seconds, 0 for none; `None` if the store keeps the one that the key has.
    pub ttl_s: Option<u32>,
}

/// The last store of a key.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The upper half of the hash of the key.
    tag: u32,
    /// Length of the value in bytes, or [`UNKNOWN`].
    bytes: u32,
    /// Time to live of the value in seconds, or [`UNKNOWN`].
    ttl_s: u32,
}

/// The stores of a trace so far. It takes 6 MiB, whatever the trace.
#[derive(Debug)]
pub struct Sizes {
    last: Vec<Place>,
    /// Lengths and times to live of stores, each with the same chance (Vitter's algorithm R), sorted again before a
    /// draw.
    kept: Vec<(u32, u32)>,
    is_sorted: bool,
    seen: u64,
    stream: Stream,
    /// Lengths of keys that were never stored; `None` uses the lengths of stores.
    missing: Option<Dist>,
}

impl Sizes {
    /// Stores before the first row; chance comes from `seed`. Keys whose length is never given have lengths drawn from
    /// `missing`, or from the lengths seen so far.
    pub fn new(seed: u64, missing: Option<Dist>) -> Sizes {
        Sizes {
            last: vec![Place { tag: 0, bytes: UNKNOWN, ttl_s: UNKNOWN }; PLACES],
            kept: Vec::with_capacity(KEPT),
            is_sorted: true,
            seen: 0,
            stream: Stream::from_seed(seed),
            missing,
        }
    }

    /// Notes a store of a key.
    pub fn note(&mut self, hash: u64, store: Store) {
        let place = self.place(hash);
        place.bytes = store.bytes.unwrap_or(place.bytes);
        place.ttl_s = store.ttl_s.unwrap_or(place.ttl_s);
        let Some(bytes) = store.bytes else { return };
        self.seen += 1;
        let kept = (bytes, store.ttl_s.unwrap_or(0));
        if self.kept.len() < KEPT {
            self.kept.push(kept);
            self.is_sorted = false;
            return;
        }
        let place = ((u128::from(self.stream.draw(self.seen)) * u128::from(self.seen)) >> 64) as usize;
        if let Some(old) = self.kept.get_mut(place) {
            *old = kept;
            self.is_sorted = false;
        }
    }

    /// Records the next store of a key, as far as nothing is known of the key yet.
    pub fn foresee(&mut self, hash: u64, store: Store) {
        let place = self.place(hash);
        for (known, next) in [(&mut place.bytes, store.bytes), (&mut place.ttl_s, store.ttl_s)] {
            if let (UNKNOWN, Some(next)) = (*known, next) {
                *known = next;
            }
        }
    }

    /// The length of a key's value: that of its last store if it is remembered, else the quantile of the lengths so far
    /// that belongs to the key; 0 if there are none.
    pub fn of(&mut self, hash: u64) -> u32 {
        match (self.known(hash), &self.missing) {
            (Some(Place { bytes, .. }), _) if bytes != UNKNOWN => bytes,
            (_, Some(missing)) => missing.quantile(unit(quantile_of(hash))).round() as u32,
            (_, None) => self.drawn(hash).map_or(0, |(bytes, _)| bytes),
        }
    }

    /// The time to live of a key's value in seconds: that of its last store if it is remembered, else that of the store whose
    /// length belongs to the key; 0 if there is none.
    pub fn ttl_s_of(&mut self, hash: u64) -> u32 {
        match self.known(hash) {
            Some(Place { ttl_s, .. }) if ttl_s != UNKNOWN => ttl_s,
            _ => self.drawn(hash).map_or(0, |(_, ttl_s)| ttl_s),
        }
    }

    /// Place of a key; `None` where nothing is remembered of it.
    fn known(&self, hash: u64) -> Option<Place> {
        Some(self.last[hash as usize % PLACES]).filter(|place| place.tag == (hash >> 32) as u32)
    }

    /// The place of a key, which the key has from now on.
    fn place(&mut self, hash: u64) -> &mut Place {
        let (place, tag) = (&mut self.last[hash as usize % PLACES], (hash >> 32) as u32);
        if place.tag != tag {
            *place = Place { tag, bytes: UNKNOWN, ttl_s: UNKNOWN };
        }
        place
    }

    /// The store that belongs to a key, of those that were kept.
    fn drawn(&mut self, hash: u64) -> Option<(u32, u32)> {
        if !self.is_sorted {
            self.kept.sort_unstable();
            self.is_sorted = true;
        }
        let place = (u128::from(quantile_of(hash)) * self.kept.len() as u128) >> 64;
        self.kept.get(place as usize).copied()
    }
}

/// The bits that decide which of many lengths a key has.
fn quantile_of(hash: u64) -> u64 {
    mix(&[hash, 0x51ce])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::workload::hash::hash_bytes;

    /// A store of this length that does not expire.
    fn store(bytes: u32) -> Store {
        Store { bytes: Some(bytes), ttl_s: Some(0) }
    }

    #[test]
    fn a_key_has_the_length_of_its_last_store_and_others_draw_from_those_seen() {
        let mut sizes = Sizes::new(1, None);
        assert_eq!(sizes.of(7), 0);
        for number in 0..2_000u64 {
            sizes.note(hash_bytes(&number.to_le_bytes()), store(100 + (number % 2) as u32 * 900));
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
        sizes.note(key(1), store(7));
        assert_eq!(sizes.of(key(1)), 7);
        let drawn: Vec<u32> = (2..1_000).map(|number| sizes.of(key(number))).collect();
        assert!(drawn.iter().all(|bytes| (50..=60).contains(bytes)) && drawn.contains(&53), "{drawn:?}");
    }

    #[test]
    fn a_store_that_comes_later_is_foreseen_and_one_that_came_wins() {
        let (mut sizes, key) = (Sizes::new(1, None), hash_bytes(b"k"));
        sizes.foresee(key, store(5));
        assert_eq!(sizes.of(key), 5);
        sizes.note(key, store(6));
        sizes.foresee(key, store(7));
        assert_eq!(sizes.of(key), 6);
    }

    #[test]
    fn a_key_has_the_time_to_live_of_its_store_and_others_that_of_a_store_of_their_length() {
        let (mut sizes, key) = (Sizes::new(1, None), |number: u64| hash_bytes(&number.to_le_bytes()));
        assert_eq!(sizes.ttl_s_of(key(1)), 0);
        sizes.foresee(key(1), Store { bytes: Some(5), ttl_s: Some(60) });
        assert_eq!((sizes.of(key(1)), sizes.ttl_s_of(key(1))), (5, 60));
        sizes.note(key(1), Store { bytes: Some(6), ttl_s: Some(0) });
        assert_eq!((sizes.of(key(1)), sizes.ttl_s_of(key(1))), (6, 0), "it does not expire");
        // A store that keeps the time to live, and one whose length is not known.
        sizes.note(key(2), Store { bytes: None, ttl_s: Some(70) });
        sizes.note(key(2), Store { bytes: Some(9), ttl_s: None });
        assert_eq!((sizes.of(key(2)), sizes.ttl_s_of(key(2))), (9, 70));
        for number in 10..2_000 {
            let is_long = number % 2 == 0;
            let (bytes, ttl_s) = if is_long { (1_000, 3_600) } else { (100, 60) };
            sizes.note(key(number), Store { bytes: Some(bytes), ttl_s: Some(ttl_s) });
        }
        for number in 10_000..11_000 {
            let drawn = (sizes.of(key(number)), sizes.ttl_s_of(key(number)));
            assert!([(1_000, 3_600), (100, 60), (6, 0), (9, 0)].contains(&drawn), "{drawn:?}");
        }
    }
}
