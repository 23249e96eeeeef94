//! The link of a controller to one agent: its connection, its clocks, and the messages of a run.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pummel_engine::clock;
use pummel_fronts::fleet::{AgentAddress, Fleet, FleetTls, with_port};
use pummel_logic::time::Nanos;
use pummel_measure::agents::LossReason;
use pummel_measure::completion::Loaded;
use pummel_measure::measurement::Measurement;
use pummel_measure::parcel::Parcel;
use pummel_measure::reason::{Reason, ServerTrouble};
use pummel_report::visible::foreign;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

use crate::agent::listener::Token;
use crate::agent::member::{CutShort, MemberEvent};
use crate::agent::proto::v2::agent_client::AgentClient;
use crate::agent::proto::v2::command::What as Told;
use crate::agent::proto::v2::event::What as Word;
use crate::agent::proto::{BEAT, EVENT_BYTES_MAX, PROTOCOL, mismatch, unpack_rows, v2};
use crate::controller::clock_offset::{ClockExchange, ClockOffset};
use crate::launch::LaunchedAgent;
use crate::program::Program;

/// An agent that says nothing for so long is lost; a loss is known within 3 s.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// The silence of an agent in beats of the controller: a controller that stands still beats no more often than once when
/// it wakes, and does not take its own silence for that of an agent.
const SILENT_BEATS_MAX: u32 = (PATIENCE.as_millis() / BEAT.as_millis()) as u32;

/// Longest time that one step of an attempt may take: to connect, or one answer; and the time for questions after which no other
/// one is asked. The whole attempt takes as many round trips as it needs.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Longest time in which a peer that does not speak gRPC may greet.
const GREETING: Duration = Duration::from_millis(500);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Number of questions for an agent's clocks before a run, where they are answered soon enough.
const QUESTIONS: usize = 16;

/// Time between two questions for an agent's clocks while a run goes on.
const CLOCK: Duration = Duration::from_secs(1);

/// Most commands that wait to be sent.
const COMMANDS: usize = 64;

/// Most texts of one kind that are taken over from what an agent measured.
const TEXTS_MAX: usize = 64;

type Client = AgentClient<InterceptedService<Channel, TokenHeader>>;

/// Adds the token to every call.
#[derive(Clone, Debug)]
pub struct TokenHeader(Option<MetadataValue<Ascii>>);

impl TokenHeader {
    fn of(token: Option<Token>) -> Result<TokenHeader, String> {
        let header =
            token.map(|token| token.bearer().parse().map_err(|_| "the token cannot be sent".to_owned()));
        let mut header: Option<MetadataValue<Ascii>> = header.transpose()?;
        // Such a value is left out of what is printed for debugging.
        header.iter_mut().for_each(|header| header.set_sensitive(true));
        Ok(TokenHeader(header))
    }
}

impl Interceptor for TokenHeader {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// Credentials that a controller shows to agents, and the agents that it accepts.
#[derive(Clone)]
pub struct Credentials {
    program: Program,
    tls: Option<(Certificate, Identity)>,
    token_header: TokenHeader,
    /// Agents of other builds are accepted.
    allow_version_mismatch: bool,
}

impl Credentials {
    /// Reads the files that a fleet names.
    ///
    /// # Errors
    /// Returns the option whose file cannot be used, with the file and the reason.
    pub fn read(fleet: &Fleet, program: Program) -> Result<Credentials, String> {
        let tls = fleet.tls.as_ref().map(read_tls).transpose()?;
        let token = fleet
            .token_file
            .as_deref()
            .map(|path| Token::read(path).map_err(|why| format!("--agent-token-file: {why}")));
        let token = token.transpose()?;
        let allow_version_mismatch = fleet.allow_version_mismatch;
        Ok(Credentials { program, tls, token_header: TokenHeader::of(token)?, allow_version_mismatch })
    }

    /// Those for an agent that was started for this run and told this token.
    fn with_token(&self, word: &str) -> Result<Credentials, String> {
        Ok(Credentials { tls: None, token_header: TokenHeader::of(Some(Token::of(word)?))?, ..self.clone() })
    }
}

fn read_tls(files: &FleetTls) -> Result<(Certificate, Identity), String> {
    let read = |option: &str, path: &std::path::Path| {
        std::fs::read(path).map_err(|error| format!("{option}: '{}' cannot be read: {error}", path.display()))
    };
    let ca = read("--agent-tls-ca", &files.ca)?;
    let cert = read("--agent-tls-cert", &files.cert)?;
    let key = read("--agent-tls-key", &files.key)?;
    Ok((Certificate::from_pem(ca), Identity::from_pem(cert, key)))
}

/// An agent that answered.
#[derive(Clone, Debug)]
pub struct AgentLink {
    /// Its address, as reports name it, or the host that it was started on.
    pub name: String,
    /// The agent's first answer.
    pub hello: v2::HelloReply,
    /// Difference between the agent's clocks and the controller's.
    pub offset: Arc<Mutex<ClockOffset>>,
    client: Client,
}

/// The address of an agent, and the name that its certificate has to have.
#[derive(Clone, Debug)]
struct Target {
    /// The agent's name in reports.
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

/// Connects to all agents at some addresses, and to those that were started for this run. All have to answer by `deadline`.
///
/// # Errors
/// Returns the first agent that does not answer or refuses, with the reason and how long it was waited for.
pub async fn connect_all(
    addresses: &[AgentAddress],
    placed: &[LaunchedAgent],
    credentials: &Credentials,
    deadline: Instant,
) -> Result<Vec<AgentLink>, String> {
    let mut targets = Vec::new();
    for address in addresses {
        targets.extend(targets_of(address, deadline).await?);
    }
    let mut wanted: Vec<_> = targets.into_iter().map(|target| (target, credentials.clone())).collect();
    for placed in placed {
        wanted.push((Target::placed(placed), credentials.with_token(placed.token.reveal())?));
    }
    let attempts: Vec<_> = wanted
        .into_iter()
        .map(|(target, credentials)| {
            tokio::spawn(async move { connect(target, &credentials, deadline).await })
        })
        .collect();
    let mut links = Vec::with_capacity(attempts.len());
    let mut trouble = None;
    for attempt in attempts {
        match attempt.await {
            Ok(Ok(link)) => links.push(link),
            Ok(Err(why)) => trouble = trouble.or(Some(why)),
            Err(error) => trouble = trouble.or(Some(error.to_string())),
        }
    }
    trouble.map_or(Ok(links), Err)
}

/// The agents at an address. A name is looked up until it has an address, or until `deadline`.
async fn targets_of(address: &AgentAddress, deadline: Instant) -> Result<Vec<Target>, String> {
    let (host, port) = match address {
        AgentAddress::Host { host, port } => {
            return Ok(vec![Target::new(with_port(host, *port), host.clone())]);
        }
        AgentAddress::Name { host, port } => (host, *port),
        // These agents are among `placed`.
        AgentAddress::Started(_) => return Ok(Vec::new()),
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
            return Err(format!("no agents at {}: {why}; waited {waited:.1} s", address.name()));
        }
        sleep(PAUSE).await;
    }
}

async fn connect(target: Target, credentials: &Credentials, deadline: Instant) -> Result<AgentLink, String> {
    let name = target.name.clone();
    let since = Instant::now();
    let endpoint = endpoint_of(&target, credentials)?;
    let mut is_greeted = false;
    loop {
        let why = match say_hello(&endpoint, credentials, &name).await {
            Ok(link) => return Ok(link),
            Err(ConnectFailure::Final(why)) => return Err(format!("agent {name}: {why}")),
            Err(ConnectFailure::Passing(why)) => why,
        };
        if !std::mem::replace(&mut is_greeted, true) && speaks_zeromq(&target.address).await {
            return Err(format!(
                "agent {name} speaks ZeroMQ, as the agents of mutilate's authors do: an agent of pummel is wanted there, which \
                 `pummel mutilate -A` and `pummel agent` start"
            ));
        }
        if Instant::now() >= deadline {
            let waited = since.elapsed().as_secs_f64();
            let hint = hint_of(&why, credentials.tls.is_some());
            return Err(format!("no agent at {name}: {why}{hint}; waited {waited:.1} s"));
        }
        sleep(PAUSE).await;
    }
}

/// Whether a peer greets a new connection as ZeroMQ does: by the signature of ZMTP, ten bytes from 255 to 127.
async fn speaks_zeromq(address: &str) -> bool {
    let mut signature = [0; 10];
    let greeting = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.read_exact(&mut signature).await
    };
    let greeted = matches!(timeout(GREETING, greeting).await, Ok(Ok(_)));
    greeted && signature[0] == 0xff && signature[9] == 0x7f
}

/// A hint at the cause, where the words of a failure alone would puzzle.
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
enum ConnectFailure {
    /// The next attempt may succeed.
    Passing(String),
    /// No later attempt can succeed.
    Final(String),
}

/// The outcome of one step of an attempt, which has its own time.
async fn in_time<T>(step: impl Future<Output = Result<T, ConnectFailure>>) -> Result<T, ConnectFailure> {
    let late = || ConnectFailure::Passing("it does not answer".to_owned());
    timeout(ATTEMPT, step).await.unwrap_or_else(|_| Err(late()))
}

async fn say_hello(
    endpoint: &Endpoint,
    credentials: &Credentials,
    name: &str,
) -> Result<AgentLink, ConnectFailure> {
    let connected =
        async { endpoint.connect().await.map_err(|error| ConnectFailure::Passing(chain(&error))) };
    let channel = in_time(connected).await?;
    let mut client = AgentClient::with_interceptor(channel, credentials.token_header.clone())
        .max_decoding_message_size(EVENT_BYTES_MAX);
    let ours = v2::HelloRequest { protocol: PROTOCOL, build: Some(credentials.program.build()) };
    let greeted = async { client.hello(ours).await.map_err(|status| failure_of(&status)) };
    let hello = in_time(greeted).await?.into_inner();
    if let Some(why) = mismatch(
        &credentials.program.build(),
        hello.protocol,
        hello.build.as_ref(),
        credentials.allow_version_mismatch,
    ) {
        return Err(ConnectFailure::Final(format!("it {why}")));
    }
    if !hello.holder.is_empty() {
        return Err(ConnectFailure::Final(format!("it is held by {}", foreign(&hello.holder))));
    }
    let mut offset: Option<ClockOffset> = None;
    let began = Instant::now();
    for _ in 0..QUESTIONS {
        let asked = async { ask_offset(&mut client).await.map_err(|status| failure_of(&status)) };
        let newer = in_time(asked).await?;
        offset = Some(offset.map_or(newer, |offset| offset.better(newer)));
        if began.elapsed() >= ATTEMPT {
            break;
        }
    }
    let offset = offset.ok_or_else(|| ConnectFailure::Final("it was not asked".to_owned()))?;
    Ok(AgentLink { name: name.to_owned(), hello, offset: Arc::new(Mutex::new(offset)), client })
}

fn failure_of(status: &Status) -> ConnectFailure {
    match status.code() {
        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Internal => {
            ConnectFailure::Passing(words_of(status))
        }
        Code::Unimplemented => ConnectFailure::Final(format!(
            "what listens there is no agent of this protocol ({})",
            words_of(status)
        )),
        _ => ConnectFailure::Final(words_of(status)),
    }
}

/// The loss of an agent whose connection failed.
fn broken(status: &Status) -> LossReason {
    LossReason::Connection { what: words_of(status) }
}

fn words_of(status: &Status) -> String {
    foreign(&status.source().map_or_else(|| status.message().to_owned(), chain))
}

/// The words of the innermost cause of an error, which say most.
fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = error.to_string();
        cause = error.source();
    }
    words
}

async fn ask_offset(client: &mut Client) -> Result<ClockOffset, Status> {
    let (before, wall) = (clock::now(), clock::wall());
    let reply = client.clock(v2::ClockRequest {}).await?.into_inner();
    let after = clock::now();
    let exchange = ClockExchange {
        before,
        after,
        wall: wall + (after - before) / 2,
        their_monotonic: reply.monotonic_ns,
        their_wall: reply.wall_ns,
    };
    Ok(exchange.offset())
}

impl AgentLink {
    /// Difference of the agent's clocks as it is known now.
    pub fn offset(&self) -> ClockOffset {
        *self.offset.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Sends an order, then the commands of `told`, and says every event of the agent, until its last event or until `told`
    /// is closed. The last event is an end, a refusal, or the loss of the agent.
    pub async fn follow(
        mut self,
        order: v2::Order,
        mut told: UnboundedReceiver<Told>,
        say: impl Fn(MemberEvent) + Send + Sync + 'static,
    ) {
        let lost = |why: LossReason, silent: Duration| {
            say(MemberEvent::Lost { why, silent_ns: silent.as_nanos() as Nanos });
        };
        let (commands, outgoing) = mpsc::channel(COMMANDS);
        let command = |what: Told| v2::Command { what: Some(what) };
        // There is room: it is the first.
        let _ = commands.send(command(Told::Order(order))).await;
        let opened = timeout(PATIENCE, self.client.run(ReceiverStream::new(outgoing))).await;
        let mut events = match opened {
            Ok(Ok(events)) => events.into_inner(),
            Ok(Err(status)) => return lost(broken(&status), Duration::ZERO),
            Err(_) => return lost(LossReason::NoAnswer, PATIENCE),
        };
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = interval(CLOCK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        let mut silent_beats = 0;
        loop {
            tokio::select! {
                event = events.message() => {
                    let read = match event {
                        Ok(Some(event)) => event.what.map_or(Ok(None), member_event_of),
                        Ok(None) => Err(LossReason::Unexplained),
                        Err(status) => Err(broken(&status)),
                    };
                    let silent = heard.elapsed();
                    (heard, silent_beats) = (Instant::now(), 0);
                    match read {
                        Ok(None) => {}
                        Ok(Some(member_event)) => {
                            let is_last = member_event.is_last();
                            say(member_event);
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
                _ = beat.tick() => {
                    let _ = commands.try_send(command(Told::Beat(v2::Beat {})));
                    silent_beats += 1;
                    if silent_beats >= SILENT_BEATS_MAX {
                        let silent = heard.elapsed();
                        return lost(LossReason::Silent(silent.as_nanos() as Nanos), silent);
                    }
                }
                _ = ticks.tick() => { tokio::spawn(keep_offset(self.client.clone(), Arc::clone(&self.offset))); }
            }
        }
    }
}

async fn keep_offset(mut client: Client, offset: Arc<Mutex<ClockOffset>>) {
    if let Ok(Ok(newer)) = timeout(CLOCK, ask_offset(&mut client)).await {
        let mut offset = offset.lock().unwrap_or_else(|broken| broken.into_inner());
        *offset = offset.better(newer);
    }
}

/// The event in a message of an agent; `None` for a beat.
///
/// # Errors
/// Returns what cannot be read.
fn member_event_of(word: Word) -> Result<Option<MemberEvent>, LossReason> {
    let unread = |what: &str| LossReason::MessageUnread { what: foreign(what) };
    Ok(Some(match word {
        Word::Beat(_) => return Ok(None),
        Word::Accepted(_) => MemberEvent::Accepted,
        Word::Refused(refused) => MemberEvent::Refused { why: foreign(&refused.why), usage: refused.usage },
        Word::Ready(v2::Ready { phase, records, stored }) => {
            MemberEvent::Ready { phase, loaded: Loaded { records, stored } }
        }
        Word::Began(began) => MemberEvent::Began(began.phase),
        Word::PhaseOver(over) => MemberEvent::PhaseOver { phase: over.phase, late_ns: over.late_ns },
        Word::Interval(interval) => {
            let parcel = serde_json::from_slice::<Parcel>(&interval.slice);
            MemberEvent::Slice(Box::new(parcel.map_err(|error| unread(&error.to_string()))?))
        }
        Word::Tick(tick) => {
            let part = serde_json::from_slice::<Parcel>(&tick.slice);
            let part = Box::new(part.map_err(|error| unread(&error.to_string()))?);
            MemberEvent::Tick { phase: tick.phase, part }
        }
        Word::Rows(rows) => MemberEvent::Rows(unpack_rows(&rows).ok_or_else(|| unread("requests"))?),
        Word::Progress(progress) => {
            MemberEvent::Progress { phase: progress.phase, ended: progress.ended, of: progress.of }
        }
        Word::Notice(notice) => MemberEvent::Notice(foreign(&notice.words)),
        Word::End(end) if end.measurement.is_empty() => MemberEvent::Failed(foreign(&end.failure)),
        Word::End(end) => {
            let measurement = serde_json::from_slice::<Measurement>(&end.measurement);
            let mut measurement = Box::new(measurement.map_err(|error| unread(&error.to_string()))?);
            clean_texts(&mut measurement);
            let cut_short = end.cut_short.map(|cut| CutShort { why: foreign(&cut.why), at: cut.at_ns });
            MemberEvent::End { measurement, cut_short }
        }
    }))
}

/// Makes the texts of what an agent measured fit for a report. Those of its evidence and of its machine are made fit where they are
/// merged.
fn clean_texts(measurement: &mut Measurement) {
    let clean = |words: &mut String| *words = foreign(words);
    let Measurement { reason, detected, messages, load, verify, generator, replayed, .. } = measurement;
    // An agent is one process, and has no reasons of others.
    reason.take_if(|reason| matches!(reason, Reason::Members { .. }));
    reason.iter_mut().flat_map(Reason::texts_mut).for_each(clean);
    detected.iter_mut().for_each(clean);
    clean_messages(messages);
    if let Some(load) = load {
        load.trouble.iter_mut().flat_map(ServerTrouble::texts_mut).for_each(clean);
        clean_messages(&mut load.messages);
    }
    verify.first.iter_mut().for_each(|wrong| clean(&mut wrong.key));
    let fallbacks = std::mem::take(&mut generator.fallbacks).into_iter().take(TEXTS_MAX);
    generator.fallbacks = fallbacks.map(|words| foreign(&words)).collect();
    if let Some(replayed) = replayed {
        replayed.key_estimate.retain(|character| character.is_ascii_graphic());
        replayed.notices.truncate(TEXTS_MAX);
        replayed.notices.iter_mut().chain(&mut replayed.error).for_each(clean);
    }
}

/// Makes messages of servers fit for a report; those that become one are counted together.
fn clean_messages(messages: &mut BTreeMap<String, u64>) {
    for (message, count) in std::mem::take(messages) {
        let known = messages.entry(foreign(&message)).or_default();
        *known = known.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::workload::verify::check::Damage;
    use pummel_measure::connections::TroubleKind;
    use pummel_measure::load::LoadResult;
    use pummel_measure::replayed::Replayed;
    use pummel_measure::verify::WrongKey;

    use super::*;

    #[test]
    fn the_words_of_an_agent_say_nothing_to_the_terminal() {
        let dark = "dark\u{1b}[2J\n".to_owned();
        let cut_short = Some(v2::CutShort { why: dark.clone(), at_ns: 1 });
        let mut measurement = Measurement::new([], pummel_logic::plan::Clock::Kernel, 1);
        measurement.reason = Some(Reason::TraceUnread { what: dark.clone() });
        measurement.detected = Some(dark.clone());
        let messages = || BTreeMap::from([(dark.clone(), 1)]);
        measurement.messages = messages();
        let kind = TroubleKind::Other;
        let trouble = Some(ServerTrouble { server: dark.clone(), kind, what: dark.clone() });
        measurement.load = Some(LoadResult { trouble, messages: messages(), ..LoadResult::default() });
        measurement.verify.first = vec![WrongKey { key: dark.clone(), damage: Damage::Bytes }];
        measurement.generator.fallbacks.insert(dark.clone());
        let (notices, key_estimate) = (vec![dark.clone()], dark.clone());
        let replayed = Replayed { notices, key_estimate, error: Some(dark.clone()), ..Replayed::default() };
        measurement.replayed = Some(replayed);
        let measurement = serde_json::to_vec(&measurement).expect("it is JSON").into();
        let words = [
            Word::Refused(v2::Refused { why: dark.clone(), usage: true }),
            Word::Notice(v2::Notice { words: dark.clone() }),
            Word::End(v2::End { measurement: Vec::new().into(), failure: dark.clone(), cut_short: None }),
            Word::End(v2::End { measurement, failure: String::new(), cut_short }),
        ];
        for word in words {
            let event = member_event_of(word).expect("it can be read").expect("it is no beat");
            let shown = format!("{event:?}");
            assert!(shown.contains("dark\u{fffd}[2J\u{fffd}"), "{shown}");
            assert!(!shown.contains("\\u{1b}") && !shown.contains("\\n"), "{shown}");
        }
        let status = Status::internal(dark);
        assert_eq!(words_of(&status), "dark\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn who_speaks_plainly_to_an_agent_with_tls_is_told() {
        let alert = "connection error detected: frame with invalid size";
        assert!(hint_of(alert, false).contains("--agent-tls-ca"));
        assert_eq!(hint_of(alert, true), "");
        assert_eq!(hint_of("Connection refused (os error 111)", false), "");
    }
}
