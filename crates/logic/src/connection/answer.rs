//! What a connection hands on of its replies: items, ends of requests with their times, and the sink that takes them.

use crate::connection::inflight::{CheckState, Origin, Owed, Ticket};
use crate::protocol::{Fault, Malformed, Outcome};
use crate::time::Nanos;

/// A stamp may lie this far outside of [sent, read], the slack of comparing two clocks.
const STAMP_SLACK_NS: Nanos = 1_000;

/// Where an answer's `arrived` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The kernel's receive stamp.
    Kernel,
    /// There was none: the time of the read.
    Missing,
    /// There was one that cannot be true: the time of the read.
    Rejected,
    /// Nothing arrived: the request ended without an answer, or wants none.
    Nothing,
}

/// The end of a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What it was.
    pub ticket: &'a Ticket,
    /// How it ended.
    pub outcome: Outcome,
    /// The clock before the system call that took its first byte; [`NEVER`](crate::time::NEVER) if none did.
    pub sent: Nanos,
    /// When the kernel received the segment with the reply's last byte; for a request without an answer, when it was
    /// given up.
    pub arrived: Nanos,
    /// The clock when the worker took that read's result.
    pub read: Nanos,
    /// Items that it brought.
    pub hits: u32,
    /// Where `arrived` comes from.
    pub stamp: Stamp,
}

/// An item of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key as the server sent it; empty where the protocol does not repeat it.
    pub key: &'a [u8],
    /// Length of the value in bytes.
    pub size: u64,
    /// CAS unique, 0 if none was sent.
    pub cas: u64,
    /// Flags.
    pub flags: u32,
}

/// Who is told what came.
pub trait Sink {
    /// An item of a reply to the request begins. Returns whether its bytes are wanted; the bytes of other items are not
    /// looked at. Items for requests that do not answer_use ([`Ticket::reads_items`]) may pass without a word.
    ///
    /// # Errors
    /// When the request did not ask for the item, or has had it already: the connection cannot be used any more.
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed>;

    /// Some of that item's bytes, if they are wanted.
    fn body(&mut self, ticket: &Ticket, bytes: &[u8]);

    /// The request ended; `message` is what the server said beyond the outcome.
    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]);

    /// The item that is passing by, if any, does not end. Said before [`Sink::answer`] where a reply breaks off; otherwise
    /// every item is whole when the next item begins or its request ends, with an error as well as without.
    #[inline]
    fn broken_off(&mut self) {}

    /// A request that asked for no reply, and has ended with its sending, has failed; `message` is what the server said.
    #[inline]
    fn quiet_error(&mut self, _message: &[u8]) {}

    /// Said before [`Sink::answer`]: so many bytes of the chunk lie behind the reply.
    #[inline]
    fn passed(&mut self, _left_bytes: usize) {}

    /// Said before [`Sink::answer`] for a request that ends with its connection: whether all its bytes were taken.
    #[inline]
    fn parted(&mut self, _whole: bool) {}
}

/// A read: its bytes and times.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// When the kernel received the newest of them, where it said.
    pub stamp: Option<Nanos>,
    /// The clock when they were taken.
    pub read: Nanos,
}

/// A reply that belongs to no request.
pub(super) const UNASKED: Malformed = Malformed("a reply that nobody asked for");

/// A reply to another request than the one that it is for, by its place or its tag.
pub(super) const UNFIT: Malformed = Malformed("the server answers something else than it was asked");

/// What is kept as the server's words where a read for a cas brought no CAS unique.
const NO_UNIQUE: &[u8] = b"an item without a CAS unique, so that no cas can follow (memcached -C gives none)";

/// How many hits an item with this CAS unique is. A read for a cas finds nothing of use without one: 0 is none in every
/// protocol, and in the binary protocol a store with 0 would be carried out unchecked.
#[inline]
fn hits_of(ticket: &Ticket, cas: u64) -> u32 {
    u32::from(cas != 0 || ticket.origin != Origin::BeforeCas)
}

/// How a request ends whose reply says this: a read for a cas that brought an item, but no CAS unique, is the server's
/// error.
#[inline]
pub(super) fn ending<'a>(owed: &Owed, outcome: Outcome, message: &'a [u8]) -> (Outcome, &'a [u8]) {
    let has_item = matches!(outcome, Outcome::Hit | Outcome::Stale);
    if has_item && owed.hits == 0 && owed.ticket.origin == Origin::BeforeCas {
        return (Outcome::Error(Fault::Server), NO_UNIQUE);
    }
    (outcome, message)
}

/// More items than the request that they are for has keys.
pub(super) const TOO_MANY: Malformed = Malformed("more values than keys were asked for");

/// Hands on an item, which counts as a hit of its request. Where it is `doubtful` which request it answers, the time from
/// which on the server had to know newer values is not known, and none is called stale.
#[inline]
pub(super) fn pass_item(
    owed: &mut Owed,
    item: Item<'_>,
    doubtful: bool,
    sink: &mut impl Sink,
) -> Result<bool, Malformed> {
    if owed.hits >= u32::from(owed.ticket.keys) {
        return Err(TOO_MANY);
    }
    owed.hits += hits_of(&owed.ticket, item.cas);
    if doubtful {
        return sink.item(&Ticket { check_state: CheckState::None, ..owed.ticket }, item);
    }
    sink.item(&owed.ticket, item)
}

/// A request that ended without an arrival.
pub(super) fn ended(owed: &Owed, outcome: Outcome, at: Nanos, stamp: Stamp) -> Answer<'_> {
    Answer { ticket: &owed.ticket, outcome, sent: owed.sent, arrived: at, read: at, hits: owed.hits, stamp }
}

/// A request whose reply arrived. The stamp is believed when it lies between sending and reading.
#[inline]
pub(super) fn arrived(owed: &Owed, outcome: Outcome, stamp: Option<Nanos>, read: Nanos) -> Answer<'_> {
    let (arrived, stamp) = match stamp {
        None => (read, Stamp::Missing),
        Some(at) if !is_possible(at, owed.sent, read) => (read, Stamp::Rejected),
        Some(at) => (at.clamp(owed.sent, read.max(owed.sent)), Stamp::Kernel),
    };
    Answer { ticket: &owed.ticket, outcome, sent: owed.sent, arrived, read, hits: owed.hits, stamp }
}

/// Whether a reply can have arrived at `at`.
#[inline]
fn is_possible(at: Nanos, sent: Nanos, read: Nanos) -> bool {
    at.saturating_add(STAMP_SLACK_NS) >= sent && at <= read.saturating_add(STAMP_SLACK_NS)
}
