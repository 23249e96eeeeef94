//! Shares of a thread's time, and the bounds from which on they are evidence.

use pummel_logic::time::Nanos;

/// Share of its time above which a thread is full.
pub const FULL_SHARE: f64 = 0.9;
/// Share of its time above which a thread that wants a CPU, whether or not it has one, has none to spare.
pub const WANTED_SHARE: f64 = 0.95;
/// Share of its time below which a busy thread has time to spare.
pub const SPARE_SHARE: f64 = 0.8;
/// Share of its time that a client thread may lose without being slowed down.
pub const TAKEN_SHARE: f64 = 0.05;
/// Least share of the time for which a thread had no CPU that a user of the CPU must have taken to be its cause.
pub const CAUSE_SHARE: f64 = 0.5;

/// Part of a span; 0 where the span has no length.
pub fn share_of(part_ns: Nanos, span_ns: Nanos) -> f64 {
    if span_ns == 0 { 0.0 } else { part_ns as f64 / span_ns as f64 }
}
