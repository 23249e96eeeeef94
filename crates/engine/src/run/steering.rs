//! Requests to change the rate of a run while it is measured, and the rate that its workers follow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pummel_logic::arrival::{RateCurve, steps};
use pummel_logic::plan::Plan;
use pummel_logic::time::Nanos;

use crate::worker::steering::SteeredRate;

/// Most requests that wait for the run.
const WISHES_MAX: usize = 64;

/// A wish to change the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateWish {
    /// Pauses the load, or resumes it at its previous rate.
    Pause,
    /// Multiplies the rate by this factor. While the load is paused, that is the rate at which it will resume.
    Scale(f64),
}

/// Requests to change the rate of a run, which wait here until the run takes them.
#[derive(Debug, Default)]
pub struct Steering(Mutex<VecDeque<(Nanos, RateWish)>>);

impl Steering {
    /// Adds a request to change the rate at `at`, on the monotonic clock. Returns false if too many requests wait.
    pub fn wish(&self, at: Nanos, wish: RateWish) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < WISHES_MAX;
        if has_room {
            waiting.push_back((at, wish));
        }
        has_room
    }

    /// Takes the request that has waited for the longest time.
    pub(super) fn take(&self) -> Option<(Nanos, RateWish)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The rate that the workers of a steered run follow; `None` where the run is not steered.
pub(super) fn steered_rate(plan: &Plan, steering: Option<&Arc<Steering>>) -> Option<Arc<SteeredRate>> {
    let rate = plan.groups.first()?.rate?;
    steering.map(|_| Arc::new(SteeredRate::new(Arc::new(RateCurve::of(&steps(rate, &[]))))))
}
