//! The record of requests by verb: counts, and a histogram of each span.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::histogram::{CellSums, Histogram, rank};
use crate::sample::Span;
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

/// The five histograms of a verb, by [`Span`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times(pub(super) [Histogram; Span::COUNT]);

/// The record of the requests of one verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpRecord {
    /// Counts of the requests by their end.
    pub counts: Counts,
    /// The times of the requests. Response, service and reaction are those of completed requests with an answer; wait and
    /// lag those of all that were sent.
    pub times: Times,
    /// The lag of completed requests with an answer, summed by coarse cell of their response.
    #[serde(default, skip_serializing_if = "CellSums::is_zero")]
    pub lag_by_response: CellSums,
    /// The wait of completed requests with an answer, summed by coarse cell of their response.
    #[serde(default, skip_serializing_if = "CellSums::is_zero")]
    pub wait_by_response: CellSums,
}

/// Anatomy of the responses of a coarse cell: sums over its requests, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnatomyCell {
    /// The least response of the cell.
    pub lowest: Nanos,
    /// The greatest response of the cell.
    pub highest: Nanos,
    /// Number of requests.
    pub count: u64,
    /// Sum of the waits of the requests.
    pub wait_ns: f64,
    /// Sum of the lags of the requests.
    pub lag_ns: f64,
    /// Sum of the service times of the requests.
    pub service_ns: f64,
}

/// The record of requests, by verb. Verbs without requests may be absent.
#[derive(Clone, Debug, Default)]
pub struct Ops(pub(super) [Option<Box<OpRecord>>; Verb::COUNT]);

impl Times {
    /// Times from these histograms, by [`Span`].
    pub fn of_histograms(histograms: [Histogram; Span::COUNT]) -> Times {
        Times(histograms)
    }

    /// The histogram of one span.
    pub fn of(&self, span: Span) -> &Histogram {
        &self.0[span as usize]
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Times) {
        for (histogram, more) in self.0.iter_mut().zip(&other.0) {
            histogram.merge(more);
        }
    }

    /// Takes the memory of all histograms.
    pub(super) fn reserve(&mut self) {
        self.0.iter_mut().for_each(Histogram::reserve);
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(Histogram::clear);
    }
}

impl OpRecord {
    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &OpRecord) {
        self.counts.merge(&other.counts);
        self.times.merge(&other.times);
        self.lag_by_response.merge(&other.lag_by_response);
        self.wait_by_response.merge(&other.wait_by_response);
    }

    /// Anatomy of the responses, by coarse cell: the sums of wait and lag of those very requests, and service as the
    /// rest. Empty where there was no request, and for results that are older than the sums.
    pub fn anatomy(&self) -> Vec<AnatomyCell> {
        let responses = self.times.of(Span::Response);
        let is_missing =
            |sums: &CellSums, span: Span| sums.is_zero() && self.times.of(span).moments().sum > 0;
        if is_missing(&self.lag_by_response, Span::Lag) || is_missing(&self.wait_by_response, Span::Wait) {
            return Vec::new();
        }
        let lags = self.lag_by_response.beside(responses);
        let waits = self.wait_by_response.beside(responses);
        let cells = lags.iter().zip(&waits).map(|(lag, wait)| {
            // The sum of the responses is that of the middles of fine cells, so that parts may be some 0.1 % more.
            let wait_ns = (wait.beside as f64).min(lag.sum);
            let lag_ns = (lag.beside as f64).min(lag.sum - wait_ns);
            let service_ns = lag.sum - wait_ns - lag_ns;
            AnatomyCell {
                lowest: lag.lowest,
                highest: lag.highest,
                count: lag.count,
                wait_ns,
                lag_ns,
                service_ns,
            }
        });
        cells.collect()
    }

    /// Whether the lag is known by response: it is not for results that are older than these sums.
    pub fn keeps_lag(&self) -> bool {
        !self.lag_by_response.is_zero() || self.times.of(Span::Lag).moments().sum == 0
    }

    /// The share of lag, from 0 to 1, in the responses that are within 13 % of `value`; `None` where there is none.
    pub fn lag_share_near(&self, value: Nanos) -> Option<f64> {
        self.lag_by_response.share_near(self.times.of(Span::Response), value)
    }

    /// The share of lag, from 0 to 1, in the responses near the quantile of the response: from the same requests, which
    /// are those whose response is within 13 % of the quantile. `None` when the quantile falls among requests without an
    /// answer, when there was no request, and for results that are older than these sums.
    pub fn lag_share(&self, quantile: f64) -> Option<f64> {
        let responses = self.times.of(Span::Response);
        let unanswered = self.counts.unanswered();
        let value = responses.at_rank(rank(quantile, responses.count() + unanswered))?;
        if self.keeps_lag() { self.lag_share_near(value) } else { None }
    }
}

impl Ops {
    /// The verbs with requests, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, &OpRecord)> {
        let present = Verb::ALL.into_iter().zip(&self.0);
        present.filter_map(|(verb, op)| Some((verb, op.as_deref().filter(|op| op.counts.requests() > 0)?)))
    }

    /// The record of one verb; `None` where no request had it.
    pub fn get(&self, verb: Verb) -> Option<&OpRecord> {
        self.0[verb as usize].as_deref()
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Ops) {
        for (verb, op) in other.iter() {
            self.add(verb, op);
        }
    }

    /// Adds requests of one verb.
    pub fn add(&mut self, verb: Verb, op: &OpRecord) {
        self.entry(verb).merge(op);
    }

    /// All verbs together.
    pub fn all(&self) -> OpRecord {
        let mut all = OpRecord::default();
        self.iter().for_each(|(_, op)| all.merge(op));
        all
    }

    /// The counts of all verbs together.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.iter().for_each(|(_, op)| all.merge(&op.counts));
        all
    }

    #[inline]
    pub(super) fn entry(&mut self, verb: Verb) -> &mut OpRecord {
        self.0[verb as usize].get_or_insert_with(Ops::begin)
    }

    /// Allocates the record of a verb. It is not inlined, so that recording stays small.
    #[cold]
    #[inline(never)]
    fn begin() -> Box<OpRecord> {
        Box::default()
    }

    pub(super) fn clear(&mut self) {
        for op in self.0.iter_mut().flatten() {
            op.counts = Counts::default();
            op.times.clear();
            op.lag_by_response.clear();
            op.wait_by_response.clear();
        }
    }
}

impl PartialEq for Ops {
    fn eq(&self, other: &Ops) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Ops {}

impl Serialize for Ops {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ops {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ops, D::Error> {
        let saved = BTreeMap::<Verb, Box<OpRecord>>::deserialize(deserializer)?;
        let mut ops = Ops::default();
        for (verb, op) in saved {
            ops.0[verb as usize] = Some(op);
        }
        Ok(ops)
    }
}
