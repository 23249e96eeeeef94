//! How one request ended, when it passed which point, and the spans between those points.

use crate::protocol::{Outcome, Verb};
use crate::time::Nanos;

/// How one request ended, and when it passed which point (all on the monotonic clock).
///
/// For a request without reply `arrived` and `read` mean nothing; for an error no time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What was asked.
    pub verb: Verb,
    /// How it ended.
    pub outcome: Outcome,
    /// Number of keys asked for.
    pub keys: u32,
    /// How many of them were found; only looked at for verbs that read.
    pub hits: u32,
    /// When the arrival process asked for it.
    pub due: Nanos,
    /// When only the generator still stood in the way.
    pub ready: Nanos,
    /// The clock before the system call that took its first byte.
    pub sent: Nanos,
    /// When the last byte of its reply arrived.
    pub arrived: Nanos,
    /// When the worker read that.
    pub read: Nanos,
    /// The server was asked not to answer.
    pub noreply: bool,
}

/// A stretch of a request's life; each has a histogram of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Span {
    /// arrived - due: what a user of the cache waits.
    Response,
    /// ready - due: no free slot, connection not open, socket full.
    Wait,
    /// sent - ready: the generator's own slip.
    Lag,
    /// arrived - sent: the server, and the way there and back.
    Service,
    /// read - arrived: how long the reply lay unread.
    Reaction,
}

impl Span {
    /// Every span, in the order of reports. `ALL[s as usize] == s`.
    pub const ALL: [Span; 5] = [Span::Response, Span::Wait, Span::Lag, Span::Service, Span::Reaction];

    /// Number of spans.
    pub const COUNT: usize = Span::ALL.len();

    /// The word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Span::Response => "response",
            Span::Wait => "wait",
            Span::Lag => "lag",
            Span::Service => "service",
            Span::Reaction => "reaction",
        }
    }
}

impl Sample {
    /// How long each span was. A point that lies before the one that it follows (two clocks are involved) is taken to be
    /// at the same time, so that response = wait + lag + service always holds.
    #[inline]
    pub(super) fn spans(&self) -> [Nanos; Span::COUNT] {
        let ready = self.ready.max(self.due);
        let sent = self.sent.max(ready);
        if self.noreply {
            return [0, ready - self.due, sent - ready, 0, 0];
        }
        let arrived = self.arrived.max(sent);
        [
            arrived - self.due,
            ready - self.due,
            sent - ready,
            arrived - sent,
            self.read.saturating_sub(arrived),
        ]
    }
}
