//! Events of a run as plain data, which the engine hands over and command lines, result files and agents read.

use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::Nanos;

use crate::churn::ConnectionFailure;
use crate::measurement::Keep;
use crate::trouble::Trouble;

/// The index for a key that is not a key of the records.
pub const NO_INDEX: u64 = u64::MAX;

/// One request of the measured phase. All times are on the monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Time at which the request was due by the arrival process.
    pub due: Nanos,
    /// Time from which on only the generator delayed the request.
    pub ready: Nanos,
    /// The clock before the system call that took the first byte of the request; the greatest number if no byte was
    /// taken.
    pub sent: Nanos,
    /// Time at which the reply arrived; without a reply, the time at which the request was given up, or sent if it
    /// asks for none; the greatest number if the phase ended before that.
    pub arrived: Nanos,
    /// Time at which the reply was read; the greatest number if there was no reply.
    pub read: Nanos,
    /// The verb of the request.
    pub verb: Verb,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// Index of the request's first key; [`NO_INDEX`] if the key comes from a row of a trace.
    pub key: u64,
    /// Number of the client in its group.
    pub client: u64,
    /// Index of the group in the Plan.
    pub group: u16,
}

/// The departure of a client that comes and goes, and the end of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number of the client in its group, over all threads.
    pub client: u64,
    /// Time at which the client asked for its connection.
    pub asked_at: Nanos,
    /// Time at which the client was gone.
    pub ended_at: Nanos,
    /// Whether the connection was ever open.
    pub was_open: bool,
    /// Number of requests that the client made, and the number that it was to make.
    pub calls: (u64, u64),
    /// Why the connection failed, with its trouble where that is known; `None` where the connection was closed in
    /// order.
    pub failure: Option<(ConnectionFailure, Option<Trouble>)>,
}

/// An event of a connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The connection was open, and is lost.
    Lost,
    /// The connection is open again.
    Back,
}

/// A process of a distributed run, as far as it is shown while the run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFacts {
    /// Name of the process.
    pub name: String,
    /// Greatest error of the measured difference between its clock and that of the controller, in nanoseconds.
    pub clock_error_ns: Nanos,
    /// Number of the process's worker threads.
    pub threads: u32,
    /// Whether it is lost, or left before the end.
    pub is_lost: bool,
}

/// The data that a run hands over beside its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Whether every request of the measured phase is handed over.
    pub rows: bool,
    /// Whether every departure of a client in the measured phase is handed over.
    pub departures: bool,
    /// The parts that slices keep.
    pub keep: Keep,
    /// Whether the number of outstanding requests of a client is recorded with each new request.
    pub outstanding: bool,
    /// Whether every loss and every return of a connection is handed over as it happens. If connections come and go
    /// with each request, this wakes the collecting thread as often.
    pub connections: bool,
}
/// A date and time in the time zone of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Year of the date.
    pub year: i32,
    /// Month, from 1.
    pub month: i32,
    /// Day of the month, from 1.
    pub day: i32,
    /// Hour, from 0 to 23.
    pub hour: i32,
    /// Minute, from 0 to 59.
    pub minute: i32,
    /// Second, from 0 to 60.
    pub second: i32,
}
