//! The servers of a simulated network, as a test defines them.

use std::collections::{BTreeMap, VecDeque};

use pummel_logic::time::{NEVER, Nanos};

use crate::backend::{ConnId, Target};

/// The servers at the other end of all simulated connections.
///
/// The network calls [`Peer::poll`] after each new connection, after received bytes, and at the times that the peer
/// named.
pub trait Peer {
    /// Handles a request to connect to `target`.
    fn handle_connect(&mut self, _conn: ConnId, _target: &Target, _now: Nanos) -> Admission {
        Admission::Accept
    }

    /// Handles received bytes.
    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos);

    /// Handles that the client or the network has ended a connection. No more calls follow for it.
    fn handle_closed(&mut self, _conn: ConnId, _now: Nanos) {}

    /// Appends the bytes to be sent at `now` to `out`. Returns what the peer does next.
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

/// A peer's reaction to a request to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The peer takes the connection.
    Accept,
    /// The peer refuses the connection.
    Refuse,
    /// The peer never replies to the request.
    Ignore,
}

/// The next action of a peer on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The peer does nothing before this time unless bytes are received. [`NEVER`] stands for nothing at all until
    /// then.
    At(Nanos),
    /// The peer closes the connection in order after the bytes that it sent.
    Close,
    /// The peer resets the connection after the bytes that it sent.
    Reset,
}

/// Appends a datagram to the bytes that [`Peer::poll`] returns for a client over UDP.
pub fn datagram_to_client(datagram: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(datagram.len() as u32).to_le_bytes());
    out.extend_from_slice(datagram);
}

/// A peer that sends received bytes back after a fixed time.
#[derive(Debug, Default)]
pub struct Echo {
    /// Time that the peer takes for each piece, in nanoseconds.
    pub think_ns: Nanos,
    owed: BTreeMap<(u32, u32), VecDeque<Owed>>,
}

/// Bytes that an [`Echo`] will send back, and when.
#[derive(Debug)]
struct Owed {
    at: Nanos,
    bytes: Vec<u8>,
}

impl Echo {
    /// An echo that takes `think_ns` for each piece.
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
