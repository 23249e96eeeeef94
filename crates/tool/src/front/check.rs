//! Whether a Plan makes sense: bounds, and choices that exclude each other; the same for a command line and a saved plan.

use std::fmt::Display;

use pummel_logic::arrival::check_rate;
use pummel_logic::client::route::LANES_MAX;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Births, ClientPolicy, Data, Delete, Depth, Gap, Group, KeyStyle, Load, Mix, Pause, Phase, Plan,
    Protocol, Replay, Route, SCHEMA, Sequence, Socket, Stop, Transport, ValueStyle, Window, Work, memory,
};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_logic::workload::key::digits_of;
use pummel_logic::workload::popularity::RECORDS_MAX;
use pummel_logic::workload::window::VALUE_MAX_BYTES;

use super::values;

mod udp;

/// Most threads.
const THREADS_MAX: u64 = 1_024;
/// Most clients of a group.
const CLIENTS_MAX: u64 = 1_000_000;
/// Most requests outstanding on one connection.
const DEPTH_MAX: u64 = 1_000_000;
/// Most keys of one read, and of one mset.
const MULTIGET_MAX: u64 = 1_000;
/// Largest number of a database: what a server really has is its own affair.
const DATABASE_MAX: u64 = i32::MAX as u64;
/// Operations that RESP servers have.
const RESP_VERBS: [Verb; 15] = [
    Verb::Get,
    Verb::Gat,
    Verb::Set,
    Verb::Add,
    Verb::Replace,
    Verb::Append,
    Verb::Incr,
    Verb::Decr,
    Verb::Delete,
    Verb::Touch,
    Verb::Version,
    Verb::Hget,
    Verb::Hset,
    Verb::Mset,
    Verb::Command,
];
/// Longest key: memcached's protocol document.
const KEY_SIZE_MAX: u64 = 250;
/// Longest line of a gat in the text protocol: memcached may close a connection that sends more without a line end.
const GAT_LINE_MAX: u64 = 2048;
/// What such a line has beside its keys and the blanks before them: the word, the longest expiry, the line end.
const GAT_LINE_FRAME: u64 = "gats -2147483648\r\n".len() as u64;
/// Largest value: the limit that memcached's `-I` itself has. What a server really takes is its own affair.
const VALUE_SIZE_MAX: u64 = 1 << 30;
/// Largest expiry in seconds that memcached takes as a span; beyond it is a date (protocol document, "Expiration times").
const EXPIRY_MAX_S: u64 = 30 * 24 * 60 * 60;
/// Largest number of the forms that plans are saved in.
const NUMBER_MAX: u64 = i64::MAX as u64;
/// Longest time that is accepted anywhere: a year.
const YEAR: Nanos = 365 * 24 * 3_600 * SECOND;

/// What is wrong with a Plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The flag of the native front that decides it.
    pub flag: &'static str,
    /// Where in the Plan it stands.
    pub field: &'static str,
    /// What stands there, in the words of the Plan.
    pub value: String,
    /// What is accepted, or why this is not.
    pub accepted: String,
}

/// A place in the Plan: the flag that decides it, and its name.
type At = (&'static str, &'static str);

fn wrong<T>(at: At, value: impl Display, accepted: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { flag: at.0, field: at.1, value: value.to_string(), accepted: accepted.into() })
}

fn within(at: At, value: u64, least: u64, most: u64) -> Result<(), Wrong> {
    if value < least || value > most {
        return wrong(at, value, format!("a whole number from {least} to {most} is accepted"));
    }
    Ok(())
}

fn span(at: At, value: Nanos, least: (Nanos, &str), most: (Nanos, &str)) -> Result<(), Wrong> {
    if value < least.0 || value > most.0 {
        return wrong(at, time_text(value), format!("a time from {} to {} is accepted", least.1, most.1));
    }
    Ok(())
}

/// A time in the largest unit that keeps it a whole number.
pub fn time_text(ns: Nanos) -> String {
    match ns {
        _ if ns.is_multiple_of(SECOND) => format!("{}s", ns / SECOND),
        _ if ns.is_multiple_of(MILLISECOND) => format!("{}ms", ns / MILLISECOND),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// Whether the Plan can be run by this version, as far as the Plan alone can tell. Names the first thing that is wrong.
///
/// # Errors
/// Returns [`Wrong`] with the first field that this version cannot run, its option and what would be accepted.
pub fn check(plan: &Plan) -> Result<(), Wrong> {
    within(("--plan", "schema"), plan.schema.into(), SCHEMA.into(), SCHEMA.into())?;
    servers(&plan.servers)?;
    lanes(plan)?;
    within(("--seed", "seed"), plan.seed, 0, NUMBER_MAX)?;
    span(
        ("--interval", "interval_ns"),
        plan.interval_ns,
        (10 * MILLISECOND, "10ms"),
        (3_600 * SECOND, "1h"),
    )?;
    let longest = match plan.sequence() {
        // mcperf's is any time, or none at all.
        Some(_) => (super::mcperf::NEVER_NS, "1000000000s"),
        None => (24 * 3_600 * SECOND, "24h"),
    };
    span(("--timeout", "timeout_ns"), plan.timeout_ns, (1_000, "1us"), longest)?;
    share(("--verify", "verify"), plan.verify)?;
    goals(plan)?;
    socket(&plan.socket)?;
    source(plan)?;
    tls(plan)?;
    data(&plan.data)?;
    if plan.sequence().is_none() {
        expiry(&plan.data.expiry_s)?;
    }
    groups(plan)?;
    if plan.phases.is_empty() {
        return wrong(("--plan", "phases"), "[]", "at least one phase is accepted");
    }
    plan.phases.iter().try_for_each(phase)?;
    style(plan)?;
    verbs_fit(plan)?;
    forms_fit(plan)?;
    resp(plan)?;
    meta(plan)?;
    memory(plan)?;
    match plan.transport {
        Transport::Stream => Ok(()),
        Transport::Udp => udp::fits(plan),
    }
}

/// Whether an expiry that was asked for is part of any request. A saved plan may describe its records all the same.
///
/// # Errors
/// Returns [`Wrong`] for an expiry other than 0 when no phase stores or touches anything.
pub fn expiry_is_sent(plan: &Plan) -> Result<(), Wrong> {
    let sends = |phase: &Phase| match &phase.work {
        // Hashes have none.
        Work::Load(load) => !load.no_plain || load.pieces || load.counters || load.commands,
        Work::Mix(mix) => {
            let verbs = || mix.ops.iter().map(|(verb, _)| *verb);
            let renews = mix.read_through_ns.is_some() || mix.meta.renews();
            verbs().any(Verb::has_expiry)
                || renews && verbs().any(|verb| verb.reads() && !verb.is_resp_only())
        }
        _ => false,
    };
    if plan.data.expiry_s == Dist::Fixed(0.0) || plan.phases.iter().any(sends) {
        return Ok(());
    }
    let why = "an expiry is accepted where something is stored or touched, and here no request has one";
    wrong(("--ttl", "data.expiry_s"), &plan.data.expiry_s, why)
}

fn servers(servers: &[String]) -> Result<(), Wrong> {
    let at = ("--server", "servers");
    if servers.is_empty() {
        return wrong(at, "", "at least one server is accepted");
    }
    for server in servers {
        match values::server(server) {
            Ok(normal) if normal == *server => {}
            Ok(normal) => return wrong(at, server, format!("{normal} is accepted")),
            Err(error) => return wrong(at, server, error.to_string()),
        }
    }
    Ok(())
}

/// Whether there may be so many servers as each client has a connection to.
fn lanes(plan: &Plan) -> Result<(), Wrong> {
    let (route, servers) = (plan.route, plan.servers.len());
    if route.lanes(servers) > LANES_MAX {
        let accepted = format!("at most {LANES_MAX} servers are accepted with --route {}", route.name());
        return wrong(("--server", "servers"), format!("{servers} servers"), accepted);
    }
    Ok(())
}

fn share(at: At, value: f64) -> Result<(), Wrong> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { wrong(at, value, "a share from 0 to 1 is accepted") }
}

fn goals(plan: &Plan) -> Result<(), Wrong> {
    for goal in &plan.goals {
        if !(goal.quantile > 0.0 && goal.quantile < 1.0) {
            return wrong(
                ("--goal", "goals.quantile"),
                goal.quantile,
                "a number above 0 and below 1 is accepted",
            );
        }
        span(("--goal", "goals.limit_ns"), goal.limit_ns, (1, "1ns"), (YEAR, "8760h"))?;
    }
    Ok(())
}

fn socket(socket: &Socket) -> Result<(), Wrong> {
    const LINGER_MAX_S: u64 = 65_535;
    const BUFFER_MAX: u64 = i32::MAX as u64;
    if let Some(linger_s) = socket.linger_s {
        within(("--linger", "socket.linger_s"), linger_s.into(), 0, LINGER_MAX_S)?;
    }
    if let Some(bytes) = socket.send_buffer {
        within(("--send-buffer", "socket.send_buffer"), bytes.into(), 1, BUFFER_MAX)?;
    }
    if let Some(bytes) = socket.recv_buffer {
        within(("--recv-buffer", "socket.recv_buffer"), bytes.into(), 1, BUFFER_MAX)?;
    }
    for address in &socket.source {
        if let Err(error) = values::addresses(address) {
            return wrong(("--source", "socket.source"), address, error.to_string());
        }
    }
    Ok(())
}

/// Addresses to connect from mean something only where a server has an address.
fn source(plan: &Plan) -> Result<(), Wrong> {
    let source = &plan.socket.source;
    if source.is_empty() || plan.servers.iter().any(|server| !server.starts_with('/')) {
        return Ok(());
    }
    let accepted = "addresses are accepted where a server is reached by one: unix sockets have none";
    wrong(("--source", "socket.source"), source.join(","), accepted)
}

/// What the files of TLS hold is not the Plan's affair: they are read where it is run.
fn tls(plan: &Plan) -> Result<(), Wrong> {
    let Some(options) = &plan.tls else { return Ok(()) };
    match (&options.cert, &options.key) {
        (Some(cert), None) => {
            return wrong(("--tls-cert", "tls.cert"), cert, "a certificate is accepted only with --tls-key");
        }
        (None, Some(key)) => {
            return wrong(("--tls-key", "tls.key"), key, "a key is accepted only with --tls-cert");
        }
        _ => {}
    }
    let socket = plan.servers.iter().find(|server| server.starts_with('/'));
    match socket.filter(|_| options.server_name.is_none()) {
        Some(socket) => {
            let why = format!(
                "with --tls the unix socket {socket} is accepted only with --tls-server-name: a socket has no name \
                 that a certificate could be for"
            );
            wrong(("--server", "servers"), socket, why)
        }
        None => Ok(()),
    }
}

fn groups(plan: &Plan) -> Result<(), Wrong> {
    if plan.groups.is_empty() {
        return wrong(("--plan", "groups"), "[]", "at least one group is accepted");
    }
    for (index, group) in plan.groups.iter().enumerate() {
        if plan.groups[..index].iter().any(|other| other.name == group.name) {
            return wrong(("--plan", "groups.name"), &group.name, "each name is accepted once");
        }
        self::group(group)?;
    }
    let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients)).sum();
    let threads = u64::from(plan.engine.threads);
    within(("--threads", "engine.threads"), threads, 1, THREADS_MAX)?;
    if threads > clients {
        let why = format!(
            "at most as many threads as connections ({clients}) are accepted: the others would have nothing to do"
        );
        return wrong(("--threads", "engine.threads"), threads, why);
    }
    crowd(plan)?;
    if plan.route == Route::All && plan.window().is_none() && clients < plan.servers.len() as u64 {
        let why =
            format!("at least one connection for each of the {} servers is accepted", plan.servers.len());
        return wrong(("--connections", "groups.clients"), clients, why);
    }
    Ok(())
}

/// Whether the memory that the plan needs is no more than a plan may need.
fn memory(plan: &Plan) -> Result<(), Wrong> {
    let need_bytes = memory::need_bytes(plan);
    if need_bytes <= memory::LIMIT_BYTES {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let deepest = plan.groups.iter().max_by_key(|group| memory::depth_of(group)).map(|group| group.depth);
    let depth = match deepest {
        Some(Depth::Limit(depth)) => depth.to_string(),
        _ => "unlimited".to_owned(),
    };
    let accepted = format!(
        "this plan needs {} of memory in this process, more than the limit of {}: fewer connections or a smaller depth are \
         accepted",
        gigabytes(need_bytes),
        gigabytes(memory::LIMIT_BYTES)
    );
    wrong(("--depth", "groups.depth"), depth, accepted)
}

fn group(group: &Group) -> Result<(), Wrong> {
    let depth_at = ("--depth", "groups.depth");
    within(("--connections", "groups.clients"), group.clients.into(), 1, CLIENTS_MAX)?;
    if let Depth::Limit(depth) = group.depth {
        within(depth_at, depth.into(), 1, DEPTH_MAX)?;
    }
    match (&group.arrivals, group.rate) {
        (Arrivals::Closed, Some(rate)) => {
            wrong(("--rate", "groups.rate"), rate, "no rate is accepted where arrivals are closed")
        }
        (Arrivals::Closed, None) if group.depth == Depth::Unlimited && !has_calls(group) => wrong(
            depth_at,
            "unlimited",
            "unlimited is accepted only with --rate: a closed loop would never stop asking",
        ),
        (Arrivals::Closed, None) => Ok(()),
        (_, Some(rate)) if check_rate(rate).is_err() => wrong(
            ("--rate", "groups.rate"),
            rate,
            "from 0.000001 to 1000000000000 requests per second are accepted",
        ),
        (Arrivals::Shape(dist), Some(_)) if dist.factor_to_mean(1.0).is_none() => {
            let why = "a distribution with a finite mean above 0 is accepted: gaps are scaled until it fits the rate";
            wrong(("--arrivals", "groups.arrivals"), dist, why)
        }
        (_, Some(_)) => Ok(()),
        (_, None) => wrong(("--arrivals", "groups.arrivals"), "", "arrivals are accepted only with --rate"),
    }
}

/// Whether its requests are due by a process of each connection's own, whatever the others are due by.
fn has_calls(group: &Group) -> bool {
    let sequence = group.crowd.as_ref().and_then(|crowd| crowd.sequence.as_ref());
    sequence.is_some_and(|sequence| sequence.calls.is_some())
}

/// Clients that come and go.
fn crowd(plan: &Plan) -> Result<(), Wrong> {
    let Some((group, crowd)) = plan.groups.iter().find_map(|group| Some((group, group.crowd.as_ref()?)))
    else {
        return Ok(());
    };
    let calls_at = ("--calls-per-connection", "groups.crowd.calls");
    within(calls_at, crowd.calls, 1, NUMBER_MAX)?;
    // Named is what made the clients come and go, and has been typed.
    let (at, value) = match &crowd.births {
        Births::Open { rate, .. } => (("--conn-rate", "groups.crowd.births.open.rate"), rate.to_string()),
        Births::Closed | Births::Drawn(_) => (calls_at, crowd.calls.to_string()),
    };
    if plan.groups.len() > 1 {
        return wrong(at, value, "clients that come and go are accepted only in the only group");
    }
    if plan.phases.iter().any(|phase| matches!(phase.work, Work::Window(_) | Work::Replay(_))) {
        let accepted = "clients that come and go are accepted only where a mix of operations is asked for";
        return wrong(at, value, accepted);
    }
    if plan.route != Route::All {
        return wrong(at, value, "clients that come and go are accepted only with --route all");
    }
    if plan.transport == Transport::Udp {
        return wrong(at, value, "clients that come and go are accepted only over TCP and unix sockets");
    }
    if plan.reconnect {
        return wrong(at, value, "clients that come and go are not accepted with --reconnect");
    }
    if let Some(rate) = group.rate {
        let why = "not accepted for clients that come and go: how many requests there are follows from --conn-rate and \
                   --calls-per-connection";
        return wrong(("--rate", "groups.rate"), rate, why);
    }
    if let Some(sequence) = &crowd.sequence {
        return self::sequence(plan, sequence);
    }
    match &crowd.births {
        Births::Drawn(_) => wrong(
            ("--plan", "groups.crowd.births"),
            "drawn",
            "drawn births are accepted only with a sequence",
        ),
        Births::Closed => Ok(()),
        Births::Open { rate, .. } if check_rate(*rate).is_err() => wrong(
            ("--conn-rate", "groups.crowd.births.open.rate"),
            rate,
            "from 0.000001 to 1000000000000 connections per second are accepted",
        ),
        Births::Open { arrivals: Arrivals::Shape(dist), .. } if dist.factor_to_mean(1.0).is_none() => {
            let why = "a distribution with a finite mean above 0 is accepted: gaps are scaled until it fits the rate";
            wrong(("--arrivals", "groups.crowd.births.open.arrivals"), dist, why)
        }
        Births::Open { arrivals: Arrivals::Closed, .. } => wrong(
            ("--arrivals", "groups.crowd.births.open.arrivals"),
            "closed",
            "arrivals that are not closed are accepted",
        ),
        Births::Open { .. } => Ok(()),
    }
}

/// mcperf's requests, which no option of `pummel run` asks for.
fn sequence(plan: &Plan, sequence: &Sequence) -> Result<(), Wrong> {
    let at = ("--plan", "groups.crowd.sequence");
    let one_op = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.ops.len() == 1);
    if plan.protocol != Protocol::Text || !plan.phases.iter().all(one_op) || plan.verify > 0.0 {
        let why = "a sequence is accepted in the text protocol, with one operation in each phase, without loading, \
                   and unchecked";
        return wrong(at, "", why);
    }
    if plan.engine.threads != 1 {
        return wrong(
            at,
            plan.engine.threads,
            "a sequence is accepted on one thread, since keys are counted there",
        );
    }
    let expiry = &plan.data.expiry_s;
    if !matches!(expiry, Dist::Fixed(seconds) if (0.0..=f64::from(i32::MAX)).contains(seconds) && seconds.fract() == 0.0)
    {
        return wrong(("--ttl", "data.expiry_s"), expiry, "a whole number from 0 to 2147483647 is accepted");
    }
    if plan.data.key_prefix.len() + 16 > KEY_SIZE_MAX as usize {
        return wrong(at, &plan.data.key_prefix, "a prefix of up to 234 bytes is accepted");
    }
    let sets = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.ops[0].0 == Verb::Set);
    if sequence.bogus && !plan.phases.iter().all(sets) {
        return wrong(at, "bogus", "the word xxx is accepted in place of set alone");
    }
    let gaps = [Some(sequence.sizes), sequence.calls];
    let bounds = gaps.into_iter().flatten().flat_map(|gap| match gap {
        Gap::Fixed(value) | Gap::Exponential(value) | Gap::Rising(value) => [value, value],
        Gap::Uniform(low, high) => [low, high],
    });
    for bound in bounds {
        if !(bound.is_finite() && bound > 0.0) {
            return wrong(at, bound, "numbers above 0 are accepted");
        }
    }
    Ok(())
}

fn phase(phase: &Phase) -> Result<(), Wrong> {
    match &phase.work {
        Work::Load(load) => self::load(load, phase.stop),
        Work::Delete(delete) => self::delete(delete, phase.stop),
        Work::Pause(pause) => self::pause(pause, phase.stop),
        Work::Replay(replay) => self::replay(replay, phase.stop),
        Work::Mix(mix) => {
            stop(phase)?;
            self::mix(mix)
        }
        Work::Window(window) => {
            if !window.preset {
                stop(phase)?;
            }
            self::window(window)
        }
    }
}

/// memaslap's own front says these things in memaslap's words; this is for saved plans.
fn window(window: &Window) -> Result<(), Wrong> {
    let at = ("--plan", "phases.work.window");
    within(at, window.objects.into(), 1, u64::from(u32::MAX))?;
    within(at, window.multiget.into(), 1, u64::from(u16::MAX))?;
    within(at, window.pool.sockets.into(), 1, LANES_MAX as u64)?;
    within(at, window.pool.block.into(), 1, CLIENTS_MAX)?;
    let lists = [(&window.keys, 16, KEY_SIZE_MAX), (&window.values, 1, VALUE_MAX_BYTES as u64)];
    for (list, least, most) in lists {
        if list.is_empty() {
            return wrong(at, "[]", "at least one range of lengths is accepted");
        }
        for range in list {
            within(at, range.start.into(), least, most)?;
            within(at, range.end.into(), range.start.into(), most)?;
        }
    }
    let shares = [window.overwrite, window.verify, window.expire];
    shares.into_iter().try_for_each(|value| share(at, value))
}

fn load(load: &Load, stop: Stop) -> Result<(), Wrong> {
    ends_by_itself(stop, "loading")?;
    if load.no_plain && !load.pieces && !load.counters && !load.hashes && !load.commands {
        return wrong(
            ("--plan", "phases.work.load.no_plain"),
            true,
            "it is accepted beside records of another kind",
        );
    }
    within(("--depth", "phases.work.load.depth"), load.depth.into(), 1, DEPTH_MAX)
}

fn delete(delete: &Delete, stop: Stop) -> Result<(), Wrong> {
    ends_by_itself(stop, "deleting")?;
    if !(delete.share > 0.0 && delete.share <= 1.0) {
        let accepted = "a share above 0 and at most 1 is accepted";
        return wrong(("--plan", "phases.work.delete.share"), delete.share, accepted);
    }
    within(("--depth", "phases.work.delete.depth"), delete.depth.into(), 1, DEPTH_MAX)
}

fn pause(pause: &Pause, stop: Stop) -> Result<(), Wrong> {
    ends_by_itself(stop, "a pause")?;
    span(("--plan", "phases.work.pause.until_ns"), pause.until_ns, (0, "0"), (YEAR, "8760h"))
}

fn replay(replay: &Replay, stop: Stop) -> Result<(), Wrong> {
    if let Some(delay_ns) = replay.read_through_ns {
        span(("--plan", "phases.work.replay.read_through_ns"), delay_ns, (0, "0"), (3_600 * SECOND, "1h"))?;
    }
    if let Some(time_ns) = stop.time_ns {
        span(("--time", "phases.stop.time_ns"), time_ns, (MILLISECOND, "1ms"), (YEAR, "8760h"))?;
    }
    within(("--plan", "phases.work.replay.format"), replay.format.into(), 0, 2)
}

fn ends_by_itself(stop: Stop, what: &str) -> Result<(), Wrong> {
    if stop == Stop::default() {
        return Ok(());
    }
    wrong(("--plan", "phases.stop"), "", format!("no stop is accepted for {what}, which ends by itself"))
}

fn stop(phase: &Phase) -> Result<(), Wrong> {
    let stop = phase.stop;
    let flag = if phase.recorded { "--time" } else { "--warmup" };
    if stop == Stop::default() {
        return wrong((flag, "phases.stop"), "", "a time, a number of requests or both are accepted");
    }
    if let Some(time_ns) = stop.time_ns {
        span((flag, "phases.stop.time_ns"), time_ns, (MILLISECOND, "1ms"), (YEAR, "8760h"))?;
    }
    if let Some(requests) = stop.requests {
        within(("--requests", "phases.stop.requests"), requests, 1, NUMBER_MAX)?;
    }
    Ok(())
}

/// Styles that exclude other choices, and what blocks of clients can be.
fn style(plan: &Plan) -> Result<(), Wrong> {
    if plan.data.style.values == ValueStyle::Fresh && plan.verify > 0.0 {
        return wrong(
            ("--verify", "verify"),
            plan.verify,
            "0 is accepted where values are drawn for every write",
        );
    }
    if plan.data.style.field_bytes.is_some() && !plan.protocol.is_resp() {
        return wrong(("--protocol", "data.style.field_bytes"), "", "hashes are accepted with RESP alone");
    }
    if plan.verify > 0.0 && plan.phases.iter().any(|phase| matches!(phase.work, Work::Replay(_))) {
        let accepted = "0 is accepted where requests are replayed: their values are not those of records";
        return wrong(("--verify", "verify"), plan.verify, accepted);
    }
    let own = |phase: &Phase| matches!(phase.work, Work::Replay(_) | Work::Delete(_));
    let has_policy = |group: &Group| {
        ClientPolicy { successes_only: false, whole: false, here: false, ..group.policy }
            != ClientPolicy::default()
    };
    if plan.route != Route::All && (plan.phases.iter().any(own) || plan.groups.iter().any(has_policy)) {
        let accepted =
            "all is accepted where requests are replayed, deleted, left out, spaced or dealt in blocks";
        return wrong(("--route", "route"), plan.route.name(), accepted);
    }
    for group in &plan.groups {
        let most = u64::from(group.clients) / plan.servers.len() as u64;
        within(("--plan", "groups.manner.block"), group.policy.block.into(), 1, most.max(1))?;
    }
    Ok(())
}

/// Whether the protocol has every operation of the mixes.
fn verbs_fit(plan: &Plan) -> Result<(), Wrong> {
    // Of a command, its own option says that it does not fit.
    let says_itself = |verb| verb == Verb::Command && plan.command.is_some();
    let mut verbs =
        mixes(plan).flat_map(|mix| &mix.ops).map(|&(verb, _)| verb).filter(|&verb| !says_itself(verb));
    let unfit = match plan.protocol {
        Protocol::Text | Protocol::Meta | Protocol::Binary => verbs.find(|verb| verb.is_resp_only()),
        Protocol::Resp2 | Protocol::Resp3 => verbs.find(|verb| !RESP_VERBS.contains(verb)),
    };
    let Some(verb) = unfit else { return Ok(()) };
    let name = verb.name();
    let accepted = if plan.protocol.is_resp() {
        format!("RESP servers have no {name}; {}", names(&RESP_VERBS))
    } else {
        format!("operations of memcached are accepted; {name} is one of RESP servers (Redis, Valkey)")
    };
    wrong(("--mix", "phases.work.mix.ops"), name, accepted)
}

fn mixes(plan: &Plan) -> impl Iterator<Item = &Mix> {
    plan.phases.iter().filter_map(|phase| match &phase.work {
        Work::Mix(mix) => Some(mix),
        _ => None,
    })
}

fn asks(mix: &Mix, wanted: Verb) -> bool {
    mix.ops.iter().any(|&(verb, _)| verb == wanted)
}

/// What only RESP servers have: databases, and commands of the user's own.
fn resp(plan: &Plan) -> Result<(), Wrong> {
    let database_at = ("--database", "database");
    within(database_at, plan.database.into(), 0, DATABASE_MAX)?;
    if plan.database != 0 && !plan.protocol.is_resp() {
        let accepted =
            "only RESP servers (Redis, Valkey) have databases: 0 is accepted beside other protocols";
        return wrong(database_at, plan.database, accepted);
    }
    let for_resp = |phase: &Phase| matches!(&phase.work, Work::Load(load) if load.hashes || load.commands);
    if plan.phases.iter().any(for_resp) && !plan.protocol.is_resp() {
        let accepted = "hget, hset and command are accepted only with --protocol resp2 or resp3";
        return wrong(("--mix", "phases.work.load"), "hashes or commands", accepted);
    }
    let asked = mixes(plan).any(|mix| asks(mix, Verb::Command));
    let command_at = ("--command", "command");
    match &plan.command {
        None if asked => wrong(
            ("--mix", "phases.work.mix.ops"),
            "command",
            "command is accepted only with --command, which says what it is",
        ),
        Some(text) if !plan.protocol.is_resp() => {
            wrong(command_at, text, "it is accepted only with --protocol resp2 or resp3")
        }
        Some(text) if !asked => wrong(command_at, text, "it is accepted only with command in --mix"),
        Some(text) => Template::parse(text).map(|_| ()).or_else(|error| {
            wrong(
                command_at,
                text,
                format!("{error}; a command such as 'ZADD __key__ __number__ __value__' is accepted"),
            )
        }),
        None => Ok(()),
    }
}

/// What only memcached's meta protocol can ask.
fn meta(plan: &Plan) -> Result<(), Wrong> {
    for mix in mixes(plan).filter(|mix| !mix.meta.is_nothing()) {
        let ask = &mix.meta;
        let reads = mix.ops.iter().any(|&(verb, _)| verb.reads());
        let asked = [
            (("--vivify", "phases.work.mix.meta.vivify_s"), ask.vivify_s, EXPIRY_MAX_S),
            (("--recache", "phases.work.mix.meta.recache_s"), ask.recache_s, u32::MAX.into()),
            (("--stale", "phases.work.mix.meta.stale_s"), ask.stale_s, EXPIRY_MAX_S),
            (("--meta-details", "phases.work.mix.meta.details"), ask.details.then_some(1), 1),
        ];
        for (at, value, most) in asked.into_iter().filter_map(|(at, value, most)| Some((at, value?, most))) {
            if plan.protocol != Protocol::Meta {
                return wrong(at, value, "it is accepted only with --protocol meta");
            }
            within(at, value.into(), 0, most)?;
            match at.0 {
                "--stale" if !asks(mix, Verb::Delete) => {
                    return wrong(at, value, "it is accepted only with delete in --mix");
                }
                "--stale" => {}
                _ if !reads => {
                    return wrong(
                        at,
                        value,
                        "it is accepted only with a read (get, gets, gat, gats) in --mix",
                    );
                }
                _ => {}
            }
            if mix.multiget > 1 && ask.renews() {
                let accepted = "1 is accepted beside --vivify, --recache and --stale: the answer to several keys does not \
                                say which of them the client is to renew";
                return wrong(("--multiget", "phases.work.mix.multiget"), mix.multiget, accepted);
            }
        }
    }
    Ok(())
}

fn names(verbs: &[Verb]) -> String {
    let names: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
    format!("{} are accepted", names.join(", "))
}

/// Whether the protocol can say every operation in the way that the mixes ask for it. What its codec would refuse in the
/// middle of a run is refused here.
fn forms_fit(plan: &Plan) -> Result<(), Wrong> {
    let noreply_at = ("--noreply", "phases.work.mix.noreply");
    let multiget_at = ("--multiget", "phases.work.mix.multiget");
    for phase in &plan.phases {
        let Work::Mix(mix) = &phase.work else { continue };
        let has = |wanted: Verb| asks(mix, wanted);
        let gats = mix.multiget > 1 && (has(Verb::Gat) || has(Verb::Gats));
        match plan.protocol {
            Protocol::Resp2 | Protocol::Resp3 if mix.noreply => {
                return wrong(noreply_at, true, "RESP answers every request");
            }
            Protocol::Resp2 | Protocol::Resp3 if gats => {
                let accepted = "1 is accepted where the mix has gat: RESP's GETEX takes one key";
                return wrong(multiget_at, mix.multiget, accepted);
            }
            Protocol::Resp2 | Protocol::Resp3 if mix.multiget > 1 && !has(Verb::Get) => {
                return wrong(
                    multiget_at,
                    mix.multiget,
                    "1 is accepted where the mix has no get: HGET takes one key",
                );
            }
            Protocol::Binary if mix.noreply && has(Verb::Touch) => {
                let accepted =
                    "a mix without touch is accepted, which has no quiet form in the binary protocol";
                return wrong(noreply_at, true, accepted);
            }
            Protocol::Text if gats => {
                let most = (GAT_LINE_MAX - GAT_LINE_FRAME) / (1 + longest_key(plan));
                if u64::from(mix.multiget) > most {
                    let accepted = format!(
                        "at most {most} is accepted where the mix has gat or gats and keys are this long: memcached takes \
                         such a line only up to {GAT_LINE_MAX} bytes"
                    );
                    return wrong(multiget_at, mix.multiget, accepted);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Bytes of the longest key that may be made.
fn longest_key(plan: &Plan) -> u64 {
    let digits = digits_of(&plan.data) as u64;
    let least = plan.data.key_prefix.len() as u64 + digits;
    let (_, top) = plan.data.key_size.support();
    (top.round().clamp(0.0, KEY_SIZE_MAX as f64) as u64).max(least)
}

fn mix(mix: &Mix) -> Result<(), Wrong> {
    let ops_at = ("--mix", "phases.work.mix.ops");
    if mix.ops.is_empty() {
        return wrong(ops_at, "", "at least one operation is accepted");
    }
    for (index, &(verb, weight)) in mix.ops.iter().enumerate() {
        if !(weight > 0.0 && weight.is_finite()) {
            return wrong(ops_at, format!("{}:{weight}", verb.name()), "finite weights above 0 are accepted");
        }
        if mix.ops[..index].iter().any(|&(other, _)| other == verb) {
            return wrong(ops_at, verb.name(), "each operation is accepted once");
        }
    }
    mix_extras(mix)
}

fn mix_extras(mix: &Mix) -> Result<(), Wrong> {
    let asks = |which: fn(Verb) -> bool| mix.ops.iter().any(|&(verb, _)| which(verb));
    let no_read = "is accepted only with a read (get, gets, gat, gats) in --mix";
    within(("--multiget", "phases.work.mix.multiget"), mix.multiget.into(), 1, MULTIGET_MAX)?;
    if mix.multiget > 1 && !asks(Verb::reads) {
        return wrong(
            ("--multiget", "phases.work.mix.multiget"),
            mix.multiget,
            format!("more than 1 {no_read}"),
        );
    }
    let multiset_at = ("--multiset", "phases.work.mix.multiset");
    within(multiset_at, mix.multiset.into(), 1, MULTIGET_MAX)?;
    if mix.multiset > 1 && !asks(|verb| verb == Verb::Mset) {
        return wrong(multiset_at, mix.multiset, "more than 1 is accepted only with mset in --mix");
    }
    if let Some(delay_ns) = mix.read_through_ns {
        let at = ("--read-through", "phases.work.mix.read_through_ns");
        if !asks(Verb::reads) {
            return wrong(at, time_text(delay_ns), format!("it {no_read}"));
        }
        span(at, delay_ns, (0, "0"), (3_600 * SECOND, "1h"))?;
    }
    if mix.noreply && !asks(|verb| !verb.reads() && verb != Verb::Version) {
        return wrong(
            ("--noreply", "phases.work.mix.noreply"),
            true,
            "it is accepted only with a write in --mix",
        );
    }
    Ok(())
}

fn data(data: &Data) -> Result<(), Wrong> {
    within(("--records", "data.records"), data.records, 1, RECORDS_MAX)?;
    within(("--data-seed", "data.seed"), data.seed, 0, NUMBER_MAX)?;
    keys(data)?;
    value_size(&data.value_size)
}

/// A key is the prefix and the record's number over all key spaces in decimal (see `workload::key`): what varies is
/// cut to what fits, but a length that never fits is refused.
fn keys(data: &Data) -> Result<(), Wrong> {
    let digits = digits_of(data) as u64;
    let prefix_at = ("--key-prefix", "data.key_prefix");
    let prefix = &data.key_prefix;
    if prefix.bytes().any(|byte| byte <= b' ' || byte == 127) {
        return wrong(prefix_at, prefix, "a text without spaces and control characters is accepted");
    }
    let prefix_max = KEY_SIZE_MAX - digits;
    if prefix.len() as u64 > prefix_max {
        return wrong(
            prefix_at,
            prefix,
            format!("up to {prefix_max} bytes are accepted: the number of the record follows"),
        );
    }
    let least = prefix.len() as u64 + digits;
    let at = ("--key-size", "data.key_size");
    size(at, &data.key_size)?;
    let (low, high) = data.key_size.support();
    if data.style.keys == KeyStyle::Drawn && high < least as f64 {
        let why = format!(
            "sizes of at least {least} bytes are accepted: {} of the prefix, {digits} for the numbers of {} records",
            prefix.len(),
            data.records
        );
        return wrong(at, &data.key_size, why);
    }
    if low > KEY_SIZE_MAX as f64 {
        return wrong(at, &data.key_size, format!("sizes up to {KEY_SIZE_MAX} bytes are accepted"));
    }
    Ok(())
}

fn value_size(dist: &Dist) -> Result<(), Wrong> {
    let at = ("--value-size", "data.value_size");
    size(at, dist)?;
    let (low, high) = dist.support();
    if low > VALUE_SIZE_MAX as f64 || (high.is_finite() && high > VALUE_SIZE_MAX as f64) {
        return wrong(at, dist, "sizes up to 1GiB are accepted");
    }
    Ok(())
}

fn expiry(dist: &Dist) -> Result<(), Wrong> {
    let at = ("--ttl", "data.expiry_s");
    size(at, dist)?;
    let (low, high) = dist.support();
    if low > EXPIRY_MAX_S as f64 || (high.is_finite() && high > EXPIRY_MAX_S as f64) {
        return wrong(at, dist, "up to 30 days (720h) are accepted: to memcached, more is a date");
    }
    Ok(())
}

/// What bytes and whole seconds have in common. Distributions that reach below 0 only by their nature are cut off
/// there; a bound below 0 that somebody typed is a mistake.
fn size(at: At, dist: &Dist) -> Result<(), Wrong> {
    match dist.clone().checked() {
        Err(error) => wrong(at, dist, error.to_string()),
        Ok(Dist::Fixed(value)) if value < 0.0 || value.fract() != 0.0 => {
            wrong(at, dist, "a whole number, 0 or more, is accepted where it is always the same")
        }
        Ok(Dist::Uniform { low, .. }) if low < 0.0 => wrong(at, dist, "bounds of 0 or more are accepted"),
        Ok(_) if dist.support().1 < 0.0 => wrong(at, dist, "numbers of 0 or more are accepted"),
        Ok(_) => Ok(()),
    }
}

/// The Plans of the hostile simulation, of every pair of features.
#[cfg(test)]
#[path = "../../../engine/tests/hostile/features.rs"]
#[allow(dead_code)]
mod features;

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Style;
    use pummel_logic::workload::key::KeyMaker;

    use super::*;

    fn data_with(records: u64, key_prefix: &str, key_size: u64) -> Data {
        Data {
            records,
            seed: 0,
            key_prefix: key_prefix.to_string(),
            key_size: Dist::Fixed(key_size as f64),
            value_size: Dist::Fixed(1.0),
            expiry_s: Dist::Fixed(0.0),
            style: Style::default(),
        }
    }

    #[test]
    fn the_least_key_size_is_the_one_that_keys_really_have() {
        for (records, prefix) in [(1, ""), (3, "p"), (4, ""), (10_000, "user:"), (1 << 40, "")] {
            let least = KeyMaker::new(&data_with(records, prefix, 0)).expect("short prefix").len_of(0) as u64;
            assert_eq!(keys(&data_with(records, prefix, least)), Ok(()), "{records} {prefix}");
            let error = keys(&data_with(records, prefix, least - 1)).expect_err("one byte too few");
            assert!(error.accepted.contains(&format!("at least {least} bytes")), "{error:?}");
        }
    }

    #[test]
    fn a_prefix_is_refused_exactly_when_no_key_can_be_made() {
        for len in 240..255 {
            let data = data_with(10_000, &"p".repeat(len), 250);
            assert_eq!(keys(&data).is_ok(), KeyMaker::new(&data).is_ok(), "{len}");
        }
    }

    #[test]
    fn a_plan_that_needs_more_memory_than_any_may_is_refused_with_the_number() {
        let of = |clients, depth| Plan {
            groups: vec![Group { clients, depth: Depth::Limit(depth), ..Group::default() }],
            phases: vec![Phase {
                name: "measure".to_owned(),
                work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
                stop: Stop { time_ns: Some(SECOND), requests: None },
                recorded: true,
            }],
            servers: vec!["127.0.0.1:11211".to_owned()],
            ..Plan::default()
        };
        assert_eq!(check(&of(10_000, 16)), Ok(()));
        let wrong =
            check(&of(1_000, 1_000_000)).expect_err("a depth of a million on each of 1,000 connections");
        assert_eq!((wrong.flag, wrong.value.as_str()), ("--depth", "1000000"));
        let words = "this plan needs 256.1 GB of memory in this process, more than the limit of 17.2 GB: fewer \
                     connections or a smaller depth are accepted";
        assert_eq!(wrong.accepted, words);
    }

    #[test]
    fn times_are_named_in_whole_numbers() {
        assert_eq!(time_text(0), "0s");
        assert_eq!(time_text(90 * SECOND), "90s");
        assert_eq!(time_text(1_500 * MILLISECOND), "1500ms");
        assert_eq!(time_text(2_000), "2us");
        assert_eq!(time_text(2_001), "2001ns");
    }

    /// Every run of the hostile simulation has a Plan that is accepted, and each pair that it leaves out is refused here.
    #[test]
    fn pairs_of_features_are_refused_exactly_where_no_run_has_them() {
        for pair in features::pairs() {
            for seed in 0..200 {
                let plan = features::setting(pair, seed).plan;
                match features::refusal(pair) {
                    None => assert_eq!(check(&plan), Ok(()), "{pair:?}, seed {seed}"),
                    Some(features::Refusal::Refused(_)) => {
                        assert!(check(&plan).is_err(), "{pair:?}, seed {seed}");
                    }
                    Some(features::Refusal::Unsayable(_)) => {}
                }
            }
        }
    }

    #[test]
    fn a_recording_is_not_verified_and_has_no_clients_that_come_and_go() {
        let pair = (features::Feature::Reconnect, features::Feature::Reconnect);
        let replays = |plan: &Plan| matches!(plan.phases[0].work, Work::Replay(_));
        let mut plans = (0..50).map(|seed| features::setting(pair, seed).plan);
        let plan = plans.find(replays).expect("some of them replay");
        assert_eq!(check(&plan), Ok(()));
        let error = check(&Plan { verify: 0.5, ..plan.clone() }).expect_err("its values are not checked");
        assert_eq!((error.flag, error.field), ("--verify", "verify"));
        let crowd = features::setting((features::Feature::Churn, features::Feature::Churn), 0).plan;
        let crowd = Plan { phases: plan.phases, ..crowd };
        assert!(check(&crowd).expect_err("nobody would come").accepted.contains("mix of operations"));
    }
}
