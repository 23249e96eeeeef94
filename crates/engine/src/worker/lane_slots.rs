//! The relation between the lanes of clients and the slots of connections in a worker.

use pummel_logic::client::Lane;

/// The slots of the connections. The connections of a client have neighbouring slots, in the order of its lanes.
#[derive(Clone, Copy, Debug)]
pub struct LaneSlots {
    /// Number of connections of each client.
    lanes: usize,
}

impl LaneSlots {
    /// The slots of clients with this many lanes each.
    pub fn new(lanes: usize) -> LaneSlots {
        LaneSlots { lanes }
    }

    /// Whether some lanes of a client may have no connection, since there are several.
    pub fn may_be_absent(self) -> bool {
        self.lanes > 1
    }

    /// Number of connections of each client.
    pub fn count(self) -> usize {
        self.lanes
    }

    /// Whether each client has one lane, so that the number of a client is the slot of its connection.
    #[inline(always)]
    pub fn are_single(self) -> bool {
        self.lanes == 1
    }

    /// The slot of a client's connection.
    #[inline(always)]
    pub fn slot_of(self, client: usize, lane: Lane) -> usize {
        client * self.lanes + usize::from(lane)
    }

    /// The slots of all connections of a client.
    pub fn slots_of(self, client: usize) -> std::ops::Range<usize> {
        client * self.lanes..(client + 1) * self.lanes
    }

    /// The client of the connection in `slot`, and the number of the lane that the connection is.
    pub fn owner_of(self, slot: usize) -> (usize, Lane) {
        (slot / self.lanes, (slot % self.lanes) as Lane)
    }
}
