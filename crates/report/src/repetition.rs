//! Several runs of one configuration, side by side, as data, JSON and CSV.

use pummel_logic::plan::{Labels, Plan};
use pummel_measure::compare::{RUNS_FOR_INTERVAL, RunFigure, RunSpread, median, median_interval};
use pummel_measure::measurement::Status;
use serde::{Deserialize, Serialize};

use crate::comparison::SideSource;
use crate::csv::{Cell, Csv};
use crate::document::{SCHEMA, ToolResult};
pub use crate::json::render as json;
use crate::run_figures::{
    CSV_HEADER, Figures, Metric, MetricUnit, OfMetric, RunFigures, csv_cells, judged_by_default,
    status_of_series, wrong_values,
};

/// The least length of a run that is advised, in seconds: shorter ones say nothing of how sure they are.
const RUN_LEAST_S: f64 = 1.0;

/// Word of results of repeated runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RepeatCommand {
    /// `pummel run --repeat`, or `pummel merge --as-runs`.
    #[default]
    Repeat,
}

/// Several runs of one configuration, as `run --repeat` and `merge --as-runs` write them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repetition {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that made the runs.
    pub tool: ToolResult,
    /// The word `repeat`.
    pub command: RepeatCommand,
    /// Status as of a run; `partial` also where runs are missing.
    pub status: Status,
    /// Reason why there are no more runs; null where none are missing.
    pub reason: Option<String>,
    /// Words of the command line; empty with `--anonymous`, and where they are not known.
    pub argv: Vec<String>,
    /// Plan of every run, but for its seed, and without its labels.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::AnyPlan"))]
    pub plan: Plan,
    /// Names and values that the user gave the runs.
    #[serde(default)]
    pub labels: Labels,
    /// Number of runs that were asked for.
    pub asked: u32,
    /// Whether `--restart` was given; null where that is not known, as for `merge --as-runs`.
    pub restarted: Option<bool>,
    /// Number of runs that failed and were made again, which are none of `runs`.
    pub made_again: u32,
    /// Program, machine and servers of the last run.
    pub source: SideSource,
    /// Figures that every run knows, by metric: `p50`, `p90`, `p99`, `p99.9`, `rate`, `client-cpu` and `server-cpu`.
    pub figures: Figures<RepeatedFigure>,
    /// Length of a run in seconds that makes the interval of the first judged figure least for the same time in all; null where it is
    /// not known, and where runs do not differ by more than chance within them explains.
    pub advised_run_s: Option<f64>,
    /// The runs, in the order in which they were made.
    pub runs: Vec<RunFigures>,
}

/// A figure of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RepeatedFigure {
    /// The figure.
    #[serde(skip)]
    pub metric: Metric,
    /// Unit of the values: `us`, `requests/s` or `us/request`.
    pub unit: MetricUnit,
    /// Median of the runs.
    pub median: f64,
    /// 95 % interval of the median from order statistics; null below six runs.
    #[serde(rename = "ci")]
    pub interval: Option<(f64, f64)>,
    /// The least and the greatest value.
    pub range: (f64, f64),
    /// Differences between the runs; null of one run.
    pub spread: Option<RunSpread>,
}

impl RepeatedFigure {
    /// A figure of runs; `None` where one of them does not know it.
    fn of(metric: Metric, runs: &[RunFigures]) -> Option<RepeatedFigure> {
        let known: Vec<RunFigure> = runs.iter().map(|run| run.figure(metric)).collect::<Option<_>>()?;
        let values: Vec<f64> = known.iter().map(|figure| figure.value).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        Some(RepeatedFigure {
            metric,
            unit: metric.unit(),
            median: median(&values)?,
            interval: median_interval(&values),
            range: (least, greatest),
            spread: RunSpread::of(&known),
        })
    }
}

impl OfMetric for RepeatedFigure {
    fn metric(&self) -> Metric {
        self.metric
    }

    fn with_metric(self, metric: Metric) -> RepeatedFigure {
        RepeatedFigure { metric, ..self }
    }
}

impl Repetition {
    /// A repetition without a run, of which so many were asked for.
    pub fn new(plan: &Plan, argv: Vec<String>, asked: u32, restarted: Option<bool>) -> Repetition {
        Repetition {
            schema: SCHEMA,
            tool: ToolResult::named(),
            command: RepeatCommand::Repeat,
            status: Status::Partial,
            reason: None,
            argv,
            plan: plan.told(),
            labels: plan.labels.clone(),
            asked,
            restarted,
            made_again: 0,
            source: SideSource::default(),
            figures: Figures(Vec::new()),
            advised_run_s: None,
            runs: Vec::new(),
        }
    }

    /// Adds runs, of which the last knew this of its servers and its machine.
    pub fn extend(&mut self, runs: impl IntoIterator<Item = RunFigures>, source: SideSource) {
        self.runs.extend(runs);
        self.source = source;
        let figures = Metric::ALL.into_iter().filter_map(|metric| RepeatedFigure::of(metric, &self.runs));
        self.figures = Figures(figures.collect());
        self.advised_run_s = self.advised_s();
        self.end(None, false);
    }

    /// Says that no more runs follow, and why some are missing.
    pub fn end(&mut self, reason: Option<String>, is_interrupted: bool) {
        self.status = status_of_series(is_interrupted, reason.as_deref(), self.runs.len(), Some(self.asked));
        self.reason = reason;
    }

    /// Wrong values of all runs.
    pub fn wrong_values(&self) -> u64 {
        wrong_values(&self.runs)
    }

    /// Numbers of the runs that missed a goal and of those that had one.
    pub fn missed(&self) -> (usize, usize) {
        let judged = self.runs.iter().filter(|run| run.met.is_some()).count();
        (self.runs.iter().filter(|run| run.met == Some(false)).count(), judged)
    }

    /// The length of a run, in seconds, that makes the interval of the first judged figure least for the same time in all.
    fn advised_s(&self) -> Option<f64> {
        let judged = judged_by_default(&self.plan);
        let spread = self.figures.iter().find(|figure| figure.metric == judged)?.spread?;
        let (measured_s, whole_s) = (self.mean_of(|run| run.seconds), self.mean_of(|run| run.whole_s));
        let is_enough = self.runs.len() >= RUNS_FOR_INTERVAL;
        let advised_s = spread.advised_s(whole_s - measured_s, measured_s).filter(|_| is_enough)?;
        Some(advised_s.max(RUN_LEAST_S))
    }

    fn mean_of(&self, seconds: fn(&RunFigures) -> f64) -> f64 {
        self.runs.iter().map(seconds).sum::<f64>() / self.runs.len() as f64
    }
}

/// The runs as CSV, a line for each.
pub fn csv(repetition: &Repetition) -> Vec<u8> {
    let mut table = Csv::with_header(std::iter::once("run").chain(CSV_HEADER));
    for (number, run) in repetition.runs.iter().enumerate() {
        table.row(std::iter::once(Cell::Count(number as u64)).chain(csv_cells(run)));
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json as value_of};

    use super::*;
    use crate::run_figures::tests::run_at;
    use crate::stored::{self, ResultDocument};

    fn repetition(scales: &[f64]) -> Repetition {
        let plan = Plan { servers: vec!["127.0.0.1:11211".to_owned()], ..Plan::default() };
        let mut made = Repetition::new(&plan, Vec::new(), scales.len() as u32, Some(false));
        let runs = scales.iter().enumerate().map(|(number, scale)| run_at(number as f64 * 11.0, *scale));
        made.extend(runs, SideSource::default());
        made
    }

    #[test]
    fn json_has_the_figures_and_all_runs() {
        let repetition = repetition(&[1.0, 1.02, 0.99, 1.01, 1.0, 0.98]);
        let value: Value = serde_json::from_slice(&json(&repetition)).expect("JSON");
        assert_eq!((&value["command"], &value["status"]), (&value_of!("repeat"), &value_of!("complete")));
        assert_eq!(value["figures"]["p99"]["median"], value_of!(400.0));
        assert_eq!(value["figures"]["p99"]["ci"], value_of!([392.0, 408.0]));
        assert!(value["figures"]["server-cpu"].is_null(), "no run knows it");
        assert_eq!(value["runs"].as_array().map(Vec::len), Some(6));
        let rows = String::from_utf8(csv(&repetition)).expect("UTF-8");
        assert_eq!(rows.lines().count(), 7);
        assert!(rows.lines().all(|row| row.split(',').count() == rows.split('\n').next().unwrap_or("").split(',').count()));
    }

    #[test]
    fn stored_runs_are_read_as_they_were_written() {
        let mut whole = repetition(&[1.0, 1.3, 1.01, 1.31, 0.99, 1.29, 1.0, 1.3]);
        let mut cut = repetition(&[1.0, 1.02]);
        cut.asked = 5;
        cut.end(Some("interrupted".to_owned()), true);
        cut.labels.insert("branch".to_owned(), "main".to_owned());
        whole.restarted = None;
        for made in [whole, cut, repetition(&[])] {
            let bytes = json(&made);
            let Ok(ResultDocument::Repeated(read)) = stored::read(&bytes) else { panic!("a result") };
            assert_eq!(*read, made);
            assert_eq!(json(&read), bytes);
        }
    }
}
