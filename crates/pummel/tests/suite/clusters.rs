//! Runs on the cluster of `pummel serve`, whose slots move, whose nodes go, and that is down for a while.

use std::process::Command;

use crate::common::{Json, Serve, Truth, pummel};

/// Requests per second: few enough for a busy machine.
const RATE: u64 = 500;

/// Seconds after which something happens to the cluster; the run is twice as long. On a machine so busy that this was not in the
/// midst of the run, it is tried again with more.
const MOMENTS_S: [u64; 4] = [2, 5, 10, 20];

/// Runs a load on a cluster to which `fault` happens at a time, until `is_seen` finds that the run saw it. Every request of each run is
/// answered in the end.
#[track_caller]
fn survives(fault: impl Fn(u64) -> String, mix: &str, is_seen: impl Fn(&Json, &Truth) -> bool) {
    for at_s in MOMENTS_S {
        let cluster = Serve::start(&format!("--cluster 3 {}", fault(at_s)));
        let words = format!(
            "run --cluster -s {} --protocol resp2 -c 4 --records 20 --mix {mix} --rate {RATE} --arrivals constant --timeout 15s -t {}s --quiet",
            cluster.name,
            2 * at_s
        );
        let result = pummel(&words).expect(0).json();
        let due = RATE * 2 * at_s;
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
    survives(fault, "get:9,set:1", |result, truth| came(truth, "asking") > 0 && were_sent_on(result, truth));
}

#[test]
fn a_run_follows_slots_to_another_master() {
    survives(|at_s| format!("--demote 2@{at_s}s"), "get:9,set:1", were_sent_on);
}

#[test]
fn a_run_waits_until_a_dead_node_is_replaced() {
    // A write whose reply was lost with the node would be an error: it may have been carried out.
    survives(
        |at_s| format!("--kill 3@{at_s}s"),
        "get:1",
        |result, truth| {
            let was_replaced = truth.faults.iter().any(|(kind, _)| kind == "take-over");
            was_replaced && result.count("connections/lost") > 0
        },
    );
}

#[test]
fn a_run_waits_until_a_cluster_is_up_again() {
    survives(|at_s| format!("--clusterdown {at_s}s..{}s", at_s + 1), "get:9,set:1", were_sent_on);
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
    assert_eq!(came(&cluster.truth(), "get"), gets, "each request is one command");
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
