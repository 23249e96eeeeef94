//! `pummel workloads`: the workloads that `--workload` knows, and what each of them is.

use std::io;

use clap::Args;
use pummel_fronts::exit_status::{Exit, STATUSES_WITHOUT_RUN};
use pummel_fronts::job::{FrontInputs, UsageError};
use pummel_fronts::native::workloads;

use crate::output::print;
use crate::parser_answer::answer;
use crate::stderr::say;

/// Options of `pummel workloads`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES_WITHOUT_RUN}"))]
pub struct WorkloadsArgs {
    /// The workload, or the file of a profile, to print as TOML. Default: list all names
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

const EXAMPLES: &str = "\
Each profile names its source and lists what was assumed because the source does not say it. A profile that is saved to a file \
can be edited and used as a workload.

Examples:
  pummel run -s 127.0.0.1 --workload cache
  pummel workloads twitter-52 > mine.toml; pummel run -s 127.0.0.1 --workload mine.toml --records 1m";

/// Prints all names, or one profile.
pub fn workloads(args: &WorkloadsArgs, inputs: &FrontInputs) -> Exit {
    let text = match &args.name {
        None => list(),
        Some(name) => match workloads::profile(name, inputs) {
            Ok(profile) => profile.text,
            Err(accepted) => {
                let (flag, value) = ("NAME".to_owned(), name.clone());
                return answer(&UsageError::Value { flag, value, accepted }.into());
            }
        },
    };
    match print(text.as_bytes()) {
        Ok(()) => Exit::Complete,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}

fn list() -> String {
    let names = workloads::listed();
    let wide = names.iter().map(|listed| listed.name.len()).max().unwrap_or(0);
    names.iter().map(|listed| format!("{:wide$}  {}\n", listed.name, listed.what)).collect()
}
