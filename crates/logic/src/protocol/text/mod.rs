//! memcached's classic text protocol, as its `protocol.txt` describes it.

use super::lines::{self, Lines};
use super::{
    Codec, Expect, Fault, Keys, Malformed, NOT_MEMCACHED, Op, Outcome, Refused, Skimmed, Step, Tag, Verb,
};
use crate::connection::outbox::Outbox;

/// Longest command line other than get and gets: memcached closes a connection that sends more without a line end.
const COMMAND_MAX_BYTES: usize = 2048;

/// The text protocol on one connection. Replies come in the order of requests and carry no tag.
///
/// The codec does not know what was asked: a reply that does not fit the request is the caller's to notice, and so is an
/// error line that answers a request without reply.
#[derive(Debug)]
pub struct Text {
    lines: Lines,
    reply: Reply,
    style: Style,
}

/// How command lines other than those of reads are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// As the protocol document has them.
    Plain,
    /// With a blank at their end, as mcperf writes them.
    Blank,
    /// The same, and `set` is called `xxx`.
    Bogus,
}

/// How far the reply that is being read has come.
#[derive(Debug)]
struct Reply {
    /// Bytes of the value that are still to come.
    body_left: u32,
    place: Place,
    /// Whether it has had an item.
    found: bool,
}

/// Where in the stream of replies the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a line.
    Line,
    /// In the bytes of a value.
    Body,
    /// Before the carriage return after a value.
    Return,
    /// Before the line feed after a value.
    Feed,
}

impl Codec for Text {
    const ERRORS_END_ANYWHERE: bool = true;

    fn new() -> Text {
        let reply = Reply { body_left: 0, place: Place::Line, found: false };
        Text { lines: Lines::default(), reply, style: Style::Plain }
    }

    fn renew(&self) -> Text {
        Text { style: self.style, ..Text::new() }
    }

    #[inline(always)]
    fn encode(&mut self, op: &Op<'_>, _tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        match op.verb {
            Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats => encode_read(op, out),
            Verb::Version if op.noreply => Err(Refused("version cannot be asked for without a reply")),
            Verb::Version => {
                out.push(b"version\r\n");
                Ok(Expect::Reply)
            }
            verb if verb.is_resp_only() => Err(NOT_MEMCACHED),
            // A copy, so that the fields of a read need no place in memory.
            _ => encode_change(&{ *op }, self.style, out),
        }
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        match self.reply.place {
            Place::Line => {}
            Place::Body => return Ok(self.reply.take_body(input)),
            Place::Return | Place::Feed => {
                if !self.reply.take_body_end(input)? {
                    return Ok(Step::Need);
                }
            }
        }
        if self.lines.at_start() {
            let Some(&first) = input.first() else { return Ok(Step::Need) };
            if let Some(step) = self.reply.take_common(first, input) {
                return Ok(step);
            }
            if !first.is_ascii_uppercase() && !first.is_ascii_digit() {
                return Err(foreign(first));
            }
        }
        match self.lines.take(input, is_error)? {
            None => Ok(Step::Need),
            Some(line) => self.reply.take_line(line),
        }
    }

    #[inline(always)]
    fn skim(&mut self, _oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        if self.reply.place != Place::Line || self.reply.found || !self.lines.at_start() {
            return None;
        }
        let (mut rest, mut items) = (*input, 0);
        while rest.first() == Some(&b'V') {
            rest = after_item(rest)?;
            items += 1;
        }
        let outcome = if let Some(after) = rest.strip_prefix(b"END\r\n") {
            rest = after;
            if items > 0 { Outcome::Hit } else { Outcome::Miss }
        } else {
            rest = rest.strip_prefix(b"STORED\r\n").filter(|_| items == 0)?;
            Outcome::Stored
        };
        *input = rest;
        Some(Skimmed { outcome, items })
    }
}

/// The word of mcperf's hidden method, which no server knows.
pub const BOGUS_WORD: &str = "xxx";

impl Text {
    /// The same, with a blank before the end of every command line that is not a read's and asks for a reply: mcperf's
    /// requests, byte by byte.
    pub fn with_blanks() -> Text {
        Text { style: Style::Blank, ..Text::new() }
    }

    /// The same as [`Text::with_blanks`], with [`BOGUS_WORD`] for `set`.
    pub fn with_bogus_sets() -> Text {
        Text { style: Style::Bogus, ..Text::new() }
    }

    /// Writes what proves who we are to a server that was started with a file of users, at the beginning of a
    /// connection: `Stored` is a yes, a fault of the client a no.
    ///
    /// # Errors
    /// Returns [`Refused`] for a user that is empty or has blanks, control characters or colons, and for a password
    /// with control characters.
    pub fn encode_auth(
        &mut self,
        user: &[u8],
        password: &[u8],
        _tag: Tag,
        out: &mut Outbox,
    ) -> Result<Expect, Refused> {
        lines::push_auth(user, password, out)
    }
}

/// Writes get, gets, gat and gats.
#[inline(always)]
fn encode_read(op: &Op<'_>, out: &mut Outbox) -> Result<Expect, Refused> {
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

/// Writes what stands before the keys of a read.
#[inline(always)]
fn push_read_word(op: &Op<'_>, out: &mut Outbox) {
    match op.verb {
        Verb::Get => out.push(b"get "),
        Verb::Gets => out.push(b"gets "),
        Verb::Gat => push_touching(b"gat ", op.expiry_s, out),
        _ => push_touching(b"gats ", op.expiry_s, out),
    }
}

/// Writes a word and the expiry behind it.
#[inline(never)]
fn push_touching(word: &[u8], expiry_s: i64, out: &mut Outbox) {
    out.push(word);
    lines::push_signed(out, expiry_s);
    out.push(b" ");
}

/// Writes everything that has exactly one key and may go without a reply.
#[inline(never)]
fn encode_change(op: &Op<'_>, style: Style, out: &mut Outbox) -> Result<Expect, Refused> {
    let Keys::One(key) = op.keys else { return Err(Refused("only reads take several keys")) };
    check_made_key(key, op)?;
    if op.verb.stores() || op.verb == Verb::Touch {
        lines::check_expiry(op.expiry_s)?;
    }
    let is_bogus = style == Style::Bogus && op.verb == Verb::Set;
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
        (false, Style::Plain) => b"\r\n",
        (false, Style::Blank | Style::Bogus) => b" \r\n",
    });
    if op.verb.stores() {
        out.push(op.value.own);
        out.push_shared(op.value.shared, op.value.shared_at);
        out.push(b"\r\n");
    }
    Ok(if op.noreply { Expect::Nothing } else { Expect::Reply })
}

/// Checks the one key of a request, unless that was done when it was made.
#[inline]
fn check_made_key(key: &[u8], op: &Op<'_>) -> Result<(), Refused> {
    if op.key_is_sure { Ok(()) } else { check_key(key) }
}

#[inline]
fn check_key(key: &[u8]) -> Result<(), Refused> {
    if lines::is_word(key) { Ok(()) } else { Err(refused_key(key)) }
}

/// What is wrong with a key.
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

impl Reply {
    /// Takes the replies that make up nearly all of a run, where they are whole, at the price of one comparison. Anything
    /// else is left to the full reading of a line, which finds the same in these.
    #[inline]
    fn take_common<'i>(&mut self, first: u8, input: &mut &'i [u8]) -> Option<Step<'i>> {
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
    /// More than the protocol document shows is taken in three places: errors without or with a text (memcached has both
    /// for ERROR, and proxies leave out the text of the others), a colon after SERVER_ERROR (memcached's own `shutdown`
    /// does that), and blanks after a number (the document allows them, and old servers sent them).
    fn take_line<'l>(&mut self, line: &'l [u8]) -> Result<Step<'l>, Malformed> {
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
    fn begin<'l>(&mut self, item: Item<'l>) -> Step<'l> {
        self.found = true;
        self.body_left = item.size;
        self.place = if item.size > 0 { Place::Body } else { Place::Return };
        Step::Item { tag: None, key: item.key, size: u64::from(item.size), cas: item.cas, flags: item.flags }
    }

    /// A read ends.
    #[inline]
    fn end(&mut self) -> Step<'static> {
        let found = std::mem::replace(&mut self.found, false);
        plain(if found { Outcome::Hit } else { Outcome::Miss })
    }

    #[inline]
    fn take_body<'i>(&mut self, input: &mut &'i [u8]) -> Step<'i> {
        if input.is_empty() {
            return Step::Need;
        }
        let (body, rest) = input.split_at(input.len().min(self.body_left as usize));
        *input = rest;
        self.body_left -= body.len() as u32;
        if self.body_left == 0 {
            self.place = Place::Return;
        }
        Step::Body(body)
    }

    /// Takes the line end after a value; false where it is not all there.
    #[inline]
    fn take_body_end(&mut self, input: &mut &[u8]) -> Result<bool, Malformed> {
        if self.place == Place::Return {
            let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
            if byte != b'\r' {
                return Err(lines::NO_VALUE_END);
            }
            *input = rest;
            self.place = Place::Feed;
        }
        let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
        if byte != b'\n' {
            return Err(lines::NO_VALUE_END);
        }
        *input = rest;
        self.place = Place::Line;
        Ok(true)
    }
}

/// What follows the item that `bytes` begin with, if all of it is there.
#[inline]
fn after_item(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(b"VALUE ")?;
    let key_bytes = lines::key_len(rest);
    if key_bytes == 0 || key_bytes > lines::KEY_MAX_BYTES {
        return None;
    }
    // Flags are nearly always 0, and a CAS unique is there only for those who asked for it.
    let (size, digits) = lines::decimal(rest.get(key_bytes..)?.strip_prefix(b" 0 ")?)?;
    let value = rest.get(key_bytes + 3 + digits..)?.strip_prefix(b"\r\n")?;
    value.get(usize::try_from(u32::try_from(size).ok()?).ok()?..)?.strip_prefix(b"\r\n")
}

/// What a VALUE line says.
struct Item<'a> {
    key: &'a [u8],
    flags: u32,
    size: u32,
    cas: u64,
}

/// Reads `VALUE <key> <flags> <bytes> [<cas unique>]` and returns what follows: the line end, or nothing where `line` has
/// none. Exactly one blank stands between two words; no server is known that sends more. A size above 32 bits is no
/// answer of a server whose items are at most 1 GiB.
#[inline]
fn item(line: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let rest = line.strip_prefix(b"VALUE ")?;
    let key_bytes = lines::key_len(rest);
    if key_bytes == 0 || key_bytes > lines::KEY_MAX_BYTES {
        return None;
    }
    let (key, rest) = rest.split_at(key_bytes);
    let (flags, rest) = number_after_blank(rest)?;
    let (size, rest) = number_after_blank(rest)?;
    let (cas, rest) = if rest.first() == Some(&b' ') { number_after_blank(rest)? } else { (0, rest) };
    Some((Item { key, flags: u32::try_from(flags).ok()?, size: u32::try_from(size).ok()?, cas }, rest))
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

/// Whether a line that begins so has a text for people at its end, which may be of any length.
fn is_error(line: &[u8]) -> bool {
    [&b"ERROR "[..], b"CLIENT_ERROR ", b"SERVER_ERROR "].iter().any(|word| line.starts_with(word))
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

/// The words that say that a request failed. The second line answers `slabs` and `lru_crawler`, which pummel sends
/// nobody; they are here because the protocol names them.
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

/// Why a line that begins with this byte is none of ours. Said at the first byte, since the rest may never come.
#[cold]
fn foreign(first: u8) -> Malformed {
    Malformed(match first {
        b'-' | b'+' | b'$' | b':' | b'*' | b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'>'
        | b'|' => "the reply looks like RESP (Redis, Valkey), not like memcached's text protocol",
        0x80 | 0x81 => "the reply looks like memcached's binary protocol, not like its text protocol",
        0x15 | 0x16 => "the reply looks like TLS, and this connection has none",
        _ => "a reply begins with a byte that memcached's text protocol does not have there",
    })
}

/// Why a line with this first word is none of ours.
#[cold]
fn unknown(word: &[u8]) -> Malformed {
    Malformed(match word {
        b"END" => "an END line has more words than the protocol knows",
        b"VERSION" => "a VERSION line names no version",
        b"HD" | b"VA" | b"EN" | b"NF" | b"NS" | b"EX" | b"MN" | b"ME" => {
            "the reply looks like memcached's meta protocol, not like its classic text protocol"
        }
        b"STAT" | b"ITEM" => "the server sends statistics that nobody asked for",
        word if word.starts_with(b"HTTP/") => "the reply looks like HTTP, not like memcached's text protocol",
        _ => "a reply line begins with a word that the protocol does not know",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Value;
    use crate::protocol::contract::{
        Seen, cut_in_turn, encoded, every_cut, fuzz_decode, fuzz_prefixes, read, reply, sent,
    };
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

    fn request(op: &Op<'_>) -> Result<String, &'static str> {
        let (bytes, expect) = encoded::<Text>(op, 7).map_err(|Refused(why)| why)?;
        assert_eq!(expect == Expect::Nothing, op.noreply);
        Ok(String::from_utf8(bytes).expect("these tests write ASCII"))
    }

    fn many<'a>(verb: Verb, bytes: &'a [u8], ends: &'a [u32]) -> Op<'a> {
        Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, b"") }
    }

    fn item_seen(key: &str, flags: u32, cas: u64, body: &[u8]) -> Vec<Seen> {
        let item =
            Seen::Item { tag: None, key: key.as_bytes().to_vec(), size: body.len() as u64, cas, flags };
        if body.is_empty() { vec![item] } else { vec![item, Seen::Body(body.to_vec())] }
    }

    fn said(outcome: Outcome, message: &str) -> Seen {
        Seen::Reply { tag: None, outcome, message: message.as_bytes().to_vec() }
    }

    /// The sentence that reading `stream` ends with.
    fn complaint(stream: &[u8]) -> &'static str {
        match every_cut::<Text>(stream).pop() {
            Some(Seen::Malformed(why)) => why,
            other => panic!("{stream:?} was read as {other:?}"),
        }
    }

    #[test]
    fn a_connection_costs_few_bytes() {
        assert!(size_of::<Text>() <= 24, "{}", size_of::<Text>());
    }

    #[test]
    fn reads_are_one_line_with_their_keys() {
        let touching = |op: Op<'static>, expiry_s| Op { expiry_s, ..op };
        for (op, line) in [
            (Op::new(Verb::Get, b"key"), "get key\r\n"),
            (Op::new(Verb::Gets, b"key"), "gets key\r\n"),
            (touching(Op::new(Verb::Gat, b"key"), 60), "gat 60 key\r\n"),
            (touching(Op::new(Verb::Gats, b"key"), -1), "gats -1 key\r\n"),
            (many(Verb::Get, b"onetwothree", &[3, 6, 11]), "get one two three\r\n"),
            (many(Verb::Gets, b"one", &[3]), "gets one\r\n"),
            (touching(many(Verb::Gat, b"onetwo", &[3, 6]), 0), "gat 0 one two\r\n"),
            (touching(many(Verb::Gats, b"onetwo", &[3, 6]), 9), "gats 9 one two\r\n"),
        ] {
            assert_eq!(request(&op).as_deref(), Ok(line));
        }
    }

    #[test]
    fn changes_carry_what_their_verb_needs() {
        let filled = |verb, noreply| Op {
            value: Value { own: b"own ", shared: b"and shared", shared_at: 5 },
            flags: 4_294_967_295,
            expiry_s: 86_400,
            cas: u64::MAX,
            delta: 18_446_744_073_709_551_615,
            noreply,
            ..Op::new(verb, b"key")
        };
        for (verb, line, body) in [
            (Verb::Set, "set key 4294967295 86400 14", "own and shared\r\n"),
            (Verb::Add, "add key 4294967295 86400 14", "own and shared\r\n"),
            (Verb::Replace, "replace key 4294967295 86400 14", "own and shared\r\n"),
            (Verb::Append, "append key 4294967295 86400 14", "own and shared\r\n"),
            (Verb::Prepend, "prepend key 4294967295 86400 14", "own and shared\r\n"),
            (Verb::Cas, "cas key 4294967295 86400 14 18446744073709551615", "own and shared\r\n"),
            (Verb::Incr, "incr key 18446744073709551615", ""),
            (Verb::Decr, "decr key 18446744073709551615", ""),
            (Verb::Delete, "delete key", ""),
            (Verb::Touch, "touch key 86400", ""),
        ] {
            assert_eq!(request(&filled(verb, false)), Ok(format!("{line}\r\n{body}")));
            assert_eq!(request(&filled(verb, true)), Ok(format!("{line} noreply\r\n{body}")));
        }
        assert_eq!(request(&Op::new(Verb::Version, b"")).as_deref(), Ok("version\r\n"));
        assert_eq!(
            request(&Op::new(Verb::Set, b"k")).as_deref(),
            Ok("set k 0 0 0\r\n\r\n"),
            "an empty value"
        );
    }

    #[test]
    fn bogus_sets_are_stores_by_another_word_and_nothing_else_changes() {
        let encoded = |op: &Op<'_>, mut codec: Text| {
            let mut out = Outbox::default();
            codec.encode(op, 0, &mut out).unwrap();
            String::from_utf8(out.plain().unwrap().to_vec()).unwrap()
        };
        let set = Op { value: Value::plain(b"0"), ..Op::new(Verb::Set, b"key") };
        assert_eq!(encoded(&set, Text::with_bogus_sets()), "xxx key 0 0 1 \r\n0\r\n");
        let quiet = Op { noreply: true, ..set };
        assert_eq!(encoded(&quiet, Text::with_bogus_sets().renew()), "xxx key 0 0 1 noreply\r\n0\r\n");
        for verb in [Verb::Get, Verb::Delete, Verb::Add, Verb::Incr] {
            let op = Op::new(verb, b"key");
            assert_eq!(encoded(&op, Text::with_bogus_sets()), encoded(&op, Text::with_blanks()));
        }
    }

    #[test]
    fn a_large_shared_value_is_pointed_at_and_not_copied() {
        let block = vec![b'v'; 1 << 20];
        let op = Op {
            value: Value { own: b"own", shared: &block[100..], shared_at: 100 },
            ..Op::new(Verb::Set, b"key")
        };
        let mut out = Outbox::default();
        assert_eq!(Text::new().encode(&op, 0, &mut out), Ok(Expect::Reply));
        let mut parts = [std::io::IoSlice::new(&[]), std::io::IoSlice::new(&[]), std::io::IoSlice::new(&[])];
        assert_eq!(out.parts(&block, &mut parts), 3);
        assert_eq!(&*parts[0], format!("set key 0 0 {}\r\nown", 3 + block.len() - 100).as_bytes());
        assert_eq!(parts[1].as_ptr(), block[100..].as_ptr());
        assert_eq!(&*parts[2], b"\r\n");
    }

    #[test]
    fn what_the_protocol_cannot_say_is_refused_and_nothing_is_written() {
        let long_key = [b'k'; 251];
        let noreply = |verb| Op { noreply: true, ..Op::new(verb, b"key") };
        let late = |verb| Op { expiry_s: 1 << 32, ..Op::new(verb, b"key") };
        let early = |verb| Op { expiry_s: -(1 << 31) - 1, ..Op::new(verb, b"key") };
        let long_gat = [b'k'; 2048];
        let long_ends: Vec<u32> = (1..=16).map(|n| n * 128).collect();
        for op in [
            Op::new(Verb::Get, b""),
            Op::new(Verb::Set, b""),
            Op::new(Verb::Get, &long_key),
            Op::new(Verb::Delete, &long_key),
            Op::new(Verb::Get, b"a b"),
            Op::new(Verb::Set, b"a\r\nflush_all"),
            Op::new(Verb::Incr, b"tab\t"),
            Op::new(Verb::Touch, b"nul\0"),
            Op::new(Verb::Touch, b"low\x0f"),
            noreply(Verb::Get),
            noreply(Verb::Gets),
            noreply(Verb::Gat),
            noreply(Verb::Gats),
            noreply(Verb::Version),
            late(Verb::Set),
            early(Verb::Cas),
            late(Verb::Touch),
            late(Verb::Gat),
            Op { expiry_s: 1 << 32, ..many(Verb::Gats, b"key", &[3]) },
            many(Verb::Get, b"", &[]),
            many(Verb::Get, b"onetwo", &[3, 3, 6]),
            many(Verb::Get, b"one two", &[3, 7]),
            many(Verb::Delete, b"onetwo", &[3, 6]),
            many(Verb::Set, b"one", &[3]),
            many(Verb::Gat, &long_gat, &long_ends),
        ] {
            assert!(request(&op).is_err(), "{op:?}");
        }
        assert!(request(&Op::new(Verb::Get, &long_key[1..])).is_ok(), "250 bytes are allowed");
        assert!(request(&Op::new(Verb::Get, "schlüssel".as_bytes())).is_ok(), "bytes above 127 are allowed");
        assert!(request(&many(Verb::Get, &long_gat, &long_ends)).is_ok(), "only get may be of any length");
        assert!(
            request(&Op { expiry_s: 1 << 32, ..Op::new(Verb::Incr, b"key") }).is_ok(),
            "incr has no expiry"
        );
    }

    #[test]
    fn authentication_is_a_set_of_user_and_password() {
        let mut out = Outbox::default();
        assert_eq!(Text::new().encode_auth(b"user", b"pass word", 0, &mut out), Ok(Expect::Reply));
        assert_eq!(sent(&out), b"set auth 0 0 14\r\nuser pass word\r\n");
        for (user, password) in [(&b""[..], &b"p"[..]), (b"a b", b"p"), (b"a:b", b"p"), (b"a", b"p\r\n")] {
            let mut out = Outbox::default();
            assert!(Text::new().encode_auth(user, password, 0, &mut out).is_err());
            assert!(out.is_empty());
        }
    }

    #[test]
    fn every_reply_of_the_document_is_read() {
        for (line, outcome) in [
            ("END", Outcome::Miss),
            ("STORED", Outcome::Stored),
            ("NOT_STORED", Outcome::NotStored),
            ("EXISTS", Outcome::Exists),
            ("NOT_FOUND", Outcome::NotFound),
            ("DELETED", Outcome::Deleted),
            ("TOUCHED", Outcome::Touched),
            ("OK", Outcome::Ok),
            ("RESET", Outcome::Ok),
            ("0", Outcome::Number(0)),
            ("18446744073709551615", Outcome::Number(u64::MAX)),
            ("99  ", Outcome::Number(99)),
        ] {
            let stream = format!("{line}\r\n");
            assert_eq!(every_cut::<Text>(stream.as_bytes()), vec![reply(outcome)], "{line}");
        }
        assert_eq!(every_cut::<Text>(b"VERSION 1.6.18\r\n"), vec![said(Outcome::Ok, "1.6.18")]);
    }

    #[test]
    fn errors_keep_the_words_of_the_server() {
        for (line, fault) in [
            ("ERROR", Fault::Protocol),
            ("ERROR cannot pipeline other commands before watch", Fault::Protocol),
            ("CLIENT_ERROR bad data chunk", Fault::Client),
            ("CLIENT_ERROR", Fault::Client),
            ("SERVER_ERROR object too large for cache", Fault::Server),
            ("SERVER_ERROR out of memory storing object", Fault::Server),
            ("SERVER_ERROR: shutdown not enabled", Fault::Server),
            ("BUSY currently processing", Fault::Server),
            ("BADCLASS invalid src or dst class id", Fault::Client),
            ("NOSPARE source class has no spare pages", Fault::Server),
            ("NOTFULL", Fault::Server),
            ("UNSAFE", Fault::Server),
            ("SAME", Fault::Client),
        ] {
            let stream = format!("{line}\r\nEND\r\n");
            let expected = vec![said(Outcome::Error(fault), line), reply(Outcome::Miss)];
            assert_eq!(every_cut::<Text>(stream.as_bytes()), expected);
        }
    }

    #[test]
    fn items_are_shown_before_the_reply_that_they_make_a_hit() {
        let stream = b"VALUE key 32 10\r\nabc\r\nEND\r\n\r\nVALUE other 0 0 77\r\n\r\nEND\r\nEND\r\n";
        let mut expected = item_seen("key", 32, 0, b"abc\r\nEND\r\n");
        expected.extend(item_seen("other", 0, 77, b""));
        expected.extend([reply(Outcome::Hit), reply(Outcome::Miss)]);
        assert_eq!(every_cut::<Text>(stream), expected);
    }

    #[test]
    fn a_read_may_end_in_an_error_after_items() {
        let stream = b"VALUE key 0 1\r\nx\r\nSERVER_ERROR out of memory writing get response\r\nEND\r\n";
        let mut expected = item_seen("key", 0, 0, b"x");
        let message = "SERVER_ERROR out of memory writing get response";
        expected.extend([said(Outcome::Error(Fault::Server), message), reply(Outcome::Miss)]);
        assert_eq!(every_cut::<Text>(stream), expected);
    }

    #[test]
    fn a_body_passes_without_a_copy() {
        let stream = b"VALUE key 0 5\r\nhello\r\nEND\r\n";
        let mut codec = Text::new();
        let mut input = &stream[..];
        assert!(matches!(codec.decode(&mut input), Ok(Step::Item { size: 5, .. })));
        let Ok(Step::Body(body)) = codec.decode(&mut input) else { panic!("no body") };
        assert_eq!(body.as_ptr(), stream[15..].as_ptr());
    }

    #[test]
    fn a_long_error_text_is_cut_off_and_the_next_reply_is_found() {
        let line = format!("SERVER_ERROR {}", "x".repeat(10_000));
        let stream = format!("{line}\r\nSTORED\r\n");
        let message = &line[..lines::LINE_MAX_BYTES];
        let expected = vec![said(Outcome::Error(Fault::Server), message), reply(Outcome::Stored)];
        assert_eq!(read::<Text>(stream.as_bytes()), expected);
        for length in [1, 2, 5, 100, 255] {
            cut_in_turn::<Text>(stream.as_bytes(), &[length]);
        }
    }

    #[test]
    fn malformed_replies_end_the_stream_with_a_sentence() {
        let long_key = format!("VALUE {} 0 1\r\n", "k".repeat(251));
        for (stream, part) in [
            (&b"VALUE\r\n"[..], "VALUE line"),
            (b"VALUE key\r\n", "VALUE line"),
            (b"VALUE key 0\r\n", "VALUE line"),
            (b"VALUE  0 1\r\n", "VALUE line"),
            (b"VALUE key  0 1\r\n", "VALUE line"),
            (b"VALUE key 0 1 \r\n", "VALUE line"),
            (b"VALUE key 0 1 2 3\r\n", "VALUE line"),
            (b"VALUE key 0 -1\r\n", "VALUE line"),
            (b"VALUE key x 1\r\n", "VALUE line"),
            (b"VALUE key 0 1x\r\n", "VALUE line"),
            (b"VALUE key 4294967296 1\r\n", "VALUE line"),
            (b"VALUE key 0 4294967296\r\n", "VALUE line"),
            (b"VALUE key 0 1 18446744073709551616\r\n", "VALUE line"),
            (b"VALUE k\0y 0 1\r\n", "VALUE line"),
            (b"VALUE key 0 1\rx\r\n", "VALUE line"),
            (long_key.as_bytes(), "VALUE line"),
            (b"VALUE key 0 1\r\nxy\r\n", "not followed by CR LF"),
            (b"VALUE key 0 1\r\nx\n\r\n", "not followed by CR LF"),
            (b"VALUE key 0 1\r\nx\ry\r\n", "not followed by CR LF"),
            (b"VALUE key 0 0\r\n\r\nSTORED\r\n", "not followed by END"),
            (b"VALUE key 0 0\r\n\r\n5\r\n", "not followed by END"),
            (b"STORED\n", "bare line feed"),
            (b"STORED \r\n", "more words"),
            (b"END OF\r\n", "more words"),
            (b"VERSION\r\n", "no version"),
            (b"12x\r\n", "64 bits"),
            (b"18446744073709551616\r\n", "64 bits"),
            (b"12 x\r\n", "followed by words"),
            (b"WHATEVER\r\n", "does not know"),
            (b"STAT pid 1\r\n", "statistics"),
            (b"\r\n", "does not have there"),
            (b"stored\r\n", "does not have there"),
        ] {
            let why = complaint(stream);
            assert!(why.contains(part), "{stream:?}: {why}");
        }
    }

    #[test]
    fn another_dialect_is_named() {
        for (stream, name) in [
            (&b"-ERR unknown command\r\n"[..], "RESP"),
            (b"+OK\r\n", "RESP"),
            (b"$-1\r\n", "RESP"),
            (b"*0\r\n", "RESP"),
            (b"\x81\x00\x00\x00", "binary"),
            (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
            (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
            (b"HD\r\n", "meta"),
            (b"VA 2 f0\r\n", "meta"),
            (b"EN\r\n", "meta"),
        ] {
            let why = complaint(stream);
            assert!(why.contains(name), "{stream:?}: {why}");
        }
    }

    #[test]
    fn the_fuzz_target_holds_on_prefixes() {
        fuzz_prefixes::<Text>(&[
            b"VALUE key 1 5 9\r\nhello\r\nVALUE k 0 0\r\n\r\nEND\r\nEND\r\nSTORED\r\n12\r\n",
            b"VERSION 1\r\nSERVER_ERROR out of memory\r\nNOT_FOUND\r\nERROR\r\n-ERR\r\n",
        ]);
    }

    fn any_reply() -> impl Strategy<Value = (Vec<u8>, Vec<Seen>)> {
        let key = "[!-~]{1,250}";
        let items = vec((key, any::<u32>(), any::<Option<u64>>(), vec(any::<u8>(), 0..300)), 0..4);
        let read = items.prop_map(|items| {
            let mut stream = Vec::new();
            let mut seen = Vec::new();
            for (key, flags, cas, body) in &items {
                let cas_text = cas.map_or(String::new(), |cas| format!(" {cas}"));
                stream.extend(format!("VALUE {key} {flags} {}{cas_text}\r\n", body.len()).bytes());
                stream.extend([&body[..], b"\r\n"].concat());
                seen.extend(item_seen(key, *flags, cas.unwrap_or(0), body));
            }
            stream.extend(b"END\r\n");
            seen.push(reply(if items.is_empty() { Outcome::Miss } else { Outcome::Hit }));
            (stream, seen)
        });
        let number =
            any::<u64>().prop_map(|n| (format!("{n}\r\n").into_bytes(), vec![reply(Outcome::Number(n))]));
        let error = "SERVER_ERROR [ -~]{0,2500}".prop_map(|line| {
            let kept = &line[..line.len().min(lines::LINE_MAX_BYTES)];
            let seen = vec![said(Outcome::Error(Fault::Server), kept)];
            (format!("{line}\r\n").into_bytes(), seen)
        });
        let stored = Just((b"STORED\r\n".to_vec(), vec![reply(Outcome::Stored)]));
        prop_oneof![4 => read, 1 => number, 1 => error, 1 => stored]
    }

    proptest! {
        #[test]
        fn any_stream_of_replies_reads_the_same_for_any_cuts(
            replies in vec(any_reply(), 0..6),
            lengths in vec(any::<u8>(), 1..6),
        ) {
            let stream: Vec<u8> = replies.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            let expected: Vec<Seen> = replies.into_iter().flat_map(|(_, seen)| seen).collect();
            prop_assert_eq!(read::<Text>(&stream), expected);
            cut_in_turn::<Text>(&stream, &lengths);
        }

        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>) {
            fuzz_decode::<Text>(&data);
        }

        #[test]
        fn no_words_of_the_protocol_in_any_order_make_it_panic(
            words in vec(prop_oneof![
                Just("VALUE "), Just("key "), Just("0 "), Just("3"), Just("\r\n"), Just("END\r\n"), Just("END"),
                Just("\n"), Just("\r"), Just("abc\r\n"), Just("SERVER_ERROR "), Just("STORED\r\n"), Just("VERSION "),
            ], 0..20),
            lengths in vec(any::<u8>(), 0..7),
        ) {
            let mut data = vec![lengths.len() as u8];
            data.extend(lengths);
            data.extend(words.concat().bytes());
            fuzz_decode::<Text>(&data);
        }

        #[test]
        fn a_key_is_taken_or_refused_and_never_changes_the_shape_of_a_request(key: Vec<u8>) {
            if let Ok((bytes, _)) = encoded::<Text>(&Op::new(Verb::Delete, &key), 0) {
                prop_assert_eq!(bytes, [b"delete ", &key[..], b"\r\n"].concat());
                prop_assert_eq!(key.iter().filter(|&&byte| byte < 0x10 || byte == b' ').count(), 0);
            } else {
                let plain = !key.is_empty() && key.len() <= 250 && key.iter().all(|&byte| byte >= 0x10 && byte != b' ');
                prop_assert_eq!(plain, false);
            }
        }
    }
}
