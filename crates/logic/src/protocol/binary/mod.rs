//! memcached's binary protocol, as `protocol-binary.txt` and memcached's `protocol_binary.h` describe it.
//!
//! Two codecs write it in two ways. [`Binary`] numbers requests by their opaque, and a multi-get is quiet reads with a
//! noop at their end. [`PlainBinary`] writes what memaslap and mutilate write: the opaque is always 0, replies are
//! matched by their order, and a multi-get is that many plain gets in one write.

mod packets;

use self::packets::{Event, Head, Header, KEY_MAX_BYTES, Packets, opcode, status};
use super::batch::{Batches, Found};
use super::{
    Codec, Expect, Fault, Keys, Malformed, NOT_MEMCACHED, Op, Outcome, Refused, Skimmed, Step, Tag, Verb,
};
use crate::connection::outbox::Outbox;

/// The binary protocol with an opaque of its own for each request.
///
/// A quiet request that fails is answered by the server all the same: errors are told, the rest is dropped.
#[derive(Debug)]
pub struct Binary {
    packets: Packets,
    /// The multi-get whose replies are passing by.
    group: Group,
    /// The read that is answered when its value has passed.
    reading: Option<Tag>,
}

/// How far the replies to a multi-get have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// There was nothing for any, or nothing yet.
    Empty,
    /// The one with this tag has had an item.
    Found(Tag),
    /// The one with this tag has ended with an error: what still comes for it, up to its noop, is nobody's.
    Ended(Tag),
}

/// The binary protocol as memaslap and mutilate write it: opaque 0, matched by order.
#[derive(Debug)]
pub struct PlainBinary {
    packets: Packets,
    batches: Batches,
    /// Whether the request is answered when the value that passes has passed.
    reading: bool,
}

/// What the header of a packet means to the codec.
enum Meaning {
    /// Nobody waits for it.
    Nothing,
    /// A value follows.
    Item,
    /// A request ended.
    Reply(Outcome),
    /// A request without reply failed.
    QuietError,
}

impl Codec for Binary {
    fn new() -> Binary {
        Binary { packets: Packets::new(), group: Group::Empty, reading: None }
    }

    #[inline]
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        if let Keys::One(_) = op.keys {
            return encode_one(op, tag, out);
        }
        let read = check_many(op)?;
        for n in 0..op.keys.count() {
            let head = Head {
                opcode: if read == opcode::GAT { opcode::GATKQ } else { opcode::GETKQ },
                opaque: tag,
                cas: 0,
            };
            push_read(head, op.keys.key(n), op.expiry_s, out);
        }
        Head { opcode: opcode::NOOP, opaque: tag, cas: 0 }.push(0, 0, 0, out);
        Ok(Expect::Reply)
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        loop {
            match self.packets.take(input)? {
                Event::Need => return Ok(Step::Need),
                Event::Value(bytes) => return Ok(Step::Body(bytes)),
                Event::ValueEnd => {
                    if let Some(tag) = self.reading.take() {
                        return Ok(Step::Reply { tag: Some(tag), outcome: Outcome::Hit, message: &[] });
                    }
                }
                Event::Head(header, kept) => match self.meaning(&header) {
                    Meaning::Nothing => self.packets.drop_value(),
                    Meaning::Item => return Ok(item(Some(header.opaque), &header, self.packets.kept(kept))),
                    Meaning::QuietError => {
                        return Ok(Step::QuietError { message: words(&header, self.packets.kept(kept)) });
                    }
                    Meaning::Reply(outcome) => {
                        return Ok(reply(Some(header.opaque), outcome, &header, self.packets.kept(kept)));
                    }
                },
            }
        }
    }

    #[inline(always)]
    fn skim(&mut self, oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        // Between the values of a multi-get, everything is read step by step.
        if self.group != Group::Empty {
            return None;
        }
        let (header, rest) = self.packets.whole(input)?;
        let skimmed = skimmed(&header).filter(|_| header.opaque == oldest)?;
        *input = rest;
        Some(skimmed)
    }
}

impl Binary {
    /// Writes the exchange that proves who we are with SASL's PLAIN (RFC 4616), at the beginning of a connection. Its
    /// answer is `Ok`, or a fault of the client; both with the server's words.
    ///
    /// # Errors
    /// Returns [`Refused`] for a user or a password with a zero byte, which SASL's PLAIN cannot carry.
    pub fn encode_auth(
        &mut self,
        user: &[u8],
        password: &[u8],
        tag: Tag,
        out: &mut Outbox,
    ) -> Result<Expect, Refused> {
        encode_auth(user, password, tag, out)
    }

    fn meaning(&mut self, header: &Header) -> Meaning {
        let tag = header.opaque;
        match header.opcode {
            opcode::GETKQ | opcode::GATKQ => match header.status {
                _ if self.group == Group::Ended(tag) => Meaning::Nothing,
                status::DONE => {
                    self.group = Group::Found(tag);
                    Meaning::Item
                }
                status::NOT_FOUND => Meaning::Nothing,
                _ => {
                    self.group = Group::Ended(tag);
                    Meaning::Reply(outcome(header))
                }
            },
            opcode::NOOP => match std::mem::replace(&mut self.group, Group::Empty) {
                Group::Ended(ended) if ended == tag => Meaning::Nothing,
                _ if header.status != status::DONE => Meaning::Reply(outcome(header)),
                Group::Found(found) if found == tag => Meaning::Reply(Outcome::Hit),
                _ => Meaning::Reply(Outcome::Miss),
            },
            _ if header.is_quiet_change() => quiet_change(header),
            _ if header.is_item() => {
                self.reading = Some(tag);
                Meaning::Item
            }
            _ => Meaning::Reply(outcome(header)),
        }
    }
}

impl Codec for PlainBinary {
    fn new() -> PlainBinary {
        PlainBinary { packets: Packets::new(), batches: Batches::default(), reading: false }
    }

    #[inline]
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        if let Keys::One(_) = op.keys {
            let expect = encode_one(op, 0, out)?;
            if expect == Expect::Reply {
                self.batches.ask();
            }
            return Ok(expect);
        }
        let read = check_many(op)?;
        for n in 0..op.keys.count() {
            push_read(Head { opcode: read, opaque: 0, cas: 0 }, op.keys.key(n), op.expiry_s, out);
        }
        self.batches.ask_batch(tag, op.keys.count() as u32);
        Ok(Expect::Reply)
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        loop {
            match self.packets.take(input)? {
                Event::Need => return Ok(Step::Need),
                Event::Value(bytes) => return Ok(Step::Body(bytes)),
                Event::ValueEnd => {
                    if std::mem::take(&mut self.reading) {
                        return Ok(Step::Reply { tag: None, outcome: Outcome::Hit, message: &[] });
                    }
                }
                Event::Head(header, kept) => match self.meaning(&header) {
                    Meaning::Nothing => self.packets.drop_value(),
                    Meaning::Item => return Ok(item(None, &header, self.packets.kept(kept))),
                    Meaning::QuietError => {
                        return Ok(Step::QuietError { message: words(&header, self.packets.kept(kept)) });
                    }
                    Meaning::Reply(outcome) => {
                        return Ok(reply(None, outcome, &header, self.packets.kept(kept)));
                    }
                },
            }
        }
    }

    #[inline(always)]
    fn skim(&mut self, _oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        if self.batches.current().is_some() {
            return None;
        }
        let (header, rest) = self.packets.whole(input)?;
        let skimmed = skimmed(&header)?;
        self.batches.answer();
        *input = rest;
        Some(skimmed)
    }
}

impl PlainBinary {
    /// The same as [`Binary::encode_auth`]; the tag is not sent.
    ///
    /// # Errors
    /// Returns [`Refused`] for a user or a password with a zero byte, which SASL's PLAIN cannot carry.
    pub fn encode_auth(
        &mut self,
        user: &[u8],
        password: &[u8],
        _tag: Tag,
        out: &mut Outbox,
    ) -> Result<Expect, Refused> {
        let expect = encode_auth(user, password, 0, out)?;
        self.batches.ask();
        Ok(expect)
    }

    fn meaning(&mut self, header: &Header) -> Meaning {
        if header.is_quiet_change() {
            return quiet_change(header);
        }
        let Some(batch) = self.batches.current() else {
            self.batches.answer();
            self.reading = header.is_item();
            return if self.reading { Meaning::Item } else { Meaning::Reply(outcome(header)) };
        };
        batch.left -= 1;
        let last = batch.left == 0;
        let meaning = match outcome(header) {
            _ if batch.ended => Meaning::Nothing,
            Outcome::Hit => {
                batch.found = Found::Value;
                self.reading = last;
                Meaning::Item
            }
            Outcome::Miss if last => Meaning::Reply(batch.found.outcome()),
            Outcome::Miss => Meaning::Nothing,
            error => {
                batch.ended = true;
                Meaning::Reply(error)
            }
        };
        if last {
            self.batches.answer();
        }
        meaning
    }
}

/// Writes the exchange that proves who we are with SASL's PLAIN (RFC 4616).
fn encode_auth(user: &[u8], password: &[u8], tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
    if user.contains(&0) || password.contains(&0) {
        return Err(Refused("a user or password with a zero byte cannot be sent with SASL PLAIN"));
    }
    let mechanism = b"PLAIN";
    let head = Head { opcode: opcode::SASL_AUTH, opaque: tag, cas: 0 };
    head.push(0, mechanism.len(), user.len() + password.len() + 2, out);
    for part in [mechanism, &b"\0"[..], user, b"\0", password] {
        out.push(part);
    }
    Ok(Expect::Reply)
}

/// Writes a request that has one key, or none.
#[inline]
fn encode_one(op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
    let key = op.keys.key(0);
    let head =
        Head { opcode: opcode_of(op)?, opaque: tag, cas: if op.verb == Verb::Cas { op.cas } else { 0 } };
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

fn push_store(op: &Op<'_>, head: Head, key: &[u8], out: &mut Outbox) -> Result<(), Refused> {
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
    out.push(op.value.own);
    out.push_shared(op.value.shared, op.value.shared_at);
    Ok(())
}

/// Writes a request of a key that may set its expiry.
#[inline]
fn push_read(head: Head, key: &[u8], expiry_s: i64, out: &mut Outbox) {
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
        (Verb::Hget | Verb::Hset | Verb::Mset | Verb::Command, _) => return Err(NOT_MEMCACHED),
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
fn check_many(op: &Op<'_>) -> Result<u8, Refused> {
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

#[inline]
fn item<'a>(tag: Option<Tag>, header: &Header, kept: &'a [u8]) -> Step<'a> {
    let Some((flags, key)) = kept.split_first_chunk::<4>() else {
        unreachable!("the check of the header kept four bytes of flags");
    };
    Step::Item {
        tag,
        key,
        size: u64::from(header.body_bytes) - header.fixed_bytes() as u64,
        cas: header.cas,
        flags: u32::from_be_bytes(*flags),
    }
}

/// What the answer to a request without reply means: a condition that did not hold is no error.
fn quiet_change(header: &Header) -> Meaning {
    if matches!(outcome(header), Outcome::Error(_)) { Meaning::QuietError } else { Meaning::Nothing }
}

/// What stands behind extras and key.
#[inline]
fn words<'a>(header: &Header, kept: &'a [u8]) -> &'a [u8] {
    kept.get(header.fixed_bytes()..).unwrap_or_default()
}

/// A reply. The words are kept of errors, of version, and of the end of an authentication.
#[inline]
fn reply<'a>(tag: Option<Tag>, outcome: Outcome, header: &Header, kept: &'a [u8]) -> Step<'a> {
    let text = &kept[header.fixed_bytes()..];
    let (outcome, message) = match outcome {
        Outcome::Number(_) => match text.first_chunk::<8>() {
            Some(number) => (Outcome::Number(u64::from_be_bytes(*number)), &[][..]),
            None => (outcome, &[][..]),
        },
        Outcome::Ok | Outcome::Error(_) => (outcome, text),
        _ => (outcome, &[][..]),
    };
    Step::Reply { tag, outcome, message }
}

/// How the request ended that a whole packet with this header answers, where it is one of those that nearly all are.
#[inline]
fn skimmed(header: &Header) -> Option<Skimmed> {
    match (header.opcode, header.status) {
        (opcode::GET | opcode::GAT, status::DONE) => Some(Skimmed { outcome: Outcome::Hit, items: 1 }),
        (opcode::GET | opcode::GAT, status::NOT_FOUND) => Some(Skimmed { outcome: Outcome::Miss, items: 0 }),
        (opcode::SET, status::DONE) => Some(Skimmed { outcome: Outcome::Stored, items: 0 }),
        _ => None,
    }
}

/// How the request ended that `header` answers; a number is filled in later. The status decides, never the body.
///
/// Where the condition of a verb did not hold, the status names the reason (the key exists, or does not), and the text
/// protocol says NOT_STORED: that is taken for all protocols.
#[inline]
fn outcome(header: &Header) -> Outcome {
    match (header.status, header.opcode) {
        (status::DONE, opcode::SET | opcode::ADD | opcode::REPLACE | opcode::APPEND | opcode::PREPEND) => {
            Outcome::Stored
        }
        (status::DONE, opcode::DELETE) => Outcome::Deleted,
        (status::DONE, opcode::TOUCH) => Outcome::Touched,
        (status::DONE, opcode::INCREMENT | opcode::DECREMENT) => Outcome::Number(0),
        (status::DONE, _) if header.is_read() => Outcome::Hit,
        (status::DONE, _) => Outcome::Ok,
        (status::NOT_FOUND, _) if header.is_read() => Outcome::Miss,
        (status::NOT_FOUND, opcode::REPLACE | opcode::APPEND | opcode::PREPEND) => Outcome::NotStored,
        (status::NOT_FOUND, _) => Outcome::NotFound,
        (status::EXISTS, opcode::ADD) => Outcome::NotStored,
        (status::EXISTS, _) => Outcome::Exists,
        (status::NOT_STORED, _) => Outcome::NotStored,
        (other, _) => Outcome::Error(fault(other)),
    }
}

fn fault(status: u16) -> Fault {
    match status {
        status::INVALID | status::NOT_A_NUMBER | status::AUTH_FAILED | status::AUTH_CONTINUES => {
            Fault::Client
        }
        status::TOO_LARGE | status::OUT_OF_MEMORY | status::INTERNAL..=status::TEMPORARY => Fault::Server,
        _ => Fault::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Value;
    use crate::protocol::contract::{
        Seen, cut_in_turn, encoded, every_cut, every_cut_with, fuzz_decode, fuzz_decode_with, fuzz_prefixes,
        read_from, sent,
    };
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    const TAG: Tag = 0xdead_beef;

    fn filled(verb: Verb, noreply: bool) -> Op<'static> {
        Op {
            value: Value { own: b"Wo", shared: b"rld", shared_at: 7 },
            flags: 0xdead_beef,
            expiry_s: 0xe10,
            cas: 9,
            delta: 1,
            noreply,
            ..Op::new(verb, b"Hello")
        }
    }

    fn request<C: Codec>(op: &Op<'_>) -> Result<Vec<u8>, &'static str> {
        let (bytes, expect) = encoded::<C>(op, TAG).map_err(|Refused(why)| why)?;
        assert_eq!(expect == Expect::Nothing, op.noreply);
        Ok(bytes)
    }

    /// A packet as the document draws it: magic, opcode, status or zero, opaque, cas, then extras, key and value.
    fn packet(magic: u8, opcode: u8, status: u16, opaque: u32, cas: u64, body: [&[u8]; 3]) -> Vec<u8> {
        let [extras, key, value] = body;
        let mut bytes = vec![magic, opcode, 0, key.len() as u8, extras.len() as u8, 0];
        bytes.extend(status.to_be_bytes());
        bytes.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
        bytes.extend(opaque.to_be_bytes());
        bytes.extend(cas.to_be_bytes());
        bytes.extend([extras, key, value].concat());
        bytes
    }

    fn asks(opcode: u8, cas: u64, body: [&[u8]; 3]) -> Vec<u8> {
        packet(0x80, opcode, 0, TAG, cas, body)
    }

    fn answers(opcode: u8, status: u16, body: [&[u8]; 3]) -> Vec<u8> {
        packet(0x81, opcode, status, TAG, 0, body)
    }

    fn plain(opcode: u8, status: u16, body: [&[u8]; 3]) -> Vec<u8> {
        packet(0x81, opcode, status, 0, 0, body)
    }

    fn ends(tag: Option<Tag>, outcome: Outcome, message: &str) -> Seen {
        Seen::Reply { tag, outcome, message: message.as_bytes().to_vec() }
    }

    fn shows(tag: Option<Tag>, key: &[u8], flags: u32, value: &[u8]) -> Vec<Seen> {
        let item = Seen::Item { tag, key: key.to_vec(), size: value.len() as u64, cas: 0, flags };
        if value.is_empty() { vec![item] } else { vec![item, Seen::Body(value.to_vec())] }
    }

    #[test]
    fn a_connection_costs_few_bytes() {
        assert!(size_of::<Binary>() <= 40, "{}", size_of::<Binary>());
        assert!(size_of::<PlainBinary>() <= 40, "{}", size_of::<PlainBinary>());
    }

    #[test]
    fn the_documents_get_add_and_incr_are_written_byte_for_byte() {
        let get = [&[0x80, 0x00, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0][..], &[0; 8], b"Hello"].concat();
        assert_eq!(request::<PlainBinary>(&Op::new(Verb::Get, b"Hello")), Ok(get));

        let add_head = [0x80, 0x02, 0, 5, 8, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let add = [&add_head[..], &[0xde, 0xad, 0xbe, 0xef, 0, 0, 0x0e, 0x10], b"HelloWorld"].concat();
        assert_eq!(request::<PlainBinary>(&filled(Verb::Add, false)), Ok(add));

        // The document's example seeds 0 and expires; ours must not make an item, hence all ones.
        let incr_head = [0x80, 0x05, 0, 7, 0x14, 0, 0, 0, 0, 0, 0, 0x1b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let incr = [&incr_head[..], &[0, 0, 0, 0, 0, 0, 0, 1], &[0; 8], &[0xff; 4], b"counter"].concat();
        assert_eq!(request::<PlainBinary>(&Op { delta: 1, ..Op::new(Verb::Incr, b"counter") }), Ok(incr));
    }

    #[test]
    fn every_verb_has_its_code_its_extras_and_its_quiet_form() {
        let stored = [0xde, 0xad, 0xbe, 0xef, 0, 0, 0x0e, 0x10];
        let counted = [&[0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 8], &[0xff; 4]].concat();
        let touched = [0, 0, 0x0e, 0x10];
        for (verb, loud, quiet, cas, extras, value) in [
            (Verb::Get, 0x00, None, 0, &[][..], &b""[..]),
            (Verb::Gets, 0x00, None, 0, &[], b""),
            (Verb::Gat, 0x1d, None, 0, &touched, b""),
            (Verb::Gats, 0x1d, None, 0, &touched, b""),
            (Verb::Set, 0x01, Some(0x11), 0, &stored, b"World"),
            (Verb::Add, 0x02, Some(0x12), 0, &stored, b"World"),
            (Verb::Replace, 0x03, Some(0x13), 0, &stored, b"World"),
            (Verb::Cas, 0x01, Some(0x11), 9, &stored, b"World"),
            (Verb::Append, 0x0e, Some(0x19), 0, &[], b"World"),
            (Verb::Prepend, 0x0f, Some(0x1a), 0, &[], b"World"),
            (Verb::Incr, 0x05, Some(0x15), 0, &counted, b""),
            (Verb::Decr, 0x06, Some(0x16), 0, &counted, b""),
            (Verb::Delete, 0x04, Some(0x14), 0, &[], b""),
            (Verb::Touch, 0x1c, None, 0, &touched, b""),
        ] {
            assert_eq!(
                request::<Binary>(&filled(verb, false)),
                Ok(asks(loud, cas, [extras, b"Hello", value])),
                "{verb:?}"
            );
            let written = quiet.map(|quiet| asks(quiet, cas, [extras, b"Hello", value]));
            assert_eq!(request::<Binary>(&filled(verb, true)).ok(), written, "{verb:?} without reply");
        }
        assert_eq!(request::<Binary>(&filled(Verb::Version, false)), Ok(asks(0x0b, 0, [b"", b"", b""])));
        assert!(request::<Binary>(&filled(Verb::Version, true)).is_err());
    }

    #[test]
    fn an_expiry_that_has_passed_stays_one_that_has_passed() {
        for (expiry_s, field) in [(0, 0), (-1, 2_592_001), (i64::MIN, 2_592_001), (4_294_967_295, u32::MAX)] {
            let written =
                request::<Binary>(&Op { expiry_s, ..Op::new(Verb::Touch, b"k") }).expect("it can be said");
            assert_eq!(written[24..28], u32::to_be_bytes(field), "{expiry_s}");
        }
    }

    #[test]
    fn a_multi_get_is_quiet_reads_and_a_noop_or_plain_gets() {
        let op = |verb| Op {
            keys: Keys::Many { bytes: b"onetwo", ends: &[3, 6] },
            expiry_s: 0xe10,
            ..Op::new(verb, b"")
        };
        let noop = asks(0x0a, 0, [b"", b"", b""]);
        let quiet = |code, extras| {
            [asks(code, 0, [extras, b"one", b""]), asks(code, 0, [extras, b"two", b""]), noop.clone()]
        };
        for (verb, code, extras) in [
            (Verb::Get, 0x0d, &b""[..]),
            (Verb::Gets, 0x0d, b""),
            (Verb::Gat, 0x24, &[0, 0, 0x0e, 0x10]),
            (Verb::Gats, 0x24, &[0, 0, 0x0e, 0x10]),
        ] {
            assert_eq!(request::<Binary>(&op(verb)), Ok(quiet(code, extras).concat()), "{verb:?}");
        }
        let get = |key: &[u8]| packet(0x80, 0x00, 0, 0, 0, [b"", key, b""]);
        assert_eq!(request::<PlainBinary>(&op(Verb::Get)), Ok([get(b"one"), get(b"two")].concat()));
    }

    #[test]
    fn what_the_protocol_cannot_say_is_refused_and_nothing_is_written() {
        let many = |verb, bytes, ends| Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, b"") };
        for op in [
            Op::new(Verb::Get, b""),
            Op::new(Verb::Set, &[0; 251]),
            Op { noreply: true, ..Op::new(Verb::Get, b"k") },
            Op { noreply: true, ..Op::new(Verb::Touch, b"k") },
            Op { noreply: true, ..many(Verb::Gats, b"k", &[1]) },
            Op { expiry_s: 1 << 32, ..Op::new(Verb::Set, b"k") },
            Op { expiry_s: 1 << 32, ..Op::new(Verb::Gat, b"k") },
            Op { expiry_s: 1 << 32, ..many(Verb::Gat, b"k", &[1]) },
            Op { cas: 0, ..Op::new(Verb::Cas, b"k") },
            many(Verb::Get, b"", &[]),
            many(Verb::Get, b"k", &[1, 1]),
            many(Verb::Delete, b"k", &[1]),
        ] {
            assert!(request::<Binary>(&op).is_err(), "{op:?}");
            assert!(request::<PlainBinary>(&op).is_err(), "{op:?}");
        }
        assert!(request::<Binary>(&Op::new(Verb::Get, b"any \r\n\0 byte \xff")).is_ok());
    }

    #[test]
    fn the_status_says_how_a_request_ended() {
        for (code, status, body, outcome, message) in [
            (0x00, 0x01, &b"Not found"[..], Outcome::Miss, ""),
            (0x1d, 0x01, b"Not found", Outcome::Miss, ""),
            (0x01, 0x00, b"", Outcome::Stored, ""),
            (0x02, 0x00, b"", Outcome::Stored, ""),
            (0x03, 0x00, b"", Outcome::Stored, ""),
            (0x0e, 0x00, b"", Outcome::Stored, ""),
            (0x0f, 0x00, b"", Outcome::Stored, ""),
            (0x01, 0x01, b"Not found", Outcome::NotFound, ""),
            (0x01, 0x02, b"Data exists for key.", Outcome::Exists, ""),
            (0x02, 0x02, b"Data exists for key.", Outcome::NotStored, ""),
            (0x03, 0x01, b"Not found", Outcome::NotStored, ""),
            (0x0e, 0x05, b"Not stored.", Outcome::NotStored, ""),
            (0x0f, 0x05, b"Not stored.", Outcome::NotStored, ""),
            (0x04, 0x00, b"", Outcome::Deleted, ""),
            (0x04, 0x01, b"Not found", Outcome::NotFound, ""),
            (0x05, 0x00, &[0, 0, 0, 0, 0, 0, 1, 2], Outcome::Number(258), ""),
            (0x06, 0x00, &[0xff; 8], Outcome::Number(u64::MAX), ""),
            (0x05, 0x01, b"Not found", Outcome::NotFound, ""),
            (0x05, 0x06, b"Non-numeric", Outcome::Error(Fault::Client), "Non-numeric"),
            (0x1c, 0x00, &[0, 0, 0, 0], Outcome::Touched, ""),
            (0x1c, 0x01, b"Not found", Outcome::NotFound, ""),
            (0x0b, 0x00, b"1.6.18", Outcome::Ok, "1.6.18"),
            (0x01, 0x03, b"Too large.", Outcome::Error(Fault::Server), "Too large."),
            (0x01, 0x04, b"Invalid arguments", Outcome::Error(Fault::Client), "Invalid arguments"),
            (0x00, 0x81, b"Unknown command", Outcome::Error(Fault::Protocol), "Unknown command"),
            (0x01, 0x82, b"Out of memory", Outcome::Error(Fault::Server), "Out of memory"),
            (0x00, 0x86, b"", Outcome::Error(Fault::Server), ""),
            (0x00, 0x77, b"", Outcome::Error(Fault::Protocol), ""),
            (0x00, 0x20, b"Auth failure.", Outcome::Error(Fault::Client), "Auth failure."),
            (0x21, 0x00, b"Authenticated", Outcome::Ok, "Authenticated"),
            (0x21, 0x20, b"Auth failure.", Outcome::Error(Fault::Client), "Auth failure."),
            (0x21, 0x21, b"", Outcome::Error(Fault::Client), ""),
        ] {
            let body = [&b""[..], b"", body];
            let tagged = every_cut::<Binary>(&answers(code, status, body));
            assert_eq!(tagged, vec![ends(Some(TAG), outcome, message)], "{code:#x} {status:#x}");
            let plain = every_cut::<PlainBinary>(&plain(code, status, body));
            assert_eq!(plain, vec![ends(None, outcome, message)], "{code:#x} {status:#x}");
        }
    }

    #[test]
    fn a_value_passes_between_its_item_and_its_reply() {
        let flags = [0xde, 0xad, 0xbe, 0xef];
        let hit = answers(0x00, 0, [&flags, b"", b"World"]);
        let empty = answers(0x1d, 0, [&flags, b"", b""]);
        let mut expected = shows(Some(TAG), b"", 0xdead_beef, b"World");
        expected.push(ends(Some(TAG), Outcome::Hit, ""));
        expected.extend(shows(Some(TAG), b"", 0xdead_beef, b""));
        expected.push(ends(Some(TAG), Outcome::Hit, ""));
        assert_eq!(every_cut::<Binary>(&[hit, empty].concat()), expected);
    }

    #[test]
    fn the_cas_unique_comes_with_every_item() {
        let stream = packet(0x81, 0x00, 0, TAG, 0x0102_0304_0506_0708, [&[0; 4], b"", b"v"]);
        let seen = every_cut::<Binary>(&stream);
        assert!(matches!(seen[0], Seen::Item { cas: 0x0102_0304_0506_0708, .. }), "{seen:?}");
    }

    #[test]
    fn a_multi_get_ends_once_at_its_noop() {
        let item = |key: &[u8], value: &[u8]| answers(0x0d, 0, [&[0; 4], key, value]);
        let noop = answers(0x0a, 0, [b"", b"", b""]);
        let mut expected = shows(Some(TAG), b"one", 0, b"1");
        expected.extend(shows(Some(TAG), b"two", 0, b""));
        expected.extend([ends(Some(TAG), Outcome::Hit, ""), ends(Some(TAG), Outcome::Miss, "")]);
        let stream = [item(b"one", b"1"), item(b"two", b""), noop.clone(), noop.clone()].concat();
        assert_eq!(every_cut::<Binary>(&stream), expected);

        let error = answers(0x0d, 0x82, [b"", b"", b"Out of memory"]);
        let stream = [item(b"one", b"1"), error, item(b"two", b"22"), noop.clone(), noop].concat();
        let mut expected = shows(Some(TAG), b"one", 0, b"1");
        expected.push(ends(Some(TAG), Outcome::Error(Fault::Server), "Out of memory"));
        expected.push(ends(Some(TAG), Outcome::Miss, ""));
        assert_eq!(
            every_cut::<Binary>(&stream),
            expected,
            "what follows an error, up to the noop, is nobody's"
        );
    }

    fn after_a_multi_get_of_three() -> PlainBinary {
        let mut codec = PlainBinary::new();
        let mut out = Outbox::default();
        let three = Op { keys: Keys::Many { bytes: b"abc", ends: &[1, 2, 3] }, ..Op::new(Verb::Get, b"") };
        for op in [Op::new(Verb::Set, b"a"), three, Op::new(Verb::Get, b"a")] {
            codec.encode(&op, TAG, &mut out).expect("these can be said");
        }
        codec
    }

    #[test]
    fn a_plain_multi_get_ends_once_with_its_last_reply() {
        let (set, miss) = (plain(0x01, 0, [b""; 3]), plain(0x00, 1, [b"", b"", b"Not found"]));
        let item = plain(0x00, 0, [&[0; 4], b"", b"v"]);
        let error = plain(0x00, 0x82, [b"", b"", b"Out of memory"]);
        let value = shows(None, b"", 0, b"v");
        let (stored, hit, missed) =
            (ends(None, Outcome::Stored, ""), ends(None, Outcome::Hit, ""), ends(None, Outcome::Miss, ""));
        let broken = ends(None, Outcome::Error(Fault::Server), "Out of memory");
        let read = |replies: [&Vec<u8>; 3]| {
            let stream = [&set, replies[0], replies[1], replies[2], &item].map(|bytes| &bytes[..]).concat();
            every_cut_with(after_a_multi_get_of_three, &stream)
        };
        let whole = |batch: &[&[Seen]]| {
            let around = [std::slice::from_ref(&stored), &batch.concat(), &value, std::slice::from_ref(&hit)];
            around.concat()
        };
        let [missed, hit, broken] = [&missed, &hit, &broken].map(std::slice::from_ref);
        assert_eq!(read([&miss, &miss, &miss]), whole(&[missed]));
        assert_eq!(read([&item, &miss, &miss]), whole(&[&value, hit]));
        assert_eq!(read([&miss, &miss, &item]), whole(&[&value, hit]));
        assert_eq!(read([&item, &item, &item]), whole(&[&value, &value, &value, hit]));
        assert_eq!(read([&item, &error, &item]), whole(&[&value, broken]));
        assert_eq!(read([&error, &error, &error]), whole(&[broken]));
        assert_eq!(read([&miss, &miss, &error]), whole(&[broken]));
    }

    #[test]
    fn nobody_waits_for_the_failure_of_a_quiet_request() {
        for code in [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x19, 0x1a] {
            let stream =
                [answers(code, 2, [b"", b"", b"Data exists for key."]), answers(0x01, 0, [b""; 3])].concat();
            assert_eq!(every_cut::<Binary>(&stream), vec![ends(Some(TAG), Outcome::Stored, "")]);
            assert_eq!(every_cut::<PlainBinary>(&stream), vec![ends(None, Outcome::Stored, "")]);
        }
    }

    #[test]
    fn an_error_of_a_quiet_request_is_told_with_its_words() {
        let stream = [answers(0x11, 3, [b"", b"", b"Too large."]), answers(0x01, 0, [b""; 3])].concat();
        let told = Seen::QuietError(b"Too large.".to_vec());
        let expected = |tag| vec![told.clone(), ends(tag, Outcome::Stored, "")];
        assert_eq!(every_cut::<Binary>(&stream), expected(Some(TAG)));
        assert_eq!(every_cut::<PlainBinary>(&stream), expected(None));
    }

    #[test]
    fn long_words_are_cut_off() {
        let stream = [answers(0x01, 0x82, [b"", b"", &[b'x'; 600]]), answers(0x01, 0, [b""; 3])].concat();
        let expected = vec![
            ends(Some(TAG), Outcome::Error(Fault::Server), &"x".repeat(512)),
            ends(Some(TAG), Outcome::Stored, ""),
        ];
        assert_eq!(read_from(&mut Binary::new(), &[&stream]), expected);
        cut_in_turn::<Binary>(&stream, &[7, 100]);
        cut_in_turn::<Binary>(&stream, &[1]);
    }

    #[test]
    fn malformed_replies_end_the_stream_with_a_sentence() {
        let patched = |at: usize, byte: u8| {
            let mut bytes = answers(0x00, 0, [&[0; 4], b"", b"v"]);
            bytes[at] = byte;
            bytes
        };
        for (stream, part) in [
            (patched(3, 20), "contradict"),
            (patched(2, 20), "contradict"),
            (patched(4, 6), "contradict"),
            (patched(4, 3), "flags"),
            (patched(1, 0x0a + 0x30), "nobody sent"),
            (patched(1, 0x05), "eight bytes"),
            (patched(0, 0x80), "requests"),
            (b"ERROR\r\n".to_vec(), "text"),
            (b"-ERR\r\n".to_vec(), "RESP"),
            (vec![0x15, 3, 3, 0, 2], "TLS"),
            (vec![0], "magic"),
        ] {
            match every_cut::<Binary>(&stream).pop() {
                Some(Seen::Malformed(why)) => assert!(why.contains(part), "{why}"),
                other => panic!("{stream:?} was read as {other:?}"),
            }
        }
    }

    #[test]
    fn authentication_is_sasl_plain() {
        let body: [&[u8]; 3] = [b"", b"PLAIN", b"\0user\0secret"];
        let mut out = Outbox::default();
        assert_eq!(Binary::new().encode_auth(b"user", b"secret", TAG, &mut out), Ok(Expect::Reply));
        assert_eq!(sent(&out), asks(0x21, 0, body));
        let mut out = Outbox::default();
        assert_eq!(PlainBinary::new().encode_auth(b"user", b"secret", TAG, &mut out), Ok(Expect::Reply));
        assert_eq!(sent(&out), packet(0x80, 0x21, 0, 0, 0, body));
        let mut out = Outbox::default();
        assert!(Binary::new().encode_auth(b"us\0er", b"secret", TAG, &mut out).is_err());
        assert!(out.is_empty());
    }

    #[test]
    fn the_fuzz_target_holds_on_prefixes() {
        let stream = [
            answers(0x0d, 0, [&[0; 4], b"one", b"value"]),
            answers(0x0d, 0x82, [b"", b"", b"Out of memory"]),
            answers(0x0a, 0, [b""; 3]),
            answers(0x00, 0, [&[0; 4], b"", b"v"]),
            answers(0x00, 1, [b"", b"", b"Not found"]),
        ]
        .concat();
        fuzz_prefixes::<Binary>(&[&stream]);
        fuzz_prefixes::<PlainBinary>(&[&stream]);
    }

    proptest! {
        #[test]
        fn any_items_read_the_same_for_any_cuts(
            items in vec((vec(any::<u8>(), 0..250), vec(any::<u8>(), 0..600), any::<u32>()), 0..5),
            lengths in vec(any::<u8>(), 1..6),
        ) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for (key, value, flags) in &items {
                stream.extend(answers(0x0d, 0, [&flags.to_be_bytes(), key, value]));
                expected.extend(shows(Some(TAG), key, *flags, value));
            }
            stream.extend(answers(0x0a, 0, [b""; 3]));
            expected.push(ends(Some(TAG), if items.is_empty() { Outcome::Miss } else { Outcome::Hit }, ""));
            prop_assert_eq!(read_from(&mut Binary::new(), &[&stream]), expected);
            cut_in_turn::<Binary>(&stream, &lengths);
        }

        #[test]
        fn no_bytes_make_it_panic(data: Vec<u8>) {
            fuzz_decode::<Binary>(&data);
            fuzz_decode_with(after_a_multi_get_of_three, &data);
        }

        #[test]
        fn no_packets_in_any_order_make_it_panic(
            packets in vec((0u8..0x26, 0u16..8, 0usize..30, 0usize..6, 0u32..3), 0..8),
            lengths in vec(any::<u8>(), 0..7),
        ) {
            let mut data = vec![lengths.len() as u8];
            data.extend(lengths);
            for (code, status, value_bytes, extras_bytes, opaque) in packets {
                let body: [&[u8]; 3] = [&[0; 6][..extras_bytes], b"", &[7; 30][..value_bytes]];
                data.extend(packet(0x81, code, status, opaque, 1, body));
            }
            fuzz_decode::<Binary>(&data);
            fuzz_decode_with(after_a_multi_get_of_three, &data);
        }
    }
}
