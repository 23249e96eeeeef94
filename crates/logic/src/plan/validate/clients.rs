//! Checks that the clients can work as the Plan says: their groups, clients that come and go, clients with windows of objects.

use super::field::{Field, FieldPath};
use super::invalid::{CLIENTS_MAX, DEPTH_MAX, Invalid, NUMBER_MAX, refuse, refuse_if, shape, share, within};
use super::records::KEY_SIZE_MAX;
use crate::arrival::check_rate;
use crate::client::route::LANES_MAX;
use crate::dist::Dist;
use crate::plan::{
    Arrivals, BURST_MAX, ChurningClients, ClientPolicy, Depth, Gap, Group, Phase, Plan, Protocol, Route,
    Sequence, Spawns, Transport, ValueStyle, Window, Work,
};
use crate::protocol::Verb;
use crate::protocol::udp::DATAGRAM_MAX_BYTES;
use crate::time::SECOND;
use crate::workload::sequence::{SIZE_MAX_BYTES, largest};
use crate::workload::window::VALUE_MAX_BYTES;

/// Most threads of one process.
const THREADS_MAX: u64 = 1_024;

/// Refuses groups without clients, names that two groups share, and threads without clients.
pub fn groups(plan: &Plan) -> Result<(), Invalid> {
    refuse_if(plan.groups.is_empty(), Field::Groups, "[]", "expected at least one group")?;
    for (index, group) in plan.groups.iter().enumerate() {
        let is_second = plan.groups[..index].iter().any(|other| other.name == group.name);
        refuse_if(is_second, Field::GroupName.of(index), &group.name, "each name is accepted once")?;
        self::group(index, group)?;
    }
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients)).sum();
    let threads = u64::from(plan.engine.threads);
    within(Field::Threads, threads, 1, THREADS_MAX)?;
    let why = format!(
        "expected at most as many threads as connections ({clients}): the others would have nothing to do"
    );
    refuse_if(threads > clients, Field::Threads, threads, why)?;
    churning_fits(plan)?;
    if plan.route == Route::All && plan.window().is_none() && clients < plan.servers.len() as u64 {
        let why = format!("expected at least one connection for each of the {} servers", plan.servers.len());
        return refuse(Field::TotalClients, clients, why);
    }
    Ok(())
}

fn group(index: usize, group: &Group) -> Result<(), Invalid> {
    let depth = Field::Depth.of(index);
    within(Field::Clients.of(index), group.clients.into(), 1, CLIENTS_MAX)?;
    if let Some(limit) = group.depth.limit() {
        within(depth, limit.into(), 1, DEPTH_MAX)?;
    }
    let clients = f64::from(group.clients);
    burst_size(Field::Arrivals.of(index), &group.arrivals)?;
    let keeps_gaps = group.policy.spaced && matches!(group.arrivals, Arrivals::Bursts(_));
    let expected = "expected arrivals with gaps where between two requests lies at least their mean";
    refuse_if(keeps_gaps, Field::Arrivals.of(index), &group.arrivals, expected)?;
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

/// Refuses bursts of too many requests, and of none.
fn burst_size(path: FieldPath, arrivals: &Arrivals) -> Result<(), Invalid> {
    match arrivals {
        Arrivals::Bursts(size) => within(path, u64::from(*size), 1, BURST_MAX.into()),
        _ => Ok(()),
    }
}

/// Whether each connection has a process of its own by which its requests are due.
fn has_calls(group: &Group) -> bool {
    let sequence = group.churn.as_ref().and_then(|churn| churn.sequence.as_ref());
    sequence.is_some_and(|sequence| sequence.calls.is_some())
}

/// Refuses styles that exclude other choices, and blocks of more clients than one server has.
pub fn style(plan: &Plan) -> Result<(), Invalid> {
    let (style, checks) = (&plan.data.style, plan.verify > 0.0);
    let expected = "expected 0 where values are drawn for every write";
    refuse_if(checks && style.values == ValueStyle::Fresh, Field::Verify, plan.verify, expected)?;
    let expected =
        "expected 0 where all bytes of values are one character: they do not say which write they are of";
    refuse_if(checks && plan.data.value_filler.is_some(), Field::Verify, plan.verify, expected)?;
    let has_hashes = style.field_bytes.is_some();
    let expected = "expected hashes only with RESP";
    refuse_if(has_hashes && !plan.protocol.is_resp(), Field::FieldBytes, "", expected)?;
    let expected = "expected 0 where requests are replayed: their values are not those of records";
    refuse_if(checks && plan.replays(), Field::Verify, plan.verify, expected)?;
    let own = |phase: &Phase| matches!(phase.work, Work::Replay(_) | Work::Delete(_));
    let has_policy = |group: &Group| {
        let elsewhere_too = ClientPolicy {
            successes_only: false,
            whole: false,
            here: false,
            ends_on_time: false,
            same_draws: false,
            ..group.policy
        };
        elsewhere_too != ClientPolicy::default()
    };
    if plan.route != Route::All && (plan.phases.iter().any(own) || plan.groups.iter().any(has_policy)) {
        let expected =
            "expected all where requests are replayed, deleted, left out, spaced or dealt in blocks";
        return refuse(Field::Route, plan.route.name(), expected);
    }
    for (index, group) in plan.groups.iter().enumerate() {
        let most = u64::from(group.clients) / plan.servers.len() as u64;
        within(Field::Block.of(index), group.policy.block.into(), 1, most.max(1))?;
    }
    Ok(())
}

/// Refuses clients that come and go where the rest of the plan excludes them. They are accepted only in the only group.
fn churning_fits(plan: &Plan) -> Result<(), Invalid> {
    let found = plan.groups.iter().enumerate();
    let mut found = found.filter_map(|(index, group)| Some((index, group, group.churn.as_ref()?)));
    let Some((index, group, churn)) = found.next() else { return Ok(()) };
    within(Field::Calls.of(index), churn.calls, 1, NUMBER_MAX)?;
    churning_place(plan, index, group, churn)?;
    spawns(index, churn)?;
    match &churn.sequence {
        Some(sequence) => self::sequence(plan, index, churn, sequence),
        None => Ok(()),
    }
}

/// Refuses clients that come and go beside plans of another kind. The error names the field that made the clients come
/// and go, since the user asked for that.
fn churning_place(plan: &Plan, index: usize, group: &Group, churn: &ChurningClients) -> Result<(), Invalid> {
    let (path, value) = match &churn.spawns {
        Spawns::Open { rate, .. } => (Field::SpawnsRate.of(index), rate.to_string()),
        Spawns::Closed | Spawns::Drawn(_) => (Field::Calls.of(index), churn.calls.to_string()),
    };
    let expected = "clients that come and go are accepted only in the only group";
    refuse_if(plan.groups.len() > 1, path, &value, expected)?;
    let other = |phase: &Phase| {
        matches!(phase.work, Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_))
    };
    let expected = "clients that come and go are accepted only where a mix of operations is asked for";
    refuse_if(plan.phases.iter().any(other), path, &value, expected)?;
    let is_cluster = plan.route == Route::Cluster;
    let expected = "clients that come and go are accepted only with --route all and with --cluster";
    refuse_if(plan.route != Route::All && !is_cluster, path, &value, expected)?;
    let expected = "clients that come and go are accepted only over TCP and unix sockets";
    refuse_if(plan.transport == Transport::Udp, path, &value, expected)?;
    let expected = "clients that come and go are not accepted with --reconnect";
    refuse_if(plan.reconnect && !is_cluster, path, &value, expected)?;
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
        Spawns::Open { arrivals, .. } => burst_size(Field::SpawnsArrivals.of(index), arrivals),
    }
}

/// Refuses a sequence that mcperf could not ask for; no option of `pummel run` asks for one.
fn sequence(plan: &Plan, index: usize, churn: &ChurningClients, sequence: &Sequence) -> Result<(), Invalid> {
    let path = Field::Sequence.of(index);
    let one_op = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.ops.len() == 1);
    if plan.protocol != Protocol::Text || !plan.phases.iter().all(one_op) || plan.verify > 0.0 {
        let why = "a sequence is accepted only in the text protocol, with one operation in each phase, without loading, \
                   and unchecked";
        return refuse(path, "", why);
    }
    let why = "a sequence is accepted only on one thread, since keys are counted there";
    refuse_if(plan.engine.threads != 1, path, plan.engine.threads, why)?;
    let expiry = &plan.data.expiry_s;
    let jitter = plan.data.style.expiry_jitter_percent;
    refuse_if(jitter > 0, Field::ExpiryJitter, jitter, "expected 0 with a sequence")?;
    if !matches!(expiry, Dist::Fixed(seconds) if (0.0..=f64::from(i32::MAX)).contains(seconds) && seconds.fract() == 0.0)
    {
        return refuse(Field::Expiry, expiry, "expected a whole number from 0 to 2147483647");
    }
    let prefix = &plan.data.key_prefix;
    let is_long = prefix.len() + 16 > KEY_SIZE_MAX as usize;
    refuse_if(is_long, path, prefix, "expected a prefix of up to 234 bytes")?;
    let sets = plan.mixes().all(|(_, mix)| mix.ops[0].0 == Verb::Set);
    refuse_if(sequence.bogus && !sets, path, "bogus", "the word xxx is accepted in place of set alone")?;
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
            return refuse(path, bound, "expected numbers above 0");
        }
        let expected = format!("expected numbers from {} on", bounds[0]);
        refuse_if(bounds[1] < bounds[0], path, bounds[1], expected)?;
    }
    let requests = plan.phases.iter().filter_map(|phase| phase.stop.requests).max().unwrap_or(NUMBER_MAX);
    let stores = plan.mixes().any(|(_, mix)| mix.ops[0].0.stores());
    let rise_on = plan.phases.len() > 1 && matches!(sequence.sizes, Gap::Rising(_));
    let expected = "expected one phase where sizes rise: they rise on from one phase to the next";
    refuse_if(stores && rise_on, path, "sizes", expected)?;
    let expected = format!("expected sizes up to {} bytes", SIZE_MAX_BYTES - 1);
    refuse_if(stores && largest(sequence.sizes, requests) >= SIZE_MAX_BYTES, path, "sizes", expected)
}

/// The greatest weight of a set, a get or a range of lengths.
const WEIGHT_MAX: f64 = 1e12;

/// Longest key of an object in the meta protocol. The number in front of it may have control characters, so the key is sent in
/// base64, which makes four bytes of three.
const META_KEY_MAX_BYTES: u64 = KEY_SIZE_MAX / 4 * 3;

/// Refuses a window whose objects or lengths cannot be drawn.
pub fn window(index: usize, window: &Window) -> Result<(), Invalid> {
    let path = Field::Window.of(index);
    within(path, window.objects.into(), 1, u64::from(u32::MAX))?;
    within(path, window.multiget.into(), 1, u64::from(u16::MAX))?;
    within(path, window.pool.sockets.into(), 1, LANES_MAX as u64)?;
    within(path, window.pool.block.into(), 1, CLIENTS_MAX)?;
    let lists = [(&window.keys, 16, KEY_SIZE_MAX), (&window.values, 1, VALUE_MAX_BYTES as u64)];
    for (list, least, most) in lists {
        refuse_if(list.is_empty(), path, "[]", "expected at least one range of lengths")?;
        for range in list {
            within(path, range.start.into(), least, most)?;
            within(path, range.end.into(), range.start.into(), most)?;
        }
    }
    let shares = [window.overwrite, window.verify, window.expire];
    shares.into_iter().try_for_each(|value| share(path, value))?;
    let ranges = window.keys.iter().chain(&window.values).map(|range| range.share);
    match ranges.chain([window.set, window.get]).find(|weight| !(0.0..=WEIGHT_MAX).contains(weight)) {
        Some(weight) => refuse(path, weight, format!("expected weights from 0 to {WEIGHT_MAX}")),
        None => Ok(()),
    }
}

/// Refuses windows where the rest of the plan excludes them. The clients of a plan have one window or none. The front of memaslap
/// checks its options in memaslap's words; these checks are for saved plans.
pub fn windows_fit(plan: &Plan) -> Result<(), Invalid> {
    let Some(first) = plan.window() else { return Ok(()) };
    let whole = |window: &Window| Window { preset: false, ..window.clone() };
    for (index, phase) in plan.phases.iter().enumerate() {
        let path = Field::Window.of(index);
        match &phase.work {
            Work::Window(window) if whole(window) == whole(first) => {}
            Work::Window(_) => {
                return refuse(path, "another", "expected the window of the other phases");
            }
            _ => return refuse(path, &phase.name, "windows are accepted only where all phases have them"),
        }
    }
    let path = Field::Window;
    let longest_key = first.keys.iter().map(|range| u64::from(range.end)).max().unwrap_or(0);
    if plan.protocol == Protocol::Meta && longest_key > META_KEY_MAX_BYTES {
        let expected = format!(
            "expected keys up to {META_KEY_MAX_BYTES} bytes with --protocol meta, which sends the keys of objects in base64"
        );
        return refuse(path, longest_key, expected);
    }
    let (pool, servers) = (first.pool, plan.servers.len());
    let expected = format!("expected at most {LANES_MAX} sockets for each client");
    refuse_if(plan.lanes() > LANES_MAX, path, plan.lanes(), expected)?;
    if let Some(replication) = pool.replication {
        within(path, replication.writers.into(), 1, servers as u64)?;
    }
    if !pool.datagrams {
        return Ok(());
    }
    let has_stream_only = plan.tls.is_some()
        || plan.login.is_some()
        || pool.replication.is_some()
        || plan.servers.iter().any(|server| server.starts_with('/'));
    let expected = "datagrams beside streams are accepted only with HOST:PORT and --protocol text, without TLS, login and \
                        replication";
    refuse_if(plan.protocol != Protocol::Text || has_stream_only, path, "datagrams", expected)?;
    let longest = first.longest_get_bytes();
    let expected = format!("expected gets of up to {DATAGRAM_MAX_BYTES} bytes with their frame over UDP");
    refuse_if(longest > DATAGRAM_MAX_BYTES, path, longest, expected)
}
