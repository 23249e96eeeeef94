//! Whether results are shares of one plan, and that plan.

use pummel_logic::plan::{Group, Phase, Plan};

use super::part::{NotMerged, Part, labels_of};
use crate::comparison::load_difference;

/// The plan of all parts together: their clients, threads, rates and numbers of requests are added. It has the goals
/// and the words of `--fail-on` that all parts have.
///
/// # Errors
/// Returns [`NotMerged`] with the first field in which the plans differ by more than their share.
pub fn together(parts: &[Part<'_>]) -> Result<Plan, NotMerged> {
    let plans: Vec<&Plan> = parts.iter().map(|part| &part.document.plan).collect();
    check_servers(parts)?;
    let common = without_share(plans[0]);
    for part in &parts[1..] {
        if let Some(name) = load_difference(&common, &without_share(&part.document.plan)) {
            return Err(not_shares(parts, part, &name));
        }
    }
    let mut plan = plans[0].clone().with_labels(labels_of(parts));
    plan.engine.threads = plans.iter().map(|plan| plan.engine.threads).fold(0, u32::saturating_add);
    if plans.iter().any(|other| other.engine.cpus != plan.engine.cpus) {
        plan.engine.cpus.clear();
    }
    if plans.iter().any(|other| other.socket.source != plan.socket.source) {
        plan.socket.source.clear();
    }
    plan.goals.retain(|goal| plans.iter().all(|other| other.goals.contains(goal)));
    plan.fail_on.retain(|on| plans.iter().all(|other| other.fail_on.contains(on)));
    for (at, group) in plan.groups.iter_mut().enumerate() {
        let of_all = || plans.iter().map(move |plan| &plan.groups[at]);
        group.clients = of_all().map(|group| group.clients).fold(0, u32::saturating_add);
        group.rate = group.rate.map(|_| of_all().filter_map(|group| group.rate).sum());
    }
    for (at, phase) in plan.phases.iter_mut().enumerate() {
        let counts = plans.iter().filter_map(|plan| plan.phases[at].stop.requests);
        phase.stop.requests = phase.stop.requests.map(|_| counts.sum());
    }
    Ok(plan)
}

/// Refuses runs of different plans, but for their seeds.
///
/// # Errors
/// Returns [`NotMerged`] with the first field in which the plans differ.
pub fn check_same(parts: &[Part<'_>]) -> Result<(), NotMerged> {
    check_servers(parts)?;
    for part in &parts[1..] {
        if let Some(name) = load_difference(&parts[0].document.plan, &part.document.plan) {
            return Err(NotMerged(format!(
                "{} and {} are no repetitions of one run: their plans differ in {name}",
                parts[0].name, part.name
            )));
        }
    }
    Ok(())
}

fn check_servers(parts: &[Part<'_>]) -> Result<(), NotMerged> {
    let first = &parts[0].document.plan.servers;
    match parts.iter().find(|part| part.document.plan.servers != *first) {
        Some(part) => Err(not_shares(parts, part, "--server")),
        None => Ok(()),
    }
}

fn not_shares(parts: &[Part<'_>], part: &Part<'_>, name: &str) -> NotMerged {
    NotMerged(format!(
        "{} and {} are no shares of one load: their plans differ in {name}, and only clients, threads, CPUs, source addresses, \
         rates, numbers of requests and seeds may",
        parts[0].name, part.name
    ))
}

/// The plan with 1 in place of every field that each share has of its own.
fn without_share(plan: &Plan) -> Plan {
    let mut plan = plan.told();
    plan.engine.threads = 1;
    plan.engine.cpus.clear();
    plan.socket.source.clear();
    let of_one = |group: &Group| Group { clients: 1, rate: group.rate.map(|_| 1.0), ..group.clone() };
    plan.groups = plan.groups.iter().map(of_one).collect();
    let of_one = |phase: &Phase| {
        let mut phase = phase.clone();
        phase.stop.requests = phase.stop.requests.map(|_| 1);
        phase
    };
    plan.phases = plan.phases.iter().map(of_one).collect();
    plan
}
