//! The invariants of every run, whatever its servers did, in one function.

use pummel_logic::dist::Dist;
use pummel_logic::plan::baseline::{KIND_MAX_NS, ROUND_TRIPS};
use pummel_logic::plan::{EventKind, Plan, Protocol, Route, Transport, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Counts;

use crate::bounded::{Limits, Spent};
use crate::faults::Facts;
use crate::features::{Model, REQUESTS, Setting};
use crate::setup::{Outcome, schedule};

/// Longest pause before a connection is opened again.
const RETRY_MAX_NS: Nanos = SECOND;

/// Time that a run may take beyond its Plan, for opening connections and for workers that wait for each other, in
/// nanoseconds.
const OPENING_NS: Nanos = SECOND;

/// Longest silence of a server: in timeouts, and at least in nanoseconds.
const PATIENCE: (u64, Nanos) = (10, 10 * SECOND);

/// Most memory of a worker and its servers: stored values, bytes on their way, rows that are not collected yet.
const MEMORY_MAX_BYTES: i64 = 8 << 20;

/// Slices that a worker has in memory at most.
const INTERVALS_PER_WORKER: usize = 32;

/// Memory for the times of one verb: five histograms, most of whose pages are never touched.
const TIMES_MAX_BYTES: i64 = 5 * (448 << 10);

/// Greatest expense of a run: of each phase its time and the drain, or what each of its requests may cost, and the
/// longest silence of servers that answer nothing. `is_total`: all servers fall silent for ever, after a few messages.
pub fn limits(plan: &Plan, trace_rows: u64, is_total: bool) -> Limits {
    let mut limits = Limits { time_ns: 2 * plan.timeout_ns + OPENING_NS, turns: 20_000 };
    // A request that is sent again takes its time for that, and is one turn each time.
    let retry_ns = plan.sent_again_after().map_or(0, |retry| retry.for_ns);
    for phase in &plan.phases {
        let drain_ns = plan.timeout_ns.min(SECOND);
        let patience_ns = (PATIENCE.0 * plan.timeout_ns).max(PATIENCE.1);
        let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients)).sum();
        // More than that is asked only of servers that are silent, and given up.
        let asked = phase.stop.requests.unwrap_or(0).min(REQUESTS);
        // A read of several keys may be followed by as many stores, and a cas by a read.
        let requests = match &phase.work {
            Work::Mix(mix) => asked * (2 + u64::from(mix.multiget)),
            Work::Load(_) | Work::Delete(_) => 5 * plan.data.records * plan.servers.len() as u64,
            Work::Replay(_) => 2 * trace_rows,
            // Each row may be asked by two copies in two passes, and a cas or a miss is followed by another request.
            Work::Trace(_) => 8 * trace_rows,
            Work::Window(window) if window.preset => clients * u64::from(window.objects),
            Work::Window(_) => asked,
            Work::Audit(_) => 5 * plan.data.records,
            Work::Pause(pause) => {
                let time_ns = pause.until_ns.max(pause.for_ns);
                limits.time_ns += time_ns;
                limits.turns += time_ns / MILLISECOND;
                0
            }
        };
        limits.time_ns += match phase.stop.time_ns {
            Some(time_ns) => {
                // In closed loop there is a turn for each request, which takes some calls of the system.
                limits.turns += time_ns / 500;
                time_ns + drain_ns + MILLISECOND
            }
            None if is_total => {
                requests * (4 * plan.timeout_ns + retry_ns) + patience_ns + 2 * RETRY_MAX_NS + drain_ns
            }
            None => requests * (plan.timeout_ns + retry_ns + RETRY_MAX_NS) + patience_ns + drain_ns,
        };
        limits.turns += 40 * requests;
    }
    if plan.baseline_phase().is_some() {
        // Each server may fail in each kind, and its connection is opened again.
        let kinds = 2 * plan.lanes().max(plan.servers.len()) as u64;
        limits.time_ns += kinds * (KIND_MAX_NS + 2 * plan.timeout_ns + RETRY_MAX_NS);
        limits.turns += kinds * 10 * ROUND_TRIPS;
    }
    // Clients that come at a rate, or whose requests are due at one, wake the worker as often while nothing is answered.
    limits.turns += limits.time_ns / if is_total { MILLISECOND / 10 } else { 10 * MILLISECOND };
    limits
}

/// The facts about a run that the invariants are checked on.
pub struct Run<'a> {
    pub setting: &'a Setting,
    pub trace_rows: u64,
    pub outcome: &'a Outcome,
    pub facts: &'a Facts,
    pub spent: &'a Spent,
}

/// The invariants that do not hold of a run, as sentences.
pub fn broken(run: &Run<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut holds = |holds: bool, what: &dyn Fn() -> String| {
        if !holds {
            findings.push(what());
        }
    };
    let Run { setting, outcome, facts, spent, .. } = run;
    let (plan, measurement) = (&setting.plan, &outcome.measurement);
    let counts = outcome.counts();
    let whole = measurement.whole_run.ops.all();

    // It ends.
    if let Some(what) = spent.ended_by {
        holds(false, &|| {
            format!("it does not end: {what} ({} turns, {:.3} s)", spent.turns, spent.time_ns as f64 / 1e9)
        });
        return findings;
    }
    // A simulation is quicker than the thread that gives slices back, and at most so many are on their way to it.
    let slices = (measurement.intervals.len() + 6).min(INTERVALS_PER_WORKER + 2) as i64;
    // Parts of the measured phase have times of their own: those of one part or two in a slice, and those of all in the result.
    let parts = plan.changes.parts.len() as i64;
    let recorders = slices * (1 + parts.min(2)) + parts;
    let memory_bytes = MEMORY_MAX_BYTES + verbs_of(plan) * recorders * TIMES_MAX_BYTES;
    holds(spent.memory_bytes < memory_bytes, &|| {
        format!("it took {} bytes of memory where {memory_bytes} are enough", spent.memory_bytes)
    });

    // Accounts add up.
    let mut sliced = Counts::default();
    measurement.intervals.iter().for_each(|slice| sliced.merge(&slice.counts()));
    holds(sliced == counts, &|| format!("slices and totals differ: {sliced:?} and {counts:?}"));
    windowed(run, &counts, &mut holds);
    let rows = outcome.rows.len() as u64;
    let sent = counts.requests() - counts.unsent;
    // What was on its way to a connection that broke has a row and was not sent.
    holds((sent..=counts.requests()).contains(&rows), &|| {
        format!("{rows} rows of {sent} requests: {counts:?}")
    });
    let begun_alone = plan.phases.len() == 1;
    holds(whole.requests() >= counts.requests(), &|| {
        format!("less in all phases than in one: {whole:?}, {counts:?}")
    });
    holds(!begun_alone || whole.requests() == counts.requests(), &|| {
        format!("the whole run has {} requests, its only phase {}", whole.requests(), counts.requests())
    });
    if let Some((asked, is_exact)) = asked(run) {
        let due = counts.requests();
        let is_right = if is_exact { due == asked } else { due <= asked };
        holds(is_right, &|| {
            let reason = outcome.reason();
            format!(
                "{due} requests are accounted for of {asked}: {counts:?} ({:?}: {reason})",
                measurement.status
            )
        });
    }
    let has_reason = measurement.reason.is_some();
    holds(has_reason == (measurement.status != Status::Complete), &|| {
        format!("{:?} because of {:?}", measurement.status, measurement.reason)
    });
    for (verb, counts) in measurement.whole_run.ops.iter().filter(|(verb, _)| verb.reads()) {
        holds(counts.hits + counts.misses <= counts.keys, &|| {
            format!(
                "{}: {} hits and {} misses of {} keys",
                verb.name(),
                counts.hits,
                counts.misses,
                counts.keys
            )
        });
    }
    if plan.tls.is_none() {
        holds(measurement.whole_run.bytes.received <= facts.sent_bytes, &|| {
            format!(
                "{} bytes came of {} that were sent",
                measurement.whole_run.bytes.received, facts.sent_bytes
            )
        });
        let noreply = plan.phases.iter().any(|phase| matches!(&phase.work, Work::Mix(mix) if mix.noreply));
        holds(noreply || whole.completed <= facts.messages + 5 * facts.strikes, &|| {
            format!("{} requests were answered by {} messages", whole.completed, facts.messages)
        });
    }
    if let Some(load) = &measurement.load {
        holds(load.stored <= load.records, &|| {
            format!("{} of {} records are stored", load.stored, load.records)
        });
    }
    // What is left of a reply when its connection ends is no part of the next connection.
    // A server closes a connection on which it does not understand a request.
    let lost = measurement.connections.lost;
    let is_bogus = plan.sequence().is_some_and(|sequence| sequence.bogus);
    let is_told = run.setting.has_tails && plan.transport == Transport::Stream && !is_bogus;
    holds(!is_told || lost <= facts.tails_followed, &|| {
        format!("{lost} connections were lost where {} had more than whole replies", facts.tails_followed)
    });
    churned(run, &mut holds);
    let pushes = measurement.pushes.get("invalidate").copied().unwrap_or(0);
    holds(pushes <= facts.pushes, &|| format!("{pushes} messages of {} came", facts.pushes));
    // A reply that has come has brought the messages before it. The reply to a script that is loaded again is no request's, and is not
    // waited for at the end.
    let has_all = facts.strikes == 0 && whole.failed() == 0 && whole.unfinished == 0 && plan.script.is_none();
    holds(!has_all || pushes >= facts.pushes_followed, &|| {
        format!("{pushes} messages are counted of {} before replies", facts.pushes_followed)
    });
    let redirects = &measurement.counters.redirects;
    let replies = redirects.moved
        + redirects.ask
        + redirects.tryagain
        + redirects.clusterdown
        + redirects.loading
        + redirects.readonly;
    holds(replies <= facts.strikes, &|| format!("{redirects:?} of {} redirects", facts.strikes));
    let redirected = redirects.followed + redirects.given_up;
    holds(redirected <= replies + redirects.repeated, &|| {
        format!("more requests than redirects: {redirects:?}")
    });
    retried(run, &counts, &mut holds);
    cached(run, &counts, &mut holds);

    // Connections are asked for at a pace.
    let ended = whole.completed + whole.failed();
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients.min(8))).sum();
    let connections = clients * plan.lanes() as u64;
    let paced = connections * (20 * (1 + plan.phases.len() as u64) + spent.time_ns / MILLISECOND);
    holds(spent.opens <= ended + paced, &|| {
        format!(
            "{} connections were asked for in {:.3} s, for {ended} requests",
            spent.opens,
            spent.time_ns as f64 / 1e9
        )
    });

    // No verdict without proof.
    let verify = &measurement.verify;
    // Its packets say which request they answer, other replies do not.
    let is_marked = plan.protocol == Protocol::Binary;
    let foreign = facts.wrong || facts.shifted && !is_marked;
    holds(verify.failed == 0 || foreign, &|| {
        format!("{} right values are called wrong: {:?}", verify.failed, verify.first.first())
    });
    holds(verify.stale == 0 || facts.wrong || facts.shifted, &|| {
        format!("{} values of {} are called stale", verify.stale, verify.checked)
    });
    if let Some(audit) = &measurement.audit {
        let counts = &audit.counts;
        let read = counts.current + counts.contested + counts.newer + counts.lost();
        holds(read <= audit.written, &|| format!("{read} of {} keys were read back", audit.written));
        holds(counts.lost() == 0 || facts.wrong || facts.shifted, &|| {
            format!("a server that loses nothing has lost writes: {audit:?}")
        });
    }
    let window = &measurement.counters.window;
    holds(window.verify_failed == 0 || facts.wrong || facts.shifted, &|| {
        format!("{} right values of windows are called wrong", window.verify_failed)
    });
    findings
}

/// Checks that requests are sent again only after the errors that the plan names, and no more often than its time allows.
fn retried(run: &Run<'_>, counts: &Counts, holds: &mut impl FnMut(bool, &dyn Fn() -> String)) {
    let counted = &run.outcome.measurement.counters.retry;
    let Some(retry) = run.setting.plan.sent_again_after() else {
        return holds(counted.is_zero(), &|| format!("nothing is sent again: {counted:?}"));
    };
    let has_kind = |(kind, _)| retry.kinds.contains(&kind);
    holds(counted.retries.iter().all(has_kind) && counted.given_up.iter().all(has_kind), &|| {
        format!("sent again without being asked to: {counted:?}")
    });
    // Waits double, and the shortest is half of the first one; a last attempt is made when the time is over.
    let waits = (0..20).find(|n| ((5 * MILLISECOND) << n) - 5 * MILLISECOND > retry.for_ns).unwrap_or(20);
    // Each part of a request, on a server or in a slot of its own, is sent again by itself.
    let parts = if counts.keys > counts.requests() { run.setting.plan.data.records } else { 1 };
    // A request whose script was lost is sent again at once, where that is its first error.
    let most = counts.requests() * parts * (waits + 2);
    holds(counted.retries.total() <= most, &|| format!("more than {most} retries: {counted:?}"));
    let ended = counted.recovered + counted.given_up.total() + counted.not_repeatable;
    holds(ended <= counts.requests() * parts, &|| format!("of {counts:?}: {counted:?}"));
    let failed = counted.given_up.total() + counted.not_repeatable;
    holds(failed <= parts * counts.failed(), &|| format!("failed of {counts:?}: {counted:?}"));
}

/// Checks that the windows of time, from which figures get their intervals, have every request once.
fn windowed(run: &Run<'_>, counts: &Counts, holds: &mut impl FnMut(bool, &dyn Fn() -> String)) {
    let Some(windows) = &run.outcome.measurement.windows else { return };
    let ops = || windows.iter().flat_map(|window| &window.groups).flat_map(|ops| ops.values());
    let completed: u64 = ops().map(|op| op.completed).sum();
    let unanswered: u64 = ops().map(|op| op.unanswered).sum();
    holds((completed, unanswered) == (counts.completed, counts.unanswered()), &|| {
        format!(
            "windows of time have {completed} completed and {unanswered} unanswered requests of {counts:?}"
        )
    });
}

/// Checks the counts of the cache: where misses have causes, each miss of each operation has one, and one that the plan
/// has.
fn cached(run: &Run<'_>, counts: &Counts, holds: &mut impl FnMut(bool, &dyn Fn() -> String)) {
    let plan = &run.setting.plan;
    let cache = &counts.cache;
    if !plan.tells_misses() {
        return holds(cache.is_zero(), &|| format!("nothing tells misses apart: {cache:?}"));
    }
    let measurement = &run.outcome.measurement;
    for (verb, op) in measurement.ops().iter().chain(measurement.parts.iter().flat_map(|ops| ops.iter())) {
        let (counts, of_op) = (&op.counts, &op.counts.cache);
        // What commands of the user look up is not known to be a record.
        let misses = if verb.is_command() { 0 } else { counts.misses };
        holds(of_op.misses() == misses, &|| {
            format!("{}: {misses} misses have other causes: {of_op:?}", verb.name())
        });
        holds(of_op.fills <= counts.completed && of_op.duplicate_fills <= of_op.fills, &|| {
            format!("{}: more fills than stores: {counts:?}", verb.name())
        });
        let is_of_its_requests = (of_op.hit_bytes == 0 || counts.hits > 0)
            && (of_op.missed_bytes == 0 || counts.misses > 0)
            && (of_op.stored_bytes == 0 || counts.completed > 0);
        holds(is_of_its_requests, &|| format!("{}: bytes of no value: {counts:?}", verb.name()));
    }
    let mixes = || {
        plan.phases.iter().filter(|phase| phase.recorded).filter_map(|phase| match &phase.work {
            Work::Mix(mix) => Some(mix),
            _ => None,
        })
    };
    let events = &plan.changes.events;
    let has_new_keys = mixes().any(|mix| mix.fresh > 0.0 || mix.churn.is_some())
        || plan.changes.parts.iter().any(|part| part.churn.is_some())
        || events.iter().any(|event| matches!(&event.what, EventKind::Hot(_)));
    let expires = plan.data.expiry_s != Dist::Fixed(0.0)
        || events.iter().any(|event| matches!(&event.what, EventKind::Expire(_)));
    holds(has_new_keys || mixes().any(|mix| mix.inserts) || cache.first_touch == 0, &|| {
        format!("no key is new: {cache:?}")
    });
    holds(mixes().any(|mix| mix.absent > 0.0) || cache.absent == 0, &|| format!("all keys exist: {cache:?}"));
    holds(expires || cache.expired == 0, &|| format!("no key expires: {cache:?}"));
}

/// Greatest number of verbs that are measured: those of a mix, and those that follow from them.
fn verbs_of(plan: &Plan) -> i64 {
    let of = |work: &Work| match work {
        Work::Mix(mix) => mix.ops.len() as i64 + 2,
        Work::Load(_) | Work::Delete(_) | Work::Pause(_) | Work::Audit(_) => 1,
        Work::Replay(_) | Work::Window(_) => 2,
        Work::Trace(_) => 14,
    };
    // Phases that ask the same verbs share the memory; loading and deleting may add one each, and totals are kept beside.
    let by_events = if plan.changes.events.is_empty() { 0 } else { 2 };
    plan.phases.iter().map(|phase| of(&phase.work)).max().unwrap_or(0) + by_events + 3
}

/// Number of requests that the recorded phase is to make, and whether exactly that many have to be accounted for, or at
/// most that many; `None` where that is not known.
fn asked(run: &Run<'_>) -> Option<(u64, bool)> {
    let (plan, outcome) = (&run.setting.plan, run.outcome);
    if run.setting.model == Model::Any {
        return None;
    }
    let mut recorded = plan.phases.iter().filter(|phase| phase.recorded);
    let phase = recorded.next().filter(|_| recorded.next().is_none())?;
    let follows = match &phase.work {
        Work::Mix(mix) => {
            mix.read_through_ns.is_some()
                || mix.has_pairs()
                || mix.ops.iter().any(|(verb, _)| *verb == Verb::Cas)
        }
        Work::Replay(replay) => replay.read_through_ns.is_some(),
        Work::Window(_) => false,
        Work::Load(_) | Work::Delete(_) | Work::Pause(_) | Work::Trace(_) | Work::Audit(_) => return None,
    };
    if follows {
        return None;
    }
    let complete = outcome.measurement.status == Status::Complete;
    match (run.setting.model, phase.stop.time_ns, phase.stop.requests) {
        (Model::Open | Model::Unlimited, Some(_), None) => {
            let due: usize = schedule(plan, outcome.measurement.measured_ns).iter().map(Vec::len).sum();
            Some((due as u64 + losses(plan, outcome.measurement.measured_ns), true))
        }
        // Every client that came accounts for all of its requests, and every client comes.
        (Model::Sequence, None, Some(requests)) => Some((requests, outcome.measurement.measured_ns > 0)),
        (Model::ChurnClosed | Model::ChurnOpen, None, Some(requests)) => Some((requests, complete)),
        (Model::Replay, ..) => Some((run.trace_rows, complete)),
        // To memaslap, a get of several keys is so many requests.
        (Model::Windowed, None, Some(requests)) => Some((requests, false)),
        (_, None, Some(requests)) => Some((requests, complete)),
        _ => None,
    }
}

/// Number of requests that the events of a plan make in the measured time by which servers lose records: one for each
/// record on each server that has it.
fn losses(plan: &Plan, measured_ns: Nanos) -> u64 {
    let servers = if plan.route.owns_keys() { 1 } else { plan.servers.len() as u64 };
    let begun = plan.changes.events.iter().filter(|event| event.at_ns < measured_ns);
    let lost = begun.map(|event| match event.what {
        EventKind::Hot(_) => 0,
        EventKind::Delete(ranks) | EventKind::Expire(ranks) => ranks.records(),
    });
    lost.sum::<u64>() * servers
}

/// Checks the invariants of clients that come and go.
fn churned(run: &Run<'_>, holds: &mut impl FnMut(bool, &dyn Fn() -> String)) {
    let Run { setting, outcome, spent, .. } = run;
    let Some(churn) = outcome.measurement.connections.churn.as_ref() else { return };
    // A client of a cluster may have a connection to each node.
    let connections = u64::from(setting.plan.groups[0].clients) * setting.plan.lanes() as u64;
    holds(churn.begun == churn.ended, &|| format!("{} clients came and {} went", churn.begun, churn.ended));
    let gone = outcome.departures.len() as u64;
    holds(churn.ended == gone, &|| format!("{} clients went and {gone} were told of", churn.ended));
    holds(churn.alive_max <= connections, &|| {
        format!("{} of {connections} connections were there at one time", churn.alive_max)
    });
    holds(churn.established <= churn.asked && churn.asked <= spent.opens, &|| {
        format!("{} open of {} asked for, {} really", churn.established, churn.asked, spent.opens)
    });
    let most = if setting.plan.route == Route::Cluster { churn.asked } else { churn.begun };
    holds(churn.failures.total() <= most, &|| format!("{} of {most} failed", churn.failures.total()));
    holds(churn.life.count() == churn.established, &|| {
        format!("{} lives of {} connections", churn.life.count(), churn.established)
    });
    let depth = setting.plan.groups[0].depth.limit().is_some();
    let (made, of) =
        outcome.departures.iter().fold((0, 0), |sum, gone| (sum.0 + gone.calls.0, sum.1 + gone.calls.1));
    holds(!depth || made <= of, &|| format!("{made} requests were made of {of}"));
}
