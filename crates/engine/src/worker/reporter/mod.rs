//! The reporter of one worker: everything that the worker measures and counts, handed over in messages.

mod connections;
mod parts;
mod requests;
pub mod shards;
mod value_checks;

use std::sync::Arc;

use pummel_logic::cluster::shards::ShardOfSlot;
use pummel_logic::connection::inflight::CheckState;
use pummel_logic::connection::session::Answer;
use pummel_logic::plan::TransmitSampling;
use pummel_logic::plan::memory::INTERVALS_PER_WORKER;
use pummel_logic::protocol::Outcome;
use pummel_logic::rng::Stream;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_logic::workload::request::RequestMaker;
use pummel_logic::workload::rows::{AskedRows, Lateness};
use pummel_logic::workload::sequence::RequestLength;
use pummel_logic::workload::value::Version;
use pummel_logic::workload::verify::ledger::Ledger;
use pummel_measure::events::{Departure, Row};
use pummel_measure::flight::FlightAccount;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Bytes, WorkerTime};
use pummel_measure::phase_ends::{PhaseOutcome, PhaseSpan};
use pummel_measure::recorder::Tally;
use pummel_measure::trouble::Trouble;

use self::shards::ShardRequests;
use self::value_checks::ValueChecks;
use crate::backend::Backend;
use crate::worker::churn_account::ChurnAccount;
use crate::worker::departures::Departures;
use crate::worker::message_sender::MessageSender;
use crate::worker::messages::{LoadEnd, PhaseEnd, WorkerEnd, WorkerMessage};
use crate::worker::refusals::Refusals;
use crate::worker::stamping::Stamping;

/// The length of a turn, in nanoseconds, beyond which it counts as a stall.
const STALL_NS: Nanos = MILLISECOND;

/// Interval at which the progress of a phase that is not recorded is reported, in nanoseconds.
const PROGRESS_NS: Nanos = 100 * MILLISECOND;

/// Intervals that one worker has from the start: the worker writes to one, another is with the collecting thread, and
/// one is kept for the end of a phase.
pub const INTERVALS_AT_START: usize = 3;

/// Rows that are handed over together at most.
const ROWS: usize = 4096;

/// The report of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportMode {
    /// The phase is counted.
    Count,
    /// The phase is measured, in slices of this many nanoseconds.
    Record(Nanos),
}

/// The reporter of one worker.
#[derive(Debug)]
pub struct WorkerReporter {
    sender: MessageSender,
    mode: ReportMode,
    phase: usize,
    begin: Nanos,
    /// Time at which the worker began the phase, which may be after `begin`.
    begun_at: Nanos,
    end_at: Nanos,
    /// Time at which the last reply arrived.
    answered_at: Nanos,
    /// The slice that the worker writes to.
    interval: Box<Interval>,
    /// Emptied intervals. The last one is used first, since its memory was touched last.
    #[allow(clippy::vec_box, reason = "intervals go from hand to hand in their boxes")]
    stock: Vec<Box<Interval>>,
    /// Intervals of this worker, wherever they are.
    owned: usize,
    /// Whether the worker waits for an interval to come back where it has no spare one.
    waits: bool,
    next_tick: Nanos,
    /// The requests of a phase that is not recorded.
    tally: Tally,
    bytes: Bytes,
    ended: u64,
    /// The integral of requests in flight.
    flight: FlightAccount,
    /// Time of turns with work, in nanoseconds.
    busy_ns: Nanos,
    /// Whether this turn has work.
    busy: bool,
    abandoning: bool,
    /// Whether receive stamps are expected.
    stamped: bool,
    /// A receive stamp was impossible, or stamped requests were answered, since [`WorkerReporter::handle_stamps`].
    has_stamps: bool,
    /// A stamp was impossible.
    mend: bool,
    /// The requests that are stamped when they leave; `None` where none are.
    pub(super) stamping: Option<Box<Stamping>>,
    checks: ValueChecks,
    first_connection: u64,
    rows: Option<Vec<Row>>,
    /// Whether the phase is a part of the result, whose requests are handed over as rows.
    keeps_rows: bool,
    departures: Option<Box<Departures>>,
    /// The requests of each shard of a cluster by the time at which they were due.
    shards: Option<Box<ShardRequests>>,
    /// Whether every loss and every return of a connection is handed over.
    tells_connections: bool,
    /// The account of clients that come and go.
    churn_account: Option<Box<ChurnAccount>>,
    /// Every request is handed to the rows or to the churn account.
    watched: bool,
    /// Whether requests are counted by server.
    times_servers: bool,
    /// Index in the Plan of the server of the connection that the worker handles.
    server: u32,
    /// For every group, whether only successes are timed.
    successes_only: Box<[bool]>,
    /// Beginnings of the parts of a measured phase, in nanoseconds from its beginning; empty if it has no parts.
    parts: Box<[Nanos]>,
    end: WorkerEnd,
    /// The connections that servers took and then refused.
    pub(super) refusals: Refusals,
    /// Results of storing, where the phase stores records.
    load: Option<Box<LoadEnd>>,
    /// Records that the last phase stored, where it was a load.
    stored: u64,
    open: u64,
    unanswered: u64,
    /// Index of the server of the first request over UDP that was given up.
    late: Option<u32>,
}

/// Options of a worker's reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// Connections whose values are checked; 0 where no values are checked.
    pub checks: usize,
    /// Whether every request of the measured phase is handed over as a row.
    pub rows: bool,
    /// Whether every departure of a client in the measured phase is handed over.
    pub departures: bool,
    /// Whether every loss and every return of a connection is handed over.
    pub connections: bool,
    /// Present where clients come and go, with the sizes of their requests where those are known.
    pub churn_account: Option<Option<RequestLength>>,
    /// Whether connections are added as they are needed, and values are checked on them.
    pub checks_grow: bool,
    /// Number of the worker's first connection over all threads, from 1. If clients have windows, the worker's other
    /// connections have the following numbers.
    pub first_connection: u64,
    /// Whether the kernel's receive stamps are expected.
    pub stamped: bool,
    /// Whether the worker waits for an interval to come back where it has no spare one. A simulated clock may run ahead
    /// of the collecting thread; the worker then waits, so that slices do not depend on the machine.
    pub waits_for_intervals: bool,
    /// For every group, whether only the times of reads that found something and of stores that stored are recorded.
    pub successes_only: Vec<bool>,
    /// Whether requests are counted by server, since there are several.
    pub times_servers: bool,
    /// Beginnings of the parts of a measured phase, in nanoseconds from its beginning; empty if it has no parts.
    pub parts: Vec<Nanos>,
    /// The requests that are stamped when they leave, and the seed of the Plan; `None` where none are.
    pub sampling: Option<(TransmitSampling, u64)>,
    /// The seed of what this worker draws for itself.
    pub seed: u64,
    /// Whether the keys of requests that failed are kept.
    pub failed_keys: bool,
    /// The shards of the cluster whose requests are counted by time; `None` where the servers are no cluster.
    pub shards: Option<Arc<ShardOfSlot>>,
}

impl WorkerReporter {
    /// An empty reporter that hands over to `sender` and has `intervals` to write slices to.
    pub fn new(
        sender: MessageSender,
        intervals: [Box<Interval>; INTERVALS_AT_START],
        options: ReportOptions,
    ) -> WorkerReporter {
        let mut stock = Vec::with_capacity(INTERVALS_PER_WORKER);
        stock.extend(intervals);
        let Some(interval) = stock.pop() else { unreachable!("there are several") };
        WorkerReporter {
            sender,
            mode: ReportMode::Count,
            phase: 0,
            begin: 0,
            begun_at: 0,
            end_at: NEVER,
            answered_at: 0,
            interval,
            stock,
            owned: INTERVALS_AT_START,
            waits: options.waits_for_intervals,
            next_tick: NEVER,
            tally: Tally::default(),
            bytes: Bytes::default(),
            ended: 0,
            flight: FlightAccount::default(),
            busy_ns: 0,
            busy: false,
            abandoning: false,
            stamped: options.stamped,
            has_stamps: false,
            mend: false,
            stamping: options.sampling.map(|(sampling, seed)| Box::new(Stamping::new(sampling, seed))),
            checks: ValueChecks::new(options.checks, options.checks_grow),
            first_connection: options.first_connection,
            rows: options.rows.then(|| Vec::with_capacity(ROWS)),
            keeps_rows: true,
            departures: options.departures.then(Box::default),
            shards: options.shards.clone().map(|shards| Box::new(ShardRequests::new(shards))),
            tells_connections: options.connections,
            churn_account: options
                .churn_account
                .map(|churn_account| Box::new(ChurnAccount::new(churn_account))),
            watched: options.rows
                || options.churn_account.is_some()
                || options.sampling.is_some()
                || options.times_servers
                || options.shards.is_some()
                || !options.parts.is_empty(),
            times_servers: options.times_servers,
            server: 0,
            successes_only: options.successes_only.into(),
            parts: options.parts.into(),
            end: WorkerEnd { failed_keys: options.failed_keys.then(Box::default), ..WorkerEnd::default() },
            refusals: Refusals::new(Stream::from_seed(options.seed)),
            load: None,
            stored: 0,
            open: 0,
            unanswered: 0,
            late: None,
        }
    }

    /// Begins a phase, with its index in the Plan, whose time is from `begin` to `end`, and whose drain follows.
    pub fn begin_phase(&mut self, phase: usize, mode: ReportMode, begin: Nanos, end: Nanos) {
        self.phase = phase;
        self.mode = mode;
        self.begin = begin;
        self.busy_ns = 0;
        self.interval.restart(0, 0);
        self.end_at = end;
        self.answered_at = begin;
        self.flight.begin(begin);
        self.next_tick = match mode {
            ReportMode::Count => begin.saturating_add(PROGRESS_NS),
            ReportMode::Record(interval_ns) => self.tick_at(begin.saturating_add(interval_ns)),
        };
    }

    /// Notes whether the requests of the phase that begins are handed over as rows, where any are.
    pub fn note_rows(&mut self, keeps_rows: bool) {
        self.keeps_rows = keeps_rows;
    }

    /// Lets the phase under way end at `end`, which is not later than it was.
    pub fn end_phase_at(&mut self, end: Nanos) {
        self.end_at = end;
        self.next_tick = match self.mode {
            ReportMode::Count => self.next_tick,
            ReportMode::Record(_) => self.tick_at(self.next_tick),
        };
    }

    /// Notes whether the phase that begins stores records.
    pub fn note_loads(&mut self, loads: bool) {
        self.load = loads.then(Box::default);
    }

    /// Number of records that the last phase stored; 0 where it was no load.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Notes that the worker begins the phase at `now`.
    pub fn note_begun(&mut self, now: Nanos) {
        self.begun_at = now;
    }

    /// Notes how many connections are open at the beginning of a phase, and on how many of them the server has sent nothing
    /// yet.
    pub fn note_open(&mut self, open: u64, unanswered: u64) {
        (self.open, self.unanswered) = (open, unanswered);
    }

    /// Takes what the maker counted of redirects and of requests that were sent again. Only those of a measured phase are kept.
    pub fn note_redirects(&mut self, maker: &mut RequestMaker) {
        let is_recorded = matches!(self.mode, ReportMode::Record(_));
        let counters = &mut self.interval.counters;
        if let Some(view) = maker.cluster_mut() {
            let counts = std::mem::take(&mut view.counts);
            if is_recorded {
                counters.redirects.add(&counts);
            }
        }
        if let Some(retries) = maker.retries_mut() {
            let counts = std::mem::take(&mut retries.counts);
            if is_recorded {
                counters.retry.add(&counts);
            }
        }
    }

    /// Time at which [`WorkerReporter::tick`] next hands something over.
    pub fn next_tick(&self) -> Nanos {
        self.next_tick
    }

    /// Hands over the progress or the slice that is over at `now`, if its tick has come. Returns whether it has.
    #[inline]
    pub fn tick(&mut self, now: Nanos) -> bool {
        if now < self.next_tick {
            return false;
        }
        match self.mode {
            ReportMode::Count => {
                // Progress that is not sent at this tick is part of the next message.
                if self.sender.offer(WorkerMessage::Progress { phase: self.phase, ended: self.ended }) {
                    self.ended = 0;
                }
                self.next_tick = now + PROGRESS_NS;
            }
            ReportMode::Record(interval_ns) => {
                // A slice ends at its tick even when the worker is late for it.
                self.flight.close(now);
                let index = (now.min(self.end_at - 1) - self.begin) / interval_ns;
                self.next_tick =
                    self.tick_at(self.begin.saturating_add((index + 1).saturating_mul(interval_ns)));
                self.hand_over_if_spare(index * interval_ns, index);
                self.hand_over_rows();
                self.hand_over_departures();
            }
        }
        true
    }

    /// Ends the phase at `now`, and hands over its last slice and its figures.
    pub fn end_phase(&mut self, now: Nanos, outcome: PhaseOutcome) {
        if let ReportMode::Record(_) = self.mode {
            self.hand_over_last(now.saturating_sub(self.begin));
            self.hand_over_rows();
            self.hand_over_departures();
        }
        let load = self.load.take().map(|mut load| {
            load.counts.merge(&self.tally.all());
            load.sent_bytes += self.bytes.sent;
            load
        });
        self.stored = load.as_ref().map_or(0, |load| load.counts.loaded());
        let elapsed_ns = now.saturating_sub(self.begin);
        self.sender.say(WorkerMessage::Phase(Box::new(PhaseEnd {
            worker: self.sender.worker,
            phase: self.phase,
            tally: std::mem::take(&mut self.tally),
            bytes: std::mem::take(&mut self.bytes),
            span: PhaseSpan {
                begin: self.begin,
                end: self.end_at,
                elapsed_ns,
                time: WorkerTime { busy_ns: self.busy_ns.min(elapsed_ns), wall_ns: elapsed_ns },
            },
            late_ns: self.begun_at.saturating_sub(self.begin),
            answered_ns: self.answered_at.saturating_sub(self.begin),
            open: self.open,
            unanswered: self.unanswered,
            flight: self.flight.finish(now),
            load,
            outcome,
        })));
        self.mode = ReportMode::Count;
        self.next_tick = NEVER;
    }

    /// Sends a message that is never dropped.
    pub fn say(&self, note: WorkerMessage) {
        self.sender.say(note);
    }

    /// Sends a message, or counts it as dropped where too many messages wait to be received.
    fn offer(&mut self, note: WorkerMessage) {
        self.end.messages_dropped += u64::from(!self.sender.offer(note));
    }

    /// Records which requests of a trace were asked, and how late; `None` without a trace.
    pub fn note_asked(&mut self, lateness: Option<Lateness>, asked: Option<AskedRows>) {
        self.end.lateness = lateness;
        self.end.asked_rows = asked.map(Box::new);
    }

    /// Ends the run: hands over what the worker knows at its end, with the error that ended it early, if there is one.
    pub fn finish(mut self, failure: Option<std::io::Error>) {
        self.end.connections.churn =
            self.churn_account.take().map(|churn_account| Box::new(churn_account.churn));
        self.end.shards = self.shards.take().map(|mut shards| shards.take()).unwrap_or_default();
        self.end.failure = failure;
        self.end.worker = self.sender.worker;
        let late = self.late.map(|server| (server, Trouble::TimedOut));
        self.end.trouble = self.end.trouble.take().or(late);
        self.sender.say(WorkerMessage::Done(Box::new(self.end)));
    }

    /// The time of the next tick, if it is before the end of the phase. The last slice has no tick, since the drain
    /// belongs to it.
    fn tick_at(&self, at: Nanos) -> Nanos {
        if at < self.end_at { at } else { NEVER }
    }

    /// Hands over the slice that ended at its tick, if there is a spare interval beside the one that the end of the
    /// phase needs. Otherwise the worker goes on writing to its interval.
    fn hand_over_if_spare(&mut self, end_ns: Nanos, next: u64) {
        self.stock.extend(self.sender.spares.try_iter());
        while self.stock.len() < 2 {
            let Some(spare) = self.another() else { return };
            self.stock.push(spare);
        }
        if let Some(spare) = self.stock.pop() {
            self.hand_over(spare, end_ns, next);
        }
    }

    /// Makes another interval, or waits for one to come back, within the limits of the worker.
    #[cold]
    fn another(&mut self) -> Option<Box<Interval>> {
        if self.owned == INTERVALS_PER_WORKER {
            return if self.waits { self.sender.spares.recv().ok() } else { None };
        }
        self.owned += 1;
        Some(Box::new(self.interval.another()))
    }

    /// Hands over the last slice of a phase. The interval that is kept for that is missing only while those of the
    /// phase before are not back, which does not last, since all workers have ended that phase.
    fn hand_over_last(&mut self, end_ns: Nanos) {
        if let (Some(stamping), Some(times)) = (&mut self.stamping, &mut self.interval.side_times.transmit) {
            stamping.give_up(times);
        }
        let spare = self.stock.pop().or_else(|| self.sender.spares.recv().ok());
        if let Some(spare) = spare {
            // No later slice of this phase waits for this worker.
            self.hand_over(spare, end_ns, u64::MAX);
        }
    }

    fn hand_over(&mut self, mut spare: Box<Interval>, end_ns: Nanos, next: u64) {
        spare.restart(next, end_ns);
        let mut full = std::mem::replace(&mut self.interval, spare);
        full.end_ns = end_ns;
        if let Some(load) = &mut self.load {
            load.counts.merge(&full.counts());
            load.sent_bytes += full.counters.bytes.sent;
        }
        let (phase, worker) = (self.phase, self.sender.worker);
        self.sender.say(WorkerMessage::Slice { phase, interval: full, worker, next });
    }

    /// Whether [`WorkerReporter::handle_stamps`] is to be called in this turn.
    #[inline]
    pub fn has_stamps_to_handle(&mut self) -> bool {
        std::mem::take(&mut self.has_stamps)
    }

    /// Has the clocks compared again after an impossible stamp, and records when the stamped requests left whose replies
    /// were read in this turn.
    #[cold]
    pub fn handle_stamps(&mut self, backend: &mut dyn Backend) {
        if std::mem::take(&mut self.mend) {
            backend.mend_stamps();
        }
        let Some(stamping) = &mut self.stamping else { return };
        // A transmit stamp that cannot be true is no better than a receive stamp that cannot be.
        let times = self.interval.side_times.transmit.get_or_insert_default();
        if stamping.record(backend, times) {
            backend.mend_stamps();
        }
    }

    /// The part of a turn before its wait is over: it began at `from`.
    #[inline]
    pub fn worked(&mut self, from: Nanos, to: Nanos) {
        if !std::mem::take(&mut self.busy) {
            return;
        }
        let spent = to.saturating_sub(from);
        self.busy_ns += spent;
        let turns = &mut self.interval.counters.turns;
        turns.turns += 1;
        turns.busy_ns += spent;
        if spent > STALL_NS {
            turns.stalls += 1;
            turns.stalled_ns += spent;
        }
    }

    /// A wait until `until` ended at `now`. When it is much later than that, another thread had the CPU.
    #[inline]
    pub fn waited(&mut self, until: Nanos, now: Nanos) {
        let over = now.saturating_sub(until);
        if over > STALL_NS {
            self.interval.counters.turns.stalls += 1;
            self.interval.counters.turns.stalled_ns += over;
        }
    }

    /// Hands over the gathered rows, or counts them as dropped where too many wait to be received.
    fn hand_over_rows(&mut self) {
        let Some(rows) = self.rows.as_mut().filter(|rows| !rows.is_empty()) else { return };
        let count = rows.len() as u64;
        let list = match rows.len() {
            ROWS => std::mem::replace(rows, Vec::with_capacity(ROWS)),
            _ => {
                // A short list is copied, so that it takes no more memory than it needs.
                let few = rows.to_vec();
                rows.clear();
                few
            }
        };
        if !self.sender.offer(WorkerMessage::Rows(list)) {
            self.end.rows_dropped += count;
        }
    }

    fn hand_over_departures(&mut self) {
        let gone = self.departures.as_mut().map(|departures| departures.take());
        if let Some(gone) = gone.filter(|gone| !gone.is_empty()) {
            self.offer_departures(gone);
        }
    }

    fn offer_departures(&mut self, gone: Vec<Departure>) {
        let count = gone.len() as u64;
        if !self.sender.offer(WorkerMessage::Departures(gone)) {
            self.end.messages_dropped += count;
        }
    }

    /// Makes room for the checks of values on `connections` connections.
    pub fn make_room(&mut self, connections: usize) {
        self.checks.make_room(connections);
    }

    /// Begins the check of a value of `size` bytes on the connection in `slot`. `key` is the index of its key, and
    /// `check_state` belongs to the read that asked for it.
    pub fn begin_check(
        &mut self,
        slot: usize,
        key: u64,
        check_state: CheckState,
        size: u64,
        maker: &RequestMaker,
    ) {
        self.checks.begin(slot, key, check_state, size, maker);
    }

    /// Checks the next bytes of the value on the connection in `slot`.
    #[inline]
    pub fn check(&mut self, slot: usize, bytes: &[u8], maker: &RequestMaker) {
        self.checks.check(slot, bytes, maker);
    }

    /// Ends the check on the connection in `slot`, if there is one. `is_stale` says whether a version of a value was
    /// certainly overwritten when the read of it was sent.
    pub fn end_check(
        &mut self,
        slot: usize,
        maker: &RequestMaker,
        is_stale: impl Fn(CheckState, u64, Version) -> bool,
    ) {
        self.checks.end(slot, maker, is_stale, &mut self.end.verify);
    }

    /// Takes in the answer to the read of a record that is read back over the connection in `slot`, and compares the record with its
    /// newest acknowledged write.
    pub fn end_audited(&mut self, slot: usize, answer: &Answer<'_>, maker: &RequestMaker, ledger: &Ledger) {
        let version = self.checks.end_audited(slot, maker, &mut self.end.verify);
        let found = match answer.outcome {
            Outcome::Miss => None,
            Outcome::Hit if version.is_some() => version,
            _ => return,
        };
        if let Some(state) = ledger.judge(answer.ticket.key, found) {
            let shard = self.shards.as_ref().map_or(0, |shards| shards.shard_of(answer.ticket.place));
            self.end.audit.note(state, shard);
        }
    }

    /// Drops the check on the connection in `slot`, if there is one, since its value has no end.
    pub fn drop_check(&mut self, slot: usize) {
        self.checks.drop_check(slot);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use pummel_logic::connection::inflight::Ticket;
    use pummel_logic::connection::session::Stamp;
    use pummel_logic::protocol::Verb;

    use super::*;
    use crate::worker::message_sender::{QueuedMessage, ROWS_WAITING_MAX};

    /// A reporter of one group, the receiver of its messages, and the sender of its emptied intervals.
    fn reporter(rows: bool) -> (WorkerReporter, Receiver<QueuedMessage>, Sender<Box<Interval>>) {
        let ((sender, messages), (spare, spares)) = (channel(), channel());
        let options = ReportOptions {
            failed_keys: false,
            parts: Vec::new(),
            checks: 0,
            rows,
            departures: false,
            connections: false,
            churn_account: None,
            checks_grow: false,
            first_connection: 1,
            stamped: false,
            waits_for_intervals: false,
            successes_only: vec![false],
            times_servers: false,
            sampling: None,
            seed: 7,
            shards: None,
        };
        let intervals = std::array::from_fn(|_| Box::new(Interval::new([[Verb::Get]]).of_worker(3)));
        (WorkerReporter::new(MessageSender::new(3, sender, spares), intervals, options), messages, spare)
    }

    /// The slices that a reporter has handed over.
    #[allow(clippy::vec_box, reason = "intervals go from hand to hand in their boxes")]
    fn slices(messages: &Receiver<QueuedMessage>) -> Vec<Box<Interval>> {
        let slice = |queued: QueuedMessage| match queued.message {
            WorkerMessage::Slice { interval, .. } => Some(interval),
            _ => None,
        };
        messages.try_iter().filter_map(slice).collect()
    }

    #[test]
    fn a_worker_without_a_spare_interval_goes_on_in_the_one_that_it_has() {
        let (mut reporter, messages, spare) = reporter(false);
        for phase in 0..3 {
            reporter.begin_phase(phase, ReportMode::Record(10), 0, 1_000);
            for tick in 1..100 {
                reporter.tick(tick * 10);
            }
            reporter.end_phase(1_007, PhaseOutcome::default());
            let slices = slices(&messages);
            assert_eq!(
                slices.len(),
                INTERVALS_PER_WORKER - 1,
                "one is kept for the end, and one is written to"
            );
            let edges: Vec<(Nanos, Nanos)> =
                slices.iter().map(|slice| (slice.start_ns, slice.end_ns)).collect();
            assert_eq!(edges[..2], [(0, 10), (10, 20)]);
            assert!(edges.windows(2).all(|pair| pair[0].1 == pair[1].0), "no time is missing: {edges:?}");
            assert_eq!(edges.last().map(|last| last.1), Some(1_007));
            for slice in slices {
                assert_eq!(slice.worker, 3);
                spare.send(slice).unwrap();
            }
        }
    }

    #[test]
    fn intervals_that_come_back_are_gone_on_with_and_no_other_is_made() {
        let (mut reporter, messages, spare) = reporter(false);
        let mut places = std::collections::BTreeSet::new();
        reporter.begin_phase(0, ReportMode::Record(10), 0, 10_000);
        for tick in 1..1_000 {
            reporter.tick(tick * 10);
            let slices = slices(&messages);
            assert_eq!(slices.len(), 1, "each slice has its interval");
            for slice in slices {
                places.insert(std::ptr::from_ref(&*slice) as usize);
                spare.send(slice).unwrap();
            }
        }
        assert!(places.len() <= 2, "the memory that was used last is used first: {}", places.len());
    }

    #[test]
    fn rows_that_are_not_taken_are_dropped_and_counted() {
        let (mut reporter, messages, _spare) = reporter(true);
        reporter.begin_phase(0, ReportMode::Record(NEVER / 2), 0, NEVER);
        let ticket = Ticket::of(Verb::Get);
        let answer = Answer {
            mark: 0,
            ticket: &ticket,
            outcome: Outcome::Hit,
            sent: 1,
            arrived: 2,
            read: 3,
            hits: 1,
            stamp: Stamp::Kernel,
        };
        (0..ROWS_WAITING_MAX + 3 * ROWS + 5).for_each(|_| reporter.answer(Some(0), 0, 0, &answer, &[]));
        reporter.end_phase(1, PhaseOutcome::default());
        let dropped = reporter.end.rows_dropped;
        assert_eq!(dropped, 3 * ROWS as u64 + 5);
        let rows = |queued: QueuedMessage| {
            if let WorkerMessage::Rows(rows) = queued.message { rows.len() } else { 0 }
        };
        assert_eq!(messages.try_iter().map(rows).sum::<usize>(), ROWS_WAITING_MAX);
    }
}
