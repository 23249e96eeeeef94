//! `cargo xtask proto`: the Rust and the description of the protocol of agents, made from its proto file without a protoc.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use prost::Message;

/// Places of the proto file, and of what is made of it, in the repository.
const FOLDER: &str = "crates/fleet/proto";

/// The proto file.
const PROTO: &str = "agent.proto";

/// The Rust that is made: messages, client and server. Its name is that of the protocol's package.
const RUST: &str = "pummel.agent.v2.rs";

/// The encoded description that is made, which agents hand to clients that ask for it.
const DESCRIPTION: &str = "pummel.agent.v2.bin";

/// The messages that hold secrets. They are formatted by hand, without these.
const SECRET: [&str; 1] = [".pummel.agent.v2.Order"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => write(&folder()),
        ["--check"] => check(&folder()),
        _ => {
            eprintln!("agent-proto: expected no argument, or --check, found: {}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agent-proto: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The names and the contents of the files that are made.
type Made = [(&'static str, Vec<u8>); 2];

/// Compiles the proto file of a folder.
///
/// # Errors
/// Returns the compiler's error with the line of the proto file, and errors of the system for scratch files.
fn make(folder: &Path) -> Result<Made, Box<dyn Error>> {
    let described = protox::compile([folder.join(PROTO)], [folder])?;
    let description = described.encode_to_vec();
    let scratch = tempfile::tempdir()?;
    let config = tonic_prost_build::configure().bytes(".").skip_debug(SECRET);
    config.out_dir(scratch.path()).compile_fds(described)?;
    let rust = fs::read(scratch.path().join(RUST))?;
    Ok([(RUST, rust), (DESCRIPTION, description)])
}

fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (name, bytes) in make(folder)? {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// Compares the files of a folder with those that its proto file makes.
///
/// # Errors
/// Returns the name of the first file that differs or is missing, with the command that makes it again.
fn check(folder: &Path) -> Result<(), Box<dyn Error>> {
    for (name, bytes) in make(folder)? {
        let found = fs::read(folder.join(name)).unwrap_or_default();
        if found != bytes {
            let remedy = "`cargo xtask proto` makes it again";
            return Err(format!("{FOLDER}/{name} is not what {PROTO} makes: {remedy}").into());
        }
    }
    Ok(())
}

fn folder() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&own).ancestors().nth(2).expect("this crate lies in a folder of xtask's");
    root.join(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the project's proto file, and what it makes.
    fn made() -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        fs::copy(folder().join(PROTO), copy.path().join(PROTO)).unwrap();
        write(copy.path()).unwrap();
        copy
    }

    #[test]
    fn the_checked_in_code_is_what_the_proto_file_makes() {
        check(&folder()).unwrap();
    }

    #[test]
    fn a_proto_file_that_changed_is_told_with_the_file_that_did_not_follow() {
        let copy = made();
        check(copy.path()).unwrap();
        let text = fs::read_to_string(copy.path().join(PROTO)).unwrap();
        let changed = format!("{text}\nmessage Another {{ uint32 number = 1; }}\n");
        fs::write(copy.path().join(PROTO), changed).unwrap();
        let said = check(copy.path()).unwrap_err().to_string();
        assert!(said.contains(RUST) && said.contains("cargo xtask proto"), "{said}");
    }

    #[test]
    fn a_description_that_is_missing_is_told() {
        let copy = made();
        fs::remove_file(copy.path().join(DESCRIPTION)).unwrap();
        let said = check(copy.path()).unwrap_err().to_string();
        assert!(said.contains(DESCRIPTION), "{said}");
    }
}
