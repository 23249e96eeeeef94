//! The next step of a client: an arrival of its schedule, a request that an answer asked for, or to wait.

use crate::client::route::Lane;
use crate::connection::inflight::Origin;
use crate::protocol::Verb;
use crate::time::{NEVER, Nanos};

/// A request that an answer, or an event, asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FollowUp {
    pub(super) due: Nanos,
    pub(super) request: NextRequest,
}

/// A request that is about to be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextRequest {
    /// The lane of the answer that asked for the request; 0 where none did.
    pub(super) lane: Lane,
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
        NextRequest { lane: 0, verb, index, key, cas: 0, origin: Origin::Arrival, pair_due: NEVER }
    }

    /// A request that the answer to request `index` asked for.
    pub(super) fn after(index: u64, verb: Verb, key: u64) -> NextRequest {
        NextRequest { origin: Origin::FollowUp, ..NextRequest::new(verb, index, key) }
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
