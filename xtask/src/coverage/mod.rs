//! `cargo xtask coverage`: how often the printed intervals contain the truth.

mod end_to_end;
mod misbehaving;
pub mod servers;
mod simulated;

use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// Parts of the program, in the order in which they are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Queues, times with a memory, freezes: requests whose times have a known distribution are dealt to recorders, windows and a
    /// summary, as a run does.
    Simulated,
    /// A service time that steps, decays or stays: whether steps are found and steady runs left alone, what follows
    /// `--warmup auto`, and what `--until` ends with.
    Changing,
    /// Equal sides by turns, as `pummel ab` measures them: how often they are called different.
    Sides,
    /// Searches for a knee that is known.
    Searches,
    /// Traces that are made from known numbers: whether `pummel fit` finds them, and the memory that it takes.
    Fit,
    /// Exponential service times of `pummel serve`, where each of 20 clients is a queue M/M/1, and searches for the knee of
    /// `serve --queue 1`.
    Sockets,
    /// A server that holds each request for 1,000 us and one that holds it for 1,010 us, compared by `pummel ab` with 10 pairs of
    /// 3 s.
    Planted,
    /// A server that gets slower by 30 % at half time, and one that is stopped (SIGSTOP) for 50 ms once in 3 s.
    Misbehaving,
}

impl Part {
    /// Whether the part measures servers, which takes long and wants a quiet machine.
    fn has_sockets(self) -> bool {
        matches!(self, Part::Sockets | Part::Planted | Part::Misbehaving)
    }
}

/// Counts how often the 95 % intervals of pummel's reports contain the truth.
///
/// The simulated parts make the experiments of the tests, more and longer ones; the parts with sockets want two quiet cores. Exit
/// status 1 when the intervals contain the truth too seldom.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// One part of the program [default: all but sockets, planted and misbehaving].
    #[arg(long)]
    part: Option<Part>,
    /// Runs of each simulated process.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    runs: u64,
    /// Requests of each simulated run.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    requests: u64,
    /// Runs of each kind of `changing`.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    changing_runs: u64,
    /// Requests of each trace of `fit`.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Runs of 4 s at each load.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    socket_runs: u64,
    /// Searches with sockets, of some 25 runs each.
    #[arg(long, default_value_t = 20)]
    socket_searches: u64,
    /// Length of each of their runs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    search_seconds: u64,
    /// Comparisons of some 80 s of `planted`.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    comparisons: u64,
    /// Runs of some 12 s of each kind of `misbehaving`.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    misbehaving_runs: u64,
    /// This program in the parts with sockets, in place of a release build.
    #[arg(long, value_name = "FILE")]
    pummel: Option<PathBuf>,
}

impl Options {
    /// The parts that are asked for.
    fn parts(&self) -> Vec<Part> {
        let all = Part::value_variants().iter().copied();
        all.filter(|part| self.part.map_or(!part.has_sockets(), |asked| asked == *part)).collect()
    }
}

/// Runs the parts and prints their tables; says whether the intervals held often enough.
///
/// # Errors
/// Returns the error of a program that cannot be built or started.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let mut good = true;
    for part in options.parts() {
        good &= match part {
            Part::Simulated => simulated::processes(root, options.runs, options.requests)?,
            Part::Changing => simulated::changing(root, options.changing_runs)?,
            Part::Sides => simulated::sides(root)?,
            Part::Searches => simulated::searches(root)?,
            Part::Fit => simulated::fits(root, options.rows)?,
            Part::Sockets => end_to_end::run(
                root,
                options.socket_runs,
                (options.socket_searches, options.search_seconds),
                options.pummel.as_deref(),
            )?,
            Part::Planted => end_to_end::planted(root, options.comparisons, options.pummel.as_deref())?,
            Part::Misbehaving => misbehaving::run(root, options.misbehaving_runs, options.pummel.as_deref())?,
        };
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{options, refusal};

    #[test]
    fn parts_with_sockets_have_to_be_asked_for() {
        let parts = options::<Options>("").parts();
        assert_eq!((parts.len(), parts.contains(&Part::Sockets)), (5, false));
        assert_eq!(options::<Options>("--part sockets --socket-runs 5").parts(), [Part::Sockets]);
        assert!(refusal::<Options>("--runs 0").contains("1..=10000000"));
    }
}
