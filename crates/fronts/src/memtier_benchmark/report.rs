//! memtier_benchmark's report of a run as text, and its files of one histogram each.

use std::fmt::Write as _;

use pummel_logic::time::{MICROSECOND, MILLISECOND};
use pummel_measure::histogram::Histogram;

use super::display::{Display, Row, RowKind};
use super::figures::{RowFigures, RunFigures, distribution, in_microseconds, milliseconds, percentile_ms};

/// Stands where a row has no figure.
const NONE: &str = "---";

/// Least width of the first column.
const TYPE_WIDTH: usize = 6;

/// The lines in front of all reports.
pub fn head(display: &Display) -> String {
    let options = &display.options;
    let (count, what) = match display.requests {
        Some(requests) => (requests, "Requests per client"),
        None => (options.test_time_s.into(), "Seconds"),
    };
    format!(
        "{:<9} Threads\n{:<9} Connections per thread\n{count:<9} {what}\n",
        options.threads, options.clients
    )
}

/// A column: its head, its width, and the cells below.
struct Column {
    head: String,
    width: usize,
    cells: Vec<String>,
}

/// The report of a run under a title.
pub fn run(display: &Display, title: &str, run: &RunFigures) -> String {
    let mut text = String::new();
    write_table(display, title, run, &mut text).expect("text can always be added to");
    if !display.options.hide_histogram {
        write_distributions(display, run, &mut text).expect("text can always be added to");
    }
    text
}

/// The name of a percentile: with as many decimals as it has, up to three.
pub fn percentile_name(percent: f64) -> String {
    let text = format!("{percent:.3}");
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn write_table(display: &Display, title: &str, run: &RunFigures, text: &mut String) -> std::fmt::Result {
    let columns = columns(display, run);
    let names: Vec<&str> = display.rows.iter().map(|row| &*row.name).chain(["Totals"]).collect();
    // The names of the rows have one letter more, for which there is room.
    let longest = display.rows.iter().map(|row| row.title.chars().count()).max().unwrap_or(0);
    let type_width = longest.max(TYPE_WIDTH) + 1;
    let width = type_width + 1 + columns.iter().map(|column| column.width + 1).sum::<usize>();
    writeln!(text, "\n\n{title}\n{}", "=".repeat(width))?;
    write!(text, "{:<type_width$} ", "Type")?;
    columns.iter().try_for_each(|column| write!(text, "{:>1$} ", column.head, column.width))?;
    writeln!(text, "\n{}", "-".repeat(width))?;
    for (at, name) in names.iter().enumerate() {
        write!(text, "{name:<type_width$} ")?;
        columns.iter().try_for_each(|column| write!(text, "{:>1$} ", column.cells[at], column.width))?;
        text.push('\n');
    }
    Ok(())
}

fn columns(display: &Display, run: &RunFigures) -> Vec<Column> {
    let options = &display.options;
    // The kind of each row; that of the totals is none.
    let kinds: Vec<Option<RowKind>> = display.rows.iter().map(|row| Some(row.kind)).chain([None]).collect();
    let column = |head: &str, width: usize, cell: &dyn Fn(Option<RowKind>, &RowFigures) -> Option<String>| {
        let cell = |(kind, row): (&Option<RowKind>, &RowFigures)| {
            cell(*kind, row).unwrap_or_else(|| NONE.to_owned())
        };
        Column { head: head.to_owned(), width, cells: kinds.iter().zip(&run.rows).map(cell).collect() }
    };
    let rate = |value: f64| Some(format!("{value:.2}"));
    let reads = |kind: Option<RowKind>| matches!(kind, None | Some(RowKind::Get));
    let time = |row: &RowFigures, ms: f64| (row.times.count() > 0).then(|| format!("{ms:.5}"));
    let mut columns = vec![column("Ops/sec", 12, &|_, row| rate(row.rate))];
    if options.commands.is_empty() {
        columns.push(column("Hits/sec", 12, &|kind, row| rate(row.hits).filter(|_| reads(kind))));
        columns.push(column("Misses/sec", 12, &|kind, row| rate(row.misses).filter(|_| reads(kind))));
    }
    if options.cluster {
        columns.push(column("MOVED/sec", 12, &|_, row| rate(row.redirects?.0)));
        columns.push(column("ASK/sec", 12, &|_, row| rate(row.redirects?.1)));
    }
    let mean = |row: &RowFigures| row.times.moments().mean_ns().map_or(0.0, milliseconds);
    columns.push(column("Avg. Latency", 15, &|_, row| time(row, mean(row))));
    for percent in &options.percentiles {
        let head = format!("{} Latency", percentile_name(*percent));
        columns.push(column(&head, 15, &|_, row| time(row, percentile_ms(&row.times, *percent))));
    }
    columns.push(column("KB/sec", 12, &|kind, row| {
        let (received, sent) = row.kilobytes.filter(|_| kind != Some(RowKind::Wait))?;
        rate(received + sent)
    }));
    columns
}

fn write_distributions(display: &Display, run: &RunFigures, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\n\nRequest Latency Distribution\n{:<6} {:>12} {:>12}", "Type", "<= msec   ", "Percent")?;
    writeln!(text, "{}", "-".repeat(72))?;
    let last = display.rows.len().saturating_sub(1);
    for (at, (row, figures)) in display.rows.iter().zip(&run.rows).enumerate() {
        for (ns, percent) in distribution(&figures.times) {
            writeln!(text, "{:<6} {:8.3} {percent:12.3}", row.title, milliseconds(ns as f64))?;
        }
        if at < last || row.kind == RowKind::Command {
            writeln!(text, "---")?;
        }
    }
    Ok(())
}

/// A file of a histogram: the end of its name, and its text.
pub struct HistogramFile {
    /// What stands behind the prefix.
    pub name: String,
    /// The words about it, as far as they name what it holds.
    pub what: String,
    /// The text.
    pub text: String,
}

/// The files of a run's histograms: for all requests and for each row that has some, a table, and a log of one line.
pub fn histogram_files(display: &Display, number: u32, run: &RunFigures) -> Vec<HistogramFile> {
    let is_of_user = |row: &Row| row.kind == RowKind::Command;
    let rows = display.rows.iter().zip(&run.rows);
    let rows = rows.filter(|(row, figures)| is_of_user(row) || figures.times.count() > 0);
    let named = rows.map(|(row, figures)| {
        (format!("{}_command_run_{number}", row.title), format!("{} command", row.title), figures)
    });
    let all = run.totals().map(|totals| (format!("FULL_RUN_{number}"), "Full Run".to_owned(), totals));
    let files = |(name, what, figures): (String, String, &RowFigures)| {
        let log = " results in HistogramLogProcessor format";
        [
            HistogramFile {
                name: format!("_{name}.txt"),
                what: format!("{what} HDR latency histogram results"),
                text: table(&figures.times),
            },
            HistogramFile {
                name: format!("_{name}.hgrm"),
                what: format!("{what} HDR latency histogram{log}"),
                text: interval_log(run, &what, &figures.times),
            },
        ]
    };
    all.into_iter().chain(named).flat_map(files).collect()
}

/// A table of percentiles in milliseconds, in the classic layout of the HdrHistogram project.
fn table(times: &Histogram) -> String {
    let mut text =
        format!("{:>12} {:>12} {:>12} {:>12}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut cells = times.cells().peekable();
    let mut count = 0;
    for (ns, percent) in distribution(times) {
        while let Some((_, _, more)) = cells.next_if(|(lowest, ..)| *lowest <= ns) {
            count += more;
        }
        let share = percent / 100.0;
        let inverse =
            if share < 1.0 { format!("{:12.2}", 1.0 / (1.0 - share)) } else { format!("{:>12}", "inf") };
        text += &format!("{:12.3} {share:12.6} {count:12} {inverse}\n", milliseconds(ns as f64));
    }
    let exact = times.moments();
    let known = |ns: Option<f64>| milliseconds(ns.unwrap_or(0.0));
    text + &format!(
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n#[Buckets = {:12}, SubBuckets     = {:12}]\n",
        known(exact.mean_ns()),
        known(exact.stddev_ns()),
        milliseconds(exact.max as f64),
        times.count(),
        BUCKETS.0,
        BUCKETS.1,
    )
}

/// Halvings and steps of each that the histograms of the original have.
const BUCKETS: (u32, u32) = (20, 256);

/// A log of one interval, in microseconds. The second column is the end of the run, as the original has it there.
fn interval_log(run: &RunFigures, what: &str, times: &Histogram) -> String {
    let second = |ms: u64| ms as f64 / 1e3;
    let (start, end) = (second(run.started_ms), second(run.started_ms + run.length_ms));
    let greatest = (times.moments().max.div_ceil(MICROSECOND)) as f64;
    format!(
        "#[{what} HDR latency histogram results]\n#[Histogram log format version 1.2]\n#[StartTime: {start:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"EndTimestamp\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n{start:.3},{end:.3},{greatest:.1},{}\n",
        in_microseconds(times).to_base64()
    )
}

/// The accumulated time of a row in whole milliseconds.
pub fn accumulated_ms(times: &Histogram) -> u64 {
    u64::try_from(times.moments().sum / u128::from(MILLISECOND)).unwrap_or(u64::MAX)
}

/// Bytes per second for people, as lines of progress have them.
pub fn bytes_rate(per_second: f64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (per_second / 1_024.0, 0);
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1_024.0, unit + 1);
    }
    format!("{value:.2}{}/sec", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_with_the_decimals_that_they_have() {
        let names = [50.0, 99.0, 99.9, 99.99, 99.999, 0.5].map(percentile_name);
        assert_eq!(names, ["p50", "p99", "p99.9", "p99.99", "p99.999", "p0.5"]);
    }

    #[test]
    fn rates_of_bytes_have_the_unit_that_keeps_them_short() {
        assert_eq!(
            [0.0, 652_298.24, 1_405_091.84].map(bytes_rate),
            ["0.00KB/sec", "637.01KB/sec", "1.34MB/sec"]
        );
    }

    #[test]
    fn a_table_of_percentiles_counts_all() {
        let mut times = Histogram::new();
        times.record_many(MILLISECOND, 90);
        times.record_many(5 * MILLISECOND, 10);
        let text = table(&times);
        let last = text.lines().rfind(|line| !line.starts_with('#')).expect("it has lines");
        let cells: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(cells, ["5.000", "1.000000", "100", "inf"]);
        assert!(text.contains("Total count    =          100]"), "{text}");
    }
}
