//! The dialects of the built-in server behind one parser and one request.

use super::context::Context;
use super::contract::{ParserStep, Silence};
use super::owed::ReplyBuffer;
use super::{binary, resp, text};

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The protocol that the first byte of a connection names: 0x80 is memcached's binary protocol, `*` is RESP, all else is
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

/// The words of `pummel serve --protocol`, each with its sentence in `--help` and its dialect.
const NAMED: [(&str, &str, Dialect); 5] = [
    ("auto", "What the first byte of a connection says", Dialect::Auto),
    ("text", "memcached's text protocol, with its meta commands", Dialect::Text),
    ("meta", "An alias of text", Dialect::Text),
    ("binary", "memcached's binary protocol", Dialect::Binary),
    ("resp", "RESP2 and RESP3", Dialect::Resp),
];

impl Dialect {
    /// The words of `pummel serve --protocol`, each with its sentence in `--help`.
    pub fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
        NAMED.into_iter().map(|(word, about, _)| (word, about))
    }

    /// The dialect of that word.
    pub fn from_name(name: &str) -> Option<Dialect> {
        NAMED.into_iter().find_map(|(word, _, dialect)| (word == name).then_some(dialect))
    }

    /// A dialect other than this one; the number `nth` chooses among those that differ visibly from it.
    pub(super) fn other(self, nth: u64) -> Dialect {
        let others = match self {
            Dialect::Auto | Dialect::Text => [Dialect::Resp, Dialect::Binary],
            Dialect::Binary => [Dialect::Text, Dialect::Resp],
            Dialect::Resp => [Dialect::Text, Dialect::Binary],
        };
        others[(nth % 2) as usize]
    }

    /// Writes a refusal in this dialect, to a peer that speaks another one.
    pub(super) fn write_foreign(self, reply: &mut ReplyBuffer) {
        match self {
            Dialect::Auto | Dialect::Text => reply.push(b"ERROR\r\n"),
            Dialect::Binary => binary::foreign(reply),
            Dialect::Resp => reply.push(b"-ERR unknown command\r\n"),
        }
    }
}

/// The parser of the dialect that a connection speaks.
#[derive(Debug)]
pub(super) enum DialectParser {
    /// Parser of a connection from which no byte has come yet.
    Unknown,
    Text(text::Parser),
    Binary(binary::Parser),
    Resp(resp::Parser),
}

/// Request of any dialect.
#[derive(Debug)]
pub(super) enum DialectRequest<'a> {
    Text(text::Request<'a>),
    Binary(binary::Request<'a>),
    Resp(resp::Request<'a>),
}

impl DialectParser {
    pub(super) fn new(dialect: Dialect) -> DialectParser {
        match dialect {
            Dialect::Auto => DialectParser::Unknown,
            Dialect::Text => DialectParser::Text(text::Parser::default()),
            Dialect::Binary => DialectParser::Binary(binary::Parser::default()),
            Dialect::Resp => DialectParser::Resp(resp::Parser::default()),
        }
    }

    /// Takes the next step; what it returns does not depend on how the input is cut.
    pub(super) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        item_max_bytes: usize,
    ) -> ParserStep<DialectRequest<'s>> {
        if let DialectParser::Unknown = self {
            let dialect = match input.first() {
                None => return ParserStep::Need,
                Some(&binary::REQUEST) => Dialect::Binary,
                Some(b'*') => Dialect::Resp,
                Some(_) => Dialect::Text,
            };
            *self = DialectParser::new(dialect);
        }
        match self {
            DialectParser::Unknown => ParserStep::Need,
            DialectParser::Text(parser) => parser.next(input, item_max_bytes).map(DialectRequest::Text),
            DialectParser::Binary(parser) => parser.next(input, item_max_bytes).map(DialectRequest::Binary),
            DialectParser::Resp(parser) => parser.next(input).map(DialectRequest::Resp),
        }
    }
}

impl DialectRequest<'_> {
    /// The first word of the request or the name of its code; `error` for a request that is not understood.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            DialectRequest::Text(request) => request.verb,
            DialectRequest::Binary(request) => request.verb(),
            DialectRequest::Resp(request) => resp::verb(request),
        }
    }

    pub(super) fn silence(&self) -> Silence {
        match self {
            DialectRequest::Text(request) if request.noreply => Silence::Always,
            DialectRequest::Text(_) | DialectRequest::Resp(_) => Silence::Never,
            DialectRequest::Binary(request) => request.silence(),
        }
    }

    /// Whether the request is none of its dialect, and nothing after it can be understood.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            // Every line is a request, if a wrong one; a line without an end closes the connection by itself.
            DialectRequest::Text(_) => false,
            DialectRequest::Binary(request) => request.is_broken(),
            DialectRequest::Resp(request) => request.is_broken(),
        }
    }

    /// Whether the request is a copy of an item that was stored on another server.
    pub(super) fn is_copy(&self) -> bool {
        matches!(self, DialectRequest::Binary(request) if request.is_copy())
    }

    /// The dialect of the request.
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            DialectRequest::Text(_) => Dialect::Text,
            DialectRequest::Binary(_) => Dialect::Binary,
            DialectRequest::Resp(_) => Dialect::Resp,
        }
    }

    /// Carries the request out and writes its reply; a text request gets a reply here even where it asked for none.
    pub(super) fn answer(&self, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
        match self {
            DialectRequest::Text(request) => text::answer(&request.command, context, reply),
            DialectRequest::Binary(request) => binary::answer(request, context, reply),
            DialectRequest::Resp(request) => resp::answer(request, context, reply),
        }
    }

    /// Writes the answer to a request that was chosen to fail.
    pub(super) fn fail(&self, reply: &mut ReplyBuffer) {
        match self {
            DialectRequest::Text(_) => text::fail(reply),
            DialectRequest::Binary(request) => binary::fail(request, reply),
            DialectRequest::Resp(_) => resp::fail(reply),
        }
    }
}
