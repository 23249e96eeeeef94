//! The runs of a calibration, each against the built-in server.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process;

use pummel_engine::evidence::provenance;
use pummel_engine::run::Wants;
use pummel_engine::sys;
use pummel_logic::plan::Backend;
use pummel_logic::time::{NEVER, Nanos};
use pummel_measure::calibration::{CardStamps, LagFloor, NoiseFloor, ServiceError, StampFigures, is_prompt};
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile, Summary};
use pummel_report::words::reason;

use crate::exit_status::{Exit, answer};
use crate::job::driver::{Driver, Extras};
use crate::job::runner::{Dealing, NotRun};
use crate::job::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use crate::job::{FrontInputs, seed_of};
use crate::native;
use crate::serve::child::ServeProcess;

/// Whether the calibration is a whole or a rough one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Whole,
    Quick,
}

/// Why there are no figures.
pub(super) enum NotCalibrated {
    Interrupted,
    /// The words are on standard error.
    Reported(Exit),
    Failed(String),
}

impl From<io::Error> for NotCalibrated {
    fn from(error: io::Error) -> NotCalibrated {
        NotCalibrated::Failed(error.to_string())
    }
}

/// How the server holds its replies, one after the other.
const HELD: [&str; 4] = ["0", "200us", "1ms", "exponential:1ms"];

/// Rates at which lag is looked at.
const LAG_RATES: [u64; 3] = [1_000, 20_000, 100_000];

/// Halvings on the way to the greatest rate of a core.
const HALVINGS: usize = 6;

/// Pairs of runs that show how much runs differ.
const PAIRS: u32 = 10;

/// The lag's p99 may be this share of the median service time.
const LAG_SHARE_MAX: f64 = 0.1;

/// The core may be busy for this share of the time.
const BUSY_MAX: f64 = 0.9;

/// A style without words, which keeps the requests of a run where they are wanted.
#[derive(Default)]
struct Silent {
    keeps: bool,
    /// Service time of each answered request, in nanoseconds, in the order in which they ended.
    service_ns: Vec<Nanos>,
}

impl Style for Silent {
    fn wants(&self) -> Wants {
        Wants {
            rows: self.keeps,
            departures: false,
            keep: Keep::Figures,
            outstanding: false,
            connections: false,
        }
    }

    fn event(&mut self, event: Event<'_>, _: Moment, _: &mut StyleOutput) {
        if let Event::Rows(rows) = event {
            let answered = rows.iter().filter(|row| row.read != NEVER && row.sent != NEVER);
            self.service_ns.extend(answered.map(|row| row.arrived.saturating_sub(row.sent)));
        }
    }

    fn end(&mut self, _: &Ended<'_>, _: Moment, _: &mut StyleOutput) -> Exit {
        Exit::Complete
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (format!("error: {words}"), Exit::Failed)
    }

    fn doubted(&self) -> Doubted {
        // The doubt is what is measured here.
        Doubted::Nothing
    }
}

/// A run that is over.
struct Ran {
    measurement: Measurement,
    summary: Summary,
    service_ns: Vec<Nanos>,
}

impl Ran {
    /// A quantile of a span.
    fn quantile(&self, span: Span, name: &str) -> Quantile {
        let at = QUANTILES.iter().position(|(known, _)| *known == name).expect("a known quantile");
        self.summary.totals.figures[span as usize].quantiles[at]
    }
}

/// What all runs have in common.
pub(super) struct Runs<'a> {
    inputs: &'a FrontInputs,
    backend: Backend,
    length: Length,
    cpus: Vec<usize>,
}

impl<'a> Runs<'a> {
    /// Runs with this backend.
    ///
    /// # Errors
    /// Returns the kernel's error where it does not say which CPUs may be used.
    pub(super) fn new(
        inputs: &'a FrontInputs,
        backend: Backend,
        length: Length,
    ) -> Result<Runs<'a>, NotCalibrated> {
        Ok(Runs { inputs, backend, length, cpus: sys::allowed_cpus()? })
    }

    /// Whether the generator and the server share a core.
    pub(super) fn has_one_core(&self) -> bool {
        self.cpus.len() < 2
    }

    /// The length of one run, for the command line.
    fn time(&self) -> &'static str {
        match self.length {
            Length::Whole => "2s",
            Length::Quick => "300ms",
        }
    }

    /// Makes a run with these further words.
    fn run(&self, server: &ServeProcess, words: &str, keeps: bool) -> Result<Ran, NotCalibrated> {
        let line = format!(
            "run -s {} --protocol text --no-load --records 1000 --mix get:1 --quiet --no-evidence --backend {} {words}",
            server.address(),
            self.backend.name()
        );
        let job = native::job(line.split_whitespace().map(OsString::from), self.inputs)
            .map_err(|error| NotCalibrated::Reported(answer(&error)))?;
        let mut style = Silent { keeps, service_ns: Vec::new() };
        let mut driver =
            Driver::prepare(&job, &Extras::default(), &style).map_err(NotCalibrated::Reported)?;
        let measurement = match driver.run(&job.plan, Dealing::Evenly, &mut style) {
            Ok(measurement) => measurement,
            Err(NotRun::Interrupted) => return Err(NotCalibrated::Interrupted),
            Err(why) => return Err(NotCalibrated::Failed(why.to_string())),
        };
        match measurement.status {
            Status::Complete => {}
            Status::Interrupted => return Err(NotCalibrated::Interrupted),
            Status::Partial => {
                return Err(NotCalibrated::Failed(reason::of_run(&measurement)));
            }
        }
        let summary = Summary::of(&measurement, &job.plan);
        Ok(Ran { measurement, summary, service_ns: style.service_ns })
    }

    /// The errors of service times for each way to hold replies, and the backend that was used.
    pub(super) fn service_errors(&self) -> Result<(Vec<ServiceError>, String), NotCalibrated> {
        let requests = if self.length == Length::Whole { 2_000 } else { 100 };
        let (mut errors, mut backend) = (Vec::new(), String::new());
        for held in HELD {
            let truth = TruthFile::new();
            let server = ServeProcess::start(&[
                "--wait",
                "spin",
                "--service-time",
                held,
                "--truth",
                &truth.0.to_string_lossy(),
            ])?;
            let ran = self.run(&server, &format!("-c 1 -d 1 --wait spin -n {requests}"), true)?;
            server.end()?;
            let held_ns = truth.held_ns()?;
            if held_ns.len() != ran.service_ns.len() {
                let (ours, theirs) = (ran.service_ns.len(), held_ns.len());
                let why = format!("pummel measured {ours} requests and the server answered {theirs}");
                return Err(NotCalibrated::Failed(why));
            }
            errors.extend(ServiceError::of(held, ran.service_ns.into_iter().zip(held_ns)));
            if let Some(used) = ran.measurement.generator.backends.first() {
                backend = used.name().to_owned();
            }
        }
        Ok((errors, backend))
    }

    /// Lag at several rates, and how many of all replies had no receive stamp.
    pub(super) fn lag_floors(&self) -> Result<(Vec<LagFloor>, StampFigures), NotCalibrated> {
        let server = ServeProcess::start(&[])?;
        let (mut floors, mut stamps) = (Vec::new(), StampFigures::default());
        for rate in LAG_RATES {
            for wait in ["spin", "block"] {
                let words = format!("-t {} --rate {rate} --arrivals poisson --wait {wait}", self.time());
                let ran = self.run(&server, &words, false)?;
                let turns = &ran.measurement.counters.turns;
                stamps.replies += ran.summary.totals.counts.completed;
                stamps.missing += turns.stamps.missing;
                stamps.late += turns.stamps.shared;
                stamps.rejected += turns.stamps.rejected;
                let [p50, p99] = ["p50", "p99"].map(|name| ran.quantile(Span::Lag, name));
                floors.push(LagFloor::of(rate, wait, p50, p99));
            }
        }
        Ok((floors, stamps))
    }

    /// The stamps with those of requests that leave, and with what the network cards can do.
    pub(super) fn transmit_stamps(&self, stamps: StampFigures) -> Result<StampFigures, NotCalibrated> {
        let server = ServeProcess::start(&[])?;
        let requests = if self.length == Length::Whole { 10_000 } else { 200 };
        let ran = self.run(&server, &format!("-c 1 -d 1 -n {requests} --stamps tx:1"), false)?;
        let seen = ran.measurement.side_times.transmit.as_ref().map_or(0, |transmit| transmit.out.count());
        let cards = provenance::read().cards.into_iter();
        Ok(StampFigures {
            transmit_asked: requests,
            transmit_missing: requests.saturating_sub(seen),
            cards: cards
                .map(|card| CardStamps { name: card.name, stamps_packets: card.stamps_packets })
                .collect(),
            ..stamps
        })
    }

    /// The greatest rate of one client thread at which its times may be believed, in requests per second.
    pub(super) fn rate_per_core(&self) -> Result<Option<u64>, NotCalibrated> {
        let server = ServeProcess::start(&[])?;
        let peak = self.run(&server, &format!("-t {}", self.time()), false)?.summary.totals.rate;
        let (mut low, mut high) = (0.0, peak);
        for _ in 0..HALVINGS {
            let rate = (low + high) / 2.0;
            let words = format!("-t {} --rate {rate:.3} --arrivals poisson", self.time());
            let ran = self.run(&server, &words, false)?;
            let (lag, service) = (ran.quantile(Span::Lag, "p99"), ran.quantile(Span::Service, "p50"));
            let is_prompt = is_prompt(lag, service, LAG_SHARE_MAX);
            let is_free = ran.measurement.generator.busy_share_max() < BUSY_MAX;
            if is_prompt && is_free { low = rate } else { high = rate }
        }
        Ok((low > 0.0).then_some(low as u64))
    }

    /// How much runs of one thing differ: pairs of runs at a third of the closed loop's rate, and in closed loop.
    pub(super) fn noise_floor(&self) -> Result<Option<NoiseFloor>, NotCalibrated> {
        let server = ServeProcess::start(&[])?;
        let peak = self.run(&server, "-t 1s", false)?.summary.totals.rate;
        let (mut p50, mut p99, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let rate = (peak / 3.0).min(20_000.0);
        // Arrivals of their own, as two runs of a user have: how much arrivals make runs differ belongs to the noise.
        let open = |number| {
            let seed = seed_of(self.inputs.seed, number);
            let words = format!("-t {} --rate {rate:.3} --arrivals poisson --seed {seed}", self.time());
            self.run(&server, &words, false)
        };
        for pair in 0..PAIRS {
            let (one, other) = (open(2 * pair)?, open(2 * pair + 1)?);
            let both = |name| {
                // A figure of 0 is not known, and neither is the noise then.
                let figure = |ran: &Ran| ran.quantile(Span::Response, name).known().unwrap_or(0) as f64;
                (figure(&one), figure(&other))
            };
            p50.push(both("p50"));
            p99.push(both("p99"));
            let rate = || Ok::<f64, NotCalibrated>(self.run(&server, "-t 500ms", false)?.summary.totals.rate);
            rates.push((rate()?, rate()?));
        }
        let known = NoiseFloor::of(&p50).zip(NoiseFloor::of(&p99)).zip(NoiseFloor::of(&rates));
        Ok(known.map(|((p50_ppm, p99_ppm), rate_ppm)| NoiseFloor {
            pairs: u64::from(PAIRS),
            p50_ppm,
            p99_ppm,
            rate_ppm,
        }))
    }
}

/// The truth file of a server, which is removed with this value.
struct TruthFile(PathBuf);

impl TruthFile {
    fn new() -> TruthFile {
        TruthFile(std::env::temp_dir().join(format!("pummel-calibrate-{}.truth", process::id())))
    }

    /// For how long each get was held, in nanoseconds, in their order.
    fn held_ns(&self) -> io::Result<Vec<Nanos>> {
        let text = fs::read_to_string(&self.0)?;
        let held = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_get = words.first() == Some(&"request") && words.get(3) == Some(&"get");
            words.get(6).filter(|_| is_get)?.parse().ok()
        };
        Ok(text.lines().filter_map(held).collect())
    }
}

impl Drop for TruthFile {
    fn drop(&mut self) {
        // It fails only where the server never made it.
        let _ = fs::remove_file(&self.0);
    }
}
