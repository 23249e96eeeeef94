//! `cargo xtask truth`: whether pummel's service times are those of the wire, by a packet capture.

mod capture;
mod exchange;
mod pcap;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::bench::Site;
use crate::bench::backend;
use crate::bench::child::Child;
use crate::bench::rows::Backend;
use crate::bench::server::{Kind, Server};
use crate::network::{Network, Way};
use capture::Capture;
use exchange::Exchanges;

/// What `--help` prints.
pub const HELP: &str = "\
cargo xtask truth [OPTIONS]

Runs an open loop of text gets beside a packet capture and compares the service times that pummel reports with
those on the wire, for each kernel interface and each way to wait. Exit status 1 when the medians are more than 5 us
apart, or the 99th percentiles more than 10 %. With `--part served` every request is stamped when it leaves, and what follows
has to be within 1 us of the wire at the median. Needs memcached, setpriv, taskset and tcpdump, and the right to capture:
root, or `setcap cap_net_raw+ep` on tcpdump.

  --seconds N        seconds of each run [3]
  --rate N           requests per second [20000]
  --connections N    connections [50]
  --backend NAME     only this kernel interface: epoll or uring [both]
  --wait NAME        only this way to wait: auto, spin or block [spin and block]
  --part NAME        what is compared: service, or served (`--stamps tx:1`) [service]
  --way NAME         where the requests go: loopback, or veth, a pair of cards and a namespace that are made for it (root and
                     iproute2) [loopback]
  --pummel FILE      this program, instead of an optimised build
";

/// How far medians may lie apart, in microseconds.
const P50_WITHIN_US: f64 = 5.0;

/// How far the medians of what follows the moment of leaving may lie apart, in microseconds: nothing of this machine's way
/// out is in them.
const SERVED_P50_WITHIN_US: f64 = 1.0;

/// How far 99th percentiles may lie apart, as a share of that on the wire.
const P99_WITHIN: f64 = 0.10;

/// The share of the completed requests that the capture has to show; what it lost may have been special.
const SEEN_MIN: f64 = 0.99;

/// What the program may take beyond its measured time.
const SLACK: Duration = Duration::from_secs(30);

const RECORDS: &str = "--records 10000 --key-size 30 --value-size 200";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub struct Options {
    seconds: u32,
    rate: u32,
    connections: u32,
    backend: Option<Backend>,
    waits: Vec<&'static str>,
    part: Part,
    way: Way,
    pummel: Option<PathBuf>,
}

/// The time of a request that is compared with the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// From the send to the arrival of the reply.
    Service,
    /// From the moment of leaving to the arrival of the reply.
    Served,
}

impl Part {
    /// What `pummel run` is asked for beside the rest.
    fn options(self) -> &'static str {
        match self {
            Part::Service => "",
            Part::Served => "--stamps tx:1",
        }
    }

    /// Where the JSON result has the time, and how far its median may lie from the wire's.
    fn place(self) -> (&'static str, f64) {
        match self {
            Part::Service => ("/ops/get/service_us", P50_WITHIN_US),
            Part::Served => ("/transmit/served_us", SERVED_P50_WITHIN_US),
        }
    }
}

impl Options {
    /// Reads the arguments behind `truth`; the error says what is wrong with them.
    pub fn parse(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options {
            seconds: 3,
            rate: 20_000,
            connections: 50,
            backend: None,
            waits: vec!["spin", "block"],
            part: Part::Service,
            way: Way::Loopback,
            pummel: None,
        };
        let mut rest = arguments.iter();
        while let Some(&name) = rest.next() {
            let value = rest.next().copied().ok_or(format!("{name} needs a value"))?;
            match name {
                // The capture of a minute would fill memory.
                "--seconds" => options.seconds = count(name, value, 60)?,
                "--rate" => options.rate = count(name, value, 200_000)?,
                "--connections" => options.connections = count(name, value, 10_000)?,
                "--backend" => options.backend = Some(backend(value)?),
                "--wait" => {
                    let known = ["auto", "spin", "block"].into_iter().find(|&wait| wait == value);
                    options.waits =
                        vec![known.ok_or(format!("--wait {value}: there are auto, spin, block"))?];
                }
                "--pummel" => options.pummel = Some(PathBuf::from(value)),
                "--way" => {
                    options.way = match value {
                        "loopback" => Way::Loopback,
                        "veth" => Way::Beside,
                        _ => return Err(format!("--way {value}: there are loopback, veth")),
                    }
                }
                "--part" => {
                    options.part = match value {
                        "service" => Part::Service,
                        "served" => Part::Served,
                        _ => return Err(format!("--part {value}: there are service, served")),
                    }
                }
                _ => return Err(format!("truth has no option {name}")),
            }
        }
        Ok(options)
    }
}

fn count(name: &str, value: &str, most: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or(format!("{name} {value}: a whole number from 1 to {most} is needed"))
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
    for backend in backends {
        for wait in &options.waits {
            let compared = compare(&site, options, backend, wait)?;
            println!("{}", compared.line(&format!("{}, {wait}", backend.name())));
            good &= compared.wrong().is_none();
        }
    }
    Ok(good)
}

fn compare(site: &Site, options: &Options, backend: Backend, wait: &str) -> io::Result<Compared> {
    let network = Network::make(options.way)?;
    let (cpu, scratch) = (site.server_cpu(), site.scratch());
    let server = Server::start_in(&network, Kind::Memcached, cpu, options.connections, scratch)?;
    let target = format!("--quiet --server {}:{}", network.address(), server.port);
    pummel(site, &format!("load {target} {RECORDS}"))?;
    // Beside the server, since a spinning client leaves nothing of its CPU.
    let capture = Capture::start(&network, server.port, cpu, scratch)?;
    let Options { seconds, rate, connections, .. } = options;
    let json = site.scratch().join("truth.json");
    pummel(
        site,
        &format!(
            "run {target} {RECORDS} --no-load --mix get:1 --threads 1 --connections {connections} --rate {rate} \
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
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let log = site.scratch().join("truth-pummel");
    let ended = Child::start(site.pummel(), &words, site.client_cpu(), &[], &log)?.wait(SLACK * 3)?;
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

    /// What is not as it has to be.
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
        assert_eq!(Options::parse(&["--part", "served"]).unwrap().part, Part::Served);
        assert_eq!(Options::parse(&["--way", "veth"]).unwrap().way, Way::Beside);
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

    #[test]
    fn options_have_defaults_and_bounds() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!((options.seconds, options.rate, options.connections), (3, 20_000, 50));
        assert_eq!(options.waits, ["spin", "block"]);
        let options = Options::parse(&["--wait", "auto", "--backend", "epoll", "--seconds", "1"]).unwrap();
        assert_eq!((options.waits, options.backend), (vec!["auto"], Some(Backend::Epoll)));
        for (arguments, words) in [
            (&["--wait", "sleep"][..], "sleep"),
            (&["--seconds", "61"], "from 1 to 60"),
            (&["--rate"], "needs a value"),
            (&["--depth", "2"], "no option --depth"),
        ] {
            assert!(Options::parse(arguments).unwrap_err().contains(words), "{words}");
        }
    }
}
