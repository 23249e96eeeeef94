//! The run's own TCP connections and their counters in the kernel, found among the file descriptors of this process.
//!
//! A worker may close a connection while it is read, and its descriptor may then belong to another file. Sockets are
//! therefore identified by their cookies, which are unique.

use std::collections::HashSet;
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;

use pummel_measure::evidence::ConnectionEvidence;

use crate::sys::{self, TcpCounters};

/// The counters of connections, each with the cookie of its socket, by the numbers of their descriptors, which connections
/// keep for life.
pub type Connections = Vec<Option<(u64, TcpCounters)>>;

/// The cookies of the sockets that are known to be the run's own, by the numbers of their descriptors; 0 for others. A socket
/// that is connected stays so to its end.
pub type OwnCookies = Vec<u64>;

/// The definition of the run's own connections: those to `servers` except those with the cookies in `without`.
#[derive(Clone, Copy, Debug)]
pub struct OwnConnections<'a> {
    /// Addresses of the servers.
    pub servers: &'a HashSet<SocketAddr>,
    /// Cookies of other connections to the servers.
    pub without: &'a HashSet<u64>,
}

impl OwnConnections<'_> {
    /// Finds the run's own connections among those of this process and adds them to `known`, so that a later reading
    /// need not ask for their peers.
    ///
    /// # Errors
    /// Returns the error of reading /proc/self/status, which says how many descriptors there may be.
    pub fn find(&self, known: &mut OwnCookies) -> io::Result<()> {
        self.each(known, |_, _| Ok(()))
    }

    /// Reads the run's own TCP connections.
    ///
    /// # Errors
    /// Returns the error of reading /proc/self/status, which says how many descriptors there may be, and an error of kind
    /// `Unsupported` when the kernel is older than 4.10.
    pub fn read(&self, known: &mut OwnCookies) -> io::Result<Connections> {
        let mut connections = Connections::with_capacity(known.len());
        self.each(known, |number, cookie| {
            match sys::tcp_counters(number) {
                Ok(counters) => {
                    connections.resize(number as usize, None);
                    connections.push(Some((cookie, counters)));
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
                // A socket of another kind, or one that was closed in the meantime.
                Err(_) => {}
            }
            Ok(())
        })?;
        Ok(connections)
    }

    /// Hands the descriptor's number and the cookie of each of the run's own connections to `on`, in the order of the numbers.
    fn each(
        &self,
        known: &mut OwnCookies,
        mut on: impl FnMut(c_int, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let end = sys::descriptors_max()?;
        known.resize(usize::try_from(end).unwrap_or(0), 0);
        // Every number is tried, since the kernel makes a file for each that it lists in /proc/self/fd.
        for (number, known) in (0..end).zip(known) {
            let Ok(cookie) = sys::cookie_of(number) else { continue };
            if *known != cookie {
                let goes_there =
                    sys::peer_of(number).is_ok_and(|peer| self.servers.contains(&unmapped(peer)));
                if !goes_there || self.without.contains(&cookie) {
                    continue;
                }
                *known = cookie;
            }
            on(number, cookie)?;
        }
        Ok(())
    }
}

/// The address of a peer; an IPv4 address that is mapped into IPv6 is returned as IPv4.
fn unmapped(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

/// Differences of the counters between two readings. A connection that is missing in the first reading began between
/// the two; one that is missing in the second is left out.
pub fn between(before: &Connections, after: &Connections) -> Option<ConnectionEvidence> {
    let mut sum = ConnectionEvidence { lost: Some(0), ..ConnectionEvidence::default() };
    let (mut timeouts, mut peers_tell) = (0, false);
    for (number, entry) in after.iter().enumerate() {
        let Some((cookie, last)) = entry else { continue };
        let same = before.get(number).and_then(|entry| entry.filter(|(before, _)| before == cookie));
        let first = same.map_or_else(TcpCounters::default, |(_, counters)| counters);
        sum.read += 1;
        let retransmits = last.retransmits.wrapping_sub(first.retransmits);
        sum.retransmits += u64::from(retransmits);
        // A connection that sent nothing again lost nothing.
        let lost = if retransmits == 0 { Some(0) } else { lost_of(retransmits, &first, last) };
        sum.lost = sum.lost.zip(lost).map(|(lost, more)| lost + u64::from(more));
        peers_tell |= last.arrived_twice.is_some_and(|count| count > 0);
        let (before, after) = (first.timeouts.unwrap_or(0), last.timeouts.unwrap_or(0));
        timeouts += u64::from(after.wrapping_sub(before));
        sum.segments_out += u64::from(last.segments_out.wrapping_sub(first.segments_out));
        sum.busy_ns += last.busy_ns.saturating_sub(first.busy_ns);
        sum.rwnd_limited_ns += last.rwnd_limited_ns.saturating_sub(first.rwnd_limited_ns);
        sum.sndbuf_limited_ns += last.sndbuf_limited_ns.saturating_sub(first.sndbuf_limited_ns);
    }
    // Peers that have never said that a segment arrived twice may be such as never do (net.ipv4.tcp_dsack): only timers of these
    // connections that ran out prove then that some were lost.
    if sum.retransmits > 0 && !peers_tell && timeouts == 0 {
        sum.lost = None;
    }
    (sum.read > 0).then_some(sum)
}

/// The number of segments that were sent again between two readings of a connection and had not arrived. The peer
/// reports those that arrived twice; absent if it does not report them.
fn lost_of(retransmits: u32, first: &TcpCounters, last: &TcpCounters) -> Option<u32> {
    let arrived_twice = last.arrived_twice?.wrapping_sub(first.arrived_twice.unwrap_or(0));
    Some(retransmits.saturating_sub(arrived_twice))
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
        let own = OwnConnections { servers: &servers, without: &without };
        let mut known = OwnCookies::new();
        own.find(&mut known).unwrap();
        let count = |known: &OwnCookies| known.iter().filter(|cookie| **cookie != 0).count();
        assert_eq!(count(&known), 2, "one of them is not to be read");
        let before = own.read(&mut known).unwrap();
        assert_eq!(before.iter().flatten().count(), 2);
        let mut accepted = listener.accept().unwrap().0;
        ours[0].write_all(b"abc").unwrap();
        accepted.read_exact(&mut [0; 3]).unwrap();
        ours.remove(1);
        ours.push(TcpStream::connect(place).unwrap());
        let after = own.read(&mut known).unwrap();
        let seen = between(&before, &after).expect("there are connections");
        assert_eq!(seen.read, 2, "one was closed, and one was opened");
        assert!(seen.segments_out >= 2, "what was said, and the handshake of the new one: {seen:?}");
        assert_eq!(seen.retransmits, 0);
    }

    #[test]
    fn what_was_sent_again_and_had_arrived_was_not_lost() {
        let counters =
            |retransmits, arrived_twice| TcpCounters { retransmits, arrived_twice, ..TcpCounters::default() };
        let lost = |before, after| {
            let of = |entry| vec![Some((7, entry)), Some((8, TcpCounters::default()))];
            between(&of(before), &of(after)).map(|seen| (seen.retransmits, seen.lost))
        };
        assert_eq!(lost(counters(2, Some(1)), counters(12, Some(11))), Some((10, Some(0))));
        assert_eq!(lost(counters(2, Some(1)), counters(12, Some(4))), Some((10, Some(7))));
        assert_eq!(lost(counters(2, Some(2)), counters(3, Some(9))), Some((1, Some(0))));
        assert_eq!(lost(counters(2, None), counters(12, None)), Some((10, None)), "the peer does not say");
        assert_eq!(lost(counters(2, None), counters(2, None)), Some((0, Some(0))), "nothing was sent again");
        assert_eq!(lost(counters(2, Some(0)), counters(12, Some(0))), Some((10, None)), "it never said so");
        let timed_out = TcpCounters { timeouts: Some(1), ..counters(12, Some(0)) };
        assert_eq!(lost(counters(2, Some(0)), timed_out), Some((10, Some(10))), "a timer ran out");
    }

    #[test]
    fn counters_of_32_bits_wrap() {
        let counters = |segments_out| TcpCounters { segments_out, ..TcpCounters::default() };
        let (before, after) = (vec![None, Some((7, counters(u32::MAX)))], vec![None, Some((7, counters(9)))]);
        assert_eq!(between(&before, &after).map(|seen| seen.segments_out), Some(10));
        let another = vec![None, Some((8, counters(9)))];
        assert_eq!(
            between(&before, &another).map(|seen| seen.segments_out),
            Some(9),
            "it has the number of the first"
        );
        assert_eq!(between(&before, &Connections::new()), None);
    }
}
