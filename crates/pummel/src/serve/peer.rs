//! The connection to the peer of the built-in server, which is opened again and again and carries copies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};

use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_testserver::Server;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::serve::error::ServeError;
use crate::stderr::say;

/// Between two attempts to reach the peer.
const RETRY_NS: Nanos = 100 * MILLISECOND;

/// How long the peer may take for a connection, or to answer a copy, before it counts as gone: replies wait for it.
const PATIENCE_NS: Nanos = SECOND;

/// Bytes of one read; a reply to a copy has 24.
const READ_BYTES: usize = 16 * 1024;

/// A server that gets copies of what is stored here.
#[derive(Debug)]
pub(super) struct Peer {
    name: String,
    address: SocketAddr,
    link: Link,
    /// It was said that the peer is away.
    is_said_missing: bool,
    /// It was said that the peer refuses copies.
    is_said_refusing: bool,
    buffer: Box<[u8]>,
}

/// How far the connection to the peer is.
#[derive(Debug)]
enum Link {
    /// There is none until this time.
    Closed(Nanos),
    /// It is being opened until this time.
    Opening(TcpStream, Nanos),
    /// Copies that are owed are answered until this time; [`NEVER`] where none is owed.
    Open(TcpStream, Nanos),
}

/// What is to be done about the socket of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// There is a new one, to be told of in both directions, each time that something changes.
    Opened,
    /// Copies were answered, or are given up: replies may go out that waited for them.
    Answered,
}

impl Peer {
    /// The peer of this name; the first of its addresses is taken.
    pub(super) fn find(name: &str, now: Nanos) -> Result<Peer, ServeError> {
        let wrap = |cause| ServeError::new(format!("cannot find the peer {name}"), cause);
        let mut addresses = name.to_socket_addrs().map_err(wrap)?;
        let none = || wrap(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        let address = addresses.next().ok_or_else(none)?;
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        let link = Link::Closed(now);
        Ok(Peer {
            name: name.to_owned(),
            address,
            link,
            is_said_missing: false,
            is_said_refusing: false,
            buffer,
        })
    }

    /// The socket, where there is one.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.link {
            Link::Closed(_) => None,
            Link::Opening(stream, _) | Link::Open(stream, _) => Some(stream.as_fd()),
        }
    }

    /// When something has to be done, if nothing happens before.
    pub(super) fn next_time(&self) -> Nanos {
        match self.link {
            Link::Closed(at) | Link::Opening(_, at) | Link::Open(_, at) => at,
        }
    }

    /// Opens the connection when it is time, sends copies, and gives up a peer that does not answer.
    pub(super) fn poll(&mut self, server: &mut Server, now: Nanos) -> Change {
        match &mut self.link {
            Link::Closed(at) if *at <= now => match begin(&self.address) {
                Ok(stream) => {
                    self.link = Link::Opening(stream, now + PATIENCE_NS);
                    Change::Opened
                }
                Err(error) => self.lose(server, &error, now),
            },
            Link::Closed(_) => Change::None,
            Link::Opening(_, until) | Link::Open(_, until) if *until <= now => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
                self.lose(server, &error, now)
            }
            Link::Opening(..) => Change::None,
            Link::Open(..) if !server.copies().is_open() => {
                let error = io::Error::other("it takes copies more slowly than they are made");
                self.lose(server, &error, now)
            }
            Link::Open(stream, until) => {
                let sent = send(stream, server);
                match server.copies().owed() {
                    0 => *until = NEVER,
                    _ if *until == NEVER => *until = now + PATIENCE_NS,
                    _ => {}
                }
                sent.map_or_else(|error| self.lose(server, &error, now), |()| Change::None)
            }
        }
    }

    /// Handles an event of the socket.
    pub(super) fn handle(&mut self, server: &mut Server, now: Nanos) -> Change {
        match std::mem::replace(&mut self.link, Link::Closed(now + RETRY_NS)) {
            Link::Closed(at) => {
                self.link = Link::Closed(at);
                Change::None
            }
            Link::Opening(stream, until) => match is_connected(&stream) {
                Ok(false) => {
                    self.link = Link::Opening(stream, until);
                    Change::None
                }
                Ok(true) => {
                    server.open_peer(now);
                    self.link = Link::Open(stream, NEVER);
                    if std::mem::take(&mut self.is_said_missing) {
                        say(format_args!("pummel serve: the peer {} is reachable", self.name));
                    }
                    self.poll(server, now)
                }
                Err(error) => self.lose(server, &error, now),
            },
            Link::Open(stream, until) => {
                self.link = Link::Open(stream, until);
                let change = match self.read(server, now) {
                    Ok(change) => change,
                    Err(error) => return self.lose(server, &error, now),
                };
                match self.poll(server, now) {
                    Change::None => change,
                    other => other,
                }
            }
        }
    }

    fn read(&mut self, server: &mut Server, now: Nanos) -> io::Result<Change> {
        let Link::Open(stream, until) = &mut self.link else { return Ok(Change::None) };
        if !server.copies().is_open() {
            // The copies were given up: nothing that the peer says is a reply to one.
            return Ok(Change::None);
        }
        let mut change = Change::None;
        loop {
            match stream.read(&mut self.buffer) {
                Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok(count) => match server.copies().handle_received(&self.buffer[..count]) {
                    Ok(true) => {
                        (change, *until) = (Change::Answered, now + PATIENCE_NS);
                    }
                    Ok(false) => {}
                    Err(_) => return Err(io::Error::other("it does not speak memcached's binary protocol")),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if let (_, Some(status)) = server.copies().refused()
            && !std::mem::replace(&mut self.is_said_refusing, true)
        {
            say(format_args!("pummel serve: the peer {} refuses copies: status {status:#06x}", self.name));
        }
        Ok(change)
    }

    /// The peer is gone, or does not come.
    fn lose(&mut self, server: &mut Server, error: &io::Error, now: Nanos) -> Change {
        self.link = Link::Closed(now + RETRY_NS);
        server.copies().close();
        if !std::mem::replace(&mut self.is_said_missing, true) {
            say(format_args!(
                "pummel serve: the peer {} is unreachable ({error}); it gets copies of all items when it is back",
                self.name
            ));
        }
        Change::Answered
    }
}

/// Begins to connect.
fn begin(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    sockopt::socket_error(stream)??;
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends as many copies as go.
fn send(stream: &mut TcpStream, server: &mut Server) -> io::Result<()> {
    loop {
        let bytes = server.copies().poll_send();
        if bytes.is_empty() {
            return Ok(());
        }
        match stream.write(bytes) {
            Ok(count) => server.copies().handle_sent(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
