//! Requests as the commands of Redis that do what memcached's verbs do.

use super::asked::ExpectedReply;
use crate::connection::outbox::Outbox;
use crate::protocol::{Keys, Op, Refused, Value, Verb, lines};

/// The field of a hash that hget reads and hset stores.
const FIELD: &[u8] = b"field";

/// Longest expiry that is a number of seconds from now and not a date, as for [`Op::expiry_s`].
const SPAN_MAX_S: u64 = 30 * 24 * 60 * 60;

/// A hundred years, the expiry that EXPIRE sets for a touch without expiry. PERSIST is not used, because its replies
/// for a key without expiry and for a missing key are the same.
const FOR_EVER_S: u64 = 100 * 365 * 24 * 60 * 60;

/// Appends the requests of the less common verbs.
pub(super) fn encode_other(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
    match op.verb {
        Verb::Gat => push_read_and_touch(op, key, out),
        Verb::Touch => push_touch(op, key, out),
        Verb::Incr | Verb::Decr => push_count(op, key, out),
        Verb::Append => {
            check_flags(op)?;
            out.push(b"*3\r\n$6\r\nAPPEND\r\n");
            push_bulk(out, key);
            push_value(out, &op.value);
            Ok(ExpectedReply::Grown)
        }
        Verb::Delete => {
            out.push(b"*2\r\n$3\r\nDEL\r\n");
            push_bulk(out, key);
            Ok(ExpectedReply::Removed)
        }
        Verb::Version => {
            out.push(b"*1\r\n$4\r\nPING\r\n");
            Ok(ExpectedReply::Pong)
        }
        Verb::Hget => {
            out.push(b"*3\r\n$4\r\nHGET\r\n");
            push_bulk(out, key);
            push_bulk(out, FIELD);
            Ok(ExpectedReply::Value)
        }
        Verb::Hset => {
            check_flags(op)?;
            out.push(b"*4\r\n$4\r\nHSET\r\n");
            push_bulk(out, key);
            push_bulk(out, FIELD);
            push_value(out, &op.value);
            Ok(ExpectedReply::Grown)
        }
        Verb::Mset => {
            check_flags(op)?;
            out.push(b"*3\r\n$4\r\nMSET\r\n");
            push_bulk(out, key);
            push_value(out, &op.value);
            Ok(ExpectedReply::Stored)
        }
        _ => Err(refused(op.verb)),
    }
}

/// Reads, stores or deletes a field of a hash.
pub(super) fn push_field(
    op: &Op<'_>,
    name: &[u8],
    field: &[u8],
    out: &mut Outbox,
) -> Result<ExpectedReply, Refused> {
    let (head, kind): (&[u8], ExpectedReply) = match op.verb {
        Verb::Get | Verb::Hget => (b"*3\r\n$4\r\nHGET\r\n", ExpectedReply::Value),
        Verb::Set | Verb::Hset => (b"*4\r\n$4\r\nHSET\r\n", ExpectedReply::Grown),
        Verb::Delete => (b"*3\r\n$4\r\nHDEL\r\n", ExpectedReply::Removed),
        _ => return Err(Refused("keys that are hashes can be read, stored and deleted")),
    };
    check_flags(op)?;
    out.push(head);
    push_bulk(out, name);
    push_bulk(out, field);
    if kind == ExpectedReply::Grown {
        push_value(out, &op.value);
    }
    Ok(kind)
}

/// The reason why RESP has no command for a verb.
#[cold]
fn refused(verb: Verb) -> Refused {
    Refused(match verb {
        Verb::Prepend => "RESP servers have no command that adds bytes at the beginning of a value",
        _ => "RESP servers keep no CAS unique beside a value: gets, gats and cas cannot be asked of them",
    })
}

/// Writes a request that has several keys.
pub(super) fn encode_many(op: &Op<'_>, out: &mut Outbox) -> Result<ExpectedReply, Refused> {
    let count = op.keys.count();
    let (word, words, kind): (&[u8], _, _) = match op.verb {
        Verb::Get => (b"\r\n$4\r\nMGET\r\n", 1 + count, ExpectedReply::Values),
        Verb::Mset => (b"\r\n$4\r\nMSET\r\n", 1 + 2 * count, ExpectedReply::Stored),
        Verb::Gat => return Err(Refused("GETEX, which reads and sets an expiry, takes one key")),
        Verb::Hget => return Err(Refused("HGET takes one key")),
        Verb::Gets | Verb::Gats => return Err(refused(op.verb)),
        _ => return Err(Refused("only get and mset take several keys")),
    };
    if count == 0 {
        return Err(Refused("a request needs at least one key"));
    }
    if op.verb == Verb::Mset {
        check_flags(op)?;
        if !matches!(op.keys, Keys::Pairs(_)) {
            return Err(Refused("an mset needs one value for each key"));
        }
    }
    out.push(b"*");
    out.push_decimal(words as u64);
    out.push(word);
    for n in 0..count {
        push_bulk(out, op.keys.key(n));
        if let (Verb::Mset, Keys::Pairs(pairs)) = (op.verb, op.keys) {
            push_value(out, &pairs.value(n));
        }
    }
    Ok(kind)
}

/// Refuses flags, which Redis could not keep.
#[inline]
fn check_flags(op: &Op<'_>) -> Result<(), Refused> {
    if op.flags == 0 { Ok(()) } else { Err(Refused("RESP servers keep no flags beside a value")) }
}

/// The expiry of a key.
#[derive(Clone, Copy)]
enum Expiry {
    Never,
    /// The key expires after this number of seconds.
    In(u64),
    /// The key expires at this second of Unix time.
    At(u64),
}

/// The expiry of a request, as [`Op::expiry_s`] defines it. Redis accepts no date before 1970 and no time below a
/// second, so an expiry at once is sent as the first second of 1970.
#[inline]
fn expiry(op: &Op<'_>) -> Result<Expiry, Refused> {
    lines::check_expiry(op.expiry_s)?;
    Ok(match u64::try_from(op.expiry_s) {
        Ok(0) => Expiry::Never,
        Ok(span_s @ 1..=SPAN_MAX_S) => Expiry::In(span_s),
        Ok(date_s) => Expiry::At(date_s),
        Err(_) => Expiry::At(1),
    })
}

/// Writes SET, with its condition and expiry. EXAT came with Redis 6.2.
#[inline]
pub(super) fn push_set(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
    check_flags(op)?;
    let expiry = expiry(op)?;
    let conditional = op.verb != Verb::Set;
    let words = 3 + u64::from(conditional) + if matches!(expiry, Expiry::Never) { 0 } else { 2 };
    out.push(b"*");
    out.push_decimal(words);
    out.push(b"\r\n$3\r\nSET\r\n");
    push_bulk(out, key);
    push_value(out, &op.value);
    push_expiry(expiry, out);
    match op.verb {
        Verb::Add => out.push(b"$2\r\nNX\r\n"),
        Verb::Replace => out.push(b"$2\r\nXX\r\n"),
        _ => {}
    }
    Ok(ExpectedReply::Stored)
}

/// Writes the two words that set an expiry.
#[inline]
fn push_expiry(expiry: Expiry, out: &mut Outbox) {
    match expiry {
        Expiry::Never => {}
        Expiry::In(span_s) => {
            out.push(b"$2\r\nEX\r\n");
            push_bulk_number(out, span_s);
        }
        Expiry::At(date_s) => {
            out.push(b"$4\r\nEXAT\r\n");
            push_bulk_number(out, date_s);
        }
    }
}

/// Writes GETEX, which came with Redis 6.2.
fn push_read_and_touch(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
    let expiry = expiry(op)?;
    let never = matches!(expiry, Expiry::Never);
    out.push(if never { b"*3\r\n$5\r\nGETEX\r\n" } else { b"*4\r\n$5\r\nGETEX\r\n" });
    push_bulk(out, key);
    if never {
        out.push(b"$7\r\nPERSIST\r\n");
    }
    push_expiry(expiry, out);
    Ok(ExpectedReply::Value)
}

fn push_touch(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
    let (word, number): (&[u8], _) = match expiry(op)? {
        Expiry::Never => (b"*3\r\n$6\r\nEXPIRE\r\n", FOR_EVER_S),
        Expiry::In(span_s) => (b"*3\r\n$6\r\nEXPIRE\r\n", span_s),
        Expiry::At(date_s) => (b"*3\r\n$8\r\nEXPIREAT\r\n", date_s),
    };
    out.push(word);
    push_bulk(out, key);
    push_bulk_number(out, number);
    Ok(ExpectedReply::Touched)
}

fn push_count(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
    if op.delta > i64::MAX as u64 {
        return Err(Refused("RESP servers count with 64 bits and a sign: the amount is too large"));
    }
    let adds = op.verb == Verb::Incr;
    out.push(if adds { b"*3\r\n$6\r\nINCRBY\r\n" } else { b"*3\r\n$6\r\nDECRBY\r\n" });
    push_bulk(out, key);
    push_bulk_number(out, op.delta);
    Ok(ExpectedReply::Counted)
}

/// Writes a word.
#[inline]
pub(super) fn push_bulk(out: &mut Outbox, bytes: &[u8]) {
    out.push(b"$");
    out.push_decimal(bytes.len() as u64);
    out.push(b"\r\n");
    out.push(bytes);
    out.push(b"\r\n");
}

/// Writes a word that is a number.
pub(super) fn push_bulk_number(out: &mut Outbox, number: u64) {
    out.push(b"$");
    out.push_decimal(u64::from(number.checked_ilog10().unwrap_or(0)) + 1);
    out.push(b"\r\n");
    out.push_decimal(number);
    out.push(b"\r\n");
}

/// Writes a word that is a value.
#[inline]
pub(super) fn push_value(out: &mut Outbox, value: &Value<'_>) {
    out.push(b"$");
    out.push_decimal(value.len() as u64);
    out.push(b"\r\n");
    value.push_to(out);
    out.push(b"\r\n");
}
