//! The requests of a run so far, for lines of progress.

use pummel_logic::time::{MILLISECOND, Nanos, seconds};
use pummel_measure::interval::Interval;
use pummel_measure::recorder::Span;

/// The requests of some intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Completed requests.
    pub completed: u64,
    /// Sum of the service times of those that were answered, in nanoseconds.
    pub time_ns: u128,
    /// Number of those that were answered.
    pub answered: u64,
    /// Length of the intervals, in nanoseconds.
    pub length_ns: Nanos,
    /// Bytes that were sent and received.
    pub bytes: u64,
}

impl SoFar {
    /// The requests of an interval.
    pub fn of(interval: &mut Interval) -> SoFar {
        let bytes = interval.counters.bytes;
        let mut of = SoFar {
            length_ns: interval.end_ns.saturating_sub(interval.start_ns),
            completed: interval.counts().completed,
            bytes: bytes.sent + bytes.received,
            ..SoFar::default()
        };
        for recorder in &mut interval.groups {
            for (_, op) in recorder.ops().iter() {
                let moments = op.times.of(Span::Service).moments();
                of.time_ns += moments.sum;
                of.answered += moments.count;
            }
        }
        of
    }

    /// Adds those of another interval.
    pub fn add(&mut self, other: SoFar) {
        self.completed += other.completed;
        self.time_ns += other.time_ns;
        self.answered += other.answered;
        self.length_ns += other.length_ns;
        self.bytes += other.bytes;
    }

    /// A number of these intervals per second; 0 where they have no length.
    pub fn per_second(&self, number: u64) -> f64 {
        if self.length_ns > 0 { number as f64 / seconds(self.length_ns) } else { 0.0 }
    }

    /// Completed requests per second.
    pub fn rate(&self) -> f64 {
        self.per_second(self.completed)
    }

    /// The mean service time in milliseconds; 0 where nothing was answered.
    pub fn mean_ms(&self) -> f64 {
        let mean_ns = if self.answered > 0 { self.time_ns as f64 / self.answered as f64 } else { 0.0 };
        mean_ns / MILLISECOND as f64
    }
}
