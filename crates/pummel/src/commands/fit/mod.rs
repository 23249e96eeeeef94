//! `pummel fit`: a workload from a trace, and how close a profile comes to a trace.

mod check;
mod figures;
mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, UsageError, check_places};
use pummel_fronts::native::workloads::{Profile, Source, is_built_in, profile, profile_text};
use pummel_fronts::outputs::InputFile;
use pummel_fronts::values;
use pummel_traffic::fit::Fitter;

use self::check::Check;
use crate::commands::trace::{SourceArgs, Stopped, read};
use crate::front_inputs::PATHS;
use crate::output::{Output, names_standard_output};
use crate::stderr::say;

/// Options of `pummel fit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct FitArgs {
    /// Which trace.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Write the profile to this file, for --workload; - is standard output
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true, value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Compare requests made from this profile with the trace; exit status 3 if they differ
    ///
    /// As many requests are made as the trace has, without a server, and all figures of both are printed. Any profile that
    /// --workload accepts; the one that is fitted to the trace is always compared, and what it does not carry is printed
    #[arg(long, value_name = "PROFILE")]
    pub check: Option<String>,
    /// Write all figures as JSON; - is standard output
    #[arg(long, value_name = "FILE", allow_hyphen_values = true, value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write the rate over time, minute by minute, for --rate file:FILE; - is standard output
    #[arg(long, value_name = "FILE", allow_hyphen_values = true, value_hint = ValueHint::FilePath)]
    pub rates: Option<PathBuf>,
    /// Seed of the requests that are made of profiles
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count)]
    pub seed: u64,
}

const EXAMPLES: &str = "\
One pass over the trace, in at most 256 MiB of memory. Then as many requests are made from the profile, in at most twice the
time of that pass or 10 s, and the figures that it does not carry are printed. docs/FIT.md says what each figure is.

Examples:
  pummel fit cluster52.0.zst -o mine.toml
  pummel fit cluster52.0.zst --check mine.toml
  pummel run -s 127.0.0.1 --workload mine.toml --rate 20k

Exit status:
  0    fitted; with --check, every figure is within its bound
  1    the trace holds no request, or a file cannot be read or written
  2    wrong usage
  3    --check found a figure beyond its bound";

/// Follows a command line of `pummel fit`.
pub fn fit(args: &FitArgs, inputs: &FrontInputs) -> Exit {
    follow(args, inputs).unwrap_or_else(Stopped::answer)
}

/// The files that are written, and whether one of them is standard output.
struct Outputs {
    profile: Option<Target>,
    json: Option<Target>,
    rates: Option<Target>,
    takes_stdout: bool,
}

/// A file that is written at the end.
struct Target {
    path: PathBuf,
    output: Output,
}

impl Target {
    fn prepare(path: &Option<PathBuf>) -> Result<Option<Target>, Stopped> {
        let Some(path) = path else { return Ok(None) };
        let output = Output::prepare(path).map_err(|error| unwritten(path, &error))?;
        Ok(Some(Target { path: path.clone(), output }))
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Stopped {
    let name = path.display().to_string();
    Stopped::Failed(io::Error::new(error.kind(), format!("cannot write '{}': {error}", name.escape_debug())))
}

impl Outputs {
    /// Checks that each file can be written, and is neither one of the others nor the trace or `profile`, which are read.
    fn prepare(args: &FitArgs, profile: Option<&str>) -> Result<Outputs, Stopped> {
        let paths = [&args.output, &args.json, &args.rates];
        let to_stdout =
            paths.iter().filter(|path| path.as_deref().is_some_and(names_standard_output)).count();
        if to_stdout > 1 {
            let why = "expected one of '--output', '--json' and '--rates' as -, standard output";
            return Err(Stopped::Usage(UsageError::Missing(why.to_owned())));
        }
        let traces = args.source.files.iter().map(|file| InputFile::new("the trace", file));
        let profile = profile.map(|file| InputFile::of_option("--check", file));
        let inputs: Vec<InputFile<'_>> = traces.chain(profile).collect();
        let places = [
            ("--output", args.output.as_deref()),
            ("--json", args.json.as_deref()),
            ("--rates", args.rates.as_deref()),
        ];
        check_places(&places, &inputs, PATHS).map_err(Stopped::Usage)?;
        Ok(Outputs {
            profile: Target::prepare(&args.output)?,
            json: Target::prepare(&args.json)?,
            rates: Target::prepare(&args.rates)?,
            takes_stdout: to_stdout > 0,
        })
    }
}

fn write(target: Option<Target>, bytes: &[u8]) -> Result<(), Stopped> {
    let Some(Target { path, output }) = target else { return Ok(()) };
    output.finish(bytes).map_err(|error| unwritten(&path, &error))
}

fn follow(args: &FitArgs, inputs: &FrontInputs) -> Result<Exit, Stopped> {
    // What is wrong with a profile is said before minutes are spent on the trace; one that is written here cannot be read yet.
    let is_own = args.check.is_some()
        && args.check.as_deref() == args.output.as_deref().and_then(|path| path.to_str());
    let checked = match &args.check {
        Some(name) if !is_own => Some(named_profile(name, inputs)?),
        _ => None,
    };
    let outputs = Outputs::prepare(args, args.check.as_deref().filter(|name| !is_own && !is_built_in(name)))?;
    let begin = Instant::now();
    let mut fitter = Fitter::default();
    let (format, account) = read(&args.source, &mut |row, _| {
        fitter.take(row);
        Ok(true)
    })?;
    let fit = fitter.end();
    let limit = check::limit(begin.elapsed());
    let source = Source { files: &args.source.files, format: format.name() };
    let own = Check::of_own(&fit, &profile_text(&fit, source, &[]), args.seed, limit);
    let name = args.check.as_deref().unwrap_or_default();
    let asked = match (&checked, is_own) {
        (Some(profile), _) => Some(Check::of(&fit, profile, args.seed, limit)),
        (None, true) => Some(own.clone()),
        (None, false) => None,
    };
    let asked = asked.transpose().map_err(|why| refused_profile(name, why))?;
    let mut report = text::report(&fit, format.name(), &account);
    report += &text::carried(&own);
    if let Some(check) = &asked {
        report += &text::comparison(check, name);
    }
    let misses = own.as_ref().map(text::misses_of_profile).unwrap_or_default();
    write(outputs.profile, profile_text(&fit, source, &misses).as_bytes())?;
    let shown = asked.as_ref().or(own.as_ref().ok());
    write(outputs.json, &figures::json(&fit, format.name(), &account, shown)?)?;
    write(outputs.rates, text::rates(&fit).as_bytes())?;
    match outputs.takes_stdout {
        true => report.lines().for_each(say),
        false => crate::output::print(report.as_bytes())?,
    }
    let is_missed = asked.is_some_and(|check| check.comparison.beyond().next().is_some());
    Ok(if is_missed { Exit::Missed } else { Exit::Complete })
}

/// The refusal of a profile whose requests cannot be made.
fn refused_profile(name: &str, accepted: String) -> Stopped {
    Stopped::Usage(UsageError::Value { flag: "--check".to_owned(), value: name.to_owned(), accepted })
}

fn named_profile(name: &str, inputs: &FrontInputs) -> Result<Profile, Stopped> {
    let refused = |accepted| refused_profile(name, accepted);
    let profile = profile(name, inputs).map_err(refused)?;
    let has = [
        (profile.read_modify_write > 0.0, "read_modify_write"),
        (profile.insert, "insert"),
        (profile.scan.is_some(), "scan"),
    ];
    let has: Vec<&str> = has.into_iter().filter(|(is_there, _)| *is_there).map(|(_, what)| what).collect();
    match has.is_empty() {
        true => Ok(profile),
        false => Err(refused(format!(
            "expected a profile whose requests can be made without a server: it has {}",
            has.join(" and ")
        ))),
    }
}
