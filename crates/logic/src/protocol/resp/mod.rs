//! RESP2 and RESP3, as the "Redis serialization protocol specification" describes them, with the commands of Redis and
//! its relatives that do what memcached's verbs do.

mod asked;
mod decode;
mod encode;
mod reply;
pub mod template;

use std::collections::VecDeque;
use std::sync::Arc;

use self::asked::{ExpectedReply, UncommonReplies};
use self::encode::{encode_many, encode_other, push_bulk, push_field, push_set};
use self::template::Template;
use super::lines::Lines;
use super::sized_value::{ValuePart, ValuePosition};
use super::{Codec, Expect, Keys, Malformed, Op, Outcome, Refused, Skimmed, Step, Tag, Verb};
use crate::connection::outbox::Outbox;

/// RESP2 on one connection.
pub type Resp2 = Resp<2>;

/// RESP3 on one connection, which begins with the handshake [`Handshake::resp3`](super::handshake::Handshake::resp3).
pub type Resp3 = Resp<3>;

/// RESP on one connection. Replies come in the order of requests and carry no tag; what was asked is kept, because a
/// reply does not say what it answers.
///
/// Where Redis differs from memcached, Redis' answer stands: append and incr make the key where there is none, decr
/// goes below 0 (the answer is then [`Outcome::Ok`], with the number as words).
#[derive(Debug)]
pub struct Resp<const VERSION: u8> {
    lines: Lines,
    /// The expected replies of unanswered requests, oldest first.
    asked: VecDeque<ExpectedReply>,
    /// State that only some connections need.
    uncommon: Option<Box<UncommonReplies>>,
    /// The command of [`Verb::Command`].
    template: Option<Arc<Template>>,
    /// Longer keys than one byte more than this are hashes, with so many last bytes as the field; 0: none is.
    field_bytes: u32,
    /// Values that are still to come and are dropped.
    skip: u64,
    /// Outcome of the oldest request when the dropped values have come.
    ending: Option<Outcome>,
    /// Bytes of the string being received that are still to come.
    left: u32,
    place: RespPosition,
    passing: Passing,
}

/// Position of the next byte in the stream of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RespPosition {
    /// In the first line of a value.
    Line,
    /// In a string, or in its line end.
    Value(ValuePosition),
}

/// The reply that the string being received belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// A read of one key.
    Whole,
    /// The reply to a multi-get.
    Part,
    /// The words of an error.
    Words,
    /// Nothing: the string is dropped.
    Dropped,
}

/// Meaning of a line to the codec.
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

impl<const VERSION: u8> Codec for Resp<VERSION> {
    fn new() -> Resp<VERSION> {
        Resp {
            lines: Lines::default(),
            asked: VecDeque::new(),
            uncommon: None,
            template: None,
            field_bytes: 0,
            skip: 0,
            ending: None,
            left: 0,
            place: RespPosition::Line,
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
                if kind == ExpectedReply::Values {
                    self.uncommon.get_or_insert_default().ask(&op.keys);
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
                RespPosition::Line => {}
                RespPosition::Value(ref mut position) => match position.take(&mut self.left, input)? {
                    ValuePart::Need => return Ok(Step::Need),
                    ValuePart::Bytes(bytes) => match self.passing {
                        Passing::Whole | Passing::Part => return Ok(Step::Body(bytes)),
                        Passing::Words => {
                            self.uncommon.get_or_insert_default().keep_words(bytes);
                            continue;
                        }
                        Passing::Dropped => continue,
                    },
                    ValuePart::End => {
                        self.place = RespPosition::Line;
                        if let Some(outcome) = self.string_ends() {
                            return Ok(self.reply(outcome, None));
                        }
                    }
                },
            }
            let Some(line) = self.take_line(input)? else { return Ok(Step::Need) };
            let head = reply::head(self.lines.line(line))?;
            match self.meaning(head)? {
                Meaning::Nothing => {}
                Meaning::Item(size) => return Ok(self.item(size)),
                Meaning::Over(outcome) => return Ok(self.reply(outcome, None)),
                Meaning::Reply(outcome) => {
                    return Ok(self.reply(outcome, reply::said(head, outcome).then_some(line)));
                }
            }
        }
    }

    #[inline(always)]
    fn skim(&mut self, _oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        if self.place != RespPosition::Line || self.skip > 0 || !self.lines.at_start() {
            return None;
        }
        let (skimmed, rest) = match self.asked.front()? {
            ExpectedReply::Value => reply::whole_value(input, VERSION)?,
            ExpectedReply::Stored => {
                (Skimmed { outcome: Outcome::Stored, items: 0 }, input.strip_prefix(b"+OK\r\n")?)
            }
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

    /// A codec with this template that keeps values in hashes: a key of more than `field_bytes` bytes and one is cut,
    /// its last bytes being the field that is read, stored or deleted. Shorter keys stay what they are.
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
        self.asked.push_back(ExpectedReply::Any);
        Expect::Reply
    }

    /// Writes a request that has one key, or none.
    #[inline]
    fn encode_one(&self, op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
        if self.field_bytes > 0 && key.len() > self.field_bytes as usize + 1 {
            let (name, field) = key.split_at(key.len() - self.field_bytes as usize);
            return push_field(op, name, field, out);
        }
        match op.verb {
            Verb::Get => {
                out.push(b"*2\r\n$3\r\nGET\r\n");
                push_bulk(out, key);
                Ok(ExpectedReply::Value)
            }
            Verb::Set | Verb::Add | Verb::Replace => push_set(op, key, out),
            Verb::Command => {
                let template = self.template.as_ref();
                template.ok_or(Refused("a command needs a template that says what it is"))?.push(op, out)?;
                Ok(ExpectedReply::Any)
            }
            _ => encode_other(op, key, out),
        }
    }
}

#[cfg(test)]
mod tests;
