//! `pummel agent`: waits for a controller, runs its part of the plan, and waits for the next.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pummel_engine::backend::tls::Setup;
use pummel_engine::clock;
use pummel_engine::run::{Inputs, Permit, Wants, ensure_descriptors, permitted};
use pummel_engine::sys;
use pummel_logic::measure::completion::Loaded;
use pummel_logic::measure::measurement::Keep;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Plan, Wait, Work};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::agent::listener;
use crate::agent::listener::{Caller, Token, refused};
use crate::agent::member;
use crate::agent::member::{CutShort, Reins, Said, Task};
use crate::agent::policy::Network;
use crate::agent::proto::v2::agent_server::{Agent, AgentServer};
use crate::agent::proto::v2::command::What as Told;
use crate::agent::proto::v2::event::What as Word;
use crate::agent::proto::{
    BEAT, COMMAND_BYTES_MAX, DESCRIPTION, PATIENCE, PROTOCOL, build, mismatch, pack_rows, v2,
};
use crate::job::inputs::supplies_of;
use crate::report::output::print;
use crate::stderr::say;

/// Events of a job that wait to be sent; the job waits where there are more.
const EVENTS: usize = 64;

/// Streams of one connection at one time.
const STREAMS_MAX: u32 = 16;

/// What the headers of a call may have at most, in bytes.
const HEADERS_MAX: u32 = 16 * 1024;

/// How often to look whether the agent is to end.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// What an agent is told on its own command line.
#[derive(Debug)]
pub struct Post {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who may come in.
    pub guard: Guard,
    /// What its own command line decides.
    pub own: Own,
}

/// Whom an agent serves.
#[derive(Debug)]
pub struct Guard {
    /// Encryption, with a certificate asked of controllers.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The word that controllers have to know.
    pub token: Option<Token>,
    /// The servers that it sends load to.
    pub targets: Vec<Network>,
}

/// What an agent decides itself, where its own command line is mutilate's; 0 where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Threads.
    pub threads: u32,
    /// How many times the rate of others it takes.
    pub weight: u32,
    /// Its connections, in place of those of the controller's command line.
    pub measure_connections: u32,
    /// It never spins.
    pub blocking: bool,
    /// CPUs for its threads, in place of those of the plan.
    pub cpus: Vec<usize>,
}

impl Guard {
    /// Whether it knows who speaks to it.
    fn knows_callers(&self) -> bool {
        self.tls.is_some() || self.token.is_some()
    }
}

/// Serves until the process is interrupted.
///
/// # Errors
/// When it cannot listen.
pub fn serve(post: Post, interrupts: &'static AtomicU32) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(post.listen).await.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {}: {error}", post.listen))
        })?;
        let address = listener.local_addr()?;
        let wires = listener::open(listener, post.guard.tls.clone());
        let station = Station {
            guard: Arc::new(post.guard),
            own: post.own,
            holder: Arc::default(),
            visits: AtomicU64::new(0),
        };
        let desk = Arc::clone(&station.holder);
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<AgentServer<Station>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTION)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(io::Error::other)?;
        let agent = AgentServer::new(station).max_decoding_message_size(COMMAND_BYTES_MAX);
        let server = Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .http2_max_header_list_size(HEADERS_MAX)
            .add_service(health_service)
            .add_service(reflection)
            .add_service(agent);
        print(format!("listening on {address}\n").as_bytes())?;
        let wires = ReceiverStream::new(wires).map(Ok::<_, io::Error>);
        let (leave, left) = oneshot::channel::<()>();
        let serving = server.serve_with_incoming_shutdown(wires, async { drop(left.await) });
        tokio::select! {
            served = serving => served.map_err(io::Error::other),
            () = async {
                interrupted(interrupts).await;
                // A job that is under way comes to its end, so that its connections are closed in order.
                let job = lock(&desk).as_ref().map(|holder| holder.reins.clone());
                if let Some(Some(reins)) = job {
                    reins.cut_short("its process was told to end");
                }
                let _ = timeout(PATIENCE, free(&desk)).await;
                // The controller hears of it before the agent is gone.
                drop(leave);
                sleep(PATIENCE).await;
            } => Ok(()),
        }
    })
}

async fn interrupted(interrupts: &AtomicU32) {
    while interrupts.load(Ordering::Relaxed) == 0 {
        sleep(LOOK).await;
    }
}

async fn free(desk: &Desk) {
    while lock(desk).is_some() {
        sleep(LOOK).await;
    }
}

/// Who has the agent, if anybody.
type Desk = Mutex<Option<Holder>>;

#[derive(Debug)]
struct Holder {
    /// No other stay has this number.
    number: u64,
    controller: String,
    address: SocketAddr,
    since: Instant,
    /// Of its job, once that has begun.
    reins: Option<Reins>,
}

/// The agent is free again, unless somebody else has it by now.
fn release(desk: &Desk, number: u64) {
    let mut holder = lock(desk);
    if holder.as_ref().is_some_and(|holder| holder.number == number) {
        *holder = None;
    }
}

fn lock(desk: &Desk) -> std::sync::MutexGuard<'_, Option<Holder>> {
    desk.lock().unwrap_or_else(|broken| broken.into_inner())
}

impl Holder {
    fn words(&self) -> String {
        let seconds = self.since.elapsed().as_secs_f64();
        format!("{} from {}, for {seconds:.1} s", self.controller, self.address)
    }
}

/// The service.
#[derive(Debug)]
struct Station {
    guard: Arc<Guard>,
    own: Own,
    holder: Arc<Desk>,
    visits: AtomicU64,
}

impl Station {
    /// Who speaks; an error where nobody listens to them.
    fn caller<T>(&self, request: &Request<T>) -> Result<SocketAddr, Status> {
        let caller = request.extensions().get::<Caller>().copied();
        let address = caller.map(|caller| caller.address).ok_or_else(|| Status::internal("no address"))?;
        let Some(token) = &self.guard.token else { return Ok(address) };
        let shown = request.metadata().get("authorization").map(|header| header.as_bytes());
        if token.is_shown_by(shown) {
            return Ok(address);
        }
        let why = if shown.is_some() { "it showed a wrong token" } else { "it showed no token" };
        refused(address, why);
        Err(Status::unauthenticated(format!("{why}: this agent was started with --token-file")))
    }
}

type Events = Pin<Box<dyn Stream<Item = Result<v2::Event, Status>> + Send>>;

#[tonic::async_trait]
impl Agent for Station {
    async fn hello(&self, request: Request<v2::HelloRequest>) -> Result<Response<v2::HelloReply>, Status> {
        self.caller(&request)?;
        let holder = lock(&self.holder).as_ref().map_or(String::new(), Holder::words);
        Ok(Response::new(v2::HelloReply {
            protocol: PROTOCOL,
            build: Some(build()),
            holder,
            cpus: cpus(),
            threads: self.own.threads,
            weight: self.own.weight,
            measure_connections: self.own.measure_connections,
        }))
    }

    async fn clock(&self, request: Request<v2::ClockRequest>) -> Result<Response<v2::ClockReply>, Status> {
        self.caller(&request)?;
        Ok(Response::new(v2::ClockReply { monotonic_ns: clock::now(), wall_ns: clock::wall() }))
    }

    type RunStream = Events;

    async fn run(&self, request: Request<Streaming<v2::Command>>) -> Result<Response<Events>, Status> {
        let address = self.caller(&request)?;
        let (events, sent) = mpsc::channel(EVENTS);
        let visit = Visit {
            guard: Arc::clone(&self.guard),
            own: self.own.clone(),
            desk: Arc::clone(&self.holder),
            number: self.visits.fetch_add(1, Ordering::Relaxed),
            address,
            events,
        };
        tokio::spawn(visit.receive(request.into_inner()));
        let sent: Events = Box::pin(ReceiverStream::new(sent));
        Ok(Response::new(sent))
    }
}

fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

fn event(what: Word) -> Result<v2::Event, Status> {
    Ok(v2::Event { what: Some(what) })
}

/// One controller's stay.
struct Visit {
    guard: Arc<Guard>,
    own: Own,
    desk: Arc<Desk>,
    number: u64,
    address: SocketAddr,
    events: mpsc::Sender<Result<v2::Event, Status>>,
}

impl Visit {
    async fn receive(self, mut commands: Streaming<v2::Command>) {
        let order = match timeout(PATIENCE, commands.next()).await {
            Ok(Some(Ok(v2::Command { what: Some(Told::Order(order)) }))) => order,
            Ok(Some(Err(status))) => return self.turn_away(status.message().to_owned(), false).await,
            _ => return self.turn_away("the first command has to be an order".to_owned(), false).await,
        };
        if let Some(why) = mismatch(order.protocol, order.build.as_ref(), order.allow_version_mismatch) {
            return self.turn_away(format!("the controller {why}"), false).await;
        }
        if let Err(held) = self.take(&order) {
            return self.turn_away(format!("it is held by {held}"), false).await;
        }
        self.serve(order, commands).await;
        release(&self.desk, self.number);
    }

    /// Makes the agent this controller's; an error names who has it.
    fn take(&self, order: &v2::Order) -> Result<(), String> {
        let mut holder = lock(&self.desk);
        if let Some(other) = &*holder {
            return Err(other.words());
        }
        *holder = Some(Holder {
            number: self.number,
            controller: order.controller.chars().filter(|c| !c.is_control()).take(200).collect(),
            address: self.address,
            since: Instant::now(),
            reins: None,
        });
        Ok(())
    }

    async fn turn_away(&self, why: String, usage: bool) {
        refused(self.address, &why);
        let _ = self.events.send(event(Word::Refused(v2::Refused { why, usage }))).await;
    }

    /// Follows an order, until its run is over and the controller has heard of it, or is gone.
    async fn serve(&self, order: v2::Order, mut commands: Streaming<v2::Command>) {
        let (guard, own) = (Arc::clone(&self.guard), self.own.clone());
        // Files and names may take their time, while others ask for the clock.
        let mut reading = tokio::task::spawn_blocking(move || task_of(&order, &guard, &own));
        let mut beat = interval(BEAT);
        let read = loop {
            tokio::select! {
                read = &mut reading => break read,
                _ = beat.tick() => self.beat(),
            }
        };
        let task = match read {
            Ok(Ok(task)) => task,
            Ok(Err((why, usage))) => return self.turn_away(why, usage).await,
            Err(error) => return self.turn_away(error.to_string(), false).await,
        };
        let mut task = Some(task);
        let _ = self.events.send(event(Word::Accepted(v2::Accepted {}))).await;
        let (over, mut is_over) = watch::channel(false);
        let over = Arc::new(over);
        let mut reins: Option<Reins> = None;
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                command = timeout(PATIENCE.saturating_sub(heard.elapsed()), commands.next()) => match command {
                    Ok(Some(Ok(command))) => { heard = Instant::now(); match command.what {
                        Some(Told::Connect(_)) => {
                            let Some(task) = task.take() else { continue };
                            match self.begin(task, Arc::clone(&over)) {
                                Ok(begun) => reins = Some(begun),
                                Err(error) => return self.turn_away(error.to_string(), false).await,
                            }
                            if let Some(holder) = &mut *lock(&self.desk) {
                                holder.reins.clone_from(&reins);
                            }
                        }
                        Some(Told::Go(go)) => if let Some(reins) = &reins { reins.go(go.at_ns) },
                        Some(Told::Stop(_)) => match &reins {
                            Some(reins) => reins.stop(),
                            None => return,
                        },
                        Some(Told::Beat(_)) => {}
                        Some(Told::Order(_)) | None => break,
                    }},
                    Ok(Some(Err(_)) | None) => break,
                    Err(_) => {
                        say(format_args!("the controller at {} says nothing any more", self.address));
                        if let Some(reins) = &reins {
                            let silent = heard.elapsed().as_secs_f64();
                            reins.cut_short(format!("it heard nothing from its controller for {silent:.1} s"));
                        }
                        break;
                    }
                },
                _ = beat.tick() => {
                    self.beat();
                    if self.events.is_closed() {
                        break;
                    }
                }
                _ = is_over.changed() => return,
            }
        }
        if let Some(reins) = reins {
            reins.stop();
            // The agent is free when nothing of the job is left.
            while !*is_over.borrow_and_update() {
                if is_over.changed().await.is_err() {
                    break;
                }
            }
        }
    }

    /// Says that the agent is still there; where events wait to be sent there is no need for it.
    fn beat(&self) {
        let _ = self.events.try_send(event(Word::Beat(v2::Beat {})));
    }

    /// Runs a task on a thread of its own, and sends what it says.
    fn begin(&self, task: Task, over: Arc<watch::Sender<bool>>) -> io::Result<Reins> {
        let (events, desk, number) = (self.events.clone(), Arc::clone(&self.desk), self.number);
        member::begin(task, move |said| {
            let is_last = matches!(said, Said::End { .. } | Said::Failed(_) | Said::Refused { .. });
            if is_last {
                // Before its last word, so that whoever has heard that may come back at once.
                release(&desk, number);
            }
            let heard = events.blocking_send(event(word_of(said))).is_ok();
            if is_last {
                over.send_replace(true);
            }
            heard
        })
    }
}

/// What a member says, in the words of the protocol.
fn word_of(said: Said) -> Word {
    let json = |data: serde_json::Result<Vec<u8>>| data.expect("measurements have nothing that JSON has not");
    match said {
        Said::Accepted => Word::Accepted(v2::Accepted {}),
        Said::Refused { why, usage } => Word::Refused(v2::Refused { why, usage }),
        Said::Ready { phase, loaded: Loaded { records, stored } } => {
            Word::Ready(v2::Ready { phase, records, stored })
        }
        Said::Began(phase) => Word::Began(v2::Began { phase }),
        Said::PhaseOver { phase, late_ns } => Word::PhaseOver(v2::PhaseOver { phase, late_ns }),
        Said::Slice(parcel) => {
            Word::Interval(v2::Interval { slice: json(serde_json::to_vec(&parcel)).into() })
        }
        Said::Rows(rows) => Word::Rows(pack_rows(&rows)),
        Said::Progress { phase, ended, of } => Word::Progress(v2::Progress { phase, ended, of }),
        Said::Notice(words) => Word::Notice(v2::Notice { words }),
        Said::End { measurement, cut_short } => Word::End(v2::End {
            measurement: json(serde_json::to_vec(&measurement)).into(),
            failure: String::new(),
            cut_short: cut_short.map(|CutShort { why, at }| v2::CutShort { why, at_ns: at }),
        }),
        Said::Failed(failure) | Said::Lost { why: failure, .. } => {
            Word::End(v2::End { measurement: Vec::new().into(), failure, cut_short: None })
        }
    }
}

/// What an order asks for, where it can be followed; else why not, and whether nobody could.
fn task_of(order: &v2::Order, guard: &Guard, own: &Own) -> Result<Task, (String, bool)> {
    let here = |why: String| (why, false);
    let mut plan: Plan = serde_json::from_slice(&order.plan)
        .map_err(|error| here(format!("the plan cannot be read: {error}")))?;
    if own.threads > 0 {
        plan.engine.cpus.clone_from(&own.cpus);
        if own.blocking {
            plan.engine.wait = Wait::Block;
        }
    }
    let plan = plan.validate().map_err(|invalid| (format!("the plan's {invalid}"), true))?;
    let part: ProcessShare = serde_json::from_slice(&order.part)
        .map_err(|error| here(format!("the part cannot be read: {error}")))?;
    if !part.fits(&plan) {
        return Err(here("the part is not one of the plan".to_owned()));
    }
    let cpus = cpus();
    if own.threads == 0 && part.threads > cpus {
        return Err(here(format!("{} threads are asked for, and it has {cpus} CPUs", part.threads)));
    }
    if let Ok(allowed) = sys::allowed_cpus()
        && let Some(cpu) = plan.engine.cpus.iter().find(|cpu| !allowed.contains(cpu))
    {
        return Err(here(format!("it may not run on CPU {cpu}, only on {allowed:?}")));
    }
    if !guard.knows_callers()
        && let Some(file) = file_of(&plan)
    {
        return Err(here(format!(
            "the plan names a file of the agent's machine ({file}), and an agent without --token-file and TLS opens \
             none"
        )));
    }
    let targets = guard.targets.clone();
    let permit: Permit = Arc::new(move |address| targets.iter().any(|network| network.contains(address)));
    permitted(&plan, &permit).map_err(|error| here(format!("{error} (see --allow-target)")))?;
    ensure_descriptors(&plan, &part).map_err(|error| here(error.to_string()))?;
    if let Some(options) = &plan.tls {
        Setup::new(options, &[]).map_err(|error| here(error.to_string()))?;
    }
    let supplies = supplies_of(&plan).map_err(|error| here(error.to_string()))?;
    Ok(Task {
        wants: Wants {
            rows: order.rows,
            departures: false,
            keep: Keep::Figures,
            outstanding: order.outstanding,
        },
        supplies: Inputs { password: order.password.clone(), permit: Some(permit), ..supplies },
        plan,
        part,
    })
}

/// A file that the plan has read where it is run.
fn file_of(plan: &Plan) -> Option<&str> {
    let tls = plan.tls.iter().flat_map(|tls| [&tls.ca, &tls.cert, &tls.key]);
    let password = plan.login.iter().map(|login| &login.password_file);
    let named = tls.chain(password).find_map(|file| file.as_deref());
    let replayed = plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Replay(replay) => Some(replay.path.as_str()),
        _ => None,
    });
    named.or(replayed)
}
