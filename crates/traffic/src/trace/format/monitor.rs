//! Lines of MONITOR (Redis, Valkey): `1339518090.420270 [0 127.0.0.1:60866] "set" "x" "6"`, with `+` in front when raw.

use super::quoted::argument;
use crate::trace::number::{decimal, whole, whole_32};
use crate::trace::row::{Found, Row, Sink, VALUE_MAX_BYTES, is_key};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::hash::client_of_name;

/// Most arguments of a command that are looked at; a command with more is left out.
const ARGUMENTS_MAX: usize = 4_096;

/// The reader of one trace.
#[derive(Clone, Debug, Default)]
pub(in crate::trace) struct Monitor {
    /// The arguments of a line, one behind the other, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Monitor {
    /// Takes in a line.
    pub(super) fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Found {
        let line = line.strip_prefix(b"+").unwrap_or(line);
        if line == b"OK" {
            return Found::Nothing;
        }
        self.head_and_arguments(line).map_or(Found::Bad, |head| self.rows(&head, sink))
    }

    /// Reads a line into its parts.
    fn head_and_arguments(&mut self, line: &[u8]) -> Option<Head> {
        let space = line.iter().position(|&byte| byte == b' ')?;
        let (at_ns, _) = decimal(&line[..space], SECOND)?;
        let rest = line[space + 1..].strip_prefix(b"[")?;
        let close = rest.iter().position(|&byte| byte == b']')?;
        let mut words = rest[..close].splitn(2, |&byte| byte == b' ');
        let (_database, address) = (whole(words.next()?)?, words.next()?);
        self.bytes.clear();
        self.ends.clear();
        let mut rest = rest[close + 1..].strip_prefix(b" ")?;
        loop {
            rest = argument(rest, &mut self.bytes)?;
            self.ends.push(self.bytes.len());
            match rest {
                [] => break,
                _ if self.ends.len() >= ARGUMENTS_MAX => return None,
                _ => rest = rest.strip_prefix(b" ")?,
            }
        }
        Some(Head { at_ns, client: client_of_name(address), is_inner: address == b"lua" })
    }

    fn argument(&self, place: usize) -> Option<&[u8]> {
        let end = *self.ends.get(place)?;
        Some(&self.bytes[if place == 0 { 0 } else { self.ends[place - 1] }..end])
    }

    /// The place of an argument that is this word, from `place` on; `word` is in capitals.
    fn option(&self, word: &[u8]) -> Option<usize> {
        (3..self.ends.len())
            .find(|&place| self.argument(place).is_some_and(|argument| argument.eq_ignore_ascii_case(word)))
    }

    /// Hands over the requests of a command.
    fn rows(&self, head: &Head, sink: &mut Sink<'_>) -> Found {
        let Some(name) = self.argument(0).filter(|_| !head.is_inner) else { return Found::Skipped };
        let mut small = name.to_vec();
        small.make_ascii_lowercase();
        match &small[..] {
            b"get" => self.keys(head, 1..2, Verb::Get, sink),
            b"mget" => self.keys(head, 1..self.ends.len(), Verb::Get, sink),
            b"del" | b"unlink" => self.keys(head, 1..self.ends.len(), Verb::Delete, sink),
            b"incr" => self.keys(head, 1..2, Verb::Incr, sink),
            b"decr" => self.keys(head, 1..2, Verb::Decr, sink),
            b"setnx" => self.store(head, Verb::Add, 2, 0, sink),
            b"setex" => self.store(head, Verb::Set, 3, self.seconds(2, SECOND), sink),
            b"psetex" => self.store(head, Verb::Set, 3, self.seconds(2, SECOND / 1_000), sink),
            b"set" => {
                let after = |word: &[u8]| self.option(word).map(|place| place + 1);
                let ttl_s = match (after(b"EX"), after(b"PX")) {
                    (Some(place), _) => self.seconds(place, SECOND),
                    (None, Some(place)) => self.seconds(place, SECOND / 1_000),
                    (None, None) => 0,
                };
                let verb = match (self.option(b"NX"), self.option(b"XX")) {
                    (Some(_), _) => Verb::Add,
                    (None, Some(_)) => Verb::Replace,
                    (None, None) => Verb::Set,
                };
                self.store(head, verb, 2, ttl_s, sink)
            }
            b"expire" => {
                let Some(key) = self.argument(1).filter(|key| is_key(key)) else { return Found::Bad };
                let ttl_s = self.seconds(2, SECOND);
                sink(&Row { verb: Verb::Touch, ttl_s, ..head.row(key) });
                Found::Rows
            }
            _ => Found::Skipped,
        }
    }

    /// Hands over one request for each key in these places.
    fn keys(&self, head: &Head, places: std::ops::Range<usize>, verb: Verb, sink: &mut Sink<'_>) -> Found {
        let mut found = Found::Bad;
        for key in places.filter_map(|place| self.argument(place)).filter(|key| is_key(key)) {
            sink(&Row { verb, ..head.row(key) });
            found = Found::Rows;
        }
        found
    }

    /// Hands over a store of the value in a place.
    fn store(&self, head: &Head, verb: Verb, value: usize, ttl_s: u32, sink: &mut Sink<'_>) -> Found {
        let (Some(key), Some(value)) = (self.argument(1).filter(|key| is_key(key)), self.argument(value))
        else {
            return Found::Bad;
        };
        let value_bytes = Some((value.len() as u32).min(VALUE_MAX_BYTES));
        sink(&Row { verb, value_bytes, ttl_s, ..head.row(key) });
        Found::Rows
    }

    /// A time to live in units of `unit_ns`, as whole seconds rounded up; 0 if there is none.
    fn seconds(&self, place: usize, unit_ns: Nanos) -> u32 {
        let number = self.argument(place).and_then(whole_32).unwrap_or(0);
        (u64::from(number) * unit_ns).div_ceil(SECOND) as u32
    }
}

/// The part of a line before the arguments.
struct Head {
    at_ns: Nanos,
    client: u64,
    /// Whether the command was called by a script, which has a line of its own.
    is_inner: bool,
}

impl Head {
    fn row<'a>(&self, key: &'a [u8]) -> Row<'a> {
        Row { at_ns: self.at_ns, client: Some(self.client), ..Row::read(key) }
    }
}
