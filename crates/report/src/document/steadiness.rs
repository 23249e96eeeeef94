//! Whether a run was at one level, and how its warm-up and its measurement ended where that was decided while they went on.

use pummel_logic::plan::Plan;
use pummel_logic::time::seconds;
use pummel_measure::limit::Standstill;
use pummel_measure::measurement::{Measurement, WarmUp, WarmUpEnd};
use pummel_measure::stops::stops_of;
use pummel_measure::summary::Summary;
use pummel_measure::uncertainty::steadiness::{ChangeKind, LevelChange, LevelFigure};
use serde::{Deserialize, Serialize};

use super::figures::{micros, rounded};

/// A moment before and after which a figure of a run differed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChangeResult {
    /// Figure that changed.
    pub figure: ChangedFigure,
    /// Place of the change in the run.
    pub kind: ChangePlace,
    /// The moment, in seconds from the beginning of the measured phase.
    pub at_s: f64,
    /// The figure before the moment: microseconds, requests per second or a share; null where it falls among the requests without
    /// an answer.
    pub before: Option<f64>,
    /// The figure after the moment; null if it falls among requests without an answer.
    pub after: Option<f64>,
    /// The change in words; empty in results of versions that did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub says: String,
}

/// Figure that shows the level of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ChangedFigure {
    /// Median of the response.
    #[serde(rename = "p50")]
    P50,
    /// Completed requests per second.
    #[serde(rename = "rate")]
    Rate,
    /// Share of keys that reads found.
    #[serde(rename = "hit share")]
    HitShare,
    /// A figure that this version does not know.
    #[default]
    #[serde(rename = "figure", other)]
    Other,
}

/// Place of a change in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangePlace {
    /// The first eighth of the run differed from its last half.
    Beginning,
    /// The run differed before and after a moment.
    #[default]
    #[serde(other)]
    Step,
}

impl ChangedFigure {
    /// The name of the figure in results.
    pub fn name(self) -> &'static str {
        match self {
            ChangedFigure::P50 => "p50",
            ChangedFigure::Rate => "rate",
            ChangedFigure::HitShare => "hit share",
            ChangedFigure::Other => "figure",
        }
    }

    fn of(figure: LevelFigure) -> ChangedFigure {
        match figure {
            LevelFigure::P50 => ChangedFigure::P50,
            LevelFigure::Rate => ChangedFigure::Rate,
            LevelFigure::HitShare => ChangedFigure::HitShare,
        }
    }
}

/// A time in which the servers answered nothing although requests were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StopResult {
    /// Beginning, in seconds from the beginning of the measured phase.
    pub from_s: f64,
    /// End, in seconds from the beginning of the measured phase.
    pub to_s: f64,
    /// Whether no reply came after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lasted: bool,
}

impl StopResult {
    pub(super) fn all_of(measurement: &Measurement, plan: &Plan) -> Vec<StopResult> {
        let at = |ns| rounded(seconds(ns));
        let of = |stop: Standstill| StopResult {
            from_s: at(stop.from_ns),
            to_s: at(stop.to_ns),
            lasted: stop.lasted,
        };
        stops_of(measurement, plan).into_iter().map(of).collect()
    }
}

/// A warm-up whose end was found while it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WarmUpResult {
    /// How long the warm-up took.
    pub seconds: f64,
    /// Whether the load had settled, or a server had evicted a record; otherwise the time was over, or the run was ended.
    pub settled: bool,
    /// Whether the run was ended in the warm-up, before its end was found and before the time was over.
    pub cut_short: bool,
    /// The event that was to end the warm-up; absent for a load that settles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<WarmUpEnd>,
}

/// How sure the quantile is that a measurement went on for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UntilOutcome {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The distance to the ends of the interval that was asked for, as a share of the quantile.
    pub asked: f64,
    /// The greater distance to an end of the interval; null where an end is not known.
    pub half_width: Option<f64>,
    /// Whether the measurement ended for that, and not because its longest time was over.
    pub reached: bool,
}

impl ChangeResult {
    pub(super) fn of(summary: &Summary) -> Option<ChangeResult> {
        let change: &LevelChange = summary.change()?;
        let value = |value: f64| match change.figure {
            LevelFigure::P50 => micros(value),
            LevelFigure::Rate | LevelFigure::HitShare => rounded(value),
        };
        let kind = match change.kind {
            ChangeKind::Beginning => ChangePlace::Beginning,
            ChangeKind::Step => ChangePlace::Step,
        };
        Some(ChangeResult {
            figure: ChangedFigure::of(change.figure),
            kind,
            at_s: rounded(seconds(change.at_ns)),
            before: change.before.map(value),
            after: change.after.map(value),
            says: String::new(),
        })
    }
}

impl WarmUpResult {
    pub(super) fn of(measurement: &Measurement) -> Option<WarmUpResult> {
        let WarmUp { until, elapsed_ns, settled, cut_short } = measurement.warm_up?;
        let until = Some(until).filter(|until| *until != WarmUpEnd::Settled);
        Some(WarmUpResult { seconds: rounded(seconds(elapsed_ns)), settled, cut_short, until })
    }
}

impl UntilOutcome {
    pub(super) fn of(summary: &Summary) -> Option<UntilOutcome> {
        let result = summary.until?;
        Some(UntilOutcome {
            quantile: result.until.quantile,
            asked: result.until.half_width,
            // Of a tenth of a percent two digits are kept.
            half_width: result.half_width.map(|half_width| (half_width * 1e5).round() / 1e5),
            reached: result.is_reached,
        })
    }
}
