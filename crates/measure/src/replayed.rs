//! The account of a trace that was replayed while it was read.

use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use pummel_logic::plan::{Phase, Plan, Work};
use pummel_logic::time::Nanos;
use pummel_logic::workload::distinct::DistinctKeys;
use pummel_logic::workload::rows::AskedRows;

/// The account of a trace that was replayed while it was read. Counts cover the whole run, except those of lateness,
/// which cover the last phase that replays it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replayed {
    /// Rows of the trace that were read.
    pub rows: u64,
    /// Rows that were kept: within the time that was asked for, sampled, and possible in the protocol.
    pub kept: u64,
    /// Requests of the kept rows that were asked, over all clients and phases of the run.
    pub requests: u64,
    /// Different keys of the requests, to about 1 %.
    pub keys: u64,
    /// The estimate behind `keys`, as [`DistinctKeys::to_text`] writes it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key_estimate: String,
    /// Whether the trace was read to its end.
    pub is_whole: bool,
    /// Time from the first kept row to the last one that was asked, in nanoseconds of the trace's time.
    pub covered_ns: Nanos,
    /// Requests that were sent more than 10 ms after they were due.
    pub late_rows: u64,
    /// The greatest time from when a request was due until it was sent, in nanoseconds.
    pub latest_ns: Nanos,
    /// The longest time in nanoseconds that one worker had no request left although the trace went on.
    pub starved_ns: Nanos,
    /// Lines or records that hold no request of the format.
    pub bad_lines: u64,
    /// Lines with operations that are not replayed.
    pub skipped_lines: u64,
    /// Requests that were lost when the trace was recorded, by its own account.
    pub lost: u64,
    /// Requests that rows stand for and that are not sent: beyond those of one row that are sent.
    pub uncounted: u64,
    /// Requests whose operation the protocol does not have.
    pub unsayable: u64,
    /// Stores that were left out because misses of the replay fill.
    pub fills_left_out: u64,
    /// Values that were cut to the longest one.
    pub cut_values: u64,
    /// Rows that were earlier than the one before them.
    pub out_of_order: u64,
    /// Rows whose keys became too long.
    pub unfit_keys: u64,
    /// Stores with a time to live.
    pub ttls: u64,
    /// Stores whose time to live was scaled below 2 s.
    pub short_ttls: u64,
    /// Requests of the client with the most.
    pub busiest_client_requests: u64,
    /// Clients that the rows were dealt to.
    pub clients: u64,
    /// Why the trace could not be read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Sentences about rows that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Replayed {
    /// Notes the requests that the clients asked.
    pub fn set_asked(&mut self, asked: &AskedRows) {
        self.requests = asked.requests;
        self.keys = asked.keys.estimate();
        self.key_estimate = asked.keys.to_text();
        self.covered_ns = asked.covered_ns;
        self.busiest_client_requests = asked.busiest_client_requests;
    }

    /// The requests that the clients asked.
    fn asked(&self) -> AskedRows {
        AskedRows {
            requests: self.requests,
            keys: DistinctKeys::of_text(&self.key_estimate).unwrap_or_default(),
            covered_ns: self.covered_ns,
            busiest_client_requests: self.busiest_client_requests,
        }
    }

    /// Adds the account of another process, which read the same trace and asked the requests of other clients.
    pub fn merge(&mut self, other: &Replayed) {
        let mut asked = self.asked();
        asked.merge(&other.asked());
        // The counts are those of the process that read the most; what one of them could not read, the replay has not asked.
        let is_whole = self.is_whole && other.is_whole;
        let error = self.error.take().or_else(|| other.error.clone());
        if other.rows > self.rows {
            let (late_rows, latest_ns, starved_ns) = (self.late_rows, self.latest_ns, self.starved_ns);
            *self = Replayed { late_rows, latest_ns, starved_ns, ..other.clone() };
        }
        self.late_rows += other.late_rows;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.starved_ns = self.starved_ns.max(other.starved_ns);
        self.set_asked(&asked);
        (self.is_whole, self.error) = (is_whole, error);
    }

    /// The reason why nothing was measured, where a warm-up of the plan asked the whole trace. `is_empty` says that no measured
    /// phase had a request.
    pub fn taken_by_warm_up(&self, plan: &Plan, is_empty: bool) -> Option<Reason> {
        let is_warm_up = |phase: &Phase| !phase.recorded && matches!(phase.work, Work::Trace(_));
        let is_taken = self.error.is_none() && self.is_whole && self.requests > 0;
        (is_taken && is_empty && plan.phases.iter().any(is_warm_up))
            .then_some(Reason::TraceTaken { rows: self.kept })
    }

    /// Warnings about the replay that a reader of the result needs, in addition to [`Replayed::notices`].
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.starved_ns > 100 * pummel_logic::time::MILLISECOND {
            warnings.push(format!(
                "the reader of the trace was too slow: a worker had no request left for {:.1} s, so that the generator \
                 limited the load",
                self.starved_ns as f64 / 1e9
            ));
        }
        if self.clients > 1
            && self.busiest_client_requests > 5 * self.requests / self.clients
            && self.requests > 1_000
        {
            warnings.push(format!(
                "one of the {} clients asks {} of {} requests of the trace: a hot key, or a busy client of the trace, is the \
                 load of one connection",
                self.clients, self.busiest_client_requests, self.requests
            ));
        }
        if self.short_ttls * 100 > self.ttls && self.ttls > 0 {
            warnings.push(format!(
                "{} of {} times to live are less than 2 s after scaling, and servers count whole seconds: the hit ratio will \
                 be off",
                self.short_ttls, self.ttls
            ));
        }
        for (count, what) in [
            (self.unsayable, "requests ask what the protocol does not have, and are left out"),
            (self.cut_values, "values are longer than the longest that is sent, and are cut"),
            (self.out_of_order, "rows are earlier than the one before them, and count as made at its time"),
            (
                self.uncounted,
                "requests are left out: one row stands for more than the 262,144 that are sent of it",
            ),
            (self.unfit_keys, "rows have keys that become too long, and are left out"),
        ] {
            if count > 0 {
                warnings.push(format!("{count} {what}"));
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Stop, TracePace, TraceReplay};

    use super::*;

    #[test]
    fn processes_that_read_one_trace_count_its_rows_once_and_their_lateness_together() {
        let mut one =
            Replayed { rows: 10, is_whole: true, late_rows: 2, latest_ns: 5, ..Replayed::default() };
        one.merge(&Replayed { rows: 12, is_whole: true, late_rows: 3, latest_ns: 4, ..Replayed::default() });
        assert_eq!((one.rows, one.is_whole, one.late_rows, one.latest_ns), (12, true, 5, 5));
        one.merge(&Replayed { rows: 3, late_rows: 1, ..Replayed::default() });
        assert_eq!((one.rows, one.late_rows), (12, 6));
    }

    #[test]
    fn a_trace_that_one_process_could_not_read_is_not_whole_whichever_of_them_comes_first() {
        let good = Replayed { rows: 12, is_whole: true, ..Replayed::default() };
        let bad = Replayed { rows: 5, error: Some("cannot read 't'".to_owned()), ..Replayed::default() };
        for (first, second) in [(&good, &bad), (&bad, &good)] {
            let mut sum = first.clone();
            sum.merge(second);
            assert_eq!((sum.rows, sum.is_whole, sum.error.as_deref()), (12, false, Some("cannot read 't'")));
        }
        let worse = Replayed { rows: 9, error: Some("another reason".to_owned()), ..Replayed::default() };
        let mut sum = bad.clone();
        sum.merge(&worse);
        assert_eq!(sum.error, bad.error, "the first reason is kept");
    }

    #[test]
    fn what_the_clients_of_several_processes_asked_is_added() {
        let asked = |keys: std::ops::Range<u64>, busiest_client_requests| {
            let mut asked = AskedRows { requests: 500, busiest_client_requests, ..AskedRows::default() };
            keys.for_each(|key| asked.keys.note(pummel_logic::rng::scramble(key)));
            let mut replayed = Replayed { rows: 1_000, clients: 9, ..Replayed::default() };
            replayed.set_asked(&asked);
            replayed
        };
        let mut one = asked(0..300, 40);
        one.merge(&asked(200..500, 70));
        assert_eq!((one.rows, one.requests, one.busiest_client_requests), (1_000, 1_000, 70));
        assert!(one.keys.abs_diff(500) < 15, "{}", one.keys);
    }

    #[test]
    fn what_a_reader_has_to_know_is_said() {
        assert!(Replayed::default().warnings().is_empty());
        let hot =
            Replayed { clients: 10, requests: 10_000, busiest_client_requests: 6_000, ..Replayed::default() };
        assert!(hot.warnings()[0].contains("6000 of 10000 requests"));
        let short = Replayed { ttls: 100, short_ttls: 2, ..Replayed::default() };
        assert!(short.warnings()[0].contains("hit ratio"));
        let many = Replayed { uncounted: 5, ..Replayed::default() };
        assert!(many.warnings()[0].starts_with("5 requests are left out"));
        let starved = Replayed { starved_ns: 2_000_000_000, ..Replayed::default() };
        assert!(starved.warnings()[0].contains("2.0 s"));
    }

    #[test]
    fn a_warm_up_that_asked_the_whole_trace_left_nothing_to_measure() {
        let whole = Replayed { kept: 9, requests: 9, is_whole: true, ..Replayed::default() };
        let warm_up = |recorded| Phase {
            name: String::new(),
            work: Work::Trace(Box::new(TraceReplay::of(Vec::new(), TracePace::Fast, 1))),
            stop: Stop { time_ns: None, requests: None },
            recorded,
        };
        let unread = Replayed { error: Some("broken".to_owned()), ..whole.clone() };
        let unasked = Replayed { requests: 0, ..whole.clone() };
        let partial = Replayed { is_whole: false, ..whole.clone() };
        let table = [
            (&whole, false, true, true),
            (&whole, false, false, false),
            (&whole, true, true, false),
            (&unread, false, true, false),
            (&unasked, false, true, false),
            (&partial, false, true, false),
        ];
        for (replayed, recorded, is_empty, is_taken) in table {
            let plan = Plan { phases: vec![warm_up(recorded)], ..Plan::default() };
            let why = replayed.taken_by_warm_up(&plan, is_empty);
            let expected = is_taken.then_some(Reason::TraceTaken { rows: 9 });
            assert_eq!(why, expected, "{replayed:?} {recorded} {is_empty}");
        }
    }
}
