//! What every dialect of the built-in server keeps to: its name, its login, what a parser finds, whether there is a reply.

use std::fmt;

/// What the server calls itself: the version of memcached whose behaviour it has, and who it is.
pub const VERSION: &str = "1.6.18-pummel";

/// A reply may take so much memory beside the values that are stored anyway; memcached too has a bound there.
pub(super) const REPLY_MAX_BYTES: usize = 32 << 20;

/// The words of [`Fault::ErrorEvery`](super::fault::Fault::ErrorEvery).
pub(super) const ASKED_FOR_ERROR: &str = "this request was chosen to fail";

/// What a parser found.
#[derive(Debug)]
pub(super) enum ParserStep<R> {
    /// All input was taken; more is needed.
    Need,
    Request(R),
    /// The connection is to be closed: the peer does not speak this protocol.
    HangUp,
}

/// Whether a request has a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It has one.
    Never,
    /// It has one where it ends in a way that is worth saying.
    Quiet,
    /// It has none, however it ends.
    Always,
}

/// Who may come in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl fmt::Debug for Login {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Login").finish_non_exhaustive()
    }
}

impl<R> ParserStep<R> {
    /// The step with its request turned into another.
    pub(super) fn map<T>(self, turn: impl FnOnce(R) -> T) -> ParserStep<T> {
        match self {
            ParserStep::Need => ParserStep::Need,
            ParserStep::Request(request) => ParserStep::Request(turn(request)),
            ParserStep::HangUp => ParserStep::HangUp,
        }
    }
}
