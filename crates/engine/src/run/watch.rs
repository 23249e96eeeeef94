//! Events of a run for its caller.

use pummel_logic::plan::{Phase, RatePoint};
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::Finding;
use pummel_measure::counters::Turns;
use pummel_measure::events::{ConnectionEvent, Departure, MemberFacts, Row, Wants};
use pummel_measure::evidence::server_stats::ServerInterval;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Keep, Measurement};

/// Receives the events of a run. All methods are called on the thread that runs the Plan.
pub trait Watch {
    /// The data that the run hands over beside the figures.
    fn wants(&self) -> Wants {
        Wants { rows: false, departures: false, keep: Keep::Figures, outstanding: false, connections: false }
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

    /// A worker of this process has handed over its part of a slice of the measured phase, with these turns.
    fn worker_turns(&mut self, _worker: usize, _turns: &Turns) {}

    /// Receives a slice of the warm-up or of the measurement of a plan whose ends are found while it runs. The slice
    /// is as short as slices are, and covers this whole process. Slices are handed over if other processes run parts
    /// of the plan too.
    fn tick(&mut self, _phase: &Phase, _slice: &mut Interval) {}

    /// The rate of the first group was changed by hand: these are all changes so far. While the load is paused,
    /// `resumes_at` is the rate at which it will resume; this may be the only value that is new.
    fn steered(&mut self, _changes: &[RatePoint], _resumes_at: Option<f64>) {}

    /// The processes of a distributed run, in the order in which slices name them: said before its first phase, and again whenever
    /// one of them is lost.
    fn members(&mut self, _members: &[MemberFacts]) {}

    /// The servers reported their counters within the measured phases: the newest interval of each, by its number among
    /// the servers that are asked; `None` for one that has reported none. Only the process that asks all servers gets
    /// them.
    fn server_intervals(&mut self, _newest: &[Option<ServerInterval>]) {}

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
