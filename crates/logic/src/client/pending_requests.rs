//! The requests of one client that did not end with their first reply, and those that were never sent since they wait for them or for a
//! node of a cluster.

use std::collections::VecDeque;

use super::next::NextRequest;
use super::sequence_rest::SequenceRest;
use crate::client::route::{Lane, Place};
use crate::cluster::hops::Hops;
use crate::connection::inflight::{CheckState, Ticket};
use crate::plan::RetryKind;
use crate::protocol::Fault;
use crate::time::Nanos;

/// The requests of a client that did not end with their first reply, and those that wait.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    /// Requests that were sent, and whose reply did not end them, in the order of their first replies.
    pub(super) redirected: Vec<Redirected>,
    /// Requests that were never sent, in the order in which they came. In closed loop each has a slot; in open loop they take none,
    /// so that the client goes on with later requests.
    pub(super) held: VecDeque<Held>,
    /// Place in `held` before which no request can be sent until something changes.
    pub(super) looked_at: usize,
    /// Time since which the client knows that requests need not wait for a redirected one any more.
    pub(super) freed_at: Nanos,
    /// The phase is over: no request is sent again.
    pub(super) is_over: bool,
    /// A lane is opened when a request needs it, and not before.
    pub(super) on_demand: bool,
    /// Whether the servers are a cluster; elsewhere a request is sent again over the lane that it was sent over.
    pub(super) is_cluster: bool,
}

/// The records that a request reads or writes, as far as its order among others depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touched {
    /// Records in a slot of a cluster, whose requests keep their order.
    Slot(Place),
    /// A single record.
    Record {
        /// A number that no other record of the client's requests has.
        record: u64,
        /// Whether the record is only read.
        reads: bool,
    },
    /// Nothing whose order counts: a sequence of commands outside of clusters, which others may pass between its parts.
    Nothing,
    /// Several records, or one that is not known.
    Any {
        /// Whether the records are only read.
        reads: bool,
    },
}

impl Touched {
    /// Whether two requests have to keep their order: both touch a record, and one of them may write it.
    pub(super) fn collides(self, other: Touched) -> bool {
        match (self, other) {
            (Touched::Slot(one), Touched::Slot(two)) => one == two,
            (Touched::Record { record: one, reads }, Touched::Record { record: two, reads: also }) => {
                one == two && !(reads && also)
            }
            (
                Touched::Record { reads, .. } | Touched::Any { reads },
                Touched::Record { reads: also, .. } | Touched::Any { reads: also },
            ) => !(reads && also),
            (Touched::Nothing, _) | (_, Touched::Nothing) => false,
            (Touched::Slot(_), _) | (_, Touched::Slot(_)) => true,
        }
    }
}

/// Most requests that one client holds in open loop. Further ones are never sent.
pub(super) const HELD_MAX: usize = 4_096;

/// A request that was sent, and whose reply did not end it.
#[derive(Debug)]
pub(super) struct Redirected {
    /// The request as it was asked first; with another check state where it is not known what became of a write.
    pub(super) ticket: Ticket,
    /// The check state of the request as it was asked first.
    pub(super) check_state: CheckState,
    /// The records that the request reads or writes.
    pub(super) touched: Touched,
    /// Time of the first sending; [`NEVER`](crate::time::NEVER) until there is one.
    pub(super) first_sent: Nanos,
    /// The lane that a reply named; `None` where the owner of the slot decides.
    pub(super) lane: Option<Lane>,
    /// Whether the owner of the slot serves the request, although it may be a read that another node would serve: the node that was
    /// asked last has named the owner.
    pub(super) by_owner: bool,
    /// Whether `ASKING` goes before the request.
    pub(super) asking: bool,
    pub(super) hops: Hops,
    /// Times that the request waited after an error of a kind that the plan names, and the last of these kinds.
    pub(super) tries: u16,
    pub(super) kind: Option<RetryKind>,
    /// Time from which on the request is sent again.
    pub(super) wake_at: Nanos,
    /// Time after which the request is not sent again.
    pub(super) until: Nanos,
    /// The lane on which the request is outstanding again.
    pub(super) under_way: Option<Lane>,
    /// The lane over which the request was sent last.
    pub(super) last_lane: Lane,
    /// The last error, with the node's words.
    pub(super) fault: Fault,
    pub(super) words: Box<[u8]>,
    /// The rest of a sequence of commands; `None` for other requests.
    pub(super) rest: Option<SequenceRest>,
    /// The connection is closed that the rest of the sequence needs.
    pub(super) is_cut_off: bool,
}

/// A request that was never sent.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) request: NextRequest,
    pub(super) due: Nanos,
    pub(super) ready: Nanos,
}

impl Redirected {
    /// Whether the rest of the sequence needs the connection that it was sent over last.
    pub(super) fn is_bound(&self) -> bool {
        self.rest.is_some_and(|rest| rest.is_bound)
    }

    /// Whether no error was the reason for this: the rest of what is under way.
    pub(super) fn only_goes_on(&self) -> bool {
        self.hops.attempts() == 0 && self.tries == 0
    }

    /// Whether the ticket of a resent request is that of this one.
    pub(super) fn is(&self, ticket: &Ticket) -> bool {
        let own = &self.ticket;
        (own.index, own.key, own.verb, own.due, own.place)
            == (ticket.index, ticket.key, ticket.verb, ticket.due, ticket.place)
    }
}

impl PendingRequests {
    /// Forgets the phase before, or the client before.
    pub(super) fn clear(&mut self) {
        let (on_demand, is_cluster) = (self.on_demand, self.is_cluster);
        *self = PendingRequests { on_demand, is_cluster, ..PendingRequests::default() };
    }

    /// Whether no request goes on or waits, and all lanes that may be needed are open or being opened.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.redirected.is_empty() && self.held.is_empty() && !self.on_demand
    }

    /// Lets the held requests be looked at again, after a change of lanes, of the map, or of what they wait for.
    pub(super) fn look_again(&mut self) {
        self.looked_at = 0;
    }

    /// Lets the requests that wait to be sent again be sent at once, since the map is another one.
    pub(super) fn end_waits(&mut self) {
        self.look_again();
        self.redirected.iter_mut().for_each(|redirected| redirected.wake_at = 0);
    }

    /// Whether a redirected request keeps one that touches this waiting.
    pub(super) fn is_blocked(&self, touched: Touched) -> bool {
        self.redirected.iter().any(|redirected| redirected.touched.collides(touched))
    }

    /// Whether the redirected request at this place is not to be sent over `lane` yet, since an earlier one that it has to follow waits,
    /// or is under way elsewhere.
    pub(super) fn is_behind(&self, at: usize, lane: Lane) -> bool {
        let touched = self.redirected[at].touched;
        let mut before = self.redirected[..at].iter().filter(|other| other.touched.collides(touched));
        before.any(|other| other.under_way != Some(lane))
    }

    /// Removes the held request at this place, whose slot the caller uses or frees.
    pub(super) fn take_held(&mut self, at: usize) -> Option<Held> {
        self.looked_at = at;
        self.held.remove(at)
    }
}
