//! The promises of the driver, each kept by every front: one table of command lines.

use std::time::Duration;

use crate::common::{Ended, Memcached, Reserved, Running, Serve, in_the_midst_of, until};

/// The fronts, with the words of a run of some seconds, of one that ends soon, and of one whose server is not there. `S`
/// stands for host and port of a server, `H` and `P` for the two apart.
const FRONTS: [Front; 5] = [
    Front {
        name: "native",
        long: "run -s S -t 1h --interval 50ms --records 50 -c 4 --timeout 10s",
        short: "run -s S -n 200 --records 50 -c 4 --timeout 10s",
        failure: 1,
        interrupted: 130,
    },
    Front {
        name: "mutilate",
        long: "mutilate -s S -t 3600 -r 50 -B",
        short: "mutilate -s S -N 200 -r 50 -B",
        failure: 255,
        interrupted: 130,
    },
    Front {
        name: "memaslap",
        long: "memaslap -s S -t 1h -w 1k -c 4",
        short: "memaslap -s S -x 1000 -w 1k -c 4",
        failure: 1,
        // As the original.
        interrupted: 1,
    },
    Front {
        name: "mcperf",
        long: "mcperf -s H -p P -n 100000 -r 100 -N 100000 -R 100",
        short: "mcperf -s H -p P -n 20 -N 10 -r 1000 -R 10000",
        failure: 1,
        interrupted: 130,
    },
    Front {
        name: "memtier_benchmark",
        long: "memtier_benchmark -s H -p P -P memcache_text -c 4 -t 1 --test-time 3600",
        short: "memtier_benchmark -s H -p P -P memcache_text -c 4 -t 1 -n 50",
        failure: 1,
        // As the original.
        interrupted: 0,
    },
];

struct Front {
    /// The word of the JSON result.
    name: &'static str,
    long: &'static str,
    short: &'static str,
    /// The exit status where something cannot be written.
    failure: i32,
    /// The status that a shell shows after an interruption.
    interrupted: i32,
}

fn words(front: &str, server: &str) -> String {
    let (host, port) = server.rsplit_once(':').expect("host and port");
    let word = |word: &str| match word {
        "S" => server.to_owned(),
        "H" => host.to_owned(),
        "P" => port.to_owned(),
        other => other.to_owned(),
    };
    front.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_checkpoint_is_there_while_the_run_goes_on_and_an_interrupt_completes_it() {
    for front in &FRONTS {
        let server = Memcached::start();
        let running = Running::start(&words(front.long, &server.name));
        until("a checkpoint", || running.path("result.json").exists().then_some(()));
        running.process.interrupt();
        let ended: Ended = running.end().expect(front.interrupted);
        let json = ended.json();
        assert_eq!(
            (json.text("status"), json.text("front")),
            ("interrupted", front.name),
            "{}",
            ended.errors
        );
    }
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_sent() {
    for front in &FRONTS {
        let server = Memcached::start();
        let line = format!("{} --csv no/such/directory/r.csv", words(front.short, &server.name));
        let ended = Running::start(&line).end().expect(front.failure);
        assert!(ended.errors.contains("no/such/directory/r.csv"), "{}: {}", front.name, ended.errors);
        let sent = server.connect().stats().get("cmd_set");
        assert_eq!(sent, 0, "{}: nothing is sent", front.name);
    }
}

#[test]
fn a_run_that_cannot_begin_leaves_a_result_and_says_why() {
    for front in &FRONTS {
        let nowhere = Reserved::new();
        let ended = Running::start(&words(front.short, &nowhere.name)).end();
        assert!(ended.errors.contains("refused"), "{}: {}", front.name, ended.errors);
        assert_eq!(ended.json().text("status"), "partial", "{}: {}", front.name, ended.errors);
    }
}

#[test]
fn a_run_that_ends_well_has_a_result_and_status_0() {
    for front in &FRONTS {
        let server = Memcached::start();
        let ended = Running::start(&words(front.short, &server.name)).end().expect(0);
        assert_eq!(ended.json().text("status"), "complete", "{}", front.name);
    }
}

#[test]
fn two_results_in_one_place_are_refused() {
    for front in &FRONTS {
        let nowhere = Reserved::new();
        let line = format!("{} --csv result.json", words(front.short, &nowhere.name));
        let ended = Running::start(&line).end();
        assert_ne!(ended.status, 0, "{}", front.name);
        let said = "invalid value 'result.json' for '--csv': expected a separate file";
        assert!(ended.errors.contains(said), "{}: {}", front.name, ended.errors);
    }
}

#[test]
fn standard_output_has_the_json_alone_where_it_is_asked_for() {
    for front in &FRONTS {
        let server = Memcached::start();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(words(front.short, &server.name).split(' '))
            .args(["--json", "-"])
            .output()
            .expect("pummel starts");
        let json = crate::common::value_of(&String::from_utf8_lossy(&output.stdout));
        assert_eq!(json["status"], "complete", "{}", front.name);
    }
}

#[test]
fn an_interruption_stays_one_where_the_report_cannot_be_written() {
    for front in FRONTS.iter().filter(|front| front.name != "memaslap") {
        let server = Memcached::start();
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("there is /dev/full");
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(words(front.long, &server.name).split(' '))
            .args(["--json", "r.json"])
            .current_dir(folder.path())
            .stdout(full)
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("pummel starts");
        until("a checkpoint", || folder.path().join("r.json").exists().then_some(()));
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        let status = crate::common::shell_status(process.wait().expect("it is our child"));
        assert_eq!(status, front.interrupted, "{}", front.name);
    }
}

#[test]
fn lag_is_no_doubt_where_a_layout_prints_service_times_alone() {
    // Each attempt has a server that knows of no other.
    let (ended, _server) = in_the_midst_of(Duration::from_secs(2), |time| {
        let server = Serve::start("");
        let words = format!("mutilate -s {} -t {} -r 50 -q 1000 -d 100 -B", server.name, time.as_secs());
        let running = Running::start(&words);
        let mut talk = server.connect();
        until("some load", || (talk.stats().get("cmd_get") > 200).then_some(()));
        // Requests become due while the generator stands still, and it alone keeps them back.
        running.process.pause(Duration::from_millis(600));
        (running, server)
    });
    let ended = ended.expect(0);
    // The generator stood still, and the times that mutilate prints do not contain its lag.
    assert_eq!(ended.doubts.len(), 0, "{:?}", ended.doubts);
    let stalled_s = ended.json().number("generator/stalled_s");
    assert!(stalled_s > 0.3, "{stalled_s} s");
}

#[test]
fn a_series_keeps_its_result_complete_and_ends_by_the_signal() {
    let server = Memcached::start();
    for line in [
        "scan -s S --rates 100:100k:100 -t 300ms --records 50",
        "search -s S --goal p99:1s -t 300ms --records 50",
    ] {
        let running = Running::start(&words(line, &server.name));
        until("a checkpoint", || running.path("result.json").exists().then_some(()));
        running.process.interrupt();
        let ended = running.end().expect(130);
        assert!(ended.json().text("reason").contains("interrupted"), "{}", ended.errors);
    }
}
