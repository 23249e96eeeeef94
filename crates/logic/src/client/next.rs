//! The next step of a client: an arrival of its schedule, a request that an answer asked for, or to wait.

use crate::client::route::Lane;
use crate::connection::inflight::Origin;
use crate::protocol::Verb;
use crate::time::{NEVER, Nanos};

/// A request that an answer, or an event, asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FollowUp {
    /// The lane that the answer came on.
    pub(super) lane: Lane,
    pub(super) due: Nanos,
    pub(super) verb: Verb,
    pub(super) key: u64,
    pub(super) cas: u64,
    pub(super) index: u64,
    /// [`Origin::FollowUp`], or [`Origin::Event`] for a request that no answer asked for.
    pub(super) origin: Origin,
    /// Due time of the read that the request forms a pair with; [`NEVER`] if it forms none.
    pub(super) pair_due: Nanos,
}

/// A request that is about to be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextRequest {
    pub(super) verb: Verb,
    /// Number of the draw that the request comes from.
    pub(super) index: u64,
    /// Index of the request's (first) key.
    pub(super) key: u64,
    pub(super) cas: u64,
    pub(super) origin: Origin,
    /// Due time of the read that the request forms a pair with; [`NEVER`] if it forms none.
    pub(super) pair_due: Nanos,
}

impl FollowUp {
    /// A request for this key that an answer on this lane asked for. Its draw has number 0.
    pub(super) fn new(lane: Lane, verb: Verb, key: u64, due: Nanos) -> FollowUp {
        FollowUp { lane, due, verb, key, cas: 0, index: 0, origin: Origin::FollowUp, pair_due: NEVER }
    }

    #[inline]
    pub(super) fn request(self) -> NextRequest {
        let FollowUp { verb, key, cas, index, origin, pair_due, .. } = self;
        let origin = if pair_due == NEVER { origin } else { Origin::PairEnd };
        NextRequest { verb, index, key, cas, origin, pair_due }
    }
}

/// The next request that is due by itself, because no answer and no event asks for it.
pub(super) enum Upcoming {
    /// A request that is due at this time, which is before the end of the phase.
    Due(Nanos),
    /// None so far, although the phase goes on.
    Later,
    None,
}

impl NextRequest {
    /// A request of the schedule for this key.
    #[inline(always)]
    pub(super) fn new(verb: Verb, index: u64, key: u64) -> NextRequest {
        NextRequest { verb, index, key, cas: 0, origin: Origin::Arrival, pair_due: NEVER }
    }
}

/// Next step of a client.
pub(super) enum Next {
    Open(Lane),
    Wait(Nanos),
    FollowUp { follow: FollowUp, ready: Nanos },
    Arrival { due: Nanos, ready: Nanos },
    Done,
}
