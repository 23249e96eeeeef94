//! Transmit stamps: sends whose last byte is stamped on its way out, and the error queue that reports the stamps.
//!
//! The kernel's documentation ("Timestamping") says what each flag means; their numbers are those of linux/net_tstamp.h
//! and linux/errqueue.h.

use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use pummel_logic::time::Nanos;

use super::socket::{set_option, stamp_time};
use super::{check_len, empty_message};

const TX_HARDWARE: u32 = 1 << 0;
const TX_SOFTWARE: u32 = 1 << 1;
const RX_HARDWARE: u32 = 1 << 2;
const RX_SOFTWARE: u32 = 1 << 3;
const SOFTWARE: u32 = 1 << 4;
const RAW_HARDWARE: u32 = 1 << 6;
const OPT_ID: u32 = 1 << 7;
const TX_SCHED: u32 = 1 << 8;
const OPT_TSONLY: u32 = 1 << 11;
const OPT_TX_SWHW: u32 = 1 << 14;
const OPT_ID_TCP: u32 = 1 << 16;

/// SO_EE_ORIGIN_TIMESTAMPING: an entry of the error queue that is a stamp.
const ORIGIN_STAMP: u8 = 4;

/// SCM_TSTAMP_SND and SCM_TSTAMP_SCHED: the points where a stamp was taken.
const POINT_SENT: u32 = 0;
const POINT_SCHEDULED: u32 = 1;

/// The point on its way out at which a byte was stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitPoint {
    /// The packet entered the queueing discipline of the device.
    Scheduled,
    /// The driver handed the packet to the device.
    Left,
    /// The device sent the packet, by the device's own clock.
    Card,
}

/// The points of a send that are stamped, beside the one at which the driver hands it to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitPoints {
    /// Stamp the moment at which packets enter the queueing discipline.
    pub scheduled: bool,
    /// Stamp the moment at which the card sends packets.
    pub card: bool,
}

/// An entry of a socket's error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedError {
    /// A transmit stamp.
    Stamp {
        /// Offset of the stamped byte in the stream, modulo 2^32, or the number of the stamped datagram.
        id: u32,
        /// The point at which the stamp was taken.
        point: TransmitPoint,
        /// The wall clock then, in nanoseconds; for a card its own clock.
        wall: Nanos,
    },
    /// Something else, with its error number.
    Other(i32),
}

/// Makes the kernel stamp received segments as [`super::set_receive_stamps`] does, by the option that transmit stamps
/// need: with both options the kernel invents a receive stamp at the moment of reading where there is none. `card` asks for
/// the stamps of the network card too.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_receive_stamps_beside_transmit(socket: BorrowedFd<'_>, card: bool) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &(RX_SOFTWARE | SOFTWARE | card_flags(card)))
}

/// The flags that make the kernel report the stamps of a card too.
fn card_flags(card: bool) -> u32 {
    if card { RX_HARDWARE | RAW_HARDWARE } else { 0 }
}

/// Makes a connected socket report the transmit stamps of marked sends, with `card` those of the network card too. No byte may have been sent on it: the ids of
/// stamps count from here.
///
/// # Errors
/// Returns the error of `setsockopt`: EINVAL when the kernel lacks a flag or the socket is not connected, ENOPROTOOPT or
/// EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_transmit_reports(socket: BorrowedFd<'_>, card: bool) -> io::Result<()> {
    // With a card both stamps of a send are wanted, and the kernel leaves its own out without this flag.
    let both = if card { OPT_TX_SWHW } else { 0 };
    let flags = RX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY | card_flags(card) | both;
    // Before Linux 6.2 ids count from what was acknowledged, which is the same where nothing was sent.
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &(flags | OPT_ID_TCP))
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &flags))
}

/// Room for one control message of 4 bytes.
#[repr(C, align(8))]
struct MarkControl([u8; 24]);

/// Sends as [`super::send`] does, and has the last byte that the socket takes stamped when it leaves, and at `points`.
///
/// # Errors
/// Returns the error of the send: EAGAIN when the socket is full, EMSGSIZE for a datagram that is too long,
/// ECONNRESET, EPIPE and the like when the connection is over.
pub fn send_marked(
    socket: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    points: TransmitPoints,
) -> io::Result<usize> {
    let mut control = MarkControl([0; 24]);
    let mut message = empty_message();
    // IoSlice is promised to have the layout of iovec; sendmsg does not write to it.
    message.msg_iov = parts.as_ptr().cast::<libc::iovec>().cast_mut();
    message.msg_iovlen = parts.len() as _;
    message.msg_control = ptr::from_mut(&mut control).cast();
    // SAFETY: CMSG_SPACE and CMSG_LEN compute with numbers.
    let (space, len) =
        unsafe { (libc::CMSG_SPACE(size_of::<u32>() as u32), libc::CMSG_LEN(size_of::<u32>() as u32)) };
    assert!(space as usize <= size_of::<MarkControl>(), "the message has room");
    message.msg_controllen = space as _;
    let also = |wanted: bool, flag: u32| if wanted { flag } else { 0 };
    let flags = TX_SOFTWARE | also(points.scheduled, TX_SCHED) | also(points.card, TX_HARDWARE);
    // SAFETY: the control buffer is aligned and long enough for one message of 4 bytes, so the header is in it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SO_TIMESTAMPING;
        (*header).cmsg_len = len as _;
        libc::CMSG_DATA(header).cast::<u32>().write_unaligned(flags);
    }
    // SAFETY: `message` describes `parts` and `control`, which live until the call returns.
    check_len(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) })
}

/// Room for the control messages of one entry of the error queue: three stamps and an extended error with its address.
#[repr(C, align(8))]
struct Report([MaybeUninit<u8>; 256]);

/// Takes the next entry of a socket's error queue; `None` where the queue is empty.
///
/// # Errors
/// Returns the error of `recvmsg`, which an open socket does not give but for EINTR.
pub fn take_queued_error(socket: BorrowedFd<'_>) -> io::Result<Option<QueuedError>> {
    let mut control = Report([MaybeUninit::uninit(); 256]);
    let mut message = empty_message();
    message.msg_control = ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<Report>() as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: `message` describes `control`, which lives until the call returns, and no other memory.
    match check_len(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, flags) }) {
        Ok(_) => Ok(Some(queued_error_of(&message))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The entry that the control messages of a read from the error queue describe.
fn queued_error_of(message: &libc::msghdr) -> QueuedError {
    let (mut wall, mut card, mut error) = (None, None, None);
    // SAFETY: the kernel filled in `message`; its control buffer is still alive in the caller.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: `header` is not null and points to a whole control message inside the buffer.
        let (level, kind, data) =
            unsafe { ((*header).cmsg_level, (*header).cmsg_type, libc::CMSG_DATA(header)) };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => {
                // SAFETY: the data are three timespecs, perhaps not aligned for them; the first is the software's, and the
                // last is the card's.
                let times = unsafe { data.cast::<[libc::timespec; 3]>().read_unaligned() };
                (wall, card) = (stamp_time(times[0]), stamp_time(times[2]));
            }
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                // SAFETY: the data of these kinds begin with an extended error, perhaps not aligned for one.
                error = Some(unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() });
            }
            _ => {}
        }
        // SAFETY: as for CMSG_FIRSTHDR; `header` came from this message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    let point = |info| match info {
        POINT_SENT => Some(TransmitPoint::Left),
        POINT_SCHEDULED => Some(TransmitPoint::Scheduled),
        _ => None,
    };
    match (error, card.or(wall)) {
        (Some(error), Some(wall)) if error.ee_origin == ORIGIN_STAMP => match (point(error.ee_info), card) {
            (Some(TransmitPoint::Left), Some(_)) => {
                QueuedError::Stamp { id: error.ee_data, point: TransmitPoint::Card, wall }
            }
            (Some(point), _) => QueuedError::Stamp { id: error.ee_data, point, wall },
            (None, _) => QueuedError::Other(0),
        },
        // A stamp without a time says nothing.
        (Some(error), _) if error.ee_origin == ORIGIN_STAMP => QueuedError::Other(0),
        (Some(error), _) => QueuedError::Other(error.ee_errno as c_int),
        (None, _) => QueuedError::Other(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control message as the kernel writes it.
    fn control(level: c_int, kind: c_int, data: &[u8]) -> Vec<u8> {
        let len = size_of::<libc::cmsghdr>() + data.len();
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend_from_slice(data);
        bytes.resize(len.next_multiple_of(8), 0);
        bytes
    }

    /// The three stamps of a control message, in nanoseconds.
    fn stamps(times: [u64; 3]) -> Vec<u8> {
        let fields = times.map(|ns| [(ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64]);
        let bytes = fields.concat().iter().flat_map(|field| field.to_ne_bytes()).collect::<Vec<u8>>();
        control(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &bytes)
    }

    /// The extended error of a stamp at this point, of the byte with this number.
    fn extended(origin: u8, point: u32, id: u32) -> Vec<u8> {
        let mut bytes = libc::ENOMSG.to_ne_bytes().to_vec();
        bytes.extend([origin, 0, 0, 0]);
        bytes.extend(point.to_ne_bytes());
        bytes.extend(id.to_ne_bytes());
        control(libc::SOL_IP, libc::IP_RECVERR, &bytes)
    }

    /// Reads the control messages of a queue of errors, one behind the other.
    fn read(messages: &[Vec<u8>]) -> QueuedError {
        let mut aligned: Vec<u64> = messages
            .concat()
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        let mut message = empty_message();
        message.msg_control = aligned.as_mut_ptr().cast();
        message.msg_controllen = (aligned.len() * 8) as _;
        queued_error_of(&message)
    }

    #[test]
    fn an_entry_is_the_stamp_of_the_kernel_or_of_the_card() {
        let stamp = |point, wall| QueuedError::Stamp { id: 77, point, wall };
        let of = |times, point| read(&[stamps(times), extended(ORIGIN_STAMP, point, 77)]);
        assert_eq!(of([5_000_000_007, 0, 0], POINT_SENT), stamp(TransmitPoint::Left, 5_000_000_007));
        assert_eq!(of([9, 0, 0], POINT_SCHEDULED), stamp(TransmitPoint::Scheduled, 9));
        assert_eq!(of([0, 0, 3_000_000_001], POINT_SENT), stamp(TransmitPoint::Card, 3_000_000_001));
        assert_eq!(of([4, 0, 3], POINT_SENT), stamp(TransmitPoint::Card, 3), "the card's is the rarer one");
    }

    #[test]
    fn an_entry_without_a_time_or_of_another_kind_is_no_stamp() {
        assert_eq!(read(&[stamps([0; 3]), extended(ORIGIN_STAMP, POINT_SENT, 1)]), QueuedError::Other(0));
        assert_eq!(read(&[stamps([7, 0, 0]), extended(ORIGIN_STAMP, 2, 1)]), QueuedError::Other(0), "an ACK");
        assert_eq!(read(&[extended(ORIGIN_STAMP, POINT_SENT, 1)]), QueuedError::Other(0));
        assert_eq!(read(&[extended(2, POINT_SENT, 1)]), QueuedError::Other(libc::ENOMSG));
        assert_eq!(read(&[stamps([7, 0, 0])]), QueuedError::Other(0));
        assert_eq!(read(&[]), QueuedError::Other(0));
    }
}
