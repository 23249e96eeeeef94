//! Checks that clients can come and go as the Plan asks for, and make the requests of mcperf.

use std::fmt::Display;

use super::bounds::{NUMBER_MAX, refuse, shape, within};
use super::field::Field;
use super::invalid::Invalid;
use super::records::KEY_SIZE_MAX;
use crate::arrival::check_rate;
use crate::dist::Dist;
use crate::plan::{
    Arrivals, ChurningClients, Gap, Group, Phase, Plan, Protocol, Route, Sequence, Spawns, Transport, Work,
};
use crate::protocol::Verb;
use crate::time::SECOND;
use crate::workload::sequence::{SIZE_MAX_BYTES, largest};

/// Refuses clients that come and go where the rest of the plan excludes them. They are accepted only in the only group.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let found = plan.groups.iter().enumerate();
    let mut found = found.filter_map(|(index, group)| Some((index, group, group.churn.as_ref()?)));
    let Some((index, group, churn)) = found.next() else { return Ok(()) };
    within(Field::Calls.of(index), churn.calls, 1, NUMBER_MAX)?;
    place(plan, index, group, churn)?;
    spawns(index, churn)?;
    match &churn.sequence {
        Some(sequence) => self::sequence(plan, index, churn, sequence),
        None => Ok(()),
    }
}

/// Refuses clients that come and go beside plans of another kind. The error names the field that made the clients come
/// and go, since the user asked for that.
fn place(plan: &Plan, index: usize, group: &Group, churn: &ChurningClients) -> Result<(), Invalid> {
    let (path, value) = match &churn.spawns {
        Spawns::Open { rate, .. } => (Field::SpawnsRate.of(index), rate.to_string()),
        Spawns::Closed | Spawns::Drawn(_) => (Field::Calls.of(index), churn.calls.to_string()),
    };
    if plan.groups.len() > 1 {
        return refuse(path, value, "clients that come and go are accepted only in the only group");
    }
    let other = |phase: &Phase| {
        matches!(phase.work, Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_))
    };
    if plan.phases.iter().any(other) {
        let expected = "clients that come and go are accepted only where a mix of operations is asked for";
        return refuse(path, value, expected);
    }
    if plan.route != Route::All {
        return refuse(path, value, "clients that come and go are accepted only with --route all");
    }
    if plan.transport == Transport::Udp {
        return refuse(path, value, "clients that come and go are accepted only over TCP and unix sockets");
    }
    if plan.reconnect {
        return refuse(path, value, "clients that come and go are not accepted with --reconnect");
    }
    if let Some(rate) = group.rate {
        let why = "not accepted for clients that come and go: how many requests there are follows from --conn-rate and \
                   --calls-per-connection";
        return refuse(Field::Rate.of(index), rate, why);
    }
    Ok(())
}

fn spawns(index: usize, churn: &ChurningClients) -> Result<(), Invalid> {
    match &churn.spawns {
        Spawns::Drawn(_) if churn.sequence.is_none() => {
            let expected = "clients that start at drawn times are accepted only with a sequence";
            refuse(Field::Spawns.of(index), "drawn", expected)
        }
        Spawns::Closed | Spawns::Drawn(_) => Ok(()),
        Spawns::Open { rate, .. } if check_rate(*rate).is_err() => refuse(
            Field::SpawnsRate.of(index),
            rate,
            "expected 0.000001 to 1000000000000 connections per second",
        ),
        Spawns::Open { arrivals: Arrivals::Shape(dist), rate } => {
            shape(Field::SpawnsArrivals.of(index), dist, SECOND as f64 / rate)
        }
        Spawns::Open { arrivals: Arrivals::Closed, .. } => {
            refuse(Field::SpawnsArrivals.of(index), "closed", "expected arrivals that are not closed")
        }
        Spawns::Open { arrivals: Arrivals::Trace, .. } => {
            let expected = "expected arrivals of their own: the rows of a trace say when requests are due";
            refuse(Field::SpawnsArrivals.of(index), "trace", expected)
        }
        Spawns::Open { .. } => Ok(()),
    }
}

/// Refuses a sequence that mcperf could not ask for; no option of `pummel run` asks for one.
fn sequence(plan: &Plan, index: usize, churn: &ChurningClients, sequence: &Sequence) -> Result<(), Invalid> {
    let path = Field::Sequence.of(index);
    let wrong = |value: &dyn Display, expected: &str| refuse(path, value, expected);
    let one_op = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.ops.len() == 1);
    if plan.protocol != Protocol::Text || !plan.phases.iter().all(one_op) || plan.verify > 0.0 {
        let why = "a sequence is accepted only in the text protocol, with one operation in each phase, without loading, \
                   and unchecked";
        return wrong(&"", why);
    }
    if plan.engine.threads != 1 {
        let why = "a sequence is accepted only on one thread, since keys are counted there";
        return wrong(&plan.engine.threads, why);
    }
    let expiry = &plan.data.expiry_s;
    let jitter = plan.data.style.expiry_jitter_percent;
    if jitter > 0 {
        return refuse(Field::ExpiryJitter.path(), jitter, "expected 0 with a sequence");
    }
    if !matches!(expiry, Dist::Fixed(seconds) if (0.0..=f64::from(i32::MAX)).contains(seconds) && seconds.fract() == 0.0)
    {
        return refuse(Field::Expiry.path(), expiry, "expected a whole number from 0 to 2147483647");
    }
    if plan.data.key_prefix.len() + 16 > KEY_SIZE_MAX as usize {
        return wrong(&plan.data.key_prefix, "expected a prefix of up to 234 bytes");
    }
    let mixes = || {
        plan.phases.iter().filter_map(|phase| match &phase.work {
            Work::Mix(mix) => Some(mix),
            _ => None,
        })
    };
    if sequence.bogus && !mixes().all(|mix| mix.ops[0].0 == Verb::Set) {
        return wrong(&"bogus", "the word xxx is accepted in place of set alone");
    }
    let spawns = match churn.spawns {
        Spawns::Drawn(gap) => Some(gap),
        Spawns::Closed | Spawns::Open { .. } => None,
    };
    for gap in [Some(sequence.sizes), sequence.calls, spawns].into_iter().flatten() {
        let bounds = match gap {
            Gap::Fixed(value) | Gap::Exponential(value) | Gap::Rising(value) => [value, value],
            Gap::Uniform(low, high) => [low, high],
        };
        if let Some(bound) = bounds.iter().find(|bound| !(bound.is_finite() && **bound > 0.0)) {
            return wrong(bound, "expected numbers above 0");
        }
        if bounds[1] < bounds[0] {
            return wrong(&bounds[1], &format!("expected numbers from {} on", bounds[0]));
        }
    }
    let requests = plan.phases.iter().filter_map(|phase| phase.stop.requests).max().unwrap_or(NUMBER_MAX);
    let stores = mixes().any(|mix| mix.ops[0].0.stores());
    if stores && plan.phases.len() > 1 && matches!(sequence.sizes, Gap::Rising(_)) {
        let expected = "expected one phase where sizes rise: they rise on from one phase to the next";
        return wrong(&"sizes", expected);
    }
    if stores && largest(sequence.sizes, requests) >= SIZE_MAX_BYTES {
        return wrong(&"sizes", &format!("expected sizes up to {} bytes", SIZE_MAX_BYTES - 1));
    }
    Ok(())
}
