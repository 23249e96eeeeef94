//! Where a result comes from: the program that ran, and the words of its command line without passwords.

use std::ffi::OsString;

use pummel_logic::measure::evidence::provenance::Build;
use pummel_logic::measure::measurement::Measurement;

/// What stands in the place of a password.
const HIDDEN: &str = "***";

/// The words of the command line of this process, as results tell them.
pub fn command_line() -> Vec<String> {
    without_passwords(std::env::args_os())
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
    let commit = option_env!("PUMMEL_COMMIT").filter(|commit| *commit != "unknown");
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let features = if cfg!(feature = "agents") { vec!["agents".to_owned()] } else { Vec::new() };
    Build {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        commit: commit.map(str::to_owned),
        profile: Some(if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
        target: Some(format!("{}-{}-{library}", std::env::consts::ARCH, std::env::consts::OS)),
        features,
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
