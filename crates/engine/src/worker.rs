//! One thread's whole work: the only loop there is.
//!
//! A turn: wake the clients whose time has come, send what they ask, wait, take in what happened. Nothing is sent from
//! inside a completion: what happened is taken in first, then all that follows from it is sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSlice};
use std::sync::Arc;

use pummel_logic::client::{Client, Wish};
use pummel_logic::inflight::{Care, Origin, Ticket};
use pummel_logic::session::{Answer, Chunk, Item, Session, Sink};
use pummel_logic::shared::Shared;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_logic::wire::greeting::{Greeting, Heard, Hearing};
use pummel_logic::wire::{Codec, Fault, Outcome};

use crate::connect::Server;
use crate::feed::{PhaseFate, Trouble};
use crate::io::{Backend, Close, ConnId, Event, Reason};
use crate::log::Log;
use crate::meeting::Meeting;
use crate::silence::Silence;
use crate::wheel::Wheel;

/// The longest sleep: after it a worker looks whether the run was stopped.
const SLEEP_MAX_NS: Nanos = 50 * MILLISECOND;

/// Connections that are being opened at one time; more would only fill the server's queue of new connections.
const OPENING_MAX: usize = 256;

/// Connections that one turn begins to open: each takes some time, in which the others would seem to be opening still.
const OPENING_TURN: usize = 8;

/// Requests that one client asks before the others get their turn.
const ASK_MAX: usize = 64;

/// First and longest pause before a connection is tried again.
const RETRY_NS: (Nanos, Nanos) = (10 * MILLISECOND, SECOND);

/// What a worker needs to know beside its clients.
#[derive(Clone, Debug)]
pub struct Rules {
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
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is done about it.
    Closed,
    /// Asked for, but too many others are being opened, or it is not time yet.
    Queued,
    /// Being opened, since.
    Opening(Nanos),
    Open,
    /// Open, but the socket is full.
    Full,
}

/// One connection.
#[derive(Debug)]
struct Connection<C> {
    session: Session<C>,
    state: State,
    generation: u32,
    in_wheel: bool,
    /// Its client waits to be polled.
    woken: bool,
    /// It is open, and the server has not answered the greeting yet.
    welcome: Option<Box<Welcome>>,
    /// It was open once.
    opened: bool,
    /// Which of the server's addresses is tried next.
    attempt: u32,
    /// When its client asked to be woken; [`NEVER`] if it is not in the queue of due times.
    due: Nanos,
    /// Failed attempts to open it since it was open.
    failures: u32,
    /// Its server answered on it since it was opened.
    answered: bool,
    /// How often in a row it was opened and closed again by its server without an answer.
    barren: u32,
}

/// How far a greeting has come.
#[derive(Debug)]
struct Welcome {
    /// Bytes of it that were sent.
    said: usize,
    hearing: Hearing,
}

/// Everything of a worker but its backend, so that what the backend hands over can be worked on.
#[derive(Debug)]
struct Desk<C> {
    rules: Rules,
    clients: Vec<Client>,
    connections: Vec<Connection<C>>,
    servers: Arc<[Server]>,
    /// Where each client's connection goes.
    roads: Vec<Road>,
    shared: Shared,
    log: Log,
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    wheel: Wheel,
    woken: Vec<u32>,
    expired: Vec<u32>,
    /// What is said on every new connection.
    greeting: Arc<Greeting>,
    /// New connections on which it is to be said.
    greeted: Vec<u32>,
    /// Connections whose peer said what its protocol does not allow, to be closed.
    broken: Vec<u32>,
    /// Connections that wait to be opened, and from when on.
    queue: BinaryHeap<Reverse<(Nanos, u32)>>,
    opening: usize,
    /// Clients that have something left to do in this phase.
    active: usize,
    silence: Silence,
    /// After so long without an answer, connections to a server are not opened again.
    patience_ns: Nanos,
}

/// One thread's clients, connections and measurements.
#[derive(Debug)]
pub struct Worker<C, B> {
    backend: B,
    desk: Desk<C>,
}

impl<C: Codec, B: Backend> Worker<C, B> {
    /// A worker for these clients, without a connection yet.
    pub fn new(backend: B, crew: Crew, rules: Rules, shared: Shared, log: Log) -> Worker<C, B> {
        let Crew { clients, servers, roads, depth, greeting } = crew;
        let connections = clients.iter().map(|_| Connection::new(depth)).collect();
        let wheel = Wheel::new(rules.timeout_ns, backend.now());
        let active = clients.len();
        let desk = Desk {
            rules,
            connections,
            roads,
            shared,
            log,
            due: BinaryHeap::with_capacity(clients.len()),
            wheel,
            woken: Vec::with_capacity(clients.len()),
            expired: Vec::with_capacity(clients.len()),
            greeting,
            greeted: Vec::new(),
            broken: Vec::new(),
            queue: BinaryHeap::with_capacity(clients.len()),
            opening: 0,
            active,
            silence: Silence::new(servers.len()),
            servers,
            patience_ns: NEVER,
            clients,
        };
        Worker { backend, desk }
    }

    /// Opens every connection. Ends early when one of them cannot be opened, since the run then does not begin.
    pub fn open(&mut self, meeting: &Meeting) -> io::Result<()> {
        self.desk.wake_all();
        let now = self.backend.now();
        let bounds = Bounds { end: NEVER, drain_end: NEVER, idle: false };
        self.turns(meeting, bounds, now, |desk| desk.log.has_failed_to_open())?;
        Ok(())
    }

    /// Works one phase, for which every client has been told what to do, from `begin` on.
    pub fn work(&mut self, meeting: &Meeting, begin: Nanos, end: Nanos) -> io::Result<()> {
        self.desk.wake_all();
        self.desk.patience_ns = match (end, self.desk.shared.is_load()) {
            (NEVER, true) => self.desk.rules.load_patience_ns,
            (NEVER, false) => self.desk.rules.patience_ns,
            _ => NEVER,
        };
        let bounds = Bounds { end, drain_end: end.saturating_add(self.desk.rules.drain_ns), idle: false };
        let over = self.turns(meeting, bounds, begin, |_| false)?;
        self.settle(over);
        Ok(())
    }

    /// Whether the next phase can begin: all connections are open, or will be opened again.
    pub fn can_go_on(&self) -> bool {
        !self.desk.clients.iter().any(Client::is_lost)
    }

    /// Where it writes down what it does.
    pub fn log(&self) -> &Log {
        &self.desk.log
    }

    /// The clock.
    pub fn now(&self) -> Nanos {
        self.backend.now()
    }

    /// The clients, to be told what to do in the next phase, with what they share and where they are measured.
    pub fn parts(&mut self) -> (&mut [Client], &mut Shared, &mut Log) {
        (&mut self.desk.clients, &mut self.desk.shared, &mut self.desk.log)
    }

    /// Closes every connection and hands over what was measured.
    pub fn finish(mut self) -> Log {
        for slot in 0..self.desk.connections.len() {
            self.backend.close(self.desk.id(slot), Close::Fin);
        }
        self.desk.log
    }

    /// Turns until every client is done, the drain is over, or `enough`. Returns when that was.
    fn turns(
        &mut self,
        meeting: &Meeting,
        mut bounds: Bounds,
        begin: Nanos,
        enough: impl Fn(&Desk<C>) -> bool,
    ) -> io::Result<Nanos> {
        let desk = &mut self.desk;
        let mut now = self.backend.now();
        while now < begin {
            now = self.backend.wait(begin)?;
        }
        loop {
            if meeting.is_stopped() && bounds.end > now {
                desk.stop(now);
                bounds = Bounds { end: now, drain_end: now.saturating_add(desk.rules.drain_ns), ..bounds };
            }
            desk.wake_due(now);
            desk.serve_woken(&mut self.backend, now);
            desk.open_queued(&mut self.backend, now);
            if now >= bounds.drain_end || enough(desk) {
                return Ok(now);
            }
            if desk.active == 0 {
                match desk.outlast(meeting, &mut bounds, now) {
                    Outlook::Over(at) => return Ok(at),
                    Outlook::OthersGoOn => {}
                }
            }
            let until = desk.next_time(now).min(bounds.drain_end);
            let woke = self.backend.now();
            desk.log.worked(now, woke);
            now = self.backend.wait(until)?;
            desk.log.waited(until.max(woke), now);
            self.backend.drain(&mut |conn, event| desk.handle(conn, event, now));
            self.backend.handshakes(&mut |handshake| desk.log.shook_hands(handshake));
            desk.close_broken(&mut self.backend);
            desk.greet(&mut self.backend);
            if desk.log.wants_mending() {
                self.backend.mend_stamps();
            }
            desk.expire(&mut self.backend, now);
            desk.log.tick(now);
        }
    }

    /// The end of a phase, which was over at `over`: what is still owed is unfinished, and what was due and was not sent
    /// is unsent.
    fn settle(&mut self, over: Nanos) {
        let now = self.backend.now();
        let desk = &mut self.desk;
        desk.log.abandon(true);
        for slot in 0..desk.connections.len() {
            if !desk.connections[slot].session.is_idle() {
                // Closed by us, because its answers would come in the next phase: neither lost nor, then, opened again.
                self.backend.close(desk.id(slot), Close::Fin);
                desk.connections[slot].opened = false;
                desk.miss(slot);
                desk.end_session(slot, Loss::Closed(Fault::Closed), true, now);
            }
        }
        desk.log.abandon(false);
        let (mut dead, mut missing) = (0, 0);
        for client in &mut desk.clients {
            let (log, group) = (&mut desk.log, client.group());
            client.count_unsent(over, &desk.shared, |verb| log.unsent(group, verb));
            dead += u64::from(client.is_lost());
            missing += client.missing();
        }
        desk.due.clear();
        for connection in &mut desk.connections {
            connection.due = NEVER;
        }
        let silent = desk.silent(now);
        desk.log.end_phase(over, PhaseFate { dead, missing, silent });
    }
}

/// The clients of a worker and where their connections go.
#[derive(Debug)]
pub struct Crew {
    /// The clients.
    pub clients: Vec<Client>,
    /// The servers of the Plan.
    pub servers: Arc<[Server]>,
    /// For each client, where its connection goes.
    pub roads: Vec<Road>,
    /// Most requests outstanding on a connection, to make room for.
    pub depth: usize,
    /// What is said on every new connection.
    pub greeting: Arc<Greeting>,
}

/// Where a connection goes.
#[derive(Clone, Copy, Debug)]
pub struct Road {
    /// Index of its server in the Plan.
    pub server: u32,
    /// Its number over all threads, which decides on the address that it comes from.
    pub connection: u64,
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

impl<C: Codec> Connection<C> {
    fn new(depth: usize) -> Connection<C> {
        Connection {
            session: Session::new(depth),
            state: State::Closed,
            generation: 0,
            in_wheel: false,
            woken: false,
            welcome: None,
            opened: false,
            attempt: 0,
            due: NEVER,
            failures: 0,
            answered: false,
            barren: 0,
        }
    }
}

impl<C: Codec> Desk<C> {
    fn id(&self, slot: usize) -> ConnId {
        ConnId { slot: slot as u32, generation: self.connections[slot].generation }
    }

    fn wake(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if !connection.woken {
            connection.woken = true;
            self.woken.push(slot as u32);
        }
    }

    fn wake_all(&mut self) {
        self.active = self.clients.len();
        for slot in 0..self.clients.len() {
            self.wake(slot);
        }
    }

    fn stop(&mut self, now: Nanos) {
        for client in &mut self.clients {
            client.stop(now);
        }
        self.queue.clear();
        self.wake_all();
    }

    /// What becomes of the phase now that no client has anything left to do. Where connections were lost before its end,
    /// requests are due all the same for as long as other workers go on: all account for the same time.
    fn outlast(&self, meeting: &Meeting, bounds: &mut Bounds, now: Nanos) -> Outlook {
        let is_early = now < bounds.end && bounds.end != NEVER;
        if !is_early || !self.clients.iter().any(Client::is_lost) {
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
        while let Some(&Reverse((at, slot))) = self.due.peek().filter(|Reverse((at, _))| *at <= now) {
            self.due.pop();
            let connection = &mut self.connections[slot as usize];
            if connection.due == at {
                connection.due = NEVER;
                self.wake(slot as usize);
            }
        }
    }

    /// Lets every woken client ask what it wants, and sends it.
    #[inline]
    fn serve_woken(&mut self, backend: &mut impl Backend, now: Nanos) {
        let mut woken = std::mem::take(&mut self.woken);
        for slot in woken.drain(..) {
            self.connections[slot as usize].woken = false;
            self.serve(slot as usize, backend, now);
        }
        // Those who have more to ask than one turn allows were woken again meanwhile.
        std::mem::swap(&mut self.woken, &mut woken);
        self.woken.append(&mut woken);
    }

    fn serve(&mut self, slot: usize, backend: &mut impl Backend, now: Nanos) {
        let mut asked = 0;
        loop {
            let connection = &mut self.connections[slot];
            match self.clients[slot].poll(now, &mut self.shared) {
                Wish::Ask { op, ticket, .. } => {
                    connection
                        .session
                        .request(&op, ticket)
                        .expect("a plan holds only what its protocol can say");
                    self.log.asked();
                    asked += 1;
                    if asked == ASK_MAX {
                        self.wake(slot);
                        break;
                    }
                }
                Wish::Open(_) => {
                    connection.state = State::Queued;
                    let pause = retry_pause(connection.failures.max(connection.barren));
                    self.queue.push(Reverse((now + pause, slot as u32)));
                }
                Wish::Wait(NEVER) => break,
                Wish::Wait(at) => {
                    if at < connection.due {
                        connection.due = at;
                        self.due.push(Reverse((at, slot as u32)));
                    }
                    break;
                }
                Wish::Done => {
                    self.active -= usize::from(self.clients[slot].retire());
                    break;
                }
            }
        }
        self.flush(slot, backend);
    }

    /// Sends what waits on a connection, as far as the socket takes it.
    #[inline]
    fn flush(&mut self, slot: usize, backend: &mut impl Backend) {
        let id = self.id(slot);
        let connection = &mut self.connections[slot];
        while connection.state == State::Open {
            let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
            let count = connection.session.poll_send(self.shared.block(), &mut parts);
            if count == 0 {
                break;
            }
            let offered: usize = parts[..count].iter().map(|part| part.len()).sum();
            let handed = backend.send(id, &parts[..count]);
            if handed.taken < offered {
                connection.state = State::Full;
            }
            self.log.sent(handed.taken);
            let mut view = View::new(slot, &mut self.clients[slot], &mut self.shared, &mut self.log);
            connection.session.handle_sent(handed.taken, handed.at, &mut view);
            if view.woken && !connection.woken {
                connection.woken = true;
                self.woken.push(slot as u32);
            }
        }
        if !connection.in_wheel && !connection.session.is_idle() {
            connection.in_wheel = true;
            let deadline = connection.session.deadline(self.rules.timeout_ns);
            self.wheel.insert(slot as u32, deadline);
        }
    }

    /// Opens what waits to be opened, as many at a time as is good.
    fn open_queued(&mut self, backend: &mut impl Backend, now: Nanos) {
        for _ in 0..OPENING_TURN {
            if self.opening >= OPENING_MAX {
                return;
            }
            let Some(&Reverse((_, slot))) = self.queue.peek().filter(|Reverse((at, _))| *at <= now) else {
                return;
            };
            self.queue.pop();
            let slot = slot as usize;
            let connection = &mut self.connections[slot];
            connection.state = State::Opening(backend.now());
            connection.generation = connection.generation.wrapping_add(1);
            self.opening += 1;
            if !connection.in_wheel {
                connection.in_wheel = true;
                self.wheel.insert(slot as u32, now.saturating_add(self.rules.timeout_ns));
            }
            let Road { server, connection: number } = self.roads[slot];
            let target = self.servers[server as usize].target(number, connection.attempt as usize);
            backend.open(ConnId { slot: slot as u32, generation: connection.generation }, &target);
        }
    }

    /// When something has to be done, if nothing happens before.
    #[inline]
    fn next_time(&self, now: Nanos) -> Nanos {
        if !self.woken.is_empty() {
            return now;
        }
        let due = self.due.peek().map_or(NEVER, |Reverse((at, _))| *at);
        let open = match self.queue.peek() {
            Some(Reverse((at, _))) if self.opening < OPENING_MAX => *at,
            _ => NEVER,
        };
        due.min(open).min(self.wheel.next()).min(self.log.next_tick()).min(now + SLEEP_MAX_NS)
    }

    /// Takes in what happened on a connection.
    #[inline]
    fn handle(&mut self, id: ConnId, event: Event<'_>, now: Nanos) {
        let slot = id.slot as usize;
        let connection = &mut self.connections[slot];
        if connection.generation != id.generation {
            return;
        }
        match event {
            Event::Received { bytes, .. } if connection.welcome.is_some() => self.hear(slot, bytes, now),
            Event::Writable if connection.welcome.is_some() => self.greeted.push(slot as u32),
            Event::Received { bytes, stamp, read } => {
                let chunk = Chunk { bytes, stamp, read };
                let mut view = View::new(slot, &mut self.clients[slot], &mut self.shared, &mut self.log);
                let answered = connection.session.handle_received(chunk, &mut view);
                self.log.received(chunk.bytes.len(), answered.unwrap_or(0));
                match answered {
                    Ok(answered) => {
                        if answered > 0 {
                            connection.answered = true;
                            self.silence.answered(self.roads[slot].server, read);
                        }
                        self.wake(slot);
                    }
                    Err(malformed) => {
                        self.log.malformed(self.roads[slot].server, malformed, chunk.bytes);
                        self.broken.push(slot as u32);
                        self.lose(slot, Loss::Closed(Fault::Protocol), self.rules.reconnect, read);
                    }
                }
            }
            Event::Writable => {
                connection.state = State::Open;
                connection.session.handle_writable(now);
                self.wake(slot);
            }
            Event::Opened { at } if self.greeting.is_none() => self.opened(slot, at),
            Event::Opened { .. } => {
                connection.welcome = Some(Box::new(Welcome { said: 0, hearing: self.greeting.hearing() }));
                self.greeted.push(slot as u32);
            }
            Event::Closed(reason) => self.closed(slot, reason, now),
        }
    }

    /// Says on new connections what is said before the first request.
    fn greet(&mut self, backend: &mut impl Backend) {
        for slot in std::mem::take(&mut self.greeted) {
            let id = self.id(slot as usize);
            let Some(welcome) = &mut self.connections[slot as usize].welcome else { continue };
            let rest = &self.greeting.bytes()[welcome.said..];
            if !rest.is_empty() {
                let handed = backend.send(id, &[IoSlice::new(rest)]);
                welcome.said += handed.taken;
                self.log.sent(handed.taken);
            }
        }
    }

    /// Takes in what a server answers to the greeting. The connection counts as open when it has agreed to everything.
    fn hear(&mut self, slot: usize, mut bytes: &[u8], now: Nanos) {
        self.log.received(bytes.len(), 0);
        let connection = &mut self.connections[slot];
        let Some(welcome) = &mut connection.welcome else { return };
        let why = match welcome.hearing.handle_received(&mut bytes) {
            Ok(Heard::NeedMore) => return,
            Ok(Heard::Done) if bytes.is_empty() => {
                connection.welcome = None;
                return self.opened(slot, now);
            }
            Ok(Heard::Done) => "the server said more than was asked".to_owned(),
            Err(unwelcome) => unwelcome.to_string(),
        };
        connection.generation = connection.generation.wrapping_add(1);
        self.broken.push(slot as u32);
        let words = Some(Arc::from(why));
        self.closed(slot, Reason { words, ..Reason::new(Fault::Client, 0) }, now);
    }

    fn opened(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        let State::Opening(since) = connection.state else { return };
        self.opening -= 1;
        self.log.opened(now.saturating_sub(since), connection.opened);
        connection.state = State::Open;
        connection.opened = true;
        connection.answered = false;
        connection.failures = 0;
        self.clients[slot].handle_opened(0, now);
        self.wake(slot);
    }

    /// A connection is not there any more, or never came to be; its socket is closed already.
    fn closed(&mut self, slot: usize, reason: Reason, now: Nanos) {
        let server = self.roads[slot].server;
        let connection = &mut self.connections[slot];
        let State::Opening(since) = connection.state else {
            let fault = reason.fault;
            self.log.lost(server, Trouble::Lost(reason));
            return self.lose(slot, Loss::Closed(fault), self.rules.reconnect, now);
        };
        self.opening -= 1;
        connection.welcome = None;
        connection.attempt = connection.attempt.wrapping_add(1);
        connection.failures += 1;
        connection.state = State::Closed;
        let addresses = self.servers[server as usize].addresses() as u32;
        if !connection.failures.is_multiple_of(addresses) {
            // The server's name has more addresses; the next may be the one that it listens on.
            connection.state = State::Queued;
            self.queue.push(Reverse((now, slot as u32)));
            return;
        }
        let again = connection.opened && self.rules.reconnect;
        self.log.not_opened(server, reason);
        self.silence.missed(server, since);
        let again = again && !self.gives_up(server, now);
        self.clients[slot].handle_closed(0, again, &mut self.shared);
        self.wake(slot);
    }

    /// A connection is lost that was open; `again`: its client may open it again, unless its server has been silent for
    /// too long.
    fn lose(&mut self, slot: usize, loss: Loss, again: bool, now: Nanos) {
        self.miss(slot);
        let connection = &mut self.connections[slot];
        match loss {
            _ if connection.answered => connection.barren = 0,
            Loss::Closed(_) => connection.barren += 1,
            Loss::TimedOut => {}
        }
        let again = again && !self.gives_up(self.roads[slot].server, now);
        self.end_session(slot, loss, again, now);
    }

    /// What a connection owes, if anything, will not come.
    fn miss(&mut self, slot: usize) {
        let since = self.connections[slot].session.deadline(0);
        if since != NEVER {
            self.silence.missed(self.roads[slot].server, since);
        }
    }

    /// Whether a server has been silent for too long to be asked again.
    fn gives_up(&self, server: u32, now: Nanos) -> bool {
        self.silence.of(server, now) >= self.patience_ns
    }

    /// For every server that this worker talks to, how long it has been silent.
    fn silent(&self, now: Nanos) -> Vec<(u32, Nanos)> {
        let mut servers: Vec<u32> = self.roads.iter().map(|road| road.server).collect();
        servers.sort_unstable();
        servers.dedup();
        servers.into_iter().map(|server| (server, self.silence.of(server, now))).collect()
    }

    /// Ends everything that a connection owes; `again`: its client may open it again.
    fn end_session(&mut self, slot: usize, loss: Loss, again: bool, now: Nanos) {
        let connection = &mut self.connections[slot];
        connection.state = State::Closed;
        connection.generation = connection.generation.wrapping_add(1);
        let mut view = View::new(slot, &mut self.clients[slot], &mut self.shared, &mut self.log);
        match loss {
            Loss::Closed(fault) => connection.session.handle_closed(fault, now, &mut view),
            Loss::TimedOut => connection.session.handle_timeout(self.rules.timeout_ns, now, &mut view),
        }
        self.log.drop_check(slot);
        self.clients[slot].handle_closed(0, again, &mut self.shared);
        self.wake(slot);
    }

    /// Closes the sockets of connections that were given up while events were taken in.
    fn close_broken(&mut self, backend: &mut impl Backend) {
        for slot in self.broken.drain(..) {
            // The generation went on when the session ended.
            let generation = self.connections[slot as usize].generation.wrapping_sub(1);
            backend.close(ConnId { slot, generation }, Close::Fin);
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
        let deadline = match connection.state {
            State::Closed | State::Queued => return,
            State::Opening(since) => since.saturating_add(self.rules.timeout_ns),
            State::Open | State::Full => connection.session.deadline(self.rules.timeout_ns),
        };
        if deadline == NEVER {
            return;
        }
        if deadline > now {
            connection.in_wheel = true;
            self.wheel.insert(slot as u32, deadline);
            return;
        }
        let words = backend.obstacle(id).map(Arc::from);
        backend.close(id, Close::Fin);
        if let State::Opening(_) = connection.state {
            return self.closed(slot, Reason { words, ..Reason::new(Fault::Timeout, 0) }, now);
        }
        // The generator closed it, so that it is opened again whatever the rules say of servers that close.
        self.log.lost(self.roads[slot].server, Trouble::TimedOut);
        self.lose(slot, Loss::TimedOut, true, now);
    }
}

/// How long to wait before a connection is tried again that failed so often.
fn retry_pause(failures: u32) -> Nanos {
    match failures {
        0 => 0,
        failures => (RETRY_NS.0 << (failures - 1).min(10)).min(RETRY_NS.1),
    }
}

/// One connection's client and log, as its session tells them what came.
struct View<'a> {
    slot: usize,
    client: &'a mut Client,
    shared: &'a mut Shared,
    log: &'a mut Log,
    /// A request ended, so that the client may have something to ask.
    woken: bool,
}

impl<'a> View<'a> {
    #[inline]
    fn new(slot: usize, client: &'a mut Client, shared: &'a mut Shared, log: &'a mut Log) -> View<'a> {
        View { slot, client, shared, log, woken: false }
    }

    /// The value that passed by, if any, has passed.
    fn end_check(&mut self, ticket: &Ticket) {
        let (client, shared) = (&*self.client, &*self.shared);
        self.log.end_check(self.slot, shared, |key, version| client.is_stale(ticket, key, version, shared));
    }
}

impl Sink for View<'_> {
    #[inline]
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> bool {
        if ticket.care == Care::None && ticket.origin != Origin::BeforeCas {
            return false;
        }
        let verify = ticket.care == Care::Verify;
        if verify {
            self.end_check(ticket);
        }
        let key = self.client.handle_item(ticket, &item, self.shared);
        if verify {
            self.log.begin_check(self.slot, key, ticket, &item, self.shared);
        }
        verify
    }

    #[inline]
    fn body(&mut self, _ticket: &Ticket, bytes: &[u8]) {
        self.log.check(self.slot, bytes, self.shared);
    }

    #[inline]
    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        if answer.ticket.care == Care::Verify && !matches!(answer.outcome, Outcome::Error(_)) {
            self.end_check(answer.ticket);
        }
        self.log.answer(self.client.group(), self.client.number(), answer, message);
        self.client.handle_answer(answer, self.shared);
        self.woken = true;
    }
}
