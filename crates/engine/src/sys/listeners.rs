//! Sockets that listen, from the kernel (sock_diag(7)).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::netlink::{self, HEADER_BYTES};

/// A TCP socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address of the socket; unspecified where the socket listens on all.
    pub address: IpAddr,
    /// Attempts to connect that the socket turned away, most of them since its queue was full; the counter wraps.
    pub dropped: u32,
}

/// Length of `struct inet_diag_req_v2` (linux/inet_diag.h).
const REQUEST_BYTES: usize = 56;
/// Length of `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;
/// Type of the question and of its answers.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The attribute with the memory of a socket.
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Place of the dropped packets in that attribute, in numbers of 32 bits.
const SK_MEMINFO_DROPS: usize = 8;
/// Bit of the state of sockets that listen.
const LISTENS: u32 = 1 << 10;

/// The TCP sockets of this network namespace that listen on a port.
///
/// # Errors
/// Returns the error of the socket, and ENOENT where the kernel lacks CONFIG_INET_DIAG.
pub fn listening(port: u16) -> io::Result<Vec<Listener>> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let question = question(family as u8, port);
        netlink::ask(libc::NETLINK_INET_DIAG, &question, |reply| read(reply, port, &mut found))?;
    }
    Ok(found)
}

/// The question for all sockets of a family that listen on a port, with their memory.
fn question(family: u8, port: u16) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes: [u8; HEADER_BYTES + REQUEST_BYTES] = netlink::question(SOCK_DIAG_BY_FAMILY);
    let request = &mut bytes[HEADER_BYTES..];
    (request[0], request[1]) = (family, libc::IPPROTO_TCP as u8);
    request[2] = 1 << (INET_DIAG_SKMEMINFO - 1);
    request[4..8].copy_from_slice(&LISTENS.to_ne_bytes());
    request[8..10].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Reads the messages of one reply. Returns whether the last one was among them.
fn read(mut bytes: &[u8], port: u16, found: &mut Vec<Listener>) -> io::Result<bool> {
    while bytes.len() >= HEADER_BYTES {
        let len_bytes = number(bytes, 0) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if len_bytes < HEADER_BYTES || len_bytes > bytes.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let body = &bytes[HEADER_BYTES..len_bytes];
        match kind {
            SOCK_DIAG_BY_FAMILY => found.extend(listener(body, port)),
            kind if kind == libc::NLMSG_DONE as u16 => return Ok(true),
            kind if kind == libc::NLMSG_ERROR as u16 && body.len() >= 4 => {
                return Err(io::Error::from_raw_os_error((number(body, 0) as i32).wrapping_neg()));
            }
            _ => {}
        }
        bytes = &bytes[len_bytes.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

/// The socket of a message; `None` for one with another port, or without the count of what it dropped.
fn listener(body: &[u8], port: u16) -> Option<Listener> {
    let (message, mut rest) = body.split_at_checked(MESSAGE_BYTES)?;
    if message[4..6] != port.to_be_bytes() {
        return None;
    }
    let place: [u8; 16] = message[8..24].try_into().ok()?;
    let address = match i32::from(message[0]) {
        libc::AF_INET => IpAddr::from(Ipv4Addr::new(place[0], place[1], place[2], place[3])),
        _ => IpAddr::from(Ipv6Addr::from(place)),
    };
    // Attributes have their length and their kind before their value, and begin at multiples of four bytes.
    while rest.len() >= 4 {
        let len_bytes = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let value = rest.get(4..len_bytes)?;
        if u16::from_ne_bytes([rest[2], rest[3]]) == INET_DIAG_SKMEMINFO {
            let is_there = value.len() >= 4 * (SK_MEMINFO_DROPS + 1);
            return is_there.then(|| Listener { address, dropped: number(value, 4 * SK_MEMINFO_DROPS) });
        }
        rest = &rest[len_bytes.next_multiple_of(4).min(rest.len())..];
    }
    None
}

/// The number of 32 bits at a place that is there.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port_and_says_what_it_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let found = match listening(place.port()) {
            // A kernel may have been built without it.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return,
            found => found.unwrap(),
        };
        assert_eq!(found, [Listener { address: place.ip(), dropped: 0 }]);
        // Nothing accepts: the queue of 128 fills, and further attempts are turned away.
        let mut held = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&place, Duration::from_millis(100)) {
            held.push(stream);
        }
        assert!(listening(place.port()).unwrap()[0].dropped > 0);
        drop(listener);
        // A process that another test starts holds all descriptors from its fork to its exec.
        let closed_by = Instant::now() + Duration::from_secs(10);
        while !listening(place.port()).unwrap().is_empty() {
            assert!(Instant::now() < closed_by, "the listener is still told of");
            std::thread::yield_now();
        }
    }

    #[test]
    fn replies_that_are_cut_are_no_listeners() {
        let mut reply = question(libc::AF_INET as u8, 80).to_vec();
        let mut found = Vec::new();
        for len_bytes in 0..reply.len() {
            assert!(!read(&reply[..len_bytes], 80, &mut found).unwrap_or(false));
        }
        reply[..4].copy_from_slice(&3u32.to_ne_bytes());
        assert!(read(&reply, 80, &mut found).is_err() && found.is_empty());
    }
}
