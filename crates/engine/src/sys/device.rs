//! Facts of network devices from the kernel: by ethtool's calls, and by rtnetlink.

use std::ffi::{c_ulong, c_void};
use std::io;
use std::mem::size_of;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use super::netlink::{ask, question};
use super::{check, new_socket};

/// Number of the call that carries ethtool's questions (linux/sockios.h).
const SIOCETHTOOL: c_ulong = 0x8946;

/// A question of ethtool, by its number in linux/ethtool.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EthtoolQuestion {
    /// The driver (`struct ethtool_drvinfo`, 196 bytes).
    Driver = 0x03,
    /// Time that the device waits before it interrupts (`struct ethtool_coalesce`, 92 bytes).
    Coalescing = 0x0e,
    /// Checksums of received packets by the device (`struct ethtool_value`, 8 bytes; as the next ones).
    ReceiveChecksums = 0x14,
    /// Checksums of sent packets by the device.
    TransmitChecksums = 0x16,
    /// Packets that are gathered from several places.
    ScatterGather = 0x18,
    /// Segmentation of TCP by the device.
    TcpSegmentation = 0x1e,
    /// Cutting of packets by the kernel, as late as it can.
    GenericSegmentation = 0x23,
    /// Joining of received packets by the kernel.
    GenericReceive = 0x2b,
    /// The stamps that the device can take (`struct ethtool_ts_info`, 44 bytes).
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
    call(name, SIOCETHTOOL, words.as_mut_ptr().cast())?;
    Ok(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
}

/// Makes a call about a device, with a pointer to the structure that the call reads and writes.
fn call(name: &str, number: c_ulong, data: *mut c_void) -> io::Result<()> {
    let mut request = DeviceRequest { name: [0; libc::IFNAMSIZ], data, rest: [0; 16] };
    // The last byte stays zero.
    let place = request.name[..libc::IFNAMSIZ - 1].get_mut(..name.len());
    place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    let socket = new_socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: `request` is at least as long as `struct ifreq`, its name ends with a zero, and its pointer is to words of the
    // callers that are longer than every structure that their calls stand for: the kernel writes no more than that.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), number as _, std::ptr::from_mut(&mut request)) }).map(drop)
}

/// Number of the call for a card's setting of packet stamps (linux/sockios.h).
const SIOCGHWTSTAMP: c_ulong = 0x89b1;

/// Returns the setting of packet stamps of the device with this name: the kind of stamps for sent packets and the
/// filter of received ones (`struct hwtstamp_config` of linux/net_tstamp.h).
///
/// # Errors
/// Returns ENODEV where there is no such device, EOPNOTSUPP where its driver does not report it, and an error of kind
/// `InvalidInput` for a name that is too long for a device.
pub fn stamp_setting(name: &str) -> io::Result<(u32, u32)> {
    // Flags, the kind of stamps, and the filter; longer than the structure.
    let mut words = [0u32; 8];
    call(name, SIOCGHWTSTAMP, words.as_mut_ptr().cast())?;
    Ok((words[1], words[2]))
}

/// Name of the device that has this address; `None` where none has.
///
/// # Errors
/// Returns the error of `getifaddrs`.
pub fn device_with(address: IpAddr) -> io::Result<Option<String>> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the pointer is to a place for the list, which is freed below.
    check(unsafe { libc::getifaddrs(&mut first) })?;
    let (mut found, mut entry) = (None, first);
    while !entry.is_null() && found.is_none() {
        // SAFETY: the entry is one of the list, which is not freed yet.
        let (name, socket, next) = unsafe { ((*entry).ifa_name, (*entry).ifa_addr, (*entry).ifa_next) };
        // SAFETY: `socket` is null or an address whose family says its length.
        if unsafe { ip_of(socket) } == Some(address) {
            // SAFETY: the name of an entry ends with a zero.
            let name = unsafe { std::ffi::CStr::from_ptr(name) };
            found = Some(name.to_string_lossy().into_owned());
        }
        entry = next;
    }
    // SAFETY: the list is that of getifaddrs, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The address of IP in a socket's address; `None` for others.
///
/// # Safety
/// `socket` is null, or points to an address that is as long as its family says.
unsafe fn ip_of(socket: *const libc::sockaddr) -> Option<IpAddr> {
    if socket.is_null() {
        return None;
    }
    // SAFETY: every address has a family; those of the two families are of these structures, perhaps not aligned for them.
    unsafe {
        match i32::from((*socket).sa_family) {
            libc::AF_INET => {
                let address = socket.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                let address = socket.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::from(address.sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

/// Asks the kernel for all network interfaces (RTM_GETLINK of rtnetlink(7)) and hands its replies to `on`, until `on`
/// returns true.
///
/// # Errors
/// Returns the error of the socket, or EAGAIN where the kernel stops before `on` has enough.
pub fn list_links(mut on: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    const GET_LINK: u16 = 18;
    ask(libc::NETLINK_ROUTE, &question::<32>(GET_LINK), |reply| Ok(on(reply)))
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
    fn loopback_has_its_address_and_is_set_up_to_stamp_nothing() {
        assert_eq!(device_with("127.0.0.1".parse().unwrap()).unwrap().as_deref(), Some("lo"));
        assert_eq!(device_with("192.0.2.1".parse().unwrap()).unwrap(), None, "an address of documents");
        assert!(stamp_setting("lo").is_err(), "its driver does not tell");
    }

    #[test]
    fn a_name_that_no_device_has_is_an_error() {
        for name in ["", "no-such-dev", "a-name-that-is-much-too-long-for-a-device"] {
            assert!(ethtool(name, EthtoolQuestion::Driver).is_err(), "{name}");
        }
    }
}
