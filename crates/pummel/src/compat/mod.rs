//! The command lines of the tools that pummel takes over, each with its options, its words and its report.

pub mod c_numbers;
pub mod getopt;
pub mod mcperf;
pub mod memaslap;
pub mod mutilate;

use crate::compat::getopt::Choice;

/// A name under which pummel follows the command line of another tool.
#[derive(Clone, Copy, Debug)]
pub struct FrontName {
    /// The name of the program, and of the subcommand where there is one.
    pub name: &'static str,
    /// The options of the command line.
    pub options: &'static [Choice],
    /// The texts that `--help` prints, one below the other.
    pub help: &'static [&'static str],
}

/// The names under which pummel follows the command lines of other tools.
pub const NAMES: [FrontName; 4] = [
    FrontName {
        name: "mcperf",
        options: &mcperf::options::CHOICES,
        help: &[mcperf::help::USAGE, mcperf::help::STATUSES],
    },
    FrontName { name: "memaslap", options: memaslap::OPTIONS, help: &[memaslap::HELP] },
    FrontName { name: "memcaslap", options: memaslap::OPTIONS, help: &[memaslap::HELP] },
    FrontName { name: "mutilate", options: mutilate::OPTIONS, help: &[mutilate::HELP] },
];
