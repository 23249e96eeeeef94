//! Commands that change the rate of a run while it is measured, and the rate that its workers follow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pummel_logic::arrival::{RateCurve, steps};
use pummel_logic::plan::Plan;
use pummel_logic::time::Nanos;

use crate::worker::steering::SteeredRate;

/// Most commands that wait to be applied.
const COMMANDS_MAX: usize = 64;

/// A command that changes the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateCommand {
    /// Pauses the load; a paused load resumes at the rate it had.
    Pause,
    /// Multiplies the rate by this factor. While the load is paused, the rate at which it resumes is multiplied.
    Scale(f64),
}

/// The queue of commands between the thread that reads keys and the run.
#[derive(Debug, Default)]
pub struct Steering(Mutex<VecDeque<(Nanos, RateCommand)>>);

impl Steering {
    /// Queues `command`, given at `at` on the monotonic clock. Returns false when the queue is full.
    pub fn send(&self, at: Nanos, command: RateCommand) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < COMMANDS_MAX;
        if has_room {
            waiting.push_back((at, command));
        }
        has_room
    }

    /// Takes the oldest command that waits.
    pub(super) fn take(&self) -> Option<(Nanos, RateCommand)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The rate that the workers of a steered run follow; `None` where the run is not steered.
pub(super) fn steered_rate(plan: &Plan, steering: Option<&Arc<Steering>>) -> Option<Arc<SteeredRate>> {
    let rate = plan.groups.first()?.rate?;
    steering.map(|_| Arc::new(SteeredRate::new(Arc::new(RateCurve::of(&steps(rate, &[]))))))
}
