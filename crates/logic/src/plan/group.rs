//! The clients of a Plan: how many there are, how deep they ask, and when.

use serde::{Deserialize, Serialize};

use super::absent::{is_default, is_one, one};
use crate::plan::arrivals::Arrivals;

/// Clients with one description. The result keeps groups apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the group in the result.
    pub name: String,
    /// Number of clients, over all servers, threads and agents.
    pub clients: u32,
    /// Most requests that one client has outstanding.
    pub depth: Depth,
    /// The process that decides at which times requests are due.
    pub arrivals: Arrivals,
    /// Requests per second of the whole group; absent exactly when `arrivals` is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The clients come and go; absent: all clients stay from the beginning to the end.
    #[serde(rename = "connection_churn", default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<ChurningClients>,
    /// The rules of these clients beside their pace.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: ClientPolicy,
}

impl Group {
    /// Whether the clients ask, or come, again as soon as they are answered, so that their rate is a result.
    pub fn is_closed_loop(&self) -> bool {
        match &self.churn {
            Some(churn) => churn.spawns == Spawns::Closed,
            None => self.arrivals == Arrivals::Closed,
        }
    }
}

/// The rules of clients beside their pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ClientPolicy {
    /// Number of neighbouring clients, at least 1, that share one server and one worker; the servers are dealt to such
    /// blocks of clients in turn.
    pub block: u32,
    /// The treatment of requests that could not be made when they were due.
    pub late: Late,
    /// Between two requests of a client lies at least the mean gap of its arrivals.
    pub spaced: bool,
    /// Only the times of reads that found something, and of stores that stored, are recorded; everything is counted.
    pub successes_only: bool,
    /// The run ends when a connection of the group is lost for good.
    #[serde(skip_serializing_if = "is_default")]
    pub whole: bool,
    /// The clients run in the controller's process, and not on its agents.
    #[serde(skip_serializing_if = "is_default")]
    pub here: bool,
    /// Nothing is sent after the end of a phase: what was due and had to wait until then is unsent. Otherwise it is sent
    /// in the drain.
    #[serde(skip_serializing_if = "is_default")]
    pub ends_on_time: bool,
    /// All clients draw the same operations, keys, lengths and expiries, those of client 0; the times at which requests are due stay those
    /// of each client.
    #[serde(skip_serializing_if = "is_default")]
    pub same_draws: bool,
}

impl Default for ClientPolicy {
    fn default() -> ClientPolicy {
        ClientPolicy {
            block: 1,
            late: Late::Kept,
            spaced: false,
            successes_only: false,
            whole: false,
            here: false,
            ends_on_time: false,
            same_draws: false,
        }
    }
}

/// The treatment of requests that could not be made when they were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Late {
    /// Late requests are made as soon as possible.
    #[default]
    Kept,
    /// A client that is more than 5 ms late when all its slots are taken leaves out what was due up to 4 ms ago. This is
    /// mutilate's rule; what is left out is counted as skipped, and is not among the requests.
    Skipped,
}

/// Clients that come, make their requests on a connection of their own, close it and go. [`Group::clients`] is the most
/// that exist at one time; in phases that load, that many exist all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChurningClients {
    /// The process that decides at which times clients come.
    #[serde(rename = "clients_started")]
    pub spawns: Spawns,
    /// Requests that each client makes, at least 1.
    pub calls: u64,
    /// The requests of mcperf; absent: the clients make the requests that clients make that stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Sequence>,
}

/// The process that decides at which times clients come, for clients that come and go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Spawns {
    /// The next client comes as soon as there is room for it.
    Closed,
    /// Clients come at a rate, whether earlier clients have gone or not.
    Open {
        /// The process; not closed.
        arrivals: Arrivals,
        /// Clients per second of the whole group.
        rate: f64,
    },
    /// The first client comes at the beginning of the phase, each other one a drawn gap in seconds after the one before,
    /// from the first stream of the sequence.
    Drawn(Gap),
}

/// mcperf's requests: keys are counted and sizes drawn in the order in which they are asked, over all clients of one
/// worker. The key is the prefix and the number of the request, from 1 on, as 8 hexadecimal digits; the value is so many
/// zeros (digits), which for incr and decr is the number itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Seeds the three streams of gaps and sizes.
    pub instance: u32,
    /// The first request of a client is due when its connection is open, each other one such a gap after the one before,
    /// in seconds; absent: closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Gap>,
    /// Length of a value in bytes, rounded to the nearest whole number, halves to the even one.
    pub sizes: Gap,
    /// The request's number is the one before it plus this, where instances share the keys out among them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub stride: u32,
    /// A number that is added to the request's number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: u32,
    /// Stores have the word `xxx`, which no server knows, in place of `set`: mcperf's hidden method.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bogus: bool,
}

/// The distribution of a gap or a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Gap {
    /// A fixed number.
    Fixed(f64),
    /// Between the first, which is included, and the second.
    Uniform(f64, f64),
    /// The exponential distribution with this mean.
    Exponential(f64),
    /// Rising by 1 each time, from this number on.
    Rising(f64),
}

/// Most requests that a client has outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// A number of requests, at least 1.
    Limit(u32),
    /// A number of requests, at least 1, that are sent together when those before are all answered, and none in between.
    Batch(u32),
    /// All requests that are due, up to the client's share of what memory allows.
    Unlimited,
}

impl Depth {
    /// The number of requests; `None` where it is unlimited.
    pub fn limit(self) -> Option<u32> {
        match self {
            Depth::Limit(depth) | Depth::Batch(depth) => Some(depth),
            Depth::Unlimited => None,
        }
    }

    /// Whether requests are sent in batches.
    pub fn is_batch(self) -> bool {
        matches!(self, Depth::Batch(_))
    }

    /// Whether one request at a time is outstanding.
    pub fn is_one(self) -> bool {
        self.limit() == Some(1)
    }
}
