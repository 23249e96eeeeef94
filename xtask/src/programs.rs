//! Programs that commands call and wait for: cargo in the repository, and others that have to succeed.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The cargo that runs this program, in the repository.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // What cargo says of this package would make build scripts of others believe that something changed.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// Makes an optimised build of a target of a package.
///
/// # Errors
/// Returns an error when cargo cannot be started, and when the build fails.
pub fn build(root: &Path, [package, kind, name]: [&str; 3]) -> io::Result<()> {
    let status = cargo(root).args(["build", "--release", "--package", package, kind, name]).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("the release build of {name} failed"))),
    }
}

/// The folder of optimised builds.
pub fn release(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from).join("release")
}

/// Runs those tests of an optimised test program whose names contain one of the filters, with these variables of the environment.
/// Returns the lines that it prints, and whether all passed.
///
/// # Errors
/// Returns an error when cargo cannot be started or its output cannot be read.
pub fn test(
    root: &Path,
    [package, program]: [&str; 2],
    filters: &[&str],
    variables: &[(&str, String)],
) -> io::Result<(Vec<String>, bool)> {
    let mut child = cargo(root)
        .args(["test", "--release", "--package", package, "--test", program, "--", "--nocapture"])
        .args(filters)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .spawn()?;
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let lines = out.lines().collect::<io::Result<_>>()?;
    Ok((lines, child.wait()?.success()))
}

/// The standard output of a program.
///
/// # Errors
/// Returns an error with the words of the program when it fails, and one with its name when it cannot be started.
pub fn said_by(command: &mut Command) -> io::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| io::Error::new(error.kind(), format!("{name} is needed: {error}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("{name} failed ({}): {}", output.status, said.trim())))
        }
    }
}
