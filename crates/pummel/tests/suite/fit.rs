//! `pummel fit` on the command line: from a trace to a profile, to a run, and back.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Memcached, pummel};
use pummel_logic::plan::Popularity;
use pummel_logic::rng::{Stream, unit};
use pummel_logic::workload::popularity::Chooser;
use serde_json::Value;
use tempfile::TempDir;

/// Rows of Twitter's format: Zipf's law over 8,000 keys, one in ten a store that lives for an hour, 500 a second.
fn twitter(rows: u64) -> String {
    let chooser = Chooser::new(&Popularity::Zipf { exponent: 0.9 }, 8_000, 0, 1);
    let stream = Stream::from_seed(1);
    let row = |i: u64| {
        let key = chooser.choose(&stream, i);
        let bytes = if key < 800 { 40 } else { 200 + 100 * (key % 4) };
        match unit(stream.draw_sub(i, 5)) < 0.1 {
            true => format!("{},key-{key:016},20,{bytes},{},set,3600\n", i / 500, i % 7),
            false => format!("{},key-{key:016},20,{bytes},{},get,0\n", i / 500, i % 7),
        }
    };
    (0..rows).map(row).collect()
}

struct Ended {
    status: Option<i32>,
    said: String,
    errors: String,
}

fn fit(folder: &TempDir, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    let output = command.arg("fit").args(words).current_dir(folder.path()).output().expect("pummel starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended { status: output.status.code(), said: text(output.stdout), errors: text(output.stderr) }
}

fn saved(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it was written")
}

#[test]
fn a_trace_becomes_a_profile_that_comes_near_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    saved(&folder, "t.csv", &twitter(100_000));
    let ended =
        fit(&folder, &["t.csv", "-o", "p.toml", "--json", "f.json", "--rates", "r.csv", "--check", "p.toml"]);
    assert_eq!(ended.status, Some(0), "{}\n{}", ended.said, ended.errors);
    for part in ["100,000 requests for 7,", "near Zipf's law", "0 of ", "LRU", "below 1 s unknown"] {
        assert!(ended.said.contains(part), "{part}: {}", ended.said);
    }
    let figures: Value = serde_json::from_str(&read(&folder.path().join("f.json"))).expect("JSON");
    assert_eq!(figures["requests"].as_u64(), Some(100_000));
    let records = figures["keys"]["records"].as_f64().expect("a number");
    assert!((records / 8_000.0 - 1.0).abs() < 0.05, "{records}");
    assert!((figures["popularity"]["zipf"]["alpha"].as_f64().expect("alpha") - 0.9).abs() < 0.05);
    assert!(figures["check"].as_array().is_some_and(|rows| rows.len() > 20));
    assert!(read(&folder.path().join("r.csv")).contains("30,500.000"));
    let profile = read(&folder.path().join("p.toml"));
    assert!(profile.contains("[[value_class]]") && profile.contains("rate = 500"), "{profile}");

    let server = Memcached::start();
    let path = folder.path().join("p.toml");
    let words =
        format!("run -s {} --workload {} -n 20000 --verify --quiet --seed 3", server.name, path.display());
    let result = pummel(&words).expect(0).json();
    let (gets, sets) = (result.count("ops/get/completed"), result.count("ops/set/completed"));
    // Five standard deviations of 20,000 draws.
    assert!(gets + sets == 20_000 && sets.abs_diff(2_000) < 213, "{gets} {sets}");
    // Nearly all reads are for records, which are stored before.
    assert!(result.count("ops/get/misses") * 50 < gets, "{}", result.count("ops/get/misses"));
}

/// Ten minutes in which each of 600 records gets another key every two minutes.
#[test]
fn keys_that_change_are_records_with_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let chooser = Chooser::new(&Popularity::Zipf { exponent: 0.7 }, 600, 0, 1);
    let stream = Stream::from_seed(2);
    let row = |i: u64| {
        let record = chooser.choose(&stream, i);
        let generation = (i as f64 / 12_000.0 + unit(stream.draw_sub(record, 7))) as u64;
        format!("{},record-{record:04}-{generation:05},17,100,1,get,0\n", i / 100)
    };
    saved(&folder, "t.csv", &(0..60_000).map(row).collect::<String>());
    let ended = fit(&folder, &["t.csv", "-o", "p.toml", "--json", "f.json", "--check", "p.toml"]);
    assert_eq!(ended.status, Some(0), "{}\n{}", ended.said, ended.errors);
    let figures: Value = serde_json::from_str(&read(&folder.path().join("f.json"))).expect("JSON");
    let half_life_s = figures["churn"]["half_life_s"].as_f64().expect("keys change");
    assert!((half_life_s / 60.0 - 1.0).abs() < 0.25, "{half_life_s}");
    let records = figures["keys"]["records"].as_f64().expect("a number");
    assert!((records / 600.0 - 1.0).abs() < 0.2, "{records}");
    let profile = read(&folder.path().join("p.toml"));
    assert!(profile.contains("churn = \"requests:weighted:"), "{profile}");

    let server = Memcached::start();
    let path = folder.path().join("p.toml");
    let words = format!("run -s {} --workload {} -n 20000 --quiet --seed 3", server.name, path.display());
    let result = pummel(&words).expect(0).json();
    // 600 records that live 12,000 requests: a new key every 20 requests, which is asked for once in the mean or more.
    assert!(result.count("ops/get/misses") > 1_000, "{}", result.count("ops/get/misses"));
}

#[test]
fn a_profile_that_is_far_off_ends_with_3() {
    let folder = tempfile::tempdir().expect("a folder");
    saved(&folder, "t.csv", &twitter(20_000));
    let ended = fit(&folder, &["t.csv", "--check", "fb-usr"]);
    assert_eq!(ended.status, Some(3), "{}", ended.errors);
    assert!(ended.said.contains("  beyond\n"), "{}", ended.said);
}

/// Requests whose keys come again soon and then never more: a profile draws every key by its popularity alone.
#[test]
fn a_fit_says_by_itself_what_its_profile_does_not_carry() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |i: u64| format!("{},scanned-{:08},16,100,1,get,0\n", i / 500, i / 40 * 10 + i % 10);
    saved(&folder, "scan.csv", &(0..40_000).map(row).collect::<String>());
    let ended = fit(&folder, &["scan.csv", "-o", "p.toml", "--json", "f.json"]);
    assert_eq!(ended.status, Some(0), "only '--check' decides about the exit status: {}", ended.errors);
    let line = ended.said.lines().find(|line| line.starts_with("Profile")).expect("it is compared");
    assert!(line.contains("differ from the trace in"), "{line}");
    assert!(ended.said.contains(" in the trace, "), "{}", ended.said);
    assert!(read(&folder.path().join("p.toml")).contains("not carried: "));
    let figures: Value = serde_json::from_str(&read(&folder.path().join("f.json"))).expect("JSON");
    assert!(figures["check"].as_array().is_some_and(|rows| rows.iter().any(|row| row["is_beyond"] == true)));
    assert_eq!(figures["check_requests"]["made"], 40_000);
    // What is carried is said, too, and a profile of another trace is compared as well.
    saved(&folder, "t.csv", &twitter(50_000));
    let ended = fit(&folder, &["t.csv", "-o", "q.toml", "--seed", "3"]);
    assert!(
        ended.said.contains("as many requests made from it are like the trace: all of "),
        "{}",
        ended.said
    );
    assert!(!read(&folder.path().join("q.toml")).contains("not carried"));
    let ended = fit(&folder, &["t.csv", "--check", "p.toml"]);
    assert_eq!(ended.status, Some(3), "{}", ended.said);
    assert!(ended.said.contains("are like the trace: all of "), "{}", ended.said);
}

/// Rows that stand for billions of requests.
#[test]
fn a_trace_of_more_requests_than_can_be_made_is_compared_with_as_many_as_there_is_time_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |i: u64| format!("{},key-{i},get,100,4000000000\n", i);
    saved(&folder, "t.csv", &format!("time,key,op,size,count\n{}{}", row(1), row(2)));
    let began = std::time::Instant::now();
    let ended = fit(&folder, &["t.csv", "-o", "p.toml", "--check", "p.toml"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{}", ended.errors);
    assert!(ended.said.contains(" of 8,000,000,000 requests"), "{}", ended.said);
    assert!(ended.said.contains("more would take too long"), "{}", ended.said);
    assert!(began.elapsed().as_secs() < 60, "it takes some 10 s");
}

#[test]
fn what_cannot_be_fitted_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    saved(&folder, "empty.csv", "");
    saved(&folder, "t.csv", &twitter(100));
    for (words, status, part) in [
        (&["empty.csv"][..], 1, "empty.csv' is empty"),
        (&["--format", "twitter", "empty.csv"], 1, "no request"),
        (&["missing.csv"], 1, "missing.csv"),
        (&["t.csv", "--check", "nothing-like-it"], 2, "--check"),
        (&["t.csv", "--check", "ycsb-f"], 2, "read_modify_write"),
        (&["t.csv", "--check", "ycsb-e"], 2, "insert and scan"),
        (&["t.csv", "-o", "-", "--json", "-"], 2, "standard output"),
        (&["t.csv", "-o", "no/such/folder/p.toml"], 1, "no/such/folder"),
        (&["t.csv", "--format", "nonsense"], 2, "twitter, kvcache"),
    ] {
        let ended = fit(&folder, words);
        assert_eq!(ended.status, Some(status), "{words:?}: {}", ended.errors);
        assert!(ended.errors.contains(part), "{words:?}: {}", ended.errors);
    }
}

#[test]
fn odd_traces_are_fitted_and_their_profiles_are_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let distinct: String = (0..3_000).map(|key| format!("{key},k{key},9,10,1,get,0\n")).collect();
    let cut = twitter(1_000);
    for (name, text) in [
        ("one.csv", "0,k,1,5,1,get,0\n".to_owned()),
        ("same.csv", "0,k,1,5,1,get,0\n".repeat(5_000)),
        ("distinct.csv", distinct),
        ("backwards.csv", (0..500).rev().map(|at| format!("{at},k{},3,5,1,set,9\n", at % 9)).collect()),
        ("huge.csv", "0,k,250,1073741824,1,set,4294967295\n4294967295,l,1,1,1,get,0\n".to_owned()),
        ("cut.csv", cut[..cut.len() - 9].to_owned()),
    ] {
        saved(&folder, name, &text);
        let ended = fit(&folder, &[name, "--format", "twitter", "-o", "p.toml", "--check", "p.toml"]);
        assert!(matches!(ended.status, Some(0 | 3)), "{name}: {} {}", ended.said, ended.errors);
        let path = folder.path().join("p.toml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        let output = command.arg("workloads").arg(&path).output().expect("pummel starts");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_profile_on_standard_output_leaves_the_report_to_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    saved(&folder, "t.csv", &twitter(2_000));
    let ended = fit(&folder, &["t.csv", "-o", "-"]);
    assert_eq!(ended.status, Some(0), "{}", ended.errors);
    assert!(ended.said.contains("schema = 1") && !ended.said.contains("Popularity"), "{}", ended.said);
    assert!(ended.errors.contains("Popularity"), "{}", ended.errors);
}
