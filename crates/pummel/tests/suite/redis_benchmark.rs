//! The command line of redis-benchmark beside the original on one redis-server: the commands that the server sees, the layout of reports,
//! and how each ends.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::thread;

use tempfile::TempDir;

use crate::common::redis::{Monitor, Redis};
use crate::common::{Nobody, Process, Serve, shell_status, until, value_of};

/// The program of redis-tools, on which Debian's redis-server depends.
const ORIGINAL: &str = "redis-benchmark";

/// Names of commands that read statistics and settings of the server, or greet it, which the two do in their own way.
const ASIDE: [&str; 7] = ["info", "config", "slowlog", "latency", "cluster", "hello", "select"];

fn original(words: &[&str]) -> Output {
    Command::new(ORIGINAL)
        .args(words)
        .output()
        .expect("redis-benchmark is installed (apt-get install redis-tools)")
}

fn ours(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pummel"))
        .arg("redis-benchmark")
        .args(words)
        .output()
        .expect("pummel starts")
}

/// The output without the lines of progress that a terminal would have overwritten.
fn shown(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.split('\n').map(|line| line.rsplit('\r').next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The commands that a server sees while `run` runs, each with the number of times, and `#` in place of twelve digits.
fn seen(redis: &Redis, run: impl FnOnce() -> Output) -> (BTreeMap<String, u64>, Output) {
    const MARK: &str = "the-end-of-what-is-compared";
    redis.say("FLUSHALL");
    let monitor = Monitor::of(redis);
    let reader = thread::spawn(move || monitor.until(MARK));
    let output = run();
    redis.say(&format!("ECHO {MARK}"));
    let mut counts = BTreeMap::new();
    for words in reader.join().expect("it hears all") {
        let name = words.split('"').nth(1).unwrap_or_default().to_ascii_lowercase();
        if !ASIDE.contains(&&name[..]) {
            *counts.entry(without_drawn(&words)).or_insert(0) += 1;
        }
    }
    (counts, output)
}

/// Words with `#` in place of each twelve digits that follow each other.
fn without_drawn(words: &str) -> String {
    let mut text = String::new();
    let mut rest = words;
    while let Some(first) = rest.chars().next() {
        let is_drawn = rest.len() >= 12 && rest.as_bytes()[..12].iter().all(u8::is_ascii_digit);
        let len = if is_drawn { 12 } else { first.len_utf8() };
        text.push_str(if is_drawn { "#" } else { &rest[..len] });
        rest = &rest[len..];
    }
    text
}

/// The lines with `0` in place of each number, those of distributions once each.
fn layout(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut shape = String::new();
        for letter in line.chars() {
            let is_of_number = letter.is_ascii_digit() || letter == '.';
            match is_of_number {
                true if shape.ends_with('0') => {}
                true => shape.push('0'),
                // Numbers that stand in columns are as wide as they are.
                false if letter == ' ' && shape.ends_with(' ') => {}
                false => shape.push(letter),
            }
        }
        if lines.last() != Some(&shape) {
            lines.push(shape);
        }
    }
    lines
}

#[test]
fn a_server_sees_the_commands_that_the_original_sends() {
    let redis = Redis::start(&[]);
    let name = redis.name();
    let all = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset";
    for words in [
        &["-n", "100", "-q", "-t", all][..],
        &["-n", "200", "-r", "50", "-q", "-t", all],
        &["-n", "160", "-P", "16", "-c", "5", "-q", "-t", "set,get"],
        &["-n", "50", "-d", "100", "-q", "-t", "set,hset"],
        &["-n", "40", "-k", "0", "-c", "4", "-q", "-t", "set,get"],
        &["-n", "50", "-3", "-q", "-t", "get"],
        &["-n", "50", "--dbnum", "2", "-q", "-t", "set"],
        &["-n", "50", "--threads", "2", "-q", "-t", "get"],
        &["-n", "60", "-r", "10", "eval", "return redis.call(\"ping\")", "0"],
        &["-n", "60", "-r", "10", "lpush", "my list", "__rand_int__", "a__rand_int__b"],
        &["-n", "60", "set", "a\"b\\", "__key__ \n x", "ex", "100"],
        &["-n", "30", "-t", "no-such-test"],
    ] {
        let words = [&["-s", &name][..], words].concat();
        let (theirs, their_end) = seen(&redis, || original(&words));
        let (own, own_end) = seen(&redis, || ours(&words));
        assert_eq!(own, theirs, "{words:?}");
        assert_eq!((own_end.status.code(), their_end.status.code()), (Some(0), Some(0)), "{words:?}");
    }
}

#[test]
fn reports_have_the_layout_of_the_original() {
    let redis = Redis::start(&[]);
    let name = redis.name();
    for words in [
        &["-n", "2000", "-t", "set,lrange_100"][..],
        &["-n", "2000", "--threads", "2", "-t", "get"],
        &["-n", "500", "-q"],
        &["-n", "500", "--csv"],
        &["-n", "500", "--csv", "-q", "-t", "get,mset"],
        &["-n", "500", "-r", "10", "-q", "lpush", "l", "__rand_int__"],
        &["-n", "500", "-k", "0", "get", "a b"],
    ] {
        let words = [&["-s", &name][..], words].concat();
        let theirs = layout(&shown(&original(&words)));
        // The newest test is in the suite of later versions of the original.
        let own = layout(&shown(&ours(&words)));
        let own: Vec<String> = own.into_iter().filter(|line| !line.contains("XADD")).collect();
        assert_eq!(own, theirs, "{words:?}");
    }
}

#[test]
fn each_test_is_kept_to_its_number_and_its_report_says_what_the_server_counts() {
    let redis = Redis::start(&[]);
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("r.json");
    let words = ["-s", &redis.name(), "-n", "1003", "-P", "16", "-t", "set,get", "--json"];
    let ended = ours(&[&words[..], &[json.to_str().expect("UTF-8")]].concat());
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    for test in ["set", "get"] {
        let path = folder.path().join(format!("r.{test}.json"));
        let result = value_of(&std::fs::read_to_string(path).expect("each test has a result"));
        assert_eq!(
            (result["status"].as_str(), result["front"].as_str()),
            (Some("complete"), Some("redis-benchmark"))
        );
        assert_eq!(result["totals"]["completed"], 1003);
        assert_eq!(redis.counted()[test], 1003);
    }
    assert_eq!(shown(&ended).matches("  1003 requests completed in ").count(), 2);
}

#[test]
fn an_error_a_lost_connection_and_a_server_that_is_not_there_end_the_tests() {
    let redis = Redis::start(&[]);
    let said = |ended: &Output| String::from_utf8_lossy(&ended.stderr).into_owned();
    let words = ["-s", &redis.name(), "-n", "20", "nosuchcommand", "a"];
    let (theirs, own) = (original(&words), ours(&words));
    assert_eq!((own.status.code(), theirs.status.code()), (Some(1), Some(1)));
    let line =
        |ended: &Output| said(ended).lines().find(|line| line.starts_with("Error from")).map(str::to_owned);
    assert!(line(&own).is_some() && line(&own) == line(&theirs), "{own:?} {theirs:?}");

    let closed = Redis::start(&["--requirepass", "pw"]);
    let words = ["-s", &closed.name(), "-a", "wrong", "-n", "20", "-t", "get"];
    let (theirs, own) = (original(&words), ours(&words));
    assert_eq!(own.status.code(), Some(1));
    assert!(line(&own).is_some_and(|line| line.contains("WRONGPASS")), "{own:?} {theirs:?}");

    let nobody = Nobody::new();
    let port = nobody.address.port().to_string();
    let own = ours(&["-p", &port, "-n", "20", "-t", "set,get"]);
    let expected = format!("Could not connect to Redis at 127.0.0.1:{port}: Connection refused");
    assert_eq!(own.status.code(), Some(1));
    assert!(said(&own).contains(&expected) && own.stdout.is_empty(), "{own:?}");
    let own = Command::new(env!("CARGO_BIN_EXE_pummel")).args(["valkey-benchmark", "-p", &port]).output();
    assert!(said(&own.expect("pummel starts")).contains("Could not connect to server at"));

    let closing = Serve::start("--protocol resp --fault close-after=50");
    let (_, port) = closing.name.rsplit_once(':').expect("an address");
    let own = ours(&["-p", port, "-n", "1000", "-c", "2", "-t", "set,get"]);
    assert_eq!(own.status.code(), Some(1));
    assert!(said(&own).contains("Error: "), "{own:?}");
    let text = shown(&own);
    assert!(text.contains("====== SET ======") && !text.contains("====== GET ======"), "{text}");
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_sent() {
    let redis = Redis::start(&[]);
    let ended = ours(&["-s", &redis.name(), "-n", "20", "-t", "set,get", "--hdr", "no/such/directory/r.hdr"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("no/such/directory/r.set.hdr"), "{ended:?}");
    assert!(!redis.counted().contains_key("set"), "nothing is sent");
}

#[test]
fn an_interruption_leaves_the_report_of_the_test_and_ends_all() {
    let redis = Redis::start(&[]);
    let mut process = Process(
        Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(["redis-benchmark", "-s", &redis.name(), "-l", "-n", "100000000", "-t", "set,get"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("pummel starts"),
    );
    until("some requests", || redis.counted().get("set").filter(|count| **count > 1_000).copied());
    process.interrupt();
    let mut text = String::new();
    let mut out = process.0.stdout.take().expect("it is piped");
    std::io::Read::read_to_string(&mut out, &mut text).expect("it is text");
    assert_eq!(shell_status(process.0.wait().expect("it is our child")), 130);
    assert_eq!(
        (text.matches("====== SET ======").count(), text.matches("====== GET").count()),
        (1, 0),
        "{text}"
    );
}

#[test]
fn idle_connections_are_there_until_the_user_ends_them() {
    let redis = Redis::start(&[]);
    let mut process = Process(
        Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(["redis-benchmark", "-s", &redis.name(), "-I", "-c", "7"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("pummel starts"),
    );
    // The connection that asks is one of them.
    until("seven connections", || redis.say("INFO clients").contains("connected_clients:8\r").then_some(()));
    process.interrupt();
    let mut text = String::new();
    let mut out = process.0.stdout.take().expect("it is piped");
    std::io::Read::read_to_string(&mut out, &mut text).expect("it is text");
    process.0.wait().expect("it is our child");
    assert!(
        text.starts_with("Creating 7 idle connections and waiting forever (Ctrl+C when done)\n"),
        "{text}"
    );
    assert!(text.contains("clients: 7\r") && !redis.counted().contains_key("ping"), "{text}");
}

#[test]
fn a_cluster_is_followed_and_its_nodes_are_named() {
    let cluster = Serve::start("--cluster 3");
    let (_, port) = cluster.name.rsplit_once(':').expect("an address");
    let ended = ours(&["-p", port, "--cluster", "-n", "3000", "-r", "100", "-t", "set,get"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let text = shown(&ended);
    assert!(text.contains("Cluster has 3 master nodes:\n\nMaster 0: 127.0.0.1:"), "{text}");
    assert_eq!(text.matches("  cluster mode: yes (3 masters)\n").count(), 2, "{text}");
    assert_eq!(text.matches("  3000 requests completed in ").count(), 2, "{text}");
    let truth = cluster.truth();
    for verb in ["set", "get"] {
        assert_eq!(truth.held_us(verb).len(), 3000, "each command went to the node of its key");
    }
    // A process alone on its port is no cluster.
    let redis = Serve::start("--protocol resp");
    let (_, port) = redis.name.rsplit_once(':').expect("an address");
    let ended = ours(&["-p", port, "--cluster", "-n", "30", "-t", "set"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
}

#[test]
fn commands_of_valkey_benchmark_go_in_turns_within_a_batch() {
    let redis = Redis::start(&[]);
    let name = redis.name();
    let run = |words: &[&str]| {
        let words = [&["valkey-benchmark", "-s", &name, "-c", "1", "-q"][..], words].concat();
        Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).output().expect("pummel starts")
    };
    let (counts, ended) = seen(&redis, || {
        run(&[
            "-n",
            "50",
            "-P",
            "5",
            "-r",
            "9",
            "2",
            "SET",
            "k:__rand_1st__",
            "<__data__>:__rand_1st__",
            ";",
            "GET",
            "k",
        ])
    });
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    // 50 requests are 16 turns of two SET and one GET, and two SET more.
    let expected = [("\"GET\" \"k\"", 16), ("\"SET\" \"k:#\" \"<VXK>:#\"", 34)];
    assert_eq!(counts, expected.map(|(words, count)| (words.to_owned(), count)).into_iter().collect());
    let ended = run(&["--duration", "1", "--warmup", "1", "--rps", "200", "-t", "get"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
