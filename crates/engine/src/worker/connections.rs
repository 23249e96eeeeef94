//! One connection of a worker, and the states that it passes through.

use pummel_logic::client::Lane;
use pummel_logic::connection::session::{OUTBOX_MAX_BYTES, Session};
use pummel_logic::plan::Transport;
use pummel_logic::protocol::Codec;
use pummel_logic::time::Nanos;

use crate::backend::ConnId;
use crate::worker::opening::PendingHandshake;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The connection is not open, and nothing is done to open it.
    Closed,
    /// The connection waits for its turn to be opened.
    Queued,
    /// The backend is opening the connection.
    Opening,
    /// The connection is open, and its server has not agreed to the handshake yet.
    Handshake,
    /// The connection takes requests.
    Open,
    /// The connection is open, and its socket takes no more bytes.
    Full,
}

/// A change of a connection's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionChange {
    /// The client asks for the connection, which has to wait for its turn.
    Enqueue,
    /// The backend begins to open the connection.
    Dial,
    /// The server has taken the connection and has to agree to a handshake.
    Handshake,
    /// The connection can be used: the server has taken it, and has agreed to the handshake if there is one.
    Open,
    /// The socket took fewer bytes than it was offered.
    Fill,
    /// The socket takes bytes again.
    Drain,
    /// The attempt to open the connection failed, and another address of its server is to be tried.
    Retry,
    /// The connection ended, the attempt to open it failed, or its worker does not want it any more.
    Close,
}

impl ConnectionState {
    /// The state after `change`; `None` where the change means nothing in this state and is ignored.
    #[inline(always)]
    pub const fn after(self, change: ConnectionChange) -> Option<ConnectionState> {
        match (self, change) {
            (ConnectionState::Closed, ConnectionChange::Enqueue) => Some(ConnectionState::Queued),
            (ConnectionState::Closed | ConnectionState::Queued, ConnectionChange::Dial) => {
                Some(ConnectionState::Opening)
            }
            (ConnectionState::Opening, ConnectionChange::Handshake) => Some(ConnectionState::Handshake),
            (ConnectionState::Opening | ConnectionState::Handshake, ConnectionChange::Open) => {
                Some(ConnectionState::Open)
            }
            (ConnectionState::Opening | ConnectionState::Handshake, ConnectionChange::Retry) => {
                Some(ConnectionState::Queued)
            }
            (ConnectionState::Open, ConnectionChange::Fill) => Some(ConnectionState::Full),
            (ConnectionState::Full, ConnectionChange::Drain) => Some(ConnectionState::Open),
            (_, ConnectionChange::Close) => Some(ConnectionState::Closed),
            _ => None,
        }
    }

    /// Whether the connection is open, and its server has agreed to the handshake if there is one.
    pub const fn is_open(self) -> bool {
        matches!(self, ConnectionState::Open | ConnectionState::Full)
    }

    /// Whether the connection is being opened: the backend has begun to open it, and it takes no request yet.
    pub const fn is_opening(self) -> bool {
        matches!(self, ConnectionState::Opening | ConnectionState::Handshake)
    }
}

impl ConnectionChange {
    /// Whether the slot has another connection after this change, so that late events of the connection before are
    /// dropped.
    const fn renews(self) -> bool {
        matches!(self, ConnectionChange::Dial | ConnectionChange::Retry | ConnectionChange::Close)
    }
}

/// One connection. The fields that each send and each reply touch stand before those that only its opening and its end
/// touch.
#[derive(Debug)]
#[repr(C)]
pub struct Connection<C> {
    /// The bytes that wait to be sent, and the requests that are outstanding.
    pub session: Session<C>,
    generation: u32,
    /// Index of the connection's client in the worker.
    pub client: u32,
    /// The lane of its client that the connection is.
    pub lane: Lane,
    state: ConnectionState,
    /// The timing wheel has an entry for the slot.
    pub in_wheel: bool,
    /// The server has replied since the connection was opened.
    pub answered: bool,
    /// The outbox has reached its limit while the socket was full, and was not relieved since.
    pub congested: bool,
    /// The earlier attempts to open the connection.
    pub history: AttemptHistory,
    /// Time at which the backend began to open the connection, kept after the connection is open.
    opening_since: Nanos,
    /// Progress of the handshake; only in [`ConnectionState::Handshake`].
    handshake: Option<Box<PendingHandshake>>,
}

/// The earlier attempts to open a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttemptHistory {
    /// Index of the server's address that is tried next.
    pub attempt: u32,
    /// Failed attempts to open the connection since it was open.
    pub failures: u32,
    /// Number of consecutive times that the server closed the connection without having replied on it, up to the
    /// greatest number of the type.
    pub failures_without_reply: u16,
    /// Whether the server refused the connection when it last ended: the server accepted it and then said that it
    /// takes no more.
    pub refused: bool,
    /// Whether the last opening of the connection was counted as a reconnection.
    pub reopened: bool,
    /// The connection was open once.
    pub opened: bool,
    /// This worker closed the connection between two phases, because its replies would have arrived in the next phase.
    /// The next opening is no reconnection.
    pub closed_between_phases: bool,
    /// The connection was not open when the last phase was over, and the next phase that begins with all connections
    /// open waits for it, or for its first attempt.
    pub awaited: bool,
}

impl AttemptHistory {
    /// Number of consecutive failures, which decides how long a new attempt waits.
    pub fn failures_in_a_row(&self) -> u32 {
        self.failures.max(u32::from(self.failures_without_reply))
    }

    /// Whether the next opening is a reconnection.
    pub fn is_reconnection(&self) -> bool {
        self.opened && !self.closed_between_phases
    }
}

impl<C: Codec> Connection<C> {
    /// The closed connection that is this lane of this client, with room for `depth` outstanding requests.
    pub fn new((client, lane): (usize, Lane), depth: usize) -> Connection<C> {
        Connection {
            session: Session::new(depth),
            generation: 0,
            client: client as u32,
            lane,
            state: ConnectionState::Closed,
            in_wheel: false,
            answered: false,
            congested: false,
            history: AttemptHistory::default(),
            opening_since: 0,
            handshake: None,
        }
    }

    /// Notes that the backend begins at `at` to open the connection, whose session uses `codec` and `transport`. Returns
    /// whether the connection can be opened in its state. Every connection begins here, and with it all that belongs to one:
    /// nothing of the slot's last connection reaches the next.
    pub fn dial(&mut self, at: Nanos, codec: C, transport: Transport) -> bool {
        if self.change(ConnectionChange::Dial).is_none() {
            return false;
        }
        // All fields are named, so that a new one has to say whether it outlives the connection.
        let Connection {
            session,
            generation: _,
            client: _,
            lane: _,
            state: _,
            in_wheel: _,
            answered,
            congested,
            history,
            opening_since,
            handshake,
        } = self;
        session.begin_connection(codec, transport);
        // A server that has answered on the last connection did not refuse that one.
        history.refused &= !*answered;
        (*answered, *congested, *opening_since, *handshake) = (false, false, at, None);
        true
    }

    /// Whether the connection takes no request until its socket takes bytes.
    pub fn is_congested(&self) -> bool {
        self.state == ConnectionState::Full && self.session.waiting_bytes() > OUTBOX_MAX_BYTES
    }
}

impl<C> Connection<C> {
    /// The state of the connection.
    #[inline(always)]
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// The identity of the connection, given its slot. A list that outlives a turn holds this identity and not the slot
    /// alone.
    #[inline(always)]
    pub fn id(&self, slot: usize) -> ConnId {
        ConnId { slot: slot as u32, generation: self.generation }
    }

    /// Whether the connection in this slot is still the connection with this identity.
    #[inline(always)]
    pub fn is(&self, id: ConnId) -> bool {
        self.generation == id.generation
    }

    /// Since when the connection is being opened; `None` where it is not being opened.
    pub fn opening_since(&self) -> Option<Nanos> {
        self.state.is_opening().then_some(self.opening_since)
    }

    /// Since when the connection, which is being opened, waits for its server: since the backend began to open it, or
    /// since the handshake was sent; `None` where it is not being opened.
    pub fn waits_to_open_since(&self) -> Option<Nanos> {
        let handshake_since = self.handshake.as_ref().map_or(0, |handshake| handshake.begun());
        self.opening_since().map(|since| since.max(handshake_since))
    }

    /// Time at which the backend last began to open the connection.
    pub fn dialled_at(&self) -> Nanos {
        self.opening_since
    }

    /// The handshake that the server has not agreed to yet, if there is one.
    pub fn handshake_mut(&mut self) -> Option<&mut PendingHandshake> {
        self.handshake.as_deref_mut()
    }

    /// Changes the state. No other function does. Gives the slot a new generation where another connection begins or
    /// this one ends. Returns the state before; `None` where the change is ignored.
    #[inline(always)]
    fn change(&mut self, change: ConnectionChange) -> Option<ConnectionState> {
        let next = self.state.after(change)?;
        if change.renews() {
            self.generation = self.generation.wrapping_add(1);
            self.handshake = None;
        }
        Some(std::mem::replace(&mut self.state, next))
    }

    /// Queues the connection to be opened. Returns whether the connection was closed before.
    pub fn enqueue(&mut self) -> bool {
        self.change(ConnectionChange::Enqueue).is_some()
    }

    /// Begins `handshake` on the connection, which the server has taken. Ignored where the connection is not being
    /// opened.
    pub fn begin_handshake(&mut self, handshake: Box<PendingHandshake>) {
        if self.change(ConnectionChange::Handshake).is_some() {
            self.handshake = Some(handshake);
        }
    }

    /// Marks the connection as open. Returns since when it was being opened; `None`, without a change, where it was not
    /// being opened.
    pub fn open(&mut self) -> Option<Nanos> {
        self.change(ConnectionChange::Open)?;
        self.handshake = None;
        self.history.failures = 0;
        Some(self.opening_since)
    }

    /// The socket took fewer bytes than it was offered.
    #[inline(always)]
    pub fn fill(&mut self) {
        self.change(ConnectionChange::Fill);
    }

    /// The socket takes bytes again.
    #[inline(always)]
    pub fn drain(&mut self) {
        self.change(ConnectionChange::Drain);
    }

    /// Queues the connection again after a failed attempt, to be opened by another address.
    pub fn retry(&mut self) {
        self.change(ConnectionChange::Retry);
    }

    /// Closes the connection, or gives up the attempt to open it. Returns the state before.
    pub fn close(&mut self) -> ConnectionState {
        self.change(ConnectionChange::Close).unwrap_or(ConnectionState::Closed)
    }

    /// Closes the connection and forgets its failures, for the next client of the slot. Returns the state before.
    pub fn reset(&mut self) -> ConnectionState {
        self.history = AttemptHistory { attempt: self.history.attempt, ..AttemptHistory::default() };
        self.close()
    }

    /// Whether the server refused the connection the last time, and has not answered on it since.
    pub fn is_refused(&self) -> bool {
        self.history.refused && !self.answered
    }

    /// Counts the end of an open connection, which was the server's doing if `by_server` is set, and whether it was
    /// without a reply.
    pub fn note_end(&mut self, by_server: bool) {
        match by_server {
            _ if self.answered => self.history.failures_without_reply = 0,
            true => {
                let failures = &mut self.history.failures_without_reply;
                *failures = failures.saturating_add(1);
            }
            false => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pummel_logic::connection::inflight::Ticket;
    use pummel_logic::connection::session::{Answer, Chunk, Item, Sink};
    use pummel_logic::protocol::Malformed;
    use pummel_logic::protocol::handshake::Handshake;
    use pummel_logic::protocol::text::Text;

    use super::*;
    use crate::worker::opening::Openings;

    const CHANGES: [ConnectionChange; 8] = [
        ConnectionChange::Enqueue,
        ConnectionChange::Dial,
        ConnectionChange::Handshake,
        ConnectionChange::Open,
        ConnectionChange::Fill,
        ConnectionChange::Drain,
        ConnectionChange::Retry,
        ConnectionChange::Close,
    ];

    /// The next state for every state and every change, in the order of `CHANGES`; `None`: ignored.
    #[rustfmt::skip]
    const TABLE: [(ConnectionState, [Option<ConnectionState>; 8]); 6] = {
        use ConnectionState::{Closed, Full, Handshake, Open, Opening, Queued};
        //           Enqueue       Dial           Handshake        Open        Fill        Drain       Retry         Close
        [
            (Closed, [Some(Queued), Some(Opening), None,            None,       None,       None,       None,         Some(Closed)]),
            (Queued, [None,         Some(Opening), None,            None,       None,       None,       None,         Some(Closed)]),
            (Opening, [None,        None,          Some(Handshake), Some(Open), None,       None,       Some(Queued), Some(Closed)]),
            (Handshake, [None,      None,          None,            Some(Open), None,       None,       Some(Queued), Some(Closed)]),
            (Open,   [None,         None,          None,            None,       Some(Full), None,       None,         Some(Closed)]),
            (Full,   [None,         None,          None,            None,       None,       Some(Open), None,         Some(Closed)]),
        ]
    };

    fn connection(state: ConnectionState) -> Connection<Text> {
        Connection { state, ..Connection::new((1, 1), 1) }
    }

    #[test]
    fn every_change_in_every_state_leads_to_the_state_of_the_table_or_is_ignored() {
        for (state, nexts) in TABLE {
            for (change, next) in CHANGES.into_iter().zip(nexts) {
                assert_eq!(state.after(change), next, "{change:?} in {state:?}");
                let mut connection = connection(state);
                assert_eq!(connection.change(change), next.map(|_| state), "{change:?} in {state:?}");
                assert_eq!(connection.state(), next.unwrap_or(state), "{change:?} in {state:?}");
            }
        }
    }

    #[test]
    fn a_name_outlives_its_connection_and_never_means_another_one() {
        let renewing = [ConnectionChange::Dial, ConnectionChange::Retry, ConnectionChange::Close];
        for (state, nexts) in TABLE {
            for (change, next) in CHANGES.into_iter().zip(nexts) {
                let mut connection = connection(state);
                let id = connection.id(3);
                connection.change(change);
                let renewed = next.is_some() && renewing.contains(&change);
                assert_eq!(connection.is(id), !renewed, "{change:?} in {state:?}");
            }
        }
    }

    #[test]
    fn the_handshake_ends_with_its_state() {
        let handshake = Handshake::resp2(None, 1);
        let mut openings = Openings::new(Arc::new(handshake), 1);
        for end in [ConnectionChange::Open, ConnectionChange::Retry, ConnectionChange::Close] {
            let mut connection = connection(ConnectionState::Opening);
            let pending = openings.handshake(connection.id(3)).expect("there is something to say");
            connection.begin_handshake(pending);
            assert!(connection.handshake_mut().is_some());
            match end {
                ConnectionChange::Open => assert!(connection.open().is_some()),
                ConnectionChange::Retry => connection.retry(),
                _ => assert_eq!(connection.close(), ConnectionState::Handshake),
            }
            assert!(connection.handshake_mut().is_none(), "{end:?}");
        }
    }

    #[test]
    fn a_session_begins_with_its_connection() {
        let mut connection = connection(ConnectionState::Closed);
        let mut sink = Nowhere;
        assert!(connection.dial(1, Text::new(), Transport::Stream));
        // Half a line that nothing was asked for.
        let chunk = || Chunk { bytes: b"EN", stamp: None, read: 2 };
        assert_eq!(connection.session.handle_received(chunk(), &mut sink), Ok(0));
        connection.close();
        assert!(connection.dial(3, Text::new(), Transport::Stream));
        let whole = Chunk { bytes: b"VERSION 1\r\n", stamp: None, read: 4 };
        let why = connection.session.handle_received(whole, &mut sink).expect_err("nothing was asked for");
        assert_eq!(why.0, "a reply to no request", "and no other word: {why:?}");
    }

    struct Nowhere;

    impl Sink for Nowhere {
        fn item(&mut self, _: &Ticket, _: Item<'_>) -> Result<bool, Malformed> {
            Ok(false)
        }

        fn body(&mut self, _: &Ticket, _: &[u8]) {}

        fn quiet_error(&mut self, _: &[u8]) {}

        fn answer(&mut self, _: &Answer<'_>, _: &[u8]) {}
    }
}
