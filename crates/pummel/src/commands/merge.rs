//! `pummel merge`: stored results added up, or kept apart as repetitions of one run.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{UsageError, check_places};
use pummel_fronts::outputs::InputFile;
use pummel_report::document::Document;
use pummel_report::json;
use pummel_report::merge::{Part, as_runs, merged};
use pummel_report::stored::ResultDocument;

use crate::build_info::BUILD;
use crate::commands::stored::{load, refuse_file};
use crate::front_inputs::PATHS;
use crate::output::Output;
use crate::parser_answer::answer;
use crate::stderr::say;

/// Options of `pummel merge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct MergeArgs {
    /// Results of `pummel run` or `load`
    ///
    /// As --json or --report wrote them; may be gzipped
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// File for the result, as JSON; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Keep the results separate, in the layout of `pummel run --repeat`, for `pummel compare`
    #[arg(long)]
    pub as_runs: bool,
}

const EXAMPLES: &str = "\
Adds up runs that several machines made of one plan at the same time, each with its share of clients, rate or requests.
Counts and histograms are added exactly. Evidence of servers and kernels is not included; it stays in the single results.

Examples:
  pummel merge here.json there.json -o all.json && pummel show all.json
  pummel merge mon.json tue.json --as-runs -o week.json && pummel compare week.json today.json

Exit status:
  0    written
  1    the results do not belong together, or the sum cannot be written
  2    wrong usage, or a file is no result or that of several runs";

/// Writes the sum of results, or all of them as repetitions.
pub fn merge(args: &MergeArgs) -> Exit {
    let inputs: Vec<InputFile<'_>> =
        args.files.iter().map(|file| InputFile::new("one of the results", file)).collect();
    if let Err(error) = check_places(&[("--output", Some(args.output.as_path()))], &inputs, PATHS) {
        return answer(&error.into());
    }
    match results(args).and_then(|results| written(args, &results).map_err(Refusal::Failed)) {
        Ok(()) => Exit::Complete,
        Err(Refusal::Usage(error)) => answer(&error.into()),
        Err(Refusal::NoResult(file, why)) => refuse_file(&file, &why),
        Err(Refusal::Failed(why)) => {
            say(format_args!("error: {why}"));
            Exit::Failed
        }
    }
}

/// Why nothing is merged.
enum Refusal {
    /// A file is the result of several runs.
    Usage(UsageError),
    /// A file is no result, and why.
    NoResult(PathBuf, String),
    /// Something else is wrong, in a sentence.
    Failed(String),
}

/// The results of runs in the files, with the names of the files.
fn results(args: &MergeArgs) -> Result<Vec<(String, Document)>, Refusal> {
    let mut results: Vec<(String, Document)> = Vec::with_capacity(args.files.len());
    for file in &args.files {
        let name = file.display().to_string();
        match load(file).map_err(|why| Refusal::NoResult(file.clone(), why))?.stored {
            ResultDocument::Run(document) => results.push((name, *document)),
            other => {
                let command = other.command();
                let accepted =
                    format!("it is the result of `pummel {command}`; results of single runs are merged");
                return Err(Refusal::Usage(UsageError::Value {
                    flag: "[FILE]...".to_owned(),
                    value: name,
                    accepted,
                }));
            }
        }
    }
    Ok(results)
}

fn written(args: &MergeArgs, results: &[(String, Document)]) -> Result<(), String> {
    let output = Output::prepare(&args.output).map_err(|error| error.to_string())?;
    let parts: Vec<Part<'_>> = results.iter().map(|(name, document)| Part { name, document }).collect();
    let bytes = match args.as_runs {
        true => json::render(&as_runs(&parts).map_err(|why| why.to_string())?),
        false => json::render(&merged(&parts, BUILD).map_err(|why| why.to_string())?),
    };
    output.finish(&bytes).map_err(|error| error.to_string())
}
