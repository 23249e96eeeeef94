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
/// Share of its time that a serving thread may wait for a CPU without being slowed down.
pub const RUN_DELAY_SHARE: f64 = 0.05;
/// Least share of the time for which a thread had no CPU that a user of the CPU must have taken to be its cause.
pub const CAUSE_SHARE: f64 = 0.5;

/// A figure of a run with its bound, beyond which it is evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The figure; a share of 1 unless its maker gives it another unit.
    pub value: f64,
    /// The greatest figure that is no evidence.
    pub bound: f64,
}

impl Judged {
    /// A part of a whole, and the share that is no evidence.
    pub fn share(part: u64, whole: u64, bound: f64) -> Judged {
        Judged { value: part as f64 / whole as f64, bound }
    }

    /// The use of a resource that is full beyond [`FULL_SHARE`].
    pub fn used(share: f64) -> Judged {
        Judged { value: share, bound: FULL_SHARE }
    }

    /// Whether the figure is evidence.
    pub fn is_beyond(self) -> bool {
        self.value > self.bound
    }
}

/// Part of a span; 0 where the span has no length.
pub fn share_of(part_ns: Nanos, span_ns: Nanos) -> f64 {
    if span_ns == 0 { 0.0 } else { part_ns as f64 / span_ns as f64 }
}
