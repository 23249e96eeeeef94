//! Values that any process can check without remembering them: a frame that names its write, then shared bytes.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::dist::Dist;
use crate::plan::{Data, ValueStyle};
use crate::protocol::Value;
use crate::rng::{Stream, mix};
use crate::workload::key::{RENEWED_FROM, Space, Spaces};
use crate::workload::stable_size::StableSize;

/// Length of a frame's header; shorter values carry none.
pub const HEADER_BYTES: usize = 24;

/// The last four bytes of every header.
pub const MAGIC: u32 = u32::from_le_bytes(*b"pum1");

/// Largest value in bytes: the greatest item limit of memcached (`-I`).
pub const VALUE_MAX_BYTES: u64 = 1 << 30;

/// Largest piece for append and prepend, in bytes.
pub const PIECE_MAX_BYTES: u64 = 4096;

/// A value made of pieces is set anew before it grows beyond this.
pub const PIECES_LIMIT_BYTES: u64 = 64 * 1024;

/// The value that a counter is loaded with. It has room for any 64-bit number, so that a server that counts in place never
/// moves it. A server may also store a result without the spaces.
pub const COUNTER: &[u8; COUNTER_MAX_BYTES] = b"1000000000          ";

/// Digits of the largest 64-bit number.
pub const COUNTER_MAX_BYTES: usize = 20;

/// Number of places of the block at which frames begin.
const OFFSETS: u64 = 1 << 16;

/// Draw for the quantile 1 - 2^-30, where sizes without an upper end are cut, so that the block for a long tail stays
/// about as large as the values that a run really meets.
const TAIL: u64 = u64::MAX - (1 << 34);

/// Names of the draws for values among all draws from the data seed.
const VALUE_SIZES: u64 = 0x73_697a_6573;
const WRITE_HASHES: u64 = 0x73_706f_7473;
const BLOCK: u64 = 0x62_6c6f_636b;
const SHORTS: u64 = 0x73_686f_7274;

/// Room for the bytes of a value that are not shared.
pub type HeaderBuffer = [u8; HEADER_BYTES];

/// The write that a value comes from: the writer's number in the high 24 bits and its count of writes in the low 40.
/// Counts begin above 0; `0` is what was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u64);

impl Version {
    /// The version of every loaded value, whichever process loads it.
    pub const LOADED: Version = Version(0);

    /// Largest number of a writer.
    pub const WRITER_MAX: u32 = (1 << 24) - 1;

    /// Largest count of a writer's writes.
    pub const COUNT_MAX: u64 = (1 << 40) - 1;

    /// The version of a writer's write.
    ///
    /// # Panics
    /// Panics when a number is out of its range.
    #[inline]
    pub fn new(writer: u32, count: u64) -> Version {
        assert!(writer <= Version::WRITER_MAX && (1..=Version::COUNT_MAX).contains(&count));
        Version((u64::from(writer) << 40) | count)
    }

    /// Number of the writer.
    #[inline]
    pub fn writer(self) -> u32 {
        (self.0 >> 40) as u32
    }

    /// Number of the write among its writer's; 0 for a loaded value.
    #[inline]
    pub fn count(self) -> u64 {
        self.0 & Version::COUNT_MAX
    }
}

/// Values may become larger than pummel makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueTooLarge {
    /// Size that the distribution reaches, in bytes.
    pub reaches_bytes: u64,
}

impl fmt::Display for ValueTooLarge {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "values may have up to {} bytes, and at most {VALUE_MAX_BYTES} are possible",
            self.reaches_bytes
        )
    }
}

impl Error for ValueTooLarge {}

/// Makes values. Clones share the block; one process needs one, and keeps as much memory as its largest value and
/// 64 KiB.
///
/// A value of 24 bytes or more is a frame (all numbers little endian):
///
/// | bytes | |
/// |---|---|
/// | 0..8 | tag: hash of data seed, key index, version and length |
/// | 8..16 | [`Version`] |
/// | 16..20 | length of the frame in bytes, header included |
/// | 20..24 | [`MAGIC`] |
/// | 24.. | bytes of the block, from an offset that is a hash of data seed, key index and version |
///
/// A shorter value is the beginning of 24 bytes drawn for its key from the data seed, the same at every write. A value
/// in the pieces' space is one or more frames; a counter begins as [`COUNTER`]. Byte i of the block depends on the data
/// seed and i alone, so that processes with blocks of different sizes understand each other.
#[derive(Clone, Debug)]
pub struct ValueMaker {
    block: Arc<[u8]>,
    block_words: Stream,
    write_seed: u64,
    short_seed: u64,
    lengths: ValueLengths,
    /// The distribution that every write draws its length from, and the greatest length in bytes; `None` where lengths belong
    /// to keys.
    fresh: Option<(Dist, u64)>,
    /// Counters may fall below 0.
    has_signed_counters: bool,
}

/// Lengths of values without their bytes.
#[derive(Clone, Debug)]
pub struct ValueLengths {
    len: StableSize,
    spaces: Spaces,
}

impl ValueLengths {
    /// The lengths of this data.
    ///
    /// # Errors
    /// Returns [`ValueTooLarge`] when values may become larger than [`VALUE_MAX_BYTES`].
    pub fn new(data: &Data) -> Result<ValueLengths, ValueTooLarge> {
        Ok(ValueLengths::reaching(data, reached(data, 0)?))
    }

    /// The lengths of this data, cut to `most_bytes`.
    fn reaching(data: &Data, most_bytes: u64) -> ValueLengths {
        let seed = mix(&[data.seed, VALUE_SIZES]);
        let sizes = |dist: &Dist| StableSize::new(dist, seed, 0, most_bytes);
        let all = sizes(&data.value_size);
        let until = |share: f64| libm::round(share * data.records as f64) as u64;
        let classes: Vec<(u64, StableSize)> =
            data.value_classes.iter().map(|class| (until(class.until), sizes(&class.value_size))).collect();
        let spaces = Spaces::new(data.records);
        let len = match classes.is_empty() {
            true => all,
            false => StableSize::by_rank(data.records, (spaces.end(), RENEWED_FROM), classes, all),
        };
        ValueLengths { len, spaces }
    }

    /// Length of the value of a key by its index, in bytes. In the pieces' space, that of one piece.
    #[inline]
    pub fn of(&self, index: u64) -> usize {
        match self.spaces.space(index) {
            Space::Plain | Space::Hashes | Space::Commands => self.len.of(index) as usize,
            Space::Pieces => self.len.of(index).clamp(HEADER_BYTES as u64, PIECE_MAX_BYTES) as usize,
            Space::Counters => COUNTER_MAX_BYTES,
        }
    }
}

/// The largest length that the values of this data have, at least `least_bytes`.
fn reached(data: &Data, least_bytes: u64) -> Result<u64, ValueTooLarge> {
    let reaches_bytes = largest_of(data).max(least_bytes);
    if reaches_bytes > VALUE_MAX_BYTES { Err(ValueTooLarge { reaches_bytes }) } else { Ok(reaches_bytes) }
}

/// Zeros of a value that are copied, which is cheaper than another part of a system call.
const ZEROS_OWN_BYTES: usize = 256;

impl ValueMaker {
    /// The values of this data; draws the block.
    ///
    /// # Errors
    /// Returns [`ValueTooLarge`] when values may become larger than [`VALUE_MAX_BYTES`].
    pub fn new(data: &Data) -> Result<ValueMaker, ValueTooLarge> {
        ValueMaker::reaching(data, 0)
    }

    /// The values of this data, with a block that also reaches for values of `least_bytes`, which a trace may have; draws the
    /// block.
    ///
    /// # Errors
    /// Returns [`ValueTooLarge`] when values may become larger than [`VALUE_MAX_BYTES`].
    pub fn reaching(data: &Data, least_bytes: u64) -> Result<ValueMaker, ValueTooLarge> {
        let reaches_bytes = reached(data, least_bytes)?;
        let block_words = Stream::from_seed(mix(&[data.seed, BLOCK]));
        let body_max = reaches_bytes.max(PIECE_MAX_BYTES) - HEADER_BYTES as u64;
        Ok(ValueMaker {
            block: block(block_words, OFFSETS + body_max),
            block_words,
            write_seed: mix(&[data.seed, WRITE_HASHES]),
            short_seed: mix(&[data.seed, SHORTS]),
            lengths: ValueLengths::reaching(data, reaches_bytes),
            fresh: (data.style.values == ValueStyle::Fresh).then(|| (data.value_size.clone(), reaches_bytes)),
            has_signed_counters: false,
        })
    }

    /// The values of a server on which counters are signed: Redis counts below 0, where memcached stops.
    pub fn with_signed_counters(self, signed: bool) -> ValueMaker {
        ValueMaker { has_signed_counters: signed, ..self }
    }

    /// Whether counters may fall below 0.
    pub fn has_signed_counters(&self) -> bool {
        self.has_signed_counters
    }

    /// Replaces the block by `len_bytes` digits 0, for [`ValueMaker::zeros`] alone.
    pub fn of_zeros(self, len_bytes: u64) -> ValueMaker {
        ValueMaker { block: vec![b'0'; len_bytes as usize].into(), ..self }
    }

    /// A value of `len_bytes` digits 0, at most as many as the block has.
    pub fn zeros(&self, len_bytes: usize) -> Value<'_> {
        let zeros = &self.block[..len_bytes];
        let (own, shared) = zeros.split_at(len_bytes.min(ZEROS_OWN_BYTES));
        Value { own, shared, shared_at: own.len() }
    }

    /// The ranges of indexes.
    pub fn spaces(&self) -> Spaces {
        self.lengths.spaces
    }

    /// The block that [`Value::shared_at`] points into.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Length of the value that [`ValueMaker::value`] makes, in bytes; it belongs to the index. In the pieces' space,
    /// that of one piece.
    #[inline]
    pub fn len_of(&self, index: u64) -> usize {
        self.lengths.of(index)
    }

    /// Length of a stored counter in bytes.
    pub fn counter_len(&self) -> usize {
        COUNTER.len()
    }

    /// Whether every write draws its own length.
    #[inline]
    pub fn draws_lengths(&self) -> bool {
        self.fresh.is_some()
    }

    /// The length that a write with these random bits has, where every write draws its own; fractions are cut off.
    #[inline]
    pub fn drawn_len(&self, bits: u64) -> Option<usize> {
        let (sizes, most) = self.fresh.as_ref()?;
        // The cast takes what is negative to 0.
        Some((sizes.draw(bits) as u64).min(*most) as usize)
    }

    /// The value of a write: to load and store with, and in the pieces' space to append and prepend. `own` lends the
    /// room for the bytes that are not shared.
    #[inline]
    pub fn value<'a>(&'a self, index: u64, version: Version, own: &'a mut HeaderBuffer) -> Value<'a> {
        match self.lengths.spaces.space(index) {
            Space::Counters => Value::plain(COUNTER),
            _ => self.value_of_len(index, version, self.len_of(index), own),
        }
    }

    /// The value of a write that decides the length itself; at most the largest length of the data (or a piece's).
    #[inline]
    pub fn value_of_len<'a>(
        &'a self,
        index: u64,
        version: Version,
        len_bytes: usize,
        own: &'a mut HeaderBuffer,
    ) -> Value<'a> {
        if len_bytes < HEADER_BYTES {
            *own = self.short(index);
            return Value::plain(&own[..len_bytes]);
        }
        let hash = self.write_hash(index, version);
        let header = FrameHeader {
            tag: hash.tag(len_bytes as u32),
            version,
            len_bytes: len_bytes as u32,
            magic: MAGIC,
        };
        *own = header.to_bytes();
        let shared_at = hash.offset() as usize;
        let shared = &self.block[shared_at..shared_at + len_bytes - HEADER_BYTES];
        Value { own, shared, shared_at }
    }

    /// The 24 bytes that short values of a key are cut from.
    pub(crate) fn short(&self, index: u64) -> HeaderBuffer {
        let words = Stream::from_seed(mix(&[self.short_seed, index]));
        let mut bytes = [0; HEADER_BYTES];
        for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&words.draw(i as u64).to_le_bytes());
        }
        bytes
    }

    /// The hash that a write of a key is known by.
    #[inline]
    pub(crate) fn write_hash(&self, index: u64, version: Version) -> WriteHash {
        WriteHash(mix(&[self.write_seed, index, version.0]))
    }

    /// Whether `bytes` are those of the block from `at` on, also where the block of the process that wrote them is longer.
    #[inline]
    pub(crate) fn block_reads(&self, at: u64, bytes: &[u8]) -> bool {
        let from = (at as usize).min(self.block.len());
        let (near, far) = bytes.split_at(bytes.len().min(self.block.len() - from));
        near == &self.block[from..from + near.len()]
            && (far.is_empty() || self.beyond_reads(at + near.len() as u64, far))
    }

    /// [`ValueMaker::block_reads`] beyond our block's end, where its bytes have to be computed.
    #[cold]
    fn beyond_reads(&self, at: u64, bytes: &[u8]) -> bool {
        let byte = |place: u64| self.block_words.draw(place / 8).to_le_bytes()[(place % 8) as usize];
        bytes.iter().zip(at..).all(|(&seen, place)| seen == byte(place))
    }
}

/// Hash of (data seed, key index, version).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteHash(u64);

impl WriteHash {
    /// Offset in the block at which the frame's bytes begin.
    #[inline]
    pub(crate) fn offset(self) -> u64 {
        self.0 % OFFSETS
    }

    /// The tag of the frame with this length.
    #[inline]
    pub(crate) fn tag(self, len_bytes: u32) -> u64 {
        mix(&[self.0, u64::from(len_bytes)])
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) tag: u64,
    pub(crate) version: Version,
    pub(crate) len_bytes: u32,
    pub(crate) magic: u32,
}

impl FrameHeader {
    #[inline]
    pub(crate) fn to_bytes(self) -> HeaderBuffer {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.tag.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.version.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.len_bytes.to_le_bytes());
        bytes[20..].copy_from_slice(&self.magic.to_le_bytes());
        bytes
    }

    #[inline]
    pub(crate) fn from_bytes(bytes: &HeaderBuffer) -> FrameHeader {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, rest @ ..] = *bytes;
        let [q, r, s, t, u, v, w, x] = rest;
        FrameHeader {
            tag: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            version: Version(u64::from_le_bytes([i, j, k, l, m, n, o, p])),
            len_bytes: u32::from_le_bytes([q, r, s, t]),
            magic: u32::from_le_bytes([u, v, w, x]),
        }
    }
}

/// The largest value that the records of this data have, in bytes.
pub fn largest_of(data: &Data) -> u64 {
    data.value_sizes().map(largest).max().unwrap_or(0)
}

/// The largest size that a distribution gives, in bytes.
pub fn largest(sizes: &Dist) -> u64 {
    let (_, top) = sizes.support();
    if top.is_finite() { (top + 0.5) as u64 } else { sizes.draw_size(TAIL, 0, u64::MAX) }
}

/// Draws a block of at least so many bytes, in place: the largest blocks should not exist twice even for a moment.
fn block(words: Stream, len_bytes: u64) -> Arc<[u8]> {
    let len = len_bytes.next_multiple_of(8) as usize;
    let mut block: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
    let bytes = Arc::get_mut(&mut block).expect("the block has one owner");
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&words.draw(i as u64).to_le_bytes());
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(value_size: Dist) -> Data {
        Data {
            records: 1000,
            seed: 0,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size,
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            key_tag: None,
            slots: Vec::new(),
            style: crate::plan::Style::default(),
        }
    }

    fn maker(value_size: Dist) -> ValueMaker {
        ValueMaker::new(&data(value_size)).unwrap()
    }

    fn bytes(value: Value<'_>) -> Vec<u8> {
        [value.own, value.shared].concat()
    }

    #[test]
    fn a_value_is_a_header_and_a_range_of_the_block() {
        let values = maker(Dist::Fixed(200.0));
        let version = Version::new(5, 77);
        let mut own = [0; HEADER_BYTES];
        let value = values.value(3, version, &mut own);
        assert_eq!(value.len(), 200);
        assert_eq!(value.shared, &values.block()[value.shared_at..][..176]);
        assert_eq!(value.own[8..16], ((5u64 << 40) | 77).to_le_bytes());
        assert_eq!(value.own[16..20], 200u32.to_le_bytes());
        assert_eq!(value.own[20..24], *b"pum1");
    }

    #[test]
    fn tags_and_offsets_depend_on_all_that_they_should() {
        let values = maker(Dist::Fixed(200.0));
        let other_seed = ValueMaker::new(&Data { seed: 1, ..data(Dist::Fixed(200.0)) }).unwrap();
        let header = |values: &ValueMaker, index, version, len| {
            let mut own = [0; HEADER_BYTES];
            let value = values.value_of_len(index, version, len, &mut own);
            (value.own[..8].to_vec(), value.shared_at)
        };
        let version = Version::new(1, 1);
        let (tag, at) = header(&values, 3, version, 200);
        for other in [
            header(&values, 4, version, 200),
            header(&values, 3, Version::new(1, 2), 200),
            header(&values, 3, Version::new(2, 1), 200),
            header(&other_seed, 3, version, 200),
        ] {
            assert_ne!(other.0, tag);
            assert_ne!(other.1, at);
        }
        let (shorter_tag, shorter_at) = header(&values, 3, version, 199);
        assert_ne!(shorter_tag, tag);
        assert_eq!(shorter_at, at);
    }

    #[test]
    fn values_do_not_depend_on_the_size_of_the_block() {
        let (small, large) = (maker(Dist::Fixed(100.0)), maker(Dist::Fixed(1_000_000.0)));
        assert_eq!(*small.block(), large.block()[..small.block().len()]);
        let (mut one, mut two) = ([0; HEADER_BYTES], [0; HEADER_BYTES]);
        for index in 0..100 {
            let from_small = bytes(small.value(index, Version::LOADED, &mut one));
            assert_eq!(from_small, bytes(large.value_of_len(index, Version::LOADED, 100, &mut two)));
        }
    }

    #[test]
    fn values_too_short_for_a_header_begin_alike_at_every_write() {
        let values = maker(Dist::Fixed(23.0));
        let (mut one, mut two) = ([0; HEADER_BYTES], [0; HEADER_BYTES]);
        let first = bytes(values.value(3, Version::LOADED, &mut one));
        assert_eq!(first.len(), 23);
        assert_eq!(first, bytes(values.value(3, Version::new(1, 1), &mut two)));
        assert_eq!(first[..9], bytes(values.value_of_len(3, Version::LOADED, 9, &mut two)));
        assert_ne!(first, bytes(values.value(4, Version::LOADED, &mut two)));
        assert!(values.value_of_len(3, Version::LOADED, 0, &mut two).is_empty());
    }

    #[test]
    fn the_block_of_common_sizes_is_small_enough_for_a_cache() {
        assert!(maker(Dist::Fixed(200.0)).block().len() <= 70 * 1024);
        let values = maker(Dist::EtcValue);
        assert!(values.block().len() <= 2 << 20, "a tail without end has {} bytes", values.block().len());
        assert!(values.block().len() >= 1 << 19, "nor is it cut where a run would meet it");
    }

    #[test]
    fn the_largest_value_fits_at_the_last_offset() {
        for size in [0.0, 24.0, 4096.0, 5001.0, 100_000.0] {
            let values = maker(Dist::Fixed(size));
            let longest = values.len_of(0).max(values.len_of(1000));
            assert!(
                values.block().len() as u64 >= OFFSETS - 1 + (longest - longest.min(HEADER_BYTES)) as u64
            );
        }
        let values = maker(Dist::Uniform { low: 0.0, high: 300.0 });
        let mut own = [0; HEADER_BYTES];
        for index in 0..3000 {
            assert_eq!(values.value(index, Version::LOADED, &mut own).len(), values.len_of(index));
        }
    }

    #[test]
    fn sizes_belong_to_the_index_and_follow_the_distribution() {
        let values = maker(Dist::Uniform { low: 100.0, high: 300.0 });
        let sizes: Vec<usize> = (0..1000).map(|index| values.len_of(index)).collect();
        assert_eq!(sizes, (0..1000).map(|index| values.clone().len_of(index)).collect::<Vec<_>>());
        let mean = sizes.iter().sum::<usize>() as f64 / 1000.0;
        assert!((mean - 200.0).abs() < 4.0 * 57.8 / 1000f64.sqrt(), "mean {mean}");
    }

    #[test]
    fn pieces_are_whole_frames_and_counters_have_room_for_any_number() {
        for (size, piece) in [(3.0, 24), (200.0, 200), (100_000.0, 4096)] {
            let values = maker(Dist::Fixed(size));
            let mut own = [0; HEADER_BYTES];
            assert_eq!(values.value(1000, Version::LOADED, &mut own).len(), piece);
            assert_eq!(values.len_of(1999), piece);
            assert_eq!(values.value(2000, Version::LOADED, &mut own).own, b"1000000000          ");
            assert_eq!(values.len_of(2999), u64::MAX.to_string().len());
        }
    }

    #[test]
    fn values_that_no_server_takes_are_refused() {
        let refused = ValueMaker::new(&data(Dist::Uniform { low: 0.0, high: 2e9 })).unwrap_err();
        assert_eq!(refused, ValueTooLarge { reaches_bytes: 2_000_000_000 });
        let above = ValueMaker::new(&data(Dist::Fixed(VALUE_MAX_BYTES as f64 + 1.0))).unwrap_err();
        assert_eq!(above, ValueTooLarge { reaches_bytes: VALUE_MAX_BYTES + 1 });
        let heavy = Dist::Pareto { loc: 1.0, scale: 1e6, shape: 3.0 };
        assert!(ValueMaker::new(&data(heavy)).is_err());
    }

    #[test]
    fn versions_hold_writer_and_count() {
        let largest = Version::new(Version::WRITER_MAX, Version::COUNT_MAX);
        assert_eq!(largest.0, u64::MAX);
        assert_eq!((largest.writer(), largest.count()), (Version::WRITER_MAX, Version::COUNT_MAX));
        let version = Version::new(3, 7);
        assert_eq!((version.writer(), version.count()), (3, 7));
        assert_eq!(Version::LOADED.count(), 0);
    }
}
