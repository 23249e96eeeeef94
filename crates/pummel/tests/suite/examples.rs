//! Examples, each run as it is written, but for its time, its servers and its files: those of the READMEs and manuals of mutilate,
//! memaslap and mcperf, and those of this project's own pages.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{Memcached, Place, Reserved, shell_status};

/// memaslap's manual, "USAGE".
const MEMASLAP: [&str; 8] = [
    "memaslap -s 127.0.0.1:11211 -S 5s",
    "memaslap -s 127.0.0.1:11211 -t 2m -v 0.2 -e 0.05 -b",
    "memaslap -s 127.0.0.1:11211 -F config -t 2m -w 40k -S 20s -o 0.2",
    "memaslap -s 127.0.0.1:11211 -F config -t 2m -T 4 -c 128 -d 20 -P 40k",
    "memaslap -s 127.0.0.1:11211 -F config -t 2m -d 50 -a -n 40",
    "memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m",
    "memaslap -s 127.0.0.1:11211,127.0.0.1:11212 -F config -t 2m -p 2",
    // "Facebook test"; the manual gives two options.
    "memaslap -s 127.0.0.1:11211 --facebook --division=50",
];

/// The sample of a configuration file in memaslap's manual, without its comments.
const CONFIG: &str = "key\n128 128 1\nvalue\n2048 2048 1\ncmd\n0    0.1\n1.0 0.9\n";

/// mutilate's README, "Basic Usage".
const MUTILATE: [&str; 2] = ["mutilate -s localhost", "mutilate -s zephyr2-10g -T 24 -c 8"];

/// mcperf's README, "Examples".
const MCPERF: [&str; 2] = [
    "mcperf --linger=0 --timeout=5 --conn-rate=1000 --call-rate=1000 --num-calls=10 --num-conns=1000 --sizes=u1,16",
    "mcperf --linger=0 --call-rate=0 --num-calls=100 --conn-rate=0 --num-conns=100 --sizes=d1",
];

/// Follows an example with these words in place of others. Returns what it printed on standard output and standard error.
fn follow(example: &str, replaced: &[(&str, String)], added: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("config"), CONFIG).expect("it is written");
    let words = replaced.iter().fold(example.to_owned(), |words, (word, other)| words.replace(word, other));
    let output = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(words.split(' '))
        .args(added)
        .env_remove("MEMCACHED_SERVERS")
        .env("HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("pummel starts");
    let [text, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(shell_status(output.status), 0, "{example}: {text}{errors}");
    for none in ["nan", "inf"] {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
        assert!(words.clone().all(|word| word.to_ascii_lowercase() != none), "{example}: {text}");
    }
    (text, errors)
}

/// The number behind `name` in a report.
fn number(text: &str, name: &str) -> f64 {
    let rest = text.split_once(name).unwrap_or_else(|| panic!("no '{name}': {text}")).1;
    let word = rest.trim_start().split(|letter: char| letter != '.' && !letter.is_ascii_digit()).next();
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
}

#[test]
fn the_examples_of_memaslaps_manual_run() {
    let (one, other) = (Memcached::start_on(Place::Udp), Memcached::start_on(Place::Udp));
    let replaced = [
        ("127.0.0.1:11211", one.name.clone()),
        ("127.0.0.1:11212", other.name.clone()),
        ("-t 2m", "-t 1s".to_owned()),
    ];
    for example in MEMASLAP {
        let added: &[&str] = if example.contains(" -t ") { &[] } else { &["-t", "1s"] };
        let (text, errors) = follow(example, &replaced, added);
        assert!(number(&text, "cmd_get: ") > 0.0 && number(&text, "cmd_set: ") > 0.0, "{example}: {text}");
        assert!(number(&text, "Run time: ") >= 1.0, "{example}: {text}");
        let is_shortened = errors.contains("so that gets have ");
        assert_eq!(is_shortened, example.contains("50"), "{example}: {errors}");
    }
}

#[test]
fn the_examples_of_mutilates_readme_run() {
    let server = Memcached::start();
    let port = server.name.rsplit_once(':').expect("a port").1;
    let replaced = ["localhost", "zephyr2-10g"].map(|host| (host, format!("localhost:{port}")));
    for example in MUTILATE {
        let (text, _) = follow(example, &replaced, &["-t", "1"]);
        assert!(number(&text, "Total QPS = ") > 0.0, "{example}: {text}");
        assert!(text.contains("\nMisses = 0 (0.0%)"), "{example}: {text}");
    }
}

#[test]
fn the_example_with_agents_of_mutilates_readme_runs() {
    let server = Memcached::start();
    let agents: Vec<(String, crate::common::agent::Agent)> = (1..=8)
        .map(|number| {
            let reserved = Reserved::new();
            let port = reserved.port().to_string();
            let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
            command.args("mutilate -T 16 -A -p".split(' ')).arg(&port);
            (format!("agent{number}"), crate::common::agent::Agent::of(command))
        })
        .collect();
    let mut replaced = vec![("memcached_server", server.name.clone())];
    replaced.extend(agents.iter().map(|(name, agent)| (name.as_str(), agent.name.clone())));
    follow("mutilate -s memcached_server --loadonly", &replaced, &[]);
    assert_eq!(server.connect().stats().get("curr_items"), 10_000);
    let example = "mutilate -s memcached_server --noload -B -T 16 -Q 1000 -D 4 -C 4 -a agent1 -a agent2 -a agent3 -a agent4 \
                   -a agent5 -a agent6 -a agent7 -a agent8 -c 4 -q 200000";
    let (text, _) = follow(example, &replaced, &["-t", "1"]);
    assert!(number(&text, "Total QPS = ") > 0.0, "{text}");
}

#[test]
fn the_examples_of_mcperfs_readme_run() {
    let server = Memcached::start();
    let port = server.name.rsplit_once(':').expect("a port").1;
    for (example, connections) in MCPERF.into_iter().zip([1_000, 100]) {
        let (_, errors) = follow(example, &[], &["-p", port]);
        let total = format!("Total: connections {connections} requests 10000 responses 10000 test-duration ");
        assert!(errors.contains(&total), "{example}: {errors}");
        assert!(errors.contains("Response type: stored 10000 "), "{example}: {errors}");
    }
}
