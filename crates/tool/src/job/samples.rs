//! Every request of the measured phase as a line of text, for tests and for those who want it raw.
//!
//! A thread of its own writes the lines, so that a slow disk, or a pipe that is not read, does not hold up the run. What
//! waits has a limit; requests beyond it are dropped and counted.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pummel_engine::sys;
use pummel_engine::worker::messages::Row;
use pummel_logic::plan::Plan;
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::{NEVER, Nanos};

use crate::job::output_file::OutputFile;
use crate::report::output::explained;

/// The first line. Times are nanoseconds since the beginning of the measured phase; `ready` is the latest of due, slot
/// freed, connection open and socket writable; a time that did not come is empty.
const HEADER: &str = "due,ready,sent,arrived,read,op,outcome,key,client,group";

/// Requests that wait to be written, at most: some 45 MB.
pub const SAMPLES_WAITING_MAX: usize = 512 * 1024;

/// How long the end of a run waits for a file that takes nothing.
const SETTLE_STALL: Duration = Duration::from_secs(2);

/// How long the end of a run waits for a file that takes something, at most; after an interrupt it is [`SETTLE_STALL`].
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// A file of requests.
#[derive(Debug)]
pub struct Samples {
    path: PathBuf,
    /// What the plan calls each verb.
    names: [&'static str; Verb::COUNT],
    /// The file, as long as no measured phase began; what it held before is there until then.
    untouched: Option<OutputFile>,
    began: Option<Nanos>,
    queue: Arc<Queue>,
}

/// What became of the requests that a file was to take.
#[derive(Debug)]
pub struct Written {
    /// Requests that are not in the file.
    pub dropped: u64,
    /// Whether the file could be written to its end; the message names the path.
    pub result: io::Result<()>,
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    /// Something was added or written, or the end was said.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Requests, each list with the beginning of the measured phase.
    waiting: VecDeque<(Vec<Row>, Nanos)>,
    /// Requests that wait or are being written.
    rows: usize,
    /// Requests that are not written, and will not be.
    dropped: u64,
    /// Lists that were written.
    written: u64,
    /// No more will be added.
    ended: bool,
    /// How writing ended.
    result: Option<io::Result<()>>,
}

impl Samples {
    /// Opens a file for the requests of a plan, whose old content stays until a measured phase begins. A device gets the
    /// first line at once, and a named pipe when it has a reader, which nothing waits for.
    ///
    /// # Errors
    /// When it cannot be written; the message names the path.
    pub fn create(path: &Path, plan: &Plan) -> io::Result<Samples> {
        let names = Verb::ALL.map(|verb| plan.name_of(verb));
        let queue = Arc::new(Queue::default());
        let mut samples = Samples { path: path.to_owned(), names, untouched: None, began: None, queue };
        samples.open().map_err(|error| explained(path, &error))?;
        Ok(samples)
    }

    fn open(&mut self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|present| present.file_type().is_fifo()) {
            let path = self.path.clone();
            return self.start(move || OutputFile::open(&path).and_then(begin));
        }
        let file = OutputFile::open(&self.path)?;
        if file.is_regular() {
            self.untouched = Some(file);
            return Ok(());
        }
        let out = begin(file)?;
        self.start(move || Ok(out))
    }

    /// Starts the thread that writes to what `open` returns.
    fn start(
        &self,
        open: impl FnOnce() -> io::Result<BufWriter<OutputFile>> + Send + 'static,
    ) -> io::Result<()> {
        let (writer, names) = (Arc::clone(&self.queue), self.names);
        let work = move || {
            let result = open().and_then(|out| writer.write_all(&mut Lines { out, names }));
            writer.end(result);
        };
        thread::Builder::new().name("samples".to_owned()).spawn(work).map(drop)
    }

    /// A measured phase begins at `at`; times are counted from the first.
    pub fn begin(&mut self, at: Nanos) {
        self.began.get_or_insert(at);
        if let Some(file) = self.untouched.take()
            && let Err(error) = self.start(|| begin(file))
        {
            self.queue.end(Err(error));
        }
    }

    /// Adds requests of a measured phase, to be written soon; they are dropped where too many wait.
    pub fn write(&mut self, rows: &[Row]) {
        self.queue.add(rows, self.began.unwrap_or(0));
    }

    /// Ends the file, and waits for that as long as it takes something. Leaves a file as it was where no measured phase
    /// began.
    pub fn finish(self) -> Written {
        if self.untouched.is_some() {
            self.queue.end(Ok(()));
        }
        let Written { dropped, result } = self.queue.finish(SETTLE_STALL, SETTLE_MAX);
        Written { dropped, result: result.map_err(|error| explained(&self.path, &error)) }
    }
}

/// Writes the first line.
fn begin(file: OutputFile) -> io::Result<BufWriter<OutputFile>> {
    let mut out = BufWriter::new(file);
    writeln!(out, "{HEADER}")?;
    out.flush()?;
    Ok(out)
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, rows: &[Row], began: Nanos) {
        let mut state = self.state();
        if state.result.is_some() || state.rows + rows.len() > SAMPLES_WAITING_MAX {
            state.dropped += rows.len() as u64;
            return;
        }
        state.rows += rows.len();
        state.waiting.push_back((rows.to_vec(), began));
        self.changed.notify_all();
    }

    /// Writes what is added until the end is said.
    fn write_all(&self, lines: &mut Lines<impl Write>) -> io::Result<()> {
        while let Some((rows, began)) = self.next() {
            lines.add(&rows, began)?;
            let mut state = self.state();
            // Less remains where the wait for it was given up.
            state.rows = state.rows.saturating_sub(rows.len());
            state.written += 1;
            self.changed.notify_all();
        }
        lines.out.flush()
    }

    /// What is to be written next; `None` where no more comes.
    fn next(&self) -> Option<(Vec<Row>, Nanos)> {
        let mut state = self.state();
        loop {
            if let Some(next) = state.waiting.pop_front() {
                return Some(next);
            }
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more is written.
    fn end(&self, result: io::Result<()>) {
        let mut state = self.state();
        state.drop_waiting();
        state.result = Some(result);
        self.changed.notify_all();
    }

    fn finish(&self, stall: Duration, most: Duration) -> Written {
        let mut state = self.state();
        state.ended = true;
        self.changed.notify_all();
        let begun = Instant::now();
        let (mut written, mut since) = (state.written, begun);
        loop {
            if let Some(result) = state.result.take() {
                return Written { dropped: state.dropped, result };
            }
            if state.written != written {
                (written, since) = (state.written, Instant::now());
            }
            let most = if sys::interrupts() > 0 { stall } else { most };
            let left = stall.saturating_sub(since.elapsed()).min(most.saturating_sub(begun.elapsed()));
            if left.is_zero() {
                state.drop_waiting();
                let error = io::Error::new(io::ErrorKind::TimedOut, "what reads it does not take it");
                return Written { dropped: state.dropped, result: Err(error) };
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    /// What waits, or is being written, does not get into the file.
    fn drop_waiting(&mut self) {
        self.dropped += std::mem::take(&mut self.rows) as u64;
        self.waiting.clear();
    }
}

/// Where lines go.
#[derive(Debug)]
struct Lines<W> {
    out: W,
    /// What the plan calls each verb.
    names: [&'static str; Verb::COUNT],
}

impl<W: Write> Lines<W> {
    fn add(&mut self, rows: &[Row], began: Nanos) -> io::Result<()> {
        for row in rows {
            let arrived = if row.read == NEVER { NEVER } else { row.arrived };
            for time in [row.due, row.ready, row.sent, arrived, row.read] {
                if time != NEVER {
                    write!(self.out, "{}", time.saturating_sub(began))?;
                }
                self.out.write_all(b",")?;
            }
            let outcome = match (row.arrived, row.sent) {
                // The phase ended before the request did: what closed its connection is no part of the result.
                (NEVER, NEVER) => "unsent",
                (NEVER, _) => "unfinished",
                _ => outcome_name(row.outcome),
            };
            let name = self.names[row.verb as usize];
            writeln!(self.out, "{name},{outcome},{},{},{}", row.key, row.client, row.group)?;
        }
        Ok(())
    }
}

/// The word for an outcome.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Hit => "hit",
        Outcome::Miss => "miss",
        Outcome::Stored => "stored",
        Outcome::NotStored => "not_stored",
        Outcome::Exists => "exists",
        Outcome::NotFound => "not_found",
        Outcome::Deleted => "deleted",
        Outcome::Touched => "touched",
        Outcome::Number(_) => "number",
        Outcome::Ok => "ok",
        Outcome::Stale => "stale",
        Outcome::Win => "win",
        Outcome::Recaching => "recaching",
        Outcome::Error(fault) => fault.name(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    const NAMES: [&str; Verb::COUNT] = ["op"; Verb::COUNT];

    fn row(key: u64) -> Row {
        Row {
            due: 10,
            ready: 11,
            sent: 12,
            arrived: 13,
            read: 14,
            verb: Verb::Get,
            outcome: Outcome::Hit,
            key,
            client: 0,
            group: 0,
        }
    }

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
    fn requests_beyond_the_limit_are_dropped_and_counted() {
        let queue = Queue::default();
        let many = vec![row(1); SAMPLES_WAITING_MAX];
        queue.add(&many, 0);
        queue.add(&many[..3], 0);
        assert_eq!(queue.state().dropped, 3);
        queue.state().ended = true;
        queue.write_all(&mut Lines { out: io::sink(), names: NAMES }).unwrap();
        queue.add(&many[..5], 0);
        let state = queue.state();
        assert_eq!((state.dropped, state.rows), (3, 5));
    }

    #[test]
    fn a_file_that_takes_nothing_is_given_up_and_its_requests_are_counted() {
        let queue = Arc::new(Queue::default());
        let (go, held) = sync_channel(0);
        let writer = Arc::clone(&queue);
        thread::spawn(move || {
            let result = writer.write_all(&mut Lines { out: Held(held), names: NAMES });
            writer.end(result);
        });
        queue.add(&[row(1), row(2)], 0);
        queue.add(&[row(3)], 0);
        let Written { dropped, result } = queue.finish(Duration::from_millis(1), Duration::from_secs(3600));
        assert_eq!((dropped, result.unwrap_err().kind()), (3, io::ErrorKind::TimedOut));
        drop(go);
    }

    #[test]
    fn what_cannot_be_written_is_dropped_and_the_reason_is_kept() {
        let queue = Queue::default();
        queue.add(&[row(1)], 0);
        queue.end(Err(io::ErrorKind::StorageFull.into()));
        queue.add(&[row(2)], 0);
        let Written { dropped, result } = queue.finish(Duration::from_secs(3600), Duration::from_secs(3600));
        assert_eq!((dropped, result.unwrap_err().kind()), (2, io::ErrorKind::StorageFull));
    }
}
