//! The timeouts of connections. A connection whose deadline has come in the timing wheel is checked; it is given up
//! if its oldest request is late and no received bytes are unread.

use std::sync::Arc;

use pummel_logic::protocol::{Codec, Fault};
use pummel_logic::time::{NEVER, Nanos};
use pummel_measure::connections::{TlsTrouble, TroubleKind};
use pummel_measure::trouble::{CloseReason, Trouble};

use crate::backend::{Backend, Close};
use crate::worker::connections::ConnectionState;
use crate::worker::population::Population;
use crate::worker::state::{CloseCause, Loss, WorkerState};

/// Checks the connections whose deadline has come in the timing wheel. Keeps the late ones in `expired`, and returns whether
/// there are any.
#[inline]
pub fn finds_late<C: Codec>(state: &mut WorkerState<C>, now: Nanos) -> bool {
    state.wheel.expire(now, &mut state.expired);
    if state.expired.is_empty() {
        return false;
    }
    let mut expired = std::mem::take(&mut state.expired);
    expired.retain(|&slot| {
        state.connections[slot as usize].in_wheel = false;
        is_late(state, slot as usize, now)
    });
    state.expired = expired;
    !state.expired.is_empty()
}

/// Gives up the connections that [`finds_late`] found if they are still late.
pub fn give_up_late<C: Codec>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    backend: &mut dyn Backend,
    now: Nanos,
) {
    let mut expired = std::mem::take(&mut state.expired);
    for slot in expired.drain(..) {
        if is_late(state, slot as usize, now) {
            give_up(state, population, slot as usize, backend, now);
        }
    }
    state.expired = expired;
}

/// Whether a connection is late. A connection that can be late later is in the timing wheel afterwards.
fn is_late<C: Codec>(state: &mut WorkerState<C>, slot: usize, now: Nanos) -> bool {
    let timeout_ns = state.limits.timeout_ns;
    let connection = &mut state.connections[slot];
    let deadline = match (connection.state(), connection.waits_to_open_since()) {
        (ConnectionState::Closed | ConnectionState::Queued, _) => NEVER,
        (_, Some(since)) => since.saturating_add(timeout_ns),
        (_, None) => connection.session.deadline(timeout_ns),
    };
    let is_late = deadline <= now;
    if !is_late && deadline != NEVER && !connection.in_wheel {
        connection.in_wheel = true;
        state.wheel.insert(slot as u32, deadline);
    }
    is_late
}

fn give_up<C: Codec>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    slot: usize,
    backend: &mut dyn Backend,
    now: Nanos,
) {
    let connection = &mut state.connections[slot];
    let id = connection.id(slot);
    let opening_since = connection.opening_since();
    if connection.session.is_over_datagrams() && connection.session.deadline(0) != NEVER {
        return give_up_overdue(state, population, slot, backend, now);
    }
    let words = backend.why_not_open(id).map(Arc::from);
    backend.close(id, Close::Fin);
    if opening_since.is_some() {
        let kind = words.is_some().then_some(TroubleKind::Tls(TlsTrouble::Slow));
        let reason = CloseReason { words, kind, ..CloseReason::new(Fault::Timeout, 0) };
        return population.handle_closed(state, slot, reason, now);
    }
    // pummel itself closed the connection, so it is opened again even where connections closed by a server are not.
    population.note_end(state, slot, Trouble::TimedOut, now);
    population.lose(state, slot, Loss { cause: CloseCause::TimedOut, again: true }, now);
}

/// Gives up the late requests of a connection over datagrams. The connection stays open unless its server has been
/// silent for too long, since a late reply delays no other request there.
fn give_up_overdue<C: Codec>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    slot: usize,
    backend: &mut dyn Backend,
    now: Nanos,
) {
    state.note_missed_replies(slot);
    let (id, server, (client, _)) = (state.id(slot), state.endpoints[slot].server, state.owner(slot));
    population.end_overdue(state, slot, now);
    state.reporter.late(server);
    if state.gives_up(server, now) {
        backend.close(id, Close::Fin);
        state.reporter.lost(server, Trouble::TimedOut);
        return population.lose(state, slot, Loss { cause: CloseCause::TimedOut, again: false }, now);
    }
    // The next flush puts the connection into the timing wheel again.
    if !state.lanes.are_single() {
        state.to_flush.push(slot as u32);
    }
    state.wake(client);
}
