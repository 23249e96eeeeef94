//! The project's own commands: `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod coverage;
mod floors;
mod hostile;
mod instructions;
mod network;
mod prose;
mod sbom;
mod size;
mod sources;
mod truth;
mod verdicts;
mod workloads;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Commands of the project:

  cargo xtask floors              the order of modules inside each crate, and circles of files
  cargo xtask ci [--no-tests]     formatting, lints, floors, prose, tests; --no-tests where they have just been run
  cargo xtask bench [OPTIONS]     CPU, throughput and memory beside the floor, on this machine
                                  (`cargo xtask bench --help` lists the options)
  cargo xtask coverage [OPTIONS]  how often the printed intervals contain the truth (`--help` lists the options)
  cargo xtask hostile [OPTIONS]   simulated runs against servers that misbehave, with more seeds than the tests take
                                  (`--help` lists the options)
  cargo xtask instructions [OPTIONS]
                                  instructions that a request costs, by callgrind (`--help` lists the options)
  cargo xtask proto               makes the Rust of the agents' protocol from crates/tool/proto/agent.proto
  cargo xtask prose               doc comments that do not name their thing first (`--help` says which)
  cargo xtask sbom FILE           writes what the released program is made of (CycloneDX)
  cargo xtask size                lines of code, tests and comments by crate, and words of the documents
  cargo xtask truth [OPTIONS]     pummel's service times beside those of a packet capture (`--help` lists the options)
  cargo xtask verdicts [OPTIONS]  the limit that runs name beside the one that was staged, with real servers (`--help` lists
                                  the options)
  cargo xtask workloads [OPTIONS] what named workloads ask of real servers beside their profiles (`--help` lists the options)
  cargo xtask help                this text

Exit status: 0 all is well, 1 it is not, 2 the command line is wrong.
";

/// How a command ended, when it did not fail to run.
enum Verdict {
    Good,
    Bad,
    /// The command line is wrong, and why.
    Usage(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&root(), &arguments) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Ok(Verdict::Usage(why)) => {
            eprintln!("xtask: {why}\n\n{HELP}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(1)
        }
    }
}

fn run(root: &Path, arguments: &[String]) -> io::Result<Verdict> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let good = match words[..] {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            true
        }
        ["floors"] => floors::run(root)?,
        ["size"] => {
            size::run(root)?;
            true
        }
        ["bench", "--help" | "-h"] => {
            print!("{}", bench::HELP);
            true
        }
        ["bench", ref options @ ..] => match bench::Options::parse(options) {
            Ok(options) => bench::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["coverage", "--help" | "-h"] => {
            print!("{}", coverage::HELP);
            true
        }
        ["coverage", ref options @ ..] => match coverage::Options::parse(options) {
            Ok(options) => coverage::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["hostile", "--help" | "-h"] => {
            print!("{}", hostile::HELP);
            true
        }
        ["hostile", ref options @ ..] => match hostile::Options::parse(options) {
            Ok(options) => hostile::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["instructions", "--help" | "-h"] => {
            print!("{}", instructions::HELP);
            true
        }
        ["instructions", ref options @ ..] => match instructions::Options::parse(options) {
            Ok(options) => instructions::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["prose"] => prose::run(root)?,
        ["prose", "--help" | "-h"] => {
            print!("{}", prose::HELP);
            true
        }
        ["truth", "--help" | "-h"] => {
            print!("{}", truth::HELP);
            true
        }
        ["truth", ref options @ ..] => match truth::Options::parse(options) {
            Ok(options) => truth::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["verdicts", "--help" | "-h"] => {
            print!("{}", verdicts::HELP);
            true
        }
        ["verdicts", ref options @ ..] => match verdicts::Options::parse(options) {
            Ok(options) => verdicts::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["workloads", "--help" | "-h"] => {
            print!("{}", workloads::HELP);
            true
        }
        ["workloads", ref options @ ..] => match workloads::Options::parse(options) {
            Ok(options) => workloads::run(root, &options)?,
            Err(why) => return Ok(Verdict::Usage(why)),
        },
        ["sbom", file] => sbom::run(root, file)?,
        ["proto"] => ci::cargo(root, &["run", "--quiet", "--package", "agent-proto"])?,
        ["ci"] => ci::run(root, ci::Tests::Run)?,
        ["ci", "--no-tests"] => ci::run(root, ci::Tests::Skip)?,
        ["floors" | "ci" | "prose" | "proto" | "sbom" | "size", ..] => {
            return Ok(Verdict::Usage(format!(
                "`{}` does not take this: {}",
                words[0],
                words[1..].join(" ")
            )));
        }
        [command, ..] => return Ok(Verdict::Usage(format!("there is no command `{command}`"))),
    };
    Ok(if good { Verdict::Good } else { Verdict::Bad })
}

/// The root of the repository: of the one that cargo runs this program for, or else that it was built from.
fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().expect("xtask lies in the repository").to_owned()
}
