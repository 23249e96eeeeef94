//! Values of RESP2 and RESP3 in bytes that hold a whole reply or its beginning.

use crate::protocol::lines::{self, LINE_MAX_BYTES};

/// Most arrays and maps around a value.
const DEPTH_MAX: u32 = 8;

/// Longest string in a reply; names and identities of nodes are far shorter.
const STRING_MAX_BYTES: u64 = 65_536;

/// Why a value is not read.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes end before the value does.
    Need,
    /// The value is not of its form, for this reason.
    Malformed(&'static str),
}

/// The failure of a reply that is not of its form.
pub(super) fn malformed<T>(why: &'static str) -> Result<T, Stop> {
    Err(Stop::Malformed(why))
}

/// A value, or the beginning of one that holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A simple string or a bulk string.
    Text(&'a [u8]),
    /// The message of an error.
    Error(&'a [u8]),
    /// An integer number.
    Integer(i64),
    /// A null of RESP3, or a null string or null array of RESP2.
    Null,
    /// A value that no reply about a cluster needs: boolean, double, big number, verbatim string.
    Other,
    /// An array or a set of this many values, which follow.
    List(u64),
    /// A map of this many values, which follow: each entry has two.
    Map(u64),
    /// A push message of this many values, which answers no request.
    Push(u64),
}

/// The bytes that are not read yet.
#[derive(Debug)]
pub(super) struct Values<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Values<'a> {
    /// Takes a value, or the beginning of one. `depth` is the number of arrays and maps around it.
    pub(super) fn take(&mut self, depth: u32) -> Result<Value<'a>, Stop> {
        loop {
            let first = *self.rest.first().ok_or(Stop::Need)?;
            if !b"+-:$*_#,(!=%~|>".contains(&first) {
                return malformed("the reply is not one of RESP (Redis, Valkey)");
            }
            let rest = &self.line()?[1..];
            return Ok(match first {
                b'+' => Value::Text(rest),
                b'-' => Value::Error(rest),
                b':' => Value::Integer(integer(rest)?),
                b'$' | b'*' if rest == b"-1" => Value::Null,
                b'$' => Value::Text(self.string(rest)?),
                b'!' => Value::Error(self.string(rest)?),
                b'=' => self.string(rest).map(|_| Value::Other)?,
                b'*' | b'~' => Value::List(count(rest, 1)?),
                b'%' => Value::Map(count(rest, 2)?),
                b'>' => Value::Push(count(rest, 1)?),
                b'_' => Value::Null,
                b'|' => {
                    self.skip(Value::Map(count(rest, 2)?), depth)?;
                    continue;
                }
                _ => Value::Other,
            });
        }
    }

    /// Takes everything that a value holds, which has begun.
    pub(super) fn skip(&mut self, value: Value<'_>, depth: u32) -> Result<(), Stop> {
        let (Value::List(values) | Value::Map(values) | Value::Push(values)) = value else { return Ok(()) };
        if depth >= DEPTH_MAX {
            return malformed("the values of the reply are nested too deeply");
        }
        for _ in 0..values {
            let inner = self.take(depth + 1)?;
            self.skip(inner, depth + 1)?;
        }
        Ok(())
    }

    /// Takes a line and returns it without its end.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let window = &self.rest[..self.rest.len().min(LINE_MAX_BYTES)];
        let Some(feed) = window.iter().position(|&byte| byte == b'\n') else {
            return if window.len() < LINE_MAX_BYTES {
                Err(Stop::Need)
            } else {
                malformed("a line is too long")
            };
        };
        self.rest = &self.rest[feed + 1..];
        match window[..feed].strip_suffix(b"\r") {
            Some(line) => Ok(line),
            None => malformed("a line ends in a bare line feed, where the protocol has CR LF"),
        }
    }

    /// Takes the string that follows its length.
    fn string(&mut self, digits: &[u8]) -> Result<&'a [u8], Stop> {
        let size = count(digits, 1)?;
        if size > STRING_MAX_BYTES {
            return malformed("a string is too long");
        }
        let size = size as usize;
        let end = self.rest.get(size..size + 2).ok_or(Stop::Need)?;
        if end != b"\r\n" {
            return malformed("a string does not end where its length says");
        }
        let text = &self.rest[..size];
        self.rest = &self.rest[size + 2..];
        Ok(text)
    }
}

fn integer(digits: &[u8]) -> Result<i64, Stop> {
    let (negative, digits) = digits.strip_prefix(b"-").map_or((false, digits), |digits| (true, digits));
    let number = lines::whole_decimal(digits).and_then(|number| i64::try_from(number).ok());
    number.map_or_else(
        || malformed("an integer is no decimal"),
        |number| Ok(if negative { -number } else { number }),
    )
}

/// The number of values that follow, where each entry has `each`, or the length of a string.
fn count(digits: &[u8], each: u64) -> Result<u64, Stop> {
    let count = lines::whole_decimal(digits).and_then(|count| count.checked_mul(each));
    count.map_or_else(|| malformed("a length is no decimal"), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(bytes: &[u8]) -> Result<(Value<'_>, &[u8]), Stop> {
        let mut values = Values { rest: bytes };
        let value = values.take(0)?;
        Ok((value, values.rest))
    }

    fn is_malformed(bytes: &[u8]) -> bool {
        matches!(take(bytes), Err(Stop::Malformed(_)))
    }

    #[test]
    fn values_of_every_type_are_read() {
        for (text, expected) in [
            ("+OK\r\n", Value::Text(b"OK")),
            ("-ERR no\r\n", Value::Error(b"ERR no")),
            (":-7\r\n", Value::Integer(-7)),
            ("$3\r\na\r\n\r\n", Value::Text(b"a\r\n")),
            ("$0\r\n\r\n", Value::Text(b"")),
            ("$-1\r\n", Value::Null),
            ("*-1\r\n", Value::Null),
            ("_\r\n", Value::Null),
            ("*3\r\n", Value::List(3)),
            ("~3\r\n", Value::List(3)),
            ("%3\r\n", Value::Map(6)),
            (">3\r\n", Value::Push(3)),
            ("!6\r\nERR no\r\n", Value::Error(b"ERR no")),
            ("=7\r\ntxt:abc\r\n", Value::Other),
            ("#t\r\n", Value::Other),
            (",1.5\r\n", Value::Other),
            ("(123\r\n", Value::Other),
            ("|1\r\n+a\r\n*1\r\n:1\r\n:9\r\n", Value::Integer(9)),
        ] {
            let stream = format!("{text}rest");
            let (value, rest) = take(stream.as_bytes()).unwrap();
            assert_eq!((value, rest), (expected, &b"rest"[..]), "{text}");
            for cut in 0..text.len() {
                assert!(matches!(take(&text.as_bytes()[..cut]), Err(Stop::Need)), "{text} cut at {cut}");
            }
        }
    }

    #[test]
    fn values_that_are_not_of_their_form_are_refused() {
        for text in [
            "x",
            "\r\n",
            "+OK\n",
            ":\r\n",
            ":1.5\r\n",
            ":9223372036854775808\r\n",
            "$-2\r\n",
            "$x\r\n",
            "$?\r\n",
            "$65537\r\n",
            "$1\r\nab\r\n",
            "*-2\r\n",
            "*18446744073709551616\r\n",
            "%9223372036854775808\r\n",
        ] {
            assert!(is_malformed(text.as_bytes()), "{text:?}");
        }
        let long = [&b"+"[..], &[b'x'; LINE_MAX_BYTES]].concat();
        assert!(is_malformed(&long) && !is_malformed(&long[..LINE_MAX_BYTES - 1]));
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = |depth: usize| format!("|1\r\n+a\r\n{}:1\r\n:2\r\n", "*1\r\n".repeat(depth));
        assert_eq!(take(deep(7).as_bytes()).unwrap().0, Value::Integer(2));
        assert!(is_malformed(deep(8).as_bytes()));
        assert!(is_malformed("|1\r\n".repeat(100_000).as_bytes()));
    }
}
