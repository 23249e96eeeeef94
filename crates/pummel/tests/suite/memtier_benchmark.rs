//! The command line of memtier_benchmark on real servers: what they see, the layout of reports, the documents, and how each ends.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::redis::{Monitor, Redis};
use crate::common::{Memcached, Nobody, Process, Serve, until};

/// Names of commands that read statistics and settings of the server, greet it, or ask it for its time.
const ASIDE: [&str; 7] = ["info", "config", "slowlog", "latency", "cluster", "hello", "exists"];

fn memtier(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.arg("memtier_benchmark").args(words);
    command
}

fn run(words: &[&str]) -> Output {
    memtier(words).output().expect("pummel starts")
}

/// The output of a run that has to end well.
fn report(words: &[&str]) -> String {
    let ended = run(words);
    assert_eq!(ended.status.code(), Some(0), "{words:?} {ended:?}");
    String::from_utf8(ended.stdout).expect("UTF-8")
}

fn errors(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

/// The words of the commands that a server sees while `run` runs, without their quotes.
fn seen(redis: &Redis, run: impl FnOnce()) -> Vec<Vec<String>> {
    const MARK: &str = "the-end-of-what-is-compared";
    let monitor = Monitor::of(redis);
    let reader = thread::spawn(move || monitor.until(MARK));
    run();
    redis.say(&format!("ECHO {MARK}"));
    let commands = reader.join().expect("it hears all").into_iter();
    let commands =
        commands.map(|words| words.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    let is_aside =
        |words: &Vec<String>| words.first().is_some_and(|name| ASIDE.contains(&&*name.to_ascii_lowercase()));
    commands.filter(|words| !is_aside(words)).collect()
}

/// The number of a key behind the prefix of all.
fn number_of(key: &str) -> u64 {
    key.strip_prefix("memtier-").and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{key}"))
}

/// The cells of the row of a table that begins with this name.
fn row<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("no row {name}: {text}")).split_whitespace().collect()
}

fn json_of(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("it was written")).expect("a whole document")
}

#[test]
fn clients_store_and_then_read_and_all_of_them_ask_for_the_same_keys() {
    let redis = Redis::start(&[]);
    let socket = redis.name();
    let words = ["-S", &socket, "-c", "1", "-t", "1", "-n", "22", "--key-maximum", "50", "-d", "5"];
    let requests = seen(&redis, || drop(report(&words)));
    let names: String = requests.iter().map(|words| words[0].chars().next().unwrap_or_default()).collect();
    assert_eq!(names.to_ascii_uppercase(), "SGGGGGGGGGGSGGGGGGGGGG");
    assert_eq!((requests[0].len(), &*requests[0][2]), (3, "xxxxx"));
    assert!(requests.iter().all(|words| number_of(&words[1]) <= 50));

    // Both clients draw what the one drew, and not so with seeds of their own.
    let several = |more: &[&str]| {
        let words =
            [&["-S", &socket, "-c", "2", "-t", "1", "-n", "22", "--key-maximum", "50"], more].concat();
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let requests = seen(&redis, || drop(report(&words)));
        requests.iter().for_each(|words| *counts.entry(words[..2].join(" ")).or_default() += 1);
        counts.values().all(|count| count % 2 == 0)
    };
    assert!(several(&[]));
    assert!(!several(&["--distinct-client-seed"]));
}

#[test]
fn patterns_go_through_the_keys_as_the_original_does() {
    let redis = Redis::start(&[]);
    let socket = redis.name();
    let numbers = |words: &[&str]| {
        let words = [&["-S", &socket, "-t", "1"], words].concat();
        seen(&redis, || drop(report(&words))).iter().map(|words| number_of(&words[1])).collect::<Vec<u64>>()
    };
    let each = ["--key-minimum", "3", "--key-maximum", "7"];
    let sequential =
        numbers(&[&["-c", "1", "-n", "12", "--ratio", "1:0", "--key-pattern", "S:S"], &each[..]].concat());
    assert_eq!(sequential, [3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 3, 4]);
    let both =
        numbers(&[&["-c", "1", "-n", "6", "--ratio", "1:1", "--key-pattern", "S:S"], &each[..]].concat());
    assert_eq!(both, [3, 3, 4, 4, 5, 5], "SETs and GETs count for themselves");
    let parallel = [
        "-c",
        "3",
        "-n",
        "allkeys",
        "--ratio",
        "1:0",
        "--key-pattern",
        "P:P",
        "--key-minimum",
        "1",
        "--key-maximum",
        "30",
    ];
    let mut parallel = numbers(&parallel);
    parallel.sort_unstable();
    assert_eq!(parallel, (1..=30).collect::<Vec<u64>>(), "each key once");
    let normal = [
        "-c",
        "1",
        "-n",
        "400",
        "--key-pattern",
        "G:G",
        "--key-maximum",
        "1000",
        "--key-stddev",
        "20",
        "--key-median",
        "300",
    ];
    let normal = numbers(&normal);
    let near = normal.iter().filter(|number| (260..=340).contains(*number)).count();
    assert!(near > 350, "{near} of 400 within two deviations");
}

#[test]
fn values_expire_have_an_offset_and_wait_by_the_commands_of_the_original() {
    let redis = Redis::start(&[]);
    let socket = redis.name();
    let names = |more: &[&str]| {
        let words = [&["-S", &socket, "-c", "1", "-t", "1", "-n", "8", "--ratio", "1:1"], more].concat();
        let requests = seen(&redis, || drop(report(&words)));
        requests.iter().map(|words| words[0].to_ascii_lowercase()).collect::<Vec<String>>()
    };
    assert_eq!(names(&["--expiry-range", "30-60"]), ["setex", "get"].repeat(4));
    assert_eq!(names(&["--data-offset", "4"]), ["setrange", "getrange"].repeat(4));
    assert_eq!(names(&["--data-offset", "4", "--ratio", "0:1"]), ["getrange"; 8]);
    assert_eq!(
        names(&["--reconnect-interval", "3"]),
        ["set", "get"].repeat(4),
        "clients that come go on where others went"
    );
    let waits = names(&["--wait-ratio", "1:1", "--num-slaves", "0-1", "--wait-timeout", "1-2"]);
    assert_eq!(waits, ["wait", "set", "get", "set", "get", "wait", "set", "get"]);
}

#[test]
fn commands_of_the_user_take_turns_and_have_rows() {
    let redis = Redis::start(&[]);
    let socket = redis.name();
    let words = [
        "-S",
        &socket,
        "-c",
        "2",
        "-t",
        "2",
        "-n",
        "30",
        "--hide-histogram",
        "--command",
        "LPUSH __key__ __data__",
        "--command-ratio",
        "2",
        "--command",
        "LRANGE __key__ 0 -1",
    ];
    let mut text = String::new();
    let requests = seen(&redis, || text = report(&words));
    let counts = redis.counted();
    assert_eq!((counts["lpush"], counts["lrange"]), (80, 40));
    assert!(requests.iter().all(|words| number_of(&words[1]) <= 10_000_000));
    assert_eq!(
        row(&text, "Type")[1..],
        ["Ops/sec", "Avg.", "Latency", "p50", "Latency", "p99", "Latency", "p99.9", "Latency", "KB/sec"]
    );
    for name in ["Lpushs", "Lranges", "Totals"] {
        assert!(row(&text, name)[1].parse::<f64>().is_ok_and(|rate| rate > 0.0), "{text}");
    }
}

#[test]
fn reports_have_the_lines_of_the_original() {
    let redis = Redis::start(&[]);
    let text = report(&["-S", &redis.name(), "-c", "2", "-t", "2", "-n", "110"]);
    let head = "\
2         Threads
2         Connections per thread
110       Requests per client


ALL STATS
============================================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency   p99.9 Latency       KB/sec \n\
----------------------------------------------------------------------------------------------------------------------------
Sets   ";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("\nWaits           0.00          ---          ---             ---             ---             ---             ---          --- \n"));
    let distribution = "\n\n\nRequest Latency Distribution\nType     <= msec         Percent\n----";
    assert!(text.contains(distribution), "{text}");
    assert!(text.ends_with("---\nWAIT      0.000      100.000\n"), "{text}");
    let (sets, gets, totals) = (row(&text, "Sets"), row(&text, "Gets"), row(&text, "Totals"));
    let number = |cell: &str| cell.parse::<f64>().unwrap_or_else(|_| panic!("{cell}"));
    assert_eq!((sets[2], sets[3]), ("---", "---"));
    assert!((number(gets[1]) / number(sets[1]) - 10.0).abs() < 0.01);
    assert!((number(totals[1]) - number(gets[1]) - number(sets[1])).abs() < 0.02);
    assert!((number(totals[8]) - number(gets[8]) - number(sets[8])).abs() < 0.03, "{text}");
    assert_eq!((redis.counted()["set"], redis.counted()["get"]), (40, 400));
    assert!(!text.contains("nan") && !text.contains("NaN"));
}

#[test]
fn the_document_has_the_names_of_the_original_and_the_counts_of_the_server() {
    let redis = Redis::start(&[]);
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("m.json");
    let (socket, path) = (redis.name(), json.to_str().expect("UTF-8").to_owned());
    let prefix = folder.path().join("h");
    let words = [
        "-S",
        &socket,
        "-c",
        "3",
        "-t",
        "2",
        "-n",
        "100",
        "--json-out-file",
        &path,
        "-a",
        "pw",
        "--hdr-file-prefix",
        prefix.to_str().expect("UTF-8"),
        "--print-percentiles",
        "50,99.99,100",
        "-x",
        "2",
        "--print-all-runs",
    ];
    redis.say("CONFIG SET requirepass pw");
    let ended = run(&words);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = json_of(&json);
    let titles = [
        "RUN #1 RESULTS",
        "RUN #2 RESULTS",
        "BEST RUN RESULTS",
        "WORST RUN RESULTS",
        "AGGREGATED AVERAGE RESULTS (2 runs)",
    ];
    let text = String::from_utf8_lossy(&ended.stdout);
    for title in titles {
        assert!(text.contains(&format!("\n\n{title}\n=====")), "{title}");
        let run = &document[title];
        let count =
            |name: &str| run[name]["Count"].as_u64().unwrap_or_else(|| panic!("{title} {name}: {run}"));
        let times = if title.starts_with("AGG") { 2 } else { 1 };
        assert_eq!(count("Totals"), 600 * times);
        assert_eq!(count("Sets") + count("Gets") + count("Waits"), 600 * times);
        let names: BTreeSet<&str> = run["Gets"]["Percentile Latencies"]
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(names, BTreeSet::from(["p50.00", "p99.99", "p100.0", "Histogram log format"]));
        assert!(
            run["GET"]
                .as_array()
                .is_some_and(|lines| lines.last().is_some_and(|line| line["percent"] == 100.0))
        );
    }
    let seconds = document["RUN #1 RESULTS"]["Totals"]["Time-Serie"].as_object().expect("an object");
    assert_eq!(seconds.values().map(|second| second["Count"].as_u64().unwrap_or(0)).sum::<u64>(), 600);
    assert_eq!(document["configuration"]["protocol"], "redis");
    assert_eq!(document["run information"]["Requests per client"], 100);
    assert!(!document.to_string().contains("\"pw\""), "no password is kept");
    let names: BTreeSet<String> = std::fs::read_dir(folder.path())
        .expect("it is there")
        .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
        .collect();
    for run in [1, 2] {
        for kind in ["FULL_RUN", "SET_command_run", "GET_command_run"] {
            for ending in ["txt", "hgrm"] {
                assert!(names.contains(&format!("h_{kind}_{run}.{ending}")), "{names:?}");
            }
        }
    }
}

#[test]
fn each_client_has_a_table_where_that_is_asked_for() {
    let redis = Redis::start(&[]);
    let folder = TempDir::new().expect("a folder");
    let prefix = folder.path().join("c");
    let socket = redis.name();
    let stats = prefix.to_str().expect("UTF-8");
    let words =
        ["-S", &socket, "-c", "2", "-t", "2", "-n", "55", "--client-stats", stats, "--hide-histogram"];
    report(&words);
    let mut sums = [0_u64; 2];
    for (thread, client) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let path = folder.path().join(format!("c-1-{thread}-{client}.csv"));
        let text = std::fs::read_to_string(path).expect("every client has one");
        for line in text.lines().skip(2).take_while(|line| !line.is_empty()) {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |cell: usize| cells[cell].parse::<u64>().expect("a number");
            sums[0] += number(1);
            sums[1] += number(6);
            assert_eq!(number(6), number(11) + number(12));
        }
    }
    assert_eq!(sums, [redis.counted()["set"], redis.counted()["get"]]);
}

#[test]
fn memcached_is_asked_by_both_protocols_and_with_several_keys() {
    let memcached = Memcached::start();
    let (_, port) = memcached.name.rsplit_once(':').expect("an address");
    for protocol in ["memcache_text", "memcache_binary"] {
        let words = [
            "-s",
            "127.0.0.1",
            "-p",
            port,
            "-P",
            protocol,
            "-c",
            "2",
            "-t",
            "1",
            "-n",
            "110",
            "--key-maximum",
            "10",
            "--hide-histogram",
        ];
        let text = report(&words);
        assert!(row(&text, "Gets")[2].parse::<f64>().is_ok_and(|hits| hits > 0.0), "{text}");
    }
    let words = [
        "-s",
        "127.0.0.1",
        "-p",
        port,
        "-P",
        "memcache_text",
        "--multi-key-get",
        "5",
        "-c",
        "1",
        "-t",
        "1",
        "-n",
        "30",
        "--hide-histogram",
    ];
    let text = report(&words);
    let gets = row(&text, "Gets");
    let number = |cell: &str| cell.parse::<f64>().unwrap_or_else(|_| panic!("{cell}"));
    assert!(
        ((number(gets[2]) + number(gets[3])) / number(gets[1]) - 5.0).abs() < 0.01,
        "five keys each: {text}"
    );
    let binary = run(&["-p", port, "-P", "memcache_binary", "--command", "PING"]);
    assert_eq!(binary.status.code(), Some(1), "{binary:?}");
}

#[test]
fn each_end_has_the_status_of_the_original() {
    let redis = Redis::start(&[]);
    let socket = redis.name();
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&help.stdout).starts_with("Usage: memtier_benchmark [options]\n"));
    assert_eq!(run(&["-v"]).status.code(), Some(0));
    let wrong = run(&["-S", &socket, "--clients", "none"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(errors(&wrong), "error: clients must be greater than zero.\n");

    let nobody = Nobody::new();
    let refused = run(&["-p", &nobody.address.port().to_string(), "-s", "127.0.0.1", "-n", "5"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors(&refused).contains("Connection error: "), "{refused:?}");

    let failing =
        ["-S", &socket, "-c", "1", "-t", "1", "-n", "5", "--command", "LPUSH s 1", "--hide-histogram"];
    redis.say("SET s 1");
    let failed = run(&failing);
    assert_eq!(failed.status.code(), Some(0));
    assert!(errors(&failed).contains("handle error response: WRONGTYPE"), "{failed:?}");
    assert_eq!(run(&[&failing[..], &["--strict"]].concat()).status.code(), Some(1));

    let closed = Redis::start(&["--requirepass", "pw"]);
    let login = run(&["-S", &closed.name(), "-a", "wrong", "-n", "5"]);
    assert_eq!(login.status.code(), Some(1));
    assert!(errors(&login).contains("error: authentication failed [WRONGPASS"), "{login:?}");

    let same = ["-S", &socket, "-n", "5", "--json", "r.json", "--json-out-file", "./r.json"];
    let twice = run(&same);
    assert_eq!(twice.status.code(), Some(1));
    assert!(errors(&twice).contains("--json already writes to this one"), "{twice:?}");
    let unwritable = run(&["-S", &socket, "-n", "5", "--json-out-file", "no/such/directory/m.json"]);
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(errors(&unwritable).contains("no/such/directory/m.json"), "{unwritable:?}");
}

#[test]
fn an_interruption_leaves_reports_and_a_whole_document() {
    let redis = Redis::start(&[]);
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("m.json");
    let out = folder.path().join("m.txt");
    let (socket, json_path, out_path) =
        (redis.name(), json.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let words = [
        "-S",
        &socket,
        "-c",
        "2",
        "-t",
        "1",
        "--test-time",
        "500",
        "-x",
        "3",
        "--json-out-file",
        json_path,
        "-o",
        out_path,
    ];
    let mut process =
        Process(memtier(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("pummel starts"));
    until("some requests", || redis.counted().get("get").filter(|count| **count > 1_000).copied());
    process.interrupt();
    let status = process.0.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    let document = json_of(&json);
    assert_eq!(document["BEST RUN RESULTS"]["Runtime"]["Interrupted"], "true");
    let text = std::fs::read_to_string(&out).expect("it was written");
    assert!(text.starts_with(
        "1         Threads\n2         Connections per thread\n500       Seconds\n\n\nBEST RUN RESULTS\n"
    ));
}

#[test]
fn a_rate_limit_holds_for_each_connection_and_clients_come_in_steps() {
    let redis = Redis::start(&[]);
    let socket = redis.name();
    let limited = [
        "-S",
        &socket,
        "-c",
        "2",
        "-t",
        "1",
        "--test-time",
        "2",
        "--rate-limiting",
        "200",
        "--hide-histogram",
    ];
    let rate: f64 = row(&report(&limited), "Totals")[1].parse().expect("a number");
    assert!((rate / 400.0 - 1.0).abs() < 0.1, "{rate}");
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("m.json");
    let steps = [
        "-S",
        &socket,
        "-c",
        "4",
        "-t",
        "2",
        "--clients-start",
        "1",
        "--clients-step",
        "2",
        "--step-duration",
        "1",
        "--test-time",
        "3",
        "--hide-histogram",
        "--json-out-file",
        json.to_str().expect("UTF-8"),
    ];
    let ended = run(&steps);
    assert!(errors(&ended).contains("  Step 1:   1s -   2s :   3 clients  "), "{ended:?}");
    let active = &json_of(&json)["ALL STATS"]["Active Clients"];
    assert_eq!(
        (&active["0"]["Total clients"], &active["2"]["Clients per thread"]),
        (&Value::from(2), &Value::from(4))
    );
}

#[test]
fn a_server_that_goes_away_leaves_a_report() {
    let closing = Serve::start("--protocol resp --fault close-after=50");
    let (_, port) = closing.name.rsplit_once(':').expect("an address");
    let ended = run(&["-s", "127.0.0.1", "-p", port, "-n", "1000", "-c", "2", "-t", "1", "--hide-histogram"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("\nTotals "), "{ended:?}");
    assert!(errors(&ended).contains("requests failed"), "{ended:?}");
    let again = run(&[
        "-s",
        "127.0.0.1",
        "-p",
        port,
        "-n",
        "1000",
        "-c",
        "2",
        "-t",
        "1",
        "--hide-histogram",
        "--reconnect-on-error",
    ]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
}
