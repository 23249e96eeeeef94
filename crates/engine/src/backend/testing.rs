//! What the tests of backends have in common: a listener, an open connection, and what is true of each that the contract
//! does not say.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use pummel_logic::plan::Socket;
use pummel_logic::time::SECOND;

use super::{Backend, Close, ConnId, Event, Target};
use crate::clock;

/// A listener on a free port, and the target that leads to it.
pub fn listener() -> (TcpListener, Target) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = Target::Tcp { address: listener.local_addr().unwrap(), source: None };
    (listener, target)
}

/// Opens slot 0, and gives the other end of it.
pub fn opened(backend: &mut impl Backend, listener: &TcpListener, target: &Target) -> (ConnId, TcpStream) {
    opened_in(0, backend, listener, target)
}

/// Opens a slot, and gives the other end of it.
pub fn opened_in(
    slot: u32,
    backend: &mut impl Backend,
    listener: &TcpListener,
    target: &Target,
) -> (ConnId, TcpStream) {
    let conn = ConnId { slot, generation: 3 };
    backend.open(conn, target);
    let (stream, _) = listener.accept().unwrap();
    let mut open = false;
    while !open {
        backend.wait(clock::now() + 10 * SECOND).unwrap();
        backend.drain(&mut |_, event| open |= matches!(event, Event::Opened { .. }));
    }
    (conn, stream)
}

/// Says that something cannot be tested on this machine, and why.
pub fn untested(why: &str) {
    let _ = writeln!(io::stderr(), "not tested: {why}");
}

/// Closes in every way, and asks the peer which it was.
pub fn check_that_peers_see_how_we_close<B: Backend>(backend: impl Fn(&Socket) -> B) {
    let lingering = Socket { linger_s: Some(0), ..Socket::default() };
    for (options, how, reset) in [
        (Socket::default(), Close::Fin, false),
        (Socket::default(), Close::Reset, true),
        (lingering, Close::Fin, true),
    ] {
        let mut backend = backend(&options);
        let (listener, target) = listener();
        let (conn, mut stream) = opened(&mut backend, &listener, &target);
        backend.close(conn, how);
        // It may take effect with the next entry into the kernel only.
        backend.wait(0).unwrap();
        match stream.read(&mut [0]) {
            Ok(0) => assert!(!reset, "{how:?} {options:?}"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                assert!(reset, "{how:?} {options:?}")
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What a backend with the user's clock receives has no stamp, and was read when it came.
pub fn check_that_nothing_is_stamped(backend: &mut impl Backend) {
    let (listener, target) = listener();
    let (_, mut stream) = opened(backend, &listener, &target);
    let before = clock::now();
    stream.write_all(b"x").unwrap();
    let mut times = None;
    while times.is_none() {
        backend.wait(clock::now() + 10 * SECOND).unwrap();
        backend.drain(&mut |_, event| {
            if let Event::Received { stamp, read, .. } = event {
                times = Some((stamp, read));
            }
        });
    }
    let (stamp, read) = times.unwrap();
    assert_eq!(stamp, None);
    assert!(before <= read && read <= clock::now());
}
