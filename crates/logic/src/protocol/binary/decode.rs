//! Packets of memcached's binary protocol as replies: what a header means, and what stands behind it.

use super::packets::{ReplyHeader, opcode, status};
use crate::protocol::{Fault, Outcome, Skimmed, Step, Tag};

/// Meaning of a packet's header to the codec.
pub(super) enum Meaning {
    /// The packet is dropped.
    Nothing,
    /// The next key of a multi-get has no item.
    Absent,
    /// A value follows.
    Item,
    /// A request ended.
    Reply(Outcome),
    /// A request without reply failed.
    QuietError,
}

#[inline]
pub(super) fn item<'a>(tag: Option<Tag>, header: &ReplyHeader, kept: &'a [u8]) -> Step<'a> {
    let Some((flags, key)) = kept.split_first_chunk::<4>() else {
        unreachable!("the check of the header kept four bytes of flags");
    };
    Step::Item {
        tag,
        key,
        size: u64::from(header.body_bytes) - header.fixed_bytes() as u64,
        cas: header.cas,
        flags: u32::from_be_bytes(*flags),
    }
}

/// Returns the meaning of the answer to a request without reply: a condition that did not hold is no error.
pub(super) fn quiet_change(header: &ReplyHeader) -> Meaning {
    if matches!(outcome(header), Outcome::Error(_)) { Meaning::QuietError } else { Meaning::Nothing }
}

/// Returns the bytes behind extras and key.
#[inline]
pub(super) fn words<'a>(header: &ReplyHeader, kept: &'a [u8]) -> &'a [u8] {
    kept.get(header.fixed_bytes()..).unwrap_or_default()
}

/// A reply. The words are kept of errors, of version, and of the end of an authentication.
#[inline]
pub(super) fn reply<'a>(
    tag: Option<Tag>,
    outcome: Outcome,
    header: &ReplyHeader,
    kept: &'a [u8],
) -> Step<'a> {
    let text = &kept[header.fixed_bytes()..];
    let (outcome, message) = match outcome {
        Outcome::Number(_) => match text.first_chunk::<8>() {
            Some(number) => (Outcome::Number(u64::from_be_bytes(*number)), &[][..]),
            None => (outcome, &[][..]),
        },
        Outcome::Error(_) => (outcome, error_words(header.status, text)),
        Outcome::Ok => (outcome, text),
        _ => (outcome, &[][..]),
    };
    Step::Reply { tag, outcome, message }
}

/// The words of an error: those of the server, or those of the protocol for errors whose text servers choose, or leave out.
fn error_words(status: u16, text: &[u8]) -> &[u8] {
    match status {
        status::BUSY => b"Busy",
        status::TEMPORARY => b"Temporary failure",
        status::OUT_OF_MEMORY if text.is_empty() => b"Out of memory",
        _ => text,
    }
}

/// Returns the outcome of the request that a whole packet with this header answers, where it is one of those that
/// nearly all are.
#[inline]
pub(super) fn skimmed(header: &ReplyHeader) -> Option<Skimmed> {
    match (header.opcode, header.status) {
        (opcode::GET | opcode::GAT, status::DONE) => Some(Skimmed { outcome: Outcome::Hit, items: 1 }),
        (opcode::GET | opcode::GAT, status::NOT_FOUND) => Some(Skimmed { outcome: Outcome::Miss, items: 0 }),
        (opcode::SET, status::DONE) => Some(Skimmed { outcome: Outcome::Stored, items: 0 }),
        _ => None,
    }
}

/// Returns the outcome of the request that `header` answers; a number is filled in later. The status decides, never the
/// body.
///
/// Where the condition of a verb did not hold, the status names the reason (the key exists, or does not), and the text
/// protocol says NOT_STORED: that is taken for all protocols.
#[inline]
pub(super) fn outcome(header: &ReplyHeader) -> Outcome {
    match (header.status, header.opcode) {
        (status::DONE, opcode::SET | opcode::ADD | opcode::REPLACE | opcode::APPEND | opcode::PREPEND) => {
            Outcome::Stored
        }
        (status::DONE, opcode::DELETE) => Outcome::Deleted,
        (status::DONE, opcode::TOUCH) => Outcome::Touched,
        (status::DONE, opcode::INCREMENT | opcode::DECREMENT) => Outcome::Number(0),
        (status::DONE, _) if header.is_read() => Outcome::Hit,
        (status::DONE, _) => Outcome::Ok,
        (status::NOT_FOUND, _) if header.is_read() => Outcome::Miss,
        (status::NOT_FOUND, opcode::REPLACE | opcode::APPEND | opcode::PREPEND) => Outcome::NotStored,
        (status::NOT_FOUND, _) => Outcome::NotFound,
        (status::EXISTS, opcode::ADD) => Outcome::NotStored,
        (status::EXISTS, _) => Outcome::Exists,
        (status::NOT_STORED, _) => Outcome::NotStored,
        (other, _) => Outcome::Error(fault(other)),
    }
}

fn fault(status: u16) -> Fault {
    match status {
        status::INVALID | status::NOT_A_NUMBER | status::AUTH_FAILED | status::AUTH_CONTINUES => {
            Fault::Client
        }
        status::TOO_LARGE | status::OUT_OF_MEMORY | status::INTERNAL..=status::TEMPORARY => Fault::Server,
        _ => Fault::Protocol,
    }
}
