//! Socket addresses in the kernel's form.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// A socket address in the kernel's form.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_storage,
    pub(super) len_bytes: libc::socklen_t,
}

impl Address {
    fn from_raw<T>(raw: &T, len_bytes: usize) -> Address {
        assert!(len_bytes <= size_of::<T>() && size_of::<T>() <= size_of::<libc::sockaddr_storage>());
        // SAFETY: sockaddr_storage is plain numbers, for which all zeroes is a value.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        // SAFETY: source and destination are separate, and both hold at least `len_bytes` bytes as asserted above.
        unsafe {
            ptr::copy_nonoverlapping(
                ptr::from_ref(raw).cast(),
                ptr::from_mut(&mut storage).cast::<u8>(),
                len_bytes,
            )
        };
        Address { storage, len_bytes: len_bytes as libc::socklen_t }
    }

    /// An internet address, version 4 or 6.
    pub fn internet(address: &SocketAddr) -> Address {
        match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                Address::from_raw(&raw, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                Address::from_raw(&raw, size_of::<libc::sockaddr_in6>())
            }
        }
    }

    /// A unix socket by its path.
    ///
    /// # Errors
    /// Returns ENAMETOOLONG when the path does not fit (108 bytes with its final zero), EINVAL when it contains a zero byte.
    pub fn unix(path: &Path) -> io::Result<Address> {
        let bytes = path.as_os_str().as_bytes();
        // SAFETY: sockaddr_un is plain numbers, for which all zeroes is a value.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if bytes.len() >= raw.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        if bytes.contains(&0) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        for (place, &byte) in raw.sun_path.iter_mut().zip(bytes) {
            *place = byte as libc::c_char;
        }
        Ok(Address::from_raw(&raw, size_of::<libc::sockaddr_un>()))
    }

    pub(super) fn family(&self) -> c_int {
        c_int::from(self.storage.ss_family)
    }

    pub(super) fn raw(&self) -> *const libc::sockaddr {
        ptr::from_ref(&self.storage).cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::errno;

    #[test]
    fn unix_paths_that_the_kernel_cannot_take_are_errors() {
        let long = "x".repeat(108);
        assert_eq!(errno(&Address::unix(Path::new(&long)).err().unwrap()), libc::ENAMETOOLONG);
        assert_eq!(errno(&Address::unix(Path::new("/a\0b")).err().unwrap()), libc::EINVAL);
        assert!(Address::unix(Path::new(&long[1..])).is_ok());
    }
}
