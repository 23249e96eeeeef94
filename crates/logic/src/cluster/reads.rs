//! The node of a shard that a read is sent to.

use super::nodes::NodeNumber;
use crate::plan::ReadFrom;
use crate::protocol::Verb;

/// State of the connection to a node as a read meets it. Nodes with a greater one are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Nothing waits for the connection any more.
    Never,
    /// The connection is not open, and is waited for.
    Later,
    /// The connection is open.
    Now,
}

/// The requests that replicas may answer, and the nodes that are chosen for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadRule {
    /// The nodes of a shard that reads are sent to.
    pub from: ReadFrom,
    /// The commands of the user that are reads by the flags that Redis gives them: bit n stands for command n.
    pub command_reads: u16,
    /// Whether the phase under way reads from masters alone, since it asks what they have.
    pub masters_alone: bool,
}

impl ReadRule {
    /// Whether nodes that own no slot may be asked something.
    #[inline]
    pub fn asks_replicas(&self) -> bool {
        self.from.asks_replicas()
    }

    /// Whether requests of the phase under way may be answered by replicas.
    #[inline]
    pub fn leaves_masters(&self) -> bool {
        self.asks_replicas() && !self.masters_alone
    }

    /// Whether requests of this verb are reads by the flags that Redis gives their commands. GETEX, which changes the expiry, is
    /// none.
    #[inline]
    pub fn is_read(&self, verb: Verb) -> bool {
        matches!(verb, Verb::Get | Verb::Hget)
            || verb.command().is_some_and(|place| self.command_reads >> place & 1 != 0)
    }

    /// Whether requests of this verb may be sent to another node than the master.
    #[inline]
    pub fn may_leave_master(&self, verb: Verb) -> bool {
        self.leaves_masters() && self.is_read(verb)
    }

    /// The node that a read is sent to, of a shard with this master and these replicas; `None` where the rule admits none. `draw`
    /// chooses among nodes that are reached alike.
    pub fn node_of(
        &self,
        master: Option<NodeNumber>,
        replicas: &[NodeNumber],
        draw: u64,
        reach: impl Fn(NodeNumber) -> Reach,
    ) -> Option<NodeNumber> {
        let replicas = replicas.iter().copied();
        match self.from {
            ReadFrom::Primary => master,
            ReadFrom::Replica => best_of(replicas, draw, reach),
            ReadFrom::PreferReplica => {
                let replica = best_of(replicas, draw, &reach);
                // The first of two that are alike.
                best_of(replica.into_iter().chain(master), 0, reach)
            }
            ReadFrom::Any => best_of(replicas.chain(master), draw, reach),
        }
    }
}

/// One of the nodes that are reached best.
fn best_of(
    nodes: impl Iterator<Item = NodeNumber> + Clone,
    draw: u64,
    reach: impl Fn(NodeNumber) -> Reach,
) -> Option<NodeNumber> {
    let best = nodes.clone().map(&reach).max()?;
    let is_best = |node: &NodeNumber| reach(*node) == best;
    let count = nodes.clone().filter(is_best).count() as u64;
    nodes.filter(is_best).nth((draw % count) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: Option<NodeNumber> = Some(0);

    /// The nodes that eight draws choose, each once, where these are not open and the last of them is given up.
    fn chosen(from: ReadFrom, replicas: &[NodeNumber], closed: &[NodeNumber]) -> Vec<NodeNumber> {
        let reach = |node: NodeNumber| match closed.iter().position(|other| *other == node) {
            None => Reach::Now,
            Some(place) if place + 1 == closed.len() && place > 0 => Reach::Never,
            Some(_) => Reach::Later,
        };
        let rule = ReadRule { from, ..ReadRule::default() };
        let mut nodes: Vec<NodeNumber> =
            (0..8).filter_map(|draw| rule.node_of(MASTER, replicas, draw, reach)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    #[test]
    fn reads_go_to_the_nodes_that_are_asked_for_and_open() {
        use ReadFrom::{Any, PreferReplica, Primary, Replica};
        let none: &[NodeNumber] = &[];
        for (from, replicas, closed, expected) in [
            (Primary, &[1, 2][..], none, &[0][..]),
            (Primary, &[1, 2], &[0], &[0]),
            (Replica, &[1, 2], none, &[1, 2]),
            (Replica, &[1, 2], &[1], &[2]),
            (Replica, &[1, 2], &[1, 2], &[1]),
            (Replica, &[1], &[1], &[1]),
            (Replica, none, none, none),
            (PreferReplica, &[1, 2], none, &[1, 2]),
            (PreferReplica, &[1, 2], &[2], &[1]),
            (PreferReplica, &[1], &[1], &[0]),
            (PreferReplica, &[1], &[0, 1], &[0]),
            (PreferReplica, &[1], &[1, 0], &[1]),
            (PreferReplica, none, none, &[0]),
            (Any, &[1, 2], none, &[0, 1, 2]),
            (Any, &[1, 2], &[0], &[1, 2]),
            (Any, &[1], &[1], &[0]),
            (Any, none, &[0], &[0]),
        ] {
            assert_eq!(
                chosen(from, replicas, closed),
                expected,
                "{from:?} of {replicas:?} without {closed:?}"
            );
        }
        let rule = ReadRule { from: Any, ..ReadRule::default() };
        assert_eq!(rule.node_of(None, &[], 7, |_| Reach::Now), None, "no node of the shard is known");
        assert_eq!(rule.node_of(None, &[5], 7, |_| Reach::Never), Some(5));
    }

    #[test]
    fn neighbouring_draws_choose_neighbouring_nodes_so_that_a_repeated_read_takes_another() {
        let rule = ReadRule { from: ReadFrom::Any, ..ReadRule::default() };
        let node = |draw| rule.node_of(MASTER, &[3, 4], draw, |_| Reach::Now);
        assert_eq!([0, 1, 2, 3].map(node), [Some(3), Some(4), MASTER, Some(3)]);
    }

    #[test]
    fn only_plain_reads_leave_the_master_and_only_where_replicas_are_asked_for() {
        for (from, command_reads, leaving) in [
            (ReadFrom::Primary, 1, &[][..]),
            (ReadFrom::Replica, 0, &[Verb::Get, Verb::Hget]),
            (ReadFrom::Any, 0b101, &[Verb::Get, Verb::Hget, Verb::Command, Verb::Command3]),
        ] {
            let rule = ReadRule { from, command_reads, masters_alone: false };
            let found: Vec<Verb> =
                Verb::ALL.into_iter().filter(|&verb| rule.may_leave_master(verb)).collect();
            assert_eq!(found, leaving);
        }
    }
}
