//! Comparison of a run with its Plan, and what is missing from an incomplete one.

use std::collections::BTreeMap;

use super::churn::Churn;
use super::evidence::ConnectionLimit;
use super::measurement::{Connections, LoadResult, Measurement};
use super::reason::{Reason, ServerTrouble, ShareShortfall, Unstored, Why};
use super::recorder::Span;
use pummel_logic::plan::share::{PhaseShare, ProcessShare};
use pummel_logic::plan::{Phase, Plan, Route, Transport, Work};
use pummel_logic::time::{MILLISECOND, Nanos};

/// The least silence in nanoseconds after which a server counts as gone.
const SILENCE_MIN_NS: Nanos = 100 * MILLISECOND;

/// The records that one phase that loads was to store, and those that it stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Records that were to be stored, counted once for each server that holds them.
    pub records: u64,
    /// Records that were stored, counted once for each server that holds them.
    pub stored: u64,
}

impl Loaded {
    /// Whether nothing was stored although something was to be: such a load has failed, and the run ends with it.
    pub fn has_failed(self) -> bool {
        self.records > 0 && self.stored == 0
    }

    /// Adds the records that other workers or processes stored in the same phase.
    pub fn merge(&mut self, other: Loaded) {
        self.records = self.records.saturating_add(other.records);
        self.stored = self.stored.saturating_add(other.stored);
    }
}

/// Records that a load did not store; `None` where that is no reason for a run to be incomplete. `per_record` are the Plan's stores for
/// each record, and `allow_partial` is its `allow_partial_load`, which never excuses a load that stored nothing. `trouble` is the trouble
/// of connections, for loads that no server answered with an error.
pub fn load_shortfall(
    load: &LoadResult,
    per_record: u64,
    allow_partial: bool,
    trouble: Option<&ServerTrouble>,
) -> Option<Unstored> {
    let LoadResult { records, stored, .. } = *load;
    let is_excused = records <= stored || allow_partial && stored > 0;
    let why = || most_said(&load.messages).or_else(|| trouble.cloned().map(Why::Trouble));
    (!is_excused).then(|| Unstored { records, stored, per_record, why: why() })
}

/// The commonest message that servers sent with errors; `None` where they sent none.
fn most_said(messages: &BTreeMap<String, u64>) -> Option<Why> {
    let (message, count) = messages.iter().max_by_key(|(_, count)| **count)?;
    Some(Why::Said { what: message.clone(), count: *count })
}

/// The end of a run in one process, beside its measurement: what its workers found when all were through with it.
#[derive(Clone, Debug, Default)]
pub struct RunEnd {
    /// The process has all clients of the run. Otherwise the controller judges the load, and whether anything completed.
    pub is_whole: bool,
    /// Why a worker could not go on; `None` where all workers came to their end.
    pub worker_failure: Option<String>,
    /// A load of the run stored nothing although something was to be stored, and every worker saw it to its end.
    pub load_failed: bool,
    /// All workers were through with every phase.
    pub ended_all_phases: bool,
    /// Connections that were lost and not replaced.
    pub dead: u64,
    /// Requests that phases were to make and that were never due.
    pub missing: u64,
    /// The first thing that went wrong with a connection.
    pub trouble: Option<ServerTrouble>,
    /// The silence of each server at the end of the last recorded phase in which it was talked to.
    pub silent: Vec<SilentServer>,
    /// The system's message that this process may not have more descriptors, with a remedy.
    pub no_descriptor: String,
    /// The system's message that it has no room for more open files, with a remedy.
    pub no_file: String,
}

/// The silence of a server at an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentServer {
    /// The server's name.
    pub server: String,
    /// Time for which the server had answered nothing, in nanoseconds.
    pub silent_ns: Nanos,
    /// Whether the server refused or reset the last attempts to connect to it.
    pub turned_away: bool,
}

/// Part of the Plan that the run did not do; `None` where the run is complete.
pub fn shortfall(plan: &Plan, measurement: &Measurement, end: &RunEnd) -> Option<Reason> {
    if let Some(failure) = &end.worker_failure {
        return Some(Reason::WorkerFailed { what: failure.clone() });
    }
    let connections = &measurement.connections;
    if let Some(refused) = not_taken(plan, connections) {
        return Some(refused);
    }
    let trouble = end.trouble.as_ref();
    if let Some(load) = measurement.load.as_ref().filter(|_| end.load_failed && end.is_whole)
        && let Some(unstored) = load_shortfall(load, plan.stores_per_record(), false, trouble)
    {
        return Some(Reason::Unstored(unstored));
    }
    let why = because(measurement, trouble);
    if !end.ended_all_phases && end.dead == 0 {
        return Some(not_opened(connections, why));
    }
    if let Some(churn) = connections.churn.as_ref().filter(|churn| churn.failures.total() > 0) {
        let failed = failed_clients(churn, end, why.clone());
        // A connection to a node of a cluster is opened again while a request needs it.
        if plan.route != Route::Cluster || matches!(failed, Reason::NoRoom { .. }) {
            return Some(failed);
        }
    }
    if end.dead > 0 {
        return Some(Reason::ConnectionsLost { asked: connections.asked, lost: end.dead, why });
    }
    if end.missing > 0 {
        return Some(Reason::NeverMade { missing: end.missing, why });
    }
    let completed: u64 = measurement.groups.iter().map(|group| group.ops.all().counts.completed).sum();
    if completed == 0 && end.is_whole && plan.phases.iter().any(|phase| phase.recorded) {
        return Some(nothing_completed(plan, measurement, trouble));
    }
    let load = measurement.load.as_ref().filter(|_| end.is_whole);
    gone_at_the_end(plan, measurement, end).or_else(|| {
        let each = plan.stores_per_record();
        load_shortfall(load?, each, plan.allow_partial_load, trouble).map(Reason::Unstored)
    })
}

/// Server that took fewer connections than the run asked it for; `None` where all took theirs at last.
fn not_taken(plan: &Plan, connections: &Connections) -> Option<Reason> {
    let mut refusing = connections.refusals.iter().filter(|refusal| refusal.refused > 0);
    let first = refusing.next()?;
    let server = plan.servers.get(first.server as usize).map_or("the server", String::as_str);
    Some(Reason::NotTaken {
        server: server.to_owned(),
        connections: first.connections,
        refused: first.refused,
        what: first.words.clone(),
        limit: first.limit,
        counted: first.counted,
        is_resp: plan.protocol.is_resp(),
        others: refusing.count() as u64,
    })
}

/// Adds the servers' limits of connections to a finished measurement, also to its reason.
pub fn note_limits(plan: &Plan, measurement: &mut Measurement, limits: &[ConnectionLimit]) {
    for refusal in &mut measurement.connections.refusals {
        if let Some(known) = limits.get(refusal.server as usize) {
            (refusal.limit, refusal.counted) = (known.connections_max, known.refused);
        }
    }
    if let Some(Reason::NotTaken { .. }) = measurement.reason {
        measurement.reason = not_taken(plan, &measurement.connections);
    }
}

/// Part of its share that one process of a distributed run did not do; `None` where nothing is missing. `measurement` is that of the process, whose own verdict is not trusted.
///
/// Numbers in a Plan are compared with what was done: records to store, requests to make, connections of clients
/// that come and go, rows of a recording. A time counts where requests are due until it is over; clients that come and
/// go may end before it, since none may be due in its last gap. `agreed_ns` is the time of a measurement whose end was found
/// while it went on, in place of the plan's.
pub fn share_shortfall(
    plan: &Plan,
    share: &ProcessShare,
    measurement: &Measurement,
    agreed_ns: Option<Nanos>,
) -> Option<ShareShortfall> {
    unstored_share(plan, share, measurement).or_else(|| unmeasured_share(plan, share, measurement, agreed_ns))
}

/// The records of its share that a process did not try to store.
fn unstored_share(plan: &Plan, share: &ProcessShare, measurement: &Measurement) -> Option<ShareShortfall> {
    let load = measurement.load.as_ref();
    let asked = match (plan.uses_datagrams(), load) {
        // Which servers take a load over TCP is found out by the process, and decides how records are dealt.
        (true, Some(load)) => {
            let dealt = [Transport::Stream, Transport::Udp].map(|loading| records_over(plan, share, loading));
            if dealt.contains(&load.records) { load.records } else { dealt[0].max(dealt[1]) }
        }
        _ => records_of_share(plan, share),
    };
    let (stored, errors) = load.map_or((0, 0), |load| (load.stored, load.errors));
    let tried = stored.saturating_add(errors);
    (tried < asked).then_some(ShareShortfall::Records(stored, asked))
}

/// The records that a process is to store in all loads of a Plan that are not over datagrams.
pub fn records_of_share(plan: &Plan, share: &ProcessShare) -> u64 {
    records_over(plan, share, Transport::Stream)
}

/// The records that a process is to store in all loads of a Plan over this transport.
fn records_over(plan: &Plan, share: &ProcessShare, loading: Transport) -> u64 {
    let loads = plan.phases.iter().enumerate().filter(|(_, phase)| matches!(phase.work, Work::Load(_)));
    let asked = loads.filter_map(|(number, _)| PhaseShare::new(plan, number, loading).requests_in(share));
    asked.fold(0, u64::saturating_add)
}

/// The time for which a process did not measure, or the requests that it did not make. Where a phase has both a time and a
/// number of requests, either ends it.
fn unmeasured_share(
    plan: &Plan,
    share: &ProcessShare,
    measurement: &Measurement,
    agreed_ns: Option<Nanos>,
) -> Option<ShareShortfall> {
    let recorded = plan.phases.iter().enumerate().filter(|(_, phase)| phase.recorded);
    let recorded: Vec<(usize, &Phase)> = recorded.collect();
    let is_of = |is_such: fn(&Work) -> bool| {
        !recorded.is_empty() && recorded.iter().all(|(_, phase)| is_such(&phase.work))
    };
    if is_of(|work| matches!(work, Work::Replay(_))) {
        return unreplayed_share(plan, share, measurement);
    }
    if !is_of(|work| matches!(work, Work::Mix(_))) {
        return None;
    }
    if let Some((_, churn)) = plan.churning_group() {
        return unborn_share(&recorded, churn.calls, share, measurement);
    }
    let planned_ns = recorded.iter().map(|(_, phase)| phase.stop.time_ns).sum::<Option<Nanos>>();
    let time_ns = agreed_ns.or(planned_ns);
    let requests = recorded.iter().map(|&(number, phase)| {
        phase.stop.requests?;
        PhaseShare::new(plan, number, Transport::Stream).requests_in(share)
    });
    let requests = requests.sum::<Option<u64>>();
    let made = measurement.groups.iter().map(|group| group.ops.all().counts.requests()).sum::<u64>();
    let made = made.saturating_add(measurement.counters.skipped.requests);
    let short_ns = time_ns.filter(|time_ns| measurement.measured_ns < *time_ns);
    let short = requests.filter(|requests| made < *requests);
    match (time_ns, requests, short_ns, short) {
        (Some(_), None, Some(time_ns), _) | (Some(_), Some(_), Some(time_ns), Some(_)) => {
            Some(ShareShortfall::Time(measurement.measured_ns, time_ns))
        }
        (None, Some(_), _, Some(requests)) => Some(ShareShortfall::Requests(made, requests)),
        _ => None,
    }
}

/// The connections of clients that come and go that a process did not make in the recorded phases, each of which makes
/// `calls` requests. A phase with a time may end before its number of requests.
fn unborn_share(
    recorded: &[(usize, &Phase)],
    calls: u64,
    share: &ProcessShare,
    measurement: &Measurement,
) -> Option<ShareShortfall> {
    let clients = recorded.iter().map(|(_, phase)| match phase.stop.time_ns {
        Some(_) => None,
        None => Some(share.turns_of(phase.stop.requests?.div_ceil(calls.max(1)))),
    });
    let asked = clients.sum::<Option<u64>>()?;
    let begun = measurement.connections.churn.as_ref().map_or(0, |churn| churn.begun);
    (begun < asked).then_some(ShareShortfall::Connections(begun, asked))
}

/// The rows of a recording that a process did not ask, or the time for which it did not measure; either ends a replay that has a
/// time. Requests that follow a miss count as rows, so that a share is only called short that certainly is.
fn unreplayed_share(plan: &Plan, share: &ProcessShare, measurement: &Measurement) -> Option<ShareShortfall> {
    let recorded = plan.phases.iter().enumerate().filter(|(_, phase)| phase.recorded);
    let is_counted = recorded.clone().any(|(_, phase)| phase.stop.requests.is_some());
    let rows = measurement.recording_rows.filter(|_| !is_counted && plan.churning_group().is_none())?;
    let time_ns = recorded.clone().map(|(_, phase)| phase.stop.time_ns).sum::<Option<Nanos>>();
    // A replay that goes on behind a deletion has no rows of its own.
    let passes = recorded.filter(|(number, _)| !plan.runs_on(*number)).count() as u64;
    let asked = share.turns_of(rows).saturating_mul(passes);
    let made = measurement.groups.iter().map(|group| group.ops.all().counts.requests()).sum::<u64>();
    let made = made.saturating_add(measurement.counters.skipped.requests);
    match time_ns {
        _ if made >= asked => None,
        None => Some(ShareShortfall::Rows(made, asked)),
        Some(time_ns) => (measurement.measured_ns < time_ns)
            .then_some(ShareShortfall::Time(measurement.measured_ns, time_ns)),
    }
}

/// Server that did not answer at the end of the recorded phases; `None` where all did. Only a server that turned connections
/// away was certainly gone: one that is asked for more than it can do takes them, and answers later.
fn gone_at_the_end(plan: &Plan, measurement: &Measurement, end: &RunEnd) -> Option<Reason> {
    let long_ns = long_silence_ns(plan, measurement);
    let silent = end.silent.iter().find(|silent| silent.silent_ns >= long_ns)?;
    let SilentServer { server, silent_ns, turned_away } = silent.clone();
    Some(Reason::ServerGone { server, silent_ns, turned_away, trouble: end.trouble.clone() })
}

/// The silence in nanoseconds after which a server counts as gone: half of what a request or the drain may take, unless
/// the slowest answer of the run took longer.
fn long_silence_ns(plan: &Plan, measurement: &Measurement) -> Nanos {
    let timeout_ns = plan.timeout_ns;
    if plan.uses_datagrams() {
        // A single connection receives nothing for a whole timeout where one datagram is lost.
        return timeout_ns.saturating_mul(2).max(SILENCE_MIN_NS);
    }
    let slowest_ns = measurement.op_records().filter_map(|op| {
        let moments = op.times.of(Span::Service).moments();
        (moments.count > 0).then_some(moments.max)
    });
    let slow_ns = slowest_ns.max().unwrap_or(0).saturating_mul(2).min(timeout_ns / 2);
    slow_ns.max(plan.drain_ns() / 2).max(SILENCE_MIN_NS)
}

/// Failures of clients that come and go, for this reason where the machine has room for them.
fn failed_clients(churn: &Churn, end: &RunEnd, why: Option<Why>) -> Reason {
    let (failures, missing) = (&churn.failures, end.missing);
    let short = [(failures.descriptors, &end.no_descriptor), (failures.files, &end.no_file)];
    let short = short.into_iter().find(|(count, _)| *count > 0 && 2 * count > failures.total());
    match short {
        None => Reason::ClientsFailed { begun: churn.begun, failed: failures.total(), missing, why },
        Some((failed, what)) => {
            Reason::NoRoom { open_max: churn.alive_max, failed, what: what.clone(), missing }
        }
    }
}

/// Failures of the connections of a run that did not begin. The first connection that cannot be opened, or is lost, ends such a
/// run.
fn not_opened(connections: &Connections, why: Option<Why>) -> Reason {
    let Connections { asked, failed, lost, .. } = *connections;
    let untried = asked.saturating_sub(connections.connect.count() + failed);
    Reason::NotOpened { asked, failed, lost, untried, why }
}

/// Reason why a run was short: the trouble of a connection, or else the message that servers sent most often with errors.
fn because(measurement: &Measurement, trouble: Option<&ServerTrouble>) -> Option<Why> {
    trouble.cloned().map(Why::Trouble).or_else(|| most_said(&measurement.messages))
}

/// Whether a run of this plan that stored so many records and asked so many requests in its recorded phases has nothing to
/// report: its figures are all zero. The requests of a load that is recorded are its records.
pub fn has_nothing_to_report(plan: &Plan, stored: u64, requests: u64) -> bool {
    let mut recorded = plan.phases.iter().filter(|phase| phase.recorded);
    stored == 0 && (requests == 0 || recorded.all(|phase| matches!(phase.work, Work::Load(_))))
}

/// Reason of a run in which nothing completed, with the trouble of a connection where there was one.
pub fn nothing_completed(plan: &Plan, measurement: &Measurement, trouble: Option<&ServerTrouble>) -> Reason {
    let asked: u64 = measurement.groups.iter().map(|group| group.ops.all().counts.requests()).sum();
    match (because(measurement, trouble), asked) {
        (None, 0) => Reason::NothingDue,
        (why, asked) => {
            Reason::NothingCompleted { why, is_udp: asked > 0 && plan.transport == Transport::Udp }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::churn::ConnectionFailures;
    use crate::connections::{Refusal, TroubleKind};
    use crate::measurement::Status;
    use crate::recorder::{Recorder, Sample};
    use pummel_logic::merge::Merge as _;
    use pummel_logic::plan::{Clock, Group, Load, Mix, Stop};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::SECOND;

    fn silent(server: &str, silent_ns: Nanos, turned_away: bool) -> SilentServer {
        SilentServer { server: server.to_owned(), silent_ns, turned_away }
    }

    /// Records stored, what servers said, whether a part is allowed, what happened to connections; and the reason behind what is
    /// missing where the run is short.
    type Row<'a> = (u64, &'a [(&'a str, u64)], bool, Option<ServerTrouble>, Option<Option<Why>>);

    /// A load of ten records, and what servers said while it went on.
    fn load(stored: u64, said: &[(&str, u64)]) -> LoadResult {
        let messages = said.iter().map(|&(words, count)| (words.to_owned(), count)).collect();
        LoadResult { records: 10, stored, errors: 10 - stored, messages, ..LoadResult::default() }
    }

    #[test]
    fn a_load_is_complete_or_partial_by_what_it_stored() {
        let full = [("SERVER_ERROR out of memory", 6), ("SERVER_ERROR too large", 1)];
        let said = || Some(Some(Why::Said { what: full[0].0.to_owned(), count: 6 }));
        let failed = || Some(closed().map(Why::Trouble));
        let rows: [Row<'_>; 9] = [
            (10, &[], false, None, None),
            (10, &full, false, closed(), None),
            (0, &[], false, None, Some(None)),
            (0, &full, false, closed(), said()),
            (0, &[], true, closed(), failed()),
            (3, &[], false, None, Some(None)),
            (3, &full, false, None, said()),
            (3, &full, true, closed(), None),
            (9, &[], false, closed(), failed()),
        ];
        for (stored, said, allow_partial, trouble, expected) in rows {
            let short = load_shortfall(&load(stored, said), 1, allow_partial, trouble.as_ref());
            let expected = expected.map(|why| Unstored { records: 10, stored, per_record: 1, why });
            assert_eq!(short, expected, "{stored} stored, {said:?}, {allow_partial}");
        }
        let nothing = load_shortfall(&LoadResult::default(), 1, false, closed().as_ref());
        assert_eq!(nothing, None, "nothing was to be stored");
    }

    #[test]
    fn a_load_has_failed_when_nothing_of_something_was_stored() {
        let failed = |records, stored| Loaded { records, stored }.has_failed();
        assert_eq!([failed(0, 0), failed(10, 0), failed(10, 1), failed(10, 10)], [false, true, false, false]);
        let mut all = Loaded { records: 5, stored: 0 };
        all.merge(Loaded { records: 5, stored: 1 });
        assert!(!all.has_failed(), "another part stored something");
    }

    /// A plan that records a phase, and a measurement of ten connections that were all open and of as many completed
    /// requests as are asked for.
    fn measured(completed: u64) -> (Plan, Measurement) {
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phase = Phase { name: "measure".to_owned(), work, stop: Stop::default(), recorded: true };
        let plan = Plan { phases: vec![phase], timeout_ns: SECOND, ..Plan::default() };
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, plan.timeout_ns);
        measurement.connections.asked = 10;
        (0..10).for_each(|_| measurement.connections.connect.record(1_000));
        let mut recorder = Recorder::new([Verb::Get].into_iter());
        (0..completed).for_each(|at| recorder.record(&Sample::hit(at, 50)));
        measurement.groups[0].ops.merge(recorder.ops());
        (plan, measurement)
    }

    /// The end of a run of one process in which nothing went wrong.
    fn good_end() -> RunEnd {
        RunEnd {
            is_whole: true,
            ended_all_phases: true,
            no_descriptor: "no descriptor".to_owned(),
            no_file: "no file".to_owned(),
            ..RunEnd::default()
        }
    }

    fn closed() -> Option<ServerTrouble> {
        let what = "the server closed the connection".to_owned();
        Some(ServerTrouble { server: "a:1".to_owned(), kind: TroubleKind::Closed, what })
    }

    #[test]
    fn a_run_in_which_nothing_went_wrong_is_complete() {
        let (plan, measurement) = measured(5);
        assert_eq!(shortfall(&plan, &measurement, &good_end()), None);
        let trouble = RunEnd { trouble: closed(), ..good_end() };
        assert_eq!(shortfall(&plan, &measurement, &trouble), None, "the connection was replaced");
    }

    #[test]
    fn the_first_thing_that_is_missing_is_the_reason() {
        let gone = |server: &str, silent_ns, turned_away, trouble| Reason::ServerGone {
            server: server.to_owned(),
            silent_ns,
            turned_away,
            trouble,
        };
        let lost = |lost, why| Reason::ConnectionsLost { asked: 10, lost, why };
        let why = || closed().map(Why::Trouble);
        let failure = "no memory".to_owned();
        let rows: [(u64, RunEnd, Reason); 10] = [
            (
                5,
                RunEnd { worker_failure: Some(failure.clone()), dead: 1, ..good_end() },
                Reason::WorkerFailed { what: failure },
            ),
            (
                0,
                RunEnd { ended_all_phases: false, ..good_end() },
                Reason::NotOpened { asked: 10, failed: 0, lost: 0, untried: 0, why: None },
            ),
            (5, RunEnd { ended_all_phases: false, dead: 2, trouble: closed(), ..good_end() }, lost(2, why())),
            (5, RunEnd { missing: 3, ..good_end() }, Reason::NeverMade { missing: 3, why: None }),
            (5, RunEnd { dead: 1, ..good_end() }, lost(1, None)),
            (0, good_end(), Reason::NothingDue),
            (
                0,
                RunEnd { trouble: closed(), ..good_end() },
                Reason::NothingCompleted { why: why(), is_udp: false },
            ),
            (
                5,
                RunEnd { silent: vec![silent("a:1", SECOND / 2, true)], ..good_end() },
                gone("a:1", SECOND / 2, true, None),
            ),
            (
                5,
                RunEnd { silent: vec![silent("a:1", SECOND / 2, false)], ..good_end() },
                gone("a:1", SECOND / 2, false, None),
            ),
            (
                5,
                RunEnd {
                    silent: vec![silent("a:1", 0, true), silent("b:2", 2 * SECOND, false)],
                    trouble: closed(),
                    ..good_end()
                },
                gone("b:2", 2 * SECOND, false, closed()),
            ),
        ];
        for (completed, end, expected) in rows {
            let (plan, measurement) = measured(completed);
            assert_eq!(shortfall(&plan, &measurement, &end), Some(expected), "{end:?}");
        }
    }

    #[test]
    fn a_process_of_several_judges_neither_the_load_nor_that_nothing_completed() {
        let (plan, mut measurement) = measured(0);
        measurement.load = Some(load(0, &[]));
        let part = RunEnd { is_whole: false, load_failed: true, ..good_end() };
        assert_eq!(shortfall(&plan, &measurement, &part), None);
        let whole = RunEnd { is_whole: true, ..part };
        let reason = shortfall(&plan, &measurement, &whole);
        assert_eq!(
            reason,
            Some(Reason::Unstored(Unstored { records: 10, stored: 0, per_record: 1, why: None }))
        );
    }

    #[test]
    fn a_partial_load_is_the_last_reason_and_one_that_the_plan_can_allow() {
        let (mut plan, mut measurement) = measured(5);
        measurement.load = Some(load(4, &[]));
        let reason = shortfall(&plan, &measurement, &good_end());
        assert_eq!(
            reason,
            Some(Reason::Unstored(Unstored { records: 10, stored: 4, per_record: 1, why: None }))
        );
        let missing = RunEnd { missing: 1, ..good_end() };
        let reason = shortfall(&plan, &measurement, &missing);
        assert_eq!(reason, Some(Reason::NeverMade { missing: 1, why: None }));
        plan.allow_partial_load = true;
        assert_eq!(shortfall(&plan, &measurement, &good_end()), None);
    }

    #[test]
    fn a_run_over_udp_that_heard_nothing_says_how_memcached_listens_there() {
        let (mut plan, mut measurement) = measured(0);
        plan.transport = Transport::Udp;
        let reason = |measurement: &Measurement| shortfall(&plan, measurement, &good_end());
        assert_eq!(reason(&measurement), Some(Reason::NothingDue), "no server was asked");
        let mut recorder = Recorder::new([Verb::Get].into_iter());
        recorder.counts(Verb::Get).unfinished += 1;
        measurement.groups[0].ops.merge(recorder.ops());
        assert_eq!(reason(&measurement), Some(Reason::NothingCompleted { why: None, is_udp: true }));
    }

    /// A plan of four clients that measures until `stop`, the share of two of them, and what they measured.
    fn shared(stop: Stop, made: u64, measured_ns: Nanos) -> (Plan, ProcessShare, Measurement) {
        let (mut plan, mut measurement) = measured(made);
        plan.phases[0].stop = stop;
        plan.groups = vec![Group { clients: 4, ..Group::default() }];
        measurement.measured_ns = measured_ns;
        let clients = std::iter::once(0..2).collect();
        let share = ProcessShare { clients, threads: 1, first_worker: 0, workers: 2, mark: 1 };
        (plan, share, measurement)
    }

    #[test]
    fn a_process_has_done_its_share_when_its_time_is_over_or_its_requests_are_made() {
        let (time, half) = (Some(2 * SECOND), Some(ShareShortfall::Time(SECOND, 2 * SECOND)));
        // Time, requests of all clients; time measured, requests made.
        let rows = [
            (time, None, 2 * SECOND, 0, None),
            (time, None, SECOND, 900, half.clone()),
            (None, Some(20), SECOND, 10, None),
            (None, Some(20), SECOND, 9, Some(ShareShortfall::Requests(9, 10))),
            (time, Some(20), 2 * SECOND, 9, None),
            (time, Some(20), SECOND, 10, None),
            (time, Some(20), SECOND, 9, half),
            (None, None, 0, 0, None),
        ];
        for (time_ns, requests, measured_ns, made, expected) in rows {
            let (plan, share, measurement) = shared(Stop { time_ns, requests }, made, measured_ns);
            let short = share_shortfall(&plan, &share, &measurement, None);
            assert_eq!(short, expected, "{time_ns:?} {requests:?} {measured_ns} {made}");
        }
    }

    #[test]
    fn a_process_has_loaded_its_share_when_it_has_tried_each_record() {
        let stop = Stop { time_ns: Some(SECOND), requests: None };
        let (mut plan, share, mut measurement) = shared(stop, 1, SECOND);
        let load = Phase {
            name: "load".to_owned(),
            work: Work::Load(Load::default()),
            stop: Stop::default(),
            recorded: false,
        };
        plan.phases.insert(0, load);
        plan.data.records = 20;
        plan.servers = vec!["a:1".to_owned()];
        assert_eq!(records_of_share(&plan, &share), 10);
        let unheard = share_shortfall(&plan, &share, &measurement, None);
        assert_eq!(unheard, Some(ShareShortfall::Records(0, 10)), "no load was heard of");
        for (stored, errors, expected) in
            [(10, 0, None), (9, 1, None), (0, 10, None), (8, 1, Some(ShareShortfall::Records(8, 10)))]
        {
            measurement.load = Some(LoadResult { records: 10, stored, errors, ..LoadResult::default() });
            assert_eq!(share_shortfall(&plan, &share, &measurement, None), expected, "{stored} {errors}");
        }
    }

    #[test]
    fn a_process_that_loads_over_datagrams_has_the_records_of_one_of_the_two_ways_to_deal_them() {
        let stop = Stop { time_ns: Some(SECOND), requests: None };
        let (mut plan, mut share, mut measurement) = shared(stop, 1, SECOND);
        let load = Phase {
            name: "load".to_owned(),
            work: Work::Load(Load::default()),
            stop: Stop::default(),
            recorded: false,
        };
        plan.phases.insert(0, load);
        (plan.transport, plan.data.records) = (Transport::Udp, 100);
        plan.servers = vec!["a:1".to_owned()];
        plan.groups[0].clients = 100;
        // Of a hundred clients the first 64 load over datagrams.
        share.clients = std::iter::once(50..100).collect();
        let dealt = [Transport::Stream, Transport::Udp].map(|loading| records_over(&plan, &share, loading));
        assert!(dealt[0] == 50 && dealt[1] < 50, "{dealt:?}");
        for records in dealt {
            for (stored, errors, is_short) in
                [(records, 0, false), (0, records, false), (records - 1, 0, true)]
            {
                measurement.load = Some(LoadResult { records, stored, errors, ..LoadResult::default() });
                let short = share_shortfall(&plan, &share, &measurement, None);
                assert_eq!(short.is_some(), is_short, "{records} {stored} {errors}: {short:?}");
            }
        }
        measurement.load = Some(LoadResult { records: 7, stored: 7, ..LoadResult::default() });
        let short = share_shortfall(&plan, &share, &measurement, None);
        assert_eq!(short, Some(ShareShortfall::Records(7, 50)), "it had other records");
    }

    #[test]
    fn a_process_has_made_its_connections_or_its_time_is_over() {
        let calls = 4;
        // 42 requests are 11 clients, of which workers 0 and 1 of 3 have 0, 1, 3, 4, 6, 7, 9 and 10.
        for (time_ns, requests, begun, expected) in [
            (None, Some(42), 8, None),
            (None, Some(42), 7, Some(ShareShortfall::Connections(7, 8))),
            (Some(SECOND), None, 0, None),
            (Some(SECOND), Some(42), 3, None),
            (None, None, 0, None),
        ] {
            let (mut plan, mut share, mut measurement) =
                shared(Stop { time_ns, requests }, begun, SECOND / 2);
            let spawns = pummel_logic::plan::Spawns::Closed;
            plan.groups[0].churn =
                Some(pummel_logic::plan::ChurningClients { spawns, calls, sequence: None });
            (share.threads, share.workers) = (2, 3);
            measurement.connections.churn = Some(Box::new(Churn { begun, ..Churn::default() }));
            let short = share_shortfall(&plan, &share, &measurement, None);
            assert_eq!(short, expected, "{time_ns:?} {requests:?} {begun}");
        }
    }

    #[test]
    fn a_process_has_asked_its_rows_of_a_recording() {
        for (rows, made, skipped, expected) in [
            (Some(9), 5, 0, None),
            (Some(9), 3, 2, None),
            (Some(9), 4, 0, Some(ShareShortfall::Rows(4, 5))),
            (None, 0, 0, None),
        ] {
            let (mut plan, share, mut measurement) = shared(Stop::default(), made, SECOND);
            let path = "trace".to_owned();
            plan.phases[0].work = Work::Replay(pummel_logic::plan::Replay {
                path,
                format: 0,
                read_through_ns: None,
                reads_only: false,
            });
            (measurement.recording_rows, measurement.counters.skipped.requests) = (rows, skipped);
            let short = share_shortfall(&plan, &share, &measurement, None);
            assert_eq!(short, expected, "{rows:?} {made} {skipped}");
            plan.phases[0].stop.time_ns = Some(SECOND);
            assert_eq!(share_shortfall(&plan, &share, &measurement, None), None, "the time ended it");
            plan.phases[0].stop.time_ns = Some(2 * SECOND);
            let short = share_shortfall(&plan, &share, &measurement, None);
            let half = ShareShortfall::Time(SECOND, 2 * SECOND);
            assert_eq!(short, expected.map(|_| half), "nothing ended it");
        }
    }

    #[test]
    fn a_server_that_refused_connections_is_the_reason_whatever_else_went_wrong() {
        let (mut plan, mut measurement) = measured(1);
        plan.servers = vec!["a:1".to_owned(), "b:2".to_owned()];
        let refusal = |server, refused| Refusal {
            server,
            connections: 64,
            refused,
            attempts: 49,
            words: "ERROR Too many open connections".to_owned(),
            limit: Some(40),
            counted: None,
        };
        measurement.connections.refusals = vec![refusal(0, 0), refusal(1, 49)];
        let end = RunEnd { dead: 49, ended_all_phases: false, load_failed: true, ..good_end() };
        let taken = |server: &str, refused, limit, others| {
            let (server, what) = (server.to_owned(), "ERROR Too many open connections".to_owned());
            let (connections, counted, is_resp) = (64, None, false);
            Some(Reason::NotTaken { server, connections, refused, what, limit, counted, is_resp, others })
        };
        let expected = taken("b:2", 49, Some(40), 0);
        assert_eq!(shortfall(&plan, &measurement, &end), expected);
        assert_eq!(shortfall(&plan, &measurement, &good_end()), expected, "with --reconnect");
        measurement.connections.refusals[0].refused = 1;
        assert_eq!(shortfall(&plan, &measurement, &good_end()), taken("a:1", 1, Some(40), 1));
        measurement.connections.refusals[0].limit = None;
        measurement.connections.refusals[0].refused = 0;
        measurement.connections.refusals[1].limit = None;
        measurement.mark(Status::Partial, shortfall(&plan, &measurement, &end).expect("it is short"));
        let limit = |limit| ConnectionLimit { connections_max: limit, refused: None };
        note_limits(&plan, &mut measurement, &[limit(Some(7)), limit(Some(40))]);
        assert_eq!(measurement.reason, expected, "the limits were read behind the run");
        measurement.reason = Some(Reason::Interrupted);
        note_limits(&plan, &mut measurement, &[]);
        assert_eq!(measurement.reason, Some(Reason::Interrupted));
        measurement.connections.refusals = vec![refusal(0, 0), refusal(1, 0)];
        assert_eq!(shortfall(&plan, &measurement, &good_end()), None, "all were taken at last");
    }

    #[test]
    fn connections_that_were_not_opened_are_counted_by_what_became_of_them() {
        // Asked, open once, failed, lost; not tried.
        let rows = [(10, 4, 0, 0, 6), (10, 10, 0, 3, 0), (10, 4, 1, 0, 5), (10, 9, 1, 2, 0), (1, 0, 1, 0, 0)];
        for (asked, open, failed, lost, untried) in rows {
            let mut connections = Connections { asked, failed, lost, ..Connections::default() };
            (0..open).for_each(|_| connections.connect.record(1_000));
            let expected = Reason::NotOpened { asked, failed, lost, untried, why: None };
            assert_eq!(not_opened(&connections, None), expected);
        }
    }

    #[test]
    fn clients_that_failed_for_want_of_descriptors_say_how_many_had_room() {
        let churn = |descriptors, files, refused| Churn {
            begun: 100,
            alive_max: 20,
            failures: ConnectionFailures { descriptors, files, refused, ..ConnectionFailures::default() },
            ..Churn::default()
        };
        let failed = |failed| Reason::ClientsFailed { begun: 100, failed, missing: 0, why: None };
        let no_room = |failed, what: &str, missing| Reason::NoRoom {
            open_max: 20,
            failed,
            what: what.to_owned(),
            missing,
        };
        let rows = [
            (churn(0, 0, 5), 0, failed(5)),
            (churn(5, 0, 5), 0, failed(10)),
            (churn(6, 0, 5), 0, no_room(6, "no descriptor", 0)),
            (churn(0, 9, 0), 7, no_room(9, "no file", 7)),
        ];
        for (churn, missing, expected) in rows {
            let end = RunEnd { missing, ..good_end() };
            assert_eq!(failed_clients(&churn, &end, None), expected);
        }
    }

    #[test]
    fn connections_that_failed_and_were_opened_again_leave_the_run_of_a_cluster_whole() {
        let (mut plan, mut measurement) = measured(100);
        let end = good_end();
        let mut of = |plan: &Plan, failures: ConnectionFailures| {
            measurement.connections.churn =
                Some(Box::new(Churn { begun: 100, failures, ..Churn::default() }));
            shortfall(plan, &measurement, &end)
        };
        let refused = ConnectionFailures { refused: 5, ..ConnectionFailures::default() };
        assert!(matches!(of(&plan, refused), Some(Reason::ClientsFailed { failed: 5, .. })));
        plan.route = Route::Cluster;
        assert_eq!(of(&plan, refused), None);
        let descriptors = ConnectionFailures { descriptors: 6, ..refused };
        assert!(matches!(of(&plan, descriptors), Some(Reason::NoRoom { failed: 6, .. })));
    }

    #[test]
    fn a_silence_is_long_by_the_timeout_and_by_the_slowest_answer() {
        // Timeout, slowest answer, transport; the least silence that is long.
        let rows = [
            (SECOND, None, Transport::Stream, SECOND / 2),
            (SECOND / 10, None, Transport::Stream, SECOND / 10),
            (60 * SECOND, None, Transport::Stream, SECOND / 2),
            (60 * SECOND, Some(2 * SECOND), Transport::Stream, 4 * SECOND),
            (60 * SECOND, Some(50 * SECOND), Transport::Stream, 30 * SECOND),
            (SECOND, None, Transport::Udp, 2 * SECOND),
        ];
        for (timeout_ns, slowest_ns, transport, expected) in rows {
            let (mut plan, mut measurement) = measured(0);
            (plan.timeout_ns, plan.transport) = (timeout_ns, transport);
            let mut recorder = Recorder::new([Verb::Get].into_iter());
            slowest_ns.into_iter().for_each(|slowest_ns| recorder.record(&Sample::hit(0, slowest_ns)));
            measurement.groups[0].ops.merge(recorder.ops());
            assert_eq!(long_silence_ns(&plan, &measurement), expected, "{timeout_ns} {slowest_ns:?}");
        }
    }

    #[test]
    fn the_requests_of_a_recorded_load_are_no_more_than_what_it_stored() {
        let (mut plan, _) = measured(0);
        assert!(has_nothing_to_report(&plan, 0, 0));
        assert!(!has_nothing_to_report(&plan, 1, 0) && !has_nothing_to_report(&plan, 0, 1));
        plan.phases[0].work = Work::Load(Load::default());
        assert!(has_nothing_to_report(&plan, 0, 10) && !has_nothing_to_report(&plan, 1, 10));
    }

    #[test]
    fn nothing_completed_because_of_what_servers_said_most_often() {
        let (_, mut measurement) = measured(1);
        assert_eq!(because(&measurement, None), None);
        measurement.message(b"SERVER_ERROR busy", 2);
        measurement.message(b"ERROR", 1);
        let said = Why::Said { what: "SERVER_ERROR busy".to_owned(), count: 2 };
        assert_eq!(because(&measurement, None), Some(said));
        assert_eq!(because(&measurement, closed().as_ref()), closed().map(Why::Trouble));
    }
}
