//! The words for the figures that the limits are judged by.

use pummel_measure::limit::{Subject, TakenCpu};
use pummel_measure::summary::time_text;
use pummel_measure::words::{grouped, percent};

use super::limit::taker_words;

/// A figure with its subject, such as `busiest client thread 12 %`, without a full stop.
pub fn observation_words(subject: &Subject, value: f64) -> String {
    let what = match subject {
        Subject::Waits { measured_ns, predicted_ns } => {
            let (measured, predicted) = (time_text(*measured_ns), time_text(*predicted_ns));
            return format!("mean wait {measured}, {predicted} by the formula of Pollaczek and Khinchine");
        }
        Subject::ServerCpuPerRequest { per_key_us } => {
            let key = per_key_us.map(|us| format!(", {us:.2} us for each key")).unwrap_or_default();
            return format!("CPU of the server for each request {value:.2} us{key}");
        }
        Subject::Evictions => return format!("{} evictions", grouped(value as u64)),
        Subject::ClientThread => "busiest client thread".to_owned(),
        Subject::ClientWithoutCpu { agent, lost_ns, taken } => {
            let place = agent.as_ref().map_or_else(String::new, |agent| format!(" on {agent}"));
            let taker = match (lost_ns, taken) {
                (0, _) => String::new(),
                (_, Some(TakenCpu { by, time_ns })) => {
                    format!(", {} of it taken by {}:", time_text(*time_ns), taker_words(*by).0)
                }
                (_, None) => ", and who had it is not known:".to_owned(),
            };
            format!("time without a CPU of a client thread{place}{taker}")
        }
        Subject::WayOut { out_ns } => {
            format!("way out of the machine ({} at p50) of the service time", time_text(*out_ns))
        }
        Subject::SendBufferFull => "busy time with a full send buffer".to_owned(),
        Subject::KeptBack => "requests that the generator kept back".to_owned(),
        Subject::LagAndWait => "lag, and wait behind it, of all responses".to_owned(),
        Subject::Accounts => {
            "disagreement of the two accounts of requests in flight (Little's law):".to_owned()
        }
        Subject::Unanswered => "requests without an answer".to_owned(),
        Subject::SegmentsLost => "segments that did not arrive".to_owned(),
        Subject::SegmentsRepeated => "segments that were sent again".to_owned(),
        Subject::Card { card } => format!("use of the card {card}"),
        Subject::ServerThread { server, is_serving } => {
            format!("busiest {}thread of {server}", if *is_serving { "serving " } else { "" })
        }
        Subject::ServerThreads { server } => format!("mean of the serving threads of {server}"),
        Subject::InCommands { server } => format!("time inside commands of {server}"),
        Subject::ServerWithoutCpu { server } => format!("time without a CPU of a serving thread of {server}"),
        Subject::ReceiveWindowFull => "busy time with a full receive window".to_owned(),
        Subject::OtherClients { requests } => {
            format!("{} requests of other clients besides ours", grouped(*requests))
        }
    };
    format!("{what} {}", percent(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::time::MILLISECOND;
    use pummel_measure::limit::CpuTaker;

    #[test]
    fn a_figure_is_said_with_its_subject() {
        let server = || "a:1".to_owned();
        let taken = Some(TakenCpu { by: CpuTaker::Hypervisor, time_ns: MILLISECOND });
        let lost = |lost_ns, taken| Subject::ClientWithoutCpu { agent: Some(server()), lost_ns, taken };
        let rows = [
            (Subject::ClientThread, 0.12, "busiest client thread 12 %"),
            (lost(0, None), 0.0, "time without a CPU of a client thread on a:1 0 %"),
            (
                lost(2 * MILLISECOND, taken),
                0.2,
                "time without a CPU of a client thread on a:1, 1.00 ms of it taken by the hypervisor: 20 %",
            ),
            (
                lost(2 * MILLISECOND, None),
                0.2,
                "time without a CPU of a client thread on a:1, and who had it is not known: 20 %",
            ),
            (
                Subject::ServerThread { server: server(), is_serving: true },
                0.97,
                "busiest serving thread of a:1 97 %",
            ),
            (
                Subject::ServerThread { server: server(), is_serving: false },
                0.97,
                "busiest thread of a:1 97 %",
            ),
            (
                Subject::ServerCpuPerRequest { per_key_us: Some(1.25) },
                5.0,
                "CPU of the server for each request 5.00 us, 1.25 us for each key",
            ),
            (
                Subject::Waits { measured_ns: MILLISECOND, predicted_ns: MILLISECOND / 2 },
                2.0,
                "mean wait 1.00 ms, 500 us by the formula of Pollaczek and Khinchine",
            ),
            (Subject::Evictions, 1_200.0, "1,200 evictions"),
            (Subject::OtherClients { requests: 30 }, 0.3, "30 requests of other clients besides ours 30 %"),
        ];
        for (subject, value, expected) in rows {
            assert_eq!(observation_words(&subject, value), expected);
        }
    }
}
