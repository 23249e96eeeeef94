//! The rows of the table of limits about the server, or its machine.

use std::collections::BTreeSet;

use super::case::{BODY, Case};
use super::cause::{Cause, DelayTaker, StartedAnew, ThreadTime, TurnedAwayBy, WaitedFor};
use super::cpu_time::DelayCause;
use super::generator_rows::held_up;
use super::network_rows::IDLE_SHARE;
use super::server_use::ServerUse;
use super::shared_cpu::worst_delayed;
use super::shares::{FULL_SHARE, Judged, SPARE_SHARE};
use super::standstills::{outpaced, standstills};
use crate::connections::Refusal;
use crate::cross_checks::Waits;
use crate::evidence::server::BackgroundSave;
use crate::figures::{Figures, Quantile};
use crate::misses::looked_up;
use crate::recorder::Span;
use pummel_logic::time::Nanos;

/// Factor between measured and predicted waits from which on something held up all requests together.
const BURST_RATIO: f64 = 3.0;
/// Squared coefficient of variation of the service above which a server stands still at times. An exponential service
/// has 1.
pub const STEADY_VARIATION: f64 = 4.0;
/// Share of taken slots above which requests wait, however steady the service is.
pub const SLOTS_FULL_SHARE: f64 = 0.8;
/// Share of requests without an answer above which that is a limit.
const UNANSWERED_SHARE: f64 = 0.01;

/// Words of memcached and Redis on a connection that they refuse.
const FULL_WORDS: [&str; 2] = ["Too many open connections", "max number of clients"];

/// Reports a server that started anew: requests to it failed meanwhile, and what it kept in memory alone is gone.
pub fn restarted(case: &Case<'_>) -> Option<Cause> {
    let seen = case.measurement.evidence.iter().flat_map(|seen| &seen.servers);
    let mut anew = seen.filter_map(|server| Some((server, server.reading.as_ref()?)));
    let Some((server, reading)) = anew.find(|(_, reading)| reading.restarted) else {
        return gone_for_a_time(case);
    };
    let anew = StartedAnew { uptime_s: reading.uptime_s, span_ns: reading.span_ns };
    Some(gone(case, case.server_name(&server.address), Some(anew)))
}

/// Reports a server that was gone and came back, as the connections of the run alone show: it was not asked, or was
/// gone before it was asked for the first time.
fn gone_for_a_time(case: &Case<'_>) -> Option<Cause> {
    let connections = &case.measurement.connections;
    let refused: u64 = connections.refusals.iter().map(|refusal| refusal.attempts).sum();
    let is_gone = connections.asked > 0
        && connections.lost >= connections.asked
        && connections.turned_away > refused
        && connections.reconnected > 0
        && connections.churn.is_none()
        && case.plan.servers.len() == 1;
    is_gone.then(|| gone(case, None, None))
}

/// A server that was gone for a time.
fn gone(case: &Case<'_>, server: Option<String>, anew: Option<StartedAnew>) -> Cause {
    let (hits, missed) = looked_up(case.measurement, &case.all.counts);
    let misses = missed as f64 / (hits + missed).max(1) as f64;
    let longest_wait_ns = (!case.is_closed).then(|| case.moments(Span::Wait).max);
    Cause::ServerRestarted { server, anew, misses, longest_wait_ns }
}

/// Reports a server that took fewer connections than the run has to the end: whatever else is slow, the rest of its
/// load waits for them.
pub fn not_taken(case: &Case<'_>) -> Option<Cause> {
    let mut refusals = case.measurement.connections.refusals.iter();
    refusals.any(|refusal| refusal.refused > 0).then(|| refused(case)).flatten()
}

/// Reports a server that took no more connections.
pub fn refused(case: &Case<'_>) -> Option<Cause> {
    let connections = &case.measurement.connections;
    let churned = connections.churn.as_ref().map_or(0, |churn| churn.failures.refused + churn.failures.reset);
    let failed = connections.failed + connections.lost + churned;
    let counts = case.readings().map(|reading| &reading.counts);
    let refused: u64 = counts
        .map(|counts| counts.connections_refused.unwrap_or(0) + counts.listen_disabled.unwrap_or(0))
        .sum();
    // A full server turns away the connection for its statistics too; what it said on ours is known all the same.
    let messages = case.measurement.messages.iter();
    let reported = messages.filter(|(message, _)| FULL_WORDS.iter().any(|words| message.contains(words)));
    let met = connections.refusals.iter().map(|refusal| refusal.attempts).sum();
    let refused = refused.max(reported.map(|(_, count)| count).sum()).max(met);
    let full = FullQueue::of(case);
    if failed == 0 || (refused == 0 && full.is_none()) {
        return None;
    }
    let limit = case.readings().find_map(|reading| reading.connections_max);
    let limit = limit.or(connections.refusals.iter().find_map(|refusal| refusal.limit));
    let (by, turned_away, ours) = match full {
        Some(FullQueue::OfServer(drops)) if refused == 0 => (TurnedAwayBy::ItsQueue, drops, failed),
        Some(FullQueue::OfMachine(drops)) if refused == 0 => {
            (TurnedAwayBy::QueueOfMachine, drops, connections.turned_away)
        }
        _ => (TurnedAwayBy::Server, refused, failed),
    };
    let full_servers = connections.refusals.iter().filter(|refusal| refusal.refused > 0);
    Some(Cause::ServerConnections {
        by,
        turned_away,
        ours,
        limit,
        taken: full_servers.map(Refusal::taken).min(),
        // A full server may not have said who it is; only memcached speaks its protocols.
        software: case.readings().next().map(|reading| reading.software.clone()).or_else(|| {
            let is_memcached = !case.plan.protocol.is_resp();
            is_memcached.then(|| "memcached".to_owned())
        }),
    })
}

/// Attempts to connect that a full queue of a listening socket turned away.
#[derive(Clone, Copy, Debug)]
enum FullQueue {
    /// They were turned away by the server's own sockets.
    OfServer(u64),
    /// They were turned away by some socket of the server's machine, and so were attempts of the run.
    OfMachine(u64),
}

impl FullQueue {
    /// The attempts of a run; `None` where there were none, or where those of others explain them.
    fn of(case: &Case<'_>) -> Option<FullQueue> {
        let servers = case.measurement.evidence.iter().flat_map(|seen| &seen.servers);
        let drops: Vec<Option<u64>> = servers.map(|server| server.listen_drops).collect();
        let known = drops.iter().flatten().sum();
        if known > 0 {
            return Some(FullQueue::OfServer(known));
        }
        // Of a server on another machine nothing is counted here.
        let is_unknown = drops.iter().any(Option::is_none);
        let beside_servers = case.machines().filter(|machine| machine.servers_are_local == Some(true));
        let networks = beside_servers.filter_map(|machine| machine.network.as_ref());
        let overflows = networks.map(|network| network.listen_overflows).max().unwrap_or(0);
        let is_ours = case.measurement.connections.turned_away > 0;
        (is_unknown && is_ours && overflows > 0).then_some(FullQueue::OfMachine(overflows))
    }
}

/// The busy time with a full receive window.
pub fn receive_window_full(case: &Case<'_>) -> Option<Judged> {
    held_up(case, |tcp| tcp.rwnd_limited_ns)
}

/// Reports a server that did not read what was sent to it.
pub fn receive_window(case: &Case<'_>) -> Option<Cause> {
    let full = receive_window_full(case)?;
    // A server whose thread is full reads late because of that.
    (full.is_beyond() && !case.server_is_full()).then_some(Cause::ServerReceiveWindow { share: full.value })
}

fn full<'c>(case: &'c Case<'_>) -> impl Iterator<Item = (&'c ServerUse, f64)> {
    let full = case.servers.iter().filter(|server| server.is_full());
    full.filter_map(|server| Some((server, server.hottest_at_least()?)))
}

/// The use of the hottest thread, with the time for which it had to wait for its CPU where that filled it.
fn used(server: &ServerUse, hottest: f64) -> ThreadTime {
    let delay = server.threads.first().map_or(0.0, |thread| thread.run_delay);
    ThreadTime { cpu: hottest, waited: (hottest <= FULL_SHARE).then_some(delay) }
}

/// Reports one full thread of several.
pub fn one_thread(case: &Case<'_>) -> Option<Cause> {
    full(case).find_map(|(server, hottest)| {
        let others = server.others_mean().filter(|mean| *mean < IDLE_SHARE)?;
        // Without their number the others may be threads that answer no requests.
        Some(Cause::ServerOneThread {
            server: case.server_name(&server.address),
            threads: server.serving_threads?,
            busiest: used(server, hottest),
            others,
        })
    })
}

/// Reports full serving threads.
pub fn cpu(case: &Case<'_>) -> Option<Cause> {
    let (server, hottest) = full(case).max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(Cause::ServerCpu {
        server: case.server_name(&server.address),
        threads: server.serving_threads,
        busiest: used(server, hottest),
        others: server.others_mean(),
        client_threads: case.client_threads(),
        client_busy: case.busy(),
    })
}

/// Reports serving threads that waited for a CPU.
pub fn run_delay(case: &Case<'_>) -> Option<Cause> {
    let worst = worst_delayed(case)?;
    worst.delayed().is_beyond().then(|| Cause::ServerRunDelay {
        server: case.server_name(&worst.address),
        share: worst.run_delay(),
        taker: match worst.delay_cause {
            Some(DelayCause::Others) => Some(DelayTaker::OtherProcesses),
            Some(DelayCause::Servers) => Some(DelayTaker::Servers),
            Some(DelayCause::Pummel) | None => None,
        },
    })
}

/// Whether service times vary no more than those of a server that works without pauses, or the slots are taken so much
/// that requests wait all the same.
pub fn is_steady(case: &Case<'_>) -> bool {
    let slots = case.slots().map_or(f64::INFINITY, |slots| slots as f64);
    let service = case.moments(Span::Service);
    let unanswered = case.unanswered();
    let count = (service.count + unanswered.timeouts) as f64;
    let mean = (service.sum as f64 + unanswered.timeouts as f64 * unanswered.timeout_ns as f64) / count;
    let variation = case.squares().1 / count / (mean * mean) - 1.0;
    case.slots_taken() > SLOTS_FULL_SHARE * slots || count == 0.0 || variation <= STEADY_VARIATION
}

/// The measured waits as a multiple of the predicted ones.
pub fn burst(waits: &Waits) -> Judged {
    Judged { value: waits.ratio(), bound: BURST_RATIO }
}

/// Reports a server that stood still at times, with requests that waited behind those that it kept.
pub fn bursts(case: &Case<'_>) -> Option<Cause> {
    if case.is_closed || case.connections_made_the_wait() {
        return None;
    }
    let wait = case.waits()?;
    let ratio = Waits::of(case).map(|waits| burst(&waits)).filter(|ratio| ratio.is_beyond());
    if is_steady(case) && ratio.is_none() {
        return None;
    }
    let (longest_ns, longest_is_bound) = longest_service(case);
    Some(Cause::ServerBursts {
        standstills: standstills(case),
        longest_ns,
        longest_is_bound,
        median_ns: case.at(Span::Service, 0.5),
        wait: wait.time(),
        ratio: ratio.map(|ratio| ratio.value),
        server_says: disturbances(case),
    })
}

/// The disturbances that the servers reported; empty if they reported none.
fn disturbances(case: &Case<'_>) -> Vec<String> {
    let said = case.readings().flat_map(|reading| &reading.disturbances).cloned();
    let saves = case.readings().flat_map(|reading| &reading.saves).map(BackgroundSave::words);
    said.chain(saves).collect::<BTreeSet<String>>().into_iter().collect()
}

/// The longest service, as far as it is known, and whether that is a lower bound.
fn longest_service(case: &Case<'_>) -> (Nanos, bool) {
    match Figures::of(Span::Service, case.all.times.of(Span::Service), &case.unanswered()).max {
        Quantile::Known(longest_ns) => (longest_ns, false),
        Quantile::Above(bound_ns) => (bound_ns, true),
        Quantile::Absent => (0, true),
    }
}

/// Reports requests of an open loop that waited for a connection for no known reason.
pub fn waits_by_exclusion(case: &Case<'_>) -> Option<Cause> {
    if case.is_closed {
        return None;
    }
    let wait = case.waits()?;
    let connections = &case.measurement.connections;
    let why = match case.connections_made_the_wait() {
        true => WaitedFor::Connections { lost: connections.lost, failed: connections.failed },
        false => WaitedFor::Answers {
            connections: connections.asked,
            lag_p99_ns: case.at(Span::Lag, BODY[1].1),
            server_busy: case.servers_at_most(),
            unread: case.servers_unread(),
        },
    };
    Some(Cause::WaitsByExclusion { wait: wait.time(), why })
}

/// The requests without an answer; absent in a run without requests.
pub fn unanswered_share(case: &Case<'_>) -> Option<Judged> {
    let (counts, requests) = (&case.all.counts, case.all.counts.requests());
    (requests > 0).then(|| Judged::share(counts.unanswered(), requests, UNANSWERED_SHARE))
}

/// Reports requests without an answer.
pub fn unanswered(case: &Case<'_>) -> Option<Cause> {
    let share = unanswered_share(case)?;
    share.is_beyond().then(|| {
        let standstills = standstills(case);
        Cause::Unanswered {
            share: share.value,
            overload: outpaced(case, &standstills),
            standstills,
            timeout_ns: case.measurement.timeout_ns,
            lag_p99_ns: case.at(Span::Lag, BODY[1].1),
        }
    })
}

/// Reports requests of a closed loop that were with the server nearly all of the time, of whose CPU nothing is known.
pub fn service_by_exclusion(case: &Case<'_>) -> Option<Cause> {
    let whole = case.responses_ns();
    let share = if whole > 0.0 { case.sum(Span::Service) / whole } else { 0.0 };
    let is_known = case.servers_at_most().is_some();
    if !case.is_closed || is_known || case.busy() >= SPARE_SHARE || share <= SPARE_SHARE {
        return None;
    }
    Some(Cause::ServiceByExclusion {
        share,
        client_threads: case.client_threads(),
        client_busy: case.busy(),
        unread: case.servers_unread(),
    })
}
