//! `pummel agent`: waits for a controller, runs its part of the plan, and waits for the next.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pummel_engine::clock;
use pummel_report::snapshot::SharedSnapshot;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::agent::lease::Lease;
use crate::agent::listener::{self, Caller};
use crate::agent::order::cpus;
use crate::agent::overrides::{LocalOverrides, OrderLog};
use crate::agent::peers::Peer;
use crate::agent::policy::AccessPolicy;
use crate::agent::proto::v2::agent_server::{Agent, AgentServer};
use crate::agent::proto::{COMMAND_BYTES_MAX, DESCRIPTION, PATIENCE, PROTOCOL, v2};
use crate::agent::session::AgentSession;
use crate::program::Program;

/// Events of a job that wait to be sent; the job waits where there are more.
const EVENTS: usize = 64;

/// Most bytes of a message of health and reflection, which need no token.
const OPEN_MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Streams of one connection at one time. A controller has one for its run and one for a question.
const STREAMS_MAX: u32 = 8;

/// Most bytes of the headers of a call.
const HEADERS_MAX: u32 = 16 * 1024;

/// Pause between two looks whether the agent is to end.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Settings of an agent's own command line.
#[derive(Debug)]
pub struct AgentConfig {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// The controllers that it serves, and what it does for them.
    pub policy: AccessPolicy,
    /// Settings that the agent decides in place of a plan.
    pub overrides: LocalOverrides,
    /// Lines about the orders that the agent follows.
    pub on_order: Option<OrderLog>,
    /// State that the agent's metrics show; `None` if it serves no metrics.
    pub snapshot: Option<SharedSnapshot>,
}

/// Serves until the process is interrupted.
///
/// # Errors
/// Returns the error of the system when the agent cannot listen.
pub fn serve(config: AgentConfig, program: Program, interrupts: &'static AtomicU32) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(config.listen).await.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {}: {error}", config.listen))
        })?;
        let address = listener.local_addr()?;
        let wires = listener::open(listener, config.policy.tls.clone(), program);
        let policy = Arc::new(config.policy);
        let service = AgentService {
            program,
            policy: Arc::clone(&policy),
            overrides: config.overrides,
            on_order: config.on_order,
            snapshot: config.snapshot,
            lease: Arc::default(),
            sessions: AtomicU64::new(0),
        };
        let lease = Arc::clone(&service.lease);
        let (health, health_service) = tonic_health::server::health_reporter();
        let health_service = health_service.max_decoding_message_size(OPEN_MESSAGE_BYTES_MAX);
        health.set_serving::<AgentServer<AgentService>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTION)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()
            .map_err(io::Error::other)?
            .max_decoding_message_size(OPEN_MESSAGE_BYTES_MAX);
        let agent = AgentServer::new(service).max_decoding_message_size(COMMAND_BYTES_MAX);
        // The token is asked for before a message is read, so that strangers take no memory.
        let agent = InterceptedService::new(agent, move |request| check_token(&policy, request));
        let server = Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .http2_max_header_list_size(HEADERS_MAX)
            .add_service(InterceptedService::new(health_service, note_request))
            .add_service(InterceptedService::new(reflection, note_request))
            .add_service(agent);
        (program.print)(format!("listening on {address}\n").as_bytes())?;
        let wires = ReceiverStream::new(wires).map(Ok::<_, io::Error>);
        let (leave, left) = oneshot::channel::<()>();
        let serving = server.serve_with_incoming_shutdown(wires, async { drop(left.await) });
        tokio::select! {
            served = serving => served.map_err(io::Error::other),
            () = async {
                interrupted(interrupts).await;
                // A job that is under way comes to its end, so that its connections are closed in order.
                let _ = timeout(PATIENCE, lease.end("its process was told to end")).await;
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

/// Refuses a request that does not show the agent's token.
fn check_token(policy: &AccessPolicy, request: Request<()>) -> Result<Request<()>, Status> {
    let Some(token) = &policy.token else { return Ok(request) };
    let shown = request.metadata().get("authorization").map(|header| header.as_bytes());
    if token.is_shown_by(shown) {
        return Ok(request);
    }
    let why = if shown.is_some() { "it showed a wrong token" } else { "it showed no token" };
    caller(&request)?.refused(why);
    let words = format!("{why}: this agent was started with --token-file, and wants --agent-token-file");
    Err(Status::unauthenticated(policy.reworded(words)))
}

/// Notes a request that needs no token.
fn note_request(request: Request<()>) -> Result<Request<()>, Status> {
    caller(&request)?.made_request();
    Ok(request)
}

/// The connection that a request came over.
fn caller<T>(request: &Request<T>) -> Result<Arc<Peer>, Status> {
    let caller = request.extensions().get::<Caller>();
    caller.map(|caller| Arc::clone(&caller.peer)).ok_or_else(|| Status::internal("no address"))
}

/// The service of an agent.
#[derive(Debug)]
struct AgentService {
    program: Program,
    policy: Arc<AccessPolicy>,
    overrides: LocalOverrides,
    on_order: Option<OrderLog>,
    snapshot: Option<SharedSnapshot>,
    lease: Arc<Lease>,
    sessions: AtomicU64,
}

type Events = Pin<Box<dyn Stream<Item = Result<v2::Event, Status>> + Send>>;

#[tonic::async_trait]
impl Agent for AgentService {
    async fn hello(&self, request: Request<v2::HelloRequest>) -> Result<Response<v2::HelloReply>, Status> {
        caller(&request)?.made_controllers_request();
        Ok(Response::new(v2::HelloReply {
            protocol: PROTOCOL,
            build: Some(self.program.build()),
            holder: self.lease.words(),
            cpus: cpus(),
            threads: self.overrides.threads,
            weight: self.overrides.weight,
            measure_connections: self.overrides.measure_connections,
        }))
    }

    async fn clock(&self, request: Request<v2::ClockRequest>) -> Result<Response<v2::ClockReply>, Status> {
        caller(&request)?.made_controllers_request();
        Ok(Response::new(v2::ClockReply { monotonic_ns: clock::now(), wall_ns: clock::wall() }))
    }

    type RunStream = Events;

    async fn run(&self, request: Request<Streaming<v2::Command>>) -> Result<Response<Events>, Status> {
        let peer = caller(&request)?;
        let (events, sent) = mpsc::channel(EVENTS);
        let session = AgentSession {
            program: self.program,
            policy: Arc::clone(&self.policy),
            overrides: self.overrides.clone(),
            on_order: self.on_order,
            snapshot: self.snapshot.clone(),
            lease: Arc::clone(&self.lease),
            number: self.sessions.fetch_add(1, Ordering::Relaxed),
            peer,
            events,
        };
        tokio::spawn(session.receive(request.into_inner()));
        let sent: Events = Box::pin(ReceiverStream::new(sent));
        Ok(Response::new(sent))
    }
}
