//! Keys: the prefix and a zero-padded index, with a length that belongs to the index.

use std::error::Error;
use std::fmt;

use crate::plan::{Data, KeyStyle};
use crate::rng::mix;
use crate::workload::stable_size::StableSize;

/// Longest key that memcached's protocol document allows, in bytes.
pub const KEY_MAX_BYTES: usize = 250;

/// Room for any key.
pub type KeyBuffer = [u8; KEY_MAX_BYTES];

/// Decimal digits that are written at once; the largest index of a record, 5 * 2^40 - 1, has 13, and that of a key that is no
/// record has 16.
pub const DIGITS: usize = 16;

/// First number of the keys that records get at the end of a life.
pub(crate) const RENEWED_FROM: u64 = 6_000_000_000_000_000;

/// Up to this length keys are copied in one piece of constant length.
const SHORT_BYTES: usize = 64;

/// Names the draws of key sizes among all draws from the data seed.
const KEY_SIZES: u64 = 0x6b65_7973;

/// The purpose of a record; each kind has its own range of indexes, so that every operation finds a value that it can
/// work on and every reply can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Read, stored, removed and touched.
    Plain,
    /// Appended and prepended to: whole frames in any order.
    Pieces,
    /// Counted up and down: digits, then spaces.
    Counters,
    /// Records that are hashes with one field (RESP).
    Hashes,
    /// Records that the commands of a template work on (RESP).
    Commands,
}

impl Space {
    /// Every space, in the order of their indexes. `ALL[s as usize] == s`.
    pub const ALL: [Space; 5] =
        [Space::Plain, Space::Pieces, Space::Counters, Space::Hashes, Space::Commands];

    /// Number of spaces.
    pub const COUNT: usize = Space::ALL.len();
}

/// The ranges of indexes of all spaces, each as long as there are records: plain records begin at 0, and the other spaces
/// follow in the order of [`Space::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaces {
    records: u64,
}

impl Spaces {
    /// The spaces for so many records.
    ///
    /// # Panics
    /// Panics when `records` is not 1 to 2^40, the bounds that the Plan states.
    pub fn new(records: u64) -> Spaces {
        assert!((1..=1 << 40).contains(&records), "a plan has 1 to 2^40 records");
        Spaces { records }
    }

    /// Number of records in each space.
    pub fn records(self) -> u64 {
        self.records
    }

    /// The index of a space's record.
    #[inline]
    pub fn index(self, space: Space, record: u64) -> u64 {
        debug_assert!(record < self.records);
        space as u64 * self.records + record
    }

    /// The space that an index lies in.
    #[inline]
    pub fn space(self, index: u64) -> Space {
        // Nearly all are plain, and a comparison costs less than a division.
        if index < self.records { Space::Plain } else { self.space_behind(index) }
    }

    /// The space that an index behind the plain records lies in. Keys that are no records stand for plain ones.
    fn space_behind(self, index: u64) -> Space {
        Space::ALL.get((index / self.records) as usize).copied().unwrap_or(Space::Plain)
    }

    /// The number in its space of the record with this index.
    #[inline]
    pub fn record(self, index: u64) -> u64 {
        index % self.records
    }

    /// The first number that is no index.
    pub fn end(self) -> u64 {
        Space::COUNT as u64 * self.records
    }
}

/// The error of a prefix that leaves no room for the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixTooLong {
    /// Length of the prefix in bytes.
    pub len_bytes: usize,
    /// Longest prefix that so many records leave room for, in bytes.
    pub max_bytes: usize,
}

impl fmt::Display for PrefixTooLong {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "the key prefix has {} bytes, and at most {} leave room for the record's number",
            self.len_bytes, self.max_bytes
        )
    }
}

impl Error for PrefixTooLong {}

/// Makes keys from indexes. Small, and of the same size for any number of records.
///
/// A key is the prefix and then the index in decimal, padded with zeros to the key's length. Two keys that read alike
/// have the same digits and so the same index: keys are unique, also where their lengths vary, because the length is
/// itself decided by the index. Lengths are cut to what the largest index of all spaces needs and to
/// [`KEY_MAX_BYTES`]; they do not depend on the operations of the run, so that processes with the same records and data
/// seed use the same keys.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    /// The prefix, then zeros: what a key looks like before its digits are written.
    template: Box<KeyBuffer>,
    prefix_len: usize,
    len: StableSize,
    spaces: Spaces,
}

impl KeyMaker {
    /// The keys of this data.
    ///
    /// # Errors
    /// Returns [`PrefixTooLong`] when the prefix leaves no room for the largest index.
    pub fn new(data: &Data) -> Result<KeyMaker, PrefixTooLong> {
        let spaces = Spaces::new(data.records);
        let digits = digits_of(data);
        let prefix = data.key_prefix.as_bytes();
        let max_bytes = KEY_MAX_BYTES - digits;
        if prefix.len() > max_bytes {
            return Err(PrefixTooLong { len_bytes: prefix.len(), max_bytes });
        }
        let mut template = Box::new([b'0'; KEY_MAX_BYTES]);
        template[..prefix.len()].copy_from_slice(prefix);
        let len_min = (prefix.len() + digits) as u64;
        let len = match data.style.keys {
            KeyStyle::Drawn => {
                StableSize::new(&data.key_size, mix(&[data.seed, KEY_SIZES]), len_min, KEY_MAX_BYTES as u64)
            }
            KeyStyle::Fnv => {
                let dist = data.key_size.clone();
                let before = prefix.len() as u64;
                StableSize::hashed(dist, before, len_min, KEY_MAX_BYTES as u64)
            }
        };
        Ok(KeyMaker { template, prefix_len: prefix.len(), len, spaces })
    }

    /// The ranges of indexes.
    pub fn spaces(&self) -> Spaces {
        self.spaces
    }

    /// The prefix that every key begins with.
    pub fn prefix(&self) -> &[u8] {
        &self.template[..self.prefix_len]
    }

    /// Length of a key in bytes.
    #[inline]
    pub fn len_of(&self, index: u64) -> usize {
        self.len.of(index) as usize
    }

    /// Writes a key at the beginning of `out` and returns it.
    #[inline(always)]
    pub fn key<'b>(&self, index: u64, out: &'b mut KeyBuffer) -> &'b [u8] {
        let len = self.len_of(index);
        // A copy of constant length is a few instructions, any other a call; and nearly all keys are short.
        if len <= SHORT_BYTES {
            out[..SHORT_BYTES].copy_from_slice(&self.template[..SHORT_BYTES]);
        } else {
            out.copy_from_slice(&self.template[..]);
        }
        let digits = decimal(index);
        let room = len - self.prefix_len;
        if room >= DIGITS {
            out[len - DIGITS..len].copy_from_slice(&digits);
        } else if index < self.spaces.end() {
            out[len - room..len].copy_from_slice(&digits[DIGITS - room..]);
        } else {
            return self.long_key(&digits, out);
        }
        &out[..len]
    }

    /// Writes the key of an index behind all spaces where keys are shorter than its digits: the key is as long as it needs.
    fn long_key<'b>(&self, digits: &[u8; DIGITS], out: &'b mut KeyBuffer) -> &'b [u8] {
        let key = &mut out[..self.prefix_len + DIGITS];
        key[..self.prefix_len].copy_from_slice(self.prefix());
        key[self.prefix_len..].copy_from_slice(digits);
        key
    }

    /// The index of a key; `None` for everything that [`KeyMaker::key`] never writes.
    pub fn index_of(&self, key: &[u8]) -> Option<u64> {
        let (prefix, digits) = key.split_at_checked(self.prefix_len)?;
        if prefix != &self.template[..self.prefix_len] {
            return None;
        }
        let mut index = 0u64;
        for &digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            index = index * 10 + u64::from(digit - b'0');
            if index >= self.spaces.end() {
                return None;
            }
        }
        (key.len() == self.len_of(index)).then_some(index)
    }
}

/// Digits that every key of this data has room for: those of the largest index of all spaces; where keys are mutilate's,
/// which has plain records only, those of the number of records.
pub fn digits_of(data: &Data) -> usize {
    let largest = match data.style.keys {
        KeyStyle::Drawn => Spaces::new(data.records).end() - 1,
        KeyStyle::Fnv => data.records,
    };
    largest.ilog10() as usize + 1
}

/// A number below 10^16 in decimal, with leading zeros.
#[inline]
fn decimal(number: u64) -> [u8; DIGITS] {
    const HALF: u64 = 100_000_000;
    debug_assert!(number < HALF * HALF);
    let mut digits = [0; DIGITS];
    if number < HALF {
        digits[..8].copy_from_slice(b"00000000");
        digits[8..].copy_from_slice(&eight_digits(number));
    } else {
        digits[..8].copy_from_slice(&eight_digits(number / HALF));
        digits[8..].copy_from_slice(&eight_digits(number % HALF));
    }
    digits
}

/// A number below 10^8 in decimal, all digits at once: the word is split into halves of four digits, those into pairs,
/// and the pairs into digits, each time all parts together, with multiplications in place of divisions. The quotients
/// are exact for the parts' ranges (10486 / 2^20 for 1/100 below 10^4, 103 / 2^10 for 1/10 below 100).
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((pairs - 10 * tens) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::{any, proptest};
    use proptest::prop_assert_eq;

    use super::*;
    use crate::dist::Dist;
    use crate::plan::Style;
    use crate::workload::stable_size::fnv;

    fn data(records: u64, prefix: &str, key_size: Dist) -> Data {
        Data {
            records,
            seed: 0,
            key_prefix: prefix.to_string(),
            key_size,
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            style: Style::default(),
        }
    }

    fn maker(records: u64, prefix: &str, key_size: Dist) -> KeyMaker {
        KeyMaker::new(&data(records, prefix, key_size)).unwrap()
    }

    fn text(keys: &KeyMaker, index: u64) -> String {
        String::from_utf8(keys.key(index, &mut [0; KEY_MAX_BYTES]).to_vec()).unwrap()
    }

    #[test]
    fn a_key_is_the_prefix_and_the_padded_index() {
        let keys = maker(10_000, "user:", Dist::Fixed(30.0));
        assert_eq!(text(&keys, 0), "user:0000000000000000000000000");
        assert_eq!(text(&keys, 49_999), "user:0000000000000000000049999");
        let keys = maker(10_000, "", Dist::Fixed(10.0));
        assert_eq!(text(&keys, 1234), "0000001234");
        assert_eq!(
            text(&maker(1 << 40, "k", Dist::Fixed(30.0)), (5 << 40) - 1),
            "k0000000000000000".to_string() + "5497558138879"
        );
    }

    #[test]
    fn keys_that_are_no_records_have_room_for_their_digits_and_are_no_records() {
        let keys = maker(10_000, "p", Dist::Fixed(6.0));
        assert_eq!(text(&keys, 49_999), "p49999");
        assert_eq!(text(&keys, 1_000_000_000_049_999), "p1000000000049999");
        assert_eq!(keys.index_of(b"p1000000000049999"), None);
        assert_eq!(keys.spaces().space(1_000_000_000_049_999), Space::Plain);
        let keys = maker(10_000, "p", Dist::Fixed(20.0));
        assert_eq!(text(&keys, 2_000_000_000_000_001), "p0002000000000000001");
    }

    #[test]
    fn lengths_are_cut_to_what_the_index_needs_and_the_protocol_allows() {
        assert_eq!(text(&maker(10_000, "p", Dist::Fixed(1.0)), 7), "p00007");
        assert_eq!(text(&maker(1, "", Dist::Fixed(0.0)), 2), "2");
        let longest = text(&maker(10_000, "p", Dist::Fixed(1000.0)), 12_345);
        assert_eq!(longest.len(), KEY_MAX_BYTES);
        assert!(longest.starts_with("p000") && longest.ends_with("00012345"));
    }

    #[test]
    fn a_prefix_that_leaves_no_room_is_refused() {
        let fits = "x".repeat(245);
        let keys = maker(10_000, &fits, Dist::Fixed(30.0));
        assert_eq!(text(&keys, 49_999), fits.clone() + "49999");
        let refused = KeyMaker::new(&data(10_000, &(fits + "x"), Dist::Fixed(30.0))).unwrap_err();
        assert_eq!(refused, PrefixTooLong { len_bytes: 246, max_bytes: 245 });
    }

    #[test]
    fn keys_are_unique_where_lengths_vary_and_lead_back_to_their_index() {
        // A prefix that ends in a digit is the hardest: its end looks like the beginning of a number.
        let keys = maker(20_000, "k0", Dist::Uniform { low: 1.0, high: 40.0 });
        let mut seen = HashSet::new();
        let mut lengths = HashSet::new();
        for index in 0..keys.spaces().end() {
            let key = text(&keys, index);
            assert_eq!(keys.index_of(key.as_bytes()), Some(index));
            lengths.insert(key.len());
            assert!(seen.insert(key), "the key of {index} is another's too");
        }
        assert_eq!(lengths, (7..=40).collect());
    }

    #[test]
    fn sizes_belong_to_the_data_seed_and_the_index() {
        let sizes = Dist::Uniform { low: 20.0, high: 200.0 };
        let lengths = |data: &Data| -> Vec<usize> {
            let keys = KeyMaker::new(data).unwrap();
            (0..100).map(|index| keys.len_of(index)).collect()
        };
        let plain = data(1000, "", sizes.clone());
        assert_eq!(lengths(&plain), lengths(&data(2000, "", sizes)), "the number of records does not matter");
        assert_ne!(lengths(&plain), lengths(&Data { seed: 1, ..plain.clone() }));
    }

    #[test]
    fn what_is_no_key_has_no_index() {
        let keys = maker(10_000, "user:", Dist::Fixed(12.0));
        assert_eq!(keys.index_of(b"user:0001234"), Some(1234));
        for stranger in [
            "",
            "user:",
            "user",
            "usex:0001234",
            "user:001234",
            "user:00001234",
            "user:00012x4",
            "user:000123/",
            "user:0050000",
            "user:9999999",
            "user:99999999999999999999999999",
        ] {
            assert_eq!(keys.index_of(stranger.as_bytes()), None, "{stranger}");
        }
    }

    #[test]
    fn spaces_lie_one_behind_the_other() {
        let spaces = Spaces::new(100);
        let firsts = [0, 100, 200, 300, 400];
        for (space, first) in Space::ALL.into_iter().zip(firsts) {
            for record in [0, 1, 99] {
                assert_eq!(spaces.index(space, record), first + record);
                assert_eq!(spaces.space(first + record), space);
                assert_eq!(spaces.record(first + record), record);
            }
        }
        assert_eq!(spaces.end(), 500);
    }

    #[test]
    fn decimals_are_right_at_every_change_of_length() {
        for power in 0..DIGITS as u32 {
            for number in [10u64.pow(power) - 1, 10u64.pow(power), 10u64.pow(power) + 1, 9 * 10u64.pow(power)]
            {
                assert_eq!(decimal(number)[..], *format!("{number:016}").as_bytes());
            }
        }
        // All quotients of the first two steps, and all of the last.
        for four in 0..10_000 {
            assert_eq!(
                eight_digits(four * 10_000 + (9_999 - four))[..],
                *format!("{four:04}{:04}", 9_999 - four).as_bytes()
            );
        }
    }

    proptest! {
        #[test]
        fn decimals_are_right(number in 0u64..10_000_000_000_000_000) {
            prop_assert_eq!(String::from_utf8(decimal(number).to_vec()).unwrap(), format!("{number:016}"));
        }

        #[test]
        fn only_true_keys_have_an_index(tail in "[0-9]{4,12}", any_bytes in any::<Vec<u8>>()) {
            let keys = maker(10_000, "u", Dist::Uniform { low: 6.0, high: 12.0 });
            for candidate in [format!("u{tail}").into_bytes(), any_bytes] {
                if let Some(index) = keys.index_of(&candidate) {
                    prop_assert_eq!(keys.key(index, &mut [0; KEY_MAX_BYTES]).to_vec(), candidate);
                }
            }
        }
    }

    fn mutilates(records: u64, prefix: &str, key_size: Dist) -> KeyMaker {
        let style = Style { keys: KeyStyle::Fnv, ..Style::default() };
        KeyMaker::new(&Data { style, ..data(records, prefix, key_size) }).unwrap()
    }

    #[test]
    fn mutilates_keys_are_the_ones_that_mutilate_makes() {
        let maker = mutilates(10_000, "", crate::dist::ETC_KEY);
        assert_eq!(maker.key(0, &mut [0; KEY_MAX_BYTES]), [b'0'; 38]);
        for (index, len) in [(1, 35), (2, 51), (42, 91), (9_999, 23)] {
            let key = String::from_utf8(maker.key(index, &mut [0; KEY_MAX_BYTES]).to_vec()).unwrap();
            assert_eq!(key, format!("{index:0len$}"));
        }
        assert_eq!((fnv(1), fnv(2)), (0x89cd_3129_1d2a_efa4, 0xe6bd_8644_3df8_ce07));
        let lens: Vec<usize> = (0..10_000).map(|index| maker.len_of(index)).collect();
        let mean = lens.iter().sum::<usize>() as f64 / 10_000.0;
        assert_eq!((lens.iter().min(), lens.iter().max()), (Some(&14), Some(&130)));
        assert!((mean - 36.14).abs() < 0.005, "{mean}");
    }

    #[test]
    fn every_key_of_fb_key_follows_the_formula() {
        let maker = mutilates(10_000, "", crate::dist::ETC_KEY);
        for index in 0..10_000u64 {
            let mut hash = 0xcbf2_9ce4_8422_2325u64;
            for byte in index.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
            }
            let u = hash as f64 / 18_446_744_073_709_551_615.0;
            let g = 30.7984 + 8.20449 * ((-u.ln()).powf(-0.078688) - 1.0) / 0.078688;
            let len = (g.round() as usize).max(5);
            let mut buffer = [0; KEY_MAX_BYTES];
            assert_eq!(maker.key(index, &mut buffer), format!("{index:0len$}").as_bytes());
        }
    }

    #[test]
    fn mutilates_keys_have_room_for_the_number_of_records_and_grow_by_their_prefix() {
        let key =
            |maker: &KeyMaker, index| String::from_utf8(maker.key(index, &mut [0; 250]).to_vec()).unwrap();
        assert_eq!(key(&mutilates(10_000, "", Dist::Fixed(5.0)), 42), "00042");
        assert_eq!(key(&mutilates(1_000, "", Dist::Fixed(2.0)), 42), "0042");
        assert_eq!(key(&mutilates(1_000, "p:", Dist::Fixed(6.0)), 42), "p:000042");
        assert_eq!(key(&mutilates(1, "", Dist::Fixed(-5.0)), 0), "0");
        assert_eq!(key(&mutilates(10, "p", Dist::Fixed(250.0)), 0).len(), 250);
    }

    #[test]
    fn mutilates_lengths_shrink_with_the_hash_where_its_formulas_take_its_logarithm() {
        let u = fnv(7) as f64 / u64::MAX as f64;
        let exponential = mutilates(10, "", Dist::Exponential { mean: 100.0 });
        assert_eq!(exponential.len_of(7), ((-u.ln() * 100.0).round() as usize).clamp(2, 250));
        let pareto = mutilates(10, "", Dist::Pareto { loc: 15.0, scale: 20.0, shape: 0.5 });
        assert_eq!(pareto.len_of(7), (15.0 + 20.0 * (u.powf(-0.5) - 1.0) / 0.5).round() as usize);
    }

    #[test]
    fn mutilates_keys_of_fb_ia_and_of_normal_lengths_follow_its_formulas() {
        let fb_ia = mutilates(10_000, "", Dist::EtcArrival);
        let normal = mutilates(10_000, "", Dist::Normal { mean: 60.0, sd: 20.0 });
        for index in 0..10_000u64 {
            let u = fnv(index) as f64 / 18_446_744_073_709_551_615.0;
            let pareto = 16.0292 * (u.powf(-0.154971) - 1.0) / 0.154971;
            assert_eq!(fb_ia.len_of(index), (pareto.round() as usize).clamp(5, 250), "{index}");
            // One random number takes the place of two.
            let gauss = 60.0 + 20.0 * (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * u).cos();
            assert_eq!(normal.len_of(index), (gauss.round() as usize).clamp(5, 250), "{index}");
        }
    }
}
