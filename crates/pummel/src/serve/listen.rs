//! Where the built-in server listens, and the streams of its clients.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use pummel_engine::sys;
use pummel_logic::time::Nanos;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustls::{ServerConfig, ServerConnection};

use crate::serve::error::ServeError;

/// Connections that wait to be accepted, at most; the kernel's `net.core.somaxconn` may say less.
const BACKLOG: i32 = 4096;

/// A free port that TCP gave is tried for UDP; if another process has that one, so often another.
const PORTS_TRIED: usize = 16;

/// Where to listen, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `HOST:PORT`; resolved when it is opened.
    Tcp(String),
    /// A unix socket at this path.
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        if text.starts_with('/') {
            return Ok(Listen::Unix(PathBuf::from(text)));
        }
        let bare_v6 = |host: &str| host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && !bare_v6(host) && port.parse::<u16>().is_ok() => {
                Ok(Listen::Tcp(text.to_owned()))
            }
            _ => Err("expected an address with a port (127.0.0.1:11211, [::1]:0, localhost:0) or the absolute path of a unix \
                      socket"
                .to_owned()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp(address) => out.write_str(address),
            Listen::Unix(path) => write!(out, "{}", path.display()),
        }
    }
}

/// An open listening socket. A unix socket's file goes with it.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub(super) fn open(listen: &Listen) -> Result<Listener, ServeError> {
        let wrap = |cause: io::Error| {
            ServeError::new(format!("cannot listen on {listen}{}", hint(listen, &cause)), cause)
        };
        let listener = match listen {
            Listen::Tcp(address) => {
                let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(wrap)?.collect();
                Listener::Tcp(TcpListener::bind(&*addresses).map_err(wrap)?)
            }
            Listen::Unix(path) => Listener::Unix(bind_unix(path).map_err(wrap)?, path.clone()),
        };
        match &listener {
            Listener::Tcp(listener) => listener.set_nonblocking(true),
            Listener::Unix(listener, _) => listener.set_nonblocking(true),
        }
        .map_err(wrap)?;
        rustix::net::listen(&listener, BACKLOG).map_err(|errno| wrap(errno.into()))?;
        Ok(listener)
    }

    /// Opens a listener, and for a TCP one a UDP socket on the same port.
    pub(super) fn open_with_udp(listen: &Listen) -> Result<(Listener, Option<UdpSocket>), ServeError> {
        let any_port = matches!(listen, Listen::Tcp(address) if address.ends_with(":0"));
        let wrap = |cause: io::Error| {
            ServeError::new(format!("cannot listen on {listen} for UDP{}", hint(listen, &cause)), cause)
        };
        for tried in 1.. {
            let listener = Listener::open(listen)?;
            let Listener::Tcp(tcp) = &listener else { return Ok((listener, None)) };
            match tcp.local_addr().and_then(UdpSocket::bind) {
                Ok(socket) => {
                    socket.set_nonblocking(true).map_err(wrap)?;
                    return Ok((listener, Some(socket)));
                }
                Err(cause) if any_port && tried < PORTS_TRIED && cause.kind() == io::ErrorKind::AddrInUse => {
                }
                Err(cause) => return Err(wrap(cause)),
            }
        }
        unreachable!("the last try ends in one way or the other")
    }

    /// Makes the kernel stamp what the clients of a TCP listener send.
    pub(super) fn stamp_arrivals(&self) -> io::Result<()> {
        match self {
            // Accepted sockets inherit the option.
            Listener::Tcp(listener) => sys::set_receive_stamps(listener.as_fd()),
            Listener::Unix(..) => Ok(()),
        }
    }

    /// The address or path, as a client names it.
    pub(super) fn address(&self) -> io::Result<String> {
        match self {
            Listener::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Listener::Unix(_, path) => Ok(path.display().to_string()),
        }
    }

    /// The address of a TCP listener; `None` for a unix socket.
    pub(super) fn socket_address(&self) -> Option<io::Result<SocketAddr>> {
        match self {
            Listener::Tcp(listener) => Some(listener.local_addr()),
            Listener::Unix(..) => None,
        }
    }

    /// Stops listening. The port of a TCP listener goes to no other process as long as the result is held; clients are refused
    /// there.
    pub(super) fn retire(self) -> io::Result<Option<OwnedFd>> {
        let Some(address) = self.socket_address().transpose()? else { return Ok(None) };
        drop(self);
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        Ok(Some(socket))
    }

    /// The next connection that waits, ready for use; `WouldBlock` when none does.
    pub(super) fn accept(&self, tls: Option<&Arc<ServerConfig>>) -> io::Result<ClientStream> {
        let socket = self.accept_socket()?;
        let tls = tls.map(|config| ServerConnection::new(Arc::clone(config))).transpose();
        Ok(ClientStream { socket, tls: tls.map_err(io::Error::other)?.map(Box::new) })
    }

    fn accept_socket(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream, None))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Socket::Unix(stream))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // It may be gone already; a leftover is taken over by the next server.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// Binds a path, also one where a server that is gone left its socket.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_deserted(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Whether a path is that of a socket without a listening process. The kernel refuses connections to any other file, too.
fn is_deserted(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket && matches!(connect_at_once(path), Err(rustix::io::Errno::CONNREFUSED))
}

/// Connects to a unix socket, unless that would have to wait for the server.
fn connect_at_once(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn hint(listen: &Listen, cause: &io::Error) -> &'static str {
    match (listen, cause.kind()) {
        (Listen::Tcp(_), io::ErrorKind::AddrInUse) => " (port 0 takes any free one)",
        (Listen::Tcp(_), io::ErrorKind::PermissionDenied) => " (ports below 1024 need root)",
        (Listen::Unix(_), io::ErrorKind::AddrInUse) => {
            " (only a socket at which no server listens is taken over)"
        }
        _ => "",
    }
}

/// The stream of one client, perhaps behind TLS.
#[derive(Debug)]
pub(super) struct ClientStream {
    socket: Socket,
    tls: Option<Box<ServerConnection>>,
}

#[derive(Debug)]
enum Socket {
    /// With the wall time at which the kernel received the newest bytes that were read, where it stamped them.
    Tcp(TcpStream, Option<Nanos>),
    Unix(UnixStream),
}

impl ClientStream {
    /// Reads bytes of the client; `WouldBlock` where there are no more for now.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(into) };
        match tls.reader().read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
        if tls.read_tls(&mut self.socket)? == 0 {
            return Ok(0);
        }
        if let Err(error) = tls.process_new_packets() {
            // The alert that says why is sent if the socket takes it; the connection is over in any case.
            let _ = tls.write_tls(&mut self.socket);
            return Err(io::Error::other(error));
        }
        tls.reader().read(into)
    }

    /// The wall time at which the kernel received the newest bytes that were read, in nanoseconds; `None` where it did not
    /// stamp them.
    pub(super) fn received_wall(&self) -> Option<Nanos> {
        match &self.socket {
            Socket::Tcp(_, stamp) => *stamp,
            Socket::Unix(_) => None,
        }
    }

    /// Whether bytes of the client were decrypted and not read yet: no event of the kernel reports those.
    pub(super) fn has_unread(&mut self) -> bool {
        self.tls.as_mut().is_some_and(|tls| {
            tls.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
        })
    }

    /// Takes as many of the bytes as go.
    pub(super) fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write_vectored(parts) };
        let count = tls.writer().write_vectored(parts)?;
        self.flush()?;
        Ok(count)
    }

    /// Sends what TLS has to say by itself, and what it took and did not send; whether that is all sent.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether all that TLS took was sent.
    pub(super) fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Sends what TLS took, and its message that no more bytes follow; whether that is all sent. The message is written once,
    /// however often this is called.
    pub(super) fn say_goodbye(&mut self) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush()
    }

    /// Makes closing send a reset instead of an orderly end, where the kind of socket knows one.
    pub(super) fn close_by_reset(&self) {
        if let Socket::Tcp(stream, _) = &self.socket {
            // Fails only on a socket that is gone, and then no client sees the difference.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}

impl AsFd for ClientStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream, _) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream, stamp) => {
                let (count, received) = sys::receive_stamped(stream.as_fd(), into)?;
                *stamp = received;
                Ok(count)
            }
            Socket::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream, _) => stream.write_vectored(parts),
            Socket::Unix(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_without_a_listening_process_is_taken_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("socket");
        std::fs::write(&path, "no socket").expect("it can be written");
        assert_eq!(bind_unix(&path).expect_err("it is a file").kind(), io::ErrorKind::AddrInUse);
        assert_eq!(std::fs::read_to_string(&path).expect("it is still there"), "no socket");
        std::fs::remove_file(&path).expect("it is there");

        let server = bind_unix(&path).expect("the place is free");
        assert_eq!(bind_unix(&path).expect_err("it listens").kind(), io::ErrorKind::AddrInUse);
        rustix::net::listen(&server, 0).expect("it is a listener");
        // It accepts no connection, and has room for a few, of which that of the look above may be one.
        let _waiting: Vec<OwnedFd> = std::iter::from_fn(|| connect_at_once(&path).ok()).collect();
        assert_eq!(bind_unix(&path).expect_err("it is busy").kind(), io::ErrorKind::AddrInUse);
        drop(server);
        bind_unix(&path).expect("its server is gone");
    }

    #[test]
    fn a_listener_that_retires_refuses_clients_and_keeps_its_port() {
        let listener = Listener::open(&Listen::Tcp("127.0.0.1:0".to_owned())).expect("a free port");
        let address = listener.socket_address().expect("it is one of TCP").expect("it is bound");
        TcpStream::connect(address).expect("it listens");
        let held = listener.retire().expect("the port is free").expect("it has a port");
        let refused = TcpStream::connect(address).expect_err("nobody listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(
            rustix::net::getsockname(&held).map(SocketAddr::try_from).expect("it is bound"),
            Ok(address)
        );
    }

    #[test]
    fn places_to_listen_are_addresses_with_ports_or_paths() {
        for good in ["127.0.0.1:0", "[::1]:11211", "localhost:80", "/tmp/socket"] {
            assert_eq!(good.parse::<Listen>().unwrap().to_string(), good);
        }
        for bad in ["", "127.0.0.1", ":80", "::1", "::1:80", "localhost:99999", "relative/path", "11211"] {
            assert!(bad.parse::<Listen>().unwrap_err().contains("[::1]:0"), "{bad}");
        }
    }
}
