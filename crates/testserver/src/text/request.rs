//! memcached's text protocol from the server's side: bytes become requests.
//!
//! Follows memcached's `protocol.txt` and, where that is silent, what memcached 1.6.18 does.

use std::ops::RangeInclusive;

use crate::contract::ParserStep;
use crate::lines::{
    BAD_FORMAT, ERROR, LINE_MAX_BYTES, RequestLine, signed, take_line, unsigned, value_len, without_end,
};
use crate::meta::{self, Meta, Payload};
use crate::store::{Incoming, KEY_MAX_BYTES, item_len_bytes};
use pummel_logic::protocol::Verb;

/// Longest line of a request for many keys; other lines have at most [`LINE_MAX_BYTES`].
const KEYS_LINE_MAX_BYTES: usize = 8 << 20;

/// A buffer that was needed once is kept up to this size.
const KEEP_BYTES: usize = 64 * 1024;

pub(super) const BAD_EXPIRY: &str = "CLIENT_ERROR invalid exptime argument";
const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument";
const BAD_DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";

/// Command of a request.
#[derive(Debug)]
pub(crate) enum Command<'a> {
    Read {
        verb: Verb,
        expiry_s: i32,
        keys: &'a [u8],
    },
    Store {
        verb: Verb,
        incoming: Incoming<'a>,
    },
    Spoiled,
    TooLarge {
        verb: Verb,
        key: &'a [u8],
    },
    Count {
        verb: Verb,
        key: &'a [u8],
        delta: u64,
    },
    /// Deletion of the item with this key.
    Delete(&'a [u8]),
    Touch {
        key: &'a [u8],
        expiry_s: i32,
    },
    /// Flush of all items after a delay; `None` where the delay is no number.
    Flush(Option<i32>),
    /// Statistics on a topic; an empty one asks for the general ones.
    Stats(&'a [u8]),
    /// A meta command: its whole line, and its value.
    Meta {
        meta: Meta,
        line: &'a [u8],
        payload: Payload<'a>,
    },
    Version,
    Quit,
    /// Command that is answered by this line, without the store.
    Say(&'static str),
}

/// Request of a text connection.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The first word of the request; `error` for a request that is not understood.
    pub(crate) verb: &'static str,
    pub(crate) command: Command<'a>,
    pub(crate) noreply: bool,
}

/// A storing command whose data block is awaited.
#[derive(Debug)]
struct Pending {
    command: PendingCommand,
    /// Bytes of the value.
    len: usize,
    /// Bytes of the block that are left to be skipped, where the value is too large.
    skip: Option<usize>,
}

impl Pending {
    /// A command whose block is kept if its item is within the limit, and otherwise skipped.
    fn new(command: PendingCommand, len: usize, fits: bool) -> Pending {
        Pending { command, len, skip: (!fits).then_some(len + 2) }
    }
}

/// The line of a storing command.
#[derive(Debug)]
enum PendingCommand {
    Store {
        verb: Verb,
        key: Vec<u8>,
        flags: u32,
        expiry_s: i32,
        cas: u64,
        noreply: bool,
    },
    /// Data block of an ms line.
    Meta(Vec<u8>),
}

/// The state of one connection's parser: the cut end of a line, or of a data block.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// A line of which the end is missing, or the one that the last step lent out.
    line: Vec<u8>,
    line_done: bool,
    block: Block,
}

/// A data block that is being received.
#[derive(Debug, Default)]
struct Block {
    /// The command that waits for the block.
    pending: Option<Pending>,
    /// The command of a complete data block, which the last step lent out.
    complete: Option<Pending>,
    bytes: Vec<u8>,
}

impl Parser {
    /// Takes the next step; what it returns does not depend on how the input is cut.
    pub(crate) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        item_max_bytes: usize,
    ) -> ParserStep<Request<'s>> {
        if self.line_done {
            self.line_done = false;
            self.line.clear();
            self.line.shrink_to(KEEP_BYTES);
        }
        self.block.forget_lent();
        if self.block.pending.is_none() {
            let line = match take_line(&mut self.line, input, line_max_bytes) {
                RequestLine::Need => return ParserStep::Need,
                RequestLine::TooLong => return ParserStep::Close,
                RequestLine::Whole(line) => line,
                RequestLine::Kept => {
                    self.line_done = true;
                    without_end(&self.line)
                }
            };
            match parse_line(line, item_max_bytes) {
                Parsed::Request(request) => return ParserStep::Request(request),
                Parsed::Pending(pending) => self.block.pending = Some(pending),
                Parsed::Close => return ParserStep::Close,
            }
        }
        match self.block.take(input) {
            Some(request) => ParserStep::Request(request),
            None => ParserStep::Need,
        }
    }
}

impl Block {
    fn forget_lent(&mut self) {
        if self.complete.take().is_some() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_BYTES);
        }
    }

    /// Takes the available bytes of the block; returns the request once it is complete.
    fn take<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Option<Request<'s>> {
        let pending = self.pending.as_mut()?;
        let needed = pending.len + 2;
        let mut whole: Option<&'i [u8]> = None;
        if let Some(left) = &mut pending.skip {
            let skipped = input.len().min(*left);
            *input = &input[skipped..];
            *left -= skipped;
            if *left > 0 {
                return None;
            }
        } else if self.bytes.is_empty() && input.len() >= needed {
            let (block, rest) = input.split_at(needed);
            *input = rest;
            whole = Some(block);
        } else {
            let taken = input.len().min(needed - self.bytes.len());
            self.bytes.extend_from_slice(&input[..taken]);
            *input = &input[taken..];
            if self.bytes.len() < needed {
                return None;
            }
        }
        let command = self.complete.insert(self.pending.take()?);
        Some(stored(command, whole.unwrap_or(&self.bytes)))
    }
}

/// The request of a storing command and its complete block.
fn stored<'a>(pending: &'a Pending, block: &'a [u8]) -> Request<'a> {
    let value = block.strip_suffix(b"\r\n");
    match &pending.command {
        PendingCommand::Meta(line) => {
            let payload = match value {
                _ if pending.skip.is_some() => Payload::TooLarge,
                Some(value) => Payload::Value(value),
                None => Payload::Spoiled,
            };
            let command = Command::Meta { meta: Meta::Set, line, payload };
            Request { verb: Meta::Set.name(), command, noreply: false }
        }
        &PendingCommand::Store { verb, ref key, flags, expiry_s, cas, noreply } => {
            let command = match value {
                _ if pending.skip.is_some() => Command::TooLarge { verb, key },
                Some(value) => {
                    Command::Store { verb, incoming: Incoming { key, flags, expiry_s, cas, value } }
                }
                None => Command::Spoiled,
            };
            Request { verb: verb.name(), command, noreply }
        }
    }
}

/// Longest line with this beginning, in bytes.
fn line_max_bytes(line: &[u8]) -> usize {
    let start = line.iter().position(|&byte| byte != b' ').unwrap_or(0);
    let many = [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|word| line[start..].starts_with(word));
    if many { KEYS_LINE_MAX_BYTES } else { LINE_MAX_BYTES }
}

enum Parsed<'a> {
    Request(Request<'a>),
    Pending(Pending),
    Close,
}

/// The words of a line; more than memcached looks at are counted, but not kept.
struct Words<'a> {
    words: [&'a [u8]; 8],
    count: usize,
    last: &'a [u8],
}

impl<'a> Words<'a> {
    fn of(line: &'a [u8]) -> Words<'a> {
        let mut words = Words { words: [&[]; 8], count: 0, last: &[] };
        for word in line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()) {
            if let Some(place) = words.words.get_mut(words.count) {
                *place = word;
            }
            words.count += 1;
            words.last = word;
        }
        words
    }

    fn noreply(&self) -> bool {
        self.last == b"noreply"
    }

    /// The key behind the command.
    fn key(&self) -> Result<&'a [u8], &'static str> {
        let key = self.words[1];
        if key.len() > KEY_MAX_BYTES { Err(BAD_FORMAT) } else { Ok(key) }
    }
}

fn parse_line<'a>(line: &'a [u8], item_max_bytes: usize) -> Parsed<'a> {
    let trimmed = line.trim_ascii_start();
    let first_len = trimmed.iter().position(|&byte| byte == b' ').unwrap_or(trimmed.len());
    let (first, rest) = trimmed.split_at(first_len);
    let verb = std::str::from_utf8(first).ok().and_then(Verb::from_name).filter(|verb| !verb.is_resp_only());
    if let Some(verb) = verb.filter(|verb| verb.reads()) {
        return Parsed::Request(parse_read(verb, rest));
    }
    if let Some(meta) = std::str::from_utf8(first).ok().and_then(Meta::from_name) {
        return parse_meta(meta, trimmed, item_max_bytes);
    }
    let words = Words::of(line);
    let plain = |verb, command| Parsed::Request(Request { verb, command, noreply: false });
    let changing =
        |verb, counts, parse: ParseChange<'a>| Parsed::Request(parse_change(verb, &words, counts, parse));
    match (verb, first) {
        (Some(verb), _) if verb.stores() => parse_store(verb, &words, item_max_bytes),
        (Some(Verb::Incr), _) => changing("incr", 3..=4, |words| parse_count(Verb::Incr, words)),
        (Some(Verb::Decr), _) => changing("decr", 3..=4, |words| parse_count(Verb::Decr, words)),
        (Some(Verb::Delete), _) => Parsed::Request(parse_delete(&words)),
        (Some(Verb::Touch), _) => changing("touch", 3..=4, parse_touch),
        (Some(Verb::Version), _) => plain("version", Command::Version),
        (_, b"flush_all") => changing("flush_all", 0..=3, parse_flush),
        (_, b"verbosity") => changing("verbosity", 2..=usize::MAX, parse_verbosity),
        (_, b"stats") => plain("stats", Command::Stats(words.words[1])),
        (_, b"quit") => Parsed::Request(Request { verb: "quit", command: Command::Quit, noreply: true }),
        (_, b"shutdown") => plain("error", Command::Say("ERROR: shutdown not enabled")),
        _ if words.count >= 2 && words.last.starts_with(b"HTTP/") => Parsed::Close,
        _ => plain("error", Command::Say(ERROR)),
    }
}

fn parse_read(verb: Verb, rest: &[u8]) -> Request<'_> {
    let rest = trim_spaces(rest);
    let request = |command| Request { verb: verb.name(), command, noreply: false };
    if rest.is_empty() {
        return request(Command::Say(ERROR));
    }
    if matches!(verb, Verb::Get | Verb::Gets) {
        return request(Command::Read { verb, expiry_s: 0, keys: rest });
    }
    let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    match signed(&rest[..end]) {
        Some(expiry_s) => request(Command::Read { verb, expiry_s, keys: &rest[end..] }),
        None => request(Command::Say(BAD_EXPIRY)),
    }
}

fn trim_spaces(mut bytes: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = bytes {
        bytes = rest;
    }
    bytes
}

fn parse_store<'a>(verb: Verb, words: &Words<'a>, item_max_bytes: usize) -> Parsed<'a> {
    let fields = if verb == Verb::Cas { 6 } else { 5 };
    let say =
        |line, noreply| Parsed::Request(Request { verb: verb.name(), command: Command::Say(line), noreply });
    if words.count != fields && words.count != fields + 1 {
        return say(ERROR, false);
    }
    let noreply = words.noreply();
    let [_, _, flags, expiry, len, cas, ..] = words.words;
    let cas = if verb == Verb::Cas { unsigned(cas) } else { Some(0) };
    let (Ok(key), Some(flags), Some(expiry_s), Some(len), Some(cas)) =
        (words.key(), unsigned(flags), signed(expiry), value_len(len), cas)
    else {
        return say(BAD_FORMAT, noreply);
    };
    let flags = flags as u32;
    let fits = item_len_bytes(key.len(), flags, len) <= item_max_bytes;
    let command = PendingCommand::Store { verb, key: key.to_vec(), flags, expiry_s, cas, noreply };
    Parsed::Pending(Pending::new(command, len, fits))
}

fn parse_meta(meta: Meta, line: &[u8], item_max_bytes: usize) -> Parsed<'_> {
    let request = |command| Parsed::Request(Request { verb: meta.name(), command, noreply: false });
    if meta != Meta::Set {
        return request(Command::Meta { meta, line, payload: Payload::None });
    }
    match meta::announced(line) {
        Ok((len, item_bytes)) => {
            let command = PendingCommand::Meta(line.to_vec());
            Parsed::Pending(Pending::new(command, len, item_bytes <= item_max_bytes))
        }
        Err(said) => request(Command::Say(said)),
    }
}

/// Reads the words of a change whose number of words is right; returns the line that answers wrong ones.
type ParseChange<'a> = fn(&Words<'a>) -> Result<Command<'a>, &'static str>;

/// Reads the line of a change other than a store, which has one of these numbers of words.
fn parse_change<'a>(
    verb: &'static str,
    words: &Words<'a>,
    counts: RangeInclusive<usize>,
    parse: ParseChange<'a>,
) -> Request<'a> {
    if !counts.contains(&words.count) {
        return Request { verb, command: Command::Say(ERROR), noreply: false };
    }
    let command = parse(words).unwrap_or_else(Command::Say);
    Request { verb, command, noreply: words.noreply() }
}

fn parse_count<'a>(verb: Verb, words: &Words<'a>) -> Result<Command<'a>, &'static str> {
    let key = words.key()?;
    Ok(Command::Count { verb, key, delta: unsigned(words.words[2]).ok_or(BAD_DELTA)? })
}

fn parse_delete<'a>(words: &Words<'a>) -> Request<'a> {
    let request = parse_change("delete", words, 2..=4, |words| {
        let (zero, noreply) = (words.words[2] == b"0", words.noreply());
        let allowed = match words.count {
            2 => true,
            3 => zero || noreply,
            _ => zero && noreply,
        };
        if allowed { Ok(Command::Delete(words.key()?)) } else { Err(BAD_DELETE) }
    });
    // The second of two words is the key, whatever it says.
    Request { noreply: request.noreply && words.count > 2, ..request }
}

fn parse_touch<'a>(words: &Words<'a>) -> Result<Command<'a>, &'static str> {
    let key = words.key()?;
    Ok(Command::Touch { key, expiry_s: signed(words.words[2]).ok_or(BAD_EXPIRY)? })
}

fn parse_flush<'a>(words: &Words<'a>) -> Result<Command<'a>, &'static str> {
    let plain = words.count == 1 + usize::from(words.noreply());
    let delay_s = if plain { Some(0) } else { signed(words.words[1]) };
    Ok(Command::Flush(delay_s))
}

fn parse_verbosity<'a>(words: &Words<'a>) -> Result<Command<'a>, &'static str> {
    unsigned(words.words[1]).map(|_| Command::Say("OK")).ok_or(BAD_FORMAT)
}
