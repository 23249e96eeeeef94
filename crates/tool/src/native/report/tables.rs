//! The tables of the report: counts, and times with what they are made of.

use pummel_logic::measure::recorder::{Counts, Span};
use pummel_logic::measure::summary::{Figures, OpSummary, QUANTILES, Quantile, Totals};
use pummel_logic::measure::words::grouped;
use pummel_logic::plan::Plan;
use pummel_logic::time::{MILLISECOND, Nanos};

use super::page::Page;
use crate::report::Report;
use crate::report::numbers::number;

/// With more verbs than this only their response times are shown, and what these are made of for all together.
const VERBS_IN_FULL: usize = 3;
/// From this median on times are shown in milliseconds.
const MILLISECONDS_FROM: Nanos = 10 * MILLISECOND;

pub(super) fn tables(page: &mut Page, report: &Report<'_>, ops: &[OpSummary], totals: &Totals) {
    page.line("");
    page.table(&count_rows(report.plan, ops, totals, report.summary.seconds), 1);
    page.line("");
    page.table(&time_rows(report.plan, ops, totals), 2);
    if !report.summary.trust.ok {
        page.line("These times are partly the generator's own: see Trust below.");
    }
}

fn count_rows(plan: &Plan, ops: &[OpSummary], totals: &Totals, measured_s: f64) -> Vec<Vec<String>> {
    let names =
        ["", "due", "completed", "per second", "hits", "misses", "hit %", "errors", "unfinished", "unsent"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    for op in ops {
        rows.push(count_row(plan.name_of(op.verb), &op.counts, op.verb.reads(), measured_s));
    }
    if ops.len() != 1 {
        rows.push(count_row("all", &totals.counts, ops.iter().any(|op| op.verb.reads()), measured_s));
    }
    rows
}

fn count_row(name: &str, counts: &Counts, reads: bool, measured_s: f64) -> Vec<String> {
    let rate = if measured_s > 0.0 { counts.completed as f64 / measured_s } else { 0.0 };
    let looked_up = counts.hits + counts.misses;
    let of_reads = |text: String| if reads { text } else { "-".to_owned() };
    let share = if looked_up > 0 {
        format!("{:.1}", 100.0 * counts.hits as f64 / looked_up as f64)
    } else {
        "-".to_owned()
    };
    vec![
        name.to_owned(),
        grouped(counts.requests()),
        grouped(counts.completed),
        number(rate),
        of_reads(grouped(counts.hits)),
        of_reads(grouped(counts.misses)),
        share,
        grouped(counts.failed()),
        grouped(counts.unfinished),
        grouped(counts.unsent),
    ]
}

/// Response first, then what it is made of (wait + lag + service), then how long replies lay unread.
const ROWS: [Span; Span::COUNT] = [Span::Response, Span::Service, Span::Wait, Span::Lag, Span::Reaction];

fn time_rows(plan: &Plan, ops: &[OpSummary], totals: &Totals) -> Vec<Vec<String>> {
    let response = &totals.figures[Span::Response as usize];
    let (unit, unit_ns) = match response.quantiles[0] {
        Quantile::Known(median) | Quantile::Above(median) if median >= MILLISECONDS_FROM => ("ms", 1e6),
        _ => ("us", 1e3),
    };
    let names = ["min", "mean", "stddev"].into_iter().chain(QUANTILES.map(|(name, _)| name)).chain(["max"]);
    let heading = [format!("in {unit}"), String::new()].into_iter().chain(names.map(str::to_owned));
    let mut rows = vec![heading.collect()];
    let in_full = ops.len() <= VERBS_IN_FULL;
    for op in ops {
        let spans: &[Span] = if in_full { &ROWS } else { &ROWS[..1] };
        rows.extend(span_rows(plan.name_of(op.verb), spans, &op.figures, unit_ns));
    }
    if ops.len() != 1 {
        let spans: &[Span] = if in_full { &ROWS[..1] } else { &ROWS };
        rows.extend(span_rows("all", spans, &totals.figures, unit_ns));
    }
    rows
}

fn span_rows(name: &str, spans: &[Span], figures: &[Figures; Span::COUNT], unit_ns: f64) -> Vec<Vec<String>> {
    let row = |(at, span): (usize, &Span)| {
        let name = if at == 0 { name } else { "" };
        let cells = figure_cells(&figures[*span as usize], unit_ns);
        [name.to_owned(), span.name().to_owned()].into_iter().chain(cells).collect()
    };
    spans.iter().enumerate().map(row).collect()
}

fn figure_cells(figures: &Figures, unit_ns: f64) -> Vec<String> {
    let exact = &figures.exact;
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ns| number(ns / unit_ns));
    let mut cells = vec![
        cell((exact.count > 0).then_some(exact.min as f64)),
        cell(exact.mean_ns()),
        cell(exact.stddev_ns()),
    ];
    for quantile in figures.quantiles.iter().chain([&figures.max]) {
        cells.push(match quantile {
            Quantile::Known(ns) => number(*ns as f64 / unit_ns),
            Quantile::Above(ns) => format!("> {}", number(*ns as f64 / unit_ns)),
            Quantile::Absent => "-".to_owned(),
        });
    }
    cells
}
