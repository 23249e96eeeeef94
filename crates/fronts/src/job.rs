//! What a command line asks for, as data: the [`Job`] that each front makes, and why one cannot be followed.

use std::fmt;
use std::io;
use std::path::Path;
use std::ptr;

use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::rng;
use pummel_report::visible;

use crate::fleet::Fleet;
use crate::outputs::{InputFile, Outputs, PathFacts, taken};

/// What a command line asks for: what to do, and what to write about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the command line in results and metrics.
    pub front: &'static str,
    /// What to do.
    pub plan: ValidPlan,
    /// What to write.
    pub outputs: Outputs,
    /// Who does it; absent: this process.
    pub fleet: Option<Fleet>,
}

/// A command line that cannot be followed; the exit status is 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageError {
    /// A value that is not accepted.
    Value {
        /// The flag, or the environment variable, that carries it.
        flag: String,
        /// The value as it was given or understood.
        value: String,
        /// What is accepted instead, or why not.
        accepted: String,
    },
    /// Something that has to be there is not.
    Missing(String),
}

impl fmt::Display for UsageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UsageError::Value { flag, value, accepted } => {
                write!(out, "invalid value '{value}' for '{flag}': {accepted}")
            }
            UsageError::Missing(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for UsageError {}

/// In the form of the parser's own errors, so that all look alike.
impl From<UsageError> for clap::Error {
    fn from(error: UsageError) -> clap::Error {
        clap::Error::raw(
            clap::error::ErrorKind::ValueValidation,
            format!("{}\n\nFor more information, try '--help'.\n", visible::text(&error.to_string())),
        )
    }
}

/// Checks that each output, named by its option, has a place of its own: one that no output before it and no file that is read has.
///
/// # Errors
/// Returns [`UsageError::Value`] for the first output that has none.
pub fn check_places(
    outputs: &[(&str, Option<&Path>)],
    inputs: &[InputFile<'_>],
    paths: PathFacts,
) -> Result<(), UsageError> {
    let named: Vec<(&str, &Path)> = outputs.iter().filter_map(|&(flag, file)| Some((flag, file?))).collect();
    for (index, &(flag, file)) in named.iter().enumerate() {
        let others = named[..index].iter().map(|&(flag, file)| (flag.to_owned(), file));
        if let Some(accepted) = taken(file, others, inputs, paths) {
            let value = file.display().to_string();
            return Err(UsageError::Value { flag: flag.to_owned(), value, accepted });
        }
    }
    Ok(())
}

/// What a command line means beyond its words: what comes from the process that was given it.
#[derive(Clone, Debug)]
pub struct FrontInputs {
    /// `MEMCACHED_SERVERS`, where it is set and not empty.
    pub servers: Option<String>,
    /// A seed for runs that name none; below 2^53, so that every reader of JSON keeps it.
    pub seed: u64,
    /// Reads the whole text of the file at a path: values of options that stand in files, and saved plans.
    pub read_text: fn(&str) -> io::Result<String>,
    /// What the system says about the files that options name.
    pub paths: PathFacts,
}

/// Two are equal when they have the same servers, the same seed and one reader.
impl PartialEq for FrontInputs {
    fn eq(&self, other: &FrontInputs) -> bool {
        self.servers == other.servers
            && self.seed == other.seed
            && ptr::fn_addr_eq(self.read_text, other.read_text)
    }
}

#[cfg(any(test, feature = "testing"))]
impl FrontInputs {
    /// What a command line means on a machine without files and with this seed.
    pub fn without_files(seed: u64) -> FrontInputs {
        let read_text = |_: &str| Err(io::ErrorKind::NotFound.into());
        FrontInputs { servers: None, seed, read_text, paths: PathFacts::WITHOUT_FILES }
    }
}

/// The seed of a run of a series; below 2^53, so that every reader of JSON keeps it.
pub fn seed_of(seed: u64, number: u32) -> u64 {
    if number == 0 { seed } else { rng::mix(&[seed, u64::from(number)]) >> 11 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_keeps_the_seed_and_each_other_has_its_own() {
        let seeds: Vec<u64> = (0..50).map(|number| seed_of(42, number)).collect();
        assert_eq!(seeds[0], 42);
        let different: std::collections::BTreeSet<&u64> = seeds.iter().collect();
        assert_eq!(different.len(), 50);
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        assert_eq!(seed_of(42, 7), seeds[7]);
    }
}
