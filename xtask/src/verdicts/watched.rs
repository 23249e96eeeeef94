//! The cost of being watched: runs with `--metrics` and with `--live`, and runs without, by turns.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Deadline;
use super::paired::{Pairs, figure, median};
use super::scenario::{PLAIN, Scenario};
use super::stage::{Stage, Theatre};

/// The greatest median difference of the CPU time, in percent of one CPU.
const CPU_PERCENT_MAX: f64 = 0.5;

/// The greatest median difference of the peak of the memory, in MB.
const MEMORY_MB_MAX: f64 = 3.0;

/// Time between two scrapes of the runs that serve metrics: more often than Prometheus asks by default.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// Time between two looks at the memory of a run.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The loads that are compared.
const LOADS: [&str; 2] = ["-c 50 --rate 20k", "-c 50"];

/// How a run is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchedBy {
    Metrics,
    Live,
}

impl WatchedBy {
    const ALL: [WatchedBy; 2] = [WatchedBy::Metrics, WatchedBy::Live];

    fn name(self) -> &'static str {
        match self {
            WatchedBy::Metrics => "--metrics, a scrape in each second",
            WatchedBy::Live => "--live, 120 x 40",
        }
    }
}

/// The compared figures of the runs of both sides.
#[derive(Default)]
struct Compared {
    cpu_percent: Pairs,
    cpu_us: Pairs,
    p50_us: Pairs,
    p99_us: Pairs,
    peak_mb: Pairs,
}

/// Measures and prints; false when a figure is not good enough, and when the deadline left nothing to compare.
pub fn run(theatre: &Theatre, rounds: usize, (seconds, deadline): (f64, Deadline)) -> io::Result<bool> {
    println!("\nWatched and not, in turns, {rounds} rounds of {seconds} s, memcached -t 1.\n");
    println!("| watched by | load | figure | with | without | difference or ratio | of all rounds | |");
    println!("|---|---|---|---|---|---|---|---|");
    let scenario = Scenario { words: "--records 10k", ..PLAIN };
    let stage = Stage::set(theatre, &scenario)?;
    let mut good = true;
    for way in WatchedBy::ALL {
        for load in LOADS {
            let mut compared = Compared::default();
            for round in 0..rounds {
                if deadline.is_over() {
                    break;
                }
                // Who begins takes turns, so that a machine that changes its pace favours neither.
                for is_watched in [round % 2 == 0, round % 2 == 1] {
                    let (result, peak_bytes) = watched_run(&stage, way, is_watched, load, seconds)?;
                    compared.add(is_watched, &result, peak_bytes)?;
                }
            }
            good &= compared.print(way.name(), load);
        }
    }
    Ok(good)
}

/// Makes one run. Returns its result and the peak of its memory in bytes.
fn watched_run(
    stage: &Stage<'_>,
    way: WatchedBy,
    is_watched: bool,
    load: &str,
    seconds: f64,
) -> io::Result<(Value, u64)> {
    let (is_over, peak_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let line = |pummel: &str, words: &str| match way {
        WatchedBy::Live => {
            // A terminal without a size has no room for a screen.
            let command = format!("stty cols 120 rows 40 && exec {pummel} {words}");
            ["script", "-qec", &command, "/dev/null"].map(str::to_owned).to_vec()
        }
        WatchedBy::Metrics => {
            let words = words.split_whitespace().map(str::to_owned);
            std::iter::once(pummel.to_owned()).chain(words).collect()
        }
    };
    let words = match (way, is_watched) {
        (_, false) => format!("--quiet {load}"),
        (WatchedBy::Live, true) => format!("--live {load}"),
        (WatchedBy::Metrics, true) => format!("--quiet --metrics {port} {load}"),
    };
    let result = thread::scope(|scope| {
        let watcher = |pid: u32| {
            let (is_over, peak_bytes) = (&is_over, &peak_bytes);
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    peak_bytes.fetch_max(peak_of(pid), Ordering::Relaxed);
                    thread::sleep(LOOK_EVERY);
                }
            });
            if way == WatchedBy::Metrics && is_watched {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Acquire) {
                        // Before the server listens, and when the run is over, scrapes get no answer.
                        let _ = scrape(port);
                        thread::sleep(SCRAPE_EVERY);
                    }
                });
            }
        };
        let result = stage.run_as(&words, seconds, line, watcher);
        is_over.store(true, Ordering::Release);
        result
    })?;
    Ok((result, peak_bytes.into_inner()))
}

/// The greatest peak of the resident memory of a process and of those that it started, in bytes; 0 where they are gone.
fn peak_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(kibibytes).unwrap_or(0) * 1024;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let others = children.split_whitespace().filter_map(|child| child.parse().ok()).map(peak_of);
    others.fold(own, u64::max)
}

fn kibibytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn scrape(port: u16) -> io::Result<usize> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(SCRAPE_EVERY))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)
}

impl Compared {
    fn add(&mut self, is_watched: bool, result: &Value, peak_bytes: u64) -> io::Result<()> {
        let cpu_us = figure(result, "CPU us per request", "/generator/cpu_us_per_request")?;
        let completed = figure(result, "completed requests", "/totals/completed")?;
        let seconds = figure(result, "seconds", "/seconds")?;
        let of = |path: &str| figure(result, "service time", path);
        self.cpu_percent.push(is_watched, cpu_us * completed / seconds / 1e6 * 100.0);
        self.cpu_us.push(is_watched, cpu_us);
        self.p50_us.push(is_watched, of("/totals/service_us/p50")?);
        self.p99_us.push(is_watched, of("/totals/service_us/p99")?);
        self.peak_mb.push(is_watched, peak_bytes as f64 / 1e6);
        Ok(())
    }

    /// Prints all figures; false where one is not good enough.
    fn print(&self, way: &str, load: &str) -> bool {
        let mut good = true;
        let is_open = load.contains("--rate");
        // In closed loop a worker takes all of its CPU, watched or not: there the CPU time of a request tells.
        let differences: &[(&str, &Pairs, f64)] = match is_open {
            true => &[
                ("% of one CPU", &self.cpu_percent, CPU_PERCENT_MAX),
                ("peak MB", &self.peak_mb, MEMORY_MB_MAX),
            ],
            false => &[("peak MB", &self.peak_mb, MEMORY_MB_MAX)],
        };
        for (name, pairs, bar) in differences {
            let differences = pairs.differences();
            let is_good = median(&differences) <= *bar;
            good &= is_good;
            let word = if is_good { format!("up to {bar}") } else { format!("ABOVE {bar}") };
            println!("| {way} | {load} | {name} | {} | {word} |", line(pairs, &differences, 2));
        }
        let ratios = [
            ("CPU us per request", &self.cpu_us),
            ("service p50 us", &self.p50_us),
            ("service p99 us", &self.p99_us),
        ];
        for (name, pairs) in ratios.iter().skip(usize::from(is_open)) {
            let is_good = pairs.is_within();
            good &= is_good;
            let word = if is_good { "within" } else { "OUTSIDE" };
            println!("| {way} | {load} | {name} | {} | {word} |", line(pairs, &pairs.ratios(), 3));
        }
        good
    }
}

/// The cells of a row: both medians, that of their comparison, and the least and greatest of it.
fn line(pairs: &Pairs, compared: &[f64], digits: usize) -> String {
    let (with, without) = pairs.medians();
    let (least, most) = (compared.first().unwrap_or(&f64::NAN), compared.last().unwrap_or(&f64::NAN));
    format!("{with:.2} | {without:.2} | {:.digits$} | {least:.digits$} .. {most:.digits$}", median(compared))
}

/// Whether the programs are there that a run in a terminal of its own needs.
pub fn has_terminals() -> bool {
    ["/usr/bin/script", "/bin/script"].iter().any(|path| Path::new(path).exists())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(cpu_us: f64, p50_us: f64) -> Value {
        json!({"seconds": 2.0, "generator": {"cpu_us_per_request": cpu_us},
               "totals": {"completed": 40_000, "service_us": {"p50": p50_us, "p99": 80.0}}})
    }

    #[test]
    fn a_run_that_is_watched_may_cost_half_a_percent_of_a_cpu() {
        for (cpu_us, peak_bytes, expected) in
            [(4.2, 12_000_000, true), (4.3, 12_000_000, false), (4.2, 14_000_000, false)]
        {
            let mut compared = Compared::default();
            for p50_us in [41.0, 40.0, 39.0] {
                compared.add(false, &result(4.0, 40.0), 10_000_000).unwrap();
                compared.add(true, &result(cpu_us, p50_us), peak_bytes).unwrap();
            }
            assert_eq!(compared.print("", "-c 1 --rate 20k"), expected, "{cpu_us} {peak_bytes}");
        }
    }

    #[test]
    fn memory_is_that_of_the_process_and_of_those_that_it_started() {
        assert!(peak_of(std::process::id()) > 1 << 20);
        assert_eq!(peak_of(u32::MAX), 0);
        assert_eq!(kibibytes("   5120 kB"), Some(5_120));
    }
}
