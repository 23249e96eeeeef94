//! The contract of a load model: what it decides while its clients are polled, and what becomes of their connections. The code
//! behind it is compiled for each model.

use pummel_logic::client::Lane;
use pummel_logic::connection::session::Chunk;
use pummel_logic::protocol::{Codec, Fault, Malformed};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_measure::trouble::CloseReason;
use pummel_measure::trouble::Trouble;

use crate::backend::Backend;
use crate::worker::connections::ConnectionState;
use crate::worker::replies::{Replies, ReplyAccount};
use crate::worker::state::{CloseCause, Loss, WorkerState};

/// Time for which a server that is asked for no replies holds a connection that it takes, in nanoseconds. A server that
/// takes no more connections closes them sooner.
const HELD_MIN_NS: Nanos = 100 * MILLISECOND;

/// The load model of clients that stay, with windows or without. The bytes and findings of windows are counted apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident<const HAS_WINDOWS: bool>;

impl<const HAS_WINDOWS: bool> ReplyAccount for Resident<HAS_WINDOWS> {
    const HAS_WINDOWS: bool = HAS_WINDOWS;
}

impl<const HAS_WINDOWS: bool> LoadModel for Resident<HAS_WINDOWS> {
    type Account = Self;
}

/// A load model, as seen by the loop over clients and by the events of their connections. The default implementations
/// are for clients that stay for the whole run and open their connections again.
pub trait LoadModel: Sized {
    /// The counts of the clients' replies beside those of every model.
    type Account: ReplyAccount;

    /// Time at which [`LoadModel::poll`] has to be called; [`NEVER`] if nothing is due.
    #[inline]
    fn next_due(&self) -> Nanos {
        NEVER
    }

    /// Lets the due clients come.
    fn poll<C: Codec>(&mut self, _: &mut WorkerState<C>, _: &mut dyn Backend, _: Nanos) {}

    /// Tries the connections again, by another address, that their clients could not open by a server's first address.
    #[inline]
    fn redial<C: Codec>(&mut self, _: &mut WorkerState<C>, _: &mut dyn Backend) {}

    /// Ends a phase. Returns how many requests were never made because their servers were given up, beside those that
    /// clients count themselves.
    fn end_phase<C: Codec>(&mut self, _: &mut WorkerState<C>, _: &mut dyn Backend, _: Nanos) -> u64 {
        0
    }

    /// Whether clients come and go in the phase under way, so that none of its connections is open when it begins.
    fn comes_and_goes(&self) -> bool {
        false
    }

    /// Stops the arrivals of clients, since the run is interrupted.
    fn stop<C: Codec>(&mut self, _: &mut WorkerState<C>, _: Nanos) {}

    /// Wakes all clients at the beginning of a phase, each of which says anew when it is done with it.
    fn wake_all<C: Codec>(&mut self, state: &mut WorkerState<C>) {
        state.active = state.entries.len();
        for client in 0..state.entries.len() {
            state.entries[client].client.call_back();
            state.wake(client);
        }
    }

    /// Opens a lane that a client asks for, now or later. Returns whether the client is polled again in this turn.
    fn open_lane<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        lane: Lane,
        now: Nanos,
    ) -> bool {
        state.enqueue(client, lane, now);
        true
    }

    /// Closes the connection in `slot` in order, since its client does not want it any more.
    fn close<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        backend: &mut (impl Backend + ?Sized),
        _: Nanos,
    ) {
        state.reset(slot, backend);
    }

    /// Counts the end of the open connection in `slot`.
    fn note_end<C: Codec>(&self, state: &mut WorkerState<C>, slot: usize, trouble: Trouble, now: Nanos) {
        state.note_end(slot, trouble, now);
    }

    /// Handles that a client has nothing left to do in this phase.
    fn handle_done<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        _: &mut (impl Backend + ?Sized),
        _: Nanos,
    ) {
        state.active -= usize::from(state.entries[client].client.retire());
    }

    /// Handles bytes that were received on the connection in `slot`. Returns how many requests they answered.
    ///
    /// # Errors
    /// Returns [`Malformed`] for bytes that the protocol does not allow.
    #[inline(always)]
    fn handle_received<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        chunk: Chunk<'_>,
    ) -> Result<u32, Malformed> {
        let connection = &mut state.connections[slot];
        let client = &mut state.entries[connection.client as usize].client;
        if Self::Account::HAS_WINDOWS {
            state.maker.window_mut().count_bytes(client.window_verb(), chunk.bytes.len());
        }
        let mut replies = Replies::<Self::Account>::new(
            slot,
            connection.lane,
            client,
            &mut state.maker,
            &mut state.reporter,
        );
        let answered = connection.session.handle_received(chunk, &mut replies);
        let ended = replies.ended;
        state.reporter.ended(ended, chunk.read);
        if state.maker.has_lost_script() {
            state.load_script_again(slot);
        }
        answered
    }

    /// Handles that the connection in `slot`, which was being opened since `since`, is open.
    fn handle_opened<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, since: Nanos, now: Nanos) {
        state.openings.end_one();
        let server = state.endpoints[slot].server;
        let history = &mut state.connections[slot].history;
        state.reporter.opened(server, now.saturating_sub(since), history.is_reconnection());
        history.reopened = history.is_reconnection();
        (history.opened, history.closed_between_phases, history.awaited) = (true, false, false);
        state.silence.opened(server);
        state.note_accepted(slot, now);
        let (client, lane) = state.owner(slot);
        if let Some(view) = state.maker.cluster_mut() {
            view.note_opened(lane);
        }
        state.entries[client].client.handle_opened(lane, now);
        state.wake(client);
    }

    /// Handles that the connection in `slot` was closed or could not be opened. The socket is closed already.
    fn handle_closed<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        reason: CloseReason,
        now: Nanos,
    ) {
        let server = state.endpoints[slot].server;
        let connection = &mut state.connections[slot];
        let Some(since) = connection.opening_since() else {
            let fault = reason.fault;
            state.note_end(slot, Trouble::Lost(reason), now);
            let loss = Loss { cause: CloseCause::Closed(fault), again: state.limits.reconnect };
            return self.lose(state, slot, loss, now);
        };
        state.openings.end_one();
        let was_taken = connection.state() == ConnectionState::Handshake;
        let history = &mut connection.history;
        history.attempt = history.attempt.wrapping_add(1);
        history.failures += 1;
        history.refused = was_taken && state.reporter.refusals.end_handshake(server, &reason, now);
        connection.answered &= !history.refused;
        let addresses = state.servers[server as usize].addresses() as u32;
        if !history.failures.is_multiple_of(addresses) {
            // The server's name has more addresses, and the server may listen on the next one.
            connection.retry();
            return state.openings.enqueue(connection.id(slot), now);
        }
        let joins = (state.maker.cluster().is_some() || state.limits.has_stage) && !state.is_opening;
        let again = (history.opened || joins) && state.limits.reconnect;
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
        state.close_lane(slot, again && !gives_up, now);
    }

    /// Handles the loss of the open connection in `slot`. A client that stays may then not open the connection again where its server
    /// has been silent for too long.
    fn lose<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, loss: Loss, now: Nanos) {
        let Loss { cause, again } = loss;
        let by_server = matches!(cause, CloseCause::Closed(_));
        if by_server && state.connections[slot].history.refused {
            // The server speaks, and is not silent.
            state.connections[slot].note_end(by_server);
            let again = again && !state.refuses_for_good(state.endpoints[slot].server, now);
            return state.end_session::<Self::Account>(slot, Loss { cause, again }, now);
        }
        state.note_missed_replies(slot);
        let connection = &mut state.connections[slot];
        let lived_ns = now.saturating_sub(connection.dialled_at());
        // Where nothing asks for a reply, a connection that is held is all that a server shows of itself.
        connection.answered |= state.limits.no_replies && lived_ns >= HELD_MIN_NS;
        connection.note_end(by_server);
        if by_server && !connection.answered && lived_ns < state.limits.timeout_ns {
            // Such a server takes no more connections and says so by closing them, often before a request is sent.
            state.silence.missed(state.endpoints[slot].server, slot, now);
        }
        let again = again && !state.gives_up(state.endpoints[slot].server, now);
        state.end_session::<Self::Account>(slot, Loss { cause, again }, now);
    }

    /// Sends the waiting bytes of congested connections whose sockets take bytes again.
    fn relieve<C: Codec>(&self, state: &mut WorkerState<C>, backend: &mut dyn Backend, now: Nanos) {
        state.relieve::<Self::Account>(backend, now);
    }

    /// Closes the connection in `slot` at the end of a phase and ends its outstanding requests. The client may open
    /// the connection again.
    fn end_session<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        let loss = Loss { cause: CloseCause::Closed(Fault::Closed), again: true };
        state.end_session::<Self::Account>(slot, loss, now);
    }

    /// Gives up the late requests on the connection in `slot`, which is over datagrams and stays open.
    fn end_overdue<C: Codec>(&self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        state.end_overdue::<Self::Account>(slot, now);
    }
}
