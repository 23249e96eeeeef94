//! Checks that the decisions for the time of a run can be made.

use super::bounds::{DAY, refuse, span};
use super::field::Field;
use super::invalid::Invalid;
use crate::plan::{Phase, Plan, Settle, Until, Work};
use crate::time::{MILLISECOND, typed_time};

/// Refuses a warm-up that cannot settle or whose end could not be observed, and a measurement whose end cannot be
/// found.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    if let Some(settle) = &plan.adaptive.settle {
        self::settle(plan, settle)?;
    }
    if plan.adaptive.first_eviction {
        first_eviction(plan)?;
    }
    plan.adaptive.until.as_ref().map_or(Ok(()), |until| self::until(plan, until))
}

fn first_eviction(plan: &Plan) -> Result<(), Invalid> {
    let path = || Field::FirstEviction.path();
    warm_up_of(plan, Field::FirstEviction)?;
    if plan.adaptive.settle.is_some() {
        return refuse(path(), true, "expected it in place of a warm-up until the load has settled");
    }
    if !plan.evidence {
        let expected = "expected servers that are asked for their statistics, and no --no-evidence";
        return refuse(path(), true, expected);
    }
    Ok(())
}

/// The phase before the only measured one; its requests are drawn, and a time ends it.
fn warm_up_of(plan: &Plan, field: Field) -> Result<&Phase, Invalid> {
    let measured = measured_phase(plan, field)?;
    let warm_up = measured.checked_sub(1).map(|number| &plan.phases[number]);
    let warm_up = warm_up.filter(|phase| is_mix(phase) && phase.stop.time_ns.is_some());
    let expected = "expected a phase of drawn requests with a time before the measured one";
    warm_up.map_or_else(|| refuse(field.path(), "", expected), Ok)
}

fn settle(plan: &Plan, settle: &Settle) -> Result<(), Invalid> {
    let path = || Field::Settle.path();
    let warm_up = warm_up_of(plan, Field::Settle)?;
    span(path(), settle.block_ns, (10 * MILLISECOND, "10ms"), (DAY, "24h"))?;
    let least_ns = settle.discard_ns.saturating_add(settle.block_ns.saturating_mul(2));
    match warm_up.stop.time_ns.filter(|time_ns| *time_ns >= least_ns) {
        Some(_) => Ok(()),
        None => {
            let least = typed_time(least_ns);
            refuse(path(), "", format!("expected a longest time of at least {least}: two blocks have to fit"))
        }
    }
}

fn until(plan: &Plan, until: &Until) -> Result<(), Invalid> {
    let path = || Field::Until.path();
    let phase = &plan.phases[measured_phase(plan, Field::Until)?];
    if !(until.quantile > 0.0 && until.quantile < 1.0) {
        return refuse(path(), until.quantile, "expected a quantile above 0 and below 1");
    }
    if !(until.half_width >= 0.001 && until.half_width <= 1.0) {
        return refuse(path(), until.half_width, "expected a distance from 0.1% to 100%");
    }
    let Some(most_ns) = phase.stop.time_ns else {
        return refuse(path(), "", "expected a longest time of the measured phase with it");
    };
    if until.least_ns > most_ns {
        let (least, most) = (typed_time(until.least_ns), typed_time(most_ns));
        let expected = format!(
            "expected a least time (--min-time, {least}) that is not above the longest (--max-time, {most})"
        );
        return refuse(Field::UntilLeast.path(), least, expected);
    }
    Ok(())
}

/// The number of the only measured phase, which a time ends.
fn measured_phase(plan: &Plan, field: Field) -> Result<usize, Invalid> {
    let mut measured = plan.phases.iter().enumerate().filter(|(_, phase)| phase.recorded);
    let (Some((number, phase)), None) = (measured.next(), measured.next()) else {
        return refuse(field.path(), "", "expected one measured phase with it");
    };
    if !is_mix(phase) {
        return refuse(field.path(), "", "expected drawn requests with it, and no recording");
    }
    if phase.stop.requests.is_some() {
        return refuse(field.path(), "", "expected no number of requests (-n) with it: a time ends the run");
    }
    if plan.groups.iter().any(|group| group.churn.is_some()) {
        return refuse(field.path(), "", "expected clients that stay with it, and none that come and go");
    }
    Ok(number)
}

fn is_mix(phase: &Phase) -> bool {
    matches!(phase.work, Work::Mix(_))
}
