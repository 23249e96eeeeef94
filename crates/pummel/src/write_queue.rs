//! A queue with a limit to a thread that writes, so that a place that is read slowly, or not at all, holds up no run.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait asks how long it may last.
const ASK: Duration = Duration::from_millis(50);

/// A piece of what is written.
pub trait Piece {
    /// What the piece takes of the queue's limit.
    fn size(&self) -> usize;

    /// What the piece counts for where it is dropped: its lines, its rows.
    fn count(&self) -> u64;
}

/// A queue of pieces, for any number of threads that add and one that writes.
#[derive(Debug)]
pub struct WriteQueue<T> {
    /// Size of the pieces that wait or are being written, at most.
    size_max: usize,
    /// Makes the piece that says how many were dropped, where that is written to the same place.
    notice: Option<fn(u64) -> T>,
    state: Mutex<State<T>>,
    /// A piece was added or written, or the end was said.
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// Size of the pieces that wait or are being written.
    size: usize,
    /// What those pieces count for.
    count: u64,
    /// What the pieces count for that are not written, and will not be.
    dropped: u64,
    /// Parts that were written.
    steps: u64,
    /// A wait was given up, and nothing was written since.
    is_stuck: bool,
    /// No more will be added.
    is_ended: bool,
    /// How writing ended.
    result: Option<io::Result<()>>,
}

/// How long a wait lasts while nothing is written, and how long in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest time in which nothing is written.
    pub stall: Duration,
    /// The longest time in all.
    pub total: Duration,
}

/// What became of all pieces.
#[derive(Debug)]
pub struct Finished {
    /// What the pieces count for that were not written.
    pub dropped: u64,
    /// Whether all others could be written; of the kind `TimedOut` where the wait was given up.
    pub result: io::Result<()>,
}

impl<T: Piece> WriteQueue<T> {
    /// An empty queue for pieces of this size together.
    pub fn new(size_max: usize) -> WriteQueue<T> {
        let state = State {
            waiting: VecDeque::new(),
            size: 0,
            count: 0,
            dropped: 0,
            steps: 0,
            is_stuck: false,
            is_ended: false,
            result: None,
        };
        WriteQueue { size_max, notice: None, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// An empty queue that adds a piece of its own, which says how many were dropped, when there is room again.
    pub fn with_notice(size_max: usize, notice: fn(u64) -> T) -> WriteQueue<T> {
        WriteQueue { notice: Some(notice), ..WriteQueue::new(size_max) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a piece; drops it where too much waits.
    pub fn add(&self, piece: T) {
        self.add_within(piece, self.size_max);
    }

    /// Adds a piece however much waits.
    pub fn add_beyond_limit(&self, piece: T) {
        self.add_within(piece, usize::MAX);
    }

    fn add_within(&self, piece: T, size_max: usize) {
        let mut state = self.state();
        if state.result.is_some() || state.size.saturating_add(piece.size()) > size_max {
            state.dropped += piece.count();
            return;
        }
        state.push(piece);
        self.changed.notify_all();
    }

    /// All pieces that wait, when there are some; `None` when no more come.
    pub fn next(&self) -> Option<VecDeque<T>> {
        let mut state = self.state();
        loop {
            if state.waiting.is_empty()
                && state.dropped > 0
                && let Some(notice) = self.notice
            {
                let dropped = std::mem::take(&mut state.dropped);
                state.push(notice(dropped));
            }
            if !state.waiting.is_empty() {
                return Some(std::mem::take(&mut state.waiting));
            }
            if state.is_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a part of this size, which counts for so much, was written.
    pub fn wrote(&self, size: usize, count: u64) {
        let mut state = self.state();
        // Less remains where the wait for it was given up.
        state.size = state.size.saturating_sub(size);
        state.count = state.count.saturating_sub(count);
        state.steps += 1;
        state.is_stuck = false;
        self.changed.notify_all();
    }

    /// Notes how writing ended: nothing more is written.
    pub fn end(&self, result: io::Result<()>) {
        let mut state = self.state();
        state.drop_all();
        state.result = Some(result);
        self.changed.notify_all();
    }

    /// Says that no more is added, and waits until everything is written, as long as `patience` says, which is asked again
    /// and again.
    pub fn finish(&self, patience: impl Fn() -> Patience) -> Finished {
        self.state().is_ended = true;
        self.changed.notify_all();
        let mut state = self.wait(|state| state.result.is_some(), patience);
        let result = state.result.take().unwrap_or_else(|| {
            state.drop_all();
            Err(io::Error::new(io::ErrorKind::TimedOut, "what reads it does not take it"))
        });
        Finished { dropped: state.dropped, result }
    }

    /// Waits until everything is written that was added so far. What was given up once is not waited for again before
    /// something is written.
    pub fn settle(&self, stall: Duration) {
        let is_over = |state: &State<T>| state.is_stuck || state.is_idle();
        let mut state = self.wait(is_over, || Patience { stall, total: Duration::MAX });
        state.is_stuck = !state.is_idle();
    }

    /// Waits until it is over, or the patience is.
    fn wait(
        &self,
        is_over: impl Fn(&State<T>) -> bool,
        patience: impl Fn() -> Patience,
    ) -> MutexGuard<'_, State<T>> {
        let mut state = self.state();
        let begun = Instant::now();
        let (mut steps, mut since) = (state.steps, begun);
        while !is_over(&state) {
            if state.steps != steps {
                (steps, since) = (state.steps, Instant::now());
            }
            let Patience { stall, total } = patience();
            let left = stall.saturating_sub(since.elapsed()).min(total.saturating_sub(begun.elapsed()));
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left.min(ASK));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

impl<T: Piece> State<T> {
    fn push(&mut self, piece: T) {
        self.size += piece.size();
        self.count += piece.count();
        self.waiting.push_back(piece);
    }

    /// Drops what waits or is being written.
    fn drop_all(&mut self) {
        self.dropped += std::mem::take(&mut self.count);
        self.size = 0;
        self.waiting.clear();
    }

    /// Whether nothing waits, is being written, or is to be said.
    fn is_idle(&self) -> bool {
        self.size == 0 && self.waiting.is_empty() && self.dropped == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;

    /// Ten in size, and one in count for each.
    #[derive(Debug, PartialEq)]
    struct Ten(u64);

    impl Piece for Ten {
        fn size(&self) -> usize {
            10
        }

        fn count(&self) -> u64 {
            self.0
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    fn patience(stall: Duration, total: Duration) -> impl Fn() -> Patience {
        move || Patience { stall, total }
    }

    #[test]
    fn pieces_beyond_the_limit_are_dropped_and_counted_also_while_others_are_written() {
        let queue = WriteQueue::new(25);
        queue.add(Ten(1));
        assert_eq!(queue.next(), Some(VecDeque::from([Ten(1)])));
        queue.add(Ten(2));
        queue.add(Ten(4));
        assert_eq!(queue.state().dropped, 4, "the first is being written");
        queue.add_beyond_limit(Ten(8));
        queue.wrote(10, 1);
        assert_eq!(queue.next(), Some(VecDeque::from([Ten(2), Ten(8)])));
        queue.wrote(20, 10);
        queue.end(Ok(()));
        queue.add(Ten(16));
        let Finished { dropped, result } = queue.finish(patience(LONG, LONG));
        assert!(result.is_ok());
        assert_eq!(dropped, 20);
    }

    #[test]
    fn what_is_not_written_in_time_is_given_up_and_counted() {
        let queue = WriteQueue::new(100);
        queue.add(Ten(1));
        queue.next();
        queue.add(Ten(2));
        for (stall, total) in [(Duration::from_millis(1), LONG), (LONG, Duration::from_millis(1))] {
            let Finished { dropped, result } = queue.finish(patience(stall, total));
            assert_eq!((dropped, result.unwrap_err().kind()), (3, io::ErrorKind::TimedOut));
        }
        // What is written all the same counts for nothing.
        queue.wrote(10, 1);
        assert_eq!(queue.state().dropped, 3);
    }

    #[test]
    fn an_error_drops_what_waits_and_what_comes() {
        let queue = WriteQueue::new(100);
        queue.add(Ten(1));
        queue.end(Err(io::ErrorKind::StorageFull.into()));
        queue.add(Ten(2));
        let Finished { dropped, result } = queue.finish(patience(LONG, LONG));
        assert_eq!((dropped, result.unwrap_err().kind()), (3, io::ErrorKind::StorageFull));
    }

    #[test]
    fn a_notice_of_what_was_dropped_follows_what_waited() {
        let queue = WriteQueue::with_notice(10, Ten);
        queue.add(Ten(1));
        queue.add(Ten(1));
        queue.add(Ten(1));
        queue.settle(Duration::ZERO);
        assert!(queue.state().is_stuck);
        // What has stood still is not waited for again.
        queue.settle(LONG);
        assert_eq!(queue.next(), Some(VecDeque::from([Ten(1)])));
        queue.wrote(10, 1);
        assert!(!queue.state().is_stuck);
        assert_eq!(queue.next(), Some(VecDeque::from([Ten(2)])), "two were dropped");
        queue.wrote(10, 2);
        queue.settle(Duration::ZERO);
        assert!(!queue.state().is_stuck);
    }

    #[test]
    fn progress_prolongs_a_wait_and_the_end_ends_it() {
        let queue = Arc::new(WriteQueue::new(100));
        queue.add(Ten(1));
        let (writer, (go, may)) = (Arc::clone(&queue), sync_channel(0));
        let thread = thread::spawn(move || {
            while let Some(pieces) = writer.next() {
                may.recv().unwrap();
                pieces.iter().for_each(|piece| writer.wrote(piece.size(), piece.count()));
            }
            writer.end(Ok(()));
        });
        go.send(()).unwrap();
        queue.settle(LONG);
        assert!(queue.state().is_idle());
        let Finished { dropped, result } = queue.finish(patience(LONG, LONG));
        assert!(dropped == 0 && result.is_ok());
        thread.join().unwrap();
    }
}
