//! The intervals as comma-separated values, one row for each interval and op; `docs/RESULTS.md` documents the columns.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::document::Document;
use crate::tables::{self, Values};
use crate::visible;

/// Columns of which three digits behind the point say enough.
const ROUNDED: [&str; 3] = ["at_s", "seconds", "rate"];

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Words, of this program or of others.
    Words(Cow<'a, str>),
    /// A whole number.
    Count(u64),
    /// A number with all of its digits.
    Number(f64),
    /// A number with three digits behind the point.
    Thousandths(f64),
    /// Nothing, where a figure is not known.
    Absent,
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(words: &'a str) -> Cell<'a> {
        Cell::Words(words.into())
    }
}

impl From<String> for Cell<'_> {
    fn from(words: String) -> Self {
        Cell::Words(words.into())
    }
}

impl From<u64> for Cell<'_> {
    fn from(count: u64) -> Self {
        Cell::Count(count)
    }
}

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        Cell::Number(number)
    }
}

impl From<bool> for Cell<'_> {
    fn from(answer: bool) -> Self {
        Cell::from(if answer { "true" } else { "false" })
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(known: Option<T>) -> Cell<'a> {
        known.map_or(Cell::Absent, Into::into)
    }
}

/// Comma-separated values that grow row by row, with lines that end in a line feed. Only cells are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Csv(String);

impl Csv {
    /// A table with this row of names.
    pub fn with_header<'a>(names: impl IntoIterator<Item = &'a str>) -> Csv {
        let mut table = Csv::default();
        table.row(names.into_iter().map(Cell::from));
        table
    }

    /// Adds a row.
    pub fn row<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) {
        for (place, cell) in cells.into_iter().enumerate() {
            if place > 0 {
                self.0.push(',');
            }
            let written = match cell {
                Cell::Words(words) => self.words(&words),
                Cell::Count(count) => write!(self.0, "{count}"),
                Cell::Number(number) => write!(self.0, "{number}"),
                Cell::Thousandths(number) => write!(self.0, "{number:.3}"),
                Cell::Absent => Ok(()),
            };
            written.expect("a string takes everything");
        }
        self.0.push('\n');
    }

    /// Adds words: in quotes where they hold a comma or a quote (RFC 4180), with a mark for each control character, and behind an
    /// apostrophe where a spreadsheet would take them for a formula.
    fn words(&mut self, words: &str) -> std::fmt::Result {
        let apostrophe = if words.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { "'" } else { "" };
        let words = visible::words(words);
        match words.contains([',', '"']) {
            true => write!(self.0, "\"{apostrophe}{}\"", words.replace('"', "\"\"")),
            false => write!(self.0, "{apostrophe}{words}"),
        }
    }

    /// The bytes of the table.
    pub fn finish(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

/// The intervals, header first.
pub fn render(document: &Document) -> Vec<u8> {
    let intervals = tables::intervals(document);
    let mut table = Csv::with_header(intervals.columns.iter().map(|column| column.name.as_str()));
    for row in 0..intervals.rows() {
        table.row(intervals.columns.iter().map(|column| match cell(&column.values, row) {
            Cell::Number(number) if ROUNDED.contains(&column.name.as_str()) => Cell::Thousandths(number),
            cell => cell,
        }));
    }
    table.finish()
}
/// The value of a row of a column.
fn cell(values: &Values, row: usize) -> Cell<'_> {
    match values {
        Values::Words(values) => values[row].as_str().into(),
        Values::Counts(values) => values[row].into(),
        Values::Smalls(values) => u64::from(values[row]).into(),
        Values::Moments(values) | Values::Keys(values) => values[row].into(),
        Values::Numbers(values) => values[row].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::PhaseResult;
    use crate::example::{Run, sample};
    use crate::tables::CACHE_COLUMNS;
    use pummel_logic::protocol::{Outcome, Verb};
    use pummel_logic::workload::cache_counts::CacheCounts;
    use pummel_measure::measurement::Keep;
    use pummel_measure::recorder::Sample;

    fn rows(run: &Run) -> Vec<Vec<String>> {
        let table = String::from_utf8(run.document(render)).unwrap();
        table.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn names_are_cells_whatever_they_hold() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        for interval in &mut document.intervals {
            interval.ops.0[0].0 = "get,\"1\"\n".to_owned();
        }
        let table = String::from_utf8(render(&document)).unwrap();
        assert_eq!(table.matches(",\"get,\"\"1\"\"\u{fffd}\",").count(), document.intervals.len(), "{table}");
    }

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay() {
        let mut table = Csv::with_header(["op"]);
        let words = ["=cmd()", "+1", "-1", "@a", "\ta", "=1,\"2\"", "a=b", "\u{1b}[31m"];
        table.row(words.map(Cell::from));
        table.row([Cell::Number(-1.5), Cell::Count(3), Cell::Thousandths(0.5), Cell::Absent, true.into()]);
        let text = String::from_utf8(table.finish()).expect("UTF-8");
        let row = "'=cmd(),'+1,'-1,'@a,'\u{fffd}a,\"'=1,\"\"2\"\"\",a=b,\u{fffd}[31m";
        assert_eq!(text, format!("op\n{row}\n-1.5,3,0.500,,true\n"));
    }

    #[test]
    fn every_interval_has_a_row_for_each_op_with_a_cell_for_each_column() {
        let rows = rows(&Run::new(Keep::Figures));
        let ops: Vec<(&str, &str)> = rows[1..].iter().map(|row| (row[0].as_str(), row[2].as_str())).collect();
        assert_eq!(ops, [("0.000", "get"), ("0.000", "set"), ("1.000", "get"), ("1.000", "set")]);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        let cell = |name: &str| {
            let at = rows[0].iter().position(|column| column == name);
            rows[1][at.unwrap_or_else(|| panic!("no column {name}"))].as_str()
        };
        assert_eq!(
            (cell("requests"), cell("rate"), cell("hits"), cell("misses")),
            ("900", "900.000", "850", "50")
        );
        assert_eq!((cell("errors_timeout"), cell("unfinished"), cell("unsent")), ("0", "0", "0"));
        assert_eq!((cell("reaction_p99.9_us"), cell("response_max_us")), ("2.5", "93.622"));
    }

    #[test]
    fn what_clients_saw_of_the_cache_stands_behind_the_phase() {
        let mut run = Run::new(Keep::Figures);
        let counts = CacheCounts { first_touch: 3, hit_bytes: 700, fills: 2, ..CacheCounts::default() };
        run.interval(2, Keep::Figures, |interval| {
            interval.groups[0].counts(Verb::Get).unsent += 1;
            interval.groups[0].counts(Verb::Get).cache.add(&counts);
        });
        let rows = rows(&run);
        let names: Vec<&str> = CACHE_COLUMNS.iter().map(|(name, _)| *name).collect();
        let end = rows[0].len() - Outcome::WITHOUT_EFFECT.len();
        let at = end - names.len();
        assert_eq!(rows[0][at..end], names);
        assert!(rows[1][at..end].iter().all(String::is_empty), "misses are not told apart");
        assert_eq!(rows[rows.len() - 1][at..end], ["3", "0", "0", "0", "700", "0", "0", "2", "0"]);
    }

    #[test]
    fn requests_without_effect_are_counted_in_the_last_columns() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| {
            for (of, count) in Outcome::WITHOUT_EFFECT.into_iter().zip(1..) {
                let other = Sample { verb: Verb::Set, outcome: of, ..sample(0) };
                (0..count).for_each(|_| interval.groups[0].record(&other));
            }
        });
        let rows = rows(&run);
        let at = rows[0].len() - Outcome::WITHOUT_EFFECT.len();
        assert_eq!(
            rows[0][at..],
            ["outcomes_not_stored", "outcomes_exists", "outcomes_not_found", "outcomes_conflict"]
        );
        assert_eq!(rows[1][at..], ["0", "0", "0", "0"]);
        assert_eq!(rows[rows.len() - 1][at..], ["1", "2", "3", "4"]);
    }

    #[test]
    fn each_row_names_the_phase_in_which_its_interval_begins() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let phases = |document: &Document| -> Vec<String> {
            let table = String::from_utf8(render(document)).expect("UTF-8");
            let phase = |line: &str| {
                line.rsplit(',')
                    .nth(CACHE_COLUMNS.len() + Outcome::WITHOUT_EFFECT.len())
                    .unwrap_or_default()
                    .to_owned()
            };
            table.lines().map(phase).collect()
        };
        assert_eq!(phases(&document), ["phase", "", "", "", ""]);
        let phase =
            |name: &str, at_s: f64| PhaseResult { name: name.to_owned(), at_s, ..PhaseResult::default() };
        document.phases = vec![phase("calm", 0.0), phase("flash \"x\"", 1.0)];
        let quoted = "\"flash \"\"x\"\"\"";
        assert_eq!(phases(&document), ["phase", "calm", "calm", quoted, quoted]);
    }

    #[test]
    fn what_is_not_known_is_an_empty_cell() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| interval.groups[0].counts(Verb::Get).unsent += 4);
        let rows = rows(&run);
        let last = rows.last().unwrap();
        assert_eq!(last.len(), rows[0].len());
        assert_eq!((last[2].as_str(), last[3].as_str()), ("get", "4"));
        let first_time = rows[0].iter().position(|column| column == "response_min_us").unwrap();
        let end = last.len() - Outcome::WITHOUT_EFFECT.len();
        assert!(last[first_time..end].iter().all(String::is_empty), "{last:?}");
        assert_eq!(rows[0][rows[0].len() - CACHE_COLUMNS.len() - Outcome::WITHOUT_EFFECT.len() - 1], "phase");
    }
}
