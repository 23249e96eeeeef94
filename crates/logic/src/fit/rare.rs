//! How many keys there are behind those that were seen a few times, and how often each is asked for.
//!
//! Keys that are asked for independently are seen so many times by chance alone, and some of them never. The rates behind the
//! counts are the mixture of Poisson laws that is most likely (Efron and Thisted, 1976, for words; found by expectation and
//! maximisation), with one more class: keys that are asked for once and never again.

/// Keys with more requests than this are known well enough.
pub(super) const RARE_MAX: usize = 128;

/// The least and the greatest rate of a class, in requests of a key in the whole trace, and classes in a doubling.
const RATE_LEAST: f64 = 0.25;
const RATE_MOST: f64 = 192.0;
const CLASSES_IN_DOUBLING: f64 = 8.0;

/// Rounds of the search. More of them would only sharpen what chance made.
const ROUNDS: usize = 300;

/// Keys that are asked for equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class {
    /// Requests of each key in the whole trace.
    pub(super) rate: f64,
    /// Keys, with those that were never seen.
    pub(super) keys: f64,
}

/// What is behind the keys that were seen a few times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rare {
    /// Keys that are asked for once and never again.
    pub(super) once: f64,
    /// All others, the most popular ones first.
    pub(super) classes: Vec<Class>,
}

/// The rates behind the numbers of keys that were seen 1, 2, ... [`RARE_MAX`] times. Of the keys that were seen once, the share
/// `once_max` at most are asked for once and never again.
pub(super) fn rates_behind(seen: &[f64; RARE_MAX], once_max: f64) -> Rare {
    let most = seen.iter().rposition(|keys| *keys > 0.0);
    let Some(most) = most else { return Rare::default() };
    let rates = grid(most + 1);
    let laws: Vec<Law> = rates.iter().map(|&rate| Law::new(rate)).collect();
    let total: f64 = seen.iter().sum();
    let mut weights = vec![total / (laws.len() + 1) as f64; laws.len()];
    let mut once =
        if once_max > 0.0 { (total / (laws.len() + 1) as f64).min(once_max * seen[0]) } else { 0.0 };
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; laws.len()];
        let mut next_once = 0.0;
        for (at, &keys) in seen.iter().enumerate().filter(|(_, keys)| **keys > 0.0) {
            let parts = laws.iter().zip(&weights).map(|(law, weight)| law.seen[at] * weight);
            let of_once = if at == 0 { once } else { 0.0 };
            let sum: f64 = parts.clone().sum::<f64>() + of_once;
            if sum <= 0.0 {
                continue;
            }
            next.iter_mut().zip(parts).for_each(|(next, part)| *next += keys * part / sum);
            next_once += keys * of_once / sum;
        }
        once = next_once.min(once_max * seen[0]);
        weights = next;
    }
    let class = |(law, weight): (&Law, f64)| Class { rate: law.rate, keys: weight / law.any };
    let mut classes: Vec<Class> =
        laws.iter().zip(weights).map(class).filter(|class| class.keys >= total * 1e-9).collect();
    classes.reverse();
    Rare { once, classes }
}

/// Rates that keys may have which were seen up to `most` times.
fn grid(most: usize) -> Vec<f64> {
    let above = (most as f64 + 4.0 * libm::sqrt(most as f64)).min(RATE_MOST);
    let rate = |step: u32| RATE_LEAST * libm::pow(2.0, f64::from(step) / CLASSES_IN_DOUBLING);
    (0..).map(rate).take_while(|rate| *rate <= above.max(2.0 * RATE_LEAST)).collect()
}

/// The law of a rate, for keys that were seen 1 to [`RARE_MAX`] times.
struct Law {
    /// Requests of such a key in the mean, where no more than [`RARE_MAX`] count.
    rate: f64,
    /// The share of the keys that are seen at all.
    any: f64,
    /// The shares of those that are seen 1, 2, ... times.
    seen: Vec<f64>,
}

impl Law {
    fn new(rate: f64) -> Law {
        let chance = |times: usize| {
            let times = times as f64;
            libm::exp(times * libm::log(rate) - rate - libm::lgamma(times + 1.0))
        };
        let mut seen: Vec<f64> = (1..=RARE_MAX).map(chance).collect();
        let sum: f64 = seen.iter().sum();
        seen.iter_mut().for_each(|share| *share /= sum);
        let none = libm::exp(-rate);
        let mean: f64 = seen.iter().enumerate().map(|(at, share)| (at + 1) as f64 * share).sum();
        Law { rate: mean * (1.0 - none), any: 1.0 - none, seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, below};

    /// The numbers of keys that were seen so often when each of `keys` keys has the same chance.
    fn seen(draws: u64, keys: u64, once: u64) -> [f64; RARE_MAX] {
        let stream = Stream::from_seed(3);
        let mut counts = vec![0usize; keys as usize];
        (0..draws).for_each(|i| counts[below(stream.draw(i), keys) as usize] += 1);
        let mut seen = [0.0; RARE_MAX];
        counts.iter().filter(|count| **count > 0).for_each(|count| seen[count - 1] += 1.0);
        seen[0] += once as f64;
        seen
    }

    fn keys(rare: &Rare) -> f64 {
        rare.classes.iter().map(|class| class.keys).sum()
    }

    fn requests(rare: &Rare) -> f64 {
        rare.classes.iter().map(|class| class.keys * class.rate).sum::<f64>() + rare.once
    }

    #[test]
    fn keys_that_chance_never_showed_are_counted() {
        for draws in [15_000, 30_000, 100_000] {
            let seen = seen(draws, 10_000, 0);
            let rare = rates_behind(&seen, 1.0);
            let off = keys(&rare) / 10_000.0 - 1.0;
            assert!(off.abs() < 0.05, "{draws} requests: {} keys", keys(&rare));
            assert!((requests(&rare) / draws as f64 - 1.0).abs() < 0.02, "{}", requests(&rare));
        }
    }

    #[test]
    fn keys_that_are_asked_for_once_are_told_from_unlucky_ones() {
        let seen = seen(100_000, 10_000, 20_000);
        let rare = rates_behind(&seen, 1.0);
        assert!((rare.once / 20_000.0 - 1.0).abs() < 0.05, "{}", rare.once);
        assert!((keys(&rare) / 10_000.0 - 1.0).abs() < 0.1, "{}", keys(&rare));
        let none = rates_behind(&seen, 0.0);
        assert_eq!(none.once, 0.0);
        assert!((requests(&none) / 120_000.0 - 1.0).abs() < 0.03, "{}", requests(&none));
    }

    #[test]
    fn without_keys_nothing_is_behind_them() {
        assert_eq!(rates_behind(&[0.0; RARE_MAX], 1.0), Rare::default());
    }
}
