//! Where a result comes from: the program that ran, and the words of its command line without passwords.

use std::ffi::OsString;

use pummel_logic::measure::evidence::provenance::Build;
use pummel_logic::measure::measurement::Measurement;
use pummel_logic::plan::Plan;

use crate::build_info;

/// What stands in the place of a password.
const HIDDEN: &str = "***";

/// The words of the command line of this process, as results of this plan tell them: none with `--anonymous`.
pub fn told_command_line(plan: &Plan) -> Vec<String> {
    if plan.anonymous { Vec::new() } else { without_passwords(std::env::args_os()) }
}

/// Command lines in which passwords are hidden. Only mutilate takes one as a word (-P, --password, and its abbreviations);
/// `-P` of other command lines has its value hidden too.
fn without_passwords(words: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut hides_next = false;
    let told = words.map(|word| {
        let word = word.to_string_lossy();
        if std::mem::take(&mut hides_next) {
            return HIDDEN.to_owned();
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_password = !name.is_empty() && "password".starts_with(name);
            hides_next = is_password && value.is_none();
            return if is_password && value.is_some() {
                format!("--{name}={HIDDEN}")
            } else {
                word.into_owned()
            };
        }
        match word.strip_prefix('-').and_then(|letters| letters.split_once('P')) {
            Some((before, "")) => {
                hides_next = true;
                format!("-{before}P")
            }
            Some((before, _)) => format!("-{before}P{HIDDEN}"),
            None => word.into_owned(),
        }
    });
    told.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_told() {
        for (line, told) in [
            ("mutilate -s a -U me -P secret -T 4", "mutilate -s a -U me -P *** -T 4"),
            ("mutilate -s a -Psecret", "mutilate -s a -P***"),
            ("mutilate -BP secret -s a", "mutilate -BP *** -s a"),
            ("mutilate --password secret -s a", "mutilate --password *** -s a"),
            ("mutilate --passw=secret -s a", "mutilate --passw=*** -s a"),
            ("run -s a --password-file f -c 4", "run -s a --password-file f -c 4"),
        ] {
            let words = line.split(' ').map(OsString::from);
            assert_eq!(without_passwords(words).join(" "), told, "{line}");
        }
    }

    #[test]
    fn the_program_is_known() {
        let build = build();
        assert_eq!(build.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert!(build.target.is_some_and(|target| target.contains("linux")));
    }
}
