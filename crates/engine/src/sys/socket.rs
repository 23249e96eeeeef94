//! Sockets: their creation, options, connecting, sending and receiving.

use std::ffi::{c_int, c_void};
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use pummel_logic::time::{Nanos, SECOND};

use super::address::Address;
use super::{check, check_len, empty_message, new_socket};

/// A new non-blocking stream socket of the family that `address` has.
///
/// # Errors
/// Returns the error of `socket`: EMFILE or ENFILE when no descriptor is left, EAFNOSUPPORT when the kernel lacks the
/// family.
pub fn stream_socket(address: &Address) -> io::Result<OwnedFd> {
    new_socket(address.family(), libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)
}

/// A new non-blocking datagram socket of the family that `address` has.
///
/// # Errors
/// Returns the error of `socket`: EMFILE or ENFILE when no descriptor is left, EAFNOSUPPORT when the kernel lacks the
/// family.
pub fn datagram_socket_to(address: &Address) -> io::Result<OwnedFd> {
    new_socket(address.family(), libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0)
}

/// A new datagram socket, which is never connected.
///
/// # Errors
/// Returns the error of `socket`: EMFILE or ENFILE when no descriptor is left, EAFNOSUPPORT when the kernel lacks
/// IPv4.
pub fn datagram_socket() -> io::Result<OwnedFd> {
    new_socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

/// Binds a socket to the address that it shall connect from.
///
/// # Errors
/// Returns the error of `bind`: EADDRNOTAVAIL when this machine lacks the address, EADDRINUSE when its port is taken.
pub fn bind(socket: BorrowedFd<'_>, address: &Address) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the address inside `address`.
    check(unsafe { libc::bind(socket.as_raw_fd(), address.raw(), address.len_bytes) }).map(drop)
}

/// Connects a socket, or begins to connect it (EINPROGRESS).
///
/// # Errors
/// Returns the error of `connect`: EINPROGRESS when the connection is being opened, ECONNREFUSED, ENETUNREACH and the
/// like when it cannot be, EADDRNOTAVAIL when no local port is left, EAGAIN when the queue of a unix listener is
/// full.
pub fn connect(socket: BorrowedFd<'_>, address: &Address) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the address inside `address`.
    check(unsafe { libc::connect(socket.as_raw_fd(), address.raw(), address.len_bytes) }).map(drop)
}

pub(super) fn set_option<T>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let len_bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), len_bytes)
    })
    .map(drop)
}

/// Asks for an option of whatever has this descriptor's number now, and returns the length of the answer. The call reads the state
/// of a socket, so that a number that another thread closes, or gives to another file, in the meantime does no harm: the
/// result is an error, or that of the other socket.
pub(super) fn get_option<T: Copy>(
    number: c_int,
    level: c_int,
    name: c_int,
    value: &mut T,
) -> io::Result<usize> {
    let mut len_bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointers are to a value of `len_bytes` bytes and to its length, and the kernel writes no more than that.
    check(unsafe { libc::getsockopt(number, level, name, ptr::from_mut(value).cast(), &mut len_bytes) })?;
    Ok(len_bytes as usize)
}

/// Sets TCP_NODELAY: small segments are sent at once.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_nodelay(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, &(1 as c_int))
}

/// Sets SO_LINGER: how many seconds closing waits for bytes to be sent. 0 discards the bytes and sends a reset.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_linger(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    let seconds = c_int::try_from(seconds).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: seconds })
}

/// Sets SO_SNDBUF in bytes. The kernel doubles the number and keeps it within its own bounds.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_send_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes)
}

/// Sets SO_RCVBUF in bytes. The kernel doubles the number and keeps it within its own bounds.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes)
}

/// Sets IP_BIND_ADDRESS_NO_PORT: binding to port 0 takes no port yet, so that all ports are available for each
/// destination.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_bind_address_no_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &(1 as c_int))
}

/// Sets SO_TIMESTAMPNS: the kernel stamps received segments with the wall clock.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_receive_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &(1 as c_int))
}

/// Takes the socket's pending error (SO_ERROR) as an error number; 0 for none.
///
/// # Errors
/// Returns the error of `getsockopt`, which no open socket gives.
pub fn take_socket_error(socket: BorrowedFd<'_>) -> io::Result<i32> {
    let mut error: c_int = 0;
    get_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
    Ok(error)
}

/// Sends as many bytes as the socket takes without waiting, and without a SIGPIPE. Returns their number. `parts` may
/// have up to IOV_MAX (1024) elements.
///
/// # Errors
/// Returns the error of the send: EAGAIN when the socket is full, EMSGSIZE for a datagram that is too long,
/// ECONNRESET, EPIPE and the like when the connection is over.
#[inline]
pub fn send(socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if let [part] = parts {
        let no_address = ptr::null::<libc::sockaddr>();
        // The call is made by its number, since the C library's function checks twice in a program with threads whether
        // the thread is to be cancelled. SAFETY: the pointer and the length describe `part`; no address is given, of
        // length 0.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                socket.as_raw_fd(),
                part.as_ptr(),
                part.len(),
                flags,
                no_address,
                0 as libc::socklen_t,
            )
        };
        return check_len(sent as isize);
    }
    let mut message = empty_message();
    // IoSlice is promised to have the layout of iovec; sendmsg does not write to it.
    message.msg_iov = parts.as_ptr().cast::<libc::iovec>().cast_mut();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: `message` describes `parts`, which live until the call returns.
    check_len(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) })
}

/// Receives available bytes without waiting. Returns their number; 0 is the end of the stream.
///
/// # Errors
/// Returns the error of the receive: EAGAIN when no byte is available, ECONNRESET and the like when the connection is
/// broken.
#[inline]
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    let (place, len_bytes) = (into.as_mut_ptr().cast::<c_void>(), into.len());
    // SAFETY: the pointer and the length describe `into`.
    check_len(unsafe { libc::recv(socket.as_raw_fd(), place, len_bytes, libc::MSG_DONTWAIT) })
}

/// Room for control messages: one time stamp takes 32 bytes, three take 64 on sockets that have transmit stamps.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 64]);

/// Receives available bytes without waiting. Returns their number, and the wall time at which the kernel received their
/// newest segment if the socket has [`set_receive_stamps`]. 0 bytes is the end of the stream.
///
/// # Errors
/// Returns the error of the receive: EAGAIN when no byte is available, ECONNRESET and the like when the connection is
/// broken.
#[inline]
pub fn receive_stamped(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<(usize, Option<Nanos>)> {
    receive_with_control(socket, into, stamp_of)
}

/// Receives into `into` without waiting, and has `stamps_of` read the control messages that came with the bytes.
#[inline(always)]
fn receive_with_control<T>(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    stamps_of: fn(&libc::msghdr) -> T,
) -> io::Result<(usize, T)> {
    let mut control = Control([MaybeUninit::uninit(); 64]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut message = empty_message();
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // The call is made by its number, as in `send`. SAFETY: `message` describes `into` and `control`, which live until
    // the call returns.
    let received = unsafe {
        libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), ptr::from_mut(&mut message), libc::MSG_DONTWAIT)
    };
    let received = check_len(received as isize)?;
    Ok((received, stamps_of(&message)))
}

/// The receive stamp among control messages that the kernel wrote somewhere; they begin at a multiple of 8 bytes.
#[inline]
pub fn stamp_in(control: &mut [u8]) -> Option<Nanos> {
    let mut message = empty_message();
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control.len() as _;
    stamp_of(&message)
}

/// The receive stamp among the control messages that the kernel wrote.
fn stamp_of(message: &libc::msghdr) -> Option<Nanos> {
    // SAFETY: the kernel filled in `message`; its control buffer is still alive in the caller.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: `header` is not null and points to a whole control message inside the buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        // SCM_TIMESTAMPNS has the number of SO_TIMESTAMPNS.
        if level == libc::SOL_SOCKET && kind == libc::SO_TIMESTAMPNS {
            // SAFETY: the data of this kind of message is a timespec, perhaps not aligned for one.
            let time = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            return Some(time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos);
        }
        // SCM_TIMESTAMPING has the number of SO_TIMESTAMPING.
        if level == libc::SOL_SOCKET && kind == libc::SO_TIMESTAMPING {
            // SAFETY: the data of this kind of message are three timespecs, perhaps not aligned for them.
            let time = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            return stamp_time(time);
        }
        // SAFETY: as for CMSG_FIRSTHDR; `header` came from this message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

/// The receive stamps of bytes that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStamps {
    /// The wall clock when the kernel received the newest segment.
    pub kernel: Option<Nanos>,
    /// The clock of the network card when it received that segment.
    pub card: Option<Nanos>,
}

/// Receives as [`receive_stamped`] does, on a socket that has the stamps of the network card, too.
///
/// # Errors
/// Returns the errors of [`receive_stamped`].
pub fn receive_stamped_by_card(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
) -> io::Result<(usize, ReceiveStamps)> {
    receive_with_control(socket, into, both_stamps_of)
}

/// The receive stamps among the control messages that the kernel wrote.
fn both_stamps_of(message: &libc::msghdr) -> ReceiveStamps {
    // SAFETY: the kernel filled in `message`; its control buffer is still alive in the caller.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: `header` is not null and points to a whole control message inside the buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if level == libc::SOL_SOCKET && kind == libc::SO_TIMESTAMPING {
            // SAFETY: the data of this kind of message are three timespecs, perhaps not aligned for them.
            let times = unsafe { libc::CMSG_DATA(header).cast::<[libc::timespec; 3]>().read_unaligned() };
            return ReceiveStamps { kernel: stamp_time(times[0]), card: stamp_time(times[2]) };
        }
        // SAFETY: as for CMSG_FIRSTHDR; `header` came from this message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    ReceiveStamps::default()
}

/// The time of a stamp in nanoseconds; `None` where none was taken.
pub(super) fn stamp_time(time: libc::timespec) -> Option<Nanos> {
    let wall = time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos;
    (wall > 0).then_some(wall)
}
