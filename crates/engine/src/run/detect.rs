//! Detection of servers' protocols before a run, on connections of their own.

use std::fmt;
use std::io::IoSlice;

use pummel_logic::plan::detect::{self, Question, Reading, Spoken};
use pummel_logic::plan::{Clock, Protocol, Socket, TlsOptions, Wait};
use pummel_logic::protocol::Fault;
use pummel_logic::time::{Nanos, SECOND};

use crate::backend::epoll::Epoll;
use crate::backend::tls::{Setup, Tls};
use crate::backend::{Backend, Close, ConnId, Event, Reason};
use crate::resolve::{Server, Sources};
use crate::worker::trouble::Trouble;

/// Shortest time to wait for an answer: longer than any round trip, and short enough for a person.
const WAIT_MIN_NS: Nanos = SECOND;

/// Longest time for a connection to open, with its TLS handshake, and for an answer to come.
const WAIT_MAX_NS: Nanos = 60 * SECOND;

/// Longest answer that is kept, in bytes.
const ANSWER_MAX_BYTES: usize = 128 * 1024;

/// The question to servers: their protocol and software.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// The servers, in the forms of a Plan.
    pub servers: Vec<String>,
    /// Options of the sockets.
    pub socket: Socket,
    /// Encryption, as the run will have it.
    pub tls: Option<TlsOptions>,
    /// Longest time for a connection to open and the first question to be answered, in nanoseconds; at least 1 s is
    /// waited, and at most 60 s.
    pub timeout_ns: Nanos,
}

/// Why it is not known what servers speak.
#[derive(Debug)]
pub enum Undetected {
    /// A server cannot be reached from here, for this reason; the run says more.
    Unreachable {
        /// Name of the server.
        server: String,
        /// The reason, as a sentence without its full stop.
        why: String,
    },
    /// A server answers no question of any protocol.
    Foreign {
        /// Name of the server.
        server: String,
        /// The reaction of the server instead, as the end of a sentence whose subject is the server.
        did: String,
        /// The server waits for no TLS handshake: it completed one, or sent words without encryption of its own.
        wants_no_tls: bool,
    },
    /// A server refuses this client whatever it is asked.
    Refused {
        /// Name of the server.
        server: String,
        /// The server's words, whole.
        said: String,
    },
    /// Two servers speak different protocols.
    Different(Box<[(String, Spoken); 2]>),
}

impl fmt::Display for Undetected {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undetected::Unreachable { server, why } => write!(to, "{server}: {why}"),
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
        }
    }
}

/// Asks every server what it speaks. Returns the answer of the first where all agree on the protocol; a server that wants
/// a login is the answer before all others.
///
/// # Errors
/// Returns [`Undetected::Unreachable`] when no connection to a server can be opened, [`Undetected::Foreign`] for a server
/// that answers nothing known in time, [`Undetected::Refused`] for one that refuses this client, and [`Undetected::Different`] for servers that do not agree.
pub fn detect(inquiry: &Inquiry) -> Result<(String, Spoken), Undetected> {
    let mut first: Option<(String, Spoken)> = None;
    for name in &inquiry.servers {
        let spoken = of_server(inquiry, name)?;
        match &first {
            Some(known) if known.1.protocol != spoken.protocol => {
                return Err(Undetected::Different(Box::new([known.clone(), (name.clone(), spoken)])));
            }
            Some(known) if known.1.login.is_some() || spoken.login.is_none() => {}
            _ => first = Some((name.clone(), spoken)),
        }
    }
    first.ok_or_else(|| Undetected::Unreachable {
        server: "the run".to_owned(),
        why: "there is no server".to_owned(),
    })
}

fn of_server(inquiry: &Inquiry, name: &str) -> Result<Spoken, Undetected> {
    let unreachable = |why: String| Undetected::Unreachable { server: name.to_owned(), why };
    let sources = Sources::parse(&inquiry.socket.source).map_err(|error| unreachable(error.to_string()))?;
    let server = Server::resolve(name, &sources).map_err(|error| unreachable(error.to_string()))?;
    let epoll = || {
        Epoll::new(Wait::Block, Clock::User, &inquiry.socket).map_err(|error| unreachable(error.to_string()))
    };
    let wait_ns = inquiry.timeout_ns.clamp(WAIT_MIN_NS, WAIT_MAX_NS);
    match &inquiry.tls {
        None => Side::new(epoll()?, &server, wait_ns).ask(),
        Some(options) => {
            let setup = Setup::new(options, std::slice::from_ref(&server));
            let setup = setup.map_err(|error| unreachable(error.to_string()))?;
            let side = Side::new(Tls::new(epoll()?, &setup), &server, wait_ns);
            Side { is_encrypted: true, ..side }.ask()
        }
    }
}

/// A server's reaction to being asked for its version before anything else.
pub(super) enum FirstAnswer {
    /// The server answers, in this protocol.
    Spoken(Spoken),
    /// The server does something else, as the end of a sentence whose subject is the server.
    Other(String),
}

/// Asks a server for its version in memcached's text protocol, on a connection of its own.
///
/// # Errors
/// Returns the reason, as a sentence without its full stop, when no connection to the server can be opened.
pub(super) fn first_answer<B: Backend>(
    backend: B,
    server: &Server,
    timeout_ns: Nanos,
) -> Result<FirstAnswer, String> {
    let mut side = Side::new(backend, server, timeout_ns.clamp(WAIT_MIN_NS, WAIT_MAX_NS));
    let conn = side.open().map_err(|reason| Trouble::NotOpened(reason).to_string())?;
    let question = Question::Version;
    let answer = side.put(conn, question, |bytes| detect::read(question, bytes));
    side.backend.close(conn, Close::Fin);
    Ok(match answer {
        Answer::Read(_, Reading::Spoken(spoken)) => FirstAnswer::Spoken(spoken),
        Answer::Read(_, Reading::Refused(said)) => FirstAnswer::Other(format!("said \"{said}\"")),
        answer => FirstAnswer::Other(words_of(&answer).0),
    })
}

/// The side connections to one server, one after the other.
struct Side<'a, B> {
    backend: B,
    server: &'a Server,
    /// Longest time for a connection to open, and for an answer to a question that has to be answered.
    wait_ns: Nanos,
    /// A connection is open when its TLS handshake is over.
    is_encrypted: bool,
    generation: u32,
    /// Bytes that came together with the opening of the connection: a greeting.
    greeting: Vec<u8>,
    /// The connection under way is over; nothing may be sent on it.
    is_over: bool,
}

/// The result of a question.
enum Answer {
    /// The bytes that came, and their meaning.
    Read(Vec<u8>, Reading),
    /// The connection closed before the answer was complete.
    Closed(Vec<u8>),
    /// No more came in time.
    Silent(Vec<u8>),
}

impl<'a, B: Backend> Side<'a, B> {
    fn new(backend: B, server: &'a Server, wait_ns: Nanos) -> Side<'a, B> {
        Side {
            backend,
            server,
            wait_ns,
            is_encrypted: false,
            generation: 0,
            greeting: Vec::new(),
            is_over: false,
        }
    }

    fn ask(mut self) -> Result<Spoken, Undetected> {
        let unreachable =
            |why: String| Undetected::Unreachable { server: self.server.name().to_owned(), why };
        let mut did: Option<(String, bool)> = None;
        for question in Question::ALL {
            let conn = self.open().map_err(|reason| unreachable(Trouble::NotOpened(reason).to_string()))?;
            let answer = self.put(conn, question, |bytes| detect::read(question, bytes));
            if let Answer::Read(_, Reading::Spoken(spoken)) = answer {
                let spoken = self.with_software(conn, spoken);
                self.backend.close(conn, Close::Fin);
                return Ok(spoken);
            }
            self.backend.close(conn, Close::Fin);
            if let Answer::Read(_, Reading::Refused(said)) = answer {
                return Err(Undetected::Refused { server: self.server.name().to_owned(), said });
            }
            // The answer to the first question says most: it is text.
            did.get_or_insert_with(|| words_of(&answer));
        }
        let (did, in_words) = did.unwrap_or_default();
        Err(Undetected::Foreign {
            server: self.server.name().to_owned(),
            did,
            wants_no_tls: self.is_encrypted || in_words,
        })
    }

    /// Opens a connection to one of the server's addresses.
    fn open(&mut self) -> Result<ConnId, Reason> {
        let mut last = None;
        for attempt in 0..self.server.addresses().max(1) {
            self.generation += 1;
            self.is_over = false;
            self.greeting.clear();
            let conn = ConnId { slot: 0, generation: self.generation };
            self.backend.open(conn, &self.server.target(0, attempt));
            let until = self.backend.now().saturating_add(self.wait_ns);
            let mut opened = None;
            self.turn(conn, until, &mut |event| {
                opened = Some(match event {
                    Event::Closed(reason) => Err(reason),
                    _ => Ok(()),
                });
                true
            });
            match opened {
                Some(Ok(())) => return Ok(conn),
                Some(Err(reason)) => last = Some(reason),
                None => self.backend.close(conn, Close::Fin),
            }
        }
        Err(last.unwrap_or(Reason::new(Fault::Timeout, 0)))
    }

    /// Sends a question and reads its answer as far as `read` wants it.
    fn put(&mut self, conn: ConnId, question: Question, read: impl Fn(&[u8]) -> Reading) -> Answer {
        let mut bytes = std::mem::take(&mut self.greeting);
        let mut reading = if bytes.is_empty() { Reading::More } else { read(&bytes) };
        if reading != Reading::More {
            return Answer::Read(bytes, reading);
        }
        if self.is_over {
            return Answer::Closed(bytes);
        }
        // A question fits into the buffer of a socket that has sent nothing.
        self.backend.send(conn, &[IoSlice::new(question.bytes())]);
        let until = self.backend.now().saturating_add(self.patience(question));
        let mut is_closed = false;
        self.turn(conn, until, &mut |event| {
            match event {
                Event::Received { bytes: more, .. } if bytes.len() < ANSWER_MAX_BYTES => {
                    bytes.extend_from_slice(more);
                    reading = read(&bytes);
                }
                Event::Closed(_) => is_closed = true,
                _ => {}
            }
            is_closed || reading != Reading::More
        });
        self.greeting.clear();
        match reading {
            Reading::More if is_closed => Answer::Closed(bytes),
            Reading::More => Answer::Silent(bytes),
            reading => Answer::Read(bytes, reading),
        }
    }

    /// Longest wait for the answer to a question. A server that is slow has answered the first question late; the
    /// others are for servers that do not answer it.
    fn patience(&self, question: Question) -> Nanos {
        match question {
            Question::Version | Question::Info => self.wait_ns,
            Question::Ping | Question::BinaryVersion => WAIT_MIN_NS,
        }
    }

    /// Adds the software that a RESP server reports, on the connection that is open.
    fn with_software(&mut self, conn: ConnId, spoken: Spoken) -> Spoken {
        if spoken.protocol != Protocol::Resp2 || spoken.login.is_some() || self.is_over {
            return spoken;
        }
        let answer = self.put(conn, Question::Info, |bytes| match detect::software(bytes) {
            None => Reading::More,
            Some(_) => Reading::Foreign,
        });
        let Answer::Read(bytes, _) = answer else { return spoken };
        // Redis refuses a command that it does not know before it asks for a login.
        let login = match detect::read(Question::Info, &bytes) {
            Reading::Spoken(refusal) => refusal.login,
            Reading::More | Reading::Refused(_) | Reading::Foreign => None,
        };
        Spoken { software: detect::software(&bytes).flatten(), login, ..spoken }
    }

    /// Hands the events of a connection to `handle` until it returns true or `until` has come.
    fn turn(&mut self, conn: ConnId, until: Nanos, handle: &mut dyn FnMut(Event<'_>) -> bool) {
        let mut is_done = false;
        let mut is_over = false;
        while !is_done && !is_over && self.backend.now() < until {
            if self.backend.wait(until).is_err() {
                break;
            }
            self.backend.drain(&mut |id, event| {
                if id == conn {
                    is_over |= matches!(event, Event::Closed(_));
                    match &event {
                        Event::Received { bytes, .. }
                            if is_done && self.greeting.len() < ANSWER_MAX_BYTES =>
                        {
                            self.greeting.extend_from_slice(bytes);
                        }
                        _ => {}
                    }
                    is_done = is_done || handle(event);
                }
            });
        }
        self.is_over |= is_over;
    }
}

/// A server's reaction instead of an answer, as the end of a sentence, and whether it sent words.
fn words_of(answer: &Answer) -> (String, bool) {
    let (bytes, end) = match answer {
        Answer::Read(bytes, _) => (bytes, ""),
        Answer::Closed(bytes) => (bytes, " and closed the connection"),
        Answer::Silent(bytes) => (bytes, " and no more"),
    };
    let words = detect::words(bytes);
    let is_in_words = words.is_some();
    let did = match answer {
        Answer::Closed(bytes) if bytes.is_empty() => "closed the connection".to_owned(),
        Answer::Silent(bytes) if bytes.is_empty() => "sent nothing".to_owned(),
        _ => format!("sent \"{}\"{end}", words.unwrap_or_else(|| detect::quoted(bytes))),
    };
    (did, is_in_words)
}
