//! What servers said of themselves interval by interval, in seconds.

use pummel_logic::time::seconds;
use pummel_measure::evidence::server_stats::{ServerInterval, ServerStats};
use pummel_measure::evidence::{Evidence, OurRequests, ServerCounts, SlabClass};
use serde::{Deserialize, Serialize};

use super::figures::rounded;

/// One server's own intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerStatsResult {
    /// Address of the server.
    pub address: String,
    /// Time from one reading to the next.
    pub interval_s: f64,
    /// Readings that were missed.
    pub missed: u64,
    /// The intervals between readings.
    pub intervals: Vec<ServerIntervalResult>,
}

/// One interval as a server counted it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerIntervalResult {
    /// Beginning, from the beginning of the measured phase.
    pub at_s: f64,
    /// Length.
    pub seconds: f64,
    /// Whether the server was started anew.
    pub restarted: bool,
    /// Requests per second.
    pub requests_per_s: Option<f64>,
    /// Share of keys that reads found, from 0 to 1.
    pub hit_ratio: Option<f64>,
    /// CPU time of the server for each request, as clients count them.
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the server.
    pub cpu_s: Option<f64>,
    /// What the server counted.
    pub counts: ServerCounts,
    /// Memory that records take.
    pub memory_bytes: Option<u64>,
    /// Connections that were open.
    pub connections: Option<u64>,
    /// What disturbed the server.
    pub disturbances: Vec<String>,
    /// The classes of sizes of memcached that lost records or stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<SlabClass>,
}

impl ServerStatsResult {
    /// The intervals of all servers that were asked for; none where that was not wanted.
    pub(super) fn all_of(evidence: Option<&Evidence>) -> Vec<ServerStatsResult> {
        let all = evidence.map(|evidence| evidence.server_stats.as_slice()).unwrap_or_default();
        let ours = evidence.and_then(|evidence| evidence.ours.as_ref());
        all.iter().map(|stats| ServerStatsResult::of(stats, ours)).collect()
    }

    fn of(stats: &ServerStats, ours: Option<&OurRequests>) -> ServerStatsResult {
        let intervals = stats.intervals.iter().map(|interval| ServerIntervalResult::of(interval, ours));
        ServerStatsResult {
            address: stats.address.clone(),
            interval_s: seconds(stats.every_ns),
            missed: stats.missed,
            intervals: intervals.collect(),
        }
    }
}

impl ServerIntervalResult {
    fn of(interval: &ServerInterval, ours: Option<&OurRequests>) -> ServerIntervalResult {
        let cost = interval.cpu_cost(ours);
        let length_s = seconds(interval.length_ns());
        let rate = |requests: u64| (length_s > 0.0).then(|| rounded(requests as f64 / length_s));
        ServerIntervalResult {
            at_s: seconds(interval.start_ns),
            seconds: length_s,
            restarted: interval.restarted,
            requests_per_s: interval.counts.requests.and_then(rate),
            hit_ratio: interval.hit_ratio(),
            cpu_us_per_request: cost.map(|cost| rounded(cost.per_request_ns / 1e3)),
            cpu_s: interval.cpu_ns.map(seconds),
            counts: interval.counts,
            memory_bytes: interval.memory_bytes,
            connections: interval.connections,
            disturbances: interval.disturbances.clone(),
            classes: interval.classes.clone(),
        }
    }
}
