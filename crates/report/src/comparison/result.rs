//! What two sides show: the figures of both, what changed, and what may be claimed of it.

use pummel_measure::compare::{
    ALPHA, Change, Design, RUNS_TO_CLAIM, adjusted, can_differ, change_of, median, pairs_in_time, seen_change,
};
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::words::counted;

use super::claim::{Claim, ClaimResult, Outcome};
use super::difference_words::options_of;
use super::order::Order;
use super::side::{Difference, Side, SideNames, differences};
use crate::run_figures::{Metric, RunFigures};

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

/// What two sides show.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// `ab` or `compare`.
    pub command: &'static str,
    /// Displayed names of the sides.
    pub names: SideNames,
    /// The two sides.
    pub sides: [Side; 2],
    /// How the runs belong together.
    pub design: Design,
    /// How they followed each other.
    pub order: Order,
    /// Whether their order was accepted although they did not alternate.
    pub accept_order: bool,
    /// The figures, in the order of [`Metric::ALL`].
    pub rows: Vec<Row>,
    /// What differs in plans, machines and servers.
    pub differences: Vec<Difference>,
    /// Why claims cannot be judged.
    pub doubts: Vec<String>,
    /// The claims and what became of them.
    pub claims: Vec<ClaimResult>,
    /// The words of the command line that measured the pairs; empty with `--anonymous`, and where stored results are compared.
    pub argv: Vec<String>,
    /// Pairs that were asked for; `None` where stored results are compared.
    pub asked_pairs: Option<u32>,
    /// Why there are no more runs, where some are missing.
    pub reason: Option<String>,
    /// Whether a signal ended the runs.
    pub interrupted: bool,
    /// How many runs failed and were made again, which are none of the sides'.
    pub made_again: u32,
}

/// One figure of the two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The figure.
    pub metric: Metric,
    /// Medians of the runs of each side; `None` where a run does not know the figure.
    pub values: [Option<f64>; 2],
    /// The interval of each side within its run, where it has one run.
    pub within: [Option<(f64, f64)>; 2],
    /// Lower bounds of the figure, for a side of one run in which it is not known.
    pub bounds: [Option<f64>; 2],
    /// Runs of each side that do not know the figure.
    pub unknown: [usize; 2],
    /// The change from side A to side B; `None` where a run does not know the figure.
    pub change: Option<Change>,
    /// Whether the figure is judged.
    pub is_judged: bool,
    /// The p of a judged figure, corrected for the number of those; `None` where there is no test.
    pub p: Option<f64>,
    /// Number of figures for which the p is corrected; 1 for a figure that is not judged.
    pub tests: usize,
    /// What is said of it.
    pub word: Word,
    /// By how much runs of one thing differ on this machine by themselves: a standard deviation of the logarithm, from a
    /// calibration; `None` where none is known.
    pub noise: Option<f64>,
}

/// What comes of a comparison; each has its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Every claim holds, or there was none.
    Held,
    /// A claim is violated.
    Violated,
    /// Runs that were made for the comparison found wrong values.
    WrongValues,
    /// A claim cannot be judged.
    NotJudged,
    /// Runs are missing.
    Incomplete,
    /// A signal ended the runs.
    Interrupted,
}

/// What is said of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The sides differ.
    Differ,
    /// No difference is shown.
    NoDifference,
    /// The figure is not judged.
    NotJudged,
    /// Too few runs, also for the number of judged figures, or an order of runs that could look like a difference.
    NotKnown,
    /// The figure is partly that of the generator, which was the limit of a side.
    NotComparable,
}

impl Word {
    /// The word of results.
    pub fn name(self) -> &'static str {
        match self {
            Word::Differ => "differ",
            Word::NoDifference => "no difference shown",
            Word::NotJudged => "not judged",
            Word::NotKnown => "not known",
            Word::NotComparable => "not comparable",
        }
    }
}

impl Comparison {
    /// Compares two sides whose runs belong together as `design` says.
    fn of(
        command: &'static str,
        sides: [Side; 2],
        design: Design,
        order: Order,
        question: &Question,
    ) -> Comparison {
        let differences = differences(&sides);
        let may_differ = design == Design::Paired || question.accept_order;
        let mut rows: Vec<Row> = Metric::ALL.map(|metric| Row::of(metric, &sides, design)).to_vec();
        let judged = judged(&sides, question);
        judge(&mut rows, &judged, design, may_differ);
        let hidden = rows.iter_mut().filter(|row| row.is_judged && row.is_hidden_by_generator(&sides));
        hidden.for_each(|row| row.word = Word::NotComparable);
        let mut comparison = Comparison {
            command,
            names: question.names,
            sides,
            design,
            order,
            accept_order: question.accept_order,
            rows,
            differences,
            doubts: Vec::new(),
            claims: Vec::new(),
            argv: Vec::new(),
            asked_pairs: None,
            reason: None,
            interrupted: false,
            made_again: 0,
        };
        comparison.doubts = doubts(&comparison, question);
        // No claim is judged where the pairs are too few to show a difference in any judged figure.
        let reasons: Vec<String> =
            comparison.doubts.iter().cloned().chain(comparison.too_few_pairs()).collect();
        let judged = |claim: &Claim| {
            let row = comparison.row(claim.metric);
            let limited = if row.metric.is_of_the_way() { comparison.limited() } else { [None, None] };
            claim.judged(row.worsening(), row.is_below_noise(), &reasons).unless_limited(limited)
        };
        comparison.claims = question.claims.iter().map(judged).collect();
        comparison
    }

    /// Compares the runs of an experiment whose run i of each side are a pair, in mixed order. A run without a partner is
    /// left out.
    pub fn of_pairs(command: &'static str, sides: [Side; 2], question: &Question) -> Comparison {
        let pairs = sides[0].runs.len().min(sides[1].runs.len());
        let sides = sides.map(|mut side| {
            side.runs.truncate(pairs);
            side
        });
        Comparison::of(command, sides, Design::Paired, Order::Mixed, question)
    }

    /// Compares stored results: paired where their runs alternated in mixed order.
    pub fn of_results(mut sides: [Side; 2], question: &Question) -> Comparison {
        let starts =
            |side: &Side| side.runs.iter().map(|run| run.started_unix_s).collect::<Option<Vec<f64>>>();
        let [Some(first), Some(second)] = [starts(&sides[0]), starts(&sides[1])] else {
            return Comparison::of("compare", sides, Design::Apart, Order::Other, question);
        };
        if let Some(pairs) = pairs_in_time(&first, &second).filter(|pairs| pairs.len() > 1) {
            let take = |side: &Side, places: Vec<usize>| {
                places.iter().map(|place| side.runs[*place].clone()).collect()
            };
            sides[0].runs = take(&sides[0], pairs.iter().map(|pair| pair.0).collect());
            sides[1].runs = take(&sides[1], pairs.iter().map(|pair| pair.1).collect());
            return Comparison::of("compare", sides, Design::Paired, Order::Mixed, question);
        }
        let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let order = match (greatest(&first) < least(&second), greatest(&second) < least(&first)) {
            (true, _) => Order::FirstBeforeSecond,
            (_, true) => Order::SecondBeforeFirst,
            _ => Order::Other,
        };
        Comparison::of("compare", sides, Design::Apart, order, question)
    }

    /// Runs of the side that has fewer.
    pub fn runs(&self) -> usize {
        self.sides[0].runs.len().min(self.sides[1].runs.len())
    }

    /// Why none of the judged figures can be shown to differ, however much they do, as a sentence without its end; `None` where
    /// that is not because of their number.
    pub fn too_few_pairs(&self) -> Option<String> {
        let (pairs, tests) = (self.runs(), self.rows.iter().filter(|row| row.p.is_some()).count());
        let is_too_few = self.design == Design::Paired && pairs >= RUNS_TO_CLAIM && !can_differ(pairs, tests);
        let enough = (pairs..).find(|pairs| can_differ(*pairs, tests)).filter(|_| is_too_few)?;
        Some(format!(
            "{pairs} pairs can show no difference in any of {tests} judged figures, since each p is corrected for their number by \
             Holm: it takes {enough} pairs, or fewer figures"
        ))
    }

    /// In how many runs of each side the generator was the limit, as words; `None` of a side in which it was the limit in at most
    /// half.
    fn limited(&self) -> [Option<String>; 2] {
        [0, 1].map(|place| {
            let (name, side) = (self.names.0[place], &self.sides[place]);
            let runs = of_runs(side.generator_limited(), side.runs.len());
            side.is_generator_limited().then(|| format!("the generator was the limit in {runs} of {name}"))
        })
    }

    /// Values that were wrong or old, in all runs.
    pub fn wrong_values(&self) -> u64 {
        self.sides.iter().map(Side::wrong_values).sum()
    }

    /// The row of a metric.
    pub fn row(&self, metric: Metric) -> &Row {
        self.rows.iter().find(|row| row.metric == metric).expect("there is a row for each metric")
    }

    /// What comes of the claims, and of the runs. Values that were wrong in stored results are told and judge nothing: the command
    /// that measured them said so.
    pub fn conclusion(&self) -> Conclusion {
        let has = |wanted: fn(&Outcome) -> bool| self.claims.iter().any(|claim| wanted(&claim.outcome));
        match () {
            () if self.interrupted => Conclusion::Interrupted,
            () if self.reason.is_some() => Conclusion::Incomplete,
            () if self.asked_pairs.is_some() && self.wrong_values() > 0 => Conclusion::WrongValues,
            () if has(|outcome| *outcome == Outcome::Violated) => Conclusion::Violated,
            () if has(|outcome| matches!(outcome, Outcome::NotJudged(_))) => Conclusion::NotJudged,
            () => Conclusion::Held,
        }
    }

    /// The word of results for how the runs ended.
    pub fn status(&self) -> Status {
        match (self.interrupted, &self.reason) {
            (true, _) => Status::Interrupted,
            (false, Some(_)) => Status::Partial,
            (false, None) if self.asked_pairs.is_some_and(|asked| self.runs() < asked as usize) => {
                Status::Partial
            }
            (false, None) => Status::Complete,
        }
    }
}

impl Row {
    fn of(metric: Metric, sides: &[Side; 2], design: Design) -> Row {
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
        Row {
            metric,
            bounds: [0, 1].map(bound_of),
            values: [0, 1].map(|side| median(&values[side]).filter(|_| unknown[side] == 0)),
            within: [0, 1].map(of_one),
            unknown,
            change: is_known.then(|| change_of(design, &values[0], &values[1])).flatten(),
            is_judged: false,
            p: None,
            tests: 1,
            word: Word::NotJudged,
            noise: noise_of(metric, sides),
        }
    }

    /// Whether the generator hides how the second side compares with the first. A side whose generator was the limit is
    /// at least as good as its figures. Beside such a first side the second may be called worse, and never better; a
    /// second side with such a generator is called neither.
    fn is_hidden_by_generator(&self, sides: &[Side; 2]) -> bool {
        let [first, second] = sides.each_ref().map(Side::is_generator_limited);
        let greater = self.change.is_some_and(|change| change.estimate > 0.0);
        let is_worse = greater != self.metric.is_better_when_greater();
        self.metric.is_of_the_way() && (second || (first && !is_worse))
    }

    /// The logarithm of the change that 4 of 5 such experiments find; `None` where they can find none, and where runs are not paired.
    pub fn seen(&self) -> Option<f64> {
        self.change?.seen_among(self.tests)
    }

    /// Whether the change is smaller than what this machine shows of two sides that are equal: less than as many pairs, or the
    /// fewest that can show a change, find in 4 of 5 cases where runs differ as a calibration found it.
    pub fn is_below_noise(&self) -> bool {
        let several = self.change.filter(|change| change.runs > 1);
        let seen = self
            .noise
            .zip(several)
            .and_then(|(noise, change)| seen_change(2.0_f64.sqrt() * noise, change.runs.max(RUNS_TO_CLAIM)));
        seen.zip(self.change).is_some_and(|(seen, change)| change.estimate.abs() < seen)
    }

    /// The relative change from side A to side B: 0.02 where B is 2 % greater.
    pub fn relative(&self) -> Option<f64> {
        self.change.map(|change| change.estimate.exp_m1())
    }

    /// The 95 % interval of the relative change.
    pub fn relative_interval(&self) -> Option<(f64, f64)> {
        let (low, high) = self.change?.interval?;
        Some((low.exp_m1(), high.exp_m1()))
    }

    /// The 95 % interval of the relative change for the worse: above 0 where side B is worse.
    pub fn worsening(&self) -> Option<(f64, f64)> {
        let (low, high) = self.relative_interval()?;
        Some(if self.metric.is_better_when_greater() { (-high, -low) } else { (low, high) })
    }
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
fn judge(rows: &mut [Row], judged: &[Metric], design: Design, may_differ: bool) {
    let mut judged: Vec<&mut Row> = rows.iter_mut().filter(|row| judged.contains(&row.metric)).collect();
    let tests: Vec<f64> = judged.iter().filter_map(|row| row.change?.p).collect();
    let mut corrected = adjusted(&tests).into_iter();
    // Six runs a side that are no pairs have a p that is small enough for all figures that there are.
    let can_show = |change: &Change| design == Design::Apart || can_differ(change.runs, tests.len());
    for row in &mut judged {
        row.is_judged = true;
        row.tests = tests.len().max(1);
        row.p = row.change.and_then(|change| change.p).and_then(|_| corrected.next());
        let is_enough = row.change.is_some_and(|change| change.runs >= RUNS_TO_CLAIM && can_show(&change));
        row.word = match row.p {
            Some(p) if is_enough && may_differ && p <= ALPHA => Word::Differ,
            Some(_) if is_enough && may_differ => Word::NoDifference,
            _ => Word::NotKnown,
        };
    }
}

/// Why nothing may be claimed of the sides; empty where it may.
fn doubts(comparison: &Comparison, question: &Question) -> Vec<String> {
    let mut doubts = Vec::new();
    let runs = comparison.runs();
    if runs < RUNS_TO_CLAIM {
        let count = counted(runs as u64, "run");
        doubts.push(format!("{count} a side: {RUNS_TO_CLAIM} or more are needed"));
    }
    if comparison.design == Design::Apart && !question.accept_order {
        doubts.push(format!(
            "the runs of {} and {} did not alternate in mixed order (--accept-order judges them anyway)",
            comparison.names.0[0], comparison.names.0[1]
        ));
    }
    for (name, side) in comparison.names.0.into_iter().zip(&comparison.sides) {
        let count = |wanted: &dyn Fn(&RunFigures) -> bool| side.runs.iter().filter(|run| wanted(run)).count();
        doubts.extend(incomplete_words(name, side));
        doubts.extend(failed_words(name, side));
        let unsteady = count(&|run| run.steady == Some(false));
        if unsteady > 0 && !question.accept_unsteady {
            let what = "not steady (--accept-unsteady judges them anyway)";
            doubts.push(runs_that(unsteady, side.runs.len(), name, what));
        }
        if side.wrong_values() > 0 {
            doubts.push(format!("wrong values were found in runs of {name}"));
        }
    }
    let plans = comparison.differences.iter().filter(|difference| difference.is_of_the_load);
    let names = options_of(plans, comparison.sides.each_ref().map(|side| &side.plan));
    if !question.loads_may_differ && !names.is_empty() {
        doubts.push(format!("the plans differ in {}", names.join(", ")));
    }
    doubts
}

/// What is not complete of a side, as a sentence without its end; `None` where every run is complete.
pub(super) fn incomplete_words(name: &str, side: &Side) -> Option<String> {
    let failed = side.runs.iter().filter(|run| run.status != Status::Complete).count();
    (failed > 0).then(|| runs_that(failed, side.runs.len(), name, "not complete"))
}

/// How many runs of a side were made of errors for the most part, as a sentence without its end; `None` where none was.
fn failed_words(name: &str, side: &Side) -> Option<String> {
    let failed = side.runs.iter().filter(|run| run.outcome == RunOutcome::Failed).count();
    (failed > 0).then(|| runs_that(failed, side.runs.len(), name, "of errors or timeouts for the most part"))
}

/// Some of all runs of a side, as words.
fn of_runs(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "the run".to_owned(),
        (some, all) => format!("{some} of {all} runs"),
    }
}

/// What `some` of all runs of a side were, as a sentence without its end.
fn runs_that(some: usize, all: usize, name: &str, what: &str) -> String {
    let verb = if some == 1 { "was" } else { "were" };
    format!("{} of {name} {verb} {what}", of_runs(some, all))
}
