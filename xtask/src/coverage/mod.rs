//! `cargo xtask coverage`: how often the printed intervals contain the truth.

mod end_to_end;
mod misbehaving;
pub mod servers;
mod simulated;

use std::io;
use std::path::{Path, PathBuf};

/// What `--help` prints.
pub const HELP: &str = "\
Usage: cargo xtask coverage [OPTIONS]

Counts how often the 95 % intervals of pummel's reports contain the truth. Exit status 1 when they do so too seldom.

The simulated parts make the experiments of the tests, more and longer ones:
  simulated   queues, times with a memory, freezes: requests whose times have a known distribution are dealt to recorders, windows
              and a summary, as a run does
  changing    a service time that steps, decays or stays: whether steps are found and steady runs left alone, what follows
              `--warmup auto`, and what `--until` ends with
  sides       equal sides by turns, as `pummel ab` measures them: how often they are called different
  searches    searches for a knee that is known
  fit         traces that are made from known numbers: whether `pummel fit` finds them, and the memory that it takes

The part `sockets` runs pummel against `pummel serve` with exponential service times, where each of 20 clients is a queue M/M/1, and
searches for the knee of `serve --queue 1`. The part `planted` compares a server that holds each request for 1,000 us with one that
holds it for 1,010 us, by `pummel ab` with 10 pairs of 3 s. The part `misbehaving` measures a server that gets slower by 30 % at half
time, and one that is stopped (SIGSTOP) for 50 ms once in 3 s. All three want two quiet cores.

Options:
  --part NAME        one of them [all but sockets, planted and misbehaving]
  --runs N           runs of each simulated process [1000]
  --requests N       requests of each simulated run [200000]
  --changing-runs N  runs of each kind of `changing` [100]
  --rows N           requests of each trace of `fit` [10000000]
  --socket-runs N    runs of 4 s at each load [100]
  --socket-searches N  searches with sockets, of some 25 runs each [20]
  --search-seconds N length of each of their runs [10]
  --comparisons N    comparisons of some 80 s of `planted` [20]
  --misbehaving-runs N  runs of some 12 s of each kind of `misbehaving` [20]
  --pummel FILE      this program in the parts with sockets, in place of a release build
  -h, --help         this text
";

/// The part that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Simulated,
    Changing,
    Sides,
    Searches,
    Fit,
    Sockets,
    Planted,
    Misbehaving,
}

impl Part {
    /// Whether the part measures servers, which takes long and wants a quiet machine.
    fn has_sockets(self) -> bool {
        matches!(self, Part::Sockets | Part::Planted | Part::Misbehaving)
    }
}

/// The parts by their words, in the order in which they are run.
const PARTS: [(&str, Part); 8] = [
    ("simulated", Part::Simulated),
    ("changing", Part::Changing),
    ("sides", Part::Sides),
    ("searches", Part::Searches),
    ("fit", Part::Fit),
    ("sockets", Part::Sockets),
    ("planted", Part::Planted),
    ("misbehaving", Part::Misbehaving),
];

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub struct Options {
    parts: Vec<Part>,
    runs: u64,
    requests: u64,
    changing_runs: u64,
    rows: u64,
    socket_runs: u64,
    socket_searches: u64,
    search_seconds: u64,
    comparisons: u64,
    misbehaving_runs: u64,
    pummel: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments behind `coverage`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with them.
    pub fn parse(words: &[&str]) -> Result<Options, String> {
        let mut options = Options {
            parts: PARTS.map(|(_, part)| part).into_iter().filter(|part| !part.has_sockets()).collect(),
            runs: 1_000,
            requests: 200_000,
            changing_runs: 100,
            rows: 10_000_000,
            socket_runs: 100,
            socket_searches: 20,
            search_seconds: 10,
            comparisons: 20,
            misbehaving_runs: 20,
            pummel: None,
        };
        let mut words = words.iter();
        while let Some(&option) = words.next() {
            let value = words.next().copied().ok_or_else(|| format!("{option} needs a value"))?;
            match option {
                "--part" => {
                    let found = PARTS.iter().find(|(name, _)| *name == value);
                    let names = PARTS.map(|(name, _)| name).join(", ");
                    let (_, part) = found.ok_or_else(|| format!("--part {value}: there are {names}"))?;
                    options.parts = vec![*part];
                }
                "--runs" => options.runs = count(option, value)?,
                "--requests" => options.requests = count(option, value)?,
                "--changing-runs" => options.changing_runs = count(option, value)?,
                "--rows" => options.rows = count(option, value)?,
                "--socket-runs" => options.socket_runs = count(option, value)?,
                "--search-seconds" => options.search_seconds = count(option, value)?,
                "--socket-searches" => {
                    options.socket_searches = value
                        .parse()
                        .map_err(|_| format!("{option} needs a whole number and not {value}"))?;
                }
                "--comparisons" => options.comparisons = count(option, value)?,
                "--misbehaving-runs" => options.misbehaving_runs = count(option, value)?,
                "--pummel" => options.pummel = Some(PathBuf::from(value)),
                _ => return Err(format!("`coverage` does not take this: {option}")),
            }
        }
        Ok(options)
    }
}

fn count(option: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (1..=10_000_000).contains(number));
    number.ok_or_else(|| format!("{option} needs a whole number from 1 to 10000000 and not {value}"))
}

/// Runs the parts and prints their tables; says whether the intervals held often enough.
///
/// # Errors
/// Returns the error of a program that cannot be built or started.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let mut good = true;
    for part in &options.parts {
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

    #[test]
    fn options_have_defaults_and_bounds() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!((options.runs, options.requests, options.socket_runs), (1_000, 200_000, 100));
        assert_eq!((options.parts.len(), options.parts.contains(&Part::Sockets)), (5, false));
        let options = Options::parse(&["--part", "sockets", "--socket-runs", "5", "--pummel", "p"]).unwrap();
        assert_eq!((options.parts, options.socket_runs), (vec![Part::Sockets], 5));
        for (words, part) in [
            (&["--part", "all"][..], "there are simulated"),
            (&["--runs", "0"], "from 1 to"),
            (&["--runs"], "needs a value"),
            (&["--fast", "1"], "does not take this"),
        ] {
            assert!(Options::parse(words).unwrap_err().contains(part), "{words:?}");
        }
    }
}
