//! What is said on standard error, beside the report.
//!
//! A thread of its own writes it, so that a terminal that is held, or a pipe that is not read, holds up neither the run
//! nor its results. What waits has a limit; lines beyond it are dropped, and their number is said when there is room.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use pummel_report::visible;

use crate::write_queue::{Piece, WriteQueue};

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

/// Writes text without a line end of its own, like [`say`]. Control characters are made visible.
pub fn write(text: String) {
    add(Item::Text(visible::text(&text).into_owned()));
}

/// Writes a line that the next one is written over. Control characters in it are made visible.
pub fn write_over(line: &str) {
    add(Item::Text(format!("{}\r", visible::words(line))));
}

/// Does something that writes to standard error, after all that was said before and on the thread that writes it.
pub fn draw(drawing: impl FnOnce() + Send + 'static) {
    add(Item::Drawing(Box::new(drawing)));
}

/// Waits until everything is written that was said so far, or no longer than a second while the reader takes nothing.
pub fn settle() {
    if let Some(Some(queue)) = STANDARD_ERROR.get() {
        queue.settle(SETTLE_MAX);
    }
}

/// The queue to standard error; none where the system started no thread, and what is said is written at once.
static STANDARD_ERROR: OnceLock<Option<Arc<WriteQueue<Item>>>> = OnceLock::new();

/// Lines that wait while a screen has the terminal, and how many of them were dropped.
static HELD: Mutex<Option<(VecDeque<String>, u64)>> = Mutex::new(None);

/// Most lines that wait while a screen has the terminal; older ones are dropped.
const HELD_LINES_MAX: usize = 1_000;

/// Holds lines back from now on until [`release`], since a screen has the terminal.
pub fn hold() {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Prints everything that was kept since [`hold`].
pub fn release() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((texts, dropped)) = held else { return };
    if dropped > 0 {
        write(format!("({dropped} lines were dropped: there were too many while the screen was open)\n"));
    }
    texts.into_iter().for_each(|text| add(Item::Text(text)));
}

/// Keeps an item if a screen has the terminal. Returns the item if no screen has it; drawings are dropped.
fn keep(item: Item) -> Option<Item> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((texts, dropped)) = held.as_mut() else { return Some(item) };
    if let Item::Text(text) = item {
        if texts.len() == HELD_LINES_MAX {
            texts.pop_front();
            *dropped += 1;
        }
        texts.push_back(text);
    }
    None
}

fn add(item: Item) {
    let Some(item) = keep(item) else { return };
    match STANDARD_ERROR.get_or_init(start) {
        Some(queue) => queue.add(item),
        None => item.write(&mut io::stderr()),
    }
}

fn start() -> Option<Arc<WriteQueue<Item>>> {
    let queue = Arc::new(queue());
    let writer = Arc::clone(&queue);
    let spawned =
        thread::Builder::new().name("stderr".to_owned()).spawn(move || work(&writer, &mut io::stderr()));
    spawned.is_ok().then_some(queue)
}

fn queue() -> WriteQueue<Item> {
    WriteQueue::with_notice(TEXT_WAITING_MAX_BYTES, |dropped| {
        Item::Text(format!("({dropped} lines were dropped: they were not read in time)\n"))
    })
}

/// Writes what is added, for ever.
fn work(queue: &WriteQueue<Item>, to: &mut impl Write) {
    while let Some(items) = queue.next() {
        for item in items {
            let size = item.size();
            item.write(to);
            queue.wrote(size, 1);
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

impl Piece for Item {
    fn size(&self) -> usize {
        match self {
            // Short lines take memory beside their text.
            Item::Text(text) => text.len().max(DRAWING_BYTES / 4),
            Item::Drawing(_) => DRAWING_BYTES,
        }
    }

    fn count(&self) -> u64 {
        1
    }
}

impl Item {
    fn write(self, to: &mut impl Write) {
        match self {
            // There is no other place to say that it could not be written.
            Item::Text(text) => _ = to.write_all(text.as_bytes()),
            Item::Drawing(draw) => draw(),
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
        // The drawing may still count when the lines come.
        const LINE_BYTES: usize = (TEXT_WAITING_MAX_BYTES - 2 * DRAWING_BYTES) / 16;
        let queue = Arc::new(queue());
        let ((let_go, go), (taken, read)) = (sync_channel(0), sync_channel(100));
        let (writer, (started, is_started)) = (Arc::clone(&queue), sync_channel(1));
        thread::spawn(move || work(&writer, &mut Held { go, taken }));
        queue.add(Item::Drawing(Box::new(move || started.send(()).unwrap())));
        is_started.recv().unwrap();
        queue.add(Item::Text("first\n".to_owned()));
        for _ in 0..16 + 7 {
            queue.add(Item::Text("x".repeat(LINE_BYTES)));
        }
        queue.settle(Duration::from_millis(1));
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
