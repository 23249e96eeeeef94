//! Several runs of one configuration, two sides by turns, and stored results beside each other.

use std::net::TcpStream;
use std::process::Command;

use crate::common::{Ended, Memcached, Reserved, Running, Serve, flat, in_some_quiet_moment, pummel};
use serde_json::Value;

fn runs(ended: &Ended) -> Vec<Value> {
    ended.json().at("runs").as_array().expect("a list").clone()
}

/// The runs of both sides of an experiment.
fn pairs(ended: &Ended) -> [Vec<Value>; 2] {
    let of = |side: usize| ended.json().at("sides")[side]["runs"].as_array().expect("a list").clone();
    [of(0), of(1)]
}

/// Runs with words that may have blanks in them.
#[track_caller]
fn pummel_words(words: &[&str]) -> Ended {
    Running::start_words(words).end()
}

/// The words of runs whose requests come seldom and take the server long, so that a busy machine is no limit of theirs.
fn slow<'a>(command: &'a str, server: &'a str) -> Vec<&'a str> {
    [of_forty(command, server), vec!["-c", "8", "--rate", "150"]].concat()
}

/// The common words of short runs against a server.
fn short<'a>(command: &'a str, server: &'a str) -> Vec<&'a str> {
    [of_forty(command, server), vec!["-c", "1"]].concat()
}

fn of_forty<'a>(command: &'a str, server: &'a str) -> Vec<&'a str> {
    vec![command, "-s", server, "-n", "40", "--records", "20", "--timeout", "10s"]
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
    assert!(ended.text.contains("6 runs of ") && ended.text.contains("\nmedian "), "{}", ended.text);
    assert!(ended.text.contains("\n  95 % sure "), "{}", ended.text);
    assert_eq!(json.at("restarted"), &Value::Bool(false));
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
    assert_eq!(ended.json().at("restarted"), &Value::Bool(true));
    assert!(ended.text.contains("3 runs have no interval: it takes 6"), "{}", ended.text);
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
        let made = if words.starts_with("run") { runs(&ended) } else { pairs(&ended).concat() };
        assert!(made.len() >= 2, "{}", ended.errors);
        assert!(ended.text.contains("Result   INTERRUPTED after "), "{}", ended.text);
    }
}

#[test]
fn what_means_nothing_for_several_runs_is_refused_before_the_first() {
    for (words, parts) in [
        ("run -s 127.0.0.1:1 --repeat 1", ["--repeat", "from 2 to 1000"]),
        ("run -s 127.0.0.1:1 --restart true", ["--restart", "--repeat"]),
        ("run -s 127.0.0.1:1 --repeat 2 --hdr x.hlog", ["--hdr", "one run only"]),
        ("run -s 127.0.0.1:1 --repeat 2 --interval 1s", ["--interval", "--repeat"]),
        ("run -s 127.0.0.1:1 --repeat 2 --stamps tx", ["--stamps", "--repeat"]),
        ("run -s 127.0.0.1:1 --repeat 2 --times", ["--times", "--repeat"]),
        ("ab -s 127.0.0.1:1 --versus 127.0.0.1:2 --stamps tx", ["--stamps", "pummel run"]),
        ("ab -s 127.0.0.1:1", ["--versus", "--a-program"]),
        ("ab -s 127.0.0.1:1 --versus 127.0.0.1:2 --samples x.csv", ["--samples", "one run only"]),
        ("ab -s 127.0.0.1:1 --versus 127.0.0.1:2 --worse p98:1%", ["--worse", "p99.9"]),
        ("compare /nowhere/a.json /nowhere/b.json", ["/nowhere/a.json", "No such file"]),
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
fn wrong_values_on_a_side_are_told_and_fail_the_comparison() {
    let [right, wrong] = ["", "--fault flip=20"].map(Serve::start);
    let sides = format!("ab -s {} --versus {} --pairs 2", right.name, wrong.name);
    let ended =
        pummel(&format!("{sides} -c 2 -n 100 --records 50 --protocol text --mix get:1 --verify")).expect(3);
    assert!(ended.text.contains("Result   WRONG VALUES"), "{}", ended.text);
    let wrong = pairs(&ended).map(|runs| {
        runs.iter().map(|run| run["wrong_values"].as_u64().expect("values were checked")).sum::<u64>()
    });
    assert!(wrong[0] == 0 && wrong[1] > 0, "{wrong:?}");
}

#[test]
fn a_goal_that_one_repetition_misses_is_missed() {
    let server = Serve::start("--service-time 2ms");
    let words = format!("run -s {} -n 20 --records 5 -c 1 --repeat 2 --goal p50:1ms", server.name);
    let ended = pummel(&words).expect(3);
    assert!(ended.text.contains("Result   GOAL MISSED"), "{}", ended.text);
    assert!(ended.text.contains("Goal     missed in both runs\n"), "{}", ended.text);
}

/// A comparison that found what it was to find. On a machine that gives it no CPU, the generator is the limit of a side, whose
/// figures are not comparable then. A machine that stalls may hide which side of a pair is the slower one.
fn judged(found: impl Fn(&Ended) -> bool, mut compare: impl FnMut() -> Ended) -> Ended {
    in_some_quiet_moment(|| {
        let ended = compare();
        let words = flat(&ended.text);
        let doubt = words.contains("pummel itself was the limit of") || words.contains("not comparable");
        if found(&ended) && !doubt { Ok(ended) } else { Err(format!("{}\n{}", ended.errors, ended.text)) }
    })
}

/// Row of a comparison with the medians of its sides.
fn of_medians(ended: &Ended) -> &str {
    ended.text.lines().find(|line| line.starts_with("p50 ")).unwrap_or_default()
}

/// Whether a comparison calls the second side slower by its median.
fn is_slower(ended: &Ended) -> bool {
    let words = flat(&ended.text);
    words.contains("p50 of B is ") && (words.contains(" % higher (") || words.contains(" times as high ("))
}

#[test]
fn a_slower_server_is_found_and_fails_the_gate() {
    let [quick, slow_server] = ["5ms", "25ms"].map(|time| Serve::start(&format!("--service-time {time}")));
    let words = [
        "--versus",
        &slow_server.name,
        "--pairs",
        "6",
        "--metric",
        "p50",
        "--worse",
        "p50:50%",
        "--within",
        "rate:99%",
    ];
    let is_found = |ended: &Ended| ended.status == 3 && is_slower(ended);
    let ended = judged(is_found, || pummel_words(&[slow("ab", &quick.name), words.to_vec()].concat()));
    let line = of_medians(&ended);
    assert!(ended.text.contains("Result   WORSE: p50 of B is "), "{}", ended.text);
    assert!(flat(&ended.text).contains("50 % were allowed; p = 0.031"), "{}", ended.text);
    let json = ended.json();
    let p50 = &json.at("figures")["p50"];
    assert_eq!((&p50["word"], &p50["judged"]), (&"differ".into(), &true.into()));
    assert_eq!(json.at("claims")[0]["outcome"], "failed");
    let [quick_runs, slow_runs] = pairs(&ended);
    assert_eq!((quick_runs.len(), slow_runs.len()), (6, 6));
    let both = || quick_runs.iter().zip(&slow_runs);
    assert!(both().all(|(a, b)| a["seed"] == b["seed"]), "the runs of a pair share their seed");
    // Both orders are there.
    let started = |run: &Value| run["started_unix_s"].as_f64().expect("a time");
    let first = both().filter(|(a, b)| started(a) < started(b)).count();
    assert_eq!(first, 3);

    // The stored result says it again, and can be held to something else.
    let stored = ended.path("result.json");
    let again = pummel_words(&["compare", stored.to_str().expect("UTF-8"), "--metric", "p50"]).expect(0);
    assert!(again.text.contains(line), "{}\n{}", again.text, ended.text);
    let held = pummel_words(&["compare", stored.to_str().expect("UTF-8"), "--worse", "p50:100000%"]);
    assert!(held.expect(2).errors.contains("--worse"), "that is no change");
    let held = pummel_words(&["compare", stored.to_str().expect("UTF-8"), "--worse", "p50:10000%"]).expect(0);
    assert!(flat(&held.text).contains("within the 10,000 % allowed"), "{}", held.text);
}

#[test]
fn sides_may_differ_in_options_and_few_pairs_are_not_judged() {
    let server = Serve::start("");
    let words = ["--a", "-d 1", "--b", "-d 8", "--pairs", "2", "--worse", "rate:5%", "--csv", "runs.csv"];
    let ended = pummel_words(&[short("ab", &server.name), words.to_vec()].concat()).expect(1);
    let said = "Result   NOT DECIDED: 2 pairs cannot show that the sides differ: it takes 6";
    assert!(ended.text.contains(said), "{}", ended.text);
    assert!(ended.text.starts_with("A  -d 1\nB  -d 8\n2 pairs of "), "{}", ended.text);
    assert_eq!(ended.file("runs.csv").lines().count(), 5);
}

#[test]
fn results_of_several_runs_have_a_page_and_are_shown_as_they_were_printed() {
    let server = Serve::start("");
    let repeat = [short("run", &server.name), vec!["--repeat", "2", "--report", "page.html"]].concat();
    let sides = ["--a", "-d 1", "--b", "-d 8", "--pairs", "2", "--report", "page.html"];
    let ab = [short("ab", &server.name), sides.to_vec()].concat();
    for (words, picture) in [(repeat, "times-t"), (ab, "run-times-t")] {
        let ended = pummel_words(&words).expect(0);
        ended.json();
        let page = ended.file("page.html");
        assert!(page.contains(&format!("<title id=\"{picture}\">")), "{page}");
        let result = ended.path("result.json").display().to_string();
        let path = ended.path("page.html").display().to_string();
        let printed = |words: &[&str], status: i32| -> [String; 2] {
            let output =
                Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).output().expect("pummel starts");
            assert_eq!(output.status.code(), Some(status), "{words:?}");
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"))
        };
        assert_eq!(printed(&["show", &result], 0)[0], ended.text);
        assert_eq!(printed(&["show", &path], 0)[0], ended.text, "a page holds its result");
        assert_eq!(printed(&["report", &result, "-o", "-"], 0)[0], page);
        let refused = &printed(&["show", &result, "--format", "hgrm"], 2)[1];
        assert!(refused.contains("keeps no histograms"), "{refused}");
    }
}

#[test]
fn servers_are_started_for_each_run_and_ended_after_it() {
    let place = Reserved::new();
    let serve = |more: &str| {
        format!("'{}' serve --listen {} --max-seconds 60 {more}", env!("CARGO_BIN_EXE_pummel"), place.name)
    };
    let (quick, late) = (serve("--service-time 5ms"), serve("--service-time 25ms"));
    let words = ["--a-program", &quick, "--b-program", &late, "--pairs", "6", "--metric", "p50"];
    let is_found = |ended: &Ended| ended.status == 0 && is_slower(ended);
    judged(is_found, || pummel_words(&[slow("ab", &place.name), words.to_vec()].concat()));
    assert!(TcpStream::connect(&place.name).is_err(), "a server is left");
    let broken = ["--a-program", &quick, "--b-program", "sh -c 'echo no luck >&2; exit 3'", "--pairs", "2"];
    let ended = pummel_words(&[short("ab", &place.name), broken.to_vec()].concat()).expect(1);
    assert!(ended.errors.contains("exit status: 3") && ended.errors.contains("no luck"), "{}", ended.errors);
    assert!(TcpStream::connect(&place.name).is_err(), "a server is left");
}

#[test]
fn stored_runs_of_one_side_after_the_other_are_never_called_different() {
    let [quick, late] = ["--service-time 5ms", "--service-time 25ms"].map(Serve::start);
    let repeated =
        |server: &str| pummel_words(&[slow("run", server), vec!["--repeat", "6"]].concat()).expect(0);
    let mut sides = None;
    let is_failed = |accepted: &Ended| accepted.status == 3;
    let accepted = judged(is_failed, || {
        let (first, second) = (repeated(&quick.name), repeated(&late.name));
        let files = [&first, &second].map(|ended| ended.path("result.json").display().to_string());
        let words = ["compare", &files[0], &files[1], "--worse", "p50:10%", "--accept-order"];
        let accepted = pummel_words(&words);
        sides = Some((first, second, files));
        accepted
    });
    let words = flat(&accepted.text);
    assert!(words.contains("6 runs a side of ") && words.contains("; p = "), "it is accepted");
    let (_first, _second, [first, second]) = sides.expect("both were measured");
    let gated = pummel_words(&["compare", &first, &second, "--worse", "p50:10%"]).expect(1);
    assert!(
        gated.text.contains("Order    A ran before B: a slower hour would look the same\n"),
        "{}",
        gated.text
    );
    assert!(gated.text.contains("Differs  --server 127.0.0.1:"), "{}", gated.text);
    assert_eq!(gated.json().text("design"), "apart");
}

#[test]
fn two_single_runs_are_shown_and_not_judged() {
    let server = Serve::start("");
    let one = |_| pummel_words(&short("run", &server.name)).expect(0);
    let ended = [0, 1].map(one);
    let [first, second] = ended.each_ref().map(|ended| ended.path("result.json").display().to_string());
    let compared = pummel_words(&["compare", &first, &second]).expect(0);
    let said = "Result   NOT DECIDED: one run a side cannot show that the systems differ";
    assert!(compared.text.contains(said), "{}", compared.text);
    let line = pummel_words(&["compare", &first, &second, "--quiet"]).expect(0);
    assert!(line.text.starts_with("NOT DECIDED rate A ") && line.text.lines().count() == 1, "{}", line.text);
    let whole = pummel_words(&["compare", &first, &second, "-v"]).expect(0);
    assert!(whole.text.contains("\nown CPU "), "{}", whole.text);
    // A result is no side beside one of another load.
    let other = pummel_words(&[short("run", &server.name), vec!["-d", "4"]].concat()).expect(0);
    let both = format!("{first},{}", other.path("result.json").display());
    let mixed = pummel_words(&["compare", &both, &second]).expect(1);
    assert!(mixed.errors.contains("not runs of one side"), "{}", mixed.errors);
}

#[test]
fn three_results_have_a_page_a_table_and_json() {
    let server = Serve::start("");
    let one = |more: &[&str]| {
        let ended = pummel_words(&[short("run", &server.name), more.to_vec()].concat()).expect(0);
        ended.json();
        ended
    };
    let ended = [one(&[]), one(&["--report", "page.html"]), one(&[])];
    let path = |ended: &Ended, name: &str| ended.path(name).display().to_string();
    let files =
        [path(&ended[0], "result.json"), path(&ended[1], "page.html"), path(&ended[2], "result.json")];
    let words = ["compare", &files[0], &files[1], &files[2], "-o", "compared.html"];
    let compared = pummel_words(&words).expect(0);
    assert!(
        compared.text.contains("\nC  ") && compared.text.contains("B to A           C   C to A\n"),
        "{}",
        compared.text
    );
    let page = compared.file("compared.html");
    for words in [
        "<h2>B against A</h2>",
        "<h2>C against A</h2>",
        "aria-labelledby=\"curves-t curves-d\"",
        "difference-t",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let json = crate::common::value_of(&compared.file("result.json"));
    assert_eq!(json["comparisons"][1]["names"][1], "C");
    let stored = path(&compared, "result.json");
    let printed = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pummel")).args(words).output().expect("pummel starts");
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert_eq!(printed(&["show", &stored]), compared.text);
    assert!(printed(&["report", &stored, "-o", "-"]).contains("<h2>C against A</h2>"));
    let table = pummel_words(&["compare", &files[0], &files[2], "--format", "markdown"]).expect(0);
    assert!(table.text.starts_with("### ") && table.text.contains("| rate | "), "{}", table.text);
    let many: Vec<&str> =
        std::iter::once("compare").chain(std::iter::repeat_n(files[0].as_str(), 9)).collect();
    pummel_words(&many).expect(2);
}

#[test]
fn requests_of_several_servers_are_told_apart() {
    let servers = ["", "--service-time 2ms"].map(Serve::start);
    let names = servers.each_ref().map(|server| server.name.clone()).join(",");
    let words = ["run", "-s", &names, "-n", "400", "--records", "20", "-c", "4", "--interval", "100ms"];
    let json = pummel_words(&words).expect(0).json();
    let each = json.at("servers").as_array().expect("a list").clone();
    let completed: u64 = each.iter().filter_map(|server| server["completed"].as_u64()).sum();
    assert_eq!((each.len(), completed), (2, json.count("totals/completed")));
    let p50 = |place: usize| each[place]["service_us"]["p50"].as_f64().expect("it is known");
    assert!(p50(1) >= 1_900.0 && p50(0) < p50(1), "{each:?}");
    let intervals = json.at("intervals").as_array().expect("a list").clone();
    assert!(
        intervals.iter().all(|interval| interval["servers"].as_array().is_some_and(|parts| parts.len() <= 2))
    );
    assert!(
        intervals.iter().any(|interval| interval["servers"][1]["p99_us"].as_f64().is_some()),
        "{intervals:?}"
    );
    let one = pummel_words(&short("run", &servers[0].name)).expect(0).json();
    assert!(one.0.get("servers").is_none(), "one server is all");
}

#[test]
fn programs_are_asked_for_their_protocol_when_they_run() {
    let place = Reserved::new();
    let program = format!("{} serve --protocol resp --listen {}", env!("CARGO_BIN_EXE_pummel"), place.name);
    let words = ["--a-program", &program, "--b-program", &program, "--pairs", "2"];
    let ended = pummel_words(&[short("ab", &place.name), words.to_vec()].concat()).expect(0);
    assert_eq!(ended.json().text("status"), "complete", "{}", ended.errors);
    // The programs have ended.
    assert!(TcpStream::connect(&place.name).is_err());
}
