//! memaslap's report: the tables while a run goes on, and what is printed at its end.
//!
//! Latencies are service times (arrival of the reply less the system call that took the request), in whole microseconds.
//! Exact are count, least, greatest, mean and standard deviation; the geometric mean and the distribution come from
//! histograms of three significant digits. A request for several keys is one event; its keys are counted one by one in
//! the columns Ops, TPS and Get_miss.

use std::fmt::Write as _;

use pummel_logic::protocol::Verb;
use pummel_logic::time::{MICROSECOND, Nanos, seconds};
use pummel_logic::workload::window::WindowCounts;
use pummel_measure::histogram::{Histogram, Moments};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::Measurement;
use pummel_measure::recorder::{Ops, Span};
use pummel_report::visible::CLEAR_SCREEN;

/// What `M` stands for in rates.
const MEBI: f64 = (1 << 20) as f64;

/// The shortest run, in seconds, whose time is not printed as 0.0.
const LEAST_TIME_S: f64 = 0.05;

/// Buckets of a distribution that share a line.
const LINE: usize = 4;

/// Buckets of a distribution: one for each power of 2 that a number of 64 bits can be at most.
const BUCKETS: usize = 65;

/// What was done in a stretch of time, gets and sets apart.
#[derive(Clone, Debug, Default)]
pub struct RunStatistics {
    get: CommandStatistics,
    set: CommandStatistics,
}

/// Commands of one kind.
#[derive(Clone, Debug, Default)]
struct CommandStatistics {
    /// Keys.
    ops: u64,
    misses: u64,
    /// Sent and received.
    bytes: u64,
    service: Histogram,
}

/// Which counters are printed at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownCounters {
    /// Counters of verification.
    pub verify: bool,
    /// Counters of expiry.
    pub expire: bool,
    /// Counters of datagrams.
    pub datagrams: bool,
}

impl RunStatistics {
    /// Adds a slice of a run.
    pub fn add(&mut self, interval: &mut Interval) {
        let window = interval.counters.window;
        self.add_bytes(&window);
        for recorder in &mut interval.groups {
            self.add_ops(recorder.ops());
        }
    }

    /// A whole run.
    pub fn of(measurement: &Measurement) -> RunStatistics {
        let mut share = RunStatistics::default();
        share.add_bytes(&measurement.counters.window);
        share.add_ops(&measurement.ops());
        share
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        for class in [&mut self.get, &mut self.set] {
            (class.ops, class.misses, class.bytes) = (0, 0, 0);
            class.service.clear();
        }
    }

    fn add_bytes(&mut self, window: &WindowCounts) {
        self.get.bytes += window.get_bytes;
        self.set.bytes += window.set_bytes;
    }

    fn add_ops(&mut self, ops: &Ops) {
        for (class, verb) in [(&mut self.get, Verb::Get), (&mut self.set, Verb::Set)] {
            let Some(op) = ops.get(verb) else { continue };
            class.ops += op.counts.keys;
            class.misses += op.counts.misses;
            class.service.merge(op.times.of(Span::Service));
        }
    }

    fn total(&self) -> CommandStatistics {
        let mut total = self.get.clone();
        total.ops += self.set.ops;
        total.bytes += self.set.bytes;
        total.service.merge(&self.set.service);
        total
    }
}

/// The tables at `tick_s` seconds: what was done in the last `period_s`, and since the beginning.
pub fn periodic(period: &RunStatistics, global: &RunStatistics, period_s: u64, tick_s: u64) -> String {
    let mut text = format!("{CLEAR_SCREEN}\n");
    let classes = [
        ("Get", period.get.clone(), global.get.clone()),
        ("Set", period.set.clone(), global.set.clone()),
        ("Total", period.total(), global.total()),
    ];
    for (name, period, global) in &classes {
        if global.service.count() == 0 {
            continue;
        }
        let _ = writeln!(text, "{name} Statistics");
        let columns = [
            "Type",
            "Time(s)",
            "Ops",
            "TPS(ops/s)",
            "Net(M/s)",
            "Get_miss",
            "Min(us)",
            "Max(us)",
            "Avg(us)",
            "Std_dev",
            "Geo_dist",
        ];
        let header: Vec<String> =
            columns.iter().zip(WIDTHS).map(|(column, width)| format!("{column:<width$}")).collect();
        text += &header.join(" ");
        text.push('\n');
        row(&mut text, "Period", period, period_s, period_s);
        row(&mut text, "Global", global, tick_s, tick_s);
        text.push('\n');
    }
    text
}

/// Least widths of the columns.
const WIDTHS: [usize; 11] = [8, 8, 12, 12, 10, 10, 8, 10, 10, 10, 10];

fn row(text: &mut String, name: &str, class: &CommandStatistics, time_s: u64, of_s: u64) {
    let figures = TimeFigures::of(&class.service);
    let of_s = of_s.max(1);
    let cells = [
        name.to_owned(),
        time_s.to_string(),
        class.ops.to_string(),
        (class.ops / of_s).to_string(),
        format!("{:.1}", class.bytes as f64 / MEBI / of_s as f64),
        class.misses.to_string(),
        figures.min.to_string(),
        figures.max.to_string(),
        figures.avg.to_string(),
        format!("{:.2}", figures.std),
        format!("{:.2}", figures.geo),
    ];
    let padded: Vec<String> =
        cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:<width$}")).collect();
    // The last column is not padded.
    text.push_str(padded.join(" ").trim_end());
    text.push('\n');
}

/// Everything that is printed at the end of a run; with the distributions where there were tables.
pub fn last(measurement: &Measurement, tables: bool, counters: &ShownCounters) -> String {
    let mut text = String::new();
    if tables {
        let share = RunStatistics::of(measurement);
        let total = share.total();
        for (name, class) in [("Get", &share.get), ("Set", &share.set), ("Total", &total)] {
            statistics(&mut text, name, &class.service);
        }
    }
    let ops = measurement.ops();
    let keys = |verb| ops.get(verb).map_or(0, |op| op.counts.keys);
    let (gets, sets) = (keys(Verb::Get), keys(Verb::Set));
    let misses = ops.get(Verb::Get).map_or(0, |op| op.counts.misses);
    let (window, bytes) = (&measurement.counters.window, &measurement.counters.bytes);
    let udp = measurement.udp.unwrap_or_default();
    let lines = [
        (true, "cmd_get", gets),
        (true, "cmd_set", sets),
        (true, "get_misses", misses),
        (counters.verify, "verify_misses", window.verify_misses),
        (counters.verify, "verify_failed", window.verify_failed),
        (counters.expire, "expired_get", window.expired_get),
        (counters.expire, "unexpired_unget", window.unexpired_unget),
        (true, "written_bytes", bytes.sent),
        (true, "read_bytes", bytes.received),
        (true, "object_bytes", window.object_bytes),
        (counters.datagrams, "packet_disorder", udp.packet_disorder),
        (counters.datagrams, "packet_drop", udp.packet_drop),
        (counters.datagrams, "udp_timeout", udp.udp_timeout),
    ];
    for (_, name, count) in lines.iter().filter(|(shown, _, _)| *shown) {
        let _ = writeln!(text, "{name}: {count}");
    }
    let time_s = seconds(measurement.measured_ns);
    // A rate says nothing of an instant in which all connections were refused or lost.
    let has_rate = gets + sets > 0 || time_s >= LEAST_TIME_S;
    let per_second = |amount: f64| if has_rate && time_s > 0.0 { amount / time_s } else { 0.0 };
    let _ = writeln!(
        text,
        "\nRun time: {time_s:.1}s Ops: {} TPS: {:.0} Net_rate: {:.1}M/s",
        gets + sets,
        per_second((gets + sets) as f64),
        per_second((bytes.sent + bytes.received) as f64 / MEBI)
    );
    text
}

fn statistics(text: &mut String, name: &str, service: &Histogram) {
    let figures = TimeFigures::of(service);
    if figures.count == 0 {
        return;
    }
    let _ = writeln!(text, "{name} Statistics ({} events)", figures.count);
    for (label, value) in [("Min", figures.min), ("Max", figures.max), ("Avg", figures.avg)] {
        let _ = writeln!(text, "   {label}:  {value:>8}");
    }
    let _ = writeln!(text, "   Geo:  {:>8.2}", figures.geo);
    if figures.count > 1 {
        let _ = writeln!(text, "   Std:  {:>8.2}", figures.std);
    }
    text.push_str("   Log2 Dist:");
    let buckets = buckets(service);
    let first = buckets.iter().position(|&count| count > 0).unwrap_or(0) / LINE * LINE;
    let last = buckets.iter().rposition(|&count| count > 0).unwrap_or(0);
    for (at, count) in buckets.iter().enumerate().take(last + 1).skip(first) {
        if at % LINE == 0 {
            let _ = write!(text, "\n      {at:>2}:");
        }
        let _ = write!(text, "   {count:>6}");
    }
    text.push_str("\n\n");
}

/// For each power of 2, how many times, rounded to microseconds, are at most that and more than the one before.
fn buckets(service: &Histogram) -> [u64; BUCKETS] {
    let mut buckets = [0; BUCKETS];
    for (lowest, highest, count) in service.cells() {
        let us = (middle(lowest, highest) + MICROSECOND / 2) / MICROSECOND;
        let bucket = if us <= 1 { 0 } else { u64::BITS - (us - 1).leading_zeros() };
        buckets[bucket as usize] += count;
    }
    buckets
}

fn middle(lowest: Nanos, highest: Nanos) -> Nanos {
    lowest + (highest - lowest) / 2
}

/// What is printed of times, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct TimeFigures {
    count: u64,
    min: u64,
    max: u64,
    avg: u64,
    /// The estimate for the times that these are a sample of.
    std: f64,
    geo: f64,
}

impl TimeFigures {
    fn of(service: &Histogram) -> TimeFigures {
        let moments = service.moments();
        if moments.count == 0 {
            return TimeFigures::default();
        }
        let unit = MICROSECOND as f64;
        let logs: f64 = service
            .cells()
            .map(|(lowest, highest, count)| {
                let ns = middle(lowest, highest).clamp(moments.min, moments.max).max(1);
                (ns as f64 / unit).ln() * count as f64
            })
            .sum();
        TimeFigures {
            count: moments.count,
            min: moments.min / MICROSECOND,
            max: moments.max / MICROSECOND,
            avg: (moments.sum / u128::from(moments.count)) as u64 / MICROSECOND,
            std: sample_deviation_ns(&moments) / unit,
            geo: (logs / moments.count as f64).exp(),
        }
    }
}

fn sample_deviation_ns(moments: &Moments) -> f64 {
    let count = moments.count as f64;
    match moments.stddev_ns() {
        Some(deviation) if moments.count > 1 => deviation * (count / (count - 1.0)).sqrt(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(times_us: &[u64], ops: u64, misses: u64, bytes: u64) -> CommandStatistics {
        let mut service = Histogram::new();
        times_us.iter().for_each(|us| service.record(us * MICROSECOND));
        CommandStatistics { ops, misses, bytes, service }
    }

    #[test]
    fn a_table_has_the_columns_of_the_original() {
        let period =
            RunStatistics { get: class(&[20, 40], 46_476, 0, 101 << 19), set: CommandStatistics::default() };
        let global = RunStatistics {
            get: class(&[20, 40, 80], 130_553, 7, 303 << 19),
            set: class(&[10], 1, 0, 1 << 20),
        };
        let expected = "\u{1b}[1;1H\u{1b}[2J
Get Statistics
Type     Time(s)  Ops          TPS(ops/s)   Net(M/s)   Get_miss   Min(us)  Max(us)    Avg(us)    Std_dev    Geo_dist  
Period   1        46476        46476        50.5       0          20       40         30         14.14      28.29
Global   3        130553       43517        50.5       7          20       80         46         30.55      40.01

Set Statistics
Type     Time(s)  Ops          TPS(ops/s)   Net(M/s)   Get_miss   Min(us)  Max(us)    Avg(us)    Std_dev    Geo_dist  
Period   1        0            0            0.0        0          0        0          0          0.00       0.00
Global   3        1            0            0.3        0          10       10         10         0.00       10.00

Total Statistics
Type     Time(s)  Ops          TPS(ops/s)   Net(M/s)   Get_miss   Min(us)  Max(us)    Avg(us)    Std_dev    Geo_dist  
Period   1        46476        46476        50.5       0          20       40         30         14.14      28.29
Global   3        130554       43518        50.8       7          10       80         37         30.96      28.29

";
        let text = periodic(&period, &global, 1, 3);
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_distribution_begins_with_the_first_line_that_holds_something() {
        let mut text = String::new();
        statistics(&mut text, "Get", &class(&[20, 33, 33, 300, 70_000], 0, 0, 0).service);
        let expected = "\
Get Statistics (5 events)
   Min:        20
   Max:     70000
   Avg:     14077
   Geo:    214.83
   Std:  31262.02
   Log2 Dist:
       4:        0        1        2        0
       8:        0        1        0        0
      12:        0        0        0        0
      16:        0        1

";
        assert_eq!(text, expected, "\n{text}");
        let mut single = String::new();
        statistics(&mut single, "Set", &class(&[1], 0, 0, 0).service);
        assert_eq!(
            single,
            "Set Statistics (1 events)\n   Min:         1\n   Max:         1\n   Avg:         1\n   Geo:      1.00\n   Log2 Dist:\n       0:        1\n\n"
        );
        let mut none = String::new();
        statistics(&mut none, "Set", &Histogram::new());
        assert_eq!(none, "");
    }

    #[test]
    fn times_fall_into_the_least_power_of_two_that_holds_them() {
        let of = |us: u64| buckets(&class(&[us], 0, 0, 0).service).iter().position(|&count| count > 0);
        let expected =
            [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (17, 5), (32, 5), (33, 6)];
        for (us, bucket) in expected {
            assert_eq!(of(us), Some(bucket), "{us} us");
        }
    }

    #[test]
    fn the_end_has_the_counters_of_the_options_that_were_given() {
        let mut measurement = Measurement::new(
            ["clients".to_owned()],
            pummel_logic::plan::Clock::Kernel,
            pummel_logic::time::SECOND,
        );
        measurement.measured_ns = 2 * pummel_logic::time::SECOND;
        (measurement.counters.bytes.sent, measurement.counters.bytes.received) = (3 << 20, 1 << 20);
        measurement.counters.window.object_bytes = 77;
        let plain = "cmd_get: 0\ncmd_set: 0\nget_misses: 0\nwritten_bytes: 3145728\nread_bytes: 1048576\n\
                     object_bytes: 77\n\nRun time: 2.0s Ops: 0 TPS: 0 Net_rate: 2.0M/s\n";
        assert_eq!(last(&measurement, true, &ShownCounters::default()), plain);
        measurement.measured_ns = pummel_logic::time::MILLISECOND;
        let refused = last(&measurement, false, &ShownCounters::default());
        assert!(refused.ends_with("\nRun time: 0.0s Ops: 0 TPS: 0 Net_rate: 0.0M/s\n"), "{refused}");
        let all = last(&measurement, false, &ShownCounters { verify: true, expire: true, datagrams: true });
        let names: Vec<&str> =
            all.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "cmd_get",
                "cmd_set",
                "get_misses",
                "verify_misses",
                "verify_failed",
                "expired_get",
                "unexpired_unget",
                "written_bytes",
                "read_bytes",
                "object_bytes",
                "packet_disorder",
                "packet_drop",
                "udp_timeout",
                "Run time"
            ]
        );
    }
}
