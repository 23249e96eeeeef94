//! What a front makes of a run: text for people, made from the events of the run and from its result.
//!
//! A style opens no file and reads no clock: an event comes with its moment, and text goes to [`StyleOutput`], which the driver
//! writes.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::PathBuf;

use pummel_logic::plan::{Phase, Plan};
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::window::Finding;
use pummel_measure::events::LocalTime;
use pummel_measure::events::Wants;
use pummel_measure::events::{ConnectionEvent, Departure, Row};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Keep, Measurement};
use pummel_report::Report;

use crate::exit_status::Exit;
use crate::hints::Obstacle;
use crate::screen_options::Terminal;

/// The words of a front.
pub trait Style {
    /// What a run has to hand over for this style beside its figures.
    fn wants(&self) -> Wants {
        Wants { rows: false, departures: false, keep: Keep::Figures, outstanding: false, connections: false }
    }

    /// Makes text of an event.
    fn event(&mut self, event: Event<'_>, moment: Moment, out: &mut StyleOutput);

    /// Makes the text of the end: what the last run of the job came to. Returns the exit status where everything can be
    /// written.
    fn end(&mut self, ended: &Ended<'_>, moment: Moment, out: &mut StyleOutput) -> Exit;

    /// The words and the exit status of something that cannot be done, such as a file that cannot be written.
    fn failure(&self, words: &str) -> (String, Exit);

    /// The exit status of a command line that turns out to ask for what cannot be.
    fn usage_status(&self) -> Exit {
        self.failure("").1
    }

    /// The times of the report, of which the driver says that they may not be believed.
    fn doubted(&self) -> Doubted {
        Doubted::Service
    }

    /// Whether a reader of standard output may leave before the end, which is then no failure.
    fn lets_readers_leave(&self) -> bool {
        true
    }
}

/// The times of a report that the driver of a job has to doubt in a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubted {
    /// Nothing: the report says how far its times may be believed, or its user asked for no notices.
    Nothing,
    /// Service times, which have no lag in them: only the rate of a closed loop may be the generator's.
    Service,
    /// Response times.
    Response,
}

/// Something that happened in a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run of this plan is about to begin.
    Announced(&'a Plan),
    /// Something is not as it was asked for: a sentence without its full stop.
    Notice(&'a str),
    /// A phase begins at this time, on the monotonic clock.
    PhaseBegan(&'a Phase, Nanos),
    /// A phase that is not recorded, how many of its requests have ended, and how many it has where that is known.
    Progress(&'a Phase, u64, Option<u64>),
    /// Another slice stands at the end of the measurement.
    Slice(&'a Measurement),
    /// A slice of the measured phase, whole, before it goes into the measurement.
    Interval(&'a mut Interval),
    /// A check of a client with a window failed, on this connection.
    Finding(u64, &'a Finding),
    /// A server sent this error to a client with a window, on this connection.
    Complaint(u64, &'a [u8]),
    /// A connection to this server of the plan was lost, or is open again.
    Connection(usize, ConnectionEvent),
    /// Requests of the measured phase were recorded.
    Rows(&'a [Row]),
    /// Clients departed in the measured phase.
    Departures(&'a [Departure]),
    /// A run of this plan is over. The measurement is absent where the run could not begin.
    RunOver(&'a Plan, Option<&'a Measurement>),
}

/// When something happened.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The monotonic clock, in nanoseconds.
    pub now_ns: Nanos,
    /// The wall clock, in nanoseconds since 1970.
    pub wall_ns: Nanos,
    /// The time of day in the local time zone of a number of seconds since 1970.
    pub local_time: fn(u64) -> LocalTime,
}

impl Moment {
    /// The local time at which the monotonic clock read `at_ns`.
    pub fn local_time_at(&self, at_ns: Nanos) -> LocalTime {
        let age_ns = self.now_ns.saturating_sub(at_ns);
        (self.local_time)(self.wall_ns.saturating_sub(age_ns) / SECOND)
    }
}

/// The end of a job.
#[derive(Debug)]
pub struct Ended<'a> {
    /// The last run. Its measurement is empty where the run could not begin.
    pub report: Report<'a>,
    /// Why the last run could not begin.
    pub refused: Option<&'a Refused>,
    /// Whether one of the result files is standard output, so that a report for people has no place there.
    pub stdout_is_taken: bool,
    /// What standard output is.
    pub terminal: Terminal,
}

/// Why a run could not begin. Shown as its reason, without the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The cause, as far as command lines tell causes apart.
    pub cause: RefusedCause,
    /// The reason, with a hint where there is one.
    pub obstacle: Obstacle,
}

/// The cause for which a run could not begin, as far as command lines tell causes apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedCause {
    /// The user ended it.
    Interrupted,
    /// The host of a server has no address.
    Unresolved {
        /// The server in the Plan.
        server: String,
        /// The error of the name service.
        error: String,
    },
    /// The connections cannot be begun otherwise.
    NotConnected,
    /// Everything else.
    Other,
}

impl Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.obstacle.reason)
    }
}

/// Text, by where it goes, in the order in which it was added.
#[derive(Default)]
pub struct StyleOutput {
    words: Vec<Word>,
}

/// A piece of text and where it goes.
pub enum Word {
    /// A line of standard error, without its end.
    Line(String),
    /// A line of progress, which is left out where a terminal shows the progress in another way.
    Progress(String),
    /// A line of standard error that the next one is written over.
    Overwritten(String),
    /// Text of standard error, as it is.
    Error(String),
    /// A line of the log, with its end; a part of standard error where there is no file for the log.
    Log(String),
    /// Text of standard output that is dropped where too much waits to be read.
    Output(String),
    /// Text of standard output that is never dropped while standard output is there.
    Report(Vec<u8>),
    /// Text of standard output that is never dropped, and that a layout has made printable: its sequences are its own.
    Screen(String),
    /// What the bar of a phase shows.
    Bar(Bar),
    /// The whole content of a file that the front has of its own.
    File(PathBuf, FileLines),
}

/// Writes the lines of a file.
pub type FileLines = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

/// The progress of a phase on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// A phase begins.
    Begin,
    /// The number of requests that have ended, and the number of all.
    At(u64, u64),
    /// The phase is over.
    End,
}

impl StyleOutput {
    /// Adds a line of standard error.
    pub fn line(&mut self, text: impl Display) {
        self.words.push(Word::Line(text.to_string()));
    }

    /// Adds a line of progress.
    pub fn progress(&mut self, text: impl Display) {
        self.words.push(Word::Progress(text.to_string()));
    }

    /// Adds a line of standard error that the next one is written over.
    pub fn overwritten(&mut self, line: String) {
        self.words.push(Word::Overwritten(line));
    }

    /// Adds text of standard error.
    pub fn error(&mut self, text: String) {
        self.words.push(Word::Error(text));
    }

    /// Adds a line of the log.
    pub fn log(&mut self, line: String) {
        self.words.push(Word::Log(line));
    }

    /// Adds text of standard output that may be dropped.
    pub fn output(&mut self, text: String) {
        self.words.push(Word::Output(text));
    }

    /// Adds text of standard output that is never dropped.
    pub fn report(&mut self, bytes: impl Into<Vec<u8>>) {
        self.words.push(Word::Report(bytes.into()));
    }

    /// Adds text of standard output as a layout of terminals drew it.
    pub fn screen(&mut self, text: String) {
        self.words.push(Word::Screen(text));
    }

    /// Changes the bar.
    pub fn bar(&mut self, bar: Bar) {
        self.words.push(Word::Bar(bar));
    }

    /// Adds the content of a file of the front's own.
    pub fn file(&mut self, path: impl Into<PathBuf>, lines: FileLines) {
        self.words.push(Word::File(path.into(), lines));
    }

    /// Removes the lines of standard error that were added.
    pub fn leave_out_lines(&mut self) {
        self.words.retain(|word| !matches!(word, Word::Line(_)));
    }

    /// Takes the text that was added, in that order.
    pub fn take(&mut self) -> Vec<Word> {
        std::mem::take(&mut self.words)
    }
}
