//! `pummel search` against a server whose knee is known: the order of its runs, and what it says where it has no answer.

use crate::common::{PATIENCE, Running, Serve, in_some_quiet_moment, pummel};
use serde_json::Value;

/// The roles of the runs of a result, in their order.
fn roles(result: &Value) -> Vec<String> {
    let runs = result["runs"].as_array().expect("a list");
    runs.iter().map(|run| run["role"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn runs_that_are_too_short_have_no_answer_and_say_why() {
    // One queue with 2 ms for each request: 500 requests per second at most.
    let server = Serve::start("--service-time 2ms --queue 1");
    let words = format!("search -s {} -c 20 -t 300ms --records 10 --no-load --goal p50:3ms", server.name);
    let ended = pummel(&words).expect(3);
    let result = ended.json();
    assert_eq!(result.at("found_rate"), &Value::Null);
    let search = result.at("search");
    let reason = search["reason"].as_str().expect("a reason");
    let ends = ["Result   NOT SURE: ", "Result   NO ANSWER: "];
    assert!(ends.iter().any(|end| ended.text.contains(end)), "{}", ended.text);
    assert!(!reason.is_empty() && search["why"]["kind"].is_string(), "{search}");
    let rate = search["closed_loop_rate"].as_f64().expect("a number");
    assert!((50.0..=550.0).contains(&rate), "one server takes 2 ms for each: {rate}");
    let roles = roles(&result.0);
    // On a busy machine the generator may be the limit at once, and the search ends at the third such run.
    assert!(roles.len() > 3 && roles[0] == "peak" && roles[1] == "search", "{roles:?}");
}

#[test]
fn runs_in_which_no_request_was_due_say_nothing_and_end_no_series() {
    // A goal that no rate meets, so that rates fall to where most runs of 20 ms have no request.
    let server = Serve::start("--service-time 2ms --queue 1");
    let short = format!("-s {} -c 4 -t 20ms --records 10 --no-load --no-evidence", server.name);
    // On a busy machine the generator may be the limit of three runs first.
    in_some_quiet_moment(|| {
        let ended = pummel(&format!("search {short} --goal p50:1us")).expect(3);
        let reason = ended.json().text("search/reason").to_owned();
        let last = reason.strip_prefix("3 runs in a row say nothing about the server; the last: ");
        if last == Some("no request was due in it") { Ok(()) } else { Err(reason) }
    });
    let ended = pummel(&format!("scan {short} --rates 1:401:200")).expect(0);
    assert_eq!(ended.json().at("runs").as_array().expect("a list").len(), 3);
    assert_eq!(ended.json().at("reason"), &Value::Null);
    // With a goal, a run without requests neither met nor missed it, which is not enough for a gate.
    let ended = pummel(&format!("scan {short} --rates 0.1:0.1:1 --goal p50:1s --seed 1")).expect(3);
    let run = ended.json().at("runs")[0].clone();
    assert_eq!((&run["requests"], &run["met"], &run["carried"]), (&0.into(), &Value::Null, &true.into()));
    let said = format!("{}{}", ended.errors, ended.text);
    assert!(said.contains("no request was due") && said.contains("   no request"), "{said}");
    assert!(!ended.errors.contains("goal missed"), "{said}");
}

#[test]
fn an_overload_and_the_return_from_it_are_one_run() {
    // 500 requests per second at most, and a goal that every rate meets: the answer is the greatest rate that is tried. What a
    // busy machine takes from the generator is not looked at, since a generator that is the limit overloads no server.
    in_some_quiet_moment(|| {
        let server = Serve::start("--service-time 2ms --queue 1");
        let words = format!(
            "search -s {} -c 20 -t 1100ms --records 10 --no-load --goal p50:10s --no-evidence",
            server.name
        );
        // A search makes up to 46 runs around the answer, where rates are not carried now and then.
        let ended = Running::start(&words).end_within(3 * PATIENCE);
        let result = ended.json();
        let runs = result.at("runs").as_array().expect("a list").clone();
        let [.., confirmed, overload, after] = &runs[..] else { return Err(ended.text) };
        let number = |run: &Value, name: &str| run[name].as_f64().unwrap_or(0.0);
        let left = result.at("search/overload").clone();
        // The queue of the overload is worked off at the rate that the server has to spare, which is next to nothing.
        let is_told = (overload["role"] == "overload" && after["role"] == "after")
            && overload["carried"] == false
            && number(overload, "rate") < 0.95 * number(overload, "asked_rate")
            && number(overload, "asked_rate") > 1.1 * number(after, "asked_rate")
            && after["asked_rate"] == confirmed["asked_rate"]
            && (number(&left["recovery"], "slower") > 1.0 && number(&left["recovery"], "seconds") > 0.9)
            && ended.text.contains("After 5 s at ");
        is_told.then_some(()).ok_or_else(|| format!("{left} {overload} {after}"))
    });
}

#[test]
fn a_search_without_a_goal_is_refused() {
    let ended = pummel("search -s 127.0.0.1:1").expect(2);
    assert!(ended.errors.contains("--goal <GOAL>"), "{}", ended.errors);
}

#[test]
fn a_precision_that_is_no_share_is_refused() {
    let ended = pummel("search -s 127.0.0.1:1 --goal p99:1ms --precision 2").expect(2);
    assert!(ended.errors.contains("expected a share from 0.1% to 50%"), "{}", ended.errors);
}
