//! A comparison as Markdown, for the page of a job or a comment: a sentence, a table, notes, and the differences of the
//! sides.

use pummel_measure::words::counted;

use super::difference_words::DifferenceWords;
use super::result::Comparison;
use super::text::{difference_words, headline, label, notes, row_cells};
use crate::markdown::{Md, foreign, plain, row};

/// Differences of plans, servers and machines that are shown at most.
const DIFFERENCES_MAX: usize = 20;

/// The comparisons of several sides with the first, one after the other.
pub fn markdown_of_all(comparisons: &[Comparison]) -> String {
    comparisons.iter().map(|one| of_one(one).finish()).collect::<Vec<String>>().join("\n")
}

/// The comparison of two sides.
pub fn markdown(comparison: &Comparison) -> Vec<u8> {
    of_one(comparison).finish().into_bytes()
}

fn of_one(comparison: &Comparison) -> Md {
    let [first, second] = comparison.names.0;
    let sides = comparison.names.0.into_iter().zip(&comparison.sides).map(|(name, side)| {
        let runs = counted(side.runs.len() as u64, "run");
        Md::of("- ").words(name).mark(": ").and(foreign(&label(side))).mark(" (").words(&runs).mark(")")
    });
    let text = Md::of("### ").and(plain(&headline(comparison))).mark("\n\n").each(sides, "\n").mark("\n");
    let text = text.and(row(["", first, second, "change", "95 % interval", ""]));
    let rows = comparison.rows.iter().filter_map(|row| row_cells(row, comparison)).map(|cells| {
        let [a, b] = &cells.values;
        row([cells.name, a, b, &cells.change, &cells.interval, &cells.word])
    });
    let notes = notes(comparison);
    let notes = notes.iter().map(|note| Md::of("\n").and(plain(note)));
    let text = text.mark("|---|---:|---:|---:|---:|---|\n").each(rows, "").each(notes, "\n");
    let differences = difference_words(comparison);
    if differences.is_empty() {
        return text;
    }
    let more = differences.len().saturating_sub(DIFFERENCES_MAX);
    let more = (more > 0).then(|| Md::of("- and ").words(&more.to_string()).mark(" more"));
    let each = differences.iter().take(DIFFERENCES_MAX).map(|DifferenceWords { name, values, .. }| {
        let [a, b] = values.each_ref().map(|value| foreign(value));
        let text = Md::of("- ").and(foreign(name)).mark(": ").words(first).mark(" ").and(a);
        text.mark(", ").words(second).mark(" ").and(b)
    });
    let text = text.mark("\n<details><summary>What differs besides the figures</summary>\n\n");
    text.each(each.chain(more), "\n").mark("\n</details>\n")
}
