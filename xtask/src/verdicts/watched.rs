//! The cost of being watched: runs with `--metrics` and with `--live`, and runs without, by turns.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::paired::{Pairs, figure};
use super::scenario::Scenario;
use super::stage::{Stage, Theatre};
use crate::spread::Spread;

/// The greatest median difference of the CPU time of all threads but the client threads, in percent of one CPU. What being watched
/// costs those is a part of the CPU time of a request.
const CPU_PERCENT_MAX: f64 = 0.5;

/// The greatest median difference of the peak of the memory, in MB.
const MEMORY_MB_MAX: f64 = 3.0;

/// Time between two scrapes of the runs that serve metrics: more often than Prometheus asks by default.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);

/// Time between two looks at the memory and the threads of a run.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks at the threads that are left out, in which a run begins.
const LOOKS_OUT: u32 = 2;

/// The loads that are compared.
const LOADS: [&str; 2] = ["-c 50 --rate 20k", "-c 50"];

/// Way in which a run is watched.
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

/// Measures and prints; false when a figure is not good enough, and when the time left nothing to compare.
pub fn run(theatre: &Theatre, rounds: usize, seconds: f64) -> io::Result<bool> {
    if !["/usr/bin/script", "/bin/script"].iter().any(|path| Path::new(path).exists()) {
        return Err(io::Error::other("script (bsdutils) is needed for runs in a terminal of their own"));
    }
    println!("\nWatched and not, in turns, {rounds} rounds of {seconds} s, memcached -t 1.\n");
    println!("| watched by | load | figure | with | without | difference or ratio | of all rounds | |");
    println!("|---|---|---|---|---|---|---|---|");
    let scenario = Scenario::quiet("--records 10k");
    let stage = Stage::set(theatre, &scenario)?;
    let mut good = true;
    for way in WatchedBy::ALL {
        for load in LOADS {
            let mut compared = Compared::default();
            for round in 0..rounds {
                if theatre.is_over() {
                    break;
                }
                // Who begins takes turns, so that a machine that changes its pace favours neither.
                for is_watched in [round % 2 == 0, round % 2 == 1] {
                    let (result, looks) = watched_run(&stage, way, is_watched, load, seconds)?;
                    compared.add(is_watched, &result, &looks)?;
                }
            }
            good &= compared.print(way.name(), load);
        }
    }
    Ok(good)
}

/// Looks at a process while it ran.
#[derive(Default)]
struct Looks {
    count: u32,
    /// The peak of its memory, in bytes.
    peak_bytes: u64,
    /// When its threads were looked at first and last, and the CPU time of all but the client threads until then, in nanoseconds.
    others: Option<[(Instant, u64); 2]>,
}

impl Looks {
    fn look(&mut self, pid: u32) {
        self.count += 1;
        self.peak_bytes = self.peak_bytes.max(peak_of(pid));
        if let Some(cpu_ns) = others_ns(pid).filter(|_| self.count > LOOKS_OUT) {
            let now = (Instant::now(), cpu_ns);
            self.others = Some([self.others.map_or(now, |[first, _]| first), now]);
        }
    }

    /// The CPU time of all threads but the client threads, in percent of one CPU.
    fn others_percent(&self) -> io::Result<f64> {
        let [(from, before_ns), (to, after_ns)] =
            self.others.ok_or_else(|| io::Error::other("the run was over before its threads were seen"))?;
        let span_s = (to - from).as_secs_f64();
        match span_s > 0.0 {
            true => Ok(after_ns.saturating_sub(before_ns) as f64 / 1e9 / span_s * 100.0),
            false => Err(io::Error::other("the run was too short for its threads to be seen twice")),
        }
    }
}

/// Makes one run. Returns its result and what was seen of it.
fn watched_run(
    stage: &Stage<'_>,
    way: WatchedBy,
    is_watched: bool,
    load: &str,
    seconds: f64,
) -> io::Result<(Value, Looks)> {
    let (is_over, looks) = (AtomicBool::new(false), Mutex::new(Looks::default()));
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
            let (is_over, looks) = (&is_over, &looks);
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    looks.lock().expect("nothing panics with it").look(pid);
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
    Ok((result, looks.into_inner().expect("nothing panics with it")))
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

/// The CPU time of all threads of a run but its client threads, in nanoseconds, of a process or of one that it started; `None` where
/// no client thread is there.
fn others_ns(pid: u32) -> Option<u64> {
    let mut sum_ns = 0;
    let mut has_clients = false;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        if read("comm").starts_with("worker") {
            has_clients = true;
        } else {
            sum_ns += cpu_ns(&read("schedstat")).unwrap_or(0);
        }
    }
    if has_clients {
        return Some(sum_ns);
    }
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().filter_map(|child| child.parse().ok()).find_map(others_ns)
}

/// The CPU time in the `schedstat` of a thread.
fn cpu_ns(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
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
    fn add(&mut self, is_watched: bool, result: &Value, looks: &Looks) -> io::Result<()> {
        let cpu_us = figure(result, "CPU us per request", "/generator/cpu_us_per_request")?;
        let of = |path: &str| figure(result, "service time", path);
        self.cpu_percent.push(is_watched, looks.others_percent()?);
        self.cpu_us.push(is_watched, cpu_us);
        self.p50_us.push(is_watched, of("/totals/service_us/p50")?);
        self.p99_us.push(is_watched, of("/totals/service_us/p99")?);
        self.peak_mb.push(is_watched, looks.peak_bytes as f64 / 1e6);
        Ok(())
    }

    /// Prints all figures; false where one is not good enough.
    fn print(&self, way: &str, load: &str) -> bool {
        let mut good = true;
        let is_open = load.contains("--rate");
        // In closed loop a worker takes all of its CPU, watched or not: there the CPU time of a request tells.
        let differences = [
            ("% of one CPU beside the client threads", &self.cpu_percent, CPU_PERCENT_MAX),
            ("peak MB", &self.peak_mb, MEMORY_MB_MAX),
        ];
        for (name, pairs, bar) in differences {
            let differences = pairs.differences();
            let is_good = Spread::of(differences.iter().copied()).median <= bar;
            good &= is_good;
            let word = if is_good { format!("up to {bar}") } else { format!("ABOVE {bar}") };
            println!("| {way} | {load} | {name} | {} | {word} |", pairs.cells(differences, 2));
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
            println!("| {way} | {load} | {name} | {} | {word} |", pairs.cells(pairs.ratios(), 3));
        }
        good
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(p50_us: f64) -> Value {
        json!({"generator": {"cpu_us_per_request": 4.0}, "totals": {"service_us": {"p50": p50_us, "p99": 80.0}}})
    }

    /// A run with this peak of its memory, whose other threads had this share of a CPU in a second.
    fn looks(peak_bytes: u64, percent: f64) -> Looks {
        let begin = Instant::now();
        let end = (begin + Duration::from_secs(1), (percent * 1e7) as u64);
        Looks { peak_bytes, others: Some([(begin, 0), end]), ..Looks::default() }
    }

    #[test]
    fn a_run_that_is_watched_may_cost_half_a_percent_of_a_cpu() {
        for (percent, peak_bytes, expected) in
            [(0.9, 12_000_000, true), (1.1, 12_000_000, false), (0.9, 14_000_000, false)]
        {
            let mut compared = Compared::default();
            for p50_us in [41.0, 40.0, 39.0] {
                compared.add(false, &result(40.0), &looks(10_000_000, 0.5)).unwrap();
                compared.add(true, &result(p50_us), &looks(peak_bytes, percent)).unwrap();
            }
            assert_eq!(compared.print("", "-c 1 --rate 20k"), expected, "{percent} {peak_bytes}");
        }
    }

    #[test]
    fn a_process_without_client_threads_has_no_other_threads_than_its_own() {
        assert_eq!(others_ns(u32::MAX), None);
        assert!(Looks::default().others_percent().is_err());
        assert_eq!(cpu_ns("12 34 5\n"), Some(12));
    }

    #[test]
    fn memory_is_that_of_the_process_and_of_those_that_it_started() {
        assert!(peak_of(std::process::id()) > 1 << 20);
        assert_eq!(peak_of(u32::MAX), 0);
        assert_eq!(kibibytes("   5120 kB"), Some(5_120));
    }
}
