//! The command lines of other tools that pummel follows, one row each.

use std::ffi::OsStr;
use std::path::Path;

use crate::front::Front;
use crate::{mcperf, memaslap, memtier_benchmark, mutilate, redis_benchmark};

/// The command lines of other tools, in the order of the help.
pub const FRONTS: [Front; 5] = [
    mcperf::front::FRONT,
    memaslap::front::FRONT,
    mutilate::front::FRONT,
    redis_benchmark::front::FRONT,
    memtier_benchmark::front::FRONT,
];

/// The front with this name, its own or that of a link; `None` for another name.
pub fn of_name(name: &str) -> Option<&'static Front> {
    FRONTS.iter().find(|front| front.names().any(|known| known == name))
}

/// The front that a command line is of, by the name of the program or by its subcommand, with the program as errors name it and
/// the words behind it; `None` for pummel's own.
pub fn front_of<W: AsRef<OsStr>>(words: &[W]) -> Option<(&'static Front, String, &[W])> {
    let file_name = |word: &W| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    let program = words.first()?;
    if let Some(front) = file_name(program).and_then(|name| of_name(&name)) {
        return Some((front, program.as_ref().to_string_lossy().into_owned(), &words[1..]));
    }
    let typed = words.get(1)?.as_ref().to_str()?;
    Some((of_name(typed)?, typed.to_owned(), &words[2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_known_by_its_program_or_its_subcommand() {
        let named = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            front_of(&words).map(|(front, program, rest)| (front.name, program, rest.join(" ")))
        };
        let found = |name, program: &str, rest: &str| Some((name, program.to_owned(), rest.to_owned()));
        assert_eq!(named("/usr/bin/memcaslap -s a"), found("memaslap", "/usr/bin/memcaslap", "-s a"));
        assert_eq!(named("pummel memcaslap -s a"), found("memaslap", "memcaslap", "-s a"));
        assert_eq!(named("./mcperf"), found("mcperf", "./mcperf", ""));
        assert_eq!(named("pummel mutilate -s a"), found("mutilate", "mutilate", "-s a"));
        assert_eq!(named("pummel valkey-benchmark -q"), found("redis-benchmark", "valkey-benchmark", "-q"));
        assert_eq!(named("pummel run mcperf"), None);
        assert_eq!(named("pummel"), None);
    }

    #[test]
    fn no_two_command_lines_have_one_name() {
        let names: Vec<&str> = FRONTS.iter().flat_map(Front::names).collect();
        let different: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }
}
