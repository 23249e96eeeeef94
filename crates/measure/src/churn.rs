//! The account of clients that come and go: their connections, why some failed, and the bytes of their requests.

use super::histogram::{Histogram, Moments};
use pummel_logic::protocol::{Fault, Outcome};
use pummel_logic::time::Nanos;
use pummel_logic::{counters, merged, words};

merged! {
    /// The connections of clients that come and go, in the measured phase.
    #[serde(deny_unknown_fields)]
    pub struct Churn {
        /// Clients that came.
        pub begun: u64,
        /// Clients that are gone again.
        #[serde(default)]
        pub ended: u64,
        /// Connections that were asked for; where the system gave no descriptor, none was.
        pub asked: u64,
        /// Connections that were open.
        pub established: u64,
        /// Most connections that were open at one time; with several workers the sum of what each saw.
        pub alive_max: u64,
        /// Why connections ended early, or were not opened.
        pub failures: ConnectionFailures,
        /// Time from asking for a connection to its end, for those that were open.
        pub life: Histogram,
        /// Time from asking for a connection until it was open.
        pub connect: Histogram,
        /// Bytes of each request that was handed over whole, where the requests are those of a sequence.
        pub request_bytes: Moments,
        /// Bytes of each reply.
        pub reply_bytes: Moments,
        /// Counts of the replies by their first word.
        pub replies: Replies,
        /// Time from sending to arrival, for every reply.
        pub service: Histogram,
        /// Time from when a request was due to the arrival of its reply, for every reply.
        pub response: Histogram,
        /// Time from when a request was due until it was sent, for every request that was sent.
        pub late: Histogram,
    }
}

counters! {
    /// Connections that failed, by the reason; each is counted once.
    #[serde(deny_unknown_fields)]
    pub struct ConnectionFailures {
        /// The run's own timeout ended the connection.
        pub timeout: u64,
        /// Connections that the kernel gave up (ETIMEDOUT).
        pub unreachable: u64,
        /// Connections that were refused (ECONNREFUSED).
        pub refused: u64,
        /// Connections that were reset (ECONNRESET or EPIPE).
        pub reset: u64,
        /// Connections without a descriptor: this process may not have more (EMFILE).
        pub descriptors: u64,
        /// Connections without a file: the system may not have more (ENFILE).
        pub files: u64,
        /// Connections without a local port: EADDRNOTAVAIL of `connect`, or EADDRINUSE of `bind`.
        pub addresses: u64,
        /// Connections with any other failure: closed by the server while it owed a reply, a malformed reply.
        pub other: u64,
    }
}

words! {
    /// Why a connection failed, in the words of reports.
    pub enum ConnectionFailure {
        /// The run's own timeout.
        Timeout = "timed out",
        /// Timeout of the kernel (ETIMEDOUT).
        Unreachable = "unreachable",
        /// Refusal by the peer (ECONNREFUSED).
        Refused = "refused",
        /// Reset by the peer (ECONNRESET or EPIPE).
        Reset = "reset",
        /// No free descriptor in this process (EMFILE).
        Descriptors = "no descriptor",
        /// No free file in the system (ENFILE).
        Files = "no file",
        /// No free local port.
        Addresses = "no local port",
        /// Any other failure.
        Other = "closed or malformed",
    }
}

impl ConnectionFailure {
    /// Whether the failure came before any attempt to connect: no file was free for the socket.
    pub fn is_before_connect(self) -> bool {
        matches!(self, ConnectionFailure::Descriptors | ConnectionFailure::Files)
    }
}

counters! {
    /// Counts of replies by their first word.
    #[serde(deny_unknown_fields)]
    pub struct Replies {
        /// Number of `STORED` replies.
        pub stored: u64,
        /// Number of `NOT_STORED` replies.
        pub not_stored: u64,
        /// Number of `EXISTS` replies.
        pub exists: u64,
        /// Number of `NOT_FOUND` replies.
        pub not_found: u64,
        /// Number of replies that are a number.
        pub num: u64,
        /// Number of `DELETED` replies.
        pub deleted: u64,
        /// Number of `END` replies without a value.
        pub end: u64,
        /// Number of `VALUE` replies.
        pub value: u64,
        /// Number of `ERROR` replies.
        pub error: u64,
        /// Number of `CLIENT_ERROR` replies.
        pub client_error: u64,
        /// Number of `SERVER_ERROR` replies.
        pub server_error: u64,
        /// Number of other replies.
        pub other: u64,
    }
}

/// The part of an ended request that this account keeps.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Bytes of the request, where they are known and it was handed over whole.
    pub request_bytes: Option<u64>,
    /// Time from when the request was due until it was sent; `None` when it was not sent.
    pub late_ns: Option<Nanos>,
    /// The reply; `None` where none came.
    pub reply: Option<ChurnReply>,
}

/// A reply to a client that comes and goes.
#[derive(Clone, Copy, Debug)]
pub struct ChurnReply {
    /// The outcome of the request.
    pub outcome: Outcome,
    /// Length of the reply in bytes; 0 where it is not known.
    pub bytes: u64,
    /// Time from sending to arrival.
    pub service_ns: Nanos,
    /// Time from when the request was due to arrival.
    pub response_ns: Nanos,
}

impl Churn {
    /// Counts a connection that failed.
    pub fn fail(&mut self, failure: ConnectionFailure) {
        *self.failures.of(failure) += 1;
    }

    /// Records a request that ended.
    pub fn end(&mut self, ended: &Ended) {
        if let Some(bytes) = ended.request_bytes {
            self.request_bytes.record(bytes);
        }
        if let Some(late_ns) = ended.late_ns {
            self.late.record(late_ns);
        }
        if let Some(reply) = &ended.reply {
            self.reply_bytes.record(reply.bytes);
            *self.replies.of(reply.outcome) += 1;
            self.service.record(reply.service_ns);
            self.response.record(reply.response_ns);
        }
    }
}

impl ConnectionFailures {
    /// The counter of a failure.
    pub fn of(&mut self, failure: ConnectionFailure) -> &mut u64 {
        match failure {
            ConnectionFailure::Timeout => &mut self.timeout,
            ConnectionFailure::Unreachable => &mut self.unreachable,
            ConnectionFailure::Refused => &mut self.refused,
            ConnectionFailure::Reset => &mut self.reset,
            ConnectionFailure::Descriptors => &mut self.descriptors,
            ConnectionFailure::Files => &mut self.files,
            ConnectionFailure::Addresses => &mut self.addresses,
            ConnectionFailure::Other => &mut self.other,
        }
    }

    /// Every counter with what it counts.
    pub fn named(&self) -> [(ConnectionFailure, u64); ConnectionFailure::COUNT] {
        let mut counts = *self;
        ConnectionFailure::ALL.map(|failure| (failure, *counts.of(failure)))
    }

    /// The number of all failed connections.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl Replies {
    fn of(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Stored => &mut self.stored,
            Outcome::NotStored => &mut self.not_stored,
            Outcome::Exists => &mut self.exists,
            Outcome::NotFound => &mut self.not_found,
            Outcome::Number(_) => &mut self.num,
            Outcome::Deleted => &mut self.deleted,
            Outcome::Miss => &mut self.end,
            Outcome::Hit => &mut self.value,
            Outcome::Error(Fault::Protocol) => &mut self.error,
            Outcome::Error(Fault::Client) => &mut self.client_error,
            Outcome::Error(Fault::Server) => &mut self.server_error,
            _ => &mut self.other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome) -> Ended {
        let reply = ChurnReply { outcome, bytes: 8, service_ns: 5, response_ns: 7 };
        Ended { request_bytes: Some(28), late_ns: Some(2), reply: Some(reply) }
    }

    #[test]
    fn replies_and_failures_are_counted_once_each_and_parts_add_up() {
        let mut one = Churn::default();
        one.end(&ended(Outcome::Stored));
        one.end(&ended(Outcome::Error(Fault::Protocol)));
        one.end(&Ended { request_bytes: Some(28), late_ns: Some(2), reply: None });
        one.fail(ConnectionFailure::Refused);
        let mut both = one.clone();
        both.merge(&one);
        assert_eq!((one.request_bytes.count, one.reply_bytes.count, one.service.count()), (3, 2, 2));
        assert_eq!((both.replies.stored, both.replies.error), (2, 2));
        assert_eq!((both.failures.refused, both.failures.total()), (2, 2));
        assert_eq!(both.request_bytes.sum, 6 * 28);
    }
}
