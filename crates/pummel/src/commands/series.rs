//! Runs at several rates, and what they show together; `pummel scan`, whose rates lie at equal distances.

use std::collections::{BTreeSet, VecDeque};

use clap::{Arg, Args};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::fleet::Fleet;
use pummel_fronts::job::{FrontInputs, Job, UsageError, seed_of};
use pummel_fronts::native;
use pummel_fronts::native::typed_rate::TypedRate;
use pummel_fronts::native::{RunArgs, Typed};
use pummel_fronts::style::StyleOutput;
use pummel_fronts::values;
use pummel_fronts::values::{ValueError, WarmUpTime};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Part, Plan, RatePoint, RateShape, TracePace};
use pummel_logic::time::{Nanos, SECOND, seconds};
use pummel_measure::measurement::Measurement;
use pummel_measure::reason::Reason;
use pummel_measure::summary::Summary;
use pummel_report::anonymous;
use pummel_report::curve;
use pummel_report::curve::Point;
use pummel_report::document::{CurveDocument, CurveRun, OtherOutcomes};
use pummel_report::stored::ResultDocument;

use crate::commands::detection::detected;
use crate::commands::one_run::{SeveralRuns, refuse_forms, refuse_stdin};
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::provenance::told_command_line;
use crate::job::runner::NotRun;
use crate::job::series::{
    Finished, RunSeries, SeriesRun, SeriesSide, SeriesState, SeriesStyle, ServerCare, is_whole,
};
use crate::job::series_result::{ResultSeries, follow};
use crate::parser_answer::answer;

/// Options of `pummel scan`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SCAN_EXAMPLES, after_long_help = format!("{SCAN_EXAMPLES}\n\n{STATUSES}"), mut_args(hidden_where_refused))]
pub struct ScanArgs {
    /// Rates to measure: lowest, highest and step, such as 10k:50k:10k
    #[arg(long, value_name = "LO:HI:STEP", value_parser = rates, required_unless_present = "over", allow_hyphen_values = true)]
    pub rates: Option<Rates>,
    /// Levels of connections or threads instead of rates, such as connections:1:64
    ///
    /// Measures in a closed loop at up to eight levels, to show how the rate scales
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

impl Rates {
    /// All of them, from the lowest on.
    fn all(self) -> impl Iterator<Item = f64> {
        let Rates { low, high, step } = self;
        let count = ((high - low) / step + 1e-9) as u32;
        (0..=count).map(move |number| low + f64::from(number) * step)
    }
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
    match prepared_scan(args, inputs) {
        Ok((prepared, asked)) => prepared.follow("scan", inputs, asked),
        Err(error) => answer(&error.into()),
    }
}

/// A scan that is ready, and all of its runs.
fn prepared_scan(
    args: &ScanArgs,
    inputs: &FrontInputs,
) -> Result<(PreparedSeries, VecDeque<Asked>), UsageError> {
    match (args.over, args.rates) {
        (Some(_), _) if args.run.has("--arrivals") => Err(UsageError::Missing(
            "'--arrivals' is accepted with '--rates' only: a closed loop asks as soon as it is answered"
                .to_owned(),
        )),
        (Some(over), _) => {
            let asked: VecDeque<Asked> =
                over.levels().into_iter().map(|level| Asked::Level(over.kind, level)).collect();
            // The greatest level asks for the most; the first run is made at the least.
            let checked = [Asked::Level(over.kind, over.low), Asked::Level(over.kind, over.high)];
            Ok((PreparedSeries::of(&args.run, inputs, None, &checked)?, asked))
        }
        (None, Some(rates)) => {
            let asked: VecDeque<Asked> = rates.all().map(|rate| Asked::Rate(SCAN_ROLE, Some(rate))).collect();
            let first = [Asked::Rate(SCAN_ROLE, Some(rates.low))];
            Ok((PreparedSeries::of(&args.run, inputs, Some(rates.low), &first)?, asked))
        }
        (None, None) => Err(UsageError::Missing("'--rates' or '--over' is required".to_owned())),
    }
}

/// The role of the runs of a scan.
const SCAN_ROLE: &str = "scan";

/// A choice that was made before the first run.
impl Choice for VecDeque<Asked> {
    fn next(&mut self) -> Result<Option<Asked>, NotRun> {
        Ok(self.pop_front())
    }
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

/// A run that a series asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// A run with this role at a rate; in closed loop without one.
    Rate(&'static str, Option<f64>),
    /// A run in closed loop at so many of what a scan changes.
    Level(Kind, u32),
    /// One run without a warm-up at two rates, each with its role, without a pause between them: the first for so many
    /// nanoseconds, the second for as long as a run of the command line. It is never the first run, and what is known stays known
    /// where it fails. It is left out where the load cannot change its rate.
    InTurn([(&'static str, f64); 2], Nanos),
}

impl Asked {
    /// The options of such a run.
    fn options(self, typed: &Typed<RunArgs>) -> Typed<RunArgs> {
        match self {
            Asked::Rate(_, rate) => at(typed, rate),
            Asked::Level(kind, level) => at_level(&at(typed, None), kind, level),
            Asked::InTurn([_, (_, rate)], _) => at(typed, Some(rate)),
        }
    }
}

/// The choice of the runs of a series, one after the other.
pub trait Choice {
    /// The next run; `None` where there are enough.
    ///
    /// # Errors
    /// Returns [`NotRun`] when the runs so far allow none.
    fn next(&mut self) -> Result<Option<Asked>, NotRun>;

    /// Takes the run that was chosen last, with its last point. `curve` keeps what it shows, in sentences as `told` makes them.
    fn add(
        &mut self,
        _finished: Finished,
        _point: &Point,
        _told: &dyn Fn(&str) -> String,
        _curve: &mut CurveDocument,
    ) {
    }
}

/// A series that is ready for its first run.
pub struct PreparedSeries {
    typed: Typed<RunArgs>,
    detection: Detection,
    /// The first run, without files of its own.
    job: Job,
}

impl PreparedSeries {
    /// The options of a series with their files read and the protocol of their servers, which are asked as the run at `rate` would
    /// ask them. Runs like each of the `checked` ones can be made; the first of them is the first run.
    ///
    /// # Errors
    /// Returns [`UsageError`] for options that a series does not have, for files that cannot be read, and for a run that could not be
    /// made.
    pub fn of(
        typed: &Typed<RunArgs>,
        inputs: &FrontInputs,
        rate: Option<f64>,
        checked: &[Asked],
    ) -> Result<PreparedSeries, UsageError> {
        refuse(typed)?;
        let mut typed = typed.with_files(inputs)?;
        let (found, detection) = detected(&at(&typed, rate), inputs);
        typed.args.target = found.args.target;
        let jobs = checked.iter().map(|asked| native::run(&asked.options(&typed), inputs));
        let job = jobs.collect::<Result<Vec<Job>, UsageError>>()?.swap_remove(0);
        refuse_stdin(&job.plan)?;
        check_agents(&job)?;
        check_here(&job)?;
        Ok(PreparedSeries { typed, detection, job: Job { outputs: job.outputs.of_series(), ..job } })
    }

    /// The seed of the first run.
    pub fn seed(&self) -> u64 {
        self.job.plan.seed
    }

    /// Makes the runs that are chosen, and writes what they show together.
    pub fn follow(self, command: &'static str, inputs: &FrontInputs, choice: impl Choice) -> Exit {
        let PreparedSeries { typed, detection, job } = self;
        let output = &typed.args.output;
        let driver = match Driver::prepare(&job, &Extras::default(), &SeriesStyle) {
            Ok(driver) => driver,
            Err(exit) => return exit,
        };
        let side = SeriesSide::new(ServerCare::None, detection, false);
        let agents = job.fleet.as_ref().map(Fleet::agent_names).unwrap_or_default();
        let mut series = CurveSeries {
            choice,
            typed: &typed,
            // The seed of the first run; those of the others follow from it.
            inputs: FrontInputs { seed: job.plan.seed, ..inputs.clone() },
            asked: None,
            curve: CurveDocument::new(command, &job.plan, told_command_line(&job.plan)),
            plan: &job.plan,
            agents,
            cards: Vec::new(),
        };
        follow(&mut series, vec![driver], vec![side], output)
    }
}

/// Runs at the rates, or at the levels, of a choice.
struct CurveSeries<'a, C> {
    choice: C,
    typed: &'a Typed<RunArgs>,
    inputs: FrontInputs,
    /// The run that was asked for last.
    asked: Option<Asked>,
    curve: CurveDocument,
    /// The plan of the first run.
    plan: &'a Plan,
    /// Names of the agents of the last run; before it, the names by which they are to be reached.
    agents: Vec<String>,
    /// Names of the network cards of the last run.
    cards: Vec<String>,
}

impl<C: Choice> RunSeries for CurveSeries<'_, C> {
    fn next_run(&mut self, out: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
        while let Some(asked) = self.choice.next()? {
            let seed = seed_of(self.inputs.seed, self.curve.runs.len() as u32);
            self.asked = Some(asked);
            let Asked::InTurn(stretches, first_ns) = asked else {
                let plan = native::run(&asked.options(self.typed), &self.inputs)?.plan;
                return Ok(Some(SeriesRun::new(&plan, seed)));
            };
            match self.plan_in_turn(stretches, first_ns) {
                Ok(plan) => {
                    let preface = Some(format!(
                        "the answer was known when the server was overloaded, with {:.0} requests per second, and the run \
                         with that overload failed",
                        stretches[0].1
                    ));
                    return Ok(Some(SeriesRun { preface, ..SeriesRun::new(&plan, seed) }));
                }
                Err(why) => {
                    out.error(format!("overload: not made, since this load cannot change its rate: {why}\n"));
                }
            }
        }
        Ok(None)
    }

    fn counts(&mut self, plan: &ValidPlan, measurement: &mut Measurement) -> bool {
        self.note_surroundings(measurement);
        // A run in which nothing was due shows nothing, and the other runs of the series may.
        is_whole(plan, measurement) || measurement.reason == Some(Reason::NothingDue)
    }

    fn add(&mut self, finished: Finished, out: &mut StyleOutput) -> Result<(), NotRun> {
        let asked = self.asked.take().expect("a run was asked for");
        if let (Asked::Rate(_, Some(_)), Some(group)) = (asked, finished.plan.groups.first()) {
            self.curve.arrivals = group.arrivals.to_string();
        }
        let told = |sentence: &str| anonymous::sentence(sentence, self.plan, &self.agents, &self.cards);
        let mut points = points_of(asked, &finished);
        for point in &mut points {
            for name in point.summary.verdict.cause.names_mut() {
                *name = told(name);
            }
            let run = point.document();
            out.line(line_of(&run));
            curve::push(&mut self.curve, run);
        }
        if let Some(point) = points.last() {
            self.choice.add(finished, point, &told, &mut self.curve);
        }
        Ok(())
    }
}

impl<C: Choice> ResultSeries for CurveSeries<'_, C> {
    fn result(&self, state: &SeriesState) -> ResultDocument {
        let told = |reason: String| anonymous::sentence(&reason, self.plan, &self.agents, &self.cards);
        ResultDocument::Series(Box::new(CurveDocument {
            status: state.status(),
            reason: state.reason().map(told),
            made_again: state.made_again,
            ..self.curve.clone()
        }))
    }
}

impl<C> CurveSeries<'_, C> {
    /// Keeps what a run, also one that failed, knew of its agents, its servers and its machine.
    fn note_surroundings(&mut self, measurement: &Measurement) {
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
}

/// The points of a run, one for each stretch of it.
fn points_of(asked: Asked, finished: &Finished) -> Vec<Point> {
    let Finished { plan, measurement, summary, .. } = finished;
    let (seed, wrong_values) = (plan.seed, wrong_values(measurement, plan));
    let (role, rate, level) = match asked {
        Asked::Rate(role, rate) => (role, rate, None),
        Asked::Level(kind, level) => (SCAN_ROLE, None, Some((kind.name(), level))),
        Asked::InTurn(stretches, first_ns) => return stretch_points(stretches, first_ns, finished),
    };
    let replayed = measurement.replayed.as_ref().map(|_| rows_due(summary));
    let due_s = rate.map_or(f64::INFINITY, |rate| due_s(plan, rate, replayed));
    let skipped = measurement.counters.skipped.requests;
    let (summary, other_outcomes) = (summary.clone(), OtherOutcomes::of_summary(summary, plan));
    vec![Point { role, asked: rate, level, seed, due_s, wrong_values, other_outcomes, skipped, summary }]
}

/// The points of a run at two rates.
fn stretch_points(
    [first, second]: [(&'static str, f64); 2],
    first_ns: Nanos,
    finished: &Finished,
) -> Vec<Point> {
    let Finished { plan, measurement, .. } = finished;
    let answered_s = seconds(measurement.measured_ns.max(measurement.answered_ns));
    let windows = measurement.windows.as_ref();
    let mut points = Vec::new();
    for ((role, rate), mut summary) in [first, second].into_iter().zip(Summary::of_parts(measurement, plan)) {
        let due_s = summary.seconds;
        let is_first = points.is_empty();
        // What was due in the first stretch may be answered long after it.
        if let Some(rate) = windows.filter(|_| is_first).and_then(|all| all.rate_until(first_ns)) {
            summary.totals.rate = rate;
            let needed_s = summary.totals.counts.completed as f64 / rate;
            summary.seconds = needed_s.min(answered_s).max(due_s);
        }
        // Values are counted for the whole run.
        let wrong_values = wrong_values(measurement, plan).filter(|_| !is_first);
        let seed = plan.seed;
        let (asked, level, skipped) = (Some(rate), None, measurement.counters.skipped.requests);
        let other_outcomes = OtherOutcomes::of_summary(&summary, plan);
        points.push(Point {
            role,
            asked,
            level,
            seed,
            due_s,
            wrong_values,
            other_outcomes,
            skipped,
            summary,
        });
    }
    points
}

/// The line about a run.
fn line_of(run: &CurveRun) -> String {
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
    format!("{:>8}: {asked}, {:.0} done/s{met}{steady}", run.role, run.rate)
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

/// An option as the help of a series shows it.
pub fn hidden_where_refused(arg: Arg) -> Arg {
    SeveralRuns::Series.hidden_where_refused(arg)
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
    refuse_forms(&typed.args.output)?;
    if typed.has("--server-stats") && !is_live(&typed.args) {
        return Err(UsageError::Missing(
            "'--server-stats' is accepted with a series only beside '--live', which shows it: the result has no intervals"
                .to_owned(),
        ));
    }
    SeveralRuns::Series.refuse_options(typed)
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
    let measured = plan.phases.iter().rfind(|phase| phase.recorded);
    let stop = measured.map(|phase| phase.stop).unwrap_or_default();
    let counts = stop.requests.into_iter().chain(replayed);
    let counted_s = counts.min().map(|count| (count as f64 + 4.0 * (count as f64).sqrt()) / rate);
    let timed_s = stop.time_ns.map(seconds);
    counted_s.into_iter().chain(timed_s).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};
    use pummel_measure::measurement::Status;

    use super::*;
    use crate::job::series::tests::{asked, finished, inputs};
    use pummel_fronts::style::Word;

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
        for rate in [None, Some(1e3)] {
            if let Err(error) = native::run(&at(&run, rate), &inputs()) {
                panic!("{rate:?}: {error}");
            }
        }
    }

    /// Makes the series of a choice with these options.
    fn with_series<T>(
        words: &str,
        choice: Vec<Asked>,
        test: impl FnOnce(&mut CurveSeries<'_, VecDeque<Asked>>) -> T,
    ) -> T {
        let typed = runs(words);
        let plan = native::run(&typed, &inputs()).expect("a job").plan;
        test(&mut CurveSeries {
            choice: choice.into(),
            typed: &typed,
            inputs: inputs(),
            asked: None,
            curve: CurveDocument::new("scan", &plan, Vec::new()),
            plan: &plan,
            agents: Vec::new(),
            cards: Vec::new(),
        })
    }

    #[test]
    fn each_run_is_a_point_and_a_run_at_two_rates_is_two() {
        let in_turn = Asked::InTurn([("overload", 3e3), ("after", 1e3)], SECOND);
        let choice = vec![Asked::Rate("peak", None), Asked::Rate("scan", Some(1e3)), in_turn];
        with_series("-t 1s", choice, |series| {
            let runs = asked(series, 9);
            let rates: Vec<Option<f64>> = runs.iter().map(|run| run.plan.groups[0].rate).collect();
            assert_eq!(rates[..2], [None, Some(1e3)]);
            assert_eq!(runs[1].plan.seed, seed_of(1, 1));
            assert_eq!(runs[2].plan.changes.parts.len(), 2);
            let ResultDocument::Series(result) = series.result(&SeriesState::default()) else {
                panic!("a series")
            };
            let roles: Vec<&str> = result.runs.iter().map(|run| run.role.as_str()).collect();
            assert_eq!((roles, result.status), (vec!["peak", "scan", "overload", "after"], Status::Partial));
        });
    }

    #[test]
    fn a_load_that_cannot_change_its_rate_is_not_overloaded_and_a_line_says_so() {
        let in_turn = Asked::InTurn([("overload", 3e3), ("after", 1e3)], SECOND);
        with_series("--trace t", vec![in_turn], |series| {
            let mut out = StyleOutput::default();
            assert!(series.next_run(&mut out).expect("no error").is_none());
            let said = out.take();
            assert!(matches!(&said[..], [Word::Error(text)] if text.starts_with("overload: not made")));
        });
    }

    #[test]
    fn a_run_in_which_nothing_was_due_counts_and_one_of_errors_does_not() {
        with_series("-t 1s", vec![Asked::Rate("scan", Some(1e3))], |series| {
            let run = series.next_run(&mut StyleOutput::default()).expect("no error").expect("a run");
            let Finished { plan, mut measurement, .. } = finished(&run);
            assert!(series.counts(&plan, &mut measurement));
            measurement.mark(Status::Partial, Reason::NothingDue);
            assert!(series.counts(&plan, &mut measurement));
            let mut lost = finished(&run).measurement;
            lost.mark(Status::Partial, Reason::NotBegun { what: "busy".to_owned() });
            assert!(!series.counts(&plan, &mut lost));
            let end = NotRun::Agents("gone".to_owned());
            let state = SeriesState { end: Some(end), is_over: true, ..SeriesState::default() };
            let ResultDocument::Series(result) = series.result(&state) else { panic!("a series") };
            assert_eq!((result.status, result.reason.as_deref()), (Status::Partial, Some("gone")));
        });
    }

    #[test]
    fn a_scan_has_every_rate_up_to_the_greatest() {
        let rates = |text| rates(text).expect(text).all().collect::<Vec<f64>>();
        assert_eq!(rates("1k:3500:1k"), [1e3, 2e3, 3e3]);
        assert_eq!(rates("0.1:0.3:0.1").len(), 3);
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
