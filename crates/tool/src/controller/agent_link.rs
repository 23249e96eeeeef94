//! A controller's end of the line to one agent.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pummel_engine::clock;
use pummel_logic::measure::completion::Loaded;
use pummel_logic::measure::measurement::Measurement;
use pummel_logic::measure::parcel::Parcel;
use pummel_logic::time::Nanos;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

use crate::agent::listener::Token;
use crate::agent::member::Said;
use crate::agent::proto::v1::agent_client::AgentClient;
use crate::agent::proto::v1::command::What as Told;
use crate::agent::proto::v1::event::What as Word;
use crate::agent::proto::{BEAT, EVENT_BYTES_MAX, PROTOCOL, VERSION, unpack_rows, v1};
use crate::controller::clock_offset::{Exchange, Fit};
use crate::job::fleet::{Fleet, FleetTls, Place, with_port};
use crate::launch::LaunchedAgent;

/// Who says nothing for so long is lost; a loss is known within 3 s.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// One attempt to connect may take so long, and one answer.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Questions for the time before a run.
const QUESTIONS: usize = 16;

/// How often the time is asked for while a run goes on.
const CLOCK: Duration = Duration::from_secs(1);

/// Commands that wait to be sent.
const COMMANDS: usize = 64;

type Client = AgentClient<InterceptedService<Channel, Shower>>;

/// Shows the token with every call.
#[derive(Clone, Debug)]
pub struct Shower(Option<MetadataValue<Ascii>>);

impl Shower {
    fn of(token: Option<Token>) -> Result<Shower, String> {
        let header =
            token.map(|token| token.bearer().parse().map_err(|_| "the token cannot be sent".to_owned()));
        header.transpose().map(Shower)
    }
}

impl Interceptor for Shower {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// What it takes to speak to agents, read from its files.
#[derive(Clone)]
pub struct Credentials {
    tls: Option<(Certificate, Identity)>,
    shower: Shower,
}

impl Credentials {
    /// Reads the files that a fleet names.
    ///
    /// # Errors
    /// What is wrong with which.
    pub fn read(fleet: &Fleet) -> Result<Credentials, String> {
        let tls = fleet.tls.as_ref().map(read_tls).transpose()?;
        let token = fleet.token_file.as_deref().map(Token::read).transpose()?;
        Ok(Credentials { tls, shower: Shower::of(token)? })
    }

    /// A token and nothing else.
    fn of_token(word: &str) -> Result<Credentials, String> {
        Ok(Credentials { tls: None, shower: Shower::of(Some(Token::of(word)?))? })
    }
}

fn read_tls(files: &FleetTls) -> Result<(Certificate, Identity), String> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| format!("'{}' cannot be read: {error}", path.display()))
    };
    let (ca, cert, key) = (read(&files.ca)?, read(&files.cert)?, read(&files.key)?);
    Ok((Certificate::from_pem(ca), Identity::from_pem(cert, key)))
}

/// An agent that answered.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its address, as reports name it, or the host that it was started on.
    pub name: String,
    /// What it said of itself.
    pub hello: v1::HelloReply,
    /// How far its clocks are from ours.
    pub fit: Arc<Mutex<Fit>>,
    client: Client,
}

/// Where one agent is, and whose name its certificate has to have.
#[derive(Clone, Debug)]
struct Target {
    /// As reports name it.
    name: String,
    /// Host and port.
    address: String,
    host: String,
}

impl Target {
    fn new(address: String, host: String) -> Target {
        Target { name: address.clone(), address, host }
    }

    fn placed(placed: &LaunchedAgent) -> Target {
        let address = placed.address.to_string();
        let host = placed.address.ip().to_string();
        Target { name: placed.name.clone(), address, host }
    }
}

/// Speaks to all agents of some places, and to those that were started for this run; all have to answer by `deadline`.
///
/// # Errors
/// Which does not, how long it was waited for, and why.
pub async fn greet_all(
    places: &[Place],
    placed: &[LaunchedAgent],
    credentials: &Credentials,
    deadline: Instant,
) -> Result<Vec<Link>, String> {
    let mut targets = Vec::new();
    for place in places {
        targets.extend(targets_of(place, deadline).await?);
    }
    let mut wanted: Vec<_> = targets.into_iter().map(|target| (target, credentials.clone())).collect();
    for placed in placed {
        wanted.push((Target::placed(placed), Credentials::of_token(&placed.token)?));
    }
    let greetings: Vec<_> = wanted
        .into_iter()
        .map(|(target, credentials)| tokio::spawn(async move { greet(target, &credentials, deadline).await }))
        .collect();
    let mut links = Vec::with_capacity(greetings.len());
    let mut trouble = None;
    for greeting in greetings {
        match greeting.await {
            Ok(Ok(link)) => links.push(link),
            Ok(Err(why)) => trouble = trouble.or(Some(why)),
            Err(error) => trouble = trouble.or(Some(error.to_string())),
        }
    }
    trouble.map_or(Ok(links), Err)
}

/// The agents of a place: a name is asked for until it has an address.
async fn targets_of(place: &Place, deadline: Instant) -> Result<Vec<Target>, String> {
    let (host, port) = match place {
        Place::Host { host, port } => {
            return Ok(vec![Target::new(with_port(host, *port), host.clone())]);
        }
        Place::Name { host, port } => (host, *port),
        // They are among those that were placed.
        Place::Started(_) => return Ok(Vec::new()),
    };
    let since = Instant::now();
    loop {
        let found = match timeout(ATTEMPT, tokio::net::lookup_host((host.as_str(), port))).await {
            Ok(found) => found.map_err(|error| error.to_string()),
            Err(_) => Err("the name service does not answer".to_owned()),
        };
        let why = match found {
            Ok(found) => {
                let mut addresses: Vec<_> = found.collect();
                addresses.sort_unstable();
                addresses.dedup();
                if !addresses.is_empty() {
                    let target =
                        |address: std::net::SocketAddr| Target::new(address.to_string(), host.clone());
                    return Ok(addresses.into_iter().map(target).collect());
                }
                "it has no address".to_owned()
            }
            Err(why) => why,
        };
        if Instant::now() >= deadline {
            let waited = since.elapsed().as_secs_f64();
            return Err(format!("no agents behind {}: {why}; waited {waited:.1} s", place.name()));
        }
        sleep(PAUSE).await;
    }
}

async fn greet(target: Target, credentials: &Credentials, deadline: Instant) -> Result<Link, String> {
    let name = target.name.clone();
    let since = Instant::now();
    let endpoint = endpoint_of(&target, credentials)?;
    loop {
        let why = match timeout(ATTEMPT, introduce(&endpoint, credentials, &name)).await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(Trouble::Final(why))) => return Err(format!("agent {name}: {why}")),
            Ok(Err(Trouble::Passing(why))) => why,
            Err(_) => "it does not answer".to_owned(),
        };
        if Instant::now() >= deadline {
            let waited = since.elapsed().as_secs_f64();
            let hint = hint_of(&why, credentials.tls.is_some());
            return Err(format!("no agent at {name}: {why}{hint}; waited {waited:.1} s"));
        }
        sleep(PAUSE).await;
    }
}

/// What may be the matter, where the words of a failure alone would puzzle.
fn hint_of(why: &str, encrypted: bool) -> &'static str {
    // The first bytes of an alert of TLS, taken for a frame of HTTP/2.
    if !encrypted && why.contains("frame with invalid size") {
        return " (an agent with --tls-cert wants a controller with --agent-tls-ca)";
    }
    ""
}

fn endpoint_of(target: &Target, credentials: &Credentials) -> Result<Endpoint, String> {
    let scheme = if credentials.tls.is_some() { "https" } else { "http" };
    let wrong = |error: tonic::transport::Error| format!("agent {}: {}", target.name, chain(&error));
    let endpoint = Endpoint::from_shared(format!("{scheme}://{}", target.address)).map_err(wrong)?;
    let endpoint = endpoint.connect_timeout(ATTEMPT).tcp_nodelay(true);
    match &credentials.tls {
        None => Ok(endpoint),
        Some((ca, identity)) => {
            let config = ClientTlsConfig::new()
                .ca_certificate(ca.clone())
                .identity(identity.clone())
                .domain_name(&target.host);
            endpoint.tls_config(config).map_err(wrong)
        }
    }
}

/// Why an agent cannot be spoken to.
enum Trouble {
    /// It may be there in a moment.
    Passing(String),
    /// It will not change its mind.
    Final(String),
}

async fn introduce(endpoint: &Endpoint, credentials: &Credentials, name: &str) -> Result<Link, Trouble> {
    let channel = endpoint.connect().await.map_err(|error| Trouble::Passing(chain(&error)))?;
    let mut client = AgentClient::with_interceptor(channel, credentials.shower.clone())
        .max_decoding_message_size(EVENT_BYTES_MAX);
    let ours = v1::HelloRequest { protocol: PROTOCOL, version: VERSION.to_owned() };
    let hello = client.hello(ours).await.map_err(|status| trouble(&status))?.into_inner();
    if hello.protocol != PROTOCOL || hello.version != VERSION {
        return Err(Trouble::Final(format!(
            "it is pummel {} with protocol {}, and this is pummel {VERSION} with protocol {PROTOCOL}: both have to be \
             the same",
            hello.version, hello.protocol
        )));
    }
    if !hello.holder.is_empty() {
        return Err(Trouble::Final(format!("it is held by {}", hello.holder)));
    }
    let mut fit: Option<Fit> = None;
    for _ in 0..QUESTIONS {
        let newer = ask_time(&mut client).await.map_err(|status| trouble(&status))?;
        fit = Some(fit.map_or(newer, |fit| fit.better(newer)));
    }
    let fit = fit.ok_or_else(|| Trouble::Final("it was not asked".to_owned()))?;
    Ok(Link { name: name.to_owned(), hello, fit: Arc::new(Mutex::new(fit)), client })
}

fn trouble(status: &Status) -> Trouble {
    match status.code() {
        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Internal => {
            Trouble::Passing(words_of(status))
        }
        Code::Unimplemented => {
            Trouble::Final(format!("what listens there is no agent of this protocol ({})", words_of(status)))
        }
        _ => Trouble::Final(words_of(status)),
    }
}

fn words_of(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_owned(), chain)
}

/// An error with what caused it, the last of which says most.
fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = error.to_string();
        cause = error.source();
    }
    words
}

async fn ask_time(client: &mut Client) -> Result<Fit, Status> {
    let (before, wall) = (clock::now(), clock::wall());
    let reply = client.clock(v1::ClockRequest {}).await?.into_inner();
    let after = clock::now();
    let exchange = Exchange {
        before,
        after,
        wall: wall + (after - before) / 2,
        their_monotonic: reply.monotonic_ns,
        their_wall: reply.wall_ns,
    };
    Ok(exchange.fit())
}

impl Link {
    /// What is known of the agent's clocks.
    pub fn fit(&self) -> Fit {
        *self.fit.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Gives an order and passes on what is told to the agent, and what it says, until one of both is through. The last
    /// word is an end, a refusal, or that the agent is lost.
    pub async fn follow(
        mut self,
        order: v1::Order,
        mut told: UnboundedReceiver<Told>,
        say: impl Fn(Said) + Send + Sync + 'static,
    ) {
        let lost = |why: String, silent: Duration| {
            say(Said::Lost { why, silent_ns: silent.as_nanos() as Nanos });
        };
        let (commands, outgoing) = mpsc::channel(COMMANDS);
        let command = |what: Told| v1::Command { what: Some(what) };
        // There is room: it is the first.
        let _ = commands.send(command(Told::Order(order))).await;
        let opened = timeout(PATIENCE, self.client.run(ReceiverStream::new(outgoing))).await;
        let mut events = match opened {
            Ok(Ok(events)) => events.into_inner(),
            Ok(Err(status)) => return lost(words_of(&status), Duration::ZERO),
            Err(_) => return lost("it does not answer".to_owned(), PATIENCE),
        };
        let mut beat = interval(BEAT);
        let mut ticks = interval(CLOCK);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                event = timeout(PATIENCE.saturating_sub(heard.elapsed()), events.message()) => {
                    let said = match event {
                        Ok(Ok(Some(event))) => event.what.map_or(Ok(None), said_of),
                        Ok(Ok(None)) => Err("it ended the run without a word".to_owned()),
                        Ok(Err(status)) => Err(words_of(&status)),
                        Err(_) => Err(format!("nothing was heard from it for {:.1} s", PATIENCE.as_secs_f64())),
                    };
                    let silent = heard.elapsed();
                    heard = Instant::now();
                    match said {
                        Ok(None) => {}
                        Ok(Some(said)) => {
                            let is_last = matches!(said, Said::End(_) | Said::Failed(_) | Said::Refused { .. });
                            say(said);
                            if is_last {
                                return;
                            }
                        }
                        Err(why) => return lost(why, silent),
                    }
                }
                what = told.recv() => match what {
                    // An agent that takes no commands is found out by its silence.
                    Some(what) => { let _ = timeout(PATIENCE, commands.send(command(what))).await; }
                    // The controller has given it up.
                    None => return,
                },
                _ = beat.tick() => { let _ = commands.try_send(command(Told::Beat(v1::Beat {}))); }
                _ = ticks.tick() => { tokio::spawn(keep_time(self.client.clone(), Arc::clone(&self.fit))); }
            }
        }
    }
}

async fn keep_time(mut client: Client, fit: Arc<Mutex<Fit>>) {
    if let Ok(Ok(newer)) = timeout(CLOCK, ask_time(&mut client)).await {
        let mut fit = fit.lock().unwrap_or_else(|broken| broken.into_inner());
        *fit = fit.better(newer);
    }
}

/// What an agent says; an error where it cannot be understood.
fn said_of(word: Word) -> Result<Option<Said>, String> {
    let foreign = |what: &str| format!("what it sent cannot be read ({what})");
    Ok(Some(match word {
        Word::Beat(_) => return Ok(None),
        Word::Accepted(_) => Said::Accepted,
        Word::Refused(refused) => Said::Refused { why: refused.why, usage: refused.usage },
        Word::Ready(v1::Ready { phase, records, stored }) => {
            Said::Ready { phase, loaded: Loaded { records, stored } }
        }
        Word::Began(began) => Said::Began(began.phase),
        Word::PhaseOver(over) => Said::PhaseOver { phase: over.phase, late_ns: over.late_ns },
        Word::Interval(interval) => {
            let parcel = serde_json::from_slice::<Parcel>(&interval.slice);
            Said::Slice(Box::new(parcel.map_err(|error| foreign(&error.to_string()))?))
        }
        Word::Rows(rows) => Said::Rows(unpack_rows(&rows).ok_or_else(|| foreign("requests"))?),
        Word::Progress(progress) => {
            Said::Progress { phase: progress.phase, ended: progress.ended, of: progress.of }
        }
        Word::Notice(notice) => Said::Notice(notice.words),
        Word::End(end) if end.measurement.is_empty() => Said::Failed(end.failure),
        Word::End(end) => {
            let measurement = serde_json::from_slice::<Measurement>(&end.measurement);
            Said::End(Box::new(measurement.map_err(|error| foreign(&error.to_string()))?))
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_plainly_to_an_agent_with_tls_is_told() {
        let alert = "connection error detected: frame with invalid size";
        assert!(hint_of(alert, false).contains("--agent-tls-ca"));
        assert_eq!(hint_of(alert, true), "");
        assert_eq!(hint_of("Connection refused (os error 111)", false), "");
    }
}
