//! The times of requests: the figures of histograms, in microseconds.

use pummel_measure::certainty::{Certainty, TimesCertainty};
use pummel_measure::histogram::Histogram;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{Figures, QUANTILES, Quantile, Unanswered};
use pummel_measure::uncertainty::{Bounds, Range, Upper};
use serde::{Deserialize, Serialize};

use super::named::Named;

/// The five objects `response_us` and so on; absent where a result has only counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FiveTimes {
    /// From when a request was due until its reply had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_us: Option<TimeFigures>,
    /// From due until only the generator stood in the way of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_us: Option<TimeFigures>,
    /// From when only the generator stood in its way until the request was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_us: Option<TimeFigures>,
    /// From sent until the reply had arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_us: Option<TimeFigures>,
    /// From when the reply had arrived until the generator read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reaction_us: Option<TimeFigures>,
}

/// The figures of one histogram in microseconds, to the nanosecond; what is not known is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimeFigures {
    /// The least time of an answered request.
    pub min: Option<f64>,
    /// Mean of the answered requests.
    pub mean: Option<f64>,
    /// Standard deviation of the answered requests.
    pub stddev: Option<f64>,
    /// The quantile of 50 %.
    pub p50: Option<f64>,
    /// The quantile of 90 %.
    pub p90: Option<f64>,
    /// The quantile of 95 %.
    pub p95: Option<f64>,
    /// The quantile of 99 %.
    pub p99: Option<f64>,
    /// The quantile of 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    /// The quantile of 99.99 %.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<f64>,
    /// The greatest time of all.
    pub max: Option<f64>,
    /// Lower bounds of quantiles that fall among requests without an answer, by name.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub above: Named<f64>,
    /// Ends of the intervals of quantiles and of `mean`, by name; an upper end is null where the run was too
    /// short to bound the tail, or where it falls among requests without an answer. Absent where it is not
    /// known how sure the figures are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci: Option<Named<[Option<f64>; 2]>>,
    /// Names of the quantiles whose interval ends among requests without an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ci_unanswered: Vec<String>,
    /// Number of independent requests that the run was worth, by quantile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<Named<f64>>,
    /// Number of independent slow spells beyond a quantile, by quantile: below 16 a tail rests on few, below
    /// about 4 it is not bounded from above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spells: Option<Named<f64>>,
}

/// A figure of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// In microseconds.
    Known(f64),
    /// The figure falls among requests without an answer: it is more than this, in microseconds.
    Above(f64),
    /// There was no request.
    Absent,
}

impl Figure {
    /// The value in microseconds, where it is known.
    pub fn known(self) -> Option<f64> {
        match self {
            Figure::Known(us) => Some(us),
            Figure::Above(_) | Figure::Absent => None,
        }
    }

    /// The figure in words: its value as `value` writes microseconds, with `>` before a lower bound.
    pub fn text(self, absent: &str, value: impl Fn(f64) -> String) -> String {
        match self {
            Figure::Known(us) => value(us),
            Figure::Above(us) => format!("> {}", value(us)),
            Figure::Absent => absent.to_owned(),
        }
    }
}

/// Figures of which none is known.
static NO_FIGURES: TimeFigures = TimeFigures::unknown();

impl FiveTimes {
    pub(super) fn of(figures: &[Figures; Span::COUNT], certainty: Option<&Certainty>) -> FiveTimes {
        let of = |span: Span| {
            let certainty = certainty.and_then(|certainty| certainty.of_span(span));
            Some(TimeFigures::of(&figures[span as usize], certainty))
        };
        FiveTimes {
            response_us: of(Span::Response),
            wait_us: of(Span::Wait),
            lag_us: of(Span::Lag),
            service_us: of(Span::Service),
            reaction_us: of(Span::Reaction),
        }
    }

    /// The figures of a span; nothing is known of those that the result lacks.
    pub fn of_span(&self, span: Span) -> &TimeFigures {
        let figures = match span {
            Span::Response => &self.response_us,
            Span::Wait => &self.wait_us,
            Span::Lag => &self.lag_us,
            Span::Service => &self.service_us,
            Span::Reaction => &self.reaction_us,
        };
        figures.as_ref().unwrap_or(&NO_FIGURES)
    }
}

impl TimeFigures {
    const fn unknown() -> TimeFigures {
        TimeFigures {
            min: None,
            mean: None,
            stddev: None,
            p50: None,
            p90: None,
            p95: None,
            p99: None,
            p99_9: None,
            p99_99: None,
            max: None,
            above: Named(Vec::new()),
            ci: None,
            ci_unanswered: Vec::new(),
            effective: None,
            spells: None,
        }
    }

    /// Figures with what is known of how sure they are.
    pub(super) fn of(figures: &Figures, certainty: Option<&TimesCertainty>) -> TimeFigures {
        let exact = &figures.exact;
        let known = |quantile: Quantile| quantile.known().map(|ns| micros(ns as f64));
        let [p50, p90, p95, p99, p99_9, p99_99] = figures.quantiles.map(known);
        let all = QUANTILES.into_iter().map(|(name, _)| name).zip(figures.quantiles);
        let above = all.chain([("max", figures.max)]).filter_map(|(name, quantile)| match quantile {
            Quantile::Above(ns) => Some((name, micros(ns as f64))),
            Quantile::Known(_) | Quantile::Absent => None,
        });
        TimeFigures {
            min: (exact.count > 0).then(|| micros(exact.min as f64)),
            mean: exact.mean_ns().map(micros),
            stddev: exact.stddev_ns().map(micros),
            p50,
            p90,
            p95,
            p99,
            p99_9,
            p99_99,
            max: known(figures.max),
            above: above.collect(),
            ci: certainty.map(intervals),
            ci_unanswered: certainty.map(ending_unanswered).unwrap_or_default(),
            effective: certainty
                .map(|known| known.named().map(|(name, ends)| (name, ends.effective.round())).collect()),
            spells: certainty
                .map(|known| known.named().map(|(name, ends)| (name, rounded(ends.spells))).collect()),
        }
    }

    /// Figures of a histogram that lacks nothing.
    pub(super) fn of_whole(times: &Histogram) -> TimeFigures {
        TimeFigures::of(&Figures::of(Span::Service, times, &Unanswered::default()), None)
    }

    /// A quantile, or `max`, by its name in [`QUANTILES`].
    pub fn at(&self, name: &str) -> Figure {
        let value = match name {
            "p50" => self.p50,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p99.9" => self.p99_9,
            "p99.99" => self.p99_99,
            "max" => self.max,
            _ => None,
        };
        match (value, self.above.get(name)) {
            (Some(us), _) => Figure::Known(us),
            (None, Some(us)) => Figure::Above(*us),
            (None, None) => Figure::Absent,
        }
    }

    /// The value of `min`, `mean`, `stddev`, a quantile or `max`, in microseconds; `None` where it is not known.
    pub fn plain(&self, name: &str) -> Option<f64> {
        match name {
            "min" => self.min,
            "mean" => self.mean,
            "stddev" => self.stddev,
            quantile => self.at(quantile).known(),
        }
    }

    /// The quantiles and the greatest time, in the order of reports, with their names.
    pub fn quantiles(&self) -> impl Iterator<Item = (&'static str, Figure)> {
        QUANTILES.into_iter().map(|(name, _)| name).chain(["max"]).map(|name| (name, self.at(name)))
    }
}

fn intervals(certainty: &TimesCertainty) -> Named<[Option<f64>; 2]> {
    let mean = certainty.mean.map(|range| ("mean", [Some(micros(range.low)), Some(micros(range.high))]));
    mean.into_iter().chain(certainty.named().map(|(name, ends)| (name, ends_us(&ends)))).collect()
}

fn ending_unanswered(certainty: &TimesCertainty) -> Vec<String> {
    let ends = certainty.named().filter(|(_, ends)| ends.high == Upper::Unanswered);
    ends.map(|(name, _)| name.to_owned()).collect()
}

/// The ends of a quantile's interval in microseconds; an end that is not known is null.
fn ends_us(ends: &Bounds) -> [Option<f64>; 2] {
    let high = match ends.high {
        Upper::Known(high) => Some(micros(high as f64)),
        Upper::Unanswered | Upper::Open => None,
    };
    [ends.low.map(|low| micros(low as f64)), high]
}

/// The ends of an interval, to the third digit after the point.
pub(super) fn range_ends(range: Range) -> [f64; 2] {
    [rounded(range.low), rounded(range.high)]
}

/// Nanoseconds as microseconds, to the nanosecond.
pub(super) fn micros(ns: f64) -> f64 {
    ns.round() / 1000.0
}

/// A number to the third digit after the point.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Whether a count is 0, and is left out.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
