//! Distributions of sizes, times and gaps, each drawn by its quantile function.

use serde::{Deserialize, Serialize};

/// A distribution of non-negative numbers. What they are (bytes, seconds) is the user's affair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Dist {
    /// Always the same.
    Fixed(f64),
}
