//! The tables of the report: counts, and times with what they are made of and how sure they are.

use pummel_logic::measure::certainty::{Certainty, TimesCertainty};
use pummel_logic::measure::recorder::{Counts, Span};
use pummel_logic::measure::summary::{Figures, OpSummary, QUANTILES, Quantile, Totals};
use pummel_logic::measure::uncertainty::Upper;
use pummel_logic::measure::words::grouped;
use pummel_logic::plan::Plan;
use pummel_logic::time::{MILLISECOND, Nanos};

use super::page::Page;
use super::steadiness;
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
    sureness(page, report, totals);
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
        let times = Times { figures: &op.figures, certainty: op.certainty.as_ref(), unit_ns };
        rows.extend(times.rows(plan.name_of(op.verb), spans));
    }
    if ops.len() != 1 {
        let spans: &[Span] = if in_full { &ROWS[..1] } else { &ROWS };
        let times = Times { figures: &totals.figures, certainty: totals.certainty.as_ref(), unit_ns };
        rows.extend(times.rows("all", spans));
    }
    rows
}

/// The times of some requests, in units of `unit_ns`.
struct Times<'a> {
    figures: &'a [Figures; Span::COUNT],
    certainty: Option<&'a Certainty>,
    unit_ns: f64,
}

impl Times<'_> {
    /// A row for each span, and below it the ends of its intervals where it has some.
    fn rows(&self, name: &str, spans: &[Span]) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (at, span) in spans.iter().enumerate() {
            let cells = figure_cells(&self.figures[*span as usize], self.unit_ns);
            let name = if at == 0 { name } else { "" };
            rows.push([name, span.name()].map(str::to_owned).into_iter().chain(cells).collect());
            let Some(certainty) = self.certainty.and_then(|certainty| certainty.of_span(*span)) else {
                continue;
            };
            for end in [End::From, End::To] {
                let cells = self.end_cells(certainty, end);
                rows.push(["", end.name()].map(str::to_owned).into_iter().chain(cells).collect());
            }
        }
        rows
    }

    /// One end of each interval, in the columns of the figures.
    fn end_cells(&self, certainty: &TimesCertainty, end: End) -> Vec<String> {
        let text = |ns: f64| number(ns / self.unit_ns);
        let mean = certainty.mean.map(|range| match end {
            End::From => text(range.low),
            End::To => text(range.high),
        });
        let mut cells = vec![String::new(), mean.unwrap_or_default(), String::new()];
        for bounds in &certainty.quantiles {
            cells.push(match (bounds, end) {
                (None, _) => String::new(),
                (Some(bounds), End::From) => {
                    bounds.low.map_or_else(|| "?".to_owned(), |low| text(low as f64))
                }
                (Some(bounds), End::To) => match bounds.high {
                    Upper::Known(high) => text(high as f64),
                    Upper::Unanswered => ">".to_owned(),
                    Upper::Open => "?".to_owned(),
                },
            });
        }
        cells
    }
}

/// An end of an interval.
#[derive(Clone, Copy)]
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
fn sureness(page: &mut Page, report: &Report<'_>, totals: &Totals) {
    if let Some(words) = steadiness::words(report.summary) {
        return page.line(&words);
    }
    let Some(certainty) = &totals.certainty else {
        if totals.counts.completed > 0 && report.measurement.windows.is_some() {
            page.line("The run was too short to say how sure these figures are.");
        }
        return;
    };
    let mut words = "from, to: 95 % intervals within this run.".to_owned();
    if let Some(rate) = certainty.rate {
        words.push_str(&format!(" Rate {} to {}/s.", number(rate.low), number(rate.high)));
    }
    page.line(&words);
    let Some(response) = certainty.of_span(Span::Response) else { return };
    if let Some((name, times)) = response.first_open() {
        let enough_s = report.summary.seconds * times;
        page.line(&format!(
            "From {name} on the tail is not known from above (?): about {enough_s:.0} s would show it."
        ));
    } else if let Some(name) = response.first_of_few() {
        page.line(&format!("From {name} on the figures rest on few slow spells."));
    }
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
