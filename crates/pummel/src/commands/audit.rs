//! `pummel audit`: whether stored results measure what their names say.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{UsageError, check_places};
use pummel_fronts::outputs::InputFile;
use pummel_fronts::screen_options::{ColourChoice, SeveralArgs};
use pummel_report::findings::{AuditDocument, AuditedResult, brief, counts, named, view};
use pummel_report::screen::{Hints, draw};
use pummel_report::{json, markdown};

use crate::commands::stored::{load, refuse_file};
use crate::front_inputs::PATHS;
use crate::output::{Output, print, print_screen};
use crate::parser_answer::answer;
use crate::stderr::say;
use crate::terminal::terminal;

/// Options of `pummel audit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct AuditArgs {
    /// Results of any command, as --json or --report wrote them; may be gzipped; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Format of the output. Default: text
    #[arg(long, value_enum)]
    pub format: Option<AuditFormat>,
    /// Write what was found to a file, as JSON
    ///
    /// With - it is written to standard output instead of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print one line for scripts
    #[arg(short, long)]
    pub quiet: bool,
    /// When the text has colours
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub color: ColourChoice,
}

/// The forms of an audit on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AuditFormat {
    /// Text for people
    #[default]
    Text,
    /// A summary for a job's page or a comment
    Markdown,
    /// JSON for programs
    Json,
}

const EXAMPLES: &str = "\
A finding is a reason why a result does not measure what its name says: pummel was the limit, reads missed, the run was too short for \
its goal. A note is good to know: one connection, data as small as a CPU's cache. Figures that a result does not have are left out.

Examples:
  pummel audit result.json
  pummel audit reads-1.json reads-2.json search.json --format markdown

Exit status:
  0    nothing was found, or notes alone
  1    what was found cannot be written
  2    wrong usage, or a file is no result
  3    something was found";

/// Tells what stored results do not measure.
pub fn audit(args: &AuditArgs) -> Exit {
    let inputs: Vec<InputFile<'_>> =
        args.files.iter().map(|file| InputFile::new("one of the results", file)).collect();
    if let Err(error) = check_places(&[("--json", args.json.as_deref())], &inputs, PATHS) {
        return answer(&error.into());
    }
    if let Some(error) = conflict(args) {
        return answer(&error.into());
    }
    let mut contents = Vec::with_capacity(args.files.len());
    for file in &args.files {
        match load(file) {
            Ok(result) => contents.push(result.stored),
            Err(why) => return refuse_file(file, &why),
        }
    }
    let files: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
    let document = AuditDocument::of(named(&files), &contents);
    match written(args, &document) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
        // A reader that has read enough may go.
        Ok(()) | Err(_) if counts(&document.findings).0 > 0 => Exit::Missed,
        Ok(()) | Err(_) => Exit::Complete,
    }
}

/// Words that ask for two things in one place, or read one thing twice.
fn conflict(args: &AuditArgs) -> Option<UsageError> {
    let missing = |words: &str| Some(UsageError::Missing(words.to_owned()));
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return missing("standard input ('-') is named twice: it is accepted once, since it is read once");
    }
    let has_standard_output = args.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    match args.format {
        Some(AuditFormat::Text) | None if args.quiet && has_standard_output => {
            missing("'--quiet' is not accepted with '--json -', which has standard output")
        }
        Some(AuditFormat::Text | AuditFormat::Markdown) if has_standard_output => {
            missing("'--format' is accepted with '--json -' only as json, which has standard output")
        }
        Some(AuditFormat::Markdown | AuditFormat::Json) if args.quiet => {
            missing("'--quiet' is accepted only with --format text")
        }
        _ => None,
    }
}

fn written(args: &AuditArgs, document: &AuditDocument) -> io::Result<()> {
    let file = args.json.as_deref().map(Output::prepare).transpose()?;
    let has_standard_output = file.as_ref().is_some_and(Output::is_standard);
    // The file first: standard output may not be read yet.
    if let Some(file) = file {
        file.finish(&json::render(document))?;
    }
    if has_standard_output {
        return Ok(());
    }
    let names: Vec<String> = document.results.iter().map(|AuditedResult { name, .. }| name.clone()).collect();
    match args.format.unwrap_or_default() {
        AuditFormat::Json => print(&json::render(document)),
        AuditFormat::Markdown => print(&markdown::render(&view(&names, &document.findings))),
        AuditFormat::Text if args.quiet => print_screen(&(brief(names.len(), &document.findings) + "\n")),
        AuditFormat::Text => {
            let screen = SeveralArgs { verbose: false, color: args.color };
            let paper = screen.paper(Hints::None, &terminal());
            print_screen(&draw(&view(&names, &document.findings), paper))
        }
    }
}
