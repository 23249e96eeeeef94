//! From a Plan to a Measurement: the one place that starts workers.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use pummel_logic::arrivals::Pace;
use pummel_logic::client::{Client, Shift};
use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::measure::recorder::Span;
use pummel_logic::plan::{self, Arrivals, Clock, Depth, Phase, Plan, Protocol, Work};
use pummel_logic::rng::Place;
use pummel_logic::shared::{Shared, mates};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND, seconds};
use pummel_logic::wire::binary::Binary;
use pummel_logic::wire::greeting::{self, Greeting};
use pummel_logic::wire::meta::Meta;
use pummel_logic::wire::resp::{Resp2, Resp3};
use pummel_logic::wire::text::Text;
use pummel_logic::wire::{Codec, Refused, Verb};
use pummel_logic::workload::key::{KeyMaker, PrefixTooLong};
use pummel_logic::workload::mix::verbs_of;
use pummel_logic::workload::stale::{RunMark, Writer};
use pummel_logic::workload::value::{ValueMaker, ValueTooLarge};

use crate::clock;
use crate::connect::{self, ConnectError, Server, Sources};
use crate::feed::{Line, Note, PhaseEnd, Row, Trouble, WorkerEnd};
use crate::io::epoll::Epoll;
use crate::io::{Backend, sys};
use crate::log::{Habits, Log, Mode};
use crate::meeting::Meeting;
use crate::tls::{Setup, Tls, TlsError};
use crate::worker::{Crew, Road, Rules, Worker};

/// The drain of a phase lasts at most this long, and at most as long as a request may take.
const DRAIN_MAX_NS: Nanos = SECOND;

/// For how long a server may answer nothing in a phase that no clock ends, in timeouts and at least: while records are
/// stored, and otherwise (also when connections are to be opened again, since servers then may take their time to come
/// back).
const LOAD_PATIENCE: (u64, Nanos) = (3, 3 * SECOND);
const PATIENCE: (u64, Nanos) = (10, 10 * SECOND);

/// Time between the meeting of the workers and the beginning of a phase, so that none is late for it.
const HEAD_START_NS: Nanos = 2 * MILLISECOND;

/// A server that answered nothing for less than this may still be there.
const SILENCE_MIN_NS: Nanos = 100 * MILLISECOND;

/// How often the watching thread looks whether the run is to be stopped.
const WATCH: Duration = Duration::from_millis(20);

/// Who watches over a run while it goes on. All methods are called on the thread that called [`run`].
pub trait Watch {
    /// What is wanted beside the figures.
    fn wants(&self) -> Wants {
        Wants { rows: false, keep: Keep::Figures }
    }

    /// A phase begins, at `at` on the monotonic clock.
    fn begin(&mut self, _phase: &Phase, _at: Nanos) {}

    /// So many requests of a phase that is not recorded have ended, of all that it makes where that is known.
    fn progress(&mut self, _phase: &Phase, _ended: u64, _of: Option<u64>) {}

    /// Another slice of the measured phase is there; it is the last one in the measurement, which has no status yet.
    fn slice(&mut self, _so_far: &Measurement) {}

    /// Requests of the measured phase, raw, in no particular order.
    fn rows(&mut self, _rows: &[Row]) {}
}

/// What a [`Watch`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Every request of the measured phase.
    pub rows: bool,
    /// What the slices keep.
    pub keep: Keep,
}

/// Why a run did not begin.
#[derive(Debug)]
pub enum RunError {
    /// The plan asks for what cannot be.
    Plan(String),
    /// Its connections cannot even be begun.
    Connect(ConnectError),
    /// They cannot be encrypted as it says.
    Tls(TlsError),
    /// The kernel refused something; what it was.
    Kernel(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(what) => to.write_str(what),
            RunError::Connect(error) => error.fmt(to),
            RunError::Tls(error) => error.fmt(to),
            RunError::Kernel(what, error) => write!(to, "{what}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a plan to its end, or until `stop` says so (then what was measured so far is the result).
///
/// # Errors
/// When the run cannot begin. Whatever goes wrong later is in the measurement: its status and reason, and its counts.
pub fn run(plan: &Plan, watch: &mut dyn Watch, stop: &dyn Fn() -> bool) -> Result<Measurement, RunError> {
    let servers = servers_of(plan).map_err(RunError::Connect)?;
    let epoll = || Epoll::new(wait_of(plan), plan.engine.clock, &plan.socket);
    match &plan.tls {
        None => run_at(plan, servers, watch, stop, &|_| epoll()),
        Some(options) => {
            let setup = Setup::new(options, &servers).map_err(RunError::Tls)?;
            run_at(plan, servers, watch, stop, &|_| Ok(Tls::new(epoll()?, &setup)))
        }
    }
}

/// As [`run`], on backends of the caller's making: each worker makes its own on its own thread, from its number.
///
/// # Errors
/// As [`run`].
pub fn run_on<B: Backend>(
    plan: &Plan,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: impl Fn(usize) -> io::Result<B> + Sync,
) -> Result<Measurement, RunError> {
    let servers = servers_of(plan).map_err(RunError::Connect)?;
    run_at(plan, servers, watch, stop, &backend)
}

/// Runs on servers that were found.
fn run_at<B: Backend>(
    plan: &Plan,
    servers: Arc<[Server]>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: &(impl Fn(usize) -> io::Result<B> + Sync),
) -> Result<Measurement, RunError> {
    match plan.protocol {
        Protocol::Text => run_with::<Text, B>(plan, servers, watch, stop, backend),
        Protocol::Meta => run_with::<Meta, B>(plan, servers, watch, stop, backend),
        Protocol::Binary => run_with::<Binary, B>(plan, servers, watch, stop, backend),
        Protocol::Resp2 => run_with::<Resp2, B>(plan, servers, watch, stop, backend),
        Protocol::Resp3 => run_with::<Resp3, B>(plan, servers, watch, stop, backend),
    }
}

/// What all workers of a run are made from.
struct Site<'a> {
    plan: &'a Plan,
    keys: KeyMaker,
    values: ValueMaker,
    servers: Arc<[Server]>,
    greeting: Arc<Greeting>,
    mark: RunMark,
    meeting: Meeting,
    rows: bool,
}

fn run_with<C: Codec, B: Backend>(
    plan: &Plan,
    servers: Arc<[Server]>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: &(impl Fn(usize) -> io::Result<B> + Sync),
) -> Result<Measurement, RunError> {
    let threads = plan.engine.threads as usize;
    connect::ensure_descriptors(connect::connections(plan), plan.engine.threads)
        .map_err(RunError::Connect)?;
    let site = Site {
        plan,
        keys: KeyMaker::new(&plan.data).map_err(|error: PrefixTooLong| RunError::Plan(error.to_string()))?,
        values: ValueMaker::new(&plan.data)
            .map_err(|error: ValueTooLarge| RunError::Plan(error.to_string()))?,
        servers,
        greeting: Arc::new(greeting_of(plan)?),
        mark: RunMark::new(chance()),
        meeting: Meeting::new(threads),
        rows: watch.wants().rows,
    };
    let (notes, heard) = mpsc::channel();
    let mut spares = Vec::with_capacity(threads);
    thread::scope(|scope| {
        for worker in 0..threads {
            let (spare, returned) = mpsc::channel();
            spares.push(spare);
            let line = Line { worker, notes: notes.clone(), spares: returned };
            let site = &site;
            let name = format!("worker-{worker}");
            let spawned = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || staff::<C, B>(site, line, backend));
            if let Err(error) = spawned {
                (worker..threads).for_each(|_| site.meeting.leave());
                return Err(RunError::Kernel("a thread could not be started", error));
            }
        }
        drop(notes);
        Ok(Collector::new(&site, spares, watch).collect(heard, stop))
    })
}

/// One worker's life: on its CPU, with its backend, through all phases.
fn staff<C: Codec, B: Backend>(site: &Site<'_>, line: Line, backend: &impl Fn(usize) -> io::Result<B>) {
    let number = line.worker;
    let pinned = match site.plan.engine.cpus.as_slice() {
        [] => Ok(()),
        cpus => sys::pin_to_cpu(cpus[number % cpus.len()]),
    };
    match pinned.and_then(|()| backend(number)) {
        Ok(backend) => work::<C, B>(site, line, backend),
        Err(error) => {
            site.meeting.leave();
            line.say(Note::Done(Box::new(WorkerEnd { failure: Some(error), ..WorkerEnd::default() })));
        }
    }
}

/// What is said on every new connection: the version of the protocol, and who we are.
fn greeting_of(plan: &Plan) -> Result<Greeting, RunError> {
    let password = plan.login.as_ref().map(password_of).transpose()?;
    let login = plan.login.as_ref().zip(password.as_ref()).map(|(login, password)| greeting::Login {
        user: login.user.as_bytes(),
        password: password.as_bytes(),
    });
    let greeting = match (plan.protocol, login) {
        (Protocol::Resp2, login) => Ok(Greeting::resp2(login, 0)),
        (Protocol::Resp3, login) => Ok(Greeting::resp3(login, 0)),
        (_, None) => Ok(Greeting::none()),
        (Protocol::Text | Protocol::Meta, Some(login)) => Greeting::text(login),
        (Protocol::Binary, Some(login)) => Greeting::binary(login),
    };
    greeting.map_err(|Refused(why)| RunError::Plan(format!("the login cannot be sent: {why}")))
}

/// The password, which no Plan holds.
fn password_of(login: &plan::Login) -> Result<String, RunError> {
    let Some(path) = &login.password_file else {
        return std::env::var("PUMMEL_PASSWORD")
            .map_err(|_| RunError::Plan("a user needs a password: PUMMEL_PASSWORD is not set".to_owned()));
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| RunError::Plan(format!("the password cannot be read from {path}: {error}")))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn servers_of(plan: &Plan) -> Result<Arc<[Server]>, ConnectError> {
    let sources = Sources::parse(&plan.socket.source)?;
    plan.servers.iter().map(|name| Server::resolve(name, &sources)).collect()
}

/// Spinning needs a CPU that nobody else wants.
fn wait_of(plan: &Plan) -> plan::Wait {
    let cpus = sys::allowed_cpus().map_or(1, |cpus| cpus.len());
    match plan.engine.wait {
        plan::Wait::Auto if plan.engine.threads as usize >= cpus => plan::Wait::Block,
        wait => wait,
    }
}

/// Works through the phases of the plan.
fn work<C: Codec, B: Backend>(site: &Site<'_>, line: Line, backend: B) {
    let plan = site.plan;
    let number = line.worker;
    let places = places_of(plan, number);
    let mut worker = worker_of::<C, B>(site, line, backend, &places);
    let result = phases(site, number, &mut worker, &places);
    if result.is_err() {
        site.meeting.leave();
    }
    worker.finish().finish(result.err());
}

fn phases<C: Codec, B: Backend>(
    site: &Site<'_>,
    number: usize,
    worker: &mut Worker<C, B>,
    places: &[(usize, u64)],
) -> io::Result<()> {
    let plan = site.plan;
    worker.open(&site.meeting)?;
    for (n, phase) in plan.phases.iter().enumerate() {
        let able = worker.can_go_on();
        let Some(at) = site.meeting.meet(worker.now(), able) else { return Ok(()) };
        let begin = at + HEAD_START_NS;
        let end = phase.stop.time_ns.map_or(NEVER, |time| begin.saturating_add(time));
        brief(plan, n, worker, places, begin, end);
        if number == 0 {
            worker.log().say(Note::Began { phase: n, at: begin });
        }
        let cpu = sys::process_cpu_time();
        worker.work(&site.meeting, begin, end)?;
        if number == 0 {
            let now = sys::process_cpu_time();
            let user_ns = now.user_ns.saturating_sub(cpu.user_ns);
            let system_ns = now.system_ns.saturating_sub(cpu.system_ns);
            worker.log().say(Note::Spent { phase: n, user_ns, system_ns });
        }
    }
    Ok(())
}

/// Tells every client of a worker what to do in a phase.
fn brief<C: Codec, B: Backend>(
    plan: &Plan,
    n: usize,
    worker: &mut Worker<C, B>,
    places: &[(usize, u64)],
    begin: Nanos,
    end: Nanos,
) {
    let phase = &plan.phases[n];
    let (clients, shared, log) = worker.parts();
    shared.begin(&phase.work);
    let mode = if phase.recorded { Mode::Record(plan.interval_ns) } else { Mode::Count };
    log.begin_phase(n, mode, begin, end);
    log.note_open(clients.iter().filter(|client| client.is_open()).count() as u64);
    let paces: Vec<Option<Pace>> = plan.groups.iter().map(|group| pace_of(phase, group)).collect();
    for (client, &(group, number)) in clients.iter_mut().zip(places) {
        let place = Place { seed: plan.seed, group: group as u64, phase: n as u64, client: number };
        let requests = requests_of_client(plan, phase, number, u64::from(plan.groups[group].clients));
        let depth = depth_of(phase, &plan.groups[group]);
        client.begin(
            Shift { place, begin, end, requests, depth },
            paces[group].as_ref().map(|pace| pace.schedule(place)),
        );
    }
}

/// When the requests of a group are due in a phase; `None` in closed loop. Loading goes as fast as it can.
fn pace_of(phase: &Phase, group: &plan::Group) -> Option<Pace> {
    match (&phase.work, &group.arrivals, group.rate) {
        (Work::Load(_), _, _) | (_, Arrivals::Closed, _) | (_, _, None) => None,
        (Work::Mix(_), arrivals, Some(rate)) => Some(Pace::new(arrivals, rate, u64::from(group.clients))),
    }
}

/// How many requests a phase makes, where that is known. Loading stores every record on every server.
fn requests_of(plan: &Plan, phase: &Phase) -> Option<u64> {
    match &phase.work {
        Work::Load(load) => Some(Shared::load_records(load, plan.data.records) * plan.servers.len() as u64),
        Work::Mix(_) => phase.stop.requests,
    }
}

/// One client's share of them.
fn requests_of_client(plan: &Plan, phase: &Phase, number: u64, clients: u64) -> u64 {
    match &phase.work {
        Work::Load(load) => {
            let servers = plan.servers.len() as u64;
            let records = Shared::load_records(load, plan.data.records);
            share(Some(records), number / servers, mates(number, clients, servers))
        }
        Work::Mix(_) => share(phase.stop.requests, number, clients),
    }
}

/// One client's share: all do as many, and the first ones one more where it does not divide.
fn share(requests: Option<u64>, number: u64, clients: u64) -> u64 {
    requests.map_or(u64::MAX, |requests| requests / clients + u64::from(number < requests % clients))
}

fn depth_of(phase: &Phase, group: &plan::Group) -> u32 {
    match (&phase.work, group.depth) {
        (Work::Load(load), _) => load.depth,
        (Work::Mix(_), Depth::Limit(depth)) => depth,
        (Work::Mix(_), Depth::Unlimited) => u32::MAX,
    }
}

/// Which clients a worker has, as group and number: a run of neighbours, so that servers, which are dealt to clients in
/// turn, are spread over every worker.
fn places_of(plan: &Plan, worker: usize) -> Vec<(usize, u64)> {
    let (worker, threads) = (worker as u64, u64::from(plan.engine.threads));
    let mut places = Vec::new();
    for (group, clients) in plan.groups.iter().map(|group| u64::from(group.clients)).enumerate() {
        places.extend(
            (worker * clients / threads..(worker + 1) * clients / threads).map(|number| (group, number)),
        );
    }
    places
}

fn worker_of<C: Codec, B: Backend>(
    site: &Site<'_>,
    line: Line,
    backend: B,
    places: &[(usize, u64)],
) -> Worker<C, B> {
    let plan = site.plan;
    let mut clients = Vec::with_capacity(places.len());
    let mut roads = Vec::with_capacity(places.len());
    for &(group, number) in places {
        let before: u64 = plan.groups[..group].iter().map(|group| u64::from(group.clients)).sum();
        let server = (number % site.servers.len() as u64) as usize;
        let writer = (plan.verify > 0.0).then(|| Writer::new(site.mark, before + number));
        clients.push(Client::new(group, number, server as u32, writer));
        roads.push(Road { server: server as u32, connection: before + number });
    }
    let all_clients = plan.groups.first().map_or(1, |group| u64::from(group.clients));
    let shared =
        Shared::new(site.keys.clone(), site.values.clone(), &plan.data, all_clients, plan.verify, site.mark)
            .over(site.servers.len() as u64)
            .counting_bare(plan.protocol.is_resp());
    let depth = plan.groups.iter().map(|group| depth_in_use(group.depth)).max().unwrap_or(1);
    let rules = Rules {
        timeout_ns: plan.timeout_ns,
        reconnect: plan.reconnect,
        drain_ns: plan.timeout_ns.min(DRAIN_MAX_NS),
        load_patience_ns: patience(plan, if plan.reconnect { PATIENCE } else { LOAD_PATIENCE }),
        patience_ns: patience(plan, PATIENCE),
    };
    let habits = Habits {
        checks: if plan.verify > 0.0 { places.len() } else { 0 },
        rows: site.rows,
        stamped: plan.engine.clock == Clock::Kernel && !site.servers.iter().any(Server::is_unix),
    };
    let interval = Box::new(Interval::new(plan.groups.iter().map(|_| recorded_verbs(plan))));
    Worker::new(
        backend,
        Crew {
            clients,
            servers: Arc::clone(&site.servers),
            roads,
            depth,
            greeting: Arc::clone(&site.greeting),
        },
        rules,
        shared,
        Log::new(line, interval, habits),
    )
}

fn patience(plan: &Plan, (timeouts, least_ns): (u64, Nanos)) -> Nanos {
    plan.timeout_ns.saturating_mul(timeouts).max(least_ns)
}

fn depth_in_use(depth: Depth) -> usize {
    match depth {
        Depth::Limit(depth) => depth as usize,
        Depth::Unlimited => 16,
    }
}

/// The verbs that recorded phases ask, so that memory for them is there from the start.
fn recorded_verbs(plan: &Plan) -> Vec<Verb> {
    let mut verbs = Vec::new();
    for phase in plan.phases.iter().filter(|phase| phase.recorded) {
        match &phase.work {
            Work::Load(_) => verbs.push(Verb::Set),
            Work::Mix(mix) => verbs.extend(verbs_of(mix)),
        }
    }
    verbs
}

/// 64 bits that no other run has, from the operating system.
fn chance() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Puts together what workers say.
struct Collector<'a, 'w> {
    site: &'a Site<'a>,
    watch: &'w mut dyn Watch,
    measurement: Measurement,
    /// Where emptied intervals go back, by worker.
    spares: Vec<Sender<Box<Interval>>>,
    /// Slices that not all workers have given their part of.
    open: BTreeMap<u64, Box<Interval>>,
    /// The slice that each worker writes to.
    next: Vec<u64>,
    /// Requests of each phase that have ended, where it is not recorded.
    ended: Vec<u64>,
    /// How many workers are through with each phase.
    through: Vec<usize>,
    /// Clients of each phase whose connection was lost and not replaced.
    dead: Vec<u64>,
    /// Requests that phases were to make and that were never due.
    missing: u64,
    /// When the measured phase began, on the monotonic clock.
    began: Nanos,
    /// Length of the measured phase.
    elapsed_ns: Nanos,
    trouble: Option<(u32, Trouble)>,
    /// For every server, the last recorded phase in which it was talked to, and how long it had answered nothing at the
    /// end of that.
    silent: BTreeMap<u32, (usize, Nanos)>,
    failures: Vec<io::Error>,
    stopped_at: Option<Nanos>,
}

impl<'a, 'w> Collector<'a, 'w> {
    fn new(site: &'a Site<'a>, spares: Vec<Sender<Box<Interval>>>, watch: &'w mut dyn Watch) -> Self {
        let plan = site.plan;
        let names = plan.groups.iter().map(|group| group.name.clone());
        let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
        measurement.unix_socket = site.servers.iter().any(Server::is_unix);
        measurement.connections.asked = connect::connections(plan);
        // What a result says that was written before the end, should nobody write another.
        measurement.mark(Status::Partial, "the run is not over");
        Collector {
            site,
            watch,
            measurement,
            next: vec![0; spares.len()],
            spares,
            open: BTreeMap::new(),
            ended: vec![0; plan.phases.len()],
            through: vec![0; plan.phases.len()],
            dead: vec![0; plan.phases.len()],
            missing: 0,
            began: 0,
            elapsed_ns: 0,
            trouble: None,
            silent: BTreeMap::new(),
            failures: Vec::new(),
            stopped_at: None,
        }
    }

    /// Listens until every worker is through.
    fn collect(mut self, notes: Receiver<Note>, stop: &dyn Fn() -> bool) -> Measurement {
        loop {
            match notes.recv_timeout(WATCH) {
                Ok(note) => self.hear(note),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.stopped_at.is_none() && stop() {
                self.stopped_at = Some(clock::now());
                self.site.meeting.stop();
            }
        }
        self.finish()
    }

    fn hear(&mut self, note: Note) {
        let plan = self.site.plan;
        match note {
            Note::Began { phase, at } => {
                if plan.phases[phase].recorded && self.measurement.started_unix_ns == 0 {
                    self.began = at;
                    self.measurement.started_unix_ns =
                        clock::wall().saturating_sub(clock::now().saturating_sub(at));
                }
                self.watch.begin(&plan.phases[phase], at);
            }
            Note::Spent { phase, user_ns, system_ns } => {
                if plan.phases[phase].recorded {
                    self.measurement.generator.cpu_user_ns += user_ns;
                    self.measurement.generator.cpu_system_ns += system_ns;
                }
            }
            Note::Progress { phase, ended } => {
                self.ended[phase] += ended;
                let of = requests_of(plan, &plan.phases[phase]);
                self.watch.progress(&plan.phases[phase], self.ended[phase], of);
            }
            Note::Slice { interval, worker, next } => self.slice(interval, worker, next),
            Note::Rows(rows) => self.watch.rows(&rows),
            Note::Phase(end) => self.phase(&end),
            Note::Done(end) => self.done(*end),
        }
    }

    /// Adds a worker's part of a slice; slices that are whole go into the measurement.
    fn slice(&mut self, mut interval: Box<Interval>, worker: usize, next: u64) {
        self.next[worker] = next;
        match self.open.get_mut(&interval.index) {
            Some(present) => {
                present.merge(&mut interval);
                self.give_back(interval, worker);
            }
            None => {
                self.open.insert(interval.index, interval);
            }
        }
        let whole = self.next.iter().min().copied().unwrap_or(0);
        self.add_slices(whole);
    }

    /// Adds the slices before `end` to the measurement.
    fn add_slices(&mut self, end: u64) {
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < end) {
            let mut interval = entry.remove();
            self.measurement.add(&mut interval, self.watch.wants().keep);
            self.measurement.measured_ns = self.measurement.measured_ns.max(interval.end_ns);
            // Whose memory it was does not matter; every worker gives one for each that it gets.
            let worker = interval.index as usize % self.spares.len();
            self.give_back(interval, worker);
            self.watch.slice(&self.measurement);
        }
    }

    fn give_back(&mut self, mut interval: Box<Interval>, worker: usize) {
        interval.restart(0, 0);
        // A worker that is through does not listen any more.
        let _ = self.spares[worker].send(interval);
    }

    fn phase(&mut self, end: &PhaseEnd) {
        let phase = &self.site.plan.phases[end.phase];
        let measurement = &mut self.measurement;
        measurement.whole_run.ops.merge(&end.tally);
        measurement.whole_run.bytes.merge(&end.bytes);
        if let Work::Load(_) = &phase.work {
            let all = end.tally.all();
            let load = measurement.load.get_or_insert_default();
            load.records = requests_of(self.site.plan, phase).unwrap_or(0);
            load.stored += all.outcomes.stored;
            load.errors += all.requests() - all.unsent - all.outcomes.stored;
            load.elapsed_ns = load.elapsed_ns.max(end.elapsed_ns);
            load.bytes += end.bytes.sent;
        }
        if phase.recorded {
            measurement.connections.open += end.open;
            measurement.generator.workers.push(end.time);
            // What was asked for, or what there was of it when the run was stopped.
            let stopped = self.stopped_at.map_or(NEVER, |at| at.saturating_sub(self.began));
            let asked = phase.stop.time_ns.unwrap_or(NEVER).min(stopped);
            let elapsed = end.elapsed_ns.min(asked);
            self.elapsed_ns = self.elapsed_ns.max(elapsed);
            measurement.answered_ns = measurement.answered_ns.max(end.answered_ns);
        }
        self.through[end.phase] += 1;
        self.dead[end.phase] += end.fate.dead;
        self.missing += end.fate.missing;
        for &(server, silent_ns) in end.fate.silent.iter().filter(|_| phase.recorded) {
            let known = self.silent.entry(server).or_insert((end.phase, silent_ns));
            // It is silent when it is so to every worker.
            let least = if known.0 == end.phase { known.1.min(silent_ns) } else { silent_ns };
            *known = (end.phase, least);
        }
    }

    fn done(&mut self, end: WorkerEnd) {
        let connections = &mut self.measurement.connections;
        connections.failed += end.failed;
        connections.lost += end.lost;
        connections.reconnected += end.reconnected;
        connections.connect.merge(&end.connect);
        connections.handshake.merge(&end.handshake);
        connections.resumed += end.resumed;
        self.measurement.verify.merge(&end.verify);
        for (message, count) in &end.messages {
            self.measurement.message(message, *count);
        }
        self.trouble = self.trouble.take().or(end.trouble);
        self.failures.extend(end.failure);
    }

    /// Everything was said: the figures are whole, and what became of the run is known.
    fn finish(mut self) -> Measurement {
        self.add_slices(u64::MAX);
        self.measurement.measured_ns = self.elapsed_ns;
        self.add_recorded_load();
        self.measurement.generator.peak_rss_bytes = sys::peak_rss_bytes().unwrap_or(0);
        (self.measurement.status, self.measurement.reason) = (Status::Complete, None);
        if let Some(reason) = self.shortfall() {
            self.measurement.mark(Status::Partial, reason);
        }
        if self.stopped_at.is_some() {
            self.measurement.status = Status::Interrupted;
            self.measurement.reason = Some("interrupted".to_owned());
        }
        self.measurement
    }

    /// What a recorded phase stored is in its slices, and in no tally.
    fn add_recorded_load(&mut self) {
        let loads = |phase: &Phase| phase.recorded && matches!(phase.work, Work::Load(_));
        if !self.site.plan.phases.iter().any(loads) {
            return;
        }
        let (ops, bytes) = (self.measurement.ops().all().counts, self.measurement.bytes.sent);
        let load = self.measurement.load.get_or_insert_default();
        load.stored += ops.outcomes.stored;
        load.errors += ops.requests() - ops.outcomes.stored;
        load.bytes += bytes;
    }

    /// What is missing from what the Plan asked for, if anything.
    fn shortfall(&self) -> Option<String> {
        let plan = self.site.plan;
        let asked = self.measurement.connections.asked;
        let why = match &self.trouble {
            Some((server, trouble)) => format!(": {}: {trouble}", self.site.servers[*server as usize].name()),
            None => self.complaint(),
        };
        if let Some(failure) = self.failures.first() {
            return Some(format!("a worker could not go on: {failure}"));
        }
        let workers = self.spares.len();
        let dead = self.dead.iter().max().copied().unwrap_or(0);
        let begun = self.through.iter().all(|&through| through == workers);
        if !begun && dead == 0 {
            let open = self.measurement.connections.connect.count();
            return Some(match asked.saturating_sub(open) {
                0 => format!(
                    "{} of {asked} connections were lost at once{why}",
                    self.measurement.connections.lost
                ),
                closed => format!("{closed} of {asked} connections could not be opened{why}"),
            });
        }
        if dead > 0 {
            return Some(format!("{dead} of {asked} connections were lost and not replaced{why}"));
        }
        if self.missing > 0 {
            return Some(format!("{} requests were never made{why}", self.missing));
        }
        let measured: u64 =
            self.measurement.groups.iter().map(|group| group.ops.all().counts.completed).sum();
        let recorded = plan.phases.iter().any(|phase| phase.recorded);
        if recorded && measured == 0 {
            return Some(format!("nothing completed{why}"));
        }
        let (&server, &(_, silent_ns)) =
            self.silent.iter().find(|(_, (_, silent_ns))| *silent_ns >= self.long_silence_ns())?;
        let name = self.site.servers[server as usize].name();
        let first = self.trouble.as_ref().map_or(String::new(), |(_, trouble)| format!(": {trouble}"));
        Some(format!(
            "{name} was gone at the end, and answered nothing for {:.1} s{first}",
            seconds(silent_ns)
        ))
    }

    /// How long a server answers nothing that is gone: half of what a request or the drain may take, unless it was seen
    /// to take long.
    fn long_silence_ns(&self) -> Nanos {
        let timeout_ns = self.site.plan.timeout_ns;
        let slowest_ns = self.measurement.groups.iter().filter_map(|group| {
            let moments = group.ops.all().times.of(Span::Service).moments();
            (moments.count > 0).then_some(moments.max)
        });
        let slow_ns = slowest_ns.max().unwrap_or(0).saturating_mul(2).min(timeout_ns / 2);
        slow_ns.max(timeout_ns.min(DRAIN_MAX_NS) / 2).max(SILENCE_MIN_NS)
    }

    /// Why nothing completed although no connection had trouble: what servers said most often when they refused
    /// something.
    fn complaint(&self) -> String {
        let groups = &self.measurement.groups;
        if groups.iter().all(|group| group.ops.all().counts.requests() == 0) {
            return ": no request was due".to_owned();
        }
        let most = self.measurement.messages.iter().max_by_key(|(_, count)| **count);
        most.map_or(String::new(), |(message, count)| {
            format!(": the server said \"{message}\" ({count} times)")
        })
    }
}
