//! The first line of a RESP value: its type, and the number in it.

use crate::protocol::sized_value::after_value;
use crate::protocol::{Fault, Malformed, Outcome, Skimmed, lines};

/// The type of a value, read from its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueHead {
    /// A simple string.
    Status(StatusWord),
    /// A simple error.
    Error(Fault),
    /// An integer number.
    Integer(i64),
    /// A bulk string whose bytes, this many, follow.
    String(u32),
    /// An error whose bytes, this many, follow.
    ErrorString(u32),
    /// A verbatim string whose bytes, this many, follow.
    Verbatim(u32),
    /// A null: RESP3's null, or RESP2's null string or null array.
    Null,
    /// A value that is complete with its first line: boolean, double or big number.
    Plain,
    /// An array of this many values, which follow.
    Array(u64),
    /// A set or a map with this many values, which follow; each entry of a map has two.
    Group(u64),
    /// The attributes of the value that follows them, with this many values.
    Attribute(u64),
    /// A push message with this many values, which answers no request.
    Push(u64),
}

/// The words of simple strings that requests tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusWord {
    /// The word `OK`.
    Ok,
    /// `none`, the type of a key that does not exist.
    None,
    /// Any other word.
    Other,
}

impl StatusWord {
    #[inline]
    fn of(text: &[u8]) -> StatusWord {
        match text {
            b"OK" => StatusWord::Ok,
            b"none" => StatusWord::None,
            _ => StatusWord::Other,
        }
    }
}

/// Whether a value that begins so is text for people or a number without end, and may be of any length.
pub(super) fn may_be_long(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'+' | b'-' | b'('))
}

/// Checks that a value of this version of RESP can begin with this byte. The rest of the line is not needed, since it
/// may never come.
#[inline]
pub(super) fn check_first(first: u8, version: u8) -> Result<(), Malformed> {
    match first {
        b'+' | b'-' | b':' | b'$' | b'*' => Ok(()),
        b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'|' | b'>' if version >= 3 => Ok(()),
        _ => Err(foreign(first)),
    }
}

/// The reason why no value of the protocol begins with this byte.
#[cold]
fn foreign(first: u8) -> Malformed {
    Malformed(match first {
        b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'|' | b'>' => {
            "the server answers in RESP3, and this connection speaks RESP2"
        }
        b'H' => "the reply looks like HTTP, not like RESP (Redis, Valkey)",
        b'A'..=b'Z' => "the reply looks like memcached's text protocol, not like RESP (Redis, Valkey)",
        0x80 | 0x81 => "the reply looks like memcached's binary protocol, not like RESP (Redis, Valkey)",
        0x15 | 0x16 => "the reply looks like TLS, and this connection has none",
        _ => "a reply begins with a byte that RESP does not have there",
    })
}

/// Reads the first line of a value, whose first byte was checked.
#[inline]
pub(super) fn head(line: &[u8]) -> Result<ValueHead, Malformed> {
    let Some((&first, rest)) = line.split_first() else {
        return Err(Malformed("an empty line, where a reply begins"));
    };
    match first {
        b'$' if rest == b"-1" => Ok(ValueHead::Null),
        b'$' => string_len(rest).map(ValueHead::String),
        b'+' => Ok(ValueHead::Status(StatusWord::of(rest))),
        b':' => integer(rest).map(ValueHead::Integer).ok_or(Malformed("an integer has not 64 bits")),
        b'*' if rest == b"-1" => Ok(ValueHead::Null),
        b'*' => count(rest, 1).map(ValueHead::Array),
        b'-' => Ok(ValueHead::Error(fault(rest))),
        _ => newer_head(first, rest),
    }
}

/// Takes the answer to a read of one key, where it is whole: a string, or nothing. Returns what follows. Anything else
/// is left to the reading of a line, which finds the same in these.
#[inline]
pub(super) fn whole_value(bytes: &[u8], version: u8) -> Option<(Skimmed, &[u8])> {
    let miss = Skimmed { outcome: Outcome::Miss, items: 0 };
    let Some(rest) = bytes.strip_prefix(b"$") else {
        return bytes.strip_prefix(b"_\r\n").filter(|_| version >= 3).map(|rest| (miss, rest));
    };
    let Some((size, digits)) = lines::decimal(rest) else {
        return rest.strip_prefix(b"-1\r\n").map(|rest| (miss, rest));
    };
    let value = rest.get(digits..)?.strip_prefix(b"\r\n")?;
    Some((Skimmed { outcome: Outcome::Hit, items: 1 }, after_value(value, size)?))
}

/// The types that only RESP3 has.
fn newer_head(first: u8, rest: &[u8]) -> Result<ValueHead, Malformed> {
    let plain = |well_formed| match well_formed {
        true => Ok(ValueHead::Plain),
        false => Err(Malformed("a boolean, a double or a big number is not of its form")),
    };
    match first {
        b'_' if rest.is_empty() => Ok(ValueHead::Null),
        b'_' => Err(Malformed("a null is followed by words")),
        b'#' => plain(matches!(rest, b"t" | b"f")),
        b',' => plain(is_double(rest)),
        b'(' => plain(is_big_number(rest)),
        b'!' => string_len(rest).map(ValueHead::ErrorString),
        b'=' => string_len(rest).map(ValueHead::Verbatim),
        b'~' => count(rest, 1).map(ValueHead::Group),
        b'%' => count(rest, 2).map(ValueHead::Group),
        b'|' => count(rest, 2).map(ValueHead::Attribute),
        _ => count(rest, 1).map(ValueHead::Push),
    }
}

/// Length of a string. Servers keep at most 512 MB in one, and more than 32 bits is no answer of any.
#[inline]
fn string_len(digits: &[u8]) -> Result<u32, Malformed> {
    lines::whole_decimal(digits).and_then(|len| u32::try_from(len).ok()).ok_or_else(|| no_length(digits))
}

/// Returns the number of values that follow, where each entry has `each`.
fn count(digits: &[u8], each: u64) -> Result<u64, Malformed> {
    lines::whole_decimal(digits).and_then(|count| count.checked_mul(each)).ok_or_else(|| no_length(digits))
}

/// Returns the fault of a length.
#[cold]
fn no_length(digits: &[u8]) -> Malformed {
    Malformed(match digits {
        b"?" => "a value is sent in pieces of unknown number, which no server is known to do",
        _ => "the length of a value is no decimal",
    })
}

fn integer(digits: &[u8]) -> Option<i64> {
    let (negative, digits) = match digits {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, digits),
    };
    let number = lines::whole_decimal(digits)?;
    if negative { 0i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() }
}

fn is_double(text: &[u8]) -> bool {
    let figures = || text.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    let number = || std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok());
    matches!(text, b"inf" | b"-inf" | b"nan" | b"-nan") || figures() && number()
}

fn is_big_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// The class of an error, by the first word of its message. Redis uses the word `ERR` for all errors that have no
/// word of their own.
pub(super) fn fault(words: &[u8]) -> Fault {
    let end = words.iter().position(|&byte| byte == b' ').unwrap_or(words.len());
    match &words[..end] {
        b"MOVED" | b"ASK" => Fault::Moved,
        b"CLUSTERDOWN" | b"MASTERDOWN" | b"LOADING" => Fault::Down,
        b"TRYAGAIN" => Fault::Again,
        b"ERR" if words.starts_with(b"ERR unknown command") || words.starts_with(b"ERR Protocol error") => {
            Fault::Protocol
        }
        b"ERR" if words.starts_with(b"ERR max number of clients") => Fault::Server,
        b"ERR" | b"WRONGTYPE" | b"CROSSSLOT" | b"NOSCRIPT" | b"NOPROTO" | b"EXECABORT" => Fault::Client,
        b"NOAUTH" | b"WRONGPASS" | b"NOPERM" | b"DENIED" => Fault::Client,
        _ => Fault::Server,
    }
}

/// Whether the line of a reply says more than its outcome.
pub(super) fn said(head: ValueHead, outcome: Outcome) -> bool {
    match (head, outcome) {
        (ValueHead::Status(word), _) => word != StatusWord::Ok,
        (ValueHead::Error(_), _) | (ValueHead::Integer(_), Outcome::Ok) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_an_error_says_what_kind_it_is() {
        for (words, expected) in [
            ("MOVED 3999 127.0.0.1:6381", Fault::Moved),
            ("ASK 3999 127.0.0.1:6381", Fault::Moved),
            ("CLUSTERDOWN The cluster is down", Fault::Down),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Fault::Down),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Fault::Again),
            ("LOADING Redis is loading the dataset in memory", Fault::Down),
            ("OOM command not allowed when used memory > 'maxmemory'.", Fault::Server),
            ("BUSY Redis is busy running a script.", Fault::Server),
            ("MISCONF Redis is configured to save RDB snapshots", Fault::Server),
            ("READONLY You can't write against a read only replica.", Fault::Server),
            ("ERR max number of clients reached", Fault::Server),
            ("NOAUTH Authentication required.", Fault::Client),
            ("WRONGPASS invalid username-password pair or user is disabled.", Fault::Client),
            ("NOPERM this user has no permissions to run the 'set' command", Fault::Client),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Fault::Client),
            ("CROSSSLOT Keys in request don't hash to the same slot", Fault::Client),
            ("ERR value is not an integer or out of range", Fault::Client),
            ("ERR", Fault::Client),
            ("ERR unknown command 'foo', with args beginning with: ", Fault::Protocol),
            ("ERR Protocol error: expected '$', got 'x'", Fault::Protocol),
            ("", Fault::Server),
        ] {
            assert_eq!(fault(words.as_bytes()), expected, "{words}");
        }
    }

    #[test]
    fn integers_have_64_bits_and_a_sign() {
        for (digits, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("+7", Some(7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("", None),
            ("-", None),
            ("--1", None),
            ("1 ", None),
        ] {
            assert_eq!(integer(digits.as_bytes()), number, "{digits}");
        }
    }

    #[test]
    fn doubles_are_numbers_or_words_of_their_own() {
        for text in ["1.23", "10", "-1.5e10", "1E-3", "inf", "-inf", "nan"] {
            assert!(is_double(text.as_bytes()), "{text}");
        }
        for text in ["", "infinity", "1.2.3", "x", "--1", "1 ", "e"] {
            assert!(!is_double(text.as_bytes()), "{text}");
        }
    }
}
