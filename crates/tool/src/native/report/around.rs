//! What went on around the requests: bytes, connections, handshakes, datagrams, the load.

use pummel_logic::measure::churn::Churn;
use pummel_logic::measure::summary::time_text;
use pummel_logic::measure::words::{counted, grouped};
use pummel_logic::plan::{Phase, Work};
use pummel_logic::protocol::udp;

use super::page::Page;
use super::units::byte_text;
use crate::report::Report;

pub(super) fn around(page: &mut Page, report: &Report<'_>) {
    let Report { measurement, summary, .. } = *report;
    let bytes = measurement.bytes;
    let rate = |count: u64| {
        if summary.seconds > 0.0 {
            byte_text((count as f64 / summary.seconds) as u64)
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
    let connections = &measurement.connections;
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
    if let (Some(median), Some(longest)) = (summary.connect.quantiles[0].known(), summary.connect.max.known())
    {
        text += &format!("; connecting took {} (p50) to {} (max)", time_text(median), time_text(longest));
    }
    match &connections.churn {
        None => page.field("Connections", &text),
        // Those above are the ones that load, of which the load tells.
        Some(churn) => page.field("Connections", &comings(churn)),
    }
    if report.plan.tls.is_some() {
        page.field("Handshakes", &handshakes(report));
    }
    if let Some(udp) = &measurement.udp {
        page.field("UDP", &datagrams(udp));
    }
    if let Some(load) = &measurement.load {
        let mut text = format!(
            "{} of {} stored in {}, {}",
            grouped(load.stored),
            counted(load.records, "record"),
            time_text(load.elapsed_ns),
            byte_text(load.bytes)
        );
        if load.errors > 0 {
            text += &format!("; {}", counted(load.errors, "error"));
        }
        page.field("Loading", &text);
        // What servers said to a load that is recorded stands with the errors.
        let recorded = |phase: &Phase| phase.recorded && matches!(phase.work, Work::Load(_));
        let is_measured = report.plan.phases.iter().any(recorded);
        for (message, count) in load.messages.iter().filter(|_| !is_measured) {
            page.field("", &format!("{} x {message}", grouped(*count)));
        }
    }
}

/// What came of those.
fn comings(churn: &Churn) -> String {
    let mut text = format!(
        "{} clients came, {} connections were open, at most {} at one time",
        grouped(churn.begun),
        grouped(churn.established),
        grouped(churn.alive_max)
    );
    for (times, what) in [(&churn.connect, "connecting took"), (&churn.life, "they lasted")] {
        if let (Some(median), Some(longest)) = (times.quantile(0.5), times.quantile(1.0)) {
            text += &format!("; {what} {} (p50) to {} (max)", time_text(median), time_text(longest));
        }
    }
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
        text += &format!(" ({} of them too late, or nobody's)", grouped(udp.stray));
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
fn handshakes(report: &Report<'_>) -> String {
    let Report { measurement, summary, .. } = *report;
    let count = measurement.connections.handshake.count();
    let resumed = measurement.connections.resumed;
    let mut text = format!("{} in full, {} resumed", grouped(count - resumed), grouped(resumed));
    let figures = &summary.handshake;
    if let (Some(median), Some(longest)) = (figures.quantiles[0].known(), figures.max.known()) {
        text += &format!("; they took {} (p50) to {} (max)", time_text(median), time_text(longest));
    }
    text
}
