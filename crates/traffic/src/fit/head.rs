//! The most popular keys that are not in the sample, with their numbers of requests.
//!
//! The counts are a lower bound for keys that come late, or that come again after they were dropped. The error is at
//! most the number of requests that a dropped key can have had (lossy counting: Manku and Motwani, 2002).

use super::keys::{ByHash, Halves};

/// Most keys that are kept. Beyond this number the less popular half is dropped.
const KEYS_MAX: usize = 1 << 16;

/// The counted requests of a key, and an upper bound of its uncounted ones.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    halves: Halves,
    /// The most requests that the key can have had before its counting began.
    before_most: u64,
}

impl Counted {
    /// The most requests that the key can have had in all.
    fn most(&self) -> u64 {
        self.halves.count() + self.before_most
    }
}

/// The most popular keys that are not in the sample.
#[derive(Debug, Default)]
pub(super) struct Head {
    keys: ByHash<Counted>,
    /// The most requests that a dropped key can have had. All keys outside the sample with more requests are kept.
    floor: u64,
}

impl Head {
    /// Adds a key that leaves the sample, with all its requests.
    pub(super) fn adopt(&mut self, hash: u64, halves: Halves) {
        self.add(hash, halves, 0);
    }

    /// Adds requests of a key that is not in the sample.
    pub(super) fn take(&mut self, hash: u64, halves: Halves) {
        // A key that is not kept may have been dropped.
        self.add(hash, halves, self.floor);
    }

    /// The requests of each key that certainly has more requests than any dropped key.
    pub(super) fn keys(&self) -> impl Iterator<Item = Halves> + '_ {
        self.keys.values().map(|key| key.halves).filter(|halves| halves.count() > self.floor)
    }

    /// The number of requests above which a key of the sample represents only itself, since all other keys with more
    /// requests are kept.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    fn add(&mut self, hash: u64, halves: Halves, before_most: u64) {
        self.keys
            .entry(hash)
            .or_insert(Counted { halves: Halves::default(), before_most })
            .halves
            .add(halves);
        if self.keys.len() > KEYS_MAX {
            self.let_go();
        }
    }

    /// Drops the less popular half of the keys, by the most requests that they can have had.
    fn let_go(&mut self) {
        let mut counts: Vec<u64> = self.keys.values().map(Counted::most).collect();
        let middle = counts.len() / 2;
        let (_, &mut least, _) = counts.select_nth_unstable(middle);
        self.floor = self.floor.max(least);
        self.keys.retain(|_, key| key.most() > least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::Popularity;
    use pummel_logic::rng::{Stream, below, scramble};
    use pummel_logic::workload::popularity::Chooser;

    #[test]
    fn the_most_popular_keys_have_all_their_requests() {
        let chooser = Chooser::new(&Popularity::Zipf { exponent: 1.0 }, 1_000_000, 0, 1);
        let stream = Stream::from_seed(11);
        let mut head = Head::default();
        let mut truth = vec![0u64; 1_000];
        for i in 0..200_000 {
            let record = chooser.choose(&stream, i);
            head.take(scramble(record), Halves([1, 0]));
            if let Some(count) = truth.get_mut(record as usize) {
                *count += 1;
            }
        }
        assert!(head.keys.len() <= KEYS_MAX);
        let mut found: Vec<u64> = head.keys().map(Halves::count).collect();
        found.sort_unstable_by(|one, two| two.cmp(one));
        truth.sort_unstable_by(|one, two| two.cmp(one));
        assert_eq!(found[..100], truth[..100]);
    }

    /// The requests of `keys` keys, each requested `times` times, in random order.
    fn shuffled(keys: u64, times: u64) -> Vec<u64> {
        let mut requests: Vec<u64> = (0..keys * times).map(|i| i % keys).collect();
        let stream = Stream::from_seed(7);
        for at in (1..requests.len()).rev() {
            requests.swap(at, below(stream.draw(at as u64), at as u64 + 1) as usize);
        }
        requests
    }

    #[test]
    fn a_key_that_was_dropped_and_comes_again_does_not_count_as_new() {
        for times in [2, 5, 20] {
            let mut head = Head::default();
            let requests = shuffled(200_000, times);
            requests.iter().for_each(|key| head.take(scramble(*key), Halves([0, 1])));
            let popular = [times + 1, 1_000];
            for (key, count) in (200_000..).zip(popular) {
                (0..count).for_each(|_| head.take(scramble(key), Halves([1, 0])));
            }
            // Each key but the last has at most this many requests.
            assert!(head.floor() >= times, "{times} requests of each key, floor {}", head.floor());
            let found: Vec<u64> = head.keys().map(Halves::count).collect();
            assert_eq!(found, [1_000], "{times} requests of each key, floor {}", head.floor());
        }
    }
}
