//! The contract of all protocols: an [`Op`] becomes bytes, and bytes become [`Step`]s.

use crate::connection::outbox::Outbox;

mod batch;
pub mod binary;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod contract;
pub mod handshake;
pub mod lines;
pub mod meta;
mod op;
mod outcome;
pub mod resp;
mod sized_value;
pub mod text;
pub mod udp;
mod verb;

pub use self::op::{Keys, MetaAsk, Op, PairList, PairValue, Pairs, Value};
pub use self::outcome::{Fault, Outcome};
pub use self::verb::Verb;

/// Number that a request carries and its reply repeats, in protocols that have one.
pub type Tag = u32;

/// The reply that an encoded request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The server sends one reply.
    Reply,
    /// The server sends no reply; the request is complete when it was sent.
    Nothing,
}

/// The reason why the protocol cannot express a request. The mistake lies in the plan and is found before anything is
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// The reason why a codec of memcached's refuses a verb of RESP.
const NOT_MEMCACHED: Refused =
    Refused("hget, hset, mset and command are asked of servers that speak RESP; memcached has none of them");

/// The reason why the protocol does not allow the bytes that a peer sent. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// A finding of a codec in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// All input was taken, and more is needed.
    Need,
    /// An item begins; its `size` bytes follow as [`Step::Body`], in as many pieces as they arrive in.
    Item {
        /// Tag of the request that the item belongs to; `None` for the oldest request.
        tag: Option<Tag>,
        /// The key as the server sent it; empty where the protocol does not repeat it.
        key: &'a [u8],
        /// Length of the value in bytes.
        size: u64,
        /// The CAS unique; 0 if the server sent none.
        cas: u64,
        /// The flags that the server stored beside the value.
        flags: u32,
    },
    /// Some bytes of the item's value; never empty.
    Body(&'a [u8]),
    /// The server has no item for the next key of the oldest request, where replies name no key and are matched by
    /// their order. A key behind which nothing follows has no such step: its request ends.
    Absent,
    /// A request is answered.
    Reply {
        /// Tag of the request; `None` for the oldest request.
        tag: Option<Tag>,
        /// Outcome of the request. A read ends with [`Outcome::Hit`] when an item came before.
        outcome: Outcome,
        /// The server's words, without line end, where it said something beyond the outcome (errors, version); may be
        /// cut off where they are long.
        message: &'a [u8],
    },
    /// A request that asked for no reply has failed.
    QuietError {
        /// The server's words, without line end; may be cut off where they are long.
        message: &'a [u8],
    },
}

/// A whole reply that was taken without showing its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skimmed {
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Number of items in the reply.
    pub items: u32,
}

/// One protocol. A codec keeps what a reply needs while it is cut over several reads, and nothing else.
///
/// The contract, which the tests of every codec check: `decode` takes bytes off the front of `input`; it returns
/// [`Step::Need`] only when `input` is empty; the sequence of steps, with the pieces of a body joined, is the same for
/// every way of cutting the stream; no input makes it panic; after [`Malformed`] it is not called again.
pub trait Codec {
    /// Whether an error line ends a reply wherever it stands, so that bytes of the reply that follow the error line are
    /// taken for the next reply.
    const ERRORS_END_ANYWHERE: bool = false;

    /// A codec with default settings at the beginning of a connection.
    fn new() -> Self;

    /// A codec with the settings of this one at the beginning of another connection. A codec with settings overrides
    /// the default.
    fn renew(&self) -> Self
    where
        Self: Sized,
    {
        Self::new()
    }

    /// Writes `op` at the end of `out`, or writes nothing and says why it cannot be written.
    ///
    /// # Errors
    /// Returns [`Refused`] for a request that the protocol cannot express; nothing is written then.
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused>;

    /// Takes the next step in the stream of replies.
    ///
    /// # Errors
    /// Returns [`Malformed`] for bytes that the protocol does not allow. The connection cannot be used any more.
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed>;

    /// Writes the question by which the codec learns which request a decoded error belongs to, where it has to ask. The
    /// answer gives no [`Step`] of its own.
    #[inline]
    fn inquire(&mut self, _out: &mut Outbox) {}

    /// Takes a whole reply to the oldest request, whose tag is `oldest`, off the front of `input`, for a caller that
    /// looks at none of its items. The result equals that of all steps up to the [`Step::Reply`], which has that tag or
    /// none, and no message. Returns `None` and takes nothing in the middle of a reply, and where the reply is
    /// incomplete, uncommon or malformed.
    #[inline]
    fn skim(&mut self, _oldest: Tag, _input: &mut &[u8]) -> Option<Skimmed> {
        None
    }
}
