//! One side of a comparison: its runs and what is known of what they ran on.

use std::collections::{BTreeMap, BTreeSet};

use pummel_logic::plan::{Labels, Plan};
use pummel_measure::evidence::provenance::Provenance;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::document::{Document, ToolResult};
use crate::json_layout::json_value;
use crate::plan_options::row_of;
use crate::run_figures::{Metric, RunFigures, judged_by_default, wrong_values};

/// Names of the sides of a comparison of up to 8 sides, in the order of the command line.
pub const SIDE_NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// Displayed names of the two sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "[String; 2]")]
pub struct SideNames(pub [&'static str; 2]);

impl TryFrom<[String; 2]> for SideNames {
    type Error = String;

    fn try_from(names: [String; 2]) -> Result<SideNames, String> {
        let known = |name: &String| {
            let own = SIDE_NAMES.into_iter().find(|own| own == name);
            own.ok_or_else(|| format!("{name:?} is no name of a side: expected a letter from A to H"))
        };
        Ok(SideNames([known(&names[0])?, known(&names[1])?]))
    }
}

impl Default for SideNames {
    fn default() -> SideNames {
        SideNames([SIDE_NAMES[0], SIDE_NAMES[1]])
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// Name of the side in the user's words: its options, its program, its files; empty where its servers name it.
    pub label: String,
    /// Plan of every run, but for its seed, and without its labels.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::AnyPlan"))]
    pub plan: Plan,
    /// Names and values that the user gave the runs.
    #[serde(default)]
    pub labels: Labels,
    /// Program, machine and servers of the last run.
    pub source: SideSource,
    /// The runs, in the order in which they were made; run i of one side and run i of the other are a pair where runs are paired.
    pub runs: Vec<RunFigures>,
}

/// Program, machine and servers of a run of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SideSource {
    /// The program that measured; null where it is not known.
    pub tool: Option<ToolResult>,
    /// The machines that measured; empty where the result does not say.
    pub machine: Vec<Provenance>,
    /// Software and version of each server; empty where no server said it.
    pub servers: Vec<ServerSoftware>,
    /// The command line of the server that was started for each run; null where none was.
    pub program: Option<String>,
    /// By how much runs of one thing differ on the machine by themselves, as a calibration found it: standard deviations of the
    /// logarithm, by the name of the metric. Empty where no calibration is known.
    pub noise: BTreeMap<String, f64>,
}

/// Software of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerSoftware {
    /// Name of the software.
    pub software: String,
    /// Version of the software.
    pub version: String,
    /// Number of threads that serve; null where the server does not say.
    pub serving_threads: Option<u32>,
}

/// A fact that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// Name of the fact, a path of fields.
    pub name: String,
    /// The values of the two sides.
    pub values: [Value; 2],
    /// Whether the load differs, so that figures are not compared without a thought.
    #[serde(rename = "of_the_load")]
    pub is_of_the_load: bool,
}

/// Most differences that are kept of what lies beside the plans.
const DIFFERENCES_MAX: usize = 40;

impl SideSource {
    /// What the result of a run says.
    pub fn of(result: &Document) -> SideSource {
        let ToolResult { name, version, .. } = result.tool.clone();
        let servers = result.evidence.iter().flat_map(|evidence| &evidence.servers);
        let readings = servers.filter_map(|server| server.reading.as_ref());
        let software = readings.map(|reading| ServerSoftware {
            software: reading.software.clone(),
            version: reading.version.clone(),
            serving_threads: reading.serving_threads,
        });
        SideSource {
            tool: Some(ToolResult { name, version, ..ToolResult::default() }),
            machine: result.machine.clone(),
            servers: software.collect(),
            program: None,
            noise: noise_of(result),
        }
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
    /// A side of runs that were made after a plan.
    pub fn new(label: String, plan: &Plan, source: SideSource, runs: Vec<RunFigures>) -> Side {
        Side { label, plan: plan.told(), labels: plan.labels.clone(), source, runs }
    }

    /// Words for the side: its label, or its servers.
    pub fn name(&self) -> String {
        match self.label.is_empty() {
            true => self.plan.servers.join(", "),
            false => self.label.clone(),
        }
    }

    /// The figure by which its runs are judged where none is named.
    pub(super) fn judged_by_default(&self) -> Metric {
        judged_by_default(&self.plan)
    }

    /// Values that were wrong or old, in all runs of the side.
    pub fn wrong_values(&self) -> u64 {
        wrong_values(&self.runs)
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

    /// The runs of the side in which a visible part of a time was added by the generator itself, and the greatest part where one is
    /// known. `None` where that is so in at most half of its runs.
    pub(super) fn lag(&self, metric: Metric) -> Option<(usize, Option<f64>)> {
        let late: Vec<&RunFigures> = self.runs.iter().filter(|run| run.has_lag(metric)).collect();
        let shares = late.iter().filter_map(|run| run.lag_shares.get(metric.name()).copied());
        (2 * late.len() > self.runs.len()).then(|| (late.len(), shares.reduce(f64::max)))
    }

    /// Facts of the side beside its plan, and its labels; null where they are not known.
    fn facts(&self) -> Value {
        let SideSource { tool, machine, servers, program, .. } = &self.source;
        json!({
            "tool": json_value(tool),
            "machine": (!machine.is_empty()).then(|| json_value(machine)),
            "server": (!servers.is_empty()).then(|| json_value(servers)),
            "program": program,
            "labels": self.labels,
        })
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
    for difference in &mut found {
        let row = difference.name.strip_prefix("plan.").and_then(row_of);
        difference.is_of_the_load = row.is_none_or(|row| row.is_of_the_load);
    }
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
            // An older result says less.
            if !name.starts_with("plan.") && (first.is_null() || second.is_null()) {
                return;
            }
            found.push(Difference {
                name: name.to_owned(),
                values: [first.clone(), second.clone()],
                is_of_the_load: false,
            });
        }
    }
}
