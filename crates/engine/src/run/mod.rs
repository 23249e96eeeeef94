//! From a Plan to a Measurement: the one place that starts workers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use pummel_logic::arrival::{Pace, Schedule};
use pummel_logic::client::route::Router;
use pummel_logic::client::{Client, PhaseAssignment};
use pummel_logic::measure::churn::Churn;
use pummel_logic::measure::completion::{Loaded, load_shortfall, most_said};
use pummel_logic::measure::interval::{Interval, add_part, take_whole};
use pummel_logic::measure::measurement::{Keep, Measurement, Samples, Status};
use pummel_logic::measure::recorder::Span;
use pummel_logic::plan::share::Part;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{self, Arrivals, Clock, Depth, Phase, Plan, Protocol, Route, Transport, Work};
use pummel_logic::protocol::binary::{Binary, PlainBinary};
use pummel_logic::protocol::handshake::{self, Handshake};
use pummel_logic::protocol::meta::Meta;
use pummel_logic::protocol::resp::Resp;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::protocol::text::Text;
use pummel_logic::protocol::udp;
use pummel_logic::protocol::{Codec, Fault, Refused, Verb};
use pummel_logic::rng::Place;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND, seconds};
use pummel_logic::unsent::draws_of_client;
use pummel_logic::workload::key::{KeyMaker, PrefixTooLong};
use pummel_logic::workload::mix::verbs_of;
use pummel_logic::workload::request::{Shared, rank_among_mates};
use pummel_logic::workload::sequence::{self, Draws, Sequencer, Weight};
use pummel_logic::workload::trace::Trace;
use pummel_logic::workload::value::{ValueMaker, ValueTooLarge};
use pummel_logic::workload::verify::stale::{RunMark, Writer};
use pummel_logic::workload::window::{Finding, WindowMaker};

use crate::backend::choice::{self, Choice};
use crate::backend::epoll::Epoll;
use crate::backend::tls::{Setup, Tls, TlsError};
use crate::backend::uring::Uring;
use crate::backend::waiting::Cores;
use crate::backend::{Backend, Reason};
use crate::clock;
use crate::resolve::{self, ConnectError, Server, Sources};
use crate::sys;
use crate::sys::CpuTime;
use crate::worker::meeting::Meeting;
use crate::worker::messages::{
    ConnectionEvent, Departure, Line, PhaseEnd, Row, Told, Trouble, WorkerEnd, WorkerMessage,
};
use crate::worker::population::{Births, ChurnLimits, ChurnPhase};
use crate::worker::reporter::{Mode, ReportOptions, WorkerReporter};
use crate::worker::{Endpoint, Worker, WorkerLimits, WorkerSetup};

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

/// How long to wait for a server to take a TCP connection, by which it then is loaded although it is measured over UDP.
const LISTEN_MAX_NS: Nanos = SECOND;

/// Most clients of a server that load it over UDP, and most requests that they have outstanding together: a burst of
/// more fills the buffer of the server's socket, which then loses them.
const LOADERS_MAX: u64 = 64;

/// How often the watching thread looks whether the run is to be stopped.
const WATCH: Duration = Duration::from_millis(20);

/// Who watches over a run while it goes on. All methods are called on the thread that called [`run`].
pub trait Watch {
    /// What is wanted beside the figures.
    fn wants(&self) -> Wants {
        Wants { rows: false, departures: false, keep: Keep::Figures, outstanding: false }
    }

    /// Something is not as it was asked for; a sentence without its full stop.
    fn notice(&mut self, _words: &str) {}

    /// A phase begins, at `at` on the monotonic clock.
    fn begin(&mut self, _phase: &Phase, _at: Nanos) {}

    /// A phase is over for all workers here; the last of them had begun it `late_ns` after it was to begin.
    fn phase_over(&mut self, _phase: &Phase, _late_ns: Nanos) {}

    /// So many requests of a phase that is not recorded have ended, of all that it makes where that is known.
    fn progress(&mut self, _phase: &Phase, _ended: u64, _of: Option<u64>) {}

    /// Another slice of the measured phase is there; it is the last one in the measurement, which has no status yet.
    fn slice(&mut self, _so_far: &Measurement) {}

    /// A slice of the measured phase, whole, before it goes into the measurement.
    fn interval(&mut self, _interval: &mut Interval) {}

    /// What a check of a client with a window found that failed, on this connection, counted from 1 over all threads.
    fn finding(&mut self, _connection: u64, _finding: &Finding) {}

    /// What a server said with an error to a client with a window; only the first of each kind.
    fn complaint(&mut self, _connection: u64, _words: &[u8]) {}

    /// A connection to a server of the Plan was lost, or is open again.
    fn connection(&mut self, _server: usize, _news: ConnectionEvent) {}

    /// Requests of the measured phase, raw, in no particular order.
    fn rows(&mut self, _rows: &[Row]) {}

    /// Clients that came and are gone, in the measured phase, in no particular order.
    fn departures(&mut self, _gone: &[Departure]) {}
}

/// What a [`Watch`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Every request of the measured phase.
    pub rows: bool,
    /// The end of every client that comes and goes in the measured phase.
    pub departures: bool,
    /// What the slices keep.
    pub keep: Keep,
    /// How many requests clients have outstanding with each new one.
    pub outstanding: bool,
}

/// What a Plan needs that no Plan holds.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The password of its login; absent: it is read where the Plan says.
    pub password: Option<String>,
    /// The requests that it replays, if it does.
    pub trace: Option<Arc<Trace>>,
    /// Which addresses it may send to; absent: any.
    pub permit: Option<Permit>,
}

/// Says of an address whether requests may be sent there; of a unix socket, it is asked for 127.0.0.1.
pub type Permit = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Where a process waits, at the beginning of every phase, for the other processes that have a part of the run.
pub trait Gate: Sync {
    /// All workers here are ready for the next phase since `ready`: says when it begins, on the monotonic clock, as soon
    /// as all others are ready too. `loaded` says what the phase before it stored here; nothing was to be stored where that
    /// was no load. `None`: the next phase does not begin, because one of the processes cannot go on, the load of all of
    /// them has failed, or the run was stopped.
    fn pass(&self, ready: Nanos, loaded: Loaded) -> Option<Nanos>;
}

/// One process' part of a run, and where it meets the others.
#[derive(Clone, Copy)]
pub struct Share<'a> {
    /// Which clients are here.
    pub part: &'a Part,
    /// Where it waits for the others.
    pub gate: &'a dyn Gate,
}

impl fmt::Debug for Inputs {
    /// Without the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.trace.as_ref().map(|trace| trace.len());
        to.debug_struct("Inputs").field("trace_rows", &rows).finish_non_exhaustive()
    }
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
    /// Nothing may be sent to this server from here.
    Forbidden {
        /// The server in the Plan.
        server: String,
        /// Its address; absent for a unix socket.
        address: Option<IpAddr>,
    },
    /// The kernel refused something; what it was.
    Kernel(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(what) => to.write_str(what),
            RunError::Connect(error) => error.fmt(to),
            RunError::Tls(error) => error.fmt(to),
            RunError::Forbidden { server, address: Some(address) } => {
                write!(to, "{server} is {address}, and nothing may be sent there from here")
            }
            RunError::Forbidden { server, address: None } => {
                write!(to, "{server} is on this machine, and nothing may be sent there")
            }
            RunError::Kernel(what, error) => write!(to, "{what}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a plan to its end, or until `stop` says so (then what was measured so far is the result).
///
/// # Errors
/// Returns [`RunError::Plan`] for a plan whose command, keys, values or login cannot be sent, or whose password or
/// recorded requests are missing, [`RunError::Connect`] when a server's name cannot be resolved or the descriptors do
/// not suffice, [`RunError::Tls`] when the files of TLS cannot be used, and [`RunError::Kernel`] when a thread cannot
/// be started. What goes wrong after the beginning is in the measurement: its status, its reason and its counts.
pub fn run(
    plan: &ValidPlan,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
) -> Result<Measurement, RunError> {
    run_with_inputs(plan, &Inputs::default(), watch, stop)
}

/// As [`run`], with what no Plan holds.
///
/// # Errors
/// Returns [`RunError::Plan`] for a plan whose command, keys, values or login cannot be sent, or whose password or
/// recorded requests are missing, [`RunError::Connect`] when a server's name cannot be resolved or the descriptors do
/// not suffice, [`RunError::Forbidden`] when the inputs do not permit a server's address, [`RunError::Tls`] when
/// the files of TLS cannot be used, and [`RunError::Kernel`] when a thread cannot be started. What goes wrong after
/// the beginning is in the measurement: its status, its reason and its counts.
pub fn run_with_inputs(
    plan: &ValidPlan,
    inputs: &Inputs,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
) -> Result<Measurement, RunError> {
    run_on_kernel(plan, inputs, None, watch, stop)
}

/// As [`run_with_inputs`], for one part of a run of several processes.
///
/// # Errors
/// Returns [`RunError::Plan`] for a part that is not one of the plan, and for a plan whose command, keys, values or
/// login cannot be sent, or whose password or recorded requests are missing, [`RunError::Connect`] when a server's
/// name cannot be resolved or the descriptors do not suffice, [`RunError::Forbidden`] when the inputs do not permit
/// a server's address, [`RunError::Tls`] when the files of TLS cannot be used, and [`RunError::Kernel`] when a thread
/// cannot be started. What goes wrong after the beginning is in the measurement: its status, its reason and its
/// counts.
pub fn run_share(
    plan: &ValidPlan,
    inputs: &Inputs,
    share: Share<'_>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
) -> Result<Measurement, RunError> {
    if !share.part.fits(plan) {
        return Err(RunError::Plan("the part is not one of this plan".to_owned()));
    }
    run_on_kernel(plan, inputs, Some(share), watch, stop)
}

fn run_on_kernel(
    plan: &Plan,
    inputs: &Inputs,
    share: Option<Share<'_>>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
) -> Result<Measurement, RunError> {
    let servers = servers_of(plan, inputs.permit.as_ref(), |server| loading_of(plan, server))?;
    let threads = share.map_or(plan.engine.threads, |share| share.part.threads);
    let wait = wait_of(plan.engine.wait, threads, &servers);
    let clock = plan.engine.clock;
    let choice = choice::choose(plan.engine.backend);
    if let (plan::Backend::Uring, Some(why)) = (plan.engine.backend, &choice.fallback) {
        watch.notice(&format!("io_uring cannot be used, epoll is instead: {why}"));
    }
    let host = HostSetup { servers, choice: Some(choice.clone()), share };
    match choice.backend {
        plan::Backend::Uring => {
            run_sealed(plan, inputs, host, watch, stop, &|_| Uring::new(wait, clock, &plan.socket))
        }
        plan::Backend::Auto | plan::Backend::Epoll => {
            run_sealed(plan, inputs, host, watch, stop, &|_| Epoll::new(wait, clock, &plan.socket))
        }
    }
}

/// Runs on backends of the kernel, encrypted where the plan says so.
fn run_sealed<B: Backend>(
    plan: &Plan,
    inputs: &Inputs,
    host: HostSetup<'_>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: &MakeBackend<'_, B>,
) -> Result<Measurement, RunError> {
    match &plan.tls {
        None => run_at(plan, inputs, host, watch, stop, backend),
        Some(options) => {
            let setup = Setup::new(options, &host.servers).map_err(RunError::Tls)?;
            run_at(plan, inputs, host, watch, stop, &|worker| Ok(Tls::new(backend(worker)?, &setup)))
        }
    }
}

/// As [`run`], on backends of the caller's making: each worker makes its own on its own thread, from its number. What
/// is measured over UDP is loaded over UDP there.
///
/// # Errors
/// Returns [`RunError::Plan`] for a plan whose command, keys, values or login cannot be sent, or whose password or
/// recorded requests are missing, [`RunError::Connect`] when a server's name cannot be resolved or the descriptors do
/// not suffice, and [`RunError::Kernel`] when a thread cannot be started. What goes wrong after the beginning is in
/// the measurement: its status, its reason and its counts.
pub fn run_on<B: Backend>(
    plan: &ValidPlan,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: impl Fn(usize) -> io::Result<B> + Sync,
) -> Result<Measurement, RunError> {
    run_supplied_on(plan, &Inputs::default(), watch, stop, backend)
}

/// As [`run_on`], with what no Plan holds.
///
/// # Errors
/// As [`run`].
pub fn run_supplied_on<B: Backend>(
    plan: &ValidPlan,
    inputs: &Inputs,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: impl Fn(usize) -> io::Result<B> + Sync,
) -> Result<Measurement, RunError> {
    let servers = servers_of(plan, None, |_| plan.transport)?;
    let host = HostSetup { servers, choice: None, share: None };
    run_at(plan, inputs, host, watch, stop, &backend)
}

/// Makes the backend of a worker from the worker's number, on the worker's thread. It is no type parameter, so that each
/// kind of backend is compiled once for each codec, whoever makes it.
type MakeBackend<'a, B> = dyn Fn(usize) -> io::Result<B> + Sync + 'a;

/// What a run finds before it begins.
struct HostSetup<'a> {
    servers: Arc<[Server]>,
    /// The kernel interface; `None` on backends of the caller's making.
    choice: Option<Choice>,
    /// The part of the run that is here; `None` where it is the whole.
    share: Option<Share<'a>>,
}

/// Runs on servers that were found.
fn run_at<B: Backend>(
    plan: &Plan,
    inputs: &Inputs,
    host: HostSetup<'_>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: &MakeBackend<'_, B>,
) -> Result<Measurement, RunError> {
    match plan.protocol {
        Protocol::Text => {
            let sequence = crowd_of(plan).and_then(|(_, crowd)| crowd.sequence.as_ref());
            let codec = match sequence.map(|sequence| sequence.bogus) {
                None => Text::new(),
                Some(false) => Text::with_blanks(),
                Some(true) => Text::with_bogus_sets(),
            };
            run_with(plan, inputs, host, watch, stop, backend, codec)
        }
        Protocol::Meta => run_with(plan, inputs, host, watch, stop, backend, Meta::new()),
        // memaslap numbers no requests, and a get of several keys is so many gets.
        Protocol::Binary if plan.window().is_some() => {
            run_with(plan, inputs, host, watch, stop, backend, PlainBinary::new())
        }
        Protocol::Binary => run_with(plan, inputs, host, watch, stop, backend, Binary::new()),
        Protocol::Resp2 => run_with(plan, inputs, host, watch, stop, backend, resp::<2>(plan)?),
        Protocol::Resp3 => run_with(plan, inputs, host, watch, stop, backend, resp::<3>(plan)?),
    }
}

/// RESP with the command of the plan, if it has one.
fn resp<const VERSION: u8>(plan: &Plan) -> Result<Resp<VERSION>, RunError> {
    let codec = match &plan.command {
        None => Resp::new(),
        Some(command) => {
            let template = Template::parse(command).map_err(|error| RunError::Plan(error.to_string()))?;
            Resp::with_template(Arc::new(template))
        }
    };
    Ok(codec.keeping_hashes(plan.data.style.field_bytes.unwrap_or(0)))
}

/// What all workers of a run are made from.
struct RunContext<'a> {
    plan: &'a Plan,
    /// When the run began.
    started: Nanos,
    trace: Option<Arc<Trace>>,
    keys: KeyMaker,
    values: ValueMaker,
    window: Option<WindowMaker>,
    servers: Arc<[Server]>,
    /// For each group.
    routers: Vec<Router>,
    choice: Option<Choice>,
    handshake: Arc<Handshake>,
    mark: RunMark,
    part: Cow<'a, Part>,
    gate: Option<&'a dyn Gate>,
    meeting: Meeting,
    /// Records that each phase stored here. Each worker adds its own before it meets the others for the next phase.
    stored: Vec<AtomicU64>,
    wants: Wants,
}

fn run_with<C: Codec + Sync, B: Backend>(
    plan: &Plan,
    inputs: &Inputs,
    host: HostSetup<'_>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    backend: &MakeBackend<'_, B>,
    codec: C,
) -> Result<Measurement, RunError> {
    let part = match host.share {
        Some(share) => Cow::Borrowed(share.part),
        None => Cow::Owned(Part::whole(plan, chance())),
    };
    let threads = part.threads as usize;
    ensure_descriptors(plan, &part).map_err(RunError::Connect)?;
    let replays = plan.phases.iter().any(|phase| matches!(phase.work, Work::Replay(_)));
    let trace = inputs.trace.clone().filter(|_| replays);
    if replays && trace.is_none() {
        return Err(RunError::Plan("the recorded requests were not read".to_owned()));
    }
    let longest = trace.as_ref().map_or(0, |trace| trace.longest_value());
    let context = RunContext {
        plan,
        started: clock::now(),
        trace,
        keys: KeyMaker::new(&plan.data).map_err(|error: PrefixTooLong| RunError::Plan(error.to_string()))?,
        values: values_of(plan, longest.into())?,
        window: plan.window().map(WindowMaker::new),
        servers: host.servers,
        choice: host.choice,
        routers: plan
            .groups
            .iter()
            .map(|group| Router::new(plan.route, &plan.servers).in_blocks(group.policy.block.into()))
            .collect(),
        handshake: Arc::new(handshake_of(plan, inputs)?),
        mark: RunMark::new(part.mark),
        meeting: Meeting::new(threads).among_others(!part.is_whole()),
        gate: host.share.map(|share| share.gate),
        part,
        stored: plan.phases.iter().map(|_| AtomicU64::new(0)).collect(),
        wants: watch.wants(),
    };
    let (messages, inbox) = mpsc::channel();
    let mut spares = Vec::with_capacity(threads);
    thread::scope(|scope| {
        for worker in 0..threads {
            let (spare, returned) = mpsc::channel();
            spares.push(spare);
            let line = Line::new(worker, messages.clone(), returned);
            let (context, codec) = (&context, &codec);
            let name = format!("worker-{worker}");
            let spawned = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || attended::<C, B>(context, line, backend, codec));
            if let Err(error) = spawned {
                (worker..threads).for_each(|_| context.meeting.leave());
                return Err(RunError::Kernel("a thread could not be started", error));
            }
        }
        drop(messages);
        let _end = EndOnPanic(&context.meeting);
        Ok(Collector::new(&context, spares, watch).collect(inbox, stop))
    })
}

/// Whether requests may be sent to all servers of a plan, as far as their addresses are known now: a run asks again, of
/// the addresses that it uses.
///
/// # Errors
/// Returns [`RunError::Forbidden`] for the first server with an address that is not permitted, and
/// [`RunError::Connect`] when a name cannot be resolved.
pub fn permitted(plan: &Plan, permit: &Permit) -> Result<(), RunError> {
    servers_of(plan, Some(permit), |_| plan.transport).map(drop)
}

/// Makes sure that the connections of a part can be open here, raising the soft limit where that helps.
///
/// # Errors
/// Returns [`ConnectError::Descriptors`] when the hard limit of descriptors is below what the part's connections
/// need. Clients that come and go need no descriptor beforehand, so a plan with them is never refused.
pub fn ensure_descriptors(plan: &Plan, part: &Part) -> Result<(), ConnectError> {
    let connections = part.clients() * plan.lanes() as u64;
    match crowd_of(plan) {
        Some(_) => resolve::allow_descriptors(connections, part.threads),
        None => resolve::ensure_descriptors(connections, part.threads)?,
    }
    Ok(())
}

/// Ends the phase under way when the thread that watches panics, since it waits for the workers before it unwinds further.
struct EndOnPanic<'a>(&'a Meeting);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// One worker's life, which the others do not wait for if it panics: the run then ends with an error. Where panics abort
/// the process, they do so here too.
fn attended<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    line: Line,
    backend: &MakeBackend<'_, B>,
    codec: &C,
) {
    let (worker, say) = (line.worker, line.last_word());
    let life = AssertUnwindSafe(|| worker_main::<C, B>(context, line, backend, codec));
    let Err(panic) = catch_unwind(life) else { return };
    context.meeting.leave();
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    let failure = Some(io::Error::other(format!("it panicked, which is a bug of pummel: {words}")));
    say(WorkerMessage::Done(Box::new(WorkerEnd { worker, failure, ..WorkerEnd::default() })));
}

/// One worker's life: on its CPU, with its backend, through all phases.
fn worker_main<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    line: Line,
    backend: &MakeBackend<'_, B>,
    codec: &C,
) {
    let number = line.worker;
    let pinned = match context.plan.engine.cpus.as_slice() {
        [] => Ok(()),
        cpus => sys::pin_to_cpu(cpus[number % cpus.len()]),
    };
    match pinned.and_then(|()| backend(number)) {
        Ok(backend) => work::<C, B>(context, line, backend, codec),
        Err(error) => {
            context.meeting.leave();
            let end = WorkerEnd { worker: number, failure: Some(error), ..WorkerEnd::default() };
            line.say(WorkerMessage::Done(Box::new(end)));
        }
    }
}

/// Whether some requests of a plan, or all, go by datagrams.
fn uses_datagrams(plan: &Plan) -> bool {
    plan.transport == Transport::Udp || plan.window().is_some_and(|window| window.pool.datagrams)
}

/// What is said on every new connection: the version of the protocol, and who we are.
fn handshake_of(plan: &Plan, inputs: &Inputs) -> Result<Handshake, RunError> {
    let password = inputs.password.clone().map_or_else(|| password_of(plan), |known| Ok(Some(known)))?;
    let login = plan.login.as_ref().zip(password.as_ref()).map(|(login, password)| handshake::Login {
        user: login.user.as_bytes(),
        password: password.as_bytes(),
    });
    let handshake = match (plan.protocol, login) {
        (Protocol::Resp2, login) => Ok(Handshake::resp2(login, plan.database)),
        (Protocol::Resp3, login) => Ok(Handshake::resp3(login, plan.database)),
        (_, None) => Ok(Handshake::none()),
        (Protocol::Text | Protocol::Meta, Some(login)) => Handshake::text(login),
        (Protocol::Binary, Some(login)) => Handshake::binary(login),
    };
    handshake.map_err(|Refused(why)| RunError::Plan(format!("the login cannot be sent: {why}")))
}

/// The password of the plan's user, which no Plan holds; none where nobody logs in. It is read from where the plan says,
/// which may be a pipe that can be read once: hand it over as [`Inputs::password`].
///
/// # Errors
/// Returns [`RunError::Plan`] when the file of the password cannot be read, or when the plan names no file and the
/// environment variable `PUMMEL_PASSWORD` is not set.
pub fn password_of(plan: &Plan) -> Result<Option<String>, RunError> {
    let Some(login) = &plan.login else { return Ok(None) };
    let Some(path) = &login.password_file else {
        let missing = |_| RunError::Plan("a user needs a password: PUMMEL_PASSWORD is not set".to_owned());
        return std::env::var("PUMMEL_PASSWORD").map(Some).map_err(missing);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| RunError::Plan(format!("the password cannot be read from {path}: {error}")))?;
    Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
}

fn servers_of(
    plan: &Plan,
    permit: Option<&Permit>,
    loading: impl Fn(&Server) -> Transport,
) -> Result<Arc<[Server]>, RunError> {
    let sources = Sources::parse(&plan.socket.source).map_err(RunError::Connect)?;
    let resolve = |name: &String| {
        let server = Server::resolve(name, &sources).map_err(RunError::Connect)?;
        // Of the addresses that are used from here on: a name may have others the next time.
        if let Some(permit) = permit {
            server
                .permitted(|address| permit(address))
                .map_err(|address| RunError::Forbidden { server: name.clone(), address })?;
        }
        let loading = loading(&server);
        Ok(server.loaded_by(loading))
    };
    plan.servers.iter().map(resolve).collect()
}

/// How a server is loaded: over TCP where it listens there, since nothing gets lost then.
fn loading_of(plan: &Plan, server: &Server) -> Transport {
    let loads = plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
    let patience = Duration::from_nanos(plan.timeout_ns.min(LISTEN_MAX_NS));
    match plan.transport {
        Transport::Udp if loads && server.takes_streams(patience) => Transport::Stream,
        transport => transport,
    }
}

/// How workers wait: spinning needs a core that nobody else wants.
fn wait_of(wait: plan::Wait, threads: u32, servers: &[Server]) -> plan::Wait {
    let cores = Cores {
        machine: sys::online_cpus(),
        // As few as affinity and the control group leave.
        allowed: thread::available_parallelism().map_or(1, |cpus| cpus.get()),
        workers: threads as usize,
        servers: servers.iter().filter(|server| server.is_here()).count(),
    };
    cores.settle(wait)
}

/// Works through the phases of the plan.
fn work<C: Codec, B: Backend>(context: &RunContext<'_>, line: Line, backend: B, codec: &C) {
    let plan = context.plan;
    let number = line.worker;
    let places = places_of(plan, &context.part, number);
    let mut worker = worker_of::<C, B>(context, line, backend, &places).speaking(codec);
    let result = phases(context, number, &mut worker, &places);
    if result.is_err() {
        context.meeting.leave();
    }
    worker.finish().finish(result.err());
}

fn phases<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    number: usize,
    worker: &mut Worker<C, B>,
    places: &[(usize, u64)],
) -> io::Result<()> {
    let plan = context.plan;
    worker.open(&context.meeting)?;
    let (mut since, mut end) = (0, NEVER);
    for (n, phase) in plan.phases.iter().enumerate() {
        // With windows each socket keeps the transport that it has.
        if context.window.is_none() && worker.change_transport(|server| transport_of(context, phase, server))
        {
            idle_phase(plan, n, worker, places);
            worker.open(&context.meeting)?;
        } else if begins_whole(context, n) && worker.has_shut() {
            idle_phase(plan, n, worker, places);
            worker.reopen(&context.meeting)?;
        }
        let able = worker.can_go_on();
        let Some(at) = context.meeting.meet(worker.now(), able) else { return Ok(()) };
        let loaded = loaded_before(context, n);
        // Where the load is shared, those who see all of it decide.
        if loaded.has_failed() && context.part.is_whole() {
            return Ok(());
        }
        let Some(begin) = begin_of(context, number, at, loaded) else { return Ok(()) };
        since = if plan.runs_on(n) { since } else { begin };
        end = match &phase.work {
            Work::Pause(pause) => context.started.saturating_add(pause.until_ns),
            Work::Delete(_) if plan.runs_on(n) => end,
            _ => phase.stop.time_ns.map_or(NEVER, |time| since.saturating_add(time)),
        }
        .max(begin);
        begin_phase(context, n, worker, places, begin, end);
        if let (Work::Mix(_), Some((group, crowd))) = (&phase.work, crowd_of(plan)) {
            worker.begin_churn(churn_phase_of(context, n, group, crowd, begin, end));
        }
        if number == 0 {
            worker.reporter().say(WorkerMessage::Began { phase: n, at: begin, cpu: sys::process_cpu_time() });
        }
        worker.work(&context.meeting, begin, end)?;
        worker.reporter().say(WorkerMessage::Spent { phase: n, cpu: sys::process_cpu_time() });
        context.stored[n].fetch_add(worker.reporter().stored(), Ordering::Relaxed);
    }
    Ok(())
}

/// Whether phase `n` begins with all connections open. Clients with windows and clients that come and go open their own
/// when they want them, and the time of a phase that runs on is not spent on opening any.
fn begins_whole(context: &RunContext<'_>, n: usize) -> bool {
    let comes_and_goes =
        crowd_of(context.plan).is_some() && matches!(context.plan.phases[n].work, Work::Mix(_));
    context.window.is_none() && !comes_and_goes && !context.plan.runs_on(n)
}

/// What the phase before phase `n` stored here, of what it was to store here: nothing of nothing where it was no load. To
/// be asked when all workers have met for phase `n`.
fn loaded_before(context: &RunContext<'_>, n: usize) -> Loaded {
    let Some(before) = n.checked_sub(1) else { return Loaded::default() };
    match &context.plan.phases[before] {
        phase @ Phase { work: Work::Load(_), .. } => Loaded {
            records: requests_here(context, phase).unwrap_or(0),
            stored: context.stored[before].load(Ordering::Relaxed),
        },
        _ => Loaded::default(),
    }
}

/// When a phase begins for which all workers here are ready since `ready`, after a phase that `loaded` so much; `None` when
/// it does not.
fn begin_of(context: &RunContext<'_>, number: usize, ready: Nanos, loaded: Loaded) -> Option<Nanos> {
    let Some(gate) = context.gate else { return Some(ready.saturating_add(HEAD_START_NS)) };
    // One worker asks for all, and the others wait for what it was told.
    match number {
        0 => {
            let told = gate.pass(ready, loaded);
            context.meeting.meet(told.unwrap_or(0), told.is_some())
        }
        _ => context.meeting.meet(0, true),
    }
}

/// Tells every client of a worker what to do in a phase.
fn begin_phase<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    n: usize,
    worker: &mut Worker<C, B>,
    places: &[(usize, u64)],
    begin: Nanos,
    end: Nanos,
) {
    let plan = context.plan;
    let phase = &plan.phases[n];
    let (entries, shared, reporter) = worker.parts();
    shared.begin(&phase.work, plan.seed);
    let mode = if phase.recorded { Mode::Record(plan.interval_ns) } else { Mode::Count };
    reporter.begin_phase(n, mode, begin, end);
    reporter.note_loads(matches!(phase.work, Work::Load(_)));
    reporter.note_open(entries.iter().map(|entry| entry.client.open_lanes()).sum());
    let paces: Vec<Option<Pace>> = plan.groups.iter().map(|group| pace_of(phase, group)).collect();
    for (entry, &(group, number)) in entries.iter_mut().zip(places) {
        let place = Place { seed: plan.seed, group: group as u64, phase: n as u64, client: number };
        let clients = u64::from(plan.groups[group].clients);
        let requests = requests_of_client(context, phase, group, &plan.groups[group], number);
        let (depth, repeats) = match is_loaded_by_datagrams(context, phase) {
            // A server that loses every second store for good is not worth more patience.
            true => (loading_depth(plan, number, clients), requests.max(LOADERS_MAX)),
            false => (depth_of(phase, &plan.groups[group]), 0),
        };
        let schedule = match &phase.work {
            Work::Pause(_) => Some(Schedule::never()),
            _ => paces[group].as_ref().map(|pace| pace.schedule(place)),
        };
        let policy = plan.groups[group].policy;
        let spacing_ns = if policy.spaced { mean_gap_ns(&plan.groups[group]) } else { 0 };
        let assignment =
            PhaseAssignment { place, begin, end, requests, depth, repeats, late: policy.late, spacing_ns };
        entry.client.begin(assignment, schedule);
    }
}

/// The group whose clients come and go, if there is one.
fn crowd_of(plan: &Plan) -> Option<(usize, &plan::Crowd)> {
    plan.groups.iter().enumerate().find_map(|(place, group)| Some((place, group.crowd.as_ref()?)))
}

/// The values of a plan; zeros where requests are a sequence.
fn values_of(plan: &Plan, longest: u64) -> Result<ValueMaker, RunError> {
    let values = ValueMaker::reaching(&plan.data, longest)
        .map_err(|error: ValueTooLarge| RunError::Plan(error.to_string()))?
        .with_signed_counters(plan.protocol.is_resp());
    let Some(sequence) = crowd_of(plan).and_then(|(_, crowd)| crowd.sequence.as_ref()) else {
        return Ok(values);
    };
    let stores = plan
        .phases
        .iter()
        .any(|phase| matches!(&phase.work, Work::Mix(mix) if mix.ops.iter().any(|(verb, _)| verb.stores())));
    let draws = plan.phases.iter().filter_map(|phase| phase.stop.requests).max().unwrap_or(u64::MAX);
    Ok(values.of_zeros(if stores { sequence::largest(sequence.sizes, draws) } else { 0 }))
}

/// What a crowd does in phase `n`.
fn churn_phase_of(
    context: &RunContext<'_>,
    n: usize,
    group: usize,
    crowd: &plan::Crowd,
    begin: Nanos,
    end: Nanos,
) -> ChurnPhase {
    let (plan, phase) = (context.plan, &context.plan.phases[n]);
    let place = Place { seed: plan.seed, group: group as u64, phase: n as u64, client: 0 };
    let instance = crowd.sequence.as_ref().map_or(0, |sequence| sequence.instance);
    let births = match &crowd.births {
        plan::Births::Closed => Births::Closed,
        plan::Births::Open { arrivals, rate } => {
            Births::Scheduled(Pace::new(arrivals, *rate, 1).schedule(place))
        }
        plan::Births::Drawn(gap) => Births::Drawn(Draws::new(*gap, instance)),
    };
    let told = crowd.sequence.as_ref().is_some_and(|sequence| sequence.calls.is_some());
    ChurnPhase {
        place,
        begin,
        end,
        births,
        requests: requests_of(plan, phase).unwrap_or(u64::MAX),
        calls: crowd.calls,
        // A client never has more requests outstanding than it makes.
        depth: u32::try_from(crowd.calls)
            .map_or(u32::MAX, |calls| calls.max(1))
            .min(depth_of(phase, &plan.groups[group])),
        told,
        // mcperf's connections come when they are due and fail for themselves.
        paced: crowd.sequence.is_none(),
    }
}

/// The crowd of a worker.
fn churn_limits_of(context: &RunContext<'_>, worker: usize) -> Option<ChurnLimits> {
    let plan = context.plan;
    let (group, _) = crowd_of(plan)?;
    let (turn, turns) = (worker as u64, u64::from(context.part.threads));
    let here = &context.part.clients[group];
    let clients = here.end - here.start;
    Some(ChurnLimits {
        group,
        limit: ((turn + 1) * clients / turns - turn * clients / turns) as usize,
        turn: (u64::from(context.part.first_worker) + turn, u64::from(context.part.workers)),
        depth: depth_in_use(plan.groups[group].depth),
        mark: (plan.verify > 0.0).then_some(context.mark),
        transport: plan.transport,
    })
}

/// Tells every client of a worker to wait for phase `n`.
fn idle_phase<C: Codec, B: Backend>(
    plan: &Plan,
    n: usize,
    worker: &mut Worker<C, B>,
    places: &[(usize, u64)],
) {
    let (entries, ..) = worker.parts();
    for (entry, &(group, number)) in entries.iter_mut().zip(places) {
        let place = Place { seed: plan.seed, group: group as u64, phase: n as u64, client: number };
        entry.client.begin(PhaseAssignment::nothing(place), None);
    }
}

/// What carries a phase's requests to a server.
fn transport_of(context: &RunContext<'_>, phase: &Phase, server: u32) -> Transport {
    match phase.work {
        Work::Load(_) => context.servers[server as usize].loading(),
        _ => context.plan.transport,
    }
}

/// Whether a phase stores records by datagrams, which get lost where too many come at once.
fn is_loaded_by_datagrams(context: &RunContext<'_>, phase: &Phase) -> bool {
    matches!(phase.work, Work::Load(_)) && loaders(context) == LOADERS_MAX
}

/// Most clients of a server that load it.
fn loaders(context: &RunContext<'_>) -> u64 {
    let udp = context.servers.iter().any(|server| server.loading() == Transport::Udp);
    if udp { LOADERS_MAX } else { u64::MAX }
}

/// What a client has outstanding while it loads by datagrams.
fn loading_depth(plan: &Plan, number: u64, clients: u64) -> u32 {
    let mates = match plan.route {
        Route::All => rank_among_mates(number, clients, plan.servers.len() as u64, block_of(plan)).1,
        _ => clients,
    };
    (LOADERS_MAX / mates).max(1) as u32
}

/// When the requests of a group are due in a phase; `None` in closed loop. Loading goes as fast as it can.
fn pace_of(phase: &Phase, group: &plan::Group) -> Option<Pace> {
    match (&phase.work, &group.arrivals, group.rate) {
        (Work::Window(window), _, _) if window.preset => None,
        (Work::Mix(_) | Work::Replay(_) | Work::Window(_), arrivals, Some(rate))
            if *arrivals != Arrivals::Closed =>
        {
            Some(Pace::new(arrivals, rate, u64::from(group.clients)))
        }
        _ => None,
    }
}

/// The mean time between two requests of a client; 0 in closed loop.
fn mean_gap_ns(group: &plan::Group) -> Nanos {
    group.rate.map_or(0, |rate| Pace::mean_gap_ns(rate, u64::from(group.clients)))
}

/// How many clients, one after the other, are dealt to one server.
fn block_of(plan: &Plan) -> u64 {
    plan.groups.first().map_or(1, |group| group.policy.block.into())
}

/// How many records of one server a phase goes through, if it goes through them one by one.
fn chores_of(plan: &Plan, phase: &Phase) -> Option<u64> {
    match &phase.work {
        Work::Load(load) => Some(Shared::load_records(load, plan.data.records)),
        Work::Delete(delete) => Some(Shared::delete_records(delete, plan.data.records)),
        Work::Mix(_) | Work::Replay(_) | Work::Pause(_) | Work::Window(_) => None,
    }
}

/// How many requests a phase makes, where that is known. Loading stores every record on every server, or where its key
/// decides on the server only there.
fn requests_of(plan: &Plan, phase: &Phase) -> Option<u64> {
    match (&phase.work, chores_of(plan, phase)) {
        (Work::Window(window), _) if window.preset => {
            let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients)).sum();
            Some(clients * u64::from(window.objects))
        }
        (_, Some(records)) if plan.route.owns_keys() => Some(records),
        (_, Some(records)) => Some(records * plan.servers.len() as u64),
        (_, None) => phase.stop.requests,
    }
}

/// How many requests of a phase are made here, where that is known.
fn requests_here(context: &RunContext<'_>, phase: &Phase) -> Option<u64> {
    if context.part.is_whole() {
        return requests_of(context.plan, phase);
    }
    requests_of(context.plan, phase)?;
    let clients = context.plan.groups.iter().zip(&context.part.clients).enumerate();
    let shares = clients.flat_map(|(at, (group, here))| {
        here.clone().map(move |number| requests_of_client(context, phase, at, group, number))
    });
    Some(shares.fold(0, u64::saturating_add))
}

/// One client's share of them. Where there are several groups, the first goes through the records.
fn requests_of_client(
    context: &RunContext<'_>,
    phase: &Phase,
    at: usize,
    group: &plan::Group,
    number: u64,
) -> u64 {
    let plan = context.plan;
    if at > 0 && chores_of(plan, phase).is_some() {
        return 0;
    }
    if let Work::Window(window) = &phase.work
        && window.preset
    {
        return window.objects.into();
    }
    let (clients, servers) = (u64::from(group.clients), plan.servers.len() as u64);
    let block = u64::from(group.policy.block);
    let (rank, mates) = rank_among_mates(number, clients, servers, block);
    match (chores_of(plan, phase), phase.stop.requests) {
        (Some(records), _) if plan.route == Route::All => {
            let mates = mates.min(loaders(context));
            if rank < mates { share(Some(records), rank, mates) } else { 0 }
        }
        (Some(_), _) => match clients.min(loaders(context)) {
            loaders if number < loaders => share(requests_of(plan, phase), number, loaders),
            _ => 0,
        },
        // Servers that have more clients than others are not to get more requests for it.
        (None, Some(requests)) if block > 1 => {
            share(Some(share(Some(requests), number / block % servers, servers)), rank, mates)
        }
        (None, requests) => share(requests, number, clients),
    }
}

/// One client's share: all do as many, and the first ones one more where it does not divide.
fn share(requests: Option<u64>, number: u64, clients: u64) -> u64 {
    requests.map_or(u64::MAX, |requests| requests / clients + u64::from(number < requests % clients))
}

fn depth_of(phase: &Phase, group: &plan::Group) -> u32 {
    match (&phase.work, group.depth) {
        (Work::Load(load), _) => load.depth,
        (Work::Delete(delete), _) => delete.depth,
        (Work::Window(_), _) => 1,
        (Work::Mix(_) | Work::Replay(_) | Work::Pause(_), _) => plan::memory::depth_of(group),
    }
}

/// Which clients a worker has, as group and number: a run of neighbours, so that servers, which are dealt to clients in
/// turn, are spread over every worker.
fn places_of(plan: &Plan, part: &Part, worker: usize) -> Vec<(usize, u64)> {
    let (worker, threads) = (worker as u64, u64::from(part.threads));
    let mut places = Vec::new();
    let loads = plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
    for (at, (group, here)) in plan.groups.iter().zip(&part.clients).enumerate() {
        // Seats of those who come and go are made as they are needed, unless the same clients load.
        if group.crowd.is_some() && !loads {
            continue;
        }
        let block = u64::from(group.policy.block);
        let blocks = (here.end - here.start).div_ceil(block);
        let start = |worker: u64| (here.start + worker * blocks / threads * block).min(here.end);
        places.extend((start(worker)..start(worker + 1)).map(|number| (at, number)));
    }
    places
}

fn worker_of<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    line: Line,
    backend: B,
    places: &[(usize, u64)],
) -> Worker<C, B> {
    let (plan, number) = (context.plan, line.worker);
    let lanes = plan.lanes();
    let mut clients = Vec::with_capacity(places.len());
    let mut endpoints = Vec::with_capacity(places.len() * lanes);
    for &(group, number) in places {
        let before: u64 = plan.groups[..group].iter().map(|group| u64::from(group.clients)).sum();
        let pool = plan.window().map(|window| window.pool);
        let servers = match &pool {
            Some(pool) => Cow::Owned(pool.servers_of(number, plan.servers.len())),
            None => Cow::Borrowed(context.routers[group].servers_of(number)),
        };
        let writer = (plan.verify > 0.0).then(|| Writer::new(context.mark, before + number));
        let mut client = Client::new(group, number, servers[0], writer).with_lanes(&servers);
        if let Some(window) = &context.window {
            client = client.with_window(window, plan.groups[group].clients.into());
        }
        clients.push(client);
        let first = (before + number) * lanes as u64;
        endpoints.extend((first..).zip(servers.iter()).map(|(connection, &server)| {
            let transport =
                plan.phases.first().map_or(plan.transport, |phase| transport_of(context, phase, server));
            Endpoint { server, connection, transport }
        }));
        if let Some(last) = endpoints.last_mut().filter(|_| pool.is_some_and(|pool| pool.datagrams)) {
            last.transport = Transport::Udp;
        }
    }
    let crowd = crowd_of(plan).map(|(_, crowd)| crowd);
    let sequence = crowd.and_then(|crowd| crowd.sequence.as_ref());
    let all_clients = plan.groups.first().map_or(1, |group| u64::from(group.clients));
    let mut shared = Shared::new(
        context.keys.clone(),
        context.values.clone(),
        &plan.data,
        all_clients,
        plan.verify,
        context.mark,
    )
    .over(context.routers[0].clone())
    .counting_bare(plan.protocol.is_resp())
    .loading_by(loaders(context))
    .counting(sequence.map(|sequence| Sequencer::new(sequence, &plan.data.key_prefix)))
    .with_window(context.window.clone());
    if let Some(trace) = &context.trace {
        let worker = u64::from(context.part.first_worker) + line.worker as u64;
        shared = shared.replaying(Arc::clone(trace), worker, context.part.workers.into());
    }
    let depth = plan.groups.iter().map(|group| depth_in_use(group.depth)).max().unwrap_or(1);
    let limits = WorkerLimits {
        timeout_ns: plan.timeout_ns,
        reconnect: plan.reconnect,
        drain_ns: plan.timeout_ns.min(DRAIN_MAX_NS),
        load_patience_ns: patience(plan, if plan.reconnect { PATIENCE } else { LOAD_PATIENCE }),
        patience_ns: patience(plan, PATIENCE),
        unsent_draws_max: draws_of_client(plan.groups.iter().map(|group| u64::from(group.clients)).sum()),
    };
    let options = ReportOptions {
        checks: if plan.verify > 0.0 { endpoints.len() } else { 0 },
        churn_account: crowd.map(|_| sequence.map(|_| weight_of(plan))),
        checks_grow: crowd.is_some() && plan.verify > 0.0,
        rows: context.wants.rows,
        departures: context.wants.departures,
        waits_for_intervals: context.choice.is_none(),
        first_connection: endpoints.first().map_or(0, |endpoint| endpoint.connection) + 1,
        successes_only: plan.groups.iter().map(|group| group.policy.successes_only).collect(),
        stamped: plan.engine.clock == Clock::Kernel && !context.servers.iter().any(Server::is_unix),
    };
    let verbs = recorded_verbs(plan);
    let intervals = std::array::from_fn(|_| {
        let interval = Interval::new(plan.groups.iter().map(|_| verbs.iter().copied()));
        Box::new(interval.counting(context.wants.outstanding).of_worker(number))
    });
    Worker::new(
        backend,
        WorkerSetup {
            clients,
            lanes,
            servers: Arc::clone(&context.servers),
            endpoints,
            depth,
            handshake: Arc::clone(&context.handshake),
        },
        limits,
        shared,
        WorkerReporter::new(line, intervals, options),
    )
    .churn_limits(churn_limits_of(context, number))
}

/// What requests of a sequence weigh.
fn weight_of(plan: &Plan) -> Weight {
    let noreply = plan.phases.iter().any(|phase| matches!(&phase.work, Work::Mix(mix) if mix.noreply));
    let expiry_s = plan.data.expiry_s.quantile(0.0) as i64;
    Weight { prefix_bytes: plan.data.key_prefix.len() as u64, expiry_s, noreply }
}

fn patience(plan: &Plan, (timeouts, least_ns): (u64, Nanos)) -> Nanos {
    plan.timeout_ns.saturating_mul(timeouts).max(least_ns)
}

fn depth_in_use(depth: Depth) -> usize {
    match depth {
        Depth::Limit(depth) => depth as usize,
        // Few are outstanding at one time nearly always; more take their memory when they come, within the plan's bound.
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
            Work::Replay(_) | Work::Window(_) => verbs.extend([Verb::Get, Verb::Set]),
            Work::Delete(_) => verbs.push(Verb::Delete),
            Work::Pause(_) => {}
        }
    }
    verbs
}

/// 64 bits that no other run has, from the operating system.
fn chance() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// Gives an interval, emptied, back to the worker whose memory it is.
fn give_back(spares: &[Sender<Box<Interval>>], mut interval: Box<Interval>) {
    interval.restart(0, 0);
    // A worker that is through does not listen any more.
    let _ = spares[interval.worker].send(interval);
}

/// Puts together what workers say.
struct Collector<'a, 'w> {
    context: &'a RunContext<'a>,
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
    /// Its length.
    elapsed_ns: Nanos,
    /// How late the last worker began the phase under way.
    late_ns: Nanos,
    /// Lengths of the measured phases before it, together.
    before_ns: Nanos,
    /// Number of slices before it.
    before_slices: u64,
    trouble: Option<(u32, Trouble)>,
    /// For every server, the last recorded phase in which it was talked to, and how long it had answered nothing at the
    /// end of that.
    silent: BTreeMap<u32, (usize, Nanos)>,
    failures: Vec<io::Error>,
    /// Notes that workers dropped.
    messages_dropped: u64,
    stopped_at: Option<Nanos>,
    /// CPU time that the process had used when a recorded phase began, or a worker was through with it.
    cpu: CpuTime,
    /// It was the caller who wanted it to stop.
    interrupted: bool,
}

impl<'a, 'w> Collector<'a, 'w> {
    fn new(
        context: &'a RunContext<'a>,
        spares: Vec<Sender<Box<Interval>>>,
        watch: &'w mut dyn Watch,
    ) -> Self {
        let plan = context.plan;
        let names = plan.groups.iter().map(|group| group.name.clone());
        let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
        if let Some(choice) = &context.choice {
            measurement.generator.backends.insert(choice.backend);
            measurement.generator.fallbacks.extend(choice.fallback.clone());
        }
        measurement.unix_socket = context.servers.iter().any(Server::is_unix);
        measurement.connections.asked = context.part.clients() * plan.lanes() as u64;
        measurement.samples = context.wants.rows.then(Samples::default);
        measurement.udp = uses_datagrams(plan).then(udp::Counts::default);
        // What a result says that was written before the end, should nobody write another.
        measurement.mark(Status::Partial, "the run is not over");
        Collector {
            context,
            watch,
            measurement,
            next: vec![0; spares.len()],
            spares,
            open: BTreeMap::new(),
            ended: vec![0; plan.phases.len()],
            through: vec![0; plan.phases.len()],
            dead: vec![0; plan.phases.len()],
            missing: 0,
            elapsed_ns: 0,
            late_ns: 0,
            before_ns: 0,
            before_slices: 0,
            trouble: None,
            silent: BTreeMap::new(),
            failures: Vec::new(),
            messages_dropped: 0,
            stopped_at: None,
            cpu: CpuTime::default(),
            interrupted: false,
        }
    }

    /// Listens until every worker is through.
    fn collect(mut self, messages: Receiver<Told>, stop: &dyn Fn() -> bool) -> Measurement {
        loop {
            match messages.recv_timeout(WATCH) {
                Ok(told) => self.handle_message(told),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.stopped_at.is_none() && stop() {
                self.interrupted = true;
                self.stop();
            }
        }
        // Others may have ended the run while all workers here waited for them.
        let waited = self.context.gate.is_some() && self.through.contains(&0);
        if self.stopped_at.is_none() && waited && stop() {
            self.interrupted = true;
            self.stop();
        }
        self.finish()
    }

    fn handle_message(&mut self, told: Told) {
        let plan = self.context.plan;
        match told.message {
            WorkerMessage::Began { phase, at, cpu } => {
                self.cpu = cpu;
                if plan.phases[phase].recorded && self.measurement.started_unix_ns == 0 {
                    self.measurement.started_unix_ns =
                        clock::wall().saturating_sub(clock::now().saturating_sub(at));
                }
                self.watch.begin(&plan.phases[phase], at);
            }
            WorkerMessage::Spent { phase, cpu } => {
                if plan.phases[phase].recorded {
                    self.spent(cpu);
                }
            }
            WorkerMessage::Progress { phase, ended } => {
                self.ended[phase] += ended;
                let of = requests_here(self.context, &plan.phases[phase]);
                self.watch.progress(&plan.phases[phase], self.ended[phase], of);
            }
            WorkerMessage::Slice { interval, worker, next } => self.slice(interval, worker, next),
            WorkerMessage::Rows(rows) => {
                if let Some(samples) = &mut self.measurement.samples {
                    samples.written += rows.len() as u64;
                }
                self.watch.rows(&rows);
            }
            WorkerMessage::Departures(gone) => self.watch.departures(&gone),
            WorkerMessage::Finding { connection, finding } => self.watch.finding(connection, &finding),
            WorkerMessage::Complaint { connection, words } => self.watch.complaint(connection, &words),
            WorkerMessage::Connection { server, event } => self.watch.connection(server as usize, event),
            WorkerMessage::Gone => self.gone(),
            WorkerMessage::Phase(end) => self.phase(&end),
            WorkerMessage::Done(end) => self.done(*end),
        }
    }

    /// A worker was through with a recorded phase when the process had used this CPU time. The last worker's word counts,
    /// so that the drain of every worker is in it.
    fn spent(&mut self, cpu: CpuTime) {
        let generator = &mut self.measurement.generator;
        generator.cpu_user_ns += cpu.user_ns.saturating_sub(self.cpu.user_ns);
        generator.cpu_system_ns += cpu.system_ns.saturating_sub(self.cpu.system_ns);
        self.cpu.user_ns = self.cpu.user_ns.max(cpu.user_ns);
        self.cpu.system_ns = self.cpu.system_ns.max(cpu.system_ns);
    }

    /// A connection is lost for good. Where nothing goes on without it, the run is over.
    fn gone(&mut self) {
        if self.stopped_at.is_none() && self.context.plan.groups.iter().any(|group| group.policy.whole) {
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.stopped_at = Some(clock::now());
        self.context.meeting.stop();
    }

    /// Adds a worker's part of a slice; slices that are whole go into the measurement.
    fn slice(&mut self, interval: Box<Interval>, worker: usize, next: u64) {
        self.next[worker] = next;
        add_part(&mut self.open, interval, |part| give_back(&self.spares, part));
        let whole = self.next.iter().min().copied().unwrap_or(0);
        self.add_slices(whole);
    }

    /// Adds the slices before `end` to the measurement.
    fn add_slices(&mut self, end: u64) {
        let length_ns = self.context.plan.interval_ns;
        let spares = &self.spares;
        while let Some(mut interval) =
            take_whole(&mut self.open, end, length_ns, |part| give_back(spares, part))
        {
            interval.index += self.before_slices;
            interval.start_ns += self.before_ns;
            interval.end_ns += self.before_ns;
            self.watch.interval(&mut interval);
            self.measurement.add(&mut interval, self.watch.wants().keep);
            self.measurement.measured_ns = self.measurement.measured_ns.max(interval.end_ns);
            give_back(spares, interval);
            self.watch.slice(&self.measurement);
        }
    }

    fn phase(&mut self, end: &PhaseEnd) {
        let phase = &self.context.plan.phases[end.phase];
        let measurement = &mut self.measurement;
        measurement.whole_run.ops.merge(&end.tally);
        measurement.whole_run.bytes.merge(&end.bytes);
        if let Some(came) = &end.load {
            let load = measurement.load.get_or_insert_default();
            if self.through[end.phase] == 0 {
                load.records += requests_here(self.context, phase).unwrap_or(0);
            }
            let (stored, ended) = (came.counts.outcomes.stored, came.counts.ended());
            load.stored += stored;
            load.errors += (ended - stored).saturating_sub(end.fate.repeated);
            load.elapsed_ns = load.elapsed_ns.max(end.elapsed_ns);
            load.bytes += came.sent_bytes;
            came.messages.iter().for_each(|(message, count)| load.message(message, *count));
        }
        if phase.recorded {
            measurement.connections.open += end.open;
            measurement.generator.workers.push(end.time);
            // What was asked for, or what there was of it when the run was stopped.
            let over = end.end.min(self.stopped_at.unwrap_or(NEVER));
            let elapsed = end.elapsed_ns.min(over.saturating_sub(end.begin));
            self.elapsed_ns = self.elapsed_ns.max(elapsed);
            measurement.skipped += end.fate.skipped;
            measurement.answered_ns = measurement.answered_ns.max(self.before_ns + end.answered_ns);
        }
        self.through[end.phase] += 1;
        self.late_ns = self.late_ns.max(end.late_ns);
        if self.through[end.phase] == self.spares.len() {
            self.watch.phase_over(phase, std::mem::take(&mut self.late_ns));
        }
        self.dead[end.phase] += end.fate.dead;
        self.missing += end.fate.missing;
        if phase.recorded && self.through[end.phase] == self.spares.len() {
            self.end_recorded_phase();
        }
        for &(server, silent_ns) in end.fate.silent.iter().filter(|_| phase.recorded) {
            let known = self.silent.entry(server).or_insert((end.phase, silent_ns));
            // It is silent when it is so to every worker.
            let least = if known.0 == end.phase { known.1.min(silent_ns) } else { silent_ns };
            *known = (end.phase, least);
        }
    }

    /// All workers are through a recorded phase; the slices of another one follow behind its own.
    fn end_recorded_phase(&mut self) {
        self.add_slices(u64::MAX);
        self.next.fill(0);
        self.before_slices = self.measurement.intervals.last().map_or(0, |slice| slice.index + 1);
        self.before_ns += std::mem::take(&mut self.elapsed_ns);
    }

    fn done(&mut self, end: WorkerEnd) {
        // A worker that could not go on has left slices to the others.
        self.next[end.worker] = u64::MAX;
        self.add_slices(self.next.iter().min().copied().unwrap_or(0));
        let connections = &mut self.measurement.connections;
        connections.failed += end.failed;
        connections.lost += end.lost;
        connections.reconnected += end.reconnected;
        connections.connect.merge(&end.connect);
        connections.handshake.merge(&end.handshake);
        connections.resumed += end.resumed;
        if let Some(churn) = &end.churn {
            connections.churn.get_or_insert_default().merge(churn);
        }
        self.measurement.verify.merge(&end.verify);
        if let Some(samples) = &mut self.measurement.samples {
            samples.dropped += end.rows_dropped;
        }
        self.messages_dropped += end.messages_dropped;
        if let Some(udp) = &mut self.measurement.udp {
            udp.merge(&end.udp);
        }
        self.measurement.noreply_errors += end.noreply_errors;
        for (message, count) in &end.messages {
            self.measurement.message(message, *count);
        }
        self.trouble = self.trouble.take().or(end.trouble);
        self.failures.extend(end.failure);
    }

    /// Everything was said: the figures are whole, and what became of the run is known.
    fn finish(mut self) -> Measurement {
        self.add_slices(u64::MAX);
        self.measurement.measured_ns = self.before_ns + self.elapsed_ns;
        if self.messages_dropped > 0 {
            self.watch.notice(&format!(
                "{} messages about single connections or clients were dropped, because they came faster than they could be \
                 told",
                self.messages_dropped
            ));
        }
        self.measurement.generator.peak_rss_bytes = sys::peak_rss_bytes().unwrap_or(0);
        (self.measurement.status, self.measurement.reason) = (Status::Complete, None);
        if let Some(reason) = self.shortfall() {
            self.measurement.mark(Status::Partial, reason);
        }
        if self.interrupted {
            self.measurement.status = Status::Interrupted;
            self.measurement.reason = Some("interrupted".to_owned());
        }
        self.measurement
    }

    /// What is missing from what the Plan asked for, if anything.
    fn shortfall(&self) -> Option<String> {
        let plan = self.context.plan;
        let asked = self.measurement.connections.asked;
        let trouble = self
            .trouble
            .as_ref()
            .map(|(server, trouble)| format!("{}: {trouble}", self.context.servers[*server as usize].name()));
        let why = trouble.as_ref().map_or_else(|| self.complaint(), |trouble| format!(": {trouble}"));
        if let Some(failure) = self.failures.first() {
            return Some(format!("a worker could not go on: {failure}"));
        }
        if let Some(unstored) = self.failed_load(trouble.as_deref()) {
            return Some(unstored);
        }
        let workers = self.spares.len();
        let dead = self.dead.iter().max().copied().unwrap_or(0);
        let begun = self.through.iter().all(|&through| through == workers);
        if !begun && dead == 0 {
            return Some(format!("{}{why}", self.unopened()));
        }
        let failed = self.measurement.connections.churn.as_ref().filter(|churn| churn.failures.total() > 0);
        if let Some(churn) = failed {
            return Some(self.failed_clients(churn, &why));
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
        // Where others have parts of the run, those who see them all say whether nothing came of it.
        if recorded && measured == 0 && self.context.part.is_whole() {
            let hint = match plan.transport {
                Transport::Udp => "; memcached listens on UDP only with -U",
                Transport::Stream => "",
            };
            return Some(format!("nothing completed{why}{hint}"));
        }
        self.gone_at_the_end().or_else(|| self.partial_load(trouble.as_deref()))
    }

    /// Which server was gone at the end of what was measured, if any.
    fn gone_at_the_end(&self) -> Option<String> {
        let (&server, &(_, silent_ns)) =
            self.silent.iter().find(|(_, (_, silent_ns))| *silent_ns >= self.long_silence_ns())?;
        let name = self.context.servers[server as usize].name();
        let first = self.trouble.as_ref().map_or(String::new(), |(_, trouble)| format!(": {trouble}"));
        Some(format!(
            "{name} was gone at the end, and answered nothing for {:.1} s{first}",
            seconds(silent_ns)
        ))
    }

    /// What became of clients that come and go of which some failed, for the first reason that was seen.
    fn failed_clients(&self, churn: &Churn, why: &str) -> String {
        let failures = &churn.failures;
        let missing = match self.missing {
            0 => String::new(),
            missing => format!("; {missing} requests were never made"),
        };
        let short = [(failures.descriptors, libc::EMFILE), (failures.files, libc::ENFILE)];
        let short = short.into_iter().find(|(count, _)| *count > 0 && 2 * count > failures.total());
        let Some((count, errno)) = short else {
            return format!("{} of {} connections failed{why}{missing}", failures.total(), churn.begun);
        };
        let reason = Trouble::NotOpened(Reason::new(Fault::Closed, errno));
        format!(
            "this machine let no more than {} connections be open at one time, and {count} found no room: {reason}{missing}",
            churn.alive_max
        )
    }

    /// What a load came to that stored nothing, and ended the run. Where the load is shared, the controller judges it.
    fn failed_load(&self, trouble: Option<&str>) -> Option<String> {
        let phases =
            (1..=self.context.plan.phases.len()).filter(|n| self.through[n - 1] == self.spares.len());
        let failed = phases.map(|n| loaded_before(self.context, n)).any(Loaded::has_failed);
        let load = self.measurement.load.as_ref().filter(|_| failed && self.context.part.is_whole())?;
        load_shortfall(load, false, trouble)
    }

    /// What a load left out, where the Plan does not allow that. Where the load is shared, the controller judges it.
    fn partial_load(&self, trouble: Option<&str>) -> Option<String> {
        let load = self.measurement.load.as_ref().filter(|_| self.context.part.is_whole())?;
        load_shortfall(load, self.context.plan.allow_partial_load, trouble)
    }

    /// What became of the connections of a run that did not begin. The first that cannot be opened, or is lost, ends it.
    fn unopened(&self) -> String {
        let connections = &self.measurement.connections;
        let (asked, failed) = (connections.asked, connections.failed);
        let untried = asked.saturating_sub(connections.connect.count() + failed);
        match (failed, connections.lost) {
            (0, 0) => format!("{untried} of {asked} connections were not opened"),
            (0, lost) => format!("{lost} of {asked} connections were lost at once"),
            _ if untried > 0 => {
                format!("{failed} of {asked} connections could not be opened (not open yet: {untried})")
            }
            _ => format!("{failed} of {asked} connections could not be opened"),
        }
    }

    /// How long a server answers nothing that is gone: half of what a request or the drain may take, unless it was seen
    /// to take long.
    fn long_silence_ns(&self) -> Nanos {
        let timeout_ns = self.context.plan.timeout_ns;
        if uses_datagrams(self.context.plan) {
            // A single connection hears nothing for a whole timeout where one datagram is lost.
            return timeout_ns.saturating_mul(2).max(SILENCE_MIN_NS);
        }
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
        most_said(&self.measurement.messages).map_or(String::new(), |said| format!(": {said}"))
    }
}
