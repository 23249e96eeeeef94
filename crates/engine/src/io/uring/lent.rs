//! Zero-copy sends: which bytes may go by them, and whether the kernel spares the copy at all.

use std::io::IoSlice;
use std::mem;
use std::sync::Arc;

/// Parts below it are copied: sparing the copy costs a notice, and the pages have to be held.
const PART_MIN_BYTES: usize = 64 * 1024;

/// The memory that may be read after a send has returned, and who still reads it.
///
/// Only bytes of one block qualify, which is never changed and is kept here until the kernel has given back every part
/// of it. All other bytes that are sent belong to a connection's outbox, which writes over them as soon as they were
/// taken: they go by a send that copies.
#[derive(Default)]
pub struct Lent {
    block: Option<Arc<[u8]>>,
    /// How many sends the kernel has not given back.
    out: u64,
    /// The kernel said that it copies all the same, or that it knows no such sends.
    in_vain: bool,
}

impl Lent {
    /// From now on parts of `block` may go by zero-copy sends. There is one such block for a backend's life.
    pub fn set(&mut self, block: Arc<[u8]>) {
        assert!(self.block.is_none(), "there is one block for a backend's life");
        self.block = Some(block);
    }

    /// The first part that is worth it and lies in the block.
    pub fn find(&self, parts: &[IoSlice<'_>]) -> Option<usize> {
        let block = self.block.as_ref().filter(|_| !self.in_vain)?.as_ptr_range();
        parts.iter().position(|part| {
            let part_range = part.as_ptr_range();
            part.len() >= PART_MIN_BYTES && part_range.start >= block.start && part_range.end <= block.end
        })
    }

    /// Whether bytes so many could hold a part that is worth it.
    #[inline]
    pub fn is_worth(&self, len_bytes: usize) -> bool {
        len_bytes >= PART_MIN_BYTES && !self.in_vain && self.block.is_some()
    }

    /// The kernel has a part.
    pub fn give(&mut self) {
        self.out += 1;
    }

    /// The kernel gave a part back, and says whether it had `copied` it. Once is enough to give up: it always does so on
    /// loopback and with network cards that cannot gather.
    pub fn take_back(&mut self, copied: bool) {
        self.out -= 1;
        self.in_vain |= copied;
    }

    /// The kernel knows no such sends.
    pub fn give_up(&mut self) {
        self.in_vain = true;
    }

    /// Whether zero-copy sends were given up.
    #[cfg(test)]
    pub fn is_in_vain(&self) -> bool {
        self.in_vain
    }

    /// How many sends the kernel has not given back.
    #[cfg(test)]
    pub fn out(&self) -> u64 {
        self.out
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // What the kernel still sends must not be freed and filled with something else.
        if self.out > 0 {
            mem::forget(self.block.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_parts_of_the_block_are_lent() {
        let block: Arc<[u8]> = vec![7; 3 * PART_MIN_BYTES].into();
        let (other, mut lent) = (vec![7; 2 * PART_MIN_BYTES], Lent::default());
        let of_block = |from: usize, len: usize| IoSlice::new(&block[from..from + len]);
        assert_eq!(lent.find(&[of_block(0, PART_MIN_BYTES)]), None, "nothing was lent");
        lent.set(Arc::clone(&block));
        let head = IoSlice::new(b"set key 0 0 65536\r\n");
        assert_eq!(lent.find(&[of_block(9, PART_MIN_BYTES)]), Some(0));
        assert_eq!(lent.find(&[head, of_block(2 * PART_MIN_BYTES, PART_MIN_BYTES)]), Some(1));
        assert_eq!(lent.find(&[head, of_block(0, PART_MIN_BYTES - 1)]), None, "too small");
        assert_eq!(lent.find(&[head, IoSlice::new(&other)]), None, "somebody else's");
        lent.give();
        lent.give();
        lent.take_back(false);
        assert_eq!(lent.find(&[of_block(0, PART_MIN_BYTES)]), Some(0));
        lent.take_back(true);
        assert_eq!(lent.find(&[of_block(0, PART_MIN_BYTES)]), None, "it was copied");
        assert!(!lent.is_worth(PART_MIN_BYTES));
    }

    #[test]
    fn a_block_that_the_kernel_still_reads_is_never_freed() {
        let block: Arc<[u8]> = vec![1; 8].into();
        for (out, holders) in [(0, 1), (1, 2)] {
            let mut lent = Lent::default();
            lent.set(Arc::clone(&block));
            (0..out).for_each(|_| lent.give());
            drop(lent);
            assert_eq!(Arc::strong_count(&block), holders);
        }
    }
}
