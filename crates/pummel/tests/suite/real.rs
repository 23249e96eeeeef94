//! The real binary against a real memcached: what was counted, what was checked, and whether the reports agree.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use crate::common::counts::{self, Dialect, between, counted};
use crate::common::flat;
use crate::common::redis::Redis;
use crate::common::{
    Ended, Json, Memcached, Place, Running, Serve, Stats, Talk, backends, has_ipv6, in_the_midst, pummel,
    quiet, until,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

/// Every op, with reads of one key and of ten.
const EVERY_OP: &str = "get:4,gets:1,gat:1,gats:1,set:2,add:1,replace:1,append:1,prepend:1,cas:1,incr:1,decr:1,\
     delete:2,touch:1,version:1";

#[track_caller]
fn assert_counted(result: &Json, before: &Stats, after: &Stats) {
    counts::assert_counted(result, Dialect::Classic, before, after);
}

#[test]
fn the_whole_run_is_what_the_server_counted() {
    let server = Memcached::start();
    let mut second = server.connect();
    let name = &server.name;
    let shapes = [(1, 1, 1), (1, 16, 10), (2, 1, 10), (2, 16, 1)];
    for (&backend, (threads, depth, multiget)) in
        backends().iter().flat_map(|backend| shapes.map(|shape| (backend, shape)))
    {
        let before = second.stats();
        let ended = pummel(&format!(
            "run --no-evidence --no-baseline -s {name} -n 30k -c 10 -T {threads} -d {depth} --multiget {multiget} --mix {EVERY_OP} --ttl 600 \
             --verify --warmup 100ms --backend {backend}"
        ))
        .expect(0);
        let after = second.stats();
        let result = ended.json();
        assert_eq!(result.text("generator/backend"), backend);
        assert_counted(&result, &before, &after);
        for (counter, ours) in counted(&result, Dialect::Classic) {
            // A counter that stays 0 is compared in vain. Counters and records that are gone are never asked for here.
            let never = ["incr_misses", "decr_misses"].contains(&counter);
            assert_eq!(ours == 0 && counter != "cas_misses" && counter != "cas_badval", never, "{counter}");
        }
    }
}

#[test]
fn the_whole_run_is_what_the_server_counted_also_by_time_and_in_open_loop() {
    let server = Memcached::start();
    let mut second = server.connect();
    let name = &server.name;
    let paces = ["-c 8 -T 2 -d 4", "-c 20 --rate 5k"];
    for (backend, pace) in backends().iter().flat_map(|backend| paces.map(|pace| (backend, pace))) {
        let before = second.stats();
        let ended = pummel(&format!(
            "run --no-evidence --no-baseline -s {name} -t 1s {pace} --mix {EVERY_OP} --warmup 200ms --backend {backend}"
        ))
        .expect(0);
        let after = second.stats();
        assert_eq!(ended.json().count("totals/unfinished"), 0, "the server is healthy");
        assert_counted(&ended.json(), &before, &after);
    }
}

#[test]
fn a_server_that_is_full_is_said_to_be() {
    const ATTEMPTS: usize = 5;
    // What a server says before it closes is lost where the client sends at that moment, and its system answers with a reset: on a
    // busy machine now and then. Most attempts hear it.
    let reasons: Vec<String> = (0..ATTEMPTS)
        .map(|_| {
            let server = Memcached::start_for(60);
            let words =
                format!("run --no-evidence --no-baseline -s {} -t 300ms -c 200 --no-load", server.name);
            let ended = pummel(&words).expect(1);
            assert_eq!(ended.json().text("status"), "partial");
            ended.json().text("reason").to_owned()
        })
        .collect();
    let is_told = |reason: &&String| {
        let [took, refused] = numbers_of(reason);
        took > 0 && took + refused == 200 && reason.contains("Too many open connections")
    };
    let told = reasons.iter().filter(is_told).count();
    assert!(told * 2 > ATTEMPTS, "{told} of {ATTEMPTS}: {reasons:#?}");
}

/// Connections that a server took by the words of a reason, and those that it refused; 0 of both in other words.
fn numbers_of(reason: &str) -> [u64; 2] {
    let number = |before: &str| {
        let rest = reason.split_once(before).map_or("", |(_, rest)| rest);
        rest.split([' ', ':']).next().and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    [number(" took "), number(" connections and refused ")]
}

#[test]
fn a_full_server_ends_a_run_always_with_what_it_took_and_what_its_limit_is() {
    let (memcached, redis) = (Memcached::start_for(40), Redis::start(&["--maxclients", "40"]));
    for (name, limit) in [
        (memcached.name.clone(), "limit is 40; some are its own; it counts "),
        (format!("{} --protocol resp2", redis.name()), "limit is 40"),
    ] {
        for words in ["-c 100", "-c 100 -T 2", "-c 100 -d 8 --rate 5k"] {
            let ended = pummel(&format!("run -s {name} -t 1s --records 1000 -v {words}")).expect(1);
            let result = ended.json();
            let reason = result.text("reason");
            let [took, refused] = numbers_of(reason);
            assert!(took > 0 && took <= 40 && took + refused == 100, "{words}: {reason}");
            assert!(reason.contains(limit), "{words}: {reason}");
            assert!(
                ended.errors.contains(&format!("hint: -c {took} here, a greater ")),
                "{words}: {}",
                ended.errors
            );
            assert!(ended.text.is_empty(), "nothing is measured with other connections: {}", ended.text);
            assert_eq!(result.count("connections/refusals/0/refused"), refused);
            assert_eq!(result.count("connections/refusals/0/limit"), 40);
        }
    }
}

#[test]
fn messages_that_no_request_asked_for_are_counted_by_name() {
    let redis = Redis::start(&[]);
    let name = redis.name();
    let run = |words: &str| {
        pummel(&format!("run -s {name} --protocol resp3 -c 2 -n 2000 --records 20 {words}")).expect(0)
    };
    // Each of two connections is told of each change of a key, by the other one and by itself.
    let ended = run("--mix set:1 --tracking=bcast");
    let (result, sets) = (ended.json(), 2_000);
    let pushes = result.count("pushes/invalidate");
    assert!(pushes > 0 && pushes <= 2 * (sets + 20), "{pushes} of {sets} changes");
    assert!(flat(&ended.text).contains(" x invalidate, which no request asked for"), "{}", ended.text);
    let own = run("--mix get:9,set:1 --tracking --no-load").json();
    assert!(own.count("pushes/invalidate") <= own.count("ops/get/requests"), "only of keys that were read");
    assert_eq!(own.text("plan/tracking"), "keys");
    assert!(run("--mix get:9,set:1 --no-load").json().at("pushes").is_null());
    let refused = pummel(&format!("run -s {name} --protocol resp2 --tracking")).expect(2);
    assert!(
        refused.errors.contains("'keys' for '--tracking': accepted only with --protocol resp3"),
        "{}",
        refused.errors
    );
}

#[test]
fn a_full_server_is_asked_again_with_pauses_and_measured_with_what_it_takes() {
    let (memcached, redis) = (Memcached::start_for(40), Redis::start(&["--maxclients", "40"]));
    for name in [memcached.name.clone(), format!("{} --protocol resp2", redis.name())] {
        let words = format!("run -s {name} -t 3s -c 100 --records 1000 --no-load -v --reconnect");
        let ended = pummel(&words).expect(1);
        let result = ended.json();
        let [took, refused] = numbers_of(result.text("reason"));
        assert!(took > 0 && took <= 40 && took + refused == 100, "{}", result.text("reason"));
        assert!(result.count("totals/completed") > 0);
        let attempts = result.count("connections/refusals/0/attempts");
        // Half a second is the least pause of a server that goes on refusing; there are some shorter ones before.
        assert!(
            (refused..=refused * 16).contains(&attempts),
            "{attempts} attempts for {refused} connections"
        );
        assert!(
            flat(&ended.text).contains(&format!(" Refused {refused} of 100 connections, \"")),
            "{}",
            ended.text
        );
    }
}

#[test]
fn a_server_that_answers_with_errors_or_ends_connections_behind_its_replies_refuses_none() {
    for fault in ["error-every=5", "close-after=20"] {
        let server = Serve::start(&format!("--fault {fault}"));
        let words = "-c 20 -n 4000 --records 100 --no-load -v --reconnect";
        let ended = pummel(&format!("run -s {} {words}", server.name)).expect(0);
        let result = ended.json();
        let of = |path: &str| result.count(&format!("connections/{path}"));
        assert_eq!((of("failed"), of("lost") > 0), (0, fault == "close-after=20"), "{fault}");
        assert!(!ended.text.contains("\nRefused"), "{fault}: {}", ended.text);
    }
}

#[test]
fn what_is_unfinished_is_all_that_the_server_may_have_counted_besides() {
    // Each attempt has a server that knows of no other.
    let (ended, (server, mut second, before)) = in_the_midst(Duration::from_secs(2), |time| {
        let server = Memcached::start();
        let mut second = server.connect();
        let before = second.stats();
        let words = format!(
            "run --no-evidence --no-baseline -s {} {time} -c 4 -d 4 --interval 200ms --mix get:1,set:1",
            server.name
        );
        let mut running = Running::start(&words);
        running.wait_for_progress();
        server.process.stop();
        (running, (server, second, before))
    });
    server.process.go_on();
    let result = ended.json();
    assert_eq!((ended.status, result.text("status")), (1, "partial"), "{}", ended.text);
    assert!(result.text("reason").contains(&server.name), "{}", result.text("reason"));
    let unfinished = result.count("totals/unfinished");
    assert_eq!(unfinished, 16, "every slot has a request that is out: {}", ended.text);
    let asked =
        ["get", "set"].map(|op| result.count(&format!("whole_run/ops/{op}/completed"))).iter().sum::<u64>();
    // The server has answered `stats` after all that it had received before.
    let after = second.stats();
    let served = between(&before, &after, "cmd_get") + between(&before, &after, "cmd_set");
    assert!((asked..=asked + unfinished).contains(&served), "{asked} + {unfinished} and {served}");
    let sent = result.count("whole_run/bytes/sent");
    let read = between(&before, &after, "bytes_read");
    assert!(read <= sent && sent - read <= unfinished * 300, "{sent} bytes were sent and {read} read");
}

#[test]
fn requests_without_reply_are_what_the_server_counted() {
    let server = Memcached::start();
    let mut second = server.connect();
    let before = second.stats();
    let words = format!(
        "run --no-evidence --no-baseline -s {} -n 20k -c 4 -T 2 -d 8 --noreply --mix set:2,append:1,incr:1,delete:1,touch:1",
        server.name
    );
    let result = pummel(&words).expect(0).json();
    let of = |op: &str| result.count(&format!("whole_run/ops/{op}/completed"));
    // The last of them may still be on their way.
    let mut looks = 0;
    let counted = |second: &mut Talk, looks: &mut u64, before: &Stats| {
        let after = second.stats();
        *looks += 1;
        let of = |names: &[&str]| names.iter().map(|name| after.get(name) - before.get(name)).sum::<u64>();
        [
            of(&["cmd_set"]),
            of(&["incr_hits", "incr_misses"]),
            of(&["delete_hits", "delete_misses"]),
            of(&["cmd_touch"]),
            of(&["bytes_read"]) - *looks * "stats\r\n".len() as u64,
        ]
    };
    let ours = [
        of("set") + of("append"),
        of("incr"),
        of("delete"),
        of("touch"),
        result.count("whole_run/bytes/sent"),
    ];
    until("memcached counts every request", || {
        (counted(&mut second, &mut looks, &before) == ours).then_some(())
    });
}

/// One way to damage a value; the second value is another key's.
type Damage = fn(&mut Vec<u8>, &[u8]);

const DAMAGES: [Damage; 5] = [
    |value, _| value[0] ^= 1,
    |value, _| {
        let middle = value.len() / 2;
        value[middle] ^= 0x10;
    },
    |value, _| *value.last_mut().expect("a value of some length") ^= 0x80,
    |value, _| value.truncate(value.len() - 1),
    |value, other| *value = other.to_vec(),
];

#[test]
fn every_corrupted_value_is_found_and_none_else() {
    let server = Memcached::start();
    let name = &server.name;
    pummel_load(&format!("load -s {name} --records 2000"));
    let mut second = server.connect();
    let keys = second.keys();
    assert_eq!(keys.len(), 2000);
    let mut damaged = BTreeSet::new();
    for (n, place) in keys.chunks(20).enumerate() {
        // The other key's value is taken from a key that stays as it is.
        let (key, other) = (&place[7], &place[11]);
        let (mut value, other) = (second.value(key), second.value(other));
        assert_ne!(value, other);
        DAMAGES[n % DAMAGES.len()](&mut value, &other);
        second.store(key, &value);
        damaged.insert(key.as_str());
    }
    let words = format!(
        "run --no-evidence --no-baseline -s {name} --no-load --records 2000 --verify 1 --mix get:1 --popularity sequential -n 2000 -v"
    );
    let ended = pummel(&words).expect(3);
    let result = ended.json();
    assert_eq!(result.count("verify/checked"), 2000);
    assert_eq!((result.count("verify/failed"), result.count("verify/failed_keys")), (100, 100));
    assert_eq!(result.count("verify/stale"), 0);
    assert_eq!(result.text("status"), "complete");
    let first = result.at("verify/first").as_array().expect("a list");
    assert_eq!(first.len(), 10);
    let shown: BTreeSet<&str> = first.iter().map(|one| one["key"].as_str().expect("a key")).collect();
    assert_eq!(shown.len(), 10, "ten different keys");
    for key in shown {
        assert!(damaged.contains(key), "{key} is as it was");
        assert!(ended.text.contains(key), "{key} is not shown: {}", ended.text);
    }
    // All of it is found again, and each damage alone is found in each of its places.
    let again = pummel(&words.replace("-n 2000", "-n 6000 -c 7 -d 4 -T 2 --multiget 10")).expect(3).json();
    assert_eq!((again.count("verify/failed"), again.count("verify/failed_keys")), (3000, 100));
}

fn pummel_load(words: &str) {
    pummel(words).expect(0);
}

#[test]
fn a_million_requests_of_every_op_find_nothing_wrong_with_a_healthy_server() {
    let server = Memcached::start();
    let words = format!(
        "run --no-evidence --no-baseline -s {} -n 1m -T 8 -c 64 -d 8 --records 2000 --verify 1 --mix {EVERY_OP} --value-size uniform:8,400 \
         --popularity zipf:0.99",
        server.name
    );
    let ended = pummel(&words).expect(0);
    let result = ended.json();
    assert_eq!(result.count("totals/errors"), 0, "{}", ended.text);
    assert!(result.count("totals/completed") >= 1_000_000);
    assert!(result.count("verify/checked") > 250_000, "{}", ended.text);
    assert_eq!((result.count("verify/failed"), result.count("verify/stale")), (0, 0), "{}", ended.text);
}

#[test]
fn an_older_value_of_the_same_client_is_stale() {
    let server = Memcached::start();
    let (ended, ()) = in_the_midst(Duration::from_secs(3), |time| {
        let words = format!(
            "run --no-evidence --no-baseline -s {} --records 1 -c 1 --mix get:1,set:1 --verify 1 {time} --interval 100ms",
            server.name
        );
        let mut running = Running::start(&words);
        running.wait_for_progress();
        let mut second = server.connect();
        // A listing can miss a key that is just being written.
        let key = until("the only record", || second.keys().pop());
        for _ in 0..30 {
            let old = second.value(&key);
            // When the run is over, no client writes any more.
            let is_new = until("the client writes again", || {
                let is_new = second.value(&key) != old;
                (is_new || running.has_ended()).then_some(is_new)
            });
            if !is_new {
                break;
            }
            second.store(&key, &old);
        }
        (running, ())
    });
    let result = ended.expect(3).json();
    // Every other request reads: that none of 30 older values was read has a probability of one in a thousand million.
    assert!(result.count("verify/stale") > 0, "{}", result.at("verify"));
    assert_eq!(result.count("verify/failed"), 0, "they are whole");
}

#[test]
fn a_unix_socket_and_ipv6_are_servers_like_others() {
    let places: &[Place] = if has_ipv6() { &[Place::Unix, Place::Ipv6] } else { &[Place::Unix] };
    for (&place, backend) in places.iter().flat_map(|place| backends().iter().map(move |name| (place, name)))
    {
        let server = Memcached::start_on(place);
        let mut second = server.connect();
        let before = second.stats();
        let ended = pummel(&format!(
            "run --no-evidence --no-baseline -s {} -n 5k -c 4 -d 4 --verify --clock kernel --backend {backend}",
            server.name
        ))
        .expect(0);
        let after = second.stats();
        let result = ended.json();
        assert_counted(&result, &before, &after);
        assert_eq!(result.at("unix_socket"), place == Place::Unix, "{place:?}");
        assert_eq!(result.count("generator/stamps/missing"), 0, "{place:?}");
        if place == Place::Unix {
            assert_eq!(
                result.number("totals/reaction_us/max"),
                0.0,
                "arrived is the moment of reading there"
            );
        }
    }
}

#[test]
fn two_servers_share_the_clients_evenly_and_have_all_records_each() {
    let second = if has_ipv6() { Place::Ipv6 } else { Place::Ipv4 };
    let servers = [Memcached::start(), Memcached::start_on(second)];
    let list = servers.each_ref().map(|server| server.name.as_str()).join(",");
    let given: [(String, Option<&str>); 3] = [
        (format!("-s {list}"), None),
        (format!("-s {} --server {}", servers[0].name, servers[1].name), None),
        (String::new(), Some(&list)),
    ];
    for (words, environment) in given {
        let mut talks = servers.each_ref().map(Memcached::connect);
        let before = talks.each_mut().map(Talk::stats);
        let words = format!(
            "run --no-evidence --no-baseline {words} -n 10k -c 10 -T 2 --records 1000 --mix get:1 --seed 5"
        );
        let result = Running::start_with(&words, environment).end().expect(0).json();
        let after = talks.each_mut().map(Talk::stats);
        let by = |server: usize, name: &str| between(&before[server], &after[server], name);
        for server in [0, 1] {
            assert_eq!(by(server, "cmd_get"), 5000, "half of the clients are at server {server}");
            assert_eq!(by(server, "cmd_set"), 1000, "server {server} has every record");
            assert_eq!(by(server, "get_misses"), 0);
        }
        for (name, ours) in counted(&result, Dialect::Classic) {
            assert_eq!(ours, by(0, name) + by(1, name), "{name}");
        }
    }
}

/// Five runs of different kinds whose reports are looked at. The open loops end by number: all that is due is sent, however
/// late, so that every figure is known.
const LOOKED_AT: [&str; 5] = [
    "-t 1s -c 10 -d 4 -T 2 --warmup 200ms --mix get:9,set:1",
    "-n 20k -c 7 -d 3 --mix get:1,gat:1,set:1,cas:1,delete:1,incr:1,append:1 --multiget 7 --verify",
    "-n 4k -c 20 --rate 4k --mix get:1,touch:1 --records 500",
    "-n 5k --rate 5k --arrivals constant -c 10 -T 2 --no-load --read-through=1ms --records 100k",
    "-n 20k -c 4 -d 16 --noreply --mix set:1,get:1",
];

const SPANS: [&str; 5] = ["response", "wait", "lag", "service", "reaction"];
const COUNTS: [&str; 7] = ["requests", "completed", "keys", "hits", "misses", "unfinished", "unsent"];
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

#[test]
fn all_reports_of_a_run_say_the_same() {
    let server = Memcached::start();
    for words in LOOKED_AT {
        let ended = pummel(&format!(
            "run --no-evidence --no-baseline -s {} {words} --interval 250ms --samples samples --csv table --hdr log -v",
            server.name
        ))
        .expect(0);
        let result = ended.json();
        assert_totals_add_up(&result);
        assert_intervals_add_up(&result);
        assert_text_agrees(&ended, &result);
        assert_table_agrees(&ended, &result);
        assert_log_agrees(&ended, &result);
        assert_samples_agree(&ended, &result);
    }
}

fn names(result: &Json, path: &str) -> Vec<String> {
    result.at(path).as_object().expect("an object").keys().cloned().collect()
}

fn assert_totals_add_up(result: &Json) {
    for what in ["requests", "completed", "unfinished", "unsent"] {
        let sum: u64 = names(result, "ops").iter().map(|op| result.count(&format!("ops/{op}/{what}"))).sum();
        assert_eq!(result.count(&format!("totals/{what}")), sum, "{what}");
    }
    for op in names(result, "ops") {
        let of = |what: &str| result.count(&format!("ops/{op}/{what}"));
        let errors: u64 = names(result, &format!("ops/{op}/errors"))
            .iter()
            .map(|fault| of(&format!("errors/{fault}")))
            .sum();
        assert_eq!(of("requests"), of("completed") + errors + of("unfinished") + of("unsent"), "{op}");
        let outcomes: u64 = names(result, &format!("ops/{op}/outcomes"))
            .iter()
            .map(|outcome| of(&format!("outcomes/{outcome}")))
            .sum();
        if ["get", "gets", "gat", "gats"].contains(&op.as_str()) {
            assert_eq!((of("keys"), outcomes), (of("hits") + of("misses"), 0), "{op}");
        } else {
            assert_eq!((of("completed"), of("hits") + of("misses")), (outcomes, 0), "{op}");
        }
    }
    let rate = result.count("totals/completed") as f64 / result.number("seconds");
    assert_close(result.number("totals/rate"), rate, 1e-6, "rate");
}

fn assert_intervals_add_up(result: &Json) {
    let intervals = result.at("intervals").as_array().expect("a list");
    assert!(!intervals.is_empty());
    let intervals: Vec<Json> = intervals.iter().cloned().map(Json).collect();
    for op in names(result, "ops") {
        for what in COUNTS {
            let path = format!("ops/{op}/{what}");
            let sum: u64 = intervals.iter().map(|interval| interval.count_or_none(&path)).sum();
            assert_eq!(result.count(&path), sum, "{path}");
        }
    }
    for way in ["bytes/sent", "bytes/received"] {
        assert_eq!(result.count(way), intervals.iter().map(|interval| interval.count(way)).sum::<u64>());
    }
    let mut end = 0.0;
    for interval in &intervals {
        assert_close(interval.number("at_s"), end, 1e-9, "an interval begins where the one before ended");
        end += interval.number("seconds");
        let completed: u64 =
            names(interval, "ops").iter().map(|op| interval.count(&format!("ops/{op}/completed"))).sum();
        assert_close(interval.number("rate"), completed as f64 / interval.number("seconds"), 1e-5, "rate");
    }
    assert!(end >= result.number("seconds") - 1e-6, "the intervals cover the phase and its drain");
}

/// Cells of a row of a table of the text: of the first row with this name behind a heading that begins so.
fn cells<'a>(text: &'a str, heading: &[&str], name: &str) -> Vec<&'a str> {
    let words = |line: &'a str| line.split_whitespace().collect::<Vec<&str>>();
    let mut lines = text.lines().skip_while(|line| !words(line).starts_with(heading)).map(words);
    let row = lines.find(|row| row.first() == Some(&name));
    row.unwrap_or_else(|| panic!("no row {name} below {heading:?} in {text}")).split_off(1)
}

/// Times of cells with their units, in microseconds.
fn times_us(cells: &[&str]) -> Vec<f64> {
    let mut times = Vec::new();
    for cell in cells {
        let unit = ["us", "ms", "s"].iter().position(|unit| cell.trim_end_matches('*') == *unit);
        match (unit, times.last_mut()) {
            (Some(unit), Some(last)) => *last *= 1e3_f64.powi(unit as i32),
            _ => times.extend(cell.replace(',', "").parse::<f64>().ok()),
        }
    }
    times
}

fn assert_text_agrees(ended: &Ended, result: &Json) {
    let number = |cell: &str| cell.replace(',', "").parse::<f64>().unwrap_or(0.0);
    let ops = names(result, "ops");
    let all = if ops.len() > 1 { Some(("all", "totals".to_owned())) } else { None };
    let rows = ops.iter().map(|op| (op.as_str(), format!("ops/{op}"))).chain(all);
    for (op, path) in rows {
        let row = cells(&ended.text, &["due", "completed"], op);
        let expected =
            [result.count(&format!("{path}/requests")), result.count(&format!("{path}/completed"))];
        assert_eq!([number(row[0]), number(row[1])], expected.map(|count| count as f64), "{op}: {row:?}");
        let rate = result.count(&format!("{path}/completed")) as f64 / result.number("seconds");
        assert!((number(row[2]) - rate).abs() <= 1.0 + rate * 0.005, "{op} {rate}: {row:?}");
        if result.at(&format!("{path}/response_us/p50")).is_null() {
            continue;
        }
        let row = times_us(&cells(&ended.text, &[op, "mean"], "response"));
        let figures = ["mean", "p50", "p95", "p99", "p99.9", "max"];
        for (shown_us, figure) in row.iter().zip(figures) {
            let exact_us = result.number(&format!("{path}/response_us/{figure}"));
            assert_close(*shown_us, exact_us, 0.0051, &format!("{op} {figure}"));
        }
    }
}

fn assert_table_agrees(ended: &Ended, result: &Json) {
    let text = ended.file("table");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let header = lines.next().expect("a header");
    let rows: Vec<BTreeMap<&str, &str>> = lines
        .map(|row| {
            assert_eq!(row.len(), header.len());
            header.iter().copied().zip(row).collect()
        })
        .collect();
    for op in names(result, "ops") {
        for what in COUNTS {
            let of = rows.iter().filter(|row| row["op"] == op);
            let sum: u64 = of.map(|row| row[what].parse::<u64>().expect("a count")).sum();
            assert_eq!(result.count(&format!("ops/{op}/{what}")), sum, "{op} {what}");
        }
    }
    // Each row says of its interval what the JSON says.
    let mut compared = 0;
    for interval in result.at("intervals").as_array().expect("a list") {
        for (op, of) in interval["ops"].as_object().expect("an object") {
            let at_s = format!("{:.3}", interval["at_s"].as_f64().expect("a time"));
            let row = rows.iter().find(|row| row["at_s"] == at_s && row["op"] == op);
            let row = row.unwrap_or_else(|| panic!("no row for {op} at {at_s}"));
            compared += 1;
            for span in SPANS {
                for figure in ["min", "mean", "p50", "p99", "max"] {
                    let json = &of[format!("{span}_us")][figure];
                    let cell = row[format!("{span}_{figure}_us").as_str()];
                    assert_eq!(cell.parse::<f64>().ok(), json.as_f64(), "{op} {span} {figure}");
                }
            }
        }
    }
    assert_eq!(compared, rows.len(), "the table has nothing else");
}

fn decode(text: &str) -> Histogram<u64> {
    let bytes = STANDARD.decode(text).expect("it is base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("it is a histogram")
}

fn assert_log_agrees(ended: &Ended, result: &Json) {
    let text = ended.file("log");
    let mut merged: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let mut starts = Vec::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry.expect("the reader of HdrHistogram understands every line") {
            LogEntry::StartTime(at) | LogEntry::BaseTime(at) => {
                assert_close(at.as_secs_f64(), result.number("started_unix_s"), 1e-9, "start");
            }
            LogEntry::Interval(interval) => {
                let tag = interval.tag().expect("every line has a tag").as_str().to_owned();
                let histogram = decode(interval.encoded_histogram());
                // The column for the eye is in milliseconds with three digits, and a cell is 0.1 % wide.
                let shown = interval.max() - histogram.max() as f64 / 1e6;
                assert!(shown.abs() <= 0.001 + interval.max() * 0.001, "{tag} {}", interval.max());
                starts.push(interval.start_timestamp());
                merged
                    .entry(tag)
                    .or_insert_with(|| Histogram::new_from(&histogram))
                    .add(&histogram)
                    .expect("they are of one kind");
            }
        }
    }
    assert!(starts.is_sorted(), "intervals come in order");
    let mut tags = 0;
    for op in names(result, "ops") {
        for span in SPANS {
            let whole = decode(result.text(&format!("ops/{op}/histograms/{span}")));
            let tag = format!("{op}.{span}");
            if whole.is_empty() {
                assert!(!merged.contains_key(&tag), "{tag}");
                continue;
            }
            tags += 1;
            assert!(merged[&tag] == whole, "{tag}: the sum of the intervals is the histogram of the result");
            for (name, quantile) in QUANTILES {
                let figure = result.number(&format!("ops/{op}/{span}_us/{name}"));
                let decoded = whole.value_at_quantile(quantile) as f64 / 1000.0;
                assert_close(figure, decoded, 0.002, &format!("{tag} {name}"));
            }
        }
    }
    assert_eq!(merged.len(), tags, "the log has nothing else");
}

fn assert_samples_agree(ended: &Ended, result: &Json) {
    let samples = ended.samples();
    for op in names(result, "ops") {
        let of_op: Vec<_> = samples.iter().filter(|sample| sample.op == op).collect();
        let requests =
            result.count(&format!("ops/{op}/requests")) - result.count(&format!("ops/{op}/unsent"));
        assert_eq!(of_op.len() as u64, requests, "{op}");
        for sample in &of_op {
            let sent = sample.sent.expect("it was sent");
            assert!(sample.due <= sample.ready && sample.ready <= sent, "{sample:?}");
        }
        let noreply = result.at(&format!("ops/{op}/response_us/p50")).is_null();
        if noreply {
            continue;
        }
        let time = |from: fn(&crate::common::Sample) -> u64, to: fn(&crate::common::Sample) -> u64| {
            let mut times: Vec<f64> =
                of_op.iter().map(|sample| to(sample).saturating_sub(from(sample)) as f64 / 1e3).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let times = [
            time(|sample| sample.due, |sample| sample.arrived.unwrap_or(0)),
            time(|sample| sample.due, |sample| sample.ready),
            time(|sample| sample.ready, |sample| sample.sent.unwrap_or(0)),
            time(|sample| sample.sent.unwrap_or(0), |sample| sample.arrived.unwrap_or(0)),
            time(|sample| sample.arrived.unwrap_or(0), |sample| sample.read.unwrap_or(0)),
        ];
        for (span, times) in SPANS.iter().zip(&times) {
            let figure = |name: &str| result.number(&format!("ops/{op}/{span}_us/{name}"));
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            assert_close(figure("mean"), mean, 1e-4, &format!("{op} {span} mean"));
            assert_eq!(figure("min"), times[0], "{op} {span} min");
            assert_eq!(figure("max"), times[times.len() - 1], "{op} {span} max");
            for (name, quantile) in QUANTILES {
                assert_close(
                    figure(name),
                    crate::common::quantile(times, quantile),
                    0.002,
                    &format!("{op} {span} {name}"),
                );
            }
        }
    }
}

#[test]
fn waiting_takes_as_long_in_a_time_namespace() {
    let _alone = quiet();
    let server = Memcached::start();
    for backend in backends() {
        // The clock ahead of the machine's, and behind it.
        for shift_s in ["100000", "-1"] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let result = folder.path().join("result");
            let options = "--rate 200 -t 1s -c 2 --records 10 --timeout 10s --wait block -v --backend";
            let output = Command::new("timeout")
                .args(["--signal=KILL", "60", "unshare", "--map-root-user", "--time", "--monotonic", shift_s])
                .args(["--fork", "--kill-child", env!("CARGO_BIN_EXE_pummel"), "run", "-s", &server.name])
                .args(options.split(' '))
                .args([backend, "--json"])
                .arg(&result)
                .output()
                .expect("timeout is of coreutils");
            let errors = String::from_utf8_lossy(&output.stderr);
            if errors.contains("unshare") {
                eprintln!("left out: a time namespace cannot be made here: {}", errors.trim());
                return;
            }
            assert_eq!(output.status.code(), Some(0), "{backend}, {shift_s} s: {errors}");
            let json = std::fs::read_to_string(&result).expect("it was written");
            let result = Json(crate::common::value_of(&json));
            assert!((1.0..10.0).contains(&result.number("seconds")), "{json}");
            let busy_s = result.number("generator/cpu_user_s") + result.number("generator/cpu_system_s");
            assert!(busy_s < 0.5, "{backend}, {shift_s} s: it sleeps between 200 requests: {busy_s} s");
        }
    }
}

/// Within a share of the second, or half of the last digit that is printed of numbers below 1.
#[track_caller]
fn assert_close(one: f64, another: f64, share: f64, what: &str) {
    assert!((one - another).abs() <= another.abs() * share + 0.0051, "{what}: {one} and {another}");
}

#[test]
fn a_server_without_cas_uniques_makes_errors_of_reads_before_a_cas_and_ends_nothing() {
    let server = Memcached::start_without_cas();
    for protocol in ["binary", "text", "meta"] {
        let words = format!(
            "run --no-evidence --no-baseline -s {} --protocol {protocol} -n 1000 -c 2 -d 4 --records 50 --mix cas:1,get:2 --seed 1 -v",
            server.name
        );
        let ended = pummel(&words).expect(0);
        let result = ended.json();
        let reads = result.count("ops/gets/requests");
        assert!(reads > 200, "{reads}");
        assert_eq!(result.count("ops/gets/errors/server"), reads, "{protocol}");
        assert_eq!(result.count_or_none("ops/cas/requests"), 0, "{protocol}: none is made without a check");
        assert_eq!(result.count("totals/requests"), 1_000);
        assert!(ended.text.contains("without a CAS unique"), "{}", ended.text);
    }
}
