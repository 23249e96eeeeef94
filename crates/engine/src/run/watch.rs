//! What a run tells its caller while it goes on.

use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Keep, Measurement};
use pummel_logic::plan::Phase;
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::Finding;

use crate::worker::messages::{ConnectionEvent, Departure, Row};

/// Receives the events of a run. All methods are called on the thread that runs the Plan.
pub trait Watch {
    /// What the run hands over beside the figures.
    fn wants(&self) -> Wants {
        Wants { rows: false, departures: false, keep: Keep::Figures, outstanding: false }
    }

    /// Receives a notice that something is not as it was asked for: a sentence without its full stop.
    fn notice(&mut self, _words: &str) {}

    /// A phase begins at `at`, on the monotonic clock.
    fn begin(&mut self, _phase: &Phase, _at: Nanos) {}

    /// A phase is over for all workers of this process. The last of them had begun it `late_ns` nanoseconds after its
    /// beginning.
    fn phase_over(&mut self, _phase: &Phase, _late_ns: Nanos) {}

    /// `ended` requests of a phase that is not recorded have ended, of `of` requests where that number is known.
    fn progress(&mut self, _phase: &Phase, _ended: u64, _of: Option<u64>) {}

    /// Another slice of the measured phase was added to the end of the measurement, which has no status yet.
    fn slice(&mut self, _so_far: &Measurement) {}

    /// A slice of the measured phase, whole, before it goes into the measurement.
    fn interval(&mut self, _interval: &mut Interval) {}

    /// A check of a client with a window failed, on this connection, counted from 1 over all threads.
    fn finding(&mut self, _connection: u64, _finding: &Finding) {}

    /// A server sent this error to a client with a window. Only the first messages of each kind are handed over.
    fn complaint(&mut self, _connection: u64, _words: &[u8]) {}

    /// A connection to a server of the Plan was lost, or is open again.
    fn connection(&mut self, _server: usize, _event: ConnectionEvent) {}

    /// Requests of the measured phase were recorded, in no particular order.
    fn rows(&mut self, _rows: &[Row]) {}

    /// Clients departed in the measured phase, in no particular order.
    fn departures(&mut self, _gone: &[Departure]) {}
}

/// What a [`Watch`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Whether every request of the measured phase is handed over.
    pub rows: bool,
    /// Whether every departure of a client in the measured phase is handed over.
    pub departures: bool,
    /// What the slices keep.
    pub keep: Keep,
    /// Whether the number of outstanding requests of a client is recorded with each new request.
    pub outstanding: bool,
}
