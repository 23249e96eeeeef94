//! System calls as safe functions; every `unsafe` block of the program is here or in a backend beside it.

mod address;
mod clock;
mod device;
mod epoll;
mod inspect;
mod listeners;
pub(crate) mod mapping;
mod netlink;
mod pages;
mod process;
mod signal;
mod socket;
mod transmit;

use std::ffi::c_int;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use self::address::Address;
pub use self::clock::{local_time, monotonic_is_the_kernels, monotonic_ns, since_boot_ns, wall_ns};
pub use self::device::{EthtoolQuestion, device_with, ethtool, list_links, stamp_setting};
pub use self::epoll::{
    Alarm, EDGES, FAILED, HUNG_UP, PEER_CLOSED, Poller, READABLE, Ready, WRITABLE, WaitLimit,
};
pub use self::inspect::{
    TcpCounters, cookie_of, descriptors_max, is_own_address, peer_of, tcp_counters, thread_number,
    ticks_per_second,
};
pub use self::listeners::{Listener, listening};
pub use self::pages::Pages;
#[cfg(test)]
pub use self::process::refuse_call;
pub use self::process::{
    CpuTime, allowed_cpus, allowed_cpus_of, check_stdout, descriptor_limit, kernel_release,
    locked_memory_limit, online_cpus, peak_rss_bytes, pin_to_cpu, process_cpu_time, raise_descriptor_limit,
    sharpen_timers, thread_cpu_time,
};
pub use self::signal::{
    end_by_first_signal, first_signal, first_signal_number, interrupts, on_interrupt, report_file_size_limit,
};
pub use self::socket::{
    ReceiveStamps, bind, connect, datagram_socket, datagram_socket_to, receive, receive_stamped,
    receive_stamped_by_card, send, set_bind_address_no_port, set_linger, set_nodelay, set_receive_buffer,
    set_receive_stamps, set_send_buffer, stamp_in, stream_socket, take_socket_error,
};
pub use self::transmit::{
    QueuedError, TransmitPoint, TransmitPoints, send_marked, set_receive_stamps_beside_transmit,
    set_transmit_reports, take_queued_error,
};

/// Turns the -1 of a system call into its error.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Turns the -1 of a system call that returns a length into its error.
fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes over a descriptor that a system call just returned.
fn own(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel just made this descriptor for the caller; no other code knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A new socket, which programs that the process starts do not inherit.
fn new_socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket() takes plain numbers.
    own(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })
}

/// A message header without address, parts and control messages.
#[inline(always)]
fn empty_message() -> libc::msghdr {
    // SAFETY: msghdr is pointers and numbers, for which all zeroes (null, empty) is a value.
    unsafe { std::mem::zeroed() }
}

/// The error number of a system call's failure; 0 where the failure is not the kernel's.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}
