//! What is said of a Plan that cannot be run.

use std::fmt;

use super::field::FieldPath;

/// A value in a Plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Where it stands.
    pub path: FieldPath,
    /// What stands there, in the words of the Plan.
    pub value: String,
    /// What is accepted there, or why this is not.
    pub expected: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is '{}', but {}", self.path, self.value, self.expected)
    }
}

impl std::error::Error for Invalid {}
