//! memcached's classic text protocol, as its `protocol.txt` describes it.

mod decode;
mod encode;

use self::decode::{ReplyReader, TextPosition, after_item, foreign};
pub use self::encode::BOGUS_WORD;
use self::encode::{CommandStyle, encode_change, encode_read};
use super::lines::{Lines, is_error};
use super::sized_value::ValuePart;
use super::{Codec, Expect, Malformed, NOT_MEMCACHED, Op, Outcome, Refused, Skimmed, Step, Tag, Verb};
use crate::connection::outbox::Outbox;

/// The text protocol on one connection. Replies come in the order of requests and carry no tag.
///
/// The codec does not know what was asked. The caller has to notice a reply that does not fit its request, and an error
/// line that answers a request without reply.
#[derive(Debug)]
pub struct Text {
    lines: Lines,
    reply: ReplyReader,
    style: CommandStyle,
}

impl Codec for Text {
    const ERRORS_END_ANYWHERE: bool = true;

    fn new() -> Text {
        let reply = ReplyReader { body_left: 0, place: TextPosition::Line, found: false };
        Text { lines: Lines::default(), reply, style: CommandStyle::Plain }
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
        if let TextPosition::Value(position) = &mut self.reply.place {
            match position.take(&mut self.reply.body_left, input)? {
                ValuePart::Need => return Ok(Step::Need),
                ValuePart::Bytes(bytes) => return Ok(Step::Body(bytes)),
                ValuePart::End => self.reply.place = TextPosition::Line,
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
        if self.reply.place != TextPosition::Line || self.reply.found || !self.lines.at_start() {
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

impl Text {
    /// A codec that writes a blank before the end of every command line that is not a read's and asks for a reply, as
    /// mcperf does byte by byte.
    pub fn with_blanks() -> Text {
        Text { style: CommandStyle::Blank, ..Text::new() }
    }

    /// A codec that writes what [`Text::with_blanks`] writes, with [`BOGUS_WORD`] for `set`.
    pub fn with_bogus_sets() -> Text {
        Text { style: CommandStyle::Bogus, ..Text::new() }
    }
}

#[cfg(test)]
mod tests;
