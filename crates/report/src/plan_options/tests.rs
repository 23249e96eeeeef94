use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::*;

/// Adds the paths below a part of the schema, each with whether it has fields of its own.
fn walk(schema: &Value, part: &Value, path: &str, found: &mut BTreeMap<String, bool>) {
    if let Some(place) = part["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        return walk(schema, schema.pointer(place).expect("a part of the schema"), path, found);
    }
    let forms = ["anyOf", "oneOf"].into_iter().filter_map(|word| part[word].as_array()).flatten();
    let mut is_choice = false;
    for form in forms {
        is_choice = true;
        walk(schema, form, path, found);
    }
    let fields = part["properties"].as_object();
    let is_part = fields.is_some() || part["items"].is_object();
    if !path.is_empty() && part["type"] != "null" && (is_part || !is_choice) {
        // A field that may be a word or a part is told by its row.
        *found.entry(path.to_owned()).or_insert(is_part) &= is_part;
    }
    for (name, field) in fields.into_iter().flatten() {
        walk(schema, field, format!("{path}.{name}").trim_start_matches('.'), found);
    }
    if part["items"].is_object() {
        walk(schema, &part["items"], &format!("{path}[]"), found);
    }
}

/// The paths of all fields of plans, each with whether it has fields of its own.
fn fields_of_plans() -> BTreeMap<String, bool> {
    let text = include_str!("../../../../docs/plan.schema.json");
    let schema: Value = serde_json::from_slice(text.as_bytes()).expect("JSON");
    let mut found = BTreeMap::new();
    walk(&schema, &schema, "", &mut found);
    found
}

/// What a comparison may find different in two plans has words: a field its own row, or one around it that tells all of it.
#[test]
fn every_field_of_a_plan_has_a_row() {
    let fields = fields_of_plans();
    assert!(fields.len() > 250, "{}", fields.len());
    let without: Vec<&str> = fields
        .iter()
        .filter(|(_, is_part)| !**is_part)
        .map(|(path, _)| path.as_str())
        .filter(|path| row_of(path).is_none_or(|row| row.path != *path && !row.form.tells_all()))
        .collect();
    assert!(without.is_empty(), "without a row: {without:#?}");
}

#[test]
fn every_row_is_a_field_of_plans_and_each_field_has_one() {
    let fields = fields_of_plans();
    let mut known = BTreeSet::new();
    for row in OPTIONS {
        assert!(fields.contains_key(row.path), "{}", row.path);
        assert!(known.insert(row.path), "{} has two rows", row.path);
        assert!(!row.name().is_empty(), "{}", row.path);
    }
}

#[test]
fn rows_are_found_by_the_paths_of_refusals_and_of_plans() {
    for (path, name) in [
        ("servers[]", "--server"),
        ("groups[].depth", "--depth"),
        ("groups.clients.depth.limit", "--depth"),
        ("phases.measure.work.mix.meta.vivify_s", "--vivify"),
        ("adaptive.until.quantile", "--until"),
        ("changes.events.0.what.hot.share", "events (--phases)"),
    ] {
        assert_eq!(row_of(path).map(OptionRow::name), Some(name.to_owned()), "{path}");
    }
    assert!(row_of("adaptive.unknown").is_none());
    assert_eq!(default_of("--connections"), "50");
}

#[test]
fn a_plan_asks_for_what_an_option_asks_for() {
    let plan = json!({"goals": [], "adaptive": {"until": {"quantile": 0.99}}, "anonymous": false, "interval_ns": 1000000000, "timeout_ns": 500000000,
                      "phases": [{"work": {"load": {}}}, {"work": {"mix": {"insert": true, "inserts": true}}}]});
    assert_eq!(given_field("--until", &plan), Some("adaptive.until"));
    assert_eq!(given_field("--insert", &plan), Some("phases[].work.mix.inserts"));
    assert_eq!(given_field("--timeout", &plan), Some("timeout_ns"));
    for flag in ["--goal", "--anonymous", "--stamps", "--interval"] {
        assert_eq!(given_field(flag, &plan), None, "{flag}");
    }
}

#[test]
fn commands_of_a_mix_have_the_names_that_were_typed() {
    let plan = json!({"commands": [{"name": "push", "template": "LPUSH __key__ 1"}, {"name": "range", "template": "LRANGE __key__ 0 9"}],
                      "phases": [{"work": {"mix": {"ops": [["get", 5.0], ["command", 1.0], ["command-2", 9.0], ["command-3", 1.0]]}}}]});
    let row = OPTIONS.iter().find(|row| row.path == "phases[].work.mix.ops").expect("a row");
    assert_eq!(row.value(&plan, &row.steps()), "get:5,push:1,range:9,command-3:1");
}
