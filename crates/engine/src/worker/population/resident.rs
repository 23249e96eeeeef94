//! The load model of clients that stay for the whole run and open their connections again.

use pummel_logic::client::Lane;
use pummel_logic::connection::session::Chunk;
use pummel_logic::protocol::{Codec, Malformed};
use pummel_logic::time::{MILLISECOND, Nanos};

use crate::backend::{Backend, Reason};
use crate::worker::connections::ConnectionState;
use crate::worker::load_model::LoadModel;
use crate::worker::replies::{Replies, ReplyAccount};
use crate::worker::state::{CloseCause, WorkerState};
use crate::worker::trouble::Trouble;

/// Shortest time for which a server that is asked for no replies holds a connection that it takes, in nanoseconds. One
/// that takes no more connections closes them sooner.
const HELD_MIN_NS: Nanos = 100 * MILLISECOND;

/// The load model of clients that stay.
#[derive(Debug)]
pub struct Resident;

impl ReplyAccount for Resident {
    const HAS_WINDOWS: bool = false;
}

impl<C: Codec> LoadModel<C> for Resident {
    fn open_lane(&mut self, state: &mut WorkerState<C>, client: usize, lane: Lane, now: Nanos) -> bool {
        state.enqueue(client, lane, now);
        true
    }

    fn handle_done(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        _: &mut (impl Backend + ?Sized),
        _: Nanos,
    ) {
        handle_done(state, client);
    }
}

/// Wakes all clients, each of which says anew when it is done with the phase.
pub fn wake_all<C: Codec>(state: &mut WorkerState<C>) {
    state.active = state.entries.len();
    for client in 0..state.entries.len() {
        state.entries[client].client.call_back();
        state.wake(client);
    }
}

/// Handles that a client has nothing left to do in this phase.
pub fn handle_done<C>(state: &mut WorkerState<C>, client: usize) {
    state.active -= usize::from(state.entries[client].client.retire());
}

/// Handles bytes that were received on the connection in `slot`. Returns how many requests they answered.
///
/// # Errors
/// Returns [`Malformed`] for bytes that the protocol does not allow.
#[inline(always)]
pub fn handle_received<A: ReplyAccount, C: Codec>(
    state: &mut WorkerState<C>,
    slot: usize,
    chunk: Chunk<'_>,
) -> Result<u32, Malformed> {
    let connection = &mut state.connections[slot];
    let client = &mut state.entries[connection.client as usize].client;
    if A::HAS_WINDOWS {
        state.maker.window_mut().count_bytes(client.window_verb(), chunk.bytes.len());
    }
    let mut replies = Replies::<A>::new(slot, connection.lane, client, &mut state.maker, &mut state.reporter);
    let answered = connection.session.handle_received(chunk, &mut replies);
    let ended = replies.ended;
    state.reporter.ended(ended, chunk.read);
    answered
}

/// Handles that the connection in `slot`, which was being opened since `since`, is open.
pub fn handle_opened<C: Codec>(state: &mut WorkerState<C>, slot: usize, since: Nanos, now: Nanos) {
    state.openings.end_one();
    let server = state.endpoints[slot].server;
    let history = &mut state.connections[slot].history;
    state.reporter.opened(server, now.saturating_sub(since), history.is_reconnection());
    history.reopened = history.is_reconnection();
    (history.opened, history.closed_between_phases, history.awaited) = (true, false, false);
    state.silence.opened(server);
    state.note_accepted(slot, now);
    let (client, lane) = state.owner(slot);
    state.entries[client].client.handle_opened(lane, now);
    state.wake(client);
}

/// Handles that the connection in `slot` was closed, or could not be opened. Its socket is closed already.
pub fn handle_closed<A: ReplyAccount, C: Codec>(
    state: &mut WorkerState<C>,
    slot: usize,
    reason: Reason,
    now: Nanos,
) {
    let server = state.endpoints[slot].server;
    let connection = &mut state.connections[slot];
    let Some(since) = connection.opening_since() else {
        let fault = reason.fault;
        state.note_end(slot, Trouble::Lost(reason), now);
        return lose::<A, C>(state, slot, CloseCause::Closed(fault), state.limits.reconnect, now);
    };
    state.openings.end_one();
    let was_taken = connection.state() == ConnectionState::Handshake;
    let history = &mut connection.history;
    history.attempt = history.attempt.wrapping_add(1);
    history.failures += 1;
    let words = reason.words.as_deref();
    history.refused = was_taken && state.reporter.refusals.end_handshake(server, words, now);
    connection.answered &= !history.refused;
    let addresses = state.servers[server as usize].addresses() as u32;
    if !history.failures.is_multiple_of(addresses) {
        // The server's name has more addresses, and the server may listen on the next one.
        connection.retry();
        return state.openings.enqueue(connection.id(slot), now);
    }
    let again = history.opened && state.limits.reconnect;
    connection.close();
    state.note_turned_away(server, &reason, now);
    state.reporter.not_opened(server, reason);
    let gives_up = match state.connections[slot].history.refused {
        true => state.refuses_for_good(server, now),
        false => {
            state.silence.refused(server, slot, since);
            state.gives_up(server, now)
        }
    };
    state.close_lane(slot, again && !gives_up);
}

/// Handles the loss of an open connection. If `again` is set, its client may open the connection again, unless its
/// server has been silent for too long.
pub fn lose<A: ReplyAccount, C: Codec>(
    state: &mut WorkerState<C>,
    slot: usize,
    cause: CloseCause,
    again: bool,
    now: Nanos,
) {
    let by_server = matches!(cause, CloseCause::Closed(_));
    if by_server && state.connections[slot].history.refused {
        // The server speaks, and is not silent.
        state.connections[slot].note_end(by_server);
        let again = again && !state.refuses_for_good(state.endpoints[slot].server, now);
        return state.end_session::<A>(slot, cause, again, now);
    }
    state.miss(slot);
    let connection = &mut state.connections[slot];
    let lived_ns = now.saturating_sub(connection.dialled_at());
    // Where nothing asks for a reply, a connection that is held is all that a server shows of itself.
    connection.answered |= state.limits.unanswered && lived_ns >= HELD_MIN_NS;
    connection.note_end(by_server);
    if by_server && !connection.answered && lived_ns < state.limits.timeout_ns {
        // Such a server takes no more connections and says so by closing them, often before a request is sent.
        state.silence.missed(state.endpoints[slot].server, slot, now);
    }
    let again = again && !state.gives_up(state.endpoints[slot].server, now);
    state.end_session::<A>(slot, cause, again, now);
}
