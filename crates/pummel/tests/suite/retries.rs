//! Requests that are sent again after errors, against servers that fail for a while.

use std::fs;

use crate::common::{Serve, pummel};

#[test]
fn lost_connections_cost_no_request_where_reads_and_sets_are_sent_again() {
    let server = Serve::start("--fault close-after=50");
    let words =
        "-n 2000 -c 4 -d 3 --records 100 --mix get:1,set:1 --protocol text --retry lost --verify --quiet";
    let result = pummel(&format!("run -s {} {words}", server.name)).expect(0).json();
    assert_eq!(result.count("totals/completed"), 2_000);
    assert_eq!(result.count("totals/errors"), 0);
    let retries = result.count("retry/retries/lost");
    assert!(retries > 0, "each loss takes requests with it");
    assert!(result.count("retry/recovered") <= retries);
    assert_eq!((result.count("retry/not_repeatable"), result.count("verify/failed")), (0, 0));
    assert_eq!(result.count("verify/stale"), 0);
}

#[test]
fn what_may_have_been_carried_out_fails_and_its_key_is_written() {
    let server = Serve::start("--fault close-after=50");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("failed.csv");
    let words = "-n 1000 -c 2 --records 100 --mix incr:1 --protocol text --retry lost --quiet";
    let typed = format!("run -s {} {words} --failed-keys {}", server.name, file.display());
    let result = pummel(&typed).json();
    let failed = result.count("retry/not_repeatable");
    assert!(failed > 0 && result.count("totals/errors") == failed, "{failed}");
    let table = fs::read_to_string(&file).expect("it is written");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("key,operation,phase,reason"));
    let of_run: Vec<&str> = lines.filter(|line| line.ends_with(",incr,measure,lost")).collect();
    assert_eq!(of_run.len() as u64, failed, "{table}");
}

#[test]
fn a_server_that_is_down_for_a_while_is_waited_for() {
    let server = Serve::start("--cluster 1 --clusterdown 0s..1s");
    let words = "-n 500 -c 2 --records 100 --mix get:1,set:1 --no-cluster --protocol resp2 --quiet";
    let result = pummel(&format!("run -s {} {words} --retry clusterdown", server.name)).expect(0).json();
    assert_eq!((result.count("totals/completed"), result.count("totals/errors")), (500, 0));
    let stored = result.count("load/stored");
    assert_eq!(stored, 100, "the load waits too");
}

#[test]
fn an_error_that_is_not_named_is_not_waited_for_and_an_unknown_name_is_refused() {
    let server = Serve::start("--fault error-every=10");
    let words = "-n 500 -c 2 --records 100 --no-load --protocol resp2 --quiet --retry all";
    let result = pummel(&format!("run -s {} {words}", server.name)).json();
    assert!(result.count("totals/errors") > 0);
    assert_eq!(result.count("retry/recovered"), 0);
    let refused = pummel("run -s localhost --retry loadin").expect(2);
    assert!(refused.errors.contains("did you mean 'loading'?"), "{}", refused.errors);
    for (words, why) in
        [("--noreply", "--noreply"), ("--udp", "datagram"), ("--conn-rate 10", "comes and goes")]
    {
        let refused = pummel(&format!("run -s localhost --protocol text --retry oom {words}")).expect(2);
        assert!(refused.errors.contains(why), "{words}: {}", refused.errors);
    }
}
