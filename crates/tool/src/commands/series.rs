//! Runs at several rates, and what they show together; `pummel scan`, whose rates lie at equal distances.

use std::io;

use clap::Args;
use pummel_engine::run::RunError;
use pummel_logic::measure::measurement::{Measurement, Status};
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::{Nanos, seconds};

use crate::commands::detection::detected;
use crate::exit_status::{Exit, answer};
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::runner::{Dealing, NotRun};
use crate::job::style::{Ended, Event, Moment, Style, StyleOutput};
use crate::job::{Format, FrontInputs, Job, Outputs, UsageError};
use crate::native;
use crate::native::{RunArgs, Typed};
use crate::report::curve;
use crate::report::curve::{Curve, Point};
use crate::report::forms::Form;
use crate::report::output::{Output, print};
use crate::report::search_words::SearchResult;
use crate::stderr::say;
use crate::values;
use crate::values::{ValueError, WarmUpTime};

/// Options of `pummel scan`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SCAN_EXAMPLES, after_long_help = SCAN_EXAMPLES)]
pub struct ScanArgs {
    /// Rates: the first, the last that may be, and the distance, such as 10k:50k:10k
    #[arg(long, value_name = "LO:HI:STEP", value_parser = rates, required_unless_present = "over", allow_hyphen_values = true)]
    pub rates: Option<Rates>,
    /// In closed loop over eight levels of connections or threads, such as connections:1:64; shows how the rate scales
    #[arg(long, value_name = "WHAT:LO:HI", value_parser = over, conflicts_with = "rates", allow_hyphen_values = true)]
    pub over: Option<Over>,
    /// Those of `pummel run`, for every run.
    #[command(flatten)]
    pub run: Typed<RunArgs>,
}

/// Rates at equal distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The first.
    pub low: f64,
    /// None is above.
    pub high: f64,
    /// From one to the next.
    pub step: f64,
}

/// What a scan in closed loop changes from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The number of connections.
    Connections,
    /// The number of client threads; where there are fewer connections, as many connections.
    Threads,
}

impl Kind {
    /// The word of command lines and results.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Connections => "connections",
            Kind::Threads => "threads",
        }
    }
}

/// Levels of a scan in closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// What the levels are of.
    pub kind: Kind,
    /// The first.
    pub low: u32,
    /// The last.
    pub high: u32,
}

/// Levels of a scan in closed loop, where there are so many whole numbers.
const LEVELS: u32 = 8;

impl Over {
    /// Whole numbers from the first to the last whose ratios are about equal.
    fn levels(self) -> Vec<u32> {
        let ratio = f64::from(self.high) / f64::from(self.low);
        let level = |at: u32| f64::from(self.low) * ratio.powf(f64::from(at) / f64::from(LEVELS - 1));
        let mut levels: Vec<u32> = (0..LEVELS).map(|at| level(at).round() as u32).collect();
        levels.dedup();
        levels
    }
}

const SCAN_EXAMPLES: &str = "\
Examples:
  pummel scan -s 127.0.0.1 --rates 10k:50k:10k -t 5s --csv curve.csv
  pummel scan -s 127.0.0.1 --over connections:1:64 -t 5s

Exit status:
  0    every rate was measured
  1    a run failed; the reports are written and say why
  2    the command line cannot be followed; nothing was sent
  3    a verification failed, or a goal was missed
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the reports are written";

/// Most runs of a scan.
const RUNS_MAX: f64 = 1_000.0;

fn rates(text: &str) -> Result<Rates, ValueError> {
    let numbers: Option<Vec<f64>> = text.split(':').map(|part| values::rate(part).ok()).collect();
    match numbers.as_deref() {
        Some(&[low, high, step]) if low <= high && (high - low) / step < RUNS_MAX => {
            Ok(Rates { low, high, step })
        }
        _ => Err(ValueError(
            "three rates are accepted, LO:HI:STEP with LO <= HI and at most 1000 runs, such as 10k:50k:10k"
                .to_owned(),
        )),
    }
}

fn over(text: &str) -> Result<Over, ValueError> {
    let accepted = || {
        let text =
            "connections:LO:HI or threads:LO:HI is accepted, with 1 <= LO < HI, such as connections:1:64";
        ValueError(text.to_owned())
    };
    let (kind, levels) = text.split_once(':').ok_or_else(accepted)?;
    let kind = [Kind::Connections, Kind::Threads].into_iter().find(|known| known.name() == kind);
    let (low, high) = levels.split_once(':').ok_or_else(accepted)?;
    let low = values::count_u32(low).map_err(|_| accepted())?;
    let high = values::count_u32(high).map_err(|_| accepted())?;
    let over = kind.filter(|_| low >= 1 && low < high).map(|kind| Over { kind, low, high });
    over.ok_or_else(accepted)
}

/// Measures at every rate, or at every level.
pub fn scan(args: &ScanArgs, inputs: &FrontInputs) -> Exit {
    let (run, detection) = match prepared(&args.run, inputs, args.rates.map(|rates| rates.low)) {
        Ok(found) => found,
        Err(error) => return answer(&error.into()),
    };
    if let Some(over) = args.over {
        return scan_over((&run, detection), over, inputs);
    }
    let Some(Rates { low, high, step }) = args.rates else {
        return answer(&UsageError::Missing("'--rates' or '--over' is required".to_owned()).into());
    };
    let job = match first_job(&run, inputs, &[Some(low)]) {
        Ok(job) => job,
        Err(stop) => return stop.exit(),
    };
    let mut runner = match CurveRunner::new("scan", &run, inputs, (&job, detection)) {
        Ok(runner) => runner,
        Err(stop) => return stop.exit(),
    };
    let count = ((high - low) / step + 1e-9) as u32;
    for n in 0..=count {
        if let Err(stop) = runner.measure("scan", Some(low + f64::from(n) * step), None) {
            return runner.conclude(Some(stop), Exit::Complete);
        }
    }
    let exit = if runner.missed_a_goal() { Exit::Missed } else { Exit::Complete };
    runner.conclude(None, exit)
}

/// Measures in closed loop at every level.
fn scan_over((run, detection): (&Typed<RunArgs>, Detection), over: Over, inputs: &FrontInputs) -> Exit {
    let levels = over.levels();
    // The greatest level asks for the most; the first run is made at the least.
    let checked = first_job(&at_level(run, over.kind, over.high), inputs, &[None])
        .and_then(|_| first_job(&at_level(run, over.kind, over.low), inputs, &[None]));
    let job = match checked {
        Ok(job) => job,
        Err(stop) => return stop.exit(),
    };
    let mut runner = match CurveRunner::new("scan", run, inputs, (&job, detection)) {
        Ok(runner) => runner,
        Err(stop) => return stop.exit(),
    };
    for level in levels {
        let typed = at_level(&at(run, None), over.kind, level);
        if let Err(stop) = runner.make("scan", &typed, None, Some((over.kind.name(), level))) {
            return runner.conclude(Some(stop), Exit::Complete);
        }
    }
    let exit = if runner.missed_a_goal() { Exit::Missed } else { Exit::Complete };
    runner.conclude(None, exit)
}

/// The options of a run at a level.
fn at_level(typed: &Typed<RunArgs>, kind: Kind, level: u32) -> Typed<RunArgs> {
    let mut typed = typed.clone();
    let pace = &mut typed.args.pace;
    match kind {
        Kind::Connections => (pace.connections, pace.threads) = (level, pace.threads.min(level)),
        Kind::Threads => (pace.threads, pace.connections) = (level, pace.connections.max(level)),
    }
    typed
}

/// Why there are no more runs.
pub enum Stop {
    /// The command line cannot be followed.
    Usage(UsageError),
    /// Something is not as it has to be.
    Failed(String),
    /// The words are on standard error; the exit status is left.
    Reported(Exit),
    /// A signal ended the series.
    Interrupted,
}

impl Stop {
    /// Says why, where that was not said. Returns the exit status.
    pub fn exit(self) -> Exit {
        match self {
            Stop::Usage(error) => answer(&error.into()),
            Stop::Failed(what) => {
                say(format_args!("error: {what}"));
                Exit::Failed
            }
            Stop::Reported(exit) => exit,
            Stop::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<NotRun> for Stop {
    fn from(why: NotRun) -> Stop {
        match why {
            NotRun::Interrupted => Stop::Interrupted,
            NotRun::Usage(text) | NotRun::Here(RunError::Plan(text)) => {
                Stop::Usage(UsageError::Missing(text))
            }
            NotRun::Here(error @ RunError::Tls(_)) => Stop::Usage(UsageError::Missing(error.to_string())),
            why => Stop::Failed(why.to_string()),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Failed(error.to_string())
    }
}

/// The words about runs of which each is one line when it is over: only notices are shown meanwhile.
struct SeriesStyle;

impl Style for SeriesStyle {
    fn event(&mut self, event: Event<'_>, _: Moment, out: &mut StyleOutput) {
        if let Event::Notice(words) = event {
            out.line(format_args!("WARNING: {words}"));
        }
    }

    fn end(&mut self, _: &Ended<'_>, _: Moment, _: &mut StyleOutput) -> Exit {
        Exit::Complete
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (format!("error: {words}"), Exit::Failed)
    }

    fn usage_status(&self) -> Exit {
        Exit::Usage
    }
}

/// What all runs have in common.
pub struct CurveRunner<'a> {
    typed: &'a Typed<RunArgs>,
    inputs: FrontInputs,
    driver: Driver<'a>,
    files: Vec<SeriesFile>,
    curve: Curve,
}

/// A file that is made from all runs.
struct SeriesFile {
    form: &'static Form,
    render: fn(&Curve) -> Vec<u8>,
    output: Output,
}

impl<'a> CurveRunner<'a> {
    /// Checks that everything that the runs need can be read and written, before anything is sent.
    ///
    /// # Errors
    /// Returns [`Stop`] when something cannot.
    pub fn new(
        command: &'static str,
        typed: &'a Typed<RunArgs>,
        inputs: &FrontInputs,
        (job, detection): (&'a Job, Detection),
    ) -> Result<CurveRunner<'a>, Stop> {
        let driver = Driver::prepare(job, &Extras { detection, ..Extras::default() }, &SeriesStyle)
            .map_err(Stop::Reported)?;
        let mut files = Vec::new();
        for (form, path) in typed.args.output.files.0.iter() {
            let Some(render) = form.series else { continue };
            files.push(SeriesFile { form, render, output: Output::prepare(path)? });
        }
        Ok(CurveRunner {
            typed,
            // All runs have one seed, so that they ask for the same keys.
            inputs: FrontInputs { seed: job.plan.seed, ..inputs.clone() },
            driver,
            files,
            curve: Curve {
                command,
                goals: job.plan.goals.clone(),
                points: Vec::new(),
                search: None,
                reason: None,
            },
        })
    }

    /// Makes a run at a rate, or in closed loop, and adds it to the curve; with a `time_ns` it is so long, whatever the
    /// command line says.
    ///
    /// # Errors
    /// Returns [`Stop`] when the run cannot begin, is not complete, or is interrupted.
    pub fn measure(
        &mut self,
        role: &'static str,
        asked: Option<f64>,
        time_ns: Option<Nanos>,
    ) -> Result<Measurement, Stop> {
        let mut typed = at(self.typed, asked);
        if time_ns.is_some() {
            (typed.args.pace.time, typed.args.pace.requests) = (time_ns, None);
            typed.args.pace.warmup = WarmUpTime::Fixed(0);
        }
        self.make(role, &typed, asked, None)
    }

    /// Makes a run with these options at a rate, or in closed loop at a level of something, and adds it to the curve.
    fn make(
        &mut self,
        role: &'static str,
        typed: &Typed<RunArgs>,
        asked: Option<f64>,
        level: Option<(&'static str, u32)>,
    ) -> Result<Measurement, Stop> {
        let plan = native::run(typed, &self.inputs).map_err(Stop::Usage)?.plan;
        let plan = if self.curve.points.is_empty() { plan } else { without_load(plan) };
        let measurement = self.driver.run(&plan, Dealing::Evenly, &mut SeriesStyle)?;
        match measurement.status {
            Status::Complete => {}
            Status::Interrupted => return Err(Stop::Interrupted),
            Status::Partial => {
                return Err(Stop::Failed(measurement.reason.clone().unwrap_or_default()));
            }
        }
        let due_s = asked.map_or(f64::INFINITY, |rate| due_s(&plan, rate));
        let verify = &measurement.verify;
        let wrong_values = (plan.verify > 0.0).then_some(verify.failed + verify.stale);
        let point =
            Point { role, asked, level, due_s, wrong_values, summary: Summary::of(&measurement, &plan) };
        if !self.typed.args.output.quiet {
            let asked = match (asked, level) {
                (Some(asked), _) => format!("{asked:.0} req/s"),
                (None, Some((what, level))) => format!("{level} {what}"),
                (None, None) => "closed loop".to_owned(),
            };
            let met = match (point.carried(), self.curve.goals.is_empty(), point.met()) {
                (false, ..) => ", not carried",
                (true, true, _) => "",
                (true, false, true) => ", goal met",
                (true, false, false) => ", goal missed",
            };
            say(format_args!("{role:>8}: {asked}, {:.0} done/s{met}", point.summary.totals.rate));
        }
        self.curve.points.push(point);
        for file in self.files.iter().filter(|file| file.form.is_checkpointed()) {
            file.output.checkpoint(&(file.render)(&self.curve))?;
        }
        Ok(measurement)
    }

    /// The last run of the curve.
    pub fn last(&self) -> Option<&Point> {
        self.curve.points.last()
    }

    /// Whether a run missed a goal.
    pub fn missed_a_goal(&self) -> bool {
        self.curve.points.iter().any(|point| !point.met())
    }

    /// What the search found so far.
    pub fn search_result(&self) -> Option<&SearchResult> {
        self.curve.search.as_ref()
    }

    /// Keeps what the search found so far.
    pub fn set_search_result(&mut self, result: SearchResult) {
        self.curve.search = Some(result);
    }

    /// Writes the curve and says how it ended. Returns the exit status.
    pub fn conclude(mut self, stop: Option<Stop>, exit: Exit) -> Exit {
        self.curve.reason = match &stop {
            None | Some(Stop::Reported(_)) => None,
            Some(Stop::Interrupted) => Some("interrupted".to_owned()),
            Some(Stop::Failed(what)) => Some(what.clone()),
            Some(Stop::Usage(error)) => Some(error.to_string()),
        };
        let exit = match stop.map_or(exit, Stop::exit) {
            Exit::Complete if self.curve.wrong_values() > 0 => Exit::Missed,
            exit => exit,
        };
        let taken = self.files.iter().any(|file| file.output.is_standard());
        let as_json = self.typed.args.output.format == Some(Format::Json);
        // Files first: standard output may not be read yet.
        let written = self.files.iter().map(|file| file.output.finish(&(file.render)(&self.curve)));
        let mut results: Vec<io::Result<()>> = written.collect();
        results.push(match (taken, as_json) {
            (true, _) => Ok(()),
            (false, true) => print(&curve::json(&self.curve)),
            (false, false) => print(curve::text(&self.curve).as_bytes()),
        });
        let troubles = results.into_iter().filter_map(Result::err);
        troubles.fold(exit, |exit, error| match Stop::from(error).exit() {
            // A script ends with the series that is interrupted, whatever else could not be done.
            _ if exit == Exit::Interrupted => exit,
            failed => failed,
        })
    }
}

/// The options of a series with their files read and the protocol of their servers, which are asked as the run at `rate`
/// would ask them.
///
/// # Errors
/// Returns [`UsageError`] for options that a series does not have, and for files that cannot be read.
pub fn prepared(
    typed: &Typed<RunArgs>,
    inputs: &FrontInputs,
    rate: Option<f64>,
) -> Result<(Typed<RunArgs>, Detection), UsageError> {
    refuse(typed)?;
    let typed = typed.with_files(inputs)?;
    let (found, detection) = detected(&at(&typed, rate), inputs);
    let mut run = typed;
    run.args.target = found.args.target;
    Ok((run, detection))
}

/// The first of the runs at `rates`, without files of its own. Checks that runs can be made at each of them.
///
/// # Errors
/// Returns [`Stop`] when one of them could not be made.
pub fn first_job(typed: &Typed<RunArgs>, inputs: &FrontInputs, rates: &[Option<f64>]) -> Result<Job, Stop> {
    let mut jobs = Vec::with_capacity(rates.len());
    for rate in rates {
        jobs.push(native::run(&at(typed, *rate), inputs).map_err(Stop::Usage)?);
    }
    let job = jobs.swap_remove(0);
    check_here(&job).map_err(Stop::Usage)?;
    Ok(Job { outputs: Outputs::default(), ..job })
}

/// Refuses what means nothing for several runs of which each has a rate.
fn refuse(typed: &Typed<RunArgs>) -> Result<(), UsageError> {
    let args = &typed.args;
    let one_run = "which makes one run and not several";
    let no_rate =
        "since clients that come and go make as many requests as --conn-rate and --calls-per-connection say";
    let refused = [
        (args.pace.rate.is_some(), "--rate", one_run),
        (args.pace.conn_rate.is_some(), "--conn-rate", no_rate),
        (args.pace.calls_per_connection.is_some(), "--calls-per-connection", no_rate),
        (typed.has("--interval"), "--interval", one_run),
        (args.pace.until.is_some(), "--until", one_run),
        (args.saved.plan.is_some(), "--plan", one_run),
    ];
    let forms = args.output.files.0.iter().filter(|(form, _)| form.series.is_none());
    let forms = forms.map(|(form, _)| (form.flag(), one_run));
    let refused = refused.into_iter().filter(|(given, ..)| *given);
    match refused.map(|(_, flag, why)| (flag.to_owned(), why)).chain(forms).next() {
        Some((flag, why)) => {
            Err(UsageError::Missing(format!("'{flag}' is accepted with 'pummel run' only, {why}")))
        }
        None => Ok(()),
    }
}

/// The options of a run at a rate, or in closed loop.
fn at(typed: &Typed<RunArgs>, rate: Option<f64>) -> Typed<RunArgs> {
    let mut typed = typed.clone();
    typed.args.pace.rate = rate;
    if rate.is_none() {
        typed.args.pace.arrivals = None;
    }
    typed
}

/// In how many seconds all requests of a run at this rate are due, at the latest but for one in ten thousand runs.
fn due_s(plan: &Plan, rate: f64) -> f64 {
    let stop = plan.phases.last().map(|phase| phase.stop).unwrap_or_default();
    let counted_s = stop.requests.map(|count| (count as f64 + 4.0 * (count as f64).sqrt()) / rate);
    let timed_s = stop.time_ns.map(seconds);
    counted_s.into_iter().chain(timed_s).fold(f64::INFINITY, f64::min)
}

/// The records are there from the first run on.
fn without_load(plan: ValidPlan) -> ValidPlan {
    let mut plan = plan.into_plan();
    plan.phases.retain(|phase| !matches!(phase.work, Work::Load(_)));
    plan.validate().expect("what a run measures does not depend on its load")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_a_scan_are_whole_numbers_at_about_equal_ratios() {
        let over = |text| over(text).expect(text);
        assert_eq!(over("connections:1:64").levels(), [1, 2, 3, 6, 11, 20, 35, 64]);
        assert_eq!(over("threads:1:4").levels(), [1, 2, 3, 4]);
        for text in [
            "",
            "connections",
            "connections:1",
            "connections:0:4",
            "threads:4:4",
            "clients:1:4",
            "threads:a:b",
        ] {
            assert!(
                super::over(text).is_err_and(|error| error.to_string().contains("connections:1:64")),
                "{text}"
            );
        }
    }

    #[test]
    fn rates_of_a_scan_are_read_with_their_units() {
        assert_eq!(rates("10k:50k:10k"), Ok(Rates { low: 10_000.0, high: 50_000.0, step: 10_000.0 }));
        for text in ["", "1:2", "5:2:1", "1:2:0", "1:2:x", "1:10m:1", "0:2:1", "1:2:3:4"] {
            assert!(rates(text).is_err(), "{text}");
        }
    }
}
