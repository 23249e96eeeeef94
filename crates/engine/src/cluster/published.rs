//! The map of a cluster as all workers of a process share it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pummel_logic::cluster::map::SlotMap;
use pummel_logic::cluster::nodes::{NodeNumber, NodeTable};
use pummel_logic::cluster::view::RefreshRequest;

use pummel_logic::cluster::shards::ShardOfSlot;

/// The map and the nodes that were found last.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The owner of each slot.
    pub map: Arc<SlotMap>,
    /// The nodes; those of the plan come first, and the servers of the run have the same numbers.
    pub nodes: Arc<NodeTable>,
}

/// The published map, and the requests for a new one.
#[derive(Debug)]
pub struct Published {
    /// Number of maps that were published.
    generation: AtomicU64,
    topology: Mutex<Topology>,
    requests: Mutex<RefreshRequests>,
    /// Flag of each node: it failed to take a connection, or lost one, and has answered nothing since.
    down: Box<[AtomicBool]>,
    first: Topology,
    /// The shards of the first map.
    shards: Arc<ShardOfSlot>,
    requested: Condvar,
}

/// The requests for a new map that were not taken yet.
#[derive(Debug, Default)]
struct RefreshRequests {
    request: Option<RefreshRequest>,
    is_over: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Published {
    /// The first map of a cluster that has `nodes_max` nodes at most.
    pub fn new(topology: Topology, nodes_max: usize) -> Published {
        Published {
            shards: Arc::new(ShardOfSlot::new(&topology.map)),
            down: (0..nodes_max).map(|_| AtomicBool::new(false)).collect(),
            generation: AtomicU64::new(1),
            first: topology.clone(),
            topology: Mutex::new(topology),
            requests: Mutex::default(),
            requested: Condvar::new(),
        }
    }

    /// The first map.
    pub fn first(&self) -> &Topology {
        &self.first
    }

    /// The shards of the first map.
    pub fn shards(&self) -> &Arc<ShardOfSlot> {
        &self.shards
    }

    /// Number of maps that were published.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The newest map.
    pub fn topology(&self) -> Topology {
        locked(&self.topology).clone()
    }

    /// Publishes a new map.
    pub fn publish(&self, topology: Topology) {
        *locked(&self.topology) = topology;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Asks for a new map, of another node than the one blamed.
    pub fn request_refresh(&self, request: RefreshRequest) {
        if let Some(node) = request {
            self.note_down(node, true);
        }
        let mut requests = locked(&self.requests);
        requests.request = Some(request.or(requests.request.flatten()));
        self.requested.notify_one();
    }

    /// Notes whether a node is down.
    pub fn note_down(&self, node: NodeNumber, is_down: bool) {
        if let Some(down) = self.down.get(usize::from(node)) {
            down.store(is_down, Ordering::Relaxed);
        }
    }

    /// A node that owns slots and is down; `None` where all are well.
    pub fn owner_that_is_down(&self, map: &SlotMap) -> Option<NodeNumber> {
        let is_down = |node: NodeNumber| {
            self.down.get(usize::from(node)).is_some_and(|down| down.load(Ordering::Relaxed))
        };
        if !self.down.iter().any(|down| down.load(Ordering::Relaxed)) {
            return None;
        }
        map.masters().find(|&node| is_down(node))
    }

    /// Ends the wait for requests for good.
    pub fn end(&self) {
        locked(&self.requests).is_over = true;
        self.requested.notify_one();
    }

    /// Whether no request is answered any more.
    pub fn is_over(&self) -> bool {
        locked(&self.requests).is_over
    }

    /// Waits for a request for so long at most, and takes it.
    pub fn await_request(&self, longest: Duration) -> Option<RefreshRequest> {
        let requests = locked(&self.requests);
        let is_idle = |requests: &mut RefreshRequests| requests.request.is_none() && !requests.is_over;
        let waited = self.requested.wait_timeout_while(requests, longest, is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.request.take()
    }
}
