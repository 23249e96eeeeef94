//! The state of a worker without its backend and its load model: clients, connections, queues and deadlines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use pummel_logic::client::{Client, Lane};
use pummel_logic::connection::outbox::Room;
use pummel_logic::connection::session::Session;
use pummel_logic::protocol::{Codec, Fault};
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::workload::request::RequestMaker;
use pummel_measure::phase_ends::PhaseSilence;
use pummel_measure::trouble::CloseReason;
use pummel_measure::trouble::Trouble;

use crate::backend::{Backend, Close, ConnId};
use crate::resolve::Server;
use crate::worker::connections::Connection;
use crate::worker::deadlines::TimingWheel;
use crate::worker::lane_slots::LaneSlots;
use crate::worker::opening::Openings;
use crate::worker::replies::{Replies, ReplyAccount};
use crate::worker::reporter::WorkerReporter;
use crate::worker::setup::{Endpoint, WorkerLimits, WorkerSetup};
use crate::worker::silence::Silence;

/// The longest wait, after which a worker checks whether the run was stopped.
const SLEEP_MAX_NS: Nanos = 50 * pummel_logic::time::MILLISECOND;

/// A client, and when the worker polls it next.
#[derive(Debug)]
pub struct ClientEntry {
    /// The client itself.
    pub client: Client,
    /// Time at which the client asked to be woken; [`NEVER`] if the client is not in the queue of due times.
    pub(super) due: Nanos,
    /// The client is in the list of clients to be polled.
    pub(super) woken: bool,
}

impl ClientEntry {
    /// The entry of a client that is in no queue.
    pub(super) fn new(client: Client) -> ClientEntry {
        ClientEntry { client, due: NEVER, woken: false }
    }

    /// Has client `number` woken at `at`, unless it is woken before that.
    #[inline]
    pub(super) fn wake_at(&mut self, at: Nanos, number: usize, due: &mut BinaryHeap<Reverse<(Nanos, u32)>>) {
        if at < self.due {
            self.due = at;
            due.push(Reverse((at, number as u32)));
        }
    }
}

/// Why an open connection ends.
#[derive(Clone, Copy, Debug)]
pub enum CloseCause {
    /// The peer closed the connection, or it broke.
    Closed(Fault),
    /// A request took longer than the timeout.
    TimedOut,
}

/// The end of an open connection.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The reason of the end.
    pub cause: CloseCause,
    /// Whether the client may open the connection again.
    pub again: bool,
}

/// Everything of a worker but its backend and its load model, which are borrowed apart while events are handled.
#[derive(Debug)]
pub struct WorkerState<C> {
    pub limits: WorkerLimits,
    pub entries: Vec<ClientEntry>,
    /// All connections by slot.
    pub connections: Vec<Connection<C>>,
    pub lanes: LaneSlots,
    pub servers: Arc<[Server]>,
    /// The endpoint of each connection.
    pub endpoints: Vec<Endpoint>,
    pub maker: RequestMaker,
    pub reporter: WorkerReporter,
    /// Room for the long parts of values that are being sent.
    pub room: Room,
    /// The times at which clients asked to be woken. Each time is compared with the client's own due time, so that an
    /// entry that outlives its client wakes no other client.
    pub due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The deadlines of connections by slot. One entry serves all connections that a slot has one after the other: the
    /// state of the connection at that time decides what happens.
    pub wheel: TimingWheel,
    /// Clients to be polled. A client that takes a slot of this list is polled once too often, which has no effect.
    pub woken: Vec<u32>,
    /// The list that takes the place of `woken` while that one is worked off; empty between turns.
    pub woken_again: Vec<u32>,
    /// Slots of connections with something to send, where clients have several lanes. An entry that outlives its connection does no
    /// harm: what waits on the next one in the slot is sent, if anything does.
    pub to_flush: Vec<u32>,
    /// Slots whose deadlines have come; empty between turns.
    pub expired: Vec<u32>,
    /// An upper bound of the number of congested connections: the socket is full and the outbox has reached its limit,
    /// so that the client sends no request.
    pub congested: usize,
    /// Congested connections whose socket takes bytes again.
    pub relieved: Vec<ConnId>,
    /// Clients that have received requests of a trace in this turn; empty between turns.
    pub fed: Vec<u32>,
    pub openings: Openings,
    /// Connections to be closed because their peer sent bytes that the protocol does not allow. Their slots may have
    /// other connections when they are closed.
    pub broken: Vec<ConnId>,
    /// Clients that have something left to do in this phase.
    pub active: usize,
    /// Lanes that were lost and are not opened again, in the whole run.
    pub lanes_lost: u64,
    /// Lost lanes that were never open.
    pub lanes_unopened: u64,
    /// Lost lanes whose servers refused them.
    pub lanes_refused: u64,
    /// Whether the worker is still opening its connections. All are tried even if servers refuse some, so that all
    /// refusals are known.
    pub is_opening: bool,
    pub silence: Silence,
    /// The codec that new connections get copies of.
    pub codec: C,
    /// Longest silence of a server before its connections are not opened again, in nanoseconds.
    pub silence_max_ns: Nanos,
    /// Time at which bytes were last read, on the monotonic clock.
    pub read_at: Nanos,
}

impl<C: Codec> WorkerState<C> {
    /// The state of a worker without an open connection. `wheel` has no deadline yet.
    pub fn new(setup: WorkerSetup, wheel: TimingWheel, codec: C) -> WorkerState<C> {
        let WorkerSetup { clients, lanes, servers, endpoints, depth, .. } = setup;
        assert!(endpoints.len() == clients.len() * lanes, "every client has as many lanes");
        let count = endpoints.len();
        let lanes = LaneSlots::new(lanes);
        let silence = Silence::new(servers.len(), endpoints.iter().map(|endpoint| endpoint.server));
        WorkerState {
            wheel,
            limits: setup.limits,
            connections: (0..count).map(|slot| Connection::new(lanes.owner_of(slot), depth)).collect(),
            lanes,
            endpoints,
            maker: setup.maker,
            reporter: setup.reporter,
            room: Room::default(),
            due: BinaryHeap::with_capacity(clients.len()),
            woken: Vec::with_capacity(clients.len()),
            woken_again: Vec::with_capacity(clients.len()),
            to_flush: Vec::new(),
            expired: Vec::with_capacity(count),
            congested: 0,
            relieved: Vec::new(),
            fed: Vec::new(),
            openings: Openings::new(setup.handshake, count),
            broken: Vec::new(),
            active: clients.len(),
            lanes_lost: 0,
            lanes_unopened: 0,
            lanes_refused: 0,
            is_opening: false,
            codec,
            silence,
            servers,
            silence_max_ns: NEVER,
            read_at: 0,
            entries: clients.into_iter().map(ClientEntry::new).collect(),
        }
    }

    /// The name of the connection in `slot`.
    pub fn id(&self, slot: usize) -> ConnId {
        self.connections[slot].id(slot)
    }

    /// The client of the connection in `slot`, and which of its lanes the connection is.
    #[inline]
    pub fn owner(&self, slot: usize) -> (usize, Lane) {
        let connection = &self.connections[slot];
        (connection.client as usize, connection.lane)
    }

    /// Has a client polled in the next turn.
    #[inline(always)]
    pub fn wake(&mut self, client: usize) {
        let entry = &mut self.entries[client];
        if !entry.woken {
            entry.woken = true;
            self.woken.push(client as u32);
        }
    }

    /// Wakes the clients whose due time has come.
    #[inline]
    pub fn wake_due(&mut self, now: Nanos) {
        while let Some(&Reverse((at, client))) = self.due.peek().filter(|Reverse((at, _))| *at <= now) {
            self.due.pop();
            let entry = &mut self.entries[client as usize];
            if entry.due == at {
                entry.due = NEVER;
                self.wake(client as usize);
            }
        }
    }

    /// Time at which the worker has to act next if no event comes before.
    #[inline]
    pub fn next_time(&self, now: Nanos) -> Nanos {
        if !self.woken.is_empty() {
            return now;
        }
        let due = self.due.peek().map_or(NEVER, |Reverse((at, _))| *at);
        due.min(self.openings.next_time())
            .min(self.wheel.next())
            .min(self.reporter.next_tick())
            .min(now + SLEEP_MAX_NS)
    }

    /// Notes which connections the next phase waits for: those that were open once and are not open at the end of this
    /// one. No phase waits for a connection that was tried in vain since, or that its server closed without a reply, and
    /// none follows where a lane is lost.
    pub fn await_closed(&mut self) {
        let goes_on = !self.has_lost();
        for connection in &mut self.connections {
            let is_open = connection.state().is_open();
            let history = &mut connection.history;
            let is_fresh = history.closed_between_phases || history.failures_in_a_row() == 0;
            history.awaited = goes_on && history.opened && !is_open && is_fresh;
        }
    }

    /// Whether a connection that the next phase waits for is still in its first attempt to open.
    pub fn is_reopening(&self) -> bool {
        self.connections.iter().zip(&self.endpoints).any(|(connection, endpoint)| {
            let history = connection.history;
            let tried = history.failures as usize >= self.servers[endpoint.server as usize].addresses();
            history.awaited && !tried
        })
    }

    /// Number of connections that are open and on which the server has sent nothing yet, no agreement to a handshake either.
    pub fn unanswered(&self) -> u64 {
        if self.openings.is_answered_in_handshake() {
            return 0;
        }
        let is_unanswered =
            |connection: &&Connection<C>| connection.state().is_open() && !connection.answered;
        self.connections.iter().filter(is_unanswered).count() as u64
    }

    /// Whether a request is unanswered on any connection.
    pub fn is_owed(&self) -> bool {
        self.connections.iter().any(|connection| !connection.session.is_idle())
    }

    /// Whether a client has lost a lane that is not opened again.
    pub fn has_lost(&self) -> bool {
        self.entries.iter().any(|entry| entry.client.lost_lanes() > 0)
    }

    /// Notes that the outstanding replies of the connection in `slot`, if there are any, will not come.
    pub fn note_missed_replies(&mut self, slot: usize) {
        let since = self.connections[slot].session.deadline(0);
        if since != NEVER {
            self.silence.missed(self.endpoints[slot].server, slot, since);
        }
    }

    /// Notes that a server accepted the connection in `slot` at `now`. In a run whose requests get no replies, this
    /// shows that the server is alive.
    pub fn note_accepted(&mut self, slot: usize, now: Nanos) {
        if self.limits.no_replies && !self.maker.is_load() {
            self.silence.accepted(self.endpoints[slot].server, slot, now);
        }
    }

    /// Notes where a server refused or reset an attempt to connect, which failed at `now` for this reason.
    pub fn note_turned_away(&mut self, server: u32, reason: &CloseReason, now: Nanos) {
        if matches!(reason.fault, Fault::Refused | Fault::Reset) {
            self.silence.turned_away(server, now);
        }
    }

    /// Counts the end of the open connection in `slot`, which its server refused or which is lost.
    pub fn note_end(&mut self, slot: usize, trouble: Trouble, now: Nanos) {
        let server = self.endpoints[slot].server;
        let connection = &mut self.connections[slot];
        let by_server = !matches!(trouble, Trouble::TimedOut);
        // What the protocol does not allow is a word too, and refuses nothing unless it says so.
        let answered = connection.answered || matches!(trouble, Trouble::Malformed(..));
        let refused = by_server && self.reporter.refusals.end_connection(slot, server, answered, now);
        connection.history.refused = refused;
        match refused {
            true => {
                // The words may have answered a request.
                connection.answered = false;
                let again = std::mem::take(&mut connection.history.reopened);
                self.reporter.refused(server, trouble, again);
            }
            false => self.reporter.lost(server, trouble),
        }
    }

    /// Whether a server has refused connections for so long that no connection to it is opened again: no other one is at work, so that
    /// the run would wait for these alone.
    pub fn refuses_for_good(&mut self, server: u32, now: Nanos) -> bool {
        let since = self.reporter.refusals.since(server, now).unwrap_or(now);
        if now.saturating_sub(since) < self.silence_max_ns {
            return false;
        }
        let mut served = self.connections.iter().zip(&self.endpoints).filter(|(connection, endpoint)| {
            endpoint.server == server
                && connection.state().is_open()
                && connection.answered
                && !connection.session.is_idle()
        });
        let is_served = served.next().is_some();
        if is_served {
            self.reporter.refusals.restart_since(server, now);
        }
        !is_served
    }

    /// Hands the refusals of servers to the reporter.
    pub fn note_refusals(&mut self) {
        if !self.reporter.refusals.any() {
            return;
        }
        let WorkerState { connections, endpoints, reporter, .. } = self;
        let refusals = &reporter.refusals;
        let is_refused = |slot: usize| connections[slot].is_refused() || refusals.ended_without_a_word(slot);
        let is_refused: Vec<bool> = (0..connections.len()).map(is_refused).collect();
        reporter.note_refusals(|server| {
            let tried = (0..connections.len()).filter(|&slot| {
                let history = connections[slot].history;
                endpoints[slot].server == server && (history.opened || history.refused)
            });
            let refused = tried.clone().filter(|&slot| is_refused[slot]).count();
            (tried.count() as u64, refused as u64)
        });
    }

    /// Whether a server has been silent for so long that no connection to it is opened again.
    pub fn gives_up(&self, server: u32, now: Nanos) -> bool {
        self.silence.of(server, now) >= self.silence_max_ns
    }

    /// The silence of each server of this worker's connections.
    pub fn silent(&self, now: Nanos) -> Vec<PhaseSilence> {
        let mut servers: Vec<u32> = self.endpoints.iter().map(|endpoint| endpoint.server).collect();
        servers.sort_unstable();
        servers.dedup();
        // Requests of a node that owns nothing are asked of others.
        servers.retain(|&server| self.maker.cluster().is_none_or(|view| view.owns_slots(server as u16)));
        let silence = |server| PhaseSilence {
            server,
            silent_ns: self.silence.of(server, now),
            turned_away: self.silence.turns_away(server),
        };
        servers.into_iter().map(silence).collect()
    }

    /// Closes a connection and ends the requests that are outstanding on it.
    pub fn end_session<A: ReplyAccount>(&mut self, slot: usize, loss: Loss, now: Nanos) {
        let connection = &mut self.connections[slot];
        connection.close();
        self.congested -= usize::from(std::mem::take(&mut connection.congested));
        let timeout_ns = self.limits.timeout_ns;
        self.end_requests::<A>(slot, now, |session, replies| match loss.cause {
            CloseCause::Closed(fault) => session.handle_closed(fault, now, replies),
            CloseCause::TimedOut => session.handle_timeout(timeout_ns, now, replies),
        });
        self.close_lane(slot, loss.again, now);
    }

    /// Gives up the requests that are late on a connection of datagrams, which stays open.
    pub fn end_overdue<A: ReplyAccount>(&mut self, slot: usize, now: Nanos) {
        let timeout_ns = self.limits.timeout_ns;
        self.end_requests::<A>(slot, now, |session, replies| {
            session.handle_overdue(timeout_ns, now, replies);
        });
    }

    /// Ends requests of the connection in `slot` by `end`.
    fn end_requests<A: ReplyAccount>(
        &mut self,
        slot: usize,
        now: Nanos,
        end: impl FnOnce(&mut Session<C>, &mut Replies<'_, A>),
    ) {
        self.reporter.note_server(self.endpoints[slot].server);
        let connection = &mut self.connections[slot];
        let client = &mut self.entries[connection.client as usize].client;
        let mut replies = Replies::new(slot, connection.lane, client, &mut self.maker, &mut self.reporter);
        end(&mut connection.session, &mut replies);
        let ended = replies.ended;
        self.reporter.ended(ended, now);
    }

    /// Notifies a client that one of its lanes is closed. The client may open the lane again if `again` is set.
    pub fn close_lane(&mut self, slot: usize, again: bool, now: Nanos) {
        let (client, lane) = self.owner(slot);
        let mut again = again;
        let mut has_left = false;
        match self.maker.cluster_mut() {
            Some(view) if view.is_member(lane) => {
                view.note_failure(lane, now);
                if !again && !self.is_opening {
                    // The node may be replaced, or come back: requests wait for neither any more, and its lane stays.
                    view.give_up(lane);
                    again = true;
                }
            }
            Some(_) => (again, has_left) = (true, true),
            None => {}
        }
        self.entries[client].client.handle_closed(lane, again, &mut self.maker);
        if has_left {
            self.entries[client].client.leave(lane);
        }
        if !again {
            self.lanes_lost += 1;
            let history = self.connections[slot].history;
            self.lanes_unopened += u64::from(!history.opened);
            self.lanes_refused += u64::from(history.refused);
            if !(self.is_opening && history.refused) {
                self.reporter.gone();
            }
        }
        self.wake(client);
    }

    /// Whether clients may have requests that wait, to be sent again, to go on or for a node of a cluster.
    pub fn has_pending(&self) -> bool {
        self.maker.may_go_on() || self.maker.retries().is_some()
    }

    /// Lets no request be sent again, since the phase is over.
    pub fn end_redirects(&mut self) {
        if self.has_pending() {
            self.entries.iter_mut().for_each(|entry| entry.client.end_redirects());
        }
    }

    /// Closes the connection in `slot`, whatever its state is, and forgets its failures.
    pub fn reset(&mut self, slot: usize, backend: &mut (impl Backend + ?Sized)) {
        backend.close(self.id(slot), Close::Fin);
        if self.connections[slot].reset().is_opening() {
            self.openings.end_one();
        }
    }

    /// Closes the sockets of the connections that were given up while events were handled.
    pub fn close_broken(&mut self, backend: &mut dyn Backend) {
        for id in self.broken.drain(..) {
            backend.close(id, Close::Fin);
        }
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::protocol::text::Text;

    use super::*;

    #[test]
    fn a_client_and_its_connection_take_as_few_bytes_as_written_here() {
        assert!(size_of::<Client>() <= 432, "{}", size_of::<Client>());
        assert!(size_of::<ClientEntry>() <= 448, "{}", size_of::<ClientEntry>());
        assert!(size_of::<Session<Text>>() <= 152, "{}", size_of::<Session<Text>>());
        assert!(size_of::<Connection<Text>>() <= 200, "{}", size_of::<Connection<Text>>());
    }
}
