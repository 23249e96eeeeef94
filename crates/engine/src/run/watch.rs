//! What a run tells its caller while it goes on.

use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Keep, Measurement};
use pummel_logic::plan::Phase;
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::Finding;

use crate::worker::messages::{ConnectionEvent, Departure, Row};

/// Watches over a run while it goes on. All methods are called on the thread that runs the Plan.
pub trait Watch {
    /// What is wanted beside the figures.
    fn wants(&self) -> Wants {
        Wants { rows: false, departures: false, keep: Keep::Figures, outstanding: false }
    }

    /// Something is not as it was asked for; a sentence without its full stop.
    fn notice(&mut self, _words: &str) {}

    /// A phase begins, at `at` on the monotonic clock.
    fn begin(&mut self, _phase: &Phase, _at: Nanos) {}

    /// A phase is over for all workers of this process; the last of them had begun it `late_ns` after its beginning.
    fn phase_over(&mut self, _phase: &Phase, _late_ns: Nanos) {}

    /// So many requests of a phase that is not recorded have ended, of all that it makes where that is known.
    fn progress(&mut self, _phase: &Phase, _ended: u64, _of: Option<u64>) {}

    /// Another slice of the measured phase is there; it is the last one in the measurement, which has no status yet.
    fn slice(&mut self, _so_far: &Measurement) {}

    /// A slice of the measured phase, whole, before it goes into the measurement.
    fn interval(&mut self, _interval: &mut Interval) {}

    /// A check of a client with a window failed, on this connection, counted from 1 over all threads.
    fn finding(&mut self, _connection: u64, _finding: &Finding) {}

    /// A server said this with an error to a client with a window; only the first of each kind is told.
    fn complaint(&mut self, _connection: u64, _words: &[u8]) {}

    /// A connection to a server of the Plan was lost, or is open again.
    fn connection(&mut self, _server: usize, _event: ConnectionEvent) {}

    /// Requests of the measured phase, raw, in no particular order.
    fn rows(&mut self, _rows: &[Row]) {}

    /// Clients that came and went in the measured phase, in no particular order.
    fn departures(&mut self, _gone: &[Departure]) {}
}

/// What a [`Watch`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Every request of the measured phase.
    pub rows: bool,
    /// The end of every client that comes and goes in the measured phase.
    pub departures: bool,
    /// What the slices keep.
    pub keep: Keep,
    /// How many requests clients have outstanding with each new one.
    pub outstanding: bool,
}
