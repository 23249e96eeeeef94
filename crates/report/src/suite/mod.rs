//! The result of a suite: named runs in order, each with what it was expected to show.

pub mod expectation;

use pummel_logic::plan::Labels;
use pummel_measure::measurement::Status;
use serde::{Deserialize, Serialize};

pub use self::expectation::{Expectation, ExpectationResult};
use crate::csv::{Cell, Csv};
use crate::document::{Document, SCHEMA, ToolResult};
use crate::findings::{Examined, Finding, findings};
use crate::run_figures::{CSV_HEADER, RunFigures, csv_cells, status_of_series};
use crate::view::run::Headline;

/// Word of results of suites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SuiteCommand {
    /// `pummel suite`.
    #[default]
    Suite,
}

/// Result of a suite, as `pummel suite` writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuiteDocument {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that made the runs.
    pub tool: ToolResult,
    /// The word `suite`.
    pub command: SuiteCommand,
    /// Status as of a run; `partial` also where runs are missing.
    pub status: Status,
    /// Reason why runs are missing; null where none are, and where each of them has its own.
    pub reason: Option<String>,
    /// Title of the suite.
    #[serde(default)]
    pub title: String,
    /// Words of the command line; empty with `--anonymous`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// Names and values that the user gave the suite.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Command line of the server that was started for the suite, or for each run, without passwords; null where none was.
    #[serde(default)]
    pub program: Option<String>,
    /// Whether the server was started or restarted for each run.
    #[serde(default)]
    pub restarted: bool,
    /// Number of times that each run was to be made.
    pub rounds: u32,
    /// Number of runs that failed and were made again, which are none of the results.
    #[serde(default)]
    pub made_again: u32,
    /// The runs, in the order of the suite.
    pub runs: Vec<SuiteRun>,
    /// What the audit found: runs that may not measure what their names say. Results of audits have the same findings.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::AnyFinding>"))]
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// A run of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SuiteRun {
    /// Name of the run, which no other run of the suite has.
    pub name: String,
    /// Options that the run has beside those of the suite, without passwords; empty with `--anonymous`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// Reason why a round is missing or not complete; null where none is.
    pub reason: Option<String>,
    /// Time that the rounds took with everything around them: a start of the server, the load, the warm-up.
    pub whole_s: f64,
    /// What the run was expected to show, with the outcomes.
    pub expectations: Vec<ExpectationResult>,
    /// Results of the rounds, each as that of `pummel run`.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::AnyResult>"))]
    pub results: Vec<Document>,
}

impl SuiteRun {
    /// Whether every round was made, and none of them failed.
    pub fn is_whole(&self, rounds: u32) -> bool {
        self.results.len() >= rounds as usize && self.results.iter().all(is_whole)
    }

    /// The expectations that were met, and all.
    pub fn met(&self) -> (usize, usize) {
        let met = self.expectations.iter().filter(|one| one.met == Some(true)).count();
        (met, self.expectations.len())
    }

    /// The expectations that were missed, or of which that is not known.
    pub fn not_met(&self) -> impl Iterator<Item = &ExpectationResult> {
        self.expectations.iter().filter(|one| one.met != Some(true))
    }
}

/// Whether a round is complete, and not made of errors.
pub fn is_whole(document: &Document) -> bool {
    Headline::of(document).status != STATUS_FAILED && document.status == Status::Complete
}

/// The exit status of a run that failed.
const STATUS_FAILED: u8 = 1;

/// The exit status of a run that missed what it was held to.
const STATUS_MISSED: u8 = 3;

/// The exit status of a suite that a signal ended, where the signal is not known.
const STATUS_INTERRUPTED: u8 = 130;

impl SuiteDocument {
    /// A suite without a result, whose runs are to be made so many times.
    pub fn new(title: String, rounds: u32, argv: Vec<String>) -> SuiteDocument {
        SuiteDocument {
            schema: SCHEMA,
            tool: ToolResult::named(),
            command: SuiteCommand::Suite,
            status: Status::Partial,
            reason: None,
            title,
            argv,
            labels: Labels::new(),
            program: None,
            restarted: false,
            rounds,
            made_again: 0,
            runs: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Says that no more runs follow, and why some are missing, and looks at what the runs really measured.
    pub fn end(&mut self, reason: Option<String>, is_interrupted: bool) {
        let made = self.runs.iter().filter(|run| run.is_whole(self.rounds)).count();
        let asked = u32::try_from(self.runs.len()).ok();
        self.status = status_of_series(is_interrupted, reason.as_deref(), made, asked);
        self.reason = reason;
        let examined: Vec<Examined<'_>> = self.examined().collect();
        self.findings = findings(&examined, self.status == Status::Complete);
    }

    /// The results as the audit examines them, by the names of their runs.
    pub fn examined(&self) -> impl Iterator<Item = Examined<'_>> {
        let results = self.runs.iter().flat_map(|run| run.results.iter().map(move |result| (run, result)));
        results.map(|(run, result)| {
            let examined = Examined::of_run(&run.name, result).of_suite();
            let goals = run.expectations.iter().filter_map(ExpectationResult::goal);
            goals.fold(examined, |examined, (quantile, limit_us)| examined.expecting(quantile, limit_us))
        })
    }

    /// The expectations of all runs that were met, and all.
    pub fn met(&self) -> (usize, usize) {
        let each = self.runs.iter().map(SuiteRun::met);
        each.fold((0, 0), |(met, all), (own_met, own_all)| (met + own_met, all + own_all))
    }

    /// The exit status of the command: an interruption comes before a failed run, and that before anything that was missed.
    pub fn exit_status(&self) -> u8 {
        let results = || self.runs.iter().flat_map(|run| &run.results);
        let statuses = || results().map(|result| Headline::of(result).status);
        let (met, all) = self.met();
        match self.status {
            Status::Interrupted => STATUS_INTERRUPTED,
            Status::Partial => STATUS_FAILED,
            Status::Complete if statuses().any(|status| status == STATUS_FAILED) => STATUS_FAILED,
            Status::Complete if met < all || statuses().any(|status| status == STATUS_MISSED) => {
                STATUS_MISSED
            }
            Status::Complete => 0,
        }
    }
}

/// The runs as CSV, a line for each round.
pub fn csv(suite: &SuiteDocument) -> Vec<u8> {
    let mut table = Csv::with_header(["run", "round"].into_iter().chain(CSV_HEADER));
    for run in &suite.runs {
        for (round, result) in run.results.iter().enumerate() {
            let figures = RunFigures::of(result, result.seconds);
            let place = [Cell::from(run.name.as_str()), Cell::Count(round as u64 + 1)];
            table.row(place.into_iter().chain(csv_cells(&figures)));
        }
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Keep;
    use pummel_measure::outcome::RunOutcome;

    use super::*;
    use crate::example::Run;
    use crate::json::render;
    use crate::stored::{self, ResultDocument};

    fn run(name: &str, results: Vec<Document>) -> SuiteRun {
        SuiteRun { name: name.to_owned(), results, ..SuiteRun::default() }
    }

    fn result() -> Document {
        Run::new(Keep::Figures).document(Clone::clone)
    }

    fn ended(runs: Vec<SuiteRun>, rounds: u32) -> SuiteDocument {
        let mut suite = SuiteDocument::new("nightly".to_owned(), rounds, vec!["pummel".to_owned()]);
        suite.runs = runs;
        suite.end(None, false);
        suite
    }

    #[test]
    fn a_stored_suite_is_read_as_it_was_written() {
        let mut whole = ended(vec![run("a", vec![result(), result()]), run("b", Vec::new())], 2);
        whole.runs[1].reason = Some("nothing listens there".to_owned());
        whole.program = Some("memcached".to_owned());
        for suite in [whole, ended(Vec::new(), 1)] {
            let bytes = render(&suite);
            let Ok(ResultDocument::Suite(read)) = stored::read(&bytes) else { panic!("a suite") };
            assert_eq!((&*read, render(&read)), (&suite, bytes));
        }
    }

    #[test]
    fn the_status_is_that_of_the_worst_run() {
        let failed = Document { outcome: RunOutcome::Failed, ..result() };
        let missed = ExpectationResult { met: Some(false), ..ExpectationResult::default() };
        let unknown = ExpectationResult::default();
        let with = |outcome| SuiteRun { expectations: vec![outcome], ..run("a", vec![result()]) };
        for (runs, rounds, status) in [
            (vec![run("a", vec![result()])], 1, 0),
            (vec![with(missed)], 1, 3),
            (vec![with(unknown)], 1, 3),
            (vec![run("a", vec![result()]), run("b", vec![failed])], 1, 1),
            (vec![run("a", vec![result()]), run("b", Vec::new())], 1, 1),
            (vec![run("a", vec![result()])], 2, 1),
        ] {
            let suite = ended(runs, rounds);
            assert_eq!(suite.exit_status(), status, "{:?}", suite.status);
        }
        let mut cut = ended(vec![run("a", vec![result()])], 1);
        cut.end(Some("interrupted".to_owned()), true);
        assert_eq!((cut.status, cut.exit_status()), (Status::Interrupted, 130));
    }

    #[test]
    fn each_round_is_a_line_of_the_table() {
        let suite = ended(vec![run("reads, 1", vec![result(), result()]), run("=cmd()", vec![result()])], 2);
        let table = String::from_utf8(csv(&suite)).expect("UTF-8");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].starts_with("\"reads, 1\",2,") && lines[3].starts_with("'=cmd(),1,"), "{table}");
    }
}
