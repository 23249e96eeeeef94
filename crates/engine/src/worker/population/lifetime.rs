//! One churning client from its coming to its going, and how its end is accounted for.

use pummel_logic::measure::churn::Failure;
use pummel_logic::time::Nanos;

use crate::worker::messages::Departure;
use crate::worker::state::WorkerState;

/// Verbs that are drawn at most to tell what a client had still to ask when it goes: thousands may go in a second.
pub const DEPARTURE_DRAWS_MAX: u64 = 64;

/// One client from its coming to its going.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// Number of the client, over all workers.
    pub number: u64,
    /// The slot has a client.
    pub is_alive: bool,
    /// When its connection was asked for.
    pub asked_at: Nanos,
    /// Its connection was open.
    pub was_open: bool,
    /// What its connection failed of, if it did.
    pub failure: Option<Failure>,
    /// Addresses that were tried.
    pub tries: u32,
    /// Bytes of a reply that is not whole yet.
    pub pending_bytes: u64,
}

impl Lifetime {
    /// What is known of a slot without a client.
    pub const VACANT: Lifetime = Lifetime {
        number: 0,
        is_alive: false,
        asked_at: 0,
        was_open: false,
        failure: None,
        tries: 0,
        pending_bytes: 0,
    };

    /// Reports the end of the client in `slot`.
    pub fn report_end<C>(&self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        let calls = state.entries[slot].client.calls();
        state.reporter.retired(slot, || Departure {
            client: self.number,
            asked_at: self.asked_at,
            ended_at: now,
            was_open: self.was_open,
            calls,
            failure: self.failure.map(|failure| (failure, None)),
        });
        let Some(churn) = state.reporter.churn() else { return };
        churn.ended += 1;
        if self.was_open {
            churn.life.record(now.saturating_sub(self.asked_at));
        }
        if let Some(failure) = self.failure {
            churn.fail(failure);
            churn.asked -= u64::from(failure.is_before_asking());
        }
    }

    /// Counts what the client in `slot` was to ask and did not: all of it where its connection failed, otherwise what was
    /// due.
    pub fn count_rest<C>(&self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        let client = &mut state.entries[slot].client;
        let (reporter, group) = (&mut state.reporter, client.group());
        let unsent = |unsent| reporter.unsent(group, unsent);
        if self.failure.is_some() {
            return client.tell_rest(&state.maker, DEPARTURE_DRAWS_MAX, unsent);
        }
        if !client.is_told() {
            client.count_unsent(now, &mut state.maker, DEPARTURE_DRAWS_MAX, unsent);
        }
    }
}
