//! Contents of a file as memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::slice;

/// The contents of a file that only this process can reach, which the kernel reads where they are needed and may forget again.
pub struct Mapping {
    begin: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the memory is only read, and nothing else can change the file.
unsafe impl Send for Mapping {}

// SAFETY: the memory is only read, and nothing else can change the file.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The contents of a file that has no name, so that no other process changes or shortens it. It must not be empty.
    ///
    /// # Errors
    /// Returns the error of `fstat` or `mmap`: ENOMEM when there are no addresses left, EINVAL for an empty file.
    pub fn of_unnamed(file: File) -> io::Result<Mapping> {
        let len_bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: new pages at a place of the kernel's choice replace nothing.
        let begin = unsafe {
            libc::mmap(ptr::null_mut(), len_bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).expect("no page is at the address zero");
        Ok(Mapping { begin, len_bytes })
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the pages are mapped for as long as this object lives. Nothing writes to them, since the file was consumed and has no
        // name.
        unsafe { slice::from_raw_parts(self.begin.as_ptr(), self.len_bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this object owns the pages, and every slice of them borrows it.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.len_bytes) };
    }
}
