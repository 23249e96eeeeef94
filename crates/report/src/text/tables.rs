//! The tables of counts, by operation.

use pummel_measure::words::grouped;

use super::page::Page;
use crate::document::{Document, OpResult, OpsResult, RequestTotals, reads};
use crate::numbers::number;

pub(super) fn tables(page: &mut Page, document: &Document, ops: &OpsResult, totals: &RequestTotals) {
    page.line("");
    page.table(&count_rows(ops, totals, document.seconds), 1);
}

fn count_rows(ops: &OpsResult, totals: &RequestTotals, measured_s: f64) -> Vec<Vec<String>> {
    let names =
        ["", "due", "completed", "per second", "hits", "misses", "hit %", "errors", "unfinished", "unsent"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    for (name, op) in ops.iter() {
        rows.push(count_row(name, op, reads(name, op), measured_s));
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
        rows.push(count_row("all", &all, ops.iter().any(|(name, op)| reads(name, op)), measured_s));
    }
    rows
}

fn count_row(name: &str, op: &OpResult, reads: bool, measured_s: f64) -> Vec<String> {
    let rate = if measured_s > 0.0 { op.completed as f64 / measured_s } else { 0.0 };
    let of_reads = |text: String| if reads { text } else { "-".to_owned() };
    let share = op.hit_percent();
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
