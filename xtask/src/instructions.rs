//! `cargo xtask instructions`: how many instructions a request costs the worker, counted by callgrind.
//!
//! A count does not depend on how busy the machine is, so that builds of different days can be compared. A run of few
//! requests is taken from a run of more with the same seed: what starting, loading and reporting cost cancels out.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::server::{Kind, Server};
use crate::programs::{build, release, said_by};
use crate::spread::Spread;

/// Requests of the shorter run of a row, at least.
const SHORTER_MIN: u64 = 20_000;

/// Requests by which the longer run of a row is longer, at least.
const REQUESTS_MIN: u64 = 100_000;

/// Number of times by which the longer run fills all slots more than the shorter one, so that how replies came together at the
/// beginning of each, which differs from run to run, is a small part of what is counted.
const ROUNDS_MIN: u64 = 5;

/// Name of the trace in the folder of the counts.
const TRACE: &str = "requests.csv";

/// Requests of the trace: no row that replays it asks for more.
const TRACE_REQUESTS: u64 = SHORTER_MIN + REQUESTS_MIN;

/// Keys of the trace, each of which is stored first.
const TRACE_KEYS: u64 = 10_000;

/// Name of the plan of the run in the folder of the counts.
const PLAN: &str = "plan.toml";

/// Length of an interval of the runs in nanoseconds, longer than any of them.
const INTERVAL_NS: i64 = 1_000_000_000_000;

/// A function that only the thread of a worker calls, as callgrind names it.
const WORKER: &str = "pummel_engine::worker::Worker<";

/// One situation in which a request is counted.
struct Row {
    name: &'static str,
    servers: u16,
    /// Most clients at one time.
    connections: u32,
    /// Most requests of a client at one time.
    depth: u32,
    /// The command line of a run, with the places that [`Row::words`] fills.
    words: &'static str,
}

/// The words that `{run}` stands for.
const RUN: &str =
    "run -s {servers} -c {connections} -d {depth} -n {requests} --seed 1 --timeout 60s --no-baseline {extra}";

/// Gets of one key, over connections that stay.
const GETS: &str = "{run} --mix get:1";

/// The pace of the open loops is one that a program keeps up with while each of its instructions is counted.
const OPEN: &str = "{run} --mix get:1 --rate 4k";

const ROWS: [Row; 14] = [
    Row { name: "closed, depth 1, 50 connections", servers: 1, connections: 50, depth: 1, words: GETS },
    Row { name: "closed, depth 16, 50 connections", servers: 1, connections: 50, depth: 16, words: GETS },
    Row {
        name: "closed, depth 1, 10,000 connections",
        servers: 1,
        connections: 10_000,
        depth: 1,
        words: GETS,
    },
    Row {
        name: "closed, depth 16, 10,000 connections",
        servers: 1,
        connections: 10_000,
        depth: 16,
        words: GETS,
    },
    Row { name: "open, depth 1, 50 connections", servers: 1, connections: 50, depth: 1, words: OPEN },
    Row { name: "open, depth 1, 10,000 connections", servers: 1, connections: 10_000, depth: 1, words: OPEN },
    Row {
        name: "lanes to two servers, depth 1, 50 clients",
        servers: 2,
        connections: 50,
        depth: 1,
        words: "{run} --mix get:1 --route ketama",
    },
    Row {
        name: "multi-gets of 8 keys, depth 1, 50 connections",
        servers: 1,
        connections: 50,
        depth: 1,
        words: "{run} --mix get:1 --multiget 8",
    },
    Row {
        name: "trace, as fast as it is answered, 50 connections",
        servers: 1,
        connections: 50,
        depth: 1,
        words: "{run} --trace {trace} --pace fast",
    },
    Row {
        name: "churn: 50 connections at a time, each of 10 gets",
        servers: 1,
        connections: 50,
        depth: 1,
        words: "{run} --mix get:1 --calls-per-connection 10",
    },
    Row {
        name: "churn: mcperf, connections of 10 sets in turn",
        servers: 1,
        connections: 1,
        depth: 1,
        words: "mcperf -s 127.0.0.1 -p {port} -m set -z d200 -n {tenth} -N 10",
    },
    Row {
        name: "sequences: mcperf, sets of many sizes, 10 connections in turn",
        servers: 1,
        connections: 1,
        depth: 1,
        words: "mcperf -s 127.0.0.1 -p {port} -m set -z u1,400 -n 10 -N {tenth}",
    },
    Row {
        name: "sequences: mcperf, sets of many sizes with gaps, 10 connections in turn",
        servers: 1,
        connections: 1,
        depth: 1,
        words: "mcperf -s 127.0.0.1 -p {port} -m set -z u1,400 -n 10 -N {tenth} -R u0.0001,0.0004",
    },
    Row {
        name: "windows: memaslap, 50 windows of 1,024 objects",
        servers: 1,
        connections: 50,
        depth: 1,
        words: "memaslap -s {servers} -c 50 -w 1k -X 200 -x {requests} --seed 1 --no-evidence",
    },
];

impl Row {
    /// Requests of the shorter run and of the longer one.
    fn requests(&self) -> [u64; 2] {
        let slots = u64::from(self.connections) * u64::from(self.depth);
        let (few, more) = ((2 * slots).max(SHORTER_MIN), (ROUNDS_MIN * slots).max(REQUESTS_MIN));
        [few, few + more]
    }

    /// The command line of a run of so many requests to the servers at these ports, with further options for `pummel run`.
    fn words(&self, ports: &[u16], requests: u64, extra: &str) -> String {
        let servers: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let places = [
            ("{run}", RUN),
            ("{servers}", &servers.join(",")),
            ("{port}", &ports[0].to_string()),
            ("{connections}", &self.connections.to_string()),
            ("{depth}", &self.depth.to_string()),
            ("{requests}", &requests.to_string()),
            ("{tenth}", &(requests / 10).to_string()),
            ("{trace}", TRACE),
            ("{extra}", extra),
        ];
        places.iter().fold(self.words.to_owned(), |words, (place, word)| words.replace(place, word))
    }
}

/// Counts the instructions that a request costs the worker's thread, by callgrind.
///
/// Closed and open loops, at depths 1 and 16, with 50 and 10,000 connections: gets over text, 30-byte keys, 200-byte values,
/// against memcached on loopback. Then clients of two servers, multi-gets, a trace, connections of 10 calls, sequences with sizes
/// and gaps, and windows of objects. Needs valgrind and memcached. Closed loops at 10,000 connections need `ulimit -n` of 10,100
/// or more.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Counts this build of pummel; several times for several columns [default: the release build].
    #[arg(long = "binary", value_name = "FILE")]
    binaries: Vec<PathBuf>,
    /// Counts each row so many times, the builds in turns; above 1 a cell has the median, the least and the greatest.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Only rows whose name contains TEXT.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = known_row)]
    rows: String,
    /// Further options for `pummel run`, separated by spaces, except `--backend`, `--wait` and `--interval`; rows of mcperf and
    /// memaslap do without them.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    extra: String,
}

/// The text of `--rows`, which the name of some row has to contain.
fn known_row(text: &str) -> Result<String, String> {
    let names = ROWS.map(|row| row.name);
    let is_known = names.iter().any(|name| name.contains(text));
    is_known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("no row has that in its name; there are {}", names.join("; ")))
}

/// Counts every row and prints a table; false when a row could not be counted.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let scratch = root.join("target/instructions");
    fs::create_dir_all(&scratch)?;
    fs::write(scratch.join(TRACE), trace(TRACE_REQUESTS))?;
    let binaries = match options.binaries.is_empty() {
        true => {
            build(root, ["pummel", "--bin", "pummel"])?;
            vec![release(root).join("pummel")]
        }
        false => options.binaries.iter().map(fs::canonicalize).collect::<io::Result<_>>()?,
    };
    println!("{}; instructions of the worker's thread for a request", Kind::Memcached.version()?);
    println!(
        "\n| | {} |",
        binaries.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" | ")
    );
    println!("|---|{}", "---|".repeat(binaries.len()));
    let mut is_whole = true;
    for row in ROWS.iter().filter(|row| row.name.contains(&options.rows)) {
        let servers = (0..row.servers)
            .map(|_| Server::start(Kind::Memcached, 0, row.connections, &scratch))
            .collect::<io::Result<Vec<_>>>()?;
        let mut counts: Vec<Vec<io::Result<f64>>> = binaries.iter().map(|_| Vec::new()).collect();
        for _ in 0..options.rounds {
            for (binary, counted) in binaries.iter().zip(&mut counts) {
                counted.push(count(row, binary, &servers, &options.extra, &scratch));
            }
        }
        is_whole &= counts.iter().flatten().all(Result::is_ok);
        println!(
            "| {} | {} |",
            row.name,
            counts.iter().map(|counts| cell(counts)).collect::<Vec<_>>().join(" | ")
        );
    }
    Ok(is_whole)
}

/// The counts of one build in one row, and the reason why one is missing.
fn cell(counts: &[io::Result<f64>]) -> String {
    if let Some(error) = counts.iter().find_map(|count| count.as_ref().err()) {
        return format!("not counted: {error}");
    }
    let Spread { median, min, max } = Spread::of(counts.iter().flatten().copied());
    match counts.len() {
        1 => format!("{median:.0}"),
        _ => format!("{median:.0} ({min:.0}-{max:.0})"),
    }
}

/// Instructions of the worker's thread for each request that the longer run makes more.
fn count(row: &Row, binary: &Path, servers: &[Server], extra: &str, scratch: &Path) -> io::Result<f64> {
    let ports: Vec<u16> = servers.iter().map(|server| server.port).collect();
    let mut totals = Vec::new();
    let [few, many] = row.requests();
    for requests in [few, many] {
        servers.iter().try_for_each(Server::wait_until_left)?;
        totals.push(worker_thread(binary, &row.words(&ports, requests, extra), scratch)?);
    }
    Ok((totals[1] as f64 - totals[0] as f64) / (many - few) as f64)
}

/// Instructions of the worker's thread in a run of pummel with these words. The thread that makes the report may take more.
fn worker_thread(binary: &Path, words: &str, scratch: &Path) -> io::Result<u64> {
    // memaslap reads settings from the home directory.
    let explained = said_by(
        Command::new(binary)
            .arg("explain")
            .args(words.split_whitespace())
            .current_dir(scratch)
            .env("HOME", scratch),
    )?;
    fs::write(scratch.join(PLAN), alike(&explained).map_err(io::Error::other)?)?;
    let directory = scratch.join("counts");
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir(&directory)?,
    }
    said_by(
        Command::new("valgrind")
            .args(["-q", "--tool=callgrind", "--separate-threads=yes"])
            .arg(format!("--callgrind-out-file={}", directory.join("thread").display()))
            .arg(binary)
            .args(["run", "--plan", PLAN, "--fail-on", "errors"])
            .current_dir(scratch),
    )?;
    let mut workers = Vec::new();
    for entry in fs::read_dir(&directory)? {
        let file = fs::read_to_string(entry?.path())?;
        workers.extend(file.contains(WORKER).then(|| total(&file)).flatten());
    }
    match workers[..] {
        [instructions] => Ok(instructions),
        _ => Err(io::Error::other(format!("{} threads, not one, called {WORKER}...>", workers.len()))),
    }
}

/// A plan whose worker waits by epoll and asleep, and hardly ever hands over an interval: mcperf and memaslap choose otherwise, and
/// how long they look for a reply awake depends on the machine.
fn alike(plan: &str) -> Result<String, toml::de::Error> {
    let mut plan: toml::Table = toml::from_str(plan)?;
    plan.insert("interval_ns".to_owned(), INTERVAL_NS.into());
    let engine = plan.entry("engine").or_insert_with(|| toml::Table::new().into());
    if let Some(engine) = engine.as_table_mut() {
        engine.insert("backend".to_owned(), "epoll".into());
        engine.insert("wait".to_owned(), "block".into());
    }
    Ok(plan.to_string())
}

/// A trace of so many requests: a store of each key, then nine gets and a set in turn, of keys that lie far apart.
fn trace(requests: u64) -> String {
    let mut rows = "time,key,op,size\n".to_owned();
    for request in 0..requests {
        let key = request * 7_919 % TRACE_KEYS;
        let op = if request < TRACE_KEYS || request % 10 == 9 { "set" } else { "get" };
        writeln!(rows, "{},key-{key:026},{op},200", request / 1_000).expect("a text takes every row");
    }
    rows
}

/// The sum of a thread's instructions, as callgrind writes it down: `totals: N`, or `summary: N`.
fn total(file: &str) -> Option<u64> {
    let line =
        file.lines().rev().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::{options, refusal};

    #[test]
    fn the_sum_of_a_thread_is_read() {
        assert_eq!(total("version: 1\nevents: Ir\nsummary: 7\nfn=(1)\n1 7\ntotals: 1234\n"), Some(1_234));
        assert_eq!(total("events: Ir\nsummary: 7\n"), Some(7));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn builds_and_rows_are_chosen() {
        let own: Options = options("--binary a --binary b --rounds 3 --rows open --extra --udp");
        assert_eq!(
            (own.binaries, own.rounds, own.extra.as_str()),
            (vec![PathBuf::from("a"), PathBuf::from("b")], 3, "--udp")
        );
        assert!(refusal::<Options>("--rows sideways").contains("closed, depth 1, 50 connections"));
    }

    /// The command lines of the shorter and the longer run of a row.
    fn words(name: &str) -> [String; 2] {
        let row = ROWS.iter().find(|row| row.name.starts_with(name)).unwrap();
        let ports = [11_211, 11_212];
        row.requests()
            .map(|requests| row.words(&ports[..usize::from(row.servers)], requests, "--no-evidence"))
    }

    #[test]
    fn a_row_fills_its_slots_more_often_in_the_longer_run() {
        let [shorter, longer] = words("closed, depth 16, 10,000 connections");
        assert!(shorter.starts_with("run -s 127.0.0.1:11211 -c 10000 -d 16 -n 320000 "), "{shorter}");
        assert!(shorter.ends_with(" --no-evidence --mix get:1"), "{shorter}");
        assert!(longer.contains(" -n 1120000 "), "{longer}");
    }

    #[test]
    fn a_client_with_lanes_has_two_servers() {
        assert!(words("lanes")[0].starts_with("run -s 127.0.0.1:11211,127.0.0.1:11212 -c 50 "));
    }

    #[test]
    fn other_command_lines_make_as_many_requests() {
        assert!(words("churn: mcperf")[1].contains(" -p 11211 -m set -z d200 -n 12000 -N 10"));
        assert!(words("sequences")[1].ends_with(" -n 10 -N 12000"));
        assert!(words("windows")[1].contains(" -x 120000 "));
    }

    #[test]
    fn every_place_of_a_command_line_is_filled() {
        for row in &ROWS {
            assert_eq!(words(row.name).map(|words| words.find(['{', '}'])), [None; 2], "{}", row.name);
        }
    }

    #[test]
    fn all_plans_wait_alike() {
        let plan =
            alike("interval_ns = 7\nseed = 1\n\n[engine]\nwait = \"brief\"\nbackend = \"auto\"\n").unwrap();
        let plan: toml::Table = toml::from_str(&plan).unwrap();
        assert_eq!(
            (plan["interval_ns"].as_integer(), plan["seed"].as_integer()),
            (Some(INTERVAL_NS), Some(1))
        );
        let engine = &plan["engine"];
        assert_eq!((engine["wait"].as_str(), engine["backend"].as_str()), (Some("block"), Some("epoll")));
    }

    #[test]
    fn the_trace_has_all_requests_of_the_rows_that_replay_it() {
        let mut replaying = ROWS.iter().filter(|row| row.words.contains("{trace}"));
        assert!(replaying.clone().count() > 0);
        assert!(replaying.all(|row| row.requests()[1] <= TRACE_REQUESTS));
    }

    #[test]
    fn the_trace_stores_each_key_before_it_asks_for_it() {
        let trace = trace(TRACE_KEYS + 20);
        let rows: Vec<&str> = trace.lines().skip(1).collect();
        let (stores, others) = rows.split_at(TRACE_KEYS as usize);
        assert!(stores.iter().all(|row| row.ends_with(",set,200")));
        let keys: BTreeSet<&str> = stores.iter().filter_map(|row| row.split(',').nth(1)).collect();
        assert_eq!((keys.len() as u64, keys.first().map(|key| key.len())), (TRACE_KEYS, Some(30)));
        assert_eq!(others.iter().filter(|row| row.ends_with(",get,200")).count(), 18);
        assert_eq!(rows[1], "0,key-00000000000000000000007919,set,200");
    }

    #[test]
    fn a_cell_has_the_range_of_several_counts() {
        assert_eq!(cell(&[Ok(1501.2)]), "1501");
        assert_eq!(cell(&[Ok(1503.0), Ok(1499.0), Ok(1501.0)]), "1501 (1499-1503)");
        let lost = io::Error::other("memcached is needed");
        assert_eq!(cell(&[Ok(1501.2), Err(lost)]), "not counted: memcached is needed");
    }
}
