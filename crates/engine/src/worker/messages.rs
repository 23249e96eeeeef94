//! The messages of a worker to the thread that collects them.

use std::io;

use pummel_logic::measure::churn::{Churn, Failure};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Bytes, Verify, WorkerTime};
use pummel_logic::measure::recorder::{Counts, Tally};
use pummel_logic::protocol::udp;
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::Finding;

use crate::sys::CpuTime;
use crate::worker::trouble::Trouble;

/// One request of the measured phase, raw. Times are on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When the arrival process asked for it.
    pub due: Nanos,
    /// When only the generator still stood in its way.
    pub ready: Nanos,
    /// The clock before the system begin_churn that took its first byte; the greatest number if none did.
    pub sent: Nanos,
    /// When its reply arrived. Where none did, when the request was given up, or handed over if it wants none; the greatest
    /// number if its phase ended before that.
    pub arrived: Nanos,
    /// When the reply was read; the greatest number if there was none.
    pub read: Nanos,
    /// What was asked.
    pub verb: Verb,
    /// How it ended.
    pub outcome: Outcome,
    /// Index of its (first) key.
    pub key: u64,
    /// Number of its client in the group.
    pub client: u64,
    /// Index of the group in the Plan.
    pub group: u16,
}

/// The end of a client that came, with its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number in its group, over all threads.
    pub client: u64,
    /// When its connection was asked for.
    pub asked_at: Nanos,
    /// When it was gone.
    pub ended_at: Nanos,
    /// Whether its connection ever was open.
    pub was_open: bool,
    /// Requests that it made, and those that it was to make.
    pub calls: (u64, u64),
    /// Why its connection failed, with what is known beyond that; `None`: it was closed in order.
    pub failure: Option<(Failure, Option<Trouble>)>,
}

/// What servers said with errors, and how often.
pub type Messages = Vec<(Vec<u8>, u64)>;

/// What a worker says.
#[derive(Debug)]
pub enum WorkerMessage {
    /// A phase begins (from the first worker only).
    Began {
        /// Index of the phase in the Plan.
        phase: usize,
        /// When, on the monotonic clock.
        at: Nanos,
        /// CPU time that the process had used before it.
        cpu: CpuTime,
    },
    /// A worker is through with a phase and its drain.
    Spent {
        /// Index of the phase in the Plan.
        phase: usize,
        /// CPU time that the process had used until then.
        cpu: CpuTime,
    },
    /// Its part of a slice of the measured phase.
    Slice {
        /// The slice.
        interval: Box<Interval>,
        /// Number of the worker.
        worker: usize,
        /// Number of the slice that it writes to from now on; the greatest number where its phase is over.
        next: u64,
    },
    /// So many requests of a phase that is not recorded have ended by now.
    Progress {
        /// Index of the phase in the Plan.
        phase: usize,
        /// Requests since its last word.
        ended: u64,
    },
    /// A phase is over for it.
    Phase(Box<PhaseEnd>),
    /// Requests of the measured phase.
    Rows(Vec<Row>),
    /// Clients that are gone, in the measured phase.
    Departures(Vec<Departure>),
    /// What a check of a client with a window found that failed.
    Finding {
        /// Number of the connection over all threads, from 1.
        connection: u64,
        /// What it was.
        finding: Box<Finding>,
    },
    /// What a server said with an error to a client with a window.
    Complaint {
        /// Number of the connection over all threads, from 1.
        connection: u64,
        /// Its words.
        words: Vec<u8>,
    },
    /// A connection was lost or is open again.
    Connection {
        /// Index of its server in the Plan.
        server: u32,
        /// Which of the two.
        event: ConnectionEvent,
    },
    /// A connection is lost for good.
    Gone,
    /// It is through.
    Done(Box<WorkerEnd>),
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It was open, and is not any more.
    Lost,
    /// It is open again.
    Back,
}

/// What a worker knows at the end of a phase.
#[derive(Debug)]
pub struct PhaseEnd {
    /// Index of the phase in the Plan.
    pub phase: usize,
    /// Its requests, where they are not in slices.
    pub tally: Tally,
    /// Its bytes, where they are not in slices.
    pub bytes: Bytes,
    /// When it was to begin, on the monotonic clock.
    pub begin: Nanos,
    /// When its time was over, on the same clock; the greatest number where only its requests end it.
    pub end: Nanos,
    /// How long it took.
    pub elapsed_ns: Nanos,
    /// How long after its beginning the worker began it.
    pub late_ns: Nanos,
    /// From its beginning to the last answer.
    pub answered_ns: Nanos,
    /// How busy the worker was.
    pub time: WorkerTime,
    /// Connections that were open when it began.
    pub open: u64,
    /// What came of it, where it stores records, whether it is recorded or not.
    pub load: Option<Box<LoadEnd>>,
    /// What it did not come to.
    pub fate: PhaseFate,
}

/// What came of a phase that stores records, on one worker.
#[derive(Debug, Default)]
pub struct LoadEnd {
    /// How its requests ended.
    pub counts: Counts,
    /// Bytes that it sent.
    pub sent_bytes: u64,
    /// What servers said with errors.
    pub messages: Messages,
}

/// What a phase did not come to, on one worker.
#[derive(Debug)]
pub struct PhaseFate {
    /// Clients whose connection was lost and not replaced, at its end.
    pub dead: u64,
    /// Requests that the phase wanted and that were never due.
    pub missing: u64,
    /// Requests that were left out because they would have been late.
    pub skipped: u64,
    /// Requests that were asked again because the first attempt got lost.
    pub repeated: u64,
    /// For every server that the worker talks to (index in the Plan), how long it had answered nothing at the end.
    pub silent: Vec<(u32, Nanos)>,
}

/// What a worker knows at the end of the run.
#[derive(Debug, Default)]
pub struct WorkerEnd {
    /// Number of the worker.
    pub worker: usize,
    /// Attempts to open a connection that failed.
    pub failed: u64,
    /// Open connections that broke, or had to be closed.
    pub lost: u64,
    /// Lost ones that were opened again.
    pub reconnected: u64,
    /// How long opening took.
    pub connect: Histogram,
    /// How long TLS handshakes took.
    pub handshake: Histogram,
    /// How many of them resumed a session.
    pub resumed: u64,
    /// What came of clients that come and go.
    pub churn: Option<Box<Churn>>,
    /// Requests of the measured phase that were dropped instead of told as rows.
    pub rows_dropped: u64,
    /// Other messages that were dropped.
    pub messages_dropped: u64,
    /// What checking the answers found.
    pub verify: Verify,
    /// What became of datagrams.
    pub udp: udp::Counts,
    /// Errors of requests that asked for no reply.
    pub noreply_errors: u64,
    /// What servers said with errors, but for loads that are not recorded.
    pub messages: Messages,
    /// Why the first connection was not opened, or was lost, and the index of its server in the Plan.
    pub trouble: Option<(u32, Trouble)>,
    /// The kernel failed, so that the worker could not go on.
    pub failure: Option<io::Error>,
}
