//! Everything that a run leaves behind: merged over its workers, saved, loaded, and the one source of all reports.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agents::Agents;
use crate::audit::Audit;
use crate::baseline::Baseline;
use crate::calibration::Calibrated;
use crate::evidence::Evidence;
use crate::evidence::provenance::Provenance;
use crate::failed_keys::FailedKeys;
use crate::flight::FlightTime;
use crate::interval::Interval;
use crate::parts::renumbered;
use crate::reason::Reason;
use crate::recorder::{OpRecord, Ops, Tally};
use crate::replayed::Replayed;
use crate::side_times::SideTimes;
use crate::uncertainty::Windows;
use crate::words::{count_message, merge_messages};
use pummel_logic::merge::{Merge as _, join};
use pummel_logic::merged;
use pummel_logic::plan::memory::INTERVALS_KEPT_MAX;
use pummel_logic::plan::{Clock, Plan, RatePoint};
use pummel_logic::protocol::udp;
use pummel_logic::time::Nanos;

use crate::cluster::ClusterSeen;
pub use crate::connections::Connections;
pub use crate::counters::{Bytes, Counters, Samples, Stamps};
pub use crate::generator::{Generator, WorkerTime};
pub use crate::load::LoadResult;
pub use crate::slice::{Keep, Slice, SliceOp, SliceSketch};
pub use crate::verify::{FAILED_KEYS_KEPT, FAILURES_SHOWN, Verify, WrongKey};
pub use crate::words::MESSAGES_KEPT;

/// The layout of a saved measurement that this version writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// Everything that a run leaves behind. Measured are the recorded phases with their drain, unless a field says
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Layout of this data; [`SCHEMA`].
    pub schema: u32,
    /// Status at the end of the run.
    pub status: Status,
    /// Why the run is not complete; `None` where it is.
    pub reason: Option<Reason>,
    /// Description of the servers' software and protocol where the command line left it open, such as `memcached
    /// 1.6.18, text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<String>,
    /// Beginning of the measured phase, in nanoseconds since 1970; 0 where it is not known.
    pub started_unix_ns: u64,
    /// Length of the measured phase without its drain.
    pub measured_ns: Nanos,
    /// Time from the beginning of the measured phase to the last answer: longer than the phase when a backlog was
    /// worked off in the drain.
    #[serde(default)]
    pub answered_ns: Nanos,
    /// The clock that decided when replies arrived.
    pub clock: Clock,
    /// Whether some servers were reached by a unix socket, where the kernel gives no receive stamps: `arrived` is
    /// `read` there.
    pub unix_socket: bool,
    /// Time after which a request without an answer was given up.
    pub timeout_ns: Nanos,
    /// The warm-up whose end was found while it ran; `None` if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Changes of the rate by hand, in the order of time; `None` where it could not be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steered: Option<Vec<RatePoint>>,
    /// The measured requests, by group of the Plan.
    pub groups: Vec<GroupMeasurement>,
    /// The measured requests by the part of the phase in which they were due, in the order of the Plan; empty where the phase has no
    /// parts, and shorter than the Plan where nothing was due in the last parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Ops>,
    /// The measured phase in slices, at most [`INTERVALS_KEPT_MAX`] of them.
    pub intervals: Vec<Slice>,
    /// The measured phase in windows, from which its figures get intervals; `None` where none were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// Number of slices that were merged into their neighbours, to keep within the limit of `intervals`. Where slices are
    /// kept without their histograms, the quantiles of merged ones are not known; everything else of them is exact.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intervals_merged: u64,
    /// Everything that only adds up in the measured phase, beside the requests.
    pub counters: Counters,
    /// The histograms beside those of the requests by their verb.
    pub side_times: SideTimes,
    /// Requests of the measured phase that were to be written one by one; `None` where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Rows of the recording that the run replays, over all processes; `None` where it replays none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_rows: Option<u64>,
    /// The account of a trace that was replayed while it was read; `None` if the run replayed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// Round trips that were made one at a time before the measured phase; `None` where none were to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Box<Baseline>>,
    /// The load; `None` where the run had none.
    pub load: Option<LoadResult>,
    /// Account of the connections.
    pub connections: Connections,
    /// Counts of datagrams in the whole run; `None` where no server was reached over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<udp::DatagramCounts>,
    /// The cluster whose nodes were asked; `None` where the servers were no cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSeen>,
    /// The acknowledged writes that were read back; `None` where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// Answers that were checked.
    pub verify: Verify,
    /// Errors that servers sent all the same for requests without a reply, in the whole run. Such a request is completed
    /// when it is handed over, and stays so.
    #[serde(default)]
    pub noreply_errors: u64,
    /// Messages that servers sent without being asked, by name, in the whole run (RESP3): the names that came first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pushes: BTreeMap<String, u64>,
    /// Messages of servers with errors, and how often each came; at most [`MESSAGES_KEPT`] different ones. The messages of
    /// loads that are not recorded stand in `load`.
    pub messages: BTreeMap<String, u64>,
    /// The keys of requests that failed in any phase; `None` where they are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_keys: Option<FailedKeys>,
    /// The time that requests were in flight, by counts; [`little`](crate::littles_law::little) compares it with what
    /// the recorder holds.
    #[serde(default)]
    pub flight: FlightTime,
    /// CPU time, memory and turns of the generator.
    pub generator: Generator,
    /// All requests of all phases, and their bytes.
    pub whole_run: WholeRun,
    /// The processes that took part; `None` where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Agents>,
    /// Evidence of the servers, the machines and the network; `None` if no readings were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The instrument on this machine; `None` where it was not calibrated, or several machines took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrated>,
    /// The machines that sent the requests: one for each process. Empty in results of older versions, and where no kernel
    /// was below the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Provenance>,
    /// The words of the command line, without passwords; empty where it is not known, or left out on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
}

/// A warm-up whose end is found while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// The event that ends the warm-up.
    #[serde(default)]
    pub until: WarmUpEnd,
    /// Time that the warm-up took, in nanoseconds.
    pub elapsed_ns: Nanos,
    /// Whether the load had settled, or a server had evicted a record. Otherwise the time was over, or the run was ended.
    pub settled: bool,
    /// Whether the run was ended in the warm-up, before its end was found and before the time was over.
    #[serde(default)]
    pub cut_short: bool,
}

/// The event that ends a warm-up before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WarmUpEnd {
    /// The load has settled.
    #[default]
    Settled,
    /// A server has evicted its first record since the run began.
    Eviction,
}

impl WarmUpEnd {
    /// The event that ends the warm-up of a plan.
    pub fn of(plan: &Plan) -> WarmUpEnd {
        if plan.adaptive.first_eviction { WarmUpEnd::Eviction } else { WarmUpEnd::Settled }
    }
}

/// Status at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The asked time or number of requests was covered with the asked connections.
    #[default]
    Complete,
    /// The asked time, requests or connections were not covered.
    Partial,
    /// The user ended the run.
    Interrupted,
}

/// The measured requests of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMeasurement {
    /// Name of the group in the Plan.
    pub name: String,
    /// Requests of the group, by verb.
    pub ops: Ops,
}

merged! {
    /// All requests of all phases.
    #[serde(deny_unknown_fields)]
    pub struct WholeRun {
        /// Counts of the requests by their end.
        pub ops: Tally,
        /// Bytes over the wire.
        pub bytes: Bytes,
    }
}

impl Measurement {
    /// An empty measurement of these groups.
    pub fn new(groups: impl IntoIterator<Item = String>, clock: Clock, timeout_ns: Nanos) -> Measurement {
        let group = |name| GroupMeasurement { name, ops: Ops::default() };
        let groups = groups.into_iter().map(group).collect();
        Measurement { schema: SCHEMA, clock, timeout_ns, groups, ..Measurement::default() }
    }

    /// Adds a slice that all workers have given their part of, to the measured figures and to the whole run. Beyond
    /// [`INTERVALS_KEPT_MAX`] slices, older neighbours are merged; the last slice stays as it is.
    ///
    /// # Panics
    /// Panics when the slice has other groups than the measurement.
    pub fn add(&mut self, interval: &mut Interval, keep: Keep) {
        assert_eq!(self.groups.len(), interval.groups.len(), "the slice has the groups of the measurement");
        for (group, recorder) in self.groups.iter_mut().zip(&mut interval.groups) {
            group.ops.merge(recorder.ops());
            self.whole_run.ops.add(recorder.ops());
        }
        for (number, recorder) in &mut interval.parts {
            self.part(*number).merge(recorder.ops());
        }
        self.counters.merge(&interval.counters);
        self.whole_run.bytes.merge(&interval.counters.bytes);
        self.side_times.merge(&interval.side_times);
        let slice = Slice::of(interval, self.timeout_ns, keep);
        let at = self.intervals.partition_point(|present| present.index < slice.index);
        self.intervals.insert(at, slice);
        self.merge_neighbours(INTERVALS_KEPT_MAX);
    }

    /// Merges slices until there are at most `limit`, at least 3: again and again the two neighbours that are the shortest
    /// together, and of several such pairs the first, so that all slices grow alike. The last slice stays as it is.
    fn merge_neighbours(&mut self, limit: usize) {
        while self.intervals.len() > limit {
            let older = &self.intervals[..self.intervals.len() - 1];
            let length_ns = |pair: &[Slice]| pair[1].end_ns.saturating_sub(pair[0].start_ns);
            let pairs = older.windows(2).enumerate();
            let Some((at, _)) = pairs.min_by_key(|(_, pair)| length_ns(pair)) else { return };
            let later = self.intervals.remove(at + 1);
            self.intervals[at].merge(&later, self.timeout_ns);
            self.intervals_merged += 1;
        }
    }

    /// The requests that were due in a part of the phase.
    fn part(&mut self, number: usize) -> &mut Ops {
        if self.parts.len() <= number {
            self.parts.resize_with(number + 1, Ops::default);
        }
        &mut self.parts[number]
    }

    /// The records of each verb of each group, for callers that only add counts or sums up: [`Measurement::ops`] merges
    /// histograms.
    pub fn op_records(&self) -> impl Iterator<Item = &OpRecord> {
        self.groups.iter().flat_map(|group| group.ops.iter().map(|(_, op)| op))
    }

    /// The requests of all groups together.
    pub fn ops(&self) -> Cow<'_, Ops> {
        if let [group] = self.groups.as_slice() {
            return Cow::Borrowed(&group.ops);
        }
        let mut together = Ops::default();
        self.groups.iter().for_each(|group| together.merge(&group.ops));
        Cow::Owned(together)
    }

    /// Marks the run as not complete; the worst status and its reason stay.
    pub fn mark(&mut self, status: Status, reason: Reason) {
        if status > self.status {
            self.status = status;
            self.reason = Some(reason);
        }
    }

    /// Counts a message that a server sent with an error.
    pub fn message(&mut self, message: &[u8], count: u64) {
        count_message(&mut self.messages, message, count);
    }

    /// Counts messages of this name that a server sent without being asked.
    pub fn push(&mut self, name: &[u8], count: u64) {
        count_message(&mut self.pushes, name, count);
    }

    /// Adds the measurement of another part of the same run at the same time: another worker, or another machine.
    ///
    /// Everything merges exactly but for the quantiles of slices that were saved without histograms: those are dropped,
    /// since there is no way to merge them.
    ///
    /// # Panics
    /// Panics when `other` has other groups.
    pub fn merge(&mut self, other: &Measurement) {
        let numbers = match (&mut self.cluster, &other.cluster) {
            (Some(own), Some(more)) => own.merge(more),
            (own, more) => {
                *own = own.take().or_else(|| more.clone());
                Vec::new()
            }
        };
        if !(0..).zip(&numbers).all(|(place, number)| *number == Some(place)) {
            // Which nodes the slices speak of depends on the process.
            let mut other = Measurement { cluster: None, ..other.clone() };
            other.side_times.servers = renumbered(&other.side_times.servers, &numbers);
            other.connections.renumber(&numbers);
            let slices = self.intervals.iter_mut().chain(&mut other.intervals);
            slices.for_each(|slice| slice.servers.clear());
            return self.merge(&other);
        }
        let names = |of: &Measurement| of.groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(self), names(other), "only parts of one run are merged");
        if let Some(reason) = &other.reason {
            self.mark(other.status, reason.clone());
        }
        self.started_unix_ns = match (self.started_unix_ns, other.started_unix_ns) {
            (0, known) | (known, 0) => known,
            (one, another) => one.min(another),
        };
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.answered_ns = self.answered_ns.max(other.answered_ns);
        self.unix_socket |= other.unix_socket;
        self.warm_up = self.warm_up.or(other.warm_up);
        for (group, more) in self.groups.iter_mut().zip(&other.groups) {
            group.ops.merge(&more.ops);
        }
        self.parts.merge(&other.parts);
        self.merge_intervals(&other.intervals);
        self.intervals_merged += other.intervals_merged;
        join(&mut self.windows, &other.windows, Windows::merge);
        self.counters.merge(&other.counters);
        self.side_times.merge(&other.side_times);
        self.samples.merge(&other.samples);
        self.recording_rows = self.recording_rows.or(other.recording_rows);
        join(&mut self.replayed, &other.replayed, Replayed::merge);
        self.baseline.merge(&other.baseline);
        self.load.merge(&other.load);
        self.connections.merge(&other.connections);
        self.udp.merge(&other.udp);
        self.verify.merge(&other.verify);
        self.noreply_errors += other.noreply_errors;
        merge_messages(&mut self.messages, &other.messages);
        merge_messages(&mut self.pushes, &other.pushes);
        self.failed_keys.merge(&other.failed_keys);
        self.flight.merge(&other.flight);
        self.generator.merge(&other.generator);
        self.whole_run.merge(&other.whole_run);
        if let Some(more) = &other.evidence {
            self.evidence.get_or_insert_default().merge(more);
        }
        self.machines.extend(other.machines.iter().cloned());
    }

    fn merge_intervals(&mut self, others: &[Slice]) {
        for other in others {
            match self.intervals.binary_search_by_key(&other.index, |slice| slice.index) {
                Ok(at) => self.intervals[at].merge(other, self.timeout_ns),
                Err(at) => self.intervals.insert(at, other.clone()),
            }
        }
    }
}

/// The notice that the user of a run gets once when its slices are merged; a sentence without its full stop.
pub fn intervals_merged_notice() -> String {
    format!(
        "the run has more than {INTERVALS_KEPT_MAX} intervals: neighbours become one in the result, and lose their quantiles \
         where no histograms are kept"
    )
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ClusterNode;
    use crate::connections::{FirstTrouble, TroubleKind};
    use crate::counters::Turns;
    use crate::histogram::CoarseHistogram;
    use crate::parts::{ServerRecord, SlicePart};
    use crate::recorder::{Counts, Sample, Span};
    use pummel_logic::protocol::{Fault, Outcome, Verb};
    use pummel_logic::time::{MILLISECOND, SECOND};
    use pummel_logic::workload::verify::check::Damage;

    fn sample(service: Nanos) -> Sample {
        Sample {
            verb: if service.is_multiple_of(3) { Verb::Set } else { Verb::Get },
            outcome: Outcome::Ok,
            keys: 1,
            hits: 0,
            due: 0,
            ready: service / 7,
            sent: service / 5,
            arrived: service,
            read: service + 11,
            noreply: false,
        }
    }

    fn interval(index: u64, services: &[Nanos]) -> Interval {
        let mut interval = Interval::new([[Verb::Get, Verb::Set], [Verb::Get, Verb::Set]]);
        interval.restart(index, index * SECOND);
        interval.end_ns = (index + 1) * SECOND;
        for service in services {
            interval.groups[(*service % 2) as usize].record(&sample(*service));
        }
        interval.groups[0].counts(Verb::Get).unfinished += 1;
        interval.counters.bytes = Bytes { sent: 100, received: services.len() as u64 };
        interval.counters.turns =
            Turns { turns: 5, busy_ns: 4, stalls: 1, stalled_ns: 2, ..Turns::default() };
        interval
    }

    fn empty() -> Measurement {
        Measurement::new(["one".to_owned(), "two".to_owned()], Clock::Kernel, SECOND)
    }

    /// A part of a run that has something in every field.
    fn part(seed: u64, keep: Keep) -> Measurement {
        let mut part = empty();
        for index in 0..3 {
            let services: Vec<Nanos> =
                (1..50).map(|i| (i * seed * (index + 1) * 7_919) % (80 * MILLISECOND)).collect();
            part.add(&mut interval(index, &services), keep);
        }
        part.started_unix_ns = 1_000 + seed;
        part.measured_ns = 3 * SECOND;
        let mut load = LoadResult {
            records: 10,
            stored: 9,
            errors: 1,
            elapsed_ns: seed,
            bytes: 1_000,
            ..LoadResult::default()
        };
        load.message(b"SERVER_ERROR object too large for cache", 1);
        part.load = Some(load);
        part.connections.asked = 25;
        part.connections.connect.record(seed * 1_000);
        part.connections.handshake.record(seed * 500);
        part.connections.resumed = seed;
        part.verify.checked = 100;
        part.verify.fail(format!("key{seed}").as_bytes(), Damage::Bytes);
        part.verify.fail(b"common", Damage::Length);
        part.message(b"SERVER_ERROR out of memory", seed);
        part.generator.workers.push(WorkerTime { busy_ns: seed, wall_ns: 100 });
        part.generator.peak_rss_bytes = seed;
        part.flight = FlightTime { requests: seed, area_ns: 7 * u128::from(seed), ..FlightTime::default() };
        part.whole_run.ops.record(&sample(3));
        part
    }

    fn merged(parts: &[Measurement]) -> Measurement {
        let mut merged = empty();
        parts.iter().for_each(|part| merged.merge(part));
        merged
    }

    #[test]
    fn a_saved_measurement_loads_to_an_equal_one() {
        for keep in [Keep::Figures, Keep::Histograms] {
            let mut measurement = part(5, keep);
            measurement.mark(Status::Partial, Reason::TraceTaken { rows: 1 });
            let text = serde_json::to_string(&measurement).unwrap();
            assert_eq!(serde_json::from_str::<Measurement>(&text).unwrap(), measurement);
        }
    }

    #[test]
    fn the_parts_of_a_clusters_nodes_are_added_by_the_names_of_the_nodes() {
        let of = |names: &[&str]| {
            let mut part = part(1, Keep::Figures);
            let node = |name: &&str| ClusterNode {
                name: (*name).to_owned(),
                slots: 1,
                is_replica: false,
                joined: false,
            };
            part.cluster =
                Some(ClusterSeen { nodes: names.iter().map(node).collect(), ..ClusterSeen::default() });
            for (number, _) in (1..).zip(names) {
                part.side_times.servers.push(ServerRecord { completed: number, ..ServerRecord::default() });
                part.connections.connect_by_server.push(CoarseHistogram::default());
            }
            part.intervals[0].servers = vec![SlicePart::default()];
            part.connections.trouble = Some(FirstTrouble { server: 1, kind: TroubleKind::Refused });
            part
        };
        let mut whole = empty();
        whole.merge(&of(&["a:1", "a:2"]));
        whole.merge(&of(&["a:1", "a:2", "a:3"]));
        let completed = |whole: &Measurement| {
            whole.side_times.servers.iter().map(|server| server.completed).collect::<Vec<_>>()
        };
        assert_eq!(completed(&whole), [2, 4, 3]);
        assert!(!whole.intervals[0].servers.is_empty());
        let requests = whole.ops().all().counts;
        whole.connections.trouble = None;
        whole.merge(&of(&["a:2", "a:9", "a:1"]));
        assert_eq!(completed(&whole), [5, 5, 3, 2]);
        assert_eq!(whole.connections.trouble.map(|trouble| trouble.server), Some(3));
        assert_eq!(whole.connections.connect_by_server.len(), 4);
        assert!(whole.intervals[0].servers.is_empty(), "slices do not say whose numbers they have");
        assert_eq!(whole.ops().all().counts.requests(), requests.requests() / 2 * 3);
    }

    #[test]
    fn the_order_and_the_grouping_of_merging_do_not_matter() {
        let parts = [1, 2, 3].map(|seed| part(seed, Keep::Histograms));
        let flat = merged(&parts);
        let nested = merged(&[parts[0].clone(), merged(&parts[1..])]);
        assert_eq!(flat, nested);
        let mut backward = merged(&[parts[2].clone(), parts[1].clone(), parts[0].clone()]);
        // Lists keep the order of merging; everything else is the same.
        backward.generator.workers.reverse();
        backward.verify.first.clone_from(&flat.verify.first);
        assert_eq!(flat, backward);
    }

    #[test]
    fn slices_merged_later_equal_slices_merged_before_they_were_added() {
        let (one, another): (Vec<Nanos>, Vec<Nanos>) = ((1..40).map(|i| i * 1_013).collect(), vec![7; 90]);
        let mut early = interval(0, &one);
        early.merge(&mut interval(0, &another));
        let mut expected = empty();
        expected.add(&mut early, Keep::Histograms);
        let mut parts = [empty(), empty()];
        parts[0].add(&mut interval(0, &one), Keep::Histograms);
        parts[1].add(&mut interval(0, &another), Keep::Histograms);
        assert_eq!(merged(&parts), expected);
    }

    #[test]
    fn quantiles_of_slices_without_histograms_are_dropped_and_the_rest_stays_exact() {
        let parts = [1, 2].map(|seed| part(seed, Keep::Figures));
        let without = merged(&parts);
        let with = merged(&[1, 2].map(|seed| part(seed, Keep::Histograms)));
        for (slice, exact) in without.intervals.iter().zip(&with.intervals) {
            for (op, exact) in slice.ops.values().zip(exact.ops.values()) {
                assert_eq!(op.counts, exact.counts);
                for (figures, exact) in op.figures.iter().zip(&exact.figures) {
                    assert_eq!((figures.exact, figures.max), (exact.exact, exact.max));
                    assert!(figures.quantiles.iter().all(|quantile| quantile.known().is_none()));
                }
            }
        }
    }

    #[test]
    fn the_slices_together_are_the_total_and_part_of_the_whole_run() {
        let mut measurement = empty();
        let mut loading = Tally::default();
        loading.record(&sample(9));
        for index in 0..4 {
            measurement.add(&mut interval(index, &[1, 2, 3, 4, 5]), Keep::Figures);
        }
        measurement.whole_run.ops.merge(&loading);
        let mut slices = Counts::default();
        measurement.intervals.iter().for_each(|slice| slices.merge(&slice.counts()));
        assert_eq!(measurement.ops().all().counts, slices);
        assert_eq!(slices.requests(), 4 * 6);
        assert_eq!(measurement.whole_run.ops.all().requests(), 4 * 6 + 1);
        assert_eq!(measurement.counters.bytes, Bytes { sent: 400, received: 20 });
        assert_eq!(measurement.counters.turns.stalls, 4);
    }

    #[test]
    fn slices_that_come_late_find_their_place() {
        let mut measurement = empty();
        for index in [0, 2, 1] {
            measurement.add(&mut interval(index, &[5]), Keep::Figures);
        }
        let order: Vec<u64> = measurement.intervals.iter().map(|slice| slice.index).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    /// A measurement of this many slices of a second, one request with each service time in each, of which `limit` are
    /// kept.
    fn limited(slices: u64, limit: usize, keep: Keep) -> Measurement {
        let mut measurement = empty();
        for index in 0..slices {
            measurement.add(&mut interval(index, &[5, 50]), keep);
            measurement.merge_neighbours(limit);
        }
        measurement
    }

    #[test]
    fn slices_beyond_the_limit_are_merged_with_their_neighbours_and_nothing_is_lost() {
        for slices in [3, 4, 8, 9, 17, 200] {
            let measurement = limited(slices, 8, Keep::Figures);
            let kept = &measurement.intervals;
            assert_eq!(kept.len() as u64, slices.min(8));
            assert_eq!(measurement.intervals_merged, slices - slices.min(8));
            assert_eq!((kept[0].start_ns, kept[kept.len() - 1].end_ns), (0, slices * SECOND));
            assert!(kept.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "no gap, no overlap");
            assert_eq!(kept[kept.len() - 1].length_ns(), SECOND, "the last slice stays as it is");
            let mut counts = Counts::default();
            kept.iter().for_each(|slice| counts.merge(&slice.counts()));
            assert_eq!(counts, measurement.ops().all().counts);
            let longest = kept.iter().map(Slice::length_ns).max().unwrap();
            assert!(longest <= 4 * SECOND * slices.div_ceil(8), "{longest} ns of {slices} s");
        }
    }

    #[test]
    fn merged_slices_keep_the_quantiles_of_which_the_histograms_are_kept() {
        let known = |keep| {
            let measurement = limited(40, 8, keep);
            let get = &measurement.intervals[0].ops[&Verb::Get];
            get.figures[Span::Service as usize].quantiles.iter().any(|quantile| quantile.known().is_some())
        };
        assert!(known(Keep::Histograms));
        assert!(!known(Keep::Figures));
    }

    #[test]
    fn a_measurement_keeps_so_many_slices_and_no_more() {
        let mut measurement = empty();
        let most = INTERVALS_KEPT_MAX as u64;
        let mut slice = interval(0, &[]);
        for index in 0..most + 3 {
            slice.restart(index, index * SECOND);
            slice.end_ns = (index + 1) * SECOND;
            measurement.add(&mut slice, Keep::Figures);
        }
        assert_eq!((measurement.intervals.len(), measurement.intervals_merged), (INTERVALS_KEPT_MAX, 3));
        assert!(intervals_merged_notice().contains("more than 4096 intervals"));
    }

    #[test]
    fn the_worst_status_stays_with_its_first_reason() {
        let mut measurement = empty();
        let taken = |rows| Reason::TraceTaken { rows };
        measurement.mark(Status::Partial, taken(1));
        measurement.mark(Status::Partial, taken(2));
        assert_eq!((measurement.status, &measurement.reason), (Status::Partial, &Some(taken(1))));
        measurement.mark(Status::Interrupted, Reason::Interrupted);
        measurement.mark(Status::Partial, taken(3));
        assert_eq!(
            (measurement.status, measurement.reason),
            (Status::Interrupted, Some(Reason::Interrupted))
        );
    }

    #[test]
    fn messages_are_bounded() {
        let mut measurement = empty();
        for i in 0..100 {
            measurement.message(format!("CLIENT_ERROR {i}").as_bytes(), 1);
            measurement.message(b"CLIENT_ERROR 0", 1);
        }
        assert_eq!(measurement.messages.len(), MESSAGES_KEPT);
        assert_eq!(measurement.messages["CLIENT_ERROR 0"], 101);
    }

    #[test]
    fn words_of_a_server_cannot_do_anything_to_a_terminal() {
        let mut measurement = empty();
        measurement.message(b"CLIENT_ERROR \x1b[2J\xff", 1);
        assert_eq!(measurement.messages.keys().next().unwrap(), "CLIENT_ERROR \u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn a_slice_with_unanswered_requests_does_not_know_its_greatest_time() {
        let mut slice = interval(0, &[2, 4]);
        slice.groups[1].record(&Sample { outcome: Outcome::Error(Fault::Timeout), ..sample(2) });
        let mut measurement = empty();
        measurement.add(&mut slice, Keep::Figures);
        let get = &measurement.intervals[0].ops[&Verb::Get];
        assert_eq!(get.figures[Span::Response as usize].max.known(), None);
        assert_eq!(get.counts.requests(), 4);
    }
}
