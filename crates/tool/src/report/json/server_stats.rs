//! What servers said of themselves interval by interval, in seconds.

use pummel_logic::measure::evidence::server_stats::{ServerInterval, ServerStats};
use pummel_logic::measure::evidence::{Evidence, ServerCounts};
use pummel_logic::time::seconds;
use serde::Serialize;

use super::figures::rounded;

/// One server's own intervals.
#[derive(Serialize)]
pub(super) struct ServerStatsOut<'a> {
    address: &'a str,
    interval_s: f64,
    missed: u64,
    intervals: Vec<ServerIntervalOut<'a>>,
}

#[derive(Serialize)]
struct ServerIntervalOut<'a> {
    at_s: f64,
    seconds: f64,
    restarted: bool,
    requests_per_s: Option<f64>,
    hit_ratio: Option<f64>,
    cpu_us_per_request: Option<f64>,
    cpu_s: Option<f64>,
    counts: ServerCounts,
    memory_bytes: Option<u64>,
    connections: Option<u64>,
    disturbances: &'a [String],
}

impl ServerStatsOut<'_> {
    /// The intervals of all servers that were asked for; none where that was not wanted.
    pub(super) fn all_of(evidence: Option<&Evidence>) -> Vec<ServerStatsOut<'_>> {
        let all = evidence.map(|evidence| evidence.server_stats.as_slice()).unwrap_or_default();
        all.iter().map(ServerStatsOut::of).collect()
    }

    fn of(stats: &ServerStats) -> ServerStatsOut<'_> {
        ServerStatsOut {
            address: &stats.address,
            interval_s: seconds(stats.every_ns),
            missed: stats.missed,
            intervals: stats.intervals.iter().map(ServerIntervalOut::of).collect(),
        }
    }
}

impl ServerIntervalOut<'_> {
    fn of(interval: &ServerInterval) -> ServerIntervalOut<'_> {
        let length_s = seconds(interval.length_ns());
        let rate = |requests: u64| (length_s > 0.0).then(|| rounded(requests as f64 / length_s));
        ServerIntervalOut {
            at_s: seconds(interval.start_ns),
            seconds: length_s,
            restarted: interval.restarted,
            requests_per_s: interval.counts.requests.and_then(rate),
            hit_ratio: interval.hit_ratio(),
            cpu_us_per_request: interval.cpu_ns_per_request().map(|ns| rounded(ns / 1e3)),
            cpu_s: interval.cpu_ns.map(seconds),
            counts: interval.counts,
            memory_bytes: interval.memory_bytes,
            connections: interval.connections,
            disturbances: &interval.disturbances,
        }
    }
}
