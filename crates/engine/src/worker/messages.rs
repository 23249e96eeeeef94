//! What workers tell the thread that watches over the run, and the memory that goes back to them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use pummel_logic::measure::churn::{Churn, Failure};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Bytes, Verify, WorkerTime};
use pummel_logic::measure::recorder::{Counts, Tally};
use pummel_logic::protocol::udp;
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::Finding;

use crate::backend::Reason;
use crate::sys::CpuTime;

/// Requests of one worker that wait to be taken from it as rows, at most; others are dropped and counted.
pub const ROWS_WAITING_MAX: usize = 128 * 1024;

/// Notes of one worker that may be dropped and wait to be heard, at most; others are dropped and counted. Of all other
/// messages there are, by their construction, no more than phases, connections and the worker's intervals.
pub const MESSAGES_WAITING_MAX: usize = 1024;

/// One request of the measured phase, raw. Times are on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When the arrival process asked for it.
    pub due: Nanos,
    /// When only the generator still stood in its way.
    pub ready: Nanos,
    /// The clock before the system begin_churn that took its first byte; the greatest number if none did.
    pub sent: Nanos,
    /// When its reply arrived. Where none did, when the request was given up, or handed over if it wants none; the greatest
    /// number if its phase ended before that.
    pub arrived: Nanos,
    /// When the reply was read; the greatest number if there was none.
    pub read: Nanos,
    /// What was asked.
    pub verb: Verb,
    /// How it ended.
    pub outcome: Outcome,
    /// Index of its (first) key.
    pub key: u64,
    /// Number of its client in the group.
    pub client: u64,
    /// Index of the group in the Plan.
    pub group: u16,
}

/// The end of a client that came, with its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number in its group, over all threads.
    pub client: u64,
    /// When its connection was asked for.
    pub asked_at: Nanos,
    /// When it was gone.
    pub ended_at: Nanos,
    /// Whether its connection ever was open.
    pub was_open: bool,
    /// Requests that it made, and those that it was to make.
    pub calls: (u64, u64),
    /// Why its connection failed, with what is known beyond that; `None`: it was closed in order.
    pub failure: Option<(Failure, Option<Trouble>)>,
}

/// What servers said with errors, and how often.
pub type Messages = Vec<(Vec<u8>, u64)>;

/// What a worker says.
#[derive(Debug)]
pub enum WorkerMessage {
    /// A phase begins (from the first worker only).
    Began {
        /// Index of the phase in the Plan.
        phase: usize,
        /// When, on the monotonic clock.
        at: Nanos,
        /// CPU time that the process had used before it.
        cpu: CpuTime,
    },
    /// A worker is through with a phase and its drain.
    Spent {
        /// Index of the phase in the Plan.
        phase: usize,
        /// CPU time that the process had used until then.
        cpu: CpuTime,
    },
    /// Its part of a slice of the measured phase.
    Slice {
        /// The slice.
        interval: Box<Interval>,
        /// Number of the worker.
        worker: usize,
        /// Number of the slice that it writes to from now on; the greatest number where its phase is over.
        next: u64,
    },
    /// So many requests of a phase that is not recorded have ended by now.
    Progress {
        /// Index of the phase in the Plan.
        phase: usize,
        /// Requests since its last word.
        ended: u64,
    },
    /// A phase is over for it.
    Phase(Box<PhaseEnd>),
    /// Requests of the measured phase.
    Rows(Vec<Row>),
    /// Clients that are gone, in the measured phase.
    Departures(Vec<Departure>),
    /// What a check of a client with a window found that failed.
    Finding {
        /// Number of the connection over all threads, from 1.
        connection: u64,
        /// What it was.
        finding: Box<Finding>,
    },
    /// What a server said with an error to a client with a window.
    Complaint {
        /// Number of the connection over all threads, from 1.
        connection: u64,
        /// Its words.
        words: Vec<u8>,
    },
    /// A connection was lost or is open again.
    Connection {
        /// Index of its server in the Plan.
        server: u32,
        /// Which of the two.
        event: ConnectionEvent,
    },
    /// A connection is lost for good.
    Gone,
    /// It is through.
    Done(Box<WorkerEnd>),
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// It was open, and is not any more.
    Lost,
    /// It is open again.
    Back,
}

/// What a worker knows at the end of a phase.
#[derive(Debug)]
pub struct PhaseEnd {
    /// Index of the phase in the Plan.
    pub phase: usize,
    /// Its requests, where they are not in slices.
    pub tally: Tally,
    /// Its bytes, where they are not in slices.
    pub bytes: Bytes,
    /// When it was to begin, on the monotonic clock.
    pub begin: Nanos,
    /// When its time was over, on the same clock; the greatest number where only its requests end it.
    pub end: Nanos,
    /// How long it took.
    pub elapsed_ns: Nanos,
    /// How long after its beginning the worker began it.
    pub late_ns: Nanos,
    /// From its beginning to the last answer.
    pub answered_ns: Nanos,
    /// How busy the worker was.
    pub time: WorkerTime,
    /// Connections that were open when it began.
    pub open: u64,
    /// What came of it, where it stores records, whether it is recorded or not.
    pub load: Option<Box<LoadEnd>>,
    /// What it did not come to.
    pub fate: PhaseFate,
}

/// What came of a phase that stores records, on one worker.
#[derive(Debug, Default)]
pub struct LoadEnd {
    /// How its requests ended.
    pub counts: Counts,
    /// Bytes that it sent.
    pub sent_bytes: u64,
    /// What servers said with errors.
    pub messages: Messages,
}

/// What a phase did not come to, on one worker.
#[derive(Debug)]
pub struct PhaseFate {
    /// Clients whose connection was lost and not replaced, at its end.
    pub dead: u64,
    /// Requests that the phase wanted and that were never due.
    pub missing: u64,
    /// Requests that were left out because they would have been late.
    pub skipped: u64,
    /// Those of the skipped requests whose number follows from the mean gap.
    pub skipped_estimated: u64,
    /// Requests that were asked again because the first attempt got lost.
    pub repeated: u64,
    /// For every server that the worker talks to (index in the Plan), how long it had answered nothing at the end.
    pub silent: Vec<(u32, Nanos)>,
}

/// What a worker knows at the end of the run.
#[derive(Debug, Default)]
pub struct WorkerEnd {
    /// Number of the worker.
    pub worker: usize,
    /// Attempts to open a connection that failed.
    pub failed: u64,
    /// Open connections that broke, or had to be closed.
    pub lost: u64,
    /// Lost ones that were opened again.
    pub reconnected: u64,
    /// How long opening took.
    pub connect: Histogram,
    /// How long TLS handshakes took.
    pub handshake: Histogram,
    /// How many of them resumed a session.
    pub resumed: u64,
    /// What came of clients that come and go.
    pub churn: Option<Box<Churn>>,
    /// Requests of the measured phase that were dropped instead of told as rows.
    pub rows_dropped: u64,
    /// Other messages that were dropped.
    pub messages_dropped: u64,
    /// What checking the answers found.
    pub verify: Verify,
    /// What became of datagrams.
    pub udp: udp::Counts,
    /// Errors of requests that asked for no reply.
    pub noreply_errors: u64,
    /// What servers said with errors, but for loads that are not recorded.
    pub messages: Messages,
    /// Why the first connection was not opened, or was lost, and the index of its server in the Plan.
    pub trouble: Option<(u32, Trouble)>,
    /// The kernel failed, so that the worker could not go on.
    pub failure: Option<io::Error>,
}

/// The first thing that went wrong with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It could not be opened.
    NotOpened(Reason),
    /// It broke, or was closed by the peer.
    Lost(Reason),
    /// The peer said what the protocol does not allow; what it was, and the first bytes of it.
    Malformed(&'static str, Vec<u8>),
    /// A request took too long.
    TimedOut,
}

impl fmt::Display for Trouble {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NotOpened(Reason { words: Some(words), .. })
            | Trouble::Lost(Reason { words: Some(words), .. }) => to.write_str(words),
            Trouble::NotOpened(reason) | Trouble::Lost(reason) => match (reason.errno, reason.fault) {
                (0, Fault::Timeout) => to.write_str("the server did not answer in time"),
                (0, _) => to.write_str("the server closed the connection"),
                (errno, _) => {
                    let error = io::Error::from_raw_os_error(errno);
                    write!(to, "{error}{}", hint(&error))
                }
            },
            Trouble::Malformed(_, bytes) if FULL.iter().any(|words| bytes.starts_with(words)) => {
                write!(
                    to,
                    "the server takes no more connections (memcached -c, maxclients of Redis): \"{}\"",
                    bytes.escape_ascii()
                )
            }
            Trouble::Malformed(what, bytes) => {
                write!(
                    to,
                    "the server sent what the protocol does not allow ({what}): \"{}\"",
                    bytes.escape_ascii()
                )
            }
            Trouble::TimedOut => to.write_str("a request took longer than the timeout"),
        }
    }
}

/// What servers say, unasked, on a connection that is one too many for them: memcached, and Redis.
const FULL: [&[u8]; 2] = [b"ERROR Too many open connections", b"-ERR max number of clients reached"];

/// What can be done about the system's refusal, where it does not go without saying.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            "; raise the hard limit of open files (as root: `ulimit -Hn`, or LimitNOFILE= for a service), or ask for fewer \
             connections at one time"
        }
        Some(libc::ENFILE) => {
            "; raise the system's limit of open files (sysctl fs.file-max), or ask for fewer connections at one time"
        }
        _ => hint_of(error.kind()),
    }
}

fn hint_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "; nothing listens there",
        io::ErrorKind::NotFound => "; nothing has made this socket",
        io::ErrorKind::AddrNotAvailable => {
            "; the source address is not one of this machine, or none of its ports is free"
        }
        _ => "",
    }
}

/// A message on its way. While it is, it has a place among those that wait, if it may be dropped.
#[derive(Debug)]
pub struct Told {
    /// What is said.
    pub message: WorkerMessage,
    /// Given back when the message was heard.
    _place: Option<Place>,
}

/// A place among what waits to be heard.
#[derive(Debug)]
struct Place {
    waiting: Arc<AtomicUsize>,
    count: usize,
}

impl Place {
    /// Room for `count` more among those that wait, if there are at most `most` then. Only one thread takes places.
    fn take(waiting: &Arc<AtomicUsize>, count: usize, most: usize) -> Option<Place> {
        if waiting.load(Ordering::Relaxed) + count > most {
            return None;
        }
        waiting.fetch_add(count, Ordering::Relaxed);
        Some(Place { waiting: Arc::clone(waiting), count })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// A worker's end of the line.
#[derive(Debug)]
pub struct Line {
    /// Number of the worker.
    pub worker: usize,
    /// Where its messages go.
    messages: Sender<Told>,
    /// Where its emptied intervals come back.
    pub spares: Receiver<Box<Interval>>,
    rows_waiting: Arc<AtomicUsize>,
    messages_waiting: Arc<AtomicUsize>,
}

impl Line {
    /// The line of a worker on which nothing was said yet.
    pub fn new(worker: usize, messages: Sender<Told>, spares: Receiver<Box<Interval>>) -> Line {
        Line { worker, messages, spares, rows_waiting: Arc::default(), messages_waiting: Arc::default() }
    }

    /// Sends a message that must not be lost. When its receiver is gone the run is over, and the message is lost.
    pub fn say(&self, message: WorkerMessage) {
        let _ = self.messages.send(Told { message, _place: None });
    }

    /// Says one last thing for a worker that may be gone by then, and its line with it.
    pub fn last_word(&self) -> impl FnOnce(WorkerMessage) + use<> {
        let messages = self.messages.clone();
        move |message| {
            let _ = messages.send(Told { message, _place: None });
        }
    }

    /// Says something if there is room for it among what waits to be heard; otherwise it is not said, and the answer is
    /// false.
    pub fn offer(&self, message: WorkerMessage) -> bool {
        let place = match &message {
            WorkerMessage::Rows(rows) => Place::take(&self.rows_waiting, rows.len(), ROWS_WAITING_MAX),
            _ => Place::take(&self.messages_waiting, 1, MESSAGES_WAITING_MAX),
        };
        let has_room = place.is_some();
        if has_room {
            let _ = self.messages.send(Told { message, _place: place });
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_full_is_not_said_to_break_its_protocol() {
        let said =
            |bytes: &[u8]| Trouble::Malformed("a reply that nobody asked for", bytes.to_vec()).to_string();
        for words in ["ERROR Too many open connections\r\n", "-ERR max number of clients reached\r\n"] {
            let told = said(words.as_bytes());
            assert!(
                told.starts_with("the server takes no more connections (memcached -c, maxclients"),
                "{told}"
            );
            assert!(told.contains(words.trim_end()), "{told}");
        }
        assert!(said(b"ERROR Too").starts_with("the server sent what the protocol does not allow (a reply"));
    }

    #[test]
    fn what_may_be_dropped_has_room_for_so_many_and_what_may_not_is_always_said() {
        let ((messages, heard), (_spare, spares)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let line = Line::new(0, messages, spares);
        let lost = || WorkerMessage::Connection { server: 0, event: ConnectionEvent::Lost };
        assert!((0..MESSAGES_WAITING_MAX).all(|_| line.offer(lost())));
        assert!(!line.offer(lost()));
        line.say(WorkerMessage::Gone);
        drop(heard.recv().unwrap());
        assert!(line.offer(lost()), "one was heard");
        assert!(!line.offer(lost()));
        assert_eq!(heard.try_iter().filter(|told| matches!(told.message, WorkerMessage::Gone)).count(), 1);
        assert!(line.offer(lost()), "all were heard");
    }

    #[test]
    fn rows_have_a_limit_of_their_own() {
        let ((messages, heard), (_spare, spares)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let line = Line::new(0, messages, spares);
        let row = Row {
            due: 0,
            ready: 0,
            sent: 0,
            arrived: 0,
            read: 0,
            verb: Verb::Get,
            outcome: Outcome::Hit,
            key: 0,
            client: 0,
            group: 0,
        };
        let rows = || WorkerMessage::Rows(vec![row; ROWS_WAITING_MAX / 2]);
        assert!(line.offer(rows()) && line.offer(rows()) && !line.offer(rows()));
        assert!(line.offer(WorkerMessage::Gone));
        drop(heard.recv().unwrap());
        assert!(line.offer(rows()) && !line.offer(rows()));
    }
}
