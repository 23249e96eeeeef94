//! The rows of the table of limits about the load: connections times depth, and the records.

use std::collections::BTreeSet;

use super::case::Case;
use super::network_rows::IDLE_SHARE;
use super::server_rows::is_steady;
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, SPARE_SHARE};
use crate::cross_checks::little_error;
use crate::evidence::ServerReading;
use crate::figures::time_text;
use crate::headroom::ResourceUse;
use crate::misses::{begins_without_load, lost_nothing, words_of_never_there};
use crate::recorder::Span;
use crate::words::{counted, grouped, percent, rate_text};
use pummel_logic::plan::{Event, EventKind, HotKey, Mix, Phase, Plan, Work};
use pummel_logic::protocol::Verb;

/// Share of the keys, of records that were all stored, that may be missing without being a limit.
pub const MISSES_SHARE: f64 = 0.001;

/// Share of the slots below which the mean number in flight is reported instead of the possible one.
const FLOWN_SHARE: f64 = 0.5;

/// Reports a run that completed nothing.
pub fn nothing_completed(case: &Case<'_>) -> Option<String> {
    let says = "Nothing was completed, so there is nothing to judge by.";
    (case.all.counts.completed == 0).then(|| says.to_owned())
}

/// Reports two accounts of the requests in flight that disagree, though they are one number by Little's law.
pub fn instrument(case: &Case<'_>) -> Option<String> {
    let error = little_error(case).filter(|error| error.is_beyond())?.value;
    Some(format!(
        "The instrument disagrees with itself: the requests in flight, by counting them and by adding up their times, are {} \
         apart (Little's law), so no limit is named.",
        percent(error)
    ))
}

/// Reports requests of an open loop that waited for a free slot of a server that had time.
pub fn slots(case: &Case<'_>) -> Option<String> {
    // A thread that waits for a CPU, or inside a command, has no time to spare, however little CPU it had.
    let is_idle = case.servers_occupied().is_some_and(|share| share < IDLE_SHARE);
    let meanwhile = match (case.as_fast_as_alone(), case.servers_at_most()) {
        (Some(alone_ns), _) => format!("one request at a time took {}", time_text(alone_ns)),
        (None, Some(server)) if is_idle => format!("the server's CPU was used for {}", percent(server)),
        _ => return None,
    };
    let slots = case.slots()?;
    let is_excluded = case.is_closed || case.connections_made_the_wait() || case.queues_at_the_server();
    if is_excluded || !is_steady(case) {
        return None;
    }
    let wait = case.waits()?;
    Some(format!(
        "The number of requests in flight: they waited {} ({}) for a free slot; {:.1} of {} were taken ({}), while \
         {meanwhile}. Try more connections or depth{}.",
        time_text(wait.value_ns),
        wait.name,
        case.slots_taken(),
        grouped(slots),
        case.slots_words(),
        reservation(case),
    ))
}

/// The condition of the advice to have more requests in flight.
fn reservation(case: &Case<'_>) -> &'static str {
    match case.may_be_occupied_unseen() {
        true => ", unless something other than its CPU occupies the server",
        false => "",
    }
}

/// Reports a closed loop in which no thread of either side is near its limit.
pub fn in_flight(case: &Case<'_>) -> Option<String> {
    let has_cpu = case.servers_occupied().map(|share| share <= SPARE_SHARE);
    let has_time = has_cpu.unwrap_or(case.as_fast_as_alone().is_some()) && !case.queues_at_the_server();
    (case.is_closed && has_time && case.busy() <= SPARE_SHARE).then(|| in_flight_words(case))
}

/// Reports a closed loop in which nothing else was found.
pub fn rest_of_closed(case: &Case<'_>) -> Option<String> {
    case.is_closed.then(|| in_flight_words(case))
}

/// The requests that were in flight as words: all possible ones, or their mean where that is clearly below.
fn flying(case: &Case<'_>) -> String {
    let taken = case.slots_taken();
    match case.slots() {
        Some(slots) if taken < FLOWN_SHARE * slots as f64 => {
            format!("{taken:.1} requests on average, of {} that may be", grouped(slots))
        }
        Some(slots) => counted(slots, "request"),
        None => "as many requests as came".to_owned(),
    }
}

fn in_flight_words(case: &Case<'_>) -> String {
    let slots = flying(case);
    let server = case.servers_at_most().map_or_else(String::new, |most| {
        let least = case.servers.iter().filter_map(ServerUse::hottest_at_least).reduce(f64::max);
        // Of the threads of a server on another machine only the sum is known.
        let bound = if least < Some(most) { "at most " } else { "" };
        format!("the server's busiest thread used {bound}{} of a CPU, ", percent(most))
    });
    let connections = &case.measurement.connections;
    // A run that lost connections need not get more of them.
    let is_kept = connections.lost == 0 && connections.failed == 0;
    let has_time = case.servers_occupied().is_none_or(|share| share <= FULL_SHARE);
    let alone = case
        .as_fast_as_alone()
        .map_or_else(String::new, |alone_ns| format!("one request at a time took {}, ", time_text(alone_ns)));
    let is_spare = case.busy() <= FULL_SHARE && !case.server_is_full() && has_time && is_kept;
    let advice = match is_spare && !case.queues_at_the_server() {
        true => format!(" Try more connections or depth for more load{}.", reservation(case)),
        false => String::new(),
    };
    format!(
        "What is in flight: {slots} ({}), each answered in {} (p50); {alone}{server}the busiest client thread was busy {}.{advice}",
        case.slots_words(),
        time_text(case.at(Span::Response, 0.5)),
        percent(case.busy()),
    )
}

/// Reports records that the server did not keep.
pub fn lost_records(case: &Case<'_>) -> Option<String> {
    let evictions: u64 = case.readings().filter_map(|reading| reading.counts.evictions).sum();
    let full: u64 = case.readings().filter_map(|reading| reading.counts.out_of_memory).sum();
    let counts = &case.all.counts;
    let misses = counts.misses as f64 / (counts.hits + counts.misses).max(1) as f64;
    if evictions + full == 0 {
        return unasked_misses(case, misses).or_else(|| never_there(case, misses));
    }
    let mut says =
        format!("The records: the server does not hold them all ({}", counted(evictions, "eviction"));
    if full > 0 {
        says += &format!(", {} without memory", counted(full, "store"));
    }
    if misses > MISSES_SHARE {
        says += &format!("; {} of the keys were not found", percent(misses));
    }
    Some(format!("{says}). More memory ({}) or fewer records would help.", memory_options(case)))
}

/// The options that give the servers of a run more memory.
fn memory_options(case: &Case<'_>) -> String {
    let option = |reading: &ServerReading| match reading.software.as_str() {
        "memcached" => "memcached -m".to_owned(),
        software => format!("maxmemory of {software}"),
    };
    let options: BTreeSet<String> = case.readings().map(option).collect();
    options.into_iter().collect::<Vec<_>>().join(", ")
}

/// Reports keys that were not found although this run stored all records and asked for nothing that takes them away.
fn unasked_misses(case: &Case<'_>, misses: f64) -> Option<String> {
    let load = case.measurement.load.as_ref()?;
    let is_whole = load.stored == load.records && load.records > 0;
    (is_whole && keeps_records(case.plan) && misses > MISSES_SHARE).then(|| {
        format!(
            "The records: {} of the keys were not found, though all {} records were stored before, and no request of this run \
             removes one.",
            percent(misses),
            grouped(load.records),
        )
    })
}

/// Reports keys that were in no server when the run began.
fn never_there(case: &Case<'_>, misses: f64) -> Option<String> {
    let evidence = case.measurement.evidence.as_ref()?;
    let is_kept = !evidence.servers.is_empty()
        && evidence.servers.iter().all(|server| {
            let reading = server.reading.as_ref().filter(|reading| reading.is_whole());
            reading.is_some_and(|reading| {
                lost_nothing(&reading.counts, reading.our_requests, &reading.disturbances)
            })
        });
    // A run that fills what it misses begins with misses.
    let asks_for_misses = case.plan.phases.iter().any(|phase| match &phase.work {
        Work::Mix(mix) => mix.reads_unstored() || mix.churn.is_some() || mix.read_through_ns.is_some(),
        _ => false,
    });
    let is_it = is_kept && misses > MISSES_SHARE && !asks_for_misses && begins_without_load(case.plan);
    is_it.then(|| {
        let holds_usual = case.readings().any(|reading| reading.usual_record == Some(true));
        let words = words_of_never_there(case.plan, holds_usual);
        format!("The records: {} of the keys were {words}.", percent(misses))
    })
}

/// Whether a plan stores all plain records and then only reads them, and stores them again.
fn keeps_records(plan: &Plan) -> bool {
    let keeps = |phase: &Phase| match &phase.work {
        Work::Load(load) => !load.no_plain,
        Work::Mix(mix) => {
            only_rewrites(mix) && plan.changes.parts.iter().all(|part| only_rewrites(&part.mix(mix)))
        }
        Work::Pause(_) => true,
        Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_) => false,
    };
    let is_kept = plan.data.expiry_s.support() == (0.0, 0.0)
        && plan.sequence().is_none()
        && !plan.changes.events.iter().any(makes_misses)
        && plan.phases.iter().all(keeps);
    is_kept && matches!(plan.phases.first().map(|phase| &phase.work), Some(Work::Load(_)))
}

/// Whether a mix asks only for the records of the load, and only reads and stores them.
fn only_rewrites(mix: &Mix) -> bool {
    let verbs = [Verb::Get, Verb::Gets, Verb::Set, Verb::Replace, Verb::Version];
    // A record that gets another key is asked for under a key that was never stored.
    mix.churn.is_none()
        && mix.meta.is_nothing()
        && !mix.reads_unstored()
        && mix.ops.iter().all(|(verb, _)| verbs.contains(verb))
}

/// Whether an event takes records away, or makes a key popular under which nothing is stored.
fn makes_misses(event: &Event) -> bool {
    match &event.what {
        EventKind::Hot(crowd) => crowd.key == HotKey::New,
        EventKind::Delete(_) | EventKind::Expire(_) => true,
    }
}

/// Reports an open loop that nothing limited.
pub fn none(case: &Case<'_>) -> Option<String> {
    let uses = ResourceUse::all_of(case);
    let next = ResourceUse::next_of(&uses).map_or_else(String::new, |(next, full_at)| {
        format!(
            " Next to give way: {}, used for {}, at about {}.",
            next.resource,
            percent(next.share),
            rate_text(full_at)
        )
    });
    let rate = rate_text(case.rate());
    Some(format!("Nobody: requests were answered as they came ({rate}).{next}"))
}
