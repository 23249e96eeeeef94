//! The requests of one client that take several exchanges, and those of a client of a cluster that were never sent.

use std::collections::VecDeque;

use super::next::NextRequest;
use super::sequence_rest::SequenceRest;
use crate::client::route::Lane;
use crate::cluster::hops::Hops;
use crate::connection::inflight::Ticket;
use crate::protocol::Fault;
use crate::time::Nanos;

/// The requests of a client of a cluster that have not found their node and were never sent.
#[derive(Debug, Default)]
pub(super) struct ClusterRequests {
    /// Requests that were never sent, in the order in which they came. In closed loop each has a slot; in open loop they take none,
    /// so that requests of other nodes pass.
    pub(super) held: VecDeque<Held>,
    /// Place in `held` before which no request can be sent until something changes.
    pub(super) looked_at: usize,
    /// Time since which the client knows that requests of a slot need not wait for a redirected one any more.
    pub(super) freed_at: Nanos,
    /// The phase is over: no request is sent again.
    pub(super) is_over: bool,
    /// A lane is opened when a request needs it, and not before.
    pub(super) on_demand: bool,
}

/// Most requests that one client holds in open loop. Further ones are never sent.
pub(super) const HELD_MAX: usize = 4_096;

/// A request that was sent, and whose reply did not end it.
#[derive(Debug)]
pub(super) struct Redirected {
    /// The request as it was asked first.
    pub(super) ticket: Ticket,
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
    /// Time from which on the request is sent again.
    pub(super) wake_at: Nanos,
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

    /// Whether the ticket of a resent request is that of this one.
    pub(super) fn is(&self, ticket: &Ticket) -> bool {
        let own = &self.ticket;
        (own.index, own.key, own.verb, own.due, own.place)
            == (ticket.index, ticket.key, ticket.verb, ticket.due, ticket.place)
    }
}

impl ClusterRequests {
    /// Forgets the phase before, or the client before.
    pub(super) fn clear(&mut self) {
        *self = ClusterRequests { on_demand: self.on_demand, ..ClusterRequests::default() };
    }

    /// Whether no request waits for its node, and all lanes that may be needed are open or being opened.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.held.is_empty() && !self.on_demand
    }

    /// Lets the held requests be looked at again, after a change of lanes, of the map, or of what they wait for.
    pub(super) fn look_again(&mut self) {
        self.looked_at = 0;
    }

    /// Removes the held request at this place, whose slot the caller uses or frees.
    pub(super) fn take_held(&mut self, at: usize) -> Option<Held> {
        self.looked_at = at;
        self.held.remove(at)
    }
}
