//! memcached's binary protocol, as `protocol-binary.txt` and memcached's `protocol_binary.h` describe it.
//!
//! Two codecs write it in two ways. [`Binary`] numbers requests by their opaque, and a multi-get is quiet reads with a
//! noop at their end. [`PlainBinary`] writes what memaslap and mutilate write: the opaque is always 0, replies are
//! matched by their order, and a multi-get is that many plain gets in one write.

mod decode;
mod encode;
mod packets;

use self::decode::{Meaning, item, outcome, quiet_change, reply, skimmed, words};
pub(super) use self::encode::push_auth;
use self::encode::{check_many, encode_one, push_read};
use self::packets::{PacketEvent, Packets, ReplyHeader, RequestHeader, opcode, status};
use super::batch::{Batches, Found};
use super::{Codec, Expect, Keys, Malformed, Op, Outcome, Refused, Skimmed, Step, Tag};
use crate::connection::outbox::Outbox;

/// Codec of the binary protocol with a different opaque for each request.
///
/// A server answers a request without reply if the request does not succeed. Errors are reported, other
/// answers are dropped.
#[derive(Debug)]
pub struct Binary {
    packets: Packets,
    /// The state of the multi-get whose replies are being received.
    group: MultigetState,
    /// Tag of the read whose value is being received; it ends with the value.
    reading: Option<Tag>,
}

/// Progress of the replies to a multi-get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MultigetState {
    /// No item has come.
    Empty,
    /// An item has come for the multi-get with this tag.
    Found(Tag),
    /// The multi-get with this tag has ended with an error; replies that still come for it, up to its noop, are
    /// dropped.
    Ended(Tag),
}

/// The binary protocol as memaslap and mutilate write it: opaque 0, matched by order.
#[derive(Debug)]
pub struct PlainBinary {
    packets: Packets,
    batches: Batches,
    /// Whether the request is answered when the value being received is complete.
    reading: bool,
}

impl Codec for Binary {
    fn new() -> Binary {
        Binary { packets: Packets::new(), group: MultigetState::Empty, reading: None }
    }

    #[inline]
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        if let Keys::One(_) = op.keys {
            return encode_one(op, tag, out);
        }
        let read = check_many(op)?;
        for n in 0..op.keys.count() {
            let head = RequestHeader {
                opcode: if read == opcode::GAT { opcode::GATKQ } else { opcode::GETKQ },
                opaque: tag,
                cas: 0,
            };
            push_read(head, op.keys.key(n), op.expiry_s, out);
        }
        RequestHeader { opcode: opcode::NOOP, opaque: tag, cas: 0 }.push(0, 0, 0, out);
        Ok(Expect::Reply)
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        loop {
            match self.packets.take(input)? {
                PacketEvent::Need => return Ok(Step::Need),
                PacketEvent::Value(bytes) => return Ok(Step::Body(bytes)),
                PacketEvent::ValueEnd => {
                    if let Some(tag) = self.reading.take() {
                        return Ok(Step::Reply { tag: Some(tag), outcome: Outcome::Hit, message: &[] });
                    }
                }
                PacketEvent::Head(header, kept) => match self.meaning(&header) {
                    Meaning::Nothing | Meaning::Absent => self.packets.drop_value(),
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
        if self.group != MultigetState::Empty {
            return None;
        }
        let (header, rest) = self.packets.whole(input)?;
        let skimmed = skimmed(&header).filter(|_| header.opaque == oldest)?;
        *input = rest;
        Some(skimmed)
    }
}

impl Binary {
    fn meaning(&mut self, header: &ReplyHeader) -> Meaning {
        let tag = header.opaque;
        match header.opcode {
            opcode::GETKQ | opcode::GATKQ => match header.status {
                _ if self.group == MultigetState::Ended(tag) => Meaning::Nothing,
                status::DONE => {
                    self.group = MultigetState::Found(tag);
                    Meaning::Item
                }
                status::NOT_FOUND => Meaning::Nothing,
                _ => {
                    self.group = MultigetState::Ended(tag);
                    Meaning::Reply(outcome(header))
                }
            },
            opcode::NOOP => match std::mem::replace(&mut self.group, MultigetState::Empty) {
                MultigetState::Ended(ended) if ended == tag => Meaning::Nothing,
                _ if header.status != status::DONE => Meaning::Reply(outcome(header)),
                MultigetState::Found(found) if found == tag => Meaning::Reply(Outcome::Hit),
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
            push_read(RequestHeader { opcode: read, opaque: 0, cas: 0 }, op.keys.key(n), op.expiry_s, out);
        }
        self.batches.ask_batch(tag, op.keys.count() as u32);
        Ok(Expect::Reply)
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        loop {
            match self.packets.take(input)? {
                PacketEvent::Need => return Ok(Step::Need),
                PacketEvent::Value(bytes) => return Ok(Step::Body(bytes)),
                PacketEvent::ValueEnd => {
                    if std::mem::take(&mut self.reading) {
                        return Ok(Step::Reply { tag: None, outcome: Outcome::Hit, message: &[] });
                    }
                }
                PacketEvent::Head(header, kept) => match self.meaning(&header) {
                    Meaning::Nothing => self.packets.drop_value(),
                    Meaning::Absent => return Ok(Step::Absent),
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
    fn meaning(&mut self, header: &ReplyHeader) -> Meaning {
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
            Outcome::Miss => Meaning::Absent,
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

#[cfg(test)]
mod tests;
