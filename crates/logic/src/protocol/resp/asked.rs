//! The expected replies to the unanswered requests of a RESP connection.

use std::collections::VecDeque;

use super::command_table::Tells;
use super::sequence::{Sending, Sequence};
use super::sequence_replies::SequenceReplies;
use crate::protocol::{Fault, Keys, lines};

/// The reply that is expected to a request, by the command that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedReply {
    /// GET and similar commands: a string or null.
    Value,
    /// MGET: an array with a string or null for each key.
    Values,
    /// SET: OK, or null if its condition did not hold.
    Stored,
    /// APPEND and HSET: a number, which is ignored.
    Grown,
    /// DEL: the number of keys that it removed.
    Removed,
    /// EXPIRE: a number above 0 if the key exists, and 0 otherwise.
    Touched,
    /// INCRBY and DECRBY: the new number.
    Counted,
    /// PING: a string other than OK.
    Pong,
    /// A command with a reply of any form.
    Any,
    /// A command whose reply says whether what it asked for was there.
    LookedUp(LookedUp),
    /// Several commands, each with a reply of any form.
    Sequence,
}

/// The meaning of a reply for what its command looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LookedUp {
    pub(super) tells: Tells,
    /// Number of keys that the command names.
    pub(super) keys: u16,
}

/// An element that was not found, as it stands in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NoElement {
    /// The element is null.
    #[default]
    Null,
    /// The element is null or the number 0.
    Zero,
    /// An empty list; this is the cursor that stands before the list of a scan.
    Cursor,
    /// An empty list, behind the cursor of a scan.
    Empty,
}

/// The elements of a list that were found so far, where each stands for one that was looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// The form of an element that was not found.
    pub(super) none: NoElement,
    /// Elements of the list that were received.
    pub(super) passed: u16,
    /// Elements among them that were found.
    pub(super) hits: u16,
    /// Values within the current element, or before it, that are still to be received.
    pub(super) inner: u64,
}

/// The state that only connections with multi-gets, sequences or errors in strings need.
#[derive(Debug, Default)]
pub(super) struct UncommonReplies {
    /// Keys of the multi-gets that are not answered, oldest first.
    pub(super) reads: VecDeque<Read>,
    /// The keys of an answered multi-get, kept so that their memory is used again.
    pub(super) spare: Option<Read>,
    /// Whether the array that answers the oldest multi-get has begun.
    pub(super) reading: bool,
    /// Number of elements of this array that were received.
    pub(super) passed: usize,
    /// Whether one of these elements was a value.
    pub(super) found: bool,
    /// Whether the next value that is dropped is the name of a push message.
    pub(super) names_push: bool,
    /// The found elements of the list that is being dropped; `None` where they are not counted. The list of `EXEC` has them too, whose
    /// errors are told from those within its elements.
    pub(super) found_of_list: Option<Found>,
    /// The replies to the sequences that are not answered, oldest first.
    pub(super) sequences: VecDeque<SequenceReplies>,
    /// The memory of an answered sequence, kept so that it is used again.
    pub(super) spare_sequence: Option<SequenceReplies>,
    /// The message of an error that is sent as a string, or the name of a push message.
    pub(super) words: Vec<u8>,
}

/// The keys of a multi-get, end to end, since replies do not repeat them.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<u32>,
}

impl UncommonReplies {
    /// Keeps the keys of a multi-get that was written.
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

    /// Expects the replies to these commands of a sequence.
    pub(super) fn ask_sequence(&mut self, sequence: &Sequence, sending: Sending) {
        let mut replies = self.spare_sequence.take().unwrap_or_default();
        replies.expect(sequence, sending);
        self.sequences.push_back(replies);
    }

    /// Takes in that the oldest sequence was answered. The words of its error are those of the reply.
    pub(super) fn answer_sequence(&mut self) {
        if let Some(mut replies) = self.sequences.pop_front() {
            std::mem::swap(&mut self.words, &mut replies.words);
            self.spare_sequence = Some(replies);
        }
    }

    /// Takes in an error in the replies to the oldest sequence, or that of a value in the list of `EXEC` (`is_in_list`).
    pub(super) fn fail_in_sequence(&mut self, fault: Fault, words: &[u8], is_in_list: bool) {
        if let Some(replies) = self.sequences.front_mut() {
            replies.fail(fault, &words[..words.len().min(lines::LINE_MAX_BYTES)], is_in_list);
        }
    }

    /// Keeps some of an error that is sent as a string, or of a name.
    pub(super) fn keep_words(&mut self, bytes: &[u8]) {
        let room = lines::LINE_MAX_BYTES - self.words.len();
        self.words.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
