//! The tables of times: the response of each operation, or the five times of all of them.

use pummel_measure::certainty::SPELLS_ENOUGH;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Span;

use super::counts::faults;
use crate::document::{Document, Figure, FiveTimes, OpResult, TimeFigures};
use crate::text::changes_note;
use crate::view::cells::{interval, option_time, rate, time};
use crate::view::{Cell, Column, Note, Row, RowKind, Table};

/// How much a view has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The response of each operation, and the first notices.
    #[default]
    Screen,
    /// The five times of all operations together and of each, and the first notices.
    Times,
    /// The five times, and all notices.
    Everything,
}

/// A column of quantiles: the figure, and when it gives way.
type Figures = (&'static str, Option<u8>);

/// The columns of the response.
const RESPONSE: [Figures; 5] =
    [("p50", None), ("p90", Some(0)), ("p99", None), ("p99.9", Some(2)), ("max", None)];

/// The columns of the five times; the first to give way stand only where there is much room.
const FULL_TIMES: [Figures; 10] = [
    ("min", Some(1)),
    ("mean", Some(5)),
    ("stddev", Some(2)),
    ("p50", None),
    ("p90", Some(0)),
    ("p95", Some(4)),
    ("p99", None),
    ("p99.9", Some(6)),
    ("p99.99", Some(3)),
    ("max", None),
];

/// The spans in the order of the five times.
const SPANS: [Span; Span::COUNT] = [Span::Response, Span::Service, Span::Wait, Span::Lag, Span::Reaction];

/// The longest time that is advised, in seconds: a day.
const LONGEST_ADVISED_S: f64 = 86_400.0;

/// The name of all operations together.
const ALL: &str = "all";

/// The most parts of a measured phase that are shown.
const PARTS_MAX: usize = 12;

/// The name of the rows of intervals.
const SURENESS: &str = "95 % sure";

/// The tables of a run.
pub(super) fn tables(document: &Document, wanted: Wanted) -> Vec<Table> {
    match wanted {
        Wanted::Screen => [Some(responses(document)), parts(document)].into_iter().flatten().collect(),
        Wanted::Times | Wanted::Everything => {
            let ops = document.ops.iter();
            let all = (ops.len() != 1).then(|| five(document, ALL, &document.totals.times));
            let each = ops.map(|(name, op)| five(document, name, &op.times));
            // Everything has a table of the parts with more columns.
            let parts = parts(document).filter(|_| wanted != Wanted::Everything);
            all.into_iter().chain(each).chain(parts).collect()
        }
    }
}

/// The columns of the response, behind the rate.
fn response_columns() -> Vec<Column> {
    let quantiles = RESPONSE.map(|(name, gives_way)| column(name, 11, 11, gives_way));
    [column("req/s", 11, 7, Some(1))].into_iter().chain(quantiles).collect()
}

/// A row of the response; `lag` names the figures that are mostly lag.
fn response_row(name: &str, per_second: f64, times: &FiveTimes, lag: &[String]) -> Row {
    let figures = times.of_span(Span::Response);
    let cells = RESPONSE.map(|(quantile, _)| figure(figures, quantile, lag));
    let cells = [Cell::of(rate(per_second))].into_iter().chain(cells).collect();
    Row { name: name.to_owned(), cells, kind: RowKind::Figures }
}

/// A row for each operation, or for each of several groups of clients, and one for all, with the intervals of the last.
fn responses(document: &Document) -> Table {
    let ops = document
        .ops
        .iter()
        .map(|(name, op)| response_row(name, rate_of(document, op), &op.times, lag_of(document, name)));
    let groups = document.groups.iter();
    let groups = groups.map(|own| response_row(&own.name, own.totals.rate, &own.totals.times, &[]));
    let mut rows: Vec<Row> = if document.groups.is_empty() { ops.collect() } else { groups.collect() };
    if rows.len() != 1 {
        let totals = &document.totals;
        rows.push(response_row(ALL, totals.rate, &totals.times, lag_of(document, ALL)));
    }
    if has_intervals(document) {
        rows.extend(sureness(document.totals.times.of_span(Span::Response), &RESPONSE, 1));
    }
    Table { name: "response".to_owned(), columns: response_columns(), rows, ..Table::default() }
}

/// A row for each part of the measured phase, such as the stages of a rate; `None` where it has none.
fn parts(document: &Document) -> Option<Table> {
    let parts = document.phases.iter().take(PARTS_MAX);
    let rows: Vec<Row> =
        parts.map(|part| response_row(&part.name, part.totals.rate, &part.totals.times, &[])).collect();
    (!rows.is_empty()).then(|| Table {
        name: "part".to_owned(),
        columns: response_columns(),
        rows,
        ..Table::default()
    })
}

/// The five times of some requests, each with its intervals.
fn five(document: &Document, name: &str, times: &FiveTimes) -> Table {
    let columns = FULL_TIMES.map(|(name, gives_way)| column(name, 11, 11, gives_way));
    let mut rows = Vec::new();
    for span in SPANS {
        let figures = times.of_span(span);
        let lag = if span == Span::Response { lag_of(document, name) } else { &[] };
        let cells = FULL_TIMES.map(|(quantile, _)| figure(figures, quantile, lag));
        rows.push(Row { name: span.name().to_owned(), cells: cells.to_vec(), kind: RowKind::Figures });
        rows.extend(sureness(figures, &FULL_TIMES, 0).filter(|_| has_intervals(document)));
    }
    Table { name: name.to_owned(), columns: columns.to_vec(), rows, ..Table::default() }
}

/// Names of the figures of the response of an operation, or of all, of which half or more is lag.
fn lag_of<'a>(document: &'a Document, name: &str) -> &'a [String] {
    let Some(trust) = &document.trust else { return &[] };
    if name == ALL || document.ops.iter().len() == 1 {
        return &trust.mostly_lag;
    }
    trust.mostly_lag_of.get(name).map_or(&[], Vec::as_slice)
}

fn column(name: &str, width: usize, narrow_width: usize, gives_way: Option<u8>) -> Column {
    Column { name: name.to_owned(), width, narrow_width, gives_way, is_words: false }
}

/// Requests per second of an operation.
fn rate_of(document: &Document, op: &OpResult) -> f64 {
    if document.seconds > 0.0 { op.completed as f64 / document.seconds } else { 0.0 }
}

/// A figure of some times; `lag` names those that are mostly lag.
fn figure(figures: &TimeFigures, name: &str, lag: &[String]) -> Cell {
    let text = match name {
        "min" | "mean" | "stddev" => figures.plain(name).map_or_else(|| "-".to_owned(), time),
        quantile => match figures.at(quantile) {
            Figure::Known(us) => time(us),
            Figure::Above(us) if us > 0.0 => format!("> {}", time(us)),
            Figure::Above(_) | Figure::Absent => "-".to_owned(),
        },
    };
    Cell { text, is_mostly_lag: lag.iter().any(|own| own == name) }
}

/// Whether figures may have intervals: of a run that changed along the way they say nothing.
pub(crate) fn has_intervals(document: &Document) -> bool {
    document.stops.is_empty()
        && document.steady != Some(false)
        && !matches!(document.outcome, RunOutcome::Failed | RunOutcome::Overloaded)
}

/// The row of intervals below some figures; `None` where there are none.
fn sureness(figures: &TimeFigures, columns: &[Figures], skip: usize) -> Option<Row> {
    let known = figures.ci.as_ref()?;
    let cell = |name: &str| {
        let value = match name {
            "mean" => figures.mean,
            quantile => figures.at(quantile).known(),
        };
        value.zip(known.get(name)).map_or_else(String::new, |(us, ends)| interval(us, *ends))
    };
    let cells =
        vec![Cell::default(); skip].into_iter().chain(columns.iter().map(|(name, _)| Cell::of(cell(name))));
    let cells: Vec<Cell> = cells.collect();
    let has_any = cells.iter().any(|cell| !cell.text.is_empty());
    has_any.then(|| Row { name: SURENESS.to_owned(), cells, kind: RowKind::Sureness })
}

/// Whether a figure falls among requests without a reply.
fn is_above(document: &Document) -> bool {
    let figures = document.totals.times.of_span(Span::Response);
    RESPONSE.iter().any(|(name, _)| matches!(figures.at(name), Figure::Above(_)))
}

/// The sentences below the tables.
pub(super) fn notes(document: &Document, wanted: Wanted, tables: &[Table]) -> Vec<Note> {
    let is_full = wanted != Wanted::Screen;
    let shown: &[Figures] = if is_full { &FULL_TIMES } else { &RESPONSE };
    let mut notes = Vec::new();
    let marked = marked_columns(tables);
    if !marked.is_empty() {
        let text = "* mostly pummel's own delay".to_owned();
        notes.push(Note { text, columns: marked, is_alternative: false });
    }
    match no_intervals(document) {
        Some(why) => notes.push(Note::of(why)),
        None if has_intervals(document) => notes.extend(unbounded(document, shown)),
        None => {}
    }
    if is_above(document) && document.outcome != RunOutcome::Overloaded {
        notes.push(Note::of("> x: at least x, because it falls among the requests without a reply"));
    }
    if faults(document, |fault| !fault.unanswered()) > 0 {
        notes.push(Note::of("The times are those of requests without error"));
    }
    let parts_left_out = document.phases.len().saturating_sub(PARTS_MAX);
    if parts_left_out > 0 && wanted != Wanted::Everything {
        notes.push(Note::of(format!("{parts_left_out} more parts: -v")));
    }
    if is_full {
        notes
            .push(Note::of("response = wait + lag + service, request by request (not quantile by quantile)"));
        notes.push(Note::of("reaction is in none of them"));
    }
    notes
}

/// Reason why figures have no intervals; `None` where they have some, and where a line of its own says it.
fn no_intervals(document: &Document) -> Option<String> {
    if document.outcome == RunOutcome::Overloaded {
        let service = document.totals.times.of_span(Span::Service).p50;
        let service = service.map(|us| format!(". Once sent, a request took {} (p50)", time(us)));
        return Some(format!("These times grow with the run{}", service.unwrap_or_default()));
    }
    if let Some(words) = too_few_stops(document) {
        return Some(format!("{words}: no intervals"));
    }
    changes_note(&document.plan, document.steered.as_ref().map_or(0, Vec::len)).or_else(|| {
        let missing = document.certainty_missing.as_ref().filter(|_| document.steady != Some(false))?;
        Some(format!("No intervals: {missing}"))
    })
}

/// Reason why a run in which the server stopped has no intervals; `None` for any other run.
pub(crate) fn too_few_stops(document: &Document) -> Option<&'static str> {
    match document.stops.len() {
        0 => None,
        1 => Some("One stop does not tell how often it happens"),
        _ => Some("A few stops do not tell how often they happen"),
    }
}

/// The headings of the columns in which a cell is mostly pummel's own delay.
fn marked_columns(tables: &[Table]) -> Vec<String> {
    let cells = tables
        .iter()
        .flat_map(|table| table.rows.iter().flat_map(|row| row.cells.iter().zip(&table.columns)));
    cells.filter(|(cell, _)| cell.is_mostly_lag).map(|(_, column)| column.name.clone()).collect()
}

/// The quantiles without an upper end, each with the time that would give one; the first that is shown is said.
fn unbounded(document: &Document, shown: &[Figures]) -> Vec<Note> {
    let response = document.totals.times.of_span(Span::Response);
    let Some(ends) = &response.ci else { return Vec::new() };
    let is_open = |name: &str| {
        let is_unanswered = response.ci_unanswered.iter().any(|own| own == name);
        ends.get(name).is_some_and(|ends| ends[1].is_none()) && !is_unanswered
    };
    let open = shown.iter().map(|(name, _)| *name).filter(|name| is_open(name));
    let note = |name: &str| {
        let spells = response.spells.as_ref().and_then(|spells| spells.get(name)).copied();
        let enough_s =
            spells.filter(|spells| *spells > 0.0).map(|spells| document.seconds * SPELLS_ENOUGH / spells);
        // What follows from very little is no advice.
        let enough_s = enough_s.filter(|enough_s| *enough_s <= LONGEST_ADVISED_S);
        let enough = enough_s.map_or_else(String::new, |s| format!(": -t {} would give one", option_time(s)));
        let text = format!("{name} has no upper bound yet{enough}");
        Note { text, columns: vec![name.to_owned()], is_alternative: true }
    };
    open.map(note).collect()
}

/// An operation in one line, such as `get 4,530/s p50 12.7 us p99 176 us`.
pub(super) fn brief(document: &Document, name: &str, op: &OpResult) -> String {
    let figures = op.times.of_span(Span::Response);
    let at = |quantile: &str| match figures.at(quantile) {
        Figure::Known(us) => format!(" {quantile} {}", time(us)),
        Figure::Above(us) => format!(" {quantile} > {}", time(us)),
        Figure::Absent => String::new(),
    };
    format!("{name} {}/s{}{}", rate(rate_of(document, op)), at("p50"), at("p99"))
}
