//! The changes of a cluster with time: migrations of slots, nodes that are demoted or die, and times at which it is down.

use std::collections::{BTreeMap, VecDeque};

use pummel_logic::client::route::crc16;
use pummel_logic::time::{Nanos, SECOND};

use super::{Cluster, ClusterFault, Standing};
use crate::context::Node;

/// How long a migration goes on, and a dead node keeps its slots.
const HANDOVER_NS: Nanos = SECOND;

/// A slot that moves from one node to another.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(super) slot: u16,
    /// The node that owns the slot until the end.
    pub(super) source: usize,
    /// The node that owns the slot afterwards.
    pub(super) target: usize,
    begun: Nanos,
    /// The keys that are still at the source. They move evenly over the time of the migration, a single one in its middle. No new
    /// ones come, since the source sends clients with absent keys to the target.
    keys: VecDeque<Vec<u8>>,
    /// Number of keys at the beginning.
    keys_at_begin: usize,
}

/// What changes at a time.
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

impl Cluster {
    /// Makes the changes that are due by `now`.
    pub(crate) fn advance(&mut self, nodes: &mut [Node], now: Nanos) {
        while let Some(due) = self.agenda.first_entry()
            && due.key().0 <= now
        {
            let ((at, _), change) = due.remove_entry();
            self.make(change, nodes, at);
        }
        for migration in &mut self.migrations {
            migration.move_keys(nodes, now);
        }
    }

    fn make(&mut self, change: Change, nodes: &mut [Node], at: Nanos) {
        match change {
            Change::BeginMigration { slot } => self.begin_migration(slot, nodes, at),
            Change::EndMigration { slot } => {
                self.end_migrations(nodes, at, |migration| {
                    migration.slot == slot && migration.begun.saturating_add(HANDOVER_NS) <= at
                });
            }
            Change::Demote { node } => {
                if self.standings[node] == Standing::Serving {
                    self.retire(node, Standing::Demoted, nodes, at);
                    self.hand_over("demote", node, nodes, at);
                }
            }
            Change::Kill { node } => {
                if !self.is_dead(node) {
                    self.retire(node, Standing::Dead, nodes, at);
                    self.died.push(node);
                    self.made.push(("kill", format!("node={}", node + 1)));
                    self.plan(at.saturating_add(HANDOVER_NS), Change::TakeOver { node });
                }
            }
            Change::TakeOver { node } => self.hand_over("take-over", node, nodes, at),
            Change::GoDown => {
                self.downs += 1;
                self.made.push(("clusterdown", "is=down".to_owned()));
            }
            Change::ComeUp => {
                self.downs -= 1;
                self.made.push(("clusterdown", "is=up".to_owned()));
            }
        }
    }

    fn plan(&mut self, at: Nanos, change: Change) {
        self.agenda.insert((at, self.planned), change);
        self.planned += 1;
    }

    fn begin_migration(&mut self, slot: u16, nodes: &mut [Node], at: Nanos) {
        let source = self.owners[usize::from(slot)];
        let is_under_way = self.migrations.iter().any(|migration| migration.slot == slot);
        let Some(target) = self.next_serving(source).filter(|_| !is_under_way && !self.is_dead(source))
        else {
            return;
        };
        let keys = keys_of(&nodes[source], at, |key| crc16::slot(key) == slot);
        let keys_at_begin = keys.len();
        self.made.push(("migrate", format!("slot={slot} from={} to={} begins", source + 1, target + 1)));
        self.migrations.push(Migration { slot, source, target, begun: at, keys, keys_at_begin });
        self.plan(at.saturating_add(HANDOVER_NS), Change::EndMigration { slot });
    }

    /// Ends these migrations. The target gets the slot, unless it serves no slots any more.
    fn end_migrations(&mut self, nodes: &mut [Node], at: Nanos, ends: impl Fn(&Migration) -> bool) {
        let ended: Vec<Migration> = self.migrations.extract_if(.., |migration| ends(migration)).collect();
        for Migration { slot, source, target, .. } in ended {
            let (winner, loser) = match self.standings[target] {
                Standing::Serving => (target, source),
                Standing::Demoted | Standing::Dead => (source, target),
            };
            move_all(nodes, loser, winner, at, |key| crc16::slot(key) == slot);
            self.owners[usize::from(slot)] = winner;
            self.made.push(("migrate", format!("slot={slot} owner={} ends", winner + 1)));
        }
    }

    /// Makes a node serve no slots any more. Migrations that it takes part in end first.
    fn retire(&mut self, node: usize, standing: Standing, nodes: &mut [Node], at: Nanos) {
        self.standings[node] = standing;
        self.end_migrations(nodes, at, |migration| migration.source == node || migration.target == node);
    }

    /// Gives the slots and the items of a node to the next one that serves slots. Where none does, it keeps them.
    fn hand_over(&mut self, word: &'static str, node: usize, nodes: &mut [Node], at: Nanos) {
        let Some(target) = self.next_serving(node) else { return };
        self.owners.iter_mut().filter(|owner| **owner == node).for_each(|owner| *owner = target);
        move_all(nodes, node, target, at, |_| true);
        self.made.push((word, format!("from={} to={}", node + 1, target + 1)));
    }

    /// The next node after this one that serves slots.
    fn next_serving(&self, node: usize) -> Option<usize> {
        let after = (1..self.nodes()).map(|step| (node + step) % self.nodes());
        after.into_iter().find(|&next| self.standings[next] == Standing::Serving)
    }
}

impl Migration {
    /// Moves the keys whose time has come.
    fn move_keys(&mut self, nodes: &mut [Node], now: Nanos) {
        let elapsed_ns = now.saturating_sub(self.begun).min(HANDOVER_NS);
        let moved = ((self.keys_at_begin as u64 * elapsed_ns + HANDOVER_NS / 2) / HANDOVER_NS) as usize;
        while self.keys_at_begin - self.keys.len() < moved
            && let Some(key) = self.keys.pop_front()
        {
            move_item(nodes, self.source, self.target, &key, now);
        }
    }
}

/// The keys of living items at a node for which `is_meant` holds.
fn keys_of(node: &Node, now: Nanos, is_meant: impl Fn(&[u8]) -> bool) -> VecDeque<Vec<u8>> {
    let keys = node.store.living(now).map(|item| item.key());
    keys.filter(|key| is_meant(key)).map(<[u8]>::to_vec).collect()
}

fn move_all(nodes: &mut [Node], from: usize, to: usize, now: Nanos, is_meant: impl Fn(&[u8]) -> bool) {
    for key in keys_of(&nodes[from], now, is_meant) {
        move_item(nodes, from, to, &key, now);
    }
}

fn move_item(nodes: &mut [Node], from: usize, to: usize, key: &[u8], now: Nanos) {
    if let Some(item) = nodes[from].store.take_out(key, now) {
        nodes[to].store.write(key, item.value, item.form, item.expires, now);
    }
}
