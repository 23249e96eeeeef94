//! The Plan: everything that a run needs, as plain data that is saved, printed and sent to agents.
//!
//! A command line is one way to write a Plan. Nothing in it refers to this machine but for names of servers, of CPUs and
//! of files with certificates; two processes with equal Plans send the same requests.

pub mod address;
mod arrivals;
mod defaults;
pub mod memory;
mod protocol;
pub mod share;
pub mod timing;
pub mod validate;
mod window;

use serde::{Deserialize, Serialize};

pub use self::arrivals::Arrivals;
pub use self::protocol::{CodecOptions, Protocol, ProtocolRow, ServerFamily, WithCodec};
pub use self::window::{Lengths, Pool, Replication, Window};
use crate::dist::Dist;
use crate::protocol::text::BOGUS_WORD;
use crate::protocol::{MetaAsk, Verb};
use crate::time::Nanos;
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
    /// Which server holds a record and is asked for it.
    #[serde(default, skip_serializing_if = "Route::is_default")]
    pub route: Route,
    /// What is spoken there.
    pub protocol: Protocol,
    /// What carries it.
    #[serde(default, skip_serializing_if = "Transport::is_stream")]
    pub transport: Transport,
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
    /// Number of the database that every connection selects (RESP).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub database: u32,
    /// The command of [`Verb::Command`] (RESP), as `protocol::resp::template` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The records that all phases work on.
    pub data: Data,
    /// A run is complete although its load stored only a part of the records. A run whose load stored nothing at all is
    /// partial and ends with its load, whatever stands here.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_partial_load: bool,
    /// The clients.
    pub groups: Vec<Group>,
    /// What they do, one after the other.
    pub phases: Vec<Phase>,
}

impl Plan {
    /// What results call the requests of a verb: the word that is sent, where the plan has one of its own.
    pub fn name_of(&self, verb: Verb) -> &'static str {
        let bogus = self.sequence().is_some_and(|sequence| sequence.bogus);
        if bogus && verb == Verb::Set { BOGUS_WORD } else { verb.name() }
    }

    /// The sequence that all requests are of, if they are.
    pub fn sequence(&self) -> Option<&Sequence> {
        self.groups.iter().find_map(|group| group.crowd.as_ref()?.sequence.as_ref())
    }

    /// What its clients do with windows, if they do.
    pub fn window(&self) -> Option<&Window> {
        self.phases.iter().find_map(|phase| match &phase.work {
            Work::Window(window) => Some(window),
            _ => None,
        })
    }

    /// How many lanes each client has.
    pub fn lanes(&self) -> usize {
        match self.window() {
            Some(window) => window.pool.lanes(self.servers.len()),
            None => self.route.lanes(self.servers.len()),
        }
    }

    /// Whether the time of a recorded phase before this one is not over when this one begins, since a deletion divides
    /// it: so it is for the deletion, and for a recorded phase behind that. [`Stop::time_ns`] of such a phase counts from
    /// the beginning of the first part.
    pub fn runs_on(&self, phase: usize) -> bool {
        let deletes = |at: usize| matches!(self.phases[at].work, Work::Delete(_));
        let is_divided = |at: usize| deletes(at) && at > 0 && self.phases[at - 1].recorded;
        is_divided(phase) || (self.phases[phase].recorded && phase > 0 && is_divided(phase - 1))
    }
}

/// What carries requests and replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP, or a unix stream socket.
    #[default]
    Stream,
    /// UDP: one datagram for each request.
    Udp,
}

impl Transport {
    /// Whether it is [`Transport::Stream`].
    pub fn is_stream(&self) -> bool {
        *self == Transport::Stream
    }
}

/// Which server holds a record, and which one a request goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// All servers hold every record. A client has one connection and stays at one server; clients are dealt to the
    /// servers in turn.
    #[default]
    All,
    /// All servers hold every record. A client has a connection to each, and its requests go to one after the other.
    #[serde(rename = "roundrobin")]
    RoundRobin,
    /// A key lives on one server: the remainder of its hash, as libmemcached does by default.
    Modulo,
    /// A key lives on one server: libmemcached's MEMCACHED_BEHAVIOR_KETAMA.
    Ketama,
    /// A key lives on one server: libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, all servers having the same weight.
    KetamaWeighted,
    /// A key lives on one server: the slots of a Redis cluster, spread evenly.
    Crc16,
}

impl Route {
    /// What it is called on a command line and in a Plan.
    pub fn name(self) -> &'static str {
        match self {
            Route::All => "all",
            Route::RoundRobin => "roundrobin",
            Route::Modulo => "modulo",
            Route::Ketama => "ketama",
            Route::KetamaWeighted => "ketama-weighted",
            Route::Crc16 => "crc16",
        }
    }

    /// Whether each key lives on one server only.
    pub fn owns_keys(self) -> bool {
        matches!(self, Route::Modulo | Route::Ketama | Route::KetamaWeighted | Route::Crc16)
    }

    /// How many lanes each client has: one socket for each server that its requests may go to.
    pub fn lanes(self, servers: usize) -> usize {
        if self == Route::All { 1 } else { servers }
    }

    /// Whether it is what a Plan means that does not say.
    fn is_default(&self) -> bool {
        *self == Route::All
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The best that the kernel offers.
    Auto,
    /// epoll, edge-triggered.
    Epoll,
    /// io_uring, and epoll where the machine does not give it.
    Uring,
}

impl Backend {
    /// Its name in command lines and results.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::Epoll => "epoll",
            Backend::Uring => "uring",
        }
    }
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
    /// Look for a moment before sleeping: for one request at a time, whose reply is nearly there.
    Brief,
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
/// the same size holds their values; where it has incr or decr, a third; where it has hget or hset, a fourth; where it
/// has command, a fifth (see `workload::key`).
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
    /// How keys and values are made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub style: Style,
}

/// How keys and values are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    /// Keys.
    pub keys: KeyStyle,
    /// Values.
    pub values: ValueStyle,
    /// On RESP servers, a key of more than so many bytes and one is a hash, with so many last bytes as the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_bytes: Option<u32>,
}

/// How keys are made from their indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStyle {
    /// The prefix and the padded index; the length is drawn from the data's seed.
    #[default]
    Drawn,
    /// mutilate's: the prefix and the padded index; the length without the prefix is the value of `key_size` at the
    /// FNV-1a hash of the index, as a share of the greatest hash.
    Fnv,
}

/// How long values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueStyle {
    /// Always the same for one key, so that any process can check it.
    #[default]
    Stable,
    /// Drawn for every write, fractions cut off. Such values are not checked.
    Fresh,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
    /// Clients come and go; absent: all are there from the beginning to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// What else sets these clients apart.
    #[serde(rename = "manner", default, skip_serializing_if = "is_default")]
    pub policy: ClientPolicy,
}

/// What sets clients apart beside their pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientPolicy {
    /// So many clients, one after the other, talk to one server and are on one worker, at least 1; the servers are dealt
    /// to blocks of clients in turn.
    pub block: u32,
    /// What becomes of requests that could not be asked when they were due.
    pub late: Late,
    /// Between two requests of a client lies at least the mean gap of its arrivals.
    pub spaced: bool,
    /// Only the times of reads that found something, and of stores that stored, are recorded; everything is counted.
    pub successes_only: bool,
    /// The run ends when one of their connections is lost for good.
    #[serde(skip_serializing_if = "is_false")]
    pub whole: bool,
    /// They are in the process that the run is led from, and not on its agents.
    #[serde(skip_serializing_if = "is_false")]
    pub here: bool,
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
        }
    }
}

/// What becomes of requests that could not be asked when they were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Late {
    /// They are asked as soon as possible.
    #[default]
    Kept,
    /// A client that is more than 5 ms late when all its slots are taken leaves out what was due up to 4 ms ago. This is
    /// mutilate's rule; what is left out is counted as skipped, and is not among the requests.
    Skipped,
}

/// Clients that come, make their requests on a connection of their own, close it and go. `clients` of the group is how
/// many may be there at one time; in phases that load, so many are there all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowd {
    /// When they come.
    pub births: Births,
    /// Requests that each of them makes, at least 1.
    pub calls: u64,
    /// What they ask and when, as mcperf decides it; absent: as clients do that stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Sequence>,
}

/// When the clients of a crowd come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Births {
    /// As soon as there is room for another.
    Closed,
    /// At a rate, whether those before them have gone or not.
    Open {
        /// The process; not closed.
        arrivals: Arrivals,
        /// Clients per second of the whole group.
        rate: f64,
    },
    /// The first at the beginning, each other one such a gap after the one before, in seconds, from the first stream of
    /// the sequence.
    Drawn(Gap),
}

/// mcperf's requests: keys are counted and sizes drawn in the order in which they are asked, over all clients of one
/// worker. The key is the prefix and the number of the request, from 1 on, as 8 hexadecimal digits; the value is so many
/// zeros (digits), which for incr and decr is the number itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What is added to the request's number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u32,
    /// Stores have the word `xxx`, which no server knows, in place of `set`: mcperf's hidden method.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bogus: bool,
}

/// How a gap or a size is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gap {
    /// Always this.
    Fixed(f64),
    /// Between the first, which is included, and the second.
    Uniform(f64, f64),
    /// With this mean.
    Exponential(f64),
    /// This, then 1 more each time.
    Rising(f64),
}

/// Most requests that a client has outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// At most so many, at least 1.
    Limit(u32),
    /// As many as are due, up to the client's share of what memory allows ([`memory::depth_of`]).
    Unlimited,
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
    /// Set and get objects of a window that moves on (memaslap).
    Window(Window),
    /// Ask what a recording says, as fast as the arrivals allow.
    Replay(Replay),
    /// Delete some of the plain records, as fast as it goes.
    Delete(Delete),
    /// Ask nothing; connections stay open.
    Pause(Pause),
}

/// Asking again what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// File with the requests, read where the run takes place. Every line is asked once, by whichever client of its
    /// worker is free; lines are dealt to the workers in turn.
    pub path: String,
    /// How its lines are to be read: the number of mutilate's option `--twitter_trace`, 0 to 2.
    pub format: u32,
    /// After a miss, store the missed key after this delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_through_ns: Option<Nanos>,
}

/// Deleting records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// Share of the records of each server that are deleted, above 0 and at most 1; which ones, the seed decides.
    pub share: f64,
    /// Most requests outstanding on one connection.
    pub depth: u32,
}

/// Waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Until so long after the beginning of the run.
    pub until_ns: Nanos,
}

/// Populating the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Most requests outstanding on one connection.
    pub depth: u32,
    /// Also the values that append and prepend work on.
    pub pieces: bool,
    /// Also the values that incr and decr work on.
    pub counters: bool,
    /// Also the hashes that hget and hset work on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hashes: bool,
    /// Also a plain value under each key of [`Verb::Command`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub commands: bool,
    /// Leave out the plain records, which are stored otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_plain: bool,
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
    /// Keys of each mset, 1 or more.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiset: u32,
    /// What reads and deletes ask beside, which only the meta protocol can.
    #[serde(default, skip_serializing_if = "MetaAsk::is_nothing")]
    pub meta: MetaAsk,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(choice: &bool) -> bool {
    !choice
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// When a phase ends: at the first of the two that is reached. [`Work::Load`], [`Work::Delete`] and [`Work::Pause`] end by
/// themselves, [`Work::Replay`] also when everything was asked. Time runs on where a deletion divides a recorded phase
/// ([`Plan::runs_on`]).
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
