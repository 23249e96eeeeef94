//! Which record is asked for.

use serde::{Deserialize, Serialize};

/// How requests spread over the records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Popularity {
    /// Every record alike.
    Uniform,
}
