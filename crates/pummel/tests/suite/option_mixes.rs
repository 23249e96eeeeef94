//! Random mixes of the options of the tools whose command lines pummel follows, against real servers, a server that misbehaves, and none.
//!
//! Each mix ends by itself, does not panic, prints a report with all of its lines or says why there is none, prints no
//! number that is none, and ends with a status that fits what it printed. A mix that does not is printed with its number:
//! `PUMMEL_OPTION_MIXES=1000` sets how many mixes each front gets (a few dozen all together otherwise), and
//! `PUMMEL_OPTION_MIX=memaslap:17` replays one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::redis::Redis;
use crate::common::{Memcached, Nobody, Place, Process, Serve, shell_status};
use pummel_logic::rng::{Stream, below, mix};
use tempfile::TempDir;

/// Number of mixes of each front that are tried where the environment does not say.
const MIXES: u64 = 12;

/// Mixes that are tried with the same servers; later ones get new servers, which end after some minutes.
const MIXES_PER_ROUND: usize = 40;

/// Mixes that run at one time.
const THREADS: usize = 2;

/// A mix that runs for longer does not end.
const LONGEST: Duration = Duration::from_secs(100);

/// A program whose command line pummel follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    Mutilate,
    Memaslap,
    Mcperf,
    RedisBenchmark,
    Memtier,
}

impl Front {
    const ALL: [Front; 5] =
        [Front::Mutilate, Front::Memaslap, Front::Mcperf, Front::RedisBenchmark, Front::Memtier];

    fn name(self) -> &'static str {
        match self {
            Front::Mutilate => "mutilate",
            Front::Memaslap => "memaslap",
            Front::Mcperf => "mcperf",
            Front::RedisBenchmark => "redis-benchmark",
            Front::Memtier => "memtier_benchmark",
        }
    }
}

/// An option: in how many of a hundred mixes it stands, its forms, and the values that it may have, good ones and others.
struct Choice {
    percent: u64,
    forms: &'static [&'static str],
    values: &'static [&'static str],
}

const fn with(percent: u64, forms: &'static [&'static str], values: &'static [&'static str]) -> Choice {
    Choice { percent, forms, values }
}

const fn flag(percent: u64, forms: &'static [&'static str]) -> Choice {
    Choice { percent, forms, values: &[] }
}

const MEMASLAP: &[Choice] = &[
    with(30, &["-T", "--threads"], &["1", "2", "3", "2x", "0", ""]),
    with(60, &["-c", "--concurrency", "--conc"], &["1", "2", "4", "6", "12", "40", "4k", "-1"]),
    with(20, &["-n", "--conn_sock"], &["1", "2", "5", "0"]),
    with(45, &["-x", "--execute_number"], &["1", "3", "7", "100", "999", "2000", "0", "5k"]),
    with(20, &["-F", "--cfg_cmd"], &["good.cnf", "gets.cnf", "sets.cnf", "odd.cnf", "empty.cnf", "none.cnf"]),
    with(70, &["-w", "--win_size"], &["1k", "1k", "2k", "3k", "0k", "1g", "3g", "10"]),
    with(30, &["-X", "--fixed_size"], &["1", "20", "100", "1400", "70000", "1048576", "1048577", "0"]),
    with(40, &["-v", "--verify"], &["1", "0.5", ".1", "1e-3", "0", "nan", "2", "inf"]),
    with(40, &["-d", "--division"], &["1", "2", "7", "50", "400", "0", "70000"]),
    with(25, &["-S", "--stat_freq", "--resp_freq"], &["1s", "1s", "2s", "1m", "0s", "5"]),
    with(20, &["-e", "--exp_verify"], &["0.1", "1", "0", "nan"]),
    with(20, &["-o", "--overwrite"], &["0.3", "1", "1e-9", "-1"]),
    flag(20, &["-R", "--reconnect"]),
    flag(15, &["-U", "--udp"]),
    flag(10, &["-a", "--facebook"]),
    flag(25, &["-B", "--binary"]),
    with(20, &["-P", "--tps"], &["1k", "9k", "1m", "2g", "0k", "-1k", "7"]),
    with(15, &["-p", "--rep_write"], &["1", "2", "3", "0"]),
    flag(20, &["-b", "--verbose"]),
    flag(15, &["--strict"]),
    with(15, &["--seed"], &["0", "7", "9223372036854775807", "x"]),
    with(10, &["--json"], &["result.json", "-", "none/result.json"]),
    with(10, &["--csv"], &["result.csv", "-"]),
    with(10, &["--hdr"], &["result.hdr"]),
    flag(2, &["-h", "-V", "--version", "--unknown", "word"]),
];

const MCPERF: &[Choice] = &[
    with(70, &["-n", "--num-conns"], &["1", "2", "7", "20", "0", "-1", "x"]),
    with(70, &["-N", "--num-calls"], &["1", "2", "10", "20", "0"]),
    with(
        50,
        &["-r", "--conn-rate"],
        &["0", "200", "1000", "1e5", "d0.005", "u0.001,0.02", "e0.005", "u2,1", "nan"],
    ),
    with(50, &["-R", "--call-rate"], &["0", "300", "1e6", "d0.002", "u0.001,0.004", "e0.003", "d0", "einf"]),
    with(
        40,
        &["-z", "--sizes"],
        &["1", "d10", "u1,100", "e50", "s5", "0.4", "d5000", "70000", "2000000", "0", "d", "u1"],
    ),
    with(
        60,
        &["-m", "--method"],
        &[
            "get", "gets", "delete", "cas", "set", "add", "replace", "append", "prepend", "incr", "decr",
            "xxx", "foo",
        ],
    ),
    with(30, &["-t", "--timeout"], &["0", "0.5", "1", "5", "1e-9", "nan"]),
    with(20, &["-l", "--linger"], &["0", "1", "-1"]),
    with(20, &["-b", "--send-buffer"], &["0", "1", "4096", "65536", "2147483647"]),
    with(20, &["-B", "--recv-buffer"], &["0", "1", "4096", "65536"]),
    flag(20, &["-D", "--disable-nodelay"]),
    with(20, &["-e", "--expiry"], &["0", "1", "2147483647", "2147483648"]),
    flag(20, &["-q", "--use-noreply"]),
    with(20, &["-P", "--prefix"], &["", "k:", "1234567890123456", "12345678901234567", "a b"]),
    with(20, &["-c", "--client"], &["0/1", "3/4", "4/4", "5/4", "3", "1/0"]),
    flag(30, &["-H", "--print-histogram"]),
    with(40, &["-v", "--verbosity"], &["0", "1", "4", "5", "6", "7", "11", "99", "x"]),
    with(15, &["-o", "--output"], &["log", "none/log"]),
    flag(20, &["--response"]),
    flag(15, &["--strict"]),
    flag(10, &["--shard"]),
    with(10, &["--source"], &["127.0.0.1", "127.0.0.1,127.0.0.2", "10.255.255.1", "x"]),
    with(10, &["--clock"], &["kernel", "user", "sun"]),
    with(10, &["--json"], &["result.json", "-", "none/result.json"]),
    with(10, &["--csv"], &["result.csv"]),
    with(10, &["--hdr"], &["result.hdr"]),
    with(10, &["--samples"], &["samples.csv", "-"]),
    flag(2, &["-h", "-V", "--version", "--unknown", "word"]),
];

const MUTILATE: &[Choice] = &[
    flag(15, &["--binary"]),
    flag(15, &["--redis"]),
    flag(15, &["--getset"]),
    flag(10, &["--getsetorset"]),
    flag(10, &["--successful"]),
    with(10, &["--prefix"], &["k", "", "a-longer-prefix-of-all-keys"]),
    flag(5, &["--delete90"]),
    with(10, &["--assoc"], &["0", "4", "40", "-1"]),
    with(50, &["-q", "--qps"], &["0", "100", "2000", "50000", "-5", "x"]),
    with(10, &["--read_file"], &["trace.csv", "odd.csv", "none.csv", "trace.gz"]),
    with(10, &["--twitter_trace"], &["0", "1", "2", "3"]),
    with(30, &["-K", "--keysize"], &["30", "4", "fb_key", "normal:30,8", "uniform:100", "fb_ia", "0", "nan"]),
    with(
        30,
        &["-V", "--valuesize"],
        &["200", "2", "fb_value", "exponential:0.01", "pareto:1,2,3", "nan", "1000000"],
    ),
    with(60, &["-r", "--records"], &["1", "10", "1000", "5000", "0", "-1"]),
    with(15, &["-m", "--misswindow"], &["0", "1", "100", "-1"]),
    with(20, &["-N", "--queries"], &["1", "100", "3000", "0"]),
    with(50, &["-u", "--update"], &["0", "0.1", "1", "1.0", "2", "nan"]),
    with(30, &["-T", "--threads"], &["1", "2", "4", "0"]),
    flag(10, &["--affinity"]),
    with(40, &["-c", "--connections"], &["1", "2", "8", "0", "600"]),
    with(40, &["-d", "--depth"], &["1", "4", "64", "0"]),
    flag(15, &["-R", "--roundrobin"]),
    with(
        25,
        &["-i", "--iadist"],
        &["exponential", "fixed", "uniform", "normal", "fb_ia", "gev:1,2,0.1", "fixed:0", "zipf", "nan"],
    ),
    flag(15, &["-S", "--skip"]),
    flag(15, &["--moderate"]),
    flag(20, &["--noload"]),
    flag(8, &["--loadonly"]),
    flag(20, &["-B", "--blocking"]),
    flag(15, &["--no_nodelay"]),
    with(15, &["-w", "--warmup"], &["0", "1"]),
    with(10, &["-W", "--wait"], &["0", "1"]),
    with(10, &["--save"], &["times", "none/times"]),
    with(4, &["--search"], &["95:1000000", "95:0", "101:5", "x"]),
    with(5, &["--scan"], &["100:300:100", "300:100:100", "1:2:0", "100:200:1000"]),
    with(5, &["-C", "--measure_connections"], &["1", "0"]),
    with(5, &["-Q", "--measure_qps"], &["100", "0"]),
    with(5, &["-D", "--measure_depth"], &["1", "0"]),
    flag(20, &["--response"]),
    flag(15, &["--p50"]),
    with(10, &["--json"], &["result.json", "-", "none/result.json"]),
    with(10, &["--csv"], &["result.csv"]),
    with(10, &["--hdr"], &["result.hdr"]),
    with(10, &["--samples"], &["samples.csv"]),
    with(10, &["--clock"], &["kernel", "user", "sun"]),
    with(15, &["--seed"], &["0", "7", "x"]),
    flag(10, &["-v", "-vv", "--quiet"]),
    flag(2, &["-h", "--version", "--unknown", "word"]),
];

const REDIS_BENCHMARK: &[Choice] = &[
    with(70, &["-n"], &["1", "7", "100", "1000", "0", "-5", "10k", "x"]),
    with(50, &["-c"], &["1", "2", "9", "50", "0", "-1"]),
    with(30, &["-d"], &["1", "3", "100", "5000", "0", "-1", "70000"]),
    with(40, &["-r"], &["1", "10", "100000", "0", "x", "-1"]),
    with(40, &["-P"], &["1", "4", "16", "1000", "0", "-1"]),
    with(25, &["--threads"], &["0", "1", "2", "4", "600", "-1"]),
    with(15, &["-k"], &["1", "0"]),
    with(60, &["-t"], &["get", "set,get", "ping", "lrange_100", "mset", "xadd", "mget", "none", ""]),
    flag(15, &["-3"]),
    with(10, &["--dbnum"], &["0", "3", "99", "-1"]),
    flag(10, &["--enable-tracking"]),
    with(5, &["-a"], &["secret", ""]),
    with(5, &["--user"], &["me"]),
    flag(25, &["-q"]),
    flag(20, &["--csv"]),
    with(10, &["--precision"], &["0", "3", "9"]),
    with(10, &["--seed"], &["1", "0", "x"]),
    with(10, &["--rps"], &["1000", "50000", "0", "-1"]),
    with(10, &["--warmup"], &["0", "1", "-1"]),
    with(10, &["--duration"], &["1", "0", "x"]),
    flag(10, &["-e", "--cluster", "--sequential", "--tls"]),
    with(3, &["--rfr"], &["no", "yes", "all", "maybe"]),
    with(10, &["--json"], &["result.json", "-", "none/result.json"]),
    with(10, &["--hdr"], &["result.hdr"]),
    with(10, &["--timeout"], &["5", "1", "0", "nan"]),
    with(10, &["--backend"], &["epoll", "auto", "uring", "sun"]),
    with(10, &["--clock"], &["kernel", "user", "sun"]),
    flag(5, &["--no-evidence", "--anonymous"]),
    flag(2, &["--help", "--version", "--unknown", "-c50"]),
];

const MEMTIER: &[Choice] = &[
    with(60, &["-n", "--requests"], &["1", "7", "100", "allkeys", "0", "-5", "10k"]),
    with(60, &["-c", "--clients"], &["1", "2", "9", "0", "-1"]),
    with(60, &["-t", "--threads"], &["1", "2", "3", "0", "x"]),
    with(15, &["--test-time"], &["1", "0", "x"]),
    with(40, &["--ratio"], &["1:10", "1:0", "0:1", "7:3", "0:0", "1"]),
    with(30, &["--pipeline"], &["1", "4", "100", "0"]),
    with(30, &["-d", "--data-size"], &["1", "32", "5000", "0", "70000"]),
    with(10, &["--data-offset"], &["1", "100", "0", "999999999"]),
    flag(20, &["-R", "--random-data"]),
    with(15, &["--data-size-range"], &["1-10", "10-1", "500-90000", "0-5", "x"]),
    with(10, &["--data-size-list"], &["10:1,500:3", "7:9", "0:1", "5"]),
    with(10, &["--data-size-pattern"], &["R", "S", "X"]),
    with(15, &["--expiry-range"], &["1-9", "0-5", "100-100", "0-0"]),
    with(10, &["--key-prefix"], &["k", "", "a b"]),
    with(20, &["--key-minimum"], &["1", "50", "0"]),
    with(40, &["--key-maximum"], &["100", "10", "1", "0"]),
    with(40, &["--key-pattern"], &["R:R", "S:S", "P:P", "G:G", "Z:Z", "S:R", "G:Z", "P:R", "r:r"]),
    with(10, &["--key-stddev"], &["5", "0"]),
    with(10, &["--key-median"], &["50", "0", "9999999"]),
    with(10, &["--key-zipf-exp"], &["0.99", "1.5", "4", "5", "0"]),
    with(10, &["--rate-limiting"], &["5000", "100", "0"]),
    with(10, &["--reconnect-interval"], &["3", "100", "0"]),
    flag(15, &["--reconnect-on-error"]),
    with(10, &["--multi-key-get"], &["1", "5", "0"]),
    with(5, &["-a", "--authenticate"], &["secret", "me:secret"]),
    with(10, &["--select-db"], &["0", "3", "99"]),
    with(10, &["--wait-ratio"], &["1:1", "10:3", "0:0"]),
    with(10, &["--num-slaves"], &["0-1", "1-0", "x"]),
    with(10, &["--wait-timeout"], &["1-3", "0-1", "x"]),
    flag(10, &["--cluster-mode", "--randomize", "--distinct-client-seed"]),
    with(5, &["--clients-start"], &["1", "5", "0"]),
    with(5, &["--clients-step"], &["1", "0"]),
    with(5, &["--step-duration"], &["1", "0"]),
    with(
        20,
        &["--command"],
        &["GET __key__", "SET __key__ __data__", "PING", "nosuchcommand a", "GET", "SUBSCRIBE a", ""],
    ),
    with(10, &["--command-ratio"], &["1", "3", "0"]),
    with(10, &["--command-key-pattern"], &["S", "P", "X"]),
    with(3, &["--monitor-input"], &["good.cnf", "none"]),
    with(15, &["--json-out-file"], &["out.json", "none/out.json"]),
    with(10, &["--hdr-file-prefix"], &["hdr", "none/hdr"]),
    with(5, &["--client-stats"], &["clients", "none/clients"]),
    with(15, &["--print-percentiles"], &["50,99.99", "0,100", "101", "x"]),
    flag(50, &["--hide-histogram"]),
    with(15, &["-x", "--run-count"], &["1", "2", "0"]),
    flag(10, &["--print-all-runs", "--show-config", "-D"]),
    with(10, &["--json"], &["result.json", "-", "none/result.json"]),
    with(10, &["--timeout"], &["5", "1", "0", "nan"]),
    flag(10, &["--strict", "--no-evidence", "--anonymous"]),
    flag(2, &["--help", "--version", "--unknown", "word", "--data-import=x"]),
];

/// Commands that may stand behind the options of redis-benchmark.
const REDIS_COMMANDS: &[&str] = &[
    "PING",
    "GET __rand_int__",
    "lpush list __rand_int__ a__rand_int__b",
    "SET k __data__",
    "nosuchcommand a b",
    "EVAL return(1) 0",
    "SUBSCRIBE a",
    "GET",
    "BLPOP none 1",
];

/// The files that options may name.
const FILES: &[(&str, &str)] = &[
    ("good.cnf", "key\n16 40 0.7\n41 250 0.3\nvalue\n1 100 1\ncmd\n0 0.3\n1 0.7\n"),
    ("gets.cnf", "cmd\n1 1.0\n"),
    ("sets.cnf", "value\n10 10 1\ncmd\n0 1\n"),
    ("odd.cnf", "nothing\nkey of all\n10 5 nan\nvalue\n5 1 1\ncmd\n7 1\n"),
    ("empty.cnf", "# nothing\n"),
    ("trace.csv", "1,key1,4,20,1,get,0\n2,key2,4,30,1,set,0\n3,key1,4,20,1,get,0\n"),
    ("odd.csv", "\n,,,\nnan,inf\n\u{1}\n"),
    ("trace.gz", "\u{1f}\u{8b}\u{8}"),
];

/// Draws of one mix.
struct Draws {
    stream: Stream,
    drawn: u64,
}

impl Draws {
    fn new(front: Front, number: u64) -> Draws {
        Draws { stream: Stream::from_seed(mix(&[front as u64, number])), drawn: 0 }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        below(self.stream.draw(self.drawn), bound)
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }

    /// An option, as one word or two.
    fn option(&mut self, front: Front, choice: &Choice) -> Vec<String> {
        let form = self.one_of(choice.forms);
        if choice.values.is_empty() {
            return vec![form.to_owned()];
        }
        // The first values are good ones, and are drawn more often.
        let (one, other) =
            (self.one_of(choice.values), self.one_of(&choice.values[..choice.values.len().div_ceil(2)]));
        let value = if self.below(3) == 0 { one } else { other };
        match (form.starts_with("--"), self.below(2)) {
            // redis-benchmark reads whole words.
            _ if front == Front::RedisBenchmark => vec![form.to_owned(), value.to_owned()],
            (true, 0) => vec![format!("{form}={value}")],
            (false, 0) if !value.is_empty() => vec![format!("{form}{value}")],
            _ => vec![form.to_owned(), value.to_owned()],
        }
    }
}

/// The servers of a round of mixes.
struct Servers {
    memcached: Memcached,
    second: Memcached,
    /// Takes few connections.
    small: Memcached,
    erring: Serve,
    closing: Serve,
    garbling: Serve,
    erring_resp: Serve,
    closing_resp: Serve,
    redis: Redis,
    nobody: Nobody,
}

impl Servers {
    fn start() -> Servers {
        Servers {
            memcached: Memcached::start_on(Place::Udp),
            second: Memcached::start_on(Place::Udp),
            small: Memcached::start_for(20),
            erring: Serve::start("--fault error-every=5"),
            closing: Serve::start("--fault close-after=50"),
            garbling: Serve::start("--fault garbage-after=200"),
            erring_resp: Serve::start("--protocol resp --fault error-every=5"),
            closing_resp: Serve::start("--protocol resp --fault close-after=50"),
            redis: Redis::start(&[]),
            nobody: Nobody::new(),
        }
    }

    /// The address of one of the servers by TCP, and whether it also takes datagrams.
    fn one(&self, draws: &mut Draws) -> (String, bool) {
        match draws.below(16) {
            0 => (self.small.name.clone(), false),
            1 => (self.erring.name.clone(), false),
            2 => (self.closing.name.clone(), false),
            3 => (self.garbling.name.clone(), false),
            4 => (self.nobody.address.to_string(), false),
            5 | 6 => (self.second.name.clone(), true),
            _ => (self.memcached.name.clone(), true),
        }
    }
}

/// The words of one mix, without the program's name.
fn words(front: Front, number: u64, servers: &Servers) -> Vec<String> {
    let mut draws = Draws::new(front, number);
    let (server, has_udp) = servers.one(&mut draws);
    let table = match front {
        Front::Mutilate => MUTILATE,
        Front::Memaslap => MEMASLAP,
        Front::Mcperf => MCPERF,
        Front::RedisBenchmark => REDIS_BENCHMARK,
        Front::Memtier => MEMTIER,
    };
    let mut options: Vec<Vec<String>> = Vec::new();
    for choice in table {
        if draws.below(100) < choice.percent {
            options.push(draws.option(front, choice));
        }
    }
    let has = |options: &[Vec<String>], names: &[&str]| {
        options.iter().any(|words| names.iter().any(|name| words[0] == *name))
    };
    match front {
        Front::Mutilate => {
            let redis = has(&options, &["--redis"]) && draws.below(4) > 0;
            match redis {
                true => options
                    .extend([vec!["--unix_socket".to_owned()], vec!["-s".to_owned(), servers.redis.name()]]),
                false => options.push(vec![format!("--server={server}")]),
            }
            options.push(vec!["-t".to_owned(), "1".to_owned()]);
        }
        Front::Memaslap => {
            let is_udp = has(&options, &["-U", "--udp", "-a", "--facebook"]);
            if is_udp && !has_udp {
                // Nothing comes back, and a number of requests would take many timeouts of 30 s.
                options.retain(|words| !words[0].starts_with("-x") && !words[0].starts_with("--execute"));
            }
            let both = has(&options, &["-p", "--rep_write"]) || draws.below(8) == 0;
            let list = if both { format!("{server},{}", servers.second.name) } else { server };
            options.push(vec!["-s".to_owned(), list]);
            options.push(vec!["--time=1s".to_owned()]);
        }
        Front::Mcperf => {
            let (host, port) = server.rsplit_once(':').expect("an address");
            options.push(vec!["-s".to_owned(), host.to_owned()]);
            options.push(vec![format!("--port={port}")]);
        }
        Front::RedisBenchmark => {
            let socket = || vec!["-s".to_owned(), servers.redis.name()];
            let at_port = |server: &str| {
                let (_, port) = server.rsplit_once(':').expect("an address");
                vec!["-p".to_owned(), port.to_owned()]
            };
            options.push(match draws.below(8) {
                0 => at_port(&servers.erring_resp.name),
                1 => at_port(&servers.closing_resp.name),
                2 => at_port(&servers.nobody.address.to_string()),
                // It does not speak RESP.
                3 => at_port(&server),
                _ => socket(),
            });
            if !has(&options, &["-n", "--duration"]) {
                options.push(vec!["-n".to_owned(), "300".to_owned()]);
            }
            if draws.below(3) == 0 {
                options.push(draws.one_of(REDIS_COMMANDS).split(' ').map(str::to_owned).collect());
            }
        }
        Front::Memtier => {
            let at_port = |server: &str| {
                let (host, port) = server.rsplit_once(':').expect("an address");
                vec![format!("--server={host}"), "-p".to_owned(), port.to_owned()]
            };
            let of_memcached =
                |protocol: &str| [at_port(&server), vec!["-P".to_owned(), protocol.to_owned()]].concat();
            options.push(match draws.below(10) {
                0 => at_port(&servers.erring_resp.name),
                1 => at_port(&servers.closing_resp.name),
                2 => at_port(&servers.nobody.address.to_string()),
                3 => of_memcached("memcache_text"),
                4 => of_memcached("memcache_binary"),
                5 => of_memcached("resp3"),
                6 => vec!["-S".to_owned(), servers.redis.name(), "-P".to_owned(), "resp3".to_owned()],
                _ => vec!["-S".to_owned(), servers.redis.name()],
            });
            if !has(&options, &["-n", "--requests", "--test-time"]) {
                options.push(vec!["-n".to_owned(), "50".to_owned()]);
            }
            // All keys are ten million without a greatest one.
            if !has(&options, &["--key-maximum"]) {
                options.push(vec!["--key-maximum".to_owned(), "60".to_owned()]);
            }
        }
    }
    options.concat()
}

/// Outcome of a mix.
struct Outcome {
    /// Exit status; `None` where it had to be ended.
    status: Option<i32>,
    text: String,
    errors: String,
}

/// Follows a mix in a folder of its own.
fn follow(front: Front, words: &[String], folder: &Path) -> Outcome {
    for (name, content) in FILES {
        fs::write(folder.join(name), content).expect("it is writable");
    }
    let file = |name: &str| -> PathBuf { folder.join(name) };
    let open = |name: &str| fs::File::create(file(name)).expect("it is writable");
    let child = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .arg(front.name())
        .args(words)
        .env_remove("MEMCACHED_SERVERS")
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(open("stdout"))
        .stderr(open("stderr"))
        .spawn()
        .expect("pummel starts");
    let (mut process, begun) = (Process(child), Instant::now());
    let status = loop {
        match process.0.try_wait().expect("it was started") {
            Some(status) => break Some(shell_status(status)),
            None if begun.elapsed() > LONGEST => break None,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    drop(process);
    let read = |name: &str| String::from_utf8_lossy(&fs::read(file(name)).expect("it was made")).into_owned();
    Outcome { status, text: read("stdout"), errors: read("stderr") }
}

/// Whether a text has a number that is none, as a word of its own.
fn has_no_number(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.map(str::to_ascii_lowercase).any(|word| ["nan", "inf", "infinity"].contains(&word.as_str()))
}

/// The lines that a whole report of a mix has, and the stream that they are on.
fn report_of<'a>(front: Front, words: &[String], outcome: &'a Outcome) -> (&'a str, &'static [&'static str]) {
    let Outcome { text, errors, .. } = outcome;
    let has = |name: &str| {
        words
            .iter()
            .any(|word| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    };
    match front {
        Front::Memaslap => {
            (text, &["cmd_get: ", "cmd_set: ", "get_misses: ", "object_bytes: ", "\nRun time: "])
        }
        Front::Mcperf => (
            errors,
            &["Total: connections ", "\nErrors: total ", "\nErrors: fd-unavail ", "\nCPU time [s]: "],
        ),
        Front::RedisBenchmark if has("--csv") => (text, &["\"test\",\"rps\","]),
        Front::RedisBenchmark if has("-q") => (text, &[" requests per second, p50="]),
        Front::RedisBenchmark => (
            text,
            &[
                " requests completed in ",
                " parallel clients\n",
                "\nLatency by percentile",
                "\nSummary:\n  throughput",
            ],
        ),
        Front::Memtier => (text, &["\nType  ", "\nTotals "]),
        Front::Mutilate if has("--loadonly") => (text, &[]),
        Front::Mutilate if has("--scan") || has("--search") => (text, &["#type "]),
        Front::Mutilate => (text, &["#type ", "\nTotal QPS = ", "\nMisses = ", "\nRX ", "\nTX "]),
    }
}

/// Whether a mix asks for something else than a run and its report on the usual stream.
fn has_no_report(front: Front, words: &[String]) -> bool {
    // To mutilate, -V is the length of values.
    let help: &[&str] = match front {
        Front::Mutilate => &["-h", "--version"],
        Front::RedisBenchmark => &["--help", "--version", "none", "", "--unknown", "-c50"],
        Front::Memaslap | Front::Mcperf => &["-h", "-V", "--version"],
        Front::Memtier => &["--help", "--version", "--unknown"],
    };
    let takes_stdout = words.iter().any(|word| word == "-" || word.ends_with("=-"));
    words.iter().any(|word| help.contains(&word.as_str())) || takes_stdout && front != Front::Mcperf
}

/// Whether a mix had a report, or what is wrong with its outcome.
fn judge(front: Front, words: &[String], outcome: &Outcome) -> Result<bool, String> {
    let Outcome { status, text, errors } = outcome;
    let Some(status) = *status else { return Err(format!("it did not end within {LONGEST:?}")) };
    if errors.contains("panicked") || errors.contains("bug of pummel") || status >= 128 && status != 255 {
        return Err("it panicked, or was ended by a signal".to_owned());
    }
    let (report, lines) = report_of(front, words, outcome);
    let found = lines.iter().filter(|line| report.contains(*line)).count();
    if found > 0 && (has_no_number(text) || front == Front::Mcperf && has_no_number(errors)) {
        return Err("a report has a number that is none".to_owned());
    }
    if has_no_report(front, words) {
        let is_silent = status == 0 && text.is_empty() && errors.is_empty();
        return if is_silent { Err("it says nothing".to_owned()) } else { Ok(false) };
    }
    let statuses: &[i32] = match front {
        Front::Mutilate => &[0, 1, 255],
        Front::Memtier => &[0, 1, 2],
        Front::Memaslap | Front::Mcperf | Front::RedisBenchmark => &[0, 1],
    };
    if !statuses.contains(&status) {
        return Err(format!("its front has no status {status}"));
    }
    if (status == 0 || found > 0) && found < lines.len() {
        return Err(format!("status {status}, and {found} of the {} lines of a report", lines.len()));
    }
    // redis-benchmark prints its usage to standard output.
    let is_said = !errors.trim().is_empty() || text.starts_with("Invalid option ");
    if status != 0 && !is_said {
        return Err(format!("status {status} without a word on standard error"));
    }
    Ok(found > 0)
}

/// A command line as a shell takes it.
fn quoted(front: Front, words: &[String]) -> String {
    let quote = |word: &String| match word
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_./:,=".contains(letter))
    {
        true if !word.is_empty() => word.clone(),
        _ => format!("'{word}'"),
    };
    format!("pummel {} {}", front.name(), words.iter().map(quote).collect::<Vec<_>>().join(" "))
}

/// Follows one mix. Returns whether it had a report, or what is wrong with it, its number and its command line.
fn tried(front: Front, number: u64, servers: &Servers) -> Result<bool, String> {
    let words = words(front, number, servers);
    let folder = TempDir::new().expect("a temporary folder");
    let outcome = follow(front, &words, folder.path());
    judge(front, &words, &outcome).map_err(|what| {
        let end = |text: &str| {
            let count = text.chars().count();
            text.chars().skip(count.saturating_sub(1_500)).collect::<String>()
        };
        format!(
            "{}:{number}: {what} (status {:?})\n  {}\n--- standard output\n{}\n--- standard error\n{}\n",
            front.name(),
            outcome.status,
            quoted(front, &words),
            end(&outcome.text),
            end(&outcome.errors)
        )
    })
}

/// The mixes that are to be tried: all of some numbers of each front, or the one that the environment names.
fn asked_for() -> Vec<(Front, u64)> {
    if let Ok(one) = std::env::var("PUMMEL_OPTION_MIX") {
        let (name, number) = one.split_once(':').expect("PUMMEL_OPTION_MIX is FRONT:NUMBER");
        let front = Front::ALL.into_iter().find(|front| front.name() == name).expect("FRONT is one of five");
        return vec![(front, number.parse().expect("NUMBER is a number"))];
    }
    let count = std::env::var("PUMMEL_OPTION_MIXES");
    let count = count.map_or(MIXES, |count| count.parse().expect("PUMMEL_OPTION_MIXES is a number"));
    (0..count).flat_map(|number| Front::ALL.map(|front| (front, number))).collect()
}

#[test]
fn every_mix_of_options_ends_with_a_report_or_a_reason() {
    let mixes = asked_for();
    let (complaints, reports) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    for round in mixes.chunks(Front::ALL.len() * MIXES_PER_ROUND) {
        let servers = Servers::start();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(&(front, number)) = round.get(next.fetch_add(1, Ordering::Relaxed)) {
                match tried(front, number, &servers) {
                    Ok(has_report) => {
                        let mut reports = reports.lock().expect("no thread panics");
                        *reports.entry(front.name()).or_insert(0) += u64::from(has_report);
                    }
                    Err(complaint) => {
                        eprintln!("{complaint}");
                        complaints.lock().expect("no thread panics").push(complaint);
                    }
                }
            }
        };
        thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    }
    let complaints = complaints.into_inner().expect("no thread panics");
    assert!(
        complaints.is_empty(),
        "{} of {} mixes:\n{}",
        complaints.len(),
        mixes.len(),
        complaints.join("\n")
    );
    let reports = reports.into_inner().expect("no thread panics");
    eprintln!("reports among {} mixes: {reports:?}", mixes.len());
    let tries_all = mixes.len() > 1;
    assert!(
        !tries_all || reports.values().all(|&count| count > 0),
        "mixes that are all refused show nothing"
    );
}
