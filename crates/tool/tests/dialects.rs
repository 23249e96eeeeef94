//! Every protocol against the real servers that speak it: what was counted, what was checked, and who may come in.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use common::{Ended, Memcached, pummel, until};

const MEMCACHED_OPS: &str = "get:4,gets:1,gat:1,set:2,add:1,replace:1,append:1,prepend:1,cas:1,incr:1,decr:1,delete:1,\
     touch:1,version:1";

const RESP_OPS: &str = "get:4,gat:1,set:2,add:1,replace:1,append:1,incr:1,decr:1,delete:1,touch:1,version:1";

/// A redis-server of its own, which ends with this value, and with the test.
struct Redis {
    process: Child,
    port: u16,
}

impl Redis {
    fn start(options: &[&str]) -> Redis {
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
            free.local_addr().expect("it is bound").port()
        };
        let process = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "redis-server",
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .args(["--port", &port.to_string()])
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .expect("setpriv and redis-server are installed (apt-get install util-linux redis-server)");
        until("redis-server", || TcpStream::connect(("127.0.0.1", port)).ok());
        Redis { process, port }
    }

    fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How often it carried out each command, as `INFO commandstats` says.
    fn counted(&self) -> BTreeMap<String, u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.write_all(b"INFO commandstats\r\nQUIT\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers and closes");
        let line = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split_once(',')?.0.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A verified run of every operation that ended well.
fn verified(server: &str, protocol: &str, depth: u32, mix: &str) -> Ended {
    let words = format!(
        "run -s {server} --protocol {protocol} -n 20k -c 10 -T 2 -d {depth} --verify 1 --mix {mix} --ttl 1000 --quiet"
    );
    let ended = pummel(&words).expect(0);
    let result = ended.json();
    assert!(result.count("verify/checked") > 5_000, "{protocol}, depth {depth}");
    assert_eq!(result.count("verify/failed") + result.count("verify/stale"), 0, "{protocol}, depth {depth}");
    assert_eq!(result.count("totals/errors"), 0, "{protocol}, depth {depth}: {}", ended.text);
    ended
}

#[test]
fn memcached_reads_and_writes_the_same_in_all_its_dialects() {
    for protocol in ["text", "meta", "binary"] {
        for depth in [1, 16] {
            verified(&Memcached::start().name, protocol, depth, MEMCACHED_OPS);
        }
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
        pummel(&load).expect(0);
        for reader in ["text", "meta", "binary"] {
            let read = format!(
                "run -s {} --protocol {reader} --key-prefix {prefix} --records 1000 --value-size uniform:1,3000 --no-load \
                 --verify 1 --mix get:1 --popularity sequential -n 1000 --quiet",
                server.name
            );
            let result = pummel(&read).expect(0).json();
            assert_eq!(result.count("verify/checked"), 1_000, "written by {writer}, read by {reader}");
        }
    }
}

#[test]
fn whole_run_equals_what_redis_has_counted() {
    for protocol in ["resp2", "resp3"] {
        for depth in [1, 16] {
            let server = Redis::start(&[]);
            let ended = verified(&server.name(), protocol, depth, RESP_OPS);
            let (result, counted) = (ended.json(), server.counted());
            let of = |op: &str| result.count_or_none(&format!("whole_run/ops/{op}/completed"));
            let asked = [
                ("get", of("get")),
                ("getex", of("gat")),
                ("set", of("set") + of("add") + of("replace")),
                ("append", of("append")),
                ("incrby", of("incr")),
                ("decrby", of("decr")),
                ("del", of("delete")),
                ("expire", of("touch")),
                ("ping", of("version")),
                ("hello", if protocol == "resp3" { 10 } else { 0 }),
            ];
            for (command, asked) in asked {
                let counted = counted.get(command).copied().unwrap_or(0);
                assert_eq!(asked, counted, "{command} in {protocol}, depth {depth}");
            }
        }
    }
}

#[test]
fn a_multi_get_is_one_mget() {
    let server = Redis::start(&[]);
    let words = format!(
        "run -s {} --protocol resp3 --multiget 10 --mix get:1 --verify 1 -n 2000 --quiet",
        server.name()
    );
    let result = pummel(&words).expect(0).json();
    assert_eq!(server.counted().get("mget"), Some(&2_000));
    assert_eq!((result.count("ops/get/keys"), result.count("verify/checked")), (20_000, 20_000));
}

#[test]
fn a_user_comes_in_with_the_password_and_not_without() {
    let server = Redis::start(&["--requirepass", "right"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |password: &str| {
        let path = folder.path().join(password);
        std::fs::write(&path, format!("{password}\n")).expect("it is writable");
        path.display().to_string()
    };
    for protocol in ["resp2", "resp3"] {
        let run = |more: &str| {
            pummel(&format!("run -s {} --protocol {protocol} -n 500 -c 5 --quiet {more}", server.name()))
        };
        run(&format!("--user default --password-file {}", file("right"))).expect(0);
        let refused = run(&format!("--user default --password-file {}", file("wrong"))).expect(1).json();
        assert!(refused.text("reason").contains("WRONGPASS"), "{}", refused.text("reason"));
        assert_eq!(refused.count("totals/requests"), 0);
        assert!(!refused.0.to_string().contains("right"), "no password stands in a result");
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
        let words = format!("run -s {server} --protocol {protocol} -t 1s -c 5 --quiet");
        let result = pummel(&words).expect(1).json();
        let reason = result.text("reason");
        assert!(reason.contains(named), "{protocol}: {reason}");
    }
}
