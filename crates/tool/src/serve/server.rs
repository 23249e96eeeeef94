//! The loop of the built-in server: one thread, epoll, and a timer for replies that are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use clap::ValueEnum;
use pummel_logic::server::{DatagramQueue, Ending, Framing, Host, ServerConnection};
use pummel_logic::time::{MICROSECOND, NEVER, Nanos, SECOND};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use rustls::ServerConfig;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::serve::error::ServeError;
use crate::serve::ledger::Ledger;
use crate::serve::listen::{Door, Line};
use crate::serve::peer::{Change, Peer};
use crate::stderr::say;

/// Before a due reply the loop spins for this long: about what the kernel needs to wake a sleeping thread.
const SPIN_NS: Nanos = 60 * MICROSECOND;

/// Bytes of one read. Small enough that what they ask for stays within bounds before the backlog is looked at again.
const READ_BYTES: usize = 16 * 1024;

/// When the last request came, what is owed is sent for at most this long.
const DRAIN_MAX_NS: Nanos = 5 * SECOND;

const EVENTS_MAX: usize = 256;

/// Names in epoll of what is not a connection; connections are named by their seat.
const SIGNAL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const PEER: u64 = u64::MAX - 2;
const FIRST_DOOR: u64 = u64::MAX / 2;
const FIRST_WINDOW: u64 = u64::MAX / 4 * 3;

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
struct Seat {
    line: Line,
    guest: ServerConnection,
    /// Which use of the seat this is; what is left over from an earlier one is recognised by it.
    generation: u64,
    interest: EventFlags,
    /// The last send was short: nothing is tried before the socket takes more.
    blocked: bool,
    /// The earliest time at which the queue of due replies names this seat.
    scheduled: Nanos,
}

/// A UDP socket, and what is to be sent there.
#[derive(Debug)]
struct Window {
    socket: UdpSocket,
    post: DatagramQueue<SocketAddr>,
}

/// All that connections and datagrams come in by.
pub(super) struct House {
    pub(super) doors: Vec<Door>,
    /// UDP sockets, and how replies are put into datagrams there.
    pub(super) windows: Vec<(UdpSocket, Framing)>,
    /// What TLS connections are made with, where all connections are.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// Who gets copies of what is stored.
    pub(super) peer: Option<Peer>,
}

pub(super) struct Server {
    host: Host,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// Readable once a signal came; open as long as the server.
    _signals: UnixStream,
    doors: Vec<Door>,
    windows: Vec<Window>,
    tls: Option<Arc<ServerConfig>>,
    peer: Option<Peer>,
    /// Connections, by seat and use of it, whose replies wait for the peer.
    patient: Vec<(usize, u64)>,
    /// Out of file descriptors: nobody is let in until somebody leaves.
    full: bool,
    seats: Vec<Option<Seat>>,
    free: Vec<usize>,
    generations: u64,
    dues: BinaryHeap<Reverse<(Nanos, usize, u64)>>,
    ledger: Option<Ledger>,
    bounds: Bounds,
    wait: ServeWait,
    stage: Stage,
    /// A signal came.
    told: bool,
    buffer: Box<[u8]>,
    /// Large enough for every datagram.
    datagram: Box<[u8]>,
}

impl Server {
    pub(super) fn new(
        host: Host,
        house: House,
        ledger: Option<Ledger>,
        bounds: Bounds,
        wait: ServeWait,
    ) -> Result<Server, ServeError> {
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
        let server = Server {
            host,
            epoll,
            timer,
            _signals: signals,
            doors: house.doors,
            windows: house
                .windows
                .into_iter()
                .map(|(socket, framing)| Window { socket, post: DatagramQueue::new(framing) })
                .collect(),
            tls: house.tls,
            peer: house.peer,
            patient: Vec::new(),
            full: false,
            seats: Vec::new(),
            free: Vec::new(),
            generations: 0,
            dues: BinaryHeap::new(),
            ledger,
            bounds,
            wait,
            stage: Stage::Open,
            told: false,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            datagram: vec![0; 1 << 16].into_boxed_slice(),
        };
        server.watch_doors().map_err(|errno| wrap(errno.into()))?;
        for (number, window) in server.windows.iter().enumerate() {
            let name = EventData::new_u64(FIRST_WINDOW + number as u64);
            epoll::add(&server.epoll, &window.socket, name, EventFlags::IN)
                .map_err(|errno| wrap(errno.into()))?;
        }
        Ok(server)
    }

    /// Where the server listens, in the order of the command line.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.doors.iter().map(|door| door.address().unwrap_or_else(|error| format!("? ({error})"))).collect()
    }

    /// Serves until it is over, and writes down what is left to tell.
    pub(super) fn run(mut self) -> Result<(), ServeError> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        while self.stage != Stage::Over {
            let time = now();
            self.send_due(time);
            self.tend_peer(time);
            self.send_datagrams();
            self.turn_stage(time);
            self.write_truth()?;
            if self.stage != Stage::Over {
                self.wait_for_events(&mut events)?;
                self.handle_all(&mut events);
            }
            if self.told {
                // What came before the signal is part of the truth, also from those who have only just been let in.
                self.wait_for_events(&mut events)?;
                self.handle_all(&mut events);
                self.stage = Stage::Over;
            }
        }
        for seat in self.seats.drain(..).flatten() {
            self.host.handle_closed(seat.guest);
        }
        self.write_truth()?;
        self.ledger.take().map_or(Ok(()), Ledger::finish)
    }

    fn write_truth(&mut self) -> Result<(), ServeError> {
        match &mut self.ledger {
            Some(ledger) => ledger.write(&mut self.host),
            None => Ok(()),
        }
    }

    /// Sends to everybody whose replies have become due.
    fn send_due(&mut self, time: Nanos) {
        while let Some(&Reverse((due, place, generation))) = self.dues.peek()
            && due <= time
        {
            self.dues.pop();
            if let Some(seat) = &mut self.seats[place]
                && seat.generation == generation
            {
                if seat.scheduled == due {
                    seat.scheduled = NEVER;
                }
                self.send(place);
            }
        }
    }

    /// Sends copies to the peer, and opens the way to it.
    fn tend_peer(&mut self, time: Nanos) {
        let Some(peer) = &mut self.peer else { return };
        let change = peer.tend(&mut self.host, time);
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
                for (place, generation) in std::mem::take(&mut self.patient) {
                    if self.seats[place].as_ref().is_some_and(|seat| seat.generation == generation) {
                        self.send(place);
                    }
                }
            }
        }
    }

    fn turn_stage(&mut self, time: Nanos) {
        if self.bounds.end.is_some_and(|end| end <= time) {
            self.stage = Stage::Over;
        }
        match self.stage {
            Stage::Open if self.bounds.requests_max.is_some_and(|max| self.host.requests() >= max) => {
                self.stage = Stage::Draining(time + DRAIN_MAX_NS);
                for place in 0..self.seats.len() {
                    self.renew_interest(place);
                }
                for window in &self.windows {
                    // It was added, so it can only be there.
                    let _ = epoll::delete(&self.epoll, &window.socket);
                }
                self.turn_stage(time);
            }
            Stage::Draining(end) if end <= time || self.owes_nothing() => self.stage = Stage::Over,
            Stage::Open | Stage::Draining(_) | Stage::Over => {}
        }
    }

    fn owes_nothing(&self) -> bool {
        let owes = |seat: &Seat| seat.guest.next_due() != NEVER || seat.guest.waits_for_copy();
        !self.seats.iter().flatten().any(owes)
            && self.windows.iter().all(|window| window.post.next_due() == NEVER)
    }

    /// Waits until something happens or is due; only looks when that is so soon that sleeping would miss it.
    fn wait_for_events(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), ServeError> {
        let wrap = |errno: rustix::io::Errno| ServeError::new("cannot wait for requests", errno);
        let wake = self.next_time();
        let sleep_until = wake.saturating_sub(SPIN_NS);
        let look = self.told || self.wait == ServeWait::Spin || (wake != NEVER && sleep_until <= now());
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
        let posted = self.windows.iter().map(|window| window.post.next_due()).min().unwrap_or(NEVER);
        let peer = self.peer.as_ref().map_or(NEVER, Peer::next_time);
        due.min(posted).min(drained).min(peer).min(self.bounds.end.unwrap_or(NEVER))
    }

    fn handle_all(&mut self, events: &mut Vec<epoll::Event>) {
        for event in events.drain(..) {
            self.handle(event.data.u64(), event.flags);
        }
    }

    fn handle(&mut self, name: u64, flags: EventFlags) {
        match name {
            SIGNAL => self.told = true,
            TIMER => {}
            PEER => {
                let Some(peer) = &mut self.peer else { return };
                let change = peer.handle(&mut self.host, now());
                self.follow_peer(change);
            }
            FIRST_WINDOW.. => self.take_datagrams((name - FIRST_WINDOW) as usize),
            FIRST_DOOR.. => self.let_in((name - FIRST_DOOR) as usize),
            _ => {
                let place = name as usize;
                if flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR)
                    && let Some(seat) = &mut self.seats[place]
                {
                    seat.blocked = false;
                    self.send(place);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.read(place);
                }
            }
        }
    }

    /// Reads what lies at a UDP socket, and carries it out.
    fn take_datagrams(&mut self, number: usize) {
        let Window { socket, post } = &mut self.windows[number];
        for _ in 0..EVENTS_MAX {
            match socket.recv_from(&mut self.datagram) {
                Ok((count, from)) => {
                    self.host.handle_datagram(post, &from, &self.datagram[..count], now());
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
        for Window { socket, post } in &mut self.windows {
            while post.next_due() != NEVER
                && let Some(letter) = self.host.poll_datagram(post, now())
            {
                let _ = socket.send_to(&letter.bytes, letter.to);
            }
        }
    }

    fn let_in(&mut self, door: usize) {
        if self.stage != Stage::Open {
            return;
        }
        for _ in 0..EVENTS_MAX {
            match self.doors[door].accept(self.tls.as_ref()) {
                Ok(line) => self.seat(line),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if out_of_descriptors(&error) => {
                    self.close_doors(&error);
                    return;
                }
                // The peer is gone before it was let in; others may wait.
                Err(_) => {}
            }
        }
    }

    /// Lets nobody in until a descriptor is free, instead of being told again and again that somebody waits.
    fn close_doors(&mut self, error: &io::Error) {
        let open = self.seats.len() - self.free.len();
        say(format_args!(
            "pummel serve: with {open} connections open, no more can be accepted for now: {error}; `ulimit -n` sets how \
             many files a process may have open"
        ));
        self.full = true;
        for door in &self.doors {
            // It was added, so it can only be there.
            let _ = epoll::delete(&self.epoll, door);
        }
    }

    fn watch_doors(&self) -> rustix::io::Result<()> {
        for (number, door) in self.doors.iter().enumerate() {
            epoll::add(&self.epoll, door, EventData::new_u64(FIRST_DOOR + number as u64), EventFlags::IN)?;
        }
        Ok(())
    }

    fn seat(&mut self, line: Line) {
        let guest = self.host.accept();
        let place = self.free.pop().unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        self.generations += 1;
        let interest = EventFlags::IN;
        let added = epoll::add(&self.epoll, line.as_fd(), EventData::new_u64(place as u64), interest);
        let generation = self.generations;
        self.seats[place] =
            Some(Seat { line, guest, generation, interest, blocked: false, scheduled: NEVER });
        if added.is_err() {
            self.leave(place);
        } else {
            self.send(place);
        }
    }

    /// Reads once, hands it to the server core, and sends what is due at once.
    fn read(&mut self, place: usize) {
        let Some(seat) = &mut self.seats[place] else { return };
        loop {
            match seat.line.read(&mut self.buffer) {
                Ok(0) => return self.leave(place),
                Ok(count) => {
                    self.host.handle_received(&mut seat.guest, &self.buffer[..count], now());
                    if seat.line.has_unread() {
                        continue;
                    }
                }
                // TLS may have something to say although the client said nothing.
                Err(error) if is_passing(&error) => {}
                Err(_) => return self.leave(place),
            }
            return self.send(place);
        }
    }

    /// Sends what is due, and arranges what is to come: the next due time, the closing, the interest in events.
    fn send(&mut self, place: usize) {
        let Some(seat) = &mut self.seats[place] else { return };
        match seat.line.flush() {
            Ok(all) => seat.blocked |= !all,
            Err(_) => return self.leave(place),
        }
        while !seat.blocked {
            let at = now();
            let due = self.host.poll_send(&mut seat.guest, at);
            if due.is_empty() {
                break;
            }
            match seat.line.write(due.parts()) {
                Ok(count) => {
                    seat.blocked = count < due.len() || !seat.line.is_flushed();
                    self.host.handle_sent(&mut seat.guest, count, at);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_passing(&error) => seat.blocked = true,
                Err(_) => return self.leave(place),
            }
        }
        if let Some(ending) = seat.guest.poll_close() {
            match ending {
                Ending::Reset => seat.line.close_by_reset(),
                Ending::Fin => seat.line.say_goodbye(),
            }
            return self.leave(place);
        }
        if seat.guest.waits_for_copy() && !self.patient.contains(&(place, seat.generation)) {
            self.patient.push((place, seat.generation));
        }
        let due = seat.guest.next_due();
        if !seat.blocked && due < seat.scheduled {
            seat.scheduled = due;
            self.dues.push(Reverse((due, place, seat.generation)));
        }
        self.renew_interest(place);
    }

    fn renew_interest(&mut self, place: usize) {
        let Some(seat) = &mut self.seats[place] else { return };
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, self.stage == Stage::Open && !seat.guest.is_stuffed());
        interest.set(EventFlags::OUT, seat.blocked);
        if interest != seat.interest {
            seat.interest = interest;
            let name = EventData::new_u64(place as u64);
            if epoll::modify(&self.epoll, seat.line.as_fd(), name, interest).is_err() {
                self.leave(place);
            }
        }
    }

    fn leave(&mut self, place: usize) {
        if let Some(seat) = self.seats[place].take() {
            self.free.push(place);
            self.host.handle_closed(seat.guest);
            drop(seat.line);
            if self.full && self.watch_doors().is_ok() {
                self.full = false;
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
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
