//! Bytes that wait to be sent on one connection: its own bytes, and long parts of values that are elsewhere or not made yet.

use std::collections::VecDeque;
use std::io::IoSlice;

use crate::bodies::{Bodies, GROUP_BYTES, Group};

/// Parts of values up to this length are copied; longer ones are only pointed at.
const COPY_MAX: usize = 2048;

/// Most bytes of a body that are made for one call.
const ROOM_BYTES: usize = 256 * 1024;

/// Fewer taken bytes than this are not worth moving the rest to the front.
const COMPACT_MIN_BYTES: usize = 16 * 1024;

/// The sources of long parts of values.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// A text whose ranges are sent as they are.
    pub text: &'a [u8],
    /// Bytes that are made when they are sent.
    pub bodies: &'a Bodies,
}

/// Room for the bytes of bodies that are sent by one call, at most 256 KiB and only as much as was needed.
#[derive(Debug, Default)]
pub struct Room(Vec<Group>);

impl Room {
    /// Makes `len_bytes` bytes of the body with this seed, from `at` on.
    fn make(&mut self, bodies: &Bodies, (seed, at): (u64, usize), len_bytes: usize) -> &[u8] {
        let begin = at % GROUP_BYTES;
        let count = (begin + len_bytes).div_ceil(GROUP_BYTES);
        if self.0.len() < count {
            self.0.resize(count, [0; GROUP_BYTES]);
        }
        bodies.fill(seed, (at / GROUP_BYTES) as u64, &mut self.0[..count]);
        &self.0.as_flattened()[begin..begin + len_bytes]
    }
}

/// The bytes of a part of a value that is longer than what is copied.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A range of the shared text.
    Text,
    /// The body with this seed.
    Body(u64),
}

/// A part of a value that is sent before the own byte at `before`: what is left of it begins at `at` in its source.
#[derive(Clone, Copy, Debug)]
struct Hole {
    before: usize,
    source: Source,
    at: usize,
    len: usize,
}

/// The bytes to send next: own bytes up to `head_end`, some of a hole, own bytes up to `tail_end`.
#[derive(Clone, Copy, Debug)]
struct Offer {
    head_end: usize,
    hole: Option<Hole>,
    tail_end: usize,
}

/// Bytes that wait to be sent. An outbox is three words and one block of memory, and a second block after a large value
/// was sent.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// Number of bytes at the front of `bytes` that were taken.
    taken: usize,
    /// Boxed, so that the many connections that never send a large value stay small.
    holes: Option<Box<Holes>>,
}

/// Long parts of values among the own bytes, in their order.
#[derive(Debug, Default)]
struct Holes {
    list: VecDeque<Hole>,
    /// The sum of the ranges' lengths, in bytes.
    len: usize,
}

impl Outbox {
    /// An empty outbox with room for `capacity` bytes of its own.
    pub fn with_capacity(capacity: usize) -> Outbox {
        Outbox { bytes: Vec::with_capacity(capacity), taken: 0, holes: None }
    }

    /// Whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.bytes.len() && self.holes.as_ref().is_none_or(|holes| holes.list.is_empty())
    }

    /// The number of bytes that wait to be sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken + self.holes.as_ref().map_or(0, |holes| holes.len)
    }

    /// Adds bytes at the end.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        // Most keys have 16 to 32 bytes. Two copies of 16 bytes, which may overlap, take less than a call of the C library.
        match (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
            (Some(head), Some(tail)) if bytes.len() <= 32 => {
                let tail_at = self.bytes.len() + bytes.len() - tail.len();
                self.bytes.reserve(32);
                self.bytes.extend_from_slice(head);
                self.bytes.truncate(tail_at);
                self.bytes.extend_from_slice(tail);
            }
            _ => self.bytes.extend_from_slice(bytes),
        }
    }

    /// Adds a decimal number.
    #[inline]
    pub fn push_decimal(&mut self, mut number: u64) {
        // Most flags, expiries and counters have one digit, most lengths of keys two.
        if number < 10 {
            return self.bytes.push(b'0' + number as u8);
        }
        if number < 100 {
            return self.bytes.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
        }
        let mut digits = [0u8; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.bytes.extend_from_slice(&digits[start..]);
    }

    /// Adds the range of the shared text that begins at `at` and reads `bytes`.
    #[inline]
    pub fn push_text(&mut self, bytes: &[u8], at: usize) {
        if bytes.len() <= COPY_MAX {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.push_hole(Source::Text, at, bytes.len());
        }
    }

    /// Adds the first `len_bytes` bytes of the body with this seed.
    #[inline]
    pub fn push_body(&mut self, bodies: &Bodies, seed: u64, len_bytes: usize) {
        if len_bytes <= COPY_MAX {
            bodies.append(seed, len_bytes, &mut self.bytes);
        } else {
            self.push_hole(Source::Body(seed), 0, len_bytes);
        }
    }

    fn push_hole(&mut self, source: Source, at: usize, len: usize) {
        let hole = Hole { before: self.bytes.len(), source, at, len };
        let holes = self.holes.get_or_insert_default();
        holes.list.push_back(hole);
        holes.len += hole.len;
    }

    #[inline]
    fn offer(&self) -> Offer {
        let all = self.bytes.len();
        let list = self.holes.as_ref().map(|holes| &holes.list);
        let Some(&hole) = list.and_then(VecDeque::front) else {
            return Offer { head_end: all, hole: None, tail_end: all };
        };
        let len = match hole.source {
            Source::Text => hole.len,
            Source::Body(_) => hole.len.min(ROOM_BYTES - hole.at % GROUP_BYTES),
        };
        let tail_end = match list.and_then(|list| list.get(1)) {
            _ if len < hole.len => hole.before,
            Some(next) => next.before,
            None => all,
        };
        Offer { head_end: hole.before, hole: Some(Hole { len, ..hole }), tail_end }
    }

    /// The number of bytes that [`Outbox::parts`] fills in.
    pub fn offered_bytes(&self) -> usize {
        let Offer { hole, tail_end, .. } = self.offer();
        tail_end - self.taken + hole.map_or(0, |hole| hole.len)
    }

    /// Fills in the bytes to send next, as up to three parts: own bytes, a part of a value from `sources`, own bytes again.
    /// Returns how many parts were filled in; 0 when there is nothing to send.
    #[inline]
    pub fn parts<'a>(
        &'a self,
        sources: Sources<'a>,
        room: &'a mut Room,
        parts: &mut [IoSlice<'a>; 3],
    ) -> usize {
        let Offer { head_end, hole, tail_end } = self.offer();
        let middle = match hole {
            None => &[],
            Some(Hole { source: Source::Text, at, len, .. }) => &sources.text[at..at + len],
            Some(Hole { source: Source::Body(seed), at, len, .. }) => {
                room.make(sources.bodies, (seed, at), len)
            }
        };
        let mut count = 0;
        for part in [&self.bytes[self.taken..head_end], middle, &self.bytes[head_end..tail_end]] {
            if !part.is_empty() {
                parts[count] = IoSlice::new(part);
                count += 1;
            }
        }
        count
    }

    /// The own bytes that wait, without long parts of values.
    #[inline]
    pub fn own(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// The bytes to send next, if all of them are own bytes; `None` if a long part of a value is among them, or nothing
    /// waits.
    #[inline]
    pub fn plain(&self) -> Option<&[u8]> {
        let has_holes = self.holes.as_ref().is_some_and(|holes| !holes.list.is_empty());
        self.bytes.get(self.taken..).filter(|rest| !has_holes && !rest.is_empty())
    }

    /// Takes `count` bytes off the front, as they were sent.
    ///
    /// # Panics
    /// When more is taken than [`Outbox::parts`] offered.
    #[inline]
    pub fn take(&mut self, count: usize) {
        if self.holes.is_some() {
            let behind = self.take_holes(count);
            self.take_own(behind);
            return self.compact();
        }
        self.take_own(count);
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        } else {
            self.compact();
        }
    }

    /// Takes all bytes off, as they were sent, and returns how many there were. All of them must be own bytes, as
    /// [`Outbox::plain`] says.
    #[inline]
    pub fn take_own_bytes(&mut self) -> usize {
        let count = self.bytes.len() - self.taken;
        self.bytes.clear();
        self.taken = 0;
        count
    }

    #[inline]
    fn take_own(&mut self, count: usize) {
        self.taken += count;
        assert!(self.taken <= self.bytes.len(), "more was taken than was there");
    }

    /// Takes up to `count` bytes off the front, as far as there are long parts of values. Returns how many own
    /// bytes behind the last of them are left to take.
    fn take_holes(&mut self, mut count: usize) -> usize {
        let Some(holes) = &mut self.holes else { return count };
        while let Some(hole) = holes.list.front_mut() {
            let own = count.min(hole.before - self.taken);
            self.taken += own;
            count -= own;
            let shared = count.min(hole.len);
            hole.at += shared;
            hole.len -= shared;
            holes.len -= shared;
            count -= shared;
            if hole.len > 0 {
                return 0;
            }
            holes.list.pop_front();
        }
        count
    }

    /// Moves what waits to the front where that costs less than what was taken since: each byte that is taken pays for
    /// moving at most one, and the memory is that of what waits.
    #[inline(never)]
    fn compact(&mut self) {
        let waiting = self.bytes.len() - self.taken;
        if waiting > 0 && (self.taken < COMPACT_MIN_BYTES || self.taken < waiting) {
            return;
        }
        self.bytes.copy_within(self.taken.., 0);
        self.bytes.truncate(self.bytes.len() - self.taken);
        if let Some(holes) = &mut self.holes {
            holes.list.iter_mut().for_each(|hole| hole.before -= self.taken);
        }
        self.taken = 0;
    }

    /// Forgets what was added since there were `len_bytes` bytes, all of them own bytes or copied.
    ///
    /// # Panics
    /// When a long part of a value waits.
    pub fn cut_back(&mut self, len_bytes: usize) {
        assert!(self.holes.as_ref().is_none_or(|holes| holes.list.is_empty()), "only own bytes are cut back");
        self.bytes.truncate(self.taken + len_bytes);
    }

    /// An empty outbox, made of the memory of this one.
    pub fn emptied(mut self) -> Outbox {
        self.bytes.clear();
        Outbox { bytes: self.bytes, ..Outbox::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that are offered next, with a text and the bodies of seed 0.
    fn offered(outbox: &Outbox, text: &[u8]) -> Vec<u8> {
        let (bodies, mut room) = (Bodies::new(0, 1.0), Room::default());
        let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
        let count = outbox.parts(Sources { text, bodies: &bodies }, &mut room, &mut parts);
        let offered: Vec<u8> = parts[..count].iter().flat_map(|part| part.to_vec()).collect();
        assert_eq!(outbox.offered_bytes(), offered.len());
        offered
    }

    fn drained(outbox: &mut Outbox, text: &[u8], step: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        loop {
            let offered = offered(outbox, text);
            if offered.is_empty() {
                return sent;
            }
            let taken = step.min(offered.len());
            sent.extend_from_slice(&offered[..taken]);
            outbox.take(taken);
        }
    }

    #[test]
    fn what_goes_in_comes_out_for_every_size_of_sends() {
        let block: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        for step in [1, 2, 3, 7, 100, 2049, 5000, 100_000] {
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for (at, len) in [(5, 3000), (0, 10), (17, 4000), (100, 2049)] {
                outbox.push(b"head ");
                outbox.push_decimal(len as u64);
                outbox.push_text(&block[at..at + len], at);
                outbox.push(b"\r\n");
                expected.extend_from_slice(b"head ");
                expected.extend_from_slice(len.to_string().as_bytes());
                expected.extend_from_slice(&block[at..at + len]);
                expected.extend_from_slice(b"\r\n");
            }
            assert_eq!(outbox.len(), expected.len());
            assert_eq!(drained(&mut outbox, &block, step), expected, "sends of {step} bytes");
            assert!(outbox.is_empty());
        }
    }

    #[test]
    fn bodies_come_out_as_they_are_made_for_every_size_of_sends() {
        let bodies = Bodies::new(0, 1.0);
        for step in [1_000, 2_049, 70_000, 1 << 20] {
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for (seed, len) in [(1, 3_000), (2, 10), (3, 0), (4, 2_048), (5, 2_049), (6, 600_001), (7, 2_113)]
            {
                outbox.push(b"head ");
                outbox.push_body(&bodies, seed, len);
                outbox.push(b"\r\n");
                expected.extend_from_slice(b"head ");
                bodies.append(seed, len, &mut expected);
                expected.extend_from_slice(b"\r\n");
            }
            assert_eq!(outbox.len(), expected.len());
            assert!(drained(&mut outbox, &[], step) == expected, "sends of {step} bytes");
            assert!(outbox.is_empty());
        }
    }

    #[test]
    fn a_call_is_offered_no_more_of_a_body_than_there_is_room_for() {
        let mut outbox = Outbox::default();
        outbox.push_body(&Bodies::new(0, 1.0), 9, 1 << 30);
        outbox.take(100);
        assert_eq!(offered(&outbox, &[]).len(), ROOM_BYTES - 36);
    }

    #[test]
    fn decimals_are_written_without_leading_zeros() {
        let mut outbox = Outbox::default();
        outbox.push_decimal(0);
        outbox.push(b" ");
        outbox.push_decimal(u64::MAX);
        assert_eq!(drained(&mut outbox, &[], 100), b"0 18446744073709551615");
        for number in 0..1_100 {
            outbox.push_decimal(number);
            assert_eq!(drained(&mut outbox, &[], 100), number.to_string().as_bytes());
        }
    }

    #[test]
    fn bytes_of_every_length_are_added_whole() {
        let bytes: Vec<u8> = (0..70).collect();
        let mut outbox = Outbox::default();
        for len in 0..bytes.len() {
            outbox.push(b"head");
            outbox.push(&bytes[..len]);
            outbox.push(b"tail");
            let expected = [b"head", &bytes[..len], b"tail"].concat();
            assert_eq!(drained(&mut outbox, &[], 100), expected, "{len} bytes");
        }
    }

    #[test]
    fn an_outbox_that_is_never_empty_keeps_the_memory_of_what_waits() {
        let block = vec![7; 10_000];
        for shared_len in [100, 3_000] {
            let mut outbox = Outbox::default();
            let mut most = 0;
            for _ in 0..20_000 {
                outbox.push(b"set key 0 0 ");
                outbox.push_text(&block[..shared_len], 0);
                outbox.push(b"\r\n");
                most = most.max(outbox.len());
                if outbox.len() > 30_000 {
                    outbox.take(shared_len + 14);
                }
            }
            assert!(!outbox.is_empty() && most < 40_000);
            let bound = 4 * (most + COMPACT_MIN_BYTES);
            assert!(outbox.bytes.capacity() < bound, "{} bytes are held", outbox.bytes.capacity());
        }
    }

    #[test]
    fn what_goes_in_comes_out_while_more_goes_in_and_taken_bytes_are_reclaimed() {
        let block: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        for (step, range) in [(1_000, 40), (3_001, 3_000), (2_999, 2_049), (20_000, 9_000)] {
            let mut outbox = Outbox::default();
            let (mut sent, mut expected) = (Vec::new(), Vec::new());
            for number in 0..2_000 {
                let at = number % 900;
                outbox.push_decimal(number as u64);
                outbox.push_text(&block[at..at + range], at);
                expected.extend_from_slice(number.to_string().as_bytes());
                expected.extend_from_slice(&block[at..at + range]);
                if number % 20 == 19 {
                    let mut left = outbox.len() * 3 / 4;
                    while left > 0 {
                        let offered = offered(&outbox, &block);
                        let taken = step.min(left).min(offered.len());
                        sent.extend_from_slice(&offered[..taken]);
                        outbox.take(taken);
                        left -= taken;
                    }
                }
                assert_eq!(outbox.len(), expected.len() - sent.len());
            }
            sent.extend(drained(&mut outbox, &block, step));
            assert!(sent == expected, "ranges of {range} bytes by sends of {step}");
        }
    }

    #[test]
    #[should_panic(expected = "more was taken")]
    fn taking_more_than_there_is_is_a_bug() {
        Outbox::default().take(1);
    }
}
