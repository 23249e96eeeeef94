//! Reason why a run is not complete: the facts, for which reports have words, and what others do because of it.

use serde::{Deserialize, Serialize};

use crate::agents::LossReason;
use crate::connections::TroubleKind;
use pummel_logic::time::Nanos;

/// Reason why a run is not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PartialRun"))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The run could not begin.
    NotBegun {
        /// Error of the beginning.
        what: String,
    },
    /// No request was due and nothing went wrong: chance did so, where the run was short and its rate low.
    NothingDue,
    /// No request was completed.
    NothingCompleted {
        /// Reason where one is known.
        why: Option<Why>,
        /// Whether requests were sent over UDP, on which memcached does not listen by itself.
        is_udp: bool,
    },
    /// A server took fewer connections than the run asked it for.
    NotTaken {
        /// Name of the server.
        server: String,
        /// Connections to the server.
        connections: u64,
        /// Connections that it refused.
        refused: u64,
        /// Message of the server; empty where it sent none.
        what: String,
        /// The server's limit of connections; absent where it is not known.
        limit: Option<u64>,
        /// Connections that the server has refused since its start, by its own count.
        counted: Option<u64>,
        /// Whether the server speaks RESP.
        is_resp: bool,
        /// Number of other servers that refused some.
        others: u64,
    },
    /// A server went away or fell silent before the end, so that the run is one until then.
    ServerGone {
        /// Name of the server.
        server: String,
        /// Time for which it had answered nothing, in nanoseconds.
        silent_ns: Nanos,
        /// Whether it refused or reset the last attempts to connect to it.
        turned_away: bool,
        /// The first failure of a connection.
        trouble: Option<ServerTrouble>,
    },
    /// Records were not stored.
    Unstored(Unstored),
    /// A worker could not go on.
    WorkerFailed {
        /// Error of the system.
        what: String,
    },
    /// Connections of a run that did not begin were not opened, or were lost at once.
    NotOpened {
        /// Number of connections that were asked for.
        asked: u64,
        /// Connections that could not be opened.
        failed: u64,
        /// Connections that were lost.
        lost: u64,
        /// Connections that were not tried.
        untried: u64,
        /// Reason where one is known.
        why: Option<Why>,
    },
    /// Connections were lost and not replaced.
    ConnectionsLost {
        /// Number of connections that were asked for.
        asked: u64,
        /// Connections that were lost.
        lost: u64,
        /// Reason where one is known.
        why: Option<Why>,
    },
    /// Connections of clients that come and go failed.
    ClientsFailed {
        /// Connections that were begun.
        begun: u64,
        /// Connections that failed.
        failed: u64,
        /// Requests that were never made.
        missing: u64,
        /// Reason where one is known.
        why: Option<Why>,
    },
    /// The machine of the clients had no room for more open connections.
    NoRoom {
        /// Most connections that were open at one time.
        open_max: u64,
        /// Connections that found no room.
        failed: u64,
        /// Error of the system, with a remedy.
        what: String,
        /// Requests that were never made.
        missing: u64,
    },
    /// Requests were never made.
    NeverMade {
        /// Number of the requests.
        missing: u64,
        /// Reason where one is known.
        why: Option<Why>,
    },
    /// The warm-up was to last until the first eviction, and no server tells how many records it evicted.
    EvictionsUnreported {
        /// Reason of the server that was asked last.
        what: String,
    },
    /// The trace could not be read to its end.
    TraceUnread {
        /// Error of the reader.
        what: String,
    },
    /// The warm-up took all rows of the trace.
    TraceTaken {
        /// Number of the rows.
        rows: u64,
    },
    /// More than half of the requests failed, in a run that is to count for others.
    RequestsFailed(FailedRequests),
    /// The user ended the run.
    Interrupted,
    /// The run goes on.
    NotOver,
    /// Processes of a distributed run did not do their shares.
    Members {
        /// Reasons of the processes, of which only the first ones are kept.
        members: Vec<MemberReason>,
        /// Number of reasons that were not kept.
        more: u64,
        /// Whether the loss of an agent ended the run.
        is_stopped: bool,
        /// The longest standstill of the controller.
        standstill: Option<ControllerStandstill>,
        /// Records that were not stored.
        unstored: Option<Unstored>,
    },
}

/// Records that a load did not store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unstored {
    /// Records that were to be stored, each as often as it was to be.
    pub records: u64,
    /// Records that were stored, each as often as it was.
    pub stored: u64,
    /// Most times that a record was to be stored; absent where it is once.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub per_record: u64,
    /// Reason where one is known.
    pub why: Option<Why>,
}

fn once() -> u64 {
    1
}

fn is_once(times: &u64) -> bool {
    *times == 1
}

/// Requests of a run of which more than half failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedRequests {
    /// Requests that ended.
    pub ended: u64,
    /// Requests that were errors or timeouts.
    pub failed: u64,
    /// Whether most of those were timeouts.
    pub timed_out: bool,
    /// The commonest message of the servers, where most of those were errors.
    pub what: Option<String>,
}

/// Reason behind what a run lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A connection failed.
    Trouble(ServerTrouble),
    /// Servers answered with an error.
    Said {
        /// The commonest message.
        what: String,
        /// Number of times that it came.
        count: u64,
    },
}

/// A failure of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerTrouble {
    /// Name of the server.
    pub server: String,
    /// Kind of the failure.
    pub kind: TroubleKind,
    /// Error of the connection: the words of the system, of TLS or of the server.
    pub what: String,
}

/// Reason why one process of a distributed run did not do its share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberReason {
    /// Name of the process.
    pub member: String,
    /// Whether it is an agent, and not the controller.
    pub is_agent: bool,
    /// Reason of the process.
    pub why: MemberWhy,
}

/// Reason why a process did not do its share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberWhy {
    /// The run of the process is not complete.
    Run(Box<Reason>),
    /// A part of its share is missing: the amount that it did and the one that it was to do, as `records`, `time` (nanoseconds), `requests`,
    /// `connections` or `rows`.
    Share(ShareShortfall),
    /// The process ended before it was told to.
    EndedEarly,
    /// The process could not do its share.
    Failed {
        /// Words of the process.
        what: String,
    },
    /// The process replayed another recording than others.
    OtherRecording {
        /// Rows of its recording.
        rows: u64,
        /// Rows of another one.
        others: u64,
    },
    /// The process was not there to the end.
    Gone {
        /// Moment of its last message.
        at: Moment,
        /// Whether the process itself said that it ends.
        left: bool,
        /// Reason of the loss.
        why: LossReason,
    },
}

/// Part of its share that one process of a distributed run did not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShareShortfall {
    /// Records that it stored, of those that it was to store, not all of which it tried.
    Records(u64, u64),
    /// Time for which it measured, of the time that it was to measure, in nanoseconds.
    Time(Nanos, Nanos),
    /// Requests that it made, of those that it was to make.
    Requests(u64, u64),
    /// Connections of clients that come and go that it made, of those that it was to make.
    Connections(u64, u64),
    /// Rows of a recording that it asked, of those that it was to ask.
    Rows(u64, u64),
}

/// Moment of a run, by the phase that began last before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// No phase had begun.
    BeforePhases,
    /// Time since the beginning of the load, in nanoseconds.
    Load(Nanos),
    /// Time since the beginning of the warm-up, in nanoseconds.
    WarmUp(Nanos),
    /// Time since the beginning of the measurement, in nanoseconds.
    Measurement(Nanos),
    /// Name of another phase, and the time since its beginning, in nanoseconds.
    Phase(String, Nanos),
}

/// A time in which the controller of a distributed run did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControllerStandstill {
    /// Length of the standstill, in nanoseconds.
    pub length_ns: Nanos,
    /// Beginning of the standstill.
    pub at: Moment,
}

impl Reason {
    /// The reasons of the processes of a run; the reason itself where there is one process.
    pub fn of_processes(&self) -> Vec<&Reason> {
        let Reason::Members { members, .. } = self else { return vec![self] };
        let reasons = members.iter().filter_map(|member| match &member.why {
            MemberWhy::Run(reason) => Some(reason),
            _ => None,
        });
        reasons.flat_map(|reason| reason.of_processes()).collect()
    }

    /// Whether a worker of one of the processes could not go on.
    pub fn has_failed_worker(&self) -> bool {
        self.of_processes().iter().any(|reason| matches!(reason, Reason::WorkerFailed { .. }))
    }

    /// Records that were not stored, where that is a part of the reason.
    pub fn unstored(&self) -> Option<&Unstored> {
        match self {
            Reason::Unstored(unstored) => Some(unstored),
            Reason::Members { unstored, .. } => unstored.as_ref(),
            _ => None,
        }
    }

    /// The first failure of a connection that is named.
    pub fn trouble(&self) -> Option<&ServerTrouble> {
        let of_load = || self.unstored()?.why.as_ref()?.trouble();
        self.of_processes().into_iter().find_map(Reason::own_trouble).or_else(of_load)
    }

    /// The names and the words of others in the reason of one process, each to be changed.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Reason::NotTaken { server, what, .. } => vec![server, what],
            Reason::ServerGone { server, trouble, .. } => {
                std::iter::once(server).chain(trouble.iter_mut().flat_map(ServerTrouble::texts_mut)).collect()
            }
            Reason::NotBegun { what }
            | Reason::WorkerFailed { what }
            | Reason::NoRoom { what, .. }
            | Reason::EvictionsUnreported { what }
            | Reason::TraceUnread { what } => vec![what],
            Reason::RequestsFailed(failed) => failed.what.iter_mut().collect(),
            Reason::Unstored(Unstored { why, .. })
            | Reason::NothingCompleted { why, .. }
            | Reason::NotOpened { why, .. }
            | Reason::ConnectionsLost { why, .. }
            | Reason::ClientsFailed { why, .. }
            | Reason::NeverMade { why, .. } => match why {
                Some(Why::Trouble(trouble)) => trouble.texts_mut().into(),
                Some(Why::Said { what, .. }) => vec![what],
                None => Vec::new(),
            },
            Reason::NothingDue
            | Reason::TraceTaken { .. }
            | Reason::Interrupted
            | Reason::NotOver
            | Reason::Members { .. } => Vec::new(),
        }
    }

    /// The failure of a connection that the reason of one process names.
    fn own_trouble(&self) -> Option<&ServerTrouble> {
        match self {
            Reason::ServerGone { trouble, .. } => trouble.as_ref(),
            Reason::NothingCompleted { why, .. }
            | Reason::NotOpened { why, .. }
            | Reason::ConnectionsLost { why, .. }
            | Reason::ClientsFailed { why, .. }
            | Reason::NeverMade { why, .. } => why.as_ref()?.trouble(),
            _ => None,
        }
    }
}

impl Why {
    /// The failure of a connection, where it is one.
    pub fn trouble(&self) -> Option<&ServerTrouble> {
        match self {
            Why::Trouble(trouble) => Some(trouble),
            Why::Said { .. } => None,
        }
    }
}

impl ServerTrouble {
    /// The name and the words of others in it, each to be changed.
    pub fn texts_mut(&mut self) -> [&mut String; 2] {
        [&mut self.server, &mut self.what]
    }
}
