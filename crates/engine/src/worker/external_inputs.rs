//! Sources of a worker beside the events of its connections: the requests of a trace, and new maps of a cluster.

use std::sync::Arc;

use pummel_logic::protocol::Codec;
use pummel_logic::time::Nanos;
use pummel_logic::unsent::Unsent;

use crate::backend::Backend;
use crate::cluster::published::Published;
use crate::worker::feed::RowFeed;
use crate::worker::load_model::Resident;
use crate::worker::population::Population;
use crate::worker::state::WorkerState;

/// The sources of a worker beside its connections. Each is looked at once in a turn.
#[derive(Debug, Default)]
pub struct ExternalInputs {
    /// The requests of a trace; `None` if no trace is replayed.
    pub feed: Option<RowFeed>,
    /// The map of the cluster; `None` if the servers are no cluster.
    pub cluster: Option<ClusterFollower>,
}

impl ExternalInputs {
    /// The sources in a box; `None` where there are none.
    pub fn boxed(self) -> Option<Box<ExternalInputs>> {
        (self.feed.is_some() || self.cluster.is_some()).then(|| Box::new(self))
    }

    /// Takes what has come.
    pub(in crate::worker) fn look<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        population: &mut Population,
        backend: &mut dyn Backend,
        now: Nanos,
    ) {
        if let Some(feed) = &mut self.feed {
            feed.look(state, now);
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.look(state, population, backend, now);
        }
    }

    /// The time at which the worker has to look again.
    pub fn next_look(&self, now: Nanos) -> Nanos {
        self.feed.as_ref().map_or(pummel_logic::time::NEVER, |feed| feed.next_look(now))
    }

    /// Begins part `part` of a trace.
    pub fn begin_part(&mut self, part: u32) {
        if let Some(feed) = &mut self.feed {
            feed.begin(part);
        }
    }

    /// Ends the part of a trace that is under way.
    pub fn end_part(&mut self) {
        if let Some(feed) = &mut self.feed {
            feed.end();
        }
    }
}

/// One worker's link to the map of a cluster.
#[derive(Debug)]
pub struct ClusterFollower {
    published: Arc<Published>,
    /// Number of maps that were published when the worker took the last one.
    seen: u64,
    /// Slots of connections to nodes that have left, on which something is owed.
    leaving: Vec<u32>,
}

impl ClusterFollower {
    /// The link of a worker that has seen no map.
    pub fn new(published: Arc<Published>) -> ClusterFollower {
        ClusterFollower { published, seen: 0, leaving: Vec::new() }
    }

    /// Passes on the worker's request for a new map, and takes one that was published since.
    fn look<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        population: &mut Population,
        backend: &mut dyn Backend,
        now: Nanos,
    ) {
        let silence = &state.silence;
        if let Some(view) = state.maker.cluster_mut() {
            while let Some(node) = view.take_returned(|node| silence.replied_at(node.into())) {
                self.published.note_down(node, false);
            }
            if let Some(request) = view.take_refresh_request() {
                self.published.request_refresh(request);
            }
        }
        self.leaving.retain(|&slot| !leaves(state, population, backend, (slot as usize, now)));
        let generation = self.published.generation();
        if generation == self.seen {
            return;
        }
        self.seen = generation;
        let topology = self.published.topology();
        if let Some(view) = state.maker.cluster_mut() {
            view.renew(&topology.map, &topology.nodes);
        }
        self.leaving.clear();
        for slot in 0..state.connections.len() {
            let (client, lane) = state.owner(slot);
            let is_member = state.maker.cluster().is_some_and(|view| view.is_member(lane));
            let is_unwanted = state.entries[client].client.note_member(lane, is_member);
            if is_unwanted && !leaves(state, population, backend, (slot, now)) {
                self.leaving.push(slot as u32);
            }
        }
        (0..state.entries.len()).for_each(|client| state.wake(client));
    }
}

/// Closes the connection to a node that has left, unless something is owed on it. Returns whether it is closed.
fn leaves<C: Codec>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    backend: &mut dyn Backend,
    (slot, now): (usize, Nanos),
) -> bool {
    if !state.connections[slot].session.is_idle() {
        return false;
    }
    let (client, lane) = state.owner(slot);
    state.entries[client].client.leave(lane);
    population.close(state, slot, backend, now);
    true
}

/// Counts the requests that were due before the phase was `over` and were never sent, since they wait for a node or for other requests.
pub fn count_held_back<C: Codec>(state: &mut WorkerState<C>, over: Nanos) {
    if !state.has_pending() {
        return;
    }
    for entry in &mut state.entries {
        while let Some((verb, due, place)) = entry.client.take_held_back(over, &mut state.maker) {
            state.reporter.unsent_in_shard(place, due);
            let unsent = Unsent { verb, requests: 1, estimated: 0 };
            state.reporter.unsent_at(entry.client.group(), due, unsent);
        }
    }
}

/// Ends the requests that were sent and wait to be sent again or to go on, since the phase is over.
pub fn end_waiting<C: Codec>(state: &mut WorkerState<C>, now: Nanos) {
    if !state.has_pending() {
        return;
    }
    for number in 0..state.entries.len() {
        while let Some((lane, whole)) = state.entries[number].client.take_waiting(now, &mut state.maker) {
            state.give_up::<Resident<false>>(number, lane, &whole);
        }
    }
}
