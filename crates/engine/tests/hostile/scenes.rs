//! A hostile run: the Plan of a pair, the server that misbehaves, the network between them, and the result.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, Once, OnceLock};

use pummel_engine::backend::sim::{NetworkConditions, Peer, Sim};
use pummel_engine::backend::tls::{Setup, Tls};
use pummel_engine::run::{Inputs, TraceFiles};
use pummel_logic::cluster::slot_of;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Phase, Plan, Protocol, Route, TlsOptions, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::secrets::Secret;
use pummel_logic::workload::key::{KEY_MAX_BYTES, KeyMaker};
use pummel_logic::workload::trace::Trace;
use pummel_testserver::{Limits, ServerConfig, ServerLogin};

use crate::authority::Authority;
use crate::bounded::{Bounded, Spent};
use crate::faults::{Facts, Hostile, Misbehaviour, Mischief};
use crate::features::{Draws, Model, Pair, REQUESTS, Setting, rows, setting};
use crate::invariants::{Run, broken, limits};
use crate::peer::{Cluster, SharedServer, one_store};
use crate::replies::Wire;
use crate::secured::Secured;
use crate::setup::{Outcome, run_with_inputs};
use crate::watch::watch;

/// The name of a run, from which everything in the run follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub pair: Pair,
    pub fault: Misbehaviour,
    pub seed: u64,
}

impl fmt::Display for Case {
    /// The name in the form that `cargo xtask hostile` takes.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = self.pair;
        write!(
            to,
            "--pair {},{} --fault {} --seed {}",
            one.name(),
            other.name(),
            self.fault.name(),
            self.seed
        )
    }
}

/// The name of any run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A run against servers that misbehave.
    Hostile(Case),
    /// The run of a plan that was drawn with this seed.
    Drawn(u64),
}

impl fmt::Display for Name {
    /// The name in the form that `cargo xtask hostile` takes.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Hostile(case) => case.fmt(to),
            Name::Drawn(seed) => write!(to, "--plan {seed}"),
        }
    }
}

impl Name {
    fn seed(self) -> u64 {
        match self {
            Name::Hostile(case) => case.seed,
            Name::Drawn(seed) => seed,
        }
    }
}

/// The results of several runs.
#[derive(Default)]
pub struct Tally {
    runs: u64,
    /// Runs in which the server misbehaved.
    struck: u64,
    pub findings: Vec<String>,
}

/// The result of one run.
pub struct Result {
    pub findings: Vec<String>,
    struck: bool,
    /// Messages that no request asked for and that a reply followed.
    pub pushes: u64,
}

impl Tally {
    pub fn add(&mut self, case: Case, result: Result) {
        self.runs += 1;
        self.struck += u64::from(result.struck);
        self.findings.extend(result.findings.into_iter().map(|finding| format!("{case}: {finding}")));
    }

    pub fn line(&self, (one, other): Pair, fault: Misbehaviour) -> String {
        format!(
            "pair={},{} fault={} runs={} struck={} findings={}",
            one.name(),
            other.name(),
            fault.name(),
            self.runs,
            self.struck,
            self.findings.len()
        )
    }
}

/// Makes a run. Returns its result, with the invariants that do not hold.
pub fn run(case: Case) -> Result {
    let (mut setting, mischief) = scene(case);
    setting.has_tails = case.fault == Misbehaviour::Tail;
    run_named(Name::Hostile(case), &setting, &mischief)
}

/// Makes the run of this setting. Returns its result, with the invariants that do not hold.
pub fn run_named(case: Name, setting: &Setting, mischief: &Mischief) -> Result {
    let facts = Arc::new(Mutex::new(Facts::default()));
    let spent = Arc::new(Mutex::new(Spent::default()));
    watch_panics();
    let trace_rows = trace().len();
    // That a worker's thread has panicked is no news of this one.
    CASE.set(Some(case));
    let watched = watch(case);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| outcome(case, setting, mischief, &facts, &spent)));
    drop(watched);
    CASE.set(None);
    let told = PANICS.lock().expect("telling does not panic").remove(&case);
    let (facts, spent) = (of(&facts), of(&spent));
    // A worker that panics ends its run with an error, and is found by its words.
    let findings = match (told, outcome) {
        (Some(words), _) => vec![format!("it panics: {words}")],
        (None, Err(panic)) => vec![format!("it panics: {}", words_of(&*panic))],
        (None, Ok(outcome)) => {
            broken(&Run { setting, trace_rows, outcome: &outcome, facts: &facts, spent: &spent })
        }
    };
    let about = format!(
        " [{:?} {:?} {:?} {mischief:?}]",
        setting.plan.protocol, setting.model, setting.plan.groups[0].depth
    );
    Result {
        findings: findings.into_iter().map(|finding| finding + &about).collect(),
        struck: facts.strikes > 0,
        pushes: facts.pushes_followed,
    }
}

/// The figures of a run that do not depend on the real machine, as text.
pub fn figures(case: Case) -> String {
    let (setting, mischief) = scene(case);
    let (facts, spent) = (Arc::default(), Arc::default());
    let mut outcome = outcome(Name::Hostile(case), &setting, &mischief, &facts, &spent);
    outcome.measurement.started_unix_ns = 0;
    outcome.measurement.generator = Default::default();
    format!("{:?} {:?}", outcome.measurement, outcome.rows)
}

fn of<T: Clone>(shared: &Mutex<T>) -> T {
    shared.lock().unwrap_or_else(|broken| broken.into_inner()).clone()
}

fn scene(case: Case) -> (Setting, Mischief) {
    let mut setting = setting(case.pair, case.seed);
    let mut mischief = Mischief::new(case.fault, case.seed, setting.plan.servers.len());
    let plan = &mut setting.plan;
    mischief.slots = slots(plan);
    mischief.tracks_behind = tracks_behind(plan);
    if mischief.refuses_greetings() && plan.protocol.is_resp() && plan.login.is_none() && plan.database != 0 {
        plan.database = 99;
    }
    if case.fault == Misbehaviour::Fields && setting.model != Model::Sequence && !plan.protocol.is_resp() {
        read_for_a_cas(plan);
    }
    // A server that is silent for ever is given up long before so many requests have waited for it. Of one that has to
    // answer nothing, silence is not known, and mcperf's connections come when they are due, whatever became of others.
    let waits = |phase: &Phase| {
        let asks = !matches!(&phase.work, Work::Mix(mix) if mix.noreply);
        asks && setting.model != Model::Sequence
    };
    let last = plan.phases.last_mut().expect("a plan has phases");
    if mischief.is_total() && last.stop.time_ns.is_none() && last.stop.requests.is_some() && waits(last) {
        last.stop.requests = Some(ENDLESS);
    }
    (setting, mischief)
}

/// Number of replies to the handshake of a plan that asks for messages about changed keys; `None` where it asks for none.
fn tracks_behind(plan: &Plan) -> Option<u64> {
    plan.tracking?;
    let reads_replicas = plan.route == Route::Cluster && plan.cluster.read_from.asks_replicas();
    // HELLO, which has the login, and CLIENT TRACKING.
    Some(2 + u64::from(plan.database != 0) + u64::from(reads_replicas))
}

/// The slots of the keys of a plan's records.
fn slots(plan: &Plan) -> Vec<u16> {
    let keys = KeyMaker::new(&plan.data).expect("the keys are short");
    let mut buffer = [0; KEY_MAX_BYTES];
    (0..plan.data.records).map(|index| slot_of(keys.key(index, &mut buffer))).collect()
}

/// Adds cas to every mix, since the CAS unique is the field on which most depends.
fn read_for_a_cas(plan: &mut Plan) {
    for phase in &mut plan.phases {
        if let Work::Mix(mix) = &mut phase.work
            && mix.ops.iter().all(|(verb, _)| *verb != Verb::Cas)
        {
            mix.ops.push((Verb::Cas, 2.0));
        }
    }
}

/// Requests of the last phase of a run whose servers all fall silent. The run gives the servers up before it makes this
/// many.
const ENDLESS: u64 = 200_000;

const PASSWORD: &str = "secret";

/// Configuration of the servers.
fn config(plan: &Plan, mischief: &Mischief, draws: &mut Draws) -> ServerConfig {
    let password = if mischief.refuses_greetings() { "another" } else { PASSWORD };
    let login = plan.login.as_ref().map(|login| ServerLogin {
        user: login.user.clone().into_bytes(),
        password: password.as_bytes().to_vec(),
    });
    let service_time = draws.one_of(&[0.000_05, 0.000_2, 0.001]);
    // Fewer than there are records.
    let items_max = plan.adaptive.first_eviction.then_some(3);
    ServerConfig {
        limits: Limits { items_max, ..Limits::default() },
        login,
        service_time: Some(Dist::Fixed(service_time)),
        cluster: (plan.route == Route::Cluster).then(one_store),
        seed: plan.seed,
        ..ServerConfig::default()
    }
}

fn outcome(
    case: Name,
    setting: &Setting,
    mischief: &Mischief,
    facts: &Arc<Mutex<Facts>>,
    spent: &Arc<Mutex<Spent>>,
) -> Outcome {
    let plan = &setting.plan;
    let mut draws = Draws::new(case.seed(), 3);
    let config = config(plan, mischief, &mut draws);
    // A request that is sent on finds the same records: what the nodes of a cluster hold is one store.
    let only = (plan.route == Route::Cluster).then(|| SharedServer::new(config.clone()));
    let server = |_| only.clone().unwrap_or_else(|| SharedServer::new(config.clone()));
    let servers: Vec<SharedServer> = plan.servers.iter().map(server).collect();
    // What is encrypted has lengths that are not the same in each run, so that fate would be another.
    let is_calm = plan.tls.is_some() || draws.once_in(2);
    let breaks = matches!(case, Name::Drawn(seed) if seed % 3 == 0);
    let conditions = match is_calm {
        true => NetworkConditions::calm(),
        false if breaks => NetworkConditions::harsh(),
        false => NetworkConditions::rough(),
    };
    let limits = limits(plan, trace().len(), mischief.is_total());
    let wire = match plan.protocol {
        Protocol::Binary => Wire::Binary,
        protocol if protocol.is_resp() => Wire::Resp,
        _ => Wire::Text,
    };
    let inputs = Inputs {
        password: plan.login.as_ref().map(|_| Secret::new(PASSWORD)),
        trace: plan.replays().then(|| Arc::clone(trace())),
        files: plan.trace().map(|_| Arc::new(TraceText) as Arc<dyn TraceFiles>),
        rows: rows(plan),
        ..Inputs::default()
    };
    let facts = || Arc::clone(facts);
    let hostile = |wire| Hostile::new(Cluster::new(&servers), mischief.clone(), wire, facts());
    let below = draws.once_in(2);
    // Each backend is made on the worker's thread. One type for all peers: each would be compiled with every codec
    // otherwise.
    let sim = |peer: Box<dyn Peer>| {
        CASE.set(Some(case));
        Sim::new(case.seed(), conditions, peer)
    };
    if plan.tls.is_none() {
        return run_with_inputs(plan, &inputs, |_| {
            Ok(Bounded::new(sim(Box::new(hostile(wire))), limits, Arc::clone(spent)))
        });
    }
    let (setup, server) = tls();
    let server = || Arc::clone(server);
    run_with_inputs(plan, &inputs, |_| {
        let peer: Box<dyn Peer> = if below {
            let secured = Secured::new(Cluster::new(&servers), server());
            Box::new(Hostile::new(secured, mischief.clone(), Wire::Records, facts()))
        } else {
            Box::new(Secured::new(hostile(wire), server()))
        };
        Ok(Bounded::new(Tls::new(sim(peer), setup), limits, Arc::clone(spent)))
    })
}

/// A recording of reads and stores of few keys.
fn trace() -> &'static Arc<Trace> {
    static TRACE: OnceLock<Arc<Trace>> = OnceLock::new();
    TRACE.get_or_init(|| {
        let (mut trace, mut draws) = (Trace::new(), Draws::new(1, 4));
        for _ in 0..REQUESTS {
            let (key, stores) = (draws.below(20), draws.once_in(3));
            assert!(trace.push(format!("recorded:{key}").as_bytes(), 10 + key as u32 * 30, stores));
        }
        Arc::new(trace)
    })
}

/// The only file of a trace, in memory.
struct TraceText;

impl TraceFiles for TraceText {
    fn count(&self) -> usize {
        1
    }

    fn name(&self, _number: usize) -> String {
        "trace".to_owned()
    }

    fn open(&self, _number: usize) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(trace_text().as_bytes())))
    }
}

/// A trace with operations of all kinds for few keys, a row each 0.1 ms, and some lines that are no rows.
pub fn trace_text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let (mut text, mut draws) = ("time_us,key,op,size,ttl,client\n".to_owned(), Draws::new(1, 5));
        let ops =
            ["get", "get", "get", "set", "set", "add", "cas", "delete", "incr", "append", "replace", "touch"];
        for number in 0..REQUESTS {
            let (key, op, client) = (draws.below(20), draws.one_of(&ops), draws.below(6));
            let size = if op == "get" { 0 } else { 10 + key * 30 };
            text += &format!("{},traced:{key},{op},{size},{},{client}\n", number * 100, key % 3);
            if number % 50 == 7 {
                text += "no row,,,\n";
            }
        }
        text
    })
}

/// Setup of the client and configuration of the server for TLS.
fn tls() -> &'static (Setup, Arc<rustls::ServerConfig>) {
    static TLS: OnceLock<(Setup, Arc<rustls::ServerConfig>)> = OnceLock::new();
    TLS.get_or_init(|| {
        let authority = Authority::new();
        let options = TlsOptions { server_name: Some("localhost".to_owned()), ..authority.options() };
        (Setup::new(&options, &[]).expect("the authority has made it all"), authority.server())
    })
}

// ---- Panics ----

thread_local! {
    /// The case that this thread works on.
    static CASE: Cell<Option<Name>> = const { Cell::new(None) };
}

static PANICS: Mutex<BTreeMap<Name, String>> = Mutex::new(BTreeMap::new());

/// Keeps the words of panics on workers' threads, which are lost otherwise.
fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let Some(case) = CASE.get() else { return usual(info) };
            let place = info.location().map_or(String::new(), |place| format!(" at {place}"));
            let words = words_of(info.payload()) + &place;
            PANICS.lock().expect("telling does not panic").entry(case).or_insert(words);
        }));
    });
}

fn words_of(payload: &(dyn Any + Send)) -> String {
    let words = payload.downcast_ref::<&str>().map(|words| words.to_string());
    words.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
