//! The work of a phase, made ready for one worker's clients.

use std::sync::Arc;

use crate::plan::share::delete_records;
use crate::plan::{Fill, Fills, Mix, TracePace, Work};
use crate::protocol::{MetaAsk, Verb};
use crate::rng::{Stream, below, mix, unit};
use crate::time::{Nanos, from_seconds};
use crate::workload::changing::{ChangingTask, DrawnFrom, PhaseChanges};
use crate::workload::churn::AskedAt;
use crate::workload::drawn_records::{DrawnRecords, KeyAt};
use crate::workload::events::{Loss, losses};
use crate::workload::key::{Space, Spaces};
use crate::workload::mix::load_spaces;
use crate::workload::mix_task::{DELAY_MAX_S, MODIFY_DRAW, MixTask, SCAN_DRAW};
use crate::workload::popularity::Newest;
use crate::workload::rows::Rows;
use crate::workload::sequence::{SequenceStep, Sequencer};
use crate::workload::shuffle::Shuffle;
use crate::workload::trace::{RecordedKeys, TraceCursor, TraceShare};
use crate::workload::unstored::{ABSENT_FROM, Wanted, fresh_key, may_be_fresh, own_key};
use crate::workload::verify::ledger::Ledger;

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
    /// The requests of a trace that come while the run goes on.
    rows: Option<Box<Rows>>,
    /// The keys of the trace, which deletions delete where there are some.
    recorded: Option<RecordedKeys>,
    /// Keys and sizes in the order of asking, where they are counted and not chosen.
    pub(super) sequencer: Option<Box<Sequencer>>,
    /// A number that no other run has, and the number of phases that began.
    run: u64,
    phases: u64,
    /// Records that are lost at moments of this phase.
    losses: Vec<Loss>,
    /// The acknowledged writes of all clients, once they are to be read back.
    audited: Arc<Ledger>,
}

/// The work of the clients in a phase.
#[derive(Debug)]
pub(super) enum TaskKind {
    /// Nothing: connections are opened.
    Rest,
    /// The spaces whose records are stored, one space after the other; the clients take turns.
    Load(Vec<Space>),
    /// Requests are drawn from a mix.
    Mix(Box<MixTask>),
    /// Requests are drawn from a mix that changes while the phase goes on.
    Changing(Box<ChangingTask>),
    /// The sequencer chooses keys and sizes.
    Sequence { verb: Verb, noreply: bool },
    /// Every client works on its window; with `preset`, it sets every object once and does nothing else.
    Window { preset: bool },
    /// The rows of a trace are asked.
    Replay(TraceCursor),
    /// The rows of a trace are asked, each by its own client, while they are read.
    Rows,
    /// The records at the first `records` places of `order` are deleted; with `recorded`, these keys of the trace.
    Delete { order: Shuffle, records: u64, recorded: Option<RecordedKeys> },
    /// The records with these acknowledged writes are read, one after the other.
    Audit(Arc<Ledger>),
}

impl Task {
    /// A task without work, until a phase begins, of the run with this number, which no other run has.
    pub(super) fn new(
        run: u64,
        trace: Option<TraceShare>,
        recorded: Option<RecordedKeys>,
        rows: Option<Rows>,
        sequencer: Option<Sequencer>,
    ) -> Task {
        Task {
            kind: TaskKind::Rest,
            asks_meta: false,
            trace,
            rows: rows.map(Box::new),
            recorded,
            sequencer: sequencer.map(Box::new),
            run,
            phases: 0,
            losses: Vec::new(),
            audited: Arc::default(),
        }
    }

    /// Makes the work of the next phase ready, on these records. `seed` decides what the phase leaves to
    /// chance for all workers alike. A replay begins with the first row, but behind a deletion, which divides it.
    ///
    /// # Panics
    /// Panics when the work is a replay and there is no trace.
    pub(super) fn begin(&mut self, work: &Work, seed: u64, records: DrawnRecords) {
        if let (TaskKind::Replay(cursor), Some(share)) = (&self.kind, &mut self.trace) {
            share.divided_at = cursor.next;
        }
        let is_divided = matches!(self.kind, TaskKind::Delete { .. });
        self.phases += 1;
        self.losses.clear();
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
            Work::Trace(replay) => {
                let read_through = (replay.fills == Fills::Own).then_some(replay.fill_delay_ns);
                let is_fast = replay.pace == TracePace::Fast;
                self.rows_mut().restart(is_fast, read_through, replay.fill_delay_s.clone());
                TaskKind::Rows
            }
            Work::Delete(delete) => {
                let recorded = self.recorded.clone();
                let records = recorded.as_ref().map_or(records.count, RecordedKeys::count);
                let order = Shuffle::new(mix(&[seed, DELETED]), records.max(1));
                TaskKind::Delete { order, records: delete_records(delete, records), recorded }
            }
            Work::Pause(_) => TaskKind::Rest,
            Work::Audit(_) => TaskKind::Audit(Arc::clone(&self.audited)),
        };
        self.asks_meta = self.meta() != MetaAsk::default();
    }

    /// Makes the requests of the phase that has begun, whose work is `mix`, follow `changes`. `seed` decides the random
    /// choices that are the same for all workers.
    pub(super) fn begin_changes(
        &mut self,
        mix: &Mix,
        changes: &PhaseChanges<'_>,
        seed: u64,
        records: DrawnRecords,
    ) {
        self.losses = losses(changes.events);
        let fresh_salt = self::mix(&[self.run, self.phases]);
        let from = DrawnFrom { records, seed, run: self.run, fresh_salt };
        if let Some(changing) = ChangingTask::of(mix, changes, from) {
            self.kind = TaskKind::Changing(Box::new(changing));
        }
    }

    /// Moves to the moment at which a request is due, in a phase whose requests change.
    #[inline]
    pub(crate) fn turn_to(&mut self, at: AskedAt) {
        if let TaskKind::Changing(changing) = &mut self.kind {
            changing.turn_to(at);
        }
    }

    /// Keeps the acknowledged writes of all clients for the phase that reads them back.
    pub(super) fn keep_audited(&mut self, ledger: Arc<Ledger>) {
        self.audited = ledger;
    }

    /// The acknowledged writes that this phase reads back; `None` in other phases.
    #[inline]
    pub(crate) fn audited(&self) -> Option<&Ledger> {
        match &self.kind {
            TaskKind::Audit(ledger) => Some(ledger),
            _ => None,
        }
    }

    /// Whether requests of this phase are chosen from what is there to be asked: rows of a trace, or records that were written.
    #[inline]
    pub(crate) fn is_chosen(&self) -> bool {
        matches!(self.kind, TaskKind::Replay(_) | TaskKind::Rows | TaskKind::Audit(_))
    }

    /// Whether this phase replays a trace, so that the index of a key is the number of a row.
    #[inline]
    pub(crate) fn is_replaying(&self) -> bool {
        matches!(self.kind, TaskKind::Replay(_) | TaskKind::Rows)
    }

    /// Whether this phase replays a trace that is read while the run goes on.
    #[inline]
    pub(crate) fn is_rows(&self) -> bool {
        matches!(self.kind, TaskKind::Rows)
    }

    /// Whether a phase of the run replays such a trace.
    pub(super) fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// The requests of such a trace.
    ///
    /// # Panics
    /// Panics when the plan replays none.
    pub(crate) fn rows(&self) -> &Rows {
        self.rows.as_ref().expect("the engine takes no replay without its trace")
    }

    /// The requests of such a trace, to add and to take.
    ///
    /// # Panics
    /// Panics when the plan replays none.
    pub(crate) fn rows_mut(&mut self) -> &mut Rows {
        self.rows.as_mut().expect("the engine takes no replay without its trace")
    }

    /// Whether no request is left for any client.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(&self.kind, TaskKind::Replay(cursor) if cursor.is_exhausted())
    }

    /// Number of rows of the worker's part of a trace that wait to be asked; `None` where nothing is replayed.
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
        (mix.reads_singly && verb.reads() && verb != Verb::Hget).then_some(verb)
    }

    /// The verb of a draw.
    #[inline]
    pub(crate) fn verb(&self, bits: u64) -> Verb {
        match &self.kind {
            TaskKind::Mix(mix) => mix.table.verb(bits),
            TaskKind::Changing(changing) => changing.mix().table.verb(bits),
            TaskKind::Sequence { verb, .. } => *verb,
            TaskKind::Load(_) | TaskKind::Rest | TaskKind::Window { .. } => Verb::Set,
            TaskKind::Replay(_) | TaskKind::Rows | TaskKind::Audit(_) => Verb::Get,
            TaskKind::Delete { .. } => Verb::Delete,
        }
    }

    /// The verb of request `index` of a client, by its stream of operations or in turns.
    #[inline]
    pub(crate) fn verb_of(&self, index: u64, ops: &Stream) -> Verb {
        match self.drawn_from().and_then(|mix| mix.table.in_turn(index)) {
            Some(verb) => verb,
            None => self.verb(ops.draw(index)),
        }
    }

    /// Whether clients ask their operations in turns.
    pub(crate) fn takes_turns(&self) -> bool {
        self.drawn_from().is_some_and(|mix| mix.table.in_turn(0).is_some())
    }

    /// The verb that all requests of this phase are counted under that were never drawn, where there is only one.
    pub(crate) fn only_verb(&self) -> Option<Verb> {
        self.drawn_from().map_or_else(|| Some(self.verb(0)), |mix| mix.table.only())
    }

    /// Deals requests that were never drawn to the verbs of the phase, by their weights; `bits` are random, and decide
    /// about what does not divide.
    pub(crate) fn deal(&self, requests: u64, bits: u64, mut each: impl FnMut(Verb, u64)) {
        match self.drawn_from() {
            Some(mix) => mix.table.deal(requests, bits, each),
            None => each(self.verb(0), requests),
        }
    }

    /// Records that are lost at moments of this phase.
    pub(super) fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The index of the key that a plain record has at a moment.
    pub(super) fn key_at(&mut self, record: u64, at: AskedAt) -> u64 {
        let TaskKind::Changing(changing) = &mut self.kind else { return record };
        changing.turn_to(at);
        changing.key_of(record)
    }

    /// The index of the key that a request asks for in a space. `ops` is the client's stream of operations, and `keys` that of
    /// keys.
    #[inline]
    pub(super) fn key(
        &self,
        spaces: Spaces,
        space: Space,
        (ops, keys): (&Stream, &Stream),
        at: KeyAt,
    ) -> u64 {
        match &self.kind {
            TaskKind::Mix(mix) => spaces.index(space, mix.choose((ops, keys), at)),
            TaskKind::Changing(changing) => changing.key(spaces, space, (ops, keys), at),
            _ => unreachable!("only a mix draws keys"),
        }
    }

    /// Whether reads ask for plain records and nothing else.
    #[inline]
    pub(crate) fn reads_plainly(&self) -> bool {
        self.mix().reads_plainly
    }

    /// The fresh, absent or hot key at `place` of read `index` of client `number` of `clients`, if it is one of these.
    /// `ops` is the client's stream of operations, and `keys` that of keys.
    pub(super) fn unstored_key(&self, ops: &Stream, keys: &Stream, at: KeyAt) -> Option<u64> {
        if let TaskKind::Changing(changing) = &self.kind
            && let Some(key) = changing.hot_key(ops, at)
        {
            return Some(key);
        }
        let mix = self.mix();
        match mix.unstored?.wanted(ops, at.index, at.place) {
            Wanted::Record => None,
            Wanted::Fresh => Some(fresh_key(mix.fresh_salt, ops, at.index, at.place)),
            Wanted::Absent => Some(ABSENT_FROM + mix.choose((ops, keys), at)),
        }
    }

    /// Whether the key that request `index` reads is a fresh one, by its client's stream of operations.
    pub(super) fn is_fresh(&self, key: u64, ops: &Stream, index: u64) -> bool {
        let mix = self.mix();
        let Some(unstored) = mix.unstored.filter(|_| may_be_fresh(key)) else { return false };
        let is_at = |place| {
            unstored.wanted(ops, index, place) == Wanted::Fresh
                && fresh_key(mix.fresh_salt, ops, index, place) == key
        };
        (0..mix.multiget.into()).any(is_at)
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

    /// Number of keys of request `index` of this verb; `ops` is its client's stream of operations.
    #[inline]
    pub(crate) fn keys_of(&self, verb: Verb, ops: &Stream, index: u64) -> u16 {
        let Some(mix) = self.drawn_from() else { return 1 };
        match verb {
            Verb::Hget => 1,
            Verb::Mset => mix.multiset,
            verb if verb.reads() && mix.scans => {
                1 + below(ops.draw_sub(index, SCAN_DRAW), mix.multiget.into()) as u16
            }
            verb if verb.reads() => mix.multiget,
            _ => 1,
        }
    }

    /// Whether adds store records of their own.
    #[inline]
    pub(crate) fn inserts(&self) -> bool {
        self.drawn_from().is_some_and(|mix| mix.inserts)
    }

    /// Whether get `index` is followed by a store of its key; `ops` is its client's stream of operations.
    #[inline]
    pub(crate) fn modifies(&self, ops: &Stream, index: u64) -> bool {
        let share = self.drawn_from().map_or(0.0, |mix| mix.read_modify_write);
        share > 0.0 && unit(ops.draw_sub(index, MODIFY_DRAW)) < share
    }

    /// Whether keys are chosen by [`Task::newest_key`].
    #[inline]
    pub(crate) fn is_latest(&self) -> bool {
        self.mix().latest.is_some()
    }

    /// The key of request `index` of a client that has stored `own` records itself, where the newest records are the most popular.
    pub(crate) fn newest_key(&self, keys: &Stream, index: u64, client: u64, own: u64) -> u64 {
        let Some(latest) = &self.mix().latest else {
            unreachable!("only a popularity of the newest asks for them")
        };
        match latest.choose(keys, index, own) {
            Newest::Loaded(record) => record,
            Newest::Own(number) => self.own_key(client, number),
        }
    }

    /// The key of record `number` of those that a client stores itself.
    pub(crate) fn own_key(&self, client: u64, number: u64) -> u64 {
        own_key(self.run, client, number)
    }

    /// The record that is read at a place of a scan which begins at this one; behind the last record follows the first one.
    pub(super) fn scanned(&self, first: u64, place: u64, records: u64) -> u64 {
        (first + place) % records
    }

    /// Whether reads ask for records that follow each other.
    #[inline]
    pub(crate) fn scans(&self) -> bool {
        self.mix().scans
    }

    /// Time from a miss until the key is stored, in nanoseconds; `None` where it is not.
    #[inline]
    pub(crate) fn read_through(&self) -> Option<Nanos> {
        match &self.kind {
            TaskKind::Replay(cursor) => cursor.read_through,
            TaskKind::Rows => self.rows().read_through,
            _ => self.drawn_from()?.read_through,
        }
    }

    /// Whether writes ask for no reply.
    #[inline]
    pub(super) fn asks_no_reply(&self) -> bool {
        self.drawn_from().is_some_and(|mix| mix.noreply)
    }

    /// The way in which a missed key is stored.
    pub(crate) fn fill(&self) -> Fill {
        self.drawn_from().map_or(Fill::Set, |mix| mix.fill)
    }

    /// Time from a miss until the key is stored that 64 random bits stand for, in nanoseconds; `None` where it is not.
    pub(crate) fn fill_delay(&self, bits: u64) -> Option<Nanos> {
        let mean = self.read_through()?;
        let delay = match &self.kind {
            TaskKind::Rows => self.rows().fill_delay_s.as_ref(),
            _ => self.drawn_from().and_then(|mix| mix.fill_delay_s.as_ref()),
        };
        match delay {
            Some(delay) => Some(from_seconds(delay.draw(bits).clamp(0.0, DELAY_MAX_S))),
            None => Some(mean),
        }
    }

    /// The questions that reads of this phase ask beside the value.
    #[inline]
    pub(super) fn meta(&self) -> MetaAsk {
        self.drawn_from().map_or_else(MetaAsk::default, |mix| mix.meta)
    }

    /// The key and size of the next request of a sequence, and the nanoseconds from it to its client's next one.
    pub(crate) fn step(&mut self) -> (SequenceStep, Nanos) {
        let Some(sequencer) = &mut self.sequencer else { unreachable!("only a sequence has steps") };
        (sequencer.step(), sequencer.gap_ns())
    }

    #[inline(always)]
    fn mix(&self) -> &MixTask {
        let Some(mix) = self.drawn_from() else { unreachable!("only a mix draws keys") };
        mix
    }

    /// The mix that requests are drawn from at this moment; `None` where the phase draws from none.
    #[inline(always)]
    fn drawn_from(&self) -> Option<&MixTask> {
        match &self.kind {
            TaskKind::Mix(mix) => Some(mix),
            TaskKind::Changing(changing) => Some(changing.mix()),
            _ => None,
        }
    }
}
