//! Encrypted bytes on their way to the kernel, and which plain bytes they stand for.

use std::collections::VecDeque;
use std::io::IoSlice;

/// The encrypted bytes that the kernel has not taken.
///
/// Encrypting cannot be undone, and the kernel may take a part of the bytes. The backlog keeps the lengths of all
/// records on the way, so that a byte of the caller counts as taken only when the kernel took it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The bytes that earlier system calls left over.
    rest: Vec<u8>,
    /// The records in `rest`, and behind it.
    records: VecDeque<Record>,
}

/// The bytes of a record that the kernel has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    sealed: usize,
    /// Plain bytes of the caller in the record; 0 for a message of TLS itself.
    plain: usize,
}

impl Backlog {
    /// Number of plain bytes of the caller that are encrypted and were not taken.
    #[inline]
    pub(super) fn plain_bytes(&self) -> usize {
        self.records.iter().map(|record| record.plain).sum()
    }

    /// Number of encrypted bytes that are kept.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Adds a record of `sealed` bytes with `plain` bytes of the caller, which stands behind all others.
    #[inline]
    pub(super) fn add(&mut self, sealed: usize, plain: usize) {
        self.records.push_back(Record { sealed, plain });
    }

    /// The bytes to offer to the kernel: those that are kept, which may be none, then the new records in `sealed`.
    #[inline]
    pub(super) fn parts<'a>(&'a self, sealed: &'a [u8]) -> [IoSlice<'a>; 2] {
        [IoSlice::new(&self.rest), IoSlice::new(sealed)]
    }

    /// Removes the `taken` bytes of [`Backlog::parts`] that the kernel took, and keeps the others. Returns how many
    /// plain bytes of the caller were taken.
    #[inline]
    pub(super) fn take(&mut self, taken: usize, sealed: &[u8]) -> usize {
        match taken.checked_sub(self.rest.len()) {
            Some(of_sealed) if of_sealed == sealed.len() => self.rest = Vec::new(),
            Some(of_sealed) => {
                self.rest.clear();
                self.rest.extend_from_slice(&sealed[of_sealed..]);
            }
            None => {
                self.rest.drain(..taken);
                self.rest.extend_from_slice(sealed);
            }
        }
        self.strike(taken)
    }

    #[inline]
    fn strike(&mut self, mut taken: usize) -> usize {
        let mut plain = 0;
        while taken > 0
            && let Some(record) = self.records.front_mut()
        {
            let part = taken.min(record.sealed);
            taken -= part;
            record.sealed -= part;
            // What surrounds the plain bytes of a record counts as before them: none is called taken too early.
            let left = record.plain.min(record.sealed);
            plain += record.plain - left;
            record.plain = left;
            if record.sealed == 0 {
                self.records.pop_front();
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(backlog: &Backlog, sealed: &[u8]) -> Vec<u8> {
        backlog.parts(sealed).iter().flat_map(|part| part.iter().copied()).collect()
    }

    #[test]
    fn plain_bytes_are_taken_with_the_bytes_that_stand_for_them() {
        let mut backlog = Backlog::default();
        // Two records of 10 bytes with 22 bytes around each, and something of TLS's own between them.
        for (sealed, plain) in [(32, 10), (24, 0), (32, 10)] {
            backlog.add(sealed, plain);
        }
        let all: Vec<u8> = (0..88).collect();
        assert_eq!(backlog.take(0, &all), 0);
        assert_eq!((backlog.plain_bytes(), backlog.len()), (20, 88));
        assert_eq!(backlog.take(22, &[]), 0, "only what is before the plain bytes");
        assert_eq!(backlog.take(4, &[]), 4);
        assert_eq!(offered(&backlog, &[]), all[26..]);
        assert_eq!(backlog.take(30, &[]), 6, "the first record, and what TLS said itself");
        backlog.add(27, 5);
        assert_eq!(backlog.plain_bytes(), 15);
        assert_eq!(offered(&backlog, &[7; 27]), [&all[56..], &[7; 27]].concat());
        assert_eq!(backlog.take(31, &[7; 27]), 9);
        assert_eq!(backlog.take(28, &[]), 6);
        assert_eq!((backlog.plain_bytes(), backlog.len()), (0, 0));
    }

    #[test]
    fn every_cut_gives_the_same_bytes_in_the_same_order() {
        for cut in 0..=64 {
            let mut backlog = Backlog::default();
            backlog.add(32, 10);
            backlog.add(32, 10);
            let all: Vec<u8> = (0..64).collect();
            let first = backlog.take(cut, &all);
            assert!(first <= cut.saturating_sub(22), "{first} of {cut}");
            assert_eq!(offered(&backlog, &[]), all[cut..]);
            assert_eq!(first + backlog.take(64 - cut, &[]), 20);
        }
    }
}
