//! Requests that several lanes share: their parts, and their ends as one answer.

use std::collections::VecDeque;

use super::pending_requests::PendingRequests;
use super::stage_state::StageState;
use crate::client::route::Place;
use crate::connection::answer::{Answer, Stamp};
use crate::connection::inflight::Ticket;
use crate::protocol::Outcome;
use crate::time::Nanos;
use crate::workload::cache_counts::CacheCounts;

/// The requests of a client that lanes share, or that take several exchanges.
#[derive(Debug, Default)]
pub(super) struct Splits {
    /// Places and keys of the parts of the newest split that were not asked yet, sorted by place. The list is empty except
    /// between two calls of [`Client::poll`](super::Client::poll).
    pub(super) parked: Vec<(Place, u64)>,
    /// Requests that have unanswered parts, in the order of their index.
    pub(super) begun: VecDeque<Split>,
    /// Place in `begun` of the newest split.
    pub(super) newest: usize,
    /// Requests that did not end with their first reply, and those that wait; `None` where the servers are no cluster and nothing is sent
    /// again.
    pub(super) pending: Option<PendingRequests>,
    /// The turns of the client on stage, which has its place here since few clients have any; `None` where it is there all the time.
    pub(super) stage: Option<StageState>,
}

impl Splits {
    /// The place of the next part of the newest split, and the ticket of its whole request.
    ///
    /// # Panics
    /// Panics when no part is left to ask.
    pub(super) fn next_part(&self) -> (Place, Ticket) {
        let Some(split) = self.begun.get(self.newest) else {
            unreachable!("what is asked in parts was begun")
        };
        (self.parked[0].0, split.whole.ticket)
    }
}

/// A request that several lanes share.
#[derive(Debug)]
pub(super) struct Split {
    /// Number of parts that have not ended.
    pub(super) parts: u16,
    pub(super) whole: WholeAnswer,
}

/// The end of a request that several lanes shared. It counts as sent with its first part and as arrived with its last; it
/// is an error when one of its parts is.
#[derive(Debug)]
pub struct WholeAnswer {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome,
    pub(super) sent: Nanos,
    pub(super) arrived: Nanos,
    pub(super) read: Nanos,
    pub(super) hits: u32,
    pub(super) stamp: Stamp,
    /// The server's message with the first error.
    pub(super) message: Vec<u8>,
    pub(super) cache: CacheCounts,
}

impl WholeAnswer {
    /// The whole request as one answer.
    pub fn answer(&self) -> Answer<'_> {
        let &WholeAnswer { ref ticket, outcome, sent, arrived, read, hits, stamp, .. } = self;
        Answer { ticket, outcome, sent, arrived, read, hits, stamp, mark: 0 }
    }

    /// The cache counts of all parts; empty if the request failed.
    pub fn cache(&self) -> CacheCounts {
        match self.outcome {
            Outcome::Error(_) => CacheCounts::default(),
            _ => self.cache,
        }
    }

    /// The server's message with the first error; empty without one.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Takes in the end of a part.
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
            // A part that was sent first shows that the generator did not hold up the request.
            (self.sent, self.ticket.ready) = (part.sent, part.ticket.ready);
        }
        if part.arrived >= self.arrived {
            (self.arrived, self.stamp) = (part.arrived, part.stamp);
        }
        self.read = self.read.max(part.read);
    }
}
