//! `pummel search` and `pummel scan` where something is wrong: with their options, or with what the server answers.

use crate::common::{Reserved, Serve, pummel};

/// Refused before anything is sent: there is no curve, not even an empty one.
#[track_caller]
fn assert_refused(words: &str, parts: &[&str]) {
    let ended = pummel(words).expect(2);
    for part in parts {
        assert!(ended.errors.contains(part), "{words} does not say {part:?}: {}", ended.errors);
    }
    assert_eq!(ended.text, "", "{words}");
    assert!(!ended.path("result.json").exists(), "{words}");
}

#[test]
fn a_series_without_a_run_says_why_and_what_to_look_at_on_standard_error_alone() {
    let absent = Reserved::new();
    let name = &absent.name;
    for words in [
        format!("scan -s {name} --rates 1k:2k:1k"),
        format!("search -s {name} --goal p99:1ms"),
        format!("curve -s {name}"),
        format!("run -s {name} --repeat 2"),
        format!("ab -s {name} --versus {name}"),
    ] {
        let ended = pummel(&format!("{words} -t 100ms")).expect(1);
        assert_eq!(ended.text, "", "{words}");
        let said = &ended.errors;
        assert!(said.contains("refused") && said.contains("hint: is the server running"), "{words}: {said}");
        assert!(said.lines().count() <= 5, "{words}: {said}");
        let result = ended.file("result.json");
        assert!(result.contains("refused") && !result.contains("hint: "), "{words}: {result}");
    }
}

#[test]
fn wrong_values_are_told_whichever_run_they_are_found_in() {
    let server = Serve::start("--fault flip=20");
    let words = format!("-s {} -c 2 -n 100 --records 50 --verify", server.name);
    for sweep in ["scan --rates 1k:2k:1k", "search --goal p50:10s"] {
        let ended = pummel(&format!("{sweep} {words}")).expect(3);
        assert!(ended.text.contains("Result   WRONG VALUES"), "{}", ended.text);
        let result = ended.json();
        let runs = result.at("runs").as_array().expect("a list");
        let wrong = |run: &serde_json::Value| run["wrong_values"].as_u64().expect("values were checked");
        assert!(runs.iter().map(wrong).sum::<u64>() > 0, "{sweep}");
    }
}

#[test]
fn unchecked_values_are_not_said_to_be_right() {
    let server = Serve::start("");
    let ended = pummel(&format!("scan -s {} -n 10 --records 5 --rates 1k:1k:1k", server.name)).expect(0);
    assert_eq!(ended.json().at("runs")[0]["wrong_values"], serde_json::Value::Null);
}

#[test]
fn each_run_of_a_series_has_arrivals_of_its_own() {
    let server = Serve::start("");
    let words = format!("scan -s {} -n 10 --records 5 --rates 1k:3k:1k --seed 7", server.name);
    let seeds = || -> Vec<u64> {
        let result = pummel(&words).expect(0).json();
        let runs = result.at("runs").as_array().expect("a list");
        runs.iter().map(|run| run["seed"].as_u64().expect("a seed")).collect()
    };
    let first = seeds();
    assert_eq!((first.len(), first[0]), (3, 7));
    assert!(first[1] != 7 && first[2] != 7 && first[1] != first[2], "{first:?}");
    assert_eq!(seeds(), first, "they follow from the seed of the series");
}

#[test]
fn what_no_run_could_be_made_of_is_refused_before_the_first() {
    let sweeps = ["scan --rates 1k:2k:1k -s 127.0.0.1:1", "search --goal p99:1ms -s 127.0.0.1:1"];
    for sweep in sweeps {
        assert_refused(
            &format!("{sweep} --calls-per-connection 3"),
            &["--calls-per-connection", "pummel run"],
        );
        assert_refused(&format!("{sweep} --interval 100ms"), &["--interval", "pummel run"]);
        assert_refused(&format!("{sweep} --conn-rate 10"), &["--conn-rate", "pummel run"]);
        assert_refused(&format!("{sweep} --stamps tx"), &["--stamps", "pummel run"]);
        assert_refused(&format!("{sweep} --server-stats=1s"), &["--server-stats", "--live"]);
        assert_refused(
            &format!("{sweep} --mix set:1 --noreply --goal p50:1ms"),
            &["--goal", "an operation that is answered"],
        );
        assert_refused(&format!("{sweep} --cpus 1023"), &["--cpus", "1023"]);
        assert_refused(&format!("{sweep} --tls --tls-ca /nowhere/ca.pem"), &["--tls-ca", "/nowhere/ca.pem"]);
    }
    assert_refused(&format!("{} -d unlimited", sweeps[1]), &["--depth", "closed loop"]);
    assert_refused("curve -s 127.0.0.1:1 --server-stats", &["--server-stats", "--live"]);
    let over = "scan -s 127.0.0.1:1 --over connections:1:8 --arrivals constant";
    assert_refused(over, &["'--arrivals'", "'--rates'", "closed loop"]);
}

#[test]
fn a_scan_has_no_closed_loop_that_unlimited_depth_would_harm() {
    let server = Serve::start("");
    let words = format!("scan -s {} -n 10 --records 5 --rates 1k:1k:1k -d unlimited", server.name);
    assert_eq!(pummel(&words).expect(0).json().at("runs").as_array().map(Vec::len), Some(1));
}

#[test]
fn whom_certificates_are_not_asked_of_is_said() {
    let ended = pummel("scan -s 127.0.0.1:1 -t 100ms --rates 1k:1k:1k --tls --tls-insecure").expect(1);
    assert!(ended.errors.contains("WARNING: --tls-insecure"), "{}", ended.errors);
}
