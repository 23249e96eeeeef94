//! The contract between workers and the kernel: connections are opened, bytes are sent, and events come back as
//! completions.

pub(crate) mod choice;
pub mod dial;
pub mod epoll;
#[cfg(any(test, feature = "testing"))]
pub mod sim;
mod sockets;
pub mod stamps;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod transmit;
pub mod uring;
pub(crate) mod waiting;

use std::io;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::path::PathBuf;

use pummel_logic::time::Nanos;
use pummel_measure::trouble::CloseReason;

pub use self::transmit::{Mark, TransmitStamp};

/// The identity of a connection: its slot in the worker and the use of that slot, so that a late event of an older
/// connection is recognised and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Index in the worker's table; small and dense.
    pub slot: u32,
    /// Number of the slot's use.
    pub generation: u32,
}

/// The target of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// TCP, from `source` where it is given.
    Tcp {
        /// The server's address.
        address: SocketAddr,
        /// The address to connect from; port 0 leaves the port to the kernel.
        source: Option<SocketAddr>,
    },
    /// A unix stream socket.
    Unix(PathBuf),
    /// UDP, from `source` where it is given. The connection is open at once, whether or not a server listens. Each send
    /// is one datagram and is taken whole or not at all. Each [`Event::Received`] is one datagram with its own stamp,
    /// in the order of arrival. Datagrams without bytes are dropped. The connection closes when the peer's system
    /// reports that no socket listens on the port.
    Udp {
        /// The server's address.
        address: SocketAddr,
        /// The address to send from; port 0 leaves the port to the kernel.
        source: Option<SocketAddr>,
    },
}

/// The result of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Number of bytes that the kernel took. When they are fewer than were offered, the socket is full and
    /// [`Event::Writable`] follows; the next send begins with the bytes that were not taken. The number is also 0 when
    /// the connection broke; [`Event::Closed`] follows then.
    pub taken: usize,
    /// The clock immediately before the system call.
    pub at: Nanos,
}

/// The way to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The connection is closed in order, or as the socket's linger option says.
    Fin,
    /// The connection is reset.
    Reset,
}

/// A TLS handshake that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsHandshake {
    /// Nanoseconds from the system call that took the client's first message to the arrival of the server's last one,
    /// by its receive stamp, or by when it was read where there is no stamp.
    pub took: Nanos,
    /// Whether an earlier session was resumed, which spares most of the work.
    pub resumed: bool,
}

/// An event on a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is open.
    Opened {
        /// The clock when the backend saw it, which may be later than the kernel's opening.
        at: Nanos,
    },
    /// Bytes were received.
    Received {
        /// The bytes; never empty.
        bytes: &'a mut [u8],
        /// When the kernel received the newest byte, on the monotonic clock; `None` without a receive stamp.
        stamp: Option<Nanos>,
        /// The clock when the worker read the bytes.
        read: Nanos,
    },
    /// The socket takes bytes again after a short send.
    Writable,
    /// The connection broke, was closed by the peer, or could not be opened. The slot is free, and no more events come
    /// for this id.
    Closed(CloseReason),
}

/// A kernel interface, or a simulation of one. Three exist (epoll, io_uring, and a simulation for tests), and all pass
/// one suite of tests.
pub trait Backend {
    /// The monotonic clock.
    fn now(&self) -> Nanos;

    /// Begins to open a connection in a slot that is not in use. [`Backend::drain`] hands over [`Event::Opened`] or
    /// [`Event::Closed`] later.
    fn open(&mut self, conn: ConnId, target: &Target);

    /// Sends as many bytes of `parts` as the socket takes now. The caller offers at least one byte, only between
    /// [`Event::Opened`] and the end of the connection, and after a short send not before [`Event::Writable`].
    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed;

    /// Sends as [`Backend::send`] does, on connections whose sends all go through this function, and has the last byte
    /// stamped on its way out where there is a `mark` and the kernel takes all bytes. The stamp is there for
    /// [`Backend::transmit_stamp`] as soon as the reply is.
    fn send_marked(&mut self, conn: ConnId, parts: &[IoSlice<'_>], _mark: Option<Mark>) -> Handed {
        self.send(conn, parts)
    }

    /// Takes what the kernel said of a marked send.
    fn transmit_stamp(&mut self, _conn: ConnId, _mark: Mark) -> TransmitStamp {
        TransmitStamp::Missing
    }

    /// The network card's receive stamp, by the card's clock, of the bytes that the kernel stamped at `arrived`;
    /// `None` if the card gave none. The stamp is only known in the turn in which the bytes were read.
    fn received_by_card(&mut self, _conn: ConnId, _arrived: Nanos) -> Option<Nanos> {
        None
    }

    /// Takes the network card's stamp of a marked send, by the card's clock; `None` where it is not there, and may still
    /// come.
    fn left_by_card(&mut self, _conn: ConnId, _mark: Mark) -> Option<Nanos> {
        None
    }

    /// Closes a connection. No event follows for this id. Closing a closed connection has no effect.
    fn close(&mut self, conn: ConnId, how: Close);

    /// Waits for an event, at most until the time `until`, and returns the time after the wait. A time in the past only
    /// checks for events; [`NEVER`](pummel_logic::time::NEVER) waits for an event without a limit.
    ///
    /// # Errors
    /// Returns the error of the system call that waits, when the kernel refuses it. Signals and the end of the time
    /// are no errors.
    fn wait(&mut self, until: Nanos) -> io::Result<Nanos>;

    /// Waits as [`Backend::wait`] does, for a caller that has just read the clock as `now`, so that the clock is not
    /// read again.
    ///
    /// # Errors
    /// Returns the error of the system call that waits, when the kernel refuses it. Signals and the end of the time
    /// are no errors.
    fn wait_from(&mut self, _now: Nanos, until: Nanos) -> io::Result<Nanos> {
        self.wait(until)
    }

    /// Hands over all events since the last call, those of each connection in their order.
    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>))
    where
        Self: Sized;

    /// Compares the wall clock and the monotonic clock again, after a receive stamp that is impossible.
    fn mend_stamps(&mut self) {}

    /// The obstacle to a connection that is being opened, as a clause about the server; `None` where only the silence
    /// of the server is known.
    fn why_not_open(&self, _conn: ConnId) -> Option<&'static str> {
        None
    }

    /// Hands over the TLS handshakes that have succeeded since the last call.
    fn handshakes(&mut self, _on: &mut impl FnMut(TlsHandshake))
    where
        Self: Sized,
    {
    }
}
