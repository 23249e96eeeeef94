//! The parts of replies that a connection hands on: items, ends of requests with their times, and the sink that takes
//! them.

use crate::connection::inflight::{CheckState, Origin, Owed, Ticket};
use crate::protocol::{Fault, Malformed, Outcome};
use crate::time::Nanos;

/// A stamp may lie this far outside of [sent, read], the slack of comparing two clocks.
const STAMP_SLACK_NS: Nanos = 1_000;

/// The source of the `arrived` time of an [`Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The kernel's receive stamp.
    Kernel,
    /// The kernel gave no receive stamp; `arrived` is the time of the read.
    Missing,
    /// The kernel's receive stamp cannot be true; `arrived` is the time of the read.
    Rejected,
    /// Nothing arrived, because the request ended without an answer or asked for none.
    Nothing,
}

/// The end of a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The request that ended.
    pub ticket: &'a Ticket,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The clock before the system call that took the request's first byte, in nanoseconds;
    /// [`NEVER`](crate::time::NEVER) if no byte of it was taken.
    pub sent: Nanos,
    /// The time in nanoseconds at which the kernel received the segment with the reply's last byte; for a request
    /// without an answer, the time at which it was given up.
    pub arrived: Nanos,
    /// The clock when the worker took the result of the read that brought the reply, in nanoseconds.
    pub read: Nanos,
    /// Number of items that the reply brought; of an error of a sequence, the commands that may be asked again
    /// ([`Outcome::Failed`]).
    pub hits: u32,
    /// The source of `arrived`.
    pub stamp: Stamp,
    /// The number under which the worker keeps the request's transmit stamp; 0 where it is not stamped.
    pub mark: u16,
}

/// An item of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key as the server sent it; empty where the protocol does not repeat it.
    pub key: &'a [u8],
    /// Length of the value in bytes.
    pub size: u64,
    /// The CAS unique; 0 if the server sent none.
    pub cas: u64,
    /// The flags that the server stored beside the value.
    pub flags: u32,
}

/// Receives the replies of one connection in the order in which they were decoded.
pub trait Sink {
    /// Receives the first line of an item in the reply to the request `ticket`. Returns whether the item's bytes are to
    /// be handed to [`Sink::body`]; the bytes of other items are skipped. Items for requests that do not read their
    /// items ([`Ticket::reads_items`]) may be skipped without this call.
    ///
    /// # Errors
    /// Returns [`Malformed`] when the request did not ask for the item, or has received it already. The connection
    /// cannot be used any more.
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed>;

    /// Receives some bytes of the item that [`Sink::item`] received last and asked the bytes of.
    fn body(&mut self, ticket: &Ticket, bytes: &[u8]);

    /// Receives the news that the reply to the request `ticket` holds no item for the next of its keys, where replies
    /// name no key. The call comes in the order of the keys, between those of [`Sink::item`].
    #[inline]
    fn absent(&mut self, _ticket: &Ticket) {}

    /// Receives the end of a request; `message` is what the server said beyond the outcome.
    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]);

    /// Receives the end of a request whose connection is closed, or is given up since a request on it is late.
    fn lost(&mut self, answer: &Answer<'_>) {
        self.answer(answer, &[]);
    }

    /// Receives the news that the item whose bytes arrive, if there is one, stays incomplete. The call comes before
    /// [`Sink::answer`] where a reply breaks off; otherwise every item is complete when the next item begins or when
    /// its request ends, with an error or without.
    #[inline]
    fn broken_off(&mut self) {}

    /// Receives the failure of a request that asked for no reply and ended when it was sent; `message` is what the
    /// server said.
    #[inline]
    fn quiet_error(&mut self, _message: &[u8]) {}

    /// Receives the name of a message that no request asked for.
    #[inline]
    fn push(&mut self, _name: &[u8]) {}

    /// Receives, before [`Sink::answer`], the number of bytes of the chunk that lie behind the reply.
    #[inline]
    fn reply_ended(&mut self, _left_bytes: usize) {}

    /// Receives, before [`Sink::answer`], the news that a request ends with its connection. `whole` says that the
    /// socket had taken all of its bytes.
    #[inline]
    fn cut_off(&mut self, _whole: bool) {}
}

/// The result of one read from a socket: its bytes and times.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The bytes that were read.
    pub bytes: &'a [u8],
    /// The kernel's receive stamp of the newest byte, in nanoseconds; `None` where the kernel gave none.
    pub stamp: Option<Nanos>,
    /// The clock when the bytes were taken, in nanoseconds.
    pub read: Nanos,
}

/// A reply that belongs to no request.
pub(super) const UNASKED: Malformed = Malformed("a reply to no request");

/// A reply whose form does not fit the request that its place or its tag names.
pub(super) const UNFIT: Malformed = Malformed("the server answers something else than it was asked");

/// The message of a read for a cas that brought no CAS unique.
const NO_UNIQUE: &[u8] = b"an item without a CAS unique, so that no cas can follow (memcached -C gives none)";

/// The number of hits, 0 or 1, that an item with the CAS unique `cas` counts as. An item without a CAS unique (0 in
/// every protocol) is useless to a read that prepares a cas: in the binary protocol, a store with the CAS unique 0 is
/// carried out unchecked.
#[inline]
fn hits_of(ticket: &Ticket, cas: u64) -> u32 {
    u32::from(cas != 0 || ticket.origin != Origin::BeforeCas)
}

/// The outcome and the message of a request whose reply has `outcome` and `message`. A read for a cas that brought an
/// item without a CAS unique ends with a server error. What a command of the user found becomes hits among as many keys, and a failed
/// sequence an error.
#[inline]
pub(super) fn ending<'a>(owed: &mut Owed, outcome: Outcome, message: &'a [u8]) -> (Outcome, &'a [u8]) {
    if let Outcome::Found { hits, of } = outcome {
        (owed.hits, owed.ticket.keys) = (hits.into(), of);
        return (if hits > 0 { Outcome::Hit } else { Outcome::Miss }, message);
    }
    if let Outcome::Failed { fault, commands } = outcome {
        owed.hits = commands;
        return (Outcome::Error(fault), message);
    }
    let has_item = matches!(outcome, Outcome::Hit | Outcome::Stale);
    if has_item && owed.hits == 0 && owed.ticket.origin == Origin::BeforeCas {
        return (Outcome::Error(Fault::Server), NO_UNIQUE);
    }
    (outcome, message)
}

/// More items than the request that they are for has keys.
pub(super) const TOO_MANY: Malformed = Malformed("more values than keys were asked for");

/// Hands an item to the sink and counts it as a hit of its request. `doubtful` says that the item may answer another
/// request; the sink then receives a ticket without a check state, so that no value is reported as stale.
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

/// The answer of a request that ended at `at` without a reply.
pub(super) fn ended(owed: &Owed, outcome: Outcome, at: Nanos, stamp: Stamp) -> Answer<'_> {
    let (ticket, mark) = (&owed.ticket, owed.mark);
    Answer { ticket, outcome, sent: owed.sent, arrived: at, read: at, hits: owed.hits, stamp, mark }
}

/// The answer of a request whose reply arrived. The receive stamp is used when it lies between sending and reading,
/// or outside by at most the slack between two clocks.
#[inline]
pub(super) fn arrived(owed: &Owed, outcome: Outcome, stamp: Option<Nanos>, read: Nanos) -> Answer<'_> {
    let (arrived, stamp) = match stamp {
        None => (read, Stamp::Missing),
        Some(at) if !is_possible(at, owed.sent, read) => (read, Stamp::Rejected),
        Some(at) => (at.clamp(owed.sent, read.max(owed.sent)), Stamp::Kernel),
    };
    let (ticket, mark) = (&owed.ticket, owed.mark);
    Answer { ticket, outcome, sent: owed.sent, arrived, read, hits: owed.hits, stamp, mark }
}

/// Whether a reply to a request that was sent at `sent` can have arrived at `at` when it was read at `read`.
#[inline]
fn is_possible(at: Nanos, sent: Nanos, read: Nanos) -> bool {
    at.saturating_add(STAMP_SLACK_NS) >= sent && at <= read.saturating_add(STAMP_SLACK_NS)
}
