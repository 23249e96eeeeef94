//! Sources of a worker beside the events of its connections: the requests of a trace, and new maps of a cluster.

use std::sync::Arc;

use pummel_logic::client::Lane;
use pummel_logic::protocol::Codec;
use pummel_logic::time::Nanos;

use crate::backend::Backend;
use crate::cluster::published::Published;
use crate::worker::feed::RowFeed;
use crate::worker::load_model::Resident;
use crate::worker::replies::Replies;
use crate::worker::state::WorkerState;

/// The sources of a worker beside its connections. Each is looked at once in a turn.
#[derive(Debug, Default)]
pub struct Outside {
    /// The requests of a trace; `None` if no trace is replayed.
    pub feed: Option<RowFeed>,
    /// The map of the cluster; `None` if the servers are no cluster.
    pub cluster: Option<ClusterFollower>,
}

impl Outside {
    /// The sources in a box; `None` where there are none.
    pub fn boxed(self) -> Option<Box<Outside>> {
        (self.feed.is_some() || self.cluster.is_some()).then(|| Box::new(self))
    }

    /// Takes what has come.
    pub fn look<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend, now: Nanos) {
        if let Some(feed) = &mut self.feed {
            feed.look(state, now);
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.look(state, backend);
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
}

impl ClusterFollower {
    /// The link of a worker that has seen no map.
    pub fn new(published: Arc<Published>) -> ClusterFollower {
        ClusterFollower { published, seen: 0 }
    }

    /// Passes on the worker's wish for a new map, and takes one that was published since.
    fn look<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend) {
        let silence = &state.silence;
        if let Some(view) = state.maker.cluster_mut() {
            while let Some(node) = view.take_returned(|node| silence.replied_at(node.into())) {
                self.published.note_down(node, false);
            }
            if let Some(wish) = view.take_wish() {
                self.published.want(wish);
            }
        }
        let generation = self.published.generation();
        if generation == self.seen {
            return;
        }
        self.seen = generation;
        let topology = self.published.topology();
        if let Some(view) = state.maker.cluster_mut() {
            view.renew(&topology.map, &topology.nodes);
        }
        for client in 0..state.entries.len() {
            for slot in state.lanes.slots_of(client) {
                let (client, lane) = state.owner(slot);
                note_member(state, backend, (client, lane, slot));
            }
            state.wake(client);
        }
    }
}

/// Opens the lane of a node that has come, and closes that of a node that has left once nothing is owed on it.
fn note_member<C: Codec>(
    state: &mut WorkerState<C>,
    backend: &mut dyn Backend,
    (client, lane, slot): (usize, Lane, usize),
) {
    let is_member = state.maker.cluster().is_some_and(|view| view.is_master(lane));
    let entry = &mut state.entries[client];
    if entry.client.note_member(lane, is_member) && state.connections[slot].session.is_idle() {
        entry.client.leave(lane);
        state.reset(slot, backend);
    }
}

/// Ends the requests of a cluster's clients that were sent and wait to be sent again, since the phase is over.
pub fn end_waiting<C: Codec>(state: &mut WorkerState<C>, now: Nanos) {
    if state.maker.cluster().is_none() {
        return;
    }
    for number in 0..state.entries.len() {
        let slot = state.lanes.slot_of(number, 0);
        while let Some(whole) = state.entries[number].client.take_waiting(now) {
            let client = &mut state.entries[number].client;
            let mut replies =
                Replies::<Resident<false>>::new(slot, 0, client, &mut state.maker, &mut state.reporter);
            replies.finish_resent(&whole.answer(), whole.message());
        }
    }
    state.reporter.note_redirects(&mut state.maker);
}
