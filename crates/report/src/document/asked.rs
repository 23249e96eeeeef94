//! The rate that a Plan asks for over time, where its load changes.

use pummel_logic::arrival::RateCurve;
use pummel_logic::plan::Plan;
use pummel_logic::time::{NEVER, Nanos, seconds};

/// The rate of all groups of a plan together, over the time of its measured phase.
#[derive(Debug)]
pub(super) struct AskedRate {
    curves: Vec<RateCurve>,
    /// Length of the phase; [`NEVER`] where only its requests end it.
    length_ns: Nanos,
}

impl AskedRate {
    /// The rate of a valid plan; `None` where it does not change.
    pub(super) fn of(plan: &Plan) -> Option<AskedRate> {
        let number = plan.phases.iter().position(|phase| phase.recorded)?;
        if plan.changes.is_nothing() {
            return None;
        }
        let curves: Option<Vec<RateCurve>> =
            (0..plan.groups.len()).map(|group| RateCurve::of_group(plan, number, group)).collect();
        Some(AskedRate { curves: curves?, length_ns: plan.phases[number].stop.time_ns.unwrap_or(NEVER) })
    }

    /// Requests per second between two moments; nothing is due after the end of the phase.
    pub(super) fn within(&self, from_ns: Nanos, to_ns: Nanos) -> f64 {
        if to_ns <= from_ns {
            return 0.0;
        }
        let before = |at_ns: Nanos| {
            let at_ns = at_ns.min(self.length_ns);
            self.curves.iter().map(|curve| curve.requests_before(at_ns)).sum::<f64>()
        };
        (before(to_ns) - before(from_ns)).max(0.0) / seconds(to_ns - from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{Arrivals, Changes, Group, Mix, Phase, RatePoint, RateShape, Stop, Work};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::SECOND;

    #[test]
    fn the_rate_of_a_slice_is_that_of_the_plan_without_its_drain() {
        let group = |name: &str, rate| Group {
            name: name.to_owned(),
            arrivals: Arrivals::Poisson,
            rate: Some(rate),
            ..Group::default()
        };
        let points = [(0, 1_000.0), (10, 3_000.0)];
        let points = points.map(|(at_s, rate)| RatePoint { at_ns: at_s * SECOND, rate });
        let mut plan = Plan {
            changes: Changes { rate: Some(RateShape::Points(points.to_vec())), ..Changes::default() },
            groups: vec![group("changing", 2_000.0), group("staying", 10.0)],
            phases: vec![Phase {
                name: "measure".to_owned(),
                work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
                stop: Stop { time_ns: Some(10 * SECOND), requests: None },
                recorded: true,
            }],
            ..Plan::default()
        };
        let asked = AskedRate::of(&plan).expect("it changes");
        let rates = [(0, 1), (4, 6), (9, 11), (10, 11), (3, 3)];
        let rates = rates.map(|(from, to)| asked.within(from * SECOND, to * SECOND).round());
        // The drain of the last second halves the rate of its slice: (2,900 + 10) / 2.
        assert_eq!(rates, [1_110.0, 2_010.0, 1_455.0, 0.0, 0.0]);
        plan.changes = Changes::default();
        assert!(AskedRate::of(&plan).is_none());
    }
}
