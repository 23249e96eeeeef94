//! What a command line of this process means beyond its words: its environment, its files, and chance.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};

use pummel_fronts::job::FrontInputs;
use pummel_fronts::outputs::PathFacts;

use crate::output::{is_one_file, names_standard_output};

/// What the system says about paths.
pub const PATHS: PathFacts = PathFacts {
    is_one_file,
    is_file: |path| fs::metadata(path).is_ok_and(|present| present.is_file()),
    is_standard_output: names_standard_output,
};

/// The environment and the files of this process, and a seed of the operating system.
pub fn of_process() -> FrontInputs {
    let servers = std::env::var("MEMCACHED_SERVERS").ok().filter(|text| !text.is_empty());
    let seed = RandomState::new().build_hasher().finish() >> 11;
    FrontInputs { servers, seed, read_text: |path| fs::read_to_string(path), paths: PATHS }
}
