//! What a connection of the built-in server speaks: its parser, its requests, and what answers need to know.

use super::fault::Faults;
use super::owed::Reply;
use super::resp::Calls;
use super::store::Store;
use super::{Login, binary, resp, text};
use crate::time::Nanos;

/// What is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Whatever the first byte of a connection says: 0x80 is memcached's binary protocol, `*` is RESP, all else is
    /// memcached's text protocol.
    #[default]
    Auto,
    /// memcached's text protocol, with its meta commands.
    Text,
    /// memcached's binary protocol.
    Binary,
    /// RESP2, and RESP3 once HELLO has asked for it; also commands in plain lines.
    Resp,
}

/// The parser of the dialect that a connection speaks.
#[derive(Debug)]
pub(super) enum Parser {
    /// Nothing came yet.
    Unknown,
    Text(text::Parser),
    Binary(binary::Parser),
    Resp(resp::Parser),
}

/// What a parser found.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// All input was taken; more is needed.
    Need,
    Request(Request<'a>),
    /// The connection is to be closed: the peer does not speak this protocol.
    HangUp,
}

/// One request.
#[derive(Debug)]
pub(super) enum Request<'a> {
    Text(text::Request<'a>),
    Binary(binary::Request<'a>),
    Resp(resp::Request<'a>),
}

/// Whether a request has a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It has one.
    Never,
    /// It has one where it ends in a way that is worth saying.
    Quiet,
    /// It has none, however it ends.
    Always,
}

/// What is known of a connection beside what it is owed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    /// It has proved who it is.
    pub(super) welcome: bool,
    /// It asked for RESP3.
    pub(super) resp3: bool,
    /// It is to be closed when all is sent.
    pub(super) leaving: bool,
    /// Its number.
    pub(super) connection: u64,
}

/// Figures of `stats` that the store does not know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauges {
    pub(super) started: Nanos,
    pub(super) unix_ns_at_zero: u64,
    pub(super) connections: u64,
    /// Requests that came, this one included.
    pub(super) requests: u64,
}

/// All that an answer depends on.
pub(super) struct Context<'c> {
    pub(super) store: &'c mut Store,
    pub(super) faults: &'c mut Faults,
    pub(super) calls: &'c mut Calls,
    pub(super) session: &'c mut Session,
    /// Who may come in; everybody where it is absent.
    pub(super) login: Option<&'c Login>,
    pub(super) gauges: Gauges,
    pub(super) now: Nanos,
}

impl Context<'_> {
    /// Whether this connection has yet to prove who it is.
    pub(super) fn is_shut_out(&self) -> bool {
        self.login.is_some() && !self.session.welcome
    }

    /// Lets the connection in if user and password are right, and says whether they are.
    pub(super) fn try_login(&mut self, user: &[u8], password: &[u8]) -> bool {
        let right = self.login.is_some_and(|login| login.user == user && login.password == password);
        self.session.welcome |= right;
        right
    }
}

impl Parser {
    pub(super) fn new(dialect: Dialect) -> Parser {
        match dialect {
            Dialect::Auto => Parser::Unknown,
            Dialect::Text => Parser::Text(text::Parser::default()),
            Dialect::Binary => Parser::Binary(binary::Parser::default()),
            Dialect::Resp => Parser::Resp(resp::Parser::default()),
        }
    }

    /// Takes the next step; what it returns does not depend on how the input is cut.
    pub(super) fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8], item_max_bytes: usize) -> Step<'s> {
        if let Parser::Unknown = self {
            let dialect = match input.first() {
                None => return Step::Need,
                Some(&binary::REQUEST) => Dialect::Binary,
                Some(b'*') => Dialect::Resp,
                Some(_) => Dialect::Text,
            };
            *self = Parser::new(dialect);
        }
        match self {
            Parser::Unknown => Step::Need,
            Parser::Text(parser) => parser.next(input, item_max_bytes),
            Parser::Binary(parser) => parser.next(input, item_max_bytes),
            Parser::Resp(parser) => parser.next(input),
        }
    }
}

impl Request<'_> {
    /// Its first word or the name of its code; `error` for one that is not understood.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Request::Text(request) => request.verb,
            Request::Binary(request) => request.verb(),
            Request::Resp(request) => request.verb(),
        }
    }

    pub(super) fn silence(&self) -> Silence {
        match self {
            Request::Text(request) if request.noreply => Silence::Always,
            Request::Text(_) | Request::Resp(_) => Silence::Never,
            Request::Binary(request) => request.silence(),
        }
    }

    /// Whether it is the copy of what was stored elsewhere.
    pub(super) fn is_copy(&self) -> bool {
        matches!(self, Request::Binary(request) if request.is_copy())
    }

    /// In which dialect it was asked.
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Request::Text(_) => Dialect::Text,
            Request::Binary(_) => Dialect::Binary,
            Request::Resp(_) => Dialect::Resp,
        }
    }

    /// Carries it out and writes its reply, for text also where it asked for none.
    pub(super) fn answer(&self, context: &mut Context<'_>, reply: &mut Reply) {
        match self {
            Request::Text(request) => text::answer(&request.command, context, reply),
            Request::Binary(request) => binary::answer(request, context, reply),
            Request::Resp(request) => resp::answer(request, context, reply),
        }
    }

    /// Writes the answer to a request that was chosen to fail.
    pub(super) fn fail(&self, reply: &mut Reply) {
        match self {
            Request::Text(_) => text::fail(reply),
            Request::Binary(request) => binary::fail(request, reply),
            Request::Resp(_) => resp::fail(reply),
        }
    }
}
