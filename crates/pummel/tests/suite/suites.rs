//! Suites: named runs in order, what they are expected to show, interruption and resumption, and every form of their result.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Ended, Memcached, Nobody, Reserved, Running, value_of};
use pummel_fronts::job::FrontInputs;
use pummel_fronts::native::suite::{listed, suite};
use serde_json::Value;
use tempfile::TempDir;

/// A file of a suite in a folder of its own.
struct File {
    folder: TempDir,
}

impl File {
    fn new(text: &str) -> File {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("nightly.toml"), text).expect("it is written");
        File { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self) -> String {
        self.path("nightly.toml").display().to_string()
    }
}

/// The runs of the result of a suite.
fn runs(result: &Value) -> &[Value] {
    result["runs"].as_array().expect("a list")
}

/// Follows the words of a suite, and the words behind it.
fn suite_of(file: &File, words: &[&str]) -> Running {
    let name = file.name();
    Running::start_words(&[&["suite", name.as_str()], words].concat())
}

fn result_of(ended: &Ended) -> Value {
    value_of(&ended.file("result.json"))
}

/// A stored result as `pummel show` prints it.
fn shown(result: &Path) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pummel"));
    let output = command.arg("show").arg(result).output().expect("pummel starts");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Three runs of forty requests.
const THREE: &str = "[defaults]\nrequests = 40\nrecords = 20\nconnections = 2\nprotocol = 'text'\n\
    [[run]]\nname = 'reads'\noptions = '--mix get:1'\nexpect = { hits = '>99%', errors = 0 }\n\
    [[run]]\nname = 'writes, \"large\"'\noptions = '--mix set:1 --value-size 20KiB'\nexpect = { errors = 0, rate = '>1g' }\n\
    [[run]]\nname = 'misses'\noptions = '--mix get:1 --absent 1'\nexpect = { hits = '<1%' }\n";

#[test]
fn each_run_has_its_own_options_and_says_whether_it_was_as_expected() {
    let server = Memcached::start();
    // The greatest rate that can be written is not reached.
    let file = File::new(&THREE.replace(">1g", ">=1g"));
    let forms =
        ["--report", "page.html", "--junit", "junit.xml", "--csv", "runs.csv", "--summary", "summary.md"];
    let ended = suite_of(&file, &[&["-s", server.name.as_str()], &forms[..]].concat()).end().expect(3);
    let result = result_of(&ended);
    assert_eq!((&result["command"], &result["title"]), (&"suite".into(), &"nightly".into()));
    assert_eq!((&result["status"], &result["rounds"]), (&"complete".into(), &1.into()));
    let names: Vec<&str> = runs(&result).iter().filter_map(|run| run["name"].as_str()).collect();
    assert_eq!(names, ["reads", "writes, \"large\"", "misses"]);
    let of = |run: usize| &runs(&result)[run];
    for run in 0..3 {
        assert_eq!(of(run)["results"][0]["totals"]["completed"], 40, "{run}");
    }
    assert_eq!(of(1)["results"][0]["plan"]["groups"][0]["clients"], 2, "the options of all runs hold");
    assert_eq!(of(0)["options"], "--mix get:1");
    let met = |run: usize, place: usize| of(run)["expectations"][place]["met"].as_bool();
    assert_eq!([met(0, 0), met(0, 1), met(1, 0), met(2, 0)], [Some(true); 4]);
    assert_eq!(met(1, 1), Some(false), "{}", of(1)["expectations"]);
    assert!(ended.text.contains("NOT AS EXPECTED: 3 runs made; 4 of 5 expectations met"), "{}", ended.text);
    assert!(ended.errors.contains("run 1 of 3, reads: "), "{}", ended.errors);
    assert!(ended.errors.contains("; 2 runs left, about "), "{}", ended.errors);
    let page = ended.file("page.html");
    assert!(
        page.contains("href=\"#run-2\"") && page.contains("writes, &quot;large&quot;"),
        "a table that leads to its runs"
    );
    let cases = ended.file("junit.xml");
    assert!(
        cases.contains("<testsuite name=\"nightly: reads\" ") && cases.contains("name=\"hits &gt;99%\"/>")
    );
    assert!(
        cases.contains("classname=\"writes, &quot;large&quot;\" name=\"rate &gt;=1g\"><failure "),
        "{cases}"
    );
    let rows = ended.file("runs.csv");
    assert_eq!(rows.lines().count(), 4);
    assert!(rows.contains("\n\"writes, \"\"large\"\"\",1,"), "{rows}");
    assert!(ended.file("summary.md").starts_with("### NOT AS EXPECTED: 3 runs made"));
    for file in ["result.json", "page.html"] {
        assert_eq!(shown(&ended.path(file)), ended.text, "{file} is shown as the suite showed it");
    }
}

#[test]
fn a_run_that_fails_is_told_and_the_others_are_made() {
    let (server, nobody) = (Memcached::start(), Nobody::new());
    let file = File::new(&format!(
        "[defaults]\nrequests = 20\nrecords = 5\nconnections = 1\nprotocol = 'text'\n\
         [[run]]\nname = 'gone'\noptions = '-s {} --timeout 100ms'\nexpect = {{ errors = 0 }}\n[[run]]\nname = 'there'\n",
        nobody.address
    ));
    let ended = suite_of(&file, &["-s", &server.name, "--junit", "junit.xml"]).end().expect(1);
    let result = result_of(&ended);
    assert_eq!(result["status"], "partial");
    assert!(
        runs(&result)[0]["reason"].as_str().is_some_and(|why| why.contains(&nobody.address.to_string())),
        "{result}"
    );
    assert_eq!(runs(&result)[1]["results"][0]["totals"]["completed"], 20);
    assert!(ended.text.contains("PARTIAL: 1 of 2 runs complete; 0 of 1 expectation met"), "{}", ended.text);
    assert!(ended.errors.contains("run 1 of 2, gone: FAILED: "), "{}", ended.errors);
    assert!(ended.file("junit.xml").contains("classname=\"gone\" name=\"made\"><failure "));
}

#[test]
fn an_interrupted_suite_goes_on_where_it_was() {
    let server = Memcached::start();
    let long = "[defaults]\nrecords = 20\nconnections = 1\nprotocol = 'text'\n\
        [[run]]\nname = 'short'\noptions = '-n 40'\n[[run]]\nname = 'long'\noptions = '-t 60s'\n[[run]]\nname = 'last'\noptions = '-n 40'\n";
    let file = File::new(long);
    let mut running = suite_of(&file, &["-s", &server.name]);
    running.wait_for("run 1 of 3, short: ");
    running.process.interrupt();
    let ended = running.end().expect(130);
    let cut = result_of(&ended);
    assert_eq!(cut["status"], "interrupted");
    assert_eq!(runs(&cut)[0]["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(runs(&cut)[1]["results"].as_array().map(Vec::len), Some(0));
    let begun = runs(&cut)[0]["results"][0]["started_unix_s"].clone();
    let stored = ended.path("result.json");
    let resumed = |text: &str| {
        let file = File::new(text);
        let copy = file.path("stored.json");
        fs::copy(&stored, &copy).expect("it is copied");
        let ended = resume(&file, &copy, &server.name);
        (ended, fs::read_to_string(copy).expect("it is there"))
    };
    // A shorter one would be another load.
    let (ended, kept) = resumed(&long.replace("-n 40", "-n 50"));
    assert_eq!(ended.0, 2, "{}", ended.1);
    assert!(ended.1.contains("its run 'short' was made with another --requests"), "{}", ended.1);
    assert_eq!(kept, fs::read_to_string(&stored).expect("it is there"), "the result is as it was");
    let other = Memcached::start();
    let copy = file.path("stored.json");
    fs::copy(&stored, &copy).expect("it is copied");
    let ended = resume(&file, &copy, &other.name);
    assert!(ended.0 == 2 && ended.1.contains("was made with another --server"), "{}", ended.1);
    let (ended, whole) = resumed(&long.replace("60s", "100ms"));
    assert_eq!(ended.0, 0, "{}", ended.1);
    let whole = value_of(&whole);
    assert_eq!(whole["status"], "complete");
    assert_eq!(runs(&whole)[0]["results"][0]["started_unix_s"], begun, "it is not made again");
    assert!(runs(&whole).iter().all(|run| run["results"].as_array().map(Vec::len) == Some(1)));
}

#[test]
fn a_result_that_cannot_be_written_is_told_before_the_first_run() {
    let server = Memcached::start();
    let ended = suite_of(&File::new(THREE), &["-s", &server.name, "--summary", "/dev/full"]).end().expect(1);
    assert!(
        ended.errors.contains("cannot write '/dev/full'") && !ended.errors.contains("run 1"),
        "{}",
        ended.errors
    );
    assert_eq!(server.connect().stats().get("cmd_set"), 0, "nothing was sent");
}

#[test]
fn a_program_that_ends_in_the_midst_is_named() {
    let port = Reserved::new();
    let text = format!(
        "program = 'timeout -s KILL 2 memcached -U 0 -u root -l 127.0.0.1 -p {}'\n\
         [defaults]\nrecords = 20\nconnections = 1\nprotocol = 'text'\n\
         [[run]]\nname = 'before'\noptions = '-n 20'\n[[run]]\nname = 'behind'\noptions = '-t 20s --timeout 500ms'\n",
        port.port()
    );
    let ended = suite_of(&File::new(&text), &["-s", &port.name]).end().expect(1);
    let result = result_of(&ended);
    assert_eq!(runs(&result)[0]["results"].as_array().map(Vec::len), Some(1), "{}", ended.errors);
    let reason = runs(&result)[1]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("the program of the suite has ended"), "{reason}");
}

/// Goes on with the result in a file. Returns the exit status and what was said on standard error.
fn resume(file: &File, stored: &Path, server: &str) -> (i32, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(["suite", &file.name(), "-s", server, "--timeout", "10s", "--resume", "--json"])
        .arg(stored)
        .output()
        .expect("pummel starts");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_program_is_started_once_or_for_each_run() {
    for (restart, is_one) in [("", true), ("restart = true\n", false)] {
        let port = Reserved::new();
        let text = format!(
            "program = 'memcached -U 0 -u root -l 127.0.0.1 -p {}'\n{restart}\
             [defaults]\nrequests = 10\nrecords = 20\nconnections = 1\nprotocol = 'text'\n\
             [[run]]\nname = 'first'\n[[run]]\nname = 'second'\n",
            port.port()
        );
        let file = File::new(&text);
        let ended = suite_of(&file, &["-s", &port.name]).end().expect(0);
        let result = result_of(&ended);
        assert_eq!(result["restarted"], !is_one);
        assert!(result["program"].as_str().is_some_and(|program| program.starts_with("memcached ")));
        let process = |run: usize| {
            let reading = &runs(&result)[run]["results"][0]["evidence"]["servers"][0]["reading"];
            reading["pid"].as_u64().expect("memcached says it")
        };
        assert_eq!(process(0) == process(1), is_one, "{restart}");
        assert!(std::net::TcpStream::connect(&port.name).is_err(), "the program has ended");
    }
}

#[test]
fn rounds_are_made_one_after_the_other_and_parts_of_a_suite_by_name() {
    let server = Memcached::start();
    let file = File::new(THREE);
    let words = ["-s", &server.name, "--rounds", "2", "--only", "reads", "--only", "misses", "-n", "30"];
    let ended = suite_of(&file, &words).end().expect(0);
    let result = result_of(&ended);
    let started = |run: usize, round: usize| {
        runs(&result)[run]["results"][round]["started_unix_s"].as_f64().expect("a time")
    };
    assert_eq!(runs(&result).len(), 2);
    assert!(started(0, 0) < started(1, 0) && started(1, 0) < started(0, 1) && started(0, 1) < started(1, 1));
    // What the command line says holds where a run says nothing itself.
    assert_eq!(runs(&result)[0]["results"][0]["totals"]["completed"], 30);
    assert!(ended.text.contains("The figures are medians of the rounds"), "{}", ended.text);
}

#[test]
fn what_no_suite_can_be_is_refused_before_anything_is_sent() {
    let run = |options: &str| format!("[[run]]\nname = 'a'\noptions = \"{options}\"\n");
    for (text, words, parts) in [
        (run(""), &["--hdr", "x.hlog"][..], &["--hdr", "one run only"][..]),
        (run(""), &["--metrics", "127.0.0.1:0"], &["--metrics", "mixed"]),
        (run("--json x"), &[], &["run 'a'", "--json", "of the suite only"]),
        (run("--seed 3"), &[], &["run 'a'", "--seed", "in [defaults] only"]),
        (run("--no-such"), &[], &["run 'a'", "--no-such", "pummel run"]),
        (run("stray"), &[], &["run 'a'", "stray"]),
        (run("-c many"), &[], &["run 'a'", "many"]),
        (format!("[defaults]\nfly = true\n{}", run("")), &[], &["defaults", "--fly"]),
        (format!("[defaults]\njson = 'x'\n{}", run("")), &[], &["defaults", "--json", "of the suite only"]),
        (run(""), &["--csv", "nightly.toml"], &["--csv", "the suite"]),
        (run(""), &["--only", "b"], &["--only", "expected a text in the name of a run: a"]),
        (run(""), &["--restart"], &["--restart", "--program"]),
        (run(""), &["--rounds", "51"], &["--rounds", "from 1 to 50"]),
        ("[[run]]".to_owned(), &[], &["<SUITE>", "missing field `name`"]),
    ] {
        let file = File::new(&text);
        let name = file.name();
        let words: Vec<&str> =
            words.iter().map(|word| if *word == "nightly.toml" { name.as_str() } else { word }).collect();
        let ended = suite_of(&file, &[&["-s", "127.0.0.1:1"], words.as_slice()].concat()).end().expect(2);
        for part in parts {
            assert!(ended.errors.contains(part), "{text} {words:?} does not say {part:?}: {}", ended.errors);
        }
        assert_eq!(fs::read_to_string(&name).expect("it is there"), text, "the suite is as it was");
    }
    let ended = Running::start_words(&["suite", "ycbs", "-s", "127.0.0.1:1"]).end().expect(2);
    assert!(ended.errors.contains("did you mean 'ycsb'?"), "{}", ended.errors);
}

#[test]
fn every_suite_that_is_known_by_name_can_be_read_and_planned() {
    let inputs = FrontInputs::without_files(1);
    for (name, about) in listed() {
        let suite = suite(name, &inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(suite.runs.len() >= 6 && !about.is_empty(), "{name}");
        for run in &suite.runs {
            let words = ["run", "-s", "127.0.0.1:1"].map(str::to_owned);
            let words = words.into_iter().chain(suite.defaults.clone()).chain(run.options.clone());
            let words: Vec<std::ffi::OsString> = words.map(Into::into).collect();
            if let Err(error) = pummel_fronts::native::job(words, &inputs) {
                // Where a suite leaves the protocol open, operations of RESP alone need its name.
                panic!("{name}, {}: {error}", run.name);
            }
        }
    }
}

#[test]
fn the_suite_for_memcached_is_as_it_expects_itself_to_be() {
    let server = Memcached::start();
    let words = [
        "suite",
        "memcached",
        "-s",
        &server.name,
        "--protocol",
        "text",
        "-t",
        "100ms",
        "--warmup",
        "0",
        "-c",
        "2",
    ];
    let ended = Running::start_words(&words).end();
    let result = result_of(&ended);
    assert_eq!(runs(&result).len(), 12);
    for run in runs(&result) {
        let whole = run["results"][0]["status"] == "complete";
        assert!(whole, "{}: {}", run["name"], run["reason"]);
        for outcome in run["expectations"].as_array().expect("a list") {
            // The generator may be the limit of a busy machine.
            let is_met = outcome["met"] == true || outcome["subject"] == "limit";
            assert!(is_met, "{}: {outcome}", run["name"]);
        }
    }
}
