//! The requests of a trace that wait for their clients, and those that were sent and are not answered yet.

use std::sync::Arc;

use crate::dist::Dist;
use crate::protocol::Verb;
use crate::time::{MILLISECOND, Nanos};
use crate::workload::distinct::DistinctKeys;
use crate::workload::hash::hash_bytes;

/// Requests that are handed to a worker at once.
pub const BATCH_ROWS: usize = 256;

/// Requests that wait at a worker at most, beside those on their way to it.
pub const ROWS_MAX: usize = 4_096;

/// The time after its due time, in nanoseconds, from which on a request counts as late when it is sent.
const LATE_NS: Nanos = 10 * MILLISECOND;

/// The index that stands for no place.
const NONE: u32 = u32::MAX;

/// Requests of a trace on their way to a worker.
#[derive(Clone, Debug, Default)]
pub struct RowBatch {
    /// The part of the replay that they belong to, counted from 0.
    pub part: u32,
    /// No request follows in this part.
    pub ends_part: bool,
    rows: Vec<BatchRow>,
    keys: Vec<u8>,
}

/// One request of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchRow {
    /// Due time, in nanoseconds from the beginning of the row's part.
    pub due_ns: Nanos,
    /// Time of the row in the trace, in nanoseconds from the first row that is kept.
    pub at_ns: Nanos,
    /// Number of the row's client among those of its worker.
    pub client: u32,
    /// Operation of the request.
    pub verb: Verb,
    /// Length of the value in bytes.
    pub value_bytes: u32,
    /// Time to live in seconds, 0 for none.
    pub ttl_s: u32,
    key_end: u32,
}

impl RowBatch {
    /// A batch of a part, without a request.
    pub fn of_part(part: u32) -> RowBatch {
        RowBatch { part, ..RowBatch::default() }
    }

    /// Adds a request of this key; its `key_end` does not matter.
    pub fn push(&mut self, row: BatchRow, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.rows.push(BatchRow { key_end: self.keys.len() as u32, ..row });
    }

    /// Whether the batch has as many requests as are handed over at once.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS
    }

    /// Whether the batch has no request.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The requests and their keys.
    pub fn rows(&self) -> impl Iterator<Item = (&BatchRow, &[u8])> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let key = &self.keys[start..row.key_end as usize];
            start = row.key_end as usize;
            (row, key)
        })
    }
}

impl BatchRow {
    /// A request without its key, whose time in the trace is when it is due.
    pub fn new(due_ns: Nanos, client: u32, verb: Verb, value_bytes: u32, ttl_s: u32) -> BatchRow {
        BatchRow { due_ns, at_ns: due_ns, client, verb, value_bytes, ttl_s, key_end: 0 }
    }
}

/// The next request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextRow {
    /// The next request is due at this time from the beginning of the phase; `None`: as soon as its client is free.
    Due(Option<Nanos>),
    /// The next request is not known yet.
    Later,
    /// There are no more requests.
    None,
}

/// Lateness of the requests of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Requests that were sent more than 10 ms after they were due.
    pub late_rows: u64,
    /// The greatest time from when a request was due until it was sent, in nanoseconds.
    pub latest_ns: Nanos,
    /// Time for which the worker had no request left although the trace went on, in nanoseconds.
    pub starved_ns: Nanos,
}

impl Lateness {
    /// Adds that of another worker.
    pub fn merge(&mut self, other: Lateness) {
        self.late_rows += other.late_rows;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.starved_ns = self.starved_ns.max(other.starved_ns);
    }
}

/// The requests of a trace that clients asked, in all parts of its replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedRows {
    /// Number of the requests.
    pub requests: u64,
    /// Keys of the requests.
    pub keys: DistinctKeys,
    /// The latest time in the trace of one of them, in nanoseconds from the first row that is kept.
    pub covered_ns: Nanos,
    /// Requests of the client with the most.
    pub busiest_client_requests: u64,
}

impl AskedRows {
    /// Adds those of other clients.
    pub fn merge(&mut self, other: &AskedRows) {
        self.requests = self.requests.saturating_add(other.requests);
        self.keys.merge(&other.keys);
        self.covered_ns = self.covered_ns.max(other.covered_ns);
        self.busiest_client_requests = self.busiest_client_requests.max(other.busiest_client_requests);
    }
}

/// The requests of a trace at one worker.
#[derive(Debug)]
pub struct Rows {
    /// Number of each client of this process among those of its worker, by its number in its group.
    places: Arc<[u32]>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The first and the last request that waits for each client.
    waiting: Vec<(u32, u32)>,
    count: usize,
    is_over: bool,
    /// Whether requests are due as soon as their client is free.
    is_fast: bool,
    /// Time from a miss until the key is stored, in nanoseconds; `None` where it is not.
    pub(super) read_through: Option<Nanos>,
    /// The delays in seconds, where they differ.
    pub(super) fill_delay_s: Option<Dist>,
    pub(super) lateness: Lateness,
    asked: AskedRows,
    /// Requests that each client of this worker asked.
    asked_by_client: Vec<u64>,
}

/// A request that waits or is asked.
#[derive(Debug, Default)]
struct Slot {
    due_ns: Nanos,
    at_ns: Nanos,
    verb_and_next: (Option<Verb>, u32),
    value_bytes: u32,
    ttl_s: u32,
    key: Vec<u8>,
}

impl Rows {
    /// No request yet, at a worker of `clients` clients, which have these places.
    pub fn new(places: Arc<[u32]>, clients: usize) -> Rows {
        Rows {
            places,
            slots: Vec::new(),
            free: Vec::new(),
            waiting: vec![(NONE, NONE); clients],
            count: 0,
            is_over: false,
            is_fast: false,
            read_through: None,
            fill_delay_s: None,
            lateness: Lateness::default(),
            asked: AskedRows::default(),
            asked_by_client: vec![0; clients],
        }
    }

    /// Forgets all requests of the part before.
    pub(super) fn restart(&mut self, is_fast: bool, read_through: Option<Nanos>, fill_delay_s: Option<Dist>) {
        self.slots.clear();
        self.free.clear();
        self.waiting.fill((NONE, NONE));
        (self.count, self.is_over, self.is_fast) = (0, false, is_fast);
        (self.read_through, self.fill_delay_s) = (read_through, fill_delay_s);
        self.lateness = Lateness::default();
    }

    /// Whether there is room for another batch.
    pub(crate) fn has_room(&self) -> bool {
        self.count + BATCH_ROWS <= ROWS_MAX
    }

    /// Requests that wait.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Notes that no request follows in this part.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Adds a request. Returns whether its client had none that waits.
    pub(crate) fn add(&mut self, row: &BatchRow, key: &[u8]) -> bool {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[place as usize];
        slot.key.clear();
        slot.key.extend_from_slice(key);
        (slot.due_ns, slot.at_ns) = (row.due_ns, row.at_ns);
        slot.verb_and_next = (Some(row.verb), NONE);
        (slot.value_bytes, slot.ttl_s) = (row.value_bytes, row.ttl_s);
        self.count += 1;
        let (first, last) = &mut self.waiting[row.client as usize];
        let was_empty = *first == NONE;
        let before = std::mem::replace(last, place);
        match was_empty {
            true => *first = place,
            false => self.slots[before as usize].verb_and_next.1 = place,
        }
        was_empty
    }

    /// The next request of client `number`.
    pub(crate) fn next(&self, number: u64) -> NextRow {
        match self.waiting[self.place_of(number)].0 {
            NONE if self.is_over => NextRow::None,
            NONE => NextRow::Later,
            first => NextRow::Due((!self.is_fast).then(|| self.slots[first as usize].due_ns)),
        }
    }

    /// Takes the next request of client `number`, which is asked `late_ns` after it was due: its place, which is kept until it
    /// is released, and its verb.
    #[inline]
    pub(crate) fn take(&mut self, number: u64, late_ns: Nanos) -> (u64, Verb) {
        let (place, verb) = self.leave_out(number);
        self.note_asked(number, place, late_ns);
        (place, verb)
    }

    /// Notes that client `number` asks the request in this place, `late_ns` after it was due.
    pub(crate) fn note_asked(&mut self, number: u64, place: u64, late_ns: Nanos) {
        self.lateness.late_rows += u64::from(late_ns > LATE_NS);
        self.lateness.latest_ns = self.lateness.latest_ns.max(late_ns);
        let slot = &self.slots[place as usize];
        self.asked.requests += 1;
        self.asked.covered_ns = self.asked.covered_ns.max(slot.at_ns);
        self.asked.keys.note(hash_bytes(&slot.key));
        self.asked_by_client[self.places[number as usize] as usize] += 1;
    }

    /// Takes the next request of client `number`, which is not asked now: its place, which is kept until it is released, and
    /// its verb.
    pub(crate) fn leave_out(&mut self, number: u64) -> (u64, Verb) {
        let client = self.place_of(number);
        let place = self.waiting[client].0;
        let (verb, next) = self.slots[place as usize].verb_and_next;
        self.waiting[client].0 = next;
        self.count -= 1;
        (place.into(), verb.expect("a request that waits has a verb"))
    }

    /// The requests that were asked so far.
    pub(super) fn asked(&self) -> AskedRows {
        let busiest_client_requests = self.asked_by_client.iter().copied().max().unwrap_or(0);
        AskedRows { busiest_client_requests, ..self.asked.clone() }
    }

    /// Frees the place of a request that is answered, or will not be sent.
    pub(crate) fn release(&mut self, place: u64) {
        self.free.push(place as u32);
    }

    /// The key of a request.
    pub(super) fn key(&self, place: u64) -> &[u8] {
        &self.slots[place as usize].key
    }

    /// The length of a request's value in bytes, and its time to live in seconds.
    pub(super) fn value_and_ttl(&self, place: u64) -> (u32, u32) {
        let slot = &self.slots[place as usize];
        (slot.value_bytes, slot.ttl_s)
    }

    fn place_of(&self, number: u64) -> usize {
        self.places[number as usize] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    fn rows(clients: usize) -> Rows {
        Rows::new((0..clients as u32).collect(), clients)
    }

    fn row(client: u32, due_ns: Nanos) -> BatchRow {
        BatchRow::new(due_ns, client, Verb::Get, 5, 6)
    }

    #[test]
    fn each_client_has_its_requests_in_their_order() {
        let mut rows = rows(2);
        assert!(rows.add(&row(0, 1), b"a") && !rows.add(&row(0, 2), b"bb") && rows.add(&row(1, 3), b"c"));
        assert_eq!(
            (rows.next(0), rows.next(1), rows.len()),
            (NextRow::Due(Some(1)), NextRow::Due(Some(3)), 3)
        );
        let (first, _) = rows.take(0, 0);
        assert_eq!((rows.key(first), rows.value_and_ttl(first)), (&b"a"[..], (5, 6)));
        let (second, _) = rows.take(0, 11 * MILLISECOND);
        assert_eq!((rows.key(second), rows.next(0)), (&b"bb"[..], NextRow::Later));
        assert_eq!((rows.lateness.late_rows, rows.lateness.latest_ns), (1, 11 * MILLISECOND));
        rows.end();
        assert_eq!((rows.next(0), rows.next(1)), (NextRow::None, NextRow::Due(Some(3))));
    }

    #[test]
    fn only_requests_that_are_asked_count_as_asked() {
        let mut rows = rows(3);
        for (client, key) in [(0, "a"), (0, "b"), (1, "a"), (1, "c"), (2, "d")] {
            rows.add(&row(client, u64::from(client) * SECOND), key.as_bytes());
        }
        for client in [0, 0, 1] {
            rows.take(client, 0);
        }
        rows.leave_out(2);
        let asked = rows.asked();
        assert_eq!((asked.requests, asked.keys.estimate(), asked.covered_ns), (3, 2, SECOND));
        assert_eq!(asked.busiest_client_requests, 2);
        rows.restart(true, None, None);
        assert_eq!(rows.asked(), asked, "the next part of the replay adds its own");
    }

    #[test]
    fn places_are_used_again_when_they_are_released() {
        let mut rows = rows(1);
        for turn in 0..100_000 {
            rows.add(&row(0, turn), b"key");
            let (place, _) = rows.take(0, 0);
            rows.release(place);
        }
        assert_eq!(rows.slots.len(), 1);
        while rows.has_room() {
            rows.add(&row(0, 0), b"key");
        }
        assert!(rows.len() <= ROWS_MAX);
    }

    #[test]
    fn a_batch_keeps_keys_apart() {
        let mut batch = RowBatch::of_part(3);
        for key in [&b"one"[..], b"two2", b"3"] {
            batch.push(row(0, 0), key);
        }
        let keys: Vec<&[u8]> = batch.rows().map(|(_, key)| key).collect();
        assert_eq!(keys, [&b"one"[..], b"two2", b"3"]);
    }
}
