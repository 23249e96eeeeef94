//! Replies of memcached's text protocol, line by line.

use crate::protocol::lines;
use crate::protocol::sized_value::{ValuePosition, after_value};
use crate::protocol::{Fault, Malformed, Outcome, Step};

/// The state of the reply that is being read.
#[derive(Debug)]
pub(super) struct ReplyReader {
    /// Bytes of the value that are still to come.
    pub(super) body_left: u32,
    pub(super) place: TextPosition,
    /// Whether an item of the reply has come.
    pub(super) found: bool,
}

/// Position of the next byte in the stream of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPosition {
    /// In a line.
    Line,
    /// In a value, or in its line end.
    Value(ValuePosition),
}

impl ReplyReader {
    /// Takes the replies that make up nearly all of a run, where they are whole, at the price of one comparison.
    /// Anything else is left to the full reading of a line, which finds the same in these.
    #[inline]
    pub(super) fn take_common<'i>(&mut self, first: u8, input: &mut &'i [u8]) -> Option<Step<'i>> {
        match first {
            b'V' => {
                let (item, rest) = item(input)?;
                *input = rest.strip_prefix(b"\r\n")?;
                Some(self.begin(item))
            }
            b'E' => {
                *input = input.strip_prefix(b"END\r\n")?;
                Some(self.end())
            }
            b'S' if !self.found => {
                *input = input.strip_prefix(b"STORED\r\n")?;
                Some(plain(Outcome::Stored))
            }
            _ => None,
        }
    }

    /// Reads any line.
    ///
    /// More than the protocol document shows is taken in three places: errors without or with a text (memcached has
    /// both for ERROR, and proxies leave out the text of the others), a colon after SERVER_ERROR (memcached's own
    /// `shutdown` does that), and blanks after a number (the document allows them, and old servers sent them).
    pub(super) fn take_line<'l>(&mut self, line: &'l [u8]) -> Result<Step<'l>, Malformed> {
        let word_bytes = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (word, text) = line.split_at(word_bytes);
        if let Some(outcome) = fault(word) {
            self.found = false;
            return Ok(Step::Reply { tag: None, outcome, message: line });
        }
        match word {
            b"END" if text.is_empty() => return Ok(self.end()),
            b"VALUE" => {
                return match item(line) {
                    Some((item, [])) => Ok(self.begin(item)),
                    _ => Err(Malformed("a VALUE line is not of the form `VALUE key flags bytes [cas]`")),
                };
            }
            _ if self.found => return Err(Malformed("items are not followed by END")),
            b"VERSION" if text.len() > 1 => {
                return Ok(Step::Reply { tag: None, outcome: Outcome::Ok, message: &text[1..] });
            }
            [b'0'..=b'9', ..] => return number(word, text),
            _ => {}
        }
        match outcome(word) {
            Some(outcome) if text.is_empty() => Ok(plain(outcome)),
            Some(_) => Err(Malformed("a reply has more words than the protocol knows")),
            None => Err(unknown(word)),
        }
    }

    /// An item begins.
    #[inline]
    fn begin<'l>(&mut self, item: ItemLine<'l>) -> Step<'l> {
        self.found = true;
        self.body_left = item.size;
        self.place = TextPosition::Value(ValuePosition::at_start(item.size));
        Step::Item { tag: None, key: item.key, size: u64::from(item.size), cas: item.cas, flags: item.flags }
    }

    /// A read ends.
    #[inline]
    fn end(&mut self) -> Step<'static> {
        let found = std::mem::replace(&mut self.found, false);
        plain(if found { Outcome::Hit } else { Outcome::Miss })
    }
}

/// Returns the bytes behind the item that `bytes` begin with, if all of it is there.
#[inline]
pub(super) fn after_item(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(b"VALUE ")?;
    let key_bytes = lines::key_len(rest);
    if key_bytes == 0 || key_bytes > lines::KEY_MAX_BYTES {
        return None;
    }
    // Flags are nearly always 0, and a CAS unique is there only for those who asked for it.
    let (size, digits) = lines::decimal(rest.get(key_bytes..)?.strip_prefix(b" 0 ")?)?;
    let value = rest.get(key_bytes + 3 + digits..)?.strip_prefix(b"\r\n")?;
    after_value(value, size)
}

/// The fields of a VALUE line.
struct ItemLine<'a> {
    key: &'a [u8],
    flags: u32,
    size: u32,
    cas: u64,
}

/// Reads `VALUE <key> <flags> <bytes> [<cas unique>]` and returns what follows: the line end, or nothing where `line`
/// has none. Exactly one blank stands between two words; no server is known that sends more. A size above 32 bits is no
/// answer of a server whose items are at most 1 GiB.
#[inline]
fn item(line: &[u8]) -> Option<(ItemLine<'_>, &[u8])> {
    let rest = line.strip_prefix(b"VALUE ")?;
    let key_bytes = lines::key_len(rest);
    if key_bytes == 0 || key_bytes > lines::KEY_MAX_BYTES {
        return None;
    }
    let (key, rest) = rest.split_at(key_bytes);
    let (flags, rest) = number_after_blank(rest)?;
    let (size, rest) = number_after_blank(rest)?;
    let (cas, rest) = if rest.first() == Some(&b' ') { number_after_blank(rest)? } else { (0, rest) };
    Some((ItemLine { key, flags: u32::try_from(flags).ok()?, size: u32::try_from(size).ok()?, cas }, rest))
}

#[inline]
fn number_after_blank(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let rest = bytes.strip_prefix(b" ")?;
    let (number, digits) = lines::decimal(rest)?;
    Some((number, &rest[digits..]))
}

#[inline]
fn plain(outcome: Outcome) -> Step<'static> {
    Step::Reply { tag: None, outcome, message: &[] }
}

/// The words that are a whole reply.
fn outcome(word: &[u8]) -> Option<Outcome> {
    Some(match word {
        b"STORED" => Outcome::Stored,
        b"NOT_STORED" => Outcome::NotStored,
        b"EXISTS" => Outcome::Exists,
        b"NOT_FOUND" => Outcome::NotFound,
        b"DELETED" => Outcome::Deleted,
        b"TOUCHED" => Outcome::Touched,
        b"OK" | b"RESET" => Outcome::Ok,
        _ => return None,
    })
}

/// The words that say that a request failed. The second line of words answers `slabs` and `lru_crawler`, which pummel
/// never sends; they are here because the protocol names them.
fn fault(word: &[u8]) -> Option<Outcome> {
    let fault = match word {
        b"ERROR" => Fault::Protocol,
        b"CLIENT_ERROR" | b"BADCLASS" | b"SAME" => Fault::Client,
        b"SERVER_ERROR" | b"SERVER_ERROR:" | b"BUSY" | b"NOSPARE" | b"NOTFULL" | b"UNSAFE" => Fault::Server,
        _ => return None,
    };
    Some(Outcome::Error(fault))
}

fn number(word: &[u8], text: &[u8]) -> Result<Step<'static>, Malformed> {
    if text.iter().any(|&byte| byte != b' ') {
        return Err(Malformed("a number is followed by words"));
    }
    match lines::whole_decimal(word) {
        Some(number) => Ok(plain(Outcome::Number(number))),
        None => Err(Malformed("a number is no decimal of 64 bits")),
    }
}

/// The reason why no line of the protocol begins with this byte. The check looks at the first byte alone, since the
/// rest may never come.
#[cold]
pub(super) fn foreign(first: u8) -> Malformed {
    Malformed(match first {
        b'-' | b'+' | b'$' | b':' | b'*' | b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'>'
        | b'|' => "the reply looks like RESP (Redis, Valkey), not like memcached's text protocol",
        0x80 | 0x81 => "the reply looks like memcached's binary protocol, not like its text protocol",
        0x15 | 0x16 => "the reply looks like TLS, and this connection has none",
        _ => "a reply begins with a byte that memcached's text protocol does not have there",
    })
}

/// The reason why no line of the protocol begins with this word.
#[cold]
fn unknown(word: &[u8]) -> Malformed {
    Malformed(match word {
        b"END" => "an END line has more words than the protocol knows",
        b"VERSION" => "a VERSION line names no version",
        b"HD" | b"VA" | b"EN" | b"NF" | b"NS" | b"EX" | b"MN" | b"ME" => {
            "the reply looks like memcached's meta protocol, not like its classic text protocol"
        }
        b"STAT" | b"ITEM" => "the server sends statistics that were not requested",
        word if word.starts_with(b"HTTP/") => "the reply looks like HTTP, not like memcached's text protocol",
        _ => "a reply line begins with a word that the protocol does not know",
    })
}
