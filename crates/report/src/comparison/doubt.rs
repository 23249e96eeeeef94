//! Why nothing may be claimed of the sides of a comparison, as facts.

use serde::{Deserialize, Serialize};

use crate::run_figures::Metric;

/// Reason why claims about two sides cannot be judged, or only where the interval of a change decides them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Doubt {
    /// There are fewer runs a side than any difference takes.
    FewRuns {
        /// Runs of the side that has fewer.
        runs: usize,
        /// Runs that it takes.
        needed: usize,
    },
    /// There are fewer pairs than it takes for so many judged figures, since each p is corrected for their number by Holm.
    FewPairs {
        /// Number of pairs.
        pairs: usize,
        /// Number of judged figures.
        figures: usize,
        /// Pairs that it takes.
        needed: usize,
    },
    /// There are fewer runs a side, which are no pairs, than it takes for so many judged figures, since each p is corrected for their
    /// number by Holm.
    FewRunsForFigures {
        /// Runs of the side that has fewer.
        runs: usize,
        /// Number of judged figures.
        figures: usize,
        /// Runs that it takes.
        needed: usize,
    },
    /// The runs of the sides did not alternate in mixed order.
    NoAlternation,
    /// Runs of a side were not complete.
    Incomplete(RunsOfSide),
    /// Runs of a side were made of errors or timeouts for the most part.
    Failed(RunsOfSide),
    /// Runs of a side were not steady; such runs are judged where the interval of the change decides.
    Unsteady(RunsOfSide),
    /// The generator was the limit in runs of a side.
    GeneratorLimited(RunsOfSide),
    /// The generator itself added a visible part of a time in runs of a side: its requests were sent late.
    LagInFigure {
        /// The time.
        metric: Metric,
        /// Name of the side.
        side: String,
        /// Number of the runs that are meant.
        runs: usize,
        /// Number of all its runs.
        of: usize,
        /// The greatest part of the time that is lag, from 0 to 1; null where it is not known.
        share: Option<f64>,
    },
    /// Wrong values were found in runs of a side.
    WrongValues {
        /// Name of the side.
        side: String,
    },
    /// The loads of the sides differ.
    Loads {
        /// The options of `pummel run` in which they do.
        options: Vec<String>,
    },
    /// A figure is not known in every run.
    UnknownFigure {
        /// The figure.
        metric: Metric,
    },
}

/// Some of all runs of a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunsOfSide {
    /// Name of the side.
    pub side: String,
    /// Number of the runs that are meant.
    pub runs: usize,
    /// Number of all its runs.
    pub of: usize,
}

impl Doubt {
    /// Whether the interval of a change may decide in spite of the doubt.
    pub fn leaves_intervals(&self) -> bool {
        matches!(self, Doubt::Unsteady(_))
    }
}
