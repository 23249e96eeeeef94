//! A worker's reports of its connections, of clients that come and go, and of the messages of servers.

use pummel_logic::protocol::udp;
use pummel_logic::time::Nanos;
use pummel_logic::workload::request::RequestMaker;
use pummel_measure::churn::{Churn, ConnectionFailure};
use pummel_measure::connections::SERVERS_TIMED_MAX;
use pummel_measure::counters::SliceConnections;
use pummel_measure::events::{ConnectionEvent, Departure};
use pummel_measure::histogram::CoarseHistogram;
use pummel_measure::trouble::CloseReason;
use pummel_measure::trouble::Trouble;

use crate::backend::TlsHandshake;
use crate::backend::dial::failure_of;
use crate::worker::messages::{Messages, WorkerMessage};
use crate::worker::reporter::{ReportMode, WorkerReporter};

/// Most different messages of servers that are kept, and most bytes of each. The message of Redis in protected mode
/// has about 990 bytes.
const MESSAGES: (usize, usize) = (8, 1_024);

/// Number of equal messages of servers that are passed on at once.
const COMPLAINTS: u64 = 10;

impl WorkerReporter {
    /// Counts a connection that was opened within `took` nanoseconds. `again` says that it is a reconnection.
    pub fn opened(&mut self, server: u32, took: Nanos, again: bool) {
        if again && self.tells_connections {
            self.offer(WorkerMessage::Connection { server, event: ConnectionEvent::Back });
        }
        self.end.connections.connect.record(took);
        let (server, times) = (server as usize, &mut self.end.connections.connect_by_server);
        if server < SERVERS_TIMED_MAX {
            times.resize_with(times.len().max(server + 1), CoarseHistogram::default);
            times[server].record(took);
        }
        self.end.connections.reconnected += u64::from(again);
        self.of_slice(|slice| {
            slice.opened += 1;
            slice.reopened += u64::from(again);
        });
    }

    /// Counts a change of a connection in the slice under way, if the phase is measured.
    fn of_slice(&mut self, count: impl FnOnce(&mut SliceConnections)) {
        if let ReportMode::Record(_) = self.mode {
            count(&mut self.interval.counters.connections);
        }
    }

    /// Counts an open connection that its client closed, of those that come and go.
    pub fn closed(&mut self) {
        self.of_slice(|slice| slice.closed += 1);
    }

    /// Notes that a client came, of those that come and go.
    pub fn client_begun(&mut self) {
        self.of_slice(|slice| slice.begun += 1);
    }

    /// Notes that a client ended, of those that come and go.
    pub fn client_ended(&mut self) {
        self.of_slice(|slice| slice.ended += 1);
    }

    /// Counts a TLS handshake that has succeeded.
    pub fn shook_hands(&mut self, handshake: TlsHandshake) {
        self.end.connections.handshake.record(handshake.took);
        self.end.connections.resumed += u64::from(handshake.resumed);
    }

    /// Counts an attempt to open a connection that has failed.
    pub fn not_opened(&mut self, server: u32, reason: CloseReason) {
        let connections = &mut self.end.connections;
        connections.failed += 1;
        match failure_of(&reason) {
            ConnectionFailure::Refused | ConnectionFailure::Reset => connections.turned_away += 1,
            // The other error says that the address is none of this machine's.
            ConnectionFailure::Addresses if reason.errno == libc::EADDRINUSE => connections.no_port += 1,
            _ => {}
        }
        self.of_slice(|slice| slice.failed += 1);
        self.trouble(server, Trouble::NotOpened(reason));
    }

    /// Counts an open connection that is lost.
    pub fn lost(&mut self, server: u32, trouble: Trouble) {
        if self.tells_connections {
            self.offer(WorkerMessage::Connection { server, event: ConnectionEvent::Lost });
        }
        self.end.connections.lost += 1;
        self.of_slice(|slice| slice.lost += 1);
        let errors = self.end.messages.iter().map(|(words, _)| words.as_slice());
        self.trouble(server, trouble.after(errors));
    }

    fn trouble(&mut self, server: u32, trouble: Trouble) {
        if let Some(departures) = &mut self.departures {
            departures.note(&trouble);
        }
        self.end.trouble.get_or_insert((server, trouble));
    }

    /// Reports that a connection is lost and is not opened again.
    pub fn gone(&mut self) {
        self.sender.say(WorkerMessage::Gone);
    }

    /// Notes that a request was given up whose connection goes on.
    pub fn late(&mut self, server: u32) {
        self.late.get_or_insert(server);
    }

    /// Counts an open connection that its server has refused: an attempt that has failed. `again` says that its opening
    /// was counted as a reconnection.
    pub fn refused(&mut self, server: u32, trouble: Trouble, again: bool) {
        if self.tells_connections {
            self.offer(WorkerMessage::Connection { server, event: ConnectionEvent::Lost });
        }
        self.end.connections.failed += 1;
        self.end.connections.turned_away += 1;
        self.end.connections.reconnected -= u64::from(again);
        self.of_slice(|slice| slice.failed += 1);
        let errors = self.end.messages.iter().map(|(words, _)| words.as_slice());
        self.trouble(server, trouble.after(errors));
    }

    /// Notes the refusals of each server. `connections` says of a server how many connections the worker has to it, and how
    /// many of them it refused the last time.
    pub fn note_refusals(&mut self, connections: impl Fn(u32) -> (u64, u64)) {
        self.end.connections.refusals = self.refusals.take(connections);
    }

    /// Adds the counts of a connection's datagrams.
    pub fn add_datagrams(&mut self, counts: &udp::DatagramCounts) {
        self.end.udp.add(counts);
    }

    /// Counts an error, on the connection in `slot`, of a request that asked for no reply and was counted as sent before.
    pub fn quiet_error(&mut self, slot: usize, message: &[u8]) {
        self.end.noreply_errors += 1;
        self.message_on(Some(slot), message);
    }

    /// Counts a message that no request asked for, by its name.
    pub fn push(&mut self, name: &[u8]) {
        note_message(&mut self.end.pushes, name);
    }

    /// Notes the server's message on the connection in `slot`; `None` where several connections share the request.
    #[cold]
    pub(super) fn message_on(&mut self, slot: Option<usize>, message: &[u8]) {
        if let Some(slot) = slot {
            self.refusals.note_words(slot, message);
        }
        self.message(message);
    }

    fn message(&mut self, message: &[u8]) {
        if message.is_empty() {
            return;
        }
        let message = &message[..message.len().min(MESSAGES.1)];
        if let Some(load) = &mut self.load {
            note_message(&mut load.messages, message);
        }
        // The messages of a recorded load belong to the measurement as well.
        if self.load.is_none() || self.mode != ReportMode::Count {
            note_message(&mut self.end.messages, message);
        }
    }

    /// Takes the counts and findings of clients with windows from `maker`, and reports the server's message on the
    /// connection in `slot`.
    pub fn window(&mut self, slot: usize, maker: &mut RequestMaker, message: &[u8]) {
        let counts = maker.window_mut().take_counts();
        if let ReportMode::Record(_) = self.mode {
            self.interval.counters.window.add(&counts);
        }
        let connection = self.first_connection + slot as u64;
        for finding in maker.window_mut().take_findings() {
            self.offer(WorkerMessage::Finding { connection, finding: Box::new(finding) });
        }
        if message.is_empty() {
            return;
        }
        let known = &self.end.messages;
        let kept = &message[..message.len().min(MESSAGES.1)];
        if known.iter().any(|(text, count)| text == kept && *count <= COMPLAINTS) {
            self.offer(WorkerMessage::Complaint { connection, words: kept.to_vec() });
        }
    }

    /// Notes that the last trouble was that of the connection in `slot`.
    pub fn failed(&mut self, slot: usize) {
        if let Some(departures) = &mut self.departures {
            departures.failed(slot);
        }
    }

    /// Notes the departure of the client in `slot`.
    pub fn retired(&mut self, slot: usize, departure: impl FnOnce() -> Departure) {
        let Some(departures) = &mut self.departures else { return };
        let gone = departures.add(slot, departure());
        match (self.mode, gone) {
            (ReportMode::Count, _) => drop(departures.take()),
            (ReportMode::Record(_), Some(gone)) => self.offer_departures(gone),
            (ReportMode::Record(_), None) => {}
        }
    }

    /// The account of clients that come and go; `None` where no clients do, or where the phase is not measured.
    pub fn churn(&mut self) -> Option<&mut Churn> {
        match self.mode {
            ReportMode::Record(_) => {
                self.churn_account.as_mut().map(|churn_account| &mut churn_account.churn)
            }
            ReportMode::Count => None,
        }
    }

    /// Notes the bytes of the reply whose request ends next.
    pub fn note_reply_bytes(&mut self, bytes: u64) {
        if let Some(churn_account) = &mut self.churn_account {
            churn_account.reply_bytes = bytes;
        }
    }

    /// Notes that the next request to end is cut off by the end of its connection. `whole` says that all of it was sent.
    pub fn cut_off(&mut self, whole: bool) {
        if let Some(churn_account) = &mut self.churn_account {
            churn_account.cut = !whole;
        }
    }
}

/// Counts a server's message among the known ones, or adds it while there is room.
fn note_message(known: &mut Messages, message: &[u8]) {
    if let Some((_, count)) = known.iter_mut().find(|(text, _)| text == message) {
        *count += 1;
    } else if known.len() < MESSAGES.0 {
        known.push((message.to_vec(), 1));
    }
}
