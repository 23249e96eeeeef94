//! The most popular keys outside the sample, with their requests.
//!
//! The counts of keys that come late may be too small, by at most as many requests as the least dropped key had.

use super::keys::{ByHash, Halves};

/// Most keys while requests come in; half of them stay when there are more.
const KEYS_MAX: usize = 1 << 16;

/// The most popular keys beside the sample.
#[derive(Debug, Default)]
pub(super) struct Head {
    keys: ByHash<Halves>,
    /// The greatest count of a key that was dropped: keys with more requests are here.
    floor: u64,
}

impl Head {
    /// Takes in requests of a key that is not in the sample, or all of them where the key leaves the sample. The floor is not that of
    /// keys that leave a sample: one that was never full of them has no candidates.
    pub(super) fn take(&mut self, hash: u64, halves: Halves) {
        self.keys.entry(hash).or_default().add(halves);
        if self.keys.len() > KEYS_MAX {
            self.let_go();
        }
    }

    /// The requests of each key that has more requests than any dropped key.
    pub(super) fn keys(&self) -> impl Iterator<Item = Halves> + '_ {
        self.keys.values().copied().filter(|halves| halves.count() > self.floor)
    }

    /// The count above which keys of the sample represent only themselves, since all other such keys are here.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Drops the less popular half.
    fn let_go(&mut self) {
        let mut counts: Vec<u64> = self.keys.values().map(|halves| halves.count()).collect();
        let middle = counts.len() / 2;
        let (_, &mut least, _) = counts.select_nth_unstable(middle);
        self.floor = self.floor.max(least);
        self.keys.retain(|_, halves| halves.count() > least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::Popularity;
    use pummel_logic::rng::{Stream, scramble};
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
}
