//! Agents of another build, and what the environment says to every front that takes agents.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::agent::Agent;
use crate::common::{Ended, Memcached, Running, until};
use memchr::memmem;
use pummel_tool::job::provenance::PROGRAM;
use tempfile::TempDir;

const PUMMEL: &str = env!("CARGO_BIN_EXE_pummel");

/// The program as it would be with other sources: its hash of them is another one.
fn other_build(folder: &Path) -> PathBuf {
    changed_build(folder, &[])
}

/// The program of another build, with other words in the place of some, each as long as the word that it replaces.
fn changed_build(folder: &Path, changes: &[(&str, &str)]) -> PathBuf {
    let mut program = fs::read(PUMMEL).expect("it was built");
    let sources = PROGRAM.build().sources;
    for (word, other) in [(&sources[..8], "elsewise")].iter().chain(changes) {
        let places: Vec<usize> = memmem::find_iter(&program, word).collect();
        assert!(!places.is_empty() && word.len() == other.len(), "the program has the word {word}");
        for at in places {
            program[at..at + word.len()].copy_from_slice(other.as_bytes());
        }
    }
    let path = folder.join("pummel");
    fs::write(&path, program).expect("there is room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    // Another thread may still hold the file, as a child that it is about to start does.
    until("the program can be started", || Command::new(&path).arg("--version").output().ok());
    path
}

fn agent_of(program: &Path) -> Agent {
    let mut command = Command::new(program);
    command.args(["agent", "--listen", "127.0.0.1:0"]);
    Agent::of(command)
}

/// Runs pummel with these words and this environment.
fn run(words: &str, environment: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(PUMMEL);
    command.envs(environment.iter().copied());
    Running::start_as(command, &words.split(' ').collect::<Vec<&str>>(), None).end()
}

#[test]
fn an_agent_of_another_build_is_refused_unless_that_is_allowed() {
    let folder = TempDir::new().expect("a folder");
    let server = Memcached::start();
    let agent = agent_of(&other_build(folder.path()));
    let (native, mutilate) = (
        format!("run -s {} -c 2 -n 50 --agents {}", server.name, agent.name),
        format!("mutilate -s {} -c 1 -t 1 -q 200 -a {}", server.name, agent.name),
    );
    for (words, status, way) in
        [(&native, 1, "--allow-version-mismatch"), (&mutilate, 255, "PUMMEL_AGENT_ALLOW_VERSION_MISMATCH=1")]
    {
        let refused = run(words, &[]).expect(status);
        let sources = PROGRAM.build().sources;
        for part in ["sources elsewise", &format!("sources {sources}"), way] {
            assert!(refused.errors.contains(part), "{words}: {part}: {}", refused.errors);
        }
    }
    assert_eq!(server.connect().stats().get("cmd_set"), 0, "nothing was begun");
    run(&format!("{native} --allow-version-mismatch"), &[]).expect(0);
    for words in [&native, &mutilate] {
        run(words, &[("PUMMEL_AGENT_ALLOW_VERSION_MISMATCH", "1")]).expect(0);
    }
    let wrong = run(&native, &[("PUMMEL_AGENT_ALLOW_VERSION_MISMATCH", "perhaps")]).expect(2);
    assert!(wrong.errors.contains("PUMMEL_AGENT_ALLOW_VERSION_MISMATCH"), "{}", wrong.errors);
}

#[test]
fn what_an_agent_of_another_build_knows_more_or_less_of_a_server_is_left_out() {
    let folder = TempDir::new().expect("a folder");
    let server = Memcached::start();
    // Such an agent lacks a figure that this build knows, and tells one that this build has never heard of.
    let agent = agent_of(&changed_build(folder.path(), &[("memory_taken_bytes", "memory_wanted_byte")]));
    let words = format!("run -s {} -c 2 -n 50 --agents {}", server.name, agent.name);
    // A busy machine may not wait for a server's answer.
    let result = until("a reading in time", || {
        let result = run(&format!("{words} --allow-version-mismatch"), &[]).expect(0).json();
        (!result.at("evidence/servers/0/reading").is_null()).then_some(result)
    });
    let reading = |name: &str| result.at(&format!("evidence/servers/0/reading/{name}"));
    assert_eq!(result.text("status"), "complete");
    assert!(reading("memory_bytes").is_u64() && reading("counts").is_object(), "{}", result.at("evidence"));
    assert!(reading("memory_taken_bytes").is_null(), "{}", reading("memory_taken_bytes"));
}

#[test]
fn every_front_that_takes_agents_reads_the_token_from_the_environment() {
    let folder = TempDir::new().expect("a folder");
    let token = folder.path().join("token");
    fs::write(&token, "a-word\n").expect("it is written");
    let token = token.to_str().expect("UTF-8");
    let server = Memcached::start();
    let agent = Agent::start_with(&["--token-file", token]);
    let (server, agent) = (&server.name, &agent.name);
    let fronts = [
        (format!("run -s {server} -c 2 -n 50 --agents {agent}"), 1),
        (format!("load -s {server} -c 2 --records 50 --agents {agent}"), 1),
        (format!("scan -s {server} -c 2 -t 100ms --records 50 --rates 500:500:100 --agents {agent}"), 1),
        (format!("search -s {server} -c 2 -t 100ms --records 50 --goal p50:10s --agents {agent}"), 1),
        (format!("mutilate -s {server} -c 1 -t 1 -q 200 -a {agent}"), 255),
    ];
    for (words, status) in fronts {
        let refused = run(&words, &[]).expect(status);
        assert!(refused.errors.contains("it showed no token"), "{words}: {}", refused.errors);
        for name in ["PUMMEL_AGENT_TOKEN_FILE", "PUMMEL_TOKEN_FILE"] {
            let ended = run(&words, &[(name, token)]);
            // On a busy machine a search may find no rate that is carried.
            let is_run = ended.status == 0 || (ended.status == 3 && words.starts_with("search"));
            assert!(is_run, "{words}: {}: {}", ended.status, ended.errors);
        }
    }
}
