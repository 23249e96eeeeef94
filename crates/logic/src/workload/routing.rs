//! How the requests of a phase are dealt: which record a client's request is about, and which lane it takes.

use crate::client::route::{Lane, Rounds, Router};
use crate::plan::share::rank_among_mates;

/// The lanes of the clients, and the clients that load.
#[derive(Debug)]
pub(crate) struct Routing {
    pub(super) router: Router,
    /// Clients in the group, over all threads and agents.
    pub(super) clients: u64,
    /// Most clients of one server that load.
    pub(super) loaders: u64,
}

impl Routing {
    /// One lane for each of `clients`, all of which load.
    pub(super) fn new(clients: u64) -> Routing {
        Routing { router: Router::single(), clients, loaders: u64::MAX }
    }

    /// Whether the key of a request decides on its lane.
    #[inline]
    pub(crate) fn owns_keys(&self) -> bool {
        self.router.owns_keys()
    }

    /// The lane of a request with this key, which is its client's turn `turn`.
    #[inline]
    pub(super) fn lane_of(&self, turn: u64, key: &[u8]) -> Lane {
        self.router.lane_of(turn, key)
    }

    /// The number of request `index` of client `number` among the requests of all clients that load, where any client may
    /// store any record.
    #[inline]
    pub(crate) fn load_number(&self, index: u64, number: u64) -> u64 {
        index * self.clients.min(self.loaders) + number
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
