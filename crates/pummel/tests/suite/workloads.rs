//! Named workloads, and keys that are no records, against a real server.

use std::process::Command;

use crate::common::{Memcached, Serve, pummel};

#[test]
fn absent_keys_are_missed_and_never_stored_and_all_others_are_found() {
    let server = Memcached::start();
    let words = "-n 20000 --records 2000 --mix get:1 --absent 0.3 --read-through --verify -v --seed 5";
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
        "-n 20000 -c 7 --records 2000 --mix get:1 --multiget 2 --fresh 0.1 --read-through -v --seed 5";
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
fn a_small_server_evicts_and_the_share_of_hits_is_said_beside_the_one_asked_for() {
    let server = Serve::start("--items 500");
    let words =
        "-n 20000 --records 1000 --no-load --mix get:1 --hit-ratio 0.9 --read-through --fill add -v --seed 5";
    let ended = pummel(&format!("run -s {} {words}", server.name)).expect(0);
    let result = ended.json();
    let (hits, misses) = (result.count("ops/get/hits"), result.count("ops/get/misses"));
    // Half of the uniform records are there, and fewer, since what is asked for once takes places too.
    let ratio = hits as f64 / (hits + misses) as f64;
    assert!((0.3..0.45).contains(&ratio), "{ratio}");
    let evicted = result.count("evidence/servers/0/reading/counts/evictions");
    assert!(evicted > 5_000 && evicted <= misses, "{evicted} of {misses}");
    assert!(result.count("ops/add/completed") + 64 >= misses, "{}", result.at("ops/add"));
    let text = &ended.text;
    assert!(text.contains("90.0 % asked for; the server evicted"), "{text}");
    assert!(text.contains(" after misses, ") && text.contains("missed keys are added at once"), "{text}");
}

#[test]
fn a_named_workload_asks_for_its_mix_and_its_sizes() {
    let server = Memcached::start();
    let words = "-n 30000 --workload twitter-52 --records 3000 -v --seed 5";
    let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
    let asked = |op: &str| result.count(&format!("ops/{op}/completed")) as f64;
    let share = asked("add") / (asked("get") + asked("add") + asked("cas"));
    assert!((share - 0.04 / 0.97).abs() < 0.006, "{share}");
    assert_eq!(result.text("plan/data/value_size"), "pareto:0,177.931,0.348238");
    assert_eq!(result.text("plan/data/key_size"), "20");
}

#[test]
fn what_is_inserted_is_found_in_every_run_and_pairs_are_counted_singly_and_as_pairs() {
    let server = Memcached::start();
    for seed in [5, 5, 6] {
        let words = format!("-n 10000 -c 7 -d 3 --workload ycsb-d -v --seed {seed}");
        let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
        assert_eq!(result.count("ops/get/misses"), 0, "all that is read was stored");
        let added = result.count("ops/add/completed");
        // Five standard deviations of 10,000 draws.
        assert!(added.abs_diff(500) < 109, "{added}");
        assert_eq!(
            result.count("ops/add/outcomes/stored"),
            added,
            "also with the same seed each record is new"
        );
    }
    let ended = pummel(&format!("run -s {} -n 10000 -c 7 --workload ycsb-f -v --seed 5", server.name));
    let ended = ended.expect(0);
    let result = ended.json();
    let (gets, sets) = (result.count("ops/get/completed"), result.count("ops/set/completed"));
    assert_eq!(gets, 10_000);
    assert!(sets.abs_diff(5_000) < 250, "{sets}");
    let pairs = result.count("pairs_us/count");
    assert!(pairs <= sets && pairs + 7 >= sets, "{pairs} pairs of {sets} sets");
    let (get, pair) = (result.at("ops/get/response_us/p50"), result.at("pairs_us/p50"));
    assert!(pair.as_f64() > get.as_f64(), "a pair takes longer than its get: {pair} and {get}");
    assert!(ended.text.contains("gets with the set of their key: "), "{}", ended.text);
}

#[test]
fn a_scan_is_one_read_of_records_that_follow_each_other() {
    let server = Memcached::start();
    let words = "-n 2000 -c 3 --workload ycsb-e --scan-as multiget --verify -v --seed 5";
    let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
    let (gets, hits) = (result.count("ops/get/completed") as f64, result.count("ops/get/hits") as f64);
    // The mean of 1 to 100 is 50.5, with a standard deviation of 28.9.
    assert!((hits / gets - 50.5).abs() < 5.0 * 28.9 / gets.sqrt(), "{hits} keys of {gets} scans");
    assert_eq!((result.count("ops/get/misses"), result.count("verify/failed")), (0, 0));
    assert_eq!(result.text("labels/workload"), "ycsb-e-multiget");
}

#[test]
fn a_workload_whose_keys_change_says_how_clients_may_come_and_go() {
    let refused = pummel("run -s 127.0.0.1:1 --workload twitter-52 --conn-rate 10").expect(2).errors;
    assert!(refused.contains("'--churn none', with which keys stay"), "{refused}");
}

#[test]
fn workloads_are_listed_and_printed_as_profiles() {
    let told = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).output().expect("pummel starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, list, _) = told(&["workloads"]);
    assert!(status == Some(0) && list.lines().count() >= 72 && list.contains("twitter-52"), "{list}");
    let (status, profile, _) = told(&["workloads", "ycsb-a"]);
    assert!(status == Some(0) && profile.contains("popularity = \"ycsb\""), "{profile}");
    let (status, _, refused) = told(&["workloads", "fb-var"]);
    assert!(status == Some(2) && refused.contains("how often it reads and writes"), "{refused}");
}
