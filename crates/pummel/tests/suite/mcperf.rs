//! `pummel mcperf` against real servers and bad ones: what is on the wire, what is counted, how it ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::mcperf::{kinds, line, mcperf, number, port_of};
use crate::common::{Memcached, Nobody, PATIENCE, Running, Talk, in_some_quiet_moment, quiet};

/// Takes connections one after the other and answers each request line with `reply` (or not at all); hands over what
/// came on all of them.
fn recorder(connections: usize, reply: &'static str) -> (String, thread::JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    let serve = move || {
        (0..connections)
            .map(|_| {
                let (mut stream, _) = listener.accept().expect("it comes");
                record(&mut stream, reply)
            })
            .collect()
    };
    (port, thread::spawn(serve))
}

fn record(stream: &mut TcpStream, reply: &str) -> Vec<u8> {
    let (mut all, mut chunk) = (Vec::new(), [0; 65536]);
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return all,
            Ok(count) => all.extend_from_slice(&chunk[..count]),
        }
        if !reply.is_empty() && stream.write_all(reply.as_bytes()).is_err() {
            return all;
        }
    }
}

/// Requests of one connection, as they are on the wire.
fn wire(words: &str, reply: &'static str) -> String {
    let (port, recorded) = recorder(1, reply);
    mcperf(&port, words);
    let mut streams = recorded.join().expect("it ends with its connection");
    String::from_utf8(streams.remove(0)).expect("ASCII")
}

#[test]
fn every_method_has_the_originals_bytes() {
    let _alone = quiet();
    let key = "mcp:00000001";
    for (method, plain, quiet, reply) in [
        ("get", "get K\r\n", "get K\r\n", "END\r\n"),
        ("gets", "gets K\r\n", "gets K\r\n", "END\r\n"),
        ("delete", "delete K \r\n", "delete K noreply\r\n", "DELETED\r\n"),
        ("set", "set K 0 7 2 \r\n00\r\n", "set K 0 7 2 noreply\r\n00\r\n", "STORED\r\n"),
        ("add", "add K 0 7 2 \r\n00\r\n", "add K 0 7 2 noreply\r\n00\r\n", "STORED\r\n"),
        ("replace", "replace K 0 7 2 \r\n00\r\n", "replace K 0 7 2 noreply\r\n00\r\n", "STORED\r\n"),
        ("append", "append K 0 7 2 \r\n00\r\n", "append K 0 7 2 noreply\r\n00\r\n", "STORED\r\n"),
        ("prepend", "prepend K 0 7 2 \r\n00\r\n", "prepend K 0 7 2 noreply\r\n00\r\n", "STORED\r\n"),
        ("cas", "cas K 0 7 2 1 \r\n00\r\n", "cas K 0 7 2 1 noreply\r\n00\r\n", "EXISTS\r\n"),
        ("incr", "incr K 2 \r\n", "incr K 2 noreply\r\n", "5\r\n"),
        ("decr", "decr K 2 \r\n", "decr K 2 noreply\r\n", "5\r\n"),
    ] {
        let words = format!("-m {method} -e 7 -z 2");
        assert_eq!(wire(&words, reply), plain.replace('K', key), "{words}");
        let silent = if method.starts_with("get") { reply } else { "" };
        assert_eq!(wire(&format!("{words} -q"), silent), quiet.replace('K', key), "{words} -q");
    }
}

#[test]
fn prefixes_expiries_and_lengths_of_any_size_come_through_whole() {
    let _alone = quiet();
    for prefix in ["", "12345678901234", "123456789012345", "1234567890123456"] {
        let bytes = wire(&format!("--prefix={prefix} -m get"), "END\r\n");
        assert_eq!(bytes, format!("get {prefix}00000001\r\n"));
    }
    for expiry in [99_999_999u32, 123_456_789, 2_147_483_647] {
        assert_eq!(
            wire(&format!("-e {expiry}"), "STORED\r\n"),
            format!("set mcp:00000001 0 {expiry} 1 \r\n0\r\n")
        );
    }
    for length in [8_192, 1_048_576, 3_000_000] {
        // The client closes after the first reply, which comes before all was read.
        let (port, recorded) = recorder(1, "");
        mcperf(&port, &format!("-z {length} -q -b 65536"));
        let streams = recorded.join().unwrap();
        let line = format!("set mcp:00000001 0 0 {length} noreply\r\n");
        assert_eq!(streams[0].len(), line.len() + length + 2);
        assert!(streams[0].starts_with(line.as_bytes()) && streams[0].ends_with(b"0\r\n"));
    }
    assert_eq!(wire("-z e0.0001", "STORED\r\n"), "set mcp:00000001 0 0 0 \r\n\r\n");
}

#[test]
fn sizes_and_keys_are_drawn_as_the_original_draws_them() {
    let _alone = quiet();
    let sizes = |client: &str| {
        let bytes = wire(&format!("-z u1,16 -c {client} -N 12"), "STORED\r\n");
        let lines = bytes.lines().filter(|line| line.starts_with("set "));
        let words: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
        let keys: Vec<&str> = words.iter().map(|words| words[1]).collect();
        assert_eq!((keys[0], keys[9], keys[11]), ("mcp:00000001", "mcp:0000000a", "mcp:0000000c"));
        words.iter().map(|words| words[4].to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sizes("0/1"), "13 5 2 7 11 5 3 6 12 3 11 5");
    assert_eq!(sizes("3/4"), "4 16 4 12 12 13 5 11 16 11 10 15");
    assert!(wire("-c 3/4 --shard -N 2 -m get", "END\r\n").contains("mcp:00000004\r\nget mcp:00000008"));
}

#[test]
fn the_first_example_of_the_readme_runs_as_it_is_written() {
    let _alone = quiet();
    let server = Memcached::start();
    let ended = mcperf(
        port_of(&server),
        "--linger=0 --timeout=5 --conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=u1,16",
    );
    assert_eq!(ended.text, "", "everything is on standard error");
    assert!(
        line(&ended.errors, "Total:").starts_with("Total: connections 1000 requests 10000 responses 10000 ")
    );
    assert_eq!(
        line(&ended.errors, "Request size"),
        "Request size [B]: avg 35.9 min 28.0 max 44.0 stddev 4.80"
    );
    assert_eq!(
        line(&ended.errors, "Response size"),
        "Response size [B]: avg 8.0 min 8.0 max 8.0 stddev 0.00"
    );
    assert_eq!(number(&ended.errors, "Errors:", "total"), 0.0);
    assert!(line(&ended.errors, "Net I/O").starts_with("Net I/O: bytes 428.7 KB "));
    // 999 gaps between connections and 9 between the calls of the last one; a busy machine may add to that.
    assert!(number(&ended.errors, "Total:", "test-duration") >= 1.007);
    assert_eq!(kinds(&ended.errors), [("stored".to_owned(), 10_000)]);
    assert_eq!(server.connect().stats().get("cmd_set"), 10_000);
}

#[test]
fn the_second_example_of_the_readme_runs_as_it_is_written() {
    let _alone = quiet();
    let server = Memcached::start();
    let words = "--linger=0 --call-rate=0 --num-calls=100 --conn-rate=0 --num-conns=100 --sizes=d1";
    let ended = mcperf(port_of(&server), words);
    assert!(
        line(&ended.errors, "Total:").starts_with("Total: connections 100 requests 10000 responses 10000 ")
    );
    assert!(line(&ended.errors, "Connection rate").ends_with("<= 1 concurrent connections)"));
    assert_eq!(
        line(&ended.errors, "Request size"),
        "Request size [B]: avg 28.0 min 28.0 max 28.0 stddev 0.00"
    );
    assert!(line(&ended.errors, "Net I/O").starts_with("Net I/O: bytes 351.6 KB "));
}

#[test]
fn every_method_is_answered_as_the_servers_state_implies() {
    let _alone = quiet();
    let server = Memcached::start();
    let port = port_of(&server);
    for (words, request_bytes, reply_bytes, kind) in [
        ("-m get", 18.0, 5.0, "end"),
        ("-m delete", 22.0, 11.0, "not_found"),
        ("-m incr", 22.0, 11.0, "not_found"),
        ("-m append", 31.0, 12.0, "not_stored"),
        ("-m replace", 32.0, 12.0, "not_stored"),
        ("-m cas", 30.0, 11.0, "not_found"),
        ("-m add", 28.0, 8.0, "stored"),
        ("-m add", 28.0, 12.0, "not_stored"),
        ("-m set", 28.0, 8.0, "stored"),
        ("-m replace", 32.0, 8.0, "stored"),
        ("-m append", 31.0, 8.0, "stored"),
        ("-m prepend", 32.0, 8.0, "stored"),
        ("-m get", 18.0, 34.0, "value"),
        // 34, a blank and a unique number: the stores before count to four digits.
        ("-m gets", 19.0, 39.0, "value"),
        ("-m cas", 30.0, 8.0, "exists"),
        ("-m incr", 22.0, 3.0, "num"),
        ("-m decr", 22.0, 3.0, "num"),
        ("-m delete", 22.0, 9.0, "deleted"),
        ("-m set -z d100", 129.0, 8.0, "stored"),
    ] {
        let ended = mcperf(port, &format!("{words} -n 10 -N 100"));
        assert_eq!(kinds(&ended.errors), [(kind.to_owned(), 1_000)], "{words}");
        assert_eq!(number(&ended.errors, "Request size", "avg"), request_bytes, "{words}");
        assert_eq!(number(&ended.errors, "Response size", "avg"), reply_bytes, "{words}");
        assert_eq!(number(&ended.errors, "Errors:", "total"), 0.0, "{words}");
    }
    let ended = mcperf(port, "-n 1 -N 2 -z d1048576 -b 65536");
    assert_eq!(kinds(&ended.errors), [("server_error".to_owned(), 2)]);
    assert_eq!(number(&ended.errors, "Request size", "avg"), 1_048_609.0);
    let ended = mcperf(port, "-q -n 10 -N 100");
    assert!(line(&ended.errors, "Total:").starts_with("Total: connections 10 requests 1000 responses 0 "));
    assert!(!ended.errors.contains("Response"), "{}", ended.errors);
    assert_eq!(number(&ended.errors, "Request size", "avg"), 35.0);
    let mut talk: Talk = server.connect();
    let stats = talk.stats();
    let counters = ["cas_misses", "cas_badval", "incr_hits", "decr_hits", "incr_misses", "delete_misses"];
    assert_eq!(counters.map(|name| stats.get(name)), [1_000; 6]);
}

#[test]
fn a_port_where_nobody_listens_ends_each_connection_at_once_and_counts_it_once() {
    let _alone = quiet();
    let nobody = Nobody::new();
    let free = nobody.address.port().to_string();
    let ended = mcperf(&free, "-r 20 -n 10 -t 30 -N 5");
    assert_eq!(number(&ended.errors, "Errors:", "total"), 10.0);
    assert_eq!(number(&ended.errors, "Errors:", "connrefused"), 10.0);
    assert_eq!(number(&ended.errors, "Errors:", "client-timo"), 0.0);
    let took = number(&ended.errors, "Total:", "test-duration");
    assert!((0.45..30.0).contains(&took), "none waits for its timeout: {took}");
    let ended = mcperf(&free, "-n 5");
    assert_eq!(number(&ended.errors, "Errors:", "connrefused"), 5.0, "one after the other");
    let strict = Running::start(&format!("mcperf -s 127.0.0.1 -p {free} --strict")).end().expect(1);
    assert!(strict.errors.contains("nothing listens there"), "{}", strict.errors);
}

#[test]
fn a_stopped_server_costs_each_connection_its_timeout() {
    let _alone = quiet();
    let server = Memcached::start();
    server.process.stop();
    let ended = mcperf(port_of(&server), "-n 3 -N 10 -t 0.3");
    assert!(line(&ended.errors, "Total:").starts_with("Total: connections 3 requests 3 responses 0 "));
    assert_eq!(number(&ended.errors, "Errors:", "client-timo"), 3.0);
    assert!(number(&ended.errors, "Connection time", "min") >= 300.0, "{}", ended.errors);
    let ended = mcperf(port_of(&server), "-n 2 -z d8000000 -t 0.3");
    assert!(line(&ended.errors, "Total:").starts_with("Total: connections 2 requests 0 responses 0 "));
    assert_eq!(number(&ended.errors, "Errors:", "client-timo"), 2.0);
    server.process.go_on();
}

#[test]
fn bad_servers_are_counted_by_what_they_do() {
    let _alone = quiet();
    for (reply, count) in [("NONSENSE\r\n", 3.0), ("VALUE x\r\n", 3.0), ("STORED\r\nSTORED\r\n", 3.0)] {
        let (port, recorded) = recorder(3, reply);
        let ended = mcperf(&port, "-n 3 -N 2 -t 5");
        assert_eq!(number(&ended.errors, "Errors:", "other"), count, "{reply}: {}", ended.errors);
        assert_eq!(number(&ended.errors, "Errors:", "total"), count, "{reply}");
        recorded.join().unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let closing = thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 28];
            stream.read_exact(&mut request).unwrap();
        }
    });
    let ended = mcperf(&port, "-n 3 -N 2 -t 5");
    assert_eq!(number(&ended.errors, "Errors:", "other"), 3.0, "{}", ended.errors);
    closing.join().unwrap();
}

#[test]
fn too_few_descriptors_are_counted_and_the_others_go_on() {
    let _alone = quiet();
    let server = Memcached::start();
    let program = env!("CARGO_BIN_EXE_pummel");
    let port = port_of(&server);
    let words = format!("mcperf -s 127.0.0.1 -p {port} -n 40 -r 2000 -N 10 -R 100");
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -n 24; exec {program} {words}")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let ended_line = |start: &str| errors.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    let count_behind = |line: &str, word: &str| -> u64 {
        let words: Vec<&str> = line.split(' ').collect();
        words[words.iter().position(|other| *other == word).unwrap() + 1].parse().unwrap()
    };
    let total = ended_line("Total:");
    let (open, without) =
        (count_behind(&total, "connections"), count_behind(&ended_line("Errors: fd"), "fd-unavail"));
    assert!(open > 0 && without > 0 && open + without == 40, "{errors}");
    assert_eq!(count_behind(&total, "responses"), 10 * open, "{errors}");
    assert!(errors.contains("raise it with ulimit -n"), "{errors}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_interrupted_run_reports_what_there_was() {
    let _alone = quiet();
    let server = Memcached::start();
    let begun = Instant::now();
    let running = Running::start(&format!(
        "mcperf -s 127.0.0.1 -p {} -n 100000 -r 100 -N 1000000 -R 100",
        port_of(&server)
    ));
    let mut talk = server.connect();
    crate::common::until("calls", || (talk.stats().get("cmd_set") > 20).then_some(()));
    running.process.interrupt();
    let ended = running.end().expect(130);
    assert!(number(&ended.errors, "Total:", "responses") > 20.0);
    assert_eq!(number(&ended.errors, "Errors:", "total"), 0.0);
    assert!(begun.elapsed() < PATIENCE, "a million calls would take hours");
}

#[test]
fn the_clients_own_lateness_shows_in_the_added_lines_alone() {
    let _alone = quiet();
    let server = Memcached::start();
    let port = port_of(&server);
    let mut talk = server.connect();
    in_some_quiet_moment(|| {
        let before = talk.stats().get("cmd_set");
        let running =
            Running::start(&format!("mcperf -s 127.0.0.1 -p {port} -v 0 -N 2000 -R 1000 --response"));
        crate::common::until("calls", || (talk.stats().get("cmd_set") > before + 100).then_some(()));
        running.process.pause(Duration::from_millis(500));
        let ended = running.end().expect(0);
        let longest = number(&ended.errors, "Response time from due [ms]:", "max");
        let median = number(&ended.errors, "Response time [ms]: p25", "p50");
        if longest >= 400.0 && median < 100.0 { Ok(()) } else { Err(ended.errors) }
    });
}

#[test]
fn the_log_goes_where_it_is_told_and_the_report_never_does() {
    let _alone = quiet();
    let server = Memcached::start();
    let ended = Running::start(&format!("mcperf -s 127.0.0.1 -p {} -n 2 -N 3 -v 7 -o log", port_of(&server)))
        .end()
        .expect(0);
    let log = ended.file("log");
    assert_eq!(log.lines().filter(|line| line.contains("] call ")).count(), 6, "{log}");
    assert!(log.contains("] created 2 of 2 connections, 0 failed\n"), "{log}");
    assert!(log.contains("] destroyed 2 of 2 connections\n"), "{log}");
    assert!(ended.errors.starts_with("\nTotal:") || ended.errors.starts_with("Total:"), "{}", ended.errors);
    let refused = Running::start("mcperf -o none/log").end().expect(1);
    assert!(refused.errors.contains("opening log file 'none/log' failed: "), "{}", refused.errors);
}

#[test]
fn a_good_run_writes_its_report_alone_and_the_log_where_it_is_asked_for() {
    let _alone = quiet();
    let server = Memcached::start();
    let line = format!("mcperf -s 127.0.0.1 -p {} -n 2 -N 3", port_of(&server));
    let ended = Running::start(&line).end().expect(0);
    assert!(ended.errors.trim_start().starts_with("Total: connections 2 "), "{}", ended.errors);
    assert!(!ended.errors.contains("] created "), "{}", ended.errors);
    let told = Running::start(&format!("{line} -v 5")).end().expect(0);
    assert!(told.errors.contains("] created 2 of 2 connections, 0 failed\n"), "{}", told.errors);
    let logged = Running::start(&format!("{line} -o log")).end().expect(0);
    assert!(logged.file("log").contains("] destroyed 2 of 2 connections\n"), "{}", logged.file("log"));
}

#[test]
fn calls_that_are_due_in_centuries_are_waited_for() {
    let _alone = quiet();
    for gaps in ["-n 2 -r d1e300", "-N 2 -R e1e300"] {
        let server = Memcached::start();
        let mut running = Running::start(&format!("mcperf -s 127.0.0.1 -p {} {gaps} -v 5", port_of(&server)));
        running.wait_for("add up to more than a hundred years");
        let mut talk = server.connect();
        crate::common::until("the first call", || (talk.stats().get("cmd_set") > 0).then_some(()));
        assert!(!running.has_ended(), "{gaps}");
        running.process.interrupt();
        let ended = running.end().expect(130);
        assert!(line(&ended.errors, "Total:").starts_with("Total: connections 1 requests 1 responses 1 "));
    }
}

#[test]
fn wrong_lines_end_with_status_1_and_help_with_0_all_on_standard_error() {
    for (words, status, says) in [
        ("mcperf -p 70000", 1, "mcperf: option -p value 70000 is not a valid port"),
        ("mcperf -h", 0, "Usage: mcperf"),
        ("mcperf -?", 0, "Usage: mcperf"),
        ("mcperf -V", 0, "This is mcperf-0.1.1"),
    ] {
        let ended = Running::start(words).end().expect(status);
        assert_eq!(ended.text, "", "{words}");
        assert!(ended.errors.contains(says), "{words}: {}", ended.errors);
        assert_eq!(ended.errors.contains("Options:"), words != "mcperf -V", "{words}");
    }
}

#[test]
fn a_plan_is_explained_and_run_again() {
    let _alone = quiet();
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.toml");
    let words = ["explain", "mcperf", "-s", "127.0.0.1", "-p", port_of(&server)];
    let options = ["-n", "5", "-N", "10", "-r", "1000", "-R", "1000", "-e", "2000000000", "--plan"];
    let explained =
        Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).args(options).arg(&plan).output().unwrap();
    assert!(explained.status.success(), "{}", String::from_utf8_lossy(&explained.stderr));
    let ended = Running::start(&format!("run --plan {}", plan.display())).end().expect(0);
    assert_eq!(ended.json().count("totals/completed"), 50);
    assert_eq!(server.connect().stats().get("cmd_set"), 50);
}

#[test]
fn native_clients_come_and_go_too() {
    let _alone = quiet();
    let server = Memcached::start();
    let ended = crate::common::pummel(&format!(
        "run -s {} --conn-rate 500 --calls-per-connection 4 -n 1000 -T 2 --linger 0 --records 100 -v",
        server.name
    ))
    .expect(0);
    let result = ended.json();
    assert_eq!(result.text("status"), "complete");
    assert_eq!(result.count("connections/churn/clients"), 250);
    assert_eq!(result.count("connections/churn/established"), 250);
    assert_eq!(result.count("totals/completed"), 1_000);
    assert!(ended.text.contains("Connections  250 clients came"), "{}", ended.text);
}
