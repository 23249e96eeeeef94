//! The intervals as comma-separated values, one row for each interval and op; `docs/RESULTS.md` documents the columns.

use std::fmt::Write as _;

use pummel_logic::protocol::Fault;
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::recorder::Span;

use crate::document::{Document, IntervalResult, OpResult, TimeFigures};

/// The figures of each time in a row.
pub const ROW_FIGURES: [&str; 10] =
    ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];

/// A column of the cache's counts: its name, and its value.
pub type CacheColumn = (&'static str, fn(&CacheCounts) -> u64);

/// The columns of what clients saw of the cache.
pub const CACHE_COLUMNS: [CacheColumn; 9] = [
    ("misses_first_touch", |counts| counts.first_touch),
    ("misses_absent", |counts| counts.absent),
    ("misses_expired", |counts| counts.expired),
    ("misses_other", |counts| counts.other),
    ("hit_bytes", |counts| counts.hit_bytes),
    ("missed_bytes", |counts| counts.missed_bytes),
    ("stored_bytes", |counts| counts.stored_bytes),
    ("fills", |counts| counts.fills),
    ("duplicate_fills", |counts| counts.duplicate_fills),
];

/// The table, header first, with lines that end in a line feed.
pub fn render(document: &Document) -> Vec<u8> {
    let mut table = header();
    for interval in &document.intervals {
        for (name, op) in interval.ops.iter() {
            row(&mut table, interval, (name, phase_at(document, interval.at_s)), op);
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
        for figure in ROW_FIGURES {
            push(&mut header, format_args!(",{}_{figure}_us", span.name()));
        }
    }
    header.push_str(",phase");
    for (name, _) in CACHE_COLUMNS {
        push(&mut header, format_args!(",{name}"));
    }
    header.push('\n');
    header
}

/// The name of the phase in which an interval begins; empty where the load does not change.
pub fn phase_at(document: &Document, at_s: f64) -> &str {
    // Beginnings are rounded to microseconds, and those of intervals to the tick.
    let begun = document.phases.iter().rev().find(|phase| phase.at_s <= at_s + 1e-3);
    begun.map_or("", |phase| phase.name.as_str())
}

/// Text as a cell: in quotes where it holds a comma, a quote or the end of a line (RFC 4180). Text that a spreadsheet takes for a
/// formula stays as it is.
pub fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn row(table: &mut String, interval: &IntervalResult, (name, phase): (&str, &str), op: &OpResult) {
    let length_s = interval.seconds;
    let rate = if length_s > 0.0 { op.completed as f64 / length_s } else { 0.0 };
    push(table, format_args!("{:.3},{length_s:.3},{}", interval.at_s, cell(name)));
    push(table, format_args!(",{},{},{rate:.3}", op.requests, op.completed));
    push(table, format_args!(",{},{},{}", op.keys, op.hits, op.misses));
    for fault in Fault::ALL {
        push(table, format_args!(",{}", op.errors.get(fault.name()).unwrap_or(&0)));
    }
    push(table, format_args!(",{},{}", op.unfinished, op.unsent));
    for span in Span::ALL {
        times(table, op.times.of_span(span));
    }
    push(table, format_args!(",{}", cell(phase)));
    for (_, of) in CACHE_COLUMNS {
        match &op.cache {
            Some(counts) => push(table, format_args!(",{}", of(counts))),
            None => table.push(','),
        }
    }
    table.push('\n');
}

fn times(table: &mut String, figures: &TimeFigures) {
    for figure in ROW_FIGURES {
        match figures.plain(figure) {
            Some(us) => push(table, format_args!(",{us}")),
            None => table.push(','),
        }
    }
}

fn push(table: &mut String, cells: std::fmt::Arguments<'_>) {
    table.write_fmt(cells).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::PhaseResult;
    use crate::example::Run;
    use pummel_logic::protocol::Verb;
    use pummel_measure::measurement::Keep;

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
        assert_eq!(table.matches(",\"get,\"\"1\"\"\n\",").count(), document.intervals.len(), "{table}");
        assert_eq!(cell("=HYPERLINK(1)"), "=HYPERLINK(1)");
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
        let at = rows[0].len() - names.len();
        assert_eq!(rows[0][at..], names);
        assert!(rows[1][at..].iter().all(String::is_empty), "misses are not told apart");
        assert_eq!(rows[rows.len() - 1][at..], ["3", "0", "0", "0", "700", "0", "0", "2", "0"]);
    }

    #[test]
    fn each_row_names_the_phase_in_which_its_interval_begins() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let phases = |document: &Document| -> Vec<String> {
            let table = String::from_utf8(render(document)).expect("UTF-8");
            let phase = |line: &str| line.rsplit(',').nth(CACHE_COLUMNS.len()).unwrap_or_default().to_owned();
            table.lines().map(phase).collect()
        };
        assert_eq!(phases(&document), ["phase", "", "", "", ""]);
        let phase =
            |name: &str, at_s: f64| PhaseResult { name: name.to_owned(), at_s, ..PhaseResult::default() };
        document.phases = vec![phase("calm", 0.0), phase("flash \"x\"", 1.0)];
        let quoted = "\"flash \"\"x\"\"\"";
        assert_eq!(phases(&document), ["phase", "calm", "calm", quoted, quoted]);
        assert_eq!(cell("a,b"), "\"a,b\"");
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
        assert!(last[first_time..].iter().all(String::is_empty), "{last:?}");
        assert_eq!(rows[0][rows[0].len() - CACHE_COLUMNS.len() - 1], "phase");
    }
}
