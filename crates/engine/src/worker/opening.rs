//! Connections that are not open yet: the queue of waiting ones, the number of those being opened, and their
//! handshakes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use pummel_logic::plan::detect::words;
use pummel_logic::protocol::handshake::{Handshake, HandshakeProgress, HandshakeReader, HandshakeRefused};
use pummel_logic::protocol::{Fault, Malformed, ServerError};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::connections::TroubleKind;
use pummel_measure::trouble::{CloseReason, not_allowed, says_full};

use crate::backend::ConnId;

/// Most connections that are being opened at the same time. More would only fill the queue of new connections of the
/// server.
const OPENING_MAX: usize = 256;

/// Most connections that a worker begins to open in one turn. The time that each takes would otherwise count as
/// opening time of the others.
pub const OPENING_TURN: usize = 8;

/// Shortest and longest pause before a new attempt to open a connection, in nanoseconds.
const RETRY_NS: (Nanos, Nanos) = (10 * MILLISECOND, SECOND);

/// The connections of a worker that are not open yet.
#[derive(Debug)]
pub struct Openings {
    /// The handshake that is sent on every new connection.
    handshake: Arc<Handshake>,
    /// New connections that have bytes of the handshake to send.
    to_send: Vec<ConnId>,
    /// The queued connections: the time from which on each may be opened, its slot, and the generation of the slot
    /// when it was queued.
    queue: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    /// Number of connections that are being opened.
    under_way: usize,
    /// Most connections that are being opened at the same time.
    limit: usize,
}

impl Openings {
    /// Creates an empty queue with room for `connections` connections.
    pub fn new(handshake: Arc<Handshake>, connections: usize) -> Openings {
        Openings {
            handshake,
            to_send: Vec::new(),
            queue: BinaryHeap::with_capacity(connections),
            under_way: 0,
            limit: OPENING_MAX,
        }
    }

    /// Lets any number of connections be opened at the same time, or only as many as usual: those to a server that hangs hold up no
    /// others then.
    pub fn lift_limit(&mut self, is_lifted: bool) {
        self.limit = if is_lifted { usize::MAX } else { OPENING_MAX };
    }

    /// Whether a server has answered on every connection that is open.
    pub fn is_answered_in_handshake(&self) -> bool {
        self.handshake.replies() > 0
    }

    /// Queues a connection to be opened from `at` on.
    pub fn enqueue(&mut self, conn: ConnId, at: Nanos) {
        self.queue.push(Reverse((at, conn.slot, conn.generation)));
    }

    /// Takes the next connection to be opened at `now`; `None` if there is none or too many others are being opened.
    /// The caller checks whether the connection is still to be opened.
    pub fn begin_next(&mut self, now: Nanos) -> Option<ConnId> {
        if self.under_way >= self.limit {
            return None;
        }
        let Reverse((_, slot, generation)) = *self.queue.peek().filter(|Reverse((at, ..))| *at <= now)?;
        self.queue.pop();
        self.under_way += 1;
        Some(ConnId { slot, generation })
    }

    /// Notes that a connection that was being opened is open or has failed.
    pub fn end_one(&mut self) {
        self.under_way -= 1;
    }

    /// Empties the queue.
    pub fn forget_waiting(&mut self) {
        self.queue.clear();
    }

    /// Time at which [`Openings::begin_next`] has a connection to open; [`NEVER`] if the queue is empty or too many
    /// connections are being opened.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        match self.queue.peek() {
            Some(Reverse((at, ..))) if self.under_way < self.limit => *at,
            _ => NEVER,
        }
    }

    /// Begins the handshake on a connection that the server has accepted; `None` without a handshake, in which case
    /// the connection counts as open.
    pub fn handshake(&mut self, conn: ConnId) -> Option<Box<PendingHandshake>> {
        if self.handshake.is_none() {
            return None;
        }
        self.queue_handshake(conn);
        Some(Box::new(PendingHandshake {
            handshake: Arc::clone(&self.handshake),
            sent_bytes: 0,
            begun: 0,
            reader: self.handshake.reader(),
        }))
    }

    /// Notes that a new connection has bytes of the handshake to send.
    pub fn queue_handshake(&mut self, conn: ConnId) {
        self.to_send.push(conn);
    }

    /// Takes the connections with bytes of the handshake to send.
    pub fn take_queued_handshakes(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.to_send)
    }
}

/// The progress of the handshake on one connection.
#[derive(Debug)]
pub struct PendingHandshake {
    handshake: Arc<Handshake>,
    /// Number of bytes of the handshake that were sent.
    sent_bytes: usize,
    /// Time at which the handshake was first sent; 0 until then.
    begun: Nanos,
    reader: HandshakeReader,
}

impl PendingHandshake {
    /// The bytes of the handshake that are not sent yet.
    pub fn rest(&self) -> &[u8] {
        &self.handshake.bytes()[self.sent_bytes..]
    }

    /// Time at which the handshake was first sent; 0 until then.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// Notes that `count` more bytes were sent at `at`.
    pub fn handle_sent(&mut self, count: usize, at: Nanos) {
        self.sent_bytes += count;
        if self.begun == 0 {
            self.begun = at;
        }
    }

    /// Handles bytes of the server's reply. Returns whether the server has agreed to the whole handshake; `bytes` has what came behind
    /// it then, which is nothing unless the handshake has asked for messages.
    ///
    /// # Errors
    /// Returns the reason to close the connection if the server refuses the handshake, answers more than was asked, or agrees before
    /// all of the handshake was sent.
    pub fn handle_received(&mut self, bytes: &mut &[u8]) -> Result<HandshakeProgress, CloseReason> {
        let first = *bytes;
        let is_more = |rest: &[u8]| !rest.is_empty() && !self.handshake.asks_for_messages();
        let (why, kind, said) = match self.reader.handle_received(bytes) {
            Ok(HandshakeProgress::Done) if is_more(bytes) || !self.rest().is_empty() => {
                ("the server said more than was asked".to_owned(), ServerError::Other, String::new())
            }
            Ok(progress) => return Ok(progress),
            Err(HandshakeRefused::Malformed(Malformed(what))) => match words(first) {
                Some(said) => (not_allowed(what, said.as_bytes()), ServerError::Other, said),
                None => (what.to_owned(), ServerError::Other, String::new()),
            },
            Err(HandshakeRefused::Script(said, kind, path)) => {
                (HandshakeRefused::Script(said.clone(), kind, path).to_string(), kind, said)
            }
            Err(HandshakeRefused::Refused(said, kind)) => {
                (HandshakeRefused::Refused(said.clone(), kind).to_string(), kind, said)
            }
        };
        let is_full = says_full(said.as_bytes());
        let kind = if is_full { TroubleKind::Full } else { TroubleKind::HandshakeRefused(kind) };
        Err(CloseReason { words: Some(why.into()), kind: Some(kind), ..CloseReason::new(Fault::Client, 0) })
    }
}

/// The pause before the next attempt to open a connection after `failures` consecutive failures, in nanoseconds.
pub fn retry_pause(failures: u32) -> Nanos {
    match failures {
        0 => 0,
        failures => (RETRY_NS.0 << (failures - 1).min(10)).min(RETRY_NS.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handshake_has_asked_for_may_come_with_its_last_reply() {
        let hello = b"%1\r\n$5\r\nproto\r\n:3\r\n";
        let push = b">2\r\n$10\r\ninvalidate\r\n_\r\n";
        let plain = || Handshake::resp3(None, 0);
        for (handshake, replies, is_taken) in [
            (plain().with_tracking(true), [&hello[..], b"+OK\r\n"].concat(), true),
            (plain(), hello.to_vec(), false),
        ] {
            let mut openings = Openings::new(Arc::new(handshake), 1);
            let mut pending = openings.handshake(ConnId { slot: 0, generation: 1 }).expect("it is not empty");
            pending.handle_sent(pending.rest().len(), 1);
            let bytes = [&replies[..], push].concat();
            let mut rest = &bytes[..];
            let progress = pending.handle_received(&mut rest);
            assert_eq!(progress.is_ok_and(|progress| progress == HandshakeProgress::Done), is_taken);
            assert_eq!(rest, push, "it is left for the requests of the connection");
        }
    }
}
