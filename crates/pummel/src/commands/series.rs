//! Runs at several rates, and what they show together; `pummel scan`, whose rates lie at equal distances.

use std::collections::BTreeSet;
use std::io;

use clap::{Arg, Args};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Part, Plan, RatePoint, RateShape, TracePace, Work};
use pummel_logic::time::{Nanos, SECOND, seconds};
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::outcome::failure_of;
use pummel_measure::reason::Reason;
use pummel_measure::summary::Summary;

use crate::commands::detection::detected;
use crate::commands::run_maker::{SeriesEnd, SeriesStyle, pause_before, refuse_stdin, until_whole};
use crate::exit_status::{Exit, answer};
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::fleet::Fleet;
use crate::job::outputs;
use crate::job::provenance::told_command_line;
use crate::job::runner::Dealing;
use crate::job::{FrontInputs, Job, ReportFormat, UsageError, seed_of};
use crate::native;
use crate::native::options::OutputArgs;
use crate::native::typed_rate::TypedRate;
use crate::native::{RunArgs, Typed};
use crate::output::{Output, print, print_screen};
use crate::stderr::say;
use crate::values;
use crate::values::{ValueError, WarmUpTime};
use pummel_report::anonymous;
use pummel_report::curve;
use pummel_report::curve::Point;
use pummel_report::document::{CurveDocument, CurveSearch};
use pummel_report::forms::{FORMS, Form};
use pummel_report::screen::Hints;
use pummel_report::view::series::SeriesHeadline;

/// Options of `pummel scan`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SCAN_EXAMPLES, after_long_help = format!("{SCAN_EXAMPLES}\n\n{STATUSES}"), mut_args(hidden_where_refused))]
pub struct ScanArgs {
    /// Rates to measure: lowest, highest and step, such as 10k:50k:10k
    #[arg(long, value_name = "LO:HI:STEP", value_parser = rates, required_unless_present = "over", allow_hyphen_values = true)]
    pub rates: Option<Rates>,
    /// Measure in a closed loop at up to eight levels of connections or threads, such as connections:1:64, to show how the rate scales
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
  pummel scan -s 127.0.0.1 --over connections:1:64 -t 5s";

/// The exit statuses of a series of which every run is wanted.
pub const STATUSES: &str = "\
Exit status:
  0    every rate was measured
  1    a run failed; the reports say why, or standard error where nothing was measured
  2    wrong usage; nothing was sent
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
            "expected three rates, LO:HI:STEP with LO <= HI and at most 1000 runs, such as 10k:50k:10k"
                .to_owned(),
        )),
    }
}

fn over(text: &str) -> Result<Over, ValueError> {
    let accepted = || {
        let text = "expected connections:LO:HI or threads:LO:HI, with 1 <= LO < HI, such as connections:1:64";
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
    if args.over.is_some() && args.run.has("--arrivals") {
        let why =
            "'--arrivals' is accepted with '--rates' only: a closed loop asks as soon as it is answered";
        return answer(&UsageError::Missing(why.to_owned()).into());
    }
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
    let job = first_job(&run, inputs, &[Some(low)]);
    series("scan", (&run, detection), inputs, job, |runner, _| {
        let count = ((high - low) / step + 1e-9) as u32;
        for n in 0..=count {
            runner.measure("scan", Some(low + f64::from(n) * step))?;
        }
        Ok(())
    })
}

/// Measures in closed loop at every level.
fn scan_over((run, detection): (&Typed<RunArgs>, Detection), over: Over, inputs: &FrontInputs) -> Exit {
    let levels = over.levels();
    // The greatest level asks for the most; the first run is made at the least.
    let checked = first_job(&at_level(run, over.kind, over.high), inputs, &[None])
        .and_then(|_| first_job(&at_level(run, over.kind, over.low), inputs, &[None]));
    series("scan", (run, detection), inputs, checked, |runner, _| {
        for level in levels {
            let typed = at_level(&at(run, None), over.kind, level);
            runner.make("scan", &typed, None, Some((over.kind.name(), level)))?;
        }
        Ok(())
    })
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

/// Makes the runs of a series with `make`, and writes their common results. `job` is the first of the runs.
pub fn series(
    command: &'static str,
    (typed, detection): (&Typed<RunArgs>, Detection),
    inputs: &FrontInputs,
    job: Result<Job, SeriesEnd>,
    make: impl FnOnce(&mut CurveRunner<'_>, &Job) -> Result<(), SeriesEnd>,
) -> Exit {
    let job = match job {
        Ok(job) => job,
        Err(end) => return end.exit(),
    };
    let mut runner = match CurveRunner::new(command, typed, inputs, (&job, detection)) {
        Ok(runner) => runner,
        Err(end) => return end.exit(),
    };
    let end = make(&mut runner, &job).err();
    runner.conclude(end)
}

/// What all runs have in common.
pub struct CurveRunner<'a> {
    typed: &'a Typed<RunArgs>,
    inputs: FrontInputs,
    driver: Driver<'a>,
    files: Vec<SeriesFile>,
    curve: CurveDocument,
    /// The last run.
    last: Option<Point>,
    /// The plan of the first run.
    plan: &'a Plan,
    /// Names of the agents of the last run; before it, the names by which they are to be reached.
    agents: Vec<String>,
    /// Names of the network cards of the last run.
    cards: Vec<String>,
}

/// A file that is made from all runs.
struct SeriesFile {
    form: &'static Form,
    render: fn(&CurveDocument) -> Vec<u8>,
    output: Output,
}

impl<'a> CurveRunner<'a> {
    /// Checks that everything that the runs need can be read and written, before anything is sent.
    ///
    /// # Errors
    /// Returns [`SeriesEnd`] when a run cannot be made.
    fn new(
        command: &'static str,
        typed: &'a Typed<RunArgs>,
        inputs: &FrontInputs,
        (job, detection): (&'a Job, Detection),
    ) -> Result<CurveRunner<'a>, SeriesEnd> {
        let driver = Driver::prepare(job, &Extras { detection, ..Extras::default() }, &SeriesStyle)
            .map_err(SeriesEnd::Reported)?;
        let mut files = Vec::new();
        for (form, path) in typed.args.output.files.0.iter() {
            let Some(render) = form.series else { continue };
            let output = outputs::open(form, path)?;
            files.extend(output.map(|output| SeriesFile { form, render, output }));
        }
        Ok(CurveRunner {
            typed,
            // The seed of the first run; those of the others follow from it.
            inputs: FrontInputs { seed: job.plan.seed, ..inputs.clone() },
            driver,
            files,
            // What is written before the end is of a part of the runs.
            curve: CurveDocument {
                status: Status::Partial,
                ..CurveDocument::new(command, &job.plan, told_command_line(&job.plan))
            },
            last: None,
            plan: &job.plan,
            agents: job.fleet.as_ref().map(Fleet::agent_names).unwrap_or_default(),
            cards: Vec::new(),
        })
    }

    /// Makes a run at a rate, or in closed loop, and adds it to the curve.
    ///
    /// # Errors
    /// Returns [`SeriesEnd`] when the run cannot begin, is not complete, or is interrupted.
    pub fn measure(&mut self, role: &'static str, asked: Option<f64>) -> Result<Measurement, SeriesEnd> {
        self.make(role, &at(self.typed, asked), asked, None)
    }

    /// Makes one run without a warm-up at two rates, of which the first lasts `first_ns` and the second as long as a run of the
    /// command line does, without a pause between them; adds each stretch to the curve, with its role. Returns `None`, and says
    /// why, where the load of the command line cannot change its rate. It is never the first run.
    ///
    /// # Errors
    /// Returns [`SeriesEnd`] when the run cannot begin, is not complete, or is interrupted.
    pub fn measure_in_turn(
        &mut self,
        stretches: [(&'static str, f64); 2],
        first_ns: Nanos,
    ) -> Result<Option<Measurement>, SeriesEnd> {
        let plan = match self.plan_in_turn(stretches, first_ns) {
            Ok(plan) => plan,
            Err(why) => {
                say(format_args!(
                    "{:>8}: not made, since this load cannot change its rate: {why}",
                    stretches[0].0
                ));
                return Ok(None);
            }
        };
        let (measurement, plan) = self.run(&plan)?;
        let windows = measurement.windows.as_ref();
        let mut wrong_values = [None, wrong_values(&measurement, &plan)].into_iter();
        let answered_s = seconds(measurement.measured_ns.max(measurement.answered_ns));
        for ((role, asked), mut summary) in stretches.into_iter().zip(Summary::of_parts(&measurement, &plan))
        {
            let due_s = summary.seconds;
            // What was due in the first stretch may be answered long after it.
            if let Some(rate) =
                windows.filter(|_| role == stretches[0].0).and_then(|all| all.rate_until(first_ns))
            {
                summary.totals.rate = rate;
                let needed_s = summary.totals.counts.completed as f64 / rate;
                summary.seconds = needed_s.min(answered_s).max(due_s);
            }
            let wrong_values = wrong_values.next().flatten();
            let seed = plan.seed;
            self.add(Point { role, asked: Some(asked), level: None, seed, due_s, wrong_values, summary })?;
        }
        Ok(Some(measurement))
    }

    /// The plan of a run at two rates, or the reason why there is none: some loads cannot change their rate.
    fn plan_in_turn(
        &self,
        stretches: [(&'static str, f64); 2],
        first_ns: Nanos,
    ) -> Result<ValidPlan, String> {
        if !self.typed.args.trace.trace.is_empty() {
            return Err("a trace is replayed at one rate".to_owned());
        }
        let [first, second] = stretches;
        let plan = |typed: &Typed<RunArgs>| native::run(typed, &self.inputs).map(|job| job.plan);
        let usual = plan(&at(self.typed, Some(second.1))).map_err(|why| why.to_string())?;
        let second_ns = (due_s(&usual, second.1, None) * SECOND as f64) as Nanos;
        let point = |at_ns, rate| RatePoint { at_ns, rate };
        let points = vec![point(0, first.1), point(first_ns, first.1), point(first_ns, second.1)];
        let mut typed = self.typed.clone();
        let pace = &mut typed.args.pace;
        pace.rate = Some(TypedRate::Shape(RateShape::Points(points)));
        (pace.time, pace.requests) = (Some(first_ns.saturating_add(second_ns)), None);
        (pace.warmup, pace.warmup_until) = (WarmUpTime::Fixed(0), None);
        let mut plan = plan(&typed).map_err(|why| why.to_string())?.into_plan();
        let part = |(name, _): (&str, f64), at_ns| Part::plain(name.to_owned(), at_ns);
        plan.changes.parts = vec![part(first, 0), part(second, first_ns)];
        plan.validate().map_err(|why| why.to_string())
    }

    /// Makes a run with these options at a rate, or in closed loop at a level of something, and adds it to the curve.
    fn make(
        &mut self,
        role: &'static str,
        typed: &Typed<RunArgs>,
        asked: Option<f64>,
        level: Option<(&'static str, u32)>,
    ) -> Result<Measurement, SeriesEnd> {
        let plan = native::run(typed, &self.inputs).map_err(SeriesEnd::Usage)?.plan;
        let (measurement, plan) = self.run(&plan)?;
        if let Some(group) = plan.groups.first().filter(|_| asked.is_some()) {
            self.curve.arrivals = group.arrivals.to_string();
        }
        let wrong_values = wrong_values(&measurement, &plan);
        let summary = Summary::of(&measurement, &plan);
        let replayed = measurement.replayed.as_ref().map(|_| rows_due(&summary));
        let due_s = asked.map_or(f64::INFINITY, |rate| due_s(&plan, rate, replayed));
        self.add(Point { role, asked, level, seed: plan.seed, due_s, wrong_values, summary })?;
        Ok(measurement)
    }

    /// The plan as the next run has it: with a seed of its own, since runs with the same arrivals would err together, and no line
    /// through them could tell; and without a load where the records are there.
    fn next_plan(&self, plan: &ValidPlan, has_records: bool) -> ValidPlan {
        let mut plan = plan.clone().into_plan();
        plan.seed = seed_of(self.inputs.seed, self.curve.runs.len() as u32);
        if has_records {
            plan.phases.retain(|phase| !matches!(phase.work, Work::Load(_)));
        }
        plan.validate().expect("what a run measures does not depend on its load and its seed")
    }

    /// Makes a run, again where it fails. The first run of the series stores the records, and so does each that follows a failed
    /// one: a server that started anew has none. Returns the plan that was run too.
    fn run(&mut self, plan: &ValidPlan) -> Result<(Measurement, ValidPlan), SeriesEnd> {
        let mut made_again = self.curve.made_again;
        let run = until_whole(&mut made_again, |tried| {
            self.driver.rest(pause_before(tried));
            let plan = self.next_plan(plan, tried == 1 && !self.curve.runs.is_empty());
            Ok((self.try_once(&plan)?, plan))
        });
        self.curve.made_again = made_again;
        run
    }

    fn try_once(&mut self, plan: &ValidPlan) -> Result<Measurement, SeriesEnd> {
        let mut measurement = self.driver.run(plan, Dealing::Evenly, &mut SeriesStyle)?;
        // A run of errors shows nothing of what the series compares.
        if let Some(failed) = failure_of(&measurement, plan) {
            measurement.mark(Status::Partial, Reason::RequestsFailed(failed));
        }
        if let Some(agents) = &measurement.agents {
            self.agents = agents.members.iter().map(|member| member.name.clone()).collect();
        }
        let servers = measurement.evidence.iter().flat_map(|evidence| &evidence.servers);
        let readings = servers.filter_map(|server| server.reading.as_ref());
        let known = readings.filter(|reading| !reading.software.is_empty());
        let known: BTreeSet<String> =
            known.map(|reading| format!("{} {}", reading.software, reading.version)).collect();
        if !known.is_empty() {
            self.curve.software = known.into_iter().collect();
        }
        self.curve.agents = measurement.agents.as_ref().map_or(0, |agents| agents.members.len());
        let machines = measurement.evidence.iter().flat_map(|evidence| &evidence.machines);
        let cards = machines.flat_map(|machine| &machine.network).flat_map(|network| &network.cards);
        self.cards = cards.map(|card| card.name.clone()).collect();
        match measurement.status {
            Status::Complete => Ok(measurement),
            // It shows nothing, and the other runs of the series may.
            Status::Partial if measurement.reason == Some(Reason::NothingDue) => Ok(measurement),
            Status::Interrupted => Err(SeriesEnd::Interrupted),
            Status::Partial => Err(SeriesEnd::partial(plan, &measurement)),
        }
    }

    /// Prints the result of a run, and adds it to the curve.
    fn add(&mut self, mut point: Point) -> Result<(), SeriesEnd> {
        for name in point.summary.verdict.cause.names_mut() {
            *name = self.told(name);
        }
        let run = point.document();
        if !self.typed.args.output.quiet {
            let asked = match (run.asked_rate, &run.level) {
                (Some(asked), _) => format!("{asked:.0} req/s"),
                (None, Some(level)) => format!("{} {}", level.n, level.of),
                (None, None) => "closed loop".to_owned(),
            };
            let met = match run.met {
                _ if !run.carried => ", not carried",
                None if run.is_idle() => ", no request was due",
                None => "",
                Some(true) => ", goal met",
                Some(false) => ", goal missed",
            };
            let steady = if run.is_unsteady() { ", not steady" } else { "" };
            say(format_args!("{:>8}: {asked}, {:.0} done/s{met}{steady}", run.role, run.rate));
        }
        curve::push(&mut self.curve, run);
        self.last = Some(point);
        for file in self.files.iter().filter(|file| file.form.is_checkpointed()) {
            file.output.checkpoint(&(file.render)(&self.curve))?;
        }
        Ok(())
    }

    /// A sentence about a run as the results tell it.
    pub fn told(&self, sentence: &str) -> String {
        anonymous::sentence(sentence, self.plan, &self.agents, &self.cards)
    }

    /// The last run of the curve.
    pub fn last(&self) -> Option<&Point> {
        self.last.as_ref()
    }

    /// Keeps the rate that a search found so far, and its further results.
    pub fn set_found(&mut self, rate: Option<f64>, search: CurveSearch) {
        (self.curve.found_rate, self.curve.search) = (rate, Some(search));
    }

    /// Writes the curve and says how it ended. Returns the exit status.
    fn conclude(mut self, stop: Option<SeriesEnd>) -> Exit {
        self.driver.close_view();
        if matches!(stop, Some(SeriesEnd::Usage(_))) && self.curve.runs.is_empty() {
            // Nothing was sent, and what the files hold is of another series.
            let closed = self.driver.close();
            if let Err(error) = closed {
                say(format_args!("error: {error}"));
            }
            return stop.map_or(Exit::Usage, SeriesEnd::exit);
        }
        self.curve.reason = stop.as_ref().and_then(SeriesEnd::reason).map(|reason| self.told(&reason));
        self.curve.status = match &stop {
            None => Status::Complete,
            Some(SeriesEnd::Interrupted) => Status::Interrupted,
            Some(_) => Status::Partial,
        };
        let is_told = SeriesEnd::says_all(stop.as_ref(), self.curve.runs.len());
        // Why there are no more runs is said on standard error; the status is that of the result.
        let _ = stop.map(SeriesEnd::exit);
        let exit = Exit::of_status(SeriesHeadline::of(&self.curve).status);
        let OutputArgs { quiet, screen, format, .. } = &self.typed.args.output;
        let taken = self.files.iter().any(|file| file.output.is_standard());
        // Files first: standard output may not be read yet.
        let written = self.files.iter().map(|file| file.output.finish(&(file.render)(&self.curve)));
        let mut results: Vec<io::Result<()>> = written.collect();
        results.push(match (taken, format.unwrap_or_default()) {
            (true, _) => Ok(()),
            (false, ReportFormat::Json) => print(&curve::json(&self.curve)),
            (false, ReportFormat::Markdown) => print(&curve::markdown(&self.curve)),
            (false, ReportFormat::Text) if is_told => Ok(()),
            (false, ReportFormat::Text) => {
                let paper = screen.paper(Hints::OfRuns);
                print_screen(&curve::text(&self.curve, screen.detail(*quiet), paper))
            }
        });
        results.push(self.driver.close());
        let troubles = results.into_iter().filter_map(Result::err);
        troubles.fold(exit, |exit, error| match SeriesEnd::from(error).exit() {
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
/// Returns [`SeriesEnd`] when one of them could not be made.
pub fn first_job(
    typed: &Typed<RunArgs>,
    inputs: &FrontInputs,
    rates: &[Option<f64>],
) -> Result<Job, SeriesEnd> {
    let mut jobs = Vec::with_capacity(rates.len());
    for rate in rates {
        jobs.push(native::run(&at(typed, *rate), inputs).map_err(SeriesEnd::Usage)?);
    }
    let job = jobs.swap_remove(0);
    refuse_stdin(&job.plan)
        .and_then(|()| check_agents(&job))
        .and_then(|()| check_here(&job))
        .map_err(SeriesEnd::Usage)?;
    Ok(Job { outputs: job.outputs.of_series(), ..job })
}

/// Refuses fewer connections than there are agents, where their number is known before they are reached.
fn check_agents(job: &Job) -> Result<(), UsageError> {
    let agents = job.fleet.as_ref().map_or(0, |fleet| fleet.agent_names().len() as u64);
    let dealt = job.plan.groups.iter().filter(|group| !group.policy.here);
    match dealt.map(|group| u64::from(group.clients)).sum::<u64>() {
        clients if clients < agents => Err(UsageError::Missing(format!(
            "--connections {clients}: expected at least one connection for each of the {agents} agents in every run"
        ))),
        _ => Ok(()),
    }
}

/// Options of `pummel run` that have no meaning for several runs with a rate each, and those that are accepted only
/// together with such options.
const REFUSED: [&str; 17] = [
    "burst",
    "calls-per-connection",
    "conn-rate",
    "fail-on",
    "interval",
    "max-time",
    "min-time",
    "pace",
    "parquet",
    "phases",
    "plan",
    "rate",
    "stage",
    "stamps",
    "times",
    "until",
    "within-second",
];

/// An option as the help of a series shows it; refused options are hidden.
pub fn hidden_where_refused(arg: Arg) -> Arg {
    let is_refused = arg.get_long().is_some_and(|name| {
        REFUSED.contains(&name) || FORMS.iter().any(|form| form.name == name && form.series.is_none())
    });
    if is_refused { arg.hide(true) } else { arg }
}

/// Whether the runs are shown full screen.
#[cfg(feature = "live")]
fn is_live(args: &RunArgs) -> bool {
    args.output.live
}

#[cfg(not(feature = "live"))]
fn is_live(_args: &RunArgs) -> bool {
    false
}

/// Refuses what means nothing for several runs of which each has a rate.
fn refuse(typed: &Typed<RunArgs>) -> Result<(), UsageError> {
    let args = &typed.args;
    let one_run = "which makes one run and not several";
    let no_rate =
        "since clients that come and go make as many requests as --conn-rate and --calls-per-connection say";
    let not_timed = "since each run of a series has its rate, or is a closed loop";
    let refused = [
        (args.pace.rate.is_some(), "--rate", one_run),
        (args.pace.phases.is_some(), "--phases", one_run),
        (args.trace.pace.is_some(), "--pace", not_timed),
        (typed.has("--within-second"), "--within-second", not_timed),
        (args.pace.conn_rate.is_some(), "--conn-rate", no_rate),
        (args.pace.calls_per_connection.is_some(), "--calls-per-connection", no_rate),
        (typed.has("--interval"), "--interval", one_run),
        (typed.has("--fail-on"), "--fail-on", one_run),
        (typed.has("--parquet"), "--parquet", one_run),
        (typed.has("--stamps"), "--stamps", "since the result of a series has no figure of them"),
        (args.output.screen.times, "--times", one_run),
        (args.pace.until.is_some(), "--until", one_run),
        (args.saved.plan.is_some(), "--plan", one_run),
    ];
    let forms = args.output.files.0.iter().filter(|(form, _)| form.series.is_none());
    let forms = forms.map(|(form, _)| (form.flag(), one_run));
    if typed.has("--server-stats") && !is_live(args) {
        return Err(UsageError::Missing(
            "'--server-stats' is accepted with a series only beside '--live', which shows it: the result has no intervals"
                .to_owned(),
        ));
    }
    let refused = refused.into_iter().filter(|(given, ..)| *given);
    match refused.map(|(_, flag, why)| (flag.to_owned(), why)).chain(forms).next() {
        Some((flag, why)) => {
            Err(UsageError::Missing(format!("'{flag}' is accepted with 'pummel run' only, {why}")))
        }
        None => Ok(()),
    }
}

/// The options of a run at a rate, or in closed loop: a trace has times of its own otherwise.
fn at(typed: &Typed<RunArgs>, rate: Option<f64>) -> Typed<RunArgs> {
    let mut typed = typed.clone();
    typed.args.pace.rate = rate.map(TypedRate::Constant);
    if rate.is_none() {
        typed.args.pace.arrivals = None;
        typed.args.trace.pace = (!typed.args.trace.trace.is_empty()).then_some(TracePace::Fast);
    }
    typed
}

/// Values that were wrong or old in a run; `None` where none are checked.
fn wrong_values(measurement: &Measurement, plan: &Plan) -> Option<u64> {
    let verify = &measurement.verify;
    (plan.verify > 0.0).then_some(verify.failed + verify.stale)
}

/// Requests of a replay that were due; those that store what a read missed are no rows of the trace.
fn rows_due(summary: &Summary) -> u64 {
    let counts = &summary.totals.counts;
    counts.requests().saturating_sub(counts.cache.fills)
}

/// In how many seconds all requests of a run at this rate are due, at the latest but for one in ten thousand runs. A replay may
/// have fewer requests, `replayed`, than its plan allows.
fn due_s(plan: &Plan, rate: f64, replayed: Option<u64>) -> f64 {
    let stop = plan.phases.last().map(|phase| phase.stop).unwrap_or_default();
    let counts = stop.requests.into_iter().chain(replayed);
    let counted_s = counts.min().map(|count| (count as f64 + 4.0 * (count as f64).sqrt()) / rate);
    let timed_s = stop.time_ns.map(seconds);
    counted_s.into_iter().chain(timed_s).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

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

    /// The runs of a scan with these options.
    fn runs(words: &str) -> Typed<RunArgs> {
        let command = ScanArgs::augment_args(Command::new("scan").no_binary_name(true));
        let words = "-s a --rates 1k:2k:1k".split(' ').chain(words.split(' '));
        let matches = command.try_get_matches_from(words).expect("options of scan");
        ScanArgs::from_arg_matches(&matches).expect("options of scan").run
    }

    #[test]
    fn a_replay_in_closed_loop_has_no_arrivals_where_runs_at_a_rate_have_some() {
        let run = runs("--trace t --arrivals constant");
        let inputs =
            FrontInputs { servers: None, seed: 1, read_text: |_| Err(io::ErrorKind::NotFound.into()) };
        for rate in [None, Some(1e3)] {
            if let Err(error) = native::run(&at(&run, rate), &inputs) {
                panic!("{rate:?}: {error}");
            }
        }
    }

    /// What a scan with these options is refused with.
    fn refusal(words: &str) -> Option<String> {
        refuse(&runs(words)).err().map(|error| error.to_string())
    }

    #[test]
    fn what_no_result_of_a_series_has_is_refused_unless_it_is_shown_meanwhile() {
        for (words, flag) in [("--stamps tx", "'--stamps'"), ("--server-stats", "'--server-stats'")] {
            assert!(refusal(words).is_some_and(|error| error.contains(flag)), "{words}");
        }
        assert_eq!(refusal("--server-stats-at b"), None);
        #[cfg(feature = "live")]
        assert_eq!(refusal("--server-stats=2s --live"), None);
    }

    #[test]
    fn rates_of_a_scan_are_read_with_their_units() {
        assert_eq!(rates("10k:50k:10k"), Ok(Rates { low: 10_000.0, high: 50_000.0, step: 10_000.0 }));
        for text in ["", "1:2", "5:2:1", "1:2:0", "1:2:x", "1:10m:1", "0:2:1", "1:2:3:4"] {
            assert!(rates(text).is_err(), "{text}");
        }
    }
}
