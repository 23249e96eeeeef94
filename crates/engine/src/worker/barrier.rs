//! The barrier at which the workers meet between phases and agree on the beginning of the next phase.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pummel_logic::time::{NEVER, Nanos};

/// The value of `ends_at` in a run that was stopped; it is before every other time.
const STOPPED: Nanos = 0;

/// A barrier for a fixed number of workers, used again for every phase.
#[derive(Debug)]
pub struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
    /// Time at which the current phase ends before its planned end, on the monotonic clock: [`NEVER`] if it does not,
    /// and [`STOPPED`] if the run was stopped. Every worker reads it in every turn, while others write to the state.
    ends_at: CachePadded<AtomicU64>,
}

/// Readiness of a worker for the next phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The worker can begin.
    Ready,
    /// The worker has no client that can go on, and keeps no other worker from going on.
    Idle,
    /// The run does not go on without this worker.
    Unable,
}

/// A value on cache lines of its own: two of 64 bytes, since processors fetch neighbours in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct CachePadded<T>(T);

#[derive(Debug, Default)]
struct BarrierState {
    /// Workers that take part.
    workers: usize,
    arrived: usize,
    round: u64,
    /// The latest time that an arrived worker has passed.
    latest: Nanos,
    /// Number of workers that have nothing left to do in the current phase.
    idle: usize,
    /// Whether the run has workers in other processes, which are assumed to go on.
    others: bool,
    /// Whether a worker that arrived is unable to go on.
    unable: bool,
    /// Whether a worker that arrived is ready.
    ready: bool,
    verdict: Option<Nanos>,
}

impl Barrier {
    /// A barrier for `workers` workers.
    pub fn new(workers: usize) -> Barrier {
        let state = BarrierState { workers, ..BarrierState::default() };
        Barrier {
            state: Mutex::new(state),
            changed: Condvar::new(),
            ends_at: CachePadded(AtomicU64::new(NEVER)),
        }
    }

    /// The barrier of a run that has workers in other processes as well if `others` is set. A phase is then never over
    /// because all workers here are idle.
    pub fn among_others(self, others: bool) -> Barrier {
        self.lock().others = others;
        self
    }

    fn lock(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all workers, each of which passes its clock's time and its readiness. Returns to all of them the latest
    /// of the times, or `None` when one of them is unable to go on, none is ready, or the run was stopped.
    pub fn wait(&self, now: Nanos, readiness: Readiness) -> Option<Nanos> {
        let mut state = self.lock();
        state.arrived += 1;
        state.latest = state.latest.max(now);
        state.unable |= readiness == Readiness::Unable;
        state.ready |= readiness == Readiness::Ready;
        if state.arrived >= state.workers {
            return self.release(&mut state);
        }
        let round = state.round;
        while state.round == round {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.verdict
    }

    /// Notes that a worker has nothing left to do in the current phase, since all its connections are lost. A worker
    /// calls this at most once in a phase.
    pub fn mark_idle(&self, now: Nanos) {
        let mut state = self.lock();
        state.idle += 1;
        state.latest = state.latest.max(now);
    }

    /// Time since which no worker has anything left to do in the current phase, which ends early then; `None` as long
    /// as one worker goes on, in which case the idle workers account for the whole phase as well.
    pub fn all_idle(&self) -> Option<Nanos> {
        let state = self.lock();
        (!state.others && state.idle + state.arrived >= state.workers).then_some(state.latest)
    }

    /// Leaves the barrier for good and stops the run, since the other workers cannot go on without this one.
    pub fn leave(&self) {
        self.stop();
        let mut state = self.lock();
        // A worker that panics after it left calls this twice.
        state.workers = state.workers.saturating_sub(1);
        if state.arrived > 0 && state.arrived >= state.workers {
            self.release(&mut state);
        }
    }

    /// Releases all workers with their common result, and begins the next round.
    fn release(&self, state: &mut BarrierState) -> Option<Nanos> {
        let goes_on = state.ready && !state.unable && !self.is_stopped();
        let verdict = goes_on.then_some(state.latest);
        let BarrierState { workers, others, round, .. } = *state;
        *state = BarrierState { workers, others, round: round + 1, verdict, ..BarrierState::default() };
        let ends_at = self.ends_at.0.load(Ordering::Relaxed);
        if ends_at != STOPPED {
            // A stop that comes in between stays.
            let _ = self.ends_at.0.compare_exchange(ends_at, NEVER, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.changed.notify_all();
        verdict
    }

    /// Stops the run: no further phase begins, and no more requests are sent in the current one.
    pub fn stop(&self) {
        self.ends_at.0.store(STOPPED, Ordering::Relaxed);
    }

    /// The number of the last completed round, by which [`Barrier::end_phase`] identifies the phase that follows it.
    pub fn round(&self) -> u64 {
        self.lock().round
    }

    /// Ends the phase after round number `round` at `at`, on the monotonic clock, unless it ends earlier or is over.
    /// All workers see this within the time between two slices.
    pub fn end_phase(&self, round: u64, at: Nanos) {
        // No round is over while this thread looks at its number.
        let state = self.lock();
        if state.round == round {
            self.ends_at.0.fetch_min(at.max(STOPPED + 1), Ordering::Relaxed);
        }
    }

    /// Time at which the current phase ends before its planned end: [`NEVER`] if it does not, and a time in the past
    /// if the run was stopped.
    #[inline]
    pub fn ends_at(&self) -> Nanos {
        self.ends_at.0.load(Ordering::Relaxed)
    }

    /// Whether the run was stopped.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.ends_at() == STOPPED
    }
}

#[cfg(test)]
mod tests {
    use super::Readiness::{Idle, Ready, Unable};
    use super::*;

    #[test]
    fn what_workers_read_in_every_turn_is_on_no_line_that_others_write_to() {
        let line = |offset: usize| offset / 128;
        let ends_at = std::mem::offset_of!(Barrier, ends_at);
        assert_eq!(ends_at % 128, 0);
        assert_ne!(line(ends_at), line(std::mem::offset_of!(Barrier, state)));
        assert_ne!(line(ends_at), line(std::mem::offset_of!(Barrier, changed)));
        assert_eq!(size_of::<CachePadded<AtomicU64>>(), 128);
        // Data beside a barrier shares no cache line with it either, since a barrier begins and ends with a line.
        assert_eq!((align_of::<Barrier>(), size_of::<Barrier>() % 128), (128, 0));
    }

    #[test]
    fn all_leave_with_the_latest_time_and_one_who_cannot_go_on_holds_all_back() {
        let barrier = Barrier::new(3);
        let rounds = |brought: [Nanos; 3], readiness: [Readiness; 3]| -> Vec<Option<Nanos>> {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..3)
                    .map(|n| {
                        scope.spawn({
                            let barrier = &barrier;
                            move || barrier.wait(brought[n], readiness[n])
                        })
                    })
                    .collect();
                workers.into_iter().map(|worker| worker.join().expect("a worker ends")).collect()
            })
        };
        assert_eq!(rounds([5, 9, 7], [Ready; 3]), [Some(9); 3]);
        assert_eq!(rounds([10, 11, 12], [Ready, Unable, Ready]), [None; 3]);
        assert_eq!(rounds([20, 11, 12], [Ready, Idle, Idle]), [Some(20); 3]);
        assert_eq!(rounds([30, 31, 32], [Idle; 3]), [None; 3], "there is no worker to go on with");
        barrier.stop();
        assert_eq!(rounds([40, 41, 42], [Ready; 3]), [None; 3]);
    }

    #[test]
    fn a_phase_ends_early_at_the_first_moment_that_is_named_and_the_next_phase_does_not() {
        let barrier = Barrier::new(1);
        assert_eq!(barrier.wait(5, Ready), Some(5));
        let round = barrier.round();
        assert_eq!(barrier.ends_at(), NEVER);
        barrier.end_phase(round, 80);
        barrier.end_phase(round, 70);
        barrier.end_phase(round, 90);
        assert_eq!((barrier.ends_at(), barrier.is_stopped()), (70, false));
        assert_eq!(barrier.wait(75, Ready), Some(75), "an early end is no reason not to go on");
        assert_eq!(barrier.ends_at(), NEVER);
        barrier.end_phase(round, 100);
        assert_eq!(barrier.ends_at(), NEVER, "that phase is over");
        barrier.stop();
        barrier.end_phase(barrier.round(), 100);
        assert!(barrier.is_stopped(), "a stop stays");
    }

    #[test]
    fn a_phase_is_over_when_the_last_worker_fell_idle_or_came() {
        let barrier = Barrier::new(3);
        barrier.mark_idle(10);
        assert_eq!(barrier.all_idle(), None);
        barrier.mark_idle(30);
        assert_eq!(barrier.all_idle(), None);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| barrier.wait(20, Ready));
            while barrier.all_idle().is_none() {
                std::thread::yield_now();
            }
            assert_eq!(barrier.all_idle(), Some(30));
            let others = [scope.spawn(|| barrier.wait(31, Ready)), scope.spawn(|| barrier.wait(32, Ready))];
            assert_eq!(first.join().expect("a worker ends"), Some(32));
            for other in others {
                assert_eq!(other.join().expect("a worker ends"), Some(32));
            }
        });
        assert_eq!(barrier.all_idle(), None, "the next phase begins with all");
    }

    #[test]
    fn a_phase_with_workers_elsewhere_is_not_over_because_all_here_are_idle() {
        let barrier = Barrier::new(1).among_others(true);
        barrier.mark_idle(10);
        assert_eq!(barrier.all_idle(), None);
        assert_eq!(barrier.wait(20, Ready), Some(20));
        barrier.mark_idle(30);
        assert_eq!(barrier.all_idle(), None);
    }

    #[test]
    fn one_who_leaves_is_not_waited_for() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait(5, Ready));
            barrier.leave();
            assert_eq!(waits.join().expect("a worker ends"), None);
        });
    }
}
