//! `--samples`: what it says of requests is what the result says of them.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod common;

use common::{Ended, Serve, pummel};

/// Rows with this outcome, of which none has a time of an answer that never came.
#[track_caller]
fn unanswered(ended: &Ended, outcome: &str) -> u64 {
    let samples = ended.samples();
    let rows = samples.iter().filter(|sample| sample.outcome == outcome);
    rows.inspect(|sample| assert_eq!((sample.arrived, sample.read), (None, None), "{sample:?}")).count()
        as u64
}

#[track_caller]
fn errors(ended: &Ended, kind: &str) -> u64 {
    ["get", "set"].iter().map(|op| ended.json().count_or_none(&format!("ops/{op}/errors/{kind}"))).sum()
}

#[test]
fn what_a_phase_did_not_finish_is_called_unfinished_and_has_no_arrival() {
    let server = Serve::start("--fault stall-after=9");
    let words = "--no-load -c 2 -d 4 --rate 100 --arrivals constant -t 300ms --samples samples";
    let ended = pummel(&format!("run -s {} {words}", server.name)).expect(1);
    let unfinished = unanswered(&ended, "unfinished");
    assert!(unfinished > 0);
    assert_eq!(unfinished, ended.json().count("totals/unfinished"));
    assert_eq!(errors(&ended, "closed"), 0);
    assert!(ended.samples().iter().any(|sample| sample.outcome == "miss" && sample.read.is_some()));
}

#[test]
fn what_was_given_up_has_no_arrival_either() {
    let server = Serve::start("--fault stall-after=9");
    // The ninth is due after 80 ms, and there is time for a silence.
    let words = "--no-load -c 1 -d 4 --rate 100 --arrivals constant -t 2s --timeout 50ms --samples samples";
    let ended = pummel(&format!("run -s {} {words}", server.name)).expect(1);
    let given_up = unanswered(&ended, "timeout");
    assert!(given_up > 0);
    assert_eq!(given_up, errors(&ended, "timeout"));
    assert_eq!(unanswered(&ended, "closed"), errors(&ended, "closed"));
}
