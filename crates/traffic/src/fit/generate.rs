//! The rows of a workload, made without a server: each request is drawn as a client would draw it, and records get new
//! keys over time if the workload has churn.

use std::collections::HashSet;

use crate::trace::row::Row;
use pummel_logic::arrival::RateCurve;
use pummel_logic::plan::{Burst, BurstStates, Data, Mix, POINTS_MAX};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::{self, Stream, StreamOwner, mix};
use pummel_logic::time::{NEVER, Nanos, SECOND};
use pummel_logic::workload::churn::{AskedAt, KeyLives};
use pummel_logic::workload::key::{KEY_MAX_BYTES, KeyBuffer, KeyMaker, Space};
use pummel_logic::workload::mix::{MixTable, space_of};
use pummel_logic::workload::popularity::Chooser;
use pummel_logic::workload::unstored::{ABSENT_FROM, FRESH_FROM};
use pummel_logic::workload::value::ValueLengths;

/// The workload that requests are drawn from.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// Records that requests are about.
    pub data: &'a Data,
    /// Operations of the requests.
    pub mix: &'a Mix,
    /// Requests per second; `None` for rows without times.
    pub rate: Option<f64>,
    /// Whether requests come at equal distances, and not by chance.
    pub is_even: bool,
    /// Bursts of the rate.
    pub burst: Option<Burst>,
    /// Precision of the times of the rows, in nanoseconds.
    pub resolution_ns: u32,
}

/// Seeds of the draws, one for each purpose.
const OPS: u64 = 0x6f70;
const KEYS: u64 = 0x6b65;
const KINDS: u64 = 0x6b69;
const TTLS: u64 = 0x7474;
const GAPS: u64 = 0x6761;

/// Most keys that are remembered as filled; no request is made once there are more.
const STORED_MAX: usize = 1 << 22;

/// Makes `requests` requests of a workload, or fewer if `sink` returns that it wants no more rows, or if more than four
/// million different keys are filled. Returns the number of requests. If the workload fills, it also makes the fills of
/// the keys that they miss in a cache without a limit; the last request may add its fill and the read of its cas. One
/// seed makes the same rows everywhere.
///
/// # Errors
/// Returns a sentence for keys that have no room for their numbers, for values that are too large, and for bursts that change too
/// often.
pub fn generate(load: &Load<'_>, requests: u64, seed: u64, sink: &mut RowSink<'_>) -> Result<u64, String> {
    let mut maker = RowMaker::new(load, requests, seed)?;
    let mut made = 0;
    while made < requests && !maker.is_over {
        made += maker.next(made, sink);
    }
    Ok(made)
}

/// A receiver of rows, which returns whether it wants more of them.
pub type RowSink<'a> = dyn FnMut(&Row<'_>) -> bool + 'a;

struct RowMaker<'a> {
    load: &'a Load<'a>,
    keys: KeyMaker,
    lengths: ValueLengths,
    table: MixTable,
    chooser: Chooser,
    lives: Option<KeyLives>,
    streams: [Stream; 4],
    times: Times,
    fresh: u64,
    /// Keys that were stored, where misses are filled.
    stored: HashSet<u64>,
    /// Whether no more rows are made.
    is_over: bool,
    key: Box<KeyBuffer>,
}

impl<'a> RowMaker<'a> {
    fn new(load: &'a Load<'a>, requests: u64, seed: u64) -> Result<RowMaker<'a>, String> {
        let stream = |purpose: u64| Stream::from_seed(mix(&[seed, purpose]));
        Ok(RowMaker {
            load,
            keys: KeyMaker::new(load.data).map_err(|error| error.to_string())?,
            lengths: ValueLengths::new(load.data).map_err(|error| error.to_string())?,
            table: MixTable::new(load.mix),
            chooser: Chooser::new(&load.mix.popularity, load.data.records, 0, 1),
            lives: KeyLives::of([(0, load.mix.churn.as_ref())].into_iter(), 0, load.data.records, seed, seed),
            streams: [stream(OPS), stream(KEYS), stream(KINDS), stream(TTLS)],
            times: Times::new(load, requests, seed)?,
            fresh: 0,
            stored: HashSet::new(),
            is_over: false,
            key: Box::new([0; KEY_MAX_BYTES]),
        })
    }

    /// Makes request `i` with its follow-up requests, and returns their number without fills.
    fn next(&mut self, i: u64, sink: &mut RowSink<'_>) -> u64 {
        let [ops, _, _, ttls] = self.streams;
        let verb = self.table.verb(ops.draw(i));
        let at_ns = self.times.next(i);
        let index = self.index(verb, AskedAt { since_ns: at_ns, requests: i });
        let ttl_s = self.load.data.expiry_s.draw_size(ttls.draw(i), 0, u32::MAX.into()) as u32;
        let ttl_s = if verb.has_expiry() { ttl_s } else { 0 };
        let is_filled = self.load.mix.read_through_ns.is_some();
        let is_absent = (ABSENT_FROM..FRESH_FROM).contains(&index);
        let missed = is_absent || is_filled && verb.reads() && !self.stored.contains(&index);
        if verb == Verb::Cas {
            self.row(Verb::Gets, index, at_ns, 0, false, sink);
        }
        self.row(verb, index, at_ns, ttl_s, missed, sink);
        if is_filled {
            if missed && !is_absent {
                let ttl_s = self.load.data.expiry_s.draw_size(ttls.draw_sub(i, 1), 0, u32::MAX.into()) as u32;
                self.row(Verb::Set, index, at_ns, ttl_s, false, sink);
            }
            match verb {
                // A fresh key is never asked for again.
                _ if is_absent || index >= FRESH_FROM => false,
                Verb::Delete => self.stored.remove(&index),
                _ => self.stored.insert(index),
            };
            self.is_over |= self.stored.len() > STORED_MAX;
        }
        if verb == Verb::Cas { 2 } else { 1 }
    }

    /// The number of the key of request `at`.
    fn index(&mut self, verb: Verb, at: AskedAt) -> u64 {
        let [_, keys, kinds, _] = self.streams;
        let i = at.requests;
        let record = self.chooser.choose(&keys, i);
        if !verb.reads() || verb == Verb::Hget {
            return self.key_of(space_of(verb), record, at);
        }
        let kind = rng::unit(kinds.draw(i));
        if kind < self.load.mix.fresh {
            self.fresh += 1;
            FRESH_FROM + self.fresh
        } else if kind < self.load.mix.fresh + self.load.mix.absent {
            ABSENT_FROM + record
        } else if self.table.has_spaces() {
            self.key_of(self.table.space(kinds.draw_sub(i, 1)), record, at)
        } else {
            self.key_of(Space::Plain, record, at)
        }
    }

    /// The number of the key that a record has at a moment; in spaces of their own records keep their keys.
    fn key_of(&self, space: Space, record: u64, at: AskedAt) -> u64 {
        match &self.lives {
            Some(lives) if space == Space::Plain => lives.key(record, at),
            _ => self.keys.spaces().index(space, record),
        }
    }

    fn row(
        &mut self,
        verb: Verb,
        index: u64,
        at_ns: Nanos,
        ttl_s: u32,
        missed: bool,
        sink: &mut RowSink<'_>,
    ) {
        let has_value = (verb.reads() && !missed) || verb.stores();
        let value_bytes = has_value.then(|| self.lengths.of(index) as u32);
        let key = self.keys.key(index, &mut self.key);
        let resolution_ns = self.load.resolution_ns;
        let at_ns = at_ns / u64::from(resolution_ns.max(1)) * u64::from(resolution_ns.max(1));
        let row = Row { at_ns, verb, value_bytes, ttl_s, missed, resolution_ns, ..Row::read(key) };
        self.is_over |= !sink(&row);
    }
}

/// The times of requests.
enum Times {
    /// Requests that are made at once.
    None,
    /// A rate of one or two states, whose changes are drawn as they come.
    States(StateTimes),
    /// A rate whose bursts were drawn in advance.
    Curve { curve: RateCurve, requests: f64, hint: usize, gaps: Option<Stream> },
}

/// Times at a rate that changes between two states.
struct StateTimes {
    at_s: f64,
    gaps: Stream,
    is_even: bool,
    /// Requests per second while it is off and on.
    rates: [f64; 2],
    /// Mean times for which it is off and on, in seconds.
    lengths_s: [f64; 2],
    is_on: bool,
    until_s: f64,
    changes: u64,
}

impl Times {
    fn new(load: &Load<'_>, requests: u64, seed: u64) -> Result<Times, String> {
        let Some(rate) = load.rate.filter(|rate| *rate > 0.0) else { return Ok(Times::None) };
        let gaps = Stream::from_seed(mix(&[seed, GAPS]));
        let states = match load.burst {
            None => None,
            Some(Burst::States(states)) => Some(states),
            Some(Burst::Hurst(sources)) => {
                let until_s = 2.0 * requests as f64 / rate;
                let pieces = until_s * 1e9 / sources.on_ns as f64 * f64::from(sources.sources);
                if pieces > POINTS_MAX as f64 {
                    return Err(
                        "bursts of many sources that change so often are not made for so many requests"
                            .to_owned(),
                    );
                }
                let until_ns = ((until_s * SECOND as f64) as Nanos).min(NEVER - 1);
                let owner = StreamOwner { seed, group: 0, phase: 0, client: 0 };
                let curve = RateCurve::constant(rate).with_bursts(&Burst::Hurst(sources), owner, until_ns);
                let gaps = (!load.is_even).then_some(gaps);
                return Ok(Times::Curve { curve, requests: 0.0, hint: 0, gaps });
            }
        };
        Ok(Times::States(StateTimes::new(rate, states, gaps, load.is_even)))
    }

    /// The time of request `i`, in nanoseconds.
    fn next(&mut self, i: u64) -> Nanos {
        match self {
            Times::None => 0,
            Times::States(states) => states.next(i),
            Times::Curve { curve, requests, hint, gaps } => {
                *requests += gaps.map_or(1.0, |gaps| -libm::log(rng::unit(gaps.draw(i))));
                curve.time_of(*requests, hint)
            }
        }
    }
}

impl StateTimes {
    fn new(rate: f64, states: Option<BurstStates>, gaps: Stream, is_even: bool) -> StateTimes {
        let (rates, lengths_s, share) = match states {
            None => ([rate; 2], [f64::INFINITY; 2], 0.0),
            Some(states) => {
                let length = |length_ns: Nanos| length_ns as f64 / SECOND as f64;
                let rates = [rate * states.factor_off().max(0.0), rate * states.factor];
                (rates, [length(states.off_ns), length(states.on_ns)], states.share())
            }
        };
        let is_on = rng::unit(gaps.draw_sub(0, 2)) < share;
        let mut times =
            StateTimes { at_s: 0.0, gaps, is_even, rates, lengths_s, is_on, until_s: 0.0, changes: 0 };
        times.until_s = times.length_s();
        times
    }

    /// The length of the state under way, in seconds.
    fn length_s(&mut self) -> f64 {
        self.changes += 1;
        let draw = rng::unit(self.gaps.draw_sub(self.changes, 1));
        -libm::log(draw) * self.lengths_s[usize::from(self.is_on)]
    }

    fn next(&mut self, i: u64) -> Nanos {
        let mut left = if self.is_even { 1.0 } else { -libm::log(rng::unit(self.gaps.draw(i))) };
        loop {
            let rate = self.rates[usize::from(self.is_on)];
            let here = (self.until_s - self.at_s) * rate;
            if here >= left {
                self.at_s += left / rate;
                return (self.at_s * SECOND as f64) as Nanos;
            }
            left -= here.max(0.0);
            self.at_s = self.until_s;
            self.is_on = !self.is_on;
            self.until_s += self.length_s();
        }
    }
}
