//! One thread's whole work: the only loop there is.
//!
//! A turn: wake the clients whose time has come, send what they ask, wait, take in what happened. Nothing is sent from
//! inside a completion: what happened is taken in first, then all that follows from it is sent.

mod churn_account;
mod connections;
pub mod deadlines;
pub mod departures;
pub mod meeting;
pub mod messages;
pub mod opening;
pub mod population;
pub(crate) mod reporter;
pub mod silence;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSlice};
use std::sync::Arc;

use pummel_logic::client::{Client, Lane, Wish};
use pummel_logic::connection::inflight::{AnswerUse, Origin, Ticket};
use pummel_logic::connection::session::{Answer, Chunk, Item, OUTBOX_MAX_BYTES, Session, Sink};
use pummel_logic::measure::churn::Failure;
use pummel_logic::plan::Transport;
use pummel_logic::protocol::handshake::{Handshake, HandshakeProgress};
use pummel_logic::protocol::{Codec, Fault, Malformed};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_logic::unsent::Unsent;
use pummel_logic::workload::request::Shared;

use crate::backend::{Backend, Close, ConnId, Event, Handed, Reason};
use crate::resolve::Server;
use crate::worker::connections::{Connection, State};
use crate::worker::deadlines::Wheel;
use crate::worker::meeting::Meeting;
use crate::worker::messages::{PhaseFate, Trouble};
use crate::worker::opening::{OPENING_TURN, Openings, retry_pause};
use crate::worker::population::Crowd;
use crate::worker::reporter::WorkerReporter;
use crate::worker::silence::Silence;

/// The longest sleep: after it a worker looks whether the run was stopped.
const SLEEP_MAX_NS: Nanos = 50 * MILLISECOND;

/// Why no request can be refused by its codec.
const SAYABLE: &str = "a plan holds only what its protocol can say";

/// Requests that one client asks before the others get their turn.
const ASK_MAX: usize = 64;

/// Requests of one client that are given up in a turn, because their lane is not there, before the others get their
/// turn.
const GIVE_UP_MAX: usize = 1_024;

/// What a worker needs to know beside its clients.
#[derive(Clone, Debug)]
pub struct WorkerLimits {
    /// How long a request may take, and a connection to open.
    pub timeout_ns: Nanos,
    /// Whether connections that the server closed are opened again.
    pub reconnect: bool,
    /// How long a phase waits for its last answers.
    pub drain_ns: Nanos,
    /// How long a server may answer nothing while records are stored.
    pub load_patience_ns: Nanos,
    /// The same in any other phase that ends by the number of its requests alone.
    pub patience_ns: Nanos,
    /// Draws that are made at most to count what a client was to send and did not.
    pub unsent_draws_max: u64,
}

/// One client, and when it is its turn.
#[derive(Debug)]
pub struct ClientEntry {
    /// The client.
    pub client: Client,
    /// When it asked to be woken; [`NEVER`] if it is not in the queue of due times.
    due: Nanos,
    /// It waits to be polled.
    woken: bool,
}

/// Everything of a worker but its backend, so that what the backend hands over can be worked on.
#[derive(Debug)]
struct WorkerState<C> {
    limits: WorkerLimits,
    entries: Vec<ClientEntry>,
    /// Those of a client are neighbours, in the order of its lanes.
    connections: Vec<Connection<C>>,
    /// Connections of each client.
    lanes: usize,
    servers: Arc<[Server]>,
    /// Where each connection goes.
    endpoints: Vec<Endpoint>,
    shared: Shared,
    reporter: WorkerReporter,
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    wheel: Wheel,
    /// Clients that wait to be polled.
    woken: Vec<u32>,
    /// Connections with something to send, where clients have several.
    asked: Vec<u32>,
    expired: Vec<u32>,
    /// At most so many connections are congested: their socket is full and their outbox has reached its limit, so that
    /// their clients ask nothing.
    congested: usize,
    /// Congested connections whose socket takes bytes again.
    relieved: Vec<u32>,
    openings: Openings,
    /// Connections whose peer said what its protocol does not allow, to be closed; their slots may be others' by then.
    broken: Vec<ConnId>,
    /// Clients that have something left to do in this phase.
    active: usize,
    silence: Silence,
    /// Clients that come and go.
    crowd: Option<Box<Crowd>>,
    /// They do so in this phase.
    churns: bool,
    /// When the next of them comes; [`NEVER`] where all stay.
    births_at: Nanos,
    /// Connections to be tried by another address.
    redials: Vec<ConnId>,
    /// What new connections speak copies of.
    codec: C,
    /// After so long without an answer, connections to a server are not opened again.
    patience_ns: Nanos,
    /// When bytes were read last.
    read_at: Nanos,
}

/// One thread's clients, connections and measurements.
#[derive(Debug)]
pub struct Worker<C, B> {
    backend: B,
    state: WorkerState<C>,
}

impl<C: Codec, B: Backend> Worker<C, B> {
    /// A worker for these clients, without a connection yet.
    pub fn new(
        backend: B,
        crew: WorkerSetup,
        limits: WorkerLimits,
        shared: Shared,
        reporter: WorkerReporter,
    ) -> Worker<C, B> {
        let WorkerSetup { clients, lanes, servers, endpoints, depth, handshake } = crew;
        assert!(endpoints.len() == clients.len() * lanes, "every client has as many lanes");
        let count = endpoints.len();
        let wheel = Wheel::new(limits.timeout_ns, backend.now());
        let active = clients.len();
        let state = WorkerState {
            limits,
            connections: endpoints
                .iter()
                .enumerate()
                .map(|(slot, endpoint)| Connection::new(slot, lanes, depth).carried_by(endpoint.transport))
                .collect(),
            lanes,
            endpoints,
            shared,
            reporter,
            due: BinaryHeap::with_capacity(clients.len()),
            wheel,
            woken: Vec::with_capacity(clients.len()),
            asked: Vec::new(),
            expired: Vec::with_capacity(count),
            congested: 0,
            relieved: Vec::new(),
            openings: Openings::new(handshake, count),
            broken: Vec::new(),
            active,
            crowd: None,
            births_at: NEVER,
            churns: false,
            redials: Vec::new(),
            codec: C::new(),
            silence: Silence::new(servers.len()),
            servers,
            patience_ns: NEVER,
            read_at: 0,
            entries: clients
                .into_iter()
                .map(|client| ClientEntry { client, due: NEVER, woken: false })
                .collect(),
        };
        Worker { backend, state }
    }

    /// The same, speaking with copies of this codec, which has settings.
    pub fn speaking(mut self, codec: &C) -> Worker<C, B> {
        for connection in &mut self.state.connections {
            connection.session.speak(codec.renew());
        }
        self.state.codec = codec.renew();
        self
    }

    /// Opens every connection. Ends early when one of them cannot be opened, since the run then does not begin.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. A connection that cannot be opened is no
    /// error here: the reporter has it.
    pub fn open(&mut self, meeting: &Meeting) -> io::Result<()> {
        self.state.wake_all();
        let now = self.backend.now();
        let bounds = Bounds { end: NEVER, drain_end: NEVER, idle: false };
        self.turns(meeting, bounds, now, |state| state.reporter.has_failed_to_open())?;
        Ok(())
    }

    /// Whether the phase that is over closed connections that have to be opened again before the next one.
    pub fn has_shut(&self) -> bool {
        self.state.connections.iter().any(|connection| connection.history.closed_between_phases)
    }

    /// Between phases: opens the connections again that the phase before closed, since their answers were late. Ends when
    /// each of them is open or could not be opened at the first attempt, for which a timeout is the longest. Clients have
    /// been told to wait.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn reopen(&mut self, meeting: &Meeting) -> io::Result<()> {
        self.state.wake_all();
        let now = self.backend.now();
        let bounds = Bounds { end: NEVER, drain_end: NEVER, idle: false };
        self.turns(meeting, bounds, now, |state| !state.is_reopening())?;
        Ok(())
    }

    /// Works one phase, for which every client has been told what to do, from `begin` on.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. What servers do is no error here: it is
    /// counted.
    pub fn work(&mut self, meeting: &Meeting, begin: Nanos, end: Nanos) -> io::Result<()> {
        self.state.wake_all();
        self.state.patience_ns = match (end, self.state.shared.is_load()) {
            (NEVER, true) => self.state.limits.load_patience_ns,
            (NEVER, false) => self.state.limits.patience_ns,
            _ => NEVER,
        };
        let bounds = Bounds { end, drain_end: end.saturating_add(self.state.limits.drain_ns), idle: false };
        let over = self.turns(meeting, bounds, begin, |_| false)?;
        self.settle(over);
        Ok(())
    }

    /// Whether the next phase can begin: all connections are open, or will be opened again.
    pub fn can_go_on(&self) -> bool {
        !self.state.has_lost()
    }

    /// Where it writes down what it does.
    pub fn reporter(&self) -> &WorkerReporter {
        &self.state.reporter
    }

    /// The clock.
    pub fn now(&self) -> Nanos {
        self.backend.now()
    }

    /// The clients, to be told what to do in the next phase, with what they share and where they are measured.
    pub fn parts(&mut self) -> (&mut [ClientEntry], &mut Shared, &mut WorkerReporter) {
        (&mut self.state.entries, &mut self.state.shared, &mut self.state.reporter)
    }

    /// Between phases: connections to servers to which `transport` leads by another one from now on are closed, to be
    /// opened anew. Says whether there are any; their clients wait for their next work, without a connection.
    pub fn change_transport(&mut self, transport: impl Fn(u32) -> Transport) -> bool {
        let mut any = false;
        let state = &mut self.state;
        for slot in 0..state.connections.len() {
            let endpoint = &mut state.endpoints[slot];
            let transport = transport(endpoint.server);
            if std::mem::replace(&mut endpoint.transport, transport) == transport {
                continue;
            }
            any = true;
            let id = state.id(slot);
            self.backend.close(id, Close::Fin);
            let connection = &mut state.connections[slot];
            if connection.reset().is_opening() {
                state.openings.end_one();
            }
            state.reporter.add_datagrams(&connection.session.datagram_counts());
            connection.session.carry_by_datagrams(transport == Transport::Udp);
            let (client, lane) = state.owner(slot);
            state.entries[client].client.handle_closed(lane, true, &mut state.shared);
        }
        any
    }

    /// Closes every connection and hands over what was measured.
    pub fn finish(mut self) -> WorkerReporter {
        for slot in 0..self.state.connections.len() {
            self.backend.close(self.state.id(slot), Close::Fin);
            let counts = self.state.connections[slot].session.datagram_counts();
            self.state.reporter.add_datagrams(&counts);
        }
        self.state.reporter
    }

    /// Turns until every client is done, the drain is over, or `enough`. Returns when that was.
    fn turns(
        &mut self,
        meeting: &Meeting,
        mut bounds: Bounds,
        begin: Nanos,
        enough: impl Fn(&WorkerState<C>) -> bool,
    ) -> io::Result<Nanos> {
        let state = &mut self.state;
        let mut now = self.backend.now();
        while now < begin {
            now = self.backend.wait(begin)?;
        }
        state.reporter.note_begun(now);
        loop {
            if meeting.is_stopped() && bounds.end > now {
                state.stop(now);
                bounds = Bounds { end: now, drain_end: now.saturating_add(state.limits.drain_ns), ..bounds };
            }
            // Without a stamp, a reply came when it was read, and what follows from it is due since then: now, and not
            // after another look at what else is ready. Nothing else is as late, since what came meanwhile was not read.
            let due_until = now.max(state.read_at);
            state.wake_due(due_until);
            if !state.relieved.is_empty() {
                state.relieve(&mut self.backend, now);
            }
            state.serve_woken(&mut self.backend, due_until);
            state.open_queued(&mut self.backend, now);
            if now >= state.births_at {
                state.spawn(&mut self.backend, now);
            }
            if now >= bounds.drain_end || enough(state) {
                return Ok(now);
            }
            if state.active == 0 {
                match state.outlast(meeting, &mut bounds, now) {
                    Outlook::Over(at) => return Ok(at),
                    Outlook::OthersGoOn => {}
                }
            }
            let until = state.next_time(now).min(bounds.drain_end);
            let woke = self.backend.now();
            state.reporter.worked(now, woke);
            now = self.backend.wait_from(woke, until)?;
            state.reporter.waited(until.max(woke), now);
            self.backend.drain(&mut |conn, event| state.handle(conn, event, now));
            self.backend.handshakes(&mut |handshake| state.reporter.shook_hands(handshake));
            state.close_broken(&mut self.backend);
            if !state.redials.is_empty() {
                state.redial(&mut self.backend);
            }
            state.send_handshakes(&mut self.backend);
            if state.reporter.wants_mending() {
                self.backend.mend_stamps();
            }
            state.expire(&mut self.backend, now);
            state.reporter.tick(now);
        }
    }

    /// The end of a phase, which was over at `over`: what is still owed is unfinished, and what was due and was not sent
    /// is unsent.
    fn settle(&mut self, over: Nanos) {
        let now = self.backend.now();
        let state = &mut self.state;
        state.reporter.abandon(true);
        for slot in 0..state.connections.len() {
            if !state.connections[slot].session.is_idle() {
                // Closed by us, because its answers would come in the next phase: neither lost nor, then, reconnected.
                self.backend.close(state.id(slot), Close::Fin);
                state.connections[slot].history.closed_between_phases = true;
                state.miss(slot);
                state.end_session(slot, Loss::Closed(Fault::Closed), true, now);
            }
        }
        state.reporter.abandon(false);
        state.end_crowd(&mut self.backend, over);
        let (mut dead, mut missing, mut skipped, mut repeated) = (0, state.crowd_missing(), 0, 0);
        for entry in &mut state.entries {
            let client = &mut entry.client;
            repeated += client.repeated();
            let (reporter, group) = (&mut state.reporter, client.group());
            let draws_max = state.limits.unsent_draws_max;
            client.count_unsent(over, &mut state.shared, draws_max, |unsent| reporter.unsent(group, unsent));
            dead += client.lost_lanes();
            missing += client.missing();
            skipped += client.skipped();
            entry.due = NEVER;
        }
        state.due.clear();
        let silent = state.silent(now);
        state.reporter.end_phase(over, PhaseFate { dead, missing, skipped, repeated, silent });
    }
}

/// The clients of a worker and where their connections go.
#[derive(Debug)]
pub struct WorkerSetup {
    /// The clients.
    pub clients: Vec<Client>,
    /// Lanes of each.
    pub lanes: usize,
    /// The servers of the Plan.
    pub servers: Arc<[Server]>,
    /// Where connections go: for each client its lanes in order.
    pub endpoints: Vec<Endpoint>,
    /// Most requests outstanding on a connection, to make room for.
    pub depth: usize,
    /// What is said on every new connection.
    pub handshake: Arc<Handshake>,
}

/// Where a connection goes.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Index of its server in the Plan.
    pub server: u32,
    /// Its number over all threads, which decides on the address that it comes from.
    pub connection: u64,
    /// What it is made of.
    pub transport: Transport,
}

/// When a phase ends, and when its last answers are given up.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    end: Nanos,
    drain_end: Nanos,
    /// The others know that this worker cannot do anything more.
    idle: bool,
}

/// What becomes of a phase in which this worker has nothing left to do.
#[derive(Clone, Copy, Debug)]
enum Outlook {
    /// It was over at this time.
    Over(Nanos),
    /// It lasts, since other workers are not through.
    OthersGoOn,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Closed(Fault),
    TimedOut,
}

impl<C: Codec> WorkerState<C> {
    fn id(&self, slot: usize) -> ConnId {
        self.connections[slot].id(slot)
    }

    /// Whose connection it is, and which of its lanes.
    #[inline]
    fn owner(&self, slot: usize) -> (usize, Lane) {
        let connection = &self.connections[slot];
        (connection.client as usize, connection.lane)
    }

    #[inline(always)]
    fn wake(&mut self, client: usize) {
        let entry = &mut self.entries[client];
        if !entry.woken {
            entry.woken = true;
            self.woken.push(client as u32);
        }
    }

    fn wake_all(&mut self) {
        if let Some(active) = self.crowd_active() {
            self.active = active;
            return self.wake_crowd();
        }
        self.active = self.entries.len();
        for client in 0..self.entries.len() {
            self.wake(client);
        }
    }

    /// Whether a connection that was closed between phases is on its way for the first time.
    fn is_reopening(&self) -> bool {
        self.connections.iter().zip(&self.endpoints).any(|(connection, endpoint)| {
            let tried =
                connection.history.failures as usize >= self.servers[endpoint.server as usize].addresses();
            connection.history.closed_between_phases && !tried
        })
    }

    fn has_lost(&self) -> bool {
        self.entries.iter().any(|entry| entry.client.lost_lanes() > 0)
    }

    fn stop(&mut self, now: Nanos) {
        for entry in &mut self.entries {
            entry.client.stop(now);
        }
        self.openings.forget_waiting();
        self.shut_crowd(now);
        self.wake_all();
    }

    /// What becomes of the phase now that no client has anything left to do. Where connections were lost before its end,
    /// requests are due all the same for as long as other workers go on: all account for the same time.
    fn outlast(&self, meeting: &Meeting, bounds: &mut Bounds, now: Nanos) -> Outlook {
        let is_early = now < bounds.end && bounds.end != NEVER;
        if !is_early || !self.has_lost() {
            return Outlook::Over(now);
        }
        if !std::mem::replace(&mut bounds.idle, true) {
            meeting.fall_idle(now);
        }
        meeting.all_idle().map_or(Outlook::OthersGoOn, Outlook::Over)
    }

    /// Wakes the clients whose due time has come.
    #[inline]
    fn wake_due(&mut self, now: Nanos) {
        while let Some(&Reverse((at, client))) = self.due.peek().filter(|Reverse((at, _))| *at <= now) {
            self.due.pop();
            let entry = &mut self.entries[client as usize];
            if entry.due == at {
                entry.due = NEVER;
                self.wake(client as usize);
            }
        }
    }

    /// Lets every woken client ask what it wants, and sends it.
    #[inline]
    fn serve_woken(&mut self, backend: &mut impl Backend, now: Nanos) {
        let mut woken = std::mem::take(&mut self.woken);
        for client in woken.drain(..) {
            self.entries[client as usize].woken = false;
            self.serve(client as usize, backend, now);
        }
        // Those who have more to ask than one turn allows were woken again meanwhile.
        std::mem::swap(&mut self.woken, &mut woken);
        self.woken.append(&mut woken);
    }

    fn serve(&mut self, number: usize, backend: &mut impl Backend, now: Nanos) {
        if self.congested > 0 && self.is_congested(number) {
            return self.flush_client(number, backend);
        }
        let (mut asked, mut given_up, mut is_crowded) = (0, 0, false);
        loop {
            let entry = &mut self.entries[number];
            if let Some((op, ticket)) = entry.client.poll_read(now, &mut self.shared) {
                // Only clients with one lane are quick.
                let waiting_bytes = self.connections[number].session.request(&op, ticket).expect(SAYABLE);
                asked += 1;
                is_crowded = waiting_bytes > OUTBOX_MAX_BYTES;
                if entry.client.is_full() {
                    break;
                }
                if asked >= ASK_MAX || is_crowded {
                    self.wake(number);
                    break;
                }
                continue;
            }
            match entry.client.poll(now, &mut self.shared) {
                Wish::Ask { lane, op, ticket } => {
                    let slot = number * self.lanes + usize::from(lane);
                    let waiting_bytes = self.connections[slot].session.request(&op, ticket).expect(SAYABLE);
                    is_crowded |= waiting_bytes > OUTBOX_MAX_BYTES;
                    if self.lanes > 1 {
                        self.asked.push(slot as u32);
                    }
                    asked += 1;
                    // The answer that frees a slot wakes it.
                    if entry.client.is_full() {
                        break;
                    }
                    if (asked >= ASK_MAX || is_crowded) && !entry.client.is_splitting() {
                        self.wake(number);
                        break;
                    }
                }
                // Nobody sits there, and somebody comes when it is time.
                Wish::Open(_) if self.churns => break,
                Wish::Open(lane) => {
                    let slot = number * self.lanes + usize::from(lane);
                    let connection = &mut self.connections[slot];
                    let history = connection.history;
                    let pause = retry_pause(history.failures_in_a_row());
                    let own = entry.client.reopening_pause(history.failures);
                    let pause = own.filter(|_| history.is_reconnection()).unwrap_or(pause);
                    if connection.enqueue() {
                        self.openings.enqueue(connection.id(slot), now.saturating_add(pause));
                    }
                }
                Wish::Unsent(verb) => {
                    self.reporter.unsent(entry.client.group(), Unsent { verb, requests: 1, estimated: 0 });
                    given_up += 1;
                    if given_up >= GIVE_UP_MAX {
                        self.wake(number);
                        break;
                    }
                }
                Wish::Wait(NEVER) => break,
                Wish::Wait(at) => {
                    if at < entry.due {
                        entry.due = at;
                        self.due.push(Reverse((at, number as u32)));
                    }
                    break;
                }
                Wish::Done if self.churns => {
                    self.retire(number, backend, now);
                    break;
                }
                Wish::Done => {
                    self.active -= usize::from(entry.client.retire());
                    break;
                }
            }
        }
        if asked > 0 {
            self.reporter.asked(asked as u32, self.entries[number].client.outstanding());
        }
        self.flush_client(number, backend);
        if is_crowded {
            self.note_congestion(number);
        }
    }

    /// Sends what waits on the connection of a client, or on all connections with something to send where clients have
    /// several.
    #[inline]
    fn flush_client(&mut self, number: usize, backend: &mut impl Backend) {
        if self.lanes == 1 {
            return self.flush(number, backend);
        }
        let mut asked = std::mem::take(&mut self.asked);
        asked.drain(..).for_each(|slot| self.flush(slot as usize, backend));
        self.asked = asked;
    }

    /// The connections of a client.
    fn slots_of(&self, client: usize) -> std::ops::Range<usize> {
        client * self.lanes..(client + 1) * self.lanes
    }

    /// Whether a connection of this client takes no request before its socket has taken bytes.
    #[cold]
    fn is_congested(&self, client: usize) -> bool {
        self.connections[self.slots_of(client)].iter().any(Connection::is_congested)
    }

    /// Marks the connections of a client that stay congested after they were flushed.
    #[cold]
    fn note_congestion(&mut self, client: usize) {
        for slot in self.slots_of(client) {
            let connection = &mut self.connections[slot];
            if connection.is_congested() && !std::mem::replace(&mut connection.congested, true) {
                self.congested += 1;
            }
        }
    }

    /// Sends what waits on congested connections whose sockets take bytes again, before their clients ask more. A client
    /// that may ask again is woken; what it asks now was held up by the socket until `now`.
    #[cold]
    fn relieve(&mut self, backend: &mut impl Backend, now: Nanos) {
        for slot in std::mem::take(&mut self.relieved) {
            let slot = slot as usize;
            self.flush(slot, backend);
            let connection = &mut self.connections[slot];
            if connection.is_congested() || !std::mem::take(&mut connection.congested) {
                continue;
            }
            self.congested -= 1;
            let client = connection.client as usize;
            self.entries[client].client.handle_writable(now);
            self.wake(client);
        }
    }

    /// Sends what waits on a connection, as far as the socket takes it.
    #[inline]
    fn flush(&mut self, slot: usize, backend: &mut impl Backend) {
        let id = self.id(slot);
        let connection = &mut self.connections[slot];
        while connection.state() == State::Open && connection.session.has_output() {
            let (handed, offered) = match connection.session.poll_send_plain() {
                Some(bytes) => (backend.send(id, &[IoSlice::new(bytes)]), bytes.len()),
                None => match send_parts(id, &connection.session, self.shared.block(), backend) {
                    Some(sent) => sent,
                    None => break,
                },
            };
            if handed.taken < offered {
                connection.fill();
            }
            self.reporter.sent(handed.taken);
            let (client, lane) = (connection.client as usize, connection.lane);
            let entry = &mut self.entries[client];
            if self.shared.has_window() {
                self.shared.count_window_bytes(entry.client.window_verb(), handed.taken);
            }
            let mut view = View::new(slot, lane, &mut entry.client, &mut self.shared, &mut self.reporter);
            connection.session.handle_sent(handed.taken, handed.at, &mut view);
            if view.woken && !entry.woken {
                entry.woken = true;
                self.woken.push(client as u32);
            }
        }
        if !connection.in_wheel && !connection.session.is_idle() {
            connection.in_wheel = true;
            let deadline = connection.session.deadline(self.limits.timeout_ns);
            self.wheel.insert(slot as u32, deadline);
        }
    }

    /// Opens what waits to be opened, as many at a time as is good.
    fn open_queued(&mut self, backend: &mut impl Backend, now: Nanos) {
        for _ in 0..OPENING_TURN {
            let Some(id) = self.openings.begin_next(now) else { return };
            let slot = id.slot as usize;
            let connection = &mut self.connections[slot];
            let is_waiting = connection.is(id) && connection.state() == State::Queued;
            if !is_waiting || !connection.dial(backend.now()) {
                self.openings.end_one();
                continue;
            }
            if !connection.in_wheel {
                connection.in_wheel = true;
                self.wheel.insert(slot as u32, now.saturating_add(self.limits.timeout_ns));
            }
            let Endpoint { server, connection: number, transport } = self.endpoints[slot];
            let attempt = connection.history.attempt as usize;
            let target = self.servers[server as usize].target_over(transport, number, attempt);
            backend.open(connection.id(slot), &target);
        }
    }

    /// When something has to be done, if nothing happens before.
    #[inline]
    fn next_time(&self, now: Nanos) -> Nanos {
        if !self.woken.is_empty() {
            return now;
        }
        let due = self.due.peek().map_or(NEVER, |Reverse((at, _))| *at);
        due.min(self.openings.next_time())
            .min(self.births_at)
            .min(self.wheel.next())
            .min(self.reporter.next_tick())
            .min(now + SLEEP_MAX_NS)
    }

    /// Takes in what happened on a connection.
    #[inline]
    fn handle(&mut self, id: ConnId, event: Event<'_>, now: Nanos) {
        let slot = id.slot as usize;
        let connection = &mut self.connections[slot];
        if !connection.is(id) {
            return;
        }
        match event {
            Event::Received { bytes, .. } if connection.state() == State::Handshake => {
                self.handle_handshake(id, bytes, now)
            }
            Event::Writable if connection.state() == State::Handshake => self.openings.call(id),
            Event::Received { bytes, stamp, read } => {
                self.read_at = read;
                let chunk = Chunk { bytes, stamp, read };
                let (number, lane) = (connection.client as usize, connection.lane);
                let answered = if self.crowd.is_some() {
                    self.crowd_received(slot, chunk)
                } else {
                    let client = &mut self.entries[number].client;
                    if self.shared.has_window() {
                        self.shared.count_window_bytes(client.window_verb(), chunk.bytes.len());
                    }
                    let mut view = View::new(slot, lane, client, &mut self.shared, &mut self.reporter);
                    connection.session.handle_received(chunk, &mut view)
                };
                let connection = &mut self.connections[slot];
                self.reporter.received(chunk.bytes.len(), answered.unwrap_or(0));
                match answered {
                    Ok(answered) => {
                        if answered > 0 {
                            connection.answered = true;
                            self.silence.answered(self.endpoints[slot].server, read);
                        }
                        // A codec may have asked something of its own.
                        if self.lanes > 1 && connection.session.has_output() {
                            self.asked.push(slot as u32);
                        }
                        self.wake(number);
                    }
                    Err(malformed) => {
                        self.reporter.malformed(self.endpoints[slot].server, malformed, chunk.bytes);
                        self.broken.push(id);
                        self.lose(slot, Loss::Closed(Fault::Protocol), self.limits.reconnect, read);
                    }
                }
            }
            Event::Writable => {
                if connection.congested {
                    self.relieved.push(slot as u32);
                }
                connection.drain();
                connection.session.handle_writable(now);
                let client = connection.client as usize;
                if self.lanes > 1 {
                    self.asked.push(slot as u32);
                }
                self.wake(client);
            }
            Event::Opened { at } => match self.openings.handshake(id) {
                Some(handshake) => connection.shake(handshake),
                None => self.opened(slot, at),
            },
            Event::Closed(reason) => self.closed(slot, reason, now),
        }
    }

    /// Says on new connections what is said before the first request.
    fn send_handshakes(&mut self, backend: &mut impl Backend) {
        for id in self.openings.take_called() {
            let connection = &mut self.connections[id.slot as usize];
            if !connection.is(id) {
                continue;
            }
            let Some(handshake) = connection.handshake_mut() else { continue };
            if !handshake.rest().is_empty() {
                let handed = backend.send(id, &[IoSlice::new(handshake.rest())]);
                handshake.handle_sent(handed.taken);
                self.reporter.sent(handed.taken);
            }
        }
    }

    /// Takes in what a server answers to the handshake. The connection counts as open when it has agreed to everything.
    fn handle_handshake(&mut self, id: ConnId, bytes: &[u8], now: Nanos) {
        let slot = id.slot as usize;
        self.reporter.received(bytes.len(), 0);
        let Some(handshake) = self.connections[slot].handshake_mut() else { return };
        let why = match handshake.handle_received(bytes) {
            Ok(HandshakeProgress::NeedMore) => return,
            Ok(HandshakeProgress::Done) => return self.opened(slot, now),
            Err(why) => why,
        };
        self.broken.push(id);
        let words = Some(Arc::from(why));
        self.closed(slot, Reason { words, ..Reason::new(Fault::Client, 0) }, now);
    }

    fn opened(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        let Some(since) = connection.open() else { return };
        if self.churns {
            return self.crowd_opened(slot, since, now);
        }
        self.openings.end_one();
        let server = self.endpoints[slot].server;
        let history = &mut connection.history;
        self.reporter.opened(server, now.saturating_sub(since), history.is_reconnection());
        (history.opened, history.closed_between_phases) = (true, false);
        let (client, lane) = self.owner(slot);
        self.entries[client].client.handle_opened(lane, now);
        self.wake(client);
    }

    /// A connection is not there any more, or never came to be; its socket is closed already.
    fn closed(&mut self, slot: usize, reason: Reason, now: Nanos) {
        if self.churns {
            return self.crowd_closed(slot, reason, now);
        }
        let server = self.endpoints[slot].server;
        let connection = &mut self.connections[slot];
        let Some(since) = connection.opening_since() else {
            let fault = reason.fault;
            self.reporter.lost(server, Trouble::Lost(reason));
            return self.lose(slot, Loss::Closed(fault), self.limits.reconnect, now);
        };
        self.openings.end_one();
        let history = &mut connection.history;
        history.attempt = history.attempt.wrapping_add(1);
        history.failures += 1;
        let addresses = self.servers[server as usize].addresses() as u32;
        if !history.failures.is_multiple_of(addresses) {
            // The server's name has more addresses; the next may be the one that it listens on.
            connection.retry();
            self.openings.enqueue(connection.id(slot), now);
            return;
        }
        let again = history.opened && self.limits.reconnect;
        connection.close();
        self.reporter.not_opened(server, reason);
        self.silence.missed(server, since);
        let again = again && !self.gives_up(server, now);
        self.close_lane(slot, again);
    }

    /// A connection is lost that was open; `again`: its client may open it again, unless its server has been silent for
    /// too long.
    fn lose(&mut self, slot: usize, loss: Loss, again: bool, now: Nanos) {
        if self.churns {
            let failure = if matches!(loss, Loss::TimedOut) { Failure::Timeout } else { Failure::Other };
            return self.fail(slot, failure, loss, now);
        }
        self.miss(slot);
        self.connections[slot].note_end(matches!(loss, Loss::Closed(_)));
        let again = again && !self.gives_up(self.endpoints[slot].server, now);
        self.end_session(slot, loss, again, now);
    }

    /// What a connection owes, if anything, will not come.
    fn miss(&mut self, slot: usize) {
        let since = self.connections[slot].session.deadline(0);
        if since != NEVER {
            self.silence.missed(self.endpoints[slot].server, since);
        }
    }

    /// Whether a server has been silent for too long to be asked again.
    fn gives_up(&self, server: u32, now: Nanos) -> bool {
        self.silence.of(server, now) >= self.patience_ns
    }

    /// For every server that this worker talks to, how long it has been silent.
    fn silent(&self, now: Nanos) -> Vec<(u32, Nanos)> {
        let mut servers: Vec<u32> = self.endpoints.iter().map(|endpoint| endpoint.server).collect();
        servers.sort_unstable();
        servers.dedup();
        servers.into_iter().map(|server| (server, self.silence.of(server, now))).collect()
    }

    /// Ends everything that a connection owes; `again`: its client may open it again.
    fn end_session(&mut self, slot: usize, loss: Loss, again: bool, now: Nanos) {
        let connection = &mut self.connections[slot];
        connection.close();
        let client = &mut self.entries[connection.client as usize].client;
        let mut view = View::new(slot, connection.lane, client, &mut self.shared, &mut self.reporter);
        match loss {
            Loss::Closed(fault) => connection.session.handle_closed(fault, now, &mut view),
            Loss::TimedOut => connection.session.handle_timeout(self.limits.timeout_ns, now, &mut view),
        }
        self.close_lane(slot, again);
    }

    /// A lane is not open any more; `again`: its client may open it again.
    fn close_lane(&mut self, slot: usize, again: bool) {
        let (client, lane) = self.owner(slot);
        self.entries[client].client.handle_closed(lane, again, &mut self.shared);
        if !again {
            self.reporter.gone();
        }
        self.wake(client);
    }

    /// Closes the sockets of connections that were given up while events were taken in.
    fn close_broken(&mut self, backend: &mut impl Backend) {
        for id in self.broken.drain(..) {
            backend.close(id, Close::Fin);
        }
    }

    /// Looks at the connections whose time in the wheel has come, and gives up those that are late.
    #[inline]
    fn expire(&mut self, backend: &mut impl Backend, now: Nanos) {
        self.wheel.expire(now, &mut self.expired);
        if self.expired.is_empty() {
            return;
        }
        let mut expired = std::mem::take(&mut self.expired);
        for slot in expired.drain(..) {
            self.connections[slot as usize].in_wheel = false;
            self.expire_one(slot as usize, backend, now);
        }
        self.expired = expired;
    }

    fn expire_one(&mut self, slot: usize, backend: &mut impl Backend, now: Nanos) {
        let id = self.id(slot);
        let connection = &mut self.connections[slot];
        let opening_since = connection.opening_since();
        let deadline = match connection.state() {
            State::Closed | State::Queued => return,
            State::Opening | State::Handshake => {
                opening_since.unwrap_or(now).saturating_add(self.limits.timeout_ns)
            }
            State::Open | State::Full => connection.session.deadline(self.limits.timeout_ns),
        };
        if deadline == NEVER {
            return;
        }
        if deadline > now {
            connection.in_wheel = true;
            self.wheel.insert(slot as u32, deadline);
            return;
        }
        if connection.session.is_over_datagrams() && connection.session.deadline(0) != NEVER {
            return self.give_up_overdue(slot, backend, now);
        }
        let words = backend.obstacle(id).map(Arc::from);
        backend.close(id, Close::Fin);
        if opening_since.is_some() {
            return self.closed(slot, Reason { words, ..Reason::new(Fault::Timeout, 0) }, now);
        }
        // The generator closed it, so that it is opened again whatever the limits say of servers that close.
        self.reporter.lost(self.endpoints[slot].server, Trouble::TimedOut);
        self.lose(slot, Loss::TimedOut, true, now);
    }

    /// Over datagrams a late request harms no other: it alone is given up, and the connection stays, unless its server
    /// has been silent for too long.
    fn give_up_overdue(&mut self, slot: usize, backend: &mut impl Backend, now: Nanos) {
        self.miss(slot);
        let (id, server, (client, lane)) = (self.id(slot), self.endpoints[slot].server, self.owner(slot));
        let connection = &mut self.connections[slot];
        let client_of = &mut self.entries[client].client;
        let mut view = View::new(slot, lane, client_of, &mut self.shared, &mut self.reporter);
        connection.session.handle_overdue(self.limits.timeout_ns, now, &mut view);
        self.reporter.late(server);
        if self.gives_up(server, now) {
            backend.close(id, Close::Fin);
            self.reporter.lost(server, Trouble::TimedOut);
            return self.lose(slot, Loss::TimedOut, false, now);
        }
        // Flushing puts it into the wheel again.
        if self.lanes > 1 {
            self.asked.push(slot as u32);
        }
        self.wake(client);
    }
}

/// An item that its request did not ask for, or not as often.
const UNASKED_VALUE: Malformed = Malformed("a value that was not asked for, or not so often");

/// Sends the next parts of what waits on a connection, and says how many bytes those were; `None` where nothing waits.
#[inline(never)]
fn send_parts<C: Codec>(
    id: ConnId,
    session: &Session<C>,
    block: &[u8],
    backend: &mut impl Backend,
) -> Option<(Handed, usize)> {
    let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
    let count = session.poll_send(block, &mut parts);
    let offered = parts[..count].iter().map(|part| part.len()).sum();
    (count > 0).then(|| (backend.send(id, &parts[..count]), offered))
}

/// One connection's client and reporter, as its session tells them what came.
struct View<'a> {
    slot: usize,
    lane: Lane,
    client: &'a mut Client,
    shared: &'a mut Shared,
    reporter: &'a mut WorkerReporter,
    /// A request ended, so that the client may have something to ask.
    woken: bool,
}

impl<'a> View<'a> {
    #[inline]
    fn new(
        slot: usize,
        lane: Lane,
        client: &'a mut Client,
        shared: &'a mut Shared,
        reporter: &'a mut WorkerReporter,
    ) -> View<'a> {
        View { slot, lane, client, shared, reporter, woken: false }
    }

    /// The same once more, for a way that is rare.
    #[inline]
    fn copy(&mut self) -> View<'_> {
        View::new(self.slot, self.lane, self.client, self.shared, self.reporter)
    }

    /// The value that passed by, if any, has passed: it is judged by what the read knew that it was begun for.
    fn end_check(&mut self) {
        let (client, shared, lane) = (&*self.client, &*self.shared, self.lane);
        let is_stale = |check_state, key, version| client.is_stale(lane, check_state, key, version, shared);
        self.reporter.end_check(self.slot, shared, is_stale);
    }

    /// A part of a request ended: it is written down when it was the last.
    #[cold]
    fn end_part(&mut self, part: &Answer<'_>, message: &[u8]) {
        if let Some(whole) = self.client.handle_part(self.lane, part, message, self.shared) {
            let (group, number) = (self.client.group(), self.client.number());
            self.reporter.answer(group, number, &whole.answer(), whole.message());
        }
    }
}

impl Sink for View<'_> {
    #[inline]
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed> {
        if !ticket.reads_items() {
            return Ok(false);
        }
        if ticket.answer_use == AnswerUse::Window {
            return Ok(self.client.handle_window_item(&item, self.shared));
        }
        let verify = ticket.answer_use == AnswerUse::Verify;
        if verify {
            self.end_check();
        }
        let key = self.client.handle_item(self.lane, ticket, &item, self.shared).ok_or(UNASKED_VALUE)?;
        if verify {
            self.reporter.begin_check(self.slot, key, ticket.check_state, item.size, self.shared);
        }
        Ok(verify)
    }

    #[inline]
    fn body(&mut self, ticket: &Ticket, bytes: &[u8]) {
        if ticket.answer_use == AnswerUse::Window {
            return self.client.handle_window_body(bytes, self.shared);
        }
        self.reporter.check(self.slot, bytes, self.shared);
    }

    fn broken_off(&mut self) {
        self.reporter.drop_check(self.slot);
    }

    fn quiet_error(&mut self, message: &[u8]) {
        self.reporter.quiet_error(message);
    }

    fn parted(&mut self, whole: bool) {
        self.reporter.parted(whole);
    }

    #[inline(always)]
    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        // The rare ways get copies, so that on the frequent one nothing needs a place in memory.
        if answer.ticket.answer_use == AnswerUse::Verify {
            self.copy().end_check();
        }
        if answer.ticket.origin == Origin::Part {
            self.copy().end_part(&{ *answer }, message);
            self.woken = true;
            return;
        }
        self.reporter.answer(self.client.group(), self.client.number(), answer, message);
        self.client.handle_answer(self.lane, answer, self.shared);
        if self.shared.has_window() {
            self.reporter.window(self.slot, self.shared, message);
        }
        self.woken = true;
    }
}
