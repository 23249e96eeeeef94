//! Every figure that the limits are judged by, so that a reader can judge again.

use super::case::Case;
use super::generator_rows::{KeptBack, WayOut, place_of, send_buffer_full};
use super::network_rows::{besides, card_share, lost_share, others_requests};
use super::server_rows::{burst, receive_window_full, unanswered_share};
use super::shares::Judged;
use crate::cross_checks::{Waits, little_error, rounded_ns};
use crate::evidence::CpuCost;
use crate::figures::time_text;
use crate::recorder::Span;
use crate::words::{grouped, percent};

/// A figure that the limits are judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Source of the figure: `generator`, `server`, `network` or `requests`.
    pub source: &'static str,
    /// The figure; a share of 1 unless `says` gives it another unit.
    pub value: f64,
    /// The figure from which on it is evidence; absent where there is no such bound.
    pub limit: Option<f64>,
    /// Sentence about the figure, with its value.
    pub says: String,
}

impl Observation {
    fn share(source: &'static str, share: Judged, what: impl std::fmt::Display) -> Observation {
        let Judged { value, bound } = share;
        Observation { source, value, limit: Some(bound), says: format!("{what} {}", percent(value)) }
    }

    /// The figures of a run, in the order of the way of a request.
    pub fn all_of(case: &Case<'_>) -> Vec<Observation> {
        let mut all = of_generator(case);
        all.extend(of_requests(case));
        all.extend(of_network(case));
        all.extend(of_servers(case));
        all
    }
}

fn of_generator(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    if !case.measurement.generator.workers.is_empty() {
        all.push(Observation::share("generator", Judged::used(case.busy()), "busiest client thread"));
    }
    for loss in &case.losses {
        let place = place_of(loss);
        let taker = match loss.lost_ns {
            0 => String::new(),
            _ => match loss.cause {
                Some((taker, taken_ns)) => {
                    format!(", {} of it taken by {}:", time_text(taken_ns), taker.words())
                }
                None => ", and who had it is not known:".to_owned(),
            },
        };
        let what = format!("time without a CPU of a client thread{place}{taker}");
        all.push(Observation::share("generator", loss.taken(), what));
    }
    if let Some(way) = WayOut::of(case) {
        let what = format!("way out of the machine ({} at p50) of the service time", time_text(way.out_ns));
        all.push(Observation::share("generator", way.share, what));
    }
    let full = send_buffer_full(case);
    all.extend(full.map(|share| Observation::share("generator", share, "busy time with a full send buffer")));
    all
}

fn of_requests(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    if !case.is_closed && case.moments(Span::Lag).count > 0 {
        let kept = KeptBack::of(case);
        let what = "requests that the generator kept back";
        all.push(Observation::share("requests", kept.of_sent(case), what));
        let what = "lag, and wait behind it, of all responses";
        all.push(Observation::share("requests", kept.of_responses(), what));
    }
    if let Some(waits) = Waits::of(case).filter(|_| case.visible_wait().is_some()) {
        let text = |ns: f64| time_text(rounded_ns(ns));
        let (measured, predicted) = (text(waits.measured_ns), text(waits.predicted_ns));
        let says = format!("mean wait {measured}, {predicted} by the formula of Pollaczek and Khinchine");
        let Judged { value, bound } = burst(&waits);
        all.push(Observation { source: "requests", value, limit: Some(bound), says });
    }
    if let Some(error) = little_error(case) {
        let what = "disagreement of the two accounts of requests in flight (Little's law):";
        all.push(Observation::share("requests", error, what));
    }
    let unanswered = unanswered_share(case);
    all.extend(unanswered.map(|share| Observation::share("requests", share, "requests without an answer")));
    all
}

fn of_network(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    if let Some(tcp) = case.tcp().filter(|tcp| tcp.segments_out > 0) {
        let (segments, what) = match tcp.lost {
            Some(lost) => (lost, "segments that did not arrive"),
            None => (tcp.retransmits, "segments that were sent again"),
        };
        all.push(Observation::share("network", lost_share(segments, &tcp), what));
    }
    for machine in case.remote_machines() {
        for card in machine.network.iter().flat_map(|network| &network.cards) {
            if let Some(share) = card_share(card, machine.span_ns) {
                let what = format!("use of the card {}", card.name);
                all.push(Observation::share("network", Judged::used(share), what));
            }
        }
    }
    all
}

fn of_servers(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    for server in &case.servers {
        let name = &server.address;
        if let Some(share) = server.hottest_at_least() {
            let serving = if server.serving_threads.is_some() { "serving " } else { "" };
            let what = format!("busiest {serving}thread of {name}");
            all.push(Observation::share("server", Judged::used(share), what));
        }
        if let Some(mean) = server.mean_use() {
            let what = format!("mean of the serving threads of {name}");
            all.push(Observation::share("server", Judged::used(mean), what));
        }
        if let Some(share) = server.in_commands {
            let what = format!("time inside commands of {name}");
            all.push(Observation::share("server", Judged::used(share), what));
        }
        if !server.threads.is_empty() {
            let what = format!("time without a CPU of a serving thread of {name}");
            all.push(Observation::share("server", server.delayed(), what));
        }
    }
    let full = receive_window_full(case);
    all.extend(full.map(|share| Observation::share("server", share, "busy time with a full receive window")));
    for reading in case.readings() {
        if let (Some(others), Some(ours)) =
            (others_requests(reading), reading.our_requests.filter(|ours| *ours > 0))
        {
            let what = format!("{} requests of other clients besides ours", grouped(others));
            all.push(Observation::share("server", besides(others, ours), what));
        }
        if let Some(cost) = CpuCost::at(reading, case.ours()) {
            let value = cost.per_request_ns / 1e3;
            let key = cost.per_key_ns.map(|ns| format!(", {:.2} us for each key", ns / 1e3));
            let key = key.unwrap_or_default();
            let says = format!("CPU of the server for each request {value:.2} us{key}");
            all.push(Observation { source: "server", value, limit: None, says });
        }
        if let Some(evictions) = reading.counts.evictions {
            let says = format!("{} evictions", grouped(evictions));
            all.push(Observation { source: "server", value: evictions as f64, limit: Some(0.0), says });
        }
    }
    all
}
