//! The intervals as comma-separated values, one row for each interval and op; `docs/RESULTS.md` documents the columns.

use std::fmt::Write as _;

use pummel_logic::measure::measurement::{Slice, SliceOp};
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{Figures, QUANTILES};
use pummel_logic::time::seconds;
use pummel_logic::wire::{Fault, Verb};

use super::Report;
use super::json::micros;

/// The table, header first, with lines that end in a line feed.
pub fn render(report: &Report<'_>) -> Vec<u8> {
    let mut table = header();
    for slice in &report.measurement.intervals {
        for (verb, op) in &slice.ops {
            row(&mut table, slice, *verb, op);
        }
    }
    table.into_bytes()
}

fn header() -> String {
    let mut header = String::from("at_s,seconds,op,requests,completed,rate,keys,hits,misses");
    for fault in Fault::ALL {
        push(&mut header, format_args!(",errors_{}", fault.name()));
    }
    header.push_str(",unfinished,unsent");
    for span in Span::ALL {
        for figure in
            ["min", "mean", "stddev"].into_iter().chain(QUANTILES.map(|(name, _)| name)).chain(["max"])
        {
            push(&mut header, format_args!(",{}_{figure}_us", span.name()));
        }
    }
    header.push('\n');
    header
}

fn row(table: &mut String, slice: &Slice, verb: Verb, op: &SliceOp) {
    let counts = &op.counts;
    let length_s = seconds(slice.length_ns());
    let rate = if length_s > 0.0 { counts.completed as f64 / length_s } else { 0.0 };
    push(table, format_args!("{:.3},{length_s:.3},{}", seconds(slice.start_ns), verb.name()));
    push(table, format_args!(",{},{},{rate:.3}", counts.requests(), counts.completed));
    push(table, format_args!(",{},{},{}", counts.keys, counts.hits, counts.misses));
    counts.errors.iter().for_each(|errors| push(table, format_args!(",{errors}")));
    push(table, format_args!(",{},{}", counts.unfinished, counts.unsent));
    op.figures.iter().for_each(|figures| times(table, figures));
    table.push('\n');
}

fn times(table: &mut String, figures: &Figures) {
    let exact = &figures.exact;
    let first = [(exact.count > 0).then_some(exact.min as f64), exact.mean_ns(), exact.stddev_ns()];
    let quantiles =
        figures.quantiles.iter().chain([&figures.max]).map(|quantile| quantile.known().map(|ns| ns as f64));
    for value in first.into_iter().chain(quantiles) {
        match value {
            Some(ns) => push(table, format_args!(",{}", micros(ns))),
            None => table.push(','),
        }
    }
}

fn push(table: &mut String, cells: std::fmt::Arguments<'_>) {
    table.write_fmt(cells).expect("a string takes everything");
}
