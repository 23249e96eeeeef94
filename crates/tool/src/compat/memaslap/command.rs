//! What a command line of memaslap's leads to: the banner, the run with what is said meanwhile, the report, the status.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use pummel_engine::clock;
use pummel_engine::resolve::ConnectError;
use pummel_engine::run::{Run, RunError, Wants, Watch};
use pummel_engine::sys::{self, LocalTime};
use pummel_engine::worker::messages::ConnectionEvent;
use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::measure::recorder::Recorder;
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::{Phase, Transport};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::window::{EXPIRY_S, Finding, Flaw};

use crate::compat::memaslap::outages::Absences;
use crate::compat::memaslap::report::{Counters, Share, last, periodic};
use crate::compat::memaslap::{Asked, HELP, Look, Refusal, Slap, VERSION, read_here};
use crate::exit_status::Exit;
use crate::job::background_writer::{BackgroundText, Patience, TextWritten};
use crate::job::result_files::Places;
use crate::job::{Edge, Front};
use crate::report::Report;
use crate::report::output::print;
use crate::stderr::say;

/// How often the same message of servers is printed at once; the engine passes no more on from each worker.
const COMPLAINTS: u64 = 10;

/// After so long without an answer over UDP it is said that there is none.
const SILENCE_NS: Nanos = 3 * SECOND;

/// Follows the words behind `program`, which is how the parser's errors begin.
pub fn memaslap(program: &str, words: &[OsString], edge: &Edge) -> Exit {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read_here(words, edge, &sys::allowed_cpus().unwrap_or_default()) {
        Ok(Asked::Help) => printed(HELP),
        Ok(Asked::Version) => printed(VERSION),
        Ok(Asked::Run(slap)) => match sys::on_interrupt() {
            Ok(interrupts) => follow(&slap, interrupts),
            Err(error) => failed(format_args!("signals cannot be handled: {error}")),
        },
        Err(Refusal::Words(text)) => failed(format_args!("{program}: {text}")),
        Err(Refusal::Choice(text)) => failed(text),
        Err(Refusal::WithHelp(text)) => {
            say(text);
            printed(HELP);
            Exit::Failed
        }
    }
}

fn failed(text: impl std::fmt::Display) -> Exit {
    say(text);
    Exit::Failed
}

/// Prints at once; a reader that has read enough is no error.
fn printed(text: &str) -> Exit {
    match print(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(error),
        _ => Exit::Complete,
    }
}

fn follow(slap: &Slap, interrupts: &AtomicU32) -> Exit {
    let plan = &slap.job.plan;
    let mut places = match Places::prepare(&slap.job.outputs, &slap.job.plan) {
        Ok(places) => places,
        Err(error) => return failed(error),
    };
    slap.remarks.iter().for_each(|remark| say(format_args!("WARNING: {remark}")));
    let out = match BackgroundText::standard_output() {
        Ok(out) => out,
        Err(error) => return failed(error),
    };
    let mut desk = Desk::new(slap, &out);
    out.add(&slap.banner);
    let exit = match Run::new(plan).start(&mut desk, &|| interrupts.load(Ordering::Relaxed) > 0) {
        Ok(mut measurement) => {
            places.settle(&mut measurement).iter().for_each(say);
            desk.welcome(Nanos::MAX);
            let exit = desk.conclude(&measurement);
            let summary = Summary::of(&measurement, plan);
            let front = Front::Memaslap.name();
            let report = Report { plan, measurement: &measurement, summary: &summary, front };
            // Files first: standard output may not be read yet.
            places.finish(&report).map_or_else(failed, |()| exit)
        }
        Err(RunError::Connect(ConnectError::Unresolved { server, error })) => {
            failed(format_args!("getaddrinfo(): {server}: {error}."))
        }
        Err(error) => failed(error),
    };
    let TextWritten { dropped_lines, result } = out.finish(Patience::UntilInterrupt);
    match result {
        // A reader that has read enough is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(error),
        Ok(()) if dropped_lines > 0 => {
            say(format_args!("WARNING: {dropped_lines} lines were not printed: they were not read in time"));
            exit
        }
        _ => exit,
    }
}

/// Who watches the run.
struct Desk<'a> {
    slap: &'a Slap,
    /// What is printed.
    out: &'a BackgroundText,
    look: Look,
    period: Share,
    global: Share,
    absences: Absences,
    /// How often each message of servers was printed.
    complaints: BTreeMap<Vec<u8>, u64>,
    hearing: Hearing,
    /// When what is got later began to be set.
    presets_since: Nanos,
}

/// Whether anything comes back over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    /// Nothing was asked.
    Unasked,
    /// Something was asked by this time of the measured phase, and nothing came yet.
    Listening(Nanos),
    /// Something came, or it was said that nothing does; or nothing is asked over UDP.
    Over,
}

impl<'a> Desk<'a> {
    fn new(slap: &'a Slap, out: &'a BackgroundText) -> Desk<'a> {
        Desk {
            slap,
            out,
            look: slap.look,
            period: Share::default(),
            global: Share::default(),
            absences: Absences::default(),
            complaints: BTreeMap::new(),
            hearing: if slap.look.datagrams { Hearing::Unasked } else { Hearing::Over },
            presets_since: 0,
        }
    }

    /// Prints the end, and says how the run ended.
    fn conclude(&self, measurement: &Measurement) -> Exit {
        let interrupted = measurement.status == Status::Interrupted;
        if measurement.started_unix_ns == 0 {
            // Nothing was measured: connections could not be opened, or what was to be got could not be set.
            if let Some(reason) = &measurement.reason {
                say(reason);
            }
            if interrupted {
                say("SIGINT handled.");
            }
            return Exit::Failed;
        }
        self.total_complaints(measurement);
        let Look { stat_freq_s, verify, expire, datagrams, .. } = self.look;
        self.out.add_report(&last(measurement, stat_freq_s > 0, &Counters { verify, expire, datagrams }));
        let sound = self.judge(measurement);
        if interrupted {
            say("SIGINT handled.");
            return Exit::Failed;
        }
        if let (Status::Partial, Some(reason)) = (measurement.status, &measurement.reason) {
            say(reason);
        }
        let unfinished = measurement.ops().all().counts.unfinished;
        if let Hearing::Listening(_) = self.hearing {
            tell_silence();
        } else if self.look.datagrams && unfinished > 0 {
            say(format_args!(
                "{unfinished} requests were without an answer at the end: over UDP they may be lost, and are given up after {} s.",
                self.slap.job.plan.timeout_ns / SECOND
            ));
        }
        let strict = self.look.strict && (!sound || measurement.status != Status::Complete);
        if strict { Exit::Failed } else { Exit::Complete }
    }

    /// One sentence about what checks found, and one about misses that replication explains.
    fn judge(&self, measurement: &Measurement) -> bool {
        let window = &measurement.window;
        let flaws = [
            (window.verify_failed, "values were wrong"),
            (window.expired_get, "objects were there after they had expired"),
            (window.unexpired_unget, "objects were gone before they expired"),
        ];
        let said: Vec<String> = flaws
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        if !said.is_empty() {
            say(format_args!("VERIFICATION FAILED: {}.", said.join(", ")));
        }
        let misses = measurement.ops().all().counts.misses;
        if self.look.replicates && misses > 0 {
            say(format_args!(
                "{misses} gets found nothing: objects are asked of servers that did not take them, and are only there \
                 when the servers replicate among themselves."
            ));
        }
        said.is_empty()
    }

    /// How often messages came that were not printed every time.
    fn total_complaints(&self, measurement: &Measurement) {
        let mut text = String::new();
        for (words, count) in measurement.messages.iter().filter(|(_, count)| **count > COMPLAINTS) {
            let _ = writeln!(text, "<{words} ({count} times)");
        }
        self.out.add_report(&text);
    }

    /// Listens for answers over UDP, which are all of them, or those to gets.
    fn listen(&mut self, interval: &mut Interval) {
        let all = self.slap.job.plan.transport == Transport::Udp;
        let answered = |recorder: &mut Recorder| match all {
            true => recorder.ops().all().counts.completed,
            false => recorder.ops().get(Verb::Get).map_or(0, |op| op.counts.completed),
        };
        let heard = interval.groups.iter_mut().map(answered).sum::<u64>() > 0;
        let asked = interval.window.get_bytes > 0 || all && interval.bytes.sent > 0;
        self.hearing = match self.hearing {
            _ if heard => Hearing::Over,
            Hearing::Unasked if asked => Hearing::Listening(interval.end_ns),
            Hearing::Listening(since) if interval.end_ns >= since + SILENCE_NS => tell_silence(),
            other => other,
        };
    }

    /// Says which servers are back.
    fn welcome(&mut self, now: Nanos) {
        for (server, away_s) in self.absences.returned(now) {
            say(format_args!("Server {} reconnect after {away_s}s", self.server(server)));
        }
    }

    fn server(&self, server: usize) -> &str {
        &self.slap.job.plan.servers[server]
    }
}

impl Watch for Desk<'_> {
    fn wants(&self) -> Wants {
        let keep = if self.slap.job.outputs.hdr.is_some() { Keep::Histograms } else { Keep::Figures };
        Wants { rows: false, departures: false, keep, outstanding: false }
    }

    fn notice(&mut self, words: &str) {
        say(format_args!("WARNING: {words}"));
    }

    fn begin(&mut self, phase: &Phase, at: Nanos) {
        if !phase.recorded && self.hearing == Hearing::Unasked {
            self.presets_since = at;
        }
    }

    fn progress(&mut self, _: &Phase, ended: u64, _: Option<u64>) {
        // What is set before gets begin goes over UDP where all does.
        let by_udp = self.slap.job.plan.transport == Transport::Udp && self.hearing != Hearing::Over;
        if by_udp && ended > 0 {
            self.hearing = Hearing::Over;
        } else if by_udp && clock::now() >= self.presets_since + SILENCE_NS {
            self.hearing = tell_silence();
        }
    }

    fn interval(&mut self, interval: &mut Interval) {
        self.welcome(clock::now());
        if self.hearing != Hearing::Over {
            self.listen(interval);
        }
        let period_s = self.look.stat_freq_s;
        if period_s == 0 {
            return;
        }
        self.period.add(interval);
        self.global.add(interval);
        let tick_s = interval.index + 1;
        let whole = interval.end_ns >= tick_s * SECOND;
        if whole && tick_s.is_multiple_of(period_s) {
            let text = periodic(&self.period, &self.global, period_s, tick_s);
            self.out.add(&text);
            self.period.clear();
        }
    }

    fn finding(&mut self, connection: u64, finding: &Finding) {
        let wall = |at: Nanos| {
            let age_ns = clock::now().saturating_sub(at);
            sys::local_time(clock::wall().saturating_sub(age_ns) / SECOND)
        };
        let times = (wall(finding.set_at), wall(finding.read_at));
        say(block(connection, finding, times));
    }

    fn complaint(&mut self, connection: u64, words: &[u8]) {
        let count = self.complaints.entry(words.to_vec()).or_default();
        *count += 1;
        if *count <= COMPLAINTS {
            self.out.add(&format!("<{connection} {}\n", String::from_utf8_lossy(words)));
        }
    }

    fn connection(&mut self, server: usize, event: ConnectionEvent) {
        let now = clock::now();
        self.welcome(now);
        match event {
            ConnectionEvent::Lost if self.absences.lost(server, now) => {
                say(format_args!("Server {} disconnect", self.server(server)));
            }
            ConnectionEvent::Lost => {}
            ConnectionEvent::Back => self.absences.back(server, now),
        }
    }
}

fn tell_silence() -> Hearing {
    say(
        "WARNING: nothing comes back over UDP: does the server listen there, on the port of TCP? memcached does with -U PORT",
    );
    Hearing::Over
}

/// What is said of a check that failed; it begins with an empty line.
fn block(connection: u64, finding: &Finding, (set, read): (LocalTime, LocalTime)) -> String {
    let headline = match finding.flaw {
        Flaw::Differs | Flaw::Missing => format!("<{connection} data verification failed"),
        Flaw::Expired => {
            format!("<{connection} expire time verification failed, object expired but get it now")
        }
        Flaw::Vanished => {
            format!(
                "\t<{connection} expire time verification failed, object doesn't expire but can't get it now"
            )
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let key_bytes = finding.suffix.len() + 8;
    let mut lines = format!(
        "\n{headline}\n\tkey len: {key_bytes}\n\tkey: {:x} {}\n",
        finding.prefix,
        text(&finding.suffix)
    );
    if matches!(finding.flaw, Flaw::Expired | Flaw::Vanished) {
        let diff_s = finding.read_at.saturating_sub(finding.set_at) / SECOND;
        let _ = writeln!(
            lines,
            "\tset time: {} current time: {} diff time: {diff_s} expire time: {EXPIRY_S}",
            shown(set),
            shown(read)
        );
    }
    match finding.flaw {
        Flaw::Expired => lines.push_str("\texpected data: \n"),
        _ => {
            let _ = write!(
                lines,
                "\texpected data len: {}\n\texpected data: {}\n",
                finding.expected.len(),
                text(&finding.expected)
            );
        }
    }
    match &finding.received {
        Some(received) => {
            let _ =
                write!(lines, "\treceived data len: {}\n\treceived data: {}", received.len(), text(received));
        }
        None => lines.push_str("\treceived data: "),
    }
    lines
}

fn shown(time: LocalTime) -> String {
    let LocalTime { year, month, day, hour, minute, second } = time;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: LocalTime = LocalTime { year: 2026, month: 11, day: 20, hour: 10, minute: 18, second: 5 };
    const READ: LocalTime = LocalTime { minute: 19, second: 11, ..SET };

    fn finding(flaw: Flaw, received: Option<&[u8]>) -> Finding {
        Finding {
            flaw,
            prefix: 0x1010_1010_1010_b7bc,
            suffix: b"R77u00mj".to_vec(),
            expected: if flaw == Flaw::Expired { Vec::new() } else { b"R77u0".to_vec() },
            received: received.map(<[u8]>::to_vec),
            set_at: 0,
            read_at: 66 * SECOND,
        }
    }

    #[test]
    fn each_flaw_has_the_block_of_the_original() {
        let said = |flaw, received| block(7, &finding(flaw, received), (SET, READ));
        assert_eq!(
            said(Flaw::Differs, Some(b"Not found")),
            "\n<7 data verification failed\n\tkey len: 16\n\tkey: 101010101010b7bc R77u00mj\n\
             \texpected data len: 5\n\texpected data: R77u0\n\treceived data len: 9\n\treceived data: Not found"
        );
        assert_eq!(
            said(Flaw::Missing, None),
            "\n<7 data verification failed\n\tkey len: 16\n\tkey: 101010101010b7bc R77u00mj\n\
             \texpected data len: 5\n\texpected data: R77u0\n\treceived data: "
        );
        assert_eq!(
            said(Flaw::Expired, Some(b"R77u0")),
            "\n<7 expire time verification failed, object expired but get it now\n\tkey len: 16\n\
             \tkey: 101010101010b7bc R77u00mj\n\
             \tset time: 2026-11-20 10:18:05 current time: 2026-11-20 10:19:11 diff time: 66 expire time: 60\n\
             \texpected data: \n\treceived data len: 5\n\treceived data: R77u0"
        );
        assert_eq!(
            said(Flaw::Vanished, None),
            "\n\t<7 expire time verification failed, object doesn't expire but can't get it now\n\tkey len: 16\n\
             \tkey: 101010101010b7bc R77u00mj\n\
             \tset time: 2026-11-20 10:18:05 current time: 2026-11-20 10:19:11 diff time: 66 expire time: 60\n\
             \texpected data len: 5\n\texpected data: R77u0\n\treceived data: "
        );
    }
}
