//! mutilate's report: the same fields in the same columns.

use std::fmt::Write as _;

use pummel_logic::merge::Merge as _;
use pummel_logic::plan::Plan;
use pummel_logic::protocol::Verb;
use pummel_logic::time::MICROSECOND;
use pummel_measure::histogram::Histogram;
use pummel_measure::measurement::Measurement;
use pummel_measure::recorder::{Counts, OpRecord, Ops, Span};
use pummel_measure::summary::{Quantile, Summary, Unanswered, quantile};
use pummel_report::Report;

/// What the report has beside the original's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Layout {
    /// Rows of the response time.
    pub response: bool,
    /// Columns for the 50th and the 99.9th percentile.
    pub p50: bool,
    /// Rows of the requests of all machines.
    pub all_rows: bool,
    /// The line of `--search`: the rate of its first run.
    pub peak: Option<f64>,
}

/// Bytes of what the original calls MB.
const MEGABYTE: f64 = 1_048_576.0;

/// The report of one run.
pub fn render(report: &Report<'_>, layout: &Layout) -> String {
    let figures = Figures::of(report.plan, report.measurement, report.summary);
    let (reads, updates) = (&figures.read_rows, &figures.update_rows);
    let latency = |name, rows: &OpRecord, span| {
        let times = rows.times.of(span);
        row(name, times, span, &unanswered(rows, span, report.measurement), MICROSECOND as f64, layout)
    };
    let none = Histogram::new();
    let is_here =
        report.measurement.agents.is_none() || report.plan.groups.iter().any(|group| group.policy.here);
    let outstanding =
        report.measurement.side_times.outstanding.as_deref().filter(|_| is_here).unwrap_or(&none);
    let answered = Unanswered::default();
    let mut table = vec![
        header(layout),
        latency("read", reads, Span::Service),
        latency("update", updates, Span::Service),
        row("op_q", outstanding, Span::Service, &answered, 1.0, layout),
    ];
    if layout.response {
        table.push(latency("read_rt", reads, Span::Response));
        table.push(latency("update_rt", updates, Span::Response));
    }
    if layout.all_rows {
        table.push(latency("read_all", &figures.reads, Span::Service));
        table.push(latency("update_all", &figures.updates, Span::Service));
    }
    let mut text = table.join("\n") + "\n";
    figures.lines(&mut text, report.measurement, layout.peak).expect("text can always be added to");
    text
}

/// The first line of `--scan`.
pub fn scan_header(layout: &Layout) -> String {
    format!("{} {:>8} {:>8}\n", header(layout), "QPS", "target")
}

/// The line of one rate of `--scan`.
pub fn scan_row(report: &Report<'_>, layout: &Layout, target: u32) -> String {
    let figures = Figures::of(report.plan, report.measurement, report.summary);
    let (times, span) = (figures.read_rows.times.of(Span::Service), Span::Service);
    let unanswered = unanswered(&figures.read_rows, span, report.measurement);
    let read = row("read", times, span, &unanswered, MICROSECOND as f64, layout);
    format!("{read} {:8.1} {target:8}\n", figures.rate())
}

/// Requests per second, as the report prints them.
pub fn rate(report: &Report<'_>) -> f64 {
    Figures::of(report.plan, report.measurement, report.summary).rate()
}

/// The service time in microseconds below which `nth` per cent of the requests of this process lie. It is infinite where
/// that is not known, because nothing was completed or too many requests are without an answer.
pub fn order_statistic_us(plan: &Plan, measurement: &Measurement, nth: f64) -> f64 {
    let own = own_ops(plan, measurement).all();
    let times = own.times.of(Span::Service);
    let unanswered = unanswered(&own, Span::Service, measurement);
    match quantile(Span::Service, times, &unanswered, nth / 100.0) {
        Quantile::Known(ns) => ns as f64 / MICROSECOND as f64,
        Quantile::Above(_) | Quantile::Absent => f64::INFINITY,
    }
}

/// The requests of this process per second, and their number.
pub fn local_rate(plan: &Plan, measurement: &Measurement, summary: &Summary) -> (f64, u64) {
    let completed = own_ops(plan, measurement).counts().completed;
    let rate = if summary.seconds > 0.0 { completed as f64 / summary.seconds } else { 0.0 };
    (rate, completed)
}

/// The operations of this process, which are those of the rows: of all groups in a run without agents, and otherwise of
/// those that stay here.
fn own_ops(plan: &Plan, measurement: &Measurement) -> Ops {
    let mut ops = Ops::default();
    for (group, measured) in plan.groups.iter().zip(&measurement.groups) {
        if measurement.agents.is_none() || group.policy.here {
            ops.merge(&measured.ops);
        }
    }
    ops
}

/// The requests that a row misses for want of an answer. A request that was due and was never sent has no service time,
/// which is what the original's rows show; it counts in the rows of the response time.
fn unanswered(rows: &OpRecord, span: Span, measurement: &Measurement) -> Unanswered {
    let all = Unanswered::of(&rows.counts, span, rows.times.of(span), measurement.timeout_ns);
    match span {
        Span::Service => Unanswered { others: all.others.saturating_sub(rows.counts.unsent), ..all },
        _ => all,
    }
}

/// The percentiles of the columns, in their order.
fn columns(layout: &Layout) -> impl Iterator<Item = (&'static str, f64)> {
    const COLUMNS: [(&str, f64, bool); 7] = [
        ("5th", 0.05, false),
        ("10th", 0.1, false),
        ("50th", 0.5, true),
        ("90th", 0.9, false),
        ("95th", 0.95, false),
        ("99th", 0.99, false),
        ("99.9th", 0.999, true),
    ];
    let all = layout.p50;
    COLUMNS.into_iter().filter(move |(_, _, added)| all || !added).map(|(name, share, _)| (name, share))
}

fn header(layout: &Layout) -> String {
    let names = ["avg", "std", "min"].into_iter().chain(columns(layout).map(|(name, _)| name));
    names.fold(format!("{:<7}", "#type"), |line, name| format!("{line} {name:>7}"))
}

/// A line of the table, in units of so many of the histogram's. A quantile that falls among the requests without an answer
/// is `>` and what it is more than, in one field.
fn row(
    name: &str,
    times: &Histogram,
    span: Span,
    unanswered: &Unanswered,
    unit: f64,
    layout: &Layout,
) -> String {
    let moments = times.moments();
    let least = if moments.count == 0 { 0.0 } else { moments.min as f64 };
    let first = [moments.mean_ns().unwrap_or(0.0), moments.stddev_ns().unwrap_or(0.0), least];
    let line = first.iter().fold(format!("{name:<7}"), |line, value| format!("{line} {:7.1}", value / unit));
    columns(layout).fold(line, |line, (_, share)| {
        let field = match quantile(span, times, unanswered, share) {
            Quantile::Known(value) => format!("{:.1}", value as f64 / unit),
            Quantile::Above(bound) => format!(">{:.1}", bound as f64 / unit),
            Quantile::Absent => "0.0".to_owned(),
        };
        format!("{line} {field:>7}")
    })
}

/// What the original counts.
struct Figures {
    read_rows: OpRecord,
    update_rows: OpRecord,
    reads: OpRecord,
    updates: OpRecord,
    /// Only reads that found something and stores that stored are counted.
    successes_only: bool,
    seconds: f64,
}

impl Figures {
    fn of(plan: &Plan, measurement: &Measurement, summary: &Summary) -> Figures {
        let ops = measurement.ops();
        let rows = own_ops(plan, measurement);
        Figures {
            read_rows: together(&rows, Verb::reads),
            update_rows: together(&rows, Verb::stores),
            reads: together(&ops, Verb::reads),
            updates: together(&ops, Verb::stores),
            successes_only: plan.groups.iter().all(|group| group.policy.successes_only),
            seconds: summary.seconds,
        }
    }

    fn total(&self) -> u64 {
        let (reads, updates) = (&self.reads.counts, &self.updates.counts);
        match self.successes_only {
            true => reads.hits + updates.outcomes.stored,
            false => reads.completed + updates.completed,
        }
    }

    fn rate(&self) -> f64 {
        self.per_second(self.total() as f64)
    }

    fn per_second(&self, amount: f64) -> f64 {
        if self.seconds > 0.0 { amount / self.seconds } else { 0.0 }
    }

    /// Everything below the table.
    fn lines(&self, text: &mut String, measurement: &Measurement, peak: Option<f64>) -> std::fmt::Result {
        let Counts { misses, completed: gets, .. } = self.reads.counts;
        let (total, skipped) = (self.total(), measurement.counters.skipped.requests);
        writeln!(text, "\nTotal QPS = {:.1} ({total} / {:.1}s)", self.rate(), self.seconds)?;
        if let Some(peak) = peak {
            writeln!(text, "Peak QPS  = {peak:.1}")?;
        }
        writeln!(text, "\nMisses = {misses} ({:.1}%)", percent(misses, gets))?;
        writeln!(text, "Skipped TXs = {skipped} ({:.1}%)\n", percent(skipped, total))?;
        for (name, bytes) in
            [("RX", measurement.counters.bytes.received), ("TX", measurement.counters.bytes.sent)]
        {
            let rate = self.per_second(bytes as f64 / MEGABYTE);
            writeln!(text, "{name} {bytes:10} bytes : {rate:6.1} MB/s")?;
        }
        Ok(())
    }
}

fn together(ops: &Ops, which: fn(Verb) -> bool) -> OpRecord {
    let mut all = OpRecord::default();
    for (_, op) in ops.iter().filter(|(verb, _)| which(*verb)) {
        all.merge(op);
    }
    all
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use pummel_logic::protocol::{Fault, Outcome};
    use pummel_logic::time::{MICROSECOND, SECOND};
    use pummel_measure::measurement::Keep;
    use pummel_measure::recorder::Sample;

    use super::*;
    use pummel_report::example::Run;

    const PLAIN: Layout = Layout { response: false, p50: false, all_rows: false, peak: None };

    /// A run of two seconds without a request.
    fn empty() -> Run {
        let mut run = Run::new(Keep::Figures);
        let plan = &run.plan;
        let names = plan.groups.iter().map(|group| group.name.clone());
        run.measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
        run.measurement.measured_ns = 2 * SECOND;
        run
    }

    /// A run of two seconds in which these requests were answered, each after so many microseconds; they were due 5 us
    /// before they were sent.
    fn run(requests: &[(Verb, Outcome, u64)]) -> Run {
        let mut run = empty();
        run.interval(0, Keep::Figures, |interval| {
            interval.side_times.outstanding = Some(Box::default());
            for &(verb, outcome, took_us) in requests {
                interval.side_times.outstanding.as_mut().expect("just made").record(1);
                interval.groups[0].record(&Sample {
                    verb,
                    outcome,
                    keys: 1,
                    hits: u32::from(outcome == Outcome::Hit),
                    due: 0,
                    ready: 0,
                    sent: 5 * MICROSECOND,
                    arrived: (5 + took_us) * MICROSECOND,
                    read: (9 + took_us) * MICROSECOND,
                    noreply: false,
                });
            }
        });
        run
    }

    fn four() -> Run {
        let mut run = run(&[
            (Verb::Get, Outcome::Hit, 10),
            (Verb::Get, Outcome::Miss, 30),
            (Verb::Set, Outcome::Stored, 1_500),
            (Verb::Get, Outcome::Hit, 20),
        ]);
        run.measurement.counters.skipped.requests = 3;
        run
    }

    #[test]
    fn a_percentile_among_requests_without_an_answer_is_more_than_the_longest_answer() {
        let mut requests = vec![(Verb::Get, Outcome::Hit, 20); 97];
        requests.extend(vec![(Verb::Get, Outcome::Error(Fault::Closed), 0); 3]);
        let run = run(&requests);
        let text = run.report(|report| render(report, &PLAIN));
        let row = "read       20.0     0.0    20.0    20.0    20.0    20.0    20.0   >20.0\n";
        assert!(text.contains(row), "{text}");
        assert_eq!(order_statistic_us(&run.plan, &run.measurement, 97.0), 20.0);
        assert_eq!(order_statistic_us(&run.plan, &run.measurement, 98.0), f64::INFINITY);
    }

    #[test]
    fn a_run_without_a_request_is_all_zeros() {
        let expected = "\
#type       avg     std     min     5th    10th    90th    95th    99th
read        0.0     0.0     0.0     0.0     0.0     0.0     0.0     0.0
update      0.0     0.0     0.0     0.0     0.0     0.0     0.0     0.0
op_q        0.0     0.0     0.0     0.0     0.0     0.0     0.0     0.0

Total QPS = 0.0 (0 / 2.0s)

Misses = 0 (0.0%)
Skipped TXs = 0 (0.0%)

RX          0 bytes :    0.0 MB/s
TX          0 bytes :    0.0 MB/s
";
        assert_eq!(empty().report(|report| render(report, &PLAIN)), expected);
    }

    #[test]
    fn the_report_has_every_figure_in_its_place() {
        let expected = "\
#type       avg     std     min     5th    10th    90th    95th    99th
read       20.0     8.2    10.0    10.0    10.0    30.0    30.0    30.0
update   1500.0     0.0  1500.0  1500.0  1500.0  1500.0  1500.0  1500.0
op_q        1.0     0.0     1.0     1.0     1.0     1.0     1.0     1.0

Total QPS = 2.0 (4 / 2.0s)

Misses = 1 (33.3%)
Skipped TXs = 3 (75.0%)

RX     210000 bytes :    0.1 MB/s
TX      60000 bytes :    0.0 MB/s
";
        assert_eq!(four().report(|report| render(report, &PLAIN)), expected);
    }

    #[test]
    fn a_search_adds_its_peak_and_pummel_its_rows_and_columns() {
        let layout = Layout { response: true, p50: true, all_rows: false, peak: Some(28_168.84) };
        let expected = "\
#type       avg     std     min     5th    10th    50th    90th    95th    99th  99.9th
read       20.0     8.2    10.0    10.0    10.0    20.0    30.0    30.0    30.0    30.0
update   1500.0     0.0  1500.0  1500.0  1500.0  1500.0  1500.0  1500.0  1500.0  1500.0
op_q        1.0     0.0     1.0     1.0     1.0     1.0     1.0     1.0     1.0     1.0
read_rt    25.0     8.2    15.0    15.0    15.0    25.0    35.0    35.0    35.0    35.0
update_rt  1505.0     0.0  1505.0  1505.0  1505.0  1505.0  1505.0  1505.0  1505.0  1505.0

Total QPS = 2.0 (4 / 2.0s)
Peak QPS  = 28168.8

Misses = 1 (33.3%)
";
        let text = four().report(|report| render(report, &layout));
        assert_eq!(text[..expected.len()], *expected);
    }

    #[test]
    fn a_scan_has_its_labels_above_its_values() {
        let lines = four().report(|report| scan_header(&PLAIN) + &scan_row(report, &PLAIN, 1_000));
        let expected = "\
#type       avg     std     min     5th    10th    90th    95th    99th      QPS   target
read       20.0     8.2    10.0    10.0    10.0    30.0    30.0    30.0      2.0     1000
";
        assert_eq!(lines, expected);
    }

    /// [`four`] as the requests of an agent, beside one of the master's.
    fn beside_an_agent() -> Run {
        let mut run = four();
        let (mut group, mut measured) =
            (run.plan.groups[0].clone(), self::run(&[(Verb::Get, Outcome::Hit, 70)]));
        (group.name, group.policy.here) = ("clients".to_owned(), true);
        run.plan.groups[0].name = "agent 1".to_owned();
        run.plan.groups.insert(0, group);
        run.measurement.groups.insert(0, measured.measurement.groups.remove(0));
        run.measurement.agents = Some(Default::default());
        run
    }

    #[test]
    fn beside_agents_rows_and_the_order_statistic_are_the_masters_and_all_rows_are_those_of_all() {
        let run = beside_an_agent();
        let layout = Layout { all_rows: true, ..PLAIN };
        let text = run.report(|report| render(report, &layout));
        let expected = "\
#type       avg     std     min     5th    10th    90th    95th    99th
read       70.0     0.0    70.0    70.0    70.0    70.0    70.0    70.0
update      0.0     0.0     0.0     0.0     0.0     0.0     0.0     0.0
";
        assert!(text.starts_with(expected), "{text}");
        let read_all = text.lines().find(|line| line.starts_with("read_all ")).expect("a row of all");
        assert!(read_all.starts_with("read_all    32.5 "), "{text}");
        assert!(text.lines().any(|line| line.starts_with("update_all  1500.0 ")), "{text}");
        assert!(text.contains("\nTotal QPS = 2.5 (5 / 2.0s)\n"), "{text}");
        for nth in [1.0, 50.0, 100.0] {
            assert_eq!(order_statistic_us(&run.plan, &run.measurement, nth).round(), 70.0);
        }
    }

    #[test]
    fn only_successes_count_where_that_is_asked_for_and_misses_are_a_share_of_all_reads() {
        let mut run = four();
        run.plan.groups[0].policy.successes_only = true;
        let text = run.report(|report| render(report, &PLAIN));
        assert!(text.contains("\nTotal QPS = 1.5 (3 / 2.0s)\n"), "{text}");
        assert!(text.contains("\nMisses = 1 (33.3%)\nSkipped TXs = 3 (100.0%)\n"), "{text}");
    }

    #[test]
    fn totals_have_more_than_32_bits() {
        let mut run = four();
        let ops = &mut run.measurement.groups[0].ops;
        for _ in 0..31 {
            let same = ops.clone();
            ops.merge(&same);
        }
        run.measurement.counters.bytes.received = 1_500_000_000_000;
        let text = run.report(|report| render(report, &PLAIN));
        assert!(text.contains("\nTotal QPS = 4294967296.0 (8589934592 / 2.0s)\n"), "{text}");
        assert!(text.contains("\nRX 1500000000000 bytes : 715255.7 MB/s\n"), "{text}");
    }

    #[test]
    fn the_order_statistic_of_a_search_is_that_of_all_requests() {
        let run = four();
        let us = |nth| order_statistic_us(&run.plan, &run.measurement, nth);
        assert_eq!((us(25.0).round(), us(50.0).round(), us(75.0).round()), (10.0, 20.0, 30.0));
        assert!((us(100.0) - 1_500.0).abs() < 2.0);
        let empty = empty();
        assert_eq!(
            order_statistic_us(&empty.plan, &empty.measurement, 95.0),
            f64::INFINITY,
            "it is not known"
        );
    }
}
