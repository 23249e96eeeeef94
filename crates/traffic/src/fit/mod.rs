//! `pummel fit`: the figures of a trace, from which a workload can be made.
//!
//! A [`Fitter`] reads the rows of a trace in one pass and in bounded memory. Operations are counted exactly. Figures
//! of keys are exact up to [`KEYS_EXACT_MAX`] keys; of more keys they come from a sample. The [`Fit`] has the
//! figures. [`generate()`] makes the rows of a workload without a server, and [`Comparison`] compares two fits.

mod arrivals;
mod churn;
mod compare;
mod counts;
mod curve;
mod generate;
mod head;
mod key_count;
mod keys;
mod knots;
mod lives;
mod pairs;
mod popularity;
mod rare;
mod stack;
mod stat;
mod working_set;

pub use self::arrivals::{ArrivalFit, BURSTS_LEAST, Dispersion, FittedBurst};
pub use self::churn::{Churn, Survival};
pub use self::compare::{Bound, Compared, Comparison};
pub use self::counts::ValueCounts;
pub use self::curve::MissCurve;
pub use self::generate::{Load, RowSink, generate};
pub use self::popularity::{Shares, Spread, ZIPF_DISTANCE_MAX, Zipf};
pub use self::stat::Stat;
pub use self::working_set::WorkingSet;

use self::arrivals::{Arrivals, Resolution};
use self::churn::ChurnCounter;
use self::head::Head;
use self::keys::{Halves, KeyRequest, KeySample, Slot, Touch};
use self::lives::Lives;
use self::pairs::Pairs;
use self::popularity::SeenKey;
use crate::trace::row::Row;
use pummel_logic::dist::{Dist, Range, Weighted};
use pummel_logic::plan::KeyChurn;
use pummel_logic::protocol::Verb;
use pummel_logic::rng::scramble;
use pummel_logic::time::{Nanos, SECOND, seconds};

/// Most keys of a trace that are all kept. Of a trace with more keys, a sample is kept.
pub const KEYS_EXACT_MAX: usize = 1 << 20;

/// Number of independent samples from which the error of a miss ratio is estimated.
const SAMPLES: u64 = 4;

/// Most keys of one of these samples. A sample begins with the share 2^-`SAMPLE_HALVINGS` of the keys, which are this
/// many in a trace of [`KEYS_EXACT_MAX`] keys.
const SAMPLE_KEYS_MAX: usize = 1 << 16;
const SAMPLE_HALVINGS: u32 = 4;

/// End of each class of popularity, as a share of the keys, the most popular ones first.
pub const CLASS_ENDS: [f64; 4] = [0.01, 0.1, 0.5, 1.0];

/// Fewest requests with which the number of records is estimated. For fewer requests it is the number of keys that
/// were requested.
const RECORDS_ESTIMATED_FROM: u64 = 1_000;

/// Least ratio of two medians of the lengths of values with which classes of popularity have different lengths.
const MEDIANS_APART: f64 = 1.25;

/// Fewest keys of a class of popularity whose lengths are compared with those of other classes.
const CLASS_KEYS_LEAST: f64 = 50.0;

/// Longest lifetime of a key, in requests.
const REQUESTS_OF_LIFE_MAX: u64 = 1 << 50;

/// Least share of the recorded misses that are filled by their client with which a workload fills its own misses.
const FILLED_LEAST: f64 = 0.5;

/// The figures of a trace.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Number of requests, including those that fill a miss.
    pub requests: u64,
    /// Number of requests of each operation, in the order of [`Verb::ALL`], without those that fill a miss.
    pub by_verb: [u64; Verb::COUNT],
    /// Number of stores of each operation that fill a miss of their client within 5 s.
    pub fills_by_verb: [u64; Verb::COUNT],
    /// Number of reads that missed when the trace was recorded.
    pub missed: u64,
    /// Mean time from a miss to its fill, in nanoseconds.
    pub fill_delay_ns: f64,
    /// Number of rows that are earlier than a row before them; they count as made at the latest time so far.
    pub out_of_order: u64,
    /// Time from the first row to the last one, in nanoseconds.
    pub span_ns: Nanos,
    /// Precision of most times, in nanoseconds.
    pub resolution_ns: Nanos,
    /// Number of different keys; an estimate if [`Fit::sampled`] is below 1.
    pub keys: f64,
    /// The share of the keys from which figures of keys are computed; 1 if all keys are kept.
    pub sampled: f64,
    /// Number of keys that were requested once.
    pub one_hit_keys: f64,
    /// The distribution of the requests over the keys.
    pub spread: Spread,
    /// The share of the keys requested once that were requested by a read.
    pub one_hit_reads: f64,
    /// Lengths of keys in bytes, one for each key.
    pub key_bytes: ValueCounts,
    /// Known lengths of values in bytes, one for each key.
    pub value_bytes: ValueCounts,
    /// Known lengths of values in bytes, one for each key, for each class of popularity ([`CLASS_ENDS`]).
    pub class_bytes: [ValueCounts; CLASS_ENDS.len()],
    /// Known lengths of values in bytes, one for each request.
    pub request_bytes: ValueCounts,
    /// Times to live in seconds, one for each store; 0 for none.
    pub ttl_s: ValueCounts,
    /// Numbers of different keys in a minute, ten minutes and an hour.
    pub working_sets: [WorkingSet; working_set::WINDOWS_S.len()],
    /// Sum of the bytes of all keys and of their last values.
    pub all_bytes: f64,
    /// Lookups by the size of the LRU cache, in objects, from which on they hit.
    pub by_objects: MissCurve,
    /// Lookups by the size of the LRU cache, in bytes, from which on they hit.
    pub by_bytes: MissCurve,
    /// Miss curves of independent samples, whose differences give the error of [`Fit::by_objects`]; empty if that curve
    /// is exact.
    pub samples: Vec<MissCurve>,
    /// Change of keys in the course of the trace.
    pub churn: Churn,
    /// The arrivals of the requests.
    pub arrivals: ArrivalFit,
}

impl Fit {
    /// Number of stores that fill a miss of their client within 5 s.
    pub fn fills(&self) -> u64 {
        self.fills_by_verb.iter().sum()
    }

    /// Whether a workload like the trace fills its own misses: at least half of the recorded misses were filled.
    pub fn fills_misses(&self) -> bool {
        self.missed > 0 && self.fills() as f64 >= FILLED_LEAST * self.missed as f64
    }

    /// The operations of a workload with their shares of its requests, 0 to 1, without the fills that the workload
    /// makes itself. A cas of a workload makes its own gets, so the gets of the trace are reduced by the number of
    /// cas.
    pub fn mix(&self) -> Vec<(Verb, f64)> {
        let mut counts = self.by_verb;
        if !self.fills_misses() {
            counts.iter_mut().zip(self.fills_by_verb).for_each(|(count, fills)| *count += fills);
        }
        let cas = counts[Verb::Cas as usize];
        let gets = &mut counts[Verb::Gets as usize];
        *gets = gets.saturating_sub(cas);
        let total: u64 = counts.iter().sum();
        let share = |verb: Verb| (verb, counts[verb as usize] as f64 / total.max(1) as f64);
        Verb::ALL.into_iter().map(share).filter(|(_, share)| *share > 0.0).collect()
    }

    /// The share of the reads, without those that belong to a cas, that `keys` keys requested once account for.
    fn share_of_reads(&self, keys: f64) -> f64 {
        let reads = Verb::ALL.into_iter().filter(|verb| verb.reads());
        let reads: u64 = reads.map(|verb| self.by_verb[verb as usize]).sum();
        let of_cas = self.by_verb[Verb::Cas as usize].min(self.by_verb[Verb::Gets as usize]);
        if reads > of_cas { (keys / (reads - of_cas) as f64).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share of the reads, 0 to 1, for keys that are requested once and never again.
    pub fn fresh(&self) -> f64 {
        self.share_of_reads(self.spread.once)
    }

    /// The greatest possible share of the reads, 0 to 1, for keys that are requested once and never again. The share
    /// is above [`Fit::fresh`] if the trace does not separate these keys from rare keys.
    pub fn fresh_most(&self) -> f64 {
        self.share_of_reads(self.spread.once_most)
    }

    /// Lifetimes of the keys of records, in requests at the mean rate of the trace, so that the share of new keys is
    /// the same at any rate; `None` if records keep their keys.
    pub fn key_churn(&self) -> Option<KeyChurn> {
        let Some(Dist::Weighted(lives)) = &self.churn.lifetimes else { return None };
        let primary: u64 = self.by_verb.iter().sum();
        let rate = primary as f64 * SECOND as f64 / self.span_ns.max(1) as f64;
        let requests =
            |life_s: u64| (libm::round(life_s as f64 * rate) as u64).clamp(1, REQUESTS_OF_LIFE_MAX);
        let range = |range: &Range| Range {
            low: requests(range.low),
            high: requests(range.high),
            weight: range.weight,
        };
        let lives = Weighted::new(lives.ranges().iter().map(range).collect()).ok()?;
        Some(KeyChurn::Requests(Dist::Weighted(lives)))
    }

    /// The number of records behind the requests, at least 1: the keys that were seen, and an estimate of those that
    /// were by chance not requested.
    pub fn records(&self) -> u64 {
        let is_estimated = self.requests >= RECORDS_ESTIMATED_FROM;
        let records = if is_estimated { self.spread.records.keys() } else { self.keys };
        (libm::round(records) as u64).max(1)
    }

    /// The share of the requests, 0 to 1, that are the first for their key.
    pub fn compulsory(&self) -> f64 {
        let requests = self.requests.saturating_sub(self.fills());
        if requests == 0 { 0.0 } else { (self.keys / requests as f64).clamp(0.0, 1.0) }
    }

    /// The share of the keys, 0 to 1, that were requested once.
    pub fn one_hit(&self) -> f64 {
        if self.keys > 0.0 { (self.one_hit_keys / self.keys).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether the lengths of values depend on popularity: the medians of two classes with enough keys differ by more
    /// than 25 %.
    pub fn sizes_differ(&self) -> bool {
        let medians = self.class_bytes.iter().filter(|class| class.total() >= CLASS_KEYS_LEAST);
        let (low, high) = medians.fold((f64::INFINITY, 0.0_f64), |(low, high), class| {
            let median = class.quantile(0.5) as f64;
            (low.min(median), high.max(median))
        });
        high > MEDIANS_APART * low
    }

    /// The share of the lookups, 0 to 1, that hit in an LRU cache of `objects` objects, and its standard error from
    /// independent samples, which is 0 if all keys are kept. `None` without lookups.
    pub fn hit_ratio(&self, objects: f64) -> Option<(f64, f64)> {
        let found = self.by_objects.hit_ratio(objects)?;
        let others: Vec<f64> = self.samples.iter().filter_map(|curve| curve.hit_ratio(objects)).collect();
        if others.len() < 2 {
            return Some((found, 0.0));
        }
        let count = others.len() as f64;
        let mean = others.iter().sum::<f64>() / count;
        let squares: f64 = others.iter().map(|other| (other - mean) * (other - mean)).sum();
        Some((found, libm::sqrt(squares / (count - 1.0))))
    }
}

/// The reader of the rows of a trace.
#[derive(Debug)]
pub struct Fitter {
    requests: u64,
    by_verb: [u64; Verb::COUNT],
    fills_by_verb: [u64; Verb::COUNT],
    out_of_order: u64,
    /// The time of the first row and the latest time.
    span: Option<(Nanos, Nanos)>,
    resolution: Resolution,
    pairs: Pairs,
    keys: KeySample,
    samples: Vec<KeySample>,
    head: Head,
    request_bytes: ValueCounts,
    ttl_s: ValueCounts,
    churn: ChurnCounter,
    arrivals: Option<Arrivals>,
}

impl Default for Fitter {
    fn default() -> Fitter {
        Fitter::with_keys_max(KEYS_EXACT_MAX)
    }
}

impl Fitter {
    /// A fitter that keeps all keys up to `keys_max` of them, at least 16.
    pub fn with_keys_max(keys_max: usize) -> Fitter {
        let keys_max = keys_max.max(16);
        let sample_max = SAMPLE_KEYS_MAX.min(keys_max / SAMPLES as usize);
        let sample = |salt| KeySample::new(salt, SAMPLE_HALVINGS, sample_max);
        Fitter {
            requests: 0,
            by_verb: [0; Verb::COUNT],
            fills_by_verb: [0; Verb::COUNT],
            out_of_order: 0,
            span: None,
            resolution: Resolution::default(),
            pairs: Pairs::default(),
            keys: KeySample::new(0, 0, keys_max),
            samples: (1..=SAMPLES).map(sample).collect(),
            head: Head::default(),
            request_bytes: ValueCounts::default(),
            ttl_s: ValueCounts::default(),
            churn: ChurnCounter::default(),
            arrivals: None,
        }
    }

    /// Adds a row. A row that is earlier than a row before it counts as made at the latest time so far.
    pub fn take(&mut self, row: &Row<'_>) {
        let since_ns = self.since_first(row);
        let count = u64::from(row.count);
        self.requests += count;
        if row.stores() {
            self.ttl_s.add(row.ttl_s.into(), count as f64);
        }
        let value_bytes = row.known_value_bytes();
        let hash = row.key_hash();
        if self.pairs.take(row, since_ns) {
            self.fills_by_verb[row.verb as usize] += count;
            if let Some(value_bytes) = value_bytes {
                self.keys.learn(hash, value_bytes);
                self.samples.iter_mut().for_each(|sample| sample.learn(hash, value_bytes));
            }
            return;
        }
        self.by_verb[row.verb as usize] += count;
        if let Some(value_bytes) = value_bytes {
            self.request_bytes.add(value_bytes.into(), count as f64);
        }
        let arrivals = self.arrivals.get_or_insert_with(|| Arrivals::new(row.resolution_ns.into()));
        arrivals.take(since_ns, count);
        self.take_key(&KeyRequest {
            hash,
            touch: touch_of(row.verb),
            halves: halves_of(row.count, self.requests),
            key_bytes: row.key_bytes,
            value_bytes,
            at_s: u32::try_from(since_ns / SECOND).unwrap_or(u32::MAX),
        });
    }

    /// Computes the figures of the trace.
    pub fn end(mut self) -> Fit {
        let (first_ns, last_ns) = self.span.unwrap_or((0, 0));
        let end_s = u32::try_from((last_ns - first_ns) / SECOND).unwrap_or(u32::MAX);
        self.keys.end(end_s);
        self.samples.iter_mut().for_each(|sample| sample.end(end_s));
        let is_exact = self.keys.weight() <= 1.0;
        let resolution_ns = self.resolution.ns();
        let sums = KeySums::of(&self.keys);
        let primary: u64 = self.by_verb.iter().sum();
        let span_s = seconds(last_ns - first_ns);
        let churn = std::mem::take(&mut self.churn).end(span_s);
        let lives = Lives::of_seconds(churn.lifetimes.as_ref(), span_s);
        let spread = Spread::of(self.seen_keys(), primary as f64, sums.one_hit_reads, &lives);
        let samples = self.samples.iter().filter(|_| !is_exact).map(|sample| sample.by_objects.clone());
        Fit {
            requests: self.requests,
            by_verb: self.by_verb,
            fills_by_verb: self.fills_by_verb,
            missed: self.pairs.missed,
            fill_delay_ns: self.pairs.delays_ns / self.pairs.fills.max(1) as f64,
            out_of_order: self.out_of_order,
            span_ns: last_ns - first_ns,
            resolution_ns,
            keys: self.keys.keys(),
            sampled: 1.0 / self.keys.weight(),
            one_hit_keys: sums.one_hit_keys,
            one_hit_reads: sums.one_hit_reads,
            spread,
            class_bytes: class_bytes(&self.keys),
            key_bytes: sums.key_bytes,
            value_bytes: sums.value_bytes,
            request_bytes: self.request_bytes,
            ttl_s: self.ttl_s,
            working_sets: self.keys.working_sets.means(),
            all_bytes: sums.all_bytes,
            samples: samples.collect(),
            by_objects: self.keys.by_objects,
            by_bytes: self.keys.by_bytes,
            churn,
            arrivals: match self.arrivals.filter(|_| last_ns > 0) {
                Some(arrivals) => arrivals.end(resolution_ns),
                // The rows have no times: the formats write 0.
                None => ArrivalFit { whole_seconds: resolution_ns >= SECOND, ..ArrivalFit::default() },
            },
        }
    }

    /// Time of a row in nanoseconds since the first row, corrected so that it does not decrease.
    fn since_first(&mut self, row: &Row<'_>) -> Nanos {
        let (first_ns, last_ns) = self.span.unwrap_or((row.at_ns, row.at_ns));
        self.out_of_order += u64::from(row.at_ns < last_ns);
        let at_ns = row.at_ns.max(last_ns);
        self.span = Some((first_ns, at_ns));
        self.resolution.take(row.resolution_ns.into(), row.count.into());
        at_ns - first_ns
    }

    fn take_key(&mut self, request: &KeyRequest) {
        let head = &mut self.head;
        self.keys.take(request, &mut |hash, halves| head.adopt(hash, halves));
        if !self.keys.has(request.hash) {
            self.head.take(request.hash, request.halves);
        }
        for sample in &mut self.samples {
            sample.take(request, &mut |_, _| {});
        }
        self.churn.take(request.hash, request.halves, request.at_s);
    }

    /// The known keys. Keys of the sample represent other keys too; the most popular keys represent only themselves.
    fn seen_keys(&self) -> Vec<SeenKey> {
        let (weight, floor) = (self.keys.weight(), self.head.floor());
        let of_sample = |slot: &Slot| {
            let stands_for_all = weight > 1.0 && slot.halves.count() <= floor;
            SeenKey { halves: slot.halves, weight: if stands_for_all { weight } else { 1.0 } }
        };
        let popular = self.head.keys().map(|halves| SeenKey { halves, weight: 1.0 });
        self.keys.slots().iter().map(of_sample).chain(popular).collect()
    }
}

/// The effect of an operation on its key in a cache.
fn touch_of(verb: Verb) -> Touch {
    match verb {
        Verb::Delete => Touch::Delete,
        verb if verb.reads() => Touch::Lookup,
        _ => Touch::Store,
    }
}

/// Divides `count` requests randomly into two halves. The draw is a hash of `number`, the number of the request.
fn halves_of(count: u32, number: u64) -> Halves {
    let draw = scramble(number);
    let first = match count {
        1 => (draw & 1) as u32,
        // Half of many, and one more or less by chance.
        _ => {
            (0..count.min(64)).map(|bit| (draw >> bit & 1) as u32).sum::<u32>() + count.saturating_sub(64) / 2
        }
    };
    Halves([first, count - first])
}

/// Sums over the keys of a sample.
#[derive(Default)]
struct KeySums {
    one_hit_keys: f64,
    one_hit_reads: f64,
    key_bytes: ValueCounts,
    value_bytes: ValueCounts,
    all_bytes: f64,
}

impl KeySums {
    fn of(sample: &KeySample) -> KeySums {
        let weight = sample.weight();
        let mut sums = KeySums::default();
        let mut reads = 0.0;
        for slot in sample.slots() {
            let value_bytes = slot.value_bytes();
            sums.key_bytes.add(slot.key_bytes.into(), weight);
            if let Some(value_bytes) = value_bytes {
                sums.value_bytes.add(value_bytes.into(), weight);
            }
            sums.all_bytes += weight * (f64::from(slot.key_bytes) + f64::from(value_bytes.unwrap_or(0)));
            if slot.halves.count() == 1 {
                sums.one_hit_keys += weight;
                reads += if slot.begins_with_lookup { weight } else { 0.0 };
            }
        }
        sums.one_hit_reads = if sums.one_hit_keys > 0.0 { reads / sums.one_hit_keys } else { 0.0 };
        sums
    }
}

/// Lengths of values by the classes of popularity that end at [`CLASS_ENDS`].
fn class_bytes(sample: &KeySample) -> [ValueCounts; CLASS_ENDS.len()] {
    let mut order: Vec<u32> = (0..sample.slots().len() as u32).collect();
    order.sort_unstable_by_key(|&place| std::cmp::Reverse(sample.slots()[place as usize].halves.count()));
    let mut classes: [ValueCounts; CLASS_ENDS.len()] = Default::default();
    let count = order.len() as f64;
    for (rank, place) in order.into_iter().enumerate() {
        let class =
            CLASS_ENDS.iter().position(|end| (rank as f64) < end * count).unwrap_or(CLASS_ENDS.len() - 1);
        if let Some(value_bytes) = sample.slots()[place as usize].value_bytes() {
            classes[class].add(value_bytes.into(), sample.weight());
        }
    }
    classes
}

#[cfg(test)]
mod tests;
