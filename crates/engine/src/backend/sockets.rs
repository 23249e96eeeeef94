//! The sockets of a backend on the kernel, by slot: how they are opened, how they send, and what becomes of their stamps,
//! whichever kernel interface tells of them.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pummel_logic::plan::{Clock, Socket};
use pummel_logic::time::Nanos;
use pummel_measure::trouble::CloseReason;

use super::dial::{self, ConnectProgress, SocketStamps, UnixRetries, reason};
use super::stamps::Stamps;
use super::transmit::{Mark, TransmitStamp, TransmitStamps};
use super::{Close, ConnId, Handed, Target};
use crate::clock;
use crate::sys;

/// Flag: a send was short, and [`Event::Writable`](super::Event::Writable) is owed.
pub const BLOCKED: u8 = 1;
/// Flag: the socket stamps received segments.
pub const STAMPED: u8 = 2;
/// Flag: the socket has the stamps of the network card beside those of the kernel.
pub const CARD: u8 = 4;
/// Flag: each read is a datagram. An empty datagram is no end of the stream.
pub const DATAGRAMS: u8 = 8;
/// Flag: the socket reports transmit stamps, which set the error bit of its readiness.
pub const TRANSMITS: u8 = 16;

/// The state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotState {
    /// The slot has no connection.
    #[default]
    Free,
    /// The connection is being opened.
    Connecting,
    /// The connection is open.
    Open,
}

/// A slot and its connection, in 12 bytes.
#[derive(Default)]
pub struct Slot {
    /// The socket, while the connection is open or being opened.
    pub fd: Option<OwnedFd>,
    /// Number of the slot's use.
    pub generation: u32,
    /// The error number that a system call returned before the connection's end was handed over; 0 for none.
    pub errno: u16,
    /// The state of the slot.
    pub state: SlotState,
    /// Flags of one bit each: those of this file in the lower bits, those of the backend above them.
    pub flags: u8,
}

impl Slot {
    /// Frees the slot, and returns it as it was.
    pub fn free(&mut self) -> Slot {
        let generation = self.generation;
        std::mem::replace(self, Slot { generation, ..Slot::default() })
    }

    /// Whether a flag is set.
    #[inline]
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The reason of the connection's end by the error that is kept in the slot.
    pub fn reason(&self) -> CloseReason {
        reason(i32::from(self.errno))
    }

    /// Prepares the socket to be closed in this way.
    pub fn prepare_to_close(&self, how: Close) {
        if let (Close::Reset, Some(fd)) = (how, &self.fd) {
            // On a failure the connection is closed in order instead of by reset.
            let _ = sys::set_linger(fd.as_fd(), 0);
        }
    }
}

/// CloseReason that kept a socket from taking all the bytes that it was offered.
pub enum Shortfall {
    /// Nothing: the socket took all of them.
    None,
    /// The socket is full.
    Full,
    /// The connection is broken; `None` where that was known before.
    Broken(Option<io::Error>),
}

/// The sockets of one worker.
pub struct Sockets {
    /// The slots of the worker's connections.
    pub slots: Vec<Slot>,
    /// `None`: receive stamps are switched off.
    pub stamps: Option<Stamps>,
    /// `None`: transmit stamps are switched off.
    pub transmit: Option<Box<TransmitStamps>>,
    options: Socket,
    /// Connections to unix listeners whose queue was full.
    unix_retries: UnixRetries,
}

impl Sockets {
    /// No socket, on the worker's own thread.
    ///
    /// # Errors
    /// Returns the error of `socket` (EMFILE or ENFILE when no descriptor is left), or of `setsockopt` (ENOPROTOOPT when the
    /// kernel has no receive stamps).
    pub fn new(receive_clock: Clock, options: &Socket) -> io::Result<Sockets> {
        let stamps = Stamps::of(receive_clock)?;
        sys::sharpen_timers()?;
        Ok(Sockets {
            slots: Vec::new(),
            stamps,
            transmit: None,
            options: options.clone(),
            unix_retries: UnixRetries::new(),
        })
    }

    /// Switches transmit stamps on, which need the kernel's clock for receive stamps.
    pub fn set_transmit_stamps(&mut self, transmit: Option<TransmitStamps>) {
        self.transmit = transmit.filter(|_| self.stamps.is_some()).map(Box::new);
    }

    /// The slot of a connection; `None` when the connection is over.
    #[inline]
    pub fn find(&mut self, conn: ConnId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(conn.slot as usize)?;
        (slot.generation == conn.generation && slot.state != SlotState::Free).then_some(slot)
    }

    /// Takes a free slot for a connection that is about to be opened.
    pub fn take_slot(&mut self, conn: ConnId) {
        let index = conn.slot as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        let slot = &mut self.slots[index];
        assert!(slot.state == SlotState::Free, "slot {index} is in use");
        *slot = Slot { generation: conn.generation, state: SlotState::Connecting, ..Slot::default() };
    }

    /// Makes the socket of a connection that has its slot, and begins to connect it. Returns the socket, which becomes writable
    /// or has an error; `None` where the connection waits for room in the queue of a unix listener.
    ///
    /// # Errors
    /// Returns the errors of [`dial::dial`].
    pub fn dial(&mut self, conn: ConnId, target: &Target) -> io::Result<Option<BorrowedFd<'_>>> {
        let stamps = SocketStamps::of(self.stamps.is_some(), self.transmit.as_deref());
        let dialled = dial::dial(target, &self.options, stamps)?;
        let slot = &mut self.slots[conn.slot as usize];
        let by_card = dialled.stamped && stamps == SocketStamps::Card;
        let is_datagrams = matches!(target, Target::Udp { .. });
        for (is_set, flag) in [(dialled.stamped, STAMPED), (by_card, CARD), (is_datagrams, DATAGRAMS)] {
            slot.flags |= if is_set { flag } else { 0 };
        }
        let socket = &*slot.fd.insert(dialled.socket);
        let waits = self.unix_retries.wait(conn, target, dialled.stage, clock::now());
        Ok((!waits).then_some(socket.as_fd()))
    }

    /// When [`Sockets::take_retries`] has connections; [`NEVER`](pummel_logic::time::NEVER) where none waits.
    #[inline]
    pub fn retry_at(&self) -> Nanos {
        self.unix_retries.at()
    }

    /// Takes the connections to full unix listeners, which are to be dialled again, with their targets.
    pub fn take_retries(&mut self) -> Vec<(ConnId, Target)> {
        let mut retries = Vec::new();
        for (conn, path) in self.unix_retries.take() {
            if let Some(slot) = self.find(conn) {
                slot.fd = None;
                retries.push((conn, Target::Unix(path)));
            }
        }
        retries
    }

    /// Keeps the error of a system call for the end of its connection. Returns the slot; `None` when the connection is over.
    pub fn keep_error(&mut self, conn: ConnId, error: &io::Error) -> Option<&mut Slot> {
        let slot = self.find(conn)?;
        slot.errno = sys::errno(error).try_into().unwrap_or(u16::MAX);
        Some(slot)
    }

    /// Handles a report of readiness of a connection that is being opened. Returns whether it is open now. A
    /// connection that was open and is broken already counts as open; the slot keeps the error.
    ///
    /// # Errors
    /// Returns why the connection could not be opened.
    pub fn finish_connect(&mut self, conn: ConnId, bits: u32) -> Result<bool, CloseReason> {
        let slot = &mut self.slots[conn.slot as usize];
        let Some(fd) = slot.fd.as_ref().filter(|_| slot.errno == 0) else { return Err(slot.reason()) };
        match dial::connect_progress(fd.as_fd(), bits) {
            ConnectProgress::Wait => return Ok(false),
            ConnectProgress::Open => {}
            ConnectProgress::Broken(errno) => slot.errno = errno,
            ConnectProgress::Failed(errno) => return Err(reason(errno)),
        }
        slot.state = SlotState::Open;
        self.begin_transmit(conn);
        Ok(true)
    }

    /// Makes the socket of an open connection report transmit stamps, if they are switched on. The marked sends of a
    /// socket without stamps count as missing.
    fn begin_transmit(&mut self, conn: ConnId) {
        let Sockets { transmit: Some(transmit), slots, .. } = self else { return };
        let slot = &mut slots[conn.slot as usize];
        let (Some(fd), true) = (&slot.fd, slot.is(STAMPED)) else { return };
        if transmit.begin(conn.slot, fd.as_fd(), slot.is(DATAGRAMS)).is_ok() {
            slot.flags |= TRANSMITS;
        }
    }

    /// The bits of a report without the error bit, where that only said that the error queue had transmit stamps, which are
    /// read. Another error is kept for the end of the connection.
    #[cold]
    pub fn without_stamps(&mut self, conn: ConnId, bits: u32) -> u32 {
        let Sockets { transmit: Some(transmit), stamps: Some(stamps), slots, .. } = self else { return bits };
        let slot = &mut slots[conn.slot as usize];
        let (Some(fd), true) = (&slot.fd, slot.is(TRANSMITS) && bits & sys::FAILED != 0) else { return bits };
        match transmit.error_behind(conn.slot, fd.as_fd(), stamps) {
            0 => bits & !sys::FAILED,
            errno => {
                slot.errno = errno;
                bits
            }
        }
    }

    /// Sends as many bytes as the socket takes now. Returns what kept it from taking all of them, too.
    #[inline(always)]
    pub fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> (Handed, Shortfall) {
        hand_over(&mut self.slots, conn, parts, sys::send)
    }

    /// Sends as [`Sockets::send`] does, on a socket that reports transmit stamps. `None` for other sockets, of which nothing is
    /// sent.
    #[inline]
    pub fn send_marked(
        &mut self,
        conn: ConnId,
        parts: &[IoSlice<'_>],
        mark: Option<Mark>,
    ) -> Option<(Handed, Shortfall)> {
        let transmit = self.transmit.as_mut().filter(|_| self.slots[conn.slot as usize].is(TRANSMITS))?;
        let send =
            |socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]| transmit.send(conn.slot, socket, parts, mark);
        Some(hand_over(&mut self.slots, conn, parts, send))
    }

    /// Takes what the kernel said of a marked send.
    pub fn transmit_stamp(&mut self, conn: ConnId, mark: Mark) -> TransmitStamp {
        match self.reporting(conn) {
            Some((socket, transmit, stamps)) => transmit.take(conn.slot, socket, mark, stamps),
            None => TransmitStamp::Missing,
        }
    }

    /// Takes the network card's stamp of a marked send; `None` where it is not there.
    pub fn left_by_card(&mut self, conn: ConnId, mark: Mark) -> Option<Nanos> {
        let (socket, transmit, stamps) = self.reporting(conn)?;
        transmit.left_by_card(conn.slot, socket, mark, stamps)
    }

    /// The socket of a connection that reports transmit stamps, its marked sends, and the offset of its stamps.
    fn reporting(&mut self, conn: ConnId) -> Option<(BorrowedFd<'_>, &mut TransmitStamps, &Stamps)> {
        let is_reporting = self.find(conn)?.is(TRANSMITS);
        let Sockets { transmit: Some(transmit), stamps: Some(stamps), slots, .. } = self else { return None };
        let socket = slots[conn.slot as usize].fd.as_ref().filter(|_| is_reporting)?;
        Some((socket.as_fd(), transmit, stamps))
    }

    /// Compares the clocks again where the last comparison is no longer valid at `now`.
    #[inline]
    pub fn renew_stamps_when_due(&mut self, now: Nanos) {
        if let Some(stamps) = &mut self.stamps {
            stamps.renew_when_due(now);
        }
    }

    /// Compares the clocks again.
    pub fn mend_stamps(&mut self) {
        if let Some(stamps) = &mut self.stamps {
            stamps.renew();
        }
    }
}

/// Hands bytes of an open connection to the system call `send`.
#[inline(always)]
fn hand_over(
    slots: &mut [Slot],
    conn: ConnId,
    parts: &[IoSlice<'_>],
    send: impl FnOnce(BorrowedFd<'_>, &[IoSlice<'_>]) -> io::Result<usize>,
) -> (Handed, Shortfall) {
    let slot = &mut slots[conn.slot as usize];
    assert!(
        slot.generation == conn.generation && slot.state == SlotState::Open,
        "bytes are sent on connections that are open"
    );
    let Some(fd) = slot.fd.as_ref().filter(|_| slot.errno == 0) else {
        return (Handed { taken: 0, at: clock::now() }, Shortfall::Broken(None));
    };
    let offered = match parts {
        [part] => part.len(),
        parts => parts.iter().map(|part| part.len()).sum(),
    };
    let at = clock::now();
    let taken = match send(fd.as_fd(), parts) {
        Ok(taken) => taken,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return (Handed { taken: 0, at }, Shortfall::Broken(Some(error))),
    };
    let is_short = taken < offered;
    if is_short {
        slot.flags |= BLOCKED;
    }
    (Handed { taken, at }, if is_short { Shortfall::Full } else { Shortfall::None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 16);
    }
}
