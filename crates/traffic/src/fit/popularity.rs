//! The popularity of keys: shares of the most popular ones, the records behind them, and the distance from Zipf's law.

use super::keys::Halves;
use super::knots::Curve;
use super::lives::Lives;
use super::rare::{Class, RARE_MAX, rates_behind};

/// Most points of the table of ranks.
const POINTS_MAX: usize = 64;

/// Number of ranks in each doubling among which the points of the table are chosen.
const CANDIDATES_IN_DOUBLING: f64 = 64.0;

/// Distance from the shares below which the table of ranks is not made finer.
const TOLERANCE: f64 = 2e-4;

/// Fewest requests of a key, in one half of the requests, with which its rank is fitted. The order of rarer keys is
/// due to chance.
const HALF_LEAST: u32 = 10;

/// Fewest ranks to which an exponent is fitted.
const RANKS_LEAST: usize = 20;

/// Greatest exponent in the search.
const EXPONENT_MOST: f64 = 5.0;

/// Greatest distance from Zipf's law with which keys are said to follow it.
pub const ZIPF_DISTANCE_MAX: f64 = 0.05;

/// A key that was seen, or the keys that a key of the sample represents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SeenKey {
    /// Numbers of the requests for the key in the two halves of all requests.
    pub(super) halves: Halves,
    /// Number of keys that the key represents.
    pub(super) weight: f64,
}

/// Zipf's law, fitted to a range of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipf {
    /// The exponent: a key of rank r gets a share of the requests proportional to r^-`exponent`.
    pub exponent: f64,
    /// The standard error of the exponent.
    pub error: f64,
    /// The last rank of the range, which begins with 1.
    pub last_rank: f64,
    /// The greatest distance between the cumulative shares of the requests and those of the law (Kolmogorov and
    /// Smirnov).
    pub distance: f64,
}

/// Cumulative sums of requests over keys, the most popular keys first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// Numbers of keys and requests up to the end of each group of equally popular keys.
    ends: Vec<(f64, f64)>,
}

impl Shares {
    fn of(groups: impl Iterator<Item = Class>) -> Shares {
        let mut ends = Vec::new();
        let (mut keys, mut requests) = (0.0, 0.0);
        for group in groups.filter(|group| group.keys > 0.0) {
            keys += group.keys;
            requests += group.keys * group.rate;
            ends.push((keys, requests));
        }
        Shares { ends }
    }

    /// Number of keys.
    pub fn keys(&self) -> f64 {
        self.ends.last().map_or(0.0, |end| end.0)
    }

    /// Number of requests.
    pub fn requests(&self) -> f64 {
        self.ends.last().map_or(0.0, |end| end.1)
    }

    /// The share of the requests, 0 to 1, for the `keys` most popular keys.
    pub fn top(&self, keys: f64) -> f64 {
        if keys >= self.keys() {
            return if self.ends.is_empty() { 0.0 } else { 1.0 };
        }
        let at = self.ends.partition_point(|end| end.0 <= keys);
        let before = if at == 0 { (0.0, 0.0) } else { self.ends[at - 1] };
        let end = self.ends[at];
        let within = (keys - before.0) / (end.0 - before.0);
        (before.1 + within * (end.1 - before.1)) / self.requests()
    }

    /// The points of the popularity `ranks:`: numbers of records and the shares of the requests for them, ascending,
    /// at most 64.
    pub fn table(&self, records: u64) -> Vec<(u64, f64)> {
        if self.ends.is_empty() {
            return vec![(records, 1.0)];
        }
        let mut ranks: Vec<u64> = Vec::new();
        let mut step = 0u32;
        while ranks.last().is_none_or(|last| *last < records) {
            let rank = libm::pow(2.0, f64::from(step) / CANDIDATES_IN_DOUBLING) as u64;
            if ranks.last().is_none_or(|last| *last < rank.min(records)) {
                ranks.push(rank.min(records));
            }
            step += 1;
        }
        let xs: Vec<f64> = ranks.iter().map(|rank| libm::log(*rank as f64)).collect();
        let scale = self.keys() / records as f64;
        let ys: Vec<f64> = ranks.iter().map(|rank| self.top(*rank as f64 * scale)).collect();
        let line_from = |at: usize| xs[at];
        let curve = Curve { xs: &xs, ys: &ys, line_from: &line_from };
        let ends = if ranks.len() > 1 { vec![0, ranks.len() - 1] } else { vec![0] };
        let knots = curve.knots(&ends, POINTS_MAX, TOLERANCE);
        let mut points: Vec<(u64, f64)> = Vec::new();
        for knot in knots {
            let share = libm::round(ys[knot] * 1e6) / 1e6;
            match points.last() {
                Some(last) if last.1 >= share => {}
                _ => points.push((ranks[knot], share)),
            }
        }
        points
    }
}

/// The distribution of the requests of a trace over its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// The popularity of the keys that were seen.
    pub seen: Shares,
    /// The records behind the keys, including those that by chance were never seen; without keys that are requested
    /// once and never again.
    pub records: Shares,
    /// Number of keys that are requested once and never again, if the trace separates them from rare keys; 0
    /// otherwise.
    pub once: f64,
    /// Greatest possible number of keys that are requested once and never again.
    pub once_most: f64,
    /// Zipf's law on the ranks whose order is not due to chance, and on the first tenth of them; `None` if there are
    /// too few.
    pub zipf: Option<(Zipf, Option<Zipf>)>,
}

impl Spread {
    /// The popularity of these keys, with `requests` requests. Of the keys that were seen once, at most the share
    /// `once_max` can be fresh ones, which are requested once and never again. `lives` are the lives of the records'
    /// keys.
    pub(super) fn of(mut keys: Vec<SeenKey>, requests: f64, once_max: f64, lives: &Lives) -> Spread {
        scale_sampled(&mut keys, requests);
        let zipf = zipf(&keys);
        keys.sort_unstable_by_key(|key| std::cmp::Reverse(key.halves.count()));
        let groups = groups(&keys);
        let behind = rates_behind(&groups, once_max, lives);
        let seen = Shares::of(groups.iter().copied());
        // Where keys never change, a record has one key, whose requests are all of the record's.
        let is_known = |group: &Class| lives.are_endless() && group.rate > RARE_MAX as f64;
        let known = groups.iter().copied().filter(is_known);
        let records = Shares::of(known.chain(behind.classes.iter().copied()));
        Spread { seen, records, once: behind.once, once_most: behind.once_most, zipf }
    }
}

/// Scales the counts of sampled keys, each of which may represent several keys, so that they add up to all requests.
fn scale_sampled(keys: &mut [SeenKey], requests: f64) {
    let sum = |is_sampled: bool| -> f64 {
        let of = |key: &&SeenKey| (key.weight > 1.0) == is_sampled;
        keys.iter().filter(of).map(|key| key.halves.count() as f64 * key.weight).sum()
    };
    let (known, sampled) = (sum(false), sum(true));
    if sampled > 0.0 && requests > known {
        let scale = (requests - known) / sampled;
        keys.iter_mut().filter(|key| key.weight > 1.0).for_each(|key| key.weight *= scale);
    }
}

/// Groups the keys by the number of times that they were seen; the keys are in the order of their counts.
fn groups(keys: &[SeenKey]) -> Vec<Class> {
    let mut groups: Vec<Class> = Vec::new();
    for key in keys.iter().filter(|key| key.halves.count() > 0) {
        let rate = key.halves.count() as f64;
        match groups.last_mut() {
            Some(last) if last.rate == rate => last.keys += key.weight,
            _ => groups.push(Class { rate, keys: key.weight }),
        }
    }
    groups
}

/// A rank with the number of its requests.
#[derive(Clone, Copy)]
struct Rank {
    log: f64,
    keys: f64,
    requests: f64,
}

/// Zipf's law on all ranks whose order is not due to chance, and on the first tenth of them. One half of the requests
/// orders the keys, and the other half counts (Piantadosi, 2014): with one half for both, keys that were requested
/// often by chance would rank too high.
fn zipf(keys: &[SeenKey]) -> Option<(Zipf, Option<Zipf>)> {
    let mut keys: Vec<&SeenKey> = keys.iter().filter(|key| key.halves.0[0] >= HALF_LEAST).collect();
    // Keys with equally many requests in the first half stay in an order that knows nothing of the second one.
    keys.sort_by_key(|key| std::cmp::Reverse(key.halves.0[0]));
    let mut before = 0.0;
    let rank = |key: &&SeenKey| {
        // The middle of the ranks that the key stands for.
        let middle = before + (key.weight + 1.0) / 2.0;
        before += key.weight;
        Rank { log: libm::log(middle), keys: key.weight, requests: f64::from(key.halves.0[1]) * key.weight }
    };
    let ranks: Vec<Rank> = keys.iter().map(rank).collect();
    let all = fitted(&ranks)?;
    let tenth = ranks.partition_point(|rank| libm::exp(rank.log) <= all.last_rank / 10.0);
    Some((all, fitted(&ranks[..tenth])))
}

/// The exponent with which the requests of the ranks are most likely.
fn fitted(ranks: &[Rank]) -> Option<Zipf> {
    let requests: f64 = ranks.iter().map(|rank| rank.requests).sum();
    if ranks.len() < RANKS_LEAST || requests <= 0.0 {
        return None;
    }
    let target = ranks.iter().map(|rank| rank.requests * rank.log).sum::<f64>() / requests;
    // The mean logarithm of a rank falls as the exponent grows.
    let (mut low, mut high) = (0.0, EXPONENT_MOST);
    let mut exponent = 1.0;
    for _ in 0..40 {
        let (_, mean, variance) = moments(ranks, exponent);
        match mean > target {
            true => low = exponent,
            false => high = exponent,
        }
        let newton = exponent + (mean - target) / variance;
        let next = if newton > low && newton < high { newton } else { f64::midpoint(low, high) };
        let step = (next - exponent).abs();
        exponent = next;
        if step < 1e-7 {
            break;
        }
    }
    let (sum, _, variance) = moments(ranks, exponent);
    let (mut found, mut law, mut distance) = (0.0, 0.0, 0.0f64);
    for rank in ranks {
        found += rank.requests / requests;
        law += rank.keys * libm::exp(-exponent * rank.log) / sum;
        distance = distance.max((found - law).abs());
    }
    let error = 1.0 / libm::sqrt(requests * variance);
    let last_rank = ranks.iter().map(|rank| rank.keys).sum();
    Some(Zipf { exponent, error, last_rank, distance })
}

/// The sum of the law over the ranks, and the mean and the variance of the logarithm of a rank under it.
fn moments(ranks: &[Rank], exponent: f64) -> (f64, f64, f64) {
    let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
    for rank in ranks {
        let weight = rank.keys * libm::exp(-exponent * rank.log);
        sum += weight;
        first += weight * rank.log;
        second += weight * rank.log * rank.log;
    }
    let mean = first / sum;
    (sum, mean, (second / sum - mean * mean).max(1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::Popularity;
    use pummel_logic::rng::{Stream, unit};
    use pummel_logic::workload::popularity::Chooser;

    fn seen(popularity: &Popularity, records: u64, draws: u64) -> Vec<SeenKey> {
        let chooser = Chooser::new(popularity, records, 0, 1);
        let stream = Stream::from_seed(6);
        let mut counts = vec![[0u32; 2]; records as usize];
        for i in 0..draws {
            let half = usize::from(unit(stream.draw_sub(i, 9)) < 0.5);
            counts[chooser.choose(&stream, i) as usize][half] += 1;
        }
        counts
            .iter()
            .filter(|halves| halves[0] + halves[1] > 0)
            .map(|&halves| SeenKey { halves: Halves(halves), weight: 1.0 })
            .collect()
    }

    fn spread(popularity: &Popularity, records: u64, draws: u64) -> Spread {
        Spread::of(seen(popularity, records, draws), draws as f64, 1.0, &Lives::endless())
    }

    #[test]
    fn the_exponent_of_zipfs_law_is_found() {
        for exponent in [0.7, 0.99, 1.2] {
            let spread = spread(&Popularity::Zipf { exponent }, 5_000, 500_000);
            let (all, tenth) = spread.zipf.expect("many ranks");
            assert!((all.exponent - exponent).abs() < 0.02, "{exponent}: {all:?}");
            assert!((tenth.expect("many ranks").exponent - exponent).abs() < 0.04, "{exponent}: {tenth:?}");
            assert!(all.distance < 0.02 && all.error < 0.01, "{all:?}");
        }
    }

    #[test]
    fn what_is_not_zipf_is_far_from_it() {
        let spread = spread(&Popularity::Hot { keys: 0.1, requests: 0.5 }, 2_000, 400_000);
        let (all, _) = spread.zipf.expect("many ranks");
        assert!(all.distance > ZIPF_DISTANCE_MAX, "{all:?}");
        assert!(Spread::of(Vec::new(), 0.0, 1.0, &Lives::endless()).zipf.is_none());
    }

    #[test]
    fn a_table_of_ranks_draws_what_was_seen() {
        for exponent in [0.0, 0.7, 0.99, 1.2] {
            let truth = spread(&Popularity::Zipf { exponent }, 8_000, 150_000);
            let records = truth.records.keys().round() as u64;
            let table = truth.records.table(records);
            assert!(table.len() <= POINTS_MAX && table.is_sorted(), "{table:?}");
            let words: Vec<String> = table.iter().map(|(rank, share)| format!("{rank}={share}")).collect();
            let popularity: Popularity = format!("ranks:{}", words.join(",")).parse().expect("a popularity");
            let again = spread(&popularity, records, 150_000);
            for keys in [1.0, 10.0, 100.0, 1_000.0, 4_000.0] {
                let (one, two) = (truth.seen.top(keys), again.seen.top(keys));
                assert!((one - two).abs() < 0.005, "zipf:{exponent}, {keys} keys: {one} {two}");
            }
            let (one, two) = (truth.seen.keys(), again.seen.keys());
            assert!((one / two - 1.0).abs() < 0.02, "zipf:{exponent}: {one} {two}");
        }
    }

    #[test]
    fn tables_of_few_records_have_a_point_for_each_or_one() {
        let of = |counts: &[u32]| {
            let keys =
                counts.iter().map(|&count| SeenKey { halves: Halves([count, 0]), weight: 1.0 }).collect();
            let requests = counts.iter().sum::<u32>();
            Spread::of(keys, requests.into(), 0.0, &Lives::endless())
        };
        assert_eq!(of(&[500]).records.table(1), [(1, 1.0)]);
        assert_eq!(of(&[600, 400]).records.table(2), [(1, 0.6), (2, 1.0)]);
        let one = of(&[1]);
        assert!(one.records.table(1).last() == Some(&(1, 1.0)), "{one:?}");
    }

    #[test]
    fn keys_of_a_sample_stand_for_the_rest_of_the_requests() {
        let mut keys = vec![SeenKey { halves: Halves([500, 500]), weight: 1.0 }];
        keys.extend((0..100).map(|_| SeenKey { halves: Halves([200, 200]), weight: 8.0 }));
        let spread = Spread::of(keys, 1_000.0 + 400_000.0, 1.0, &Lives::endless());
        assert!((spread.seen.keys() - 1_001.0).abs() < 1e-6);
        assert!((spread.seen.top(1.0) - 1_000.0 / 401_000.0).abs() < 1e-9);
    }
}
