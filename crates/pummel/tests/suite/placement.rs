//! Agents that are started by ssh and by Slurm, for one run, and that end with it whatever becomes of it.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::hosts::{Hosts, Nodes};
use crate::common::{Ended, Memcached, Running};

/// Options of a run on these agents, but for its length.
fn run(agents: &str, server: &str) -> String {
    // Logging in takes its time on a busy machine.
    format!(
        "run --agents {agents} -s {server} -c 4 --records 500 --no-baseline --wait block --agents-timeout 50s"
    )
}

/// A complete run: what the agents did together is what the server counted.
#[track_caller]
fn assert_complete(ended: Ended, memcached: &Memcached, before: u64) -> Ended {
    let ended = ended.expect(0);
    let result = ended.json();
    assert_eq!(result.text("status"), "complete");
    assert_eq!(result.count("load/stored"), 500);
    let gets = memcached.connect().stats().get("cmd_get");
    assert_eq!(result.count("whole_run/ops/get/keys"), gets - before);
    assert!(result.count("totals/completed") > 0);
    ended
}

const COPIED: &str = "this program is copied";

#[test]
fn a_host_gets_the_program_when_it_lacks_it_and_not_again() {
    let Some(hosts) = Hosts::start(&["a", "b"]) else { return };
    let memcached = Memcached::start();
    let words = run("ssh://a,b", &memcached.name) + " -n 4000";
    let ended = assert_complete(hosts.pummel(&words).end(), &memcached, 0);
    for name in ["a", "b"] {
        assert!(ended.errors.contains(&format!("agent {name}: {COPIED}")), "{}", ended.errors);
        assert_eq!(hosts.copies(name).len(), 1);
    }
    hosts.wait_for_silence();

    // One that was damaged is not run, and makes way for a whole one.
    std::fs::write(&hosts.copies("b")[0], "half").expect("it is ours");
    let before = memcached.connect().stats().get("cmd_get");
    let ended = assert_complete(hosts.pummel(&words).end(), &memcached, before);
    assert!(!ended.errors.contains(&format!("agent a: {COPIED}")), "{}", ended.errors);
    assert!(ended.errors.contains(&format!("agent b: {COPIED}")), "{}", ended.errors);
    assert_eq!(hosts.copies("b").len(), 1);
    hosts.wait_for_silence();
}

#[test]
fn an_agent_that_is_started_reads_the_files_of_the_plan_and_no_others() {
    let Some(hosts) = Hosts::start(&["a"]) else { return };
    let memcached = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let named = folder.path().join("a trace.csv");
    std::fs::write(&named, "key1,20\nkey2,20\n").expect("it is written");
    let trace = named.to_str().expect("UTF-8");
    let ask = |trace: &str| {
        let words =
            ["mutilate", "-s", &memcached.name, "-a", "ssh://a", "-T", "1", "-B", "-t", "600", "--noload"];
        let words: Vec<&str> = words.into_iter().chain(["--read_file", trace]).collect();
        hosts.pummel_words(&words).end()
    };
    let run = ask(trace).expect(0);
    assert_eq!(run.json().count("ops/get/completed"), 2, "{}", run.errors);
    hosts.wait_for_silence();
    let quoted = folder.path().join("it's.csv");
    std::fs::copy(&named, &quoted).expect("it is copied");
    let run = ask(quoted.to_str().expect("UTF-8")).expect(255);
    assert!(run.errors.contains("cannot be handed over"), "{}", run.errors);
}

#[test]
fn what_is_installed_on_a_host_is_used_where_it_is_the_same() {
    let Some(hosts) = Hosts::start(&["same", "other"]) else { return };
    let memcached = Memcached::start();
    hosts.install("same", std::fs::read(env!("CARGO_BIN_EXE_pummel")).expect("it is built"));
    hosts.install("other", "#!/bin/sh\necho pummel 0.0.1\n");
    let words = run("ssh://same,other", &memcached.name) + " -n 4000";
    let ended = assert_complete(hosts.pummel(&words).end(), &memcached, 0);
    assert!(!ended.errors.contains(&format!("agent same: {COPIED}")), "{}", ended.errors);
    assert!(ended.errors.contains(&format!("agent other: {COPIED}")), "{}", ended.errors);
    assert_eq!(hosts.copies("same"), Vec::<std::path::PathBuf>::new());
    hosts.wait_for_silence();
}

#[test]
fn the_way_to_a_host_may_lead_through_another() {
    let Some(mut hosts) = Hosts::start(&["gate", "inner"]) else { return };
    let memcached = Memcached::start();
    hosts.configure(&[("behind", hosts.port("inner"), Some("gate"))]);
    let words = run("ssh://behind", &memcached.name) + " -n 2000";
    assert_complete(hosts.pummel(&words).end(), &memcached, 0);
    assert_eq!((hosts.copies("gate").len(), hosts.copies("inner").len()), (0, 1));
    hosts.wait_for_silence();
}

#[test]
fn a_host_that_does_not_answer_is_named_and_nothing_is_left_on_the_others() {
    let Some(mut hosts) = Hosts::start(&["a"]) else { return };
    let memcached = Memcached::start();
    // It accepts connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = silent.local_addr().expect("it is bound").port();
    hosts.configure(&[("silent", port, None)]);
    let words = run("ssh://a,silent", &memcached.name).replace("50s", "5s") + " -n 2000";
    let before = Instant::now();
    let ended = hosts.pummel(&words).end().expect(1);
    assert!(before.elapsed() >= Duration::from_secs(5), "it was given its time");
    assert!(ended.errors.contains("silent"), "{}", ended.errors);
    assert_eq!(memcached.connect().stats().get("cmd_set"), 0, "nothing was sent");
    hosts.wait_for_silence();
}

#[test]
fn the_agents_end_when_the_user_ends_the_run_and_when_the_controller_is_killed() {
    let Some(hosts) = Hosts::start(&["a", "b"]) else { return };
    let memcached = Memcached::start();
    let words = run("ssh://a,b", &memcached.name) + " -t 100s --rate 500 --interval 200ms";
    let mut running = hosts.pummel(&words);
    running.wait_for_progress();
    running.process.interrupt();
    let ended = running.end().expect(130);
    assert_eq!(ended.json().text("status"), "interrupted");
    assert!(ended.json().count("totals/completed") > 0);
    hosts.wait_for_silence();

    let mut running = hosts.pummel(&words);
    running.wait_for_progress();
    running.kill();
    hosts.wait_for_silence();
}

#[test]
fn slurm_starts_an_agent_on_each_node() {
    let Some(nodes) = Nodes::start() else { return };
    let memcached = Memcached::start();
    let words = run("slurm://2", &memcached.name) + " -n 4000";
    assert_complete(nodes.pummel(&words).end(), &memcached, 0);
    nodes.wait_for_silence();

    let words = run("slurm://2", &memcached.name) + " -t 100s --rate 500 --interval 200ms";
    let mut running = nodes.pummel(&words);
    running.wait_for_progress();
    running.kill();
    nodes.wait_for_silence();

    let words = run("slurm://3", &memcached.name) + " -n 4000";
    let ended = nodes.pummel(&words).end().expect(1);
    assert!(ended.errors.contains("2 nodes"), "{}", ended.errors);
}

#[test]
fn outside_an_allocation_there_are_no_nodes() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.env_remove("SLURM_JOB_NODELIST");
    let words = ["run", "--agents", "slurm://2", "-s", "127.0.0.1:1"];
    let ended = Running::start_as(command, &words, None).end().expect(1);
    assert!(ended.errors.contains("salloc -N 2"), "{}", ended.errors);
}
