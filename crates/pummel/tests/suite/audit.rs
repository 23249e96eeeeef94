//! Audits of stored results: their statuses, their forms, and results of other versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/schema-1/results");

fn audit(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.arg("audit").args(words).output().expect("the program can be started")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A stored result in a folder, after a change.
fn changed(folder: &Path, name: &str, change: impl Fn(&mut Value)) -> PathBuf {
    let stored = fs::read(Path::new(FIXTURES).join("agents.json")).expect("a fixture");
    let mut result: Value = serde_json::from_slice(&stored).expect("JSON");
    change(&mut result);
    let path = folder.join(name);
    fs::write(&path, serde_json::to_vec(&result).expect("JSON")).expect("written");
    path
}

/// Makes a result one of a run that nothing disturbed.
fn clear(result: &mut Value) {
    result["verdict"] = json!({"limit": "none", "says": "none reached"});
    result["evidence"] = Value::Null;
    result["trust"] = json!({"ok": true, "says": "reliable"});
}

#[test]
fn findings_decide_the_status_and_every_form_has_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let calm = changed(folder.path(), "calm.json", clear);
    let missing = changed(folder.path(), "missing.json", |result| {
        clear(result);
        let gets = &mut result["ops"]["get"];
        gets["misses"] = json!(gets["hits"].as_u64().unwrap_or(0) + gets["misses"].as_u64().unwrap_or(0));
        gets["hits"] = json!(0);
    });
    let (calm, missing) = (calm.to_str().expect("UTF-8"), missing.to_str().expect("UTF-8"));

    let noted = audit(&[calm]);
    assert_eq!(noted.status.code(), Some(0), "{}", text(&noted));
    assert!(text(&noted).contains("\nResult   1 result: 1 note\n"), "{}", text(&noted));
    let found = audit(&[calm, missing]);
    assert_eq!(found.status.code(), Some(3), "{}", text(&found));
    assert!(text(&found).contains("\nRun      missing\nFinding  "), "{}", text(&found));
    assert!(text(&found).contains("keys read were misses"), "{}", text(&found));
    assert!(text(&found).lines().all(|line| line.chars().count() <= 80), "{}", text(&found));

    let line = text(&audit(&["-q", calm, missing]));
    assert!(line.starts_with("2 results: 1 finding, ") && line.lines().count() == 1, "{line}");
    let markdown = text(&audit(&[calm, missing, "--format", "markdown"]));
    assert!(markdown.starts_with("### 2 results: 1 finding"), "{markdown}");

    let printed: Value =
        serde_json::from_slice(&audit(&[calm, missing, "--format", "json"]).stdout).expect("JSON");
    assert_eq!((&printed["schema"], &printed["command"]), (&json!(1), &json!("audit")));
    assert_eq!(printed["results"][1], json!({"name": "missing", "file": missing}));
    let grades = printed["findings"].as_array().expect("a list").iter();
    let findings: Vec<&Value> = grades.filter(|finding| finding["grade"] == "finding").collect();
    assert_eq!(findings.len(), 1, "{printed}");
    assert_eq!((&findings[0]["run"], &findings[0]["fact"]["kind"]), (&json!("missing"), &json!("misses")));
    let file = folder.path().join("found.json");
    let path = file.to_str().expect("UTF-8");
    assert_eq!(audit(&[calm, missing, "--json", path, "-q"]).status.code(), Some(3));
    let kept: Value = serde_json::from_slice(&fs::read(&file).expect("written")).expect("JSON");
    assert_eq!(kept, printed);
}

#[test]
fn what_is_no_result_is_wrong_usage_and_what_cannot_be_written_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let calm = changed(folder.path(), "calm.json", clear);
    let calm = calm.to_str().expect("UTF-8");
    let other = folder.path().join("other.json");
    fs::write(&other, "{}").expect("written");
    let gone = folder.path().join("gone/found.json");
    let (other, gone) = (other.to_str().expect("UTF-8"), gone.to_str().expect("UTF-8"));
    for (words, status) in [
        (vec![], 2),
        (vec![calm, other], 2),
        (vec![calm, "nowhere.json"], 2),
        (vec!["-", "-"], 2),
        (vec![calm, "-q", "--format", "json"], 2),
        (vec![calm, "--json", "-", "--format", "markdown"], 2),
        (vec![calm, "--json", calm], 2),
        (vec![calm, "--json", gone], 1),
    ] {
        let output = audit(&words);
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn results_of_the_first_layout_are_audited() {
    let mut files: Vec<String> = Vec::new();
    for entry in fs::read_dir(FIXTURES).expect("the fixtures") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|name| name == "json") {
            files.push(path.display().to_string());
        }
    }
    files.sort();
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    let output = audit(&words);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("\nRun      partial\nFinding  not complete: "), "{said}");
    assert!(said.contains("\nRun      interrupted\nFinding  interrupted\n"), "{said}");
    assert!(!said.contains("NaN"), "{said}");
}
