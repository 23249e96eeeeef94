//! Requests of memcached's binary protocol as packets.

use super::packets::{KEY_MAX_BYTES, RequestHeader, opcode};
use crate::connection::outbox::Outbox;
use crate::protocol::{Expect, NOT_MEMCACHED, Op, Refused, Tag, Verb};

/// Writes the authentication with SASL's PLAIN (RFC 4616). The reply ends with `Ok` or with a fault of the client, both with the
/// server's words.
pub(in crate::protocol) fn push_auth(user: &[u8], password: &[u8], out: &mut Outbox) -> Result<(), Refused> {
    if user.contains(&0) || password.contains(&0) {
        return Err(Refused("a user or password with a zero byte cannot be sent with SASL PLAIN"));
    }
    let mechanism = b"PLAIN";
    let head = RequestHeader { opcode: opcode::SASL_AUTH, opaque: 0, cas: 0 };
    head.push(0, mechanism.len(), user.len() + password.len() + 2, out);
    for part in [mechanism, &b"\0"[..], user, b"\0", password] {
        out.push(part);
    }
    Ok(())
}

/// Writes a request that has one key, or none.
#[inline]
pub(super) fn encode_one(op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
    let key = op.keys.key(0);
    let head = RequestHeader {
        opcode: opcode_of(op)?,
        opaque: tag,
        cas: if op.verb == Verb::Cas { op.cas } else { 0 },
    };
    match op.verb {
        Verb::Version => head.push(0, 0, 0, out),
        Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Touch => {
            check_key(key)?;
            if op.verb != Verb::Get && op.verb != Verb::Gets {
                check_expiry(op.expiry_s)?;
            }
            push_read(head, key, op.expiry_s, out);
        }
        Verb::Incr | Verb::Decr => {
            check_key(key)?;
            head.push(20, key.len(), 0, out);
            out.push(&op.delta.to_be_bytes());
            // An expiry of all ones: do not make an item of the initial value where there is none.
            out.push(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
            out.push(key);
        }
        Verb::Delete => {
            check_key(key)?;
            head.push(0, key.len(), 0, out);
            out.push(key);
        }
        _ => push_store(op, head, key, out)?,
    }
    Ok(if op.noreply { Expect::Nothing } else { Expect::Reply })
}

fn push_store(op: &Op<'_>, head: RequestHeader, key: &[u8], out: &mut Outbox) -> Result<(), Refused> {
    check_key(key)?;
    if op.value.len() > u32::MAX as usize - 1024 {
        return Err(Refused("a value must fit in 32 bits of length"));
    }
    if op.verb == Verb::Cas && op.cas == 0 {
        return Err(Refused("a cas needs a CAS unique: 0 would store always in the binary protocol"));
    }
    if matches!(op.verb, Verb::Append | Verb::Prepend) {
        head.push(0, key.len(), op.value.len(), out);
    } else {
        check_expiry(op.expiry_s)?;
        head.push(8, key.len(), op.value.len(), out);
        out.push(&op.flags.to_be_bytes());
        out.push(&expiry(op.expiry_s));
    }
    out.push(key);
    op.value.push_to(out);
    Ok(())
}

/// Writes a request of a key that may set its expiry.
#[inline]
pub(super) fn push_read(head: RequestHeader, key: &[u8], expiry_s: i64, out: &mut Outbox) {
    if matches!(head.opcode, opcode::GAT | opcode::GATKQ | opcode::TOUCH) {
        head.push(4, key.len(), 0, out);
        out.push(&expiry(expiry_s));
    } else {
        head.push(0, key.len(), 0, out);
    }
    out.push(key);
}

/// The code of a verb. Every reply carries the CAS unique, so that gets and gats are no commands of their own.
#[inline]
fn opcode_of(op: &Op<'_>) -> Result<u8, Refused> {
    Ok(match (op.verb, op.noreply) {
        (Verb::Get | Verb::Gets, false) => opcode::GET,
        (Verb::Gat | Verb::Gats, false) => opcode::GAT,
        (Verb::Set | Verb::Cas, false) => opcode::SET,
        (Verb::Set | Verb::Cas, true) => opcode::SETQ,
        (Verb::Add, false) => opcode::ADD,
        (Verb::Add, true) => opcode::ADDQ,
        (Verb::Replace, false) => opcode::REPLACE,
        (Verb::Replace, true) => opcode::REPLACEQ,
        (Verb::Append, false) => opcode::APPEND,
        (Verb::Append, true) => opcode::APPENDQ,
        (Verb::Prepend, false) => opcode::PREPEND,
        (Verb::Prepend, true) => opcode::PREPENDQ,
        (Verb::Incr, false) => opcode::INCREMENT,
        (Verb::Incr, true) => opcode::INCREMENTQ,
        (Verb::Decr, false) => opcode::DECREMENT,
        (Verb::Decr, true) => opcode::DECREMENTQ,
        (Verb::Delete, false) => opcode::DELETE,
        (Verb::Delete, true) => opcode::DELETEQ,
        (Verb::Touch, false) => opcode::TOUCH,
        (Verb::Version, false) => opcode::VERSION,
        (Verb::Touch, true) => return Err(Refused("touch has no quiet form in the binary protocol")),
        (Verb::Version, true) => return Err(Refused("version cannot be asked for without a reply")),
        (_, true) => return Err(Refused("a read cannot go without a reply")),
        _ => return Err(NOT_MEMCACHED),
    })
}

#[inline]
fn check_key(key: &[u8]) -> Result<(), Refused> {
    match key.len() {
        0 => Err(Refused("a key must not be empty")),
        1..=KEY_MAX_BYTES => Ok(()),
        _ => Err(Refused("a key must not be longer than 250 bytes")),
    }
}

/// Checks a request with several keys, and returns the code of its read.
pub(super) fn check_many(op: &Op<'_>) -> Result<u8, Refused> {
    if !op.verb.reads() {
        return Err(Refused("only reads take several keys"));
    }
    if op.keys.count() == 0 {
        return Err(Refused("a read needs at least one key"));
    }
    for n in 0..op.keys.count() {
        check_key(op.keys.key(n))?;
    }
    let read = opcode_of(op)?;
    if read == opcode::GAT {
        check_expiry(op.expiry_s)?;
    }
    Ok(read)
}

#[inline]
fn check_expiry(expiry_s: i64) -> Result<(), Refused> {
    if expiry_s <= i64::from(u32::MAX) { Ok(()) } else { Err(Refused("an expiry must fit in 32 bits")) }
}

/// An expiry on the wire. The field has no sign, and memcached takes all ones for a time in 2106; expired at once is
/// therefore said as the first second that counts as a time and not as a span: 31 January 1970.
#[inline]
fn expiry(expiry_s: i64) -> [u8; 4] {
    const FIRST_TIME_S: u32 = 30 * 24 * 60 * 60 + 1;
    u32::try_from(expiry_s).unwrap_or(FIRST_TIME_S).to_be_bytes()
}
