//! The results that a sum consists of.

use super::steadiness::ChangeResult;
use serde::{Deserialize, Serialize};

/// A result that is a part of a sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MergedResult {
    /// The name of its file.
    pub file: String,
    /// Seed of the part's arrivals and choices.
    pub seed: u64,
    /// Clients of the part.
    pub clients: u64,
    /// Beginning of its measured phase, in seconds since 1970.
    pub started_unix_s: Option<f64>,
    /// Length of the part's measured phase, in seconds.
    pub seconds: f64,
    /// Requests that were due.
    pub requests: u64,
    /// Requests that were answered without an error.
    pub completed: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// Whether the part stayed at one level from its beginning to its end; null if that was not judged.
    pub steady: Option<bool>,
    /// The change in a part that was not steady; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeResult>,
}
