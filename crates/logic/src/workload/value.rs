//! Values that any process can check without remembering them: a frame that names its write, then bytes drawn from that name.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::bodies::Bodies;
use crate::connection::outbox::Sources;
use crate::dist::Dist;
use crate::plan::{Data, ValueStyle};
use crate::protocol::{Rest, Value};
use crate::rng::{Stream, mix, scramble};
use crate::workload::key::{RENEWED_FROM, Space, Spaces};
use crate::workload::stable_size::StableSize;

/// Length of a frame's header; shorter values carry none.
pub const HEADER_BYTES: usize = 24;

/// The last four bytes of every header.
pub const MAGIC: u32 = u32::from_le_bytes(*b"pum2");

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

/// Draw for the quantile 1 - 2^-30, where sizes without an upper end are cut: about the largest value that a run really
/// meets.
const TAIL: u64 = u64::MAX - (1 << 34);

/// Names of the draws for values among all draws from the data seed.
const VALUE_SIZES: u64 = 0x73_697a_6573;
const WRITE_HASHES: u64 = 0x73_706f_7473;
const BODIES: u64 = 0x626f_6469_6573;
const SHORTS: u64 = 0x73_686f_7274;

/// Room for the first bytes of a value, which are made with the request.
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

/// Makes values. Clones share memory of 16 KiB, however large the values are.
///
/// A value of 24 bytes or more is a frame (all numbers little endian, and bytes 8 to 24 combined by exclusive or with two
/// hashes of the tag, so that they do not read alike in all values):
///
/// | bytes | |
/// |---|---|
/// | 0..8 | tag: hash of data seed, key index, version and length |
/// | 8..16 | [`Version`] |
/// | 16..20 | length of the frame in bytes, header included |
/// | 20..24 | [`MAGIC`] |
/// | 24.. | the beginning of the body ([`Bodies`]) whose seed is a hash of data seed, key index and version |
///
/// A shorter value is the beginning of 24 bytes drawn for its key from the data seed, the same at every write. A value
/// in the pieces' space is one or more frames; a counter begins as [`COUNTER`]. Where values are filled with one byte, it takes the place
/// of all that: such values are not checked.
#[derive(Clone, Debug)]
pub struct ValueMaker {
    bodies: Bodies,
    /// Digits 0, for [`ValueMaker::zeros`] alone.
    zeros: Arc<[u8]>,
    write_seed: u64,
    short_seed: u64,
    lengths: ValueLengths,
    /// The distribution that every write draws its length from, and the greatest length in bytes; `None` where lengths belong
    /// to keys.
    fresh: Option<(Dist, u64)>,
    /// Counters may fall below 0.
    has_signed_counters: bool,
    /// The byte that all bytes of values are; `None` where they have frames.
    filler: Option<u8>,
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
    /// The values of this data.
    ///
    /// # Errors
    /// Returns [`ValueTooLarge`] when values may become larger than [`VALUE_MAX_BYTES`].
    pub fn new(data: &Data) -> Result<ValueMaker, ValueTooLarge> {
        ValueMaker::reaching(data, 0)
    }

    /// The values of this data, beside values of up to `least_bytes`, which a trace may have.
    ///
    /// # Errors
    /// Returns [`ValueTooLarge`] when values may become larger than [`VALUE_MAX_BYTES`].
    pub fn reaching(data: &Data, least_bytes: u64) -> Result<ValueMaker, ValueTooLarge> {
        let reaches_bytes = reached(data, least_bytes)?;
        Ok(ValueMaker {
            bodies: Bodies::new(mix(&[data.seed, BODIES]), data.value_compress).filled_with(data.filler()),
            zeros: Arc::default(),
            write_seed: mix(&[data.seed, WRITE_HASHES]),
            short_seed: mix(&[data.seed, SHORTS]),
            lengths: ValueLengths::reaching(data, reaches_bytes),
            fresh: (data.style.values == ValueStyle::Fresh).then(|| (data.value_size.clone(), reaches_bytes)),
            has_signed_counters: false,
            filler: data.filler(),
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

    /// Makes room for values of up to `len_bytes` digits 0, for [`ValueMaker::zeros`].
    pub fn of_zeros(self, len_bytes: u64) -> ValueMaker {
        ValueMaker { zeros: vec![b'0'; len_bytes as usize].into(), ..self }
    }

    /// A value of `len_bytes` digits 0, at most as many as there is room for.
    pub fn zeros(&self, len_bytes: usize) -> Value<'_> {
        let zeros = &self.zeros[..len_bytes];
        let (own, bytes) = zeros.split_at(len_bytes.min(ZEROS_OWN_BYTES));
        Value { own, rest: Rest::Text { bytes, at: own.len() } }
    }

    /// The ranges of indexes.
    pub fn spaces(&self) -> Spaces {
        self.lengths.spaces
    }

    /// The sources of long parts of values.
    #[inline]
    pub fn sources(&self) -> Sources<'_> {
        Sources { text: &self.zeros, bodies: &self.bodies }
    }

    /// The bodies of the values.
    #[inline]
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.bodies
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
    /// room for the first bytes.
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
        if let Some(byte) = self.filler {
            *own = [byte; HEADER_BYTES];
            let len_bytes = match len_bytes.checked_sub(HEADER_BYTES) {
                None => return Value::plain(&own[..len_bytes]),
                Some(len_bytes) => len_bytes,
            };
            return Value { own, rest: Rest::Body { bodies: &self.bodies, seed: 0, len_bytes } };
        }
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
        let rest =
            Rest::Body { bodies: &self.bodies, seed: hash.body_seed(), len_bytes: len_bytes - HEADER_BYTES };
        Value { own, rest }
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
}

/// Hash of (data seed, key index, version).
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteHash(u64);

impl WriteHash {
    /// Seed of the body behind the frame's header.
    #[inline]
    pub(crate) fn body_seed(self) -> u64 {
        self.0
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
        let [version_pad, rest_pad] = pads(self.tag);
        let rest = (u64::from(self.magic) << 32) | u64::from(self.len_bytes);
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.tag.to_le_bytes());
        bytes[8..16].copy_from_slice(&(self.version.0 ^ version_pad).to_le_bytes());
        bytes[16..].copy_from_slice(&(rest ^ rest_pad).to_le_bytes());
        bytes
    }

    #[inline]
    pub(crate) fn from_bytes(bytes: &HeaderBuffer) -> FrameHeader {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, rest @ ..] = *bytes;
        let tag = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let [version_pad, rest_pad] = pads(tag);
        let rest = u64::from_le_bytes(rest) ^ rest_pad;
        FrameHeader {
            tag,
            version: Version(u64::from_le_bytes([i, j, k, l, m, n, o, p]) ^ version_pad),
            len_bytes: rest as u32,
            magic: (rest >> 32) as u32,
        }
    }
}

/// The words that the version, and the length and the magic number, of a frame with this tag are combined with.
#[inline]
fn pads(tag: u64) -> [u64; 2] {
    let first = scramble(tag);
    [first, scramble(first)]
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
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
            style: crate::plan::Style::default(),
        }
    }

    fn maker(value_size: Dist) -> ValueMaker {
        ValueMaker::new(&data(value_size)).unwrap()
    }

    #[test]
    fn a_value_is_a_header_and_the_beginning_of_a_body() {
        let values = maker(Dist::Fixed(200.0));
        let version = Version::new(5, 77);
        let mut own = [0; HEADER_BYTES];
        let value = values.value(3, version, &mut own).to_vec();
        let (header, body) = value.split_first_chunk().expect("a header");
        let header = FrameHeader::from_bytes(header);
        assert_eq!((header.version, header.len_bytes, header.magic), (version, 200, MAGIC));
        assert_eq!(body.len(), 176);
        let seed = values.write_hash(3, version).body_seed();
        assert!(values.bodies().reads(seed, 0, body));
    }

    #[test]
    fn filled_values_are_one_byte_throughout_but_counters_are_digits() {
        let data = Data { value_filler: Some('x'), ..data(Dist::Uniform { low: 0.0, high: 9_000.0 }) };
        let values = ValueMaker::new(&data).unwrap();
        let mut own = [0; HEADER_BYTES];
        for space in [Space::Plain, Space::Pieces, Space::Hashes, Space::Commands] {
            for record in 0..200 {
                let index = values.spaces().index(space, record);
                let value = values.value(index, Version::new(1, 2), &mut own);
                assert_eq!(value.to_vec(), vec![b'x'; values.len_of(index)]);
            }
        }
        assert_eq!(values.value_of_len(0, Version::LOADED, 24, &mut own).to_vec(), [b'x'; 24]);
        let counter = values.spaces().index(Space::Counters, 7);
        assert_eq!(values.value(counter, Version::LOADED, &mut own).to_vec(), COUNTER);
    }

    #[test]
    fn tags_and_bodies_depend_on_all_that_they_should() {
        let values = maker(Dist::Fixed(200.0));
        let other_seed = ValueMaker::new(&Data { seed: 1, ..data(Dist::Fixed(200.0)) }).unwrap();
        let value = |values: &ValueMaker, index, version, len| {
            let mut own = [0; HEADER_BYTES];
            let mut header = values.value_of_len(index, version, len, &mut own).to_vec();
            let body = header.split_off(HEADER_BYTES);
            (header, body)
        };
        let version = Version::new(1, 1);
        let (header, body) = value(&values, 3, version, 200);
        let same = |one: &[u8], two: &[u8]| one.iter().zip(two).filter(|(one, two)| one == two).count();
        for (other_header, other_body) in [
            value(&values, 4, version, 200),
            value(&values, 3, Version::new(1, 2), 200),
            value(&values, 3, Version::new(2, 1), 200),
            value(&values, 3, Version::LOADED, 200),
            value(&other_seed, 3, version, 200),
        ] {
            assert!(same(&other_header, &header) < 4, "headers do not read alike");
            assert!(same(&other_body, &body) < 10, "nor do the bytes behind them");
        }
        let (shorter_header, shorter_body) = value(&values, 3, version, 199);
        assert_ne!(shorter_header[..8], header[..8]);
        assert_eq!(shorter_body, body[..175]);
    }

    #[test]
    fn values_are_the_same_whatever_the_largest_one_is() {
        let (small, large) = (maker(Dist::Fixed(100.0)), maker(Dist::Fixed(1_000_000.0)));
        let (mut one, mut two) = ([0; HEADER_BYTES], [0; HEADER_BYTES]);
        for index in 0..100 {
            let from_small = small.value(index, Version::LOADED, &mut one).to_vec();
            assert_eq!(from_small, large.value_of_len(index, Version::LOADED, 100, &mut two).to_vec());
        }
    }

    #[test]
    fn a_stream_of_values_is_compressed_as_far_as_asked_for_and_otherwise_not_at_all() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let ratio = |compress: f64, size: f64, values: &dyn Fn(u64) -> (u64, Version)| {
            let made = ValueMaker::new(&Data {
                records: 100_000,
                value_compress: compress,
                ..data(Dist::Fixed(size))
            })
            .unwrap();
            let mut gzip = GzEncoder::new(Vec::new(), Compression::new(2));
            let (mut own, mut written) = ([0; HEADER_BYTES], 0);
            for number in 0..(1_000_000.0 / size) as u64 {
                let (index, version) = values(number);
                let value = made.value_of_len(index, version, size as usize, &mut own).to_vec();
                gzip.write_all(&value).unwrap();
                written += value.len();
            }
            written as f64 / gzip.finish().unwrap().len() as f64
        };
        let of_each = |number: u64| (number, Version::LOADED);
        let of_one = |number: u64| (7, Version::new(3, number + 1));
        for size in [24.0, 100.0, 200.0, 4_096.0, 500_000.0] {
            assert!(ratio(1.0, size, &of_each) < 1.001, "values of {size} bytes");
            assert!(ratio(1.0, size, &of_one) < 1.001, "versions of {size} bytes");
        }
        for asked in [1.5, 2.0, 3.0, 4.0] {
            let got = ratio(asked, 4_096.0, &of_each);
            assert!((got / asked - 1.0).abs() < 0.15, "{asked} : 1 was asked for, and {got} : 1 came");
        }
    }

    #[test]
    fn values_too_short_for_a_header_begin_alike_at_every_write() {
        let values = maker(Dist::Fixed(23.0));
        let (mut one, mut two) = ([0; HEADER_BYTES], [0; HEADER_BYTES]);
        let first = values.value(3, Version::LOADED, &mut one).to_vec();
        assert_eq!(first.len(), 23);
        assert_eq!(first, values.value(3, Version::new(1, 1), &mut two).to_vec());
        assert_eq!(first[..9], values.value_of_len(3, Version::LOADED, 9, &mut two).to_vec());
        assert_ne!(first, values.value(4, Version::LOADED, &mut two).to_vec());
        assert!(values.value_of_len(3, Version::LOADED, 0, &mut two).is_empty());
    }

    #[test]
    fn a_tail_without_end_is_cut_about_where_a_run_would_meet_it() {
        let largest = largest(&Dist::EtcValue);
        assert!((1 << 19..=2 << 20).contains(&largest), "a tail without end is cut at {largest} bytes");
    }

    #[test]
    fn values_have_the_lengths_that_belong_to_them() {
        for sizes in [Dist::Uniform { low: 0.0, high: 300.0 }, Dist::Fixed(100_000.0)] {
            let values = maker(sizes);
            let mut own = [0; HEADER_BYTES];
            for index in 0..3000 {
                assert_eq!(values.value(index, Version::LOADED, &mut own).len(), values.len_of(index));
            }
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
