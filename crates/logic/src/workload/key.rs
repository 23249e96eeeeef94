//! Keys: the prefix and a zero-padded index, with a length that belongs to the index.

use std::error::Error;
use std::fmt;

use crate::dist::Dist;
use crate::plan::Data;
use crate::rng::{Stream, mix};

/// Longest key that memcached's protocol document allows, in bytes.
pub const KEY_MAX_BYTES: usize = 250;

/// Room for any key.
pub type KeyBuffer = [u8; KEY_MAX_BYTES];

/// Decimal digits that are written at once; the largest index, 3 * 2^40 - 1, has 13.
const DIGITS: usize = 16;

/// Names the draws of key sizes among all draws from the data seed.
const KEY_SIZES: u64 = 0x6b65_7973;

/// What a record is for; each kind has its own range of indexes, so that every operation finds a value that it can work
/// on and every reply can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Read, stored, removed and touched.
    Plain,
    /// Appended and prepended to: whole frames in any order.
    Pieces,
    /// Counted up and down: digits, then spaces.
    Counters,
}

/// The one line of indexes on which all spaces lie, each as long as there are records: plain ones from 0, then pieces,
/// then counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaces {
    records: u64,
}

impl Spaces {
    /// The spaces for so many records.
    ///
    /// # Panics
    /// When `records` is not 1 to 2^40, the bounds that the Plan states.
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
        match space {
            Space::Plain => record,
            Space::Pieces => self.records + record,
            Space::Counters => 2 * self.records + record,
        }
    }

    /// The space that an index lies in.
    #[inline]
    pub fn space(self, index: u64) -> Space {
        debug_assert!(index < self.end());
        if index < self.records {
            Space::Plain
        } else if index < 2 * self.records {
            Space::Pieces
        } else {
            Space::Counters
        }
    }

    /// The first number that is no index.
    pub fn end(self) -> u64 {
        3 * self.records
    }
}

/// The prefix leaves no room for the index.
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
    /// When the prefix is so long that the largest index has no room behind it.
    pub fn new(data: &Data) -> Result<KeyMaker, PrefixTooLong> {
        let spaces = Spaces::new(data.records);
        let digits = (spaces.end() - 1).ilog10() as usize + 1;
        let prefix = data.key_prefix.as_bytes();
        let max_bytes = KEY_MAX_BYTES - digits;
        if prefix.len() > max_bytes {
            return Err(PrefixTooLong { len_bytes: prefix.len(), max_bytes });
        }
        let mut template = Box::new([b'0'; KEY_MAX_BYTES]);
        template[..prefix.len()].copy_from_slice(prefix);
        let len_min = (prefix.len() + digits) as u64;
        let len =
            StableSize::new(&data.key_size, mix(&[data.seed, KEY_SIZES]), len_min, KEY_MAX_BYTES as u64);
        Ok(KeyMaker { template, prefix_len: prefix.len(), len, spaces })
    }

    /// The ranges of indexes.
    pub fn spaces(&self) -> Spaces {
        self.spaces
    }

    /// Length of a key in bytes.
    #[inline]
    pub fn len_of(&self, index: u64) -> usize {
        self.len.of(index) as usize
    }

    /// Writes a key at the beginning of `out` and returns it.
    #[inline]
    pub fn key<'b>(&self, index: u64, out: &'b mut KeyBuffer) -> &'b [u8] {
        debug_assert!(index < self.spaces.end());
        let len = self.len_of(index);
        let key = &mut out[..len];
        key.copy_from_slice(&self.template[..len]);
        let room = (len - self.prefix_len).min(DIGITS);
        key[len - room..].copy_from_slice(&decimal(index)[DIGITS - room..]);
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

/// A size that belongs to an index: any process computes the same, and nothing is stored.
#[derive(Clone, Debug)]
pub(crate) enum StableSize {
    /// The same for all.
    Fixed(u64),
    /// Drawn for each.
    Drawn {
        /// Draw i is for index i.
        stream: Stream,
        dist: Dist,
        min: u64,
        max: u64,
    },
}

impl StableSize {
    /// Sizes from a distribution, cut to `min` and `max`; `seed` keeps sizes for different purposes apart.
    pub(crate) fn new(dist: &Dist, seed: u64, min: u64, max: u64) -> StableSize {
        match dist {
            Dist::Fixed(_) => StableSize::Fixed(dist.draw_size(0, min, max)),
            _ => StableSize::Drawn { stream: Stream::from_seed(seed), dist: dist.clone(), min, max },
        }
    }

    /// The size that belongs to an index.
    #[inline]
    pub(crate) fn of(&self, index: u64) -> u64 {
        match self {
            StableSize::Fixed(size) => *size,
            StableSize::Drawn { stream, dist, min, max } => dist.draw_size(stream.draw(index), *min, *max),
        }
    }
}

/// A number below 10^16 in decimal, with leading zeros.
#[inline]
fn decimal(number: u64) -> [u8; DIGITS] {
    const HALF: u64 = 100_000_000;
    debug_assert!(number < HALF * HALF);
    let mut digits = [0; DIGITS];
    digits[..8].copy_from_slice(&eight_digits(number / HALF));
    digits[8..].copy_from_slice(&eight_digits(number % HALF));
    digits
}

/// A number below 10^8 in decimal, all digits at once: the word is split into halves of four digits, those into pairs,
/// and the pairs into digits, each time all parts together, with multiplications in place of divisions. The quotients
/// are exact for the parts' ranges (10486 / 2^20 for 1/100 below 10^4, 103 / 2^10 for 1/10 below 100).
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    let fours = number / 10_000 | (number % 10_000) << 32;
    let hundreds = (fours * 10_486 >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (pairs * 103 >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - 10 * tens) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}
