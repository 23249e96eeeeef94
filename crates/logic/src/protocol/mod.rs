//! The contract of all protocols: an [`Op`] becomes bytes, bytes become [`Step`]s; nobody here owns a connection.

use crate::connection::outbox::Outbox;

mod batch;
pub mod binary;
#[cfg(any(test, fuzzing))]
pub mod contract;
pub mod handshake;
pub mod lines;
pub mod meta;
mod op;
mod outcome;
pub mod resp;
pub mod text;
pub mod udp;
mod verb;

pub use self::op::{Keys, MetaAsk, Op, PairList, PairValue, Pairs, Value};
pub use self::outcome::{Fault, Outcome};
pub use self::verb::Verb;

/// Number that a request carries and its reply repeats, in protocols that have one.
pub type Tag = u32;

/// What an encoded request is going to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// One reply.
    Reply,
    /// None: complete when handed over.
    Nothing,
}

/// A request that the protocol cannot express; a mistake in the plan, found before anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// Why a verb of RESP is none of memcached's.
const NOT_MEMCACHED: Refused =
    Refused("hget, hset, mset and command are asked of servers that speak RESP; memcached has none of them");

/// Bytes that the protocol does not allow; the connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// What a codec found in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// All input was taken; more is needed.
    Need,
    /// An item begins; its `size` bytes follow as [`Step::Body`], in as many pieces as they arrive in.
    Item {
        /// Which request it belongs to; `None`: the oldest.
        tag: Option<Tag>,
        /// The key as the server sent it; empty where the protocol does not repeat it.
        key: &'a [u8],
        /// Length of the value in bytes.
        size: u64,
        /// CAS unique, 0 if none was sent.
        cas: u64,
        /// Flags.
        flags: u32,
    },
    /// Some of the item's bytes, as they pass; never empty.
    Body(&'a [u8]),
    /// A request is answered.
    Reply {
        /// Which request; `None`: the oldest.
        tag: Option<Tag>,
        /// How it ended. For reads: [`Outcome::Hit`] when an item came before.
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
    /// How the request ended.
    pub outcome: Outcome,
    /// Items that the reply had.
    pub items: u32,
}

/// One protocol. A codec keeps what a reply needs while it is cut over several reads, and nothing else.
///
/// The contract, which the tests of every codec check: `decode` takes bytes off the front of `input`; it returns
/// [`Step::Need`] only when `input` is empty; the sequence of steps, with the pieces of a body joined, is the same for
/// every way of cutting the stream; no input makes it panic; after [`Malformed`] it is not called again.
pub trait Codec {
    /// Whether an error line ends a reply wherever it stands, so that what a server sends of that reply all the same is
    /// taken for the next one.
    const ERRORS_END_ANYWHERE: bool = false;

    /// A codec at the beginning of a connection, with nothing set.
    fn new() -> Self;

    /// A codec at the beginning of another connection, with what was set on this one. Codecs with settings have their
    /// own.
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

    /// Writes what the codec itself has to ask, to learn which request an error was for that it has decoded. The answer
    /// gives no [`Step`] of its own.
    #[inline]
    fn inquire(&mut self, _out: &mut Outbox) {}

    /// Takes a whole reply to the oldest request, whose tag is `oldest`, off the front of `input`, for a caller that looks
    /// at none of its items: a short cut through the steps up to its [`Step::Reply`], which has that tag or none, and no
    /// message. `None`, and nothing is taken, where there is no short cut: in the middle of a reply, and for what is not
    /// whole, not common or not right.
    #[inline]
    fn skim(&mut self, _oldest: Tag, _input: &mut &[u8]) -> Option<Skimmed> {
        None
    }
}
