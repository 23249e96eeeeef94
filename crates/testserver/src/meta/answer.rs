//! memcached's meta commands (mg, ms, md, ma, mn, me) from the server's side: lines of the text protocol become
//! replies.
//!
//! Follows memcached's `protocol.txt` and, where that is silent, what memcached 1.6.18 does.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::request::{Meta, Payload, words};
use crate::context::Context;
use crate::lines::{BAD_CHUNK, BAD_FORMAT, ERROR, NOT_A_NUMBER, TOO_LARGE, say, signed, unsigned};
use crate::owed::ReplyBuffer;
use crate::store::{Incoming, KEY_MAX_BYTES, MetaRead, MetaReadOptions, item_len_bytes};
use pummel_logic::protocol::{Outcome, Verb, lines};
use pummel_logic::time::{NEVER, Nanos, SECOND};

/// Longest opaque, with its letter.
const OPAQUE_MAX_BYTES: usize = 32;

const BAD_KEY: &str = "CLIENT_ERROR error decoding key";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
const BAD_FLAG: &str = "CLIENT_ERROR invalid flag";
const BAD_OR_TWICE: &str = "CLIENT_ERROR invalid or duplicate flag";
const TWICE: &str = "CLIENT_ERROR duplicate flag";
const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long";
const MODE_LENGTH: &str = "CLIENT_ERROR incorrect length for M token";
const STORE_MODE: &str = "CLIENT_ERROR invalid mode for ms M token";
const COUNT_MODE: &str = "CLIENT_ERROR invalid mode for ma M token";

/// Carries out the command of `line` and writes its reply.
pub(crate) fn answer(
    meta: Meta,
    line: &[u8],
    payload: Payload<'_>,
    context: &mut Context<'_>,
    reply: &mut ReplyBuffer,
) {
    if meta == Meta::Noop {
        return say("MN", reply);
    }
    let request = match MetaRequest::read(meta, line) {
        Ok(request) => request,
        Err(line) => return say(line, reply),
    };
    match meta {
        Meta::Get => request.get(context, reply),
        Meta::Set => request.set(payload, context, reply),
        Meta::Delete => request.delete(context, reply),
        Meta::Arithmetic => request.count(context, reply),
        Meta::Debug | Meta::Noop => request.debug(context, reply),
    }
}

/// The parsed line of a meta command.
#[derive(Default)]
struct MetaRequest<'a> {
    /// The key as it was sent.
    sent: &'a [u8],
    /// Key of the item.
    key: Vec<u8>,
    /// The flags: all words after the key, and after the length of a value.
    flags: Vec<&'a [u8]>,
    encoded: bool,
    quiet: bool,
    wants_value: bool,
    options: MetaReadOptions,
    cas: Option<u64>,
    client_flags: u32,
    invalidate: bool,
    mode: Option<u8>,
    delta: u64,
    initial: u64,
}

impl<'a> MetaRequest<'a> {
    fn read(meta: Meta, line: &'a [u8]) -> Result<MetaRequest<'a>, &'static str> {
        let mut words = words(line).skip(1);
        let none = if meta == Meta::Debug { BAD_FORMAT } else { ERROR };
        let sent = words.next().ok_or(none)?;
        if sent.len() > KEY_MAX_BYTES {
            return Err(BAD_FORMAT);
        }
        if meta == Meta::Set {
            words.next();
        }
        let (key, flags) = (sent.to_vec(), words.collect());
        let mut request = MetaRequest { sent, key, flags, delta: 1, ..MetaRequest::default() };
        request.read_flags(meta)?;
        if request.encoded {
            request.key = BASE64.decode(sent).ok().filter(|key| !key.is_empty()).ok_or(BAD_KEY)?;
        }
        Ok(request)
    }

    fn read_flags(&mut self, meta: Meta) -> Result<(), &'static str> {
        let joint = matches!(meta, Meta::Delete | Meta::Arithmetic);
        let mut seen = [false; 128];
        for at in 0..self.flags.len() {
            let (&letter, token) = self.flags[at].split_first().ok_or(BAD_FLAG)?;
            let seen =
                seen.get_mut(usize::from(letter)).ok_or(if joint { BAD_OR_TWICE } else { BAD_FLAG })?;
            if std::mem::replace(seen, true) {
                return Err(if joint { BAD_OR_TWICE } else { TWICE });
            }
            self.read_flag(meta, letter, token).map_err(|line| match line {
                BAD_FLAG | BAD_TOKEN if joint => BAD_OR_TWICE,
                line => line,
            })?;
        }
        Ok(())
    }

    fn read_flag(&mut self, meta: Meta, letter: u8, token: &[u8]) -> Result<(), &'static str> {
        let number = || unsigned(token).ok_or(BAD_TOKEN);
        let seconds = || signed(token).ok_or(BAD_TOKEN);
        match (letter, meta) {
            (b'b', _) => self.encoded = true,
            (b'q', _) => self.quiet = true,
            (b'k', _) => {}
            (b'O', _) if token.len() >= OPAQUE_MAX_BYTES => return Err(LONG_OPAQUE),
            (b'O', _) => {}
            (b'T', Meta::Get | Meta::Set | Meta::Delete | Meta::Arithmetic) => {
                self.options.expiry_s = Some(seconds()?)
            }
            (b'v', Meta::Get | Meta::Arithmetic) => self.wants_value = true,
            (b'N', Meta::Get | Meta::Arithmetic) => self.options.vivify_s = Some(seconds()?),
            (b'R', Meta::Get) => self.options.recache_s = Some(seconds()?),
            (b'f' | b's' | b'h' | b'l', Meta::Get) => {}
            (b't', Meta::Get | Meta::Arithmetic) => {}
            (b'c', Meta::Get | Meta::Set | Meta::Arithmetic) => {}
            (b'C', Meta::Set | Meta::Delete | Meta::Arithmetic) => self.cas = Some(number()?),
            (b'I', Meta::Set | Meta::Delete) => self.invalidate = true,
            (b'F', Meta::Set) => self.client_flags = unsigned(token).ok_or(BAD_FORMAT)? as u32,
            (b'M', Meta::Set | Meta::Arithmetic) => match *token {
                [mode] => self.mode = Some(mode),
                _ => return Err(MODE_LENGTH),
            },
            (b'D', Meta::Arithmetic) => self.delta = number()?,
            (b'J', Meta::Arithmetic) => self.initial = number()?,
            _ => return Err(BAD_FLAG),
        }
        Ok(())
    }

    fn get(&self, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
        let Some(meta_read) = context.store.meta_read(&self.key, &self.options, context.now) else {
            if !self.quiet {
                self.end(b"EN", None, reply);
            }
            return;
        };
        let value = meta_read.item.value.clone();
        let value = self.wants_value.then(|| context.faults.tamper(context.store, &self.key, value));
        match &value {
            Some(value) => {
                reply.push(b"VA ");
                reply.push_decimal(value.len() as u64);
            }
            None => reply.push(b"HD"),
        }
        self.push_item_flags(&meta_read, context.now, reply);
        for (set, letter) in
            [(meta_read.recaching, b" Z"), (meta_read.item.marks.stale, b" X"), (meta_read.won, b" W")]
        {
            if set {
                reply.push(letter);
            }
        }
        reply.push(b"\r\n");
        if let Some(value) = value {
            reply.push_value(value);
            reply.push(b"\r\n");
        }
    }

    /// Writes the fields that a read asked for, in the order in which it asked.
    fn push_item_flags(&self, meta_read: &MetaRead, now: Nanos, reply: &mut ReplyBuffer) {
        let item = &meta_read.item;
        for flag in &self.flags {
            let number = match flag[0] {
                b'f' => u64::from(item.flags),
                b'c' => item.cas,
                b's' => item.value.len() as u64,
                b'h' => u64::from(meta_read.read_before),
                b'l' => now.saturating_sub(meta_read.last_read) / SECOND,
                b't' => {
                    push_remaining(item.expires, now, reply);
                    continue;
                }
                b'k' => {
                    push_key(item.key(), item.marks.key_encoded || !lines::is_key(item.key()), reply);
                    continue;
                }
                b'O' => {
                    push_word(flag, reply);
                    continue;
                }
                _ => continue,
            };
            reply.push(&[b' ', flag[0]]);
            reply.push_decimal(number);
        }
    }

    fn set(&self, payload: Payload<'_>, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
        let verb = match (self.mode, self.cas) {
            (None | Some(b'S'), None) => Verb::Set,
            (None | Some(b'S'), Some(_)) => Verb::Cas,
            (Some(b'E'), _) => Verb::Add,
            (Some(b'R'), _) => Verb::Replace,
            (Some(b'A'), _) => Verb::Append,
            (Some(b'P'), _) => Verb::Prepend,
            _ => return say(STORE_MODE, reply),
        };
        let value = match payload {
            Payload::Value(value) => value,
            Payload::TooLarge => {
                context.store.put_too_large(Verb::Set, &self.key, context.now);
                return say(TOO_LARGE, reply);
            }
            Payload::Spoiled | Payload::None => {
                context.store.counts.cmd_set += 1;
                return say(BAD_CHUNK, reply);
            }
        };
        let incoming = Incoming {
            key: &self.key,
            flags: self.client_flags,
            expiry_s: self.options.expiry_s.unwrap_or(0),
            cas: self.cas.unwrap_or(0),
            value,
        };
        let outcome = match (verb, self.invalidate) {
            (Verb::Cas, true) => context.store.put_stale(&incoming, context.now),
            _ => context.store.put(verb, &incoming, context.now),
        };
        if self.encoded && outcome == Outcome::Stored {
            context.store.mark_key_encoded(&self.key);
        }
        let cas = if outcome == Outcome::Stored { context.store.last_cas() } else { 0 };
        let code = match outcome {
            Outcome::Stored if self.quiet => return,
            Outcome::Stored => b"HD",
            Outcome::Exists => b"EX",
            Outcome::NotFound => b"NF",
            _ => b"NS",
        };
        self.end(code, Some(Figures { cas, expires: NEVER, now: context.now }), reply);
    }

    fn delete(&self, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
        let outcome = match self.invalidate {
            true => context.store.invalidate(&self.key, self.cas, self.options.expiry_s, context.now),
            false => context.store.delete(&self.key, self.cas, context.now),
        };
        let code = match outcome {
            Outcome::Deleted if self.quiet => return,
            Outcome::Deleted => b"HD",
            Outcome::Exists => {
                context.store.counts.delete_misses += 1;
                b"EX"
            }
            _ => b"NF",
        };
        self.end(code, None, reply);
    }

    fn count(&self, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
        let verb = match self.mode {
            None | Some(b'I' | b'+') => Verb::Incr,
            Some(b'D' | b'-') => Verb::Decr,
            _ => return say(COUNT_MODE, reply),
        };
        let wanted = self.cas;
        let now = context.now;
        let store = &mut *context.store;
        let outcome = match self.options.vivify_s {
            Some(expiry_s) => {
                store.count_or_make(verb, &self.key, self.delta, wanted, self.initial, expiry_s, now)
            }
            None => store.count(verb, &self.key, self.delta, wanted, now),
        };
        let number = match outcome {
            Outcome::Number(number) => number,
            Outcome::Exists => return self.end(b"EX", None, reply),
            Outcome::NotFound => return self.end(b"NF", None, reply),
            _ => return say(NOT_A_NUMBER, reply),
        };
        if let Some(expiry_s) = self.options.expiry_s {
            store.set_expiry(&self.key, expiry_s, now);
        }
        if self.quiet {
            return;
        }
        let (cas, expires) = store.peek(&self.key, now).map_or((0, NEVER), |item| (item.cas, item.expires));
        let figures = Some(Figures { cas, expires, now });
        if !self.wants_value {
            return self.end(b"HD", figures, reply);
        }
        let digits = number.to_string();
        let head = format!("VA {}", digits.len());
        self.end(head.as_bytes(), figures, reply);
        say(&digits, reply);
    }

    fn debug(&self, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
        let now = context.now;
        context.store.counts.cmd_meta += 1;
        let Some(item) = context.store.peek(&self.key, now) else { return say("EN", reply) };
        reply.push(b"ME ");
        if lines::is_key(item.key()) {
            reply.push(item.key());
        } else {
            reply.push(BASE64.encode(item.key()).as_bytes());
        }
        let exp = if item.expires == NEVER { -1 } else { remaining_s(item.expires, now) as i64 };
        let last = now.saturating_sub(item.last_read) / SECOND;
        let fetched = if item.marks.read { "yes" } else { "no" };
        let size = item_len_bytes(item.key().len(), item.flags, item.value.len());
        say(&format!(" exp={exp} la={last} cas={} fetch={fetched} cls=1 size={size}", item.cas), reply);
    }

    /// Writes a line of a code and the flags to be repeated, among them the figures of an item where there is one.
    fn end(&self, code: &[u8], figures: Option<Figures>, reply: &mut ReplyBuffer) {
        reply.push(code);
        for flag in &self.flags {
            match (flag[0], figures) {
                (b'O', _) => push_word(flag, reply),
                (b'k', _) => push_sent_key(self.sent, self.encoded, reply),
                (b'c', Some(figures)) => {
                    reply.push(b" c");
                    reply.push_decimal(figures.cas);
                }
                (b't', Some(figures)) => push_remaining(figures.expires, figures.now, reply),
                _ => {}
            }
        }
        reply.push(b"\r\n");
    }
}

/// Figures of an item that are repeated where they were asked for.
#[derive(Clone, Copy)]
struct Figures {
    cas: u64,
    expires: Nanos,
    now: Nanos,
}

fn push_word(word: &[u8], reply: &mut ReplyBuffer) {
    reply.push(b" ");
    reply.push(word);
}

fn push_sent_key(sent: &[u8], encoded: bool, reply: &mut ReplyBuffer) {
    reply.push(b" k");
    reply.push(sent);
    if encoded {
        reply.push(b" b");
    }
}

fn push_key(key: &[u8], encoded: bool, reply: &mut ReplyBuffer) {
    if encoded {
        push_sent_key(BASE64.encode(key).as_bytes(), true, reply);
    } else {
        push_sent_key(key, false, reply);
    }
}

fn push_remaining(expires: Nanos, now: Nanos, reply: &mut ReplyBuffer) {
    if expires == NEVER {
        reply.push(b" t-1");
    } else {
        reply.push(b" t");
        reply.push_decimal(remaining_s(expires, now));
    }
}

/// The remaining time in seconds, rounded up.
fn remaining_s(expires: Nanos, now: Nanos) -> u64 {
    expires.saturating_sub(now).div_ceil(SECOND)
}
