//! What a client wants of its worker, and what it is told at the beginning of a phase.

use crate::client::route::Lane;
use crate::connection::inflight::Ticket;
use crate::plan::Late;
use crate::protocol::{Op, Verb};
use crate::rng::StreamOwner;
use crate::time::{NEVER, Nanos};

/// All that a client can want.
#[allow(
    clippy::large_enum_variant,
    reason = "a wish is carried out where it is made; a box would allocate for each"
)]
#[derive(Debug)]
pub enum Wish<'a> {
    /// Open this lane.
    Open(Lane),
    /// Send this request over this lane.
    Ask {
        /// Which socket.
        lane: Lane,
        /// What to send.
        op: Op<'a>,
        /// What to remember until it is answered.
        ticket: Ticket,
    },
    /// Count a request that is due as never sent: its lane is not there, though others are.
    Unsent(Verb),
    /// Nothing before this time or an event; [`NEVER`]: only an event helps.
    Wait(Nanos),
    /// Nothing more in this phase.
    Done,
}

/// What a client is told at the beginning of a phase.
#[derive(Clone, Copy, Debug)]
pub struct PhaseAssignment {
    /// Seed, group, phase and client: where its draws come from.
    pub place: StreamOwner,
    /// When the phase begins.
    pub begin: Nanos,
    /// When it ends: requests that are due later are not part of it. Those that were due before and had to wait are sent
    /// in the drain. [`NEVER`]: by number only.
    pub end: Nanos,
    /// How many requests this client has to make.
    pub requests: u64,
    /// Most requests outstanding. A time is kept for each, so that it is no larger than a plan's memory allows.
    pub depth: u32,
    /// What becomes of what is late; only where there is a schedule.
    pub late: Late,
    /// The least time between two requests of the schedule.
    pub spacing_ns: Nanos,
    /// How many stores that timed out are asked again, at most.
    pub repeats: u64,
}

impl PhaseAssignment {
    /// Nothing to do, until the next phase.
    pub fn nothing(place: StreamOwner) -> PhaseAssignment {
        PhaseAssignment {
            place,
            begin: 0,
            end: NEVER,
            requests: 0,
            depth: 1,
            late: Late::Kept,
            spacing_ns: 0,
            repeats: 0,
        }
    }
}

impl Wish<'_> {
    /// The same over another lane.
    pub(super) fn over(self, lane: Lane) -> Self {
        match self {
            Wish::Ask { op, ticket, .. } => Wish::Ask { lane, op, ticket },
            other => other,
        }
    }
}
