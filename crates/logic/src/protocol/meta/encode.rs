//! Requests of memcached's meta protocol as command lines.

use super::reply::OpaqueKind;
use crate::connection::outbox::Outbox;
use crate::protocol::{Op, Refused, Tag, Verb, lines};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Longest key whose base64 form has at most 250 characters.
const ENCODED_KEY_MAX_BYTES: usize = lines::KEY_MAX_BYTES / 4 * 3;

/// Checks a key. A key that the text protocol cannot carry is sent in base64, which must fit in 250 characters.
#[inline]
pub(super) fn check_key(key: &[u8]) -> Result<(), Refused> {
    if lines::is_key(key) {
        return Ok(());
    }
    Err(Refused(match key.len() {
        0 => "a key must not be empty",
        1..=ENCODED_KEY_MAX_BYTES => return Ok(()),
        len if len > lines::KEY_MAX_BYTES => "a key must not be longer than 250 bytes",
        _ => "a key with blanks or control characters must not be longer than 186 bytes in the meta protocol",
    }))
}

/// Checks the one key of a request, unless that was done when it was made.
#[inline]
fn check_made_key(key: &[u8], op: &Op<'_>) -> Result<(), Refused> {
    if op.key_is_sure { Ok(()) } else { check_key(key) }
}

#[inline]
pub(super) fn check_read(key: &[u8], op: &Op<'_>) -> Result<(), Refused> {
    check_made_key(key, op)?;
    if matches!(op.verb, Verb::Gat | Verb::Gats) {
        lines::check_expiry(op.expiry_s)?;
    }
    Ok(())
}

/// Writes a command word and a key; `sure`: the key is known to be text.
#[inline]
pub(super) fn push_key(word: &[u8], key: &[u8], sure: bool, out: &mut Outbox) {
    out.push(word);
    if sure || lines::is_key(key) {
        out.push(key);
    } else {
        push_encoded_key(key, b" b", out);
    }
}

/// Writes a key in base64, and `says_so` behind it.
fn push_encoded_key(key: &[u8], says_so: &[u8], out: &mut Outbox) {
    let mut encoded = [0; lines::KEY_MAX_BYTES];
    let Ok(length) = BASE64.encode_slice(key, &mut encoded[..]) else {
        unreachable!("the key was checked to fit");
    };
    out.push(&encoded[..length]);
    out.push(says_so);
}

/// Writes the opaque and the end of the line.
#[inline]
fn push_opaque(kind: OpaqueKind, tag: Tag, out: &mut Outbox) {
    out.push(&[b' ', b'O', kind as u8]);
    out.push_decimal(u64::from(tag));
    out.push(b"\r\n");
}

/// Writes mg for a value. Flags come with it, the CAS unique where the verb asks, the key where several are asked for.
#[inline]
pub(super) fn push_read(key: &[u8], op: &Op<'_>, kind: OpaqueKind, tag: Tag, out: &mut Outbox) {
    push_key(b"mg ", key, op.key_is_sure, out);
    out.push(if kind == OpaqueKind::Part { b" v f k q" } else { b" v f" });
    if matches!(op.verb, Verb::Gets | Verb::Gats) {
        out.push(b" c");
    }
    if matches!(op.verb, Verb::Gat | Verb::Gats) {
        out.push(b" T");
        lines::push_signed(out, op.expiry_s);
    }
    if let Some(vivify_s) = op.meta.vivify_s {
        out.push(b" N");
        out.push_decimal(u64::from(vivify_s));
    }
    if let Some(recache_s) = op.meta.recache_s {
        out.push(b" R");
        out.push_decimal(u64::from(recache_s));
    }
    if op.meta.details {
        out.push(b" t s h l");
    }
    push_opaque(kind, tag, out);
}

/// Writes a multi-get: quiet reads, and mn to learn that all of them are answered.
pub(super) fn push_many(op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<(), Refused> {
    if op.keys.count() == 0 {
        return Err(Refused("a read needs at least one key"));
    }
    for n in 0..op.keys.count() {
        check_read(op.keys.key(n), op)?;
    }
    for n in 0..op.keys.count() {
        push_read(op.keys.key(n), op, OpaqueKind::Part, tag, out);
    }
    out.push(b"mn\r\n");
    Ok(())
}

/// Writes everything that has exactly one key and may go without a reply.
pub(super) fn push_change(key: &[u8], op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<(), Refused> {
    check_made_key(key, op)?;
    if op.verb.stores() || op.verb == Verb::Touch {
        lines::check_expiry(op.expiry_s)?;
    }
    let kind = match op.verb {
        Verb::Incr | Verb::Decr => {
            push_key(b"ma ", key, op.key_is_sure, out);
            push_count(op, out);
            OpaqueKind::Count
        }
        Verb::Delete => {
            push_key(b"md ", key, op.key_is_sure, out);
            if let Some(stale_s) = op.meta.stale_s {
                out.push(b" I T");
                out.push_decimal(u64::from(stale_s));
            }
            OpaqueKind::Delete
        }
        Verb::Touch => {
            push_key(b"mg ", key, op.key_is_sure, out);
            out.push(b" T");
            lines::push_signed(out, op.expiry_s);
            OpaqueKind::Touch
        }
        _ => {
            push_store(key, op, out);
            OpaqueKind::Store
        }
    };
    if op.noreply {
        out.push(b" q");
    }
    push_opaque(if op.noreply { OpaqueKind::Quiet } else { kind }, tag, out);
    if op.verb.stores() {
        op.value.push_to(out);
        out.push(b"\r\n");
    }
    Ok(())
}

fn push_count(op: &Op<'_>, out: &mut Outbox) {
    if op.verb == Verb::Decr {
        out.push(b" MD");
    }
    out.push(b" D");
    out.push_decimal(op.delta);
    if !op.noreply {
        out.push(b" v");
    }
}

/// Writes ms up to its opaque. Flags and expiry are 0 where they are not said.
fn push_store(key: &[u8], op: &Op<'_>, out: &mut Outbox) {
    let encoded = !op.key_is_sure && !lines::is_key(key);
    out.push(b"ms ");
    if encoded {
        push_encoded_key(key, b" ", out);
    } else {
        out.push(key);
        out.push(b" ");
    }
    out.push_decimal(op.value.len() as u64);
    if encoded {
        out.push(b" b");
    }
    match op.verb {
        Verb::Add => out.push(b" ME"),
        Verb::Replace => out.push(b" MR"),
        Verb::Append => out.push(b" MA"),
        Verb::Prepend => out.push(b" MP"),
        Verb::Cas => {
            out.push(b" C");
            out.push_decimal(op.cas);
        }
        _ => {}
    }
    if op.flags != 0 {
        out.push(b" F");
        out.push_decimal(u64::from(op.flags));
    }
    if op.expiry_s != 0 {
        out.push(b" T");
        lines::push_signed(out, op.expiry_s);
    }
}
