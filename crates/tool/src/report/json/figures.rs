//! The times of requests: the figures of histograms, in microseconds.

use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{Figures, QUANTILES, Quantile, Unanswered};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The five objects `response_us` and so on.
#[derive(Serialize)]
pub(super) struct TimesOut<'a> {
    response_us: FiguresOut<'a>,
    wait_us: FiguresOut<'a>,
    lag_us: FiguresOut<'a>,
    service_us: FiguresOut<'a>,
    reaction_us: FiguresOut<'a>,
}

impl<'a> TimesOut<'a> {
    pub(super) fn of(figures: &'a [Figures; Span::COUNT]) -> TimesOut<'a> {
        let of = |span: Span| FiguresOut(&figures[span as usize]);
        TimesOut {
            response_us: of(Span::Response),
            wait_us: of(Span::Wait),
            lag_us: of(Span::Lag),
            service_us: of(Span::Service),
            reaction_us: of(Span::Reaction),
        }
    }
}

/// One histogram's figures in microseconds; what is not known is null, and `above` says what it is more than.
pub(super) struct FiguresOut<'a>(pub(super) &'a Figures);

impl Serialize for FiguresOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let exact = &self.0.exact;
        let quantiles = QUANTILES.into_iter().map(|(name, _)| name).zip(self.0.quantiles);
        let all = || quantiles.clone().chain([("max", self.0.max)]);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("min", &(exact.count > 0).then(|| micros(exact.min as f64)))?;
        map.serialize_entry("mean", &exact.mean_ns().map(micros))?;
        map.serialize_entry("stddev", &exact.stddev_ns().map(micros))?;
        for (name, quantile) in all() {
            map.serialize_entry(name, &quantile.known().map(|ns| micros(ns as f64)))?;
        }
        let above: Vec<(&str, f64)> = all()
            .filter_map(|(name, quantile)| match quantile {
                Quantile::Above(ns) => Some((name, micros(ns as f64))),
                Quantile::Known(_) | Quantile::Absent => None,
            })
            .collect();
        if !above.is_empty() {
            map.serialize_entry("above", &Bounds(above))?;
        }
        map.end()
    }
}

/// The same of a histogram that lacks nothing.
pub(super) struct WholeOut(Figures);

impl WholeOut {
    pub(super) fn of(times: &Histogram) -> WholeOut {
        WholeOut(Figures::of(Span::Service, times, &Unanswered::default()))
    }
}

impl Serialize for WholeOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FiguresOut(&self.0).serialize(serializer)
    }
}

pub(super) struct Bounds<'a>(Vec<(&'a str, f64)>);

impl Serialize for Bounds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Nanoseconds as microseconds, to the nanosecond.
pub(in crate::report) fn micros(ns: f64) -> f64 {
    ns.round() / 1000.0
}

/// A number to the third digit after the point.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
