//! What a command line of this process means beyond its words: its environment, its files, and chance.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};

use pummel_fronts::job::FrontInputs;
use pummel_fronts::outputs::PathFacts;

use crate::output::{is_one_file, names_standard_output};

/// What the system says about paths.
pub const PATHS: PathFacts = PathFacts {
    is_one_file,
    is_file: |path| fs::metadata(path).is_ok_and(|present| present.is_file()),
    is_standard_output: names_standard_output,
};

/// Most bytes of a file whose text is the value of options.
const TEXT_MAX_BYTES: u64 = 1 << 29;

/// The text of a file. What has no end is no text.
fn read_text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(TEXT_MAX_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > TEXT_MAX_BYTES {
        true => Err(io::Error::other(format!("it holds more than {TEXT_MAX_BYTES} bytes"))),
        false => Ok(text),
    }
}

/// The environment and the files of this process, and a seed of the operating system.
pub fn of_process() -> FrontInputs {
    let servers = std::env::var("MEMCACHED_SERVERS").ok().filter(|text| !text.is_empty());
    let seed = RandomState::new().build_hasher().finish() >> 11;
    FrontInputs { servers, seed, read_text, paths: PATHS }
}
