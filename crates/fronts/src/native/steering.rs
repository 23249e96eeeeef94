//! The runs that accept `--steer`: those with one rate in one process, and without any judgement of their figures.

use pummel_logic::plan::{Arrivals, Plan};

use crate::job::{Job, UsageError};

/// The job, with a rate that keys of the live view change.
///
/// # Errors
/// Returns [`UsageError::Missing`] with the reason where the rate of such a run cannot be changed.
pub fn steered(job: Job) -> Result<Job, UsageError> {
    if let Some(why) = obstacle(&job) {
        return Err(UsageError::Missing(format!("'--steer' is accepted {why}")));
    }
    let mut job = job;
    job.outputs.steer = true;
    Ok(job)
}

/// The obstacle to `--steer`, as the end of a sentence; `None` if there is none.
fn obstacle(job: &Job) -> Option<&'static str> {
    let plan: &Plan = &job.plan;
    let group = plan.groups.first()?;
    let has_rate = group.rate.is_some() && group.arrivals != Arrivals::Closed;
    let measured = plan.phases.iter().find(|phase| phase.recorded)?;
    let obstacles = [
        (job.fleet.is_some(), "without --agents only: one process decides the rate"),
        (group.churn.is_some(), "with clients that stay only, and none that come and go"),
        (
            plan.replays() || plan.trace().is_some(),
            "without a trace or a recording only: these say when requests are due",
        ),
        (!has_rate, "with --rate only: a closed loop asks as fast as it is answered"),
        (
            !plan.changes.is_nothing(),
            "with one rate only, and without --stage, --stage-connections, --phases and --burst",
        ),
        (
            plan.adaptive.until.is_some(),
            "without --until only: where the load changes, a quantile depends on when the run ends",
        ),
        (!plan.goals.is_empty(), "without --goal only: whether a run with --steer met a goal says nothing"),
        (
            measured.stop.time_ns.is_none() || measured.stop.requests.is_some(),
            "with a time (-t) only, and without --requests",
        ),
    ];
    obstacles.into_iter().find(|(is_there, _)| *is_there).map(|(_, why)| why)
}
