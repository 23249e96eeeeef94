//! The opening of connections: the queue, the call to the backend, and the handshake that is sent first.

use std::io::IoSlice;

use pummel_logic::client::Lane;
use pummel_logic::protocol::Codec;
use pummel_logic::time::Nanos;

use crate::backend::Backend;
use crate::worker::connections::ConnectionState;
use crate::worker::opening::{OPENING_TURN, retry_pause};
use crate::worker::setup::Endpoint;
use crate::worker::state::WorkerState;

impl<C: Codec> WorkerState<C> {
    /// Puts a lane of a client into the queue of connections to be opened, after the pause that its earlier failures
    /// demand.
    pub fn enqueue(&mut self, number: usize, lane: Lane, now: Nanos) {
        let slot = self.lanes.slot_of(number, lane);
        let connection = &mut self.connections[slot];
        let history = connection.history;
        let failures = history.failures_in_a_row();
        let pause = match connection.is_refused() {
            true => self.reporter.refusals.pause(self.endpoints[slot].server, failures),
            false => retry_pause(failures),
        };
        let own = self.entries[number].client.reopening_pause(failures);
        let pause = own.filter(|_| history.is_reconnection()).unwrap_or(pause);
        if connection.enqueue() {
            self.openings.enqueue(connection.id(slot), now.saturating_add(pause));
        }
    }

    /// Begins to open queued connections, within the limits of connections per turn and under way.
    pub fn open_queued(&mut self, backend: &mut dyn Backend, now: Nanos) {
        for _ in 0..OPENING_TURN {
            let Some(id) = self.openings.begin_next(now) else { return };
            let slot = id.slot as usize;
            let connection = &self.connections[slot];
            let attempt = connection.history.attempt;
            let is_waiting = connection.is(id) && connection.state() == ConnectionState::Queued;
            if !is_waiting || !self.dial(slot, attempt, backend.now(), now, backend) {
                self.openings.end_one();
            }
        }
    }

    /// Begins at `at` to open a connection to its server's address number `attempt`. The attempt times out
    /// as if it had begun at `since`. Returns whether the connection was in a state to be opened.
    pub fn dial(
        &mut self,
        slot: usize,
        attempt: u32,
        at: Nanos,
        since: Nanos,
        backend: &mut dyn Backend,
    ) -> bool {
        let Endpoint { server, rank, transport } = self.endpoints[slot];
        let connection = &mut self.connections[slot];
        let was_congested = connection.congested;
        if !connection.dial(at, self.codec.renew(), transport) {
            return false;
        }
        self.congested -= usize::from(was_congested);
        self.reporter.refusals.begin_connection(slot);
        if !connection.in_wheel {
            connection.in_wheel = true;
            self.wheel.insert(slot as u32, since.saturating_add(self.limits.timeout_ns));
        }
        let target = self.servers[server as usize].target_over(transport, rank, attempt as usize);
        backend.open(connection.id(slot), &target);
        true
    }

    /// Sends the handshake on new connections.
    pub fn send_handshakes(&mut self, backend: &mut dyn Backend) {
        for id in self.openings.take_queued_handshakes() {
            let connection = &mut self.connections[id.slot as usize];
            if !connection.is(id) {
                continue;
            }
            let Some(handshake) = connection.handshake_mut() else { continue };
            if !handshake.rest().is_empty() {
                // Where sends are stamped, the bytes of the handshake count too.
                let handed = backend.send_marked(id, &[IoSlice::new(handshake.rest())], None);
                handshake.handle_sent(handed.taken, handed.at);
                self.reporter.sent(handed.taken);
            }
        }
    }
}
