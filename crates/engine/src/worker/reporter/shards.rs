//! The requests of each shard of a cluster by the time at which they were due, from which outages are found.

use std::sync::Arc;

use pummel_logic::cluster::shards::ShardOfSlot;
use pummel_logic::connection::session::Answer;
use pummel_logic::protocol::Outcome;
use pummel_logic::time::Nanos;
use pummel_measure::outages::{ShardBuckets, ShardOutcome};

/// The requests of each shard in the measured phases of one worker.
#[derive(Debug)]
pub struct ShardRequests {
    shards: Arc<ShardOfSlot>,
    requests: Vec<ShardBuckets>,
    /// Time at which the first measured phase began, once it has.
    begin: Option<Nanos>,
}

impl ShardRequests {
    /// The requests of shards of which none was asked anything.
    pub fn new(shards: Arc<ShardOfSlot>) -> ShardRequests {
        let requests = shards.owners().iter().map(|_| ShardBuckets::default()).collect();
        ShardRequests { shards, requests, begin: None }
    }

    /// Counts a request that ended, in a measured phase that began at `begin`.
    pub fn note(&mut self, answer: &Answer<'_>, begin: Nanos) {
        let (due, place) = (answer.ticket.due, answer.ticket.place);
        let outcome = match answer.outcome {
            Outcome::Error(fault) => ShardOutcome::Wrong(fault),
            _ => ShardOutcome::Right { latency_ns: answer.arrived.saturating_sub(due) },
        };
        self.add(place, due, begin, outcome);
    }

    /// The number of the shard that a slot belongs to.
    pub fn shard_of(&self, slot: u16) -> u16 {
        self.shards.of(slot) as u16
    }

    /// Counts a request that was due and was never sent.
    pub fn note_unsent(&mut self, place: u16, due: Nanos, begin: Nanos) {
        self.add(place, due, begin, ShardOutcome::Unsent);
    }

    fn add(&mut self, place: u16, due: Nanos, begin: Nanos, outcome: ShardOutcome) {
        let first = *self.begin.get_or_insert(begin);
        let shard = self.shards.of(place);
        self.requests[shard].note(due.saturating_sub(first), outcome);
    }

    /// Takes the requests of all shards.
    pub fn take(&mut self) -> Vec<ShardBuckets> {
        std::mem::take(&mut self.requests)
    }
}
