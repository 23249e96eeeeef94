//! The words for why a run is not complete.

use pummel_logic::time::seconds;
use pummel_measure::agents::LossReason;
use pummel_measure::limit::Outpaced;
use pummel_measure::measurement::Measurement;
use pummel_measure::outcome::Ending;
use pummel_measure::reason::{
    ControllerStandstill, FailedRequests, MemberReason, MemberWhy, Moment, Reason, ServerTrouble,
    ShareShortfall, Unstored, Why,
};
use pummel_measure::words::{counted, grouped, percent, rate_text, was};

/// The reason why a run is not complete, as [`reason`] says it; empty where it is complete.
pub fn of_run(measurement: &Measurement) -> String {
    measurement.reason.as_ref().map(reason).unwrap_or_default()
}

/// The reason why a run is not complete, as a sentence without its full stop.
pub fn reason(reason: &Reason) -> String {
    parts(reason).join("; ")
}

/// The parts of a reason, each of which is a sentence: one for each process, or a single one.
pub fn parts(reason: &Reason) -> Vec<String> {
    match reason {
        Reason::Members { members, more, is_stopped, standstill: still, unstored: load } => {
            let mut parts: Vec<String> = members.iter().map(member).collect();
            parts.extend((*more > 0).then(|| format!("and {more} reasons more")));
            parts.extend(is_stopped.then(|| "the run was stopped (--on-agent-loss stop)".to_owned()));
            parts.extend(still.as_ref().map(standstill));
            parts.extend(load.as_ref().map(unstored));
            parts
        }
        reason => vec![of_process(reason)],
    }
}

/// The reason of a run in one process.
fn of_process(reason: &Reason) -> String {
    match reason {
        Reason::NothingDue => "nothing completed: no request was due".to_owned(),
        Reason::NothingCompleted { why, is_udp } => {
            let udp = if *is_udp { "; memcached listens on UDP only with -U" } else { "" };
            format!("nothing completed{}{udp}", behind(why))
        }
        Reason::NotTaken { server, connections, refused, what, limit, counted: own, is_resp, others } => {
            let taken = connections.saturating_sub(*refused);
            let said = if what.is_empty() { String::new() } else { format!(": \"{what}\"") };
            let others = match others {
                0 => String::new(),
                others => format!("; {} refused some too", counted(*others, "other server")),
            };
            format!(
                "{server} took {} of {} and refused {}{said}{}{others}",
                grouped(taken),
                counted(*connections, "connection"),
                grouped(*refused),
                connection_limit((*connections, *refused), *limit, *own, *is_resp),
            )
        }
        Reason::ServerGone { server, silent_ns, turned_away, trouble } => {
            let first = trouble.as_ref().map_or_else(String::new, |trouble| format!(": {}", trouble.what));
            let silent_s = seconds(*silent_ns);
            match turned_away {
                true => format!(
                    "{server} was gone at the end: it took no connections, and answered nothing for {silent_s:.1} s{first}"
                ),
                false => format!("{server} did not answer for the last {silent_s:.1} s{first}"),
            }
        }
        Reason::Unstored(load) => unstored(load),
        Reason::WorkerFailed { what } => format!("a worker could not go on: {what}"),
        Reason::NotOpened { asked, failed, lost, untried, why } => {
            let (what, why) = (of_connections(*untried, *asked), behind(why));
            match (failed, lost) {
                (0, 0) => format!("{what} not opened{why}"),
                (0, lost) => format!("{} lost at once{why}", of_connections(*lost, *asked)),
                _ if *untried > 0 => format!(
                    "{failed} of {asked} connections could not be opened ({untried} {} not tried){why}",
                    was(*untried)
                ),
                _ => format!("{failed} of {asked} connections could not be opened{why}"),
            }
        }
        Reason::ConnectionsLost { asked, lost, why } => {
            format!("{} lost and not replaced{}", of_connections(*lost, *asked), behind(why))
        }
        Reason::ClientsFailed { begun, failed, missing, why } => {
            format!("{failed} of {begun} connections failed{}{}", behind(why), never_made_too(*missing))
        }
        Reason::NoRoom { open_max, failed, what, missing } => format!(
            "this machine let no more than {open_max} connections be open at one time, and {failed} found no room: {what}{}",
            never_made_too(*missing)
        ),
        Reason::NeverMade { missing, why } => format!("{}{}", never_made(*missing), behind(why)),
        Reason::EvictionsUnreported { what } => format!(
            "the warm-up was to last until the first eviction, and no server tells how many records it evicted: {what}"
        ),
        Reason::NotBegun { what } | Reason::TraceUnread { what } => what.clone(),
        Reason::TraceTaken { rows } => {
            format!("the warm-up (--trace-warmup) took all {rows} rows of the trace")
        }
        Reason::RequestsFailed(requests) => failed(requests),
        Reason::Interrupted => "interrupted".to_owned(),
        Reason::NotOver => "the run is not over".to_owned(),
        Reason::Members { .. } => parts(reason).join("; "),
    }
}

/// The limit of a server that takes so many connections and refused so many of them, and its count of refusals, as a remark in
/// brackets behind a blank; empty where neither is known. `is_resp`: the server speaks RESP.
pub fn connection_limit(
    (connections, refused): (u64, u64),
    limit: Option<u64>,
    counted: Option<u64>,
    is_resp: bool,
) -> String {
    let mut parts = Vec::new();
    if let Some(limit) = limit {
        parts.push(format!("its limit is {}", grouped(limit)));
        // memcached counts connections to its own threads; Redis counts clients.
        if connections.saturating_sub(refused) < limit && refused > 0 {
            parts.push(if is_resp { "others have the rest" } else { "some are its own" }.to_owned());
        }
    }
    if let Some(counted) = counted {
        parts.push(format!("it counts {} refused since its start", grouped(counted)));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// Evidence that a run is not well, as a sentence without its full stop.
pub fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Failed(requests) => failed(requests),
        Ending::Overloaded(Outpaced { asked, answered }) => format!(
            "{} answered of {} asked; the queue grew to the end, a longer run will not help",
            rate_text(*answered),
            rate_text(*asked)
        ),
    }
}

/// The requests of a run that failed.
fn failed(requests: &FailedRequests) -> String {
    let FailedRequests { ended, failed, timed_out, what } = requests;
    let how = if *timed_out { "got no answer in time" } else { "were errors" };
    let said = what.as_ref().map_or_else(String::new, |what| format!(": {what}"));
    format!("{} of {} requests {how}{said}", percent(*failed as f64 / *ended as f64), grouped(*ended))
}

/// The records that a load did not store.
pub fn unstored(unstored: &Unstored) -> String {
    let Unstored { records, stored, per_record, why } = unstored;
    let missing = records.saturating_sub(*stored);
    let (many, done) = match per_record {
        0 | 1 => (format!("{records} records"), "stored"),
        each => (format!("{records} stores (up to {each} for each record)"), "made"),
    };
    match stored {
        0 => format!("none of {many} was {done}{}", behind(why)),
        _ => format!("{missing} of {many} {} not {done}{}", was(missing), behind(why)),
    }
}

/// The reason behind a sentence; empty where none is known.
pub fn behind(why: &Option<Why>) -> String {
    match why {
        Some(Why::Trouble(ServerTrouble { server, what, .. })) => format!(": {server}: {what}"),
        Some(Why::Said { what, count }) => format!(": the server said \"{what}\" ({count} times)"),
        None => String::new(),
    }
}

/// The reason of a process.
pub fn member(reason: &MemberReason) -> String {
    let MemberReason { member, is_agent, why } = reason;
    let title = if *is_agent { format!("agent {member}") } else { member.clone() };
    match why {
        MemberWhy::Run(reason) => format!("{title}: {}", of_process(reason)),
        MemberWhy::Share(short) => format!("{title} {}", share(short)),
        MemberWhy::EndedEarly => format!("{title} ended before it was told to"),
        MemberWhy::Failed { what } => format!("{title}: {what}"),
        MemberWhy::OtherRecording { rows, others } => {
            format!("{title} replayed a recording of {rows} rows, and another member one of {others}")
        }
        MemberWhy::Gone { at, left, why } => {
            let how = if *left { "left" } else { "was lost" };
            format!("{title} {how} {}: {}", moment(at), loss(why))
        }
    }
}

/// The reason why a process was not there to the end.
pub fn loss(why: &LossReason) -> String {
    match why {
        LossReason::NoAnswer => "it does not answer".to_owned(),
        LossReason::Silent(silent_ns) => {
            format!("nothing was heard from it for {:.1} s", seconds(*silent_ns))
        }
        LossReason::Unexplained => "it ended the run without a word".to_owned(),
        LossReason::MessageUnread { what } => format!("what it sent cannot be read ({what})"),
        LossReason::MeasurementUnread => "what it measured cannot be read".to_owned(),
        LossReason::Late => "it did not come to an end in time".to_owned(),
        LossReason::Connection { what } | LossReason::Said { what } => what.clone(),
    }
}

/// The part of its share that a process did not do, behind the name of the process.
fn share(short: &ShareShortfall) -> String {
    match short {
        ShareShortfall::Records(stored, asked) => {
            format!("stored {stored} of its {asked} records, and did not try to store all of them")
        }
        ShareShortfall::Time(measured_ns, asked_ns) => {
            format!("measured {:.1} s of {:.1} s", seconds(*measured_ns), seconds(*asked_ns))
        }
        ShareShortfall::Requests(made, asked) => format!("made {made} of its {asked} requests"),
        ShareShortfall::Connections(made, asked) => format!("made {made} of its {asked} connections"),
        ShareShortfall::Rows(made, asked) => format!("asked {made} of its {asked} rows of the recording"),
    }
}

/// A standstill of the controller.
pub fn standstill(standstill: &ControllerStandstill) -> String {
    let length_s = seconds(standstill.length_ns);
    format!("the controller stood still for {length_s:.1} s, {}", moment(&standstill.at))
}

/// A moment as the end of a sentence.
fn moment(moment: &Moment) -> String {
    match moment {
        Moment::BeforePhases => "before the first phase".to_owned(),
        Moment::Load(since_ns) => format!("{:.1} s after the beginning of the load", seconds(*since_ns)),
        Moment::WarmUp(since_ns) => {
            format!("{:.1} s after the beginning of the warm-up", seconds(*since_ns))
        }
        Moment::Measurement(since_ns) => format!("{:.1} s into the measurement", seconds(*since_ns)),
        Moment::Phase(name, since_ns) => {
            format!("{:.1} s after the beginning of phase '{name}'", seconds(*since_ns))
        }
    }
}

/// A number of connections, of those that were asked for, with a verb behind them.
fn of_connections(count: u64, asked: u64) -> String {
    format!("{count} of {asked} connections {}", was(count))
}

/// Requests that were never made.
fn never_made(missing: u64) -> String {
    let requests = if missing == 1 { "request" } else { "requests" };
    format!("{missing} {requests} {} never made", was(missing))
}

/// Requests that were never made, behind another reason; empty where there are none.
fn never_made_too(missing: u64) -> String {
    if missing == 0 { String::new() } else { format!("; {}", never_made(missing)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::time::{MILLISECOND, SECOND};
    use pummel_measure::connections::TroubleKind;

    #[test]
    fn each_reason_has_its_words() {
        let closed = || ServerTrouble {
            server: "a:1".to_owned(),
            kind: TroubleKind::Closed,
            what: "the server closed the connection".to_owned(),
        };
        let why = || Some(Why::Trouble(closed()));
        let said = || Some(Why::Said { what: "SERVER_ERROR out of memory".to_owned(), count: 6 });
        let unstored = |stored, why| Reason::Unstored(Unstored { records: 10, stored, per_record: 1, why });
        let gone = |turned_away, trouble| Reason::ServerGone {
            server: "b:2".to_owned(),
            silent_ns: SECOND / 2,
            turned_away,
            trouble,
        };
        let not_opened =
            |asked, failed, lost, untried, why| Reason::NotOpened { asked, failed, lost, untried, why };
        let not_taken = |refused, limit, counted, is_resp, others| Reason::NotTaken {
            server: "b:2".to_owned(),
            connections: 64,
            refused,
            what: "ERROR Too many".to_owned(),
            limit,
            counted,
            is_resp,
            others,
        };
        let no_room =
            |what: &str, missing| Reason::NoRoom { open_max: 20, failed: 6, what: what.to_owned(), missing };
        for (of, words) in [
            (Reason::NothingDue, "nothing completed: no request was due"),
            (
                Reason::NothingCompleted { why: why(), is_udp: false },
                "nothing completed: a:1: the server closed the connection",
            ),
            (
                Reason::NothingCompleted { why: None, is_udp: true },
                "nothing completed; memcached listens on UDP only with -U",
            ),
            (
                not_taken(49, Some(40), None, false, 0),
                "b:2 took 15 of 64 connections and refused 49: \"ERROR Too many\" (its limit is 40; some are its own)",
            ),
            (
                not_taken(60, Some(40), Some(1_061), true, 1),
                "b:2 took 4 of 64 connections and refused 60: \"ERROR Too many\" (its limit is 40; others have the rest; it \
                 counts 1,061 refused since its start); 1 other server refused some too",
            ),
            (
                gone(true, None),
                "b:2 was gone at the end: it took no connections, and answered nothing for 0.5 s",
            ),
            (
                gone(false, Some(closed())),
                "b:2 did not answer for the last 0.5 s: the server closed the connection",
            ),
            (unstored(0, None), "none of 10 records was stored"),
            (
                Reason::Unstored(Unstored { records: 30, stored: 27, per_record: 3, why: None }),
                "3 of 30 stores (up to 3 for each record) were not made",
            ),
            (
                unstored(3, said()),
                "7 of 10 records were not stored: the server said \"SERVER_ERROR out of memory\" (6 times)",
            ),
            (unstored(9, why()), "1 of 10 records was not stored: a:1: the server closed the connection"),
            (Reason::WorkerFailed { what: "no memory".to_owned() }, "a worker could not go on: no memory"),
            (not_opened(10, 0, 0, 6, None), "6 of 10 connections were not opened"),
            (not_opened(10, 0, 3, 0, None), "3 of 10 connections were lost at once"),
            (
                not_opened(10, 1, 0, 5, why()),
                "1 of 10 connections could not be opened (5 were not tried): a:1: the server closed the connection",
            ),
            (not_opened(1, 1, 2, 0, None), "1 of 1 connections could not be opened"),
            (
                Reason::ConnectionsLost { asked: 10, lost: 1, why: None },
                "1 of 10 connections was lost and not replaced",
            ),
            (
                Reason::ClientsFailed { begun: 100, failed: 5, missing: 0, why: None },
                "5 of 100 connections failed",
            ),
            (
                no_room("no descriptor", 0),
                "this machine let no more than 20 connections be open at one time, and 6 found no room: no descriptor",
            ),
            (
                no_room("no file", 7),
                "this machine let no more than 20 connections be open at one time, and 6 found no room: no file; 7 requests \
                 were never made",
            ),
            (Reason::NeverMade { missing: 1, why: None }, "1 request was never made"),
            (
                Reason::EvictionsUnreported { what: "why".to_owned() },
                "the warm-up was to last until the first eviction, and no server tells how many records it evicted: why",
            ),
            (Reason::TraceTaken { rows: 9 }, "the warm-up (--trace-warmup) took all 9 rows of the trace"),
            (Reason::TraceUnread { what: "cannot read 't'".to_owned() }, "cannot read 't'"),
        ] {
            assert_eq!(reason(&of), words);
        }
    }

    #[test]
    fn the_endings_of_runs_that_are_not_well_have_their_words() {
        let failed = |timed_out, what: Option<&str>| {
            let what = what.map(str::to_owned);
            Ending::Failed(FailedRequests { ended: 1_000, failed: 990, timed_out, what })
        };
        for (of, words) in [
            (failed(false, Some("WRONGTYPE")), "99 % of 1,000 requests were errors: WRONGTYPE"),
            (failed(true, None), "99 % of 1,000 requests got no answer in time"),
            (
                Ending::Overloaded(Outpaced { asked: 1_000.0, answered: 400.0 }),
                "400/s answered of 1,000/s asked; the queue grew to the end, a longer run will not help",
            ),
        ] {
            assert_eq!(ending(&of), words);
        }
    }

    #[test]
    fn the_losses_of_processes_have_their_words() {
        let what = || "it is busy".to_owned();
        for (why, words) in [
            (LossReason::NoAnswer, "it does not answer"),
            (LossReason::Silent(2_340 * MILLISECOND), "nothing was heard from it for 2.3 s"),
            (LossReason::Unexplained, "it ended the run without a word"),
            (LossReason::Connection { what: what() }, "it is busy"),
            (LossReason::MessageUnread { what: what() }, "what it sent cannot be read (it is busy)"),
            (LossReason::MeasurementUnread, "what it measured cannot be read"),
            (LossReason::Late, "it did not come to an end in time"),
            (LossReason::Said { what: what() }, "it is busy"),
        ] {
            assert_eq!(loss(&why), words);
        }
    }

    #[test]
    fn the_reasons_of_processes_name_them() {
        let of = |name: &str, is_agent, why| MemberReason { member: name.to_owned(), is_agent, why };
        let gone = |at| MemberWhy::Gone { at, left: false, why: LossReason::Late };
        for (why, words) in [
            (MemberWhy::Run(Box::new(Reason::NothingDue)), "m: nothing completed: no request was due"),
            (
                MemberWhy::Share(ShareShortfall::Records(8, 10)),
                "m stored 8 of its 10 records, and did not try to store all of them",
            ),
            (MemberWhy::Share(ShareShortfall::Time(SECOND, 2 * SECOND)), "m measured 1.0 s of 2.0 s"),
            (MemberWhy::Share(ShareShortfall::Requests(9, 10)), "m made 9 of its 10 requests"),
            (MemberWhy::Share(ShareShortfall::Connections(7, 8)), "m made 7 of its 8 connections"),
            (MemberWhy::Share(ShareShortfall::Rows(4, 5)), "m asked 4 of its 5 rows of the recording"),
            (MemberWhy::EndedEarly, "m ended before it was told to"),
            (MemberWhy::Failed { what: "no".to_owned() }, "m: no"),
            (
                MemberWhy::OtherRecording { rows: 8, others: 7 },
                "m replayed a recording of 8 rows, and another member one of 7",
            ),
            (
                gone(Moment::BeforePhases),
                "m was lost before the first phase: it did not come to an end in time",
            ),
            (
                gone(Moment::Load(SECOND)),
                "m was lost 1.0 s after the beginning of the load: it did not come to an end in time",
            ),
            (
                gone(Moment::WarmUp(0)),
                "m was lost 0.0 s after the beginning of the warm-up: it did not come to an end in time",
            ),
            (
                gone(Moment::Phase("x".to_owned(), 0)),
                "m was lost 0.0 s after the beginning of phase 'x': it did not come to an end in time",
            ),
        ] {
            assert_eq!(member(&of("m", false, why)), words);
        }
        let at = Moment::Measurement(SECOND);
        let why = LossReason::Said { what: "it was told to end".to_owned() };
        let left = MemberWhy::Gone { at: at.clone(), left: true, why };
        let all = Reason::Members {
            members: vec![of("a:1", true, left)],
            more: 3,
            is_stopped: true,
            standstill: Some(ControllerStandstill { length_ns: 2 * SECOND, at }),
            unstored: Some(Unstored { records: 10, stored: 0, per_record: 1, why: None }),
        };
        assert_eq!(
            reason(&all),
            "agent a:1 left 1.0 s into the measurement: it was told to end; and 3 reasons more; the run was stopped \
             (--on-agent-loss stop); the controller stood still for 2.0 s, 1.0 s into the measurement; none of 10 records was stored"
        );
    }
}
