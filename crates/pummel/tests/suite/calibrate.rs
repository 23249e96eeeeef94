//! `pummel calibrate`: its figures, where they are kept, and that results of later runs have them.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::Serve;

/// The program with a folder of states of its own.
fn pummel(states: &TempDir, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(words.split_whitespace())
        .current_dir(states.path())
        .env("XDG_STATE_HOME", states.path())
        .output()
        .expect("pummel starts")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn a_calibration_is_stored_and_later_results_have_it() {
    let states = TempDir::new().expect("a folder");
    let server = Serve::start("");
    let run =
        |more: &str| pummel(&states, &format!("run -s {} -c 2 -t 200ms --records 10 {more}", server.name));
    let before = json(&run("--format json"));
    assert_eq!(before.get("calibration"), None, "nothing is stored yet");

    let calibrated = pummel(&states, "calibrate --quick --format json");
    assert_eq!(calibrated.status.code(), Some(0), "{}", String::from_utf8_lossy(&calibrated.stderr));
    let figures = json(&calibrated);
    let errors = figures["service_error"].as_array().expect("a list");
    let held: Vec<&str> = errors.iter().filter_map(|error| error["held"].as_str()).collect();
    assert_eq!(held, ["0", "200us", "1ms", "exponential:1ms"]);
    for error in errors {
        let [p50, p99, max] =
            ["p50_ns", "p99_ns", "max_ns"].map(|name| error[name].as_i64().expect("a number"));
        assert!(0 < p50 && p50 <= p99 && p99 <= max, "the way there and back takes some time: {error}");
        assert_eq!(error["requests"], 100);
    }
    assert_eq!(figures["lag"].as_array().map(Vec::len), Some(6));
    assert!(figures["clock"]["reading_ps"].as_u64().is_some_and(|reading| reading > 0));
    assert!(figures["noise"].is_null() && figures["quick"] == true, "{figures}");

    let after = json(&run("--format json"));
    let calibration = &after["calibration"];
    assert_eq!(calibration["key"], figures["key"]);
    assert_eq!(calibration["service_error"], figures["service_error"]);
    assert!(calibration["age_s"].as_u64().is_some_and(|age_s| age_s < 600), "{calibration}");
    let text = run("-v");
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("Instrument") && text.contains("in the median service time"), "{text}");
}

#[test]
fn a_calibration_of_another_machine_is_not_taken_and_one_line_says_so() {
    let states = TempDir::new().expect("a folder");
    let folder = states.path().join("pummel/calibration");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("0123456789abcdef.json"), b"{}").expect("a file");
    let server = Serve::start("");
    let output = pummel(&states, &format!("run -s {} -c 2 -t 200ms --records 10 --format json", server.name));
    assert_eq!(json(&output).get("calibration"), None);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("`pummel calibrate` makes it anew").count(), 1, "{said}");
}

#[test]
fn values_that_are_not_accepted_are_refused() {
    let states = TempDir::new().expect("a folder");
    let output = pummel(&states, "calibrate --backend kqueue");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected auto, epoll or uring"));
}
