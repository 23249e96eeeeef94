//! The result of a search or a scan as a typed document that is read.

use pummel_logic::plan::{Labels, Plan};
use pummel_measure::outcome::RunOutcome;
use pummel_measure::summary::QUANTILES;
use serde::Deserialize;

use super::named::Named;
use super::run::ToolResult;
use super::{Label, NotAResult, SCHEMA};
use crate::checked_json;

/// The runs of a search or a scan, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurveDocument {
    /// The program that made the result.
    pub tool: ToolResult,
    /// `search` or `scan`.
    pub command: String,
    /// What runs were held to.
    pub goals: Vec<CurveGoal>,
    /// Names and values that the user gave the runs.
    pub labels: Labels,
    /// The command line; empty where names are left out, and in the result of an older version.
    pub argv: Vec<String>,
    /// Plan of the first run; absent if names are left out.
    pub plan: Option<Plan>,
    /// What a search found, in requests per second.
    pub found_rate: Option<f64>,
    /// Further results of a search; absent in other series.
    pub search: Option<CurveSearch>,
    /// Why runs are missing.
    pub reason: Option<String>,
    /// The runs.
    pub runs: Vec<CurveRun>,
}

/// Results of a search other than its rate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurveSearch {
    /// Lower end of the interval of the limit, in requests per second.
    pub low: Option<f64>,
    /// Upper end of the interval of the limit, in requests per second.
    pub high: Option<f64>,
    /// The least rate that was not carried, where that is the limit and the times would allow more.
    pub not_carried: Option<f64>,
    /// Whether the limit lies above all rates that were asked for.
    pub at_least: bool,
    /// The reason why nothing, or no more, is known.
    pub reason: Option<String>,
}

/// The resource that a scan in closed loop varies, and its amount in a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurveLevel {
    /// The varied resource: `connections` or `threads`.
    pub of: String,
    /// Amount of the varied resource in the run.
    pub n: u32,
}

/// What runs were held to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurveGoal {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The greatest response time that meets the goal.
    pub limit_us: f64,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CurveRun {
    /// Why the run was made.
    pub role: String,
    /// Requests per second that were asked for; null in closed loop.
    pub asked_rate: Option<f64>,
    /// The resource that a scan in closed loop varies, and its amount in the run; null in other series.
    pub level: Option<CurveLevel>,
    /// Completed requests per second.
    pub rate: f64,
    /// Ends of the 95 % interval of the rate within the run; null where it is not known.
    pub rate_ci: Option<[f64; 2]>,
    /// Length of the run.
    pub seconds: f64,
    /// Requests that were due.
    pub requests: u64,
    /// Response times in microseconds by quantile; null where they are not known.
    pub response_us: Named<Option<f64>>,
    /// Ends of the 95 % intervals of the response times in microseconds, by quantile; an end that is not known is null.
    pub response_ci_us: Named<[Option<f64>; 2]>,
    /// Whether every goal was met; null without goals.
    pub met: Option<bool>,
    /// Whether requests were answered about as fast as they came.
    pub carried: bool,
    /// Who limited the run.
    pub limit: String,
    /// The sentences of the verdict.
    pub says: String,
    /// Whether the times may be believed.
    pub trust: bool,
    /// Names of the figures of the response that are lag for half or more.
    pub mostly_lag: Vec<String>,
    /// Whether the requests were answered as they were asked.
    pub outcome: RunOutcome,
}

impl CurveRun {
    /// The response times in the order of reports.
    pub fn times(&self) -> Vec<(String, Option<f64>)> {
        let time = |name: &str| self.response_us.get(name).copied().flatten();
        QUANTILES.iter().map(|(name, _)| ((*name).to_owned(), time(name))).collect()
    }
}

impl CurveDocument {
    /// Reads the JSON result of a search, a scan or a curve.
    ///
    /// # Errors
    /// Returns [`NotAResult`], which says what the bytes are instead, or where they are wrong.
    pub fn read(bytes: &[u8]) -> Result<CurveDocument, NotAResult> {
        let malformed = |error: serde_json::Error| NotAResult::of_error(bytes, &error);
        let label: Label = serde_json::from_slice(bytes).map_err(malformed)?;
        match label.schema.as_ref().and_then(serde_json::Value::as_u64) {
            Some(schema) if schema > u64::from(SCHEMA) => return Err(NotAResult::Newer(schema)),
            Some(_)
                if label
                    .command
                    .as_deref()
                    .is_some_and(|name| ["search", "scan", "curve"].contains(&name)) => {}
            _ => return Err(NotAResult::Another(label.command)),
        }
        checked_json::read(bytes).map_err(malformed)
    }
}
