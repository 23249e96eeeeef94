//! The table of the parts of a measured phase, such as the stages of a rate.

use pummel_measure::recorder::Span;
use pummel_measure::words::grouped;

use super::page::Page;
use super::units::micros_text;
use crate::document::{Document, PhaseResult};
use crate::numbers::number;

/// Place of the column that only a run has whose connections change.
const CONNECTIONS: usize = 3;

/// Adds a row for each part, with its beginning and the response times of its requests; nothing where the phase has no parts.
pub(super) fn parts(page: &mut Page, document: &Document) {
    if document.phases.is_empty() {
        return;
    }
    let has_steps = document.phases.iter().any(|part| part.connections.is_some());
    let names = [
        "part",
        "at s",
        "seconds",
        "connections",
        "due",
        "per second",
        "errors",
        "unfinished",
        "unsent",
        "p50",
        "p99",
        "max",
    ];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    rows.extend(document.phases.iter().map(row));
    if !has_steps {
        rows.iter_mut().for_each(|row| drop(row.remove(CONNECTIONS)));
    }
    page.line("");
    page.table(&rows, 1);
    page.line("A request belongs to the part in which it was due. Times are response times.");
}

fn row(part: &PhaseResult) -> Vec<String> {
    let totals = &part.totals;
    let times = totals.times.of_span(Span::Response);
    let time = |name: &str| times.at(name).text("-", micros_text);
    vec![
        part.name.clone(),
        format!("{:.1}", part.at_s),
        format!("{:.1}", part.seconds),
        part.connections.map_or_else(String::new, grouped),
        grouped(totals.requests),
        number(totals.rate),
        grouped(totals.errors),
        grouped(totals.unfinished),
        grouped(totals.unsent),
        time("p50"),
        time("p99"),
        time("max"),
    ]
}
