//! The turns of a client that is on stage for some time of a phase only, and its position in them.

use crate::plan::StageTurn;
use crate::time::Nanos;

/// The turns of a client on stage.
#[derive(Debug)]
pub(super) struct StageState {
    /// The turns that are not over, in the order of time, on the worker's clock; the first is the next one, or that under way.
    pub(super) turns: Vec<StageTurn>,
    /// End of the phase; [`NEVER`](crate::time::NEVER) where only requests end it.
    pub(super) phase_end: Nanos,
    /// Time for which a client sends what is late behind its turn, in nanoseconds.
    pub(super) grace_ns: Nanos,
    /// Position of the client in its turns.
    pub(super) position: Position,
}

/// Position of a client in its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Off stage: no connection is open and nothing is asked.
    Off,
    /// The connections of a turn are being opened for the first time.
    Entering,
    /// On stage, or finishing what is under way.
    On,
    /// The client has been late for so long behind its turn that it sends nothing more.
    Overdue,
}
