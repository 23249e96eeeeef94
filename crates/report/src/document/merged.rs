//! The results that a sum consists of.

use pummel_measure::limit::Cause;
use pummel_measure::reason::Reason;
use serde::{Deserialize, Serialize};

use super::known::known;
use super::steadiness::{ChangeResult, StopResult};
use super::trust::TrustResult;

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
    /// Facts of the reason why the part is not complete; absent in complete ones, and where this version does not know their kind.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub why: Option<Reason>,
    /// How far the times of the part can be believed; absent where its result does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustResult>,
    /// What limited the part; absent where its result does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<MergedLimit>,
    /// Stops of the servers in the part, in seconds from the beginning of its measured phase; empty where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StopResult>,
}

/// What limited a part of a sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MergedLimit {
    /// The limit in a word, as the report of the part names it.
    pub limit: String,
    /// The sentence of that report.
    pub says: String,
    /// Facts that the sentence rests on; absent in older results.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}
