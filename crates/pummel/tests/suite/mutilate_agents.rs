//! mutilate's command line beside agents of its own, with the real binary against a real memcached.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::agent::Agent;
use crate::common::hosts::Hosts;
use crate::common::{Ended, Memcached, Reserved, Running, in_the_midst_of, quiet, until};

/// `mutilate -A` on a free port of loopback, with these variables in its environment.
fn agent_with(words: &[&str], variables: &[(&str, &str)]) -> Agent {
    let reserved = Reserved::new();
    let port = reserved.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(["mutilate", "-A", "-p", &port]).args(words).envs(variables.iter().copied());
    Agent::of(command)
}

fn agent(words: &[&str]) -> Agent {
    agent_with(words, &[])
}

/// Runs a master of mutilate's beside these agents.
fn master(server: &str, line: &str, agents: &[Agent]) -> Ended {
    let words = ["mutilate", "-s", server].into_iter().chain(line.split(' '));
    let words: Vec<&str> = words.chain(agents.iter().flat_map(|agent| ["-a", &agent.name])).collect();
    Running::start_words(&words).end()
}

/// Requests that each member completed, the master's last.
fn completed(run: &Ended) -> Vec<u64> {
    let json = run.json();
    let members = json.at("agents/members").as_array().expect("members").iter();
    members.map(|member| member["completed"].as_u64().expect("a number")).collect()
}

#[test]
fn a_number_of_queries_is_the_total_of_master_and_agents() {
    let server = Memcached::start();
    let agents = [agent(&["-T", "1"]), agent(&["-T", "2"])];
    let run = master(&server.name, "-B -c 2 -N 1000 -r 100", &agents).expect(0);
    let completed = completed(&run);
    assert_eq!(completed.iter().sum::<u64>(), 1_000, "{completed:?}");
    assert!(completed.iter().all(|&own| own > 0), "{completed:?}");
    assert_eq!(server.connect().stats().get("cmd_get"), 1_000);
}

#[test]
fn nine_tenths_of_the_keys_are_deleted_once_and_not_once_for_each_process() {
    let server = Memcached::start();
    let agents = [agent(&["-T", "1"]), agent(&["-T", "1"])];
    let line = "-B -c 2 --getset --delete90 -N 2000 -r 1000";
    let run = master(&server.name, line, &agents).expect(0);
    let stats = server.connect().stats();
    assert_eq!((stats.get("delete_hits"), stats.get("delete_misses")), (900, 0));
    assert_eq!(run.json().count("ops/get/completed"), 2_000);
}

#[test]
fn what_is_saved_and_judged_is_the_masters_and_the_rest_comes_on_request() {
    let _alone = quiet();
    let server = Memcached::start();
    let agents = [agent(&["-T", "1"])];
    let line = "-B -c 2 -q 2000 -Q 200 -t 1 -u 0.2 -r 100 --save lat";
    let run = master(&server.name, line, &agents).expect(0);
    let json = run.json();
    let groups = json.at("groups").as_array().expect("groups").clone();
    let of = |name: &str, op: &str| {
        let group = groups.iter().find(|group| group["name"] == name).expect("the group");
        group["ops"][op]["completed"].as_u64().unwrap_or(0)
    };
    let reads = of("clients", "get");
    assert!(reads > 0 && reads < json.count("ops/get/completed"), "{groups:?}");
    assert_eq!(run.file("lat").lines().count() as u64, reads);
    assert!(!run.text.contains("read_all"), "{}", run.text);

    let all = master(&server.name, &format!("{line} --save_all --all_rows -v"), &agents).expect(0);
    let lines: Vec<String> = all.file("lat").lines().map(str::to_owned).collect();
    assert_eq!(lines.len() as u64, all.json().count("totals/completed"));
    let mut machines: Vec<&str> = lines
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            assert_eq!(fields.len(), 5, "{line}");
            assert!(
                fields[0].parse::<f64>().is_ok_and(|at| at > 1.6e9) && matches!(fields[2], "read" | "update"),
                "{line}"
            );
            fields[4]
        })
        .collect();
    machines.sort_unstable();
    machines.dedup();
    assert_eq!(machines, [agents[0].name.as_str(), "master"]);
    for row in ["read_all ", "update_all "] {
        assert!(all.text.lines().any(|line| line.starts_with(row)), "{}", all.text);
    }
    let local =
        all.errors.lines().find(|line| line.contains("Local QPS = ")).expect("what the master did itself");
    let own = *completed(&all).last().expect("the master");
    assert!(local.contains(&format!(" ({own} / ")), "{local}");
}

#[test]
fn an_agent_says_its_servers_and_its_rate_with_the_address_that_the_master_found() {
    let server = Memcached::start();
    let agents = [agent(&["-T", "1", "-v"])];
    let port = server.name.rsplit(':').next().expect("a port").to_owned();
    let line = "-B -c 3 -q 600 -Q 100 -t 1 -r 100";
    master(&format!("localhost:{port}"), line, &agents).expect(0);
    let said = agents[0].wait_for("Got server = ");
    assert!(said.ends_with(&format!(":{port}")) && !said.contains("localhost"), "{said}");
    let said = agents[0].wait_for("lambda_denom = ");
    assert!(said.ends_with("lambda_denom = 3, lambda = 166.666667, qps = 500"), "{said}");
    let unknown = master("no-such-host.invalid", line, &agents).expect(255);
    assert!(unknown.errors.contains("Error while resolving 'no-such-host.invalid': "), "{}", unknown.errors);
}

#[test]
fn a_master_without_the_word_is_told_which_variable_names_it() {
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("word");
    fs::write(&path, "a-word-of-more-than-sixteen-letters\n").expect("it can be written");
    let word = path.to_str().expect("UTF-8");
    let loopback = ("PUMMEL_AGENT_LISTEN", "127.0.0.1");
    let guarded = agent_with(&["-T", "1"], &[("PUMMEL_AGENT_TOKEN_FILE", word), loopback]);
    let line = "-B -c 1 -t 1 -r 10";
    let refused = master(&server.name, line, std::slice::from_ref(&guarded)).expect(255);
    assert_eq!(refused.errors.matches("PUMMEL_AGENT_TOKEN_FILE").count(), 1, "{}", refused.errors);
    assert!(!refused.errors.contains("--token-file"), "{}", refused.errors);
    // A network that the server is not in.
    let elsewhere = agent_with(
        &["-T", "1"],
        &[("PUMMEL_AGENT_TOKEN_FILE", word), ("PUMMEL_ALLOW_TARGET", "10.9.0.0/16,fd00::/8"), loopback],
    );
    let words = ["mutilate", "-s", &server.name, "-B", "-c", "1", "-t", "1", "-a", &elsewhere.name];
    let out = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(words)
        .env("PUMMEL_AGENT_TOKEN_FILE", word)
        .output()
        .expect("pummel starts");
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(255), "{errors}");
    assert!(errors.contains("PUMMEL_ALLOW_TARGET") && !errors.contains("--allow-target"), "{errors}");
}

#[test]
fn an_agent_beyond_loopback_wants_a_word_and_values_that_are_none_are_named() {
    for (variable, value, said) in [
        ("PUMMEL_AGENT_LISTEN", "0.0.0.0", "PUMMEL_AGENT_TOKEN_FILE"),
        ("PUMMEL_AGENT_LISTEN", "nowhere", "ADDRESS:PORT is expected"),
        ("PUMMEL_ALLOW_TARGET", "10.0.0.0/99", "ADDRESS/BITS is expected"),
        ("PUMMEL_AGENT_TOKEN_FILE", "/nonexistent", "/nonexistent"),
        ("PUMMEL_ALLOW_FILE", "/nonexistent", "/nonexistent"),
        ("PUMMEL_AGENT_MAX_MEMORY", "much", "4KiB"),
        ("PUMMEL_AGENT_MAX_CONNECTIONS", "-1", "4KiB"),
    ] {
        let out = Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(["mutilate", "-A", "-p", "1"])
            .env(variable, value)
            .output()
            .expect("pummel starts");
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(255), "{variable}={value}: {errors}");
        assert!(errors.contains(variable) && errors.contains(said), "{variable}={value}: {errors}");
    }
}

#[test]
fn an_agent_that_is_lost_is_said_once() {
    // Each attempt has agents of its own, since one of them ends, and a server that knows of no other.
    let (run, (_server, agents)) = in_the_midst_of(Duration::from_secs(3), |time| {
        let server = Memcached::start();
        let agents = [agent(&["-T", "1"]), agent(&["-T", "1"])];
        let words = format!("mutilate -s {} -B -c 2 -q 1000 -t {} -r 100", server.name, time.as_secs());
        let words = words.split(' ').chain(agents.iter().flat_map(|agent| ["-a", &agent.name]));
        let running = Running::start_words(&words.collect::<Vec<&str>>());
        let mut talk = server.connect();
        until("some load", || (talk.stats().get("cmd_get") > 100).then_some(()));
        agents[1].process.interrupt();
        (running, (server, agents))
    });
    let said = run.errors.matches(&format!("agent {} left ", agents[1].name)).count();
    assert_eq!(said, 1, "{}", run.errors);
    assert!(run.json().text("reason").contains(&agents[1].name));
}

#[test]
fn a_plan_that_agents_refuse_leaves_no_result_of_another_run() {
    let server = Memcached::start();
    let small = agent_with(&["-T", "1"], &[("PUMMEL_AGENT_MAX_CONNECTIONS", "2")]);
    let run = master(&server.name, "-B -c 3 -t 1 -r 10", std::slice::from_ref(&small)).expect(255);
    assert!(run.errors.contains("PUMMEL_AGENT_MAX_CONNECTIONS"), "{}", run.errors);
    assert_eq!(run.json().text("status"), "partial");
    // More memory than there may be, together with the agent's threads.
    let many = agent(&["-T", "500"]);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("old.json"), "old").expect("it is written");
    let out = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(["mutilate", "-s", &server.name, "-B", "-c", "512", "-d", "10000", "-t", "1", "-a", &many.name])
        .args(["--json", "old.json"])
        .current_dir(folder.path())
        .output()
        .expect("pummel starts");
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(255), "{errors}");
    let result = fs::read_to_string(folder.path().join("old.json")).expect("a result");
    let result = crate::common::value_of(&result);
    assert_eq!(result["status"], "partial", "{errors}");
}

#[test]
fn an_agent_of_the_original_is_known_by_its_greeting_and_named() {
    let server = Memcached::start();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let name = listener.local_addr().expect("it is bound").to_string();
    // The signature with which ZeroMQ greets, and the first byte of what follows.
    thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3]);
            held.push(stream);
        }
    });
    let run =
        Running::start_words(&["mutilate", "-s", &server.name, "-t", "1", "-a", &name]).end().expect(255);
    assert!(run.errors.contains(&format!("agent {name} speaks ZeroMQ")), "{}", run.errors);
    assert_eq!(run.text, "");
}

#[test]
fn agents_are_started_by_ssh_for_one_run() {
    let Some(hosts) = Hosts::start(&["a", "b"]) else { return };
    let server = Memcached::start();
    let words = format!("mutilate -s {} -a ssh://a,b -B -T 2 -c 2 -N 1200 -r 100", server.name);
    let run = hosts.pummel(&words).end().expect(0);
    assert_eq!(completed(&run).len(), 3, "{}", run.errors);
    assert_eq!(completed(&run).iter().sum::<u64>(), 1_200);
    assert_eq!(server.connect().stats().get("cmd_get"), 1_200);
    let clients: Vec<u64> = run
        .json()
        .at("plan/groups")
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|group| group["clients"].as_u64())
        .collect();
    assert_eq!(clients, [4, 4, 4], "each has two threads");
    hosts.wait_for_silence();
}

#[test]
fn the_recipe_of_the_readme_makes_a_curve() {
    let _alone = quiet();
    let server = Memcached::start();
    let agents = [agent(&["-T", "1"]), agent(&["-T", "1"])];
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/mutilate-recipe.sh");
    let ended = Command::new("sh")
        .arg(script)
        .arg(&out)
        .env("PUMMEL", env!("CARGO_BIN_EXE_pummel"))
        .env("SERVER", &server.name)
        .env("AGENTS", agents.each_ref().map(|agent| agent.name.as_str()).join(" "))
        .envs([("RATES", "400 1200"), ("SECONDS_EACH", "1"), ("THREADS", "1"), ("CONNECTIONS", "1")])
        .envs([("MEASURE_QPS", "100"), ("RECORDS", "50")])
        .output()
        .expect("there is a shell");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let curve = fs::read_to_string(out.join("curve.csv")).expect("the table");
    let lines: Vec<Vec<&str>> = curve.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..4], ["file", "row", "target", "qps"], "{curve}");
    let reads: Vec<&Vec<&str>> = lines.iter().filter(|line| line[1] == "read").collect();
    assert_eq!(reads.len(), 2, "{curve}");
    for (line, name) in reads.iter().zip(["q000000400.out", "q000001200.out"]) {
        assert!(line[0].ends_with(name), "{curve}");
        let values = [3, 5, 14].map(|column| line[column].trim_start_matches('>').parse::<f64>());
        assert!(values.iter().all(|value| value.as_ref().is_ok_and(|value| *value > 0.0)), "{curve}");
    }
    let unset =
        Command::new("sh").arg(script).arg(&out).env_remove("SERVER").output().expect("there is a shell");
    assert!(!unset.status.success() && String::from_utf8_lossy(&unset.stderr).contains("server"));
}
