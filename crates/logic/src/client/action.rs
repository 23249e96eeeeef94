//! The actions that a client asks of its worker, and the work that a phase assigns to a client.

use super::split::WholeAnswer;
use crate::client::route::{Lane, Place};
use crate::connection::inflight::{CheckState, Ticket};
use crate::plan::Late;
use crate::protocol::{Op, Verb};
use crate::rng::StreamOwner;
use crate::time::{NEVER, Nanos};

/// An action that a client asks of its worker.
#[allow(
    clippy::large_enum_variant,
    reason = "an action is carried out where it is made; a box would allocate for each"
)]
#[derive(Debug)]
pub enum Action<'a> {
    /// Open this lane.
    Open(Lane),
    /// Send this request over this lane.
    Ask {
        /// The lane to send over.
        lane: Lane,
        /// The request to send.
        op: Op<'a>,
        /// The facts to keep until the request is answered.
        ticket: Ticket,
    },
    /// Send this request again over this lane: a node of a cluster sent it on, or it had an error after which the plan has it sent again.
    AskAgain {
        /// The lane to send over.
        lane: Lane,
        /// The request to send.
        op: Op<'a>,
        /// The facts to keep until the request is answered.
        ticket: Ticket,
        /// Whether `ASKING` goes before it.
        asking: bool,
    },
    /// End this request, which was sent over this lane last, with an error: nothing answered it otherwise in time.
    GivenUp(Lane, Box<WholeAnswer>),
    /// Count a request as never sent: its lane is lost, or is not open although other lanes are.
    Unsent {
        /// Operation of the request.
        verb: Verb,
        /// When the request was due.
        due: Nanos,
        /// The slot of its (first) key in a cluster; 0 elsewhere.
        place: Place,
    },
    /// Close the connections: the client goes off stage, and has nothing under way.
    Leave,
    /// Poll the client again at this time or after an event; [`NEVER`] means only after an event.
    Wait(Nanos),
    /// The client wants nothing more in this phase.
    Done,
    /// The client sends nothing more in this phase. Unless the phase is over by then, poll it again at this
    /// time, when a request is due that it cannot send.
    DoneUntil(Nanos),
}

/// The work that a phase assigns to one client.
#[derive(Clone, Copy, Debug)]
pub struct PhaseAssignment {
    /// Seed, group, phase and client, from which the client's draws follow.
    pub place: StreamOwner,
    /// The draws of the client's requests are those of client 0.
    pub same_draws: bool,
    /// When the phase begins.
    pub begin: Nanos,
    /// When the phase ends; [`NEVER`] where only the number of requests ends it. Requests that are due later are not part of
    /// the phase. Requests that were due before and had to wait are sent in the drain, unless the phase ends on time.
    pub end: Nanos,
    /// Number of requests that the client makes.
    pub requests: u64,
    /// Most requests outstanding. The client keeps a time for each.
    pub depth: u32,
    /// Requests are sent in batches of that many, each when all those before it are answered.
    pub batched: bool,
    /// The treatment of late requests, where there is a schedule.
    pub late: Late,
    /// The least time between two requests of the schedule, in nanoseconds.
    pub spacing_ns: Nanos,
    /// Nothing is sent in the drain: the client is to be stopped at `end`.
    pub ends_on_time: bool,
    /// Most stores that are asked again after a timeout.
    pub repeats: u64,
    /// Requests of the client's schedule in earlier phases since keys change.
    pub asked_before: u64,
}

impl PhaseAssignment {
    /// An assignment without requests, until the next phase.
    pub fn nothing(place: StreamOwner) -> PhaseAssignment {
        PhaseAssignment {
            place,
            same_draws: false,
            begin: 0,
            end: NEVER,
            requests: 0,
            depth: 1,
            batched: false,
            late: Late::Kept,
            spacing_ns: 0,
            ends_on_time: false,
            repeats: 0,
            asked_before: 0,
        }
    }
}

impl Action<'_> {
    /// The action with another lane for its request.
    pub(super) fn over(self, lane: Lane) -> Self {
        match self {
            Action::Ask { op, ticket, .. } => Action::Ask { lane, op, ticket },
            other => other,
        }
    }

    /// The action with a request whose reply is not called stale, whatever version it brings.
    pub(super) fn unjudged(self) -> Self {
        match self {
            Action::Ask { lane, op, ticket: ticket @ Ticket { check_state: CheckState::Read(_), .. } } => {
                Action::Ask { lane, op, ticket: Ticket { check_state: CheckState::None, ..ticket } }
            }
            other => other,
        }
    }

    /// The action with the place of its request.
    pub(super) fn at(self, place: Place) -> Self {
        match self {
            Action::Ask { lane, op, ticket } => Action::Ask { lane, op, ticket: Ticket { place, ..ticket } },
            other => other,
        }
    }
}
