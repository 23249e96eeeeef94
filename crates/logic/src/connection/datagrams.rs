//! Requests and replies over datagrams: each request is one datagram, and a number in front of each reply names its
//! request.

use std::collections::BTreeMap;

use super::answer::{Answer, Chunk, Item, Sink, Stamp, UNFIT, arrived, ended, ending, pass_item};
use crate::connection::inflight::{AnswerUse, Inflight, Ticket};
use crate::connection::outbox::Outbox;
use crate::protocol::udp::{
    Abandoned, DATAGRAM_MAX_BYTES, DatagramCounts, Frame, Gathered, Gathering, Shape, Taken, shape,
};
use crate::protocol::{Codec, Expect, Fault, Malformed, Op, Outcome, Refused, Step, Tag};
use crate::time::Nanos;

/// Most requests from the oldest unanswered one on that are sent; later ones wait, so that a number of 16 bits always
/// names one request.
const WINDOW: usize = 1 << 15;

/// Most buffers of finished replies that are kept for later ones.
const SPARE_MAX: usize = 64;

/// The state of a session over datagrams beside that of every session.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// Replies that have begun to arrive, and replies to multi-gets from their request on.
    gatherings: BTreeMap<Tag, Box<Gathering>>,
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Gathering>>,
    abandoned: Abandoned,
    counts: DatagramCounts,
    /// The server numbers all datagrams of a multi-get's reply together.
    is_stream: bool,
}

impl Datagrams {
    /// Begins anew for another connection. No reply goes on that has begun to arrive; what is known of the server and of requests
    /// that were given up holds still.
    pub(super) fn begin_connection(&mut self) {
        let Datagrams { gatherings, spare: _, abandoned: _, counts: _, is_stream: _ } = self;
        gatherings.clear();
    }

    /// Takes the counters of datagrams.
    pub(super) fn take_counts(&mut self) -> DatagramCounts {
        std::mem::take(&mut self.counts)
    }

    fn gathering(&mut self) -> Box<Gathering> {
        self.spare.pop().unwrap_or_default()
    }

    fn put_back(&mut self, gathering: Box<Gathering>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(gathering);
        }
    }
}

const TOO_LARGE: Refused = Refused("a request over UDP has to fit in one datagram of 1,400 bytes");

const BROKEN: Malformed = Malformed("a reply is not what its length says, or goes on behind its end");

/// The next datagram to send: all of it lies in one piece, since it has no long part of a value.
pub(super) fn next_datagram<'a>(owed: &Inflight, outbox: &'a Outbox) -> Option<&'a [u8]> {
    let (len, _) = owed.next_unsent().filter(|(_, place)| *place < WINDOW)?;
    Some(&outbox.own()[..len])
}

/// The parts of a session that requests and replies over datagrams change.
pub(super) struct DatagramExchange<'s, C> {
    pub(super) codec: &'s mut C,
    pub(super) outbox: &'s mut Outbox,
    pub(super) owed: &'s mut Inflight,
    /// Bytes that were ever taken from the outbox.
    pub(super) taken: &'s mut u64,
    pub(super) datagrams: &'s mut Datagrams,
}

impl<C: Codec> DatagramExchange<'_, C> {
    /// Gives up every request that has taken `timeout` nanoseconds or longer at `at`, and returns their number. Replies
    /// that come later are recognised and dropped.
    pub(super) fn handle_overdue(&mut self, timeout: Nanos, at: Nanos, sink: &mut impl Sink) -> u32 {
        let mut count = 0;
        let unsent = self.owed.abandon(at.saturating_sub(timeout), at, |tag, owed| {
            count += 1;
            self.datagrams.counts.udp_timeout += 1;
            let gathering = self.datagrams.gatherings.remove(&tag);
            if owed.was_sent() {
                self.datagrams.abandoned.insert(tag as u16);
                let missing = gathering.as_ref().map_or(0, |gathering| gathering.missing());
                self.datagrams.counts.packet_drop += missing.max(1);
            }
            if let Some(gathering) = gathering {
                self.datagrams.put_back(gathering);
            }
            sink.lost(&ended(owed, Outcome::Error(Fault::Timeout), at, Stamp::Nothing));
        });
        self.leave_out(unsent);
        count
    }

    /// Queues a request as a datagram, and returns the number of bytes that wait to be sent.
    pub(super) fn request(&mut self, op: &Op<'_>, ticket: Ticket) -> Result<usize, Refused> {
        if op.value.len() > DATAGRAM_MAX_BYTES {
            return Err(TOO_LARGE);
        }
        while self.datagrams.abandoned.contains(self.owed.next_tag() as u16) {
            self.owed.skip();
        }
        let tag = self.owed.next_tag();
        let before = self.outbox.len();
        self.outbox.push(&Frame::single(tag as u16).encode());
        let encoded = self.codec.encode(op, tag, self.outbox);
        let len = self.outbox.len() - before;
        let expect = match encoded {
            Ok(expect) if len <= DATAGRAM_MAX_BYTES => expect,
            refused => {
                self.outbox.cut_back(before);
                return Err(refused.err().unwrap_or(TOO_LARGE));
            }
        };
        if op.verb.reads() && op.keys.count() > 1 {
            let mut gathering = self.datagrams.gathering();
            gathering.begin(Some(&op.keys));
            self.datagrams.gatherings.insert(tag, gathering);
        }
        let waiting_bytes = self.outbox.len();
        self.owed.push(ticket, *self.taken + waiting_bytes as u64, expect == Expect::Nothing);
        Ok(waiting_bytes)
    }

    /// Takes in that a system call which began at `at` took a datagram of `count` bytes. Returns the number of requests in
    /// it: 0 or 1.
    pub(super) fn handle_sent(&mut self, count: usize, at: Nanos, sink: &mut impl Sink) -> u32 {
        if count == 0 {
            return 0;
        }
        self.leave_out(count as u64);
        let unsent = self.owed.handle_one_sent(at, |owed| {
            sink.answer(&ended(owed, Outcome::Ok, at, Stamp::Nothing), &[]);
        });
        self.leave_out(unsent);
        1
    }

    /// Removes the next bytes from the output, which were sent or are not to be sent.
    fn leave_out(&mut self, bytes: u64) {
        self.outbox.take(bytes as usize);
        *self.taken += bytes;
    }

    /// Decodes a datagram that arrived, and returns the number of requests that it answered: 0 or 1. A malformed
    /// datagram fails at most the request that it names.
    pub(super) fn handle_received(&mut self, chunk: Chunk<'_>, sink: &mut impl Sink) -> u32 {
        let waiting = Frame::decode(chunk.bytes).and_then(|(frame, payload)| {
            let tag = self.owed.tag_of(frame.request);
            let owed = self.owed.find(Some(tag))?;
            Some((frame, payload, tag, owed.ticket.verb.reads()))
        });
        let Some((frame, payload, tag, reads)) = waiting else {
            self.datagrams.counts.stray += 1;
            self.datagrams.counts.packet_disorder += 1;
            return 0;
        };
        let known = self.datagrams.gatherings.remove(&tag);
        if known.is_none() && frame == Frame::single(frame.request) && is_whole(payload, reads) {
            return self.answer_whole(tag, payload, chunk, sink);
        }
        let mut gathering = known.unwrap_or_else(|| {
            let mut gathering = self.datagrams.gathering();
            gathering.begin(None);
            gathering
        });
        if gathering.take(frame, payload) != Taken::InOrder {
            self.datagrams.counts.packet_disorder += 1;
        }
        let answered = self.answer_gathered(tag, &mut gathering, chunk, sink);
        if answered == 0 {
            self.datagrams.gatherings.insert(tag, gathering);
        } else {
            self.datagrams.put_back(gathering);
        }
        answered
    }

    fn answer_gathered(
        &mut self,
        tag: Tag,
        gathering: &mut Gathering,
        chunk: Chunk<'_>,
        sink: &mut impl Sink,
    ) -> u32 {
        match gathering.gathered() {
            Gathered::Parts => 0,
            Gathered::Broken => self.answer_broken(tag, BROKEN, chunk, sink),
            Gathered::Whole { bytes, sure, in_order, messages, items } => {
                // Where nothing was ever out of order, what looks as if it were in order is.
                let mut sure = sure;
                if let Some(owed) = self.owed.find(Some(tag)) {
                    let datagrams = &mut *self.datagrams;
                    datagrams.is_stream = messages <= 1 && (datagrams.is_stream || items > 1);
                    let keys = usize::from(owed.ticket.keys);
                    sure |= messages > 1 && in_order && datagrams.counts.packet_disorder == 0;
                    if keys > 1 && !datagrams.is_stream {
                        datagrams.counts.unclear_misses += keys.saturating_sub(items) as u64;
                    }
                }
                if sure {
                    return self.answer_whole(tag, bytes, chunk, sink);
                }
                self.answer_whole(tag, bytes, chunk, &mut Unsure(sink))
            }
        }
    }

    /// Decodes a whole reply, whose bytes are those of a reply over TCP, and returns the number of requests that it
    /// answered.
    fn answer_whole(&mut self, tag: Tag, mut bytes: &[u8], chunk: Chunk<'_>, sink: &mut impl Sink) -> u32 {
        *self.codec = self.codec.renew();
        let mut wanted = false;
        loop {
            let step = self.codec.decode(&mut bytes);
            let Some(owed) = self.owed.find(Some(tag)) else { return 0 };
            let reads = owed.ticket.verb.reads();
            match step {
                Ok(Step::Item { .. }) if !reads => return self.answer_broken(tag, UNFIT, chunk, sink),
                Ok(Step::Reply { outcome, .. }) if !owed.ticket.verb.can_end(&outcome) => {
                    return self.answer_broken(tag, UNFIT, chunk, sink);
                }
                Ok(Step::Item { key, size, cas, flags, .. }) => {
                    match pass_item(owed, Item { key, size, cas, flags }, false, sink) {
                        Ok(is_wanted) => wanted = is_wanted,
                        Err(malformed) => return self.answer_broken(tag, malformed, chunk, sink),
                    }
                }
                Ok(Step::Body(body)) => {
                    if wanted {
                        sink.body(&owed.ticket, body);
                    }
                }
                Ok(Step::Reply { outcome, message, .. }) if bytes.is_empty() => {
                    let (outcome, message) = ending(owed, outcome, message);
                    sink.answer(&arrived(owed, outcome, chunk.stamp, chunk.read), message);
                    self.owed.finish(Some(tag));
                    return 1;
                }
                Ok(
                    Step::Absent
                    | Step::Reply { .. }
                    | Step::QuietError { .. }
                    | Step::Push { .. }
                    | Step::Need,
                ) => {
                    return self.answer_broken(tag, BROKEN, chunk, sink);
                }
                Err(malformed) => return self.answer_broken(tag, malformed, chunk, sink),
            }
        }
    }

    /// Ends the request that a malformed reply names with a protocol error, and returns the number of requests that
    /// ended.
    fn answer_broken(&mut self, tag: Tag, why: Malformed, chunk: Chunk<'_>, sink: &mut impl Sink) -> u32 {
        let Some(owed) = self.owed.find(Some(tag)) else { return 0 };
        let outcome = Outcome::Error(Fault::Protocol);
        sink.broken_off();
        sink.answer(&arrived(owed, outcome, chunk.stamp, chunk.read), why.0.as_bytes());
        self.owed.finish(Some(tag));
        1
    }
}

/// Whether a message of one datagram is the whole reply to a request, where no other part of the reply has arrived.
#[inline]
fn is_whole(payload: &[u8], reads: bool) -> bool {
    !reads || matches!(shape(payload), Shape::Ended { .. })
}

/// Hands a reply on without the check of its values, since the values may have each other's bytes.
struct Unsure<'a, S>(&'a mut S);

impl<S: Sink> Sink for Unsure<'_, S> {
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed> {
        let answer_use =
            if ticket.answer_use == AnswerUse::Verify { AnswerUse::Items } else { ticket.answer_use };
        self.0.item(&Ticket { answer_use, ..*ticket }, item)
    }

    fn body(&mut self, ticket: &Ticket, bytes: &[u8]) {
        self.0.body(ticket, bytes);
    }

    fn broken_off(&mut self) {
        self.0.broken_off();
    }

    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        self.0.answer(answer, message);
    }
}
