//! The contract between workers and the kernel: bytes move, and what happened comes back as completions.

pub mod choice;
pub mod dial;
pub mod epoll;
pub mod sim;
mod slot;
pub mod stamps;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod uring;
pub mod waiting;

use std::io;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use pummel_logic::protocol::Fault;
use pummel_logic::time::Nanos;

/// Names a connection: the worker's slot and how often that slot was opened, so that what comes late for an older
/// connection is recognised and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Index in the worker's table; small and dense.
    pub slot: u32,
    /// Which use of the slot.
    pub generation: u32,
}

/// Where a connection goes.
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
    /// UDP, from `source` where it is given. Open at once, whoever listens there or not. Each send is one datagram and is
    /// taken whole or not at all; each [`Event::Received`] is one datagram with its own stamp, in the order in which they
    /// came; datagrams without bytes are dropped. It closes when the peer's system says that nobody listens there.
    Udp {
        /// The server's address.
        address: SocketAddr,
        /// The address to send from; port 0 leaves the port to the kernel.
        source: Option<SocketAddr>,
    },
}

/// What became of an attempt to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// How many bytes the kernel took. Fewer than offered: the socket is full, and [`Event::Writable`] follows; the
    /// next send then begins with the bytes that were not taken. 0 also when the connection broke; [`Event::Closed`]
    /// follows then.
    pub taken: usize,
    /// The clock immediately before the system call.
    pub at: Nanos,
}

/// How to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// In order (or as the socket's linger option says).
    Fin,
    /// By reset.
    Reset,
}

/// Why a connection is not there (any more): the class that results count, and the system's word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What is counted.
    pub fault: Fault,
    /// `errno`, 0 for an orderly close.
    pub errno: i32,
    /// The reason as a clause about the server, where more is known than the two above say.
    pub words: Option<Arc<str>>,
}

impl Reason {
    /// A reason that its class and `errno` say all about.
    pub const fn new(fault: Fault, errno: i32) -> Reason {
        Reason { fault, errno, words: None }
    }
}

/// An encrypted connection was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsHandshake {
    /// From the system call that took our first message until the server's last one arrived (its receive stamp, or
    /// when it was read where there is none): the server, and the ways there and back.
    pub took: Nanos,
    /// An earlier session was resumed, which spares most of the work.
    pub resumed: bool,
}

/// What happened on a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// It is open.
    Opened {
        /// The clock when that was seen; how long before it was so is not known.
        at: Nanos,
    },
    /// Bytes came.
    Received {
        /// The bytes; never empty.
        bytes: &'a mut [u8],
        /// When the kernel received the newest of them, on the monotonic clock; `None` where it did not say.
        stamp: Option<Nanos>,
        /// The clock when the worker took them.
        read: Nanos,
    },
    /// The socket takes bytes again after a short send.
    Writable,
    /// It broke, was closed by the peer, or could not be opened. The slot is free; nothing more comes for this id.
    Closed(Reason),
}

/// A way to move bytes. Three exist (epoll, io_uring, and a simulation for tests) and pass one suite of tests.
pub trait Backend {
    /// The monotonic clock.
    fn now(&self) -> Nanos;

    /// Begins to open a connection; [`Event::Opened`] or [`Event::Closed`] follows from [`Backend::drain`], never from
    /// here. The slot is not in use.
    fn open(&mut self, conn: ConnId, target: &Target);

    /// Tries to send now. Called only between [`Event::Opened`] and the end of the connection, with at least one byte,
    /// and after a short send not before [`Event::Writable`].
    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed;

    /// Closes; no event follows for this id. Nothing happens when it is closed already.
    fn close(&mut self, conn: ConnId, how: Close);

    /// Waits until something happened or `until` has come ([`NEVER`](pummel_logic::time::NEVER): only an event helps;
    /// a time in the past: only looks), and returns the time after it.
    ///
    /// # Errors
    /// Returns the error of the system call that waits, when the kernel refuses it. Signals and the end of the time
    /// are no errors.
    fn wait(&mut self, until: Nanos) -> io::Result<Nanos>;

    /// The same for a caller who has just read the clock, so that it need not be read again: it is `now`.
    ///
    /// # Errors
    /// Returns the error of the system call that waits, when the kernel refuses it. Signals and the end of the time
    /// are no errors.
    fn wait_from(&mut self, _now: Nanos, until: Nanos) -> io::Result<Nanos> {
        self.wait(until)
    }

    /// Hands over what happened, every connection's events in their order.
    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>));

    /// A stamp that cannot be true was seen: compares the clocks again.
    fn mend_stamps(&mut self) {}

    /// What a connection that is being opened waits for, as a clause about the server, where more is known than that
    /// it does not answer.
    fn obstacle(&self, _conn: ConnId) -> Option<&'static str> {
        None
    }

    /// Hands over the handshakes that ended since this was called last.
    fn handshakes(&mut self, _on: &mut impl FnMut(TlsHandshake)) {}
}
