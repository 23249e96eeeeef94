//! The words of memaslap's command line about a run: the banner, the tables and lines while it goes on, the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pummel_logic::plan::Transport;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::window::{EXPIRY_S, Finding, Flaw};
use pummel_measure::events::ConnectionEvent;
use pummel_measure::events::LocalTime;
use pummel_measure::events::Wants;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::recorder::Recorder;
use pummel_report::words::reason;

use crate::exit_status::Exit;
use crate::memaslap::outages::Outages;
use crate::memaslap::report::{RunStatistics, ShownCounters, last, periodic};
use crate::memaslap::{MemaslapDisplay, MemaslapRun};
use crate::style::{Ended, Event, Moment, Style, StyleOutput};
use crate::style::{Refused, RefusedCause};

/// How often one error message of servers is printed when it comes. The engine passes no more on from each worker.
const SERVER_ERRORS_SHOWN: u64 = 10;

/// After so long without an answer over UDP it is said that there is none.
const SILENCE_NS: Nanos = 3 * SECOND;

/// The words of memaslap.
pub struct MemaslapStyle<'a> {
    run: &'a MemaslapRun,
    display: MemaslapDisplay,
    period: RunStatistics,
    global: RunStatistics,
    outages: Outages,
    /// How often each message of servers was printed.
    server_errors: BTreeMap<Vec<u8>, u64>,
    udp_replies: UdpReplies,
    /// When what is got later began to be set.
    presets_since: Nanos,
    /// The name of the signal that ended the run.
    signal: fn() -> Option<&'static str>,
}

/// Whether anything comes back over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UdpReplies {
    /// Nothing was asked.
    NotAsked,
    /// Something was asked by this time of the measured phase, and nothing came yet.
    Awaited(Nanos),
    /// Something came, or it was said that nothing does; or nothing is asked over UDP.
    Settled,
}

impl<'a> MemaslapStyle<'a> {
    /// The words about a run; `signal` is asked for the name of the signal that ended it.
    pub fn new(run: &'a MemaslapRun, signal: fn() -> Option<&'static str>) -> MemaslapStyle<'a> {
        MemaslapStyle {
            run,
            display: run.display,
            period: RunStatistics::default(),
            global: RunStatistics::default(),
            outages: Outages::default(),
            server_errors: BTreeMap::new(),
            udp_replies: if run.display.datagrams { UdpReplies::NotAsked } else { UdpReplies::Settled },
            presets_since: 0,
            signal,
        }
    }

    /// Prints the end, and says how the run ended.
    fn conclude(&self, measurement: &Measurement, out: &mut StyleOutput) -> Exit {
        let interrupted = measurement.status == Status::Interrupted;
        if measurement.started_unix_ns == 0 {
            // Nothing was measured: connections could not be opened, or what was to be got could not be set.
            if let Some(reason) = &measurement.reason {
                out.line(reason::reason(reason));
            }
            if interrupted {
                self.say_signal(out);
            }
            return Exit::Failed;
        }
        self.total_server_errors(measurement, out);
        let MemaslapDisplay { stat_freq_s, verify, expire, datagrams, .. } = self.display;
        out.report(last(measurement, stat_freq_s > 0, &ShownCounters { verify, expire, datagrams }));
        let sound = self.judge(measurement, out);
        if interrupted {
            self.say_signal(out);
            return Exit::Failed;
        }
        if let (Status::Partial, Some(reason)) = (measurement.status, &measurement.reason) {
            out.line(reason::reason(reason));
        }
        let unfinished = measurement.ops().counts().unfinished;
        if let UdpReplies::Awaited(_) = self.udp_replies {
            tell_silence(out);
        } else if self.display.datagrams && unfinished > 0 {
            out.line(format_args!(
                "{unfinished} requests were without an answer at the end: over UDP they may be lost, and are given up after {} s.",
                self.run.job.plan.timeout_ns / SECOND
            ));
        }
        let strict = self.display.strict && (!sound || measurement.status != Status::Complete);
        if strict { Exit::Failed } else { Exit::Complete }
    }

    fn say_signal(&self, out: &mut StyleOutput) {
        out.line(format_args!("{} handled.", (self.signal)().unwrap_or("SIGINT")));
    }

    /// Says what checks found, and why gets found nothing. Returns whether nothing is wrong: what was verified is right and
    /// there, and replicated objects are everywhere.
    fn judge(&self, measurement: &Measurement, out: &mut StyleOutput) -> bool {
        let window = &measurement.counters.window;
        let flaws = [
            (window.verify_failed, "values were wrong"),
            (window.expired_get, "objects were there after they had expired"),
            (window.unexpired_unget, "objects were gone before they expired"),
        ];
        let found: Vec<String> = flaws
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        if !found.is_empty() {
            out.line(format_args!("VERIFICATION FAILED: {}.", found.join(", ")));
        }
        // What expired as it was asked to is no fault of a server.
        let misses = measurement.ops().counts().misses.saturating_sub(window.expired_misses);
        if misses > 0 && self.display.replicates {
            out.line(format_args!(
                "{misses} gets found nothing: each goes to any of the {} servers by chance, and what another server took \
                 is only there when the servers replicate among themselves.",
                self.run.job.plan.servers.len()
            ));
        } else if misses > 0 && self.display.verify {
            out.line(format_args!(
                "{misses} gets found nothing, {} of them to be verified: the servers do not have what they stored.",
                window.verify_misses
            ));
        }
        let unclear = measurement.udp.unwrap_or_default().unclear_misses;
        if self.display.datagrams && unclear > 0 {
            out.line(format_args!(
                "{unclear} of the misses may be lost datagrams: the server's replies to gets of several keys over UDP do not \
                 tell one from the other."
            ));
        }
        found.is_empty() && (misses == 0 || !self.display.verify && !self.display.replicates)
    }

    /// How often messages came that were not printed every time.
    fn total_server_errors(&self, measurement: &Measurement, out: &mut StyleOutput) {
        let mut text = String::new();
        for (words, count) in measurement.messages.iter().filter(|(_, count)| **count > SERVER_ERRORS_SHOWN) {
            let _ = writeln!(text, "<{words} ({count} times)");
        }
        out.report(text);
    }

    /// Listens for answers over UDP, which are all of them, or those to gets.
    fn watch_udp(&mut self, interval: &mut Interval, out: &mut StyleOutput) {
        let all = self.run.job.plan.transport == Transport::Udp;
        let answered = |recorder: &mut Recorder| match all {
            true => recorder.ops().counts().completed,
            false => recorder.ops().get(Verb::Get).map_or(0, |op| op.counts.completed),
        };
        let heard = interval.groups.iter_mut().map(answered).sum::<u64>() > 0;
        let asked = interval.counters.window.get_bytes > 0 || all && interval.counters.bytes.sent > 0;
        self.udp_replies = match self.udp_replies {
            _ if heard => UdpReplies::Settled,
            UdpReplies::NotAsked if asked => UdpReplies::Awaited(interval.end_ns),
            UdpReplies::Awaited(since) if interval.end_ns >= since + SILENCE_NS => tell_silence(out),
            other => other,
        };
    }

    /// Says which servers are back.
    fn tell_returned(&mut self, now: Nanos, out: &mut StyleOutput) {
        for (server, away_s) in self.outages.returned(now) {
            out.line(format_args!("Server {} reconnect after {away_s}s", self.server(server)));
        }
    }

    fn server(&self, server: usize) -> &str {
        &self.run.job.plan.servers[server]
    }
}

impl Style for MemaslapStyle<'_> {
    fn wants(&self) -> Wants {
        Wants { rows: false, departures: false, keep: Keep::Figures, outstanding: false, connections: true }
    }

    fn event(&mut self, event: Event<'_>, moment: Moment, out: &mut StyleOutput) {
        let now_ns = moment.now_ns;
        match event {
            Event::Announced(_) => {
                self.run.remarks.iter().for_each(|remark| out.line(format_args!("WARNING: {remark}")));
                out.output(self.run.banner.clone());
            }
            Event::Notice(words) => out.line(format_args!("WARNING: {words}")),
            Event::PhaseBegan(phase, at) if !phase.recorded && self.udp_replies == UdpReplies::NotAsked => {
                self.presets_since = at;
            }
            Event::Progress(_, ended, _) => self.note_presets(ended, now_ns, out),
            Event::Interval(interval) => self.add(interval, now_ns, out),
            Event::Finding(connection, finding) => {
                let times = (moment.local_time_at(finding.set_at), moment.local_time_at(finding.read_at));
                out.line(block(connection, finding, times));
            }
            Event::Complaint(connection, words) => {
                let count = self.server_errors.entry(words.to_vec()).or_default();
                *count += 1;
                if *count <= SERVER_ERRORS_SHOWN {
                    out.output(format!("<{connection} {}\n", String::from_utf8_lossy(words)));
                }
            }
            Event::Connection(server, event) => self.note_connection(server, event, now_ns, out),
            Event::RunOver(_, Some(_)) => self.tell_returned(Nanos::MAX, out),
            _ => {}
        }
    }

    fn end(&mut self, ended: &Ended<'_>, _: Moment, out: &mut StyleOutput) -> Exit {
        match ended.refused {
            Some(Refused { cause: RefusedCause::Interrupted, .. }) => {
                self.say_signal(out);
                Exit::Failed
            }
            Some(Refused { cause: RefusedCause::Unresolved { server, error }, .. }) => {
                out.line(format_args!("getaddrinfo(): {server}: {error}."));
                Exit::Failed
            }
            Some(error) => {
                out.line(error);
                Exit::Failed
            }
            None => self.conclude(ended.report.measurement, out),
        }
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (words.to_owned(), Exit::Failed)
    }
}

impl MemaslapStyle<'_> {
    /// What is set before gets begin goes over UDP where everything does, and is heard of there.
    fn note_presets(&mut self, ended: u64, now_ns: Nanos, out: &mut StyleOutput) {
        let by_udp = self.run.job.plan.transport == Transport::Udp && self.udp_replies != UdpReplies::Settled;
        if by_udp && ended > 0 {
            self.udp_replies = UdpReplies::Settled;
        } else if by_udp && now_ns >= self.presets_since + SILENCE_NS {
            self.udp_replies = tell_silence(out);
        }
    }

    /// Adds a slice of the measured phase to the tables, and prints them where it is time.
    fn add(&mut self, interval: &mut Interval, now_ns: Nanos, out: &mut StyleOutput) {
        self.tell_returned(now_ns, out);
        if self.udp_replies != UdpReplies::Settled {
            self.watch_udp(interval, out);
        }
        let period_s = self.display.stat_freq_s;
        if period_s == 0 {
            return;
        }
        self.period.add(interval);
        self.global.add(interval);
        let tick_s = interval.index + 1;
        let whole = interval.end_ns >= tick_s * SECOND;
        if whole && tick_s.is_multiple_of(period_s) {
            out.output(periodic(&self.period, &self.global, period_s, tick_s));
            self.period.clear();
        }
    }

    fn note_connection(
        &mut self,
        server: usize,
        event: ConnectionEvent,
        now_ns: Nanos,
        out: &mut StyleOutput,
    ) {
        self.tell_returned(now_ns, out);
        match event {
            ConnectionEvent::Lost if self.outages.lost(server, now_ns) => {
                out.line(format_args!("Server {} disconnect", self.server(server)));
            }
            ConnectionEvent::Lost => {}
            ConnectionEvent::Back => self.outages.back(server, now_ns),
        }
    }
}

fn tell_silence(out: &mut StyleOutput) -> UdpReplies {
    out.line(
        "WARNING: nothing comes back over UDP: does the server listen there, on the port of TCP? memcached does with -U PORT",
    );
    UdpReplies::Settled
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
