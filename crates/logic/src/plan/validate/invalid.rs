//! The error of a Plan that cannot be run.

use std::fmt;

use super::field::FieldPath;

/// A value in a Plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field that holds the value.
    pub path: FieldPath,
    /// The value, in the words of the Plan.
    pub value: String,
    /// The values that are accepted, or why this one is not.
    pub expected: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is '{}', but {}", self.path, self.value, self.expected)
    }
}

impl std::error::Error for Invalid {}
