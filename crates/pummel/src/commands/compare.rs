//! `pummel compare`: two to eight sides of stored results.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{UsageError, check_places};
use pummel_fronts::outputs::InputFile;
use pummel_fronts::screen_options::SeveralArgs;
use pummel_report::comparison;
use pummel_report::comparison::{
    Comparison, NotASide, PairCommand, Question, SIDE_NAMES, Side, SideNames, StoredFile, SuitesComparison,
    side_of, sides_of, suite_sides,
};
use pummel_report::document::Document;
use pummel_report::page::{ComparedSides, Embed, PageOptions, of_comparison};
use pummel_report::screen::{Hints, Paper};
use pummel_report::stored::ResultDocument;
use pummel_report::text::Detail;
use pummel_report::view::pair;
use pummel_report::view::pair::Headline;
use pummel_report::view::run::Wanted;
use pummel_report::{layouts, markdown, text};

use crate::commands::judge_options::JudgeArgs;
use crate::commands::stored::load;
use crate::front_inputs::PATHS;
use crate::output::{Output, print, print_screen};
use crate::parser_answer::answer;
use crate::stderr::say;
use crate::terminal::terminal;

/// Options of `pummel compare`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct CompareArgs {
    /// Results of A, of B and so on; commas separate those of one side. Or one result of `ab`
    ///
    /// Results of 2 to 8 sides, each compared with the first: results of `run` or `run --repeat`, as JSON, gzipped JSON or report
    /// pages. A result of `ab` has both sides. Two suites are compared run by run. `-` is standard input
    #[arg(value_name = "A.json[,A2.json,...]", required = true, num_args = 1..=SIDE_NAMES.len(), value_hint = ValueHint::FilePath)]
    pub sides: Vec<String>,
    /// How they are judged.
    #[command(flatten)]
    pub judge: JudgeArgs,
    /// Also judge runs that did not alternate
    ///
    /// A slower hour would then look like a difference
    #[arg(long, help_heading = "Judgement")]
    pub accept_order: bool,
    /// Write the comparison as an HTML page with charts
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Title of the page. Default: its first sentence
    #[arg(long, value_name = "TEXT", requires = "output", help_heading = "Output")]
    pub title: Option<String>,
    /// Write the comparison to a file, as JSON
    ///
    /// With - it is written to standard output instead of the text
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Format of the output. Default: text
    #[arg(long, value_enum, help_heading = "Output")]
    pub format: Option<CompareFormat>,
    /// Print one line for scripts
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// The text for people.
    #[command(flatten)]
    pub screen: SeveralArgs,
}

/// The forms of a comparison on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Text for people
    #[default]
    Text,
    /// A summary for a job's page or a comment
    Markdown,
    /// JSON for programs
    Json,
}

const EXAMPLES: &str = "\
The report says what differs in plans, servers and machines. Runs that alternated in mixed order, such as those of `ab`, \
are compared pair by pair. If all runs of A came before all runs of B, a change of the machine may be the difference: the report \
says so, and judges only with --accept-order. It takes at least six runs on each side to show a difference.
A side whose generator was the limit is never called better or worse.

Examples:
  pummel compare before.json after.json -o compared.html
  pummel compare a1.json,a2.json,a3.json,a4.json,a5.json,a6.json \\
    b1.json,b2.json,b3.json,b4.json,b5.json,b6.json
  pummel compare memcached.json redis.html valkey.json.gz -o servers.html
  pummel compare ab.json --worse p99:5%

Exit status:
  0    compared; no gate of --worse or --within failed
  1    --worse or --within cannot be judged, or the results of a side do not belong together
  2    wrong usage, or a file is no result
  3    B is shown to be worse than --worse allows, or is not shown to be within --within";

/// Compares stored results.
pub fn compare(args: &CompareArgs) -> Exit {
    match compared(args) {
        Ok(exit) => exit,
        Err(Refusal::Usage(error)) => answer(&error.into()),
        Err(Refusal::Failed(words)) => {
            say(format_args!("error: {words}"));
            Exit::Failed
        }
    }
}

/// Why nothing is compared.
enum Refusal {
    /// The command line names something that is no result.
    Usage(UsageError),
    /// Something else is wrong, in a sentence.
    Failed(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Failed(error.to_string())
    }
}

fn compared(args: &CompareArgs) -> Result<Exit, Refusal> {
    let places = Places::prepare(args)?;
    let question = args.judge.question(args.accept_order);
    let compared = stored(args, &question)?;
    let options = PageOptions { title: args.title.clone(), embed: Embed::Full };
    // Files first: standard output may not be read yet.
    let mut results = places.write(|| compared.json(), || compared.page(&options));
    if !places.have_standard_output() {
        results.push(match args.format.unwrap_or_default() {
            CompareFormat::Text => {
                let (detail, paper) =
                    (args.screen.detail(args.quiet), args.screen.paper(Hints::OfCompared, &terminal()));
                print_screen(&compared.text(detail, paper))
            }
            CompareFormat::Markdown => print(&compared.markdown()),
            CompareFormat::Json => print(&compared.json()),
        });
    }
    let troubles = results.into_iter().filter_map(Result::err);
    Ok(troubles.fold(Exit::of_status(compared.status()), |_, error| {
        say(format_args!("error: {error}"));
        Exit::Failed
    }))
}

/// Where the comparison is written, beside or in place of the report on standard output.
struct Places {
    json: Option<Output>,
    page: Option<Output>,
}

impl Places {
    /// Checks that each can be written, and has a place of its own, which is not that of a result that is read.
    fn prepare(args: &CompareArgs) -> Result<Places, Refusal> {
        let names = SIDE_NAMES.into_iter().zip(&args.sides);
        let files = names.flat_map(|(name, list)| list.split(',').map(move |file| (name, file)));
        let inputs: Vec<InputFile<'_>> =
            files.map(|(name, file)| InputFile::new(&format!("a result of {name}"), file)).collect();
        let outputs = [("--json", args.json.as_deref()), ("--output", args.output.as_deref())];
        check_places(&outputs, &inputs, PATHS).map_err(Refusal::Usage)?;
        let places = Places {
            json: args.json.as_deref().map(Output::prepare).transpose()?,
            page: args.output.as_deref().map(Output::prepare).transpose()?,
        };
        places.conflict(args).map_or(Ok(places), |error| Err(Refusal::Usage(error)))
    }

    /// What a file and a report that both have standard output are refused with; `None` where there are none.
    fn conflict(&self, args: &CompareArgs) -> Option<UsageError> {
        let is_standard = |output: &Option<Output>| output.as_ref().is_some_and(Output::is_standard);
        let (json, page) = (is_standard(&self.json), is_standard(&self.page));
        let format = args.format.filter(|format| page || *format != CompareFormat::Json)?;
        let name = format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let accepted =
            format!("expected a file with --format {name}: only one of them can have standard output");
        let (flag, path) = match (json, page) {
            (true, _) => ("--json", args.json.as_deref()?),
            (_, true) => ("--output", args.output.as_deref()?),
            (false, false) => return None,
        };
        Some(UsageError::Value { flag: flag.to_owned(), value: path.display().to_string(), accepted })
    }

    /// Whether one of them has standard output.
    fn have_standard_output(&self) -> bool {
        [&self.json, &self.page].into_iter().flatten().any(Output::is_standard)
    }

    /// Writes both, the second also where the first cannot be written.
    fn write(&self, json: impl Fn() -> Vec<u8>, page: impl Fn() -> Vec<u8>) -> Vec<io::Result<()>> {
        let json = self.json.iter().map(|output| output.finish(&json()));
        let page = self.page.iter().map(|output| output.finish(&page()));
        json.chain(page).collect()
    }
}

/// The contents of the files, compared.
enum Compared {
    /// Sides of runs.
    Sides {
        /// Each side beside the first.
        comparisons: Vec<Comparison>,
        /// The complete results of each side, from which charts are drawn; empty for a side that keeps only figures.
        documents: Vec<Vec<Document>>,
    },
    /// Two suites, as a result.
    Suites(ResultDocument),
}

impl Compared {
    fn json(&self) -> Vec<u8> {
        match self {
            Compared::Sides { comparisons, .. } => comparison::json_of_all(comparisons),
            Compared::Suites(result) => layouts::json_of(result),
        }
    }

    fn page(&self, options: &PageOptions) -> Vec<u8> {
        match self {
            Compared::Sides { comparisons, documents } => {
                of_comparison(&ComparedSides { comparisons, documents }, options)
            }
            Compared::Suites(result) => layouts::page_of(result, &[], options),
        }
    }

    fn text(&self, detail: Detail, paper: Paper) -> String {
        match self {
            Compared::Sides { comparisons, .. } => text::comparison(comparisons, detail, paper),
            Compared::Suites(result) => layouts::text_of(result, detail, paper),
        }
    }

    fn markdown(&self) -> Vec<u8> {
        match self {
            Compared::Sides { comparisons, .. } => markdown::render(&pair::view(comparisons, Wanted::Screen)),
            Compared::Suites(result) => layouts::markdown_of(result),
        }
    }

    fn status(&self) -> u8 {
        match self {
            Compared::Sides { comparisons, .. } => Headline::of(comparisons).status,
            Compared::Suites(result) => layouts::status_of(result).unwrap_or_default(),
        }
    }
}

fn stored(args: &CompareArgs, question: &Question) -> Result<Compared, Refusal> {
    check_standard_input(&args.sides)?;
    let names = SIDE_NAMES.into_iter().zip(&args.sides);
    let all: Vec<Vec<StoredFile>> =
        names.map(|(name, list)| files(name, list)).collect::<Result<Vec<_>, Refusal>>()?;
    let suites =
        suite_sides(&all).map_err(|why| refusal("<A.json[,A2.json,...]>", &args.sides.join(" "), &why))?;
    if let Some([first, second]) = suites {
        let compared = SuitesComparison::of(first, second, question);
        return Ok(Compared::Suites(ResultDocument::Suites(Box::new(compared))));
    }
    if let [alone] = all.as_slice() {
        let sides = match alone.as_slice() {
            [one] => sides_of(one).map_err(|why| refusal("A", &args.sides[0], &why))?,
            _ => None,
        };
        let Some(sides) = sides else {
            let missing = "results of B are required, unless the one result of A is that of `pummel ab`";
            return Err(Refusal::Usage(UsageError::Missing(missing.to_owned())));
        };
        let is_experiment = alone.iter().all(|file| file.result.command() == PairCommand::Ab.name());
        let question = Question { loads_may_differ: is_experiment, ..question.clone() };
        let comparison = Comparison::of_pairs(PairCommand::Compare, sides, &question);
        return Ok(Compared::Sides {
            comparisons: vec![comparison],
            documents: vec![Vec::new(), Vec::new()],
        });
    }
    let mut sides: Vec<Side> = Vec::new();
    for (place, files) in all.iter().enumerate() {
        sides.push(side_of(files).map_err(|why| refusal(SIDE_NAMES[place], &args.sides[place], &why))?);
    }
    let (first, others) = sides.split_first().expect("there are two sides or more");
    let comparison = |(place, other): (usize, &Side)| {
        let names = SideNames([SIDE_NAMES[0], SIDE_NAMES[place + 1]]);
        Comparison::of_results([first.clone(), other.clone()], &Question { names, ..question.clone() })
    };
    Ok(Compared::Sides {
        comparisons: others.iter().enumerate().map(comparison).collect(),
        documents: all.iter().map(|files| documents(files)).collect(),
    })
}

/// Refuses standard input that is named more than once: it is read once.
fn check_standard_input(sides: &[String]) -> Result<(), Refusal> {
    let count = sides.iter().flat_map(|list| list.split(',')).filter(|name| *name == "-").count();
    match count {
        0 | 1 => Ok(()),
        _ => Err(Refusal::Usage(UsageError::Missing(
            "standard input ('-') is named twice: it is accepted once, since it is read once".to_owned(),
        ))),
    }
}

/// The results of single runs among files.
fn documents(files: &[StoredFile]) -> Vec<Document> {
    let runs = files.iter().filter_map(|file| match &file.result {
        ResultDocument::Run(document) => Some(Document::clone(document)),
        _ => None,
    });
    runs.collect()
}

fn refusal(flag: &str, value: &str, why: &NotASide) -> Refusal {
    match why {
        NotASide::File(..) => Refusal::Usage(UsageError::Value {
            flag: flag.to_owned(),
            value: value.to_owned(),
            accepted: why.to_string(),
        }),
        NotASide::Mixed(words) => Refusal::Failed(words.clone()),
    }
}

fn files(flag: &str, list: &str) -> Result<Vec<StoredFile>, Refusal> {
    let refused = |accepted: String| {
        Refusal::Usage(UsageError::Value { flag: flag.to_owned(), value: list.to_owned(), accepted })
    };
    let each = list.split(',').map(|name| {
        let read = load(Path::new(name)).map_err(|why| refused(format!("{name}: {why}")))?;
        Ok(StoredFile { name: name.to_owned(), result: read.stored })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use pummel_report::stored::packed;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        compare: CompareArgs,
    }

    fn args(words: &str) -> CompareArgs {
        let words = "compare a.json b.json".split(' ').chain(words.split_whitespace());
        Line::try_parse_from(words).expect("options of compare").compare
    }

    #[test]
    fn two_reports_in_one_place_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (one, again, link) = (at("x"), at("./x"), at("link"));
        std::os::unix::fs::symlink("x", &link).expect("a link");
        for (words, parts) in [
            (format!("--json {one} -o {one}"), ["'--output'", "--json already writes"]),
            (format!("--json {one} -o {again}"), ["'--output'", "--json already writes"]),
            ("--json - -o -".to_owned(), ["'-' for '--output'", "--json already writes"]),
            (format!("--json {one} -o {link}"), ["'--output'", "--json already writes"]),
            ("--json - --format markdown".to_owned(), ["'-' for '--json'", "--format markdown"]),
            ("--json - --format text".to_owned(), ["'-' for '--json'", "--format text"]),
            ("-o - --format json".to_owned(), ["'-' for '--output'", "--format json"]),
        ] {
            let Err(Refusal::Usage(error)) = Places::prepare(&args(&words)) else { panic!("{words}") };
            for part in parts {
                assert!(error.to_string().contains(part), "{words}: {error}");
            }
        }
        for words in [format!("--json {one} -o {}", at("y")), "--json - --format json".to_owned()] {
            assert!(Places::prepare(&args(&words)).is_ok(), "{words}");
        }
    }

    #[test]
    fn a_report_in_the_place_of_a_result_that_is_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("b.json"), "{}").expect("a file");
        for option in ["-o", "--json"] {
            let sides = vec![at("a.json"), format!("{},{}", at("a2.json"), at("b.json"))];
            let args = CompareArgs { sides, ..args(&format!("{option} {}", at("b.json"))) };
            let Err(Refusal::Usage(error)) = Places::prepare(&args) else { panic!("{option}") };
            let accepted = "expected a separate file: it is read as a result of B";
            assert!(error.to_string().ends_with(accepted), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_written_keeps_nothing_else_from_being_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (gone, page) = (folder.path().join("gone"), folder.path().join("page.html"));
        std::fs::create_dir(&gone).expect("a folder");
        let words = format!("--json {} -o {}", gone.join("r.json").display(), page.display());
        let places = Places::prepare(&args(&words)).unwrap_or_else(|_| panic!("both can be written"));
        std::fs::remove_dir(&gone).expect("it is empty");
        let results = places.write(Vec::new, || b"page".to_vec());
        assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
        assert_eq!(std::fs::read(&page).expect("it is written"), b"page");
    }

    #[test]
    fn a_packed_result_that_was_cut_short_is_wrong_usage_as_any_file_that_is_no_result() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cut.json.gz");
        let whole = packed(b"{\"schema\": 1}");
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("it is written");
        let name = path.display().to_string();
        let Err(Refusal::Usage(error)) = files("B", &name) else { panic!("it is no result") };
        let said = error.to_string();
        assert!(said.contains(&format!("for 'B': {name}: it begins like a file of gzip")), "{said}");
    }

    #[test]
    fn standard_input_is_named_once() {
        let is_accepted = |sides: &[&str]| {
            let sides: Vec<String> = sides.iter().map(|side| (*side).to_owned()).collect();
            check_standard_input(&sides).is_ok()
        };
        assert!(is_accepted(&["-", "a.json"]) && is_accepted(&["a.json", "./-"]));
        for sides in [&["-", "-"][..], &["-,-", "a.json"], &["a.json,-", "-"]] {
            assert!(!is_accepted(sides), "{sides:?}");
        }
    }
}
