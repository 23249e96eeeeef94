//! Time as plain numbers, given by the caller: this crate reads no clock.

/// A point in time or a span, in nanoseconds of the run's monotonic clock.
pub type Nanos = u64;

/// The time of an event that never happens.
pub const NEVER: Nanos = u64::MAX;

/// One microsecond in nanoseconds.
pub const MICROSECOND: Nanos = 1_000;

/// One millisecond in nanoseconds.
pub const MILLISECOND: Nanos = 1_000_000;

/// One second in nanoseconds.
pub const SECOND: Nanos = 1_000_000_000;

/// Nanoseconds as seconds.
pub fn seconds(ns: Nanos) -> f64 {
    ns as f64 / SECOND as f64
}

/// A length of time that no run reaches, 146 years, and that can be added to the time of a clock.
pub const FAR_NS: Nanos = NEVER / 4;

/// Seconds as nanoseconds, rounded to the nearest, and cut off at the ends of the range.
pub fn from_seconds(seconds: f64) -> Nanos {
    libm::round(seconds * SECOND as f64) as Nanos
}
