//! The subcommands of the program, and the other names that it answers to.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Parser, Subcommand};

use crate::demo::DemoArgs;
use crate::explain::ExplainArgs;
use crate::front::UsageError;
use crate::front::native::{LoadArgs, RunArgs, Typed};
use crate::pages::PagesArgs;
use crate::serve::ServeArgs;

/// Names that this version knows, as subcommands and as names of the program, but cannot follow.
pub const LATER: [&str; 5] = ["memaslap", "memcaslap", "mcperf", "mutilate", "agent"];

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
    /// Serve a small memcached, with service times and faults of your choice
    ///
    /// For demos, tests and calibration, not for data: it keeps everything in at most 64 MiB of memory, forgets what was
    /// not asked for lately, and writes nothing to disk but the truth file. One thread. Ends on SIGINT and SIGTERM with
    /// status 0.
    Serve(ServeArgs),
    /// Show a closed and an open loop, against a server or the built-in one
    Demo(DemoArgs),
    /// Print or save the plan that a command line means
    Explain(ExplainArgs),
    /// Write man pages and shell completions
    #[command(hide = true)]
    Pages(PagesArgs),
}

const EXAMPLES: &str = "\
Examples:
  10 s against the memcached of this machine:
    pummel run -s 127.0.0.1
  20,000 requests a second for a minute:
    pummel run -s 127.0.0.1 --rate 20k -t 1m
  All options, distributions, units and more examples:
    pummel run --help

Not yet in this version: the command lines of memaslap, mcperf and mutilate, and agents.";

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
        assert!(name(&["/usr/bin/mutilate", "-s", "x"]).is_some_and(|text| text.contains("mutilate")));
        assert!(name(&["pummel", "mcperf"]).is_some_and(|text| text.contains("mcperf")));
    }
}
