//! The contract of every dialect of the built-in server: its name, its login, the steps of its parser, whether a
//! request has a reply.

use std::fmt;

/// The version that the server reports: the version of memcached whose behaviour it has, and its own name.
pub const VERSION: &str = "1.6.18-pummel";

/// Most memory that a reply takes beside the values in the store; memcached has such a limit too.
pub(super) const REPLY_MAX_BYTES: usize = 32 << 20;

/// The words of [`ServerFault::ErrorEvery`](super::fault::ServerFault::ErrorEvery).
pub(super) const ASKED_FOR_ERROR: &str = "this request was chosen to fail";

/// Result of a parser's step.
#[derive(Debug)]
pub(super) enum ParserStep<R> {
    /// All input was taken; more is needed.
    Need,
    Request(R),
    /// The connection is to be closed: the peer does not speak this protocol.
    Close,
}

/// Cases in which a request has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The request has a reply.
    Never,
    /// The request has a reply only where it ends in an unusual way.
    Quiet,
    /// The request has no reply, however it ends.
    Always,
}

/// The user and the password that connections must send.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerLogin {
    /// Name of the user.
    pub user: Vec<u8>,
    /// Password of the user.
    pub password: Vec<u8>,
}

impl fmt::Debug for ServerLogin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ServerLogin").finish_non_exhaustive()
    }
}

impl<R> ParserStep<R> {
    /// Makes another request of the request of the step.
    pub(super) fn map<T>(self, turn: impl FnOnce(R) -> T) -> ParserStep<T> {
        match self {
            ParserStep::Need => ParserStep::Need,
            ParserStep::Request(request) => ParserStep::Request(turn(request)),
            ParserStep::Close => ParserStep::Close,
        }
    }
}
