//! Many processes, one measurement: real agents and controllers on loopback.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::agent::{Agent, list};
use crate::common::{
    Ended, Memcached, Nobody, PATIENCE, Reserved, Running, Serve, flat, in_some_quiet_moment, pummel,
    quantile, until,
};

/// Open loop with constant gaps: everything that is due is known.
const DUE: &str = "--rate 2000 --arrivals constant -t 1s -c 8 --seed 7 --records 500 --samples samples";

/// Client, due time and key of every request.
fn triples(run: &Ended) -> BTreeSet<(u64, u64, u64)> {
    let samples = run.samples();
    let triples: BTreeSet<_> = samples.iter().map(|row| (row.client, row.due, row.key)).collect();
    assert_eq!(triples.len(), samples.len(), "a client asks once at a time");
    triples
}

/// Runs [`DUE`] with these words until every request was answered: a busy machine may not send all that is due, and requests
/// that were not sent have no samples.
fn answered(words: &str) -> Ended {
    in_some_quiet_moment(|| {
        let run = pummel(words).expect(0);
        sent(&run, 2000..2001, 2000..2001).map(|()| run)
    })
}

/// Fails unless so many requests were due in a run. Returns the run's report where it did not complete so many: a busy machine
/// may not send all that is due.
#[track_caller]
fn sent(run: &Ended, due: Range<u64>, completed: Range<u64>) -> Result<(), String> {
    let totals = |name: &str| run.json().count(&format!("totals/{name}"));
    assert!(due.contains(&totals("requests")), "{}", run.text);
    if completed.contains(&totals("completed")) { Ok(()) } else { Err(run.text.clone()) }
}

#[test]
fn one_two_and_eight_agents_send_the_requests_of_a_run_without_agents() {
    let server = Memcached::start();
    let alone = answered(&format!("run -s {} {DUE}", server.name));
    let wanted = triples(&alone);
    assert_eq!(wanted.len(), 2000);
    for count in [1, 2, 8] {
        let agents = Agent::many(count);
        let run = answered(&format!("run -s {} {DUE} --agents {}", server.name, list(&agents)));
        assert_eq!(triples(&run), wanted, "{count} agents");
        let json = run.json();
        assert_eq!(json.at("agents/members").as_array().map(Vec::len), Some(count));
        assert_eq!(json.count("load/stored"), 500, "the records are loaded once");
        assert_eq!(json.count("connections/asked"), 8);
    }
}

#[test]
fn what_eight_agents_counted_is_what_the_server_counted() {
    let agents = Agent::many(8);
    let mix = "--mix get:8,set:1,delete:1 --records 1k";
    let words = "-c 16 -t 2s --interval 250ms --samples samples --hdr log";
    let (run, server) = in_some_quiet_moment(|| {
        let server = Memcached::start();
        let run =
            pummel(&format!("run -s {} {mix} {words} --agents {}", server.name, list(&agents))).expect(0);
        let slices = run.json().at("intervals").as_array().map_or(0, Vec::len);
        if slices >= 7 { Ok((run, server)) } else { Err(format!("{slices} slices of 250 ms in 2 s")) }
    });
    let json = run.json();
    let stats = server.connect().stats();
    let of = |path: &str| json.count_or_none(&format!("whole_run/ops/{path}"));
    // Each member has made reads one at a time before the run, of records that are there.
    let alone = json.count("baseline/own/requests");
    assert_eq!(of("get/hits") + alone, stats.get("get_hits"));
    assert_eq!(of("get/misses"), stats.get("get_misses"));
    assert_eq!(of("set/completed"), stats.get("cmd_set"));
    assert_eq!(of("delete/outcomes/deleted"), stats.get("delete_hits"));
    assert_eq!(of("delete/outcomes/not_found"), stats.get("delete_misses"));
    // Members and slices add up to the whole.
    let completed = json.count("totals/completed");
    let members = json.at("agents/members").as_array().expect("members");
    let sum = |list: &[serde_json::Value], path: &str| -> u64 {
        list.iter().map(|one| one.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or(0)).sum()
    };
    assert_eq!(sum(members, "/completed"), completed);
    let slices = json.at("intervals").as_array().expect("intervals");
    let verbs = ["get", "set", "delete"];
    let in_slices: u64 = verbs.iter().map(|verb| sum(slices, &format!("/ops/{verb}/completed"))).sum();
    assert_eq!(in_slices, completed);
    // Merged quantiles are those of all samples together, as exactly as a histogram can tell.
    let mut pooled: Vec<f64> = run.samples().iter().filter_map(|row| Some(row.response_s()? * 1e6)).collect();
    assert_eq!(pooled.len() as u64, completed);
    pooled.sort_by(f64::total_cmp);
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        let (merged, exact) = (json.number(&format!("totals/response_us/{name}")), quantile(&pooled, share));
        assert!((merged - exact).abs() <= exact * 0.001 + 0.002, "{name}: {merged} of all, {exact} pooled");
    }
    assert!(json.number("agents/start_spread_us") >= 0.0);
    assert!(run.file("log").lines().any(|line| line.contains("get.response")), "histograms of slices");
}

#[test]
fn no_agent_is_named_with_how_long_it_was_waited_for_and_nothing_is_started() {
    let server = Memcached::start();
    let before = server.connect().stats().get("total_connections");
    let there = Agent::start();
    let nobody = Nobody::new();
    let gone = nobody.address.to_string();
    let words = format!("run -s {} -t 1s --agents {},{gone} --agents-timeout 300ms", server.name, there.name);
    let run = pummel(&words).expect(1);
    assert!(run.errors.contains(&format!("no agent at {gone}")), "{}", run.errors);
    assert!(run.errors.contains("waited 0."), "{}", run.errors);
    assert_eq!(run.json().text("status"), "partial");
    let stats = server.connect().stats();
    // The one that asks is the only one that came.
    assert_eq!((stats.get("total_connections"), stats.get("cmd_set")), (before + 1, 0));
    // The one that was there is free for the next.
    pummel(&format!("run -s {} -n 100 -c 4 --agents {}", server.name, there.name)).expect(0);
}

#[test]
fn a_plan_that_an_agent_cannot_run_begins_nowhere() {
    let server = Memcached::start();
    let good = Agent::start();
    let mut command = Command::new("prlimit");
    command.args(["--nofile=64:64", env!("CARGO_BIN_EXE_pummel"), "agent", "--listen", "127.0.0.1:0"]);
    let poor = Agent::of(command);
    let words = format!("run -s {} -c 400 -t 1s --agents {},{}", server.name, good.name, poor.name);
    let run = pummel(&words).expect(1);
    assert!(run.errors.contains(&format!("agent {}: 200 connections need", poor.name)), "{}", run.errors);
    let words = format!("run -s {} -T 1000 -c 1000 -t 1s --agents {}", server.name, good.name);
    let run = pummel(&words).expect(1);
    assert!(run.errors.contains("1000 threads are asked for"), "{}", run.errors);
    assert_eq!(server.connect().stats().get("cmd_set"), 0);
    let words = format!("run -s {} -c 1 -t 1s --agents {},{}", server.name, good.name, poor.name);
    assert!(pummel(&words).expect(2).errors.contains("at least one connection for each of the 2 agents"));
}

#[test]
fn a_second_controller_is_told_who_has_the_agent() {
    let server = Memcached::start();
    let agent = Agent::start();
    let mut first = Running::start(&format!(
        "run -s {} -c 4 -t 60s --interval 100ms --agents {}",
        server.name, agent.name
    ));
    first.wait_for_progress();
    let second = pummel(&format!("run -s {} -c 4 -t 1s --agents {}", server.name, agent.name)).expect(1);
    let held = format!("agent {}: it is held by ", agent.name);
    assert!(second.errors.contains(&held) && second.errors.contains("(process "), "{}", second.errors);
    // Ctrl-C ends the run of the first on its agent too, with a report of what was measured.
    first.process.interrupt();
    let first = first.end().expect(130);
    assert_eq!(first.json().text("status"), "interrupted");
    assert!(first.json().count("totals/completed") > 0);
    pummel(&format!("run -s {} -c 4 -n 100 --agents {}", server.name, agent.name)).expect(0);
}

#[test]
fn an_agent_whose_controller_was_killed_stops_within_3_s_and_is_free() {
    let server = Memcached::start();
    let agent = Agent::start();
    let mut run = Running::start(&format!(
        "run -s {} -c 4 -t 60s --interval 100ms --agents {}",
        server.name, agent.name
    ));
    run.wait_for_progress();
    assert!(server.connect().stats().get("curr_connections") >= 4);
    drop(run);
    let killed = Instant::now();
    until("the agent's connections are closed", || {
        (server.connect().stats().get("curr_connections") <= 2).then_some(())
    });
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(3), "it took {took:?}");
    // It is free a moment after its connections are closed.
    let free = until("the agent is free", || {
        let asked = killed.elapsed();
        let next = pummel(&format!("run -s {} -c 4 -n 100 --agents {}", server.name, agent.name));
        (next.status == 0).then_some(asked)
    });
    assert!(free < Duration::from_secs(3), "it was free after {free:?}");
}

/// Report of a run of which one of two agents is lost by `lose` after its first intervals. Where the machine let this
/// program wait so long that the run was through by then, it is tried again with a longer one.
fn bereft(options: &str, mut lose: impl FnMut(&mut Vec<Agent>)) -> (Ended, String, f64) {
    let server = Memcached::start();
    let mut seconds = 6;
    loop {
        let mut agents = Agent::many(2);
        let victim = agents[1].name.clone();
        let words = format!("run -s {} -c 8 -t {seconds}s --interval 100ms {options}", server.name);
        let mut run = Running::start(&format!("{words} --agents {}", list(&agents)));
        (0..5).for_each(|_| run.wait_for_progress());
        lose(&mut agents);
        let lost = Instant::now();
        let run = run.end();
        let took = lost.elapsed();
        if run.status != 0 || took > Duration::from_secs(3) || seconds > 20 {
            return (run, victim, took.as_secs_f64());
        }
        seconds *= 2;
    }
}

#[test]
fn a_run_goes_on_without_an_agent_that_died_and_says_which_and_when() {
    let (run, victim, _) = bereft("", |agents| drop(agents.remove(1)));
    let run = run.expect(1);
    let json = run.json();
    assert_eq!(json.text("status"), "partial");
    let reason = json.text("reason");
    assert!(reason.contains(&format!("agent {victim} was lost ")), "{reason}");
    assert!(reason.contains("s into the measurement"), "{reason}");
    assert_eq!(json.count("agents/lost"), 1);
    let members = json.at("agents/members").as_array().expect("members");
    assert_eq!(members[0]["lost"], serde_json::Value::Null);
    let at_s = members[1]["lost"]["at_s"].as_f64().expect("the moment is known");
    assert!(at_s >= 0.3 && at_s < json.number("seconds"), "{at_s}");
    let of = |member: usize| members[member]["completed"].as_u64().expect("a number");
    assert!(of(1) > 0, "what it had streamed is kept");
    assert_eq!(json.count("totals/completed"), of(0) + of(1));
    assert!(json.number("seconds") >= 5.9, "the others went on to the end");
}

#[test]
fn a_run_that_shall_stop_when_an_agent_is_lost_does() {
    in_some_quiet_moment(|| {
        let (run, victim, took) = bereft("--on-agent-loss stop", |agents| drop(agents.remove(1)));
        let run = run.expect(1);
        assert!(run.json().text("reason").contains(&format!("agent {victim} was lost ")));
        assert!(run.json().text("reason").contains("the run was stopped"), "{}", run.json().text("reason"));
        ended_within(4.5, took)
    });
}

#[test]
fn an_agent_that_stands_still_is_lost_within_3_s_and_is_free_when_it_wakes() {
    in_some_quiet_moment(|| {
        let mut kept = Vec::new();
        let (run, victim, took) = bereft("--on-agent-loss stop", |agents| {
            agents[1].process.stop();
            kept = std::mem::take(agents);
        });
        let run = run.expect(1);
        let reason = run.json().text("reason").to_owned();
        assert!(reason.contains(&format!("agent {victim} was lost ")), "{reason}");
        assert!(reason.contains("nothing was heard from it for "), "{reason}");
        kept[1].process.go_on();
        let server = Memcached::start();
        until("the agent is free", || {
            let run = pummel(&format!("run -s {} -c 2 -n 100 --agents {}", server.name, list(&kept)));
            (run.status == 0).then_some(())
        });
        match reason.contains("nothing was heard from it for 2.") {
            true => ended_within(5.5, took),
            false => Err(reason),
        }
    });
}

/// Checks that a run ended within `most_s` after its agent was lost.
fn ended_within(most_s: f64, took_s: f64) -> Result<(), String> {
    if took_s < most_s { Ok(()) } else { Err(format!("it took {took_s} s to end")) }
}

#[test]
fn whatever_comes_to_its_port_an_agent_lives() {
    let agent = Agent::start();
    let send = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(&agent.name).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        // It may hang up in the middle.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        (stream.local_addr().expect("it had an address"), answer)
    };
    let (from, _) = send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(agent.wait_for("does not speak gRPC").contains(&from.to_string()));
    let (from, _) = send(&[0xff; 100_000]);
    assert!(agent.wait_for("does not speak gRPC").contains(&from.to_string()));
    // The right beginning, and then frames that are none: HTTP/2 hangs up.
    send(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0xff; 4096]].concat());
    let server = Memcached::start();
    pummel(&format!("run -s {} -c 2 -n 100 --agents {}", server.name, agent.name)).expect(0);
}

#[test]
fn an_agent_refuses_a_plan_of_100_mb_and_lives() {
    let agent = Agent::start();
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.json");
    let words = ["explain", "run", "-s", &server.name, "-n", "100", "-c", "2", "--format", "json"];
    let output = Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).output().expect("it runs");
    let mut text: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a plan");
    let last = text["phases"].as_array_mut().and_then(|phases| phases.last_mut()).expect("a phase");
    last["name"] = serde_json::Value::String("x".repeat(100 << 20));
    fs::write(&plan, text.to_string()).expect("there is room");
    let plan = plan.to_str().expect("UTF-8");
    let words = ["run", "--plan", plan, "--agents", &agent.name];
    // A machine that is busy with other things reads 100 MB for longer than a minute.
    let run = Running::start_program(env!("CARGO_BIN_EXE_pummel"), &words).end_within(3 * PATIENCE).expect(1);
    assert!(run.errors.contains("message length too large"), "{}", run.errors);
    pummel(&format!("run -s {} -c 2 -n 100 --agents {}", server.name, agent.name)).expect(0);
}

#[test]
fn measuring_clients_stand_apart_from_those_that_load() {
    let server = Memcached::start();
    let agents = Agent::many(2);
    let words = format!(
        "run -s {} -c 8 -t 2s --rate 4000 --measure-connections 2 --measure-rate 500 --measure-depth 3 --agents {}",
        server.name,
        list(&agents)
    );
    in_some_quiet_moment(|| {
        let run = pummel(&words).expect(0);
        let json = run.json();
        let groups = json.at("groups").as_array().expect("groups");
        assert_eq!(
            (groups[0]["name"].as_str(), groups[1]["name"].as_str()),
            (Some("clients"), Some("measuring"))
        );
        let of = |name: &str| -> Vec<u64> {
            groups.iter().map(|group| group["totals"][name].as_u64().expect("a number")).collect()
        };
        let (due, completed) = (of("requests"), of("completed"));
        assert_eq!(json.count("totals/completed"), completed.iter().sum::<u64>());
        let members = json.at("agents/members").as_array().expect("members");
        assert_eq!(members[2]["name"], "controller");
        assert_eq!(members[2]["completed"].as_u64(), Some(completed[1]));
        assert_eq!(json.count("load/stored"), 10_000);
        assert!(run.text.contains("\nmeasuring "), "{}", run.text);
        // Poisson arrivals: 8,000 and 1,000 with deviations of 90 and 32. A busy machine may not send them all.
        let as_asked =
            |counts: &[u64]| (7_400..8_600).contains(&counts[0]) && (800..1_200).contains(&counts[1]);
        assert!(as_asked(&due), "{due:?}");
        if as_asked(&completed) { Ok(()) } else { Err(run.text) }
    });
}

#[test]
fn options_of_agents_mean_nothing_without_agents() {
    for (options, flag) in [
        ("--agent-token-file x", "--agent-token-file"),
        ("--on-agent-loss stop", "--on-agent-loss"),
        ("--on-agent-loss continue", "--on-agent-loss"),
        ("--agents-timeout 5s", "--agents-timeout"),
        ("--allow-version-mismatch", "--allow-version-mismatch"),
        ("--measure-connections 2", "--measure-connections"),
        ("--agents a --measure-rate 5", "--measure-rate"),
        ("--agents a,a", "--agents"),
        ("--agents http://a", "--agents"),
        ("--agents a --agent-tls-ca x", "--agent-tls-ca"),
    ] {
        let run = pummel(&format!("run -s 127.0.0.1:1 {options}")).expect(2);
        assert!(run.errors.contains(flag), "{options}: {}", run.errors);
    }
}

/// A library that sets the wall clock two seconds ahead.
const AHEAD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME) time->tv_sec += 2;
    return result;
}
"#;

/// An agent whose machine was started eleven days before this one, where this machine can show it one.
fn older() -> Option<Agent> {
    let words = ["--time", "--monotonic", "1000000", "--fork", "--kill-child"];
    let probe = Command::new("unshare").args(words).arg("true").output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("another monotonic clock is not tested: there are no time namespaces here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(words).args([env!("CARGO_BIN_EXE_pummel"), "agent", "--listen", "127.0.0.1:0"]);
    Some(Agent::of(command))
}

#[test]
fn clocks_that_differ_are_told_of_and_times_are_right_all_the_same() {
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let (source, library) = (folder.path().join("ahead.c"), folder.path().join("ahead.so"));
    fs::write(&source, AHEAD).expect("it can be written");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(built.expect("a C compiler is there, since Rust links by it").success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(["agent", "--listen", "127.0.0.1:0"]).env("LD_PRELOAD", &library);
    let mut agents = vec![Agent::of(command), Agent::start()];
    agents.extend(older());
    // The kernel's stamps would be on the clock that was not set ahead.
    let words = format!("run -s {} --clock user {DUE} -v --agents {}", server.name, list(&agents));
    let run = answered(&words);
    assert_eq!(triples(&run), triples(&answered(&format!("run -s {} {DUE}", server.name))));
    let told = format!("the clock of agent {} is 2", agents[0].name);
    assert!(run.errors.contains(&told) && run.errors.contains(" ahead of this machine's"), "{}", run.errors);
    assert_eq!(run.errors.matches("the clock of agent").count(), 1, "{}", run.errors);
    let text = flat(&run.text);
    assert!(text.contains(&format!("the clock of {} is 2", agents[0].name)), "{}", run.text);
    let json = run.json();
    for (number, member) in json.at("agents/members").as_array().expect("members").iter().enumerate() {
        let of = |name: &str| member[name].as_f64().expect("a number");
        let wanted = if number == 0 { 2e6 } else { 0.0 };
        assert!((of("clock_offset_us") - wanted).abs() <= of("clock_error_us") + 1_000.0, "{member}");
        let mean = member["response_us"]["mean"].as_f64().expect("a number");
        assert!(mean > 0.0 && mean < 1e6, "{member}");
    }
}

/// `mutilate -A` on a free port of loopback.
fn mutilate_agent(words: &[&str]) -> Agent {
    let reserved = Reserved::new();
    let port = reserved.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(["mutilate", "-A", "-p", &port]).args(words);
    let agent = Agent::of(command);
    agent.wait_for("set PUMMEL_AGENT_TOKEN_FILE");
    agent
}

#[test]
fn the_recipe_of_mutilates_readme_runs_with_eight_agents_and_rates_add_up() {
    let server = Memcached::start();
    // One of them has two threads and twice the rate on each connection.
    let mut agents: Vec<Agent> = (0..7).map(|_| mutilate_agent(&["-T", "1"])).collect();
    agents.push(mutilate_agent(&["-T", "2", "-l", "2"]));
    let named: Vec<&str> = agents.iter().flat_map(|agent| ["-a", &agent.name]).collect();
    let load = ["mutilate", "-s", &server.name, "--loadonly"];
    Running::start_words(&load).end().expect(0);
    let line = "--noload -B -T 1 -Q 300 -D 4 -C 4 -c 2 -q 3000 -t 2";
    let words = ["mutilate", "-s", &server.name].into_iter().chain(line.split(' '));
    let words: Vec<&str> = words.chain(named.iter().copied()).collect();
    in_some_quiet_moment(|| {
        let run = Running::start_words(&words).end().expect(0);
        let json = run.json();
        let groups = json.at("plan/groups").as_array().expect("groups");
        let rates: Vec<f64> = groups.iter().map(|group| group["rate"].as_f64().expect("a rate")).collect();
        assert!((rates.iter().sum::<f64>() - 3_000.0).abs() < 1e-6, "{rates:?}");
        assert_eq!((rates[0], groups[0]["clients"].as_u64()), (300.0, Some(4)));
        // Two connections of seven, and four of the last, each of which counts twice.
        assert!((rates[8] / rates[1] - 4.0).abs() < 1e-9, "{rates:?}");
        let members = json.at("agents/members").as_array().expect("members");
        let sum: u64 = members.iter().map(|member| member["completed"].as_u64().expect("a number")).sum();
        assert_eq!(json.count("totals/completed"), sum);
        let read = run.text.lines().find(|line| line.starts_with("read ")).expect("a row");
        assert!(!read.contains(" 0.0     0.0     0.0"), "the master measures: {read}");
        assert!(
            run.text.contains("Total QPS = ") && run.text.contains(&format!("({sum} / ")),
            "{}",
            run.text
        );
        // Poisson arrivals: 6,000, give or take 77.
        sent(&run, 5_500..6_500, 5_500..6_500)
    });
    // A master that only leads.
    let line = "--noload -T 0 -c 1 -q 1000 -t 1";
    let words = ["mutilate", "-s", &server.name].into_iter().chain(line.split(' '));
    let words: Vec<&str> = words.chain(named.iter().copied()).collect();
    in_some_quiet_moment(|| {
        let run = Running::start_words(&words).end().expect(0);
        sent(&run, 800..1_200, 800..1_200)
    });
}

/// The words of a master of mutilate's beside these agents.
fn master<'a>(server: &'a str, line: &'a str, agents: &'a [Agent]) -> Vec<&'a str> {
    let words = ["mutilate", "-s", server].into_iter().chain(line.split(' '));
    words.chain(agents.iter().flat_map(|agent| ["-a", &agent.name])).collect()
}

/// Requests that each member completed, the controller's last.
fn completed(run: &Ended) -> Vec<u64> {
    let json = run.json();
    let members = json.at("agents/members").as_array().expect("members").iter();
    members.map(|member| member["completed"].as_u64().expect("a number")).collect()
}

#[test]
fn mutilates_rates_add_up_in_real_runs_of_every_combination() {
    let server = Memcached::start();
    Running::start_words(&["mutilate", "-s", &server.name, "--loadonly"]).end().expect(0);
    // Without agents, -C and -Q add nothing to -q.
    in_some_quiet_moment(|| {
        let line = "--noload -B -c 1 -C 4 -Q 50 -q 1000 -t 1";
        let alone = Running::start_words(&master(&server.name, line, &[])).end().expect(0);
        let json = alone.json();
        let group = &json.at("plan/groups")[0];
        assert_eq!((group["rate"].as_f64(), group["clients"].as_u64()), (Some(1_000.0), Some(4)));
        // Poisson arrivals: 1,000, give or take 32.
        sent(&alone, 800..1_200, 800..1_200)
    });
    let agents = [mutilate_agent(&["-T", "1"]), mutilate_agent(&["-T", "2", "-l", "3"])];
    // With agents: whose share is nothing sends nothing.
    for (line, of_master, idle) in [
        ("-c 1", None, 0),
        ("-c 2 -T 2 -l 2", None, 0),
        ("-c 1 -C 4", None, 0),
        ("-c 1 -C 4 -Q 100 -D 4", Some(100.0), 0),
        ("-c 2 -Q 100", Some(100.0), 0),
        ("-c 1 -Q 1000", Some(1_000.0), 2),
        ("-c 1 -T 0", Some(0.0), 0),
        ("-c 1 -T 0 -Q 100 -C 2", Some(0.0), 0),
    ] {
        let all = format!("--noload -B {line} -q 1000 -t 1");
        let words = master(&server.name, &all, &agents);
        in_some_quiet_moment(|| {
            let run = Running::start_words(&words).end().expect(0);
            let json = run.json();
            let groups = json.at("plan/groups").as_array().expect("groups");
            let rates: Vec<f64> =
                groups.iter().map(|group| group["rate"].as_f64().expect("a rate")).collect();
            assert!((rates.iter().sum::<f64>() - 1_000.0).abs() < 1e-6, "{line}: {rates:?}");
            let is_master = |group: &&serde_json::Value| group["name"] == "clients";
            let master =
                groups.iter().find(is_master).map_or(0.0, |group| group["rate"].as_f64().expect("a rate"));
            assert!(of_master.is_none_or(|wanted| wanted == master), "{line}: {master}");
            assert_eq!(rates.len() - usize::from(master > 0.0), 2 - idle, "{line}: {rates:?}");
            let completed: u64 = completed(&run).iter().sum();
            assert_eq!(completed, json.count("totals/completed"), "{line}");
            // A late request shifts those behind it on its connection, of which a busy machine makes many where there is one.
            sent(&run, 800..1_200, 400..1_200)
        });
    }
    for (line, words) in [("-Q 2000", "measure_qps"), ("-l 0", "lambda_mul")] {
        let all = format!("--noload -c 1 {line} -q 1000 -t 1");
        let run = Running::start_words(&master(&server.name, &all, &agents)).end();
        assert!(run.status != 0 && run.errors.contains(words), "{line}: {} {}", run.status, run.errors);
    }
}

#[test]
fn an_agent_of_mutilates_is_free_when_its_master_was_killed_and_one_that_is_not_there_is_named() {
    let server = Memcached::start();
    let agents = [mutilate_agent(&["-T", "1"])];
    let running = Running::start_words(&master(&server.name, "-B -c 2 -T 0 -q 1000 -t 50", &agents));
    let mut talk = server.connect();
    until("some load", || (talk.stats().get("cmd_get") > 100).then_some(()));
    running.kill();
    let words = master(&server.name, "--noload -B -c 1 -T 0 -q 500 -t 1", &agents);
    let run = || Running::start_words(&words).end();
    let mut next = Some(until("the agent is free", || Some(run()).filter(|run| run.status == 0)));
    in_some_quiet_moment(|| {
        let next = next.take().unwrap_or_else(|| run().expect(0));
        assert_eq!(completed(&next), [next.json().count("totals/completed")]);
        // The next master is told the right figures: 500, give or take 22.
        sent(&next, 350..650, 350..650)
    });
    let nobody = Nobody::new();
    let name = nobody.address.to_string();
    let absent =
        Running::start_words(&["mutilate", "-s", &server.name, "-t", "1", "-a", &name]).end().expect(255);
    assert!(absent.errors.contains(&format!("no agent at {name}")), "{}", absent.errors);
    assert!(absent.errors.contains("waited 10."), "{}", absent.errors);
}

#[test]
fn mutilates_rows_are_the_masters_and_what_agents_measured_is_in_the_result() {
    let server = Memcached::start();
    let agents = [mutilate_agent(&["-T", "1"]), mutilate_agent(&["-T", "1"])];
    let line = "-B -c 2 -Q 200 -q 1000 -t 2";
    let run = Running::start_words(&master(&server.name, line, &agents)).end().expect(0);
    let json = run.json();
    let members = json.at("agents/members").as_array().expect("members");
    let read = run.text.lines().find_map(|line| line.strip_prefix("read ")).expect("a row");
    let row: Vec<f64> = read.split_whitespace().map(|cell| cell.parse().expect("a number")).collect();
    let own = members.last().expect("the master is one of them");
    assert_eq!(own["name"], "controller");
    // Average and standard deviation, with a digit behind the point.
    for (cell, name) in row.iter().zip(["mean", "stddev"]) {
        let exact = own["service_us"][name].as_f64().expect("a number");
        assert!((cell - exact).abs() <= 0.06, "{name}: {cell} in the row, {exact} measured by the master");
    }
    // Original agents throw their latencies away: here they are beside those of the master.
    for member in members {
        let mean = member["service_us"]["mean"].as_f64().expect("it measured");
        assert!(mean > 0.0, "{member}");
    }
}

/// A way to a server for so many connections, any of which can be cut.
struct Relay {
    address: String,
    taken: thread::JoinHandle<Vec<TcpStream>>,
}

impl Relay {
    fn to(server: &str, connections: usize) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let server = server.to_owned();
        let taken = thread::spawn(move || {
            let ends = listener.incoming().take(connections).map(|near| {
                let near = near.expect("somebody connects");
                let far = TcpStream::connect(&server).expect("the server listens");
                pass(&near, &far);
                pass(&far, &near);
                near
            });
            ends.collect()
        });
        Relay { address, taken }
    }

    /// All connections, when they are there.
    fn connections(self) -> Vec<TcpStream> {
        self.taken.join().expect("all come")
    }
}

/// Passes everything on, until one of the ends is closed.
fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().expect("it is open"), to.try_clone().expect("it is open"));
    thread::spawn(move || {
        // However it ends, the other end hears of it.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A way to an agent that takes so long in each direction.
fn long_way(agent: &str, takes: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let agent = agent.to_owned();
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(&agent) else { return };
            pass_late(&near, &far, takes);
            pass_late(&far, &near, takes);
        }
    });
    address
}

/// Passes everything on, each piece so long after it came, until one of the ends is closed.
fn pass_late(from: &TcpStream, to: &TcpStream, takes: Duration) {
    to.set_nodelay(true).expect("it is open");
    let (mut from, mut to) = (from.try_clone().expect("it is open"), to.try_clone().expect("it is open"));
    let (say, pieces) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if say.send((Instant::now() + takes, bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, piece) in pieces {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        // However it ends, the other end hears of it.
        let _ = to.shutdown(Shutdown::Both);
    });
}

#[test]
fn an_agent_that_is_far_away_is_greeted_however_many_round_trips_that_takes() {
    let (server, agent) = (Memcached::start(), Agent::start());
    // The greeting alone takes 17 round trips where answers come at once: more than two seconds here.
    let way = long_way(&agent.name, Duration::from_millis(75));
    let json = pummel(&format!("run -s {} -c 4 -n 200 --agents {way}", server.name)).expect(0).json();
    assert_eq!(json.count("totals/completed"), 200);
    let error_us = json.at("agents/members")[0]["clock_error_us"].as_f64();
    assert!(error_us.is_some_and(|error_us| error_us >= 74_000.0), "{error_us:?}");
}

#[test]
fn a_connection_that_one_agent_of_mutilates_loses_ends_the_run_of_all_with_its_report() {
    let server = Memcached::start();
    let agents = [(); 3].map(|()| mutilate_agent(&["-T", "1"]));
    // One connection of the master, and one of each agent.
    let relay = Relay::to(&server.name, 4);
    let address = relay.address.clone();
    let line = "--noload -B -T 1 -c 1 -q 2000 -Q 100 -t 50";
    let running = Running::start_words(&master(&address, line, &agents));
    let connections = relay.connections();
    let mut talk = server.connect();
    until("some load", || (talk.stats().get("cmd_get") > 1_000).then_some(()));
    connections[0].shutdown(Shutdown::Both).expect("it is open");
    let run = running.end().expect(255);
    let json = run.json();
    assert_eq!(json.text("status"), "partial");
    let seconds = json.number("seconds");
    assert!(seconds < 45.0, "the others went on for {seconds} s");
    let reason = json.text("reason");
    assert!(reason.contains("1 of 1 connections was lost and not replaced"), "{reason}");
    assert!(run.errors.contains("Unexpected EOF from server."), "{}", run.errors);
    assert_eq!(json.count("connections/lost"), 1);
    assert_eq!(completed(&run).iter().sum::<u64>(), json.count("totals/completed"));
    assert!(json.count("totals/completed") > 900, "{}", run.text);
    assert!(run.text.contains("Total QPS = "), "the report is written: {}", run.text);
    // All agents are free for the next.
    let next = Running::start_words(&master(&server.name, "--noload -B -c 1 -q 500 -t 1", &agents));
    next.end().expect(0);
}

/// Waits until a server got 1,000 reads more, or a run has ended.
#[track_caller]
fn await_load(server: &Memcached, running: &mut Running) {
    let mut talk = server.connect();
    let before = talk.stats().get("cmd_get");
    until("some load", || {
        (running.has_ended() || talk.stats().get("cmd_get") > before + 1_000).then_some(())
    });
}

#[test]
fn a_server_that_is_frozen_to_the_end_is_no_failure_of_a_run_with_mutilates_agents() {
    let server = Memcached::start();
    let agents = [mutilate_agent(&["-T", "1"])];
    let mut seconds = 2;
    let ended = loop {
        let line = format!("-B -c 2 -t {seconds}");
        let mut running = Running::start_words(&master(&server.name, &line, &agents));
        await_load(&server, &mut running);
        server.process.stop();
        let is_through = running.has_ended();
        let ended = running.end();
        server.process.go_on();
        let ended = ended.expect(0);
        if !is_through {
            break ended;
        }
        // On a machine so busy that the run was through before, once more.
        assert!(seconds < 16, "the run was through before its server was frozen: {}", ended.text);
        seconds *= 2;
    };
    assert!(ended.json().count("totals/completed") > 900);
}

#[test]
fn a_run_with_mutilates_agents_goes_on_without_one_that_died_and_is_no_success() {
    let server = Memcached::start();
    let mut seconds = 4;
    let run = loop {
        let mut agents = vec![mutilate_agent(&["-T", "1"]), mutilate_agent(&["-T", "1"])];
        let line = format!("-B -c 1 -T 0 -q 1000 -t {seconds}");
        let mut running = Running::start_words(&master(&server.name, &line, &agents));
        await_load(&server, &mut running);
        drop(agents.remove(1));
        let run = running.end();
        // On a machine so busy that it was through before, once more.
        if run.status != 0 || seconds > 16 {
            break run.expect(255);
        }
        seconds *= 2;
    };
    let json = run.json();
    assert_eq!((json.text("status"), json.count("agents/lost")), ("partial", 1));
    assert!(json.number("seconds") >= f64::from(seconds) - 0.1, "{}", run.text);
    assert!(run.text.contains("Total QPS = ") && run.errors.contains(" was lost "), "{}", run.errors);
}

#[test]
fn a_load_that_fails_on_one_of_two_agents_is_partial_and_one_that_fails_on_both_ends_the_run() {
    let (good, bad) = (Serve::start(""), Serve::start("--fault error-every=1"));
    let agents = Agent::many(2);
    let names = list(&agents);
    // Each agent has one of the two clients, and each client has one of the two servers.
    let words = |first: &Serve, second: &Serve| {
        let servers = format!("{},{}", first.name, second.name);
        format!("run -s {servers} -c 2 -t 500ms --records 10 --agents {names}")
    };
    for (first, second) in [(&good, &bad), (&bad, &good)] {
        let json = pummel(&words(first, second)).expect(1).json();
        assert_eq!((json.text("status"), json.count_or_none("agents/lost")), ("partial", 0));
        assert!(
            json.text("reason").starts_with("10 of 20 records were not stored: "),
            "{}",
            json.text("reason")
        );
        assert_eq!((json.count("load/records"), json.count("load/stored")), (20, 10));
        assert!(json.count("totals/completed") > 0, "it is measured");
    }
    let ended = pummel(&format!("{} --allow-partial-load", words(&good, &bad)));
    // Half of the requests fail, so that a few more or less decide whether the run failed.
    assert!(ended.status <= 1, "{}", ended.errors);
    let allowed = ended.json();
    assert_eq!((allowed.text("status"), allowed.count("load/stored")), ("complete", 10));
    let failed = pummel(&format!("{} --allow-partial-load", words(&bad, &bad))).expect(1).json();
    assert_eq!((failed.text("status"), failed.count("totals/requests")), ("partial", 0));
    assert!(failed.text("reason").contains("none of 20 records was stored: "), "{}", failed.text("reason"));
}
