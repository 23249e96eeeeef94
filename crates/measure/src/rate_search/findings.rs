//! Result of one run for a search: how near its quantiles and their upper bounds came to the limits of the goals.

use super::{RunFindings, Unsound};
use crate::measurement::Measurement;
use crate::reason::Reason;
use crate::recorder::Span;
use crate::summary::{GoalResult, Summary};
use crate::uncertainty::{Batches, Upper};
use pummel_logic::time::Nanos;

impl RunFindings {
    /// Takes what the search needs from the summary of a run after a plan with goals. `carried` says whether requests
    /// were answered about as fast as they were asked.
    pub fn of(measurement: &Measurement, summary: &Summary, carried: bool) -> RunFindings {
        let margin = greatest(&summary.goals, |goal| Some(above_limit(goal.reached.known()?, goal)));
        let seen = RunFindings {
            rate: summary.totals.rate,
            margin,
            margin_high: margin_high(measurement, summary),
            carried,
            generator: summary.verdict.is_generator().then(|| summary.verdict.cause.clone()),
            unsound: None,
        };
        let is_unsteady = summary.steadiness.as_ref().is_some_and(|steadiness| !steadiness.is_steady());
        // A goal that is met although the generator is at its end is met all the more.
        let generator = seen.generator.clone().filter(|_| !seen.met()).map(Unsound::Generator);
        // Beyond its limit a server has no steady times: the rate was missed, which says something.
        let unsteady = (is_unsteady && carried).then_some(Unsound::Unsteady);
        let is_idle = measurement.reason == Some(Reason::NothingDue);
        let idle = is_idle.then_some(Unsound::Idle);
        let unsound = idle.or(unsteady).or(generator);
        RunFindings { unsound, ..seen }
    }
}

/// The greatest value of `of` over all goals; `None` where one is not known.
fn greatest(goals: &[GoalResult], of: impl Fn(&GoalResult) -> Option<f64>) -> Option<f64> {
    let known: Option<Vec<f64>> = goals.iter().map(of).collect();
    known?.into_iter().reduce(f64::max)
}

/// ln(value / limit), for a value and a limit in nanoseconds.
fn above_limit(value: Nanos, goal: &GoalResult) -> f64 {
    libm::log(value.max(1) as f64 / goal.goal.limit_ns.max(1) as f64)
}

fn margin_high(measurement: &Measurement, summary: &Summary) -> Option<f64> {
    let batches = Batches::of(measurement.windows.as_ref()?, measurement.measured_ns, |_, _| true)?;
    let together = measurement.ops();
    let all = together.all();
    let fine = all.times.of(Span::Response);
    let high = |goal: &GoalResult| {
        let bounds = batches.quantile(Span::Response, fine, all.counts.unanswered(), goal.goal.quantile)?;
        match bounds.high {
            Upper::Known(high) => Some(above_limit(high, goal)),
            Upper::Unanswered | Upper::Open => None,
        }
    };
    greatest(&summary.goals, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completion::nothing_completed;
    use crate::measurement::Status;
    use crate::scenario::quiet;
    use pummel_logic::plan::{Clock, Goal};
    use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};

    /// Result of a quiet run, whose responses are 43 us, for goals of its median.
    fn seen(limits_us: &[u64]) -> RunFindings {
        let run = quiet();
        let mut plan = run.plan();
        plan.goals = limits_us.iter().map(|us| Goal { quantile: 0.5, limit_ns: us * MICROSECOND }).collect();
        let measurement = run.measurement();
        RunFindings::of(&measurement, &Summary::of(&measurement, &plan), true)
    }

    #[test]
    fn the_goal_that_is_nearest_to_its_limit_counts() {
        let near = seen(&[1_000, 86]).margin.expect("known");
        assert!((near + libm::log(2.0)).abs() < 0.02, "half of the limit: {near}");
        assert!(seen(&[1_000, 86]).met());
        assert!(!seen(&[1_000, 20]).met());
    }

    #[test]
    fn a_run_in_which_no_request_was_due_says_nothing() {
        let run = quiet();
        let (plan, whole) = (run.plan(), run.measurement());
        let of =
            |measurement: &Measurement| RunFindings::of(measurement, &Summary::of(measurement, &plan), true);
        assert_eq!(of(&whole).unsound, None);
        let mut idle = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
        idle.mark(Status::Partial, nothing_completed(&plan, &idle, None));
        assert_eq!(of(&idle).unsound, Some(Unsound::Idle));
        let mut failed = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
        failed.message(b"SERVER_ERROR busy", 1);
        failed.mark(Status::Partial, nothing_completed(&plan, &failed, None));
        assert_eq!(of(&failed).unsound, None, "it failed");
    }

    #[test]
    fn a_goal_without_windows_is_met_and_not_surely() {
        let run = quiet();
        let mut plan = run.plan();
        plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND }];
        let measurement = Measurement { windows: None, ..run.measurement() };
        let seen = RunFindings::of(&measurement, &Summary::of(&measurement, &plan), true);
        assert!(seen.met() && !seen.met_surely(), "{seen:?}");
    }
}
