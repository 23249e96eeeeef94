//! The faults, other than missed goals, that make a complete run count as failed.

use serde::{Deserialize, Serialize};

/// A fault that makes a run count as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// The generator was the limit.
    Limited,
    /// The times may not be believed.
    Untrusted,
    /// A request failed or got no answer.
    Errors,
    /// The run was not at one level from its beginning to its end.
    Unsteady,
    /// More requests were due than were answered, and their backlog grew to the end.
    Overloaded,
}

impl FailOn {
    /// All faults, in the order of help texts.
    pub const ALL: [FailOn; 5] =
        [FailOn::Limited, FailOn::Untrusted, FailOn::Errors, FailOn::Unsteady, FailOn::Overloaded];

    /// The name of the fault on command lines, in Plans and in reports.
    pub fn name(self) -> &'static str {
        match self {
            FailOn::Limited => "limited",
            FailOn::Untrusted => "untrusted",
            FailOn::Errors => "errors",
            FailOn::Unsteady => "unsteady",
            FailOn::Overloaded => "overloaded",
        }
    }

    /// The fault of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<FailOn> {
        FailOn::ALL.into_iter().find(|fail_on| fail_on.name() == name)
    }
}
