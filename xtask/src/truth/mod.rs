//! `cargo xtask truth`: whether pummel's service times are those of the wire, by a packet capture.

mod capture;
mod exchange;
mod pcap;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;

use crate::bench::Site;
use crate::bench::child::Child;
use crate::bench::rows::Backend;
use crate::bench::server::{Kind, Server};
use crate::network::{Network, Way};
use capture::Capture;
use exchange::Exchanges;

/// Greatest distance of medians, in microseconds.
const P50_WITHIN_US: f64 = 5.0;

/// Greatest distance of the medians of what follows the moment of leaving, in microseconds: nothing of this machine's way
/// out is in them.
const SERVED_P50_WITHIN_US: f64 = 1.0;

/// Greatest distance of 99th percentiles, as a share of that on the wire.
const P99_WITHIN: f64 = 0.10;

/// The share of the completed requests that the capture has to show; what it lost may have been special.
const SEEN_MIN: f64 = 0.99;

/// Time that the program may take beyond its measured time.
const SLACK: Duration = Duration::from_secs(30);

const RECORDS: &str = "--records 10000 --key-size 30 --value-size 200";

/// Compares pummel's service times with those of a packet capture.
///
/// Runs an open loop of text gets beside a capture, for each kernel interface and each way to wait. Exit status 1 when the medians
/// are more than 5 us apart, or the 99th percentiles more than 10 %. Needs memcached, setpriv, taskset and tcpdump, and the right
/// to capture: root, or `setcap cap_net_raw+ep` on tcpdump.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seconds of each run; the capture of more than a minute would fill memory.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Requests per second.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    rate: u32,
    /// Number of connections.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Only this kernel interface.
    #[arg(long)]
    backend: Option<Backend>,
    /// Only this way to wait [default: spin and block].
    #[arg(long, value_parser = ["auto", "spin", "block"])]
    wait: Option<String>,
    /// The time that is compared.
    #[arg(long, value_enum, default_value_t = Part::Service)]
    part: Part,
    /// The way of the requests.
    #[arg(long = "way", value_enum, default_value_t = Cards::Loopback)]
    cards: Cards,
    /// This program, instead of an optimised build.
    #[arg(long, value_name = "FILE")]
    pummel: Option<PathBuf>,
}

/// The time of a request that is compared with the wire.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// From the send to the arrival of the reply.
    Service,
    /// From the moment of leaving (`--stamps tx:1`) to the arrival of the reply, within 1 us at the median.
    Served,
}

/// The cards between client and server.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Cards {
    /// Loopback, which has no card.
    Loopback,
    /// A pair of cards and a namespace that are made for it (needs root and iproute2).
    Veth,
}

impl Cards {
    fn way(self) -> Way {
        match self {
            Cards::Loopback => Way::Loopback,
            Cards::Veth => Way::Beside,
        }
    }
}

impl Part {
    /// Options of `pummel run` beside the rest.
    fn options(self) -> &'static str {
        match self {
            Part::Service => "",
            Part::Served => "--stamps tx:1",
        }
    }

    /// Place of the time in the JSON result, and the distance that its median may have from the wire's.
    fn place(self) -> (&'static str, f64) {
        match self {
            Part::Service => ("/ops/get/service_us", P50_WITHIN_US),
            Part::Served => ("/transmit/served_us", SERVED_P50_WITHIN_US),
        }
    }
}

/// Builds, runs, compares and prints; false when a number is not that of the wire.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    Capture::check()?;
    let site = Site::of(root, options.pummel.as_deref())?;
    let Options { rate, connections, seconds, .. } = options;
    println!(
        "Service times of {rate} gets/s over {connections} connections for {seconds} s, in microseconds.\n"
    );
    let backends = site.backends(options.backend)?;
    if backends.is_empty() {
        return Err(io::Error::other("there is nothing to compare"));
    }
    println!("| backend, wait | on the wire | p50 wire | p50 pummel | p99 wire | p99 pummel | |");
    println!("|---|---|---|---|---|---|---|");
    let mut good = true;
    let waits = options.wait.as_deref().map_or(vec!["spin", "block"], |wait| vec![wait]);
    for backend in backends {
        for wait in &waits {
            let compared = compare(&site, options, backend, wait)?;
            println!("{}", compared.line(&format!("{}, {wait}", backend.name())));
            good &= compared.wrong().is_none();
        }
    }
    Ok(good)
}

fn compare(site: &Site, options: &Options, backend: Backend, wait: &str) -> io::Result<Compared> {
    let network = Network::make(options.cards.way())?;
    let (cpu, scratch) = (site.server_cpu(), site.scratch());
    let server = Server::start_in(&network, (Kind::Memcached, ""), cpu, options.connections, scratch)?;
    let target = format!("--quiet --server {}:{}", network.address(), server.port);
    pummel(site, &format!("load {target} {RECORDS}"))?;
    // Beside the server, since a spinning client leaves nothing of its CPU.
    let capture = Capture::start(&network, server.port, cpu, scratch)?;
    let Options { seconds, rate, connections, .. } = options;
    let json = site.scratch().join("truth.json");
    pummel(
        site,
        &format!(
            "run {target} {RECORDS} --no-load --no-baseline --mix get:1 --threads 1 --connections {connections} --rate {rate} \
             --time {seconds}s --wait {wait} --backend {} {} --json {}",
            backend.name(),
            options.part.options(),
            json.display()
        ),
    )?;
    let captured = capture.stop()?;
    let segments = pcap::segments(&captured.file).map_err(io::Error::other)?;
    let result: Value = serde_json::from_str(&fs::read_to_string(&json)?)?;
    Compared::of(&Exchanges::of(&segments, server.port), captured.dropped, &result, options.part)
        .ok_or_else(|| io::Error::other("pummel's result has no such time of gets"))
}

fn pummel(site: &Site, line: &str) -> io::Result<()> {
    let log = site.scratch().join("truth-pummel");
    let ended = Child::start(site.pummel(), line.split_whitespace(), site.client_cpu(), &[], &log)?
        .wait(SLACK * 3)?;
    match ended.success {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "pummel {line} failed:\n{}",
            fs::read_to_string(log.with_extension("err"))?
        ))),
    }
}

/// Quantiles of both sides, in microseconds.
#[derive(Debug, PartialEq)]
struct Compared {
    completed: f64,
    seen: usize,
    unmatched: u64,
    /// Packets that the kernel could not keep for the capture.
    dropped: u64,
    /// p50 and p99 on the wire.
    wire_us: [f64; 2],
    /// p50 and p99 of pummel.
    pummel_us: [f64; 2],
    part: Part,
}

impl Compared {
    /// `None` where one side has no such times.
    fn of(wire: &Exchanges, dropped: u64, result: &Value, part: Part) -> Option<Compared> {
        let number = |path: &str| result.pointer(path)?.as_f64();
        let on_wire = |q| wire.quantile_ns(q).map_or(0.0, |ns| ns as f64 / 1e3);
        Some(Compared {
            completed: number("/ops/get/completed")?,
            seen: wire.service_ns.len(),
            unmatched: wire.unmatched,
            dropped,
            wire_us: [on_wire(0.5), on_wire(0.99)],
            pummel_us: [
                number(&format!("{}/p50", part.place().0))?,
                number(&format!("{}/p99", part.place().0))?,
            ],
            part,
        })
    }

    /// Sentence about what is not as it has to be.
    fn wrong(&self) -> Option<String> {
        if (self.seen as f64) < self.completed * SEEN_MIN {
            return Some(format!(
                "the capture shows only {} of {} exchanges ({} packets dropped by the kernel): nothing is compared",
                self.seen, self.completed, self.dropped
            ));
        }
        let [p50_wire, p99_wire] = self.wire_us;
        let [p50, p99] = self.pummel_us;
        let p50_apart = p50 - p50_wire;
        let p99_apart = (p99 - p99_wire) / p99_wire;
        if p50_apart.abs() > self.part.place().1 {
            return Some(format!("OUTSIDE: p50 is {p50_apart:+.1} us from the wire's"));
        }
        if p99_apart.abs() > P99_WITHIN {
            return Some(format!("OUTSIDE: p99 is {:+.1} % from the wire's", p99_apart * 100.0));
        }
        None
    }

    fn line(&self, name: &str) -> String {
        let lost = match (self.unmatched, self.dropped) {
            (0, 0) => String::new(),
            (unmatched, dropped) => format!(" ({unmatched} unmatched, {dropped} packets dropped)"),
        };
        format!(
            "| {name} | {} of {}{lost} | {:.1} | {:.1} | {:.1} | {:.1} | {} |",
            self.seen,
            self.completed,
            self.wire_us[0],
            self.pummel_us[0],
            self.wire_us[1],
            self.pummel_us[1],
            self.wrong().unwrap_or_else(|| "within".to_owned())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;
    use serde_json::json;

    fn compared(p50: f64, p99: f64) -> Compared {
        let wire = Exchanges { service_ns: (1..=100).map(|us| us * 1_000).collect(), unmatched: 0 };
        let result = json!({"ops": {"get": {"completed": 100, "service_us": {"p50": p50, "p99": p99}}}});
        Compared::of(&wire, 0, &result, Part::Service).unwrap()
    }

    #[test]
    fn numbers_close_to_the_wire_are_within() {
        for (p50, p99) in [(50.0, 99.0), (55.0, 99.0), (45.0, 108.0), (50.0, 90.0)] {
            assert_eq!(compared(p50, p99).wrong(), None);
        }
        let line = compared(50.0, 99.0).line("epoll, spin");
        assert_eq!(line, "| epoll, spin | 100 of 100 | 50.0 | 50.0 | 99.0 | 99.0 | within |");
    }

    #[test]
    fn numbers_far_from_the_wire_are_told_apart() {
        for (p50, p99, words) in
            [(55.1, 99.0, "p50 is +5.1 us"), (44.0, 99.0, "p50 is -6.0 us"), (50.0, 110.0, "p99 is +11.1 %")]
        {
            let why = compared(p50, p99).wrong().unwrap();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn what_follows_the_moment_of_leaving_has_to_be_within_a_microsecond() {
        let wire = Exchanges { service_ns: (1..=100).map(|us| us * 1_000).collect(), unmatched: 0 };
        for (p50, good) in [(50.9, true), (51.1, false), (48.9, false)] {
            let result = json!({
                "ops": {"get": {"completed": 100, "service_us": {"p50": 54.0, "p99": 99.0}}},
                "transmit": {"served_us": {"p50": p50, "p99": 99.0}},
            });
            let compared = Compared::of(&wire, 0, &result, Part::Served).unwrap();
            assert_eq!(compared.wrong().is_none(), good, "{p50}");
        }
        assert_eq!(options::<Options>("--part served --way veth").cards.way(), Way::Beside);
    }

    #[test]
    fn a_capture_that_lost_much_proves_nothing() {
        let lossy = Compared { completed: 102.0, dropped: 7, ..compared(50.0, 99.0) };
        assert!(lossy.wrong().unwrap().contains("only 100 of 102"));
        assert!(lossy.line("x").contains("7 packets dropped"));
        let empty = Exchanges::default();
        let result = json!({"ops": {"get": {"completed": 5, "service_us": {"p50": 1, "p99": 1}}}});
        assert!(Compared::of(&empty, 0, &result, Part::Service).unwrap().wrong().is_some());
        assert_eq!(Compared::of(&empty, 0, &json!({}), Part::Service), None);
    }
}
