//! Where the built-in server listens, and the sockets that it hears.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::ServeError;

/// Connections that wait to be accepted, at most; the kernel's `net.core.somaxconn` may say less.
const BACKLOG: i32 = 4096;

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
            _ => Err("an address with a port (127.0.0.1:11211, [::1]:0, localhost:0) or the absolute path of a unix \
                      socket is accepted"
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
pub(super) enum Door {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Door {
    pub(super) fn open(listen: &Listen) -> Result<Door, ServeError> {
        let wrap =
            |cause: io::Error| ServeError::new(format!("cannot listen on {listen}{}", hint(&cause)), cause);
        let door = match listen {
            Listen::Tcp(address) => {
                let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(wrap)?.collect();
                Door::Tcp(TcpListener::bind(&*addresses).map_err(wrap)?)
            }
            Listen::Unix(path) => Door::Unix(bind_unix(path).map_err(wrap)?, path.clone()),
        };
        match &door {
            Door::Tcp(listener) => listener.set_nonblocking(true),
            Door::Unix(listener, _) => listener.set_nonblocking(true),
        }
        .map_err(wrap)?;
        rustix::net::listen(&door, BACKLOG).map_err(|errno| wrap(errno.into()))?;
        Ok(door)
    }

    /// Where it is, as a client would name it.
    pub(super) fn address(&self) -> io::Result<String> {
        match self {
            Door::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Door::Unix(_, path) => Ok(path.display().to_string()),
        }
    }

    /// The next connection that waits, ready for use; `WouldBlock` when none does.
    pub(super) fn accept(&self) -> io::Result<Line> {
        match self {
            Door::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Line::Tcp(stream))
            }
            Door::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Line::Unix(stream))
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Door::Unix(_, path) = self {
            // It may be gone already; a leftover is taken over by the next server.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Door::Tcp(listener) => listener.as_fd(),
            Door::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// Binds a path, also one where a server that is gone left its socket.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match UnixStream::connect(path) {
            Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            _ => Err(error),
        },
        bound => bound,
    }
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => " (port 0 takes any free one)",
        io::ErrorKind::PermissionDenied => " (ports below 1024 need root)",
        _ => "",
    }
}

/// The socket of one connection.
#[derive(Debug)]
pub(super) enum Line {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Line {
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Tcp(stream) => stream.read(into),
            Line::Unix(stream) => stream.read(into),
        }
    }

    pub(super) fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Line::Tcp(stream) => stream.write_vectored(parts),
            Line::Unix(stream) => stream.write_vectored(parts),
        }
    }

    /// Makes closing send a reset instead of an orderly end, where the kind of socket knows one.
    pub(super) fn close_by_reset(&self) {
        if let Line::Tcp(stream) = self {
            // Fails only on a socket that is gone, and then nobody is left to see the difference.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Line::Tcp(stream) => stream.as_fd(),
            Line::Unix(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
