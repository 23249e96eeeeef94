//! The ends of a warm-up and of a measurement that are found while they go on. A process with a part of the plan gets
//! them from another process.

use pummel_logic::plan::Plan;
use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Measurement, WarmUp, WarmUpEnd};
use pummel_measure::uncertainty::{EarlyEnds, lead_ns};

use super::context::RunContext;
use crate::clock;

/// Time by which the end of a phase is known in advance if clocks are simulated, in nanoseconds.
const AHEAD_SIMULATED_NS: Nanos = 20 * MILLISECOND;

/// The current phase, and the search for its end.
pub(super) struct EarlyEnd {
    /// Index of the phase.
    phase: usize,
    /// Beginning of the phase, on the monotonic clock, and the round of the barrier before it.
    began: (Nanos, u64),
    /// The search for the ends; it finds nothing if another process searches.
    ends: EarlyEnds,
}

impl EarlyEnd {
    /// The search for the ends of a plan's phases, before the first of them. `is_whole`: this process runs the whole
    /// plan.
    pub(super) fn of(plan: &Plan, is_whole: bool) -> EarlyEnd {
        let ends = if is_whole { EarlyEnds::of(plan) } else { EarlyEnds::none() };
        EarlyEnd { phase: 0, began: (0, 0), ends }
    }

    /// Notes that a phase began at `at`, after this round of the barrier.
    pub(super) fn begin(&mut self, phase: usize, at: Nanos, round: u64) {
        (self.phase, self.began) = (phase, (at, round));
    }

    /// Ends the current phase early if another process has announced that.
    pub(super) fn receive(&self, context: &RunContext<'_>) {
        if let Some(at) = context.gate.and_then(|gate| gate.early_end(self.phase)) {
            context.barrier.end_phase(self.began.1, at);
        }
    }

    /// Takes in a slice of the warm-up, and ends it where its load has settled or a server has evicted a record.
    pub(super) fn warm_up_slice(&mut self, context: &RunContext<'_>, slice: &mut Interval) {
        if let Some(end_ns) = self.ends.warm_up_slice(slice) {
            self.end_phase(context, end_ns, slice.end_ns);
        }
    }

    /// Notes that the warm-up is over, which took `elapsed_ns`. `is_stopped`: the run was ended in it.
    pub(super) fn warm_up_over(
        &self,
        context: &RunContext<'_>,
        measurement: &mut Measurement,
        elapsed_ns: Nanos,
        is_stopped: bool,
    ) {
        let until = WarmUpEnd::of(context.plan);
        let settled = self.ends.has_settled();
        measurement.warm_up = Some(WarmUp { until, elapsed_ns, settled, cut_short: is_stopped && !settled });
    }

    /// Adds a slice of the measurement, and ends the phase if the measurement suffices.
    pub(super) fn measured_slice(&mut self, context: &RunContext<'_>, slice: &mut Interval) {
        if let Some(end_ns) = self.ends.measured_slice(slice) {
            self.end_phase(context, end_ns, slice.end_ns);
        }
    }

    /// Ends the phase `end_ns` after its beginning, or later, since all workers have to know the end in advance.
    /// `seen_ns` is the length of the phase that was evaluated.
    fn end_phase(&self, context: &RunContext<'_>, end_ns: Nanos, seen_ns: Nanos) {
        let (began, round) = self.began;
        let after = |ns: Nanos, more_ns: Nanos| ns.saturating_add(more_ns);
        let at = match context.is_simulated() {
            false => {
                let known = after(began, seen_ns).max(clock::now());
                after(began, end_ns).max(after(known, lead_ns(context.plan.interval_ns)))
            }
            // A simulated clock is not that of this thread.
            true => after(began, end_ns).max(after(began, after(seen_ns, AHEAD_SIMULATED_NS))),
        };
        context.barrier.end_phase(round, at);
    }
}
