//! The sample of one request: its outcome, its five times, and the spans between them.

use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::Nanos;

/// The outcome of one request and its five times, all on the monotonic clock.
///
/// For a request without reply `arrived` and `read` mean nothing; for an error no time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Verb of the request.
    pub verb: Verb,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// Number of keys asked for.
    pub keys: u32,
    /// Number of keys that were found; only of verbs that read.
    pub hits: u32,
    /// Time at which the arrival process asked for the request.
    pub due: Nanos,
    /// Time from which only the generator delayed the request.
    pub ready: Nanos,
    /// The clock before the system call that took the first byte of the request.
    pub sent: Nanos,
    /// Time at which the last byte of the reply arrived.
    pub arrived: Nanos,
    /// Time at which the worker read the last byte of the reply.
    pub read: Nanos,
    /// Whether the server was asked not to answer.
    pub noreply: bool,
}

pummel_logic::words! {
    /// A part of a request's time; each has a histogram of its own.
    #[repr(u8)]
    pub enum Span {
        /// arrived - due: the wait of a user of the cache.
        Response = "response",
        /// ready - due: no free slot, connection not open, socket full.
        Wait = "wait",
        /// sent - ready: the generator's own delay.
        Lag = "lag",
        /// arrived - sent: the server, and the way there and back.
        Service = "service",
        /// read - arrived: the time for which the reply lay unread.
        Reaction = "reaction",
    }
}

#[cfg(test)]
impl Sample {
    /// A get of one key that was found: it was sent when it was due, and its reply was read as it arrived.
    pub(crate) fn hit(due: Nanos, service_ns: Nanos) -> Sample {
        Sample {
            verb: Verb::Get,
            outcome: Outcome::Hit,
            keys: 1,
            hits: 1,
            due,
            ready: due,
            sent: due,
            arrived: due + service_ns,
            read: due + service_ns,
            noreply: false,
        }
    }
}

impl Sample {
    /// The length of each span in nanoseconds. A time that lies before the one that it follows (two clocks are involved) is
    /// taken to be equal to it, so that response = wait + lag + service always holds.
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
