//! The ends of phases that are decided during the run: the end of the warm-up and the end of the measured phase.

use serde::{Deserialize, Serialize};

use super::absent::is_default;
use crate::time::{Nanos, SECOND};

/// Rules that end a phase during the run, before its longest time; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// Rule that ends the warm-up, the phase before the measured one, when its load has settled; absent: no such
    /// rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
    /// Whether the warm-up ends when a server evicts its first record of the run. The time of the phase is then the
    /// longest that the warm-up may take.
    #[serde(skip_serializing_if = "is_default")]
    pub first_eviction: bool,
    /// Rule that ends the measured phase when a quantile is known well enough; absent: the time or the requests of
    /// the phase end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// Rule for the end of a warm-up: within its last two blocks, no observed figure (response times, hit share, rate in
/// closed loop) has a trend or differs between the beginning and the end. The time of the phase is the longest that
/// the warm-up may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// The time at the beginning of the warm-up that is ignored, in nanoseconds.
    pub discard_ns: Nanos,
    /// Length of a block, in nanoseconds.
    pub block_ns: Nanos,
}

/// Rule for the end of a measurement: the confidence interval of a quantile of all response times is narrow enough.
/// The time of the phase is the longest that the measurement may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The quantile, above 0 and below 1.
    pub quantile: f64,
    /// The greatest allowed distance from the quantile to an end of its confidence interval, as a share of the
    /// quantile.
    pub half_width: f64,
    /// The shortest time that the measurement takes, in nanoseconds.
    pub least_ns: Nanos,
}

impl Adaptive {
    /// Whether a rule ends the warm-up during the run.
    pub fn ends_warm_up(&self) -> bool {
        self.settle.is_some() || self.first_eviction
    }
}

impl Settle {
    /// The rule for the warm-up before a measurement of `measured_ns` nanoseconds, `None` if that length is not
    /// known: blocks as long as the measurement (10 s if not known), but at least 2 s and at most 30 s.
    pub fn before(measured_ns: Option<Nanos>) -> Settle {
        let block_ns = measured_ns.unwrap_or(10 * SECOND).clamp(2 * SECOND, 30 * SECOND);
        Settle { discard_ns: 2 * SECOND, block_ns }
    }

    /// The longest time of a warm-up, unless another is given, before a measurement of `measured_ns` nanoseconds: six
    /// times the measurement (10 s if not known), at least 60 s.
    pub fn longest_ns(measured_ns: Option<Nanos>) -> Nanos {
        measured_ns.unwrap_or(10 * SECOND).saturating_mul(6).max(60 * SECOND)
    }
}
