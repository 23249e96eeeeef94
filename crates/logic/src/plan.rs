//! The Plan: everything that a run needs, as plain data that is saved, printed and sent to agents.
//!
//! A command line is one way to write a Plan. Nothing in it refers to this machine but for names of servers, of CPUs and
//! of files with certificates; two processes with equal Plans send the same requests.

use serde::{Deserialize, Serialize};

use crate::dist::Dist;
use crate::time::Nanos;
use crate::wire::Verb;
use crate::workload::popularity::Popularity;

/// The layout of the Plan that this version writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// Everything that a run needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Layout of this data; [`SCHEMA`].
    pub schema: u32,
    /// Where the load goes: `host:port`, `[v6]:port` or `/path/of/a/socket`. At least one.
    pub servers: Vec<String>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Seed of arrivals and of the choice of operations and keys.
    pub seed: u64,
    /// The least time between two intervals of the result.
    pub interval_ns: Nanos,
    /// How long a request may take from `ready` on (DESIGN: the latest of due, slot free, connection open, socket
    /// writable), and a connection to open.
    pub timeout_ns: Nanos,
    /// Open connections again that the server closed. A connection that a timed-out request had to close is always
    /// opened again.
    pub reconnect: bool,
    /// Share of the answers with values that are checked, 0 to 1.
    pub verify: f64,
    /// What the run is held to.
    pub goals: Vec<Goal>,
    /// Threads, CPUs, kernel interfaces.
    pub engine: Engine,
    /// Options of every socket.
    pub socket: Socket,
    /// Who logs in; absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// Encryption of every connection; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
    /// The records that all phases work on.
    pub data: Data,
    /// The clients.
    pub groups: Vec<Group>,
    /// What they do, one after the other.
    pub phases: Vec<Phase>,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// memcached's text protocol.
    Text,
    /// memcached's meta commands.
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// RESP2, of Redis and Valkey.
    Resp2,
    /// RESP3.
    Resp3,
}

impl Protocol {
    /// Whether it is one of RESP servers, and not of memcached.
    pub fn is_resp(self) -> bool {
        matches!(self, Protocol::Resp2 | Protocol::Resp3)
    }
}

/// Who logs in on every connection. The password is not part of a Plan: it is read where the run takes place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The user.
    pub user: String,
    /// File whose first line is the password; absent: the environment variable PUMMEL_PASSWORD is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
}

/// A bound on a quantile of the response time of all recorded requests together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Which quantile, above 0 and below 1.
    pub quantile: f64,
    /// What it may be at most.
    pub limit_ns: Nanos,
}

/// Threads and what they use of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Workers; each has one thread and one event loop.
    pub threads: u32,
    /// CPUs that workers are pinned to, in turn; empty: not pinned.
    pub cpus: Vec<usize>,
    /// Kernel interface.
    pub backend: Backend,
    /// How a worker waits for the next due time.
    pub wait: Wait,
    /// What says when a reply arrived.
    pub clock: Clock,
}

/// A kernel interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The best that the kernel offers.
    Auto,
    /// epoll, edge-triggered.
    Epoll,
}

/// How a worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Sleep in the kernel up to shortly before the due time, then spin; only sleep where there is no due time.
    Auto,
    /// Never sleep.
    Spin,
    /// Only sleep.
    Block,
}

/// What says when a reply arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The kernel's receive stamp.
    Kernel,
    /// The worker's own reading when it took the bytes; for comparison with other tools.
    User,
}

/// Options of every socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// SO_LINGER in seconds; 0 makes closing send a reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linger_s: Option<u32>,
    /// SO_SNDBUF in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_buffer: Option<u32>,
    /// Addresses to connect from, in turn; empty: the kernel's choice.
    pub source: Vec<String>,
}

/// TLS: whom to trust, and who we are.
///
/// Files are named by their paths and read where the run takes place, so that neither a saved Plan nor a result holds
/// a private key; an agent needs them at the same paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsOptions {
    /// PEM file with the certificates of the authorities that are trusted; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// PEM file with our certificate, then those that lead to its authority; present exactly when `key` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// PEM file with the private key of our certificate, not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Name or IP address that servers' certificates must be for; absent: the host in the name of each server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Take every certificate: the connection is encrypted, but to whom is not known. `ca` has no effect then.
    #[serde(default)]
    pub insecure: bool,
}

/// The records: which keys there are and what is stored under them.
///
/// Key spaces: indexes 0 to `records` - 1 are the plain records. Where a mix has append or prepend, a second space of
/// the same size holds their values; where it has incr or decr, a third (see `workload::records`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Number of records, 1 to 2^40.
    pub records: u64,
    /// Seed of key sizes, value sizes and bytes.
    pub seed: u64,
    /// What every key begins with.
    pub key_prefix: String,
    /// Length of a key in bytes, prefix included.
    pub key_size: Dist,
    /// Length of a value in bytes.
    pub value_size: Dist,
    /// Expiry in seconds, 0 for none.
    pub expiry_s: Dist,
}

/// Clients with one description. The result keeps groups apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What the group is called in the result.
    pub name: String,
    /// Number of clients, over all servers, threads and agents.
    pub clients: u32,
    /// Most requests that one client has outstanding.
    pub depth: Depth,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// Requests per second of the whole group; absent exactly when `arrivals` is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// Most requests that a client has outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// At most so many, at least 1.
    Limit(u32),
    /// As many as are due.
    Unlimited,
}

/// When the requests of a client are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// The next when a slot is free: closed loop.
    Closed,
    /// At equal distances; clients are shifted against each other.
    Constant,
    /// With exponential gaps.
    Poisson,
    /// With gaps of this shape, scaled so that their mean fits the rate.
    Shape(Dist),
}

/// A stretch of the run. Workers meet between phases; every request of a phase ends before the next begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// What the phase is called.
    pub name: String,
    /// What is done.
    pub work: Work,
    /// When it ends.
    pub stop: Stop,
    /// Whether its requests count in the result (all requests count in `whole_run`).
    pub recorded: bool,
}

/// What clients do in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Store every record of every key space that `spaces` asks for, once, as fast as it goes.
    Load(Load),
    /// Ask what a mix of operations says.
    Mix(Mix),
}

/// Populating the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Most requests outstanding on one connection.
    pub depth: u32,
    /// Also the values that append and prepend work on.
    pub pieces: bool,
    /// Also the values that incr and decr work on.
    pub counters: bool,
}

/// Which operations, on which records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Operations and their weights; weights are above 0 and need not sum to anything.
    pub ops: Vec<(Verb, f64)>,
    /// Which records.
    pub popularity: Popularity,
    /// Keys of each read, 1 or more.
    pub multiget: u32,
    /// After a miss, store the missed key after this delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_through_ns: Option<Nanos>,
    /// Ask the server not to answer writes.
    pub noreply: bool,
}

/// When a phase ends: at the first of the two that is reached; [`Work::Load`] ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// After this time: requests due later are not part of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Nanos>,
    /// After so many requests over all clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}
