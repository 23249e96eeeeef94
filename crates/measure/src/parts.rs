//! The shares of servers and agents in a slice: counts, and coarse times.

use serde::{Deserialize, Serialize};

use crate::histogram::{CoarseHistogram, rank};
use pummel_logic::merge::Merge;
use pummel_logic::merged;
use pummel_logic::time::Nanos;

/// Most agents whose slices are kept one by one.
pub const MEMBERS_TIMED_MAX: usize = 24;

merged! {
    /// The requests of one of several servers. A request over several servers counts for the server whose part came last.
    #[serde(deny_unknown_fields)]
    pub struct ServerRecord {
        /// Requests that were answered without an error.
        pub completed: u64,
        /// Requests that the server answered with an error.
        pub failed: u64,
        /// Requests that got no answer: given up, or outstanding when their connection or their phase ended.
        pub unanswered: u64,
        /// Keys that the server's answers to reads did not have, those of parts of a request among them.
        #[serde(default)]
        pub misses: u64,
        /// Service times of the requests that were answered, in nanoseconds.
        pub service: CoarseHistogram,
    }
}

/// The share of one server or one process in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicePart {
    /// Requests that were answered without an error.
    pub completed: u64,
    /// Requests that failed or got no answer.
    pub failed: u64,
    /// The median, in nanoseconds: of the service time of a server, of the response time of a process. `None` where it is not
    /// known.
    pub p50_ns: Option<Nanos>,
    /// The 99th percentile, within 3 %; `None` if it is not known.
    pub p99_ns: Option<Nanos>,
    /// The 99th percentile of the lag of a process; `None` for a server, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99_ns: Option<Nanos>,
    /// Time for which the workers of a process were busy, all of them together, in nanoseconds; 0 for a server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub busy_ns: Nanos,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(ns: &Nanos) -> bool {
    *ns == 0
}

impl ServerRecord {
    /// Counts a request that got no answer.
    pub fn record_unanswered(&mut self) {
        self.unanswered += 1;
    }

    /// Counts a request that was answered, and its service time where it has one.
    pub fn record(&mut self, is_error: bool, service_ns: Option<Nanos>) {
        if is_error {
            self.failed += 1;
        } else {
            self.completed += 1;
        }
        if let Some(service_ns) = service_ns {
            self.service.record(service_ns);
        }
    }

    /// A quantile of the service time, from 0 to 1, where requests without an answer count as slower than all others;
    /// `None` if it falls among those, and if there are no requests.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        let answered = self.service.count();
        let wanted = rank(quantile, answered.saturating_add(self.unanswered)).max(1);
        (wanted <= answered).then(|| self.service.quantile(wanted as f64 / answered as f64)).flatten()
    }

    /// The counts and quantiles of the requests.
    pub fn part(&self) -> SlicePart {
        SlicePart {
            completed: self.completed,
            failed: self.failed + self.unanswered,
            p50_ns: self.quantile(0.5),
            p99_ns: self.quantile(0.99),
            ..SlicePart::default()
        }
    }
}

/// The parts of servers by other numbers. The part of a server without a number is left out.
pub(crate) fn renumbered<T: Clone + Default>(parts: &[T], numbers: &[Option<u16>]) -> Vec<T> {
    let placed =
        || parts.iter().zip(numbers).filter_map(|(part, number)| Some((part, usize::from((*number)?))));
    let count = placed().map(|(_, number)| number + 1).max().unwrap_or(0);
    let mut all = vec![T::default(); count];
    placed().for_each(|(part, number)| all[number] = part.clone());
    all
}

impl Merge for SlicePart {
    /// Adds the part of a neighbouring slice. Quantiles stay known only where one of both has no requests.
    fn merge(&mut self, other: &SlicePart) {
        let is_empty = |part: &SlicePart| part.completed + part.failed == 0;
        let times = match (is_empty(self), is_empty(other)) {
            (true, _) => (other.p50_ns, other.p99_ns, other.lag_p99_ns),
            (_, true) => (self.p50_ns, self.p99_ns, self.lag_p99_ns),
            (false, false) => (None, None, None),
        };
        self.completed += other.completed;
        self.failed += other.failed;
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        (self.p50_ns, self.p99_ns, self.lag_p99_ns) = times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(times: &[Nanos], unanswered: u64) -> ServerRecord {
        let mut record = ServerRecord { unanswered, ..ServerRecord::default() };
        times.iter().for_each(|time| record.record(false, Some(*time)));
        record
    }

    #[test]
    fn requests_without_an_answer_are_slower_than_all_others() {
        let answered: Vec<Nanos> = (1..=99).map(|time| time * 1_000).collect();
        let known = record(&answered, 0).part();
        assert!(known.p50_ns.is_some_and(|ns| (50_000..52_000).contains(&ns)), "{known:?}");
        let one = record(&answered, 1).part();
        assert!(one.p99_ns.is_some_and(|ns| (99_000..103_000).contains(&ns)), "{one:?}");
        let two = record(&answered, 2).part();
        assert_eq!((two.p99_ns, two.failed), (None, 2));
        assert_eq!(record(&[], 0).part(), SlicePart::default());
        assert_eq!(record(&[], 3).quantile(0.5), None);
    }

    #[test]
    fn servers_merge_by_their_numbers_and_parts_lose_their_quantiles() {
        let mut all = vec![record(&[1_000], 0)];
        all.merge(&vec![record(&[3_000], 1), record(&[9_000], 0)]);
        assert_eq!((all[0].completed, all[0].unanswered, all[1].completed), (2, 1, 1));
        let mut parts = vec![record(&[1_000], 0).part(), SlicePart::default()];
        parts.merge(&vec![record(&[1_000], 0).part(), record(&[5], 0).part()]);
        assert_eq!((parts[0].completed, parts[0].p50_ns), (2, None));
        assert!(parts[1].p50_ns.is_some());
    }
}
