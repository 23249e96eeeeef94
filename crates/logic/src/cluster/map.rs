//! The owner of each hash slot of a cluster, and the replicas of each owner.

use super::nodes::{NodeNumber, NodeTable, UNOWNED};
use super::slots_reply::SlotsReply;
use crate::client::route::crc16::SLOTS;

/// The nodes that serve each slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMap {
    owner: Box<[NodeNumber; SLOTS]>,
    /// The replicas of each master in ascending order, by the number of the master.
    replicas: Vec<Vec<NodeNumber>>,
}

impl SlotMap {
    /// A map in which no node serves any slot.
    pub fn unowned() -> SlotMap {
        SlotMap { owner: Box::new([UNOWNED; SLOTS]), replicas: Vec::new() }
    }

    /// The map that a node has described. Nodes that `nodes` lacks are added to it; those that it has no room for are left out.
    /// A slot in several ranges belongs to the last of them.
    pub fn of(reply: &SlotsReply, nodes: &mut NodeTable) -> SlotMap {
        let mut map = SlotMap::unowned();
        for range in &reply.ranges {
            let master = range.master.as_ref().and_then(|master| nodes.number_of(&master.name));
            let slots = usize::from(range.first)..=usize::from(range.last);
            map.owner[slots].fill(master.unwrap_or(UNOWNED));
            let Some(master) = master else { continue };
            let replicas = range.replicas.iter().filter_map(|replica| nodes.number_of(&replica.name));
            replicas.for_each(|replica| map.add_replica(master, replica));
        }
        map
    }

    /// Adds a replica to those of a master.
    pub fn add_replica(&mut self, master: NodeNumber, replica: NodeNumber) {
        let master = usize::from(master);
        if master >= self.replicas.len() {
            self.replicas.resize(master + 1, Vec::new());
        }
        let replicas = &mut self.replicas[master];
        if let Err(place) = replicas.binary_search(&replica) {
            replicas.insert(place, replica);
        }
    }

    /// The node that serves a slot, or [`UNOWNED`].
    #[inline]
    pub fn owner_of(&self, slot: u16) -> NodeNumber {
        self.owner[usize::from(slot)]
    }

    /// Gives a slot to another node.
    pub fn set_owner(&mut self, slot: u16, node: NodeNumber) {
        self.owner[usize::from(slot)] = node;
    }

    /// The replicas of a master in ascending order.
    pub fn replicas_of(&self, node: NodeNumber) -> &[NodeNumber] {
        self.replicas.get(usize::from(node)).map_or(&[], Vec::as_slice)
    }

    /// Whether a node is a replica and no master.
    pub fn is_replica(&self, node: NodeNumber) -> bool {
        self.replicas.iter().any(|replicas| replicas.contains(&node)) && self.slots_of(node) == 0
    }

    /// Number of slots that a node serves.
    pub fn slots_of(&self, node: NodeNumber) -> u32 {
        self.owner.iter().filter(|&&owner| owner == node).count() as u32
    }

    /// The nodes that serve a slot, in ascending order.
    pub fn masters(&self) -> impl Iterator<Item = NodeNumber> {
        self.serving(false)
    }

    /// The masters and all replicas, in ascending order.
    pub fn members(&self) -> impl Iterator<Item = NodeNumber> {
        self.serving(true)
    }

    /// The nodes that clients have connections to, in ascending order: the masters, and all replicas too where they are asked
    /// something.
    pub fn serving(&self, asks_replicas: bool) -> impl Iterator<Item = NodeNumber> {
        let replicas = self.replicas.iter().flatten().filter(|_| asks_replicas);
        ascending(self.owner.iter().chain(replicas).copied().collect())
    }

    /// Number of slots that no node serves.
    pub fn unowned_slots(&self) -> u32 {
        self.slots_of(UNOWNED)
    }
}

/// Each node among these once, in ascending order.
fn ascending(mut nodes: Vec<NodeNumber>) -> impl Iterator<Item = NodeNumber> {
    nodes.sort_unstable();
    nodes.dedup();
    nodes.into_iter().filter(|&node| node != UNOWNED)
}

#[cfg(test)]
mod tests {
    use super::super::nodes::NodeName;
    use super::super::slots_reply::{NodeSeen, SlotRange};
    use super::*;

    fn seen(port: u16) -> NodeSeen {
        NodeSeen { name: NodeName { host: "a".to_owned(), port }, id: format!("id{port}") }
    }

    /// A range of slots of a master (port 0: one without name) with replicas.
    fn range(first: u16, last: u16, master: u16, replicas: &[u16]) -> SlotRange {
        let replicas = replicas.iter().map(|&port| seen(port)).collect();
        SlotRange { first, last, master: (master != 0).then(|| seen(master)), replicas }
    }

    fn reply(ranges: Vec<SlotRange>) -> SlotsReply {
        SlotsReply { ranges, unusable: 0 }
    }

    fn three_masters() -> SlotsReply {
        reply(vec![
            range(0, 5460, 1, &[5]),
            range(5461, 10922, 2, &[]),
            range(10923, 16382, 3, &[6, 4]),
            range(16383, 16383, 1, &[5]),
        ])
    }

    #[test]
    fn slots_belong_to_the_masters_of_their_ranges() {
        let mut nodes = NodeTable::new(100);
        let map = SlotMap::of(&three_masters(), &mut nodes);
        let port = |slot| nodes.name(map.owner_of(slot)).port;
        assert_eq!([0, 5460, 5461, 10922, 10923, 16382, 16383].map(port), [1, 1, 2, 2, 3, 3, 1]);
        let of_port = |port| nodes.find(&seen(port).name).unwrap();
        assert_eq!([1, 2, 3, 5].map(|port| map.slots_of(of_port(port))), [5462, 5462, 5460, 0]);
        assert_eq!(map.unowned_slots(), 0);
        assert_eq!(map.replicas_of(of_port(1)), [of_port(5)], "named in two ranges, listed once");
        assert!(map.replicas_of(of_port(2)).is_empty());
        assert_eq!(map.replicas_of(of_port(3)), [of_port(6), of_port(4)]);
        assert!(map.replicas_of(of_port(6)).is_empty());
        assert_eq!([1, 2, 4, 5].map(|port| map.is_replica(of_port(port))), [false, false, true, true]);
        assert_eq!(map.masters().collect::<Vec<_>>(), [1, 2, 3].map(of_port));
        assert_eq!(map.members().collect::<Vec<_>>(), (0..6).collect::<Vec<NodeNumber>>());
        assert_eq!([false, true].map(|asks_replicas| map.serving(asks_replicas).count()), [3, 6]);
    }

    #[test]
    fn a_map_is_equal_however_its_ranges_are_cut_and_ordered() {
        let mut nodes = NodeTable::new(100);
        let whole = SlotMap::of(&reply(vec![range(0, 99, 1, &[3, 4]), range(100, 199, 2, &[])]), &mut nodes);
        let parts = [range(100, 199, 2, &[]), range(50, 99, 1, &[4]), range(0, 49, 1, &[4, 3])];
        assert_eq!(SlotMap::of(&reply(parts.to_vec()), &mut nodes), whole);
        assert_ne!(SlotMap::of(&reply(parts[..2].to_vec()), &mut nodes), whole);
    }

    #[test]
    fn the_later_of_two_ranges_has_the_slots_of_both() {
        let mut nodes = NodeTable::new(100);
        let ranges = vec![range(0, 100, 1, &[]), range(50, 60, 2, &[]), range(60, 70, 0, &[3])];
        let map = SlotMap::of(&reply(ranges), &mut nodes);
        assert_eq!(
            [49, 50, 59, 60, 70, 71, 101].map(|slot| map.owner_of(slot)),
            [0, 1, 1, UNOWNED, UNOWNED, 0, UNOWNED]
        );
        assert_eq!(map.unowned_slots(), 16_384 - 101 + 11);
        assert_eq!(nodes.len(), 2, "replicas of a master without name are not needed");
    }

    #[test]
    fn nodes_without_room_in_the_table_are_left_out() {
        let mut nodes = NodeTable::new(2);
        let map = SlotMap::of(&reply(vec![range(0, 0, 1, &[2, 3]), range(1, 1, 4, &[1])]), &mut nodes);
        assert_eq!([0, 1].map(|slot| map.owner_of(slot)), [0, UNOWNED]);
        assert_eq!(map.replicas_of(0), [1]);
        assert_eq!(map.members().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_slot_moves_alone() {
        let mut map = SlotMap::unowned();
        assert_eq!((map.unowned_slots(), map.masters().count(), map.members().count()), (16_384, 0, 0));
        map.set_owner(7, 9);
        assert_eq!((map.owner_of(7), map.slots_of(9), map.unowned_slots()), (9, 1, 16_383));
        assert_eq!(map.masters().collect::<Vec<_>>(), [9]);
        assert_ne!(map, SlotMap::unowned());
    }
}
