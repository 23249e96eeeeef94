//! The result of a search, a scan or a curve as a typed document.

use pummel_logic::plan::{Goal, Labels, Plan};
use pummel_measure::cross_checks::QueueFit;
use pummel_measure::limit::Cause;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::rate_search::{Answer, NoRate, Recovery};
use pummel_measure::scalability::Scalability;
use pummel_measure::summary::QUANTILES;
use serde::{Deserialize, Serialize};

use super::SCHEMA;
use super::figures::micros;
use super::known::known;
use super::named::Named;
use super::outcomes::OtherOutcomes;
use super::run::ToolResult;
use super::trust::ReliableFigures;
use crate::words::search::no_rate_words;

/// The runs of a search, a scan or a curve, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveDocument {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that made the result.
    pub tool: ToolResult,
    /// Command that made the runs: `search`, `scan` or `curve`.
    pub command: String,
    /// Whether all runs were made: `complete`, `partial` or `interrupted`.
    pub status: Status,
    /// Reason why runs are missing; null where none are.
    pub reason: Option<String>,
    /// The goals of the runs.
    pub goals: Vec<CurveGoal>,
    /// Names and values that the user gave the runs.
    pub labels: Labels,
    /// Words of the command line; empty with `--anonymous`.
    pub argv: Vec<String>,
    /// Plan of the first run, without its labels; null with `--anonymous`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::AnyPlan>"))]
    pub plan: Option<Plan>,
    /// Programs of the servers with their versions, such as `memcached 1.6.18`; empty where they are not known.
    pub software: Vec<String>,
    /// Spacing of the requests of runs in open loop, such as `poisson` or `constant gaps`; empty where all runs are closed loops.
    pub arrivals: String,
    /// Number of agents that sent the load; 0 without agents.
    pub agents: usize,
    /// Answer of a search in requests per second: a rate at which the goals are met with 95 % confidence, and that met them in a run
    /// of its own by the upper bounds of its intervals; null where there is none, and in other series.
    pub found_rate: Option<f64>,
    /// Further results of a search; null in other series.
    pub search: Option<CurveSearch>,
    /// Line of one queue through the mean response times of the runs in open loop that carried their rate, answered every request and
    /// were not limited by the generator; null with fewer than four such runs, and where one is more than 10 % off.
    pub fit: Option<CurveFit>,
    /// Universal scalability law X(N) = g N / (1 + a (N - 1) + b N (N - 1)) through the rates of `scan --over`: `gain` (g), `contention`
    /// (a) and `coherency` (b), each with its 95 % interval, and the level of the greatest rate, `peak`, null where none is in sight;
    /// runs that the generator limited are left out. Null for fewer than six levels over a factor of 16, where a level does over 1.25
    /// times as much for each connection or thread as the one below it, and in other series.
    pub scalability: Option<Scalability>,
    /// Number of runs that failed and were made again, which are none of `runs`.
    pub made_again: u32,
    /// The runs, in the order in which they were made.
    pub runs: Vec<CurveRun>,
}

/// Results of a search other than its rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveSearch {
    /// Lower end of the interval of the limit, in requests per second: with 95 % confidence or, with `not_carried`, the greatest rate
    /// that was carried; null where it is not known, and with `at_least`.
    pub low: Option<f64>,
    /// Upper end of the interval of the limit, in requests per second.
    pub high: Option<f64>,
    /// The least rate that was not carried, where that is the limit and the times would allow more; else null.
    pub not_carried: Option<f64>,
    /// Whether the limit lies above all rates that were asked for.
    pub at_least: bool,
    /// Whether greater rates met the goals too, in runs that were too short for an upper bound of the quantiles.
    pub open_above: bool,
    /// Whether the interval is as narrow as `--precision` asks for; null without it.
    pub precise: Option<bool>,
    /// Reason why nothing, or no more, is known, as a sentence; else null.
    pub reason: Option<String>,
    /// Facts of `reason`; absent where there is none, and where this version does not know their kind.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub why: Option<NoRate>,
    /// Completed requests per second in a closed loop.
    pub closed_loop_rate: f64,
    /// A sentence about the generator where it was the limit in a closed loop, so that the greatest rate of the server is not known;
    /// else null.
    pub closed_loop_generator: Option<String>,
    /// Number of runs through which the line of the answer was drawn.
    pub line_runs: usize,
    /// The overload at the end of the search; null where there was none.
    pub overload: Option<CurveOverload>,
}

/// Overload at the end of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveOverload {
    /// Rate of the overload, in requests per second.
    pub rate: f64,
    /// Aftermath of the overload: by which share responses were `slower`, for how many `seconds`, and whether that `lasted` to the end of
    /// the run; null where it is not known.
    pub recovery: Option<Recovery>,
}

/// Line of one queue through mean response times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveFit {
    /// Time in which the queue serves one request.
    pub service_us: f64,
    /// Squared coefficient of variation of that time.
    pub variation: f64,
    /// Greatest distance of a run from the line, as a share of its mean response.
    pub error: f64,
}

/// The resource that a scan in closed loop varies, and its amount in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveLevel {
    /// The varied resource: `connections` or `threads`.
    pub of: String,
    /// Amount of the varied resource in the run.
    pub n: u32,
}

/// Goal of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveGoal {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The greatest response time that meets the goal.
    pub limit_us: f64,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CurveRun {
    /// Purpose of the run: `peak` (in a closed loop), `search` (halvings), `around` (in random order around the limit), `confirm`,
    /// `overload` and `after` (two stretches of one run), `scan` or `curve`.
    pub role: String,
    /// Requests per second that were asked for; null in closed loop.
    pub asked_rate: Option<f64>,
    /// The resource that a scan in closed loop varies, and its amount in the run; null in other series.
    pub level: Option<CurveLevel>,
    /// For `curve`, p99 on a line through all runs that never falls with the rate; else null.
    pub smooth_p99_us: Option<f64>,
    /// Seed of the arrivals and keys of the run.
    pub seed: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// Ends of the 95 % interval of the rate within the run; null where it is not known.
    pub rate_ci: Option<[f64; 2]>,
    /// Length of the run.
    pub seconds: f64,
    /// Time in which the requests were due; null in closed loop.
    pub due_s: Option<f64>,
    /// Requests that were due.
    pub requests: u64,
    /// Requests that got no answer.
    pub unanswered: u64,
    /// Mean response time of the answered requests; null where there are none.
    pub mean_response_us: Option<f64>,
    /// Response times by quantile; null where they are not known.
    pub response_us: Named<Option<f64>>,
    /// Lower bounds of the quantiles that fall among requests without an answer, by quantile; absent where there are none.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub response_above_us: Named<f64>,
    /// Ends of the 95 % intervals of the response times, by quantile; null for an end that is not known.
    pub response_ci_us: Named<[Option<f64>; 2]>,
    /// CPU time of the servers for each request; null where it is not known.
    pub server_cpu_us_per_request: Option<f64>,
    /// Whether every goal was met; null without goals, and where no request was due.
    pub met: Option<bool>,
    /// Whether the 95 % intervals of the quantiles say of the goals what the quantiles themselves do, by which `met` was judged; null
    /// where `met` is.
    pub sure: Option<bool>,
    /// Whether requests were answered about as fast as they came: 95 % of them, in at most 1/0.95 of the time in which they came plus
    /// the time of the slowest one.
    pub carried: bool,
    /// Whether the run was at one level from its beginning to its end; null where that was not judged.
    pub steady: Option<bool>,
    /// Number of values that were wrong or stale; null without `--verify`.
    pub wrong_values: Option<u64>,
    /// Requests that may store or find nothing, by operation; absent where there were none, and where that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_outcomes: Vec<OtherOutcomes>,
    /// The limit of the run, as its own report names it: one of the limits of `verdict`, and `none` in an open loop whose rate was
    /// carried although requests were late.
    pub limit: String,
    /// The sentences of the verdict.
    pub says: String,
    /// Facts that the verdict rests on; absent where this version does not know their kind.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whether the times are reliable.
    pub trust: bool,
    /// Figures of the response that are reliable.
    pub reliable: ReliableFigures,
    /// Names of the figures of the response that are lag for half or more.
    pub mostly_lag: Vec<String>,
    /// Whether the requests were answered as they were asked.
    pub outcome: RunOutcome,
}

impl CurveGoal {
    /// The goal of a plan.
    pub fn of(goal: &Goal) -> CurveGoal {
        CurveGoal { quantile: goal.quantile, limit_us: micros(goal.limit_ns as f64) }
    }
}

impl CurveFit {
    /// The line of a queue.
    pub fn of(fit: &QueueFit) -> CurveFit {
        CurveFit { service_us: fit.service_ns / 1e3, variation: fit.variation, error: fit.error }
    }
}

impl CurveSearch {
    /// The results of a search whose answer this is.
    pub fn of(answer: &Answer) -> CurveSearch {
        CurveSearch {
            low: answer.interval.map(|(low, _)| low),
            high: answer.interval.map(|(_, high)| high),
            not_carried: answer.not_carried,
            at_least: answer.at_least,
            open_above: answer.is_open_above,
            precise: answer.precise,
            reason: answer.reason.as_ref().map(no_rate_words),
            why: answer.reason.clone(),
            ..CurveSearch::default()
        }
    }
}

impl CurveRun {
    /// The response times in the order of reports.
    pub fn times(&self) -> Vec<(String, Option<f64>)> {
        let time = |name: &str| self.response_us.get(name).copied().flatten();
        QUANTILES.iter().map(|(name, _)| ((*name).to_owned(), time(name))).collect()
    }

    /// Whether no request was due in it.
    pub fn is_idle(&self) -> bool {
        self.requests == 0
    }

    /// Whether the run was not at one level from its beginning to its end.
    pub fn is_unsteady(&self) -> bool {
        self.steady == Some(false)
    }

    /// Whether the generator was the limit of the run.
    pub fn is_limited_by_generator(&self) -> bool {
        self.limit == "generator"
    }

    /// Whether the figures of the run are no server's: the generator was the limit of the run, or would have been had it not carried its
    /// rate all the same.
    pub fn is_of_generator(&self) -> bool {
        self.is_limited_by_generator() || self.cause.as_ref().is_some_and(Cause::is_of_trust)
    }

    /// Whether the run is an overload, or what comes after it.
    pub(crate) fn is_after_overload(&self) -> bool {
        ["overload", "after"].contains(&&*self.role)
    }

    /// The rate and the mean response in nanoseconds of a run in open loop that was carried, that the generator did not limit and all
    /// of whose requests were answered. An overload, and what comes after it, is no such run: they have a queue that is not of their rate.
    pub(crate) fn mean_response(&self) -> Option<(f64, f64)> {
        let is_of_its_rate =
            self.asked_rate.is_some() && !self.is_after_overload() && !self.is_of_generator();
        let is_whole = is_of_its_rate && self.carried && self.unanswered == 0;
        Some((self.rate, self.mean_response_us? * 1e3)).filter(|_| is_whole)
    }
}

impl CurveDocument {
    /// A series without a run, whose runs are made after this plan but for their rate and seed.
    pub fn new(command: &str, plan: &Plan, argv: Vec<String>) -> CurveDocument {
        CurveDocument {
            schema: SCHEMA,
            tool: ToolResult::named(),
            command: command.to_owned(),
            goals: plan.goals.iter().map(CurveGoal::of).collect(),
            labels: plan.labels.clone(),
            plan: (!plan.anonymous).then(|| plan.told()),
            argv,
            ..CurveDocument::default()
        }
    }

    /// Wrong values of all runs.
    pub fn wrong_values(&self) -> u64 {
        self.runs.iter().filter_map(|run| run.wrong_values).fold(0, u64::saturating_add)
    }
}
