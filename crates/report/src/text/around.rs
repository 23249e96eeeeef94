//! What went on around the requests: bytes, connections, handshakes, datagrams, the load.

use pummel_logic::plan::{Phase, Work};
use pummel_logic::protocol::udp;
use pummel_measure::words::{counted, grouped, was};

use super::page::Page;
use super::units::{byte_text, duration_text, micros_text};
use crate::document::{ChurnResult, ConnectionsResult, Document, LoadedResult, TimeFigures};
use crate::words::baseline::baseline_words;
use crate::words::commands::loaded;

pub(super) fn around(page: &mut Page, document: &Document) {
    let bytes = document.bytes;
    let rate = |count: u64| {
        if document.seconds > 0.0 {
            byte_text((count as f64 / document.seconds) as u64)
        } else {
            "-".to_owned()
        }
    };
    page.field(
        "Bytes",
        &format!(
            "{} sent ({}/s), {} received ({}/s)",
            byte_text(bytes.sent),
            rate(bytes.sent),
            byte_text(bytes.received),
            rate(bytes.received)
        ),
    );
    let connections = &document.connections;
    match &connections.churn {
        None => page.field("Connections", &stayed(connections)),
        // Those above are the ones that load, of which the load tells.
        Some(churn) => page.field("Connections", &comings(churn)),
    }
    if let Some(handshake) = &connections.handshake_us {
        page.field("Handshakes", &handshakes(connections, handshake));
    }
    if let Some(udp) = &document.udp {
        page.field("UDP", &datagrams(udp));
    }
    if let Some(baseline) = &document.baseline {
        page.field("Baseline", &baseline_words(baseline));
    }
    if let Some(load) = &document.load {
        loading(page, document, load);
    }
}

/// Connections of clients that stay.
fn stayed(connections: &ConnectionsResult) -> String {
    let mut text =
        format!("{} of {} open at the start", grouped(connections.open), grouped(connections.asked));
    for (count, what) in [
        (connections.failed, "failed"),
        (connections.lost, "lost"),
        (connections.reconnected, "opened again"),
    ] {
        if count > 0 {
            text += &format!(", {} {what}", grouped(count));
        }
    }
    text + &took(&connections.connect_us, "connecting took")
}

/// The median and the greatest of some times; nothing where they are not known.
fn took(times: &TimeFigures, what: &str) -> String {
    match (times.p50, times.max) {
        (Some(median), Some(longest)) => {
            format!("; {what} {} (p50) to {} (max)", micros_text(median), micros_text(longest))
        }
        _ => String::new(),
    }
}

fn loading(page: &mut Page, document: &Document, load: &LoadedResult) {
    let mut text = format!(
        "{} in {}, {}",
        loaded(&document.plan, load.stored, load.records),
        duration_text(load.seconds),
        byte_text(load.bytes)
    );
    if load.errors > 0 {
        text += &format!("; {}", counted(load.errors, "error"));
    }
    page.field("Loading", &text);
    // What servers said to a load that is recorded stands with the errors.
    let recorded = |phase: &Phase| phase.recorded && matches!(phase.work, Work::Load(_));
    let is_measured = document.plan.phases.iter().any(recorded);
    for (message, count) in load.error_messages.iter().filter(|_| !is_measured) {
        page.field("", &format!("{} x {message}", grouped(*count)));
    }
}

/// What came of clients that come and go.
fn comings(churn: &ChurnResult) -> String {
    let mut text = format!(
        "{} came, {} {} open, at most {} at one time",
        counted(churn.clients, "client"),
        counted(churn.established, "connection"),
        was(churn.established),
        grouped(churn.alive_max)
    );
    text += &took(&churn.connect_us, "connecting took");
    text += &took(&churn.life_us, "they lasted");
    for (failure, count) in churn.failures.named().into_iter().filter(|(_, count)| *count > 0) {
        text += &format!(", {} {}", grouped(count), failure.name());
    }
    if churn.failures.addresses > 0 {
        text += " (--linger 0 gives ports back at once, --source spreads them over several addresses)";
    }
    text
}

/// What became of datagrams.
fn datagrams(udp: &udp::DatagramCounts) -> String {
    let mut text = format!(
        "{} given up, {} missing then, {} out of order or for nothing",
        counted(udp.udp_timeout, "request"),
        counted(udp.packet_drop, "datagram"),
        grouped(udp.packet_disorder)
    );
    if udp.stray > 0 {
        text += &format!(" ({} of them too late or unmatched)", grouped(udp.stray));
    }
    if udp.unclear_misses > 0 {
        text += &format!(
            ", all in the whole run; misses in multi-gets: {}, of which some may be lost datagrams, which look the same",
            grouped(udp.unclear_misses)
        );
    } else {
        text += ", all in the whole run";
    }
    text
}

/// How connections were agreed on, which is a part of how long opening them took.
fn handshakes(connections: &ConnectionsResult, times: &TimeFigures) -> String {
    let resumed = connections.resumed.unwrap_or(0);
    let all = connections.handshakes.map_or("some".to_owned(), |all| grouped(all.saturating_sub(resumed)));
    format!("{all} in full, {} resumed{}", grouped(resumed), took(times, "they took"))
}
