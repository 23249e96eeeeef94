//! The runs of `run --repeat` and of `ab`: each with new connections, its own seed, and a server that may be started for it.

use std::io;
use std::time::Duration;

use pummel_engine::clock;
use pummel_engine::run::RunError;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::seconds;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::outcome::failure_of;
use pummel_measure::reason::Reason;
use pummel_measure::summary::Summary;

use crate::build_info::BUILD;
use crate::exit_status::{Exit, answer};
use crate::job::driver::Driver;
use crate::job::hints::Obstacle;
use crate::job::runner::{Dealing, NotRun};
use crate::job::server_program::{NoServer, ServerProgram, restart};
use crate::job::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use crate::job::trace_files::STDIN;
use crate::job::{UsageError, seed_of};
use crate::stderr::say;
use pummel_report::comparison::SideSource;
use pummel_report::document::Document;
use pummel_report::run_figures::RunFigures;
use pummel_report::words::reason;
use pummel_report::{Ending, Report};

/// Why there are no more runs.
#[derive(Debug)]
pub enum SeriesEnd {
    /// The command line cannot be followed.
    Usage(UsageError),
    /// Something is not as it has to be.
    Failed(Obstacle),
    /// A run was partial, for this reason.
    Partial(Obstacle),
    /// The words are on standard error; the exit status is left.
    Reported(Exit),
    /// A signal ended the series.
    Interrupted,
}

impl SeriesEnd {
    /// Says why there are no more runs. Returns the exit status.
    pub fn exit(self) -> Exit {
        match self {
            SeriesEnd::Usage(error) => answer(&error.into()),
            SeriesEnd::Failed(why) | SeriesEnd::Partial(why) => {
                say(format_args!("error: {why}"));
                Exit::Failed
            }
            SeriesEnd::Reported(exit) => exit,
            SeriesEnd::Interrupted => Exit::Interrupted,
        }
    }

    /// The reason of a result that is not complete; `None` where the words are elsewhere.
    pub fn reason(&self) -> Option<String> {
        match self {
            SeriesEnd::Usage(error) => Some(error.to_string()),
            SeriesEnd::Failed(why) | SeriesEnd::Partial(why) => Some(why.reason.clone()),
            SeriesEnd::Interrupted => Some("interrupted".to_owned()),
            SeriesEnd::Reported(_) => None,
        }
    }

    /// The end of a series with a run of this plan that is partial.
    pub fn partial(plan: &Plan, measurement: &Measurement) -> SeriesEnd {
        let reason = || Obstacle::from(reason::of_run(measurement));
        SeriesEnd::Partial(Obstacle::of(plan, measurement).unwrap_or_else(reason))
    }

    /// Whether the reason on standard error is all that there is to say of a series that ended like this, after `runs` runs. A
    /// series that was interrupted has its report.
    pub fn says_all(end: Option<&SeriesEnd>, runs: usize) -> bool {
        runs == 0 && end.is_some_and(|end| !matches!(end, SeriesEnd::Interrupted))
    }
}

impl From<NotRun> for SeriesEnd {
    fn from(why: NotRun) -> SeriesEnd {
        match why {
            NotRun::Interrupted => SeriesEnd::Interrupted,
            NotRun::Usage(text) | NotRun::Here(RunError::Plan(text)) => {
                SeriesEnd::Usage(UsageError::Missing(text))
            }
            NotRun::Here(error @ RunError::Tls(_)) => {
                SeriesEnd::Usage(UsageError::Missing(error.to_string()))
            }
            why => SeriesEnd::Failed(why.obstacle()),
        }
    }
}

impl From<NoServer> for SeriesEnd {
    fn from(why: NoServer) -> SeriesEnd {
        match why {
            NoServer::Interrupted => SeriesEnd::Interrupted,
            NoServer::Failed(what) => SeriesEnd::Failed(what.into()),
        }
    }
}

impl From<io::Error> for SeriesEnd {
    fn from(error: io::Error) -> SeriesEnd {
        SeriesEnd::Failed(error.to_string().into())
    }
}

impl From<UsageError> for SeriesEnd {
    fn from(error: UsageError) -> SeriesEnd {
        SeriesEnd::Usage(error)
    }
}

/// How often a run of a series is made at most, where it fails.
const TRIES_MAX: u32 = 3;

/// Makes a run of a series with `make`, which is given the number of the try, and again while it is partial, up to [`TRIES_MAX`] times in all: one that failed in a busy
/// minute need not cost all others. Says each failure, and adds those that a further run followed to `made_again`.
///
/// # Errors
/// Returns the end of the last of these runs, and at once any end that a further run would not mend.
pub fn until_whole<T>(
    made_again: &mut u32,
    mut make: impl FnMut(u32) -> Result<T, SeriesEnd>,
) -> Result<T, SeriesEnd> {
    for tried in 1..TRIES_MAX {
        match make(tried) {
            Err(SeriesEnd::Partial(why)) => {
                *made_again += 1;
                say(format_args!(
                    "WARNING: a run failed and is made again ({} of {TRIES_MAX}): {}",
                    tried + 1,
                    why.reason
                ));
            }
            result => return result,
        }
    }
    make(TRIES_MAX)
}

/// The end of a series whose server did not come up for the run with this number: one that did for an earlier run may come up at the
/// next try.
fn mendable(end: SeriesEnd, number: u32) -> SeriesEnd {
    match end {
        SeriesEnd::Failed(why) if number > 0 => SeriesEnd::Partial(why),
        end => end,
    }
}

/// How long a series rests before the try with this number, from 1: a server that is being started anew refuses all that comes
/// at once.
pub fn pause_before(tried: u32) -> Duration {
    match tried {
        0 | 1 => Duration::ZERO,
        2 => Duration::from_secs(1),
        _ => Duration::from_secs(3),
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

/// What is done to the server before each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerCare {
    /// Nothing: the server goes on, and its records are stored before the first run alone.
    None,
    /// A command of the shell restarts it, and the records are stored again.
    Restart(String),
    /// A program is started for the run and ended after it, by its words.
    Program(Vec<String>),
}

/// Makes the runs of one Plan, one after the other.
#[derive(Debug)]
pub struct RunMaker {
    plan: ValidPlan,
    care: ServerCare,
    /// Whether something else may have changed the records before each run.
    loads_always: bool,
    is_loaded: bool,
    /// How many runs failed and were made again.
    made_again: u32,
    /// What the last run knew of its servers and its machine.
    source: SideSource,
}

impl RunMaker {
    /// Runs of this Plan.
    pub fn new(plan: ValidPlan, care: ServerCare) -> RunMaker {
        let source = SideSource::default();
        RunMaker { plan, care, loads_always: false, is_loaded: false, made_again: 0, source }
    }

    /// The runs with their records stored before each of them, where `loads_always` says so.
    #[must_use]
    pub fn loading_always(self, loads_always: bool) -> RunMaker {
        RunMaker { loads_always, ..self }
    }

    /// What the runs are made after, but for their seeds.
    pub fn plan(&self) -> &ValidPlan {
        &self.plan
    }

    /// What the last run knew of its servers and its machine.
    pub fn source(&self) -> &SideSource {
        &self.source
    }

    /// How many runs failed and were made again.
    pub fn made_again(&self) -> u32 {
        self.made_again
    }

    /// Makes the run with this number, again where it fails: run 0 has the `seed` itself, each other one a seed that follows from it.
    ///
    /// # Errors
    /// Returns [`SeriesEnd`] when the server is not there, and when the run cannot begin or is not complete.
    pub fn make(&mut self, driver: &mut Driver<'_>, seed: u64, number: u32) -> Result<RunFigures, SeriesEnd> {
        let mut made_again = self.made_again;
        let run = until_whole(&mut made_again, |tried| {
            driver.rest(pause_before(tried));
            self.try_once(driver, seed, number)
        });
        self.made_again = made_again;
        run
    }

    fn try_once(&mut self, driver: &mut Driver<'_>, seed: u64, number: u32) -> Result<RunFigures, SeriesEnd> {
        let began_ns = clock::now();
        let program = match &self.care {
            ServerCare::None => None,
            ServerCare::Restart(command) => {
                restart(command, &self.plan.servers).map_err(|why| mendable(why.into(), number))?;
                self.is_loaded = false;
                None
            }
            ServerCare::Program(words) => {
                self.is_loaded = false;
                let program = ServerProgram::start(words, &self.plan.servers);
                Some(program.map_err(|why| mendable(why.into(), number))?)
            }
        };
        let plan = self.plan_of(seed_of(seed, number));
        let mut measurement = driver.run(&plan, Dealing::Evenly, &mut SeriesStyle)?;
        // A run of errors shows nothing of what the series compares.
        if let Some(failed) = failure_of(&measurement, &plan) {
            measurement.mark(Status::Partial, Reason::RequestsFailed(failed));
        }
        drop(program);
        self.is_loaded = true;
        let whole_s = seconds(clock::now() - began_ns);
        match measurement.status {
            Status::Complete => {}
            Status::Interrupted => return Err(SeriesEnd::Interrupted),
            Status::Partial => {
                // Its load may have failed.
                self.is_loaded = false;
                return Err(SeriesEnd::partial(&plan, &measurement));
            }
        }
        let summary = Summary::of(&measurement, &plan);
        let report = Report {
            plan: &plan,
            measurement: &measurement,
            summary: &summary,
            front: "native",
            build: BUILD,
            ending: Ending::Open,
        };
        let result = Document::of(&report);
        self.source = SideSource::of(&result);
        Ok(RunFigures::of(&result, whole_s))
    }

    /// The Plan of the next run: records that are there are not stored again.
    fn plan_of(&self, seed: u64) -> ValidPlan {
        let mut plan = self.plan.clone().into_plan();
        plan.seed = seed;
        let is_loaded = self.is_loaded && !self.loads_always;
        if is_loaded && plan.phases.iter().any(|phase| !matches!(phase.work, Work::Load(_))) {
            plan.phases.retain(|phase| !matches!(phase.work, Work::Load(_)));
        }
        plan.validate().expect("what a run measures does not depend on its load and its seed")
    }
}

/// Refuses a plan that reads standard input where it is run several times.
///
/// # Errors
/// Returns [`UsageError`] for such a plan: its first run would take all that there is to read.
pub fn refuse_stdin(plan: &Plan) -> Result<(), UsageError> {
    if plan.trace().is_some_and(|replay| replay.paths.iter().any(|path| path == STDIN)) {
        return Err(UsageError::Value {
            flag: "--trace".to_owned(),
            value: STDIN.to_owned(),
            accepted:
                "expected a file: several runs are made, and the first would take all of standard input"
                    .to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Plan;

    use super::*;

    #[test]
    fn a_failed_run_is_made_up_to_three_times() {
        let run = |failures: u32| {
            let (mut made, mut again) = (0, 0);
            let result = until_whole(&mut again, |tried| {
                made += 1;
                assert_eq!(tried, made, "the number of the try");
                if made > failures { Ok(made) } else { Err(SeriesEnd::Partial("busy".to_owned().into())) }
            });
            (result.ok(), made, again)
        };
        assert_eq!(run(0), (Some(1), 1, 0));
        assert_eq!(run(2), (Some(3), 3, 2));
        assert_eq!(run(3), (None, 3, 2));
        let (mut made, mut again) = (0, 0);
        let end = until_whole(&mut again, |_| -> Result<(), SeriesEnd> {
            made += 1;
            Err(SeriesEnd::Interrupted)
        });
        assert!(matches!(end, Err(SeriesEnd::Interrupted)) && (made, again) == (1, 0));
    }

    #[test]
    fn a_server_that_came_up_before_may_come_up_at_the_next_try() {
        let end = || SeriesEnd::Failed("it did not listen".to_owned().into());
        assert!(matches!(mendable(end(), 0), SeriesEnd::Failed(_)));
        assert!(matches!(mendable(end(), 1), SeriesEnd::Partial(_)));
        assert!(matches!(mendable(SeriesEnd::Interrupted, 1), SeriesEnd::Interrupted));
    }

    #[test]
    fn records_are_stored_once_unless_the_server_begins_anew() {
        let words = ["run", "-s", "127.0.0.1:1"].map(std::ffi::OsString::from);
        let inputs = crate::job::FrontInputs {
            servers: None,
            seed: 1,
            read_text: |_| Err(io::ErrorKind::NotFound.into()),
        };
        let plan = crate::native::job(words, &inputs).expect("a command line").plan;
        let loads = |plan: &Plan| plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
        let mut maker = RunMaker::new(plan, ServerCare::None);
        assert!(loads(&maker.plan_of(5)));
        assert_eq!(maker.plan_of(5).seed, 5);
        maker.is_loaded = true;
        assert!(!loads(&maker.plan_of(5)));
        assert!(loads(&maker.loading_always(true).plan_of(5)));
    }
}
