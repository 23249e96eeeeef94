//! The run's own TCP connections as the kernel counts them, found among the descriptors of this process.
//!
//! Workers may close a connection while it is read: its descriptor's number then is that of nothing or of another file,
//! which the kernel says, and a socket is known by its cookie, which no other socket has.

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;

use pummel_logic::measure::evidence::ConnectionEvidence;

use crate::sys::{self, TcpCounters};

/// The counters of connections by the cookies of their sockets.
pub type Connections = HashMap<u64, TcpCounters>;

/// The cookies of the sockets that are known to be connected to servers. A socket that is connected stays so to its end.
pub type Known = HashSet<u64>;

/// Looks which connections of this process go to these addresses, and adds them to `known`, so that a later reading need not
/// ask for their peers.
///
/// # Errors
/// Returns the error of reading /proc/self/status, which says how many descriptors there may be.
pub fn find(servers: &HashSet<SocketAddr>, known: &mut Known) -> io::Result<()> {
    (0..sys::descriptors_max()?).for_each(|number| _ = cookie_of(number, servers, known));
    Ok(())
}

/// The cookie of the socket with this descriptor's number where it goes to one of these addresses.
fn cookie_of(number: c_int, servers: &HashSet<SocketAddr>, known: &mut Known) -> Option<u64> {
    let cookie = sys::cookie_of(number).ok()?;
    if !known.contains(&cookie) {
        sys::peer_of(number).ok().filter(|peer| servers.contains(&unmapped(*peer)))?;
        known.insert(cookie);
    }
    Some(cookie)
}

/// Reads the TCP connections of this process to these addresses, but for those with the cookies in `without`.
///
/// # Errors
/// Returns the error of reading /proc/self/status, which says how many descriptors there may be, and an error of kind
/// `Unsupported` when the kernel is older than 4.10.
pub fn read(
    servers: &HashSet<SocketAddr>,
    without: &HashSet<u64>,
    known: &mut Known,
) -> io::Result<Connections> {
    let mut connections = Connections::with_capacity(known.len());
    // Every number is tried, since the kernel makes a file for each that it lists in /proc/self/fd.
    for number in 0..sys::descriptors_max()? {
        let found = cookie_of(number, servers, known).filter(|cookie| !without.contains(cookie));
        let Some(cookie) = found else { continue };
        match sys::tcp_counters(number) {
            Ok(counters) => drop(connections.insert(cookie, counters)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
            // A socket of another kind, or one that was closed in the meantime.
            Err(_) => {}
        }
    }
    Ok(connections)
}

/// The address of a peer, of version 4 where it is one within version 6.
fn unmapped(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

/// What was counted between two readings. A connection that the first reading lacks began in between; of one that the
/// second lacks nothing is known.
pub fn between(before: &Connections, after: &Connections) -> Option<ConnectionEvidence> {
    let mut sum = ConnectionEvidence::default();
    for (cookie, last) in after {
        let first = before.get(cookie).copied().unwrap_or_default();
        sum.read += 1;
        sum.retransmits += u64::from(last.retransmits.wrapping_sub(first.retransmits));
        sum.segments_out += u64::from(last.segments_out.wrapping_sub(first.segments_out));
        sum.busy_ns += last.busy_ns.saturating_sub(first.busy_ns);
        sum.rwnd_limited_ns += last.rwnd_limited_ns.saturating_sub(first.rwnd_limited_ns);
        sum.sndbuf_limited_ns += last.sndbuf_limited_ns.saturating_sub(first.sndbuf_limited_ns);
    }
    (sum.read > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn the_connections_to_the_servers_are_found_and_no_others() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let mut ours: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(place).unwrap()).collect();
        let _not_ours = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        let without = HashSet::from([sys::cookie_of(ours[2].as_raw_fd()).unwrap()]);
        let servers = HashSet::from([place]);
        let mut known = Known::new();
        find(&servers, &mut known).unwrap();
        assert_eq!(known.len(), 3, "one of them is not to be read");
        let before = read(&servers, &without, &mut known).unwrap();
        assert_eq!(before.len(), 2);
        let mut accepted = listener.accept().unwrap().0;
        ours[0].write_all(b"abc").unwrap();
        accepted.read_exact(&mut [0; 3]).unwrap();
        ours.remove(1);
        ours.push(TcpStream::connect(place).unwrap());
        let after = read(&servers, &without, &mut known).unwrap();
        let seen = between(&before, &after).expect("there are connections");
        assert_eq!(seen.read, 2, "one was closed, and one was opened");
        assert_eq!(known.len(), 4, "the new one is known from now on");
        assert!(seen.segments_out >= 2, "what was said, and the handshake of the new one: {seen:?}");
        assert_eq!(seen.retransmits, 0);
    }

    #[test]
    fn counters_of_32_bits_wrap() {
        let counters = |segments_out| TcpCounters { segments_out, ..TcpCounters::default() };
        let before = HashMap::from([(1, counters(u32::MAX))]);
        let after = HashMap::from([(1, counters(9))]);
        assert_eq!(between(&before, &after).map(|seen| seen.segments_out), Some(10));
        assert_eq!(between(&before, &HashMap::new()), None);
    }
}
