//! Everything that one worker writes down while it works.

use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::measure::churn::Churn;
use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Bytes, WorkerTime};
use pummel_logic::measure::recorder::{Sample, Tally};
use pummel_logic::plan::memory::INTERVALS_PER_WORKER;
use pummel_logic::protocol::udp;
use pummel_logic::protocol::{Malformed, Outcome, Verb};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_logic::unsent::Unsent;
use pummel_logic::workload::key::KEY_MAX_BYTES;
use pummel_logic::workload::request::{CheckState, RequestMaker};
use pummel_logic::workload::sequence::Weight;
use pummel_logic::workload::value::Version;
use pummel_logic::workload::verify::check::{Check, Verdict};

use crate::backend::{Reason, TlsHandshake};
use crate::worker::churn_account::ChurnAccount;
use crate::worker::departures::Departures;
use crate::worker::messages::{
    ConnectionEvent, Departure, Line, LoadEnd, Messages, PhaseEnd, PhaseFate, Row, Trouble, WorkerEnd,
    WorkerMessage,
};

/// A turn that takes longer is a stall.
const STALL_NS: Nanos = MILLISECOND;

/// How often a phase that is not recorded says how far it is.
const PROGRESS_NS: Nanos = 100 * MILLISECOND;

/// Intervals that one worker has from the start: it writes to one, another is on its way to the watching thread and back,
/// and one is kept for the end of a phase.
pub const INTERVALS_AT_START: usize = 3;

/// Rows that are handed over together.
const ROWS: usize = 4096;

/// Different messages of servers that are kept, and bytes of each.
const MESSAGES: (usize, usize) = (8, 200);

/// How often the same message of servers is passed on at once.
const COMPLAINTS: u64 = 10;

/// First bytes of a malformed reply that are kept.
const MALFORMED_BYTES: usize = 40;

/// How a phase is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Counted.
    Count,
    /// Measured, in slices of this length.
    Record(Nanos),
}

/// What one worker writes down.
#[derive(Debug)]
pub struct WorkerReporter {
    line: Line,
    mode: Mode,
    phase: usize,
    begin: Nanos,
    /// When the phase was really begun.
    begun_at: Nanos,
    end_at: Nanos,
    /// When the last answer arrived.
    answered_at: Nanos,
    /// The slice that is written to.
    interval: Box<Interval>,
    /// Emptied intervals, the last one used first, since its memory was touched last.
    #[allow(clippy::vec_box, reason = "intervals go from hand to hand in their boxes")]
    stock: Vec<Box<Interval>>,
    /// Intervals that are its memory, wherever they are.
    owned: usize,
    /// Whether it waits for an interval to come back where there is none to go on with.
    waits: bool,
    next_tick: Nanos,
    /// Of phases that are not recorded.
    tally: Tally,
    bytes: Bytes,
    ended: u64,
    /// Time in turns that had something to do.
    busy_ns: Nanos,
    /// This turn has something to do.
    busy: bool,
    abandoning: bool,
    /// Whether stamps are to be expected.
    stamped: bool,
    mend: bool,
    checks: Vec<Option<Passing>>,
    checks_grow: bool,
    first_connection: u64,
    rows: Option<Vec<Row>>,
    departures: Option<Box<Departures>>,
    /// What comes of clients that come and go.
    churn_account: Option<Box<ChurnAccount>>,
    /// Every request is looked at, for the rows or the churn_account.
    watched: bool,
    /// Groups of which only successes are timed.
    choosy: Box<[bool]>,
    end: WorkerEnd,
    /// What comes of the phase, where it stores records.
    load: Option<Box<LoadEnd>>,
    /// Records that the last phase which is over stored, where it was a load.
    stored: u64,
    open: u64,
    /// The server of the first request over UDP that was given up.
    late: Option<u32>,
}

/// A value that is being checked as it passes.
#[derive(Clone, Copy, Debug)]
struct Passing {
    key: u64,
    check: Check,
    /// What the read remembers that it was begun for.
    check_state: CheckState,
}

/// What a worker is to write down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// Connections whose values are checked; 0 where none are.
    pub checks: usize,
    /// Keep every request of the measured phase.
    pub rows: bool,
    /// Keep the end of every client that comes and goes in the measured phase.
    pub departures: bool,
    /// Clients come and go; with what their requests weigh, where that is known.
    pub churn_account: Option<Option<Weight>>,
    /// Connections are added as they are needed, and values are checked on them.
    pub checks_grow: bool,
    /// Number of its first connection over all threads, from 1; where clients have windows, the others follow it.
    pub first_connection: u64,
    /// The kernel's receive stamps are expected.
    pub stamped: bool,
    /// The worker's clock is none of the machine's, and may run ahead of the watching thread: the worker waits for it
    /// where it has no interval to go on with, so that slices do not depend on the machine.
    pub waits_for_intervals: bool,
    /// For every group, whether only the times of reads that found something and of stores that stored are recorded.
    pub successes_only: Vec<bool>,
}

impl WorkerReporter {
    /// An empty reporter that hands over to `line`, and writes slices to these intervals at first.
    pub fn new(
        line: Line,
        intervals: [Box<Interval>; INTERVALS_AT_START],
        options: ReportOptions,
    ) -> WorkerReporter {
        let mut stock = Vec::with_capacity(INTERVALS_PER_WORKER);
        stock.extend(intervals);
        let Some(interval) = stock.pop() else { unreachable!("there are several") };
        WorkerReporter {
            line,
            mode: Mode::Count,
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
            busy_ns: 0,
            busy: false,
            abandoning: false,
            stamped: options.stamped,
            mend: false,
            checks: vec![None; options.checks],
            checks_grow: options.checks_grow,
            first_connection: options.first_connection,
            rows: options.rows.then(|| Vec::with_capacity(ROWS)),
            departures: options.departures.then(Box::default),
            churn_account: options
                .churn_account
                .map(|churn_account| Box::new(ChurnAccount::new(churn_account))),
            watched: options.rows || options.churn_account.is_some(),
            choosy: options.successes_only.into(),
            end: WorkerEnd::default(),
            load: None,
            stored: 0,
            open: 0,
            late: None,
        }
    }

    /// Begins a phase that ends at `end`, but for its drain.
    pub fn begin_phase(&mut self, phase: usize, mode: Mode, begin: Nanos, end: Nanos) {
        self.phase = phase;
        self.mode = mode;
        self.begin = begin;
        self.busy_ns = 0;
        self.interval.restart(0, 0);
        self.end_at = end;
        self.answered_at = begin;
        self.next_tick = match mode {
            Mode::Count => begin.saturating_add(PROGRESS_NS),
            Mode::Record(interval_ns) => self.tick_at(begin.saturating_add(interval_ns)),
        };
    }

    /// Whether the phase that begins stores records.
    pub fn note_loads(&mut self, loads: bool) {
        self.load = loads.then(Box::default);
    }

    /// How many records the last phase that is over stored; 0 where it was no load.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// The worker begins the phase now.
    pub fn note_begun(&mut self, now: Nanos) {
        self.begun_at = now;
    }

    /// How many connections are open now that a phase begins.
    pub fn note_open(&mut self, open: u64) {
        self.open = open;
    }

    /// When [`WorkerReporter::tick`] has something to do.
    pub fn next_tick(&self) -> Nanos {
        self.next_tick
    }

    /// Hands over what a slice of time brought, when it is over.
    #[inline]
    pub fn tick(&mut self, now: Nanos) {
        if now < self.next_tick {
            return;
        }
        match self.mode {
            Mode::Count => {
                // What is not said now is said with the next progress.
                if self.line.offer(WorkerMessage::Progress { phase: self.phase, ended: self.ended }) {
                    self.ended = 0;
                }
                self.next_tick = now + PROGRESS_NS;
            }
            Mode::Record(interval_ns) => {
                // A slice ends at its tick even when the worker looked late.
                let index = (now.min(self.end_at - 1) - self.begin) / interval_ns;
                self.next_tick =
                    self.tick_at(self.begin.saturating_add((index + 1).saturating_mul(interval_ns)));
                self.hand_over_if_spare(index * interval_ns, index);
                self.hand_over_rows();
                self.hand_over_departures();
            }
        }
    }

    /// Ends the phase.
    pub fn end_phase(&mut self, now: Nanos, fate: PhaseFate) {
        if let Mode::Record(_) = self.mode {
            self.hand_over_last(now.saturating_sub(self.begin));
            self.hand_over_rows();
            self.hand_over_departures();
        }
        let load = self.load.take().map(|mut load| {
            load.counts.merge(&self.tally.all());
            load.sent_bytes += self.bytes.sent;
            load
        });
        self.stored = load.as_ref().map_or(0, |load| load.counts.outcomes.stored);
        let elapsed_ns = now.saturating_sub(self.begin);
        self.line.say(WorkerMessage::Phase(Box::new(PhaseEnd {
            phase: self.phase,
            tally: std::mem::take(&mut self.tally),
            bytes: std::mem::take(&mut self.bytes),
            begin: self.begin,
            end: self.end_at,
            elapsed_ns,
            late_ns: self.begun_at.saturating_sub(self.begin),
            answered_ns: self.answered_at.saturating_sub(self.begin),
            time: WorkerTime { busy_ns: self.busy_ns.min(elapsed_ns), wall_ns: elapsed_ns },
            open: self.open,
            load,
            fate,
        })));
        self.mode = Mode::Count;
        self.next_tick = NEVER;
    }

    /// Says something to the thread that watches that must not be lost.
    pub fn say(&self, note: WorkerMessage) {
        self.line.say(note);
    }

    /// Says something to the thread that watches; it is counted as dropped where too much waits to be heard.
    fn offer(&mut self, note: WorkerMessage) {
        self.end.messages_dropped += u64::from(!self.line.offer(note));
    }

    /// Ends the run.
    pub fn finish(mut self, failure: Option<std::io::Error>) {
        self.end.churn = self.churn_account.take().map(|churn_account| Box::new(churn_account.churn));
        self.end.failure = failure;
        self.end.worker = self.line.worker;
        let late = self.late.map(|server| (server, Trouble::TimedOut));
        self.end.trouble = self.end.trouble.take().or(late);
        self.line.say(WorkerMessage::Done(Box::new(self.end)));
    }

    /// The last slice has no tick: what comes in the drain belongs to it.
    fn tick_at(&self, at: Nanos) -> Nanos {
        if at < self.end_at { at } else { NEVER }
    }

    /// Hands over the slice that ended at its tick, where there is an interval to go on with, and one more, which the end
    /// of the phase needs. Otherwise the worker goes on in the same interval.
    fn hand_over_if_spare(&mut self, end_ns: Nanos, next: u64) {
        self.stock.extend(self.line.spares.try_iter());
        while self.stock.len() < 2 {
            let Some(spare) = self.another() else { return };
            self.stock.push(spare);
        }
        if let Some(spare) = self.stock.pop() {
            self.hand_over(spare, end_ns, next);
        }
    }

    /// An interval that the worker did not have at hand, if it may make one or waits for one.
    #[cold]
    fn another(&mut self) -> Option<Box<Interval>> {
        if self.owned == INTERVALS_PER_WORKER {
            return if self.waits { self.line.spares.recv().ok() } else { None };
        }
        self.owned += 1;
        let groups = self.interval.groups.iter().map(|_| std::iter::empty::<Verb>());
        let interval = Interval::new(groups).counting(self.interval.outstanding.is_some());
        Some(Box::new(interval.of_worker(self.line.worker)))
    }

    /// Hands over the last slice of a phase. The interval that was kept for that may be missing only where those of the
    /// phase before are not back yet, which they are soon, since all workers are through with that phase.
    fn hand_over_last(&mut self, end_ns: Nanos) {
        let spare = self.stock.pop().or_else(|| self.line.spares.recv().ok());
        if let Some(spare) = spare {
            // No slice of this phase waits for this worker any more.
            self.hand_over(spare, end_ns, u64::MAX);
        }
    }

    fn hand_over(&mut self, mut spare: Box<Interval>, end_ns: Nanos, next: u64) {
        spare.restart(next, end_ns);
        let mut full = std::mem::replace(&mut self.interval, spare);
        full.end_ns = end_ns;
        if let Some(load) = &mut self.load {
            load.counts.merge(&full.counts());
            load.sent_bytes += full.bytes.sent;
        }
        self.line.say(WorkerMessage::Slice { interval: full, worker: self.line.worker, next });
    }

    /// Hands over the rows that were gathered, or drops them where too many wait to be taken.
    fn hand_over_rows(&mut self) {
        let Some(rows) = self.rows.as_mut().filter(|rows| !rows.is_empty()) else { return };
        let count = rows.len() as u64;
        let list = match rows.len() {
            ROWS => std::mem::replace(rows, Vec::with_capacity(ROWS)),
            _ => {
                // Few rows take the memory of few.
                let few = rows.to_vec();
                rows.clear();
                few
            }
        };
        if !self.line.offer(WorkerMessage::Rows(list)) {
            self.end.rows_dropped += count;
        }
    }

    /// Requests were handed to a connection, one after the other; its client has so many outstanding now.
    #[inline]
    pub fn asked(&mut self, requests: u32, outstanding: u32) {
        self.busy = true;
        if let Some(histogram) = &mut self.interval.outstanding {
            (0..requests).for_each(|n| histogram.record(outstanding.saturating_sub(n).into()));
        }
    }

    /// A connection was asked for, which is work of this turn.
    pub fn dialled(&mut self) {
        self.busy = true;
    }

    /// Bytes were handed to the kernel.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        match self.mode {
            Mode::Record(_) => self.interval.bytes.sent += bytes as u64,
            Mode::Count => self.bytes.sent += bytes as u64,
        }
    }

    /// Bytes came that ended `answered` requests.
    #[inline]
    pub fn received(&mut self, bytes: usize, answered: u32) {
        self.busy = true;
        match self.mode {
            Mode::Record(_) => {
                self.interval.bytes.received += bytes as u64;
                if self.stamped {
                    self.interval.turns.stamps.shared += u64::from(answered.saturating_sub(1));
                }
            }
            Mode::Count => self.bytes.received += bytes as u64,
        }
    }

    /// A request ended.
    #[inline(always)]
    pub fn answer(&mut self, group: usize, client: u64, answer: &Answer<'_>, message: &[u8]) {
        match self.mode {
            Mode::Count => return self.count(&{ *answer }, message),
            Mode::Record(_) if self.abandoning => self.give_up(group, &{ *answer }),
            Mode::Record(_) if self.choosy[group] && !succeeded(answer.outcome) => {
                self.interval.groups[group].record_slipped(&sample_of(answer));
            }
            Mode::Record(_) => self.interval.groups[group].record(&sample_of(answer)),
        }
        if answer.stamp != Stamp::Nothing {
            self.answered_at = self.answered_at.max(answer.arrived);
        }
        match answer.stamp {
            Stamp::Kernel | Stamp::Nothing => {}
            Stamp::Missing => self.interval.turns.stamps.missing += u64::from(self.stamped),
            Stamp::Rejected => {
                self.interval.turns.stamps.rejected += 1;
                self.mend = true;
            }
        }
        if let Outcome::Error(_) = answer.outcome {
            self.message(message);
        }
        if self.watched {
            self.watch(group, client, &{ *answer });
        }
    }

    /// Hands a request to those that read every single one: the rows and the account of churning clients.
    #[inline(never)]
    fn watch(&mut self, group: usize, client: u64, answer: &Answer<'_>) {
        self.row(group, client, answer);
        if let Some(churn_account) = &mut self.churn_account {
            churn_account.answer(answer);
        }
    }

    /// A request ended in a phase that is not recorded.
    #[inline(never)]
    fn count(&mut self, answer: &Answer<'_>, message: &[u8]) {
        let verb = answer.ticket.verb;
        self.ended += 1;
        match (self.abandoning, answer.sent) {
            (false, _) => self.tally.record(&sample_of(answer)),
            (true, NEVER) => self.tally.unsent(verb, 1),
            (true, _) => self.tally.unfinished(verb, 1),
        }
        if let Outcome::Error(_) = answer.outcome {
            self.message(message);
        }
    }

    /// A request ended because its phase is over.
    #[cold]
    fn give_up(&mut self, group: usize, answer: &Answer<'_>) {
        let recorder = &mut self.interval.groups[group];
        match answer.sent {
            NEVER => recorder.unsent(answer.ticket.verb, 1),
            _ => recorder.record_unfinished(&sample_of(answer)),
        }
    }

    #[cold]
    fn row(&mut self, group: usize, client: u64, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        let Some(rows) = &mut self.rows else { return };
        rows.push(Row {
            due: ticket.due,
            ready: ticket.ready,
            sent: answer.sent,
            arrived: if self.abandoning { NEVER } else { answer.arrived },
            read: if answer.stamp == Stamp::Nothing { NEVER } else { answer.read },
            verb: ticket.verb,
            outcome: answer.outcome,
            key: ticket.key,
            client,
            group: group as u16,
        });
        if rows.len() == ROWS {
            self.hand_over_rows();
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
        if !self.line.offer(WorkerMessage::Departures(gone)) {
            self.end.messages_dropped += count;
        }
    }

    /// The connection in this slot is the one that something went wrong with last.
    pub fn failed(&mut self, slot: usize) {
        if let Some(departures) = &mut self.departures {
            departures.failed(slot);
        }
    }

    /// The client in this slot is gone.
    pub fn retired(&mut self, slot: usize, departure: impl FnOnce() -> Departure) {
        let Some(departures) = &mut self.departures else { return };
        let gone = departures.add(slot, departure());
        match (self.mode, gone) {
            (Mode::Count, _) => drop(departures.take()),
            (Mode::Record(_), Some(gone)) => self.offer_departures(gone),
            (Mode::Record(_), None) => {}
        }
    }

    /// The account of clients that come and go, where they do and are measured.
    pub fn churn(&mut self) -> Option<&mut Churn> {
        match self.mode {
            Mode::Record(_) => self.churn_account.as_mut().map(|churn_account| &mut churn_account.churn),
            Mode::Count => None,
        }
    }

    /// The reply that is handed over next has so many bytes.
    pub fn weigh(&mut self, bytes: u64) {
        if let Some(churn_account) = &mut self.churn_account {
            churn_account.reply_bytes = bytes;
        }
    }

    /// The request that is handed over next ends with its connection; `whole`: all of it was sent.
    pub fn parted(&mut self, whole: bool) {
        if let Some(churn_account) = &mut self.churn_account {
            churn_account.cut = !whole;
        }
    }

    /// Values are checked on so many connections.
    pub fn make_room(&mut self, connections: usize) {
        if !self.checks.is_empty() || self.checks_grow {
            self.checks.resize(connections, None);
        }
    }

    /// Requests that were due were never sent.
    pub fn unsent(&mut self, group: usize, unsent: Unsent) {
        let Unsent { verb, requests, estimated } = unsent;
        match self.mode {
            Mode::Record(_) => {
                let recorder = &mut self.interval.groups[group];
                recorder.unsent(verb, requests);
                recorder.estimated(verb, estimated);
            }
            Mode::Count => {
                self.tally.unsent(verb, requests);
                self.tally.estimated(verb, estimated);
            }
        }
    }

    /// Requests that end are unfinished as long as `abandoning` is set.
    pub fn abandon(&mut self, abandoning: bool) {
        self.abandoning = abandoning;
    }

    /// Whether a receive stamp was impossible since this was asked last.
    #[inline]
    pub fn wants_mending(&mut self) -> bool {
        std::mem::take(&mut self.mend)
    }

    /// The part of a turn before its wait is over: it began at `from`.
    #[inline]
    pub fn worked(&mut self, from: Nanos, to: Nanos) {
        if !std::mem::take(&mut self.busy) {
            return;
        }
        let spent = to.saturating_sub(from);
        self.busy_ns += spent;
        let turns = &mut self.interval.turns;
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
            self.interval.turns.stalls += 1;
            self.interval.turns.stalled_ns += over;
        }
    }

    /// A connection is open, `took` after it was asked for; `again`: it was open before.
    pub fn opened(&mut self, server: u32, took: Nanos, again: bool) {
        if again {
            self.offer(WorkerMessage::Connection { server, event: ConnectionEvent::Back });
        }
        self.end.connect.record(took);
        self.end.reconnected += u64::from(again);
    }

    /// A TLS handshake ended well.
    pub fn shook_hands(&mut self, handshake: TlsHandshake) {
        self.end.handshake.record(handshake.took);
        self.end.resumed += u64::from(handshake.resumed);
    }

    /// A connection could not be opened.
    pub fn not_opened(&mut self, server: u32, reason: Reason) {
        self.end.failed += 1;
        self.trouble(server, Trouble::NotOpened(reason));
    }

    /// An open connection is lost.
    pub fn lost(&mut self, server: u32, trouble: Trouble) {
        self.offer(WorkerMessage::Connection { server, event: ConnectionEvent::Lost });
        self.end.lost += 1;
        self.trouble(server, trouble);
    }

    fn trouble(&mut self, server: u32, trouble: Trouble) {
        if let Some(departures) = &mut self.departures {
            departures.note(&trouble);
        }
        self.end.trouble.get_or_insert((server, trouble));
    }

    /// A connection is not opened again.
    pub fn gone(&mut self) {
        self.line.say(WorkerMessage::Gone);
    }

    /// A request was given up whose connection goes on.
    pub fn late(&mut self, server: u32) {
        self.late.get_or_insert(server);
    }

    /// What became of datagrams on a connection.
    pub fn add_datagrams(&mut self, counts: &udp::Counts) {
        self.end.udp.merge(counts);
    }

    /// What the peer said is not what its protocol allows.
    pub fn malformed(&mut self, server: u32, malformed: Malformed, bytes: &[u8]) {
        let shown = bytes[..bytes.len().min(MALFORMED_BYTES)].to_vec();
        self.lost(server, Trouble::Malformed(malformed.0, shown));
    }

    /// A request that asked for no reply has failed, after it was counted as handed over.
    pub fn quiet_error(&mut self, message: &[u8]) {
        self.end.noreply_errors += 1;
        self.message(message);
    }

    fn message(&mut self, message: &[u8]) {
        if message.is_empty() {
            return;
        }
        let message = &message[..message.len().min(MESSAGES.1)];
        if let Some(load) = &mut self.load {
            note_message(&mut load.messages, message);
        }
        // A load that is recorded is measured as well.
        if self.load.is_none() || self.mode != Mode::Count {
            note_message(&mut self.end.messages, message);
        }
    }

    /// What clients with windows counted and found, on this connection, and what the server said.
    pub fn window(&mut self, slot: usize, maker: &mut RequestMaker, message: &[u8]) {
        let counts = maker.window_mut().take_counts();
        if let Mode::Record(_) = self.mode {
            self.interval.window.merge(&counts);
        }
        let connection = self.first_connection + slot as u64;
        for finding in maker.window_mut().take_findings() {
            self.offer(WorkerMessage::Finding { connection, finding: Box::new(finding) });
        }
        if message.is_empty() {
            return;
        }
        let known = &self.end.messages;
        let kept = &message[..message.len().min(MESSAGES.1)];
        if known.iter().any(|(text, count)| text == kept && *count <= COMPLAINTS) {
            self.offer(WorkerMessage::Complaint { connection, words: kept.to_vec() });
        }
    }

    /// A value of `size` bytes begins to pass that is to be checked: that of the key with index `key`, which a read with
    /// this check_state asked for.
    pub fn begin_check(
        &mut self,
        slot: usize,
        key: u64,
        check_state: CheckState,
        size: u64,
        maker: &RequestMaker,
    ) {
        let check = Check::begin(maker.values(), key, size);
        self.checks[slot] = Some(Passing { key, check, check_state });
    }

    /// Some of its bytes pass.
    #[inline]
    pub fn check(&mut self, slot: usize, bytes: &[u8], maker: &RequestMaker) {
        if let Some(passing) = &mut self.checks[slot] {
            passing.check.body(maker.values(), bytes);
        }
    }

    /// It has passed. `is_stale` says whether its version was certainly overwritten when the read was sent.
    pub fn end_check(
        &mut self,
        slot: usize,
        maker: &RequestMaker,
        is_stale: impl Fn(CheckState, u64, Version) -> bool,
    ) {
        let Some(passing) = self.checks.get_mut(slot).and_then(Option::take) else { return };
        let verdict = passing.check.end(maker.values());
        let verify = &mut self.end.verify;
        verify.checked += 1;
        match verdict {
            Verdict::Good(version) => {
                verify.stale += u64::from(is_stale(passing.check_state, passing.key, version))
            }
            Verdict::Pieces | Verdict::Counter => {}
            Verdict::Short => verify.short += 1,
            Verdict::Bad(damage) => {
                let mut key = [0; KEY_MAX_BYTES];
                verify.fail(maker.keys().key(passing.key, &mut key), damage.words());
            }
        }
    }

    /// What was passing by on a connection, if anything, has no end.
    pub fn drop_check(&mut self, slot: usize) {
        if let Some(passing) = self.checks.get_mut(slot) {
            *passing = None;
        }
    }
}

/// Counts what a server said, beside at most so many other messages.
fn note_message(known: &mut Messages, message: &[u8]) {
    if let Some((_, count)) = known.iter_mut().find(|(text, _)| text == message) {
        *count += 1;
    } else if known.len() < MESSAGES.0 {
        known.push((message.to_vec(), 1));
    }
}

/// Whether a read found something, or a store stored.
fn succeeded(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Hit | Outcome::Stored)
}

#[inline]
fn sample_of(answer: &Answer<'_>) -> Sample {
    let ticket = answer.ticket;
    Sample {
        verb: ticket.verb,
        outcome: answer.outcome,
        keys: u32::from(ticket.keys),
        hits: answer.hits,
        due: ticket.due,
        ready: ticket.ready,
        sent: answer.sent,
        arrived: answer.arrived,
        read: answer.read,
        noreply: answer.stamp == Stamp::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use pummel_logic::connection::inflight::{Origin, Ticket};
    use pummel_logic::workload::request::{AnswerUse, CheckState};

    use super::*;
    use crate::worker::messages::{ROWS_WAITING_MAX, Told};

    /// A reporter of one group, what it says, and where its intervals come back.
    fn reporter(rows: bool) -> (WorkerReporter, Receiver<Told>, Sender<Box<Interval>>) {
        let ((messages, heard), (spare, spares)) = (channel(), channel());
        let options = ReportOptions {
            checks: 0,
            rows,
            departures: false,
            churn_account: None,
            checks_grow: false,
            first_connection: 1,
            stamped: false,
            waits_for_intervals: false,
            successes_only: vec![false],
        };
        let intervals = std::array::from_fn(|_| Box::new(Interval::new([[Verb::Get]]).of_worker(3)));
        (WorkerReporter::new(Line::new(3, messages, spares), intervals, options), heard, spare)
    }

    fn fate() -> PhaseFate {
        PhaseFate { dead: 0, missing: 0, skipped: 0, skipped_estimated: 0, repeated: 0, silent: Vec::new() }
    }

    /// The slices that were handed over.
    #[allow(clippy::vec_box, reason = "intervals go from hand to hand in their boxes")]
    fn slices(heard: &Receiver<Told>) -> Vec<Box<Interval>> {
        let slice = |told: Told| match told.message {
            WorkerMessage::Slice { interval, .. } => Some(interval),
            _ => None,
        };
        heard.try_iter().filter_map(slice).collect()
    }

    #[test]
    fn a_worker_without_a_spare_interval_goes_on_in_the_one_that_it_has() {
        let (mut reporter, heard, spare) = reporter(false);
        for phase in 0..3 {
            reporter.begin_phase(phase, Mode::Record(10), 0, 1_000);
            (1..100).for_each(|tick| reporter.tick(tick * 10));
            reporter.end_phase(1_007, fate());
            let slices = slices(&heard);
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
        let (mut reporter, heard, spare) = reporter(false);
        let mut places = std::collections::BTreeSet::new();
        reporter.begin_phase(0, Mode::Record(10), 0, 10_000);
        for tick in 1..1_000 {
            reporter.tick(tick * 10);
            let slices = slices(&heard);
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
        let (mut reporter, heard, _spare) = reporter(true);
        reporter.begin_phase(0, Mode::Record(NEVER / 2), 0, NEVER);
        let ticket = Ticket {
            due: 0,
            ready: 0,
            index: 0,
            key: 0,
            check_state: CheckState::None,
            verb: Verb::Get,
            origin: Origin::Arrival,
            answer_use: AnswerUse::None,
            keys: 1,
        };
        let answer = Answer {
            ticket: &ticket,
            outcome: Outcome::Hit,
            sent: 1,
            arrived: 2,
            read: 3,
            hits: 1,
            stamp: Stamp::Kernel,
        };
        (0..ROWS_WAITING_MAX + 3 * ROWS + 5).for_each(|_| reporter.answer(0, 0, &answer, &[]));
        reporter.end_phase(1, fate());
        let dropped = reporter.end.rows_dropped;
        assert_eq!(dropped, 3 * ROWS as u64 + 5);
        let rows = |told: Told| if let WorkerMessage::Rows(rows) = told.message { rows.len() } else { 0 };
        assert_eq!(heard.try_iter().map(rows).sum::<usize>(), ROWS_WAITING_MAX);
    }
}
