//! The words of mcperf's command line about a run: the log while the run goes on, and the report.

use pummel_engine::run::{RunError, Wants};
use pummel_engine::worker::messages::{Departure, Row};
use pummel_logic::measure::churn::ConnectionFailure;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::plan::Plan;
use pummel_logic::time::{MICROSECOND, NEVER, Nanos, SECOND};

use crate::compat::mcperf::Manner;
use crate::compat::mcperf::report::{Figures, Layout, render};
use crate::exit_status::Exit;
use crate::job::runner::NotRun;
use crate::job::samples::outcome_name;
use crate::job::style::{Ended, Event, Moment, Said, Style};

/// Levels of the log.
const ERRORS: u32 = 1;
const WARNINGS: u32 = 4;
const TOTALS: u32 = 5;
const ENDS: u32 = 6;
const CALLS: u32 = 7;

/// The words of mcperf.
#[derive(Clone, Debug)]
pub struct McperfStyle<'a> {
    manner: &'a Manner,
    plan: &'a Plan,
    /// When the measured phase began, on the monotonic clock.
    began: Nanos,
}

impl<'a> McperfStyle<'a> {
    /// The words about a run of this plan.
    pub fn new(manner: &'a Manner, plan: &'a Plan) -> McperfStyle<'a> {
        McperfStyle { manner, plan, began: 0 }
    }

    fn log(&self, level: u32, text: &str, moment: Moment, said: &mut Said) {
        if level <= self.manner.verbosity {
            said.log(format!("[{}] {text}\n", date(moment.wall_ns / SECOND)));
        }
    }

    /// What the log has at the end.
    fn log_totals(&self, figures: &Figures, measurement: &Measurement, moment: Moment, said: &mut Said) {
        let churn = &figures.churn;
        let asked = self.plan.phases[0].stop.requests.unwrap_or(0);
        let failed = churn.failures.total();
        let without_socket = churn.failures.descriptors + churn.failures.files;
        let calls = self.plan.groups[0].churn.as_ref().map_or(1, |churn| churn.calls);
        let mut log = |level: u32, text: &str| self.log(level, text, moment, said);
        if churn.failures.addresses > 0 {
            log(
                WARNINGS,
                "no local port was free for some connections: closed ones keep theirs for a minute; --linger=0 gives \
                 them back at once, --source=ADDR,... spreads them over several addresses",
            );
        }
        if churn.failures.descriptors > 0 {
            log(WARNINGS, "the limit of open files was reached: raise it with ulimit -n");
        }
        if let (Status::Partial, Some(reason)) = (measurement.status, &measurement.reason) {
            log(WARNINGS, reason);
        }
        let created = churn.asked;
        log(TOTALS, &format!("created {created} of {} connections, {failed} failed", asked / calls));
        let destroyed = churn.ended - without_socket;
        log(TOTALS, &format!("destroyed {destroyed} of {created} connections"));
    }

    /// What is said of a run that could not begin.
    fn refuse(&self, error: &NotRun, moment: Moment, said: &mut Said) -> Exit {
        match error {
            NotRun::Interrupted => {
                said.line("mcperf: interrupted before anything was measured");
                return Exit::Interrupted;
            }
            NotRun::Here(RunError::Connect(_)) => self.log(ERRORS, &error.to_string(), moment, said),
            error => said.line(self.failure(&error.to_string()).0),
        }
        Exit::Failed
    }
}

impl Style for McperfStyle<'_> {
    fn wants(&self) -> Wants {
        let level = self.manner.verbosity;
        Wants { rows: level >= CALLS, departures: level >= ENDS, keep: Keep::Figures, outstanding: false }
    }

    fn event(&mut self, event: Event<'_>, moment: Moment, said: &mut Said) {
        match event {
            // Whatever the log tells: a notice changes what the report is of.
            Event::Notice(words) => said.line(format_args!("mcperf: WARNING: {words}")),
            Event::PhaseBegan(_, at) => self.began = at,
            Event::Rows(rows) if self.manner.verbosity >= CALLS => {
                for row in rows {
                    let line = call_line(row, self.plan.name_of(row.verb), self.began);
                    self.log(CALLS, &line, moment, said);
                }
            }
            Event::Departures(gone) => {
                for departure in gone {
                    self.log(ENDS, &end_line(departure, self.began), moment, said);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, ended: &Ended<'_>, moment: Moment, said: &mut Said) -> Exit {
        if let Some(error) = ended.refused {
            return self.refuse(error, moment, said);
        }
        let measurement = ended.report.measurement;
        let figures = Figures {
            churn: measurement.connections.churn.as_deref().cloned().unwrap_or_default(),
            elapsed_ns: measurement.measured_ns,
            cpu_user_ns: measurement.generator.cpu_user_ns,
            cpu_system_ns: measurement.generator.cpu_system_ns,
        };
        self.log_totals(&figures, measurement, moment, said);
        let manner = self.manner;
        said.error(render(&figures, Layout { histogram: manner.histogram, response: manner.response }));
        let is_whole = figures.churn.failures.total() == 0 && measurement.status != Status::Partial;
        match measurement.status {
            // The original has no handler, so that the signal ends it.
            Status::Interrupted => Exit::Interrupted,
            _ if manner.strict && !is_whole => Exit::Failed,
            _ => Exit::Complete,
        }
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (format!("mcperf: {words}"), Exit::Failed)
    }
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
