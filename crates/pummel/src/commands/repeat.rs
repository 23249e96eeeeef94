//! `pummel run`: one run, or with `--repeat` several of one configuration and how far they differ.

use clap::Args;

use crate::commands::detection::detected;
use crate::commands::one_run::{Refused, refuse_options, refuse_saved};
use crate::commands::run_maker::{RunMaker, SeriesEnd, SeriesStyle, ServerCare, refuse_stdin};
use crate::commands::series_files::{Reports, SeriesFiles, SeriesForm, TextOf};
use crate::commands::single;
use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::provenance::told_command_line;
use crate::parser_answer::answer;
use crate::stderr::say;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, UsageError};
use pummel_fronts::native;
use pummel_fronts::native::{RunArgs, Typed};
use pummel_fronts::values;
use pummel_fronts::values::ValueError;
use pummel_report::repetition;
use pummel_report::repetition::Repetition;
use pummel_report::view::repeated;
use pummel_report::view::run::Wanted;
use pummel_report::{markdown, page, text};

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

/// The forms of the result of repeated runs.
const FORMS: [SeriesForm<Repetition>; 4] = [
    ("json", repetition::json),
    ("csv", repetition::csv),
    ("report", page::render_repetition),
    ("summary", markdown),
];

/// The runs for the page of a job or a comment.
fn markdown(repetition: &Repetition) -> Vec<u8> {
    markdown::render(&repeated::view(repetition, Wanted::Screen))
}

/// Makes the run, or the runs.
pub fn run(args: &RunCommandArgs, inputs: &FrontInputs) -> Exit {
    let Some(count) = args.repeat.repeat else {
        return match args.steer.is_wanted() {
            true => single::follow_steered(&args.run, inputs),
            false => single::follow(&args.run, inputs),
        };
    };
    let (typed, detection) = detected(&args.run, inputs);
    let job = match job_of(&typed, inputs) {
        Ok(job) => job,
        Err(error) => return answer(&error.into()),
    };
    match repeat(args, count, (&job, detection)) {
        Ok(exit) => exit,
        Err(end) => end.exit(),
    }
}

/// What has no meaning for several runs, and the reasons.
const REFUSED: [Refused; 7] = [
    ("--fail-on", "it judges one run"),
    ("--interval", "the result of several runs has no intervals"),
    ("--until", "runs that are compared have one length"),
    ("--anonymous", "the result of several runs names its servers"),
    ("--server-stats", "the result of several runs has no intervals"),
    ("--stamps", "the result of several runs has no figure of them"),
    ("--times", "the result of several runs has the response alone"),
];

/// The job of the first run, without files of its own.
fn job_of(typed: &Typed<RunArgs>, inputs: &FrontInputs) -> Result<Job, UsageError> {
    let accepted = "without --repeat only";
    refuse_options(typed, &REFUSED, accepted)?;
    let job = native::run(typed, inputs)?;
    refuse_saved(typed, &job.plan, &REFUSED, accepted)?;
    refuse_stdin(&job.plan)?;
    check_here(&job)?;
    Ok(Job { outputs: job.outputs.of_series(), ..job })
}

fn repeat(args: &RunCommandArgs, count: u32, (job, detection): (&Job, Detection)) -> Result<Exit, SeriesEnd> {
    let output = &args.run.args.output;
    let mut driver = Driver::prepare(job, &Extras { detection, ..Extras::default() }, &SeriesStyle)
        .map_err(SeriesEnd::Reported)?;
    let files = SeriesFiles::prepare(output, &FORMS)?;
    let care = args.repeat.restart.clone().map_or(ServerCare::None, ServerCare::Restart);
    let restarted = Some(care != ServerCare::None);
    let mut repetition = Repetition::new(&job.plan, told_command_line(&job.plan), count, restarted);
    let mut maker = RunMaker::new(job.plan.clone(), care);
    let mut end = None;
    for number in 0..count {
        let made = maker.make(&mut driver, job.plan.seed, number);
        repetition.made_again = maker.made_again();
        match made {
            Ok(run) => {
                if !output.quiet {
                    say(format_args!("run {} of {count}: {}", number + 1, run.line()));
                }
                repetition.extend([run], maker.source().clone());
            }
            Err(why) => {
                end = Some(why);
                break;
            }
        }
        if let Err(error) = files.checkpoint(&repetition) {
            end = Some(error.into());
            break;
        }
    }
    driver.close_view();
    let reason = end.as_ref().and_then(SeriesEnd::reason);
    repetition.end(reason, matches!(end, Some(SeriesEnd::Interrupted)));
    let is_told = SeriesEnd::says_all(end.as_ref(), repetition.runs.len());
    let exit = end.map_or_else(|| Exit::of_status(repeated::headline(&repetition).status), SeriesEnd::exit);
    let text = (!is_told).then_some(text::repetition as TextOf<_>);
    let reports = Reports { text, markdown, json: repetition::json };
    let exit = files.finish(output, &repetition, reports, exit);
    match driver.close() {
        Err(error) if exit != Exit::Interrupted => Ok(SeriesEnd::from(error).exit()),
        _ => Ok(exit),
    }
}
