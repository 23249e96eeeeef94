//! memcached's binary protocol from the server's side: requests are carried out and become packets.

use super::request::{BinaryCommand, Body, CommandKind, HEADER_BYTES, PacketHeader, Request};
use crate::context::Context;
use crate::contract::{ASKED_FOR_ERROR, VERSION};
use crate::owed::ReplyBuffer;
use crate::stats::figures;
use crate::store::{Incoming, StoreCounts, StoredItem};
use pummel_logic::protocol::{Outcome, Verb};

/// First byte of a response.
const RESPONSE: u8 = 0x81;

/// An expiry of an increment that makes no item where there is none.
const MAKE_NOTHING: u32 = u32::MAX;

/// A status that is not success, and the words that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status(u16, &'static str);

const NOT_FOUND: Status = Status(0x01, "Not found");
const EXISTS: Status = Status(0x02, "Data exists for key.");
const TOO_LARGE: Status = Status(0x03, "Too large.");
const INVALID: Status = Status(0x04, "Invalid arguments");
const NOT_STORED: Status = Status(0x05, "Not stored.");
const NOT_A_NUMBER: Status = Status(0x06, "Non-numeric server-side value for incr or decr");
const SHUT_OUT: Status = Status(0x20, "Auth failure.");
const UNKNOWN: Status = Status(0x81, "Unknown command");
const FAILED: Status = Status(0x84, ASKED_FOR_ERROR);

/// Carries out `request` and writes its reply, if it has one.
pub(crate) fn answer(request: &Request<'_>, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
    let out = Out { header: request.header, reply };
    let (extras, key, value) = match request.body {
        Body::Whole { extras, key, value } => (extras, key, value),
        Body::TooLarge { key } => return too_large(request, key, context, out),
        Body::Broken => {
            context.session.is_closing = true;
            return out.fail(UNKNOWN);
        }
    };
    let Some(command) = request.command else { return out.fail(UNKNOWN) };
    let open = matches!(
        command.kind,
        CommandKind::SaslList | CommandKind::SaslAuth | CommandKind::SaslStep | CommandKind::Version
    );
    if context.needs_login() && !open {
        context.session.is_closing = true;
        return out.fail(SHUT_OUT);
    }
    if !is_well_formed(command, extras, key, value) {
        context.session.is_closing = true;
        return out.fail(INVALID);
    }
    execute(command, extras, key, value, context, out);
}

/// Writes the answer to a request that was chosen to fail.
pub(crate) fn fail(request: &Request<'_>, reply: &mut ReplyBuffer) {
    Out { header: request.header, reply }.fail(FAILED);
}

/// Writes a packet that answers a request of another dialect.
pub(crate) fn foreign(reply: &mut ReplyBuffer) {
    let header =
        PacketHeader { opcode: 0, key_bytes: 0, extras_bytes: 0, body_bytes: 0, opaque: [0; 4], cas: 0 };
    Out { header, reply }.fail(UNKNOWN);
}

/// Writer of the reply to one request.
struct Out<'r> {
    header: PacketHeader,
    reply: &'r mut ReplyBuffer,
}

impl Out<'_> {
    fn head(&mut self, status: u16, lengths: [usize; 3], cas: u64) {
        let [extras_bytes, key_bytes, value_bytes] = lengths;
        let mut head = [0; HEADER_BYTES];
        head[0] = RESPONSE;
        head[1] = self.header.opcode;
        head[2..4].copy_from_slice(&(key_bytes as u16).to_be_bytes());
        head[4] = extras_bytes as u8;
        head[6..8].copy_from_slice(&status.to_be_bytes());
        head[8..12].copy_from_slice(&((extras_bytes + key_bytes + value_bytes) as u32).to_be_bytes());
        head[12..16].copy_from_slice(&self.header.opaque);
        head[16..24].copy_from_slice(&cas.to_be_bytes());
        self.reply.push(&head);
    }

    /// Success, with these bytes.
    fn done(mut self, body: &[u8], cas: u64) {
        self.head(0, [0, 0, body.len()], cas);
        self.reply.push(body);
    }

    fn fail(mut self, Status(status, words): Status) {
        self.head(status, [0, 0, words.len()], 0);
        self.reply.push(words.as_bytes());
    }
}

/// Whether the request has the parts that its command needs, and no others.
fn is_well_formed(command: BinaryCommand, extras: &[u8], key: &[u8], value: &[u8]) -> bool {
    let parts = (extras.len(), !key.is_empty(), !value.is_empty());
    match command.kind {
        CommandKind::Get | CommandKind::Delete => matches!(parts, (0, true, false)),
        CommandKind::GetAndTouch | CommandKind::Touch => matches!(parts, (4, true, false)),
        CommandKind::Store(Verb::Append | Verb::Prepend) => matches!(parts, (0, true, _)),
        CommandKind::Store(_) => matches!(parts, (8, true, _)),
        CommandKind::Count(_) => matches!(parts, (20, true, false)),
        CommandKind::Flush => matches!(parts, (0 | 4, false, false)),
        CommandKind::Noop | CommandKind::Version | CommandKind::Quit | CommandKind::SaslList => {
            matches!(parts, (0, false, false))
        }
        CommandKind::Stat => matches!(parts, (0, _, false)),
        CommandKind::SaslAuth | CommandKind::SaslStep => matches!(parts, (0, true, _)),
    }
}

fn execute(
    command: BinaryCommand,
    extras: &[u8],
    key: &[u8],
    value: &[u8],
    context: &mut Context<'_>,
    out: Out<'_>,
) {
    match command.kind {
        CommandKind::Get | CommandKind::GetAndTouch | CommandKind::Touch => {
            read(command, extras, key, context, out)
        }
        CommandKind::Store(verb) => put(verb, command.quiet, [extras, key, value], context, out),
        CommandKind::Count(verb) => count(verb, command.quiet, extras, key, context, out),
        CommandKind::Delete => {
            let wanted = Some(out.header.cas).filter(|cas| *cas != 0);
            match context.store.delete(key, wanted, context.now) {
                Outcome::Deleted if command.quiet => {}
                Outcome::Deleted => out.done(&[], 0),
                Outcome::Exists => out.fail(EXISTS),
                _ => out.fail(NOT_FOUND),
            }
        }
        CommandKind::Flush => {
            context.store.flush(number(extras) as i32, context.now);
            if !command.quiet {
                out.done(&[], 0);
            }
        }
        CommandKind::Noop => out.done(&[], 0),
        CommandKind::Version => out.done(VERSION.as_bytes(), 0),
        CommandKind::Stat => stat(key, context, out),
        CommandKind::Quit => {
            context.session.is_closing = true;
            if !command.quiet {
                out.done(&[], 0);
            }
        }
        CommandKind::SaslList | CommandKind::SaslAuth | CommandKind::SaslStep if context.login.is_none() => {
            out.fail(UNKNOWN)
        }
        CommandKind::SaslList => out.done(b"PLAIN", 0),
        CommandKind::SaslAuth | CommandKind::SaslStep => {
            // RFC 4616: an identity to act as, which is ignored, then user and password, apart by zero bytes.
            let mut parts = value.splitn(3, |&byte| byte == 0).skip(1);
            let (user, password) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            if key == b"PLAIN" && context.try_login(user, password) {
                out.done(b"Authenticated", 0);
            } else {
                out.fail(SHUT_OUT);
            }
        }
    }
}

/// The number that some extras are; 0 where there are none.
fn number(extras: &[u8]) -> u32 {
    extras.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn read(command: BinaryCommand, extras: &[u8], key: &[u8], context: &mut Context<'_>, mut out: Out<'_>) {
    let now = context.now;
    let store = &mut *context.store;
    let item = match command.kind {
        CommandKind::Get => store.read(key, now),
        _ => store.read_and_touch(key, number(extras) as i32, now),
    };
    let shown_key = if command.with_key { key } else { &[] };
    let Some(StoredItem { value, flags, cas, .. }) = item.cloned() else {
        if command.quiet {
            return;
        }
        if !command.with_key {
            return out.fail(NOT_FOUND);
        }
        out.head(NOT_FOUND.0, [0, key.len(), 0], 0);
        return out.reply.push(key);
    };
    if command.kind == CommandKind::Touch {
        out.head(0, [4, 0, 0], cas);
        return out.reply.push(&flags.to_be_bytes());
    }
    let value = context.faults.tamper(store, key, value);
    out.head(0, [4, shown_key.len(), value.len()], cas);
    out.reply.push(&flags.to_be_bytes());
    out.reply.push(shown_key);
    out.reply.push_value(value);
}

fn put(verb: Verb, quiet: bool, parts: [&[u8]; 3], context: &mut Context<'_>, out: Out<'_>) {
    let [extras, key, value] = parts;
    let cas = out.header.cas;
    let flags = number(extras);
    let expiry_s = number(extras.get(4..).unwrap_or_default()) as i32;
    let is_cas = cas != 0 && matches!(verb, Verb::Set | Verb::Replace);
    if !context.store.fits(key.len(), flags, value.len()) {
        context.store.forget_replaced(Verb::Set, key, context.now);
        return out.fail(TOO_LARGE);
    }
    let incoming = Incoming { key, flags, expiry_s, cas, value };
    match context.store.put(if is_cas { Verb::Cas } else { verb }, &incoming, context.now) {
        Outcome::Stored if quiet => {}
        Outcome::Stored => out.done(&[], context.store.last_cas()),
        Outcome::Exists => out.fail(EXISTS),
        Outcome::NotFound => out.fail(NOT_FOUND),
        _ => out.fail(match verb {
            Verb::Add => EXISTS,
            Verb::Replace => NOT_FOUND,
            _ => NOT_STORED,
        }),
    }
}

fn too_large(request: &Request<'_>, key: &[u8], context: &mut Context<'_>, out: Out<'_>) {
    if context.needs_login() {
        context.session.is_closing = true;
        return out.fail(SHUT_OUT);
    }
    let kind = request.command.map(|command| command.kind);
    if let Some(CommandKind::Store(Verb::Set | Verb::Add | Verb::Replace)) = kind {
        context.store.forget_replaced(Verb::Set, key, context.now);
    }
    out.fail(TOO_LARGE);
}

fn count(verb: Verb, quiet: bool, extras: &[u8], key: &[u8], context: &mut Context<'_>, out: Out<'_>) {
    let long = |from: usize| {
        extras
            .get(from..)
            .and_then(|bytes| bytes.first_chunk::<8>())
            .map_or(0, |bytes| u64::from_be_bytes(*bytes))
    };
    let (delta, initial, expiry) = (long(0), long(8), number(&extras[16..]));
    let wanted = Some(out.header.cas).filter(|cas| *cas != 0);
    let (store, now) = (&mut *context.store, context.now);
    let outcome = match expiry {
        MAKE_NOTHING => store.count(verb, key, delta, wanted, now),
        _ => store.count_or_make(verb, key, delta, wanted, initial, expiry as i32, now),
    };
    match outcome {
        Outcome::Number(_) if quiet => {}
        Outcome::Number(number) => out.done(&number.to_be_bytes(), store.last_cas()),
        Outcome::Exists => out.fail(EXISTS),
        Outcome::NotFound => out.fail(NOT_FOUND),
        _ => out.fail(NOT_A_NUMBER),
    }
}

/// Writes one packet for each figure, and an empty one.
fn stat(topic: &[u8], context: &mut Context<'_>, mut out: Out<'_>) {
    match topic {
        b"" => {
            for (name, figure) in figures(context) {
                out.head(0, [0, name.len(), figure.len()], 0);
                out.reply.push(name.as_bytes());
                out.reply.push(figure.as_bytes());
            }
        }
        b"reset" => context.store.counts = StoreCounts::default(),
        b"settings" | b"items" | b"slabs" | b"sizes" | b"conns" => {}
        _ => return out.fail(NOT_FOUND),
    }
    out.done(&[], 0);
}
