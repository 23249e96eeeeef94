//! The changes of a cluster with time: migrations of slots, nodes that are demoted or die, and times at which it is down.

use pummel_logic::client::route::crc16;
use pummel_logic::time::Nanos;

use super::agenda::{Change, HANDOVER_NS, Migration, keys_of, move_all};
use super::state::{Cluster, Standing};
use crate::store::Store;

impl Cluster {
    /// Makes the changes that are due by `now`.
    pub(crate) fn advance(&mut self, stores: &mut [Store], now: Nanos) {
        while let Some(due) = self.agenda.first_entry()
            && due.key().0 <= now
        {
            let ((at, _), change) = due.remove_entry();
            self.make(change, stores, at);
        }
        for migration in &mut self.migrations {
            migration.move_keys(stores, now);
        }
    }

    fn make(&mut self, change: Change, stores: &mut [Store], at: Nanos) {
        match change {
            Change::BeginMigration { slot } => self.begin_migration(slot, stores, at),
            Change::EndMigration { slot } => {
                self.end_migrations(stores, at, |migration| {
                    migration.slot == slot && migration.begun.saturating_add(HANDOVER_NS) <= at
                });
            }
            Change::Demote { node } => {
                if self.standings[node] == Standing::Serving {
                    self.retire(node, Standing::Demoted, stores, at);
                    self.hand_over("demote", node, stores, at);
                }
            }
            Change::Kill { node } => {
                if !self.is_dead(node) {
                    let is_replica = self.is_replica(node);
                    self.retire(node, Standing::Dead, stores, at);
                    self.died.push(node);
                    self.made.push(("kill", format!("node={}", node + 1)));
                    if !is_replica {
                        self.plan(at.saturating_add(HANDOVER_NS), Change::TakeOver { node });
                    }
                }
            }
            Change::TakeOver { node } => self.hand_over("take-over", node, stores, at),
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

    fn begin_migration(&mut self, slot: u16, stores: &mut [Store], at: Nanos) {
        let source = self.owners[usize::from(slot)];
        let is_under_way = self.migrations.iter().any(|migration| migration.slot == slot);
        let Some(target) = self.next_serving(source).filter(|_| !is_under_way && !self.is_dead(source))
        else {
            return;
        };
        let keys = keys_of(&stores[source], at, |key| crc16::slot(key) == slot);
        let keys_at_begin = keys.len();
        self.made.push(("migrate", format!("slot={slot} from={} to={} begins", source + 1, target + 1)));
        self.migrations.push(Migration { slot, source, target, begun: at, keys, keys_at_begin });
        self.plan(at.saturating_add(HANDOVER_NS), Change::EndMigration { slot });
    }

    /// Ends these migrations. The target gets the slot, unless it serves no slots any more.
    fn end_migrations(&mut self, stores: &mut [Store], at: Nanos, ends: impl Fn(&Migration) -> bool) {
        let ended: Vec<Migration> = self.migrations.extract_if(.., |migration| ends(migration)).collect();
        for Migration { slot, source, target, .. } in ended {
            let (winner, loser) = match self.standings[target] {
                Standing::Serving => (target, source),
                Standing::Following(_) | Standing::Demoted | Standing::Dead => (source, target),
            };
            move_all(stores, loser, winner, at, |key| crc16::slot(key) == slot);
            self.owners[usize::from(slot)] = winner;
            self.made.push(("migrate", format!("slot={slot} owner={} ends", winner + 1)));
        }
    }

    /// Makes a node serve no slots any more. Migrations that it takes part in end first.
    fn retire(&mut self, node: usize, standing: Standing, stores: &mut [Store], at: Nanos) {
        self.standings[node] = standing;
        self.end_migrations(stores, at, |migration| migration.source == node || migration.target == node);
    }

    /// Gives the slots and the items of a node to its first replica, or else to the next node that serves slots. Where there is
    /// neither, it keeps them.
    fn hand_over(&mut self, word: &'static str, node: usize, stores: &mut [Store], at: Nanos) {
        let replica = self.replicas_of(node).next();
        let Some(target) = replica.or_else(|| self.next_serving(node)) else { return };
        if replica.is_some() {
            self.promote(target, node);
        }
        self.owners.iter_mut().filter(|owner| **owner == node).for_each(|owner| *owner = target);
        move_all(stores, node, target, at, |_| true);
        self.made.push((word, format!("from={} to={}", node + 1, target + 1)));
    }

    /// Lets a replica take the place of its master, and the others follow it. A master that is alive does so too.
    fn promote(&mut self, replica: usize, master: usize) {
        self.standings[replica] = Standing::Serving;
        for (node, standing) in self.standings.iter_mut().enumerate() {
            let follows = *standing == Standing::Following(master);
            if follows || node == master && *standing == Standing::Demoted {
                *standing = Standing::Following(replica);
            }
        }
    }

    /// The next node after this one that serves slots.
    fn next_serving(&self, node: usize) -> Option<usize> {
        let after = (1..self.nodes()).map(|step| (node + step) % self.nodes());
        after.into_iter().find(|&next| self.standings[next] == Standing::Serving)
    }
}
