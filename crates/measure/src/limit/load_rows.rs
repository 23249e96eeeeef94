//! The rows of the table of limits about the load: connections times depth, and the records.

use std::collections::BTreeSet;

use super::case::Case;
use super::cause::{Cause, InFlight, LostWhy, MoreInFlight, Spare};
use super::network_rows::IDLE_SHARE;
use super::server_rows::is_steady;
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, SPARE_SHARE};
use crate::cross_checks::little_error;
use crate::evidence::ServerReading;
use crate::headroom::ResourceUse;
use crate::misses::{NeverThere, begins_without_load, keeps_records, looked_up, lost_nothing};
use crate::recorder::Span;
use pummel_logic::plan::Work;

/// Share of the keys, of records that were all stored, that may be missing without being a limit.
pub const MISSES_SHARE: f64 = 0.001;

/// Share of the slots below which the mean number in flight is reported instead of the possible one.
const FLOWN_SHARE: f64 = 0.5;

/// Reports a run that completed nothing.
pub fn nothing_completed(case: &Case<'_>) -> Option<Cause> {
    (case.all.counts.completed == 0).then_some(Cause::NothingCompleted)
}

/// Reports two accounts of the requests in flight that disagree, though they are one number by Little's law.
pub fn instrument(case: &Case<'_>) -> Option<Cause> {
    let error = little_error(case).filter(|error| error.is_beyond())?;
    Some(Cause::Instrument { apart: error.value })
}

/// Reports requests of an open loop that waited for a free slot of a server that had time.
pub fn slots(case: &Case<'_>) -> Option<Cause> {
    // A thread that waits for a CPU, or inside a command, has no time to spare, however little CPU it had.
    let is_idle = case.servers_occupied().is_some_and(|share| share < IDLE_SHARE);
    let meanwhile = match (case.as_fast_as_alone(), case.servers_at_most()) {
        (Some(alone_ns), _) => Spare::AsFastAsAlone(alone_ns),
        (None, Some(server)) if is_idle => Spare::Cpu(server),
        _ => return None,
    };
    let slots = case.slots()?;
    let is_excluded = case.is_closed || case.connections_made_the_wait() || case.queues_at_the_server();
    if is_excluded || !is_steady(case) {
        return None;
    }
    let wait = case.waits()?;
    Some(Cause::Slots {
        wait: wait.time(),
        taken: case.slots_taken(),
        slots,
        clients: case.clients(),
        meanwhile,
        may_be_occupied: case.may_be_occupied_unseen(),
    })
}

/// Reports a closed loop in which no thread of either side is near its limit.
pub fn in_flight(case: &Case<'_>) -> Option<Cause> {
    let has_cpu = case.servers_occupied().map(|share| share <= SPARE_SHARE);
    let has_time = has_cpu.unwrap_or(case.as_fast_as_alone().is_some()) && !case.queues_at_the_server();
    (case.is_closed && has_time && case.busy() <= SPARE_SHARE).then(|| Cause::InFlight(flying(case)))
}

/// Reports a closed loop in which nothing else was found.
pub fn rest_of_closed(case: &Case<'_>) -> Option<Cause> {
    case.is_closed.then(|| Cause::ClosedLoop(flying(case)))
}

/// The requests that were in flight, beside what each side was used for.
fn flying(case: &Case<'_>) -> InFlight {
    let (flown, slots) = (case.slots_taken(), case.slots());
    let server_busy = case.servers_at_most();
    let least = case.servers.iter().filter_map(ServerUse::hottest_at_least).reduce(f64::max);
    let connections = &case.measurement.connections;
    // A run that lost connections need not get more of them.
    let is_kept = connections.lost == 0 && connections.failed == 0;
    let has_time = case.servers_occupied().is_none_or(|share| share <= FULL_SHARE);
    let is_spare = case.busy() <= FULL_SHARE && !case.server_is_full() && has_time && is_kept;
    let more = (is_spare && !case.queues_at_the_server()).then(|| match case.may_be_occupied_unseen() {
        true => MoreInFlight::UnlessOccupied,
        false => MoreInFlight::Sure,
    });
    InFlight {
        flown,
        slots,
        is_below: slots.is_some_and(|slots| flown < FLOWN_SHARE * slots as f64),
        clients: case.clients(),
        response_p50_ns: case.at(Span::Response, 0.5),
        alone_ns: case.as_fast_as_alone(),
        server_busy,
        // Of the threads of a server on another machine only the sum is known.
        server_busy_is_bound: server_busy.is_some() && least < server_busy,
        client_threads: case.client_threads(),
        client_busy: case.busy(),
        more,
    }
}

/// Reports records that the server did not keep.
pub fn lost_records(case: &Case<'_>) -> Option<Cause> {
    let evictions: u64 = case.readings().filter_map(|reading| reading.counts.evictions).sum();
    let full: u64 = case.readings().filter_map(|reading| reading.counts.out_of_memory).sum();
    let (hits, missed) = looked_up(case.measurement, &case.all.counts);
    let misses = missed as f64 / (hits + missed).max(1) as f64;
    if evictions + full == 0 {
        return unasked_misses(case, misses).or_else(|| never_there(case, misses));
    }
    let software: BTreeSet<String> = case.readings().map(|reading| reading.software.clone()).collect();
    let why = LostWhy::Memory {
        evictions,
        refused_stores: full,
        full: case.readings().filter_map(memory_share).reduce(f64::max),
        software: software.into_iter().collect(),
    };
    Some(Cause::LostRecords { misses, why })
}

/// Share of its memory that a server used.
fn memory_share(reading: &ServerReading) -> Option<f64> {
    let limit = reading.memory_limit_bytes.filter(|limit| *limit > 0)?;
    Some(reading.memory_bytes? as f64 / limit as f64)
}

/// Reports keys that were not found although this run stored all records and asked for nothing that takes them away.
fn unasked_misses(case: &Case<'_>, misses: f64) -> Option<Cause> {
    let load = case.measurement.load.as_ref()?;
    let is_whole = load.stored == load.records && load.records > 0;
    (is_whole && keeps_records(case.plan) && misses > MISSES_SHARE)
        .then_some(Cause::LostRecords { misses, why: LostWhy::Removed { stored: load.records } })
}

/// Reports keys that were in no server when the run began.
fn never_there(case: &Case<'_>, misses: f64) -> Option<Cause> {
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
        let why = LostWhy::NeverThere(NeverThere::of(case.plan, holds_usual));
        Cause::LostRecords { misses, why }
    })
}

/// Reports an open loop that nothing limited.
pub fn none(case: &Case<'_>) -> Option<Cause> {
    Some(Cause::None { next: ResourceUse::next_limit(&ResourceUse::all_of(case)) })
}
