//! Text that is written while a run goes on: a thread of its own writes it, so that a reader that takes nothing holds up no
//! run.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pummel_engine::sys;

/// Bytes of text that wait to be written, at most. Text beyond them is dropped and its lines are counted.
const WAITING_MAX_BYTES: usize = 32 << 20;

/// How much is written at once to a place that may be read slowly.
const CHUNK_BYTES: usize = 64 * 1024;

/// How often the end looks whether it is still waited for.
const LOOK: Duration = Duration::from_millis(50);

/// How long the end waits for a reader that takes nothing, where it does not wait for as long as that takes.
const STALL: Duration = Duration::from_secs(2);

/// A place for text, with the thread that writes there.
#[derive(Debug)]
pub struct BackgroundText {
    queue: Arc<Queue>,
}

/// How long [`BackgroundText::finish`] waits for a reader that takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as it takes, but for two seconds after an interrupt.
    UntilInterrupt,
    /// For two seconds.
    Short,
}

/// What became of a text.
#[derive(Debug)]
pub struct TextWritten {
    /// Lines that were not written, because they were not taken in time.
    pub dropped_lines: u64,
    /// Whether all others could be written.
    pub result: io::Result<()>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// Text was added or written, or the end was said.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    dropped_lines: u64,
    /// Chunks that were written.
    written: u64,
    /// No more will be added.
    ended: bool,
    /// How writing ended.
    result: Option<io::Result<()>>,
}

impl BackgroundText {
    /// Starts the thread, which calls `open` and writes what is added to the place that this returns.
    ///
    /// # Errors
    /// Returns the system's error when the thread cannot be started.
    pub fn start<W: Write>(open: impl FnOnce() -> io::Result<W> + Send + 'static) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let writer = Arc::clone(&queue);
        let work = move || {
            let result = open().and_then(|mut out| writer.write_all(&mut out));
            writer.state().result = Some(result);
            writer.changed.notify_all();
        };
        thread::Builder::new().name("text".to_owned()).spawn(work)?;
        Ok(BackgroundText { queue })
    }

    /// Starts the thread for standard output.
    ///
    /// # Errors
    /// Returns the system's error when the thread cannot be started.
    pub fn standard_output() -> io::Result<Self> {
        BackgroundText::start(|| {
            let unwritten = |error: io::Error| {
                io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
            };
            sys::check_stdout().map_err(unwritten)?;
            Ok(Explained { out: io::stdout(), explain: unwritten })
        })
    }

    /// Adds text, to be written soon; drops it where too much waits.
    pub fn add(&self, text: &str) {
        self.queue.add(text, WAITING_MAX_BYTES);
    }

    /// Adds the text of a report, which is never dropped while there is a place for it.
    pub fn add_report(&self, text: &str) {
        self.queue.add(text, usize::MAX);
    }

    /// Waits until everything is written.
    pub fn finish(self, patience: Patience) -> TextWritten {
        self.queue.finish(patience, STALL)
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, text: &str, most_bytes: usize) {
        let mut state = self.state();
        if state.result.is_some() || state.waiting.len().saturating_add(text.len()) > most_bytes {
            state.dropped_lines += lines(text.as_bytes());
            return;
        }
        state.waiting.extend_from_slice(text.as_bytes());
        self.changed.notify_all();
    }

    /// Writes what is added until the end is said.
    fn write_all(&self, out: &mut impl Write) -> io::Result<()> {
        while let Some(text) = self.next() {
            for chunk in text.chunks(CHUNK_BYTES) {
                out.write_all(chunk)?;
                self.state().written += 1;
                self.changed.notify_all();
            }
            out.flush()?;
        }
        Ok(())
    }

    /// All text that waits; `None` where no more comes.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        while state.waiting.is_empty() {
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(std::mem::take(&mut state.waiting))
    }

    fn finish(&self, patience: Patience, stall: Duration) -> TextWritten {
        let mut state = self.state();
        state.ended = true;
        self.changed.notify_all();
        let (mut written, mut since) = (state.written, Instant::now());
        loop {
            let result = state.result.take().or_else(|| {
                let is_short = patience == Patience::Short || sys::interrupts() > 0;
                let error = || io::Error::new(io::ErrorKind::TimedOut, "what reads it does not take it");
                (is_short && since.elapsed() >= stall).then(|| Err(error()))
            });
            if let Some(result) = result {
                let waiting = std::mem::take(&mut state.waiting);
                let dropped_lines = state.dropped_lines + lines(&waiting);
                return TextWritten { dropped_lines, result };
            }
            if state.written != written {
                (written, since) = (state.written, Instant::now());
            }
            let wait = LOOK.min(stall);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How many lines end in a text.
fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// A place whose errors are put into words.
struct Explained<W, E> {
    out: W,
    explain: E,
}

impl<W: Write, E: Fn(io::Error) -> io::Error> Write for Explained<W, E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(&self.explain)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(&self.explain)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    /// A place that takes nothing before the test says so, or is over.
    struct Held(Receiver<()>);

    impl Write for Held {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_is_written_in_the_order_in_which_it_was_added() {
        let queue = Queue::default();
        for text in ["a\n", "b\n"] {
            queue.add(text, WAITING_MAX_BYTES);
        }
        queue.state().ended = true;
        let mut out = Vec::new();
        queue.write_all(&mut out).expect("a vector takes everything");
        assert_eq!(out, b"a\nb\n");
    }

    #[test]
    fn text_beyond_the_limit_is_dropped_and_its_lines_are_counted_but_a_report_is_kept() {
        let queue = Queue::default();
        queue.add("first\n", 8);
        queue.add("two\nlines\n", 8);
        {
            let state = queue.state();
            assert_eq!((state.dropped_lines, &state.waiting[..]), (2, &b"first\n"[..]));
        }
        queue.add("report\n", usize::MAX);
        assert_eq!(queue.state().waiting, b"first\nreport\n");
    }

    #[test]
    fn a_place_that_takes_nothing_is_given_up_and_what_waits_is_counted() {
        let (go, held) = sync_channel(0);
        let text = BackgroundText::start(move || Ok(Held(held))).expect("a thread");
        text.add("first\n");
        // The first is being written when none waits.
        while !text.queue.state().waiting.is_empty() {
            thread::yield_now();
        }
        text.add("second\nthird\n");
        let TextWritten { dropped_lines, result } =
            text.queue.finish(Patience::Short, Duration::from_millis(1));
        assert_eq!((dropped_lines, result.unwrap_err().kind()), (2, io::ErrorKind::TimedOut));
        drop(go);
    }

    #[test]
    fn a_place_that_cannot_be_opened_drops_what_is_added_and_keeps_the_reason() {
        let text = BackgroundText::start(|| Err::<io::Sink, _>(io::ErrorKind::NotFound.into()));
        let text = text.expect("a thread");
        text.add("lost\n");
        let TextWritten { dropped_lines, result } = text.finish(Patience::UntilInterrupt);
        assert_eq!((dropped_lines, result.unwrap_err().kind()), (1, io::ErrorKind::NotFound));
    }
}
