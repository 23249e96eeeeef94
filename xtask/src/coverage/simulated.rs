//! The simulated parts: the tests of the logic, optimised and with more runs, and their lines as tables.

use std::io;
use std::path::Path;

use crate::programs;

/// Counts of the intervals of one process that held: by quantile, intervals that held, intervals, and those without an upper end.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    process: String,
    quantiles: Vec<(String, [u64; 3])>,
}

impl Row {
    /// Reads `process=P p50=HELD/RUNS/OPEN p90=...`.
    fn parse(line: &str) -> Option<Row> {
        let mut words = line.split_whitespace().map(|word| word.split_once('='));
        let (_, process) = words.next()?.filter(|(name, _)| *name == "process")?;
        let mut quantiles = Vec::new();
        for word in words {
            let (name, figures) = word?;
            let numbers: Vec<u64> = figures.split('/').map_while(|number| number.parse().ok()).collect();
            quantiles.push((name.to_owned(), numbers.try_into().ok()?));
        }
        Some(Row { process: process.replace('_', " "), quantiles })
    }

    fn line(&self) -> String {
        let cells = self.quantiles.iter().map(|(_, [held, runs, open])| match runs {
            0 => "-".to_owned(),
            _ => format!("{:.1} ({:.0})", percent(*held, *runs), percent(*open, *runs)),
        });
        format!("| {} | {} |", self.process, cells.collect::<Vec<_>>().join(" | "))
    }
}

fn percent(part: u64, of: u64) -> f64 {
    part as f64 / of as f64 * 100.0
}

/// The packages that have a coverage program.
const MEASURE: &str = "pummel-measure";
const TRAFFIC: &str = "pummel-traffic";

/// The eight processes; says whether all intervals held often enough.
pub fn processes(root: &Path, runs: u64, requests: u64) -> io::Result<bool> {
    println!("Of {runs} runs of {requests} requests, the share in % whose 95 % interval contains the truth");
    println!("(in brackets: the share whose tail is not known from above).\n");
    let sizes = [("PUMMEL_COVERAGE_RUNS", runs), ("PUMMEL_COVERAGE_REQUESTS", requests)];
    let (lines, passed) = test(root, (MEASURE, "intervals_hold"), &sizes, "coverage: ")?;
    let mut rows: Vec<Row> = lines.iter().filter_map(|line| Row::parse(line)).collect();
    rows.sort_by(|one, other| one.process.cmp(&other.process));
    if let Some(first) = rows.first() {
        let names: Vec<&str> = first.quantiles.iter().map(|(name, _)| name.as_str()).collect();
        println!("| process | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    }
    rows.iter().for_each(|row| println!("{}", row.line()));
    println!();
    Ok(passed && !rows.is_empty())
}

/// Simulated searches for the knee of a queue that is known.
pub fn searches(root: &Path) -> io::Result<bool> {
    let (lines, passed) =
        test(root, (MEASURE, "searches_find"), &[("PUMMEL_COVERAGE_SEARCHES", 100)], "searches: ")?;
    lines.iter().for_each(|line| println!("Searches: {line}"));
    Ok(passed && !lines.is_empty())
}

/// Runs whose load changes or stays: whether a change is found, and whether a warm-up waits for it.
pub fn changing(root: &Path, runs: u64) -> io::Result<bool> {
    said(root, (MEASURE, "changing::"), &[("PUMMEL_COVERAGE_RUNS_CHANGING", runs)], "changing: ")
}

/// Equal sides by turns on machines that differ from run to run.
pub fn sides(root: &Path) -> io::Result<bool> {
    said(root, (MEASURE, "compare::"), &[("PUMMEL_COVERAGE_EXPERIMENTS", 2_000)], "equal: ")
}

/// Traces that are made from known numbers and fitted, one after the other, since memory is measured too.
pub fn fits(root: &Path, rows: u64) -> io::Result<bool> {
    let sizes = [("PUMMEL_COVERAGE_ROWS", rows), ("RUST_TEST_THREADS", 1)];
    said(root, (TRAFFIC, ""), &sizes, "fit: ")
}

/// Prints what tests say behind `mark`; says whether all passed and something was said.
fn said(root: &Path, tests: (&str, &str), sizes: &[(&str, u64)], mark: &str) -> io::Result<bool> {
    let (lines, passed) = test(root, tests, sizes, mark)?;
    lines.iter().for_each(|line| println!("{line}"));
    println!();
    Ok(passed && !lines.is_empty())
}

/// Runs those tests of the coverage program of a package whose names contain `filter`. Returns what followed `mark` in their lines, and
/// whether all passed.
fn test(
    root: &Path,
    (package, filter): (&str, &str),
    sizes: &[(&str, u64)],
    mark: &str,
) -> io::Result<(Vec<String>, bool)> {
    let sizes: Vec<(&str, String)> = sizes.iter().map(|(name, value)| (*name, value.to_string())).collect();
    let (lines, passed) = programs::test(root, [package, "coverage"], &[filter], &sizes)?;
    // What the test program itself says of a test may stand in front of the line.
    let said = lines.iter().filter_map(|line| Some(line.split_once(mark)?.1.to_owned()));
    Ok((said.collect(), passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_test_program_become_rows_of_a_table() {
        let row = Row::parse("process=M/M/1_0.5 p50=962/1000/0 p99.99=958/1000/800").unwrap();
        assert_eq!(row.line(), "| M/M/1 0.5 | 96.2 (0) | 95.8 (80) |");
        assert_eq!(Row::parse("process=x p50=1/0/0").unwrap().line(), "| x | - |");
        assert_eq!(Row::parse("process=x p50=1/2"), None);
        assert_eq!(Row::parse("other=x"), None);
    }
}
