//! `pummel compare`: two sides of stored results.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::commands::ab::exit_of;
use crate::commands::judge_options::JudgeArgs;
use crate::exit_status::{Exit, answer};
use crate::job::{Format, UsageError};
use crate::report::comparison;
use crate::report::comparison::{Comparison, NotASide, Side, StoredFile, side_of, sides_of};
use crate::report::output::{Output, print};
use crate::report::stored::json_of;
use crate::stderr::say;

/// The most bytes of a result that are read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Options of `pummel compare`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct CompareArgs {
    /// JSON results of A, separated by commas: of `run` or `run --repeat`; or the one result of `ab`, which has both sides. `-`
    /// is standard input
    #[arg(value_name = "A.json[,A2.json,...]", value_hint = ValueHint::FilePath)]
    pub a: String,
    /// JSON results of B
    #[arg(value_name = "B.json[,B2.json,...]", value_hint = ValueHint::FilePath)]
    pub b: Option<String>,
    /// How they are judged.
    #[command(flatten)]
    pub judge: JudgeArgs,
    /// Judge also runs that did not alternate: a slower hour is then taken for a difference
    #[arg(long, help_heading = "Judgement")]
    pub accept_order: bool,
    /// Write the comparison as JSON to a file, or with - to standard output in place of the text
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Form of what goes to standard output
    #[arg(long, value_enum, default_value = "text", help_heading = "Output")]
    pub format: Format,
}

const EXAMPLES: &str = "\
What differs in plans, servers and machines comes first. Runs that alternated in mixed order (as those of `ab`, or of two
`run --repeat` of one run each by turns) are compared pair by pair. All runs of A before all of B may differ because the
machine did: that is said, and never judged unless --accept-order is given. Six runs a side or more show a difference.

Examples:
  pummel compare before.json after.json
  pummel compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json
  pummel compare ab.json --worse p99:5%

Exit status:
  0    compared; what --worse and --within ask holds
  1    --worse or --within cannot be judged, or the results of a side do not belong together
  2    the command line cannot be followed, or a file is no result
  3    what --worse or --within asks does not hold";

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
    let output = args.json.as_deref().map(Output::prepare).transpose()?;
    let question = args.judge.question(args.accept_order);
    let comparison = match sides(args)? {
        Sides::Pairs(sides) => Comparison::of_pairs("compare", sides, &question),
        Sides::Results(sides) => Comparison::of_results(sides, &question),
    };
    if let Some(output) = &output {
        output.finish(&comparison::json(&comparison))?;
    }
    if !output.as_ref().is_some_and(Output::is_standard) {
        match args.format {
            Format::Text => print(comparison::text(&comparison).as_bytes())?,
            Format::Json => print(&comparison::json(&comparison))?,
        }
    }
    Ok(exit_of(&comparison))
}

/// Two sides, and how they were stored.
enum Sides {
    /// In one file, pair by pair.
    Pairs([Side; 2]),
    /// In files of their own.
    Results([Side; 2]),
}

fn sides(args: &CompareArgs) -> Result<Sides, Refusal> {
    let first = files("A", &args.a)?;
    let Some(second) = &args.b else {
        let sides = match first.as_slice() {
            [one] => sides_of(one).map_err(|why| refusal("A", &args.a, &why))?,
            _ => None,
        };
        return sides.map(Sides::Pairs).ok_or_else(|| {
            let missing = "results of B are required, unless the one result of A is that of `pummel ab`";
            Refusal::Usage(UsageError::Missing(missing.to_owned()))
        });
    };
    let second_files = files("B", second)?;
    let first = side_of(&first).map_err(|why| refusal("A", &args.a, &why))?;
    let second = side_of(&second_files).map_err(|why| refusal("B", second, &why))?;
    Ok(Sides::Results([first, second]))
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
    let each = list.split(',').map(|name| {
        let bytes = read(Path::new(name)).map_err(|error| {
            let accepted =
                format!("files with JSON results are accepted, and '{name}' cannot be read: {error}");
            Refusal::Usage(UsageError::Value { flag: flag.to_owned(), value: list.to_owned(), accepted })
        })?;
        let bytes = json_of(&bytes).map_err(|error| Refusal::Failed(format!("{name}: {error}")))?;
        Ok(StoredFile { name: name.to_owned(), bytes })
    });
    each.collect()
}

/// Reads a file, or standard input for `-`.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?,
        false => File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?,
    };
    if count as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is greater than 1 GiB"));
    }
    Ok(bytes)
}
