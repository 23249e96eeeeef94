//! Datagrams on every backend: each send is one datagram, each receive is one datagram, and an empty one is no end.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};

use pummel_engine::backend::epoll::Epoll;
use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer, Sim, datagram_to_client};
use pummel_engine::backend::uring::Uring;
use pummel_engine::backend::{Backend, Close, ConnId, Event, Target};
use pummel_logic::plan::{Clock, Socket, Wait};
use pummel_logic::protocol::Fault;
use pummel_logic::time::{NEVER, Nanos, SECOND};

const CONN: ConnId = ConnId { slot: 3, generation: 9 };

/// A datagram of this length ends the echo.
const LAST_BYTES: usize = 7;

/// Sends each datagram back, after an empty datagram.
fn echo() -> (SocketAddr, JoinHandle<()>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let echoing = thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            let (len, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&[], from).unwrap();
            socket.send_to(&buffer[..len], from).unwrap();
            if len == LAST_BYTES {
                return;
            }
        }
    });
    (address, echoing)
}

fn udp(address: SocketAddr) -> Target {
    Target::Udp { address, source: None }
}

/// Takes turns until `enough` holds of the received datagrams, with their stamps, and the end of the connection.
fn turns(backend: &mut impl Backend, mut on: impl FnMut(Event<'_>), mut enough: impl FnMut() -> bool) {
    let end = backend.now() + 20 * SECOND;
    while !enough() {
        let now = backend.wait(end).unwrap();
        assert!(now < end, "nothing more happens");
        backend.drain(&mut |conn, event| {
            assert_eq!(conn, CONN);
            on(event);
        });
    }
}

fn open(backend: &mut impl Backend, target: &Target) {
    backend.open(CONN, target);
    let opened = std::cell::Cell::new(false);
    turns(backend, |event| opened.set(matches!(event, Event::Opened { .. })), || opened.get());
}

/// Each send is a datagram, each datagram comes by itself, stamped between its sending and its reading.
fn check_echo(mut backend: impl Backend, target: &Target) {
    open(&mut backend, target);
    let lengths = [1, 1400, 8, 500, LAST_BYTES];
    let mut sent = Vec::new();
    for len in lengths {
        let bytes = vec![len as u8; len];
        let (head, tail) = bytes.split_at(len / 2);
        let parts = [IoSlice::new(head), IoSlice::new(tail)];
        let handed = backend.send(CONN, &parts);
        assert_eq!(handed.taken, len);
        sent.push(handed.at);
    }
    let came = std::cell::RefCell::new(Vec::new());
    let take = |event: Event<'_>| match event {
        Event::Received { bytes, stamp, read } => came.borrow_mut().push((bytes.to_vec(), stamp, read)),
        Event::Writable => {}
        event => panic!("{event:?}"),
    };
    turns(&mut backend, take, || came.borrow().len() == lengths.len());
    let mut came = came.into_inner();
    came.sort_by_key(|(bytes, ..)| lengths.iter().position(|&len| len == bytes.len()));
    for (((bytes, stamp, read), len), at) in came.into_iter().zip(lengths).zip(sent) {
        assert_eq!(bytes, vec![len as u8; len]);
        let stamp = stamp.expect("each datagram has a stamp");
        assert!(at <= stamp + 1_000 && stamp <= read + 1_000, "{at} {stamp} {read}");
    }
    backend.close(CONN, Close::Fin);
}

/// Checks that a datagram is lost where no server listens, and that the connection closes as refused.
fn check_nobody(mut backend: impl Backend, target: &Target) {
    open(&mut backend, target);
    let handed = backend.send(CONN, &[IoSlice::new(b"anybody?")]);
    assert_eq!(handed.taken, 8);
    let fault = std::cell::Cell::new(None);
    let take = |event: Event<'_>| {
        if let Event::Closed(reason) = event {
            fault.set(Some(reason.fault));
        }
    };
    turns(&mut backend, take, || fault.get().is_some());
    assert_eq!(fault.get(), Some(Fault::Refused));
}

fn check_kernel<B: Backend>(make: impl Fn() -> B) {
    let (address, echoing) = echo();
    check_echo(make(), &udp(address));
    echoing.join().unwrap();
    let (address, echoing) = echo();
    let source = Some((Ipv4Addr::LOCALHOST, 0).into());
    check_echo(make(), &Target::Udp { address, source });
    echoing.join().unwrap();
    // A socket that is connected to itself drops the datagrams of others, and keeps its port from being bound meanwhile.
    let deaf = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    deaf.connect(deaf.local_addr().unwrap()).unwrap();
    check_nobody(make(), &udp(deaf.local_addr().unwrap()));
}

#[test]
fn datagrams_by_epoll() {
    check_kernel(|| Epoll::new(Wait::Block, Clock::Kernel, &Socket::default()).unwrap());
}

#[test]
fn datagrams_by_io_uring() {
    if let Some(obstacle) = Uring::why_unusable() {
        eprintln!("io_uring is left out: {obstacle}");
        return;
    }
    check_kernel(|| Uring::new(Wait::Block, Clock::Kernel, &Socket::default()).unwrap());
}

/// The simulated echo.
#[derive(Default)]
struct Echo(Vec<Vec<u8>>);

impl Peer for Echo {
    fn handle_connect(&mut self, _conn: ConnId, _target: &Target, _now: Nanos) -> Admission {
        Admission::Accept
    }

    fn handle_received(&mut self, _conn: ConnId, bytes: &[u8], _now: Nanos) {
        self.0.push(bytes.to_vec());
    }

    fn poll(&mut self, _conn: ConnId, _now: Nanos, out: &mut Vec<u8>) -> Next {
        for datagram in self.0.drain(..) {
            datagram_to_client(&[], out);
            datagram_to_client(&datagram, out);
        }
        Next::At(NEVER)
    }
}

#[test]
fn datagrams_by_simulation() {
    let target = udp((Ipv4Addr::LOCALHOST, 1).into());
    for seed in 0..20 {
        let late = NetworkConditions {
            cut: 0.5,
            reset: 0.5,
            hold: 0.5,
            delay_ns: (5, 90_000),
            ..NetworkConditions::calm()
        };
        for conditions in [NetworkConditions::calm(), late] {
            check_echo(Sim::new(seed, conditions, Echo::default()), &target);
        }
    }
}
