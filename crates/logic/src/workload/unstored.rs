//! The numbers of keys that are not records: fresh keys, absent keys, and the keys of later lives.
//!
//! Fresh and absent keys are functions of the client and the number of its request, so they need no memory. Fresh keys
//! differ in every run and in every phase, so none of them is already on the server.

use crate::plan::Mix;
use crate::rng::{Stream, below, mix, unit};
pub(crate) use crate::workload::key::RENEWED_FROM;

/// First number of the keys that do not exist, above those of the records in all spaces (5 * 2^40).
pub const ABSENT_FROM: u64 = 1_000_000_000_000_000;

/// First number of the fresh keys, each of which is read once.
pub const FRESH_FROM: u64 = 2_000_000_000_000_000;

/// One above the numbers of fresh keys.
const FRESH_END: u64 = RENEWED_FROM;

/// One above the numbers of the keys of later lives: keys have room for 16 digits.
pub(crate) const RENEWED_END: u64 = 10_000_000_000_000_000;

/// Names the draws of fresh and absent keys among all draws of one request; lower numbers are the draws of the spaces of its
/// keys, of which a read has at most 1,000.
const DRAWS_FROM: u64 = 2_048;

/// Names the draws of fresh keys.
const FRESH_DRAWS_FROM: u64 = 2 * DRAWS_FROM;

/// Names the records that clients store themselves among all keys of a run.
const OWN_RECORDS: u64 = 0x6f77_6e72;

/// Shares of the keys read that are not records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unstored {
    fresh: f64,
    /// Share of fresh and absent keys together.
    either: f64,
}

/// A key that a read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The key of a record.
    Record,
    /// A fresh key, which is read once.
    Fresh,
    /// A key that does not exist.
    Absent,
}

impl Unstored {
    /// The shares of a mix; `None` if all keys are records.
    pub(super) fn of(mix: &Mix) -> Option<Unstored> {
        let either = mix.fresh + mix.absent;
        (either > 0.0).then_some(Unstored { fresh: mix.fresh, either })
    }

    /// The kind of key `place` of request `index`, by the client's stream of operations.
    pub(super) fn wanted(self, stream: &Stream, index: u64, place: u64) -> Wanted {
        let share = unit(stream.draw_sub(index, DRAWS_FROM + place));
        if share < self.fresh {
            Wanted::Fresh
        } else if share < self.either {
            Wanted::Absent
        } else {
            Wanted::Record
        }
    }
}

/// The number of a fresh key, from a `salt` that no other phase of any run has and the client's stream of operations. Of
/// ten million such keys two are equal in one of 80 runs.
pub(super) fn fresh_key(salt: u64, ops: &Stream, index: u64, place: u64) -> u64 {
    let draw = ops.draw_sub(index, FRESH_DRAWS_FROM + place);
    key_from_bits(mix(&[salt, draw]))
}

/// The number of a key that no record has and no other bits stand for.
pub(super) fn key_from_bits(bits: u64) -> u64 {
    FRESH_FROM + below(bits, FRESH_END - FRESH_FROM)
}

/// The number of record `number` of those that a client stores itself in the run with this number. Other clients and runs have
/// others, but for the chance of [`fresh_key`].
pub(super) fn own_key(run: u64, client: u64, number: u64) -> u64 {
    key_from_bits(mix(&[run, OWN_RECORDS, client, number]))
}

/// Whether the key with this number is one that no load stores, and that may exist: fresh, a client's own, or new by churn.
#[inline]
pub(crate) fn is_never_loaded(key: u64) -> bool {
    key >= FRESH_FROM
}

/// Whether the key with this number may be a fresh one.
pub(super) fn may_be_fresh(key: u64) -> bool {
    (FRESH_FROM..FRESH_END).contains(&key)
}

/// Whether the key with this number is one that does not exist.
#[inline]
pub(crate) fn is_absent(key: u64) -> bool {
    (ABSENT_FROM..FRESH_FROM).contains(&key)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_come_in_their_shares() {
        let unstored = Unstored { fresh: 0.1, either: 0.35 };
        let stream = Stream::from_seed(9);
        let draws = 100_000;
        let mut counts = [0u32; 3];
        for index in 0..draws {
            counts[unstored.wanted(&stream, index, index % 3) as usize] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.65, 0.1, 0.25]) {
            let expected = share * draws as f64;
            let sd = (expected * (1.0 - share)).sqrt();
            assert!((f64::from(count) - expected).abs() < 5.0 * sd, "{counts:?}");
        }
    }

    #[test]
    fn no_fresh_key_is_asked_for_twice_by_any_client_phase_or_run() {
        let mut seen = HashSet::new();
        for (salt, client) in [(1, 0), (1, 1), (1, 700), (2, 0), (3, 0)] {
            let ops = Stream::from_seed(100 + client);
            for index in 0..1_000 {
                for place in [0, 1, 999] {
                    let key = fresh_key(salt, &ops, index, place);
                    assert!(seen.insert(key), "{key}");
                    assert!(!is_absent(key) && key < FRESH_END);
                }
            }
        }
        assert!(is_absent(ABSENT_FROM) && is_absent(ABSENT_FROM + (1 << 40) - 1));
    }
}
