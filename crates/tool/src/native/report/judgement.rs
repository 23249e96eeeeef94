//! The two answers of the report, how far its times may be believed and what set the rate or the waiting, with what was
//! seen of the servers.

use pummel_logic::measure::evidence::provenance::Provenance;
use pummel_logic::measure::words::{counted, grouped, percent};

use super::page::Page;
use super::units::micros_text;
use crate::report::document::{Document, EvidenceResult, ReadingResult, ResourceResult, ServerResult};
use crate::report::numbers::number;

/// Of more servers than this only the first are shown one by one.
const SERVERS_SHOWN_MAX: usize = 16;

/// Adds what was seen of the servers and used of each resource, and the two answers.
pub(super) fn judgement(page: &mut Page, document: &Document) {
    if let Some(evidence) = &document.evidence {
        seen(page, evidence);
    }
    machines(page, &document.machine);
    if let Some(verdict) = document.verdict.as_ref().filter(|verdict| !verdict.headroom.is_empty()) {
        page.field("Used", &used(&verdict.headroom));
    }
    if let Some(trust) = &document.trust {
        page.field("Trust", &trust.says);
    }
    if let Some(verdict) = &document.verdict {
        page.field("Limit", &verdict.says);
    }
}

/// Adds a line for each server, and one for each figure of a machine that could not be read.
fn seen(page: &mut Page, evidence: &EvidenceResult) {
    for server in evidence.servers.iter().take(SERVERS_SHOWN_MAX) {
        page.field("Server", &server_words(server));
    }
    let more = evidence.servers.len().saturating_sub(SERVERS_SHOWN_MAX);
    if more > 0 {
        page.field("", &format!("and {more} more"));
    }
    for machine in &evidence.machines {
        let place = machine.agent.as_ref().map_or_else(String::new, |agent| format!("{agent}: "));
        for why in &machine.unread {
            page.field("Not read", &format!("{place}{why}"));
        }
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

fn server_words(server: &ServerResult) -> String {
    let mut parts = Vec::new();
    match &server.reading {
        Some(reading) => parts.extend(reading_words(reading)),
        None => parts.push("not read".to_owned()),
    }
    parts.extend(server.unread.clone());
    parts.extend(server.threads_unread.clone());
    format!("{}: {}", server.address, parts.join("; "))
}

/// What a server said of itself, in pieces.
fn reading_words(reading: &ReadingResult) -> Vec<String> {
    let threads = reading.serving_threads.map(|threads| counted(u64::from(threads), "serving thread"));
    let who = format!("{} {}", reading.software, reading.version);
    let mut parts = vec![[Some(who), threads].into_iter().flatten().collect::<Vec<_>>().join(", ")];
    if reading.restarted {
        parts.push("IT STARTED ANEW during the run".to_owned());
        return parts;
    }
    if let Some(cpu_us) = reading.cpu_us_per_request {
        parts.push(format!("{} us of its CPU for each request", number(cpu_us)));
    }
    let counts = &reading.counts;
    for (count, what) in [
        (counts.evictions, "eviction"),
        (counts.out_of_memory, "store without memory"),
        (counts.connections_refused, "refused connection"),
    ] {
        parts.extend(count.filter(|count| *count > 0).map(|count| counted(count, what)));
    }
    parts.extend(reading.disturbances.iter().cloned());
    for command in &reading.commands {
        let p99 = command
            .p99_us
            .map_or_else(String::new, |us| format!(", p99 {} since it started", micros_text(us)));
        let (mean, calls) = (micros_text(command.mean_us), grouped(command.calls));
        parts.push(format!("{} took {mean} inside the server ({calls} calls{p99})", command.name));
    }
    parts
}

/// The resources with the share of each that was used.
fn used(headroom: &[ResourceResult]) -> String {
    let parts =
        headroom.iter().map(|used| format!("{} {}", used.resource, percent(used.used_percent / 100.0)));
    parts.collect::<Vec<_>>().join(", ")
}
