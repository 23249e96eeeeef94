//! The changes of a cluster that are planned or under way.

use std::collections::{BTreeMap, VecDeque};

use pummel_logic::time::{Nanos, SECOND};

use super::config::ClusterFault;
use crate::store::Store;

/// Length of a migration, and of the time for which a dead node keeps its slots.
pub(super) const HANDOVER_NS: Nanos = SECOND;

/// A slot that moves from one node to another.
#[derive(Debug)]
pub(super) struct Migration {
    pub(super) slot: u16,
    /// The node that owns the slot until the end.
    pub(super) source: usize,
    /// The node that owns the slot afterwards.
    pub(super) target: usize,
    pub(super) begun: Nanos,
    /// The keys that are still at the source. They move evenly over the time of the migration, a single one in its middle. No new
    /// ones come, since the source sends clients with absent keys to the target.
    pub(super) keys: VecDeque<Vec<u8>>,
    /// Number of keys at the beginning.
    pub(super) keys_at_begin: usize,
}

/// Change at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    BeginMigration { slot: u16 },
    EndMigration { slot: u16 },
    Demote { node: usize },
    Kill { node: usize },
    TakeOver { node: usize },
    GoDown,
    ComeUp,
}

/// The changes that faults begin with, in a cluster that starts at `now`.
pub(super) fn agenda(faults: &[ClusterFault], now: Nanos) -> BTreeMap<(Nanos, usize), Change> {
    let mut agenda = BTreeMap::new();
    let mut plan =
        |after_ns: Nanos, change| agenda.insert((now.saturating_add(after_ns), agenda.len()), change);
    for fault in faults {
        match *fault {
            ClusterFault::Migrate { slot, at_ns } => plan(at_ns, Change::BeginMigration { slot }),
            ClusterFault::Demote { node, at_ns } => plan(at_ns, Change::Demote { node }),
            ClusterFault::Kill { node, at_ns } => plan(at_ns, Change::Kill { node }),
            ClusterFault::Down { from_ns, until_ns } => {
                plan(from_ns, Change::GoDown);
                plan(until_ns, Change::ComeUp)
            }
        };
    }
    agenda
}

impl Migration {
    /// Moves the keys whose time has come.
    pub(super) fn move_keys(&mut self, stores: &mut [Store], now: Nanos) {
        let elapsed_ns = now.saturating_sub(self.begun).min(HANDOVER_NS);
        let moved = ((self.keys_at_begin as u64 * elapsed_ns + HANDOVER_NS / 2) / HANDOVER_NS) as usize;
        while self.keys_at_begin - self.keys.len() < moved
            && let Some(key) = self.keys.pop_front()
        {
            move_item(stores, self.source, self.target, &key, now);
        }
    }
}

/// The keys of living items of a store for which `is_meant` holds.
pub(super) fn keys_of(store: &Store, now: Nanos, is_meant: impl Fn(&[u8]) -> bool) -> VecDeque<Vec<u8>> {
    let keys = store.living(now).map(|item| item.key());
    keys.filter(|key| is_meant(key)).map(<[u8]>::to_vec).collect()
}

/// Moves all living items from one store to another for whose keys `is_meant` holds.
pub(super) fn move_all(
    stores: &mut [Store],
    from: usize,
    to: usize,
    now: Nanos,
    is_meant: impl Fn(&[u8]) -> bool,
) {
    for key in keys_of(&stores[from], now, is_meant) {
        move_item(stores, from, to, &key, now);
    }
}

fn move_item(stores: &mut [Store], from: usize, to: usize, key: &[u8], now: Nanos) {
    if let Some(item) = stores[from].take_out(key, now) {
        stores[to].write(key, item.value, item.form, item.expires, now);
    }
}
