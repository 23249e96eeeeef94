//! Connections to servers beside those of the load: one to each server, all of them on one backend and one thread.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pummel_logic::plan::{Clock, Socket, Wait};
use pummel_logic::protocol::Fault;
use pummel_logic::protocol::handshake::{Handshake, HandshakeProgress, HandshakeReader, HandshakeRefused};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};

use crate::backend::epoll::Epoll;
use crate::backend::tls::{Setup, Tls};
use crate::backend::{Backend, Close, ConnId, Event};
use crate::resolve::Server;
use pummel_measure::trouble::CloseReason;

/// Longest wait after which a caller can look whether it is to go on, in nanoseconds.
const LOOK_NS: Nanos = 10 * MILLISECOND;

/// The options and limits of side connections.
pub struct SideOptions<'a> {
    /// Options of the sockets.
    pub socket: &'a Socket,
    /// Encryption of the connections.
    pub tls: Option<&'a Setup>,
    /// The handshake with which each connection begins.
    pub handshake: Arc<Handshake>,
    /// Time that a connection to one address may take to open, with its TLS handshake, in nanoseconds.
    pub open_ns: Nanos,
    /// Most bytes that are kept of what a server sent and the caller has not taken.
    pub received_bytes: usize,
}

/// The side connections to some servers, which are named by their numbers. All are closed at first.
pub struct SideConnections {
    backend: SideBackend,
    servers: Arc<[Server]>,
    handshake: Arc<Handshake>,
    open_ns: Nanos,
    received_max_bytes: usize,
    sides: Vec<SideConnection>,
    /// Events that [`SideConnections::poll`] has not returned yet.
    events: VecDeque<(ConnId, Happened)>,
}

/// The backend of side connections, with TLS or without.
enum SideBackend {
    Plain(Box<Epoll>),
    Encrypted(Box<Tls<Epoll>>),
}

/// Evaluates an expression with a side backend under its own type.
macro_rules! with_backend {
    ($side_backend:expr, $backend:ident => $value:expr) => {
        match $side_backend {
            SideBackend::Plain($backend) => $value,
            SideBackend::Encrypted($backend) => $value,
        }
    };
}

/// The side connection to one server.
struct SideConnection {
    state: State,
    generation: u32,
    /// Whether the backend has reported the end of the connection; events from before that may be handled still.
    is_over: bool,
    /// The address of the server that is tried next, by its number.
    attempt: usize,
    /// Addresses that did not take the connection since it was dialled.
    refused: usize,
    /// Connections that were opened so far.
    opened: u64,
    /// When the wait for the connection or for an answer ends, on the monotonic clock.
    deadline: Nanos,
    /// Bytes that wait to be sent.
    out: Vec<u8>,
    /// Bytes that were received and not taken.
    received: Vec<u8>,
}

enum State {
    Closed,
    Opening,
    Handshake(Box<HandshakeReader>),
    Open,
}

enum Happened {
    Opened,
    Received(Vec<u8>, Nanos),
    Writable,
    Closed(CloseReason),
    Late,
}

/// Event on a side connection.
#[derive(Debug)]
pub enum SideEvent {
    /// The connection is open, and the server has let it in.
    Open,
    /// More was received, at this time on the monotonic clock.
    Received(Nanos),
    /// The answer did not come before the deadline. The connection is still open.
    Late,
    /// The connection is closed, for this reason, and these bytes had been received and not taken.
    Closed(Failure, Vec<u8>),
}

/// Why a side connection is closed.
#[derive(Debug)]
pub enum Failure {
    /// No address of the server took the connection; the reason of the last one.
    NotOpened(CloseReason),
    /// The connection broke, or was closed by the server.
    Lost(CloseReason),
    /// The server refused the login.
    Refused(HandshakeRefused),
    /// The server sent more than is kept.
    TooLong,
}

impl SideConnection {
    fn new() -> SideConnection {
        SideConnection {
            state: State::Closed,
            generation: 0,
            is_over: false,
            attempt: 0,
            refused: 0,
            opened: 0,
            deadline: NEVER,
            out: Vec::new(),
            received: Vec::new(),
        }
    }

    fn id(&self, number: usize) -> ConnId {
        ConnId { slot: number as u32, generation: self.generation }
    }

    /// Whether this is the connection that is open, or being opened.
    fn is(&self, conn: ConnId) -> bool {
        self.generation == conn.generation && !matches!(self.state, State::Closed)
    }

    /// Forgets the connection, and returns what was received and not taken.
    fn forget(&mut self) -> Vec<u8> {
        self.state = State::Closed;
        self.deadline = NEVER;
        self.out.clear();
        std::mem::take(&mut self.received)
    }
}

impl SideConnections {
    /// Side connections to these servers, for the calling thread.
    ///
    /// # Errors
    /// Returns the error of the kernel when it gives no backend.
    pub fn new(servers: Arc<[Server]>, options: SideOptions<'_>) -> io::Result<SideConnections> {
        let epoll = Epoll::new(Wait::Block, Clock::User, options.socket)?;
        Ok(SideConnections {
            backend: match options.tls {
                None => SideBackend::Plain(Box::new(epoll)),
                Some(setup) => SideBackend::Encrypted(Box::new(Tls::new(epoll, setup))),
            },
            sides: servers.iter().map(|_| SideConnection::new()).collect(),
            servers,
            handshake: options.handshake,
            open_ns: options.open_ns,
            received_max_bytes: options.received_bytes,
            events: VecDeque::new(),
        })
    }

    /// Server number `number`.
    pub fn server(&self, number: usize) -> &Server {
        &self.servers[number]
    }

    /// The time on the monotonic clock.
    pub fn now(&self) -> Nanos {
        with_backend!(&self.backend, backend => backend.now())
    }

    /// The sockets of the connections that are open, or being opened.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let epoll: &Epoll = match &self.backend {
            SideBackend::Plain(epoll) => epoll,
            SideBackend::Encrypted(tls) => tls.inner(),
        };
        let dialled = self.sides.iter().enumerate().filter(|(_, side)| !matches!(side.state, State::Closed));
        dialled.filter_map(|(number, side)| epoll.socket(side.id(number)))
    }

    /// Whether server number `number` has let its connection in.
    pub fn is_open(&self, number: usize) -> bool {
        matches!(self.sides[number].state, State::Open)
    }

    /// Whether there is no connection to server number `number`, nor one being opened.
    pub fn is_closed(&self, number: usize) -> bool {
        matches!(self.sides[number].state, State::Closed)
    }

    /// The number of connections that server number `number` has taken so far.
    pub fn opened(&self, number: usize) -> u64 {
        self.sides[number].opened
    }

    /// Opens the closed connection to server number `number`. The addresses of the server are tried in turn, each
    /// once.
    pub fn dial(&mut self, number: usize) {
        self.sides[number].refused = 0;
        self.dial_next(number);
    }

    fn dial_next(&mut self, number: usize) {
        let now = self.now();
        let side = &mut self.sides[number];
        // All that belongs to a connection begins anew; what is named here belongs to the server.
        *side = SideConnection {
            generation: side.generation.wrapping_add(1),
            attempt: side.attempt,
            refused: side.refused,
            opened: side.opened,
            state: State::Opening,
            deadline: now.saturating_add(self.open_ns),
            ..SideConnection::new()
        };
        let target = self.servers[number].target(0, side.attempt);
        with_backend!(&mut self.backend, backend => backend.open(side.id(number), &target));
    }

    /// Closes the connection to server number `number`.
    pub fn close(&mut self, number: usize) {
        let side = &mut self.sides[number];
        if !matches!(side.state, State::Closed) && !side.is_over {
            with_backend!(&mut self.backend, backend => backend.close(side.id(number), Close::Fin));
        }
        side.forget();
    }

    /// Sends these bytes on the connection to server number `number`, which is open.
    pub fn send(&mut self, number: usize, bytes: &[u8]) {
        self.sides[number].out.extend_from_slice(bytes);
        self.send_waiting(number);
    }

    /// Lets [`SideEvent::Late`] follow unless the deadline is set anew in the next `within_ns` nanoseconds.
    pub fn expect(&mut self, number: usize, within_ns: Nanos) {
        self.sides[number].deadline = self.now().saturating_add(within_ns);
    }

    /// The bytes that server number `number` sent and that were not taken.
    pub fn received(&self, number: usize) -> &[u8] {
        &self.sides[number].received
    }

    /// Takes the first `count` bytes off those that were received from server number `number`.
    pub fn take(&mut self, number: usize, count: usize) {
        self.sides[number].received.drain(..count);
    }

    /// Waits until something happens, at most until the time `until`, and for 10 ms at most, so that the caller can look whether
    /// it is to go on. Returns the time.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        let look_at = self.now().saturating_add(LOOK_NS);
        let now = with_backend!(&mut self.backend, backend => backend.wait(until.min(look_at)))?;
        let events = &mut self.events;
        let mut on = |conn, event: Event<'_>| {
            let happened = match event {
                Event::Opened { .. } => Happened::Opened,
                Event::Received { bytes, read, .. } => Happened::Received(bytes.to_vec(), read),
                Event::Writable => Happened::Writable,
                Event::Closed(reason) => Happened::Closed(reason),
            };
            events.push_back((conn, happened));
        };
        with_backend!(&mut self.backend, backend => backend.drain(&mut on));
        // Nothing is sent to a connection that is over, also where it was opened in the same turn.
        for (conn, happened) in &self.events {
            if let (Happened::Closed(_), Some(side)) = (happened, self.sides.get_mut(conn.slot as usize)) {
                side.is_over |= side.generation == conn.generation;
            }
        }
        let sides = self.sides.iter().enumerate();
        self.events.extend(sides.filter(|(_, side)| side.deadline <= now).map(|(number, side)| {
            // What came in the same turn is handled first.
            (side.id(number), Happened::Late)
        }));
        Ok(now)
    }

    /// The next event, with the number of its server; `None` once all known events were returned.
    pub fn poll(&mut self) -> Option<(usize, SideEvent)> {
        while let Some((conn, happened)) = self.events.pop_front() {
            let number = conn.slot as usize;
            // A connection that the caller has closed may have events from before.
            let is_current = self.sides.get(number).is_some_and(|side| side.is(conn));
            if let Some(event) = is_current.then(|| self.handle(number, happened)).flatten() {
                return Some((number, event));
            }
        }
        None
    }

    fn handle(&mut self, number: usize, happened: Happened) -> Option<SideEvent> {
        match happened {
            Happened::Opened => {
                let side = &mut self.sides[number];
                side.opened += 1;
                if self.handshake.is_none() {
                    return Some(self.let_in(number));
                }
                side.state = State::Handshake(Box::new(self.handshake.reader()));
                side.out.extend_from_slice(self.handshake.bytes());
                self.send_waiting(number);
                None
            }
            Happened::Writable => {
                self.send_waiting(number);
                None
            }
            Happened::Received(bytes, read) => self.receive(number, &bytes, read),
            Happened::Closed(reason) => self.closed(number, reason),
            Happened::Late => self.late(number),
        }
    }

    fn let_in(&mut self, number: usize) -> SideEvent {
        let side = &mut self.sides[number];
        (side.state, side.deadline) = (State::Open, NEVER);
        SideEvent::Open
    }

    fn send_waiting(&mut self, number: usize) {
        let side = &mut self.sides[number];
        if side.out.is_empty() || side.is_over {
            return;
        }
        let (id, out) = (side.id(number), [IoSlice::new(&side.out)]);
        let handed = with_backend!(&mut self.backend, backend => backend.send(id, &out));
        side.out.drain(..handed.taken);
    }

    fn receive(&mut self, number: usize, bytes: &[u8], read: Nanos) -> Option<SideEvent> {
        let side = &mut self.sides[number];
        if side.received.len() + bytes.len() > self.received_max_bytes {
            return self.give_up(number, Failure::TooLong);
        }
        side.received.extend_from_slice(bytes);
        let State::Handshake(reader) = &mut side.state else { return Some(SideEvent::Received(read)) };
        let mut rest = side.received.as_slice();
        let progress = reader.handle_received(&mut rest);
        let taken = side.received.len() - rest.len();
        match progress {
            Ok(progress) => {
                side.received.drain(..taken);
                (progress == HandshakeProgress::Done).then(|| self.let_in(number))
            }
            Err(refused) => self.give_up(number, Failure::Refused(refused)),
        }
    }

    /// Closes the connection for a reason of this side.
    fn give_up(&mut self, number: usize, failure: Failure) -> Option<SideEvent> {
        let received = std::mem::take(&mut self.sides[number].received);
        self.close(number);
        Some(SideEvent::Closed(failure, received))
    }

    /// Takes in the end of a connection. One that was not opened is tried at the next address.
    fn closed(&mut self, number: usize, reason: CloseReason) -> Option<SideEvent> {
        let side = &mut self.sides[number];
        let was_opening = matches!(side.state, State::Opening);
        let received = side.forget();
        if !was_opening {
            return Some(SideEvent::Closed(Failure::Lost(reason), received));
        }
        side.attempt += 1;
        side.refused += 1;
        if side.refused < self.servers[number].addresses() {
            self.dial_next(number);
            return None;
        }
        Some(SideEvent::Closed(Failure::NotOpened(reason), received))
    }

    fn late(&mut self, number: usize) -> Option<SideEvent> {
        let now = self.now();
        let side = &mut self.sides[number];
        if side.deadline > now {
            return None;
        }
        side.deadline = NEVER;
        match side.state {
            State::Closed => None,
            State::Open => Some(SideEvent::Late),
            State::Opening | State::Handshake(_) => {
                with_backend!(&mut self.backend, backend => backend.close(side.id(number), Close::Fin));
                self.closed(number, CloseReason::new(Fault::Timeout, 0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use pummel_logic::protocol::handshake::Credentials;
    use pummel_logic::time::SECOND;

    use super::*;
    use crate::resolve::Sources;

    /// A side connection to a server of the test, which keeps at most 8 bytes.
    fn connections(handshake: Handshake) -> (SideConnections, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = listener.local_addr().unwrap().to_string();
        let servers = [Server::resolve(&name, &Sources::default()).unwrap()];
        let (socket, handshake) = (&Socket::default(), Arc::new(handshake));
        let options = SideOptions { socket, tls: None, handshake, open_ns: 30 * SECOND, received_bytes: 8 };
        (SideConnections::new(servers.into(), options).unwrap(), listener)
    }

    /// Waits for the next event, for 30 s at most.
    fn next(connections: &mut SideConnections) -> SideEvent {
        let until = connections.now() + 30 * SECOND;
        loop {
            if let Some((_, event)) = connections.poll() {
                return event;
            }
            assert!(connections.wait(until).unwrap() < until, "nothing happens");
        }
    }

    /// Dials the server, and returns its end of the connection.
    fn dialled(connections: &mut SideConnections, listener: &TcpListener) -> TcpStream {
        connections.dial(0);
        listener.accept().unwrap().0
    }

    #[test]
    fn a_connection_begins_anew_with_each_dial() {
        let (mut connections, listener) = connections(Handshake::none());
        let mut first = dialled(&mut connections, &listener);
        assert!(matches!(next(&mut connections), SideEvent::Open));
        first.write_all(b"old").unwrap();
        assert!(matches!(next(&mut connections), SideEvent::Received(_)));
        assert_eq!(connections.received(0), b"old");
        // What comes from a connection that was closed meanwhile belongs to no other.
        first.write_all(b"older").unwrap();
        while connections.events.is_empty() {
            let soon = connections.now() + SECOND;
            connections.wait(soon).unwrap();
        }
        connections.close(0);
        assert!(connections.poll().is_none() && connections.is_closed(0));
        let mut second = dialled(&mut connections, &listener);
        assert!(matches!(next(&mut connections), SideEvent::Open));
        second.write_all(b"new").unwrap();
        assert!(matches!(next(&mut connections), SideEvent::Received(_)));
        assert_eq!((connections.received(0), connections.opened(0)), (&b"new"[..], 2));
    }

    #[test]
    fn a_server_that_sends_more_than_is_kept_is_left() {
        let (mut connections, listener) = connections(Handshake::none());
        let mut server = dialled(&mut connections, &listener);
        assert!(matches!(next(&mut connections), SideEvent::Open));
        server.write_all(b"12345678").unwrap();
        while connections.received(0).len() < 8 {
            assert!(matches!(next(&mut connections), SideEvent::Received(_)));
        }
        server.write_all(b"9").unwrap();
        let SideEvent::Closed(Failure::TooLong, received) = next(&mut connections) else {
            panic!("a ninth byte is kept");
        };
        assert_eq!(received, b"12345678");
        assert!(connections.is_closed(0));
        assert_eq!(server.read(&mut [0; 1]).unwrap(), 0, "the server sees the end");
    }

    #[test]
    fn a_silent_server_is_late_and_one_that_closes_is_lost_with_its_words() {
        let (mut connections, listener) = connections(Handshake::none());
        let mut server = dialled(&mut connections, &listener);
        assert!(matches!(next(&mut connections), SideEvent::Open));
        connections.send(0, b"question");
        connections.expect(0, MILLISECOND);
        assert!(matches!(next(&mut connections), SideEvent::Late));
        assert!(connections.is_open(0));
        server.read_exact(&mut [0; 8]).unwrap();
        server.write_all(b"full").unwrap();
        drop(server);
        let closed = loop {
            match next(&mut connections) {
                SideEvent::Received(_) => {}
                event => break event,
            }
        };
        let SideEvent::Closed(Failure::Lost(_), received) = closed else { panic!("{closed:?}") };
        assert_eq!(received, b"full");
    }

    #[test]
    fn a_connection_is_open_once_the_server_has_let_it_in() {
        let login = Credentials { user: b"", password: b"secret" };
        for (reply, is_let_in) in [(&b"+OK\r\n"[..], true), (b"-NO\r\n", false)] {
            let (mut connections, listener) = connections(Handshake::resp2(Some(login), 0));
            let mut server = dialled(&mut connections, &listener);
            server.write_all(reply).unwrap();
            match next(&mut connections) {
                SideEvent::Open => assert!(is_let_in && connections.is_open(0)),
                SideEvent::Closed(Failure::Refused(_), _) => assert!(!is_let_in && connections.is_closed(0)),
                other => panic!("{other:?}"),
            }
            let mut sent = [0; 32];
            let count = server.read(&mut sent).unwrap();
            assert!(sent[..count].windows(6).any(|word| word == b"secret"));
        }
    }
}
