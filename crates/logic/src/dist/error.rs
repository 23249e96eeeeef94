//! The errors of distributions: what text or numbers were refused, and what would have been accepted.

use std::fmt;

/// The greatest magnitude of a number in a distribution: far from where arithmetic overflows.
pub(super) const NUMBER_MAX: f64 = 1e18;

/// The greatest whole number that stands exactly in a `f64` with all below it.
pub(super) const INTEGER_MAX: u64 = 1 << 53;

/// Why text or numbers are not a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DistError {
    /// The text is no distribution that pummel knows, or has wrong parameters.
    Refused {
        /// The text as it was given.
        given: String,
        /// The forms that are accepted.
        accepted: &'static str,
    },
    /// `file:PATH` or `cachelib:PATH` where the values themselves are needed.
    Unread {
        /// The text, with its prefix.
        given: String,
    },
    /// A line of a file of values is not a number.
    Line {
        /// Path of the file.
        path: String,
        /// Number of the line, from 1 on.
        line: usize,
        /// Text of the line.
        given: String,
    },
    /// A file of values without a value.
    Empty {
        /// Path of the file.
        path: String,
    },
}

impl fmt::Display for DistError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DistError::Refused { given, accepted } => write!(out, "{accepted}, not '{given}'"),
            DistError::Unread { given } => write!(out, "the values of '{given}' have to be read first"),
            DistError::Line { path, line, given } => {
                write!(
                    out,
                    "line {line} of '{path}' is to hold one number between -1e18 and 1e18, not '{given}'"
                )
            }
            DistError::Empty { path } => write!(out, "'{path}' is to hold one number a line, and holds none"),
        }
    }
}

impl std::error::Error for DistError {}

pub(super) fn refused(given: &str, accepted: &'static str) -> DistError {
    DistError::Refused { given: given.to_owned(), accepted }
}

pub(super) const WEIGHTED: &str =
    "weighted:LO-HI@P,... with whole numbers LO <= HI up to 2^53 and weights P above 0";
