//! The options of pummel's own command line, as the words of the user; `native` makes a Plan of them.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use pummel_logic::dist;
use pummel_logic::plan::address::RESP_PORT;
use pummel_logic::plan::{
    Arrivals, Burst, Depth, Fill, Goal, KeyChurn, Protocol, TransmitSampling, ValueClass,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

use crate::job::ReportFormat;
use crate::metrics::options::MetricsArgs;
#[cfg(feature = "agents")]
use crate::native::agent_options::{AgentsArgs, MeasuringArgs};
use crate::native::phase_file::{PhaseFile, phase_file};
use crate::native::result_options::{ResultArgs, ResultFileArgs};
use crate::native::trace_args::TraceArgs;
use crate::native::typed_rate::{self, Stage, TypedRate};
use crate::values;
use crate::values::nearest::hint;
use crate::values::{Measure, UnreadDist, UnreadPopularity, UntilEviction, ValueError, WarmUpTime};

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
  The same, and exit status 3 when the 99th percentile is above 1 ms:
    pummel run -s cache1,cache2 --rate 20k -t 1m --goal p99:1ms
  After the load has settled, until the 99th percentile is known to 2 %:
    pummel run -s cache1,cache2 --rate 20k --warmup auto --until p99:2%
  A million requests, 16 outstanding on each connection:
    pummel run -s /run/memcached.sock -n 1M -d 16
  Sizes and popularity as in production:
    pummel run -s [::1] --popularity zipf:0.99 --value-size etc-value
  Encrypted, with a certificate of an authority of your own:
    pummel run -s cache1 --tls --tls-ca ca.pem
  Every value checked, the result as JSON:
    pummel run -s cache1 --verify --json result.json
  From four machines, each with `pummel agent`, and measured from this one:
    pummel run -s cache1 --agents m1,m2,m3,m4 -c 400 --rate 1m --measure-connections 4
  Redis, with hashes, and with a command of your own:
    pummel run -s redis1:6379
    pummel run -s redis1 --protocol resp3 --mix hget:9,hset:1
    pummel run -s redis1 --protocol resp3 --command 'LPUSH __key__ __value__'

Exit status:
  0    complete
  1    failed or partial; the report is written and says why
  2    the command line cannot be followed; nothing was sent
  3    a verification failed, a goal was missed or undecided, --until was not reached, or --fail-on names
       what the run was, or what is not known of it
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written";

const LOAD_EXAMPLES: &str = "\
The options of the records are those of `pummel run`, where distributions and units are explained. A run with the same \
--records, --key-size, --value-size, --key-prefix and --data-seed finds what was loaded here.

Examples:
  pummel load -s 127.0.0.1 --records 1m --value-size etc-value
  pummel run -s 127.0.0.1 --records 1m --value-size etc-value --no-load

Exit status:
  0    complete
  1    failed or partial; the report is written and says why
  2    the command line cannot be followed; nothing was sent
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written";

/// Which server, and how to speak to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Server")]
pub struct TargetArgs {
    /// Server, or several separated by commas; may be repeated. HOST, HOST:PORT, [IPV6]:PORT or /unix/path; where no port
    /// is given it is 11211, and with --protocol resp2 or resp3 6379. Default: the environment variable MEMCACHED_SERVERS, in the same form
    #[arg(short, long, value_name = "SERVER", value_parser = servers, allow_hyphen_values = true)]
    pub server: Vec<List<String>>,
    /// Which of several servers holds a record and is asked for it. With any but `all`, each connection of --connections is
    /// one to every server
    #[arg(long, value_enum, default_value = "all")]
    pub route: RouteName,
    /// What is spoken; `auto` asks every server before the load, on a connection of its own
    #[arg(long, value_parser = protocols(), default_value = TypedProtocol::AUTO)]
    pub protocol: TypedProtocol,
    /// UDP in place of TCP, for memcached's text protocol: each request is one datagram of at most 1,400 bytes. Records
    /// are loaded over TCP where the server listens there too. A request whose reply gets lost ends at --timeout
    #[arg(long)]
    pub udp: bool,
    /// Encrypt every connection with TLS 1.2 or 1.3. Without --tls-ca the server's certificate has to come from an
    /// authority that this system trusts
    #[arg(long)]
    pub tls: bool,
    /// Authorities that the server's certificate may come from, in place of those of the system (PEM); a self-signed
    /// certificate of the server may be there itself
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<String>,
    /// Certificate of this client, then those that lead to its authority (PEM); with --tls-key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<String>,
    /// Private key of that certificate, not encrypted (PEM); with --tls-cert
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<String>,
    /// Name or IP address that the certificates of the servers must be for. Default: the host of each --server
    #[arg(long, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Accept any certificate: who answers is then not known, and --tls-ca has no effect
    #[arg(long)]
    pub tls_insecure: bool,
    /// User to log in as, by what the protocol has for it: SASL PLAIN (binary), the first set of a server with a file of
    /// users (text, meta), AUTH (RESP). The password comes from --password-file or PUMMEL_PASSWORD
    #[arg(long)]
    pub user: Option<String>,
    /// File whose first line is the user's password
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Number of the database that every connection selects (RESP)
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub database: u32,
    /// How long a request may take once a connection could send it, and how long a connection may take to open
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time, allow_hyphen_values = true)]
    pub timeout: Nanos,
    /// Open connections again that the server closed, and go on. Where no --time ends it (loading, --requests), a server
    /// that answers nothing for 10 timeouts, at least 10 s, is given up
    #[arg(long)]
    pub reconnect: bool,
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
    /// The protocol of a command line whose servers were not asked: memcached's text protocol, or RESP2 where a database is
    /// selected or every server listens on the port of RESP.
    pub fn assumed_protocol(&self) -> Protocol {
        let on_resp_port = |server: &str| server.ends_with(&format!(":{RESP_PORT}"));
        match self.protocol {
            TypedProtocol::Named(protocol) => protocol,
            TypedProtocol::Auto if self.udp => Protocol::Text,
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
    /// All servers hold every record; a connection goes to one server, in turn, and stays there
    All,
    /// All servers hold every record; the requests of a connection go to one server after the other
    #[value(name = "roundrobin")]
    RoundRobin,
    /// A key lives on one server: as libmemcached does by default
    Modulo,
    /// A key lives on one server: libmemcached's MEMCACHED_BEHAVIOR_KETAMA (one-at-a-time, 100 points a server)
    Ketama,
    /// A key lives on one server: MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED with equal weights (MD5, 160 points a server)
    KetamaWeighted,
    /// A key lives on one server: the 16,384 slots of a Redis cluster, with hash tags, spread evenly
    Crc16,
}

/// How much load, and when it ends.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub struct PaceArgs {
    /// How long to measure; with --requests, whichever is reached first. Default: 10s, unless --requests is given
    #[arg(short, long, value_name = "TIME", value_parser = values::time, allow_hyphen_values = true)]
    pub time: Option<Nanos>,
    /// How many requests to measure, over all connections. What other answers ask for comes on top: the gets before a cas,
    /// the sets of --read-through
    #[arg(short = 'n', long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub requests: Option<u64>,
    /// How long to run before the measurement begins; `auto`: until the load has settled, by its median response, its rate and its
    /// hit share over the last two blocks of --time each (2 s to 30 s), and at most MAX. Default of MAX: 1m, and at least six
    /// times --time
    #[arg(long, value_name = "TIME|auto[:MAX]", default_value = "0s", value_parser = values::warm_up, allow_hyphen_values = true)]
    pub warmup: WarmUpTime,
    /// How long to run before the measurement begins: until a server, by its own statistics, has evicted its first record since the
    /// run began, and at most MAX. Default of MAX: 1m, and at least six times --time
    #[arg(long, value_name = "evictions[:MAX]", value_parser = values::warm_up_until, conflicts_with = "warmup",
          allow_hyphen_values = true)]
    pub warmup_until: Option<UntilEviction>,
    /// Measure until the 95 % interval of this quantile of the response time is as narrow as this, such as p99:2%, in place of --time;
    /// exit with status 3 where --max-time is over before that
    #[arg(long, value_name = "QUANTILE:PERCENT", value_parser = values::quantile_within, conflicts_with_all = ["time", "requests"],
          allow_hyphen_values = true)]
    pub until: Option<(f64, f64)>,
    /// How long to measure at least; with --until
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time_above_zero, requires = "until",
          allow_hyphen_values = true)]
    pub min_time: Nanos,
    /// How long to measure at most; with --until. A limit that is often reached makes the runs that end before it those with calm
    /// tails
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::time_above_zero, requires = "until",
          allow_hyphen_values = true)]
    pub max_time: Nanos,
    /// Threads
    #[arg(short = 'T', long, value_name = "N", default_value = "1", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub threads: u32,
    /// Connections, over all servers and threads; see --route
    #[arg(short, long, value_name = "N", default_value = "50", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub connections: u32,
    /// Most requests outstanding per connection: a number, or `unlimited` (only with --rate)
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = depth, allow_hyphen_values = true)]
    pub depth: Depth,
    /// Requests per second, over all connections: open loop. Default: closed loop, where each connection asks again as
    /// soon as it is answered. 1x, 0.5x and so on is so much of the rate that the source of --workload had. A rate may change while it
    /// is measured: FROM..TO (a straight line), sine:MEAN,AMPLITUDE,PERIOD[,START],
    /// day:MEAN[,PERIOD] (the 24 hours of Facebook's pool ETC) or file:PATH (lines `seconds,rate`)
    #[arg(long, value_name = "RATE", value_parser = typed_rate::rate, allow_hyphen_values = true)]
    pub rate: Option<TypedRate>,
    /// Stages of the rate, one after the other, beginning with --rate: TIME:RATE goes there in a straight line, TIME alone stays;
    /// 0s:RATE jumps. They take the place of --time
    #[arg(long, value_name = "TIME[:RATE],...", value_parser = stages, conflicts_with_all = ["time", "until"], requires = "rate",
          allow_hyphen_values = true)]
    pub stage: Vec<List<Stage>>,
    /// Phases that follow each other without a gap, from a file (TOML) of [[phase]] with name, time and, where they differ from the
    /// command line, rate (20k or 5k..60k), mix and popularity. They take the place of --time, and each has figures of its own
    #[arg(long, value_name = "FILE", value_parser = phase_file, conflicts_with_all = ["time", "until", "stage", "requests"])]
    pub phases: Option<PhaseFile>,
    /// Bursts of the rate, which keep its mean: FACTOR,ON,OFF multiplies it by FACTOR for times of mean ON, with times of mean OFF
    /// between; hurst:H,ON[,SOURCES] has bursts on all scales of time, of sources (200) that are on and off for times of mean ON
    #[arg(long, value_name = "BURST", value_parser = typed_rate::burst, allow_hyphen_values = true)]
    pub burst: Option<Burst>,
    /// When requests are due in open loop; `help` names the processes.
    #[arg(long, value_name = "ARRIVALS", value_parser = arrivals, allow_hyphen_values = true, help = arrivals_help())]
    pub arrivals: Option<TypedArrivals>,
    /// Clients come and go: each opens a connection, makes --calls-per-connection requests in closed loop and closes it.
    /// So many come per second, as --arrivals says; --connections is how many may be there at one time
    #[arg(long, value_name = "RATE", value_parser = values::rate, allow_hyphen_values = true)]
    pub conn_rate: Option<f64>,
    /// Requests of a client that comes and goes. Without --conn-rate, another comes as soon as one has gone. Default with
    /// --conn-rate: 1
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub calls_per_connection: Option<u64>,
    /// Seed of arrivals and of the choice of operations and keys. Default: drawn; the report shows it
    #[arg(long, value_name = "N", value_parser = values::count, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// The least time between two lines of progress, and between two intervals of the result
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time, allow_hyphen_values = true)]
    pub interval: Nanos,
    /// Exit with status 3 when this quantile of the response time is above the limit, such as p99:1ms; may be repeated
    #[arg(long, value_name = "GOAL", value_parser = goals, allow_hyphen_values = true)]
    pub goal: Vec<List<Goal>>,
}

/// How much is stored at a time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub struct LoadPaceArgs {
    /// Store the items of this file in place of records: what memcached writes for `lru_crawler metadump all`, or CSV with a
    /// header key,size,ttl; plain, .gz or .zst. Keys, lengths and the time that is left are kept, contents are pummel's own.
    /// May be repeated
    #[arg(long, value_name = "FILE")]
    pub fill: Vec<String>,
    /// Threads
    #[arg(short = 'T', long, value_name = "N", default_value = "1", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub threads: u32,
    /// Connections, over all servers and threads; see --route
    #[arg(short, long, value_name = "N", default_value = "50", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub connections: u32,
    /// Most requests outstanding per connection
    #[arg(short, long, value_name = "N", default_value = "64", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub depth: u32,
    /// Operations that the records are for; append and prepend, incr and decr, hget and hset, and command work on records
    /// of their own, which are stored when one of them is named here
    #[arg(long, value_name = "OP,...", default_value = "get", value_parser = weights, allow_hyphen_values = true)]
    pub mix: List<(Verb, f64)>,
    /// The least time between two lines of progress, and between two intervals of the result
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time, allow_hyphen_values = true)]
    pub interval: Nanos,
}

/// What is asked.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub struct MixArgs {
    /// Operations and their weights: get, gets, gat, gats, set, add, replace, append, prepend, cas, incr, decr, delete,
    /// touch, version; of RESP servers also hget, hset (each hash has one field, called field), mset and command, and no
    /// gets, gats, prepend and cas. Default: get:9,set:1, or with --command command:1
    #[arg(long, value_name = "OP:WEIGHT,...", value_parser = weights, allow_hyphen_values = true)]
    pub mix: Option<List<(Verb, f64)>>,
    /// What command is in --mix (RESP): a command with places that each request fills, such as 'ZADD __key__ __number__
    /// __value__'. __key__ is a key by --popularity, none of those that other operations use; __number__ is its record's
    /// number, from 0; __value__ is the value that loading would store there. Quotes are those of redis-cli. The keys are
    /// empty at first, unless --load is given, which then stores __value__ there by SET
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,
    /// Which records are asked for: uniform, zipf:EXPONENT (0 to 3), hot:KEYS,REQUESTS (share of the records, share of
    /// the requests), ranks:R=SHARE,... (share of the requests that the R most popular records get, R being a number or
    /// such as 1%), buckets:RECORDS@WEIGHT,... (so many records with this weight together), cachelib:FILE (such buckets, as CacheLib's
    /// pop.json has them), latest:EXPONENT (zipf from the newest record back, which --insert adds to), ycsb (the law that YCSB calls
    /// zipfian) or sequential
    #[arg(long, value_name = "POPULARITY", default_value = "uniform", value_parser = popularity, allow_hyphen_values = true)]
    pub popularity: UnreadPopularity,
    /// Keys of each read
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub multiget: u32,
    /// Share of the keys read that nobody asks for again. With --read-through they are stored, and push out others
    #[arg(long, value_name = "SHARE", default_value = "0", hide_default_value = true, value_parser = values::fraction, allow_negative_numbers = true)]
    pub fresh: f64,
    /// Share of the keys read that do not exist and are never stored: with all records loaded the share of hits is what is
    /// left
    #[arg(long, value_name = "SHARE", default_value = "0", hide_default_value = true, value_parser = values::fraction, allow_negative_numbers = true)]
    pub absent: f64,
    /// Share of the keys read that are found, where all records are stored: short for --absent 1-SHARE, and with --read-through for
    /// --fresh 1-SHARE, whose fills push out others where the server is too small
    #[arg(long, value_name = "SHARE", value_parser = values::fraction, allow_negative_numbers = true)]
    pub hit_ratio: Option<f64>,
    /// Let records get other keys in the course of time, which were never stored, and keep their popularity. LIFE is how long they
    /// keep one: a time or a DIST of times (needs --rate), requests:LIFE in requests of all connections, share:SHARE with the
    /// records that are replaced for each request, default (70 % live 15 minutes, 30 % a day), or
    /// none
    #[arg(long, value_name = "LIFE", value_parser = typed_churn, allow_hyphen_values = true)]
    pub churn: Option<TypedChurn>,
    /// Share of the gets after whose reply the same connection sets the key: the report has both, and the times of the pairs
    #[arg(long, value_name = "SHARE", default_value = "0", hide_default_value = true, value_parser = values::fraction, allow_negative_numbers = true)]
    pub read_modify_write: f64,
    /// Let each add of --mix store a record of its own, which is on no server yet. So it is with --popularity latest:EXPONENT
    #[arg(long)]
    pub insert: bool,
    /// Ask for the records of a scan, which --workload has, by one read: 1 to 100 records that follow each other
    #[arg(long, value_name = "HOW", value_enum, requires = "workload")]
    pub scan_as: Option<ScanAs>,
    /// Keys of each mset (RESP)
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub multiset: u32,
    /// Let a read that finds nothing make an empty item with this expiry (flag N of meta): the client that is told to
    /// renew it stores it, the others wait. With --protocol meta
    #[arg(long, value_name = "TTL", value_parser = values::whole_seconds, allow_hyphen_values = true)]
    pub vivify: Option<u32>,
    /// Let a read of what expires in less than this time win the right to renew it (flag R of meta), and do so. With
    /// --protocol meta, and of use with --ttl
    #[arg(long, value_name = "TIME", value_parser = values::whole_seconds, allow_hyphen_values = true)]
    pub recache: Option<u32>,
    /// Let deletes only mark as stale, with this expiry or 0 for none (flags I and T of meta): one read wins the right to
    /// renew it, and does so. With --protocol meta
    #[arg(long, value_name = "TTL", value_parser = values::whole_seconds, allow_hyphen_values = true)]
    pub stale: Option<u32>,
    /// Ask with every read also for the remaining time, the size, whether it was read before, and when (flags t s h l of
    /// meta). With --protocol meta
    #[arg(long)]
    pub meta_details: bool,
    /// Store a key that was missed, at once or after a delay, which stands for a database: a time or a DIST of times, such as
    /// exponential:5ms
    #[arg(long, value_name = "DELAY", num_args = 0..=1, require_equals = true, default_missing_value = "0",
          value_parser = values::dist_of_times)]
    pub read_through: Option<UnreadDist>,
    /// How --read-through stores a key: set, or add, which leaves alone what another client has stored meanwhile
    #[arg(long, value_name = "HOW", default_value = "set", hide_default_value = true, value_parser = fill)]
    pub fill: Fill,
    /// Ask the server not to answer writes
    #[arg(long)]
    pub noreply: bool,
    /// The most records of a scan, where the workload scans.
    #[arg(skip)]
    pub scan: Option<u32>,
    /// Check the values that come back, or this share of them; without a number all. A wrong one makes the exit status 3
    #[arg(long, value_name = "FRACTION", num_args = 0..=1, default_missing_value = "1", value_parser = values::fraction, allow_negative_numbers = true)]
    pub verify: Option<f64>,
    /// Store every record before the load begins; this is the default
    #[arg(long, overrides_with = "no_load")]
    pub load: bool,
    /// Do not store the records first: what is there, is there
    #[arg(long, overrides_with = "load")]
    pub no_load: bool,
}

/// What is stored.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Records")]
pub struct DataArgs {
    /// Records, sizes, expiry, popularity and mix of a named workload, or of the file of a profile; options that are typed
    /// too win. `pummel workloads` lists the names
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Number of records, up to 2^40
    #[arg(long, value_name = "N", default_value = "10k", value_parser = values::count, allow_hyphen_values = true)]
    pub records: u64,
    /// Length of a key in bytes, prefix included, up to 250; the same for a key whenever it is used
    #[arg(long, value_name = "DIST", default_value = "30", value_parser = bytes, allow_hyphen_values = true)]
    pub key_size: UnreadDist,
    /// Length of a value in bytes, up to 1GiB
    #[arg(long, value_name = "DIST", default_value = "200", value_parser = bytes, allow_hyphen_values = true)]
    pub value_size: UnreadDist,
    /// The most popular records with lengths of their own, which only a workload names.
    #[arg(skip)]
    pub value_classes: Vec<ValueClass>,
    /// What every key begins with. Default: nothing
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub key_prefix: String,
    /// Expiry of what is stored and touched: whole seconds or a time, 0 for none, up to 30 days
    #[arg(long, value_name = "DIST", default_value = "0", value_parser = values::dist_of_times, allow_hyphen_values = true)]
    pub ttl: UnreadDist,
    /// By how much of itself an expiry is longer or shorter at most, such as 10%, so that what was stored together does not expire
    /// together; whole percents
    #[arg(long, value_name = "PERCENT", default_value = "0", hide_default_value = true, value_parser = values::percent, allow_hyphen_values = true)]
    pub ttl_jitter: u32,
    /// Call a run complete although only a part of the records could be stored. One whose load stored nothing is partial all
    /// the same, and measures nothing
    #[arg(long)]
    pub allow_partial_load: bool,
    /// Seed of key sizes, value sizes and bytes: any process with the same one can check the data
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count, allow_hyphen_values = true)]
    pub data_seed: u64,
}

/// Threads, clocks, the kernel.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Engine")]
pub struct EngineArgs {
    /// Kernel interface
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: BackendName,
    /// How a thread waits for the next due time
    #[arg(long, value_enum, default_value = "auto")]
    pub wait: WaitName,
    /// What says when a reply arrived
    #[arg(long, value_enum, default_value = "kernel")]
    pub clock: ClockName,
    /// Do not ask the servers for their statistics, nor read what the kernel counts, before and after the measurement
    #[arg(long)]
    pub no_evidence: bool,
    /// Leave the names, addresses and ids of machines and servers out of the JSON result, and the command line
    #[arg(long)]
    pub anonymous: bool,
    /// Ask the servers for their statistics at every interval of the measurement too, at least 100ms apart
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s",
          value_parser = values::time, allow_hyphen_values = true, conflicts_with = "no_evidence")]
    pub server_stats: Option<Nanos>,
    /// Ask these servers for their statistics, and not those of --server: the servers behind a proxy, as HOST, HOST:PORT or
    /// /path/of/a/socket. They are spoken to as those of --server are
    #[arg(long, value_name = "SERVERS", value_parser = servers, allow_hyphen_values = true,
          conflicts_with = "no_evidence")]
    pub server_stats_at: Vec<List<String>>,
    /// Also stamp one request in N when it leaves this machine: `tx`; `tx+sched` to stamp it also where it enters the
    /// queueing discipline; or `nic` to have it and its reply stamped by the network card, which has to be set up for that;
    /// with `:N` behind it [N: 64]
    #[arg(long, value_name = "tx|tx+sched|nic[:N]", value_parser = transmit_sampling)]
    pub stamps: Option<TransmitSampling>,
    /// CPUs that threads are pinned to, in turn, such as 0,2-5. Default: not pinned
    #[arg(long, value_name = "LIST", value_parser = cpus, allow_hyphen_values = true)]
    pub cpus: Option<List<usize>>,
}

/// A kernel interface, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The best that the kernel offers
    Auto,
    /// epoll
    Epoll,
    /// io_uring (Linux 6.1 or later); epoll, with a word of why, where it cannot be had
    Uring,
}

/// A way to wait, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaitName {
    /// Sleep up to shortly before the due time, then spin; in closed loop only sleep
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
    /// The moment when the program read the reply, as other tools have it
    User,
}

/// Options of sockets.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sockets")]
pub struct SocketArgs {
    /// Addresses of this machine to connect from, in turn
    #[arg(long, value_name = "ADDR,...", value_parser = addresses, allow_hyphen_values = true)]
    pub source: Option<List<String>>,
    /// Let the kernel collect small segments (Nagle's algorithm)
    #[arg(long)]
    pub no_nodelay: bool,
    /// SO_LINGER in seconds; 0 makes closing send a reset
    #[arg(long, value_name = "N", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub linger: Option<u32>,
    /// SO_SNDBUF in bytes
    #[arg(long, value_name = "N", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes
    #[arg(long, value_name = "N", value_parser = values::count_u32, allow_hyphen_values = true)]
    pub recv_buffer: Option<u32>,
}

/// What is written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// The files of the result.
    #[command(flatten)]
    pub files: ResultFileArgs,
    /// What the result carries beside its figures.
    #[command(flatten)]
    pub result: ResultArgs,
    /// Form of the report on standard output. Default: text
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
    /// Show the run on the whole screen of the terminal: rates, times and their picture, errors, the generator. Its key ? lists
    /// the others
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
    /// Run a plan that `pummel explain` saved (TOML or JSON). The plan says everything: beside it only --server, which
    /// takes the place of the plan's servers, and the options under Output are accepted
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["PaceArgs", "MixArgs", "TraceArgs", "DataArgs", "EngineArgs", "SocketArgs", "route", "protocol", "udp", "tls",
              "tls_ca", "tls_cert", "tls_key", "tls_server_name", "tls_insecure", "user", "password_file", "database",
              "timeout", "reconnect"])]
    pub plan: Option<String>,
}

/// What `--churn` says; nothing for `none`.
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
        _ => Err(ValueError("set and add are accepted".to_owned())),
    }
}

fn servers(text: &str) -> Result<List<String>, ValueError> {
    values::servers(text).map(|_| List(vec![text.to_string()]))
}

fn weights(text: &str) -> Result<List<(Verb, f64)>, ValueError> {
    values::weights(text).map(List)
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
    values::count_u32(text).map(Depth::Limit).map_err(|error| ValueError(format!("{error}, or unlimited")))
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
        None => values::dist_of_times(text).map(TypedArrivals::Shape).map_err(|error| shape_refusal(&error)),
    }
}

/// What is accepted in place of a distribution of gaps that was refused.
pub(super) fn shape_refusal(error: &ValueError) -> ValueError {
    ValueError(format!("{} or a distribution: {error}", Arrivals::names()))
}

fn arrivals_help() -> String {
    format!(
        "When requests are due in open loop: {}, or a DIST of the gaps, scaled to the rate. Default: poisson",
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

/// What stands for a scan, which memcached has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScanAs {
    /// One read of several keys.
    Multiget,
}

fn popularity(text: &str) -> Result<UnreadPopularity, ValueError> {
    if let Some(path) = text.strip_prefix("cachelib:").filter(|path| !path.is_empty()) {
        return Ok(UnreadPopularity::Cachelib(path.to_owned()));
    }
    text.parse().map(UnreadPopularity::Ready).map_err(|error: pummel_logic::plan::PopularityError| {
        let typed = text.split(':').next().unwrap_or_default();
        let forms = error.accepted.split(", ").flat_map(|form| form.split(" or "));
        let names = forms.filter_map(|form| form.split(':').next()).filter(|name| *name != typed);
        ValueError(format!("{} is accepted{}", error.accepted, hint(typed, names)))
    })
}

fn bytes(text: &str) -> Result<UnreadDist, ValueError> {
    values::dist(text, Measure::Bytes)
}
