//! The number of records behind the keys that were seen, and the rates of their requests.
//!
//! By chance alone, keys that are requested independently are seen several times or never. The rates behind the
//! counts are estimated as the most likely mixture of Poisson distributions (Efron and Thisted, 1976, for words;
//! found by expectation maximisation), with one more class: keys that are requested once and never again. If records
//! change their keys in the course of time, each record is behind several keys, and each of these was requested only
//! as long as it was the key of the record.

use super::lives::Lives;

/// Number of requests above which the rate of a key is taken from its count alone, if keys stay.
pub(super) const RARE_MAX: usize = 128;

/// The least rate of a class, in requests of a record in the whole trace; then the greatest rate if keys stay, and
/// the number of classes for each doubling of the rate.
const RATE_LEAST: f64 = 1.0 / 16.0;
const RATE_MOST: f64 = 192.0;
const CLASSES_IN_DOUBLING: f64 = 8.0;

/// Number of bins for each doubling of the count. Counts above [`RARE_MAX`] are binned if keys change.
const BINS_IN_DOUBLING: f64 = 16.0;

/// Most rounds of the search. More rounds would only fit chance more closely.
const ROUNDS: usize = 400;

/// Least gain in the logarithm of the likelihood with which the search goes on for another round.
const GAIN_LEAST: f64 = 2e-3;

/// Least gain in the logarithm of the likelihood with which keys that are requested once and never again are
/// separated from rare keys. By chance alone the gain is that large in one of ten thousand traces (Wilks, 1938).
const SEPARATION_GAIN: f64 = 7.0;

/// A class of keys that are requested equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class {
    /// Number of requests of each key in the whole trace.
    pub(super) rate: f64,
    /// Number of keys, including those that were never seen.
    pub(super) keys: f64,
}

/// The estimate of all keys from the keys that were seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RareKeys {
    /// Number of keys that are requested once and never again, if the trace separates them from rare keys.
    pub(super) once: f64,
    /// Greatest possible number of keys that are requested once and never again: more than `once` if the trace does
    /// not separate them from rare keys.
    pub(super) once_most: f64,
    /// All other keys, the most popular ones first.
    pub(super) classes: Vec<Class>,
}

/// The rates behind groups of keys that were seen equally often: up to [`RARE_MAX`] times if keys stay, in any number
/// if they have `lives`. Of the keys that were seen once, at most the share `once_max` are requested once and never
/// again.
pub(super) fn rates_behind(groups: &[Class], once_max: f64, lives: &Lives) -> RareKeys {
    let most = groups.iter().map(|group| group.rate).fold(0.0, f64::max);
    let bins = Bins::new(most, lives);
    let mut seen = vec![0.0; bins.len()];
    for group in groups {
        if let Some(at) = bins.place(group.rate) {
            seen[at] += group.keys;
        }
    }
    if seen.iter().all(|keys| *keys <= 0.0) {
        return RareKeys::default();
    }
    let laws =
        Laws::of(grid(&bins, &seen, lives).into_iter().map(|rate| Law::new(rate, &bins, lives)).collect());
    let without = Mixture::of(&seen, &laws, 0.0);
    if once_max <= 0.0 || seen[0] <= 0.0 {
        return without.rare(&seen, &laws, 0.0);
    }
    let with = Mixture::of(&seen, &laws, once_max);
    match with.likelihood - without.likelihood > SEPARATION_GAIN {
        true => with.rare(&seen, &laws, with.once),
        false => without.rare(&seen, &laws, with.once),
    }
}

/// The bins of the counts of requests of a key: one for each count up to [`RARE_MAX`], and wider ones above if keys
/// change.
struct Bins {
    /// The greatest count of each bin.
    ends: Vec<f64>,
}

impl Bins {
    fn new(most: f64, lives: &Lives) -> Bins {
        let mut ends: Vec<f64> = (1..=RARE_MAX).map(|count| count as f64).collect();
        let step = libm::pow(2.0, 1.0 / BINS_IN_DOUBLING);
        while !lives.are_endless() && ends.last().is_some_and(|end| *end < most) {
            let end = libm::floor(ends[ends.len() - 1] * step);
            ends.push(end);
        }
        Bins { ends }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bin of a count; `None` if the count is above all bins.
    fn place(&self, count: f64) -> Option<usize> {
        let place = self.ends.partition_point(|end| *end < count);
        (place < self.ends.len()).then_some(place)
    }

    /// The range of the counts of a bin, with half a request on both sides.
    fn range(&self, bin: usize) -> (f64, f64) {
        let before = if bin == 0 { 0.0 } else { self.ends[bin - 1] };
        (before + 0.5, self.ends[bin] + 0.5)
    }
}

/// Candidate rates of the records whose keys were seen this often.
fn grid(bins: &Bins, seen: &[f64], lives: &Lives) -> Vec<f64> {
    let most = seen.iter().rposition(|keys| *keys > 0.0).map_or(1.0, |bin| bins.ends[bin]);
    let above = most + 4.0 * libm::sqrt(most);
    let above = if lives.are_endless() { above.min(RATE_MOST) } else { above / lives.shortest() };
    let rate = |step: u32| RATE_LEAST * libm::pow(2.0, f64::from(step) / CLASSES_IN_DOUBLING);
    (0..).map(rate).take_while(|rate| *rate <= above.max(1.0)).collect()
}

/// A mixture: the number of keys for each rate, and the likelihood of the counts.
struct Mixture {
    /// Number of keys that were seen, for each rate.
    weights: Vec<f64>,
    once: f64,
    /// The logarithm of the likelihood.
    likelihood: f64,
}

impl Mixture {
    /// Finds the most likely mixture. At most the share `once_max` of the keys that were seen once are taken to be
    /// requested once and never again.
    fn of(seen: &[f64], laws: &Laws, once_max: f64) -> Mixture {
        let total: f64 = seen.iter().sum();
        let once = (total / (laws.all.len() + 1) as f64).min(once_max * seen[0]);
        // The search begins with as many records of each rate. With as many keys, it would leave some keys of the least rates that
        // stand for very many records.
        let shares: Vec<f64> = laws.all.iter().map(|law| law.any.min(1.0)).collect();
        let sum: f64 = shares.iter().sum();
        let weights = shares.iter().map(|share| (total - once) * share / sum).collect();
        let mut mixture = Mixture { weights, once, likelihood: f64::NEG_INFINITY };
        for _ in 0..ROUNDS {
            let next = mixture.next(seen, laws, once_max);
            let gain = next.likelihood - mixture.likelihood;
            mixture = next;
            if gain < GAIN_LEAST {
                break;
            }
        }
        mixture
    }

    fn next(&self, seen: &[f64], laws: &Laws, once_max: f64) -> Mixture {
        let total: f64 = seen.iter().sum();
        let mut factors = vec![0.0; laws.all.len()];
        let (mut once, mut likelihood) = (0.0, 0.0);
        for (at, (&keys, shares)) in seen.iter().zip(&laws.by_bin).enumerate() {
            if keys <= 0.0 {
                continue;
            }
            let of_once = if at == 0 { self.once } else { 0.0 };
            let mut sum = of_once;
            for (share, weight) in shares.iter().zip(&self.weights) {
                sum += share * weight;
            }
            if sum <= 0.0 {
                continue;
            }
            let factor = keys / sum;
            for (all, share) in factors.iter_mut().zip(shares) {
                *all += factor * share;
            }
            once += factor * of_once;
            likelihood += keys * libm::log(sum / total);
        }
        let weights = factors.iter().zip(&self.weights).map(|(factor, weight)| factor * weight).collect();
        Mixture { weights, once: once.min(once_max * seen[0]), likelihood }
    }

    /// The classes of keys in the mixture; `once_most` is the greatest possible number of keys that are requested
    /// once and never again.
    fn rare(&self, seen: &[f64], laws: &Laws, once_most: f64) -> RareKeys {
        let total: f64 = seen.iter().sum();
        let class = |(law, weight): (&Law, &f64)| Class { rate: law.rate, keys: weight / law.any };
        let mut classes: Vec<Class> = laws
            .all
            .iter()
            .zip(&self.weights)
            .map(class)
            .filter(|class| class.keys.is_finite() && class.keys >= total * 1e-9)
            .collect();
        classes.reverse();
        RareKeys { once: self.once, once_most, classes }
    }
}

/// The distributions of counts for all candidate rates.
struct Laws {
    all: Vec<Law>,
    /// The shares of each bin in all distributions.
    by_bin: Vec<Vec<f64>>,
}

impl Laws {
    fn of(all: Vec<Law>) -> Laws {
        let bins = all.first().map_or(0, |law| law.seen.len());
        let by_bin = (0..bins).map(|bin| all.iter().map(|law| law.seen[bin]).collect()).collect();
        Laws { all, by_bin }
    }
}

/// The distribution of the counts of keys for one rate.
struct Law {
    /// Requests of a record with this rate in the mean, where keys stay only of those with no more requests than there
    /// are bins.
    rate: f64,
    /// Mean number of keys of a record with this rate that are seen.
    any: f64,
    /// The shares of the keys that are seen in each bin.
    seen: Vec<f64>,
}

impl Law {
    fn new(rate: f64, bins: &Bins, lives: &Lives) -> Law {
        match lives.are_endless() {
            true => Law::of_one_key(rate, bins),
            false => Law::of_several_keys(rate, bins, lives),
        }
    }

    fn of_one_key(rate: f64, bins: &Bins) -> Law {
        let chance = |times: &f64| libm::exp(times * libm::log(rate) - rate - libm::lgamma(times + 1.0));
        let mut seen: Vec<f64> = bins.ends.iter().map(chance).collect();
        let sum: f64 = seen.iter().sum();
        seen.iter_mut().for_each(|share| *share /= sum);
        let none = libm::exp(-rate);
        let mean: f64 = seen.iter().zip(&bins.ends).map(|(share, times)| times * share).sum();
        Law { rate: mean * (1.0 - none), any: 1.0 - none, seen }
    }

    fn of_several_keys(rate: f64, bins: &Bins, lives: &Lives) -> Law {
        let mut seen = vec![0.0; bins.len()];
        for life in lives.of_keys() {
            let counts = RequestChances::up_to_rare_max(rate * life.length);
            for (bin, seen) in seen.iter_mut().enumerate() {
                let whole = counts.whole(bin, bins.range(bin));
                let cut = counts.cut(bin, bins.range(bin));
                *seen += life.whole * whole + life.cut * cut;
            }
        }
        let any: f64 = seen.iter().sum();
        seen.iter_mut().for_each(|share| *share /= any);
        Law { rate, any, seen }
    }
}

/// The distribution of the requests for a key that a record with an even rate has for some time.
struct RequestChances {
    /// Requests in the whole of this time.
    mean: f64,
    /// The chances of 0, 1, ... [`RARE_MAX`] requests in all of the time.
    chances: Vec<f64>,
    /// The probabilities of more requests than that, by bin.
    above: Vec<f64>,
}

impl RequestChances {
    fn up_to_rare_max(mean: f64) -> RequestChances {
        let chance = |times: usize| {
            let times = times as f64;
            libm::exp(times * libm::log(mean) - mean - libm::lgamma(times + 1.0))
        };
        let chances: Vec<f64> = (0..=RARE_MAX).map(chance).collect();
        let mut left = 1.0;
        let above = chances.iter().map(|chance| {
            left = f64::max(left - chance, 0.0);
            left
        });
        let above = above.collect();
        RequestChances { mean, chances, above }
    }

    /// The probability that a key gets as many requests as a bin has, in the whole time.
    fn whole(&self, bin: usize, (low, high): (f64, f64)) -> f64 {
        if bin < RARE_MAX {
            return self.chances[bin + 1];
        }
        let until = |count: f64| 0.5 * libm::erfc((self.mean - count) / libm::sqrt(2.0 * self.mean));
        (until(high) - until(low)).max(0.0)
    }

    /// The probability of this many requests in a part of the time, each length of which is equally likely.
    fn cut(&self, bin: usize, (low, high): (f64, f64)) -> f64 {
        if bin < RARE_MAX {
            return self.above[bin + 1] / self.mean;
        }
        // The mean over the lengths is so near to the lengths whose mean number is in the bin.
        (high.min(self.mean) - low.min(self.mean)) / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::{Stream, below};

    /// Groups of keys by their counts, if each of `keys` keys has the same probability.
    fn seen(draws: u64, keys: u64, once: u64) -> Vec<Class> {
        let stream = Stream::from_seed(3);
        let mut counts = vec![0usize; keys as usize];
        (0..draws).for_each(|i| counts[below(stream.draw(i), keys) as usize] += 1);
        let mut seen = vec![0.0; 1 + counts.iter().max().expect("there are keys").max(&1)];
        counts.iter().for_each(|count| seen[*count] += 1.0);
        seen[1] += once as f64;
        groups(&seen)
    }

    fn groups(seen: &[f64]) -> Vec<Class> {
        let groups =
            seen.iter().enumerate().skip(1).map(|(rate, keys)| Class { rate: rate as f64, keys: *keys });
        groups.collect()
    }

    fn keys(rare: &RareKeys) -> f64 {
        rare.classes.iter().map(|class| class.keys).sum()
    }

    fn requests(rare: &RareKeys) -> f64 {
        rare.classes.iter().map(|class| class.keys * class.rate).sum::<f64>() + rare.once
    }

    #[test]
    fn keys_that_chance_never_showed_are_counted() {
        for draws in [15_000, 30_000, 100_000] {
            let seen = seen(draws, 10_000, 0);
            let rare = rates_behind(&seen, 1.0, &Lives::endless());
            let off = keys(&rare) / 10_000.0 - 1.0;
            assert!(off.abs() < 0.05, "{draws} requests: {} keys", keys(&rare));
            assert!((requests(&rare) / draws as f64 - 1.0).abs() < 0.02, "{}", requests(&rare));
        }
    }

    #[test]
    fn keys_that_are_asked_for_once_are_told_from_unlucky_ones() {
        let seen = seen(100_000, 10_000, 20_000);
        let rare = rates_behind(&seen, 1.0, &Lives::endless());
        assert!((rare.once / 20_000.0 - 1.0).abs() < 0.05, "{}", rare.once);
        assert!((keys(&rare) / 10_000.0 - 1.0).abs() < 0.1, "{}", keys(&rare));
        let none = rates_behind(&seen, 0.0, &Lives::endless());
        assert_eq!(none.once, 0.0);
        assert!((requests(&none) / 120_000.0 - 1.0).abs() < 0.03, "{}", requests(&none));
    }

    #[test]
    fn without_keys_nothing_is_behind_them() {
        assert_eq!(rates_behind(&[], 1.0, &Lives::endless()), RareKeys::default());
    }

    #[test]
    fn rare_keys_are_not_taken_for_such_that_never_come_again() {
        // Each of 300,000 keys is asked for every ten traces: hardly any of those that were seen was seen twice.
        for (draws, keys) in [(30_000, 300_000), (3_000, 20_000)] {
            let rare = rates_behind(&seen(draws, keys, 0), 1.0, &Lives::endless());
            assert_eq!(rare.once, 0.0, "{draws} of {keys}");
            assert!(rare.once_most > 0.0, "{rare:?}");
            let off = self::keys(&rare) / keys as f64;
            assert!((0.5..2.0).contains(&off), "{draws} of {keys}: {}", self::keys(&rare));
        }
        // Nothing was seen twice: that is separated from rare keys where it is of enough keys.
        for (once, is_separated) in [(30, false), (30_000, true)] {
            let rare = rates_behind(&groups(&[0.0, f64::from(once)]), 1.0, &Lives::endless());
            assert_eq!(rare.once > 0.0, is_separated, "{once}: {rare:?}");
        }
    }

    /// The counts of keys of records with this rate whose keys live for `life`, as a share of the trace.
    fn of_lives(records: u64, rate: f64, life: f64) -> Vec<Class> {
        let stream = Stream::from_seed(4);
        let mut seen = vec![0.0; 4 * rate as usize + 100];
        for record in 0..records {
            let mut until = pummel_logic::rng::unit(stream.draw(record)) * life;
            let (mut at, mut count, mut gap) = (0.0, 0, 0);
            loop {
                gap += 1;
                at += -libm::log(pummel_logic::rng::unit(stream.draw_sub(record, gap))) / rate;
                while at >= until {
                    seen[count] += 1.0;
                    (count, until) = (0, until + life);
                    if until - life >= 1.0 {
                        break;
                    }
                }
                if at >= 1.0 {
                    seen[count] += 1.0;
                    break;
                }
                count += 1;
            }
        }
        groups(&seen)
    }

    #[test]
    fn records_are_counted_that_had_several_keys() {
        for (rate, life) in [(20.0, 0.3), (400.0, 0.1), (3_000.0, 0.25), (50.0, 2.5)] {
            let seen = of_lives(3_000, rate, life);
            let lives = Lives::of(&[(life, 1.0)]);
            let rare = rates_behind(&seen, 0.0, &lives);
            let off = keys(&rare) / 3_000.0;
            assert!((off - 1.0).abs() < 0.08, "{rate} {life}: {} records", keys(&rare));
            assert!(
                (requests(&rare) / (3_000.0 * rate) - 1.0).abs() < 0.05,
                "{rate} {life}: {}",
                requests(&rare)
            );
        }
    }
}
