//! Shared parts of the tests of backends: a listener, an open connection, and checks beyond the contract.

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

/// Opens a connection in slot 0. Returns it and the server's end of it.
pub fn opened(backend: &mut impl Backend, listener: &TcpListener, target: &Target) -> (ConnId, TcpStream) {
    opened_in(0, backend, listener, target)
}

/// Opens a connection in `slot`. Returns it and the server's end of it.
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

/// Prints why something cannot be tested on this machine.
pub fn untested(why: &str) {
    let _ = writeln!(io::stderr(), "not tested: {why}");
}

/// Closes connections in every way, and checks what the peer reads.
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
        // The close may take effect only with the next entry into the kernel.
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

/// Checks that bytes received with the user's clock have no stamp, and are read when they come.
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
