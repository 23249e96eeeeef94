//! Stored results as runs that are examined, and the result of `pummel audit`.

use pummel_logic::plan::Plan;
use pummel_measure::measurement::Status;
use serde::{Deserialize, Serialize};

use super::collect::findings;
use super::examined::Examined;
use super::finding::Finding;
use super::names::bare;
use crate::comparison::{Comparison, NamedPair, Side};
use crate::document::{CurveDocument, SCHEMA, ToolResult};
use crate::repetition::Repetition;
use crate::stored::ResultDocument;

/// Word of the results of audits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AuditCommand {
    /// `pummel audit`.
    #[default]
    Audit,
}

/// What `pummel audit` found of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditDocument {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that looked at the results.
    pub tool: ToolResult,
    /// The word `audit`.
    pub command: AuditCommand,
    /// The results, in the order of the command line.
    pub results: Vec<AuditedResult>,
    /// What was found, of each result in order and then of all together.
    pub findings: Vec<Finding>,
}

/// A result that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditedResult {
    /// Name of the result in the findings.
    pub name: String,
    /// Name of its file.
    pub file: String,
}

impl AuditDocument {
    /// The findings of results, whose names and contents stand beside each other.
    pub fn of(results: Vec<AuditedResult>, contents: &[ResultDocument]) -> AuditDocument {
        let named = results.iter().zip(contents);
        let runs: Vec<Examined<'_>> =
            named.flat_map(|(result, content)| examined(&result.name, content)).collect();
        let has_several = results.len() > 1 || contents.iter().any(is_whole_suite);
        let findings = findings(&runs, has_several);
        AuditDocument {
            schema: SCHEMA,
            tool: ToolResult::named(),
            command: AuditCommand::Audit,
            results,
            findings,
        }
    }
}

/// Whether a result is that of a suite whose runs were all made: of others it is not known what no run covers.
fn is_whole_suite(result: &ResultDocument) -> bool {
    matches!(result, ResultDocument::Suite(suite) if suite.status == Status::Complete)
}

/// The results in files, each with a name of its own: that of the file without directory and ending, or the whole one where two files
/// would have one name.
pub fn named(files: &[String]) -> Vec<AuditedResult> {
    let count = |name: &str| files.iter().filter(|file| bare(file) == name).count();
    let mut results: Vec<AuditedResult> = Vec::with_capacity(files.len());
    for file in files {
        let name = if count(bare(file)) > 1 { file.as_str() } else { bare(file) };
        let again = results.iter().filter(|result| result.file == *file).count();
        let name = if again > 0 { format!("{name} ({})", again + 1) } else { name.to_owned() };
        results.push(AuditedResult { name, file: file.clone() });
    }
    results
}

/// The runs of a result of this name.
pub fn examined<'a>(name: &str, result: &'a ResultDocument) -> Vec<Examined<'a>> {
    match result {
        ResultDocument::Run(run) => vec![Examined::of_run(name, run)],
        ResultDocument::Series(series) => of_series(name, series),
        ResultDocument::Repeated(repeated) => of_repeated(name, repeated),
        ResultDocument::Pair(pair) => of_pair(name, pair).collect(),
        ResultDocument::Comparison(all) => {
            let (first, others) = match all.comparisons.split_first() {
                Some((first, others)) => (Some(first), others),
                None => (None, &[][..]),
            };
            // Each pair has the first side again.
            let of_others = others.iter().flat_map(|pair| of_pair(name, pair).filter(is_not_first(name)));
            first.into_iter().flat_map(|pair| of_pair(name, pair)).chain(of_others).collect()
        }
        ResultDocument::Suites(both) => {
            let of_both = |own: &'a NamedPair| of_pair(&side_name(name, &own.name), &own.comparison);
            both.pairs.iter().flat_map(of_both).collect()
        }
        ResultDocument::Suite(suite) => suite.examined().map(|run| run.named_within(name)).collect(),
    }
}

/// Whether a run is of another side than the first.
fn is_not_first(name: &str) -> impl Fn(&Examined<'_>) -> bool {
    let first = side_name(name, crate::comparison::SIDE_NAMES[0]);
    move |run| run.name != first
}

fn side_name(name: &str, side: &str) -> String {
    format!("{name}: {side}")
}

/// The runs of both sides of a comparison.
fn of_pair<'a>(name: &str, pair: &'a Comparison) -> impl Iterator<Item = Examined<'a>> + use<'a> {
    let names = pair.names.0.map(|side| side_name(name, side));
    let of = move |(name, side): (String, &'a Side)| of_side(&name, side);
    names.into_iter().zip(&pair.sides).flat_map(of)
}

fn of_side<'a>(name: &str, side: &'a Side) -> Vec<Examined<'a>> {
    let runs = side.runs.iter().map(|run| Examined::of_figures(name, &side.plan, &side.source, run));
    or_nothing(name, Some(&side.plan), runs.collect())
}

fn of_repeated<'a>(name: &str, repeated: &'a Repetition) -> Vec<Examined<'a>> {
    let runs =
        repeated.runs.iter().map(|run| Examined::of_figures(name, &repeated.plan, &repeated.source, run));
    let ended = |run: Examined<'a>| run.within(repeated.status, repeated.reason.as_deref());
    or_nothing(name, Some(&repeated.plan), runs.collect()).into_iter().map(ended).collect()
}

/// The runs of a series. An overload at its end, and what comes after it, shows something else than the rates of the others, and a run
/// of which no request was due shows nothing.
fn of_series<'a>(name: &str, series: &'a CurveDocument) -> Vec<Examined<'a>> {
    let of_rates = series.runs.iter().filter(|run| !run.is_after_overload() && !run.is_idle());
    let runs = of_rates.map(|run| Examined::of_series_run(name, series, run)).collect();
    let ended = |run: Examined<'a>| run.within(series.status, series.reason.as_deref());
    or_nothing(name, series.plan.as_ref(), runs).into_iter().map(ended).collect()
}

/// The runs of a result, or the result without one.
fn or_nothing<'a>(name: &str, plan: Option<&'a Plan>, runs: Vec<Examined<'a>>) -> Vec<Examined<'a>> {
    if runs.is_empty() { vec![Examined::of_nothing(name, plan)] } else { runs }
}
