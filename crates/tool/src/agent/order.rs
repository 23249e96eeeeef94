//! What an order asks of an agent, and whether the agent does it.

use std::sync::Arc;

use pummel_engine::backend::tls::Setup;
use pummel_engine::run::{Inputs, Permit, RunError, Wants, password_of, permitted};
use pummel_engine::sys;
use pummel_logic::measure::measurement::Keep;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::{Invalid, ValidPlan};
use pummel_logic::plan::{Plan, Wait};

use crate::agent::member::Task;
use crate::agent::overrides::LocalOverrides;
use crate::agent::policy::AccessPolicy;
use crate::agent::proto::v2;
use crate::job::inputs::supplies_of;
use crate::stderr::say;

/// Why an order is not followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The reason, as a sentence without its full stop.
    pub(super) why: String,
    /// No agent can follow the order.
    pub(super) usage: bool,
}

impl Refusal {
    /// This agent does not follow the order.
    pub(super) fn here(why: impl ToString) -> Refusal {
        Refusal { why: why.to_string(), usage: false }
    }

    fn of_plan(invalid: &Invalid) -> Refusal {
        Refusal { why: format!("the plan's {invalid}"), usage: true }
    }
}

/// The task that an order asks for. Nothing is sent anywhere but to the name service, and only files that the policy allows
/// are read. The check is given up when `is_wanted` returns false.
///
/// # Errors
/// Returns why the agent does not follow the order.
pub(super) fn task_of(
    order: &v2::Order,
    policy: &AccessPolicy,
    overrides: &LocalOverrides,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Task, Refusal> {
    checked_task(order, policy, overrides, is_wanted)
        .map_err(|refusal| Refusal { why: policy.reworded(refusal.why), ..refusal })
}

fn checked_task(
    order: &v2::Order,
    policy: &AccessPolicy,
    overrides: &LocalOverrides,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Task, Refusal> {
    let plan: Plan = serde_json::from_slice(&order.plan)
        .map_err(|error| Refusal::here(format!("the plan cannot be read: {error}")))?;
    policy.limits.check_size(&plan).map_err(Refusal::here)?;
    let (plan, recording_bytes) = allowed_plan(plan, order, policy, overrides)?;
    let part: ProcessShare = serde_json::from_slice(&order.part)
        .map_err(|error| Refusal::here(format!("the part cannot be read: {error}")))?;
    if !part.fits(&plan) {
        return Err(Refusal::here("the part is not one of the plan"));
    }
    check_cpus(&plan, &part, overrides)?;
    policy.limits.check(&plan, &part, recording_bytes).map_err(Refusal::here)?;
    let permit = permit_of(policy);
    check_targets(&plan, &permit, is_wanted)?;
    if let Some(options) = &plan.tls {
        Setup::new(options, &[]).map_err(Refusal::here)?;
    }
    let password = match &order.password {
        Some(password) => Some(password.clone()),
        None => password_of(&plan).map_err(Refusal::here)?,
    };
    let (supplies, notice) = supplies_of(&plan).map_err(Refusal::here)?;
    if let Some(words) = notice {
        say(words);
    }
    Ok(Task {
        wants: Wants {
            rows: order.rows,
            departures: false,
            keep: Keep::Figures,
            outstanding: order.outstanding,
        },
        supplies: Inputs { password, permit: Some(permit), ..supplies },
        plan,
        part,
    })
}

/// A plan that can be run, with what the agent decides itself and with the paths without links of its files, which the
/// policy allows; and the number of bytes of its recording.
fn allowed_plan(
    mut plan: Plan,
    order: &v2::Order,
    policy: &AccessPolicy,
    overrides: &LocalOverrides,
) -> Result<(ValidPlan, u64), Refusal> {
    if overrides.threads > 0 {
        plan.engine.cpus.clone_from(&overrides.cpus);
        if overrides.blocking {
            plan.engine.wait = Wait::Block;
        }
    }
    let mut plan = plan.validate().map_err(|invalid| Refusal::of_plan(&invalid))?.into_plan();
    policy.check_secrets(&plan, order.password.is_some()).map_err(Refusal::here)?;
    let recording_bytes = policy.files.admit(&mut plan).map_err(Refusal::here)?;
    let plan = plan.validate().map_err(|invalid| Refusal::of_plan(&invalid))?;
    Ok((plan, recording_bytes))
}

/// Refuses threads and CPUs that this machine does not have.
fn check_cpus(plan: &Plan, part: &ProcessShare, overrides: &LocalOverrides) -> Result<(), Refusal> {
    let cpus = cpus();
    if overrides.threads == 0 && part.threads > cpus {
        return Err(Refusal::here(format!("{} threads are asked for, and it has {cpus} CPUs", part.threads)));
    }
    if let Ok(allowed) = sys::allowed_cpus()
        && let Some(cpu) = plan.engine.cpus.iter().find(|cpu| !allowed.contains(cpu))
    {
        return Err(Refusal::here(format!("it may not run on CPU {cpu}, only on {allowed:?}")));
    }
    Ok(())
}

/// The number of CPUs that this process may use.
pub(super) fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// Allows the addresses of the policy's networks.
fn permit_of(policy: &AccessPolicy) -> Permit {
    let targets = policy.targets.clone();
    Arc::new(move |address| targets.iter().any(|network| network.contains(address)))
}

/// Refuses a plan with a server that the agent does not send load to. Each server's name is a question of its own, between
/// which the check may be given up.
fn check_targets(plan: &Plan, permit: &Permit, is_wanted: &dyn Fn() -> bool) -> Result<(), Refusal> {
    let mut one = plan.clone();
    for server in &plan.servers {
        if !is_wanted() {
            return Err(Refusal::here("the controller is gone"));
        }
        one.servers = vec![server.clone()];
        permitted(&one, permit).map_err(|error| match error {
            RunError::Forbidden { .. } => Refusal::here(format!("{error} (--allow-target says where to)")),
            other => Refusal::here(other),
        })?;
    }
    Ok(())
}
