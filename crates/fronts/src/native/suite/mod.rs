//! Suites: files that name runs with their options, and those that this program knows by name.

mod built_in;
mod expected;

use std::collections::{BTreeMap, BTreeSet};

use pummel_report::suite::Expectation;
use serde::Deserialize;

pub use self::built_in::listed;
use crate::job::{FrontInputs, UsageError};
use crate::values::ValueError;
use crate::values::nearest::hint;

/// Most runs of a suite.
const RUNS_MAX: usize = 200;

/// Most rounds of a suite.
pub const ROUNDS_MAX: u32 = 50;

/// Most characters of a name and of a title.
const NAME_CHARS_MAX: usize = 80;

/// Runs with names that are made in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Title; the name of the file where it has none.
    pub title: String,
    /// Command line of the server that is started; absent for servers that are there.
    pub program: Option<String>,
    /// What is done to the server before each run.
    pub restart: Restart,
    /// Number of times that each run is made.
    pub rounds: u32,
    /// Options that every run has, as words.
    pub defaults: Vec<String>,
    /// The runs.
    pub runs: Vec<SuiteEntry>,
}

/// What is done to the server of a suite before each run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Nothing.
    #[default]
    Never,
    /// Its program is started for each run and ended after it.
    Program,
    /// A command of the shell restarts it.
    Command(String),
}

/// A run of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct SuiteEntry {
    /// Name, which no other run of the suite has.
    pub name: String,
    /// Options of the run, as words.
    pub options: Vec<String>,
    /// Command line of a server that is started for this run alone; absent for that of the suite.
    pub program: Option<String>,
    /// What the run is expected to show.
    pub expectations: Vec<Expectation>,
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: Option<String>,
    program: Option<String>,
    #[serde(default)]
    restart: WrittenRestart,
    rounds: Option<u64>,
    #[serde(default)]
    defaults: BTreeMap<String, toml::Value>,
    #[serde(default)]
    run: Vec<WrittenRun>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRun {
    name: String,
    #[serde(default)]
    options: WrittenOptions,
    program: Option<String>,
    #[serde(default)]
    expect: BTreeMap<String, toml::Value>,
}

/// `restart = true`, or a command.
#[derive(Deserialize)]
#[serde(untagged, expecting = "restart: expected true, false or a command")]
enum WrittenRestart {
    Wanted(bool),
    Command(String),
}

impl Default for WrittenRestart {
    fn default() -> WrittenRestart {
        WrittenRestart::Wanted(false)
    }
}

/// One text with all options, as a shell reads it, or a list of words.
#[derive(Deserialize)]
#[serde(untagged, expecting = "options: expected a text, as in a shell, or a list of texts")]
enum WrittenOptions {
    Text(String),
    Words(Vec<String>),
}

impl Default for WrittenOptions {
    fn default() -> WrittenOptions {
        WrittenOptions::Words(Vec::new())
    }
}

/// The suite that a name means: one that this program knows, or else that of the file with this name.
///
/// # Errors
/// Returns [`UsageError`] for a name that is neither, and for a file that is no suite.
pub fn suite(name: &str, inputs: &FrontInputs) -> Result<Suite, UsageError> {
    let text = text(name, inputs)?;
    let own = name.rsplit('/').next().unwrap_or(name);
    let own = own.strip_suffix(".toml").unwrap_or(own);
    Suite::read(&text, own).map_err(|why| refused(name, why.0))
}

/// The text of the suite that a name means.
///
/// # Errors
/// Returns [`UsageError`] for a name that this program does not know and that is no file.
pub fn text(name: &str, inputs: &FrontInputs) -> Result<String, UsageError> {
    if let Some(text) = built_in::find(name) {
        return Ok(text.to_owned());
    }
    (inputs.read_text)(name).map_err(|error| {
        let names = listed().map(|(known, _)| known);
        let near = hint(name, names.clone());
        let names = names.collect::<Vec<_>>().join(", ");
        refused(name, format!("expected the file of a suite, or one of {names}{near}; as a file: {error}"))
    })
}

fn refused(name: &str, accepted: String) -> UsageError {
    UsageError::Value { flag: "<SUITE>".to_owned(), value: name.to_owned(), accepted }
}

impl Suite {
    /// The suite in the text of a file; `name` is its title where the file has none.
    ///
    /// # Errors
    /// Returns [`ValueError`] for text that is no TOML, has other fields, or has values that cannot be read.
    pub fn read(text: &str, name: &str) -> Result<Suite, ValueError> {
        let written: Written = crate::values::written::from_toml(text)
            .map_err(|why| ValueError(format!("expected the file of a suite; {why}")))?;
        let restart = match written.restart {
            WrittenRestart::Wanted(false) => Restart::Never,
            WrittenRestart::Wanted(true) if written.program.is_none() => {
                return wrong(
                    "restart = true needs the `program` that is to be started; else give the command that restarts it",
                );
            }
            WrittenRestart::Wanted(true) => Restart::Program,
            WrittenRestart::Command(command) if command.trim().is_empty() => {
                return wrong("restart: expected true, false or a command");
            }
            WrittenRestart::Command(_) if written.program.is_some() => {
                return wrong("a suite with a `program` restarts it by restart = true");
            }
            WrittenRestart::Command(command) => Restart::Command(command),
        };
        let rounds = match written.rounds {
            None => 1,
            Some(rounds) => u32::try_from(rounds)
                .ok()
                .filter(|rounds| (1..=ROUNDS_MAX).contains(rounds))
                .ok_or_else(|| ValueError(format!("rounds = {rounds}: expected 1 to {ROUNDS_MAX}")))?,
        };
        if written.run.is_empty() || written.run.len() > RUNS_MAX {
            return wrong(&format!(
                "expected 1 to {RUNS_MAX} tables [[run]], and found {}",
                written.run.len()
            ));
        }
        let title = checked_name("title", written.title.unwrap_or_else(|| name.to_owned()))?;
        let defaults = words_of("defaults", written.defaults)?;
        let runs = written.run.into_iter().map(SuiteEntry::of).collect::<Result<Vec<SuiteEntry>, _>>()?;
        let mut names = BTreeSet::new();
        if let Some(twice) = runs.iter().find(|run| !names.insert(run.name.as_str())) {
            return wrong(&format!("two runs are called '{}'", twice.name));
        }
        Ok(Suite { title, program: written.program, restart, rounds, defaults, runs })
    }
}

impl SuiteEntry {
    fn of(written: WrittenRun) -> Result<SuiteEntry, ValueError> {
        let name = checked_name("name", written.name)?;
        let of_run = |why: &str| ValueError(format!("run '{name}': {why}"));
        let options = match written.options {
            WrittenOptions::Words(words) => words,
            WrittenOptions::Text(text) => {
                shell_words::split(&text).map_err(|_| of_run("a quote of its options is not closed"))?
            }
        };
        let expected = |(subject, value): (String, toml::Value)| {
            expected::expectation(&subject, &value)
                .map_err(|why| of_run(&format!("expect.{subject}: {}", why.0)))
        };
        let expectations = written.expect.into_iter().map(expected).collect::<Result<_, _>>()?;
        Ok(SuiteEntry { name, options, program: written.program, expectations })
    }
}

fn wrong<T>(why: &str) -> Result<T, ValueError> {
    Err(ValueError(why.to_owned()))
}

/// A name or a title that a line can show.
fn checked_name(field: &str, name: String) -> Result<String, ValueError> {
    let chars = name.chars().count();
    let is_shown = !name.trim().is_empty() && chars <= NAME_CHARS_MAX && !name.chars().any(char::is_control);
    match is_shown {
        true => Ok(name),
        false => {
            wrong(&format!("{field}: expected 1 to {NAME_CHARS_MAX} letters on one line, and no others"))
        }
    }
}

/// Options from a table: each name is that of a long option, `true` stands for an option without a value, and a list for one that is
/// repeated.
fn words_of(table: &str, options: BTreeMap<String, toml::Value>) -> Result<Vec<String>, ValueError> {
    let mut words = Vec::new();
    for (name, value) in options {
        let of_option = |why: &str| ValueError(format!("{table}.{name}: {why}"));
        if name.is_empty()
            || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-.".contains(letter))
        {
            return Err(of_option("expected the name of a long option, without its dashes"));
        }
        let values = match value {
            toml::Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            words.push(match value {
                toml::Value::Boolean(true) => format!("--{name}"),
                toml::Value::String(text) => format!("--{name}={text}"),
                toml::Value::Integer(number) => format!("--{name}={number}"),
                toml::Value::Float(number) => format!("--{name}={number}"),
                toml::Value::Boolean(false) => {
                    return Err(of_option("leave the option out in place of = false"));
                }
                _ => return Err(of_option("expected a text, a number, true, or a list of those")),
            });
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use pummel_report::suite::expectation::{Relation, Subject, Wanted};

    use super::*;

    fn read(text: &str) -> Result<Suite, String> {
        Suite::read(text, "own").map_err(|why| why.0)
    }

    #[test]
    fn a_file_has_its_runs_in_order_with_their_options_and_expectations() {
        let suite = read(
            "title = 'our cache'\nrounds = 3\n\
             [defaults]\ntime = '20s'\nconnections = 50\nno-load = true\nlabel = ['a=1', 'b=2']\n\
             [[run]]\nname = 'reads'\noptions = \"--mix get:1 --key-prefix 'a b'\"\n\
             expect = { p99 = '<1ms', hits = '>99%', limit = 'server' }\n\
             [[run]]\nname = 'writes'\noptions = ['--mix', 'set:1']\n",
        )
        .expect("a suite");
        assert_eq!((suite.title.as_str(), suite.rounds, suite.runs.len()), ("our cache", 3, 2));
        assert_eq!(
            suite.defaults,
            ["--connections=50", "--label=a=1", "--label=b=2", "--no-load", "--time=20s"]
        );
        let [reads, writes] = suite.runs.as_slice() else { panic!("two runs") };
        assert_eq!(reads.options, ["--mix", "get:1", "--key-prefix", "a b"]);
        assert_eq!(writes.options, ["--mix", "set:1"]);
        let expected: Vec<(&str, &Wanted)> =
            reads.expectations.iter().map(|one| (one.subject.name(), &one.wanted)).collect();
        assert_eq!(
            expected,
            [
                ("hits", &Wanted::Figure(Relation::Above, 0.99)),
                ("limit", &Wanted::OneOf(vec!["server".to_owned()])),
                ("p99", &Wanted::Figure(Relation::Below, 1_000.0)),
            ]
        );
        assert_eq!(reads.expectations[2].subject, Subject::Response("p99".to_owned()));
    }

    #[test]
    fn the_name_of_the_file_is_the_title_of_a_suite_without_one() {
        let text = "[[run]]\nname = 'a'";
        assert_eq!(read(text).expect("a suite").title, "own");
        let inputs = FrontInputs {
            read_text: |_| Ok("[[run]]\nname = 'a'".to_owned()),
            ..FrontInputs::without_files(1)
        };
        assert_eq!(suite("some/night.toml", &inputs).expect("a suite").title, "night");
    }

    #[test]
    fn what_is_no_suite_is_refused_with_the_place() {
        for (text, words) in [
            ("", "1 to 200 tables [[run]]"),
            ("[[run]]\noptions = ''", "missing field `name`"),
            ("[[run]]\nname = ' '", "name: expected 1 to 80 letters"),
            ("[[run]]\nname = 'a'\n[[run]]\nname = 'a'", "two runs are called 'a'"),
            ("[[run]]\nname = 'a'\noptions = \"-c 'x\"", "run 'a': a quote"),
            ("[[run]]\nname = 'a'\nexpects = {}", "unknown field `expects` (did you mean 'expect'?)"),
            ("[[run]]\nname = 'a'\nexpect = { hit = '>9%' }", "run 'a': expect.hit: expected one of hits"),
            ("restart = ' '\n[[run]]\nname = 'a'", "restart: expected true, false or a command"),
            ("restart = 1\n[[run]]\nname = 'a'", "restart: expected true, false or a command"),
            ("[[run]]\nname = 'a'\noptions = 5", "options: expected a text"),
            ("rounds = 0\n[[run]]\nname = 'a'", "rounds = 0: expected 1 to 50"),
            ("restart = true\n[[run]]\nname = 'a'", "needs the `program`"),
            ("program = 'x'\nrestart = 'y'\n[[run]]\nname = 'a'", "restarts it by restart = true"),
            ("[defaults]\nload = false\n[[run]]\nname = 'a'", "defaults.load: leave the option out"),
            (
                "[defaults]\n'a b' = 1\n[[run]]\nname = 'a'",
                "defaults.a b: expected the name of a long option",
            ),
            ("[defaults]\ntime = {}\n[[run]]\nname = 'a'", "defaults.time: expected a text"),
        ] {
            let why = read(text).expect_err(text);
            assert!(why.contains(words), "{text}: {why}");
        }
        let why = suite("ycbs", &FrontInputs::without_files(1)).expect_err("no suite").to_string();
        assert!(why.contains("did you mean 'ycsb'?"), "{why}");
    }
}
