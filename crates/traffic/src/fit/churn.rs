//! Lifetimes of popular keys: the share of the most popular keys that remains some minutes later, and the lifetimes
//! that follow from it.

use std::collections::{HashSet, VecDeque};

use super::keys::{ByHash, Halves};
use pummel_logic::dist::{Dist, Range, Weighted};
use pummel_logic::rng::mix;

/// Length of a window in seconds.
const WINDOW_S: u32 = 60;

/// Minutes after which the most popular keys are compared.
const LAGS_MINUTES: [u32; 8] = [1, 2, 5, 10, 20, 30, 45, 60];

/// Most keys of a window. Beyond this number, half of the keys are dropped for good.
const KEYS_MAX: usize = 1 << 14;

/// Fewest keys with which windows are compared.
const KEYS_LEAST: usize = 50;

/// Number of keys of a window of which one is among the most popular ones.
const TOP_PART: usize = 10;

/// Salt of this sample of keys, different from the salts of other samples.
const SALT: u64 = 0x0063_6875_726e;

/// Least remaining share with which keys count as unchanging. A loss of at most [`ERRORS_OF_CHANCE`] standard errors
/// counts as chance.
const STAYS: f64 = 0.97;
const ERRORS_OF_CHANCE: f64 = 3.0;

/// The share of the most popular tenth of the keys that is still in the most popular tenth after some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survival {
    /// Time between the two comparisons, in seconds.
    pub after_s: f64,
    /// The share that is still among the most popular tenth, 0 to 1, relative to the share that chance leaves within
    /// one minute.
    pub share: f64,
}

/// Change of keys in the course of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Churn {
    /// The remaining shares by time; empty if the trace is too short or has too few keys in a minute.
    pub survival: Vec<Survival>,
    /// The lifetimes of keys, in seconds, that explain the remaining shares; `None` if keys stay, as far as chance
    /// allows to see.
    pub lifetimes: Option<Dist>,
    /// The time in seconds after which half of the keys remain with these lifetimes; `None` if it is longer than the
    /// trace.
    pub half_life_s: Option<f64>,
}

/// Counts the most popular keys of each minute.
#[derive(Debug, Default)]
pub(super) struct ChurnCounter {
    /// The share of the keys is 2^-`halvings`.
    halvings: u32,
    number: u32,
    keys: ByHash<Halves>,
    /// The most popular keys of the last hour by one half of their requests, by the number of the minute.
    before: VecDeque<(u32, Vec<u64>)>,
    /// Sums for the most popular keys of a minute, and of those that were so in the other half of the requests.
    same: (f64, f64),
    later: [(f64, f64); LAGS_MINUTES.len()],
}

impl ChurnCounter {
    /// Adds requests for a key.
    #[inline]
    pub(super) fn take(&mut self, hash: u64, halves: Halves, at_s: u32) {
        let number = at_s / WINDOW_S;
        if number != self.number {
            self.end_window();
            self.number = number;
        }
        let draw = mix(&[hash, SALT]);
        if !self.has(draw) {
            return;
        }
        self.keys.entry(draw).or_default().add(halves);
        while self.keys.len() > KEYS_MAX {
            self.halvings += 1;
            let halvings = self.halvings;
            self.keys.retain(|draw, _| draw.leading_zeros() >= halvings);
        }
    }

    /// The change of keys in a trace of this length in seconds.
    pub(super) fn end(mut self, span_s: f64) -> Churn {
        // The last minute was cut, and does not count.
        self.keys.clear();
        let chance = if self.same.0 > 0.0 { self.same.1 / self.same.0 } else { 0.0 };
        if chance <= 0.0 {
            return Churn::default();
        }
        let share = |(minutes, (all, left)): (u32, (f64, f64))| Survival {
            after_s: f64::from(minutes * WINDOW_S),
            share: (left / all / chance).clamp(0.0, 1.0),
        };
        // The standard error of a share of so many keys.
        let stays = |(all, left): &(f64, f64)| {
            let error = libm::sqrt(left.max(1.0)) / (all * chance);
            left / (all * chance) + ERRORS_OF_CHANCE * error > STAYS
        };
        let known = || self.later.iter().filter(|(all, _)| *all > 0.0);
        let survival: Vec<Survival> =
            LAGS_MINUTES.into_iter().zip(self.later).filter(|(_, (all, _))| *all > 0.0).map(share).collect();
        let lives = if known().all(stays) { None } else { lifetimes(&survival) };
        let (lifetimes, half_life_s) = match lives {
            Some(lives) => (lives.dist(), lives.half_life_s().filter(|half_s| *half_s <= span_s)),
            None => (None, None),
        };
        Churn { survival, lifetimes, half_life_s }
    }

    fn has(&self, draw: u64) -> bool {
        draw.leading_zeros() >= self.halvings
    }

    fn end_window(&mut self) {
        let number = self.number;
        self.before.retain(|(before, _)| number - before <= LAGS_MINUTES[LAGS_MINUTES.len() - 1]);
        if self.keys.len() >= KEYS_LEAST {
            let first = self.most_popular(0);
            let second: HashSet<u64> = self.most_popular(1).into_iter().collect();
            let add = |sums: &mut (f64, f64), keys: &[u64], halvings: u32| {
                let kept = keys.iter().filter(|draw| draw.leading_zeros() >= halvings);
                sums.0 += kept.clone().count() as f64;
                sums.1 += kept.filter(|draw| second.contains(draw)).count() as f64;
            };
            add(&mut self.same, &first, self.halvings);
            for (minutes, sums) in LAGS_MINUTES.into_iter().zip(&mut self.later) {
                if let Some((_, keys)) = self.before.iter().find(|(before, _)| before + minutes == number) {
                    add(sums, keys, self.halvings);
                }
            }
            self.before.push_back((number, first));
        }
        self.keys.clear();
    }

    /// The most popular keys of the window by one half of their requests.
    fn most_popular(&self, half: usize) -> Vec<u64> {
        let mut keys: Vec<(u32, u64)> =
            self.keys.iter().map(|(draw, halves)| (halves.0[half], *draw)).collect();
        let count = (keys.len() / TOP_PART).max(1);
        keys.select_nth_unstable_by(count - 1, |one, two| two.cmp(one));
        keys.truncate(count);
        keys.into_iter().map(|(_, draw)| draw).collect()
    }
}

/// Two lifetimes in seconds and the share of the first; the second may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lifetimes {
    first_s: f64,
    second_s: f64,
    share: f64,
}

impl Lifetimes {
    /// The share that remains after some time, for keys that begin at different moments: the mean of max(0, 1 - time /
    /// lifetime).
    fn left(&self, after_s: f64) -> f64 {
        let of = |life_s: f64| (1.0 - after_s / life_s).max(0.0);
        self.share * of(self.first_s) + (1.0 - self.share) * of(self.second_s)
    }

    fn half_life_s(&self) -> Option<f64> {
        let (mut low, mut high) = (0.0, 30.0 * 86_400.0);
        if self.left(high) > 0.5 {
            return None;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.left(middle) > 0.5 { low = middle } else { high = middle }
        }
        Some(libm::round(high))
    }

    /// The lifetimes as a distribution of whole seconds, in which a life without an end has 30 days.
    fn dist(&self) -> Option<Dist> {
        let whole = |life_s: f64| (libm::round(life_s).min(30.0 * 86_400.0) as u64).max(1);
        let range = |(life_s, share): (f64, f64)| {
            let life = whole(life_s);
            Range { low: life, high: life, weight: libm::round(share * 1000.0) / 10.0 }
        };
        let ranges: Vec<Range> = [(self.first_s, self.share), (self.second_s, 1.0 - self.share)]
            .into_iter()
            .map(range)
            .filter(|range| range.weight > 0.0)
            .collect();
        Weighted::new(ranges).ok().map(Dist::Weighted)
    }
}

/// The two lifetimes that fit the remaining shares best, by the sum of squares; `None` if nothing was measured.
fn lifetimes(survival: &[Survival]) -> Option<Lifetimes> {
    if survival.is_empty() {
        return None;
    }
    let mut lives: Vec<f64> = (0..80).map(|step| 30.0 * libm::pow(10.0, f64::from(step) / 20.0)).collect();
    lives.push(f64::INFINITY);
    let mut best: Option<(f64, Lifetimes)> = None;
    for (at, &first_s) in lives.iter().enumerate() {
        for &second_s in &lives[at..] {
            let (one, two) =
                (Lifetimes { first_s, second_s, share: 1.0 }, Lifetimes { first_s, second_s, share: 0.0 });
            let (mut over, mut under) = (0.0, 0.0);
            for Survival { after_s, share } in survival {
                let step = one.left(*after_s) - two.left(*after_s);
                over += step * (share - two.left(*after_s));
                under += step * step;
            }
            let share = if under > 0.0 { (over / under).clamp(0.0, 1.0) } else { 1.0 };
            let both = Lifetimes { first_s, second_s, share };
            let off =
                |one: &Survival| (both.left(one.after_s) - one.share) * (both.left(one.after_s) - one.share);
            let error: f64 = survival.iter().map(off).sum();
            if best.is_none_or(|(least, _)| error < least) {
                best = Some((error, both));
            }
        }
    }
    best.map(|(_, lives)| lives)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::Popularity;
    use pummel_logic::rng::{Stream, scramble, unit};
    use pummel_logic::workload::popularity::Chooser;

    /// Requests for keys of which a share has the first lifetime, and the others the second.
    fn churn(minutes: u32, rate: u32, share: f64, lives_s: [f64; 2], records: u64) -> Churn {
        let chooser = Chooser::new(&Popularity::Zipf { exponent: 0.9 }, records, 0, 1);
        let stream = Stream::from_seed(8);
        let mut counter = ChurnCounter::default();
        for i in 0..u64::from(minutes * 60 * rate) {
            let slot = chooser.choose(&stream, i);
            let at_s = i as f64 / f64::from(rate);
            let life_s = lives_s[usize::from(unit(scramble(slot ^ 0x5eed)) >= share)];
            let generation = (at_s / life_s + unit(scramble(slot ^ 0xface))) as u64;
            let key = scramble(slot + (generation << 32));
            let half = (stream.draw_sub(i, 7) & 1) as u32;
            counter.take(key, Halves([half, 1 - half]), at_s as u32);
        }
        counter.end(f64::from(minutes * 60))
    }

    #[test]
    fn keys_that_stay_have_no_lifetime() {
        let churn = churn(12, 150, 1.0, [f64::INFINITY; 2], 1_500);
        assert!(churn.survival.len() >= 4, "{churn:?}");
        assert!(churn.survival.iter().all(|one| one.share > 0.9), "{churn:?}");
        assert!(churn.half_life_s.is_none(), "{churn:?}");
    }

    #[test]
    fn half_lives_are_found() {
        // 0.7 (1 - x / 900) + 0.3 (1 - x / 86,400) is 0.5 at 640 s.
        for (share, lives, half_life) in [(1.0, [900.0; 2], 450.0), (0.7, [900.0, 86_400.0], 640.0)] {
            let churn = churn(70, 100, share, lives, 1_000);
            let found = churn.half_life_s.expect("keys change");
            assert!((found / half_life - 1.0).abs() < 0.2, "{found} s, truth {half_life} s: {churn:?}");
            assert!(churn.lifetimes.is_some());
        }
    }

    #[test]
    fn a_half_life_beyond_the_trace_is_none() {
        let churn = churn(25, 150, 1.0, [4_000.0; 2], 1_000);
        assert!(churn.lifetimes.is_some() && churn.half_life_s.is_none(), "{churn:?}");
    }

    #[test]
    fn short_traces_say_nothing() {
        assert_eq!(churn(1, 300, 1.0, [60.0; 2], 1_000), Churn::default());
        let mut counter = ChurnCounter::default();
        (0..200_000u64).for_each(|i| counter.take(scramble(i), Halves([1, 0]), 0));
        assert!(counter.keys.len() <= KEYS_MAX);
        assert_eq!(counter.end(1.0), Churn::default());
    }
}
