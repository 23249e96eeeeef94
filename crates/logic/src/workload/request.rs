//! What one worker's clients have in common: the records, the work of the phase, and room to make one request in.

use std::sync::Arc;

use crate::client::route::{Lane, Rounds, Router};
use crate::connection::inflight::AnswerUse;
use crate::dist::Dist;
use crate::plan::share::{delete_records, rank_among_mates};
use crate::plan::{Data, Work};
use crate::protocol::lines;
use crate::protocol::{Keys, MetaAsk, Op, PairList, PairValue, Pairs, Value, Verb};
use crate::rng::{Stream, mix, unit};
use crate::time::Nanos;
use crate::workload::key::{KEY_MAX_BYTES, KeyBuffer, KeyMaker, Space, Spaces};
use crate::workload::mix::store_of;
use crate::workload::sequence::{SequenceStep, Sequencer};
use crate::workload::shuffle::Shuffle;
use crate::workload::task::{Asking, Task, TraceCursor, TraceShare, load_spaces};
use crate::workload::trace::Trace;
use crate::workload::value::{COUNTER, HEADER_BYTES, HeaderBuffer, PIECES_LIMIT_BYTES, ValueMaker, Version};
use crate::workload::verify::stale::{RunMark, Witness};
use crate::workload::window::{Finding, WindowCounts, WindowMaker};
use crate::workload::window_requests::WindowRequests;

/// The longest expiry that memcached takes as a span and not as a date (`protocol.txt`, section "Expiration times").
const EXPIRY_MAX_S: u64 = 30 * 24 * 60 * 60;

/// Names the order of deletion among all that a seed decides.
const DELETED: u64 = 0x64_656c_6574;

/// What incr adds and decr takes away.
const DELTA: u64 = 1;

/// What one worker's clients have in common.
#[derive(Debug)]
pub struct Shared {
    keys: KeyMaker,
    /// Text protocols can carry every key.
    keys_are_text: bool,
    values: ValueMaker,
    spaces: Spaces,
    expiry_s: Dist,
    /// Share of reads whose values are checked.
    verify: f64,
    /// Clients in the group, over all threads and agents.
    clients: u64,
    /// Where requests go.
    router: Router,
    /// Counters are loaded without the blanks behind them.
    bare_counters: bool,
    /// Most clients of a server that load.
    loaders: u64,
    /// Requests that were recorded, and which of them are this worker's.
    trace: Option<TraceShare>,
    task: Task,
    /// Reads ask what only the meta protocol can say.
    asks_meta: bool,
    /// Keys and sizes in the order of asking, where they are counted and not chosen.
    sequencer: Option<Box<Sequencer>>,
    /// Which writes are known to be stored.
    pub(crate) witness: Witness,
    buffer: RequestBuffer,
    /// What only clients with windows ask.
    window: Option<Box<WindowRequests>>,
}

/// The request that is being made.
#[derive(Debug)]
struct RequestBuffer {
    list: PairList,
    header: HeaderBuffer,
    key: KeyBuffer,
}

/// What a request writes, beside its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    pub(crate) key: u64,
    pub(crate) version: Version,
    pub(crate) cas: u64,
    pub(crate) expiry_bits: u64,
    /// Random bits for the length, where every write draws its own.
    pub(crate) size_bits: u64,
}

impl Shared {
    /// What the clients of a group of `clients` share, for these records; `verify` is the share of reads that are
    /// checked.
    pub fn new(
        keys: KeyMaker,
        values: ValueMaker,
        data: &Data,
        clients: u64,
        verify: f64,
        run: RunMark,
    ) -> Shared {
        Shared {
            spaces: keys.spaces(),
            keys_are_text: are_text(&keys),
            keys,
            values,
            expiry_s: data.expiry_s.clone(),
            verify,
            clients,
            trace: None,
            router: Router::single(),
            bare_counters: false,
            loaders: u64::MAX,
            task: Task::Rest,
            asks_meta: false,
            sequencer: None,
            witness: Witness::new(run),
            buffer: RequestBuffer {
                list: PairList { bytes: Vec::with_capacity(KEY_MAX_BYTES), ..PairList::default() },
                header: [0; HEADER_BYTES],
                key: [0; KEY_MAX_BYTES],
            },
            window: None,
        }
    }

    /// The same for clients with windows.
    pub fn with_window(mut self, window: Option<WindowMaker>) -> Shared {
        self.window = window.map(|maker| Box::new(WindowRequests::new(maker)));
        self
    }

    /// Whether clients have windows.
    #[inline]
    pub fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// What clients with windows counted since the last call.
    pub fn take_window_counts(&mut self) -> WindowCounts {
        self.window.as_mut().map(|window| std::mem::take(&mut window.counts)).unwrap_or_default()
    }

    /// What their checks found that failed since the last call, where it is to be told.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        self.window.as_mut().map(|window| std::mem::take(&mut window.findings)).unwrap_or_default()
    }

    /// Counts bytes that were sent or received for a request of a client's window, which has this verb.
    #[inline(never)]
    pub fn count_window_bytes(&mut self, verb: Option<Verb>, bytes: usize) {
        if let Some(window) = &mut self.window {
            window.count_bytes(verb, bytes);
        }
    }

    /// The same for clients whose requests are routed so.
    pub fn over(mut self, router: Router) -> Shared {
        self.router = router;
        self
    }

    /// The same with a trace to be replayed, of which worker `worker` of `workers` asks its part.
    pub fn replaying(mut self, trace: Arc<Trace>, worker: u64, workers: u64) -> Shared {
        self.trace = Some(TraceShare { trace, first: worker, step: workers });
        self
    }

    /// The same, with counters that are loaded as bare numbers: Redis counts only what is a number from end to end, where
    /// memcached pads with blanks.
    pub fn counting_bare(mut self, bare: bool) -> Shared {
        self.bare_counters = bare;
        self
    }

    /// The same with at most so many clients of each server that load.
    pub fn loading_by(mut self, loaders: u64) -> Shared {
        self.loaders = loaders;
        self
    }

    /// The same with requests whose keys are counted and whose sizes are drawn as they are asked; mixes ask their first
    /// operation.
    pub fn counting(mut self, sequencer: Option<Sequencer>) -> Shared {
        self.sequencer = sequencer.map(Box::new);
        self
    }

    /// Makes the work of the next phase ready; `seed` decides what it leaves to chance for all workers alike. A replay
    /// goes on where the one before it stopped.
    pub fn begin(&mut self, work: &Work, seed: u64) {
        if let Task::Replay(cursor) = &self.task
            && let Some(trace_share) = &mut self.trace
        {
            trace_share.first = cursor.next;
        }
        self.task = match work {
            Work::Load(load) => Task::Load(load_spaces(load)),
            Work::Mix(mix) if self.sequencer.is_some() => {
                Task::Sequence { verb: mix.ops[0].0, noreply: mix.noreply }
            }
            Work::Mix(mix) => Task::Mix(Box::new(Asking::new(mix, self.spaces.records()))),
            Work::Window(window) => Task::Window { preset: window.preset },
            Work::Replay(replay) => Task::Replay(TraceCursor::new(replay, self.trace.as_ref())),
            Work::Delete(delete) => Task::Delete {
                order: Shuffle::new(mix(&[seed, DELETED]), self.spaces.records()),
                records: delete_records(delete, self.spaces.records()),
            },
            Work::Pause(_) => Task::Rest,
        };
        self.asks_meta = self.meta() != MetaAsk::default();
    }

    /// Whether nothing is left to ask, whoever comes.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(&self.task, Task::Replay(cursor) if cursor.is_exhausted())
    }

    /// How many rows of a trace wait to be asked here; `None` where nothing is replayed.
    pub(crate) fn rows_left(&self) -> Option<u64> {
        let Task::Replay(cursor) = &self.task else { return None };
        Some(cursor.rows_left())
    }

    /// So many rows of a trace are not asked: the requests that were due for them are unsent.
    pub(crate) fn pass_rows(&mut self, rows: u64) {
        if let Task::Replay(cursor) = &mut self.task {
            cursor.pass(rows);
        }
    }

    /// Whether the key of a request decides on its lane.
    #[inline]
    pub(crate) fn owns_keys(&self) -> bool {
        self.router.owns_keys()
    }

    /// The lane of a request with this key, which is its client's turn `turn`.
    #[inline]
    pub(crate) fn lane_of(&mut self, turn: u64, key: u64) -> Lane {
        self.router.lane_of(turn, self.keys.key(key, &mut self.buffer.key))
    }

    /// Keys and values as they are made and checked.
    pub fn values(&self) -> &ValueMaker {
        &self.values
    }

    /// Keys as they are made.
    pub fn keys(&self) -> &KeyMaker {
        &self.keys
    }

    /// The block that large values are ranges of.
    #[inline]
    pub fn block(&self) -> &[u8] {
        match &self.window {
            None => self.values.block(),
            Some(window) => window.block(),
        }
    }

    /// Whether the server sent the key with this index. A protocol that does not repeat keys sends an empty one.
    #[inline]
    pub(crate) fn is_key(&mut self, index: u64, sent: &[u8]) -> bool {
        sent.is_empty() || self.keys.key(index, &mut self.buffer.key) == sent
    }

    /// Whether this phase loads.
    #[inline]
    pub fn is_load(&self) -> bool {
        matches!(self.task, Task::Load(_))
    }

    /// What request `index` of client `number` does, and to which key, when the phase goes through the records one by one.
    #[inline]
    pub(crate) fn chore(&mut self, index: u64, number: u64) -> Option<(Verb, u64)> {
        match &mut self.task {
            Task::Mix(_) | Task::Rest | Task::Sequence { .. } | Task::Window { .. } => return None,
            Task::Replay(cursor) => return Some(cursor.take()),
            Task::Load(_) | Task::Delete { .. } => {}
        }
        let servers = self.router.servers() as u64;
        let place = match self.router.rounds() {
            // The clients of one server share its records out among them.
            Rounds::PerServer => {
                let (rank, mates) = rank_among_mates(number, self.clients, servers, self.router.block());
                index * mates.min(self.loaders) + rank
            }
            // All clients together see to a record on one server after the other.
            Rounds::Turns => self.load_number(index, number) / servers,
            Rounds::Once => self.load_number(index, number),
        };
        match &self.task {
            Task::Load(spaces) => {
                let records = self.spaces.records();
                let key = self.spaces.index(spaces[(place / records) as usize], place % records);
                Some((self.store_verb(key), key))
            }
            Task::Delete { order, records } => {
                debug_assert!(place < *records);
                Some((Verb::Delete, order.at(place)))
            }
            Task::Mix(_) | Task::Replay(_) | Task::Rest | Task::Sequence { .. } | Task::Window { .. } => None,
        }
    }

    /// What request `index` of client `number` is among all that load, where any client may store any record.
    #[inline]
    pub(crate) fn load_number(&self, index: u64, number: u64) -> u64 {
        index * self.clients.min(self.loaders) + number
    }

    /// The verb of a draw, if it reads one key at a time and this phase is no load.
    #[inline(always)]
    pub(crate) fn verb_of_one(&self, bits: u64) -> Option<Verb> {
        let Task::Mix(asking) = &self.task else { return None };
        let verb = asking.table.verb(bits);
        (asking.multiget == 1 && verb.reads() && verb != Verb::Hget).then_some(verb)
    }

    /// The verb of a draw.
    #[inline]
    pub(crate) fn verb(&self, bits: u64) -> Verb {
        match &self.task {
            Task::Mix(asking) => asking.table.verb(bits),
            Task::Sequence { verb, .. } => *verb,
            Task::Load(_) | Task::Rest | Task::Window { .. } => Verb::Set,
            Task::Replay(_) => Verb::Get,
            Task::Delete { .. } => Verb::Delete,
        }
    }

    /// The record of key `place` of request `index` of client `number`.
    #[inline]
    pub(crate) fn choose(&self, stream: &Stream, index: u64, place: u64, number: u64) -> u64 {
        let asking = self.asking();
        let turn = if asking.sequential { index * self.clients + number } else { index };
        asking.chooser.choose(stream, turn * asking.stride + place)
    }

    /// The index of a space's record.
    #[inline]
    pub(crate) fn index(&self, space: Space, record: u64) -> u64 {
        self.spaces.index(space, record)
    }

    /// Whether reads are spread over more than the plain records.
    #[inline]
    pub(crate) fn has_spaces(&self) -> bool {
        self.asking().table.has_spaces()
    }

    /// The space that a read looks at.
    #[inline]
    pub(crate) fn space(&self, bits: u64) -> Space {
        self.asking().table.space(bits)
    }

    /// The key that client `number` adds pieces to in its turn, and how many bytes may come together there. Clients
    /// have keys of their own as far as there are enough.
    pub(crate) fn piece_key(&self, number: u64, turn: u64) -> (u64, u64) {
        let records = self.spaces.records();
        let place = (number + turn * self.clients) % records;
        (self.spaces.index(Space::Pieces, place), PIECES_LIMIT_BYTES / self.clients.div_ceil(records))
    }

    /// Bytes of a piece for this key.
    pub(crate) fn piece_bytes(&self, key: u64) -> u64 {
        self.values.len_of(key) as u64
    }

    /// Keys of a request of this verb.
    #[inline]
    pub(crate) fn keys_of(&self, verb: Verb) -> u16 {
        match (&self.task, verb) {
            (_, Verb::Hget) => 1,
            (Task::Mix(asking), Verb::Mset) => asking.multiset,
            (Task::Mix(asking), verb) if verb.reads() => asking.multiget,
            _ => 1,
        }
    }

    /// How the record with this index is stored anew.
    #[inline]
    pub(crate) fn store_verb(&self, index: u64) -> Verb {
        // In a replay it is the number of a row.
        if matches!(self.task, Task::Replay(_)) {
            return Verb::Set;
        }
        store_of(self.spaces.space(index))
    }

    /// How long after a miss the key is stored, if it is.
    #[inline]
    pub(crate) fn read_through(&self) -> Option<Nanos> {
        match &self.task {
            Task::Mix(asking) => asking.read_through,
            Task::Replay(cursor) => cursor.read_through,
            Task::Load(_)
            | Task::Delete { .. }
            | Task::Rest
            | Task::Sequence { .. }
            | Task::Window { .. } => None,
        }
    }

    /// Whether anything may have to be done with the answer to a read of so many keys.
    #[inline]
    pub(crate) fn reads_items(&self, keys: u16) -> bool {
        self.verify > 0.0 || keys > 1
    }

    /// What is to be done with the answer to a read of so many keys.
    #[inline]
    pub(crate) fn answer_use(&self, keys: u16, bits: u64) -> AnswerUse {
        if self.verify > 0.0 && unit(bits) < self.verify {
            AnswerUse::Verify
        } else if keys > 1 && self.read_through().is_some() {
            AnswerUse::Items
        } else {
            AnswerUse::None
        }
    }

    /// Begins a request of several keys, which follow.
    #[inline]
    pub(crate) fn begin_keys(&mut self) {
        self.buffer.list.bytes.clear();
        self.buffer.list.ends.clear();
        self.buffer.list.values.clear();
    }

    /// Adds a key to the request.
    #[inline]
    pub(crate) fn add_key(&mut self, index: u64) {
        let key = self.keys.key(index, &mut self.buffer.key);
        self.buffer.list.bytes.extend_from_slice(key);
        self.buffer.list.ends.push(self.buffer.list.bytes.len() as u32);
    }

    /// A read of one key.
    #[inline(always)]
    pub(crate) fn read_one(&mut self, verb: Verb, index: u64, expiry_bits: u64) -> Op<'_> {
        match self.task {
            Task::Replay(_) => self.read_row(verb, index, expiry_bits),
            _ => self.read_made(verb, index, expiry_bits),
        }
    }

    /// The same of a row of the trace.
    fn read_row(&self, verb: Verb, row: u64, expiry_bits: u64) -> Op<'_> {
        let Task::Replay(cursor) = &self.task else { unreachable!("only a replay has rows") };
        Op { expiry_s: self.expiry_of(verb, expiry_bits), ..Op::new(verb, cursor.trace.key(row)) }
    }

    /// The same where nothing is replayed.
    #[inline(always)]
    pub(crate) fn read_made(&mut self, verb: Verb, index: u64, expiry_bits: u64) -> Op<'_> {
        let expiry_s = self.expiry_of(verb, expiry_bits);
        let meta = if self.asks_meta { self.meta() } else { MetaAsk::default() };
        let key_is_sure = self.keys_are_text;
        Op { expiry_s, meta, key_is_sure, ..Op::new(verb, self.keys.key(index, &mut self.buffer.key)) }
    }

    /// A read of the keys that were added.
    pub(crate) fn read_many(&self, verb: Verb, expiry_bits: u64) -> Op<'_> {
        let keys = Keys::Many { bytes: &self.buffer.list.bytes, ends: &self.buffer.list.ends };
        Op { keys, expiry_s: self.expiry_of(verb, expiry_bits), meta: self.meta(), ..Op::new(verb, &[]) }
    }

    /// Adds a key to the request, and what is to be stored under it.
    pub(crate) fn add_pair(&mut self, index: u64, version: Version) {
        self.add_key(index);
        let value = PairValue::of(&self.values.value(index, version, &mut self.buffer.header));
        self.buffer.list.values.push(value);
    }

    /// An mset of what was added.
    pub(crate) fn write_many(&self) -> Op<'_> {
        let pairs = Pairs { list: &self.buffer.list, block: self.values.block() };
        Op { keys: Keys::Pairs(pairs), ..Op::new(Verb::Mset, &[]) }
    }

    /// Anything that is not a read, as a request.
    #[inline]
    pub(crate) fn write(&mut self, write: Write) -> Op<'_> {
        let expiry_s = self.expiry_of(write.verb, write.expiry_bits);
        let noreply =
            matches!(&self.task, Task::Mix(asking) if asking.noreply) && write.verb != Verb::Version;
        if let Task::Replay(cursor) = &self.task {
            let (key, len) = (cursor.trace.key(write.key), cursor.trace.value_bytes(write.key));
            let value = self.values.value_of_len(write.key, write.version, len, &mut self.buffer.header);
            return Op { value, expiry_s, ..Op::new(write.verb, key) };
        }
        let meta = if write.verb == Verb::Delete { self.meta() } else { MetaAsk::default() };
        let key = self.keys.key(write.key, &mut self.buffer.key);
        let value = match write.verb {
            Verb::Set if self.bare_counters && self.spaces.space(write.key) == Space::Counters => {
                Value::plain(COUNTER.trim_ascii_end())
            }
            verb if verb.stores() && self.values.draws_lengths() => {
                let len = self.values.drawn_len(write.size_bits).unwrap_or(0);
                self.values.value_of_len(write.key, write.version, len, &mut self.buffer.header)
            }
            verb if verb.stores() || verb == Verb::Command => {
                self.values.value(write.key, write.version, &mut self.buffer.header)
            }
            _ => Value::default(),
        };
        let delta = if write.verb == Verb::Command { self.spaces.record(write.key) } else { DELTA };
        let key_is_sure = self.keys_are_text;
        Op { value, expiry_s, noreply, cas: write.cas, delta, meta, key_is_sure, ..Op::new(write.verb, key) }
    }

    /// Whether requests of this verb carry an expiry that has to be drawn.
    #[inline]
    pub(crate) fn sets_expiry(&self, verb: Verb) -> bool {
        !matches!(self.expiry_s, Dist::Fixed(_)) && verb.has_expiry()
    }

    /// Whether a write of this verb draws its own length.
    #[inline]
    pub(crate) fn draws_length(&self, verb: Verb) -> bool {
        verb.stores() && self.values.draws_lengths()
    }

    #[inline]
    fn expiry_of(&self, verb: Verb, bits: u64) -> i64 {
        match (&self.expiry_s, verb.has_expiry()) {
            (_, false) => 0,
            (Dist::Fixed(seconds), true) => *seconds as i64,
            (drawn, true) => drawn.draw_size(bits, 0, EXPIRY_MAX_S) as i64,
        }
    }

    /// Whether keys are counted and sizes drawn in the order of asking.
    #[inline]
    pub(crate) fn is_sequence(&self) -> bool {
        matches!(self.task, Task::Sequence { .. })
    }

    /// The verb that all requests of this phase are counted under that were never drawn, where there is only one.
    pub(crate) fn only_verb(&self) -> Option<Verb> {
        match &self.task {
            Task::Mix(asking) => asking.table.only(),
            _ => Some(self.verb(0)),
        }
    }

    /// Deals requests that were never drawn to the verbs of the phase, by their weights; `bits` are random, and decide
    /// about what does not divide.
    pub(crate) fn deal(&self, requests: u64, bits: u64, mut each: impl FnMut(Verb, u64)) {
        match &self.task {
            Task::Mix(asking) => asking.table.deal(requests, bits, each),
            _ => each(self.verb(0), requests),
        }
    }

    /// What the next request of a sequence is about, and how long after it its client's next one is due.
    pub(crate) fn step(&mut self) -> (SequenceStep, Nanos) {
        let Some(sequencer) = &mut self.sequencer else { unreachable!("only a sequence has steps") };
        (sequencer.step(), sequencer.gap_ns())
    }

    /// A request of a sequence.
    pub(crate) fn ask_step(&mut self, step: SequenceStep) -> Op<'_> {
        let Task::Sequence { verb, noreply } = self.task else { unreachable!("only a sequence has steps") };
        let expiry_s = self.expiry_of(verb, 0);
        let Some(sequencer) = &mut self.sequencer else { unreachable!("only a sequence has steps") };
        let value = if verb.stores() { self.values.zeros(step.size as usize) } else { Value::default() };
        let noreply = noreply && !verb.reads();
        let op = Op::new(verb, sequencer.key(step.number));
        Op { value, expiry_s, noreply, cas: 1, delta: step.size, ..op }
    }

    #[inline]
    fn meta(&self) -> MetaAsk {
        match &self.task {
            Task::Mix(asking) => asking.meta,
            _ => MetaAsk::default(),
        }
    }

    /// Whether every object of the windows is set once in this phase, and nothing else done.
    pub(crate) fn is_preset(&self) -> bool {
        matches!(self.task, Task::Window { preset: true })
    }

    /// The requests of clients with windows.
    ///
    /// # Panics
    /// When the clients have none.
    pub(crate) fn window(&self) -> &WindowRequests {
        let Some(window) = &self.window else {
            unreachable!("only clients with windows ask for what is in one")
        };
        window
    }

    /// The requests of clients with windows, to make one.
    ///
    /// # Panics
    /// When the clients have none.
    pub(crate) fn window_mut(&mut self) -> &mut WindowRequests {
        let Some(window) = &mut self.window else {
            unreachable!("only clients with windows ask for what is in one")
        };
        window
    }

    #[inline]
    fn asking(&self) -> &Asking {
        match &self.task {
            Task::Mix(asking) => asking,
            _ => unreachable!("only a mix draws keys"),
        }
    }
}

/// Whether text protocols can carry every key: none has a blank or a control character, which only the prefix could bring.
fn are_text(keys: &KeyMaker) -> bool {
    keys.prefix().is_empty() || lines::is_key(keys.prefix())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::key::KeyBuffer;

    #[test]
    fn keys_are_text_where_their_prefix_is() {
        let prefixes =
            [("", true), ("user:", true), ("ü", true), ("a b", false), ("a\n", false), ("\u{7f}", false)];
        for (prefix, is_text) in prefixes {
            let data = Data {
                records: 1_000,
                seed: 0,
                key_prefix: prefix.to_owned(),
                key_size: Dist::Fixed(20.0),
                value_size: Dist::Fixed(200.0),
                expiry_s: Dist::Fixed(0.0),
                style: crate::plan::Style::default(),
            };
            let keys = KeyMaker::new(&data).unwrap();
            assert_eq!(are_text(&keys), is_text, "{prefix:?}");
            let mut key: KeyBuffer = [0; KEY_MAX_BYTES];
            assert_eq!(lines::is_key(keys.key(999, &mut key)), is_text, "{prefix:?}");
        }
    }
}
