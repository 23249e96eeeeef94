//! What the tests of backends have in common: a socket's plain options, a listener, an open connection.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use pummel_logic::plan::Socket;
use pummel_logic::time::SECOND;

use super::{Backend, ConnId, Event, Target};
use crate::clock;

pub fn plain_socket() -> Socket {
    Socket { nodelay: true, linger_s: None, send_buffer: None, recv_buffer: None, source: Vec::new() }
}

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
    let _ = writeln!(std::io::stderr(), "not tested: {why}");
}
