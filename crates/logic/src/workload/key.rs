//! Keys: the prefix and a zero-padded index, with a length that belongs to the index.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::client::route::crc16::crc16_behind;
pub use crate::decimal::DIGITS;
use crate::decimal::{decimal, digits_in};
use crate::plan::{Data, KeyStyle};
use crate::rng::mix;
use crate::workload::slot_records::{SlotRecords, numbers_of_space};
pub use crate::workload::space::{Space, Spaces};
use crate::workload::stable_size::StableSize;

/// Longest key that memcached's protocol document allows, in bytes.
pub const KEY_MAX_BYTES: usize = 250;

/// Room for any key.
pub type KeyBuffer = [u8; KEY_MAX_BYTES];

/// The largest number that a key may have.
const NUMBER_MAX: u64 = 10u64.pow(DIGITS as u32) - 1;

/// Bytes around the number of a hash tag.
const TAG_FRAME_BYTES: usize = "{}".len();

/// First number of the keys that records get at the end of a life.
pub(crate) const RENEWED_FROM: u64 = 6_000_000_000_000_000;

/// Up to this length keys are copied in one piece of constant length.
const SHORT_BYTES: usize = 64;

/// Names the draws of key sizes among all draws from the data seed.
const KEY_SIZES: u64 = 0x6b65_7973;

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
///
/// Keys with a hash tag have it between the prefix and the padded index: the index divided by the number of records with the same tag, in
/// braces. Where the slots of the keys are chosen, a number takes the place of the index: the records have those numbers, in rising order,
/// whose keys lie in the slots.
///
/// Keys without zeros in front are the prefix and a number: the record's number in its space, counted from the first key on. Records of
/// all spaces have the same keys. An index behind all spaces is the number itself.
#[derive(Clone, Debug)]
pub struct KeyMaker {
    /// The prefix, then zeros: what a key looks like before its digits are written.
    template: Box<KeyBuffer>,
    prefix_len: usize,
    /// Lengths of the keys; where they have a form of their own, the length of the prefix, which leaves no room for digits.
    len: StableSize,
    spaces: Spaces,
    /// The first number that is no index of a usual key: 0 where keys have a form of their own.
    usual_end: u64,
    /// The form of keys with tags, of those whose slots are chosen, and of those without zeros in front.
    form: Option<Arc<KeyForm>>,
}

/// A form of keys that is not the usual one.
#[derive(Debug)]
enum KeyForm {
    Padded(PaddedForm),
    /// No zeros in front; the number in the key of record 0.
    Unpadded(u64),
}

/// The form of keys with tags, and of those whose slots are chosen.
#[derive(Debug)]
struct PaddedForm {
    len: StableSize,
    /// Number of neighbouring records with the same tag; `None` where keys have none.
    tag: Option<u64>,
    /// The numbers of the keys in the chosen slots; `None` for all slots.
    slots: Option<SlotRecords>,
}

impl KeyMaker {
    /// The keys of this data in all spaces.
    ///
    /// # Errors
    /// Returns [`PrefixTooLong`] when the prefix leaves no room for the largest index.
    pub fn new(data: &Data) -> Result<KeyMaker, PrefixTooLong> {
        KeyMaker::of_spaces(data, &Space::ALL)
    }

    /// The keys of this data, of which those in these spaces are made. Only where the slots of the keys are chosen, others cannot be made:
    /// to find them takes time and memory.
    ///
    /// # Errors
    /// Returns [`PrefixTooLong`] when the prefix leaves no room for the largest index.
    pub fn of_spaces(data: &Data, made: &[Space]) -> Result<KeyMaker, PrefixTooLong> {
        let spaces = Spaces::new(data.records);
        let suffix = suffix_bytes(data);
        let prefix = data.key_prefix.as_bytes();
        let max_bytes = KEY_MAX_BYTES - suffix;
        if prefix.len() > max_bytes {
            return Err(PrefixTooLong { len_bytes: prefix.len(), max_bytes });
        }
        let mut template = Box::new([b'0'; KEY_MAX_BYTES]);
        template[..prefix.len()].copy_from_slice(prefix);
        let len_min = (prefix.len() + suffix) as u64;
        let len = match data.style.keys {
            KeyStyle::Drawn => {
                StableSize::new(&data.key_size, mix(&[data.seed, KEY_SIZES]), len_min, KEY_MAX_BYTES as u64)
            }
            KeyStyle::Fnv => {
                let dist = data.key_size.clone();
                let before = prefix.len() as u64;
                StableSize::hashed(dist, before, len_min, KEY_MAX_BYTES as u64)
            }
            KeyStyle::Unpadded => StableSize::Fixed(prefix.len() as u64),
        };
        let usual =
            KeyMaker { template, prefix_len: prefix.len(), len, spaces, usual_end: spaces.end(), form: None };
        if data.style.keys == KeyStyle::Unpadded {
            let form = Arc::new(KeyForm::Unpadded(data.first_key));
            return Ok(KeyMaker { usual_end: 0, form: Some(form), ..usual });
        }
        if data.key_tag.is_none() && data.slots.is_empty() {
            return Ok(usual);
        }
        let slots = (!data.slots.is_empty()).then(|| usual.find(data, made));
        let form = KeyForm::Padded(PaddedForm { len: usual.len, tag: data.key_tag, slots });
        let len = StableSize::Fixed(prefix.len() as u64);
        Ok(KeyMaker { len, usual_end: 0, form: Some(Arc::new(form)), ..usual })
    }

    /// Finds the keys of these spaces that lie in the chosen slots.
    fn find(&self, data: &Data, made: &[Space]) -> SlotRecords {
        let behind = |crc: u16| move |zeros: usize| crc16_behind(crc, &[b'0'; KEY_MAX_BYTES][..zeros]);
        let digits: Vec<u16> = (0..=DIGITS).map(behind(0)).collect();
        let whole: Vec<u16> =
            (0..=KEY_MAX_BYTES - self.prefix_len).map(behind(crc16_behind(0, self.prefix()))).collect();
        match data.key_tag {
            Some(_) => SlotRecords::find(data, made, |_, number| digits[digits_in(number)]),
            None => SlotRecords::find(data, made, |index, _| whole[self.len_of(index) - self.prefix_len]),
        }
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
        let len = match self.form.as_deref() {
            None => &self.len,
            Some(KeyForm::Padded(form)) => &form.len,
            Some(&KeyForm::Unpadded(first)) => {
                return self.prefix_len + digits_in(self.unpadded_number(first, index));
            }
        };
        len.of(index) as usize
    }

    /// The first index that has the same key as this one.
    pub(crate) fn first_with_key(&self, index: u64) -> u64 {
        match self.form.as_deref() {
            Some(KeyForm::Unpadded(_)) if index < self.spaces.end() => self.spaces.record(index),
            _ => index,
        }
    }

    /// The number in the key of this index where keys have no zeros in front and record 0 has the number `first`.
    fn unpadded_number(&self, first: u64, index: u64) -> u64 {
        if index < self.spaces.end() { first + self.spaces.record(index) } else { index }
    }

    /// Number of neighbouring records with the same hash tag; `None` where keys have none.
    pub fn tag(&self) -> Option<u64> {
        match self.form.as_deref()? {
            KeyForm::Padded(form) => form.tag,
            KeyForm::Unpadded(_) => None,
        }
    }

    /// Writes a key at the beginning of `out` and returns it.
    #[inline(always)]
    pub fn key<'b>(&self, index: u64, out: &'b mut KeyBuffer) -> &'b [u8] {
        let len = self.len.of(index) as usize;
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
        } else if index < self.usual_end {
            out[len - room..len].copy_from_slice(&digits[DIGITS - room..]);
        } else {
            return self.unusual_key(index, &digits, out);
        }
        &out[..len]
    }

    /// Writes a key that has a form of its own, or that of an index behind all spaces where keys are shorter than its digits: that key is
    /// as long as it needs.
    fn unusual_key<'b>(&self, index: u64, digits: &[u8; DIGITS], out: &'b mut KeyBuffer) -> &'b [u8] {
        match self.form.as_deref() {
            None => {}
            Some(KeyForm::Padded(form)) => return self.formed_key(form, index, out),
            Some(&KeyForm::Unpadded(first)) => return self.unpadded_key(first, index, out),
        }
        let key = &mut out[..self.prefix_len + DIGITS];
        key[..self.prefix_len].copy_from_slice(self.prefix());
        key[self.prefix_len..].copy_from_slice(digits);
        key
    }

    /// Writes a key without zeros in front of its number; the prefix is in its place.
    fn unpadded_key<'b>(&self, first: u64, index: u64, out: &'b mut KeyBuffer) -> &'b [u8] {
        let number = self.unpadded_number(first, index);
        let written = digits_in(number);
        let key = &mut out[..self.prefix_len + written];
        key[self.prefix_len..].copy_from_slice(&decimal(number)[DIGITS - written..]);
        key
    }

    /// Writes a key with a tag, or in a chosen slot.
    fn formed_key<'b>(&self, form: &PaddedForm, index: u64, out: &'b mut KeyBuffer) -> &'b [u8] {
        let is_record = index < self.spaces.end();
        let number = match &form.slots {
            Some(slots) if is_record => slots.number(self.spaces.space(index), self.spaces.record(index)),
            _ => index,
        };
        out[..self.prefix_len].copy_from_slice(self.prefix());
        let mut at = self.prefix_len;
        if let Some(together) = form.tag {
            let tag = number / together;
            let tag = &decimal(tag)[DIGITS - digits_in(tag)..];
            out[at] = b'{';
            out[at + 1..][..tag.len()].copy_from_slice(tag);
            out[at + 1 + tag.len()] = b'}';
            at += tag.len() + TAG_FRAME_BYTES;
        }
        let room = (form.len.of(index) as usize).saturating_sub(at);
        let room = if is_record { room } else { room.max(DIGITS) };
        let (key, written) = (&mut out[..at + room], room.min(DIGITS));
        let (zeros, digits) = key[at..].split_at_mut(room - written);
        zeros.fill(b'0');
        digits.copy_from_slice(&decimal(number)[DIGITS - written..]);
        key
    }

    /// The index of a key without a tag and in no chosen slot, of several with one key that of the plain record; `None` for everything that [`KeyMaker::key`] never writes.
    pub fn index_of(&self, key: &[u8]) -> Option<u64> {
        let (prefix, digits) = key.split_at_checked(self.prefix_len)?;
        if prefix != &self.template[..self.prefix_len] {
            return None;
        }
        if let Some(&KeyForm::Unpadded(first)) = self.form.as_deref() {
            return self.unpadded_index(first, digits);
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

    /// The index of the plain record whose key is the prefix and these digits, where keys have no zeros in front.
    fn unpadded_index(&self, first: u64, digits: &[u8]) -> Option<u64> {
        let number: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
        let record = number.checked_sub(first).filter(|record| *record < self.spaces.records())?;
        (decimal(number)[DIGITS - digits_in(number)..] == *digits).then_some(record)
    }
}

/// The largest number of a key of a record: the largest index of all spaces; where keys are mutilate's, which has plain records only,
/// the number of records; where slots are chosen, the largest number that is looked at; where keys have no zeros in front, that of the
/// last record.
fn largest_number(data: &Data) -> u64 {
    match data.style.keys {
        KeyStyle::Fnv => data.records,
        KeyStyle::Unpadded => data.first_key.saturating_add(data.records) - 1,
        KeyStyle::Drawn if data.slots.is_empty() => Spaces::new(data.records).end() - 1,
        KeyStyle::Drawn => {
            let numbers = numbers_of_space(data).unwrap_or(data.records);
            Space::COUNT as u64 * numbers * data.key_tag.unwrap_or(1) - 1
        }
    }
}

/// Digits that every key of this data has room for: those of the largest number.
pub fn digits_of(data: &Data) -> usize {
    digits_in(largest_number(data))
}

/// Bytes of the longest hash tag of this data's records with its braces, and of a key that is no record's; 0 where keys have none.
pub fn tag_bytes(data: &Data) -> (usize, usize) {
    let of = |number: u64| data.key_tag.map_or(0, |together| digits_in(number / together) + TAG_FRAME_BYTES);
    (of(largest_number(data)), of(NUMBER_MAX))
}

/// Bytes that every key of this data has room for behind its prefix: the tag, and the digits.
fn suffix_bytes(data: &Data) -> usize {
    digits_of(data) + tag_bytes(data).0
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::{any, proptest};
    use proptest::{prop_assert, prop_assert_eq};

    use super::*;
    use crate::client::route::crc16::slot;
    use crate::dist::Dist;
    use crate::plan::Style;
    use crate::workload::stable_size::fnv;
    use crate::workload::unstored::ABSENT_FROM;

    fn data(records: u64, prefix: &str, key_size: Dist) -> Data {
        Data {
            records,
            seed: 0,
            key_prefix: prefix.to_string(),
            key_size,
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
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

    fn tagged(data: Data, key_tag: u64, slots: &str) -> Data {
        let slots = slots.split_terminator(',').map(|range| range.parse().unwrap()).collect();
        Data { key_tag: Some(key_tag).filter(|tag| *tag > 0), slots, ..data }
    }

    #[test]
    fn a_tag_stands_between_the_prefix_and_the_index_and_neighbours_share_it() {
        let keys = KeyMaker::new(&tagged(data(10_000, "user:", Dist::Fixed(24.0)), 10, "")).unwrap();
        assert_eq!(keys.tag(), Some(10));
        for (index, key) in [
            (0, "user:{0}0000000000000000"),
            (9, "user:{0}0000000000000009"),
            (10, "user:{1}0000000000000010"),
            (49_999, "user:{4999}0000000049999"),
        ] {
            assert_eq!(text(&keys, index), key);
            assert_eq!(keys.len_of(index), key.len());
        }
        // A key that is no record's is as long as it needs.
        assert_eq!(text(&keys, ABSENT_FROM + 25), "user:{100000000000002}1000000000000025");
        let short = KeyMaker::new(&tagged(data(10_000, "p", Dist::Fixed(1.0)), 1, "")).unwrap();
        assert_eq!(text(&short, 7), "p{7}000000007", "lengths are cut to what the largest index needs");
        assert_eq!(text(&short, 49_999), "p{49999}49999");
    }

    #[test]
    fn a_prefix_that_leaves_no_room_for_the_tag_is_refused() {
        let longest = tagged(data(10_000, &"x".repeat(239), Dist::Fixed(30.0)), 10, "");
        assert_eq!(text(&KeyMaker::new(&longest).unwrap(), 49_999).len(), KEY_MAX_BYTES);
        let longer = tagged(data(10_000, &"x".repeat(240), Dist::Fixed(30.0)), 10, "");
        let refused = KeyMaker::new(&longer).unwrap_err();
        assert_eq!(refused, PrefixTooLong { len_bytes: 240, max_bytes: 239 });
    }

    #[test]
    fn records_in_chosen_slots_have_the_numbers_of_the_first_keys_that_lie_there() {
        let usual = maker(10_000, "user:", Dist::Fixed(30.0));
        let chosen =
            KeyMaker::new(&tagged(data(1_000, "user:", Dist::Fixed(30.0)), 0, "0-99,8000-13000")).unwrap();
        let is_in = |key: &str| matches!(slot(key.as_bytes()), 0..=99 | 8_000..=13_000);
        let first = (0..10_000).map(|index| text(&usual, index)).filter(|key| is_in(key));
        let records = (0..1_000).map(|index| text(&chosen, index));
        assert!(first.take(1_000).eq(records), "the keys are those of a run without slots");
    }

    proptest! {
        #[test]
        fn every_key_lies_in_the_slots_and_is_no_other_record_s(
            records in 1..400u64,
            key_tag in 0..20u64,
            low in 0..16_384u16,
            width in 0..3_000u16,
            other in 0..16_384u16,
            prefix in "[a-z0-9}]{0,6}",
            longest in 30..60u32,
        ) {
            let high = low.saturating_add(width).min(16_383);
            let other = if (low..=high).contains(&other) { high } else { other };
            let slots = if other == high { format!("{low}-{high}") } else { format!("{low}-{high},{other}") };
            let sizes = Dist::Uniform { low: 1.0, high: longest.into() };
            let data = tagged(data(records, &prefix, sizes), key_tag, &slots);
            let keys = KeyMaker::new(&data).unwrap();
            let mut seen = HashSet::new();
            for index in 0..keys.spaces().end() {
                let key = text(&keys, index);
                let slot_of = slot(key.as_bytes());
                prop_assert!((low..=high).contains(&slot_of) || slot_of == other, "{key} has slot {slot_of}");
                prop_assert_eq!(key.len(), keys.len_of(index));
                let first = index - keys.spaces().record(index) % key_tag.max(1);
                prop_assert_eq!(slot_of, slot(text(&keys, first).as_bytes()), "records of a tag have one slot");
                prop_assert!(seen.insert(key), "the key of {} is another's too", index);
            }
        }
    }

    #[test]
    fn keys_in_slots_are_made_for_the_spaces_that_are_asked_for_and_are_the_same_ones() {
        let data = tagged(data(100, "", Dist::Fixed(30.0)), 7, "16383");
        let (all, hashes) =
            (KeyMaker::new(&data).unwrap(), KeyMaker::of_spaces(&data, &[Space::Hashes]).unwrap());
        for record in 0..100 {
            let index = all.spaces().index(Space::Hashes, record);
            assert_eq!(text(&all, index), text(&hashes, index));
        }
    }

    proptest! {
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

    fn unpadded(records: u64, first_key: u64, prefix: &str) -> KeyMaker {
        let style = Style { keys: KeyStyle::Unpadded, ..Style::default() };
        KeyMaker::new(&Data { first_key, style, ..data(records, prefix, Dist::Fixed(30.0)) }).unwrap()
    }

    #[test]
    fn keys_without_zeros_are_the_prefix_and_the_number_and_all_spaces_have_the_same_ones() {
        let keys = unpadded(1_000, 95, "memtier-");
        for (record, key) in [(0, "memtier-95"), (4, "memtier-99"), (5, "memtier-100"), (999, "memtier-1094")]
        {
            for space in Space::ALL {
                let index = keys.spaces().index(space, record);
                assert_eq!(text(&keys, index), key);
                assert_eq!(keys.len_of(index), key.len());
                assert_eq!(keys.first_with_key(index), record);
            }
            assert_eq!(keys.index_of(key.as_bytes()), Some(record));
        }
        for stranger in ["memtier-", "memtier-94", "memtier-1095", "memtier-095", "memtier-+95", "95"] {
            assert_eq!(keys.index_of(stranger.as_bytes()), None, "{stranger}");
        }
        assert_eq!(text(&unpadded(1, 0, ""), 4), "0");
        assert_eq!(text(&keys, ABSENT_FROM + 7), "memtier-1000000000000007", "a key that no record has");
        assert_eq!(keys.first_with_key(ABSENT_FROM + 7), ABSENT_FROM + 7);
        let longest = unpadded(10, 5_999_999_999_999_990, &"x".repeat(234));
        assert_eq!(text(&longest, 9).len(), KEY_MAX_BYTES);
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
