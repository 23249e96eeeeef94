//! Connections on their way: the queue of those that wait, how many are being opened, and the handshake of each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use pummel_logic::protocol::handshake::{Handshake, HandshakeProgress, HandshakeReader};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};

use crate::backend::ConnId;

/// Connections that are being opened at one time; more would only fill the server's queue of new connections.
const OPENING_MAX: usize = 256;

/// Connections that one turn begins to open: each takes some time, in which the others would seem to be opening still.
pub const OPENING_TURN: usize = 8;

/// First and longest pause before a connection is tried again.
const RETRY_NS: (Nanos, Nanos) = (10 * MILLISECOND, SECOND);

/// The connections of a worker that are not open yet.
#[derive(Debug)]
pub struct Openings {
    /// What is said on every new connection.
    handshake: Arc<Handshake>,
    /// New connections on which it is to be said.
    to_send: Vec<ConnId>,
    /// Connections that wait to be opened: from when on, their slot, and the generation that they had then.
    queue: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    /// How many are being opened.
    under_way: usize,
}

impl Openings {
    /// Nothing to open yet, and room for so many connections.
    pub fn new(handshake: Arc<Handshake>, connections: usize) -> Openings {
        Openings {
            handshake,
            to_send: Vec::new(),
            queue: BinaryHeap::with_capacity(connections),
            under_way: 0,
        }
    }

    /// A connection waits to be opened, from `at` on.
    pub fn enqueue(&mut self, conn: ConnId, at: Nanos) {
        self.queue.push(Reverse((at, conn.slot, conn.generation)));
    }

    /// The next connection to be opened now, if there is one and not too many others are being opened. The caller
    /// checks whether the connection still waits.
    pub fn begin_next(&mut self, now: Nanos) -> Option<ConnId> {
        if self.under_way >= OPENING_MAX {
            return None;
        }
        let Reverse((_, slot, generation)) = *self.queue.peek().filter(|Reverse((at, ..))| *at <= now)?;
        self.queue.pop();
        self.under_way += 1;
        Some(ConnId { slot, generation })
    }

    /// A connection that was being opened is open, or is not going to be.
    pub fn end_one(&mut self) {
        self.under_way -= 1;
    }

    /// Nothing that waits is opened any more.
    pub fn forget_waiting(&mut self) {
        self.queue.clear();
    }

    /// When [`Openings::begin_next`] will have something to open; [`NEVER`] as long as others have to be opened first.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        match self.queue.peek() {
            Some(Reverse((at, ..))) if self.under_way < OPENING_MAX => *at,
            _ => NEVER,
        }
    }

    /// The server has taken a connection. Returns what has to be said and heard on it before it counts as open, if
    /// anything.
    pub fn handshake(&mut self, conn: ConnId) -> Option<Box<PendingHandshake>> {
        if self.handshake.is_none() {
            return None;
        }
        self.call(conn);
        Some(Box::new(PendingHandshake {
            handshake: Arc::clone(&self.handshake),
            said: 0,
            reader: self.handshake.reader(),
        }))
    }

    /// There is something to be said on a new connection.
    pub fn call(&mut self, conn: ConnId) {
        self.to_send.push(conn);
    }

    /// The connections on which there is something to be said.
    pub fn take_called(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.to_send)
    }
}

/// How far the handshake on a connection has come.
#[derive(Debug)]
pub struct PendingHandshake {
    handshake: Arc<Handshake>,
    /// Bytes of it that were sent.
    said: usize,
    reader: HandshakeReader,
}

impl PendingHandshake {
    /// What has not been said yet.
    pub fn rest(&self) -> &[u8] {
        &self.handshake.bytes()[self.said..]
    }

    /// So many bytes more were said.
    pub fn handle_sent(&mut self, count: usize) {
        self.said += count;
    }

    /// Takes in what the server answers: whether it has agreed to everything.
    ///
    /// # Errors
    /// Returns the server's words, or what is wrong with its answer, when the server refuses the handshake or says
    /// more than was asked.
    pub fn handle_received(&mut self, mut bytes: &[u8]) -> Result<HandshakeProgress, String> {
        match self.reader.handle_received(&mut bytes) {
            Ok(HandshakeProgress::Done) if !bytes.is_empty() => {
                Err("the server said more than was asked".to_owned())
            }
            Ok(heard) => Ok(heard),
            Err(unwelcome) => Err(unwelcome.to_string()),
        }
    }
}

/// How long to wait before a connection is tried again that failed so often.
pub fn retry_pause(failures: u32) -> Nanos {
    match failures {
        0 => 0,
        failures => (RETRY_NS.0 << (failures - 1).min(10)).min(RETRY_NS.1),
    }
}
