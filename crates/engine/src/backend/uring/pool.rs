//! The provided buffers: memory that the kernel receives into, and that is lent to it again after it was read.

use std::io;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use pummel_logic::time::Nanos;

use super::ring::Ring;
use crate::sys::{self, Pages};

/// The number of the group of buffers; there is one.
pub const GROUP: u16 = 0;

/// Most buffers that are lent. The kernel runs out of them when more receives than that complete before any is read.
/// Those receives are then begun again.
const BUFFERS_MAX: u16 = 2048;

/// Buffers that are lent at first. They are used in turn, so that a small number stays in the CPU's cache. The number
/// is doubled whenever the kernel ran out of buffers.
pub const BUFFERS_FIRST: u16 = 64;

/// Most bytes of one receive.
const PAYLOAD_BYTES: usize = 16 * 1024;

/// Bytes of the kernel's four lengths, which stand before the control messages and the received bytes.
const HEADER_BYTES: usize = 16;

/// Room for one receive stamp (a control message of 16 bytes with its head).
pub const CONTROL_BYTES: usize = 32;

/// Room for the receive stamp of a socket that has transmit stamps (three stamps in one control message).
pub const CONTROL_MAX_BYTES: usize = 64;

/// Distance between two buffers: an odd number of cache lines, so that the beginnings of buffers, which are all that
/// small replies touch, do not meet in the same sets of the cache.
const STRIDE_BYTES: usize = HEADER_BYTES + CONTROL_MAX_BYTES + PAYLOAD_BYTES + 112;

/// Length of a buffer as the kernel knows it.
const BUFFER_BYTES: u32 = (HEADER_BYTES + CONTROL_MAX_BYTES + PAYLOAD_BYTES) as u32;

/// All buffers of a worker, and the ring in which the kernel finds those that it may use.
pub struct Pool {
    /// [`BUFFERS_MAX`] entries, in which the kernel reads.
    entries: Pages,
    /// [`BUFFERS_MAX`] buffers, of which the kernel writes to those that are lent.
    buffers: Pages,
    /// Number of buffers that were ever lent. Their numbers are those below this one.
    known: u16,
    /// Number of times that a buffer was lent, including those that the next [`Pool::lend`] makes known.
    tail: u16,
}

impl Pool {
    /// The pool of the calling thread's `ring`, with the first buffers lent.
    ///
    /// # Errors
    /// Returns the error of `mmap` (ENOMEM) or of registering the buffers (EINVAL before Linux 5.19).
    pub fn new(ring: &Ring) -> io::Result<Pool> {
        let mut pool = Pool {
            entries: Pages::new(size_of::<BufRingEntry>() * usize::from(BUFFERS_MAX))?,
            buffers: Pages::new(STRIDE_BYTES * usize::from(BUFFERS_MAX))?,
            known: 0,
            tail: 0,
        };
        let place = pool.entries().cast::<u8>() as u64;
        // SAFETY: the memory is as long as so many entries and begins at a page; the pool outlives the ring (see
        // the order of fields in `Uring`).
        unsafe { ring.raw().submitter().register_buf_ring_with_flags(place, BUFFERS_MAX, GROUP, 0) }?;
        pool.grow();
        pool.lend();
        Ok(pool)
    }

    /// Number of buffers, lent or not.
    #[cfg(test)]
    pub fn known(&self) -> u16 {
        self.known
    }

    fn entries(&self) -> *mut BufRingEntry {
        self.entries.begin().cast()
    }

    /// Doubles the number of buffers, within the bounds. [`Pool::lend`] makes them known to the kernel.
    pub fn grow(&mut self) {
        let known = (self.known * 2).clamp(BUFFERS_FIRST, BUFFERS_MAX);
        for number in self.known..known {
            self.give_back(number);
        }
        self.known = known;
    }

    /// Lends a buffer again that was read. [`Pool::lend`] makes it known to the kernel.
    #[inline]
    pub fn give_back(&mut self, number: u16) {
        let index = usize::from(self.tail % BUFFERS_MAX);
        // SAFETY: `index` is below the number of entries. The kernel reads an entry only between the head, which it
        // keeps itself, and the tail that was made known; there are never more buffers lent than entries, so that this
        // one lies outside.
        let entry = unsafe { &mut *self.entries().add(index) };
        entry.set_addr(self.place(number) as u64);
        entry.set_len(BUFFER_BYTES);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes the lent buffers known to the kernel.
    #[inline]
    pub fn lend(&mut self) {
        // SAFETY: `entries` is the first entry of the ring, in which the kernel keeps room for the tail.
        let tail = unsafe { BufRingEntry::tail(self.entries()) }.cast_mut();
        // SAFETY: the tail is an aligned number of 16 bits inside `entries`; the kernel only loads it.
        unsafe { AtomicU16::from_ptr(tail) }.store(self.tail, Ordering::Release);
    }

    /// The bytes that a plain receive put into a buffer.
    #[inline]
    pub fn plain(&mut self, number: u16, len_bytes: usize) -> &mut [u8] {
        self.part(number, 0, len_bytes.min(BUFFER_BYTES as usize))
    }

    /// The bytes that a receive with control messages put into a buffer, and the stamp of the wall clock among the
    /// messages, for which `room` bytes were asked. `len_bytes` is the length of the whole buffer's content, headers
    /// included.
    #[inline]
    pub fn stamped(&mut self, number: u16, len_bytes: usize, room: usize) -> (&mut [u8], Option<Nanos>) {
        let before = HEADER_BYTES + room;
        let header = self.part(number, 0, HEADER_BYTES);
        let control = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let stamp = sys::stamp_in(self.part(number, HEADER_BYTES, control.min(room)));
        let len_bytes = len_bytes.saturating_sub(before).min(PAYLOAD_BYTES + CONTROL_MAX_BYTES - room);
        (self.part(number, before, len_bytes), stamp)
    }

    fn place(&self, number: u16) -> *mut u8 {
        assert!(number < BUFFERS_MAX, "there is no buffer {number}");
        // SAFETY: the number was just checked, so that the place lies within the buffers.
        unsafe { self.buffers.begin().add(usize::from(number) * STRIDE_BYTES) }
    }

    /// A part of a buffer that the kernel has filled and that is not lent again yet.
    #[inline]
    fn part(&mut self, number: u16, begin: usize, len_bytes: usize) -> &mut [u8] {
        assert!(begin + len_bytes <= STRIDE_BYTES, "a part lies within its buffer");
        // SAFETY: the part lies within its buffer, which is ours until it is given back, and `self` is borrowed for as
        // long as the part; the memory was zeroed at first.
        unsafe { slice::from_raw_parts_mut(self.place(number).add(begin), len_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::testing::untested;

    #[test]
    fn buffers_begin_in_different_sets_of_the_cache_and_hold_aligned_control_messages() {
        assert_eq!(STRIDE_BYTES % 64, 0);
        assert_eq!(STRIDE_BYTES / 64 % 2, 1);
        assert_eq!(HEADER_BYTES % align_of::<libc::cmsghdr>(), 0);
        assert!(BUFFER_BYTES as usize <= STRIDE_BYTES);
    }

    #[test]
    fn twice_as_many_buffers_are_lent_until_there_are_no_more() {
        let Ok(ring) = Ring::new(16) else { return untested("no io_uring here") };
        let mut pool = Pool::new(&ring).unwrap();
        for expected in [64, 128, 256, 512, 1024, 2048, 2048] {
            assert_eq!(pool.known, expected);
            assert_eq!(pool.tail, expected);
            pool.grow();
        }
        drop(ring);
    }
}
