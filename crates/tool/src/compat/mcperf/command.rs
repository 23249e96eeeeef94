//! `pummel mcperf`: runs what its command line means, and prints its report and its log where the original does.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use pummel_engine::run::{self, RunError, Wants, Watch};
use pummel_engine::sys;
use pummel_engine::worker::messages::{Departure, Row};
use pummel_logic::measure::churn::ConnectionFailure;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::Phase;
use pummel_logic::time::{MICROSECOND, NEVER, Nanos};

use crate::compat::mcperf::report::{Figures, Layout, render};
use crate::compat::mcperf::{Asked, Manner, Refusal, Run, help, read};
use crate::exit_status::Exit;
use crate::job::background_writer::{BackgroundText, Patience, TextWritten};
use crate::job::result_files::Places;
use crate::job::samples::outcome_name;
use crate::report::Report;
use crate::stderr;
use crate::stderr::say;

/// Levels of the log.
const ERRORS: u32 = 1;
const WARNINGS: u32 = 4;
const TOTALS: u32 = 5;
const ENDS: u32 = 6;
const CALLS: u32 = 7;

/// Follows a command line; `words` stand behind the program's name.
pub fn mcperf(words: &[OsString]) -> Exit {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read(words) {
        Ok(Asked::Help) => tell(&format!("{}{}", help::version(), help::USAGE)),
        Ok(Asked::Version) => tell(&help::version()),
        Ok(Asked::Run(run)) => execute(&run),
        Err(Refusal(why)) => {
            tell(&format!("mcperf: {why}\n{}", help::USAGE));
            Exit::Failed
        }
    }
}

/// All that mcperf prints goes to standard error.
fn tell(text: &str) -> Exit {
    stderr::write(text.to_owned());
    Exit::Complete
}

fn execute(asked: &Run) -> Exit {
    match Desk::prepare(asked) {
        Ok(desk) => desk.run(),
        Err(error) => {
            say(format_args!("mcperf: {error}"));
            Exit::Failed
        }
    }
}

/// Where log lines go.
struct Log {
    verbosity: u32,
    /// Where there is none, lines go to standard error.
    file: Option<BackgroundText>,
}

impl Log {
    fn open(manner: &Manner) -> io::Result<Log> {
        let file = manner.log.as_deref().map(|path| {
            log_file(path).map_err(|error| {
                io::Error::new(error.kind(), format!("opening log file '{}' failed: {error}", path.display()))
            })
        });
        Ok(Log { verbosity: manner.verbosity, file: file.transpose()? })
    }

    fn line(&mut self, level: u32, text: &str) {
        if level > self.verbosity {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = format!("[{}] {text}\n", date(now));
        match &self.file {
            Some(file) => file.add(&line),
            None => stderr::write(line),
        }
    }

    /// Ends the log. A log that cannot be written is no reason to fail; lines that are missing are counted.
    fn finish(&mut self) {
        let Some(file) = self.file.take() else { return };
        let TextWritten { dropped_lines, .. } = file.finish(Patience::Short);
        if dropped_lines > 0 {
            say(format_args!("mcperf: {dropped_lines} lines of the log could not be written"));
        }
    }
}

/// Opens a log file, whose lines a thread of its own writes. A named pipe is opened when it has a reader, which nothing
/// waits for.
fn log_file(path: &Path) -> io::Result<BackgroundText> {
    let open = |path: &Path| OpenOptions::new().append(true).create(true).open(path);
    let is_pipe = fs::metadata(path).is_ok_and(|present| present.file_type().is_fifo());
    let file = (!is_pipe).then(|| open(path)).transpose()?;
    let path = path.to_owned();
    BackgroundText::start(move || file.map_or_else(|| open(&path), Ok))
}

/// A time in the manner of C's `asctime`, in UTC. Days are made into dates by the civil calendar's 400-year cycle.
fn date(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    // Counted from 1 March of the year 0, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!(
        "{} {} {of_month:>2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize - 1],
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// A run with its places.
struct Desk<'a> {
    asked: &'a Run,
    log: Log,
    places: Places,
    began: Nanos,
}

impl<'a> Desk<'a> {
    /// Checks that everything can be written, before anything is sent.
    fn prepare(asked: &'a Run) -> io::Result<Desk<'a>> {
        let places = Places::prepare(&asked.job.outputs, &asked.job.plan)?;
        let log = Log::open(&asked.manner)?;
        Ok(Desk { asked, log, places, began: 0 })
    }

    fn run(mut self) -> Exit {
        let interrupts = match sys::on_interrupt() {
            Ok(interrupts) => interrupts,
            Err(error) => {
                say(format_args!("mcperf: signals cannot be handled: {error}"));
                return Exit::Failed;
            }
        };
        let plan = &self.asked.job.plan;
        match run::Run::new(plan).start(&mut self, &|| interrupts.load(Ordering::Relaxed) > 0) {
            Ok(mut measurement) => {
                self.places.settle(&mut measurement).iter().for_each(say);
                self.report(&measurement)
            }
            Err(error @ RunError::Connect(_)) => {
                self.log.line(ERRORS, &error.to_string());
                self.log.finish();
                Exit::Failed
            }
            Err(error) => {
                self.log.finish();
                say(format_args!("mcperf: {error}"));
                Exit::Failed
            }
        }
    }

    fn report(mut self, measurement: &Measurement) -> Exit {
        let manner = &self.asked.manner;
        let figures = Figures {
            churn: measurement.connections.churn.as_deref().cloned().unwrap_or_default(),
            elapsed_ns: measurement.measured_ns,
            cpu_user_ns: measurement.generator.cpu_user_ns,
            cpu_system_ns: measurement.generator.cpu_system_ns,
        };
        self.say_totals(&figures, measurement);
        self.log.finish();
        tell(&render(&figures, Layout { histogram: manner.histogram, response: manner.response }));
        let written = self.write(measurement);
        if let Err(error) = &written {
            say(format_args!("mcperf: {error}"));
        }
        let unwell = figures.churn.failures.total() > 0 || measurement.status == Status::Partial;
        match measurement.status {
            // The original has no handler, so that the signal ends it.
            Status::Interrupted if written.is_ok() => Exit::Interrupted,
            _ if written.is_err() || manner.strict && unwell => Exit::Failed,
            _ => Exit::Complete,
        }
    }

    /// What the log has at the end.
    fn say_totals(&mut self, figures: &Figures, measurement: &Measurement) {
        let churn = &figures.churn;
        let asked = self.asked.job.plan.phases[0].stop.requests.unwrap_or(0);
        let failed = churn.failures.total();
        let without_socket = churn.failures.descriptors + churn.failures.files;
        let calls = self.asked.job.plan.groups[0].churn.as_ref().map_or(1, |churn| churn.calls);
        if churn.failures.addresses > 0 {
            self.log.line(
                WARNINGS,
                "no local port was free for some connections: closed ones keep theirs for a minute; --linger=0 gives \
                 them back at once, --source=ADDR,... spreads them over several addresses",
            );
        }
        if churn.failures.descriptors > 0 {
            self.log.line(WARNINGS, "the limit of open files was reached: raise it with ulimit -n");
        }
        if let (Status::Partial, Some(reason)) = (measurement.status, &measurement.reason) {
            self.log.line(WARNINGS, reason);
        }
        let created = churn.asked;
        self.log
            .line(TOTALS, &format!("created {created} of {} connections, {failed} failed", asked / calls));
        let destroyed = churn.ended - without_socket;
        self.log.line(TOTALS, &format!("destroyed {destroyed} of {created} connections"));
    }

    /// Writes the results that pummel adds.
    fn write(self, measurement: &Measurement) -> io::Result<()> {
        let plan = &self.asked.job.plan;
        let summary = Summary::of(measurement, plan);
        let report = Report { plan, measurement, summary: &summary, front: self.asked.job.front.name() };
        self.places.finish(&report)
    }
}

impl Watch for Desk<'_> {
    fn wants(&self) -> Wants {
        let keep = if self.places.want_histograms() { Keep::Histograms } else { Keep::Figures };
        let rows = self.places.want_rows() || self.log.verbosity >= CALLS;
        Wants { rows, departures: self.log.verbosity >= ENDS, keep, outstanding: false }
    }

    fn notice(&mut self, words: &str) {
        self.log.line(WARNINGS, words);
    }

    fn begin(&mut self, _phase: &Phase, at: Nanos) {
        self.began = at;
        self.places.begin(at);
    }

    fn rows(&mut self, rows: &[Row]) {
        self.places.rows(rows);
        if self.log.verbosity < CALLS {
            return;
        }
        for row in rows {
            self.log.line(CALLS, &call_line(row, self.asked.job.plan.name_of(row.verb), self.began));
        }
    }

    fn departures(&mut self, gone: &[Departure]) {
        for departure in gone {
            self.log.line(ENDS, &end_line(departure, self.began));
        }
    }
}

/// Microseconds from `began` on; a time that never was is none.
fn since(at: Nanos, began: Nanos) -> String {
    match at {
        NEVER => "never".to_owned(),
        at => format!("at {} us", at.saturating_sub(began) / MICROSECOND),
    }
}

/// What the log says of a call, which has a name; times are counted from when the run began.
fn call_line(row: &Row, name: &str, began: Nanos) -> String {
    format!(
        "call {} on connection {}: {name} {}, due {}, sent {}, ended {}",
        row.key,
        row.client + 1,
        outcome_name(row.outcome),
        since(row.due, began),
        since(row.sent, began),
        since(row.arrived, began)
    )
}

/// What it says of a connection.
fn end_line(departure: &Departure, began: Nanos) -> String {
    let Departure { client, asked_at, ended_at, was_open, calls: (made, of), failure } = departure;
    let why = match failure {
        None if made < of => "interrupted".to_owned(),
        None => "done".to_owned(),
        Some((failure, None)) => failure.name().to_owned(),
        Some((ConnectionFailure::Other, Some(trouble))) => format!("other: {trouble}"),
        Some((failure, Some(trouble))) => format!("{}: {trouble}", failure.name()),
    };
    format!(
        "connection {} from {} us to {} us, {}, {made} of {of} calls: {why}",
        client + 1,
        asked_at.saturating_sub(began) / MICROSECOND,
        ended_at.saturating_sub(began) / MICROSECOND,
        if *was_open { "open" } else { "never open" },
    )
}

#[cfg(test)]
mod tests {
    use pummel_engine::backend::Reason;
    use pummel_engine::worker::trouble::Trouble;
    use pummel_logic::protocol::{Fault, Outcome, Verb};

    use super::*;

    fn departure(
        made: u64,
        was_open: bool,
        failure: Option<(ConnectionFailure, Option<Trouble>)>,
    ) -> Departure {
        let (asked_at, ended_at) = (2_000, 3_004_900);
        Departure { client: 4, asked_at, ended_at, was_open, calls: (made, 10), failure }
    }

    #[test]
    fn the_end_of_a_connection_has_its_times_its_calls_and_its_reason() {
        let refused = Trouble::NotOpened(Reason::new(Fault::Refused, 111));
        for (departure, line) in [
            (departure(10, true, None), "open, 10 of 10 calls: done"),
            (departure(3, true, None), "open, 3 of 10 calls: interrupted"),
            (departure(3, true, Some((ConnectionFailure::Reset, None))), "open, 3 of 10 calls: reset"),
            (
                departure(
                    3,
                    true,
                    Some((ConnectionFailure::Other, Some(Trouble::Lost(Reason::new(Fault::Closed, 0))))),
                ),
                "open, 3 of 10 calls: other: the server closed the connection",
            ),
            (
                departure(0, false, Some((ConnectionFailure::Refused, Some(refused)))),
                "never open, 0 of 10 calls: refused: Connection refused (os error 111); nothing listens there",
            ),
        ] {
            let expected = format!("connection 5 from 1 us to 3003 us, {line}");
            assert_eq!(end_line(&departure, 1_000), expected);
        }
    }

    #[test]
    fn a_call_that_was_never_sent_says_so() {
        let mut row = Row {
            due: 1_000_000,
            ready: 1_000_000,
            sent: 3_000_000,
            arrived: 4_000_000,
            read: 4_000_000,
            verb: Verb::Set,
            outcome: Outcome::Stored,
            key: 17,
            client: 0,
            group: 0,
        };
        let line = "call 17 on connection 1: set stored, due at 0 us, sent at 2000 us, ended at 3000 us";
        assert_eq!(call_line(&row, "set", 1_000_000), line);
        (row.sent, row.outcome) = (NEVER, Outcome::Error(Fault::Timeout));
        let line = "call 17 on connection 1: xxx timeout, due at 0 us, sent never, ended at 3000 us";
        assert_eq!(call_line(&row, "xxx", 1_000_000), line);
    }

    #[test]
    fn dates_are_written_as_c_writes_them() {
        assert_eq!(date(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(date(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(date(1_795_169_637), "Fri Nov 20 10:13:57 2026");
    }
}
