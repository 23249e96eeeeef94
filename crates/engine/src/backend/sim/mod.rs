//! A simulated network: a backend with a simulated clock, whose random faults and delays depend only on a seed.
//!
//! The simulation neither sleeps nor calls the kernel. Equal seeds, peers and calls give equal events, byte for byte
//! and nanosecond for nanosecond.

mod conditions;
mod peer;

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::io::IoSlice;

use pummel_logic::protocol::Fault;
use pummel_logic::rng::below;
use pummel_logic::time::{NEVER, Nanos, SECOND};
use pummel_measure::trouble::CloseReason;

use self::conditions::Chance;
pub use self::conditions::NetworkConditions;
pub use self::peer::{Admission, Echo, Next, Peer, datagram_to_client};
use crate::backend::sockets::SlotState;
use crate::backend::{Backend, Close, ConnId, Event, Handed, Target};

/// Time on the clock at which every simulation starts.
const START: Nanos = SECOND;

/// The simulated cost of reading the clock, in nanoseconds.
const READING_NS: Nanos = 25;

/// The simulated cost of a system call, in nanoseconds.
const CALL_NS: Nanos = 400;

/// Most reads of one connection in one call of [`Backend::drain`].
const READS_MAX: u32 = 4;

/// Most bytes that one read returns.
const READ_BYTES_MAX: usize = 64 * 1024;

/// A backend of simulated connections to a peer.
pub struct Sim<P> {
    peer: P,
    conditions: NetworkConditions,
    chance: Chance,
    clock: Cell<Nanos>,
    client_ends: Vec<ClientEnd>,
    /// The peer's ends of all open connections.
    server_ends: BTreeMap<(u32, u32), ServerEnd>,
    /// The future events of the network, by time; events at the same time in the order in which they were scheduled.
    agenda: BTreeMap<(Nanos, u64), NetworkEvent>,
    scheduled: u64,
    /// Connections with events that [`Backend::drain`] hands over.
    ready: VecDeque<ConnId>,
    scratch: Vec<u8>,
}

/// The client's end of a connection.
#[derive(Default)]
struct ClientEnd {
    generation: u32,
    state: SlotState,
    /// Whether received bytes have a receive stamp.
    stamped: bool,
    /// Whether bytes travel as datagrams.
    datagrams: bool,
    opened_due: bool,
    writable_due: bool,
    /// Whether a send was short and the socket has had no room since.
    blocked: bool,
    /// Number of bytes that are on the way to the peer.
    sent_bytes: usize,
    /// Time at which the newest piece sent to the peer arrives.
    sent_until: Nanos,
    inbox: VecDeque<Piece>,
    /// CloseReason of the end of the connection, which is handed over when the inbox is empty.
    end: Option<CloseReason>,
    queued: bool,
}

/// A piece of received bytes that arrived at the same time.
struct Piece {
    bytes: Vec<u8>,
    /// Number of bytes that were read already.
    taken: usize,
    arrived: Nanos,
}

/// The peer's end of a connection.
struct ServerEnd {
    datagrams: bool,
    /// Time at which the newest piece sent to the client arrives.
    sent_until: Nanos,
    /// Time at which the peer is polled next.
    poll_at: Nanos,
}

/// An event of the network at a point in time.
enum NetworkEvent {
    /// A request to connect reaches the peer.
    Connect(ConnId, Target),
    /// The peer's acceptance reaches the client.
    Opened(ConnId),
    /// Bytes from the client reach the peer.
    ToPeer(ConnId, Vec<u8>),
    /// The client's close reaches the peer.
    Gone(ConnId),
    /// The time at which the peer asked to be polled has come.
    Poll(ConnId),
    /// Bytes from the peer reach the client.
    ToClient(ConnId, Vec<u8>),
    /// The end of the connection reaches the client.
    End(ConnId, CloseReason),
    /// The client checks whether its socket has room again.
    Room(ConnId),
}

const REFUSED: CloseReason = CloseReason::new(Fault::Refused, libc::ECONNREFUSED);
const RESET: CloseReason = CloseReason::new(Fault::Reset, libc::ECONNRESET);
const CLOSED: CloseReason = CloseReason::new(Fault::Closed, 0);

impl<P: Peer> Sim<P> {
    /// Creates a network in which `peer` answers on all targets.
    pub fn new(seed: u64, conditions: NetworkConditions, peer: P) -> Sim<P> {
        Sim {
            peer,
            conditions,
            chance: Chance::new(seed),
            clock: Cell::new(START),
            client_ends: Vec::new(),
            server_ends: BTreeMap::new(),
            agenda: BTreeMap::new(),
            scheduled: 0,
            ready: VecDeque::new(),
            scratch: Vec::with_capacity(READ_BYTES_MAX),
        }
    }

    /// The peer of all connections.
    pub fn peer(&self) -> &P {
        &self.peer
    }

    /// Advances the clock by `ns` nanoseconds in which the client does nothing, as if its worker was stopped.
    pub fn pause(&mut self, ns: Nanos) {
        self.clock.set(self.clock.get() + ns);
    }

    /// Advances the clock by `ns` nanoseconds and returns it.
    fn spend(&self, ns: Nanos) -> Nanos {
        self.clock.set(self.clock.get() + ns);
        self.clock.get()
    }

    fn schedule(&mut self, at: Nanos, event: NetworkEvent) {
        self.scheduled += 1;
        self.agenda.insert((at, self.scheduled), event);
    }

    fn arrival(&mut self, not_before: Nanos, now: Nanos) -> Nanos {
        (now + self.chance.between(self.conditions.delay_ns)).max(not_before + 1)
    }

    fn client_end(&mut self, conn: ConnId) -> Option<&mut ClientEnd> {
        let client = self.client_ends.get_mut(conn.slot as usize)?;
        (client.generation == conn.generation && client.state != SlotState::Free).then_some(client)
    }

    fn make_ready(&mut self, conn: ConnId) {
        if let Some(client) = self.client_end(conn)
            && !client.queued
        {
            client.queued = true;
            self.ready.push_back(conn);
        }
    }

    /// The time of the next scheduled event; [`NEVER`] without one.
    fn next_at(&self) -> Nanos {
        self.agenda.first_key_value().map_or(NEVER, |(&(at, _), _)| at)
    }

    /// Handles all scheduled events whose time has come.
    fn catch_up(&mut self) {
        while let Some(entry) = self.agenda.first_entry() {
            let (at, _) = *entry.key();
            if at > self.clock.get() {
                return;
            }
            let event = entry.remove();
            self.handle(at, event);
        }
    }

    fn handle(&mut self, now: Nanos, event: NetworkEvent) {
        match event {
            NetworkEvent::Connect(conn, target) => self.connect(conn, &target, now),
            NetworkEvent::Opened(conn) => {
                if let Some(client) = self.client_end(conn) {
                    client.state = SlotState::Open;
                    client.opened_due = true;
                    self.make_ready(conn);
                }
            }
            NetworkEvent::ToPeer(conn, bytes) => {
                if let Some(client) = self.client_end(conn) {
                    client.sent_bytes -= bytes.len();
                }
                if self.server_ends.contains_key(&key(conn)) {
                    self.peer.handle_received(conn, &bytes, now);
                    self.poll_peer(conn, now);
                }
            }
            NetworkEvent::Gone(conn) => self.report_closed(conn, now),
            NetworkEvent::Poll(conn) => {
                if let Some(end) = self.server_ends.get_mut(&key(conn)).filter(|end| end.poll_at == now) {
                    end.poll_at = NEVER;
                    self.poll_peer(conn, now);
                }
            }
            NetworkEvent::ToClient(conn, bytes) => self.deliver(conn, bytes, now),
            NetworkEvent::End(conn, reason) => self.end(conn, reason),
            NetworkEvent::Room(conn) => self.make_room(conn, now),
        }
    }

    fn connect(&mut self, conn: ConnId, target: &Target, now: Nanos) {
        if self.client_end(conn).is_none() {
            return;
        }
        let admission = match self.chance.happens(self.conditions.refuse) {
            true => Admission::Refuse,
            false => self.peer.handle_connect(conn, target, now),
        };
        let at = self.arrival(now, now);
        match admission {
            Admission::Ignore => {}
            Admission::Refuse => self.schedule(at, NetworkEvent::End(conn, REFUSED)),
            Admission::Accept => {
                let datagrams = matches!(target, Target::Udp { .. });
                self.server_ends.insert(key(conn), ServerEnd { datagrams, sent_until: at, poll_at: NEVER });
                self.schedule(at, NetworkEvent::Opened(conn));
                self.poll_peer(conn, now);
            }
        }
    }

    /// Polls the peer on a connection, and schedules the arrival of the bytes that it sends and its next action.
    fn poll_peer(&mut self, conn: ConnId, now: Nanos) {
        let mut out = Vec::new();
        let next = self.peer.poll(conn, now, &mut out);
        if self.server_ends[&key(conn)].datagrams {
            self.send_datagrams(conn, &out, now);
            out.clear();
        }
        let mut rest = &out[..];
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(self.chance.piece(rest.len(), self.conditions.cut));
            let at = self.next_to_client(conn, now);
            self.schedule(at, NetworkEvent::ToClient(conn, piece.to_vec()));
            rest = tail;
        }
        let reason = match next {
            Next::At(at) => {
                let end = self.server_ends.get_mut(&key(conn)).expect("peers are polled on open ends");
                // A time in the past means the next nanosecond.
                let at = at.max(now + 1);
                if at < end.poll_at {
                    end.poll_at = at;
                    self.schedule(at, NetworkEvent::Poll(conn));
                }
                return;
            }
            Next::Close => CLOSED,
            Next::Reset => RESET,
        };
        let at = self.next_to_client(conn, now);
        self.schedule(at, NetworkEvent::End(conn, reason));
        self.server_ends.remove(&key(conn));
    }

    /// Schedules the arrivals of the peer's datagrams, which [`datagram_to_client`] has framed in `framed`.
    fn send_datagrams(&mut self, conn: ConnId, mut framed: &[u8], now: Nanos) {
        while let Some((len, rest)) = framed.split_first_chunk::<4>() {
            let (datagram, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
            framed = rest;
            if datagram.is_empty() {
                continue;
            }
            for at in self.datagram_arrivals(now) {
                self.schedule(at, NetworkEvent::ToClient(conn, datagram.to_vec()));
            }
        }
    }

    /// The times at which a datagram that is sent at `now` arrives: none if it is lost, two if it is doubled.
    fn datagram_arrivals(&mut self, now: Nanos) -> Vec<Nanos> {
        if self.chance.happens(self.conditions.lose) {
            return Vec::new();
        }
        let (_, longest) = self.conditions.delay_ns;
        let held = if self.chance.happens(self.conditions.hold) { longest } else { 0 };
        let count = if self.chance.happens(self.conditions.twice) { 2 } else { 1 };
        (0..count).map(|_| self.arrival(now, now) + held).collect()
    }

    /// The time at which the next piece for the client arrives, which is after that of the piece before it.
    fn next_to_client(&mut self, conn: ConnId, now: Nanos) -> Nanos {
        let not_before = self.server_ends[&key(conn)].sent_until;
        let at = self.arrival(not_before, now);
        self.server_ends.get_mut(&key(conn)).expect("it was just there").sent_until = at;
        at
    }

    fn deliver(&mut self, conn: ConnId, bytes: Vec<u8>, now: Nanos) {
        if self.client_end(conn).is_none_or(|client| client.end.is_some()) {
            return;
        }
        let breaks = self.client_end(conn).is_some_and(|client| !client.datagrams);
        for (chance, reason) in [(self.conditions.reset, RESET), (self.conditions.close, CLOSED)] {
            if breaks && self.chance.happens(chance) {
                self.end(conn, reason);
                return self.report_closed(conn, now);
            }
        }
        let client = self.client_end(conn).expect("it was just there");
        client.inbox.push_back(Piece { bytes, taken: 0, arrived: now });
        self.make_ready(conn);
    }

    fn end(&mut self, conn: ConnId, reason: CloseReason) {
        if let Some(client) = self.client_end(conn) {
            client.end.get_or_insert(reason);
            self.make_ready(conn);
        }
    }

    fn report_closed(&mut self, conn: ConnId, now: Nanos) {
        if self.server_ends.remove(&key(conn)).is_some() {
            self.peer.handle_closed(conn, now);
        }
    }

    /// Makes the socket writable again if it has room, and checks again later otherwise.
    fn make_room(&mut self, conn: ConnId, now: Nanos) {
        let room_bytes = self.conditions.send_buffer_bytes;
        let Some(client) = self.client_end(conn) else { return };
        if client.sent_bytes < room_bytes {
            client.blocked = false;
            client.writable_due = true;
            self.make_ready(conn);
        } else {
            let at = self.arrival(now, now);
            self.schedule(at, NetworkEvent::Room(conn));
        }
    }

    /// Reads once from the inbox: all bytes or a part of them, with the stamp of the newest byte read.
    fn read(&mut self, conn: ConnId, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let client = &mut self.client_ends[conn.slot as usize];
        let there: usize = match client.datagrams {
            true => client.inbox[0].bytes.len(),
            false => client.inbox.iter().map(|piece| piece.bytes.len() - piece.taken).sum(),
        };
        let cut = if client.datagrams { 0.0 } else { self.conditions.cut };
        let len_bytes = self.chance.piece(there.min(READ_BYTES_MAX), cut);
        let mut stamp = None;
        self.scratch.clear();
        while self.scratch.len() < len_bytes {
            let piece = client.inbox.front_mut().expect("the inbox holds what was counted");
            let count = (len_bytes - self.scratch.len()).min(piece.bytes.len() - piece.taken);
            self.scratch.extend_from_slice(&piece.bytes[piece.taken..piece.taken + count]);
            piece.taken += count;
            stamp = Some(piece.arrived);
            if piece.taken == piece.bytes.len() {
                client.inbox.pop_front();
            }
        }
        if !client.stamped || self.chance.happens(self.conditions.unstamped) {
            stamp = None;
        }
        let read = self.spend(CALL_NS);
        on(conn, Event::Received { bytes: &mut self.scratch, stamp, read });
    }

    /// Hands over the events of one connection, with at most [`READS_MAX`] reads.
    fn serve(&mut self, conn: ConnId, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let at = self.now();
        let Some(client) = self.client_end(conn) else { return };
        client.queued = false;
        if std::mem::take(&mut client.opened_due) {
            on(conn, Event::Opened { at });
        }
        if std::mem::take(&mut client.writable_due) && client.end.is_none() {
            on(conn, Event::Writable);
        }
        for _ in 0..READS_MAX {
            if self.client_ends[conn.slot as usize].inbox.is_empty() {
                break;
            }
            self.read(conn, on);
        }
        let client = &mut self.client_ends[conn.slot as usize];
        if !client.inbox.is_empty() {
            self.make_ready(conn);
        } else if let Some(reason) = client.end.clone() {
            client.state = SlotState::Free;
            on(conn, Event::Closed(reason));
        }
    }
}

fn key(conn: ConnId) -> (u32, u32) {
    (conn.slot, conn.generation)
}

impl<P: Peer> Backend for Sim<P> {
    fn now(&self) -> Nanos {
        self.spend(READING_NS)
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        let index = conn.slot as usize;
        if self.client_ends.len() <= index {
            self.client_ends.resize_with(index + 1, ClientEnd::default);
        }
        let client = &mut self.client_ends[index];
        assert!(client.state == SlotState::Free, "slot {index} is in use");
        *client = ClientEnd {
            generation: conn.generation,
            state: SlotState::Connecting,
            stamped: !matches!(target, Target::Unix(_)),
            datagrams: matches!(target, Target::Udp { .. }),
            ..ClientEnd::default()
        };
        let now = self.spend(CALL_NS);
        let at = self.arrival(now, now);
        self.schedule(at, NetworkEvent::Connect(conn, target.clone()));
    }

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        let at = self.spend(READING_NS);
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        let short = self.chance.happens(self.conditions.short_send);
        let share = if short { below(self.chance.bits(), offered as u64) as usize } else { offered };
        let room_bytes = self.conditions.send_buffer_bytes;
        let datagrams = self.client_end(conn).is_some_and(|client| client.datagrams);
        let client = self.client_end(conn).expect("bytes are sent on connections that exist");
        assert!(
            client.state == SlotState::Open && !client.opened_due,
            "bytes are sent on connections that are open"
        );
        assert!(!client.blocked && !client.writable_due, "after a short send, Writable comes first");
        if client.end.is_some() {
            return Handed { taken: 0, at };
        }
        let taken = match share.min(room_bytes.saturating_sub(client.sent_bytes)) {
            taken if datagrams && taken < offered => 0,
            taken => taken,
        };
        client.sent_bytes += taken;
        client.blocked = taken < offered;
        let (blocked, mut last) = (client.blocked, client.sent_until);
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(taken).collect();
        let mut rest = &bytes[..];
        if datagrams && taken > 0 {
            let arrivals = self.datagram_arrivals(at);
            self.client_ends[conn.slot as usize].sent_bytes -= taken;
            for at in arrivals {
                self.client_ends[conn.slot as usize].sent_bytes += taken;
                self.schedule(at, NetworkEvent::ToPeer(conn, bytes.clone()));
            }
            rest = &[];
        }
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(self.chance.piece(rest.len(), self.conditions.cut));
            last = self.arrival(last, at);
            self.schedule(last, NetworkEvent::ToPeer(conn, piece.to_vec()));
            rest = tail;
        }
        self.client_ends[conn.slot as usize].sent_until = last;
        if blocked {
            let room_at = self.arrival(at, at);
            self.schedule(room_at, NetworkEvent::Room(conn));
        }
        self.spend(CALL_NS);
        Handed { taken, at }
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        let now = self.spend(CALL_NS);
        let Some(client) = self.client_end(conn) else { return };
        client.state = SlotState::Free;
        client.inbox.clear();
        let sent_until = client.sent_until;
        match how {
            Close::Fin => {
                let at = self.arrival(sent_until, now);
                self.schedule(at, NetworkEvent::Gone(conn));
            }
            Close::Reset => self.report_closed(conn, now),
        }
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.spend(CALL_NS);
        self.catch_up();
        while self.ready.is_empty() && self.clock.get() < until {
            let at = self.next_at().min(until);
            if at == NEVER {
                return Err(io::Error::other("the simulated network has nothing left that could happen"));
            }
            self.clock.set(self.clock.get().max(at));
            self.catch_up();
        }
        Ok(self.spend(READING_NS))
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        self.catch_up();
        for _ in 0..self.ready.len() {
            let conn = self.ready.pop_front().expect("it was just counted");
            self.serve(conn, on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONN: ConnId = ConnId { slot: 0, generation: 1 };

    fn target() -> Target {
        Target::Tcp { address: ([127, 0, 0, 1], 11211).into(), source: None }
    }

    /// The events of an exchange of a few messages, as text.
    fn history(seed: u64, conditions: NetworkConditions) -> String {
        let mut sim = Sim::new(seed, conditions, Echo::new(10_000));
        let mut seen = String::new();
        let (mut writable, mut unsent, mut over) = (false, vec![b'x'; 5000], false);
        sim.open(CONN, &target());
        while !over && sim.clock.get() < START + SECOND / 10 {
            let until = sim.clock.get() + 1_000_000;
            let now = sim.wait(until).unwrap();
            sim.drain(&mut |conn, event| {
                match &event {
                    Event::Opened { .. } | Event::Writable => writable = true,
                    Event::Closed(_) => (writable, over) = (false, true),
                    Event::Received { .. } => {}
                }
                seen.push_str(&format!("{now} {conn:?} {event:?}\n"));
            });
            if writable && !unsent.is_empty() {
                let handed = sim.send(CONN, &[IoSlice::new(&unsent)]);
                writable = handed.taken == unsent.len();
                unsent.drain(..handed.taken);
                seen.push_str(&format!("{handed:?}\n"));
            }
        }
        seen
    }

    #[test]
    fn the_same_seed_gives_the_same_events_to_the_nanosecond() {
        assert_eq!(history(7, NetworkConditions::harsh()), history(7, NetworkConditions::harsh()));
        assert_ne!(history(7, NetworkConditions::rough()), history(8, NetworkConditions::rough()));
    }

    #[test]
    fn under_calm_conditions_an_answer_takes_two_delays_and_the_thought() {
        let mut sim = Sim::new(1, NetworkConditions::calm(), Echo::new(10_000));
        sim.open(CONN, &target());
        sim.wait(NEVER).unwrap();
        sim.drain(&mut |_, event| assert!(matches!(event, Event::Opened { .. })));
        let handed = sim.send(CONN, &[IoSlice::new(b"hello")]);
        sim.wait(NEVER).unwrap();
        let mut arrived = None;
        sim.drain(&mut |_, event| {
            let Event::Received { bytes, stamp, read } = event else { panic!("{event:?}") };
            assert_eq!(bytes, b"hello");
            assert!(stamp.unwrap() < read);
            arrived = stamp;
        });
        assert_eq!(arrived.unwrap() - handed.at, 40_000);
    }

    #[test]
    fn conditions_break_connections_as_often_as_they_say() {
        let conditions = NetworkConditions { refuse: 0.25, ..NetworkConditions::calm() };
        let mut sim = Sim::new(3, conditions, Echo::default());
        let conns: Vec<ConnId> = (0..1000).map(|slot| ConnId { slot, generation: 0 }).collect();
        for &conn in &conns {
            sim.open(conn, &target());
        }
        let (mut opened, mut refused) = (0, 0);
        while opened + refused < conns.len() {
            sim.wait(NEVER).unwrap();
            sim.drain(&mut |_, event| match event {
                Event::Opened { .. } => opened += 1,
                Event::Closed(reason) if reason == REFUSED => refused += 1,
                other => panic!("{other:?}"),
            });
        }
        // 250 expected, with a standard deviation of 13.7.
        assert!((200..300).contains(&refused), "{refused} of 1000 were refused");
    }

    #[test]
    fn time_that_the_client_loses_shows_between_stamp_and_read() {
        let mut sim = Sim::new(1, NetworkConditions::calm(), Echo::new(0));
        sim.open(CONN, &target());
        sim.wait(NEVER).unwrap();
        sim.drain(&mut |_, _| {});
        let handed = sim.send(CONN, &[IoSlice::new(b"x")]);
        sim.pause(SECOND / 2);
        sim.wait(NEVER).unwrap();
        let mut times = None;
        sim.drain(&mut |_, event| {
            if let Event::Received { stamp, read, .. } = event {
                times = Some((stamp.unwrap(), read));
            }
        });
        let (stamp, read) = times.unwrap();
        assert_eq!(stamp - handed.at, 30_000);
        assert!(read - stamp > SECOND / 3);
    }

    #[test]
    fn waiting_for_ever_for_nothing_is_an_error_instead_of_a_hang() {
        let mut sim = Sim::new(1, NetworkConditions::calm(), Echo::default());
        assert!(sim.wait(NEVER).is_err());
    }
}
