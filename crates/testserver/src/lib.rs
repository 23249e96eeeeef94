//! The core of a small server of memcached's and Redis' protocols, without sockets.
//!
//! `pummel serve` puts sockets around it; tests of workers put a simulated network around it. A [`Server`] is the whole
//! server and is shared by its connections; a [`ServerConnection`] is one connection. Bytes that came go into
//! [`Server::handle_received`]; bytes that are due come out of [`Server::poll_send`]. A request takes effect when its last
//! byte is handed over; its reply is held for a time drawn from the service-time distribution, counted from the time at
//! which, by the caller, that byte arrived, and never overtakes an earlier reply of its connection. Datagrams go into
//! [`Server::handle_datagram`], with a [`DatagramQueue`] that keeps the answers until they are due. All dialects share what
//! is stored, the counters and the faults.
//!
//! The room may use `pummel-logic`, whose codecs are the other side of the same bytes; it knows no socket, clock or measurement.
//! Reading begins at [`Server`]; `dialects` says how one parser stands before all protocols, and [`fault`] what can go wrong.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod binary;
mod cluster;
mod context;
mod contract;
mod copies;
mod datagram_queue;
mod dialects;
pub mod fault;
mod lines;
mod meta;
mod owed;
mod resp;
mod service;
mod stats;
pub mod store;
mod text;
pub mod truth;

use std::io::IoSlice;

pub use cluster::{CLUSTER_NODES_MAX, ClusterConfig, ClusterFault, Endpoint, NodeAddress};
pub use contract::{ServerLogin, VERSION};
pub use copies::{Copies, NoPeer};
pub use datagram_queue::{DatagramQueue, Framing, OutgoingDatagram};
pub use dialects::Dialect;
pub use fault::{CountedFault, ServerFault};
pub use owed::PARTS_MAX;
pub use service::{DRIFT_FORMS, QUEUE_SERVERS_MAX, ServiceDrift};
pub use store::{Limits, Store, StoreCounts};
pub use truth::Note;

use cluster::Cluster;
use context::{Calls, Context, Gauges, Node, ServerSession};
use contract::{ParserStep, Silence};
use dialects::{DialectParser, DialectRequest};
use fault::{FaultVerdict, Faults, SLOW_BYTE_GAP_NS, Tampering};
use owed::{OwedReplies, OwedReply, ReplyBuffer};
use pummel_logic::dist::Dist;
use pummel_logic::rng::mix;
use pummel_logic::time::{NEVER, Nanos, SECOND};
use resp::Scripts;
use service::{Service, ServiceTime};

/// Limits of unsent bytes and replies beyond which a connection should not be read from, since the peer sends requests
/// faster than it reads replies.
const BACKLOG_MAX_BYTES: u64 = 1 << 20;
const BACKLOG_MAX_REPLIES: usize = 1 << 16;

/// Keeping of notes of requests and faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truth {
    /// Notes are kept until [`Server::take_notes`] takes them.
    Kept,
    /// Notes are not kept.
    #[default]
    Dropped,
}

/// Configuration of a server at its start.
#[derive(Clone, Debug, Default)]
pub struct ServerConfig {
    /// The protocol that the server speaks.
    pub dialect: Dialect,
    /// The login that connections need; `None` where they need none.
    pub login: Option<ServerLogin>,
    /// Time for which replies are held, in seconds; `None` where they are not held.
    pub service_time: Option<Dist>,
    /// Change of service times with time.
    pub service_drift: Option<ServiceDrift>,
    /// Number of parallel servers, from 1 to [`QUEUE_SERVERS_MAX`], that share the requests of all connections in the order of
    /// their arrival; `None` where no request waits for another connection's.
    pub queue_servers: Option<u32>,
    /// Seed of service times and of the chance in faults.
    pub seed: u64,
    /// The faults that the server makes.
    pub faults: Vec<ServerFault>,
    /// Limits of the store.
    pub limits: Limits,
    /// Unix time, in nanoseconds, at time 0 of the clock that all `now`s are read from.
    pub unix_ns_at_zero: u64,
    /// Keeping of notes of requests and faults.
    pub truth: Truth,
    /// The cluster that the server is; `None` for a server by itself.
    pub cluster: Option<ClusterConfig>,
}

/// A server: its store, its faults, its service times, its counters.
#[derive(Debug)]
pub struct Server {
    dialect: Dialect,
    login: Option<ServerLogin>,
    /// The items of each node; a server by itself is one node.
    stores: Vec<Store>,
    nodes: Vec<Node>,
    cluster: Option<Cluster>,
    faults: Faults,
    service: Service,
    copies: Copies,
    /// Number of connections that were accepted.
    connections: u64,
    requests: u64,
    reply: ReplyBuffer,
    truth: Truth,
    notes: Vec<Note>,
}

/// Connection of a client: the incomplete request at the end of its input, and the replies that wait to be sent.
#[derive(Debug)]
pub struct ServerConnection {
    session: ServerSession,
    parser: DialectParser,
    replies: OwedReplies,
    ending: Option<Ending>,
    /// Time at which the next byte may leave, in nanoseconds, where replies leave byte by byte.
    next_byte: Option<Nanos>,
}

/// Way in which the server wants a connection to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server closes the connection with a FIN.
    Fin,
    /// The server resets the connection.
    Reset,
}

/// Bytes that are due.
#[derive(Debug)]
pub struct Due<'a> {
    parts: [IoSlice<'a>; PARTS_MAX],
    count: usize,
}

impl<'a> Due<'a> {
    /// The bytes, in order; no part is empty.
    pub fn parts(&self) -> &[IoSlice<'a>] {
        &self.parts[..self.count]
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Whether nothing is due.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl ServerConnection {
    /// Number of the connection, from 1.
    pub fn connection(&self) -> u64 {
        self.session.connection
    }

    /// Number of the node that the connection is to, from 0.
    pub fn node(&self) -> usize {
        self.session.node
    }

    /// Time at which the next byte may leave, in nanoseconds; [`NEVER`] if no reply waits.
    pub fn next_due(&self) -> Nanos {
        let due = self.replies.next_due();
        match self.next_byte {
            Some(next_byte) if due != NEVER => due.max(next_byte),
            _ => due,
        }
    }

    /// Whether too many bytes or replies wait to be sent for more input to be read before some of them are.
    pub fn is_full(&self) -> bool {
        self.replies.len_bytes() > BACKLOG_MAX_BYTES || self.replies.len() > BACKLOG_MAX_REPLIES
    }

    /// Whether replies wait until the peer has answered the copy of what they stored.
    pub fn waits_for_copy(&self) -> bool {
        self.replies.waits_for_copy()
    }

    /// Ending that the server wants, where it has nothing more to send first.
    pub fn poll_close(&self) -> Option<Ending> {
        self.ending.filter(|ending| *ending == Ending::Reset || self.replies.len() == 0)
    }
}

impl Server {
    /// A server that starts at `now`.
    pub fn new(config: ServerConfig, now: Nanos) -> Server {
        let faults = Faults::new(&config.faults, config.seed);
        let store = || {
            let mut store = Store::new(config.limits, faults.expiry, config.unix_ns_at_zero);
            // memcached counts its listening socket among all connections.
            store.counts.total_connections = 1;
            store
        };
        let gauges =
            Gauges { started: now, unix_ns_at_zero: config.unix_ns_at_zero, connections: 0, requests: 0 };
        let cluster = config.cluster.map(|cluster| Cluster::new(cluster, now));
        let count = cluster.as_ref().map_or(1, Cluster::nodes);
        let stores = (0..count).map(|_| store()).collect();
        let nodes = (0..count)
            .map(|_| Node { gauges, calls: Calls::default(), scripts: Scripts::default() })
            .collect();
        Server {
            dialect: config.dialect,
            login: config.login,
            stores,
            nodes,
            cluster,
            faults,
            service: Service::new(
                config.service_time,
                mix(&[config.seed, 1]),
                config.service_drift,
                config.queue_servers,
            ),
            copies: Copies::default(),
            connections: 0,
            requests: 0,
            reply: ReplyBuffer::default(),
            truth: config.truth,
            notes: Vec::new(),
        }
    }

    /// Takes in a new connection. With the fault `refuse`, [`ServerConnection::poll_close`] asks for its reset at once.
    pub fn accept(&mut self) -> ServerConnection {
        self.accept_at(0)
    }

    /// Takes in a new connection by the listener of this number, as [`Server::accept`] does: in a cluster each node has one.
    pub fn accept_at(&mut self, listener: usize) -> ServerConnection {
        let node = if self.cluster.is_some() { listener } else { 0 };
        self.connections += 1;
        self.stores[node].counts.total_connections += 1;
        self.nodes[node].gauges.connections += 1;
        let connection = self.connections;
        if self.faults.refuse {
            self.note_fault("refuse", connection, 0, None, String::new());
        }
        ServerConnection {
            session: ServerSession { connection, node, ..ServerSession::default() },
            parser: DialectParser::new(self.dialect),
            replies: OwedReplies::default(),
            ending: self.faults.refuse.then_some(Ending::Reset),
            next_byte: self.faults.slow_bytes.then_some(0),
        }
    }

    /// Takes all of `bytes`, which arrived at `now`, and carries out the requests that they complete.
    pub fn handle_received(&mut self, connection: &mut ServerConnection, bytes: &[u8], now: Nanos) {
        self.advance(now);
        let node = connection.node();
        if self.cluster.as_ref().is_some_and(|cluster| cluster.is_dead(node)) {
            connection.ending = Some(Ending::Reset);
            return;
        }
        self.stores[node].counts.bytes_read += bytes.len() as u64;
        let item_max_bytes = self.stores[node].limits().item_max_bytes;
        let mut input = bytes;
        let ServerConnection { session, parser, replies, ending, .. } = connection;
        while ending.is_none() {
            match parser.next(&mut input, item_max_bytes) {
                ParserStep::Need => return,
                ParserStep::Close => *ending = Some(Ending::Fin),
                ParserStep::Request(request) => {
                    let (verdict, owed) = self.execute(&request, session, now);
                    self.owe(&request, verdict, owed, session.connection, replies);
                    // With some faults nothing of the request is looked at, and so nothing of it asks for the end.
                    let ends = session.is_closing || verdict == FaultVerdict::Close || request.is_broken();
                    *ending = ends.then_some(Ending::Fin);
                }
            }
        }
    }

    /// The bytes that are due by `now`. The caller sends as many of them as the socket takes, and reports their number
    /// with [`Server::handle_sent`].
    pub fn poll_send<'g>(&self, connection: &'g mut ServerConnection, now: Nanos) -> Due<'g> {
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let max = match connection.next_byte {
            None => u64::MAX,
            Some(next_byte) => u64::from(next_byte <= now),
        };
        let count = connection.replies.parts(now, self.copies.taken(), max, &mut parts);
        Due { parts, count }
    }

    /// Takes in that the first `count` of the due bytes were sent at `at`.
    pub fn handle_sent(&mut self, connection: &mut ServerConnection, count: usize, at: Nanos) {
        self.stores[connection.node()].counts.bytes_written += count as u64;
        if let Some(next_byte) = &mut connection.next_byte {
            *next_byte = at + SLOW_BYTE_GAP_NS;
        }
        let number = connection.session.connection;
        connection.replies.take(count, |owed| {
            if self.truth == Truth::Kept {
                self.notes.push(ended(number, owed, owed.whole.then_some(at)));
            }
        });
    }

    /// Takes in that the connection is closed, by the peer or by the server.
    pub fn handle_closed(&mut self, connection: ServerConnection) {
        self.nodes[connection.node()].gauges.connections -= 1;
        for owed in connection.replies.owed() {
            self.note(ended(connection.session.connection, owed, None));
        }
    }

    /// Requests that came so far, those without reply included.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Time of the next change of the cluster; [`NEVER`] where none is to come.
    pub fn next_change(&self) -> Nanos {
        self.cluster.as_ref().map_or(NEVER, Cluster::next_change)
    }

    /// Makes the changes of the cluster that are due by `now`.
    pub fn advance(&mut self, now: Nanos) {
        let Some(cluster) = &mut self.cluster else { return };
        cluster.advance(&mut self.stores, now);
        for (kind, detail) in cluster.take_made() {
            self.note_fault(kind, 0, 0, None, detail);
        }
    }

    /// Takes the nodes of the cluster that died since the last call. Their connections are over, and they take no more.
    pub fn take_died(&mut self) -> Vec<usize> {
        self.cluster.as_mut().map_or_else(Vec::new, Cluster::take_died)
    }

    /// The counters, with the meaning of memcached's `stats`; in a cluster those of the first node.
    pub fn counts(&self) -> &StoreCounts {
        &self.stores[0].counts
    }

    /// Store of the server; in a cluster that of the first node.
    pub fn store(&mut self) -> &mut Store {
        &mut self.stores[0]
    }

    /// The copies that are sent to the peer.
    pub fn copies(&mut self) -> &mut Copies {
        &mut self.copies
    }

    /// Begins to copy to a peer: first all stored items, then each item when it is stored. A reply to a request that
    /// stores is held until the peer has answered the copy.
    pub fn open_peer(&mut self, now: Nanos) {
        let (store, gauges) = (&mut self.stores[0], self.nodes[0].gauges);
        store.keep_changes();
        store.take_changes();
        self.copies.open();
        for item in store.living(now) {
            self.copies.push(copies::ADD, item, gauges.unix_ns_at_zero);
        }
    }

    /// Copies what the last request stored, unless it was a copy itself. Returns the number of the copy that its reply
    /// waits for, 0 for none.
    fn copy_changes(&mut self, request: &DialectRequest<'_>) -> u64 {
        let (store, gauges) = (&mut self.stores[0], self.nodes[0].gauges);
        let changes = store.take_changes();
        if changes.is_empty() || request.is_copy() {
            return 0;
        }
        for key in changes {
            if let Some(item) = store.stored(&key) {
                self.copies.push(copies::SET, item, gauges.unix_ns_at_zero);
            }
        }
        self.copies.newest()
    }

    /// Takes the notes that were made since the last call.
    pub fn take_notes(&mut self) -> impl Iterator<Item = Note> + '_ {
        self.notes.drain(..)
    }

    /// The node whose items a connection is answered from.
    fn source_of(&self, session: &ServerSession) -> usize {
        self.cluster.as_ref().map_or(session.node, |cluster| cluster.source_of(session.node))
    }

    /// Exchanges the figures of two nodes: a replica that answers from its master's items counts for itself.
    fn swap_counts(&mut self, node: usize, source: usize) {
        if let Ok([own, other]) = self.stores.get_disjoint_mut([node, source]) {
            std::mem::swap(&mut own.counts, &mut other.counts);
        }
    }

    /// Carries out one request, and leaves its reply in `self.reply`.
    fn execute(
        &mut self,
        request: &DialectRequest<'_>,
        session: &mut ServerSession,
        now: Nanos,
    ) -> (FaultVerdict, OwedReply) {
        self.requests += 1;
        let number = self.requests;
        let verdict = self.faults.judge(number, request.silence());
        self.reply.clear();
        let source = self.source_of(session);
        self.swap_counts(session.node, source);
        let store = &mut self.stores[source];
        let Node { gauges, calls, scripts } = &mut self.nodes[session.node];
        gauges.requests += 1;
        match verdict {
            FaultVerdict::Silence | FaultVerdict::Close => {}
            FaultVerdict::Fail => request.fail(&mut self.reply),
            FaultVerdict::Serve | FaultVerdict::Garbage | FaultVerdict::Foreign | FaultVerdict::Half => {
                let mut context = Context {
                    store,
                    faults: &mut self.faults,
                    calls,
                    scripts,
                    session,
                    cluster: self.cluster.as_ref(),
                    login: self.login.as_ref(),
                    gauges: *gauges,
                    now,
                };
                request.answer(&mut context, &mut self.reply);
            }
        }
        self.swap_counts(session.node, source);
        if !self.reply.is_empty() {
            self.replace_reply(verdict, number, request);
        }
        self.note_faults(verdict, session, number, now);
        let whole = verdict != FaultVerdict::Half;
        let service = match verdict {
            FaultVerdict::Silence | FaultVerdict::Close => self.service.spare(),
            _ => self.service.take(number, now),
        };
        let copy = self.copy_changes(request);
        (verdict, OwedReply { request: number, verb: request.verb(), arrived: now, service, whole, copy })
    }

    /// Replaces the reply by garbage or by another dialect's reply where the verdict asks for it.
    fn replace_reply(&mut self, verdict: FaultVerdict, number: u64, request: &DialectRequest<'_>) {
        match verdict {
            FaultVerdict::Garbage => {
                let garbage = self.faults.garbage(number, self.reply.len());
                self.reply.clear();
                self.reply.push(&garbage);
            }
            FaultVerdict::Foreign => {
                self.reply.clear();
                let dialect = request.dialect().other(self.faults.foreign_before(number));
                dialect.write_foreign(&mut self.reply);
            }
            FaultVerdict::Serve
            | FaultVerdict::Fail
            | FaultVerdict::Half
            | FaultVerdict::Silence
            | FaultVerdict::Close => {}
        }
    }

    /// Adds the reply to those that wait on a connection.
    fn owe(
        &mut self,
        request: &DialectRequest<'_>,
        verdict: FaultVerdict,
        owed: OwedReply,
        connection: u64,
        replies: &mut OwedReplies,
    ) {
        if request.silence() == Silence::Always || self.reply.is_empty() {
            return self.note(ended(connection, owed.without_reply(), None));
        }
        replies.add(&self.reply, owed);
        if verdict == FaultVerdict::Half {
            let full = self.reply.len();
            replies.cut_newest(full, full / 2);
        }
        if self.faults.slow_bytes {
            self.note_fault("slow-bytes", connection, owed.request, None, String::new());
        }
    }

    fn note_faults(&mut self, verdict: FaultVerdict, session: &ServerSession, request: u64, now: Nanos) {
        let connection = session.connection;
        let fault = match verdict {
            FaultVerdict::Serve => None,
            FaultVerdict::Fail => Some(CountedFault::ErrorEvery),
            FaultVerdict::Garbage => Some(CountedFault::GarbageAfter),
            FaultVerdict::Foreign => Some(CountedFault::Mix),
            FaultVerdict::Half => Some(CountedFault::HalfReplyAfter),
            FaultVerdict::Silence if self.faults.is_half_done() => Some(CountedFault::HalfReplyAfter),
            FaultVerdict::Silence => Some(CountedFault::StallAfter),
            FaultVerdict::Close => Some(CountedFault::CloseAfter),
        };
        if let Some(fault) = fault {
            self.note_fault(fault.name(), connection, request, None, String::new());
        }
        for Tampering { fault, key, detail } in std::mem::take(&mut self.faults.tamperings) {
            self.note_fault(fault.name(), connection, request, Some(key), detail);
        }
        let kind = match self.faults.expiry {
            store::ExpiryPolicy::Early(_) => "early-expiry",
            store::ExpiryPolicy::Kept | store::ExpiryPolicy::Ignored => "ignore-expiry",
        };
        let source = self.source_of(session);
        for lapse in self.stores[source].take_lapses() {
            let left_ns = lapse.expires as i128 - i128::from(now);
            let detail = format!("left_s={:.6}", left_ns as f64 / SECOND as f64);
            self.note_fault(kind, connection, request, Some(lapse.key), detail);
        }
    }

    fn note_fault(
        &mut self,
        kind: &'static str,
        connection: u64,
        request: u64,
        key: Option<Vec<u8>>,
        detail: String,
    ) {
        self.note(Note::Fault { kind, connection, request, key, detail });
    }

    fn note(&mut self, note: Note) {
        if self.truth == Truth::Kept {
            self.notes.push(note);
        }
    }
}

fn ended(connection: u64, owed: OwedReply, sent: Option<Nanos>) -> Note {
    let OwedReply { request, verb, arrived, service: ServiceTime { queued_ns, asked_ns }, .. } = owed;
    Note::Request { connection, request, verb, arrived, sent, asked_ns, queued_ns }
}

/// Gives `bytes` to a connection at once, and to a connection of another server in pieces of `step` bytes. Asserts that
/// both connections get equal replies, except where replies show counters of bytes, which depend on the pieces.
///
/// # Panics
/// When the replies differ.
#[cfg(any(test, fuzzing))]
pub fn fuzz_connection(bytes: &[u8], step: usize) {
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut server = Server::new(ServerConfig::default(), 0);
        let mut connection = server.accept();
        for piece in pieces {
            server.handle_received(&mut connection, piece, 0);
        }
        let mut received = Vec::new();
        loop {
            let due = server.poll_send(&mut connection, 0);
            let count = due.len();
            due.parts().iter().for_each(|part| received.extend_from_slice(part));
            if count == 0 {
                return (received, connection.poll_close());
            }
            server.handle_sent(&mut connection, count, 0);
        }
    };
    let whole = run(&mut std::iter::once(bytes));
    let pieces = run(&mut bytes.chunks(step.max(1)));
    if !whole.0.windows(10).any(|word| word == b"bytes_read") {
        assert!(whole == pieces, "in pieces of {step}: {:?} and {:?}", whole, pieces);
    }
}

#[cfg(test)]
mod dialect_tests;
#[cfg(test)]
mod tests;
