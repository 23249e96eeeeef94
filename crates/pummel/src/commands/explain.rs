//! `pummel explain`: the Plan that a command line means, printed or saved.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches, ValueEnum};
use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::front::{Front, Request};
use pummel_fronts::fronts::{FRONTS, of_name};
use pummel_fronts::job::{FrontInputs, Job, UsageError, check_places};
use pummel_fronts::native;
use pummel_fronts::native::places::file_of;
use pummel_fronts::native::saved;
use pummel_fronts::outputs::files_of;
use pummel_fronts::outputs::{Format, InputFile};
use pummel_fronts::values::nearest::hint;
use pummel_logic::plan::Plan;
use pummel_report::visible;

use crate::commands::compatible::request;
use crate::commands::repeat::RunCommandArgs;
use crate::commands::stored::load;
use crate::front_inputs::PATHS;
use crate::output::Output;
use crate::parser_answer::answer;
use crate::stderr::say;

/// Options of `pummel explain`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES}"))]
pub struct ExplainArgs {
    /// Save the plan to a file, for `pummel run --plan FILE`
    ///
    /// The file is JSON if its name ends in .json, else TOML. With -, the plan is printed, as without this option. May also follow
    /// ARGS
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Format of the plan on standard output: text is TOML
    ///
    /// May also follow ARGS
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Which command line follows: run (or its alias native), load, or the name of another tool
    #[arg(value_name = "FRONT")]
    pub front: String,
    /// The command line, as it would follow that name
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

const EXAMPLES: &str = "\
Nothing is sent, and no server is needed. Without --protocol the plan has text, or resp2 if every server listens on port 6379; \
a run would detect the protocol.

Examples:
  pummel explain run -s 127.0.0.1 --rate 20k
  pummel explain run -s cache1 --mix get:9,set:1 --seed 7 --plan plan.toml
  pummel run --plan plan.toml";

const STATUSES: &str = "\
Exit status:
  0    the plan is printed or saved
  1    the plan cannot be written
  2    wrong usage, of `explain` or of the command line that it explains";

/// Prints or saves the Plan.
pub fn explain(args: &ExplainArgs, inputs: &FrontInputs) -> Exit {
    let done = Wanted::of(args).and_then(|wanted| {
        let job = wanted.job(inputs)?;
        Ok((wanted, job))
    });
    match done {
        Ok((wanted, job)) => wanted.put_out(&job),
        Err(error) => answer(&error),
    }
}

/// What is to be explained, with the options of `explain` that stood behind ARGS taken out of them.
struct Wanted {
    words: Vec<OsString>,
    plan: Option<PathBuf>,
    format: Format,
}

impl Wanted {
    fn of(args: &ExplainArgs) -> Result<Wanted, clap::Error> {
        let subcommand = match args.front.as_str() {
            "native" | "run" => "run",
            name if known_fronts().any(|known| known == name) || of_name(name).is_some() => name,
            name => return Err(no_such_front(name).into()),
        };
        let mut wanted =
            Wanted { words: vec![subcommand.into()], plan: args.plan.clone(), format: args.format };
        let mut rest = args.args.iter();
        while let Some(word) = rest.next() {
            let (name, value) = match word.to_str().and_then(|word| word.split_once('=')) {
                Some((name, value)) => (Some(name), Some(OsString::from(value))),
                None => (word.to_str(), None),
            };
            match name {
                Some("--plan") => wanted.plan = Some(value_of("--plan", value, &mut rest)?.into()),
                Some("--format") => {
                    let value = value_of("--format", value, &mut rest)?;
                    // The form of a report, which a plan has not.
                    let is_of_report = value == "markdown" && ["run", "load"].contains(&subcommand);
                    if !is_of_report {
                        wanted.format = format(&value)?;
                    }
                }
                _ => wanted.words.push(word.clone()),
            }
        }
        Ok(wanted)
    }

    fn job(&self, inputs: &FrontInputs) -> Result<Job, clap::Error> {
        let name = self.words.first().and_then(|word| word.to_str()).unwrap_or_default();
        if let Some(front) = of_name(name) {
            return job_of(front, name, &self.words[1..], inputs);
        }
        if self.words.first().is_some_and(|word| word == "run") {
            return runs(&self.words, inputs);
        }
        native::job(self.words.iter().cloned(), inputs)
    }

    fn put_out(&self, job: &Job) -> Exit {
        let Some(path) = self.plan.as_ref().filter(|path| path.as_os_str() != "-") else {
            return print(&match (self.format, job.front) {
                (Format::Text, native::FRONT) => saved::print_with_options(&job.plan),
                (format, _) => saved::print(&job.plan, format),
            });
        };
        if let Err(error) = self.check_place(path, &job.plan) {
            return answer(&error.into());
        }
        let text = saved::text_for(&job.plan, path);
        // A file keeps the plan that it has until the new one is complete.
        match Output::prepare(path).and_then(|output| output.finish(text.as_bytes())) {
            Ok(()) => Exit::Complete,
            Err(error) => {
                say(format_args!("error: the plan cannot be written: {error}"));
                Exit::Failed
            }
        }
    }

    /// Refuses to put the plan in the place of a result, or of a file that the explained command line names.
    fn check_place(&self, path: &Path, plan: &Plan) -> Result<(), UsageError> {
        let words: Vec<&str> = self.words.iter().filter_map(|word| word.to_str()).collect();
        let apart = words.windows(2).map(|pair| (pair[0], pair[1]));
        let options = apart.chain(words.iter().filter_map(|word| word.split_once('=')));
        let named =
            options.filter_map(|(flag, value)| Some(InputFile::of_option(flag, file_of(flag, value)?)));
        let inputs: Vec<InputFile<'_>> = named.chain(files_of(plan)).collect();
        check_places(&[("--plan", Some(path))], &inputs, PATHS)?;
        // Reading a pipe would wait for its writer.
        if !fs::metadata(path).is_ok_and(|present| present.is_file()) {
            return Ok(());
        }
        let Ok(result) = load(path) else { return Ok(()) };
        let command = result.stored.command();
        Err(UsageError::Value {
            flag: "--plan".to_owned(),
            value: path.display().to_string(),
            accepted: format!(
                "expected a file that holds no result: this one is the result of `pummel {command}`"
            ),
        })
    }
}

/// What a command line of `pummel run` means. How often the run is made, and whether it is steered, is no part of the plan.
fn runs(words: &[OsString], inputs: &FrontInputs) -> Result<Job, clap::Error> {
    let command = RunCommandArgs::augment_args(Command::new("run").bin_name("pummel run"));
    let args = RunCommandArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
    Ok(native::run(&args.run, inputs)?)
}

/// What a command line of another tool means: its first run, where there are more.
fn job_of(
    front: &Front,
    program: &str,
    words: &[OsString],
    inputs: &FrontInputs,
) -> Result<Job, clap::Error> {
    match request(front, program, words, inputs, &sys::allowed_cpus().unwrap_or_default()) {
        Request::Run(run) => Ok(run.job().clone()),
        Request::InTurn(asked) => match asked.runs.first() {
            Some(run) => Ok(run.job().clone()),
            None => Err(no_run("-t").into()),
        },
        Request::Runs(runs) => Ok(runs.job),
        Request::Agent(_) => Err(no_run("--agentmode").into()),
        Request::Text(option, _) => Err(no_run(option).into()),
        Request::Refused { why, .. } => Err(UsageError::Missing(why).into()),
    }
}

/// A command line that asks for something else than a run.
fn no_run(what: &str) -> UsageError {
    UsageError::Missing(format!("'{what}' asks for no run, so that there is no plan"))
}

/// The value of an option: behind its equals sign, or the next word.
fn value_of<'a>(
    flag: &str,
    value: Option<OsString>,
    rest: &mut impl Iterator<Item = &'a OsString>,
) -> Result<OsString, UsageError> {
    let missing = || UsageError::Missing(format!("a value is required for '{flag}'"));
    value.or_else(|| rest.next().cloned()).ok_or_else(missing)
}

fn format(word: &OsString) -> Result<Format, UsageError> {
    let wrong = || UsageError::Value {
        flag: "--format".to_string(),
        value: word.to_string_lossy().into_owned(),
        accepted: "expected text or json".to_string(),
    };
    word.to_str().and_then(|word| Format::from_str(word, false).ok()).ok_or_else(wrong)
}

/// The names of the command lines that can be explained.
pub fn known_fronts() -> impl Iterator<Item = &'static str> {
    ["run", "load"].into_iter().chain(FRONTS.iter().map(|front| front.name))
}

fn no_such_front(name: &str) -> UsageError {
    let known: Vec<&str> = known_fronts().collect();
    UsageError::Value {
        flag: "FRONT".to_string(),
        value: name.to_string(),
        accepted: format!(
            "expected {} or native (the same as run){}",
            known.join(", "),
            hint(name, known_fronts().chain(["native"]))
        ),
    }
}

/// Writes to standard output; a reader that has read enough is no error.
fn print(text: &str) -> Exit {
    let write = || {
        sys::check_stdout()?;
        let mut out = io::stdout().lock();
        // A plan that another program or a file takes keeps every character.
        let shown = if out.is_terminal() { visible::text(text) } else { text.into() };
        out.write_all(shown.as_bytes())?;
        out.flush()
    };
    match write() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(format_args!("error: the plan cannot be printed: {error}"));
            Exit::Failed
        }
        _ => Exit::Complete,
    }
}
