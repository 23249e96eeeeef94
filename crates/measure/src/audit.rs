//! The audit of a run: what became of the writes that servers acknowledged.

use std::collections::BTreeMap;

use pummel_logic::merge::Merge;
use pummel_logic::merged;
use pummel_logic::time::Nanos;
use pummel_logic::workload::verify::ledger::RecordState;
use serde::{Deserialize, Serialize};

merged! {
    /// The records that were read back after a run, by their state.
    #[serde(deny_unknown_fields)]
    pub struct AuditCounts {
        /// Records with the newest acknowledged write.
        pub current: u64,
        /// Records with a write that was under way together with the newest acknowledged one.
        pub contested: u64,
        /// Records with a write whose outcome the run never learned.
        pub newer: u64,
        /// Records with an older value.
        pub older: u64,
        /// Records that were not there.
        pub missing: u64,
        /// When the lost writes were acknowledged; `None` where none was lost.
        pub lost_at: Option<LostAt>,
        /// Lost writes by the number of the shard of a cluster; of other servers, all are those of number 0.
        pub lost_by_shard: BTreeMap<u16, u64>,
    }
}

/// The times at which the first and the last lost write was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostAt {
    /// Time of the first one, in nanoseconds.
    pub first_ns: Nanos,
    /// Time of the last one, in nanoseconds.
    pub last_ns: Nanos,
}

impl Merge for LostAt {
    fn merge(&mut self, other: &LostAt) {
        // Nothing is acknowledged at 0: a default one is that of no write.
        self.first_ns = if self.first_ns == 0 { other.first_ns } else { self.first_ns.min(other.first_ns) };
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}

impl AuditCounts {
    /// Counts a record of this shard.
    pub fn note(&mut self, state: RecordState, shard: u16) {
        let (count, lost_ns) = match state {
            RecordState::Current => (&mut self.current, None),
            RecordState::Contested => (&mut self.contested, None),
            RecordState::Newer => (&mut self.newer, None),
            RecordState::Older(at) => (&mut self.older, Some(at)),
            RecordState::Missing(at) => (&mut self.missing, Some(at)),
        };
        *count += 1;
        if let Some(at) = lost_ns {
            let lost = LostAt { first_ns: at, last_ns: at };
            self.lost_at.get_or_insert(lost).merge(&lost);
            *self.lost_by_shard.entry(shard).or_default() += 1;
        }
    }

    /// Records whose newest acknowledged write is not there.
    pub fn lost(&self) -> u64 {
        self.older + self.missing
    }

    fn read(&self) -> u64 {
        self.current + self.contested + self.newer + self.lost()
    }
}

/// The audit of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Whether the records began to be read. Otherwise the run ended before.
    pub begun: bool,
    /// Records with an acknowledged write.
    pub written: u64,
    /// The records that were read, with times from the beginning of the measured phase; 0 for writes before it.
    pub counts: AuditCounts,
    /// Writes with an unknown outcome that were too many to be kept.
    pub unknown_beyond: u64,
}

impl Audit {
    /// Records with an acknowledged write that could not be read.
    pub fn unread(&self) -> u64 {
        self.written.saturating_sub(self.counts.read())
    }

    /// The audit with the times of its lost writes from `measured_at`, when the measured phase began.
    #[must_use]
    pub fn since(mut self, measured_at: Nanos) -> Audit {
        if let Some(lost) = &mut self.counts.lost_at {
            lost.first_ns = lost.first_ns.saturating_sub(measured_at);
            lost.last_ns = lost.last_ns.saturating_sub(measured_at);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_missing_records_are_lost_and_what_was_not_read_is_unread() {
        let states = [
            RecordState::Current,
            RecordState::Older(500),
            RecordState::Newer,
            RecordState::Missing(300),
            RecordState::Contested,
            RecordState::Missing(900),
        ];
        for split in 0..=states.len() {
            let mut halves = [AuditCounts::default(), AuditCounts::default()];
            for (at, state) in states.iter().enumerate() {
                halves[usize::from(at < split)].note(*state, 2 + u16::from(at == 5));
            }
            let [mut counts, other] = halves;
            counts.merge(&other);
            let audit = Audit { begun: true, written: 8, counts, unknown_beyond: 0 }.since(400);
            assert_eq!((audit.counts.lost(), audit.unread()), (3, 2));
            assert_eq!(audit.counts.lost_at, Some(LostAt { first_ns: 0, last_ns: 500 }));
            assert_eq!(audit.counts.lost_by_shard, BTreeMap::from([(2, 2), (3, 1)]));
        }
    }
}
