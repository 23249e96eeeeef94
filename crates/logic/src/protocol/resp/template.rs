//! A RESP command with places that each request fills: `ZADD __key__ __number__ __value__`.

use std::fmt;

use super::encode::{push_bulk, push_bulk_number};
use crate::connection::outbox::Outbox;
use crate::protocol::{Keys, Op, Refused};

/// The places by the words that name them.
const PLACES: [(&[u8], Part); 3] =
    [(b"__key__", Part::Key), (b"__number__", Part::Number), (b"__value__", Part::Value)];

/// Commands after which replies no longer come one for each request, or in another form.
const UNSUITABLE: [&str; 9] =
    ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC", "HELLO", "QUIT", "RESET"];

/// Commands with keys that are reads by the flags of Redis 8 (COMMAND: `readonly`).
#[rustfmt::skip]
const READS: [&str; 81] = [
    "BITCOUNT", "BITFIELD_RO", "BITPOS", "DUMP", "EVAL_RO", "EVALSHA_RO", "EXISTS", "EXPIRETIME", "FCALL_RO", "GEODIST",
    "GEOHASH", "GEOPOS", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO", "GEOSEARCH", "GET", "GETBIT", "GETRANGE", "HEXISTS",
    "HEXPIRETIME", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HPEXPIRETIME", "HPTTL", "HRANDFIELD", "HSCAN", "HSTRLEN",
    "HTTL", "HVALS", "LCS", "LINDEX", "LLEN", "LPOS", "LRANGE", "MGET", "PEXPIRETIME", "PFCOUNT", "PTTL", "SCARD", "SDIFF",
    "SINTER", "SINTERCARD", "SISMEMBER", "SMEMBERS", "SMISMEMBER", "SORT_RO", "SRANDMEMBER", "SSCAN", "STRLEN", "SUBSTR",
    "SUNION", "TOUCH", "TTL", "TYPE", "XLEN", "XPENDING", "XRANGE", "XREAD", "XREVRANGE", "ZCARD", "ZCOUNT", "ZDIFF",
    "ZINTER", "ZINTERCARD", "ZLEXCOUNT", "ZMSCORE", "ZRANDMEMBER", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE", "ZRANK",
    "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE", "ZREVRANK", "ZSCAN", "ZSCORE", "ZUNION",
];

/// Commands whose second word decides whether they are reads, with those second words.
const READS_BY_SECOND_WORD: [(&str, &[&str]); 3] = [
    ("MEMORY", &["USAGE"]),
    ("OBJECT", &["ENCODING", "FREQ", "IDLETIME", "REFCOUNT"]),
    ("XINFO", &["CONSUMERS", "GROUPS", "STREAM"]),
];

/// A command, ready to be written for any request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The words, as they are on the wire.
    pieces: Vec<Piece>,
    reads: bool,
}

/// A piece of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Bytes of the protocol that are the same in every request.
    Fixed(Vec<u8>),
    /// A word that is one place and nothing else.
    Place(Part),
    /// A word with a place in it.
    Word(Vec<Part>),
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Key,
    Number,
    Value,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The command has no word.
    Empty,
    /// A quote is not closed.
    Open,
    /// A closing quote is not followed by a blank.
    Glued,
    /// The first word is a place, or has one in it.
    NoCommand,
    /// A place with an unknown name.
    Place(String),
    /// A command whose replies cannot be distinguished from those of other requests.
    Unsuitable(&'static str),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Empty => to.write_str("a command needs at least one word"),
            TemplateError::Open => to.write_str("a quote in the command is not closed"),
            TemplateError::Glued => to.write_str("a closing quote in the command is not followed by a blank"),
            TemplateError::NoCommand => to.write_str("the first word of a command is its name, and no place"),
            TemplateError::Place(word) => {
                write!(to, "the places of a command are __key__, __number__ and __value__, and not '{word}'")
            }
            TemplateError::Unsuitable(name) => {
                write!(to, "{name} does not get one reply for each request, so it cannot be measured")
            }
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a template: words between blanks, with the quotes of Redis' command line. In double quotes `\n`, `\r`,
    /// `\t`, `\a`, `\b` and `\xHH` stand for a byte and any other character after a backslash for itself; in single
    /// quotes only `\'` does. A place may be a whole word or part of one, in quotes too.
    ///
    /// # Errors
    /// Returns [`TemplateError::Empty`] for a text without words, [`TemplateError::Open`] or [`TemplateError::Glued`]
    /// for a quote without its end or without a blank behind it, [`TemplateError::NoCommand`] for a place in the
    /// first word, [`TemplateError::Place`] for a place of another name, and [`TemplateError::Unsuitable`] for a
    /// command without one reply for each request.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let words = split(text.as_bytes())?;
        let words: Vec<Vec<Part>> = words.iter().map(|word| parts_of(word)).collect::<Result<_, _>>()?;
        let name = match words.first().map(Vec::as_slice) {
            None => return Err(TemplateError::Empty),
            Some([Part::Text(name)]) => name,
            Some(_) => return Err(TemplateError::NoCommand),
        };
        if let Some(unsuitable) = unsuitable(name, words.get(1)) {
            return Err(TemplateError::Unsuitable(unsuitable));
        }
        let reads = is_read(name, words.get(1));
        Ok(Template { pieces: pieces_of(words), reads })
    }

    /// Whether the command is a read by the flags that Redis gives it, so that a replica answers it.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// Writes the command for a request.
    pub(super) fn push(&self, op: &Op<'_>, out: &mut Outbox) -> Result<(), Refused> {
        let Keys::One(key) = op.keys else { return Err(Refused("a command has the place of one key")) };
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(bytes) => out.push(bytes),
                Piece::Place(Part::Key) => push_bulk(out, key),
                Piece::Place(Part::Number) => push_bulk_number(out, op.delta),
                Piece::Place(Part::Value) => super::encode::push_value(out, &op.value),
                Piece::Place(Part::Text(text)) => push_bulk(out, text),
                Piece::Word(parts) => push_word(parts, key, op, out),
            }
        }
        Ok(())
    }
}

/// Writes a word of several parts.
fn push_word(parts: &[Part], key: &[u8], op: &Op<'_>, out: &mut Outbox) {
    let len = parts.iter().map(|part| match part {
        Part::Text(text) => text.len(),
        Part::Key => key.len(),
        Part::Number => op.delta.checked_ilog10().unwrap_or(0) as usize + 1,
        Part::Value => op.value.len(),
    });
    out.push(b"$");
    out.push_decimal(len.sum::<usize>() as u64);
    out.push(b"\r\n");
    for part in parts {
        match part {
            Part::Text(text) => out.push(text),
            Part::Key => out.push(key),
            Part::Number => out.push_decimal(op.delta),
            Part::Value => {
                op.value.push_to(out);
            }
        }
    }
    out.push(b"\r\n");
}

/// Whether a command is a read by the flags of Redis 8.
fn is_read(name: &[u8], second: Option<&Vec<Part>>) -> bool {
    let is = |word: &&str| name.eq_ignore_ascii_case(word.as_bytes());
    let is_second = |words: &[&str]| match second.map(Vec::as_slice) {
        Some([Part::Text(word)]) => words.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())),
        _ => false,
    };
    match READS_BY_SECOND_WORD.iter().find(|(first, _)| is(first)) {
        Some((_, seconds)) => is_second(seconds),
        None => READS.iter().any(is),
    }
}

/// The name of the command, where it is one that cannot be measured.
fn unsuitable(name: &[u8], second: Option<&Vec<Part>>) -> Option<&'static str> {
    let second_is_reply =
        matches!(second.map(Vec::as_slice), Some([Part::Text(word)]) if word.eq_ignore_ascii_case(b"REPLY"));
    if name.eq_ignore_ascii_case(b"CLIENT") && second_is_reply {
        return Some("CLIENT REPLY");
    }
    UNSUITABLE.into_iter().find(|unsuitable| name.eq_ignore_ascii_case(unsuitable.as_bytes()))
}

/// Words on the wire: what is fixed is written out, and joined.
fn pieces_of(words: Vec<Vec<Part>>) -> Vec<Piece> {
    let mut fixed = format!("*{}\r\n", words.len()).into_bytes();
    let mut pieces = Vec::new();
    for word in words {
        if let [Part::Text(text)] = &word[..] {
            fixed.extend(format!("${}\r\n", text.len()).bytes());
            fixed.extend_from_slice(text);
            fixed.extend(b"\r\n");
            continue;
        }
        let piece = match <[Part; 1]>::try_from(word) {
            Ok([place]) => Piece::Place(place),
            Err(word) => Piece::Word(word),
        };
        pieces.extend([Piece::Fixed(std::mem::take(&mut fixed)), piece]);
    }
    pieces.push(Piece::Fixed(fixed));
    pieces.retain(|piece| *piece != Piece::Fixed(Vec::new()));
    pieces
}

/// Finds the places in a word. An empty word is one empty text.
fn parts_of(word: &[u8]) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        if let Some((name, part)) = PLACES.iter().find(|(name, _)| rest.starts_with(name)) {
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(part.clone());
            rest = &rest[name.len()..];
        } else if let Some(name) = place_name(rest) {
            return Err(TemplateError::Place(String::from_utf8_lossy(name).into_owned()));
        } else {
            text.push(first);
            rest = after;
        }
    }
    if !text.is_empty() || parts.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// The word in the form of a place, `__letters__`, that `bytes` begin with.
fn place_name(bytes: &[u8]) -> Option<&[u8]> {
    let letters = bytes.strip_prefix(b"__")?;
    let len = letters.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    (len > 0 && letters[len..].starts_with(b"__")).then(|| &bytes[..len + 4])
}

/// Splits at blanks, and takes quotes off.
fn split(mut text: &[u8]) -> Result<Vec<Vec<u8>>, TemplateError> {
    let mut words = Vec::new();
    loop {
        text = text.trim_ascii_start();
        let Some((&first, after)) = text.split_first() else { return Ok(words) };
        let mut word = Vec::new();
        if matches!(first, b'"' | b'\'') {
            text = unquote(first, after, &mut word)?;
            if text.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                return Err(TemplateError::Glued);
            }
        } else {
            let len = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
            word.extend_from_slice(&text[..len]);
            text = &text[len..];
        }
        words.push(word);
    }
}

/// Reads up to the closing quote, and returns what follows it.
fn unquote<'a>(quote: u8, mut text: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], TemplateError> {
    loop {
        let (byte, rest) = match (quote, text) {
            (_, []) => return Err(TemplateError::Open),
            (_, [byte, rest @ ..]) if *byte == quote => return Ok(rest),
            (b'"', [b'\\', b'x', high, low, rest @ ..]) if hex(*high).zip(hex(*low)).is_some() => {
                (hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0), rest)
            }
            (b'"', [b'\\', byte, rest @ ..]) => (escaped(*byte), rest),
            (b'\'', [b'\\', b'\'', rest @ ..]) => (b'\'', rest),
            (_, [byte, rest @ ..]) => (*byte, rest),
        };
        word.push(byte);
        text = rest;
    }
}

fn escaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        byte => byte,
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::contract::sent;
    use crate::protocol::{Rest, Value, Verb};
    use proptest::prelude::{prop_assert, proptest};

    fn written(text: &str) -> Result<String, TemplateError> {
        let op = Op {
            value: Value { own: b"own ", rest: Rest::Text { bytes: b"and shared", at: 3 } },
            delta: 100,
            ..Op::new(Verb::Command, b"key")
        };
        let mut out = Outbox::default();
        Template::parse(text)?.push(&op, &mut out).expect("one key");
        Ok(String::from_utf8(sent(&out)).expect("these tests write ASCII"))
    }

    #[test]
    fn places_are_filled_and_all_else_stays() {
        for (text, wire) in [
            ("PING", "*1\r\n$4\r\nPING\r\n"),
            (
                "  zadd  __key__ __number__\t__value__ ",
                "*4\r\n$4\r\nzadd\r\n$3\r\nkey\r\n$3\r\n100\r\n$14\r\nown and shared\r\n",
            ),
            ("GETRANGE __key__ 0 9", "*4\r\n$8\r\nGETRANGE\r\n$3\r\nkey\r\n$1\r\n0\r\n$1\r\n9\r\n"),
            ("GET user:__key__:__number__", "*2\r\n$3\r\nGET\r\n$12\r\nuser:key:100\r\n"),
            ("SET k <__value__>", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16\r\n<own and shared>\r\n"),
            ("GET __key____key__", "*2\r\n$3\r\nGET\r\n$6\r\nkeykey\r\n"),
            ("GET '__key__ x'", "*2\r\n$3\r\nGET\r\n$5\r\nkey x\r\n"),
            ("SET a \"\"", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n"),
            ("GET __init", "*2\r\n$3\r\nGET\r\n$6\r\n__init\r\n"),
        ] {
            assert_eq!(written(text).as_deref(), Ok(wire), "{text}");
        }
    }

    #[test]
    fn reads_are_known_by_the_flags_of_redis() {
        let reads = |text: &str| Template::parse(text).expect("a command").reads();
        for text in [
            "GET __key__",
            "zrange __key__ 0 -1",
            "TOUCH __key__",
            "OBJECT encoding __key__",
            "SORT_RO __key__",
            "XREAD COUNT 1 STREAMS __key__ 0",
        ] {
            assert!(reads(text), "{text}");
        }
        for text in [
            "GETEX __key__",
            "GETDEL __key__",
            "SORT __key__",
            "BITFIELD __key__ GET u8 0",
            "BLPOP __key__ 1",
            "EVAL 'return 1' 1 __key__",
            "OBJECT FREEZE __key__",
            "OBJECT __key__",
            "OBJECT",
            "PING",
        ] {
            assert!(!reads(text), "{text}");
        }
    }

    #[test]
    fn quotes_are_those_of_redis_command_line() {
        for (text, word) in [
            (r#"ECHO "a b""#, "a b"),
            (r#"ECHO "a\n\r\t\"\\\x41\q""#, "a\n\r\t\"\\Aq"),
            (r"ECHO 'a\n \'b\''", r"a\n 'b'"),
            (r#"ECHO "\x4""#, "x4"),
        ] {
            let wire = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{word}\r\n", word.len());
            assert_eq!(written(text), Ok(wire), "{text}");
        }
    }

    #[test]
    fn a_number_of_one_digit_has_the_length_1() {
        for (delta, digits) in [(0, "0"), (9, "9"), (10, "10"), (u64::MAX, "18446744073709551615")] {
            let mut out = Outbox::default();
            let template = Template::parse("ECHO <__number__>").expect("a command");
            let op = Op { delta, ..Op::new(Verb::Command, b"key") };
            assert_eq!(template.push(&op, &mut out), Ok(()));
            let wire = format!("*2\r\n$4\r\nECHO\r\n${}\r\n<{digits}>\r\n", digits.len() + 2);
            assert_eq!(sent(&out), wire.as_bytes());
        }
    }

    #[test]
    fn a_text_that_is_no_template_is_refused_with_its_reason() {
        for (text, error) in [
            ("", TemplateError::Empty),
            ("  ", TemplateError::Empty),
            ("GET \"a", TemplateError::Open),
            ("GET 'a\\'", TemplateError::Open),
            ("GET \"a\"b", TemplateError::Glued),
            ("__key__", TemplateError::NoCommand),
            ("GET__key__ x", TemplateError::NoCommand),
            ("SET __key__ __data__", TemplateError::Place("__data__".to_string())),
            ("SUBSCRIBE __key__", TemplateError::Unsuitable("SUBSCRIBE")),
            ("monitor", TemplateError::Unsuitable("MONITOR")),
            ("client reply off", TemplateError::Unsuitable("CLIENT REPLY")),
        ] {
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
        assert!(Template::parse("CLIENT ID").is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            if let Ok(wire) = written(&text) {
                prop_assert!(wire.starts_with('*'));
            }
        }
    }
}
