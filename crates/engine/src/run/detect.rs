//! What servers speak, found out before a run on connections of their own.

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

/// How long an answer is waited for: longer than any round trip, and short enough for a person.
const ANSWER_MAX_NS: Nanos = SECOND;

/// How long a connection, with its TLS handshake, may take to open at most.
const OPEN_MAX_NS: Nanos = 5 * SECOND;

/// Longest answer that is kept, in bytes.
const ANSWER_MAX_BYTES: usize = 128 * 1024;

/// What is asked of which servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// The servers, in the forms of a Plan.
    pub servers: Vec<String>,
    /// Options of the sockets.
    pub socket: Socket,
    /// Encryption, as the run will have it.
    pub tls: Option<TlsOptions>,
    /// How long a connection may take to open, in nanoseconds; at least 1 s is waited, and at most 5 s.
    pub timeout_ns: Nanos,
}

/// Why it is not known what servers speak.
#[derive(Debug)]
pub enum Undetected {
    /// A server cannot be reached from here, for this reason; the run says more.
    Unreachable {
        /// The server.
        server: String,
        /// The reason, as a sentence without its full stop.
        why: String,
    },
    /// A server answers no question of any protocol.
    Foreign {
        /// The server.
        server: String,
        /// What it did instead, as the end of a sentence whose subject is the server.
        did: String,
    },
    /// Two servers speak different protocols.
    Different(Box<[(String, Spoken); 2]>),
}

impl fmt::Display for Undetected {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undetected::Unreachable { server, why } => write!(to, "{server}: {why}"),
            Undetected::Foreign { server, did } => {
                write!(to, "{server} answers neither as memcached nor as a RESP server: it {did}")
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
/// that answers nothing known in 1 s each, and [`Undetected::Different`] for servers that do not agree.
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
    let open_ns = inquiry.timeout_ns.clamp(ANSWER_MAX_NS, OPEN_MAX_NS);
    match &inquiry.tls {
        None => Side::new(epoll()?, &server, open_ns).ask(),
        Some(options) => {
            let setup = Setup::new(options, std::slice::from_ref(&server));
            let setup = setup.map_err(|error| unreachable(error.to_string()))?;
            Side::new(Tls::new(epoll()?, &setup), &server, open_ns).ask()
        }
    }
}

/// The side connections to one server, one after the other.
struct Side<'a, B> {
    backend: B,
    server: &'a Server,
    open_ns: Nanos,
    generation: u32,
    /// The connection under way is over; nothing may be sent on it.
    is_over: bool,
}

/// What came of a question.
enum Answer {
    /// These bytes, and what they say.
    Read(Vec<u8>, Reading),
    /// The connection closed before the answer was complete.
    Closed(Vec<u8>),
    /// No more came in time.
    Silent(Vec<u8>),
}

impl<'a, B: Backend> Side<'a, B> {
    fn new(backend: B, server: &'a Server, open_ns: Nanos) -> Side<'a, B> {
        Side { backend, server, open_ns, generation: 0, is_over: false }
    }

    fn ask(mut self) -> Result<Spoken, Undetected> {
        let unreachable =
            |why: String| Undetected::Unreachable { server: self.server.name().to_owned(), why };
        let mut did = String::new();
        for question in Question::ALL {
            let conn = self.open().map_err(|reason| unreachable(Trouble::NotOpened(reason).to_string()))?;
            let answer = self.put(conn, question, |bytes| detect::read(question, bytes));
            if let Answer::Read(_, Reading::Spoken(spoken)) = answer {
                let spoken = self.with_software(conn, spoken);
                self.backend.close(conn, Close::Fin);
                return Ok(spoken);
            }
            self.backend.close(conn, Close::Fin);
            // What is said to the first question tells most: it is text.
            if did.is_empty() {
                did = words_of(&answer);
            }
        }
        Err(Undetected::Foreign { server: self.server.name().to_owned(), did })
    }

    /// Opens a connection to one of the server's addresses.
    fn open(&mut self) -> Result<ConnId, Reason> {
        let mut last = None;
        for attempt in 0..self.server.addresses().max(1) {
            self.generation += 1;
            self.is_over = false;
            let conn = ConnId { slot: 0, generation: self.generation };
            self.backend.open(conn, &self.server.target(0, attempt));
            let until = self.backend.now().saturating_add(self.open_ns);
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
        if self.is_over {
            return Answer::Closed(Vec::new());
        }
        // A question fits into the buffer of a socket that has sent nothing.
        self.backend.send(conn, &[IoSlice::new(question.bytes())]);
        let until = self.backend.now().saturating_add(ANSWER_MAX_NS);
        let mut bytes = Vec::new();
        let mut is_closed = false;
        let mut reading = Reading::More;
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
        match reading {
            Reading::More if is_closed => Answer::Closed(bytes),
            Reading::More => Answer::Silent(bytes),
            reading => Answer::Read(bytes, reading),
        }
    }

    /// What a RESP server tells of its software, on the connection that is open.
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
            Reading::More | Reading::Foreign => None,
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
                    is_done = is_done || handle(event);
                }
            });
        }
        self.is_over |= is_over;
    }
}

fn words_of(answer: &Answer) -> String {
    match answer {
        Answer::Read(bytes, _) => format!("sent \"{}\"", detect::quoted(bytes)),
        Answer::Closed(bytes) if bytes.is_empty() => "closed the connection".to_owned(),
        Answer::Closed(bytes) => format!("sent \"{}\" and closed the connection", detect::quoted(bytes)),
        Answer::Silent(bytes) if bytes.is_empty() => "sent nothing".to_owned(),
        Answer::Silent(bytes) => format!("sent \"{}\" and no more", detect::quoted(bytes)),
    }
}
