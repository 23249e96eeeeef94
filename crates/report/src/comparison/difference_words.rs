//! Differences between the plans, the machines and the servers of two sides, named after the options that decide them.

use pummel_logic::plan::{Arrivals, Plan};
use serde_json::{Map, Value};

use super::side::{Difference, plan_differences};
use crate::json_layout::json_value;
use crate::plan_options::{Form, NOT_GIVEN, at, one_line, row_at, value_words};

/// A difference as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceWords {
    /// Name of the difference: an option of `pummel run` if one decides it.
    pub name: String,
    /// Value of each side.
    pub values: [String; 2],
    /// The field by which the sides were found to differ.
    pub field: String,
    /// Whether the load differs.
    pub is_of_the_load: bool,
}

/// The differences between two sides with these plans, in words, each option once, in the order of the Plan.
pub(crate) fn words_of_all(differences: &[Difference], plans: [&Plan; 2]) -> Vec<DifferenceWords> {
    let plans = plans.map(plan_value);
    let mut all: Vec<DifferenceWords> = Vec::new();
    for words in differences.iter().flat_map(|difference| words_of(difference, &plans)) {
        if all.iter().all(|known| known.name != words.name) {
            all.push(words);
        }
    }
    // Of a closed loop that has no rate the arrivals say nothing more.
    let is_closed = |words: &DifferenceWords| words.values.contains(&Arrivals::Closed.to_string());
    if all.iter().any(|words| words.name == "--rate") {
        all.retain(|words| words.name != "--arrivals" || !is_closed(words));
    }
    all
}

/// The options that decide the fields in which two plans differ, each once.
pub fn options_of<'a>(fields: impl Iterator<Item = &'a Difference>, plans: [&Plan; 2]) -> Vec<String> {
    let plans = plans.map(plan_value);
    let mut names: Vec<String> = Vec::new();
    for words in fields.flat_map(|difference| words_of(difference, &plans)) {
        if !names.contains(&words.name) {
            names.push(words.name);
        }
    }
    names
}

/// The option of the first difference that makes the loads of two plans differ; `None` if their loads are equal.
pub fn load_difference(first: &Plan, second: &Plan) -> Option<String> {
    let found = plan_differences(first, second);
    let first_found = found.iter().filter(|difference| difference.is_of_the_load).take(1);
    options_of(first_found, [first, second]).into_iter().next()
}

fn plan_value(plan: &Plan) -> Value {
    json_value(&plan.told())
}

fn words_of(difference: &Difference, plans: &[Value; 2]) -> Vec<DifferenceWords> {
    let plain = || difference.values.each_ref().map(value_words);
    let named = match difference.name.strip_prefix("plan.") {
        Some(path) => of_plan(&path.split('.').collect::<Vec<&str>>(), plans),
        None => vec![(source_name(&difference.name), plain())],
    };
    // A newer version may have compared plans with fields that this one does not know.
    let named = if named.is_empty() { vec![(one_line(&difference.name), plain())] } else { named };
    let words = |(name, values)| DifferenceWords {
        name,
        values,
        field: difference.name.clone(),
        is_of_the_load: difference.is_of_the_load,
    };
    named.into_iter().map(words).collect()
}

/// The names of a field of the Plan and its values. A part of the Plan that one side does not have is told by its fields, unless it has a
/// name of its own; a field without a name has no words.
fn of_plan(steps: &[&str], plans: &[Value; 2]) -> Vec<(String, [String; 2])> {
    if let Some(found) = of_item(steps, plans) {
        return vec![found];
    }
    let parts = plans.each_ref().map(|plan| at(plan, steps));
    let row = row_at(steps);
    let is_part = parts.iter().any(|part| part.is_object());
    if !is_part || row.is_some_and(|row| row.steps().len() == steps.len()) {
        let Some(row) = row else { return Vec::new() };
        let steps = &steps[..row.steps().len()];
        let values = plans.each_ref().map(|plan| row.value(plan, steps));
        return vec![(format!("{}{}", row.name(), whose(steps, plans)), values)];
    }
    let keys = parts.iter().filter_map(|part| part.as_object()).flat_map(Map::keys);
    // A field of both sides is found twice, and its words are shown once.
    let differing = keys.filter(|key| parts[0].get(key) != parts[1].get(key));
    let told = differing.flat_map(|key| of_plan(&[steps, &[key.as_str()]].concat(), plans));
    told.filter(|(_, [first, second])| first != second).collect()
}

/// Name and values of a group or a phase that one side does not have, and of the time of a phase; `None` for all else.
fn of_item(steps: &[&str], plans: &[Value; 2]) -> Option<(String, [String; 2])> {
    let [list @ ("groups" | "phases"), item, rest @ ..] = steps else { return None };
    let steps = [*list, *item];
    let either = |rest: &[&str]| {
        plans.iter().map(|plan| at(plan, &[&steps, rest].concat())).find(|found| !found.is_null())
    };
    let is_measured = either(&["recorded"]) == Some(&Value::Bool(true));
    let have_until = || plans.iter().all(|plan| !at(plan, &["adaptive", "until"]).is_null());
    let presence = |there: &str, missing: &str| {
        plans.each_ref().map(|plan| if at(plan, &steps).is_null() { missing } else { there }.to_owned())
    };
    match rest {
        [] if either(&["work", "load"]).is_some() => {
            Some((format!("--no-load{}", whose(&steps, plans)), presence(NOT_GIVEN, "given")))
        }
        [] | ["stop", "time_ns"] if *list == "phases" && !is_measured => {
            let words = |form: Form| plans.each_ref().map(|plan| form.words(plan, &[]));
            let [first, second] = words(Form::WarmUp);
            Some(match first == second {
                true => ("--warmup-until".to_owned(), words(Form::WarmUpUntil)),
                false => ("--warmup".to_owned(), [first, second]),
            })
        }
        ["stop", "time_ns"] if have_until() => {
            let time = |plan| Form::Time.words(plan, &[steps[0], steps[1], "stop", "time_ns"]);
            Some((format!("--max-time{}", whose(&steps, plans)), plans.each_ref().map(time)))
        }
        [] => {
            let name = either(&["name"]).and_then(Value::as_str).unwrap_or(item);
            let kind = list.trim_end_matches('s');
            Some((format!("{kind} {}", one_line(name)), presence("there", "not there")))
        }
        _ => None,
    }
}

/// Which group or measured phase a value belongs to, where there are several.
fn whose(steps: &[&str], plans: &[Value; 2]) -> String {
    let [list @ ("groups" | "phases"), item, ..] = steps else { return String::new() };
    let counts = |item: &&Value| *list == "groups" || item["recorded"] == Value::Bool(true);
    let several =
        |plan: &Value| plan[*list].as_array().is_some_and(|all| all.iter().filter(counts).count() > 1);
    let name = plans.iter().find_map(|plan| at(plan, &[*list, *item])["name"].as_str().map(one_line));
    match name.filter(|_| plans.iter().any(several)) {
        Some(name) => format!(" ({} {name})", list.trim_end_matches('s')),
        None => String::new(),
    }
}

/// The displayed name of a fact about a server, a machine or the tool.
fn source_name(path: &str) -> String {
    let words = |steps: &[&str]| one_line(&steps.join(" ").replace('_', " "));
    let steps: Vec<&str> = path.split('.').collect();
    // Items are counted from 1 by people.
    let number =
        |place: &str| place.parse::<usize>().map_or_else(|_| place.to_owned(), |at| (at + 1).to_string());
    match steps.as_slice() {
        ["server", place, rest @ ..] => format!("server {}: {}", number(place), words(rest)),
        ["machine", place, rest @ ..] if place.parse::<usize>().is_ok() => {
            format!("machine {}: {}", number(place), words(rest))
        }
        ["machine", rest @ ..] => format!("machine: {}", words(rest)),
        ["tool", "version"] => "version of pummel".to_owned(),
        ["program", ..] => "program of the server".to_owned(),
        ["labels", rest @ ..] => format!("--label {}", one_line(&rest.join("."))),
        steps => words(steps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_servers_and_machines_are_told_in_words() {
        let known = [
            ("server.0.serving_threads", "server 1: serving threads"),
            ("machine.0.cpu_model", "machine 1: cpu model"),
            ("tool.version", "version of pummel"),
            ("labels.branch", "--label branch"),
        ];
        for (path, words) in known {
            assert_eq!(source_name(path), words);
        }
    }
}
