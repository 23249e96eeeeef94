//! The servers of a simulated network: what a test says of them.

use std::collections::{BTreeMap, VecDeque};

use pummel_logic::time::{NEVER, Nanos};

use crate::backend::{ConnId, Target};

/// The servers at the other end of all simulated connections.
///
/// After somebody connected or bytes came, and when a time that it named has come, the peer is asked by [`Peer::poll`]
/// what it does.
pub trait Peer {
    /// Somebody connects to `target`.
    fn handle_connect(&mut self, _conn: ConnId, _target: &Target, _now: Nanos) -> Admission {
        Admission::Accept
    }

    /// Bytes came.
    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos);

    /// The client's end is gone, or the network cut the connection; nothing more comes for it.
    fn handle_closed(&mut self, _conn: ConnId, _now: Nanos) {}

    /// Appends to `out` what is sent now, and says what comes then.
    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next;
}

impl Peer for Box<dyn Peer + '_> {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        (**self).handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        (**self).handle_received(conn, bytes, now);
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        (**self).handle_closed(conn, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        (**self).poll(conn, now, out)
    }
}

/// What a peer does with somebody who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Takes the connection.
    Accept,
    /// Refuses it.
    Refuse,
    /// Says nothing, now or ever.
    Ignore,
}

/// What a peer does next on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing before this time, unless something is received ([`NEVER`]: only then).
    At(Nanos),
    /// Closes in order, after what it sent.
    Close,
    /// Breaks the connection, after what it sent.
    Reset,
}

/// Adds to what [`Peer::poll`] gives a datagram for a client that speaks UDP.
pub fn datagram_to_client(datagram: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(datagram.len() as u32).to_le_bytes());
    out.extend_from_slice(datagram);
}

/// A peer that sends back what it gets, after a fixed time.
#[derive(Debug, Default)]
pub struct Echo {
    /// How long it thinks about each piece.
    pub think_ns: Nanos,
    owed: BTreeMap<(u32, u32), VecDeque<Owed>>,
}

/// What an [`Echo`] will send back, and when.
#[derive(Debug)]
struct Owed {
    at: Nanos,
    bytes: Vec<u8>,
}

impl Echo {
    /// One that takes `think_ns` for each piece.
    pub fn new(think_ns: Nanos) -> Echo {
        Echo { think_ns, ..Echo::default() }
    }
}

impl Peer for Echo {
    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        self.owed
            .entry((conn.slot, conn.generation))
            .or_default()
            .push_back(Owed { at: now + self.think_ns, bytes: bytes.to_vec() });
    }

    fn handle_closed(&mut self, conn: ConnId, _now: Nanos) {
        self.owed.remove(&(conn.slot, conn.generation));
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let Some(owed) = self.owed.get_mut(&(conn.slot, conn.generation)) else { return Next::At(NEVER) };
        while let Some(Owed { at, bytes }) = owed.front() {
            if *at > now {
                return Next::At(*at);
            }
            out.extend_from_slice(bytes);
            owed.pop_front();
        }
        Next::At(NEVER)
    }
}
