//! What views of several runs have in common: how far their times may be believed, what became of them, and a table of each of them.

use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::words::{counted, was};

use super::cells::{rate, time};
use super::run::Word;
use super::run::notices::outcome_lines;
use super::{Cell, Column, Line, Row, RowKind, Table, Text, Tone};
use crate::document::OtherOutcomes;
use crate::run_figures::{Metric, RunFigures};

/// The figures of the response, in the order of columns.
pub(super) const TIMES: [Metric; 4] = [Metric::P50, Metric::P90, Metric::P99, Metric::P999];

/// The words for all times, where it is not known which of them are doubtful.
const TIMES_IN_ALL: &str = "the times";

/// The note of a table with marked cells.
pub(super) const MARK_NOTE: &str = "* mostly pummel's own delay";

/// The name of a figure in a table.
pub(crate) fn name_of(metric: Metric) -> &'static str {
    match metric {
        Metric::ServerCpu => "CPU/req",
        Metric::ClientCpu => "own CPU",
        other => other.name(),
    }
}

/// A value of a figure as a cell.
pub(super) fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Rate => format!("{}/s", rate(value)),
        _ => time(value),
    }
}

/// How far the times of some runs may be believed; `None` where that is not known of any. Runs that are compared are told by what
/// spoils them, and others by how many are good.
pub(super) fn trust(runs: &[&RunFigures], is_compared: bool) -> Option<Line> {
    let known = runs.iter().filter(|run| run.trust.is_some()).count();
    let doubtful: Vec<&&RunFigures> = runs.iter().filter(|run| run.trust == Some(false)).collect();
    if known == 0 {
        return None;
    }
    if doubtful.is_empty() {
        return Some(Line::new("Trust", Text::plain(format!("reliable{}", in_all(known, runs.len())))));
    }
    let count = |metric: Metric| {
        let is_doubtful = |run: &&&&RunFigures| run.doubtful.iter().any(|name| name == metric.name());
        doubtful.iter().filter(is_doubtful).count()
    };
    let figures = [Metric::P50, Metric::P99].map(|metric| (metric.name(), count(metric)));
    let mut figures: Vec<(&str, usize)> = figures.into_iter().filter(|(_, some)| *some > 0).collect();
    let is_of_most = |some: usize| 2 * some > runs.len();
    let is_none = is_of_most(count(Metric::P50)) || figures.is_empty() && is_of_most(doubtful.len());
    if figures.is_empty() {
        figures.push((TIMES_IN_ALL, doubtful.len()));
    }
    let reliable = known - doubtful.len();
    let counts_reliable = !is_compared && !is_none && reliable > 0;
    let mut parts = Vec::new();
    for (place, (name, some)) in figures.iter().enumerate() {
        parts.push(match place {
            0 if counts_reliable => format!("{name} partly pummel's own in {some}"),
            0 => {
                let verb = if *name == TIMES_IN_ALL { "are" } else { "is" };
                format!("{name} {verb} partly pummel's own in {}", of_runs(*some, runs.len()))
            }
            _ if runs.len() == 2 && *some == 2 => format!("{name} in both"),
            _ => format!("{name} in {some}"),
        });
    }
    if counts_reliable {
        parts.insert(0, format!("reliable in {}", of_runs(reliable, runs.len())));
    }
    let text = match is_none {
        true => Text::default().and(Tone::Warning, "NOT RELIABLE").and(Tone::Plain, ": "),
        false => Text::default(),
    };
    Some(Line::new("Trust", text.and(Tone::Plain, parts.join(", "))))
}

/// The end of a sentence about all runs that are known.
fn in_all(known: usize, all: usize) -> String {
    match (known, all) {
        (1, 1) => String::new(),
        (2, 2) => " in both runs".to_owned(),
        (known, all) if known == all => format!(" in all {all} runs"),
        (known, all) => format!(" in {known} of {all} runs; it is not known of the others"),
    }
}

/// Some of all runs in words.
pub(super) fn of_runs(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "the run".to_owned(),
        (1, 2) => "one of the two runs".to_owned(),
        (2, 2) => "both runs".to_owned(),
        (some, all) if some == all => format!("all {all} runs"),
        (some, all) => format!("{some} of {all} runs"),
    }
}

/// The runs of which most requests failed, and those that were asked for more than was answered.
pub(super) fn outcomes(runs: &[&RunFigures]) -> Vec<Line> {
    let count = |outcome: RunOutcome| runs.iter().filter(|run| run.outcome == outcome).count();
    let line = |label, outcome, what: &str| {
        let some = count(outcome);
        (some > 0).then(|| Line::warning(label, format!("{}: {what}", of_runs(some, runs.len()))))
    };
    let failed = line(
        "Failed",
        RunOutcome::Failed,
        "more than half of the requests that ended were errors or timeouts",
    );
    let overloaded = line(
        "Overload",
        RunOutcome::Overloaded,
        "more requests were due than were answered, and the queue grew to the end",
    );
    failed.into_iter().chain(overloaded).collect()
}

/// A line for each operation of some runs together of which some requests stored or found nothing; each side has the outcomes of its
/// runs, and what stands behind the names of its operations.
pub(super) fn without_effect<'a, All: IntoIterator<Item = &'a OtherOutcomes>>(
    sides: impl IntoIterator<Item = (All, String)>,
) -> Vec<Line> {
    let named = sides.into_iter().flat_map(|(all, of)| {
        let sums = OtherOutcomes::sums(all).into_iter();
        sums.map(move |sum| (format!("{}{of}", sum.op), sum))
    });
    outcome_lines(named)
}

/// The runs that were not at one level.
pub(super) fn unsteady(runs: &[&RunFigures]) -> Option<Line> {
    let some = runs.iter().filter(|run| run.steady == Some(false)).count();
    (some > 0).then(|| Line::warning("Unsteady", of_runs(some, runs.len())))
}

/// The failed runs that were made again.
pub(super) fn made_again(count: u32) -> Option<Line> {
    let many = u64::from(count);
    let words = format!(
        "{} failed and {} made again; no figure has anything of them",
        counted(many, "run"),
        was(many)
    );
    (count > 0).then(|| Line::warning("Again", words))
}

/// Whether a figure is mostly lag in more than half of some runs.
pub(super) fn is_mostly_lag(runs: &[RunFigures], metric: Metric) -> bool {
    let marked = runs.iter().filter(|run| run.mostly_lag.iter().any(|name| name == metric.name())).count();
    2 * marked > runs.len()
}

/// Words in their order, each once.
pub(crate) fn each_once<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut once: Vec<&str> = Vec::new();
    for word in words {
        if !once.contains(&word) {
            once.push(word);
        }
    }
    once
}

/// A column of figures.
pub(super) fn column(name: &str, width: usize, narrow_width: usize, gives_way: Option<u8>) -> Column {
    Column { name: name.to_owned(), width, narrow_width, gives_way, ..Column::default() }
}

/// A table of each of some runs, with the word for one of them. What became of a run, its limit and its seed stand where there is room.
pub(super) fn each(name: &str, word: &str, runs: &[RunFigures]) -> Table {
    let names = ["req/s", "p50", "p90", "p99", "p99.9"];
    let figures = names.into_iter().map(|name| column(name, 11, 10, None));
    let words = [("outcome", 2), ("limit", 1), ("seed", 0)];
    let words =
        words.map(|(name, gives_way)| Column { is_words: true, ..column(name, 0, 0, Some(gives_way)) });
    let row = |(place, run): (usize, &RunFigures)| {
        let times = TIMES.map(|metric| Cell {
            text: match (run.figure(metric), run.bound(metric)) {
                (Some(figure), _) => value(metric, figure.value),
                (None, Some(above)) => format!("> {}", value(metric, above)),
                (None, None) => "-".to_owned(),
            },
            is_mostly_lag: run.mostly_lag.iter().any(|own| own == metric.name()),
        });
        let facts = [outcome_of(run), run.limit.clone(), run.seed.to_string()].map(Cell::of);
        let cells = std::iter::once(Cell::of(rate(run.rate))).chain(times).chain(facts).collect();
        Row { name: format!("{word} {}", place + 1), cells, kind: RowKind::Figures }
    };
    without_empty_columns(Table {
        name: name.to_owned(),
        columns: figures.chain(words).collect(),
        rows: runs.iter().enumerate().map(row).collect(),
        ..Table::default()
    })
}

/// What is not as it should be in a run, in a few words; empty where all is.
fn outcome_of(run: &RunFigures) -> String {
    let status = match run.status {
        Status::Complete => None,
        Status::Partial => Some(Word::Partial.text()),
        Status::Interrupted => Some(Word::Interrupted.text()),
    };
    let goal = run.met.filter(|met| !met).map(|_| "goal missed");
    let unsteady = run.steady.filter(|steady| !steady).map(|_| "unsteady");
    [status, run.outcome.headline(), goal, unsteady].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The columns of a table in which some cell has text.
pub(super) fn without_empty_columns(table: Table) -> Table {
    let is_filled: Vec<bool> = (0..table.columns.len())
        .map(|place| {
            table.rows.iter().any(|row| row.cells.get(place).is_some_and(|cell| !cell.text.is_empty()))
        })
        .collect();
    let kept = |place: &usize| is_filled[*place];
    let columns = (0..table.columns.len()).filter(kept).map(|place| table.columns[place].clone()).collect();
    let rows = table.rows.into_iter().map(|row| Row {
        cells: row
            .cells
            .iter()
            .enumerate()
            .filter(|(place, _)| is_filled[*place])
            .map(|(_, cell)| cell.clone())
            .collect(),
        ..row
    });
    Table { columns, rows: rows.collect(), ..table }
}
