//! One side of a comparison: its runs and what is known of what they ran on.

use std::collections::{BTreeMap, BTreeSet};

use pummel_logic::plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::document::Document;
use crate::layout::json_value;
use crate::run_figures::{Metric, RunFigures, judged_by_default};

/// Names of the sides of a comparison of up to 8 sides, in the order of the command line.
pub const SIDE_NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// Displayed names of the two sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideNames(pub [&'static str; 2]);

impl Default for SideNames {
    fn default() -> SideNames {
        SideNames([SIDE_NAMES[0], SIDE_NAMES[1]])
    }
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// What the side is, in the user's words: its options, its program, its files.
    pub label: String,
    /// What its runs were made after, but for their seeds.
    pub plan: Plan,
    /// What else is known of it.
    pub source: SideSource,
    /// Its runs.
    pub runs: Vec<RunFigures>,
}

/// What is known of a side beside its plan and its figures, as JSON objects of the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideSource {
    /// The program that measured.
    pub tool: Value,
    /// The machine that measured; null where the result does not say.
    pub machine: Value,
    /// Software and version of each server; null where no server said it.
    pub servers: Value,
    /// The command line of the server that was started for each run; null where none was.
    pub program: Value,
    /// By how much runs of one thing differ on the machine by themselves, as a calibration found it: standard deviations of the
    /// logarithm, by the name of the metric. Empty where no calibration is known.
    pub noise: BTreeMap<String, f64>,
}

/// Something that is not the same on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its name, a path of fields.
    pub name: String,
    /// Its values on each side.
    pub values: [Value; 2],
    /// Whether the load differs, so that figures cannot be compared without a thought.
    pub is_of_the_load: bool,
}

/// Fields of a Plan that may differ without making another load: the servers, the draws, the goals, and the additional
/// contents of the result.
const FREE_FIELDS: [&str; 9] = [
    "plan.seed",
    "plan.servers",
    "plan.fail_on",
    "plan.goals",
    "plan.anonymous",
    "plan.server_stats_ns",
    "plan.server_stats_at",
    "plan.evidence",
    "plan.probe",
];

/// Most differences that are kept of what lies beside the plans.
const DIFFERENCES_MAX: usize = 40;

impl SideSource {
    /// What the result of a run says.
    pub fn of(result: &Document) -> SideSource {
        let servers = result.evidence.iter().flat_map(|evidence| &evidence.servers);
        let readings = servers.filter_map(|server| server.reading.as_ref());
        let of_server = |software: &str, version: &str, threads: Option<u32>| json!({ "software": software, "version": version, "serving_threads": threads });
        let each: Vec<Value> = readings
            .map(|reading| of_server(&reading.software, &reading.version, reading.serving_threads))
            .collect();
        SideSource {
            tool: json!({ "name": result.tool.name, "version": result.tool.version }),
            machine: machine_of(result),
            servers: if each.is_empty() { Value::Null } else { Value::Array(each) },
            program: Value::Null,
            noise: noise_of(result),
        }
    }
}

/// The machines of a result; null where it names none.
fn machine_of(result: &Document) -> Value {
    match result.machine.as_slice() {
        [] => Value::Null,
        machines => json_value(machines),
    }
}

/// By how much runs of one thing differ on the machine of a result, where that was calibrated.
fn noise_of(result: &Document) -> BTreeMap<String, f64> {
    let noise = result.calibration.iter().filter_map(|known| known.figures.noise.as_ref());
    let each = noise.flat_map(|noise| {
        [(Metric::P50, noise.p50_ppm), (Metric::P99, noise.p99_ppm), (Metric::Rate, noise.rate_ppm)]
    });
    each.map(|(metric, ppm)| (metric.name().to_owned(), ppm as f64 / 1e6)).collect()
}

impl Side {
    /// The figure by which its runs are judged where none is named.
    pub(super) fn judged_by_default(&self) -> Metric {
        judged_by_default(&self.plan)
    }

    /// Values that were wrong or old, in all runs of the side.
    pub fn wrong_values(&self) -> u64 {
        self.runs.iter().filter_map(|run| run.wrong_values).sum()
    }

    /// Runs of the side in which the generator was the limit.
    pub fn generator_limited(&self) -> usize {
        self.runs.iter().filter(|run| run.limit == "generator").count()
    }

    /// Whether the generator was the limit in more than half of the runs: their times and rates then describe the
    /// generator, and not the server.
    pub fn is_generator_limited(&self) -> bool {
        2 * self.generator_limited() > self.runs.len()
    }

    /// What is known of it beside its plan, and its labels.
    fn facts(&self) -> Value {
        let SideSource { tool, machine, servers, program, .. } = &self.source;
        let fields = [
            ("tool", tool.clone()),
            ("machine", machine.clone()),
            ("server", servers.clone()),
            ("program", program.clone()),
            ("labels", json!(self.plan.labels)),
        ];
        let named = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        Value::Object(named.collect::<Map<String, Value>>())
    }
}

/// What differs in the plans of two sides, and then in their machines and servers. The first 40 differences of
/// machines and servers are kept, and the first 40 of each field of the plans, which decide what may be judged, so that no field hides
/// another. A fact that only one side has is no difference, but for fields of the Plan.
pub fn differences(sides: &[Side; 2]) -> Vec<Difference> {
    let mut found = plan_differences(&sides[0].plan, &sides[1].plan);
    let mut others = Vec::new();
    walk("", &sides[0].facts(), &sides[1].facts(), &mut others);
    others.truncate(DIFFERENCES_MAX);
    found.extend(others);
    found
}

/// Differences between two plans, except their labels.
pub(super) fn plan_differences(first: &Plan, second: &Plan) -> Vec<Difference> {
    let value = |plan: &Plan| json_value(&plan.told());
    let mut found = Vec::new();
    walk("plan", &value(first), &value(second), &mut found);
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    // The places in a list, such as the points of a rate, are one field.
    found.retain(|difference| {
        let steps = difference.name.split('.').filter(|step| step.parse::<usize>().is_err());
        let count = kept.entry(steps.collect::<Vec<&str>>().join(".")).or_default();
        *count += 1;
        *count <= DIFFERENCES_MAX
    });
    found
}

/// Whether the items of two lists are compared by their positions: the lists are equally long, and items with names
/// have the same names.
fn have_one_shape(one: &[Value], other: &[Value]) -> bool {
    let names = |items: &[Value]| items.iter().map(|item| item["name"].clone()).collect::<Vec<Value>>();
    let are_apart = are_named(one) && are_named(other) && names(one) != names(other);
    one.len() == other.len() && !are_apart
}

/// Whether all items have names; no two are equal, none is a number and none has a dot.
fn are_named(items: &[Value]) -> bool {
    let names: BTreeSet<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    names.len() == items.len()
        && names.iter().all(|name| !name.contains('.') && name.parse::<usize>().is_err())
}

fn walk(name: &str, first: &Value, second: &Value, found: &mut Vec<Difference>) {
    if first == second {
        return;
    }
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match (first, second) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
                walk(&inner(key), &of(one), &of(other), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if have_one_shape(one, other) => {
            for (place, (first, second)) in one.iter().zip(other).enumerate() {
                walk(&inner(&place.to_string()), first, second, found);
            }
        }
        // Phases that not both sides have would move those behind them.
        (Value::Array(one), Value::Array(other)) if are_named(one) && are_named(other) => {
            let name_of = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
            let find = |items: &[Value], name: &str| {
                items.iter().find(|item| item["name"] == name).cloned().unwrap_or(Value::Null)
            };
            let own = one.iter().map(name_of);
            let others = other.iter().map(name_of).filter(|name| find(one, name).is_null());
            for name in own.chain(others) {
                walk(&inner(&name), &find(one, &name), &find(other, &name), found);
            }
        }
        (first, second) => {
            let is_of_the_plan = name.starts_with("plan.");
            // An older result says less.
            if !is_of_the_plan && (first.is_null() || second.is_null()) {
                return;
            }
            let is_free =
                FREE_FIELDS.iter().any(|free| name == *free || name.starts_with(&format!("{free}.")));
            found.push(Difference {
                name: name.to_owned(),
                values: [first.clone(), second.clone()],
                is_of_the_load: is_of_the_plan && !is_free,
            });
        }
    }
}
