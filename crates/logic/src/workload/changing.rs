//! A mix that changes while its phase goes on: by parts of the phase, and by keys that records get and lose.

use crate::plan::{Event, Mix, Part};
use crate::rng::Stream;
use crate::time::Nanos;
use crate::workload::churn::{AskedAt, KeyLives};
use crate::workload::drawn_records::{DrawnRecords, KeyAt};
use crate::workload::events::{CrowdKey, Crowds};
use crate::workload::key::{Space, Spaces};
use crate::workload::mix_task::MixTask;

/// The mixes of the parts of a phase, and which keys its records have.
#[derive(Debug)]
pub(super) struct ChangingTask {
    /// Beginning of each part, in nanoseconds from the beginning of the phase, with its mix; the first begins at 0.
    parts: Vec<(Nanos, MixTask)>,
    /// The part in which the request that is drawn is due.
    current: usize,
    /// Due time and number of the request that is drawn.
    at: AskedAt,
    /// The keys of the records, where they change.
    lives: Option<KeyLives>,
    /// The keys that are hot for a time.
    crowds: Crowds,
}

/// The changing properties of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct PhaseChanges<'a> {
    /// The parts of the phase; none where the phase has none.
    pub parts: &'a [Part],
    /// Nanoseconds for which keys have changed before the phase.
    pub churned_ns: Nanos,
    /// Events at moments of the phase.
    pub events: &'a [Event],
}

/// The source from which the requests of a phase are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawnFrom {
    pub(super) records: DrawnRecords,
    /// Seed of the draws that are the same for all workers.
    pub(super) seed: u64,
    /// A number that no other run has.
    pub(super) run: u64,
    /// A number that no other phase of any run has.
    pub(super) fresh_salt: u64,
}

impl ChangingTask {
    /// The requests of a phase with this mix; `None` where nothing about them changes.
    pub(super) fn of(mix: &Mix, changes: &PhaseChanges<'_>, from: DrawnFrom) -> Option<ChangingTask> {
        let DrawnFrom { records, seed, run, fresh_salt } = from;
        // The churn of the phase is that of the time before it.
        let of_parts =
            changes.parts.iter().map(|part| (part.at_ns, part.churn.as_ref().or(mix.churn.as_ref())));
        let churns = [(0, mix.churn.as_ref())].into_iter().chain(of_parts);
        let lives = KeyLives::of(churns, changes.churned_ns, records.count, seed, run);
        let crowds = Crowds::of(changes.events, fresh_salt);
        if lives.is_none() && crowds.is_empty() && !changes.parts.iter().any(Part::has_own_mix) {
            return None;
        }
        let of = |part: &Part| (part.at_ns, MixTask::new(&part.mix(mix), records, fresh_salt));
        let mut parts: Vec<_> = changes.parts.iter().map(of).collect();
        if parts.is_empty() {
            parts.push((0, MixTask::new(mix, records, fresh_salt)));
        }
        Some(ChangingTask { parts, current: 0, at: AskedAt::default(), lives, crowds })
    }

    /// The mix of the part in which the request is due that is drawn.
    pub(super) fn mix(&self) -> &MixTask {
        &self.parts[self.current].1
    }

    /// Goes to the moment at which a request is due.
    pub(super) fn turn_to(&mut self, at: AskedAt) {
        let begun = self.parts.partition_point(|(at_ns, _)| *at_ns <= at.since_ns);
        self.current = begun.saturating_sub(1);
        self.at = at;
    }

    /// The index of the key that a request asks for. `ops` is the client's stream of operations, and `keys` that of keys.
    pub(super) fn key(
        &self,
        spaces: Spaces,
        space: Space,
        (ops, keys): (&Stream, &Stream),
        at: KeyAt,
    ) -> u64 {
        if space != Space::Plain {
            return spaces.index(space, self.mix().choose((ops, keys), at));
        }
        self.hot_key(ops, at).unwrap_or_else(|| self.key_of(self.mix().choose((ops, keys), at)))
    }

    /// The index of the hot key that a request asks for; `None` where it asks for another one. `ops` is the client's stream of
    /// operations.
    pub(super) fn hot_key(&self, ops: &Stream, at: KeyAt) -> Option<u64> {
        if self.crowds.is_empty() {
            return None;
        }
        Some(match self.crowds.key(ops, (at.index, at.place), self.at.since_ns)? {
            CrowdKey::New(key) => key,
            CrowdKey::Record(record) => self.key_of(record),
        })
    }

    /// The index of the key that a plain record has now.
    pub(super) fn key_of(&self, record: u64) -> u64 {
        self.lives.as_ref().map_or(record, |lives| lives.key(record, self.at))
    }
}
