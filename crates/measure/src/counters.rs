//! Counters that merge by adding: bytes over the wire, turns of the workers' loops, receive stamps, written samples.

use serde::{Deserialize, Serialize};

use pummel_logic::time::Nanos;

/// Counts of requests that were to be written one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// Requests that were written.
    pub written: u64,
    /// Requests that were not written, because the place for them did not take them in time.
    pub dropped: u64,
}

impl Samples {
    /// Adds another worker's, or another process', counts.
    pub fn merge(&mut self, other: &Samples) {
        self.written += other.written;
        self.dropped += other.dropped;
    }

    /// Moves `rows` requests from the written to the dropped ones.
    pub fn drop_written(&mut self, rows: u64) {
        self.written = self.written.saturating_sub(rows);
        self.dropped += rows;
    }
}

/// Bytes over the wire, as the protocol counts them (without the headers of TCP and below).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    /// Bytes to the servers.
    pub sent: u64,
    /// Bytes from the servers.
    pub received: u64,
}

/// Receive stamps that are missing or wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamps {
    /// Replies without a stamp.
    pub missing: u64,
    /// Replies that shared a read with a later one, so that their stamp is an upper bound.
    pub shared: u64,
    /// Replies whose stamp was impossible.
    pub rejected: u64,
}

impl Bytes {
    /// Adds the bytes of another part of the run.
    pub fn merge(&mut self, other: &Bytes) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

impl Stamps {
    /// Adds the counts of another part of the run.
    pub fn merge(&mut self, other: &Stamps) {
        self.missing += other.missing;
        self.shared += other.shared;
        self.rejected += other.rejected;
    }
}

/// Turns of a worker's loop, and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl Turns {
    /// Adds another worker's, or another slice's, figures.
    pub fn merge(&mut self, other: &Turns) {
        self.turns += other.turns;
        self.busy_ns += other.busy_ns;
        self.stalls += other.stalls;
        self.stalled_ns += other.stalled_ns;
        self.stamps.merge(&other.stamps);
    }
}
