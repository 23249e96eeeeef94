//! Counters that every run has: bytes over the wire, turns of the workers' loops, receive stamps, written samples.

use pummel_logic::counters;
use pummel_logic::time::Nanos;

counters! {
    /// Counts of requests that were to be written one by one.
    #[serde(deny_unknown_fields)]
    pub struct Samples {
        /// Requests that were written.
        pub written: u64,
        /// Requests that were not written, because the place for them did not take them in time.
        pub dropped: u64,
    }
}

impl Samples {
    /// Moves `rows` requests from the written to the dropped ones.
    pub fn drop_written(&mut self, rows: u64) {
        self.written = self.written.saturating_sub(rows);
        self.dropped += rows;
    }
}

counters! {
    /// Bytes over the wire, as the protocol counts them (without the headers of TCP and below).
    #[serde(deny_unknown_fields)]
    pub struct Bytes {
        /// Bytes to the servers.
        pub sent: u64,
        /// Bytes from the servers.
        pub received: u64,
    }
}

counters! {
    /// Receive stamps that are missing or wrong.
    #[serde(deny_unknown_fields)]
    pub struct Stamps {
        /// Replies without a stamp.
        pub missing: u64,
        /// Replies that shared a read with a later one, so that their stamp is an upper bound.
        pub shared: u64,
        /// Replies whose stamp was impossible.
        pub rejected: u64,
    }
}

counters! {
    /// Turns of a worker's loop, and the time that they took.
    pub struct Turns {
        /// Turns of the loop.
        pub turns: u64,
        /// Time in turns that had something to do.
        pub busy_ns: Nanos,
        /// Turns longer than 1 ms.
        pub stalls: u64,
        /// Time in turns longer than 1 ms.
        pub stalled_ns: Nanos,
        /// Receive stamps that are missing or wrong.
        pub stamps: Stamps,
    }
}
