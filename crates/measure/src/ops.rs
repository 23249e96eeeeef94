//! The record of requests by verb: counts, and a histogram of each span.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::histogram::{CellSums, Histogram, rank};
use crate::sample::Span;
use pummel_logic::merge::{Clear, Merge};
use pummel_logic::merged;
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

/// The five histograms of a verb, by [`Span`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times<H = Histogram>(pub(super) [H; Span::COUNT]);

merged! {
    /// The record of the requests of one verb. Its histograms are dense where they are recorded, and sparse on their way to another
    /// process.
    pub struct OpRecord<H = Histogram> {
        /// Counts of the requests by their end.
        pub counts: Counts,
        /// The times of the requests. Response, service and reaction are those of completed requests with an answer; wait and
        /// lag those of all that were sent.
        pub times: Times<H>,
        /// The lag of completed requests with an answer, summed by coarse cell of their response.
        #[serde(default, skip_serializing_if = "CellSums::is_zero")]
        pub lag_by_response: CellSums,
        /// The wait of completed requests with an answer, summed by coarse cell of their response.
        #[serde(default, skip_serializing_if = "CellSums::is_zero")]
        pub wait_by_response: CellSums,
    }
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
pub struct Ops<H = Histogram>(pub(super) [Option<Box<OpRecord<H>>>; Verb::COUNT]);

impl Times {
    /// Times from these histograms, by [`Span`].
    pub fn of_histograms(histograms: [Histogram; Span::COUNT]) -> Times {
        Times(histograms)
    }

    /// Takes the memory of all histograms.
    pub(super) fn reserve(&mut self) {
        self.0.iter_mut().for_each(Histogram::reserve);
    }
}

impl<H: Default> Times<H> {
    /// Times of responses alone.
    pub(super) fn of_response(response: H) -> Times<H> {
        Times([response, H::default(), H::default(), H::default(), H::default()])
    }
}

impl<H> Times<H> {
    /// The histogram of one span.
    pub fn of(&self, span: Span) -> &H {
        &self.0[span as usize]
    }
}

impl<H: Merge<G>, G> Merge<Times<G>> for Times<H> {
    fn merge(&mut self, other: &Times<G>) {
        self.0.merge(&other.0);
    }
}

impl<H: Clear> Clear for Times<H> {
    fn clear(&mut self) {
        self.0.clear();
    }
}

impl OpRecord {
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

impl<H> Ops<H> {
    /// The verbs with requests, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, &OpRecord<H>)> {
        let present = Verb::ALL.into_iter().zip(&self.0);
        present.filter_map(|(verb, op)| Some((verb, op.as_deref().filter(|op| op.counts.requests() > 0)?)))
    }

    /// The record of one verb; `None` where no request had it.
    pub fn get(&self, verb: Verb) -> Option<&OpRecord<H>> {
        self.0[verb as usize].as_deref()
    }

    /// The counts of all verbs together.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.iter().for_each(|(_, op)| all.merge(&op.counts));
        all
    }
}

impl Ops {
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
}

impl<H: Default> Ops<H> {
    #[inline]
    pub(super) fn entry(&mut self, verb: Verb) -> &mut OpRecord<H> {
        self.0[verb as usize].get_or_insert_with(Ops::begin)
    }

    /// Allocates the record of a verb. It is not inlined, so that recording stays small.
    #[cold]
    #[inline(never)]
    fn begin() -> Box<OpRecord<H>> {
        Box::default()
    }
}

impl<H: Merge<G> + Default, G> Merge<Ops<G>> for Ops<H> {
    fn merge(&mut self, other: &Ops<G>) {
        for (verb, op) in other.iter() {
            self.entry(verb).merge(op);
        }
    }
}

impl<H: Clear> Clear for Ops<H> {
    fn clear(&mut self) {
        self.0.clear();
    }
}

impl<H: PartialEq> PartialEq for Ops<H> {
    fn eq(&self, other: &Ops<H>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<H: Eq> Eq for Ops<H> {}

impl<H: Serialize> Serialize for Ops<H> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de, H: Deserialize<'de> + Default> Deserialize<'de> for Ops<H> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ops<H>, D::Error> {
        let saved = BTreeMap::<Verb, Box<OpRecord<H>>>::deserialize(deserializer)?;
        let mut ops = Ops::default();
        for (verb, op) in saved {
            ops.0[verb as usize] = Some(op);
        }
        Ok(ops)
    }
}
