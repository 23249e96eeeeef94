//! Requests: all together, by operation, by group, by interval, and of the whole run.

use std::collections::BTreeMap;

use pummel_logic::plan::Plan;
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::seconds;
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::certainty::Certainty;
use pummel_measure::histogram::{Histogram, NotAHistogram};
use pummel_measure::measurement::{Bytes, Measurement, Slice, SliceOp, SliceSketch};
use pummel_measure::recorder::{AnatomyCell, Counts, Ops, Span, Times};
use pummel_measure::summary::{Figures, GroupSummary, Totals};
use serde::{Deserialize, Serialize};

use super::asked::AskedRate;
use super::cache::CacheResult;
use super::figures::{FiveTimes, is_zero, micros, range_ends, rounded};
use super::named::Named;
use super::parts::{PartResult, SliceConnectionsResult, SliceGeneratorResult};
use crate::numbers::number;

/// All requests together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RequestTotals {
    /// Requests that were due.
    pub requests: u64,
    /// Requests that were answered without an error.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that were sent, and not answered at the end.
    pub unfinished: u64,
    /// Requests that were due, and never sent.
    pub unsent: u64,
    /// Number of the unsent requests that were not counted one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsent_estimated: u64,
    /// Late requests that the plan left out, as mutilate's `-S` does; they are not among `requests`. Absent
    /// where the plan does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Number of the skipped requests that were not counted one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped_estimated: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// Ends of the interval of the rate; null where it is not known how sure the rate is.
    pub rate_ci: Option<[f64; 2]>,
    /// Keys of the completed requests per second; absent where each of them has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys_rate: Option<f64>,
    /// The times of the requests.
    #[serde(flatten)]
    pub times: FiveTimes,
}

impl RequestTotals {
    pub(super) fn of(totals: &Totals) -> RequestTotals {
        let counts = &totals.counts;
        let has_many = counts.completed > 0 && counts.keys > counts.completed;
        let keys_rate = || rounded(totals.rate * counts.keys as f64 / counts.completed as f64);
        RequestTotals {
            requests: totals.counts.requests(),
            completed: totals.counts.completed,
            errors: totals.counts.failed(),
            unfinished: totals.counts.unfinished,
            unsent: totals.counts.unsent,
            unsent_estimated: totals.counts.unsent_estimated,
            skipped: None,
            skipped_estimated: 0,
            rate: rounded(totals.rate),
            rate_ci: totals.certainty.as_ref().and_then(|certainty| certainty.rate).map(range_ends),
            keys_rate: has_many.then(keys_rate),
            times: FiveTimes::of(&totals.figures, totals.certainty.as_ref()),
        }
    }

    /// Requests that ended: completed, or failed.
    pub fn ended(&self) -> u64 {
        self.completed.saturating_add(self.errors)
    }

    /// The keys of the completed requests in words; `None` where each of them has one.
    pub fn keys_words(&self) -> Option<String> {
        let keys_rate = self.keys_rate?;
        let each = if self.rate > 0.0 { keys_rate / self.rate } else { 0.0 };
        Some(format!("{}/s, {} in each request on average", number(keys_rate), number(each)))
    }

    /// These requests with those that were left out because they were late.
    pub(super) fn with_skipped(self, skipped: Option<u64>, skipped_estimated: u64) -> RequestTotals {
        RequestTotals { skipped, skipped_estimated, ..self }
    }
}

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OpResult {
    /// Requests that were due.
    pub requests: u64,
    /// Requests that were answered without an error.
    pub completed: u64,
    /// Keys of the completed requests.
    pub keys: u64,
    /// Keys that reads found.
    pub hits: u64,
    /// Keys that reads did not find. A read that finds only the empty item that `--vivify` made is a miss.
    pub misses: u64,
    /// Misses by cause, bytes of values and stores after misses; absent where misses are not told apart, and of commands of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheCounts>,
    /// Ends of the interval of the share of hits; absent where nothing was read, and where it is not known how sure it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_share_ci: Option<[f64; 2]>,
    /// Outcomes of the completed requests but for reads, which `hits` and `misses` count by key: `stored`,
    /// `not_stored`, `exists`, `not_found`, `conflict` (a transaction whose watched keys another client changed), `deleted`, `touched`,
    /// `number` (incr, decr) or `ok` (anything else, and requests without a reply). `stale`, `win` and `recaching` are reads of memcached's meta protocol
    /// that found a stale value, won the right to renew it (a set or cas by the same client follows), or found
    /// that another client renews it.
    pub outcomes: Named<u64>,
    /// Failed requests, by kind: `server`, `client`, `protocol`, `timeout`, `refused`, `reset`, `closed`,
    /// `moved`, `abandoned`, `down`, `again` or `unexpected`. A read for a cas that returns an item without a CAS unique is a `server` error,
    /// and no cas follows it.
    pub errors: Named<u64>,
    /// Requests that were sent, and not answered at the end.
    pub unfinished: u64,
    /// Requests that were due, and never sent.
    pub unsent: u64,
    /// Number of the unsent requests that were not counted one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsent_estimated: u64,
    /// The times of the requests.
    #[serde(flatten)]
    pub times: FiveTimes,
    /// The whole histograms in nanoseconds, by the name of the time, in HdrHistogram's V2 encoding, compressed,
    /// in base64. Of requests that were not completed they hold wait and lag only.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub histograms: Named<String>,
}

impl OpResult {
    /// The share of the keys that were read and found, in percent; `-` where none was read.
    pub fn hit_percent(&self) -> String {
        match self.hits.saturating_add(self.misses) {
            0 => "-".to_owned(),
            keys => format!("{:.1}", 100.0 * self.hits as f64 / keys as f64),
        }
    }

    pub(super) fn of(
        counts: &Counts,
        figures: Option<(&[Figures; Span::COUNT], Option<&Certainty>)>,
        histograms: Named<String>,
    ) -> OpResult {
        let certainty = figures.and_then(|(_, certainty)| certainty);
        let times = figures.map(|(figures, certainty)| FiveTimes::of(figures, certainty));
        OpResult {
            requests: counts.requests(),
            completed: counts.completed,
            keys: counts.keys,
            hits: counts.hits,
            misses: counts.misses,
            cache: Some(counts.cache).filter(|counts| !counts.is_zero()),
            hit_share_ci: certainty.and_then(|certainty| certainty.hit_share).map(range_ends),
            outcomes: counts.outcomes.named().into_iter().collect(),
            errors: Fault::ALL.map(|fault| (fault.name(), counts.errors(fault))).into_iter().collect(),
            unfinished: counts.unfinished,
            unsent: counts.unsent,
            unsent_estimated: counts.unsent_estimated,
            times: times.unwrap_or_default(),
            histograms,
        }
    }

    /// An operation from counts, without times.
    pub fn of_counts(counts: &Counts) -> OpResult {
        OpResult::of(counts, None, Named::default())
    }

    /// Failed requests of all kinds.
    pub fn failed(&self) -> u64 {
        self.errors.iter().map(|(_, count)| count).sum()
    }

    /// Requests that never got an answer: failed without one, unfinished, unsent.
    pub fn unanswered(&self) -> u64 {
        let silent = Fault::ALL.into_iter().filter(|fault| fault.unanswered());
        let silent = silent.filter_map(|fault| self.errors.get(fault.name())).sum::<u64>();
        silent + self.unfinished + self.unsent
    }

    /// The whole histogram of a time in nanoseconds; `None` where the result has none.
    /// The inner error says that the text in the result is no histogram.
    pub fn histogram(&self, span: Span) -> Option<Result<Histogram, NotAHistogram>> {
        self.histograms.get(span.name()).map(|text| Histogram::from_base64(text))
    }
}

/// Whether an operation of this name looks keys up, so that it has hits and misses. Of a command of the user, the replies show it.
pub fn reads(name: &str, op: &OpResult) -> bool {
    reads_records(name) || op.hits > 0 || op.misses > 0
}

/// Whether an operation of this name reads the values of records.
pub fn reads_records(name: &str) -> bool {
    Verb::from_name(name).is_some_and(Verb::reads)
}

/// Operations, as the plan calls them, in the order of reports.
pub type OpsResult = Named<OpResult>;

pub(super) fn ops_of(plan: &Plan, totals: &[(Verb, Totals)], ops: &Ops) -> OpsResult {
    let each = totals.iter().map(|(verb, totals)| {
        let histograms = ops.get(*verb).map(|op| encoded(&op.times)).unwrap_or_default();
        let figures = (&totals.figures, totals.certainty.as_ref());
        (plan.name_of(*verb), OpResult::of(&totals.counts, Some(figures), histograms))
    });
    each.collect()
}

fn ops_of_slice(plan: &Plan, ops: &BTreeMap<Verb, Box<SliceOp>>) -> OpsResult {
    let each = ops.iter().map(|(verb, op)| {
        let names = Span::ALL.into_iter().map(Span::name);
        let histograms = op.histograms.iter().flat_map(|texts| names.clone().zip(texts.iter().cloned()));
        let figures = Some((&op.figures, None));
        (plan.name_of(*verb), OpResult::of(&op.counts, figures, histograms.collect()))
    });
    each.collect()
}

/// The five histograms of an operation, encoded.
fn encoded(times: &Times) -> Named<String> {
    Span::ALL.into_iter().map(|span| (span.name(), times.of(span).to_base64())).collect()
}

/// The requests of one group of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GroupResult {
    /// Name of the group.
    pub name: String,
    /// All requests of the group.
    pub totals: RequestTotals,
    /// The requests of the group by operation.
    pub ops: OpsResult,
}

impl GroupResult {
    pub(super) fn of(plan: &Plan, group: &GroupSummary, ops: &Ops) -> GroupResult {
        let ops = ops_of(plan, &group.ops, ops);
        GroupResult { name: group.name.clone(), totals: RequestTotals::of(&group.totals), ops }
    }
}

/// What the responses of a coarse cell consist of: sums over its requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AnatomyResult {
    /// The least response of the cell.
    pub from_us: f64,
    /// The greatest response of the cell.
    pub to_us: f64,
    /// Number of requests.
    pub count: u64,
    /// Sum of their wait.
    pub wait_us: f64,
    /// Sum of their lag.
    pub lag_us: f64,
    /// Sum of their service.
    pub service_us: f64,
}

impl AnatomyResult {
    pub(super) fn of(cell: &AnatomyCell) -> AnatomyResult {
        AnatomyResult {
            from_us: micros(cell.lowest as f64),
            to_us: micros(cell.highest as f64),
            count: cell.count,
            wait_us: micros(cell.wait_ns),
            lag_us: micros(cell.lag_ns),
            service_us: micros(cell.service_ns),
        }
    }
}

/// A slice of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct IntervalResult {
    /// Beginning, in seconds from the beginning of the measured phase.
    pub at_s: f64,
    /// Length in seconds. The last interval includes the drain, and may be longer than `seconds` of the run.
    pub seconds: f64,
    /// Completed requests per second.
    pub rate: f64,
    /// Requests per second that were due in the slice by the plan, none in the drain; absent if the load does not
    /// change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<f64>,
    /// The requests that ended in the slice, by operation.
    pub ops: OpsResult,
    /// The cache as its clients saw it; absent where misses are not told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// Bytes over the wire.
    pub bytes: Bytes,
    /// Stalls of the generator.
    pub stalls: u64,
    /// The times of all operations in few cells; absent in older results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sketch: Option<SliceSketch>,
    /// Changes of connections; absent if all connections of the run stayed open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<SliceConnectionsResult>,
    /// The generator; absent in older results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<SliceGeneratorResult>,
    /// The share of each process of a distributed run in the slice, in the order of `agents.members`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<PartResult>,
    /// The share of each of several servers in the slice, in the order of `servers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<PartResult>,
}

impl IntervalResult {
    /// All slices of a measurement.
    pub(super) fn all_of(
        plan: &Plan,
        asked: Option<&AskedRate>,
        measurement: &Measurement,
    ) -> Vec<IntervalResult> {
        let connections = SliceConnectionsResult::all_of(measurement);
        let workers = measurement.generator.workers.len();
        let of = |(place, slice): (usize, &Slice)| {
            let connections = connections.get(place).copied();
            let generator = (workers > 0).then(|| SliceGeneratorResult::of(slice, workers));
            IntervalResult { connections, generator, ..IntervalResult::of(plan, asked, slice) }
        };
        measurement.intervals.iter().enumerate().map(of).collect()
    }

    fn of(plan: &Plan, asked: Option<&AskedRate>, slice: &Slice) -> IntervalResult {
        let ops = ops_of_slice(plan, &slice.ops);
        IntervalResult {
            at_s: seconds(slice.start_ns),
            seconds: seconds(slice.length_ns()),
            rate: rounded(slice_rate(slice)),
            asked: asked.map(|asked| rounded(asked.within(slice.start_ns, slice.end_ns))),
            cache: CacheResult::of(ops.iter().filter_map(|(_, op)| op.cache)),
            ops,
            bytes: slice.counters.bytes,
            stalls: slice.counters.turns.stalls,
            sketch: slice.sketch.clone(),
            connections: None,
            generator: None,
            agents: PartResult::all_of(&slice.members, slice.length_ns()),
            servers: PartResult::all_of(&slice.servers, slice.length_ns()),
        }
    }
}

/// Completed requests per second of a slice; 0 when it has no length.
pub fn slice_rate(slice: &Slice) -> f64 {
    let length_s = seconds(slice.length_ns());
    if length_s > 0.0 { slice.counts().completed as f64 / length_s } else { 0.0 }
}

/// Requests and bytes of all phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WholeRunResult {
    /// Counts by operation, without times.
    pub ops: OpsResult,
    /// Bytes over the wire.
    pub bytes: Bytes,
}

impl WholeRunResult {
    pub(super) fn of(plan: &Plan, measurement: &Measurement) -> WholeRunResult {
        let ops = measurement.whole_run.ops.iter();
        let ops =
            ops.map(|(verb, counts)| (plan.name_of(verb), OpResult::of(counts, None, Named::default())));
        WholeRunResult { ops: ops.collect(), bytes: measurement.whole_run.bytes }
    }
}
