//! `pummel search` and `pummel scan`: runs at several rates, and what they show together.

use std::io;

use clap::Args;
use pummel_engine::run::RunError;
use pummel_logic::measure::measurement::Status;
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::seconds;

use crate::commands::detection::detected;
use crate::exit_status::{Exit, answer};
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::rate_search::{Judged, Role, separating};
use crate::job::runner::{Dealing, NotRun};
use crate::job::style::{Ended, Event, Moment, Style, StyleOutput};
use crate::job::{Format, FrontInputs, Job, Outputs, UsageError};
use crate::native;
use crate::native::{RunArgs, Typed};
use crate::report::curve;
use crate::report::curve::{Curve, Point};
use crate::report::forms::Form;
use crate::report::output::{Output, print};
use crate::stderr::say;
use crate::values;
use crate::values::ValueError;

/// Options of `pummel search`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SEARCH_EXAMPLES, after_long_help = SEARCH_EXAMPLES)]
pub struct SearchArgs {
    /// Those of `pummel run`, for every run.
    #[command(flatten)]
    pub run: Typed<RunArgs>,
}

/// Options of `pummel scan`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SCAN_EXAMPLES, after_long_help = SCAN_EXAMPLES)]
pub struct ScanArgs {
    /// Rates: the first, the last that may be, and the distance, such as 10k:50k:10k
    #[arg(long, value_name = "LO:HI:STEP", value_parser = rates, allow_hyphen_values = true)]
    pub rates: Rates,
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

const SEARCH_EXAMPLES: &str = "\
A run in closed loop shows how much there can be; runs at fixed rates then separate the rates that meet the goal from those
that do not, until they are 2 % apart; the answer is confirmed by one more run. A rate that is not carried (less than 95 % of
it is answered in time) does not meet the goal, however lenient that is. --json and --csv write all runs. The exit status is
3 when no rate meets the goal.

Example:
  pummel search -s 127.0.0.1 --goal p99:1ms -t 5s

Exit status:
  0    a rate was found that meets the goal
  1    a run failed; the reports are written and say why
  2    the command line cannot be followed; nothing was sent
  3    no rate meets the goal, or a verification failed
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the reports are written";

const SCAN_EXAMPLES: &str = "\
Example:
  pummel scan -s 127.0.0.1 --rates 10k:50k:10k -t 5s --csv curve.csv

Exit status:
  0    every rate was measured
  1    a run failed; the reports are written and say why
  2    the command line cannot be followed; nothing was sent
  3    a verification failed
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

/// Looks for the greatest rate that meets the goals.
pub fn search(args: &SearchArgs, inputs: &FrontInputs) -> Exit {
    let (run, detection) = match prepared(&args.run, inputs, Some(1.0)) {
        Ok(found) => found,
        Err(error) => return answer(&error.into()),
    };
    // The first run is a closed loop; what its rate will be is not known yet.
    let job = match first_job(&run, inputs, &[None, Some(1.0)]) {
        Ok(job) => job,
        Err(stop) => return stop.exit(),
    };
    let mut runner = match CurveRunner::new("search", &run, inputs, (&job, detection)) {
        Ok(runner) => runner,
        Err(stop) => return stop.exit(),
    };
    if runner.curve.goals.is_empty() {
        let text = "'--goal' is required, such as p99:1ms: it says what the rate has to meet".to_owned();
        return answer(&UsageError::Missing(text).into());
    }
    let mut stop = None;
    let found = separating(|role, rate| match runner.measure(role_name(role), rate) {
        Ok(point) => Some(Judged { rate: point.summary.totals.rate, met: point.met() && point.carried() }),
        Err(why) => {
            stop = Some(why);
            None
        }
    });
    runner.curve.found = found.filter(|_| stop.is_none());
    let met = found.is_some();
    runner.conclude(stop, if met { Exit::Complete } else { Exit::Missed })
}

/// Measures at every rate.
pub fn scan(args: &ScanArgs, inputs: &FrontInputs) -> Exit {
    let Rates { low, high, step } = args.rates;
    let (run, detection) = match prepared(&args.run, inputs, Some(low)) {
        Ok(found) => found,
        Err(error) => return answer(&error.into()),
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
        if let Err(stop) = runner.measure("scan", Some(low + f64::from(n) * step)) {
            return runner.conclude(Some(stop), Exit::Complete);
        }
    }
    let missed = runner.curve.points.iter().any(|point| !point.met());
    runner.conclude(None, if missed { Exit::Missed } else { Exit::Complete })
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Peak => "peak",
        Role::Search => "search",
        Role::Confirm => "confirm",
    }
}

/// Why there are no more runs.
enum Stop {
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
    fn exit(self) -> Exit {
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
struct CurveRunner<'a> {
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
    fn new(
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
                found: None,
                reason: None,
            },
        })
    }

    /// Makes a run at a rate, or in closed loop, and adds it to the curve.
    fn measure(&mut self, role: &'static str, asked: Option<f64>) -> Result<&Point, Stop> {
        let plan = native::run(&at(self.typed, asked), &self.inputs).map_err(Stop::Usage)?.plan;
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
        let point = Point { role, asked, due_s, wrong_values, summary: Summary::of(&measurement, &plan) };
        if !self.typed.args.output.quiet {
            let asked = asked.map_or("closed loop".to_owned(), |asked| format!("{asked:.0} req/s"));
            let met = match (point.carried(), self.curve.goals.is_empty(), point.met()) {
                (false, ..) => ", not carried",
                (true, true, _) => "",
                (true, false, true) => ", goal met",
                (true, false, false) => ", goal missed",
            };
            say(format_args!("{role:>7}: {asked}, {:.0} done/s{met}", point.summary.totals.rate));
        }
        self.curve.points.push(point);
        for file in self.files.iter().filter(|file| file.form.is_checkpointed()) {
            file.output.checkpoint(&(file.render)(&self.curve))?;
        }
        Ok(&self.curve.points[self.curve.points.len() - 1])
    }

    /// Writes the curve and says how it ended.
    fn conclude(mut self, stop: Option<Stop>, exit: Exit) -> Exit {
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
fn prepared(
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
fn first_job(typed: &Typed<RunArgs>, inputs: &FrontInputs, rates: &[Option<f64>]) -> Result<Job, Stop> {
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
    fn rates_of_a_scan_are_read_with_their_units() {
        assert_eq!(rates("10k:50k:10k"), Ok(Rates { low: 10_000.0, high: 50_000.0, step: 10_000.0 }));
        for text in ["", "1:2", "5:2:1", "1:2:0", "1:2:x", "1:10m:1", "0:2:1", "1:2:3:4"] {
            assert!(rates(text).is_err(), "{text}");
        }
    }
}
