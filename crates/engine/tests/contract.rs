//! The contract of [`Backend`], as one suite of tests that every implementation passes.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use pummel_engine::backend::epoll::Epoll;
use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer, Sim};
use pummel_engine::backend::tls::{Setup, Tls};
use pummel_engine::backend::transmit::TransmitStamps;
use pummel_engine::backend::uring::Uring;
use pummel_engine::backend::{Backend, Close, ConnId, Event, Handed, Mark, Target, TransmitStamp};
use pummel_engine::sys::raise_descriptor_limit;
use pummel_logic::plan::{Clock, Socket, Wait};
use pummel_logic::protocol::Fault;
use pummel_logic::time::{MICROSECOND, MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::trouble::CloseReason;
use rustls::{ServerConfig, ServerConnection};

use authority::{Authority, Secured};

mod authority;

/// The longest wait before a test fails.
const PATIENCE_NS: Nanos = 30 * SECOND;

/// The bytes that a parting server sends before it closes.
const PARTING_BYTES: usize = 300_000;

// ---- The worlds that backends are tried in ----

/// Behaviour of the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Server {
    /// The server sends received bytes back.
    Echo,
    /// The server sends received bytes back, and listens at an IPv6 address.
    EchoV6,
    /// The server sends received bytes back, and listens at a unix socket.
    EchoUnix,
    /// No server listens at the address.
    Nobody,
    /// No server listens at the unix socket, whose file does not exist.
    NobodyUnix,
    /// The server sends [`PARTING_BYTES`] after the first byte and closes in order.
    Parting,
    /// The server breaks the connection after two bytes.
    Breaking,
}

/// A backend together with the servers that it can reach.
trait World {
    /// Type of the backend.
    type Backend: Backend;

    /// Makes a new backend.
    fn backend(&mut self) -> Self::Backend;

    /// Address of a server.
    fn target(&mut self, server: Server) -> Target;
}

fn parting_words() -> Vec<u8> {
    (0..PARTING_BYTES).map(|i| (i % 251) as u8).collect()
}

// ---- Real servers ----

/// A backend over the kernel, against threads of this process.
struct Kernel<B> {
    make: fn() -> B,
    servers: HashMap<Server, Listening>,
}

impl<B> Kernel<B> {
    fn new(make: fn() -> B) -> Kernel<B> {
        Kernel { make, servers: HashMap::new() }
    }
}

fn epoll(wait: Wait) -> Epoll {
    Epoll::new(wait, Clock::Kernel, &Socket::default()).unwrap()
}

/// A backend all of whose sends are marked, so that the error bit of its sockets is set at nearly all times and their
/// error queues fill.
struct AllMarked<B> {
    inner: B,
    sends: u64,
}

impl<B: Backend> Backend for AllMarked<B> {
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        self.inner.open(conn, target);
    }

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        self.send_marked(conn, parts, None)
    }

    fn send_marked(&mut self, conn: ConnId, parts: &[IoSlice<'_>], _: Option<Mark>) -> Handed {
        self.sends += 1;
        self.inner.send_marked(conn, parts, Some(Mark(self.sends)))
    }

    fn transmit_stamp(&mut self, conn: ConnId, mark: Mark) -> TransmitStamp {
        self.inner.transmit_stamp(conn, mark)
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        self.inner.close(conn, how);
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.inner.wait(until)
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        self.inner.drain(on);
    }
}

fn stamped_epoll(wait: Wait) -> AllMarked<Epoll> {
    let inner = epoll(wait).with_transmit_stamps(Some(TransmitStamps::new(true)));
    AllMarked { inner, sends: 0 }
}

fn stamped_uring(wait: Wait) -> AllMarked<Uring> {
    let inner = uring(wait).with_transmit_stamps(Some(TransmitStamps::new(true)));
    AllMarked { inner, sends: 0 }
}

/// Sends a message and waits for its echo, `rounds` times, and takes the stamp of each send. Returns the number of
/// rounds in which the stamp lay between the send and the arrival of the echo.
fn stamped_echoes<B: Backend>(world: &mut impl World<Backend = AllMarked<B>>, rounds: u64) -> u64 {
    let mut backend = world.backend();
    let (conn, target) = (ConnId { slot: 0, generation: 1 }, world.target(Server::Echo));
    backend.open(conn, &target);
    let mut is_open = false;
    while !is_open {
        backend.wait(backend.now() + PATIENCE_NS).unwrap();
        backend.drain(&mut |_, event| is_open |= matches!(event, Event::Opened { .. }));
    }
    let mut good = 0;
    for _ in 0..rounds {
        let message = [7; 100];
        let handed = backend.send(conn, &[IoSlice::new(&message)]);
        assert_eq!(handed.taken, message.len());
        let (mut received, mut arrived) = (0, 0);
        while received < message.len() {
            let give_up = backend.now() + PATIENCE_NS;
            assert!(backend.wait(give_up).unwrap() < give_up, "the echo does not come");
            backend.drain(&mut |_, event| match event {
                Event::Received { bytes, stamp, read } => {
                    received += bytes.len();
                    arrived = stamp.unwrap_or(read);
                }
                other => panic!("{other:?}"),
            });
        }
        let mark = Mark(backend.sends);
        if let TransmitStamp::Left { at, .. } = backend.transmit_stamp(conn, mark) {
            good += u64::from(at + MICROSECOND >= handed.at && at <= arrived + MICROSECOND);
        }
    }
    good
}

/// A clock that is set in the midst spoils the stamps of one round.
#[track_caller]
fn assert_stamped(good: u64, rounds: u64) {
    assert!(good >= rounds - 3, "{good} of {rounds} sends have a stamp that can be true");
}

#[test]
fn each_send_over_epoll_has_a_stamp_between_itself_and_its_echo() {
    for wait in [Wait::Block, Wait::Spin] {
        let make =
            if wait == Wait::Spin { || stamped_epoll(Wait::Spin) } else { || stamped_epoll(Wait::Block) };
        assert_stamped(stamped_echoes(&mut Kernel::new(make), 300), 300);
    }
}

#[test]
fn each_send_over_io_uring_has_a_stamp_between_itself_and_its_echo() {
    if has_uring() {
        assert_stamped(stamped_echoes(&mut Kernel::new(|| stamped_uring(Wait::Block)), 300), 300);
    }
}

fn uring(wait: Wait) -> Uring {
    Uring::new(wait, Clock::Kernel, &Socket::default()).unwrap()
}

impl<B: Backend> World for Kernel<B> {
    type Backend = B;

    fn backend(&mut self) -> B {
        (self.make)()
    }

    fn target(&mut self, server: Server) -> Target {
        self.servers.entry(server).or_insert_with(|| Listening::new(server, None)).target.clone()
    }
}

/// Whether io_uring can be used on this machine, which containers often forbid. Prints why it cannot.
fn has_uring() -> bool {
    let obstacle = Uring::why_unusable();
    if let Some(why) = &obstacle {
        eprintln!("not tested: {why}");
    }
    obstacle.is_none()
}

/// TLS over a backend over the kernel, against threads of this process.
struct Encrypted<B> {
    make: fn() -> B,
    authority: Authority,
    config: Arc<ServerConfig>,
    servers: HashMap<Server, Listening>,
}

impl<B> Encrypted<B> {
    fn new(make: fn() -> B) -> Encrypted<B> {
        let authority = Authority::new();
        let config = authority.server();
        Encrypted { make, authority, config, servers: HashMap::new() }
    }
}

impl<B: Backend> World for Encrypted<B> {
    type Backend = Tls<B>;

    fn backend(&mut self) -> Tls<B> {
        Tls::new((self.make)(), &Setup::new(&self.authority.options(), &[]).unwrap())
    }

    fn target(&mut self, server: Server) -> Target {
        let listening = || Listening::new(server, Some(Arc::clone(&self.config)));
        self.servers.entry(server).or_insert_with(listening).target.clone()
    }
}

/// A server in threads of this process; dropping it ends its listener.
struct Listening {
    target: Target,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    /// Listener of [`Server::Nobody`] at another address with the same port, so that no other program is given that
    /// port.
    _holder: Option<TcpListener>,
}

impl Listening {
    /// A server, behind TLS where it is given.
    fn new(server: Server, tls: Option<Arc<ServerConfig>>) -> Listening {
        let stop = Arc::new(AtomicBool::new(false));
        let mut holder = None;
        let (target, accepting) = match server {
            Server::Nobody => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                let port = listener.local_addr().unwrap().port();
                holder = Some(listener);
                // Clients have the source address 127.0.0.1, so that none of them can be connected to itself here.
                (tcp((Ipv4Addr::new(127, 0, 9, 1), port).into()), None)
            }
            Server::NobodyUnix => (Target::Unix(socket_path()), None),
            Server::EchoUnix => {
                let path = socket_path();
                let listener = UnixListener::bind(&path).unwrap();
                let stop = Arc::clone(&stop);
                let accept = move || listener.accept().map(|(stream, _)| stream);
                let behaviour = move |stream| match &tls {
                    None => echo(stream),
                    Some(config) => secured(stream, config, echo),
                };
                (Target::Unix(path), Some(thread::spawn(move || serve(&stop, accept, behaviour))))
            }
            Server::Echo | Server::EchoV6 | Server::Parting | Server::Breaking => {
                let listener = match server {
                    Server::EchoV6 => TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap(),
                    _ => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
                };
                let address = listener.local_addr().unwrap();
                let behaviour = move |stream: TcpStream| match (&tls, server) {
                    (None, Server::Parting) => part(stream),
                    (None, Server::Breaking) => break_off(&stream),
                    (None, _) => echo(stream),
                    (Some(config), Server::Parting) => secured(stream, config, part),
                    (Some(config), Server::Breaking) => {
                        secured(stream, config, |mut stream| {
                            stream.turn_rude();
                            break_off(stream.raw());
                        });
                    }
                    (Some(config), _) => secured(stream, config, echo),
                };
                let stop = Arc::clone(&stop);
                let accept = move || listener.accept().map(|(stream, _)| stream);
                (tcp(address), Some(thread::spawn(move || serve(&stop, accept, behaviour))))
            }
        };
        Listening { target, stop, accepting, _holder: holder }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.stop.store(true, Ordering::SeqCst);
        // One more connection ends the wait for connections.
        match &self.target {
            Target::Tcp { address, .. } => drop(TcpStream::connect(address)),
            Target::Unix(path) => {
                drop(UnixStream::connect(path));
                let _ = std::fs::remove_file(path);
            }
            Target::Udp { .. } => unreachable!("datagrams have tests of their own"),
        }
        accepting.join().unwrap();
    }
}

fn tcp(address: SocketAddr) -> Target {
    Target::Tcp { address, source: None }
}

fn socket_path() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("pummel-contract-{}-{count}", std::process::id()))
}

fn serve<S: Send + 'static>(
    stop: &AtomicBool,
    accept: impl Fn() -> io::Result<S>,
    behaviour: impl Fn(S) + Send + Sync + 'static,
) {
    let behaviour = Arc::new(behaviour);
    while let Ok(stream) = accept() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let behaviour = Arc::clone(&behaviour);
        thread::Builder::new().stack_size(256 * 1024).spawn(move || behaviour(stream)).unwrap();
    }
}

fn secured<S: Read + Write>(stream: S, config: &Arc<ServerConfig>, behaviour: fn(Secured<S>)) {
    // A client that closes before it is open is no failure of the server's.
    if let Ok(stream) = Secured::agree(stream, config) {
        behaviour(stream);
    }
}

fn echo(mut stream: impl Read + Write) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

fn part(mut stream: impl Read + Write) {
    let mut first = [0];
    if stream.read_exact(&mut first).is_ok() {
        // The client may have closed already; that is its test's affair.
        let _ = stream.write_all(&parting_words());
    }
}

fn break_off(stream: &TcpStream) {
    // The caller closes it, and closing a socket with unread bytes resets the connection.
    let _ = stream.peek(&mut [0, 0]);
}

// ---- Simulated servers ----

/// The simulation; the port of a target is the number of its server.
struct Simulated {
    seed: u64,
    conditions: NetworkConditions,
}

impl World for Simulated {
    type Backend = Sim<Village>;

    fn backend(&mut self) -> Sim<Village> {
        Sim::new(self.seed, self.conditions, Village::default())
    }

    fn target(&mut self, server: Server) -> Target {
        match server {
            Server::EchoUnix | Server::NobodyUnix => Target::Unix(format!("/{server:?}").into()),
            Server::EchoV6 => tcp((Ipv6Addr::LOCALHOST, server as u16).into()),
            _ => tcp((Ipv4Addr::LOCALHOST, server as u16).into()),
        }
    }
}

/// All simulated servers.
#[derive(Default)]
struct Village {
    homes: BTreeMap<(u32, u32), (Server, Vec<u8>)>,
}

impl Peer for Village {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, _now: Nanos) -> Admission {
        let of_port = [Server::Echo, Server::EchoV6, Server::Nobody, Server::Parting, Server::Breaking];
        let server = match target {
            Target::Unix(path) if path.ends_with("EchoUnix") => Server::EchoUnix,
            Target::Unix(_) => Server::NobodyUnix,
            Target::Tcp { address, .. } => {
                of_port.into_iter().find(|&server| server as u16 == address.port()).unwrap()
            }
            Target::Udp { .. } => unreachable!("datagrams have tests of their own"),
        };
        if matches!(server, Server::Nobody | Server::NobodyUnix) {
            return Admission::Refuse;
        }
        self.homes.insert((conn.slot, conn.generation), (server, Vec::new()));
        Admission::Accept
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], _now: Nanos) {
        let (_, inbox) = self.homes.get_mut(&(conn.slot, conn.generation)).unwrap();
        inbox.extend_from_slice(bytes);
    }

    fn handle_closed(&mut self, conn: ConnId, _now: Nanos) {
        self.homes.remove(&(conn.slot, conn.generation)).unwrap();
    }

    fn poll(&mut self, conn: ConnId, _now: Nanos, out: &mut Vec<u8>) -> Next {
        let (server, inbox) = self.homes.get_mut(&(conn.slot, conn.generation)).unwrap();
        match server {
            Server::Parting if !inbox.is_empty() => {
                out.extend_from_slice(&parting_words());
                Next::Close
            }
            Server::Breaking if inbox.len() >= 2 => Next::Reset,
            Server::Parting | Server::Breaking => Next::At(NEVER),
            _ => {
                out.append(inbox);
                Next::At(NEVER)
            }
        }
    }
}

/// TLS over the simulation, which cuts records and sends wherever it likes.
struct SimulatedEncrypted {
    authority: Authority,
    config: Arc<ServerConfig>,
    seed: u64,
    conditions: NetworkConditions,
}

impl SimulatedEncrypted {
    fn new(seed: u64, conditions: NetworkConditions) -> SimulatedEncrypted {
        let authority = Authority::new();
        let config = authority.server();
        SimulatedEncrypted { authority, config, seed, conditions }
    }
}

impl World for SimulatedEncrypted {
    type Backend = Tls<Sim<Walled>>;

    fn backend(&mut self) -> Tls<Sim<Walled>> {
        let walled =
            Walled { village: Village::default(), gates: BTreeMap::new(), config: Arc::clone(&self.config) };
        let setup = Setup::new(&self.authority.options(), &[]).unwrap();
        Tls::new(Sim::new(self.seed, self.conditions, walled), &setup)
    }

    fn target(&mut self, server: Server) -> Target {
        Simulated { seed: self.seed, conditions: self.conditions }.target(server)
    }
}

/// All simulated servers, behind TLS.
struct Walled {
    village: Village,
    gates: BTreeMap<(u32, u32), ServerConnection>,
    config: Arc<ServerConfig>,
}

impl Walled {
    fn gate(&mut self, conn: ConnId) -> &mut ServerConnection {
        self.gates.get_mut(&(conn.slot, conn.generation)).unwrap()
    }
}

impl Peer for Walled {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        let mut gate = ServerConnection::new(Arc::clone(&self.config)).unwrap();
        gate.set_buffer_limit(None);
        self.gates.insert((conn.slot, conn.generation), gate);
        self.village.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, mut bytes: &[u8], now: Nanos) {
        while !bytes.is_empty() {
            let gate = self.gate(conn);
            if gate.read_tls(&mut bytes).unwrap() == 0 {
                return;
            }
            gate.process_new_packets().unwrap();
            let mut plain = Vec::new();
            // It ends with the error that there is no more.
            let _ = gate.reader().read_to_end(&mut plain);
            if !plain.is_empty() {
                self.village.handle_received(conn, &plain, now);
            }
        }
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        self.gates.remove(&(conn.slot, conn.generation)).unwrap();
        self.village.handle_closed(conn, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let mut plain = Vec::new();
        let next = self.village.poll(conn, now, &mut plain);
        let gate = self.gate(conn);
        gate.writer().write_all(&plain).unwrap();
        if next == Next::Close {
            gate.send_close_notify();
        }
        while gate.wants_write() {
            gate.write_tls(out).unwrap();
        }
        next
    }
}

// ---- The client of the tests ----

/// The events of one connection.
#[derive(Default)]
struct Seen {
    opened: bool,
    received: Vec<u8>,
    /// Stamp and reading of each chunk.
    times: Vec<(Option<Nanos>, Nanos)>,
    /// Whether the connection takes bytes.
    writable: bool,
    closed: Option<CloseReason>,
}

/// A backend, and a check of every event that it hands over.
struct Client<B> {
    backend: B,
    seen: HashMap<ConnId, Seen>,
    /// Connections that the test closed: nothing may come for them.
    closed: Vec<ConnId>,
}

impl<B: Backend> Client<B> {
    fn new(backend: B) -> Client<B> {
        Client { backend, seen: HashMap::new(), closed: Vec::new() }
    }

    fn open(&mut self, slot: u32, generation: u32, target: &Target) -> ConnId {
        let conn = ConnId { slot, generation };
        self.backend.open(conn, target);
        self.seen.insert(conn, Seen::default());
        conn
    }

    /// Opens a connection, and waits until it is open.
    fn opened(&mut self, slot: u32, target: &Target) -> ConnId {
        let conn = self.open(slot, 1, target);
        self.until(|client| client.seen[&conn].opened);
        conn
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        self.backend.close(conn, how);
        self.closed.push(conn);
    }

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        let handed = self.backend.send(conn, parts);
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        assert!(handed.taken <= offered);
        self.seen.get_mut(&conn).unwrap().writable = handed.taken == offered;
        handed
    }

    /// Sends all bytes, over as many turns as that takes.
    fn send_all(&mut self, conn: ConnId, mut bytes: &[u8]) -> Handed {
        loop {
            self.until(|client| client.seen[&conn].writable);
            let handed = self.send(conn, &[IoSlice::new(bytes)]);
            bytes = &bytes[handed.taken..];
            if bytes.is_empty() {
                return handed;
            }
        }
    }

    fn drain(&mut self) {
        let (seen, closed) = (&mut self.seen, &self.closed);
        self.backend.drain(&mut |conn, event| {
            assert!(!closed.contains(&conn), "{event:?} for {conn:?} after it was closed");
            seen.get_mut(&conn).expect("events come for connections that were opened").take(event);
        });
    }

    /// Takes turns until a condition holds.
    fn until(&mut self, so: impl Fn(&Client<B>) -> bool) {
        let give_up = self.backend.now() + PATIENCE_NS;
        while !so(self) {
            let now = self.backend.wait(give_up).unwrap();
            assert!(now < give_up, "what was waited for did not happen");
            self.drain();
        }
    }
}

impl Seen {
    fn take(&mut self, event: Event<'_>) {
        assert!(self.closed.is_none(), "{event:?} after Closed");
        assert!(
            self.opened || matches!(event, Event::Opened { .. } | Event::Closed(_)),
            "{event:?} before Opened"
        );
        match event {
            Event::Opened { .. } => {
                assert!(!self.opened, "opened twice");
                (self.opened, self.writable) = (true, true);
            }
            Event::Received { bytes, stamp, read } => {
                assert!(!bytes.is_empty());
                self.received.extend_from_slice(bytes);
                self.times.push((stamp, read));
            }
            Event::Writable => {
                assert!(!self.writable, "Writable without a short send");
                self.writable = true;
            }
            Event::Closed(reason) => (self.closed, self.writable) = (Some(reason), false),
        }
    }
}

/// Bytes in which a lost, doubled or misplaced piece shows.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

// ---- The suite ----

fn refusal_is_told_from_drain(world: &mut impl World) {
    for server in [Server::Nobody, Server::NobodyUnix] {
        let mut client = Client::new(world.backend());
        let conn = client.open(0, 1, &world.target(server));
        client.until(|client| client.seen[&conn].closed.is_some());
        assert!(!client.seen[&conn].opened);
        assert_eq!(client.seen[&conn].closed.as_ref().unwrap().fault, Fault::Refused, "{server:?}");
        // The slot is free again.
        let echo = world.target(Server::Echo);
        let conn = client.open(0, 2, &echo);
        client.until(|client| client.seen[&conn].opened);
    }
}

fn bytes_come_back_whole(world: &mut impl World) {
    for server in [Server::Echo, Server::EchoV6, Server::EchoUnix] {
        let mut client = Client::new(world.backend());
        let conn = client.opened(0, &world.target(server));
        let mut expected = Vec::new();
        for len in [1, 2, 100, 1_000, 30_000, 1] {
            let message = pattern(len);
            client.send_all(conn, &message);
            expected.extend_from_slice(&message);
            client.until(|client| client.seen[&conn].received.len() == expected.len());
            assert!(client.seen[&conn].received == expected, "{len} bytes over {server:?}");
        }
    }
}

fn parts_are_sent_in_their_order(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::Echo));
    let message = pattern(10_000);
    let mut at = 0;
    while at < message.len() {
        client.until(|client| client.seen[&conn].writable);
        let rest = &message[at..];
        let (head, tail) = rest.split_at(rest.len() / 3);
        let (body, tail) = tail.split_at(tail.len() / 2);
        at += client.send(conn, &[IoSlice::new(head), IoSlice::new(body), IoSlice::new(tail)]).taken;
    }
    client.until(|client| client.seen[&conn].received.len() == message.len());
    assert!(client.seen[&conn].received == message);
}

fn large_transfers_go_by_short_sends(world: &mut impl World) {
    let message = pattern(8 << 20);
    for server in [Server::Echo, Server::EchoUnix] {
        let mut client = Client::new(world.backend());
        let conn = client.opened(0, &world.target(server));
        // What comes back is not taken before a send was short, so that the server has to stop reading, and the sockets
        // fill up whatever their size.
        let (mut sent, mut is_short) = (0, false);
        while !is_short {
            let rest = &message[sent % message.len()..];
            let taken = client.send(conn, &[IoSlice::new(rest)]).taken;
            sent += taken;
            is_short = taken < rest.len();
        }
        while !sent.is_multiple_of(message.len()) {
            client.until(|client| client.seen[&conn].writable);
            sent += client.send(conn, &[IoSlice::new(&message[sent % message.len()..])]).taken;
        }
        client.until(|client| client.seen[&conn].received.len() == sent);
        let mut received = client.seen[&conn].received.chunks(message.len());
        assert!(received.all(|chunk| chunk == message), "over {server:?}");
    }
}

fn data_comes_before_the_orderly_close_behind_it(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::Parting));
    client.send_all(conn, b"x");
    client.until(|client| client.seen[&conn].closed.is_some());
    assert!(client.seen[&conn].received == parting_words());
    assert_eq!(client.seen[&conn].closed, Some(CloseReason::new(Fault::Closed, 0)));
}

fn a_reset_is_told_as_one(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::Breaking));
    client.send_all(conn, b"xy");
    client.until(|client| client.seen[&conn].closed.is_some());
    assert_eq!(client.seen[&conn].closed.as_ref().unwrap().fault, Fault::Reset);
}

fn sending_into_a_broken_connection_ends_in_closed(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::Breaking));
    client.send_all(conn, b"xy");
    // Without draining, so that a send meets the break before a read can.
    let give_up = client.backend.now() + PATIENCE_NS;
    while client.send(conn, &[IoSlice::new(b"z")]).taken > 0 {
        assert!(client.backend.wait(0).unwrap() < give_up, "the connection did not break");
    }
    client.until(|client| client.seen[&conn].closed.is_some());
    assert_eq!(client.seen[&conn].closed.as_ref().unwrap().fault, Fault::Reset);
}

fn nothing_comes_after_close(world: &mut impl World) {
    for how in [Close::Fin, Close::Reset] {
        let mut client = Client::new(world.backend());
        let target = world.target(Server::Echo);
        let conn = client.opened(0, &target);
        client.send_all(conn, &pattern(5_000));
        // The answer is here, or some of it, but not taken.
        let give_up = client.backend.now() + PATIENCE_NS;
        client.backend.wait(give_up).unwrap();
        client.close(conn, how);
        client.backend.close(conn, how);
        // The next connection in the same slot sees its own bytes alone.
        let next = client.open(0, 2, &target);
        client.until(|client| client.seen[&next].opened);
        client.send_all(next, b"mine");
        client.until(|client| client.seen[&next].received.len() >= 4);
        assert_eq!(client.seen[&next].received, b"mine");
    }
}

fn closing_before_it_is_open_is_quiet(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    for (generation, server) in [(1, Server::Echo), (2, Server::Nobody), (3, Server::NobodyUnix)] {
        let conn = client.open(0, generation, &world.target(server));
        client.close(conn, Close::Fin);
    }
    let conn = client.open(0, 4, &world.target(Server::Echo));
    client.until(|client| client.seen[&conn].opened);
}

fn waiting_ends_when_asked_and_not_before(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::Echo));
    // What a server sends of its own when a connection begins has come before its first answer.
    exchange(&mut client, conn);
    // The kernel may report the stamp of that request after its answer was read: it ends the wait that it comes in.
    let nothing_comes = (0..1_000).any(|_| {
        let until = client.backend.now() + MILLISECOND;
        let ended = client.backend.wait(until).unwrap();
        client.drain();
        ended >= until
    });
    assert!(nothing_comes, "a thousand waits for a silent server were ended early");
    for ns in [0, 30 * MICROSECOND, 300 * MICROSECOND, 2_345 * MICROSECOND, 40 * MILLISECOND] {
        let until = client.backend.now() + ns;
        let now = client.backend.wait(until).unwrap();
        assert!(now >= until, "the wait ended {} ns early", until - now);
        assert!(client.backend.now() < until + PATIENCE_NS);
        client.drain();
    }
    // A time long past: only a look.
    client.backend.wait(0).unwrap();
}

fn an_event_ends_the_wait(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::Echo));
    client.send_all(conn, b"x");
    let until = client.backend.now() + PATIENCE_NS;
    assert!(client.backend.wait(until).unwrap() < until);
    // What was not drained is still there: no wait is needed.
    assert!(client.backend.wait(until).unwrap() < until);
    client.until(|client| !client.seen[&conn].received.is_empty());
    assert_eq!(client.seen[&conn].received, b"x");
}

fn stamps_lie_between_send_and_read(world: &mut impl World) {
    for server in [Server::Echo, Server::EchoV6] {
        let mut client = Client::new(world.backend());
        let conn = client.opened(0, &world.target(server));
        // The kernel begins to stamp a little after it was asked to for the first time.
        let mut exchanges = 0;
        while client.seen[&conn].times.last().is_none_or(|(stamp, _)| stamp.is_none()) {
            assert!(exchanges < 10_000, "no stamp in 10,000 exchanges");
            exchange(&mut client, conn);
            exchanges += 1;
        }
        for round in 0..200 {
            if round == 100 {
                client.backend.mend_stamps();
            }
            let sent = exchange(&mut client, conn);
            let &(stamp, read) = client.seen[&conn].times.last().unwrap();
            let stamp = stamp.expect("once the kernel stamps, it stamps everything");
            assert!(sent <= stamp + MICROSECOND, "stamped {} ns before it was sent", sent - stamp);
            assert!(stamp <= read + MICROSECOND, "stamped {} ns after it was read", stamp - read);
        }
    }
}

fn unix_sockets_have_no_stamps(world: &mut impl World) {
    let mut client = Client::new(world.backend());
    let conn = client.opened(0, &world.target(Server::EchoUnix));
    for _ in 0..10 {
        let sent = exchange(&mut client, conn);
        let &(stamp, read) = client.seen[&conn].times.last().unwrap();
        assert_eq!(stamp, None);
        assert!(sent <= read);
    }
}

/// Sends one byte, waits for it to come back, and returns the time at which it was sent.
fn exchange<B: Backend>(client: &mut Client<B>, conn: ConnId) -> Nanos {
    let before = client.seen[&conn].received.len();
    let handed = client.send_all(conn, b"x");
    client.until(|client| client.seen[&conn].received.len() > before);
    handed.at
}

fn many_connections_at_once(world: &mut impl World) {
    const CONNECTIONS: u32 = 500;
    // The servers' ends are in this process too, and other tests run beside this one.
    raise_descriptor_limit(4096).expect("4096 descriptors are allowed");
    let mut client = Client::new(world.backend());
    let target = world.target(Server::Echo);
    let conns: Vec<ConnId> = (0..CONNECTIONS).map(|slot| client.open(slot, 7, &target)).collect();
    client.until(|client| client.seen.values().all(|seen| seen.opened));
    for round in 1..=3 {
        for conn in &conns {
            client.send_all(*conn, format!("{:>4}", conn.slot).as_bytes());
        }
        client.until(|client| client.seen.values().all(|seen| seen.received.len() == round * 4));
    }
    for conn in conns {
        let expected = format!("{0:>4}{0:>4}{0:>4}", conn.slot);
        assert_eq!(client.seen[&conn].received, expected.as_bytes());
    }
}

macro_rules! contract_of_uring {
    ($world:ident, $make:expr, $($test:ident)+) => {
        mod $world {
            $(#[test] fn $test() {
                if super::has_uring() {
                    super::$test(&mut $make)
                }
            })+
        }
    };
}

macro_rules! contract {
    ($($test:ident),+ $(,)?) => {
        mod epoll_that_sleeps {
            $(#[test] fn $test() {
                super::$test(&mut super::Kernel::new(|| super::epoll(super::Wait::Block)))
            })+
        }
        mod epoll_that_spins {
            $(#[test] fn $test() {
                super::$test(&mut super::Kernel::new(|| super::epoll(super::Wait::Spin)))
            })+
        }
        mod epoll_that_sleeps_and_spins {
            $(#[test] fn $test() {
                super::$test(&mut super::Kernel::new(|| super::epoll(super::Wait::Auto)))
            })+
        }
        contract_of_uring!(
            uring_that_sleeps, crate::Kernel::new(|| crate::uring(crate::Wait::Block)), $($test)+
        );
        contract_of_uring!(
            uring_that_spins, crate::Kernel::new(|| crate::uring(crate::Wait::Spin)), $($test)+
        );
        contract_of_uring!(
            uring_that_sleeps_and_spins, crate::Kernel::new(|| crate::uring(crate::Wait::Auto)), $($test)+
        );
        contract_of_uring!(
            tls_over_uring, crate::Encrypted::new(|| crate::uring(crate::Wait::Block)), $($test)+
        );
        mod epoll_that_stamps_what_leaves {
            $(#[test] fn $test() {
                super::$test(&mut super::Kernel::new(|| super::stamped_epoll(super::Wait::Block)))
            })+
        }
        mod epoll_that_spins_and_stamps_what_leaves {
            $(#[test] fn $test() {
                super::$test(&mut super::Kernel::new(|| super::stamped_epoll(super::Wait::Spin)))
            })+
        }
        contract_of_uring!(
            uring_that_stamps_what_leaves, crate::Kernel::new(|| crate::stamped_uring(crate::Wait::Block)), $($test)+
        );
        mod tls_over_epoll_that_stamps_what_leaves {
            $(#[test] fn $test() {
                super::$test(&mut super::Encrypted::new(|| super::stamped_epoll(super::Wait::Block)))
            })+
        }
        mod tls_over_epoll {
            $(#[test] fn $test() {
                super::$test(&mut super::Encrypted::new(|| super::epoll(super::Wait::Block)))
            })+
        }
        mod tls_over_sim_when_calm {
            $(#[test] fn $test() {
                super::$test(&mut super::SimulatedEncrypted::new(1, super::NetworkConditions::calm()))
            })+
        }
        mod tls_over_sim_when_rough {
            $(#[test] fn $test() {
                for seed in 0..5 {
                    super::$test(&mut super::SimulatedEncrypted::new(seed, super::NetworkConditions::rough()))
                }
            })+
        }
        mod sim_when_calm {
            $(#[test] fn $test() {
                super::$test(&mut super::Simulated { seed: 1, conditions: super::NetworkConditions::calm() })
            })+
        }
        mod sim_when_rough {
            $(#[test] fn $test() {
                for seed in 0..20 {
                    super::$test(&mut super::Simulated { seed, conditions: super::NetworkConditions::rough() })
                }
            })+
        }
    };
}

contract!(
    refusal_is_told_from_drain,
    bytes_come_back_whole,
    parts_are_sent_in_their_order,
    large_transfers_go_by_short_sends,
    data_comes_before_the_orderly_close_behind_it,
    a_reset_is_told_as_one,
    sending_into_a_broken_connection_ends_in_closed,
    nothing_comes_after_close,
    closing_before_it_is_open_is_quiet,
    waiting_ends_when_asked_and_not_before,
    an_event_ends_the_wait,
    stamps_lie_between_send_and_read,
    unix_sockets_have_no_stamps,
    many_connections_at_once,
);

#[test]
fn a_handshake_takes_as_long_as_the_way_there_and_back() {
    let mut world = SimulatedEncrypted::new(1, NetworkConditions::calm());
    let target = world.target(Server::Echo);
    let mut client = Client::new(world.backend());
    let mut took = Vec::new();
    for slot in 0..3 {
        let conn = client.opened(slot, &target);
        client.backend.handshakes(&mut |handshake| took.push((handshake.took, handshake.resumed)));
        // The server's tickets come before its first answer.
        exchange(&mut client, conn);
    }
    let (way, _) = NetworkConditions::calm().delay_ns;
    let resumed: Vec<bool> = took.iter().map(|(_, resumed)| *resumed).collect();
    assert_eq!(resumed, [false, true, true]);
    for (took, _) in took {
        assert!((2 * way..2 * way + MICROSECOND).contains(&took), "{took} ns");
    }
}

#[test]
fn storms_break_connections_and_never_the_order_of_events() {
    let message = pattern(3_000);
    let (mut whole, mut broken) = (0, 0);
    for seed in 0..50 {
        let mut world = Simulated { seed, conditions: NetworkConditions::harsh() };
        let target = world.target(Server::Echo);
        let mut client = Client::new(world.backend());
        let conns: Vec<ConnId> = (0..20).map(|slot| client.open(slot, 1, &target)).collect();
        let mut sent = vec![0; conns.len()];
        let over = |seen: &Seen| seen.closed.is_some() || seen.received.len() == message.len();
        while !client.seen.values().all(over) {
            let give_up = client.backend.now() + PATIENCE_NS;
            assert!(client.backend.wait(give_up).unwrap() < give_up);
            client.drain();
            for (&conn, sent) in conns.iter().zip(&mut sent) {
                if client.seen[&conn].writable && *sent < message.len() {
                    *sent += client.send(conn, &[IoSlice::new(&message[*sent..])]).taken;
                }
            }
        }
        for seen in client.seen.values() {
            assert!(message.starts_with(&seen.received));
            whole += u32::from(seen.received.len() == message.len());
            broken += u32::from(seen.closed.is_some());
        }
    }
    assert!(whole > 100 && broken > 100, "{whole} came back whole, {broken} broke");
}
