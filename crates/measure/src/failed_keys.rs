//! The keys of requests that failed, as far as they are kept.

use pummel_logic::merge::Merge;
use pummel_logic::plan::RetryKind;
use pummel_logic::protocol::{Fault, Verb};
use serde::{Deserialize, Serialize};

/// Most keys that are kept of one run.
pub const FAILED_KEYS_MAX: usize = 10_000;

/// A key of a request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedKey {
    /// The key; bytes that are no text are replaced.
    pub key: String,
    /// Operation of the request.
    pub verb: Verb,
    /// Index of the phase in the Plan.
    pub phase: usize,
    /// The error of the request.
    pub fault: Fault,
    /// The kind of the error, where requests can be sent again after such errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RetryKind>,
}

/// The keys of requests that failed: the first ones, and the number of all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedKeys {
    /// The keys that are kept, at most [`FAILED_KEYS_MAX`] of them.
    pub keys: Vec<FailedKey>,
    /// Number of keys that are not kept.
    pub beyond: u64,
}

impl FailedKeys {
    /// Adds a key, if there is room for it.
    pub fn add(&mut self, key: impl FnOnce() -> FailedKey) {
        if self.keys.len() < FAILED_KEYS_MAX {
            self.keys.push(key());
        } else {
            self.beyond += 1;
        }
    }
}

impl Merge for FailedKeys {
    fn merge(&mut self, other: &FailedKeys) {
        other.keys.iter().for_each(|key| self.add(|| key.clone()));
        self.beyond += other.beyond;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(count: usize) -> FailedKeys {
        let mut failed = FailedKeys::default();
        for number in 0..count {
            failed.add(|| FailedKey {
                key: number.to_string(),
                verb: Verb::Set,
                phase: 1,
                fault: Fault::Server,
                kind: Some(RetryKind::Oom),
            });
        }
        failed
    }

    #[test]
    fn the_first_keys_are_kept_and_the_others_are_counted() {
        let mut all = failed(FAILED_KEYS_MAX - 2);
        all.merge(&failed(5));
        assert_eq!((all.keys.len(), all.beyond), (FAILED_KEYS_MAX, 3));
        assert_eq!(all.keys.last().map(|key| key.key.as_str()), Some("1"));
        all.merge(&FailedKeys { beyond: 4, ..failed(1) });
        assert_eq!((all.keys.len(), all.beyond), (FAILED_KEYS_MAX, 8));
    }
}
