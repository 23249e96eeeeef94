//! A sample of the keys of a trace, or all of them while they are few: their requests, their lengths, and the
//! distances at which they are requested again.
//!
//! The sample is spatial and of fixed size (SHARDS: Waldspurger et al., FAST 2015): the hash of a key decides whether
//! the key is in the sample, with all its requests. If the sample has too many keys, half of them leave it for good.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::curve::MissCurve;
use super::stack::Stack;
use super::working_set::WorkingSets;
use pummel_logic::rng::mix;

/// The moment of an object that is not on the LRU stack.
const ABSENT: u32 = 0;

/// A length that means that the length of a value is not known.
const UNKNOWN: u32 = u32::MAX;

/// A hasher for keys of a table that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// A table whose keys are hashes.
pub(super) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Hashed>>;

/// Requests, randomly divided into two halves. One half can choose or order keys, and the other half then counts
/// without bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Halves(pub(super) [u32; 2]);

impl Halves {
    /// Adds further requests.
    pub(super) fn add(&mut self, more: Halves) {
        self.0.iter_mut().zip(more.0).for_each(|(sum, half)| *sum = sum.saturating_add(half));
    }

    /// Sum of the requests of both halves.
    pub(super) fn count(self) -> u64 {
        self.0.into_iter().map(u64::from).sum()
    }
}

/// Whether the hash of a key belongs to the share 2^-`halvings` of all keys.
#[inline]
pub(super) fn is_sampled(hash: u64, salt: u64, halvings: u32) -> bool {
    halvings == 0 || mix(&[hash, salt]) >> (u64::BITS - halvings) == 0
}

/// The effect of a request on its key in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// The key is looked up: the cache hits or misses.
    Lookup,
    /// The key is in the cache after the request.
    Store,
    /// The key is not in the cache after the request.
    Delete,
}

/// A request of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRequest {
    /// The hash of the key.
    pub(super) hash: u64,
    pub(super) touch: Touch,
    /// Number of equal requests that follow each other directly, in two halves.
    pub(super) halves: Halves,
    pub(super) key_bytes: u16,
    /// Length of the value, where it is known.
    pub(super) value_bytes: Option<u32>,
    /// Seconds since the first row.
    pub(super) at_s: u32,
}

/// A key of the sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    hash: u64,
    /// Requests so far.
    pub(super) halves: Halves,
    /// Length of the value, or [`UNKNOWN`].
    value_bytes: u32,
    moment: u32,
    at_s: u32,
    pub(super) key_bytes: u16,
    /// Whether the first request of the key was a lookup.
    pub(super) begins_with_lookup: bool,
}

impl Slot {
    pub(super) fn value_bytes(&self) -> Option<u32> {
        (self.value_bytes != UNKNOWN).then_some(self.value_bytes)
    }

    /// Bytes of the key and of its value, if the length of the value is known.
    fn bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes().unwrap_or(0))
    }
}

/// A sample of the keys.
#[derive(Debug)]
pub(super) struct KeySample {
    salt: u64,
    /// Number of times that the sample was halved: the share 2^-`halvings` of the keys is in it.
    halvings: u32,
    keys_max: usize,
    places: ByHash<u32>,
    slots: Vec<Slot>,
    stack: Stack,
    /// Number of lookups, including those of keys that are not in the sample.
    lookups: u64,
    /// Misses by the number of objects in a cache.
    pub(super) by_objects: MissCurve,
    /// Misses by the bytes of keys and values in a cache.
    pub(super) by_bytes: MissCurve,
    pub(super) working_sets: WorkingSets,
}

impl KeySample {
    /// An empty sample of at most `keys_max` keys that begins with the share 2^-`halvings` of them; samples of different salts
    /// are independent.
    pub(super) fn new(salt: u64, halvings: u32, keys_max: usize) -> KeySample {
        KeySample {
            salt,
            halvings,
            keys_max,
            places: ByHash::default(),
            slots: Vec::new(),
            stack: Stack::default(),
            lookups: 0,
            by_objects: MissCurve::default(),
            by_bytes: MissCurve::default(),
            working_sets: WorkingSets::default(),
        }
    }

    /// Number of keys of the trace that each key of the sample represents: 1 while the sample has them all.
    pub(super) fn weight(&self) -> f64 {
        libm::pow(2.0, f64::from(self.halvings))
    }

    /// Keys of the sample.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Number of keys of the trace, estimated from the share that is sampled.
    pub(super) fn keys(&self) -> f64 {
        self.slots.len() as f64 * self.weight()
    }

    /// Whether a key is in the sample.
    #[inline]
    pub(super) fn has(&self, hash: u64) -> bool {
        is_sampled(hash, self.salt, self.halvings)
    }

    /// Adds a request. Keys that leave the sample for good are passed to `left`, as their hashes and their requests.
    pub(super) fn take(&mut self, request: &KeyRequest, left: &mut dyn FnMut(u64, Halves)) {
        if request.touch == Touch::Lookup {
            self.lookups += request.halves.count();
        }
        if !self.has(request.hash) {
            return;
        }
        let place = match self.places.get(&request.hash) {
            Some(&place) => place,
            None => {
                if self.slots.len() >= self.keys_max {
                    self.halve(left);
                    if !self.has(request.hash) {
                        return;
                    }
                }
                self.add(request)
            }
        };
        self.touch(place as usize, request);
    }

    /// Sets the length of the value of a key in the sample, without adding a request.
    pub(super) fn learn(&mut self, hash: u64, value_bytes: u32) {
        if let Some(&place) = self.places.get(&hash) {
            self.set_value_bytes(place as usize, value_bytes);
        }
    }

    /// Ends the sample. The miss curves are corrected to the number of all lookups.
    pub(super) fn end(&mut self, end_s: u32) {
        let lookups = self.lookups as f64;
        self.by_objects.adjust_to(lookups);
        self.by_bytes.adjust_to(lookups);
        self.working_sets.end(end_s);
    }

    fn add(&mut self, request: &KeyRequest) -> u32 {
        let place = self.slots.len() as u32;
        self.places.insert(request.hash, place);
        self.slots.push(Slot {
            hash: request.hash,
            halves: Halves::default(),
            value_bytes: UNKNOWN,
            moment: ABSENT,
            at_s: u32::MAX,
            key_bytes: request.key_bytes,
            begins_with_lookup: request.touch == Touch::Lookup,
        });
        place
    }

    fn touch(&mut self, place: usize, request: &KeyRequest) {
        let weight = self.weight();
        let slot = self.slots[place];
        if request.touch == Touch::Lookup {
            self.look_up(&slot, request, weight);
        }
        if slot.moment != ABSENT {
            self.stack.remove(slot.moment, slot.bytes());
        }
        let bytes_before = slot.bytes();
        let slot = &mut self.slots[place];
        slot.halves.add(request.halves);
        slot.moment = ABSENT;
        slot.value_bytes = request.value_bytes.unwrap_or(slot.value_bytes);
        let before_s = (slot.at_s != u32::MAX).then_some(slot.at_s);
        slot.at_s = request.at_s;
        let bytes = slot.bytes();
        if let (Some(before_s), true) = (before_s, bytes != bytes_before) {
            self.working_sets.learn(before_s, (bytes as f64 - bytes_before as f64) * weight);
        }
        self.working_sets.note(request.at_s, before_s, weight, bytes);
        if request.touch == Touch::Delete {
            return;
        }
        if self.stack.is_full() {
            self.renumber();
        }
        self.slots[place].moment = self.stack.push(bytes);
    }

    /// Adds a lookup of a key to the miss curves. The equal requests that follow it directly hit in every cache.
    fn look_up(&mut self, slot: &Slot, request: &KeyRequest, weight: f64) {
        let again = (request.halves.count() - 1) as f64 * weight;
        if slot.moment == ABSENT {
            self.by_objects.never_hit(weight);
            self.by_bytes.never_hit(weight);
        } else {
            let younger = self.stack.younger(slot.moment);
            let objects = (f64::from(younger.objects) * weight) as u64 + 1;
            let bytes = (younger.bytes as f64 * weight) as u64 + slot.bytes();
            self.by_objects.hit_from(objects, weight);
            self.by_bytes.hit_from(bytes.max(1), weight);
        }
        if again > 0.0 {
            self.by_objects.hit_from(1, again);
            self.by_bytes.hit_from(slot.bytes().max(1), again);
        }
    }

    fn set_value_bytes(&mut self, place: usize, value_bytes: u32) {
        let slot = self.slots[place];
        let changed = Slot { value_bytes, ..slot };
        self.slots[place] = changed;
        let more = changed.bytes() as f64 - slot.bytes() as f64;
        self.working_sets.learn(slot.at_s, more * self.weight());
        if slot.moment != ABSENT && changed.bytes() != slot.bytes() {
            self.stack.remove(slot.moment, slot.bytes());
            if self.stack.is_full() {
                self.slots[place].moment = ABSENT;
                self.renumber();
            }
            self.slots[place].moment = self.stack.push(changed.bytes());
        }
    }

    /// Gives all objects on the LRU stack new moments, in the same order.
    fn renumber(&mut self) {
        let on_stack = |(_, slot): &(u32, &Slot)| slot.moment != ABSENT;
        let mut order: Vec<u32> = (0..).zip(&self.slots).filter(on_stack).map(|(place, _)| place).collect();
        order.sort_unstable_by_key(|&place| self.slots[place as usize].moment);
        self.stack.renumber(order.iter().map(|&place| self.slots[place as usize].bytes()));
        for (moment, place) in (1..).zip(order) {
            self.slots[place as usize].moment = moment;
        }
    }

    /// Removes half of the keys, by their hashes, until the sample has room for another.
    fn halve(&mut self, left: &mut dyn FnMut(u64, Halves)) {
        while self.slots.len() >= self.keys_max {
            self.halvings += 1;
            let slots = std::mem::take(&mut self.slots);
            self.places.clear();
            for slot in slots {
                if self.has(slot.hash) {
                    self.places.insert(slot.hash, self.slots.len() as u32);
                    self.slots.push(slot);
                } else {
                    left(slot.hash, slot.halves);
                }
            }
        }
        self.renumber();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::Popularity;
    use pummel_logic::rng::{Stream, scramble};
    use pummel_logic::workload::popularity::Chooser;

    fn lookup(key: u64) -> KeyRequest {
        KeyRequest {
            hash: scramble(key),
            touch: Touch::Lookup,
            halves: Halves([1, 0]),
            key_bytes: 10,
            value_bytes: Some(90),
            at_s: 0,
        }
    }

    fn hits(sample: &KeySample, objects: f64) -> f64 {
        sample.by_objects.hit_ratio(objects).expect("there are lookups")
    }

    /// The share of hits of a plain LRU cache.
    fn lru(keys: &[u64], objects: usize) -> f64 {
        let mut cache: Vec<u64> = Vec::new();
        let mut hits = 0;
        for &key in keys {
            if let Some(at) = cache.iter().position(|&cached| cached == key) {
                cache.remove(at);
                hits += 1;
            } else if cache.len() == objects {
                cache.remove(0);
            }
            cache.push(key);
        }
        f64::from(hits) / keys.len() as f64
    }

    fn zipf(exponent: f64, records: u64, draws: u64) -> Vec<u64> {
        let chooser = Chooser::new(&Popularity::Zipf { exponent }, records, 0, 1);
        let stream = Stream::from_seed(5);
        (0..draws).map(|i| chooser.choose(&stream, i)).collect()
    }

    #[test]
    fn the_curve_of_all_keys_is_that_of_lru() {
        let keys = zipf(0.9, 3_000, 30_000);
        let mut sample = KeySample::new(0, 0, 1 << 20);
        keys.iter().for_each(|&key| sample.take(&lookup(key), &mut |_, _| panic!("all have room")));
        sample.end(0);
        for objects in [1, 10, 100] {
            assert!((hits(&sample, objects as f64) - lru(&keys, objects)).abs() < 1e-9, "{objects}");
            let by_bytes = sample.by_bytes.hit_ratio(objects as f64 * 100.0 + 99.0).expect("lookups");
            assert!((by_bytes - lru(&keys, objects)).abs() < 0.01, "{objects}");
        }
        // Bins of sizes above 128 are 1.6 % wide.
        assert!((hits(&sample, 1_000.0) - lru(&keys, 1_000)).abs() < 2e-3);
    }

    #[test]
    fn a_sample_of_the_keys_has_nearly_the_curve_and_the_number_of_all() {
        let keys = zipf(0.8, 100_000, 200_000);
        let (mut all, mut some) = (KeySample::new(0, 0, 1 << 20), KeySample::new(0, 0, 8_192));
        let mut left = 0;
        for &key in &keys {
            all.take(&lookup(key), &mut |_, _| panic!("all have room"));
            some.take(&lookup(key), &mut |_, _| left += 1);
        }
        all.end(0);
        some.end(0);
        assert!(some.slots().len() <= 8_192 && some.weight() >= 8.0 && left > 8_192);
        assert!((some.keys() / all.keys() - 1.0).abs() < 0.05, "{} {}", some.keys(), all.keys());
        for objects in [100.0, 1_000.0, 10_000.0] {
            let (found, truth) = (hits(&some, objects), hits(&all, objects));
            assert!((found - truth).abs() < 0.03, "{objects}: {found} {truth}");
        }
    }

    #[test]
    fn deleted_keys_are_missed_and_sizes_are_those_of_the_last_store() {
        let mut sample = KeySample::new(0, 0, 100);
        let none = &mut |_: u64, _: Halves| panic!("all have room");
        sample.take(&KeyRequest { touch: Touch::Store, ..lookup(1) }, none);
        sample.take(&KeyRequest { touch: Touch::Store, value_bytes: Some(490), ..lookup(2) }, none);
        sample.learn(scramble(1), 20);
        sample.take(&KeyRequest { value_bytes: None, ..lookup(2) }, none);
        sample.take(&KeyRequest { touch: Touch::Delete, ..lookup(1) }, none);
        sample.take(&lookup(1), none);
        sample.take(&lookup(3), none);
        sample.end(0);
        assert_eq!(hits(&sample, 1.0), 0.0);
        assert!((hits(&sample, 2.0) - 1.0 / 3.0).abs() < 1e-9);
        // The 500 bytes of key 2 and, since they were learned later, the 30 of key 1.
        assert_eq!(sample.by_bytes.hit_ratio(500.0), Some(0.0));
        assert!(sample.by_bytes.hit_ratio(540.0).expect("lookups") > 0.3);
    }

    #[test]
    fn the_stack_is_renumbered_while_lengths_are_learned() {
        let mut sample = KeySample::new(0, 0, 64);
        for round in 0..2_000u32 {
            let key = u64::from(round % 50);
            sample.take(&lookup(key), &mut |_, _| {});
            sample.learn(scramble(key), round);
        }
        sample.end(0);
        assert_eq!(hits(&sample, 49.0), 0.0);
        assert!(hits(&sample, 50.0) > 0.97);
    }
}
