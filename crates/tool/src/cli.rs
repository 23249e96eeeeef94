//! The subcommands of the program, and the other names that it answers to.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Args, Parser, Subcommand};

use crate::demo::DemoArgs;
use crate::explain::ExplainArgs;
use crate::front::UsageError;
use crate::front::native::{LoadArgs, RunArgs, Typed};
use crate::pages::PagesArgs;
use crate::serve::ServeArgs;
use crate::sweep::{ScanArgs, SearchArgs};

/// Names that this version knows, as subcommands and as names of the program, but cannot follow.
pub const LATER: [&str; 1] = ["agent"];

/// Names of memaslap: that of its authors, and that of Debian's package.
const MEMASLAP: [&str; 2] = ["memaslap", "memcaslap"];

/// Load generator and benchmark for memcached
///
/// pummel sends requests to a server, as fast as it answers or at a rate of your choice, and tells how long they took:
/// from the moment when each was due, so that requests which had to wait are counted with their wait; and it says so
/// when the figures are not to be trusted.
#[derive(Parser, Debug)]
#[command(name = "pummel", version, after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program does.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Store the records, send the load, report
    Run(Box<Typed<RunArgs>>),
    /// Store the records, and nothing else
    Load(Box<Typed<LoadArgs>>),
    /// Find the greatest rate that meets a goal
    Search(Box<SearchArgs>),
    /// Measure at several rates
    Scan(Box<ScanArgs>),
    /// Serve a small memcached, with service times and faults of your choice
    ///
    /// For demos, tests and calibration, not for data: it keeps everything in at most 64 MiB of memory, forgets what was
    /// not asked for lately, and writes nothing to disk but the truth file. One thread. Ends on SIGINT and SIGTERM with
    /// status 0.
    Serve(Box<ServeArgs>),
    /// Show a closed and an open loop, against a server or the built-in one
    Demo(DemoArgs),
    /// Print or save the plan that a command line means
    Explain(ExplainArgs),
    /// Follow the command line of mcperf (twemperf) and print its report; `pummel mcperf --help` says more
    #[command(disable_help_flag = true)]
    Mcperf(McperfArgs),
    /// Follow a command line of memaslap's
    #[command(disable_help_flag = true)]
    Memaslap(MemaslapArgs),
    /// Follow a command line of mutilate's
    #[command(disable_help_flag = true)]
    Mutilate(MutilateArgs),
    /// Write man pages and shell completions
    #[command(hide = true)]
    Pages(PagesArgs),
}

/// The words of mcperf's own command line.
#[derive(Args, Debug)]
pub struct McperfArgs {
    /// Options of mcperf
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// A command line of memaslap's, which is read by rules of its own.
#[derive(Args, Debug)]
pub struct MemaslapArgs {
    /// What memaslap takes; see `pummel memaslap --help`
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// A command line of mutilate's, which is read by rules of its own.
#[derive(Args, Debug)]
pub struct MutilateArgs {
    /// What mutilate takes; see `pummel mutilate --help`
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  10 s against the memcached of this machine:
    pummel run -s 127.0.0.1
  20,000 requests a second for a minute:
    pummel run -s 127.0.0.1 --rate 20k -t 1m
  All options, distributions, units and more examples:
    pummel run --help

  memaslap's command line, also under the names memaslap and memcaslap:
    pummel memaslap --help
  mutilate's command line, also under the name mutilate:
    pummel mutilate --help
  and mcperf's, also under the name mcperf:
    pummel mcperf --help

Not yet in this version: agents.";

/// The words of mcperf's command line, where this is one: by the name of the program, or by its subcommand.
pub fn mcperf_words(words: &[OsString]) -> Option<&[OsString]> {
    let is = |word: Option<&OsStr>| word == Some(OsStr::new("mcperf"));
    if is(words.first().and_then(|word| Path::new(word).file_name())) {
        return Some(&words[1..]);
    }
    is(words.get(1).map(OsString::as_os_str)).then(|| &words[2..])
}

/// The words of a command line of memaslap's: the program's name, as its errors begin, and what follows it.
pub fn memaslap_words(words: &[OsString]) -> Option<(String, &[OsString])> {
    words_of(&MEMASLAP, words)
}

/// The words of a command line of mutilate's: the program's name, as its errors begin, and what follows it.
pub fn mutilate_words(words: &[OsString]) -> Option<(String, &[OsString])> {
    words_of(&["mutilate"], words)
}

/// The words of a command line of the program with these names, the first of which is its subcommand's too.
fn words_of<'a>(names: &[&str], words: &'a [OsString]) -> Option<(String, &'a [OsString])> {
    let is_name = |word: &OsStr| names.iter().any(|name| word == *name);
    let program = words.first()?;
    if Path::new(program).file_name().is_some_and(is_name) {
        return Some((program.to_string_lossy().into_owned(), &words[1..]));
    }
    let named = words.get(1).is_some_and(|word| is_name(word));
    named.then(|| (names[0].to_owned(), &words[2..]))
}

/// The answer to a command line that a later version follows: by the name of the program, or by its subcommand.
pub fn later(words: &[OsString]) -> Option<UsageError> {
    let known = |word: Option<&OsStr>| LATER.into_iter().find(|name| word == Some(OsStr::new(name)));
    let program = words.first().and_then(|word| Path::new(word).file_name());
    let name = known(program).or_else(|| known(words.get(1).map(OsString::as_os_str)))?;
    let instead = "this version has pummel's own command line, see 'pummel --help'".to_string();
    Some(UsageError::NotYet { flag: name.to_string(), instead })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_parser_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn only_names_of_later_versions_are_put_off() {
        let name = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            later(&words).map(|error| error.to_string())
        };
        assert_eq!(name(&["/usr/bin/pummel", "run", "-s", "mutilate"]), None);
        assert_eq!(name(&["pummel"]), None);
        assert_eq!(name(&[]), None);
        assert_eq!(name(&["/usr/bin/mcperf", "-s", "x"]), None);
        assert_eq!(name(&["/usr/bin/memaslap", "-s", "x"]), None);
        assert!(name(&["pummel", "agent"]).is_some_and(|text| text.contains("agent")));
    }
}
