//! The shards of a cluster: the slots that each node owned at the start of a run, whichever nodes serve them later.

use super::map::SlotMap;
use super::nodes::{NodeNumber, UNOWNED};
use crate::client::route::crc16::SLOTS;

/// The shard of each slot: the slots that one node owned at the start, and those that none owned.
#[derive(Debug, PartialEq, Eq)]
pub struct ShardOfSlot {
    /// Number of the shard, by slot.
    of: Box<[u16; SLOTS]>,
    /// The node that owned the slots of each shard, and their number.
    owners: Vec<(NodeNumber, u32)>,
}

impl ShardOfSlot {
    /// The shards of a map.
    pub fn new(map: &SlotMap) -> ShardOfSlot {
        let mut owners: Vec<(NodeNumber, u32)> =
            map.masters().map(|node| (node, map.slots_of(node))).collect();
        if map.unowned_slots() > 0 {
            owners.push((UNOWNED, map.unowned_slots()));
        }
        let shard_of = |slot: usize| {
            let owner = map.owner_of(slot as u16);
            owners.iter().position(|(node, _)| *node == owner).unwrap_or(0) as u16
        };
        let mut of = Box::new([0; SLOTS]);
        (0..SLOTS).for_each(|slot| of[slot] = shard_of(slot));
        ShardOfSlot { of, owners }
    }

    /// The number of a slot's shard.
    #[inline]
    pub fn of(&self, slot: u16) -> usize {
        usize::from(self.of[usize::from(slot) % SLOTS])
    }

    /// The node that owned the slots of each shard, and their number.
    pub fn owners(&self) -> &[(NodeNumber, u32)] {
        &self.owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_without_an_owner_are_a_shard_of_their_own() {
        let mut map = SlotMap::unowned();
        (0..100).for_each(|slot| map.set_owner(slot, 4));
        (100..16_000).for_each(|slot| map.set_owner(slot, 2));
        let shards = ShardOfSlot::new(&map);
        assert_eq!(shards.owners(), [(2, 15_900), (4, 100), (UNOWNED, 384)]);
        assert_eq!([0, 99, 100, 15_999, 16_000, 16_383].map(|slot| shards.of(slot)), [1, 1, 0, 0, 2, 2]);
    }
}
