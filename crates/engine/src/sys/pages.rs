//! Memory on pages of its own.

use std::io;
use std::ptr::{self, NonNull};

/// Zeroed memory on pages of its own, which take no physical memory until they are touched.
pub struct Pages {
    begin: NonNull<u8>,
    len_bytes: usize,
}

impl Pages {
    /// Memory of at least `len_bytes` bytes, which is above 0.
    ///
    /// # Errors
    /// Returns the error of `mmap`: ENOMEM when there is too little memory, EINVAL for 0 bytes.
    pub fn new(len_bytes: usize) -> io::Result<Pages> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new pages at a place of the kernel's choice replace nothing.
        let begin = unsafe { libc::mmap(ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).expect("no page is at the address zero");
        Ok(Pages { begin, len_bytes })
    }

    /// The first byte.
    pub fn begin(&self) -> *mut u8 {
        self.begin.as_ptr()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this object owns the pages, and every pointer to them came from it.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.len_bytes) };
    }
}
