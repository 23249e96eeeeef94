//! Verdicts on runs against real servers: the limit that was staged is the one that the result names.
//!
//! On a machine that is busy with other things the CPU of the generator or of the server is truly taken away, and a verdict
//! that says so is an honest one: it is accepted where the figures of the result prove it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{Ended, Json, Memcached, Running, Serve, in_the_midst, pummel, quiet};

/// Number of runs that have to name what was staged, and of how many at most.
const RIGHT_MIN: usize = 2;
const RUNS_MAX: usize = 5;

/// A share of its time without a CPU that disturbs a thread, as the rows of the table have it.
const TAKEN_SHARE: f64 = 0.05;

/// Fails unless enough of some runs name this row and limit with these words, and no other run says anything else that it
/// cannot prove by the state of the machine.
#[track_caller]
fn assert_named(row: &str, limit: &str, words: &[&str], run: impl Fn() -> Ended) {
    let _alone = quiet();
    let (mut right, mut honest, mut wrong) = (0, 0, Vec::new());
    while right < RIGHT_MIN && right + honest + wrong.len() < RUNS_MAX {
        let result = run().json();
        let (named, says) = (result.text("verdict/row").to_owned(), result.text("verdict/says").to_owned());
        if named == row && words.iter().all(|word| says.contains(word)) {
            assert_eq!(result.text("verdict/limit"), limit, "{says}");
            right += 1;
        } else if is_proven(&result) {
            honest += 1;
        } else {
            wrong.push(format!("{named}: {says} {}", result.at("verdict/evidence")));
        }
    }
    if right < RIGHT_MIN && wrong.is_empty() {
        eprintln!(
            "{row}: the machine is too busy to stage it ({honest} runs were disturbed, {right} were right)"
        );
        return;
    }
    assert!(
        right >= RIGHT_MIN,
        "{right} runs named {row}, {honest} were disturbed, and these were wrong: {wrong:#?}"
    );
}

/// Whether a verdict is one on a disturbed machine, by figures that it is not made of: the time that threads waited for a
/// CPU, turns that no work explains, and the share of lag in the slow responses.
fn is_proven(result: &Json) -> bool {
    let generator_waited = waited(result, "machines", "workers", "seconds") > TAKEN_SHARE;
    let server_waited = waited(result, "servers", "threads", "threads_seconds") > TAKEN_SHARE;
    match result.text("verdict/row") {
        "generator-cpu-taken" => generator_waited,
        // A full thread that waited for its CPU is told with the time for which it did.
        "server-run-delay" | "server-cpu" => server_waited,
        // What a thread that waits for a CPU does to others, where no row about that CPU stands above.
        "generator-thread-busy" | "shared-cpu" | "slots" | "server-bursts" | "waits-by-exclusion" => {
            generator_waited || server_waited
        }
        "generator-kept-back" => {
            let is_late = result.at("trust/lag_share/p99").as_f64() > Some(TAKEN_SHARE);
            result.count("generator/stalls") > 0 || is_late
        }
        "generator-stood-still" => result.count("generator/stalls") > 0,
        _ => false,
    }
}

/// The greatest share of its time for which a thread of the first server or machine waited for a CPU, or the hypervisor had
/// taken it; 0 where the length of the readings is not known.
fn waited(result: &Json, owners: &str, threads: &str, seconds: &str) -> f64 {
    let owner = &result.at("evidence")[owners][0];
    let delays =
        owner[threads].as_array().into_iter().flatten().filter_map(|one| one["run_delay_s"].as_f64());
    let taken = delays.fold(0.0, f64::max) + owner["steal_s"].as_f64().unwrap_or(0.0);
    owner[seconds].as_f64().map_or(0.0, |seconds| taken / seconds)
}

#[test]
fn one_connection_that_waits_for_its_answers_is_what_is_in_flight() {
    let server = Memcached::start();
    let words = ["what is in flight: 1 request (1 connection)", "the server's CPU was"];
    assert_named("in-flight", "connections", &words, || {
        pummel(&format!("run -s {} -c 1 -t 300ms --records 500 --quiet", server.name)).expect(0)
    });
}

#[test]
fn a_server_of_one_thread_that_is_asked_for_more_than_it_can_is_the_limit() {
    let server = Memcached::start();
    assert_named(
        "server-cpu",
        "server",
        &["the server's CPU: its one thread was ", " % busy (pummel's thread: "],
        || pummel(&format!("run -s {} -c 50 -d 16 -t 300ms --records 500 --quiet", server.name)).expect(0),
    );
}

#[test]
fn a_second_client_of_the_server_is_named() {
    // Replies are held so long that the time in which the generator wakes up is no part of them.
    let server = Serve::start("--service-time 2ms");
    let mut second = Running::start(&format!(
        "run -s {} -c 3 --rate 1k -t 5m --records 500 --interval 100ms",
        server.name
    ));
    second.wait_for_progress();
    assert_named("others", "others", &["other clients: ", "beside our "], || {
        pummel(&format!("run -s {} -c 10 --rate 500 -t 300ms --records 500 --quiet", server.name)).expect(0)
    });
    second.kill();
}

#[test]
fn a_server_that_takes_too_few_connections_is_the_limit() {
    let server = Memcached::start_for(20);
    let words = ["the server's limit of connections. -c ", " here, or a greater -c there"];
    assert_named("server-connections", "server", &words, || {
        let name = &server.name;
        pummel(&format!(
            "run -s {name} -c 40 --reconnect --no-load --rate 500 -t 300ms --records 500 --quiet"
        ))
    });
}

#[test]
fn records_that_do_not_fit_are_the_workload() {
    let server = Memcached::start_of_megabytes(8);
    let words = ["the server's memory: ", " % full, ", "eviction", ". More of it (-m), or fewer records"];
    assert_named("lost-records", "workload", &words, || {
        let mix = "--records 12k --value-size 2k --mix get:1,set:1";
        pummel(&format!("run -s {} -c 10 --rate 1k -t 300ms {mix} --quiet", server.name)).expect(0)
    });
}

#[test]
fn records_that_something_else_removed_are_the_workload() {
    let server = Memcached::start();
    let words = ["the records: ", "of the keys were not found, though all 500 were stored before"];
    assert_named("lost-records", "workload", &words, || {
        let (ended, ()) = in_the_midst(Duration::from_millis(600), |time| {
            let words =
                format!("run -s {} -c 20 --rate 500 {time} --records 500 --interval 50ms", server.name);
            let mut running = Running::start(&words);
            running.wait_for_progress();
            let mut other = TcpStream::connect(&server.name).expect("it listens");
            other.write_all(b"flush_all\r\n").expect("it reads");
            other.read_exact(&mut [0; 4]).expect("it answers");
            (running, ())
        });
        ended.expect(0)
    });
}

#[test]
fn nobody_is_the_limit_of_a_run_that_everything_has_time_for() {
    let server = Memcached::start();
    let words = ["none reached: every request was answered as it came", "would be the first, at about "];
    assert_named("none", "none", &words, || {
        pummel(&format!("run -s {} -c 10 --rate 500 -t 300ms --records 500 --quiet", server.name)).expect(0)
    });
}

#[test]
fn a_server_that_stands_still_in_bursts_is_accused_and_the_generator_is_not() {
    let server = Memcached::start();
    assert_named("server-bursts", "server", &["the server: it stood still "], || {
        let (ended, ()) = in_the_midst(Duration::from_millis(700), |time| {
            let words = format!("run -s {} -c 5 --rate 1k {time} --records 500 --interval 50ms", server.name);
            let mut running = Running::start(&words);
            for _ in 0..3 {
                running.wait_for_progress();
                server.process.pause(Duration::from_millis(60));
            }
            (running, ())
        });
        ended.expect(0)
    });
}
