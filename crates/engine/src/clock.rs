//! The clocks: the only file of the engine that reads the time for others.

use pummel_logic::time::Nanos;

use crate::sys;

/// The monotonic clock (CLOCK_MONOTONIC) in nanoseconds, which all processes of one machine share.
#[inline]
pub fn now() -> Nanos {
    sys::monotonic_ns()
}

/// The wall clock in nanoseconds since 1970; for the date in a report, never to measure with.
pub fn wall() -> Nanos {
    sys::wall_ns()
}
