//! Detection of the protocols of servers before a run, on separate connections.

use std::fmt;
use std::io;
use std::sync::Arc;

use pummel_logic::plan::detect::{self, Question, Reading, Spoken};
use pummel_logic::plan::{Protocol, Socket, TlsOptions};
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::time::{NEVER, Nanos, SECOND};
use pummel_measure::connections::TroubleKind;
use pummel_measure::trouble::CloseReason;
use pummel_measure::trouble::Trouble;

use super::error::RunError;
use super::servers::resolve_each;
use crate::backend::tls::Setup;
use crate::resolve::{self, Server, Sources};
use crate::side_connections::{Failure, SideConnections, SideEvent, SideOptions};

/// Shortest time to wait for an answer: longer than any round trip, but not too long for a user who waits.
const WAIT_MIN_NS: Nanos = SECOND;

/// Longest time for a connection to open, including its TLS handshake, and for an answer.
const WAIT_MAX_NS: Nanos = 60 * SECOND;

/// Longest answer that is kept, in bytes.
const ANSWER_MAX_BYTES: usize = 128 * 1024;

/// An inquiry of the protocol and software of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// The names of the servers, in the forms of a Plan.
    pub servers: Vec<String>,
    /// Options of the sockets.
    pub socket: Socket,
    /// Encryption, as in the run that follows.
    pub tls: Option<TlsOptions>,
    /// Longest time for a connection to open and the first question to be answered, in nanoseconds; at least 1 s is
    /// waited, and at most 60 s.
    pub timeout_ns: Nanos,
}

/// The reason why the protocol of the servers is not known.
#[derive(Debug)]
pub enum Undetected {
    /// A server cannot be reached, for this reason. The run itself reports the details.
    Unreachable {
        /// Name of the server.
        server: String,
        /// Kind of the reason.
        kind: TroubleKind,
        /// The reason, as a sentence without its full stop.
        why: String,
    },
    /// A server answers none of the questions of the known protocols.
    Foreign {
        /// Name of the server.
        server: String,
        /// The reaction of the server, as the end of a sentence whose subject is the server.
        did: String,
        /// Whether the server does not wait for a TLS handshake: the handshake succeeded, or the server sent words
        /// without encryption.
        wants_no_tls: bool,
        /// Whether the server closed the connection without a word, as servers do that wait for a TLS handshake.
        is_closed: bool,
    },
    /// A server refuses this client, whatever the question.
    Refused {
        /// Name of the server.
        server: String,
        /// The complete message of the server.
        said: String,
    },
    /// Two servers speak different protocols.
    Different(Box<[(String, Spoken); 2]>),
    /// The user interrupted the inquiry.
    Interrupted,
}

impl fmt::Display for Undetected {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undetected::Unreachable { server, why, .. } => write!(to, "{server}: {why}"),
            Undetected::Foreign { server, is_closed: true, wants_no_tls: false, .. } => {
                write!(to, "{server} closed the connection without a word, as TLS servers do")
            }
            Undetected::Foreign { server, did, .. } => {
                write!(to, "{server} answers neither as memcached nor as a RESP server: it {did}")
            }
            Undetected::Refused { server, said } => {
                write!(to, "{server} refuses this client: it said \"{said}\"")
            }
            Undetected::Different(both) => {
                let [(one, first), (other, second)] = both.as_ref();
                write!(
                    to,
                    "the servers of a run have one protocol, and {one} is {}, {other} is {}",
                    first.words(),
                    second.words()
                )
            }
            Undetected::Interrupted => to.write_str("interrupted"),
        }
    }
}

/// Asks all servers at once what they speak, until `goes_on` returns false. Returns the answer of the first where all agree on the
/// protocol; a server that wants a login is the answer before all others.
///
/// # Errors
/// Returns [`Undetected::Unreachable`] when no connection to a server can be opened, [`Undetected::Foreign`] for a server
/// that answers nothing known in time, [`Undetected::Refused`] for one that refuses this client, [`Undetected::Different`] for
/// servers that do not agree, and [`Undetected::Interrupted`] when `goes_on` returned false before that was known. The first
/// server of the inquiry with an error decides.
pub fn detect(inquiry: &Inquiry, goes_on: &dyn Fn() -> bool) -> Result<(String, Spoken), Undetected> {
    let mut first: Option<(String, Spoken)> = None;
    for (name, answer) in inquiry.servers.iter().zip(answers(inquiry, goes_on)) {
        let spoken = answer?;
        match &first {
            Some(known) if known.1.protocol != spoken.protocol => {
                return Err(Undetected::Different(Box::new([known.clone(), (name.clone(), spoken)])));
            }
            Some(known) if known.1.login.is_some() || spoken.login.is_none() => {}
            _ => first = Some((name.clone(), spoken)),
        }
    }
    first.ok_or_else(|| unreachable("the run", "there is no server"))
}

/// The answers of the servers in their order, up to the first that cannot be asked.
fn answers(inquiry: &Inquiry, goes_on: &dyn Fn() -> bool) -> Vec<Result<Spoken, Undetected>> {
    let names = &inquiry.servers;
    let first = || names.first().map_or("the run", String::as_str);
    let resolved = match Sources::parse(&inquiry.socket.source) {
        Ok(sources) => resolve_each(names, move |name| Server::resolve(name, &sources), goes_on),
        Err(error) => Err(RunError::Connect(error)),
    };
    let resolved = match resolved {
        Ok(resolved) => resolved,
        Err(RunError::Interrupted) => return vec![Err(Undetected::Interrupted)],
        Err(error) => return vec![Err(unreachable(first(), error))],
    };
    let mut failed = None;
    let servers = names.iter().zip(resolved).map_while(|(name, server)| {
        server.map_err(|error| failed = Some(Err(unreachable(name, error)))).ok()
    });
    let servers: Arc<[Server]> = servers.collect();
    let asked = match servers.is_empty() {
        true => Vec::new(),
        false => ask(inquiry, &servers, goes_on).unwrap_or_else(|why| vec![Err(unreachable(first(), why))]),
    };
    asked.into_iter().chain(failed).collect()
}

/// Asks servers that are resolved. Returns the reason where none can be asked.
fn ask(
    inquiry: &Inquiry,
    servers: &Arc<[Server]>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Result<Spoken, Undetected>>, String> {
    let setup = inquiry.tls.as_ref().map(|options| Setup::new(options, servers)).transpose();
    let setup = setup.map_err(|error| error.to_string())?;
    let (socket, timeout_ns) = (&inquiry.socket, inquiry.timeout_ns);
    let asking = Asking { socket, tls: setup.as_ref(), timeout_ns, questions: &Question::ALL };
    asking.ask(servers, goes_on).map_err(|error| error.to_string())
}

fn unreachable(server: &str, why: impl fmt::Display) -> Undetected {
    Undetected::Unreachable { server: server.to_owned(), kind: TroubleKind::Other, why: why.to_string() }
}

/// A server to which no connection could be opened.
fn not_opened(server: &str, reason: CloseReason) -> Undetected {
    let trouble = Trouble::NotOpened(reason);
    Undetected::Unreachable { server: server.to_owned(), kind: trouble.kind(), why: trouble.to_string() }
}

/// The questions to servers, and the way to them.
pub(super) struct Asking<'a> {
    pub(super) socket: &'a Socket,
    /// Encryption of the connections.
    pub(super) tls: Option<&'a Setup>,
    /// Longest time for a connection to open and the first question to be answered, in nanoseconds.
    pub(super) timeout_ns: Nanos,
    pub(super) questions: &'static [Question],
}

impl Asking<'_> {
    /// Puts the questions to all servers at once, each on a connection of its own, until every server has answered one of them, or
    /// the first of those without an answer is known, or `goes_on` returns false. A RESP server is also asked for its software.
    ///
    /// # Errors
    /// Returns the error of the kernel when it gives no backend.
    pub(super) fn ask(
        &self,
        servers: &Arc<[Server]>,
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<Vec<Result<Spoken, Undetected>>> {
        resolve::allow_descriptors(servers.len() as u64, 1);
        let wait_ns = self.timeout_ns.clamp(WAIT_MIN_NS, WAIT_MAX_NS);
        let options = SideOptions {
            socket: self.socket,
            tls: self.tls,
            handshake: Arc::new(Handshake::none()),
            open_ns: wait_ns,
            received_bytes: ANSWER_MAX_BYTES,
        };
        let mut under_way = QuestionsUnderWay {
            connections: SideConnections::new(Arc::clone(servers), options)?,
            questions: self.questions,
            is_encrypted: self.tls.is_some(),
            wait_ns,
            sides: servers.iter().map(|_| AskedServer::default()).collect(),
        };
        let waited = under_way.work(goes_on);
        let unknown = |server: &Server| match &waited {
            Ok(()) => Undetected::Interrupted,
            Err(error) => unreachable(server.name(), error),
        };
        let known = under_way.sides.into_iter().zip(&servers[..]);
        Ok(known.map(|(side, server)| side.answer.unwrap_or_else(|| Err(unknown(server)))).collect())
    }
}

/// The questions to some servers that are under way.
struct QuestionsUnderWay {
    connections: SideConnections,
    questions: &'static [Question],
    is_encrypted: bool,
    /// Longest wait for an answer to a question that has to be answered, in nanoseconds.
    wait_ns: Nanos,
    sides: Vec<AskedServer>,
}

/// State of the questions to one server.
#[derive(Default)]
struct AskedServer {
    /// Index of the question under way.
    question: usize,
    /// Protocol of a RESP server, while it is asked for its software.
    spoken: Option<Spoken>,
    /// Reaction of the server to the first question, which says most: that question is text.
    did: Option<Reaction>,
    answer: Option<Result<Spoken, Undetected>>,
}

/// A server's reaction instead of an answer.
enum Instead {
    /// The server sent these bytes.
    Sent(Vec<u8>),
    /// The server closed the connection before the answer was complete.
    Closed(Vec<u8>),
    /// The server sent no more in time.
    Silent(Vec<u8>),
}

impl QuestionsUnderWay {
    fn work(&mut self, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        (0..self.sides.len()).for_each(|number| self.connections.dial(number));
        while !self.is_over() && goes_on() {
            self.connections.wait(NEVER)?;
            while let Some((number, event)) = self.connections.poll() {
                match event {
                    SideEvent::Open => self.put(number, self.questions[self.sides[number].question]),
                    SideEvent::Received(_) => self.read(number),
                    SideEvent::Late => {
                        let received = self.connections.received(number).to_vec();
                        self.go_on(number, &Instead::Silent(received));
                    }
                    SideEvent::Closed(failure, received) => self.closed(number, failure, received),
                }
            }
        }
        Ok(())
    }

    /// Whether all have answered, or the first server without an answer is known.
    fn is_over(&self) -> bool {
        let mut answers = self.sides.iter().map_while(|side| side.answer.as_ref());
        answers.any(Result::is_err) || self.sides.iter().all(|side| side.answer.is_some())
    }

    fn put(&mut self, number: usize, question: Question) {
        // A server that is slow has answered the first question late; the others are for servers that do not answer it.
        let within_ns = match question {
            Question::Version | Question::Info => self.wait_ns,
            Question::Ping | Question::BinaryVersion => WAIT_MIN_NS,
        };
        self.connections.expect(number, within_ns);
        self.connections.send(number, question.bytes());
    }

    fn read(&mut self, number: usize) {
        let received = self.connections.received(number);
        let side = &mut self.sides[number];
        if let Some(spoken) = &side.spoken {
            let Some(software) = detect::software(received) else { return };
            // Redis refuses a command that it does not know before it asks for a login.
            let login = match detect::read(Question::Info, received) {
                Reading::Spoken(refusal) => refusal.login,
                Reading::More | Reading::Refused(_) | Reading::Foreign => None,
            };
            let is_cluster = detect::is_cluster(received);
            let spoken = Spoken { software, login, is_cluster, ..spoken.clone() };
            return self.end(number, Ok(spoken));
        }
        match detect::read(self.questions[side.question], received) {
            Reading::More => {}
            Reading::Spoken(spoken) if spoken.protocol == Protocol::Resp2 && spoken.login.is_none() => {
                side.spoken = Some(spoken);
                let count = received.len();
                self.connections.take(number, count);
                self.put(number, Question::Info);
            }
            Reading::Spoken(spoken) => self.end(number, Ok(spoken)),
            Reading::Refused(said) => {
                let server = self.name(number);
                self.end(number, Err(Undetected::Refused { server, said }));
            }
            Reading::Foreign => {
                let received = received.to_vec();
                self.go_on(number, &Instead::Sent(received));
            }
        }
    }

    fn closed(&mut self, number: usize, failure: Failure, received: Vec<u8>) {
        match failure {
            Failure::NotOpened(reason) => {
                let why = not_opened(&self.name(number), reason);
                self.end(number, Err(why));
            }
            Failure::Lost(_) => self.go_on(number, &Instead::Closed(received)),
            Failure::Refused(_) | Failure::TooLong => self.go_on(number, &Instead::Sent(received)),
        }
    }

    /// Puts the next question to a server that did not answer the one under way.
    fn go_on(&mut self, number: usize, instead: &Instead) {
        let side = &mut self.sides[number];
        if let Some(spoken) = side.spoken.take() {
            return self.end(number, Ok(spoken));
        }
        // A server that sends words waits for no TLS handshake.
        let reaction = side.did.get_or_insert_with(|| reaction_of(instead)).clone();
        side.question += 1;
        if side.question == self.questions.len() {
            // A connection is open when its TLS handshake is over.
            let (server, wants_no_tls) = (self.name(number), reaction.is_in_words || self.is_encrypted);
            let Reaction { did, is_closed, .. } = reaction;
            return self.end(number, Err(Undetected::Foreign { server, did, wants_no_tls, is_closed }));
        }
        self.connections.close(number);
        self.connections.dial(number);
    }

    fn name(&self, number: usize) -> String {
        self.connections.server(number).name().to_owned()
    }

    fn end(&mut self, number: usize, answer: Result<Spoken, Undetected>) {
        self.connections.close(number);
        self.sides[number].answer = Some(answer);
    }
}

/// Reaction of a server instead of an answer.
#[derive(Clone, Debug)]
struct Reaction {
    /// The reaction as the end of a sentence whose subject is the server.
    did: String,
    /// Whether the server sent words.
    is_in_words: bool,
    /// Whether the server closed the connection without a word.
    is_closed: bool,
}

/// A server's reaction instead of an answer.
fn reaction_of(instead: &Instead) -> Reaction {
    let (bytes, end) = match instead {
        Instead::Sent(bytes) => (bytes, ""),
        Instead::Closed(bytes) => (bytes, " and closed the connection"),
        Instead::Silent(bytes) => (bytes, " and no more"),
    };
    let words = detect::words(bytes);
    let is_in_words = words.is_some();
    let did = match instead {
        Instead::Closed(bytes) if bytes.is_empty() => "closed the connection".to_owned(),
        Instead::Silent(bytes) if bytes.is_empty() => "sent nothing".to_owned(),
        _ => format!("sent \"{}\"{end}", words.unwrap_or_else(|| detect::quoted(bytes))),
    };
    let is_closed = matches!(instead, Instead::Closed(bytes) if bytes.is_empty());
    Reaction { did, is_in_words, is_closed }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Number of questions that the servers of a test have received.
    static ASKED: AtomicUsize = AtomicUsize::new(0);

    /// A server that sends this after what it receives first.
    fn server(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = listener.local_addr().unwrap().to_string();
        let serve = move |mut stream: TcpStream| {
            if matches!(stream.read(&mut [0; 256]), Ok(1..)) {
                let _ = stream.write_all(answer);
                ASKED.fetch_add(1, Ordering::Relaxed);
            }
            while matches!(stream.read(&mut [0; 256]), Ok(1..)) {}
        };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || serve(stream));
            }
        });
        name
    }

    fn inquiry(servers: Vec<String>, timeout_ns: Nanos) -> Inquiry {
        Inquiry { servers, socket: Socket::default(), tls: None, timeout_ns }
    }

    #[test]
    fn servers_are_asked_at_once_and_silence_is_waited_for_once() {
        let servers: Arc<[Server]> =
            (0..20).map(|_| Server::resolve(&server(b""), &Sources::default()).unwrap()).collect();
        let socket = &Socket::default();
        let asking = Asking { socket, tls: None, timeout_ns: SECOND, questions: &[Question::Version] };
        let began = Instant::now();
        let answers = asking.ask(&servers, &|| true).unwrap();
        // One after the other they take 20 s.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let Err(Undetected::Foreign { server, did, wants_no_tls: false, is_closed: false }) = &answers[0]
        else {
            panic!("{answers:?}");
        };
        assert_eq!((server.as_str(), did.as_str()), (servers[0].name(), "sent nothing"));
    }

    #[test]
    fn a_wish_to_end_ends_the_wait_for_a_silent_server() {
        let asked = inquiry(vec![server(b"VERSION 1.6.18\r\n"), server(b"")], 60 * SECOND);
        let before = ASKED.load(Ordering::Relaxed);
        let began = Instant::now();
        let goes_on = || ASKED.load(Ordering::Relaxed) < before + 2;
        let answer = detect(&asked, &goes_on);
        assert!(matches!(answer, Err(Undetected::Interrupted)), "{answer:?}");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }

    #[test]
    fn the_first_server_without_an_answer_decides_before_later_ones_have_answered() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let asked = inquiry(vec![free.clone(), server(b"")], 60 * SECOND);
        let began = Instant::now();
        match detect(&asked, &|| true) {
            Err(Undetected::Unreachable { server, .. }) => assert_eq!(server, free),
            other => panic!("{other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }

    #[test]
    fn a_name_without_an_address_is_the_error_where_all_servers_before_it_have_answered() {
        let open = server(b"VERSION 1.6.18\r\n");
        for servers in [vec!["nowhere".to_owned(), open.clone()], vec![open, "nowhere".to_owned()]] {
            match detect(&inquiry(servers, SECOND), &|| true) {
                Err(Undetected::Unreachable { server, .. }) => assert_eq!(server, "nowhere"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_server_that_wants_a_login_is_the_answer_before_others() {
        let open = server(b"VERSION 1.6.18\r\n");
        let closed = server(b"CLIENT_ERROR unauthenticated\r\n");
        let (name, spoken) = detect(&inquiry(vec![open, closed.clone()], SECOND), &|| true).unwrap();
        assert_eq!((name, spoken.protocol, spoken.login.is_some()), (closed, Protocol::Text, true));
    }
}
