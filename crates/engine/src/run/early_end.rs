//! The ends of phases that are found while they go on: that of a warm-up and that of the measurement.

use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Measurement, WarmUp};
use pummel_logic::measure::uncertainty::{Looks, Settling};
use pummel_logic::plan::Plan;
use pummel_logic::time::{MILLISECOND, Nanos};

use super::context::RunContext;
use crate::clock;

/// How long before its end a phase's end is known to all workers, in nanoseconds: several times the time between two slices.
const AHEAD_NS: Nanos = 500 * MILLISECOND;

/// How long before its end a phase's end is known where clocks are simulated, in nanoseconds.
const AHEAD_SIMULATED_NS: Nanos = 20 * MILLISECOND;

/// The phase under way, and what decides when it is over.
pub(super) struct EarlyEnd {
    /// When the phase began, on the monotonic clock, and the meeting before it.
    began: (Nanos, u64),
    settling: Option<Settling>,
    looks: Option<Looks>,
    /// Whether the warm-up has settled.
    has_settled: bool,
}

impl EarlyEnd {
    /// What decides the ends of a plan's phases, before the first of them.
    pub(super) fn of(plan: &Plan) -> EarlyEnd {
        EarlyEnd { began: (0, 0), settling: Settling::of(plan), looks: Looks::of(plan), has_settled: false }
    }

    /// Notes that a phase began at `at`, after the meeting with this number.
    pub(super) fn begin(&mut self, at: Nanos, round: u64) {
        self.began = (at, round);
    }

    /// Takes in a slice of the warm-up, and ends it where its load has settled.
    pub(super) fn warm_up_slice(&mut self, context: &RunContext<'_>, slice: &mut Interval) {
        let Some(settling) = &mut self.settling else { return };
        if settling.add(slice) == Some(true) && !self.has_settled {
            self.has_settled = true;
            self.end_phase(context, 0, slice.end_ns);
        }
    }

    /// Notes that the warm-up is over, which took `elapsed_ns`.
    pub(super) fn warm_up_over(&self, measurement: &mut Measurement, elapsed_ns: Nanos) {
        measurement.warm_up = Some(WarmUp { elapsed_ns, settled: self.has_settled });
    }

    /// Looks at what was measured so far, and ends the phase where that is enough.
    pub(super) fn measured(&mut self, context: &RunContext<'_>, so_far: &Measurement) {
        if let Some(end_ns) = self.looks.as_mut().and_then(|looks| looks.look(so_far)) {
            self.end_phase(context, end_ns, so_far.measured_ns);
        }
    }

    /// Ends the phase so many nanoseconds after its beginning, or later: all workers have to learn it before that. So much of the phase
    /// has been seen.
    fn end_phase(&self, context: &RunContext<'_>, end_ns: Nanos, seen_ns: Nanos) {
        let (began, round) = self.began;
        let after = |ns: Nanos, more_ns: Nanos| ns.saturating_add(more_ns);
        let at = match context.choice {
            Some(_) => {
                let known = after(began, seen_ns).max(clock::now());
                after(began, end_ns).max(after(known, AHEAD_NS))
            }
            // A simulated clock is not that of this thread.
            None => after(began, end_ns).max(after(began, after(seen_ns, AHEAD_SIMULATED_NS))),
        };
        context.meeting.end_phase(round, at);
    }
}
