//! One virtual user: when its requests are due, what they ask, and what its answers make it ask next.
//!
//! A client never acts by itself: it is polled, and says what it wishes. It knows no socket, only whether its lanes are
//! open; it knows no clock, only the times that it is told.

mod churning;
mod lanes;
pub mod route;
mod windowed;

use std::collections::VecDeque;

use self::lanes::Many;
pub use self::lanes::Whole;
use crate::arrival::{Passed, Schedule};
pub use crate::client::route::Lane;
use crate::connection::inflight::{AnswerUse, CheckState, Origin, Ticket};
use crate::connection::session::{Answer, Item};
use crate::plan::Late;
use crate::protocol::{Fault, MetaAsk, Op, Outcome, Verb};
use crate::rng::{Place, Stream, Use};
use crate::time::{MILLISECOND, NEVER, Nanos};
use crate::unsent::{self, Unsent};
use crate::workload::key::Space;
use crate::workload::mix::space_of;
use crate::workload::request::{Shared, Write};
use crate::workload::value::Version;
use crate::workload::verify::stale::{Place as Spot, Writer};

/// A client that leaves out late requests does so when it is later than this, and up to what was due so long ago.
const SKIP_NS: (Nanos, Nanos) = (5 * MILLISECOND, 4 * MILLISECOND);

/// Gaps that are drawn at one time to leave out late requests; what they do not reach is left out by the mean gap. A
/// schedule that is far out of reach would hold up the worker otherwise, which makes the client later still.
const SKIP_DRAWS_MAX: u64 = 1_024;

/// All that a client can want.
#[allow(
    clippy::large_enum_variant,
    reason = "a wish is carried out where it is made; a box would allocate for each"
)]
#[derive(Debug)]
pub enum Wish<'a> {
    /// Open this lane.
    Open(Lane),
    /// Send this request over this lane.
    Ask {
        /// Which socket.
        lane: Lane,
        /// What to send.
        op: Op<'a>,
        /// What to remember until it is answered.
        ticket: Ticket,
    },
    /// Count a request that is due as never sent: its lane is not there, though others are.
    Unsent(Verb),
    /// Nothing before this time or an event; [`NEVER`]: only an event helps.
    Wait(Nanos),
    /// Nothing more in this phase.
    Done,
}

/// What a client is told at the beginning of a phase.
#[derive(Clone, Copy, Debug)]
pub struct PhaseAssignment {
    /// Seed, group, phase and client: where its draws come from.
    pub place: Place,
    /// When the phase begins.
    pub begin: Nanos,
    /// When it ends: requests that are due later are not part of it. Those that were due before and had to wait are sent
    /// in the drain. [`NEVER`]: by number only.
    pub end: Nanos,
    /// How many requests this client has to make.
    pub requests: u64,
    /// Most requests outstanding. A time is kept for each, so that it is no larger than a plan's memory allows.
    pub depth: u32,
    /// What becomes of what is late; only where there is a schedule.
    pub late: Late,
    /// The least time between two requests of the schedule.
    pub spacing_ns: Nanos,
    /// How many stores that timed out are asked again, at most.
    pub repeats: u64,
}

impl PhaseAssignment {
    /// Nothing to do, until the next phase.
    pub fn nothing(place: Place) -> PhaseAssignment {
        PhaseAssignment {
            place,
            begin: 0,
            end: NEVER,
            requests: 0,
            depth: 1,
            late: Late::Kept,
            spacing_ns: 0,
            repeats: 0,
        }
    }
}

/// What became of the repeats that a client may make.
#[derive(Clone, Copy, Debug, Default)]
struct Repeats {
    left: u64,
    made: u64,
}

/// A request that an answer asked for.
#[derive(Clone, Copy, Debug)]
struct FollowUp {
    /// The lane that the answer came on.
    lane: Lane,
    due: Nanos,
    verb: Verb,
    key: u64,
    cas: u64,
    index: u64,
}

/// A request about to be asked.
#[derive(Clone, Copy, Debug)]
struct Request {
    verb: Verb,
    /// Number of its draw.
    index: u64,
    /// Index of its (first) key.
    key: u64,
    cas: u64,
    origin: Origin,
}

/// Draws of one client in one phase.
#[derive(Clone, Copy, Debug)]
struct Draws {
    op: Stream,
    key: Stream,
    verify: Stream,
    expiry: Stream,
    size: Stream,
}

impl Draws {
    fn new(place: Place) -> Draws {
        let stream = |purpose| Stream::new(place, purpose);
        Draws {
            op: stream(Use::Op),
            key: stream(Use::Key),
            verify: stream(Use::Verify),
            expiry: stream(Use::Expiry),
            size: stream(Use::Size),
        }
    }

    /// Decides what is to be done with the answer to a read.
    #[inline(always)]
    fn care_for(&self, ticket: &mut Ticket, shared: &Shared) {
        if shared.reads_items(ticket.keys) {
            ticket.answer_use = shared.answer_use(ticket.keys, self.verify.draw(ticket.index));
        }
        if ticket.answer_use == AnswerUse::Verify {
            ticket.check_state = CheckState::Read(shared.witness.mark());
        }
    }
}

/// When each slot was freed. Slots are freed in the order of answers and taken in the same order, so that a ring of
/// times is enough, with one place where they are written and one where they are read.
#[derive(Debug)]
struct Slots {
    depth: u32,
    outstanding: u32,
    /// For a depth of 1, without a block of its own.
    single: Nanos,
    ring: Vec<Nanos>,
    /// Where the next request reads when its slot was freed.
    taking: u32,
    /// Where the next answer writes when its slot was freed.
    freeing: u32,
}

impl Slots {
    fn new(depth: u32, begin: Nanos) -> Slots {
        let mut slots =
            Slots { depth, outstanding: 0, single: begin, ring: Vec::new(), taking: 0, freeing: 0 };
        slots.renew(depth, begin);
        slots
    }

    /// So many slots, all free since `begin`. The memory stays.
    fn renew(&mut self, depth: u32, begin: Nanos) {
        self.ring.clear();
        if depth > 1 {
            self.ring.resize(depth as usize, begin);
        }
        (self.depth, self.outstanding, self.single, self.taking, self.freeing) = (depth, 0, begin, 0, 0);
    }

    /// How many slots are free since before `until`.
    fn count_free_since_before(&self, until: Nanos) -> u64 {
        let free = self.depth.saturating_sub(self.outstanding) as usize;
        if self.ring.is_empty() {
            return u64::from(free > 0 && self.single < until);
        }
        let (behind, from) = self.ring.split_at(self.taking as usize);
        from.iter().chain(behind).take(free).take_while(|since| **since < until).count() as u64
    }

    #[inline]
    fn is_free(&self) -> bool {
        self.outstanding < self.depth
    }

    /// When the slot was freed that the next request takes.
    #[inline]
    fn since(&self) -> Nanos {
        match self.depth {
            1 => self.single,
            _ => self.ring[self.taking as usize],
        }
    }

    #[inline]
    fn take(&mut self) {
        self.outstanding += 1;
        self.taking += 1;
        if self.taking >= self.depth {
            self.taking = 0;
        }
    }

    #[inline]
    fn free(&mut self, at: Nanos) {
        self.outstanding -= 1;
        match self.depth {
            1 => self.single = at,
            depth => {
                self.ring[self.freeing as usize] = at;
                self.freeing += 1;
                if self.freeing >= depth {
                    self.freeing = 0;
                }
            }
        }
    }
}

/// The state of a lane, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneState {
    /// Not open and not asked for.
    Closed,
    Opening,
    /// Open since.
    Open(Nanos),
    /// Not to be opened again.
    Lost,
}

/// One of a client's sockets, as far as the client knows it.
#[derive(Debug)]
struct Socket {
    state: LaneState,
    /// Number of its server in the Plan.
    server: u32,
    /// The last attempt to open it failed, after it had been open.
    down: bool,
    /// Which of a multi-get's keys is looked for next in the reply that is passing by.
    cursor: u16,
    /// Keys that the reply passed over so far: other clients' replies may come before its end.
    missed: Vec<u64>,
    /// CAS unique of the item that passed by for a cas.
    cas: u64,
}

impl Socket {
    fn new(server: u32) -> Socket {
        Socket { state: LaneState::Closed, server, down: false, cursor: 0, missed: Vec::new(), cas: 0 }
    }
}

/// One virtual user.
#[derive(Debug)]
pub struct Client {
    /// Number in its group, over all threads and agents.
    number: u64,
    /// Lane 0, which is all that most clients have.
    first: Socket,
    /// What only clients with several lanes have.
    many: Option<Box<Many>>,
    assignment: PhaseAssignment,
    draws: Draws,
    /// `None` in closed loop.
    schedule: Option<Schedule>,
    /// Requests of the schedule that were asked, or left out.
    issued: u64,
    /// Those of them that were left out; others are made in their place.
    skipped: u64,
    /// The next request of the schedule is not asked before.
    spaced_until: Nanos,
    /// Late requests are left out, or there is a least time between requests.
    has_policy: bool,
    slots: Slots,
    follow_ups: VecDeque<FollowUp>,
    /// When the last answer was read that asked for something.
    seen: Nanos,
    /// Gives its writes their versions, where values are checked.
    writer: Option<Box<Writer>>,
    /// The key that its pieces are added to, and their bytes since it was stored anew.
    pieces: Pieces,
    repeats: Repeats,
    /// It is interrupted: nothing is sent and no lane is opened any more.
    stopped: bool,
    /// It has nothing more to do in this phase.
    retired: bool,
}

/// Where a client's appends and prepends go.
#[derive(Clone, Copy, Debug, Default)]
struct Pieces {
    /// How many keys were filled before.
    turn: u64,
    /// Bytes of the value under the current key; 0: it is not stored yet.
    bytes: u64,
}

impl Client {
    /// Client `number` of group `group`, which talks to server `server` of the Plan, without an open lane and without
    /// anything to do. Where values are checked, its `writer` gives its writes their versions; without one, it writes
    /// what loading writes.
    pub fn new(group: usize, number: u64, server: u32, writer: Option<Writer>) -> Client {
        let place = Place { seed: 0, group: group as u64, phase: 0, client: number };
        Client {
            number,
            first: Socket::new(server),
            many: None,
            assignment: PhaseAssignment::nothing(place),
            draws: Draws::new(place),
            schedule: None,
            issued: 0,
            skipped: 0,
            spaced_until: 0,
            has_policy: false,
            slots: Slots::new(1, 0),
            follow_ups: VecDeque::new(),
            seen: 0,
            writer: writer.map(Box::new),
            pieces: Pieces::default(),
            repeats: Repeats::default(),
            stopped: false,
            retired: false,
        }
    }

    /// Begins a phase; without a schedule in closed loop.
    ///
    /// # Panics
    /// When requests of the phase before are outstanding.
    pub fn begin(&mut self, assignment: PhaseAssignment, schedule: Option<Schedule>) {
        assert!(self.slots.outstanding == 0, "a phase ends before the next begins");
        self.schedule = schedule;
        self.draws = Draws::new(assignment.place);
        self.slots.renew(assignment.depth, assignment.begin);
        (self.issued, self.skipped, self.spaced_until) = (0, 0, 0);
        self.follow_ups.clear();
        self.repeats = Repeats { left: assignment.repeats, made: 0 };
        self.retired = false;
        self.has_policy = assignment.late != Late::Kept || assignment.spacing_ns > 0;
        self.assignment = assignment;
        self.begin_window();
    }

    /// The next request, if it is a read of one key that is due now and nothing else comes into question; otherwise
    /// [`Client::poll`] knows what does. Most requests are of this kind, and are had sooner like this.
    #[inline(always)]
    pub fn poll_read<'a>(&mut self, now: Nanos, shared: &'a mut Shared) -> Option<(Op<'a>, Ticket)> {
        if self.many.is_some() {
            return None;
        }
        let (due, ready) = self.plain_arrival(now)?;
        let index = self.issued;
        let verb = shared.verb_of_one(self.draws.op.draw(index))?;
        let key = self.read_key(index, 0, shared);
        self.issued += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.next();
        }
        self.slots.take();
        let (check_state, origin, answer_use) = (CheckState::None, Origin::Arrival, AnswerUse::None);
        let mut ticket = Ticket { due, ready, index, key, check_state, verb, origin, answer_use, keys: 1 };
        self.draws.care_for(&mut ticket, shared);
        let expiry_bits = self.expiry_bits(verb, index, shared);
        Some((shared.read_made(verb, key, expiry_bits), ticket))
    }

    /// Says what the client wants now. To be called again until it wants to wait or is done.
    pub fn poll<'a>(&'a mut self, now: Nanos, shared: &'a mut Shared) -> Wish<'a> {
        if self.many.is_some() {
            return self.poll_lanes(now, shared);
        }
        if shared.is_exhausted() {
            self.assignment.requests = self.assignment.requests.min(self.issued);
        }
        if let Some((due, ready)) = self.plain_arrival(now) {
            return self.arrive(due, ready, shared);
        }
        match self.next(now) {
            Next::Open => {
                self.first.state = LaneState::Opening;
                Wish::Open(0)
            }
            Next::Wait(until) => Wish::Wait(until),
            Next::Done => Wish::Done,
            Next::FollowUp { follow, ready } => {
                self.follow_ups.pop_front();
                self.ask(follow.request(), follow.due, ready, shared)
            }
            Next::Arrival { due, ready } if self.has_policy => self.arrive_by_policy(now, due, ready, shared),
            Next::Arrival { due, ready } => self.arrive(due, ready, shared),
        }
    }

    /// Asks the next request of the schedule.
    #[inline(always)]
    fn arrive<'a>(&'a mut self, due: Nanos, ready: Nanos, shared: &'a mut Shared) -> Wish<'a> {
        let index = self.issued;
        self.issued += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.next();
        }
        if shared.is_sequence() {
            return self.ask_step(index, due, ready, shared);
        }
        let request = self.draw(index, shared);
        self.ask(request, due, ready, shared)
    }

    /// The lane is open since `at`.
    pub fn handle_opened(&mut self, lane: Lane, at: Nanos) {
        let socket = self.socket_mut(lane);
        (socket.state, socket.down) = (LaneState::Open(at), false);
        self.note_opened();
    }

    /// A lane's socket, which was too full for another request, takes bytes again since `at`: what was due meanwhile was
    /// not ready before.
    pub fn handle_writable(&mut self, at: Nanos) {
        for lane in 0..self.sockets().count() as Lane {
            if let LaneState::Open(since) = &mut self.socket_mut(lane).state {
                *since = at.max(*since);
            }
        }
    }

    /// The lane is closed; `again`: it may be opened again.
    pub fn handle_closed(&mut self, lane: Lane, again: bool, shared: &mut Shared) {
        shared.witness.clear();
        let socket = self.socket_mut(lane);
        let was_open = matches!(socket.state, LaneState::Open(_));
        socket.down = socket.state == LaneState::Opening;
        socket.state = if again { LaneState::Closed } else { LaneState::Lost };
        self.note_closed(was_open, again);
    }

    /// An item of a reply passes by. Returns the index of its key; `None` where the request did not ask for the key, or
    /// not as often. Servers send items in the order of the keys, or in another.
    pub fn handle_item(
        &mut self,
        lane: Lane,
        ticket: &Ticket,
        item: &Item<'_>,
        shared: &mut Shared,
    ) -> Option<u64> {
        let socket = self.socket_mut(lane);
        socket.cas = item.cas;
        if ticket.keys == 1 {
            return shared.is_key(ticket.key, item.key).then_some(ticket.key);
        }
        let (first, end) = (socket.cursor, places_of(ticket, shared));
        let passed_over = socket.missed.len();
        for place in first..end {
            let key = self.read_key(ticket.index, u64::from(place), shared);
            if ticket.origin == Origin::Part && shared.lane_of(0, key) != lane {
                continue;
            }
            if shared.is_key(key, item.key) {
                self.socket_mut(lane).cursor = place + 1;
                return Some(key);
            }
            // What is skipped is a miss; whether it matters is known when the answer is whole.
            self.socket_mut(lane).missed.push(key);
        }
        let socket = self.socket_mut(lane);
        socket.cursor = end;
        let late = socket.missed[..passed_over].iter().position(|&key| shared.is_key(key, item.key))?;
        Some(socket.missed.remove(late))
    }

    /// Whether a value of this version, which a read with this check_state returned for the key with this index, was certainly
    /// overwritten before the read was sent.
    pub fn is_stale(
        &self,
        lane: Lane,
        check_state: CheckState,
        key: u64,
        version: Version,
        shared: &Shared,
    ) -> bool {
        let CheckState::Read(mark) = check_state else { return false };
        shared.witness.is_stale(Spot { server: self.socket(lane).server, index: key }, version, mark)
    }

    /// A request ended: its slot is free, and what follows from its answer is remembered. Not for parts of a request,
    /// which [`Client::handle_part`] takes.
    #[inline]
    pub fn handle_answer(&mut self, lane: Lane, answer: &Answer<'_>, shared: &mut Shared) {
        self.slots.free(answer.arrived);
        if self.has_window() {
            return self.handle_window_answer(lane, &{ *answer }, shared);
        }
        let ticket = answer.ticket;
        let is_plain = match answer.outcome {
            Outcome::Hit => ticket.keys == 1 && ticket.origin != Origin::BeforeCas,
            Outcome::Stored => ticket.check_state == CheckState::None,
            _ => false,
        };
        if !is_plain {
            self.follow_answer(lane, &{ *answer }, shared);
        }
    }

    /// What follows from an answer.
    #[inline(never)]
    fn follow_answer(&mut self, lane: Lane, answer: &Answer<'_>, shared: &mut Shared) {
        let ticket = answer.ticket;
        if let CheckState::Write(version) = ticket.check_state {
            self.settle(lane, version, answer, shared);
        }
        if self.repeats.left > 0 && ticket.verb == Verb::Set && answer.outcome == LOST {
            self.repeats.left -= 1;
            self.repeats.made += 1;
            let (due, key, index) = (answer.read, ticket.key, ticket.index);
            self.follow(FollowUp { lane, due, verb: Verb::Set, key, cas: 0, index }, answer.read);
        }
        if ticket.origin == Origin::BeforeCas {
            self.follow_cas(lane, answer);
        } else if ticket.verb.reads() {
            self.follow_read(lane, answer, shared);
        }
        self.end_reply(lane);
    }

    /// The run is interrupted: nothing is asked any more, and the phase ends at `now`.
    pub fn stop(&mut self, now: Nanos) {
        self.assignment.end = self.assignment.end.min(now);
        self.stopped = true;
        // It is asked once more whether it has anything left to do.
        self.retired = false;
    }

    /// Requests of this phase that were left out because they would have been late.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Requests that are outstanding.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.slots.outstanding
    }

    /// Asks the next request of the schedule, with regard to what is late and to the time between requests.
    fn arrive_by_policy<'a>(
        &'a mut self,
        now: Nanos,
        due: Nanos,
        ready: Nanos,
        shared: &'a mut Shared,
    ) -> Wish<'a> {
        let index = self.issued;
        self.issued += 1;
        self.spaced_until = now.saturating_add(self.assignment.spacing_ns);
        if let Some(schedule) = &mut self.schedule {
            schedule.next();
        }
        let is_last_slot = self.slots.outstanding + 1 >= self.slots.depth;
        if self.assignment.late == Late::Skipped && is_last_slot {
            self.skip(now);
        }
        let request = self.draw(index, shared);
        self.ask(request, due, ready, shared)
    }

    /// Leaves out what is late (mutilate's rule), of what is due in this phase.
    fn skip(&mut self, now: Nanos) {
        let Some(schedule) = &mut self.schedule else { return };
        let PhaseAssignment { begin, end, .. } = self.assignment;
        if begin.saturating_add(schedule.peek()).saturating_add(SKIP_NS.0) >= now {
            return;
        }
        let until = end.min(now - SKIP_NS.1);
        let passed = schedule.pass(until.saturating_sub(begin), u64::MAX - self.issued, SKIP_DRAWS_MAX);
        self.issued += passed.requests;
        self.skipped += passed.requests;
        self.assignment.requests = self.assignment.requests.saturating_add(passed.requests);
    }

    /// Whether [`Wish::Done`] is said for the first time in this phase.
    pub fn retire(&mut self) -> bool {
        !std::mem::replace(&mut self.retired, true)
    }

    /// Whether as many requests are outstanding as may be: nothing is asked before one of them ends.
    #[inline]
    pub fn is_full(&self) -> bool {
        !self.slots.is_free() && !self.is_splitting()
    }

    /// Number in its group, over all threads and agents.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Index of its group in the Plan.
    #[inline]
    pub fn group(&self) -> usize {
        self.assignment.place.group as usize
    }

    /// How many of its lanes were lost and are not opened again.
    pub fn lost_lanes(&self) -> u64 {
        if self.is_cut_off() {
            return self.sockets().count() as u64;
        }
        self.sockets().filter(|socket| socket.state == LaneState::Lost).count() as u64
    }

    /// Stores of this phase that were asked again.
    pub fn repeated(&self) -> u64 {
        self.repeats.made
    }

    /// How many of its lanes are open.
    pub fn open_lanes(&self) -> u64 {
        self.sockets().filter(|socket| matches!(socket.state, LaneState::Open(_))).count() as u64
    }

    /// Requests of this phase that were never due, although the phase is to go on until they are made: one with an end
    /// in time is over then as well.
    pub fn missing(&self) -> u64 {
        match (self.assignment.requests, self.assignment.end) {
            (requests, NEVER) if requests != u64::MAX => requests - self.issued,
            _ => 0,
        }
    }

    /// Requests of this phase that were due before `now` and were never sent, by verb: exactly, but for what more than
    /// `draws_max` draws would be needed for. To be called when the phase is over and nothing is outstanding.
    pub fn count_unsent(
        &mut self,
        now: Nanos,
        shared: &mut Shared,
        draws_max: u64,
        mut unsent: impl FnMut(Unsent),
    ) {
        if self.has_window() {
            return;
        }
        let until = self.assignment.end.min(now);
        let left = self.assignment.requests.saturating_sub(self.issued);
        // Requests of a schedule beyond the last row of a trace are none.
        let left = shared.rows_left().map_or(left, |rows| left.min(rows));
        let passed = match &mut self.schedule {
            Some(schedule) => schedule.pass(until.saturating_sub(self.assignment.begin), left, draws_max),
            // In closed loop a request is due when its slot is freed; it is not sent when the lane is lost.
            None => Passed::exactly(self.slots.count_free_since_before(until).min(left)),
        };
        let (op, first) = (&self.draws.op, self.issued);
        unsent::tell(passed, draws_max, shared, |place| op.draw(first + place), &mut unsent);
        shared.pass_rows(passed.requests);
        self.issued += passed.requests;
        for follow in self.follow_ups.drain(..).take_while(|follow| follow.due < until) {
            unsent(Unsent { verb: follow.verb, requests: 1, estimated: 0 });
        }
        self.slots.outstanding = 0;
    }

    /// When the next request of the schedule is due and ready, if it is to be asked now and nothing else comes into
    /// question: the most frequent answer of [`Client::next`], had sooner.
    #[inline(always)]
    fn plain_arrival(&self, now: Nanos) -> Option<(Nanos, Nanos)> {
        let LaneState::Open(opened) = self.first.state else { return None };
        if !self.follow_ups.is_empty() || !self.slots.is_free() || self.stopped || self.has_policy {
            return None;
        }
        let since = self.slots.since();
        let due = match &self.schedule {
            Some(schedule) => self.assignment.begin.saturating_add(schedule.peek()),
            None => since,
        };
        let is_due = due <= now && due < self.assignment.end && self.issued < self.assignment.requests;
        is_due.then(|| (due, due.max(since).max(opened)))
    }

    /// What has to happen next, with all times of it.
    fn next(&self, now: Nanos) -> Next {
        let opened = match self.first.state {
            LaneState::Open(at) => at,
            // Nothing is owed on a lane that is not open, and nothing more is asked now.
            LaneState::Closed | LaneState::Opening if now >= self.assignment.end => return Next::Done,
            LaneState::Closed if !self.stopped => return Next::Open,
            LaneState::Opening => return Next::Wait(self.assignment.end),
            LaneState::Closed | LaneState::Lost => return Next::Done,
        };
        self.next_since(now, opened)
    }

    /// What has to happen next on lanes that are open since `opened`.
    #[inline]
    fn next_since(&self, now: Nanos, opened: Nanos) -> Next {
        let is_free = self.slots.is_free();
        let mut wake = NEVER;
        if let Some(follow) = self.follow_ups.front().filter(|follow| follow.due < self.assignment.end) {
            // What an answer asked for at once is due, although the answer was read after this turn's time.
            if follow.due <= now.max(self.seen) && is_free {
                let ready = follow.due.max(self.slots.since()).max(opened);
                return Next::FollowUp { follow: *follow, ready };
            }
            // The answer that frees a slot wakes it.
            wake = if is_free { follow.due } else { NEVER };
        }
        if self.issued < self.assignment.requests {
            let due = match &self.schedule {
                Some(schedule) => self.assignment.begin.saturating_add(schedule.peek()),
                None => self.slots.since(),
            };
            if due < self.assignment.end && !self.stopped {
                let asked = due.max(self.spaced_until);
                return match (is_free, asked <= now) {
                    (true, true) => Next::Arrival { due, ready: asked.max(self.slots.since()).max(opened) },
                    (_, false) => Next::Wait(asked.min(wake)),
                    (false, true) => Next::Wait(NEVER),
                };
            }
        }
        // A phase lasts as long as it was asked to, also when nothing more is due in it.
        if now < self.assignment.end && self.assignment.end != NEVER && self.issued < self.assignment.requests
        {
            return Next::Wait(wake.min(self.assignment.end));
        }
        match (wake, self.slots.outstanding) {
            (NEVER, 0) => Next::Done,
            _ => Next::Wait(wake),
        }
    }

    /// What request `index` of the schedule asks.
    #[inline(always)]
    fn draw(&mut self, index: u64, shared: &mut Shared) -> Request {
        if let Some((verb, key)) = shared.chore(index, self.number) {
            return Request { verb, index, key, cas: 0, origin: Origin::Arrival };
        }
        let verb = shared.verb(self.draws.op.draw(index));
        let (verb, key, origin) = match verb {
            Verb::Append | Verb::Prepend => {
                let (verb, key) = self.add_piece(verb, shared);
                (verb, key, Origin::Arrival)
            }
            Verb::Cas => (Verb::Gets, self.record(index, 0, Space::Plain, shared), Origin::BeforeCas),
            verb if verb.reads() && verb != Verb::Hget => {
                (verb, self.read_key(index, 0, shared), Origin::Arrival)
            }
            verb => (verb, self.record(index, 0, space_of(verb), shared), Origin::Arrival),
        };
        Request { verb, index, key, cas: 0, origin }
    }

    /// Index of key `place` of request `index`, in a space.
    #[inline(always)]
    fn record(&self, index: u64, place: u64, space: Space, shared: &Shared) -> u64 {
        shared.index(space, shared.choose(&self.draws.key, index, place, self.number))
    }

    /// Index of key `place` of read `index`.
    #[inline(always)]
    fn read_key(&self, index: u64, place: u64, shared: &Shared) -> u64 {
        let space = match shared.has_spaces() {
            true => shared.space(self.draws.op.draw_sub(index, 1 + place)),
            false => Space::Plain,
        };
        self.record(index, place, space, shared)
    }

    /// Where the next piece goes. Nobody knows how long a value is that others add to as well, so a client adds to a
    /// key of its own, and stores the next one anew before it would grow too long.
    fn add_piece(&mut self, verb: Verb, shared: &Shared) -> (Verb, u64) {
        let (key, limit) = shared.piece_key(self.number, self.pieces.turn);
        let piece = shared.piece_bytes(key);
        if self.pieces.bytes > 0 && self.pieces.bytes + piece <= limit {
            self.pieces.bytes += piece;
            return (verb, key);
        }
        self.pieces.turn += u64::from(self.pieces.bytes > 0);
        let (key, _) = shared.piece_key(self.number, self.pieces.turn);
        self.pieces.bytes = shared.piece_bytes(key);
        (Verb::Set, key)
    }

    /// Turns a request into what is sent and what is remembered.
    #[inline(always)]
    fn ask<'a>(&mut self, request: Request, due: Nanos, ready: Nanos, shared: &'a mut Shared) -> Wish<'a> {
        let Request { verb, index, key, cas, origin } = request;
        self.slots.take();
        let mut ticket = Ticket {
            due,
            ready,
            index,
            key,
            check_state: CheckState::None,
            verb,
            origin,
            answer_use: AnswerUse::None,
            keys: 1,
        };
        if !verb.reads() {
            return self.ask_write(ticket, cas, shared);
        }
        if origin == Origin::Arrival {
            ticket.keys = shared.keys_of(verb);
            self.draws.care_for(&mut ticket, shared);
        }
        let expiry_bits = self.expiry_bits(verb, index, shared);
        if ticket.keys > 1 || origin == Origin::BeforeCas {
            return self.ask_specially(ticket, expiry_bits, shared);
        }
        Wish::Ask { lane: 0, op: shared.read_one(verb, key, expiry_bits), ticket }
    }

    /// A read of several keys, or before a cas.
    fn ask_specially<'a>(&self, ticket: Ticket, expiry_bits: u64, shared: &'a mut Shared) -> Wish<'a> {
        if ticket.keys == 1 {
            let op = shared.read_one(ticket.verb, ticket.key, expiry_bits);
            // A cas follows whatever is found, and nothing is to be made or renewed besides.
            return Wish::Ask { lane: 0, op: Op { meta: MetaAsk::default(), ..op }, ticket };
        }
        shared.begin_keys();
        shared.add_key(ticket.key);
        for place in 1..ticket.keys {
            let key = self.read_key(ticket.index, u64::from(place), shared);
            shared.add_key(key);
        }
        Wish::Ask { lane: 0, op: shared.read_many(ticket.verb, expiry_bits), ticket }
    }

    /// Anything that is not a read.
    fn ask_write<'a>(&mut self, mut ticket: Ticket, cas: u64, shared: &'a mut Shared) -> Wish<'a> {
        let Ticket { verb, key, index, .. } = ticket;
        if verb == Verb::Mset && shared.keys_of(verb) > 1 {
            ticket.keys = shared.keys_of(verb);
            ticket.check_state = self.add_pairs(index, ticket.keys, shared);
            return Wish::Ask { lane: 0, op: shared.write_many(), ticket };
        }
        let mut version = Version::LOADED;
        if let Some(writer) = self.writer.as_mut().filter(|_| verb.stores() && !shared.is_load()) {
            version = writer.send();
            ticket.check_state = CheckState::Write(version);
        }
        let expiry_bits = self.expiry_bits(verb, index, shared);
        let size_bits = if shared.draws_length(verb) { self.draws.size.draw(index) } else { 0 };
        Wish::Ask {
            lane: 0,
            op: shared.write(Write { verb, key, version, cas, expiry_bits, size_bits }),
            ticket,
        }
    }

    /// What the expiry of a request is drawn from, where it is drawn.
    #[inline]
    fn expiry_bits(&self, verb: Verb, index: u64, shared: &Shared) -> u64 {
        if shared.sets_expiry(verb) { self.draws.expiry.draw(index) } else { 0 }
    }

    /// What becomes of the versions of a write, of which this is the first: one for each of its keys.
    fn settle(&mut self, lane: Lane, first: Version, answer: &Answer<'_>, shared: &mut Shared) {
        let Some(mut writer) = self.writer.take() else { return };
        let ticket = answer.ticket;
        let server = self.socket(lane).server;
        let mut version = first;
        let places = if ticket.keys == 1 { 1 } else { places_of(ticket, shared) };
        for place in 0..places {
            let index = match place {
                // The first key of a part may be any of the whole.
                0 if ticket.keys == 1 || ticket.origin != Origin::Part => ticket.key,
                _ => self.record(ticket.index, u64::from(place), Space::Plain, shared),
            };
            if ticket.origin == Origin::Part && shared.lane_of(0, index) != lane {
                continue;
            }
            let spot = Spot { server, index };
            match answer.outcome {
                Outcome::Stored => shared.witness.handle_stored(&mut writer, spot, version),
                Outcome::NotStored | Outcome::Exists | Outcome::NotFound => writer.handle_not_stored(version),
                _ => writer.handle_lost(version),
            }
            version = Version(version.0 + 1);
        }
        self.writer = Some(writer);
    }

    /// Writes down the keys and values of an mset. Their versions follow each other; the first is remembered.
    fn add_pairs(&mut self, index: u64, keys: u16, shared: &mut Shared) -> CheckState {
        let mut check_state = CheckState::None;
        shared.begin_keys();
        for place in 0..keys {
            let key = self.record(index, u64::from(place), Space::Plain, shared);
            self.add_pair(key, &mut check_state, shared);
        }
        check_state
    }

    /// Writes down the next key and value of an mset.
    fn add_pair(&mut self, key: u64, check_state: &mut CheckState, shared: &mut Shared) {
        let version = self.writer.as_mut().map_or(Version::LOADED, |writer| writer.send());
        if *check_state == CheckState::None && self.writer.is_some() {
            *check_state = CheckState::Write(version);
        }
        shared.add_pair(key, version);
    }

    /// A read for a cas was answered.
    fn follow_cas(&mut self, lane: Lane, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        let (verb, cas) = match (answer.outcome, answer.hits, self.socket(lane).cas) {
            (Outcome::Error(_) | Outcome::Miss, ..) => return,
            (Outcome::Win, 0, _) => (Verb::Set, 0),
            (_, 0, _) => return,
            // What a server sends decides on it: 0 is no CAS unique, and a cas is not asked with it.
            (_, _, 0) => return,
            (_, _, cas) => (Verb::Cas, cas),
        };
        self.follow(
            FollowUp { lane, due: answer.read, verb, key: ticket.key, cas, index: ticket.index },
            answer.read,
        );
    }

    /// A read was answered that is not for a cas.
    fn follow_read(&mut self, lane: Lane, answer: &Answer<'_>, shared: &mut Shared) {
        if answer.outcome == Outcome::Win {
            let (key, index) = (answer.ticket.key, answer.ticket.index);
            let due = answer.read.saturating_add(shared.read_through().unwrap_or(0));
            return self.follow(
                FollowUp { lane, due, verb: shared.store_verb(key), key, cas: 0, index },
                answer.read,
            );
        }
        self.read_through(lane, answer, shared);
    }

    /// A reply has passed.
    #[inline]
    fn end_reply(&mut self, lane: Lane) {
        let socket = self.socket_mut(lane);
        socket.cursor = 0;
        socket.missed.clear();
    }

    fn follow(&mut self, follow: FollowUp, read: Nanos) {
        self.seen = self.seen.max(read);
        // Nearly always the last place: only a store with a delay is due later than what comes after it.
        let place = self.follow_ups.partition_point(|other| other.due <= follow.due);
        self.follow_ups.insert(place, follow);
    }

    fn read_through(&mut self, lane: Lane, answer: &Answer<'_>, shared: &mut Shared) {
        let Some(delay) = shared.read_through() else { return };
        let ticket = answer.ticket;
        if !matches!(answer.outcome, Outcome::Hit | Outcome::Miss) {
            return;
        }
        let mut missed = std::mem::take(&mut self.socket_mut(lane).missed);
        if ticket.keys > 1 {
            for place in self.socket(lane).cursor..places_of(ticket, shared) {
                let key = self.read_key(ticket.index, u64::from(place), shared);
                if ticket.origin != Origin::Part || shared.lane_of(0, key) == lane {
                    missed.push(key);
                }
            }
        } else if answer.outcome == Outcome::Miss {
            missed.push(ticket.key);
        }
        let (due, index) = (answer.read.saturating_add(delay), ticket.index);
        for &key in &missed {
            self.follow(
                FollowUp { lane, due, verb: shared.store_verb(key), key, cas: 0, index },
                answer.read,
            );
        }
        self.socket_mut(lane).missed = missed;
    }
}

/// A request that got no answer in time.
const LOST: Outcome = Outcome::Error(Fault::Timeout);

impl FollowUp {
    #[inline]
    fn request(self) -> Request {
        let FollowUp { verb, key, cas, index, .. } = self;
        Request { verb, index, key, cas, origin: Origin::FollowUp }
    }
}

/// How many keys the request has that this ticket is for, or for a part of.
#[inline]
fn places_of(ticket: &Ticket, shared: &Shared) -> u16 {
    if ticket.origin == Origin::Part { shared.keys_of(ticket.verb) } else { ticket.keys }
}

/// What a client has to do next.
enum Next {
    Open,
    Wait(Nanos),
    FollowUp { follow: FollowUp, ready: Nanos },
    Arrival { due: Nanos, ready: Nanos },
    Done,
}
