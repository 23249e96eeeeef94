//! What is said on standard error, beside the report.
//!
//! A thread of its own writes it, so that a terminal that is held, or a pipe that is not read, holds up neither the run
//! nor its results. What waits has a limit; lines beyond it are dropped, and their number is said when there is room.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of text that wait to be written, at most; a drawing counts as [`DRAWING_BYTES`].
pub const TEXT_WAITING_MAX_BYTES: usize = 8 << 20;

/// What a drawing takes of the memory for what waits.
const DRAWING_BYTES: usize = 256;

/// How long [`settle`] waits for a reader that takes nothing.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Says a line. When there is no reader any more, because the terminal or the pipe is gone or full, the run goes on: its
/// report still matters.
pub fn say(line: impl Display) {
    write(format!("{line}\n"));
}

/// Writes text as it is, like [`say`].
pub fn write(text: String) {
    standard_error().add(Item::Text(text));
}

/// Does something that writes to standard error, after all that was said before and on the thread that writes it.
pub fn draw(drawing: impl FnOnce() + Send + 'static) {
    standard_error().add(Item::Drawing(Box::new(drawing)));
}

/// Waits until everything is written that was said so far, or no longer than a second while the reader takes nothing.
pub fn settle() {
    if let Some(queue) = STANDARD_ERROR.get() {
        queue.settle(SETTLE_MAX);
    }
}

static STANDARD_ERROR: OnceLock<Arc<Queue>> = OnceLock::new();

fn standard_error() -> &'static Arc<Queue> {
    STANDARD_ERROR.get_or_init(|| {
        let queue = Arc::new(Queue::default());
        let writer = Arc::clone(&queue);
        let spawned =
            thread::Builder::new().name("stderr".to_owned()).spawn(move || writer.work(&mut io::stderr()));
        if spawned.is_err() {
            queue.state().has_writer = false;
        }
        queue
    })
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// Something was added, or written.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Item>,
    /// What they take of the memory for what waits.
    waiting_bytes: usize,
    /// An item is being written.
    is_writing: bool,
    /// Items that were written.
    written: u64,
    /// Items that found no room since it was said last.
    dropped: u64,
    /// Waiting was given up, and nothing was written since.
    is_stuck: bool,
    /// A thread writes.
    has_writer: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_writing: false,
            written: 0,
            dropped: 0,
            is_stuck: false,
            has_writer: true,
        }
    }
}

enum Item {
    Text(String),
    Drawing(Box<dyn FnOnce() + Send>),
}

impl std::fmt::Debug for Item {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Text(text) => write!(to, "{text:?}"),
            Item::Drawing(_) => to.write_str("a drawing"),
        }
    }
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            // Short lines take memory beside their text.
            Item::Text(text) => text.len().max(DRAWING_BYTES / 4),
            Item::Drawing(_) => DRAWING_BYTES,
        }
    }

    fn write(self, to: &mut impl Write) {
        match self {
            // There is no other place to say that it could not be written.
            Item::Text(text) => _ = to.write_all(text.as_bytes()),
            Item::Drawing(draw) => draw(),
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, item: Item) {
        let mut state = self.state();
        if !state.has_writer {
            return item.write(&mut io::stderr());
        }
        if state.waiting_bytes + item.bytes() > TEXT_WAITING_MAX_BYTES {
            state.dropped += 1;
            return;
        }
        state.waiting_bytes += item.bytes();
        state.waiting.push_back(item);
        self.changed.notify_all();
    }

    /// Writes what is added, for ever.
    fn work(&self, to: &mut impl Write) {
        loop {
            self.next().write(to);
            let mut state = self.state();
            (state.is_writing, state.is_stuck) = (false, false);
            state.written += 1;
            self.changed.notify_all();
        }
    }

    /// The next item to be written: after the last of those that waited, how many found no room.
    fn next(&self) -> Item {
        let mut state = self.state();
        loop {
            let item = state.waiting.pop_front();
            state.waiting_bytes -= item.as_ref().map_or(0, Item::bytes);
            let item = item.or_else(|| {
                let dropped = std::mem::take(&mut state.dropped);
                let text =
                    || Item::Text(format!("({dropped} lines were dropped: they were not read in time)\n"));
                (dropped > 0).then(text)
            });
            if let Some(item) = item {
                state.is_writing = true;
                return item;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn settle(&self, patience: Duration) {
        let mut state = self.state();
        let (mut written, mut since) = (state.written, Instant::now());
        while (state.is_writing || !state.waiting.is_empty() || state.dropped > 0) && !state.is_stuck {
            if state.written != written {
                (written, since) = (state.written, Instant::now());
            }
            let left = patience.saturating_sub(since.elapsed());
            state.is_stuck = left.is_zero();
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// A place that takes nothing before it is told so.
    struct Held {
        go: Receiver<()>,
        taken: SyncSender<Vec<u8>>,
    }

    impl Write for Held {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // When the test is over, whatever waits may be written.
            let _ = self.go.recv();
            let _ = self.taken.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_takes_nothing_holds_nothing_up_and_learns_later_how_much_was_dropped() {
        const LINE_BYTES: usize = TEXT_WAITING_MAX_BYTES / 16;
        let queue = Arc::new(Queue::default());
        let ((let_go, go), (taken, read)) = (sync_channel(0), sync_channel(100));
        let writer = Arc::clone(&queue);
        thread::spawn(move || writer.work(&mut Held { go, taken }));
        queue.add(Item::Text("first\n".to_owned()));
        while !queue.state().is_writing {
            thread::yield_now();
        }
        for _ in 0..16 + 7 {
            queue.add(Item::Text("x".repeat(LINE_BYTES)));
        }
        queue.settle(Duration::from_millis(1));
        assert!(queue.state().is_stuck, "the wait was given up");
        assert_eq!(queue.state().dropped, 7);
        // What has stood still is not waited for again.
        queue.settle(Duration::from_secs(3600));
        for _ in 0..1 + 16 + 1 {
            let_go.send(()).unwrap();
        }
        queue.settle(Duration::from_secs(3600));
        let lines: Vec<Vec<u8>> = read.try_iter().collect();
        assert_eq!(lines.len(), 1 + 16 + 1);
        assert_eq!((&lines[0][..], lines[1].len()), (&b"first\n"[..], LINE_BYTES));
        assert_eq!(lines[17], b"(7 lines were dropped: they were not read in time)\n");
    }
}
