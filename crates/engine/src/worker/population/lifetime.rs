//! The lifetime of one churning client, and the account of its end.

use pummel_logic::time::Nanos;
use pummel_measure::churn::ConnectionFailure;
use pummel_measure::events::Departure;

use crate::worker::state::WorkerState;

/// Most verbs that are drawn to count the requests that a departing client did not send. The limit bounds the cost
/// where thousands of clients depart in a second.
pub const DEPARTURE_DRAWS_MAX: u64 = 64;

/// The lifetime of the client in one slot.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// Number of the client, over all workers.
    pub number: u64,
    /// Whether the slot has a client.
    pub is_alive: bool,
    /// Time at which the client asked for its connection, or came, where it may have several.
    pub asked_at: Nanos,
    /// Whether a connection of the client was ever open.
    pub was_open: bool,
    /// Why the client's only connection failed, if it did.
    pub failure: Option<ConnectionFailure>,
    /// Addresses of the only server that were tried before this one.
    pub tries: u32,
    /// Number of the client's first request.
    pub first: u64,
}

impl Lifetime {
    /// The lifetime that stands in a slot without a client.
    pub const VACANT: Lifetime = Lifetime {
        number: 0,
        is_alive: false,
        asked_at: 0,
        was_open: false,
        failure: None,
        tries: 0,
        first: 0,
    };

    /// Reports the end of the client in `slot`.
    pub fn report_end<C>(&self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        let (next, end) = state.entries[slot].client.calls();
        let calls = (next.saturating_sub(self.first), end.saturating_sub(self.first));
        state.reporter.retired(slot, || Departure {
            client: self.number,
            asked_at: self.asked_at,
            ended_at: now,
            was_open: self.was_open,
            calls,
            failure: self.failure.map(|failure| (failure, None)),
        });
        state.reporter.client_ended();
        if let Some(churn) = state.reporter.churn() {
            churn.ended += 1;
        }
    }

    /// Counts the requests that the client in `slot` did not send: all of its remaining requests where its connection
    /// failed, otherwise those that were due.
    pub fn count_rest<C>(&self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        let client = &mut state.entries[slot].client;
        let (reporter, group) = (&mut state.reporter, client.group());
        let unsent = |unsent| reporter.unsent(group, unsent);
        if self.failure.is_some() {
            return client.report_rest(&state.maker, DEPARTURE_DRAWS_MAX, unsent);
        }
        if !client.is_sequenced() {
            client.count_unsent(now, &mut state.maker, DEPARTURE_DRAWS_MAX, unsent);
        }
    }
}
