//! A rate that was changed by hand while a run went on, as steps over time and as the plan that repeats it.

use super::curve::RateCurve;
use crate::plan::{Plan, RatePoint, RateShape};
use crate::time::Nanos;

/// Most changes of a rate by hand in one run.
pub const CHANGES_MAX: usize = 1_000;

/// The rate over time that is `first` requests per second until the first change, and that of each change from its moment on.
/// Changes are in the order of time.
pub fn steps(first: f64, changes: &[RatePoint]) -> RateShape {
    let mut points = vec![RatePoint { at_ns: 0, rate: first }];
    let mut rate = first;
    for change in changes {
        points.push(RatePoint { at_ns: change.at_ns, rate });
        points.push(*change);
        rate = change.rate;
    }
    RateShape::Points(points)
}

/// The plan that repeats the run of `plan` with these changes of the rate of its first group, in the order of time:
/// every request is due at the same time. Without changes it is `plan` itself.
pub fn steered_plan(plan: &Plan, changes: &[RatePoint]) -> Plan {
    let mut steered = plan.clone();
    let Some(first) = plan.groups.first().and_then(|group| group.rate) else { return steered };
    if changes.is_empty() {
        return steered;
    }
    let shape = steps(first, changes);
    let measured = plan.phases.iter().find(|phase| phase.recorded);
    let length_ns: Nanos = measured.and_then(|phase| phase.stop.time_ns).unwrap_or(1);
    steered.groups[0].rate = Some(RateCurve::of(&shape).mean_until(length_ns.max(1)));
    steered.changes.rate = Some(shape);
    steered
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::arrival::{Pace, Schedule};
    use crate::dist::Dist;
    use crate::plan::{Arrivals, Group, Mix, Stop, Work};
    use crate::protocol::Verb;
    use crate::rng::StreamOwner;
    use crate::time::{MILLISECOND, SECOND};

    /// Changes of a rate of 1,000: more, nothing for a time, less.
    const CHANGES: [RatePoint; 4] = [
        RatePoint { at_ns: 1_300 * MILLISECOND, rate: 2_700.0 },
        RatePoint { at_ns: 2_100 * MILLISECOND, rate: 0.0 },
        RatePoint { at_ns: 2_900 * MILLISECOND, rate: 2_700.0 },
        RatePoint { at_ns: 3_333 * MILLISECOND, rate: 105.5 },
    ];

    fn curve(changes: &[RatePoint]) -> Arc<RateCurve> {
        Arc::new(RateCurve::of(&steps(1_000.0, changes)))
    }

    fn schedule(arrivals: &Arrivals, client: u64, curve: Arc<RateCurve>) -> Schedule {
        Pace::along(arrivals, curve, 3).schedule(StreamOwner { seed: 7, group: 0, phase: 0, client })
    }

    /// A schedule that learns of each change half a second ahead has the due times of a schedule that knew all changes
    /// from the beginning.
    #[test]
    fn a_schedule_that_follows_changes_is_that_of_the_plan_that_repeats_them() {
        for arrivals in
            [Arrivals::Constant, Arrivals::Poisson, Arrivals::Shape(Dist::Uniform { low: 0.5, high: 1.5 })]
        {
            for client in 0..3 {
                let mut knowing = schedule(&arrivals, client, curve(&CHANGES));
                let mut following = schedule(&arrivals, client, curve(&[]));
                let mut known = 0;
                loop {
                    let now = following.peek();
                    // Changes are learnt while nothing is due, too.
                    if CHANGES.get(known).is_some_and(|next| now.saturating_add(SECOND / 2) >= next.at_ns) {
                        known += 1;
                        following.follow(&curve(&CHANGES[..known]));
                        continue;
                    }
                    if now >= 5 * SECOND {
                        break;
                    }
                    let (due, expected) = (following.next(), knowing.next());
                    assert!(
                        due.abs_diff(expected) <= 1,
                        "{arrivals:?} of client {client}: {due} and {expected}"
                    );
                    assert!(
                        !(2_100 * MILLISECOND..2_900 * MILLISECOND).contains(&due),
                        "{due} is in the rest"
                    );
                }
                assert_eq!(known, CHANGES.len());
            }
        }
    }

    #[test]
    fn the_plan_of_changes_is_valid_and_has_their_mean() {
        let mix = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let stop = Stop { time_ns: Some(4 * SECOND), requests: None };
        let group = Group { arrivals: Arrivals::Poisson, rate: Some(1_000.0), ..Group::default() };
        let plan = Plan { groups: vec![group], ..Plan::measuring(mix, stop) };
        assert_eq!(steered_plan(&plan, &[]), plan);
        let steered = steered_plan(&plan, &CHANGES);
        // 1.3 s of 1,000, 0.8 s of 2,700, a rest of 0.8 s, 0.433 s of 2,700, 0.667 s of 105.5.
        let requests = 1_300.0 + 2_160.0 + 1_169.1 + 70.3685;
        let mean = steered.groups[0].rate.expect("the loop is open");
        assert!((mean - requests / 4.0).abs() < 1e-6, "{mean}");
        assert!(steered.validate().is_ok());
    }
}
