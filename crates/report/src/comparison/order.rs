//! How the runs of the two sides of a comparison followed each other.

use serde::{Deserialize, Serialize};

/// How the runs of the two sides followed each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The runs alternated in mixed order, pair by pair.
    Mixed,
    /// Side A was measured before side B.
    FirstBeforeSecond,
    /// Side B was measured before side A.
    SecondBeforeFirst,
    /// Another order, or one that is not known.
    Other,
}
