//! The contract of [`Codec`] as functions that tests and fuzz targets run.

// A law that does not hold ends the test.
#![allow(clippy::expect_used)]

use super::{Codec, Expect, Malformed, Op, Outcome, Refused, Skimmed, Step, Tag};
use crate::connection::outbox::Outbox;

/// A step that owns its bytes. The pieces of a body are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An owned [`Step::Item`].
    Item {
        /// Tag of the request.
        tag: Option<Tag>,
        /// Key of the item.
        key: Vec<u8>,
        /// Length of the value.
        size: u64,
        /// CAS unique of the item.
        cas: u64,
        /// Flags of the item.
        flags: u32,
    },
    /// All [`Step::Body`] of an item.
    Body(Vec<u8>),
    /// An owned [`Step::Absent`].
    Absent,
    /// An owned [`Step::Push`].
    Push(Vec<u8>),
    /// An owned [`Step::Reply`].
    Reply {
        /// Tag of the request.
        tag: Option<Tag>,
        /// Outcome of the request.
        outcome: Outcome,
        /// The server's words.
        message: Vec<u8>,
    },
    /// An owned [`Step::QuietError`].
    QuietError(Vec<u8>),
    /// The stream ended in [`Malformed`].
    Malformed(&'static str),
}

/// A reply without tag and words.
pub fn reply(outcome: Outcome) -> Seen {
    Seen::Reply { tag: None, outcome, message: Vec::new() }
}

/// Returns the steps that `codec` finds when the stream arrives in these pieces.
///
/// # Panics
/// Panics if the codec breaks its contract: it leaves input and asks for more, returns an empty or too long body, or
/// never ends.
pub fn read_from<C: Codec>(codec: &mut C, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut body_left = 0;
    for piece in pieces {
        let mut input = *piece;
        let mut steps_left = 8 * piece.len() + 16;
        loop {
            assert!(steps_left > 0, "more steps than bytes: the codec does not move on");
            steps_left -= 1;
            match codec.decode(&mut input) {
                Ok(Step::Need) => {
                    assert!(input.is_empty(), "the codec asks for more and leaves {} bytes", input.len());
                    break;
                }
                Ok(step) => push_seen(&mut seen, step, &mut body_left),
                Err(Malformed(why)) => {
                    seen.push(Seen::Malformed(why));
                    return seen;
                }
            }
        }
    }
    seen
}

/// A tag for where no reply has one.
const NOBODY: Tag = 0x5eed_5eed;

/// Outcome of a reply in a stream, with the number of its items.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    tag: Option<Tag>,
    outcome: Outcome,
    items: u32,
}

/// The ends of all replies for a caller that looks at no item: without the codec's short cut, or with it wherever it
/// takes one, for the requests whose replies come in the order of these ends.
fn ends_of<C: Codec>(codec: &mut C, pieces: &[&[u8]], order: Option<&[Ended]>) -> Vec<Ended> {
    let (mut ends, mut items) = (Vec::<Ended>::new(), 0);
    for piece in pieces {
        let mut input = *piece;
        loop {
            let before = input;
            let tag = order.and_then(|order| order.get(ends.len())?.tag);
            let skimmed = order.and_then(|_| codec.skim(tag.unwrap_or(NOBODY), &mut input));
            match skimmed {
                Some(Skimmed { outcome, items: skimmed }) => {
                    assert!(items == 0, "a reply was skimmed from its middle on");
                    assert!(input.len() < before.len(), "nothing was taken");
                    ends.push(Ended { tag, outcome, items: skimmed });
                    continue;
                }
                None => assert_eq!(input, before, "what is not skimmed is left"),
            }
            match codec.decode(&mut input) {
                Ok(Step::Need) => break,
                Ok(Step::Body(_) | Step::Absent | Step::QuietError { .. } | Step::Push { .. }) => {}
                Ok(Step::Item { .. }) => items += 1,
                Ok(Step::Reply { tag, outcome, .. }) => {
                    ends.push(Ended { tag, outcome, items: std::mem::take(&mut items) });
                }
                Err(Malformed(_)) => return ends,
            }
        }
    }
    ends
}

/// Asserts that skimming finds the same ends of replies as reading step by step.
fn skims_alike<C: Codec>(codec: impl Fn() -> C, pieces: &[&[u8]]) {
    let read = ends_of(&mut codec(), pieces, None);
    assert_eq!(ends_of(&mut codec(), pieces, Some(&read)), read, "skimmed, and step by step");
    // A reply that names another request than the oldest is not skimmed as that one's.
    let others: Vec<Ended> =
        read.iter().map(|end| Ended { tag: end.tag.map(|tag| tag ^ 1), ..*end }).collect();
    assert_eq!(ends_of(&mut codec(), pieces, Some(&others)), read, "skimmed for others, and step by step");
}

fn push_seen(seen: &mut Vec<Seen>, step: Step<'_>, body_left: &mut u64) {
    if !matches!(step, Step::Body(_)) {
        assert_eq!(*body_left, 0, "the item before has not all its bytes");
    }
    match step {
        Step::Need => unreachable!("handled by the caller"),
        Step::Item { tag, key, size, cas, flags } => {
            *body_left = size;
            seen.push(Seen::Item { tag, key: key.to_vec(), size, cas, flags });
        }
        Step::Body(bytes) => {
            assert!(!bytes.is_empty(), "an empty piece of body");
            *body_left =
                body_left.checked_sub(bytes.len() as u64).expect("the body is longer than its item said");
            match seen.last_mut() {
                Some(Seen::Body(body)) => body.extend_from_slice(bytes),
                _ => seen.push(Seen::Body(bytes.to_vec())),
            }
        }
        Step::Absent => seen.push(Seen::Absent),
        Step::QuietError { message } => seen.push(Seen::QuietError(message.to_vec())),
        Step::Push { name } => seen.push(Seen::Push(name.to_vec())),
        Step::Reply { tag, outcome, message } => {
            seen.push(Seen::Reply { tag, outcome, message: message.to_vec() });
        }
    }
}

/// Returns the steps that a new codec finds in `stream`, in one piece.
pub fn read<C: Codec>(stream: &[u8]) -> Vec<Seen> {
    read_from(&mut C::new(), &[stream])
}

/// Asserts that every cut of `stream` in two and in three, and single bytes, read the same as the whole, for codecs that `codec`
/// makes and that may have written requests; returns what the whole reads as.
///
/// # Panics
/// Panics if a cut reads differently.
pub fn every_cut<C: Codec>(codec: impl Fn() -> C, stream: &[u8]) -> Vec<Seen> {
    let expected = read_from(&mut codec(), &[stream]);
    for second in 0..=stream.len() {
        for first in 0..=second {
            let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(read_from(&mut codec(), &pieces), expected, "cut at {first} and {second}");
            skims_alike(&codec, &pieces);
        }
    }
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read_from(&mut codec(), &single), expected, "single bytes");
    expected
}

/// Asserts that `stream` reads the same when it is cut into pieces of these lengths, in turn, as whole, for codecs that `codec`
/// makes and that may have written requests.
///
/// # Panics
/// Panics if the pieces read differently.
pub fn cut_in_turn<C: Codec>(codec: impl Fn() -> C, stream: &[u8], lengths: &[u8]) {
    let mut pieces = Vec::new();
    let mut rest = stream;
    for &length in lengths.iter().cycle().take(stream.len()) {
        let (piece, after) = rest.split_at(usize::from(length).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    let whole = read_from(&mut codec(), &[stream]);
    assert_eq!(read_from(&mut codec(), &pieces), whole, "pieces of {lengths:?}");
    skims_alike(&codec, &pieces);
    skims_alike(&codec, &[stream]);
}

/// The body of a fuzz target, for codecs that `codec` makes and that may have written requests: the first byte says how many of
/// the next bytes are lengths of pieces, the rest is what the server sent.
///
/// # Panics
/// Panics if the codec breaks its contract.
pub fn fuzz_decode<C: Codec>(codec: impl Fn() -> C, data: &[u8]) {
    let Some((&count, data)) = data.split_first() else { return };
    let (lengths, stream) = data.split_at(usize::from(count % 8).min(data.len()));
    cut_in_turn(&codec, stream, lengths);
    cut_in_turn(&codec, stream, &[1]);
}

/// Runs [`fuzz_decode`] on every prefix of some input that is made of `streams`.
#[cfg(test)]
pub fn fuzz_prefixes<C: Codec>(streams: &[&[u8]]) {
    let mut data = vec![3, 7, 0, 2];
    data.extend(streams.concat());
    for end in 0..=data.len() {
        fuzz_decode(C::new, &data[..end]);
    }
}

/// All bytes that wait in `out`; parts of values must be short enough to have been copied.
pub fn sent(out: &Outbox) -> Vec<u8> {
    out.plain().unwrap_or_default().to_vec()
}

/// Returns the bytes that a new codec writes for `op`, and the reply to expect.
///
/// # Errors
/// Returns [`Refused`] when the codec does not write the request.
///
/// # Panics
/// Panics if the codec refuses the request and has written something.
pub fn encoded<C: Codec>(op: &Op<'_>, tag: Tag) -> Result<(Vec<u8>, Expect), Refused> {
    let mut out = Outbox::default();
    let expect = C::new().encode(op, tag, &mut out);
    let bytes = sent(&out);
    if expect.is_err() {
        assert!(bytes.is_empty(), "refused, and {bytes:?} was written");
    }
    expect.map(|expect| (bytes, expect))
}
