//! `pummel suite`: named runs in order against one server, each with what it is expected to show.

mod resumed;
mod runs;
mod suite_job;

use std::collections::BTreeSet;

use clap::{Arg, Args, ValueHint};
use pummel_engine::run::replay_of;
use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, UsageError};
use pummel_fronts::native;
use pummel_fronts::native::suite::{self, ROUNDS_MAX, Restart, Suite, SuiteEntry, listed};
use pummel_fronts::native::{RunArgs, Typed};
use pummel_fronts::outputs::{InputFile, Outputs, files_of};
use pummel_fronts::values;
use pummel_fronts::values::ValueError;
use pummel_logic::plan::Labels;
use pummel_logic::secrets::{masked_text, masked_words};
use pummel_report::forms::FORMS;
use pummel_report::suite::{Expectation, SuiteDocument, SuiteRun};

use self::resumed::resumed;
use self::runs::SuiteSeries;
use self::suite_job::SuiteJob;
use crate::commands::common_options::{CommonOptions, first_line};
use crate::commands::detection::detected;
use crate::commands::one_run::{SeveralRuns, refuse_stdin};
use crate::detection::leaves_protocol_open;
use crate::front_inputs::PATHS;
use crate::job::driver::{Driver, Extras, check_here};
use crate::job::provenance::told_command_line;
use crate::job::result_files::ResultFiles;
use crate::job::runner::NotRun;
use crate::job::series::{SeriesSide, SeriesStyle, ServerCare, tell_end};
use crate::job::series_result::follow;
use crate::job::server_program::{ServerProgram, refuse_datagrams, words_of};
use crate::output::print;
use crate::parser_answer::answer;
use crate::stderr::say;

/// Options of `pummel suite`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES, mut_args(hidden_where_refused))]
pub struct SuiteArgs {
    /// File of a suite, or the name of one that pummel knows (--list)
    #[arg(value_name = "SUITE", required_unless_present = "list", value_hint = ValueHint::FilePath)]
    pub suite: Option<String>,
    /// How its runs are made.
    #[command(flatten)]
    pub how: HowArgs,
    /// Options that every run has, unless it has its own.
    #[command(flatten)]
    pub run: CommonOptions,
}

/// How the runs of a suite are made.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Suite")]
pub struct HowArgs {
    /// List the suites that pummel knows
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// Print the file of the suite, a beginning for one of your own, and make no run
    #[arg(long)]
    pub print: bool,
    /// Make all runs N times, in rounds (default: as the suite says, else 1). Six rounds or more can be compared
    #[arg(long, value_name = "N", value_parser = rounds, allow_hyphen_values = true)]
    pub rounds: Option<u32>,
    /// Make only the runs with this text in their names; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub only: Vec<String>,
    /// Program to start as the server, for all runs
    ///
    /// Command line that is started without a shell and ended after the last run; the program must listen where --server says.
    /// With --restart, it is started for each run and ended after it
    #[arg(long, value_name = "COMMAND")]
    pub program: Option<String>,
    /// Restart the server before each run: the --program, or with =COMMAND by this shell command
    #[arg(long, value_name = "COMMAND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub restart: Option<String>,
    /// Go on with the suite whose result is in the file of --json: make what is missing or failed
    #[arg(long, requires = "json")]
    pub resume: bool,
}

fn rounds(text: &str) -> Result<u32, ValueError> {
    values::count_within(text, 1, ROUNDS_MAX.into()).map(|count| count as u32)
}

fn hidden_where_refused(arg: Arg) -> Arg {
    SeveralRuns::Suite.hidden_where_refused(arg)
}

const EXAMPLES: &str = "\
A suite is a file in TOML: options that all runs have, and for each run its name, its own options and what it is expected to show.
  title = \"our cache\"
  [defaults]
  time = \"20s\"
  connections = 50
  [[run]]
  name = \"reads\"
  options = \"--mix get:1\"
  expect = { hits = \">99%\", limit = \"server\", p99 = \"<1ms\" }

Examples:
  pummel suite our-cache.toml -s cache1 --json today.json --report today.html --junit junit.xml
  pummel suite ycsb -s 127.0.0.1:6379 -t 5s
  pummel suite our-cache.toml -s cache1 --json today.json --resume
  pummel compare last-good.json today.json --accept-order --worse p99:10%

Exit status:
  0    every run was made and showed what it was expected to show
  1    a run failed, or is missing; the report says why
  2    wrong usage; nothing was sent
  3    a run did not show what it was expected to show, missed a goal, or a value was wrong
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written, and --resume goes on";

/// Makes the runs of a suite.
pub fn suite(args: &SuiteArgs, inputs: &FrontInputs) -> Exit {
    let name = match &args.suite {
        Some(name) => name,
        None => return told(&list()),
    };
    if args.how.print {
        return match suite::text(name, inputs) {
            Ok(text) => told(&text),
            Err(error) => answer(&error.into()),
        };
    }
    let wanted = suite::suite(name, inputs).and_then(|suite| wanted(args, suite));
    match wanted {
        Ok(suite) => match prepared(args, suite, inputs) {
            Ok(prepared) => measure(args, prepared).unwrap_or_else(|exit| exit),
            Err(end) => tell_end(&end),
        },
        Err(error) => answer(&error.into()),
    }
}

/// Prints text. Returns the exit status.
fn told(text: &str) -> Exit {
    match print(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
        _ => Exit::Complete,
    }
}

/// The suites that this program knows, a line for each.
fn list() -> String {
    let wide = listed().map(|(name, _)| name.len()).max().unwrap_or(0);
    listed().map(|(name, about)| format!("{name:wide$}  {about}\n")).collect()
}

/// The suite with what the command line says of it, and the runs alone that it wants.
fn wanted(args: &SuiteArgs, suite: Suite) -> Result<Suite, UsageError> {
    let how = &args.how;
    let mut suite = Suite { rounds: how.rounds.unwrap_or(suite.rounds), ..suite };
    if how.program.is_some() {
        suite.program.clone_from(&how.program);
    }
    match how.restart.as_deref() {
        Some("") if suite.program.is_none() => {
            return Err(UsageError::Missing(
                "'--restart' alone restarts the --program, which is missing; --restart=COMMAND restarts a server by a command"
                    .to_owned(),
            ));
        }
        Some("") => suite.restart = Restart::Program,
        Some(_) if suite.program.is_some() => {
            return Err(UsageError::Missing(
                "'--restart=COMMAND' is accepted without a program only, which '--restart' alone restarts"
                    .to_owned(),
            ));
        }
        Some(command) => suite.restart = Restart::Command(command.to_owned()),
        None => {}
    }
    if !how.only.is_empty() {
        let names: Vec<String> = suite.runs.iter().map(|run| run.name.clone()).collect();
        suite.runs.retain(|run| how.only.iter().any(|text| run.name.contains(text.as_str())));
        if suite.runs.is_empty() {
            return Err(UsageError::Value {
                flag: "--only".to_owned(),
                value: how.only.join(", "),
                accepted: format!("expected a text in the name of a run: {}", names.join("; ")),
            });
        }
    }
    Ok(suite)
}

/// A suite whose runs can be made.
struct Prepared {
    jobs: Vec<SuiteJob>,
    document: SuiteDocument,
    /// The server that was started for all runs.
    program: Option<ServerProgram>,
}

/// All runs with what their options mean, and the server started where it is to stay for all of them.
///
/// # Errors
/// Returns [`NotRun`] for wrong usage, and where a program does not listen.
fn prepared(args: &SuiteArgs, suite: Suite, inputs: &FrontInputs) -> Result<Prepared, NotRun> {
    let common = args.run.behind(&suite.defaults).map_err(|error| {
        let accepted = format!("defaults of the suite: {}", first_line(&error));
        UsageError::Value {
            flag: "<SUITE>".to_owned(),
            value: args.suite.clone().unwrap_or_default(),
            accepted,
        }
    })?;
    let of_defaults =
        CommonOptions::flags(&suite.defaults).map_err(|error| UsageError::Missing(first_line(&error)))?;
    refuse_of_command_line(&of_defaults)
        .map_err(|error| UsageError::Missing(format!("defaults of the suite: {error}")))?;
    let output = &args.run.typed.args.output;
    refuse_forms(&args.run.typed)?;
    let refuse_places = |read: &[InputFile<'_>]| {
        let conflict = output.files.0.conflict(output.format.unwrap_or_default(), read, PATHS);
        conflict.map_or(Ok(()), |(form, file, accepted)| {
            let (flag, value) = (form.flag(), file.display().to_string());
            Err(UsageError::Value { flag, value, accepted })
        })
    };
    let file: Vec<InputFile<'_>> = args.suite.iter().map(|file| InputFile::new("the suite", file)).collect();
    refuse_places(&file)?;
    if args.how.resume && output.files.0.get("json").is_some_and(PATHS.is_standard_output) {
        return Err(UsageError::Missing(
            "'--resume' is accepted with '--json FILE' only: standard output holds no result".to_owned(),
        )
        .into());
    }
    // Before anything is started: everything can be written.
    ResultFiles::check(&output.files.0).map_err(|error| NotRun::Unready(error.to_string()))?;
    let unprepared = suite
        .runs
        .iter()
        .map(|run| Unprepared::of(run, &suite, &common, inputs))
        .collect::<Result<Vec<_>, UsageError>>()?;
    let first = &unprepared[0].job;
    let read: Vec<InputFile<'_>> = unprepared.iter().flat_map(|run| files_of(&run.job.plan)).collect();
    refuse_places(&read)?;
    let mut document = SuiteDocument::new(suite.title.clone(), suite.rounds, told_command_line(&first.plan));
    document.labels = if first.plan.anonymous { Labels::new() } else { first.plan.labels.clone() };
    document.restarted = suite.restart != Restart::Never;
    let is_told = !first.plan.anonymous;
    document.program = suite.program.as_deref().filter(|_| is_told).map(masked_text);
    let flag = if args.how.program.is_some() { "--program" } else { "program of the suite" };
    let words = program_words(suite.program.as_deref(), flag)?;
    // A signal ends the program too, and not this process alone.
    sys::on_interrupt()?;
    let is_asked = unprepared.iter().any(|run| run.own_program.is_none() && leaves_protocol_open(&run.typed));
    let stays = suite.restart == Restart::Never;
    let program = match &words {
        Some(words) if stays || is_asked => Some(ServerProgram::start(words, &first.plan.servers)?),
        _ => None,
    };
    let mut jobs = Vec::new();
    for run in unprepared {
        let care = match (&run.own_program, &suite.restart, &words) {
            (Some(own), ..) => ServerCare::Program(own.clone()),
            (None, Restart::Program, Some(words)) => ServerCare::Program(words.clone()),
            (None, Restart::Command(command), _) => ServerCare::Restart(command.clone()),
            (None, Restart::Never | Restart::Program, _) => ServerCare::None,
        };
        jobs.push(run.asked(care, inputs)?);
    }
    check_agents(&jobs)?;
    document.runs =
        jobs.iter().map(|run| SuiteRun { name: run.name.clone(), ..SuiteRun::default() }).collect();
    if is_told {
        let told = document.runs.iter_mut().zip(&jobs);
        told.for_each(|(run, job)| run.options.clone_from(&job.options));
    }
    if args.how.resume
        && let Some(path) = output.files.0.get("json")
    {
        resumed(path, &mut document, &jobs)?;
    }
    Ok(Prepared { jobs, document, program: program.filter(|_| stays) })
}

/// The words of a program, where there is one.
fn program_words(program: Option<&str>, flag: &str) -> Result<Option<Vec<String>>, UsageError> {
    program.map(|program| words_of(program, flag)).transpose()
}

/// Refuses the forms of a result that a suite does not have.
fn refuse_forms(typed: &Typed<RunArgs>) -> Result<(), UsageError> {
    let files = &typed.args.output.files.0;
    let parquet = files.parquet().map(|_| "--parquet".to_owned());
    let mut of_one_run = files.iter().filter(|(form, _)| !form.is_of_suites()).map(|(form, _)| form.flag());
    match of_one_run.next().or(parquet) {
        Some(flag) => Err(UsageError::Missing(format!(
            "'{flag}' is accepted with one run only, and a suite makes several"
        ))),
        None => Ok(()),
    }
}

/// Refuses agents that differ from run to run, and recordings that agents would have to change.
fn check_agents(jobs: &[SuiteJob]) -> Result<(), UsageError> {
    let first = &jobs[0].job;
    let differs = |run: &&SuiteJob| replay_of(&run.job.plan) != replay_of(&first.plan);
    match jobs.iter().find(differs).filter(|_| first.fleet.is_some()) {
        Some(run) => Err(UsageError::Missing(format!(
            "run '{}': runs that replay different recordings are accepted without agents only",
            run.name
        ))),
        None => Ok(()),
    }
}

/// A run whose server was not asked for its protocol yet.
struct Unprepared {
    name: String,
    options: String,
    expectations: Vec<Expectation>,
    typed: Typed<RunArgs>,
    job: Job,
    own_program: Option<Vec<String>>,
}

impl Unprepared {
    fn of(
        entry: &SuiteEntry,
        suite: &Suite,
        common: &CommonOptions,
        inputs: &FrontInputs,
    ) -> Result<Unprepared, UsageError> {
        let of_run = |error: UsageError| UsageError::Missing(format!("run '{}': {error}", entry.name));
        let parsed =
            |error: clap::Error| UsageError::Missing(format!("run '{}': {}", entry.name, first_line(&error)));
        let typed = common.with(&entry.options).map_err(parsed)?;
        // Without the common options, so that an option that is there was given by the run.
        let own = CommonOptions::flags(&entry.options).map_err(parsed)?;
        refuse_of_command_line(&own).and_then(|()| refuse_of_run(&own)).map_err(of_run)?;
        SeveralRuns::Suite.refuse_options(&typed).map_err(of_run)?;
        let typed = typed.with_files(inputs).map_err(of_run)?;
        let job = native::run(&typed, inputs).map_err(of_run)?;
        refuse_stdin(&job.plan).map_err(of_run)?;
        let own_program = program_words(entry.program.as_deref(), "program").map_err(of_run)?;
        if own_program.is_some() || suite.program.is_some() {
            refuse_datagrams(&job.plan, "a program").map_err(of_run)?;
        }
        let options = shell_words::join(masked_words(&entry.options));
        let (name, expectations) = (entry.name.clone(), entry.expectations.clone());
        Ok(Unprepared { name, options, expectations, typed, job, own_program })
    }

    /// The run with the protocol of its server, which is asked where its options leave that open. A program of its own is started
    /// for the question, and ended after it.
    fn asked(self, care: ServerCare, inputs: &FrontInputs) -> Result<SuiteJob, NotRun> {
        let is_asked = leaves_protocol_open(&self.typed);
        let own = match &self.own_program {
            Some(words) if is_asked => Some(ServerProgram::start(words, &self.job.plan.servers)?),
            _ => None,
        };
        let (typed, detection) = detected(&self.typed, inputs);
        drop(own);
        let block = self.job.outputs.block;
        let job = if is_asked { native::run(&typed, inputs)? } else { self.job };
        let job = Job { outputs: Outputs { block, ..Outputs::default() }, ..job };
        check_here(&job)?;
        let Unprepared { name, options, expectations, .. } = self;
        Ok(SuiteJob { name, options, expectations, job, detection, care })
    }
}

/// Options of a suite as a whole, beside those of the files of results: how the result is printed.
const OF_COMMAND_LINE: [&str; 5] = ["--format", "--quiet", "--verbose", "--color", "--parquet"];

/// Options that all runs of a suite have in common: its seed, what its result says of it, and who makes the runs.
const OF_ALL_RUNS: [&str; 4] = ["--seed", "--label", "--anonymous", "--agents"];

/// Refuses options that only the command line of the suite has.
fn refuse_of_command_line(own: &BTreeSet<String>) -> Result<(), UsageError> {
    let results = FORMS.iter().map(|form| form.flag());
    let flags = OF_COMMAND_LINE.map(str::to_owned).into_iter().chain(results);
    refuse_here(own, flags, "on the command line of the suite only: it applies to the result of all runs")
}

/// Refuses options of a run that all runs have in common.
fn refuse_of_run(own: &BTreeSet<String>) -> Result<(), UsageError> {
    let flags = OF_ALL_RUNS.map(str::to_owned).into_iter();
    refuse_here(own, flags, "on the command line of the suite and in [defaults] only: it applies to all runs")
}

/// Refuses the first of some options that is given; `place` says where it is accepted, and why.
fn refuse_here(
    own: &BTreeSet<String>,
    mut flags: impl Iterator<Item = String>,
    place: &str,
) -> Result<(), UsageError> {
    match flags.find(|flag| own.contains(flag)) {
        Some(flag) => Err(UsageError::Missing(format!("'{flag}' is accepted {place}"))),
        None => Ok(()),
    }
}

/// Makes the runs. Returns the exit status also where nothing could be begun.
fn measure(args: &SuiteArgs, prepared: Prepared) -> Result<Exit, Exit> {
    let Prepared { jobs, document, program } = prepared;
    let prepare =
        |job, other_plans| Driver::prepare(job, &Extras { other_plans, ..Extras::default() }, &SeriesStyle);
    let drivers = match jobs[0].job.fleet {
        Some(_) => vec![prepare(&jobs[0].job, jobs[1..].iter().map(|run| run.job.plan.clone()).collect())?],
        None => jobs.iter().map(|run| prepare(&run.job, Vec::new())).collect::<Result<Vec<_>, Exit>>()?,
    };
    // Each run stores its records: another one may have stored others.
    let cared = |run: &SuiteJob| SeriesSide::new(run.care.clone(), run.detection.clone(), true);
    let sides = jobs.iter().map(cared).collect();
    let mut series = SuiteSeries::new(&jobs, document, program);
    Ok(follow(&mut series, drivers, sides, &args.run.typed.args.output))
}
