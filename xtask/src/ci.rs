//! `cargo xtask ci`: everything that a change has to pass, step by step.

use std::io;
use std::path::Path;
use std::time::Instant;

use crate::programs::{self, said_by};
use crate::{floors, prose};

enum Work {
    /// cargo, with these arguments.
    Cargo(&'static [&'static str]),
    /// A check of the sources, in this process.
    Check(fn(&Path) -> io::Result<bool>),
}

const STEPS: [(&str, Work); 8] = [
    ("formatting", Work::Cargo(&["fmt", "--all", "--check"])),
    (
        "code of the agents' protocol",
        Work::Cargo(&["run", "--quiet", "--package", "agent-proto", "--", "--check"]),
    ),
    ("schemas", Work::Cargo(&["run", "--quiet", "--package", "schemas", "--", "--check"])),
    ("lints", Work::Cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])),
    ("lints without agents", Work::Cargo(WITHOUT_AGENTS)),
    ("floors", Work::Check(floors::run)),
    ("prose", Work::Check(prose::run)),
    (TESTS, Work::Cargo(&["test", "--workspace", "--no-fail-fast"])),
];

const TESTS: &str = "tests";

/// The binary without its one optional part, which everything else is built with.
const WITHOUT_AGENTS: &[&str] =
    &["clippy", "--package", "pummel", "--no-default-features", "--quiet", "--", "-D", "warnings"];

/// Runs every step, also behind one that failed, and sums up; says whether all passed.
pub fn run(root: &Path, no_tests: bool) -> io::Result<bool> {
    let mut lines = Vec::new();
    let mut good = true;
    for (name, work) in STEPS {
        if name == TESTS && no_tests {
            lines.push(format!("skipped  {name}"));
            continue;
        }
        println!("== {name}");
        let begin = Instant::now();
        let passed = match work {
            Work::Cargo(arguments) => cargo(root, arguments)?,
            Work::Check(check) => check(root)?,
        };
        good &= passed;
        let word = if passed { "passed " } else { "FAILED " };
        lines.push(format!("{word}  {name} ({:.1} s)", begin.elapsed().as_secs_f64()));
    }
    println!("== summary\n{}", lines.join("\n"));
    Ok(good)
}

/// Runs cargo in the repository; says whether it passed.
pub fn cargo(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let passed = programs::cargo(root).args(arguments).status()?.success();
    let part = arguments[0];
    let is_part = matches!(part, "fmt" | "clippy");
    if !passed && is_part && said_by(programs::cargo(root).args([part, "--version"])).is_err() {
        eprintln!("cargo {part} is not installed; `rustup component add rustfmt clippy` brings it.");
    }
    Ok(passed)
}
