//! The control of a steered run's rate: the collecting thread turns commands into changes of the rate, and publishes each ahead of its time.

use std::sync::Arc;

use pummel_logic::arrival::{CHANGES_MAX, RateCurve, check_rate, steps};
use pummel_logic::plan::RatePoint;
use pummel_logic::time::{NEVER, Nanos};
use pummel_measure::measurement::Measurement;
use pummel_measure::uncertainty::lead_ns;

use super::context::RunContext;
use super::steering::{RateCommand, Steering};
use super::watch::Watch;
use crate::clock;
use crate::worker::steering::SteeredRate;

/// Why a command outside of the measured phase is refused.
const TOO_EARLY: &str = "the rate can be changed only while the run is measured";

/// The rate of a run that is steered, as the collecting thread knows it.
pub(super) struct RateControl {
    steering: Arc<Steering>,
    rate: Arc<SteeredRate>,
    /// The rate of the plan.
    first: f64,
    /// The rate while the load is not paused.
    wanted: f64,
    is_paused: bool,
    changes: Vec<RatePoint>,
    /// Beginning of the current measured phase, on the monotonic clock, and its length; `None` outside of measured
    /// phases.
    phase: Option<(Nanos, Nanos)>,
}

impl RateControl {
    /// The rate control of a run; `None` where the run is not steered.
    pub(super) fn of(context: &RunContext<'_>) -> Option<RateControl> {
        let steering = Arc::clone(context.steering.as_ref()?);
        let rate = Arc::clone(context.steered.as_ref()?);
        let first = context.plan.groups[0].rate?;
        Some(RateControl {
            steering,
            rate,
            first,
            wanted: first,
            is_paused: false,
            changes: Vec::new(),
            phase: None,
        })
    }

    /// Begins a phase at `at`, on the monotonic clock; `length_ns` is the length of a measured phase. Commands that came before it are refused.
    pub(super) fn begin_phase(&mut self, at: Nanos, length_ns: Option<Nanos>, watch: &mut dyn Watch) {
        while self.steering.take().is_some() {
            watch.notice(TOO_EARLY);
        }
        self.phase = length_ns.map(|length_ns| (at, length_ns));
    }

    /// Applies the commands that wait: publishes each change to the workers, and records it in `measurement`.
    pub(super) fn apply(
        &mut self,
        context: &RunContext<'_>,
        measurement: &mut Measurement,
        watch: &mut dyn Watch,
    ) {
        while let Some((at, command)) = self.steering.take() {
            match self.change(context, at, command) {
                Ok(Some(change)) => {
                    self.changes.push(change);
                    let curve = RateCurve::of(&steps(self.first, &self.changes));
                    self.rate.publish(change.at_ns, Arc::new(curve));
                    measurement.steered = Some(self.changes.clone());
                    watch.steered(&self.changes, self.is_paused.then_some(self.wanted));
                }
                Ok(None) => watch.steered(&self.changes, self.is_paused.then_some(self.wanted)),
                Err(why) => watch.notice(&why),
            }
        }
    }

    /// The change that a command given at `at` makes, or `None` where it only sets the rate at which a paused load resumes.
    fn change(
        &mut self,
        context: &RunContext<'_>,
        at: Nanos,
        command: RateCommand,
    ) -> Result<Option<RatePoint>, String> {
        let Some((began, length_ns)) = self.phase else {
            return Err(TOO_EARLY.to_owned());
        };
        // A simulated clock is not that of this thread; there the sender of a command chooses a time that all workers can meet.
        let moment = match context.is_simulated() {
            true => at,
            false => at.max(clock::now()) + lead_ns(context.plan.interval_ns),
        };
        let after_last = self.changes.last().map_or(1, |last| last.at_ns);
        let at_ns = moment.saturating_sub(began).max(after_last);
        if moment == NEVER || at_ns >= length_ns {
            return Err("the run is over before its rate could change".to_owned());
        }
        if self.changes.len() == CHANGES_MAX {
            return Err(format!("the rate was changed {CHANGES_MAX} times, and stays as it is now"));
        }
        match command {
            RateCommand::Pause => self.is_paused = !self.is_paused,
            RateCommand::Scale(factor) => {
                let rate = self.wanted * factor;
                check_rate(rate).map_err(|error| format!("the rate stays: {error}"))?;
                self.wanted = rate;
                if self.is_paused {
                    return Ok(None);
                }
            }
        }
        Ok(Some(RatePoint { at_ns, rate: if self.is_paused { 0.0 } else { self.wanted } }))
    }
}
