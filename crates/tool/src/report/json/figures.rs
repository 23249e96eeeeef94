//! The times of requests: the figures of histograms, in microseconds.

use pummel_logic::measure::certainty::{Certainty, TimesCertainty};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{Figures, QUANTILES, Quantile, Unanswered};
use pummel_logic::measure::uncertainty::{Bounds, Range, Upper};
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
    pub(super) fn of(figures: &'a [Figures; Span::COUNT], certainty: Option<&'a Certainty>) -> TimesOut<'a> {
        let of = |span: Span| FiguresOut {
            figures: &figures[span as usize],
            certainty: certainty.and_then(|certainty| certainty.of_span(span)),
        };
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
pub(super) struct FiguresOut<'a> {
    figures: &'a Figures,
    certainty: Option<&'a TimesCertainty>,
}

impl<'a> FiguresOut<'a> {
    /// Figures of which it is not known how sure they are.
    pub(super) fn alone(figures: &'a Figures) -> FiguresOut<'a> {
        FiguresOut { figures, certainty: None }
    }
}

impl Serialize for FiguresOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let FiguresOut { figures, certainty } = self;
        let exact = &figures.exact;
        let quantiles = QUANTILES.into_iter().map(|(name, _)| name).zip(figures.quantiles);
        let all = || quantiles.clone().chain([("max", figures.max)]);
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
            map.serialize_entry("above", &Pairs(above))?;
        }
        if let Some(certainty) = certainty {
            let known = || certainty.named();
            let intervals = known().map(|(name, ends)| (name, ends_us(&ends)));
            let mean =
                certainty.mean.map(|range| ("mean", [Some(micros(range.low)), Some(micros(range.high))]));
            map.serialize_entry("ci", &Pairs(mean.into_iter().chain(intervals).collect()))?;
            map.serialize_entry(
                "effective",
                &Pairs(known().map(|(name, ends)| (name, ends.effective.round())).collect()),
            )?;
            map.serialize_entry(
                "spells",
                &Pairs(known().map(|(name, ends)| (name, rounded(ends.spells))).collect()),
            )?;
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
        FiguresOut::alone(&self.0).serialize(serializer)
    }
}

/// Names with what belongs to each.
struct Pairs<'a, T>(Vec<(&'a str, T)>);

impl<T: Serialize> Serialize for Pairs<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
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
pub(in crate::report) fn micros(ns: f64) -> f64 {
    ns.round() / 1000.0
}

/// A number to the third digit after the point.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
