//! RESP2 and RESP3, as the "Redis serialization protocol specification" describes them, with the commands of Redis and
//! its relatives that do what memcached's verbs do.

mod reply;
pub mod template;

use std::collections::VecDeque;
use std::sync::Arc;

use self::reply::Head;
use self::template::Template;
use super::lines::{self, Line, Lines};
use super::{Codec, Expect, Fault, Keys, Malformed, Op, Outcome, Refused, Skimmed, Step, Tag, Value, Verb};
use crate::connection::outbox::Outbox;

/// The field of a hash that hget reads and hset stores.
const FIELD: &[u8] = b"field";

/// Longest expiry that is a span and not a date, as [`Op::expiry_s`] has it.
const SPAN_MAX_S: u64 = 30 * 24 * 60 * 60;

/// A hundred years: what EXPIRE is given for no expiry. PERSIST would take the expiry away, and answers the same for a
/// key without expiry as for no key.
const FOR_EVER_S: u64 = 100 * 365 * 24 * 60 * 60;

/// RESP2 on one connection.
pub type Resp2 = Resp<2>;

/// RESP3 on one connection, which begins with the handshake [`Handshake::resp3`](super::handshake::Handshake::resp3).
pub type Resp3 = Resp<3>;

/// RESP on one connection. Replies come in the order of requests and carry no tag; what was asked is kept, because a
/// reply does not say what it answers.
///
/// Where Redis differs from memcached, Redis' answer stands: append and incr make the key where there is none, decr goes
/// below 0 (the answer is then [`Outcome::Ok`], with the number as words).
#[derive(Debug)]
pub struct Resp<const VERSION: u8> {
    lines: Lines,
    /// What was asked and is not answered, oldest first.
    asked: VecDeque<Kind>,
    /// What only some connections need.
    rare: Option<Box<Rare>>,
    /// The command of [`Verb::Command`].
    template: Option<Arc<Template>>,
    /// Longer keys than one byte more than this are hashes, with so many last bytes as the field; 0: none is.
    field_bytes: u32,
    /// Values that are still to come of what nobody wants.
    skip: u64,
    /// How the oldest request ends when they have passed.
    ending: Option<Outcome>,
    /// Bytes of the string that is passing by which are still to come.
    left: u32,
    place: Place,
    passing: Passing,
}

/// What was asked, as far as the reply depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// GET and its like: a string, or null.
    Value,
    /// MGET: an array of those, one for each key.
    Values,
    /// SET: OK, or null where its condition did not hold.
    Stored,
    /// APPEND and HSET: a number that does not matter.
    Grown,
    /// DEL: how many keys it removed.
    Removed,
    /// EXPIRE: whether the key is there.
    Touched,
    /// INCRBY and DECRBY: the number.
    Counted,
    /// PING: words.
    Pong,
    /// A command that nobody knows here.
    Any,
}

/// What only some connections need.
#[derive(Debug, Default)]
struct Rare {
    /// Keys of the multi-gets that are not answered, oldest first.
    reads: VecDeque<Read>,
    /// One that was answered, for its memory.
    spare: Option<Read>,
    /// Whether the array of the oldest has begun.
    reading: bool,
    /// How many of its elements have passed.
    passed: usize,
    /// Whether one of them was a value.
    found: bool,
    /// An error that is sent as a string.
    words: Vec<u8>,
}

/// The keys of a multi-get: replies do not repeat them.
#[derive(Debug, Default)]
struct Read {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// Where in the stream of replies the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the first line of a value.
    Line,
    /// In the bytes of a string.
    Body,
    /// Before the carriage return after a string.
    Return,
    /// Before the line feed after a string.
    Feed,
}

/// Whose the string is that passes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// That of a read of one key.
    Whole,
    /// One of a multi-get.
    Part,
    /// An error.
    Words,
    /// Nobody's.
    Dropped,
}

/// What a line means to the codec.
enum Meaning {
    /// More has to be read.
    Nothing,
    /// A value of this many bytes follows.
    Item(u32),
    /// A request ended, with the words of this line if they say something.
    Reply(Outcome),
    /// A request ended with the last of many values.
    Over(Outcome),
}

const UNFIT: Malformed = Malformed("the type of a RESP reply does not fit its request");
const TOO_MANY: Malformed = Malformed("a RESP reply says that it has more values than there can be");

impl<const VERSION: u8> Codec for Resp<VERSION> {
    fn new() -> Resp<VERSION> {
        Resp {
            lines: Lines::default(),
            asked: VecDeque::new(),
            rare: None,
            template: None,
            field_bytes: 0,
            skip: 0,
            ending: None,
            left: 0,
            place: Place::Line,
            passing: Passing::Dropped,
        }
    }

    fn renew(&self) -> Resp<VERSION> {
        Resp { template: self.template.clone(), field_bytes: self.field_bytes, ..Resp::new() }
    }

    #[inline]
    fn encode(&mut self, op: &Op<'_>, _tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        if op.noreply {
            return Err(Refused("RESP has no form of a request that goes without a reply"));
        }
        let kind = match op.keys {
            Keys::One(key) => self.encode_one(op, key, out)?,
            Keys::Many { .. } | Keys::Pairs(_) => {
                let kind = encode_many(op, out)?;
                if kind == Kind::Values {
                    self.rare.get_or_insert_default().ask(&op.keys);
                }
                kind
            }
        };
        self.asked.push_back(kind);
        Ok(Expect::Reply)
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        loop {
            match self.place {
                Place::Line => {}
                Place::Body => match (self.take_body(input), self.passing) {
                    ([], _) => return Ok(Step::Need),
                    (bytes, Passing::Whole | Passing::Part) => return Ok(Step::Body(bytes)),
                    (bytes, Passing::Words) => self.rare.get_or_insert_default().keep_words(bytes),
                    (_, Passing::Dropped) => {}
                },
                Place::Return | Place::Feed => {
                    if !self.take_body_end(input)? {
                        return Ok(Step::Need);
                    }
                    if let Some(outcome) = self.string_ends() {
                        return Ok(self.reply(outcome, None));
                    }
                }
            }
            if self.place != Place::Line {
                continue;
            }
            let Some(line) = self.take_line(input)? else { return Ok(Step::Need) };
            let head = reply::head(self.lines.line(line))?;
            match self.meaning(head)? {
                Meaning::Nothing => {}
                Meaning::Item(size) => return Ok(self.item(size)),
                Meaning::Over(outcome) => return Ok(self.reply(outcome, None)),
                Meaning::Reply(outcome) => {
                    return Ok(self.reply(outcome, said(head, outcome).then_some(line)));
                }
            }
        }
    }

    #[inline(always)]
    fn skim(&mut self, _oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        if self.place != Place::Line || self.skip > 0 || !self.lines.at_start() {
            return None;
        }
        let (skimmed, rest) = match self.asked.front()? {
            Kind::Value => reply::whole_value(input, VERSION)?,
            Kind::Stored => (Skimmed { outcome: Outcome::Stored, items: 0 }, input.strip_prefix(b"+OK\r\n")?),
            _ => return None,
        };
        self.asked.pop_front();
        *input = rest;
        Some(skimmed)
    }
}

impl<const VERSION: u8> Resp<VERSION> {
    /// A codec at the beginning of a connection whose [`Verb::Command`] is this one.
    pub fn with_template(template: Arc<Template>) -> Resp<VERSION> {
        Resp { template: Some(template), ..Resp::new() }
    }

    /// The same, which keeps values in hashes: a key of more than `field_bytes` bytes and one is cut, its last bytes
    /// being the field that is read, stored or deleted. Shorter keys stay what they are.
    pub fn keeping_hashes(self, field_bytes: u32) -> Resp<VERSION> {
        Resp { field_bytes, ..self }
    }

    /// Writes any command, whose answer is `Ok` or another outcome that its type gives, with the server's words.
    pub fn encode_command(&mut self, words: &[&[u8]], out: &mut Outbox) -> Expect {
        out.push(b"*");
        out.push_decimal(words.len() as u64);
        out.push(b"\r\n");
        for word in words {
            push_bulk(out, word);
        }
        self.asked.push_back(Kind::Any);
        Expect::Reply
    }

    /// Writes a request that has one key, or none.
    #[inline]
    fn encode_one(&self, op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
        if self.field_bytes > 0 && key.len() > self.field_bytes as usize + 1 {
            let (name, field) = key.split_at(key.len() - self.field_bytes as usize);
            return push_field(op, name, field, out);
        }
        match op.verb {
            Verb::Get => {
                out.push(b"*2\r\n$3\r\nGET\r\n");
                push_bulk(out, key);
                Ok(Kind::Value)
            }
            Verb::Set | Verb::Add | Verb::Replace => push_set(op, key, out),
            Verb::Command => {
                let template = self.template.as_ref();
                template.ok_or(Refused("a command needs a template that says what it is"))?.push(op, out)?;
                Ok(Kind::Any)
            }
            _ => encode_other(op, key, out),
        }
    }

    /// Takes the first line of a value.
    #[inline]
    fn take_line<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Line<'i>>, Malformed> {
        let Some(&first) = input.first() else { return Ok(None) };
        if self.lines.at_start() {
            reply::check_first(first, VERSION)?;
        }
        self.lines.advance(input, reply::may_be_long)
    }

    #[inline]
    fn take_body<'i>(&mut self, input: &mut &'i [u8]) -> &'i [u8] {
        let (body, rest) = input.split_at(input.len().min(self.left as usize));
        *input = rest;
        self.left -= body.len() as u32;
        if self.left == 0 {
            self.place = Place::Return;
        }
        body
    }

    /// Takes the line end after a string; false where it is not all there.
    #[inline]
    fn take_body_end(&mut self, input: &mut &[u8]) -> Result<bool, Malformed> {
        for (place, next, wanted) in [(Place::Return, Place::Feed, b'\r'), (Place::Feed, Place::Line, b'\n')]
        {
            if self.place != place {
                continue;
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
            if byte != wanted {
                return Err(lines::NO_VALUE_END);
            }
            *input = rest;
            self.place = next;
        }
        Ok(true)
    }

    /// What a value means, now that its first line has come.
    #[inline]
    fn meaning(&mut self, head: Head) -> Result<Meaning, Malformed> {
        if let Head::Attribute(values) = head {
            self.skip = self.skip.checked_add(values).ok_or(TOO_MANY)?;
            return Ok(Meaning::Nothing);
        }
        if self.skip > 0 {
            return self.pass_over(head);
        }
        if self.rare.as_ref().is_some_and(|rare| rare.reading) {
            return self.element(head);
        }
        if let Head::Push(values) = head {
            self.skip = values;
            return Ok(Meaning::Nothing);
        }
        self.answer(head)
    }

    /// A value that answers the oldest request.
    #[inline]
    fn answer(&mut self, head: Head) -> Result<Meaning, Malformed> {
        // Where nothing was asked, the caller has nobody to give a reply to, and says so.
        let kind = self.asked.front().copied().unwrap_or(Kind::Any);
        let outcome = match (kind, head) {
            (_, Head::Error(fault)) => return Ok(self.fails(fault)),
            (_, Head::ErrorString(size)) => return Ok(self.begin_string(size, Passing::Words)),
            (Kind::Value, Head::String(size)) => return Ok(self.begin_string(size, Passing::Whole)),
            (Kind::Value, Head::Null) => Outcome::Miss,
            (Kind::Values, Head::Array(values)) => return self.begin_read(values),
            (Kind::Stored, Head::Status(true)) => Outcome::Stored,
            (Kind::Stored, Head::Null) => Outcome::NotStored,
            (Kind::Grown, Head::Integer(_)) => Outcome::Stored,
            (Kind::Removed, Head::Integer(count)) if count > 0 => Outcome::Deleted,
            (Kind::Touched, Head::Integer(count)) if count > 0 => Outcome::Touched,
            (Kind::Removed | Kind::Touched, Head::Integer(_)) => Outcome::NotFound,
            (Kind::Counted | Kind::Any, Head::Integer(number)) => number_of(number),
            (Kind::Pong, Head::Status(false)) => Outcome::Ok,
            (Kind::Any, Head::Null) => Outcome::NotFound,
            (Kind::Any, Head::Status(_) | Head::Plain | Head::Array(0) | Head::Group(0)) => Outcome::Ok,
            (Kind::Any, Head::Array(values) | Head::Group(values)) => {
                (self.skip, self.ending) = (values, Some(Outcome::Ok));
                return Ok(Meaning::Nothing);
            }
            (Kind::Any, Head::String(size) | Head::Verbatim(size)) => {
                (self.skip, self.ending) = (1, Some(Outcome::Ok));
                return Ok(self.begin_string(size, Passing::Dropped));
            }
            _ => return Err(UNFIT),
        };
        self.asked.pop_front();
        Ok(Meaning::Reply(outcome))
    }

    /// The array of a multi-get begins.
    fn begin_read(&mut self, values: u64) -> Result<Meaning, Malformed> {
        let rare = self.rare.get_or_insert_default();
        if rare.reads.front().is_none_or(|read| read.ends.len() as u64 != values) {
            return Err(Malformed("the reply to a multi-get has not one value for each key"));
        }
        (rare.reading, rare.passed, rare.found) = (true, 0, false);
        Ok(Meaning::Nothing)
    }

    /// A value of the array that answers a multi-get. An error there, which proxies send for the keys of a server that
    /// they cannot reach, ends the request; the rest of the array is nobody's.
    fn element(&mut self, head: Head) -> Result<Meaning, Malformed> {
        match head {
            Head::String(size) => Ok(self.begin_string(size, Passing::Part)),
            Head::Null => Ok(self.element_passed(false).map_or(Meaning::Nothing, Meaning::Over)),
            Head::Error(fault) => Ok(self.fails(fault)),
            Head::ErrorString(size) => Ok(self.begin_string(size, Passing::Words)),
            _ => Err(UNFIT),
        }
    }

    /// A value of a multi-get has passed; says how the request ends if it was the last.
    fn element_passed(&mut self, found: bool) -> Option<Outcome> {
        let rare = self.rare.as_mut()?;
        rare.passed += 1;
        rare.found |= found;
        if rare.passed < rare.reads.front()?.ends.len() {
            return None;
        }
        let outcome = if rare.found { Outcome::Hit } else { Outcome::Miss };
        rare.answer();
        self.asked.pop_front();
        Some(outcome)
    }

    /// The oldest request has failed.
    fn fails(&mut self, fault: Fault) -> Meaning {
        if self.asked.pop_front() == Some(Kind::Values)
            && let Some(rare) = &mut self.rare
        {
            if rare.reading {
                let values = rare.reads.front().map_or(0, |read| read.ends.len());
                self.skip = (values - rare.passed - 1) as u64;
            }
            rare.answer();
        }
        Meaning::Reply(Outcome::Error(fault))
    }

    /// A value that nobody wants.
    fn pass_over(&mut self, head: Head) -> Result<Meaning, Malformed> {
        match head {
            Head::String(size) | Head::Verbatim(size) | Head::ErrorString(size) => {
                return Ok(self.begin_string(size, Passing::Dropped));
            }
            Head::Array(values) | Head::Group(values) | Head::Push(values) => {
                self.skip = self.skip.checked_add(values).ok_or(TOO_MANY)?;
            }
            _ => {}
        }
        Ok(self.passed_over().map_or(Meaning::Nothing, Meaning::Over))
    }

    /// A value that nobody wants has passed; says how the oldest request ends if that was the last of its reply.
    fn passed_over(&mut self) -> Option<Outcome> {
        self.skip -= 1;
        if self.skip > 0 {
            return None;
        }
        let outcome = self.ending.take()?;
        self.asked.pop_front();
        Some(outcome)
    }

    /// A string begins.
    #[inline]
    fn begin_string(&mut self, size: u32, passing: Passing) -> Meaning {
        self.left = size;
        self.place = if size > 0 { Place::Body } else { Place::Return };
        self.passing = passing;
        match passing {
            Passing::Whole | Passing::Part => return Meaning::Item(size),
            Passing::Words => self.rare.get_or_insert_default().words.clear(),
            Passing::Dropped => {}
        }
        Meaning::Nothing
    }

    /// A string has passed; says how the oldest request ends, if it does.
    #[inline]
    fn string_ends(&mut self) -> Option<Outcome> {
        match self.passing {
            Passing::Whole => {
                self.asked.pop_front();
                Some(Outcome::Hit)
            }
            Passing::Part => self.element_passed(true),
            Passing::Dropped => self.passed_over(),
            Passing::Words => {
                let fault = self.rare.as_ref().map_or(Fault::Server, |rare| reply::fault(&rare.words));
                self.fails(fault);
                Some(Outcome::Error(fault))
            }
        }
    }

    /// An item; its key is known for a multi-get.
    #[inline]
    fn item(&self, size: u32) -> Step<'_> {
        let key = match (self.passing, &self.rare) {
            (Passing::Part, Some(rare)) => rare.key(),
            _ => &[],
        };
        Step::Item { tag: None, key, size: u64::from(size), cas: 0, flags: 0 }
    }

    /// A reply with the words of its line, or of the string that has passed.
    #[inline]
    fn reply<'s>(&'s self, outcome: Outcome, line: Option<Line<'s>>) -> Step<'s> {
        let message = match (line, outcome, &self.rare) {
            (Some(line), ..) => &self.lines.line(line)[1..],
            (None, Outcome::Error(_), Some(rare)) => &rare.words[..],
            _ => &[],
        };
        Step::Reply { tag: None, outcome, message }
    }
}

impl Rare {
    /// A multi-get was written.
    fn ask(&mut self, keys: &Keys<'_>) {
        let mut read = self.spare.take().unwrap_or_default();
        for n in 0..keys.count() {
            read.bytes.extend_from_slice(keys.key(n));
            read.ends.push(read.bytes.len() as u32);
        }
        self.reads.push_back(read);
    }

    /// The oldest multi-get was answered.
    fn answer(&mut self) {
        self.reading = false;
        if let Some(mut read) = self.reads.pop_front() {
            read.bytes.clear();
            read.ends.clear();
            self.spare = Some(read);
        }
    }

    /// The key of the value that passes.
    fn key(&self) -> &[u8] {
        self.reads
            .front()
            .map_or(&[], |read| Keys::Many { bytes: &read.bytes, ends: &read.ends }.key(self.passed))
    }

    /// Keeps some of an error that is sent as a string.
    fn keep_words(&mut self, bytes: &[u8]) {
        let room = lines::LINE_MAX_BYTES - self.words.len();
        self.words.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Whether the line of a reply says more than its outcome.
fn said(head: Head, outcome: Outcome) -> bool {
    match (head, outcome) {
        (Head::Status(ok), _) => !ok,
        (Head::Error(_), _) | (Head::Integer(_), Outcome::Ok) => true,
        _ => false,
    }
}

fn number_of(number: i64) -> Outcome {
    u64::try_from(number).map_or(Outcome::Ok, Outcome::Number)
}

/// Writes what is asked less often.
fn encode_other(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
    match op.verb {
        Verb::Gat => push_read_and_touch(op, key, out),
        Verb::Touch => push_touch(op, key, out),
        Verb::Incr | Verb::Decr => push_count(op, key, out),
        Verb::Append => {
            check_flags(op)?;
            out.push(b"*3\r\n$6\r\nAPPEND\r\n");
            push_bulk(out, key);
            push_value(out, &op.value);
            Ok(Kind::Grown)
        }
        Verb::Delete => {
            out.push(b"*2\r\n$3\r\nDEL\r\n");
            push_bulk(out, key);
            Ok(Kind::Removed)
        }
        Verb::Version => {
            out.push(b"*1\r\n$4\r\nPING\r\n");
            Ok(Kind::Pong)
        }
        Verb::Hget => {
            out.push(b"*3\r\n$4\r\nHGET\r\n");
            push_bulk(out, key);
            push_bulk(out, FIELD);
            Ok(Kind::Value)
        }
        Verb::Hset => {
            check_flags(op)?;
            out.push(b"*4\r\n$4\r\nHSET\r\n");
            push_bulk(out, key);
            push_bulk(out, FIELD);
            push_value(out, &op.value);
            Ok(Kind::Grown)
        }
        Verb::Mset => {
            check_flags(op)?;
            out.push(b"*3\r\n$4\r\nMSET\r\n");
            push_bulk(out, key);
            push_value(out, &op.value);
            Ok(Kind::Stored)
        }
        _ => Err(refused(op.verb)),
    }
}

/// Reads, stores or deletes a field of a hash.
fn push_field(op: &Op<'_>, name: &[u8], field: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
    let (head, kind): (&[u8], Kind) = match op.verb {
        Verb::Get | Verb::Hget => (b"*3\r\n$4\r\nHGET\r\n", Kind::Value),
        Verb::Set | Verb::Hset => (b"*4\r\n$4\r\nHSET\r\n", Kind::Grown),
        Verb::Delete => (b"*3\r\n$4\r\nHDEL\r\n", Kind::Removed),
        _ => return Err(Refused("keys that are hashes can be read, stored and deleted")),
    };
    check_flags(op)?;
    out.push(head);
    push_bulk(out, name);
    push_bulk(out, field);
    if kind == Kind::Grown {
        push_value(out, &op.value);
    }
    Ok(kind)
}

/// Why RESP does not have a verb.
#[cold]
fn refused(verb: Verb) -> Refused {
    Refused(match verb {
        Verb::Prepend => "RESP servers have no command that adds bytes at the beginning of a value",
        _ => "RESP servers keep no CAS unique beside a value: gets, gats and cas cannot be asked of them",
    })
}

/// Writes a request that has several keys.
fn encode_many(op: &Op<'_>, out: &mut Outbox) -> Result<Kind, Refused> {
    let count = op.keys.count();
    let (word, words, kind): (&[u8], _, _) = match op.verb {
        Verb::Get => (b"\r\n$4\r\nMGET\r\n", 1 + count, Kind::Values),
        Verb::Mset => (b"\r\n$4\r\nMSET\r\n", 1 + 2 * count, Kind::Stored),
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

/// Flags are refused rather than lost.
#[inline]
fn check_flags(op: &Op<'_>) -> Result<(), Refused> {
    if op.flags == 0 { Ok(()) } else { Err(Refused("RESP servers keep no flags beside a value")) }
}

/// When a key expires.
#[derive(Clone, Copy)]
enum Expiry {
    Never,
    /// After so many seconds.
    In(u64),
    /// At this second of Unix time.
    At(u64),
}

/// An expiry, as [`Op::expiry_s`] has it. Redis takes no date before 1970, and no span below a second: expired at once is
/// the first second after that.
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
fn push_set(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
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
    Ok(Kind::Stored)
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
fn push_read_and_touch(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
    let expiry = expiry(op)?;
    let never = matches!(expiry, Expiry::Never);
    out.push(if never { b"*3\r\n$5\r\nGETEX\r\n" } else { b"*4\r\n$5\r\nGETEX\r\n" });
    push_bulk(out, key);
    if never {
        out.push(b"$7\r\nPERSIST\r\n");
    }
    push_expiry(expiry, out);
    Ok(Kind::Value)
}

fn push_touch(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
    let (word, number): (&[u8], _) = match expiry(op)? {
        Expiry::Never => (b"*3\r\n$6\r\nEXPIRE\r\n", FOR_EVER_S),
        Expiry::In(span_s) => (b"*3\r\n$6\r\nEXPIRE\r\n", span_s),
        Expiry::At(date_s) => (b"*3\r\n$8\r\nEXPIREAT\r\n", date_s),
    };
    out.push(word);
    push_bulk(out, key);
    push_bulk_number(out, number);
    Ok(Kind::Touched)
}

fn push_count(op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<Kind, Refused> {
    if op.delta > i64::MAX as u64 {
        return Err(Refused("RESP servers count with 64 bits and a sign: the amount is too large"));
    }
    let adds = op.verb == Verb::Incr;
    out.push(if adds { b"*3\r\n$6\r\nINCRBY\r\n" } else { b"*3\r\n$6\r\nDECRBY\r\n" });
    push_bulk(out, key);
    push_bulk_number(out, op.delta);
    Ok(Kind::Counted)
}

/// Writes a word.
#[inline]
fn push_bulk(out: &mut Outbox, bytes: &[u8]) {
    out.push(b"$");
    out.push_decimal(bytes.len() as u64);
    out.push(b"\r\n");
    out.push(bytes);
    out.push(b"\r\n");
}

/// Writes a word that is a number.
fn push_bulk_number(out: &mut Outbox, number: u64) {
    out.push(b"$");
    out.push_decimal(u64::from(number.checked_ilog10().unwrap_or(0)) + 1);
    out.push(b"\r\n");
    out.push_decimal(number);
    out.push(b"\r\n");
}

/// Writes a word that is a value.
#[inline]
fn push_value(out: &mut Outbox, value: &Value<'_>) {
    out.push(b"$");
    out.push_decimal(value.len() as u64);
    out.push(b"\r\n");
    out.push(value.own);
    out.push_shared(value.shared, value.shared_at);
    out.push(b"\r\n");
}

#[cfg(test)]
mod tests;
