//! The command lines of the tools that pummel takes over, each with its options, its words and its report.

pub mod c_numbers;
pub mod getopt;
pub mod mcperf;
pub mod memaslap;
pub mod mutilate;
