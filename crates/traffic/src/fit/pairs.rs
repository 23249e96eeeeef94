//! Fills: stores of a key by the same client soon after a read of the key that missed.

use std::collections::VecDeque;

use super::keys::ByHash;
use crate::trace::row::Row;
use pummel_logic::rng::mix;
use pummel_logic::time::{Nanos, SECOND};

/// Longest time from a miss to its fill, in nanoseconds.
const FILL_WITHIN_NS: Nanos = 5 * SECOND;

/// Most misses that can wait for their fills.
const MISSES_MAX: usize = 1 << 16;

/// The misses that are not filled yet, and the sums over the fills.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    misses: ByHash<Nanos>,
    order: VecDeque<(Nanos, u64)>,
    /// Number of reads that missed.
    pub(super) missed: u64,
    /// Number of stores that filled a miss.
    pub(super) fills: u64,
    /// Sum of the times from a miss to its fill, in nanoseconds.
    pub(super) delays_ns: f64,
}

impl Pairs {
    /// Adds a row at `at_ns`. Returns whether the row is a fill: a store of a key that its client has just missed.
    pub(super) fn take(&mut self, row: &Row<'_>, at_ns: Nanos) -> bool {
        if !row.missed && !row.stores() {
            return false;
        }
        let name = mix(&[row.key_hash(), row.client.unwrap_or(u64::MAX)]);
        if row.missed {
            self.missed += u64::from(row.count);
            self.forget(at_ns);
            self.misses.insert(name, at_ns);
            self.order.push_back((at_ns, name));
            return false;
        }
        let Some(missed_ns) = self.misses.remove(&name) else { return false };
        let is_fill = at_ns.saturating_sub(missed_ns) <= FILL_WITHIN_NS;
        if is_fill {
            self.fills += u64::from(row.count);
            self.delays_ns += at_ns.saturating_sub(missed_ns) as f64 * f64::from(row.count);
        }
        is_fill
    }

    /// Drops the misses that have waited too long, and the oldest ones if there are too many.
    fn forget(&mut self, now_ns: Nanos) {
        while let Some(&(at_ns, name)) = self.order.front() {
            if self.order.len() < MISSES_MAX && now_ns.saturating_sub(at_ns) <= FILL_WITHIN_NS {
                break;
            }
            self.order.pop_front();
            if self.misses.get(&name) == Some(&at_ns) {
                self.misses.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::protocol::Verb;

    fn miss(key: &[u8], client: u64) -> Row<'_> {
        Row { missed: true, client: Some(client), ..Row::read(key) }
    }

    fn store(key: &[u8], client: u64) -> Row<'_> {
        Row { verb: Verb::Set, client: Some(client), ..Row::read(key) }
    }

    #[test]
    fn a_fill_is_of_the_same_key_and_client_and_soon() {
        let mut pairs = Pairs::default();
        assert!(!pairs.take(&miss(b"a", 1), 0));
        assert!(!pairs.take(&store(b"b", 1), SECOND), "another key");
        assert!(!pairs.take(&store(b"a", 2), SECOND), "another client");
        assert!(pairs.take(&store(b"a", 1), 2 * SECOND));
        assert!(!pairs.take(&store(b"a", 1), 2 * SECOND), "it is filled");
        assert!(!pairs.take(&miss(b"a", 1), 10 * SECOND));
        assert!(!pairs.take(&store(b"a", 1), 16 * SECOND), "too late");
        assert!(!pairs.take(&Row::read(b"a"), 17 * SECOND), "a hit");
        assert_eq!((pairs.missed, pairs.fills, pairs.delays_ns), (2, 1, 2e9));
    }

    #[test]
    fn misses_that_are_never_filled_do_not_pile_up() {
        let mut pairs = Pairs::default();
        for number in 0..300_000u32 {
            pairs.take(&miss(&number.to_le_bytes(), 1), 0);
        }
        assert!(pairs.order.len() <= MISSES_MAX && pairs.misses.len() <= MISSES_MAX);
        assert!(pairs.take(&store(&299_999u32.to_le_bytes(), 1), 1));
        assert!(!pairs.take(&store(&0u32.to_le_bytes(), 1), 1));
    }
}
