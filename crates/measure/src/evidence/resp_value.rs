//! Nested values of RESP2 and RESP3, read from bytes that may end anywhere.

/// Deepest nesting of lists.
const DEPTH_MAX: usize = 8;

/// A value of an answer. Maps are lists of names and values in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespValue<'a> {
    /// A whole number.
    Number(i64),
    /// Text of any kind; nothing is empty text.
    Text(&'a [u8]),
    /// Values in their order.
    List(Vec<RespValue<'a>>),
}

/// The result of reading the beginning of a server's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespRead<'a> {
    /// The value is not complete.
    More,
    /// The value is complete, and has this many bytes.
    Whole(RespValue<'a>, usize),
    /// The bytes are no value, or one that is deeper or longer than any answer.
    Wrong,
}

impl<'a> RespValue<'a> {
    /// Reads a value off the front of `bytes` that is at most `values_max` values, those within lists included.
    pub fn read(bytes: &'a [u8], values_max: usize) -> RespRead<'a> {
        let mut reader = Reader { rest: bytes, left: values_max };
        match reader.value(DEPTH_MAX) {
            Ok(value) => RespRead::Whole(value, bytes.len() - reader.rest.len()),
            Err(Stop::More) => RespRead::More,
            Err(Stop::Wrong) => RespRead::Wrong,
        }
    }

    /// The number, where the value is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            RespValue::Number(number) => Some(*number),
            RespValue::Text(_) | RespValue::List(_) => None,
        }
    }

    /// The text, where the value is one.
    pub fn text(&self) -> Option<&'a [u8]> {
        match self {
            RespValue::Text(text) => Some(text),
            RespValue::Number(_) | RespValue::List(_) => None,
        }
    }

    /// The values of a list; none where the value is no list.
    pub fn list(&self) -> &[RespValue<'a>] {
        match self {
            RespValue::List(values) => values,
            RespValue::Number(_) | RespValue::Text(_) => &[],
        }
    }
}

/// Reason why a value cannot be read to its end.
enum Stop {
    More,
    Wrong,
}

struct Reader<'a> {
    rest: &'a [u8],
    /// Values that may still come.
    left: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<RespValue<'a>, Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::Wrong)?;
        let line = self.line()?;
        let (kind, words) = line.split_first().ok_or(Stop::Wrong)?;
        match kind {
            b':' => number_of(words).map(RespValue::Number).ok_or(Stop::Wrong),
            b'$' | b'=' if words == b"-1" => Ok(RespValue::Text(b"")),
            b'$' => self.text(words).map(RespValue::Text),
            b'=' => self.text(words).map(|text| RespValue::Text(text.get(4..).unwrap_or_default())),
            b'+' | b',' | b'#' | b'(' => Ok(RespValue::Text(words)),
            b'_' => Ok(RespValue::Text(b"")),
            b'*' if words == b"-1" => Ok(RespValue::List(Vec::new())),
            b'*' | b'~' | b'>' => self.list(words, 1, depth),
            b'%' => self.list(words, 2, depth),
            _ => Err(Stop::Wrong),
        }
    }

    /// A line without its end.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') else {
            // The first byte decides what a line is.
            let is_known = self.rest.first().is_none_or(|byte| b":$=+,#(_*~>%".contains(byte));
            return Err(if is_known { Stop::More } else { Stop::Wrong });
        };
        let (line, tail) = self.rest.split_at(end);
        self.rest = &tail[1..];
        line.strip_suffix(b"\r").ok_or(Stop::Wrong)
    }

    fn text(&mut self, digits: &[u8]) -> Result<&'a [u8], Stop> {
        let len = number_of(digits).and_then(|len| usize::try_from(len).ok());
        let len = len.filter(|&len| len <= u32::MAX as usize).ok_or(Stop::Wrong)?;
        let Some((text, tail)) = self.rest.split_at_checked(len).filter(|(_, tail)| tail.len() >= 2) else {
            return Err(Stop::More);
        };
        self.rest = tail.strip_prefix(b"\r\n").ok_or(Stop::Wrong)?;
        Ok(text)
    }

    fn list(&mut self, digits: &[u8], each: usize, depth: usize) -> Result<RespValue<'a>, Stop> {
        let count = number_of(digits).and_then(|count| usize::try_from(count).ok());
        let count = count.and_then(|count| count.checked_mul(each)).filter(|&count| count <= self.left);
        let (Some(count), Some(depth)) = (count, depth.checked_sub(1)) else { return Err(Stop::Wrong) };
        // A server that says a great number sends as many before it has their memory.
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(depth)?);
        }
        Ok(RespValue::List(values))
    }
}

fn number_of(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::*;

    const VALUES_MAX: usize = 16_384;
    const NESTED: &[u8] = b"*3\r\n:-5\r\n%1\r\n$3\r\nget\r\n*2\r\n:16\r\n+one\r\n=7\r\ntxt:abc\r\n";

    fn nested() -> RespValue<'static> {
        use RespValue::{List, Number, Text};
        List(vec![Number(-5), List(vec![Text(b"get"), List(vec![Number(16), Text(b"one")])]), Text(b"abc")])
    }

    #[test]
    fn a_nested_value_is_read_when_its_last_byte_is_there() {
        for cut in 0..NESTED.len() {
            assert_eq!(RespValue::read(&NESTED[..cut], VALUES_MAX), RespRead::More, "cut at {cut}");
        }
        let more = [NESTED, b"*1"].concat();
        assert_eq!(RespValue::read(&more, VALUES_MAX), RespRead::Whole(nested(), NESTED.len()));
        let RespRead::Whole(value, _) = RespValue::read(NESTED, VALUES_MAX) else { panic!("it is whole") };
        assert_eq!((value.list().len(), value.list()[0].number(), value.number()), (3, Some(-5), None));
        assert_eq!((value.list()[2].text(), value.text()), (Some(&b"abc"[..]), None));
    }

    #[test]
    fn nothing_is_empty() {
        for (bytes, value) in [
            (&b"$-1\r\n"[..], RespValue::Text(b"")),
            (b"_\r\n", RespValue::Text(b"")),
            (b"*-1\r\n", RespValue::List(Vec::new())),
            (b"%0\r\n", RespValue::List(Vec::new())),
        ] {
            assert_eq!(RespValue::read(bytes, VALUES_MAX), RespRead::Whole(value, bytes.len()));
        }
    }

    #[test]
    fn what_is_no_value_or_deeper_or_longer_than_any_answer_is_wrong() {
        let deep = b"*1\r\n".repeat(DEPTH_MAX + 1);
        let long = [&b"*16000\r\n"[..], &b"*2\r\n:1\r\n:2\r\n".repeat(16_000)].concat();
        for bytes in [
            &b"HTTP/1.1 400\r\n"[..],
            b"HTTP",
            b"\xfe\xff",
            b"-ERR no\r\n",
            b":x\r\n",
            b"$5\r\nabcdefg\r\n",
            b"$-7\r\n",
            b"$99999999999999999999\r\n",
            b"*99999999\r\n",
            b"%9223372036854775807\r\n",
            b"*1\n:1\r\n",
            b"\r\n",
            &deep,
            &long,
        ] {
            let head = String::from_utf8_lossy(&bytes[..bytes.len().min(30)]).into_owned();
            assert_eq!(RespValue::read(bytes, VALUES_MAX), RespRead::Wrong, "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..NESTED.len()) {
            for stream in [bytes.clone(), [&NESTED[..cut], &bytes[..]].concat()] {
                if let RespRead::Whole(_, len) = RespValue::read(&stream, VALUES_MAX) {
                    assert!(len <= stream.len());
                }
            }
        }
    }
}
