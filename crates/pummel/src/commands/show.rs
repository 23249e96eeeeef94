//! `pummel show`: a stored result in the form of choice, as the run itself would have printed it.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pummel_fronts::exit_status::{Exit, STATUSES_WITHOUT_RUN};
use pummel_fronts::job::UsageError;
use pummel_fronts::screen_options::ScreenArgs;
use pummel_fronts::values::nearest::hint;
use pummel_measure::recorder::Span;
use pummel_report::document::Document;
use pummel_report::screen::Hints;
use pummel_report::stored::ResultDocument;
use pummel_report::{hgrm, layouts};

use crate::commands::stored::{StoredResult, load, refuse_file};
use crate::output::{print, print_screen};
use crate::parser_answer::answer;
use crate::stderr::say;
use crate::terminal::terminal;

/// Options of `pummel show`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{FORMS}\n\n{EXAMPLES}\n{EXAMPLE_OF_A_PAGE}\n\n{STATUSES_WITHOUT_RUN}"))]
pub struct ShowArgs {
    /// A result, as --json or --report wrote it; may be gzipped; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value = "text")]
    pub format: ShowFormat,
    /// Operation for --format hgrm. Default: all together
    #[arg(long, value_name = "OP")]
    pub op: Option<String>,
    /// Print one line for scripts
    #[arg(short, long, conflicts_with_all = ["times", "verbose"])]
    pub quiet: bool,
    /// The text for people.
    #[command(flatten)]
    pub screen: ScreenArgs,
    /// Time for --format hgrm. Default: response
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub span: Option<Span>,
}

/// The forms of a stored result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// The report, as the run printed it
    Text,
    /// A summary for a job's page or a comment
    Markdown,
    /// The result itself, unpacked
    Json,
    /// The intervals of a run, or the runs of a series
    Csv,
    /// A table of percentiles for HdrHistogram's plotters, in microseconds
    Hgrm,
}

const FORMS: &str = "\
Every result can be shown as text, Markdown and JSON. The result of a single run alone has hgrm, and `compare` of more than two \
results has no CSV.";

const EXAMPLES: &str = "\
Examples:
  pummel run -s cache1 --json result.json && pummel show result.json
  pummel show result.json --format hgrm --op get --span service > get.hgrm";

const EXAMPLE_OF_A_PAGE: &str = "  pummel show report.html --format markdown";

fn span(text: &str) -> Result<Span, String> {
    let names = || Span::ALL.map(Span::name).join(", ");
    Span::ALL
        .into_iter()
        .find(|span| span.name() == text)
        .ok_or_else(|| format!("expected one of {}{}", names(), hint(text, Span::ALL.map(Span::name))))
}

/// Prints a stored result.
pub fn show(args: &ShowArgs) -> Exit {
    if args.format != ShowFormat::Hgrm {
        let op = args.op.as_ref().map(|op| ("--op <OP>", op.clone()));
        let span = args.span.map(|span| ("--span <SPAN>", span.name().to_owned()));
        if let Some((flag, value)) = op.or(span) {
            return refuse(flag, value, "it is accepted only with --format hgrm");
        }
    }
    if args.format != ShowFormat::Text {
        let given =
            [("--quiet", args.quiet), ("--verbose", args.screen.verbose), ("--times", args.screen.times)];
        if let Some((flag, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let words = format!("'{flag}' is accepted only with --format text");
            return answer(&UsageError::Missing(words).into());
        }
    }
    let StoredResult { json, stored } = match load(&args.file) {
        Ok(result) => result,
        Err(why) => return refuse_file(&args.file, &why),
    };
    let is_run = matches!(stored, ResultDocument::Run(_));
    if args.screen.times && !is_run {
        let (file, command) = (args.file.display(), stored.command());
        return answer(&UsageError::Missing(format!(
            "'--times' is not accepted: '{file}' is the result of `pummel {command}`, which keeps no five times"
        )).into());
    }
    match (&stored, args.format) {
        (_, ShowFormat::Json) => out(&json),
        (_, ShowFormat::Markdown) => out(&layouts::markdown_of(&stored)),
        (_, ShowFormat::Text) => {
            let hints = if is_run { Hints::OfStored } else { Hints::OfStoredRuns };
            end_of(print_screen(&layouts::text_of(
                &stored,
                args.screen.detail(args.quiet),
                args.screen.paper(hints, &terminal()),
            )))
        }
        (_, ShowFormat::Csv) => match layouts::csv_of(&stored) {
            Some(csv) => out(&csv),
            None => refuse_form(args, &stored, "csv", "the result of one command that made runs is required"),
        },
        (ResultDocument::Run(document), ShowFormat::Hgrm) => histogram(args, document),
        (_, ShowFormat::Hgrm) => refuse_form(
            args,
            &stored,
            "hgrm",
            "it keeps no histograms, and --format hgrm requires the result of a single run",
        ),
    }
}

/// Refuses a form that this kind of result does not have.
fn refuse_form(args: &ShowArgs, stored: &ResultDocument, form: &str, why: &str) -> Exit {
    let (file, command) = (args.file.display(), stored.command());
    let accepted = format!("'{file}' is the result of `pummel {command}`: {why}");
    refuse("--format <FORMAT>", form.to_owned(), &accepted)
}

/// Prints the histogram of an operation of a run.
fn histogram(args: &ShowArgs, document: &Document) -> Exit {
    let file = args.file.display();
    match hgrm::render(document, args.op.as_deref(), args.span.unwrap_or(Span::Response)) {
        Ok(table) => return out(&table),
        Err(hgrm::NoTable::Op(names)) => {
            let op = args.op.clone().unwrap_or_default();
            return refuse("--op <OP>", op, &format!("the result has {}", names.join(", ")));
        }
        Err(hgrm::NoTable::Histogram) => {
            say(format_args!("error: '{file}': the result keeps no histograms of these times"));
        }
        Err(hgrm::NoTable::Empty) => {
            say(format_args!("error: '{file}': no request has such a time{}", reason_words(document)));
        }
    }
    Exit::Failed
}

/// Why a run is not complete, to follow a sentence; empty of a complete one.
fn reason_words(document: &Document) -> String {
    document.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"))
}

fn refuse(flag: &str, value: String, accepted: &str) -> Exit {
    answer(&UsageError::Value { flag: flag.to_owned(), value, accepted: accepted.to_owned() }.into())
}

fn out(bytes: &[u8]) -> Exit {
    end_of(print(bytes))
}

fn end_of(printed: io::Result<()>) -> Exit {
    match printed {
        Ok(()) => Exit::Complete,
        // A reader that has read enough may go.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}
