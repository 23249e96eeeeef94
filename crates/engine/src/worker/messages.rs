//! The messages of a worker to the thread that collects them.

use std::io;

use pummel_logic::protocol::udp;
use pummel_logic::time::Nanos;
use pummel_logic::workload::rows::{AskedRows, Lateness};
use pummel_logic::workload::window::Finding;
use pummel_measure::audit::AuditCounts;
use pummel_measure::baseline::Baseline;
use pummel_measure::connections::Connections;
use pummel_measure::events::{ConnectionEvent, Departure, Row};
use pummel_measure::failed_keys::FailedKeys;
use pummel_measure::flight::FlightTime;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Bytes, Verify};
use pummel_measure::outages::ShardBuckets;
use pummel_measure::phase_ends::{PhaseOutcome, PhaseSpan};
use pummel_measure::recorder::{Counts, Tally};
use pummel_measure::trouble::Trouble;

use crate::sys::CpuTime;

/// The error messages of servers, and the number of times that each came.
pub type Messages = Vec<(Vec<u8>, u64)>;

/// A message of a worker to the thread that collects them.
#[derive(Debug)]
pub enum WorkerMessage {
    /// A phase begins (from the first worker only).
    Began {
        /// Index of the phase in the Plan.
        phase: usize,
        /// Time at which the phase begins, on the monotonic clock.
        at: Nanos,
        /// CPU time that the process had used before the phase.
        cpu: CpuTime,
        /// The round of the barrier before the phase.
        round: u64,
    },
    /// A worker has ended a phase and its drain.
    Spent {
        /// Index of the phase in the Plan.
        phase: usize,
        /// CPU time that the process had used by then.
        cpu: CpuTime,
    },
    /// A worker's part of a slice of the measured phase, or of a warm-up that is looked at.
    Slice {
        /// Index of the phase in the Plan.
        phase: usize,
        /// Figures of the slice.
        interval: Box<Interval>,
        /// Number of the worker.
        worker: usize,
        /// Number of the slice that the worker writes to next; the greatest number where the phase is over.
        next: u64,
    },
    /// Requests of a phase that is not recorded have ended.
    Progress {
        /// Index of the phase in the Plan.
        phase: usize,
        /// Requests that ended since the last message of this kind.
        ended: u64,
    },
    /// Round trips that the worker made one at a time before the measured phase.
    Baseline(Box<Baseline>),
    /// A phase is over for a worker.
    Phase(Box<PhaseEnd>),
    /// Requests of the measured phase.
    Rows(Vec<Row>),
    /// Departures of clients in the measured phase.
    Departures(Vec<Departure>),
    /// A check of a client with a window has failed.
    Finding {
        /// Number of the connection over all threads, from 1.
        connection: u64,
        /// Finding of the check.
        finding: Box<Finding>,
    },
    /// A server sent an error to a client with a window.
    Complaint {
        /// Number of the connection over all threads, from 1.
        connection: u64,
        /// The server's message.
        words: Vec<u8>,
    },
    /// A connection was lost or is open again.
    Connection {
        /// Index of the server in the Plan.
        server: u32,
        /// The event of the connection.
        event: ConnectionEvent,
    },
    /// A connection is lost and is not opened again.
    Gone,
    /// A worker has ended.
    Done(Box<WorkerEnd>),
}

/// A worker's facts at the end of a phase.
#[derive(Debug)]
pub struct PhaseEnd {
    /// Number of the worker.
    pub worker: usize,
    /// Index of the phase in the Plan.
    pub phase: usize,
    /// The requests of the phase, where they are not in slices.
    pub tally: Tally,
    /// The bytes of the phase, where they are not in slices.
    pub bytes: Bytes,
    /// Beginning and end of the phase, and how busy the worker was.
    pub span: PhaseSpan,
    /// Time from that beginning until the worker began the phase.
    pub late_ns: Nanos,
    /// Time from the beginning of the phase to the last reply, in nanoseconds.
    pub answered_ns: Nanos,
    /// Connections that were open when the phase began.
    pub open: u64,
    /// Open connections on which the server had sent nothing when the phase began.
    pub unanswered: u64,
    /// The time that requests were in flight in the phase and its drain, by counts.
    pub flight: FlightTime,
    /// Results of storing, where the phase stores records, whether it is recorded or not.
    pub load: Option<Box<LoadEnd>>,
    /// Work that was left undone in the phase.
    pub outcome: PhaseOutcome,
}

/// Results of a phase that stores records, on one worker.
#[derive(Debug, Default)]
pub struct LoadEnd {
    /// The outcomes of the phase's requests.
    pub counts: Counts,
    /// Bytes that the worker sent.
    pub sent_bytes: u64,
    /// The messages of servers with errors.
    pub messages: Messages,
}

/// A worker's facts at the end of the run.
#[derive(Debug, Default)]
pub struct WorkerEnd {
    /// Number of the worker.
    pub worker: usize,
    /// The connections of the worker, but for those that were open at the beginning of a phase.
    pub connections: Connections,
    /// Lateness of the requests of a trace; `None` without a trace.
    pub lateness: Option<Lateness>,
    /// The requests of a trace that were asked; `None` without a trace.
    pub asked_rows: Option<Box<AskedRows>>,
    /// Requests of the measured phase whose rows were dropped.
    pub rows_dropped: u64,
    /// Other messages that were dropped.
    pub messages_dropped: u64,
    /// The requests of each shard of a cluster, in the order of the shards; empty where the servers are none.
    pub shards: Vec<ShardBuckets>,
    /// The records that were read back.
    pub audit: AuditCounts,
    /// Findings of the checks of values.
    pub verify: Verify,
    /// The counts of datagrams.
    pub udp: udp::DatagramCounts,
    /// Errors of requests that asked for no reply.
    pub noreply_errors: u64,
    /// The keys of requests that failed; `None` where they are not kept.
    pub failed_keys: Option<Box<FailedKeys>>,
    /// The names of messages that no request asked for.
    pub pushes: Messages,
    /// The messages of servers with errors, without those of loads that are not recorded.
    pub messages: Messages,
    /// Index of a server in the Plan, and the first trouble with a connection to it.
    pub trouble: Option<(u32, Trouble)>,
    /// The error of the kernel because of which the worker could not go on.
    pub failure: Option<io::Error>,
}
