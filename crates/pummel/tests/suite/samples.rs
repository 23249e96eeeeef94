//! `--samples`: what it says of requests is what the result says of them.

use std::path::Path;

use crate::common::{Ended, Nobody, Serve, pummel};

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
    let words = "--no-load --no-baseline -c 2 -d 4 --rate 100 --arrivals constant -t 2s --samples samples";
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
    let words = "--no-load --no-baseline -c 1 -d 4 --rate 100 --arrivals constant -t 2s --timeout 50ms --samples samples";
    let ended = pummel(&format!("run -s {} {words}", server.name)).expect(1);
    let given_up = unanswered(&ended, "timeout");
    assert!(given_up > 0);
    assert_eq!(given_up, errors(&ended, "timeout"));
    assert_eq!(unanswered(&ended, "closed"), errors(&ended, "closed"));
}

/// Runs with samples for a file that has other text, and returns that text as it is after the run.
fn old_file_after(words: &str, status: i32) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("samples");
    std::fs::write(&path, "old\n").expect("the folder can be written to");
    pummel(&format!("{words} --samples {}", path.display())).expect(status);
    let text = std::fs::read_to_string(&path).expect("it is still there");
    assert_eq!(entries(folder.path()), ["samples"]);
    text
}

fn entries(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("a name").file_name());
    names.map(|name| name.into_string().expect("UTF-8")).collect()
}

#[test]
fn samples_of_an_earlier_run_are_lost_only_when_there_are_new_ones() {
    let nobody = Nobody::new();
    let server = Serve::start("");
    assert_eq!(old_file_after(&format!("run -s {} -t 1s", nobody.address), 1), "old\n");
    assert_eq!(old_file_after(&format!("run -s {} --csv /nonexistent/r.csv", server.name), 1), "old\n");
    assert_eq!(old_file_after("run -s /nonexistent/socket --password-file /nonexistent/file", 2), "old\n");
    let new = old_file_after(&format!("run -s {} --records 10 -n 3", server.name), 0);
    assert_eq!((new.lines().count(), new.contains("old")), (4, false), "{new}");
}

#[test]
fn a_run_that_cannot_begin_leaves_no_file_of_samples() {
    let nobody = Nobody::new();
    let ended = pummel(&format!("run -s {} -t 1s --samples samples", nobody.address)).expect(1);
    assert!(!ended.path("samples").exists());
}

#[test]
fn samples_go_to_where_a_link_leads_and_to_devices() {
    let server = Serve::start("");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("target", &link).expect("a link");
    let run = |to: &str, status| {
        pummel(&format!("run -s {} --records 10 -n 3 --samples {to}", server.name)).expect(status)
    };
    run(link.to_str().expect("UTF-8"), 0);
    assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(
        std::fs::read_to_string(folder.path().join("target")).expect("it is there").lines().count(),
        4
    );
    run("/dev/null", 0);
    let ended = run("/dev/full", 1);
    assert!(ended.errors.contains("cannot write '/dev/full'"), "{}", ended.errors);
    assert_eq!(ended.text, "");
}
