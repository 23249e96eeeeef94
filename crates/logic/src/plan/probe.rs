//! The plan of a probe: the operations of a run once more, with few of them in flight, after the run is over.

use super::validate::ValidPlan;
use super::{Adaptive, Changes, ClientPolicy, Depth, Group, Phase, Plan, Stop};
use crate::plan::arrivals::Arrivals;
use crate::time::{MILLISECOND, Nanos, SECOND};

/// Requests that are in flight in the two halves of a probe: one at a time, and so many that a queue shows.
pub const IN_FLIGHT: [u32; 2] = [1, 10];

/// Shortest and longest time of a half of a probe, in nanoseconds.
const HALF_NS: (Nanos, Nanos) = (250 * MILLISECOND, 5 * SECOND);

/// A half of a probe lasts for so many requests of the run.
const REQUESTS: u64 = 4;

/// The plan of the half of a probe that has `in_flight` requests under way, of a run whose requests took `service_ns`. The clients
/// of the first group ask in closed loop, one request each. Returns `None` for a plan that cannot be probed.
pub fn half_of(plan: &ValidPlan, in_flight: u32, service_ns: Nanos) -> Option<ValidPlan> {
    let phase = plan.probed_phase()?;
    let group = plan.groups.first()?;
    let time_ns = service_ns.saturating_mul(REQUESTS).clamp(HALF_NS.0, HALF_NS.1);
    let stop = Stop { time_ns: Some(time_ns), requests: None };
    let mut half = Plan {
        baseline: false,
        probe: false,
        evidence: false,
        server_stats_ns: None,
        server_stats_at: Vec::new(),
        adaptive: Adaptive::default(),
        changes: Changes::default(),
        goals: Vec::new(),
        fail_on: Vec::new(),
        groups: vec![Group {
            name: group.name.clone(),
            clients: in_flight,
            depth: Depth::Limit(1),
            arrivals: Arrivals::Closed,
            rate: None,
            churn: None,
            policy: ClientPolicy { block: 1, here: false, whole: false, ..group.policy },
        }],
        phases: vec![Phase { stop, ..phase.clone() }],
        ..Plan::clone(plan)
    };
    half.engine.threads = 1;
    half.engine.stamps = None;
    half.validate().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Goal, Mix, Work};
    use crate::protocol::Verb;

    fn asked(phase: Work) -> ValidPlan {
        let stop = Stop { time_ns: Some(SECOND), requests: None };
        let group = Group { clients: 50, depth: Depth::Limit(8), ..Group::default() };
        let plan = Plan { groups: vec![group], probe: true, ..Plan::measuring(phase, stop) };
        plan.validate().expect("valid")
    }

    #[test]
    fn what_the_run_asks_for_beside_its_requests_is_no_obstacle() {
        let mut plan = asked(Work::Mix(Mix::of(&[(Verb::Get, 1.0)]))).into_plan();
        plan.server_stats_ns = Some(SECOND);
        plan.server_stats_at = vec!["b:1".to_owned()];
        plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND }];
        plan.phases.insert(0, Phase { recorded: false, ..plan.phases[0].clone() });
        let plan = plan.validate().expect("valid");
        let half = half_of(&plan, 1, MILLISECOND).expect("a half");
        assert_eq!((half.phases.len(), half.server_stats_at.len()), (1, 0));
    }

    #[test]
    fn each_half_has_as_many_requests_in_flight_as_asked_and_lasts_for_a_few_of_them() {
        let plan = asked(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])));
        for (service_ns, time_ns) in
            [(1, HALF_NS.0), (SECOND, 4 * SECOND), (SECOND * 60, HALF_NS.1), (Nanos::MAX, HALF_NS.1)]
        {
            for in_flight in IN_FLIGHT {
                let half = half_of(&plan, in_flight, service_ns).expect("a half");
                assert_eq!((half.groups[0].clients, half.groups[0].depth), (in_flight, Depth::Limit(1)));
                assert_eq!(half.phases[0].stop.time_ns, Some(time_ns));
                assert_eq!(half.phases[0].work, plan.phases[0].work);
                assert!(!half.evidence && !half.probe);
            }
        }
    }
}
