//! `--protocol auto`: servers are asked what they speak before the load, by the real binary and with real servers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::agent::Agent;
use crate::common::redis::Redis;
use crate::common::secured::Certificates;
use crate::common::{Ended, Memcached, Reserved, Running, Serve, pummel};

const SHORT: &str = "-n 200 -c 2 --records 20 -v --protocol auto";

/// A run of a command line that leaves the protocol open.
fn run(server: &str, more: &str) -> Ended {
    pummel(&format!("run -s {server} {SHORT} {more}"))
}

/// Asserts that a run was complete and what its report says of the servers.
#[track_caller]
fn assert_found(ended: Ended, protocol: &str, software: &str) {
    let ended = ended.expect(0);
    let result = ended.json();
    assert_eq!(result.text("plan/protocol"), protocol);
    assert_eq!(result.count("totals/completed"), 200);
    let detected = result.text("detected");
    assert!(detected.starts_with(software) && detected.ends_with(&format!(", {protocol}")), "{detected}");
    assert!(ended.text.contains(&format!("({detected})")), "{}", ended.text);
}

/// Asserts that nothing could begin: status 1, a reason and a hint in at most five lines, no report for people, the JSON with
/// the reason.
#[track_caller]
fn assert_no_run(ended: Ended, reason: &str, hint: &str) {
    let ended = ended.expect(1);
    assert_eq!(ended.text, "", "no table of zeros");
    assert!(ended.errors.contains(reason) && ended.errors.contains(hint), "{}", ended.errors);
    assert!(ended.errors.lines().count() <= 5, "{}", ended.errors);
    let result = ended.json();
    assert_eq!(result.text("status"), "partial");
    let told = result.text("reason");
    assert!(told.contains(reason) && !told.contains("hint: "), "{told}");
}

/// A server that does this with every connection; its threads end with the test.
fn server(serve: fn(&mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || serve(&mut stream));
        }
    });
    address
}

#[test]
fn memcached_is_found_to_speak_text() {
    assert_found(run(&Memcached::start().name, ""), "text", "memcached 1.");
}

#[test]
fn redis_is_found_to_speak_resp() {
    assert_found(run(&Redis::start(&[]).name(), ""), "resp2", "redis ");
}

#[test]
fn servers_behind_tls_are_asked_through_it() {
    let files = Certificates::make();
    let tls = format!("--tls --tls-ca {} --tls-server-name localhost", files.ca());
    let (_memcached, name) = Memcached::start_tls(&files.cert(), &files.key());
    assert_found(run(&name, &tls), "text", "memcached 1.");
    let (_redis, name) = Redis::start_tls(&files);
    assert_found(run(&name, &tls), "resp2", "redis ");
}

#[test]
fn the_built_in_server_is_found_to_speak_what_it_was_told_to() {
    assert_found(run(&Serve::start("--protocol text").name, ""), "text", "");
    assert_found(run(&Serve::start("--protocol resp").name, ""), "resp2", "");
}

#[test]
fn a_login_that_is_missing_is_told_as_that_and_one_that_is_there_is_used() {
    let redis = Redis::start(&["--requirepass", "sesame"]);
    assert_no_run(run(&redis.name(), ""), "requires a login: it said \"-NOAUTH", "--user");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "sesame\n").expect("it is writable");
    let login = |user: &str| format!("--user {user} --password-file {}", file.display());
    assert_found(run(&redis.name(), &login("default")), "resp2", "a RESP server");
    let memcached = Memcached::start_with_users("ali", "sesame");
    assert_no_run(run(&memcached.name, ""), "requires a login: it said \"CLIENT_ERROR", "--user");
    assert_found(run(&memcached.name, &login("ali")), "text", "memcached");
}

#[test]
fn servers_of_one_run_have_to_agree() {
    let (memcached, redis) = (Memcached::start(), Redis::start(&[]));
    let ended = run(&format!("{},{}", memcached.name, redis.name()), "");
    assert_no_run(ended, "the servers of a run have one protocol", "one after the other");
    assert_eq!(memcached.connect().stats().get("cmd_set"), 0);
}

#[test]
fn a_silent_server_costs_seconds_and_a_reason() {
    let silent = server(|stream| {
        let _ = stream.read(&mut [0; 64]);
        thread::sleep(Duration::from_secs(60));
    });
    let began = Instant::now();
    assert_no_run(
        run(&silent, ""),
        "answers neither as memcached nor as a RESP server: it sent nothing",
        "--protocol",
    );
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn a_server_of_something_else_is_quoted() {
    let other = server(|stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    assert_no_run(run(&other, ""), "it sent \"HTTP/1.1 400 Bad Request\"", "is this the server's port?");
    let closing = server(|_| {});
    assert_no_run(run(&closing, ""), "closed the connection without a word", "--tls");
}

#[test]
fn a_refusal_in_words_before_any_question_is_quoted_whole_and_tls_is_still_told_as_that() {
    let denied = server(|stream| {
        let words = "because protected mode is enabled ".repeat(25);
        let _ = stream.write_all(format!("-DENIED {words}END\r\n").as_bytes());
    });
    let ended = run(&denied, "");
    assert!(!ended.errors.contains("hint:") && !ended.errors.contains("neither"), "{}", ended.errors);
    assert!(ended.errors.contains("END\""), "{}", ended.errors);
    assert_no_run(ended, "refuses this client: it said \"-DENIED because protected mode", "");
    let alert = server(|stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"\x15\x03\x01\0\x02\x02\x46");
    });
    assert_no_run(run(&alert, ""), "answers neither", "--tls");
}

#[test]
fn a_server_that_answers_late_and_within_the_timeout_is_detected() {
    let slow = server(|stream| {
        let _ = stream.read(&mut [0; 64]);
        thread::sleep(Duration::from_millis(1_500));
        let _ = stream.write_all(b"VERSION 1.6.18\r\n");
        while matches!(stream.read(&mut [0; 4_096]), Ok(1..)) {}
    });
    let ended = pummel(&format!("run -s {slow} -n 2 -c 1 --no-load -v --protocol auto --timeout 4s"));
    assert!(!ended.errors.contains("answers neither"), "{}", ended.errors);
    assert!(ended.json().text("detected").starts_with("memcached 1.6.18"), "{}", ended.errors);
}

#[test]
fn a_server_that_is_not_there_is_told_without_a_table_of_zeros() {
    assert_no_run(run(&Reserved::new().name, ""), "refused", "hint: is the server running");
}

#[test]
fn a_result_that_cannot_be_written_is_told_before_any_server_is_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    for form in ["--samples", "--csv", "--report"] {
        let words = format!("run -s {address} -n 20 -c 1 --protocol auto {form} /no/such/folder/result");
        let ended = pummel(&words).expect(1);
        assert!(ended.errors.contains("/no/such/folder/result"), "{form}: {}", ended.errors);
    }
    listener.set_nonblocking(true).expect("a socket option");
    assert!(listener.accept().is_err(), "no connection was asked for");
}

/// The words of a login whose password is in a file of `folder`.
fn login(folder: &std::path::Path) -> String {
    let file = folder.join("password");
    std::fs::write(&file, "sesame\n").expect("it is writable");
    format!("--user joe --password-file {}", file.display())
}

/// Asserts that a run against an unkind server ends in time: partial, with a reason and without a panic.
#[track_caller]
fn assert_ends(what: &str, server: &str, words: &str) {
    let began = Instant::now();
    let line = format!("run -s {server} -n 20 -c 2 --records 5 -v --timeout 300ms --protocol auto {words}");
    let ended = pummel(&line);
    let took = began.elapsed();
    assert!(!ended.errors.contains("panicked"), "{what}: {}", ended.errors);
    let ended = ended.expect(1);
    let result = ended.json();
    assert_eq!(result.text("status"), "partial", "{what}");
    assert!(!result.text("reason").is_empty(), "{what}: {}", ended.errors);
    // A run that began has a report.
    assert!(!ended.errors.is_empty() || !ended.text.is_empty(), "{what}: nothing is said");
    assert!(took < Duration::from_secs(45), "{what} took {took:?}");
}

/// A server's way to misbehave on each of its connections.
type Unkindness = (&'static str, fn(&mut TcpStream));

/// Servers that answer no question of any protocol as it is to be answered.
const UNKIND: [Unkindness; 7] = [
    ("silent", |stream| while matches!(stream.read(&mut [0; 256]), Ok(1..)) {}),
    ("closing", |_| {}),
    ("closing after a question", |stream| drop(stream.read(&mut [0; 256]))),
    ("garbage", |stream| {
        let _ = stream.read(&mut [0; 256]);
        let _ = stream.write_all(&[0xfe; 5_000]);
    }),
    ("half an answer", |stream| {
        let _ = stream.read(&mut [0; 256]);
        let _ = stream.write_all(b"STAT pid 1");
        while matches!(stream.read(&mut [0; 256]), Ok(1..)) {}
    }),
    ("endless", |stream| while stream.write_all(&[b'x'; 4_096]).is_ok() {}),
    ("of something else", |stream| {
        let _ = stream.read(&mut [0; 256]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    }),
];

#[test]
fn unkind_servers_end_the_question_in_time_also_with_a_login_and_where_tls_was_expected() {
    let folder = tempfile::tempdir().expect("a folder");
    let login = login(folder.path());
    thread::scope(|scope| {
        for (what, serve) in UNKIND {
            for words in ["", &login, "--tls --tls-insecure", &format!("--tls --tls-insecure {login}")] {
                let (name, words) = (server(serve), words.to_owned());
                scope.spawn(move || assert_ends(&format!("{what} {words}"), &name, &words));
            }
        }
    });
}

#[test]
fn servers_that_are_unkind_within_tls_end_the_question_in_time() {
    let (files, folder) = (Certificates::make(), tempfile::tempdir().expect("a folder"));
    let login = login(folder.path());
    thread::scope(|scope| {
        for fault in ["stall-after=1", "garbage-after=1", "half-reply-after=1", "close-after=1", "refuse"] {
            for (listen, login) in [("", ""), ("--user joe --password-file", login.as_str())] {
                let password = folder.path().join("password").display().to_string();
                let user = if listen.is_empty() { String::new() } else { format!("{listen} {password}") };
                let words =
                    format!("--fault {fault} --tls-cert {} --tls-key {} {user}", files.cert(), files.key());
                let words_of_run =
                    format!("--tls --tls-ca {} --tls-server-name localhost {login}", files.ca());
                scope.spawn(move || {
                    let serve = Serve::start(&words);
                    assert_ends(&format!("{fault} {words_of_run}"), &serve.name, &words_of_run);
                });
            }
        }
    });
}

#[test]
fn a_full_server_is_told_as_that() {
    let memcached = server(|stream| {
        let _ = stream.read(&mut [0; 4_096]);
        let _ = stream.write_all(b"ERROR Too many open connections\r\n");
    });
    let redis = server(|stream| {
        let _ = stream.read(&mut [0; 4_096]);
        let _ = stream.write_all(b"-ERR max number of clients reached\r\n");
    });
    for name in [memcached, redis] {
        let ended = run(&name, "").expect(1);
        let said = format!("{} {}", ended.errors, ended.text);
        assert!(
            said.contains("Too many open connections") || said.contains("max number of clients"),
            "{said}"
        );
    }
}

/// A run in this protocol, whatever the server speaks.
fn run_in(protocol: &str, server: &str, more: &str) -> Ended {
    pummel(&format!("run -s {server} -n 200 -c 2 --records 20 -v --protocol {protocol} {more}"))
}

#[test]
fn a_run_that_stores_and_measures_nothing_has_its_reason_and_a_hint_and_no_table() {
    let (memcached, redis) = (Memcached::start(), Redis::start(&[]));
    let asks = "hint: --protocol auto finds out";
    assert_no_run(run_in("text", &redis.name(), ""), "looks like RESP", asks);
    assert_no_run(run_in("resp2", &memcached.name, ""), "looks like memcached's text protocol", asks);
    assert_no_run(run_in("text", &memcached.name, "--value-size 2m"), "object too large", "--value-size");
    let load = format!("load -s {} --protocol text --records 20 -v", redis.name());
    assert_no_run(pummel(&load), "looks like RESP", asks);
    let closing = server(|_| {});
    assert_no_run(run_in("text", &closing, ""), &closing, "does the server expect TLS (--tls)");
    let http = server(|stream| {
        let _ = stream.read(&mut [0; 4_096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        while matches!(stream.read(&mut [0; 4_096]), Ok(1..)) {}
    });
    assert_no_run(run_in("text", &http, ""), "looks like HTTP", "is this its port?");
}

#[test]
fn a_summary_of_nothing_is_its_reason() {
    let words = "--format markdown";
    let ended = run_in("text", &Reserved::new().name, words).expect(1);
    assert!(ended.text.starts_with("### PARTIAL"), "{}", ended.text);
    assert!(!ended.text.contains("|---"), "{}", ended.text);
}

#[test]
fn a_named_protocol_asks_nothing() {
    let memcached = Memcached::start();
    let connections = || memcached.connect().stats().get("total_connections");
    let before = connections();
    let words = format!("run -s {} -n 20 -c 1 --no-load --no-evidence -v --protocol text", memcached.name);
    pummel(&words).expect(0);
    // One of the run, and one of this question.
    assert_eq!(connections() - before, 2);
}

#[test]
fn each_side_of_a_comparison_by_common_agents_is_known_by_its_own_servers() {
    let (open, closed) = (Memcached::start(), Memcached::start_with_users("name", "word"));
    let agent = Agent::start();
    let sides = format!("ab -s {} --versus {} --agents {}", open.name, closed.name, agent.name);
    let ended = pummel(&format!("{sides} -n 50 -c 2 --records 20 --pairs 2")).expect(1);
    assert!(ended.errors.contains(&format!("{} requires a login", closed.name)), "{}", ended.errors);
}

#[test]
fn an_interrupt_ends_the_question_for_the_protocol_and_leaves_a_result() {
    for words in ["run", "run --repeat 3", "search --goal p99:1ms"] {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = silent.local_addr().expect("it is bound");
        let run = Running::start(&format!("{words} -s {address} --protocol auto -t 1s --timeout 60s -v"));
        let (mut asked, _) = silent.accept().expect("the question's connection");
        let mut question = [0; 9];
        asked.read_exact(&mut question).expect("a question");
        let interrupted = Instant::now();
        run.process.interrupt();
        let ended = run.end().expect(130);
        assert!(interrupted.elapsed() < Duration::from_secs(20), "{words}: {:?}", interrupted.elapsed());
        assert_eq!(ended.json().text("reason"), "interrupted", "{words}");
    }
}
