//! Bad days of servers and machines: a run never hangs, never loses its report, and never keeps quiet about what went
//! wrong.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::{Nobody, Serve, flat, until};
use crate::unkind::Moment::{Measuring, WarmUp};
use crate::unkind::{
    Host, OVER, PUMMEL, Upset, end, peer, run, say, say_for_ever, serve_alone, start, upset,
    wait_until_measuring,
};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Signal;

const SECOND: Duration = Duration::from_secs(1);

/// Closed and open loop, alone and together, with and without reconnecting, on one and on two threads.
const MODES: [&str; 4] =
    ["-c 1", "-c 10 -d 16 -T 2 --reconnect", "-c 10 -d 16 --rate 2k", "-c 10 --rate 2k -T 2 --reconnect"];

fn reconnects(mode: &str) -> bool {
    mode.contains("--reconnect")
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_reason() {
    let nobody = Nobody::new();
    for mode in MODES {
        let ended = run(&nobody.address.to_string(), &format!("-t 1s {mode}"));
        ended.assert_partial(Duration::ZERO, &nobody.address.to_string());
        assert!(ended.reason().contains("Connection refused"), "{}", ended.reason());
        assert_eq!(ended.number("/connections/open"), 0);
        run("/nonexistent/socket", &format!("-t 1s {mode}"))
            .assert_partial(Duration::ZERO, "/nonexistent/socket");
    }
}

#[test]
fn a_server_that_lets_nobody_in_is_given_up_after_the_timeout() {
    // A listener that never accepts, with its queue full: the kernel drops what comes then.
    let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&listener, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0))
        .expect("a port");
    rustix::net::listen(&listener, 0).expect("it listens");
    let address = std::net::SocketAddr::try_from(rustix::net::getsockname(&listener).expect("an address"))
        .expect("an internet address");
    let mut inside = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, SECOND) {
        inside.push(stream);
    }
    let ended = run(&address.to_string(), "-t 1s -c 10 -T 2 --timeout 500ms");
    ended.assert_partial(SECOND / 2, " of 10 connections could not be opened");
    // One may begin so much later than the others that its time is not up with theirs.
    let told = ended.reason();
    let number = |words: &str| words.parse::<u64>().expect("a number of connections");
    let (failed, _) = told.split_once(" of 10 ").expect("it is told of ten");
    let rest =
        told.split_once("could not be opened (").and_then(|(_, rest)| rest.split_once(" were not tried"));
    assert_eq!(number(failed) + rest.map_or(0, |(rest, _)| number(rest)), 10, "{told}");
    assert!(ended.reason().contains("did not answer in time"), "{}", ended.reason());
}

#[test]
fn a_server_that_closes_at_once_ends_the_run_or_is_asked_again_with_pauses() {
    let server = Serve::start("--fault refuse");
    for mode in MODES {
        let ended = run(&server.name, &format!("-t 1s {mode} --no-load"));
        ended.assert_partial(SECOND, &server.name);
        // Ten clients that waited 10, 20, 40, ... ms in between have not come back hundreds of times.
        assert!(ended.number("/connections/reconnected") < 200, "{ended:?}");
    }
}

/// Misdeed of a server in the middle of a run, and what is said of it with and without `--reconnect`; without a
/// reason, the run is complete.
const FAULTS: [(&str, Option<&str>, Option<&str>); 6] = [
    ("close-after=100", Some("lost and not replaced"), None),
    ("stall-after=100", Some("did not answer for the last"), Some("did not answer for the last")),
    ("half-reply-after=100", Some("did not answer for the last"), Some("did not answer for the last")),
    ("garbage-after=100", Some("lost and not replaced"), Some("did not answer for the last")),
    ("slow-bytes", None, None),
    ("error-every=7", None, None),
];

#[test]
fn a_fault_in_the_middle_of_a_run_is_counted_and_named() {
    // Short replies, because slow bytes are slower on a busy machine.
    let words = "-t 1s --no-baseline --records 50 --value-size 24 --allow-partial-load";
    for (fault, alone, reconnecting) in FAULTS {
        let runs = MODES.map(|mode| {
            let expected = if reconnects(mode) { reconnecting } else { alone };
            // Who waits no longer than this calls a server gone that the machine kept from its work for half of it.
            let timeout = if expected.is_some() { "300ms" } else { "5s" };
            let begin = move || {
                let server = Serve::start(&format!("--fault {fault}"));
                let running = start(&server.name, &format!("{words} --timeout {timeout} {mode}"));
                (server, running)
            };
            (mode, expected, begin, begin())
        });
        for (mode, expected, begin, (mut server, running)) in runs {
            let mut ended = end(running);
            // Where the machine kept the server from its work for longer than the timeout, nothing was stored, and no run began.
            for _ in 0..5 {
                if !ended.reason().contains("records was stored") {
                    break;
                }
                let (again, running) = begin();
                (server, ended) = (again, end(running));
            }
            drop(server);
            match expected {
                Some(reason) => ended.assert_partial(SECOND, reason),
                None => ended.assert_complete(SECOND),
            }
            assert!(ended.number("/totals/completed") > 0, "{fault} {mode}");
            if fault != "slow-bytes" {
                assert!(ended.number("/totals/errors") > 0, "{fault} {mode}");
            }
        }
    }
}

#[test]
fn a_server_that_dies_while_it_is_measured_leaves_a_report() {
    for mode in MODES {
        let Upset { time, ended, address } = upset(2 * SECOND, Measuring, mode, Serve::kill);
        ended.assert_partial(time, &address);
        assert!(ended.number("/totals/completed") > 0, "{mode}");
    }
}

#[test]
fn a_server_that_dies_while_it_is_warmed_up_leaves_a_report() {
    for mode in MODES {
        let Upset { time, ended, address } = upset(SECOND, WarmUp, mode, Serve::kill);
        ended.assert_partial(time + SECOND, &address);
        assert_eq!(ended.number("/totals/completed"), 0, "{mode}");
    }
}

#[test]
fn a_server_that_dies_while_it_is_loaded_leaves_a_report() {
    for mode in ["-c 10 -T 2", "-c 1 --rate 2k"] {
        let mut server = Serve::start("");
        let running = start(&server.name, &format!("-t 1s --records 100m {mode}"));
        server.wait_for("cmd_set", 1_000);
        server.kill();
        let ended = end(running);
        ended.assert_partial(SECOND, "lost and not replaced");
        assert!(ended.number("/load/stored") > 0);
    }
}

#[test]
fn a_server_that_never_comes_back_ends_a_run_that_no_clock_ends() {
    let rows = [
        ("--records 100m -t 1s -c 10 --reconnect", "cmd_set"),
        ("--records 50 -n 1g -c 10 -T 2 --reconnect", "cmd_get"),
    ];
    let runs = rows.map(|(words, counter)| {
        let mut server = serve_alone();
        let running = start(&server.name, words);
        server.wait_for(counter, 1_000);
        server.kill();
        running
    });
    for running in runs {
        end(running).assert_partial(12 * SECOND, "lost and not replaced");
    }
}

#[test]
fn a_server_that_freezes_for_good_answers_no_more_in_any_phase() {
    for mode in MODES {
        let freeze = |server: &mut Serve| server.process.signal(Signal::STOP);
        let Upset { time, ended, .. } = upset(2 * SECOND, Measuring, mode, freeze);
        ended.assert_partial(time, "did not answer for the last");
        let words = format!("--timeout 500ms {mode}");
        let Upset { time, ended, .. } = upset(SECOND, WarmUp, &words, freeze);
        ended.assert_partial(time + SECOND, "nothing completed");
    }
    let server = Serve::start("");
    let running = start(&server.name, "-t 2s --records 100m -c 10 -T 2");
    server.wait_for("cmd_set", 1_000);
    server.process.signal(Signal::STOP);
    end(running).assert_partial(2 * SECOND, "lost and not replaced");
}

#[test]
fn a_server_that_is_frozen_from_the_start_is_given_up() {
    let server = Serve::start("");
    server.process.signal(Signal::STOP);
    let runs = ["-t 2s -c 1", "-t 2s -c 10 -d 16 --rate 2k -T 2", "-n 1m -c 2"]
        .map(|words| start(&server.name, words));
    for running in runs {
        end(running).assert_partial(2 * SECOND, "longer than the timeout");
    }
}

#[test]
fn a_server_that_was_frozen_for_a_second_is_waited_for() {
    for mode in MODES {
        let Upset { time, ended, .. } =
            upset(2 * SECOND, Measuring, &format!("--timeout 20s {mode}"), |server| {
                server.process.signal(Signal::STOP);
                std::thread::sleep(SECOND);
                server.process.signal(Signal::CONT);
            });
        ended.assert_complete(time);
        assert_eq!(ended.number("/totals/errors"), 0, "{mode}");
    }
}

#[test]
fn a_server_that_comes_back_is_gone_on_with() {
    for mode in MODES.into_iter().filter(|mode| reconnects(mode)) {
        let Upset { time, ended, .. } = upset(3 * SECOND, Measuring, mode, |server| {
            server.kill();
            *server = Serve::start_at(&server.name, "");
            server.wait_for("cmd_get", 1);
        });
        ended.assert_complete(time);
        assert!(ended.number("/connections/lost") > 0, "{mode}");
        assert!(ended.number("/connections/reconnected") > 0, "{mode}");
    }
}

#[test]
fn what_is_no_memcached_is_recognised() {
    let rows: [(Host, &str); 9] = [
        (|to| say(to, b"HTTP/1.1 400 Bad Request\r\n\r\n"), "HTTP"),
        (|to| say(to, b"-ERR unknown command 'get'\r\n"), "RESP"),
        (|to| say(to, b"\0\0\0\0"), "not allow"),
        (|to| say_for_ever(to, &[b'x'; 65_536]), "not allow"),
        (|to| say_for_ever(to, &[b'1'; 65_536]), "longer than any"),
        (|to| say_for_ever(to, b"END\r\n"), "a reply to no request"),
        (|to| say(to, b"VALUE a 0 5\r\nabcdefgh\r\nEND\r\n"), "its length is not what the server said"),
        (|to| say(to, b"VALUE a 0 99999999999999999999999\r\nabc"), "VALUE line"),
        (|mut to| drop(to.write_all(b"220 ready\r\n").map(|()| to.read(&mut [0; 99]))), "not allow"),
    ];
    for (host, reason) in rows {
        let address = peer(host);
        // Gets alone, because each of the rows is an answer to a get, and the first of four connections may send a set.
        run(&address, "-t 1s -c 4 --no-load --mix get:1").assert_partial(SECOND, reason);
        // Loading comes first here: what is an answer to a get is none to a set.
        let reason = if ["HTTP", "RESP"].contains(&reason) { reason } else { "the protocol does not allow" };
        run(&address, "-t 1s -c 1 -d 16 --records 100").assert_partial(SECOND, reason);
        let ended = run(&address, "-t 1s -c 2 --rate 100 --reconnect --no-load");
        ended.assert_in_time(SECOND);
    }
}

#[test]
fn replies_that_are_cut_for_ever_are_timeouts() {
    let rows: [Host; 3] = [
        |to| say(to, b"EN"),
        |to| say(to, b"VALUE a 0 500\r\nabcdefgh\r\nEND\r\n"),
        |to| say(to, b"SERVER_ERROR out of"),
    ];
    for host in rows {
        let ended = run(&peer(host), "-t 1s -c 4 --timeout 300ms --no-load --mix get:1");
        ended.assert_partial(SECOND, "longer than the timeout");
        assert!(ended.errors("get", "timeout") > 0);
    }
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_sent() {
    let server = Serve::start("");
    let before = server.connect().stats().get("total_connections");
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("plain");
    fs::write(&plain, "").expect("written");
    let through_a_file = plain.join("r");
    for flag in ["--json", "--csv", "--hdr", "--samples"] {
        for path in ["/nonexistent/r", "/dev/full", through_a_file.to_str().expect("UTF-8"), "/"] {
            // A protocol that is left open would be asked for first.
            let server = ["run", "-s", &server.name, "--protocol", "text"];
            let output = pummel(&[&server[..], &["-t", "1s", flag, path]].concat());
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{flag} {path}: {errors}");
            assert!(errors.contains("cannot write") && errors.contains(path), "{flag} {path}: {errors}");
        }
    }
    assert_eq!(server.connect().stats().get("total_connections"), before + 1, "only this question");
}

#[test]
fn too_few_descriptors_are_said_and_a_soft_limit_is_raised() {
    let server = Serve::start("");
    let before = server.connect().stats().get("total_connections");
    let limited = |limit: &str| {
        let line = format!(
            "{limit}; exec {PUMMEL} run -s {} --protocol text -t 100ms -c 100 --records 100",
            server.name
        );
        Command::new("sh").args(["-c", &line]).output().expect("a shell")
    };
    let output = limited("ulimit -Sn 64 && ulimit -Hn 64");
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains("100 connections need 1") && errors.contains("ulimit -Hn"), "{errors}");
    assert_eq!(server.connect().stats().get("total_connections"), before + 1, "only this question");
    let output = limited("ulimit -Sn 64");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("limit"), "{}", text(&output.stderr));
}

#[test]
fn clients_that_come_and_go_are_as_many_as_there_are_descriptors() {
    let server = Serve::start("");
    let line = format!(
        "ulimit -Sn 64 && ulimit -Hn 64; exec {PUMMEL} run -s {} -t 2s -c 1000 --conn-rate 100k --no-load --quiet",
        server.name
    );
    let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    assert_eq!(output.status.code(), Some(1));
    // The report breaks its lines where they are full.
    let report = flat(&text(&output.stdout));
    assert!(report.contains("this machine let no more than") && report.contains("ulimit -Hn"), "{report}");
    let (found, _) = report.split_once(" found no room").expect("it is counted");
    let found = found.rsplit(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
    // The first turn's, and one more each second.
    assert!(found <= 64 + 3, "{found}: {report}");
}

#[test]
fn a_server_that_is_not_there_is_not_knocked_at_without_a_pause() {
    let nobody = Nobody::new();
    for births in ["--calls-per-connection 1", "--conn-rate 100k"] {
        let ended = run(&nobody.address.to_string(), &format!("-t 1s -c 10 --no-load {births}"));
        ended.assert_partial(SECOND, "Connection refused");
        // Ten clients that wait 10, 20, 40, ... ms in between; those who begin late make fewer attempts.
        let begun = ended.number("/connections/churn/clients");
        assert!((10..=10 * 7).contains(&begun), "{begun}");
    }
}

#[test]
fn what_this_machine_has_not_is_refused() {
    let server = Serve::start("");
    let output = pummel(&["run", "-s", &server.name, "-t", "100ms", "--cpus", "0,1023"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(errors.contains("'1023' for '--cpus'") && errors.contains("expected CPUs"), "{errors}");
    // An address for documentation (RFC 5737), which no machine has.
    run(&server.name, "-t 100ms --source 192.0.2.1").assert_partial(SECOND, "not one of this machine");
    let ended = run(&server.name, "-t 300ms -T 16 -c 32 --rate 1k --records 100");
    ended.assert_complete(SECOND);
}

#[test]
fn nobody_has_to_listen() {
    let server = Serve::start("");
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("r.json");
    let shell = |rest: &str| {
        let server = &server.name;
        let line = format!(
            "{PUMMEL} run -s {server} -t 300ms --interval 50ms --records 100 --json {} {rest}",
            json.display()
        );
        let output = Command::new("bash").args(["-c", &line]).output().expect("a shell");
        let result = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{rest}: {error}"));
        assert!(result.contains("\"status\": \"complete\""), "{rest}: {result}");
        fs::remove_file(&json).expect("it is there");
        assert!(output.status.signal().is_none(), "{rest}: {output:?}");
        output.status.code()
    };
    assert_eq!(shell("2>&-"), Some(0));
    assert_eq!(shell("2>/dev/full"), Some(0));
    assert_eq!(shell("2>&1 >/dev/null | head -1; exit ${PIPESTATUS[0]}"), Some(0));
    // A report whose reader is gone is a failure to write it; all others are written nevertheless.
    assert_eq!(shell(">/dev/full"), Some(1));
    assert_eq!(shell(">&-"), Some(1));
    assert_eq!(shell(">&- 2>&- <&-"), Some(1));
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Serve::start("");
    let server = &server.name;
    // In blocks of 1,024 bytes: there is room neither for the check before the run nor, with more, for the result.
    for (blocks, options) in [(8, "-t 100ms"), (70, "-t 500ms --interval 10ms")] {
        let line = format!(
            "ulimit -f {blocks}; exec {PUMMEL} run -s {server} --records 100 {options} --json {}",
            folder.path().join("r.json").display()
        );
        let output = Command::new("bash").args(["-c", &line]).output().expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{blocks}: {errors}");
        assert!(errors.contains("File too large") && errors.contains("ulimit -f"), "{blocks}: {errors}");
        let names: Vec<_> = fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("one").file_name())
            .collect();
        assert!(names.iter().all(|name| name == "r.json"), "{blocks}: {names:?}");
    }
}

#[test]
fn what_cannot_be_printed_is_an_error_whatever_it_is() {
    let server = Serve::start("");
    let server = &server.name;
    let measured = format!("-s {server} -t 100ms --records 100");
    let programs = [
        format!("run {measured}"),
        format!("run {measured} --json -"),
        format!("run {measured} --format json"),
        format!("load -s {server} --records 100"),
        format!("scan {measured} --rates 1k:1k:1k --json -"),
        "explain run -s a".to_owned(),
        format!("demo -s {server}"),
        "demo".to_owned(),
        "serve --listen 127.0.0.1:0 --max-seconds 1".to_owned(),
        "run --help".to_owned(),
        "--version".to_owned(),
    ];
    for program in &programs {
        for (to, why) in [
            (">&-", "Bad file descriptor"),
            ("1</dev/null", "Bad file descriptor"),
            (">/dev/full", "No space left on device"),
        ] {
            let output = Command::new("bash").args(["-c", &format!("{PUMMEL} {program} {to}")]).output();
            let output = output.expect("a shell");
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{program} {to}: {errors}");
            assert!(errors.contains(why), "{program} {to}: {errors}");
        }
    }
}

#[test]
fn a_load_that_fails_ends_the_run_and_one_that_fails_in_part_is_said() {
    let server = Serve::start("");
    let words = "-t 1s -c 2 -T 2 --records 20";
    let ended = run(&server.name, &format!("{words} --value-size 2m --allow-partial-load"));
    ended.assert_partial(
        Duration::ZERO,
        "none of 20 records was stored: the server said \"SERVER_ERROR object too large",
    );
    assert_eq!(ended.number("/totals/requests"), 0);
    assert_eq!((ended.number("/load/errors"), ended.number("/load/stored")), (20, 0));
    let sizes = "--value-size weighted:10-10@0.5,2000000-2000000@0.5";
    let ended = run(&server.name, &format!("{words} {sizes}"));
    ended.assert_partial(
        SECOND,
        " of 20 records were not stored: the server said \"SERVER_ERROR object too large",
    );
    assert!(ended.number("/totals/completed") > 0);
    run(&server.name, &format!("{words} {sizes} --allow-partial-load")).assert_complete(SECOND);
    server.process.signal(Signal::STOP);
    let ended = run(&server.name, &format!("{words} --timeout 300ms"));
    ended.assert_partial(SECOND, "none of 20 records was stored");
    assert_eq!(ended.number("/totals/requests"), 0);
}

#[test]
fn an_interrupt_at_any_moment_leaves_a_report() {
    let modes = ["-c 10 --timeout 30s", "-c 10 -d 16 --rate 2k -T 2 --reconnect --timeout 30s"];
    // Words, the counter that shows the moment, and whether the server is frozen then.
    let moments = [
        ("-t 20s --records 100m", "cmd_set", false),
        ("-t 20s --records 100m", "cmd_set", true),
        ("-t 1s --warmup 20s --records 50", "cmd_get", false),
        ("-t 20s --records 50", "cmd_get", false),
        ("-t 20s --records 50", "cmd_get", true),
        ("-n 100m --records 50", "cmd_get", true),
    ];
    for mode in modes {
        for (words, counter, frozen) in moments {
            let server = Serve::start("");
            let mut running = start(&server.name, &format!("{words} {mode}"));
            server.wait_for(counter, 100);
            if frozen {
                server.process.signal(Signal::STOP);
            }
            assert!(!running.has_ended(), "{words} {mode}");
            let interrupted = std::time::Instant::now();
            running.process.signal(Signal::INT);
            let ended = end(running);
            assert_eq!(ended.status, 130, "{words} {mode}: {}", ended.err);
            assert!(interrupted.elapsed() < OVER, "{words} {mode}");
            assert_eq!(ended.reason(), "interrupted");
            assert!(ended.out.contains("INTERRUPTED"), "{}", ended.out);
        }
    }
}

#[test]
fn an_interrupt_while_connections_are_opened_or_answers_are_waited_for_leaves_a_report() {
    // The drain is over a second after the half that is measured, which begins later than the process does. A busy machine may come
    // too late for it, or hold the server when all is answered.
    const IN_TIME: Duration = Duration::from_millis(1_400);
    let in_time = (0..10).find_map(|_| {
        let server = Serve::start("");
        let running = start(&server.name, "-t 500ms --interval 50ms --records 50 -c 4 --timeout 30s");
        wait_until_measuring(&running);
        server.process.signal(Signal::STOP);
        // In the drain or just before it.
        std::thread::sleep(SECOND / 2);
        running.process.signal(Signal::INT);
        let ended = (running.started.elapsed() < IN_TIME).then(|| end(running))?;
        (ended.number("/totals/unfinished") > 0).then_some(ended)
    });
    let ended = in_time.expect("one of ten interrupts comes in time");
    assert_eq!(ended.status, 130);
    ended.assert_in_time(SECOND);
}

#[test]
fn a_terminal_that_goes_away_leaves_a_report_however_often_it_says_so() {
    let server = Serve::start("");
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("r.json");
    // The process that runs the tests may have been told to outlive the terminal.
    let mut process = Command::new("env")
        .args(["--default-signal=HUP", PUMMEL, "run", "-s", server.name.as_str(), "--json"])
        .arg(&json)
        .args(["-t", "20s", "--records", "50", "-c", "4", "--timeout", "30s", "--quiet"])
        .stdout(Stdio::null())
        .spawn()
        .expect("env is there");
    server.wait_for("cmd_get", 100);
    for _ in 0..2 {
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, Signal::HUP).expect("it is our child");
    }
    let status = process.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(Signal::HUP.as_raw()), "{status:?}");
    let result = fs::read_to_string(&json).expect("the result is there");
    assert!(result.contains("\"status\": \"interrupted\""), "{result}");
}

#[test]
fn who_is_to_outlive_the_terminal_does() {
    let server = Serve::start("");
    let line = format!(
        "trap '' HUP; {PUMMEL} run -s {} -t 300ms --records 50 --quiet & kill -HUP $!; wait $!",
        server.name
    );
    let output = Command::new("bash").args(["-c", &line]).output().expect("a shell");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_result_that_may_not_become_so_large_is_said_and_the_report_is_there() {
    let server = Serve::start("");
    let folder = tempfile::tempdir().expect("a folder");
    // 128 KiB are enough for the probe, and not for so many requests.
    let line = format!(
        "ulimit -f 128; exec {PUMMEL} run -s {} -n 20k --records 50 --samples {}",
        server.name,
        folder.path().join("samples").display()
    );
    let output = Command::new("bash").args(["-c", &line]).output().expect("a shell");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("samples") && err.contains("too large"), "{err}");
    assert!(out.contains("\nResult   "), "{out}");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let server = Serve::start("");
    let mut running = start(&server.name, "-t 20s --interval 50ms --records 50 -c 4 --timeout 30s");
    wait_until_measuring(&running);
    server.process.signal(Signal::STOP);
    running.process.signal(Signal::INT);
    // The same signal again at once would be the same wish.
    until("its end", || {
        running.process.signal(Signal::INT);
        running.has_ended().then_some(())
    });
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one_wish_and_ends_the_process_after_its_report() {
    let server = Serve::start("");
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let running = start(&server.name, "-t 20s --interval 50ms --records 50 -c 4 --timeout 30s");
        wait_until_measuring(&running);
        // As GNU timeout does, which tells the process and then its group.
        for _ in 0..2 {
            running.process.signal(signal);
        }
        let ended = end(running);
        assert_eq!(ended.status, status, "{}", ended.err);
        assert!(ended.out.contains("INTERRUPTED"), "{}", ended.out);
        assert_eq!((ended.reason(), ended.number("/exit")), ("interrupted", status as u64));
    }
}

#[test]
fn a_loop_of_a_shell_ends_with_the_run_that_is_interrupted() {
    let server = Serve::start("");
    let folder = tempfile::tempdir().expect("a folder");
    let (json, ran) = (folder.path().join("r.json"), folder.path().join("ran"));
    let line = format!(
        "for n in 1 2 3; do echo $n >> {}; {PUMMEL} run -s {} -t 20s --records 50 --quiet --interval 50ms --json {}; done",
        ran.display(),
        server.name,
        json.display()
    );
    // A process group of its own, as a terminal has it for what runs in its foreground, and where interrupts are not ignored,
    // as they are in what a script starts in the background.
    let mut shell = Command::new("setsid")
        .args(["env", "--default-signal=INT", "bash", "-c", &line])
        .stdout(Stdio::null())
        .spawn()
        .expect("bash");
    until("a result", || json.exists().then_some(()));
    let group = rustix::process::Pid::from_child(&shell);
    rustix::process::kill_process_group(group, Signal::INT).expect("it is our group");
    assert_eq!(shell.wait().expect("it is our child").signal(), Some(Signal::INT.as_raw()));
    assert_eq!(fs::read_to_string(&ran).expect("it ran"), "1\n");
}

/// Flag and wrong value, beyond those that are refused for what they mean: what cannot be a number of that kind at all.
const NONSENSE: &[(&str, &[&str])] = &[
    ("--time", &["nan", "inf", "", "1e3", "99999999999999999999h", "1 s", "0.0001ms", "\u{0661}s"]),
    ("--warmup", &["nan", "", "0.1us"]),
    ("--requests", &["18446744073709551616", "nan", "", "1e6", "0x10", "+5"]),
    ("--connections", &["", "-1", "999999999999", "\u{ff11}", "4294967296"]),
    ("--depth", &["", "-1", "99999999999"]),
    ("--threads", &["", "-1", "1025", "4294967297"]),
    ("--rate", &["nan", "1e400", "", "2g", "-0", "0.0000001", "0.0000000000001"]),
    ("--arrivals", &["", "fixed:nan"]),
    ("--records", &["", "-1", "1.5"]),
    (
        "--key-size",
        &["", "nan", "uniform:1", "normal:30,-1", "weighted:", "weighted:1-2@nan", "pareto:1,0,0"],
    ),
    ("--value-size", &["1e400", "file:", "normal:inf,1", "18446744073709551616"]),
    ("--ttl", &["-1", "nan"]),
    ("--mix", &["", ",", "get:nan", "get:inf", "get:-1", "get:1,", "GET:1", "get:1e308,set:1e308"]),
    ("--popularity", &["", "zipf:nan", "zipf:-1", "hot:2,0.5", "hot:nan,1", "hot:0.1"]),
    ("--multiget", &["", "-1"]),
    ("--seed", &["", "-1", "18446744073709551616"]),
    ("--cpus", &["", "1024", "-1", "0-", "0-99999999999"]),
    ("--source", &["", "1.2.3", "127.0.0.1,"]),
    ("--timeout", &["nan", "", "0.1us"]),
    ("--interval", &["nan", "", "1ms", "61m"]),
    ("--goal", &["", "p:1ms", "pnan:1ms", "p99:nan", "p-1:1ms", "p0:1ms", "p99:"]),
    ("--server", &["h:99999", ",", "[::1", "a b", "tcp://x:1", ":"]),
    ("--plan", &["", "/dev/null", "/"]),
];

#[test]
fn nonsense_is_refused_and_nothing_is_sent() {
    let server = Serve::start("");
    let before = server.connect().stats().get("total_connections");
    for (flag, values) in NONSENSE {
        for value in *values {
            let joined = format!("{flag}={value}");
            let mut words = vec!["run", &joined];
            if !["--server", "--plan"].contains(flag) {
                words.extend(["-s", &server.name]);
            }
            let output = pummel(&words);
            let errors = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{joined}: {errors}");
            assert!(errors.contains(flag) && errors.contains("expected "), "{joined}: {errors}");
            assert!(errors.contains(&format!("'{value}'")), "{joined}: {errors}");
        }
    }
    assert_eq!(server.connect().stats().get("total_connections"), before + 1, "only this question");
}

#[test]
fn small_and_large_numbers_do_what_they_say() {
    let server = Serve::start("");
    let complete = |words: &str, requests: Option<u64>| {
        let ended = run(&server.name, &format!("{words} --timeout 20s"));
        ended.assert_complete(2 * SECOND);
        if let Some(requests) = requests {
            assert_eq!(ended.number("/totals/completed"), requests, "{words}");
        }
    };
    complete("-t 1ms", None);
    complete("-n 1", Some(1));
    complete("-n 7 -T 2", Some(7));
    complete("-n 7 -t 2s", Some(7));
    complete("-c 1 -d 1000 -t 200ms", None);
    complete("-t 100ms --warmup 500ms", None);
    complete("-t 100ms --warmup 500ms -d 16 -T 2", None);
    complete("-t 200ms --interval 10ms", None);
    complete("-t 200ms --interval 1h", None);
    complete("-n 10 --no-load --records 1099511627776", Some(10));
    complete("-t 200ms --records 1", None);
    for bytes in [0, 23, 24, 100_000] {
        complete(&format!("-t 200ms --records 50 --verify 1 --value-size {bytes}"), None);
    }
    complete("-t 200ms --key-size 250", None);
}

#[test]
fn the_earlier_of_time_and_number_ends_a_run_and_both_complete_it() {
    let server = Serve::start("");
    let ended = run(&server.name, "-t 1s -n 1m --rate 200 -c 2 --records 50 --arrivals constant");
    ended.assert_complete(SECOND);
    assert_eq!(ended.number("/totals/requests"), 200);
}

#[test]
fn an_overload_is_counted_and_ends_in_time() {
    let server = Serve::start("--service-time 5ms");
    let ended = run(&server.name, "-t 1s -c 2 --rate 100k --arrivals constant --records 50");
    ended.assert_in_time(SECOND);
    assert_eq!(ended.number("/totals/requests"), 100_000);
    assert!(ended.number("/totals/unsent") > 90_000);
}

#[test]
fn a_refusal_of_the_server_is_told_in_its_words() {
    let server = Serve::start("");
    let ended =
        run(&server.name, "-n 20 -c 2 --records 4 --value-size 3m --mix set:1 --no-load --timeout 10s");
    ended.assert_partial(SECOND, "SERVER_ERROR object too large for cache");
    assert_eq!(ended.errors("set", "server"), 20);
}

fn pummel(words: &[&str]) -> Output {
    Command::new(PUMMEL).args(words).stdin(Stdio::null()).output().expect("pummel starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("pummel writes UTF-8")
}
