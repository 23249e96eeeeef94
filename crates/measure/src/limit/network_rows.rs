//! The rows of the table of limits about the network, and about clients that are not of this run.

use super::case::{Case, OUTWEIGHED};
use super::cause::{CardBound, Cause, TimeAt};
use super::shares::Judged;
use crate::evidence::{CardUse, ConnectionEvidence, Evidence, ServerReading};
use crate::figures::{QUANTILES, Quantile, Unanswered, quantile as quantile_of};
use crate::recorder::Span;
use pummel_logic::time::{MILLISECOND, Nanos, seconds};

/// Share of our requests above which those of others disturb a run.
const OTHERS_SHARE: f64 = 0.01;
/// Share of our new connections above which those of others disturb a run.
pub const OTHERS_CONNECTIONS_SHARE: f64 = 0.1;
/// Share of lost segments above which they make a tail.
const LOST_SHARE: f64 = 0.001;
/// The least time after which TCP sends a segment again (RTO_MIN of Linux).
pub const RTO_MIN_NS: Nanos = 200 * MILLISECOND;
/// Share of the service that opening a connection takes from which on a response consists of the way.
pub const WAY_SHARE: f64 = 0.8;
/// Share of its CPU below which requests do not wait for a server.
pub const IDLE_SHARE: f64 = 0.6;

/// Requests of others that a server counted: all but ours; absent where one of the two is not known.
pub fn others_requests(reading: &ServerReading) -> Option<u64> {
    Some(reading.counts.requests?.saturating_sub(reading.our_requests?))
}

/// The requests of others besides ours.
pub fn besides(others: u64, ours: u64) -> Judged {
    Judged::share(others, ours, OTHERS_SHARE)
}

/// Reports clients that are not of this run and used a server.
pub fn others(case: &Case<'_>) -> Option<Cause> {
    let connections = &case.measurement.connections;
    // Only where none of ours came later are new connections those of others.
    let ours_stayed = connections.lost == 0
        && connections.failed == 0
        && connections.reconnected == 0
        && connections.churn.is_none()
        && !case.plan.changes.has_stage();
    // Of several servers it is not known which of our connections went to which.
    let is_one = case.plan.servers.len() == 1;
    let seen = case.measurement.evidence.as_ref();
    let of_several = seen.and_then(Evidence::others_of_several);
    let servers = case.plan.servers.len() as u64;
    if let Some(requests) = of_several.filter(|(others, ours)| besides(*others, *ours).is_beyond()) {
        let (connections, at_least) = (0, false);
        return Some(Cause::Others { servers, requests: Some(requests), connections, at_least });
    }
    case.readings().find_map(|reading| {
        let counts = others_requests(reading).zip(reading.our_requests);
        let opened = reading.counts.connections_opened.filter(|_| ours_stayed && is_one).unwrap_or(0);
        // Those of ours on which nothing had come by the first reading may have been counted behind it.
        let opened_by_others = opened.saturating_sub(connections.unheard);
        let asked = counts.is_some_and(|(others, ours)| besides(others, ours).is_beyond());
        let came = opened_by_others as f64 > OTHERS_CONNECTIONS_SHARE * connections.asked as f64;
        (asked || came).then_some(Cause::Others {
            servers: 1,
            requests: counts,
            connections: opened_by_others,
            at_least: connections.unheard > 0,
        })
    })
}

/// Greatest share of its speed that a card can have carried; above it the card reports a wrong speed, as virtual cards
/// do.
pub const CARRIED_MAX: f64 = 1.05;

/// Bits per second of a card as a share of its speed, in the direction that carried more; absent where it does not say
/// its speed, or carried more than that.
pub fn card_share(card: &CardUse, span_ns: Nanos) -> Option<f64> {
    let speed = card.bits_per_second.filter(|speed| *speed > 0)?;
    let bits = 8.0 * card.sent_bytes.max(card.received_bytes) as f64;
    let share = (span_ns > 0).then(|| bits / seconds(span_ns) / speed as f64)?;
    (share <= CARRIED_MAX).then_some(share)
}

/// Reports a card that carried all that it can, or more than the machine may send.
pub fn bandwidth(case: &Case<'_>) -> Option<Cause> {
    case.remote_machines().find_map(|machine| {
        machine.network.iter().flat_map(|network| &network.cards).find_map(|card| {
            let full = card_share(card, machine.span_ns).filter(|share| Judged::used(*share).is_beyond());
            let exceeded = || card.allowance_exceeded.filter(|packets| *packets > 0);
            let beyond = full.map(CardBound::Speed).or_else(|| exceeded().map(CardBound::Allowance))?;
            Some(Cause::NetworkBandwidth { card: card.name.clone(), agent: machine.agent.clone(), beyond })
        })
    })
}

/// Segments of the run's connections that were lost, or sent again, of all that were sent.
pub fn lost_share(segments: u64, tcp: &ConnectionEvidence) -> Judged {
    Judged::share(segments, tcp.segments_out, LOST_SHARE)
}

/// Reports lost packets where the tail is as long as TCP waits until it sends them again. TCP also sends again what had
/// arrived and was not acknowledged in time, as when a server stands still: that is no loss, and the peer reports it.
pub fn lost_packets(case: &Case<'_>) -> Option<Cause> {
    let tcp = case.tcp()?;
    let timeouts: u64 = case.machines().filter_map(|machine| Some(machine.network.as_ref()?.timeouts)).sum();
    // The timers are those of the whole machine: without a segment of ours that was sent again they are not ours.
    let lost = match tcp.lost {
        Some(lost) => lost_share(lost, &tcp).is_beyond() || (timeouts > 0 && lost > 0),
        None => timeouts > 0 && tcp.retransmits > 0,
    };
    let (name, quantile) = QUANTILES[4];
    let times = case.all.times.of(Span::Response);
    let unanswered = Unanswered::of(&case.all.counts, Span::Response, times, case.measurement.timeout_ns);
    let tail_ns = match quantile_of(Span::Response, times, &unanswered, quantile) {
        Quantile::Known(ns) | Quantile::Above(ns) => ns,
        Quantile::Absent => 0,
    };
    (lost && tail_ns >= RTO_MIN_NS).then(|| Cause::NetworkLoss {
        segments: tcp.lost.unwrap_or(tcp.retransmits),
        lost: tcp.lost.is_some(),
        sent: tcp.segments_out,
        tail: TimeAt::new(name, tail_ns),
    })
}

/// Reports responses that consist of the way there and back.
pub fn way(case: &Case<'_>) -> Option<Cause> {
    if case.remote_machines().next().is_none()
        || case.servers_occupied().is_none_or(|share| share >= IDLE_SHARE)
    {
        return None;
    }
    let connect_ns = case.measurement.connections.connect.quantile(0.5)?;
    let service_ns = case.all.times.of(Span::Service).quantile(0.5)?;
    // With TLS opening takes several ways; what is far more than a service is no measure of one way.
    let is_way = connect_ns as f64 > WAY_SHARE * service_ns as f64
        && (connect_ns as f64) < OUTWEIGHED * service_ns as f64
        && case.plan.tls.is_none();
    is_way.then_some(Cause::Way { connect_ns, service_ns })
}
