//! The rows of the table of limits about the server, or its machine.

use std::collections::BTreeSet;

use super::case::{BODY, Case};
use super::cpu_time::DelayCause;
use super::generator_rows::held_up;
use super::network_rows::IDLE_SHARE;
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, Judged, SPARE_SHARE};
use crate::cross_checks::Waits;
use crate::evidence::server::BackgroundSave;
use crate::figures::{Figures, Quantile, time_text};
use crate::recorder::Span;
use crate::words::{counted, grouped, percent, was};
use pummel_logic::time::{Nanos, seconds};

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
pub fn restarted(case: &Case<'_>) -> Option<String> {
    let seen = case.measurement.evidence.iter().flat_map(|seen| &seen.servers);
    let mut anew = seen.filter_map(|server| Some((server, server.reading.as_ref()?)));
    let Some((server, reading)) = anew.find(|(_, reading)| reading.restarted) else {
        return gone_for_a_time(case);
    };
    let place = case.server_place(&server.address);
    let up = reading.uptime_s.map(|up_s| {
        format!(
            ": at the end it had been up for {up_s} s, {} after the first look at it",
            duration(reading.span_ns)
        )
    });
    Some(format!(
        "The server{place} started anew during the run{}.{}",
        up.unwrap_or_default(),
        missed_words(case)
    ))
}

/// Reports a server that was gone and came back, as the connections of the run alone show: it was not asked, or was
/// gone before it was asked for the first time.
fn gone_for_a_time(case: &Case<'_>) -> Option<String> {
    let connections = &case.measurement.connections;
    let refused: u64 = connections.refusals.iter().map(|refusal| refusal.attempts).sum();
    let is_gone = connections.asked > 0
        && connections.lost >= connections.asked
        && connections.turned_away > refused
        && connections.reconnected > 0
        && connections.churn.is_none()
        && case.plan.servers.len() == 1;
    is_gone.then(|| {
        format!(
            "The server was gone for a time: every connection was lost, attempts to connect were turned away, and it took \
             connections again later.{}",
            missed_words(case)
        )
    })
}

/// Share of the keys that was not found, as a sentence behind a blank; empty where all were found.
fn missed_words(case: &Case<'_>) -> String {
    let counts = &case.all.counts;
    match counts.misses {
        0 => String::new(),
        misses => {
            let share = misses as f64 / (counts.hits + misses) as f64;
            format!(" {} of the keys were not found.", percent(share))
        }
    }
}

/// A time in seconds as words.
fn duration(ns: Nanos) -> String {
    format!("{:.1} s", seconds(ns))
}

/// Reports a server that took fewer connections than the run has to the end: whatever else is slow, the rest of its
/// load waits for them.
pub fn not_taken(case: &Case<'_>) -> Option<String> {
    let mut refusals = case.measurement.connections.refusals.iter();
    refusals.any(|refusal| refusal.refused > 0).then(|| refused(case)).flatten()
}

/// Reports a server that took no more connections.
pub fn refused(case: &Case<'_>) -> Option<String> {
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
    let limit = limit.map_or_else(String::new, |limit| format!(" (it takes {})", grouped(limit)));
    let lost = format!("{} of ours failed or were lost", grouped(failed));
    Some(match full {
        _ if refused > 0 => format!(
            "The server's limit of connections{limit}: the server refused {}, and {lost}.",
            counted(refused, "connection")
        ),
        Some(FullQueue::OfServer(drops)) => format!(
            "The server's limit of connections{limit}: the full queue of its listening socket turned away {}, and {lost}.",
            counted(drops, "attempt")
        ),
        _ => format!(
            "The machine of the server: full queues of its listening sockets turned away {}, and {} of ours {} refused or reset.",
            counted(full.map_or(0, FullQueue::count), "attempt"),
            grouped(connections.turned_away),
            was(connections.turned_away),
        ),
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

    fn count(self) -> u64 {
        match self {
            FullQueue::OfServer(count) | FullQueue::OfMachine(count) => count,
        }
    }
}

/// The busy time with a full receive window.
pub fn receive_window_full(case: &Case<'_>) -> Option<Judged> {
    held_up(case, |tcp| tcp.rwnd_limited_ns)
}

/// Reports a server that did not read what was sent to it.
pub fn receive_window(case: &Case<'_>) -> Option<String> {
    let full = receive_window_full(case)?;
    // A server whose thread is full reads late because of that.
    (full.is_beyond() && !case.server_is_full()).then(|| {
        format!(
            "The server did not read as fast as was sent: its receive window was full for {} of the time in which connections \
             had data to send.",
            percent(full.value)
        )
    })
}

fn full<'c>(case: &'c Case<'_>) -> impl Iterator<Item = (&'c ServerUse, f64)> {
    let full = case.servers.iter().filter(|server| server.is_full());
    full.filter_map(|server| Some((server, server.hottest_at_least()?)))
}

/// The use of the hottest thread, with the time for which it had to wait for its CPU where that filled it.
fn used(server: &ServerUse, hottest: f64) -> String {
    let delay = server.threads.first().map_or(0.0, |thread| thread.run_delay);
    let delayed =
        if hottest > FULL_SHARE { String::new() } else { format!(" and waited for it {}", percent(delay)) };
    format!("used {} of a CPU{delayed}", percent(hottest))
}

/// Reports one full thread of several.
pub fn one_thread(case: &Case<'_>) -> Option<String> {
    full(case).find_map(|(server, hottest)| {
        let others = server.others_mean().filter(|mean| *mean < IDLE_SHARE)?;
        // Without their number the others may be threads that answer no requests.
        let threads = server.serving_threads?;
        Some(format!(
            "One of the {} threads of the server{}: it {}, the others {} on average. Connections are spread unevenly: more \
             connections even that out.",
            threads,
            case.server_place(&server.address),
            used(server, hottest),
            percent(others),
        ))
    })
}

/// Reports full serving threads.
pub fn cpu(case: &Case<'_>) -> Option<String> {
    let (server, hottest) = full(case).max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let used = used(server, hottest);
    let what = match (server.serving_threads, server.others_mean()) {
        (Some(1), _) => format!("its one serving thread {used}"),
        (Some(threads), Some(others)) => format!(
            "the busiest of its {threads} serving threads {used}, the others {} on average",
            percent(others)
        ),
        (Some(threads), None) => {
            format!("its {threads} serving threads {used} each, on average")
        }
        (None, _) => format!("its busiest thread {used}"),
    };
    Some(format!(
        "The CPU of the server{}: {what}; the busiest client thread was busy {}.",
        case.server_place(&server.address),
        percent(case.busy()),
    ))
}

/// Reports serving threads that waited for a CPU.
pub fn run_delay(case: &Case<'_>) -> Option<String> {
    let worst = case.servers.iter().max_by(|one, other| one.run_delay().total_cmp(&other.run_delay()))?;
    worst.delayed().is_beyond().then(|| {
        format!(
            "The machine of the server{}: one of its threads could have run for {} of its time and had no CPU{}.",
            case.server_place(&worst.address),
            percent(worst.run_delay()),
            match worst.delay_cause {
                Some(DelayCause::Others) => ", which other processes had",
                Some(DelayCause::Servers) => ", which other threads of the server had",
                Some(DelayCause::Pummel) | None => "",
            },
        )
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
pub fn bursts(case: &Case<'_>) -> Option<String> {
    if case.is_closed || case.connections_made_the_wait() {
        return None;
    }
    let wait = case.waits()?;
    let ratio = Waits::of(case).map(|waits| burst(&waits)).filter(|ratio| ratio.is_beyond());
    if is_steady(case) && ratio.is_none() {
        return None;
    }
    let ratio = ratio.map_or_else(String::new, |ratio| {
        let ratio = ratio.value;
        format!(", {ratio:.0} times as long as service times that are independent of each other make")
    });
    Some(format!(
        "The server stood still at times: a request took it up to {}, {} the median. Requests waited {} for others ({}){ratio}.{}",
        longest_service(case).0,
        longest_service(case).1,
        time_text(wait.value_ns),
        wait.name,
        disturbances(case),
    ))
}

/// The disturbances that the servers reported, as a sentence; empty if they reported none.
fn disturbances(case: &Case<'_>) -> String {
    let said = case.readings().flat_map(|reading| &reading.disturbances).cloned();
    let saves = case.readings().flat_map(|reading| &reading.saves).map(BackgroundSave::words);
    let said: BTreeSet<String> = said.chain(saves).collect();
    if said.is_empty() {
        return String::new();
    }
    format!(" The server says of that time: {}.", said.into_iter().collect::<Vec<_>>().join("; "))
}

/// The longest service as words, as far as it is known, and how many times the median it is.
fn longest_service(case: &Case<'_>) -> (String, String) {
    let median_ns = case.at(Span::Service, 0.5).max(1);
    let times = |ns: u64| format!("{} times", grouped(ns / median_ns));
    match Figures::of(Span::Service, case.all.times.of(Span::Service), &case.unanswered()).max {
        Quantile::Known(longest) => (time_text(longest), times(longest)),
        Quantile::Above(bound) => {
            (format!("more than {}", time_text(bound)), format!("above {}", times(bound)))
        }
        Quantile::Absent => ("an unknown time".to_owned(), "an unknown multiple of".to_owned()),
    }
}

/// Reports requests of an open loop that waited for a connection for no known reason.
pub fn waits_by_exclusion(case: &Case<'_>) -> Option<String> {
    if case.is_closed {
        return None;
    }
    let wait = case.waits()?;
    let connections = &case.measurement.connections;
    if case.connections_made_the_wait() {
        return Some(format!(
            "The server, by exclusion: requests waited {} ({}) for connections that were not there ({} connections were lost, \
             {} attempts to open one failed).",
            time_text(wait.value_ns),
            wait.name,
            grouped(connections.lost),
            grouped(connections.failed),
        ));
    }
    let server = match case.servers_at_most() {
        Some(share) => format!("The server's CPU was used for {} at most.", percent(share)),
        None => case.servers_unread(),
    };
    Some(format!(
        "The server or the number of connections ({}), by exclusion: requests waited {} ({}) for others to be answered, and \
         the generator did not make them wait (lag {}). {server}",
        grouped(connections.asked),
        time_text(wait.value_ns),
        wait.name,
        case.words_at(Span::Lag, BODY[1]),
    ))
}

/// The requests without an answer; absent in a run without requests.
pub fn unanswered_share(case: &Case<'_>) -> Option<Judged> {
    let (counts, requests) = (&case.all.counts, case.all.counts.requests());
    (requests > 0).then(|| Judged::share(counts.unanswered(), requests, UNANSWERED_SHARE))
}

/// Reports requests without an answer.
pub fn unanswered(case: &Case<'_>) -> Option<String> {
    let share = unanswered_share(case)?;
    share.is_beyond().then(|| {
        format!(
            "The server or the path to it, by exclusion: {} of the requests got no answer, and the generator's own lag was {}.",
            percent(share.value),
            case.words_at(Span::Lag, BODY[1]),
        )
    })
}

/// Reports requests of a closed loop that were with the server nearly all of the time, of whose CPU nothing is known.
pub fn service_by_exclusion(case: &Case<'_>) -> Option<String> {
    let whole = case.responses_ns();
    let share = if whole > 0.0 { case.sum(Span::Service) / whole } else { 0.0 };
    let is_known = case.servers_at_most().is_some();
    if !case.is_closed || is_known || case.busy() >= SPARE_SHARE || share <= SPARE_SHARE {
        return None;
    }
    Some(format!(
        "The server or the path to it, by exclusion: requests were with it for {} of their time, and the busiest client thread \
         was busy {}. {}",
        percent(share),
        percent(case.busy()),
        case.servers_unread(),
    ))
}
