//! The errors of distributions: the text or numbers that were refused, and the forms that are accepted.

use std::fmt;

/// The greatest magnitude of a number in a distribution, chosen far below the overflow of arithmetic.
pub(super) const NUMBER_MAX: f64 = 1e18;

/// 2^53, up to which an `f64` represents every whole number exactly.
pub(super) const INTEGER_MAX: u64 = 1 << 53;

/// The reason why text or numbers are not a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DistError {
    /// Text or numbers that are no distribution of pummel, or have parameters out of bounds.
    Refused {
        /// The text that was refused.
        given: String,
        /// The forms that are accepted.
        accepted: &'static str,
    },
    /// A distribution in a file (`file:PATH` or `cachelib:PATH`) that was parsed as text alone, without reading the
    /// file.
    Unread(String),
    /// A line of a file of values that is not a number between -1e18 and 1e18.
    Line {
        /// Path of the file.
        path: String,
        /// Number of the line; the first line is 1.
        line: usize,
        /// Text of the line, without comment and surrounding blanks.
        given: String,
    },
    /// A file of values that contains no value.
    Empty(String),
}

impl fmt::Display for DistError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DistError::Refused { given, accepted } => write!(out, "{accepted}, not '{given}'"),
            DistError::Unread(given) => write!(out, "the values of '{given}' have to be read first"),
            DistError::Line { path, line, given } => {
                write!(
                    out,
                    "line {line} of '{path}' is to hold one number between -1e18 and 1e18, not '{given}'"
                )
            }
            DistError::Empty(path) => write!(out, "'{path}' is to hold one number a line, and holds none"),
        }
    }
}

impl std::error::Error for DistError {}

pub(super) fn refused(given: &str, accepted: &'static str) -> DistError {
    DistError::Refused { given: given.to_owned(), accepted }
}

pub(super) const WEIGHTED: &str =
    "weighted:LO-HI@P,... with whole numbers LO <= HI up to 2^53 and weights P above 0";
