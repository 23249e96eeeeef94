//! Transmit stamps on the kernel's interfaces: which byte of a connection belongs to which marked send, and what the
//! error queue said of it.
//!
//! A stamp names its byte by a number: the offset in the connection's stream, or the number of the marked datagram. The
//! stamps of one connection come in the order of its bytes but for those of bytes that are sent again, of which the first
//! counts.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use pummel_logic::time::Nanos;

use super::stamps::Stamps;
use crate::sys::{self, QueuedError, TransmitPoint, TransmitPoints};

/// Most marked sends of one connection that wait for their stamps; the oldest beyond that is given up.
const UNDER_WAY_MAX: usize = 256;

/// Most reads of one connection whose card stamps are remembered: more than one turn brings.
const READS_KEPT: usize = 8;

/// The name of a marked send, which its worker chooses and never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(pub u64);

/// The kernel's report of a marked send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitStamp {
    /// The last byte of the send left the machine.
    Left {
        /// When the driver handed it to the device, in nanoseconds on the monotonic clock.
        at: Nanos,
        /// When it entered the queueing discipline, where that was asked for.
        scheduled: Option<Nanos>,
    },
    /// The kernel put the bytes of this send and of a later one into one buffer, which has one stamp: that of the later
    /// one.
    Merged,
    /// There is no stamp.
    Missing,
}

/// The marked sends of all connections of a backend, by slot.
#[derive(Debug)]
pub struct TransmitStamps {
    /// The points on the way to the device at which further stamps are taken.
    points: TransmitPoints,
    connections: Vec<MarkedSends>,
}

/// The marked sends of one connection.
#[derive(Debug, Default)]
struct MarkedSends {
    /// Whether each send is a datagram; ids then count the marked ones.
    datagrams: bool,
    /// The id of the next byte, or of the next marked datagram.
    next_id: u32,
    under_way: VecDeque<UnderWay>,
    /// The last reads: the kernel's stamp on the monotonic clock and the card's stamp by the card's clock.
    received: VecDeque<(Nanos, Nanos)>,
}

/// A marked send whose stamp was not taken.
#[derive(Debug)]
struct UnderWay {
    mark: Mark,
    id: u32,
    scheduled: Option<Nanos>,
    left: Option<Nanos>,
    /// The card's stamp, by its own clock.
    card: Option<Nanos>,
    /// A later send was stamped, and this one never will be.
    passed: bool,
}

impl TransmitStamps {
    /// Creates an empty account of marked sends. With `scheduled`, stamps are also taken where packets enter the queueing
    /// discipline.
    pub fn new(scheduled: bool) -> TransmitStamps {
        TransmitStamps { points: TransmitPoints { scheduled, card: false }, connections: Vec::new() }
    }

    /// Requests the network card's stamps of sent and received packets too, if `card` is set.
    pub fn with_card(mut self, card: bool) -> TransmitStamps {
        self.points.card = card;
        self
    }

    /// Whether the network card stamps too.
    pub fn is_by_card(&self) -> bool {
        self.points.card
    }

    /// Begins to count the bytes of the connection in `slot`, which has just been opened, and makes its socket report
    /// stamps.
    ///
    /// # Errors
    /// Returns the error of `setsockopt` where this kind of socket has no transmit stamps.
    pub fn begin(&mut self, slot: u32, socket: BorrowedFd<'_>, datagrams: bool) -> io::Result<()> {
        let index = slot as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, MarkedSends::default);
        }
        self.connections[index] = MarkedSends { datagrams, ..MarkedSends::default() };
        sys::set_transmit_reports(socket, self.points.card)
    }

    /// Sends on the connection in `slot`, and remembers the send under `mark` where the kernel took all of it.
    ///
    /// # Errors
    /// Returns the error of the send.
    pub fn send(
        &mut self,
        slot: u32,
        socket: BorrowedFd<'_>,
        parts: &[IoSlice<'_>],
        mark: Option<Mark>,
    ) -> io::Result<usize> {
        let taken = match mark {
            Some(_) => sys::send_marked(socket, parts, self.points)?,
            None => sys::send(socket, parts)?,
        };
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        self.connections[slot as usize].note_sent(taken, mark, taken == offered);
        Ok(taken)
    }

    /// Reads the error queue of the connection in `slot`. Returns the error number of an entry that is no stamp; `None`
    /// where there is none.
    pub fn read(&mut self, slot: u32, socket: BorrowedFd<'_>, stamps: &Stamps) -> Option<i32> {
        let mut other = None;
        loop {
            match sys::take_queued_error(socket) {
                Ok(Some(QueuedError::Stamp { id, point, wall })) => {
                    let at = if point == TransmitPoint::Card { wall } else { stamps.to_monotonic(wall) };
                    self.connections[slot as usize].note_stamp(id, point, at);
                }
                Ok(Some(QueuedError::Other(0))) => {}
                Ok(Some(QueuedError::Other(errno))) => other = Some(errno),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(None) | Err(_) => return other,
            }
        }
    }

    /// The error that a report of readiness with the error bit stands for: 0 where the bit only said that the error queue
    /// of the connection in `slot` had transmit stamps, which are read. The bit cannot be masked.
    pub fn error_behind(&mut self, slot: u32, socket: BorrowedFd<'_>, stamps: &Stamps) -> u16 {
        let other = self.read(slot, socket, stamps);
        let errno = other.or_else(|| sys::take_socket_error(socket).ok()).unwrap_or(0);
        errno.try_into().unwrap_or(u16::MAX)
    }

    /// Takes what is known of the send with this mark on the connection in `slot`. The error queue is read where its
    /// stamps were not read before: a stamp of the software is there as soon as the reply is.
    pub fn take(&mut self, slot: u32, socket: BorrowedFd<'_>, mark: Mark, stamps: &Stamps) -> TransmitStamp {
        let connection = &self.connections[slot as usize];
        let is_known = connection.under_way.iter().any(|sent| sent.mark == mark && sent.left.is_some());
        if !is_known {
            self.read(slot, socket, stamps);
        }
        let is_kept = self.points.card;
        self.connections[slot as usize].take(mark, is_kept)
    }

    /// Notes the stamps of a read: the kernel's on the monotonic clock, and the card's by its own.
    pub fn note_received(&mut self, slot: u32, arrived: Nanos, card: Nanos) {
        let Some(connection) = self.connections.get_mut(slot as usize) else { return };
        if connection.received.len() == READS_KEPT {
            connection.received.pop_front();
        }
        connection.received.push_back((arrived, card));
    }

    /// The card's stamp of the bytes that the kernel stamped at `arrived`; `None` where it took none.
    pub fn received_by_card(&self, slot: u32, arrived: Nanos) -> Option<Nanos> {
        let received = &self.connections.get(slot as usize)?.received;
        received.iter().rev().find(|(at, _)| *at == arrived).map(|(_, card)| *card)
    }

    /// Takes the card's stamp of the send with this mark, which may be late; `None` where it is not there.
    pub fn left_by_card(
        &mut self,
        slot: u32,
        socket: BorrowedFd<'_>,
        mark: Mark,
        stamps: &Stamps,
    ) -> Option<Nanos> {
        if self.connections[slot as usize].card_of(mark).is_none() {
            self.read(slot, socket, stamps);
        }
        let connection = &mut self.connections[slot as usize];
        let card = connection.card_of(mark)?;
        connection.under_way.retain(|sent| sent.mark != mark);
        Some(card)
    }
}

impl MarkedSends {
    /// Counts the `taken` bytes of a send; `whole` says that no byte was left over.
    fn note_sent(&mut self, taken: usize, mark: Option<Mark>, whole: bool) {
        if taken == 0 {
            return;
        }
        let id = match self.datagrams {
            true => self.next_id,
            false => self.next_id.wrapping_add(taken as u32).wrapping_sub(1),
        };
        if !self.datagrams || mark.is_some() {
            self.next_id = id.wrapping_add(1);
        }
        if let Some(mark) = mark.filter(|_| whole) {
            if self.under_way.len() == UNDER_WAY_MAX {
                self.under_way.pop_front();
            }
            let sent = UnderWay { mark, id, scheduled: None, left: None, card: None, passed: false };
            self.under_way.push_back(sent);
        }
    }

    /// Takes in a stamp. A stamp of a byte that is sent again, and one of a send that was not taken whole, changes
    /// nothing.
    fn note_stamp(&mut self, id: u32, point: TransmitPoint, at: Nanos) {
        let Some(place) = self.under_way.iter().position(|sent| sent.id == id) else { return };
        let sent = &mut self.under_way[place];
        match point {
            TransmitPoint::Scheduled => _ = sent.scheduled.get_or_insert(at),
            TransmitPoint::Left => {
                sent.left.get_or_insert(at);
                self.under_way.iter_mut().take(place).for_each(|earlier| earlier.passed = true);
            }
            TransmitPoint::Card => _ = sent.card.get_or_insert(at),
        }
    }

    /// The card's stamp of a send.
    fn card_of(&self, mark: Mark) -> Option<Nanos> {
        self.under_way.iter().find(|sent| sent.mark == mark)?.card
    }

    /// Removes a send and returns its stamp; the send is kept if `is_kept` says that its card stamp may still arrive.
    fn take(&mut self, mark: Mark, is_kept: bool) -> TransmitStamp {
        let Some(place) = self.under_way.iter().position(|sent| sent.mark == mark) else {
            return TransmitStamp::Missing;
        };
        if let UnderWay { left: Some(at), scheduled, .. } = self.under_way[place]
            && is_kept
        {
            return TransmitStamp::Left { at, scheduled };
        }
        match self.under_way.remove(place) {
            Some(UnderWay { left: Some(at), scheduled, .. }) => TransmitStamp::Left { at, scheduled },
            Some(UnderWay { passed: true, .. }) => TransmitStamp::Merged,
            _ => TransmitStamp::Missing,
        }
    }
}

/// Checks whether this machine stamps what leaves through loopback.
///
/// # Errors
/// Returns the error of the system call that the kernel refuses, or an error that says that no stamp came.
pub fn check() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let stream = TcpStream::connect(listener.local_addr()?).map_err(|error| match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            io::Error::other("they are tried on loopback first, which is down here: ip link set lo up")
        }
        _ => error,
    })?;
    let (mut stamps, clocks) = (TransmitStamps::new(false), Stamps::new());
    stamps.begin(0, stream.as_fd(), false)?;
    stamps.send(0, stream.as_fd(), &[IoSlice::new(b"x")], Some(Mark(1)))?;
    match stamps.take(0, stream.as_fd(), Mark(1), &clocks) {
        TransmitStamp::Left { .. } => Ok(()),
        TransmitStamp::Merged | TransmitStamp::Missing => {
            Err(io::Error::other("the kernel gives no stamp to what leaves (Linux 4.12 or later does)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn left(at: Nanos) -> TransmitStamp {
        TransmitStamp::Left { at, scheduled: None }
    }

    #[test]
    fn stamps_are_found_by_the_offset_of_the_last_byte_also_beyond_4_gib() {
        let mut connection = MarkedSends::default();
        let block = 1 << 30;
        for number in 0..9u64 {
            connection.note_sent(block, None, true);
            connection.note_sent(7, Some(Mark(number)), true);
            let id = ((number as u32 + 1).wrapping_mul(block as u32 + 7)).wrapping_sub(1);
            connection.note_stamp(id, TransmitPoint::Left, 100 + number);
            assert_eq!(connection.take(Mark(number), false), left(100 + number));
        }
    }

    #[test]
    fn datagrams_are_counted_where_they_are_marked() {
        let mut connection = MarkedSends { datagrams: true, ..MarkedSends::default() };
        connection.note_sent(50, None, true);
        connection.note_sent(50, Some(Mark(1)), true);
        connection.note_sent(50, None, true);
        connection.note_sent(50, Some(Mark(2)), true);
        connection.note_stamp(1, TransmitPoint::Left, 9);
        connection.note_stamp(0, TransmitPoint::Left, 5);
        assert_eq!((connection.take(Mark(1), false), connection.take(Mark(2), false)), (left(5), left(9)));
    }

    #[test]
    fn of_sends_in_one_buffer_the_last_has_the_stamp_and_the_others_are_merged() {
        let mut connection = MarkedSends::default();
        (1..=3).for_each(|mark| connection.note_sent(10, Some(Mark(mark)), true));
        connection.note_stamp(29, TransmitPoint::Left, 77);
        assert_eq!(connection.take(Mark(1), false), TransmitStamp::Merged);
        assert_eq!(connection.take(Mark(2), false), TransmitStamp::Merged);
        assert_eq!(connection.take(Mark(3), false), left(77));
    }

    #[test]
    fn of_bytes_that_are_sent_again_the_first_stamp_counts() {
        let mut connection = MarkedSends::default();
        connection.note_sent(10, Some(Mark(1)), true);
        connection.note_stamp(9, TransmitPoint::Scheduled, 40);
        connection.note_stamp(9, TransmitPoint::Left, 50);
        connection.note_stamp(9, TransmitPoint::Scheduled, 900);
        connection.note_stamp(9, TransmitPoint::Left, 1_000);
        assert_eq!(connection.take(Mark(1), false), TransmitStamp::Left { at: 50, scheduled: Some(40) });
        connection.note_stamp(9, TransmitPoint::Left, 2_000);
        assert_eq!(connection.take(Mark(1), false), TransmitStamp::Missing, "it was taken");
    }

    #[test]
    fn a_send_that_was_cut_has_no_mark_and_its_bytes_count() {
        let mut connection = MarkedSends::default();
        connection.note_sent(4, Some(Mark(1)), false);
        connection.note_sent(6, Some(Mark(2)), true);
        connection.note_stamp(3, TransmitPoint::Left, 10);
        connection.note_stamp(9, TransmitPoint::Left, 20);
        assert_eq!(
            (connection.take(Mark(1), false), connection.take(Mark(2), false)),
            (TransmitStamp::Missing, left(20))
        );
    }

    #[test]
    fn sends_that_wait_for_stamps_have_a_limit() {
        let mut connection = MarkedSends::default();
        (0..10_000).for_each(|mark| connection.note_sent(1, Some(Mark(mark)), true));
        assert_eq!(connection.under_way.len(), UNDER_WAY_MAX);
    }

    #[test]
    fn the_stamp_of_a_card_may_come_later_than_the_reply() {
        let mut stamps = TransmitStamps::new(false).with_card(true);
        stamps.connections.push(MarkedSends::default());
        let connection = &mut stamps.connections[0];
        connection.note_sent(10, Some(Mark(1)), true);
        connection.note_stamp(9, TransmitPoint::Left, 50);
        assert_eq!(connection.take(Mark(1), true), left(50));
        assert_eq!(connection.card_of(Mark(1)), None, "it is late");
        connection.note_stamp(9, TransmitPoint::Card, 1_000_007);
        connection.note_stamp(9, TransmitPoint::Card, 2_000_000);
        assert_eq!(
            connection.card_of(Mark(1)),
            Some(1_000_007),
            "of bytes that are sent again the first counts"
        );
        stamps.note_received(0, 60, 1_000_030);
        (0..READS_KEPT as u64).for_each(|at| stamps.note_received(0, 100 + at, 2_000_000 + at));
        assert_eq!(stamps.received_by_card(0, 60), None, "what is remembered has a limit");
        assert_eq!(stamps.received_by_card(0, 103), Some(2_000_003));
        assert_eq!((stamps.received_by_card(0, 99), stamps.received_by_card(7, 103)), (None, None));
    }

    #[test]
    fn the_kernel_stamps_each_marked_send_and_no_other_between_its_call_and_its_arrival() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        // Otherwise a small segment waits until the one before it is acknowledged.
        stream.set_nodelay(true).unwrap();
        let (mut transmit, clocks) = (TransmitStamps::new(true), Stamps::new());
        transmit.begin(0, stream.as_fd(), false).unwrap();
        for number in 0..20 {
            transmit.send(0, stream.as_fd(), &[IoSlice::new(b"not marked")], None).unwrap();
            let before = crate::clock::now();
            let parts = [IoSlice::new(b"a marked "), IoSlice::new(b"send")];
            transmit.send(0, stream.as_fd(), &parts, Some(Mark(number))).unwrap();
            let after = crate::clock::now();
            // An answer acknowledges what was sent, so that no send has to wait for its turn.
            peer.read_exact(&mut [0; b"not marked".len() + b"a marked send".len()]).unwrap();
            peer.write_all(b"r").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            let TransmitStamp::Left { at, scheduled } =
                transmit.take(0, stream.as_fd(), Mark(number), &clocks)
            else {
                panic!("send {number} has no stamp")
            };
            // Loopback sends within the call; a microsecond is what comparing two clocks may be off by.
            assert!(at + 1_000 >= before && at <= after + 1_000, "{before} {at} {after}");
            assert!(scheduled.is_none_or(|scheduled| scheduled <= at), "{scheduled:?} {at}");
        }
        assert!(transmit.connections[0].under_way.is_empty());
    }

    #[test]
    fn this_machine_is_found_able_where_its_kernel_is() {
        check().unwrap();
    }
}
