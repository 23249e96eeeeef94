//! The figures of one histogram in reports: the exact ones, and the quantiles where unanswered requests leave them known.

use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, Moments, rank};
use crate::recorder::{Counts, OpRecord, Span};
use pummel_logic::protocol::Fault;
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// The quantiles of every report, with their names.
pub const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// A quantile of requests of which some may never have been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    /// The value of the quantile, in nanoseconds.
    Known(Nanos),
    /// The quantile falls among the requests without an answer: it is more than this, in nanoseconds.
    Above(Nanos),
    /// No request was made.
    Absent,
}

/// Requests that a histogram misses because they were never answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Requests that were given up after `timeout_ns`.
    pub timeouts: u64,
    /// Requests without an answer for another reason: refused, reset, closed, unfinished, unsent.
    pub others: u64,
    /// The timeout of requests, in nanoseconds.
    pub timeout_ns: Nanos,
}

/// The figures of one histogram in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Exact figures: count, least, greatest, mean and standard deviation of the answered requests.
    pub exact: Moments,
    /// The [`QUANTILES`], over answered and unanswered requests.
    pub quantiles: [Quantile; QUANTILES.len()],
    /// The greatest value of all; not known as soon as one request is without an answer.
    pub max: Quantile,
}

/// One quantile of a histogram and of the requests that it misses, by the rule of [`Figures::of`].
pub fn quantile(span: Span, histogram: &Histogram, unanswered: &Unanswered, quantile: f64) -> Quantile {
    let total = histogram.count() + unanswered.total();
    let rank = rank(quantile, total);
    unanswered.classify(span, histogram, rank, histogram.at_rank(rank))
}

/// A time with three significant digits and the unit that suits it: `850 ns`, `12.3 us`, `1.02 ms`, `61.0 s`.
pub fn time_text(ns: Nanos) -> String {
    let (value, unit) = match ns {
        0..MICROSECOND => return format!("{ns} ns"),
        MICROSECOND..MILLISECOND => (ns as f64 / MICROSECOND as f64, "us"),
        MILLISECOND..SECOND => (ns as f64 / MILLISECOND as f64, "ms"),
        _ => (ns as f64 / SECOND as f64, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
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
    /// The requests among `counts` that `histogram`, which holds their times of this span, misses for want of an answer.
    ///
    /// Wait and lag are known of every request that was sent, and only a reply can have a reaction.
    pub fn of(counts: &Counts, span: Span, histogram: &Histogram, timeout_ns: Nanos) -> Unanswered {
        let (timeouts, others) = match span {
            Span::Response | Span::Service => {
                let timeouts = counts.errors(Fault::Timeout);
                (timeouts, counts.unanswered() - timeouts)
            }
            Span::Wait | Span::Lag => (0, counts.requests().saturating_sub(histogram.count())),
            Span::Reaction => (0, 0),
        };
        Unanswered { timeouts, others, timeout_ns }
    }

    pub(super) fn total(&self) -> u64 {
        self.timeouts + self.others
    }

    /// Quantile that belongs to the value at `rank` of the histogram, or to the lack of a value.
    fn classify(&self, span: Span, histogram: &Histogram, rank: u64, value: Option<Nanos>) -> Quantile {
        if let Some(value) = value {
            return Quantile::Known(value);
        }
        if histogram.count() + self.total() == 0 {
            return Quantile::Absent;
        }
        let longest = histogram.moments().max;
        let among_timeouts = rank > histogram.count() + self.others;
        if among_timeouts && matches!(span, Span::Response | Span::Service) {
            Quantile::Above(longest.max(self.timeout_ns))
        } else {
            Quantile::Above(longest)
        }
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
        Figures {
            exact: histogram.moments(),
            quantiles: std::array::from_fn(|at| unanswered.classify(span, histogram, ranks[at], values[at])),
            max: unanswered.classify(span, histogram, total, histogram.at_rank(total)),
        }
    }

    /// The figures of all spans of a verb.
    pub fn of_op(op: &OpRecord, timeout_ns: Nanos) -> [Figures; Span::COUNT] {
        Span::ALL.map(|span| {
            let times = op.times.of(span);
            Figures::of(span, times, &Unanswered::of(&op.counts, span, times, timeout_ns))
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = Nanos>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    fn figures(answered: u64, timeouts: u64, others: u64) -> Figures {
        let unanswered = Unanswered { timeouts, others, timeout_ns: 5_000 };
        Figures::of(Span::Response, &histogram(1..=answered), &unanswered)
    }

    #[test]
    fn every_quantile_is_known_when_every_request_was_answered() {
        let figures = figures(1000, 0, 0);
        let expected = [500, 900, 950, 990, 999, 1000].map(Quantile::Known);
        assert_eq!((figures.quantiles, figures.max), (expected, Quantile::Known(1000)));
    }

    #[test]
    fn unanswered_requests_shift_the_quantiles_below_and_hide_those_above() {
        // 900 answers and 100 timeouts: p90 is the last that is known, and it is the greatest answer.
        let figures = figures(900, 100, 0);
        let above = Quantile::Above(5_000);
        let expected = [Quantile::Known(500), Quantile::Known(900), above, above, above, above];
        assert_eq!((figures.quantiles, figures.max), (expected, above));
    }

    #[test]
    fn a_quantile_is_known_up_to_exactly_its_share_of_unanswered_requests() {
        assert_eq!(
            figures(990, 10, 0).quantiles[3],
            Quantile::Known(990),
            "1 % without an answer leaves p99"
        );
        assert_eq!(figures(989, 11, 0).quantiles[3], Quantile::Above(5_000), "more than 1 % does not");
    }

    #[test]
    fn only_where_a_quantile_falls_among_the_timeouts_is_it_above_the_timeout() {
        // 900 answers, 60 closed connections, 40 timeouts: p95 falls among the closed, p99 among the timeouts.
        let figures = figures(900, 40, 60);
        assert_eq!(figures.quantiles[2], Quantile::Above(900));
        assert_eq!(figures.quantiles[3], Quantile::Above(5_000));
    }

    #[test]
    fn the_bound_is_the_greatest_answer_where_that_is_above_the_timeout() {
        let unanswered = Unanswered { timeouts: 5, others: 0, timeout_ns: 50 };
        let figures = Figures::of(Span::Response, &histogram(1..=10), &unanswered);
        assert_eq!(figures.max, Quantile::Above(50));
        let figures = Figures::of(Span::Response, &histogram([900; 10]), &unanswered);
        assert_eq!(figures.max, Quantile::Above(900));
    }

    #[test]
    fn a_timeout_bounds_response_and_service_but_not_the_generators_own_times() {
        let unanswered = Unanswered { timeouts: 50, others: 0, timeout_ns: 5_000 };
        for (span, bound) in [
            (Span::Response, 5_000),
            (Span::Service, 5_000),
            (Span::Wait, 50),
            (Span::Lag, 50),
            (Span::Reaction, 50),
        ] {
            assert_eq!(Figures::of(span, &histogram(1..=50), &unanswered).max, Quantile::Above(bound));
        }
    }

    #[test]
    fn requests_that_nobody_answered_have_a_bound_and_no_requests_have_none() {
        let all_lost = figures(0, 3, 0);
        assert_eq!(all_lost.quantiles, [Quantile::Above(5_000); QUANTILES.len()]);
        let nothing = figures(0, 0, 0);
        assert_eq!((nothing.quantiles, nothing.max), ([Quantile::Absent; QUANTILES.len()], Quantile::Absent));
    }

    #[test]
    fn error_replies_are_answers_and_hide_no_quantile() {
        let mut counts = Counts { completed: 100, ..Counts::default() };
        counts.errors[Fault::Server as usize] = 50;
        let none = Histogram::new();
        let of = |counts: &Counts| Unanswered::of(counts, Span::Response, &none, 1);
        assert_eq!(of(&counts), Unanswered { timeouts: 0, others: 0, timeout_ns: 1 });
        counts.errors[Fault::Reset as usize] = 2;
        counts.errors[Fault::Timeout as usize] = 3;
        counts.unfinished = 4;
        counts.unsent = 5;
        assert_eq!(of(&counts), Unanswered { timeouts: 3, others: 11, timeout_ns: 1 });
    }

    #[test]
    fn how_late_a_request_was_sent_is_known_without_its_answer() {
        let counts = Counts { completed: 90, unfinished: 10, unsent: 3, ..Counts::default() };
        let mut lag = Histogram::new();
        lag.record_many(5, 100);
        assert_eq!(Unanswered::of(&counts, Span::Lag, &lag, 1).total(), 3, "only those that were never sent");
        assert_eq!(
            Unanswered::of(&counts, Span::Reaction, &lag, 1).total(),
            0,
            "nothing came that could lie unread"
        );
        assert_eq!(Unanswered::of(&counts, Span::Response, &lag, 1).total(), 13);
    }

    #[test]
    fn times_are_written_with_three_digits_and_their_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (850, "850 ns"),
            (1_000, "1.00 us"),
            (9_994, "9.99 us"),
            (9_995, "10.0 us"),
            (12_345, "12.3 us"),
            (99_960, "100 us"),
            (1_020_000, "1.02 ms"),
            (61 * SECOND, "61.0 s"),
            (3_600 * SECOND, "3600 s"),
        ] {
            assert_eq!(time_text(ns), text);
        }
    }
}
