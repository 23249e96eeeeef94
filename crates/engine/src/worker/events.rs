//! The handling of the events of connections.

use pummel_logic::connection::session::Chunk;
use pummel_logic::protocol::handshake::HandshakeProgress;
use pummel_logic::protocol::{Codec, Fault};
use pummel_logic::time::Nanos;
use pummel_measure::trouble::{Trouble, says_full};

use crate::backend::{Backend, ConnId, Event};
use crate::worker::connections::ConnectionState;
use crate::worker::population::Population;
use crate::worker::state::{CloseCause, Loss, WorkerState};

/// Handles an event of a connection. The event is ignored where the slot has another connection by then.
#[inline]
pub fn handle<C: Codec>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    id: ConnId,
    event: Event<'_>,
    now: Nanos,
) {
    let slot = id.slot as usize;
    let connection = &mut state.connections[slot];
    if !connection.is(id) {
        return;
    }
    match event {
        Event::Received { bytes, stamp, read } if connection.state() == ConnectionState::Handshake => {
            let mut rest: &[u8] = bytes;
            handle_handshake(state, population, id, &mut rest, now);
            let taken = bytes.len() - rest.len();
            let bytes = &mut bytes[taken..];
            if !bytes.is_empty() {
                // What the handshake asked for has come with its last reply.
                handle(state, population, id, Event::Received { bytes, stamp, read }, now);
            }
        }
        Event::Writable if connection.state() == ConnectionState::Handshake => {
            state.openings.queue_handshake(id)
        }
        Event::Received { bytes, stamp, read } => {
            state.read_at = read;
            let chunk = Chunk { bytes, stamp, read };
            let server = state.endpoints[slot].server;
            state.reporter.note_server(server);
            let answered = population.handle_received(state, slot, chunk);
            let connection = &mut state.connections[slot];
            state.reporter.received(chunk.bytes.len(), answered.unwrap_or(0));
            match answered {
                Ok(answered) => {
                    if answered > 0 {
                        connection.answered = true;
                        state.silence.answered(server, slot, read);
                    }
                    // A codec may have a request of its own to send.
                    if !state.lanes.are_single() && connection.session.has_output() {
                        state.to_flush.push(slot as u32);
                    }
                    let client = connection.client as usize;
                    state.wake(client);
                }
                Err(malformed) => {
                    let fault = if says_full(chunk.bytes) { Fault::Refused } else { Fault::Protocol };
                    state.reporter.refusals.note_words(slot, chunk.bytes);
                    let is_greeting = !state.connections[slot].answered;
                    let trouble = Trouble::malformed(malformed, chunk.bytes, is_greeting);
                    population.note_end(state, slot, trouble, read);
                    state.broken.push(id);
                    let loss = Loss { cause: CloseCause::Closed(fault), again: state.limits.reconnect };
                    population.lose(state, slot, loss, read);
                }
            }
        }
        Event::Writable => {
            if connection.congested {
                state.relieved.push(id);
            }
            connection.drain();
            connection.session.handle_writable(now);
            let client = connection.client as usize;
            if !state.lanes.are_single() {
                state.to_flush.push(slot as u32);
            }
            state.wake(client);
        }
        Event::Opened { at } => match state.openings.handshake(id) {
            Some(handshake) => connection.begin_handshake(handshake),
            None => population.handle_opened(state, slot, at),
        },
        Event::Closed(reason) => population.handle_closed(state, slot, reason, now),
    }
}

/// Handles what the events of connections have left behind, and what the backend knows beside them.
#[inline]
pub fn handle_others<C: Codec, B: Backend>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    backend: &mut B,
) {
    backend.handshakes(&mut |handshake| state.reporter.shook_hands(handshake));
    state.close_broken(backend);
    population.redial(state, backend);
    state.send_handshakes(backend);
    if state.reporter.has_stamps_to_handle() {
        state.reporter.handle_stamps(backend);
    }
}

/// Handles a server's reply to the handshake. The connection counts as open when the server has agreed to the whole
/// handshake, and `bytes` has what came behind it.
fn handle_handshake<C: Codec>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    id: ConnId,
    bytes: &mut &[u8],
    now: Nanos,
) {
    let (slot, all) = (id.slot as usize, bytes.len());
    let Some(handshake) = state.connections[slot].handshake_mut() else { return *bytes = &[] };
    let progress = handshake.handle_received(bytes);
    if progress.is_err() {
        *bytes = &[];
    }
    state.reporter.received(all - bytes.len(), 0);
    let why = match progress {
        Ok(HandshakeProgress::NeedMore) => return,
        Ok(HandshakeProgress::Done) => return population.handle_opened(state, slot, now),
        Err(why) => why,
    };
    state.broken.push(id);
    population.handle_closed(state, slot, why, now);
}
