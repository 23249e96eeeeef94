//! Every figure that the limits are judged by, so that a reader can judge again.

use super::case::{Case, VISIBLE_SHARE};
use super::finding::Observation;
use super::generator_rows::{KEPT_BACK_SHARE, KeptBack, TCP_LIMITED_SHARE, WayOut};
use super::network_rows::{LOST_SHARE, OTHERS_SHARE, card_share, others_requests};
use super::server_rows::{BURST_RATIO, RUN_DELAY_SHARE, UNANSWERED_SHARE};
use super::shares::{FULL_SHARE, TAKEN_SHARE, share_of};
use crate::cross_checks::{LITTLE_ERROR_MAX, Waits, little_error, rounded_ns};
use crate::evidence::CpuCost;
use crate::figures::time_text;
use crate::recorder::Span;
use crate::words::{grouped, percent};

impl Observation {
    fn share(source: &'static str, value: f64, limit: f64, what: impl std::fmt::Display) -> Observation {
        Observation { source, value, limit: Some(limit), says: format!("{what} {}", percent(value)) }
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
        all.push(Observation::share("generator", case.busy(), FULL_SHARE, "busiest client thread"));
    }
    for loss in &case.losses {
        let place = loss.agent.as_ref().map_or_else(String::new, |agent| format!(" on {agent}"));
        let thief = match loss.lost_ns {
            0 => String::new(),
            _ => match loss.cause {
                Some((taker, taken_ns)) => {
                    format!(", {} of it taken by {}:", time_text(taken_ns), taker.words())
                }
                None => ", and who had it is not known:".to_owned(),
            },
        };
        let what = format!("time without a CPU of a client thread{place}{thief}");
        all.push(Observation::share("generator", loss.share, TAKEN_SHARE, what));
    }
    if let Some(way) = WayOut::of(case) {
        let what = format!("way out of the machine ({} at p50) of the service time", time_text(way.out_ns));
        all.push(Observation::share("generator", way.share, VISIBLE_SHARE, what));
    }
    if let Some(tcp) = case.tcp().filter(|tcp| tcp.busy_ns > 0) {
        let share = share_of(tcp.sndbuf_limited_ns, tcp.busy_ns);
        all.push(Observation::share(
            "generator",
            share,
            TCP_LIMITED_SHARE,
            "busy time with a full send buffer",
        ));
    }
    all
}

fn of_requests(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    let counts = &case.all.counts;
    if !case.is_closed && case.moments(Span::Lag).count > 0 {
        let kept = KeptBack::of(case);
        let share = kept.requests as f64 / case.moments(Span::Lag).count as f64;
        all.push(Observation::share(
            "requests",
            share,
            KEPT_BACK_SHARE,
            "requests that the generator kept back",
        ));
        all.push(Observation::share(
            "requests",
            kept.share,
            VISIBLE_SHARE,
            "lag, and wait behind it, of all responses",
        ));
    }
    if let Some(waits) = Waits::of(case).filter(|_| case.visible_wait().is_some()) {
        let text = |ns: f64| time_text(rounded_ns(ns));
        let (measured, predicted) = (text(waits.measured_ns), text(waits.predicted_ns));
        let says = format!("mean wait {measured}, {predicted} by the formula of Pollaczek and Khinchine");
        all.push(Observation { source: "requests", value: waits.ratio(), limit: Some(BURST_RATIO), says });
    }
    if let Some(error) = little_error(case) {
        let what = "disagreement of the two accounts of requests in flight (Little's law):";
        all.push(Observation::share("requests", error, LITTLE_ERROR_MAX, what));
    }
    if counts.requests() > 0 {
        let share = counts.unanswered() as f64 / counts.requests() as f64;
        all.push(Observation::share("requests", share, UNANSWERED_SHARE, "requests without an answer"));
    }
    all
}

fn of_network(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    if let Some(tcp) = case.tcp().filter(|tcp| tcp.segments_out > 0) {
        let share = |segments: u64| segments as f64 / tcp.segments_out as f64;
        let (segments, what) = match tcp.lost {
            Some(lost) => (lost, "segments that did not arrive"),
            None => (tcp.retransmits, "segments that were sent again"),
        };
        all.push(Observation::share("network", share(segments), LOST_SHARE, what));
    }
    for machine in case.remote_machines() {
        for card in machine.network.iter().flat_map(|network| &network.cards) {
            if let Some(share) = card_share(card, machine.span_ns) {
                all.push(Observation::share(
                    "network",
                    share,
                    FULL_SHARE,
                    format!("use of the card {}", card.name),
                ));
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
            all.push(Observation::share(
                "server",
                share,
                FULL_SHARE,
                match server.serving_threads {
                    Some(_) => format!("busiest serving thread of {name}"),
                    None => format!("busiest thread of {name}"),
                },
            ));
        }
        if let Some(mean) = server.mean_use() {
            all.push(Observation::share(
                "server",
                mean,
                FULL_SHARE,
                format!("mean of the serving threads of {name}"),
            ));
        }
        if let Some(share) = server.in_commands {
            all.push(Observation::share(
                "server",
                share,
                FULL_SHARE,
                format!("time inside commands of {name}"),
            ));
        }
        if !server.threads.is_empty() {
            let what = format!("time without a CPU of a serving thread of {name}");
            all.push(Observation::share("server", server.run_delay(), RUN_DELAY_SHARE, what));
        }
    }
    if let Some(tcp) = case.tcp().filter(|tcp| tcp.busy_ns > 0) {
        let share = share_of(tcp.rwnd_limited_ns, tcp.busy_ns);
        all.push(Observation::share(
            "server",
            share,
            TCP_LIMITED_SHARE,
            "busy time with a full receive window",
        ));
    }
    for reading in case.readings() {
        if let (Some(others), Some(ours)) =
            (others_requests(reading), reading.our_requests.filter(|ours| *ours > 0))
        {
            let share = others as f64 / ours as f64;
            let what = format!("{} requests of other clients besides ours", grouped(others));
            all.push(Observation::share("server", share, OTHERS_SHARE, what));
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
