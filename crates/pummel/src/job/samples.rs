//! Every request of the measured phase as a line of text (`--samples`).
//!
//! A thread of its own writes the lines, so that a slow disk, or a pipe that is not read, does not hold up the run. What
//! waits has a limit; requests beyond it are dropped and counted.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pummel_engine::sys;
use pummel_logic::plan::Plan;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{NEVER, Nanos};
use pummel_measure::events::{NO_INDEX, Row};

use crate::job::output_file::OutputFile;
use crate::output::explained;
use crate::write_queue::{Finished, Patience, Piece, WriteQueue};

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
    names: Arc<[String; Verb::COUNT]>,
    /// The file, as long as no measured phase began; what it held before is there until then.
    untouched: Option<OutputFile>,
    began: Option<Nanos>,
    queue: Arc<WriteQueue<Rows>>,
}

/// What became of the requests that a file was to take.
#[derive(Debug)]
pub struct Written {
    /// Requests that are not in the file.
    pub dropped: u64,
    /// Whether the file could be written to its end; the message names the path.
    pub result: io::Result<()>,
}

/// Requests, with the beginning of the measured phase.
#[derive(Debug)]
struct Rows(Vec<Row>, Nanos);

impl Piece for Rows {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn count(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Samples {
    /// Opens a file for the requests of a plan, whose old content stays until a measured phase begins. A device gets the
    /// first line at once, and a named pipe when it has a reader, which nothing waits for.
    ///
    /// # Errors
    /// Returns the system's error when it cannot be written; the message names the path.
    pub fn create(path: &Path, plan: &Plan) -> io::Result<Samples> {
        let names = Arc::new(Verb::ALL.map(|verb| plan.name_of(verb).to_owned()));
        let queue = Arc::new(WriteQueue::new(SAMPLES_WAITING_MAX));
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
        let (writer, names) = (Arc::clone(&self.queue), Arc::clone(&self.names));
        let work = move || {
            let result = open().and_then(|out| write_all(&writer, &mut Lines { out, names }));
            writer.end(result);
        };
        thread::Builder::new().name("samples".to_owned()).spawn(work).map(drop)
    }

    /// Notes that a measured phase begins at `at`; times are counted from the first one.
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
        self.queue.add(Rows(rows.to_vec(), self.began.unwrap_or(0)));
    }

    /// Ends the file, and waits for that as long as it takes something. Leaves a file as it was where no measured phase
    /// began.
    pub fn finish(self) -> Written {
        if self.untouched.is_some() {
            self.queue.end(Ok(()));
        }
        let Finished { dropped, result } = self.queue.finish(patience);
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

/// Writes what is added until the end is said.
fn write_all(queue: &WriteQueue<Rows>, lines: &mut Lines<impl Write>) -> io::Result<()> {
    while let Some(lists) = queue.next() {
        for Rows(rows, began) in lists {
            lines.add(&rows, began)?;
            queue.wrote(rows.len(), rows.len() as u64);
        }
    }
    lines.out.flush()
}

/// How long the end of a run waits for a file, as things are now.
fn patience() -> Patience {
    let total = if sys::interrupts() > 0 { SETTLE_STALL } else { SETTLE_MAX };
    Patience { stall: SETTLE_STALL, total }
}

/// The lines of a file of requests.
#[derive(Debug)]
struct Lines<W> {
    out: W,
    /// What the plan calls each verb.
    names: Arc<[String; Verb::COUNT]>,
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
                _ => row.outcome.name(),
            };
            let name = &self.names[row.verb as usize];
            write!(self.out, "{name},{outcome},")?;
            if row.key != NO_INDEX {
                write!(self.out, "{}", row.key)?;
            }
            writeln!(self.out, ",{},{}", row.client, row.group)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use pummel_logic::protocol::Outcome;

    use super::*;

    fn names() -> Arc<[String; Verb::COUNT]> {
        Arc::new(Verb::ALL.map(|_| "op".to_owned()))
    }

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
    fn a_file_that_takes_nothing_is_given_up_and_its_requests_are_counted() {
        let queue = Arc::new(WriteQueue::new(SAMPLES_WAITING_MAX));
        let (go, held) = sync_channel(0);
        let writer = Arc::clone(&queue);
        thread::spawn(move || {
            let result = write_all(&writer, &mut Lines { out: Held(held), names: names() });
            writer.end(result);
        });
        queue.add(Rows(vec![row(1), row(2)], 0));
        queue.add(Rows(vec![row(3)], 0));
        queue.add(Rows(vec![row(4); SAMPLES_WAITING_MAX], 0));
        let patience = Patience { stall: Duration::from_millis(1), total: Duration::from_secs(3600) };
        let Finished { dropped, result } = queue.finish(|| patience);
        assert_eq!(dropped, 3 + SAMPLES_WAITING_MAX as u64, "the last were too many");
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(go);
    }
}
