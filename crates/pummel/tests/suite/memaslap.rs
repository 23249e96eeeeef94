//! memaslap's command line against real servers: what is counted, what is checked, and what happens on bad days.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::{Ended, Memcached, Place, Reserved, Running, Serve, pummel, quiet};
use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process};

/// A counter of the report.
#[track_caller]
fn counter(ended: &Ended, name: &str) -> u64 {
    let found = ended.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let number = found.and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in {}\n{}", ended.text, ended.errors))
}

#[test]
fn exactly_what_was_asked_for_reaches_the_server_and_every_value_is_right() {
    let server = Memcached::start();
    let mut second = server.connect();
    let name = &server.name;
    for options in [
        "-c 16",
        "-c 16 -B",
        "-c 8 -T 2 -d 7",
        "-c 8 -T 2 -d 20 -B -n 3",
        "-c 4 -o 0.5 -w 1k",
        "-c 2 -o 1 -w 1k -d 3 -B",
        "-c 4 -e 0.2 -b -n 40",
        "-c 3 -P 1m -X 20 -w 1k",
    ] {
        let before = second.stats();
        let ended = pummel(&format!("memaslap -s {name} -x 20007 -v 1 {options}")).expect(0);
        let after = second.stats();
        let (gets, sets) = (counter(&ended, "cmd_get"), counter(&ended, "cmd_set"));
        assert_eq!(gets + sets, 20_007, "{options}");
        assert_eq!(after.get("cmd_get") - before.get("cmd_get"), gets, "{options}");
        assert_eq!(after.get("cmd_set") - before.get("cmd_set"), sets, "{options}");
        assert!((1_990..2_060).contains(&sets), "one of ten is a set: {sets} with {options}");
        for none in ["get_misses", "verify_misses", "verify_failed"] {
            assert_eq!(counter(&ended, none), 0, "{none} with {options}: {}", ended.errors);
        }
        assert!(ended.json().count("whole_run/ops/get/keys") == gets, "{options}");
        assert!(ended.text.ends_with("M/s\n") && ended.text.contains(" Ops: 20007 TPS: "), "{}", ended.text);
    }
}

#[test]
fn presets_fill_every_window_and_are_in_no_counter() {
    let server = Memcached::start();
    let mut second = server.connect();
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("gets");
    std::fs::write(&config, "cmd\n1 1.0\n").expect("it is writable");
    let line =
        format!("memaslap -s {} -F {} -w 1k -c 4 -T 2 -x 5000 -v 1 -S 1s", server.name, config.display());
    let ended = pummel(&line).expect(0);
    assert_eq!(second.stats().get("cmd_set"), 4 * 1_024);
    assert_eq!((counter(&ended, "cmd_get"), counter(&ended, "cmd_set")), (5_000, 0));
    assert_eq!(counter(&ended, "get_misses") + counter(&ended, "verify_failed"), 0);
    assert_eq!(counter(&ended, "object_bytes"), 0);
    assert!(ended.text.contains("Get Statistics (5000 events)") && !ended.text.contains("Set Statistics"));
}

#[test]
fn tables_come_every_second_and_agree_with_the_end() {
    let _alone = quiet();
    let server = Memcached::start();
    let ended = pummel(&format!("memaslap -s {} -t 2s -S 1s -P 2k -d 4", server.name)).expect(0);
    let tables: Vec<&str> = ended.text.split("\u{1b}[1;1H\u{1b}[2J\n").collect();
    assert_eq!(tables.len(), 3, "the banner and two reports: {}", ended.text);
    let global = tables[2].lines().find(|line| line.starts_with("Global")).expect("a row");
    let cells: Vec<&str> = global.split_whitespace().collect();
    assert_eq!(cells[1], "2");
    assert_eq!(cells[2].parse::<u64>().ok(), Some(counter(&ended, "cmd_get")), "keys are counted: {global}");
    let ops = counter(&ended, "cmd_get") + counter(&ended, "cmd_set");
    assert!(ops <= 2 * 2_048, "{ops} are more than the limit allows");
}

#[test]
fn a_flipped_byte_is_found_every_time() {
    for options in ["", "-d 5", "-B", "-B -d 5"] {
        let server = Serve::start("--fault flip=50");
        let line = format!("memaslap -s {} -x 20000 -c 4 -v 1 -w 1k -X 100 -b {options}", server.name);
        let ended = pummel(&line).expect(0);
        let found = counter(&ended, "verify_failed");
        let made = server.truth().keys("flip").len() as u64;
        // The first get of each of the four is not checked.
        assert!(
            made >= found && made - found <= 4 && found > 50,
            "{made} made, {found} found with {options}"
        );
        let blocks = ended.errors.matches("data verification failed").count() as u64;
        assert_eq!(blocks, found, "{options}");
        let json = ended.json();
        assert_eq!((json.count("window/verify_failed"), json.count("window/verify_misses")), (found, 0));
        assert!(ended.errors.contains("VERIFICATION FAILED: "), "{}", ended.errors);
    }
}

#[test]
fn udp_and_the_facebook_test_find_everything() {
    let _alone = quiet();
    let server = Memcached::start_on(Place::Udp);
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("short");
    std::fs::write(&config, "key\n16 24 1\nvalue\n100 100 1\n").expect("it is writable");
    for options in ["-U", "-U -d 10", "-a -d 50 -n 4"] {
        let line =
            format!("memaslap -s {} -F {} -x 20000 -c 4 -v 1 {options}", server.name, config.display());
        let ended = pummel(&line).expect(0);
        assert_eq!(counter(&ended, "cmd_get") + counter(&ended, "cmd_set"), 20_000, "{options}");
        for none in ["get_misses", "verify_failed", "packet_drop", "udp_timeout"] {
            assert_eq!(counter(&ended, none), 0, "{none} with {options}");
        }
    }
}

#[test]
fn a_datagram_that_is_lost_does_not_make_a_server_gone() {
    const TIME_MAX_S: u32 = 16;
    let said = "2 requests were without an answer at the end: over UDP they may be lost, and are given up after 30 s.";
    for options in ["-U", "-a"] {
        let mut time_s = 1;
        let ended = loop {
            let server = Serve::start("--udp-framing per-key --fault udp-drop=10");
            let line = format!("memaslap -s {} -t {time_s}s -c 2 -d 5 -X 50 --strict {options}", server.name);
            let ended = pummel(&line).expect(0);
            // Soon each client waits for a datagram that does not come; a busy machine may need more time for that.
            if ended.errors.contains(said) || time_s >= TIME_MAX_S {
                break ended;
            }
            time_s *= 4;
        };
        assert!(counter(&ended, "cmd_get") > 0, "{}", ended.text);
        let is_said = |line: &str| line == said || line.contains("of the misses may be lost datagrams");
        assert!(ended.errors.lines().all(is_said) && ended.errors.contains(said), "{}", ended.errors);
    }
}

#[test]
fn replicated_servers_are_written_to_as_far_as_they_may_be_and_read_everywhere() {
    let (one, other) = (Memcached::start(), Memcached::start());
    let line = format!("memaslap -s {},{} -p 1 -x 5000 -c 4 -v 0.5", one.name, other.name);
    let ended = pummel(&line).expect(0);
    let (first, second) = (one.connect().stats(), other.connect().stats());
    assert_eq!((first.get("cmd_set"), second.get("cmd_set")), (counter(&ended, "cmd_set"), 0));
    assert_eq!(first.get("cmd_get") + second.get("cmd_get"), counter(&ended, "cmd_get"));
    assert_eq!(counter(&ended, "get_misses"), second.get("cmd_get"), "only the first has the objects");
    assert!(first.get("cmd_get") > 1_000 && second.get("cmd_get") > 1_000, "chance decides");
    assert_eq!(ended.errors.matches("gets found nothing").count(), 1, "{}", ended.errors);
    assert!(ended.errors.contains("only there when the servers replicate"), "{}", ended.errors);
    pummel(&format!("{line} --strict")).expect(1);
}

/// Two servers that copy what is stored to each other, both with what the other has, and the ports that are theirs.
fn peers() -> ([Serve; 2], [Reserved; 2]) {
    let ports = [Reserved::new(), Reserved::new()];
    let servers =
        [0, 1].map(|at| Serve::start_at(&ports[at].name, &format!("--peer {}", ports[1 - at].name)));
    for (at, server) in servers.iter().enumerate() {
        server.connect().store(&format!("from{at}"), b"x");
    }
    for server in &servers {
        let mut talk = server.connect();
        crate::common::until("copies", || (talk.stats().get("curr_items") == 2).then_some(()));
    }
    (servers, ports)
}

#[test]
fn servers_that_replicate_have_what_was_set_on_the_other() {
    for options in ["-p 2", "-p 1 -n 2", "-p 2 -d 5", "-p 2 -B -o 0.5 -w 1k"] {
        let (servers, _ports) = peers();
        let names = servers.each_ref().map(|server| server.name.clone()).join(",");
        let ended = pummel(&format!("memaslap -s {names} -x 5000 -c 4 -X 100 -v 1 {options}")).expect(0);
        for none in ["get_misses", "verify_misses", "verify_failed"] {
            assert_eq!(counter(&ended, none), 0, "{none} with {options}: {}", ended.errors);
        }
        let truths = servers.map(Serve::truth);
        let gets =
            |at: usize| truths[at].requests.iter().filter(|request| request.verb == "get").count() as u64;
        assert!(gets(0) > 0 && gets(1) > 0, "{options}");
        assert!(options.contains("-d 5") || gets(0) + gets(1) == counter(&ended, "cmd_get"), "{options}");
    }
}

#[test]
fn a_replicating_server_that_is_lost_is_done_without_until_it_is_back() {
    let ([one, other], _ports) = peers();
    let line = format!("memaslap -s {},{} -p 2 -t 60s -c 4 -X 100 -w 1k -v 1 -P 4k", one.name, other.name);
    let running = Running::start(&line);
    let name = one.name.clone();
    let (mut first, mut second) = (one.connect(), other.connect());
    crate::common::until("load on both", || {
        (first.stats().get("cmd_get").min(second.stats().get("cmd_get")) > 100).then_some(())
    });
    drop((first, one));
    let before = second.stats();
    crate::common::until("load on the other alone", || {
        let now = second.stats();
        let more = |what| now.get(what) > before.get(what) + 200;
        (more("cmd_get") && more("cmd_set")).then_some(())
    });
    let one = Serve::start_at(&name, &format!("--peer {}", other.name));
    let mut first = one.connect();
    crate::common::until("load on the one that is back", || {
        (first.stats().get("cmd_get") > 100).then_some(())
    });
    running.process.interrupt();
    let ended = running.end().expect(1);
    let lost = ended.errors.find(&format!("Server {name} disconnect"));
    let back = ended.errors.find(&format!("Server {name} reconnect after "));
    assert!(lost.is_some() && lost < back, "{}", ended.errors);
    assert_eq!(counter(&ended, "verify_failed"), 0, "{}", ended.errors);
    // It got what was set before; what it does not have is what it was asked for before that had come.
    let (gets, misses) = (counter(&ended, "cmd_get"), counter(&ended, "get_misses"));
    assert!(misses * 10 < gets, "{misses} of {gets}");
}

#[test]
fn several_keys_are_so_many_plain_gets_of_the_binary_protocol() {
    let server = Serve::start("--protocol binary");
    let ended = pummel(&format!("memaslap -s {} -x 2000 -c 2 -B -d 7 -w 1k -v 1", server.name)).expect(0);
    let (gets, sets) = (counter(&ended, "cmd_get"), counter(&ended, "cmd_set"));
    assert_eq!(counter(&ended, "verify_failed") + counter(&ended, "get_misses"), 0);
    let truth = server.truth();
    let of = |verb: &str| truth.requests.iter().filter(|request| request.verb == verb).count() as u64;
    let others = of("stats");
    assert_eq!((of("get"), of("set"), truth.requests.len() as u64 - others), (gets, sets, 2_000));
}

#[test]
fn connections_are_numbered_over_all_threads() {
    let server = Serve::start("--fault flip=7 --fault error-every=50");
    let ended = pummel(&format!("memaslap -s {} -x 4000 -c 4 -T 2 -w 1k -v 1 -b", server.name)).expect(0);
    let number = |line: &str| line.trim_start().strip_prefix('<')?.split(' ').next()?.parse::<u32>().ok();
    let found: BTreeSet<u32> = ended.errors.lines().filter_map(number).collect();
    assert_eq!(found, BTreeSet::from([1, 2, 3, 4]));
    let said: Vec<u32> =
        ended.text.lines().filter(|line| line.contains(" SERVER_ERROR ")).filter_map(number).collect();
    assert!(said.len() == 10 && said.iter().all(|number| found.contains(number)), "{}", ended.text);
    assert!(
        ended.text.contains("\n<SERVER_ERROR this request was chosen to fail (80 times)\n"),
        "{}",
        ended.text
    );
}

#[test]
fn it_is_said_early_that_nothing_comes_back_over_udp() {
    // A socket listens, and does not answer.
    let (port, _ends) = crate::common::until("a port that is free for TCP and UDP", || {
        let door = TcpListener::bind("127.0.0.1:0").ok()?;
        let address = door.local_addr().ok()?;
        UdpSocket::bind(address).ok().map(|silent| (address.port(), (door, silent)))
    });
    let ended = pummel(&format!("memaslap -s 127.0.0.1:{port} -t 4s -U -X 100 -c 2")).expect(0);
    let warnings = ended.errors.matches("WARNING: nothing comes back over UDP").count();
    assert_eq!(warnings, 1, "{}", ended.errors);
    assert!(counter(&ended, "cmd_get") == 0 && counter(&ended, "udp_timeout") == 0, "{}", ended.text);
    // No socket takes datagrams: that is known at once.
    let server = Memcached::start();
    let ended = pummel(&format!("memaslap -s {} -t 60s -a -d 5 -c 2", server.name)).expect(0);
    assert!(ended.errors.contains("WARNING: nothing comes back over UDP"), "{}", ended.errors);
}

#[test]
fn threads_are_dealt_to_servers_in_turn() {
    let (one, other) = (Memcached::start(), Memcached::start());
    let line = format!("memaslap -s {},{} -T 3 -c 6 -x 6000 -n 2", one.name, other.name);
    pummel(&line).expect(0);
    let ops = |server: &Memcached| {
        let stats = server.connect().stats();
        stats.get("cmd_get") + stats.get("cmd_set")
    };
    assert_eq!((ops(&one), ops(&other)), (4_000, 2_000));
}

#[test]
fn a_full_server_is_measured_with_the_connections_that_it_takes() {
    let server = Memcached::start_for(20);
    for (options, status) in [("", 0), ("-T 2", 0), ("-n 2", 0), ("--strict", 1)] {
        let ended =
            pummel(&format!("memaslap -s {} -t 1s -c 40 -w 1k {options}", server.name)).expect(status);
        assert!(counter(&ended, "cmd_get") > 0, "{options}: {}", ended.errors);
        assert!(ended.text.contains("\nRun time: "), "{options}: {}", ended.text);
        let reason = ended.errors.lines().find(|line| line.contains(" connections and refused "));
        let reason = reason.unwrap_or_else(|| panic!("{options}: {}", ended.errors));
        assert!(reason.contains("Too many open connections"), "{options}: {reason}");
    }
}

#[test]
fn misses_of_what_is_verified_are_no_strict_success_and_others_are() {
    for options in ["", "-B -d 3"] {
        for (verify, status) in [("-v 0.5", 1), ("", 0)] {
            let server = Memcached::start_of_megabytes(16);
            let line = format!(
                "memaslap -s {} -x 6000 -c 4 -w 1k -X 60000 --strict {verify} {options}",
                server.name
            );
            let ended = pummel(&line).expect(status);
            assert!(counter(&ended, "get_misses") > 1_000, "{options}: {}", ended.text);
            assert_eq!(ended.errors.contains("gets found nothing"), status == 1, "{}", ended.errors);
            if status == 1 {
                assert!(counter(&ended, "verify_misses") > 500, "{options}: {}", ended.text);
                assert_eq!(counter(&ended, "verify_failed"), 0, "{options}: {}", ended.errors);
            }
        }
    }
}

#[test]
fn windows_that_no_memory_holds_are_refused_in_the_originals_words() {
    let ended = pummel("memaslap -s 127.0.0.1:1 -w 1g").expect(1);
    assert_eq!(ended.text, "");
    assert!(ended.errors.starts_with("Can't allocate distribution array.\nMemory: "), "{}", ended.errors);
    assert!(!ended.errors.contains("panicked") && !ended.errors.contains("groups"), "{}", ended.errors);
    // A process that may not have so much is told before anything is sent.
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 4000000; exec \"$0\" memaslap -s 127.0.0.1:1 -w 100m -c 2"])
        .arg(cargo_bin!("pummel"))
        .output()
        .expect("sh starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("Can't allocate distribution array.\n"), "{errors}");
}

#[test]
fn a_signal_has_its_own_name() {
    let server = Memcached::start();
    let running = Running::start(&format!("memaslap -s {} -t 60s -c 4", server.name));
    crate::common::until("load on the server", || {
        (server.connect().stats().get("cmd_set") > 100).then_some(())
    });
    let process = Pid::from_child(&running.process.0);
    kill_process(process, Signal::TERM).expect("it runs");
    let ended = running.end().expect(1);
    assert!(ended.errors.ends_with("SIGTERM handled."), "{}", ended.errors);
}

#[test]
fn a_lost_server_ends_the_run_with_its_report_and_a_sentence() {
    for (options, status) in [("", 0), ("-p 1", 0), ("--strict", 1)] {
        let server = Memcached::start();
        let spare = Memcached::start();
        let servers = if options == "-p 1" { format!("{0},{0}", server.name) } else { server.name.clone() };
        let running = Running::start(&format!("memaslap -s {servers} -t 60s -c 4 -w 1k -S 1s {options}"));
        crate::common::until("load on the server", || {
            (server.connect().stats().get("cmd_set") > 100).then_some(())
        });
        let name = server.name.clone();
        drop(server);
        let ended = running.end().expect(status);
        assert!(ended.errors.contains(&format!("Server {name} disconnect")), "{}", ended.errors);
        assert!(ended.text.contains("\nRun time: "), "{}", ended.text);
        drop(spare);
    }
}

#[test]
fn a_silent_server_delays_the_end_by_a_second_at_most() {
    let _alone = quiet();
    let server = Memcached::start();
    let running = Running::start(&format!("memaslap -s {} -t 1s -c 4", server.name));
    crate::common::until("load on the server", || {
        (server.connect().stats().get("cmd_set") > 100).then_some(())
    });
    server.process.stop();
    let ended = running.end().expect(0);
    server.process.go_on();
    assert!(ended.text.contains("\nRun time: 1.0s"), "{}", ended.text);
}

#[test]
fn an_interrupt_prints_the_report_of_the_time_so_far() {
    let server = Memcached::start();
    let running = Running::start(&format!("memaslap -s {} -t 60s -c 4", server.name));
    crate::common::until("load on the server", || {
        (server.connect().stats().get("cmd_set") > 100).then_some(())
    });
    running.process.interrupt();
    let ended = running.end().expect(1);
    assert!(ended.errors.ends_with("SIGINT handled.\n") || ended.errors.ends_with("SIGINT handled."));
    assert!(counter(&ended, "cmd_set") >= 100);
}

#[test]
fn what_cannot_begin_is_said_after_the_banner() {
    let nobody = pummel("memaslap -s 127.0.0.1:1 -t 1s").expect(1);
    assert!(nobody.text.starts_with("servers: 127.0.0.1:1\n") && !nobody.text.contains("Run time"));
    assert!(nobody.errors.contains("127.0.0.1:1"), "{}", nobody.errors);
    let none = pummel("memaslap").expect(1);
    assert!(none.text.starts_with("memaslap v1.0\n") && none.errors.starts_with("No servers provided"));
    let odd = pummel("memaslap -s a -c 17 -T 2").expect(1);
    assert!(odd.text.contains("Usage:") && odd.errors.contains("the multiples of threads count."));
}

#[test]
fn the_names_of_memaslap_are_answered_to() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["memaslap", "memcaslap"] {
        let link = folder.path().join(name);
        symlink(cargo_bin!("pummel"), &link).expect("a link");
        let version = Command::new(&link).arg("-V").output().expect("the link can be started");
        assert_eq!((version.status.code(), &version.stdout[..]), (Some(0), &b"memaslap v1.0\n"[..]));
        let wrong = Command::new(&link).arg("--foo").output().expect("the link can be started");
        assert_eq!(wrong.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert_eq!(errors, format!("{}: unrecognized option '--foo'\n", link.display()));
    }
}

#[test]
fn a_plan_is_explained_and_run_again() {
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.toml");
    let explained = Command::new(cargo_bin!("pummel"))
        .args(["explain", "memaslap", "-s", &server.name, "-x", "1000", "-c", "2", "--plan"])
        .arg(&plan)
        .status()
        .expect("it starts");
    assert!(explained.success());
    let mut second = server.connect();
    let run =
        Command::new(cargo_bin!("pummel")).args(["run", "--plan"]).arg(&plan).output().expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let stats = second.stats();
    assert_eq!(stats.get("cmd_get") + stats.get("cmd_set"), 1_000);
}
