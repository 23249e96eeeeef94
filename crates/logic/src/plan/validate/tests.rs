//! Plans that are refused, with the fields that are named, and what holds of those that are not.

use serde_json::Value;

use super::*;
use crate::arrival::Pace;
use crate::client::route::Router;
use crate::dist::Dist;
use crate::plan::share;
use crate::plan::{
    Arrivals, ChurningClients, Clock, Command, Delete, Depth, Gap, Goal, Group, KeyChurn, KeyStyle, Lengths,
    Load, Login, Mix, Pause, Phase, Pool, Popularity, Protocol, Replay, Replication, Route, Sequence, Spawns,
    Stop, TlsOptions, TransmitSampling, Window, Work,
};
use crate::protocol::Verb;
use crate::rng::StreamOwner;
use crate::workload::key::KeyMaker;
use crate::workload::request::{RequestInputs, RequestMaker};
use crate::workload::sequence::{Sequencer, largest};
use crate::workload::value::ValueMaker;
use crate::workload::verify::stale::RunMark;
use crate::workload::window::WindowMaker;

const ENDLESS: f64 = f64::INFINITY;

fn phase(name: &str, work: Work, stop: Stop) -> Phase {
    Phase { name: name.to_owned(), work, stop, recorded: name == "measure" }
}

fn for_a_second() -> Stop {
    Stop { time_ns: Some(SECOND), requests: None }
}

/// Gets and sets after a load, in open loop.
fn mixed() -> Plan {
    let mix = Mix { read_through_ns: Some(1_000), ..Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]) };
    let mut plan = Plan::measuring(Work::Mix(mix), Stop { time_ns: Some(SECOND), requests: Some(100) });
    plan.phases.insert(0, phase("load", Work::Load(Load { depth: 64, ..Load::default() }), Stop::default()));
    plan.groups[0] = Group {
        clients: 10,
        depth: Depth::Limit(4),
        arrivals: Arrivals::Poisson,
        rate: Some(1_000.0),
        ..Group::default()
    };
    plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND }];
    plan.socket.linger_s = Some(0);
    plan.socket.send_buffer = Some(4_096);
    plan
}

fn churning() -> Plan {
    let mut plan = Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), for_a_second());
    let arrivals = Arrivals::Shape(Dist::Exponential { mean: 1.0 });
    let spawns = Spawns::Open { arrivals, rate: 100.0 };
    plan.groups[0].churn = Some(ChurningClients { spawns, calls: 5, sequence: None });
    plan
}

fn churning_in_cluster() -> Plan {
    let (protocol, route, reconnect) = (Protocol::Resp3, Route::Cluster, true);
    Plan { protocol, route, reconnect, ..churning() }
}

fn sequence() -> Plan {
    let stop = Stop { time_ns: None, requests: Some(100) };
    let mut plan = Plan::measuring(Work::Mix(Mix::of(&[(Verb::Set, 1.0)])), stop);
    let sequence = Sequence {
        instance: 1,
        calls: Some(Gap::Fixed(0.001)),
        sizes: Gap::Uniform(1.0, 16.0),
        stride: 2,
        offset: 1,
        bogus: false,
    };
    let spawns = Spawns::Drawn(Gap::Exponential(0.001));
    plan.groups[0].churn = Some(ChurningClients { spawns, calls: 5, sequence: Some(sequence) });
    plan.timeout_ns = NO_TIMEOUT_NS;
    plan
}

fn windowed() -> Plan {
    let window = Window {
        seed: 7,
        objects: 100,
        keys: vec![Lengths { start: 16, end: 32, share: 1.0 }],
        values: vec![Lengths { start: 1, end: 100, share: 1.0 }],
        set: 0.1,
        get: 0.9,
        multiget: 2,
        overwrite: 0.1,
        verify: 0.1,
        expire: 0.1,
        verbose: false,
        preset: false,
        pool: Pool { sockets: 1, block: 1, datagrams: true, replication: None },
    };
    Plan::measuring(Work::Window(window), for_a_second())
}

fn of_resp() -> Plan {
    let mix = Mix { multiset: 4, ..Mix::of(&[(Verb::Command, 1.0), (Verb::Mset, 1.0)]) };
    let commands = vec![Command::unnamed("ZADD __key__ __number__ __value__")];
    Plan {
        protocol: Protocol::Resp3,
        database: 3,
        commands,
        ..Plan::measuring(Work::Mix(mix), for_a_second())
    }
}

fn of_meta() -> Plan {
    let mut mix = Mix::of(&[(Verb::Get, 1.0), (Verb::Delete, 1.0)]);
    (mix.meta.vivify_s, mix.meta.recache_s, mix.meta.stale_s) = (Some(30), Some(5), Some(10));
    Plan { protocol: Protocol::Meta, ..Plan::measuring(Work::Mix(mix), for_a_second()) }
}

fn divided() -> Plan {
    let mut plan = Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), for_a_second());
    plan.phases.push(phase("delete", Work::Delete(Delete { share: 0.5, depth: 4 }), Stop::default()));
    plan.phases.push(phase("pause", Work::Pause(Pause { until_ns: SECOND, for_ns: 0 }), Stop::default()));
    let replay =
        Replay { path: "recorded".to_owned(), format: 1, read_through_ns: Some(10), reads_only: false };
    plan.phases.push(phase("replay", Work::Replay(replay), for_a_second()));
    plan
}

/// Requests as memtier_benchmark makes them.
fn of_memtier() -> Plan {
    let normal = Popularity::Normal { median: 5_000.0, deviation: 100.0 };
    let mix = Mix {
        in_turns: true,
        popularity: Popularity::SequentialShares,
        popularity_of: vec![(Verb::Get, normal)],
        ..Mix::of(&[(Verb::Set, 1.0), (Verb::Get, 10.0)])
    };
    let mut plan = Plan::measuring(Work::Mix(mix), for_a_second());
    plan.data.style.keys = KeyStyle::Unpadded;
    (plan.data.key_prefix, plan.data.first_key) = ("memtier-".to_owned(), 1);
    plan.groups[0].policy.same_draws = true;
    plan.data.value_filler = Some('x');
    plan
}

/// Plans that are valid, one of each kind.
fn valid() -> Vec<Plan> {
    let mut over_udp = Plan { transport: Transport::Udp, ..mixed() };
    over_udp.socket.linger_s = None;
    vec![
        mixed(),
        over_udp,
        churning(),
        churning_in_cluster(),
        sequence(),
        windowed(),
        of_resp(),
        of_meta(),
        divided(),
        of_memtier(),
    ]
}

fn mix_of(plan: &mut Plan) -> &mut Mix {
    let last = plan.phases.last_mut().expect("a plan has phases");
    let Work::Mix(mix) = &mut last.work else { panic!("the last phase asks a mix") };
    mix
}

fn window_of(plan: &mut Plan) -> &mut Window {
    let Work::Window(window) = &mut plan.phases[0].work else { panic!("the first phase has windows") };
    window
}

fn sequence_of(plan: &mut Plan) -> &mut Sequence {
    let churn = plan.groups[0].churn.as_mut();
    churn.and_then(|churn| churn.sequence.as_mut()).expect("the plan is a sequence")
}

fn user(user: &str) -> Option<Login> {
    Some(Login { user: user.to_owned(), password_file: None })
}

fn named(mut plan: Plan, change: fn(&mut Plan)) -> String {
    change(&mut plan);
    match plan.validate() {
        Ok(_) => "nothing".to_owned(),
        Err(invalid) => invalid.path.to_string(),
    }
}

#[test]
fn plans_of_every_kind_are_valid() {
    for plan in valid() {
        let text = serde_json::to_string(&plan).expect("a plan is data");
        let valid = plan.clone().validate().unwrap_or_else(|invalid| panic!("{invalid}: {text}"));
        assert_eq!(serde_json::to_string(&valid).expect("a valid plan is data"), text);
        assert_eq!(valid.into_plan(), plan);
    }
}

/// A change of a valid plan after which it is refused.
type Change = fn(&mut Plan);

#[test]
fn what_is_wrong_is_named_by_its_path() {
    let rows: [(Plan, &str, Change); 80] = [
        (mixed(), "schema", |plan| plan.schema = 2),
        (mixed(), "servers", |plan| plan.servers.clear()),
        (mixed(), "servers[1]", |plan| plan.servers.push("a".to_owned())),
        (mixed(), "servers", |plan| {
            plan.route = Route::Modulo;
            plan.servers = (0..70_000).map(|n| format!("s{n}:1")).collect();
        }),
        (mixed(), "seed", |plan| plan.seed = u64::MAX),
        (mixed(), "interval_ns", |plan| plan.interval_ns = 1),
        (mixed(), "server_stats_ns", |plan| plan.server_stats_ns = Some(99_999_999)),
        (mixed(), "server_stats_at[0]", |plan| plan.server_stats_at.push("a".to_owned())),
        (mixed(), "server_stats_at[1]", |plan| plan.server_stats_at = vec!["a:1".to_owned(); 2]),
        (mixed(), "server_stats_at", |plan| {
            (plan.server_stats_at, plan.evidence) = (vec!["a:1".to_owned()], false);
        }),
        (mixed(), "timeout_ns", |plan| plan.timeout_ns = NO_TIMEOUT_NS),
        (sequence(), "timeout_ns", |plan| plan.timeout_ns = 0),
        (mixed(), "verify", |plan| plan.verify = 1.5),
        (mixed(), "labels", |plan| drop(plan.labels.insert("a-b".to_owned(), String::new()))),
        (mixed(), "labels", |plan| {
            plan.labels = (0..33).map(|n| (format!("n{n}"), String::new())).collect();
        }),
        (mixed(), "goals[0].quantile", |plan| plan.goals[0].quantile = 1.0),
        (mixed(), "socket.linger_s", |plan| plan.socket.linger_s = Some(70_000)),
        (mixed(), "socket.source", |plan| plan.socket.source = vec!["127.0.0.1".to_owned(); 1_025]),
        (mixed(), "socket.source[0]", |plan| plan.socket.source.push("eth0".to_owned())),
        (mixed(), "tls.cert", |plan| {
            plan.tls = Some(TlsOptions { cert: Some("a".to_owned()), ..TlsOptions::default() });
        }),
        (mixed(), "login.user", |plan| plan.login = user("")),
        (of_meta(), "login.user", |plan| plan.login = user("jo:e")),
        (mixed(), "login.user", |plan| (plan.protocol, plan.login) = (Protocol::Binary, user("jo\0e"))),
        (mixed(), "data.records", |plan| plan.data.records = 0),
        (mixed(), "data.key_size", |plan| plan.data.key_size = Dist::Fixed(3.0)),
        (mixed(), "data.value_size", |plan| plan.data.value_size = Dist::Fixed(f64::NAN)),
        (mixed(), "data.value_compress", |plan| plan.data.value_compress = 0.99),
        (mixed(), "data.value_compress", |plan| plan.data.value_compress = 10.1),
        (mixed(), "data.value_compress", |plan| plan.data.value_compress = f64::NAN),
        (mixed(), "data.expiry_s", |plan| plan.data.expiry_s = Dist::Fixed(-1.0)),
        (mixed(), "data.style.expiry_jitter_percent", |plan| plan.data.style.expiry_jitter_percent = 101),
        (mixed(), "data.style.expiry_jitter_percent", |plan| plan.data.style.expiry_jitter_percent = 10),
        (mixed(), "data.style.field_bytes", |plan| plan.data.style.field_bytes = Some(4)),
        (mixed(), "groups", |plan| plan.groups.clear()),
        (mixed(), "groups[1].name", |plan| plan.groups.push(plan.groups[0].clone())),
        (mixed(), "groups[0].clients", |plan| plan.groups[0].clients = 0),
        (mixed(), "groups[0].depth", |plan| plan.groups[0].depth = Depth::Limit(0)),
        (mixed(), "groups[0].rate", |plan| plan.groups[0].rate = Some(f64::NAN)),
        (mixed(), "groups[0].arrivals", |plan| {
            plan.groups[0].arrivals = Arrivals::Shape(Dist::Pareto { loc: 1.0, scale: 1.0, shape: 2.0 });
        }),
        (mixed(), "groups[0].arrivals", |plan| {
            plan.groups[0].arrivals = Arrivals::Shape(Dist::Uniform { low: 3.0, high: 1.0 });
        }),
        (mixed(), "groups[0].policy.block", |plan| plan.groups[0].policy.block = 11),
        (mixed(), "engine.threads", |plan| plan.engine.threads = 0),
        (mixed(), "engine.threads", |plan| plan.engine.threads = 11),
        (mixed(), "engine.stamps", |plan| {
            plan.engine.stamps = Some(TransmitSampling { every: 0, scheduled: false, hardware: false });
        }),
        (mixed(), "engine.stamps", |plan| {
            plan.engine.stamps = Some(TransmitSampling { every: 64, scheduled: false, hardware: false });
            plan.engine.clock = Clock::User;
        }),
        (mixed(), "engine.stamps", |plan| {
            plan.engine.stamps = Some(TransmitSampling { every: 64, scheduled: true, hardware: false });
            plan.servers = vec!["/tmp/socket".to_owned()];
        }),
        (churning(), "groups[0].connection_churn.calls", |plan| {
            plan.groups[0].churn.as_mut().expect("clients that come and go").calls = 0;
        }),
        (churning(), "groups[0].connection_churn.clients_started.open.rate", |plan| {
            let spawns = Spawns::Open { arrivals: Arrivals::Constant, rate: 0.0 };
            plan.groups[0].churn.as_mut().expect("clients that come and go").spawns = spawns;
        }),
        (churning(), "groups[0].connection_churn.clients_started.open.rate", |plan| {
            let delete = Work::Delete(Delete { share: 0.5, depth: 1 });
            plan.phases.push(phase("delete", delete, Stop::default()));
        }),
        (sequence(), "groups[0].connection_churn.clients_started.open.rate", |plan| {
            let spawns = Spawns::Open { arrivals: Arrivals::Constant, rate: f64::NAN };
            plan.groups[0].churn.as_mut().expect("clients that come and go").spawns = spawns;
        }),
        (churning(), "groups[0].connection_churn.clients_started.open.arrivals", |plan| {
            let spawns = Spawns::Open { arrivals: Arrivals::Trace, rate: 100.0 };
            plan.groups[0].churn.as_mut().expect("clients that come and go").spawns = spawns;
        }),
        (sequence(), "groups[0].connection_churn.sequence", |plan| {
            sequence_of(plan).sizes = Gap::Rising(1.0);
            plan.phases.push(plan.phases[0].clone());
        }),
        (sequence(), "groups[0].connection_churn.sequence", |plan| sequence_of(plan).sizes = Gap::Fixed(2e9)),
        (sequence(), "groups[0].connection_churn.sequence", |plan| {
            sequence_of(plan).sizes = Gap::Uniform(9.0, 1.0)
        }),
        (sequence(), "groups[0].connection_churn.sequence", |plan| {
            sequence_of(plan).calls = Some(Gap::Fixed(ENDLESS))
        }),
        (sequence(), "groups[0].connection_churn.sequence", |plan| {
            let spawns = Spawns::Drawn(Gap::Exponential(0.0));
            plan.groups[0].churn.as_mut().expect("clients that come and go").spawns = spawns;
        }),
        (mixed(), "phases", |plan| plan.phases.clear()),
        (mixed(), "phases[0].work.load.depth", |plan| {
            plan.phases[0].work = Work::Load(Load::default());
        }),
        (mixed(), "phases[1].stop", |plan| plan.phases[1].stop = Stop::default()),
        (mixed(), "phases[1].stop.requests", |plan| plan.phases[1].stop.requests = Some(0)),
        (mixed(), "phases[1].work.mix.ops", |plan| mix_of(plan).ops.clear()),
        (mixed(), "phases[1].work.mix.ops", |plan| {
            mix_of(plan).ops = vec![(Verb::Get, f64::MAX), (Verb::Set, f64::MAX)];
        }),
        (mixed(), "phases[1].work.mix.popularity", |plan| {
            mix_of(plan).popularity = Popularity::Zipf { exponent: f64::NAN };
        }),
        (mixed(), "phases[1].work.mix.multiget", |plan| mix_of(plan).multiget = 1_001),
        (of_resp(), "commands[0].template", |plan| {
            plan.commands = vec![Command::unnamed("MULTI ; INCR __key__")];
        }),
        (of_resp(), "commands[0].template", |plan| {
            plan.commands = vec![Command::unnamed("MULTI ; INCR __key__ ;; EXEC")];
            plan.groups[0].depth = Depth::Limit(2);
        }),
        (of_resp(), "commands[0].template", |plan| {
            plan.commands = vec![Command::unnamed("WATCH __key__ ; DEL __key__ ; MULTI ; EXEC")];
            (plan.route, plan.reconnect, plan.database) = (Route::Cluster, true, 0);
            *mix_of(plan) = Mix::of(&[(Verb::Command, 1.0)]);
        }),
        (of_resp(), "commands[0].template", |plan| {
            plan.commands = vec![Command::unnamed("GET __key__ ; GET other")];
            plan.route = Route::Crc16;
        }),
        (of_resp(), "commands[0].template", |plan| {
            plan.commands = vec![Command::unnamed("BLPOP __key__ 0.5 ; BLPOP __key__ 0.5")];
            plan.timeout_ns = SECOND;
        }),
        (of_resp(), "data.expiry_s", |plan| {
            (plan.commands, plan.data.style.field_bytes) = (Vec::new(), Some(4));
            *mix_of(plan) = Mix::of(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
            plan.data.expiry_s = Dist::Fixed(60.0);
        }),
        (of_resp(), "phases[0].work.mix.ops", |plan| {
            (plan.commands, plan.data.style.field_bytes) = (Vec::new(), Some(4));
            mix_of(plan).ops = vec![(Verb::Incr, 1.0), (Verb::Mset, 1.0)];
        }),
        (of_resp(), "phases[0].work.mix.multiget", |plan| {
            (plan.commands, plan.data.style.field_bytes) = (Vec::new(), Some(4));
            *mix_of(plan) = Mix { multiget: 2, ..Mix::of(&[(Verb::Get, 1.0)]) };
        }),
        (windowed(), "phases[0].work.window", |plan| window_of(plan).pool.sockets = 65_535),
        (windowed(), "phases[0].work.window", |plan| window_of(plan).multiget = 1_000),
        (windowed(), "phases[0].work.window", |plan| window_of(plan).keys[0].share = ENDLESS),
        (windowed(), "phases[0].work.window", |plan| {
            plan.protocol = Protocol::Meta;
            (window_of(plan).pool.datagrams, window_of(plan).keys[0].end) = (false, 187);
        }),
        (windowed(), "phases[0].work.window", |plan| {
            let pool = &mut window_of(plan).pool;
            (pool.datagrams, pool.replication) = (false, Some(Replication { writers: 2 }));
        }),
        (windowed(), "phases[1].work.window", |plan| plan.phases.extend(mixed().phases.pop())),
        (windowed(), "phases[1].work.window", |plan| {
            plan.phases.push(plan.phases[0].clone());
            window_of(plan).objects = 7;
        }),
        (mixed(), "transport", |plan| {
            (plan.transport, plan.protocol) = (Transport::Udp, Protocol::Binary);
        }),
    ];
    for (number, (plan, path, change)) in rows.into_iter().enumerate() {
        assert_eq!(named(plan, change), path, "row {number}");
    }
}

#[test]
fn what_cannot_be_right_with_keys_without_zeros_is_refused() {
    let rows: [(&str, Change); 10] = [
        ("verify", |plan| plan.verify = 0.5),
        ("data.key_tag", |plan| plan.data.key_tag = Some(4)),
        ("data.slots", |plan| plan.data.slots = vec!["0-5460".parse().expect("a range")]),
        ("data.style.field_bytes", |plan| {
            (plan.protocol, plan.data.style.field_bytes) = (Protocol::Resp2, Some(2));
        }),
        ("phases[0].work.mix.churn", |plan| mix_of(plan).churn = Some(KeyChurn::Share(0.5))),
        ("phases[0].work.mix.read_through_ns", |plan| mix_of(plan).read_through_ns = Some(0)),
        ("data.first_key", |plan| plan.data.style.keys = KeyStyle::Drawn),
        ("data.first_key", |plan| plan.data.first_key = 5_999_999_999_999_999),
        ("data.first_key", |plan| plan.data.first_key = u64::MAX),
        ("data.first_key", |plan| {
            (plan.data.first_key, mix_of(plan).fresh) = (1_000_000_000_000_000, 0.5);
            plan.groups[0].policy.same_draws = false;
        }),
    ];
    for (number, (path, change)) in rows.into_iter().enumerate() {
        assert_eq!(named(of_memtier(), change), path, "row {number}");
    }
    let last: Change = |plan| plan.data.first_key = 6_000_000_000_000_000 - plan.data.records;
    assert_eq!(named(of_memtier(), last), "nothing");
    assert_eq!(named(of_memtier(), |plan| plan.data.key_size = Dist::Fixed(1.0)), "nothing");
}

#[test]
fn an_operation_stands_at_several_places_only_where_operations_take_turns() {
    let path = "phases[0].work.mix.ops";
    let rows: [(&str, Change); 4] = [
        ("nothing", |plan| mix_of(plan).ops.extend([(Verb::Set, 2.0), (Verb::Get, 5.0)])),
        ("nothing", |plan| mix_of(plan).ops = [(Verb::Get, 1e6), (Verb::Set, 1e6)].repeat(2_048)),
        (path, |plan| {
            mix_of(plan).ops = [(Verb::Get, 1.0), (Verb::Set, 1.0), (Verb::Get, 1.0)].repeat(1_366)
        }),
        (path, |plan| {
            mix_of(plan).ops.push((Verb::Set, 1.0));
            mix_of(plan).in_turns = false;
        }),
    ];
    for (number, (path, change)) in rows.into_iter().enumerate() {
        assert_eq!(named(of_memtier(), change), path, "row {number}");
    }
}

#[test]
fn bursts_have_a_size_and_no_least_gap() {
    let path = "groups[0].arrivals";
    let rows: [(&str, Change); 5] = [
        (path, |plan| plan.groups[0].arrivals = Arrivals::Bursts(0)),
        (path, |plan| plan.groups[0].arrivals = Arrivals::Bursts(1_000_001)),
        (path, |plan| (plan.groups[0].arrivals, plan.groups[0].rate) = (Arrivals::Bursts(4), None)),
        (path, |plan| {
            plan.groups[0].arrivals = Arrivals::Bursts(4);
            plan.groups[0].policy.spaced = true;
        }),
        ("nothing", |plan| plan.groups[0].arrivals = Arrivals::Bursts(1_000_000)),
    ];
    for (number, (path, change)) in rows.into_iter().enumerate() {
        assert_eq!(named(mixed(), change), path, "row {number}");
    }
    let spawns: Change = |plan| {
        let churn = plan.groups[0].churn.as_mut().expect("clients come and go");
        churn.spawns = Spawns::Open { arrivals: Arrivals::Bursts(0), rate: 10.0 };
    };
    assert_eq!(named(churning(), spawns), "groups[0].connection_churn.clients_started.open.arrivals");
}

#[test]
fn values_of_one_character_are_printable_and_are_neither_checked_nor_compressed() {
    let rows: [(&str, Change); 5] = [
        ("data.value_filler", |plan| plan.data.value_filler = Some('\n')),
        ("data.value_filler", |plan| plan.data.value_filler = Some('ä')),
        ("data.value_filler", |plan| plan.data.value_compress = 2.0),
        ("verify", |plan| {
            (plan.verify, plan.data.style.keys, plan.data.first_key) = (0.5, KeyStyle::Drawn, 0)
        }),
        ("nothing", |plan| plan.data.value_filler = Some(' ')),
    ];
    for (number, (path, change)) in rows.into_iter().enumerate() {
        assert_eq!(named(of_memtier(), change), path, "row {number}");
    }
}

#[test]
fn clients_that_draw_the_same_ask_for_no_fresh_keys() {
    assert_eq!(named(of_memtier(), |plan| mix_of(plan).fresh = 0.5), "groups[0].policy.same_draws");
    assert_eq!(named(of_memtier(), |plan| mix_of(plan).absent = 0.5), "nothing");
}

#[test]
fn popularities_that_operations_cannot_have_are_refused() {
    let of = |verb: Verb, text: &str| vec![(verb, text.parse().expect("a popularity"))];
    let (own, whole) = ("phases[0].work.mix.popularity_of", "phases[0].work.mix.popularity");
    let rows = [
        (own, "uniform", of(Verb::Delete, "uniform")),
        (own, "uniform", [of(Verb::Get, "uniform"), of(Verb::Get, "ycsb")].concat()),
        (own, "uniform", of(Verb::Get, "latest:0.99")),
        (own, "latest:0.99", of(Verb::Get, "uniform")),
        (own, "uniform", of(Verb::Get, "normal:10001,1")),
        (own, "uniform", vec![(Verb::Get, Popularity::Normal { median: 1.0, deviation: f64::NAN })]),
        (whole, "normal:10000.5,1", Vec::new()),
        ("nothing", "normal:10000,1", of(Verb::Get, "sequential-each")),
    ];
    for (path, popularity, popularity_of) in rows {
        let mut plan = of_memtier();
        (mix_of(&mut plan).popularity, mix_of(&mut plan).popularity_of) =
            (popularity.parse().expect("a popularity"), popularity_of);
        assert_eq!(named(plan, |_| ()), path, "{popularity}");
    }
}

#[test]
fn what_is_refused_in_another_plan_is_accepted_where_it_can_be_done() {
    assert_eq!(named(sequence(), |plan| sequence_of(plan).sizes = Gap::Rising(1.0)), "nothing");
    let change: Change = |plan| {
        plan.protocol = Protocol::Meta;
        (window_of(plan).pool.datagrams, window_of(plan).keys[0].end) = (false, 186);
    };
    assert_eq!(named(windowed(), change), "nothing");
}

#[test]
fn every_user_that_a_protocol_can_name_is_accepted() {
    for (protocol, name) in [(Protocol::Text, "joe"), (Protocol::Binary, "jo e"), (Protocol::Resp2, "")] {
        let plan = Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), for_a_second());
        let plan = Plan { protocol, login: user(name), ..plan };
        assert_eq!(plan.validate().err(), None, "{name:?}");
    }
}

#[test]
fn a_sentence_says_where_what_and_what_else() {
    let mut plan = mixed();
    plan.groups[0].depth = Depth::Limit(0);
    let invalid = plan.validate().expect_err("no request could be outstanding");
    assert_eq!(invalid.to_string(), "groups[0].depth is '0', but expected a whole number from 1 to 1000000");
}

#[test]
fn a_plan_that_needs_more_memory_than_any_may_is_refused_with_the_number() {
    let of = |clients, depth| {
        let mut plan = Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), for_a_second());
        plan.groups[0] = Group { clients, depth: Depth::Limit(depth), ..Group::default() };
        plan.validate()
    };
    assert!(of(10_000, 16).is_ok());
    let invalid = of(1_000, 1_000_000).expect_err("a depth of a million on each of 1,000 connections");
    assert_eq!((invalid.path.to_string(), invalid.value.as_str()), ("groups[0].depth".to_owned(), "1000000"));
    let words = "this plan needs 256.1 GB of memory in this process, more than the limit of 17.2 GB: fewer \
                 connections or a smaller depth are accepted";
    assert_eq!(invalid.expected, words);
}

#[test]
fn connections_are_refused_where_a_depth_of_1_would_need_too_much_memory_too() {
    let mut plan = mixed();
    plan.groups[0].clients = 1_000_000;
    let invalid =
        plan.validate().expect_err("64 records at a time are stored by each of a million connections");
    assert_eq!(
        (invalid.path.to_string(), invalid.value.as_str()),
        ("groups[0].clients".to_owned(), "1000000")
    );
    assert!(invalid.expected.contains("fewer connections"), "{invalid}");
}

/// Makes the parts of a run that floor 1 has from a plan, as far as they take little memory.
fn build(plan: &ValidPlan) {
    const BYTES: u64 = 1 << 20;
    let group = &plan.groups[0];
    let clients = u64::from(group.clients);
    let place = StreamOwner { seed: plan.seed, group: 0, phase: 0, client: clients - 1 };
    if let Some(rate) = group.rate {
        Pace::new(&group.arrivals, rate, clients).schedule(place).next();
    }
    let churn = group.churn.as_ref();
    if let Some(Spawns::Open { arrivals, rate }) = churn.map(|churn| &churn.spawns) {
        Pace::new(arrivals, *rate, 1).schedule(StreamOwner { client: 0, ..place }).next();
    }
    let _ = plan.templates().expect("the commands were read");
    let router = Router::new(plan.route, &plan.servers).in_blocks(group.policy.block.into());
    assert!(!router.servers_of(clients - 1).is_empty());
    let keys = KeyMaker::new(&plan.data).expect("keys were checked");
    if crate::workload::value::largest(&plan.data.value_size) > BYTES {
        return;
    }
    let values = ValueMaker::reaching(&plan.data, 0).expect("values were checked");
    let sequence = plan.sequence();
    let zeros = sequence.map_or(0, |sequence| largest(sequence.sizes, 1_000)).min(BYTES);
    let values = if sequence.is_some() { values.of_zeros(zeros) } else { values };
    let window = plan.window().filter(|window| u64::from(window.objects) < BYTES).map(WindowMaker::new);
    if let Some(window) = plan.window() {
        assert!(!window.pool.servers_of(clients - 1, plan.servers.len()).is_empty());
    }
    let mut maker = RequestMaker::new(RequestInputs {
        verify: plan.verify,
        router,
        sequencer: sequence.map(|sequence| Sequencer::new(sequence, &plan.data.key_prefix)),
        window,
        ..RequestInputs::new(keys, values, &plan.data, clients, RunMark::new(7))
    });
    for phase in &plan.phases {
        match &phase.work {
            Work::Load(load) => assert!(share::load_records(plan, load) > 0),
            Work::Delete(delete) => {
                assert!(share::delete_records(delete, plan.data.records) <= plan.data.records);
            }
            Work::Mix(_)
            | Work::Window(_)
            | Work::Replay(_)
            | Work::Trace(_)
            | Work::Pause(_)
            | Work::Audit(_) => {}
        }
        if !matches!(phase.work, Work::Replay(_)) {
            maker.begin(&phase.work, plan.seed);
        }
    }
}

/// Every number in a value, as the steps that lead to it.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| numbers(item, &format!("{at}/{n}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, item)| numbers(item, &format!("{at}/{name}"), found));
        }
        _ => {}
    }
}

#[test]
fn a_number_at_its_ends_is_refused_or_the_parts_of_a_run_are_made() {
    let ends: Vec<Value> =
        ["0", "1", "2", "65535", "4294967295", "9223372036854775807", "18446744073709551615"]
            .into_iter()
            .chain(["-1", "1e-300", "0.5", "1e308"])
            .map(|text| serde_json::from_str(text).expect("a number"))
            .collect();
    let (mut refused, mut made) = (0, 0);
    for plan in valid() {
        let whole = serde_json::to_value(&plan).expect("a plan is data");
        let mut places = Vec::new();
        numbers(&whole, "", &mut places);
        assert!(places.len() > 10, "a plan has many numbers: {places:?}");
        for place in places {
            for end in &ends {
                let mut changed = whole.clone();
                *changed.pointer_mut(&place).expect("it was found there") = end.clone();
                match serde_json::from_value::<Plan>(changed).map(Plan::validate) {
                    Ok(Ok(plan)) => {
                        build(&plan);
                        made += 1;
                    }
                    Ok(Err(_)) | Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(made > 100 && refused > 300, "{made} plans were valid, {refused} were refused");
}
