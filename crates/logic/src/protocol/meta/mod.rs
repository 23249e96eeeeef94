//! memcached's meta protocol (mg, ms, md, ma, mn, me), as its `protocol.txt` describes it.
//!
//! Requests with a key carry an opaque: a letter for the kind of request, which replies do not repeat otherwise, and
//! the tag. Reply lines without an opaque (misses, the end mark of a multi-get, error lines) belong to the oldest
//! request, because servers answer in order; error lines may also belong to a request without reply.

mod decode;
mod encode;
mod reply;

use self::decode::Decoder;
use self::encode::{check_read, push_change, push_many, push_read};
use self::reply::OpaqueKind;
use super::{Codec, Expect, Keys, Malformed, NOT_MEMCACHED, Op, Refused, Skimmed, Step, Tag, Verb};
use crate::connection::outbox::Outbox;

/// Codec of the meta protocol on one connection.
///
/// A server answers requests without reply only if they fail, with lines that may lack an opaque. The module `batch`
/// finds out which request such a line belongs to.
#[derive(Debug)]
pub struct Meta {
    decoder: Decoder,
}

impl Codec for Meta {
    fn new() -> Meta {
        Meta { decoder: Decoder::new() }
    }

    #[inline]
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused> {
        match (op.verb, op.keys) {
            (verb, _) if verb.is_resp_only() => return Err(NOT_MEMCACHED),
            (Verb::Version, _) if op.noreply => {
                return Err(Refused("version cannot be asked for without a reply"));
            }
            (Verb::Version, _) => out.push(b"version\r\n"),
            (verb, _) if verb.reads() && op.noreply => {
                return Err(Refused("a read cannot go without a reply"));
            }
            (verb, Keys::One(key)) if verb.reads() => {
                check_read(key, op)?;
                push_read(key, op, OpaqueKind::Read, tag, out);
            }
            (verb, Keys::Many { .. } | Keys::Pairs(_)) if verb.reads() => {
                push_many(op, tag, out)?;
                self.decoder.batches.ask_batch(tag, 1);
                return Ok(Expect::Reply);
            }
            (_, Keys::Many { .. } | Keys::Pairs(_)) => return Err(Refused("only reads take several keys")),
            (_, Keys::One(key)) => push_change(key, op, tag, out)?,
        }
        if op.noreply {
            self.decoder.batches.ask_quietly();
            return Ok(Expect::Nothing);
        }
        self.decoder.batches.ask();
        Ok(Expect::Reply)
    }

    #[inline]
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed> {
        self.decoder.decode(input)
    }

    fn inquire(&mut self, out: &mut Outbox) {
        if self.decoder.batches.inquires() {
            out.push(b"mn\r\n");
        }
    }

    #[inline(always)]
    fn skim(&mut self, oldest: Tag, input: &mut &[u8]) -> Option<Skimmed> {
        self.decoder.skim(oldest, input)
    }
}

#[cfg(test)]
mod tests;
