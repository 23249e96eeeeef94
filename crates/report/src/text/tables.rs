//! The tables of the report: counts, and times with what they are made of and how sure they are.

use pummel_measure::recorder::Span;
use pummel_measure::summary::QUANTILES;
use pummel_measure::words::grouped;

use super::page::Page;
use super::units::rough_text;
use super::{changes, steadiness};
use crate::document::{Document, Figure, FiveTimes, OpResult, OpsResult, RequestTotals, TimeFigures, reads};
use crate::numbers::number;

/// With more verbs than this only their response times are shown, and what these are made of for all together.
const VERBS_IN_FULL: usize = 3;
/// From this median on, in microseconds, times are shown in milliseconds.
const MILLISECONDS_FROM_US: f64 = 10_000.0;
/// Enough independent slow spells beyond a quantile for it to be known without a word of warning.
const SPELLS_ENOUGH: f64 = 16.0;

pub(super) fn tables(page: &mut Page, document: &Document, ops: &OpsResult, totals: &RequestTotals) {
    page.line("");
    page.table(&count_rows(ops, totals, document.seconds), 1);
    page.line("");
    page.table(&time_rows(ops, totals), 2);
    sureness(page, document, totals);
    if !document.is_trusted() {
        page.line("Part of these times was added by pummel itself: see Trust below.");
    } else if let Some(trust) = document.trust.as_ref().filter(|trust| !trust.mostly_lag.is_empty()) {
        let names = trust.mostly_lag.join(", ");
        page.line(&format!(
            "Half or more of these response times was added by pummel itself: {names}. See Trust below."
        ));
    }
}

fn count_rows(ops: &OpsResult, totals: &RequestTotals, measured_s: f64) -> Vec<Vec<String>> {
    let names =
        ["", "due", "completed", "per second", "hits", "misses", "hit %", "errors", "unfinished", "unsent"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    for (name, op) in ops.iter() {
        rows.push(count_row(name, op, reads(name), measured_s));
    }
    if ops.iter().len() != 1 {
        let sum = |of: fn(&OpResult) -> u64| ops.iter().map(|(_, op)| of(op)).sum();
        let all = OpResult {
            requests: totals.requests,
            completed: totals.completed,
            hits: sum(|op| op.hits),
            misses: sum(|op| op.misses),
            errors: [("all", totals.errors)].into_iter().collect(),
            unfinished: totals.unfinished,
            unsent: totals.unsent,
            ..OpResult::default()
        };
        rows.push(count_row("all", &all, ops.iter().any(|(name, _)| reads(name)), measured_s));
    }
    rows
}

fn count_row(name: &str, op: &OpResult, reads: bool, measured_s: f64) -> Vec<String> {
    let rate = if measured_s > 0.0 { op.completed as f64 / measured_s } else { 0.0 };
    let looked_up = op.hits + op.misses;
    let of_reads = |text: String| if reads { text } else { "-".to_owned() };
    let share = if looked_up > 0 {
        format!("{:.1}", 100.0 * op.hits as f64 / looked_up as f64)
    } else {
        "-".to_owned()
    };
    vec![
        name.to_owned(),
        grouped(op.requests),
        grouped(op.completed),
        number(rate),
        of_reads(grouped(op.hits)),
        of_reads(grouped(op.misses)),
        share,
        grouped(op.failed()),
        grouped(op.unfinished),
        grouped(op.unsent),
    ]
}

/// Response first, then what it is made of (wait + lag + service), then how long replies lay unread.
const ROWS: [Span; Span::COUNT] = [Span::Response, Span::Service, Span::Wait, Span::Lag, Span::Reaction];

fn time_rows(ops: &OpsResult, totals: &RequestTotals) -> Vec<Vec<String>> {
    let (unit, unit_us) = match totals.times.of_span(Span::Response).at("p50") {
        Figure::Known(median) | Figure::Above(median) if median >= MILLISECONDS_FROM_US => ("ms", 1e3),
        _ => ("us", 1.0),
    };
    let names = ["min", "mean", "stddev"].into_iter().chain(QUANTILES.map(|(name, _)| name)).chain(["max"]);
    let heading = [format!("in {unit}"), String::new()].into_iter().chain(names.map(str::to_owned));
    let mut rows = vec![heading.collect()];
    let count = ops.iter().len();
    let in_full = count <= VERBS_IN_FULL;
    for (name, op) in ops.iter() {
        let spans: &[Span] = if in_full { &ROWS } else { &ROWS[..1] };
        rows.extend(rows_of(&op.times, unit_us, name, spans));
    }
    if count != 1 {
        let spans: &[Span] = if in_full { &ROWS[..1] } else { &ROWS };
        rows.extend(rows_of(&totals.times, unit_us, "all", spans));
    }
    rows
}

/// A row for each span, and below it the ends of its intervals where it has some.
fn rows_of(times: &FiveTimes, unit_us: f64, name: &str, spans: &[Span]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        let figures = times.of_span(*span);
        let cells = figure_cells(figures, unit_us);
        let name = if at == 0 { name } else { "" };
        rows.push([name, span.name()].map(str::to_owned).into_iter().chain(cells).collect());
        if figures.ci.is_some() {
            for end in [End::From, End::To] {
                let cells = end_cells(figures, unit_us, end);
                rows.push(["", end.name()].map(str::to_owned).into_iter().chain(cells).collect());
            }
        }
    }
    rows
}

/// One end of each interval, in the columns of the figures.
fn end_cells(figures: &TimeFigures, unit_us: f64, end: End) -> Vec<String> {
    let cell = |name: &str| {
        let Some(ends) = figures.ci.as_ref().and_then(|intervals| intervals.get(name)) else {
            return String::new();
        };
        match ends[end as usize] {
            Some(us) => number(us / unit_us),
            None if end == End::To && is_unanswered(figures, name) => ">".to_owned(),
            None => "?".to_owned(),
        }
    };
    let quantiles = QUANTILES.map(|(name, _)| cell(name));
    [String::new(), cell("mean"), String::new()].into_iter().chain(quantiles).collect()
}

/// Whether the interval of a quantile ends among requests without an answer.
fn is_unanswered(figures: &TimeFigures, name: &str) -> bool {
    figures.ci_unanswered.iter().any(|own| own == name)
}

/// An end of an interval.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    From,
    To,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::From => "  from",
            End::To => "  to",
        }
    }
}

/// Says what the ends of intervals mean, and which tails are not known.
fn sureness(page: &mut Page, document: &Document, totals: &RequestTotals) {
    if let Some(words) = steadiness::words(document) {
        return page.line(&words);
    }
    if let Some(words) = changes::note(&document.plan, document.steered.as_ref().map_or(0, Vec::len)) {
        return page.line(&words);
    }
    if totals.completed == 0 {
        return;
    }
    let response = totals.times.of_span(Span::Response);
    let Some(intervals) = &response.ci else {
        if let Some(why) = &document.certainty_missing {
            page.line(&format!("No intervals: {why}."));
        }
        return;
    };
    let mut words = "from, to: 95 % intervals within this run.".to_owned();
    if let Some([low, high]) = totals.rate_ci {
        words.push_str(&format!(" Rate {} to {}/s.", number(low), number(high)));
    }
    page.line(&words);
    let spells = |name: &str| response.spells.as_ref().and_then(|spells| spells.get(name)).copied();
    let mut named = QUANTILES.iter().filter_map(|(name, _)| Some((*name, *intervals.get(name)?)));
    let open = named.clone().find(|(name, ends)| ends[1].is_none() && !is_unanswered(response, name));
    if let Some((name, _)) = open {
        let enough_s = spells(name).filter(|spells| *spells > 0.0).map(|spells| {
            let enough_s = document.seconds * (SPELLS_ENOUGH / spells);
            format!("; about {} would be long enough", rough_text(enough_s))
        });
        let enough = enough_s.unwrap_or_default();
        page.line(&format!(
            "The run is too short to bound the tail of all responses from {name} on (?){enough}."
        ));
    } else if let Some((name, _)) =
        named.find(|(name, _)| spells(name).is_some_and(|own| own < SPELLS_ENOUGH))
    {
        page.line(&format!("From {name} on the figures rest on few slow spells."));
    }
}

fn figure_cells(figures: &TimeFigures, unit_us: f64) -> Vec<String> {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |us| number(us / unit_us));
    let mut cells = vec![cell(figures.min), cell(figures.mean), cell(figures.stddev)];
    for (_, quantile) in figures.quantiles() {
        cells.push(match quantile {
            Figure::Known(us) => number(us / unit_us),
            Figure::Above(us) => format!("> {}", number(us / unit_us)),
            Figure::Absent => "-".to_owned(),
        });
    }
    cells
}
