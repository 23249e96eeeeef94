//! The unanswered requests of a RESP connection, as far as their replies depend on them.

use std::collections::VecDeque;

use crate::protocol::{Keys, lines};

/// The reply that a request expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedReply {
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
    /// PING: a string of words.
    Pong,
    /// A command of a template, whose reply may have any form.
    Any,
}

/// The state that only connections with multi-gets or errors in strings need.
#[derive(Debug, Default)]
pub(super) struct UncommonReplies {
    /// Keys of the multi-gets that are not answered, oldest first.
    pub(super) reads: VecDeque<Read>,
    /// The keys of an answered multi-get, kept for their memory.
    pub(super) spare: Option<Read>,
    /// Whether the array of the oldest has begun.
    pub(super) reading: bool,
    /// Number of elements of that array that have come.
    pub(super) passed: usize,
    /// Whether one of its elements was a value.
    pub(super) found: bool,
    /// An error that is sent as a string.
    pub(super) words: Vec<u8>,
}

/// The keys of a multi-get: replies do not repeat them.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<u32>,
}

impl UncommonReplies {
    /// Takes in that a multi-get was written.
    pub(super) fn ask(&mut self, keys: &Keys<'_>) {
        let mut read = self.spare.take().unwrap_or_default();
        for n in 0..keys.count() {
            read.bytes.extend_from_slice(keys.key(n));
            read.ends.push(read.bytes.len() as u32);
        }
        self.reads.push_back(read);
    }

    /// Takes in that the oldest multi-get was answered.
    pub(super) fn answer(&mut self) {
        self.reading = false;
        if let Some(mut read) = self.reads.pop_front() {
            read.bytes.clear();
            read.ends.clear();
            self.spare = Some(read);
        }
    }

    /// The key of the value being received.
    pub(super) fn key(&self) -> &[u8] {
        self.reads
            .front()
            .map_or(&[], |read| Keys::Many { bytes: &read.bytes, ends: &read.ends }.key(self.passed))
    }

    /// Keeps some of an error that is sent as a string.
    pub(super) fn keep_words(&mut self, bytes: &[u8]) {
        let room = lines::LINE_MAX_BYTES - self.words.len();
        self.words.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
