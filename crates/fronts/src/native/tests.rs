//! What each command line means: golden tables from words to Plans, without a server.

use std::io;

use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Adaptive, Changes, ClusterOptions, Command, FailOn, Fill, Goal, KeyChurn, Popularity, RETRY_FOR_NS,
    Retry, RetryKind, Route, SlotRange, Tracking, TransmitSampling,
};
use pummel_logic::protocol::MetaAsk;
use pummel_logic::protocol::resp::reply_shape::ReplyShape;
use pummel_logic::time::{MICROSECOND, MILLISECOND};
use pummel_report::plan_options::OPTIONS;

use super::*;
use crate::outputs::ResultPaths;

fn inputs() -> FrontInputs {
    FrontInputs::without_files(42)
}

fn job_of(line: &str) -> Result<Job, String> {
    job(line.split_whitespace().map(OsString::from), &inputs()).map_err(|error| error.to_string())
}

fn plan_of(line: &str) -> Plan {
    job_of(line).unwrap_or_else(|error| panic!("{line}: {error}")).plan.into_plan()
}

/// What `run -s a` means, written down in full.
fn defaults() -> Plan {
    let mix = Mix {
        ops: vec![(Verb::Get, 9.0), (Verb::Set, 1.0)],
        popularity: Popularity::Uniform,
        popularity_of: Vec::new(),
        multiget: 1,
        read_through_ns: None,
        fill: Fill::default(),
        churn: None,
        fill_delay_s: None,
        noreply: false,
        read_modify_write: 0.0,
        inserts: false,
        scans: false,
        in_turns: false,
        multiset: 1,
        fresh: 0.0,
        absent: 0.0,
        meta: MetaAsk::default(),
    };
    Plan {
        schema: SCHEMA,
        servers: vec!["a:11211".to_string()],
        route: Route::All,
        cluster: ClusterOptions::default(),
        protocol: Protocol::Text,
        transport: Transport::Stream,
        seed: 42,
        interval_ns: SECOND,
        timeout_ns: SECOND,
        reconnect: false,
        retry: None,
        failed_keys: false,
        verify: 0.0,
        goals: vec![],
        engine: Engine {
            threads: 1,
            cpus: vec![],
            backend: Backend::Auto,
            wait: Wait::Auto,
            clock: Clock::Kernel,
            stamps: None,
        },
        socket: Socket {
            nodelay: true,
            linger_s: None,
            send_buffer: None,
            recv_buffer: None,
            source: vec![],
        },
        login: None,
        tls: None,
        database: 0,
        tracking: None,
        commands: Vec::new(),
        load_command: None,
        dataset: None,
        script: None,
        data: Data {
            records: 10_000,
            seed: 0,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
            style: Style::default(),
        },
        allow_partial_load: false,
        evidence: true,
        baseline: true,
        probe: false,
        server_stats_ns: None,
        server_stats_at: Vec::new(),
        adaptive: Adaptive::default(),
        changes: Changes::default(),
        anonymous: false,
        fail_on: Vec::new(),
        labels: Labels::new(),
        groups: vec![Group {
            name: "clients".to_string(),
            clients: 50,
            depth: Depth::Limit(1),
            arrivals: Arrivals::Closed,
            rate: None,
            churn: None,
            policy: ClientPolicy::default(),
        }],
        phases: vec![
            Phase {
                name: "load".to_string(),
                work: Work::Load(Load { depth: 64, ..Load::default() }),
                stop: Stop::default(),
                recorded: false,
            },
            Phase {
                name: "measure".to_string(),
                work: Work::Mix(mix),
                stop: Stop { time_ns: Some(10 * SECOND), requests: None },
                recorded: true,
            },
        ],
    }
}

#[test]
fn a_plan_of_which_nothing_is_said_is_that_of_a_run_without_options() {
    let run = defaults();
    let (servers, groups, phases) = (run.servers.clone(), run.groups.clone(), run.phases.clone());
    // A baseline is part of a run, and of no plan that is put together from parts.
    assert_eq!(Plan { servers, groups, phases, seed: run.seed, baseline: true, ..Plan::default() }, run);
    assert_eq!(vec![Group { clients: 50, ..Group::default() }], run.groups);
    let measured = run.phases.last().map(|phase| &phase.work);
    assert_eq!(measured, Some(&Work::Mix(Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]))));
}

/// Options of a run that decide fields by the rows of other options.
const BESIDE: [&str; 11] = [
    "--batch",
    "--cluster",
    "--hit-ratio",
    "--load",
    "--max-time",
    "--measure-connections",
    "--measure-depth",
    "--measure-rate",
    "--no-cluster",
    "--no-load",
    "--trace-warmup",
];

#[test]
fn every_option_of_a_plan_has_a_row_and_every_row_an_option() {
    let flags_of = |command: &clap::Command| -> BTreeSet<String> {
        command.get_arguments().filter_map(|option| Some(format!("--{}", option.get_long()?))).collect()
    };
    let rows: BTreeSet<&str> = OPTIONS.iter().map(|row| row.flag).filter(|flag| !flag.is_empty()).collect();
    let run = flags_of(&RunArgs::augment_args(clap::Command::new("run")));
    let of_no_option: Vec<&&str> = rows.iter().filter(|flag| !run.contains(**flag)).collect();
    assert!(of_no_option.is_empty(), "{of_no_option:?}");
    let of_plans = flags_of(&plan_options());
    let without: Vec<&str> =
        of_plans.iter().map(String::as_str).filter(|flag| !rows.contains(flag)).collect();
    let beside =
        BESIDE.into_iter().filter(|flag| cfg!(feature = "agents") || !flag.starts_with("--measure-"));
    assert_eq!(without, beside.collect::<Vec<&str>>());
}

#[test]
fn the_default_of_a_row_is_that_of_a_plan_of_which_nothing_is_said() {
    for row in OPTIONS.iter().filter(|row| !row.flag.is_empty() && !row.default.is_empty()) {
        let others = match row.flag {
            "--fill" => "--read-through",
            "--min-time" => "--until p99:2%",
            "--settle" => "--verify --audit",
            "--retry-for" => "--retry all",
            _ => "",
        };
        let given = plan_of(&format!("run -s a {others} {} {}", row.flag, row.default));
        assert_eq!(given, plan_of(&format!("run -s a {others}")), "{}", row.flag);
    }
}

/// The mix of the phase that measures, which is the last.
fn mix(plan: &mut Plan) -> &mut Mix {
    match plan.phases.last_mut().map(|phase| &mut phase.work) {
        Some(Work::Mix(mix)) => mix,
        _ => panic!("the last phase asks a mix"),
    }
}

fn stop(plan: &mut Plan) -> &mut Stop {
    &mut plan.phases.last_mut().expect("a phase").stop
}

fn load_of(plan: &mut Plan) -> &mut Load {
    match &mut plan.phases[0].work {
        Work::Load(load) => load,
        _ => panic!("the first phase loads"),
    }
}

fn over_resp(plan: &mut Plan, protocol: Protocol) {
    plan.protocol = protocol;
    plan.servers = vec!["a:6379".to_string()];
}

/// The options behind `run -s a`, and what they change of what it means.
type Row = (&'static str, fn(&mut Plan));

#[test]
fn every_option_of_pace_means_one_change_of_the_plan() {
    let rows: &[Row] = &[
        ("", |_| {}),
        ("-t 5s", |plan| stop(plan).time_ns = Some(5 * SECOND)),
        ("--time 0.5", |plan| stop(plan).time_ns = Some(500 * MILLISECOND)),
        ("-n 1M", |plan| *stop(plan) = Stop { time_ns: None, requests: Some(1_000_000) }),
        ("--requests 10 -t 2m", |plan| {
            *stop(plan) = Stop { time_ns: Some(120 * SECOND), requests: Some(10) };
        }),
        ("--warmup 2s", |plan| {
            let mut warmup = plan.phases[1].clone();
            warmup.name = "warmup".to_string();
            warmup.stop = Stop { time_ns: Some(2 * SECOND), requests: None };
            warmup.recorded = false;
            plan.phases.insert(1, warmup);
        }),
        ("-T 4", |plan| plan.engine.threads = 4),
        ("-c 10k --threads 2", |plan| {
            plan.engine.threads = 2;
            plan.groups[0].clients = 10_000;
        }),
        ("-d 16", |plan| plan.groups[0].depth = Depth::Limit(16)),
        ("--batch 16", |plan| plan.groups[0].depth = Depth::Batch(16)),
        ("--rate 20k", |plan| {
            plan.groups[0].rate = Some(20_000.0);
            plan.groups[0].arrivals = Arrivals::Poisson;
        }),
        ("--rate 0.5 --arrivals constant --depth unlimited", |plan| {
            plan.groups[0].rate = Some(0.5);
            plan.groups[0].arrivals = Arrivals::Constant;
            plan.groups[0].depth = Depth::Unlimited;
        }),
        ("--rate 1k --arrivals poisson", |plan| {
            plan.groups[0].rate = Some(1_000.0);
            plan.groups[0].arrivals = Arrivals::Poisson;
        }),
        ("--rate 1k --arrivals uniform", |plan| {
            plan.groups[0].rate = Some(1_000.0);
            plan.groups[0].arrivals = Arrivals::Shape(Dist::Uniform { low: 0.0, high: 2.0 });
        }),
        ("--rate 1k --arrivals etc-arrival", |plan| {
            plan.groups[0].rate = Some(1_000.0);
            plan.groups[0].arrivals = Arrivals::Shape(Dist::EtcArrival);
        }),
        ("--seed 7", |plan| plan.seed = 7),
        ("--interval 100ms", |plan| plan.interval_ns = 100 * MILLISECOND),
        ("--goal p99:1ms --goal p50:50us,p99.9:1s", |plan| {
            plan.goals = vec![
                Goal { quantile: 0.99, limit_ns: MILLISECOND },
                Goal { quantile: 0.5, limit_ns: 50 * MICROSECOND },
                Goal { quantile: 0.999, limit_ns: SECOND },
            ];
        }),
    ];
    check_rows(rows);
}

#[test]
fn every_option_of_requests_and_records_means_one_change_of_the_plan() {
    let rows: &[Row] = &[
        ("--mix get:1,touch:0.5", |plan| {
            mix(plan).ops = vec![(Verb::Get, 1.0), (Verb::Touch, 0.5)];
        }),
        ("--mix append:1,decr:2", |plan| {
            mix(plan).ops = vec![(Verb::Append, 1.0), (Verb::Decr, 2.0)];
            *load_of(plan) = Load { depth: 64, pieces: true, counters: true, ..Load::default() };
        }),
        ("--popularity zipf:0.99", |plan| mix(plan).popularity = Popularity::Zipf { exponent: 0.99 }),
        ("--popularity hot:0.1,0.9", |plan| {
            mix(plan).popularity = Popularity::Hot { keys: 0.1, requests: 0.9 };
        }),
        ("--popularity sequential", |plan| mix(plan).popularity = Popularity::Sequential),
        ("--multiget 24", |plan| mix(plan).multiget = 24),
        ("--read-through", |plan| mix(plan).read_through_ns = Some(0)),
        ("--hit-ratio 0.75", |plan| mix(plan).absent = 0.25),
        ("--hit-ratio 0.75 --read-through", |plan| {
            mix(plan).fresh = 0.25;
            mix(plan).read_through_ns = Some(0);
        }),
        ("--hit-ratio 1", |_| {}),
        ("--read-through --fill add", |plan| {
            mix(plan).read_through_ns = Some(0);
            mix(plan).fill = Fill::Add;
        }),
        ("--read-through=exponential:5ms", |plan| {
            mix(plan).read_through_ns = Some(5 * MILLISECOND);
            mix(plan).fill_delay_s = Some(Dist::Exponential { mean: 0.005 });
        }),
        ("--read-through=5ms", |plan| mix(plan).read_through_ns = Some(5 * MILLISECOND)),
        ("--noreply", |plan| mix(plan).noreply = true),
        ("--protocol resp3 --mix hget:9,hset:1", |plan| {
            over_resp(plan, Protocol::Resp3);
            mix(plan).ops = vec![(Verb::Hget, 9.0), (Verb::Hset, 1.0)];
            *load_of(plan) = Load { depth: 64, hashes: true, no_plain: true, ..Load::default() };
        }),
        ("--protocol resp2 --mix get:1,hset:1,mset:1 --multiset 20", |plan| {
            over_resp(plan, Protocol::Resp2);
            mix(plan).ops = vec![(Verb::Get, 1.0), (Verb::Hset, 1.0), (Verb::Mset, 1.0)];
            mix(plan).multiset = 20;
            *load_of(plan) = Load { depth: 64, hashes: true, ..Load::default() };
        }),
        ("--protocol resp3 --command PING", |plan| {
            over_resp(plan, Protocol::Resp3);
            plan.commands = vec![Command::unnamed("PING")];
            mix(plan).ops = vec![(Verb::Command, 1.0)];
            plan.phases.remove(0);
        }),
        ("--protocol resp3 --command PING --command-expect ping=ok", |plan| {
            over_resp(plan, Protocol::Resp3);
            plan.commands = vec![Command { expect: Some(ReplyShape::Ok), ..Command::unnamed("PING") }];
            mix(plan).ops = vec![(Verb::Command, 1.0)];
            plan.phases.remove(0);
        }),
        ("--protocol resp3 --command PING --load", |plan| {
            over_resp(plan, Protocol::Resp3);
            plan.commands = vec![Command::unnamed("PING")];
            mix(plan).ops = vec![(Verb::Command, 1.0)];
            *load_of(plan) = Load { depth: 64, commands: true, no_plain: true, ..Load::default() };
        }),
        ("--protocol resp3 --command PING --mix get:1,command:2", |plan| {
            over_resp(plan, Protocol::Resp3);
            plan.commands = vec![Command::unnamed("PING")];
            mix(plan).ops = vec![(Verb::Get, 1.0), (Verb::Command, 2.0)];
        }),
        ("--protocol meta --vivify 30 --recache 1m --meta-details", |plan| {
            plan.protocol = Protocol::Meta;
            mix(plan).meta =
                MetaAsk { vivify_s: Some(30), recache_s: Some(60), details: true, ..MetaAsk::default() };
        }),
        ("--protocol meta --mix delete:1 --stale 0", |plan| {
            plan.protocol = Protocol::Meta;
            mix(plan).ops = vec![(Verb::Delete, 1.0)];
            mix(plan).meta = MetaAsk { stale_s: Some(0), ..MetaAsk::default() };
        }),
        ("--retry oom,loading", |plan| {
            let kinds = vec![RetryKind::Loading, RetryKind::Oom];
            plan.retry = Some(Retry { kinds, for_ns: RETRY_FOR_NS });
        }),
        ("--retry timeout --retry-for 90s", |plan| {
            plan.retry = Some(Retry { kinds: vec![RetryKind::Timeout], for_ns: 90 * SECOND });
        }),
        ("--retry oom,all --failed-keys f.csv", |plan| {
            plan.retry = Some(Retry { kinds: RetryKind::asked_for().collect(), for_ns: RETRY_FOR_NS });
            (plan.reconnect, plan.failed_keys) = (true, true);
        }),
        ("--verify", |plan| plan.verify = 1.0),
        ("--verify 0.25", |plan| plan.verify = 0.25),
        ("--verify --audit", |plan| add_audit(plan, 5 * SECOND)),
        ("--verify --audit --settle 0", |plan| add_audit(plan, 0)),
        ("--verify --audit=strict --settle 1m --fail-on errors", |plan| {
            add_audit(plan, 60 * SECOND);
            plan.fail_on = vec![FailOn::Errors, FailOn::Lost];
        }),
        ("--verify --noreply", |plan| {
            plan.verify = 1.0;
            mix(plan).noreply = true;
        }),
        ("--load", |_| {}),
        ("--no-load", |plan| drop(plan.phases.remove(0))),
        ("--no-load --load", |_| {}),
        ("--records 1m", |plan| plan.data.records = 1_000_000),
        ("--key-size uniform:20,40", |plan| {
            plan.data.key_size = Dist::Uniform { low: 20.0, high: 40.0 };
        }),
        ("--value-size 4KiB", |plan| plan.data.value_size = Dist::Fixed(4_096.0)),
        ("--value-size etc-value", |plan| plan.data.value_size = Dist::EtcValue),
        ("--value-compress 2.5", |plan| plan.data.value_compress = 2.5),
        ("--value-compress 1", |_| {}),
        ("--key-tag 1k", |plan| plan.data.key_tag = Some(1_000)),
        ("--route crc16 --slots 0-5460,9000 --slots 10000-10001", |plan| {
            plan.route = Route::Crc16;
            let ranges = [(0, 5_460), (9_000, 9_000), (10_000, 10_001)];
            plan.data.slots = ranges.map(|(first, last)| SlotRange { first, last }).to_vec();
        }),
        ("--key-prefix user:", |plan| plan.data.key_prefix = "user:".to_string()),
        ("--ttl 1h", |plan| plan.data.expiry_s = Dist::Fixed(3_600.0)),
        ("--ttl 1h --ttl-jitter 10%", |plan| {
            plan.data.expiry_s = Dist::Fixed(3_600.0);
            plan.data.style.expiry_jitter_percent = 10;
        }),
        ("--churn share:0.01", |plan| mix(plan).churn = Some(KeyChurn::Share(0.01))),
        ("--churn none", |_| {}),
        ("--data-seed 9", |plan| plan.data.seed = 9),
    ];
    check_rows(rows);
}

#[test]
fn a_load_command_stores_what_commands_read() {
    let job =
        |words: &str| job(words.split('|').map(OsString::from), &inputs()).map_err(|error| error.to_string());
    let load = |words: &str| {
        let plan = job(words).expect("it is accepted").plan;
        let Work::Load(load) = &plan.phases[0].work else { panic!("the first phase loads") };
        (plan.load_command.clone().map(|own| (own.template, own.per_record)), load.commands, load.no_plain)
    };
    let push = |times| Some(("RPUSH __key__ x".to_owned(), times));
    let run = "run|-s|a|--protocol|resp2|--command|LRANGE __key__ 0 9|--load-command|RPUSH __key__ x";
    assert_eq!(load(run), (push(1), true, true));
    assert_eq!(load(&format!("{run}|--load-per-record|3|--mix|lrange:1,get:1")), (push(3), true, false));
    let alone = "load|-s|a|--protocol|resp2|--load-command|RPUSH __key__ x";
    assert_eq!(load(alone), (push(1), true, true));
    assert_eq!(load(&format!("{alone}|--mix|get")), (push(1), true, false));
    let of = |command: &str| run.replace("RPUSH __key__ x", command);
    for (words, said) in [
        (format!("{run}|--no-load"), "--no-load"),
        (format!("{run}|--load-per-record|0"), "from 1 to 10000"),
        (format!("{run}|--audit|--verify|--mix|get:1,lrange:1"), "no counters"),
        ("run|-s|a|--load-per-record|2".to_owned(), "--load-command"),
        (format!("{run}|--mix|lrange:1,load:1|--command|load=PING"), "another name"),
        (run.replace("|--command|LRANGE __key__ 0 9", ""), "only where --command"),
        (run.replace("resp2", "text"), "--protocol resp2"),
        (of("LRANGE __key__ 0 9"), "stores whatever"),
        (of("LPUSHX __key__ x"), "stores whatever"),
        (of("SET __key__ x NX"), "stores whatever"),
        (of("RPUSH list x"), "one record"),
        (of("MSET __key__ x __key2__ x"), "one record"),
        (of("RPUSH __key__"), "RPUSH has at least 3 words"),
    ] {
        let error = job(&words).map(|_| ()).expect_err(&words);
        assert!(error.contains(said), "{words}: {error}");
    }
}

#[test]
fn every_option_of_engine_sockets_and_server_means_one_change_of_the_plan() {
    let rows: &[Row] = &[
        ("-s b:1,/run/c -s [::1]", |plan| {
            let more = ["b:1", "/run/c", "[::1]:11211"];
            plan.servers.extend(more.map(str::to_string));
        }),
        ("--protocol text", |_| {}),
        ("--route all", |_| {}),
        ("--route roundrobin", |plan| plan.route = Route::RoundRobin),
        ("--route modulo", |plan| plan.route = Route::Modulo),
        ("--route ketama", |plan| plan.route = Route::Ketama),
        ("--route ketama-weighted", |plan| plan.route = Route::KetamaWeighted),
        ("--route crc16", |plan| plan.route = Route::Crc16),
        ("--protocol resp3 --tracking=bcast", |plan| {
            over_resp(plan, Protocol::Resp3);
            plan.tracking = Some(Tracking::Broadcast);
        }),
        ("--tracking", |plan| {
            over_resp(plan, Protocol::Resp3);
            plan.tracking = Some(Tracking::Keys);
        }),
        ("--protocol resp2 --database 3", |plan| {
            over_resp(plan, Protocol::Resp2);
            plan.database = 3;
        }),
        ("-s b:1,[::1] --protocol resp3", |plan| {
            plan.protocol = Protocol::Resp3;
            plan.servers = ["a:6379", "b:1", "[::1]:6379"].map(str::to_string).to_vec();
        }),
        ("--timeout 200ms", |plan| plan.timeout_ns = 200 * MILLISECOND),
        ("--reconnect", |plan| plan.reconnect = true),
        ("--backend epoll", |plan| plan.engine.backend = Backend::Epoll),
        ("--backend auto", |_| {}),
        ("--backend uring", |plan| plan.engine.backend = Backend::Uring),
        ("--wait spin", |plan| plan.engine.wait = Wait::Spin),
        ("--wait block", |plan| plan.engine.wait = Wait::Block),
        ("--anonymous", |plan| plan.anonymous = true),
        ("--server-stats-at b,c:1 --server-stats-at /d", |plan| {
            plan.server_stats_at = ["b:11211", "c:1", "/d"].map(str::to_string).to_vec();
        }),
        ("--stamps nic:8", |plan| {
            let sampling = TransmitSampling { every: 8, scheduled: false, hardware: true };
            plan.engine.stamps = Some(sampling);
        }),
        ("--fail-on untrusted,limited --fail-on limited", |plan| {
            plan.fail_on = vec![FailOn::Limited, FailOn::Untrusted];
        }),
        ("--label branch=main --label build=a=b", |plan| {
            let labels = [("branch", "main"), ("build", "a=b")];
            plan.labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        }),
        ("--clock user", |plan| plan.engine.clock = Clock::User),
        ("--cpus 0,2-3", |plan| plan.engine.cpus = vec![0, 2, 3]),
        ("--source 10.0.0.1,::1", |plan| {
            plan.socket.source = vec!["10.0.0.1".to_string(), "::1".to_string()];
        }),
        ("--no-nodelay", |plan| plan.socket.nodelay = false),
        ("--linger 0", |plan| plan.socket.linger_s = Some(0)),
        ("--send-buffer 64KiB", |plan| plan.socket.send_buffer = Some(65_536)),
        ("--recv-buffer 1m", |plan| plan.socket.recv_buffer = Some(1_000_000)),
        ("--tls", |plan| plan.tls = Some(TlsOptions::default())),
        ("--tls --tls-insecure", |plan| {
            plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
        }),
        ("--tls --tls-ca ca --tls-cert cert --tls-key key --tls-server-name name", |plan| {
            plan.tls = Some(TlsOptions {
                ca: Some("ca".to_string()),
                cert: Some("cert".to_string()),
                key: Some("key".to_string()),
                server_name: Some("name".to_string()),
                insecure: false,
            });
        }),
    ];
    check_rows(rows);
}

/// Adds checks of values, and the phases in which 10,000 records are read back.
fn add_audit(plan: &mut Plan, settle_ns: Nanos) {
    plan.verify = 1.0;
    let mut add = |name: &str, work, stop| {
        plan.phases.push(Phase { name: name.to_owned(), work, stop, recorded: false });
    };
    if settle_ns > 0 {
        add("settle", Work::Pause(Pause { until_ns: 0, for_ns: settle_ns }), Stop::default());
    }
    let stop = Stop { time_ns: Some(61 * SECOND), requests: None };
    add("audit", Work::Audit(Audit { depth: 16 }), stop);
}

#[test]
fn an_audit_is_refused_where_it_could_not_tell_what_was_lost() {
    for (words, part) in [
        ("--audit", "'--audit' is not accepted: expected checks of values (--verify)"),
        (
            "--verify --audit --ttl 9",
            "'--audit' is not accepted: expected records that do not expire (--ttl 0)",
        ),
        (
            "--verify --audit=strict --mix get:1,delete:1",
            "invalid value 'strict' for '--audit': expected operations",
        ),
        ("--verify --audit --noreply", "expected writes that are answered"),
        ("--verify --settle 9", "'--settle' is accepted only with '--audit', which is missing"),
        #[cfg(feature = "agents")]
        ("--verify --audit --agents x", "'--audit' is accepted without '--agents' only"),
    ] {
        let error = job_of(&format!("run -s a {words}")).expect_err(words).to_string();
        assert!(error.contains(part), "{words}: {error}");
    }
}

fn check_rows(rows: &[Row]) {
    for (options, change) in rows {
        let mut expected = defaults();
        change(&mut expected);
        assert_eq!(plan_of(&format!("run -s a {options}")), expected, "{options}");
    }
}

#[test]
fn outputs_are_kept_apart_from_the_plan() {
    let job = job_of("run -s a --json r.json --csv r.csv --hdr r.hdr --samples r.txt --quiet").expect("good");
    assert_eq!(*job.plan, defaults());
    let mut files = ResultPaths::default();
    for (name, path) in [("json", "r.json"), ("csv", "r.csv"), ("hdr", "r.hdr"), ("samples", "r.txt")] {
        files.set(name, path);
    }
    assert_eq!(job.outputs, Outputs { format: ReportFormat::Text, quiet: true, files, ..Outputs::default() });
    let job = job_of("run -s a --json -").expect("good");
    assert_eq!(job.outputs, Outputs { format: ReportFormat::Json, block: true, ..Outputs::default() });
}

#[test]
fn a_label_has_a_name_that_metrics_can_have_and_stands_once() {
    for (words, part) in [
        ("--label branch", "expected NAME=VALUE"),
        ("--label 1a=b", "no digit first"),
        ("--fail-on late", "expected limited, untrusted, errors, unsteady, overloaded"),
        ("--label a=1 --label a=2", "invalid value 'a=2' for '--label': each name is accepted once"),
    ] {
        let error = job_of(&format!("run -s a {words}")).expect_err(words).to_string();
        assert!(error.contains(part), "{error}");
    }
    let many: String = (0..33).map(|n| format!(" --label n{n}=x")).collect();
    let error = job_of(&format!("run -s a{many}")).expect_err("too many").to_string();
    assert!(error.contains("expected up to 32 labels"), "{error}");
}

#[test]
fn a_share_of_hits_is_asked_for_alone_and_of_records_that_live() {
    for (words, part) in [
        ("--hit-ratio 0.5 --absent 0.1", "'0.1' for '--absent': it is accepted without --hit-ratio only"),
        ("--hit-ratio 0.5 --fresh 0.1 --read-through", "'0.1' for '--fresh'"),
        (
            "--hit-ratio 0.5 --ttl 5",
            "'5' for '--ttl': with --hit-ratio, expected 0 or a time at least as long as the run",
        ),
        ("--hit-ratio 0.5 --ttl 1h -n 5", "'1h' for '--ttl'"),
        ("--hit-ratio 1.5", "'1.5' for '--hit-ratio"),
        (
            "--hit-ratio 0.9 --mix set:1",
            "'0.9' for '--hit-ratio': it is accepted only with a read (get, gets, gat, gats) in --mix",
        ),
        (
            "--hit-ratio 0.9 --protocol meta --vivify 5",
            "'0.9' for '--hit-ratio': it is not accepted with --vivify",
        ),
        ("--fill add", "'add' for '--fill': it is accepted only where missed keys are stored"),
        ("--fill cas --read-through", "expected set or add"),
        (
            "--read-through=exponential:2h",
            "'exponential:2h' for '--read-through': expected a time from 0 to 1h",
        ),
        ("--read-through=normal:1,1", "'--read-through'"),
    ] {
        let error = job_of(&format!("run -s a {words}")).expect_err(words).to_string();
        assert!(error.contains(part), "{words}: {error}");
    }
    assert!(job_of("run -s a --hit-ratio 0.5 --ttl 1h -t 30m").is_ok());
}

#[test]
fn tags_and_slots_that_keys_cannot_have_are_refused_with_the_reason() {
    for (words, part) in [
        ("--key-tag 0", "'0' for '--key-tag': expected a whole number from 1 to 1000000"),
        ("--key-tag 1000001", "'1000001' for '--key-tag': expected a whole number from 1 to 1000000"),
        (
            "--key-tag 10 --key-size 8",
            "'8' for '--key-size': expected sizes of at least 11 bytes: 0 of the prefix, 6 of the tag",
        ),
        (
            "--key-tag 10 --key-prefix a{b",
            "expected a prefix without '{' (--key-prefix) with it, and not 'a{b'",
        ),
        (
            "--key-tag 10 --trace t",
            "'10' for '--key-tag': expected keys that are made from the numbers of records",
        ),
        ("--slots 1-2", "'1-2' for '--slots': it is accepted only with --cluster and with --route crc16"),
        (
            "--route crc16 --slots 2-1",
            "'2-1' for '--slots': expected the first and the last of slots from 0 to 16383",
        ),
        ("--route crc16 --slots 0-16384", "'0-16384' for '--slots': expected the first"),
        ("--route crc16 --slots 1-5,3", "'1-5,3' for '--slots': each slot is accepted once"),
        ("--route crc16 --slots 1;2", "'1;2' for '--slots <RANGES>': expected ranges of slots"),
        ("--route crc16 --slots 1 --key-prefix {a}", "'1' for '--slots': expected a prefix without '{'"),
        ("--route crc16 --slots 1 --fresh 0.1", "'1' for '--slots': expected records alone with it"),
        ("--route crc16 --slots 1 --hit-ratio 0.9", "'1' for '--slots': expected records alone with it"),
        ("--route crc16 --slots 1 --churn requests:100", "'1' for '--slots': expected records alone with it"),
        ("--route crc16 --slots 1 --mix add:1 --insert", "'1' for '--slots': expected records alone with it"),
        (
            "--route crc16 --slots 1 --records 1m",
            "'1m' for '--records': expected fewer records in more slots",
        ),
        ("--route crc16 --slots 0-99 --key-size 7", "8 for the numbers of 10000 records in their slots"),
        (
            "--route crc16 --slots 0-16383 --records 1g --key-tag 1",
            "fewer records in chosen slots (--slots) are accepted",
        ),
        (
            "--route crc16 --key-tag 4 --multiget 5",
            "'4' for '--key-tag': expected at least 5, as many as a request has keys",
        ),
        ("--route crc16 --key-tag 9 --multiget 5 --absent 0.1", "expected no fresh and no absent keys"),
        (
            "--route crc16 --key-tag 9 --multiget 5 --mix get:1,incr:1",
            "expected no append, prepend, incr and decr",
        ),
        (
            "--route crc16 --key-tag 9 --multiget 5 --churn requests:100",
            "expected records that keep their keys",
        ),
        (
            "--route crc16 --key-tag 100 --scan-as multiget --workload ycsb-e",
            "expected requests that scan nothing",
        ),
    ] {
        let error = job_of(&format!("run -s a {words}")).expect_err(words).to_string();
        assert!(error.contains(part), "{words}: {error}");
    }
    for words in [
        "--key-tag 4 --multiget 5",
        "--key-tag 9 --hit-ratio 0.9 --churn requests:100",
        "--route crc16 --key-tag 9 --churn requests:100",
        "--route crc16 --key-tag 9 --multiget 9 --slots 16383",
        "--route crc16 --slots 0-99 --popularity zipf:1 --verify 1 --read-through",
    ] {
        assert!(job_of(&format!("run -s a {words}")).is_ok(), "{words}");
    }
}

#[test]
fn a_trace_may_be_said_to_need_no_load_which_holds_anyway() {
    let plan = |words: &str| job_of(&format!("run -s a --trace t{words}")).expect("a trace").plan;
    assert_eq!(plan(" --no-load"), plan(""));
}

#[test]
fn an_error_names_the_option_that_was_given_and_not_another_that_decides_the_same() {
    for (words, part) in [
        ("-t 1us", "'1us' for '--time': expected a time from 1ms to 8760h"),
        ("--warmup 1us", "'1us' for '--warmup'"),
        (
            "--stage 0s:5 --rate 5",
            "'0s:5' for '--stage': expected a time from 1ms to 8760h for all of them together",
        ),
        ("--stage 9000h --rate 5", "'9000h' for '--stage'"),
        ("--until p99:2% --max-time 1us --min-time 1us", "'1us' for '--max-time': expected a time from 1ms"),
        (
            "--until p99:2% --min-time 20m",
            "'20m' for '--min-time': expected a least time (--min-time, 1200s) that is not above the longest \
             (--max-time, 600s)",
        ),
        (
            "--until p99:2% --max-time 2s",
            "'2s' for '--max-time': expected a least time (--min-time, 5s) that is not above the longest (--max-time, 2s)",
        ),
        ("--until p99:2% --min-time 9s --max-time 8s", "'9s' for '--min-time'"),
        ("--mix set:1 --absent 0.5", "'0.5' for '--absent'"),
        (
            "--trace t --trace-amplify 0",
            "'0' for '--trace-amplify': expected 1 to 1000 requests for each row",
        ),
        (
            "--trace t --trace-map get",
            "expected an operation of the trace and the one that is sent, such as get=set",
        ),
        ("--trace t --trace-map get=sett", "'sett' is no operation of a trace"),
        ("--trace t --trace-map get=gat", "'gat' is no operation of a trace"),
        (
            "--trace t --trace-map get=set,get=gets",
            "'get=gets' for '--trace-map': expected each operation of the trace once",
        ),
        (
            "--trace t --trace-map get=cas --protocol resp2",
            "'get=cas' for '--trace-map': expected an operation that resp2 has",
        ),
        ("--trace t --trace-amplify 2000", "'2000' for '--trace-amplify'"),
        ("--trace t --trace-sample 0", "'0' for '--trace-sample': expected a share above 0 and at most 1"),
        ("--trace t --trace-from 5 --trace-to 3", "'3' for '--trace-to': expected a time above 5s"),
        ("--trace t --loop=0", "'--loop' is not accepted: endless passes"),
        ("--trace t --max-value 200m", "'200m' for '--max-value': expected at most 128 MiB"),
        ("--trace t --trace-warmup 1us", "'1us' for '--trace-warmup': expected a time from 1ms to 8760h"),
        (
            "--trace t --trace-warmup 5s --pace fast",
            "'5s' for '--trace-warmup': expected a warm-up of so many rows",
        ),
        (
            "--trace t --route modulo",
            "'modulo' for '--route': expected all or cluster where a trace is replayed",
        ),
    ] {
        let error = job_of(&format!("run -s a {words}")).expect_err(words);
        assert!(error.contains(part), "{words}: {error}");
    }
}

#[cfg(feature = "agents")]
#[test]
fn what_is_wrong_with_the_clients_that_measure_is_told_by_their_own_options() {
    for (words, part) in [
        ("-c 300 --measure-connections 0", "'0' for '--measure-connections': expected a whole number from 1"),
        ("-d 16 --measure-depth 0 --measure-connections 5", "'0' for '--measure-depth'"),
        ("--rate 20k --measure-rate 0.0000001 --measure-connections 5", "'0.0000001' for '--measure-rate'"),
        ("-c 0 --measure-connections 5", "'0' for '--connections'"),
        ("--measure-connections 5 --measure-rate abc", "above 0 and up to 1g, such as 500, 20k or 1.5m\n"),
        ("-d 0 --measure-depth 2 --measure-connections 5", "'0' for '--depth'"),
    ] {
        let error = job_of(&format!("run -s a --agents x {words}")).expect_err(words);
        assert!(error.contains(part), "{words}: {error}");
    }
}

#[test]
fn labels_of_the_command_line_take_the_place_of_those_of_a_saved_plan() {
    let saved = |_: &str| {
        let mut plan = defaults();
        plan.labels.insert("old".to_owned(), "1".to_owned());
        Ok(saved::print(&plan, crate::outputs::Format::Json))
    };
    let labels = |line: &str| job_beside(line, saved).expect("a plan").plan.into_plan().labels;
    assert_eq!(labels("run --plan p.json").keys().collect::<Vec<_>>(), ["old"]);
    assert_eq!(labels("run --plan p.json --label new=2").keys().collect::<Vec<_>>(), ["new"]);
}

#[test]
fn loading_is_one_recorded_phase() {
    let plan = plan_of("load -s a --records 5 --mix incr -c 4 -d 8 -T 2");
    let load = Load { depth: 8, counters: true, ..Load::default() };
    let phase =
        Phase { name: "load".to_string(), work: Work::Load(load), stop: Stop::default(), recorded: true };
    assert_eq!(plan.phases, [phase]);
    assert_eq!((plan.groups[0].clients, plan.groups[0].depth), (4, Depth::Limit(8)));
    assert_eq!((plan.engine.threads, plan.data.records), (2, 5));
}

#[test]
fn servers_come_from_the_environment_only_where_none_are_typed() {
    let inputs = FrontInputs { servers: Some("x,y:1".to_string()), ..FrontInputs::without_files(0) };
    let servers = |line: &str| {
        job(line.split(' ').map(OsString::from), &inputs)
            .map(|job| job.plan.into_plan().servers)
            .expect("good")
    };
    assert_eq!(servers("run -t 1"), ["x:11211", "y:1"]);
    assert_eq!(servers("run -s z"), ["z:11211"]);
    assert_eq!(servers("run -t 1 --protocol resp2"), ["x:6379", "y:1"]);
    let wrong = FrontInputs { servers: Some("x:y".to_string()), ..FrontInputs::without_files(0) };
    let error = job(["run".into()], &wrong).expect_err("y is no port").to_string();
    assert!(error.contains("'x:y' for 'MEMCACHED_SERVERS'"), "{error}");
}

#[test]
fn a_part_of_the_load_is_allowed_only_where_records_are_stored() {
    assert!(plan_of("run -s a --allow-partial-load").allow_partial_load);
    assert!(plan_of("load -s a --allow-partial-load").allow_partial_load);
    let error = job_of("run -s a --no-load --allow-partial-load").expect_err("nothing is stored").to_string();
    let words = "'--allow-partial-load' is accepted only with a load of records";
    assert!(error.contains(words), "{error}");
}

#[test]
fn the_parser_is_sound() {
    use clap::CommandFactory;
    Line::command().debug_assert();
}

/// What a command line means where every file has this text, or cannot be read.
fn job_beside(line: &str, read_text: fn(&str) -> io::Result<String>) -> Result<Job, String> {
    let inputs = FrontInputs { read_text, ..FrontInputs::without_files(42) };
    job(line.split_whitespace().map(OsString::from), &inputs).map_err(|error| error.to_string())
}

#[test]
fn files_that_cannot_be_read_are_refused_with_the_option_its_value_and_the_reason() {
    for (option, accepted) in [
        ("--key-size <DIST>", ""),
        ("--value-size <DIST>", ""),
        ("--ttl <DIST>", ""),
        ("--arrivals <ARRIVALS>", "expected poisson"),
        ("--plan <FILE>", "expected a plan saved by `pummel explain`"),
    ] {
        let flag = id_of(option.split(' ').next().expect("a flag")).replace('_', "-");
        let (value, rest) = if flag == "plan" { ("/none", "") } else { ("file:/none", " -s a --rate 1k") };
        let read_text = |path: &str| {
            assert_eq!(path, "/none");
            Err(io::Error::other("the disk is gone"))
        };
        let error = job_beside(&format!("run --{flag} {value}{rest}"), read_text).expect_err(option);
        let begin = format!("error: invalid value '{value}' for '{option}': {accepted}");
        assert!(error.starts_with(&begin) && error.contains("the disk is gone"), "{error}");
    }
}

#[test]
fn values_in_files_are_those_that_the_reader_returns() {
    let numbers = |_: &str| Ok("20\n30\n".to_owned());
    let line = "run -s a --rate 1k --value-size file:/sizes --ttl file:/times --arrivals file:/gaps";
    let plan = job_beside(line, numbers).expect("all are numbers").plan.into_plan();
    let read = |path: &str| Dist::from_lines(path, "20\n30\n").expect("two numbers");
    assert_eq!((plan.data.value_size, plan.data.expiry_s), (read("/sizes"), read("/times")));
    assert_eq!(plan.groups[0].arrivals, Arrivals::Shape(read("/gaps")));
    let no_number = job_beside(line, |_| Ok("20\nx\n".to_owned())).expect_err("x is no number");
    assert!(no_number.contains("'--value-size <DIST>'") && no_number.contains("line 2"), "{no_number}");
}

#[test]
fn options_with_their_files_read_need_no_file_any_more() {
    let line = "pummel run -s a --rate 1k --value-size file:/sizes --arrivals file:/gaps";
    let Ok(Line::Run(typed)) = Line::try_parse_from(line.split_whitespace()) else { panic!("a run") };
    assert!(typed.with_files(&inputs()).is_err(), "the reader reads nothing");
    let there = FrontInputs { read_text: |_| Ok("20\n30\n".to_owned()), ..inputs() };
    let whole = typed.with_files(&there).expect("all are numbers");
    assert_eq!(run(&whole, &inputs()), run(&typed, &there));
    assert!(run(&whole, &inputs()).is_ok());
}
