//! `pummel run`: one run, or with `--repeat` several of one configuration and how far they differ.

use clap::Args;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, UsageError, seed_of};
use pummel_fronts::native;
use pummel_fronts::native::{RunArgs, Typed};
use pummel_fronts::style::StyleOutput;
use pummel_fronts::values;
use pummel_fronts::values::ValueError;
use pummel_logic::plan::validate::ValidPlan;
use pummel_report::repetition::Repetition;
use pummel_report::stored::ResultDocument;

use crate::commands::detection::detected;
use crate::commands::one_run::{SeveralRuns, refuse_forms, refuse_stdin};
use crate::commands::single;
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::provenance::told_command_line;
use crate::job::runner::NotRun;
use crate::job::series::{Finished, RunSeries, SeriesRun, SeriesSide, SeriesState, SeriesStyle, ServerCare};
use crate::job::series_result::{ResultSeries, follow};
use crate::parser_answer::answer;

/// Most repetitions.
const RUNS_MAX: u64 = 1_000;

/// Options of `pummel run` with its repetition.
#[derive(Args, Clone, Debug)]
pub struct RunCommandArgs {
    /// The run.
    #[command(flatten)]
    pub run: Typed<RunArgs>,
    /// How often.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Whether the rate is changed by hand.
    #[command(flatten)]
    pub steer: SteerArgs,
}

/// Whether a run is steered.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct SteerArgs {
    /// Let keys of --live change the rate during the measurement: p pauses and resumes, + and - change it by 5 %, * and / double and
    /// halve it. Requires open loop with one rate and a time, in one process, without goals. The result lists the changes, and its
    /// plan repeats the run
    #[cfg(feature = "live")]
    #[arg(long, requires = "live", conflicts_with = "repeat")]
    pub steer: bool,
}

impl SteerArgs {
    #[cfg(feature = "live")]
    fn is_wanted(&self) -> bool {
        self.steer
    }

    #[cfg(not(feature = "live"))]
    fn is_wanted(&self) -> bool {
        false
    }
}

/// How often a run is made.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Repetition")]
pub struct RepeatArgs {
    /// Make N runs, each with new connections, threads and arrivals, and report how far they differ; with 6 runs or more, each
    /// figure has a 95 % interval. Records are stored before the first run
    #[arg(long, value_name = "N", value_parser = repetitions, allow_hyphen_values = true)]
    pub repeat: Option<u32>,
    /// With --repeat: run this shell command, which restarts the server, before each run; records are stored again
    #[arg(long, value_name = "COMMAND", requires = "repeat")]
    pub restart: Option<String>,
}

fn repetitions(text: &str) -> Result<u32, ValueError> {
    values::count_within(text, 2, RUNS_MAX).map(|count| count as u32)
}

/// Makes the run, or the runs.
pub fn run(args: &RunCommandArgs, inputs: &FrontInputs) -> Exit {
    let Some(count) = args.repeat.repeat else {
        return match args.steer.is_wanted() {
            true => single::follow_steered(&args.run, inputs),
            false => single::follow(&args.run, inputs),
        };
    };
    match job_of(&args.run, inputs) {
        Ok((job, detection)) => repeat(args, count, &job, detection).unwrap_or_else(|exit| exit),
        Err(error) => answer(&error.into()),
    }
}

/// The job of the first run, without files of its own, and what its servers were found to speak.
fn job_of(typed: &Typed<RunArgs>, inputs: &FrontInputs) -> Result<(Job, Detection), UsageError> {
    SeveralRuns::Repeated.refuse_options(typed)?;
    refuse_forms(&typed.args.output)?;
    let (typed, detection) = detected(typed, inputs);
    let job = native::run(&typed, inputs)?;
    SeveralRuns::Repeated.refuse_saved(&typed, &job.plan)?;
    refuse_stdin(&job.plan)?;
    check_here(&job)?;
    Ok((Job { outputs: job.outputs.of_series(), ..job }, detection))
}

/// Makes the runs. Returns the exit status also where nothing could be begun.
fn repeat(args: &RunCommandArgs, count: u32, job: &Job, detection: Detection) -> Result<Exit, Exit> {
    let output = &args.run.args.output;
    let driver = Driver::prepare(job, &Extras::default(), &SeriesStyle)?;
    let care = args.repeat.restart.clone().map_or(ServerCare::None, ServerCare::Restart);
    let restarted = Some(care != ServerCare::None);
    let repetition = Repetition::new(&job.plan, told_command_line(&job.plan), count, restarted);
    let side = SeriesSide::new(care, detection, false);
    let mut series = RepeatedRuns { plan: &job.plan, repetition };
    Ok(follow(&mut series, vec![driver], vec![side], output))
}

/// Runs of one plan, each with a seed of its own.
struct RepeatedRuns<'a> {
    plan: &'a ValidPlan,
    repetition: Repetition,
}

impl RunSeries for RepeatedRuns<'_> {
    fn next_run(&mut self, _: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
        let number = self.repetition.runs.len() as u32;
        let run = || SeriesRun::new(self.plan, seed_of(self.plan.seed, number));
        Ok((number < self.repetition.asked).then(run))
    }

    fn add(&mut self, finished: Finished, out: &mut StyleOutput) -> Result<(), NotRun> {
        let (run, source) = finished.figures();
        let Repetition { runs, asked, .. } = &self.repetition;
        out.line(format_args!("run {} of {asked}: {}", runs.len() + 1, run.line()));
        self.repetition.extend([run], source);
        Ok(())
    }
}

impl ResultSeries for RepeatedRuns<'_> {
    fn result(&self, state: &SeriesState) -> ResultDocument {
        let mut repetition = Box::new(self.repetition.clone());
        repetition.made_again = state.made_again;
        repetition.end(state.reason(), state.is_interrupted());
        ResultDocument::Repeated(repetition)
    }
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Status;

    use super::*;
    use crate::job::series::tests::{asked, interrupted, plan};

    #[test]
    fn each_run_has_a_seed_of_its_own_and_the_result_counts_the_runs() {
        let plan = plan();
        let repetition = Repetition::new(&plan, Vec::new(), 3, Some(false));
        let mut series = RepeatedRuns { plan: &plan, repetition };
        let result = |series: &RepeatedRuns<'_>, state: &SeriesState| {
            let ResultDocument::Repeated(result) = series.result(state) else { panic!("repeated runs") };
            (result.runs.len(), result.status, result.reason, result.made_again)
        };
        let first = asked(&mut series, 2);
        assert_eq!(
            result(&series, &interrupted()),
            (2, Status::Interrupted, Some("interrupted".to_owned()), 0)
        );
        let runs = [first, asked(&mut series, 9)].concat();
        let seeds: Vec<u64> = runs.iter().map(|run| run.plan.seed).collect();
        assert_eq!(seeds, [0, 1, 2].map(|number| seed_of(plan.seed, number)));
        let state = SeriesState { made: 3, made_again: 2, is_over: true, end: None };
        assert_eq!(result(&series, &state), (3, Status::Complete, None, 2));
    }
}
