//! The helm of a run: the collecting thread makes changes of the rate out of wishes, and tells the workers ahead of their moments.

use std::sync::Arc;

use pummel_logic::arrival::{CHANGES_MAX, RateCurve, check_rate, steps};
use pummel_logic::measure::measurement::Measurement;
use pummel_logic::measure::uncertainty::lead_ns;
use pummel_logic::plan::RatePoint;
use pummel_logic::time::{NEVER, Nanos};

use super::context::RunContext;
use super::steering::{RateWish, Steering};
use super::watch::Watch;
use crate::clock;
use crate::worker::steering::SteeredRate;

/// Why a wish is refused that comes outside of the measured phase.
const TOO_EARLY: &str = "the rate can be changed only while the run is measured";

/// The rate of a run that is steered, as the collecting thread knows it.
pub(super) struct Helm {
    steering: Arc<Steering>,
    rate: Arc<SteeredRate>,
    /// The rate of the plan.
    first: f64,
    /// The rate while something is asked.
    wanted: f64,
    is_paused: bool,
    changes: Vec<RatePoint>,
    /// When the measured phase under way began, on the monotonic clock, and how long it is; `None` outside of it.
    phase: Option<(Nanos, Nanos)>,
}

impl Helm {
    /// The helm of a run; `None` where it is not steered.
    pub(super) fn of(context: &RunContext<'_>) -> Option<Helm> {
        let steering = Arc::clone(context.steering.as_ref()?);
        let rate = Arc::clone(context.steered.as_ref()?);
        let first = context.plan.groups[0].rate?;
        Some(Helm {
            steering,
            rate,
            first,
            wanted: first,
            is_paused: false,
            changes: Vec::new(),
            phase: None,
        })
    }

    /// Notes that a phase begins at `at`; `length_ns` is that of a measured one. What was wished before it is refused.
    pub(super) fn begin(&mut self, at: Nanos, length_ns: Option<Nanos>, watch: &mut dyn Watch) {
        while self.steering.take().is_some() {
            watch.notice(TOO_EARLY);
        }
        self.phase = length_ns.map(|length_ns| (at, length_ns));
    }

    /// Hears what is wished, and has the workers follow it.
    pub(super) fn hear(
        &mut self,
        context: &RunContext<'_>,
        measurement: &mut Measurement,
        watch: &mut dyn Watch,
    ) {
        while let Some((at, wish)) = self.steering.take() {
            match self.change(context, at, wish) {
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

    /// The change that a wish at `at` makes, or `None` where it decides only how the load goes on.
    fn change(
        &mut self,
        context: &RunContext<'_>,
        at: Nanos,
        wish: RateWish,
    ) -> Result<Option<RatePoint>, String> {
        let Some((began, length_ns)) = self.phase else {
            return Err(TOO_EARLY.to_owned());
        };
        // A simulated clock is not that of this thread, and who wishes there knows when all workers can follow.
        let moment = match context.choice {
            Some(_) => at.max(clock::now()) + lead_ns(context.plan.interval_ns),
            None => at,
        };
        let after_last = self.changes.last().map_or(1, |last| last.at_ns);
        let at_ns = moment.saturating_sub(began).max(after_last);
        if moment == NEVER || at_ns >= length_ns {
            return Err("the run is over before its rate could change".to_owned());
        }
        if self.changes.len() == CHANGES_MAX {
            return Err(format!("the rate was changed {CHANGES_MAX} times, and stays as it is now"));
        }
        match wish {
            RateWish::Pause => self.is_paused = !self.is_paused,
            RateWish::Scale(factor) => {
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
