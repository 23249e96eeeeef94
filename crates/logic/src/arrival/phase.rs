//! The pace of a group's requests in a phase of a Plan.

use std::sync::Arc;

use super::curve::RateCurve;
use super::schedule::Pace;
use crate::plan::share::PhaseShare;
use crate::plan::{Group, Plan, Stop};
use crate::rng::StreamOwner;
use crate::time::{NEVER, Nanos};

/// The pace of the requests of group number `group` in a phase; `None` in closed loop. A rate that changes does so in measured
/// phases; other phases go at the rate with which it begins, or at its mean where it begins with 0.
pub fn pace_of(plan: &Plan, share: &PhaseShare<'_>, group: usize) -> Option<Pace> {
    let (arrivals, rate) = share.arrivals_of(group)?;
    let clients = u64::from(plan.groups[group].clients);
    if plan.changes.is_nothing() || group > 0 {
        return Some(Pace::new(arrivals, rate, clients));
    }
    if !share.phase.recorded {
        let first = RateCurve::of_plan(plan, rate).rate_at(0);
        return Some(Pace::new(arrivals, if first > 0.0 { first } else { rate }, clients));
    }
    let curve = RateCurve::in_phase(plan, share.number, rate);
    Some(Pace::along(arrivals, Arc::new(curve), clients))
}

impl RateCurve {
    /// The rate of the first group of a plan over the time of a measured phase, without its bursts; `rate` where nothing changes.
    pub fn of_plan(plan: &Plan, rate: f64) -> RateCurve {
        plan.changes.rate.as_ref().map_or_else(|| RateCurve::constant(rate), RateCurve::of)
    }

    /// The rate of the first group over the time of phase `number`, which is measured, with its bursts; `rate` where nothing
    /// changes.
    pub fn in_phase(plan: &Plan, number: usize, rate: f64) -> RateCurve {
        let curve = RateCurve::of_plan(plan, rate);
        match (&plan.changes.burst, plan.phases[number].stop.time_ns) {
            (Some(burst), Some(time_ns)) => {
                let owner = StreamOwner { seed: plan.seed, group: 0, phase: number as u64, client: 0 };
                curve.with_bursts(burst, owner, time_ns)
            }
            _ => curve,
        }
    }

    /// The rate of a group of a plan over the time of phase `number`, with its bursts; `None` in closed loop, and where its clients
    /// come and go.
    pub fn of_group(plan: &Plan, number: usize, group: usize) -> Option<RateCurve> {
        let Group { rate: Some(rate), churn: None, .. } = plan.groups[group] else { return None };
        Some(if group == 0 { RateCurve::in_phase(plan, number, rate) } else { RateCurve::constant(rate) })
    }

    /// The time in nanoseconds after which a phase with this end has made all requests of the curve; [`NEVER`] if it
    /// never has.
    pub fn length_until(&self, stop: Stop) -> Nanos {
        let made_ns = stop.requests.map_or(NEVER, |requests| self.time_of(requests as f64, &mut 0));
        made_ns.min(stop.time_ns.unwrap_or(NEVER))
    }

    /// The mean rate until a moment after 0, in requests per second.
    pub fn mean_until(&self, until_ns: Nanos) -> f64 {
        self.requests_before(until_ns) / crate::time::seconds(until_ns)
    }
}
