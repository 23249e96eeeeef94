//! Shares of a thread's time, and from which of them on they say something.

use pummel_logic::time::Nanos;

/// A thread that uses a larger share of its time is full.
pub const FULL_SHARE: f64 = 0.9;
/// A thread that wants a CPU for a larger share of its time, whether or not it has one, has none of it to spare.
pub const WANTED_SHARE: f64 = 0.95;
/// Threads that are busy for a smaller share of their time have time to spare.
pub const SPARE_SHARE: f64 = 0.8;
/// A client thread that loses a larger share of its time is slowed down by it.
pub const TAKEN_SHARE: f64 = 0.05;
/// Who took less than this share of the time for which a thread had no CPU did not cause that.
pub const CAUSE_SHARE: f64 = 0.5;

/// Part of a span; 0 where the span has no length.
pub fn share_of(part_ns: Nanos, span_ns: Nanos) -> f64 {
    if span_ns == 0 { 0.0 } else { part_ns as f64 / span_ns as f64 }
}
