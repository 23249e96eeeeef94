//! memcached's text protocol from the server's side: bytes become requests, requests become replies.
//!
//! Follows memcached's `protocol.txt` and, where that is silent, what memcached 1.6.18 does.

use super::fault::Faults;
use super::owed::Reply;
use super::store::{Incoming, Item, KEY_MAX_BYTES, Store};
use crate::time::{Nanos, SECOND};
use crate::wire::{Outcome, Verb};

/// What the server calls itself: the version of memcached whose behaviour it has, and who it is.
pub const VERSION: &str = "1.6.18-pummel";

/// A line that is longer and has no end yet closes the connection, unless it asks for many keys.
const LINE_MAX_BYTES: usize = 16 * 1024;

/// The same for lines that ask for many keys.
const KEYS_LINE_MAX_BYTES: usize = 8 << 20;

/// A buffer that was needed once is kept up to this size.
const KEEP_BYTES: usize = 64 * 1024;

const ERROR: &str = "ERROR";
const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
const BAD_EXPIRY: &str = "CLIENT_ERROR invalid exptime argument";
const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument";
const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk";
const BAD_DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
const NOT_A_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
/// The answer of [`Fault::ErrorEvery`](super::fault::Fault::ErrorEvery).
const ASKED_FOR_ERROR: &[u8] = b"SERVER_ERROR this request was chosen to fail\r\n";

/// What is asked.
#[derive(Debug)]
pub(super) enum Command<'a> {
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
    /// `None`: the delay is no number.
    Flush {
        delay_s: Option<i32>,
    },
    Stats {
        topic: &'a [u8],
    },
    Version,
    Quit,
    /// Whatever is stored, this line is the answer.
    Say(&'static str),
}

/// One request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// Its first word, `error` for one that is not understood.
    pub(super) verb: &'static str,
    pub(super) command: Command<'a>,
    pub(super) noreply: bool,
}

/// What the parser found.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// All input was taken; more is needed.
    Need,
    Request(Request<'a>),
    /// The connection is to be closed: the peer does not speak this protocol.
    HangUp,
}

/// A storing command whose data block is awaited.
#[derive(Debug)]
struct Pending {
    verb: Verb,
    key: Vec<u8>,
    flags: u32,
    expiry_s: i32,
    cas: u64,
    noreply: bool,
    /// Bytes of the value.
    len: usize,
    fate: Fate,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    /// Too large: the block is skipped; so many bytes are left.
    Skip(usize),
}

/// The state of one connection's parser: the cut end of a line, or of a data block.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// A line of which the end is missing, or the one that the last step lent out.
    line: Vec<u8>,
    line_done: bool,
    block: Block,
}

/// A data block on its way.
#[derive(Debug, Default)]
struct Block {
    /// The command that waits for it.
    pending: Option<Pending>,
    /// The command that has it; the last step lent it out.
    complete: Option<Pending>,
    bytes: Vec<u8>,
}

impl Parser {
    /// Takes the next step; what it returns does not depend on how the input is cut.
    pub(super) fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8], item_max_bytes: usize) -> Step<'s> {
        if self.line_done {
            self.line_done = false;
            self.line.clear();
            self.line.shrink_to(KEEP_BYTES);
        }
        self.block.forget_lent();
        if self.block.pending.is_none() {
            let line = match take_line(&mut self.line, input) {
                Line::Need => return Step::Need,
                Line::TooLong => return Step::HangUp,
                Line::Whole(line) => line,
                Line::Kept => {
                    self.line_done = true;
                    without_end(&self.line)
                }
            };
            match parse_line(line, item_max_bytes) {
                Parsed::Request(request) => return Step::Request(request),
                Parsed::Pending(pending) => self.block.pending = Some(pending),
                Parsed::HangUp => return Step::HangUp,
            }
        }
        match self.block.take(input) {
            Some(request) => Step::Request(request),
            None => Step::Need,
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

    /// Takes what there is of the block; the request once it is complete.
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
    let command = if pending.fate != Fate::Keep {
        Command::TooLarge { verb: pending.verb, key: &pending.key }
    } else if let Some(value) = block.strip_suffix(b"\r\n") {
        let Pending { flags, expiry_s, cas, .. } = *pending;
        Command::Store {
            verb: pending.verb,
            incoming: Incoming { key: &pending.key, flags, expiry_s, cas, value },
        }
    } else {
        Command::Spoiled
    };
    Request { verb: pending.verb.name(), command, noreply: pending.noreply }
}

enum Line<'i> {
    Need,
    TooLong,
    /// It lies in the input.
    Whole(&'i [u8]),
    /// It lies in the parser.
    Kept,
}

fn take_line<'i>(kept: &mut Vec<u8>, input: &mut &'i [u8]) -> Line<'i> {
    let limit = |line: &[u8]| {
        let start = line.iter().position(|&byte| byte != b' ').unwrap_or(0);
        let many =
            [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|word| line[start..].starts_with(word));
        if many { KEYS_LINE_MAX_BYTES } else { LINE_MAX_BYTES }
    };
    let end = input.iter().position(|&byte| byte == b'\n');
    if kept.is_empty()
        && let Some(end) = end
    {
        let (line, rest) = input.split_at(end + 1);
        *input = rest;
        return if end > LINE_MAX_BYTES && end > limit(line) {
            Line::TooLong
        } else {
            Line::Whole(without_end(line))
        };
    }
    let taken = end.map_or(input.len(), |end| end + 1);
    kept.extend_from_slice(&input[..taken]);
    *input = &input[taken..];
    let len = kept.len() - usize::from(end.is_some());
    if len > LINE_MAX_BYTES && len > limit(kept) {
        Line::TooLong
    } else if end.is_some() {
        Line::Kept
    } else {
        Line::Need
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

enum Parsed<'a> {
    Request(Request<'a>),
    Pending(Pending),
    HangUp,
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
    let verb = std::str::from_utf8(first).ok().and_then(Verb::from_name);
    if let Some(verb) = verb.filter(|verb| verb.reads()) {
        return Parsed::Request(parse_read(verb, rest));
    }
    let words = Words::of(line);
    let said = |line| Parsed::Request(Request { verb: "error", command: Command::Say(line), noreply: false });
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
            _ if words.count >= 2 && words.last.starts_with(b"HTTP/") => Parsed::HangUp,
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
    let fits = super::store::item_len_bytes(key.len(), flags, len) <= item_max_bytes;
    let fate = if fits { Fate::Keep } else { Fate::Skip(len + 2) };
    Parsed::Pending(Pending { verb, key: key.to_vec(), flags, expiry_s, cas, noreply, len, fate })
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

/// A decimal number; 64 bits.
fn unsigned(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    decimal(digits)
}

/// A decimal number with a sign. memcached reads 64 bits and keeps the lower 32.
fn signed(word: &[u8]) -> Option<i32> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let number = i64::try_from(decimal(digits)?).ok()?;
    Some(if negative { -number } else { number } as i32)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Figures of `stats` that the store does not know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauges {
    pub(super) started: Nanos,
    pub(super) unix_ns_at_zero: u64,
    pub(super) connections: u64,
}

/// Carries out `command` and writes its reply, also where it asked for none.
pub(super) fn answer(
    command: &Command<'_>,
    store: &mut Store,
    faults: &mut Faults,
    gauges: Gauges,
    now: Nanos,
    reply: &mut Reply,
) {
    let outcome = match *command {
        Command::Read { verb, expiry_s, keys } => {
            return read(verb, expiry_s, keys, store, faults, now, reply);
        }
        Command::Stats { topic } => return stats(topic, store, gauges, now, reply),
        Command::Quit => return,
        Command::Say(line) => return say(line, reply),
        Command::Version => {
            reply.push(b"VERSION ");
            return say(VERSION, reply);
        }
        Command::Spoiled => {
            store.put_spoiled();
            return say(BAD_CHUNK, reply);
        }
        Command::TooLarge { verb, key } => {
            store.put_too_large(verb, key, now);
            return say(TOO_LARGE, reply);
        }
        Command::Count { verb, key, delta } => match store.count(verb, key, delta, now) {
            Outcome::NotStored => return say(NOT_A_NUMBER, reply),
            outcome => outcome,
        },
        Command::Store { verb, incoming } => store.put(verb, &incoming, now),
        Command::Delete { key } => store.delete(key, now),
        Command::Touch { key, expiry_s } => store.touch(key, expiry_s, now),
        Command::Flush { delay_s: None } => {
            store.flush_refused();
            return say(BAD_EXPIRY, reply);
        }
        Command::Flush { delay_s: Some(delay_s) } => {
            store.flush(delay_s, now);
            Outcome::Ok
        }
    };
    match outcome {
        Outcome::Number(number) => {
            reply.push_decimal(number);
            reply.push(b"\r\n");
        }
        outcome => say(word_of(outcome), reply),
    }
}

/// The answer to a request that was chosen to fail.
pub(super) fn fail(reply: &mut Reply) {
    reply.push(ASKED_FOR_ERROR);
}

fn say(line: &str, reply: &mut Reply) {
    reply.push(line.as_bytes());
    reply.push(b"\r\n");
}

fn word_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Stored => "STORED",
        Outcome::NotStored => "NOT_STORED",
        Outcome::Exists => "EXISTS",
        Outcome::NotFound => "NOT_FOUND",
        Outcome::Deleted => "DELETED",
        Outcome::Touched => "TOUCHED",
        Outcome::Ok => "OK",
        Outcome::Hit
        | Outcome::Miss
        | Outcome::Stale
        | Outcome::Win
        | Outcome::Recaching
        | Outcome::Number(_)
        | Outcome::Error(_) => {
            unreachable!("the store does not answer a change with {outcome:?}")
        }
    }
}

fn read(
    verb: Verb,
    expiry_s: i32,
    keys: &[u8],
    store: &mut Store,
    faults: &mut Faults,
    now: Nanos,
    reply: &mut Reply,
) {
    for key in keys.split(|&byte| byte == b' ').filter(|key| !key.is_empty()) {
        if key.len() > KEY_MAX_BYTES {
            reply.clear();
            return say(BAD_FORMAT, reply);
        }
        let item = match verb {
            Verb::Get | Verb::Gets => store.read(key, now),
            _ => store.read_and_touch(key, expiry_s, now),
        };
        let Some(Item { value, flags, cas, .. }) = item.cloned() else { continue };
        let value = faults.tamper(store, key, value);
        reply.push(b"VALUE ");
        reply.push(key);
        reply.push(b" ");
        reply.push_decimal(u64::from(flags));
        reply.push(b" ");
        reply.push_decimal(value.len() as u64);
        if matches!(verb, Verb::Gets | Verb::Gats) {
            reply.push(b" ");
            reply.push_decimal(cas);
        }
        reply.push(b"\r\n");
        reply.push_value(value);
        reply.push(b"\r\n");
    }
    reply.push(b"END\r\n");
}

fn stats(topic: &[u8], store: &mut Store, gauges: Gauges, now: Nanos, reply: &mut Reply) {
    match topic {
        b"" => general_stats(store, gauges, now, reply),
        b"reset" => {
            store.reset_counts();
            say("RESET", reply);
        }
        b"settings" => {
            for (name, number) in [
                ("maxbytes", store.limits().memory_max_bytes),
                ("item_size_max", store.limits().item_max_bytes),
                ("num_threads", 1),
            ] {
                stat(name, number as u64, reply);
            }
            say("END", reply);
        }
        b"items" | b"slabs" | b"sizes" | b"conns" | b"extstore" | b"proxy" => say("END", reply),
        _ => say(ERROR, reply),
    }
}

fn stat(name: &str, number: u64, reply: &mut Reply) {
    reply.push(b"STAT ");
    reply.push(name.as_bytes());
    reply.push(b" ");
    reply.push_decimal(number);
    reply.push(b"\r\n");
}

/// The figures of memcached's `stats` that this server has, under memcached's names and in memcached's order.
fn general_stats(store: &Store, gauges: Gauges, now: Nanos, reply: &mut Reply) {
    let counts = store.counts;
    stat("uptime", now.saturating_sub(gauges.started) / SECOND, reply);
    stat("time", gauges.unix_ns_at_zero.saturating_add(now) / SECOND, reply);
    reply.push(b"STAT version ");
    say(VERSION, reply);
    for (name, number) in [
        ("pointer_size", u64::from(usize::BITS)),
        ("curr_connections", gauges.connections),
        ("total_connections", counts.total_connections),
        ("cmd_get", counts.cmd_get),
        ("cmd_set", counts.cmd_set),
        ("cmd_flush", counts.cmd_flush),
        ("cmd_touch", counts.cmd_touch),
        ("get_hits", counts.get_hits),
        ("get_misses", counts.get_misses),
        ("get_expired", counts.get_expired),
        ("get_flushed", counts.get_flushed),
        ("delete_misses", counts.delete_misses),
        ("delete_hits", counts.delete_hits),
        ("incr_misses", counts.incr_misses),
        ("incr_hits", counts.incr_hits),
        ("decr_misses", counts.decr_misses),
        ("decr_hits", counts.decr_hits),
        ("cas_misses", counts.cas_misses),
        ("cas_hits", counts.cas_hits),
        ("cas_badval", counts.cas_badval),
        ("touch_hits", counts.touch_hits),
        ("touch_misses", counts.touch_misses),
        ("store_too_large", counts.store_too_large),
        ("bytes_read", counts.bytes_read),
        ("bytes_written", counts.bytes_written),
        ("limit_maxbytes", store.limits().memory_max_bytes as u64),
        ("threads", 1),
        ("bytes", store.len_bytes() as u64),
        ("curr_items", store.len() as u64),
        ("total_items", counts.total_items),
        ("evictions", counts.evictions),
    ] {
        stat(name, number, reply);
    }
    say("END", reply);
}
