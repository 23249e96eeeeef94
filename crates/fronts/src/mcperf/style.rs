//! The words of mcperf's command line about a run: the log while the run goes on, and the report.

use pummel_logic::plan::Plan;
use pummel_logic::time::{MICROSECOND, NEVER, Nanos, SECOND};
use pummel_measure::churn::{ConnectionFailure, ConnectionFailures};
use pummel_measure::events::LocalTime;
use pummel_measure::events::Wants;
use pummel_measure::events::{Departure, Row};
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_report::words::reason;

use crate::exit_status::Exit;
use crate::mcperf::McperfDisplay;
use crate::mcperf::report::{McperfFigures, ReportLayout, render, unknown_percentiles};
use crate::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use crate::style::{Refused, RefusedCause};

/// Levels of the log.
const ERRORS: u32 = 1;
/// The level at which nothing stands before the report that is not in that of the original.
const LEVEL_DEFAULT: u32 = 4;
const WARNINGS: u32 = 4;
const TOTALS: u32 = 5;
const ENDS: u32 = 6;
const CALLS: u32 = 7;

/// The words of mcperf.
#[derive(Clone, Debug)]
pub struct McperfStyle<'a> {
    display: &'a McperfDisplay,
    plan: &'a Plan,
    /// When the measured phase began, on the monotonic clock.
    began: Nanos,
}

impl<'a> McperfStyle<'a> {
    /// The words about a run of this plan.
    pub fn new(display: &'a McperfDisplay, plan: &'a Plan) -> McperfStyle<'a> {
        McperfStyle { display, plan, began: 0 }
    }

    fn log(&self, level: u32, text: &str, moment: Moment, out: &mut StyleOutput) {
        if level <= self.display.verbosity {
            out.log(format!("[{}] {text}\n", date((moment.local_time)(moment.wall_ns / SECOND))));
        }
    }

    /// What the log has at the end.
    fn log_totals(
        &self,
        figures: &McperfFigures,
        measurement: &Measurement,
        moment: Moment,
        out: &mut StyleOutput,
    ) {
        let churn = &figures.churn;
        let asked = self.plan.phases[0].stop.requests.unwrap_or(0);
        let failed = churn.failures.total();
        let without_socket = churn.failures.descriptors + churn.failures.files;
        let calls = self.plan.groups[0].churn.as_ref().map_or(1, |churn| churn.calls);
        let mut log = |level: u32, text: &str| self.log(level, text, moment, out);
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
        let kinds = failures_by_kind(&churn.failures);
        match (measurement.status, &measurement.reason) {
            // The reason of the run names the first failure, which is one kind of several.
            (Status::Partial, Some(_)) if kinds.len() > 1 => {
                for (count, what) in kinds {
                    log(WARNINGS, &format!("{count} of {} connections failed: {what}", churn.begun));
                }
            }
            (Status::Partial, Some(reason)) => log(WARNINGS, &reason::reason(reason)),
            _ => {}
        }
        let above = unknown_percentiles(churn);
        if !above.is_empty() && !self.display.response {
            let without = churn.request_bytes.count - churn.reply_bytes.count;
            let names = above.join(", ");
            log(
                WARNINGS,
                &format!(
                    "{without} calls had no response: the true values of {names} are greater than those below"
                ),
            );
        }
        let created = churn.asked;
        log(TOTALS, &format!("created {created} of {} connections, {failed} failed", asked / calls));
        let destroyed = churn.ended - without_socket;
        log(TOTALS, &format!("destroyed {destroyed} of {created} connections"));
    }

    /// What is said of a run that could not begin.
    fn refuse(&self, error: &Refused, moment: Moment, out: &mut StyleOutput) -> Exit {
        match error.cause {
            RefusedCause::Interrupted => {
                out.line("mcperf: interrupted before anything was measured");
                return Exit::Interrupted;
            }
            RefusedCause::Unresolved { .. } | RefusedCause::NotConnected => {
                self.log(ERRORS, &error.to_string(), moment, out);
                // A failure is not silent where its log is, or is a file.
                if self.display.verbosity < ERRORS || self.display.log.is_some() {
                    out.line(self.failure(&error.to_string()).0);
                }
            }
            RefusedCause::Other => out.line(self.failure(&error.to_string()).0),
        }
        Exit::Failed
    }
}

impl Style for McperfStyle<'_> {
    fn wants(&self) -> Wants {
        let level = self.display.verbosity;
        Wants {
            rows: level >= CALLS,
            departures: level >= ENDS,
            keep: Keep::Figures,
            outstanding: false,
            connections: false,
        }
    }

    fn event(&mut self, event: Event<'_>, moment: Moment, out: &mut StyleOutput) {
        match event {
            Event::Announced(_) => {
                self.display
                    .remarks
                    .iter()
                    .for_each(|words| out.line(format_args!("mcperf: WARNING: {words}")));
            }
            // Whatever the log tells: a notice changes what the report is of.
            Event::Notice(words) => out.line(format_args!("mcperf: WARNING: {words}")),
            Event::PhaseBegan(_, at) => self.began = at,
            Event::Rows(rows) if self.display.verbosity >= CALLS => {
                for row in rows {
                    let line = call_line(row, self.plan.name_of(row.verb), self.began);
                    self.log(CALLS, &line, moment, out);
                }
            }
            Event::Departures(gone) => {
                for departure in gone {
                    self.log(ENDS, &end_line(departure, self.began), moment, out);
                }
            }
            _ => {}
        }
    }

    fn doubted(&self) -> Doubted {
        // What the report is at the level of the original has nothing before it.
        match (self.display.verbosity > LEVEL_DEFAULT, self.display.response) {
            (false, _) => Doubted::Nothing,
            (true, true) => Doubted::Response,
            (true, false) => Doubted::Service,
        }
    }

    fn end(&mut self, ended: &Ended<'_>, moment: Moment, out: &mut StyleOutput) -> Exit {
        if let Some(error) = ended.refused {
            return self.refuse(error, moment, out);
        }
        let measurement = ended.report.measurement;
        let figures = McperfFigures {
            churn: measurement.connections.churn.as_deref().cloned().unwrap_or_default(),
            elapsed_ns: measurement.measured_ns,
            thread_ns: measurement.generator.workers.iter().map(|worker| worker.wall_ns).max().unwrap_or(0),
            cpu_user_ns: measurement.generator.cpu_user_ns,
            cpu_system_ns: measurement.generator.cpu_system_ns,
        };
        self.log_totals(&figures, measurement, moment, out);
        let display = self.display;
        out.error(render(
            &figures,
            ReportLayout { histogram: display.histogram, response: display.response },
        ));
        let is_whole = figures.churn.failures.total() == 0 && measurement.status != Status::Partial;
        match measurement.status {
            // The original has no handler, so that the signal ends it.
            Status::Interrupted => Exit::Interrupted,
            _ if display.strict && !is_whole => Exit::Failed,
            _ => Exit::Complete,
        }
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (format!("mcperf: {words}"), Exit::Failed)
    }
}

/// A local time in the display of C's `asctime`. The day of the week follows from the days since 1 March of the year 0,
/// counted by the civil calendar's rule of leap years.
fn date(time: LocalTime) -> String {
    const DAYS: [&str; 7] = ["Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let LocalTime { year, month, day, hour, minute, second } = time;
    // Years that begin in March have their leap day at the end.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    format!(
        "{} {} {day:>2} {hour:02}:{minute:02}:{second:02} {year}",
        DAYS[days as usize % 7],
        MONTHS[month as usize - 1],
    )
}

/// How many connections failed in each way, and the way in words.
fn failures_by_kind(failures: &ConnectionFailures) -> Vec<(u64, &'static str)> {
    let kinds = [
        (failures.timeout, "no answer within the time of -t"),
        (failures.unreachable, "ETIMEDOUT, the kernel got no answer"),
        (failures.refused, "ECONNREFUSED, or the server said that it takes no more connections"),
        (failures.reset, "ECONNRESET or EPIPE, the server reset the connection"),
        (failures.descriptors, "EMFILE, this process may not have more descriptors"),
        (failures.files, "ENFILE, the system has no room for more open files"),
        (failures.addresses, "EADDRNOTAVAIL, no local port was free"),
        (failures.other, "the server closed the connection, or sent what the protocol does not allow"),
    ];
    kinds.into_iter().filter(|(count, _)| *count > 0).collect()
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
        row.outcome.name(),
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
    use pummel_logic::protocol::{Fault, Outcome, Verb};
    use pummel_measure::trouble::CloseReason;
    use pummel_measure::trouble::Trouble;

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
        let refused = Trouble::NotOpened(CloseReason::new(Fault::Refused, 111));
        for (departure, line) in [
            (departure(10, true, None), "open, 10 of 10 calls: done"),
            (departure(3, true, None), "open, 3 of 10 calls: interrupted"),
            (departure(3, true, Some((ConnectionFailure::Reset, None))), "open, 3 of 10 calls: reset"),
            (
                departure(
                    3,
                    true,
                    Some((ConnectionFailure::Other, Some(Trouble::Lost(CloseReason::new(Fault::Closed, 0))))),
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
    fn each_way_to_fail_has_its_number() {
        let failures = ConnectionFailures { refused: 3, timeout: 2, ..ConnectionFailures::default() };
        let told: Vec<u64> = failures_by_kind(&failures).into_iter().map(|(count, _)| count).collect();
        assert_eq!(told, [2, 3]);
        assert_eq!(failures_by_kind(&ConnectionFailures::default()), []);
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
        let at = |year, month, day, hour, minute, second| {
            date(LocalTime { year, month, day, hour, minute, second })
        };
        assert_eq!(at(1970, 1, 1, 0, 0, 0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(at(2000, 2, 29, 0, 0, 0), "Tue Feb 29 00:00:00 2000");
        assert_eq!(at(2000, 3, 1, 0, 0, 0), "Wed Mar  1 00:00:00 2000");
        assert_eq!(at(2026, 11, 20, 10, 13, 57), "Fri Nov 20 10:13:57 2026");
        assert_eq!(at(2100, 12, 31, 23, 59, 59), "Fri Dec 31 23:59:59 2100");
    }
}
