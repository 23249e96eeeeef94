//! Every figure that the limits are judged by, so that a reader can judge again.

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::cause::TakenCpu;
use super::generator_rows::{KeptBack, WayOut, send_buffer_full};
use super::network_rows::{besides, card_share, lost_share, others_requests};
use super::server_rows::{burst, receive_window_full, unanswered_share};
use super::shares::Judged;
use crate::cross_checks::{Waits, little_error, rounded_ns};
use crate::evidence::CpuCost;
use crate::recorder::Span;
use pummel_logic::time::Nanos;

/// A figure that the limits are judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Source of the figure: `generator`, `server`, `network` or `requests`.
    pub source: &'static str,
    /// The figure; a share of 1 unless its subject gives it another unit.
    pub value: f64,
    /// The figure from which on it is evidence; absent where there is no such bound.
    pub limit: Option<f64>,
    /// Subject of the figure.
    pub subject: Subject,
}

/// Subject of a figure that the limits are judged by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// Busy time of the busiest client thread.
    ClientThread,
    /// Time of a client thread without a CPU.
    ClientWithoutCpu {
        /// Agent of the thread; absent in this process.
        agent: Option<String>,
        /// Time without a CPU.
        lost_ns: Nanos,
        /// Taker of the CPU; absent where it is not known.
        taken: Option<TakenCpu>,
    },
    /// Way out of the machine, of the service time.
    WayOut {
        /// Length of the way at the median.
        out_ns: Nanos,
    },
    /// Busy time with a full send buffer.
    SendBufferFull,
    /// Requests that the generator kept back.
    KeptBack,
    /// Lag, and wait behind it, of all responses.
    LagAndWait,
    /// Mean wait, as a multiple of the wait that the formula of Pollaczek and Khinchine predicts.
    Waits {
        /// Measured mean wait.
        measured_ns: Nanos,
        /// Predicted mean wait.
        predicted_ns: Nanos,
    },
    /// Disagreement of the two accounts of requests in flight (Little's law).
    Accounts,
    /// Requests without an answer.
    Unanswered,
    /// Segments that did not arrive.
    SegmentsLost,
    /// Segments that were sent again.
    SegmentsRepeated,
    /// Use of a network card.
    Card {
        /// Name of the card.
        card: String,
    },
    /// Busy time of the busiest thread of a server.
    ServerThread {
        /// Address of the server.
        server: String,
        /// Whether the threads that serve are known.
        is_serving: bool,
    },
    /// Mean busy time of the serving threads of a server.
    ServerThreads {
        /// Address of the server.
        server: String,
    },
    /// Time inside commands of a server.
    InCommands {
        /// Address of the server.
        server: String,
    },
    /// Time of a serving thread without a CPU.
    ServerWithoutCpu {
        /// Address of the server.
        server: String,
    },
    /// Busy time with a full receive window.
    ReceiveWindowFull,
    /// Requests of other clients, as a share of those of the run.
    OtherClients {
        /// Requests of other clients.
        requests: u64,
    },
    /// CPU time of the server for each request, in microseconds.
    ServerCpuPerRequest {
        /// CPU time of the server for each key, in microseconds; absent where requests have one key.
        per_key_us: Option<f64>,
    },
    /// Number of evictions.
    Evictions,
}

impl Observation {
    fn share(source: &'static str, share: Judged, subject: Subject) -> Observation {
        let Judged { value, bound } = share;
        Observation { source, value, limit: Some(bound), subject }
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
    let mut add = |share, subject| all.push(Observation::share("generator", share, subject));
    if !case.measurement.generator.workers.is_empty() {
        add(Judged::used(case.busy()), Subject::ClientThread);
    }
    for loss in &case.losses {
        let taken = loss.cause.map(|(by, time_ns)| TakenCpu { by, time_ns });
        let (agent, lost_ns) = (loss.agent.clone(), loss.lost_ns);
        add(loss.taken(), Subject::ClientWithoutCpu { agent, lost_ns, taken });
    }
    if let Some(way) = WayOut::of(case) {
        add(way.share, Subject::WayOut { out_ns: way.out_ns });
    }
    if let Some(share) = send_buffer_full(case) {
        add(share, Subject::SendBufferFull);
    }
    all
}

fn of_requests(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    let mut add = |share, subject| all.push(Observation::share("requests", share, subject));
    if !case.is_closed && case.moments(Span::Lag).count > 0 {
        let kept = KeptBack::of(case);
        add(kept.of_sent(case), Subject::KeptBack);
        add(kept.of_responses(), Subject::LagAndWait);
    }
    if let Some(waits) = Waits::of(case).filter(|_| case.visible_wait().is_some()) {
        let [measured_ns, predicted_ns] = [waits.measured_ns, waits.predicted_ns].map(rounded_ns);
        add(burst(&waits), Subject::Waits { measured_ns, predicted_ns });
    }
    if let Some(error) = little_error(case) {
        add(error, Subject::Accounts);
    }
    if let Some(share) = unanswered_share(case) {
        add(share, Subject::Unanswered);
    }
    all
}

fn of_network(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    if let Some(tcp) = case.tcp().filter(|tcp| tcp.segments_out > 0) {
        let (segments, subject) = match tcp.lost {
            Some(lost) => (lost, Subject::SegmentsLost),
            None => (tcp.retransmits, Subject::SegmentsRepeated),
        };
        all.push(Observation::share("network", lost_share(segments, &tcp), subject));
    }
    for machine in case.remote_machines() {
        for card in machine.network.iter().flat_map(|network| &network.cards) {
            if let Some(share) = card_share(card, machine.span_ns) {
                let subject = Subject::Card { card: card.name.clone() };
                all.push(Observation::share("network", Judged::used(share), subject));
            }
        }
    }
    all
}

fn of_servers(case: &Case<'_>) -> Vec<Observation> {
    let mut all = Vec::new();
    let mut add = |share, subject| all.push(Observation::share("server", share, subject));
    for used in &case.servers {
        let server = || used.address.clone();
        if let Some(share) = used.hottest_at_least() {
            let is_serving = used.serving_threads.is_some();
            add(Judged::used(share), Subject::ServerThread { server: server(), is_serving });
        }
        if let Some(mean) = used.mean_use() {
            add(Judged::used(mean), Subject::ServerThreads { server: server() });
        }
        if let Some(share) = used.in_commands {
            add(Judged::used(share), Subject::InCommands { server: server() });
        }
        if !used.threads.is_empty() {
            add(used.delayed(), Subject::ServerWithoutCpu { server: server() });
        }
    }
    if let Some(share) = receive_window_full(case) {
        add(share, Subject::ReceiveWindowFull);
    }
    for reading in case.readings() {
        if let (Some(others), Some(ours)) =
            (others_requests(reading), reading.our_requests.filter(|ours| *ours > 0))
        {
            let subject = Subject::OtherClients { requests: others };
            all.push(Observation::share("server", besides(others, ours), subject));
        }
        if let Some(cost) = CpuCost::at(reading, case.ours()) {
            let subject = Subject::ServerCpuPerRequest { per_key_us: cost.per_key_ns.map(|ns| ns / 1e3) };
            let value = cost.per_request_ns / 1e3;
            all.push(Observation { source: "server", value, limit: None, subject });
        }
        if let Some(evictions) = reading.counts.evictions {
            let (value, subject) = (evictions as f64, Subject::Evictions);
            all.push(Observation { source: "server", value, limit: Some(0.0), subject });
        }
    }
    all
}
