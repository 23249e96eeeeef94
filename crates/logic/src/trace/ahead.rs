//! Looking ahead in a trace: a read whose length is not known takes that of the next store of its key.

use std::collections::{HashMap, VecDeque};

use crate::trace::row::Row;

/// Rows that are looked at before the first of them goes on.
pub const ROWS_AHEAD: usize = 1 << 16;

/// Bytes of keys that have gone on before their room is used again.
const KEYS_PASSED_BYTES: usize = 1 << 20;

/// No row.
const NONE: u64 = u64::MAX;

/// The rows that were read and have not gone on, at most [`ROWS_AHEAD`].
#[derive(Debug, Default)]
pub struct Ahead {
    rows: VecDeque<Waiting>,
    keys: Vec<u8>,
    /// Bytes at the beginning of `keys` whose rows have been passed on.
    keys_passed: usize,
    /// Number of the first row that waits.
    first: u64,
    /// The last waiting row of each key whose length is not known, by the hash of the key.
    unknown: HashMap<u64, u64>,
}

/// A row that waits.
#[derive(Debug)]
struct Waiting {
    row: Row<'static>,
    key_len: u32,
    hash: u64,
    /// The previous waiting row of the same key, whose length is not known either.
    before: u64,
    /// The length of the next store of the key, where it was met.
    next_bytes: Option<u32>,
}

/// A receiver of rows, each with the length of the next store of its key where the row needs it.
pub type AheadSink<'a> = dyn FnMut(&Row<'_>, Option<u32>) + 'a;

impl Ahead {
    /// Takes in a row, and hands over the row that goes on for it, where one does.
    pub fn take(&mut self, row: &Row<'_>, sink: &mut AheadSink<'_>) {
        let (number, hash) = (self.first + self.rows.len() as u64, row.key_hash());
        let before = match row.value_bytes {
            None => self.unknown.insert(hash, number).unwrap_or(NONE),
            Some(bytes) if row.stores() => {
                self.tell(hash, bytes);
                NONE
            }
            Some(_) => NONE,
        };
        self.keys.extend_from_slice(row.key);
        let key_len = row.key.len() as u32;
        self.rows.push_back(Waiting {
            row: Row { key: &[], ..*row },
            key_len,
            hash,
            before,
            next_bytes: None,
        });
        if self.rows.len() > ROWS_AHEAD {
            self.pass(sink);
        }
    }

    /// Hands over all rows that wait: nothing follows.
    pub fn flush(&mut self, sink: &mut AheadSink<'_>) {
        while !self.rows.is_empty() {
            self.pass(sink);
        }
    }

    /// Tells the waiting rows of a key without a length that of the store which follows them.
    fn tell(&mut self, hash: u64, bytes: u32) {
        let mut number = self.unknown.remove(&hash).unwrap_or(NONE);
        while number != NONE && number >= self.first {
            let waiting = &mut self.rows[(number - self.first) as usize];
            waiting.next_bytes = Some(bytes);
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
        sink(&Row { key: &self.keys[self.keys_passed..end], ..waiting.row }, waiting.next_bytes);
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
    use crate::protocol::Verb;

    fn store(key: &[u8], bytes: u32) -> Row<'_> {
        Row { verb: Verb::Set, value_bytes: Some(bytes), ..Row::read(key) }
    }

    /// The keys of the rows that went on, with what each was told.
    fn told(rows: &[Row<'_>]) -> Vec<(String, Option<u32>)> {
        let (mut ahead, mut told) = (Ahead::default(), Vec::new());
        let mut note = |row: &Row<'_>, next: Option<u32>| {
            told.push((String::from_utf8(row.key.to_vec()).unwrap(), next));
        };
        rows.iter().for_each(|row| ahead.take(row, &mut note));
        ahead.flush(&mut note);
        told
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
            [("a", Some(10)), ("b", None), ("a", Some(10)), ("a", None), ("a", None), ("a", Some(20))];
        let told = told(&rows);
        for (found, (key, next)) in told.iter().zip(expected) {
            assert_eq!((found.0.as_str(), found.1), (key, next));
        }
        assert_eq!(told[6..], [("a".to_owned(), None), ("a".to_owned(), None)]);
    }

    #[test]
    fn a_store_that_is_further_away_is_not_seen_and_no_row_is_lost() {
        for distance in [ROWS_AHEAD - 1, ROWS_AHEAD, ROWS_AHEAD + 1] {
            let mut rows = vec![Row::read(b"a")];
            rows.extend((0..distance).map(|_| Row { value_bytes: Some(1), ..Row::read(b"other") }));
            rows.push(store(b"a", 10));
            let told = told(&rows);
            assert_eq!(told.len(), rows.len());
            let is_seen = distance < ROWS_AHEAD;
            assert_eq!(told[0], ("a".to_owned(), is_seen.then_some(10)), "{distance}");
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
