//! Test of whether a run was at one level from its beginning to its end, and its figures on either side of a change.
//!
//! Two questions are asked of the batches of a run, about the median response, the rate in closed loop and the hit
//! share: does the first eighth differ from the last half (Geweke's diagnostic), and is there a moment before and after
//! which the levels differ (the self-normalised statistic of Shao and Zhang, and four standard errors between the two
//! sides). The figures share a level of 1 % for each question, and a difference below 5 % is no reason to call a run
//! unsteady. The tail is not tested: of few slow spells it varies so much that false alarms would reach 13 to 19 %.

use std::fmt;

use super::batches::Batches;
use super::series::Series;
use crate::evidence::server::BackgroundSave;
use crate::histogram::rank;
use crate::measurement::{Measurement, WarmUp, WarmUpEnd};
use crate::recorder::{OpRecord, Span};
use crate::summary::Unanswered;
use crate::uncertainty::WindowOp;
use pummel_logic::plan::{Arrivals, Goal, Group, Phase, Plan, Work};
use pummel_logic::time::{Nanos, seconds};

/// Least number of batches that steadiness can be judged from.
const BATCHES_MIN: usize = 16;

/// The two-sided 1 % point of the score of a beginning where the level is shared by one, two and three figures: by simulation
/// of 32 batches, the standard error being that of the last 16, with a correlation of 0.2 between neighbours.
const BEGINNING_LIMITS: [f64; 3] = [3.16, 3.60, 3.86];

/// The point of Shao and Zhang's G that it exceeds with a probability of 1 %, shared by one, two and three figures: 68.6 and 84.6
/// from the table of their paper, the last by simulation.
const CHANGE_LIMITS: [f64; 3] = [68.6, 84.6, 93.0];

/// Least distance between the two sides of a change in standard errors. The statistic G alone calls 4 to 12 of 100
/// steady runs unsteady where requests depend on each other over a tenth of the run.
const CHANGE_DISTANCE_MIN: f64 = 4.0;

/// Least difference, as a share of the smaller value, that makes a run unsteady.
const DIFFERENCE_MIN: f64 = 0.05;

/// Result of the test whether a run was at one level.
#[derive(Clone, Debug, PartialEq)]
pub enum Steadiness {
    /// No difference was found in the run.
    Steady,
    /// The warm-up was over before the load had settled.
    Unsettled,
    /// A server saved its records in the background for a part of the run.
    Saved,
    /// A figure of the run was not at one level.
    Unsteady(Box<LevelChange>),
}

/// A moment before and after which a figure of a run differed.
#[derive(Clone, PartialEq)]
pub struct LevelChange {
    /// Figure that changed.
    pub figure: LevelFigure,
    /// Kind of the change: at the beginning, or at a moment.
    pub kind: ChangeKind,
    /// The moment, in nanoseconds from the beginning of the measured phase.
    pub at_ns: Nanos,
    /// The figure before the moment: nanoseconds, requests per second or a share; `None` where it falls among the requests
    /// without an answer.
    pub before: Option<f64>,
    /// The figure after the moment; `None` where it falls among the requests without an answer.
    pub after: Option<f64>,
    /// All requests before the moment.
    requests_before: WindowOp,
    /// All requests after the moment.
    requests_after: WindowOp,
}

/// A figure that shows the level of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelFigure {
    /// The median of the response time.
    P50,
    /// Completed requests per second.
    Rate,
    /// The share of keys that reads found.
    HitShare,
}

/// Way in which a run was not at one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The first eighth of the run differed from its last half.
    Beginning,
    /// The figures differed before and after a moment.
    Step,
}

/// Whether a warm-up was to settle and had not when its time was over.
fn is_unsettled(warm_up: WarmUp) -> bool {
    warm_up.until == WarmUpEnd::Settled && !warm_up.settled && !warm_up.cut_short
}

/// Whether a server saved its records in the background for a part of the measured phase: the child process shares its machine, and
/// every page that is written meanwhile is copied.
fn was_saved_in_part(measurement: &Measurement) -> bool {
    let servers = measurement.evidence.iter().flat_map(|evidence| &evidence.servers);
    let mut saves = servers.filter_map(|server| server.reading.as_ref()).flat_map(|reading| &reading.saves);
    saves.any(BackgroundSave::is_partial)
}

impl Steadiness {
    /// Tests whether a run after `plan` was steady, all of whose requests are `all`. `None` where the plan changes its
    /// load within the run, where several phases were measured or a recording was replayed, and where there are fewer
    /// than sixteen batches of windows.
    pub fn of(measurement: &Measurement, plan: &Plan, all: &OpRecord) -> Option<Steadiness> {
        match Steadiness::of_batches(measurement, plan, all) {
            Some(Steadiness::Unsteady(change)) => Some(Steadiness::Unsteady(change)),
            _ if measurement.warm_up.is_some_and(is_unsettled) => Some(Steadiness::Unsettled),
            Some(Steadiness::Steady) if was_saved_in_part(measurement) => Some(Steadiness::Saved),
            judged => judged,
        }
    }

    /// Tests whether the measured phase was steady by itself.
    fn of_batches(measurement: &Measurement, plan: &Plan, all: &OpRecord) -> Option<Steadiness> {
        let phase = constant_phase(plan)?;
        let windows = measurement.windows.as_ref()?;
        let batches = Batches::of(windows, measurement.measured_ns, |_, _| true)?;
        if batches.count() < BATCHES_MIN {
            return None;
        }
        let levels = levels_of(&batches, measurement, all, has_own_rate(plan, phase));
        let varying = levels.iter().filter(|(_, series)| !series.is_constant()).count();
        let limit = |limits: &[f64; 3]| limits[varying.clamp(1, limits.len()) - 1];
        for (figure, series) in &levels {
            if let Some((statistic, after)) = series.change()
                && statistic > limit(&CHANGE_LIMITS)
                && series.distance(after) > CHANGE_DISTANCE_MIN
                && let Some(change) = LevelChange::at(&batches, *figure, ChangeKind::Step, after)
            {
                return Some(Steadiness::Unsteady(Box::new(change)));
            }
        }
        for (figure, series) in &levels {
            if libm::fabs(series.beginning()) > limit(&BEGINNING_LIMITS)
                && let Some(change) =
                    LevelChange::at(&batches, *figure, ChangeKind::Beginning, series.first_part())
            {
                return Some(Steadiness::Unsteady(Box::new(change)));
            }
        }
        Some(Steadiness::Steady)
    }

    /// Whether no difference was found, after a warm-up that had settled, and no server saved for a part of the run.
    pub fn is_steady(&self) -> bool {
        *self == Steadiness::Steady
    }

    /// The change that was found; `None` in a run that was steady.
    pub fn change(&self) -> Option<&LevelChange> {
        match self {
            Steadiness::Steady | Steadiness::Unsettled | Steadiness::Saved => None,
            Steadiness::Unsteady(change) => Some(change),
        }
    }
}

impl fmt::Debug for LevelChange {
    /// Writes the facts of the change, without the histograms of either side.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LevelChange { figure, kind, at_ns, before, after, .. } = self;
        write!(to, "{kind:?} of {figure:?} at {at_ns} ns from {before:?} to {after:?}")
    }
}

impl LevelChange {
    /// The change of a figure after this many batches; `None` where it is too small to matter.
    fn at(
        batches: &Batches,
        figure: LevelFigure,
        kind: ChangeKind,
        after_batches: usize,
    ) -> Option<LevelChange> {
        let split = batches.split(after_batches);
        let value = |op: &WindowOp, length_ns: Nanos| figure.value_of(op, length_ns);
        let before = value(&split.before, split.before_ns);
        let after = value(&split.after, split.after_ns);
        let differs = match (before, after) {
            (Some(before), Some(after)) => libm::fabs(before - after) > DIFFERENCE_MIN * before.min(after),
            (None, None) => false,
            _ => true,
        };
        let (requests_before, requests_after) = (split.before, split.after);
        let at_ns = split.at_ns;
        differs.then_some(LevelChange { figure, kind, at_ns, before, after, requests_before, requests_after })
    }

    /// Whether a goal holds before the change and after it. `fine` has the response times of the whole run, by which the coarse
    /// cell of the limit is divided.
    pub fn goal_holds(&self, goal: &Goal, all: &OpRecord) -> [bool; 2] {
        let fine = all.times.of(Span::Response);
        [&self.requests_before, &self.requests_after].map(|op| {
            let cells = &op.times[0].cells;
            let total = cells.count() + op.unanswered;
            let allowed = total - rank(goal.quantile, total).min(total);
            let above = cells.above(goal.limit_ns, fine) + op.unanswered as f64;
            total == 0 || above <= allowed as f64 + 0.5
        })
    }
}

impl LevelFigure {
    /// The figure of requests that ended within a time; `None` where it falls among the requests without an answer.
    fn value_of(self, op: &WindowOp, length_ns: Nanos) -> Option<f64> {
        match self {
            LevelFigure::P50 => {
                let cells = &op.times[0].cells;
                cells.interpolated(0.5 * (cells.count() + op.unanswered) as f64)
            }
            LevelFigure::Rate => (length_ns > 0).then(|| op.completed as f64 / seconds(length_ns)),
            LevelFigure::HitShare => (op.keys > 0).then(|| op.hits as f64 / op.keys as f64),
        }
    }
}

/// The figures that show the level of a run, over its batches.
fn levels_of(
    batches: &Batches,
    measurement: &Measurement,
    all: &OpRecord,
    has_own_rate: bool,
) -> Vec<(LevelFigure, Series)> {
    let fine = all.times.of(Span::Response);
    let unanswered = Unanswered::of(&all.counts, Span::Response, fine, measurement.timeout_ns).total();
    let mut levels = Vec::new();
    levels.extend(
        batches.above(Span::Response, fine, unanswered, 0.5).map(|series| (LevelFigure::P50, series)),
    );
    if has_own_rate {
        levels.push((LevelFigure::Rate, batches.rates()));
    }
    levels.push((LevelFigure::HitShare, batches.hit_shares()));
    levels
}

/// Whether the load of a plan is the same from the beginning of its only measured phase to its end, so that its figures
/// may be at one level.
pub fn has_constant_load(plan: &Plan) -> bool {
    constant_phase(plan).is_some()
}

/// The only measured phase of a plan, where its load is the same from its beginning to its end.
fn constant_phase(plan: &Plan) -> Option<&Phase> {
    let mut recorded = plan.phases.iter().filter(|phase| phase.recorded);
    let phase = recorded.next()?;
    let is_constant = matches!(phase.work, Work::Mix(_) | Work::Window(_))
        && recorded.next().is_none()
        && plan.changes.is_nothing();
    is_constant.then_some(phase)
}

/// Whether the rate of a phase is set by the server and not by the plan, from its beginning to its end: where a number
/// of requests ends a phase, clients end one after the other.
fn has_own_rate(plan: &Plan, phase: &Phase) -> bool {
    let is_closed = |group: &Group| group.arrivals == Arrivals::Closed && group.churn.is_none();
    phase.stop.requests.is_none() && plan.groups.iter().all(is_closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::server::SaveKind;
    use crate::evidence::{Evidence, ServerEvidence, ServerReading};
    use crate::summary::Summary;
    use crate::uncertainty::simulated::{Run, changing_queue, queue};
    use pummel_logic::plan::{Mix, Pause, RatePoint, RateShape, Replay, Stop};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MICROSECOND, SECOND};

    const SERVICE_NS: f64 = 40.0 * MICROSECOND as f64;
    const LENGTH_NS: Nanos = 8 * SECOND;

    /// A plan of one measured phase of this work, with clients in closed loop or at a rate.
    fn plan(work: Work, rate: Option<f64>) -> Plan {
        let stop = Stop { time_ns: Some(LENGTH_NS), requests: None };
        let phase = Phase { name: "run".to_owned(), work, stop, recorded: true };
        let arrivals = if rate.is_some() { Arrivals::Poisson } else { Arrivals::Closed };
        let group = Group { rate, arrivals, ..Group::default() };
        Plan { groups: vec![group], phases: vec![phase], ..Plan::default() }
    }

    fn open_plan() -> Plan {
        plan(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), Some(1e4))
    }

    fn judged(requests: Vec<(Nanos, Option<Nanos>)>, plan: &Plan) -> Option<Steadiness> {
        let measurement = Run::of(LENGTH_NS, requests).measurement();
        let all = measurement.ops().all();
        Steadiness::of(&measurement, plan, &all)
    }

    #[test]
    fn a_steady_queue_is_called_unsteady_in_8_of_100_runs_at_most() {
        for load in [0.5, 0.8] {
            let is_alarm = |seed: &u64| {
                let judged = judged(queue(*seed, load, SERVICE_NS, LENGTH_NS), &open_plan());
                judged.expect("enough batches").change().is_some()
            };
            let alarms = (0..100).filter(is_alarm).count();
            assert!(alarms <= 8, "load {load}: {alarms} of 100");
        }
    }

    /// A steady run one of whose servers saved in the background at these times.
    fn judged_with_save(from_ns: Option<Nanos>, to_ns: Option<Nanos>) -> Steadiness {
        let mut measurement = Run::of(LENGTH_NS, queue(1, 0.5, SERVICE_NS, LENGTH_NS)).measurement();
        let saves = vec![BackgroundSave { kind: SaveKind::Snapshot, from_ns, to_ns }];
        let reading = Some(ServerReading { saves, ..ServerReading::default() });
        let servers = vec![ServerEvidence { reading, ..ServerEvidence::default() }];
        measurement.evidence = Some(Evidence { servers, ..Evidence::default() });
        let all = measurement.ops().all();
        Steadiness::of(&measurement, &open_plan(), &all).expect("enough batches")
    }

    #[test]
    fn a_save_for_a_part_of_the_run_makes_it_unsteady_and_one_for_all_of_it_does_not() {
        assert_eq!(judged_with_save(None, None), Steadiness::Steady);
        for (from_ns, to_ns) in
            [(Some(2 * SECOND), Some(4 * SECOND)), (None, Some(SECOND)), (Some(5 * SECOND), None)]
        {
            let judged = judged_with_save(from_ns, to_ns);
            assert_eq!((&judged, judged.is_steady()), (&Steadiness::Saved, false));
            assert!(judged.change().is_none());
        }
    }

    #[test]
    fn a_step_of_30_percent_at_half_time_is_found_at_the_right_second() {
        let found = |seed: &u64| {
            let level = |at_s: f64| if at_s < 4.0 { 1.0 } else { 1.3 };
            let requests = changing_queue(*seed, 0.5, SERVICE_NS, LENGTH_NS, level);
            let judged = judged(requests, &open_plan()).expect("enough batches");
            judged.change().is_some_and(|change| (3.0..=5.0).contains(&seconds(change.at_ns)))
        };
        let found = (0..40).filter(found).count();
        assert!(found >= 38, "{found} of 40");
    }

    #[test]
    fn a_beginning_that_is_twice_as_slow_and_decays_is_found() {
        let found = |seed: &u64| {
            let level = |at_s: f64| 1.0 + libm::exp(-at_s / 0.8);
            let requests = changing_queue(*seed, 0.4, SERVICE_NS, LENGTH_NS, level);
            judged(requests, &open_plan()).expect("enough batches").change().is_some()
        };
        let found = (0..20).filter(found).count();
        assert!(found >= 19, "{found} of 20");
    }

    /// The summary of a run whose service is slower by half from the middle on, with goals.
    fn stepped(goals: Vec<Goal>) -> Summary {
        let level = |at_s: f64| if at_s < 4.0 { 1.0 } else { 1.5 };
        let run = Run::of(LENGTH_NS, changing_queue(5, 0.4, SERVICE_NS, LENGTH_NS, level));
        Summary::of(&run.measurement(), &Plan { goals, ..open_plan() })
    }

    #[test]
    fn the_figures_of_a_load_that_changes_by_plan_have_no_certainty() {
        let measurement = Run::of(LENGTH_NS, queue(3, 0.4, SERVICE_NS, LENGTH_NS)).measurement();
        let mut plan = open_plan();
        assert!(Summary::of(&measurement, &plan).totals.certainty.is_some());
        let point = |at_ns, rate| RatePoint { at_ns, rate };
        plan.changes.rate = Some(RateShape::Points(vec![point(0, 1e4), point(SECOND, 2e4)]));
        let summary = Summary::of(&measurement, &plan);
        assert_eq!((&summary.totals.certainty, &summary.ops[0].1.certainty), (&None, &None));
        assert_eq!(summary.steadiness, None);
    }

    #[test]
    fn the_figures_of_a_trace_a_recording_and_several_phases_have_no_certainty() {
        let measurement = Run::of(LENGTH_NS, queue(3, 0.4, SERVICE_NS, LENGTH_NS)).measurement();
        let certainty = |plan: &Plan| {
            let summary = Summary::of(&measurement, plan);
            assert_eq!(summary.steadiness, None);
            (summary.totals.certainty, summary.ops[0].1.certainty.clone())
        };
        let path = "requests".to_owned();
        let recording = Replay { path, format: 0, read_through_ns: None, reads_only: false };
        assert_eq!(certainty(&plan(Work::Replay(recording), None)), (None, None));
        let mut twice = open_plan();
        twice.phases.push(twice.phases[0].clone());
        assert_eq!(certainty(&twice), (None, None));
        // A phase that is not measured is no second level.
        let mut warm = open_plan();
        let warm_up = Phase { recorded: false, ..warm.phases[0].clone() };
        warm.phases.insert(0, warm_up);
        assert!(Summary::of(&measurement, &warm).totals.certainty.is_some());
    }

    #[test]
    fn the_figures_of_an_unsteady_run_have_no_certainty_and_its_change_has_both_levels() {
        let summary = stepped(Vec::new());
        assert_eq!((&summary.totals.certainty, &summary.ops[0].1.certainty), (&None, &None));
        let change = summary.change().expect("a change");
        assert_eq!((change.figure, change.kind), (LevelFigure::P50, ChangeKind::Step));
        let (before, after) = (change.before.expect("known"), change.after.expect("known"));
        assert!((40_000.0..50_000.0).contains(&before) && after > 1.5 * before, "{change:?}");
        assert!(change.at_ns.abs_diff(4 * SECOND) < SECOND / 5, "{change:?}");
    }

    #[test]
    fn a_goal_is_undecided_where_the_two_sides_of_a_change_disagree() {
        // The medians are 46 and 104 us.
        let goal = |limit_us: u64| Goal { quantile: 0.5, limit_ns: limit_us * MICROSECOND };
        let summary = stepped(vec![goal(20), goal(60), goal(200)]);
        let met: Vec<Option<bool>> = summary.goals.iter().map(|result| result.met).collect();
        assert_eq!(met, [Some(false), None, Some(true)]);
        assert!(summary.missed_a_goal(), "what is undecided is not met");
    }

    #[test]
    fn runs_that_are_short_or_change_by_plan_are_not_judged() {
        let requests = || queue(4, 0.5, SERVICE_NS, LENGTH_NS);
        assert_eq!(judged(requests(), &open_plan()), Some(Steadiness::Steady));
        assert_eq!(judged(requests(), &plan(Work::Pause(Pause { until_ns: 0, for_ns: 0 }), None)), None);
        let twice = Plan { phases: [open_plan().phases, open_plan().phases].concat(), ..open_plan() };
        assert_eq!(judged(requests(), &twice), None, "two measured phases");
        let short = Run::of(SECOND, queue(3, 0.5, SERVICE_NS, SECOND)).measurement();
        assert_eq!(Steadiness::of(&short, &open_plan(), &short.ops().all()), None, "ten batches");
    }

    #[test]
    fn the_rate_is_judged_in_closed_loop_where_time_ends_the_phase() {
        // A closed loop whose rate falls by a third while the median stays.
        let count = |second: u64| if second < 4 { 9_000 } else { 6_000 };
        let requests = (0..8).flat_map(|second| {
            (0..count(second)).map(move |i| {
                let jitter = (i * 7_919 + second * 31) % 1_000;
                (second * SECOND + i * SECOND / count(second), Some(50_000 + jitter))
            })
        });
        let requests: Vec<_> = requests.collect();
        let closed = plan(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), None);
        let judged_closed = judged(requests.clone(), &closed).expect("enough batches");
        assert_eq!(judged_closed.change().map(|change| change.figure), Some(LevelFigure::Rate));
        let counted = |requests| Stop { time_ns: Some(LENGTH_NS), requests };
        let mut ended_by_requests = closed.clone();
        ended_by_requests.phases[0].stop = counted(Some(60_000));
        assert_eq!(judged(requests.clone(), &ended_by_requests), Some(Steadiness::Steady));
        assert_eq!(judged(requests, &open_plan()), Some(Steadiness::Steady), "the rate is the plan's");
    }
}
