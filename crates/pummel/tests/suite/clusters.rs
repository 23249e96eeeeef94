//! Runs on the cluster of `pummel serve`, whose slots move, whose nodes go, and that is down for a while.

use std::fs;
use std::process::Command;

use crate::common::agent::{Agent, list};
use crate::common::{Json, Serve, Truth, pummel};

/// Requests per second: few enough for a busy machine.
const RATE: u64 = 500;

/// Seconds after which something happens to the cluster; the run is twice as long. On a machine so busy that this was not in the
/// midst of the run, it is tried again with more.
const MOMENTS_S: [u64; 4] = [2, 5, 10, 20];

/// Option that makes a cluster have replicas.
const WITH_REPLICAS: &str = "--replicas 1";

/// A load whose reads go to all nodes.
const READS_ALL: &str = "--records 20 --mix get:9,set:1 --read-from any";

/// Runs a load on a cluster of three masters to which `fault` happens at a time, until `is_seen` finds that the run saw it. Every request of each run is
/// answered in the end.
#[track_caller]
fn survives(fault: impl Fn(u64) -> String, words: &str, is_seen: impl Fn(&Json, &Truth) -> bool) {
    survives_with(RATE, "", fault, words, is_seen);
}

/// Does the same with a load of which `rate` requests per second are due, those of measuring clients among them, and with more options of
/// the cluster.
#[track_caller]
fn survives_with(
    rate: u64,
    serve: &str,
    fault: impl Fn(u64) -> String,
    words: &str,
    is_seen: impl Fn(&Json, &Truth) -> bool,
) {
    let pace = |time_s| format!("--rate {RATE} -t {time_s}s");
    survives_paced(pace, rate, serve, fault, words, is_seen);
}

/// Does the same with a load that these options pace for so many seconds.
#[track_caller]
fn survives_paced(
    pace: impl Fn(u64) -> String,
    rate: u64,
    serve: &str,
    fault: impl Fn(u64) -> String,
    words: &str,
    is_seen: impl Fn(&Json, &Truth) -> bool,
) {
    for at_s in MOMENTS_S {
        let cluster = Serve::start(&format!("--cluster 3 {} {serve}", fault(at_s)));
        let words = format!(
            "run --cluster -s {} --no-baseline --protocol resp2 -c 4 {words} {} --arrivals constant --timeout 15s --quiet",
            cluster.name,
            pace(2 * at_s)
        );
        let result = pummel(&words).expect(0).json();
        let due = rate * 2 * at_s;
        let (requests, unsent) = (result.count("totals/requests"), result.count("totals/unsent"));
        assert_eq!(requests + unsent, due, "{requests} sent, {unsent} not");
        assert_eq!(result.count("totals/completed"), requests);
        assert_eq!(result.count("totals/errors"), 0);
        assert_eq!(result.at("error_messages").as_object().map(|messages| messages.len()), Some(0));
        assert_eq!(result.count("ops/get/misses"), 0);
        if is_seen(&result, &cluster.truth()) {
            return;
        }
    }
    panic!("in no run the cluster changed in its midst");
}

/// Number of requests by this verb that came to the nodes.
fn came(truth: &Truth, verb: &str) -> u64 {
    truth.requests.iter().filter(|request| request.verb == verb).count() as u64
}

/// Whether nodes answered requests with redirects or refusals, so that more came than the run has made.
fn were_sent_on(result: &Json, truth: &Truth) -> bool {
    ["get", "set"].iter().any(|op| {
        let made = result.count_or_none(&format!("whole_run/ops/{op}/requests"));
        assert!(came(truth, op) >= made, "{op}: {made} were made, and {} came", came(truth, op));
        came(truth, op) > made
    })
}

#[test]
fn a_run_follows_slots_that_move() {
    // The slots of the records: `CLUSTER KEYSLOT` of a redis-server 7.0 says 1494 for thirty zeros.
    let slots = [1_494, 5_623, 9_620, 13_749, 1_362, 5_491, 9_488, 13_617, 1_246, 5_375];
    let fault = |at_s| slots.map(|slot| format!("--migrate {slot}@{at_s}s")).join(" ");
    survives(fault, "--records 20 --mix get:9,set:1", |result, truth| {
        came(truth, "asking") > 0 && were_sent_on(result, truth)
    });
}

#[test]
fn a_run_follows_slots_to_another_master() {
    survives(|at_s| format!("--demote 2@{at_s}s"), "--records 20 --mix get:9,set:1", were_sent_on);
}

#[test]
fn the_rows_of_a_trace_follow_their_slots() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("trace.csv");
    let row = |number: u64| {
        let verb = if number.is_multiple_of(200) || number < 20 { "set" } else { "get" };
        format!("0,key{},5,100,{number},{verb},0\n", number % 20)
    };
    fs::write(&trace, (0..1_000).map(row).collect::<String>()).expect("it is written");
    let words = format!("--trace {} --trace-format twitter --trace-by key --loop", trace.display());
    survives(|at_s| format!("--demote 2@{at_s}s"), &words, were_sent_on);
}

#[test]
fn a_run_of_agents_adds_up_what_each_saw_of_a_cluster() {
    let agents = [Agent::start(), Agent::start()];
    let words = format!(
        "--records 20 --mix get:9,set:1 --measure-connections 1 --measure-rate 100 --agents {}",
        list(&agents)
    );
    let rate = RATE + 100;
    survives_with(
        rate,
        "",
        |at_s| format!("--demote 2@{at_s}s"),
        &words,
        |result, truth| {
            let shards = result.at("cluster/shards").as_array().expect("shards").clone();
            let requests = |shard: &serde_json::Value| shard["requests"].as_u64().unwrap_or(0);
            assert_eq!(shards.iter().map(requests).sum::<u64>(), result.count("totals/requests"));
            assert_eq!(result.count("cluster/nodes"), 3);
            // Each of the three processes asked for the map.
            let questions = truth.requests.iter().filter(|request| request.verb == "cluster").count() as u64;
            assert!(questions >= result.count("cluster/refreshes") + 3, "{questions} questions for the map");
            were_sent_on(result, truth)
        },
    );
}

#[test]
fn a_run_waits_until_a_dead_node_is_replaced() {
    // A write whose reply was lost with the node would be an error: it may have been carried out.
    survives(
        |at_s| format!("--kill 3@{at_s}s"),
        "--records 20 --mix get:1",
        |result, truth| {
            let was_replaced = truth.faults.iter().any(|(kind, _)| kind == "take-over");
            was_replaced && result.count("connections/lost") > 0
        },
    );
}

#[test]
fn a_run_waits_until_a_cluster_is_up_again() {
    survives(
        |at_s| format!("--clusterdown {at_s}s..{}s", at_s + 1),
        "--records 20 --mix get:9,set:1",
        were_sent_on,
    );
}

/// The pace of clients that come and go, each with five requests.
fn coming(time_s: u64) -> String {
    format!("--conn-rate {} --calls-per-connection 5 -n {}", RATE / 5, RATE * time_s)
}

#[test]
fn clients_that_come_and_go_follow_slots_to_another_master() {
    let words = "--records 20 --mix get:9,set:1";
    survives_paced(
        coming,
        RATE,
        "",
        |at_s| format!("--demote 2@{at_s}s"),
        words,
        |result, truth| {
            let churn = |field: &str| result.count(&format!("connections/churn/{field}"));
            assert_eq!(5 * churn("clients"), result.count("totals/requests") + result.count("totals/unsent"));
            assert_eq!((churn("ended"), churn("asked")), (churn("clients"), churn("established")));
            assert!(churn("established") > churn("clients"), "their requests are of several nodes");
            were_sent_on(result, truth)
        },
    );
}

#[test]
fn clients_that_come_and_go_wait_until_a_dead_node_is_replaced() {
    let words = "--records 20 --mix get:1";
    let was_replaced = |truth: &Truth| truth.faults.iter().any(|(kind, _)| kind == "take-over");
    survives_paced(
        coming,
        RATE,
        "",
        |at_s| format!("--kill 3@{at_s}s"),
        words,
        |result, truth| was_replaced(truth) && result.count("connections/churn/failures/refused") > 0,
    );
}

#[test]
fn reads_survive_the_death_of_a_replica() {
    let is_seen = |result: &Json, _: &Truth| result.count("connections/lost") > 0;
    survives_with(RATE, WITH_REPLICAS, |at_s| format!("--kill 4@{at_s}s"), READS_ALL, is_seen);
}

#[test]
fn a_run_that_reads_replicas_survives_a_failover() {
    survives_with(
        RATE,
        WITH_REPLICAS,
        |at_s| format!("--demote 2@{at_s}s"),
        READS_ALL,
        |result, _| {
            let shards = result.at("cluster/shards").as_array().expect("a list");
            shards.iter().any(|shard| shard["role"] == "replica" && shard["slots_at_end"] != 0)
        },
    );
}

#[test]
fn reads_go_to_the_nodes_that_are_asked_for_over_both_protocols_with_a_login() {
    let directory = tempfile::tempdir().expect("a directory");
    let password = directory.path().join("password");
    fs::write(&password, "secret\n").expect("it is written");
    let login = format!("--user user --password-file {}", password.display());
    let cluster = Serve::start(&format!("--cluster 3 --replicas 1 {login}"));
    for (read_from, readers) in [
        ("primary", ["master"].as_slice()),
        ("replica", &["replica"]),
        ("prefer-replica", &["replica"]),
        ("any", &["master", "replica"]),
    ] {
        for protocol in ["resp2", "resp3"] {
            let words = format!(
                "run --cluster -s {} --protocol {protocol} --read-from {read_from} {login} --records 200 -n 600 --mix get:1 --verify --quiet",
                cluster.name
            );
            let result = pummel(&words).expect(0).json();
            let what = format!("{read_from} by {protocol}");
            assert_eq!((result.count("totals/completed"), result.count("totals/errors")), (600, 0), "{what}");
            assert_eq!((result.count("verify/checked"), result.count("ops/get/misses")), (600, 0), "{what}");
            let shards = result.at("cluster/shards").as_array().expect("a list");
            let expected = if read_from == "primary" { 3 } else { 6 };
            assert_eq!(shards.len(), expected, "{what}");
            for shard in shards {
                let role = shard["role"].as_str().expect("a role");
                let asked = shard["requests"].as_u64().expect("a number");
                assert_eq!(asked > 0, readers.contains(&role), "{what}: {shard}");
            }
        }
    }
}

#[test]
fn nodes_are_found_by_every_form_of_their_endpoints() {
    for endpoint in ["ip", "name", "?", "empty", "null"] {
        let cluster = Serve::start_at("localhost:0", &format!("--cluster 3 --endpoint {endpoint}"));
        for protocol in ["resp2", "resp3"] {
            let words = format!(
                "run --cluster -s {} --protocol {protocol} --records 50 -n 500 --quiet",
                cluster.name
            );
            let result = pummel(&words).expect(0).json();
            assert_eq!(
                (result.count("totals/completed"), result.count("totals/errors")),
                (500, 0),
                "{endpoint}"
            );
            let servers = result.at("servers").as_array().expect("a list");
            let completed = servers.iter().filter_map(|server| server["completed"].as_u64());
            assert!(completed.filter(|completed| *completed > 0).count() == 3, "{endpoint}: {servers:?}");
        }
    }
}

/// The figures of the shards in their order.
fn shards(result: &Json, figure: &str) -> Vec<u64> {
    let shards = result.at("cluster/shards").as_array().expect("a list");
    shards.iter().map(|shard| shard[figure].as_u64().expect("a figure")).collect()
}

#[test]
fn requests_of_several_keys_with_a_tag_are_one_command_to_one_node() {
    let cluster = Serve::start("--cluster 3");
    let words = format!(
        "run --cluster -s {} --protocol resp3 --records 205 --key-tag 10 --multiget 10 --multiset 4 --mix get:9,mset:1 \
         --popularity zipf:0.99 --verify 1 -n 1000 --quiet",
        cluster.name
    );
    let result = pummel(&words).expect(0).json();
    let gets = result.count("ops/get/requests");
    assert_eq!((result.count("totals/completed"), result.count("totals/errors")), (1_000, 0));
    assert_eq!(result.count("verify/checked"), 10 * gets);
    let records = shards(&result, "records");
    assert_eq!(records.iter().sum::<u64>(), 205);
    assert_eq!(
        records.iter().filter(|records| *records % 10 != 0).count(),
        1,
        "one tag has five records: {records:?}"
    );
    assert_eq!(came(&cluster.truth(), "mget"), gets, "each request is one command");
}

#[test]
fn requests_for_chosen_slots_go_to_their_nodes_alone() {
    for words in ["--slots 5461-10922", "--slots 6000,5900-5950,7000-7001 --key-tag 7 --multiget 5"] {
        let cluster = Serve::start("--cluster 3");
        let words = format!(
            "run --cluster -s {} --protocol resp2 --records 300 {words} --verify 1 -n 1000 --quiet",
            cluster.name
        );
        let result = pummel(&words).expect(0).json();
        assert_eq!((result.count("totals/completed"), result.count("totals/errors")), (1_000, 0), "{words}");
        assert_eq!(shards(&result, "requests"), [0, 1_000, 0], "{words}");
        assert_eq!(shards(&result, "records"), [0, 300, 0], "{words}");
        assert_eq!(result.count("ops/get/misses"), 0, "{words}");
    }
}

#[test]
fn what_no_cluster_can_be_is_refused_with_flag_value_and_what_is_accepted() {
    for (words, flag, value, accepted) in [
        ("--cluster 0", "--cluster", "0", "from 1 to 64"),
        ("--cluster 65", "--cluster", "65", "from 1 to 64"),
        ("--cluster 3 --migrate 16384@1s", "--migrate", "16384@1s", "866@2s"),
        ("--cluster 3 --demote 0@1s", "--demote", "0@1s", "counted from 1"),
        ("--cluster 3 --kill 4@1s", "--kill", "4@1s", "counted from 1"),
        ("--cluster 1 --kill 1@1s", "--cluster", "1", "at least 2"),
        ("--cluster 3 --clusterdown 2s..1s", "--clusterdown", "2s..1s", "2s..3s"),
        ("--cluster 3 --endpoint nowhere", "--endpoint", "nowhere", "null"),
        ("--cluster 3 --listen /tmp/socket", "--listen", "/tmp/socket", "ADDRESS:PORT"),
        ("--cluster 3 --listen 127.0.0.1:65534", "--listen", "127.0.0.1:65534", "port 0"),
        ("--cluster 3 --protocol text", "--protocol", "text", "resp"),
        ("--cluster 3 --replicas -1", "--replicas", "-1", "from 0 to 63"),
        ("--cluster 32 --replicas 2", "--replicas", "2", "at most 64"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        let output = command.arg("serve").args(words.split(' ')).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(&format!("invalid value '{value}' for '{flag}")), "{words}: {said}");
        assert!(said.contains(accepted), "{words}: {said}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    let output = command.args(["serve", "--kill", "1@1s"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("--cluster"), "{said}");
}

#[test]
fn reads_from_replicas_are_refused_where_the_servers_are_no_cluster() {
    let said = pummel("run -s 127.0.0.1:1 --read-from any -n 1").expect(2).errors;
    let expected = "invalid value 'any' for '--read-from': accepted only with --cluster";
    assert!(said.contains(expected), "{said}");
}
