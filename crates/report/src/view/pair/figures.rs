//! The tables of a comparison, and the sentences below them.

use pummel_logic::plan::Group;
use pummel_measure::compare::{ALPHA, Design, RUNS_TO_CLAIM};
use pummel_measure::words::counted;

use super::sides::all;
use crate::comparison::{Comparison, Row as Figure};
use crate::run_figures::Metric;
use crate::view::cells::{interval, rate_interval};
use crate::view::change::ChangeUnit;
use crate::view::several::{MARK_NOTE, column, each, is_mostly_lag, name_of, value, without_empty_columns};
use crate::view::{Cell, Column, Note, Row, RowKind, Table};

/// The tables: of two sides their figures, of several one with a column for each.
pub(super) fn tables(comparisons: &[Comparison], is_everything: bool) -> Vec<Table> {
    let mut tables = match comparisons {
        [pair] => vec![of_pair(pair, is_everything)],
        several => {
            let whole = std::iter::once(of_several(several, is_everything));
            let pairs = several.iter().filter(|_| is_everything).map(|pair| of_pair(pair, is_everything));
            whole.chain(pairs).collect()
        }
    };
    let sides = all(comparisons);
    if is_everything && sides.iter().any(|side| side.runs.len() > 1) {
        let names = comparisons.first().map(|pair| pair.names.0[0]).into_iter();
        let names = names.chain(comparisons.iter().map(|pair| pair.names.0[1]));
        tables
            .extend(names.zip(sides).map(|(name, side)| each(&format!("runs of {name}"), "run", &side.runs)));
    }
    tables
}

/// The figures that some side knows, those that are judged first.
fn rows(comparisons: &[Comparison], is_everything: bool) -> Vec<Metric> {
    let is_judged = |metric: Metric| comparisons.iter().any(|pair| pair.row(metric).is_judged);
    let is_known = |metric: Metric| comparisons.iter().any(|pair| pair.row(metric).is_known());
    // The CPU time of the servers says more of them than that of the generator.
    let is_own =
        |metric: Metric| metric == Metric::ClientCpu && !is_everything && is_known(Metric::ServerCpu);
    let mut metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| is_known(*metric) && (is_judged(*metric) || !is_own(*metric)))
        .collect();
    // Where runs are too few nothing is judged.
    if comparisons.iter().any(|pair| pair.rows.iter().any(|row| row.ci.is_some())) {
        metrics.sort_by_key(|metric| !is_judged(*metric));
    }
    metrics
}

/// A value of one side.
pub(in crate::view) fn side_cell(pair: &Comparison, row: &Figure, side: usize) -> Cell {
    let text = match (row.values[side], row.bounds[side]) {
        (Some(known), _) => value(row.metric, known),
        (None, Some(bound)) => format!("> {}", value(row.metric, bound)),
        (None, None) => "-".to_owned(),
    };
    Cell { text, is_mostly_lag: is_mostly_lag(&pair.sides[side].runs, row.metric) }
}

/// The interval of one side within its run.
fn within_cell(pair: &Comparison, row: &Figure, side: usize) -> Cell {
    // The interval of a rate that was asked for is noise of the arrivals.
    let is_found = pair.sides[side].plan.groups.iter().all(Group::is_closed_loop);
    let ends = row.values[side].zip(row.within[side]).and_then(|(known, (low, high))| match row.metric {
        Metric::Rate => is_found.then(|| rate_interval([low, high])),
        _ => Some(interval(known, [Some(low), Some(high)])),
    });
    Cell::of(ends.unwrap_or_default())
}

/// The figures of two sides.
fn of_pair(pair: &Comparison, is_everything: bool) -> Table {
    let [first, second] = pair.names.0;
    let is_single = pair.sides.iter().all(|side| side.runs.len() == 1) && pair.design == Design::Apart;
    let has_intervals = pair.rows.iter().any(|row| row.ci.is_some());
    let within = || column("95 % sure", 12, 11, Some(0)).clone();
    let [a, b] = [first, second].map(|name| column(name, 12, 11, None));
    let change = column(&format!("{second} to {first}"), 9, 8, None);
    let columns: Vec<Column> = match is_single {
        true => vec![a, within(), b, within(), change],
        false => vec![a, b, change, column("95 % sure", 12, 11, None), column("", 10, 8, Some(0))],
    };
    let metrics = rows(std::slice::from_ref(pair), is_everything);
    let row = |metric: Metric| {
        let row = pair.row(metric);
        let [a, b] = [0, 1].map(|side| side_cell(pair, row, side));
        let unit = row.change.map(|change| ChangeUnit::of(pair.design, change, row.ci));
        let change = row.change.zip(unit).map_or("-".to_owned(), |(change, unit)| unit.cell(change));
        let ends = row.ci.zip(unit).map_or_else(String::new, |(ends, unit)| unit.ends(ends));
        let judged = if row.is_judged && has_intervals { "judged" } else { "" };
        let cells = match is_single {
            true => vec![a, within_cell(pair, row, 0), b, within_cell(pair, row, 1), Cell::of(change)],
            false => vec![a, b, Cell::of(change), Cell::of(ends), Cell::of(judged)],
        };
        Row { name: name_of(metric).to_owned(), cells, kind: RowKind::Figures }
    };
    let table = Table {
        name: "response".to_owned(),
        columns,
        rows: metrics.into_iter().map(row).collect(),
        ..Table::default()
    };
    without_empty_columns(table)
}

/// The figures of three sides or more.
fn of_several(comparisons: &[Comparison], is_everything: bool) -> Table {
    let mut columns = Vec::new();
    for (place, pair) in comparisons.iter().enumerate() {
        let [first, own] = pair.names.0;
        if place == 0 {
            columns.push(column(first, 12, 9, None));
        }
        columns.push(column(own, 12, 9, None));
        columns.push(column(&format!("{own} to {first}"), 9, 8, Some(0)));
    }
    let row = |metric: Metric| {
        let mut cells = Vec::new();
        for (place, pair) in comparisons.iter().enumerate() {
            let row = pair.row(metric);
            if place == 0 {
                cells.push(side_cell(pair, row, 0));
            }
            cells.push(side_cell(pair, row, 1));
            let unit = |change| ChangeUnit::of(pair.design, change, row.ci);
            let change = row.change.map_or("-".to_owned(), |change| unit(change).cell(change));
            cells.push(Cell::of(change));
        }
        Row { name: name_of(metric).to_owned(), cells, kind: RowKind::Figures }
    };
    let metrics = rows(comparisons, is_everything);
    Table {
        name: "response".to_owned(),
        columns,
        rows: metrics.into_iter().map(row).collect(),
        ..Table::default()
    }
}

/// Sentences below the tables.
pub(super) fn notes(comparisons: &[Comparison], tables: &[Table], is_everything: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    if cells.into_iter().any(|cell| cell.is_mostly_lag) {
        notes.push(Note::of(MARK_NOTE));
    }
    notes.extend(comparisons.first().and_then(|first| medians(comparisons, first)).map(Note::of));
    if is_everything {
        notes.extend(comparisons.first().and_then(rule).map(Note::of));
    }
    notes
}

/// What the figures of sides of several runs are.
fn medians(comparisons: &[Comparison], first: &Comparison) -> Option<String> {
    let [a, b] = match comparisons {
        [_] => [first.names.0[0].to_owned(), format!("{} and {}", first.names.0[0], first.names.0[1])],
        _ => [first.names.0[0].to_owned(), "Figures".to_owned()],
    };
    let to = match comparisons {
        [pair] => format!("{} to {a}", pair.names.0[1]),
        _ => format!("Changes from {a}"),
    };
    let runs = all(comparisons).iter().map(|side| side.runs.len()).max()?;
    if runs < 2 {
        return None;
    }
    let middle = match first.design {
        Design::Paired => format!("the middle of the {}", counted(first.runs() as u64, "pair")),
        Design::Apart => "the middle of the changes between all runs".to_owned(),
    };
    let is_same = all(comparisons).iter().all(|side| side.runs.len() == runs);
    let of = if is_same { format!("medians of {runs} runs") } else { "medians of their runs".to_owned() };
    let mut opposed: Vec<&Figure> =
        comparisons.iter().flat_map(|pair| pair.rows.iter()).filter(|row| is_opposed(row)).collect();
    opposed.sort_by_key(|row| !row.is_judged);
    let decides = if first.design == Design::Paired { "the pairs decide" } else { "the latter decides" };
    let opposed = match opposed.first() {
        Some(row) => {
            format!(". Where they differ in direction, as for {}, {decides}", name_of(row.metric))
        }
        None => String::new(),
    };
    Some(format!("{b}: {of}. {to}: {middle}{opposed}"))
}

/// Whether the medians and the estimate of the change, as they are printed, have opposite signs.
fn is_opposed(row: &Figure) -> bool {
    let ([Some(first), Some(second)], Some(change)) = (row.values, row.change) else { return false };
    let of_medians = second / first - 1.0;
    let is_printed = |change: f64| change.abs() >= 0.005;
    is_printed(of_medians) && is_printed(change) && (of_medians > 0.0) != (change > 0.0)
}

/// By which rule figures are called different.
fn rule(pair: &Comparison) -> Option<String> {
    let judged: Vec<&str> =
        pair.rows.iter().filter(|row| row.is_judged).map(|row| name_of(row.metric)).collect();
    if pair.runs() < RUNS_TO_CLAIM {
        return None;
    }
    let of = 100.0 * ALPHA;
    if let Some(tests) = pair.tests_in_all {
        return Some(format!(
            "Judged: {}. Of 100 suites with equal sides at most {of} call any figure different (each p is corrected by Holm for {tests} figures)",
            judged.join(", ")
        ));
    }
    Some(match judged.as_slice() {
        [one] => format!("Judged: {one}. Of 100 experiments with equal sides at most {of} call it different"),
        several => format!(
            "Judged: {}. Of 100 experiments with equal sides at most {of} call any of them different (each p is corrected for their number by Holm)",
            several.join(", ")
        ),
    })
}
