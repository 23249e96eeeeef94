//! Several runs of one configuration, two sides by turns, and stored results beside each other.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod common;

use std::net::TcpStream;

use common::{Ended, Memcached, Reserved, Running, Serve, pummel};
use serde_json::Value;

fn runs(ended: &Ended) -> Vec<Value> {
    ended.json().at("runs").as_array().expect("a list").clone()
}

/// Runs with words that may have blanks in them.
#[track_caller]
fn pummel_words(words: &[&str]) -> Ended {
    Running::start_words(words).end()
}

/// The common words of short runs against a server.
fn short<'a>(command: &'a str, server: &'a str) -> Vec<&'a str> {
    vec![command, "-s", server, "-n", "40", "--records", "20", "-c", "1", "--timeout", "10s"]
}

#[test]
fn each_repetition_is_a_run_of_its_own_and_records_are_stored_once() {
    let server = Memcached::start();
    let words = format!("run -s {} -n 200 --records 50 -c 4 --mix get:1 --seed 7 --repeat 6", server.name);
    let ended = pummel(&words).expect(0);
    let json = ended.json();
    assert_eq!((json.text("command"), json.text("status"), json.count("asked")), ("repeat", "complete", 6));
    let runs = runs(&ended);
    let seeds: std::collections::BTreeSet<u64> = runs.iter().filter_map(|run| run["seed"].as_u64()).collect();
    assert_eq!((runs[0]["seed"].as_u64(), seeds.len()), (Some(7), 6));
    assert!(runs.iter().all(|run| run["requests"] == 200), "{runs:?}");
    assert_eq!(server.connect().stats().get("cmd_set"), 50);
    assert!(
        ended.text.contains("6 runs of") && ended.text.contains("server not restarted"),
        "{}",
        ended.text
    );
    assert!(ended.text.contains("95 % interval of the median of 6 runs"), "{}", ended.text);
    let median = json.at("figures")["rate"]["median"].as_f64().expect("a rate");
    let [low, high] = [0, 1].map(|end| json.at("figures")["rate"]["ci"][end].as_f64().expect("an end"));
    assert!(low <= median && median <= high, "{low} {median} {high}");
}

#[test]
fn a_server_that_is_restarted_gets_its_records_again() {
    let server = Memcached::start();
    let words = ["--mix", "get:1", "--repeat", "3", "--restart", "true; true"];
    let ended = pummel_words(&[short("run", &server.name), words.to_vec()].concat()).expect(0);
    assert_eq!(server.connect().stats().get("cmd_set"), 3 * 20);
    assert!(ended.text.contains("restarted before each run"), "{}", ended.text);
    assert!(ended.text.contains("range of 3 runs, no interval"), "{}", ended.text);
    let failed =
        pummel_words(&[short("run", &server.name), vec!["--repeat", "3", "--restart", "exit 5"]].concat());
    assert!(failed.expect(1).errors.contains("--restart 'exit 5'"));
}

#[test]
fn an_interrupt_keeps_the_runs_that_are_there() {
    let server = Memcached::start();
    for words in [
        format!("run -s {} -n 100 --records 20 -c 2 --repeat 1000", server.name),
        format!("ab -s {0} --versus {0} -n 2000 --records 20 -c 2 --pairs 50 --timeout 10s", server.name),
    ] {
        let mut running = Running::start(&words);
        running.wait_for(if words.starts_with("run") { "run 3 of 1000" } else { "pair 3 of 50" });
        assert!(running.path("result.json").exists(), "no checkpoint");
        running.process.interrupt();
        let ended = running.end().expect(130);
        assert_eq!(ended.json().text("status"), "interrupted");
        assert!(runs(&ended).len() >= 2, "{}", ended.errors);
        assert!(ended.text.contains("Not complete: "), "{}", ended.text);
    }
}

#[test]
fn what_means_nothing_for_several_runs_is_refused_before_the_first() {
    for (words, parts) in [
        ("run -s 127.0.0.1:1 --repeat 1", ["--repeat", "from 2 to 1000"]),
        ("run -s 127.0.0.1:1 --restart true", ["--restart", "--repeat"]),
        ("run -s 127.0.0.1:1 --repeat 2 --hdr x.hlog", ["--hdr", "one run only"]),
        ("run -s 127.0.0.1:1 --repeat 2 --interval 1s", ["--interval", "--repeat"]),
        ("ab -s 127.0.0.1:1", ["--versus", "--a-program"]),
        ("ab -s 127.0.0.1:1 --versus 127.0.0.1:2 --samples x.csv", ["--samples", "one run only"]),
        ("ab -s 127.0.0.1:1 --versus 127.0.0.1:2 --worse p98:1%", ["--worse", "p99.9"]),
        ("compare /nowhere/a.json /nowhere/b.json", ["/nowhere/a.json", "cannot be read"]),
        ("compare /dev/null", ["/dev/null", "not the JSON result"]),
    ] {
        let ended = pummel(words).expect(2);
        for part in parts {
            assert!(ended.errors.contains(part), "{words} does not say {part:?}: {}", ended.errors);
        }
        assert_eq!(ended.text, "", "{words}");
    }
}

#[test]
fn a_goal_that_one_repetition_misses_is_missed() {
    let server = Serve::start("--service-time 2ms");
    let words = format!("run -s {} -n 20 --records 5 -c 1 --repeat 2 --goal p50:1ms", server.name);
    let ended = pummel(&words).expect(3);
    assert!(ended.text.contains("A goal was MISSED in 2 of 2 runs"), "{}", ended.text);
}

#[test]
fn a_slower_server_is_found_and_fails_the_gate() {
    let [quick, slow] = ["500us", "4ms"].map(|time| Serve::start(&format!("--service-time {time}")));
    let words = [
        "--versus", &slow.name, "--pairs", "6", "--metric", "p50", "--worse", "p50:50%", "--within",
        "rate:99%",
    ];
    let ended = pummel_words(&[short("ab", &quick.name), words.to_vec()].concat()).expect(3);
    let line = ended.text.lines().find(|line| line.starts_with("p50 ")).expect("a line");
    assert!(line.contains("% slower (") && line.ends_with("6 pairs, p = 0.031"), "{}", ended.text);
    assert!(ended.text.contains("--worse p50:50%: FAILED"), "{}", ended.text);
    let json = ended.json();
    let p50 = &json.at("figures")["p50"];
    assert_eq!((&p50["word"], &p50["judged"]), (&"differ".into(), &true.into()));
    assert_eq!(json.at("claims")[0]["outcome"], "failed");
    let runs = runs(&ended);
    for pair in 0..6 {
        let of = |side: &str| {
            let run = runs.iter().find(|run| run["pair"] == pair && run["side"] == side);
            run.expect("each pair has both sides").clone()
        };
        assert_eq!(of("a")["seed"], of("b")["seed"], "the runs of a pair share their seed");
    }
    // Both orders are there.
    let started = |side: &str, pair: u64| {
        let run = runs.iter().find(|run| run["pair"] == pair && run["side"] == side).expect("a run");
        run["started_unix_s"].as_f64().expect("a time")
    };
    let first = (0..6).filter(|pair| started("a", *pair) < started("b", *pair)).count();
    assert_eq!(first, 3);

    // The stored result says it again, and can be held to something else.
    let stored = ended.path("result.json");
    let again = pummel_words(&["compare", stored.to_str().expect("UTF-8"), "--metric", "p50"]).expect(0);
    assert!(again.text.contains(line), "{}\n{}", again.text, ended.text);
    let held = pummel_words(&["compare", stored.to_str().expect("UTF-8"), "--worse", "p50:100000%"]);
    assert!(held.expect(2).errors.contains("--worse"), "that is no change");
    let held = pummel_words(&["compare", stored.to_str().expect("UTF-8"), "--worse", "p50:10000%"]).expect(0);
    assert!(held.text.contains("passed"), "{}", held.text);
}

#[test]
fn sides_may_differ_in_options_and_few_pairs_are_not_judged() {
    let server = Serve::start("");
    let words = ["--a", "-d 1", "--b", "-d 8", "--pairs", "2", "--worse", "rate:5%", "--csv", "runs.csv"];
    let ended = pummel_words(&[short("ab", &server.name), words.to_vec()].concat()).expect(1);
    assert!(ended.text.contains("2 runs a side: 6 or more are needed"), "{}", ended.text);
    assert!(ended.text.contains("plan.groups.0.depth") && ended.text.contains("A  -d 1\n"), "{}", ended.text);
    assert_eq!(ended.file("runs.csv").lines().count(), 5);
}

#[test]
fn servers_are_started_for_each_run_and_ended_after_it() {
    let place = Reserved::new();
    let serve = |more: &str| {
        format!("'{}' serve --listen {} --max-seconds 60 {more}", env!("CARGO_BIN_EXE_pummel"), place.name)
    };
    let (quick, slow) = (serve(""), serve("--service-time 4ms"));
    let words = ["--a-program", &quick, "--b-program", &slow, "--pairs", "6", "--metric", "p50"];
    let ended = pummel_words(&[short("ab", &place.name), words.to_vec()].concat()).expect(0);
    let line = ended.text.lines().find(|line| line.starts_with("p50 ")).expect("a line");
    assert!(line.contains("% slower ("), "{}", ended.text);
    assert!(TcpStream::connect(&place.name).is_err(), "a server is left");
    let broken = ["--a-program", &quick, "--b-program", "sh -c 'echo no luck >&2; exit 3'", "--pairs", "2"];
    let ended = pummel_words(&[short("ab", &place.name), broken.to_vec()].concat()).expect(1);
    assert!(ended.errors.contains("exit status: 3") && ended.errors.contains("no luck"), "{}", ended.errors);
    assert!(TcpStream::connect(&place.name).is_err(), "a server is left");
}

#[test]
fn stored_runs_of_one_side_after_the_other_are_never_called_different() {
    let [quick, slow] = ["", "--service-time 2ms"].map(Serve::start);
    let repeated =
        |server: &str| pummel_words(&[short("run", server), vec!["--repeat", "6"]].concat()).expect(0);
    let (first, second) = (repeated(&quick.name), repeated(&slow.name));
    let [first, second] = [&first, &second].map(|ended| ended.path("result.json").display().to_string());
    let gated = pummel_words(&["compare", &first, &second, "--worse", "p50:10%"]).expect(1);
    assert!(
        gated.text.contains("A was measured before B: a slower hour would look the same"),
        "{}",
        gated.text
    );
    assert!(gated.text.contains("plan.servers"), "{}", gated.text);
    assert_eq!(gated.json().at("paired"), &Value::Bool(false));
    let accepted = ["compare", &first, &second, "--worse", "p50:10%", "--accept-order"];
    assert!(pummel_words(&accepted).expect(3).text.contains("6 runs a side, p = "), "it is accepted");
}

#[test]
fn two_single_runs_are_shown_and_not_judged() {
    let server = Serve::start("");
    let one = |_| pummel_words(&short("run", &server.name)).expect(0);
    let ended = [0, 1].map(one);
    let [first, second] = ended.each_ref().map(|ended| ended.path("result.json").display().to_string());
    let compared = pummel_words(&["compare", &first, &second]).expect(0);
    assert!(compared.text.contains("Two runs; whether the systems differ is not known"), "{}", compared.text);
    // A result is no side beside one of another load.
    let other = pummel_words(&[short("run", &server.name), vec!["-d", "4"]].concat()).expect(0);
    let both = format!("{first},{}", other.path("result.json").display());
    let mixed = pummel_words(&["compare", &both, &second]).expect(1);
    assert!(mixed.errors.contains("not runs of one side"), "{}", mixed.errors);
}
