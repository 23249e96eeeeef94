//! Plans that are drawn at random, of every kind that can be expressed: whatever is valid runs to its end, its accounts
//! add up, and nothing panics.

use pummel_logic::arrival::RateCurve;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Burst, BurstSources, BurstStates, Changes, ChurningClients, ClientPolicy, DealBy, Delete,
    Depth, Event, EventKind, Fill, Fills, FlashCrowd, Gap, Group, HotKey, KeyChurn, KeyStyle, Late, Lengths,
    Load, Login, MappedVerb, Mix, Part, Pause, Phase, Plan, Pool, Popularity, Protocol, RankRange, RatePoint,
    RateShape, Replay, Replication, Route, Sequence, Settle, Sine, Spawns, Stop, TlsOptions, TracePace,
    TraceReplay, TraceTtl, Transport, Until, ValueStyle, Window, WithinSecond, Work,
};
use pummel_logic::protocol::{MetaAsk, Verb};
use pummel_logic::time::{MILLISECOND, Nanos};

use crate::faults::Mischief;
use crate::features::{
    Draws, Model, Setting, commands, follow_memtier, form_values, name_inputs, place_keys,
};
use crate::scenes::{self, Name};

/// Most plans that are drawn until one is valid.
const ATTEMPTS_MAX: u64 = 2_000;

/// Work of most phases of a plan.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Requests are drawn from a mix.
    Mixed,
    /// Requests are drawn from a mix by clients that come and go.
    Churning,
    /// Clients come and go as mcperf's do.
    Sequence,
    /// Clients have windows.
    Windows,
    /// A recording is replayed.
    Replay,
    /// A trace is replayed while it is read.
    Trace,
}

/// The valid plan of a seed, and the number of plans that were drawn for it.
pub fn drawn(seed: u64) -> (Plan, u64) {
    for attempt in 0..ATTEMPTS_MAX {
        let plan = plan(seed, &mut Draws::new(seed, 1_000 + attempt));
        if plan.clone().validate().is_ok() {
            return (plan, attempt + 1);
        }
    }
    panic!("of {ATTEMPTS_MAX} plans of seed {seed} none is valid");
}

/// Runs the plan of a seed. Returns the invariants that do not hold, and the number of plans that were drawn for it.
pub fn run(seed: u64) -> (Vec<String>, u64) {
    let (plan, attempts) = drawn(seed);
    let model = model_of(&plan);
    let text = format!("{plan:?}");
    let setting = Setting { plan, model, has_tails: false };
    let name = Name::Drawn(seed);
    let result = scenes::run_named(name, &setting, &Mischief::none(seed));
    let findings = result.findings.into_iter().map(|finding| format!("{name}: {finding}\n{text}"));
    (findings.collect(), attempts)
}

/// Load model of a plan, for the number of its requests.
fn model_of(plan: &Plan) -> Model {
    let churn = plan.groups[0].churn.as_ref();
    let is_of_mixes = |phase: &Phase| matches!(phase.work, Work::Mix(_) | Work::Load(_) | Work::Pause(_));
    // A read that makes an item is followed by a store of it.
    let renews = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.meta.renews());
    let is_simple = plan.phases.iter().all(is_of_mixes) && plan.changes.is_nothing();
    match churn {
        _ if plan.window().is_some() => Model::Windowed,
        _ if plan.phases.iter().any(renews) => Model::Any,
        Some(ChurningClients { sequence: Some(_), .. }) => Model::Any,
        Some(ChurningClients { spawns: Spawns::Closed, .. }) => Model::ChurnClosed,
        Some(_) => Model::ChurnOpen,
        None if is_simple && plan.groups.iter().all(|group| group.policy == ClientPolicy::default()) => {
            Model::Closed
        }
        None => Model::Any,
    }
}

fn plan(seed: u64, draws: &mut Draws) -> Plan {
    let kinds = [
        Kind::Mixed,
        Kind::Mixed,
        Kind::Mixed,
        Kind::Churning,
        Kind::Churning,
        Kind::Sequence,
        Kind::Windows,
        Kind::Replay,
        Kind::Trace,
    ];
    let kind = kinds[(seed % kinds.len() as u64) as usize];
    let protocol = protocol(kind, draws);
    let servers = draws.one_of(&[1, 1, 2, 3]);
    let mut plan = Plan {
        servers: (0..servers).map(|n| format!("127.0.0.{n}:11211")).collect(),
        protocol,
        seed,
        timeout_ns: draws.one_of(&[3, 5, 20]) * MILLISECOND,
        interval_ns: 10 * MILLISECOND,
        reconnect: draws.once_in(3),
        verify: draws.one_of(&[0.0, 0.0, 0.5, 1.0]),
        allow_partial_load: draws.once_in(4),
        ..Plan::default()
    };
    plan.engine.threads = draws.one_of(&[1, 1, 2, 3]);
    plan.route = match draws.below(4) {
        0 => draws.one_of(&[
            Route::RoundRobin,
            Route::Modulo,
            Route::Ketama,
            Route::KetamaWeighted,
            Route::Crc16,
        ]),
        _ => Route::All,
    };
    if draws.once_in(8) {
        plan.transport = Transport::Udp;
    }
    if draws.once_in(12) {
        plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
    }
    if draws.once_in(8) {
        plan.login = Some(Login { user: "user".to_owned(), password_file: None });
    }
    if draws.once_in(8) {
        plan.database = 3;
    }
    if draws.once_in(4) {
        plan.commands = commands(draws.below(4), draws);
    }
    data(&mut plan, draws);
    groups(&mut plan, kind, draws);
    phases(&mut plan, kind, draws);
    adapt(&mut plan, draws);
    change(&mut plan, draws);
    place_keys(&mut plan, draws);
    form_values(&mut plan, draws);
    name_inputs(&mut plan, draws);
    follow_memtier(&mut plan, &mut Draws::new(seed, 2_000));
    plan
}

fn protocol(kind: Kind, draws: &mut Draws) -> Protocol {
    let all = [Protocol::Text, Protocol::Meta, Protocol::Binary, Protocol::Resp2, Protocol::Resp3];
    match kind {
        Kind::Sequence => Protocol::Text,
        Kind::Windows => draws.one_of(&[Protocol::Text, Protocol::Binary]),
        _ => draws.one_of(&all),
    }
}

fn data(plan: &mut Plan, draws: &mut Draws) {
    let data = &mut plan.data;
    data.records = draws.one_of(&[1, 2, 4, 20]);
    data.seed = draws.below(3);
    data.value_size = match draws.below(4) {
        0 => Dist::Fixed(draws.one_of(&[0.0, 1.0, 24.0, 700.0])),
        1 => Dist::Exponential { mean: 100.0 },
        _ => Dist::Uniform { low: draws.one_of(&[0.0, 24.0]), high: 1_200.0 },
    };
    if draws.once_in(4) {
        data.expiry_s = Dist::Fixed(draws.one_of(&[1.0, 60.0]));
        data.style.expiry_jitter_percent = draws.one_of(&[0, 0, 20]);
    }
    if draws.once_in(6) {
        data.style.keys = KeyStyle::Fnv;
    }
    if draws.once_in(6) {
        data.style.values = ValueStyle::Fresh;
    }
    if draws.once_in(8) {
        data.key_prefix = "p:".to_owned();
    }
}

fn arrivals(draws: &mut Draws) -> Arrivals {
    match draws.below(3) {
        0 => Arrivals::Constant,
        1 => Arrivals::Poisson,
        _ => Arrivals::Shape(Dist::Exponential { mean: 1.0 }),
    }
}

/// A number of requests that a client has outstanding, or that it sends together.
pub(crate) fn depth(draws: &mut Draws) -> Depth {
    let depth = draws.one_of(&[1, 1, 3, 8]);
    if draws.once_in(4) { Depth::Batch(depth) } else { Depth::Limit(depth) }
}

fn groups(plan: &mut Plan, kind: Kind, draws: &mut Draws) {
    let count = if kind == Kind::Mixed && draws.once_in(3) { draws.one_of(&[2, 3]) } else { 1 };
    for number in 0..count {
        let mut group = Group {
            name: format!("group {number}"),
            clients: draws.one_of(&[1, 3, 4, 7]),
            depth: if draws.once_in(5) { Depth::Unlimited } else { depth(draws) },
            ..Group::default()
        };
        if draws.once_in(2) {
            (group.arrivals, group.rate) = (arrivals(draws), Some(draws.one_of(&[100.0, 1_000.0, 6_000.0])));
        }
        if kind == Kind::Trace && draws.once_in(3) {
            (group.arrivals, group.rate) = (Arrivals::Trace, None);
        }
        if draws.once_in(4) {
            group.policy = ClientPolicy {
                block: draws.one_of(&[1, 2]),
                late: draws.one_of(&[Late::Kept, Late::Skipped]),
                spaced: draws.once_in(2),
                successes_only: draws.once_in(2),
                whole: draws.once_in(3),
                here: false,
                ends_on_time: draws.once_in(3),
                same_draws: false,
            };
        }
        group.churn = churning(kind, draws);
        if group.churn.is_some() {
            (group.arrivals, group.rate) = (Arrivals::Closed, None);
        }
        plan.groups.push(group);
    }
    if let Some(ChurningClients { sequence: Some(sequence), .. }) = &plan.groups[0].churn {
        plan.data.key_prefix = "mcp:".to_owned();
        plan.groups[0].depth = if sequence.calls.is_some() { Depth::Unlimited } else { Depth::Limit(1) };
        (plan.engine.threads, plan.verify) = (1, 0.0);
    }
}

fn gap(draws: &mut Draws) -> Gap {
    match draws.below(3) {
        0 => Gap::Fixed(0.001),
        1 => Gap::Uniform(0.0, 0.002),
        _ => Gap::Exponential(0.001),
    }
}

fn churning(kind: Kind, draws: &mut Draws) -> Option<ChurningClients> {
    let calls = draws.one_of(&[1, 3, 5]);
    match kind {
        Kind::Churning => {
            let rate = draws.one_of(&[100.0, 1_000.0, 5_000.0]);
            let spawns = if draws.once_in(2) {
                Spawns::Closed
            } else {
                Spawns::Open { arrivals: arrivals(draws), rate }
            };
            Some(ChurningClients { spawns, calls, sequence: None })
        }
        Kind::Sequence => {
            let sequence = Sequence {
                instance: draws.below(2) as u32,
                calls: draws.once_in(2).then(|| gap(draws)),
                sizes: Gap::Uniform(1.0, 16.0),
                stride: 1,
                offset: 0,
                bogus: draws.once_in(4),
            };
            Some(ChurningClients { spawns: Spawns::Drawn(gap(draws)), calls, sequence: Some(sequence) })
        }
        _ => None,
    }
}

fn stop(draws: &mut Draws) -> Stop {
    let time_ns = draws.one_of(&[3, 8, 25]) * MILLISECOND;
    let requests = draws.one_of(&[1, 5, 60, 120]);
    match draws.below(5) {
        0 | 1 => Stop { time_ns: Some(time_ns), requests: None },
        2 | 3 => Stop { time_ns: None, requests: Some(requests) },
        _ => Stop { time_ns: Some(time_ns), requests: Some(requests) },
    }
}

fn phases(plan: &mut Plan, kind: Kind, draws: &mut Draws) {
    let main = main_work(plan, kind, draws);
    // All mixes of a plan have the same churn of keys, and a plan has one window and one trace.
    let churn = draws.once_in(8).then(|| key_churn(draws));
    let count = draws.one_of(&[1, 2, 3, 4, 5]);
    for number in 0..count {
        let work = match draws.below(10) {
            0 | 1 => Work::Load(load(draws)),
            2 if draws.once_in(2) => Work::Delete(Delete { share: draws.one_of(&[0.3, 1.0]), depth: 3 }),
            3 if draws.once_in(2) => {
                Work::Pause(Pause { until_ns: draws.below(40) * MILLISECOND, for_ns: 0 })
            }
            4 if kind == Kind::Mixed => main_work(plan, kind, draws),
            5 if draws.once_in(4) => {
                let other = draws.one_of(&[Kind::Mixed, Kind::Replay, Kind::Trace, Kind::Windows]);
                main_work(plan, other, draws)
            }
            _ => main.clone(),
        };
        let mut work = work;
        if let Work::Mix(mix) = &mut work {
            mix.churn.clone_from(&churn);
        }
        if let Work::Window(window) = &mut work {
            window.preset = number == 0 && count > 1 && draws.once_in(2);
        }
        let ends = match &work {
            Work::Load(_) | Work::Delete(_) | Work::Pause(_) => Stop::default(),
            Work::Window(window) if window.preset => Stop::default(),
            Work::Replay(_) | Work::Trace(_) if draws.once_in(2) => Stop::default(),
            _ => stop(draws),
        };
        let recorded = number + 1 == count || draws.once_in(3);
        plan.phases.push(Phase { name: format!("phase {number}"), work, stop: ends, recorded });
    }
}

fn load(draws: &mut Draws) -> Load {
    Load {
        depth: draws.one_of(&[1, 8]),
        pieces: draws.once_in(2),
        counters: draws.once_in(2),
        hashes: draws.once_in(4),
        commands: draws.once_in(8),
        no_plain: draws.once_in(8),
    }
}

fn main_work(plan: &Plan, kind: Kind, draws: &mut Draws) -> Work {
    match kind {
        Kind::Mixed | Kind::Churning => Work::Mix(mix(plan, draws)),
        Kind::Sequence => {
            let bogus = plan.sequence().is_some_and(|sequence| sequence.bogus);
            let verb = if bogus { Verb::Set } else { draws.one_of(&[Verb::Set, Verb::Get]) };
            Work::Mix(Mix { noreply: verb == Verb::Set && draws.once_in(3), ..Mix::of(&[(verb, 1.0)]) })
        }
        Kind::Windows => Work::Window(window(draws)),
        Kind::Replay => Work::Replay(Replay {
            path: "recorded".to_owned(),
            format: 0,
            read_through_ns: draws.once_in(2).then(|| draws.below(2) * MILLISECOND / 10),
            reads_only: draws.once_in(3),
        }),
        Kind::Trace => Work::Trace(Box::new(trace(plan, draws))),
    }
}

fn mix(plan: &Plan, draws: &mut Draws) -> Mix {
    let verbs = plan.protocol.row().verbs;
    let mut ops = vec![(Verb::Get, 2.0)];
    for _ in 0..draws.below(4) {
        let verb = draws.one_of(verbs);
        if ops.iter().all(|(known, _)| *known != verb) {
            ops.push((verb, draws.one_of(&[0.5, 1.0, 3.0])));
        }
    }
    if draws.once_in(4) && ops.len() > 1 {
        ops.remove(0);
    }
    ops.retain(|(verb, _)| !verb.is_command());
    ops.extend((0..plan.commands.len()).filter_map(Verb::of_command).map(|verb| (verb, 1.0)));
    if ops.is_empty() {
        ops.push((Verb::Set, 1.0));
    }
    let mut mix = Mix::of(&ops);
    mix.in_turns = mix.ops.iter().all(|(_, weight)| weight.fract() == 0.0) && draws.once_in(4);
    mix.popularity = popularity(draws);
    if draws.once_in(4) {
        mix.multiget = draws.one_of(&[2, 5, 12]);
        mix.scans = draws.once_in(3);
    }
    if draws.once_in(5) {
        (mix.fresh, mix.absent) = draws.one_of(&[(0.4, 0.0), (0.0, 0.4), (0.3, 0.3), (1.0, 0.0)]);
    }
    if draws.once_in(5) {
        mix.read_through_ns = Some(draws.below(2) * MILLISECOND / 10);
        mix.fill = draws.one_of(&[Fill::Set, Fill::Add]);
        mix.fill_delay_s = draws.once_in(3).then_some(Dist::Exponential { mean: 0.0005 });
    }
    if draws.once_in(6) {
        mix.read_modify_write = draws.one_of(&[0.5, 1.0]);
    }
    mix.inserts = draws.once_in(8);
    mix.noreply = draws.once_in(8);
    if draws.once_in(4) {
        mix.multiset = draws.one_of(&[2, 4]);
    }
    if plan.protocol == Protocol::Meta && draws.once_in(4) {
        mix.meta = MetaAsk {
            vivify_s: draws.once_in(2).then_some(30),
            recache_s: draws.once_in(2).then_some(10),
            details: draws.once_in(2),
            stale_s: draws.once_in(3).then_some(20),
        };
    }
    mix
}

fn popularity(draws: &mut Draws) -> Popularity {
    match draws.below(7) {
        0 => Popularity::Zipf { exponent: 0.99 },
        1 => Popularity::Latest { exponent: 0.99 },
        2 => Popularity::Hot { keys: 0.25, requests: 0.9 },
        3 => Popularity::Ycsb,
        4 => Popularity::Sequential,
        _ => Popularity::Uniform,
    }
}

fn key_churn(draws: &mut Draws) -> KeyChurn {
    match draws.below(3) {
        0 => KeyChurn::Seconds(Dist::Exponential { mean: 0.004 }),
        1 => KeyChurn::Requests(Dist::Exponential { mean: 20.0 }),
        _ => KeyChurn::Share(draws.one_of(&[0.02, 1.0])),
    }
}

fn window(draws: &mut Draws) -> Window {
    let set = draws.one_of(&[0.0, 0.1, 0.5, 1.0]);
    Window {
        seed: draws.below(3),
        objects: draws.one_of(&[1, 2, 20]),
        keys: vec![Lengths { start: 16, end: 40, share: 1.0 }],
        values: vec![Lengths { start: 1, end: 900, share: 1.0 }],
        set,
        get: 1.0 - set,
        multiget: draws.one_of(&[1, 1, 2, 5]),
        overwrite: draws.one_of(&[0.0, 0.5, 1.0]),
        verify: draws.one_of(&[0.0, 0.5, 1.0]),
        expire: draws.one_of(&[0.0, 0.0, 0.5]),
        verbose: draws.once_in(2),
        preset: false,
        pool: Pool {
            sockets: draws.one_of(&[1, 2]),
            block: draws.one_of(&[1, 2]),
            datagrams: draws.once_in(5),
            replication: draws.once_in(5).then(|| Replication { writers: draws.one_of(&[1, 2]) }),
        },
    }
}

fn trace(plan: &Plan, draws: &mut Draws) -> TraceReplay {
    let group = &plan.groups[0];
    let pace = match (&group.arrivals, group.rate) {
        (Arrivals::Trace, _) => TracePace::Trace { speed: draws.one_of(&[0.5, 1.0, 3.0]) },
        (_, Some(_)) => TracePace::Rate,
        _ => TracePace::Fast,
    };
    let is_own = draws.once_in(3);
    TraceReplay {
        by: draws.one_of(&[None, Some(DealBy::Client), Some(DealBy::Key), Some(DealBy::Row)]),
        within_second: draws.one_of(&[WithinSecond::Spread, WithinSecond::Poisson, WithinSecond::Burst]),
        ttl: draws.one_of(&[TraceTtl::Scale, TraceTtl::Keep, TraceTtl::None]),
        passes: draws.one_of(&[1, 1, 2]),
        fresh_passes: draws.once_in(3),
        from_ns: draws.one_of(&[0, 0, MILLISECOND]),
        to_ns: draws.once_in(4).then_some(8 * MILLISECOND),
        sample: draws.one_of(&[1.0, 1.0, 0.5]),
        amplify: draws.one_of(&[1, 1, 2]),
        fills: if is_own { Fills::Own } else { Fills::Recorded },
        fill_delay_ns: if is_own { MILLISECOND / 10 } else { 0 },
        fill_delay_s: (is_own && draws.once_in(2)).then_some(Dist::Exponential { mean: 0.0005 }),
        missing_size: draws.once_in(3).then_some(Dist::Fixed(40.0)),
        stores_only: draws.once_in(6),
        map: draws
            .one_of(&[None, None, Some((Verb::Get, Verb::Set)), Some((Verb::Set, Verb::Get))])
            .map_or_else(Vec::new, |(from, to)| vec![MappedVerb { from, to }]),
        ..TraceReplay::of(vec!["trace".to_owned()], pace, 10_000)
    }
}

fn adapt(plan: &mut Plan, draws: &mut Draws) {
    let recorded = plan.phases.iter().position(|phase| phase.recorded);
    let Some(measured) = recorded.filter(|_| draws.once_in(8)) else { return };
    match draws.below(3) {
        0 => {
            plan.interval_ns = 100 * MILLISECOND;
            plan.adaptive.until = Some(Until { quantile: 0.5, half_width: 0.5, least_ns: 100 * MILLISECOND });
            plan.phases[measured].stop = Stop { time_ns: Some(400 * MILLISECOND), requests: None };
            plan.phases.truncate(measured + 1);
        }
        1 => plan.adaptive.first_eviction = true,
        _ => {
            plan.adaptive.settle = Some(Settle { discard_ns: 10 * MILLISECOND, block_ns: 20 * MILLISECOND });
        }
    }
    if plan.adaptive.ends_warm_up() && measured > 0 {
        let (before, rest) = plan.phases.split_at_mut(measured);
        if let Some(warm_up) = before.last_mut() {
            warm_up.work = rest[0].work.clone();
            warm_up.stop = Stop { time_ns: Some(60 * MILLISECOND), requests: None };
        }
    }
}

fn change(plan: &mut Plan, draws: &mut Draws) {
    if !draws.once_in(6) {
        return;
    }
    // The measured phase is the last one, and ends by the clock.
    let time_ns = 12 * MILLISECOND;
    plan.phases.iter_mut().for_each(|phase| phase.recorded = false);
    let Some(last) = plan.phases.last_mut() else { return };
    (last.recorded, last.stop) = (true, Stop { time_ns: Some(time_ns), requests: None });
    if draws.once_in(2) {
        let rate = draws.one_of(&[500.0, 6_000.0]);
        let shape = shape(rate, time_ns, draws);
        if let Some(mean) = &mut plan.groups[0].rate {
            *mean = RateCurve::of(&shape).mean_until(time_ns);
        }
        plan.changes.rate = Some(shape);
    }
    if draws.once_in(3) {
        let states = BurstStates { factor: 3.0, on_ns: MILLISECOND, off_ns: 3 * MILLISECOND };
        let sources = BurstSources { hurst: 0.8, on_ns: MILLISECOND, sources: 4 };
        plan.changes.burst =
            Some(if draws.once_in(2) { Burst::States(states) } else { Burst::Hurst(sources) });
    }
    if draws.once_in(2) {
        plan.changes.parts = parts(time_ns, draws);
    }
    if draws.once_in(2) {
        plan.changes.events = (0..1 + draws.below(3)).map(|_| event(plan, time_ns, draws)).collect();
    }
    if plan.changes == Changes::default() {
        plan.changes.parts = parts(time_ns, draws);
    }
    if draws.once_in(2) {
        set_stage(plan, time_ns, draws);
    }
}

/// Lets the number of connections change, in a closed loop that alone.
fn set_stage(plan: &mut Plan, time_ns: Nanos, draws: &mut Draws) {
    plan.changes.events.clear();
    plan.transport = Transport::Stream;
    if plan.changes.parts.is_empty() {
        plan.changes.parts = parts(time_ns, draws);
    }
    if plan.groups[0].rate.is_none() {
        plan.changes = Changes { parts: plan.changes.parts.clone(), ..Changes::default() };
        for part in &mut plan.changes.parts {
            (part.ops, part.popularity, part.churn) = (None, None, None);
        }
    }
    let clients = u64::from(plan.groups[0].clients);
    for part in &mut plan.changes.parts {
        part.connections = (!draws.once_in(4)).then(|| 1 + draws.below(clients) as u32);
    }
}

fn shape(rate: f64, time_ns: Nanos, draws: &mut Draws) -> RateShape {
    let point = |at_ns, rate| RatePoint { at_ns, rate };
    match draws.below(3) {
        0 => RateShape::Points(vec![point(0, 0.0), point(time_ns, rate)]),
        1 => RateShape::Points(vec![
            point(0, rate),
            point(time_ns / 4, 3.0 * rate),
            point(time_ns / 4, 0.0),
            point(time_ns / 2, rate),
        ]),
        _ => RateShape::Sine(Sine { mean: rate, amplitude: rate, period_ns: 10 * MILLISECOND, start: 0.25 }),
    }
}

fn parts(time_ns: Nanos, draws: &mut Draws) -> Vec<Part> {
    let mut parts: Vec<Part> = (0..draws.one_of(&[2, 3]))
        .map(|number: u64| Part::plain(format!("part {number}"), number * time_ns / 4))
        .collect();
    for part in &mut parts {
        if draws.once_in(3) {
            part.ops = Some(vec![(Verb::Get, 1.0), (Verb::Set, 1.0)]);
        }
        if draws.once_in(3) {
            part.popularity = Some(popularity(draws));
        }
        if draws.once_in(5) {
            part.churn = Some(key_churn(draws));
        }
    }
    parts
}

fn event(plan: &Plan, time_ns: Nanos, draws: &mut Draws) -> Event {
    let last = plan.data.records - 1;
    let first = draws.below(last + 1);
    let ranks = RankRange { first, last: first + draws.below(last + 1 - first) };
    let what = match draws.below(3) {
        0 => EventKind::Delete(ranks),
        1 => EventKind::Expire(ranks),
        _ => EventKind::Hot(FlashCrowd {
            key: if draws.once_in(2) { HotKey::New } else { HotKey::Rank(first) },
            share: draws.one_of(&[0.4, 1.0]),
            rise_ns: draws.below(2) * MILLISECOND,
            hold_ns: 4 * MILLISECOND,
            fall_ns: draws.below(2) * MILLISECOND,
        }),
    };
    Event { at_ns: draws.below(time_ns), what }
}
