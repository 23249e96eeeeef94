//! Rates of requests: their bounds, which of them can be kept, their periods without rounding, and the gaps between requests.

use std::fmt;

use crate::time::{NEVER, Nanos, SECOND};

/// The least rate of a group in requests per second.
pub const RATE_MIN: f64 = 1e-6;

/// The greatest rate of a group in requests per second.
pub const RATE_MAX: f64 = 1e12;

/// A rate below [`RATE_MIN`] or above [`RATE_MAX`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateError(pub f64);

impl fmt::Display for RateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a rate is between 1e-6 and 1e12 requests per second, not {}", self.0)
    }
}

impl std::error::Error for RateError {}

/// Checks that a group's rate in requests per second is one that can be kept.
///
/// # Errors
/// Returns [`RateError`] for a rate below 1e-6 or above 1e12 requests per second.
pub fn check_rate(rate: f64) -> Result<(), RateError> {
    if (RATE_MIN..=RATE_MAX).contains(&rate) { Ok(()) } else { Err(RateError(rate)) }
}

/// A number of nanoseconds as `whole` + `rest` / `divisor`, without any rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) whole: u64,
    pub(super) rest: u64,
    pub(super) divisor: u64,
}

impl Ratio {
    /// One second divided by the exact value of `rate`, which lies between [`RATE_MIN`] and [`RATE_MAX`].
    pub(super) fn period_ns(rate: f64) -> Ratio {
        // rate = mantissa * 2^exponent, with an odd mantissa; IEEE 754's layout of a normal number.
        let bits = rate.to_bits();
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let shift = mantissa.trailing_zeros();
        let mantissa = mantissa >> shift;
        let exponent = ((bits >> 52) & 0x7FF) as i64 - 1075 + i64::from(shift);
        // At RATE_MIN the exponent is -72, at RATE_MAX below 40: both products fit.
        let (dividend, divisor) = if exponent < 0 {
            (u128::from(SECOND) << -exponent, mantissa)
        } else {
            (u128::from(SECOND), mantissa << exponent)
        };
        let whole = (dividend / u128::from(divisor)) as u64;
        let rest = (dividend % u128::from(divisor)) as u64;
        Ratio { whole, rest, divisor }
    }

    /// The number of multiples of the ratio, from 0 times on, that are below `time_ns` after their fractions are cut off.
    pub(super) fn count_before(&self, time_ns: Nanos) -> u128 {
        // Cut off, a multiple is below a whole number exactly when it is so uncut. The dividend is 10^9 * 2^72 at most.
        let dividend = u128::from(self.whole) * u128::from(self.divisor) + u128::from(self.rest);
        (u128::from(time_ns) * u128::from(self.divisor)).div_ceil(dividend)
    }

    /// The product of the ratio and `count` (below 2^75), cut off to whole nanoseconds; [`NEVER`] where it does not fit.
    pub(super) fn times(&self, count: u128) -> Nanos {
        let mut product = count * u128::from(self.whole);
        if self.rest > 0 {
            product += count * u128::from(self.rest) / u128::from(self.divisor);
        }
        Nanos::try_from(product).unwrap_or(NEVER)
    }
}

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

/// Number of gaps of this mean that begin in a time, when the first of them begins with it: 1 and the number of gaps that fit.
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
