//! Reply lines of the meta protocol: a code, a size for some codes, and flags with the information that the request
//! asked for.

use crate::protocol::batch::Found;
use crate::protocol::lines;
use crate::protocol::sized_value::after_value;
use crate::protocol::{Fault, Malformed, Outcome, Skimmed, Tag};

/// The kind of a request, as the first letter of its opaque names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum OpaqueKind {
    /// A read of one key.
    Read = b'r',
    /// A read of one of the keys of a multi-get.
    Part = b'p',
    /// A store of any mode.
    Store = b's',
    /// A removal of a key.
    Delete = b'd',
    /// incr or decr.
    Count = b'c',
    /// A new expiry.
    Touch = b't',
    /// A request without reply, which the server answers only for some outcomes, such as an error.
    Quiet = b'q',
}

impl OpaqueKind {
    fn of(letter: u8) -> Option<OpaqueKind> {
        let all = [
            OpaqueKind::Read,
            OpaqueKind::Part,
            OpaqueKind::Store,
            OpaqueKind::Delete,
            OpaqueKind::Count,
            OpaqueKind::Touch,
            OpaqueKind::Quiet,
        ];
        all.into_iter().find(|&kind| kind as u8 == letter)
    }
}

/// The first word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyCode {
    /// `VA`: a value of this size follows.
    Value(u32),
    /// `HD`: the request is done.
    Done,
    /// `EN`: the key was not found by a read.
    Miss,
    /// `NF`: the key was not found by a change.
    NotFound,
    /// `NS`: nothing was stored, because the condition of the mode did not hold.
    NotStored,
    /// `EX`: the CAS unique of the item is a different one.
    Exists,
    /// `MN`: all earlier requests are answered.
    End,
    /// A reply that never has flags.
    Plain(Outcome),
}

/// A line of a reply.
#[derive(Clone, Copy, Debug)]
pub struct MetaReply {
    /// The first word of the line.
    pub code: ReplyCode,
    /// The kind and the tag of the request that the line answers; `None` where it carries no opaque.
    pub asked: Option<(OpaqueKind, Tag)>,
    /// Range of the key in the line; empty where it was not sent.
    pub key: (usize, usize),
    /// Whether the key is in base64.
    pub key_encoded: bool,
    /// CAS unique, 0 if none was sent.
    pub cas: u64,
    /// The flags that the client stored with the value.
    pub client_flags: u32,
    /// Offset of the server's message in the line; the end of the line if there is none.
    pub text_at: usize,
    won: bool,
    stale: bool,
    recaching: bool,
}

/// Takes the replies that make up nearly all of a run, where they are whole: a value for the read with this tag, with
/// the flags that nearly all have, a store that was stored, and a miss. Returns what follows. Anything else is left to
/// the reading of a line, which finds the same in these.
#[inline]
pub fn whole(bytes: &[u8], tag: Tag) -> Option<(Skimmed, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(b"VA ") {
        let (size, digits) = lines::decimal(rest)?;
        let value = opaque_end(rest.get(digits..)?.strip_prefix(b" f0 Or")?, tag)?;
        return Some((Skimmed { outcome: Outcome::Hit, items: 1 }, after_value(value, size)?));
    }
    if let Some(rest) = bytes.strip_prefix(b"HD Os") {
        return Some((Skimmed { outcome: Outcome::Stored, items: 0 }, opaque_end(rest, tag)?));
    }
    let rest = bytes.strip_prefix(b"EN\r\n")?;
    Some((Skimmed { outcome: Outcome::Miss, items: 0 }, rest))
}

/// Returns the bytes behind a line that ends with the number of this tag.
#[inline]
fn opaque_end(bytes: &[u8], tag: Tag) -> Option<&[u8]> {
    let (number, digits) = lines::decimal(bytes)?;
    bytes[digits..].strip_prefix(b"\r\n").filter(|_| number == u64::from(tag))
}

impl MetaReply {
    /// Reads a line.
    ///
    /// # Errors
    /// Returns [`Malformed`] for a line that is no reply of the meta commands.
    #[inline]
    pub fn read(line: &[u8]) -> Result<MetaReply, Malformed> {
        let word_bytes = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (word, rest) = line.split_at(word_bytes);
        let plain =
            |outcome, text_at| Ok(MetaReply { text_at, ..MetaReply::new(ReplyCode::Plain(outcome), line) });
        let code = match word {
            b"VA" => {
                let digits = rest.strip_prefix(b" ").and_then(lines::decimal);
                let (size, digits) = digits.ok_or(Malformed("a VA line has no size"))?;
                let size =
                    u32::try_from(size).map_err(|_| Malformed("a VA line has a size above 32 bits"))?;
                return MetaReply::new(ReplyCode::Value(size), line)
                    .with_flags(line, word_bytes + 1 + digits);
            }
            b"HD" => ReplyCode::Done,
            b"EN" => ReplyCode::Miss,
            b"NF" => ReplyCode::NotFound,
            b"NS" => ReplyCode::NotStored,
            b"EX" => ReplyCode::Exists,
            b"MN" if rest.is_empty() => return Ok(MetaReply::new(ReplyCode::End, line)),
            b"OK" if rest.is_empty() => return plain(Outcome::Ok, line.len()),
            b"STORED" if rest.is_empty() => return plain(Outcome::Stored, line.len()),
            b"VERSION" if rest.len() > 1 => return plain(Outcome::Ok, word_bytes + 1),
            b"ERROR" => return plain(Outcome::Error(Fault::Protocol), 0),
            b"CLIENT_ERROR" => return plain(Outcome::Error(Fault::Client), 0),
            b"SERVER_ERROR" => return plain(Outcome::Error(Fault::Server), 0),
            word => return Err(unknown(word)),
        };
        MetaReply::new(code, line).with_flags(line, word_bytes)
    }

    fn new(code: ReplyCode, line: &[u8]) -> MetaReply {
        MetaReply {
            code,
            asked: None,
            key: (0, 0),
            key_encoded: false,
            cas: 0,
            client_flags: 0,
            text_at: line.len(),
            won: false,
            stale: false,
            recaching: false,
        }
    }

    /// Reads the flags from `at` to the end of the line. Repeated blanks between them are allowed. A known flag is
    /// accepted also if it was not asked for; an unknown flag is an error, because its meaning is not known.
    #[inline]
    fn with_flags(mut self, line: &[u8], mut at: usize) -> Result<MetaReply, Malformed> {
        const WRONG: Malformed = Malformed("a flag of a meta reply is not of its form");
        while at < line.len() {
            if line[at] != b' ' {
                return Err(WRONG);
            }
            let start = at + 1;
            let length = line[start..].iter().position(|&byte| byte == b' ').unwrap_or(line.len() - start);
            at = start + length;
            let Some((&flag, token)) = line[start..at].split_first() else { continue };
            match flag {
                b'O' => {
                    self.asked =
                        Some(opaque(token).ok_or(Malformed("a meta reply has an opaque that is not ours"))?)
                }
                b'k' => self.key = (start + 1, at),
                b'b' if token.is_empty() => self.key_encoded = true,
                b'f' => {
                    self.client_flags =
                        number(token).and_then(|flags| u32::try_from(flags).ok()).ok_or(WRONG)?
                }
                b'c' => self.cas = number(token).ok_or(WRONG)?,
                b't' if token == b"-1" => {}
                b's' | b't' | b'h' | b'l' => {
                    number(token).ok_or(WRONG)?;
                }
                b'W' if token.is_empty() => self.won = true,
                b'X' if token.is_empty() => self.stale = true,
                b'Z' if token.is_empty() => self.recaching = true,
                _ => return Err(WRONG),
            }
        }
        Ok(self)
    }

    /// The result of the read that this VA line answers.
    #[inline]
    pub fn found(&self) -> Found {
        match (self.won, self.stale, self.recaching) {
            (true, _, _) => Found::Win,
            (false, true, _) => Found::Stale,
            (false, false, true) => Found::Recaching,
            (false, false, false) => Found::Value,
        }
    }

    /// Whether a value of this size is not an item but the empty place that a read created for a missing key (flag
    /// N).
    #[inline]
    pub fn is_place(&self, size: u32) -> bool {
        size == 0 && (self.won || self.recaching)
    }

    /// The outcome of a request of this kind that is answered by this code alone; `None` if the answer is dropped.
    ///
    /// # Errors
    /// Returns [`Malformed`] for a code that no request of this kind can have.
    pub fn outcome(&self, kind: OpaqueKind) -> Result<Option<Outcome>, Malformed> {
        Ok(Some(match (self.code, kind) {
            (_, OpaqueKind::Quiet) | (ReplyCode::Miss, OpaqueKind::Part) => return Ok(None),
            (ReplyCode::Done, OpaqueKind::Store) => Outcome::Stored,
            (ReplyCode::Done, OpaqueKind::Delete) => Outcome::Deleted,
            (ReplyCode::Done, OpaqueKind::Touch) => Outcome::Touched,
            (ReplyCode::Miss, OpaqueKind::Read) => Outcome::Miss,
            (ReplyCode::Miss, OpaqueKind::Touch) => Outcome::NotFound,
            (ReplyCode::NotFound, OpaqueKind::Store | OpaqueKind::Delete | OpaqueKind::Count) => {
                Outcome::NotFound
            }
            (ReplyCode::NotStored, OpaqueKind::Store | OpaqueKind::Count) => Outcome::NotStored,
            (ReplyCode::Exists, OpaqueKind::Store | OpaqueKind::Delete | OpaqueKind::Count) => {
                Outcome::Exists
            }
            _ => return Err(Malformed("a meta reply does not fit the request that its opaque names")),
        }))
    }
}

#[inline]
fn opaque(token: &[u8]) -> Option<(OpaqueKind, Tag)> {
    let (&letter, digits) = token.split_first()?;
    Some((OpaqueKind::of(letter)?, Tag::try_from(lines::whole_decimal(digits)?).ok()?))
}

#[inline]
fn number(token: &[u8]) -> Option<u64> {
    lines::whole_decimal(token)
}

/// The reason why no line of the protocol begins with this byte. The check looks at the first byte alone, since the
/// rest may never come.
#[cold]
pub fn foreign(first: u8) -> Malformed {
    Malformed(match first {
        b'-' | b'+' | b'$' | b':' | b'*' | b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'>'
        | b'|' => "the reply looks like RESP (Redis, Valkey), not like memcached's meta protocol",
        0x80 | 0x81 => "the reply looks like memcached's binary protocol, not like its meta protocol",
        0x15 | 0x16 => "the reply looks like TLS, and this connection has none",
        _ => "a reply begins with a byte that memcached's meta protocol does not have there",
    })
}

/// The reason why no line of the protocol begins with this word.
#[cold]
fn unknown(word: &[u8]) -> Malformed {
    Malformed(match word {
        b"VALUE" | b"END" | b"NOT_FOUND" | b"NOT_STORED" | b"EXISTS" | b"DELETED" | b"TOUCHED" => {
            "the reply looks like memcached's classic text protocol, not like its meta protocol"
        }
        word if word.starts_with(b"HTTP/") => "the reply looks like HTTP, not like memcached's meta protocol",
        _ => "a reply line begins with a code that the meta protocol does not know",
    })
}
