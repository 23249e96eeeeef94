//! The command lines of the tools that pummel takes over, each with its options, its words and its report.

pub mod c_numbers;
pub mod getopt;
pub mod mcperf;
pub mod memaslap;
pub mod mutilate;

use crate::compat::getopt::Choice;

/// The names under which pummel follows the command lines of other tools, each with its options.
pub const NAMES: [(&str, &[Choice]); 4] = [
    ("mcperf", &mcperf::options::CHOICES),
    ("memaslap", memaslap::OPTIONS),
    ("memcaslap", memaslap::OPTIONS),
    ("mutilate", mutilate::OPTIONS),
];
