//! The options of pummel's own command line, as the words of the user; `native` makes a Plan of them.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use pummel_logic::dist;
use pummel_logic::plan::address::RESP_PORT;
use pummel_logic::plan::{
    Arrivals, Burst, DatasetOrder, Depth, Fill, Goal, KeyChurn, Protocol, Retry, RetryKind, Route, SlotRange,
    Tracking, TransmitSampling, ValueClass,
};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::resp::reply_shape::ReplyShape;
use pummel_logic::time::Nanos;
use pummel_report::plan_options::default_of;

use crate::metrics_options::MetricsArgs;
#[cfg(feature = "agents")]
use crate::native::agent_options::{AgentsArgs, MeasuringArgs};
use crate::native::cluster_options::ClusterArgs;
use crate::native::connection_steps::{self, ConnectionStep};
use crate::native::phase_file::{PhaseFile, phase_file};
use crate::native::result_options::{ResultArgs, ResultFileArgs};
use crate::native::trace_args::TraceArgs;
use crate::native::typed_rate::{self, Stage, TypedRate};
use crate::outputs::ReportFormat;
use crate::screen_options::ScreenArgs;
use crate::values;
use crate::values::nearest::hint;
use crate::values::server_uri;
use crate::values::{
    Measure, Operation, UnreadDist, UnreadPopularity, UntilEviction, ValueError, WarmUpTime,
};

/// Several values that one option gives at once.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(pub Vec<T>);

/// Options of `pummel run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = run_after_help(), after_long_help = run_after_help())]
pub struct RunArgs {
    /// Which server, and how to speak to it.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How much load, and when it ends.
    #[command(flatten)]
    pub pace: PaceArgs,
    /// What is asked.
    #[command(flatten)]
    pub mix: MixArgs,
    /// The trace that is replayed.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// What is stored.
    #[command(flatten)]
    pub data: DataArgs,
    /// Threads, clocks, the kernel.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Options of sockets.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// Which machines send it.
    #[cfg(feature = "agents")]
    #[command(flatten)]
    pub agents: AgentsArgs,
    /// Clients that measure beside those that load.
    #[cfg(feature = "agents")]
    #[command(flatten)]
    pub measuring: MeasuringArgs,
    /// What is written.
    #[command(flatten)]
    pub output: OutputArgs,
    /// A saved plan in place of options.
    #[command(flatten)]
    pub saved: SavedArgs,
}

/// Options of `pummel load`.
#[derive(Args, Clone, Debug)]
#[command(after_help = LOAD_EXAMPLES, after_long_help = LOAD_EXAMPLES)]
pub struct LoadArgs {
    /// Which server, and how to speak to it.
    #[command(flatten)]
    pub target: TargetArgs,
    /// How much at a time.
    #[command(flatten)]
    pub pace: LoadPaceArgs,
    /// What is stored.
    #[command(flatten)]
    pub data: DataArgs,
    /// Threads, clocks, the kernel.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Options of sockets.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// Which machines send it.
    #[cfg(feature = "agents")]
    #[command(flatten)]
    pub agents: AgentsArgs,
    /// What is written.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options with servers among them.
pub trait Targeted {
    /// The servers, to be changed.
    fn target_mut(&mut self) -> &mut TargetArgs;
}

impl Targeted for RunArgs {
    fn target_mut(&mut self) -> &mut TargetArgs {
        &mut self.target
    }
}

impl Targeted for LoadArgs {
    fn target_mut(&mut self) -> &mut TargetArgs {
        &mut self.target
    }
}

fn run_after_help() -> String {
    format!("Distributions (DIST):\n{}\n{RUN_EXAMPLES}", dist::FORMS)
}

const RUN_EXAMPLES: &str = "\
Units:
  counts, sizes, rates     k m g are decimal (10k = 10,000),
                           KiB MiB GiB are powers of two
  times                    us ms s m h; a bare number is seconds

Examples:
  10 s, 50 connections, as fast as the server answers:
    pummel run -s 127.0.0.1
  20,000 requests a second for a minute, at random moments:
    pummel run -s cache1,cache2 --rate 20k -t 1m
  The same, with exit status 3 when the 99th percentile is above 1 ms:
    pummel run -s cache1,cache2 --rate 20k -t 1m --goal p99:1ms
  Once the load has settled, until the 99th percentile is known to 2 %:
    pummel run -s cache1,cache2 --rate 20k --warmup auto --until p99:2%
  A million requests, 16 outstanding on each connection:
    pummel run -s /run/memcached.sock -n 1M -d 16
  Sizes and popularity as in production:
    pummel run -s [::1] --popularity zipf:0.99 --value-size etc-value
  Encrypted, with your own certificate authority:
    pummel run -s cache1 --tls --tls-ca ca.pem
  Every value checked, the result as JSON:
    pummel run -s cache1 --verify --json result.json
  From four machines, each running `pummel agent`, measured from this one:
    pummel run -s cache1 --agents m1,m2,m3,m4 -c 400 --rate 1m --measure-connections 4
  Redis: with plain keys, with hashes, and with any command:
    pummel run -s redis1:6379
    pummel run -s redis1 --protocol resp3 --mix hget:9,hset:1
    pummel run -s redis1 --protocol resp3 --command 'LPUSH __key__ __value__'

Exit status:
  0    complete
  1    partial, or failed (more than half of the requests were errors or timeouts); the report
       says why, or standard error where nothing was measured
  2    wrong usage; nothing was sent
  3    a value was wrong, a goal was missed or undecided, --until was not reached, or the run had
       a fault that --fail-on names (or that could not be determined)
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written";

const LOAD_EXAMPLES: &str = "\
The options for records are those of `pummel run`, whose help explains distributions and units. A run with the same \
--records, --key-size, --value-size, --key-prefix and --data-seed finds what was loaded here.

Examples:
  pummel load -s 127.0.0.1 --records 1m --value-size etc-value
  pummel run -s 127.0.0.1 --records 1m --value-size etc-value --no-load

Exit status:
  0    complete
  1    failed or partial; the report says why, or standard error where nothing was measured
  2    wrong usage; nothing was sent
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written";

/// Which server, and how to speak to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Server")]
pub struct TargetArgs {
    /// HOST, HOST:PORT, [IPV6]:PORT or /unix/path; several with commas
    ///
    /// May be repeated. A server may also be a URI: redis://[USER@]HOST[:PORT][/DATABASE], rediss:// (TLS), memcached://,
    /// unix://. The port is 11211 unless given, or 6379 with
    /// --protocol resp2 or resp3 and in URIs of Redis. Default: the environment variable MEMCACHED_SERVERS, without URIs
    #[arg(short, long, value_name = "SERVER", value_parser = servers, allow_hyphen_values = true)]
    pub server: Vec<List<String>>,
    /// Servers, as in --server, which is then left out
    #[arg(value_name = "SERVER", value_parser = bare_server)]
    pub bare_server: Vec<List<String>>,
    /// Which of several servers holds a record and gets the requests for it. With any route but `all`, each connection of
    /// --connections is a connection to every server
    #[arg(long, value_enum, default_value = default_of("--route"))]
    pub route: RouteName,
    /// The nodes of a cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The protocol; `auto` detects it before the load, on a separate connection to each server
    #[arg(long, value_parser = protocols(), default_value = TypedProtocol::AUTO)]
    pub protocol: TypedProtocol,
    /// UDP instead of TCP, for memcached's text protocol: each request is one datagram of at most 1,400 bytes. Records are
    /// loaded over TCP if the server listens there too. A request whose reply is lost ends at --timeout
    #[arg(long)]
    pub udp: bool,
    /// Encrypt every connection with TLS 1.2 or 1.3. Without --tls-ca the server's certificate must come from an authority
    /// that this system trusts
    #[arg(long)]
    pub tls: bool,
    /// Authorities that may have issued the server's certificate, instead of the system's (PEM). For a self-signed
    /// certificate, the certificate itself
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<String>,
    /// Client certificate, followed by its intermediate certificates (PEM); with --tls-key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<String>,
    /// Private key of the client certificate, unencrypted (PEM); with --tls-cert
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<String>,
    /// Name or IP address that the servers' certificates must carry. Default: the host of each --server
    #[arg(long, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Accept any certificate: the server's identity is not checked, and --tls-ca has no effect
    #[arg(long)]
    pub tls_insecure: bool,
    /// User to log in as: by SASL PLAIN (binary), by the first set, as memcached's -Y expects it (text, meta), or by AUTH
    /// (RESP). The password comes from --password-file or PUMMEL_PASSWORD
    #[arg(long)]
    pub user: Option<String>,
    /// File whose first line is the user's password
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Database that every connection selects (RESP)
    #[arg(long, value_name = "N", default_value = default_of("--database"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub database: u32,
    /// Let the server tell every connection of changed keys, as caches in clients do (CLIENT TRACKING ON; RESP3): of those that it
    /// has read, or of all. What comes is counted by name
    #[arg(long, value_name = "OF", num_args = 0..=1, require_equals = true, default_missing_value = "keys", value_parser = values::tracking)]
    pub tracking: Option<Tracking>,
    /// How long a request may take from the moment a connection could send it, and how long a connection may take to open
    #[arg(long, value_name = "TIME", default_value = default_of("--timeout"), value_parser = values::time, allow_hyphen_values = true)]
    pub timeout: Nanos,
    /// Reopen connections that the server closed, and continue. One that the server refused is tried again after 10 ms to 1 s.
    /// Where no --time limits it (loading, --requests), a server that
    /// answers nothing for 10 timeouts (at least 10 s, at most 60 s) is given up
    #[arg(long)]
    pub reconnect: bool,
    /// Send a request again after these errors, in the same slot, after 10 ms, then twice as long each time up to 500 ms: `loading`,
    /// `busy`, `tryagain`, `clusterdown`, `masterdown`, `oom`, `readonly` (the first word of the reply, of any case; `oom` and `busy` of
    /// memcached too), `lost` (connections) and `timeout`, or `all`. The last two repeat only what does no harm if it is done twice: reads,
    /// and sets without a condition; `lost` includes --reconnect. A request that is sent again is one request, with its first due time
    #[arg(long, value_name = "KINDS", value_parser = retry_kinds, allow_hyphen_values = true)]
    pub retry: Option<List<RetryKind>>,
    /// How long after a request was due it is sent again, whatever --timeout is
    #[arg(long, value_name = "TIME", default_value = default_of("--retry-for"), value_parser = values::time, requires = "retry", allow_hyphen_values = true)]
    pub retry_for: Nanos,
}

/// Reads kinds of errors, in the order of the plan, each once.
fn retry_kinds(text: &str) -> Result<List<RetryKind>, ValueError> {
    const ALL: &str = "all";
    let names = || RetryKind::asked_for().map(RetryKind::name).chain([ALL]);
    let accepted = |name: &str| {
        let all = names().collect::<Vec<_>>().join(", ");
        ValueError(format!("expected {all}{}", hint(name, names())))
    };
    let typed: Vec<&str> = text.split(',').collect();
    if let Some(unknown) = typed.iter().find(|typed| !names().any(|name| name == **typed)) {
        return Err(accepted(unknown));
    }
    let is_typed = |kind: &RetryKind| typed.iter().any(|name| *name == ALL || *name == kind.name());
    Ok(List(RetryKind::asked_for().filter(is_typed).collect()))
}

/// A protocol, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedProtocol {
    /// That which the servers are found to speak.
    Auto,
    /// This one.
    Named(Protocol),
}

impl TargetArgs {
    /// The errors after which requests are sent again; `None` where there are none.
    pub fn retry(&self) -> Option<Retry> {
        self.retry.as_ref().map(|kinds| Retry { kinds: kinds.0.clone(), for_ns: self.retry_for })
    }

    /// Whether connections that are lost are opened again.
    pub fn reconnects(&self) -> bool {
        let kinds = self.retry.iter().flat_map(|kinds| &kinds.0);
        // A cluster's connections come and go with its nodes.
        self.reconnect || self.cluster.cluster || kinds.into_iter().any(|kind| *kind == RetryKind::Lost)
    }

    /// The protocol of a command line whose servers were not asked: memcached's text protocol, or RESP2 where a database is
    /// selected or every server listens on the port of RESP.
    pub fn assumed_protocol(&self) -> Protocol {
        let on_resp_port = |server: &str| server.ends_with(&format!(":{RESP_PORT}"));
        match self.protocol {
            TypedProtocol::Named(protocol) => protocol,
            TypedProtocol::Auto if self.udp => Protocol::Text,
            TypedProtocol::Auto if self.tracking.is_some() => Protocol::Resp3,
            TypedProtocol::Auto if self.database > 0 => Protocol::Resp2,
            TypedProtocol::Auto => {
                let mut servers =
                    self.server.iter().flat_map(|list| &list.0).flat_map(|list| list.split(','));
                let all = !self.server.is_empty() && servers.all(on_resp_port);
                if all { Protocol::Resp2 } else { Protocol::Text }
            }
        }
    }
}

impl TypedProtocol {
    /// The word for the protocol that the servers are found to speak.
    pub const AUTO: &'static str = "auto";
}

/// A route, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RouteName {
    /// Every server holds all records; connections are assigned to the servers in turn
    All,
    /// Every server holds all records; each connection sends its requests to the servers in turn
    #[value(name = "roundrobin")]
    RoundRobin,
    /// Each key lives on one server: libmemcached's default
    Modulo,
    /// Each key lives on one server: libmemcached's MEMCACHED_BEHAVIOR_KETAMA (one-at-a-time, 100 points per server)
    Ketama,
    /// Each key lives on one server: MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED with equal weights (MD5, 160 points per server)
    KetamaWeighted,
    /// Each key lives on one server: the 16,384 slots of a Redis cluster, with hash tags, spread evenly
    Crc16,
}

impl RouteName {
    /// The route in a plan.
    pub fn route(self) -> Route {
        match self {
            RouteName::All => Route::All,
            RouteName::RoundRobin => Route::RoundRobin,
            RouteName::Modulo => Route::Modulo,
            RouteName::Ketama => Route::Ketama,
            RouteName::KetamaWeighted => Route::KetamaWeighted,
            RouteName::Crc16 => Route::Crc16,
        }
    }
}

/// How much load, and when it ends.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub struct PaceArgs {
    /// How long to measure [default: 10s]
    ///
    /// With --requests the measurement ends at whichever is reached first, and without --time at --requests alone
    #[arg(short, long, value_name = "TIME", value_parser = values::time, allow_hyphen_values = true)]
    pub time: Option<Nanos>,
    /// How many requests to measure
    ///
    /// They are counted over all connections together (memtier_benchmark counts them for each). Requests that follow from replies
    /// are extra: the gets before a cas, the sets of --read-through
    #[arg(short = 'n', long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub requests: Option<u64>,
    /// How long to run before the measurement begins. `auto` waits until the load has settled, judged by its median response, rate
    /// and hit share over the last two blocks of --time each (2 s to 30 s), but no longer than MAX. Default of MAX: six times
    /// --time, and at least 1m
    #[arg(long, value_name = "TIME|auto[:MAX]", default_value = "0s", value_parser = values::warm_up, allow_hyphen_values = true)]
    pub warmup: WarmUpTime,
    /// How long to run before the measurement begins: until a server, by its own statistics, has evicted its first record since
    /// the run began, but no longer than MAX. Default of MAX: six times --time, and at least 1m
    #[arg(long, value_name = "evictions[:MAX]", value_parser = values::warm_up_until, conflicts_with = "warmup",
          allow_hyphen_values = true)]
    pub warmup_until: Option<UntilEviction>,
    /// Measure until the 95 % interval of this quantile of the response time is this narrow, such as p99:2%, instead of for --time;
    /// exit with status 3 if --max-time ends first
    #[arg(long, value_name = "QUANTILE:PERCENT", value_parser = values::quantile_within, conflicts_with_all = ["time", "requests"],
          allow_hyphen_values = true)]
    pub until: Option<(f64, f64)>,
    /// Shortest measurement; with --until
    #[arg(long, value_name = "TIME", default_value = default_of("--min-time"), value_parser = values::time_above_zero, requires = "until",
          allow_hyphen_values = true)]
    pub min_time: Nanos,
    /// Longest measurement; with --until. Choose it well above the expected time: if it ends many runs, the others are the ones with
    /// calm tails
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::time_above_zero, requires = "until",
          allow_hyphen_values = true)]
    pub max_time: Nanos,
    /// Threads
    #[arg(short = 'T', long, value_name = "N", default_value = default_of("--threads"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub threads: u32,
    /// Connections, over all servers and threads
    ///
    /// --route says to which servers they are
    #[arg(short, long, value_name = "N", default_value = default_of("--connections"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub connections: u32,
    /// Most requests outstanding per connection
    ///
    /// A number, or `unlimited` (only with --rate)
    #[arg(short, long, value_name = "N", default_value = default_of("--depth"), value_parser = depth, allow_hyphen_values = true)]
    pub depth: Depth,
    /// Requests per connection that are sent together, each time when all of those before are answered
    ///
    /// A server can read and answer the N requests of such a piece in one turn; with --depth N each answer is followed by one new request,
    /// at once. A request is due when the last answer of the batch before has come; in open loop those that are due together are sent
    /// together, up to N
    #[arg(long, value_name = "N", value_parser = values::count_cut, allow_hyphen_values = true, conflicts_with = "depth")]
    pub batch: Option<u32>,
    /// Requests per second: open loop; without it closed loop
    ///
    /// It is the rate of all connections together. In a closed loop each connection sends its next request as soon as the last one
    /// is answered. 1x, 0.5x and so on are multiples of the rate that the source of --workload had. A rate may
    /// change during the measurement: FROM..TO (a straight line), sine:MEAN,AMPLITUDE,PERIOD[,START], day:MEAN[,PERIOD] (the 24
    /// hours of Facebook's pool ETC) or file:PATH (lines of `seconds,rate`)
    #[arg(long, value_name = "RATE", value_parser = typed_rate::rate, allow_hyphen_values = true)]
    pub rate: Option<TypedRate>,
    /// Stages of the rate, in order, starting from --rate: TIME:RATE goes there in a straight line, TIME alone stays, 0s:RATE
    /// jumps. They replace --time
    #[arg(long, value_name = "TIME[:RATE],...", value_parser = stages, conflicts_with_all = ["time", "until"], requires = "rate",
          allow_hyphen_values = true)]
    pub stage: Vec<List<Stage>>,
    /// Steps of the number of connections, in order: CONNECTIONS:TIME,...
    ///
    /// The last step may have no time: it lasts until the end of --time. Otherwise the steps replace --time. --connections is the most
    /// of all steps. New connections of a step are opened shortly before it; those that a step has no use for finish what they have
    /// under way and are closed. The report has separate figures for each step
    #[arg(long, value_name = "N:TIME,...,N", value_parser = connection_steps,
          conflicts_with_all = ["connections", "stage", "phases"], allow_hyphen_values = true)]
    pub stage_connections: Option<List<ConnectionStep>>,
    /// Phases that follow each other without a gap, from a TOML file of [[phase]] tables with name, time and, where they differ from
    /// the command line, rate (20k or 5k..60k), mix, popularity, churn and events. They replace --time; the report has separate
    /// figures for each
    #[arg(long, value_name = "FILE", value_parser = phase_file, conflicts_with_all = ["time", "until", "stage", "requests"])]
    pub phases: Option<PhaseFile>,
    /// Bursts that keep the mean of the rate. FACTOR,ON,OFF multiplies it by FACTOR for periods of mean ON, separated by periods of
    /// mean OFF; hurst:H,ON[,SOURCES] bursts on all time scales, as the sum of SOURCES (200) that switch on and off, on for mean ON
    #[arg(long, value_name = "BURST", value_parser = typed_rate::burst, allow_hyphen_values = true)]
    pub burst: Option<Burst>,
    /// When requests are due in an open loop; `help` names the processes.
    #[arg(long, value_name = "ARRIVALS", value_parser = arrivals, allow_hyphen_values = true, help = arrivals_help())]
    pub arrivals: Option<TypedArrivals>,
    /// Clients that come and go, per second: each opens a connection, makes --calls-per-connection requests in a closed loop and
    /// closes it, or one to each node that it needs with --cluster. --arrivals says when they come; --connections is the most at one time
    #[arg(long, value_name = "RATE", value_parser = values::client_rate, allow_hyphen_values = true)]
    pub conn_rate: Option<f64>,
    /// Requests of each client that comes and goes. Without --conn-rate, the next client comes as soon as one has gone. Default
    /// with --conn-rate: 1
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub calls_per_connection: Option<u64>,
    /// Seed of the arrivals and of the choice of operations and keys. Default: random; the report shows it
    #[arg(long, value_name = "N", value_parser = values::seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// Shortest time between two lines of progress, and between two intervals of the result
    #[arg(long, value_name = "TIME", default_value = default_of("--interval"), value_parser = values::time, allow_hyphen_values = true)]
    pub interval: Nanos,
    /// Exit with status 3 when this is missed, such as p99:1ms
    ///
    /// A goal is missed when this quantile of the response time is above the limit; may be repeated
    #[arg(long, value_name = "GOAL", value_parser = goals, allow_hyphen_values = true)]
    pub goal: Vec<List<Goal>>,
}

impl PaceArgs {
    /// The most requests that a connection has outstanding, or that it sends together.
    pub fn depth(&self) -> Depth {
        self.batch.map_or(self.depth, Depth::Batch)
    }
}

/// How much is stored at a time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub struct LoadPaceArgs {
    /// Store the items of this file instead of records: memcached's `lru_crawler metadump all`, or CSV with the header
    /// key,size,ttl; plain, .gz or .zst. Keys, lengths and remaining times to live are kept; contents are pummel's own. May be
    /// repeated
    #[arg(long, value_name = "FILE")]
    pub fill: Vec<String>,
    /// Threads
    #[arg(short = 'T', long, value_name = "N", default_value = default_of("--threads"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub threads: u32,
    /// Connections, over all servers and threads
    ///
    /// --route says to which servers they are
    #[arg(short, long, value_name = "N", default_value = default_of("--connections"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub connections: u32,
    /// Most requests outstanding per connection
    #[arg(short, long, value_name = "N", default_value = "64", value_parser = values::count_cut, allow_hyphen_values = true)]
    pub depth: u32,
    /// Operations that will use the records
    ///
    /// append and prepend, incr and decr, hget and hset, and command work on separate
    /// records, which are stored only if one of them is named here
    #[arg(long, value_name = "OP,...", default_value = "get", value_parser = weights, allow_hyphen_values = true)]
    pub mix: List<(Verb, f64)>,
    /// Shortest time between two lines of progress, and between two intervals of the result
    #[arg(long, value_name = "TIME", default_value = default_of("--interval"), value_parser = values::time, allow_hyphen_values = true)]
    pub interval: Nanos,
}

/// What is asked.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub struct MixArgs {
    /// Operations and their weights [default: get:9,set:1]
    ///
    /// get, gets, gat, gats, set, add, replace, append, prepend, cas, incr, decr, delete, touch, version. RESP servers also have
    /// hget, hset (each hash has one field, called field), mset and the commands of --command by their names, but no gets, gats, prepend
    /// or cas. With --command the default is each command with weight 1
    #[arg(long, value_name = "OP:WEIGHT,...", value_parser = weights_with_commands, allow_hyphen_values = true)]
    pub mix: Option<List<(Operation, f64)>>,
    /// How a client chooses its next operation: drawn (by weight at random, the default), or turns (as many of each as its weight, in
    /// the order of --mix)
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub mix_order: Option<MixOrder>,
    /// A command of RESP servers with places that each request fills in, such as 'ZADD __key__ __number__ __value__'. May be repeated;
    /// each is an operation of its own, called NAME, or else by its first word in small letters, and has a weight in --mix, where none
    /// means 1
    ///
    /// __key__ is a key chosen by --popularity, which no other operation but commands uses, and __key2__ to __key9__ are further ones;
    /// __number__ is the number of the record, from 0, and __number:12__ has at least 12 digits; __value__ is the value that loading
    /// would store there, and __value:DIST__ are bytes of another size; __int:1-99__ is an integer of this range, __int:01-99__ one of
    /// two digits and __int:DIST__ one of a distribution, drawn anew at each place or, as __int.a:1-99__, once for the name; __client__ is the number of the client, __seq__ that of the request among its
    /// client's, and __now_ms__ the wall clock. \__x__ stands for the word itself. Quoting works as in redis-cli. The keys do not
    /// exist at first, unless --load is given, which stores __value__ there by SET
    ///
    /// A ; between blanks separates the commands of a sequence, which is one request; ;; also waits for their replies:
    /// 'WATCH __key__ ; GET __key__ ;; MULTI ; SET __key__ __value__ ; EXEC'
    #[arg(long, value_name = "[NAME=]COMMAND")]
    pub command: Vec<String>,
    /// What replies to the command NAME are to be: ok, int or nonempty (others count as misses), nil (others count as errors), or any
    /// (no hits and no misses). May be repeated
    ///
    /// By default the command decides, for about 190 known ones. nonempty counts null, an empty string and an empty list as misses
    #[arg(long, value_name = "NAME=SHAPE", value_parser = values::expected_shape, allow_hyphen_values = true)]
    pub command_expect: Vec<(Operation, ReplyShape)>,
    /// Which records are asked for: uniform, zipf:EXPONENT (0 to 5), hot:KEYS,REQUESTS (share of the records, share of
    /// the requests), ranks:R=SHARE,... (share of the requests that the R most popular records get; R is a number or a share such
    /// as 1%), buckets:RECORDS@WEIGHT,... (this many records with this weight together), cachelib:FILE (the buckets of CacheLib's
    /// pop.json), latest:EXPONENT (zipf from the newest record back; adds store new ones), normal:MEDIAN,DEVIATION (numbers of
    /// records), ycsb (the law that YCSB calls zipfian), sequential (all clients together), sequential-each (each client by itself)
    /// or sequential-shares (each client through its share of the records)
    #[arg(long, value_name = "POPULARITY", default_value = default_of("--popularity"), value_parser = popularity, allow_hyphen_values = true)]
    pub popularity: UnreadPopularity,
    /// Keys of each read
    #[arg(long, value_name = "N", default_value = default_of("--multiget"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub multiget: u32,
    /// Share of the keys read that are never asked for again. With --read-through they are stored, and evict others
    #[arg(long, value_name = "SHARE", default_value = default_of("--fresh"), hide_default_value = true, value_parser = values::fraction, allow_negative_numbers = true)]
    pub fresh: f64,
    /// Share of the keys read that do not exist and are never stored. With all records loaded, the other keys are the hits
    #[arg(long, value_name = "SHARE", default_value = default_of("--absent"), hide_default_value = true, value_parser = values::fraction, allow_negative_numbers = true)]
    pub absent: f64,
    /// Share of the keys read that are found, with all records stored: short for --absent 1-SHARE, or with --read-through for
    /// --fresh 1-SHARE, whose fills evict other records if the server is too small
    #[arg(long, value_name = "SHARE", value_parser = values::fraction, allow_negative_numbers = true)]
    pub hit_ratio: Option<f64>,
    /// Give records new keys over time, which were never stored; a record keeps its popularity. LIFE is how long it keeps a key: a
    /// time or a DIST of times (needs --rate), requests:LIFE in requests of all connections, share:SHARE for the share of a record
    /// that each request replaces, default (70 % live 15 minutes, 30 % a day), or none
    #[arg(long, value_name = "LIFE", value_parser = typed_churn, allow_hyphen_values = true)]
    pub churn: Option<TypedChurn>,
    /// Share of the gets whose key the same connection sets after the reply. The report has both, and the times of the pairs
    #[arg(long, value_name = "SHARE", default_value = default_of("--read-modify-write"), hide_default_value = true, value_parser = values::fraction, allow_negative_numbers = true)]
    pub read_modify_write: f64,
    /// Let each add of --mix store a new record, which is on no server yet. Implied by --popularity latest:EXPONENT
    #[arg(long)]
    pub insert: bool,
    /// What replaces the scans of --workload: one read of 1 to 100 consecutive records
    #[arg(long, value_name = "HOW", value_enum, requires = "workload")]
    pub scan_as: Option<ScanAs>,
    /// Keys of each mset (RESP)
    #[arg(long, value_name = "N", default_value = default_of("--multiset"), value_parser = values::count_cut, allow_hyphen_values = true)]
    pub multiset: u32,
    /// Let a read that finds nothing create an empty item with this expiry (flag N of meta): the client that is told to renew it
    /// stores the value, and the others wait. With --protocol meta
    #[arg(long, value_name = "TTL", value_parser = values::whole_seconds, allow_hyphen_values = true)]
    pub vivify: Option<u32>,
    /// Let a read of an item that expires in less than this time win the right to renew it (flag R of meta), and renew it. With
    /// --protocol meta; only useful with --ttl
    #[arg(long, value_name = "TIME", value_parser = values::whole_seconds, allow_hyphen_values = true)]
    pub recache: Option<u32>,
    /// Let deletes only mark items as stale, with this expiry or 0 for none (flags I and T of meta): one read wins the right to
    /// renew the item, and renews it. With --protocol meta
    #[arg(long, value_name = "TTL", value_parser = values::whole_seconds, allow_hyphen_values = true)]
    pub stale: Option<u32>,
    /// With every read, also ask for the remaining time to live, the size, whether the item was read before, and when (flags t s h
    /// l of meta). With --protocol meta
    #[arg(long)]
    pub meta_details: bool,
    /// Store each missed key, at once or after a delay that stands for the database: a time, or a DIST of times such as
    /// exponential:5ms
    #[arg(long, value_name = "DELAY", num_args = 0..=1, require_equals = true, default_missing_value = "0",
          value_parser = values::dist_of_waits)]
    pub read_through: Option<UnreadDist>,
    /// How --read-through stores a key: set, or add, which does not replace what another client has stored in the meantime.
    /// Default: set
    #[arg(long, value_name = "HOW", default_value = default_of("--fill"), hide_default_value = true, value_parser = fill)]
    pub fill: Fill,
    /// Ask the server not to answer writes
    #[arg(long)]
    pub noreply: bool,
    /// The most records of a scan, where the workload scans.
    #[arg(skip)]
    pub scan: Option<u32>,
    /// Check all values that come back, or this share of them. A wrong value makes the exit status 3
    #[arg(long, value_name = "FRACTION", num_args = 0..=1, default_missing_value = "1", value_parser = values::fraction, allow_negative_numbers = true)]
    pub verify: Option<f64>,
    /// Behind the measurement, read back every key that the run stored, and count those without their newest acknowledged write.
    /// With `=strict`, one that is lost makes the exit status 3. Needs --verify
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "count", value_parser = ["count", "strict"])]
    pub audit: Option<String>,
    /// Time from the end of the measurement to --audit, in which replicas take over
    #[arg(long, value_name = "TIME", default_value = default_of("--settle"), value_parser = values::time)]
    pub settle: Nanos,
    /// Store every record before the load begins (the default)
    #[arg(long, overrides_with = "no_load")]
    pub load: bool,
    /// Do not store the records first: the run works with what the server already holds
    #[arg(long, overrides_with = "load")]
    pub no_load: bool,
}

/// What is stored.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Records")]
pub struct DataArgs {
    /// Records, sizes, expiry, popularity and mix of a named workload, or of a profile in a file. Options on the command line
    /// override it. `pummel workloads` lists the names
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Number of records, up to 2^40
    #[arg(long, value_name = "N", default_value = default_of("--records"), value_parser = values::count, allow_hyphen_values = true)]
    pub records: u64,
    /// Length of a key in bytes, including the prefix, up to 250; a key always has the same length
    #[arg(long, value_name = "DIST", default_value = default_of("--key-size"), value_parser = bytes, allow_hyphen_values = true)]
    pub key_size: UnreadDist,
    /// Size of the values in bytes: a number or a distribution
    ///
    /// At most 1GiB
    #[arg(long, value_name = "DIST", default_value = default_of("--value-size"), value_parser = bytes, allow_hyphen_values = true)]
    pub value_size: UnreadDist,
    /// The most popular records with lengths of their own, which only a workload names.
    #[arg(skip)]
    pub value_classes: Vec<ValueClass>,
    /// Make values that lz4 and gzip shrink to about 1/RATIO, from 1 to 10; at 1 values do not compress, and every write has new bytes
    ///
    /// About this ratio holds for values of 4KiB and more; smaller ones shrink less
    #[arg(long, value_name = "RATIO", default_value = default_of("--value-compress"), hide_default_value = true, value_parser = values::ratio, allow_hyphen_values = true)]
    pub value_compress: f64,
    /// Prefix of every key. Default: none
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub key_prefix: String,
    /// Give N neighbouring records one hash tag, and so one slot of a cluster: the key of record i is PREFIX{i/N}i. With --cluster and
    /// --route crc16 all keys of a request have one tag, so that it is one command to one node
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub key_tag: Option<u64>,
    /// Use keys of these slots of a cluster alone, such as 0-5460,9000: so many as --records says, the first ones that lie there. Only
    /// with --cluster and --route crc16
    #[arg(long, value_name = "RANGES", value_parser = slots, allow_hyphen_values = true)]
    pub slots: Vec<List<SlotRange>>,
    /// Expiry of items that are stored or touched: seconds or a time, 0 for none, up to 30 days
    #[arg(long, value_name = "DIST", default_value = default_of("--ttl"), value_parser = values::dist_of_times, allow_hyphen_values = true)]
    pub ttl: UnreadDist,
    /// Vary each expiry by up to this much, such as 10% (whole percents), so that items stored together do not expire together
    #[arg(long, value_name = "PERCENT", default_value = default_of("--ttl-jitter"), hide_default_value = true, value_parser = values::percent, allow_hyphen_values = true)]
    pub ttl_jitter: u32,
    /// Store with this command under the keys of --command, in place of a plain value, such as 'RPUSH __key__ __value__' (RESP)
    ///
    /// It has the places of --command with one record, __key__. Its rows are called load
    #[arg(long, value_name = "COMMAND")]
    pub load_command: Option<String>,
    /// Times that --load-command is sent for each record, up to 10000 [default: 1]
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub load_per_record: Option<u64>,
    /// Fill the places __field:NAME__ of --command and --load-command from this file: columns by their names (.csv, .tsv, .jsonl)
    ///
    /// All fields of a request are of one row. The file may be packed by gzip or zstd (.csv.gz), and larger than memory. A load stores
    /// record n with row n
    #[arg(long, value_name = "FILE")]
    pub dataset: Option<String>,
    /// Order in which the requests of a client take the rows of --dataset [default: file]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub dataset_order: Option<DatasetOrderName>,
    /// Load this Lua script on every connection, and put its name in place of __script__ in --command: 'EVALSHA __script__ 1 __key__'
    ///
    /// A server that has lost it (NOSCRIPT) loads it again, and gets the request again
    #[arg(long, value_name = "FILE")]
    pub script: Option<String>,
    /// Call a run complete even if only some of the records could be stored. If none could be stored, the run is still partial,
    /// and measures nothing
    #[arg(long)]
    pub allow_partial_load: bool,
    /// Seed of key sizes, value sizes and contents: any process with the same seed can check the data
    #[arg(long, value_name = "N", default_value = default_of("--data-seed"), value_parser = values::seed, allow_hyphen_values = true)]
    pub data_seed: u64,
}

/// Threads, clocks, the kernel.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Engine")]
pub struct EngineArgs {
    /// Kernel interface
    #[arg(long, value_enum, default_value = default_of("--backend"))]
    pub backend: BackendName,
    /// How a thread waits until the next request is due
    #[arg(long, value_enum, default_value = default_of("--wait"))]
    pub wait: WaitName,
    /// Which clock says when a reply arrived
    #[arg(long, value_enum, default_value = default_of("--clock"))]
    pub clock: ClockName,
    /// Do not ask the servers for their statistics before and after the measurement, and do not read the kernel's counters
    #[arg(long)]
    pub no_evidence: bool,
    /// Make no round trips one at a time before the measurement: at most 100 empty requests and 100 reads of the mix on one
    /// connection of each thread to each server, in at most 50 ms each
    #[arg(long)]
    pub no_baseline: bool,
    /// After each measurement, make the same operations for 0.5 s or a little longer with one request in flight and with ten, which
    /// tells a server with a queue from one that has time. One server, no agents
    #[arg(long, conflicts_with = "no_evidence")]
    pub probe: bool,
    /// Leave names, addresses and ids of machines and servers, and the command line, out of the result
    #[arg(long)]
    pub anonymous: bool,
    /// Also ask the servers for their statistics at every interval of the measurement, at least 100ms apart
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s",
          value_parser = values::time, allow_hyphen_values = true, conflicts_with = "no_evidence")]
    pub server_stats: Option<Nanos>,
    /// Ask these servers for their statistics instead of those of --server: the servers behind a proxy, as HOST, HOST:PORT or
    /// /unix/path. Protocol, encryption and login are those of --server
    #[arg(long, value_name = "SERVERS", value_parser = servers, allow_hyphen_values = true,
          conflicts_with = "no_evidence")]
    pub server_stats_at: Vec<List<String>>,
    /// Also stamp one request in N when it leaves this machine (`tx`), when it enters the queueing discipline as well (`tx+sched`),
    /// or have the network card stamp it and its reply (`nic`; the card must be set up for it); append `:N`
    /// [default N: 64]
    #[arg(long, value_name = "tx|tx+sched|nic[:N]", value_parser = transmit_sampling)]
    pub stamps: Option<TransmitSampling>,
    /// CPUs to pin threads to, in turn, such as 0,2-5. Default: not pinned
    #[arg(long, value_name = "LIST", value_parser = cpus, allow_hyphen_values = true)]
    pub cpus: Option<List<usize>>,
}

/// A way to choose the next operation, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MixOrder {
    /// By weight, at random
    Drawn,
    /// As many of each operation as its weight, in their order
    Turns,
}

/// An order of the rows of a dataset, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DatasetOrderName {
    /// Row by row from a row of each client's own on, and from the last to the first
    File,
    /// A row for each request by itself, drawn from the seed
    Random,
}

impl DatasetOrderName {
    /// The order of the plan.
    pub fn order(self) -> DatasetOrder {
        match self {
            DatasetOrderName::File => DatasetOrder::File,
            DatasetOrderName::Random => DatasetOrder::Random,
        }
    }
}

/// A kernel interface, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The best that the kernel offers
    Auto,
    /// epoll
    Epoll,
    /// io_uring (Linux 6.1 or later); falls back to epoll, with the reason, where it is not available
    Uring,
}

/// A way to wait, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaitName {
    /// Sleep until shortly before the due time, then spin; in a closed loop only sleep
    Auto,
    /// Never sleep
    Spin,
    /// Only sleep
    Block,
}

/// A clock, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockName {
    /// The kernel's receive stamp
    Kernel,
    /// The moment at which the program read the reply, as in other tools
    User,
}

/// Options of sockets.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sockets")]
pub struct SocketArgs {
    /// Addresses of this machine to connect from, in turn
    #[arg(long, value_name = "ADDR,...", value_parser = addresses, allow_hyphen_values = true)]
    pub source: Option<List<String>>,
    /// Let the kernel combine small segments (Nagle's algorithm)
    #[arg(long)]
    pub no_nodelay: bool,
    /// SO_LINGER in seconds; with 0, closing sends a reset
    #[arg(long, value_name = "N", value_parser = values::count_cut, allow_hyphen_values = true)]
    pub linger: Option<u32>,
    /// SO_SNDBUF in bytes
    #[arg(long, value_name = "N", value_parser = values::count_cut, allow_hyphen_values = true)]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes
    #[arg(long, value_name = "N", value_parser = values::count_cut, allow_hyphen_values = true)]
    pub recv_buffer: Option<u32>,
}

/// Options of the output.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// The files of the result.
    #[command(flatten)]
    pub files: ResultFileArgs,
    /// Additional contents of the result.
    #[command(flatten)]
    pub result: ResultArgs,
    /// Form of the report on standard output. Default: text
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Print one line for scripts, and no progress
    #[arg(short, long, conflicts_with_all = ["times", "verbose"])]
    pub quiet: bool,
    /// The text for people.
    #[command(flatten)]
    pub screen: ScreenArgs,
    /// Show the run full screen in the terminal: rates, times, errors, the generator. The key ? lists all keys
    #[cfg(feature = "live")]
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,
    /// The metrics of the runs.
    #[command(flatten)]
    pub metrics: MetricsArgs,
}

/// A saved plan in place of options.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Saved plan")]
pub struct SavedArgs {
    /// Run a plan that `pummel explain` saved (TOML or JSON), or the plan in a JSON result. The plan says everything: only --server,
    /// which replaces the plan's servers, and the options under Output may be combined with it
    #[arg(long, value_name = "FILE")]
    pub plan: Option<String>,
}

/// The value of `--churn`; `None` for `none`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedChurn(pub Option<KeyChurn>);

fn typed_churn(text: &str) -> Result<TypedChurn, ValueError> {
    if text == "none" {
        Ok(TypedChurn(None))
    } else {
        values::churn(text).map(|churn| TypedChurn(Some(churn)))
    }
}

/// As they are typed: which port they lack is known when the protocol is.
fn fill(text: &str) -> Result<Fill, ValueError> {
    match text {
        "set" => Ok(Fill::Set),
        "add" => Ok(Fill::Add),
        _ => Err(ValueError("expected set or add".to_owned())),
    }
}

fn servers(text: &str) -> Result<List<String>, ValueError> {
    // What a URI says beside the address is told apart when all options are known, and a password in it is not to be printed.
    if !server_uri::is_in(text) {
        values::servers(text)?;
    }
    Ok(List(vec![text.to_string()]))
}

/// Servers that stand alone on a command line. A number is none: it is more likely the value of an option, or a port.
fn bare_server(text: &str) -> Result<List<String>, ValueError> {
    let has_form = text.contains(['.', ':', '/']) || text.starts_with(|c: char| c.is_ascii_alphabetic());
    match has_form {
        true => servers(text),
        false => Err(ValueError(
            "expected a server, as HOST, HOST:PORT, [IPV6]:PORT, /unix/path or redis://HOST; options begin with a dash".to_owned(),
        )),
    }
}

fn weights(text: &str) -> Result<List<(Verb, f64)>, ValueError> {
    values::weights(text).map(List)
}

fn weights_with_commands(text: &str) -> Result<List<(Operation, f64)>, ValueError> {
    values::weights_with_commands(text).map(List)
}

/// Reads ranges of slots.
fn slots(text: &str) -> Result<List<SlotRange>, ValueError> {
    let accepted = || ValueError("expected ranges of slots from 0 to 16383, such as 0-5460,9000".to_owned());
    let ranges = text.split(',').map(|range| range.parse().map_err(|_| accepted()));
    ranges.collect::<Result<Vec<SlotRange>, ValueError>>().map(List)
}

impl PaceArgs {
    /// The steps of the number of connections; none where it stays.
    pub fn connection_steps(&self) -> &[ConnectionStep] {
        self.stage_connections.as_ref().map_or(&[], |steps| &steps.0)
    }

    /// The greatest number of connections.
    pub fn connections_max(&self) -> u32 {
        self.connection_steps().iter().map(|step| step.connections).max().unwrap_or(self.connections)
    }
}

fn connection_steps(text: &str) -> Result<List<ConnectionStep>, ValueError> {
    connection_steps::connection_steps(text).map(List)
}

fn stages(text: &str) -> Result<List<Stage>, ValueError> {
    typed_rate::stages(text).map(List)
}

fn goals(text: &str) -> Result<List<Goal>, ValueError> {
    values::goals(text).map(List)
}

fn transmit_sampling(text: &str) -> Result<TransmitSampling, ValueError> {
    values::transmit_sampling(text)
}

fn cpus(text: &str) -> Result<List<usize>, ValueError> {
    values::cpus(text).map(List)
}

fn addresses(text: &str) -> Result<List<String>, ValueError> {
    values::addresses(text).map(List)
}

fn depth(text: &str) -> Result<Depth, ValueError> {
    if text == "unlimited" {
        return Ok(Depth::Unlimited);
    }
    values::count_cut(text).map(Depth::Limit).map_err(|error| ValueError(format!("{error}, or unlimited")))
}

/// When requests are due, as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub enum TypedArrivals {
    /// Arrivals that have a name.
    Named(Arrivals),
    /// A distribution of the gaps.
    Shape(UnreadDist),
}

pub(super) fn arrivals(text: &str) -> Result<TypedArrivals, ValueError> {
    match Arrivals::from_name(text) {
        Some(named) => Ok(TypedArrivals::Named(named)),
        None => values::dist_of_times(text).map(TypedArrivals::Shape).map_err(|error| {
            let names = Arrivals::names();
            // The words that distributions have too are among those that the distribution's parser compares.
            let own = names.split(", ").filter(|name| !dist::NAMES.contains(name));
            ValueError(format!("{}{}", shape_refusal(&error), hint(text, own)))
        }),
    }
}

/// What is accepted in place of a distribution of gaps that was refused.
pub(super) fn shape_refusal(error: &ValueError) -> ValueError {
    let accepted = error.0.strip_prefix("expected ").unwrap_or(&error.0);
    ValueError(format!("expected {}, or a distribution of gaps: {accepted}", Arrivals::names()))
}

fn arrivals_help() -> String {
    format!(
        "When requests are due in an open loop: {}, or a DIST of the gaps, scaled to the rate. Default: poisson",
        Arrivals::names()
    )
}

/// The parser of `--protocol`, which knows the protocols of a Plan.
fn protocols() -> impl TypedValueParser<Value = TypedProtocol> {
    let auto = PossibleValue::new(TypedProtocol::AUTO)
        .help("memcached's text or binary protocol, or RESP2, as the servers answer");
    let named = Protocol::ALL.map(|protocol| PossibleValue::new(protocol.name()).help(protocol.row().about));
    PossibleValuesParser::new(std::iter::once(auto).chain(named))
        .map(|name| Protocol::from_name(&name).map_or(TypedProtocol::Auto, TypedProtocol::Named))
}

/// The replacement for a scan, which memcached does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScanAs {
    /// One read of several keys.
    Multiget,
}

fn popularity(text: &str) -> Result<UnreadPopularity, ValueError> {
    match text.strip_prefix("cachelib:") {
        Some("") => {
            let accepted = "expected cachelib:FILE with a file of CacheLib's buckets, such as pop.json";
            return Err(ValueError(accepted.to_owned()));
        }
        Some(path) => return Ok(UnreadPopularity::Cachelib(path.to_owned())),
        None => {}
    }
    text.parse().map(UnreadPopularity::Ready).map_err(|error: pummel_logic::plan::TextError| {
        let typed = text.split(':').next().unwrap_or_default();
        let forms = error.accepted.split(", ").flat_map(|form| form.split(" or "));
        let names = forms.filter_map(|form| form.split(':').next());
        ValueError(format!("expected {}{}", error.accepted, hint(typed, names)))
    })
}

fn bytes(text: &str) -> Result<UnreadDist, ValueError> {
    values::dist(text, Measure::Bytes)
}
