//! Clients that come, make their requests on a connection of their own, close it and go.
//!
//! A client has a slot as long as it is there; entries are used again, and made only when all are taken. What goes wrong
//! with a connection ends its client, is counted once, and leaves the others alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pummel_logic::arrival::{Passed, Schedule};
use pummel_logic::client::{Client, PhaseAssignment, Wish};
use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Chunk, Item, Sink};
use pummel_logic::measure::churn::Failure;
use pummel_logic::plan::{Late, Transport};
use pummel_logic::protocol::{Codec, Fault, Malformed};
use pummel_logic::rng::{Place, Stream, Use};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_logic::unsent::{self, DRAWS_MAX};
use pummel_logic::workload::sequence::Draws;
use pummel_logic::workload::verify::stale::{RunMark, Writer};

use super::{ClientEntry, Endpoint, Loss, View, Worker, WorkerState};
use crate::backend::dial::failure_of;
use crate::backend::{Backend, Close, Reason};
use crate::worker::connections::{Connection, State};
use crate::worker::deadlines::Wheel;
use crate::worker::messages::{Departure, Trouble};
use crate::worker::opening::retry_pause;

/// Clients that may come in one turn, so that those who are there get theirs.
const BIRTHS_TURN: usize = 64;

/// Clients whose coming is drawn as mcperf draws it, which keeps time by the millisecond, come together where they are
/// due within so long of each other, none before its time: thousands a second cost a wake-up for each millisecond and
/// not for each.
const GRAIN_NS: Nanos = MILLISECOND;

/// Where the machine had no descriptor for a client, one client more than there were then may come after this time, and
/// another one after each such time: so a run that asks for too much fails about once a second in each worker.
const SHORTAGE_NS: Nanos = SECOND;

/// Verbs that are drawn at most to tell what a client had still to ask when it goes: thousands may go in a second.
const DEPARTURE_DRAWS_MAX: u64 = 64;

/// A crowd, as far as it is the same in all phases.
#[derive(Clone, Copy, Debug)]
pub struct ChurnLimits {
    /// Index of the group in the Plan.
    pub group: usize,
    /// How many may be there at one time.
    pub limit: usize,
    /// This worker's number, and how many there are: the clients are dealt to them in turn.
    pub turn: (u64, u64),
    /// Most requests outstanding on a connection, to make room for.
    pub depth: usize,
    /// Whether values are checked, so that writers have to be told apart.
    pub mark: Option<RunMark>,
    /// What carries the requests.
    pub transport: Transport,
}

/// What a crowd does in a phase.
#[derive(Debug)]
pub struct ChurnPhase {
    /// Seed, group and phase of the draws; the client is filled in.
    pub place: Place,
    /// When the phase begins.
    pub begin: Nanos,
    /// When it ends: clients that are due later do not come, and those who are there go.
    pub end: Nanos,
    /// When clients come.
    pub births: Births,
    /// Requests of all clients together, over all workers; `u64::MAX`: as many as the time allows.
    pub requests: u64,
    /// Requests of one client.
    pub calls: u64,
    /// Most requests that one has outstanding.
    pub depth: u32,
    /// The first request of a client is due when its connection is open, and each other one tells when the next is;
    /// otherwise they are made in closed loop.
    pub told: bool,
    /// Whether a slot rests after a connection that failed, and a server that is silent for too long is given up.
    /// Otherwise each client comes when it is due, whatever became of those before it.
    pub paced: bool,
}

/// When clients come.
#[derive(Debug)]
pub enum Births {
    /// As soon as there is a slot.
    Closed,
    /// By a schedule of all clients of the group.
    Scheduled(Schedule),
    /// The first at once, each other one such a gap later.
    Drawn(Draws),
}

/// The crowd of a worker.
#[derive(Debug)]
pub(super) struct Crowd {
    churn_limits: ChurnLimits,
    /// What it does; `None` in phases where its clients stay.
    churn_phase: Option<ChurnPhase>,
    /// Number of the client that comes next, over all workers, and when it is due; `None`: no other comes.
    next: Option<(u64, Nanos)>,
    /// Where the coming has a grain: those who are due before this wait until then.
    gate: Nanos,
    /// Seats that nobody has, and since when.
    free: Vec<(u32, Nanos)>,
    /// Seats whose last connections failed: until when no client takes them, which they are, and since when nobody has
    /// them. At most as many as there are entries.
    resting: BinaryHeap<Reverse<(Nanos, u32, Nanos)>>,
    /// How many clients may be there at one time: the limit, or fewer where the machine had no descriptor for more.
    room: usize,
    /// When `room` grows by one; [`NEVER`] where it is the limit.
    room_grows_at: Nanos,
    /// Requests that are never made, because their servers were given up.
    missing: u64,
    /// What is known of those who have a slot.
    lives: Vec<Life>,
    /// How many are there.
    alive: usize,
    /// How many of them have an open connection.
    open: u64,
    /// Which of a server's addresses worked last.
    attempt: u32,
}

/// The life of a client.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    here: bool,
    /// When its connection was asked for.
    asked_at: Nanos,
    was_open: bool,
    failure: Option<Failure>,
    /// Addresses that were tried.
    tries: u32,
    /// Bytes of a reply that is not whole yet.
    pending_bytes: u64,
}

const NOBODY: Life =
    Life { number: 0, here: false, asked_at: 0, was_open: false, failure: None, tries: 0, pending_bytes: 0 };

impl ChurnPhase {
    /// How many requests clients were to make that are due before `end`, of client `number`, which is due at `due`, and
    /// every `turns`-th after it. None in closed loop, where nobody is due before there is a slot.
    fn calls_before(&mut self, end: Nanos, number: u64, due: Nanos, turns: u64) -> Passed {
        if due >= end {
            return Passed::default();
        }
        let (calls, requests, after) = (self.calls, self.requests, number + 1);
        let last = if requests == u64::MAX { u64::MAX } else { requests.div_ceil(calls) };
        let (most, draws_max) = (last.saturating_sub(after), unsent::draws_to_mark(after));
        let clients = match &mut self.births {
            Births::Closed => return Passed::default(),
            Births::Scheduled(schedule) => schedule.pass(end.saturating_sub(self.begin), most, draws_max),
            Births::Drawn(gaps) => unsent::pass_drawn(gaps, due, end, most, draws_max),
        };
        unsent::calls_of_waiting(number, clients, turns, calls, requests)
    }
}

impl Crowd {
    pub(super) fn new(churn_limits: ChurnLimits, entries: usize) -> Crowd {
        Crowd {
            churn_limits,
            churn_phase: None,
            next: None,
            gate: 0,
            free: Vec::new(),
            resting: BinaryHeap::new(),
            room: churn_limits.limit,
            room_grows_at: NEVER,
            missing: 0,
            lives: vec![NOBODY; entries],
            alive: 0,
            open: 0,
            attempt: 0,
        }
    }

    /// Goes on to the next client that is this worker's.
    fn advance(&mut self) {
        let Some(churn_phase) = &mut self.churn_phase else { return };
        let (turn, turns) = self.churn_limits.turn;
        let (mut number, mut due) = match self.next {
            Some((number, due)) => (number + 1, due),
            None => (0, churn_phase.begin),
        };
        let mut is_first = self.next.is_none();
        loop {
            due = match &mut churn_phase.births {
                Births::Closed => due,
                Births::Scheduled(schedule) => churn_phase.begin.saturating_add(schedule.next()),
                Births::Drawn(_) if is_first => due,
                Births::Drawn(gaps) => due.saturating_add(gaps.draw_ns()),
            };
            is_first = false;
            if number % turns == turn {
                break;
            }
            number += 1;
        }
        let comes = due < churn_phase.end && number.saturating_mul(churn_phase.calls) < churn_phase.requests;
        self.next = comes.then_some((number, due));
    }

    /// Nobody comes any more.
    fn shut(&mut self) {
        self.next = None;
        if let Some(churn_phase) = &mut self.churn_phase {
            churn_phase.requests = 0;
        }
    }

    /// From when on a client may come; [`NEVER`] as long as another one has to go first.
    fn seat_at(&self) -> Nanos {
        if self.alive >= self.room {
            return self.room_grows_at;
        }
        if !self.free.is_empty() || self.lives.len() < self.churn_limits.limit {
            return 0;
        }
        self.resting.peek().map_or(NEVER, |Reverse((until, ..))| *until)
    }

    /// When somebody comes, or nobody comes any more; [`NEVER`] as long as somebody has to go first.
    fn next_time(&self) -> Nanos {
        match (&self.churn_phase, self.next) {
            (Some(churn_phase), Some((_, due))) => {
                due.max(self.gate).max(self.seat_at()).min(churn_phase.end)
            }
            _ => NEVER,
        }
    }

    /// Seats that have rested are free again, and after a shortage of descriptors one client more may come.
    fn recover(&mut self, now: Nanos) {
        while let Some(&Reverse((_, slot, since))) = self.resting.peek().filter(|rest| rest.0.0 <= now) {
            self.resting.pop();
            self.free.push((slot, since));
        }
        if self.alive >= self.room && self.room_grows_at <= now {
            self.room += 1;
            let is_whole = self.room >= self.churn_limits.limit;
            self.room_grows_at = if is_whole { NEVER } else { now.saturating_add(SHORTAGE_NS) };
        }
    }

    /// The machine had no descriptor for a client, which has gone: no more come than are there now, for a while.
    fn run_short(&mut self, now: Nanos) {
        self.room = self.room.min(self.alive);
        self.room_grows_at = now.saturating_add(SHORTAGE_NS);
    }

    fn is_paced(&self) -> bool {
        self.churn_phase.as_ref().is_some_and(|churn_phase| churn_phase.paced)
    }

    /// Requests of the client with this number.
    fn calls_of(&self, number: u64) -> u64 {
        self.churn_phase.as_ref().map_or(0, |churn_phase| {
            churn_phase
                .calls
                .min(churn_phase.requests.saturating_sub(number.saturating_mul(churn_phase.calls)))
        })
    }

    /// Requests of this worker's clients that have not come; 0 where their number has no end.
    fn left(&self) -> u64 {
        let (Some(churn_phase), Some((next, _))) = (&self.churn_phase, self.next) else { return 0 };
        if churn_phase.requests == u64::MAX {
            return 0;
        }
        let clients = churn_phase.requests.div_ceil(churn_phase.calls.max(1));
        let (_, turns) = self.churn_limits.turn;
        let mine = clients.saturating_sub(next).div_ceil(turns);
        if mine == 0 {
            return 0;
        }
        (mine - 1).saturating_mul(churn_phase.calls).saturating_add(self.calls_of(next + (mine - 1) * turns))
    }
}

impl<C: Codec, B: Backend> Worker<C, B> {
    /// Clients are a crowd in phases for which [`Worker::begin_churn`] is called.
    pub fn churn_limits(mut self, churn_limits: Option<ChurnLimits>) -> Worker<C, B> {
        if churn_limits.is_some() {
            self.state.wheel = Wheel::exact();
        }
        self.state.crowd =
            churn_limits.map(|churn_limits| Box::new(Crowd::new(churn_limits, self.state.entries.len())));
        self
    }

    /// Before a phase in which clients come and go: all connections are closed, and all entries are free.
    ///
    /// # Panics
    /// When clients do not come and go in this run.
    pub fn begin_churn(&mut self, churn_phase: ChurnPhase) {
        let state = &mut self.state;
        for slot in 0..state.connections.len() {
            self.backend.close(state.id(slot), Close::Fin);
            let connection = &mut state.connections[slot];
            if connection.reset().is_opening() {
                state.openings.end_one();
            }
            state.entries[connection.client as usize].client.go();
        }
        let entries = state.entries.len();
        let crowd = state.crowd.as_mut().expect("the plan says that clients come and go");
        crowd.free = (0..entries).rev().map(|slot| (slot as u32, churn_phase.begin)).collect();
        crowd.resting.clear();
        (crowd.room, crowd.room_grows_at, crowd.missing) = (crowd.churn_limits.limit, NEVER, 0);
        crowd.lives.fill(NOBODY);
        (crowd.alive, crowd.open, crowd.next, crowd.gate) = (0, 0, None, 0);
        crowd.churn_phase = Some(churn_phase);
        crowd.advance();
        (state.churns, state.births_at) = (true, crowd.next_time());
    }
}

impl<C: Codec> WorkerState<C> {
    /// How many clients have something left to do, where they come and go.
    pub(super) fn crowd_active(&self) -> Option<usize> {
        let crowd = self.crowd.as_ref().filter(|crowd| crowd.churn_phase.is_some())?;
        Some(crowd.alive + usize::from(crowd.next.is_some()))
    }

    /// The run is interrupted: nobody comes any more. Those who were due and waited for a slot have asked nothing.
    pub(super) fn shut_crowd(&mut self, now: Nanos) {
        let Some(crowd) = &self.crowd else { return };
        if let Some(churn_phase) = &crowd.churn_phase {
            let end = churn_phase.end.min(now);
            self.turn_away(end);
        }
        self.births_at = NEVER;
    }

    /// Wakes those who are there.
    pub(super) fn wake_crowd(&mut self) {
        for slot in 0..self.entries.len() {
            if self.crowd().lives[slot].here {
                self.wake(slot);
            }
        }
    }

    /// The phase is over: everybody is gone.
    pub(super) fn end_crowd(&mut self, backend: &mut impl Backend, now: Nanos) {
        for slot in 0..self.entries.len() {
            if self.churns && self.crowd().lives[slot].here {
                self.retire(slot, backend, now);
            }
        }
        if let Some(crowd) = &mut self.crowd {
            crowd.churn_phase = None;
        }
        (self.churns, self.births_at) = (false, NEVER);
    }

    fn crowd(&mut self) -> &mut Crowd {
        self.crowd.as_mut().expect("asked only where clients come and go")
    }

    /// Lets those come whose time it is, as far as there are entries.
    pub(super) fn spawn(&mut self, backend: &mut impl Backend, now: Nanos) {
        let mut last_due = None;
        for _ in 0..BIRTHS_TURN {
            let crowd = self.crowd();
            let end = crowd.churn_phase.as_ref().map_or(0, |churn_phase| churn_phase.end);
            let Some((number, due)) = crowd.next.filter(|(_, due)| *due <= now) else { break };
            if now >= end {
                self.turn_away(end);
                break;
            }
            if crowd.is_paced() && self.is_given_up(number, now) {
                if !self.pass_over(number, now) {
                    break;
                }
                continue;
            }
            let crowd = self.crowd();
            crowd.recover(now);
            if crowd.seat_at() > now {
                break;
            }
            crowd.advance();
            last_due = Some(due);
            let (slot, since) = self.free_slot();
            let due = match self.crowd().churn_phase.as_ref().map(|churn_phase| &churn_phase.births) {
                // Its turn came when the slot was left.
                Some(Births::Closed) => since.max(due),
                _ => due,
            };
            self.come(slot, number, due, backend, now);
        }
        let crowd = self.crowd();
        let is_grainy = matches!(&crowd.churn_phase, Some(ChurnPhase { births: Births::Drawn(_), .. }));
        let all_came = crowd.next.is_none_or(|(_, due)| due > now);
        if let Some(due) = last_due.filter(|_| is_grainy && all_came) {
            crowd.gate = due.saturating_add(GRAIN_NS);
        }
        self.count_crowd();
    }

    /// Whether the server of the client with this number has been silent for too long to be asked again.
    fn is_given_up(&self, number: u64, now: Nanos) -> bool {
        self.gives_up((number % self.servers.len() as u64) as u32, now)
    }

    /// The next client, with this number, does not come, since its server was given up. Says whether others may.
    fn pass_over(&mut self, number: u64, now: Nanos) -> bool {
        let (_, turns) = self.crowd().churn_limits.turn;
        // The next clients of this worker, as many as there are servers, go to all servers that it talks to.
        let servers = self.servers.len() as u64;
        let all_are_given_up =
            (0..servers).all(|ahead| self.is_given_up(number.wrapping_add(ahead * turns), now));
        let crowd = self.crowd();
        let is_closed = matches!(&crowd.churn_phase, Some(ChurnPhase { births: Births::Closed, .. }));
        if all_are_given_up {
            let requests = crowd.left();
            let unsent = self.turn_away(now);
            self.crowd().missing += requests.saturating_sub(unsent);
            return false;
        }
        let (calls, group) = (crowd.calls_of(number), crowd.churn_limits.group);
        let place =
            crowd.churn_phase.as_ref().map(|churn_phase| Place { client: number, ..churn_phase.place });
        crowd.advance();
        match is_closed {
            true => crowd.missing += calls,
            false => {
                let (reporter, passed) = (&mut self.reporter, Passed::exactly(calls));
                let bits = |nth| place.map_or(0, |place| Stream::new(place, Use::Op).draw(nth));
                unsent::tell(passed, DEPARTURE_DRAWS_MAX, &self.shared, bits, |unsent| {
                    reporter.unsent(group, unsent)
                });
            }
        }
        true
    }

    /// Requests that were never made in this phase because their servers were given up.
    pub(super) fn crowd_missing(&mut self) -> u64 {
        self.crowd.as_mut().map_or(0, |crowd| std::mem::take(&mut crowd.missing))
    }

    /// The time is over: those who were due and found no slot have asked nothing. Returns how many requests those are.
    fn turn_away(&mut self, end: Nanos) -> u64 {
        let mut unsent = 0;
        let crowd = self.crowd.as_mut().expect("asked only where clients come and go");
        let ChurnLimits { group, turn: (_, turns), .. } = crowd.churn_limits;
        if let (Some((number, due)), Some(churn_phase)) = (crowd.next, &mut crowd.churn_phase) {
            let calls = churn_phase.calls_before(end, number, due, turns);
            // Requests of the clients that are this worker's, one after the other.
            let bits = |nth: u64| {
                let client = number + nth / churn_phase.calls * turns;
                Stream::new(Place { client, ..churn_phase.place }, Use::Op).draw(nth % churn_phase.calls)
            };
            let reporter = &mut self.reporter;
            unsent::tell(calls, DRAWS_MAX, &self.shared, bits, |unsent| reporter.unsent(group, unsent));
            unsent = calls.requests;
        }
        crowd.shut();
        unsent
    }

    /// How many have something left to do, and when something has to be done.
    fn count_crowd(&mut self) {
        self.births_at = self.crowd().next_time();
        self.active = self.crowd_active().unwrap_or(self.active);
    }

    /// A slot that nobody has, and since when; a new one where all are taken.
    fn free_slot(&mut self) -> (usize, Nanos) {
        let crowd = self.crowd();
        if let Some((slot, since)) = crowd.free.pop() {
            return (slot as usize, since);
        }
        let (slot, churn_limits) = (crowd.lives.len(), crowd.churn_limits);
        let begin = crowd.churn_phase.as_ref().map_or(0, |churn_phase| churn_phase.begin);
        crowd.lives.push(NOBODY);
        let (turn, turns) = churn_limits.turn;
        let writer = churn_limits.mark.map(|mark| Writer::new(mark, slot as u64 * turns + turn));
        let client = Client::new(churn_limits.group, 0, 0, writer);
        self.entries.push(ClientEntry { client, due: NEVER, woken: false });
        let mut connection = Connection::new(slot, 1, churn_limits.depth);
        connection.session.speak(self.codec.renew());
        self.connections.push(connection);
        self.endpoints.push(Endpoint { server: 0, connection: 0, transport: churn_limits.transport });
        self.reporter.make_room(self.connections.len());
        (slot, begin)
    }

    /// A client comes and asks for its connection.
    fn come(&mut self, slot: usize, number: u64, due: Nanos, backend: &mut impl Backend, now: Nanos) {
        let server = (number % self.servers.len() as u64) as u32;
        let crowd = self.crowd();
        crowd.lives[slot] = Life { number, here: true, ..NOBODY };
        crowd.alive += 1;
        let endpoint = &mut self.endpoints[slot];
        (endpoint.server, endpoint.connection) = (server, number);
        let (assignment, _) = self.assignment_of(number, due);
        let client = &mut self.entries[slot].client;
        client.succeed(number, server);
        client.begin(assignment, None);
        if let Some(churn) = self.reporter.churn() {
            churn.begun += 1;
        }
        match self.entries[slot].client.poll(now, &mut self.shared) {
            Wish::Open(_) => self.dial(slot, backend),
            _ => self.retire(slot, backend, now),
        }
    }

    /// What a client does that comes at `begin`, and whether it is told when its requests are due.
    fn assignment_of(&mut self, number: u64, begin: Nanos) -> (PhaseAssignment, bool) {
        let Some(churn_phase) = &self.crowd().churn_phase else {
            unreachable!("clients come when they are called")
        };
        let requests = churn_phase
            .calls
            .min(churn_phase.requests.saturating_sub(number.saturating_mul(churn_phase.calls)));
        let place = Place { client: number, ..churn_phase.place };
        let assignment = PhaseAssignment {
            place,
            begin,
            end: churn_phase.end,
            requests,
            depth: churn_phase.depth,
            repeats: 0,
            late: Late::Kept,
            spacing_ns: 0,
        };
        (assignment, churn_phase.told)
    }

    /// Asks for a connection.
    fn dial(&mut self, slot: usize, backend: &mut impl Backend) {
        let at = backend.now();
        let connection = &mut self.connections[slot];
        if !connection.dial(at) {
            return;
        }
        if !connection.in_wheel {
            connection.in_wheel = true;
            self.wheel.insert(slot as u32, at.saturating_add(self.limits.timeout_ns));
        }
        let id = connection.id(slot);
        let Endpoint { server, connection: number, transport } = self.endpoints[slot];
        let crowd = self.crowd.as_mut().expect("asked only where clients come and go");
        if crowd.lives[slot].tries == 0 {
            crowd.lives[slot].asked_at = at;
            if let Some(churn) = self.reporter.churn() {
                churn.asked += 1;
            }
        }
        let target = self.servers[server as usize].target_over(transport, number, crowd.attempt as usize);
        self.reporter.dialled();
        backend.open(id, &target);
    }

    /// The connection of a client is open.
    pub(super) fn crowd_opened(&mut self, slot: usize, since: Nanos, now: Nanos) {
        let crowd = self.crowd();
        crowd.open += 1;
        let (open, number) = (crowd.open, crowd.lives[slot].number);
        crowd.lives[slot].was_open = true;
        self.reporter.opened(self.endpoints[slot].server, now.saturating_sub(since), false);
        if let Some(churn) = self.reporter.churn() {
            churn.established += 1;
            churn.alive_max = churn.alive_max.max(open);
            churn.connect.record(now.saturating_sub(since));
        }
        let (assignment, told) = self.assignment_of(number, now);
        let client = &mut self.entries[slot].client;
        client.handle_opened(0, now);
        if told {
            client.begin(assignment, Some(Schedule::told()));
        }
        self.wake(slot);
    }

    /// A connection is not there any more, or never came to be. Says whether it is to be tried by another address.
    pub(super) fn crowd_closed(&mut self, slot: usize, reason: Reason, now: Nanos) {
        let server = self.endpoints[slot].server;
        let addresses = self.servers[server as usize].addresses() as u32;
        let opening = self.connections[slot].opening_since();
        let is_opening = opening.is_some();
        let crowd = self.crowd();
        let life = &mut crowd.lives[slot];
        if is_opening && reason.fault == Fault::Refused && life.tries + 1 < addresses {
            life.tries += 1;
            crowd.attempt = crowd.attempt.wrapping_add(1);
            self.connections[slot].retry();
            let id = self.id(slot);
            return self.redials.push(id);
        }
        let failure = failure_of(&reason);
        let fault = reason.fault;
        match opening {
            Some(since) => {
                self.connections[slot].history.failures += 1;
                self.reporter.not_opened(server, reason);
                // Not the server's silence where the machine had no descriptor to ask it with.
                if !failure.is_before_asking() {
                    self.silence.missed(server, since);
                }
            }
            None => self.reporter.lost(server, Trouble::Lost(reason)),
        }
        self.fail(slot, failure, Loss::Closed(fault), now);
    }

    /// Tries those by another address whose first one refused.
    pub(super) fn redial(&mut self, backend: &mut impl Backend) {
        for id in std::mem::take(&mut self.redials) {
            let slot = id.slot as usize;
            if self.id(slot) == id && self.connections[slot].state() == State::Queued {
                self.dial(slot, backend);
            }
        }
    }

    /// A connection failed: what it owed ends, and so does its client.
    pub(super) fn fail(&mut self, slot: usize, failure: Failure, loss: Loss, now: Nanos) {
        self.miss(slot);
        self.reporter.failed(slot);
        self.crowd().lives[slot].failure = Some(failure);
        let connection = &mut self.connections[slot];
        if let State::Open | State::Full = connection.state() {
            connection.note_end(matches!(loss, Loss::Closed(_)));
        }
        self.end_session(slot, loss, false, now);
    }

    /// A client has nothing more to do, and goes.
    pub(super) fn retire(&mut self, slot: usize, backend: &mut impl Backend, now: Nanos) {
        let life = self.crowd().lives[slot];
        if !life.here {
            return;
        }
        let id = self.id(slot);
        if self.connections[slot].state() != State::Closed {
            backend.close(id, Close::Fin);
            self.connections[slot].reset();
        }
        self.note_retirement(slot, &life, now);
        self.count_rest(slot, &life, now);
        let client = &mut self.entries[slot].client;
        client.go();
        self.entries[slot].due = NEVER;
        let failures = self.connections[slot].history.failures_in_a_row();
        let crowd = self.crowd();
        crowd.lives[slot] = NOBODY;
        crowd.alive -= 1;
        crowd.open -= u64::from(life.was_open);
        match life.failure.filter(|_| crowd.is_paced()) {
            Some(failure) => {
                let until = now.saturating_add(retry_pause(failures));
                crowd.resting.push(Reverse((until, slot as u32, now)));
                if failure.is_before_asking() {
                    crowd.run_short(now);
                }
            }
            None => crowd.free.push((slot as u32, now)),
        }
        self.count_crowd();
    }

    fn note_retirement(&mut self, slot: usize, life: &Life, now: Nanos) {
        let calls = self.entries[slot].client.calls();
        self.reporter.retired(slot, || Departure {
            client: life.number,
            asked_at: life.asked_at,
            ended_at: now,
            was_open: life.was_open,
            calls,
            failure: life.failure.map(|failure| (failure, None)),
        });
        let Some(churn) = self.reporter.churn() else { return };
        churn.ended += 1;
        if life.was_open {
            churn.life.record(now.saturating_sub(life.asked_at));
        }
        if let Some(failure) = life.failure {
            churn.fail(failure);
            churn.asked -= u64::from(failure.is_before_asking());
        }
    }

    /// What a client was to ask and did not: all of it where its connection failed, otherwise what was due.
    fn count_rest(&mut self, slot: usize, life: &Life, now: Nanos) {
        let client = &mut self.entries[slot].client;
        let (reporter, group) = (&mut self.reporter, client.group());
        if life.failure.is_none() {
            if !client.is_told() {
                let draws_max = DEPARTURE_DRAWS_MAX;
                client
                    .count_unsent(now, &mut self.shared, draws_max, |unsent| reporter.unsent(group, unsent));
            }
            return;
        }
        client.tell_rest(&self.shared, DEPARTURE_DRAWS_MAX, |unsent| reporter.unsent(group, unsent));
    }

    /// Bytes came on a client's connection. Returns how many requests they answered.
    pub(super) fn crowd_received(&mut self, slot: usize, chunk: Chunk<'_>) -> Result<u32, Malformed> {
        let crowd = self.crowd.as_mut().expect("asked only where clients come and go");
        let connection = &mut self.connections[slot];
        let client = &mut self.entries[slot].client;
        let view = View::new(slot, connection.lane, client, &mut self.shared, &mut self.reporter);
        let before_bytes = crowd.lives[slot].pending_bytes;
        let mut scale = Scale { view, left_bytes: chunk.bytes.len(), before_bytes };
        let answered = connection.session.handle_received(chunk, &mut scale);
        crowd.lives[slot].pending_bytes = scale.before_bytes + scale.left_bytes as u64;
        answered
    }
}

/// A view that weighs replies.
struct Scale<'a> {
    view: View<'a>,
    /// Bytes of the chunk that belong to no reply so far.
    left_bytes: usize,
    /// Bytes of the reply that came before this chunk.
    before_bytes: u64,
}

impl Sink for Scale<'_> {
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed> {
        self.view.item(ticket, item)
    }

    fn body(&mut self, ticket: &Ticket, bytes: &[u8]) {
        self.view.body(ticket, bytes);
    }

    fn broken_off(&mut self) {
        self.view.broken_off();
    }

    fn quiet_error(&mut self, message: &[u8]) {
        self.view.quiet_error(message);
    }

    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        self.view.answer(answer, message);
    }

    fn passed(&mut self, left_bytes: usize) {
        self.view.reporter.weigh(self.before_bytes + (self.left_bytes - left_bytes) as u64);
        (self.left_bytes, self.before_bytes) = (left_bytes, 0);
    }
}
