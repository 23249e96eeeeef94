//! Where a result comes from: the program that ran, and the words of its command line without passwords.

#[cfg(feature = "agents")]
use pummel_fleet::program::Program;
use pummel_logic::plan::Plan;
use pummel_logic::secrets::masked_words;
use pummel_measure::evidence::provenance::Build;
use pummel_measure::measurement::Measurement;

use crate::build_info;
#[cfg(feature = "agents")]
use crate::output::print;
#[cfg(feature = "agents")]
use crate::stderr::say;

/// The words of the command line of this process, as results of this plan tell them: none with `--anonymous`.
pub fn told_command_line(plan: &Plan) -> Vec<String> {
    if plan.anonymous {
        return Vec::new();
    }
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    masked_words(&words)
}

/// The program that runs.
pub fn build() -> Build {
    let told = |fact: &str| (fact != "unknown").then(|| fact.to_owned());
    Build {
        version: told(build_info::VERSION),
        commit: told(build_info::COMMIT),
        profile: told(build_info::PROFILE),
        target: told(build_info::TARGET),
        features: Some(build_info::FEATURES)
            .filter(|names| *names != "none")
            .into_iter()
            .flat_map(|names| names.split(", "))
            .map(str::to_owned)
            .collect(),
    }
}

/// Enters the program into what this process measured.
pub fn note_build(measurement: &mut Measurement) {
    for machine in &mut measurement.machines {
        machine.build = build();
    }
}

/// This program, as its parts know it that are agents and controllers.
#[cfg(feature = "agents")]
pub const PROGRAM: Program = Program {
    version: build_info::VERSION,
    commit: build_info::COMMIT,
    sources: build_info::SOURCES,
    note_build,
    say: |line| say(line),
    print,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_known() {
        let build = build();
        assert_eq!(build.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert!(build.target.is_some_and(|target| target.contains("linux")));
    }
}
