//! Facts of this process's connections, threads and addresses, from the kernel.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use pummel_logic::time::{MICROSECOND, Nanos};

use super::check;
use super::socket::get_option;

/// The kernel's counts on one TCP connection since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Segments of which the peer said that they had arrived twice (DSACK of RFC 2883). Absent where the kernel is older than
    /// 4.19, or where the peer acknowledges no single segments.
    pub arrived_twice: Option<u32>,
    /// Timers of the connection that ran out (RTO); the counter wraps. Absent where the kernel is older than 6.7.
    pub timeouts: Option<u16>,
    /// Segments that were sent; the counter wraps.
    pub segments_out: u32,
    /// Time in which data waited to be sent or acknowledged.
    pub busy_ns: Nanos,
    /// Part of `busy_ns` in which the receiver's window was full.
    pub rwnd_limited_ns: Nanos,
    /// Part of `busy_ns` in which the send buffer was full.
    pub sndbuf_limited_ns: Nanos,
}

/// The number of the calling thread.
pub fn thread_number() -> u32 {
    // SAFETY: gettid() touches no memory and always succeeds.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Number of clock ticks that the kernel counts in a second (USER_HZ).
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a plain number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

/// Whether an address belongs to this machine, by an attempt to bind a socket to it. Nothing is sent.
pub fn is_own_address(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// A number above those of all descriptors of this process (FDSize of /proc/self/status).
///
/// # Errors
/// Returns the error of reading /proc/self/status, and one of kind `Unsupported` where the line is missing.
pub fn descriptors_max() -> io::Result<c_int> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    line.and_then(|size| size.trim().parse().ok()).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// The peer of the socket with this number.
///
/// # Errors
/// Returns EBADF, ENOTSOCK or ENOTCONN where the number is that of no connected socket, and EAFNOSUPPORT for a peer that
/// has no internet address.
pub fn peer_of(number: c_int) -> io::Result<SocketAddr> {
    // SAFETY: sockaddr_in6 is plain numbers, for which all zeroes is a value.
    let mut raw: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    let mut len_bytes = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    // SAFETY: the pointers are to a value of `len_bytes` bytes and to its length, and the kernel writes no more than that.
    check(unsafe { libc::getpeername(number, std::ptr::from_mut(&mut raw).cast(), &mut len_bytes) })?;
    match c_int::from(raw.sin6_family) {
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Ok(SocketAddr::new(address.into(), u16::from_be(raw.sin6_port)))
        }
        // The address of version 4 stands where that of version 6 has its flow.
        libc::AF_INET => {
            let address = Ipv4Addr::from(raw.sin6_flowinfo.to_ne_bytes());
            Ok(SocketAddr::new(address.into(), u16::from_be(raw.sin6_port)))
        }
        _ => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    }
}

/// The number that the kernel gives to the socket with this descriptor's number; no other socket ever has it.
///
/// # Errors
/// Returns EBADF or ENOTSOCK where the number is that of no socket.
pub fn cookie_of(number: c_int) -> io::Result<u64> {
    let mut cookie = 0u64;
    get_option(number, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
    Ok(cookie)
}

/// Length of the part of `struct tcp_info` (linux/tcp.h) that ends with `tcpi_sndbuf_limited`, of Linux 4.10.
const INFO_BYTES: usize = 192;
/// Length of the part that ends with `tcpi_reord_seen`, of Linux 4.19.
const INFO_WITH_DUPLICATES_BYTES: usize = 224;
/// Length of the part that ends with `tcpi_total_rto_time`, of Linux 6.7.
const INFO_WITH_TIMEOUTS_BYTES: usize = 248;
/// Bit of `tcpi_options` where both sides acknowledge single segments (TCPI_OPT_SACK).
const WITH_SACK: u8 = 2;

/// The kernel's counters of the TCP connection with this descriptor's number.
///
/// # Errors
/// Returns EBADF, ENOTSOCK or EOPNOTSUPP where the number is that of no TCP socket, and an error of kind `Unsupported`
/// where the kernel is older than 4.10.
pub fn tcp_counters(number: c_int) -> io::Result<TcpCounters> {
    let mut info = [0u64; INFO_WITH_TIMEOUTS_BYTES / 8];
    let known_bytes = get_option(number, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    if known_bytes < INFO_BYTES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // Offsets in bytes: tcpi_options 5, tcpi_total_retrans 100, tcpi_segs_out 136, tcpi_busy_time 168, in microseconds, and two
    // more, tcpi_dsack_dups 216, tcpi_total_rto 240, of 16 bits.
    let has_sack = info[0].to_ne_bytes()[5] & WITH_SACK != 0;
    let half = |at: usize| {
        let word = info[at / 8].to_ne_bytes();
        let four = if at.is_multiple_of(8) { &word[..4] } else { &word[4..] };
        u32::from_ne_bytes(four.try_into().expect("half of a word has four bytes"))
    };
    let ns = |at: usize| info[at / 8].saturating_mul(MICROSECOND);
    Ok(TcpCounters {
        retransmits: half(100),
        arrived_twice: (has_sack && known_bytes >= INFO_WITH_DUPLICATES_BYTES).then(|| half(216)),
        timeouts: (known_bytes >= INFO_WITH_TIMEOUTS_BYTES).then(|| {
            let word = info[240 / 8].to_ne_bytes();
            u16::from_ne_bytes([word[0], word[1]])
        }),
        segments_out: half(136),
        busy_ns: ns(168),
        rwnd_limited_ns: ns(176),
        sndbuf_limited_ns: ns(184),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_connection_is_known_by_its_peer_its_cookie_and_its_segments() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let place = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(place).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let number = client.as_raw_fd();
            assert_eq!(peer_of(number).unwrap(), place);
            assert_ne!(cookie_of(number).unwrap(), cookie_of(server.as_raw_fd()).unwrap());
            let before = tcp_counters(number).unwrap();
            client.write_all(b"x").unwrap();
            server.read_exact(&mut [0]).unwrap();
            let after = tcp_counters(number).unwrap();
            assert_eq!(after.segments_out, before.segments_out + 1);
            assert_eq!(after.retransmits, 0);
            // Segments that arrive twice are counted from Linux 4.19 on.
            assert!(after.arrived_twice.is_none_or(|twice| twice == 0), "{after:?}");
        }
    }

    #[test]
    fn what_is_no_connection_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in [file.as_raw_fd(), socket.as_raw_fd(), -1] {
            assert!(peer_of(number).is_err() && tcp_counters(number).is_err());
        }
        assert!(cookie_of(file.as_raw_fd()).is_err());
    }

    #[test]
    fn addresses_of_other_machines_are_not_our_own() {
        assert!(is_own_address("127.0.0.1".parse().unwrap()));
        assert!(!is_own_address("192.0.2.1".parse().unwrap()), "an address of documents");
    }

    #[test]
    fn a_thread_is_listed_under_its_number() {
        let path = format!("/proc/self/task/{}/schedstat", thread_number());
        assert!(std::fs::exists(path).unwrap());
        assert!(crate::sys::since_boot_ns() > 0 && ticks_per_second() > 0);
    }
}
