//! Several servers at once: where records live, what each server was asked, and reads that servers share.

use std::time::Duration;

use crate::common::{Json, Memcached, Running, Stats, in_the_midst, pummel};

const KEY_OWNED: [&str; 4] = ["modulo", "ketama", "ketama-weighted", "crc16"];

fn three() -> (Vec<Memcached>, String) {
    let servers: Vec<Memcached> = (0..3).map(|_| Memcached::start()).collect();
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let names = names.join(",");
    (servers, names)
}

fn stats(servers: &[Memcached]) -> Vec<Stats> {
    servers.iter().map(|server| server.connect().stats()).collect()
}

fn sum(stats: &[Stats], name: &str) -> u64 {
    stats.iter().map(|stats| stats.get(name)).sum()
}

/// Asserts that the servers counted together what the run says.
#[track_caller]
fn assert_counted(result: &Json, stats: &[Stats]) {
    let of = |op: &str, what: &str| result.count_or_none(&format!("whole_run/ops/{op}/{what}"));
    assert_eq!(of("get", "keys"), sum(stats, "cmd_get"));
    assert_eq!(of("get", "hits"), sum(stats, "get_hits"));
    assert_eq!(of("get", "misses"), sum(stats, "get_misses"));
    assert_eq!(of("set", "completed"), sum(stats, "cmd_set"));
    assert_eq!(of("delete", "outcomes/deleted"), sum(stats, "delete_hits"));
}

#[test]
fn with_a_key_owned_route_every_record_is_on_one_server() {
    for route in KEY_OWNED {
        let (servers, names) = three();
        let words = format!("load -s {names} --route {route} --records 5000 -c 4 -T 2 --quiet");
        let loaded = pummel(&words).expect(0).json();
        assert_eq!((loaded.count("load/records"), loaded.count("load/stored")), (5_000, 5_000), "{route}");
        assert_eq!(loaded.count("connections/asked"), 12, "{route}");
        let stats = stats(&servers);
        assert_eq!((sum(&stats, "curr_items"), sum(&stats, "cmd_set")), (5_000, 5_000), "{route}");
        for stats in &stats {
            assert!((800..3_000).contains(&stats.get("curr_items")), "{route}: {}", stats.get("curr_items"));
        }
    }
}

#[test]
fn with_other_routes_every_record_is_on_every_server() {
    for (route, connections) in [("all", 4), ("roundrobin", 12)] {
        let (servers, names) = three();
        let words = format!(
            "run -s {names} --no-baseline --route {route} --records 1000 -c 4 -n 3k --mix get:1 --verify 1 --quiet"
        );
        let result = pummel(&words).expect(0).json();
        assert_eq!(result.count("connections/open"), connections, "{route}");
        assert_eq!(result.count("verify/checked"), 3_000, "{route}");
        let stats = stats(&servers);
        assert_counted(&result, &stats);
        for stats in &stats {
            assert_eq!(stats.get("curr_items"), 1_000, "{route}");
        }
        if route == "roundrobin" {
            assert!(stats.iter().all(|stats| stats.get("cmd_get") == 1_000), "as often each");
        }
    }
}

#[test]
fn reads_that_servers_share_are_verified_and_counted_once() {
    for route in KEY_OWNED {
        for depth in [1, 16] {
            let (servers, names) = three();
            let words = format!(
                "run -s {names} --no-baseline --route {route} --records 2000 -c 4 -d {depth} -T 2 -n 5k --multiget 10 --verify 1 \
                 --mix get:8,set:2,delete:1 --read-through --quiet"
            );
            let ended = pummel(&words).expect(0);
            let result = ended.json();
            assert_eq!(result.count("totals/errors"), 0, "{route}: {}", ended.text);
            assert_eq!(result.count("verify/failed") + result.count("verify/stale"), 0, "{route}");
            assert_counted(&result, &stats(&servers));
            let of = |what: &str| result.count(&format!("ops/get/{what}"));
            assert_eq!(of("keys"), 10 * of("requests"), "{route}");
            assert_eq!(of("keys"), of("hits") + of("misses"), "{route}");
            assert!(of("misses") > 0, "{route}: what was deleted is missed");
        }
    }
}

#[test]
fn a_server_that_ends_leaves_the_others_their_load() {
    let (ended, servers) = in_the_midst(Duration::from_secs(2), |time| {
        let (mut servers, names) = three();
        let words = format!(
            "run -s {names} --no-baseline --route ketama --records 1000 -c 4 --rate 2k {time} --interval 200ms --mix get:1"
        );
        let mut running = Running::start(&words);
        running.wait_for_progress();
        servers.pop().expect("three");
        (running, servers)
    });
    let result = ended.expect(1).json();
    assert_eq!(result.text("status"), "partial");
    assert!(result.text("reason").starts_with("4 of 12 connections were lost"), "{}", result.text("reason"));
    let of = |what: &str| result.count(&format!("totals/{what}"));
    assert!(of("unsent") > 0, "nobody asks a server that is not there");
    assert_eq!(of("requests"), of("completed") + of("errors") + of("unfinished") + of("unsent"));
    let asked = sum(&stats(&servers), "cmd_get");
    assert!(asked > of("requests") / 3, "the other servers were asked {asked} of {}", of("requests"));
}
