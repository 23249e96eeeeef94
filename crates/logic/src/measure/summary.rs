//! From a measurement to the figures that reports print, and to the verdict on what limited the run.

use serde::{Deserialize, Serialize};

use crate::measure::histogram::{Histogram, Moments, rank};
use crate::measure::recorder::{Counts, Span};
use crate::time::Nanos;
use crate::wire::Fault;

/// The quantiles of every report, with their names.
pub const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// A quantile of requests of which some may never have been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    /// It is this.
    Known(Nanos),
    /// It falls among the requests without an answer: all that is known is that it is more than this.
    Above(Nanos),
    /// There was no request at all.
    Absent,
}

/// Requests that a histogram misses because they were never answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Given up after `timeout_ns`.
    pub timeouts: u64,
    /// Without an answer for another reason: refused, reset, closed, unfinished, unsent.
    pub others: u64,
    /// How long a timeout is.
    pub timeout_ns: Nanos,
}

/// What reports print of one histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// What is exact: count, least, greatest, mean and standard deviation of the answered requests.
    pub exact: Moments,
    /// The [`QUANTILES`], over answered and unanswered requests.
    pub quantiles: [Quantile; QUANTILES.len()],
    /// The greatest value of all; not known as soon as one request is without an answer.
    pub max: Quantile,
}

impl Quantile {
    /// The value, where it is known.
    pub fn known(self) -> Option<Nanos> {
        match self {
            Quantile::Known(value) => Some(value),
            Quantile::Above(_) | Quantile::Absent => None,
        }
    }
}

impl Unanswered {
    /// The unanswered among `counts`.
    pub fn of(counts: &Counts, timeout_ns: Nanos) -> Unanswered {
        let timeouts = counts.errors(Fault::Timeout);
        Unanswered { timeouts, others: counts.unanswered() - timeouts, timeout_ns }
    }

    fn total(&self) -> u64 {
        self.timeouts + self.others
    }
}

impl Figures {
    /// The figures of one histogram with the requests that it misses.
    ///
    /// A request without an answer took longer than any that has one; among those, the timed-out ones are counted as the
    /// longest. So quantile q is known exactly where the answered requests reach up to it, and where it is not known
    /// it is more than the greatest recorded value and, for response and service time, more than the timeout where it
    /// falls among the timeouts.
    pub fn of(span: Span, histogram: &Histogram, unanswered: &Unanswered) -> Figures {
        let total = histogram.count() + unanswered.total();
        let ranks = QUANTILES.map(|(_, quantile)| rank(quantile, total));
        let values = histogram.at_ranks(ranks);
        let above = |rank: u64| {
            let longest = histogram.moments().max;
            let among_timeouts = rank > histogram.count() + unanswered.others;
            if among_timeouts && matches!(span, Span::Response | Span::Service) {
                Quantile::Above(longest.max(unanswered.timeout_ns))
            } else {
                Quantile::Above(longest)
            }
        };
        let quantile = |rank: u64, value: Option<Nanos>| match value {
            Some(value) => Quantile::Known(value),
            None if total == 0 => Quantile::Absent,
            None => above(rank),
        };
        Figures {
            exact: histogram.moments(),
            quantiles: std::array::from_fn(|at| quantile(ranks[at], values[at])),
            max: quantile(total, histogram.at_rank(total)),
        }
    }

    /// Adds what is exact in `other`; the quantiles are lost, since quantiles do not merge.
    pub fn merge_exact(&mut self, other: &Figures) {
        self.exact.merge(&other.exact);
        self.quantiles = [Quantile::Absent; QUANTILES.len()];
        self.max = match (self.max, other.max) {
            (Quantile::Above(one), Quantile::Above(another) | Quantile::Known(another))
            | (Quantile::Known(one), Quantile::Above(another)) => Quantile::Above(one.max(another)),
            (Quantile::Known(one), Quantile::Known(another)) => Quantile::Known(one.max(another)),
            (Quantile::Absent, known) | (known, Quantile::Absent) => known,
        };
    }
}
