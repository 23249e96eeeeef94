//! The opening of a connection on every kernel interface: its socket, its options, and the meaning of its errors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use pummel_logic::plan::Socket;
use pummel_logic::protocol::Fault;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_measure::churn::ConnectionFailure;
use pummel_measure::trouble::CloseReason;

use super::transmit::TransmitStamps;
use super::{ConnId, Target};
use crate::sys::{self, Address};

/// Pause before a full unix listener is tried again, in nanoseconds.
const UNIX_RETRY_NS: Nanos = MILLISECOND;

/// Receive buffer of a datagram socket where the plan names none. Datagrams beyond the buffer are lost, and all
/// datagrams of a reply to a multi-get come at once. The kernel bounds the buffer by net.core.rmem_max and takes memory
/// only as needed.
const DATAGRAM_BUFFER_BYTES: u32 = 4 << 20;

/// A connection that was begun.
#[derive(Debug)]
pub struct Dialled {
    /// The socket, non-blocking.
    pub socket: OwnedFd,
    /// Whether the socket stamps what it receives.
    pub stamped: bool,
    /// Progress of the opening.
    pub stage: DialStage,
}

/// Progress of the opening of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialStage {
    /// The connection is being opened or is open: the socket becomes writable, or has an error.
    Begun,
    /// The queue of the unix listener is full. The opening begins again with another socket after a pause
    /// ([`UnixRetries`]).
    Full,
}

/// Connections to unix listeners whose queue was full, and when to try them again.
#[derive(Debug)]
pub struct UnixRetries {
    waiting: Vec<(ConnId, PathBuf)>,
    at: Nanos,
}

impl UnixRetries {
    /// Retries without a connection that waits.
    pub fn new() -> UnixRetries {
        UnixRetries { waiting: Vec::new(), at: NEVER }
    }

    /// When to try again; [`NEVER`] if no connection waits.
    #[inline]
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// Adds a connection that was tried at `now`, if `target` is a unix listener whose queue is full. Returns whether
    /// it was added.
    pub fn wait(&mut self, conn: ConnId, target: &Target, stage: DialStage, now: Nanos) -> bool {
        let (DialStage::Full, Target::Unix(path)) = (stage, target) else { return false };
        self.waiting.push((conn, path.clone()));
        self.at = self.at.min(now + UNIX_RETRY_NS);
        true
    }

    /// Takes all waiting connections, to be tried again.
    pub fn take(&mut self) -> Vec<(ConnId, PathBuf)> {
        self.at = NEVER;
        std::mem::take(&mut self.waiting)
    }
}

impl Default for UnixRetries {
    fn default() -> UnixRetries {
        UnixRetries::new()
    }
}

/// The stamps of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketStamps {
    /// The socket stamps nothing.
    None,
    /// The socket stamps what it receives.
    Received,
    /// The socket stamps what it receives, and is to have transmit stamps when it is connected.
    Both,
    /// The socket is to have the stamps of the network card beside both.
    Card,
}

impl SocketStamps {
    /// The stamps of a backend's sockets; `transmit` has the settings and the marked sends of transmit stamps.
    pub fn of(received: bool, transmit: Option<&TransmitStamps>) -> SocketStamps {
        match (received, transmit) {
            (false, _) => SocketStamps::None,
            (true, None) => SocketStamps::Received,
            (true, Some(transmit)) if transmit.is_by_card() => SocketStamps::Card,
            (true, Some(_)) => SocketStamps::Both,
        }
    }
}

/// Makes the socket of a connection and begins to connect it, with these stamps if the target has them.
///
/// # Errors
/// Returns ENAMETOOLONG or EINVAL for a path that no unix socket has, and otherwise the error of `socket`, of
/// `setsockopt`, of `bind` to the source, or of `connect` where that fails at once. A connection that is being opened
/// (EINPROGRESS) and a unix listener whose queue is full are no errors. EADDRNOTAVAIL always stands for a source that is no
/// address of this machine, and EADDRINUSE for an address without a free local port, whichever call said so.
pub fn dial(target: &Target, options: &Socket, stamps: SocketStamps) -> io::Result<Dialled> {
    let address = match target {
        Target::Tcp { address, .. } | Target::Udp { address, .. } => Address::internet(address),
        Target::Unix(path) => Address::unix(path)?,
    };
    let socket = match target {
        Target::Tcp { .. } | Target::Unix(_) => sys::stream_socket(&address)?,
        Target::Udp { .. } => sys::datagram_socket_to(&address)?,
    };
    set_options(socket.as_fd(), options, target)?;
    let stamps = if matches!(target, Target::Unix(_)) { SocketStamps::None } else { stamps };
    match stamps {
        SocketStamps::None => {}
        SocketStamps::Received => sys::set_receive_stamps(socket.as_fd())?,
        SocketStamps::Both => sys::set_receive_stamps_beside_transmit(socket.as_fd(), false)?,
        SocketStamps::Card => sys::set_receive_stamps_beside_transmit(socket.as_fd(), true)?,
    }
    let stage = match (sys::connect(socket.as_fd(), &address), target) {
        (Ok(()), _) => DialStage::Begun,
        (Err(error), _) if error.raw_os_error() == Some(libc::EINPROGRESS) => DialStage::Begun,
        (Err(error), Target::Unix(_)) if error.kind() == io::ErrorKind::WouldBlock => DialStage::Full,
        (Err(error), _) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {
            return Err(without_port(&address));
        }
        (Err(error), _) => return Err(error),
    };
    Ok(Dialled { socket, stamped: stamps != SocketStamps::None, stage })
}

/// The error behind EADDRNOTAVAIL of `connect` to this address: this machine has no address of its family, or all local ports are
/// taken. A datagram socket takes no port of the stream sockets, so that its `connect` fails in the first case alone.
fn without_port(address: &Address) -> io::Error {
    let other = sys::datagram_socket_to(address).and_then(|socket| sys::connect(socket.as_fd(), address));
    match other {
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {
            io::Error::from_raw_os_error(libc::ENETUNREACH)
        }
        _ => io::Error::from_raw_os_error(libc::EADDRINUSE),
    }
}

fn set_options(socket: BorrowedFd<'_>, options: &Socket, target: &Target) -> io::Result<()> {
    if let Some(bytes) = options.send_buffer {
        sys::set_send_buffer(socket, bytes)?;
    }
    if let Some(bytes) = options.recv_buffer {
        sys::set_receive_buffer(socket, bytes)?;
    }
    if let Target::Udp { source, .. } = target {
        if options.recv_buffer.is_none() {
            sys::set_receive_buffer(socket, DATAGRAM_BUFFER_BYTES)?;
        }
        return source.map_or(Ok(()), |source| sys::bind(socket, &Address::internet(&source)));
    }
    if let Some(seconds) = options.linger_s {
        sys::set_linger(socket, seconds)?;
    }
    let Target::Tcp { source, .. } = target else { return Ok(()) };
    if options.nodelay {
        sys::set_nodelay(socket)?;
    }
    if let Some(source) = source {
        if source.port() == 0 {
            sys::set_bind_address_no_port(socket)?;
        }
        sys::bind(socket, &Address::internet(source))?;
    }
    Ok(())
}

/// The state of a connection that is being opened, after a report of readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectProgress {
    /// The connection is still being opened.
    Wait,
    /// The connection is open.
    Open,
    /// The connection was open and has ended with this error number. The caller reports it as opened and then closed,
    /// since a reset before the opening would count as a refusal.
    Broken(u16),
    /// The connection could not be opened, with this error number.
    Failed(i32),
}

/// Reads a report of readiness, in the bits of [`sys`], on a connection that is being opened.
pub fn connect_progress(socket: BorrowedFd<'_>, bits: u32) -> ConnectProgress {
    if bits & (sys::FAILED | sys::HUNG_UP) == 0 {
        return if bits & sys::WRITABLE == 0 { ConnectProgress::Wait } else { ConnectProgress::Open };
    }
    match sys::take_socket_error(socket) {
        Ok(0) => ConnectProgress::Open,
        Ok(error @ (libc::ECONNRESET | libc::EPIPE)) => ConnectProgress::Broken(error as u16),
        Ok(error) => ConnectProgress::Failed(error),
        Err(error) => ConnectProgress::Failed(sys::errno(&error)),
    }
}

/// The class of a connection's failure, as runs with churning clients count it.
pub fn failure_of(reason: &CloseReason) -> ConnectionFailure {
    match reason.errno {
        0 if reason.fault == Fault::Timeout => ConnectionFailure::Timeout,
        libc::ETIMEDOUT => ConnectionFailure::Unreachable,
        libc::ECONNREFUSED => ConnectionFailure::Refused,
        libc::ECONNRESET | libc::EPIPE => ConnectionFailure::Reset,
        libc::EMFILE => ConnectionFailure::Descriptors,
        libc::ENFILE => ConnectionFailure::Files,
        libc::EADDRNOTAVAIL | libc::EADDRINUSE => ConnectionFailure::Addresses,
        _ => ConnectionFailure::Other,
    }
}

/// The reason that stands for an error number of a connection.
pub fn reason(errno: i32) -> CloseReason {
    let fault = match errno {
        // No server listens under a path that does not exist, either.
        libc::ECONNREFUSED | libc::ENOENT => Fault::Refused,
        libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Fault::Reset,
        libc::ETIMEDOUT => Fault::Timeout,
        _ => Fault::Closed,
    };
    CloseReason::new(fault, errno)
}
