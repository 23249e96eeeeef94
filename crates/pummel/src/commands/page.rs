//! `pummel report`: a stored result as one page of HTML.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use pummel_fronts::exit_status::{Exit, STATUSES_WITHOUT_RUN};
use pummel_fronts::job::check_places;
use pummel_fronts::outputs::InputFile;
use pummel_report::layouts;
use pummel_report::page::{Embed, PageOptions};
use pummel_report::visible::foreign;

use crate::commands::stored::{StoredResult, load, refuse_file};
use crate::front_inputs::PATHS;
use crate::output::Output;
use crate::parser_answer::answer;
use crate::stderr::say;

/// Options of `pummel report`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES_WITHOUT_RUN}"))]
pub struct PageArgs {
    /// A result of `run`, `run --repeat`, `load`, `search`, `scan`, `curve`, `ab`, `suite` or `compare`, as --json or --report wrote it; `-` is standard
    /// input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// File for the page; `-` is standard output [default: FILE with .html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Title of the page. Default: its first sentence
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// How much of the result the page contains; `pummel show` and `pummel report` can read a page that contains its result
    #[arg(long, value_name = "EMBED", value_parser = embeds(), default_value = "reduced")]
    pub embed: Embed,
}

/// The values of `--embed`.
fn embeds() -> impl TypedValueParser<Value = Embed> {
    let values = Embed::ALL.map(|(_, word, about)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values).map(|given| {
        let (embed, ..) =
            Embed::ALL.into_iter().find(|(_, word, _)| *word == given).expect("a value of the list");
        embed
    })
}

const EXAMPLES: &str = "\
One file with charts, tables, plan and data, which needs neither network nor scripts.

Examples:
  pummel run -s cache1 --json result.json && pummel report result.json -o report.html
  pummel run -s cache1 --report report.html
  pummel search -s cache1 --goal p99:1ms --json curve.json && pummel report curve.json

For two to eight results on one page: `pummel compare A.json B.json -o compared.html`.";

/// The file of the page of a result, where none is given: beside the result, so that pages of several results do not replace each other.
fn page_of(result: &Path) -> PathBuf {
    match result.to_str() {
        Some("-") => PathBuf::from("report.html"),
        // A page contains its result, and is not to be replaced by the page of that.
        _ if result.extension().is_some_and(|end| end == "html") => result.with_extension("report.html"),
        _ => result.with_extension("html"),
    }
}

/// Writes the page of a stored result.
pub fn report(args: &PageArgs) -> Exit {
    let path = args.output.clone().unwrap_or_else(|| page_of(&args.file));
    let inputs = [InputFile::new("the result", &args.file)];
    if let Err(error) = check_places(&[("--output", Some(path.as_path()))], &inputs, PATHS) {
        return answer(&error.into());
    }
    let StoredResult { json, stored } = match load(&args.file) {
        Ok(result) => result,
        Err(why) => return refuse_file(&args.file, &why),
    };
    let options = PageOptions { title: args.title.clone(), embed: args.embed };
    let page = layouts::page_of(&stored, &json, &options);
    match Output::prepare(&path).and_then(|output| output.finish(&page)) {
        Ok(()) => {
            if args.output.is_none() {
                say(format_args!("written to {}", foreign(&path.display().to_string())));
            }
            Exit::Complete
        }
        Err(error) => {
            say(format_args!("error: the page cannot be written: {error}"));
            Exit::Failed
        }
    }
}
