//! The runs of a calibration, each against the built-in server.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process;

use pummel_engine::evidence::provenance;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, seed_of};
use pummel_fronts::native;
use pummel_fronts::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use pummel_logic::plan::Backend;
use pummel_logic::time::{NEVER, Nanos};
use pummel_measure::calibration::{CardStamps, LagFloor, NoiseFloor, ServiceError, StampFigures, is_prompt};
use pummel_measure::events::Wants;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile, Summary};

use crate::job::runner::NotRun;
use crate::job::series::{Finished, RunSeries, SeriesRun, SeriesStyle};
use crate::serve::child::ServeProcess;

/// Whether the calibration is a whole or a rough one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Whole,
    Quick,
}

/// Purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Service times, with replies that are held like this.
    Held(&'static str),
    /// Lag at a rate, with this way to wait.
    Lag(u64, &'static str),
    /// Stamps of requests that leave.
    Stamps,
    /// The rate of a closed loop.
    Peak,
    /// A rate at which times may be reliable.
    Halve,
    /// One of the runs in open loop that show how much runs differ, with its number.
    Open(u32),
    /// One of the runs in closed loop that show how much runs differ.
    Closed,
}

impl Step {
    /// The steps of a calibration, in their order.
    fn all(length: Length) -> VecDeque<Step> {
        let mut steps: VecDeque<Step> = HELD.map(Step::Held).into();
        steps.extend(LAG_RATES.iter().flat_map(|rate| ["spin", "block"].map(|wait| Step::Lag(*rate, wait))));
        steps.extend([Step::Stamps, Step::Peak]);
        steps.extend([Step::Halve; HALVINGS]);
        if length == Length::Whole {
            let pair = |pair| [Step::Open(2 * pair), Step::Open(2 * pair + 1), Step::Closed, Step::Closed];
            steps.extend((0..PAIRS).flat_map(pair));
        }
        steps
    }

    /// The line before the step, where it is the first of its kind.
    fn line(self) -> Option<&'static str> {
        match self {
            Step::Held(held) if held == HELD[0] => Some("service times, request by request ..."),
            Step::Lag(rate, "spin") if rate == LAG_RATES[0] => {
                Some("lag at several rates, and the greatest rate of a core ...")
            }
            Step::Open(0) => Some("how much runs of one thing differ ..."),
            _ => None,
        }
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
        Wants { rows: self.keeps, ..SeriesStyle.wants() }
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

/// Number of the requests that a run was asked for.
fn requests_of(finished: &Finished) -> u64 {
    finished.plan.phases.last().and_then(|phase| phase.stop.requests).unwrap_or_default()
}

/// A quantile of a span.
fn quantile(summary: &Summary, span: Span, name: &str) -> Quantile {
    let at = QUANTILES.iter().position(|(known, _)| *known == name).expect("a known quantile");
    summary.totals.figures[span as usize].quantiles[at]
}

/// The figures of the runs so far.
#[derive(Clone, Debug, Default)]
pub(super) struct InstrumentFigures {
    /// The backend that was used.
    pub(super) backend: String,
    /// The errors of service times for each way to hold replies.
    pub(super) service_error: Vec<ServiceError>,
    /// Lag at several rates.
    pub(super) lag: Vec<LagFloor>,
    /// Replies without a receive stamp, and requests without a transmit stamp.
    pub(super) stamps: StampFigures,
    /// The closed-loop rate of one client thread.
    peak: f64,
    /// The greatest rate at which times are reliable, and the least at which they are not, as far as is known.
    reliable: (f64, f64),
    /// The p50 and the p99 of each run in open loop that shows how much runs differ; 0 where it is not known.
    open: Vec<(f64, f64)>,
    /// The rate of each run in closed loop that shows how much runs differ.
    closed: Vec<f64>,
}

impl InstrumentFigures {
    /// The rate of the next run of this purpose, in requests per second; `None` in closed loop.
    fn rate_of(&self, step: Step) -> Option<f64> {
        match step {
            Step::Lag(rate, _) => Some(rate as f64),
            Step::Halve => Some((self.reliable.0 + self.reliable.1) / 2.0),
            Step::Open(_) => Some((self.peak / 3.0).min(20_000.0)),
            Step::Held(_) | Step::Stamps | Step::Peak | Step::Closed => None,
        }
    }

    /// Adds a run with this purpose, but for its single requests.
    fn add(&mut self, step: Step, finished: &Finished) {
        let Finished { measurement, summary, .. } = finished;
        let rate = summary.totals.rate;
        match step {
            Step::Held(_) => {
                if let Some(used) = measurement.generator.backends.first() {
                    self.backend = used.name().to_owned();
                }
            }
            Step::Lag(asked, wait) => {
                let stamps = &measurement.counters.turns.stamps;
                self.stamps.replies += summary.totals.counts.completed;
                self.stamps.missing += stamps.missing;
                self.stamps.late += stamps.shared;
                self.stamps.rejected += stamps.rejected;
                let [p50, p99] = ["p50", "p99"].map(|name| quantile(summary, Span::Lag, name));
                self.lag.push(LagFloor::of(asked, wait, p50, p99));
            }
            Step::Stamps => {
                let seen =
                    measurement.side_times.transmit.as_ref().map_or(0, |transmit| transmit.out.count());
                self.stamps.transmit_asked = requests_of(finished);
                self.stamps.transmit_missing = self.stamps.transmit_asked.saturating_sub(seen);
            }
            Step::Peak => (self.peak, self.reliable) = (rate, (0.0, rate)),
            Step::Halve => {
                let tried = (self.reliable.0 + self.reliable.1) / 2.0;
                let lag = quantile(summary, Span::Lag, "p99");
                let is_prompt = is_prompt(lag, quantile(summary, Span::Service, "p50"), LAG_SHARE_MAX);
                let is_free = measurement.generator.busy_share_max() < BUSY_MAX;
                if is_prompt && is_free { self.reliable.0 = tried } else { self.reliable.1 = tried }
            }
            Step::Open(_) => {
                // A figure of 0 is not known, and neither is the noise then.
                let figure = |name| quantile(summary, Span::Response, name).known().unwrap_or(0) as f64;
                self.open.push((figure("p50"), figure("p99")));
            }
            Step::Closed => self.closed.push(rate),
        }
    }

    /// The greatest rate of one client thread at which its times are reliable, in requests per second.
    pub(super) fn rate_per_core(&self) -> Option<u64> {
        (self.reliable.0 > 0.0).then_some(self.reliable.0 as u64)
    }

    /// The differences between runs of one thing; `None` where they were not measured.
    pub(super) fn noise(&self) -> Option<NoiseFloor> {
        let open = |figure: fn(&(f64, f64)) -> f64| NoiseFloor::of(&pairs(self.open.iter().map(figure)));
        let rates = NoiseFloor::of(&pairs(self.closed.iter().copied()));
        Some(NoiseFloor {
            pairs: u64::from(PAIRS),
            p50_ppm: open(|run| run.0)?,
            p99_ppm: open(|run| run.1)?,
            rate_ppm: rates?,
        })
    }
}

/// Each value with the one that follows it.
fn pairs(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let values: Vec<f64> = values.collect();
    values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The runs of a calibration.
pub(super) struct CalibrationRuns<'a> {
    inputs: &'a FrontInputs,
    backend: Backend,
    length: Length,
    steps: VecDeque<Step>,
    /// Purpose of the last run.
    step: Step,
    server: Option<ServeProcess>,
    /// The truth file of a server that holds replies.
    truth: Option<TruthFile>,
    style: Silent,
    figures: InstrumentFigures,
}

impl<'a> CalibrationRuns<'a> {
    /// Runs with this backend.
    pub(super) fn new(inputs: &'a FrontInputs, backend: Backend, length: Length) -> CalibrationRuns<'a> {
        CalibrationRuns {
            inputs,
            backend,
            length,
            steps: Step::all(length),
            step: Step::Peak,
            server: None,
            truth: None,
            style: Silent::default(),
            figures: InstrumentFigures::default(),
        }
    }

    /// The job of all runs, at a server that does not listen yet.
    ///
    /// # Errors
    /// Returns the reason why there is no such job.
    pub(super) fn first_job(&self) -> Result<Job, NotRun> {
        self.job("127.0.0.1:1", Step::Peak)
    }

    /// The job of a run at a server.
    fn job(&self, address: &str, step: Step) -> Result<Job, NotRun> {
        let by_length = |whole, quick| if self.length == Length::Whole { whole } else { quick };
        let time = by_length("2s", "300ms");
        let rate = self.figures.rate_of(step).map(|rate| format!("--rate {rate:.3} --arrivals poisson"));
        let load = match step {
            Step::Held(_) => format!("-c 1 -d 1 --wait spin -n {}", by_length("2000", "100")),
            Step::Lag(_, wait) => format!("-t {time} --wait {wait}"),
            Step::Stamps => format!("-c 1 -d 1 --stamps tx:1 -n {}", by_length("10000", "200")),
            Step::Peak | Step::Halve | Step::Open(_) => format!("-t {time}"),
            Step::Closed => "-t 500ms".to_owned(),
        };
        let line = format!(
            "run -s {address} --protocol text --no-load --records 1000 --mix get:1 --quiet --no-evidence --backend {} {load} {}",
            self.backend.name(),
            rate.unwrap_or_default()
        );
        native::job(line.split_whitespace().map(OsString::from), self.inputs)
            .map_err(|error| NotRun::Server(error.to_string().into()))
    }

    /// The figures of all runs, with what the network cards can do.
    pub(super) fn into_figures(mut self) -> InstrumentFigures {
        let cards = provenance::read().cards.into_iter();
        self.figures.stamps.cards =
            cards.map(|card| CardStamps { name: card.name, stamps_packets: card.stamps_packets }).collect();
        self.figures
    }

    /// The server of the next step, which is started unless it is there.
    fn server(&mut self) -> io::Result<&ServeProcess> {
        let server = match (self.step, self.server.take()) {
            (Step::Held(held), _) => {
                let path = self.truth.insert(TruthFile::new()).0.to_string_lossy().into_owned();
                ServeProcess::start(&["--wait", "spin", "--service-time", held, "--truth", &path])?
            }
            (_, Some(server)) => server,
            (_, None) => ServeProcess::start(&[])?,
        };
        Ok(self.server.insert(server))
    }

    /// Compares the service times of the last run with those for which its server held the replies.
    fn service_error(&mut self, held: &'static str, asked: usize) -> Result<Option<ServiceError>, NotRun> {
        let service_ns = std::mem::take(&mut self.style.service_ns);
        self.server.take().map_or(Ok(()), ServeProcess::end)?;
        let held_ns = self.truth.take().map_or(Ok(Vec::new()), |truth| truth.held_ns())?;
        let measured = service_ns.len();
        // A try that failed stands before the last one.
        let Some(before) = held_ns.len().checked_sub(asked).filter(|_| measured == asked) else {
            let answered = held_ns.len();
            let why = format!("pummel measured {measured} requests and the server answered {answered}");
            return Err(NotRun::Server(why.into()));
        };
        Ok(ServiceError::of(held, service_ns.into_iter().zip(held_ns.into_iter().skip(before))))
    }
}

impl RunSeries for CalibrationRuns<'_> {
    fn next_run(&mut self, out: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
        let Some(step) = self.steps.pop_front() else { return Ok(None) };
        self.step = step;
        step.line().into_iter().for_each(|words| out.line(words));
        let address = self.server()?.address().to_owned();
        let plan = self.job(&address, step)?.plan;
        // Arrivals of their own, as two runs of a user have: how much arrivals make runs differ belongs to the noise.
        let seed = if let Step::Open(number) = step { seed_of(plan.seed, number) } else { plan.seed };
        Ok(Some(SeriesRun::new(&plan, seed)))
    }

    fn add(&mut self, finished: Finished, _: &mut StyleOutput) -> Result<(), NotRun> {
        if let Step::Held(held) = self.step {
            let error = self.service_error(held, requests_of(&finished) as usize)?;
            self.figures.service_error.extend(error);
        }
        self.figures.add(self.step, &finished);
        Ok(())
    }

    fn style(&mut self) -> Option<&mut dyn Style> {
        // Each try keeps requests of its own.
        self.style = Silent { keeps: matches!(self.step, Step::Held(_)), service_ns: Vec::new() };
        Some(&mut self.style)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::series::tests::{finished, inputs, plan};

    #[test]
    fn a_rough_calibration_leaves_out_how_much_runs_differ() {
        let [whole, quick] = [Length::Whole, Length::Quick].map(Step::all);
        assert_eq!((quick.len(), whole.len()), (4 + 6 + 1 + 1 + HALVINGS, quick.len() + 40));
        assert!(!quick.contains(&Step::Closed) && whole.contains(&Step::Open(19)));
        let lines: Vec<&str> = whole.iter().filter_map(|step| step.line()).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
    }

    #[test]
    fn the_greatest_reliable_rate_is_found_between_the_rates_that_were_tried() {
        let mut figures = InstrumentFigures { reliable: (0.0, 1_000.0), ..InstrumentFigures::default() };
        let run = finished(&SeriesRun::new(&plan(), 1));
        assert_eq!(figures.rate_of(Step::Halve), Some(500.0));
        figures.add(Step::Halve, &run);
        let next = figures.rate_of(Step::Halve);
        assert!(next == Some(750.0) || next == Some(250.0), "{next:?}");
        assert_eq!(figures.rate_per_core().is_some(), next == Some(750.0));
    }

    #[test]
    fn runs_of_one_thing_are_compared_in_pairs() {
        assert_eq!(pairs([1.0, 2.0, 3.0, 4.0, 5.0].into_iter()), [(1.0, 2.0), (3.0, 4.0)]);
        let mut figures = InstrumentFigures { peak: 90_000.0, ..InstrumentFigures::default() };
        assert_eq!((figures.rate_of(Step::Open(0)), figures.noise()), (Some(20_000.0), None));
        figures.open = vec![(1.0, 2.0), (1.1, 2.2), (1.0, 2.0), (0.9, 1.8), (1.0, 2.0), (1.2, 2.4)];
        figures.closed = vec![5.0, 5.5, 5.0, 4.5, 5.0, 6.0];
        let noise = figures.noise().expect("three pairs of each");
        assert!(noise.p50_ppm > 0 && noise.p50_ppm == noise.p99_ppm && noise.p50_ppm == noise.rate_ppm);
    }

    #[test]
    fn each_run_of_a_calibration_is_one_that_pummel_makes() {
        let inputs = inputs();
        let mut runs = CalibrationRuns::new(&inputs, Backend::Epoll, Length::Quick);
        runs.figures.reliable = (0.0, 1_000.0);
        runs.figures.peak = 1_000.0;
        for step in Step::all(Length::Whole) {
            if let Err(end) = runs.job("127.0.0.1:1", step) {
                panic!("{step:?}: {}", end);
            }
        }
    }
}
