//! What two sides show: the figures of both, what changed, and what may be claimed of it.

use pummel_measure::compare::{Change, Design, RUNS_MAX, RUNS_TO_CLAIM, can_differ, pairs_in_time};
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use serde::{Deserialize, Serialize};

use super::claim::{Claim, ClaimResult};
use super::difference_words::{DifferenceWords, options_of, words_of_all};
use super::doubt::{Doubt, RunsOfSide};
use super::family::{self, JudgedRow};
use super::order::Order;
use super::row::{Row, Word};
use super::side::{Difference, Side, SideNames, differences};
use crate::document::{SCHEMA, ToolResult};
use crate::json::render;
use crate::run_figures::{Figures, Metric, RunFigures, status_of_series};

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
    /// Number of judged figures of all pairs of runs for which the p are corrected together, where suites are compared; absent where they
    /// are corrected for the judged figures of these two sides alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_in_all: Option<usize>,
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

/// Two sides beside each other, of which no figure is judged yet.
pub(super) struct Unjudged {
    comparison: Comparison,
    /// The change of each row.
    changes: Vec<Option<Change>>,
}

impl Unjudged {
    /// Two sides whose runs belong together as `design` says.
    fn of(
        command: PairCommand,
        sides: [Side; 2],
        design: Design,
        order: Order,
        question: &Question,
    ) -> Unjudged {
        let (rows, changes) = Metric::ALL.into_iter().map(|metric| Row::of(metric, &sides, design)).unzip();
        let comparison = Comparison {
            schema: SCHEMA,
            tool: ToolResult::named(),
            status: Status::Complete,
            command,
            names: question.names,
            differences: differences(&sides),
            sides,
            design,
            order,
            accept_order: question.accept_order,
            rows: Figures(rows),
            tests_in_all: None,
            doubts: Vec::new(),
            claims: Vec::new(),
            argv: Vec::new(),
            asked_pairs: None,
            reason: None,
            made_again: 0,
        };
        Unjudged { comparison, changes }
    }

    /// Stored results beside each other: paired where their runs alternated in mixed order.
    pub(super) fn of_results(mut sides: [Side; 2], question: &Question) -> Unjudged {
        let starts =
            |side: &Side| side.runs.iter().map(|run| run.started_unix_s).collect::<Option<Vec<f64>>>();
        let [Some(first), Some(second)] = [starts(&sides[0]), starts(&sides[1])] else {
            return Unjudged::of(PairCommand::Compare, sides, Design::Apart, Order::Other, question);
        };
        if let Some(pairs) = pairs_in_time(&first, &second).filter(|pairs| pairs.len() > 1) {
            let take = |side: &Side, places: Vec<usize>| {
                places.iter().map(|place| side.runs[*place].clone()).collect()
            };
            sides[0].runs = take(&sides[0], pairs.iter().map(|pair| pair.0).collect());
            sides[1].runs = take(&sides[1], pairs.iter().map(|pair| pair.1).collect());
            return Unjudged::of(PairCommand::Compare, sides, Design::Paired, Order::Mixed, question);
        }
        let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let order = match (greatest(&first) < least(&second), greatest(&second) < least(&first)) {
            (true, _) => Order::FirstBeforeSecond,
            (_, true) => Order::SecondBeforeFirst,
            _ => Order::Other,
        };
        Unjudged::of(PairCommand::Compare, sides, Design::Apart, order, question)
    }

    /// The comparison, whose p are corrected for its own judged figures.
    fn judged(mut self, question: &Question) -> Comparison {
        family::judge(&mut self.judged_rows(question));
        let claims = vec![true; question.claims.len()];
        self.concluded(question, &claims, 0)
    }

    /// The comparisons of several pairs of sides, whose p are corrected for the judged figures of all of them, with the number of those.
    /// One pair alone is judged as it is without others.
    pub(super) fn judged_together(all: Vec<Unjudged>, question: &Question) -> (Vec<Comparison>, usize) {
        let mut all = all;
        let tests = {
            let mut rows: Vec<JudgedRow<'_>> =
                all.iter_mut().flat_map(|one| one.judged_rows(question)).collect();
            family::judge(&mut rows)
        };
        if let [_] = all.as_slice() {
            return (all.into_iter().map(|one| one.judged(question)).collect(), tests);
        }
        let excess: Vec<Option<f64>> = all.iter().flat_map(|one| one.excess_p(question)).collect();
        let gates = excess.iter().flatten().count();
        let mut shown = family::are_shown(&excess).into_iter();
        let concluded = all.into_iter().map(|mut one| {
            let own: Vec<bool> = shown.by_ref().take(question.claims.len()).collect();
            one.comparison.tests_in_all = Some(tests);
            one.concluded(question, &own, gates)
        });
        (concluded.collect(), tests)
    }

    /// The rows that are judged.
    fn judged_rows(&mut self, question: &Question) -> Vec<JudgedRow<'_>> {
        let Comparison { sides, design, rows, .. } = &mut self.comparison;
        let design = *design;
        let metrics = judged(sides, question);
        let runs = sides.each_ref().map(|side| side.runs.len());
        let may_differ = design == Design::Paired || question.accept_order;
        let rows = rows.0.iter_mut().zip(&self.changes).filter(|(row, _)| metrics.contains(&row.metric));
        rows.map(|(row, change)| JudgedRow { row, change: *change, design, runs, may_differ }).collect()
    }

    /// The p of each claim that the second side is worse by no more than a limit.
    fn excess_p(&self, question: &Question) -> Vec<Option<f64>> {
        let Comparison { sides, design, .. } = &self.comparison;
        question.claims.iter().map(|claim| family::excess_p(claim, sides, *design)).collect()
    }

    /// The comparison with its doubts, and with what becomes of the claims: whether each may be violated, beside how many gates of other
    /// pairs.
    fn concluded(self, question: &Question, may_violate: &[bool], gates: usize) -> Comparison {
        let mut comparison = self.comparison;
        let Comparison { sides, rows, .. } = &mut comparison;
        let hidden = rows.0.iter_mut().filter(|row| row.is_judged && row.is_hidden_by_generator(sides));
        hidden.for_each(|row| row.word = Word::NotComparable);
        comparison.doubts = doubts(&comparison, question);
        // No claim is judged where the runs are too few to show a difference in any judged figure.
        let few = comparison.too_few_for(comparison.tests().max(gates));
        let reasons: Vec<Doubt> = comparison.doubts.iter().cloned().chain(few).collect();
        let judged = |(claim, may_violate): (&Claim, &bool)| {
            let row = comparison.row(claim.metric);
            claim
                .judged(row.worsening(), *may_violate && !row.is_below_noise, &reasons)
                .unless_hidden(comparison.hidden_by_generator(row.metric))
        };
        comparison.claims = question.claims.iter().zip(may_violate).map(judged).collect();
        comparison
    }
}

impl Comparison {
    /// Compares the runs of an experiment whose run i of each side are a pair, in mixed order. A run without a partner is
    /// left out.
    pub fn of_pairs(command: PairCommand, sides: [Side; 2], question: &Question) -> Comparison {
        let pairs = sides[0].runs.len().min(sides[1].runs.len());
        let sides = sides.map(|mut side| {
            side.runs.truncate(pairs);
            side
        });
        Unjudged::of(command, sides, Design::Paired, Order::Mixed, question).judged(question)
    }

    /// The comparison as the end of an experiment that asked for so many pairs; a reason says why some are missing.
    #[must_use]
    pub fn ended(self, asked_pairs: u32, reason: Option<String>, is_interrupted: bool) -> Comparison {
        let status = status_of_series(is_interrupted, reason.as_deref(), self.runs(), Some(asked_pairs));
        Comparison { asked_pairs: Some(asked_pairs), reason, status, ..self }
    }

    /// Compares stored results: paired where their runs alternated in mixed order.
    pub fn of_results(sides: [Side; 2], question: &Question) -> Comparison {
        Unjudged::of_results(sides, question).judged(question)
    }

    /// Whether no side has more runs than are compared, and there is a row for each metric.
    pub(crate) fn is_within_limits(&self) -> bool {
        let has_row = |metric: &Metric| self.rows.iter().any(|row| row.metric == *metric);
        self.sides.iter().all(|side| side.runs.len() <= RUNS_MAX) && Metric::ALL.iter().all(has_row)
    }

    /// Runs of the side that has fewer.
    pub fn runs(&self) -> usize {
        self.sides[0].runs.len().min(self.sides[1].runs.len())
    }

    /// Number of the judged figures for which the p are corrected together.
    fn tests(&self) -> usize {
        let own = || self.rows.iter().filter(|row| row.p_corrected.is_some()).count();
        self.tests_in_all.unwrap_or_else(own)
    }

    /// Why none of the judged figures can be shown to differ, however much they do; `None` where that is not because of their number.
    pub fn too_few_for_figures(&self) -> Option<Doubt> {
        self.too_few_for(self.tests())
    }

    /// Why none of so many figures can be shown to differ; `None` where that is not because of their number.
    fn too_few_for(&self, figures: usize) -> Option<Doubt> {
        let each = self.sides.each_ref().map(|side| side.runs.len());
        let runs = self.runs();
        if runs < RUNS_TO_CLAIM || can_differ(self.design, each, figures) {
            return None;
        }
        let needed = (runs..=RUNS_MAX).find(|runs| can_differ(self.design, [*runs; 2], figures))?;
        Some(match self.design {
            Design::Paired => Doubt::FewPairs { pairs: runs, figures, needed },
            Design::Apart => Doubt::FewRunsForFigures { runs, figures, needed },
        })
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
