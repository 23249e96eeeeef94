//! The dealing of a phase's requests: the record that a client's request is about, and the lane that it takes.

use crate::client::route::{Lane, Place, Rounds, Router};
use crate::cluster::view::ClusterView;
use crate::plan::share::rank_among_mates;

/// The lanes of the clients, and the clients that load.
#[derive(Debug)]
pub(crate) struct Routing {
    pub(super) router: Router,
    /// Clients in the group, over all threads and agents.
    pub(super) clients: u64,
    /// Most clients of one server that load.
    pub(super) loaders: u64,
    /// The cluster, where the servers are the nodes of one.
    pub(super) cluster: Option<Box<ClusterView>>,
}

impl Routing {
    /// Whether the key of a request decides on its lane.
    #[inline]
    pub(crate) fn owns_keys(&self) -> bool {
        self.router.owns_keys()
    }

    /// The place of a request with this key, which is its client's turn `turn`.
    #[inline]
    pub(super) fn place_of(&self, turn: u64, key: &[u8]) -> Place {
        self.router.place_of(turn, key)
    }

    /// The lane of a read of this key, which is its client's turn `turn`, and the slot of the key in a cluster (0 elsewhere); `None` where
    /// no node is known, or replicas are asked too.
    #[inline]
    pub(super) fn lane_and_slot(&self, turn: u64, key: &[u8]) -> Option<(Lane, Place)> {
        let place = self.router.place_of(turn, key);
        match &self.cluster {
            None => Some((place, 0)),
            Some(view) if view.reads.leaves_masters() => None,
            Some(view) => Some((view.owner_of(place)?, place)),
        }
    }

    /// The number of request `index` of client `number` among the requests of all clients that load, where any client may
    /// store any record.
    #[inline]
    pub(crate) fn load_number(&self, index: u64, number: u64) -> u64 {
        index * self.clients.min(self.loaders) + number
    }

    /// The lanes over which client `number` makes the request of an event about the record at this place of the event,
    /// which has this key. All clients together make one such request for each server that has the record.
    pub(super) fn event_lanes(
        &self,
        place: u64,
        number: u64,
        key: &[u8],
    ) -> impl Iterator<Item = Lane> + use<> {
        let servers = self.router.servers() as u64;
        let (lanes, own) = match self.router.rounds() {
            Rounds::PerServer => {
                let (rank, mates) = rank_among_mates(number, self.clients, servers, self.router.block());
                (0..Lane::from(place % mates == rank), None)
            }
            Rounds::Turns => {
                let is_own = |lane: u64| (place * servers + lane) % self.clients == number;
                (0..servers as Lane, Some((0..servers).map(is_own).collect::<Vec<bool>>()))
            }
            Rounds::Once => {
                // In a cluster, the lane follows from the key when the request is asked.
                let home = self.router.place_of(0, key);
                let lane = if self.router.is_cluster() { 0 } else { home };
                (lane..lane + Lane::from(place % self.clients == number), None)
            }
        };
        lanes.filter(move |&lane| own.as_ref().is_none_or(|own| own[usize::from(lane)]))
    }

    /// The place of request `index` of client `number` in a phase that goes through the records one by one.
    #[inline]
    pub(super) fn place(&self, index: u64, number: u64) -> u64 {
        let servers = self.router.servers() as u64;
        match self.router.rounds() {
            // The clients of one server share its records out among them.
            Rounds::PerServer => {
                let (rank, mates) = rank_among_mates(number, self.clients, servers, self.router.block());
                index * mates.min(self.loaders) + rank
            }
            // All clients together store a record on one server after the other.
            Rounds::Turns => self.load_number(index, number) / servers,
            Rounds::Once => self.load_number(index, number),
        }
    }
}
