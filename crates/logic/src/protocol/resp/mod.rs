//! RESP2 and RESP3, as the "Redis serialization protocol specification" describes them, with the commands of Redis
//! and compatible servers that correspond to memcached's verbs.

mod asked;
mod command_table;
mod decode;
mod encode;
pub mod key_lookups;
mod places;
mod reply;
pub mod reply_shape;
pub mod sequence;
mod sequence_replies;
pub mod template;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;

use self::asked::{ExpectedReply, UncommonReplies};
use self::encode::{encode_many, encode_other, push_bulk, push_field, push_set};
use self::sequence::Sending;
use self::template::Template;
use super::lines::Lines;
use super::sized_value::{ValuePart, ValuePosition};
use super::{Aside, Codec, Expect, Fault, Keys, Malformed, Op, Outcome, Refused, Skimmed, Step, Tag, Verb};
use crate::connection::outbox::Outbox;

/// RESP2 on one connection.
pub type Resp2 = Resp<2>;

/// RESP3 on one connection, which begins with the handshake [`Handshake::resp3`](super::handshake::Handshake::resp3).
pub type Resp3 = Resp<3>;

const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

const UNWATCH: &[u8] = b"*1\r\n$7\r\nUNWATCH\r\n";

/// Codec of RESP on one connection. Replies come in the order of the requests and carry no tag, and their meaning
/// depends on the request: the codec keeps the expected reply of each unanswered request.
///
/// Redis differs from memcached in some verbs: append and incr create a missing key, and decr goes below 0. A
/// negative number gives [`Outcome::Ok`], with the number as message.
#[derive(Debug)]
pub struct Resp<const VERSION: u8> {
    lines: Lines,
    /// The expected replies of unanswered requests, oldest first.
    asked: VecDeque<ExpectedReply>,
    /// State that only connections with multi-gets, with sequences or with errors sent as strings need.
    uncommon: Option<Box<UncommonReplies>>,
    /// The commands of the user; [`Verb::command`] is the place of each.
    commands: Option<Arc<Vec<Template>>>,
    /// Length in bytes of the hash field at the end of a key; 0 if keys are not split. A key is split if it is longer
    /// than this plus one byte: its last bytes are the field, the others are the key of the hash.
    field_bytes: u32,
    /// Number of values that are still to be received and dropped.
    skip: u64,
    /// Outcome with which the oldest request ends when all values to be dropped have come; `None` if no request ends
    /// then.
    ending: Option<Outcome>,
    /// Number of bytes of the current string that are still to come.
    left: u32,
    place: RespPosition,
    passing: Passing,
}

/// Position of the next byte in the stream of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RespPosition {
    /// The next byte is in the first line of a value.
    Line,
    /// The next byte is in a string or in the line end behind it.
    Value(ValuePosition),
}

/// The use of the string that is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    /// The string is the value of a read of one key.
    Whole,
    /// The string is one of the values of a multi-get.
    Part,
    /// The string is the message of an error.
    Words,
    /// The string is the name of a push message, and is dropped.
    Name,
    /// The string is dropped.
    Dropped,
}

/// Meaning of the end of a string.
enum StringEnd {
    /// The end ends no request.
    Nothing,
    /// A request ends with this outcome.
    Request(Outcome),
    /// The string was the name of a push message.
    Name,
}

/// Meaning of the first line of a value.
enum Meaning {
    /// The line ends no request and begins no item.
    Nothing,
    /// A value of this many bytes follows.
    Item(u32),
    /// A request ends with this outcome. The line is its message if it says more than the outcome.
    Reply(Outcome),
    /// A request ends with this outcome, after the last of its values.
    Over(Outcome),
    /// The line is an error in the replies to a sequence.
    FailsInSequence(Fault),
}

impl<const VERSION: u8> Codec for Resp<VERSION> {
    fn new() -> Resp<VERSION> {
        Resp {
            lines: Lines::default(),
            asked: VecDeque::new(),
            uncommon: None,
            commands: None,
            field_bytes: 0,
            skip: 0,
            ending: None,
            left: 0,
            place: RespPosition::Line,
            passing: Passing::Dropped,
        }
    }

    fn renew(&self) -> Resp<VERSION> {
        Resp { commands: self.commands.clone(), field_bytes: self.field_bytes, ..Resp::new() }
    }

    #[inline]
    fn encode(&mut self, op: &Op<'_>, _tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        if op.noreply {
            return Err(Refused("RESP has no form of a request that goes without a reply"));
        }
        let kind = match op.keys {
            Keys::One(key) => self.encode_one(op, key, out)?,
            Keys::Many { .. } | Keys::Pairs(_) if op.verb.is_command() => {
                self.encode_one(op, op.keys.key(0), out)?
            }
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
                        Passing::Words | Passing::Name => {
                            self.uncommon.get_or_insert_default().keep_words(bytes);
                            continue;
                        }
                        Passing::Dropped => continue,
                    },
                    ValuePart::End => {
                        self.place = RespPosition::Line;
                        match self.string_ends() {
                            StringEnd::Nothing => {}
                            StringEnd::Request(outcome) => return Ok(self.reply(outcome, None)),
                            StringEnd::Name => return Ok(self.push()),
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
                Meaning::FailsInSequence(fault) => {
                    if let Some(uncommon) = &mut self.uncommon {
                        uncommon.fail_in_sequence(fault, &self.lines.line(line)[1..], self.skip > 0);
                    }
                    if let Some(outcome) = self.value_ends() {
                        return Ok(self.reply(outcome, None));
                    }
                }
                Meaning::Reply(outcome) => {
                    return Ok(self.reply(outcome, reply::said(head, outcome).then_some(line)));
                }
            }
        }
    }

    fn encode_aside(&mut self, aside: Aside<'_>, out: &mut Outbox) -> bool {
        match aside {
            Aside::Asking => {
                out.push(ASKING);
                self.asked.push_back(ExpectedReply::Stored);
            }
            Aside::LoadScript(script) => {
                _ = self.encode_command(&[b"SCRIPT", b"LOAD", script.as_bytes()], out)
            }
        }
        true
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
    /// Creates a codec for a new connection that sends these commands of the user.
    pub fn with_commands(commands: Arc<Vec<Template>>) -> Resp<VERSION> {
        Resp { commands: Some(commands), ..Resp::new() }
    }

    /// Returns a codec with the same commands that keeps values in hashes: of a key longer than `field_bytes` plus
    /// one byte, the last `field_bytes` bytes are the field that is read, stored or deleted, and the others are the
    /// key of the hash. Shorter keys, and requests of several keys, are sent unchanged.
    pub fn keeping_hashes(self, field_bytes: u32) -> Resp<VERSION> {
        Resp { field_bytes, ..self }
    }

    /// Appends a command of these words. The type of the reply decides the outcome: [`Outcome::Number`] for an
    /// integer of 0 or more, [`Outcome::NotFound`] for null, [`Outcome::Error`] for an error, and otherwise
    /// [`Outcome::Ok`].
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

    /// Appends a command of the user, or those commands of a sequence that [`Op::cas`] says.
    #[inline(never)]
    fn encode_command_of_user(&mut self, op: &Op<'_>, out: &mut Outbox) -> Result<ExpectedReply, Refused> {
        let template = op.verb.command().zip(self.commands.as_ref()).and_then(|(place, all)| all.get(place));
        let template = template.ok_or(Refused("a command needs a template that says what it is"))?;
        template.check(op)?;
        let Some(sequence) = template.sequence() else {
            template.push(0, op, out);
            return Ok(template.looked_up().map_or(ExpectedReply::Any, ExpectedReply::LookedUp));
        };
        let mut sending = Sending::from_bits(op.cas);
        if sending.is_unwatching {
            out.push(UNWATCH);
            return Ok(ExpectedReply::Any);
        }
        if sending.commands == 0 {
            sending.commands = sequence.first_part();
        }
        for number in sequence::numbers(sending.commands & sequence.all()) {
            if sending.is_asking && sequence.takes_asking(number) {
                out.push(ASKING);
            }
            template.push(number, op, out);
        }
        self.uncommon.get_or_insert_default().ask_sequence(sequence, sending);
        Ok(ExpectedReply::Sequence)
    }

    /// Appends a request with one key or none.
    #[inline]
    fn encode_one(&mut self, op: &Op<'_>, key: &[u8], out: &mut Outbox) -> Result<ExpectedReply, Refused> {
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
            verb if verb.is_command() => self.encode_command_of_user(op, out),
            _ => encode_other(op, key, out),
        }
    }
}

#[cfg(test)]
mod tests;
