//! Gaps between requests: how they add up without loss, and how many of them a time holds.

use super::rate::RATE_MAX;
use crate::time::{Nanos, SECOND};

crate::counters! {
    /// Requests that a schedule passed over without asking them.
    pub struct Passed {
        /// All requests that were passed over.
        pub requests: u64,
        /// The part of `requests` that was estimated from the mean gap instead of counted.
        pub estimated: u64,
    }
}

impl Passed {
    /// Requests that were all counted.
    pub fn exactly(requests: u64) -> Passed {
        Passed { requests, estimated: 0 }
    }
}

/// How many gaps of this mean begin in a time, when the first of them begins with it: 1 and the number of gaps that fit.
/// A mean below [`GAP_MIN_NS`] counts as that.
pub fn estimated_count(time_ns: Nanos, mean_gap_ns: f64) -> u64 {
    // The conversion saturates.
    libm::round(time_ns as f64 / mean_gap_ns.max(GAP_MIN_NS)) as u64 + 1
}

/// The mean gap at [`RATE_MAX`], in nanoseconds.
pub const GAP_MIN_NS: f64 = SECOND as f64 / RATE_MAX;

/// `time` and `fraction` 2^-64ths of a nanosecond, moved on by `gap_ns`, which is not negative.
pub(super) fn later(time: Nanos, fraction: &mut u64, gap_ns: f64) -> Nanos {
    let whole = gap_ns as u64;
    let part = ((gap_ns - whole as f64) * (1u128 << 64) as f64) as u64;
    let (sum, carry) = fraction.overflowing_add(part);
    *fraction = sum;
    time.saturating_add(whole).saturating_add(u64::from(carry))
}
