//! What is said on standard error, beside the report.

use std::fmt::Display;
use std::io::{self, Write};

/// Says a line. When nobody is left to hear it, because the terminal or the pipe is gone or full, the run goes on: its
/// report still matters.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
