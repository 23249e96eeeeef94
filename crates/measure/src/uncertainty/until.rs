//! End of a measurement that goes on until a quantile is known: looks at its interval, and the time that follows.
//!
//! There are looks at t0 * 1.25^i, with t0 the least time or twenty windows. Where the interval of the quantile is narrow enough
//! at a look and rests on enough slow spells, the measurement goes on for a quarter of its length, and what is found there is
//! reported: a stop at the moment at which the interval looks narrow would favour moments at which it looks too narrow.

use super::Upper;
use crate::certainty::{Certainty, SPELLS_ENOUGH};
use crate::figures::{QUANTILES, Unanswered};
use crate::measurement::{Measurement, Status};
use crate::recorder::{OpRecord, Span};
use crate::uncertainty::{BASE_NS, Batches, Bounds};
use pummel_logic::plan::{Plan, Until};
use pummel_logic::time::Nanos;

/// The least number of windows before the first look.
const WINDOWS_MIN: Nanos = 20;

/// Factor by which the time grows from look to look, and after the look that decides.
const GROWTH: f64 = 1.25;

/// The looks at a measurement that goes on until a quantile is known.
#[derive(Clone, Debug)]
pub struct Looks {
    until: Until,
    /// Time of the next look, in nanoseconds from the beginning of the phase; `None` after the decision.
    next_ns: Option<Nanos>,
}

/// Certainty of the quantile of `--until` at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntilResult {
    /// Condition of the plan.
    pub until: Until,
    /// The greater distance of the quantile to an end of its interval, as a share of the quantile; `None` where one of the two
    /// ends is not known.
    pub half_width: Option<f64>,
    /// Whether the measurement ended because the quantile was known well enough, or is at its end.
    pub is_reached: bool,
}

impl Looks {
    /// The looks at the measurement of a plan; `None` where only time ends it.
    pub fn of(plan: &Plan) -> Option<Looks> {
        let until = plan.adaptive.until?;
        Some(Looks { until, next_ns: Some(until.least_ns.max(WINDOWS_MIN * BASE_NS)) })
    }

    /// Looks at what was measured so far, where a look is due. Returns when the phase is to end, in nanoseconds from its
    /// beginning, at the look that decides.
    pub fn look(&mut self, so_far: &Measurement) -> Option<Nanos> {
        let (next_ns, now_ns) = (self.next_ns?, so_far.measured_ns);
        if now_ns < next_ns {
            return None;
        }
        let all = so_far.ops().all();
        let bounds = bounds_of(so_far, &all, self.until.quantile);
        let is_enough = bounds.is_some_and(|(bounds, value)| {
            bounds.spells >= SPELLS_ENOUGH
                && half_width(&bounds, value).is_some_and(|half| half <= self.until.half_width)
        });
        let grown = |ns: Nanos| (ns as f64 * GROWTH) as Nanos;
        if is_enough {
            self.next_ns = None;
            return Some(grown(now_ns));
        }
        let mut next_ns = next_ns;
        while next_ns <= now_ns {
            next_ns = grown(next_ns).max(next_ns + 1);
        }
        self.next_ns = Some(next_ns);
        None
    }
}

impl UntilResult {
    /// Certainty of the quantile of a plan's `--until` at the end of a run; `None` where the plan has none, and where
    /// it cannot be known, since a process was lost with its measurement. `certainty` is that of all requests, `None`
    /// where it is not known.
    pub fn of(
        measurement: &Measurement,
        plan: &Plan,
        all: &OpRecord,
        certainty: Option<&Certainty>,
    ) -> Option<UntilResult> {
        let until = plan.adaptive.until?;
        if measurement.agents.as_ref().is_some_and(|agents| !agents.have_all_reported()) {
            return None;
        }
        let bounds = certainty.and_then(|_| bounds_of(measurement, all, until.quantile));
        let half_width = bounds.and_then(|(bounds, value)| half_width(&bounds, value));
        let longest_ns = plan.phases.iter().find(|phase| phase.recorded).and_then(|phase| phase.stop.time_ns);
        // What was cut short by something else did not end because enough was known.
        let is_complete = measurement.status == Status::Complete;
        let ended_early =
            is_complete && longest_ns.is_some_and(|longest_ns| measurement.measured_ns < longest_ns);
        let is_narrow = half_width.is_some_and(|half| half <= until.half_width)
            && bounds.is_some_and(|(bounds, _)| bounds.spells >= SPELLS_ENOUGH);
        let is_reached = is_narrow || ended_early && half_width.is_some();
        Some(UntilResult { until, half_width, is_reached })
    }

    /// The name of the quantile, such as `p99`.
    pub fn name(&self) -> String {
        quantile_name(self.until.quantile)
    }
}

/// The name of a quantile, such as `p99.9`.
pub fn quantile_name(quantile: f64) -> String {
    let known = QUANTILES.iter().find(|(_, known)| *known == quantile);
    known.map_or_else(|| format!("p{}", libm::round(quantile * 1e8) / 1e6), |(name, _)| (*name).to_owned())
}

/// The interval of a quantile of all response times, and the quantile.
fn bounds_of(measurement: &Measurement, all: &OpRecord, quantile: f64) -> Option<(Bounds, Nanos)> {
    let windows = measurement.windows.as_ref()?;
    let batches = Batches::of(windows, measurement.measured_ns, |_, _| true)?;
    let fine = all.times.of(Span::Response);
    let unanswered = Unanswered::of(&all.counts, Span::Response, fine, measurement.timeout_ns).total();
    let bounds = batches.quantile(Span::Response, fine, unanswered, quantile)?;
    let value = fine.at_rank(crate::histogram::rank(quantile, fine.count() + unanswered))?;
    Some((bounds, value))
}

/// The greater distance of a quantile to an end of its interval, as a share of the quantile.
fn half_width(bounds: &Bounds, value: Nanos) -> Option<f64> {
    let (Some(low), Upper::Known(high)) = (bounds.low, bounds.high) else { return None };
    let distance = value.saturating_sub(low).max(high.saturating_sub(value));
    (value > 0).then(|| distance as f64 / value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::simulated::{Run, queue, slices};
    use crate::uncertainty::windows::Windows;
    use pummel_logic::merge::Merge as _;
    use pummel_logic::plan::{Adaptive, Mix, Phase, Stop, Work};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MICROSECOND, SECOND};

    const SERVICE_NS: f64 = 40.0 * MICROSECOND as f64;
    const LONGEST_NS: Nanos = 30 * SECOND;

    /// A plan that measures until its 99th percentile is known to this share.
    fn plan(half_width: f64) -> Plan {
        let until = Until { quantile: 0.99, half_width, least_ns: 2 * SECOND };
        let stop = Stop { time_ns: Some(LONGEST_NS), requests: None };
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        Plan {
            adaptive: Adaptive { until: Some(until), ..Adaptive::default() },
            phases: vec![Phase { name: "run".to_owned(), work, stop, recorded: true }],
            ..Plan::default()
        }
    }

    /// The measurement of a simulated queue at half load that ends when its 99th percentile is known to this share, or at its
    /// longest time.
    fn measured(seed: u64, plan: &Plan) -> Measurement {
        let mut looks = Looks::of(plan).expect("the plan has looks");
        let mut measurement = Run::of(0, []).measurement();
        measurement.windows = Some(Windows::new(BASE_NS));
        let mut end_ns = LONGEST_NS;
        slices(LONGEST_NS, queue(seed, 0.5, SERVICE_NS, LONGEST_NS), |slice| {
            if slice.start_ns >= end_ns {
                return;
            }
            measurement.windows.as_mut().expect("just made").add(slice);
            measurement.groups[0].ops.merge(slice.groups[0].ops());
            measurement.measured_ns = slice.end_ns;
            if slice.end_ns.is_multiple_of(SECOND)
                && let Some(end) = looks.look(&measurement)
            {
                end_ns = end;
            }
        });
        measurement
    }

    #[test]
    fn an_interval_that_ended_a_run_contains_the_truth_in_9_of_10_runs() {
        const RUNS: u64 = 40;
        const ASKED: f64 = 0.08;
        let plan = plan(ASKED);
        let truth = -libm::log(0.01) * SERVICE_NS / 0.5;
        let (mut covered, mut near, mut early) = (0, 0, 0);
        for seed in 0..RUNS {
            let measurement = measured(seed, &plan);
            let all = measurement.ops().all();
            let (bounds, value) = bounds_of(&measurement, &all, 0.99).expect("an interval");
            let above = match bounds.high {
                Upper::Known(high) => high as f64 >= truth,
                Upper::Unanswered | Upper::Open => true,
            };
            covered += u64::from(above && bounds.low.is_none_or(|low| low as f64 <= truth));
            let half = half_width(&bounds, value).unwrap_or(f64::INFINITY).max(ASKED);
            near += u64::from(libm::fabs(value as f64 / truth - 1.0) <= half);
            early += u64::from(measurement.measured_ns < LONGEST_NS);
        }
        assert!(covered >= 34, "{covered} of {RUNS} contain the truth");
        assert!(near >= 37, "{near} of {RUNS} are as near as was asked");
        assert!(early >= 38, "{early} of {RUNS} ended before the longest time");
    }

    #[test]
    fn a_target_that_is_out_of_reach_is_not_reached_at_the_longest_time() {
        let plan = plan(0.001);
        let measurement = measured(3, &plan);
        assert_eq!(measurement.measured_ns, LONGEST_NS);
        let all = measurement.ops().all();
        let certainty = Certainty::of(&measurement, &all, |_, _| true);
        let result = UntilResult::of(&measurement, &plan, &all, certainty.as_ref()).expect("it was asked");
        assert!(!result.is_reached && result.half_width.is_some_and(|half| half > 0.001), "{result:?}");
        assert_eq!(result.name(), "p99");
        let unsure = UntilResult::of(&measurement, &plan, &all, None).expect("it was asked");
        assert_eq!(
            (unsure.half_width, unsure.is_reached),
            (None, false),
            "of an unsteady run nothing is sure"
        );
        assert_eq!(quantile_name(0.975), "p97.5");
    }

    #[test]
    fn looks_come_less_and_less_often_and_the_one_that_decides_adds_a_quarter() {
        let mut looks = Looks::of(&plan(0.5)).expect("the plan has looks");
        let mut so_far = Run::of(0, []).measurement();
        so_far.measured_ns = SECOND;
        assert_eq!(looks.look(&so_far), None);
        assert_eq!(looks.next_ns, Some(2 * SECOND), "the least time");
        so_far.measured_ns = 4 * SECOND;
        assert_eq!(looks.look(&so_far), None, "nothing was measured");
        assert_eq!(looks.next_ns, Some(4_882_812_500), "2 s and a quarter four times");
        let mut known = Run::of(6 * SECOND, queue(1, 0.5, SERVICE_NS, 6 * SECOND)).measurement();
        assert_eq!(looks.look(&known), Some(7_500_000_000));
        known.measured_ns = 7 * SECOND;
        assert_eq!(looks.look(&known), None, "the decision stands");
    }
}
