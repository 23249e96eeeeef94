//! Runs over agents that are cut short: an agent that is interrupted, and a controller that stands still, in every phase.

use std::time::Duration;

use crate::common::agent::{Agent, list};
use crate::common::{Ended, Memcached, PATIENCE, Running, in_some_quiet_moment, until};
use rustix::process::{Pid, Signal, kill_process};

/// The most seconds or requests that a run is given, where shorter ones were over before an agent could be interrupted.
const ATTEMPTS: u32 = 4;

fn terminate(agent: &Agent) {
    kill_process(Pid::from_child(&agent.process.0), Signal::TERM).expect("it runs");
}

/// Waits until the process of an agent has ended.
fn await_exit(agent: &mut Agent) {
    until("the agent has ended", || agent.process.0.try_wait().expect("it was started"));
}

/// The reason of a run that has to be partial.
#[track_caller]
fn reason_of(run: Ended) -> (String, Ended) {
    let run = run.expect(1);
    assert_eq!(run.json().text("status"), "partial");
    (run.json().text("reason").to_owned(), run)
}

/// A run of two agents the second of which is interrupted in the measured phase; with its name. `words` are those of the
/// run, longer with each attempt. An attempt in which the run was over first does not count.
#[track_caller]
fn interrupted(words: impl Fn(u32) -> String) -> (Ended, String) {
    let server = Memcached::start();
    for attempt in 0..ATTEMPTS {
        let agents = Agent::many(2);
        let words = format!("run -s {} -c 8 --interval 100ms {}", server.name, words(1 << attempt));
        let mut run = Running::start(&format!("{words} --agents {}", list(&agents)));
        run.wait_for_progress();
        run.wait_for_progress();
        terminate(&agents[1]);
        let run = run.end();
        if run.status != 0 {
            return (run, agents[1].name.clone());
        }
    }
    panic!("a run of which an agent was interrupted is complete");
}

/// Requests that each member completed.
fn completed(run: &Ended) -> Vec<u64> {
    let json = run.json();
    let members = json.at("agents/members").as_array().expect("members").iter();
    members.map(|member| member["completed"].as_u64().expect("a number")).collect()
}

#[test]
fn a_timed_run_of_which_an_agent_was_interrupted_is_partial_and_goes_on() {
    let (run, victim) = interrupted(|longer| format!("-t {}s --rate 8000", 2 * longer));
    let (reason, run) = reason_of(run);
    assert!(reason.contains(&format!("agent {victim} left ")), "{reason}");
    assert!(reason.contains(" s into the measurement: its process was told to end"), "{reason}");
    assert!(run.errors.contains("the run goes on without it"), "{}", run.errors);
    let json = run.json();
    let of = completed(&run);
    assert_eq!(json.count("totals/completed"), of[0] + of[1]);
    assert!(of[1] > 0 && of[1] < of[0], "{of:?}");
    assert_eq!(json.count("agents/lost"), 1);
    assert!(json.at("agents/members")[1]["lost"]["at_s"].as_f64().is_some_and(|at_s| at_s > 0.0));
}

#[test]
fn a_counted_run_of_which_an_agent_was_interrupted_is_partial_and_goes_on() {
    let requests = |longer: u32| 20_000 * u64::from(longer);
    let (run, victim) = interrupted(|longer| format!("-n {} --rate 8000", requests(longer)));
    let (reason, run) = reason_of(run);
    assert!(reason.contains(&format!("agent {victim} left ")), "{reason}");
    assert!(reason.contains(" s into the measurement: its process was told to end"), "{reason}");
    let of = completed(&run);
    assert!(of[1] > 0 && of[1] < of[0], "{of:?}");
}

#[test]
fn a_run_that_shall_stop_when_an_agent_is_lost_stops_when_one_is_interrupted() {
    let server = Memcached::start();
    let agents = Agent::many(2);
    let words = format!("run -s {} -c 8 -t 1h --interval 100ms --on-agent-loss stop", server.name);
    let mut run = Running::start(&format!("{words} --agents {}", list(&agents)));
    run.wait_for_progress();
    terminate(&agents[1]);
    let (reason, _) = reason_of(run.end());
    assert!(reason.contains(&format!("agent {} left ", agents[1].name)), "{reason}");
    assert!(reason.contains("the run was stopped (--on-agent-loss stop)"), "{reason}");
    assert!(!reason.contains(&agents[0].name), "the other one was told to stop: {reason}");
}

/// A command that loads records by two agents the second of which is interrupted while it does; with the agent's name and the
/// number of records, which grows with each attempt. An attempt in which the records were all stored first does not count.
#[track_caller]
fn interrupted_load(words: &str) -> (Ended, String, u64) {
    for attempt in 0..ATTEMPTS {
        let (server, mut agents) = (Memcached::start(), Agent::many(2));
        let records = 200_000_u64 << attempt;
        let words = format!("{words} --records {records} -s {} -c 8 --timeout 20s", server.name);
        let run = Running::start(&format!("{words} --agents {}", list(&agents)));
        let mut talk = server.connect();
        until("some records", || (talk.stats().get("curr_items") > 100).then_some(()));
        // The load cannot end before the agent was interrupted.
        server.process.stop();
        terminate(&agents[1]);
        await_exit(&mut agents[1]);
        server.process.go_on();
        let run = run.end_within(3 * PATIENCE);
        if run.json().count("load/stored") < records {
            return (run, agents[1].name.clone(), records);
        }
    }
    panic!("a load of which an agent was interrupted stored all records");
}

#[test]
fn a_load_of_which_an_agent_was_interrupted_is_partial() {
    for words in ["load", "run -t 1s"] {
        let (run, victim, records) = interrupted_load(words);
        let (reason, run) = reason_of(run);
        assert!(reason.contains(&format!("agent {victim} left ")), "{words}: {reason}");
        assert!(
            reason.contains(" s after the beginning of the load: its process was told to end"),
            "{words}: {reason}"
        );
        assert_eq!(run.json().count("load/records"), records, "{words}");
    }
}

#[test]
fn a_warm_up_of_which_an_agent_was_interrupted_is_partial() {
    let server = Memcached::start();
    let agents = Agent::many(2);
    let words = format!("run -s {} -c 8 --warmup 1h -t 1s --on-agent-loss stop", server.name);
    let run = Running::start(&format!("{words} --agents {}", list(&agents)));
    let mut talk = server.connect();
    until("the warm-up", || (talk.stats().get("cmd_get") > 100).then_some(()));
    terminate(&agents[1]);
    let (reason, _) = reason_of(run.end());
    assert!(reason.contains(&format!("agent {} left ", agents[1].name)), "{reason}");
    assert!(
        reason.contains(" s after the beginning of the warm-up: its process was told to end"),
        "{reason}"
    );
}

/// A run of two agents whose controller stands still until both have given it up, from the moment at which the server's
/// counter `name` is above 100. The server stands still as well where `holds_server`, for work that would be over first.
#[track_caller]
fn deserted(words: &str, name: &str, holds_server: bool) -> (String, Vec<Agent>) {
    let server = Memcached::start();
    let agents = Agent::many(2);
    let words = format!("{words} -s {} -c 8 --timeout 20s --agents {}", server.name, list(&agents));
    let run = Running::start(&words);
    let mut talk = server.connect();
    until("some requests", || (talk.stats().get(name) > 100).then_some(()));
    if holds_server {
        server.process.stop();
    }
    run.process.stop();
    agents.iter().for_each(|agent| drop(agent.wait_for("has gone silent")));
    run.process.go_on();
    server.process.go_on();
    let (reason, _) = reason_of(run.end());
    for agent in &agents {
        assert!(reason.contains(&format!("agent {} left ", agent.name)), "{words}: {reason}");
    }
    assert!(reason.contains("it heard nothing from its controller for "), "{words}: {reason}");
    assert!(reason.contains("the controller stood still for "), "{words}: {reason}");
    (reason, agents)
}

#[test]
fn a_run_whose_controller_stood_still_is_partial_and_says_who_gave_it_up_and_when() {
    for (words, name, holds_server, moment) in [
        ("run -t 1h", "cmd_get", false, " s into the measurement: "),
        ("run -n 100m --rate 1000", "cmd_get", false, " s into the measurement: "),
        ("run --warmup 1h -t 1s", "cmd_get", false, " s after the beginning of the warm-up: "),
        // More records than are stored before a busy machine gets to hold the server.
        ("load --records 5m", "curr_items", true, " s after the beginning of the load: "),
    ] {
        let (reason, agents) = deserted(words, name, holds_server);
        assert!(reason.contains(moment), "{words}: {reason}");
        // They are free for the next.
        let server = Memcached::start();
        let next = format!("run -s {} -c 2 -n 100 --agents {}", server.name, list(&agents));
        until("the agents are free", || (crate::common::pummel(&next).status == 0).then_some(()));
    }
}

#[test]
fn an_agent_that_stood_still_for_a_moment_does_not_blame_its_controller() {
    // Longer than an agent waits for its controller, and shorter than a controller waits for an agent.
    const PAUSE: Duration = Duration::from_millis(2_200);
    const PATIENCE_S: f64 = 2.4;
    in_some_quiet_moment(|| {
        let server = Memcached::start();
        let agents = Agent::many(2);
        let words = format!("run -t 4s -s {} -c 8 --agents {}", server.name, list(&agents));
        let run = Running::start(&words);
        let mut talk = server.connect();
        until("some requests", || (talk.stats().get("cmd_get") > 100).then_some(()));
        let (_, most_s) = agents[0].process.pause(PAUSE);
        let run = run.end();
        if most_s > PATIENCE_S {
            return Err(format!("the agent stood still for up to {most_s} s"));
        }
        let is_late = "nothing was heard from it for ";
        if run.status == 1 && run.json().text("reason").contains(is_late) {
            return Err(format!(
                "the agent was kept from running for longer than it stood still: {}",
                run.errors
            ));
        }
        let run = run.expect(0);
        assert_eq!(run.json().text("status"), "complete");
        Ok(())
    });
}
