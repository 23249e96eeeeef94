//! Series of runs: the one loop that makes them.
//!
//! A [`RunSeries`] says which run is next and takes each one that counts; it opens nothing and reads no clock. The loop does what all
//! series have in common: it makes each run by a driver, on a server that may be started for it, makes a run that failed again, tells
//! the lines of the series, and ends with the first signal.

use std::time::Duration;

use pummel_engine::clock;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::hints::Obstacle;
use pummel_fronts::job::UsageError;
use pummel_fronts::native::FRONT;
use pummel_fronts::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::seconds;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::outcome::failure_of;
use pummel_measure::reason::Reason;
use pummel_measure::summary::Summary;
use pummel_report::comparison::SideSource;
use pummel_report::document::Document;
use pummel_report::run_figures::RunFigures;
use pummel_report::words::reason;
use pummel_report::{Ending, Report};

use crate::build_info::BUILD;
use crate::job::detection::Detection;
use crate::job::driver::Driver;
use crate::job::runner::{Dealing, NotRun};
use crate::job::server_program::{ServerProgram, restart};
use crate::parser_answer::answer;
use crate::stderr::say;

/// Most tries of a run that fails.
const TRIES_MAX: u32 = 3;

/// A series of runs: the order of its runs, and its use of each.
pub trait RunSeries {
    /// The next run; `None` where the series is over. Text about it goes to `out`.
    ///
    /// # Errors
    /// Returns [`NotRun`] when the next run cannot be made.
    fn next_run(&mut self, out: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun>;

    /// Takes the run that was asked for last, and tells it.
    ///
    /// # Errors
    /// Returns [`NotRun`] when the run shows that the series cannot go on.
    fn add(&mut self, finished: Finished, out: &mut StyleOutput) -> Result<(), NotRun>;

    /// Takes the reason why the run that was asked for last could not be made, after all tries. The series ends by it, unless it
    /// goes on with its next run.
    ///
    /// # Errors
    /// Returns the reason where the series ends.
    fn missed(&mut self, why: NotRun, _out: &mut StyleOutput) -> Result<(), NotRun> {
        Err(why)
    }

    /// Judges a run: one that does not count is made again, and ends the series when it fails for the last time.
    fn counts(&mut self, plan: &ValidPlan, measurement: &mut Measurement) -> bool {
        is_whole(plan, measurement)
    }

    /// The words about the run that was asked for last; `None` for those of [`SeriesStyle`].
    fn style(&mut self) -> Option<&mut dyn Style> {
        None
    }
}

/// Whether a run is complete. A run of errors is none: it shows nothing of what a series compares.
pub fn is_whole(plan: &ValidPlan, measurement: &mut Measurement) -> bool {
    if let Some(says) = failure_of(measurement, plan) {
        measurement.mark(Status::Partial, Reason::RequestsFailed(says));
    }
    measurement.status == Status::Complete
}

/// A run that a series asks for.
#[derive(Clone, Debug)]
pub struct SeriesRun {
    /// The plan, with the load of its records.
    pub plan: ValidPlan,
    /// The dealing of its clients to processes.
    pub dealing: Dealing,
    /// The side of the series that it is of; 0 where there is one.
    pub side: usize,
    /// Words in front of the reason where it fails; `None` where the reason says it.
    pub preface: Option<String>,
}

impl SeriesRun {
    /// A run of a plan with this seed: runs with the same draws would err together.
    pub fn new(plan: &ValidPlan, seed: u64) -> SeriesRun {
        let mut plan = plan.clone().into_plan();
        plan.seed = seed;
        let plan = plan.validate().expect("a plan that is valid is so with every seed");
        SeriesRun { plan, dealing: Dealing::Evenly, side: 0, preface: None }
    }
}

/// A run that was made.
#[derive(Debug)]
pub struct Finished {
    /// The plan that was run: without a load, where the records were there.
    pub plan: ValidPlan,
    /// The measurement.
    pub measurement: Measurement,
    /// Its figures.
    pub summary: Summary,
    /// Time from before the start of its server until after the server's end, in seconds.
    pub whole_s: f64,
}

impl Finished {
    /// The report of the run in the style of a front.
    pub fn report(&self, front: &'static str) -> Report<'_> {
        Report {
            plan: &self.plan,
            measurement: &self.measurement,
            summary: &self.summary,
            front,
            build: BUILD,
            ending: Ending::Open,
        }
    }

    /// The figures by which runs are compared, and what the run knew of its servers and its machine.
    pub fn figures(&self) -> (RunFigures, SideSource) {
        let result = Document::of(&self.report(FRONT));
        (RunFigures::of(&result, self.whole_s), SideSource::of(&result))
    }
}

/// Says why a series has no more runs. Returns the exit status of a series without a result.
pub fn tell_end(why: &NotRun) -> Exit {
    match why {
        NotRun::Interrupted => Exit::Interrupted,
        why if why.is_usage() => answer(&UsageError::Missing(why.to_string()).into()),
        why => {
            say(format_args!("error: {}", why.obstacle()));
            Exit::Failed
        }
    }
}

/// The words about runs of which each is one line when it is over: only notices are shown meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct SeriesStyle;

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

    /// The report of a series counts the runs whose times are partly the generator's own.
    fn doubted(&self) -> Doubted {
        Doubted::Nothing
    }
}

/// State of a series.
#[derive(Debug, Default)]
pub struct SeriesState {
    /// Number of runs that count.
    pub made: u32,
    /// Number of runs that failed and that a further run followed.
    pub made_again: u32,
    /// Whether no more runs follow.
    pub is_over: bool,
    /// The reason why no more follow, although the series asked for some.
    pub end: Option<NotRun>,
}

impl SeriesState {
    /// The reason why runs are missing, as results have it.
    pub fn reason(&self) -> Option<String> {
        self.end.as_ref().map(NotRun::to_string)
    }

    /// Whether a signal ended the series.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.end, Some(NotRun::Interrupted))
    }

    /// The status of the result: before the end it is that of a part of the runs.
    pub fn status(&self) -> Status {
        match &self.end {
            Some(NotRun::Interrupted) => Status::Interrupted,
            None if self.is_over => Status::Complete,
            Some(_) | None => Status::Partial,
        }
    }
}

/// A maker of single runs.
trait RunMaker {
    /// Rests for so long, or until a signal comes.
    fn rest(&mut self, time: Duration);

    /// Writes text.
    fn say(&mut self, out: &mut StyleOutput);

    /// Makes a run; `tried` is the number of the try, from 1.
    fn make(&mut self, run: &SeriesRun, tried: u32, style: &mut dyn Style) -> Result<Finished, NotMade>;
}

/// Reason why a run was not made.
enum NotMade {
    /// The run failed, and may succeed when it is made again.
    Failed(Obstacle),
    /// No further run would be made either.
    End(NotRun),
}

impl From<NotRun> for NotMade {
    fn from(why: NotRun) -> NotMade {
        NotMade::End(why)
    }
}

/// Makes the runs of a series until it has none, and calls `after` after each of them.
fn make_all<S: RunSeries + ?Sized>(
    series: &mut S,
    maker: &mut impl RunMaker,
    mut after: impl FnMut(&S, &SeriesState),
) -> SeriesState {
    let mut state = SeriesState::default();
    while let Some(next) = make_next(series, maker, &mut state).transpose() {
        if let Err(end) = next {
            state.end = Some(end);
            break;
        }
        after(series, &state);
    }
    state.is_over = true;
    state
}

/// Makes the next run of a series; `None` where there is none.
fn make_next<S: RunSeries + ?Sized>(
    series: &mut S,
    maker: &mut impl RunMaker,
    state: &mut SeriesState,
) -> Result<Option<()>, NotRun> {
    let mut out = StyleOutput::default();
    let next = series.next_run(&mut out);
    maker.say(&mut out);
    let Some(run) = next? else { return Ok(None) };
    let taken = match make_whole(series, maker, &run, &mut state.made_again) {
        Ok(finished) => series.add(finished, &mut out).map(|()| state.made += 1),
        Err(why) => series.missed(why, &mut out),
    };
    maker.say(&mut out);
    taken.map(Some)
}

/// Makes a run, and again while it fails, up to [`TRIES_MAX`] times in all: one that failed in a busy minute need not cost all
/// others. Says each failure that a further run follows, and counts it.
fn make_whole<S: RunSeries + ?Sized>(
    series: &mut S,
    maker: &mut impl RunMaker,
    run: &SeriesRun,
    made_again: &mut u32,
) -> Result<Finished, NotRun> {
    let mut tried = 1;
    loop {
        maker.rest(pause_before(tried));
        let made = match series.style() {
            Some(style) => maker.make(run, tried, style),
            None => maker.make(run, tried, &mut SeriesStyle),
        };
        let why = match made {
            Ok(mut finished) => {
                let Finished { plan, measurement, .. } = &mut finished;
                if series.counts(plan, measurement) {
                    return Ok(finished);
                }
                if measurement.status == Status::Interrupted {
                    return Err(NotRun::Interrupted);
                }
                obstacle_of(plan, measurement)
            }
            Err(NotMade::Failed(why)) => why,
            Err(NotMade::End(end)) => return Err(end),
        };
        if tried == TRIES_MAX {
            return Err(NotRun::Server(match &run.preface {
                Some(preface) => {
                    Obstacle { reason: format!("{preface}: {}", why.reason), shown: None, hint: why.hint }
                }
                None => why,
            }));
        }
        tried += 1;
        *made_again += 1;
        let mut out = StyleOutput::default();
        let reason = why.reason;
        out.error(format!("WARNING: a run failed and is made again ({tried} of {TRIES_MAX}): {reason}\n"));
        maker.say(&mut out);
    }
}

/// The reason why a run failed, with a hint where there is one.
fn obstacle_of(plan: &Plan, measurement: &Measurement) -> Obstacle {
    let reason = || reason::of_run(measurement).into();
    Obstacle::of(plan, measurement).unwrap_or_else(reason)
}

/// Rest before the try with this number, from 1: a server that is being started anew refuses all that comes at once.
fn pause_before(tried: u32) -> Duration {
    match tried {
        0 | 1 => Duration::ZERO,
        2 => Duration::from_secs(1),
        _ => Duration::from_secs(3),
    }
}

/// Treatment of the server before each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerCare {
    /// Nothing: the server goes on, and its records are stored before the first run alone.
    None,
    /// A command of the shell restarts it, and the records are stored again.
    Restart(String),
    /// A program is started for the run and ended after it, by its words.
    Program(Vec<String>),
}

/// State that the runs of one side share.
#[derive(Debug)]
pub struct SeriesSide {
    care: ServerCare,
    /// Knowledge of the protocol of the servers.
    detection: Detection,
    /// Whether records are stored before each run.
    loads_always: bool,
    /// Whether a run stored the records.
    is_loaded: bool,
    /// Whether the server came up for a run.
    has_come_up: bool,
}

impl SeriesSide {
    /// Runs of servers of which this is known, and to which this is done before each run. Where `loads_always` is set, something else
    /// may change the records between two runs.
    pub fn new(care: ServerCare, detection: Detection, loads_always: bool) -> SeriesSide {
        SeriesSide { care, detection, loads_always, is_loaded: false, has_come_up: false }
    }

    /// Brings the server to where its next run finds it. Returns the program that was started for the run.
    fn prepare(&mut self, servers: &[String]) -> Result<Option<ServerProgram>, NotMade> {
        let started = match &self.care {
            ServerCare::None => return Ok(None),
            ServerCare::Restart(command) => restart(command, servers).map(|()| None),
            ServerCare::Program(words) => ServerProgram::start(words, servers).map(Some),
        };
        self.is_loaded = false;
        let program = started.map_err(|why| match why {
            // One that came up for an earlier run may come up at the next try.
            NotRun::Server(what) if self.has_come_up => NotMade::Failed(what),
            why => NotMade::End(why),
        })?;
        self.has_come_up = true;
        Ok(program)
    }

    /// The plan of the next run: records that are there are not stored again, unless it is a further try, whose server may have
    /// started anew.
    fn plan_of(&self, plan: &ValidPlan, tried: u32) -> ValidPlan {
        let is_load = |work: &Work| matches!(work, Work::Load(_));
        let loads_only = plan.phases.iter().all(|phase| is_load(&phase.work));
        if !self.is_loaded || self.loads_always || tried > 1 || loads_only {
            return plan.clone();
        }
        let mut plan = plan.clone().into_plan();
        plan.phases.retain(|phase| !is_load(&phase.work));
        plan.validate().expect("what a run measures does not depend on its load")
    }
}

/// The maker of the runs of a series.
pub struct SeriesRunner<'a> {
    /// A driver for each side, or one for all.
    drivers: Vec<Driver<'a>>,
    sides: Vec<SeriesSide>,
    /// Whether lines are left out.
    is_quiet: bool,
}

impl<'a> SeriesRunner<'a> {
    /// Makes runs of these sides by these drivers: one for each side, or one for all. Lines are left out where `is_quiet` is set.
    pub fn new(drivers: Vec<Driver<'a>>, sides: Vec<SeriesSide>, is_quiet: bool) -> SeriesRunner<'a> {
        SeriesRunner { drivers, sides, is_quiet }
    }

    /// Makes the runs of a series until it has none, and calls `after` after each of them.
    pub fn run<S: RunSeries + ?Sized>(
        &mut self,
        series: &mut S,
        after: impl FnMut(&S, &SeriesState),
    ) -> SeriesState {
        make_all(series, self, after)
    }

    /// Gives the terminal back, where a screen has it.
    pub fn close_view(&mut self) {
        self.drivers.iter_mut().for_each(Driver::close_view);
    }

    /// The drivers, when there are no more runs.
    pub fn into_drivers(self) -> Vec<Driver<'a>> {
        self.drivers
    }
}

impl RunMaker for SeriesRunner<'_> {
    fn rest(&mut self, time: Duration) {
        self.drivers[0].rest(time);
    }

    fn say(&mut self, out: &mut StyleOutput) {
        if self.is_quiet {
            out.leave_out_lines();
        }
        self.drivers[0].say(out);
    }

    fn make(&mut self, run: &SeriesRun, tried: u32, style: &mut dyn Style) -> Result<Finished, NotMade> {
        let began_ns = clock::now();
        let last = self.drivers.len() - 1;
        let (driver, side) = (&mut self.drivers[run.side.min(last)], &mut self.sides[run.side]);
        let program = side.prepare(&run.plan.servers)?;
        let plan = side.plan_of(&run.plan, tried);
        driver.swap_detection(&mut side.detection);
        let measured = driver.run(&plan, &run.dealing, style);
        driver.swap_detection(&mut side.detection);
        let measurement = measured?;
        side.is_loaded = true;
        drop(program);
        let (whole_s, summary) = (seconds(clock::now() - began_ns), Summary::of(&measurement, &plan));
        Ok(Finished { plan, measurement, summary, whole_s })
    }
}

/// Tests of the loop, and runs as if they had been made, for tests of series.
#[cfg(test)]
pub mod tests {
    use std::ffi::OsString;

    use pummel_measure::measurement::Keep;
    use pummel_report::example;

    use super::*;
    use pummel_fronts::job::FrontInputs;
    use pummel_fronts::native;
    use pummel_fronts::style::Word;

    /// The inputs of a command line that reads no file.
    pub fn inputs() -> FrontInputs {
        FrontInputs::without_files(1)
    }

    /// A plan with a load and a measurement.
    pub fn plan() -> ValidPlan {
        let words = ["run", "-s", "127.0.0.1:1"].map(OsString::from);
        native::job(words, &inputs()).expect("a command line").plan
    }

    /// A complete run of 2,000 requests in two seconds, as if it had been made.
    pub fn finished(run: &SeriesRun) -> Finished {
        let measurement = example::Run::new(Keep::Figures).measurement;
        let (plan, summary) = (run.plan.clone(), Summary::of(&measurement, &run.plan));
        Finished { plan, measurement, summary, whole_s: 2.5 }
    }

    /// The runs that a series asks for where each is complete, but at most so many.
    pub fn asked(series: &mut impl RunSeries, most: usize) -> Vec<SeriesRun> {
        let mut runs = Vec::new();
        while runs.len() < most
            && let Some(run) = series.next_run(&mut StyleOutput::default()).expect("a run or none")
        {
            series.add(finished(&run), &mut StyleOutput::default()).expect("it is taken");
            runs.push(run);
        }
        runs
    }

    /// The state of a series that a signal ended.
    pub fn interrupted() -> SeriesState {
        SeriesState { end: Some(NotRun::Interrupted), is_over: true, ..SeriesState::default() }
    }

    /// A series of a number of runs.
    struct Runs {
        left: u32,
        made: Vec<Status>,
    }

    impl RunSeries for Runs {
        fn next_run(&mut self, _: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
            let asked = self.left > 0;
            self.left = self.left.saturating_sub(1);
            let preface = Some("preface".to_owned());
            Ok(asked.then(|| SeriesRun { preface, ..SeriesRun::new(&plan(), 5) }))
        }

        fn add(&mut self, finished: Finished, out: &mut StyleOutput) -> Result<(), NotRun> {
            out.line("made");
            self.made.push(finished.measurement.status);
            Ok(())
        }
    }

    /// A maker whose runs end as a list says.
    struct Told {
        ends: Vec<Result<Status, NotMade>>,
        tries: Vec<u32>,
        rests: Vec<u64>,
        said: Vec<String>,
    }

    impl RunMaker for Told {
        fn rest(&mut self, time: Duration) {
            self.rests.push(time.as_secs());
        }

        fn say(&mut self, out: &mut StyleOutput) {
            for word in out.take() {
                match word {
                    Word::Line(text) | Word::Error(text) => self.said.push(text),
                    _ => panic!("nothing else is said"),
                }
            }
        }

        fn make(&mut self, run: &SeriesRun, tried: u32, _: &mut dyn Style) -> Result<Finished, NotMade> {
            self.tries.push(tried);
            let plan = run.plan.clone();
            let mut measurement = Measurement::new([String::new()], plan.engine.clock, plan.timeout_ns);
            match self.ends.remove(0)? {
                Status::Complete => {}
                status => measurement.mark(status, Reason::NotBegun { what: "busy".to_owned() }),
            }
            let summary = Summary::of(&measurement, &plan);
            Ok(Finished { plan, measurement, summary, whole_s: 1.0 })
        }
    }

    fn made(asked: u32, ends: Vec<Result<Status, NotMade>>) -> (SeriesState, Runs, Told) {
        let mut runs = Runs { left: asked, made: Vec::new() };
        let mut told = Told { ends, tries: Vec::new(), rests: Vec::new(), said: Vec::new() };
        let mut after = 0;
        let state = make_all(&mut runs, &mut told, |_, state| {
            after += 1;
            assert_eq!((state.made, state.is_over, state.status()), (after, false, Status::Partial));
        });
        (state, runs, told)
    }

    #[test]
    fn a_failed_run_is_made_up_to_three_times() {
        let failed = || Ok(Status::Partial);
        let (state, runs, told) =
            made(2, vec![Ok(Status::Complete), failed(), failed(), Ok(Status::Complete)]);
        assert_eq!((state.made, state.made_again, state.status()), (2, 2, Status::Complete));
        assert_eq!((runs.made.len(), told.tries, told.rests), (2, vec![1, 1, 2, 3], vec![0, 0, 1, 3]));
        assert_eq!(told.said.len(), 4, "{:?}", told.said);
        assert_eq!(told.said[2], "WARNING: a run failed and is made again (3 of 3): busy\n");

        let (state, runs, _) = made(2, vec![failed(), failed(), failed()]);
        assert_eq!((state.made, state.made_again, state.status()), (0, 2, Status::Partial));
        assert_eq!((runs.made.len(), state.reason().as_deref()), (0, Some("preface: busy")));
    }

    #[test]
    fn what_no_further_run_would_mend_ends_a_series_at_once() {
        let (state, _, told) = made(3, vec![Ok(Status::Complete), Ok(Status::Interrupted)]);
        assert_eq!((state.made, state.made_again, told.tries.len()), (1, 0, 2));
        assert_eq!(state.reason().as_deref(), Some("interrupted"));
        let (state, ..) = made(3, vec![Err(NotRun::Agents("gone".to_owned()).into())]);
        assert_eq!((state.made, state.reason().as_deref()), (0, Some("gone")));
        let (state, _, told) =
            made(1, vec![Err(NotMade::Failed("late".to_owned().into())), Ok(Status::Complete)]);
        assert_eq!((state.made, state.made_again, told.tries), (1, 1, vec![1, 2]));
    }

    #[test]
    fn a_signal_is_the_status_of_a_series() {
        let state = interrupted();
        assert_eq!((state.status(), state.is_interrupted()), (Status::Interrupted, true));
    }

    #[test]
    fn a_server_that_came_up_before_may_come_up_at_the_next_try() {
        let restart = ServerCare::Restart("exit 5".to_owned());
        let mut side = SeriesSide::new(restart, Detection::Unasked, false);
        assert!(matches!(side.prepare(&[]), Err(NotMade::End(NotRun::Server(_)))));
        side.has_come_up = true;
        assert!(matches!(side.prepare(&[]), Err(NotMade::Failed(_))));
    }

    #[test]
    fn records_are_stored_once_unless_the_server_may_begin_anew() {
        let plan = plan();
        let loads = |side: &SeriesSide, tried| {
            let plan = side.plan_of(&plan, tried);
            plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)))
        };
        let mut side = SeriesSide::new(ServerCare::None, Detection::Unasked, false);
        assert!(loads(&side, 1));
        side.is_loaded = true;
        assert!(!loads(&side, 1) && loads(&side, 2));
        assert!(loads(&SeriesSide { loads_always: true, ..side }, 1));
    }
}
