//! Several runs of one configuration, side by side: as text, JSON and CSV.

use std::fmt::Write as _;

use pummel_logic::plan::Plan;
use pummel_measure::compare::{RUNS_FOR_INTERVAL, RunFigure, RunSpread, median, median_interval};
use pummel_measure::measurement::Status;
use pummel_measure::words::counted;
use serde_json::{Map, Value, json};

use crate::VERSION;
use crate::comparison::{SideSource, StoredRepetition, stored_repetition};
use crate::csv::{Cell, Csv};
use crate::document::{NotAResult, SCHEMA};
use crate::markdown;
use crate::run_figures::{
    CSV_HEADER, Metric, RunFigures, csv_cells, judged_by_default, lag_words_of, made_again_words,
    outcome_words, pretty,
};

/// The word of results of repeated runs.
pub const COMMAND: &str = "repeat";

/// The least length of a run that is advised, in seconds: shorter ones say nothing of how sure they are.
const RUN_LEAST_S: f64 = 1.0;

/// Ratios of the advised to the present length at which the advice is not worth a sentence.
const ADVICE_SAME: std::ops::RangeInclusive<f64> = 0.67..=1.5;

/// Several runs of one configuration.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// What each run was made after, but for its seed.
    pub plan: Plan,
    /// The words of the command line; empty with `--anonymous`, and where they are not known.
    pub argv: Vec<String>,
    /// How many runs were asked for.
    pub asked: u32,
    /// Whether the server was restarted before each run; `None` where that is not known.
    pub restarted: Option<bool>,
    /// What the last run knew of its servers and its machine.
    pub source: SideSource,
    /// In the order in which they were made.
    pub runs: Vec<RunFigures>,
    /// Why there are no more runs, where some are missing.
    pub reason: Option<String>,
    /// Whether a signal ended the runs.
    pub interrupted: bool,
    /// How many runs failed and were made again, which are none of `runs`.
    pub made_again: u32,
}

/// A figure of all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedFigure {
    /// The figure.
    pub metric: Metric,
    /// Its median.
    pub median: f64,
    /// The 95 % interval of the median from order statistics; `None` below six runs.
    pub interval: Option<(f64, f64)>,
    /// The least and the greatest.
    pub range: (f64, f64),
    /// How far the runs differ; `None` of one run.
    pub spread: Option<RunSpread>,
}

impl Repetition {
    /// Reads the JSON of repeated runs.
    ///
    /// # Errors
    /// Returns [`NotAResult`], which says what the bytes are instead, or where they are wrong.
    pub fn read(bytes: &[u8]) -> Result<Repetition, NotAResult> {
        let StoredRepetition {
            plan,
            argv,
            labels,
            source,
            runs,
            asked,
            restarted,
            made_again,
            reason,
            status,
        } = stored_repetition(bytes)?;
        Ok(Repetition {
            plan: plan.with_labels(labels),
            argv,
            asked: asked.unwrap_or(runs.len() as u32),
            restarted,
            source,
            runs,
            reason,
            interrupted: status == Some(Status::Interrupted),
            made_again,
        })
    }

    /// The word of results for how the runs ended.
    pub fn status(&self) -> Status {
        match (self.interrupted, &self.reason) {
            (true, _) => Status::Interrupted,
            (false, Some(_)) => Status::Partial,
            (false, None) if self.runs.len() < self.asked as usize => Status::Partial,
            (false, None) => Status::Complete,
        }
    }

    /// Wrong values of all runs.
    pub fn wrong_values(&self) -> u64 {
        self.runs.iter().filter_map(|run| run.wrong_values).sum()
    }

    /// Numbers of the runs that missed a goal and of those that had one.
    pub fn missed(&self) -> (usize, usize) {
        let judged = self.runs.iter().filter(|run| run.met.is_some()).count();
        (self.runs.iter().filter(|run| run.met == Some(false)).count(), judged)
    }

    /// The figures that all runs know, in the order of reports.
    pub fn figures(&self) -> Vec<RepeatedFigure> {
        Metric::ALL.into_iter().filter_map(|metric| self.figure(metric)).collect()
    }

    fn figure(&self, metric: Metric) -> Option<RepeatedFigure> {
        let known: Option<Vec<RunFigure>> = self.runs.iter().map(|run| run.figure(metric)).collect();
        let known = known?;
        let values: Vec<f64> = known.iter().map(|figure| figure.value).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(0.0, f64::max);
        Some(RepeatedFigure {
            metric,
            median: median(&values)?,
            interval: median_interval(&values),
            range: (least, greatest),
            spread: RunSpread::of(&known),
        })
    }

    /// The length of a run, in seconds, that makes the interval of the first judged figure least for the same time in all.
    fn advised_s(&self, figures: &[RepeatedFigure]) -> Option<(Metric, f64)> {
        let judged = judged_by_default(&self.plan);
        let spread = figures.iter().find(|figure| figure.metric == judged)?.spread?;
        let mean =
            |of: fn(&RunFigures) -> f64| self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64;
        let measured_s = mean(|run| run.seconds);
        let fixed_s = mean(|run| run.whole_s) - measured_s;
        let is_enough = self.runs.len() >= RUNS_FOR_INTERVAL;
        let advised_s = spread.advised_s(fixed_s, measured_s).filter(|_| is_enough)?;
        Some((judged, advised_s.max(RUN_LEAST_S)))
    }
}

/// The report for people.
pub fn text(repetition: &Repetition) -> String {
    let runs = &repetition.runs;
    let count = counted(runs.len() as u64, "run");
    let around = match repetition.restarted {
        Some(true) => "server restarted before each run",
        Some(false) => "server not restarted",
        None => "whether the server was restarted is not known",
    };
    let mut text = format!("pummel {VERSION}: {count} of {}, {around}\n", repetition.plan.servers.join(", "));
    let figures = repetition.figures();
    if !figures.is_empty() {
        text += &table(&figures, runs.len());
    }
    for note in notes(repetition, &figures) {
        text += &format!("\n{note}\n");
    }
    text
}

/// Notes on the runs in addition to their figures: paragraphs.
pub fn notes(repetition: &Repetition, figures: &[RepeatedFigure]) -> Vec<String> {
    let runs = &repetition.runs;
    let mut notes: Vec<String> = figures.iter().filter_map(spread_words).collect();
    let measured_s = runs.iter().map(|run| run.seconds).sum::<f64>() / runs.len() as f64;
    let advised = repetition.advised_s(figures);
    // Advice that changes little is none.
    if let Some((metric, run_s)) = advised.filter(|(_, run_s)| !(ADVICE_SAME.contains(&(run_s / measured_s))))
    {
        notes.push(format!(
            "In the same time in all, {} would be known best from {} runs that measure about {run_s:.1} s each ({measured_s:.1} s now).",
            metric.name(),
            if run_s < measured_s { "more and shorter" } else { "fewer and longer" },
        ));
    }
    notes.extend(troubles(repetition));
    notes.extend(made_again_words(repetition.made_again));
    if let Some(reason) = &repetition.reason {
        notes.push(format!("Not complete: {} of {} runs: {reason}", runs.len(), repetition.asked));
    }
    notes
}

/// A line for each figure: its median, the interval or the range, how far the runs differ.
fn table(figures: &[RepeatedFigure], runs: usize) -> String {
    let has_interval = runs >= RUNS_FOR_INTERVAL;
    let (from, to) = if has_interval { ("from", "to") } else { ("least", "greatest") };
    let mut text = format!("\n{:<12}{:>12}{from:>12}{to:>12}  runs differ by\n", "", "median");
    for figure in figures {
        let (low, high) = figure.interval.unwrap_or(figure.range);
        let of = |value: f64| figure.metric.text(value);
        let between =
            figure.spread.map_or("-".to_owned(), |spread| format!("{:.1} %", spread.between * 100.0));
        let name = figure.metric.name();
        writeln!(text, "{name:<12}{:>12}{:>12}{:>12}  {between}", of(figure.median), of(low), of(high))
            .expect("text can always be added to");
    }
    text += &match has_interval {
        true => format!("\nfrom and to: 95 % interval of the median of {runs} runs.\n"),
        false => format!("\nleast and greatest: range of {}, no interval.\n", counted(runs as u64, "run")),
    };
    text
}

/// A sentence on how the runs differ in a figure; `None` if chance within a run explains it.
fn spread_words(figure: &RepeatedFigure) -> Option<String> {
    let spread = figure.spread.filter(|spread| spread.is_beyond_chance == Some(true))?;
    let name = figure.metric.name();
    let mut text = format!("{name}: runs differ more than chance within a run explains.");
    if let Some(groups) = spread.groups {
        let [low, high] = groups.medians.map(|median| figure.metric.text(median));
        let [lower, upper] = groups.runs;
        text += &format!(" They fall in two groups: {lower} near {low}, {upper} near {high}.");
    }
    Some(text)
}

/// Missed goals, wrong values, runs that were not steady, that failed or were overloaded, or whose times hold lag of pummel.
fn troubles(repetition: &Repetition) -> Vec<String> {
    let mut notes = Vec::new();
    let all = repetition.runs.len();
    let (missed, judged) = repetition.missed();
    if judged > 0 {
        notes.push(match missed {
            0 => format!("The goals were met in all of {}.", counted(judged as u64, "run")),
            missed => format!("A goal was MISSED in {missed} of {judged} runs."),
        });
    }
    let wrong = repetition.wrong_values();
    if wrong > 0 {
        notes.push(format!("WRONG VALUES FOUND: {wrong} in all runs; `pummel run --verify` says which."));
    }
    let unsteady = repetition.runs.iter().filter(|run| run.steady == Some(false)).count();
    if unsteady > 0 {
        notes.push(format!("{unsteady} of {all} runs were not steady from their beginning to their end."));
    }
    let runs: Vec<&RunFigures> = repetition.runs.iter().collect();
    notes.extend(outcome_words(&runs));
    notes.extend(lag_words_of(&runs));
    notes
}

/// The report for people, for the page of a job or a comment.
pub fn markdown(repetition: &Repetition) -> Vec<u8> {
    let count = counted(repetition.runs.len() as u64, "run");
    markdown::of_text(
        &format!("pummel: {count} of {}", repetition.plan.servers.join(", ")),
        &text(repetition),
    )
}

/// The runs as JSON, in the order in which they were made.
pub fn json(repetition: &Repetition) -> Vec<u8> {
    let figures = repetition.figures();
    let advised = repetition.advised_s(&figures);
    let named: Map<String, Value> =
        figures.iter().map(|figure| (figure.metric.name().to_owned(), figure_json(figure))).collect();
    let whole = json!({
        "schema": SCHEMA,
        "tool": { "name": "pummel", "version": VERSION },
        "command": COMMAND,
        "status": repetition.status(),
        "reason": repetition.reason,
        "argv": repetition.argv,
        "plan": repetition.plan.told(),
        "labels": repetition.plan.labels,
        "asked": repetition.asked,
        "restarted": repetition.restarted,
        "made_again": repetition.made_again,
        "source": repetition.source,
        "figures": named,
        "advised_run_s": advised.map(|(_, run_s)| run_s),
        "runs": repetition.runs,
    });
    pretty(&whole)
}

fn figure_json(figure: &RepeatedFigure) -> Value {
    let spread = figure.spread;
    let groups = spread.and_then(|spread| spread.groups);
    json!({
        "unit": figure.metric.unit(),
        "median": figure.median,
        "ci": figure.interval.map(|(low, high)| [low, high]),
        "least": figure.range.0,
        "greatest": figure.range.1,
        "between": spread.map(|spread| spread.between),
        "within": spread.and_then(|spread| spread.within),
        "beyond_chance": spread.and_then(|spread| spread.is_beyond_chance),
        "groups": groups.map(|groups| json!({ "runs": groups.runs, "medians": groups.medians })),
    })
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
    use super::*;
    use crate::run_figures::tests::run_at;

    fn repetition(scales: &[f64]) -> Repetition {
        let runs = scales.iter().enumerate().map(|(number, scale)| run_at(number as f64 * 11.0, *scale));
        Repetition {
            plan: Plan { servers: vec!["127.0.0.1:11211".to_owned()], ..Plan::default() },
            argv: Vec::new(),
            asked: scales.len() as u32,
            restarted: Some(false),
            source: SideSource::default(),
            runs: runs.collect(),
            reason: None,
            interrupted: false,
            made_again: 0,
        }
    }

    #[test]
    fn three_runs_have_a_range_and_six_an_interval() {
        let few = text(&repetition(&[1.0, 1.02, 0.99]));
        assert!(few.contains("range of 3 runs, no interval") && !few.contains("95 %"), "{few}");
        assert!(few.contains("server not restarted"), "{few}");
        let many = text(&repetition(&[1.0, 1.02, 0.99, 1.01, 1.0, 0.98]));
        assert!(many.contains("95 % interval of the median of 6 runs"), "{many}");
        let line = many.lines().find(|line| line.starts_with("p50 ")).expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["p50", "100", "us", "98.0", "us", "102", "us", "1.4", "%"]);
    }

    #[test]
    fn a_server_with_two_states_is_called_so() {
        let said = text(&repetition(&[1.0, 1.3, 1.01, 1.31, 0.99, 1.29, 1.0, 1.3]));
        assert!(said.contains("p50: runs differ more than chance within a run explains."), "{said}");
        assert!(said.contains("two groups: 4 near 100 us, 4 near 130 us"), "{said}");
        let quiet = text(&repetition(&[1.0, 1.002, 1.001, 0.999, 1.0, 1.001]));
        assert!(!quiet.contains("more than chance"), "{quiet}");
    }

    #[test]
    fn json_has_the_figures_and_all_runs() {
        let repetition = repetition(&[1.0, 1.02, 0.99, 1.01, 1.0, 0.98]);
        let value: Value = serde_json::from_slice(&json(&repetition)).expect("JSON");
        assert_eq!((&value["command"], &value["status"]), (&json!("repeat"), &json!("complete")));
        assert_eq!(value["figures"]["p99"]["median"], json!(400.0));
        assert_eq!(value["figures"]["p99"]["ci"], json!([392.0, 408.0]));
        assert!(value["figures"]["server-cpu"].is_null(), "no run knows it");
        assert_eq!(value["runs"].as_array().map(Vec::len), Some(6));
        let rows = String::from_utf8(csv(&repetition)).expect("UTF-8");
        assert_eq!(rows.lines().count(), 7);
        assert!(rows.lines().all(|row| row.split(',').count() == rows.split('\n').next().unwrap_or("").split(',').count()));
    }

    #[test]
    fn stored_runs_are_shown_as_they_were_printed() {
        let mut whole = repetition(&[1.0, 1.3, 1.01, 1.31, 0.99, 1.29, 1.0, 1.3]);
        let mut cut = repetition(&[1.0, 1.02]);
        (cut.asked, cut.interrupted, cut.reason) = (5, true, Some("interrupted".to_owned()));
        cut.plan.labels.insert("branch".to_owned(), "main".to_owned());
        whole.restarted = None;
        for made in [whole, cut] {
            let read = Repetition::read(&json(&made)).expect("a result");
            assert_eq!(text(&read), text(&made));
            assert_eq!(json(&read), json(&made));
        }
        assert!(matches!(
            Repetition::read(b"{\"schema\": 1, \"command\": \"ab\"}"),
            Err(NotAResult::Another(_))
        ));
        assert!(matches!(
            Repetition::read(b"{\"schema\": 2, \"command\": \"repeat\"}"),
            Err(NotAResult::Newer(2))
        ));
    }

    #[test]
    fn what_went_wrong_in_a_run_is_said() {
        let mut repetition = repetition(&[1.0, 1.0]);
        repetition.runs[0].wrong_values = Some(3);
        repetition.runs[0].met = Some(false);
        repetition.runs[1].met = Some(true);
        repetition.runs[1].steady = Some(false);
        repetition.reason = Some("interrupted".to_owned());
        repetition.interrupted = true;
        repetition.asked = 5;
        let said = text(&repetition);
        for words in [
            "MISSED in 1 of 2",
            "WRONG VALUES FOUND: 3",
            "1 of 2 runs were not steady",
            "2 of 5 runs: interrupted",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert_eq!(repetition.status(), Status::Interrupted);
        let value: Value = serde_json::from_slice(&json(&repetition)).expect("JSON");
        assert_eq!(value["status"], "interrupted");
    }
}
