//! The table of two suites: a row for each judged figure of each run.

use pummel_measure::compare::Design;

use super::super::change::ChangeUnit;
use super::super::pair::Word;
use super::super::pair::figures::side_cell;
use super::super::pair::judged::judged;
use super::super::several::{MARK_NOTE, column, name_of, without_empty_columns};
use super::super::{Cell, Column, Note, Row, RowKind, Table};
use crate::comparison::{Comparison, Row as Figure, SuitesComparison, Word as RowWord};
use crate::visible::cut_name;

/// Letters of the name of a run in a row.
const NAME_CHARS_MAX: usize = 26;

/// The unit of a change: percent, and factors from tenfold on, whether the rounds are pairs or not.
pub(crate) fn change_unit(row: &Figure, change: f64) -> ChangeUnit {
    ChangeUnit::of(Design::Paired, change, row.ci)
}

/// The word on a figure: what became of its claim, or what is shown.
fn word(pair: &Comparison, row: &Figure) -> &'static str {
    let own = judged(pair).into_iter().find(|own| own.row.metric == row.metric);
    match (own.and_then(|own| own.word), row.word) {
        (Some(Word::Worse), _) => "worse",
        (Some(Word::NotSure), _) => "not sure",
        (_, RowWord::NotComparable) => "not comparable",
        (Some(_), _) => "not decided",
        (None, RowWord::Differ) => "differs",
        (None, RowWord::NoDifference) => "not shown",
        (None, RowWord::NotJudged | RowWord::NotKnown) => "",
    }
}

/// Whether a figure is shown to differ, in the table and in the picture.
pub(crate) fn is_different(pair: &Comparison, row: &Figure) -> bool {
    matches!(word(pair, row), "differs" | "worse")
}

/// The table: the judged figures, or all that are known.
pub(super) fn tables(suites: &SuitesComparison, is_everything: bool) -> Vec<Table> {
    let words = |name: &str| Column { is_words: true, ..column(name, 0, 0, None) };
    let columns = vec![
        words("figure"),
        column("A", 11, 10, Some(1)),
        column("B", 11, 10, Some(1)),
        column("B to A", 9, 8, None),
        column("95 % sure", 12, 11, Some(0)),
        words(""),
    ];
    let mut rows = Vec::new();
    for pair in &suites.pairs {
        let comparison = &pair.comparison;
        for row in comparison.rows.iter().filter(|row| row.is_judged || is_everything && row.is_known()) {
            let [a, b] = [0, 1].map(|side| side_cell(comparison, row, side));
            let unit = row.change.map(|change| change_unit(row, change));
            let change = row.change.zip(unit).map_or("-".to_owned(), |(change, unit)| unit.cell(change));
            let ends = row.ci.zip(unit).map_or_else(String::new, |(ends, unit)| unit.ends(ends));
            rows.push(Row {
                name: cut_name(&pair.name, NAME_CHARS_MAX),
                cells: vec![
                    Cell::of(name_of(row.metric)),
                    a,
                    b,
                    Cell::of(change),
                    Cell::of(ends),
                    Cell::of(word(comparison, row)),
                ],
                kind: RowKind::Figures,
            });
        }
    }
    match rows.is_empty() {
        true => Vec::new(),
        false => {
            vec![without_empty_columns(Table { name: "run".to_owned(), columns, rows, ..Table::default() })]
        }
    }
}

/// Sentences below the table.
pub(super) fn notes(suites: &SuitesComparison, tables: &[Table]) -> Vec<Note> {
    let mut notes = Vec::new();
    let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    if cells.into_iter().any(|cell| cell.is_mostly_lag) {
        notes.push(Note::of(MARK_NOTE));
    }
    let sides = || suites.pairs.iter().flat_map(|pair| &pair.comparison.sides);
    if sides().any(|side| side.runs.len() > 1) {
        notes.push(Note::of("A and B: medians of the rounds"));
    }
    if suites.pairs.iter().any(|pair| pair.comparison.tests_in_all.is_some()) && suites.tests > 1 {
        notes.push(Note::of(format!(
            "An interval is of its run alone. Whether a run differs is corrected by Holm for {} figures",
            suites.tests
        )));
    }
    notes
}
