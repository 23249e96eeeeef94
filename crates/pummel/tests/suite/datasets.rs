//! Commands whose places are filled from the rows of a file, and commands that call a script, on redis-server.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::common::redis::{Monitor, Redis};
use crate::common::{Ended, Running, Serve};

fn pummel_words(words: &[&str]) -> Ended {
    Running::start_words(words).end()
}

/// A file of a folder of its own with this content.
fn file(name: &str, content: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, content).expect("it is written");
    (folder, path)
}

#[test]
fn a_client_takes_the_rows_of_a_file_in_their_order() {
    let redis = Redis::start(&[]);
    let (_folder, path) =
        file("users.csv", "id,name,text\nu1,Ada,\"a, b\"\nu2,Bob,\nu3,Cyd,\"x \"\"y\"\"\"\n");
    let mut monitor = Monitor::of(&redis);
    let path = path.to_str().expect("UTF-8");
    let command = "row=HSET __field:id__ name __field:name__ text <__field:text__>";
    let words = ["run", "-s", &redis.name(), "--protocol", "resp2", "--no-baseline", "-c", "1", "-n", "7"];
    let rest =
        ["--dataset", path, "--command", command, "--command", "other=GET __key__", "--mix-order", "turns"];
    let result = pummel_words(&[&words[..], &rest[..]].concat()).expect(0).json();
    assert_eq!(result.count("ops/row/requests") + result.count("ops/other/requests"), 7);
    let rows = [
        r#""u1" "name" "Ada" "text" "<a, b>""#,
        r#""u2" "name" "Bob" "text" "<>""#,
        r#""u3" "name" "Cyd" "text" "<x \"y\">""#,
        r#""u1" "name" "Ada" "text" "<a, b>""#,
    ];
    assert_eq!(monitor.commands("HSET", 4), rows, "requests of other commands take no row");
}

#[test]
fn clients_begin_at_rows_of_their_own_and_a_load_stores_each_record_with_its_row() {
    let redis = Redis::start(&[]);
    let lines: String = (0..100).map(|row| format!("{{\"n\":{row},\"twice\":\"{}\"}}\n", 2 * row)).collect();
    let (_folder, path) = file("rows.jsonl", &lines);
    let path = path.to_str().expect("UTF-8");
    let words = ["run", "-s", &redis.name(), "--protocol", "resp3", "--no-baseline", "--dataset", path];
    let set = "own=SET row:__field:n__ __field:twice__";
    let load = "SET __key__ __number__:__field:n__:__field:twice__";
    let rest = ["-c", "4", "-n", "100", "--command", set, "--load-command", load, "--records", "150"];
    let result = pummel_words(&[&words[..], &rest[..]].concat()).expect(0).json();
    assert_eq!((result.count("load/stored"), result.count("totals/errors")), (150, 0));
    // 25 requests of each of four clients, if they are equally fast; no client repeats a row before it has taken all.
    let stored = redis.say("EVAL \"local n = 0; for _, k in ipairs(redis.call('keys', 'row:*')) do if tonumber(redis.call('get', k)) ~= 2 * tonumber(k:sub(5)) then return -1 end n = n + 1 end return n\" 0");
    let count: i64 =
        stored.trim_start_matches(':').lines().next().and_then(|line| line.parse().ok()).expect("a number");
    assert!(count >= 26, "{count} rows: four clients began at four rows");
    let wrong = redis.say("EVAL \"local w = 0; for _, k in ipairs(redis.call('keys', '*')) do if k:sub(1, 4) ~= 'row:' then local n, r, t = redis.call('get', k):match('(%d+):(%d+):(%d+)'); if tonumber(n) % 100 ~= tonumber(r) or 2 * r ~= tonumber(t) then w = w + 1 end end end return w\" 0");
    assert!(wrong.starts_with(":0\r\n"), "{wrong}");
}

#[test]
fn a_script_that_a_server_has_lost_is_loaded_again_and_costs_no_request() {
    let redis = Redis::start(&[]);
    let (_folder, path) = file("add.lua", "return redis.call('INCRBY', KEYS[1], ARGV[1])\n");
    let path = path.to_str().expect("UTF-8");
    let name = redis.name();
    let words = ["run", "-s", &name, "--protocol", "resp2", "--script", path, "-c", "4", "-d", "4"];
    let sequence = "two=GET __key__ ; EVALSHA __script__ 1 {__key__}:n 1";
    let rest = ["-n", "40000", "--command", "plus=EVALSHA __script__ 1 {__key__}:n 1", "--command", sequence];
    let is_over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                redis.say("SCRIPT FLUSH");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let ended = pummel_words(&[&words[..], &rest[..]].concat());
        is_over.store(true, Ordering::Relaxed);
        ended.expect(0).json()
    });
    assert_eq!((result.count("totals/completed"), result.count("totals/errors")), (40_000, 0));
    let retries = result.count("retry/retries/noscript");
    assert!(retries > 0, "the script was lost in the run");
    assert!(result.count("retry/recovered") > 0 && result.count("retry/given_up/noscript") == 0);
    let sum = redis.say("EVAL \"local s = 0; for _, k in ipairs(redis.call('keys', '*')) do s = s + redis.call('get', k) end return s\" 0");
    // Those of the baseline added too.
    let sum: u64 =
        sum.trim_start_matches(':').lines().next().and_then(|line| line.parse().ok()).expect("a number");
    assert!((40_000..42_000).contains(&sum), "each request was carried out once: {sum}");
}

#[test]
fn what_fills_no_place_or_cannot_be_read_is_refused_with_the_reason() {
    let (_folder, csv) = file("a.csv", "id,name\n1,a\n2\n");
    let (_other, lua) = file("bad.lua", "return (");
    let (csv, lua) = (csv.to_str().expect("UTF-8"), lua.to_str().expect("UTF-8"));
    let field = "x=SET __field:id__ 1";
    let script = "x=EVALSHA __script__ 1 __key__";
    for (words, why) in [
        (&["--protocol", "resp2", "--command", field][..], "--dataset FILE"),
        (&["--protocol", "resp2", "--command", "x=PING", "--dataset", csv], "__field:NAME__"),
        (&["--protocol", "text", "--dataset", csv], "resp2 or resp3"),
        (&["--protocol", "resp2", "--command", field, "--dataset", "a.txt"], ".jsonl"),
        (&["--protocol", "resp2", "--command", script], "--script FILE"),
        (&["--protocol", "resp2", "--command", "x=PING", "--script", lua], "__script__"),
        (&["--protocol", "resp2", "--command", script, "--script", "/nowhere.lua"], "a file with a script"),
        (&["--protocol", "text", "--script", lua], "resp2 or resp3"),
        (&["--protocol", "resp2", "--command", field, "--dataset", csv, "--cluster"], "slot"),
        (
            &["--protocol", "resp2", "--command", script, "--script", lua, "--conn-rate", "10"],
            "comes and goes",
        ),
        (&["--protocol", "resp2", "--dataset-order", "random"], "--dataset"),
    ] {
        let refused = pummel_words(&[&["run", "-s", "localhost"][..], words].concat()).expect(2);
        assert!(refused.errors.contains(why), "{words:?}: {}", refused.errors);
    }
    let server = Serve::start("--protocol auto");
    let words = ["run", "-s", &server.name, "--protocol", "resp2", "-n", "10", "--dataset", csv];
    let cut = pummel_words(&[&words[..], &["--command", field]].concat());
    assert!(cut.errors.contains("line 3") && cut.errors.contains("a.csv"), "{}", cut.errors);
    let absent = pummel_words(&[&words[..], &["--command", "x=SET __field:nmae__ 1"]].concat());
    assert!(absent.errors.contains("the nearest is 'name'"), "{}", absent.errors);
    let redis = Redis::start(&[]);
    let name = redis.name();
    let words = ["run", "-s", &name, "--protocol", "resp2", "-n", "10", "--script", lua, "--command", script];
    let refused = pummel_words(&words);
    assert!(
        refused.errors.contains("bad.lua") && refused.errors.contains("Error compiling"),
        "{}",
        refused.errors
    );
    assert!(!redis.counted().contains_key("evalsha"), "nothing was asked");
}
