//! Replies of memcached's meta protocol, and the requests that they answer.

use super::reply::{self, MetaReply, OpaqueKind, ReplyCode};
use crate::protocol::batch::{Batches, Blame, Found};
use crate::protocol::lines::{self, Line, Lines};
use crate::protocol::sized_value::{ValuePart, ValuePosition};
use crate::protocol::{Fault, Malformed, Outcome, Skimmed, Step, Tag};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The decoder of the replies on one connection.
#[derive(Debug)]
pub(super) struct Decoder {
    lines: Lines,
    pub(super) batches: Batches,
    /// Buffer for a key that was sent in base64.
    key: Option<Box<[u8; lines::KEY_MAX_BYTES]>>,
    /// Tag of the request whose value or number is being received.
    tag: Tag,
    /// Bytes of the value or number that are still to come.
    left: u32,
    place: MetaPosition,
    value: PassingValue,
}

/// Position of the next byte in the stream of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetaPosition {
    /// The next byte is in a line.
    Line,
    /// The next byte is in the line with the number after an incr or decr.
    Number,
    /// The next byte is in a value or in the line end after it.
    Value(ValuePosition),
    /// The next byte is in a line, but errors whose requests became known are reported first.
    Failed,
}

/// The use of the value that is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PassingValue {
    /// The value answers a read of one key with this result.
    Whole(Found),
    /// The value is one of those of a multi-get.
    Part,
    /// The value is dropped.
    Dropped,
}

/// Meaning of a reply line.
enum Meaning {
    /// The line gives no step by itself.
    Nothing,
    /// A value of this size follows, for the request with this tag.
    Item(Tag, u32),
    /// A request ends with this outcome; `None` for the tag means the oldest request.
    Reply(Option<Tag>, Outcome),
    /// A request without reply failed.
    QuietError,
    /// An error came whose request is not known yet.
    Unclear(Fault),
}

impl Decoder {
    /// A decoder for a new connection.
    pub(super) fn new() -> Decoder {
        Decoder {
            lines: Lines::default(),
            batches: Batches::default(),
            key: None,
            tag: 0,
            left: 0,
            place: MetaPosition::Line,
            value: PassingValue::Dropped,
        }
    }

    #[inline]
    pub(super) fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        loop {
            match self.place {
                MetaPosition::Line => {}
                MetaPosition::Number => return self.take_number(input),
                MetaPosition::Failed => match self.batches.next_failed() {
                    None => {
                        self.place = MetaPosition::Line;
                        continue;
                    }
                    Some(None) => return Ok(Step::QuietError { message: self.batches.failed_words() }),
                    Some(Some(fault)) => {
                        let (outcome, message) = (Outcome::Error(fault), self.batches.failed_words());
                        return Ok(Step::Reply { tag: None, outcome, message });
                    }
                },
                MetaPosition::Value(ref mut position) => match position.take(&mut self.left, input)? {
                    ValuePart::Need => return Ok(Step::Need),
                    ValuePart::Bytes(_) if self.value == PassingValue::Dropped => continue,
                    ValuePart::Bytes(bytes) => return Ok(Step::Body(bytes)),
                    ValuePart::End => {
                        self.place = MetaPosition::Line;
                        if let PassingValue::Whole(found) = self.value {
                            return Ok(self.answer(found.outcome()));
                        }
                    }
                },
            }
            let Some(line) = self.take_line(input)? else { return Ok(Step::Need) };
            let reply = MetaReply::read(self.lines.line(line))?;
            match self.meaning(&reply)? {
                Meaning::Nothing => {}
                Meaning::Item(tag, size) => return self.item(&reply, tag, size, line),
                Meaning::Reply(tag, outcome) => {
                    let message = &self.lines.line(line)[reply.text_at..];
                    return Ok(Step::Reply { tag, outcome, message });
                }
                Meaning::QuietError => {
                    return Ok(Step::QuietError { message: &self.lines.line(line)[reply.text_at..] });
                }
                Meaning::Unclear(fault) => {
                    self.batches.keep(fault, &self.lines.line(line)[reply.text_at..]);
                }
            }
        }
    }

    /// Takes a whole reply to the oldest request, as [`Codec::skim`](crate::protocol::Codec::skim) does.
    #[inline(always)]
    pub(super) fn skim(&mut self, oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        let at_start = self.place == MetaPosition::Line && self.lines.at_start();
        if !at_start || self.batches.current().is_some() {
            return None;
        }
        let (skimmed, rest) = reply::whole(input, oldest)?;
        self.batches.answer();
        *input = rest;
        Some(skimmed)
    }

    #[inline]
    fn take_line<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Line<'i>>, Malformed> {
        if self.lines.at_start() {
            let Some(&first) = input.first() else { return Ok(None) };
            if !first.is_ascii_uppercase() {
                return Err(reply::foreign(first));
            }
        }
        self.lines.advance(input, lines::is_error)
    }

    /// Takes the line after the VA line of an incr or decr.
    fn take_number(&mut self, input: &mut &[u8]) -> Result<Step<'static>, Malformed> {
        if input.is_empty() {
            return Ok(Step::Need);
        }
        let Some(line) = self.lines.advance(input, |_| false)? else { return Ok(Step::Need) };
        let digits = self.lines.line(line);
        if digits.len() != self.left as usize {
            return Err(Malformed("a number is not as long as the server said"));
        }
        let number = lines::whole_decimal(digits).ok_or(Malformed("a number is no decimal of 64 bits"))?;
        self.place = MetaPosition::Line;
        Ok(self.answer(Outcome::Number(number)))
    }

    /// Ends the request whose value or number is complete.
    #[inline]
    fn answer(&mut self, outcome: Outcome) -> Step<'static> {
        self.batches.answer();
        Step::Reply { tag: Some(self.tag), outcome, message: &[] }
    }

    /// Returns the meaning of a whole line.
    #[inline]
    fn meaning(&mut self, reply: &MetaReply) -> Result<Meaning, Malformed> {
        match (reply.code, reply.asked) {
            (ReplyCode::Value(size), Some((kind, tag))) => self.value_begins(reply, size, kind, tag),
            (ReplyCode::Plain(Outcome::Error(fault)), _) => Ok(self.failed(fault)),
            (ReplyCode::Plain(outcome), _) => {
                self.batches.answer();
                Ok(Meaning::Reply(None, outcome))
            }
            (ReplyCode::End, _) => self.batch_ends(),
            (_, Some((kind, tag))) => match reply.outcome(kind)? {
                None => Ok(Meaning::Nothing),
                Some(outcome) => {
                    self.batches.answer();
                    Ok(Meaning::Reply(Some(tag), outcome))
                }
            },
            (ReplyCode::Miss, None) => {
                self.batches.answer();
                Ok(Meaning::Reply(None, Outcome::Miss))
            }
            (_, None) => Err(Malformed("a meta reply does not repeat the opaque of its request")),
        }
    }

    /// Begins the value or the number that follows a VA line.
    #[inline]
    fn value_begins(
        &mut self,
        reply: &MetaReply,
        size: u32,
        kind: OpaqueKind,
        tag: Tag,
    ) -> Result<Meaning, Malformed> {
        self.tag = tag;
        self.left = size;
        self.place = MetaPosition::Value(ValuePosition::at_start(size));
        self.value = match kind {
            OpaqueKind::Read => PassingValue::Whole(reply.found()),
            OpaqueKind::Quiet => PassingValue::Dropped,
            OpaqueKind::Count => {
                self.place = MetaPosition::Number;
                return Ok(Meaning::Nothing);
            }
            OpaqueKind::Part => match self.batches.batch_of(tag) {
                Some(batch) if batch.ended => PassingValue::Dropped,
                Some(batch) => {
                    batch.found = batch.found.max(reply.found());
                    PassingValue::Part
                }
                None => return Err(Malformed("a value for no multi-get in flight")),
            },
            _ => return Err(Malformed("a value for a request that did not ask for one")),
        };
        let shown = self.value != PassingValue::Dropped && !reply.is_place(size);
        Ok(if shown { Meaning::Item(tag, size) } else { Meaning::Nothing })
    }

    /// Handles an error line. An error ends a multi-get at once; later replies to it, up to its end mark, are
    /// dropped.
    fn failed(&mut self, fault: Fault) -> Meaning {
        let outcome = Outcome::Error(fault);
        match self.batches.blame() {
            Blame::Oldest => {}
            Blame::Quiet => return Meaning::QuietError,
            Blame::Unclear => return Meaning::Unclear(fault),
        }
        match self.batches.current() {
            None => {
                self.batches.answer();
                Meaning::Reply(None, outcome)
            }
            Some(batch) if batch.ended => Meaning::Nothing,
            Some(batch) => {
                batch.ended = true;
                Meaning::Reply(Some(batch.tag), outcome)
            }
        }
    }

    /// Handles the end mark of a multi-get, or the answer to a question of the codec.
    fn batch_ends(&mut self) -> Result<Meaning, Malformed> {
        let ended = self.batches.end_batch();
        let (batch, has_failed) = ended.ok_or(Malformed("an MN line without a request"))?;
        if has_failed {
            self.place = MetaPosition::Failed;
        }
        let is_nothing = batch.ended || batch.is_inquiry;
        Ok(if is_nothing { Meaning::Nothing } else { Meaning::Reply(Some(batch.tag), batch.found.outcome()) })
    }

    #[inline]
    fn item<'s>(
        &'s mut self,
        reply: &MetaReply,
        tag: Tag,
        size: u32,
        line: Line<'s>,
    ) -> Result<Step<'s>, Malformed> {
        let sent = &self.lines.line(line)[reply.key.0..reply.key.1];
        let key = if reply.key_encoded {
            let decoded = self.key.get_or_insert_with(|| Box::new([0; lines::KEY_MAX_BYTES]));
            let length = BASE64.decode_slice(sent, &mut decoded[..]);
            &decoded[..length.map_err(|_| Malformed("a key is not in base64"))?]
        } else {
            sent
        };
        Ok(Step::Item {
            tag: Some(tag),
            key,
            size: u64::from(size),
            cas: reply.cas,
            flags: reply.client_flags,
        })
    }
}
