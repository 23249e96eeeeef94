//! The meeting places of a run and its observer: the moments at which the observer looks, how far it came, and the newest
//! intervals of servers on their way to the collecting thread.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pummel_measure::evidence::server_stats::ServerInterval;

/// Sleep of a worker that waits for the observer, before it looks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(10);

/// A moment of a run, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The run has not opened its connections yet.
    #[default]
    Start,
    /// The run's own connections are open.
    Open,
    /// The first measured phase is about to begin, and nothing is under way.
    Before,
    /// The last measured phase has ended, and nothing is under way; connections are open still.
    After,
    /// The run is over.
    End,
}

/// The moments of one run: its workers announce them, and its observer says which of them it has looked at.
#[derive(Debug)]
pub struct Moments {
    state: Mutex<MomentsState>,
    changed: Condvar,
    /// Numbers of the workers' threads; 0 for a worker without a thread.
    threads: Vec<AtomicU32>,
}

/// The state of the moments, and what the run and its observer tell each other beside them.
#[derive(Debug, Default)]
pub struct MomentsState {
    announced: Moment,
    observed: Moment,
    /// Whether the run went on before the observer had looked at a moment.
    pub late: bool,
    /// Whether a server took connections of the run and then refused them.
    pub refused: bool,
    /// Whether a server has reported an eviction since the run began.
    pub evicted: bool,
    /// The reason why no server reports its evictions; `None` if it is not known.
    pub unreported: Option<String>,
}

impl Moments {
    /// The moments of a run with this many workers.
    pub fn new(workers: usize) -> Moments {
        Moments {
            state: Mutex::default(),
            changed: Condvar::new(),
            threads: (0..workers).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// The state of the moments, which stays as it is while it is held.
    pub fn state(&self) -> MutexGuard<'_, MomentsState> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Notes the number of a worker's thread.
    pub fn set_thread(&self, worker: usize, number: u32) {
        self.threads[worker].store(number, Ordering::Relaxed);
    }

    /// The numbers of the workers' threads; `None` for a worker that has not begun.
    pub fn threads(&self) -> Vec<Option<u32>> {
        let number = |thread: &AtomicU32| Some(thread.load(Ordering::Relaxed)).filter(|&number| number != 0);
        self.threads.iter().map(number).collect()
    }

    /// Announces that a moment has come. Moments never go back.
    pub fn announce(&self, moment: Moment) {
        let mut state = self.state();
        state.announced = state.announced.max(moment);
        self.changed.notify_all();
    }

    /// The last moment that has come.
    pub fn announced(&self) -> Moment {
        self.state().announced
    }

    /// Waits until the observer has looked at a moment, until `limit` is over, or until `stopped` returns true. The run goes
    /// on then, so that a look that is not over is late.
    pub fn wait_until_observed(&self, moment: Moment, limit: Duration, stopped: &dyn Fn() -> bool) {
        let end = Instant::now() + limit;
        let mut state = self.state();
        while state.observed < moment && !stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left.min(LOOK));
            state = waited.unwrap_or_else(|broken| broken.into_inner()).0;
        }
        state.late |= state.observed < moment;
    }

    /// Waits for a moment after `moment`, and returns the last that has come.
    pub fn wait_for_later(&self, moment: Moment) -> Moment {
        let mut state = self.state();
        while state.announced <= moment {
            state = self.changed.wait(state).unwrap_or_else(|broken| broken.into_inner());
        }
        state.announced
    }

    /// Waits for a moment after `moment`, at most until `limit` is over; `None` where none has come by then.
    pub fn wait_for_later_within(&self, moment: Moment, limit: Duration) -> Option<Moment> {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.announced <= moment);
        let state = waited.unwrap_or_else(|broken| broken.into_inner()).0;
        Some(state.announced).filter(|&announced| announced > moment)
    }

    /// Notes that the observer has looked at a moment.
    pub fn set_observed(&self, moment: Moment) {
        self.state().observed = moment;
        self.changed.notify_all();
    }
}

/// The newest interval of each server that is asked within the measured phases, by its number. A newer interval
/// replaces one that was not taken, so there is at most one of each.
#[derive(Debug, Default)]
pub struct Newest(Mutex<Option<Vec<Option<ServerInterval>>>>);

impl Newest {
    /// Leaves intervals for the collecting thread.
    pub fn leave(&self, intervals: Vec<Option<ServerInterval>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(intervals);
    }

    /// Takes the statistics that were left since the last call; `None` if there are none.
    pub fn take(&self) -> Option<Vec<Option<ServerInterval>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_is_observed_is_waited_for_no_longer() {
        let moments = Moments::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(moments.wait_for_later(Moment::Start), Moment::Before);
                moments.set_observed(Moment::Before);
            });
            moments.announce(Moment::Before);
            moments.wait_until_observed(Moment::Before, Duration::from_secs(60), &|| false);
            assert_eq!(moments.state().observed, Moment::Before);
            assert!(!moments.state().late);
        });
        moments.announce(Moment::Open);
        assert_eq!(moments.announced(), Moment::Before, "moments never go back");
    }

    #[test]
    fn an_observer_that_does_not_come_is_waited_for_no_longer_than_said() {
        let moments = Moments::new(0);
        moments.wait_until_observed(Moment::Before, Duration::from_millis(1), &|| false);
        assert!(moments.state().late);
        moments.wait_until_observed(Moment::Before, Duration::from_secs(600), &|| true);
    }

    #[test]
    fn workers_are_known_by_the_numbers_of_their_threads() {
        let moments = Moments::new(2);
        moments.set_thread(1, 4711);
        assert_eq!(moments.threads(), [None, Some(4711)]);
    }

    #[test]
    fn newer_intervals_replace_those_that_nobody_took_and_each_is_taken_once() {
        let newest = Newest::default();
        assert_eq!(newest.take(), None);
        let ending_at = |end_ns| vec![Some(ServerInterval { end_ns, ..ServerInterval::default() }), None];
        newest.leave(ending_at(1));
        newest.leave(ending_at(2));
        assert_eq!(newest.take(), Some(ending_at(2)));
        assert_eq!(newest.take(), None);
    }
}
