//! A rate that is changed by hand while a run is measured, as the workers follow it.
//!
//! Every worker knows a change before its moment: a change is published well ahead, and workers look for changes
//! whenever they hand over a slice, before they serve requests that are due by then. So all workers agree on the due
//! time of every request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pummel_logic::arrival::RateCurve;
use pummel_logic::protocol::Codec;
use pummel_logic::time::{NEVER, Nanos};

use crate::worker::population::Population;
use crate::worker::state::WorkerState;

/// The rate that all workers follow.
#[derive(Debug)]
pub struct SteeredRate {
    /// Number of changes of the rate.
    version: AtomicU64,
    /// The moment of the last change, in nanoseconds from the beginning of the measured phase, and the rate with all changes.
    state: Mutex<(Nanos, Arc<RateCurve>)>,
}

impl SteeredRate {
    /// A rate that was not changed yet.
    pub fn new(curve: Arc<RateCurve>) -> SteeredRate {
        SteeredRate { version: AtomicU64::new(0), state: Mutex::new((0, curve)) }
    }

    /// The rate with all changes so far.
    pub fn curve(&self) -> Arc<RateCurve> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Publishes a change from `at_ns` on, in nanoseconds from the beginning of the measured phase: `curve` is the rate before
    /// that with the new one behind it. Workers have to see it before that moment.
    pub fn publish(&self, at_ns: Nanos, curve: Arc<RateCurve>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (at_ns, curve);
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// One worker's view of a rate that is changed by hand.
#[derive(Debug)]
pub struct Follower {
    rate: Arc<SteeredRate>,
    seen: u64,
}

impl Follower {
    /// A follower that has seen no change.
    pub fn new(rate: Arc<SteeredRate>) -> Follower {
        Follower { rate, seen: 0 }
    }

    /// Looks for changes, and moves the clients whose rate changes to the new rate.
    pub(super) fn look<C: Codec>(&mut self, population: &mut Population, state: &mut WorkerState<C>) {
        let version = self.rate.version.load(Ordering::Acquire);
        if version == self.seen {
            return;
        }
        self.seen = version;
        // Where several changes came at once, the first of them is the moment from which due times may differ: those before it are
        // the same, so that to compute all of them again is right too.
        let curve = self.rate.curve();
        for entry in &mut state.entries {
            if entry.client.group() == 0 {
                entry.client.follow_rate(&curve);
            }
            entry.due = NEVER;
        }
        state.due.clear();
        population.wake_all(state);
    }
}
