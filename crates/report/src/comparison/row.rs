//! One figure of two sides that are compared: its values, its change, and the word that is said of it.

use pummel_measure::compare::{Change, Design, RUNS_TO_CLAIM, change_of, median, seen_change};
use serde::{Deserialize, Serialize};

use super::side::Side;
use crate::run_figures::{Metric, MetricUnit, OfMetric};

/// One figure of the two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// The figure.
    #[serde(skip)]
    pub metric: Metric,
    /// Unit of the values: `us`, `requests/s` or `us/request`.
    pub unit: MetricUnit,
    /// Medians of the runs of each side; null where a run does not know the figure.
    pub values: [Option<f64>; 2],
    /// 95 % interval of each side within its run, where it has one run.
    pub within: [Option<(f64, f64)>; 2],
    /// Lower bounds of the figure, for a side of one run in which it is not known.
    #[serde(rename = "above")]
    pub bounds: [Option<f64>; 2],
    /// Number of runs of each side that do not know the figure.
    pub unknown: [usize; 2],
    /// Relative change from the first side to the second: 0.02 where the second is 2 % greater; null where a run does not know the
    /// figure.
    pub change: Option<f64>,
    /// 95 % interval of the change; null below six runs a side.
    pub ci: Option<(f64, f64)>,
    /// Two-sided p of the change; null for one run a side.
    pub p: Option<f64>,
    /// The p of a judged figure, corrected by Holm for the number of those; null where there is no test.
    pub p_corrected: Option<f64>,
    /// Relative change that 4 of 5 such experiments find, with that correction; null where they can find none, and where runs are not
    /// paired.
    pub would_have_been_seen: Option<f64>,
    /// Whether the figure is judged.
    #[serde(rename = "judged")]
    pub is_judged: bool,
    /// Conclusion on the figure: `differ`, `no difference shown`, `not judged`, `not known` (also where pairs are too few for the number
    /// of judged figures) or `not comparable` (the generator, which was the limit in more than half of the runs of a side or added a visible
    /// part of the figure there, hides the change).
    pub word: Word,
    /// Standard deviation of the logarithm by which runs of one thing differ on this machine by themselves, from a calibration; null
    /// where none is known.
    pub noise: Option<f64>,
    /// Whether the change is smaller than what this machine shows of two sides that are equal.
    #[serde(rename = "below_noise")]
    pub is_below_noise: bool,
}

impl OfMetric for Row {
    fn metric(&self) -> Metric {
        self.metric
    }

    fn with_metric(self, metric: Metric) -> Row {
        Row { metric, ..self }
    }
}

/// Conclusion on a figure of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Word {
    /// The sides differ.
    #[serde(rename = "differ")]
    Differ,
    /// No difference is shown.
    #[serde(rename = "no difference shown")]
    NoDifference,
    /// The figure is not judged.
    #[serde(rename = "not judged")]
    NotJudged,
    /// Too few runs, also for the number of judged figures, or an order of runs that could look like a difference.
    #[serde(rename = "not known")]
    NotKnown,
    /// The figure is partly that of the generator.
    #[serde(rename = "not comparable")]
    NotComparable,
}

impl Word {
    /// The word of results and pages; empty where nothing is said.
    pub fn text(self) -> &'static str {
        match self {
            Word::Differ => "differ",
            Word::NoDifference => "no difference shown",
            Word::NotJudged => "",
            Word::NotKnown => "not known",
            Word::NotComparable => "not comparable",
        }
    }
}

impl Row {
    /// The row of a metric, which is not judged yet, and the change by which it is.
    pub(super) fn of(metric: Metric, sides: &[Side; 2], design: Design) -> (Row, Option<Change>) {
        let known = |side: &Side| side.runs.iter().filter_map(|run| run.figure(metric)).collect::<Vec<_>>();
        let figures = [known(&sides[0]), known(&sides[1])];
        let unknown = [0, 1].map(|side| sides[side].runs.len() - figures[side].len());
        let values = [0, 1].map(|side| figures[side].iter().map(|figure| figure.value).collect::<Vec<f64>>());
        let is_known = unknown == [0, 0];
        let of_one = |side: usize| match figures[side].as_slice() {
            [one] => one.within,
            _ => None,
        };
        let bound_of = |side: usize| match sides[side].runs.as_slice() {
            [one] => one.bound(metric),
            _ => None,
        };
        let change = is_known.then(|| change_of(design, &values[0], &values[1])).flatten();
        let relative = |log: f64| Some(log.exp_m1()).filter(|change| change.is_finite());
        let noise = noise_of(metric, sides);
        let row = Row {
            metric,
            unit: metric.unit(),
            bounds: [0, 1].map(bound_of),
            values: [0, 1].map(|side| median(&values[side]).filter(|_| unknown[side] == 0)),
            within: [0, 1].map(of_one),
            unknown,
            change: change.and_then(|change| relative(change.estimate)),
            ci: change
                .and_then(|change| change.interval)
                .and_then(|(low, high)| Some((relative(low)?, relative(high)?))),
            p: change.and_then(|change| change.p),
            p_corrected: None,
            would_have_been_seen: change.and_then(|change| relative(change.seen_among(1)?)),
            is_judged: false,
            word: Word::NotJudged,
            noise,
            is_below_noise: change.is_some_and(|change| is_below_noise(&change, noise)),
        };
        (row, change)
    }

    /// Whether the generator hides how the second side compares with the first. A side whose figure is partly its generator's is
    /// at least as good as its figures. Beside such a first side the second may be called worse, and never better; a
    /// second side with such a generator is called neither.
    pub(super) fn is_hidden_by_generator(&self, sides: &[Side; 2]) -> bool {
        let is_limited = |side: &Side| self.metric.is_of_the_way() && side.is_generator_limited();
        let [first, second] =
            sides.each_ref().map(|side| is_limited(side) || side.lag(self.metric).is_some());
        let greater = self.change.is_some_and(|change| change > 0.0);
        let is_worse = greater != self.metric.is_better_when_greater();
        second || (first && !is_worse)
    }

    /// Whether a side knows the figure, or a bound of it.
    pub(crate) fn is_known(&self) -> bool {
        self.values != [None, None] || self.bounds != [None, None]
    }

    /// The 95 % interval of the relative change for the worse: above 0 where side B is worse.
    pub(crate) fn worsening(&self) -> Option<(f64, f64)> {
        let (low, high) = self.ci?;
        Some(if self.metric.is_better_when_greater() { (-high, -low) } else { (low, high) })
    }
}

/// Whether a change is smaller than what this machine shows of two sides that are equal: less than as many pairs, or the fewest that
/// can show a change, find in 4 of 5 cases where runs differ as a calibration found it.
fn is_below_noise(change: &Change, noise: Option<f64>) -> bool {
    let noise = noise.filter(|_| change.runs > 1);
    let seen = noise.and_then(|noise| seen_change(2.0_f64.sqrt() * noise, change.runs.max(RUNS_TO_CLAIM)));
    seen.is_some_and(|seen| change.estimate.abs() < seen)
}

/// The greater of what the calibrations of the two sides say of a metric.
fn noise_of(metric: Metric, sides: &[Side; 2]) -> Option<f64> {
    let known = sides.iter().filter_map(|side| side.source.noise.get(metric.name()).copied());
    known.filter(|noise| noise.is_finite() && *noise > 0.0).reduce(f64::max)
}
