//! The requests of a trace on their way from its reader to one worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use pummel_logic::protocol::Codec;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_logic::workload::rows::RowBatch;

use crate::worker::state::WorkerState;

/// Interval at which a worker looks for requests if no event wakes it.
const LOOK_NS: Nanos = MILLISECOND;

/// Longest wait for the reader by a worker with a simulated clock, since the reader runs in real time.
const SIMULATED_WAIT: Duration = Duration::from_secs(5);

/// The state that the reader of a trace shares with a worker.
#[derive(Debug, Default)]
pub struct FeedState {
    /// Number of the first part that is not over for the worker; requests of earlier parts are not wanted any more.
    pub over_before: AtomicU32,
    /// Flag: the reader waits for room at this worker, and hands no requests to others meanwhile.
    pub is_full: AtomicBool,
}

/// The worker's end of the queue of its requests.
#[derive(Debug)]
pub struct RowFeed {
    batches: Receiver<RowBatch>,
    /// The states of all workers of the process.
    states: Arc<[FeedState]>,
    worker: usize,
    /// The number of the part that is replayed.
    part: u32,
    is_over: bool,
    /// The time since which the worker has had no request; [`NEVER`] while it has some.
    empty_since: Nanos,
    /// Whether the clock is a simulated one, so that the worker waits for the reader.
    waits: bool,
}

impl RowFeed {
    /// The feed of a worker before its first part.
    pub fn new(batches: Receiver<RowBatch>, states: Arc<[FeedState]>, worker: usize, waits: bool) -> RowFeed {
        RowFeed { batches, states, worker, part: 0, is_over: true, empty_since: NEVER, waits }
    }

    /// Begins part `part`.
    pub fn begin(&mut self, part: u32) {
        (self.part, self.is_over, self.empty_since) = (part, false, NEVER);
    }

    /// Ends the current part; requests of it that are left are dropped.
    pub fn end(&mut self) {
        self.is_over = true;
        self.states[self.worker].over_before.store(self.part + 1, Ordering::Release);
    }

    /// The time at which the worker has to look for requests again.
    pub fn next_look(&self, now: Nanos) -> Nanos {
        if self.is_over { NEVER } else { now + LOOK_NS }
    }

    /// Whether more requests may come.
    pub fn is_open(&self) -> bool {
        !self.is_over
    }

    /// Takes requests from the queue as long as there is room, and wakes their clients.
    pub fn look<C: Codec>(&mut self, state: &mut WorkerState<C>, now: Nanos) {
        while !self.is_over && state.maker.wants_rows() {
            match self.receive(state) {
                Some(batch) if batch.part == self.part => self.take(state, &batch),
                // Requests of a part that is over.
                Some(_) => {}
                None => break,
            }
        }
        self.note_emptiness(state, now);
    }

    fn receive<C: Codec>(&mut self, state: &WorkerState<C>) -> Option<RowBatch> {
        let is_low = self.waits && state.maker.waiting_rows() == 0;
        let received = match is_low {
            false => self.batches.try_recv(),
            true => self.batches.recv_timeout(SIMULATED_WAIT).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        };
        match received {
            Ok(batch) => Some(batch),
            Err(TryRecvError::Empty) => None,
            // The reader has ended.
            Err(TryRecvError::Disconnected) => {
                let mut end = RowBatch::of_part(self.part);
                end.ends_part = true;
                Some(end)
            }
        }
    }

    fn take<C: Codec>(&mut self, state: &mut WorkerState<C>, batch: &RowBatch) {
        let mut woken = std::mem::take(&mut state.fed);
        state.maker.take_rows(batch, |client| woken.push(client as u32));
        for client in woken.drain(..) {
            state.wake(client as usize);
        }
        state.fed = woken;
        if batch.ends_part {
            self.is_over = true;
            // Every client learns that nothing follows.
            for client in 0..state.entries.len() {
                state.wake(client);
            }
        }
    }

    /// Adds the time in which no request waits although the reader could hand over more.
    fn note_emptiness<C: Codec>(&mut self, state: &mut WorkerState<C>, now: Nanos) {
        let is_held_up = || self.states.iter().any(|state| state.is_full.load(Ordering::Relaxed));
        if self.is_over || state.maker.waiting_rows() > 0 || self.waits || is_held_up() {
            self.empty_since = NEVER;
            return;
        }
        if self.empty_since != NEVER {
            state.maker.note_starved(now.saturating_sub(self.empty_since));
        }
        self.empty_since = now;
    }
}
