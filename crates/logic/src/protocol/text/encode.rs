//! Requests of memcached's text protocol as command lines.

use crate::connection::outbox::Outbox;
use crate::protocol::{Expect, Keys, Op, Refused, Verb, lines};

/// Longest command line except that of get and gets. memcached closes a connection that sends a longer one.
const COMMAND_MAX_BYTES: usize = 2048;

/// Style of command lines other than those of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandStyle {
    /// Command lines as in the protocol document.
    Plain,
    /// Command lines with a blank at their end, as mcperf writes them.
    Blank,
    /// Command lines with a blank at their end, and `xxx` for `set`.
    Bogus,
}

/// The command word of mcperf's bogus method, which no server knows.
pub const BOGUS_WORD: &str = "xxx";

/// Writes get, gets, gat and gats.
#[inline(always)]
pub(super) fn encode_read(op: &Op<'_>, out: &mut Outbox) -> Result<Expect, Refused> {
    if op.noreply {
        return Err(Refused("a read cannot go without a reply"));
    }
    let touches = matches!(op.verb, Verb::Gat | Verb::Gats);
    match op.keys {
        Keys::One(key) => {
            check_made_key(key, op)?;
            if touches {
                lines::check_expiry(op.expiry_s)?;
            }
            push_read_word(op, out);
            out.push(key);
            out.push(b"\r\n");
        }
        Keys::Many { .. } | Keys::Pairs(_) => return encode_many(&{ *op }, touches, out),
    }
    Ok(Expect::Reply)
}

/// Writes a read of several keys.
#[inline(never)]
fn encode_many(op: &Op<'_>, touches: bool, out: &mut Outbox) -> Result<Expect, Refused> {
    check_many(op, touches)?;
    push_read_word(op, out);
    for n in 0..op.keys.count() {
        if n > 0 {
            out.push(b" ");
        }
        out.push(op.keys.key(n));
    }
    out.push(b"\r\n");
    Ok(Expect::Reply)
}

/// Appends the command word of a read, and its expiry if it has one.
#[inline(always)]
fn push_read_word(op: &Op<'_>, out: &mut Outbox) {
    match op.verb {
        Verb::Get => out.push(b"get "),
        Verb::Gets => out.push(b"gets "),
        Verb::Gat => push_touching(b"gat ", op.expiry_s, out),
        _ => push_touching(b"gats ", op.expiry_s, out),
    }
}

/// Appends a command word and an expiry.
#[inline(never)]
fn push_touching(word: &[u8], expiry_s: i64, out: &mut Outbox) {
    out.push(word);
    lines::push_signed(out, expiry_s);
    out.push(b" ");
}

/// Appends a request that has exactly one key and may go without a reply: all but reads and version.
#[inline(never)]
pub(super) fn encode_change(op: &Op<'_>, style: CommandStyle, out: &mut Outbox) -> Result<Expect, Refused> {
    let Keys::One(key) = op.keys else { return Err(Refused("only reads take several keys")) };
    check_made_key(key, op)?;
    if op.verb.stores() || op.verb == Verb::Touch {
        lines::check_expiry(op.expiry_s)?;
    }
    let is_bogus = style == CommandStyle::Bogus && op.verb == Verb::Set;
    out.push(if is_bogus { BOGUS_WORD } else { op.verb.name() }.as_bytes());
    out.push(b" ");
    out.push(key);
    match op.verb {
        Verb::Incr | Verb::Decr => {
            out.push(b" ");
            out.push_decimal(op.delta);
        }
        Verb::Touch => {
            out.push(b" ");
            lines::push_signed(out, op.expiry_s);
        }
        Verb::Delete => {}
        _ => {
            out.push(b" ");
            out.push_decimal(u64::from(op.flags));
            out.push(b" ");
            lines::push_signed(out, op.expiry_s);
            out.push(b" ");
            out.push_decimal(op.value.len() as u64);
            if op.verb == Verb::Cas {
                out.push(b" ");
                out.push_decimal(op.cas);
            }
        }
    }
    out.push(match (op.noreply, style) {
        (true, _) => b" noreply\r\n",
        (false, CommandStyle::Plain) => b"\r\n",
        (false, CommandStyle::Blank | CommandStyle::Bogus) => b" \r\n",
    });
    if op.verb.stores() {
        op.value.push_to(out);
        out.push(b"\r\n");
    }
    Ok(if op.noreply { Expect::Nothing } else { Expect::Reply })
}

/// Checks the key of a request, unless the maker of keys has checked it.
#[inline]
fn check_made_key(key: &[u8], op: &Op<'_>) -> Result<(), Refused> {
    if op.key_is_sure { Ok(()) } else { check_key(key) }
}

#[inline]
fn check_key(key: &[u8]) -> Result<(), Refused> {
    if lines::is_word(key) { Ok(()) } else { Err(refused_key(key)) }
}

/// The reason why a key is refused.
#[cold]
fn refused_key(key: &[u8]) -> Refused {
    Refused(match key.len() {
        0 => "a key must not be empty",
        len if len > lines::KEY_MAX_BYTES => "a key must not be longer than 250 bytes",
        _ => {
            "a key must not contain blanks, line ends or other control characters below 16 in the text protocol"
        }
    })
}

fn check_many(op: &Op<'_>, touches: bool) -> Result<(), Refused> {
    let count = op.keys.count();
    if count == 0 {
        return Err(Refused("a read needs at least one key"));
    }
    let mut line_bytes = "gats -2147483648".len() + "\r\n".len();
    for n in 0..count {
        let key = op.keys.key(n);
        check_key(key)?;
        line_bytes += 1 + key.len();
    }
    if touches {
        lines::check_expiry(op.expiry_s)?;
        if line_bytes > COMMAND_MAX_BYTES {
            return Err(Refused(
                "the keys of a gat do not fit in 2,048 bytes, the longest line that memcached takes",
            ));
        }
    }
    Ok(())
}
