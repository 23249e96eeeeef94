//! The JSON of runs in miniature.

use std::collections::BTreeSet;

use super::*;
use crate::comparison::{Claim, ClaimKind, Comparison, PairCommand, Question, Side, SideSource};
use crate::example::{Run, evidence, sample};
use crate::repetition::Repetition;
use crate::run_figures::Metric;
use crate::run_figures::tests::run_at;
use crate::{VERSION, comparison, repetition};
use pummel_logic::plan::{Clock, Goal, Load, Plan, Replay, TlsOptions, Work};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::MILLISECOND;
use pummel_measure::histogram::Histogram;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::reason::Reason;
use pummel_measure::recorder::{Sample, Span};
use serde_json::{Value, json};

fn value(run: &Run) -> Value {
    serde_json::from_slice(&run.document(render)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Adds an interval in which requests remained without an answer.
fn lose(run: &mut Run, timeouts: u64, unsent: u64) {
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..timeouts {
            let outcome = Outcome::Error(Fault::Timeout);
            interval.groups[0].record(&Sample { verb: Verb::Get, outcome, ..sample(i) });
        }
        interval.groups[0].counts(Verb::Get).unsent += unsent;
    });
}

#[test]
fn the_fixed_names_are_there_and_their_figures_are_those_of_the_run() {
    let result = value(&Run::new(Keep::Figures));
    assert_eq!(result["schema"], 1);
    assert_eq!(result["tool"]["name"], "pummel");
    assert_eq!(result["tool"]["version"], VERSION);
    assert_eq!(result["tool"]["profile"], crate::example::BUILD.profile);
    assert_eq!((&result["status"], &result["reason"]), (&json!("complete"), &Value::Null));
    assert_eq!(
        (&result["front"], &result["seconds"], &result["clock"]),
        (&json!("native"), &json!(2.0), &json!("kernel"))
    );
    assert_eq!(
        result["load"],
        json!({"records": 1000, "stored": 1000, "errors": 0, "seconds": 0.012, "bytes": 265000})
    );
    let totals = &result["totals"];
    assert_eq!(
        (&totals["requests"], &totals["completed"], &totals["errors"]),
        (&json!(2000), &json!(2000), &json!(0))
    );
    assert_eq!(
        (&totals["unfinished"], &totals["unsent"], &totals["rate"]),
        (&json!(0), &json!(0), &json!(1000.0))
    );
    let get = &result["ops"]["get"];
    assert_eq!(
        (&get["requests"], &get["completed"], &get["keys"]),
        (&json!(1800), &json!(1800), &json!(1800))
    );
    assert_eq!(
        (&get["hits"], &get["misses"], &get["errors"]["timeout"]),
        (&json!(1700), &json!(100), &json!(0))
    );
    assert_eq!(result["ops"]["set"]["outcomes"]["stored"], 200);
    assert_eq!(result["bytes"], json!({"sent": 120000, "received": 420000}));
    let connections = &result["connections"];
    assert_eq!((&connections["asked"], &connections["open"]), (&json!(10), &json!(10)));
    assert_eq!(
        (&connections["failed"], &connections["lost"], &connections["reconnected"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(connections["connect_us"]["max"], 70.0);
    assert_eq!((&result["verify"]["checked"], &result["verify"]["failed_keys"]), (&json!(0), &json!(0)));
    let generator = &result["generator"];
    assert_eq!((&generator["cpu_user_s"], &generator["cpu_system_s"]), (&json!(0.0012), &json!(0.0098)));
    assert_eq!(
        (&generator["cpu_us_per_request"], &generator["busy_share_max"]),
        (&json!(5.5), &json!(0.125))
    );
    assert_eq!(generator["stamps"], json!({"missing": 0, "shared": 6, "rejected": 0}));
    assert_eq!((&generator["stalls"], &generator["peak_rss_bytes"]), (&json!(0), &json!(11534336)));
    assert_eq!(generator["backend"], "epoll");
    assert_eq!(generator["backend_why"], "the kernel is too old");
    assert_eq!((&generator["limited"], &generator["why"]), (&json!(false), &Value::Null));
}

#[test]
fn handshakes_are_in_the_result_of_encrypted_runs_alone() {
    let mut run = Run::new(Keep::Figures);
    assert_eq!(value(&run)["connections"].get("handshake_us"), None);
    run.plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
    run.measurement.connections.handshake.record(1_500_000);
    run.measurement.connections.resumed = 1;
    let result = value(&run);
    assert_eq!(result["connections"]["handshake_us"]["max"], 1500.0);
    assert_eq!(result["connections"]["resumed"], 1);
    assert_eq!(result["plan"]["tls"], json!({"insecure": true}));
}

#[test]
fn the_plan_in_the_result_is_the_plan_of_the_run() {
    let run = Run::new(Keep::Figures);
    let plan: Plan = serde_json::from_value(value(&run)["plan"].clone()).unwrap();
    assert_eq!(plan, run.plan);
}

#[test]
fn every_span_has_its_figures_and_its_histogram() {
    let run = Run::new(Keep::Figures);
    let result = value(&run);
    let get = &result["ops"]["get"];
    for span in Span::ALL {
        let figures = &get[format!("{}_us", span.name())];
        let mut names = keys(figures);
        names.sort_unstable();
        let mut expected = ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
        expected.sort_unstable();
        assert_eq!(names, expected);
        let encoded = get["histograms"][span.name()].as_str().unwrap();
        let histogram = Histogram::from_base64(encoded).unwrap();
        let measured = run.measurement.ops();
        assert!(histogram.cells().eq(measured.get(Verb::Get).unwrap().times.of(span).cells()));
    }
    assert_eq!(
        get["response_us"]["max"].as_f64().unwrap(),
        93.622,
        "sample 999: 1,000 + 1,683 + 30,000 + 60,939 ns"
    );
}

#[test]
fn what_is_not_known_is_null_and_has_a_lower_bound() {
    let mut run = Run::new(Keep::Figures);
    lose(&mut run, 50, 20);
    let result = value(&run);
    let response = &result["ops"]["get"]["response_us"];
    assert!(response["p95"].is_number());
    for name in ["p99", "p99.9", "p99.99", "max"] {
        assert_eq!(response[name], Value::Null, "{name}");
        assert_eq!(response["above"][name], 1_000_000.0, "{name}");
    }
    assert_eq!(keys(&response["above"]).len(), 4);
    assert_eq!(result["ops"]["set"]["response_us"].get("above"), None);
    let totals = &result["totals"];
    assert_eq!((&totals["requests"], &totals["completed"]), (&json!(2070), &json!(2000)));
    assert_eq!((&totals["errors"], &totals["unsent"]), (&json!(50), &json!(20)));
}

#[test]
fn intervals_have_their_place_rate_and_ops() {
    let mut run = Run::new(Keep::Figures);
    lose(&mut run, 3, 0);
    let intervals = &value(&run)["intervals"];
    assert_eq!(intervals.as_array().unwrap().len(), 3);
    assert_eq!(
        (&intervals[1]["at_s"], &intervals[1]["seconds"], &intervals[1]["rate"]),
        (&json!(1.0), &json!(1.0), &json!(1000.0))
    );
    assert_eq!(intervals[1]["ops"]["get"]["completed"], 900);
    assert_eq!(intervals[1]["ops"]["get"].get("histograms"), None);
    assert_eq!(
        (&intervals[2]["rate"], &intervals[2]["ops"]["get"]["errors"]["timeout"]),
        (&json!(0.0), &json!(3))
    );
}

#[test]
fn the_whole_run_has_counts_and_bytes_of_all_phases() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.whole_run.ops.record(&sample(10));
    run.measurement.whole_run.bytes.sent += 300;
    let whole = &value(&run)["whole_run"];
    assert_eq!(
        (&whole["ops"]["set"]["completed"], &whole["ops"]["get"]["hits"]),
        (&json!(201), &json!(1700))
    );
    assert_eq!(whole["ops"]["set"].get("response_us"), None);
    assert_eq!(whole["bytes"]["sent"], 120_300);
}

#[test]
fn groups_are_kept_apart_where_there_are_more_than_one() {
    let mut run = Run::new(Keep::Figures);
    assert_eq!(value(&run).get("groups"), None);
    let mut second = run.plan.groups[0].clone();
    second.name = "second".to_owned();
    run.plan.groups.push(second);
    let names = run.plan.groups.iter().map(|group| group.name.clone());
    run.measurement = Measurement::new(names, Clock::Kernel, MILLISECOND);
    run.interval(0, Keep::Figures, |interval| {
        (0..30).for_each(|i| interval.groups[usize::from(i >= 20)].record(&sample(i)));
    });
    let result = value(&run);
    let completed: Vec<&Value> = (0..2).map(|at| &result["groups"][at]["totals"]["completed"]).collect();
    assert_eq!(completed, [20, 10]);
    assert_eq!(result["groups"][1]["name"], "second");
    assert_eq!(result["ops"]["set"]["completed"], 3, "ops are those of all groups");
}

#[test]
fn a_run_without_anything_is_valid_json_without_numbers_that_nobody_knows() {
    let mut run = Run::new(Keep::Figures);
    run.measurement = Measurement::new(["all".to_owned()], Clock::User, MILLISECOND);
    run.measurement.mark(Status::Partial, Reason::NotBegun { what: "connection refused".to_owned() });
    run.plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND }];
    let result = value(&run);
    assert_eq!((&result["status"], &result["reason"]), (&json!("partial"), &json!("connection refused")));
    assert_eq!((&result["load"], &result["generator"]["cpu_us_per_request"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&result["totals"]["rate"], &result["totals"]["response_us"]["p50"]),
        (&json!(0.0), &Value::Null)
    );
    assert_eq!(result["verdict"]["limit"], "unknown");
    let goal = json!({"quantile": 0.99, "limit_us": 1000.0, "reached_us": null, "above_us": null, "met": false, "trust": true});
    assert_eq!(result["goals"], json!([goal]));
}

#[test]
fn figures_have_the_intervals_that_are_known() {
    let value = value(&Run::new(Keep::Figures).with_windows());
    assert_eq!(value["certainty"]["method"], "batches-1");
    assert_eq!(value["certainty"]["windows"], 20);
    for times in [&value["totals"]["response_us"], &value["ops"]["get"]["service_us"]] {
        let intervals = times["ci"].as_object().expect("intervals");
        assert!(intervals.len() > 3, "{intervals:?}");
        for (name, ends) in intervals {
            let figure = times[name].as_f64().expect("a figure");
            assert!(ends[0].as_f64().is_none_or(|low| low <= figure), "{name}: {ends} of {figure}");
            assert!(ends[1].as_f64().is_none_or(|high| figure <= high), "{name}: {ends} of {figure}");
        }
        assert!(times["effective"]["p50"].as_f64().expect("a number") > 0.0);
        assert!(times["spells"]["p99"].as_f64().expect("a number") > 0.0);
    }
    assert!(value["totals"]["lag_us"].get("ci").is_none(), "windows keep no lag");
    assert_eq!(value["totals"]["rate_ci"], serde_json::json!([1000.0, 1000.0]), "each window has as many");
    let share = &value["ops"]["get"]["hit_share_ci"];
    assert!(share[0].as_f64().expect("an end") < 0.9445 && share[1].as_f64().expect("an end") > 0.9444);
}

#[test]
fn a_load_that_need_not_stay_at_one_level_says_why_it_has_no_intervals() {
    let missing = |change: &dyn Fn(&mut Plan)| {
        let mut run = Run::new(Keep::Figures).with_windows();
        change(&mut run.plan);
        let value = value(&run);
        assert!(value.get("certainty").is_none() && value["totals"]["response_us"].get("ci").is_none());
        assert!(value["totals"]["rate_ci"].is_null() && value["steady"].is_null());
        assert!(value["certainty_missing_kind"].is_string());
        value["certainty_missing"].clone()
    };
    let several = |plan: &mut Plan| {
        let phase = plan.phases[0].clone();
        plan.phases.push(phase);
    };
    assert_eq!(missing(&several), "several phases were measured, which need not be at one level");
    let path = "requests".to_owned();
    let recording = Replay { path, format: 0, read_through_ns: None, reads_only: false };
    let replays = |plan: &mut Plan| plan.phases[0].work = Work::Replay(recording.clone());
    assert_eq!(missing(&replays), "the load of a recording need not stay at one level");
    let stores = |plan: &mut Plan| plan.phases[0].work = Work::Load(Load::default());
    assert_eq!(missing(&stores), "whether such a load stays at one level is not judged");
}

#[test]
fn a_run_without_windows_has_no_intervals() {
    let value = value(&Run::new(Keep::Figures));
    assert!(value.get("certainty").is_none());
    assert!(value["totals"]["response_us"].get("ci").is_none());
    assert!(value["totals"]["rate_ci"].is_null());
}

#[test]
fn the_two_answers_stand_apart_with_what_they_rest_on() {
    let mut run = Run::new(Keep::Figures);
    let result = value(&run);
    assert_eq!(result["trust"]["ok"], true);
    assert!(result["trust"]["lag_share"]["p50"].as_f64().is_some_and(|share| share < 0.1));
    assert_eq!(result["trust"]["lag_share"]["same_requests"], true);
    assert_eq!((&result["verdict"]["limit"], &result["verdict"]["row"]), (&json!("none"), &json!("none")));
    assert_eq!(result.get("evidence"), None, "nobody looked");
    run.measurement.evidence = Some(evidence());
    let result = value(&run);
    let verdict = &result["verdict"];
    assert_eq!((&verdict["limit"], &verdict["row"]), (&json!("workload"), &json!("lost-records")));
    let listed = |list: &str, name: &str, of: &str| {
        let found = verdict[list].as_array().unwrap().iter();
        found.filter(|one| one[name].as_str().is_some_and(|text| text.contains(of))).count()
    };
    assert_eq!(listed("evidence", "says", "busiest serving thread of 127.0.0.1:11211 40 %"), 1);
    assert_eq!(listed("headroom", "resource", "the server's CPU"), 1);
    let server = &result["evidence"]["servers"][0];
    assert_eq!(
        (&server["reading"]["cpu_s"], &server["reading"]["cpu_us_per_request"]),
        (&json!(0.8), &json!(400.0))
    );
    assert_eq!(server["threads"][0], json!({"name": "memcached", "cpu_s": 0.8, "run_delay_s": 0.001}));
    let machine = &result["evidence"]["machines"][0];
    assert_eq!((&machine["cpus"], &machine["steal_s"]), (&json!(2), &Value::Null));
}

#[test]
fn a_run_that_the_generator_limited_says_so_where_older_readers_look() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.generator.workers[0].busy_ns = run.measurement.generator.workers[0].wall_ns;
    let result = value(&run);
    assert_eq!(result["generator"]["limited"], true);
    assert_eq!(result["generator"]["why"], result["verdict"]["says"]);
}

/// Every name of a field in a part of a schema, with those of the parts that it refers to.
fn names_of(root: &Value, schema: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add_names(root, schema, &mut names, &mut BTreeSet::new());
    names
}

/// Adds the names of fields in a part of a schema. The parts that are referred to are followed once each, since some refer to
/// themselves.
fn add_names<'a>(
    root: &'a Value,
    schema: &'a Value,
    names: &mut BTreeSet<String>,
    followed: &mut BTreeSet<&'a str>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        if followed.insert(name) {
            let target = root.pointer(&name[1..]).expect("a reference into the file");
            add_names(root, target, names, followed);
        }
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(name.clone());
        add_names(root, field, names, followed);
    }
    let parts = ["items", "additionalProperties"].into_iter().filter_map(|word| schema.get(word));
    let any =
        ["anyOf", "oneOf", "prefixItems"].into_iter().flat_map(|word| schema[word].as_array()).flatten();
    parts.chain(any).for_each(|part| add_names(root, part, names, followed));
}

#[test]
fn every_field_of_every_result_is_explained() {
    let page = include_str!("../../../../docs/RESULTS.md");
    for (name, text) in [
        ("result", include_str!("../../../../docs/result.schema.json")),
        ("curve", include_str!("../../../../docs/curve.schema.json")),
        ("repeat", include_str!("../../../../docs/repeat.schema.json")),
        ("comparison", include_str!("../../../../docs/comparison.schema.json")),
        ("audit", include_str!("../../../../docs/audit.schema.json")),
    ] {
        let schema: Value = serde_json::from_str(text).unwrap();
        let names = names_of(&schema, &schema);
        assert!(names.len() >= 30, "{name}: {names:?}");
        let missing: Vec<&String> =
            names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/RESULTS.md names no {missing:?} of {name}");
    }
}

/// The schema of `name` names every field of a value.
#[track_caller]
fn has_every_field(schema: &str, value: &Value) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let names = names_of(&schema, &schema);
    let mut told = Vec::new();
    fields_but_plans(value, &mut told);
    let unknown: Vec<&String> = told.iter().filter(|name| !names.contains(*name)).collect();
    assert!(told.len() > 30 && unknown.is_empty(), "the schema lacks {unknown:?}");
}

/// The names of all fields of a value but of plans and machines, which have schemas of their own, and but of figures, whose names are
/// metrics.
fn fields_but_plans(value: &Value, names: &mut Vec<String>) {
    for (name, field) in value.as_object().into_iter().flatten() {
        names.push(name.clone());
        match name.as_str() {
            "plan" | "machine" | "labels" | "noise" | "ci" | "above" => {}
            "figures" => {
                field
                    .as_object()
                    .into_iter()
                    .flatten()
                    .for_each(|(_, figure)| fields_but_plans(figure, names));
            }
            _ => fields_but_plans(field, names),
        }
    }
    value.as_array().into_iter().flatten().for_each(|one| fields_but_plans(one, names));
}

#[test]
fn the_schemas_have_every_field_of_repeated_and_compared_runs() {
    let plan = Run::new(Keep::Figures).plan;
    let runs: Vec<_> = (0..6).map(|run| run_at(f64::from(run), 1.0 + f64::from(run % 2) / 5.0)).collect();
    let mut repetition = Repetition::new(&plan, vec!["pummel".to_owned()], 6, Some(true));
    repetition.extend(runs.clone(), SideSource::default());
    let json = |bytes: Vec<u8>| -> Value { serde_json::from_slice(&bytes).unwrap() };
    has_every_field(
        include_str!("../../../../docs/repeat.schema.json"),
        &json(repetition::json(&repetition)),
    );
    let side = || Side::new(String::new(), &plan, SideSource::default(), runs.clone());
    let claims = vec![Claim { metric: Metric::P99, limit: 0.02, kind: ClaimKind::Within }];
    let pair =
        Comparison::of_pairs(PairCommand::Ab, [side(), side()], &Question { claims, ..Question::default() });
    let schema = include_str!("../../../../docs/comparison.schema.json");
    has_every_field(schema, &json(comparison::json(&pair)));
    has_every_field(schema, &json(comparison::json_of_all(&[pair.clone(), pair])));
}

#[test]
fn the_schema_has_every_field_of_what_was_seen() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/result.schema.json")).unwrap();
    let mut run = Run::new(Keep::Figures);
    run.measurement.evidence = Some(evidence());
    let result = value(&run);
    for part in ["evidence", "verdict", "trust"] {
        let names = names_of(&schema, &schema["properties"][part]);
        let mut told = Vec::new();
        fields_in(&result[part], &mut told);
        let unknown: Vec<&String> = told.iter().filter(|name| !names.contains(*name)).collect();
        assert!(!told.is_empty() && unknown.is_empty(), "{part}: the schema lacks {unknown:?}");
    }
}

/// The names of all fields of a value, but for settings, which are the server's.
fn fields_in(value: &Value, names: &mut Vec<String>) {
    for (name, field) in value.as_object().into_iter().flatten() {
        names.push(name.clone());
        if name != "settings" {
            fields_in(field, names);
        }
    }
    value.as_array().into_iter().flatten().for_each(|one| fields_in(one, names));
}
