//! The load model of clients that come, make their requests on connections of their own, close them and depart.
//!
//! A client has a slot for its lifetime. Slots are used again, and a new one is made only when all are taken. A client of one server
//! has one connection: if it fails, its client ends, it is counted once, and it has no effect on other clients. A client of a cluster
//! has connections to the nodes that its requests need: one that fails is opened again while a request needs it.

use pummel_logic::arrival::{Passed, Schedule};
use pummel_logic::client::{Action, Client, Lane};
use pummel_logic::connection::session::Chunk;
use pummel_logic::protocol::{Codec, Fault, Malformed};
use pummel_logic::rng::{Stream, Use};
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::unsent::{self, DRAWS_MAX};
use pummel_logic::workload::verify::stale::Writer;
use pummel_measure::churn::ConnectionFailure;
use pummel_measure::trouble::CloseReason;
use pummel_measure::trouble::{Trouble, says_full};

use crate::backend::dial::failure_of;
use crate::backend::{Backend, Close, ConnId};
use crate::worker::connections::{AttemptHistory, Connection, ConnectionState};
use crate::worker::load_model::{LoadModel, Resident};
use crate::worker::opening::retry_pause;
use crate::worker::population::lifetime::{DEPARTURE_DRAWS_MAX, Lifetime};
use crate::worker::population::slots::Slots;
use crate::worker::population::spawner::{ChurnLimits, ChurnPhase, Spawner};
use crate::worker::replies::{Replies, ReplyBytes};
use crate::worker::setup::Endpoint;
use crate::worker::state::{ClientEntry, CloseCause, Loss, WorkerState};

/// Most clients that come in one turn, so that the others are served as well.
const SPAWNS_PER_TURN: usize = 64;

/// Fault of the first words of a server that takes no more connections.
const FULL: Malformed = Malformed("a reply to no request");

/// The load model of clients that come and go in the phases that [`Churning::begin_phase`] begins. In all other phases,
/// such as loading, these clients stay.
#[derive(Debug)]
pub struct Churning {
    limits: ChurnLimits,
    /// The source of the next clients; `None` in phases where clients stay.
    spawner: Option<Spawner>,
    slots: Slots,
    /// The lifetime of the client in each slot.
    lifetimes: Vec<Lifetime>,
    /// The number of each client in phases where clients stay, by its slot. Noted before the first phase in which clients come and go.
    staying: Vec<u64>,
    /// The endpoints of the connections of these clients.
    endpoints: Vec<Endpoint>,
    /// Received bytes of a reply that is not whole yet, for each connection.
    pending_bytes: Vec<u64>,
    /// Number of open connections.
    open: u64,
    /// Requests that are never made, because their servers were given up.
    missing: u64,
    /// Index of the server's address that worked last.
    attempt: u32,
    /// Time at which the next client comes or the phase ends; [`NEVER`] if a client has to depart first, and in
    /// phases in which clients stay.
    next_due: Nanos,
    /// Connections to be tried again at once, by another address.
    redials: Vec<ConnId>,
}

impl Churning {
    /// A population without clients, with room for those in `slots` slots, which have so many connections.
    pub fn new(limits: ChurnLimits, (slots, connections): (usize, usize)) -> Churning {
        Churning {
            limits,
            spawner: None,
            slots: Slots::new(limits.limit, slots, 0),
            lifetimes: vec![Lifetime::VACANT; slots],
            staying: Vec::with_capacity(slots),
            endpoints: Vec::new(),
            pending_bytes: vec![0; connections],
            open: 0,
            missing: 0,
            attempt: 0,
            next_due: NEVER,
            redials: Vec::new(),
        }
    }

    /// Begins a phase in which clients come and go: closes all connections and frees all slots.
    pub fn begin_phase<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        phase: ChurnPhase,
        backend: &mut dyn Backend,
    ) {
        if self.staying.is_empty() {
            self.staying.extend(state.entries.iter().map(|entry| entry.client.number()));
            self.endpoints.clone_from(&state.endpoints);
        }
        for slot in 0..state.connections.len() {
            state.reset(slot, backend);
        }
        for entry in &mut state.entries {
            entry.client.depart();
            entry.client.open_on_demand(true);
        }
        state.openings.lift_limit(true);
        self.slots = Slots::new(self.limits.limit, state.entries.len(), phase.begin);
        self.lifetimes.fill(Lifetime::VACANT);
        (self.open, self.missing) = (0, 0);
        let spawner = Spawner::new(phase, self.limits.share);
        self.next_due = spawner.next_due(self.slots.free_at());
        self.spawner = Some(spawner);
    }

    /// Gives the slots back to the clients that stay, for the phases in which they work. The clients of other slots want nothing
    /// before the next client comes to them.
    fn bring_back<C: Codec>(&self, state: &mut WorkerState<C>, now: Nanos) {
        state.openings.lift_limit(false);
        state.endpoints[..self.endpoints.len()].copy_from_slice(&self.endpoints);
        for (client, &number) in self.staying.iter().enumerate() {
            let slot = state.lanes.slot_of(client, 0);
            let client = &mut state.entries[client].client;
            client.renew(number, self.endpoints[slot].server);
            client.open_on_demand(false);
            if let Some(view) = state.maker.cluster() {
                (0..state.lanes.count() as Lane).for_each(|lane| {
                    client.note_member(lane, view.is_member(lane));
                });
            }
        }
        for entry in &mut state.entries[self.staying.len()..] {
            entry.client.stop(now);
        }
    }

    /// Number of clients that have something left to do. All clients that have not come yet count as one.
    fn active(&self) -> usize {
        let comes = self.spawner.as_ref().is_some_and(|spawner| spawner.next().is_some());
        self.slots.alive() + usize::from(comes)
    }

    fn is_paced(&self) -> bool {
        self.spawner.as_ref().is_some_and(|spawner| spawner.phase().paced)
    }

    /// Skips the next client, whose number this is, since its server was given up. Returns whether other clients may
    /// come.
    fn skip_next<C: Codec>(&mut self, state: &mut WorkerState<C>, number: u64, now: Nanos) -> bool {
        let (_, workers) = self.limits.share;
        // The next clients of this worker, as many as there are servers, go to all servers of its clients. A cluster is all of them.
        let servers = state.servers.len() as u64;
        let all_are_given_up =
            (0..servers).all(|ahead| is_given_up(state, number.wrapping_add(ahead * workers), now));
        let Some(spawner) = &mut self.spawner else { return false };
        if all_are_given_up {
            let requests = spawner.left();
            let unsent = self.end_spawning(state, now);
            self.missing += requests.saturating_sub(unsent);
            return false;
        }
        let (calls, place, group) = (spawner.calls_of(number), spawner.draws_of(number), self.limits.group);
        spawner.advance();
        if spawner.is_closed_loop() {
            self.missing += calls;
        } else {
            let (reporter, passed) = (&mut state.reporter, Passed::exactly(calls));
            let bits = |nth| Stream::new(place, Use::Op).draw(nth);
            unsent::report(passed, DEPARTURE_DRAWS_MAX, &state.maker, bits, |unsent| {
                reporter.unsent(group, unsent)
            });
        }
        true
    }

    /// Ends the arrivals at `end`. Counts the requests of clients that were due and found no slot as unsent, and
    /// returns their number.
    fn end_spawning<C: Codec>(&mut self, state: &mut WorkerState<C>, end: Nanos) -> u64 {
        let Some(spawner) = &mut self.spawner else { return 0 };
        let ChurnLimits { group, share: (_, workers), .. } = self.limits;
        let mut unsent = 0;
        if let Some((number, _)) = spawner.next() {
            let passed = spawner.calls_before(end);
            let calls = spawner.phase().calls;
            // The draws of the requests of this worker's clients, one after the other.
            let bits = |nth: u64| {
                let place = spawner.draws_of(number + nth / calls * workers);
                Stream::new(place, Use::Op).draw(nth % calls)
            };
            let reporter = &mut state.reporter;
            unsent::report(passed, DRAWS_MAX, &state.maker, bits, |unsent| reporter.unsent(group, unsent));
            unsent = passed.requests;
        }
        spawner.end();
        unsent
    }

    /// Updates the number of clients that have something left to do, and when the next client comes.
    fn count<C: Codec>(&mut self, state: &mut WorkerState<C>) {
        if let Some(spawner) = &self.spawner {
            self.next_due = spawner.next_due(self.slots.free_at());
            state.active = self.active();
        }
    }

    /// Takes a slot without a client, or makes one where all are taken. Returns the slot and since when it is free.
    fn take_slot<C: Codec>(&mut self, state: &mut WorkerState<C>) -> (usize, Nanos) {
        if let Some(free) = self.slots.take() {
            return free;
        }
        let (slot, limits) = (self.lifetimes.len(), self.limits);
        self.lifetimes.push(Lifetime::VACANT);
        let (worker, workers) = limits.share;
        let writer = limits.mark.map(|mark| Writer::new(mark, slot as u64 * workers + worker));
        let mut client = Client::new(limits.group, 0, 0, writer);
        if !state.lanes.are_single() {
            let servers: Vec<u32> = (0..state.lanes.count() as u32).collect();
            client = client.with_lanes(&servers).of_cluster();
            client.open_on_demand(true);
        }
        state.entries.push(ClientEntry::new(client));
        for lane in 0..state.lanes.count() as Lane {
            state.connections.push(Connection::new((slot, lane), limits.depth));
            state.endpoints.push(Endpoint { server: lane.into(), rank: 0, transport: limits.transport });
            self.pending_bytes.push(0);
        }
        state.reporter.make_room(state.connections.len());
        (slot, self.spawner.as_ref().map_or(0, |spawner| spawner.phase().begin))
    }

    /// Lets client `number` come into `slot`. A client of one server asks for its connection.
    fn spawn<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        number: u64,
        due: Nanos,
        backend: &mut dyn Backend,
        now: Nanos,
    ) {
        let Some(spawner) = &self.spawner else { return };
        let servers = state.servers.len() as u64;
        let server = (number % servers) as u32;
        let first = spawner.first_of(number);
        self.lifetimes[slot] = Lifetime { number, is_alive: true, first, ..Lifetime::VACANT };
        let is_single = state.lanes.are_single();
        match &mut state.endpoints[state.lanes.slots_of(slot)] {
            [endpoint] => (endpoint.server, endpoint.rank) = (server, number / servers),
            endpoints => endpoints.iter_mut().for_each(|endpoint| endpoint.rank = number),
        }
        let client = &mut state.entries[slot].client;
        client.renew(number, server);
        client.begin(spawner.assignment_of(number, due), None);
        client.go_on_from(first);
        if let Some(churn) = state.reporter.churn() {
            churn.begun += 1;
        }
        state.reporter.client_begun();
        if !is_single {
            self.lifetimes[slot].asked_at = now;
            return state.wake(slot);
        }
        match client.poll(now, &mut state.maker) {
            Action::Open(_) => self.dial(state, slot, backend),
            _ => self.retire(state, slot, backend, now),
        }
    }

    /// Asks for the connection of the client in `slot`.
    fn dial<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, backend: &mut dyn Backend) {
        let at = backend.now();
        let lifetime = &mut self.lifetimes[slot];
        if lifetime.tries == 0 {
            lifetime.asked_at = at;
        }
        state.reporter.dialled();
        state.dial(slot, self.attempt, at, at, backend);
    }

    /// Ends the outstanding requests of a connection that failed, and its client.
    fn fail<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        failure: ConnectionFailure,
        cause: CloseCause,
        now: Nanos,
    ) {
        self.count_end(state, slot, (state.connections[slot].state(), Some(failure)), now);
        state.note_missed_replies(slot);
        state.reporter.failed(slot);
        self.lifetimes[slot].failure = Some(failure);
        let connection = &mut state.connections[slot];
        if connection.state().is_open() {
            connection.note_end(matches!(cause, CloseCause::Closed(_)));
        }
        state.end_session::<Resident<false>>(slot, Loss { cause, again: false }, now);
    }

    /// Handles that the connection in `slot`, of a client of a cluster, was closed or could not be opened. The client goes on.
    fn handle_lane_closed<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        reason: CloseReason,
        now: Nanos,
    ) {
        let (before, failure) = (state.connections[slot].state(), failure_of(&reason));
        Resident::<false>.handle_closed(state, slot, reason, now);
        if state.connections[slot].state() == ConnectionState::Queued {
            // The next address of the node is tried.
            return;
        }
        self.count_end(state, slot, (before, Some(failure)), now);
        if failure.is_before_connect() {
            self.slots.note_shortage(now);
            self.count(state);
        }
    }

    /// Ends the attempts to open connections of a cluster's client that would be given up a moment later: its requests, which were due a
    /// moment earlier, are.
    fn end_hanging<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        if state.lanes.are_single() {
            return;
        }
        let waited_ns = state.limits.timeout_ns / 10 * 9;
        for slot in state.lanes.slots_of(client) {
            let since = state.connections[slot].waits_to_open_since();
            if since.is_some_and(|since| now >= since.saturating_add(waited_ns)) {
                backend.close(state.id(slot), Close::Fin);
                self.handle_lane_closed(state, slot, CloseReason::new(Fault::Timeout, 0), now);
            }
        }
    }

    /// Counts that the connection in `slot`, which was being opened since `since`, is open.
    fn count_opened<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, since: Nanos, now: Nanos) {
        self.open += 1;
        self.lifetimes[state.connections[slot].client as usize].was_open = true;
        if let Some(churn) = state.reporter.churn() {
            churn.asked += 1;
            churn.established += 1;
            churn.alive_max = churn.alive_max.max(self.open);
            churn.connect.record(now.saturating_sub(since));
        }
    }

    /// Counts the end of the connection in `slot`, or of the attempt to open it: it failed, or its client closed it. `before` is the
    /// state of the connection before its end.
    fn count_end<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        (before, failure): (ConnectionState, Option<ConnectionFailure>),
        now: Nanos,
    ) {
        if self.spawner.is_none() {
            return;
        }
        let connection = &state.connections[slot];
        let since = match state.lanes.are_single() {
            // Several addresses may have been tried.
            true => self.lifetimes[slot].asked_at,
            false => connection.dialled_at(),
        };
        if before.is_open() {
            self.open -= 1;
            if failure.is_none() {
                state.reporter.closed();
            }
        }
        let Some(churn) = state.reporter.churn() else { return };
        if before.is_open() {
            churn.life.record(now.saturating_sub(since));
        }
        let is_before_connect = failure.is_some_and(ConnectionFailure::is_before_connect);
        churn.asked += u64::from(before.is_opening() && !is_before_connect);
        if let Some(failure) = failure {
            churn.fail(failure);
        }
    }

    /// Lets the client in `slot` depart, since it has nothing left to do.
    fn retire<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        let lifetime = self.lifetimes[slot];
        if !lifetime.is_alive {
            return;
        }
        for slot in state.lanes.slots_of(slot) {
            let connection = &state.connections[slot];
            let (was, history) = (connection.state(), connection.history);
            if was != ConnectionState::Closed {
                self.close(state, slot, backend, now);
            }
            // The failures of a lane that was not opened since count for the next client too.
            let kept = if was.is_open() { AttemptHistory::default() } else { history };
            state.connections[slot].history =
                AttemptHistory { attempt: history.attempt, opened: false, ..kept };
        }
        let first = state.lanes.slot_of(slot, 0);
        let failures = state.connections[first].history.failures_in_a_row();
        lifetime.report_end(state, slot, now);
        lifetime.count_rest(state, slot, now);
        let entry = &mut state.entries[slot];
        entry.client.depart();
        entry.due = NEVER;
        self.lifetimes[slot] = Lifetime::VACANT;
        match lifetime.failure.filter(|_| self.is_paced()) {
            Some(failure) => {
                self.slots.release_paused(slot, now, now.saturating_add(retry_pause(failures)));
                if failure.is_before_connect() {
                    self.slots.note_shortage(now);
                }
            }
            None => self.slots.release(slot, now),
        }
        self.count(state);
    }
}

impl LoadModel for Churning {
    type Account = Resident<false>;

    #[inline]
    fn next_due(&self) -> Nanos {
        self.next_due
    }

    fn poll<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend, now: Nanos) {
        let mut last_due = None;
        for _ in 0..SPAWNS_PER_TURN {
            let Some(spawner) = &mut self.spawner else { break };
            let Some((number, due)) = spawner.next().filter(|(_, due)| *due <= now) else { break };
            let end = spawner.phase().end;
            if now >= end {
                self.end_spawning(state, end);
                break;
            }
            if spawner.gives_up() && is_given_up(state, number, now) {
                if !self.skip_next(state, number, now) {
                    break;
                }
                continue;
            }
            self.slots.recover(now);
            if self.slots.free_at() > now {
                break;
            }
            spawner.advance();
            last_due = Some(due);
            let is_closed_loop = spawner.is_closed_loop();
            let (slot, since) = self.take_slot(state);
            // In closed loop a client is due when its slot became free.
            let due = if is_closed_loop { since.max(due) } else { due };
            self.spawn(state, slot, number, due, backend, now);
        }
        if let (Some(spawner), Some(due)) = (&mut self.spawner, last_due) {
            spawner.hold_after(due, now);
        }
        self.count(state);
    }

    #[inline]
    fn redial<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend) {
        for id in std::mem::take(&mut self.redials) {
            let slot = id.slot as usize;
            if state.id(slot) == id && state.connections[slot].state() == ConnectionState::Queued {
                self.dial(state, slot, backend);
            }
        }
    }

    fn end_phase<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        backend: &mut dyn Backend,
        now: Nanos,
    ) -> u64 {
        if self.spawner.is_some() {
            for slot in 0..state.entries.len() {
                if self.lifetimes[slot].is_alive {
                    self.retire(state, slot, backend, now);
                }
            }
            for connection in &mut state.connections {
                // Failures count for the next clients of one phase.
                connection.reset();
            }
            self.bring_back(state, now);
        }
        (self.spawner, self.next_due) = (None, NEVER);
        std::mem::take(&mut self.missing)
    }

    fn comes_and_goes(&self) -> bool {
        self.spawner.is_some()
    }

    fn stop<C: Codec>(&mut self, state: &mut WorkerState<C>, now: Nanos) {
        if let Some(spawner) = &self.spawner {
            let end = spawner.phase().end.min(now);
            self.end_spawning(state, end);
        }
        self.next_due = NEVER;
    }

    fn wake_all<C: Codec>(&mut self, state: &mut WorkerState<C>) {
        if self.spawner.is_none() {
            return Resident::<false>.wake_all(state);
        }
        state.active = self.active();
        for slot in 0..state.entries.len() {
            if self.lifetimes[slot].is_alive {
                state.wake(slot);
            }
        }
    }

    fn open_lane<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        lane: Lane,
        now: Nanos,
    ) -> bool {
        // A slot without a client is free: the next one takes it when its arrival is due. A client of one server dials itself.
        if self.spawner.is_none() {
            return Resident::<false>.open_lane(state, client, lane, now);
        }
        let is_asked = !state.lanes.are_single() && self.lifetimes[client].is_alive;
        if is_asked {
            // A pause is over when it would be if the client that made the last attempt were still there.
            let last = state.connections[state.lanes.slot_of(client, lane)].dialled_at();
            state.enqueue(client, lane, last);
        }
        is_asked
    }

    fn close<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        self.count_end(state, slot, (state.connections[slot].state(), None), now);
        if self.spawner.is_none() || !state.lanes.are_single() {
            return state.reset(slot, backend);
        }
        // Its client has dialled it, and it had no turn among those that are being opened.
        backend.close(state.id(slot), Close::Fin);
        state.connections[slot].reset();
    }

    fn note_end<C: Codec>(&self, state: &mut WorkerState<C>, slot: usize, trouble: Trouble, now: Nanos) {
        match self.spawner.is_some() && state.lanes.are_single() {
            // Such clients have an account of their own of the connections that were refused.
            true => state.reporter.lost(state.endpoints[slot].server, trouble),
            false => state.note_end(slot, trouble, now),
        }
    }

    fn end_session<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        self.count_end(state, slot, (state.connections[slot].state(), None), now);
        Resident::<false>.end_session(state, slot, now);
    }

    fn handle_done<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        match self.spawner {
            Some(_) => {
                self.end_hanging(state, client, backend, now);
                self.retire(state, client, backend, now);
            }
            None => Resident::<false>.handle_done(state, client, backend, now),
        }
    }

    fn handle_received<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        chunk: Chunk<'_>,
    ) -> Result<u32, Malformed> {
        let connection = &mut state.connections[slot];
        if !connection.answered && says_full(chunk.bytes) {
            // The words belong to the connection, whether a request was sent by then or not.
            return Err(FULL);
        }
        let client = &mut state.entries[connection.client as usize].client;
        let mut replies = Replies::new(slot, connection.lane, client, &mut state.maker, &mut state.reporter);
        let pending_bytes = &mut self.pending_bytes[slot];
        replies.account = ReplyBytes::new(chunk.bytes.len(), *pending_bytes);
        let answered = connection.session.handle_received(chunk, &mut replies);
        *pending_bytes = replies.account.pending_bytes();
        let ended = replies.ended;
        state.reporter.ended(ended, chunk.read);
        answered
    }

    fn handle_opened<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, since: Nanos, now: Nanos) {
        self.pending_bytes[slot] = 0;
        if self.spawner.is_some() {
            self.count_opened(state, slot, since, now);
        }
        let Some(spawner) = self.spawner.as_ref().filter(|_| state.lanes.are_single()) else {
            return Resident::<false>.handle_opened(state, slot, since, now);
        };
        state.reporter.opened(state.endpoints[slot].server, now.saturating_sub(since), false);
        state.silence.opened(state.endpoints[slot].server);
        state.note_accepted(slot, now);
        let client = &mut state.entries[slot].client;
        client.handle_opened(0, now);
        if spawner.phase().has_call_gaps {
            client.begin(
                spawner.assignment_of(self.lifetimes[slot].number, now),
                Some(Schedule::set_by_caller()),
            );
            client.go_on_from(self.lifetimes[slot].first);
        }
        state.wake(slot);
    }

    fn handle_closed<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        reason: CloseReason,
        now: Nanos,
    ) {
        if self.spawner.is_none() {
            return Resident::<false>.handle_closed(state, slot, reason, now);
        }
        if !state.lanes.are_single() {
            return self.handle_lane_closed(state, slot, reason, now);
        }
        let server = state.endpoints[slot].server;
        let addresses = state.servers[server as usize].addresses() as u32;
        let connection = &mut state.connections[slot];
        let opening_since = connection.opening_since();
        let lifetime = &mut self.lifetimes[slot];
        if opening_since.is_some() && reason.fault == Fault::Refused && lifetime.tries + 1 < addresses {
            lifetime.tries += 1;
            self.attempt = self.attempt.wrapping_add(1);
            connection.retry();
            return self.redials.push(connection.id(slot));
        }
        let failure = failure_of(&reason);
        let fault = reason.fault;
        match opening_since {
            Some(since) => {
                connection.history.failures += 1;
                state.note_turned_away(server, &reason, now);
                state.reporter.not_opened(server, reason);
                // A machine without a descriptor for the connection says nothing about the server's silence.
                if !failure.is_before_connect() {
                    state.silence.refused(server, slot, since);
                }
            }
            None => state.reporter.lost(server, Trouble::Lost(reason)),
        }
        self.fail(state, slot, failure, CloseCause::Closed(fault), now);
    }

    fn lose<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, loss: Loss, now: Nanos) {
        if self.spawner.is_none() {
            return Resident::<false>.lose(state, slot, loss, now);
        }
        let failure = match loss.cause {
            CloseCause::TimedOut => ConnectionFailure::Timeout,
            CloseCause::Closed(Fault::Refused) => ConnectionFailure::Refused,
            CloseCause::Closed(_) => ConnectionFailure::Other,
        };
        if state.lanes.are_single() {
            return self.fail(state, slot, failure, loss.cause, now);
        }
        self.count_end(state, slot, (state.connections[slot].state(), Some(failure)), now);
        Resident::<false>.lose(state, slot, loss, now);
    }
}

/// Whether the server of the client with this number has been given up because it was silent for too long. Of a cluster, all nodes have to
/// be that were asked anything.
fn is_given_up<C: Codec>(state: &WorkerState<C>, number: u64, now: Nanos) -> bool {
    let Some(view) = state.maker.cluster() else {
        return state.gives_up((number % state.servers.len() as u64) as u32, now);
    };
    let mut asked = view.members().map(u32::from).filter(|&node| state.silence.was_asked(node)).peekable();
    asked.peek().is_some() && asked.all(|node| state.gives_up(node, now))
}
