//! Checks of the groups of clients: their number, their depth and arrivals, and their threads.

use super::bounds::{CLIENTS_MAX, DEPTH_MAX, refuse, shape, within};
use super::churning;
use super::field::Field;
use super::invalid::Invalid;
use crate::arrival::check_rate;
use crate::plan::{Arrivals, ClientPolicy, Depth, Group, Phase, Plan, Route, ValueStyle, Work};
use crate::time::SECOND;

/// Most threads of one process.
const THREADS_MAX: u64 = 1_024;

/// Refuses groups without clients, names that two groups share, and threads without clients.
pub fn groups(plan: &Plan) -> Result<(), Invalid> {
    if plan.groups.is_empty() {
        return refuse(Field::Groups.path(), "[]", "expected at least one group");
    }
    for (index, group) in plan.groups.iter().enumerate() {
        if plan.groups[..index].iter().any(|other| other.name == group.name) {
            return refuse(Field::GroupName.of(index), &group.name, "each name is accepted once");
        }
        self::group(index, group)?;
    }
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients)).sum();
    let threads = u64::from(plan.engine.threads);
    within(Field::Threads.path(), threads, 1, THREADS_MAX)?;
    if threads > clients {
        let why = format!(
            "expected at most as many threads as connections ({clients}): the others would have nothing to do"
        );
        return refuse(Field::Threads.path(), threads, why);
    }
    churning::fits(plan)?;
    if plan.route == Route::All && plan.window().is_none() && clients < plan.servers.len() as u64 {
        let why = format!("expected at least one connection for each of the {} servers", plan.servers.len());
        return refuse(Field::TotalClients.path(), clients, why);
    }
    Ok(())
}

fn group(index: usize, group: &Group) -> Result<(), Invalid> {
    let depth = Field::Depth.of(index);
    within(Field::Clients.of(index), group.clients.into(), 1, CLIENTS_MAX)?;
    if let Depth::Limit(limit) = group.depth {
        within(depth, limit.into(), 1, DEPTH_MAX)?;
    }
    let clients = f64::from(group.clients);
    match (&group.arrivals, group.rate) {
        (Arrivals::Closed, Some(rate)) => {
            let expected = "expected no rate where arrivals are closed";
            refuse(Field::Rate.of(index), rate, expected)
        }
        (Arrivals::Trace, None) => Ok(()),
        (Arrivals::Trace, Some(rate)) => {
            refuse(Field::Rate.of(index), rate, "expected no rate where a trace says when requests are due")
        }
        (Arrivals::Closed, None) if group.depth == Depth::Unlimited && !has_calls(group) => refuse(
            depth,
            "unlimited",
            "unlimited is accepted only with --rate: a closed loop would never stop asking",
        ),
        (Arrivals::Closed, None) => Ok(()),
        (_, Some(rate)) if check_rate(rate).is_err() => {
            refuse(Field::Rate.of(index), rate, "expected 0.000001 to 1000000000000 requests per second")
        }
        (Arrivals::Shape(dist), Some(rate)) => {
            shape(Field::Arrivals.of(index), dist, clients * SECOND as f64 / rate)
        }
        (_, Some(_)) => Ok(()),
        (_, None) => refuse(Field::Arrivals.of(index), "", "arrivals are accepted only with --rate"),
    }
}

/// Whether each connection has a process of its own by which its requests are due.
fn has_calls(group: &Group) -> bool {
    let sequence = group.churn.as_ref().and_then(|churn| churn.sequence.as_ref());
    sequence.is_some_and(|sequence| sequence.calls.is_some())
}

/// Refuses styles that exclude other choices, and blocks of more clients than one server has.
pub fn style(plan: &Plan) -> Result<(), Invalid> {
    if plan.data.style.values == ValueStyle::Fresh && plan.verify > 0.0 {
        let expected = "expected 0 where values are drawn for every write";
        return refuse(Field::Verify.path(), plan.verify, expected);
    }
    if plan.data.style.field_bytes.is_some() && !plan.protocol.is_resp() {
        return refuse(Field::FieldBytes.path(), "", "expected hashes only with RESP");
    }
    if plan.verify > 0.0 && plan.replays() {
        let expected = "expected 0 where requests are replayed: their values are not those of records";
        return refuse(Field::Verify.path(), plan.verify, expected);
    }
    let own = |phase: &Phase| matches!(phase.work, Work::Replay(_) | Work::Delete(_));
    let has_policy = |group: &Group| {
        let elsewhere_too = ClientPolicy {
            successes_only: false,
            whole: false,
            here: false,
            ends_on_time: false,
            ..group.policy
        };
        elsewhere_too != ClientPolicy::default()
    };
    if plan.route != Route::All && (plan.phases.iter().any(own) || plan.groups.iter().any(has_policy)) {
        let expected =
            "expected all where requests are replayed, deleted, left out, spaced or dealt in blocks";
        return refuse(Field::Route.path(), plan.route.name(), expected);
    }
    for (index, group) in plan.groups.iter().enumerate() {
        let most = u64::from(group.clients) / plan.servers.len() as u64;
        within(Field::Block.of(index), group.policy.block.into(), 1, most.max(1))?;
    }
    Ok(())
}
