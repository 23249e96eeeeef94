//! What the kernel says of network devices: by ethtool's calls, and by rtnetlink.

use std::ffi::{c_ulong, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{check, check_len, own};

/// Number of the call that carries ethtool's questions (linux/sockios.h).
const SIOCETHTOOL: c_ulong = 0x8946;

/// A question of ethtool, by its number in linux/ethtool.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EthtoolQuestion {
    /// The driver (`struct ethtool_drvinfo`, 196 bytes).
    Driver = 0x03,
    /// How long the device waits before it interrupts (`struct ethtool_coalesce`, 92 bytes).
    Coalescing = 0x0e,
    /// Whether checksums of received packets are the device's work (`struct ethtool_value`, 8 bytes; as the next ones).
    ReceiveChecksums = 0x14,
    /// Whether checksums of sent packets are.
    TransmitChecksums = 0x16,
    /// Whether packets may be gathered from several places.
    ScatterGather = 0x18,
    /// Whether segmentation of TCP is the device's work.
    TcpSegmentation = 0x1e,
    /// Whether the kernel cuts packets as late as it can.
    GenericSegmentation = 0x23,
    /// Whether the kernel joins received packets.
    GenericReceive = 0x2b,
    /// Which stamps the device can take (`struct ethtool_ts_info`, 44 bytes).
    Stamps = 0x41,
}

/// `struct ifreq` as far as calls with a pointer use it.
#[repr(C)]
struct DeviceRequest {
    name: [u8; libc::IFNAMSIZ],
    data: *mut c_void,
    rest: [u8; 16],
}

/// Asks ethtool's question about the device with this name, and returns the structure that answers it.
///
/// # Errors
/// Returns ENODEV where there is no such device, EOPNOTSUPP where its driver does not answer, and an error of kind
/// `InvalidInput` for a name that is too long for a device.
pub fn ethtool(name: &str, question: EthtoolQuestion) -> io::Result<Vec<u8>> {
    // More than the longest of the structures, which the kernel knows by the number alone.
    let mut words = [0u32; 64];
    words[0] = question as u32;
    let data = words.as_mut_ptr().cast();
    let mut request = DeviceRequest { name: [0; libc::IFNAMSIZ], data, rest: [0; 16] };
    // The last byte stays zero.
    let place = request.name[..libc::IFNAMSIZ - 1].get_mut(..name.len());
    place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    // SAFETY: socket() takes plain numbers.
    let socket = own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: `request` is at least as long as `struct ifreq`, its name ends with a zero, and its pointer is to `words`, which
    // are longer than every structure that a question stands for: the kernel writes no more than that.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, std::ptr::from_mut(&mut request)) })?;
    Ok(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
}

/// Asks the kernel for all network interfaces (RTM_GETLINK of rtnetlink(7)) and hands its replies to `on`, until `on`
/// returns true.
///
/// # Errors
/// Returns the error of the socket, or EAGAIN where the kernel stops before `on` has enough.
pub fn list_links(mut on: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    const REQUEST_BYTES: u32 = 32;
    const GET_LINK: u16 = 18;
    const REQUEST_DUMP: u16 = 0x301;
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket() takes plain numbers.
    let socket = own(unsafe { libc::socket(libc::AF_NETLINK, flags, libc::NETLINK_ROUTE) })?;
    let mut request = [0u8; REQUEST_BYTES as usize];
    request[..4].copy_from_slice(&REQUEST_BYTES.to_ne_bytes());
    request[4..6].copy_from_slice(&GET_LINK.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    // SAFETY: the pointer and the length are those of `request`.
    check_len(unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) })?;
    let mut reply = vec![0u8; 64 * 1024];
    // The kernel answers within the call that sends and the ones that receive, so that nothing is waited for.
    while !on(receive(&socket, &mut reply)?) {}
    Ok(())
}

fn receive<'a>(socket: &OwnedFd, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
    // SAFETY: the pointer and the length are those of `into`.
    let len = check_len(unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), 0) })?;
    Ok(&into[..len])
}

/// Every structure of the calls fits into the words that are handed to them.
const _: () = assert!(size_of::<DeviceRequest>() >= size_of::<libc::ifreq>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_and_answers_or_refuses() {
        let mut seen = Vec::new();
        let listed = list_links(|bytes| {
            seen.extend_from_slice(bytes);
            bytes.windows(3).any(|part| part == b"lo\0")
        });
        assert!(listed.is_ok() && !seen.is_empty(), "{listed:?}");
        assert!(ethtool("lo", EthtoolQuestion::Stamps).is_ok_and(|info| info.len() >= 44));
    }

    #[test]
    fn a_name_that_no_device_has_is_an_error() {
        for name in ["", "no-such-dev", "a-name-that-is-much-too-long-for-a-device"] {
            assert!(ethtool(name, EthtoolQuestion::Driver).is_err(), "{name}");
        }
    }
}
