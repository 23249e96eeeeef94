//! The replies that wait on a connection of the built-in server, in their order, each held until it is due.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use super::service::ServiceTime;
use pummel_logic::time::{NEVER, Nanos};

/// Values up to this length are copied among the other bytes; longer ones are shared with the store.
const COPY_MAX_BYTES: usize = 1024;

/// The memory of sent bytes is released when there are more than this.
const COMPACT_BYTES: usize = 64 * 1024;

/// Most parts of bytes that are offered for one send.
pub const PARTS_MAX: usize = 16;

/// Bytes of one reply while it is written.
#[derive(Debug, Default)]
pub(super) struct ReplyBuffer {
    own: Vec<u8>,
    /// Values, each with the number of own bytes before it.
    values: Vec<(usize, Arc<[u8]>)>,
    /// Bytes of the values in `values`.
    value_bytes: usize,
    /// Positions among all bytes at which a part begins that is sent in datagrams of its own.
    parts: Vec<usize>,
}

impl ReplyBuffer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
    }

    pub(super) fn push_decimal(&mut self, number: u64) {
        use std::io::Write;
        write!(self.own, "{number}").expect("writing to memory does not fail");
    }

    pub(super) fn push_value(&mut self, value: Arc<[u8]>) {
        if value.len() <= COPY_MAX_BYTES {
            self.own.extend_from_slice(&value);
        } else {
            self.value_bytes += value.len();
            self.values.push((self.own.len(), value));
        }
    }

    /// Begins a part that is sent in datagrams of its own, where replies are sent in datagrams.
    pub(super) fn begin_part(&mut self) {
        self.parts.push(self.len());
    }

    /// Bytes of the whole reply.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        let mut from = 0;
        for (at, value) in &self.values {
            bytes.extend_from_slice(&self.own[from..*at]);
            bytes.extend_from_slice(value);
            from = *at;
        }
        bytes.extend_from_slice(&self.own[from..]);
        bytes
    }

    /// Positions at which parts begin, in order, but for the first.
    pub(super) fn parts(&self) -> &[usize] {
        &self.parts
    }

    pub(super) fn len(&self) -> usize {
        self.own.len() + self.value_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.values.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.own.clear();
        self.own.shrink_to(COMPACT_BYTES);
        self.values.clear();
        self.value_bytes = 0;
        self.parts.clear();
        self.values.shrink_to(COMPACT_BYTES / size_of::<(usize, Arc<[u8]>)>());
    }

    /// The memory of the reply in bytes, without the values in the store.
    pub(super) fn own_bytes(&self) -> usize {
        self.own.len() + size_of_val(&*self.values)
    }
}

/// The request that a reply answers, and the times of the reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwedReply {
    /// Number of the request over the whole server, from 1.
    pub(super) request: u64,
    pub(super) verb: &'static str,
    pub(super) arrived: Nanos,
    /// Time for which the reply is held.
    pub(super) service: ServiceTime,
    /// Whether the reply is whole: no fault cuts it.
    pub(super) whole: bool,
    /// Number of the copy that the peer has to answer first; 0 for none.
    pub(super) copy: u64,
}

impl OwedReply {
    /// Time at which the reply is due, in nanoseconds, where no earlier reply of the connection holds it up.
    pub(super) fn due(&self) -> Nanos {
        self.arrived.saturating_add(self.service.whole_ns())
    }

    /// The same request without a reply. Nothing is held for it; its time in a queue is the time for which it occupies
    /// a server.
    pub(super) fn without_reply(self) -> OwedReply {
        match self.service.queued_ns {
            Some(_) => self,
            None => OwedReply { service: ServiceTime::default(), ..self },
        }
    }
}

#[derive(Debug)]
struct HeldReply {
    owed: OwedReply,
    due: Nanos,
    /// End of the reply in the stream of all bytes of the connection.
    end: u64,
}

/// Some bytes of the stream.
#[derive(Debug)]
enum Piece {
    /// Number of own bytes, which follow those of earlier pieces.
    Own(usize),
    /// A value, from this index on.
    Value(Arc<[u8]>, usize),
}

impl Piece {
    /// Bytes that are still to be sent.
    fn len(&self) -> usize {
        match self {
            Piece::Own(len) => *len,
            Piece::Value(value, from) => value.len() - from,
        }
    }
}

/// Replies that wait, and the state of their sending.
#[derive(Debug, Default)]
pub(super) struct OwedReplies {
    own: Vec<u8>,
    own_taken: usize,
    pieces: VecDeque<Piece>,
    held: VecDeque<HeldReply>,
    /// Bytes of the stream that were sent.
    sent: u64,
    /// Bytes that were added to the stream.
    end: u64,
    /// Number of replies in `held` that are known to be due, and the end of the last of them.
    released: usize,
    released_end: u64,
    last_due: Nanos,
    /// Copies up to this number were answered at the last call of [`OwedReplies::parts`].
    copied: u64,
}

impl OwedReplies {
    /// Adds a reply that is held until `owed.due()`, and until all earlier replies are due.
    pub(super) fn add(&mut self, reply: &ReplyBuffer, owed: OwedReply) {
        let mut from = 0;
        for (at, value) in &reply.values {
            self.add_own(&reply.own[from..*at]);
            self.pieces.push_back(Piece::Value(value.clone(), 0));
            from = *at;
        }
        self.add_own(&reply.own[from..]);
        self.end += reply.len() as u64;
        self.last_due = self.last_due.max(owed.due());
        self.held.push_back(HeldReply { owed, due: self.last_due, end: self.end });
    }

    /// Cuts the newest reply to `len` bytes of its `full`.
    pub(super) fn cut_newest(&mut self, full: usize, len: usize) {
        let mut surplus = full - len;
        self.end -= surplus as u64;
        self.held.back_mut().expect("a reply was just added").end = self.end;
        while surplus > 0 {
            let piece = self.pieces.back_mut().expect("the reply has as many bytes as it has");
            let cut = surplus.min(piece.len());
            surplus -= cut;
            match piece {
                Piece::Own(count) => {
                    *count -= cut;
                    self.own.truncate(self.own.len() - cut);
                }
                Piece::Value(value, _) => *value = Arc::from(&value[..value.len() - cut]),
            }
            if piece.len() == 0 {
                self.pieces.pop_back();
            }
        }
    }

    /// Time at which bytes are due, in nanoseconds; [`NEVER`] if no reply waits, or a copy has to be answered first.
    pub(super) fn next_due(&self) -> Nanos {
        self.held.front().filter(|held| held.owed.copy <= self.copied).map_or(NEVER, |held| held.due)
    }

    /// Whether nothing can be sent before a copy is answered.
    pub(super) fn waits_for_copy(&self) -> bool {
        self.held.get(self.released).is_some_and(|held| held.owed.copy > self.copied)
    }

    /// Bytes that wait, due or not.
    pub(super) fn len_bytes(&self) -> u64 {
        self.end - self.sent
    }

    /// Replies that wait.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// The bytes that are due by `now`, where copies up to `copied` are answered, at most `max`, as far as they fit in
    /// `parts`. Returns the number of parts.
    pub(super) fn parts<'a>(
        &'a mut self,
        now: Nanos,
        copied: u64,
        max: u64,
        parts: &mut [IoSlice<'a>; PARTS_MAX],
    ) -> usize {
        self.copied = copied;
        let is_free = |held: &&HeldReply| held.due <= now && held.owed.copy <= copied;
        while let Some(held) = self.held.get(self.released).filter(is_free) {
            self.released += 1;
            self.released_end = held.end;
        }
        let mut left = self.released_end.saturating_sub(self.sent).min(max);
        let mut own_from = self.own_taken;
        let mut count = 0;
        for piece in self.pieces.iter().take(PARTS_MAX) {
            let bytes = match piece {
                Piece::Own(len) => {
                    own_from += len;
                    &self.own[own_from - len..own_from]
                }
                Piece::Value(value, from) => &value[*from..],
            };
            let len = left.min(bytes.len() as u64);
            if len == 0 {
                break;
            }
            parts[count] = IoSlice::new(&bytes[..len as usize]);
            count += 1;
            left -= len;
        }
        count
    }

    /// Takes in that the first `count` of the offered bytes were sent, and hands every reply that is complete with them
    /// to `done`.
    pub(super) fn take(&mut self, count: usize, mut done: impl FnMut(OwedReply)) {
        self.sent += count as u64;
        assert!(self.sent <= self.released_end, "more was sent than was due");
        let mut left = count;
        while left > 0 {
            let piece = self.pieces.front_mut().expect("what was sent was in a piece");
            let taken = left.min(piece.len());
            left -= taken;
            match piece {
                Piece::Own(len) => {
                    *len -= taken;
                    self.own_taken += taken;
                }
                Piece::Value(_, from) => *from += taken,
            }
            if piece.len() == 0 {
                self.pieces.pop_front();
            }
        }
        self.compact();
        while self.released > 0 && self.held[0].end <= self.sent {
            let held = self.held.pop_front().expect("what is released is owed");
            self.released -= 1;
            done(held.owed);
        }
    }

    /// The replies that still wait, oldest first.
    pub(super) fn owed(&self) -> impl Iterator<Item = OwedReply> + '_ {
        self.held.iter().map(|held| held.owed)
    }

    fn add_own(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.own.extend_from_slice(bytes);
        match self.pieces.back_mut() {
            Some(Piece::Own(len)) => *len += bytes.len(),
            _ => self.pieces.push_back(Piece::Own(bytes.len())),
        }
    }

    fn compact(&mut self) {
        if self.own_taken == self.own.len() {
            self.own.clear();
            self.own.shrink_to(COMPACT_BYTES);
            self.own_taken = 0;
        } else if self.own_taken > COMPACT_BYTES && self.own_taken > self.own.len() / 2 {
            self.own.drain(..self.own_taken);
            self.own_taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(request: u64, arrived: Nanos, asked_ns: Nanos) -> OwedReply {
        let service = ServiceTime { queued_ns: None, asked_ns };
        OwedReply { request, verb: "get", arrived, service, whole: true, copy: 0 }
    }

    fn reply(parts: &[&[u8]]) -> ReplyBuffer {
        let mut reply = ReplyBuffer::default();
        for part in parts {
            reply.push(b"head ");
            reply.push_value(Arc::from(*part));
            reply.push(b"\r\n");
        }
        reply
    }

    fn send(replies: &mut OwedReplies, now: Nanos, max: u64) -> (Vec<u8>, Vec<u64>) {
        let mut parts = [IoSlice::new(&[]); PARTS_MAX];
        let count = replies.parts(now, 0, max, &mut parts);
        let bytes: Vec<u8> = parts[..count].iter().flat_map(|part| part.iter().copied()).collect();
        let mut done = Vec::new();
        replies.take(bytes.len(), |owed| done.push(owed.request));
        (bytes, done)
    }

    #[test]
    fn replies_leave_in_order_and_not_before_they_are_due() {
        let mut replies = OwedReplies::default();
        replies.add(&reply(&[b"one"]), owed(1, 0, 100));
        replies.add(&reply(&[b"two"]), owed(2, 10, 10));
        replies.add(&reply(&[b"three"]), owed(3, 10, 300));
        assert_eq!(replies.next_due(), 100);
        assert_eq!(send(&mut replies, 99, 1000), (vec![], vec![]));
        assert_eq!(send(&mut replies, 100, 1000), (b"head one\r\nhead two\r\n".to_vec(), vec![1, 2]));
        assert_eq!(replies.next_due(), 310);
        assert_eq!(send(&mut replies, 310, 1000), (b"head three\r\n".to_vec(), vec![3]));
        assert_eq!((replies.next_due(), replies.len_bytes(), replies.len()), (NEVER, 0, 0));
    }

    #[test]
    fn every_size_of_sends_gives_the_same_bytes() {
        let large: Vec<u8> = (0..5000u32).map(|i| (i % 251) as u8).collect();
        let one = reply(&[b"small", &large, &large[..1024], &large[..1025]]);
        let two = reply(&[large.as_slice(); 20]);
        let whole = {
            let mut replies = OwedReplies::default();
            replies.add(&one, owed(1, 0, 0));
            replies.add(&two, owed(2, 0, 0));
            let mut bytes = Vec::new();
            while replies.len() > 0 {
                bytes.extend(send(&mut replies, 0, u64::MAX).0);
            }
            bytes
        };
        assert_eq!(whole.len(), one.len() + two.len());
        for step in [1, 2, 7, 1000, 4999, 70_000] {
            let mut replies = OwedReplies::default();
            replies.add(&one, owed(1, 0, 0));
            replies.add(&two, owed(2, 0, 0));
            let (mut bytes, mut done) = (Vec::new(), Vec::new());
            while replies.len() > 0 {
                let (more, through) = send(&mut replies, 0, step);
                bytes.extend(more);
                done.extend(through);
            }
            assert!(bytes == whole, "sends of {step} bytes");
            assert_eq!(done, [1, 2]);
        }
    }

    #[test]
    fn a_reply_can_be_cut_anywhere() {
        let large = vec![b'x'; 3000];
        let make = || reply(&[b"a", &large, b"b", &large]);
        let full = make().len();
        let mut whole = OwedReplies::default();
        whole.add(&make(), owed(1, 0, 0));
        let (bytes, _) = send(&mut whole, 0, u64::MAX);
        for len in [0, 1, 7, 8, 100, 3000, 3015, 3020, full - 3, full] {
            let mut replies = OwedReplies::default();
            replies.add(&reply(&[b"before"]), owed(1, 0, 0));
            replies.add(&make(), owed(2, 0, 0));
            replies.cut_newest(full, len);
            let (cut, done) = send(&mut replies, 0, u64::MAX);
            assert_eq!(&cut[13..], &bytes[..len], "cut to {len}");
            assert_eq!(done, [1, 2]);
        }
    }
}
