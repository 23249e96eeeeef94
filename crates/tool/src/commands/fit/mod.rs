//! `pummel fit`: a workload from a trace, and how close a profile comes to a trace.

mod figures;
mod text;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use pummel_logic::fit::{Comparison, Fit, Fitter, Load, generate};
use pummel_logic::plan::{Data, Mix, Style};

use crate::commands::trace::{SourceArgs, Stopped, read};
use crate::exit_status::Exit;
use crate::job::{FrontInputs, InputFile, UsageError, check_places};
use crate::native::workloads::{Profile, ReadThrough, Source, is_built_in, profile, profile_text};
use crate::report::output::{Output, names_standard_output};
use crate::stderr::say;
use crate::values;

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
    /// Make as many requests from this profile as the trace has, without a server, and compare them with it. Any profile that
    /// --workload accepts, such as the one fitted to the trace
    #[arg(long, value_name = "PROFILE")]
    pub check: Option<String>,
    /// Write all figures as JSON; - is standard output
    #[arg(long, value_name = "FILE", allow_hyphen_values = true, value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write the rate over time, minute by minute, for --rate file:FILE; - is standard output
    #[arg(long, value_name = "FILE", allow_hyphen_values = true, value_hint = ValueHint::FilePath)]
    pub rates: Option<PathBuf>,
    /// Seed of the requests that --check makes
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count, requires = "check")]
    pub seed: u64,
}

const EXAMPLES: &str = "\
One pass over the trace, in at most 256 MiB of memory. docs/FIT.md says what each figure is, and what a profile cannot carry.

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
        check_places(&places, &inputs).map_err(Stopped::Usage)?;
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
    let mut fitter = Fitter::default();
    let (format, account) = read(&args.source, &mut |row, _| {
        fitter.take(row);
        Ok(true)
    })?;
    let fit = fitter.end();
    let source = Source { files: &args.source.files, format: format.name() };
    let profile_text = profile_text(&fit, source);
    let checked = match (checked, is_own) {
        (None, true) => Some(own_profile(&profile_text)?),
        (checked, _) => checked,
    };
    let comparison = checked.map(|profile| compare(&fit, &profile, args.seed)).transpose()?;
    let name = args.check.as_deref().unwrap_or_default();
    let mut report = text::report(&fit, format.name(), &account);
    if let Some(comparison) = &comparison {
        report += &text::comparison(comparison, name);
    }
    write(outputs.profile, profile_text.as_bytes())?;
    write(outputs.json, &figures::json(&fit, format.name(), &account, comparison.as_ref())?)?;
    write(outputs.rates, text::rates(&fit).as_bytes())?;
    match outputs.takes_stdout {
        true => report.lines().for_each(say),
        false => crate::report::output::print(report.as_bytes())?,
    }
    let is_missed = comparison.is_some_and(|comparison| comparison.beyond().next().is_some());
    Ok(if is_missed { Exit::Missed } else { Exit::Complete })
}

fn named_profile(name: &str, inputs: &FrontInputs) -> Result<Profile, Stopped> {
    let refused = |accepted| {
        Stopped::Usage(UsageError::Value { flag: "--check".to_owned(), value: name.to_owned(), accepted })
    };
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

/// The profile that this fit writes.
fn own_profile(text: &str) -> Result<Profile, Stopped> {
    Profile::read(text)
        .map_err(|refusal| Stopped::Failed(io::Error::other(format!("the profile: {}", refusal.0))))
}

/// Makes as many requests of a profile as a trace has, and compares both.
fn compare(fit: &Fit, profile: &Profile, seed: u64) -> Result<Comparison, Stopped> {
    let data = Data {
        records: profile.records,
        seed: 0,
        key_prefix: profile.key_prefix.clone(),
        key_size: profile.key_size.clone(),
        value_size: profile.value_size.clone(),
        expiry_s: profile.ttl.clone(),
        value_classes: profile.value_classes.clone(),
        style: Style::default(),
    };
    let mix = Mix {
        popularity: profile.popularity.clone(),
        fresh: profile.fresh,
        absent: profile.absent,
        churn: profile.churn.clone(),
        read_through_ns: profile.read_through.map(|ReadThrough(delay_ns)| delay_ns),
        ..Mix::of(&profile.mix)
    };
    let load = Load {
        data: &data,
        mix: &mix,
        rate: profile.rate,
        is_even: profile.arrivals.as_deref() == Some("constant"),
        burst: profile.burst,
        resolution_ns: u32::try_from(fit.resolution_ns).unwrap_or(u32::MAX),
    };
    let primary = match profile.read_through {
        Some(_) => fit.requests - fit.fills(),
        None => fit.requests,
    };
    let mut fitter = Fitter::default();
    let made = generate(&load, primary, seed, &mut |row| fitter.take(row));
    let refused = |accepted| {
        let (flag, value) = ("--check".to_owned(), profile.source.clone());
        Stopped::Usage(UsageError::Value { flag, value, accepted })
    };
    made.map_err(refused)?;
    Ok(Comparison::of(fit, &fitter.end()))
}
