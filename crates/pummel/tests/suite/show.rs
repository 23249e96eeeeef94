//! Stored results: what is shown of them is what the run printed, and pages hold what they were made from.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{Serve, pummel};
use pummel_report::stored::packed;

fn call(words: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the program can be started");
    // A program that refuses its words reads nothing.
    let _ = process.stdin.take().expect("a pipe").write_all(input);
    process.wait_with_output().expect("it ends")
}

#[track_caller]
fn shown(words: &[&str], input: &[u8]) -> String {
    let output = call(words, input);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_stored_result_is_shown_as_the_run_printed_it_wherever_it_is_stored() {
    let server = Serve::start("");
    let folder = tempfile::tempdir().expect("a folder");
    let (table, page) = (folder.path().join("table.csv"), folder.path().join("page.html"));
    let ended = pummel(&format!(
        "run -s {} -n 400 -c 2 --mix get:3,set:1 --interval 20ms --goal p99:10s --csv {} --report {}",
        server.name,
        path(&table),
        path(&page)
    ));
    let ended = ended.expect(0);
    ended.json();
    let json = ended.path("result.json");
    let bytes = fs::read(&json).expect("readable");
    assert_eq!(shown(&["show", path(&json)], b""), ended.text);
    assert_eq!(shown(&["show", "-"], &bytes), ended.text);
    assert_eq!(shown(&["show", "-"], &packed(&bytes)), ended.text);
    assert_eq!(shown(&["show", path(&json), "--format", "json"], b"").into_bytes(), bytes);
    let csv = shown(&["show", path(&json), "--format", "csv"], b"");
    assert_eq!(csv, fs::read_to_string(&table).expect("readable"));
    assert_eq!(shown(&["show", path(&page)], b""), ended.text, "a page holds its result");
    let again = folder.path().join("again.html");
    shown(&["report", path(&json), "-o", path(&again)], b"");
    assert_eq!(fs::read(&again).expect("readable"), fs::read(&page).expect("readable"));
    let gets = shown(&["show", path(&json), "--format", "hgrm", "--op", "get", "--span", "service"], b"");
    assert!(gets.starts_with("       Value     Percentile TotalCount"), "{gets}");
    assert!(shown(&["show", path(&json), "--format", "markdown"], b"").starts_with("### "));
    for result in [&json, &page] {
        let held = fs::read(result).expect("readable");
        let output = call(&["explain", "run", "-s", "a", "--plan", path(result)], b"");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("this one is the result of `pummel run`"), "{said}");
        assert_eq!(fs::read(result).expect("readable"), held, "a plan does not replace a result");
    }
}

#[test]
fn a_search_and_a_scan_have_pages() {
    let server = Serve::start("");
    let ended = pummel(&format!("scan -s {} --rates 500:1k:500 -t 300ms -c 2", server.name)).expect(0);
    ended.json();
    let json = ended.path("result.json");
    let page = shown(&["report", path(&json), "-o", "-"], b"");
    assert!(page.contains(&format!("<p class=\"dim\">{} (", server.name)), "{page}");
    assert!(page.contains(", 2 runs of 0.3\u{a0}s</p>") && page.contains("<svg "), "{page}");
    // What the run itself printed is what is stored.
    assert_eq!(shown(&["show", path(&json)], b""), ended.text);
    assert_eq!(shown(&["show", "-q", path(&json)], b"").lines().count(), 1);
    assert!(shown(&["show", "-v", path(&json)], b"").contains("\nSeed     "), "{}", ended.text);
    let refused = call(&["show", path(&json), "--times"], b"");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(shown(&["show", path(&json), "--format", "csv"], b"").lines().count(), 3);
    let refused = call(&["show", path(&json), "--format", "hgrm"], b"");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("is the result of `pummel scan`: it keeps no histograms"), "{said}");
    let refused = call(&["merge", path(&json), path(&json)], b"");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("it is the result of `pummel scan`; results of single runs are merged"), "{said}");
}

#[test]
fn what_is_no_result_is_refused_with_what_it_is() {
    for (input, words) in [
        (&b"hello"[..], "error: '-': not the JSON result of a run: expected value at line 1 column 1"),
        (
            b"{\"schema\": 7, \"status\": 1, \"plan\": 1}",
            "error: '-': a result of a newer version: its schema is 7",
        ),
        (b"<html></html>", "error: '-': a page without the data of a result"),
        (b"\x1f\x8bxx", "error: '-': it begins like a file of gzip, and cannot be unpacked"),
    ] {
        for command in ["show", "report"] {
            let output = call(&[command, "-"], input);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), said.starts_with(words)), (Some(2), true), "{said}");
        }
    }
    let usage = call(&["show", "-", "--op", "get"], b"");
    assert_eq!(usage.status.code(), Some(2));
    let said = String::from_utf8_lossy(&usage.stderr).into_owned();
    assert!(
        said.contains("invalid value 'get' for '--op <OP>': it is accepted only with --format hgrm"),
        "{said}"
    );
}

#[test]
fn results_of_the_first_layout_are_shown_and_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-1/results");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the fixtures") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|name| name != "json") {
            continue;
        }
        let name = path.display().to_string();
        let result: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).expect("a result")).expect("JSON");
        for format in ["text", "markdown", "csv"] {
            assert!(!shown(&["show", &name, "--format", format], b"").is_empty(), "{name} as {format}");
        }
        let page = shown(&["report", &name, "-o", "-"], b"");
        assert!(page.contains("<h1>") && page.ends_with("</html>\n"), "{name}");
        if result["command"].is_null() {
            let text = shown(&["show", "-v", &name], b"");
            let completed = result["totals"]["completed"].as_u64().expect("a count");
            assert!(text.replace(',', "").contains(&completed.to_string()), "{name}: {text}");
        }
        count += 1;
    }
    assert!(count >= 5, "{count} results");
}

#[test]
fn schemas_are_printed() {
    let mut printed = std::collections::BTreeSet::new();
    for name in ["result", "curve", "repeat", "comparison", "audit", "plan"] {
        let text = shown(&["schema", name], b"");
        let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(printed.insert(text), "{name} has the schema of another name");
    }
    for (command, name) in [("merge", "result"), ("ab", "comparison"), ("compare", "comparison")] {
        assert_eq!(shown(&["schema", command], b""), shown(&["schema", name], b""), "{command}");
    }
}

/// Characters that speak to a terminal or turn the direction of a line, in UTF-8.
const HIDDEN: &str = "\u{1b}[31m\u{1b}]0;T\u{7}\u{7f}\u{9b}2J\u{202e}";

/// Replaces texts of a result by hidden characters.
fn made_evil(json: &[u8], pointers: &[&str]) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(json).expect("JSON");
    for pointer in pointers {
        let place = value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"));
        *place = HIDDEN.into();
    }
    value.to_string().into_bytes()
}

#[test]
fn no_text_of_a_stored_result_speaks_to_the_terminal() {
    let server = Serve::start("");
    let ended = pummel(&format!("run -s {} -n 100 -c 2 --label a=b", server.name)).expect(0);
    ended.json();
    let json = fs::read(ended.path("result.json")).expect("readable");
    let texts = ["/plan/servers/0", "/labels/a", "/reason", "/verdict/says", "/trust/says", "/tool/version"];
    let evil = made_evil(&json, &texts);
    let malformed = made_evil(&json, &["/clock"]);
    let folder = tempfile::tempdir().expect("a folder");
    let (good, bad) = (folder.path().join("good.json"), folder.path().join("bad.json"));
    fs::write(&good, &json).expect("written");
    fs::write(&bad, &evil).expect("written");
    for words in [
        vec!["show", "-"],
        vec!["show", "-", "--format", "markdown"],
        vec!["show", "-", "--format", "json"],
        vec!["show", "-", "--format", "csv"],
        vec!["compare", path(&good), "-"],
        vec!["compare", "-", path(&bad), "--format", "json"],
        vec!["report", "-", "-o", "-"],
    ] {
        for input in [&evil, &malformed] {
            let output = call(&words, input);
            for out in [output.stdout, output.stderr] {
                let text = String::from_utf8(out).expect("UTF-8");
                let is_hidden = |c: char| matches!(c, '\u{1b}' | '\u{7}' | '\u{7f}' | '\u{9b}' | '\u{202e}');
                assert!(!text.contains(is_hidden), "{words:?}: {text:?}");
            }
        }
    }
    // JSON is the same JSON, and the text says that there was something.
    let again: serde_json::Value =
        serde_json::from_str(&shown(&["show", "-", "--format", "json"], &evil)).expect("JSON");
    assert_eq!(again, serde_json::from_slice::<serde_json::Value>(&evil).expect("JSON"));
    assert!(shown(&["show", "-v", "-"], &evil).contains("a=\u{fffd}[31m"));
}

#[test]
fn numbers_that_no_result_has_are_refused_and_not_drawn() {
    let server = Serve::start("");
    let ended = pummel(&format!("run -s {} -n 100 -c 2 --goal p99:10s", server.name)).expect(0);
    let mut value = ended.json();
    *value.0.pointer_mut("/goals/0/limit_us").expect("a goal") = 1e308.into();
    let bytes = value.0.to_string().into_bytes();
    for words in [&["report", "-", "-o", "-"][..], &["show", "-"], &["compare", "-", "-"]] {
        let output = call(words, &bytes);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_ne!(output.status.code(), Some(0), "{words:?}");
        assert!(words[0] == "compare" || errors.contains("the number 1e308 is out of range"), "{errors}");
    }
}
