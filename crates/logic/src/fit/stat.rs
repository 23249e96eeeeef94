//! The summary of a trace: its requests by operation, its keys, its lengths and its times, in bounded memory.

use crate::measure::histogram::Histogram;
use crate::protocol::Verb;
use crate::time::{Nanos, SECOND};
use crate::trace::distinct::DistinctKeys;
use crate::trace::row::Row;

/// The figures of a trace.
#[derive(Clone, Debug)]
pub struct Stat {
    /// Requests by operation, in the order of [`Verb::ALL`]; a row that stands for several counts as several.
    pub by_verb: [u64; Verb::COUNT],
    /// The time of the first row, and the greatest one.
    pub span: Option<(Nanos, Nanos)>,
    /// Rows that are earlier than the one before.
    pub out_of_order: u64,
    /// Reads that missed when they were recorded.
    pub missed: u64,
    /// Requests of values whose length is not known.
    pub sizes_unknown: u64,
    /// Lengths of keys in bytes, by request.
    pub key_bytes: Histogram,
    /// Known lengths of values in bytes, by request.
    pub value_bytes: Histogram,
    /// TTLs of stores in seconds, where there are some.
    pub ttl_s: Histogram,
    /// Requests of the busiest second.
    pub peak_second: u64,
    /// Whether rows name their client.
    pub has_clients: bool,
    /// Whether all times are whole seconds.
    pub whole_seconds: bool,
    keys: DistinctKeys,
    clients: DistinctKeys,
    second: (Nanos, u64),
}

impl Default for Stat {
    fn default() -> Stat {
        Stat {
            by_verb: [0; Verb::COUNT],
            span: None,
            out_of_order: 0,
            missed: 0,
            sizes_unknown: 0,
            key_bytes: Histogram::new(),
            value_bytes: Histogram::new(),
            ttl_s: Histogram::new(),
            peak_second: 0,
            has_clients: false,
            whole_seconds: true,
            keys: DistinctKeys::default(),
            clients: DistinctKeys::default(),
            second: (0, 0),
        }
    }
}

impl Stat {
    /// Takes in a row.
    pub fn take(&mut self, row: &Row<'_>) {
        let count = u64::from(row.count);
        self.by_verb[row.verb as usize] += count;
        let (first, last) = self.span.unwrap_or((row.at_ns, row.at_ns));
        self.out_of_order += u64::from(row.at_ns < last);
        self.span = Some((first, last.max(row.at_ns)));
        self.missed += if row.missed { count } else { 0 };
        self.key_bytes.record_many(row.key_bytes.into(), count);
        match row.value_bytes {
            Some(bytes) => self.value_bytes.record_many(bytes.into(), count),
            None => self.sizes_unknown += count,
        }
        if row.stores() && row.ttl_s > 0 {
            self.ttl_s.record_many(row.ttl_s.into(), count);
        }
        let second = row.at_ns / SECOND;
        if second != self.second.0 {
            self.second = (second, 0);
        }
        self.second.1 += count;
        self.peak_second = self.peak_second.max(self.second.1);
        self.whole_seconds &= u64::from(row.resolution_ns) == SECOND;
        self.keys.note(row.key_hash());
        if let Some(client) = row.client {
            self.has_clients = true;
            self.clients.note(crate::rng::scramble(client));
        }
    }

    /// The time that the trace takes, in nanoseconds: from the first row to the latest one, with the whole of its second where
    /// times are whole seconds. `None` where rows have no times, or all the same.
    pub fn length_ns(&self) -> Option<Nanos> {
        let (first, last) = self.span?;
        let last_second_ns = if self.whole_seconds { SECOND } else { 0 };
        Some((last - first).saturating_add(last_second_ns)).filter(|length_ns| *length_ns > 0)
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.by_verb.iter().sum()
    }

    /// Number of different keys, to about 1 %.
    pub fn keys(&self) -> u64 {
        self.keys.estimate()
    }

    /// Number of different clients, to about 1 %.
    pub fn clients(&self) -> u64 {
        self.clients.estimate()
    }
}
