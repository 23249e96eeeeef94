//! The project's own commands: `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod coverage;
mod floors;
mod hostile;
mod instructions;
mod network;
mod programs;
mod prose;
mod sbom;
mod size;
mod sources;
mod spread;
mod truth;
mod verdicts;
mod workloads;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
#[command(after_help = "Exit status: 0 all is well, 1 it is not, 2 the command line is wrong.")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Finds modules that use what is above them, and files that name each other's items in a circle
    Floors,
    /// Runs what a change has to pass: formatting, lints, floors, prose, tests
    Ci {
        /// Leaves the tests out, which another command has just run
        #[arg(long)]
        no_tests: bool,
    },
    Bench(bench::Options),
    Coverage(coverage::Options),
    Hostile(hostile::Options),
    Instructions(instructions::Options),
    /// Makes the Rust of the agents' protocol from crates/fleet/proto/agent.proto
    Proto,
    /// Lists doc comments that do not name their thing first
    ///
    /// Those are comments that begin with What, Which, How, Who, Where, That of, Those of, So many, It or As, those that begin
    /// with Whether and describe no bool, and those of fewer than three words.
    Prose,
    /// Makes the JSON schemas of results and the tables of docs/RESULTS.md and docs/PLAN.md from the types, and docs/SUMMARY.md from docs/README.md
    Schemas {
        /// Compares them with what is there, and writes nothing
        #[arg(long)]
        check: bool,
    },
    /// Writes what the released program is made of (CycloneDX)
    Sbom {
        /// The new file
        file: PathBuf,
    },
    /// Counts lines of code, tests and comments by crate, and words of the documents
    Size,
    Truth(truth::Options),
    Verdicts(verdicts::Options),
    Workloads(workloads::Options),
}

fn main() -> ExitCode {
    match run(&root(), Line::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(1)
        }
    }
}

/// Runs a command; says whether all is well.
fn run(root: &Path, command: Command) -> io::Result<bool> {
    match command {
        Command::Floors => floors::run(root),
        Command::Ci { no_tests } => ci::run(root, no_tests),
        Command::Bench(options) => bench::run(root, &options),
        Command::Coverage(options) => coverage::run(root, &options),
        Command::Hostile(options) => hostile::run(root, &options),
        Command::Instructions(options) => instructions::run(root, &options),
        Command::Proto => ci::cargo(root, &["run", "--quiet", "--package", "agent-proto"]),
        Command::Prose => prose::run(root),
        Command::Schemas { check } => {
            let checked: &[&str] = if check { &["--", "--check"] } else { &[] };
            ci::cargo(root, &[&["run", "--quiet", "--package", "schemas"], checked].concat())
        }
        Command::Sbom { file } => sbom::run(root, &file),
        Command::Size => size::run(root),
        Command::Truth(options) => truth::run(root, &options),
        Command::Verdicts(options) => verdicts::run(root, &options),
        Command::Workloads(options) => workloads::run(root, &options),
    }
}

/// The root of the repository: of the one that cargo runs this program for, or else that it was built from.
fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().expect("xtask lies in the repository").to_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Args, CommandFactory, Parser};

    #[derive(Parser)]
    struct Own<A: Args> {
        #[command(flatten)]
        options: A,
    }

    /// The options of a command in these words.
    pub fn options<A: Args>(line: &str) -> A {
        Own::try_parse_from(["xtask"].into_iter().chain(line.split_whitespace())).unwrap().options
    }

    /// The words with which a command refuses its options.
    pub fn refusal<A: Args>(line: &str) -> String {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        Own::<A>::try_parse_from(words).err().expect("they are refused").to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        super::Line::command().debug_assert();
    }
}
