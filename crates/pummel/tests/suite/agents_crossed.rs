//! Features of agents, crossed: each row is a run of two agents in which several of their features meet.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::agent::{Agent, list};
use crate::common::{Ended, Json, Memcached, Place, Reserved, Running, Serve, in_some_quiet_moment, until};
use pummel_fronts::agent_variables::{OF_AGENTS, OF_CONTROLLERS};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Runs that are complete, with what the words of both agents are, the words of the run, and a number of its result.
const COMPLETE: &[(&str, &str, &str, u64)] = &[
    ("", "-c 8 --calls-per-connection 5 -n 203", "connections/churn/clients", 41),
    ("", "-c 8 --calls-per-connection 5 --conn-rate 400 -n 200", "connections/churn/clients", 40),
    // The last gap between two connections may be longer than what is left of the time.
    ("", "-c 8 --calls-per-connection 3 --conn-rate 20 -t 500ms", "agents/lost", 0),
    ("", "-c 8 --calls-per-connection 5 -n 200 --server-stats=100ms", "totals/completed", 200),
    ("--max-connections 4", "-c 8 -n 400 --server-stats=100ms", "totals/completed", 400),
    ("--max-connections 4", "-c 8 --calls-per-connection 5 -n 200", "connections/churn/clients", 40),
    ("--max-connections 4 --max-memory 500m", "--udp -c 8 -n 400", "totals/completed", 400),
    ("--max-memory 500m", "-c 8 -n 400 --stamps tx:2 --warmup 100ms", "totals/completed", 400),
    ("", "-c 8 --rate 500 -t 400ms --reconnect --verify --mix get:80,set:20", "verify/failed", 0),
    ("", "-c 8 -n 400 --no-evidence --read-through=1ms --no-load", "agents/lost", 0),
    // Of constant arrivals so many are due as the integral of the rate says, whatever the processes.
    ("", "-c 8 --rate 0..2k -t 400ms --arrivals constant --warmup 100ms", "totals/requests", 400),
    ("", "-c 8 --rate 500 --stage 200ms:1500,200ms,0s:0,100ms --arrivals constant", "totals/requests", 500),
    ("", "-c 8 --rate sine:1k,900,100ms -t 390ms --arrivals constant --reconnect", "totals/requests", 393),
    ("", "-c 8 --rate 1k -t 400ms --burst 3,10ms,30ms --measure-connections 2", "agents/lost", 0),
];

/// Runs that agents with these words refuse before anything is sent, with a part of the reason.
const REFUSED: &[(&str, &str, &str)] = &[
    ("--max-connections 4", "-c 10 --calls-per-connection 5 -n 200", "--max-connections"),
    ("--max-connections 4", "--udp -c 9 -n 400", "--max-connections"),
    ("--max-memory 200m", "-c 8 -d 100k -n 400 --server-stats=100ms", "--max-memory"),
    ("--max-memory 200m", "-c 8 -d 100k -n 4 --read-through=1ms --verify", "--max-memory"),
    ("", "-c 8 -n 4 --user u --password-file /nonexistent --protocol binary", "--allow-file"),
];

/// Runs of which one agent is told to end, with a part of the reason behind its name.
const INTERRUPTED: &[(&str, &str)] = &[
    ("-c 8 --calls-per-connection 5 --conn-rate 200 -n 100k", "its process was told to end"),
    ("-c 8 --rate 2000 -t 1h --server-stats=100ms", "its process was told to end"),
    ("--udp -c 8 --rate 2000 -t 1h", "its process was told to end"),
    ("-c 8 --rate 2000 -t 1h --stamps tx:4 --measure-connections 2", "its process was told to end"),
];

fn pair(words: &str) -> [Agent; 2] {
    let words: Vec<&str> = words.split_whitespace().collect();
    [Agent::start_with(&words), Agent::start_with(&words)]
}

fn run(server: &Memcached, words: &str, agents: &[Agent]) -> Running {
    let words =
        format!("run -s {} --records 200 --interval 50ms {words} --agents {}", server.name, list(agents));
    Running::start(&words)
}

#[test]
fn runs_in_which_features_of_agents_meet_are_complete() {
    let server = Memcached::start_on(Place::Udp);
    for (agent_words, words, name, expected) in COMPLETE {
        let ended = run(&server, words, &pair(agent_words)).end();
        assert_eq!(ended.status, 0, "{words}: {}{}", ended.errors, ended.text);
        let json = ended.json();
        assert_eq!((json.text("status"), json.count(name)), ("complete", *expected), "{words}: {name}");
        let members = json.at("agents/members").as_array().expect("members");
        assert!(members.iter().all(|member| member["lost"].is_null()), "{words}: {members:?}");
    }
}

#[test]
fn what_an_agent_does_not_allow_is_refused_whatever_else_is_asked() {
    let server = Memcached::start_on(Place::Udp);
    for (agent_words, words, reason) in REFUSED {
        let before = server.connect().stats().get("cmd_set");
        let agents = pair(agent_words);
        let ended = run(&server, words, &agents).end();
        assert!(matches!(ended.status, 1 | 2), "{words}: {}", ended.errors);
        assert!(ended.errors.contains(reason), "{words}: {}", ended.errors);
        assert_eq!(ended.json().text("status"), "partial", "{words}");
        assert_eq!(server.connect().stats().get("cmd_set"), before, "{words}");
        // The agents are free for the next run.
        run(&server, "-c 2 -n 20", &agents).end().expect(0);
    }
}

#[test]
fn an_agent_that_is_told_to_end_is_named_whatever_it_does() {
    let server = Memcached::start_on(Place::Udp);
    for (words, reason) in INTERRUPTED {
        let agents = pair("");
        let words = format!("{words} --on-agent-loss stop");
        let mut running = run(&server, &words, &agents);
        running.wait_for_progress();
        kill_process(Pid::from_child(&agents[1].process.0), Signal::TERM).expect("it runs");
        let ended = running.end().expect(1);
        let json = ended.json();
        let said = json.text("reason");
        assert!(said.contains(&format!("agent {} left ", agents[1].name)) && said.contains(reason), "{said}");
        let lost = &json.at("agents/members")[1]["lost"];
        assert_eq!(lost["left"], true, "{words}: {lost}");
    }
}

/// Servers that close what is sent to them while records are stored.
#[test]
fn a_load_that_fails_on_agents_is_said_as_it_is_without_them() {
    let reason = |agents: &[Agent]| {
        let server = Serve::start("--fault close-after=1");
        let beside = if agents.is_empty() { String::new() } else { format!("--agents {}", list(agents)) };
        let words = format!("load -s {} -c 2 --records 20 {beside}", server.name);
        let ended = crate::common::pummel(&words).expect(1);
        ended.json().text("reason").replace(&server.name, "SERVER")
    };
    let alone = reason(&[]);
    assert!(alone.contains("closed the connection"), "{alone}");
    let cause = alone.split_once(": ").expect("a cause").1.to_owned();
    let together = reason(&pair(""));
    assert!(together.contains(&cause), "{together:?} and not {cause:?}");
}

/// An agent of mutilate's that reads files below a folder, which is also where relative paths begin.
fn reader(folder: &Path, variables: &[(&str, &str)]) -> Agent {
    let reserved = Reserved::new();
    let port = reserved.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(["mutilate", "-A", "-p", &port, "-T", "1"]).current_dir(folder);
    command.env("PUMMEL_ALLOW_FILE", folder).envs(variables.iter().copied());
    Agent::of(command)
}

/// A folder with a recording of so many reads.
fn recording(rows: usize) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let rows: String = (0..rows).map(|row| format!("key{row},20\n")).collect();
    fs::write(folder.path().join("trace.csv"), rows).expect("it is written");
    folder
}

fn replay(server: &Memcached, master: &TempDir, agents: &[&Agent]) -> Ended {
    let mut command = Command::new("env");
    command.args(["-C", master.path().to_str().expect("UTF-8"), env!("CARGO_BIN_EXE_pummel")]);
    let words = ["mutilate", "-s", &server.name, "-B", "-t", "3600", "--read_file", "trace.csv", "--noload"];
    let words: Vec<&str> =
        words.into_iter().chain(agents.iter().flat_map(|agent| ["-a", &agent.name])).collect();
    Running::start_as(command, &words, None).end()
}

#[test]
fn an_agent_with_limits_reads_a_recording_within_them_or_says_which_variable_is_in_the_way() {
    let server = Memcached::start();
    let (master, large) = (recording(300), recording(200_000));
    let few = [("PUMMEL_AGENT_MAX_MEMORY", "500m"), ("PUMMEL_AGENT_MAX_CONNECTIONS", "2")];
    let small_agent = reader(master.path(), &few);
    replay(&server, &master, &[&small_agent]).expect(0);
    let large_agent = reader(large.path(), &[("PUMMEL_AGENT_MAX_MEMORY", "1m")]);
    let refused = replay(&server, &master, &[&large_agent]).expect(255);
    assert!(refused.errors.contains("PUMMEL_AGENT_MAX_MEMORY"), "{}", refused.errors);
    assert!(!refused.errors.contains("--max-memory"), "{}", refused.errors);
}

#[test]
fn every_help_of_a_front_that_takes_agents_names_their_variables() {
    let controllers = OF_CONTROLLERS.iter();
    let all: Vec<&str> = controllers.clone().chain(&OF_AGENTS).map(|(_, name)| *name).collect();
    let controllers: Vec<&str> = controllers.map(|(_, name)| *name).collect();
    for (front, names) in [
        ("run", &controllers),
        ("load", &controllers),
        ("search", &controllers),
        ("scan", &controllers),
        ("mutilate", &all),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_pummel")).args([front, "--help"]).output();
        let help = String::from_utf8(output.expect("pummel starts").stdout).expect("UTF-8");
        for name in names {
            assert!(help.contains(name), "{front} --help does not name {name}");
        }
    }
}

#[test]
fn agents_whose_recordings_differ_are_named() {
    let server = Memcached::start();
    let (master, other) = (recording(300), recording(200));
    let agent = reader(other.path(), &[]);
    let ended = replay(&server, &master, &[&agent]);
    let said = "replayed a recording of 300 rows, and another member one of 200";
    let turned = "replayed a recording of 200 rows, and another member one of 300";
    assert!(ended.errors.contains(said) || ended.errors.contains(turned), "{}", ended.errors);
}

/// Longest wait for a run that may measure for 60 s.
const UNTIL_MAX: Duration = Duration::from_secs(120);

/// A run of two agents whose ends are found while it goes on. Replies are held so long that the stalls of a busy machine do not
/// make the median unsteady.
fn adaptive(words: &str, agents: &[Agent]) -> (Running, Serve) {
    let server = Serve::start("--service-time exponential:5ms");
    let words =
        format!("run -s {} -c 16 --rate 400 --records 100 {words} --agents {}", server.name, list(agents));
    (Running::start(&words), server)
}

/// The result of an [`adaptive`] run that was not unsteady, which has to have reached its target. Stalls of a busy machine may make
/// a run unsteady behind the moment at which enough was known, and no figure of an unsteady run is sure: such a run is repeated.
fn known(words: &str, agents: &[Agent]) -> Json {
    in_some_quiet_moment(|| {
        let (running, _server) = adaptive(words, agents);
        let ended = running.end_within(UNTIL_MAX);
        let json = ended.json();
        assert_eq!(json.text("status"), "complete", "{}", ended.errors);
        if json.at("steady").as_bool() == Some(false) {
            return Err(ended.text);
        }
        ended.expect(0);
        assert_eq!(json.at("until/reached").as_bool(), Some(true), "{}", json.at("until"));
        Ok(json)
    })
}

#[test]
fn agents_measure_until_a_quantile_of_all_of_them_is_known() {
    let words = "--until p50:100% --min-time 2s --max-time 60s --interval 100ms --measure-connections 2 --measure-rate 40";
    let json = known(words, &pair("--max-connections 20 --max-memory 500m"));
    let seconds = json.number("seconds");
    assert!((2.4..59.0).contains(&seconds), "{seconds} s");
    let members = json.at("agents/members").as_array().expect("members");
    assert_eq!(members.len(), 3, "the controller measures too");
    assert!(members.iter().all(|member| member["lost"].is_null()), "{members:?}");
    let due = json.count("totals/requests") as f64;
    assert!((due / (400.0 * seconds) - 1.0).abs() < 0.3, "{due} requests in {seconds} s");
}

#[test]
fn a_measurement_of_agents_ends_when_enough_is_known_although_one_is_lost() {
    let agents = pair("");
    let (mut running, _server) =
        adaptive("--until p50:100% --min-time 3s --max-time 60s --interval 100ms", &agents);
    running.wait_for_progress();
    kill_process(Pid::from_child(&agents[1].process.0), Signal::KILL).expect("it runs");
    let ended = running.end();
    let json = ended.json();
    assert_eq!(json.text("status"), "partial", "{}", ended.errors);
    let reason = json.text("reason");
    assert!(reason.contains(&format!("agent {} was lost", agents[1].name)), "{reason}");
    assert!(!reason.contains("measured"), "the agent that stayed measured all of its time: {reason}");
    assert!(json.number("seconds") < 50.0, "{} s", json.number("seconds"));
    // What the lost agent did not tell is in no figure of the others.
    for path in ["until", "certainty", "generator/cpu_us_per_request"] {
        assert!(json.at(path).is_null(), "{path}: {}", json.at(path));
    }
    assert!(!ended.text.contains("NOT REACHED"), "{}", ended.text);
}

#[test]
fn a_warm_up_of_agents_settles_or_is_cut_short() {
    let agents = pair("");
    let server = Serve::start("--service-time exponential:5ms");
    let words = format!(
        "run -s {} -c 16 --rate 400 --records 100 --warmup auto:11s -t 2s -v --agents {}",
        server.name,
        list(&agents)
    );
    let running = Running::start(&words);
    until("the warm-up", || server_has_answered(&server).then_some(()));
    running.process.interrupt();
    let ended = running.end().expect(130);
    let json = ended.json();
    assert_eq!((json.text("status"), json.at("warmup/settled").as_bool()), ("interrupted", Some(false)));
    assert_eq!(json.at("warmup/cut_short").as_bool(), Some(true), "{}", json.at("warmup"));
    assert!(ended.text.contains("Warm-up      cut short after"), "{}", ended.text);

    let ended = Running::start(&words).end().expect(0);
    let json = ended.json();
    let seconds = json.number("warmup/seconds");
    match json.at("warmup/settled").as_bool() {
        // Two seconds are not looked at, then come two blocks of two, and the end is known half a second ahead. Agents that hear of
        // it late warm up for the longest time.
        Some(true) => assert!((6.4..=11.0).contains(&seconds), "{seconds} s"),
        // Neighbours on this machine may keep it from settling.
        _ => assert!(seconds >= 10.9, "{seconds} s"),
    }
    assert_eq!(json.at("warmup/cut_short").as_bool(), Some(false));
    // The last replies may come in the drain.
    assert!((1.9..4.0).contains(&json.number("seconds")), "{}", json.number("seconds"));
    let measured = json.count("totals/requests") as f64;
    assert!((measured / 800.0 - 1.0).abs() < 0.3, "{measured}: the warm-up is not part of the result");
}

#[test]
fn a_warm_up_of_agents_ends_for_all_with_the_first_eviction_that_one_of_them_sees() {
    let agents = pair("");
    let server = Serve::start("--items 2000");
    let words = format!(
        "run -s {} -c 8 --rate 1k --records 1000000 --mix get:1 --no-load --popularity uniform --read-through \
         --warmup-until evictions:60s -t 2s --agents {}",
        server.name,
        list(&agents)
    );
    let json = Running::start(&words).end().expect(0).json();
    assert_eq!(json.at("warmup/settled").as_bool(), Some(true), "{}", json.at("warmup"));
    let seconds = json.number("warmup/seconds");
    assert!((1.7..60.0).contains(&seconds), "{seconds} s");
    // What was new to each of them is added up.
    let cache = |name: &str| json.count(&format!("cache/{name}"));
    assert_eq!(
        cache("first_touch") + cache("absent") + cache("expired") + cache("other"),
        json.count("ops/get/misses")
    );
    assert_eq!(cache("fills"), json.count("ops/set/completed"));
}

/// Whether so many reads were answered that the records are stored and the warm-up goes on.
fn server_has_answered(server: &Serve) -> bool {
    server.connect().stats().get("cmd_get") > 100
}

#[test]
fn one_agent_with_the_whole_load_measures_until_a_quantile_is_known() {
    let words = "--until p50:100% --min-time 1s --max-time 60s --interval 100ms";
    let json = known(words, &[Agent::start()]);
    assert!(json.number("seconds") < 59.0);
}

#[test]
fn one_agent_with_the_whole_load_says_that_a_server_evicted_in_its_warm_up() {
    let agents = [Agent::start()];
    let server = Serve::start("--items 2000");
    let words = format!(
        "run -s {} -c 8 --rate 1k --records 1000000 --mix get:1 --no-load --popularity uniform --read-through \
         --warmup-until evictions:60s -t 1s --agents {}",
        server.name,
        list(&agents)
    );
    let json = Running::start(&words).end().expect(0).json();
    assert_eq!(json.at("warmup/settled").as_bool(), Some(true), "{}", json.at("warmup"));
    let seconds = json.number("warmup/seconds");
    assert!((1.7..60.0).contains(&seconds), "{seconds} s");
}
