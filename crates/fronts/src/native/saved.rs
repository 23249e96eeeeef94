//! Plans as the text of files: TOML for people, JSON for programs.

use std::io;
use std::path::Path;

use pummel_logic::plan::{Plan, SCHEMA};
use pummel_report::plan_options::OPTIONS;
use serde::Deserialize;
use serde_json::Value;

use crate::outputs::Format;
use crate::values::{ValueError, written};

/// Why the plan of a result cannot be run whose command is not that of the run.
const MASKED: &str = "the command of this one was masked: results have *** in place of passwords, and with --anonymous in place of \
                      arguments";

/// The one thing that plans of all versions have in common.
#[derive(Deserialize)]
struct Head {
    schema: u32,
}

/// The plan in a file, whose text `read_text` returns: JSON when the file's name ends in `.json` or its first character is
/// `{`, else TOML. Of the result of a run in JSON it is the plan that was run.
///
/// # Errors
/// Returns [`ValueError`] when `read_text` cannot read the file, and when the text has another schema or holds no plan.
pub fn read(path: &str, read_text: impl Fn(&str) -> io::Result<String>) -> Result<Plan, ValueError> {
    let wrong = |why: String| ValueError(format!("expected a plan saved by `pummel explain`; {why}"));
    let text = read_text(path).map_err(|error| wrong(error.to_string()))?;
    let form = match form_of(path) {
        Some(form) => form,
        None if text.trim_start().starts_with('{') => Form::Json,
        None => Form::Toml,
    };
    let plan = parse(&plan_of_result(text, form), form).map_err(wrong)?;
    if plan.has_masked_command() {
        return Err(wrong(MASKED.to_owned()));
    }
    Ok(plan)
}

/// The text of a plan: `text` itself, or the plan in it if it is a result, which has a plan and a status side by side.
fn plan_of_result(text: String, form: Form) -> String {
    #[derive(Deserialize)]
    struct InResult {
        plan: Value,
        #[serde(rename = "status")]
        _status: String,
    }
    match form {
        Form::Json => {
            serde_json::from_slice(text.as_bytes()).map_or(text, |result: InResult| result.plan.to_string())
        }
        Form::Toml => text,
    }
}

/// A plan as the text of a file: JSON when its name ends in `.json`, else TOML.
pub fn text_for(plan: &Plan, path: &Path) -> String {
    write(plan, path.to_str().and_then(form_of).unwrap_or(Form::Toml))
}

/// A plan as text, as `explain` prints it: TOML for people, JSON where that is asked for.
pub fn print(plan: &Plan, format: Format) -> String {
    match format {
        Format::Text => write(plan, Form::Toml),
        Format::Json => write(plan, Form::Json),
    }
}

/// A plan of `run` or `load` as `explain` prints it for people: TOML, and behind each field the option that decides it.
pub fn print_with_options(plan: &Plan) -> String {
    let (mut table, mut is_recorded, mut text_end) = (String::new(), false, None::<&str>);
    let mut told = String::new();
    for line in write(plan, Form::Toml).lines() {
        told += line;
        if let Some(end) = text_end {
            text_end = Some(end).filter(|end| !line.ends_with(*end));
        } else if let Some((key, value)) = line.split_once(" = ") {
            is_recorded = if key == "recorded" { value == "true" } else { is_recorded };
            text_end = ["\"\"\"", "'''"].into_iter().find(|end| value == *end);
            let flag = option_beside(plan, &table, key, is_recorded).filter(|_| text_end.is_none());
            told += &flag.map_or_else(String::new, |flag| format!("  # {flag}"));
        } else {
            table = line.trim_matches(['[', ']']).to_owned();
        }
        told.push('\n');
    }
    told
}

/// The option that decides a field in a table of TOML, where one decides it. A phase that is not measured loads or warms up.
fn option_beside(plan: &Plan, table: &str, key: &str, is_recorded: bool) -> Option<&'static str> {
    let row_of = |path: &str| OPTIONS.iter().find(|row| row.path.replace("[]", "") == path);
    let path = format!("{table}.{key}");
    match path.trim_start_matches('.') {
        "phases.stop.time_ns" if !is_recorded && plan.adaptive.first_eviction => Some("--warmup-until"),
        "phases.stop.time_ns" if !is_recorded => Some("--warmup"),
        "phases.stop.time_ns" if plan.adaptive.until.is_some() => Some("--max-time"),
        "phases.work.load.depth" if !is_recorded => None,
        path => row_of(path).or_else(|| row_of(table)).map(|row| row.flag).filter(|flag| !flag.is_empty()),
    }
}

/// How a plan is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Toml,
    Json,
}

fn form_of(path: &str) -> Option<Form> {
    if path.ends_with(".json") {
        return Some(Form::Json);
    }
    path.ends_with(".toml").then_some(Form::Toml)
}

fn parse(text: &str, form: Form) -> Result<Plan, String> {
    let Head { schema } = parse_as(text, form)?;
    if schema != SCHEMA {
        return Err(format!(
            "this one has schema {schema}, and this version of pummel reads schema {SCHEMA}"
        ));
    }
    parse_as(text, form)
}

fn parse_as<T: for<'de> Deserialize<'de>>(text: &str, form: Form) -> Result<T, String> {
    match form {
        Form::Toml => written::from_toml(text),
        Form::Json => written::from_json(text),
    }
}

fn write(plan: &Plan, form: Form) -> String {
    match form {
        Form::Toml => toml::to_string(plan).expect("every checked plan can be written as TOML"),
        Form::Json => {
            let mut text = serde_json::to_string_pretty(plan).expect("every plan can be written as JSON");
            text.push('\n');
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Adaptive, Command, Group, Mix, Phase, Stop, Work};
    use pummel_logic::protocol::Verb;

    use super::*;

    #[test]
    fn the_plan_of_a_result_is_read_and_a_plan_as_it_is() {
        let plan = Plan { seed: 77, ..Plan::default() };
        let saved = print(&plan, Format::Json);
        let result =
            format!("{{\"schema\": 1, \"status\": \"complete\", \"seconds\": 2.5, \"plan\": {saved}}}");
        for text in [saved, result] {
            for name in ["plan.json", "any"] {
                assert_eq!(read(name, |_| Ok(text.clone())).as_ref(), Ok(&plan), "{text}");
            }
        }
        let foreign = "{\"status\": \"complete\", \"plan\": {\"schema\": 99}}";
        let error = read("plan.json", |_| Ok(foreign.to_owned())).expect_err("it is of another schema");
        assert!(error.to_string().contains("schema 99"), "{error}");
    }

    #[test]
    fn the_plan_of_a_result_with_a_masked_command_is_refused_and_a_saved_plan_is_not() {
        let plan = |command: &str, anonymous| Plan {
            commands: vec![Command::unnamed(command)],
            anonymous,
            ..Plan::default()
        };
        let secret = plan("AUTH u SECRET", false);
        let saved = print(&secret, Format::Json);
        assert!(saved.contains("SECRET"), "a saved plan must run");
        assert_eq!(read("plan.json", |_| Ok(saved.clone())), Ok(secret.clone()));
        for masked in [secret, plan("SET __key__ hidden", true)] {
            let result =
                format!("{{\"status\": \"complete\", \"plan\": {}}}", print(&masked.told(), Format::Json));
            assert!(!result.contains("SECRET") && !result.contains("hidden"), "{result}");
            let error = read("r.json", |_| Ok(result.clone())).expect_err("it is masked").to_string();
            assert!(error.contains("the command of this one was masked"), "{error}");
        }
        for whole in [plan("SET auth ***", false), plan("PING", true)] {
            let result =
                format!("{{\"status\": \"complete\", \"plan\": {}}}", print(&whole.told(), Format::Json));
            assert_eq!(read("r.json", |_| Ok(result.clone())), Ok(whole));
        }
    }

    #[test]
    fn a_printed_plan_names_the_option_of_each_field_and_means_the_same() {
        let stop = |time_ns| Stop { time_ns: Some(time_ns), requests: None };
        let phase = |name: &str, time_ns, recorded| Phase {
            name: name.to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Command, 1.0)])),
            stop: stop(time_ns),
            recorded,
        };
        let plan = Plan {
            commands: vec![Command::unnamed("SET __key__ 'a\ntimeout_ns = 7'")],
            adaptive: Adaptive { first_eviction: true, ..Adaptive::default() },
            groups: vec![Group::default()],
            phases: vec![phase("warmup", 5, false), phase("measure", 6, true)],
            ..Plan::default()
        };
        let text = print_with_options(&plan);
        assert_eq!(read("plan.toml", |_| Ok(text.clone())).as_ref(), Ok(&plan), "{text}");
        for line in [
            "timeout_ns = 1000000000  # --timeout\n",
            "threads = 1  # --threads\n",
            "first_eviction = true  # --warmup-until\n",
            "limit = 1  # --depth\n",
            "time_ns = 5  # --warmup-until\n",
            "time_ns = 6  # --time\n",
            "name = \"clients\"\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn what_is_no_plan_is_refused_on_one_line() {
        let plan = Plan { seed: 77, ..Plan::default() };
        let [toml, json] = [Format::Text, Format::Json].map(|format| print(&plan, format));
        for (name, text, words) in [
            ("empty.toml", String::new(), "line 1, column 1: missing field `schema`"),
            ("a.json", "[]".to_owned(), "expected a JSON object in braces"),
            ("a.toml", toml.replacen("seed", "sede", 1), "unknown field `sede` (did you mean 'seed'?)"),
            ("a.json", json.replacen("seed", "sede", 1), "unknown field `sede` (did you mean 'seed'?)"),
        ] {
            let error = read(name, |_| Ok(text.clone())).expect_err(name).to_string();
            assert!(error.starts_with("expected a plan saved by `pummel explain`; "), "{error}");
            assert!(error.contains(words) && !error.contains('\n'), "{name}: {error}");
        }
    }
}
