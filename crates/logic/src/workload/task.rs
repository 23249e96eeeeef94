//! The work of a phase, made ready for one worker's clients.

use std::sync::Arc;

use crate::plan::share::delete_records;
use crate::plan::{Load, Mix, Popularity, Work};
use crate::protocol::{MetaAsk, Verb};
use crate::rng::{Stream, mix};
use crate::time::Nanos;
use crate::workload::key::Space;
use crate::workload::mix::MixTable;
use crate::workload::popularity::Chooser;
use crate::workload::sequence::{SequenceStep, Sequencer};
use crate::workload::shuffle::Shuffle;
use crate::workload::trace::{RecordedKeys, Trace, TraceCursor, TraceShare};
use crate::workload::unstored::{ABSENT_FROM, Unstored, Wanted, fresh_key};

/// Names the order of deletion among all that a seed decides.
const DELETED: u64 = 0x64_656c_6574;

/// The work of the current phase, with what it goes on with from one phase to the next.
#[derive(Debug)]
pub(crate) struct Task {
    pub(super) kind: TaskKind,
    /// Reads ask what only the meta protocol can say.
    pub(super) asks_meta: bool,
    /// The requests that were recorded, and which of them are this worker's.
    trace: Option<TraceShare>,
    /// The keys of the trace, which deletions delete where there are some.
    recorded: Option<RecordedKeys>,
    /// Keys and sizes in the order of asking, where they are counted and not chosen.
    pub(super) sequencer: Option<Box<Sequencer>>,
    /// A number that no other run has, and the number of phases that began.
    run: u64,
    phases: u64,
}

/// What the clients do in a phase.
#[derive(Debug)]
pub(super) enum TaskKind {
    /// Nothing: connections are opened.
    Rest,
    /// The spaces whose records are stored, one space after the other; the clients take turns.
    Load(Vec<Space>),
    /// Requests are drawn from a mix.
    Mix(Box<MixTask>),
    /// The sequencer chooses keys and sizes.
    Sequence { verb: Verb, noreply: bool },
    /// Every client works on its window; with `preset`, it sets every object once and does nothing else.
    Window { preset: bool },
    /// The rows of a trace are asked.
    Replay(TraceCursor),
    /// The records at the first `records` places of `order` are deleted; with `recorded`, these keys of the trace.
    Delete { order: Shuffle, records: u64, recorded: Option<RecordedKeys> },
}

/// Which key of which request.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyAt {
    /// Number of the request among its client's.
    pub(super) index: u64,
    /// Number of the key in the request.
    pub(super) place: u64,
    /// Number of the client.
    pub(super) client: u64,
    /// Number of clients.
    pub(super) clients: u64,
}

/// A mix, made ready for drawing.
#[derive(Debug)]
pub(super) struct MixTask {
    pub(super) table: MixTable,
    chooser: Chooser,
    /// Keys read that are no records, where there are some.
    unstored: Option<Unstored>,
    /// Reads ask for plain records and nothing else.
    reads_plainly: bool,
    /// What makes the keys that nobody asks for again others than those of every other phase and run.
    fresh_salt: u64,
    /// The popularity is sequential.
    sequential: bool,
    /// Keys of a read.
    multiget: u16,
    /// Keys of an mset.
    multiset: u16,
    /// Draws of keys that belong to one request.
    stride: u64,
    meta: MetaAsk,
    /// How long after a miss the key is stored, in nanoseconds; `None` where it is not.
    read_through: Option<Nanos>,
    pub(super) noreply: bool,
}

impl MixTask {
    fn new(mix: &Mix, records: u64, fresh_salt: u64) -> MixTask {
        let table = MixTable::new(mix);
        let unstored = Unstored::of(mix);
        MixTask {
            reads_plainly: !table.has_spaces() && unstored.is_none(),
            fresh_salt,
            unstored,
            table,
            // Which client asks matters for sequential popularity alone, and is put into the number of the draw there.
            chooser: Chooser::new(&mix.popularity, records, 0, 1),
            sequential: mix.popularity == Popularity::Sequential,
            multiget: mix.multiget as u16,
            multiset: mix.multiset as u16,
            stride: u64::from(mix.multiget.max(mix.multiset)),
            meta: mix.meta,
            read_through: mix.read_through_ns,
            noreply: mix.noreply,
        }
    }
}

impl Task {
    /// A task without work, until a phase begins, of the run with this number, which no other run has.
    pub(super) fn new(run: u64) -> Task {
        Task {
            kind: TaskKind::Rest,
            asks_meta: false,
            trace: None,
            recorded: None,
            sequencer: None,
            run,
            phases: 0,
        }
    }

    /// Makes rows `worker`, `worker + workers` and so on of a trace the part that this worker asks in a replay.
    pub(super) fn set_trace(&mut self, trace: Arc<Trace>, worker: u64, workers: u64) {
        self.trace = Some(TraceShare { trace, first: worker, step: workers, divided_at: worker });
    }

    /// Makes these the keys that a deletion of the recording deletes.
    pub(super) fn set_recorded_keys(&mut self, keys: RecordedKeys) {
        self.recorded = Some(keys);
    }

    /// Makes the work of the next phase ready, on `records` records in each space. `seed` decides what the phase leaves to
    /// chance for all workers alike. A replay begins with the first row, but behind a deletion, which divides it.
    ///
    /// # Panics
    /// Panics when the work is a replay and there is no trace.
    pub(super) fn begin(&mut self, work: &Work, seed: u64, records: u64) {
        if let (TaskKind::Replay(cursor), Some(share)) = (&self.kind, &mut self.trace) {
            share.divided_at = cursor.next;
        }
        let is_divided = matches!(self.kind, TaskKind::Delete { .. });
        self.phases += 1;
        let fresh_salt = mix(&[self.run, self.phases]);
        self.kind = match work {
            Work::Load(load) => TaskKind::Load(load_spaces(load)),
            Work::Mix(mix) if self.sequencer.is_some() => {
                TaskKind::Sequence { verb: mix.ops[0].0, noreply: mix.noreply }
            }
            Work::Mix(mix) => TaskKind::Mix(Box::new(MixTask::new(mix, records, fresh_salt))),
            Work::Window(window) => TaskKind::Window { preset: window.preset },
            Work::Replay(replay) => {
                let share = self.trace.clone().expect("the engine takes no replay without its trace");
                let next = if is_divided { share.divided_at } else { share.first };
                TaskKind::Replay(TraceCursor::new(replay, share, next))
            }
            Work::Delete(delete) => {
                let recorded = self.recorded.clone();
                let records = recorded.as_ref().map_or(records, RecordedKeys::count);
                let order = Shuffle::new(mix(&[seed, DELETED]), records.max(1));
                TaskKind::Delete { order, records: delete_records(delete, records), recorded }
            }
            Work::Pause(_) => TaskKind::Rest,
        };
        self.asks_meta = self.meta() != MetaAsk::default();
    }

    /// Whether no request is left for any client.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(&self.kind, TaskKind::Replay(cursor) if cursor.is_exhausted())
    }

    /// How many rows of the worker's part of a trace wait to be asked; `None` where nothing is replayed.
    pub(crate) fn rows_left(&self) -> Option<u64> {
        let TaskKind::Replay(cursor) = &self.kind else { return None };
        Some(cursor.rows_left())
    }

    /// Leaves out so many rows of a trace: the requests that were due for them are unsent.
    pub(crate) fn pass_rows(&mut self, rows: u64) {
        if let TaskKind::Replay(cursor) = &mut self.kind {
            cursor.pass(rows);
        }
    }

    /// Whether this phase loads.
    #[inline]
    pub(crate) fn is_load(&self) -> bool {
        matches!(self.kind, TaskKind::Load(_))
    }

    /// Whether this phase replays a trace, so that the index of a key is the number of a row.
    #[inline]
    pub(super) fn is_replay(&self) -> bool {
        matches!(self.kind, TaskKind::Replay(_))
    }

    /// Whether keys are counted and sizes drawn in the order of asking.
    #[inline]
    pub(crate) fn is_sequence(&self) -> bool {
        matches!(self.kind, TaskKind::Sequence { .. })
    }

    /// Whether every object of the windows is set once in this phase, and nothing else is done.
    pub(crate) fn is_preset(&self) -> bool {
        matches!(self.kind, TaskKind::Window { preset: true })
    }

    /// The verb of a draw, if it reads one key at a time and the phase draws from a mix.
    #[inline(always)]
    pub(crate) fn verb_of_one(&self, bits: u64) -> Option<Verb> {
        let TaskKind::Mix(mix) = &self.kind else { return None };
        let verb = mix.table.verb(bits);
        (mix.multiget == 1 && verb.reads() && verb != Verb::Hget).then_some(verb)
    }

    /// The verb of a draw.
    #[inline]
    pub(crate) fn verb(&self, bits: u64) -> Verb {
        match &self.kind {
            TaskKind::Mix(mix) => mix.table.verb(bits),
            TaskKind::Sequence { verb, .. } => *verb,
            TaskKind::Load(_) | TaskKind::Rest | TaskKind::Window { .. } => Verb::Set,
            TaskKind::Replay(_) => Verb::Get,
            TaskKind::Delete { .. } => Verb::Delete,
        }
    }

    /// The verb that all requests of this phase are counted under that were never drawn, where there is only one.
    pub(crate) fn only_verb(&self) -> Option<Verb> {
        match &self.kind {
            TaskKind::Mix(mix) => mix.table.only(),
            _ => Some(self.verb(0)),
        }
    }

    /// Deals requests that were never drawn to the verbs of the phase, by their weights; `bits` are random, and decide
    /// about what does not divide.
    pub(crate) fn deal(&self, requests: u64, bits: u64, mut each: impl FnMut(Verb, u64)) {
        match &self.kind {
            TaskKind::Mix(mix) => mix.table.deal(requests, bits, each),
            _ => each(self.verb(0), requests),
        }
    }

    /// The record of key `place` of request `index` of client `number` of `clients`.
    #[inline]
    pub(super) fn choose(&self, stream: &Stream, index: u64, place: u64, number: u64, clients: u64) -> u64 {
        let mix = self.mix();
        let turn = if mix.sequential { index * clients + number } else { index };
        mix.chooser.choose(stream, turn * mix.stride + place)
    }

    /// Whether reads ask for plain records and nothing else.
    #[inline]
    pub(crate) fn reads_plainly(&self) -> bool {
        self.mix().reads_plainly
    }

    /// The key that is no record, where key `place` of read `index` of client `number` of `clients` is such a one. `ops` is the
    /// client's stream of operations, and `keys` that of keys.
    pub(super) fn unstored_key(&self, ops: &Stream, keys: &Stream, at: KeyAt) -> Option<u64> {
        let mix = self.mix();
        match mix.unstored?.wanted(ops, at.index, at.place) {
            Wanted::Record => None,
            Wanted::Fresh => Some(fresh_key(mix.fresh_salt, ops, at.index, at.place)),
            Wanted::Absent => {
                Some(ABSENT_FROM + self.choose(keys, at.index, at.place, at.client, at.clients))
            }
        }
    }

    /// Whether reads are spread over more than the plain records.
    #[inline]
    pub(crate) fn has_spaces(&self) -> bool {
        self.mix().table.has_spaces()
    }

    /// The space that a read looks at.
    #[inline]
    pub(crate) fn space(&self, bits: u64) -> Space {
        self.mix().table.space(bits)
    }

    /// Number of keys of a request of this verb.
    #[inline]
    pub(crate) fn keys_of(&self, verb: Verb) -> u16 {
        match (&self.kind, verb) {
            (_, Verb::Hget) => 1,
            (TaskKind::Mix(mix), Verb::Mset) => mix.multiset,
            (TaskKind::Mix(mix), verb) if verb.reads() => mix.multiget,
            _ => 1,
        }
    }

    /// How long after a miss the key is stored, in nanoseconds; `None` where it is not.
    #[inline]
    pub(crate) fn read_through(&self) -> Option<Nanos> {
        match &self.kind {
            TaskKind::Mix(mix) => mix.read_through,
            TaskKind::Replay(cursor) => cursor.read_through,
            TaskKind::Load(_)
            | TaskKind::Delete { .. }
            | TaskKind::Rest
            | TaskKind::Sequence { .. }
            | TaskKind::Window { .. } => None,
        }
    }

    /// What the reads of this phase ask beyond the value.
    #[inline]
    pub(super) fn meta(&self) -> MetaAsk {
        match &self.kind {
            TaskKind::Mix(mix) => mix.meta,
            _ => MetaAsk::default(),
        }
    }

    /// The key and size of the next request of a sequence, and the nanoseconds from it to its client's next one.
    pub(crate) fn step(&mut self) -> (SequenceStep, Nanos) {
        let Some(sequencer) = &mut self.sequencer else { unreachable!("only a sequence has steps") };
        (sequencer.step(), sequencer.gap_ns())
    }

    #[inline]
    fn mix(&self) -> &MixTask {
        match &self.kind {
            TaskKind::Mix(mix) => mix,
            _ => unreachable!("only a mix draws keys"),
        }
    }
}

/// The spaces whose records a load stores.
fn load_spaces(load: &Load) -> Vec<Space> {
    let wanted = |space: &Space| match space {
        Space::Plain => !load.no_plain,
        Space::Pieces => load.pieces,
        Space::Counters => load.counters,
        Space::Hashes => load.hashes,
        Space::Commands => load.commands,
    };
    Space::ALL.into_iter().filter(wanted).collect()
}
