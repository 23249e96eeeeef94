//! The two answers of the report, how far its times may be believed and what set the rate or the waiting, with what was
//! seen of the servers.

use pummel_logic::measure::cross_checks::Utilisation;
use pummel_logic::measure::evidence::provenance::Provenance;
use pummel_logic::measure::evidence::{Evidence, ServerEvidence, ServerReading};
use pummel_logic::measure::headroom::ResourceUse;
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{QUANTILES, time_text};
use pummel_logic::measure::words::{counted, grouped, percent};

use super::page::Page;
use crate::report::Report;
use crate::report::numbers::number;

/// Of more servers than this only the first are shown one by one.
const SERVERS_SHOWN_MAX: usize = 16;

/// Adds what was seen of the servers and used of each resource, and the two answers.
pub(super) fn judgement(page: &mut Page, report: &Report<'_>) {
    if let Some(evidence) = &report.measurement.evidence {
        seen(page, report, evidence);
    }
    machines(page, &report.measurement.machines);
    let summary = report.summary;
    if !summary.headroom.is_empty() {
        page.field("Used", &used(&summary.headroom));
    }
    page.field("Trust", &summary.trust.says);
    page.field("Limit", &summary.verdict.says);
}

/// Adds a line for each server, and one for each figure of a machine that could not be read.
fn seen(page: &mut Page, report: &Report<'_>, evidence: &Evidence) {
    for server in evidence.servers.iter().take(SERVERS_SHOWN_MAX) {
        page.field("Server", &server_words(report, server));
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

fn server_words(report: &Report<'_>, server: &ServerEvidence) -> String {
    let mut parts = Vec::new();
    match &server.reading {
        Some(reading) => parts.extend(reading_words(report, reading)),
        None => parts.push("not read".to_owned()),
    }
    parts.extend(server.unread.clone());
    parts.extend(server.threads_unread.clone());
    format!("{}: {}", server.address, parts.join("; "))
}

/// What a server said of itself, in pieces.
fn reading_words(report: &Report<'_>, reading: &ServerReading) -> Vec<String> {
    let threads = reading.serving_threads.map(|threads| counted(u64::from(threads), "serving thread"));
    let who = format!("{} {}", reading.software, reading.version);
    let mut parts = vec![[Some(who), threads].into_iter().flatten().collect::<Vec<_>>().join(", ")];
    if reading.restarted {
        parts.push("IT STARTED ANEW during the run".to_owned());
        return parts;
    }
    if let Some(utilisation) = Utilisation::of(reading) {
        parts
            .push(format!("{} us of its CPU for each request", number(utilisation.cpu_ns_per_request / 1e3)));
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
        let p99 =
            command.p99_ns.map_or_else(String::new, |ns| format!(", p99 {} since it started", time_text(ns)));
        let (mean, calls) = (time_text(command.mean_ns), grouped(command.calls));
        let here = service_p99(report, &command.name)
            .map_or_else(String::new, |p99| format!("; p99 of service here {p99}"));
        parts.push(format!("{} took {mean} inside the server ({calls} calls{p99}{here})", command.name));
    }
    parts
}

/// The 99th percentile of the service times of the requests that a server calls by this name, where it is known: what it takes
/// beyond the server's own time is queue, socket and network.
fn service_p99(report: &Report<'_>, command: &str) -> Option<String> {
    let op = report.summary.ops.iter().find(|op| report.plan.name_of(op.verb) == command)?;
    let place = QUANTILES.iter().position(|(name, _)| *name == "p99")?;
    op.figures[Span::Service as usize].quantiles[place].known().map(time_text)
}

/// The resources with the share of each that was used.
fn used(headroom: &[ResourceUse]) -> String {
    let parts = headroom.iter().map(|used| format!("{} {}", used.resource, percent(used.share)));
    parts.collect::<Vec<_>>().join(", ")
}
