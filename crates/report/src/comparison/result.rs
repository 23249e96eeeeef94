//! What two sides show: the figures of both, what changed, and what may be claimed of it.

use pummel_measure::compare::{
    ALPHA, Change, Design, RUNS_MAX, RUNS_TO_CLAIM, adjusted, can_differ, change_of, median, pairs_in_time,
    seen_change,
};
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use serde::{Deserialize, Serialize};

use super::claim::{Claim, ClaimResult};
use super::difference_words::{DifferenceWords, options_of, words_of_all};
use super::doubt::{Doubt, RunsOfSide};
use super::order::Order;
use super::side::{Difference, Side, SideNames, differences};
use crate::document::{SCHEMA, ToolResult};
use crate::json::render;
use crate::run_figures::{Figures, Metric, MetricUnit, OfMetric, RunFigures, status_of_series};

/// What is asked of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The metrics that are judged. Empty: those of the claims, else the 99th percentile in open loop and the rate in closed
    /// loop.
    pub metrics: Vec<Metric>,
    /// What the change is held to.
    pub claims: Vec<Claim>,
    /// Whether runs that did not alternate are judged as if time changed nothing.
    pub accept_order: bool,
    /// Whether runs are judged that were not steady.
    pub accept_unsteady: bool,
    /// Displayed names of the sides.
    pub names: SideNames,
    /// Whether the loads of the sides differ on purpose, so that the difference between the loads is compared.
    pub loads_may_differ: bool,
}

/// Comparisons of several sides with the first as JSON: one as it is, several as [`Comparisons`].
pub fn json_of_all(comparisons: &[Comparison]) -> Vec<u8> {
    match comparisons {
        [only] => render(only),
        several => render(&Comparisons::of(several.to_vec())),
    }
}

/// Command that compared two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PairCommand {
    /// `pummel ab`, which measured both sides by turns.
    Ab,
    /// `pummel compare`, of stored results.
    Compare,
}

impl PairCommand {
    /// The word of command lines.
    pub fn name(self) -> &'static str {
        match self {
            PairCommand::Ab => "ab",
            PairCommand::Compare => "compare",
        }
    }
}

/// Result of two sides, as `ab` and `compare` write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that compared.
    pub tool: ToolResult,
    /// Command that compared the sides: `ab` or `compare`.
    pub command: PairCommand,
    /// Status as of a run; `partial` also where pairs are missing.
    pub status: Status,
    /// Reason why there are no more runs; null where none are missing.
    pub reason: Option<String>,
    /// Words of the command line that measured the pairs; empty with `--anonymous`, and where stored results are compared.
    pub argv: Vec<String>,
    /// Displayed names of the sides, letters from A to H.
    pub names: SideNames,
    /// The two sides.
    pub sides: [Side; 2],
    /// Relation between the runs of the sides: `paired` or `apart`.
    pub design: Design,
    /// Order of the runs: `mixed` for sides that alternated, `first-before-second`, `second-before-first` or `other`; all but the first may
    /// look like a difference.
    pub order: Order,
    /// Whether `--accept-order` was given.
    pub accept_order: bool,
    /// Pairs that were asked for; null where stored results are compared.
    pub asked_pairs: Option<u32>,
    /// Number of runs that failed and were made again, which are none of the sides'.
    pub made_again: u32,
    /// Differences between plans, and the first 40 between machines and servers.
    pub differences: Vec<Difference>,
    /// Figures of both sides by metric: `p50`, `p90`, `p99`, `p99.9`, `rate`, `client-cpu` and `server-cpu`.
    #[serde(rename = "figures")]
    pub rows: Figures<Row>,
    /// Reasons why claims cannot be judged, or only where an interval decides them.
    pub doubts: Vec<Doubt>,
    /// Claims of `--worse` and `--within` with their outcomes.
    pub claims: Vec<ClaimResult>,
}

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

/// Result of three sides or more, as `compare` writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparisons {
    /// Number of the layout.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that compared.
    pub tool: ToolResult,
    /// The word `compare`.
    pub command: PairCommand,
    /// Comparison of each side beside the first with the first.
    pub comparisons: Vec<Comparison>,
}

impl Comparisons {
    /// The comparisons of several sides with the first.
    pub fn of(comparisons: Vec<Comparison>) -> Comparisons {
        Comparisons { schema: SCHEMA, tool: ToolResult::named(), command: PairCommand::Compare, comparisons }
    }
}

/// What is said of a figure.
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

impl Comparison {
    /// Compares two sides whose runs belong together as `design` says.
    fn of(
        command: PairCommand,
        sides: [Side; 2],
        design: Design,
        order: Order,
        question: &Question,
    ) -> Comparison {
        let differences = differences(&sides);
        let may_differ = design == Design::Paired || question.accept_order;
        let mut rows = Metric::ALL.map(|metric| Row::of(metric, &sides, design));
        let judged = judged(&sides, question);
        judge(&mut rows, &judged, design, may_differ);
        let mut rows = rows.map(|(row, _)| row);
        let hidden = rows.iter_mut().filter(|row| row.is_judged && row.is_hidden_by_generator(&sides));
        hidden.for_each(|row| row.word = Word::NotComparable);
        let mut comparison = Comparison {
            schema: SCHEMA,
            tool: ToolResult::named(),
            status: Status::Complete,
            command,
            names: question.names,
            sides,
            design,
            order,
            accept_order: question.accept_order,
            rows: Figures(rows.to_vec()),
            differences,
            doubts: Vec::new(),
            claims: Vec::new(),
            argv: Vec::new(),
            asked_pairs: None,
            reason: None,
            made_again: 0,
        };
        comparison.doubts = doubts(&comparison, question);
        // No claim is judged where the pairs are too few to show a difference in any judged figure.
        let reasons: Vec<Doubt> =
            comparison.doubts.iter().cloned().chain(comparison.too_few_pairs()).collect();
        let judged = |claim: &Claim| {
            let row = comparison.row(claim.metric);
            claim
                .judged(row.worsening(), row.is_below_noise, &reasons)
                .unless_hidden(comparison.hidden_by_generator(row.metric))
        };
        comparison.claims = question.claims.iter().map(judged).collect();
        comparison
    }

    /// Compares the runs of an experiment whose run i of each side are a pair, in mixed order. A run without a partner is
    /// left out.
    pub fn of_pairs(command: PairCommand, sides: [Side; 2], question: &Question) -> Comparison {
        let pairs = sides[0].runs.len().min(sides[1].runs.len());
        let sides = sides.map(|mut side| {
            side.runs.truncate(pairs);
            side
        });
        Comparison::of(command, sides, Design::Paired, Order::Mixed, question)
    }

    /// The comparison as the end of an experiment that asked for so many pairs; a reason says why some are missing.
    #[must_use]
    pub fn ended(self, asked_pairs: u32, reason: Option<String>, is_interrupted: bool) -> Comparison {
        let status = status_of_series(is_interrupted, reason.as_deref(), self.runs(), Some(asked_pairs));
        Comparison { asked_pairs: Some(asked_pairs), reason, status, ..self }
    }

    /// Compares stored results: paired where their runs alternated in mixed order.
    pub fn of_results(mut sides: [Side; 2], question: &Question) -> Comparison {
        let starts =
            |side: &Side| side.runs.iter().map(|run| run.started_unix_s).collect::<Option<Vec<f64>>>();
        let [Some(first), Some(second)] = [starts(&sides[0]), starts(&sides[1])] else {
            return Comparison::of(PairCommand::Compare, sides, Design::Apart, Order::Other, question);
        };
        if let Some(pairs) = pairs_in_time(&first, &second).filter(|pairs| pairs.len() > 1) {
            let take = |side: &Side, places: Vec<usize>| {
                places.iter().map(|place| side.runs[*place].clone()).collect()
            };
            sides[0].runs = take(&sides[0], pairs.iter().map(|pair| pair.0).collect());
            sides[1].runs = take(&sides[1], pairs.iter().map(|pair| pair.1).collect());
            return Comparison::of(PairCommand::Compare, sides, Design::Paired, Order::Mixed, question);
        }
        let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let order = match (greatest(&first) < least(&second), greatest(&second) < least(&first)) {
            (true, _) => Order::FirstBeforeSecond,
            (_, true) => Order::SecondBeforeFirst,
            _ => Order::Other,
        };
        Comparison::of(PairCommand::Compare, sides, Design::Apart, order, question)
    }

    /// Whether no side has more runs than are compared.
    pub(crate) fn is_within_limits(&self) -> bool {
        self.sides.iter().all(|side| side.runs.len() <= RUNS_MAX)
    }

    /// Runs of the side that has fewer.
    pub fn runs(&self) -> usize {
        self.sides[0].runs.len().min(self.sides[1].runs.len())
    }

    /// Why none of the judged figures can be shown to differ, however much they do; `None` where that is not because of their number.
    pub fn too_few_pairs(&self) -> Option<Doubt> {
        let (pairs, tests) = (self.runs(), self.rows.iter().filter(|row| row.p_corrected.is_some()).count());
        let is_too_few = self.design == Design::Paired && pairs >= RUNS_TO_CLAIM && !can_differ(pairs, tests);
        let needed = (pairs..).find(|pairs| can_differ(*pairs, tests)).filter(|_| is_too_few)?;
        Some(Doubt::FewPairs { pairs, figures: tests, needed })
    }

    /// Why a figure of each side is partly the generator's; `None` of a side of which it is not in more than half of the runs.
    pub(crate) fn hidden_by_generator(&self, metric: Metric) -> [Option<Doubt>; 2] {
        [0, 1].map(|place| {
            let (side, name) = (&self.sides[place], self.names.0[place]);
            if metric.is_of_the_way() && side.is_generator_limited() {
                return Some(Doubt::GeneratorLimited(runs_of(name, side, side.generator_limited())));
            }
            let (runs, share) = side.lag(metric)?;
            Some(Doubt::LagInFigure { metric, side: name.to_owned(), runs, of: side.runs.len(), share })
        })
    }

    /// The differences between the sides other than their figures, in words.
    pub fn difference_words(&self) -> Vec<DifferenceWords> {
        words_of_all(&self.differences, self.sides.each_ref().map(|side| &side.plan))
    }

    /// Values that were wrong or old, in all runs.
    pub fn wrong_values(&self) -> u64 {
        self.sides.iter().map(Side::wrong_values).fold(0, u64::saturating_add)
    }

    /// The row of a metric, which every comparison of this program has.
    pub(crate) fn row(&self, metric: Metric) -> &Row {
        self.rows.iter().find(|row| row.metric == metric).expect("a comparison has a row for each metric")
    }
}

impl Row {
    /// The row of a metric, which is not judged yet, and the change by which it is.
    fn of(metric: Metric, sides: &[Side; 2], design: Design) -> (Row, Option<Change>) {
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
    fn is_hidden_by_generator(&self, sides: &[Side; 2]) -> bool {
        let is_limited = |side: &Side| self.metric.is_of_the_way() && side.is_generator_limited();
        let [first, second] =
            sides.each_ref().map(|side| is_limited(side) || side.lag(self.metric).is_some());
        let greater = self.change.is_some_and(|change| change > 0.0);
        let is_worse = greater != self.metric.is_better_when_greater();
        second || (first && !is_worse)
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

/// The metrics that are judged.
fn judged(sides: &[Side; 2], question: &Question) -> Vec<Metric> {
    let mut judged = question.metrics.clone();
    if judged.is_empty() {
        judged.extend(question.claims.iter().map(|claim| claim.metric));
    }
    if judged.is_empty() {
        let defaults = [sides[0].judged_by_default(), sides[1].judged_by_default()];
        judged.push(if defaults == [Metric::Rate; 2] { Metric::Rate } else { Metric::P99 });
    }
    judged.sort_unstable();
    judged.dedup();
    judged
}

/// Corrects the p of the judged metrics for their number, and says what may be said.
fn judge(rows: &mut [(Row, Option<Change>)], judged: &[Metric], design: Design, may_differ: bool) {
    let mut judged: Vec<_> = rows.iter_mut().filter(|(row, _)| judged.contains(&row.metric)).collect();
    let tests: Vec<f64> = judged.iter().filter_map(|(row, _)| row.p).collect();
    let mut corrected = adjusted(&tests).into_iter();
    // Six runs a side that are no pairs have a p that is small enough for all figures that there are.
    let can_show = |change: &Change| design == Design::Apart || can_differ(change.runs, tests.len());
    for (row, change) in &mut judged {
        row.is_judged = true;
        let seen = change.and_then(|change| change.seen_among(tests.len().max(1)));
        row.would_have_been_seen = seen.map(f64::exp_m1).filter(|change| change.is_finite());
        row.p_corrected = row.p.and_then(|_| corrected.next());
        let is_enough = change.is_some_and(|change| change.runs >= RUNS_TO_CLAIM && can_show(&change));
        row.word = match row.p_corrected {
            Some(p) if is_enough && may_differ && p <= ALPHA => Word::Differ,
            Some(_) if is_enough && may_differ => Word::NoDifference,
            _ => Word::NotKnown,
        };
    }
}

/// Why nothing may be claimed of the sides; empty where it may.
fn doubts(comparison: &Comparison, question: &Question) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let runs = comparison.runs();
    if runs < RUNS_TO_CLAIM {
        doubts.push(Doubt::FewRuns { runs, needed: RUNS_TO_CLAIM });
    }
    if comparison.design == Design::Apart && !question.accept_order {
        doubts.push(Doubt::NoAlternation);
    }
    for (name, side) in comparison.names.0.into_iter().zip(&comparison.sides) {
        let some = |wanted: &dyn Fn(&RunFigures) -> bool| {
            let count = side.runs.iter().filter(|run| wanted(run)).count();
            (count > 0).then(|| runs_of(name, side, count))
        };
        doubts.extend(some(&|run| run.status != Status::Complete).map(Doubt::Incomplete));
        doubts.extend(some(&|run| run.outcome == RunOutcome::Failed).map(Doubt::Failed));
        let unsteady = some(&|run| run.steady == Some(false)).filter(|_| !question.accept_unsteady);
        doubts.extend(unsteady.map(Doubt::Unsteady));
        if side.wrong_values() > 0 {
            doubts.push(Doubt::WrongValues { side: name.to_owned() });
        }
    }
    let plans = comparison.differences.iter().filter(|difference| difference.is_of_the_load);
    let options = options_of(plans, comparison.sides.each_ref().map(|side| &side.plan));
    if !question.loads_may_differ && !options.is_empty() {
        doubts.push(Doubt::Loads { options });
    }
    doubts
}

/// So many of the runs of a side.
fn runs_of(name: &str, side: &Side, runs: usize) -> RunsOfSide {
    RunsOfSide { side: name.to_owned(), runs, of: side.runs.len() }
}
