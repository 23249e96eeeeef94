//! Traces on the command line: looked at, converted, sampled and divided, and replayed against a real server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[cfg(feature = "agents")]
use crate::common::agent::{Agent, list};
use crate::common::{Memcached, Serve, pummel};
use pummel_logic::rng::scramble;
use tempfile::TempDir;

/// 4,000 rows in 20 seconds of Twitter's format: a store of each of 400 keys, then reads by 13 clients.
fn twitter() -> String {
    let row = |number: u64| {
        let (second, key, client) = (number / 200, number % 400, number % 13);
        let op = if number < 400 { "set" } else { "get" };
        format!("{second},key-{key},10,{},{client},{op},{}\n", 20 + key, if number < 400 { 600 } else { 0 })
    };
    (0..4_000).map(row).collect()
}

fn saved(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path
}

/// The status, the standard output and the standard error of `pummel trace` with these words.
fn trace(words: &[&str], input: Option<&str>) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.arg("trace").args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::piped());
    let mut child = command.spawn().expect("pummel starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that ends early reads no more.
    let _ = stdin.write_all(input.unwrap_or_default().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn name(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_trace_is_described_and_its_first_rows_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = saved(&folder, "t.csv", &twitter());
    let (status, said, _) = trace(&["stat", name(&path)], None);
    assert_eq!(status, Some(0));
    for part in [
        "format     twitter",
        "requests   4000",
        "get      3600 (90.00 %)",
        "keys       about 40",
        "busiest second 200",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (status, piped, _) = trace(&["stat", "-"], Some(&twitter()));
    assert_eq!((status, piped), (Some(0), said));
    let (_, first, _) = trace(&["head", "-n", "2", name(&path)], None);
    assert_eq!(
        first,
        "time_s,op,key,key_size,size,ttl,client,count\n0,set,key-0,10,20,600,0,1\n0,set,key-1,10,21,600,1,1\n"
    );
    let (status, _, why) = trace(&["stat", name(&saved(&folder, "x", "hello\nworld\n"))], None);
    assert!(status == Some(1) && why.contains("--format"), "{why}");
    let (status, _, why) = trace(&["stat", "--format", "nonsense", name(&path)], None);
    assert!(status == Some(2) && why.contains("twitter, kvcache"), "{why}");
}

#[test]
fn traces_are_converted_sampled_and_divided_without_losing_a_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = saved(&folder, "t.csv", &twitter());
    let rows = |path: &Path| {
        let (status, said, why) = trace(&["stat", name(path)], None);
        assert_eq!(status, Some(0), "{why}");
        let line = said.lines().find_map(|line| line.strip_prefix("requests   ")).expect("requests");
        line.parse::<u64>().expect("a number")
    };
    let at = |name: &str| folder.path().join(name);
    for made in ["t.ptr", "t.csv.gz", "u.csv"] {
        let (status, _, why) = trace(&["convert", name(&path), "-o", name(&at(made))], None);
        assert!(status == Some(0) && why.contains("4000 of 4000"), "{why}");
        assert_eq!(rows(&at(made)), 4_000, "{made}");
    }
    let keys = |path: &Path| {
        let (_, said, _) = trace(&["stat", name(path)], None);
        said.lines().find(|line| line.starts_with("keys")).map(str::to_owned)
    };
    assert_eq!(keys(&at("t.csv.gz")), keys(&path));
    let halves: u64 = (1..=2)
        .map(|part| {
            let made = at(&format!("half-{part}.ptr"));
            assert_eq!(
                trace(&["shard", &format!("{part}/2"), name(&path), "-o", name(&made)], None).0,
                Some(0)
            );
            rows(&made)
        })
        .sum();
    assert_eq!(halves, 4_000);
    let (status, _, why) = trace(&["sample", "--share", "0.25", name(&path), "-o", name(&at("s.csv"))], None);
    assert_eq!(status, Some(0), "{why}");
    let sampled = rows(&at("s.csv"));
    assert!((600..1_400).contains(&sampled), "{sampled}");
    assert_eq!(trace(&["shard", "3/2", name(&path), "-o", name(&at("x"))], None).0, Some(2));
}

#[test]
fn a_trace_is_replayed_with_its_times_and_operations() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    let path = saved(&folder, "t.csv", &twitter());
    let words = format!(
        "run -s {} -T 2 -c 10 --trace {} --pace trace:20 --trace-by key --quiet",
        server.name,
        name(&path)
    );
    let result = pummel(&words).expect(0).json();
    assert_eq!((result.count("ops/set/completed"), result.count("ops/get/hits")), (400, 3_600));
    assert_eq!((result.count("trace/rows"), result.count("trace/requests")), (4_000, 4_000));
    assert!(result.count("trace/keys").abs_diff(400) < 12);
    assert_eq!(result.at("trace/whole").as_bool(), Some(true));
    let seconds = result.at("seconds").as_f64().expect("a number");
    assert!((0.95..3.0).contains(&seconds), "20 s of the trace are 1 s: {seconds}");
}

/// 100,000 rows in 50 seconds, which become 5: converted, streamed from pummel's own format, and each due at a tenth of its time.
#[test]
fn every_row_of_a_converted_trace_is_due_at_its_time_and_memory_stays_small() {
    const ROWS: u64 = 100_000;
    let (server, folder) = (Serve::start(""), tempfile::tempdir().expect("a folder"));
    let at = |name: &str| folder.path().join(name);
    let row = |number: u64| {
        let (key, op) = (scramble(number) % 5_000, if number.is_multiple_of(10) { "set" } else { "get" });
        format!("{},key-{key:012},{op},{},{}\n", 500 * number, 50 + key % 400, number % 97)
    };
    let text: String = (0..ROWS).map(row).collect();
    saved(&folder, "t.csv", &format!("time_us,key,op,size,client\n{text}"));
    let (status, _, why) = trace(&["convert", name(&at("t.csv")), "-o", name(&at("t.ptr"))], None);
    assert_eq!(status, Some(0), "{why}");
    let words = format!(
        "run -s {} -T 2 -c 20 --trace {} --pace trace:10 --samples {} --quiet",
        server.name,
        name(&at("t.ptr")),
        name(&at("samples.csv"))
    );
    let result = pummel(&words).expect(0).json();
    assert_eq!((result.count("trace/rows"), result.count("totals/requests")), (ROWS, ROWS));
    assert_eq!(result.count("samples/dropped"), 0);
    let samples = std::fs::read_to_string(at("samples.csv")).expect("it was written");
    let due = |line: &str| line.split(',').next().and_then(|due| due.parse().ok()).expect("a time");
    let mut dues: Vec<u64> = samples.lines().skip(1).map(due).collect();
    dues.sort_unstable();
    let expected: Vec<u64> = (0..ROWS).map(|number| 50_000 * number).collect();
    assert!(dues == expected, "{} rows, {:?} to {:?}", dues.len(), dues.first(), dues.last());
    let late = (result.count("trace/late_rows"), result.number("trace/latest_us"));
    assert!(late.0 <= ROWS && (late.0 == 0) == (late.1 <= 10_000.0), "{late:?}");
    let peak_bytes = result.count("generator/peak_rss_bytes");
    assert!(peak_bytes <= 96 << 20, "{peak_bytes} bytes");
}

#[test]
fn a_trace_from_standard_input_is_replayed_as_fast_as_it_is_answered() {
    let server = Memcached::start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(["run", "-s", &server.name, "--trace", "-", "--pace", "fast", "--quiet"]).args(["-c", "4"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("pummel starts");
    child.stdin.take().expect("a pipe").write_all(twitter().as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && text.contains("4,000 rows read, all of it"), "{text}");
}

#[test]
fn options_that_have_no_effect_beside_a_trace_are_refused() {
    let refused = |words: &str, part: &str| {
        let error = pummel(&format!("run -s 127.0.0.1:1 {words}")).expect(2).errors;
        assert!(error.contains(part), "{words}: {error}");
    };
    refused("--trace t --mix get:1", "the trace says what is asked");
    refused("--trace t --warmup 1s", "--trace-warmup");
    refused("--trace t --until p99:2%", "a replay ends with its trace, or with '--time' or '--requests'");
    refused("--trace t --rate 10 --stage 1s:20", "its requests are due at their own times");
    refused("--trace t --conn-rate 10", "stays on one connection");
    refused("--trace t --read-through", "--fills own");
    refused("--trace t --pace trace:0", "speed");
    refused("--trace t --loop", "endless passes");
    refused("--trace t --trace-format metadump", "load --fill");
    refused("--pace fast", "--trace");
    refused("--trace t --trace-warmup 1s --pace fast", "warm-up");
    let folder = tempfile::tempdir().expect("a folder");
    let phases = saved(&folder, "p.toml", "[[phase]]\nname = \"calm\"\ntime = 1\nrate = 10\n");
    for words in ["--rate 10 --stage 1s:20".to_owned(), format!("--phases {}", name(&phases))] {
        refused(&format!("--trace t {words}"), "or at the one rate of '--rate'");
    }
    refused("--trace t --rate 10..20 --time 1s", "or at the one rate of '--rate'");
    refused("--trace - --repeat 3", "the first would take all of standard input");
    let missing = pummel("run -s 127.0.0.1:1 --trace /nonexistent/trace").expect(1).errors;
    assert!(missing.contains("cannot read '/nonexistent/trace'"), "{missing}");
}

#[test]
fn several_runs_do_not_read_one_standard_input() {
    for words in [
        "ab -s 127.0.0.1:1 --versus 127.0.0.1:2 --trace -",
        "scan -s 127.0.0.1:1 --rates 10:20:10 --trace -",
        "search -s 127.0.0.1:1 --goal p99:1ms --trace -",
        "curve -s 127.0.0.1:1 --trace -",
    ] {
        let errors = pummel(words).expect(2).errors;
        assert!(errors.contains("all of standard input"), "{words}: {errors}");
    }
}

#[test]
fn samples_of_a_trace_have_no_number_of_a_record() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    let (path, samples) = (saved(&folder, "t.csv", &twitter()), folder.path().join("samples.csv"));
    let words = format!(
        "run -s {} --trace {} --pace fast --quiet --samples {}",
        server.name,
        name(&path),
        name(&samples)
    );
    pummel(&words).expect(0);
    let text = std::fs::read_to_string(&samples).expect("written");
    assert_eq!(text.lines().count(), 4_001);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert!(cells.len() == 10 && cells[7].is_empty() && !cells[8].is_empty(), "{line}");
    }
}

#[test]
fn a_metadump_is_stored_with_its_keys_and_lengths() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    let item = |number: u64| {
        format!("key=item%2d{number} exp=-1 la=1 cas=1 fetch=no cls=1 size={}\n", 70 + number % 100)
    };
    let dump: String = (0..500).map(item).chain(["END\n".to_owned()]).collect();
    let path = saved(&folder, "dump.txt", &dump);
    let result = pummel(&format!("load -s {} --fill {} --quiet", server.name, name(&path))).expect(0).json();
    assert_eq!(result.count("ops/set/completed"), 500);
    let reads = saved(
        &folder,
        "reads.csv",
        &(0..500)
            .map(|number| format!("get,item-{number}\n"))
            .fold("op,key\n".to_owned(), |all, row| all + &row),
    );
    let read = pummel(&format!("run -s {} --trace {} --pace fast --quiet", server.name, name(&reads)))
        .expect(0)
        .json();
    assert_eq!((read.count("ops/get/hits"), read.count("ops/get/misses")), (500, 0));
}

#[cfg(feature = "agents")]
#[test]
fn agents_read_the_trace_themselves_and_each_row_is_asked_once() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    let path = saved(&folder, "t.csv", &twitter());
    let allowed = ["--allow-file", name(folder.path())];
    let agents = [Agent::start_with(&allowed), Agent::start_with(&allowed)];
    let words = |agents: &[Agent]| {
        let path = name(&path);
        format!(
            "run -s {} -c 8 --trace {path} --pace trace:20 --quiet --agents {}",
            server.name,
            list(agents)
        )
    };
    let result = pummel(&words(&agents)).expect(0).json();
    assert_eq!((result.count("totals/completed"), result.count("trace/requests")), (4_000, 4_000));
    let strict = [Agent::start_with(&[])];
    let refused = pummel(&words(&strict)).expect(1).errors;
    assert!(refused.contains("--allow-file"), "{refused}");
}
