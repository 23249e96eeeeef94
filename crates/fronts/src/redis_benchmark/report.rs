//! redis-benchmark's reports of a test: the same lines in the same layout, with times of a microsecond's step.

use std::borrow::Cow;
use std::fmt::Write as _;

use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos};
use pummel_measure::histogram::{Histogram, rank};

/// The columns of the summary and of `--csv`: names and quantiles between the least and the greatest.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.50), ("p95", 0.95), ("p99", 0.99)];

/// The greatest of the percentiles of the distribution that are named; those above print as 100.
const HALVINGS_MAX: i32 = 40;

/// The figures of a test.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    /// Requests that were completed.
    pub completed: u64,
    /// Length of the test, in seconds.
    pub seconds: f64,
    /// Completed requests per second.
    pub rate: f64,
    /// The service times of the requests.
    pub times: &'a Histogram,
}

/// What a report says of a test beside its figures.
#[derive(Clone, Debug)]
pub struct Setting<'a> {
    /// The title of the test.
    pub title: &'a str,
    /// `-c`.
    pub clients: u32,
    /// Length of the value or of the command, in bytes.
    pub payload_bytes: u64,
    /// Whether connections stay open between batches.
    pub keep_alive: bool,
    /// `--threads`; 0 for one thread.
    pub threads: u32,
    /// The settings of the servers, where they were told.
    pub servers: Vec<ServerSettings<'a>>,
    /// The word for the nodes of a cluster and their number; absent without a cluster.
    pub cluster: Option<(&'static str, usize)>,
    /// `--rps`; 0 without one.
    pub target_rate: u64,
    /// The rates of the intervals of progress, in requests per second.
    pub rates: &'a [f64],
}

/// The settings of a server that reports have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings<'a> {
    /// Times at which it saves a snapshot; empty where it saves none.
    pub save: Cow<'a, str>,
    /// Whether it appends each change to a file.
    pub append_only: Cow<'a, str>,
}

/// Times in milliseconds, as reports print them.
#[derive(Clone, Copy, Debug)]
struct Summary {
    mean: f64,
    least: f64,
    quantiles: [f64; QUANTILES.len()],
    greatest: f64,
}

fn milliseconds(ns: f64) -> f64 {
    ns / MILLISECOND as f64
}

impl Summary {
    fn of(times: &Histogram) -> Summary {
        let at = |rank| times.at_rank(rank).map_or(0.0, |ns| milliseconds(ns as f64));
        let count = times.count();
        Summary {
            mean: times.moments().mean_ns().map_or(0.0, milliseconds),
            least: at(1),
            quantiles: QUANTILES.map(|(_, quantile)| at(rank(quantile, count))),
            greatest: at(count),
        }
    }

    /// The times in the order of the columns.
    fn columns(&self) -> [f64; 6] {
        let [p50, p95, p99] = self.quantiles;
        [self.mean, self.least, p50, p95, p99, self.greatest]
    }
}

/// The line of `-q`.
pub fn quiet(title: &str, figures: &Figures<'_>) -> String {
    let p50 = Summary::of(figures.times).quantiles[0];
    format!("{title}: {:.2} requests per second, p50={p50:.3} msec\n", figures.rate)
}

/// The first line of `--csv`.
pub const CSV_HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
                            \"p99_latency_ms\",\"max_latency_ms\"\n";

/// The line of a test of `--csv`.
pub fn csv(title: &str, figures: &Figures<'_>) -> String {
    let times = Summary::of(figures.times).columns().map(|time| format!(",\"{time:.3}\""));
    format!("\"{}\",\"{:.2}\"{}\n", title.replace('"', "\"\""), figures.rate, times.concat())
}

/// The whole report.
pub fn full(setting: &Setting<'_>, figures: &Figures<'_>) -> String {
    let mut text = String::new();
    write_full(setting, figures, &mut text).expect("text can always be added to");
    text
}

fn write_full(setting: &Setting<'_>, figures: &Figures<'_>, text: &mut String) -> std::fmt::Result {
    writeln!(text, "====== {} ======", setting.title)?;
    writeln!(text, "  {} requests completed in {:.2} seconds", figures.completed, figures.seconds)?;
    writeln!(text, "  {} parallel clients", setting.clients)?;
    writeln!(text, "  {} bytes payload", setting.payload_bytes)?;
    writeln!(text, "  keep alive: {}", u8::from(setting.keep_alive))?;
    match (setting.cluster, &setting.servers[..]) {
        (Some((kind, nodes)), servers) => {
            writeln!(text, "  cluster mode: yes ({nodes} {kind})")?;
            for (number, ServerSettings { save, append_only }) in servers.iter().enumerate() {
                let save = if save.is_empty() { "NONE" } else { save };
                writeln!(
                    text,
                    "  node [{number}] configuration:\n    save: {save}\n    appendonly: {append_only}"
                )?;
            }
        }
        (None, [ServerSettings { save, append_only }, ..]) => {
            writeln!(text, "  host configuration \"save\": {save}")?;
            writeln!(text, "  host configuration \"appendonly\": {append_only}")?;
        }
        (None, []) => {}
    }
    writeln!(text, "  multi-thread: {}", if setting.threads > 0 { "yes" } else { "no" })?;
    if setting.threads > 0 {
        writeln!(text, "  threads: {}", setting.threads)?;
    }
    if setting.target_rate > 0 {
        writeln!(text, "\nRPS Summary:\n  target RPS: {:.2}", setting.target_rate as f64)?;
        writeln!(text, "  RPS distribution (reqs/sec):")?;
        write_columns(spread(setting.rates), text)?;
    }
    writeln!(text, "\nLatency by percentile distribution:")?;
    by_percentile(figures.times, text)?;
    writeln!(text, "\nCumulative distribution of latencies:")?;
    cumulative(figures.times, text)?;
    writeln!(text, "\nSummary:")?;
    writeln!(text, "  throughput summary: {:.2} requests per second", figures.rate)?;
    writeln!(text, "  latency summary (msec):")?;
    write_columns(Summary::of(figures.times).columns(), text)
}

/// The names of the columns, and the values below them.
fn write_columns(values: [f64; 6], text: &mut String) -> std::fmt::Result {
    let names = ["avg", "min", QUANTILES[0].0, QUANTILES[1].0, QUANTILES[2].0, "max"];
    writeln!(text, "    {}", names.map(|name| format!("{name:>9}")).join(" "))?;
    writeln!(text, "    {}", values.map(|value| format!("{value:9.3}")).join(" "))
}

/// Mean, least, quantiles and greatest of some values; zeros where there are none.
fn spread(values: &[f64]) -> [f64; 6] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |rank: u64| sorted.get(rank as usize - 1).copied().unwrap_or_default();
    let count = sorted.len() as u64;
    let mean = sorted.iter().sum::<f64>() / count.max(1) as f64;
    let [p50, p95, p99] = QUANTILES.map(|(_, quantile)| at(rank(quantile, count)));
    [mean, at(1), p50, p95, p99, at(count.max(1))]
}

/// The lines at 0, 50, 75, 87.5 per cent and so on, up to the one that has all requests, and one for 100 per cent. A line that has as
/// many requests as the one before is left out.
fn by_percentile(times: &Histogram, text: &mut String) -> std::fmt::Result {
    let total = times.count();
    let mut before = None;
    for halving in 0..=HALVINGS_MAX {
        let share = 1.0 - 0.5f64.powi(halving);
        let Some(value_ns) = times.at_rank(rank(share, total)) else { break };
        let (limit_us, count) = up_to(times, value_ns);
        if before != Some(count) || count == total {
            write_percent(100.0 * share, limit_us, count, text)?;
        }
        before = Some(count);
        if count == total {
            break;
        }
    }
    match times.at_rank(total) {
        Some(greatest_ns) => write_percent(100.0, up_to(times, greatest_ns).0, total, text),
        None => Ok(()),
    }
}

/// The lines at steps of 100 us, and of 1 ms above 2 ms, up to the one that has all requests. A line that has as many requests as the
/// one before is left out.
fn cumulative(times: &Histogram, text: &mut String) -> std::fmt::Result {
    let total = times.count();
    let (mut before, mut count, mut limit_us) = (None, 0, 0);
    let mut cells = cells(times).peekable();
    while let Some(&(next_ns, _)) = cells.peek() {
        limit_us += if limit_us < 2_000 { 100 } else { 1_000 };
        // Steps without a request are passed together.
        if limit_us >= 2_000 && next_ns > limit_us * MICROSECOND && before == Some(count) {
            limit_us = limit_us.max(next_ns.div_ceil(MILLISECOND) * 1_000);
        }
        while let Some((_, more)) = cells.next_if(|(highest, _)| *highest <= limit_us * MICROSECOND) {
            count += more;
        }
        if before != Some(count) {
            write_percent(100.0 * count as f64 / total as f64, limit_us, count, text)?;
        }
        before = Some(count);
    }
    Ok(())
}

/// The time in whole microseconds that is not below this one, and the number of requests up to it.
fn up_to(times: &Histogram, value_ns: Nanos) -> (u64, u64) {
    let limit_us = value_ns.div_ceil(MICROSECOND);
    let is_within = |(highest, _): &(Nanos, u64)| *highest <= limit_us * MICROSECOND;
    (limit_us, cells(times).take_while(is_within).map(|(_, count)| count).sum())
}

/// The cells that hold something: greatest value, at most the greatest of all, and count.
fn cells(times: &Histogram) -> impl Iterator<Item = (Nanos, u64)> {
    let greatest = times.moments().max;
    times.cells().map(move |(_, highest, count)| (highest.min(greatest), count))
}

fn write_percent(percent: f64, limit_us: u64, count: u64, text: &mut String) -> std::fmt::Result {
    let limit_ms = limit_us as f64 / 1e3;
    writeln!(text, "{percent:3.3}% <= {limit_ms:.3} milliseconds (cumulative count {count})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: &[(u64, u64)]) -> Histogram {
        let mut times = Histogram::new();
        us.iter().for_each(|(us, count)| times.record_many(us * MICROSECOND, *count));
        times
    }

    fn figures(times: &Histogram) -> Figures<'_> {
        Figures { completed: times.count(), seconds: 0.25, rate: 4_000.0, times }
    }

    #[test]
    fn the_line_of_a_quiet_test_and_of_csv_have_the_form_of_the_original() {
        let times = times(&[(100, 999), (900, 1)]);
        let figures = figures(&times);
        assert_eq!(quiet("SET", &figures), "SET: 4000.00 requests per second, p50=0.100 msec\n");
        assert_eq!(
            csv("a \"b\"", &figures),
            "\"a \"\"b\"\"\",\"4000.00\",\"0.101\",\"0.100\",\"0.100\",\"0.100\",\"0.100\",\"0.900\"\n"
        );
        assert_eq!(CSV_HEAD.matches(',').count(), csv("a", &figures).matches(',').count());
    }

    #[test]
    fn the_whole_report_has_the_lines_of_the_original() {
        let times = times(&[(100, 500), (250, 400), (2_500, 99), (9_000, 1)]);
        let setting = Setting {
            title: "GET",
            clients: 50,
            payload_bytes: 3,
            keep_alive: true,
            threads: 2,
            servers: vec![ServerSettings { save: "3600 1".into(), append_only: "no".into() }],
            cluster: None,
            target_rate: 0,
            rates: &[],
        };
        let text = full(&setting, &figures(&times));
        let expected = "\
====== GET ======
  1000 requests completed in 0.25 seconds
  50 parallel clients
  3 bytes payload
  keep alive: 1
  host configuration \"save\": 3600 1
  host configuration \"appendonly\": no
  multi-thread: yes
  threads: 2

Latency by percentile distribution:
0.000% <= 0.101 milliseconds (cumulative count 500)
75.000% <= 0.251 milliseconds (cumulative count 900)
93.750% <= 2.501 milliseconds (cumulative count 999)
99.902% <= 9.000 milliseconds (cumulative count 1000)
100.000% <= 9.000 milliseconds (cumulative count 1000)

Cumulative distribution of latencies:
";
        assert!(text.starts_with(expected), "{text}");
        let summary = "
Summary:
  throughput summary: 4000.00 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
";
        assert!(text.contains(summary), "{text}");
    }

    #[test]
    fn the_rates_of_a_paced_test_are_spread_below_the_one_asked_for() {
        let times = times(&[(100, 10)]);
        let setting = Setting {
            title: "GET",
            clients: 1,
            payload_bytes: 3,
            keep_alive: true,
            threads: 0,
            servers: Vec::new(),
            cluster: None,
            target_rate: 2_000,
            rates: &[2_010.0, 1_990.0, 1_900.0],
        };
        let text = full(&setting, &figures(&times));
        let expected = "
  multi-thread: no

RPS Summary:
  target RPS: 2000.00
  RPS distribution (reqs/sec):
          avg       min       p50       p95       p99       max
     1966.667  1900.000  1990.000  2010.000  2010.000  2010.000

Latency by";
        assert!(text.contains(expected), "{text}");
        assert_eq!(spread(&[]), [0.0; 6]);
    }

    #[test]
    fn a_test_without_requests_has_a_report() {
        let times = Histogram::new();
        let none = Figures { completed: 0, seconds: 0.0, rate: 0.0, times: &times };
        assert_eq!(quiet("GET", &none), "GET: 0.00 requests per second, p50=0.000 msec\n");
        assert!(!csv("GET", &none).contains("NaN"));
    }
}
