//! Every protocol against the real servers that speak it: what was counted, what was checked, and who may come in.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::common::counts::{Dialect, between, counted};
use crate::common::redis::Redis;
use crate::common::secured::Certificates;
use crate::common::{Ended, Json, Memcached, Running, flat, pummel};

const MEMCACHED_OPS: &str = "get:4,gets:1,gat:1,gats:1,set:2,add:1,replace:1,append:1,prepend:1,cas:1,incr:1,decr:1,\
     delete:1,touch:1,version:1";

const RESP_OPS: &str = "get:4,gat:1,set:2,add:1,replace:1,append:1,incr:1,decr:1,delete:1,touch:1,version:1,hget:3,\
     hset:1,mset:1";

/// A verified run that ended well.
#[track_caller]
fn verified(server: &str, protocol: &str, depth: u32, options: &str) -> Json {
    let words = format!(
        "run -s {server} --no-evidence --no-baseline --protocol {protocol} -n 10k -c 10 -T 2 -d {depth} --records 2000 --verify 1 \
         --ttl 1000 -v {options}"
    );
    let ended = pummel(&words).expect(0);
    let result = ended.json();
    assert!(result.count("verify/checked") > 2_500, "{protocol}, depth {depth}");
    assert_eq!(result.count("verify/failed") + result.count("verify/stale"), 0, "{protocol}, depth {depth}");
    assert_eq!(result.count("totals/errors"), 0, "{protocol}, depth {depth}: {}", ended.text);
    result
}

/// Asserts that memcached counted what a run says.
#[track_caller]
fn assert_memcached_counted(
    result: &Json,
    protocol: &str,
    before: &crate::common::Stats,
    after: &crate::common::Stats,
) {
    let dialect = if protocol == "meta" { Dialect::Meta } else { Dialect::Classic };
    for (name, ours) in counted(result, dialect) {
        assert_eq!(ours, between(before, after, name), "{name} in {protocol}: ours and memcached's");
    }
}

#[test]
fn every_dialect_of_memcached_is_counted_as_the_server_counts_it() {
    let server = Memcached::start();
    let mut second = server.connect();
    for protocol in ["text", "meta", "binary"] {
        for (depth, multiget) in [(1, 1), (16, 1), (16, 10)] {
            let before = second.stats();
            let options = format!("--mix {MEMCACHED_OPS} --multiget {multiget}");
            let result = verified(&server.name, protocol, depth, &options);
            assert_memcached_counted(&result, protocol, &before, &second.stats());
        }
    }
}

#[test]
fn every_dialect_of_memcached_is_counted_behind_tls_too() {
    let files = Certificates::make();
    let (server, secured) = Memcached::start_tls(&files.cert(), &files.key());
    let mut second = server.connect();
    for protocol in ["text", "meta", "binary"] {
        let before = second.stats();
        let options =
            format!("--mix {MEMCACHED_OPS} --tls --tls-ca {} --tls-server-name localhost", files.ca());
        let result = verified(&secured, protocol, 4, &options);
        assert_memcached_counted(&result, protocol, &before, &second.stats());
    }
}

/// The screen of a run that asks for no evidence, flat, and its result.
#[track_caller]
fn told(server: &str, protocol: &str, words: &str, status: i32) -> (String, Json) {
    let words =
        format!("run -s {server} --no-evidence --no-baseline --protocol {protocol} -c 4 -n 400 {words}");
    let ended = pummel(&words).expect(status);
    (flat(&ended.text), ended.json())
}

#[test]
fn requests_without_effect_are_told_as_memcached_counts_them() {
    let server = Memcached::start();
    let mut second = server.connect();
    for protocol in ["text", "meta", "binary"] {
        let mut counted = |words: &str, status| {
            let before = second.stats();
            let (text, json) = told(&server.name, protocol, words, status);
            assert_memcached_counted(&json, protocol, &before, &second.stats());
            (text, json)
        };
        let all = "its times are those of requests that did nothing";
        let prefix = format!("--key-prefix {protocol}: --records 50");
        let (text, _) = counted(&format!("{prefix} --mix add:1 --fail-on outcomes:99%"), 3);
        let fault =
            "Fail on outcomes:99%: 400 of 400 answered requests that may store or find nothing did so";
        assert!(
            text.contains(&format!("{fault} Outcomes add: 400 of 400 not stored: {all}")),
            "{protocol}: {text}"
        );
        // What requests without a reply did is not known.
        let silent = format!("{prefix} --no-load --mix add:1 --noreply --fail-on outcomes:99%");
        let (text, _) = told(&server.name, protocol, &silent, 3);
        let unknown = "outcomes:99%: not known: no request that may store or find nothing was answered";
        assert!(text.contains(unknown) && !text.contains("Outcomes"), "{protocol}: {text}");

        // Each record is deleted once.
        let (text, json) = counted(&format!("{prefix} --mix delete:1 --popularity sequential --load"), 0);
        assert_eq!(json.count("ops/delete/outcomes/deleted"), 50, "{protocol}");
        assert!(
            text.contains("Outcomes delete: 350 of 400 without a record of their key Trust"),
            "{protocol}: {text}"
        );

        // Nothing is there.
        let mix = "replace:1,incr:1,decr:1,delete:1,touch:1";
        let absent = format!("--key-prefix {protocol}-none: --records 50 --no-load --mix {mix} -v");
        let (text, json) = counted(&absent, 0);
        for op in mix.split(',').map(|op| op.trim_end_matches(":1")) {
            let words = if op == "replace" { "not stored" } else { "without a record of their key" };
            let asked = json.count(&format!("ops/{op}/completed"));
            assert!(asked > 0, "{protocol}, {op}");
            assert!(
                text.contains(&format!("{op}: {asked} of {asked} {words}: {all}")),
                "{protocol}, {op}: {text}"
            );
        }

        // All clients change one record.
        let (text, json) = counted(&format!("--key-prefix {protocol}-one: --records 1 -d 16 --mix cas:1"), 0);
        let [asked, late] =
            ["completed", "outcomes/exists"].map(|what| json.count(&format!("ops/cas/{what}")));
        assert!(late > 0, "{protocol}: {text}");
        let words = format!("cas: {late} of {asked} not stored, since another client had stored in between");
        assert!(text.contains(&words), "{protocol}: {text}");
    }
}

#[test]
fn requests_without_effect_are_told_of_redis_too_whose_nil_may_mean_anything() {
    let server = Redis::start(&[]);
    for protocol in ["resp2", "resp3"] {
        let of = |words: &str, status| told(&server.name(), protocol, words, status);
        let (text, json) = of("--records 50 --mix add:1,delete:1,touch:1 --popularity sequential", 0);
        for (op, outcome, words) in [
            ("add", "not_stored", "not stored"),
            ("delete", "not_found", "without a record of their key"),
            ("touch", "not_found", "without a record of their key"),
        ] {
            let of = |what: &str| json.count(&format!("ops/{op}/{what}"));
            let (some, all) = (of(&format!("outcomes/{outcome}")), of("completed"));
            assert!(
                some > 0 && text.contains(&format!("{op}: {some} of {all} {words}")),
                "{protocol}: {text}"
            );
        }
        let (text, _) = of("--no-load --mix incr:1 --fail-on outcomes:0", 0);
        assert!(!text.contains("Outcomes"), "Redis counts from 0: {text}");
    }
    let words = format!("run -s {} --protocol resp2 -c 4 -n 400 --no-load --command", server.name());
    let words: Vec<&str> =
        words.split(' ').chain(["EVAL 'return nil' 1 __key__", "--fail-on", "outcomes:5%"]).collect();
    let text = flat(&Running::start_words(&words).end().expect(3).text);
    assert!(text.contains("Outcomes eval: 400 of 400 answered with nil Trust"), "{text}");
}

/// Counters that `whole_run` says Redis has, under Redis' names.
fn asked_of_redis(result: &Json, protocol: &str) -> Vec<(&'static str, u64)> {
    let of = |op: &str| result.count_or_none(&format!("whole_run/ops/{op}/completed"));
    let connections = result.count("connections/open");
    vec![
        ("get", of("get")),
        ("getex", of("gat")),
        ("set", of("set") + of("add") + of("replace")),
        ("append", of("append")),
        ("incrby", of("incr")),
        ("decrby", of("decr")),
        ("del", of("delete")),
        ("expire", of("touch")),
        ("ping", of("version")),
        ("hget", of("hget")),
        ("hset", of("hset")),
        ("mset", of("mset")),
        ("hello", if protocol == "resp3" { connections } else { 0 }),
    ]
}

#[track_caller]
fn assert_redis_counted(result: &Json, protocol: &str, server: &Redis) {
    let counted = server.counted();
    for (command, asked) in asked_of_redis(result, protocol) {
        assert_eq!(asked, counted.get(command).copied().unwrap_or(0), "{command} in {protocol}");
        assert!(asked > 0 || command == "hello", "{command} is compared in vain");
    }
}

#[test]
fn both_dialects_of_redis_are_counted_as_the_server_counts_them() {
    for protocol in ["resp2", "resp3"] {
        for (depth, multiset) in [(1, 1), (16, 7)] {
            let server = Redis::start(&[]);
            let options = format!("--mix {RESP_OPS} --multiset {multiset}");
            let result = verified(&server.name(), protocol, depth, &options);
            assert_redis_counted(&result, protocol, &server);
        }
    }
}

#[test]
fn both_dialects_of_redis_are_counted_behind_tls_too() {
    let files = Certificates::make();
    for protocol in ["resp2", "resp3"] {
        let (server, secured) = Redis::start_tls(&files);
        let options = format!("--mix {RESP_OPS} --tls --tls-ca {} --tls-server-name localhost", files.ca());
        let result = verified(&secured, protocol, 4, &options);
        assert_redis_counted(&result, protocol, &server);
        assert!(result.number("connections/handshake_us/min") > 0.0);
        let wrong = pummel(&format!("run -s {secured} --protocol {protocol} -n 10 -v --tls")).expect(1);
        assert!(wrong.json().text("reason").contains("certificate"), "{}", wrong.text);
    }
}

#[test]
fn what_one_dialect_stored_the_others_read_byte_for_byte() {
    let server = Memcached::start();
    for writer in ["text", "meta", "binary"] {
        let prefix = format!("{writer}:");
        let load = format!(
            "load -s {} --protocol {writer} --key-prefix {prefix} --records 1000 --value-size uniform:1,3000",
            server.name
        );
        let loaded = pummel(&load).expect(0).json();
        let of = |what: &str| loaded.count(&format!("load/{what}"));
        assert_eq!((of("records"), of("stored"), of("errors")), (1_000, 1_000, 0), "{writer}");
        assert!(of("bytes") > 1_000_000, "{writer}");
        for reader in ["text", "meta", "binary"] {
            let read = format!(
                "run -s {} --protocol {reader} --key-prefix {prefix} --records 1000 --value-size uniform:1,3000 --no-load \
                 --verify 1 --mix get:1 --popularity sequential -n 1000 -v",
                server.name
            );
            let result = pummel(&read).expect(0).json();
            assert_eq!(result.count("verify/checked"), 1_000, "written by {writer}, read by {reader}");
        }
    }
}

#[test]
fn each_key_is_on_the_redis_server_that_has_its_slot() {
    let servers: Vec<Redis> = (0..3).map(|_| Redis::start(&[])).collect();
    let names: Vec<String> = servers.iter().map(Redis::name).collect();
    let words = format!(
        "run -s {} --protocol resp3 --route crc16 --records 3000 -c 4 -n 2000 --multiget 8 --mix get:4,set:1 --verify 1 \
         -v",
        names.join(",")
    );
    let ended = pummel(&words).expect(0);
    let result = ended.json();
    assert_eq!(result.count("totals/errors"), 0, "{}", ended.text);
    assert_eq!(result.count("ops/get/keys"), 8 * result.count("ops/get/requests"));
    assert_eq!((result.count("ops/get/misses"), result.count("verify/failed")), (0, 0));
    let sets: u64 = servers.iter().map(|server| server.counted()["set"]).sum();
    assert_eq!(sets, result.count("whole_run/ops/set/completed"));
    let asked: Vec<u64> = servers.iter().map(|server| server.counted()["set"]).collect();
    assert!(asked.iter().all(|&sets| sets > 800), "a third each: {asked:?}");
}

#[test]
fn a_multi_get_is_one_mget() {
    let server = Redis::start(&[]);
    let words = format!(
        "run -s {} --no-baseline --protocol resp3 --multiget 10 --mix get:1 --verify 1 -n 2000 -v",
        server.name()
    );
    let result = pummel(&words).expect(0).json();
    assert_eq!(server.counted().get("mget"), Some(&2_000));
    assert_eq!((result.count("ops/get/keys"), result.count("verify/checked")), (20_000, 20_000));
}

/// Reads the records that another dialect stored; every one of them has to be right.
#[track_caller]
fn assert_readable(server: &str, writer: &str, readers: &[&str], mix: &str) {
    for reader in readers {
        let read = format!(
            "run -s {server} --protocol {reader} --key-prefix {writer}: --records 1000 --value-size uniform:1,3000 \
             --no-load --verify 1 --mix {mix} --popularity sequential -n 1000 -v"
        );
        let result = pummel(&read).expect(0).json();
        assert_eq!(result.count("verify/checked"), 1_000, "written by {writer}, read by {reader}");
    }
}

#[test]
fn what_one_dialect_of_redis_stored_the_other_reads_byte_for_byte() {
    let server = Redis::start(&[]);
    let dialects = ["resp2", "resp3"];
    for writer in dialects {
        let records = format!("--key-prefix {writer}: --records 1000 --value-size uniform:1,3000 -v");
        let load = format!("load -s {} --protocol {writer} --mix get,hget {records}", server.name());
        let loaded = pummel(&load).expect(0).json();
        assert_eq!((loaded.count("load/records"), loaded.count("load/stored")), (2_000, 2_000), "{writer}");
        assert_readable(&server.name(), writer, &dialects, "get:1");
        assert_readable(&server.name(), writer, &dialects, "hget:1");
    }
}

#[test]
fn what_an_mset_stored_is_what_every_read_finds() {
    let server = Redis::start(&[]);
    let words = format!(
        "run -s {} --protocol resp3 --no-load --mix mset:1 --multiset 50 --popularity sequential --records 1000 \
         --key-prefix mset: --value-size uniform:1,3000 -n 20 -c 1 -v",
        server.name()
    );
    let result = pummel(&words).expect(0).json();
    assert_eq!((result.count("ops/mset/completed"), result.count("ops/mset/keys")), (20, 1_000));
    assert_readable(&server.name(), "mset", &["resp2"], "get:1");
}

#[test]
fn keys_that_replies_say_nothing_of_are_missed_by_the_servers_count() {
    let server = Redis::start(&[]);
    let run = |commands: &[&str], more: &[&str]| {
        let words = format!("run -s {} --protocol resp3 -n 8000 --no-baseline", server.name());
        let words: Vec<&str> = words.split_whitespace().collect();
        let named = commands.iter().flat_map(|command| ["--command", command]);
        let words: Vec<&str> = words.into_iter().chain(named).chain(more.iter().copied()).collect();
        Running::start_words(&words).end().expect(0)
    };
    let told = "evidence/untold_misses";
    let there = ["--load", "--records", "1000", "--mix", "length:3,get:1"];
    let ended = run(&["length=STRLEN __key__"], &there);
    assert_eq!(ended.json().count(&format!("{told}/misses")), 0);
    assert!(!ended.text.contains("did not exist"), "{}", ended.text);

    let nine_of_ten = "if i % 10 > 0 then redis.call('DEL', key) end";
    server.say(&format!("EVAL \"for i, key in ipairs(redis.call('KEYS', '*')) do {nine_of_ten} end\" 0"));
    let ended = run(&["length=STRLEN __key__"], &there[1..]);
    let result = ended.json();
    let lookups = result.count(&format!("{told}/lookups"));
    assert_eq!(lookups, result.count("ops/length/completed"));
    let share = result.count(&format!("{told}/misses")) as f64 / lookups as f64;
    assert!((0.85..0.95).contains(&share), "nine of ten keys do not exist: {share}");
    assert!(ended.text.contains("of the keys of 'length' did not exist"), "{}", ended.text);

    for (other, mix) in
        [("bit=GETBIT __key__ 7", "length:1,bit:1"), ("field=HGET h:__key__ a", "length:1,field:1")]
    {
        let ended = run(&["length=STRLEN __key__", other], &["--records", "1000", "--mix", mix]);
        assert_eq!(
            ended.json().at(told),
            &serde_json::Value::Null,
            "{other}: whose misses they are is not known"
        );
    }
}

/// Runs a command of the user's own, whose words may have blanks, against a Redis.
fn command(server: &Redis, command: &str, more: &str) -> Ended {
    let words = format!("run -s {} --protocol resp3 -n 2000 -v {more}", server.name());
    let words: Vec<&str> = words.split_whitespace().chain(["--command", command]).collect();
    Running::start_words(&words).end()
}

#[test]
fn a_command_of_the_users_own_is_carried_out_as_often_as_it_was_asked() {
    let kinds = [
        ("ZADD __key__ __number__ __value__", "zadd", "zset"),
        ("LPUSH __key__ __value__", "lpush", "list"),
        ("XADD __key__ * number __number__ value __value__", "xadd", "stream"),
        ("EVAL 'return redis.call(\"INCRBY\", KEYS[1], ARGV[1])' 1 __key__ __number__", "eval", "string"),
        ("fields=HSET own:__key__ f __value__", "hset", "hash"),
    ];
    for (template, name, kind) in kinds {
        let server = Redis::start(&[]);
        let result = command(&server, template, "--records 100").expect(0).json();
        let op = template.split_once('=').map_or(name, |(op, _)| op);
        assert_eq!(result.count(&format!("ops/{op}/completed")), 2_000, "{template}");
        assert_eq!(result.at("load"), &serde_json::Value::Null, "nothing is stored before: {template}");
        assert_eq!(server.counted().get(name), Some(&2_000), "{template}");
        let keys = server.say("KEYS *");
        let key = keys.lines().find(|line| line.contains("00000")).expect("a key");
        let said = server.say(&format!("TYPE {key}"));
        assert!(said.starts_with(&format!("+{kind}\r\n")), "{template}: {key} is {said}");
    }
}

#[test]
fn a_command_stands_beside_others_and_finds_what_loading_stored() {
    let server = Redis::start(&[]);
    let more = "--mix get:1,hset:1,command:2 --verify --load --records 500 -d 4";
    let result = command(&server, "STRLEN __key__", more).expect(0).json();
    assert_eq!(result.count("load/stored"), 1_500, "plain records, hashes, and those of the command");
    assert!(result.count("ops/strlen/completed") > 800 && result.count("verify/checked") > 300);
    let own = result.count("ops/strlen/outcomes/number");
    assert_eq!(own, result.count("ops/strlen/completed"), "the length is a number");
    assert_eq!(result.count("totals/errors"), 0);
}

#[test]
fn commands_are_operations_of_their_own_with_hits_where_replies_tell_them() {
    let server = Redis::start(&[]);
    let words =
        format!("run -s {} --no-baseline --protocol resp3 --records 100 -c 50 -d 4 -v", server.name());
    let run = |more: &[&str]| {
        let words = words.split_whitespace().chain(more.iter().copied()).collect::<Vec<_>>();
        Running::start_words(&words).end().expect(0)
    };
    let push = ["-n", "2000", "--command", "push=RPUSH __key__ __int:1-9__:__seq__"];
    let range = ["--command", "LRANGE __key__ 0 9", "--command", "LRANGE __key2__:none 0 9"];
    let ended =
        run(&[&push[..], &range, &["--mix", "push:2,lrange:1,lrange-2:1,get:1", "--mix-order", "turns"]]
            .concat());
    let result = ended.json();
    // Each of the 50 clients asks 40 requests, which are eight rounds.
    let counted = server.counted();
    for (name, requests) in [("push", 800), ("lrange", 400), ("lrange-2", 400), ("get", 400)] {
        assert_eq!(result.count(&format!("ops/{name}/completed")), requests, "{name}");
        assert!(ended.text.contains(name), "{}", ended.text);
    }
    assert_eq!((counted.get("rpush"), counted.get("lrange")), (Some(&800), Some(&800)));
    assert_eq!(result.count("ops/push/hits") + result.count("ops/push/misses"), 0, "RPUSH does not tell");
    let looked_up = result.count("ops/lrange/hits") + result.count("ops/lrange/misses");
    assert!(looked_up == 400 && result.count("ops/lrange/hits") > 200, "{looked_up}");
    assert_eq!(result.count("ops/lrange-2/misses"), 400, "no such key is stored");
    let stats = server.say("INFO stats");
    let stat = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|count| count.parse::<u64>().ok()).expect("the server counts it")
    };
    let own = |what: &str| {
        ["lrange", "lrange-2", "get"].map(|op| result.count(&format!("ops/{op}/{what}"))).iter().sum::<u64>()
    };
    assert_eq!((own("hits"), own("misses")), (stat("keyspace_hits"), stat("keyspace_misses")));
}

#[test]
fn errors_of_a_command_are_counted_with_the_servers_words() {
    let server = Redis::start(&[]);
    let ended = command(&server, "BLUBB __key__", "--records 10").expect(1);
    let result = ended.json();
    assert_eq!(result.count("ops/blubb/errors/protocol"), 2_000);
    assert!(ended.text.contains("ERR unknown command 'BLUBB'"), "{}", ended.text);
    let server = Redis::start(&[]);
    command(&server, "SADD __key__ x", "--records 10").expect(0);
    let more = "--records 10 --mix command:1,version:2 --popularity sequential";
    let ended = command(&server, "own=INCR __key__", more).expect(0);
    let result = ended.json();
    let asked = result.count("ops/own/requests");
    assert!(asked > 500, "{asked}");
    assert_eq!(result.count("ops/own/errors/client"), asked);
    assert!(ended.text.contains("WRONGTYPE"), "{}", ended.text);
}

#[test]
fn every_connection_selects_the_database() {
    let server = Redis::start(&["--databases", "4"]);
    for protocol in ["resp2", "resp3"] {
        let run = |database: u32| {
            let words = "--records 100 -n 500 -c 5 -v --mix get:1 --verify";
            pummel(&format!("run -s {} --protocol {protocol} --database {database} {words}", server.name()))
        };
        assert_eq!(run(3).expect(0).json().count("ops/get/misses"), 0);
        let refused = run(4).expect(1).json();
        assert!(refused.text("reason").contains("DB index is out of range"), "{}", refused.text("reason"));
        let keys = server.say("INFO keyspace");
        assert!(keys.contains("db3:keys=100,") && !keys.contains("db0:"), "{keys}");
    }
}

/// Runs reads of the meta protocol with eight clients on this memcached.
fn meta(server: &Memcached, options: &str) -> Ended {
    let words = "-n 5000 -c 8 -d 4 --records 500 --verify -v";
    pummel(&format!("run -s {} --protocol meta {words} {options}", server.name)).expect(0)
}

#[test]
fn a_read_that_vivifies_makes_its_client_store_the_key() {
    let server = Memcached::start();
    let ended = meta(&server, "--no-load --mix get:1 --vivify 60");
    let result = ended.json();
    let wins = result.count("ops/get/outcomes/win");
    let read = server.connect().stats().get("curr_items");
    assert_eq!(
        wins, read,
        "each record that was read is won once: a record can be drawn by none of 5,000 reads"
    );
    assert!(wins > 450, "{wins} of 500 records were read");
    assert_eq!(wins, result.count("ops/set/outcomes/stored"));
    let (hits, misses) = (result.count("ops/get/hits"), result.count("ops/get/misses"));
    assert_eq!(misses, wins + result.count("ops/get/outcomes/recaching"), "an empty place is no hit");
    assert_eq!(hits + misses, 5_000);
    let said = format!("Renewals     {wins} won, and stored by the client that won");
    assert!(ended.text.contains(&said), "{}", ended.text);
}

#[test]
fn a_read_of_what_expires_soon_makes_its_client_renew_it() {
    let result = meta(&Memcached::start(), "--mix get:1 --ttl 100 --recache 200").json();
    let wins = result.count("ops/get/outcomes/win");
    assert!(wins > 500, "{wins}: what was renewed expires as soon");
    assert_eq!(wins, result.count("ops/set/outcomes/stored"));
    assert_eq!(result.count("ops/get/hits"), 5_000);
    let result = meta(&Memcached::start(), "--mix get:1 --ttl 200 --recache 100").json();
    assert_eq!(result.count("ops/get/outcomes/win"), 0, "nothing expires soon");
}

#[test]
fn a_delete_that_marks_as_stale_makes_one_reader_renew() {
    let result =
        meta(&Memcached::start(), "--mix get:9,gets:2,cas:1,delete:1 --stale 100 --meta-details").json();
    let of = |path: &str| result.count_or_none(&format!("ops/{path}"));
    assert!(of("get/outcomes/win") > 50);
    assert_eq!(of("delete/completed"), of("delete/outcomes/deleted"), "nothing is ever gone");
    assert_eq!(of("get/misses") + of("gets/misses"), 0);
    let wins = of("get/outcomes/win") + of("gets/outcomes/win");
    assert!(of("set/outcomes/stored") + of("cas/completed") >= wins, "{wins}");
}

/// Listens, and answers these bytes to whatever comes; ends with the test.
fn parrot(reply: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let name = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut heard = [0; 4096];
            // A client that goes away ends the talk.
            while stream.read(&mut heard).is_ok_and(|count| count > 0) && stream.write_all(reply).is_ok() {}
        }
    });
    name
}

#[test]
fn an_answer_of_another_kind_is_no_completed_request() {
    // A reply to a set of the binary protocol, for the first request.
    const BINARY_SET: &[u8] = b"\x81\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let cases: [(&str, &[u8], &str); 6] = [
        ("text", b"STORED\r\n", "get:1"),
        ("text", b"VALUE a 0 1\r\nx\r\nEND\r\n", "set:1"),
        ("meta", b"STORED\r\n", "get:1"),
        ("binary", BINARY_SET, "get:1"),
        ("resp2", b":1\r\n", "get:1"),
        ("resp2", b"+OK\r\n", "touch:1"),
    ];
    for (protocol, reply, mix) in cases {
        let words = format!("run -s {} --protocol {protocol} --no-load --mix {mix}", parrot(reply));
        let result = pummel(&format!("{words} -c 1 -n 10 -v")).expect(1).json();
        assert_eq!(result.count("totals/completed"), 0, "{protocol} {mix}");
        assert_eq!(
            result.count(&format!("ops/{}/errors/protocol", &mix[..mix.len() - 2])),
            1,
            "{protocol} {mix}"
        );
        let reason = result.text("reason");
        assert!(reason.contains("something else") || reason.contains("does not fit"), "{protocol}: {reason}");
    }
}

#[test]
fn an_answer_in_another_dialect_is_named_in_one_sentence() {
    let (redis, memcached) = (Redis::start(&[]), Memcached::start());
    let cases = [
        (redis.name(), "text", "RESP"),
        (redis.name(), "meta", "RESP"),
        (memcached.name.clone(), "resp2", "memcached's text protocol"),
        (memcached.name.clone(), "resp3", "memcached's text protocol"),
    ];
    for (server, protocol, named) in cases {
        let words = format!("run -s {server} --protocol {protocol} -t 1s -c 5 -v");
        let result = pummel(&words).expect(1).json();
        let reason = result.text("reason");
        assert!(reason.contains(named), "{protocol}: {reason}");
    }
}
