//! Named workloads, and keys that are no records, against a real server.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod common;

use std::process::Command;

use common::{Memcached, pummel};

#[test]
fn absent_keys_are_missed_and_never_stored_and_all_others_are_found() {
    let server = Memcached::start();
    let words = "-n 20000 --records 2000 --mix get:1 --absent 0.3 --read-through --verify --quiet --seed 5";
    let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
    let (hits, misses) = (result.count("ops/get/hits"), result.count("ops/get/misses"));
    assert_eq!(hits + misses, 20_000);
    // Five standard deviations of 20,000 draws.
    assert!(misses.abs_diff(6_000) < 324, "{misses}");
    assert!(result.at("ops/set").is_null(), "{}", result.at("ops"));
}

#[test]
fn fresh_keys_are_stored_where_misses_are_and_never_asked_for_again() {
    let server = Memcached::start();
    let words =
        "-n 20000 -c 7 --records 2000 --mix get:1 --multiget 2 --fresh 0.1 --read-through --quiet --seed 5";
    let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
    let (hits, misses) = (result.count("ops/get/hits"), result.count("ops/get/misses"));
    assert_eq!(hits + misses, 40_000);
    assert!(misses.abs_diff(4_000) < 300, "{misses}");
    let stored = result.count("ops/set/completed");
    assert!(
        stored <= misses && stored + 64 > misses,
        "{stored} of {misses}: a few of the end are not due any more"
    );
}

#[test]
fn a_named_workload_asks_for_its_mix_and_its_sizes() {
    let server = Memcached::start();
    let words = "-n 30000 --workload twitter-52 --records 3000 --quiet --seed 5";
    let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
    let asked = |op: &str| result.count(&format!("ops/{op}/completed")) as f64;
    let share = asked("add") / (asked("get") + asked("add") + asked("cas"));
    assert!((share - 0.04 / 0.97).abs() < 0.006, "{share}");
    assert_eq!(result.text("plan/data/value_size"), "pareto:0,177.931,0.348238");
    assert_eq!(result.text("plan/data/key_size"), "20");
}

#[test]
fn workloads_are_listed_and_printed_as_profiles() {
    let told = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).output().expect("pummel starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, list, _) = told(&["workloads"]);
    assert!(status == Some(0) && list.lines().count() >= 69 && list.contains("twitter-52"), "{list}");
    let (status, profile, _) = told(&["workloads", "ycsb-a"]);
    assert!(status == Some(0) && profile.contains("popularity = \"ycsb\""), "{profile}");
    let (status, _, refused) = told(&["workloads", "ycsb-e"]);
    assert!(status == Some(2) && refused.contains("no scan"), "{refused}");
}
