//! The servers of a simulated network, which a test implements.

use std::collections::{BTreeMap, VecDeque};

use pummel_logic::time::{NEVER, Nanos};

use crate::backend::{ConnId, Target};

/// The servers at the other end of all simulated connections.
///
/// The network calls [`Peer::poll`] after it opens a connection, after it delivers bytes, and at the times that the
/// peer has asked for.
pub trait Peer {
    /// Handles a request to open a connection to `target`.
    fn handle_connect(&mut self, _conn: ConnId, _target: &Target, _now: Nanos) -> Admission {
        Admission::Accept
    }

    /// Handles bytes received from the client.
    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos);

    /// Handles the end of a connection by the client or the network. No more calls follow for the connection.
    fn handle_closed(&mut self, _conn: ConnId, _now: Nanos) {}

    /// Appends the bytes to be sent at `now` to `out`, and returns the next action of the peer.
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

/// Answer of a peer to a request to open a connection.
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
    /// The peer is polled again at this time, or earlier after received bytes. [`NEVER`]: after received bytes only.
    At(Nanos),
    /// The peer closes the connection in order after the bytes that it has sent.
    Close,
    /// The peer resets the connection after the bytes that it has sent.
    Reset,
}

/// Appends a datagram to the bytes that [`Peer::poll`] sends to a client over UDP, with its length in front.
pub fn datagram_to_client(datagram: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(datagram.len() as u32).to_le_bytes());
    out.extend_from_slice(datagram);
}

/// A peer that sends received bytes back after a fixed time.
#[derive(Debug, Default)]
pub struct Echo {
    /// Time between the arrival of a piece and its way back, in nanoseconds.
    pub think_ns: Nanos,
    owed: BTreeMap<(u32, u32), VecDeque<Owed>>,
}

/// Bytes that an [`Echo`] sends back, and the time at which it does so.
#[derive(Debug)]
struct Owed {
    at: Nanos,
    bytes: Vec<u8>,
}

impl Echo {
    /// Creates an echo that waits `think_ns` before it sends a piece back.
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
