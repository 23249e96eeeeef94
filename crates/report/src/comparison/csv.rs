//! The runs of a comparison as CSV.

use super::result::Comparison;
use crate::csv::{Cell, Csv};
use crate::run_figures::{CSV_HEADER, csv_cells};

/// The runs of both sides as CSV, a line for each.
pub fn csv(comparison: &Comparison) -> Vec<u8> {
    let mut table = Csv::with_header(["side", "pair"].into_iter().chain(CSV_HEADER));
    for (name, side) in ["a", "b"].into_iter().zip(&comparison.sides) {
        for (pair, run) in side.runs.iter().enumerate() {
            table.row([name.into(), Cell::Count(pair as u64)].into_iter().chain(csv_cells(run)));
        }
    }
    table.finish()
}
