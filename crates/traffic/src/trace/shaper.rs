//! The shaper makes requests from rows: it chooses the rows of a trace that are kept, when each is due, and the client
//! that sends it.

use std::collections::VecDeque;

use crate::trace::ahead::Ahead;
use crate::trace::row::{KEY_MAX_BYTES, Row, is_key};
use crate::trace::seconds::Seconds;
use crate::trace::sizes::{Sizes, Store};
use pummel_logic::arrival::Schedule;
use pummel_logic::plan::{DealBy, Fills, TracePace, TraceReplay, TraceTtl};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::mix;
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::hash::{hash_bytes, is_sampled};

/// The time after a recorded miss within which a store of the key counts as its fill.
const FILL_NS: Nanos = 5 * SECOND;

/// Recorded misses that are remembered.
const MISSES: usize = 1 << 16;

/// The longest expiry that memcached takes as a span and not as a date, in seconds: 30 days. Longer ones are cut to it.
const TTL_MAX_S: u32 = 30 * 24 * 60 * 60;

/// Least TTL that is about right, in seconds: servers count whole seconds.
const TTL_SURE_S: u32 = 2;

/// A request of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Due time, in nanoseconds from the beginning of its part; 0 if it is due as soon as its client is free.
    pub due_ns: Nanos,
    /// Time of the request in the trace, in nanoseconds from the first row that is kept, over all passes.
    pub at_ns: Nanos,
    /// Number of the client that sends it.
    pub client: u64,
    /// Operation of the request.
    pub verb: Verb,
    /// The whole key.
    pub key: &'a [u8],
    /// Length of the value in bytes.
    pub value_bytes: u32,
    /// Time to live in seconds, 0 for none.
    pub ttl_s: u32,
}

/// The output of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaped<'a> {
    /// The next request of the part under way.
    Request(Request<'a>),
    /// The part under way is complete; the next request belongs to the next one.
    PartEnds,
}

/// A receiver of requests. It returns whether it wants more of them: once it does not, no row makes a request any more.
pub type RequestSink<'a> = dyn FnMut(Shaped<'_>) -> bool + 'a;

/// A part of a replay: a phase of the run.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Due time from which on requests belong to the next part.
    pub time_ns: Option<Nanos>,
    /// Number of requests that ends the part.
    pub requests: Option<u64>,
    /// Due times of the requests by [`TracePace::Rate`].
    pub schedule: Option<Schedule>,
}

/// The counts of a shaper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShapedCounts {
    /// Rows of the trace that came, whatever the number of their requests.
    pub rows: u64,
    /// Rows that were kept.
    pub kept: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Stores that were left out because misses of the replay fill.
    pub fills_left_out: u64,
    /// Values that were cut to the longest one.
    pub cut_values: u64,
    /// Rows that are earlier than the row before them; they count as made at its time.
    pub out_of_order: u64,
    /// Rows with keys that are too long with what amplifying adds.
    pub unfit_keys: u64,
    /// Rows with an operation that the protocol does not have.
    pub unsayable: u64,
    /// Number of stores with a TTL, and of those that were scaled to a TTL below 2 s.
    pub ttls: (u64, u64),
    /// Requests that rows counted and that were too many for their second.
    pub uncounted: u64,
}

/// Makes requests of rows.
#[derive(Debug)]
pub struct Shaper {
    rules: Rules,
    salt: u64,
    /// The operations that the protocol has.
    verbs: Vec<Verb>,
    parts: VecDeque<Part>,
    /// The rows that are held until their lengths are known, if misses of the replay are filled.
    ahead: Option<Ahead>,
    placed: Seconds,
    steps: Steps,
}

/// The steps that follow the placing of rows in their seconds.
#[derive(Debug, Default)]
struct Steps {
    /// The time of the first row, and the greatest one so far.
    first_ns: Option<Nanos>,
    last_ns: Nanos,
    /// Shift of the trace's times in this pass, because of the passes before it.
    pass_shift_ns: Nanos,
    pass: u32,
    /// Rows that were kept in the passes before this one.
    kept_before: u64,
    /// End of the latest second of this pass whose rows are spread over it, from the first row on.
    spread_until_ns: Nanos,
    /// The row that waits for the time of the next one, where each makes several requests.
    held: Option<(Row<'static>, Vec<u8>)>,
    /// Beginning of the part under way, on the scaled time of the trace.
    origin_ns: Nanos,
    part_requests: u64,
    number: u64,
    is_over: bool,
    sizes: Option<Sizes>,
    misses: Vec<(u64, Nanos)>,
    counts: ShapedCounts,
    key: Vec<u8>,
}

impl Shaper {
    /// A shaper for a replay by this number of clients, in these parts. `verbs` are the operations of the protocol, and
    /// chance comes from `seed`; which keys a sample keeps, from `data_seed`.
    pub fn new(
        replay: &TraceReplay,
        clients: u64,
        parts: Vec<Part>,
        verbs: &[Verb],
        (seed, data_seed): (u64, u64),
    ) -> Shaper {
        let fills = replay.fills == Fills::Own;
        Shaper {
            rules: Rules {
                replay: replay.clone(),
                clients: clients.max(1),
                by: replay.by.unwrap_or(DealBy::Client),
                speed: match replay.pace {
                    TracePace::Trace { speed } => speed,
                    TracePace::Fast | TracePace::Rate => 1.0,
                },
            },
            salt: mix(&[data_seed, 0x5a17]),
            verbs: verbs.to_vec(),
            parts: parts.into(),
            ahead: fills.then(Ahead::default),
            placed: Seconds::new(within_second_of(replay), mix(&[seed, 0x5ec])),
            steps: Steps {
                sizes: fills.then(|| Sizes::new(data_seed, replay.missing_size.clone())),
                misses: if fills { vec![(0, 0); MISSES] } else { Vec::new() },
                ..Steps::default()
            },
        }
    }

    /// Whether every part is complete, or no more requests are wanted, so that no further row makes a request.
    pub fn is_over(&self) -> bool {
        self.steps.is_over
    }

    /// The counts so far.
    pub fn counts(&self) -> ShapedCounts {
        ShapedCounts { uncounted: self.placed.uncounted(), ..self.steps.counts.clone() }
    }

    /// Adds a row, and hands over the requests that are complete.
    pub fn take(&mut self, row: &Row<'_>, sink: &mut RequestSink<'_>) {
        if self.steps.is_over {
            return;
        }
        let rows = u64::from(!row.continues);
        self.steps.counts.rows += rows;
        let Some(row) = self.kept(row) else { return };
        self.steps.counts.kept += rows;
        let Shaper { ahead, placed, steps, rules, parts, .. } = self;
        match ahead {
            None => placed.take(&row, &mut |row| steps.take(rules, parts, row, sink)),
            Some(ahead) => ahead.take(&row, &mut |row, next| {
                steps.foresee(row, next);
                placed.take(row, &mut |row| steps.take(rules, parts, row, sink));
            }),
        }
    }

    /// Takes in the end of the trace. With `again`, its next pass follows; without, every part is complete.
    pub fn end_pass(&mut self, again: bool, sink: &mut RequestSink<'_>) {
        let Shaper { ahead, placed, steps, rules, parts, .. } = self;
        if let Some(ahead) = ahead {
            ahead.flush(&mut |row, next| {
                steps.foresee(row, next);
                placed.take(row, &mut |row| steps.take(rules, parts, row, sink));
            });
        }
        placed.flush(&mut |row| steps.take(rules, parts, row, sink));
        steps.release(rules, parts, None, sink);
        if again {
            steps.begin_pass(&rules.replay);
            placed.restart();
            return;
        }
        while parts.pop_front().is_some() {
            sink(Shaped::PartEnds);
        }
        steps.is_over = true;
    }

    /// The row, where it is kept, with its time in order.
    fn kept<'a>(&mut self, row: &Row<'a>) -> Option<Row<'a>> {
        let row = &match self.rules.replay.stores_only {
            // Storing an item again and again would leave the same item.
            true => Row { verb: Verb::Set, at_ns: 0, count: 1, ..*row },
            false => Row { verb: self.rules.replay.mapped(row.verb), ..*row },
        };
        let steps = &mut self.steps;
        let first = *steps.first_ns.get_or_insert(row.at_ns);
        if row.at_ns < steps.last_ns {
            steps.counts.out_of_order += 1;
        }
        let at_ns = row.at_ns.max(steps.last_ns).max(first);
        steps.last_ns = at_ns;
        let since = at_ns - first;
        if since < self.rules.replay.from_ns || self.rules.replay.to_ns.is_some_and(|to| since >= to) {
            return None;
        }
        if !self.verbs.contains(&row.verb) {
            steps.counts.unsayable += u64::from(row.count);
            return None;
        }
        if !is_sampled(row.key_hash(), self.salt, self.rules.replay.sample) {
            return None;
        }
        if u64::from(row.resolution_ns) == SECOND {
            let end_ns = (at_ns / SECOND * SECOND).saturating_add(SECOND).saturating_sub(first);
            steps.spread_until_ns = steps.spread_until_ns.max(end_ns);
        }
        Some(Row { at_ns, ..*row })
    }
}

/// The rules that apply to every row alike.
#[derive(Debug)]
struct Rules {
    replay: TraceReplay,
    clients: u64,
    by: DealBy,
    speed: f64,
}

impl Rules {
    /// The time to live that is sent where the trace has this one, in seconds; 0 for none.
    fn ttl_s(&self, recorded_s: u32) -> u32 {
        let ttl_s = match self.replay.ttl {
            _ if recorded_s == 0 => return 0,
            TraceTtl::None => return 0,
            TraceTtl::Keep => recorded_s,
            TraceTtl::Scale => ((f64::from(recorded_s) / self.speed) as u32).max(1),
        };
        // A longer one would be taken for a date (`protocol.txt` of memcached, section "Expiration times").
        ttl_s.min(TTL_MAX_S)
    }
}

impl Steps {
    /// Handles a single request at its time.
    fn take(&mut self, rules: &Rules, parts: &mut VecDeque<Part>, row: &Row<'_>, sink: &mut RequestSink<'_>) {
        if self.is_over {
            return;
        }
        let from_ns = self.first_ns.unwrap_or(0) + rules.replay.from_ns;
        let at_ns = row.at_ns.saturating_sub(from_ns).saturating_add(self.pass_shift_ns);
        let row = Row { at_ns, ..*row };
        if !self.fill_is_recorded(rules, &row) {
            self.counts.fills_left_out += 1;
            // The stores in its place have its time to live.
            self.ttl_of(rules, &row);
            return;
        }
        if rules.replay.amplify <= 1 {
            return self.ask(rules, parts, &row, 0, at_ns, sink);
        }
        self.release(rules, parts, Some(at_ns), sink);
        let mut key = self.held.take().map_or_else(Vec::new, |(_, key)| key);
        key.clear();
        key.extend_from_slice(row.key);
        self.held = Some((Row { key: &[], ..row }, key));
    }

    /// Makes the requests of the waiting row, between its own time and that of the next row.
    fn release(
        &mut self,
        rules: &Rules,
        parts: &mut VecDeque<Part>,
        next_ns: Option<Nanos>,
        sink: &mut RequestSink<'_>,
    ) {
        let Some((held, key)) = self.held.take() else { return };
        let row = Row { key: &key, ..held };
        let gap_ns = next_ns.map_or(0, |next| next.saturating_sub(row.at_ns));
        let copies = u64::from(rules.replay.amplify);
        for copy in 0..copies {
            let shift_ns = (u128::from(gap_ns) * u128::from(copy) / u128::from(copies)) as u64;
            self.ask(rules, parts, &row, copy, row.at_ns + shift_ns, sink);
        }
        self.held = None;
        // The room for the key is used again.
        if next_ns.is_some() {
            self.held = Some((held, key));
        }
    }

    /// Begins the next pass when the part of the trace that is replayed is over: rows outside of it take no time.
    fn begin_pass(&mut self, replay: &TraceReplay) {
        let length = self.last_ns.saturating_sub(self.first_ns.unwrap_or(0));
        // Where the trace ends first, its last second is over then, or a mean gap behind the last row.
        let gap = match self.counts.kept - self.kept_before {
            0 | 1 => SECOND,
            rows => (length.saturating_sub(replay.from_ns) / (rows - 1)).max(1),
        };
        let end = length.saturating_add(if rounds_to_seconds(length) { SECOND } else { gap });
        let end = replay.to_ns.map_or(end, |to| end.min(to)).max(self.spread_until_ns);
        let pass_ns = end.saturating_sub(replay.from_ns);
        self.pass_shift_ns = self.pass_shift_ns.saturating_add(pass_ns);
        self.pass += 1;
        self.kept_before = self.counts.kept;
        (self.first_ns, self.last_ns, self.spread_until_ns) = (None, 0, 0);
    }

    /// Notes the next store of a row's key.
    fn foresee(&mut self, row: &Row<'_>, next: Option<Store>) {
        if let (Some(sizes), Some(store)) = (&mut self.sizes, next) {
            sizes.foresee(row.key_hash(), store);
        }
    }

    /// Whether a row becomes a request: a store that fills a recorded miss does not, if misses of the replay are
    /// filled.
    fn fill_is_recorded(&mut self, rules: &Rules, row: &Row<'_>) -> bool {
        if rules.replay.fills == Fills::Recorded {
            return true;
        }
        let hash = row.key_hash();
        let owner = mix(&[hash, row.client.unwrap_or(0)]);
        let place = &mut self.misses[owner as usize % MISSES];
        if row.missed {
            *place = (owner, row.at_ns);
        } else if row.stores() {
            let follows = place.0 == owner && row.at_ns.saturating_sub(place.1) <= FILL_NS;
            if follows {
                *place = (0, 0);
            }
            if let (Some(sizes), Some(store)) = (&mut self.sizes, row.stored()) {
                sizes.note(hash, store);
            }
            return !follows;
        }
        true
    }

    /// Hands over copy `copy` of a row, due at a time of the trace.
    fn ask(
        &mut self,
        rules: &Rules,
        parts: &mut VecDeque<Part>,
        row: &Row<'_>,
        copy: u64,
        at_ns: Nanos,
        sink: &mut RequestSink<'_>,
    ) {
        if self.is_over {
            return;
        }
        let scaled_ns = if rules.speed == 1.0 { at_ns } else { (at_ns as f64 / rules.speed) as Nanos };
        let Some(due_ns) = self.due_of(rules, parts, scaled_ns, sink) else { return };
        if !self.write_key(rules, row, copy) {
            self.counts.unfit_keys += 1;
            return;
        }
        let client = self.client_of(rules, row, copy);
        let value_bytes = self.value_bytes_of(rules, row);
        let ttl_s = self.ttl_of(rules, row);
        self.counts.requests += 1;
        self.part_requests += 1;
        self.number += 1;
        let (verb, key) = (row.verb, &self.key[..]);
        let request = Request { due_ns, at_ns, client, verb, key, value_bytes, ttl_s };
        self.is_over |= !sink(Shaped::Request(request));
    }

    /// Due time of a request in the part that it belongs to; `None` if it belongs to none.
    fn due_of(
        &mut self,
        rules: &Rules,
        parts: &mut VecDeque<Part>,
        scaled_ns: Nanos,
        sink: &mut RequestSink<'_>,
    ) -> Option<Nanos> {
        loop {
            let Some(part) = parts.front_mut() else {
                self.is_over = true;
                return None;
            };
            let due_ns = match (rules.replay.pace, &part.schedule) {
                (TracePace::Trace { .. }, _) => scaled_ns.saturating_sub(self.origin_ns),
                (TracePace::Rate, Some(schedule)) => schedule.peek(),
                (TracePace::Rate | TracePace::Fast, _) => 0,
            };
            let is_timed = rules.replay.pace != TracePace::Fast;
            let is_late = is_timed && part.time_ns.is_some_and(|end| due_ns >= end);
            if !is_late && part.requests.is_none_or(|most| self.part_requests < most) {
                if let Some(schedule) = &mut part.schedule {
                    schedule.next();
                }
                return Some(due_ns);
            }
            self.origin_ns = match part.time_ns.filter(|_| is_late) {
                Some(end) => self.origin_ns + end,
                None => scaled_ns,
            };
            self.part_requests = 0;
            parts.pop_front();
            if !sink(Shaped::PartEnds) {
                self.is_over = true;
                return None;
            }
        }
    }

    /// Writes the key of a copy of a row; false where it is no key that servers take.
    fn write_key(&mut self, rules: &Rules, row: &Row<'_>, copy: u64) -> bool {
        self.key.clear();
        row.write_key(&mut self.key);
        if copy > 0 {
            self.key.extend_from_slice(format!("~{copy}").as_bytes());
        }
        if rules.replay.fresh_passes && self.pass > 0 {
            self.key.extend_from_slice(format!("^{}", self.pass).as_bytes());
        }
        self.key.len() <= KEY_MAX_BYTES && is_key(&self.key)
    }

    fn client_of(&self, rules: &Rules, row: &Row<'_>, copy: u64) -> u64 {
        let name = match (rules.by, row.client) {
            (DealBy::Row, _) => return self.number % rules.clients,
            (DealBy::Client, Some(client)) => mix(&[client, copy, 1]),
            (DealBy::Client | DealBy::Key, _) => mix(&[hash_bytes(&self.key), 2]),
        };
        ((u128::from(name) * u128::from(rules.clients)) >> 64) as u64
    }

    fn value_bytes_of(&mut self, rules: &Rules, row: &Row<'_>) -> u32 {
        let known = row.value_bytes.or_else(|| self.sizes.as_mut().map(|sizes| sizes.of(row.key_hash())));
        let bytes = known.unwrap_or(0);
        self.counts.cut_values += u64::from(bytes > rules.replay.value_max_bytes);
        bytes.min(rules.replay.value_max_bytes)
    }

    /// The time to live that a request sends, or that the store has which a missed read makes.
    fn ttl_of(&mut self, rules: &Rules, row: &Row<'_>) -> u32 {
        if !row.verb.has_expiry() {
            let of_fill = self.sizes.as_mut().filter(|_| row.verb.reads());
            let ttl_s = of_fill.map_or(0, |sizes| sizes.ttl_s_of(row.key_hash()));
            return rules.ttl_s(ttl_s);
        }
        let ttl_s = rules.ttl_s(row.ttl_s);
        if ttl_s > 0 {
            self.counts.ttls.0 += 1;
            self.counts.ttls.1 += u64::from(ttl_s < TTL_SURE_S && ttl_s < row.ttl_s);
        }
        ttl_s
    }
}

/// Position of a row within its second: at the beginning if the times of the trace are not used.
fn within_second_of(replay: &TraceReplay) -> pummel_logic::plan::WithinSecond {
    match replay.pace {
        TracePace::Trace { .. } => replay.within_second,
        TracePace::Fast | TracePace::Rate => pummel_logic::plan::WithinSecond::Burst,
    }
}

/// Whether a length of time is a whole number of seconds.
fn rounds_to_seconds(length_ns: Nanos) -> bool {
    length_ns.is_multiple_of(SECOND)
}
