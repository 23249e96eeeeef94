//! The other side of the wire: the core of a small server of memcached's and Redis' protocols, without sockets.
//!
//! `pummel serve` puts sockets around it; tests of workers put a simulated network around it. A [`Host`] is the whole
//! server and is shared by its connections; a [`Guest`] is one connection. Bytes that came go into
//! [`Host::handle_received`]; bytes that are due come out of [`Host::poll_send`]. A request takes effect when its last
//! byte is handed over; its reply is held for a time drawn from the service-time distribution, counted from then, and
//! never overtakes an earlier reply of its connection. Datagrams go into [`Host::handle_datagram`], with a [`Post`] that
//! keeps the answers until they are due. All dialects share what is stored, the counters and the faults.

mod binary;
mod context;
mod contract;
mod copies;
mod dialects;
pub mod fault;
mod lines;
mod meta;
mod owed;
mod post;
mod resp;
mod stats;
pub mod store;
mod text;
pub mod truth;

use std::io::IoSlice;

pub use contract::{Login, VERSION};
pub use copies::{Copies, NoPeer};
pub use dialects::Dialect;
pub use fault::Fault;
pub use owed::PARTS_MAX;
pub use post::{Framing, Letter, Post};
pub use store::{Counts, Limits, Store};
pub use truth::Note;

use crate::dist::Dist;
use crate::rng::{Stream, mix};
use crate::time::{NEVER, Nanos, SECOND, from_seconds};
use context::{Context, Gauges, Session};
use contract::{ParserStep, Silence};
use dialects::{DialectParser, DialectRequest};
use fault::{Faults, SLOW_BYTE_GAP_NS, Verdict};
use owed::{Debt, Owing, Reply};
use resp::Calls;

/// A connection with more unsent bytes or replies than these should not be read from: the peer asks faster than it
/// listens.
const BACKLOG_MAX_BYTES: u64 = 1 << 20;
const BACKLOG_MAX_REPLIES: usize = 1 << 16;

/// Whether what happens is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truth {
    /// Notes are kept until [`Host::take_notes`] takes them.
    Kept,
    /// Nothing is noted.
    #[default]
    Dropped,
}

/// Everything that a server needs to know at its start.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// What is spoken.
    pub dialect: Dialect,
    /// Who may come in; everybody where it is absent.
    pub login: Option<Login>,
    /// For how long replies are held, in seconds; absent: not at all.
    pub service_time: Option<Dist>,
    /// Seed of service times and of the chance in faults.
    pub seed: u64,
    /// What is done wrong.
    pub faults: Vec<Fault>,
    /// Bounds of what is stored.
    pub limits: Limits,
    /// Unix time, in nanoseconds, at time 0 of the clock that all `now`s are read from.
    pub unix_ns_at_zero: u64,
    /// Whether what happens is written down.
    pub truth: Truth,
}

/// A server: what is stored, its faults, its service times, its counters.
#[derive(Debug)]
pub struct Host {
    dialect: Dialect,
    login: Option<Login>,
    store: Store,
    faults: Faults,
    service_time: Option<Dist>,
    service_chance: Stream,
    gauges: Gauges,
    calls: Calls,
    copies: Copies,
    /// Connections that there were.
    connections: u64,
    requests: u64,
    reply: Reply,
    truth: Truth,
    notes: Vec<Note>,
}

/// One connection: the cut end of a request, and the replies that it is owed.
#[derive(Debug)]
pub struct Guest {
    session: Session,
    parser: DialectParser,
    owing: Owing,
    ending: Option<Ending>,
    /// Set where replies leave byte by byte: when the next byte may.
    next_byte: Option<Nanos>,
}

/// How the server wants a connection to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In order.
    Fin,
    /// By reset.
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

impl Guest {
    /// Number of the connection, from 1.
    pub fn connection(&self) -> u64 {
        self.session.connection
    }

    /// When the next byte may leave; [`NEVER`] if nothing is owed.
    pub fn next_due(&self) -> Nanos {
        let due = self.owing.next_due();
        match self.next_byte {
            Some(next_byte) if due != NEVER => due.max(next_byte),
            _ => due,
        }
    }

    /// Whether so much waits to be sent that nothing more should be read before some of it is.
    pub fn is_stuffed(&self) -> bool {
        self.owing.len_bytes() > BACKLOG_MAX_BYTES || self.owing.len() > BACKLOG_MAX_REPLIES
    }

    /// Whether replies wait until the peer has what they are about.
    pub fn waits_for_copy(&self) -> bool {
        self.owing.waits_for_copy()
    }

    /// Whether the server wants to close, and has nothing more to send first.
    pub fn poll_close(&self) -> Option<Ending> {
        self.ending.filter(|ending| *ending == Ending::Reset || self.owing.len() == 0)
    }
}

impl Host {
    /// A server that starts at `now`.
    pub fn new(config: HostConfig, now: Nanos) -> Host {
        let faults = Faults::new(&config.faults, config.seed);
        let mut store = Store::new(config.limits, faults.expiry, config.unix_ns_at_zero);
        // memcached counts its listening socket among the connections that there were.
        store.counts.total_connections = 1;
        Host {
            dialect: config.dialect,
            login: config.login,
            store,
            faults,
            service_time: config.service_time,
            service_chance: Stream::from_seed(mix(&[config.seed, 1])),
            gauges: Gauges {
                started: now,
                unix_ns_at_zero: config.unix_ns_at_zero,
                connections: 0,
                requests: 0,
            },
            calls: Calls::default(),
            copies: Copies::default(),
            connections: 0,
            requests: 0,
            reply: Reply::default(),
            truth: config.truth,
            notes: Vec::new(),
        }
    }

    /// Takes in a new connection. With the fault `refuse`, [`Guest::poll_close`] asks for its reset at once.
    pub fn greet(&mut self) -> Guest {
        self.connections += 1;
        self.store.counts.total_connections += 1;
        self.gauges.connections += 1;
        let connection = self.connections;
        if self.faults.refuse {
            self.note(Note::Fault {
                kind: "refuse",
                connection,
                request: 0,
                key: None,
                detail: String::new(),
            });
        }
        Guest {
            session: Session { connection, ..Session::default() },
            parser: DialectParser::new(self.dialect),
            owing: Owing::default(),
            ending: self.faults.refuse.then_some(Ending::Reset),
            next_byte: self.faults.slow_bytes.then_some(0),
        }
    }

    /// Takes all of `bytes`, which came at `now`, and carries out the requests that they complete.
    pub fn handle_received(&mut self, guest: &mut Guest, bytes: &[u8], now: Nanos) {
        self.store.counts.bytes_read += bytes.len() as u64;
        let mut input = bytes;
        let Guest { session, parser, owing, ending, .. } = guest;
        while ending.is_none() {
            match parser.next(&mut input, self.store.limits().item_max_bytes) {
                ParserStep::Need => return,
                ParserStep::HangUp => *ending = Some(Ending::Fin),
                ParserStep::Request(request) => {
                    let (verdict, debt) = self.carry_out(&request, session, now);
                    self.owe(&request, verdict, debt, session.connection, owing);
                    let ends = session.leaving || verdict == Verdict::Close;
                    *ending = ends.then_some(Ending::Fin);
                }
            }
        }
    }

    /// What is due by `now`. Send as much of it as goes, and say how much with [`Host::handle_sent`].
    pub fn poll_send<'g>(&self, guest: &'g mut Guest, now: Nanos) -> Due<'g> {
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let max = match guest.next_byte {
            None => u64::MAX,
            Some(next_byte) => u64::from(next_byte <= now),
        };
        let count = guest.owing.parts(now, self.copies.taken(), max, &mut parts);
        Due { parts, count }
    }

    /// The first `count` bytes of what was due were sent, at `at`.
    pub fn handle_sent(&mut self, guest: &mut Guest, count: usize, at: Nanos) {
        self.store.counts.bytes_written += count as u64;
        if let Some(next_byte) = &mut guest.next_byte {
            *next_byte = at + SLOW_BYTE_GAP_NS;
        }
        let connection = guest.session.connection;
        guest.owing.take(count, |debt| {
            if self.truth == Truth::Kept {
                self.notes.push(ended(connection, debt, debt.whole.then_some(at)));
            }
        });
    }

    /// The connection is gone, whoever closed it.
    pub fn handle_closed(&mut self, guest: Guest) {
        self.gauges.connections -= 1;
        for debt in guest.owing.debts() {
            self.note(ended(guest.session.connection, debt, None));
        }
    }

    /// Requests that came so far, those without reply included.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// What was counted, by the meaning of memcached's `stats`.
    pub fn counts(&self) -> &Counts {
        &self.store.counts
    }

    /// What is stored.
    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Copies of what is stored, on their way to the peer.
    pub fn copies(&mut self) -> &mut Copies {
        &mut self.copies
    }

    /// A peer is there that is to hold what is stored here: all of it, and then whatever is stored. A reply to a request
    /// that stores is held until the peer has answered the copy.
    pub fn open_peer(&mut self, now: Nanos) {
        self.store.keep_changes();
        self.store.take_changes();
        self.copies.open();
        for item in self.store.living(now) {
            self.copies.add(item, self.gauges.unix_ns_at_zero);
        }
    }

    /// Copies what the last request stored, unless it was a copy itself. Returns the number of the copy that its reply
    /// waits for, 0 for none.
    fn copy_changes(&mut self, request: &DialectRequest<'_>) -> u64 {
        let changes = self.store.take_changes();
        if changes.is_empty() || request.is_copy() {
            return 0;
        }
        for key in changes {
            if let Some(item) = self.store.stored(&key) {
                self.copies.set(item, self.gauges.unix_ns_at_zero);
            }
        }
        self.copies.newest()
    }

    /// Takes what was noted since the last time.
    pub fn take_notes(&mut self) -> impl Iterator<Item = Note> + '_ {
        self.notes.drain(..)
    }

    /// Carries out one request, and leaves what is to be sent in `self.reply`.
    fn carry_out(
        &mut self,
        request: &DialectRequest<'_>,
        session: &mut Session,
        now: Nanos,
    ) -> (Verdict, Debt) {
        self.requests += 1;
        let number = self.requests;
        let verdict = self.faults.judge(number, request.silence());
        self.reply.clear();
        match verdict {
            Verdict::Silence | Verdict::Close => {}
            Verdict::Fail => request.fail(&mut self.reply),
            Verdict::Serve | Verdict::Garbage | Verdict::Foreign | Verdict::Half => {
                let mut context = Context {
                    store: &mut self.store,
                    faults: &mut self.faults,
                    calls: &mut self.calls,
                    session,
                    login: self.login.as_ref(),
                    gauges: Gauges { requests: number, ..self.gauges },
                    now,
                };
                request.answer(&mut context, &mut self.reply);
            }
        }
        if !self.reply.is_empty() {
            self.replace_reply(verdict, number, request);
        }
        self.note_faults(verdict, session.connection, number, now);
        let whole = verdict != Verdict::Half;
        let (asked_ns, copy) = (self.hold_ns(number), self.copy_changes(request));
        (verdict, Debt { request: number, verb: request.verb(), arrived: now, asked_ns, whole, copy })
    }

    /// Puts what is no reply in the place of one, where that was asked for.
    fn replace_reply(&mut self, verdict: Verdict, number: u64, request: &DialectRequest<'_>) {
        match verdict {
            Verdict::Garbage => {
                let garbage = self.faults.garbage(number, self.reply.len());
                self.reply.clear();
                self.reply.push(&garbage);
            }
            Verdict::Foreign => {
                self.reply.clear();
                let dialect = request.dialect().other(self.faults.foreign_before(number));
                dialect.write_foreign(&mut self.reply);
            }
            Verdict::Serve | Verdict::Fail | Verdict::Half | Verdict::Silence | Verdict::Close => {}
        }
    }

    /// Adds the reply to what a connection is owed.
    fn owe(
        &mut self,
        request: &DialectRequest<'_>,
        verdict: Verdict,
        debt: Debt,
        connection: u64,
        owing: &mut Owing,
    ) {
        if request.silence() == Silence::Always || self.reply.is_empty() {
            return self.note(ended(connection, Debt { asked_ns: 0, ..debt }, None));
        }
        owing.add(&self.reply, debt);
        if verdict == Verdict::Half {
            let full = self.reply.len();
            owing.cut_newest(full, full / 2);
        }
        if self.faults.slow_bytes {
            self.note_fault("slow-bytes", connection, debt.request, None, String::new());
        }
    }

    fn hold_ns(&self, number: u64) -> Nanos {
        self.service_time.as_ref().map_or(0, |dist| from_seconds(dist.draw(self.service_chance.draw(number))))
    }

    fn note_faults(&mut self, verdict: Verdict, connection: u64, request: u64, now: Nanos) {
        let kind = match verdict {
            Verdict::Serve => None,
            Verdict::Fail => Some("error-every"),
            Verdict::Garbage => Some("garbage-after"),
            Verdict::Foreign => Some("mix"),
            Verdict::Half => Some("half-reply-after"),
            Verdict::Silence if self.faults.is_half_done() => Some("half-reply-after"),
            Verdict::Silence => Some("stall-after"),
            Verdict::Close => Some("close-after"),
        };
        if let Some(kind) = kind {
            self.note_fault(kind, connection, request, None, String::new());
        }
        for tampering in std::mem::take(&mut self.faults.tamperings) {
            self.note_fault(tampering.kind, connection, request, Some(tampering.key), tampering.detail);
        }
        let kind = match self.faults.expiry {
            store::ExpiryPolicy::Early(_) => "early-expiry",
            store::ExpiryPolicy::Kept | store::ExpiryPolicy::Ignored => "ignore-expiry",
        };
        for lapse in self.store.take_lapses() {
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

fn ended(connection: u64, debt: Debt, sent: Option<Nanos>) -> Note {
    let Debt { request, verb, arrived, asked_ns, .. } = debt;
    Note::Request { connection, request, verb, arrived, sent, asked_ns }
}

/// Lets a connection have `bytes` at once, and another on a server of its own the same in pieces of `step`: both must
/// hear the same, whatever the bytes are. What the counters of bytes say depends on the pieces.
///
/// # Panics
/// When they do not.
#[cfg(any(test, fuzzing))]
pub fn fuzz_guest(bytes: &[u8], step: usize) {
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut host = Host::new(HostConfig::default(), 0);
        let mut guest = host.greet();
        for piece in pieces {
            host.handle_received(&mut guest, piece, 0);
        }
        let mut heard = Vec::new();
        loop {
            let due = host.poll_send(&mut guest, 0);
            let count = due.len();
            due.parts().iter().for_each(|part| heard.extend_from_slice(part));
            if count == 0 {
                return (heard, guest.poll_close());
            }
            host.handle_sent(&mut guest, count, 0);
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
