//! The look ahead in a trace: a read gets the length and the time to live of the next store of its key.

use std::collections::{HashMap, VecDeque};

use crate::trace::row::Row;
use crate::trace::sizes::Store;

/// Rows that are read before the first of them is passed on.
pub const ROWS_AHEAD: usize = 1 << 16;

/// Bytes of passed keys before their room is used again.
const KEYS_PASSED_BYTES: usize = 1 << 20;

/// Number of no row.
const NONE: u64 = u64::MAX;

/// The rows that were read and not yet passed on, at most [`ROWS_AHEAD`].
#[derive(Debug, Default)]
pub struct Ahead {
    rows: VecDeque<Waiting>,
    keys: Vec<u8>,
    /// Bytes at the beginning of `keys` whose rows have been passed on.
    keys_passed: usize,
    /// Number of the first row that waits.
    first: u64,
    /// The last waiting read of each key that no store has followed, by the hash of the key.
    unknown: HashMap<u64, u64>,
}

/// A row that waits.
#[derive(Debug)]
struct Waiting {
    row: Row<'static>,
    key_len: u32,
    hash: u64,
    /// Number of the row with the read of the key before this one that no store has followed either.
    before: u64,
    /// The next store of the key, where it was read.
    next: Option<Store>,
}

/// A receiver of rows, each with the next store of its key where the row needs it.
pub type AheadSink<'a> = dyn FnMut(&Row<'_>, Option<Store>) + 'a;

impl Ahead {
    /// Adds a row, and passes on the row that leaves in its place, if there is one.
    pub fn take(&mut self, row: &Row<'_>, sink: &mut AheadSink<'_>) {
        let (number, hash) = (self.first + self.rows.len() as u64, row.key_hash());
        let before = match row.stored() {
            Some(store) => {
                self.tell(hash, store);
                NONE
            }
            None if row.verb.reads() => self.unknown.insert(hash, number).unwrap_or(NONE),
            None => NONE,
        };
        self.keys.extend_from_slice(row.key);
        let key_len = row.key.len() as u32;
        self.rows.push_back(Waiting { row: Row { key: &[], ..*row }, key_len, hash, before, next: None });
        if self.rows.len() > ROWS_AHEAD {
            self.pass(sink);
        }
    }

    /// Passes on all waiting rows: no row follows.
    pub fn flush(&mut self, sink: &mut AheadSink<'_>) {
        while !self.rows.is_empty() {
            self.pass(sink);
        }
    }

    /// Gives the waiting reads of a key the store that follows them.
    fn tell(&mut self, hash: u64, store: Store) {
        let mut number = self.unknown.remove(&hash).unwrap_or(NONE);
        while number != NONE && number >= self.first {
            let waiting = &mut self.rows[(number - self.first) as usize];
            waiting.next = Some(store);
            number = waiting.before;
        }
    }

    /// Hands over the first row.
    fn pass(&mut self, sink: &mut AheadSink<'_>) {
        let Some(waiting) = self.rows.pop_front() else { return };
        if self.unknown.get(&waiting.hash) == Some(&self.first) {
            self.unknown.remove(&waiting.hash);
        }
        self.first += 1;
        let end = self.keys_passed + waiting.key_len as usize;
        sink(&Row { key: &self.keys[self.keys_passed..end], ..waiting.row }, waiting.next);
        self.keys_passed = end;
        if self.keys_passed >= KEYS_PASSED_BYTES {
            self.keys.drain(..self.keys_passed);
            self.keys_passed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::protocol::Verb;

    fn store(key: &[u8], bytes: u32) -> Row<'_> {
        Row { verb: Verb::Set, value_bytes: Some(bytes), ..Row::read(key) }
    }

    /// The keys of the rows that were passed on, with the length of the store that each got.
    fn reported(rows: &[Row<'_>]) -> Vec<(String, Option<u32>)> {
        reported_stores(rows)
            .into_iter()
            .map(|(key, store)| (key, store.and_then(|store| store.bytes)))
            .collect()
    }

    fn reported_stores(rows: &[Row<'_>]) -> Vec<(String, Option<Store>)> {
        let (mut ahead, mut reported) = (Ahead::default(), Vec::new());
        let mut note = |row: &Row<'_>, next: Option<Store>| {
            reported.push((String::from_utf8(row.key.to_vec()).unwrap(), next));
        };
        rows.iter().for_each(|row| ahead.take(row, &mut note));
        ahead.flush(&mut note);
        reported
    }

    #[test]
    fn reads_are_told_the_length_of_the_next_store_of_their_key() {
        let known = Row { value_bytes: Some(7), ..Row::read(b"a") };
        let rows = [
            Row::read(b"a"),
            Row::read(b"b"),
            Row::read(b"a"),
            known,
            store(b"a", 10),
            Row::read(b"a"),
            store(b"a", 20),
            Row::read(b"a"),
        ];
        let expected =
            [("a", Some(10)), ("b", None), ("a", Some(10)), ("a", Some(10)), ("a", None), ("a", Some(20))];
        let reported = reported(&rows);
        for (found, (key, next)) in reported.iter().zip(expected) {
            assert_eq!((found.0.as_str(), found.1), (key, next));
        }
        assert_eq!(reported[6..], [("a".to_owned(), None), ("a".to_owned(), None)]);
    }

    #[test]
    fn reads_are_told_the_time_to_live_of_the_next_store_whatever_is_known_of_their_length() {
        let expiring = Row { ttl_s: 60, ..store(b"a", 10) };
        let known = Row { value_bytes: Some(7), ..Row::read(b"a") };
        let unsized_store = Row { verb: Verb::Set, ttl_s: 70, ..Row::read(b"b") };
        let reported = reported_stores(&[known, Row::read(b"b"), expiring, unsized_store]);
        assert_eq!(reported[0].1, Some(Store { bytes: Some(10), ttl_s: Some(60) }));
        assert_eq!(reported[1].1, Some(Store { bytes: None, ttl_s: Some(70) }));
    }

    #[test]
    fn a_store_that_is_further_away_is_not_seen_and_no_row_is_lost() {
        for distance in [ROWS_AHEAD - 1, ROWS_AHEAD, ROWS_AHEAD + 1] {
            let mut rows = vec![Row::read(b"a")];
            rows.extend((0..distance).map(|_| Row { value_bytes: Some(1), ..Row::read(b"other") }));
            rows.push(store(b"a", 10));
            let reported = reported(&rows);
            assert_eq!(reported.len(), rows.len());
            let is_seen = distance < ROWS_AHEAD;
            assert_eq!(reported[0], ("a".to_owned(), is_seen.then_some(10)), "{distance}");
        }
    }

    #[test]
    fn the_room_for_keys_does_not_grow_with_the_trace() {
        let (mut ahead, mut passed) = (Ahead::default(), 0u64);
        let key = [b'k'; 250];
        for number in 0..300_000u32 {
            let row = if number % 3 == 0 { store(&key, number) } else { Row::read(&key) };
            ahead.take(&row, &mut |row, _| {
                assert_eq!(row.key, key);
                passed += 1;
            });
        }
        assert_eq!(passed + ROWS_AHEAD as u64, 300_000);
        assert!(ahead.keys.len() <= 250 * (ROWS_AHEAD + 1) + KEYS_PASSED_BYTES + 250);
        assert!(ahead.unknown.len() <= 1);
    }
}
