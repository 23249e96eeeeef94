//! The probe of a server after the run: the operations of the run with one request in flight, then with ten.

use serde::{Deserialize, Serialize};

use pummel_logic::time::{Nanos, seconds};

/// The two halves of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Half with one request at a time.
    pub one: ProbeHalf,
    /// Half with ten requests at a time.
    pub ten: ProbeHalf,
}

/// Result of one half of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeHalf {
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests that were completed.
    pub completed: u64,
    /// Length of the half, up to the last answer, in nanoseconds.
    pub span_ns: Nanos,
    /// Median of the service times, in nanoseconds; 0 where nothing was completed.
    pub service_p50_ns: Nanos,
}

impl ProbeHalf {
    /// Completed requests per second; 0 where the half has no length.
    pub fn rate(&self) -> f64 {
        if self.span_ns == 0 { 0.0 } else { self.completed as f64 / seconds(self.span_ns) }
    }
}

impl Probe {
    /// The factor by which a request takes longer with ten in flight than with one; absent where a half completed nothing.
    pub fn growth(&self) -> Option<f64> {
        let (one, ten) = (self.one.service_p50_ns, self.ten.service_p50_ns);
        (one > 0 && ten > 0).then(|| ten as f64 / one as f64)
    }
}
