//! A server's own statistics while a run went on, interval by interval.

use serde::{Deserialize, Serialize};

use super::ours::{CpuCost, OurRequests};
use super::server::{ServerCounts, ServerReading};
use super::slabs::SlabClass;
use pummel_logic::time::Nanos;

/// Most intervals that are kept of one server; later ones are counted as missed.
pub const INTERVALS_MAX: usize = 4096;

/// Most classes of sizes that are kept of an interval.
const CLASSES_MAX: usize = 8;

/// Statistics of one server in the measured phases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStats {
    /// Address of the server, as in the Plan.
    pub address: String,
    /// The time between two readings that was asked for, in nanoseconds.
    pub every_ns: Nanos,
    /// The intervals between two readings, in their order.
    pub intervals: Vec<ServerInterval>,
    /// Readings that did not take place: the server did not answer in time, or there were too many.
    pub missed: u64,
}

/// Statistics of a server for the time between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInterval {
    /// Time of the first of the two readings, from the beginning of the measured phase.
    pub start_ns: Nanos,
    /// Time of the second reading, from the beginning of the measured phase.
    pub end_ns: Nanos,
    /// Whether the server started anew.
    pub restarted: bool,
    /// CPU time of the process, by its own account.
    pub cpu_ns: Option<Nanos>,
    /// Differences of the server's counters.
    pub counts: ServerCounts,
    /// Memory in use at the second reading, in bytes.
    pub memory_bytes: Option<u64>,
    /// Open connections at the second reading.
    pub connections: Option<u64>,
    /// Disturbances of the server, each in a few words.
    pub disturbances: Vec<String>,
    /// The classes of sizes that lost records or stores in the interval, those that lost the most first, at most eight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<SlabClass>,
}

impl ServerStats {
    /// Adds the reading of an interval, where there is room for it.
    pub fn add(&mut self, start_ns: Nanos, end_ns: Nanos, reading: ServerReading) {
        if self.intervals.len() >= INTERVALS_MAX {
            self.missed += 1;
            return;
        }
        let mut classes = reading.classes;
        classes.retain(|class| class.lost() > 0);
        classes.sort_by_key(|class| std::cmp::Reverse(class.lost()));
        classes.truncate(CLASSES_MAX);
        self.intervals.push(ServerInterval {
            start_ns,
            end_ns,
            restarted: reading.restarted,
            cpu_ns: reading.cpu_ns,
            counts: reading.counts,
            memory_bytes: reading.memory_bytes,
            connections: reading.connections,
            disturbances: reading.disturbances,
            classes,
        });
    }
}

impl ServerInterval {
    /// Share of the keys that reads asked for and that were found; `None` where none was asked for.
    pub fn hit_ratio(&self) -> Option<f64> {
        let (hits, misses) = (self.counts.hits?, self.counts.misses?);
        let asked = hits.saturating_add(misses);
        (asked > 0).then(|| hits as f64 / asked as f64)
    }

    /// CPU time for each request as clients count them; `None` where there was no request, and where their number is not
    /// known.
    pub fn cpu_cost(&self, ours: Option<&OurRequests>) -> Option<CpuCost> {
        CpuCost::of(self.cpu_ns?, self.counts.requests?, ours)
    }

    /// CPU time of the process in cores: 1 where it worked for all of the interval on one of them. `None` where it is not known.
    pub fn cores(&self) -> Option<f64> {
        let length_ns = self.length_ns();
        Some(self.cpu_ns? as f64 / length_ns as f64).filter(|_| length_ns > 0)
    }

    /// Length of the interval, in nanoseconds.
    pub fn length_ns(&self) -> Nanos {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_known_where_something_was_asked() {
        let counts = |requests, hits| ServerCounts {
            requests: Some(requests),
            hits: Some(hits),
            misses: Some(requests - hits),
            ..ServerCounts::default()
        };
        let interval = |counts| ServerInterval { cpu_ns: Some(3000), counts, ..ServerInterval::default() };
        let busy = interval(counts(10, 9));
        let ours = OurRequests { sent: 10, keys: 10, counted: None, one_to_one: true, untold: None };
        let cost = |interval: &ServerInterval| Some(interval.cpu_cost(Some(&ours))?.per_request_ns);
        assert_eq!((busy.hit_ratio(), cost(&busy)), (Some(0.9), Some(300.0)));
        let idle = interval(counts(0, 0));
        assert_eq!((idle.hit_ratio(), cost(&idle)), (None, None));
        assert_eq!(interval(ServerCounts::default()).hit_ratio(), None);
        assert_eq!(ServerInterval { end_ns: 6000, ..busy.clone() }.cores(), Some(0.5));
        assert_eq!(
            (busy.cores(), ServerInterval { cpu_ns: None, end_ns: 1, ..busy.clone() }.cores()),
            (None, None)
        );
    }

    #[test]
    fn an_interval_names_the_classes_that_lost_most() {
        let class =
            |class: u32, evictions| SlabClass { class, records: 1, evictions, ..SlabClass::default() };
        let classes =
            (1..=20).map(|number| class(number, u64::from(number / 5) * 100 + 1)).chain([class(21, 0)]);
        let mut stats = ServerStats::default();
        stats.add(0, 1, ServerReading { classes: classes.collect(), ..ServerReading::default() });
        let kept: Vec<u32> = stats.intervals[0].classes.iter().map(|class| class.class).collect();
        assert_eq!(kept, [20, 15, 16, 17, 18, 19, 10, 11]);
    }

    #[test]
    fn the_intervals_of_a_long_run_have_a_limit() {
        let mut stats = ServerStats::default();
        (0..INTERVALS_MAX as u64 + 3).for_each(|at| stats.add(at, at + 1, ServerReading::default()));
        assert_eq!((stats.intervals.len(), stats.missed), (INTERVALS_MAX, 3));
    }
}
