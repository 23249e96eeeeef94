//! Command lines: each front turns the arguments of one tool into a [`Job`]; nothing here touches a server.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::Path;
use std::ptr;

use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::rng;

use crate::job::fleet::Fleet;
use crate::job::outputs::taken;
pub use crate::job::outputs::{Format, InputFile, Outputs, ReportFormat, ResultPaths};
use pummel_report::visible;

pub mod agent_variables;
pub mod background_writer;
pub mod calibration_store;
pub mod detection;
pub mod driver;
pub mod fleet;
pub mod hints;
pub mod inputs;
mod large_load;
pub mod launch_spec;
pub mod observers;
pub mod outlets;
pub mod output_file;
pub mod outputs;
mod probe;
pub mod provenance;
pub mod rate_search;
pub mod result_files;
pub mod runner;
pub mod samples;
pub mod series;
pub mod series_result;
pub mod server_program;
mod socket_files;
pub mod style;
#[cfg(feature = "parquet")]
pub mod table_files;
pub mod trace_files;
mod unpacked;

/// What a command line asks for: what to do, and what to write about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Whose command line it was; decides the style of the report.
    pub front: Front,
    /// What to do.
    pub plan: ValidPlan,
    /// What to write.
    pub outputs: Outputs,
    /// Who does it; absent: this process.
    pub fleet: Option<Fleet>,
}

/// A command line that pummel understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// pummel's own.
    Native,
    /// Command line of mcperf.
    Mcperf,
    /// Command line of memaslap.
    Memaslap,
    /// Command line of mutilate.
    Mutilate,
}

impl Front {
    /// The word of the JSON result.
    pub fn name(self) -> &'static str {
        match self {
            Front::Native => "native",
            Front::Mcperf => "mcperf",
            Front::Memaslap => "memaslap",
            Front::Mutilate => "mutilate",
        }
    }
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
pub fn check_places(outputs: &[(&str, Option<&Path>)], inputs: &[InputFile<'_>]) -> Result<(), UsageError> {
    let named: Vec<(&str, &Path)> = outputs.iter().filter_map(|&(flag, file)| Some((flag, file?))).collect();
    for (index, &(flag, file)) in named.iter().enumerate() {
        let others = named[..index].iter().map(|&(flag, file)| (flag.to_owned(), file));
        if let Some(accepted) = taken(file, others, inputs) {
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
}

/// Two are equal when they have the same servers, the same seed and one reader.
impl PartialEq for FrontInputs {
    fn eq(&self, other: &FrontInputs) -> bool {
        self.servers == other.servers
            && self.seed == other.seed
            && ptr::fn_addr_eq(self.read_text, other.read_text)
    }
}

impl FrontInputs {
    /// The environment and the files of this process, and chance from the operating system.
    pub fn of_process() -> FrontInputs {
        let servers = std::env::var("MEMCACHED_SERVERS").ok().filter(|text| !text.is_empty());
        let seed = RandomState::new().build_hasher().finish() >> 11;
        FrontInputs { servers, seed, read_text: |path| fs::read_to_string(path) }
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
