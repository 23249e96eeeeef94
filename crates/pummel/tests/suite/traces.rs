//! Traces on the command line: looked at, converted, sampled and divided, and replayed against a real server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[cfg(feature = "agents")]
use crate::common::agent::{Agent, list};
use crate::common::{Memcached, Serve, flat, pummel};
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
        "keys       400\n",
        "clients    13\n",
        "time       20.000 s, 200.0 requests/s, busiest second 200",
        "whole seconds: see --within-second",
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
    let (_, short, _) = trace(&["stat", "-"], Some("7,k,1,5,1,get,0\n7,j,1,5,1,get,0\n"));
    assert!(short.contains("time       1.000 s, 2.0 requests/s"), "{short}");
    let (_, timeless, _) = trace(&["stat", "-"], Some("key,op\nk,get\n"));
    assert!(timeless.contains("the rows have no times, or all the same"), "{timeless}");
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
fn an_output_that_is_also_the_input_or_whose_input_cannot_be_read_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, path) = (saved(&folder, "t", &twitter()), folder.path().join("own.csv"));
    assert_eq!(trace(&["convert", name(&source), "-o", name(&path)], None).0, Some(0));
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert_eq!(text.lines().count(), 4_001);
    let (status, _, why) = trace(&["convert", name(&path), "-o", name(&path)], None);
    assert!(status == Some(0) && why.contains("4000 of 4000"), "{why}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    let bad = saved(&folder, "bad", "hello\nworld\n");
    let none = folder.path().join("none");
    for words in [
        ["convert", name(&none), "-o", name(&path)],
        ["convert", name(&bad), "-o", name(&path)],
        ["convert", name(&path), "-o", "/nonexistent/t.csv"],
    ] {
        assert_eq!(trace(&words, None).0, Some(1), "{words:?}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text, "{words:?}");
    }
    assert_eq!(std::fs::read_to_string(&source).expect("it is there"), twitter());
    let left = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 3, "nothing is left beside them");
    for place in ["-", "/dev/stdout"] {
        let (status, piped, why) = trace(&["convert", "--to", "csv", name(&source), "-o", place], None);
        assert_eq!((status, piped == text), (Some(0), true), "{place}: {why}");
    }
}

#[test]
fn rows_with_and_without_fractions_of_a_second_keep_their_times_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let rows = "1,a\n1.5,b\n2,c\n2,d\n2.25,e\n3,f\n3,g\n";
    let path = saved(&folder, "t.csv", &format!("time,key\n{rows}"));
    let times = |path: &Path| -> Vec<String> {
        let (status, said, why) = trace(&["head", "-n", "99", name(path)], None);
        assert_eq!(status, Some(0), "{why}");
        said.lines().skip(1).map(|row| row.split(',').next().expect("a time").to_owned()).collect()
    };
    let exact = |second: &str, rest: &str| format!("{second}.{rest}0000000");
    let expected = [
        "1".to_owned(),
        exact("1", "50"),
        exact("2", "00"),
        exact("2", "00"),
        exact("2", "25"),
        exact("3", "00"),
        exact("3", "00"),
    ];
    assert_eq!(times(&path), expected);
    for made in ["t.ptr", "u.csv", "v.ptr.gz"] {
        let (status, _, why) = trace(&["convert", name(&path), "-o", name(&at(made))], None);
        assert_eq!(status, Some(0), "{why}");
        assert_eq!(times(&at(made)), expected, "{made}");
    }
    // A shard that lacks the rows with a fraction does not know from its own rows that the others are exact.
    let whole = saved(&folder, "w.csv", "time,key\n0,a\n0.5,b\n1,a\n1,a\n2,a\n");
    let kept: Vec<Vec<String>> = (1..=2)
        .map(|part| {
            let (part, made) = (format!("{part}/2"), at(&format!("{part}.ptr")));
            let words = ["shard", "--by", "key", &part, name(&whole), "-o", name(&made)];
            assert_eq!(trace(&words, None).0, Some(0));
            let is_empty = std::fs::metadata(&made).expect("it was written").len() == 0;
            if is_empty { Vec::new() } else { times(&made) }
        })
        .collect();
    let mut kept = kept.concat();
    kept.sort_unstable();
    let one = exact("1", "00");
    assert_eq!(kept, ["0".to_owned(), exact("0", "50"), one.clone(), one, exact("2", "00")]);
}

#[test]
fn what_a_format_cannot_hold_is_told_and_the_rest_comes_back_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let read = |path: &Path, format: &str| {
        let (status, said, why) = trace(&["head", "-n", "99", "--format", format, name(path)], None);
        assert_eq!((status, why.as_str()), (Some(0), ""));
        said.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let log = "1339518090.420270 [0 127.0.0.1:60866] \"set\" \"x\" \"6\"\n\
               1339518091.500000 [0 127.0.0.1:60867] \"get\" \"x\"\n\
               1339518092.500000 [0 127.0.0.1:60867] \"expire\" \"x\" \"60\"\n\
               1339518093.000000 [0 127.0.0.1:60867] \"get\" \"a,b\"\n";
    let path = saved(&folder, "log", log);
    let own = read(&path, "monitor");
    let (status, _, why) = trace(&["convert", "--to", "csv", name(&path), "-o", name(&at("l.csv"))], None);
    assert!(status == Some(0) && why.contains("3 of 4 requests are written"), "{why}");
    assert!(why.contains("1 requests are left out: format csv holds no keys with commas"), "{why}");
    assert_eq!(read(&at("l.csv"), "csv"), own[..3]);
    let made = at("l.twr");
    let (status, _, why) = trace(&["convert", "--to", "twitter", name(&path), "-o", name(&made)], None);
    for told in [
        "2 of 4 requests are written",
        "1 requests are left out: format twitter holds no keys with commas",
        "1 requests are left out: format twitter has no word for their operation",
        "1 requests are written with length 0, that of missed reads in format twitter",
        "2 requests are written with the time of the whole second before theirs",
    ] {
        assert!(status == Some(0) && why.contains(told), "{told}: {why}");
    }
    assert!(!why.contains("client"), "{why}");
    let clients = |rows: &[String]| -> Vec<String> {
        rows.iter().map(|row| row.split(',').nth(6).expect("a client").to_owned()).collect()
    };
    assert_eq!(clients(&read(&made, "twitter")), clients(&own[..2]));
    // A read that missed is one in either format.
    let missed = saved(&folder, "m", "0,k,1,0,7,get,0\n0,k,1,5,7,set,60\n");
    let stat = |path: &Path| trace(&["stat", name(path)], None).1;
    for (made, form) in [("m.csv", "csv"), ("m.twr", "twitter"), ("m.ptr", "ptr")] {
        let (status, _, why) = trace(&["convert", "--to", form, name(&missed), "-o", name(&at(made))], None);
        assert!(status == Some(0) && why.lines().count() == 1, "{why}");
        let said = stat(&at(made));
        assert!(said.contains("note       1 reads missed when they were recorded"), "{made}: {said}");
    }
}

#[test]
fn rows_that_stand_for_billions_of_requests_are_not_written_one_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let text = "time,key,op,size,count\n0,a,get,5,4000000000\n1,b,set,6,4000000000\n";
    let path = saved(&folder, "t.csv", text);
    for (made, words) in [
        ("t.ptr", &["convert"][..]),
        ("t.twr", &["convert", "--to", "twitter"]),
        ("s.ptr", &["sample", "--share", "1"]),
        ("h.ptr", &["shard", "1/1"]),
    ] {
        let (status, _, why) = trace(&[words, &[name(&path), "-o", name(&at(made))]].concat(), None);
        assert_eq!(status, Some(1), "{why}");
        for part in
            ["each of the 4000000000 requests of the first 1 row would be written", "--limit N", "--to csv"]
        {
            assert!(why.contains(part), "{part}: {why}");
        }
        let left = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(left, 1, "nothing is left beside the trace");
    }
    let (status, _, why) =
        trace(&["convert", name(&path), "-o", name(&at("l.ptr")), "--limit", "1000"], None);
    assert_eq!(status, Some(0), "{why}");
    for part in [
        "1000 of 4000000000 requests are written",
        "the rest of the trace is left out: '--limit' is 1000",
        "each of the 1000 requests of 1 row is written by itself: format ptr has no counts",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(std::fs::metadata(at("l.ptr")).expect("it was written").len(), 64 + 32 * 1_000);
    // A format with counts holds them as they are, and a limit that is not reached leaves nothing out.
    let (status, _, why) =
        trace(&["convert", name(&path), "-o", name(&at("c.csv")), "--limit", "8000000000"], None);
    assert!(status == Some(0) && why.lines().count() == 1, "{why}");
    assert!(trace(&["stat", name(&at("c.csv"))], None).1.contains("requests   8000000000\n"));
    assert_eq!(trace(&["convert", name(&path), "-o", name(&at("x")), "--limit", "0"], None).0, Some(2));
}

/// Rows as those of CacheLib's traces: some of their requests hit, others missed, and deletes have no value.
#[test]
fn rows_of_several_requests_keep_their_hits_and_are_counted_as_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
                10,a,48,SET_LEASE,1,7201,0,7200,1,1\n10,a,48,GET_LEASE,5,7201,3,0,1,1\n11,b,20,GET,3,0,0,0,1,1\n\
                12,a,48,DELETE,4,0,0,0,1,1\n";
    let path = saved(&folder, "kv.csv", text);
    let (_, said, _) = trace(&["stat", name(&path)], None);
    for part in [
        "rows       4 in 5 lines or records\n",
        "requests   13\n",
        "keys       2\n",
        "value      mean 7201.0, median 7201, p90 7201, p99 7201 bytes\n",
        "TTL        mean 7200.0, median 7200, p90 7200, p99 7200 s",
        "note       5 reads missed when they were recorded\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("do not say the length"), "{said}");
    for made in ["kv.ptr", "kv2.csv"] {
        let made = folder.path().join(made);
        assert_eq!(trace(&["convert", name(&path), "-o", name(&made)], None).0, Some(0));
        assert!(trace(&["stat", name(&made)], None).1.contains("note       5 reads missed"));
    }
    let server = Memcached::start();
    let result =
        pummel(&format!("run -s {} --trace {} --pace fast -v", server.name, name(&path))).expect(0).json();
    assert_eq!((result.count("trace/rows"), result.count("trace/kept")), (4, 4));
    assert_eq!((result.count("trace/requests"), result.count("totals/completed")), (13, 13));
}

#[test]
fn misses_of_a_replay_are_stored_with_the_times_to_live_of_the_trace() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    let path = saved(&folder, "t.csv", "0,k,1,0,2,get,0\n0,k,1,195,2,add,1209600\n0,seen,4,9,2,get,0\n");
    let words = format!("run -s {} --trace {} --pace fast --fills own -v", server.name, name(&path));
    let result = pummel(&words).expect(0).json();
    assert_eq!(result.count("ops/set/completed"), 2);
    let mut client = server.connect();
    for key in ["k", "seen"] {
        let left = client.ttl_s(key);
        assert!(left.is_some_and(|left| (1_209_000..=1_209_600).contains(&left)), "{key}: {left:?}");
    }
}

#[test]
fn requests_of_a_trace_that_did_not_do_what_they_are_for_are_in_every_report() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    // Half of the records that are deleted are not there.
    let rows: String = (0..40)
        .map(|n| format!("0,{},k{},2,5\n", ["set", "add", "delete", "get"][n / 10], n % 10 + 5 * (n / 20)))
        .collect();
    let path = saved(&folder, "t.csv", &format!("time,op,key,key_size,size\n{rows}"));
    let words = format!("run -s {} --trace {} --pace fast -c 1 --trace-by row", server.name, name(&path));
    let outcomes = [
        "add: 10 of 10 not stored: its times are those of requests that did nothing",
        "delete: 5 of 10 without a record of their key",
    ];
    let page = folder.path().join("page.html");
    let ended = pummel(&format!("{words} --fail-on outcomes:74.9% --report {}", name(&page))).expect(3);
    let fault = "Fail on outcomes:74.9%: 15 of 20 answered requests that may store or find nothing did so";
    assert!(
        flat(&ended.text).contains(&format!("{fault} Outcomes {}", outcomes.join(" "))),
        "{}",
        ended.text
    );
    let page = std::fs::read_to_string(&page).expect("it was written");
    assert!(outcomes.iter().all(|own| page.contains(own)));
    // The keys are there again.
    let allowed = pummel(&format!("{words} -v --fail-on outcomes:75%")).expect(0).text;
    assert_eq!(flat(&allowed).matches(outcomes[0]).count(), 1, "{allowed}");
    let printed = pummel(&format!("{words} --format markdown")).expect(0).text;
    assert!(printed.contains(&format!("**Outcomes** {}\\\n{}", outcomes[0], outcomes[1])), "{printed}");
}

#[test]
fn a_warm_up_of_rows_takes_all_requests_that_are_made_of_them() {
    let (server, folder) = (Serve::start(""), tempfile::tempdir().expect("a folder"));
    let path = saved(&folder, "t.csv", &twitter());
    let words = format!(
        "run -s {} -c 4 --trace {} --pace fast --trace-warmup 100 --trace-amplify 3 -v",
        server.name,
        name(&path)
    );
    let result = pummel(&words).expect(0).json();
    assert_eq!((result.count("trace/kept"), result.count("trace/requests")), (4_000, 12_000));
    assert_eq!(result.count("totals/requests"), 11_700);
}

#[test]
fn a_trace_is_replayed_with_its_times_and_operations() {
    let (server, folder) = (Memcached::start(), tempfile::tempdir().expect("a folder"));
    let path = saved(&folder, "t.csv", &twitter());
    let words = format!(
        "run -s {} -T 2 -c 10 --trace {} --pace trace:20 --trace-by key -v",
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
        "run -s {} -T 2 -c 20 --trace {} --pace trace:10 --samples {} -v",
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
    command.args(["run", "-s", &server.name, "--trace", "-", "--pace", "fast", "-v", "-c", "4"]);
    command.args(["--timeout", "10s"]);
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
    refused("--trace t --loop", "'--loop' is not accepted: endless passes");
    refused("--trace t --trace-format metadump", "load --fill");
    refused("--trace t --fills own --fill add", "'--fill' is not accepted with '--trace': '--fills own'");
    for pace in ["--rate 5k", "--pace fast"] {
        let words = format!("--trace t {pace} --within-second poisson");
        refused(&words, "'--within-second' is accepted only where requests are due at the times of");
    }
    refused("--pace fast", "--trace");
    refused("--trace t --trace-warmup 1s --pace fast", "warm-up");
    let folder = tempfile::tempdir().expect("a folder");
    let phases = saved(&folder, "p.toml", "[[phase]]\nname = \"calm\"\ntime = 1\nrate = 10\n");
    for words in ["--rate 10 --stage 1s:20".to_owned(), format!("--phases {}", name(&phases))] {
        refused(&format!("--trace t {words}"), "or at the one rate of '--rate'");
    }
    refused("--trace t --rate 10..20 --time 1s", "or at the one rate of '--rate'");
    refused("--trace - --repeat 3", "the first would take all of standard input");
    let missing = pummel("run -s 127.0.0.1:1 --trace /nonexistent/trace").expect(1);
    let why = "cannot read '/nonexistent/trace'";
    assert!(missing.errors.contains(why), "{}", missing.errors);
    assert!(missing.json().text("reason").contains(why), "{}", missing.json().text("reason"));
    let printed = pummel("run -s 127.0.0.1:1 --trace /nonexistent/trace --format markdown").expect(1);
    assert!(printed.text.starts_with("### PARTIAL") && printed.text.contains(why), "{}", printed.text);
}

/// 400 reads of 50 keys in four seconds.
fn slow(folder: &TempDir) -> PathBuf {
    let rows: String = (0..400).map(|row| format!("{},key-{},6,20,1,get,0\n", row / 100, row % 50)).collect();
    saved(folder, "slow", &rows)
}

#[test]
fn a_series_in_closed_loop_does_not_wait_for_the_times_of_a_trace() {
    let (server, folder) = (Serve::start(""), tempfile::tempdir().expect("a folder"));
    let trace = format!("--trace {} --no-evidence", name(&slow(&folder)));
    let ended = pummel(&format!("scan -s {} {trace} --over connections:1:2", server.name)).expect(0);
    let result = ended.json();
    assert_eq!(result.text("plan/phases/0/work/trace/pace"), "fast");
    assert_eq!(result.at("runs")[1]["requests"], 400);
    for sweep in ["scan --over connections:1:2", "scan --rates 1:2:1", "search --goal p99:1s", "curve"] {
        let errors = pummel(&format!("{sweep} -s 127.0.0.1:1 {trace} --pace trace:2")).expect(2).errors;
        assert!(errors.contains("'--pace' is accepted with 'pummel run' only"), "{sweep}: {errors}");
    }
}

#[test]
fn a_trace_that_takes_longer_than_its_rate_allows_is_not_carried() {
    // One connection and 5 ms for each request: 200 per second, of 2,000 that are asked for.
    let (server, folder) = (Serve::start("--service-time 5ms"), tempfile::tempdir().expect("a folder"));
    let words = format!("-s {} -c 1 --trace {} --no-evidence", server.name, name(&slow(&folder)));
    let ended = pummel(&format!("scan {words} --rates 2k:2k:1k")).expect(0);
    assert_eq!(ended.json().at("runs")[0]["carried"], false);
    assert!(ended.errors.contains("not carried"), "{}", ended.errors);
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
    let words =
        format!("run -s {} --trace {} --pace fast -v --samples {}", server.name, name(&path), name(&samples));
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
    let result = pummel(&format!("load -s {} --fill {} -v", server.name, name(&path))).expect(0).json();
    assert_eq!(result.count("ops/set/completed"), 500);
    let reads = saved(
        &folder,
        "reads.csv",
        &(0..500)
            .map(|number| format!("get,item-{number}\n"))
            .fold("op,key\n".to_owned(), |all, row| all + &row),
    );
    let read =
        pummel(&format!("run -s {} --trace {} --pace fast -v", server.name, name(&reads))).expect(0).json();
    assert_eq!((read.count("ops/get/hits"), read.count("ops/get/misses")), (500, 0));
    for (name_of_file, text, part) in [
        (
            "odd.bin",
            "hello\nworld\n",
            "odd.bin' holds no items: expected the output of lru_crawler metadump, or CSV",
        ),
        ("empty.csv", "", "empty.csv' is empty"),
    ] {
        let path = saved(&folder, name_of_file, text);
        let failed = pummel(&format!("load -s {} --fill {} -v", server.name, name(&path))).expect(1);
        let report = failed.json();
        assert!(report.text("reason").contains(part), "{}", report.text("reason"));
    }
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
        format!("run -s {} -c 8 --trace {path} --pace trace:20 -v --agents {}", server.name, list(agents))
    };
    let result = pummel(&words(&agents)).expect(0).json();
    assert_eq!((result.count("totals/completed"), result.count("trace/requests")), (4_000, 4_000));
    let strict = [Agent::start_with(&[])];
    let refused = pummel(&words(&strict)).expect(1).errors;
    assert!(refused.contains("--allow-file"), "{refused}");
}
