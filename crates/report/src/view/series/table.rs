//! The table of the runs of a series, and the notes below it.

use pummel_measure::scalability::Level;
use pummel_measure::summary::QUANTILES;
use pummel_measure::words::{counted, grouped};

use super::rows::{self, level_of, time};
use super::search;
use crate::document::{CurveDocument, CurveRun};
use crate::scaling::{jump, levels};
use crate::view::cells::{self, interval, rate};
use crate::view::run::Wanted;
use crate::view::{Cell, Column, Note, Row, RowKind, Table};

/// The name of the columns of intervals.
const SURENESS: &str = "95 % sure";

/// What a column has, with the place in the order in which columns give way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Completed requests per second.
    Done,
    /// A quantile of the response.
    Quantile(&'static str),
    /// The interval of a quantile.
    Sure(&'static str),
    /// The limit of the run.
    Limit,
    /// What the run says of the goals, to a search or to a gate.
    Goal {
        /// Whether the series is a search.
        is_search: bool,
    },
    /// The purpose of the run.
    Role,
}

/// The columns of a series, in their order.
fn columns(curve: &CurveDocument, wanted: Wanted) -> Vec<(Kind, Option<u8>)> {
    let has_everything = wanted == Wanted::Everything;
    let goals = || {
        let known = |quantile: f64| QUANTILES.iter().find(|(_, of)| *of == quantile).map(|(name, _)| *name);
        curve.goals.iter().filter_map(move |goal| known(goal.quantile))
    };
    let is_of_goal = |name: &str| goals().any(|goal| goal == name);
    let is_search = curve.command == "search";
    let usual: &[&str] = match (is_search, level_of(curve)) {
        (true, _) => &["p50"],
        (false, Some(_)) => &["p50", "p99"],
        (false, None) => &["p50", "p99", "p99.9"],
    };
    let mut columns = vec![(Kind::Done, Some(if is_search { 5 } else { 8 }))];
    for (name, _) in QUANTILES {
        let when = match name {
            name if is_of_goal(name) => None,
            "p99.99" => Some(0),
            "p95" => Some(1),
            "p90" => Some(2),
            "p99" => (is_search).then_some(3),
            "p99.9" => Some(3),
            _ => Some(4),
        };
        if has_everything || is_of_goal(name) || usual.contains(&name) {
            columns.push((Kind::Quantile(name), when));
        }
        if is_of_goal(name) || has_everything && goals().next().is_none() && name == "p99" {
            columns.push((Kind::Sure(name), Some(if is_search { 6 } else { 3 })));
        }
    }
    if !is_search || has_everything {
        columns.push((Kind::Limit, has_everything.then_some(7)));
    }
    if !curve.goals.is_empty() {
        columns.push((Kind::Goal { is_search }, None));
    }
    if has_everything {
        columns.push((Kind::Role, Some(4)));
    }
    columns
}

/// The column of some kind, as wide as it is at least.
fn column(curve: &CurveDocument, (kind, gives_way): (Kind, Option<u8>)) -> Column {
    let done = if level_of(curve).is_some() { "req/s" } else { "done/s" };
    let (name, width, narrow_width, is_words) = match kind {
        Kind::Done => (done, 10, 9, false),
        Kind::Quantile(name) => (name, 11, 10, false),
        Kind::Sure(_) => (SURENESS, 12, 11, false),
        Kind::Limit => ("limit", 0, 0, true),
        Kind::Goal { .. } => ("goal", 0, 0, true),
        Kind::Role => ("purpose", 0, 0, true),
    };
    Column { name: name.to_owned(), width, narrow_width, gives_way, is_words }
}

/// The table of the runs that are shown; `None` without a run, and for a search whose runs say nothing of the server.
pub(super) fn table(curve: &CurveDocument, wanted: Wanted) -> Option<Table> {
    let runs = shown(curve, wanted)?;
    let kinds = columns(curve, wanted);
    let is_blank = |kind: Kind| runs.iter().all(|run| cell(run, kind).text.is_empty());
    let kinds: Vec<(Kind, Option<u8>)> = kinds.into_iter().filter(|(kind, _)| !is_blank(*kind)).collect();
    let row = |run: &&CurveRun| Row {
        name: name(run),
        cells: kinds.iter().map(|(kind, _)| cell(run, *kind)).collect(),
        kind: RowKind::Figures,
    };
    Some(Table {
        name: level_of(curve).unwrap_or("asked/s").to_owned(),
        has_figures_first: true,
        columns: kinds.iter().map(|kind| column(curve, *kind)).collect(),
        rows: runs.iter().map(row).collect(),
    })
}

/// The runs of the table; `None` where there is no table.
fn shown(curve: &CurveDocument, wanted: Wanted) -> Option<Vec<&CurveRun>> {
    if curve.runs.is_empty() {
        return None;
    }
    if wanted == Wanted::Everything {
        return Some(rows::sorted(curve));
    }
    match curve.command.as_str() {
        // What was measured is told all the same where the search did not come to its end.
        "search" if curve.reason.is_some() => Some(rows::shown(curve, search::rate_shown(curve))),
        "search" => Some(rows::shown(curve, Some(search::rate_shown(curve)?))),
        _ => Some(rows::shown(curve, None)),
    }
}

/// The level of a run, or the rate that was asked for.
fn name(run: &CurveRun) -> String {
    match (&run.level, run.asked_rate) {
        (Some(level), _) => grouped(u64::from(level.n)),
        (None, Some(asked)) => rate(asked),
        (None, None) => "closed".to_owned(),
    }
}

fn cell(run: &CurveRun, kind: Kind) -> Cell {
    match kind {
        Kind::Done => Cell::of(rate(run.rate)),
        Kind::Quantile(name) => {
            let text = match (time(run, name), run.response_above_us.get(name)) {
                (Some(us), _) => cells::time(us),
                (None, Some(us)) => format!("> {}", cells::time(*us)),
                (None, None) => "-".to_owned(),
            };
            Cell { text, is_mostly_lag: run.mostly_lag.iter().any(|own| own == name) }
        }
        Kind::Sure(name) => {
            let ends = time(run, name).zip(run.response_ci_us.get(name).copied());
            Cell::of(ends.map_or_else(String::new, |(us, ends)| interval(us, ends)))
        }
        Kind::Limit => Cell::of(limit(run)),
        Kind::Goal { is_search } => Cell::of(goal(run, is_search)),
        Kind::Role => Cell::of(run.role.as_str()),
    }
}

/// The limit of a run in a word or two; empty where there is none.
fn limit(run: &CurveRun) -> String {
    let name = match run.limit.as_str() {
        "generator" => return "- pummel".to_owned(),
        "none" | "unknown" => "",
        "connections" => "in flight",
        name => name,
    };
    match (run.carried, name) {
        (true, name) => name.to_owned(),
        (false, "") => "not carried".to_owned(),
        (false, name) => format!("{name}, not carried"),
    }
}

/// What a run says of the goals, in a word or two.
fn goal(run: &CurveRun, is_search: bool) -> &'static str {
    match run.met {
        _ if !run.carried => "not carried",
        None if run.is_idle() => "no request",
        None => "",
        // A search leaves out what missed them for the generator's sake; a gate does not.
        Some(false) if is_search && run.is_of_generator() => "- pummel",
        // A run that was not at one level shows what depends on where it ended.
        Some(_) if run.is_unsteady() => "unsteady",
        Some(true) if run.sure == Some(false) => "met?",
        Some(true) => "met",
        Some(false) if run.sure == Some(false) => "missed?",
        Some(false) => "missed",
    }
}

/// The sentences below the table.
pub(super) fn notes(curve: &CurveDocument, wanted: Wanted, table: Option<&Table>) -> Vec<Note> {
    let cells = table.iter().flat_map(|table| {
        table
            .rows
            .iter()
            .flat_map(|row| row.cells.iter().zip(&table.columns))
            .filter(|(cell, _)| cell.is_mostly_lag)
    });
    let marked: Vec<String> = cells.map(|(_, column)| column.name.clone()).collect();
    let rows = table.map_or(0, |table| table.rows.len());
    let more = curve.runs.len() - rows;
    let mut notes = Vec::new();
    if !marked.is_empty() {
        let text = "* mostly pummel's own delay".to_owned();
        notes.push(Note { text, columns: marked, is_alternative: false });
    }
    let is_above = |run: &&CurveRun| run.response_above_us.iter().next().is_some();
    if shown(curve, wanted).is_some_and(|runs| runs.iter().any(is_above)) {
        notes.push(Note::of("> x: at least x, because it falls among the requests without a reply"));
    }
    if more > 0 && wanted != Wanted::Everything {
        let runs = match rows {
            0 => counted(more as u64, "run"),
            _ => format!("{} more {}", grouped(more as u64), if more == 1 { "run" } else { "runs" }),
        };
        notes.push(Note::of(format!("{runs}: -v")));
    }
    notes.extend(level_of(curve).and_then(|of| no_law(&levels(curve), of)).map(Note::of));
    notes
}

/// A sentence about levels of which one does more for each of its connections or threads than a law of scaling can have it do; `None`
/// where there are none.
fn no_law(levels: &[Level], of: &str) -> Option<String> {
    let (low, high) = jump(levels)?;
    let times = match high.rate / low.rate {
        times if times < 3.0 => format!("{times:.1}"),
        times => format!("{times:.0}"),
    };
    let (low, high) = (grouped(low.n as u64), grouped(high.n as u64));
    Some(format!("No law of scaling fits: {high} {of} do {times} times as much as {low}"))
}
