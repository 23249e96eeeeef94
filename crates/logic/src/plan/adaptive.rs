//! The parts of a Plan that are decided while the run goes on: when its warm-up is over, and when enough was measured.

use serde::{Deserialize, Serialize};

use super::absent::is_default;
use crate::time::{Nanos, SECOND};

/// Decisions that are made while the run goes on; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// The phase before the measured one is over when the load has settled; absent: its time ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
    /// The phase before the measured one is over when a server has evicted its first record since the run began; the time of the
    /// phase is the longest that it may take.
    #[serde(skip_serializing_if = "is_default")]
    pub first_eviction: bool,
    /// The measured phase is over when a quantile is known well enough; absent: its time or its requests end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// When a warm-up is over: when no figure of its last two blocks has a trend, and their beginning is like their end. The time of
/// the phase is the longest that the warm-up may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// The time at the beginning that is not looked at, in nanoseconds.
    pub discard_ns: Nanos,
    /// Length of a block, in nanoseconds.
    pub block_ns: Nanos,
}

/// When enough was measured: when the interval of a quantile of all response times is narrow enough. The time of the phase is
/// the longest that the measurement may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The quantile that is measured, above 0 and below 1.
    pub quantile: f64,
    /// The greatest distance of the quantile to an end of its interval, as a share of the quantile.
    pub half_width: f64,
    /// The least time that the measurement takes, in nanoseconds.
    pub least_ns: Nanos,
}

impl Adaptive {
    /// Whether the end of the warm-up is found while it goes on.
    pub fn ends_warm_up(&self) -> bool {
        self.settle.is_some() || self.first_eviction
    }
}

impl Settle {
    /// The blocks of a warm-up before a measurement of so many nanoseconds; `None` where its length is not known.
    pub fn before(measured_ns: Option<Nanos>) -> Settle {
        let block_ns = measured_ns.unwrap_or(10 * SECOND).clamp(2 * SECOND, 30 * SECOND);
        Settle { discard_ns: 2 * SECOND, block_ns }
    }

    /// The longest time that a warm-up takes where nothing else is said, before a measurement of so many nanoseconds.
    pub fn longest_ns(measured_ns: Option<Nanos>) -> Nanos {
        measured_ns.unwrap_or(10 * SECOND).saturating_mul(6).max(60 * SECOND)
    }
}
