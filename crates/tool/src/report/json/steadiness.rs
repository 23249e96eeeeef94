//! Whether a run was at one level, and what changed where it was not.

use pummel_logic::measure::measurement::WarmUp;
use pummel_logic::measure::uncertainty::UntilResult;
use pummel_logic::measure::uncertainty::steadiness::{Change, ChangeKind, LevelFigure, Steadiness};
use pummel_logic::time::seconds;
use serde::Serialize;

use super::figures::{micros, rounded};
use crate::report::Report;

/// Fields of the result itself.
#[derive(Serialize)]
pub(super) struct SteadinessOut {
    /// Null where it was not judged.
    steady: Option<bool>,
    /// Absent where nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeOut>,
    /// Absent where the warm-up was not to settle.
    #[serde(skip_serializing_if = "Option::is_none")]
    warmup: Option<WarmUpOut>,
    /// Absent where only time ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<UntilOut>,
}

#[derive(Serialize)]
struct WarmUpOut {
    seconds: f64,
    settled: bool,
}

#[derive(Serialize)]
struct UntilOut {
    quantile: f64,
    asked: f64,
    /// Null where an end of the interval is not known.
    half_width: Option<f64>,
    reached: bool,
}

#[derive(Serialize)]
struct ChangeOut {
    figure: &'static str,
    kind: &'static str,
    at_s: f64,
    /// Microseconds, requests per second or a share, after the figure; null where it falls among the requests without an answer.
    before: Option<f64>,
    after: Option<f64>,
}

impl SteadinessOut {
    pub(super) fn of(report: &Report<'_>) -> SteadinessOut {
        let summary = report.summary;
        let warm_up = |warm_up: WarmUp| WarmUpOut {
            seconds: rounded(seconds(warm_up.elapsed_ns)),
            settled: warm_up.settled,
        };
        let until = |result: UntilResult| UntilOut {
            quantile: result.until.quantile,
            asked: result.until.half_width,
            half_width: result.half_width.map(rounded),
            reached: result.is_reached,
        };
        SteadinessOut {
            steady: summary.steadiness.as_ref().map(Steadiness::is_steady),
            change: summary.change().map(ChangeOut::of),
            warmup: report.measurement.warm_up.map(warm_up),
            until: summary.until.map(until),
        }
    }
}

impl ChangeOut {
    fn of(change: &Change) -> ChangeOut {
        let value = |value: Option<f64>| {
            value.map(|value| match change.figure {
                LevelFigure::P50 => micros(value),
                LevelFigure::Rate | LevelFigure::HitShare => rounded(value),
            })
        };
        ChangeOut {
            figure: change.figure.name(),
            kind: match change.kind {
                ChangeKind::Beginning => "beginning",
                ChangeKind::Step => "step",
            },
            at_s: rounded(seconds(change.at_ns)),
            before: value(change.before),
            after: value(change.after),
        }
    }
}
