//! The probe of a server after the run: the operations of the run are repeated with one request in flight, then with
//! ten.

use serde::{Deserialize, Serialize};

use pummel_logic::time::{Nanos, seconds};

/// The results of a probe: one measurement with one request in flight, and one with ten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Measurement with one request in flight.
    pub one: ProbeHalf,
    /// Measurement with ten requests in flight.
    pub ten: ProbeHalf,
}

/// Result of one of the two measurements of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeHalf {
    /// Number of requests in flight.
    pub in_flight: u32,
    /// Number of completed requests.
    pub completed: u64,
    /// Length of the measurement, up to the last answer, in nanoseconds.
    pub span_ns: Nanos,
    /// Median of the service times, in nanoseconds; 0 if nothing was completed.
    pub service_p50_ns: Nanos,
}

impl ProbeHalf {
    /// Completed requests per second; 0 if the measurement has no length.
    pub fn rate(&self) -> f64 {
        if self.span_ns == 0 { 0.0 } else { self.completed as f64 / seconds(self.span_ns) }
    }
}

impl Probe {
    /// The median service time with ten requests in flight divided by that with one; `None` if one of the
    /// measurements completed nothing.
    pub fn growth(&self) -> Option<f64> {
        let (one, ten) = (self.one.service_p50_ns, self.ten.service_p50_ns);
        (one > 0 && ten > 0).then(|| ten as f64 / one as f64)
    }
}
