//! Plans and results that an earlier version of the program wrote: they stay readable and keep their fields.
//!
//! Each folder below `fixtures/` has the name of the schema that its files follow, with the command lines that they came from.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pummel_fronts::job::FrontInputs;
use pummel_fronts::native;
use pummel_fronts::native::saved;
use pummel_fronts::outputs::Format;
use pummel_report::document::Document;
use pummel_report::json;
use pummel_tool::commands::schema::SchemaName;
use pummel_tool::front_inputs;
use serde_json::Value;

use crate::common::agent::Agent;
use crate::common::{Running, Serve, fits};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-1")
}

/// The command lines of a folder of fixtures, by the names of their files. `~` stands for a blank inside a word.
fn commands(folder: &str) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(fixtures().join(folder).join("commands.txt")).expect("it lists them");
    let command = |line: &str| {
        let (name, words) = line.split_once(" = ").expect("a name and a command line");
        (name.to_owned(), words.split(' ').map(|word| word.replace('~', " ")).collect())
    };
    text.lines().map(command).collect()
}

/// The files of a folder of fixtures with this ending.
fn files(folder: &str, ending: &str) -> BTreeMap<String, PathBuf> {
    let paths = fs::read_dir(fixtures().join(folder)).expect("it is there");
    let paths = paths.map(|entry| entry.expect("it can be read").path());
    let found = paths.filter(|path| path.extension().is_some_and(|own| own == ending));
    found.map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path)).collect()
}

/// Calls the program in the folder of the fixtures, where command lines find their input files.
fn pummel(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.env_remove("MEMCACHED_SERVERS").current_dir(fixtures()).args(words);
    command.output().expect("the program can be started")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the program writes UTF-8")
}

/// The text of a plan without its seed, which is the first of the name.
fn without_seed(plan: &str) -> String {
    let end_of_line = |from: usize| plan[from..].find('\n').map_or(plan.len(), |length| from + length);
    let from = plan.find("seed").expect("a plan has a seed");
    format!("{}{}", &plan[..from], &plan[end_of_line(from)..])
}

/// The plan in a file, as `pummel run --plan FILE` takes it, in both forms that the program writes.
fn loaded(path: &Path) -> [String; 2] {
    let words: [OsString; 3] = ["run".into(), "--plan".into(), path.into()];
    let inputs = FrontInputs { seed: 0, servers: None, ..front_inputs::of_process() };
    let job = native::job(words, &inputs).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let printed = [Format::Text, Format::Json].map(|format| saved::print(&job.plan, format));
    fits(SchemaName::Plan, &serde_json::from_str(&printed[1]).expect("JSON"));
    printed
}

#[test]
fn every_saved_plan_loads_and_is_saved_with_its_own_bytes() {
    let (toml, json) = (files("plans", "toml"), files("plans", "json"));
    assert_eq!(toml.keys().collect::<Vec<_>>(), commands("plans").keys().collect::<Vec<_>>());
    assert!(json.len() >= 3);
    for (name, path) in &toml {
        let kept = fs::read_to_string(path).expect("readable");
        assert_eq!(loaded(path)[0], kept, "{name}");
    }
    for (name, path) in &json {
        let kept = fs::read_to_string(path).expect("readable");
        let [as_toml, as_json] = loaded(path);
        assert_eq!(as_json, kept, "{name}");
        assert_eq!(as_toml, loaded(&toml[name])[0], "{name}: both forms hold one plan");
    }
}

/// Additions to what command lines of mutilate's meant then: a rate ends with `-t`, and with `--getset` alone every
/// line of a recording is a read.
const MUTILATE_SINCE: [&str; 2] = ["ends_on_time = true\n", "reads_only = true\n"];

/// The time after which a connection of mcperf is given up, where the command line has none, and the one that these plans have.
const MCPERF_LIMIT: &str = "timeout_ns = 60000000000\n";
const MCPERF_NO_LIMIT: &str = "timeout_ns = 1000000000000000000\n";

/// Additions to what command lines of mcperf's said then: no evidence is taken of their runs.
const MCPERF_SINCE: &str = "evidence = false\n";

/// Addition to what command lines of other tools said then: they make no round trips before a run.
const NO_BASELINE: &str = "baseline = false\n";

#[test]
fn every_command_line_is_explained_with_the_words_of_its_plan() {
    let kept = files("plans", "toml");
    for (name, words) in commands("plans") {
        let line: Vec<&str> = ["explain"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let output = pummel(&line);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(output.stderr));
        let (mut explained, mut plan) =
            (text(output.stdout), fs::read_to_string(&kept[&name]).expect("readable"));
        if !words.iter().any(|word| word.starts_with("--seed")) {
            (explained, plan) = (without_seed(&explained), without_seed(&plan));
        }
        if words.iter().any(|word| ["mutilate", "mcperf", "memaslap"].contains(&word.as_str())) {
            explained = explained.replace(NO_BASELINE, "");
        }
        if words.iter().any(|word| word == "mutilate") {
            explained = MUTILATE_SINCE.iter().fold(explained, |text, line| text.replace(line, ""));
        }
        if words.iter().any(|word| word == "mcperf") {
            explained = explained.replace(MCPERF_SINCE, "").replace(MCPERF_LIMIT, MCPERF_NO_LIMIT);
        }
        if words.iter().any(|word| word == "memaslap") {
            explained = bound_to_no_cpu(&explained);
        }
        // The options beside the fields are no part of the plan.
        let line = |line: &str| line.split_once("  # --").map_or(line, |(line, _)| line).to_owned() + "\n";
        assert_eq!(explained.lines().map(line).collect::<String>(), plan, "{name}");
    }
}

/// A plan of memaslap without the CPUs of this machine: one thread is bound to one of them as well since then.
fn bound_to_no_cpu(plan: &str) -> String {
    let (before, bound) = plan.split_once("cpus = [").expect("a plan names its CPUs");
    let (_, after) = bound.split_once(']').expect("a list ends");
    format!("{before}cpus = []{after}")
}

#[test]
fn the_plan_in_every_result_loads() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, path) in files("results", "json") {
        let result = read(&path);
        let file = folder.path().join(format!("{name}.json"));
        fs::write(&file, result["plan"].to_string()).expect("written");
        let [_, json] = loaded(&file);
        let again: Value = serde_json::from_str(&json).expect("a plan in JSON");
        assert_eq!(again, result["plan"], "{name}");
    }
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("readable");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fields whose keys come from servers or from the course of a run, so that a result need not have them all.
const OPEN_KEYS: [&str; 2] = ["error_messages", "above"];

/// The kinds of what each field of a result holds, by its path.
type Fields = BTreeMap<String, BTreeSet<&'static str>>;

/// Finds every field of a result, with the kinds of what it holds, as far as they are known: null says nothing. The elements of a
/// list are fields of the one name `[]`.
fn fields(value: &Value, path: &str, found: &mut Fields) {
    let kind = match value {
        Value::Null => None,
        Value::Bool(_) => Some("true or false"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("text"),
        Value::Array(_) => Some("list"),
        Value::Object(_) => Some("object"),
    };
    found.entry(path.to_owned()).or_default().extend(kind);
    match value {
        Value::Array(elements) => {
            elements.iter().for_each(|element| fields(element, &format!("{path}[]"), found));
        }
        Value::Object(members) if !is_open(path) => {
            members.iter().for_each(|(key, member)| fields(member, &format!("{path}.{key}"), found));
        }
        _ => {}
    }
}

/// Whether the field at this path is one of [`OPEN_KEYS`].
fn is_open(path: &str) -> bool {
    path.rsplit('.').next().is_some_and(|name| OPEN_KEYS.contains(&name))
}

/// Whether the fields of a result cannot tell if it has the one at this path: it would lie in a list without elements, or
/// in something that is null.
fn is_unknown(path: &str, fields: &Fields) -> bool {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at).filter(|at| *at > 0);
    let mut around = ends.filter_map(|at| Some((at, fields.get(&path[..at])?)));
    around.any(|(at, kinds)| {
        let is_empty_list = path[at..].starts_with('[') && !fields.contains_key(&path[..at + 2]);
        kinds.is_empty() || is_empty_list
    })
}

/// Asserts that `fresh` has every field of `kept`, and of no other kind; a field in [`OPEN_KEYS`] may be absent.
#[track_caller]
fn check_fields(name: &str, kept: &Value, fresh: &Value) {
    let (mut old, mut new) = (Fields::new(), Fields::new());
    fields(kept, "", &mut old);
    fields(fresh, "", &mut new);
    for (path, kinds) in old {
        if is_open(&path) {
            continue;
        }
        if is_unknown(&path, &new) {
            continue;
        }
        let now = new.get(&path).unwrap_or_else(|| panic!("{name}: the field {path} is gone"));
        let is_known = !kinds.is_empty() && !now.is_empty();
        assert!(!is_known || *now == kinds, "{name}: {path} was {kinds:?} and is {now:?}");
    }
}

/// Runs the command line of a result against servers and agents that are started for it. A run that is to end as `partial`
/// loses its server after the first interval, and one that is to be `interrupted` gets a SIGINT then.
fn run_again(name: &str, words: &[String]) -> Value {
    let server = Serve::start(if name == "udp" { "--udp-framing stream" } else { "" });
    let agent = words.iter().any(|word| word == "AGENT").then(Agent::start);
    let (_, port) = server.name.rsplit_once(':').expect("a port");
    let words = words.iter().map(|word| match word.as_str() {
        "SERVER" => &server.name,
        "PORT" => port,
        "AGENT" => &agent.as_ref().expect("it was started").name,
        other => other,
    });
    let mut running = Running::start_words(&words.collect::<Vec<_>>());
    let status = match name {
        "partial" => {
            running.wait_for_progress();
            drop(server);
            1
        }
        "interrupted" => {
            running.wait_for_progress();
            running.process.interrupt();
            130
        }
        _ => 0,
    };
    running.end().expect(status).json().0
}

#[test]
fn results_keep_every_field_and_its_kind() {
    let kept = files("results", "json");
    let commands = commands("results");
    assert_eq!(kept.keys().collect::<Vec<_>>(), commands.keys().collect::<Vec<_>>());
    for (name, words) in commands {
        let kept = read(&kept[&name]);
        let fresh = run_again(&name, &words);
        assert_eq!(fresh["schema"], kept["schema"], "{name}");
        assert_eq!(fresh["status"], kept["status"], "{name}");
        check_fields(&name, &kept, &fresh);
    }
}

#[test]
fn a_field_that_is_gone_or_has_another_kind_is_told() {
    let kept: Value = serde_json::json!({"a": [{"b": 1, "c": null}], "d": {"e": "x"}});
    check_fields("more", &kept, &serde_json::json!({"a": [{"b": 2, "c": 3, "f": 4}], "d": {"e": "y"}}));
    for fresh in [
        serde_json::json!({"a": [{"b": 1}], "d": {"e": "x"}}),
        serde_json::json!({"a": [{"b": "1", "c": null}], "d": {"e": "x"}}),
        serde_json::json!({"a": [], "d": {}}),
    ] {
        let told = std::panic::catch_unwind(|| check_fields("less", &kept, &fresh));
        assert!(told.is_err(), "{fresh}");
    }
}

#[test]
fn every_result_of_an_earlier_version_is_read_as_a_document_and_keeps_its_figures() {
    for (name, path) in files("results", "json") {
        let bytes = fs::read(&path).expect("readable");
        let document = Document::read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again: Value = serde_json::from_slice(&json::render(&document)).expect("JSON");
        contains(&name, &again, &read(&path));
    }
}

/// Asserts that `found` has every field of `kept` with its value. What an earlier version did not say may be there too.
#[track_caller]
fn contains(path: &str, found: &Value, kept: &Value) {
    match (found, kept) {
        (Value::Object(found), Value::Object(kept)) => {
            for (name, value) in kept {
                let found = found.get(name).unwrap_or_else(|| panic!("{path}.{name} is gone"));
                contains(&format!("{path}.{name}"), found, value);
            }
        }
        (Value::Array(found), Value::Array(kept)) => {
            assert_eq!(found.len(), kept.len(), "{path}");
            for (at, (found, kept)) in found.iter().zip(kept).enumerate() {
                contains(&format!("{path}[{at}]"), found, kept);
            }
        }
        _ => assert_eq!(found, kept, "{path}"),
    }
}
