//! A comparison as Markdown, for the page of a job or a comment: a sentence, a table, notes, and the differences of the
//! sides.

use pummel_measure::words::counted;

use super::difference_words::DifferenceWords;
use super::result::Comparison;
use super::text::{difference_words, headline, label, notes, row_cells};
use crate::markdown::{foreign, plain};

/// Differences of plans, servers and machines that are shown at most.
const DIFFERENCES_MAX: usize = 20;

/// The comparisons of several sides with the first, one after the other.
pub fn markdown_of_all(comparisons: &[Comparison]) -> String {
    comparisons.iter().map(of_one).collect::<Vec<String>>().join("\n")
}

/// The comparison of two sides.
pub fn markdown(comparison: &Comparison) -> Vec<u8> {
    of_one(comparison).into_bytes()
}

fn of_one(comparison: &Comparison) -> String {
    let [first, second] = comparison.names.0;
    let mut text = format!("### {}\n\n", plain(&headline(comparison)));
    for (name, side) in comparison.names.0.into_iter().zip(&comparison.sides) {
        text +=
            &format!("- {name}: {} ({})\n", foreign(&label(side)), counted(side.runs.len() as u64, "run"));
    }
    text +=
        &format!("\n| | {first} | {second} | change | 95 % interval | |\n|---|---:|---:|---:|---:|---|\n");
    for row in comparison.rows.iter().filter_map(|row| row_cells(row, comparison)) {
        let [a, b] = &row.values;
        text += &format!("| {} | {a} | {b} | {} | {} | {} |\n", row.name, row.change, row.interval, row.word);
    }
    for note in notes(comparison) {
        text += &format!("\n{}\n", plain(&note));
    }
    let differences = difference_words(comparison);
    if !differences.is_empty() {
        text += "\n<details><summary>What differs besides the figures</summary>\n\n";
        for DifferenceWords { name, values, .. } in differences.iter().take(DIFFERENCES_MAX) {
            let [a, b] = values.each_ref().map(|value| foreign(value));
            text += &format!("- {}: {first} {a}, {second} {b}\n", foreign(name));
        }
        if let Some(more) = differences.len().checked_sub(DIFFERENCES_MAX).filter(|more| *more > 0) {
            text += &format!("- and {more} more\n");
        }
        text += "\n</details>\n";
    }
    text
}
