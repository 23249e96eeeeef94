//! Recorded requests: whole keys and lengths, one row for each line of a recording, and which of them a worker asks next.

use std::sync::Arc;

use crate::plan::Replay;
use crate::protocol::Verb;
use crate::time::Nanos;
use crate::workload::key::KEY_MAX_BYTES;

/// Recorded requests. All of them are in memory: a row takes 16 bytes beside its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// All keys, end to end.
    keys: Vec<u8>,
    rows: Vec<Row>,
    longest_value: u32,
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    key_end: u64,
    value_bytes: u32,
    stores: bool,
}

impl Trace {
    /// A trace without a row.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// Adds a request that stores a value of `value_bytes`, or that reads and may store such a value after a miss. Returns
    /// false, and adds nothing, when the key is empty, too long or not valid for memcached.
    pub fn push(&mut self, key: &[u8], value_bytes: u32, stores: bool) -> bool {
        let is_key = |byte: &u8| *byte > b' ' && *byte != 127;
        if key.is_empty() || key.len() > KEY_MAX_BYTES || !key.iter().all(is_key) {
            return false;
        }
        self.keys.extend_from_slice(key);
        self.rows.push(Row { key_end: self.keys.len() as u64, value_bytes, stores });
        self.longest_value = self.longest_value.max(value_bytes);
        true
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The key of a row.
    #[inline]
    pub fn key(&self, row: u64) -> &[u8] {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.rows[row - 1].key_end };
        &self.keys[start as usize..self.rows[row].key_end as usize]
    }

    /// Length of a row's value in bytes.
    #[inline]
    pub fn value_bytes(&self, row: u64) -> usize {
        self.rows[row as usize].value_bytes as usize
    }

    /// Whether a row stores.
    #[inline]
    pub fn stores(&self, row: u64) -> bool {
        self.rows[row as usize].stores
    }

    /// The first row of every key, in the order of the rows.
    pub fn first_rows(&self) -> Vec<u64> {
        let mut rows: Vec<u64> = (0..self.len()).collect();
        // In place: a stable sort would take half as much memory again.
        rows.sort_unstable_by(|one, other| self.key(*one).cmp(self.key(*other)).then(one.cmp(other)));
        rows.dedup_by(|later, first| self.key(*later) == self.key(*first));
        rows.sort_unstable();
        rows
    }

    /// Bytes of memory that the rows and their keys take.
    pub fn memory_bytes(&self) -> u64 {
        (self.keys.len() + self.rows.len() * size_of::<Row>()) as u64
    }

    /// Length of the longest value in bytes.
    pub fn longest_value(&self) -> u32 {
        self.longest_value
    }
}

/// A worker's part of a trace: every row that leaves `first` when divided by `step`.
#[derive(Clone, Debug)]
pub struct TraceShare {
    pub(super) trace: Arc<Trace>,
    pub(super) first: u64,
    pub(super) step: u64,
    /// The row that the replay stopped at that a deletion divides.
    pub(super) divided_at: u64,
}

impl TraceShare {
    /// The part of worker `worker` of `workers`.
    pub fn new(trace: Arc<Trace>, worker: u64, workers: u64) -> TraceShare {
        TraceShare { trace, first: worker, step: workers, divided_at: worker }
    }
}

/// The keys of a trace, each once.
#[derive(Clone, Debug)]
pub struct RecordedKeys {
    trace: Arc<Trace>,
    /// The first row of every key.
    rows: Arc<[u64]>,
}

impl RecordedKeys {
    /// The keys of a trace. It takes a sorting of all rows.
    pub fn of(trace: Arc<Trace>) -> RecordedKeys {
        let rows = trace.first_rows().into();
        RecordedKeys { trace, rows }
    }

    /// Most bytes of memory that the keys of a trace of `rows` rows take beside the trace, while they are found: a number for
    /// each row, and one for each key.
    pub fn need_bytes(rows: u64) -> u64 {
        rows.saturating_mul(2 * size_of::<u64>() as u64)
    }

    /// Number of keys.
    pub fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// The first row of a key, by its place among all keys.
    pub(super) fn row(&self, place: u64) -> u64 {
        self.rows[place as usize]
    }

    /// The key in a row.
    pub(super) fn key(&self, row: u64) -> &[u8] {
        self.trace.key(row)
    }
}

/// Progress of the replay of a worker's part of a trace.
#[derive(Debug)]
pub(super) struct TraceCursor {
    pub(super) trace: Arc<Trace>,
    /// The row that is asked next.
    pub(super) next: u64,
    /// Rows from one of the worker's rows to its next.
    step: u64,
    /// Time from a miss until the key is stored, in nanoseconds; `None` where it is not.
    pub(super) read_through: Option<Nanos>,
}

impl TraceCursor {
    /// A cursor at row `next` of the worker's part.
    pub(super) fn new(replay: &Replay, share: TraceShare, next: u64) -> TraceCursor {
        let TraceShare { trace, step, .. } = share;
        TraceCursor { trace, next, step, read_through: replay.read_through_ns }
    }

    /// Whether every row of the part was asked.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.next >= self.trace.len()
    }

    /// Number of rows that wait to be asked.
    pub(super) fn rows_left(&self) -> u64 {
        self.trace.len().saturating_sub(self.next).div_ceil(self.step)
    }

    /// Leaves out this number of rows.
    pub(super) fn pass(&mut self, rows: u64) {
        self.next += rows * self.step;
    }

    /// Takes the next row: the verb that it asks, and its number.
    #[inline]
    pub(super) fn take(&mut self) -> (Verb, u64) {
        let row = self.next;
        self.next += self.step;
        (if self.trace.stores(row) { Verb::Set } else { Verb::Get }, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_keys_apart_and_bad_keys_make_no_row() {
        let mut trace = Trace::new();
        assert!(trace.push(b"one", 5, false));
        for bad in [&b""[..], b"a b", b"a\x7f", &[b'k'; 251]] {
            assert!(!trace.push(bad, 9_999, true));
        }
        assert!(trace.push(&[b'k'; 250], 7, true));
        assert_eq!((trace.len(), trace.longest_value()), (2, 7));
        assert_eq!(trace.memory_bytes(), 3 + 250 + 2 * 16);
        assert_eq!((trace.key(0), trace.value_bytes(0), trace.stores(0)), (&b"one"[..], 5, false));
        assert_eq!((trace.key(1), trace.stores(1)), (&[b'k'; 250][..], true));
    }

    #[test]
    fn a_key_that_comes_again_is_one_key() {
        let mut trace = Trace::new();
        for key in [&b"b"[..], b"a", b"b", b"c", b"a", b"aa"] {
            assert!(trace.push(key, 1, false));
        }
        assert_eq!(trace.first_rows(), [0, 1, 3, 5]);
        let keys = RecordedKeys::of(Arc::new(trace));
        assert_eq!((keys.count(), keys.key(keys.row(3))), (4, &b"aa"[..]));
    }
}
