//! The loop of the built-in server: one thread, epoll, and a timer for replies that are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use clap::ValueEnum;
use pummel_engine::backend::stamps::Stamps;
use pummel_logic::plan::Clock;
use pummel_logic::time::{MICROSECOND, MILLISECOND, NEVER, Nanos, SECOND};
use pummel_testserver::{DatagramQueue, Ending, Framing, Server, ServerConnection};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::serve::accounts::Accounts;
use crate::serve::error::ServeError;
use crate::serve::listen::{ClientStream, Listener};
use crate::serve::peer::{Change, Peer};
use crate::stderr::say;

/// Before a due reply the loop spins for this long: about what the kernel needs to wake a sleeping thread.
const SPIN_NS: Nanos = 60 * MICROSECOND;

/// Bytes of one read. Small enough that what they ask for stays within bounds before the backlog is looked at again.
const READ_BYTES: usize = 16 * 1024;

/// When the last request came, what is owed is sent for at most this long.
const DRAIN_MAX_NS: Nanos = 5 * SECOND;

/// After a signal, what the kernel had received is read for at most this long: clients that go on asking must not keep the
/// server from ending.
const LAST_LOOK_MAX_NS: Nanos = SECOND / 2;

/// By how much a stamp may lie behind the read, and by how much ahead of it, before the clocks are compared again.
const STAMP_OLD_NS: Nanos = MILLISECOND;
const STAMP_AHEAD_NS: Nanos = MICROSECOND;

/// Between two comparisons of the clocks for the sake of such stamps: on a busy server every stamp may be old.
const DOUBT_GAP_NS: Nanos = 10 * MILLISECOND;

const EVENTS_MAX: usize = 256;

/// Names in epoll of what is not a connection; a connection has its slot for a name.
const SIGNAL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const PEER: u64 = u64::MAX - 2;
const FIRST_TCP: u64 = u64::MAX / 2;
const FIRST_UDP: u64 = u64::MAX / 4 * 3;

/// The monotonic clock.
pub(super) fn now() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Unix time at time 0 of the monotonic clock.
pub(super) fn unix_ns_at_zero() -> Nanos {
    nanos(clock_gettime(ClockId::Realtime)).saturating_sub(now())
}

fn nanos(time: Timespec) -> Nanos {
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// When the server ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) end: Option<Nanos>,
    pub(super) requests_max: Option<u64>,
}

/// How the built-in server waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServeWait {
    /// Sleep, and spin before a due reply
    Auto,
    /// Never sleep
    Spin,
}

/// When requests arrive. A request has arrived when the kernel received it, and not when this thread got a CPU to read it.
#[derive(Debug)]
struct Arrivals {
    /// `None` where the kernel has no receive stamps: a request then arrives when it is read.
    stamps: Option<Stamps>,
    /// The latest arrival.
    latest: Nanos,
    /// Before this time, no doubtful stamp makes the clocks be compared.
    doubt_from: Nanos,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// Nothing is read any more; what is owed is sent until this time.
    Draining(Nanos),
    Over,
}

/// A connection: its socket, what the server core knows of it, and what epoll and the timer were told.
#[derive(Debug)]
struct Connection {
    stream: ClientStream,
    state: ServerConnection,
    /// Which use of the slot this is: what an earlier use left over has another generation.
    generation: u64,
    interest: EventFlags,
    /// The last send was short: nothing is tried before the socket takes more.
    blocked: bool,
    /// The earliest time at which the queue of due replies names this connection.
    scheduled: Nanos,
    /// Bytes of replies that TLS took, where the socket did not take them all. They count as sent when it has.
    unflushed: usize,
}

/// A UDP socket, and the datagrams that are to be sent there.
#[derive(Debug)]
struct UdpListener {
    socket: UdpSocket,
    queue: DatagramQueue<SocketAddr>,
}

/// The sockets that connections and datagrams come in by, and what their connections share.
pub(super) struct Listeners {
    /// Listeners of connections: of TCP, and unix sockets.
    pub(super) tcp: Vec<Listener>,
    /// UDP sockets, and how replies are put into datagrams there.
    pub(super) udp: Vec<(UdpSocket, Framing)>,
    /// The configuration of TLS, where connections are encrypted.
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    /// The server that gets copies of what is stored.
    pub(super) peer: Option<Peer>,
}

pub(super) struct SocketServer {
    server: Server,
    epoll: OwnedFd,
    timer: OwnedFd,
    arrivals: Arrivals,
    /// Readable once a signal came; open as long as the server.
    _signals: UnixStream,
    /// In a cluster one for each node; `None` for a node that died.
    tcp: Vec<Option<Listener>>,
    /// The ports of nodes that died.
    retired: Vec<OwnedFd>,
    udp: Vec<UdpListener>,
    tls: Option<Arc<rustls::ServerConfig>>,
    peer: Option<Peer>,
    /// Slots and generations of connections whose replies wait for the peer.
    waiting_for_copy: Vec<(usize, u64)>,
    /// The process is out of file descriptors: no connection is accepted until one is closed.
    is_full: bool,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    generations: u64,
    dues: BinaryHeap<Reverse<(Nanos, usize, u64)>>,
    accounts: Option<Accounts>,
    bounds: Bounds,
    wait: ServeWait,
    stage: Stage,
    /// A signal came.
    is_signalled: bool,
    buffer: Box<[u8]>,
    /// Large enough for every datagram.
    datagram: Box<[u8]>,
}

impl SocketServer {
    pub(super) fn new(
        server: Server,
        listeners: Listeners,
        accounts: Option<Accounts>,
        bounds: Bounds,
        wait: ServeWait,
    ) -> Result<SocketServer, ServeError> {
        let wrap = |cause: io::Error| ServeError::new("cannot set up the server", cause);
        raise_descriptor_limit();
        let (signals, to_signals) = UnixStream::pair().map_err(wrap)?;
        for signal in [SIGINT, SIGTERM] {
            let pipe = to_signals.try_clone().map_err(wrap)?;
            signal_hook::low_level::pipe::register(signal, pipe).map_err(wrap)?;
        }
        let open = || -> rustix::io::Result<(OwnedFd, OwnedFd)> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let timer =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            epoll::add(&epoll, &signals, EventData::new_u64(SIGNAL), EventFlags::IN)?;
            // Edge-triggered, the timer need not be read: setting it anew forgets that it ran out.
            epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
            Ok((epoll, timer))
        };
        let (epoll, timer) = open().map_err(|errno| wrap(errno.into()))?;
        let arrivals = Arrivals::of(&listeners.tcp);
        if arrivals.stamps.is_none() && accounts.is_some() {
            say(format_args!(
                "pummel serve: this kernel does not stamp what it receives: in the truth file, a request arrives when the server \
                 reads it"
            ));
        }
        let server = SocketServer {
            server,
            epoll,
            timer,
            arrivals,
            _signals: signals,
            tcp: listeners.tcp.into_iter().map(Some).collect(),
            retired: Vec::new(),
            udp: listeners
                .udp
                .into_iter()
                .map(|(socket, framing)| UdpListener { socket, queue: DatagramQueue::new(framing) })
                .collect(),
            tls: listeners.tls,
            peer: listeners.peer,
            waiting_for_copy: Vec::new(),
            is_full: false,
            connections: Vec::new(),
            free: Vec::new(),
            generations: 0,
            dues: BinaryHeap::new(),
            accounts,
            bounds,
            wait,
            stage: Stage::Open,
            is_signalled: false,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            datagram: vec![0; 1 << 16].into_boxed_slice(),
        };
        server.start_accepting().map_err(|errno| wrap(errno.into()))?;
        for (number, listener) in server.udp.iter().enumerate() {
            let name = EventData::new_u64(FIRST_UDP + number as u64);
            epoll::add(&server.epoll, &listener.socket, name, EventFlags::IN)
                .map_err(|errno| wrap(errno.into()))?;
        }
        Ok(server)
    }

    /// Where the server listens, in the order of the command line.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.tcp
            .iter()
            .flatten()
            .map(|listener| listener.address().unwrap_or_else(|error| format!("? ({error})")))
            .collect()
    }

    /// Serves until it is over, and writes down what is left to tell.
    pub(super) fn run(mut self) -> Result<(), ServeError> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while self.stage != Stage::Over {
            let time = now();
            self.advance_cluster(time);
            self.send_due(time);
            self.poll_peer(time);
            self.send_datagrams();
            self.advance_stage(time);
            self.write_truth()?;
            if self.stage != Stage::Over {
                self.wait_for_events(&mut events)?;
                self.handle_all(&mut events);
            }
            if self.is_signalled {
                self.take_what_came(&mut events)?;
                self.stage = Stage::Over;
            }
        }
        for connection in self.connections.drain(..).flatten() {
            self.server.handle_closed(connection.state);
        }
        for listener in self.udp.drain(..) {
            self.server.handle_queue_closed(listener.queue);
        }
        self.write_truth()?;
        self.accounts.take().map_or(Ok(()), Accounts::finish)
    }

    /// Carries out what the kernel had received before a signal: it is part of the truth, also where it takes many reads, or came
    /// by connections that are only now accepted.
    fn take_what_came(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), ServeError> {
        let end = now() + LAST_LOOK_MAX_NS;
        loop {
            self.wait_for_events(events)?;
            let is_nothing_new = events.iter().all(|event| matches!(event.data.u64(), SIGNAL | TIMER));
            self.handle_all(events);
            self.write_truth()?;
            if is_nothing_new || end <= now() {
                return Ok(());
            }
        }
    }

    fn write_truth(&mut self) -> Result<(), ServeError> {
        match &mut self.accounts {
            Some(accounts) => accounts.write(&mut self.server),
            None => Ok(()),
        }
    }

    /// Makes the changes of the cluster that are due, and ends the connections of nodes that died.
    fn advance_cluster(&mut self, time: Nanos) {
        self.server.advance(time);
        for node in self.server.take_died() {
            // Where the port cannot be kept, another process may take it, as on any machine.
            let held = self.tcp[node].take().map(Listener::retire);
            self.retired.extend(held.and_then(|held| held.ok().flatten()));
            for slot in 0..self.connections.len() {
                if self.connections[slot].as_ref().is_some_and(|connection| connection.state.node() == node) {
                    self.close(slot);
                }
            }
        }
    }

    /// Sends the replies that have become due.
    fn send_due(&mut self, time: Nanos) {
        while let Some(&Reverse((due, slot, generation))) = self.dues.peek()
            && due <= time
        {
            self.dues.pop();
            if let Some(connection) = &mut self.connections[slot]
                && connection.generation == generation
            {
                if connection.scheduled == due {
                    connection.scheduled = NEVER;
                }
                self.send(slot);
            }
        }
    }

    /// Sends copies to the peer, and opens the way to it.
    fn poll_peer(&mut self, time: Nanos) {
        let Some(peer) = &mut self.peer else { return };
        let change = peer.poll(&mut self.server, time);
        self.follow_peer(change);
    }

    fn follow_peer(&mut self, change: Change) {
        match change {
            Change::None => {}
            Change::Opened => {
                let socket = self.peer.as_ref().and_then(Peer::socket);
                let interest = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                // Where it fails, the attempt ends with its time, and another one is made.
                let _ =
                    socket.map(|socket| epoll::add(&self.epoll, socket, EventData::new_u64(PEER), interest));
            }
            Change::Answered => {
                for (slot, generation) in std::mem::take(&mut self.waiting_for_copy) {
                    if self.connections[slot]
                        .as_ref()
                        .is_some_and(|connection| connection.generation == generation)
                    {
                        self.send(slot);
                    }
                }
            }
        }
    }

    fn advance_stage(&mut self, time: Nanos) {
        if self.bounds.end.is_some_and(|end| end <= time) {
            self.stage = Stage::Over;
        }
        match self.stage {
            Stage::Open if self.bounds.requests_max.is_some_and(|max| self.server.requests() >= max) => {
                self.stage = Stage::Draining(time + DRAIN_MAX_NS);
                for slot in 0..self.connections.len() {
                    self.renew_interest(slot);
                }
                self.forget_listeners();
                for listener in &self.udp {
                    // It was added, so it can only be there.
                    let _ = epoll::delete(&self.epoll, &listener.socket);
                }
                self.advance_stage(time);
            }
            Stage::Draining(end) if end <= time || self.owes_nothing() => self.stage = Stage::Over,
            Stage::Open | Stage::Draining(_) | Stage::Over => {}
        }
    }

    fn owes_nothing(&self) -> bool {
        let owes = |connection: &Connection| {
            connection.state.next_due() != NEVER || connection.state.waits_for_copy()
        };
        !self.connections.iter().flatten().any(owes)
            && self.udp.iter().all(|listener| listener.queue.next_due() == NEVER)
    }

    /// Waits until something happens or is due; only looks when that is so soon that sleeping would miss it.
    fn wait_for_events(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), ServeError> {
        let wrap = |errno: rustix::io::Errno| ServeError::new("cannot wait for requests", errno);
        let wake = self.next_time();
        let sleep_until = wake.saturating_sub(SPIN_NS);
        let look =
            self.is_signalled || self.wait == ServeWait::Spin || (wake != NEVER && sleep_until <= now());
        let timeout = look.then_some(Timespec { tv_sec: 0, tv_nsec: 0 });
        if !look && wake != NEVER {
            let at = Timespec { tv_sec: (sleep_until / SECOND) as i64, tv_nsec: (sleep_until % SECOND) as _ };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).map_err(wrap)?;
        }
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(wrap(errno)),
        }
    }

    fn next_time(&self) -> Nanos {
        let due = self.dues.peek().map_or(NEVER, |Reverse((due, ..))| *due);
        let drained = match self.stage {
            Stage::Draining(end) => end,
            Stage::Open | Stage::Over => NEVER,
        };
        let datagrams = self.udp.iter().map(|listener| listener.queue.next_due()).min().unwrap_or(NEVER);
        let peer = self.peer.as_ref().map_or(NEVER, Peer::next_time);
        let change = self.server.next_change();
        due.min(datagrams).min(drained).min(peer).min(change).min(self.bounds.end.unwrap_or(NEVER))
    }

    fn handle_all(&mut self, events: &mut Vec<epoll::Event>) {
        for event in events.drain(..) {
            self.handle(event.data.u64(), event.flags);
        }
    }

    fn handle(&mut self, name: u64, flags: EventFlags) {
        match name {
            SIGNAL => self.is_signalled = true,
            TIMER => {}
            PEER => {
                let Some(peer) = &mut self.peer else { return };
                let change = peer.handle(&mut self.server, now());
                self.follow_peer(change);
            }
            FIRST_UDP.. => self.take_datagrams((name - FIRST_UDP) as usize),
            FIRST_TCP.. => self.accept((name - FIRST_TCP) as usize),
            _ => {
                let slot = name as usize;
                if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
                    && let Some(connection) = &mut self.connections[slot]
                {
                    connection.blocked = false;
                    self.send(slot);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.read(slot);
                }
            }
        }
    }

    /// Reads what lies at a UDP socket, and carries it out.
    fn take_datagrams(&mut self, number: usize) {
        let UdpListener { socket, queue } = &mut self.udp[number];
        for _ in 0..EVENTS_MAX {
            match socket.recv_from(&mut self.datagram) {
                Ok((count, from)) => {
                    self.server.handle_datagram(
                        queue,
                        &from,
                        &self.datagram[..count],
                        self.arrivals.read(None, now()),
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A client that is gone makes its datagrams come back as an error; others may have sent something.
                Err(_) => {}
            }
        }
        self.send_datagrams();
    }

    /// Sends all datagrams that are due. One that the socket does not take is lost, as datagrams are.
    fn send_datagrams(&mut self) {
        for UdpListener { socket, queue } in &mut self.udp {
            while queue.next_due() != NEVER
                && let Some(datagram) = self.server.poll_datagram(queue, now())
            {
                let _ = socket.send_to(&datagram.bytes, datagram.to);
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        if self.stage != Stage::Open {
            return;
        }
        for _ in 0..EVENTS_MAX {
            let Some(open) = &self.tcp[listener] else { return };
            match open.accept(self.tls.as_ref()) {
                Ok(stream) => self.add(stream, listener),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if out_of_descriptors(&error) => {
                    self.stop_accepting(&error);
                    return;
                }
                // The client is gone before it was accepted; others may wait.
                Err(_) => {}
            }
        }
    }

    /// Accepts no connection until a descriptor is free: an event for each that waits would come again and again.
    fn stop_accepting(&mut self, error: &io::Error) {
        let open = self.connections.len() - self.free.len();
        say(format_args!(
            "pummel serve: with {open} connections open, no more can be accepted for now: {error}; `ulimit -n` sets how \
             many files a process may have open"
        ));
        self.is_full = true;
        self.forget_listeners();
    }

    /// Ends the events of connections that wait to be accepted.
    fn forget_listeners(&self) {
        for listener in self.tcp.iter().flatten() {
            // It was added, so it can only be there, or have been taken out for want of descriptors.
            let _ = epoll::delete(&self.epoll, listener);
        }
    }

    fn start_accepting(&self) -> rustix::io::Result<()> {
        for (number, listener) in self.tcp.iter().enumerate() {
            let Some(listener) = listener else { continue };
            epoll::add(&self.epoll, listener, EventData::new_u64(FIRST_TCP + number as u64), EventFlags::IN)?;
        }
        Ok(())
    }

    fn add(&mut self, stream: ClientStream, listener: usize) {
        let state = self.server.accept_at(listener);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.generations += 1;
        let connection = Connection::new(stream, state, self.generations);
        let name = EventData::new_u64(slot as u64);
        let added = epoll::add(&self.epoll, connection.stream.as_fd(), name, connection.interest);
        self.connections[slot] = Some(connection);
        if added.is_err() {
            self.close(slot);
        } else {
            self.send(slot);
        }
    }

    /// Reads once, hands it to the server core, and sends what is due at once.
    fn read(&mut self, slot: usize) {
        let Some(connection) = &mut self.connections[slot] else { return };
        loop {
            match connection.stream.read(&mut self.buffer) {
                Ok(0) => return self.close(slot),
                Ok(count) => {
                    let arrived = self.arrivals.read(connection.stream.received_wall(), now());
                    self.server.handle_received(&mut connection.state, &self.buffer[..count], arrived);
                    if connection.stream.has_unread() {
                        continue;
                    }
                }
                // TLS may have something to say although the client said nothing.
                Err(error) if is_transient(&error) => {}
                Err(_) => return self.close(slot),
            }
            return self.send(slot);
        }
    }

    /// Sends what is due, and arranges what is to come: the next due time, the closing, the interest in events.
    fn send(&mut self, slot: usize) {
        let Some(connection) = &mut self.connections[slot] else { return };
        let is_broken = connection.send_replies(&mut self.server).is_err();
        if is_broken || connection.state.poll_close().is_some_and(|ending| connection.end(ending)) {
            return self.close(slot);
        }
        if connection.state.waits_for_copy()
            && !self.waiting_for_copy.contains(&(slot, connection.generation))
        {
            self.waiting_for_copy.push((slot, connection.generation));
        }
        let due = connection.state.next_due();
        if !connection.blocked && due < connection.scheduled {
            connection.scheduled = due;
            self.dues.push(Reverse((due, slot, connection.generation)));
        }
        self.renew_interest(slot);
    }

    fn renew_interest(&mut self, slot: usize) {
        let Some(connection) = &mut self.connections[slot] else { return };
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, self.stage == Stage::Open && !connection.state.is_full());
        interest.set(EventFlags::OUT, connection.blocked);
        if interest != connection.interest {
            connection.interest = interest;
            let name = EventData::new_u64(slot as u64);
            if epoll::modify(&self.epoll, connection.stream.as_fd(), name, interest).is_err() {
                self.close(slot);
            }
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(connection) = self.connections[slot].take() {
            self.free.push(slot);
            self.server.handle_closed(connection.state);
            drop(connection.stream);
            if self.is_full && self.stage == Stage::Open && self.start_accepting().is_ok() {
                self.is_full = false;
            }
        }
    }
}

impl Connection {
    fn new(stream: ClientStream, state: ServerConnection, generation: u64) -> Connection {
        let interest = EventFlags::IN;
        Connection { stream, state, generation, interest, blocked: false, scheduled: NEVER, unflushed: 0 }
    }

    /// Sends replies that are due, as far as the socket takes them.
    fn send_replies(&mut self, server: &mut Server) -> io::Result<()> {
        self.flush(server)?;
        while !self.blocked {
            let at = now();
            let due = server.poll_send(&mut self.state, at);
            if due.is_empty() {
                break;
            }
            match self.stream.write(due.parts()) {
                Ok(count) => {
                    let is_flushed = self.stream.is_flushed();
                    self.blocked = count < due.len() || !is_flushed;
                    if is_flushed {
                        server.handle_sent(&mut self.state, count, at);
                    } else {
                        self.unflushed = count;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_transient(&error) => self.blocked = true,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends what TLS holds back. Until that is all sent, the connection is blocked: replies that were offered to TLS must not be
    /// offered again.
    fn flush(&mut self, server: &mut Server) -> io::Result<()> {
        let at = if self.unflushed > 0 { now() } else { NEVER };
        if !self.stream.flush()? {
            self.blocked = true;
        } else if self.unflushed > 0 {
            server.handle_sent(&mut self.state, std::mem::take(&mut self.unflushed), at);
        }
        Ok(())
    }

    /// Ends the stream in the way that the server wants; whether it can be closed, or has to wait until the socket takes more.
    fn end(&mut self, ending: Ending) -> bool {
        match ending {
            Ending::Reset => {
                self.stream.close_by_reset();
                true
            }
            Ending::Fin => {
                // Where the stream is broken, the client cannot be told that it ends.
                let is_said = self.stream.say_goodbye().unwrap_or(true);
                self.blocked |= !is_said;
                is_said
            }
        }
    }
}

impl Arrivals {
    fn of(listeners: &[Listener]) -> Arrivals {
        let has_stamps = listeners.iter().all(|listener| listener.stamp_arrivals().is_ok());
        let stamps = if has_stamps { Stamps::of(Clock::Kernel).ok().flatten() } else { None };
        Arrivals { stamps, latest: now(), doubt_from: 0 }
    }

    /// When bytes arrived that were read at `read`, and that the kernel received at the wall time `received_wall`. An arrival is
    /// never earlier than that of what was read before: queues and expiry need the order, and events come in nearly that of the
    /// stamps.
    fn read(&mut self, received_wall: Option<Nanos>, read: Nanos) -> Nanos {
        let stamped = received_wall.and_then(|wall| self.stamped(wall, read));
        self.latest = stamped.unwrap_or(read).clamp(self.latest, read);
        self.latest
    }

    /// The stamp `wall` on the monotonic clock; `None` where there are no stamps.
    fn stamped(&mut self, wall: Nanos, read: Nanos) -> Option<Nanos> {
        let stamps = self.stamps.as_mut()?;
        stamps.renew_when_due(read);
        let stamped = stamps.to_monotonic(wall);
        Some(without_doubt(stamped, read, || {
            if read < self.doubt_from {
                return stamped;
            }
            self.doubt_from = read.saturating_add(DOUBT_GAP_NS);
            stamps.renew();
            stamps.to_monotonic(wall)
        }))
    }
}

/// The stamp of bytes that were read at `read`: `stamped`, or, where that is unlikely, what a new comparison of the clocks makes of
/// it. The wall clock may have been set since the last one. If the stamp is true, and the read late, it stays as it was.
fn without_doubt(stamped: Nanos, read: Nanos, compare_again: impl FnOnce() -> Nanos) -> Nanos {
    let is_ahead = stamped > read.saturating_add(STAMP_AHEAD_NS);
    let is_old = stamped.saturating_add(STAMP_OLD_NS) < read;
    if is_ahead || is_old { compare_again() } else { stamped }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn out_of_descriptors(error: &io::Error) -> bool {
    let exhausted = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::NOBUFS];
    exhausted.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// As many connections as the machine allows; when it allows no change, the limit stays as it is.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;

    use pummel_engine::backend::tls;
    use pummel_testserver::{ServerConfig, Truth};
    use rcgen::{CertificateParams, KeyPair};
    use rustix::net::sockopt;
    use rustls::crypto::ring;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;
    use crate::serve::listen::Listen;

    /// What a server of the name `localhost` shows, and a client that believes it.
    fn certified(folder: &Path) -> (Arc<rustls::ServerConfig>, Arc<ClientConfig>) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = |name: &str, text: String| {
            let path = folder.join(name).display().to_string();
            std::fs::write(&path, text).expect("the folder can be written to");
            path
        };
        let (cert, key) = (file("cert.pem", certificate.pem()), file("key.pem", key.serialize_pem()));
        let server = tls::server_config(&cert, &key, None).expect("they belong together");
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("it is a certificate");
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        (server, Arc::new(client))
    }

    /// A connection of a server over TLS, and its client; neither waits for the other.
    struct Secured {
        server: Server,
        connection: Connection,
        client: ClientConnection,
        socket: UnixStream,
        received: Vec<u8>,
    }

    impl Secured {
        /// A connection after its handshake, through `listener` at `path`. The server holds `value` under the key `k`.
        fn open(
            listener: &Listener,
            path: &Path,
            configs: &(Arc<rustls::ServerConfig>, Arc<ClientConfig>),
            value: &[u8],
        ) -> Secured {
            let mut server = Server::new(ServerConfig { truth: Truth::Kept, ..ServerConfig::default() }, 0);
            let mut writer = server.accept();
            let set = [format!("set k 0 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
            server.handle_received(&mut writer, &set, 0);
            let socket = UnixStream::connect(path).expect("it listens");
            socket.set_nonblocking(true).expect("an option of every socket");
            let stream = listener.accept(Some(&configs.0)).expect("one waits");
            sockopt::set_socket_send_buffer_size(stream.as_fd(), 65_536).expect("an option of every socket");
            let connection = Connection::new(stream, server.accept(), 1);
            let name = ServerName::try_from("localhost").expect("a name");
            let client = ClientConnection::new(Arc::clone(&configs.1), name).expect("it fits");
            let mut secured = Secured { server, connection, client, socket, received: Vec::new() };
            while secured.client.is_handshaking() {
                secured.speak();
                secured.serve();
                secured.receive();
            }
            secured
        }

        /// Sends what the client has to say.
        fn speak(&mut self) {
            while self.client.wants_write() {
                self.client.write_tls(&mut self.socket).expect("it is little");
            }
        }

        /// Lets the server read, and send as much as goes.
        fn serve(&mut self) {
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = self.connection.stream.read(&mut buffer) {
                self.server.handle_received(&mut self.connection.state, &buffer[..count], 0);
            }
            loop {
                self.connection.blocked = false;
                self.connection.send_replies(&mut self.server).expect("the client is there");
                // TLS takes a part of a long reply, and more of it when the socket took that.
                if !self.connection.blocked || !self.connection.stream.is_flushed() {
                    return;
                }
            }
        }

        /// Reads what has come to the client.
        fn receive(&mut self) {
            while let Ok(1..) = self.client.read_tls(&mut self.socket) {
                self.client.process_new_packets().expect("the server speaks TLS");
                // It ends where nothing more has come, or the server took its leave.
                let _ = self.client.reader().read_to_end(&mut self.received);
            }
        }
    }

    #[test]
    fn replies_over_tls_are_sent_and_their_connection_over_once_the_socket_took_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let configs = certified(folder.path());
        let path = folder.path().join("socket");
        let listener = Listener::open(&Listen::Unix(path.clone())).expect("the place is free");
        let mut held_back = 0;
        for len in (100_000..500_000).step_by(20_000) {
            let value = vec![b'x'; len];
            let mut secured = Secured::open(&listener, &path, &configs, &value);
            secured.client.writer().write_all(b"get k\r\nquit\r\n").expect("it has room");
            secured.speak();
            secured.serve();
            let is_sent = |server: &mut Server| {
                server.take_notes().any(|note| {
                    let line = note.to_string();
                    line.contains(" get ") && !line.contains(" - - ")
                })
            };
            if !secured.connection.stream.is_flushed() {
                held_back += 1;
                assert_eq!(secured.connection.state.poll_close(), None, "{len} bytes");
                assert!(!is_sent(&mut secured.server), "{len} bytes");
            }
            let mut rounds = 0..100;
            while !secured.connection.state.poll_close().is_some_and(|end| secured.connection.end(end)) {
                assert!(rounds.next().is_some(), "{len} bytes: the connection does not end");
                secured.receive();
                secured.serve();
            }
            secured.receive();
            let reply = [format!("VALUE k 0 {len}\r\n").as_bytes(), &value, b"\r\nEND\r\n"].concat();
            assert!(secured.received == reply, "{len} bytes, of which {} came", secured.received.len());
            assert!(is_sent(&mut secured.server), "{len} bytes");
        }
        assert!(held_back > 0, "every socket took everything at once");
    }

    /// Arrivals with stamps, and the wall time at which the monotonic clock was at 0.
    fn stamped(latest: Nanos) -> (Arrivals, Nanos) {
        let stamps = Stamps::new();
        let wall_at_zero = stamps.to_monotonic(0).wrapping_neg();
        (Arrivals { stamps: Some(stamps), latest, doubt_from: 0 }, wall_at_zero)
    }

    #[test]
    fn a_request_arrives_when_the_kernel_received_it() {
        let (mut arrivals, zero) = stamped(0);
        assert_eq!(arrivals.read(Some(zero + 1_000), 5_000), 1_000);
    }

    #[test]
    fn no_request_arrives_before_what_was_read_earlier() {
        let (mut arrivals, zero) = stamped(2_000);
        assert_eq!(arrivals.read(Some(zero + 1_000), 5_000), 2_000, "the server had not begun");
        assert_eq!(arrivals.read(None, 6_000), 6_000, "a datagram");
        assert_eq!(arrivals.read(Some(zero + 5_500), 7_000), 6_000);
    }

    #[test]
    fn no_request_arrives_after_it_was_read() {
        let (mut arrivals, zero) = stamped(0);
        assert_eq!(arrivals.read(Some(zero + SECOND), 5_000), 5_000, "the wall clock was set");
    }

    #[test]
    fn a_stamp_that_is_unlikely_is_moved_by_a_new_comparison_of_the_clocks() {
        let read = 100 * SECOND;
        let never = || -> Nanos { unreachable!("the stamp is likely") };
        for likely in [read + STAMP_AHEAD_NS, read, read - 10 * MICROSECOND, read - STAMP_OLD_NS] {
            assert_eq!(without_doubt(likely, read, never), likely);
        }
        let arrived = read - 5 * MICROSECOND;
        for (set, old_offset) in [("back", arrived - SECOND), ("ahead", arrived + SECOND), ("far", NEVER)] {
            assert_eq!(without_doubt(old_offset, read, || arrived), arrived, "the wall clock was set {set}");
        }
        let late = read - 60 * SECOND;
        assert_eq!(without_doubt(late, read, || late - 30), late - 30, "the server stood still for a minute");
    }

    #[test]
    fn a_request_that_was_read_late_arrived_when_the_kernel_received_it() {
        let (mut arrivals, zero) = stamped(0);
        // Each is compared with clocks that a machine may slew meanwhile.
        for (received, read) in [(5, 8 * SECOND), (6, 8 * SECOND + 1), (7, 9 * SECOND)] {
            let received = received * SECOND;
            let arrived = arrivals.read(Some(zero + received), read);
            assert!(arrived.abs_diff(received) < MILLISECOND, "{arrived} and not {received}");
        }
    }

    #[test]
    fn without_stamps_a_request_arrives_when_it_is_read() {
        let mut arrivals = Arrivals { stamps: None, latest: 0, doubt_from: 0 };
        assert_eq!(arrivals.read(Some(1_000), 5_000), 5_000);
        let (mut arrivals, _) = stamped(0);
        assert_eq!(arrivals.read(None, 5_000), 5_000);
    }
}
