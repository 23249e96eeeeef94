//! The features of a run, and the Plan that has two of them.

use std::sync::Arc;

use pummel_logic::arrival::RateCurve;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Audit, Burst, BurstStates, Changes, ChurningClients, Command, Data, Dataset, DatasetOrder,
    DealBy, Delete, Depth, Event, EventKind, Fill, Fills, FlashCrowd, Gap, Group, HotKey, KeyChurn, KeyStyle,
    Lengths, Load, LoadCommand, Login, Mix, Part, Pause, Phase, Plan, Pool, Popularity, Protocol, RankRange,
    RatePoint, RateShape, ReadFrom, Replay, Retry, RetryKind, Route, Script, Sequence, Settle, Sine, Spawns,
    Stop, TlsOptions, TracePace, TraceReplay, TraceTtl, Tracking, Transport, Until, Window, WithinSecond,
    Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::resp::reply_shape::ReplyShape;
use pummel_logic::rng::{Stream, below, mix};
use pummel_logic::time::MILLISECOND;
use pummel_logic::workload::dataset::PackedRows;

use crate::plans::depth;

/// A feature of a run, of its servers or of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Every connection begins with a login, HELLO or SELECT.
    Handshake,
    /// Clients come and go.
    Churn,
    /// Clients have windows, as memaslap's do.
    Windows,
    /// There are several servers, under any route.
    Servers,
    /// Connections are encrypted.
    Tls,
    /// Requests are datagrams.
    Udp,
    /// Connections that the server closed are opened again.
    Reconnect,
    /// Every value is checked.
    Verify,
    /// A read asks for several keys.
    MultiGet,
    /// Values that were missed are stored.
    ReadThrough,
    /// Writes ask for no reply.
    Noreply,
    /// Records are loaded and a warm-up is made before the measured phase, which a deletion may divide.
    Phases,
    /// The warm-up is over when the load has settled.
    Settle,
    /// The measured phase is over when a quantile is known well enough.
    Until,
    /// Reads ask for keys that are no records: for new ones, and for those that are never stored.
    Unstored,
    /// The rate changes while it is measured.
    Changes,
    /// Requests depend on each other: sets follow gets of their key, adds store records that later reads ask for, and reads are scans.
    Dependent,
    /// A trace is replayed while it is read.
    Trace,
    /// Records get other keys in the course of time, or of requests.
    KeyChurn,
    /// A key is hot for some time, records are deleted, and records expire.
    Events,
    /// The warm-up is over when a server evicts a record, and misses are counted by their causes.
    Evictions,
    /// The servers are the nodes of a cluster.
    Cluster,
    /// Records are read back after the measured phase.
    Audit,
    /// Servers send messages about changed keys, which no request asks for.
    Tracking,
    /// Requests are commands of the user, whose replies say what was there or say nothing of it.
    Commands,
    /// Requests are sent again after errors.
    Retries,
    /// The number of connections changes while it is measured.
    Steps,
}

impl Feature {
    /// All features in their order.
    pub const ALL: [Feature; 27] = [
        Feature::Handshake,
        Feature::Churn,
        Feature::Windows,
        Feature::Servers,
        Feature::Tls,
        Feature::Udp,
        Feature::Reconnect,
        Feature::Verify,
        Feature::MultiGet,
        Feature::ReadThrough,
        Feature::Noreply,
        Feature::Phases,
        Feature::Settle,
        Feature::Until,
        Feature::Unstored,
        Feature::Changes,
        Feature::Dependent,
        Feature::Trace,
        Feature::KeyChurn,
        Feature::Events,
        Feature::Evictions,
        Feature::Cluster,
        Feature::Audit,
        Feature::Tracking,
        Feature::Commands,
        Feature::Retries,
        Feature::Steps,
    ];

    /// The name of the feature on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Handshake => "handshake",
            Feature::Churn => "churn",
            Feature::Windows => "windows",
            Feature::Servers => "servers",
            Feature::Tls => "tls",
            Feature::Udp => "udp",
            Feature::Reconnect => "reconnect",
            Feature::Verify => "verify",
            Feature::MultiGet => "multi-get",
            Feature::ReadThrough => "read-through",
            Feature::Noreply => "noreply",
            Feature::Phases => "phases",
            Feature::Settle => "settle",
            Feature::Until => "until",
            Feature::Unstored => "unstored",
            Feature::Changes => "changes",
            Feature::Dependent => "dependent",
            Feature::Trace => "trace",
            Feature::KeyChurn => "key-churn",
            Feature::Events => "events",
            Feature::Evictions => "evictions",
            Feature::Cluster => "cluster",
            Feature::Audit => "audit",
            Feature::Tracking => "tracking",
            Feature::Commands => "commands",
            Feature::Retries => "retries",
            Feature::Steps => "steps",
        }
    }
}

/// A pair of features. A feature twice stands for that feature alone.
pub type Pair = (Feature, Feature);

/// Pairs of features, each once.
pub fn pairs() -> impl Iterator<Item = Pair> {
    Feature::ALL.into_iter().flat_map(|one| {
        Feature::ALL.into_iter().filter(move |other| *other >= one).map(move |other| (one, other))
    })
}

/// The pairs that no Plan can express, with the reasons. [`Plan::validate`] refuses other pairs that no run has.
const UNSAYABLE: [(Pair, &str); 21] = [
    ((Feature::Windows, Feature::ReadThrough), "a window stores what it gets, and knows no read-through"),
    ((Feature::Windows, Feature::Noreply), "a window waits for the answer to each set"),
    ((Feature::Windows, Feature::Dependent), "a window asks for its objects one by one"),
    ((Feature::MultiGet, Feature::Dependent), "a scan has as many keys as it has, and a pair one"),
    ((Feature::Noreply, Feature::Dependent), "the end of a pair is a reply"),
    ((Feature::Windows, Feature::Trace), "a window asks for its own objects"),
    ((Feature::MultiGet, Feature::Trace), "a row has one key"),
    ((Feature::Noreply, Feature::Trace), "a trace says what is asked, and all of it is answered"),
    ((Feature::Unstored, Feature::Trace), "a trace says which keys are asked for"),
    ((Feature::Dependent, Feature::Trace), "a trace says what is asked"),
    ((Feature::Windows, Feature::Unstored), "a window asks for its objects, all of which it has stored"),
    ((Feature::Windows, Feature::KeyChurn), "a window has objects of its own, which it replaces by itself"),
    ((Feature::Trace, Feature::KeyChurn), "a trace says which keys are asked for"),
    ((Feature::Windows, Feature::Cluster), "a window speaks memcached's protocols"),
    ((Feature::Windows, Feature::Tracking), "a window speaks memcached's protocols"),
    ((Feature::Windows, Feature::Commands), "a window speaks memcached's protocols"),
    ((Feature::Udp, Feature::Cluster), "a cluster is reached over TCP"),
    ((Feature::Noreply, Feature::Cluster), "RESP answers every request"),
    ((Feature::Windows, Feature::Audit), "a window has keys of its own"),
    ((Feature::Trace, Feature::Audit), "a trace has keys of its own"),
    ((Feature::Evictions, Feature::Audit), "records that are evicted or expire are not lost"),
];

/// Reason why a pair has no run with this seed; `None` where it has one.
pub fn refusal(pair: Pair, seed: u64) -> Option<String> {
    let unsayable = UNSAYABLE.iter().find(|(refused, _)| *refused == pair).map(|(_, why)| (*why).to_owned());
    unsayable.or_else(|| setting(pair, seed).plan.validate().err().map(|invalid| invalid.to_string()))
}

/// The load model of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Closed loop, for a number of requests.
    Closed,
    /// Closed loop, for some time.
    Timed,
    /// Open loop, few requests outstanding.
    Open,
    /// Open loop, as many requests outstanding as are due.
    Unlimited,
    /// A recording, closed loop or open.
    Replay,
    /// A trace that is read while the run goes on, at its own times, closed loop or open.
    Trace,
    /// Clients that come when a slot is free.
    ChurnClosed,
    /// Clients that come at a rate.
    ChurnOpen,
    /// Clients that come and go as mcperf's do.
    Sequence,
    /// Clients with windows.
    Windowed,
    /// Any load of which the number of requests is not known beforehand.
    Any,
}

/// A run with two features.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The Plan of the run.
    pub plan: Plan,
    /// The load model of the run.
    pub model: Model,
    /// Whether the servers send beginnings of replies behind whole ones, and do nothing else amiss.
    pub has_tails: bool,
}

/// Independent numbers from a seed.
pub struct Draws {
    stream: Stream,
    drawn: u64,
}

impl Draws {
    /// The numbers of this seed and use.
    pub fn new(seed: u64, purpose: u64) -> Draws {
        Draws { stream: Stream::from_seed(mix(&[seed, purpose])), drawn: 0 }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        below(self.stream.draw(self.drawn), bound)
    }

    /// Returns true once in `times` calls, on average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Draws one of the given values.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Number of requests of a phase that ends by them.
pub const REQUESTS: u64 = 120;

/// Length of a phase that ends by the clock.
const TIME_NS: u64 = 12 * MILLISECOND;

/// Greatest length of a warm-up that is over when its load has settled.
const SETTLE_NS: u64 = 120 * MILLISECOND;

/// The least and the longest time of a phase that ends when a quantile is known: the first look comes after two seconds.
const UNTIL_NS: (u64, u64) = (100 * MILLISECOND, 3_000 * MILLISECOND);

/// Requests and clients per second in open loop.
const RATE: f64 = 6_000.0;
/// Most time in which records are read back.
const AUDIT_NS: u64 = 500 * MILLISECOND;

/// Requests per second of a phase that ends when a quantile is known: about as many as other phases make.
const UNTIL_RATE: f64 = 50.0;
const BIRTHS_RATE: f64 = 1_000.0;

/// Requests of each client that comes and goes.
const CALLS: u64 = 5;

/// The run of a pair with this seed. Also a pair that [`Plan::validate`] refuses has a Plan here.
pub fn setting(pair: Pair, seed: u64) -> Setting {
    let has = |feature: Feature| pair.0 == feature || pair.1 == feature;
    let mut draws = Draws::new(seed, 1);
    let models = models(pair);
    // Few seeds reach every model, and models and protocols in every combination.
    let model = models[(seed % models.len() as u64) as usize];
    let protocols = protocols(pair, model);
    let protocol = protocols[((seed + seed / models.len() as u64) % protocols.len() as u64) as usize];
    let servers = if has(Feature::Servers) || has(Feature::Cluster) { 3 } else { 1 };
    let mut plan = Plan {
        servers: (0..servers).map(|n| format!("127.0.0.{n}:11211")).collect(),
        protocol,
        seed,
        timeout_ns: 5 * MILLISECOND,
        reconnect: has(Feature::Reconnect)
            || has(Feature::Cluster)
            || (!has(Feature::Churn) && draws.once_in(4)),
        data: Data {
            records: draws.one_of(&[4, 20]),
            value_size: Dist::Uniform { low: if draws.once_in(3) { 0.0 } else { 24.0 }, high: 1_600.0 },
            ..Data::default()
        },
        groups: vec![Group { clients: 4, depth: depth(&mut draws), ..Group::default() }],
        baseline: !Draws::new(seed, 500).once_in(4),
        ..Plan::default()
    };
    if has(Feature::Handshake) {
        plan.login = Some(Login { user: "user".to_owned(), password_file: None });
        if protocol.is_resp() {
            plan.database = if has(Feature::Cluster) { 0 } else { draws.one_of(&[0, 0, 3]) };
            plan.login = plan.login.filter(|_| plan.database == 0 || draws.once_in(2));
        }
    }
    if has(Feature::Cluster) {
        plan.route = Route::Cluster;
        plan.cluster.redirects = draws.one_of(&[0, 1, 5, 5]);
        // Some runs wait for less than a wait takes, and some for several.
        plan.timeout_ns = draws.one_of(&[5, 40]) * MILLISECOND;
        // One of three nodes is a replica where reads leave the masters, and one master has none.
        plan.cluster.read_from = draws.one_of(&ReadFrom::ALL);
        if plan.cluster.read_from == ReadFrom::Replica {
            // Each read of a shard without a replica takes a timeout, and those of a silent cluster never end.
            plan.servers.push("127.0.0.3:11211".to_owned());
        }
    } else if has(Feature::Servers)
        && !has(Feature::Churn)
        && !has(Feature::Windows)
        && !matches!(model, Model::Replay | Model::Trace)
    {
        let routes = [Route::All, Route::RoundRobin, Route::Modulo, Route::Ketama, Route::Crc16];
        // Each key has to be on one server to be read back.
        plan.route = draws.one_of(if has(Feature::Audit) { &routes[2..] } else { &routes });
    }
    if has(Feature::Tracking) {
        plan.tracking = Some(Draws::new(seed, 10).one_of(&[Tracking::Keys, Tracking::Broadcast]));
    }
    if has(Feature::Tls) {
        plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
    }
    if has(Feature::Udp) && !has(Feature::Windows) {
        plan.transport = Transport::Udp;
        plan.data.value_size = Dist::Uniform { low: 0.0, high: 1_200.0 };
    }
    if (has(Feature::Verify) || has(Feature::Audit)) && model != Model::Windowed {
        plan.verify = 1.0;
    }
    if has(Feature::Audit) {
        plan.data.value_size = Dist::Uniform { low: 24.0, high: 1_200.0 };
    }
    arrive(&mut plan, model, has(Feature::Churn), &mut draws);
    if has(Feature::Until) && matches!(model, Model::Open | Model::Unlimited) {
        plan.groups[0].rate = Some(UNTIL_RATE);
    }
    let work = work(pair, &plan, model, &mut draws);
    let stop = match model {
        Model::Timed | Model::Open | Model::Unlimited => time(TIME_NS),
        Model::Trace if draws.once_in(3) => Stop { time_ns: None, requests: Some(REQUESTS / 2) },
        Model::Trace => Stop::default(),
        Model::Replay if draws.once_in(2) => Stop::default(),
        Model::ChurnClosed | Model::ChurnOpen | Model::Windowed if draws.once_in(2) => time(TIME_NS),
        Model::Sequence if draws.once_in(2) => Stop { requests: Some(REQUESTS), ..time(TIME_NS) },
        _ => Stop { time_ns: None, requests: Some(REQUESTS) },
    };
    if stop.time_ns.is_some() {
        plan.interval_ns = 10 * MILLISECOND;
    }
    let is_divided = !has(Feature::Audit);
    plan.phases = phases(has(Feature::Phases), is_divided, &plan, model, work, stop, &mut draws);
    if has(Feature::Settle) {
        settle(&mut plan);
    }
    if has(Feature::Evictions) {
        evict(&mut plan, &mut Draws::new(seed, 7));
    }
    if has(Feature::Until) {
        until(&mut plan);
    }
    if has(Feature::Changes) {
        change(&mut plan, &mut draws);
    }
    if has(Feature::Commands) {
        command(&mut plan, &mut Draws::new(seed, 11));
    }
    if has(Feature::Retries) {
        retry(&mut plan, &mut Draws::new(seed, 12));
    }
    change_keys(&mut plan, pair, model, &mut Draws::new(seed, 6));
    place_keys(&mut plan, &mut Draws::new(seed, 8));
    form_values(&mut plan, &mut Draws::new(seed, 10));
    name_inputs(&mut plan, &mut Draws::new(seed, 11));
    if has(Feature::Steps) {
        take_steps(&mut plan, &mut Draws::new(seed, 13));
    }
    if has(Feature::Audit) {
        audit(&mut plan, &mut Draws::new(seed, 9));
    }
    follow_memtier(&mut plan, &mut Draws::new(seed, 14));
    Setting { plan, model, has_tails: false }
}

/// Lets requests be sent again after some errors or all, for less than a wait takes or for several waits.
fn retry(plan: &mut Plan, draws: &mut Draws) {
    let all: Vec<RetryKind> = RetryKind::asked_for().collect();
    let of_replies = all.iter().position(|kind| kind.is_unanswered()).unwrap_or(all.len());
    let replies = &all[..of_replies];
    let wins = plan.mixes().any(|(_, mix)| mix.meta.vivify_s.is_some() || mix.meta.recache_s.is_some());
    let kinds = match draws.below(4) {
        0 => replies,
        1 if !wins => &all[of_replies..],
        _ if wins => replies,
        _ => &all,
    };
    plan.reconnect |= kinds.iter().any(|kind| kind.is_unanswered());
    plan.retry = Some(Retry { kinds: kinds.to_vec(), for_ns: draws.one_of(&[3, 30, 80]) * MILLISECOND });
}

/// Reads back what was stored, after a pause or at once.
fn audit(plan: &mut Plan, draws: &mut Draws) {
    let mut add = |name: &str, work: Work, stop: Stop| {
        plan.phases.push(Phase { name: name.to_owned(), work, stop, recorded: false });
    };
    if draws.once_in(2) {
        add("settle", Work::Pause(Pause { until_ns: 0, for_ns: 5 * MILLISECOND }), Stop::default());
    }
    add("audit", Work::Audit(Audit { depth: draws.one_of(&[1, 8]) }), time(AUDIT_NS));
}

/// Commands of the user, with places and replies of every kind.
pub const COMMANDS: [&str; 13] = [
    "MGET __key__",
    "EXISTS __key__ __key__",
    "GETRANGE __key__ 0 __int:1-9__",
    "SET __key__ __value__:__seq__ XX",
    "NEW.COMMAND __number:12__ __client__ __int.a:1-9__ __int.a__",
    "LRANGE __key__ 0 -1",
    "TTL __key__",
    "HSCAN __key__ 0",
    "APPEND __key__ __value:uniform:1,3000__",
    "MGET __key__ __key2__",
    "MULTI ; INCR __key__:n ; SET __key__ __value__ ; NEW.COMMAND ; EXEC",
    "WATCH __key__ ; MGET __key__ __key2__ ; MULTI ; SET __key__ __value__ ; MGET __key__ __key2__ ; EXEC",
    "GET __key__ ; SET __key__:n __value__ ;; GET __key__:n ; TTL __key__ ;; MULTI ; INCR __key__:m ; EXEC",
];

/// Commands of the user whose transactions wait for replies, so that nothing else may be under way.
const DIVIDED: [&str; 2] = [
    "WATCH __key__ ; GET __key__ ;; MULTI ; SET __key__ __value__ ; EXEC",
    "WATCH __key__ ; GET __key__ ;; MULTI ; GET __key__ ;; MGET __key__ __key2__ ; EXEC ; GET __key__",
];

/// Commands that loads store with.
const LOAD_COMMANDS: [&str; 3] =
    ["SET __key__ __seq__:__value__", "HSET __key__ f __int:1-9__ g __value__", "INCRBY __key__ __number__"];

/// Drawn commands, `count` of them, with names of their own.
pub fn commands(count: u64, draws: &mut Draws) -> Vec<Command> {
    let mut of = |number: u64| {
        let shape = ReplyShape::ALL.get(draws.below(10) as usize).copied();
        let template = draws.one_of(&COMMANDS);
        // A sequence has no hits and misses.
        let expect = shape.filter(|_| !template.contains(';'));
        Command { name: format!("own-{number}"), expect, ..Command::unnamed(template) }
    };
    (0..count).map(&mut of).collect()
}

/// Adds commands of the user to all mixes, some of which ask hardly anything else, and some take turns.
fn command(plan: &mut Plan, draws: &mut Draws) {
    plan.commands = commands(1 + draws.below(3), draws);
    if plan.groups.iter().all(|group| group.depth.is_one()) && draws.once_in(2) {
        plan.commands[0] = Command { name: "own-0".to_owned(), ..Command::unnamed(draws.one_of(&DIVIDED)) };
    }
    let load_command = draws.one_of(&LOAD_COMMANDS).to_owned();
    let loads = draws.once_in(2);
    plan.load_command =
        loads.then(|| LoadCommand { template: load_command, per_record: draws.one_of(&[1, 2, 5]) });
    if matches!(plan.route, Route::Cluster | Route::Crc16) {
        // Several keys of one request have one slot.
        plan.data.key_tag = Some(1_000);
    }
    let (weight, in_turns) = (draws.one_of(&[2.0, 30.0]), draws.once_in(3));
    for phase in &mut plan.phases {
        if let Work::Load(load) = &mut phase.work {
            load.commands |= loads;
        }
        let Work::Mix(mix) = &mut phase.work else { continue };
        mix.ops.extend((0..plan.commands.len()).filter_map(Verb::of_command).map(|verb| (verb, weight)));
        mix.in_turns = in_turns;
    }
}

/// Lets commands of some plans take fields of a dataset, call a script that another command makes servers forget, go in the inline form
/// or have integers of several forms, where the plan can be run with them. All of it is drawn separately, so that other runs do not change because of it.
pub fn name_inputs(plan: &mut Plan, draws: &mut Draws) {
    const OF_ROWS: [&str; 3] = [
        "SET __key__ __field:a__:__field:b__:__seq__",
        "MULTI ; SET __key__ __field:b__ ; EXEC ; GET __key__ ;; APPEND __key__ __field:a__",
        "APPEND __key__ __value:5__<__field:a__>",
    ];
    const OF_SCRIPT: [&str; 4] = [
        "EVALSHA __script__ 1 __key__",
        "EVALSHA __script__ 1 __key__ __number__",
        "GET __key__ ; EVALSHA __script__ 1 __key__ ;; EVALSHA __script__ 1 __key__",
        "MULTI ; EVALSHA __script__ 1 __key__ ; EXEC",
    ];
    let order = draws.one_of(&DatasetOrder::ALL);
    let (of_rows, of_script) = (draws.one_of(&OF_ROWS), draws.one_of(&OF_SCRIPT));
    let (has_rows, has_script, forgets) = (draws.once_in(2), draws.once_in(2), draws.once_in(2));
    let (is_inline, has_digits) = (draws.once_in(3), draws.once_in(4));
    let put = |plan: &mut Plan, place: usize, template: &str| {
        if let Some(command) = plan.commands.get_mut(place) {
            (command.template, command.expect) = (template.to_owned(), None);
        }
    };
    let mut tries = |has: bool, change: &dyn Fn(&mut Plan)| {
        let mut named = plan.clone();
        change(&mut named);
        if has && named.clone().validate().is_ok() {
            *plan = named;
        }
    };
    tries(has_rows, &|plan| {
        plan.dataset = Some(Dataset { path: "rows.csv".to_owned(), order });
        put(plan, 0, of_rows);
    });
    tries(has_script, &|plan| {
        plan.script = Some(Script { path: "a.lua".to_owned(), text: "return 1".to_owned() });
        put(plan, plan.commands.len().wrapping_sub(1), of_script);
    });
    tries(is_inline, &|plan| {
        if let Some(command) = plan.commands.last_mut() {
            (command.template, command.expect, command.inline) = ("PING".to_owned(), None, true);
        }
    });
    tries(has_digits, &|plan| put(plan, 0, "SET {__key__}:__int:000-999__ __int.a:-5-5__:__int.a__"));
    tries(forgets, &|plan| {
        if plan.script.is_some() {
            put(plan, 1, "SCRIPT FLUSH");
        }
    });
}

/// The rows of a drawn plan's dataset: fewer than its clients take, and fields of many lengths.
pub fn rows(plan: &Plan) -> Option<PackedRows> {
    let columns = plan.dataset_fields().len();
    let (mut ends, mut fields) = (Vec::new(), Vec::new());
    for field in 0..7 * columns {
        fields.resize(fields.len() + field * field * 31 % 2_000, b'r');
        ends.extend((fields.len() as u64).to_le_bytes());
    }
    PackedRows::new(columns, Arc::new(ends), Arc::new(fields))
}

/// Gives the keys of some plans a hash tag, and lets some lie in chosen slots, where the plan can be run with them. All of it is drawn
/// separately, so that other runs do not change because of it.
pub fn place_keys(plan: &mut Plan, draws: &mut Draws) {
    let mut placed = plan.clone();
    placed.data.key_tag = draws.once_in(2).then(|| draws.one_of(&[1, 4, 7, 1_000]));
    if draws.once_in(3) {
        let ranges: &[&str] = draws.one_of(&[&["0-8191"], &["5461-10922", "16383"], &["16000-16383"]]);
        placed.data.slots = ranges.iter().map(|range| range.parse().expect("a range")).collect();
    }
    if placed.clone().validate().is_ok() {
        *plan = placed;
    }
}

/// The mix that requests are drawn from, if this is the work of a phase.
fn mix_of(work: &mut Work) -> Option<&mut Mix> {
    match work {
        Work::Mix(mix) => Some(mix),
        _ => None,
    }
}

/// Gives some plans the rules of memtier_benchmark, each where the plan can be run with it. All of it is drawn separately, so that other
/// runs do not change because of it.
pub fn follow_memtier(plan: &mut Plan, draws: &mut Draws) {
    let mut follow = |rule: &dyn Fn(&mut Plan)| {
        let mut following = plan.clone();
        rule(&mut following);
        if following.clone().validate().is_ok() {
            *plan = following;
        }
    };
    if draws.once_in(2) {
        let first_key = draws.one_of(&[0, 1, 95, 5_000_000_000]);
        follow(&|plan| (plan.data.style.keys, plan.data.first_key) = (KeyStyle::Unpadded, first_key));
    }
    if draws.once_in(3) {
        follow(&|plan| plan.groups.iter_mut().for_each(|group| group.policy.same_draws = true));
    }
    if draws.once_in(3) {
        follow(&|plan| plan.data.value_filler = Some('x'));
    }
    if draws.once_in(3) {
        follow(&|plan| {
            for mix in plan.phases.iter_mut().filter_map(|phase| mix_of(&mut phase.work)) {
                mix.ops.iter_mut().for_each(|(_, weight)| *weight = weight.ceil());
                mix.ops.extend_from_within(..);
                mix.in_turns = true;
            }
        });
    }
    if draws.once_in(3) {
        let size = draws.one_of(&[1, 2, 7, 40]);
        follow(&|plan| plan.groups[0].arrivals = Arrivals::Bursts(size));
    }
    for _ in 0..draws.below(3) {
        let popularity = match draws.below(5) {
            0 => Popularity::Normal { median: 1.0, deviation: 2.5 },
            1 => Popularity::SequentialShares,
            2 => Popularity::Sequential,
            3 => Popularity::Zipf { exponent: 0.99 },
            _ => Popularity::SequentialEach,
        };
        let place = draws.below(4) as usize;
        follow(&|plan| {
            for mix in plan.phases.iter_mut().filter_map(|phase| mix_of(&mut phase.work)) {
                match mix.ops.get(place) {
                    Some((verb, _)) => mix.popularity_of.push((*verb, popularity.clone())),
                    None => mix.popularity = popularity.clone(),
                }
            }
        });
    }
}

/// Lets the values of some plans compress, and makes some so long that they are made anew for each call that sends a part of one,
/// where the plan can be run with such values. All of it is drawn separately, so that other runs do not change because of it.
pub fn form_values(plan: &mut Plan, draws: &mut Draws) {
    let mut formed = plan.clone();
    if draws.once_in(2) {
        formed.data.value_compress = draws.one_of(&[1.3, 2.0, 10.0]);
    }
    if draws.once_in(6) {
        formed.data.value_size = Dist::Uniform { low: 1_900.0, high: draws.one_of(&[2_200.0, 9_000.0]) };
    }
    if formed.clone().validate().is_ok() {
        *plan = formed;
    }
}

/// Makes the keys of records change, or become hot and be lost, and lets some runs fill what they miss by adds after a
/// drawn delay. All of it is drawn separately, so that other runs do not change because of it.
fn change_keys(plan: &mut Plan, pair: Pair, model: Model, draws: &mut Draws) {
    let has = |feature: Feature| pair.0 == feature || pair.1 == feature;
    let is_add = has(Feature::ReadThrough) && draws.once_in(2);
    let delay = draws.once_in(2).then_some(Dist::Exponential { mean: 0.0005 });
    let churn = has(Feature::KeyChurn).then(|| key_churn(has(Feature::Events), model, draws));
    for phase in &mut plan.phases {
        let Work::Mix(mix) = &mut phase.work else { continue };
        mix.churn.clone_from(&churn);
        if is_add && mix.read_through_ns.is_some() {
            mix.fill = Fill::Add;
            mix.fill_delay_s.clone_from(&delay);
        }
    }
    if let Some(part) = plan.changes.parts.last_mut()
        && churn.as_ref().is_some_and(|churn| !churn.counts_requests())
    {
        part.churn = Some(KeyChurn::Seconds(Dist::Fixed(0.001)));
    }
    if has(Feature::Events) {
        if let Some(measured) = plan.phases.iter().position(|phase| phase.recorded) {
            plan.phases.truncate(measured + 1);
        }
        plan.changes.events = events(plan, draws);
    }
}

/// Draws the time for which records keep their keys: in seconds, where the time of requests is known and has to be, or
/// in requests.
fn key_churn(loses_records: bool, model: Model, draws: &mut Draws) -> KeyChurn {
    let is_open = matches!(model, Model::Open | Model::Unlimited | Model::ChurnOpen);
    if is_open && (loses_records || draws.once_in(2)) {
        let lives = [Dist::Fixed(0.004), Dist::Exponential { mean: 0.002 }, Dist::Fixed(0.1)];
        return KeyChurn::Seconds(lives[draws.below(3) as usize].clone());
    }
    match draws.below(3) {
        0 => KeyChurn::Requests(Dist::Exponential { mean: 20.0 }),
        _ => KeyChurn::Share(draws.one_of(&[0.02, 1.0])),
    }
}

/// Draws hot keys, new ones and records, deletions and expiries, which overlap.
fn events(plan: &Plan, draws: &mut Draws) -> Vec<Event> {
    let last = plan.data.records - 1;
    let key = if draws.once_in(2) { HotKey::New } else { HotKey::Rank(draws.below(last + 1)) };
    let share = draws.one_of(&[0.4, 1.0]);
    let crowd = FlashCrowd {
        key,
        share,
        rise_ns: draws.below(2) * 2 * MILLISECOND,
        hold_ns: 4 * MILLISECOND,
        fall_ns: draws.below(2) * 2 * MILLISECOND,
    };
    let ranks = |draws: &mut Draws| {
        let first = draws.below(last + 1);
        RankRange { first, last: first + draws.below(last + 1 - first) }
    };
    let at = |draws: &mut Draws, what: EventKind| Event { at_ns: draws.below(TIME_NS), what };
    let (deleted, expired) = (EventKind::Delete(ranks(draws)), EventKind::Expire(ranks(draws)));
    vec![at(draws, EventKind::Hot(crowd)), at(draws, deleted), at(draws, expired)]
}

/// Makes the measured phase end when half of the response times are known to be below a time; some runs reach that.
fn until(plan: &mut Plan) {
    plan.interval_ns = 100 * MILLISECOND;
    plan.adaptive.until = Some(Until { quantile: 0.5, half_width: 0.5, least_ns: UNTIL_NS.0 });
    let Some(at) = plan.phases.iter().position(|phase| phase.recorded) else { return };
    plan.phases[at].stop = time(UNTIL_NS.1);
    plan.phases.truncate(at + 1);
}

/// Makes the phase before the measured one end when its load has settled.
fn settle(plan: &mut Plan) {
    plan.adaptive.settle = Some(Settle { discard_ns: 10 * MILLISECOND, block_ns: 20 * MILLISECOND });
    warm_up(plan, SETTLE_NS);
}

/// Makes the phase before the measured one end when a server has evicted a record, which no simulated server reports
/// before it is over, and lets records expire or be stored when they are missed.
fn evict(plan: &mut Plan, draws: &mut Draws) {
    plan.adaptive.first_eviction = true;
    if draws.once_in(2) {
        plan.data.expiry_s = Dist::Fixed(draws.one_of(&[1.0, 1_000.0]));
    }
    for phase in &mut plan.phases {
        let Work::Mix(mix) = &mut phase.work else { continue };
        if mix.read_through_ns.is_none() && draws.once_in(2) {
            mix.read_through_ns = Some(MILLISECOND / 10);
        }
    }
    warm_up(plan, SETTLE_NS / 4);
}

/// Puts a warm-up of the same requests and of this time at most before the measured phase, in the place of any other.
fn warm_up(plan: &mut Plan, time_ns: u64) {
    plan.interval_ns = 10 * MILLISECOND;
    plan.phases.retain(|phase| phase.recorded || matches!(phase.work, Work::Load(_)));
    let Some(at) = plan.phases.iter().position(|phase| phase.recorded) else { return };
    let work = plan.phases[at].work.clone();
    let warm_up = Phase { name: "warmup".to_owned(), work, stop: time(time_ns), recorded: false };
    plan.phases.insert(at, warm_up);
    plan.phases.truncate(at + 2);
}

/// Makes the rate of the measured phase change.
fn change(plan: &mut Plan, draws: &mut Draws) {
    if let Some(measured) = plan.phases.iter().position(|phase| phase.recorded) {
        plan.phases.truncate(measured + 1);
    }
    let points = |points: &[(u64, f64)]| {
        let point = |&(at_ns, share): &(u64, f64)| RatePoint { at_ns, rate: share * RATE };
        RateShape::Points(points.iter().map(point).collect())
    };
    let sine = Sine { mean: RATE, amplitude: 0.9 * RATE, period_ns: 10 * MILLISECOND, start: 0.5 };
    let (early, late) = (TIME_NS / 4, TIME_NS / 2);
    let shape = match draws.below(4) {
        0 => points(&[(0, 0.0), (TIME_NS, 2.0)]),
        1 => points(&[(0, 1.0), (early, 3.0), (early, 0.0), (late, 0.0), (late, 1.0)]),
        2 => points(&[(0, 2.0), (late, 0.0)]),
        _ => RateShape::Sine(sine),
    };
    if let Some(rate) = &mut plan.groups[0].rate {
        *rate = RateCurve::of(&shape).mean_until(TIME_NS);
    }
    let states = BurstStates { factor: 3.0, on_ns: MILLISECOND, off_ns: 3 * MILLISECOND };
    let burst = draws.once_in(2).then_some(Burst::States(states));
    let part = |at_ns| Part::plain(format!("from {at_ns}"), at_ns);
    let parts = if draws.once_in(2) { vec![part(0), part(early), part(late)] } else { Vec::new() };
    plan.changes = Changes { rate: Some(shape), burst, parts, ..Changes::default() };
}

/// Makes the number of connections change, up and down.
fn take_steps(plan: &mut Plan, draws: &mut Draws) {
    if let Some(measured) = plan.phases.iter().position(|phase| phase.recorded) {
        plan.phases.truncate(measured + 1);
    }
    plan.groups[0].clients = 7;
    if plan.changes.parts.is_empty() {
        let part = |at_ns| Part::plain(format!("from {at_ns}"), at_ns);
        plan.changes.parts = (0..draws.one_of(&[2, 4])).map(|at| part(at * TIME_NS / 4)).collect();
    }
    for part in &mut plan.changes.parts {
        part.connections = draws.one_of(&[Some(1), Some(3), Some(6), None]);
    }
    plan.changes.parts[0].connections = Some(draws.one_of(&[1, 4, 7]));
}

/// The load models that a pair can have.
fn models(pair: Pair) -> Vec<Model> {
    let has = |feature: Feature| pair.0 == feature || pair.1 == feature;
    let any = |features: &[Feature]| features.iter().any(|feature| has(*feature));
    if has(Feature::Windows) {
        return vec![Model::Windowed];
    }
    if has(Feature::Trace) {
        return vec![Model::Trace];
    }
    if has(Feature::Churn) {
        let mut models = vec![Model::ChurnClosed, Model::ChurnOpen];
        let others =
            [Feature::Verify, Feature::MultiGet, Feature::ReadThrough, Feature::Phases, Feature::Unstored];
        let asks_otherwise = [
            Feature::Dependent,
            Feature::KeyChurn,
            Feature::Events,
            Feature::Cluster,
            Feature::Tracking,
            Feature::Commands,
        ];
        if !any(&others) && !any(&asks_otherwise) {
            models.push(Model::Sequence);
        }
        return models;
    }
    if has(Feature::Until) || has(Feature::Changes) || has(Feature::Events) {
        return vec![Model::Open, Model::Unlimited];
    }
    if has(Feature::Settle) || has(Feature::Evictions) || has(Feature::Steps) {
        return vec![Model::Timed, Model::Open, Model::Unlimited];
    }
    let mut models = vec![Model::Closed, Model::Timed, Model::Open, Model::Unlimited];
    let mixed = [
        Feature::Audit,
        Feature::Udp,
        Feature::MultiGet,
        Feature::Noreply,
        Feature::Verify,
        Feature::Unstored,
    ];
    let drawn =
        [Feature::Dependent, Feature::KeyChurn, Feature::Cluster, Feature::Commands, Feature::Retries];
    if !any(&mixed) && !any(&drawn) {
        models.push(Model::Replay);
    }
    models
}

/// The protocols that a pair can have.
fn protocols(pair: Pair, model: Model) -> Vec<Protocol> {
    let has = |feature: Feature| pair.0 == feature || pair.1 == feature;
    match model {
        Model::Sequence => vec![Protocol::Text],
        _ if has(Feature::Udp) => vec![Protocol::Text],
        _ if has(Feature::Tracking) => vec![Protocol::Resp3],
        _ if has(Feature::Cluster) || has(Feature::Commands) => vec![Protocol::Resp2, Protocol::Resp3],
        Model::Windowed => vec![Protocol::Text, Protocol::Binary],
        _ if has(Feature::Noreply) => vec![Protocol::Text, Protocol::Meta, Protocol::Binary],
        _ => vec![Protocol::Text, Protocol::Meta, Protocol::Binary, Protocol::Resp2, Protocol::Resp3],
    }
}

/// Draws the arrivals of requests and clients.
fn arrive(plan: &mut Plan, model: Model, is_crowd: bool, draws: &mut Draws) {
    let arrivals = draws.one_of(&[Arrivals::Constant, Arrivals::Poisson].each_ref()).clone();
    let group = &mut plan.groups[0];
    let crowd = |births, sequence| Some(ChurningClients { spawns: births, calls: CALLS, sequence });
    match model {
        // A pair that is refused has both.
        Model::Windowed if is_crowd => group.churn = crowd(Spawns::Closed, None),
        Model::Closed | Model::Timed | Model::Windowed | Model::Any => {}
        Model::Replay if draws.once_in(2) => {}
        Model::Trace => match draws.below(3) {
            0 => group.arrivals = Arrivals::Trace,
            1 => {}
            _ => (group.arrivals, group.rate) = (arrivals, Some(RATE)),
        },
        Model::Open | Model::Unlimited | Model::Replay => {
            (group.arrivals, group.rate) = (arrivals, Some(RATE));
            if model == Model::Unlimited {
                group.depth = Depth::Unlimited;
            }
        }
        Model::ChurnClosed => group.churn = crowd(Spawns::Closed, None),
        Model::ChurnOpen => group.churn = crowd(Spawns::Open { arrivals, rate: BIRTHS_RATE }, None),
        Model::Sequence => {
            let calls = if draws.once_in(2) { Some(Gap::Fixed(0.001)) } else { None };
            let sequence = Sequence {
                instance: 0,
                calls,
                sizes: Gap::Uniform(1.0, 16.0),
                stride: 1,
                offset: 0,
                bogus: draws.once_in(4),
            };
            plan.data.key_prefix = "mcp:".to_owned();
            group.clients = 1_000;
            group.depth = if calls.is_some() { Depth::Unlimited } else { Depth::Limit(1) };
            group.churn = crowd(Spawns::Drawn(Gap::Exponential(0.001)), Some(sequence));
        }
    }
}

/// The verbs that memcached has beside get and set, in its text protocol; the binary one lacks the last.
const MEMCACHED_VERBS: [Verb; 14] = [
    Verb::Gets,
    Verb::Gat,
    Verb::Gats,
    Verb::Add,
    Verb::Replace,
    Verb::Append,
    Verb::Prepend,
    Verb::Cas,
    Verb::Cas,
    Verb::Cas,
    Verb::Incr,
    Verb::Decr,
    Verb::Delete,
    Verb::Touch,
];

/// The work of a phase.
fn work(pair: Pair, plan: &Plan, model: Model, draws: &mut Draws) -> Work {
    let has = |feature: Feature| pair.0 == feature || pair.1 == feature;
    let read_through_ns = has(Feature::ReadThrough).then(|| draws.one_of(&[0, MILLISECOND / 10]));
    match model {
        Model::Windowed => return Work::Window(window(pair, draws)),
        Model::Trace => return Work::Trace(Box::new(trace_replay(plan, read_through_ns, draws))),
        Model::Replay => {
            return Work::Replay(Replay {
                path: "recorded".to_owned(),
                format: 0,
                read_through_ns,
                reads_only: false,
            });
        }
        Model::Sequence => {
            let crowd = plan.groups[0].churn.as_ref().and_then(|crowd| crowd.sequence.as_ref());
            let bogus = crowd.is_some_and(|sequence| sequence.bogus);
            let verb = if bogus || has(Feature::Noreply) {
                Verb::Set
            } else {
                draws.one_of(&[Verb::Set, Verb::Get])
            };
            return Work::Mix(Mix { noreply: has(Feature::Noreply), ..Mix::of(&[(verb, 1.0)]) });
        }
        _ => {}
    }
    let several = has(Feature::MultiGet);
    let mut ops = vec![(Verb::Get, 3.0), (Verb::Set, 2.0)];
    let more: &[Verb] = match plan.protocol {
        Protocol::Text | Protocol::Meta => &MEMCACHED_VERBS,
        Protocol::Binary => &MEMCACHED_VERBS[..MEMCACHED_VERBS.len() - 1],
        // Also a scan asks for several keys.
        protocol if protocol.is_resp() && (several || has(Feature::Dependent)) => {
            &[Verb::Add, Verb::Append, Verb::Incr, Verb::Delete, Verb::Mset]
        }
        protocol if protocol.is_resp() => &[
            Verb::Gat,
            Verb::Add,
            Verb::Replace,
            Verb::Append,
            Verb::Incr,
            Verb::Decr,
            Verb::Delete,
            Verb::Touch,
            Verb::Hget,
            Verb::Hset,
            Verb::Mset,
        ],
        // A protocol without a list of its own is read and stored.
        _ => &[],
    };
    // What is read back is stored whole, and nothing else changes it.
    let is_whole = |verb: &Verb| {
        let others =
            [Verb::Append, Verb::Prepend, Verb::Incr, Verb::Decr, Verb::Delete, Verb::Hget, Verb::Hset];
        !has(Feature::Audit) || !others.contains(verb)
    };
    let more: Vec<Verb> = more.iter().copied().filter(is_whole).collect();
    // Half of the runs only read and store, so that each verdict has its chance.
    if draws.once_in(2) {
        let (one, other) = (draws.one_of(&more), draws.one_of(&more));
        ops.push((one, 1.0));
        ops.extend((other != one).then_some((other, 1.0)));
    }
    let mut dependent = Mix::of(&[]);
    if has(Feature::Dependent) {
        depend(&mut dependent, &mut ops, !has(Feature::KeyChurn) && !has(Feature::Audit), draws);
    }
    let is_latest = matches!(dependent.popularity, Popularity::Latest { .. });
    let several_sets = ops.iter().any(|(verb, _)| *verb == Verb::Mset) && !is_latest;
    let multiset = if several_sets { draws.one_of(&[1, 4]) } else { 1 };
    let multiget = if several { draws.one_of(&[2, 5, 12]) } else { dependent.multiget };
    let (fresh, absent) = match has(Feature::Unstored) {
        true => draws.one_of(&[(0.4, 0.0), (0.0, 0.4), (0.3, 0.3), (1.0, 0.0)]),
        false => (0.0, 0.0),
    };
    Work::Mix(Mix {
        multiget,
        read_through_ns,
        noreply: has(Feature::Noreply),
        multiset,
        fresh,
        absent,
        ops,
        ..dependent
    })
}

/// Makes requests of a mix depend on each other. `inserts`: adds may store records of their own, beside which keys do not change.
fn depend(mix: &mut Mix, ops: &mut Vec<(Verb, f64)>, inserts: bool, draws: &mut Draws) {
    match draws.below(if inserts { 3 } else { 2 }) {
        0 => mix.read_modify_write = draws.one_of(&[0.5, 1.0]),
        1 => (mix.scans, mix.multiget) = (true, draws.one_of(&[3, 12])),
        _ => {
            mix.popularity = Popularity::Latest { exponent: 0.99 };
            mix.read_modify_write = draws.one_of(&[0.0, 0.5]);
        }
    }
    if inserts && draws.once_in(2) {
        mix.inserts = true;
        ops.retain(|(verb, _)| *verb != Verb::Add);
        ops.push((Verb::Add, 2.0));
    }
}

/// The replay of the trace of [`trace_text`](crate::scenes::trace_text), in every way that the arrivals of the plan allow.
fn trace_replay(plan: &Plan, read_through_ns: Option<u64>, draws: &mut Draws) -> TraceReplay {
    let group = &plan.groups[0];
    let pace = match (&group.arrivals, group.rate) {
        (Arrivals::Trace, _) => TracePace::Trace { speed: draws.one_of(&[0.5, 1.0, 3.0]) },
        (_, Some(_)) => TracePace::Rate,
        _ => TracePace::Fast,
    };
    let delay = draws.once_in(2).then_some(Dist::Exponential { mean: 0.0005 });
    TraceReplay {
        by: draws.one_of(&[None, Some(DealBy::Key), Some(DealBy::Row)]),
        within_second: draws.one_of(&[WithinSecond::Spread, WithinSecond::Poisson, WithinSecond::Burst]),
        ttl: draws.one_of(&[TraceTtl::Scale, TraceTtl::Keep, TraceTtl::None]),
        passes: draws.one_of(&[1, 1, 2]),
        fresh_passes: draws.once_in(2),
        sample: draws.one_of(&[1.0, 1.0, 0.5]),
        amplify: draws.one_of(&[1, 1, 2]),
        fills: if read_through_ns.is_some() { Fills::Own } else { Fills::Recorded },
        fill_delay_ns: read_through_ns.unwrap_or(0),
        fill_delay_s: delay.filter(|_| read_through_ns.is_some()),
        ..TraceReplay::of(vec!["trace".to_owned()], pace, 10_000)
    }
}

fn window(pair: Pair, draws: &mut Draws) -> Window {
    let has = |feature: Feature| pair.0 == feature || pair.1 == feature;
    Window {
        seed: 7,
        objects: 20,
        keys: vec![Lengths { start: 16, end: 40, share: 1.0 }],
        values: vec![Lengths { start: 1, end: 900, share: 1.0 }],
        set: 0.3,
        get: 0.7,
        multiget: if has(Feature::MultiGet) { draws.one_of(&[2, 5]) } else { 1 },
        overwrite: draws.one_of(&[0.0, 0.5]),
        verify: if has(Feature::Verify) { 1.0 } else { draws.one_of(&[0.0, 1.0]) },
        expire: 0.0,
        verbose: draws.once_in(2),
        preset: false,
        pool: Pool {
            sockets: draws.one_of(&[1, 2]),
            block: 1,
            datagrams: has(Feature::Udp),
            replication: None,
        },
    }
}

/// The phases of a run: the measured one alone, or behind loading and a warm-up.
fn phases(
    all: bool,
    may_delete: bool,
    plan: &Plan,
    model: Model,
    work: Work,
    stop: Stop,
    draws: &mut Draws,
) -> Vec<Phase> {
    let phase = |name: &str, work: Work, stop: Stop, recorded: bool| Phase {
        name: name.to_owned(),
        work,
        stop,
        recorded,
    };
    let mut phases = Vec::new();
    match &work {
        Work::Window(window) if all => {
            let preset = Window { preset: true, ..window.clone() };
            phases.push(phase("preset", Work::Window(preset), Stop::default(), false));
        }
        // What is checked, read in numbers or appended to has to be there, or hardly anything is asked of it.
        Work::Mix(mix) if model != Model::Sequence && (all || draws.once_in(3)) => {
            let asks = |wanted: &[Verb]| mix.ops.iter().any(|(verb, _)| wanted.contains(verb));
            let load = Load {
                depth: draws.one_of(&[1, 8]),
                pieces: asks(&[Verb::Append, Verb::Prepend]),
                counters: asks(&[Verb::Incr, Verb::Decr]),
                hashes: asks(&[Verb::Hget, Verb::Hset]),
                ..Load::default()
            };
            phases.push(phase("load", Work::Load(load), Stop::default(), false));
        }
        Work::Replay(_) | Work::Trace(_) if all => {
            let load = Load { depth: 4, ..Load::default() };
            phases.push(phase("load", Work::Load(load), Stop::default(), false));
        }
        _ => {}
    }
    if all && !matches!(work, Work::Replay(_)) {
        let is_timed = !matches!(&work, Work::Trace(replay) if replay.pace == TracePace::Fast);
        let warmup = if is_timed && draws.once_in(2) {
            time(TIME_NS / 2)
        } else {
            Stop { time_ns: None, requests: Some(40) }
        };
        phases.push(phase("warmup", work.clone(), warmup, false));
    }
    phases.push(phase("measure", work.clone(), stop, true));
    let divides = plan.route == Route::All
        && plan.transport == Transport::Stream
        && matches!(model, Model::Timed | Model::Open | Model::Unlimited);
    if all && may_delete && divides && draws.once_in(2) {
        let delete = Delete { share: 0.5, depth: 2 };
        phases.push(phase("delete", Work::Delete(delete), Stop::default(), true));
        phases.push(phase("measure again", work, stop, true));
    }
    phases
}

fn time(ns: u64) -> Stop {
    Stop { time_ns: Some(ns), requests: None }
}
