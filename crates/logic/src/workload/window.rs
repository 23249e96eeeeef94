//! The objects of memaslap's task windows: keys and values cut from one table of characters, and their lengths.
//!
//! A key is eight bytes that no other key has and a piece of the table, a value is a piece of the table. The first bytes
//! are a number of which each byte carries seven bits, with bit 4 set in all, so that none is a control character that
//! the text protocol knows; the number's low byte comes first.

use std::sync::Arc;

use crate::plan::{Lengths, Window};
use crate::rng::{Stream, below, mix};
use crate::time::Nanos;

/// Characters of the table, before its beginning is repeated so that every piece lies in one stretch.
pub const TABLE_BYTES: usize = 10 << 20;

/// The longest value in bytes.
pub const VALUE_MAX_BYTES: usize = 1 << 20;

/// Bytes at the beginning of a key that make it unique.
pub const PREFIX_BYTES: usize = 8;

/// Seconds after which objects expire that are set to expire.
pub const EXPIRY_S: u32 = 60;

/// Seconds by which an object may be found too late or missed too early: clocks of servers tick in seconds.
const TOLERANCE_S: u64 = 5;

/// The characters of the table.
const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-";

/// Bits that the numbers in front of keys have.
const PREFIX_BITS: u32 = 56;

/// Names of the draws among all draws from the seed.
const TABLE: u64 = 0x7461_626c;
const STARTS: u64 = 0x7374_6172;
const KEYS: u64 = 0x6b65_7973;
const VALUES: u64 = 0x7661_6c73;

/// Makes the keys and values of all clients' windows. Clones share its table.
#[derive(Clone, Debug)]
pub struct WindowMaker {
    table: Arc<[u8]>,
    slots: Arc<[WindowSlot]>,
    /// The number in front of the first key.
    first: u64,
    plan: Arc<Window>,
}

/// One place of every window, with the lengths that all objects at this place have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSlot {
    /// Beginning of the key's piece, before it moves on.
    pub key_at: u32,
    /// Length of an object's value in bytes.
    pub value_bytes: u32,
    /// Length of an object's key in bytes.
    pub key_bytes: u8,
    /// The objects at this place expire.
    pub expires: bool,
}

crate::counters! {
    /// Findings of checks, and counts for memaslap's report alone.
    #[serde(deny_unknown_fields)]
    pub struct WindowCounts {
        /// Bytes of keys and values of completed sets.
        pub object_bytes: u64,
        /// Values whose bytes were compared.
        pub verified: u64,
        /// Keys whose value was to be compared, and which were not there.
        pub verify_misses: u64,
        /// Values that were wrong.
        pub verify_failed: u64,
        /// Keys that were there although they had expired.
        pub expired_get: u64,
        /// Keys that were not there although they had not expired.
        pub unexpired_unget: u64,
        /// Keys that were gone 55 s or more after they were stored to expire after 60 s (`-e`): misses that
        /// were asked for.
        #[serde(default)]
        pub expired_misses: u64,
        /// Bytes sent and received for gets.
        pub get_bytes: u64,
        /// Bytes sent and received for sets.
        pub set_bytes: u64,
    }
}

/// Finding of a check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The flaw of the answer.
    pub flaw: Flaw,
    /// The number in front of the key.
    pub prefix: u64,
    /// The rest of the key.
    pub suffix: Vec<u8>,
    /// The value that was expected; empty where none was.
    pub expected: Vec<u8>,
    /// The value that came, if one did.
    pub received: Option<Vec<u8>>,
    /// When the object was set last, on the monotonic clock.
    pub set_at: Nanos,
    /// When the answer was read.
    pub read_at: Nanos,
}

/// A flaw of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The value was another one.
    Differs,
    /// The key was not there.
    Missing,
    /// The key was there although it had expired.
    Expired,
    /// The key was not there although it had not expired.
    Vanished,
}

impl WindowMaker {
    /// The windows of this part of a Plan; draws the table and the lengths.
    pub fn new(window: &Window) -> WindowMaker {
        let objects = window.objects as usize;
        let (key_lengths, value_lengths) = (
            lengths(&window.keys, objects, window.seed, KEYS),
            lengths(&window.values, objects, window.seed, VALUES),
        );
        let starts = Stream::from_seed(mix(&[window.seed, STARTS]));
        let mut flagged = 0u64;
        let slot = |at: usize| {
            let expires = (flagged as f64) < window.expire * at as f64;
            flagged += u64::from(expires);
            WindowSlot {
                key_at: below(starts.draw(at as u64), TABLE_BYTES as u64) as u32,
                value_bytes: value_lengths[at],
                key_bytes: key_lengths[at] as u8,
                expires,
            }
        };
        WindowMaker {
            slots: (0..objects).map(slot).collect(),
            table: table(Stream::from_seed(mix(&[window.seed, TABLE]))),
            first: mix(&[window.seed, PREFIX_BITS.into()]),
            plan: Arc::new(window.clone()),
        }
    }

    /// The part of the Plan that the windows are made from.
    pub fn plan(&self) -> &Arc<Window> {
        &self.plan
    }

    /// The places of every window.
    pub fn slots(&self) -> &[WindowSlot] {
        &self.slots
    }

    /// The table that values are ranges of.
    pub fn table(&self) -> &[u8] {
        &self.table
    }

    /// The `len_bytes` bytes of the table from `at` on.
    #[inline]
    pub fn text(&self, at: u32, len_bytes: usize) -> &[u8] {
        &self.table[at as usize..][..len_bytes]
    }

    /// The number in front of key `number` of an object in `slot`, and the rest of the key, which begins at `key_at` in the table.
    #[inline]
    pub(crate) fn key_parts(&self, slot: u32, number: u64, key_at: u32) -> (u64, &[u8]) {
        let suffix_bytes = usize::from(self.slots[slot as usize].key_bytes) - PREFIX_BYTES;
        (self.prefix(number), self.text(key_at, suffix_bytes))
    }

    /// The first bytes of key number `number`.
    #[inline]
    pub fn prefix(&self, number: u64) -> u64 {
        spread(self.first.wrapping_add(number))
    }
}

/// The place in the table behind this one.
#[inline]
pub fn advance(at: u32) -> u32 {
    (at + 1) % TABLE_BYTES as u32
}

/// The place in the table before this one.
#[inline]
pub fn retreat(at: u32) -> u32 {
    at.checked_sub(1).unwrap_or(TABLE_BYTES as u32 - 1)
}

/// Returns the flaw, if it is one, of finding or not finding an object whose last set began at `set_at`.
pub fn judge_expiry(found: bool, set_at: Nanos, read_at: Nanos) -> Option<Flaw> {
    let age_s = read_at.saturating_sub(set_at) / crate::time::SECOND;
    let expiry_s = u64::from(EXPIRY_S);
    match found {
        true if age_s > expiry_s + TOLERANCE_S => Some(Flaw::Expired),
        false if age_s < expiry_s - TOLERANCE_S => Some(Flaw::Vanished),
        _ => None,
    }
}

/// A number whose 56 low bits are spread over eight bytes, seven each, with bit 4 of each set: halves are moved apart,
/// then the halves of those, all at once.
#[inline]
fn spread(number: u64) -> u64 {
    let fours = number & 0x0fff_ffff | (number & 0xff_ffff_f000_0000) << 4;
    let pairs = fours & 0x0000_3fff_0000_3fff | (fours & 0x0fff_c000_0fff_c000) << 2;
    let sevens = pairs & 0x007f_007f_007f_007f | (pairs & 0x3f80_3f80_3f80_3f80) << 1;
    sevens & 0x0f0f_0f0f_0f0f_0f0f | 0x1010_1010_1010_1010 | (sevens & 0x7070_7070_7070_7070) << 1
}

fn table(draws: Stream) -> Arc<[u8]> {
    let mut table = Vec::with_capacity(TABLE_BYTES + VALUE_MAX_BYTES);
    let mut draw = 0;
    while table.len() < TABLE_BYTES {
        let bits = draws.draw(draw);
        draw += 1;
        // Ten letters of six bits.
        table.extend((0..10).map(|at| LETTERS[(bits >> (6 * at)) as usize & 0x3f]));
    }
    table.truncate(TABLE_BYTES);
    table.extend_from_within(..VALUE_MAX_BYTES);
    table.into()
}

/// A length for each of `count` objects: every range gets its share, lengths in it are drawn evenly, and the order is
/// chance.
fn lengths(ranges: &[Lengths], count: usize, seed: u64, purpose: u64) -> Vec<u32> {
    let draws = Stream::from_seed(mix(&[seed, purpose]));
    let mut lengths = Vec::with_capacity(count);
    for (range, share) in ranges.iter().zip(apportion(ranges, count)) {
        let width = u64::from(range.end - range.start) + 1;
        for _ in 0..share {
            lengths.push(range.start + below(draws.draw(lengths.len() as u64), width) as u32);
        }
    }
    for last in (1..count).rev() {
        lengths.swap(last, below(draws.draw((count + last) as u64), last as u64 + 1) as usize);
    }
    lengths
}

/// Returns the number of `count` objects that each range gets: shares are taken to three decimals, and what is left
/// over after whole objects goes to those with the largest remainders.
fn apportion(ranges: &[Lengths], count: usize) -> Vec<usize> {
    let thousandths = |range: &Lengths| libm::round(range.share * 1000.0).max(0.0) as u128;
    let mut weights: Vec<u128> = ranges.iter().map(thousandths).collect();
    if weights.iter().all(|&weight| weight == 0) {
        weights.fill(1);
    }
    let sum: u128 = weights.iter().sum();
    let mut shares: Vec<usize> =
        weights.iter().map(|weight| (count as u128 * weight / sum) as usize).collect();
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(count as u128 * weights[at] % sum));
    let left = count - shares.iter().sum::<usize>();
    order.into_iter().take(left).for_each(|at| shares[at] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Pool;
    use crate::time::SECOND;

    fn range(start: u32, end: u32, share: f64) -> Lengths {
        Lengths { start, end, share }
    }

    fn window(keys: &[Lengths], values: &[Lengths]) -> Window {
        Window {
            seed: 7,
            objects: 10_240,
            keys: keys.to_vec(),
            values: values.to_vec(),
            set: 0.1,
            get: 0.9,
            multiget: 1,
            overwrite: 0.0,
            verify: 0.0,
            expire: 0.1,
            verbose: false,
            preset: false,
            pool: Pool { sockets: 1, block: 1, datagrams: false, replication: None },
        }
    }

    #[test]
    fn prefixes_count_over_bytes_that_the_text_protocol_allows() {
        let bytes = |number: u64| spread(number).to_le_bytes();
        assert_eq!(bytes(0), [0x10; 8]);
        assert_eq!(bytes(1), [0x11, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10]);
        assert_eq!(bytes(0xf)[0], 0x1f);
        assert_eq!(bytes(0x10)[0], 0x30, "bit 4 is always set, so that the next is two lines on");
        assert_eq!(bytes(0x7f)[0], 0xff);
        assert_eq!(bytes(0x80)[..2], [0x10, 0x11]);
        assert_eq!(bytes(u64::MAX), [0xff; 8]);
        assert!((0..100_000).all(|number| bytes(number * 77_777).iter().all(|byte| byte & 0x10 != 0)));
    }

    #[test]
    fn every_range_gets_its_share_of_the_window() {
        let ranges = [range(16, 100, 0.8), range(101, 200, 0.1), range(201, 250, 0.1)];
        assert_eq!(apportion(&ranges, 10_240), [8192, 1024, 1024]);
        assert_eq!(apportion(&ranges, 1024), [819, 103, 102]);
        assert_eq!(apportion(&[range(1, 1, 0.0004), range(2, 2, 0.9996)], 1024), [0, 1024]);
        assert_eq!(apportion(&[range(1, 1, 0.0), range(2, 2, 0.0)], 4), [2, 2]);
    }

    #[test]
    fn lengths_reach_both_ends_of_their_range_and_are_mixed() {
        let maker = WindowMaker::new(&window(&[range(16, 20, 0.5), range(30, 30, 0.5)], &[range(1, 3, 1.0)]));
        let count = |wanted: u8| maker.slots().iter().filter(|slot| slot.key_bytes == wanted).count();
        assert_eq!(count(30), 5120);
        assert!([16, 17, 18, 19, 20].into_iter().all(|length| (900..1150).contains(&count(length))));
        let values: Vec<u32> = maker.slots().iter().map(|slot| slot.value_bytes).collect();
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&1), Some(&3)));
        let first_half = maker.slots()[..5120].iter().filter(|slot| slot.key_bytes == 30).count();
        assert!((2300..2800).contains(&first_half), "{first_half}");
    }

    #[test]
    fn objects_that_expire_are_spread_evenly_and_the_first_never_does() {
        let maker = WindowMaker::new(&window(&[range(64, 64, 1.0)], &[range(9, 9, 1.0)]));
        let expiring: Vec<usize> =
            (0..maker.slots().len()).filter(|&at| maker.slots()[at].expires).take(4).collect();
        assert_eq!(expiring, [1, 11, 21, 31]);
    }

    #[test]
    fn the_table_goes_round_and_is_the_seeds_own() {
        let lengths = ([range(64, 64, 1.0)], [range(9, 9, 1.0)]);
        let maker = WindowMaker::new(&window(&lengths.0, &lengths.1));
        assert_eq!(maker.text(TABLE_BYTES as u32 - 1, 3)[1..], *maker.text(0, 2));
        assert!(maker.table().iter().all(|letter| LETTERS.contains(letter)));
        let other = WindowMaker::new(&Window { seed: 8, ..window(&lengths.0, &lengths.1) });
        assert_ne!(other.text(0, 64), maker.text(0, 64));
        assert_ne!(other.prefix(0), maker.prefix(0));
        assert_eq!((advance(TABLE_BYTES as u32 - 1), retreat(0)), (0, TABLE_BYTES as u32 - 1));
    }

    #[test]
    fn every_byte_in_front_of_a_key_has_seven_bits_of_its_number() {
        let draws = Stream::from_seed(1);
        let bits = (0..56).map(|bit| 1 << bit);
        for number in bits.chain([0, u64::MAX]).chain((0..1_000).map(|draw| draws.draw(draw))) {
            for (at, byte) in spread(number).to_le_bytes().into_iter().enumerate() {
                let seven = (number >> (7 * at)) as u8 & 0x7f;
                assert_eq!(byte, (seven & 0xf) | 0x10 | (seven & 0x70) << 1, "byte {at} of {number:x}");
            }
        }
    }

    #[test]
    fn expiry_is_judged_with_five_seconds_of_grace() {
        let judged = |found, age_s: u64| judge_expiry(found, 9 * SECOND, (9 + age_s) * SECOND);
        assert_eq!((judged(true, 65), judged(true, 66)), (None, Some(Flaw::Expired)));
        assert_eq!((judged(false, 54), judged(false, 55)), (Some(Flaw::Vanished), None));
    }
}
