//! Text that is written while a run goes on: a thread of its own writes it, so that a reader that takes nothing holds up no
//! run.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pummel_engine::sys;

use crate::write_queue::{self, Finished, Piece, WriteQueue};

/// Bytes of text that wait to be written, at most. Text beyond them is dropped and its lines are counted.
const WAITING_MAX_BYTES: usize = 32 << 20;

/// Bytes that are written at once to what may be read slowly.
const CHUNK_BYTES: usize = 64 * 1024;

/// How long the end waits for a reader that takes nothing, where it does not wait for as long as that takes.
const STALL: Duration = Duration::from_secs(2);

/// A place for text, with the thread that writes there.
#[derive(Debug)]
pub struct BackgroundText {
    queue: Arc<WriteQueue<String>>,
}

/// How long [`BackgroundText::finish`] waits for a reader that takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Without limit; for two seconds after an interrupt.
    UntilInterrupt,
    /// For two seconds.
    Short,
}

impl Patience {
    /// How long a wait lasts, as things are now.
    fn now(self, stall: Duration) -> write_queue::Patience {
        let is_short = self == Patience::Short || sys::interrupts() > 0;
        let stall = if is_short { stall } else { Duration::MAX };
        write_queue::Patience { stall, total: Duration::MAX }
    }
}

/// What became of a text.
#[derive(Debug)]
pub struct TextWritten {
    /// Lines that were not written, because they were not taken in time.
    pub dropped_lines: u64,
    /// Whether all others could be written.
    pub result: io::Result<()>,
}

impl Piece for String {
    fn size(&self) -> usize {
        self.len()
    }

    fn count(&self) -> u64 {
        lines(self.as_bytes())
    }
}

impl BackgroundText {
    /// Starts the thread, which calls `open` and writes what is added to the place that this returns.
    ///
    /// # Errors
    /// Returns the system's error when the thread cannot be started.
    pub fn start<W: Write>(open: impl FnOnce() -> io::Result<W> + Send + 'static) -> io::Result<Self> {
        let queue = Arc::new(WriteQueue::new(WAITING_MAX_BYTES));
        let writer = Arc::clone(&queue);
        let work = move || {
            let result = open().and_then(|mut out| write_all(&writer, &mut out));
            writer.end(result);
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
        self.queue.add(text.to_owned());
    }

    /// Adds the text of a report, which is dropped only after an error.
    pub fn add_report(&self, text: &str) {
        self.queue.add_beyond_limit(text.to_owned());
    }

    /// Waits until everything is written.
    pub fn finish(self, patience: Patience) -> TextWritten {
        let Finished { dropped, result } = self.queue.finish(|| patience.now(STALL));
        TextWritten { dropped_lines: dropped, result }
    }
}

/// Writes what is added until the end is said.
fn write_all(queue: &WriteQueue<String>, out: &mut impl Write) -> io::Result<()> {
    while let Some(texts) = queue.next() {
        let text = Vec::from(texts).concat();
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            out.write_all(chunk)?;
            queue.wrote(chunk.len(), lines(chunk));
        }
        out.flush()?;
    }
    Ok(())
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
        let queue = WriteQueue::new(WAITING_MAX_BYTES);
        for text in ["a\n", "b\n"] {
            queue.add(text.to_owned());
        }
        // No more comes, and nothing is waited for.
        let patience = write_queue::Patience { stall: Duration::ZERO, total: Duration::ZERO };
        let mut out = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| write_all(&queue, &mut out).expect("a vector takes everything"));
            queue.settle(Duration::from_secs(3600));
            let _ = queue.finish(|| patience);
        });
        assert_eq!(out, b"a\nb\n");
    }

    #[test]
    fn a_place_that_takes_nothing_is_given_up_and_what_is_not_written_is_counted() {
        let (go, held) = sync_channel(0);
        let text = BackgroundText::start(move || Ok(Held(held))).expect("a thread");
        text.add("first\n");
        text.add("second\nthird\n");
        let Finished { dropped, result } =
            text.queue.finish(|| Patience::Short.now(Duration::from_millis(1)));
        assert_eq!((dropped, result.unwrap_err().kind()), (3, io::ErrorKind::TimedOut));
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
