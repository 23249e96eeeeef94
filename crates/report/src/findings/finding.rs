//! What was found of results: facts with their weight and their words.

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use crate::document::known::known;

/// A fact that was found of a run, or of all results together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Name of the result; null for what is about all results together.
    #[serde(default)]
    pub run: Option<String>,
    /// Weight of the fact.
    pub grade: Grade,
    /// Numbers of the runs of the result; absent where there is one, and where the fact is the same in all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<FoundRuns>,
    /// The fact, of several runs that of the first in which it was found; null where this version does not know its kind.
    #[serde(default, deserialize_with = "known")]
    pub fact: Option<Fact>,
    /// The fact in words, without a full stop.
    pub says: String,
}

/// Weight of a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// The run does not measure what its name says.
    Finding,
    /// The fact is good to know.
    #[default]
    #[serde(other)]
    Note,
}

/// Runs of a result in which a fact was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundRuns {
    /// Number of runs in which it was found.
    pub found: usize,
    /// Number of runs of the result.
    pub all: usize,
    /// Number of the first run in which it was found, from 1.
    pub first: usize,
}

/// The numbers of findings and of notes.
pub fn counts(findings: &[Finding]) -> (usize, usize) {
    let of = |grade| findings.iter().filter(|finding| finding.grade == grade).count();
    (of(Grade::Finding), of(Grade::Note))
}
