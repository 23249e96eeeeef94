//! memcached's text protocol from the server's side: bytes become requests.
//!
//! Follows memcached's `protocol.txt` and, where that is silent, what memcached 1.6.18 does.

use crate::contract::ParserStep;
use crate::lines::{
    BAD_FORMAT, ERROR, LINE_MAX_BYTES, RequestLine, signed, take_line, unsigned, without_end,
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
    Delete {
        key: &'a [u8],
    },
    Touch {
        key: &'a [u8],
        expiry_s: i32,
    },
    /// Flush of all items after a delay; `None` where the delay is no number.
    Flush {
        delay_s: Option<i32>,
    },
    Stats {
        topic: &'a [u8],
    },
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
    what: What,
    /// Bytes of the value.
    len: usize,
    fate: Fate,
}

/// Purpose of a data block.
#[derive(Debug)]
enum What {
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

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    /// The value is too large and its block is skipped; this number of bytes is left.
    Skip(usize),
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
        if let Fate::Skip(left) = &mut pending.fate {
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
    match &pending.what {
        What::Meta(line) => {
            let payload = match value {
                _ if pending.fate != Fate::Keep => Payload::TooLarge,
                Some(value) => Payload::Value(value),
                None => Payload::Spoiled,
            };
            let command = Command::Meta { meta: Meta::Set, line, payload };
            Request { verb: Meta::Set.name(), command, noreply: false }
        }
        &What::Store { verb, ref key, flags, expiry_s, cas, noreply } => {
            let command = match value {
                _ if pending.fate != Fate::Keep => Command::TooLarge { verb, key },
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
}

fn parse_line(line: &[u8], item_max_bytes: usize) -> Parsed<'_> {
    let trimmed = line.trim_ascii_start();
    let first_len = trimmed.iter().position(|&byte| byte == b' ').unwrap_or(trimmed.len());
    let (first, rest) = trimmed.split_at(first_len);
    let verb = std::str::from_utf8(first).ok().and_then(Verb::from_name).filter(|verb| !verb.is_resp_only());
    if let Some(verb) = verb.filter(|verb| verb.reads()) {
        return Parsed::Request(parse_read(verb, rest));
    }
    let words = Words::of(line);
    let said = |line| Parsed::Request(Request { verb: "error", command: Command::Say(line), noreply: false });
    if let Some(meta) = Meta::from_word(first) {
        return parse_meta(meta, trimmed, item_max_bytes);
    }
    match verb {
        Some(verb) if verb.stores() => parse_store(verb, &words, item_max_bytes),
        Some(verb @ (Verb::Incr | Verb::Decr)) => Parsed::Request(parse_count(verb, &words)),
        Some(Verb::Delete) => Parsed::Request(parse_delete(&words)),
        Some(Verb::Touch) => Parsed::Request(parse_touch(&words)),
        Some(Verb::Version) => {
            Parsed::Request(Request { verb: "version", command: Command::Version, noreply: false })
        }
        _ => match first {
            b"flush_all" => Parsed::Request(parse_flush(&words)),
            b"verbosity" => Parsed::Request(parse_verbosity(&words)),
            b"stats" => {
                let command = Command::Stats { topic: words.words[1] };
                Parsed::Request(Request { verb: "stats", command, noreply: false })
            }
            b"quit" => Parsed::Request(Request { verb: "quit", command: Command::Quit, noreply: true }),
            b"shutdown" => said("ERROR: shutdown not enabled"),
            _ if words.count >= 2 && words.last.starts_with(b"HTTP/") => Parsed::Close,
            _ => said(ERROR),
        },
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
    let [_, key, flags, expiry, len, cas, ..] = words.words;
    if key.len() > KEY_MAX_BYTES {
        return say(BAD_FORMAT, noreply);
    }
    let cas = if verb == Verb::Cas { unsigned(cas) } else { Some(0) };
    let (Some(flags), Some(expiry_s), Some(len), Some(cas)) =
        (unsigned(flags), signed(expiry), signed(len), cas)
    else {
        return say(BAD_FORMAT, noreply);
    };
    if !(0..=i32::MAX - 2).contains(&len) {
        return say(BAD_FORMAT, noreply);
    }
    let (flags, len) = (flags as u32, len as usize);
    let fits = item_len_bytes(key.len(), flags, len) <= item_max_bytes;
    let fate = if fits { Fate::Keep } else { Fate::Skip(len + 2) };
    let what = What::Store { verb, key: key.to_vec(), flags, expiry_s, cas, noreply };
    Parsed::Pending(Pending { what, len, fate })
}

fn parse_meta(meta: Meta, line: &[u8], item_max_bytes: usize) -> Parsed<'_> {
    let request = |command| Parsed::Request(Request { verb: meta.name(), command, noreply: false });
    if meta != Meta::Set {
        return request(Command::Meta { meta, line, payload: Payload::None });
    }
    match meta::announced(line) {
        Ok((len, item_bytes)) => {
            let fate = if item_bytes <= item_max_bytes { Fate::Keep } else { Fate::Skip(len + 2) };
            Parsed::Pending(Pending { what: What::Meta(line.to_vec()), len, fate })
        }
        Err(said) => request(Command::Say(said)),
    }
}

fn parse_count<'a>(verb: Verb, words: &Words<'a>) -> Request<'a> {
    let request = |command, noreply| Request { verb: verb.name(), command, noreply };
    if !(3..=4).contains(&words.count) {
        return request(Command::Say(ERROR), false);
    }
    let noreply = words.noreply();
    let key = words.words[1];
    if key.len() > KEY_MAX_BYTES {
        return request(Command::Say(BAD_FORMAT), noreply);
    }
    match unsigned(words.words[2]) {
        Some(delta) => request(Command::Count { verb, key, delta }, noreply),
        None => request(Command::Say(BAD_DELTA), noreply),
    }
}

fn parse_delete<'a>(words: &Words<'a>) -> Request<'a> {
    let request = |command, noreply| Request { verb: "delete", command, noreply };
    if !(2..=4).contains(&words.count) {
        return request(Command::Say(ERROR), false);
    }
    let noreply = words.count > 2 && words.noreply();
    let zero = words.words[2] == b"0";
    let allowed = match words.count {
        2 => true,
        3 => zero || noreply,
        _ => zero && noreply,
    };
    let key = words.words[1];
    if !allowed {
        request(Command::Say(BAD_DELETE), noreply)
    } else if key.len() > KEY_MAX_BYTES {
        request(Command::Say(BAD_FORMAT), noreply)
    } else {
        request(Command::Delete { key }, noreply)
    }
}

fn parse_touch<'a>(words: &Words<'a>) -> Request<'a> {
    let request = |command, noreply| Request { verb: "touch", command, noreply };
    if !(3..=4).contains(&words.count) {
        return request(Command::Say(ERROR), false);
    }
    let noreply = words.noreply();
    let key = words.words[1];
    if key.len() > KEY_MAX_BYTES {
        return request(Command::Say(BAD_FORMAT), noreply);
    }
    match signed(words.words[2]) {
        Some(expiry_s) => request(Command::Touch { key, expiry_s }, noreply),
        None => request(Command::Say(BAD_EXPIRY), noreply),
    }
}

fn parse_flush<'a>(words: &Words<'a>) -> Request<'a> {
    let request = |command, noreply| Request { verb: "flush_all", command, noreply };
    if words.count > 3 {
        return request(Command::Say(ERROR), false);
    }
    let noreply = words.noreply();
    let plain = words.count == 1 + usize::from(noreply);
    let delay_s = if plain { Some(0) } else { signed(words.words[1]) };
    request(Command::Flush { delay_s }, noreply)
}

fn parse_verbosity<'a>(words: &Words<'a>) -> Request<'a> {
    let request = |line, noreply| Request { verb: "verbosity", command: Command::Say(line), noreply };
    if words.count < 2 {
        return request(ERROR, false);
    }
    let line = if unsigned(words.words[1]).is_some() { "OK" } else { BAD_FORMAT };
    request(line, words.noreply())
}
