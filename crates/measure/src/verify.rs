//! The findings of the checks of answers: counts, the first wrong keys, and how many different keys were wrong.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::words::printable;
use pummel_logic::merged;
use pummel_logic::rng::mix;
use pummel_logic::workload::verify::check::Damage;

merged! {
    /// The findings of the checks of answers.
    #[serde(deny_unknown_fields)]
    pub struct Verify {
        /// Values that were checked; misses are not among them.
        pub checked: u64,
        /// Values that were wrong.
        pub failed: u64,
        /// Values that were right, but certainly older than one that the same client had stored before.
        pub stale: u64,
        /// Values too short to carry a frame: their bytes were compared, but not which write they are of.
        pub short: u64,
        /// The first keys with a wrong value, at most [`FAILURES_SHOWN`].
        pub first: Vec<WrongKey> => merge_first,
        /// Hashes of the keys with a wrong value, at most [`FAILED_KEYS_KEPT`].
        pub keys: BTreeSet<u64> => merge_keys,
    }
}

/// A key whose value was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongKey {
    /// The key, with bytes that are no text replaced.
    pub key: String,
    /// Damage of the value.
    pub damage: Damage,
}

/// The number of wrong keys that are shown.
pub const FAILURES_SHOWN: usize = 10;

/// The number of wrong keys that are counted one by one; where there are more, the number is a lower bound.
pub const FAILED_KEYS_KEPT: usize = 1 << 20;

impl Verify {
    /// Counts a wrong value.
    pub fn fail(&mut self, key: &[u8], damage: Damage) {
        self.failed += 1;
        keep_key(&mut self.keys, hash(key));
        if self.first.len() < FAILURES_SHOWN {
            merge_first(&mut self.first, &vec![WrongKey { key: printable(key), damage }]);
        }
    }

    /// Number of different keys with a wrong value; a lower bound where [`Verify::more_keys`] is true.
    pub fn failed_keys(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Whether more keys may have failed than were counted one by one.
    pub fn more_keys(&self) -> bool {
        self.keys.len() >= FAILED_KEYS_KEPT
    }
}

/// Adds wrong keys that are not known yet, while there is room for them.
fn merge_first(first: &mut Vec<WrongKey>, others: &Vec<WrongKey>) {
    for other in others {
        if first.len() < FAILURES_SHOWN && first.iter().all(|known| known.key != other.key) {
            first.push(other.clone());
        }
    }
}

/// Adds hashes of keys, while there is room for them.
fn merge_keys(keys: &mut BTreeSet<u64>, others: &BTreeSet<u64>) {
    others.iter().for_each(|other| keep_key(keys, *other));
}

fn keep_key(keys: &mut BTreeSet<u64>, key: u64) {
    if keys.len() < FAILED_KEYS_KEPT {
        keys.insert(key);
    }
}

/// 64 bits of a key, so that a million different ones almost surely stay different.
fn hash(key: &[u8]) -> u64 {
    key.chunks(8).fold(mix(&[key.len() as u64]), |state, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(&[state, u64::from_le_bytes(word)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_fails_often_is_one_failed_key() {
        let mut verify = Verify::default();
        for round in 0..3 {
            for key in 0..100 {
                verify.fail(
                    format!("key{key}").as_bytes(),
                    if round == 0 { Damage::Bytes } else { Damage::Length },
                );
            }
        }
        assert_eq!((verify.failed, verify.failed_keys(), verify.first.len()), (300, 100, FAILURES_SHOWN));
        assert_eq!(verify.first[9], WrongKey { key: "key9".to_owned(), damage: Damage::Bytes });
        let twin = verify.clone();
        verify.merge(&twin);
        assert_eq!((verify.failed, verify.failed_keys()), (600, 100));
    }
}
