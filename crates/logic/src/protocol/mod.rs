//! The protocols and their common trait [`Codec`]: a codec encodes each [`Op`] as bytes, and decodes received bytes
//! into [`Step`]s.

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
mod server_error;
mod sized_value;
pub mod text;
pub mod udp;
mod verb;

pub use self::op::{Keys, MetaAsk, Op, PairList, PairValue, Pairs, Rest, Value};
pub use self::outcome::{Fault, Outcome};
pub use self::server_error::ServerError;
pub use self::verb::{COMMANDS_MAX, Verb};

/// Number that a request carries and its reply repeats, in protocols whose replies repeat one.
pub type Tag = u32;

/// The reply that the caller has to expect to an encoded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The server sends one reply.
    Reply,
    /// The server replies only if the request fails. The request is complete when it was sent.
    Nothing,
}

/// The reason why a protocol cannot express a request. The cause is a mistake in the Plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// The reason for which memcached's codecs refuse the verbs of RESP.
const NOT_MEMCACHED: Refused =
    Refused("hget, hset, mset and command are asked of servers that speak RESP; memcached has none of them");

/// The reason why the protocol does not allow the bytes that a peer sent. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// One step of decoding: an event in the stream of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The decoder has taken all input, and needs more bytes.
    Need,
    /// An item begins. The `size` bytes of its value follow as [`Step::Body`], in as many pieces as they arrive in.
    Item {
        /// Tag of the request that the item belongs to; `None` for the oldest request.
        tag: Option<Tag>,
        /// The key as the server sent it, or as the codec kept it for a multi-get (RESP); empty where neither is
        /// done.
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
    /// The server has no item for the next key of the oldest request. Only protocols without keys in their replies
    /// give this step. A missing last key gives [`Step::Reply`] instead, because the request ends with it.
    Absent,
    /// A request is answered.
    Reply {
        /// Tag of the request; `None` for the oldest request.
        tag: Option<Tag>,
        /// Outcome of the request. A read ends with [`Outcome::Hit`] if an item came before; in the meta protocol
        /// also with [`Outcome::Stale`], [`Outcome::Win`] or [`Outcome::Recaching`].
        outcome: Outcome,
        /// The server's message without line end, for errors, versions and other replies that say more than the
        /// outcome. Long messages may be cut off.
        message: &'a [u8],
    },
    /// The server sends a message that no request asked for (RESP3).
    Push {
        /// The name of the message, which is its first value.
        name: &'a [u8],
    },
    /// A request without reply (noreply) has failed.
    QuietError {
        /// The server's message without line end; long messages may be cut off.
        message: &'a [u8],
    },
}

/// A whole reply that was decoded without handing over its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skimmed {
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Number of items in the reply.
    pub items: u32,
}

/// A command that no request asks for, and that has a reply of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside<'a> {
    /// `ASKING` of a cluster, whose reply is `OK`.
    Asking,
    /// The loading of a script of this text, whose reply is its name.
    LoadScript(&'a str),
}

/// Encoder of the requests and decoder of the replies of one connection. The state of a codec is what it needs to
/// decode the next bytes: a reply that is cut over several reads, and, where replies do not name their requests, the
/// unanswered requests.
///
/// The tests of every codec check these rules: `decode` takes bytes off the front of `input`; it returns
/// [`Step::Need`] only when `input` is empty; the sequence of steps, with the pieces of a body joined, is the same
/// for every way of cutting the stream; no input makes it panic; after [`Malformed`] it is not called again.
pub trait Codec {
    /// Whether an error line ends the reply at any point, so that bytes after the error line belong to the next
    /// reply.
    const ERRORS_END_ANYWHERE: bool = false;

    /// Creates a codec with default settings for a new connection.
    fn new() -> Self;

    /// Creates a codec with the settings of this one for another connection. The default implementation calls
    /// [`Codec::new`], which is enough for codecs without settings.
    fn renew(&self) -> Self
    where
        Self: Sized,
    {
        Self::new()
    }

    /// Appends the bytes of `op` to `out`.
    ///
    /// # Errors
    /// Returns [`Refused`] for a request that the protocol cannot express; nothing is appended then.
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused>;

    /// Decodes the next step from the stream of replies.
    ///
    /// # Errors
    /// Returns [`Malformed`] for bytes that the protocol does not allow. The connection cannot be used any more.
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed>;

    /// Appends a question to `out` if an error was decoded whose request is not known. The answer of the server tells
    /// the codec which request failed, and gives no [`Step`] of its own.
    #[inline]
    fn inquire(&mut self, _out: &mut Outbox) {}

    /// Appends a command of no request, which has a reply of its own. Returns false, and appends nothing, where the protocol has no such
    /// commands.
    fn encode_aside(&mut self, _aside: Aside<'_>, _out: &mut Outbox) -> bool {
        false
    }

    /// Takes a whole reply to the oldest request off the front of `input`, for a caller that does not need the items.
    /// `oldest` is the tag of that request. The result is the same as that of all steps up to a [`Step::Reply`]
    /// without message. Returns `None` and takes nothing in the middle of a reply, and for replies that are
    /// incomplete, uncommon or malformed.
    #[inline]
    fn skim(&mut self, _oldest: Tag, _input: &mut &[u8]) -> Option<Skimmed> {
        None
    }
}
