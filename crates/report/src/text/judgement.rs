//! What was seen of the servers, and how much of each resource was used.

use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Span;
use pummel_measure::words::{counted, grouped, percent};

use super::classes::{class_words, worst_class};
use super::page::Page;
use super::units::{byte_text, duration_text, micros_text};
use crate::document::{
    CommandResult, Document, EvidenceResult, ProbeHalfResult, ReadingResult, ResourceResult, ServerResult,
    SlotResult,
};
use crate::numbers::number;
use crate::words::trust::beyond_line;

/// Of more servers than this only the first are shown one by one.
const SERVERS_SHOWN_MAX: usize = 16;

/// A hash slot that took less than this share of its server's main thread is not shown.
const SLOT_SHARE_SHOWN: f64 = 0.1;

/// Adds what was seen of the servers and used of each resource.
pub(super) fn judgement(page: &mut Page, document: &Document) {
    if let Some(evidence) = &document.evidence {
        seen(page, document, evidence);
    }
    machines(page, &document.machine);
    if let Some(verdict) = document.verdict.as_ref().filter(|verdict| !verdict.headroom.is_empty()) {
        page.field("Used", &used(&verdict.headroom));
    }
    let trust = document.trust.as_ref().filter(|_| document.outcome != RunOutcome::Failed);
    if let Some(beyond) = trust.and_then(beyond_line) {
        page.field("Trust", &beyond);
    }
}

/// Adds a line for each server, and one for each figure of a machine that could not be read.
fn seen(page: &mut Page, document: &Document, evidence: &EvidenceResult) {
    for server in evidence.servers.iter().take(SERVERS_SHOWN_MAX) {
        page.field("Server", &server_words(document, server));
    }
    let more = evidence.servers.len().saturating_sub(SERVERS_SHOWN_MAX);
    if more > 0 {
        page.field("", &format!("and {more} more"));
    }
    if let Some(probe) = &evidence.probe {
        page.field("Probe", &format!("{}; {}", half_words(&probe.one), half_words(&probe.ten)));
    }
    for machine in &evidence.machines {
        let place = machine.agent.as_ref().map_or_else(String::new, |agent| format!("{agent}: "));
        for why in &machine.unread {
            page.field("Not read", &format!("{place}{why}"));
        }
    }
}

/// One half of a probe as words.
fn half_words(half: &ProbeHalfResult) -> String {
    let at_a_time = match half.in_flight {
        1 => "one request at a time".to_owned(),
        many => format!("{many} at a time"),
    };
    match half.service_p50_us {
        Some(p50_us) => format!("{at_a_time} {} (p50, {}/s)", micros_text(p50_us), number(half.rate)),
        None => format!("{at_a_time}: none was answered in the time of the probe"),
    }
}

/// Adds a line for each machine that sent requests.
fn machines(page: &mut Page, machines: &[Provenance]) {
    for machine in machines.iter().take(SERVERS_SHOWN_MAX) {
        let place = machine.agent.as_ref().map_or_else(String::new, |agent| format!("{agent}: "));
        page.field("Machine", &format!("{place}{}", machine.words()));
    }
    let more = machines.len().saturating_sub(SERVERS_SHOWN_MAX);
    if more > 0 {
        page.field("", &format!("and {more} more"));
    }
}

fn server_words(document: &Document, server: &ServerResult) -> String {
    let mut parts = Vec::new();
    match &server.reading {
        Some(reading) => parts.extend(reading_words(document, reading)),
        None => parts.push("not read".to_owned()),
    }
    parts.extend(memory_words(server));
    parts.extend(server.unread.clone());
    parts.extend(server.threads_unread.clone());
    format!("{}: {}", server.address, parts.join("; "))
}

/// A server's memory by what takes it: its records by its own account, and the resident memory of its process by the kernel, or else
/// by its own account; `None` where neither is known.
fn memory_words(server: &ServerResult) -> Option<String> {
    let reading = server.reading.as_ref()?;
    let used = reading.memory_bytes.map(|bytes| used_memory_words(bytes, &reading.software));
    let resident = server.resident_bytes.or(reading.resident_bytes);
    let resident = resident.map(|bytes| format!("{} resident in its process", byte_text(bytes)));
    let parts: Vec<String> = [used, resident].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("memory: {}", parts.join(", ")))
}

/// Memory that is in use by a server's own account, as what it is: the items of memcached, all that Redis allocated.
pub(super) fn used_memory_words(bytes: u64, software: &str) -> String {
    let what = if software == "memcached" { "of items" } else { "allocated" };
    format!("{} {what}", byte_text(bytes))
}

/// What a server said of itself, in pieces.
fn reading_words(document: &Document, reading: &ReadingResult) -> Vec<String> {
    let threads = reading.serving_threads.map(|threads| counted(u64::from(threads), "serving thread"));
    let who = format!("{} {}", reading.software, reading.version);
    let mut parts = vec![[Some(who), threads].into_iter().flatten().collect::<Vec<_>>().join(", ")];
    if reading.restarted {
        let up = reading.uptime_s.map(|up_s| format!(" (at the end it had been up for {up_s} s)"));
        parts.push(format!("IT STARTED ANEW during the run{}", up.unwrap_or_default()));
        return parts;
    }
    if reading.counters_reset {
        parts.push("its counters were set to 0 during the run".to_owned());
        return parts;
    }
    parts.extend(cpu_words(reading));
    let counts = &reading.counts;
    for (count, what, rest) in [
        (counts.evictions, "eviction", ""),
        (counts.out_of_memory, "store", " without memory"),
        (counts.connections_refused, "refused connection", ""),
    ] {
        parts.extend(count.filter(|count| *count > 0).map(|count| counted(count, what) + rest));
    }
    parts.extend(worst_class(&reading.classes).map(|class| class_words(&class)));
    parts.extend(reading.disturbances.iter().cloned());
    parts.extend(reading.saves.iter().map(|save| save.says.clone()));
    parts.extend(reading.commands.iter().map(|command| command_words(document, command)));
    for error in &reading.errors {
        parts.push(format!("{} answered {}", error.name, times(error.count)));
    }
    if let Some(slowest) =
        reading.slow_commands.iter().max_by(|one, other| one.took_us.total_cmp(&other.took_us))
    {
        // Only the newest entries of its log are read, and there may be longer ones behind them.
        let newest = grouped(reading.slow_commands.len() as u64);
        let took = micros_text(slowest.took_us);
        parts.push(format!(
            "of the newest {newest} in its log of slow commands the longest is {} with {took}",
            slowest.name
        ));
    }
    for event in &reading.latency_events {
        parts.push(format!("its latency monitor noted {} of {}", event.name, micros_text(event.latest_us)));
    }
    parts.extend(reading.slots.first().and_then(|slot| slot_words(slot, reading.main_thread_cpu_s)));
    parts
}

/// The server's CPU time for each request, and for each key where requests have several; the whole of it where the number of
/// requests is not known.
fn cpu_words(reading: &ReadingResult) -> Option<String> {
    let key = reading.cpu_us_per_key.map(|us| format!(", {} us for each key", number(us)));
    match (reading.cpu_us_per_request, reading.cpu_s) {
        (Some(us), _) => {
            Some(format!("{} us of its CPU for each request{}", number(us), key.unwrap_or_default()))
        }
        (None, cpu_s) => cpu_s.map(|cpu_s| format!("{} of its CPU", duration_text(cpu_s))),
    }
}

/// The hash slot that took the most CPU time, where it took a visible share of it: a slot has one home, so that more nodes do
/// not help it.
fn slot_words(slot: &SlotResult, main_thread_cpu_s: Option<f64>) -> Option<String> {
    let (slot_us, all_us) = (slot.cpu_at_least_us?, main_thread_cpu_s? * 1e6);
    let share = if all_us > 0.0 { slot_us / all_us } else { 0.0 };
    (share >= SLOT_SHARE_SHOWN).then(|| {
        let (keys, share) = (counted(slot.keys, "key"), percent(share.min(1.0)));
        format!("hash slot {} ({keys}) took {share} of its main thread's CPU time or more", slot.slot)
    })
}

/// The time of a command inside the server, and its service time here.
fn command_words(document: &Document, command: &CommandResult) -> String {
    let (mean, calls) = (micros_text(command.mean_us), counted(command.calls, "call"));
    let name = &command.name;
    match (service_p99(document, name), command.p99_at_most_us) {
        (Some(here), Some(inside)) => format!(
            "{name} p99 {here} here, at most {} in the server's command (mean {mean}, {calls}); the rest is queue, \
             socket and network",
            micros_text(inside)
        ),
        (here, _) => {
            let p99 = command
                .p99_us
                .map_or_else(String::new, |us| format!(", p99 {} since it started", micros_text(us)));
            let here = here.map_or_else(String::new, |p99| format!("; p99 of service here {p99}"));
            format!("{name} took {mean} inside the server ({calls}{p99}{here})")
        }
    }
}

/// A count as a number of times.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", grouped(count)) }
}

/// The 99th percentile of the service times of the requests that a server calls by this name, where it is known: what it takes
/// beyond the server's own time is queue, socket and network.
fn service_p99(document: &Document, command: &str) -> Option<String> {
    document.ops.get(command)?.times.of_span(Span::Service).at("p99").known().map(micros_text)
}

/// The resources with the share of each that was used.
fn used(headroom: &[ResourceResult]) -> String {
    let parts =
        headroom.iter().map(|used| format!("{} {}", used.resource, percent(used.used_percent / 100.0)));
    parts.collect::<Vec<_>>().join(", ")
}
