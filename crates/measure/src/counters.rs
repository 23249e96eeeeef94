//! Everything that only adds up, beside the requests by their operations: [`Counters`] with its parts, and written samples.

use pummel_logic::arrival::Passed;
use pummel_logic::cluster::view::RedirectCounts;
use pummel_logic::counters;
use pummel_logic::retry::RetryCounts;
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::WindowCounts;

counters! {
    /// Everything that only adds up, beside the requests by their operations: in a slice of one worker, in the slices of all, and
    /// in the whole measured phase.
    #[serde(deny_unknown_fields)]
    pub struct Counters {
        /// Bytes over the wire.
        pub bytes: Bytes,
        /// Turns of the workers' loops.
        pub turns: Turns,
        /// Openings and losses of connections.
        #[serde(default, skip_serializing_if = "SliceConnections::is_zero")]
        pub connections: SliceConnections,
        /// Counts of clients with windows.
        #[serde(default, skip_serializing_if = "WindowCounts::is_zero")]
        pub window: WindowCounts,
        /// Requests that were left out because they would have been late, where the Plan says so. They are not among the requests.
        #[serde(default, skip_serializing_if = "Passed::is_zero")]
        pub skipped: Passed,
        /// Replies of a cluster's nodes that redirected requests or made them wait.
        #[serde(default, skip_serializing_if = "RedirectCounts::is_zero")]
        pub redirects: RedirectCounts,
        /// Errors after which requests were sent again, where the plan says so.
        #[serde(default, skip_serializing_if = "RetryCounts::is_zero")]
        pub retry: RetryCounts,
    }
}

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

counters! {
    /// Openings and losses of connections in a slice.
    #[serde(deny_unknown_fields)]
    pub struct SliceConnections {
        /// Connections that were opened, also for the first time.
        pub opened: u64,
        /// Opened connections that had been lost before.
        pub reopened: u64,
        /// Open connections that were lost.
        pub lost: u64,
        /// Open connections that their clients closed, of those that come and go or are on stage for a time only.
        pub closed: u64,
        /// Attempts to open a connection that failed.
        pub failed: u64,
        /// Clients that began, of those that come and go.
        pub begun: u64,
        /// Clients that ended, of those that come and go.
        pub ended: u64,
    }
}
