//! Whether a run was at one level, and what changed where it was not.

use pummel_logic::measure::summary::Summary;
use pummel_logic::measure::uncertainty::steadiness::{Change, ChangeKind, LevelFigure};
use pummel_logic::time::seconds;
use serde::Serialize;

use super::figures::{micros, rounded};

/// Fields of the result itself.
#[derive(Serialize)]
pub(super) struct SteadinessOut {
    /// Null where it was not judged.
    steady: Option<bool>,
    /// Absent where nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeOut>,
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
    pub(super) fn of(summary: &Summary) -> SteadinessOut {
        SteadinessOut {
            steady: summary.steadiness.as_ref().map(|steadiness| steadiness.change().is_none()),
            change: summary.change().map(ChangeOut::of),
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
