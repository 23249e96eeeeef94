//! The shares of servers, agents and connections in a run and in its slices, and the events of a run.

use pummel_logic::plan::{Plan, RatePoint};
use pummel_logic::time::{Nanos, seconds};
use pummel_measure::counters::SliceConnections;
use pummel_measure::measurement::{Measurement, Slice};
use pummel_measure::parts::{ServerRecord, SlicePart};
use pummel_measure::words::{counted, grouped};
use serde::{Deserialize, Serialize};

use super::figures::{is_zero, micros, rounded};
use super::steadiness::ChangeResult;
use crate::words::reason::loss;

/// Most events that a result lists.
pub const EVENTS_MAX: usize = 1_000;

/// The requests of one of several servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerRequestsResult {
    /// Address of the server.
    pub address: String,
    /// Requests that were answered without an error.
    pub completed: u64,
    /// Requests that the server answered with an error.
    pub failed: u64,
    /// Requests that were sent on a connection to the server and got no answer.
    pub unanswered: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// Quantiles of the service time, within 3 %; null where one falls among the requests without an answer.
    pub service_us: ServerTimes,
    /// Missed keys of records that this run had loaded; absent where they may be gone for a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexpected_misses: Option<u64>,
}

/// Quantiles of the service time of one server, within 3 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerTimes {
    /// The quantile of 50 %.
    pub p50: Option<f64>,
    /// The quantile of 90 %.
    pub p90: Option<f64>,
    /// The quantile of 99 %.
    pub p99: Option<f64>,
    /// The quantile of 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
}

/// The share of one server or one process in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PartResult {
    /// Completed requests per second.
    pub rate: f64,
    /// Requests that failed or got no answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// The median: of the service time of a server, of the response time of a process; null where it is not known.
    pub p50_us: Option<f64>,
    /// The 99th percentile, within 3 %; null if it is not known.
    pub p99_us: Option<f64>,
}

/// The connections in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SliceConnectionsResult {
    /// Connections that were open at the end of the slice.
    pub open: u64,
    /// Connections that were lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Lost connections that were opened again.
    #[serde(skip_serializing_if = "is_zero")]
    pub reopened: u64,
    /// Attempts to open a connection that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Clients that came, of those that come and go.
    #[serde(skip_serializing_if = "is_zero")]
    pub begun: u64,
    /// Clients that ended, of those that come and go.
    #[serde(skip_serializing_if = "is_zero")]
    pub ended: u64,
}

/// The generator in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SliceGeneratorResult {
    /// Share of the time that the workers had something to do, on average.
    pub busy_share: f64,
    /// The time lost in stalls.
    pub stalled_s: f64,
}

/// A change of the rate by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SteeredResult {
    /// Time of the change, in seconds from the beginning of the measured phase.
    pub at_s: f64,
    /// Requests per second from the change on; 0 while the load was paused.
    pub rate: f64,
}

/// An event of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EventResult {
    /// Time of the event, in seconds from the beginning of the measured phase; if only its interval is known, the
    /// beginning of the interval.
    pub at_s: f64,
    /// Kind of the event: `phase`, `steering`, `connections`, `stall`, `agent`, `server` or `change`.
    pub kind: String,
    /// Description of the event.
    pub what: String,
}

impl ServerRequestsResult {
    /// The requests of each of several servers.
    pub(super) fn all_of(
        plan: &Plan,
        measurement: &Measurement,
        measured_s: f64,
        are_unexpected: bool,
    ) -> Vec<ServerRequestsResult> {
        if plan.servers.len() < 2 {
            return Vec::new();
        }
        let of = |(address, record): (&String, &ServerRecord)| {
            let rate = if measured_s > 0.0 { record.completed as f64 / measured_s } else { 0.0 };
            ServerRequestsResult {
                address: address.clone(),
                completed: record.completed,
                failed: record.failed,
                unanswered: record.unanswered,
                rate: rounded(rate),
                service_us: ServerTimes::of(record),
                unexpected_misses: are_unexpected.then_some(record.misses),
            }
        };
        plan.servers.iter().zip(&measurement.side_times.servers).map(of).collect()
    }
}

impl ServerTimes {
    pub(super) fn of(record: &ServerRecord) -> ServerTimes {
        let time = |quantile| record.quantile(quantile).map(|ns| micros(ns as f64));
        ServerTimes { p50: time(0.5), p90: time(0.9), p99: time(0.99), p99_9: time(0.999) }
    }
}

impl PartResult {
    pub(super) fn all_of(parts: &[SlicePart], length_ns: Nanos) -> Vec<PartResult> {
        let length_s = seconds(length_ns);
        let of = |part: &SlicePart| PartResult {
            rate: if length_s > 0.0 { rounded(part.completed as f64 / length_s) } else { 0.0 },
            failed: part.failed,
            p50_us: part.p50_ns.map(|ns| micros(ns as f64)),
            p99_us: part.p99_ns.map(|ns| micros(ns as f64)),
        };
        parts.iter().map(of).collect()
    }
}

impl SliceConnectionsResult {
    /// The connections of each slice, of which `open` were open when the first one began. Empty where every connection stayed
    /// open.
    pub(super) fn all_of(measurement: &Measurement) -> Vec<SliceConnectionsResult> {
        if measurement.intervals.iter().all(|slice| slice.counters.connections.is_zero()) {
            return Vec::new();
        }
        let is_churning = measurement.connections.churn.is_some();
        // Clients that come and go bring their own connections: those that stored the records are closed before the first of them.
        let mut open = if is_churning { 0 } else { measurement.connections.open };
        let of = |slice: &Slice| {
            let SliceConnections { opened, reopened, lost, closed, failed, begun, ended } =
                slice.counters.connections;
            open = (open + opened).saturating_sub(lost + closed);
            SliceConnectionsResult { open, lost, reopened, failed, begun, ended }
        };
        measurement.intervals.iter().map(of).collect()
    }
}

impl SteeredResult {
    /// All changes of a run in the order of time; `None` if the run had no `--steer`.
    pub(super) fn all_of(measurement: &Measurement) -> Option<Vec<SteeredResult>> {
        let of = |change: &RatePoint| SteeredResult { at_s: seconds(change.at_ns), rate: change.rate };
        measurement.steered.as_ref().map(|changes| changes.iter().map(of).collect())
    }

    /// The change in words.
    pub fn words(&self) -> String {
        match self.rate {
            0.0 => "nothing is asked any more".to_owned(),
            rate => format!("{} req/s are asked", grouped(rate.round() as u64)),
        }
    }
}

impl SliceGeneratorResult {
    pub(super) fn of(slice: &Slice, workers: usize) -> SliceGeneratorResult {
        let time_ns = slice.length_ns().saturating_mul(workers.max(1) as u64);
        let share = if time_ns > 0 { slice.counters.turns.busy_ns as f64 / time_ns as f64 } else { 0.0 };
        SliceGeneratorResult {
            busy_share: rounded(share.min(1.0)),
            stalled_s: seconds(slice.counters.turns.stalled_ns),
        }
    }
}

impl EventResult {
    /// The events of a run in the order of their times: the first [`EVENTS_MAX`], and how many there are beyond.
    pub(super) fn all_of(
        plan: &Plan,
        measurement: &Measurement,
        change: Option<&ChangeResult>,
    ) -> (Vec<EventResult>, u64) {
        let mut events = phases_begun(plan, measurement);
        let reached = SteeredResult::all_of(measurement)
            .into_iter()
            .flatten()
            .filter(|change| change.at_s < seconds(measurement.measured_ns));
        events.extend(reached.map(|change| EventResult {
            at_s: change.at_s,
            kind: "steering".to_owned(),
            what: change.words(),
        }));
        for slice in &measurement.intervals {
            let mut note = |kind: &str, what: String| {
                events.push(EventResult { at_s: seconds(slice.start_ns), kind: kind.to_owned(), what });
            };
            let SliceConnections { reopened, lost, .. } = slice.counters.connections;
            if lost > 0 {
                note("connections", format!("{} lost", counted(lost, "connection")));
            }
            if reopened > 0 {
                note("connections", format!("{} back", counted(reopened, "connection")));
            }
            if slice.counters.turns.stalls > 0 {
                let lost_ms = slice.counters.turns.stalled_ns as f64 / 1e6;
                note(
                    "stall",
                    format!(
                        "{} of the generator, {lost_ms:.1} ms",
                        counted(slice.counters.turns.stalls, "stall")
                    ),
                );
            }
        }
        for member in measurement.agents.iter().flat_map(|agents| &agents.members) {
            let Some(lost) = &member.lost else { continue };
            let how = if lost.left { "left" } else { "was lost" };
            let what = format!("{} {how}: {}", member.name, loss(&lost.why));
            events.push(EventResult {
                at_s: lost.at_ns.map_or(0.0, seconds),
                kind: "agent".to_owned(),
                what,
            });
        }
        for stats in measurement.evidence.iter().flat_map(|evidence| &evidence.server_stats) {
            for interval in &stats.intervals {
                let restarted = interval.restarted.then(|| "restarted".to_owned());
                for what in restarted.iter().chain(&interval.disturbances) {
                    let what = format!("{}: {what}", stats.address);
                    let at_s = seconds(interval.start_ns);
                    events.push(EventResult { at_s, kind: "server".to_owned(), what });
                }
            }
        }
        for server in measurement.evidence.iter().flat_map(|evidence| &evidence.servers) {
            for save in server.reading.iter().flat_map(|reading| &reading.saves) {
                let what = format!("{} {}", server.address, save.words());
                let at_s = save.from_ns.map_or(0.0, |ns| seconds(ns).round());
                events.push(EventResult { at_s, kind: "server".to_owned(), what });
            }
        }
        events.extend(change.map(|change| EventResult {
            at_s: change.at_s,
            kind: "change".to_owned(),
            what: format!("the {} changed", change.figure.name()),
        }));
        events.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        let beyond = events.len().saturating_sub(EVENTS_MAX) as u64;
        events.truncate(EVENTS_MAX);
        (events, beyond)
    }
}

/// The beginnings of the parts of the measured phase that the run reached.
fn phases_begun(plan: &Plan, measurement: &Measurement) -> Vec<EventResult> {
    let reached = plan.changes.parts.iter().filter(|part| part.at_ns < measurement.measured_ns);
    let begun = reached.map(|part| EventResult {
        at_s: seconds(part.at_ns),
        kind: "phase".to_owned(),
        what: format!("{} begins", part.name),
    });
    begun.collect()
}

/// The sentence on events that a result does not list; `None` where it lists all.
pub fn events_beyond_words(beyond: u64) -> Option<String> {
    (beyond > 0).then(|| format!("{} more events are not listed", grouped(beyond)))
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Clock, Part};
    use pummel_logic::time::SECOND;

    use super::*;

    #[test]
    fn phases_and_changes_by_hand_that_the_run_reached_are_events_in_the_order_of_time() {
        let mut plan = Plan::default();
        let part = |(name, at_s): (&str, u64)| Part::plain(name.to_owned(), at_s * SECOND);
        plan.changes.parts = [("calm", 0), ("flash", 2), ("after", 5)].map(part).to_vec();
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
        measurement.measured_ns = 4 * SECOND;
        let change = |(at_s, rate): (u64, f64)| RatePoint { at_ns: at_s * SECOND, rate };
        measurement.steered = Some([(1, 21_000.4), (3, 0.0), (4, 9.0)].map(change).to_vec());
        let (events, beyond) = EventResult::all_of(&plan, &measurement, None);
        let words: Vec<(f64, &str, &str)> =
            events.iter().map(|event| (event.at_s, event.kind.as_str(), event.what.as_str())).collect();
        let expected = [
            (0.0, "phase", "calm begins"),
            (1.0, "steering", "21,000 req/s are asked"),
            (2.0, "phase", "flash begins"),
            (3.0, "steering", "nothing is asked any more"),
        ];
        assert_eq!((words.as_slice(), beyond), (&expected[..], 0));
    }
}
