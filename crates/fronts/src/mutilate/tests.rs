//! What each command line means: golden tables from words to Plans, without a server.

use std::collections::BTreeSet;

use pummel_logic::plan::share::{ClientId, PhaseShare};
use pummel_logic::plan::{Arrivals, ClientPolicy, Depth, Group, Late};
use pummel_logic::secrets::Secret;

use super::*;

fn inputs() -> FrontInputs {
    FrontInputs::without_files(42)
}

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split_whitespace().map(String::from)
}

fn asked(line: &str) -> Result<MutilateCommand, Refusal> {
    read(words(line), &inputs(), &[2, 5])
}

#[track_caller]
fn runs_of(line: &str) -> Runs {
    match asked(line) {
        Ok(MutilateCommand::Runs(runs)) => *runs,
        other => panic!("{line}: {other:?}"),
    }
}

/// What `-s a` means, where it is not what every Plan has of which nothing is said.
fn defaults() -> Plan {
    Plan {
        servers: vec!["a:11211".to_owned()],
        seed: 42,
        timeout_ns: 10 * SECOND,
        engine: Engine { wait: Wait::Spin, ..Engine::default() },
        data: Data {
            style: Style {
                keys: KeyStyle::Fnv,
                values: ValueStyle::Fresh,
                field_bytes: None,
                ..Style::default()
            },
            ..Data::default()
        },
        groups: vec![Group {
            policy: ClientPolicy { whole: true, ..ClientPolicy::default() },
            ..Group::default()
        }],
        phases: vec![
            phase("load", Work::Load(load())),
            Phase {
                stop: Stop { time_ns: Some(5 * SECOND), requests: None },
                recorded: true,
                ..phase("measure", Work::Mix(gets()))
            },
        ],
        ..Plan::default()
    }
}

fn phase(name: &str, work: Work) -> Phase {
    Phase { name: name.to_owned(), work, stop: Stop::default(), recorded: false }
}

fn load() -> Load {
    Load { depth: 64, pieces: false, counters: false, hashes: false, commands: false, no_plain: false }
}

fn gets() -> Mix {
    Mix::of(&[(Verb::Get, 1.0)])
}

/// The phase that measures, which is the last.
fn last(plan: &mut Plan) -> &mut Phase {
    plan.phases.last_mut().expect("a phase")
}

fn mix(plan: &mut Plan) -> &mut Mix {
    match &mut last(plan).work {
        Work::Mix(mix) => mix,
        _ => panic!("the last phase asks a mix"),
    }
}

fn time(plan: &mut Plan, seconds: u64) {
    last(plan).stop.time_ns = Some(seconds * SECOND);
}

fn requests(plan: &mut Plan, requests: u64) {
    last(plan).stop = Stop { time_ns: None, requests: Some(requests) };
}

fn servers(plan: &mut Plan, names: &[&str]) {
    plan.servers = names.iter().map(|name| (*name).to_owned()).collect();
}

fn open(plan: &mut Plan, rate: f64, arrivals: Arrivals) {
    plan.groups[0].rate = Some(rate);
    plan.groups[0].policy.ends_on_time = true;
    plan.groups[0].arrivals = arrivals;
}

fn poisson(plan: &mut Plan, rate: f64) {
    open(plan, rate, Arrivals::Poisson);
}

fn shaped(plan: &mut Plan, rate: f64, dist: Dist) {
    open(plan, rate, Arrivals::Shape(dist));
}

fn replay(plan: &mut Plan, format: u32, read_through_ns: Option<Nanos>) {
    let path = "t.csv".to_owned();
    last(plan).work = Work::Replay(Replay { path, format, read_through_ns, reads_only: false });
    last(plan).stop = Stop::default();
}

fn reads_only(plan: &mut Plan) {
    if let Work::Replay(replay) = &mut last(plan).work {
        replay.reads_only = true;
    }
}

fn before_measuring(plan: &mut Plan, phase: Phase) {
    let at = plan.phases.len() - 1;
    plan.phases.insert(at, phase);
}

/// The options beside `-s a`, and what they change of what it means.
type Row = (&'static str, fn(&mut Plan));

#[rustfmt::skip]
const PLANS: &[Row] = &[
    ("", |_| {}),
    ("word --quiet another", |_| {}),
    ("-v", |_| {}), ("-vv", |_| {}), ("--verbose --verbose", |_| {}), ("--verb", |_| {}), ("--quiet", |_| {}), ("--qui", |_| {}),
    ("-- -t 9 --bogus", |_| {}),
    ("-t 7", |plan| time(plan, 7)), ("-t7", |plan| time(plan, 7)), ("--time 7", |plan| time(plan, 7)), ("--time=7", |plan| time(plan, 7)),
    ("--ti=7", |plan| time(plan, 7)), ("-t 0x10", |plan| time(plan, 16)), ("-t 010", |plan| time(plan, 8)), ("-t +7", |plan| time(plan, 7)),
    ("-vt7", |plan| time(plan, 7)),
    ("-q 100", |plan| poisson(plan, 100.0)), ("--qps=100", |plan| poisson(plan, 100.0)), ("--qp 100", |plan| poisson(plan, 100.0)), ("-q 0", |_| {}),
    ("-K 40", |plan| plan.data.key_size = Dist::Fixed(40.0)), ("--keysize=40", |plan| plan.data.key_size = Dist::Fixed(40.0)),
    ("-K fixed:40", |plan| plan.data.key_size = Dist::Fixed(40.0)), ("-K 30.5", |plan| plan.data.key_size = Dist::Fixed(31.0)),
    ("-K -5", |plan| plan.data.key_size = Dist::Fixed(0.0)), ("-K 2", |plan| plan.data.key_size = Dist::Fixed(2.0)),
    ("-K fb_key", |plan| plan.data.key_size = Dist::EtcKey),
    ("-K normal:30,5", |plan| plan.data.key_size = Dist::Normal { mean: 30.0, sd: 5.0 }),
    ("-K u:250", |plan| plan.data.key_size = Dist::Uniform { low: 0.0, high: 250.0 }),
    ("-V 7", |plan| plan.data.value_size = Dist::Fixed(7.0)), ("--valuesize=7", |plan| plan.data.value_size = Dist::Fixed(7.0)),
    ("--val 7.9", |plan| plan.data.value_size = Dist::Fixed(7.0)), ("-V 0", |plan| plan.data.value_size = Dist::Fixed(0.0)),
    ("-V -5", |plan| plan.data.value_size = Dist::Fixed(0.0)), ("-V 2000000", |plan| plan.data.value_size = Dist::Fixed(2e6)),
    ("-V fb_value", |plan| plan.data.value_size = Dist::EtcValue),
    ("-V exponential:0.005", |plan| plan.data.value_size = Dist::Exponential { mean: 200.0 }),
    ("-V uniform", |plan| plan.data.value_size = Dist::Uniform { low: 0.0, high: 1.0 }),
    ("-V pareto:15,214.476,0.348238", |plan| plan.data.value_size = Dist::Pareto { loc: 15.0, scale: 214.476, shape: 0.348238 }),
    ("-V normal:200,50", |plan| plan.data.value_size = Dist::Normal { mean: 200.0, sd: 50.0 }),
    ("-r 5", |plan| plan.data.records = 5), ("--records=5", |plan| plan.data.records = 5), ("--rec=5", |plan| plan.data.records = 5), ("-r 0", |plan| plan.data.records = 1),
    ("-m 100", |_| {}), ("--misswindow=100", |_| {}), ("--mi 100", |_| {}),
    ("-N 1000", |plan| requests(plan, 1000)), ("--queries=1000", |plan| requests(plan, 1000)), ("--que=1000", |plan| requests(plan, 1000)),
    ("-N 1000 -t 5", |plan| { requests(plan, 1000); time(plan, 5) }),
    ("-u 1", |plan| mix(plan).ops = vec![(Verb::Set, 1.0)]), ("--update=1.0", |plan| mix(plan).ops = vec![(Verb::Set, 1.0)]), ("--upd 1", |plan| mix(plan).ops = vec![(Verb::Set, 1.0)]),
    ("-u .25", |plan| mix(plan).ops = vec![(Verb::Get, 0.75), (Verb::Set, 0.25)]),
    ("-u 5e-1", |plan| mix(plan).ops = vec![(Verb::Get, 0.5), (Verb::Set, 0.5)]),
    ("--binary", |plan| plan.protocol = Protocol::Binary), ("--bin", |plan| plan.protocol = Protocol::Binary),
    ("--redis", |plan| plan.protocol = Protocol::Resp2), ("--redis --binary", |plan| plan.protocol = Protocol::Binary),
    ("--binary -U me -P secret", |plan| { plan.protocol = Protocol::Binary; plan.login = Some(Login { user: "me".to_owned(), password_file: None }) }),
    ("--binary --username=me", |plan| { plan.protocol = Protocol::Binary; plan.login = Some(Login { user: "me".to_owned(), password_file: None }) }),
    ("--binary --user me --pass=x", |plan| { plan.protocol = Protocol::Binary; plan.login = Some(Login { user: "me".to_owned(), password_file: None }) }),
    ("--getset", |plan| mix(plan).read_through_ns = Some(0)),
    ("--getset -u 0.5", |plan| mix(plan).read_through_ns = Some(0)),
    ("--getsetorset", |plan| mix(plan).read_through_ns = Some(0)),
    ("--getsetorset -u 0.5", |plan| { mix(plan).read_through_ns = Some(0); mix(plan).ops = vec![(Verb::Get, 0.5), (Verb::Set, 0.5)] }),
    ("--getset --getsetorset -u 1", |plan| mix(plan).ops = vec![(Verb::Set, 1.0)]),
    ("--getset --redis", |plan| { mix(plan).read_through_ns = Some(0); plan.protocol = Protocol::Resp2 }),
    ("--successful", |plan| plan.groups[0].policy.successes_only = true), ("--suc", |plan| plan.groups[0].policy.successes_only = true),
    ("--prefix=p:", |plan| plan.data.key_prefix = "p:".to_owned()), ("--pre p:", |plan| plan.data.key_prefix = "p:".to_owned()),
    ("--prefix p -K 250", |plan| { plan.data.key_prefix = "p".to_owned(); plan.data.key_size = Dist::Fixed(250.0) }),
    ("--redis --assoc=4", |plan| { plan.protocol = Protocol::Resp2; plan.data.style.field_bytes = Some(4) }),
    ("--assoc 2 --redis", |plan| { plan.protocol = Protocol::Resp2; plan.data.style.field_bytes = Some(2) }),
    ("--getset --delete90 -N 1001", |plan| {
        mix(plan).read_through_ns = Some(0);
        requests(plan, 500);
        let mut second = last(plan).clone();
        second.stop.requests = Some(501);
        plan.phases.push(phase("delete", Work::Delete(Delete { share: 0.9, depth: 64 })));
        plan.phases.push(second);
    }),
    ("--getset --delete90 -N 10 -t 3", |plan| {
        mix(plan).read_through_ns = Some(0);
        requests(plan, 5);
        time(plan, 3);
        let second = last(plan).clone();
        plan.phases.push(phase("delete", Work::Delete(Delete { share: 0.9, depth: 64 })));
        plan.phases.push(second);
    }),
    ("--getset --delete90 -N 1", |plan| { mix(plan).read_through_ns = Some(0); requests(plan, 1) }),
    ("--read_file t.csv", |plan| replay(plan, 0, None)), ("--read_file=t.csv --twitter_trace 1", |plan| replay(plan, 1, None)),
    ("--read_f t.csv --twit=2", |plan| replay(plan, 2, None)), ("--twitter_trace=1", |_| {}),
    ("--read_file t.csv --getset", |plan| { replay(plan, 0, Some(0)); reads_only(plan) }),
    ("--read_file t.csv --getset --getsetorset", |plan| replay(plan, 0, Some(0))), ("--read_file t.csv --getsetorset -u 0.5", |plan| replay(plan, 0, Some(0))),
    ("--read_file t.csv -t 3", |plan| { replay(plan, 0, None); time(plan, 3) }),
    ("--read_file t.csv -N 70", |plan| { replay(plan, 0, None); requests(plan, 70) }),
    ("--read_file t.csv -q 100", |plan| { replay(plan, 0, None); poisson(plan, 100.0) }),
    ("-T 4", |plan| { plan.engine.threads = 4; plan.groups[0].clients = 4 }), ("--threads=4", |plan| { plan.engine.threads = 4; plan.groups[0].clients = 4 }),
    ("--thr 4 --affinity", |plan| { plan.engine.threads = 4; plan.engine.cpus = vec![2, 5]; plan.groups[0].clients = 4 }),
    ("--affinity", |_| {}), ("--aff", |_| {}),
    ("-c 50", |plan| plan.groups[0].clients = 50), ("--connections=50", |plan| plan.groups[0].clients = 50), ("--con 50", |plan| plan.groups[0].clients = 50),
    ("-T 2 -c 3", |plan| { plan.engine.threads = 2; plan.groups[0].clients = 6 }),
    ("-T 2 -c 3 -s b", |plan| { servers(plan, &["a:11211", "b:11211"]); plan.engine.threads = 2; plan.groups[0].clients = 12; plan.data.records = 5_000 }),
    ("-T 2 -R -c 3 -s b,c", |plan| {
        servers(plan, &["a:11211", "b:11211", "c:11211"]);
        plan.engine.threads = 2;
        plan.groups[0].clients = 9;
        plan.groups[0].policy.block = 3;
        plan.data.records = 3_333;
    }),
    ("-T 4 --roundrobin -c 2 -s b", |plan| {
        servers(plan, &["a:11211", "b:11211"]);
        plan.engine.threads = 4;
        plan.groups[0].clients = 8;
        plan.groups[0].policy.block = 2;
        plan.data.records = 5_000;
    }),
    ("-R -s b -c 2", |plan| { servers(plan, &["a:11211", "b:11211"]); plan.groups[0].clients = 4; plan.data.records = 5_000 }),
    ("-s b -N 1001", |plan| { servers(plan, &["a:11211", "b:11211"]); plan.groups[0].clients = 2; plan.data.records = 5_000; requests(plan, 1000) }),
    ("-d 4", |plan| plan.groups[0].depth = Depth::Limit(4)), ("--depth=4", |plan| plan.groups[0].depth = Depth::Limit(4)), ("--dep 4", |plan| plan.groups[0].depth = Depth::Limit(4)),
    ("-i gev", |_| {}), ("-i nonsense", |_| {}), ("-S", |_| {}), ("--moderate", |_| {}),
    ("-q 100 -i exponential:1", |plan| poisson(plan, 100.0)), ("-q 100 --iadist=e", |plan| poisson(plan, 100.0)),
    ("-q 100 -i fixed", |plan| shaped(plan, 100.0, Dist::Fixed(0.01))), ("-q 100 -c 5 -i 7", |plan| { shaped(plan, 100.0, Dist::Fixed(0.05)); plan.groups[0].clients = 5 }),
    ("-q 100 --ia uniform", |plan| shaped(plan, 100.0, Dist::Uniform { low: 0.0, high: 0.02 })),
    ("-q 100 -i normal:1,0.002", |plan| shaped(plan, 100.0, Dist::Normal { mean: 0.01, sd: 0.002 })),
    ("-q 100 -i pareto:0.002,9,0.2", |plan| shaped(plan, 100.0, Dist::Pareto { loc: 0.002, scale: 0.8 * (0.01 - 0.002), shape: 0.2 })),
    ("-q 100 -i fb_ia", |plan| shaped(plan, 100.0, Dist::Pareto { loc: 0.0, scale: (1.0 - 0.154971) * 0.01, shape: 0.154971 })),
    ("-q 100 -i fb_key", |plan| shaped(plan, 100.0, Dist::EtcKey)), ("-q 100 -i fb_value", |plan| shaped(plan, 100.0, Dist::EtcValue)),
    ("-q 100 -i gev:1,2,0.1", |plan| shaped(plan, 100.0, Dist::Gev { loc: 1.0, scale: 2.0, shape: 0.1 })),
    ("-q 100 -i normal:5", |plan| shaped(plan, 100.0, Dist::Fixed(0.01))),
    ("-q 100 -S", |plan| { poisson(plan, 100.0); plan.groups[0].policy.late = Late::Skipped }),
    ("-q 100 --skip", |plan| { poisson(plan, 100.0); plan.groups[0].policy.late = Late::Skipped }),
    ("-q 100 --mod", |plan| { poisson(plan, 100.0); plan.groups[0].policy.spaced = true }),
    ("--noload", |plan| { plan.phases.remove(0); }), ("--nol", |plan| { plan.phases.remove(0); }),
    ("--loadonly", |plan| { plan.phases.pop(); }), ("--load", |plan| { plan.phases.pop(); }),
    ("--loadonly --noload", |plan| plan.phases = vec![phase("nothing", Work::Pause(Pause { until_ns: 0, for_ns: 0 }))]),
    ("--loadonly -w 5 -W 5", |plan| { plan.phases.pop(); }),
    ("-B", |plan| plan.engine.wait = Wait::Block), ("--blocking", |plan| plan.engine.wait = Wait::Block), ("--bl", |plan| plan.engine.wait = Wait::Block),
    ("-BS", |plan| plan.engine.wait = Wait::Block),
    ("--no_nodelay", |plan| plan.socket.nodelay = false), ("--no_", |plan| plan.socket.nodelay = false),
    ("-w 3", |plan| before_measuring(plan, Phase { stop: Stop { time_ns: Some(3 * SECOND), requests: None }, ..phase("warmup", Work::Mix(gets())) })),
    ("--warmup=3", |plan| before_measuring(plan, Phase { stop: Stop { time_ns: Some(3 * SECOND), requests: None }, ..phase("warmup", Work::Mix(gets())) })),
    ("--war 3 -W 9", |plan| {
        before_measuring(plan, Phase { stop: Stop { time_ns: Some(3 * SECOND), requests: None }, ..phase("warmup", Work::Mix(gets())) });
        before_measuring(plan, phase("wait", Work::Pause(Pause { until_ns: 9 * SECOND, for_ns: 0 })));
    }),
    ("-W 9", |plan| before_measuring(plan, phase("wait", Work::Pause(Pause { until_ns: 9 * SECOND, for_ns: 0 })))),
    ("--wait=9", |plan| before_measuring(plan, phase("wait", Work::Pause(Pause { until_ns: 9 * SECOND, for_ns: 0 })))), ("-w 0 -W 0", |_| {}),
    ("--save f", |_| {}), ("--sav=f", |_| {}),
    ("--search 95:1000", |_| {}), ("--sea=95:1000 -q 50", |plan| poisson(plan, 50.0)),
    ("--scan 100:300:100", |plan| poisson(plan, 100.0)), ("--sc=0:300:100 -q 7", |_| {}),
    ("--response", |_| {}), ("--p50", |_| {}), ("--no-evidence", |plan| plan.evidence = false), ("--anonymous", |plan| plan.anonymous = true), ("--all_rows", |_| {}), ("--save f --save_all", |_| {}), ("--json j", |_| {}), ("--csv=c", |_| {}), ("--hdr h", |_| {}), ("--samples s", |_| {}),
    ("--clock kernel", |_| {}), ("--clock=user", |plan| plan.engine.clock = Clock::User), ("--seed 7", |plan| plan.seed = 7),
];

#[test]
fn every_option_means_what_the_table_says() {
    for (line, change) in PLANS {
        let mut expected = defaults();
        change(&mut expected);
        let line = format!("-s a {line}");
        assert_eq!(*runs_of(&line).job.plan, expected, "{line}");
    }
}

#[test]
fn the_table_has_more_than_a_hundred_lines_and_one_for_every_option() {
    let lines = || PLANS.iter().map(|(line, _)| *line).chain(REFUSED.iter().map(|(line, _)| *line));
    assert!(lines().count() >= 120, "{}", lines().count());
    let typed: BTreeSet<String> = lines()
        .chain(SERVERS.iter().map(|(line, _)| *line))
        .chain(ANSWERED.iter().map(|(line, _)| *line))
        .flat_map(names)
        .collect();
    let missing: Vec<_> =
        TABLE.iter().filter(|choice| !typed.contains(choice.long.unwrap_or_default())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let short: Vec<_> = TABLE
        .iter()
        .filter_map(|choice| choice.short)
        .filter(|short| !typed.contains(&short.to_string()))
        .collect();
    assert!(short.is_empty(), "without a line in the short form: {short:?}");
}

/// The options of a line, by long name and by the letters that were typed.
fn names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for event in crate::getopt::Getopt::new(TABLE, words(line)) {
        if let Ok(crate::getopt::Event::Option { choice, .. }) = event {
            names.extend(TABLE[choice].long.map(String::from));
        }
    }
    let bundles = words(line).filter(|word| word.starts_with('-') && !word.starts_with("--"));
    names.extend(bundles.flat_map(|word| word[1..].chars().map(String::from).collect::<Vec<_>>()));
    names
}

/// Whole lines, and the servers that they mean.
const SERVERS: &[(&str, &[&str])] = &[
    ("-s a", &["a:11211"]),
    ("-sa", &["a:11211"]),
    ("--server=a:5", &["a:5"]),
    ("--ser a:", &["a:11211"]),
    ("-s a,b:7 -s c", &["a:11211", "b:7", "c:11211"]),
    ("-s a,a", &["a:11211", "a:11211"]),
    ("-s a,", &["a:11211"]),
    ("-s ,a,,b:7,", &["a:11211", "b:7"]),
    ("-s [::1]:5", &["[::1]:5"]),
    ("-s [::1]", &["[::1]:11211"]),
    ("-s [::1]:", &["[::1]:11211"]),
    ("-s /x/y --unix_socket", &["/x/y"]),
    ("--unix -s /x/y:z", &["/x/y:z"]),
    ("-s /x\\,y --unix_socket", &["/x,y"]),
];

#[test]
fn servers_are_cut_at_the_first_colon_and_paths_are_not() {
    for (line, servers) in SERVERS {
        assert_eq!(runs_of(line).job.plan.servers, *servers, "{line}");
    }
}

/// Whole lines, and why they are refused: with status 1 where a line begins with the parser's mark, else with 255.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("-s a --bogus", "1 unrecognized option '--bogus'"),
    ("-s a --bogus=1", "1 unrecognized option '--bogus=1'"),
    ("-Z", "1 invalid option -- 'Z'"),
    ("-vZ", "1 invalid option -- 'Z'"),
    ("-t", "1 option requires an argument -- 't'"),
    ("--time", "1 option '--time' requires an argument"),
    ("--ti", "1 option '--time' requires an argument"),
    ("--binary=1", "1 option '--binary' doesn't allow an argument"),
    ("--s=x", "1 option '--s=x' is ambiguous; possibilities: '--server' '--successful' '--skip' '--save' '--search' '--scan'"),
    ("--se=x", "1 option '--se=x' is ambiguous; possibilities: '--server' '--search'"),
    ("--re x", "1 option '--re' is ambiguous; possibilities: '--redis' '--read_file' '--records'"),
    ("--js x", "1 unrecognized option '--js'"),
    ("--resp", "1 unrecognized option '--resp'"),
    ("--sampl x", "1 unrecognized option '--sampl'"),
    ("-t abc", "1 invalid numeric value: abc"),
    ("-t 5x", "1 invalid numeric value: 5x"), ("-N 1e6", "1 invalid numeric value: 1e6"), ("-N 5k", "1 invalid numeric value: 5k"),
    ("-N 99999999999", "1 invalid numeric value: 99999999999"), ("-r 2147483648", "1 invalid numeric value: 2147483648"),
    ("-u x", "1 invalid numeric value: x"),
    ("-t 1 --time 2", "1 `--time' (`-t') option given more than once"),
    ("--binary --binary", "1 `--binary' option given more than once"),
    ("-B --blocking", "1 `--blocking' (`-B') option given more than once"),
    ("--json a --json b", "1 `--json' option given more than once"),
    ("-t abc --bogus", "1 invalid numeric value: abc"),
    ("", "--server or --agentmode must be specified."),
    ("-d 0", "--depth must be >= 1"),
    ("-d 0 -q -1 -u 2 -t 0 -c 0", "--depth must be >= 1"),
    ("-q -1 -u 2 -t 0 -c 0", "--qps must be >= 0"),
    ("-u 2 -t 0 -c 0", "--update must be >= 0.0 and <= 1.0"),
    ("-t 0 -c 0", "--time must be >= 1"), ("-t -3 -s a", "--time must be >= 1"),
    ("-c 0", "--connections must be between [1,512]"), ("-c 513 -s a", "--connections must be between [1,512]"),
    ("-u nan -s a", "--update must be >= 0.0 and <= 1.0"), ("-u -0.1 -s a", "--update must be >= 0.0 and <= 1.0"),
    ("-s a -T 0", "--threads must be >= 1"), ("-s a -T -1", "--threads must be >= 1"),
    ("-s a -r -1", "--records must be >= 0"), ("-s a -N -1", "--queries must be >= 0"), ("-s a -m -1", "--misswindow must be >= 0"),
    ("-s a -w -1", "--warmup must be >= 0"), ("-s a -W -1", "--wait must be >= 0"),
    ("-s a -l 0", "--lambda_mul must be >= 1"), ("-s a -C 0", "--measure_connections must be >= 1"),
    ("-s a -D 0", "--measure_depth must be >= 1"), ("-s a -Q 0", "--measure_qps must be >= 1"),
    ("-s a -q 5 -Q 6", "--measure_qps must be <= --qps"),
    ("-s a --twitter_trace 3", "--twitter_trace must be 0, 1 or 2"),
    ("-s a --delete90", "delete90 must be used with getset or getsetorset, and with queries"),
    ("-s a --delete90 --getset", "delete90 must be used with getset or getsetorset, and with queries"),
    ("-s a --delete90 -N 5", "delete90 must be used with getset or getsetorset, and with queries"),
    ("-s a,b -N 1", "--queries must be at least the number of servers"),
    ("-s a -U me -P x", "username and password must be used with binary"),
    ("-s a -U me --redis", "username and password must be used with binary"),
    ("-s a -P x --binary", "password must be used with username"),
    ("-s a --search 1:1 --scan 1:1:1", "search and scan cannot be used together"),
    ("-s a --samples f --scan 1:1:1", "samples cannot be used with search or scan"),
    ("-s a --assoc 4", "assoc must be used with redis"), ("-s a --assoc 4 --redis --binary", "assoc must be used with redis"),
    ("-s a --assoc 0 --redis", "--assoc must be >= 1"),
    ("-s a --search 95", "Invalid --search argument"), ("-s a --search=", "Invalid --search argument"),
    ("-s a --search 101:5", "Invalid --search argument"), ("-s a --search 95:99999999999", "Invalid --search argument"),
    ("-s a --search 95:abc", "Invalid --search argument"), ("-s a --search x:5", "Invalid --search argument"),
    ("-s a --search 95:1e3", "Invalid --search argument"), ("-s a --search 95:5us", "Invalid --search argument"),
    ("-s a --scan x:5:2", "Invalid --scan argument"), ("-s a -a b -T 0 --search 95:5", "search judges the requests of the master, which --threads 0 leaves without any"),
    ("-s a --save_all", "save_all must be used with save"), ("-s ,", "--server or --agentmode must be specified."),
    ("-s a -d 2000000", "--depth cannot be '2000000': expected a whole number from 1 to 1000000"),
    ("-s a -a b -D 2000000 -Q 5", "--measure_depth cannot be '2000000': expected a whole number from 1 to 1000000"),
    ("-s a -a ssh://", "--agent 'ssh://': '' is not a host: expected [USER@]HOST[:PORT], separated by commas"),
    ("-s a --scan 1:2", "Invalid --scan argument"), ("-s a --scan 1:2:0", "Invalid --scan argument"),
    ("-s a --scan 1:2:x", "Invalid --scan argument"), ("-s a --scan 5:2:1", "Invalid --scan argument"), ("-s a --scan -5:2:1", "Invalid --scan argument"),
    ("-s a -K zipf", "Unable to create Generator 'zipf'"), ("-s a -V 200abc", "Unable to create Generator '200abc'"),
    ("-s a -K normal:1,-1", "Unable to create Generator 'normal:1,-1'"), ("-s a -V exponential:-1", "Unable to create Generator 'exponential:-1'"),
    ("-s a --keysize=", "strtok(.., \":\") failed to parse "),
    ("-s a -q 1 -i gev", "set_lambda() not implemented"), ("-s a -q 1 -i gev:0,0", "set_lambda() not implemented"),
    ("-s a -q 1 -i zipf", "Unable to create Generator 'zipf'"),
    ("-s a --search 95:5 -i gev", "set_lambda() not implemented"), ("-s a --scan 0:5:1 -i gev", "set_lambda() not implemented"),
    ("-s a -K 300", "--keysize cannot be '300': expected sizes up to 250 bytes"),
    ("-s a -V 2000000000", "--valuesize cannot be '2000000000': expected sizes up to 1GiB"),
    ("-s a --clock sun", "--clock must be kernel or user, not 'sun'"), ("-s a --seed x", "--seed must be a whole number, 0 or more, not 'x'"),
    ("-s a -a b -p x", "--agent_port must be a port from 1 to 65535, not 'x'"), ("-A -p 0", "--agent_port must be a port from 1 to 65535, not '0'"),
    ("-s a -a b:x", "--agent 'b:x': expected HOST, HOST:PORT, [IPV6]:PORT or dns:///NAME:PORT"),
    ("-s a -a b -a b:5556", "--agent 'b:5556': it is there twice"), ("-A -T 0", "--threads must be >= 1"),
];

#[test]
fn what_is_wrong_is_told_in_the_originals_words_with_its_statuses() {
    for (line, said) in REFUSED {
        let refusal = match asked(line) {
            Err(Refusal::Words(text)) => format!("1 {text}"),
            Err(Refusal::Fatal(text)) => text,
            Ok(asked) => panic!("{line}: {asked:?}"),
        };
        assert_eq!(refusal, *said, "{line}");
    }
}

#[test]
fn servers_that_cannot_be_are_refused_with_their_name() {
    for server in ["::1", "[::1", "a:b", "a:0", "a:99999", ":5", "/x"] {
        let Err(Refusal::Fatal(text)) = asked(&format!("-s {server}")) else { panic!("{server}") };
        assert!(text.starts_with(&format!("Error while resolving '{server}': ")), "{text}");
    }
}

/// Whole lines that are only answered.
const ANSWERED: &[(&str, MutilateCommand)] = &[
    ("-h", MutilateCommand::Help),
    ("--help", MutilateCommand::Help),
    ("--he", MutilateCommand::Help),
    ("-vh --bogus", MutilateCommand::Help),
    ("--version", MutilateCommand::Version),
    ("--vers -t x", MutilateCommand::Version),
];

#[test]
fn help_and_version_come_before_what_is_wrong_behind_them() {
    for (line, answer) in ANSWERED {
        assert_eq!(asked(line).as_ref(), Ok(answer), "{line}");
    }
    assert!(matches!(asked("-t x --help"), Err(Refusal::Words(_))));
}

#[test]
fn the_help_names_every_option() {
    for choice in TABLE {
        let long = choice.long.unwrap_or_default();
        let shown = match choice.short {
            Some(short) => format!("-{short}, --{long}"),
            None => format!("    --{long}"),
        };
        assert!(HELP.contains(&shown), "{shown}");
    }
    assert!(HELP.starts_with("Usage: mutilate -s server[:port] [options]\n"));
}

#[test]
fn what_is_written_about_a_run_is_no_part_of_its_plan() {
    let plain = DisplayOptions {
        verbose: 0,
        quiet: false,
        response: false,
        p50: false,
        all_rows: false,
        save: None,
        save_all: false,
        miss_window: 0,
        load_only: false,
    };
    assert_eq!(runs_of("-s a").display, plain);
    let runs = runs_of(
        "-s a -vv --quiet --response --p50 --all_rows --save f --save_all -m 9 --loadonly --json j --csv c --hdr h --samples s -P x -U y --binary",
    );
    let save = Some(PathBuf::from("f"));
    let display = DisplayOptions {
        verbose: 2,
        quiet: true,
        response: true,
        p50: true,
        all_rows: true,
        save,
        save_all: true,
        miss_window: 9,
        load_only: true,
    };
    assert_eq!(runs.display, display);
    let file = |name| runs.job.outputs.files.get(name).and_then(std::path::Path::to_str);
    assert_eq!(["json", "csv", "hdr", "samples"].map(file), ["j", "c", "h", "s"].map(Some));
    assert_eq!(runs.password(), Some(Secret::new("x")));
    assert_eq!(runs_of("-s a --binary -U y").password(), Some(Secret::default()));
    assert_eq!(runs_of("-s a").password(), None);
}

#[test]
fn searches_and_scans_make_a_plan_for_every_rate() {
    let runs = runs_of("-s a --search 95:1000 -c 4");
    assert_eq!(runs.series, Series::Search { nth: 95, limit_us: 1000 });
    let plan = runs.plan_at(2_000).expect("a rate");
    assert_eq!((plan.groups[0].rate, &plan.groups[0].arrivals), (Some(2_000.0), &Arrivals::Poisson));
    let runs = runs_of("-s a --scan 1000:3000:500 -i n:1,0.001 -c 2");
    assert_eq!(runs.series, Series::Scan { min: 1000, max: 3000, step: 500 });
    let normal = |mean| Arrivals::Shape(Dist::Normal { mean, sd: 0.001 });
    assert_eq!(runs.job.plan.groups[0].arrivals, normal(0.002));
    assert_eq!(runs.plan_at(2_000).expect("a rate").groups[0].arrivals, normal(0.001));
}

#[test]
fn the_suggested_use_of_the_readme_is_understood() {
    assert_eq!(runs_of("-s memcached_server --loadonly").job.plan.phases.len(), 1);
    let line = "-s memcached_server --noload -B -T 16 -Q 1000 -D 4 -C 4 -a agent1 -a agent2 -c 4 -q 200000";
    let runs = runs_of(line);
    let names: Vec<String> = runs.agents.iter().map(AgentAddress::name).collect();
    assert_eq!(names, ["agent1:5556", "agent2:5556"]);
    let sixteen = ProcessSettings { threads: 16, weight: 1, measure_connections: 0 };
    let SharedPlan { plan, own, agents } = runs.shared_plan_at(200_000, &[sixteen, sixteen]).expect("a plan");
    assert_eq!((own, agents), (Some((0, 16)), vec![Some((1, 16)), Some((2, 16))]));
    let group = |at: usize| {
        let group = &plan.groups[at];
        (group.clients, group.rate, group.depth, group.policy.here)
    };
    assert_eq!(group(0), (64, Some(1_000.0), Depth::Limit(4), true));
    assert_eq!(group(1), (64, Some(99_500.0), Depth::Limit(1), false));
    assert_eq!(group(2), (64, Some(99_500.0), Depth::Limit(1), false));
    let basic = runs_of("-s zephyr2-10g -T 24 -c 8").job.plan;
    assert_eq!((basic.engine.threads, basic.groups[0].clients), (24, 192));
}

/// Clients and rates of the master, if it has some, and of its agents.
fn rates(line: &str, settings: &[(u32, u32, u32)]) -> Vec<(u32, Option<f64>)> {
    let settings: Vec<ProcessSettings> = settings
        .iter()
        .map(|&(threads, weight, measure_connections)| ProcessSettings {
            threads,
            weight,
            measure_connections,
        })
        .collect();
    let runs = runs_of(line);
    let shared = runs.shared_plan_at(runs.qps(), &settings).expect("a plan");
    let of = |group: &Option<(usize, u32)>| match group {
        Some((group, _)) => (shared.plan.groups[*group].clients, shared.plan.groups[*group].rate),
        None => (0, None),
    };
    std::iter::once(&shared.own).chain(&shared.agents).map(of).collect()
}

#[test]
fn rates_of_master_and_agents_add_up_in_every_combination() {
    let agents = [(1, 1, 0), (1, 2, 0)];
    // The example of the original's own run: 1000 for the master, the rest by weight.
    let master = "-s a,b,c -a x -a y -c 1 -q 6000 -Q 1000 -C 2";
    let third = 5_000.0 / 3.0;
    assert_eq!(rates(master, &agents), [(6, Some(1_000.0)), (3, Some(third)), (3, Some(2.0 * third))]);
    for line in [
        "-s a -a x -a y -c 3 -q 6000",
        "-s a,b -a x -a y -c 3 -q 6000 -R -T 4",
        "-s a,b,c -a x -a y -c 3 -q 6000 -R -T 2 -C 5 -l 3",
        "-s a -a x -a y -c 3 -q 6000 -Q 6000",
        "-s a -a x -a y -c 3 -q 6000 -Q 1 -D 9 -C 1",
        "-s a -a x -a y -c 3 -q 6000 -T 0",
        "-s a -a x -a y -c 3 -q 6000 -T 0 -Q 5000",
        "-s a -c 1 -C 4 -q 6000",
        "-s a -c 1 -Q 4 -q 6000",
    ] {
        let settings: &[(u32, u32, u32)] = if line.contains("-a") { &[(2, 1, 0), (1, 7, 4)] } else { &[] };
        let sum: f64 = rates(line, settings).iter().filter_map(|(_, rate)| *rate).sum();
        assert!((sum - 6_000.0).abs() < 1e-6, "{line}: {sum}");
    }
    // A share of nothing is nothing, not everything.
    assert_eq!(rates("-s a -a x -q 100 -Q 100", &[(1, 1, 0)]), [(1, Some(100.0)), (0, None)]);
    // In closed loop only the master has a rate, where it is given one.
    assert_eq!(rates("-s a -a x -Q 100", &[(1, 1, 0)]), [(1, Some(100.0)), (1, None)]);
}

#[test]
fn a_number_of_queries_is_the_total_of_master_and_agents() {
    let settings = [(1, 1, 0), (2, 3, 0)].map(|(threads, weight, measure_connections)| ProcessSettings {
        threads,
        weight,
        measure_connections,
    });
    for line in [
        "-s a,b -a x -a y -N 1000",
        "-s a -a x -a y -N 1000 -q 500 -Q 100",
        "-s a -a x -a y -N 1000 -q 500 -T 0",
    ] {
        let runs = runs_of(line);
        let SharedPlan { plan, .. } = runs.shared_plan_at(runs.qps(), &settings).expect("a plan");
        let measure = plan.phases.len() - 1;
        let share = PhaseShare::new(&plan, measure, Transport::Stream);
        let clients =
            plan.groups.iter().enumerate().flat_map(|(group, of)| {
                (0..u64::from(of.clients)).map(move |number| ClientId { group, number })
            });
        assert_eq!(clients.map(|client| share.of_client(client).requests).sum::<u64>(), 1_000, "{line}");
    }
}

#[test]
fn more_spinning_threads_than_cpus_are_noted() {
    for (line, noted) in [
        ("-s a -T 3", Some((3, 2))),
        ("-s a -T 2", None),
        ("-s a -T 3 -B", None),
        ("-s a -T 3 --loadonly", None),
    ] {
        assert_eq!(runs_of(line).threads_too_many(), noted, "{line}");
    }
}

#[test]
fn an_agent_keeps_what_its_own_command_line_says() {
    let settings = ProcessSettings { threads: 3, weight: 2, measure_connections: 5 };
    assert_eq!(
        asked("-A -p 7000 -T 3 -l 2 -C 5 -B --affinity -vv --quiet"),
        Ok(MutilateCommand::Agent(AgentOptions {
            port: 7_000,
            settings,
            blocking: true,
            pinned: true,
            verbose: 2,
            quiet: true
        }))
    );
    let settings = ProcessSettings { threads: 1, weight: 1, measure_connections: 0 };
    assert_eq!(
        asked("--agentmode"),
        Ok(MutilateCommand::Agent(AgentOptions {
            port: 5_556,
            settings,
            blocking: false,
            pinned: false,
            verbose: 0,
            quiet: false
        }))
    );
    let names = |line: &str| runs_of(line).agents.iter().map(AgentAddress::name).collect::<Vec<String>>();
    assert_eq!(names("-s a -a x -a y:7 -a [::1]:8 -a [::2] -p 9"), ["x:9", "y:7", "[::1]:8", "[::2]:9"]);
    assert_eq!(
        names("-s a -a x,y, -a ssh://m1,me@m2:22 -a z"),
        ["x:5556", "y:5556", "ssh://m1,me@m2:22", "z:5556"]
    );
}
