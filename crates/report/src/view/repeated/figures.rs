//! The table of several runs: the median of each figure, its interval, and how far the runs differ.

use pummel_measure::compare::RUNS_FOR_INTERVAL;
use pummel_measure::words::counted;

use crate::repetition::{RepeatedFigure, Repetition};
use crate::run_figures::{Metric, judged_by_default};
use crate::view::cells::{interval, rate, rate_interval, seconds, time};
use crate::view::run::counts::asked_rate_of;
use crate::view::several::{MARK_NOTE, column, each, is_mostly_lag, name_of, value, without_empty_columns};
use crate::view::{Cell, Column, Note, Row, RowKind, Table};

/// The columns of the screen, with the place at which they give way.
const SHOWN: [(Metric, Option<u8>); 5] = [
    (Metric::Rate, Some(1)),
    (Metric::P50, None),
    (Metric::P90, Some(0)),
    (Metric::P99, None),
    (Metric::P999, None),
];

/// The further columns where everything is wanted.
const FURTHER: [(Metric, Option<u8>); 2] = [(Metric::ServerCpu, None), (Metric::ClientCpu, None)];

/// Ratios of the advised to the present length of a run at which the advice is not worth a sentence.
const ADVICE_SAME: std::ops::RangeInclusive<f64> = 0.67..=1.5;

/// The figures of all runs, and each run where everything is wanted; none where there is no run.
pub(super) fn tables(repetition: &Repetition, is_everything: bool) -> Vec<Table> {
    if repetition.runs.is_empty() || repetition.figures.is_empty() {
        return Vec::new();
    }
    let further = FURTHER.iter().filter(|_| is_everything);
    let metrics: Vec<(Metric, Option<u8>)> = SHOWN.iter().chain(further).copied().collect();
    let columns: Vec<Column> = metrics
        .iter()
        .map(|(metric, gives_way)| match metric {
            Metric::Rate => column("req/s", 11, 7, gives_way.filter(|_| !is_everything)),
            other => column(name_of(*other), 11, 11, gives_way.filter(|_| !is_everything)),
        })
        .collect();
    let of = |metric: Metric| repetition.figures.iter().find(|figure| figure.metric == metric);
    let row = |name: &str, kind: RowKind, cell: &dyn Fn(&RepeatedFigure) -> String| {
        let cells = metrics.iter().map(|(metric, _)| Cell {
            text: of(*metric).map_or_else(String::new, cell),
            is_mostly_lag: kind == RowKind::Figures && is_mostly_lag(&repetition.runs, *metric),
        });
        Row { name: name.to_owned(), cells: cells.collect(), kind }
    };
    let median = |figure: &RepeatedFigure| match figure.metric {
        Metric::Rate => rate(figure.median),
        _ => time(figure.median),
    };
    // The interval of a rate stands with the result, where the rate was not chosen.
    let sure = |figure: &RepeatedFigure| match (figure.metric, figure.interval) {
        (Metric::Rate, _) | (_, None) => String::new(),
        (_, Some((low, high))) => interval(figure.median, [Some(low), Some(high)]),
    };
    let is_asked = asked_rate_of(&repetition.plan).is_some();
    let range = |figure: &RepeatedFigure| {
        let (low, high) = figure.range;
        match figure.metric {
            Metric::Rate if is_asked => String::new(),
            Metric::Rate => rate_interval([low, high]),
            _ => interval(figure.median, [Some(low), Some(high)]),
        }
    };
    let differ = |figure: &RepeatedFigure| {
        figure.spread.map_or_else(String::new, |spread| match 100.0 * spread.between {
            percent if (0.05..0.95).contains(&percent) => format!("{percent:.1} %"),
            percent => format!("{percent:.0} %"),
        })
    };
    let mut rows = vec![row("median", RowKind::Figures, &median)];
    let has_intervals = repetition.runs.len() >= RUNS_FOR_INTERVAL;
    if has_intervals {
        rows.push(row("95 % sure", RowKind::Sureness, &sure));
    }
    if repetition.runs.len() > 1 && (!has_intervals || is_everything) {
        let range = row("range", RowKind::About, &range);
        // The interval of the median of few runs reaches from the least to the greatest.
        rows.extend((!rows.iter().any(|own| own.cells == range.cells)).then_some(range));
    }
    if repetition.runs.len() > 1 {
        rows.push(row("differ by", RowKind::About, &differ));
    }
    let table =
        without_empty_columns(Table { name: "response".to_owned(), columns, rows, ..Table::default() });
    let every = (is_everything && repetition.runs.len() > 1).then(|| each("runs", "run", &repetition.runs));
    std::iter::once(table).chain(every).collect()
}

/// Sentences below the tables.
pub(super) fn notes(repetition: &Repetition, tables: &[Table], is_everything: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    if tables.is_empty() {
        return notes;
    }
    let mut cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    if cells.any(|cell| cell.is_mostly_lag) {
        notes.push(Note::of(MARK_NOTE));
    }
    let runs = repetition.runs.len();
    if runs < RUNS_FOR_INTERVAL {
        let many = counted(runs as u64, "run");
        let verb = if runs == 1 { "has" } else { "have" };
        notes.push(Note::of(format!("{many} {verb} no interval: it takes {RUNS_FOR_INTERVAL}")));
    }
    if is_everything {
        notes.push(Note::of("differ by: the standard deviation between the runs"));
        notes.extend(advice(repetition).map(Note::of));
    }
    notes
}

/// How to divide the same time over runs; `None` where that would change little, and where it is not known.
fn advice(repetition: &Repetition) -> Option<String> {
    let measured_s =
        repetition.runs.iter().map(|run| run.seconds).sum::<f64>() / repetition.runs.len() as f64;
    let run_s = repetition.advised_run_s.filter(|run_s| !ADVICE_SAME.contains(&(run_s / measured_s)))?;
    let name = name_of(judged_by_default(&repetition.plan));
    let how = if run_s < measured_s { "more and shorter" } else { "fewer and longer" };
    Some(format!(
        "In the same time in all, {name} would be known best from {how} runs that measure about {} each ({} now)",
        seconds(run_s),
        seconds(measured_s)
    ))
}

/// The usual rate and quantiles, behind the number of runs.
pub(super) fn brief(repetition: &Repetition) -> String {
    let of = |metric: Metric| repetition.figures.iter().find(|figure| figure.metric == metric);
    let mut text =
        of(Metric::Rate).map_or_else(String::new, |rate| format!(", {}", value(Metric::Rate, rate.median)));
    for metric in [Metric::P50, Metric::P99] {
        if let Some(figure) = of(metric) {
            text += &format!(" {} {}", metric.name(), value(metric, figure.median));
        }
    }
    text
}
