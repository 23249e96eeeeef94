//! What only clients with several lanes have: the other lanes, and requests that lanes share.

use std::collections::VecDeque;

use super::lane_socket::Socket;
use super::window_tasks::Tasks;
use crate::client::route::Lane;
use crate::connection::answer::{Answer, Stamp};
use crate::connection::inflight::Ticket;
use crate::protocol::Outcome;
use crate::time::Nanos;

/// What only clients with several lanes have.
#[derive(Debug, Default)]
pub(super) struct Many {
    /// Lanes from 1 on.
    pub(super) others: Vec<Socket>,
    /// Lanes and keys of the parts that were not asked yet, of the newest of `splits`; those of a lane are neighbours.
    /// Empty but between two calls of [`Client::poll`](super::Client::poll).
    pub(super) unasked: Vec<(Lane, u64)>,
    /// Requests that lanes share and that are not answered by all, in the order of their index.
    pub(super) splits: VecDeque<Split>,
    /// The window that it works on, if it does.
    pub(super) tasks: Option<Box<Tasks>>,
}

/// A request that several lanes share.
#[derive(Debug)]
pub(super) struct Split {
    /// Parts without an end.
    pub(super) parts: u16,
    pub(super) whole: Whole,
}

/// The end of a request that several lanes shared: sent with its first part, arrived with its last, an error when one
/// part is.
#[derive(Debug)]
pub struct Whole {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome,
    pub(super) sent: Nanos,
    pub(super) arrived: Nanos,
    pub(super) read: Nanos,
    pub(super) hits: u32,
    pub(super) stamp: Stamp,
    /// What the server said with the first error.
    pub(super) message: Vec<u8>,
}

impl Whole {
    /// It as one answer.
    pub fn answer(&self) -> Answer<'_> {
        let &Whole { ref ticket, outcome, sent, arrived, read, hits, stamp, .. } = self;
        Answer { ticket, outcome, sent, arrived, read, hits, stamp }
    }

    /// What the server said beyond the outcome.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// A part has ended.
    pub(super) fn add(&mut self, part: &Answer<'_>, message: &[u8]) {
        self.outcome = match (self.outcome, part.outcome) {
            (Outcome::Error(_), _) => self.outcome,
            (_, error @ Outcome::Error(_)) => {
                self.message.extend_from_slice(message);
                error
            }
            (Outcome::Hit, _) | (_, Outcome::Hit) => Outcome::Hit,
            (_, other) => other,
        };
        self.hits += part.hits;
        if part.sent < self.sent {
            // What held up the others was not the generator, as long as this one was sent.
            (self.sent, self.ticket.ready) = (part.sent, part.ticket.ready);
        }
        if part.arrived >= self.arrived {
            (self.arrived, self.stamp) = (part.arrived, part.stamp);
        }
        self.read = self.read.max(part.read);
    }
}
