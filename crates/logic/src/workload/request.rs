//! Draws one request: its keys, its values, and what is done with its answer.

use std::sync::Arc;

use crate::client::route::{Lane, Place, Router};
use crate::cluster::view::ClusterView;
use crate::connection::outbox::Sources;
use crate::plan::{Data, DatasetOrder, Fill, Work};
use crate::protocol::resp::sequence::Sequence;
use crate::protocol::resp::template::{Template, Wanted};
use crate::protocol::{Keys, MetaAsk, Op, PairList, PairValue, Pairs, Rest, Value, Verb};
use crate::retry::Retries;
use crate::rng::{Stream, mix};
use crate::time::{MILLISECOND, Nanos};
use crate::workload::cache_account::CacheAccount;
pub use crate::workload::changing::PhaseChanges;
use crate::workload::churn::AskedAt;
use crate::workload::dataset::DatasetRows;
use crate::workload::drawn_records::{DrawnRecords, KeyAt};
use crate::workload::events::{EventRequest, Loss};
use crate::workload::hash::hash_bytes;
use crate::workload::key::{KEY_MAX_BYTES, KeyBuffer, KeyMaker, Space};
use crate::workload::mix::store_of;
use crate::workload::records::Records;
pub(crate) use crate::workload::records::Write;
use crate::workload::routing::Routing;
use crate::workload::rows::{AskedRows, Lateness, RowBatch, Rows};
use crate::workload::sequence::{SequenceStep, Sequencer};
use crate::workload::task::{Task, TaskKind};
use crate::workload::trace::{RecordedKeys, TraceShare};
use crate::workload::value::{HEADER_BYTES, HeaderBuffer, VALUE_MAX_BYTES, ValueMaker, Version};
use crate::workload::verify::ledger::Ledger;
use crate::workload::verify::reads::ReadChecks;
use crate::workload::verify::stale::{Mark, RunMark};
use crate::workload::window::WindowMaker;
use crate::workload::window_requests::WindowRequests;

/// The number that incr adds and decr subtracts.
const DELTA: u64 = 1;

/// Names the bytes that fill places of commands among all that come from random bits.
const MADE: u64 = 0x6d61_6465;

/// Digits from which short values of a trace are cut: each cut is a number below 2^64.
const COUNTER_DIGITS: &[u8] = b"10000000000000000000";

/// State of a request for checks of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// The answer is not checked.
    None,
    /// The version that the request writes.
    Write(Version),
    /// Number of writes that were known to be stored when this read was asked.
    Read(Mark),
    /// Length of the value in bytes, or the number, of a request of a sequence.
    Length(u64),
    /// The request is a row of a trace, whose key is kept until it is answered.
    Row,
    /// The request's stores are counted when it is answered.
    Counted,
    /// Row of the dataset that fills places of the command.
    DatasetRow(u64),
}

/// The use of an answer, beside measuring it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AnswerUse {
    /// The answer is only measured.
    None,
    /// The answer's items are matched to keys, since the client acts on missing items.
    Items,
    /// The answer's values are checked too.
    Verify,
    /// The answer's client has a window and checks the items itself.
    Window,
}

/// Makes the requests of one worker's clients.
#[derive(Debug)]
pub struct RequestMaker {
    pub(crate) records: Records,
    pub(crate) task: Task,
    pub(crate) checks: ReadChecks,
    pub(crate) routing: Routing,
    buffer: RequestBuffer,
    /// Requests that only clients with windows ask.
    window: Option<Box<WindowRequests>>,
    /// The account of the cache; `None` if nothing is counted.
    pub(super) cache: Option<Box<CacheAccount>>,
    /// The commands of the user, by [`Verb::command`].
    commands: Arc<Vec<Template>>,
    /// The command among them that stores the records of commands; `None` where plain values are stored.
    load_verb: Option<Verb>,
    /// The rows that fill places of commands; `None` without any.
    dataset: Option<DatasetRows>,
    /// The text of the script that commands call; `None` without one.
    script: Option<Arc<str>>,
    /// A server has said that it has no longer the script, which is to be loaded again.
    lost_script: bool,
    /// The wall clock at the run's time 0, in nanoseconds since 1970.
    epoch_ns: Nanos,
    /// The errors after which requests are sent again; `None` where they are not.
    retries: Option<Box<Retries>>,
}

/// Everything that the requests of one worker's clients are made from.
#[derive(Debug)]
pub struct RequestInputs<'a> {
    /// The keys of the records.
    pub keys: KeyMaker,
    /// The values of the records.
    pub values: ValueMaker,
    /// Sizes and names of the records.
    pub data: &'a Data,
    /// Number of clients in the group, over all threads and agents.
    pub clients: u64,
    /// The mark of the run.
    pub run: RunMark,
    /// Share of reads that are checked.
    pub verify: f64,
    /// The acknowledged writes, none so far; `None` where they are not read back.
    pub ledger: Option<Ledger>,
    /// The lanes of every client.
    pub router: Router,
    /// The cluster that the servers are nodes of; `None` where they are none.
    pub cluster: Option<Box<ClusterView>>,
    /// Most clients of each server that load.
    pub loaders: u64,
    /// Whether counters are loaded as bare numbers: Redis counts only what is a number from end to end, where memcached pads with
    /// blanks.
    pub bare_counters: bool,
    /// The server's clock, where what reads miss is counted with the reason, in the phases that draw from a mix.
    pub cache: Option<CacheClock>,
    /// Keys and sizes in the order of asking; mixes then ask their first operation.
    pub sequencer: Option<Sequencer>,
    /// The windows of the clients.
    pub window: Option<WindowMaker>,
    /// The requests of a trace that arrive during the run.
    pub rows: Option<Rows>,
    /// The worker's part of a recording.
    pub trace: Option<TraceShare>,
    /// The keys of the recording that deletions delete in place of the records.
    pub recorded: Option<RecordedKeys>,
    /// The commands of the user, by [`Verb::command`].
    pub commands: Arc<Vec<Template>>,
    /// The command among them that loads store with; `None` where they store plain values.
    pub load_verb: Option<Verb>,
    /// The rows that fill places of commands; `None` without any.
    pub dataset: Option<DatasetRows>,
    /// The text of the script that commands call; `None` without one.
    pub script: Option<Arc<str>>,
    /// The wall clock at the run's time 0, in nanoseconds since 1970.
    pub epoch_ns: Nanos,
    /// The errors after which requests are sent again; `None` where they are not.
    pub retries: Option<Box<Retries>>,
}

/// Precision in which a server counts the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheClock {
    /// Whole seconds, as memcached counts them.
    Seconds,
    /// Parts of a second too.
    Fine,
}

impl<'a> RequestInputs<'a> {
    /// The inputs of clients with one lane, all of which load, in a group of `clients`: these records, nothing else, and no checks.
    pub fn new(
        keys: KeyMaker,
        values: ValueMaker,
        data: &'a Data,
        clients: u64,
        run: RunMark,
    ) -> RequestInputs<'a> {
        RequestInputs {
            keys,
            values,
            data,
            clients,
            run,
            verify: 0.0,
            ledger: None,
            router: Router::single(),
            cluster: None,
            loaders: u64::MAX,
            bare_counters: false,
            cache: None,
            sequencer: None,
            window: None,
            rows: None,
            trace: None,
            recorded: None,
            commands: Arc::default(),
            load_verb: None,
            dataset: None,
            script: None,
            epoch_ns: 0,
            retries: None,
        }
    }
}

/// The keys and values of the request that is being made.
#[derive(Debug)]
struct RequestBuffer {
    list: PairList,
    header: HeaderBuffer,
    key: KeyBuffer,
}

impl RequestMaker {
    /// A maker of requests from these inputs.
    pub fn new(inputs: RequestInputs<'_>) -> RequestMaker {
        let RequestInputs { keys, values, data, clients, run, verify, router, loaders, .. } = inputs;
        let account = |clock: CacheClock| Box::new(CacheAccount::new(clock == CacheClock::Seconds));
        let mut checks = ReadChecks::new(verify, run);
        checks.ledger = inputs.ledger.map(Box::new);
        RequestMaker {
            records: Records::new(keys, values, data, inputs.bare_counters),
            task: Task::new(run.number(), inputs.trace, inputs.recorded, inputs.rows, inputs.sequencer),
            checks,
            routing: Routing { router, clients, loaders, cluster: inputs.cluster },
            buffer: RequestBuffer {
                list: PairList { bytes: Vec::with_capacity(KEY_MAX_BYTES), ..PairList::default() },
                header: [0; HEADER_BYTES],
                key: [0; KEY_MAX_BYTES],
            },
            window: inputs.window.map(|maker| Box::new(WindowRequests::new(maker))),
            cache: inputs.cache.map(account),
            commands: inputs.commands,
            load_verb: inputs.load_verb,
            dataset: inputs.dataset,
            script: inputs.script,
            lost_script: false,
            epoch_ns: inputs.epoch_ns,
            retries: inputs.retries,
        }
    }

    /// Makes the requests of the phase that has begun follow `changes`; `seed` decides the random choices that are the
    /// same for all workers.
    pub fn begin_changes(&mut self, work: &Work, changes: &PhaseChanges<'_>, seed: u64) {
        if let Work::Mix(mix) = work {
            self.task.begin_changes(mix, changes, seed, self.drawn_records());
        }
    }

    /// The records that requests are drawn from. Where slots decide on the node of a key, the keys of a request have one hash tag.
    pub(super) fn drawn_records(&self) -> DrawnRecords {
        let together = self.records.keys.tag().filter(|_| self.routing.router.deals_slots());
        let of_command = |place: usize| self.commands.get(place).map_or(1, Template::records) as u16;
        DrawnRecords { count: self.records.count(), together, of_commands: std::array::from_fn(of_command) }
    }

    /// The cluster that the servers are nodes of; `None` where they are none.
    pub fn cluster(&self) -> Option<&ClusterView> {
        self.routing.cluster.as_deref()
    }

    /// The errors after which requests are sent again; `None` where they are not.
    pub fn retries(&self) -> Option<&Retries> {
        self.retries.as_deref()
    }

    /// Takes in a server's words about an error, which may be that it has no longer the script.
    pub fn note_script(&mut self, words: &[u8]) {
        self.lost_script |= self.script.is_some() && words.starts_with(b"NOSCRIPT ");
    }

    /// Whether the server that answered last is to load the script again.
    #[inline(always)]
    pub fn has_lost_script(&self) -> bool {
        self.lost_script
    }

    /// Takes the script that a server is to load again, if it has lost it.
    pub fn take_lost_script(&mut self) -> Option<&str> {
        std::mem::take(&mut self.lost_script).then_some(self.script.as_deref()).flatten()
    }

    /// The errors after which requests are sent again, to take what was counted.
    pub fn retries_mut(&mut self) -> Option<&mut Retries> {
        self.retries.as_deref_mut()
    }

    /// Time from due for which a request waits, in nanoseconds: that of the plan's retries, where the request `is_retried` or may wait for
    /// one that is, or the timeout of a cluster.
    pub(crate) fn patience_ns(&self, is_retried: bool) -> Nanos {
        let retry_ns = self.retries().filter(|_| is_retried).map_or(0, Retries::for_ns);
        retry_ns.max(self.cluster().map_or(0, |view| view.limits().timeout_ns))
    }

    /// The cluster that the servers are nodes of, to be told what is learned of it.
    pub fn cluster_mut(&mut self) -> Option<&mut ClusterView> {
        self.routing.cluster.as_deref_mut()
    }

    /// Whether requests of a trace are wanted that wait for their clients.
    pub fn wants_rows(&self) -> bool {
        self.task.is_rows() && self.task.rows().has_room()
    }

    /// Number of requests of a trace that wait for their clients.
    pub fn waiting_rows(&self) -> usize {
        if self.task.is_rows() { self.task.rows().len() } else { 0 }
    }

    /// Takes in requests of a trace. Hands over the places of the clients that had none.
    pub fn take_rows(&mut self, batch: &RowBatch, mut wake: impl FnMut(usize)) {
        let rows = self.task.rows_mut();
        for (row, key) in batch.rows() {
            if rows.add(row, key) {
                wake(row.client as usize);
            }
        }
        if batch.ends_part {
            rows.end();
        }
    }

    /// Notes that no request of a trace waited for so long although the trace goes on.
    pub fn note_starved(&mut self, time_ns: Nanos) {
        self.task.rows_mut().lateness.starved_ns += time_ns;
    }

    /// Lateness of the requests of the last part of a trace; `None` where none is replayed.
    pub fn lateness(&self) -> Option<Lateness> {
        self.task.has_rows().then(|| self.task.rows().lateness)
    }

    /// The requests of a trace that were asked so far; `None` where none is replayed.
    pub fn asked_rows(&self) -> Option<AskedRows> {
        self.task.has_rows().then(|| self.task.rows().asked())
    }

    /// Makes a request of a trace, whose key is kept in this place.
    pub(crate) fn ask_row(&mut self, verb: Verb, place: u64, cas: u64) -> Op<'_> {
        let rows = self.task.rows();
        let (value_bytes, ttl_s) = rows.value_and_ttl(place);
        let expiry_s = if verb.has_expiry() { i64::from(ttl_s) } else { 0 };
        let value = match verb.stores() {
            // A value that short may be a counter: digits are what incr and decr work on.
            true if value_bytes as usize <= COUNTER_DIGITS.len() => {
                Value::plain(&COUNTER_DIGITS[..value_bytes as usize])
            }
            true => {
                let header = &mut self.buffer.header;
                self.records.values.value_of_len(place, Version::LOADED, value_bytes as usize, header)
            }
            false => Value::default(),
        };
        let delta = if matches!(verb, Verb::Incr | Verb::Decr) { DELTA } else { 0 };
        Op { value, expiry_s, cas, delta, ..Op::new(verb, rows.key(place)) }
    }

    /// Makes the work of the next phase ready; `seed` decides what it leaves to chance for all workers alike. A replay
    /// begins with the first row; behind a deletion it goes on where the one before it stopped.
    ///
    /// # Panics
    /// Panics when the work is a replay and there is no trace.
    pub fn begin(&mut self, work: &Work, seed: u64) {
        self.task.begin(work, seed, self.drawn_records());
        let is_mix = matches!(self.task.kind, TaskKind::Mix(_));
        let is_audit = self.audited().is_some();
        self.checks.begin(self.task.is_load(), self.cache.is_some() && is_mix, is_audit);
        if let Some(view) = self.cluster_mut() {
            view.reads.masters_alone = is_audit;
        }
    }

    /// Whether this phase loads.
    #[inline]
    pub fn is_load(&self) -> bool {
        self.task.is_load()
    }

    /// Takes the acknowledged writes, after which no more are noted; `None` where none were to be.
    pub fn take_ledger(&mut self) -> Option<Ledger> {
        self.checks.ledger.take().map(|ledger| *ledger)
    }

    /// Keeps the acknowledged writes of all clients for the phase that reads them back.
    pub fn keep_audited(&mut self, ledger: Arc<Ledger>) {
        self.task.keep_audited(ledger);
    }

    /// The acknowledged writes that this phase reads back; `None` in other phases.
    #[inline]
    pub fn audited(&self) -> Option<&Ledger> {
        self.task.audited()
    }

    /// Whether the record of request `index` of client `number`, in a phase that reads records back, was written.
    pub(crate) fn is_written(&self, index: u64, number: u64) -> bool {
        self.audited().is_some_and(|ledger| ledger.is_written(self.routing.place(index, number)))
    }

    /// Whether clients have windows.
    #[inline]
    pub fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// The requests of clients with windows.
    ///
    /// # Panics
    /// Panics when the clients have no windows.
    pub(crate) fn window(&self) -> &WindowRequests {
        let Some(window) = &self.window else { unreachable!("only clients with windows ask for one") };
        window
    }

    /// The requests of clients with windows, to make one or to take what was counted.
    ///
    /// # Panics
    /// Panics when the clients have no windows.
    pub fn window_mut(&mut self) -> &mut WindowRequests {
        let Some(window) = &mut self.window else { unreachable!("only clients with windows ask for one") };
        window
    }

    /// The maker of values.
    pub fn values(&self) -> &ValueMaker {
        &self.records.values
    }

    /// The maker of keys.
    pub fn keys(&self) -> &KeyMaker {
        &self.records.keys
    }

    /// The sources of long parts of values.
    #[inline]
    pub fn sources(&self) -> Sources<'_> {
        let sources = self.records.values.sources();
        match &self.window {
            None => sources,
            Some(window) => Sources { text: window.text_of_values(), ..sources },
        }
    }

    /// The place of a request with this key, which is its client's turn `turn`.
    #[inline]
    pub(crate) fn place_of(&mut self, turn: u64, key: u64) -> Place {
        self.routing.place_of(turn, self.records.keys.key(key, &mut self.buffer.key))
    }

    /// The place of the request of a trace that is kept in this place of its rows.
    pub(crate) fn place_of_row(&self, row: u64) -> Place {
        self.routing.place_of(0, self.task.rows().key(row))
    }

    /// Whether the server sent the key with this index. A protocol that does not repeat keys sends an empty one.
    #[inline]
    pub(crate) fn is_key(&mut self, index: u64, sent: &[u8]) -> bool {
        let is_sent = |key: &[u8]| key == sent;
        sent.is_empty()
            || match self.task.is_rows() {
                true => is_sent(self.task.rows().key(index)),
                false => is_sent(self.records.keys.key(index, &mut self.buffer.key)),
            }
    }

    /// The verb and key of request `index` of client `number`, in a phase that goes through its records one by one;
    /// `None` in other phases. The request is due so long after the beginning of the phase, and is number `asked` of its client
    /// since keys change.
    #[inline]
    pub(crate) fn in_order(
        &mut self,
        index: u64,
        number: u64,
        (since_ns, asked): (Nanos, u64),
    ) -> Option<(Verb, u64)> {
        match &mut self.task.kind {
            TaskKind::Mix(_)
            | TaskKind::Rest
            | TaskKind::Sequence { .. }
            | TaskKind::Window { .. }
            | TaskKind::Rows => None,
            TaskKind::Changing(changing) => {
                let requests = all_requests(asked, &self.routing, number);
                changing.turn_to(AskedAt { since_ns, requests });
                None
            }
            TaskKind::Replay(cursor) => Some(cursor.take()),
            TaskKind::Load(spaces) => {
                let key = self.records.index_at(spaces, self.routing.place(index, number));
                let space = self.records.spaces.space(key);
                let own = self.load_verb.filter(|_| space == Space::Commands);
                Some((own.unwrap_or_else(|| store_of(space)), key))
            }
            TaskKind::Audit(_) => Some((Verb::Get, self.routing.place(index, number))),
            TaskKind::Delete { order, records, recorded } => {
                let place = self.routing.place(index, number);
                debug_assert!(place < *records);
                let record = order.at(place);
                Some((Verb::Delete, recorded.as_ref().map_or(record, |keys| keys.row(record))))
            }
        }
    }

    /// Returns to the moment at which request number `asked` of client `number` was due, in a phase whose requests
    /// change.
    #[inline]
    pub(crate) fn turn_to(&mut self, number: u64, (since_ns, asked): (Nanos, u64)) {
        let requests = all_requests(asked, &self.routing, number);
        self.task.turn_to(AskedAt { since_ns, requests });
    }

    /// The index of key `place` of request `index` of client `number`, in a space. `streams` are the
    /// client's streams of operations and of keys.
    #[inline]
    pub(crate) fn record_key(
        &self,
        space: Space,
        streams: (&Stream, &Stream),
        (index, place): (u64, u64),
        number: u64,
    ) -> u64 {
        let at = KeyAt { index, place, client: number, clients: self.routing.clients };
        self.task.key(self.records.spaces, space, streams, at)
    }

    /// The requests that the events of this phase ask of client `number`.
    pub(crate) fn event_requests(&mut self, number: u64) -> Vec<EventRequest> {
        let mut requests = Vec::new();
        for Loss { at_ns, verb, ranks } in self.task.losses().to_vec() {
            for (place, record) in (ranks.first..=ranks.last).enumerate() {
                let key = self.task.key_at(record, AskedAt { since_ns: at_ns, requests: 0 });
                let bytes = self.records.keys.key(key, &mut self.buffer.key);
                let lanes = self.routing.event_lanes(place as u64, number, bytes);
                requests.extend(lanes.map(|lane| EventRequest { at_ns, verb, key, lane }));
            }
        }
        requests
    }

    /// The key that is no record, where key `place` of read `index` of client `number` is such a one. `ops` is the client's
    /// stream of operations, and `keys` that of keys.
    pub(crate) fn unstored_key(
        &self,
        ops: &Stream,
        keys: &Stream,
        (index, place): (u64, u64),
        number: u64,
    ) -> Option<u64> {
        let at = KeyAt { index, place, client: number, clients: self.routing.clients };
        self.task.unstored_key(ops, keys, at)
    }

    /// The record `place` records behind this one.
    pub(crate) fn scanned(&self, first: u64, place: u64) -> u64 {
        self.task.scanned(first, place, self.records.count())
    }

    /// The key that client `number` appends its pieces to in its turn, and how many bytes of pieces the client may store
    /// under it.
    pub(crate) fn piece_key(&self, number: u64, turn: u64) -> (u64, u64) {
        self.records.piece_key(number, turn, self.routing.clients)
    }

    /// The verb that stores the record with this index anew.
    #[inline]
    pub(crate) fn store_verb(&self, index: u64) -> Verb {
        if self.task.is_replaying() { Verb::Set } else { store_of(self.records.spaces.space(index)) }
    }

    /// The verb that stores a record that was missed.
    pub(crate) fn fill_verb(&self, index: u64) -> Verb {
        match (self.store_verb(index), self.task.fill()) {
            (Verb::Set, Fill::Add) => Verb::Add,
            (verb, _) => verb,
        }
    }

    /// Returns the use of the answer to a read of `keys` keys.
    #[inline]
    pub(crate) fn answer_use(&self, keys: u16, bits: u64) -> AnswerUse {
        if self.checks.is_checked(bits) {
            AnswerUse::Verify
        } else if self.counts_cache() || keys > 1 && self.task.read_through().is_some() {
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
        let key = self.records.keys.key(index, &mut self.buffer.key);
        self.buffer.list.bytes.extend_from_slice(key);
        self.buffer.list.ends.push(self.buffer.list.bytes.len() as u32);
    }

    /// The keys that were added, end to end, and their ends.
    pub(super) fn added_keys(&self) -> (&[u8], &[u32]) {
        (&self.buffer.list.bytes, &self.buffer.list.ends)
    }

    /// Whether the server of `lane` has the record with this index.
    pub(super) fn lies_on(&mut self, lane: Lane, index: u64) -> bool {
        if !self.routing.owns_keys() {
            return true;
        }
        let place = self.place_of(0, index);
        match self.cluster() {
            Some(view) => view.owner_of(place) == Some(lane),
            None => place == lane,
        }
    }

    /// A read of one key.
    #[inline(always)]
    pub(crate) fn read_one(&mut self, verb: Verb, index: u64, expiry_bits: u64) -> Op<'_> {
        match self.task.kind {
            TaskKind::Replay(_) => self.read_row(verb, index, expiry_bits),
            _ => self.read_made(verb, index, expiry_bits),
        }
    }

    /// A read of the key in a row of the trace.
    fn read_row(&self, verb: Verb, row: u64, expiry_bits: u64) -> Op<'_> {
        let TaskKind::Replay(cursor) = &self.task.kind else { unreachable!("only a replay has rows") };
        Op { expiry_s: self.records.expiry_of(verb, expiry_bits), ..Op::new(verb, cursor.trace.key(row)) }
    }

    /// A read of one key that is made from its index, in a phase that replays nothing.
    #[inline(always)]
    pub(crate) fn read_made(&mut self, verb: Verb, index: u64, expiry_bits: u64) -> Op<'_> {
        let expiry_s = self.records.expiry_of(verb, expiry_bits);
        let meta = if self.task.asks_meta { self.task.meta() } else { MetaAsk::default() };
        let key_is_sure = self.records.keys_are_text;
        let key = self.records.keys.key(index, &mut self.buffer.key);
        Op { expiry_s, meta, key_is_sure, ..Op::new(verb, key) }
    }

    /// A read of one key that is made from its index, at its client's turn `turn`, with the lane that it takes and the slot of its key in a
    /// cluster (0 elsewhere); `None` where no node is known, or not the owner of the slot alone is asked.
    #[inline(always)]
    pub(crate) fn read_placed(
        &mut self,
        verb: Verb,
        index: u64,
        expiry_bits: u64,
        turn: u64,
    ) -> Option<(Lane, Place, Op<'_>)> {
        let expiry_s = self.records.expiry_of(verb, expiry_bits);
        let meta = if self.task.asks_meta { self.task.meta() } else { MetaAsk::default() };
        let key_is_sure = self.records.keys_are_text;
        let key = self.records.keys.key(index, &mut self.buffer.key);
        let (lane, slot) = self.routing.lane_and_slot(turn, key)?;
        Some((lane, slot, Op { expiry_s, meta, key_is_sure, ..Op::new(verb, key) }))
    }

    /// A read of the keys that were added.
    pub(crate) fn read_many(&self, verb: Verb, expiry_bits: u64) -> Op<'_> {
        let keys = Keys::Many { bytes: &self.buffer.list.bytes, ends: &self.buffer.list.ends };
        let expiry_s = self.records.expiry_of(verb, expiry_bits);
        Op { keys, expiry_s, meta: self.task.meta(), ..Op::new(verb, &[]) }
    }

    /// Adds a key to the request, and what is to be stored under it.
    pub(crate) fn add_pair(&mut self, index: u64, version: Version) {
        self.add_key(index);
        let value = PairValue::of(&self.records.values.value(index, version, &mut self.buffer.header));
        self.buffer.list.values.push(value);
    }

    /// An mset of the keys and values that were added.
    pub(crate) fn write_many(&self) -> Op<'_> {
        let pairs = Pairs { list: &self.buffer.list, bodies: self.records.values.bodies() };
        Op { keys: Keys::Pairs(pairs), ..Op::new(Verb::Mset, &[]) }
    }

    /// A request of any verb that does not read.
    #[inline]
    pub(crate) fn write(&mut self, write: Write) -> Op<'_> {
        let Write { verb, cas, .. } = write;
        if let Some(place) = verb.command() {
            return self.write_command(place, &write);
        }
        let expiry_s = self.records.expiry_of(verb, write.expiry_bits);
        let noreply = self.task.asks_no_reply() && verb != Verb::Version;
        if let TaskKind::Replay(cursor) = &self.task.kind {
            let (key, len) = (cursor.trace.key(write.key), cursor.trace.value_bytes(write.key));
            let header = &mut self.buffer.header;
            let value = self.records.values.value_of_len(write.key, write.version, len, header);
            return Op { value, expiry_s, ..Op::new(verb, key) };
        }
        if let TaskKind::Delete { recorded: Some(keys), .. } = &self.task.kind {
            return Op::new(verb, keys.key(write.key));
        }
        let meta = if verb == Verb::Delete { self.task.meta() } else { MetaAsk::default() };
        let key = self.records.keys.key(write.key, &mut self.buffer.key);
        let value = self.records.value_of(&write, &mut self.buffer.header);
        let key_is_sure = self.records.keys_are_text;
        Op { value, expiry_s, noreply, cas, delta: DELTA, meta, key_is_sure, ..Op::new(verb, key) }
    }

    /// The request of the command of the user in this place, whose places are filled.
    fn write_command(&mut self, place: usize, write: &Write) -> Op<'_> {
        let template = self.commands.get(place);
        let list = &self.buffer.list;
        let keys = match template {
            Some(template) if template.makes_bytes() => {
                Keys::Pairs(Pairs { list, bodies: self.records.values.bodies() })
            }
            Some(template) if template.fill_count() > 0 => {
                Keys::Many { bytes: &list.bytes, ends: &list.ends }
            }
            _ => Keys::One(self.records.keys.key(write.key, &mut self.buffer.key)),
        };
        let value = match template.is_some_and(Template::has_value) {
            true => self.records.value_of(write, &mut self.buffer.header),
            false => Value::default(),
        };
        let delta = self.records.spaces.record(write.key);
        let key_is_sure = self.records.keys_are_text;
        Op { keys, value, delta, key_is_sure, ..Op::new(write.verb, &[]) }
    }

    /// The commands that a request of this verb asks, where they are several.
    pub(crate) fn sequence(&self, verb: Verb) -> Option<&Sequence> {
        self.command_of(verb)?.sequence()
    }

    /// Whether requests may take several exchanges: those of a cluster, and sequences of commands that wait for replies.
    pub fn may_go_on(&self) -> bool {
        let mut sequences = self.commands.iter().filter_map(Template::sequence);
        self.routing.cluster.is_some() || sequences.any(Sequence::is_divided)
    }

    /// The command of the user that requests of this verb are; `None` for other verbs.
    fn command_of(&self, verb: Verb) -> Option<&Template> {
        self.commands.get(verb.command()?)
    }

    /// Whether requests of this verb write nothing.
    pub(crate) fn is_read(&self, verb: Verb) -> bool {
        verb.reads() || verb == Verb::Version || self.command_of(verb).is_some_and(Template::reads)
    }

    /// Whether a request of this verb that has one key touches no other record than that of its key.
    pub(crate) fn has_one_record(&self, verb: Verb) -> bool {
        !verb.is_command() || self.command_of(verb).is_some_and(Template::has_one_record)
    }

    /// Whether a request of this verb can be carried out twice without another effect, and another reply, than once.
    pub(crate) fn may_repeat(&self, verb: Verb) -> bool {
        match self.command_of(verb) {
            Some(template) => template.may_repeat(),
            None => verb.may_repeat(),
        }
    }

    /// A number that the record of this key has, and no other one: that of the key, or, where keys are kept in the rows of a trace, one
    /// of its text. Records of several kinds with one key are one on a server.
    pub(crate) fn record_of(&self, key: u64) -> u64 {
        match self.task.is_rows() {
            true => hash_bytes(self.task.rows().key(key)),
            false => self.records.keys.first_with_key(key),
        }
    }

    /// The text of the key with this index, or in this place of the rows of a trace.
    pub(crate) fn text_of_key(&mut self, key: u64) -> Vec<u8> {
        match self.task.is_rows() {
            true => self.task.rows().key(key).to_vec(),
            false => self.records.keys.key(key, &mut self.buffer.key).to_vec(),
        }
    }

    /// The row of the dataset that request `index` of client `number` takes, the row `taken` of the client's, if the command of this
    /// verb has a place for one of its fields. `bits` decide on a row that is drawn. A load stores each record with a row of its own.
    pub(crate) fn dataset_row(
        &self,
        verb: Verb,
        (index, number): (u64, u64),
        taken: u64,
        bits: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let dataset = self.dataset.as_ref()?;
        self.command_of(verb)?.field_names().next()?;
        Some(match &self.task.kind {
            TaskKind::Load(spaces) if dataset.order == DatasetOrder::File => {
                let (place, records) = (self.routing.place(index, number), self.records.count());
                let turn = usize::try_from(place / records).unwrap_or(usize::MAX).min(spaces.len());
                let before = spaces[..turn].iter().filter(|space| **space == Space::Commands).count();
                (before as u64).saturating_mul(records).saturating_add(place % records)
            }
            _ => dataset.row((number, self.routing.clients), taken, bits()),
        })
    }

    /// The fact that a request of a command has to find out for one of its places; `None` behind the last.
    pub(crate) fn wanted(&self, verb: Verb, place: usize) -> Option<Wanted> {
        let template = self.commands.get(verb.command()?)?;
        (place < template.fill_count()).then(|| template.wanted(place))
    }

    /// Adds the content of a place of a command to the request. `found` is what [`RequestMaker::wanted`] asked for; of a record, it is
    /// the index of its key.
    pub(crate) fn add_fill(&mut self, verb: Verb, place: usize, found: u64) {
        let Some(template) = verb.command().and_then(|place| self.commands.get(place)) else { return };
        let found = match template.wanted(place) {
            Wanted::Key(_) => return self.add_key(found),
            Wanted::Bytes => {
                let lengths = template.lengths(place);
                let len = lengths.map_or(0, |lengths| lengths.draw_size(found, 0, VALUE_MAX_BYTES));
                let (bodies, seed) = (self.records.values.bodies(), mix(&[found, MADE]));
                let rest = Rest::Body { bodies, seed, len_bytes: len as usize };
                let list = &mut self.buffer.list;
                // Other places have an empty value.
                list.values.resize(list.ends.len(), PairValue::of(&Value::default()));
                list.values.push(PairValue::of(&Value { own: &[], rest }));
                list.ends.push(list.bytes.len() as u32);
                return;
            }
            Wanted::Number(_) => self.records.spaces.record(found),
            Wanted::NowMs => self.epoch_ns.saturating_add(found) / MILLISECOND,
            Wanted::Bits | Wanted::Client | Wanted::Sequence => found,
            Wanted::Field(column) => {
                let list = &mut self.buffer.list;
                let field = self.dataset.as_ref().map(|dataset| dataset.packed.field(found, column));
                list.bytes.extend_from_slice(field.unwrap_or_default());
                list.ends.push(list.bytes.len() as u32);
                return;
            }
        };
        let list = &mut self.buffer.list;
        template.write_fill(place, found, &mut list.bytes);
        list.ends.push(list.bytes.len() as u32);
    }

    /// A request of a sequence.
    pub(crate) fn ask_step(&mut self, step: SequenceStep) -> Op<'_> {
        let (TaskKind::Sequence { verb, noreply }, Some(sequencer)) =
            (&self.task.kind, &mut self.task.sequencer)
        else {
            unreachable!("only a sequence has steps")
        };
        let (verb, noreply) = (*verb, *noreply && !verb.reads());
        let expiry_s = self.records.expiry_of(verb, 0);
        let value =
            if verb.stores() { self.records.values.zeros(step.size as usize) } else { Value::default() };
        let op = Op::new(verb, sequencer.key(step.number));
        Op { value, expiry_s, noreply, cas: 1, delta: step.size, ..op }
    }
}

/// The number of requests of all clients when client `number` asks its request number `asked`, as far as this client
/// knows.
fn all_requests(asked: u64, routing: &Routing, number: u64) -> u64 {
    asked.saturating_mul(routing.clients).saturating_add(number)
}
