//! Why the built-in server could not serve, or could not go on.

use std::fmt;
use std::io;

/// Why the built-in server could not serve, or could not go on: a sentence for people. Exit status 1.
#[derive(Debug)]
pub struct ServeError {
    what: String,
    cause: io::Error,
}

impl ServeError {
    pub(super) fn new(what: impl Into<String>, cause: impl Into<io::Error>) -> ServeError {
        ServeError { what: what.into(), cause: cause.into() }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
