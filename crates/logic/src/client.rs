//! One virtual user: when its requests are due, what they ask, and what its answers make it ask next.
//!
//! A client never acts by itself: it is polled, and says what it wishes. It knows no socket, only whether its lanes are
//! open; it knows no clock, only the times that it is told.

use std::collections::VecDeque;

use crate::arrivals::Schedule;
use crate::inflight::{Care, Memo, Origin, Ticket};
use crate::rng::{Place, Stream, Use};
use crate::session::{Answer, Item};
use crate::shared::{Shared, Write};
use crate::time::{NEVER, Nanos};
use crate::wire::{Op, Outcome, Verb};
use crate::workload::key::Space;
use crate::workload::stale::{Place as Spot, Writer};
use crate::workload::value::Version;

/// One of a client's sockets, by number.
pub type Lane = u8;

/// All that a client can want.
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
    /// Nothing before this time or an event; [`NEVER`]: only an event helps.
    Wait(Nanos),
    /// Nothing more in this phase.
    Done,
}

/// What a client is told at the beginning of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Shift {
    /// Seed, group, phase and client: where its draws come from.
    pub place: Place,
    /// When the phase begins.
    pub begin: Nanos,
    /// When it ends: requests that are due later are not part of it. Those that were due before and had to wait are sent
    /// in the drain. [`NEVER`]: by number only.
    pub end: Nanos,
    /// How many requests this client has to make.
    pub requests: u64,
    /// Most requests outstanding; `u32::MAX` for no limit.
    pub depth: u32,
}

/// A request that an answer asked for.
#[derive(Clone, Copy, Debug)]
struct FollowUp {
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
}

impl Draws {
    fn new(place: Place) -> Draws {
        let stream = |purpose| Stream::new(place, purpose);
        Draws {
            op: stream(Use::Op),
            key: stream(Use::Key),
            verify: stream(Use::Verify),
            expiry: stream(Use::Expiry),
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
        let ring = if depth > 1 && depth != u32::MAX { vec![begin; depth as usize] } else { Vec::new() };
        Slots { depth, outstanding: 0, single: begin, ring, taking: 0, freeing: 0 }
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
            u32::MAX => 0,
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
            u32::MAX => {}
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

/// One virtual user.
#[derive(Debug)]
pub struct Client {
    /// Number in its group, over all threads and agents.
    number: u64,
    lane: LaneState,
    shift: Shift,
    draws: Draws,
    /// `None` in closed loop.
    schedule: Option<Schedule>,
    /// Requests of the schedule that were asked.
    issued: u64,
    slots: Slots,
    follow_ups: VecDeque<FollowUp>,
    /// Which of a multi-get's keys is looked for next in the reply that is passing by.
    cursor: u16,
    /// Keys that the reply passed over so far: other clients' replies may come before its end.
    missed: Vec<u64>,
    /// CAS unique of the item that passed by for a cas.
    cas: u64,
    /// Number of its server in the Plan.
    server: u32,
    /// Gives its writes their versions, where values are checked.
    writer: Option<Box<Writer>>,
    /// The key that its pieces are added to, and their bytes since it was stored anew.
    pieces: Pieces,
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
            lane: LaneState::Closed,
            shift: Shift { place, begin: 0, end: NEVER, requests: 0, depth: 1 },
            draws: Draws::new(place),
            schedule: None,
            issued: 0,
            slots: Slots::new(1, 0),
            follow_ups: VecDeque::new(),
            cursor: 0,
            missed: Vec::new(),
            cas: 0,
            server,
            writer: writer.map(Box::new),
            pieces: Pieces::default(),
            stopped: false,
            retired: false,
        }
    }

    /// Begins a phase; without a schedule in closed loop.
    ///
    /// # Panics
    /// When requests of the phase before are outstanding.
    pub fn begin(&mut self, shift: Shift, schedule: Option<Schedule>) {
        assert!(self.slots.outstanding == 0, "a phase ends before the next begins");
        self.schedule = schedule;
        self.draws = Draws::new(shift.place);
        self.slots = Slots::new(shift.depth, shift.begin);
        self.issued = 0;
        self.follow_ups.clear();
        self.retired = false;
        self.shift = shift;
    }

    /// Says what the client wants now. To be called again after every [`Wish::Ask`] and [`Wish::Open`].
    #[inline]
    pub fn poll<'a>(&'a mut self, now: Nanos, shared: &'a mut Shared) -> Wish<'a> {
        let next = self.next(now);
        match next {
            Next::Open => {
                self.lane = LaneState::Opening;
                Wish::Open(0)
            }
            Next::Wait(until) => Wish::Wait(until),
            Next::Done => Wish::Done,
            Next::FollowUp { follow, ready } => {
                self.follow_ups.pop_front();
                let FollowUp { due, verb, key, cas, index } = follow;
                self.ask(Request { verb, index, key, cas, origin: Origin::FollowUp }, due, ready, shared)
            }
            Next::Arrival { due, ready } => {
                let index = self.issued;
                self.issued += 1;
                if let Some(schedule) = &mut self.schedule {
                    schedule.next();
                }
                let request = self.draw(index, shared);
                self.ask(request, due, ready, shared)
            }
        }
    }

    /// The lane is open since `at`.
    pub fn handle_opened(&mut self, _lane: Lane, at: Nanos) {
        self.lane = LaneState::Open(at);
    }

    /// The lane is closed; `again`: it may be opened again.
    pub fn handle_closed(&mut self, _lane: Lane, again: bool, shared: &mut Shared) {
        shared.witness.clear();
        self.lane = if again { LaneState::Closed } else { LaneState::Lost };
    }

    /// An item of a reply passes by. Returns the index of its key among those that were asked for, if it is one.
    pub fn handle_item(&mut self, ticket: &Ticket, item: &Item<'_>, shared: &mut Shared) -> Option<u64> {
        self.cas = item.cas;
        if ticket.keys == 1 {
            return shared.is_key(ticket.key, item.key).then_some(ticket.key);
        }
        let first = self.cursor;
        for place in first..ticket.keys {
            let key = self.read_key(ticket.index, u64::from(place), shared);
            if shared.is_key(key, item.key) {
                self.cursor = place + 1;
                return Some(key);
            }
            // What is skipped is a miss; whether it matters is known when the answer is whole.
            self.missed.push(key);
        }
        self.cursor = ticket.keys;
        None
    }

    /// Whether a value of this version, which a read with this ticket returned for the key with this index, was certainly
    /// overwritten before the read was sent.
    pub fn is_stale(&self, ticket: &Ticket, key: u64, version: Version, shared: &Shared) -> bool {
        let Memo::Read(mark) = ticket.memo else { return false };
        shared.witness.is_stale(Spot { server: self.server, index: key }, version, mark)
    }

    /// A request ended: its slot is free, and what follows from its answer is remembered.
    pub fn handle_answer(&mut self, answer: &Answer<'_>, shared: &mut Shared) {
        self.slots.free(answer.arrived);
        let ticket = answer.ticket;
        if let (Memo::Write(version), Some(writer)) = (ticket.memo, &mut self.writer) {
            let place = Spot { server: self.server, index: ticket.key };
            match answer.outcome {
                Outcome::Stored => shared.witness.handle_stored(writer, place, version),
                Outcome::NotStored | Outcome::Exists | Outcome::NotFound => writer.handle_not_stored(version),
                _ => writer.handle_lost(version),
            }
        }
        if ticket.origin == Origin::BeforeCas {
            if answer.outcome == Outcome::Hit {
                self.follow(answer.read, Verb::Cas, ticket.key, self.cas, ticket.index);
            }
        } else if ticket.verb.reads() {
            self.read_through(answer, shared);
        }
        self.cursor = 0;
        self.missed.clear();
    }

    /// The run is interrupted: nothing is asked any more, and the phase ends at `now`.
    pub fn stop(&mut self, now: Nanos) {
        self.shift.end = self.shift.end.min(now);
        self.stopped = true;
    }

    /// Whether [`Wish::Done`] is said for the first time in this phase.
    pub fn retire(&mut self) -> bool {
        !std::mem::replace(&mut self.retired, true)
    }

    /// Number in its group, over all threads and agents.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Index of its group in the Plan.
    #[inline]
    pub fn group(&self) -> usize {
        self.shift.place.group as usize
    }

    /// Whether its lane was lost and is not opened again.
    pub fn is_lost(&self) -> bool {
        self.lane == LaneState::Lost
    }

    /// Whether its lane is open.
    pub fn is_open(&self) -> bool {
        matches!(self.lane, LaneState::Open(_))
    }

    /// Requests of this phase that were never due, although the phase is to go on until they are made: one with an end
    /// in time is over then as well.
    pub fn missing(&self) -> u64 {
        match (self.shift.requests, self.shift.end) {
            (requests, NEVER) if requests != u64::MAX => requests - self.issued,
            _ => 0,
        }
    }

    /// Requests of this phase that were due before `now` and were never sent, by verb. To be called when the phase is
    /// over and nothing is outstanding.
    pub fn count_unsent(&mut self, now: Nanos, shared: &Shared, mut unsent: impl FnMut(Verb)) {
        let until = self.shift.end.min(now);
        while self.issued < self.shift.requests {
            let due = match &mut self.schedule {
                Some(schedule) => self.shift.begin + schedule.next(),
                // In closed loop a request is due when its slot is freed; it is not sent when the lane is lost.
                None if self.slots.is_free() => {
                    let since = self.slots.since();
                    self.slots.take();
                    since
                }
                None => NEVER,
            };
            if due >= until {
                break;
            }
            unsent(shared.verb(self.draws.op.draw(self.issued)));
            self.issued += 1;
        }
        for follow in self.follow_ups.drain(..).take_while(|follow| follow.due < until) {
            unsent(follow.verb);
        }
        // Slots that were taken only to be counted are outstanding no more than the requests.
        self.slots.outstanding = 0;
    }

    /// What has to happen next, with all times of it.
    #[inline]
    fn next(&self, now: Nanos) -> Next {
        let opened = match self.lane {
            LaneState::Open(at) => at,
            // Nothing is owed on a lane that is not open, and nothing more is asked now.
            LaneState::Closed | LaneState::Opening if now >= self.shift.end => return Next::Done,
            LaneState::Closed if !self.stopped => return Next::Open,
            LaneState::Opening => return Next::Wait(self.shift.end),
            LaneState::Closed | LaneState::Lost => return Next::Done,
        };
        let is_free = self.slots.is_free();
        let mut wake = NEVER;
        if let Some(follow) = self.follow_ups.front().filter(|follow| follow.due < self.shift.end) {
            if follow.due <= now && is_free {
                let ready = follow.due.max(self.slots.since()).max(opened);
                return Next::FollowUp { follow: *follow, ready };
            }
            // The answer that frees a slot wakes it.
            wake = if is_free { follow.due } else { NEVER };
        }
        if self.issued < self.shift.requests {
            let due = match &self.schedule {
                Some(schedule) => self.shift.begin + schedule.peek(),
                None => self.slots.since(),
            };
            if due < self.shift.end && !self.stopped {
                return match (is_free, due <= now) {
                    (true, true) => Next::Arrival { due, ready: due.max(self.slots.since()).max(opened) },
                    (_, false) => Next::Wait(due.min(wake)),
                    (false, true) => Next::Wait(NEVER),
                };
            }
        }
        // A phase lasts as long as it was asked to, also when nothing more is due in it.
        if now < self.shift.end && self.shift.end != NEVER && self.issued < self.shift.requests {
            return Next::Wait(wake.min(self.shift.end));
        }
        match (wake, self.slots.outstanding) {
            (NEVER, 0) => Next::Done,
            _ => Next::Wait(wake),
        }
    }

    /// What request `index` of the schedule asks.
    #[inline]
    fn draw(&mut self, index: u64, shared: &Shared) -> Request {
        if let Some(key) = shared.load_key(index, self.number) {
            return Request { verb: Verb::Set, index, key, cas: 0, origin: Origin::Arrival };
        }
        let verb = shared.verb(self.draws.op.draw(index));
        let (verb, key, origin) = match verb {
            Verb::Append | Verb::Prepend => {
                let (verb, key) = self.add_piece(verb, shared);
                (verb, key, Origin::Arrival)
            }
            Verb::Cas => (Verb::Gets, self.record(index, 0, Space::Plain, shared), Origin::BeforeCas),
            Verb::Incr | Verb::Decr => {
                (verb, self.record(index, 0, Space::Counters, shared), Origin::Arrival)
            }
            verb if verb.reads() => (verb, self.read_key(index, 0, shared), Origin::Arrival),
            verb => (verb, self.record(index, 0, Space::Plain, shared), Origin::Arrival),
        };
        Request { verb, index, key, cas: 0, origin }
    }

    /// Index of key `place` of request `index`, in a space.
    #[inline]
    fn record(&self, index: u64, place: u64, space: Space, shared: &Shared) -> u64 {
        shared.index(space, shared.choose(&self.draws.key, index, place, self.number))
    }

    /// Index of key `place` of read `index`.
    #[inline]
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
    #[inline]
    fn ask<'a>(&mut self, request: Request, due: Nanos, ready: Nanos, shared: &'a mut Shared) -> Wish<'a> {
        let Request { verb, index, key, cas, origin } = request;
        self.slots.take();
        let mut ticket =
            Ticket { due, ready, index, key, memo: Memo::None, verb, origin, care: Care::None, keys: 1 };
        let op = if verb.reads() {
            if origin == Origin::Arrival {
                ticket.keys = shared.multiget();
                if shared.cares(ticket.keys) {
                    ticket.care = shared.care(ticket.keys, self.draws.verify.draw(index));
                }
                if ticket.care == Care::Verify {
                    ticket.memo = Memo::Read(shared.witness.mark());
                }
            }
            let expiry_bits = if shared.sets_expiry(verb) { self.draws.expiry.draw(index) } else { 0 };
            if ticket.keys == 1 {
                shared.read_one(verb, key, expiry_bits)
            } else {
                shared.begin_read();
                shared.add_key(key);
                for place in 1..ticket.keys {
                    let key = self.read_key(index, u64::from(place), shared);
                    shared.add_key(key);
                }
                shared.read_many(verb, expiry_bits)
            }
        } else {
            let mut version = Version::LOADED;
            if let Some(writer) = self.writer.as_mut().filter(|_| verb.stores() && !shared.is_load()) {
                version = writer.send();
                ticket.memo = Memo::Write(version);
            }
            let expiry_bits = if shared.sets_expiry(verb) { self.draws.expiry.draw(index) } else { 0 };
            shared.write(Write { verb, key, version, cas, expiry_bits })
        };
        Wish::Ask { lane: 0, op, ticket }
    }

    fn follow(&mut self, due: Nanos, verb: Verb, key: u64, cas: u64, index: u64) {
        // Nearly always the last place: only a store with a delay is due later than what comes after it.
        let place = self.follow_ups.partition_point(|follow| follow.due <= due);
        self.follow_ups.insert(place, FollowUp { due, verb, key, cas, index });
    }

    fn read_through(&mut self, answer: &Answer<'_>, shared: &mut Shared) {
        let Some(delay) = shared.read_through() else { return };
        let ticket = answer.ticket;
        if !matches!(answer.outcome, Outcome::Hit | Outcome::Miss) {
            return;
        }
        for place in self.cursor..ticket.keys {
            let key = if ticket.keys == 1 {
                ticket.key
            } else {
                self.read_key(ticket.index, u64::from(place), shared)
            };
            if ticket.keys > 1 || answer.outcome == Outcome::Miss {
                self.missed.push(key);
            }
        }
        let due = answer.read + delay;
        for n in 0..self.missed.len() {
            self.follow(due, Verb::Set, self.missed[n], 0, ticket.index);
        }
    }
}

/// What a client has to do next.
enum Next {
    Open,
    Wait(Nanos),
    FollowUp { follow: FollowUp, ready: Nanos },
    Arrival { due: Nanos, ready: Nanos },
    Done,
}
