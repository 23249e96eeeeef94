//! Checks values as they pass, in pieces of any size, without keeping them.

use serde::{Deserialize, Serialize};

use crate::workload::key::Space;
use crate::workload::value::{
    COUNTER_MAX_BYTES, FrameHeader, HEADER_BYTES, HeaderBuffer, MAGIC, ValueMaker, Version,
};

/// Damage of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Damage {
    /// The value does not carry the mark of a frame, or not the first bytes that the mark is read with.
    Magic,
    /// The value's tag does not fit: the header was changed, or the value is another key's or that of other data.
    Tag,
    /// The value is longer or shorter than its frames say.
    Length,
    /// A byte behind the header differs from what was written.
    Bytes,
    /// The value is too short for a frame, and not the beginning of this key's short values.
    Prefix,
    /// The value is not a number of 64 bits followed by spaces.
    Counter,
}

/// Result of the check of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueVerdict {
    /// A whole write of this key, by any process with this data seed.
    Good(Version),
    /// Whole pieces of this key. A piece that is missing or there twice cannot be seen.
    Pieces,
    /// A number. Whether it is the right number cannot be seen.
    Counter,
    /// Too short for a frame: its bytes are right as far as they go. That it is older than it should be, or that its
    /// end is missing, cannot be seen.
    Short,
    /// A value that was not written so.
    Bad(Damage),
}

/// The check of one value while its bytes are received.
///
/// The tag is computed anew with the key that was *asked for*: any whole write of that key by any process with this
/// data seed is good, in whatever order writes came; a changed bit, a cut value and another key's value are not. Where
/// this data's value for the key would be a frame, an empty value is a cut one.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    index: u64,
    /// Bytes of the value that are still to come.
    left: u64,
    /// Bytes of the frame whose header was read that are still to come.
    frame_left: u64,
    /// Seed of the frame's body.
    body_seed: u64,
    /// Place in the body of the next byte.
    body_at: u64,
    version: Version,
    /// Bytes that had to be kept because they mean something only together.
    kept: HeaderBuffer,
    kept_len: u8,
    form: Form,
    damage: Option<Damage>,
}

/// The form that a value should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Frame,
    Pieces,
    Counter,
    Short,
}

impl Check {
    /// Begins the check of a value of `size` bytes that was asked for with the key of `index`.
    pub fn begin(values: &ValueMaker, index: u64, size: u64) -> Check {
        let short = size < HEADER_BYTES as u64;
        let is_cut = size == 0 && values.len_of(index) >= HEADER_BYTES;
        let (form, damage) = match values.spaces().space(index) {
            Space::Plain | Space::Hashes | Space::Commands if !short => (Form::Frame, None),
            Space::Plain | Space::Hashes | Space::Commands => (Form::Short, is_cut.then_some(Damage::Length)),
            Space::Pieces => (Form::Pieces, short.then_some(Damage::Length)),
            Space::Counters => {
                let fits = (1..=COUNTER_MAX_BYTES as u64).contains(&size);
                (Form::Counter, (!fits).then_some(Damage::Counter))
            }
        };
        Check {
            index,
            left: size,
            frame_left: 0,
            body_seed: 0,
            body_at: 0,
            version: Version::LOADED,
            kept: [0; HEADER_BYTES],
            kept_len: 0,
            form,
            damage,
        }
    }

    /// Checks some of the value's bytes.
    #[inline]
    pub fn body(&mut self, values: &ValueMaker, mut bytes: &[u8]) {
        if bytes.len() as u64 > self.left {
            self.damage.get_or_insert(Damage::Length);
        }
        while !bytes.is_empty() && self.damage.is_none() {
            let taken = if self.frame_left > 0 {
                self.frame_bytes(values, bytes)
            } else {
                self.header_bytes(values, bytes)
            };
            bytes = &bytes[taken..];
            self.left -= taken as u64;
        }
        self.left = self.left.saturating_sub(bytes.len() as u64);
    }

    /// Ends the value, and returns what is wrong or right with it.
    pub fn end(self, values: &ValueMaker) -> ValueVerdict {
        if let Some(damage) = self.damage {
            return ValueVerdict::Bad(damage);
        }
        let kept = &self.kept[..usize::from(self.kept_len)];
        match self.form {
            _ if self.left > 0 || self.frame_left > 0 => ValueVerdict::Bad(Damage::Length),
            Form::Frame => ValueVerdict::Good(self.version),
            Form::Pieces if kept.is_empty() => ValueVerdict::Pieces,
            Form::Pieces => ValueVerdict::Bad(Damage::Length),
            Form::Counter if is_counter(kept, values.has_signed_counters()) => ValueVerdict::Counter,
            Form::Counter => ValueVerdict::Bad(Damage::Counter),
            Form::Short if values.short(self.index).starts_with(kept) => ValueVerdict::Short,
            Form::Short => ValueVerdict::Bad(Damage::Prefix),
        }
    }

    /// Compares bytes behind a header with the body; returns how many.
    #[inline]
    fn frame_bytes(&mut self, values: &ValueMaker, bytes: &[u8]) -> usize {
        let count = self.frame_left.min(bytes.len() as u64) as usize;
        if !values.bodies().reads(self.body_seed, self.body_at, &bytes[..count]) {
            self.damage = Some(Damage::Bytes);
        }
        self.body_at += count as u64;
        self.frame_left -= count as u64;
        count
    }

    /// Keeps bytes until they make a header, which is then judged; returns how many. Short values and counters never
    /// get that far and are judged at the end.
    #[inline]
    fn header_bytes(&mut self, values: &ValueMaker, bytes: &[u8]) -> usize {
        let have = usize::from(self.kept_len);
        let count = bytes.len().min(HEADER_BYTES - have);
        self.kept[have..have + count].copy_from_slice(&bytes[..count]);
        self.kept_len += count as u8;
        if usize::from(self.kept_len) == HEADER_BYTES {
            self.kept_len = 0;
            self.header(values, self.left - count as u64);
        }
        count
    }

    /// Judges a whole header, behind which the value has `left` bytes.
    #[inline]
    fn header(&mut self, values: &ValueMaker, left: u64) {
        let header = FrameHeader::from_bytes(&self.kept);
        let body = u64::from(header.len_bytes).checked_sub(HEADER_BYTES as u64);
        let hash = values.write_hash(self.index, header.version);
        self.damage = match body {
            _ if header.magic != MAGIC => Some(Damage::Magic),
            _ if header.tag != hash.tag(header.len_bytes) => Some(Damage::Tag),
            Some(body) if body == left || self.form == Form::Pieces && body < left => None,
            _ => Some(Damage::Length),
        };
        self.version = header.version;
        self.frame_left = body.unwrap_or(0);
        (self.body_seed, self.body_at) = (hash.body_seed(), 0);
    }
}

/// Whether bytes are a number of 64 bits, as memcached writes it, and then only spaces; or, where counters are signed, a
/// number below 0 as Redis writes it.
fn is_counter(bytes: &[u8], signed: bool) -> bool {
    if let (true, Some((b'-', digits))) = (signed, bytes.split_first()) {
        let plain = digits.first().is_some_and(|first| (b'1'..=b'9').contains(first));
        return plain && std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok());
    }
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = bytes.split_at(digits);
    let fits =
        number.iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    let plain = digits > 0 && (number[0] != b'0' || digits == 1);
    plain && fits.is_some() && rest.iter().all(|&byte| byte == b' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, proptest};
    use proptest::{collection, prop_assert, prop_assert_eq};

    use super::*;
    use crate::dist::Dist;
    use crate::plan::{Data, Style};
    use crate::workload::value::COUNTER;

    const RECORDS: u64 = 1000;
    const PIECES: u64 = RECORDS;
    const COUNTERS: u64 = 2 * RECORDS;

    fn maker_with_seed(seed: u64, value_bytes: f64) -> ValueMaker {
        ValueMaker::new(&Data {
            records: RECORDS,
            seed,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size: Dist::Fixed(value_bytes),
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
            style: Style::default(),
        })
        .unwrap()
    }

    fn maker(value_bytes: f64) -> ValueMaker {
        maker_with_seed(0, value_bytes)
    }

    fn written(values: &ValueMaker, index: u64, version: Version) -> Vec<u8> {
        written_of_len(values, index, version, values.len_of(index))
    }

    fn written_of_len(values: &ValueMaker, index: u64, version: Version, len: usize) -> Vec<u8> {
        let mut own = [0; HEADER_BYTES];
        values.value_of_len(index, version, len, &mut own).to_vec()
    }

    fn verdict_in_parts(values: &ValueMaker, index: u64, parts: &[&[u8]]) -> ValueVerdict {
        let mut check = Check::begin(values, index, parts.iter().map(|part| part.len() as u64).sum());
        for part in parts {
            check.body(values, part);
        }
        check.end(values)
    }

    fn verdict(values: &ValueMaker, index: u64, bytes: &[u8]) -> ValueVerdict {
        verdict_in_parts(values, index, &[bytes])
    }

    fn is_bad(verdict: ValueVerdict) -> bool {
        matches!(verdict, ValueVerdict::Bad(_))
    }

    #[test]
    fn every_whole_write_of_the_key_is_good_whoever_wrote_it() {
        let values = maker(200.0);
        for version in [Version::LOADED, Version::new(0, 1), Version::new(9, 5), Version(u64::MAX)] {
            for index in [0, 1, 999] {
                assert_eq!(
                    verdict(&values, index, &written(&values, index, version)),
                    ValueVerdict::Good(version)
                );
            }
        }
        for other_sizes in [24.0, 25.0, 300_000.0] {
            let other = maker(other_sizes);
            for index in 0..20 {
                let bytes = written(&other, index, Version::new(1, 1));
                assert_eq!(verdict(&values, index, &bytes), ValueVerdict::Good(Version::new(1, 1)));
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_value_is_seen() {
        let values = maker(60.0);
        let good = written(&values, 7, Version::new(3, 4));
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = verdict(&values, 7, &bytes);
            let expected = match bit / 8 {
                0..8 | 20..24 => Damage::Magic,
                8..20 => Damage::Tag,
                _ => Damage::Bytes,
            };
            assert_eq!(found, ValueVerdict::Bad(expected), "bit {bit}");
        }
    }

    #[test]
    fn flipped_bits_of_large_values_are_seen() {
        let values = maker(300_000.0);
        let mut bytes = written(&values, 7, Version::new(3, 4));
        let last = bytes.len() * 8 - 1;
        let far = maker(100.0);
        for bit in (0..last).step_by(9_973).chain([0, 24 * 8, last - 1, last]) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(is_bad(verdict(&values, 7, &bytes)), "bit {bit}");
            assert!(is_bad(verdict(&far, 7, &bytes)), "bit {bit}, beyond the reader's own block");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(verdict(&far, 7, &bytes), ValueVerdict::Good(Version::new(3, 4)));
    }

    #[test]
    fn cut_and_extended_values_are_bad() {
        let values = maker(60.0);
        let good = written(&values, 7, Version::new(3, 4));
        for len in 24..good.len() {
            assert_eq!(verdict(&values, 7, &good[..len]), ValueVerdict::Bad(Damage::Length), "cut to {len}");
        }
        for len in 4..24 {
            assert_eq!(verdict(&values, 7, &good[..len]), ValueVerdict::Bad(Damage::Prefix), "cut to {len}");
        }
        assert_eq!(verdict(&values, 7, &[]), ValueVerdict::Bad(Damage::Length));
        let longer = [&good[..], b"x"].concat();
        assert_eq!(verdict(&values, 7, &longer), ValueVerdict::Bad(Damage::Length));
        let twice = [&good[..], &good[..]].concat();
        assert_eq!(verdict(&values, 7, &twice), ValueVerdict::Bad(Damage::Length));
    }

    #[test]
    fn a_value_whose_bytes_never_came_is_bad() {
        let values = maker(60.0);
        let good = written(&values, 7, Version::LOADED);
        let mut check = Check::begin(&values, 7, 60);
        check.body(&values, &good[..59]);
        assert_eq!(check.end(&values), ValueVerdict::Bad(Damage::Length));
        check.body(&values, &good[59..]);
        assert_eq!(check.end(&values), ValueVerdict::Good(Version::LOADED));
        check.body(&values, b"x");
        assert_eq!(check.end(&values), ValueVerdict::Bad(Damage::Length));
    }

    #[test]
    fn the_value_of_another_key_or_data_seed_is_bad() {
        for size in [24.0, 200.0] {
            let values = maker(size);
            let version = Version::new(1, 2);
            for (from, to) in [(1, 2), (0, 999), (PIECES, 1), (1, PIECES)] {
                let bytes = written(&values, from, version);
                assert_eq!(verdict(&values, to, &bytes), ValueVerdict::Bad(Damage::Tag));
            }
            let stranger = written(&maker_with_seed(1, size), 1, version);
            assert_eq!(verdict(&values, 1, &stranger), ValueVerdict::Bad(Damage::Tag));
        }
    }

    #[test]
    fn a_value_mixed_from_two_writes_is_bad() {
        let values = maker(200.0);
        let (older, newer) =
            (written(&values, 1, Version::new(1, 1)), written(&values, 1, Version::new(1, 2)));
        for cut in 1..200 {
            assert!(
                is_bad(verdict_in_parts(&values, 1, &[&newer[..cut], &older[cut..]]))
                    || newer[..cut] == older[..cut]
                    || newer[cut..] == older[cut..]
            );
        }
        assert_eq!(
            verdict_in_parts(&values, 1, &[&newer[..100], &older[100..]]),
            ValueVerdict::Bad(Damage::Bytes)
        );
    }

    #[test]
    fn short_values_are_compared_as_far_as_they_go() {
        let values = maker(23.0);
        let good = written(&values, 1, Version::new(1, 1));
        assert_eq!(verdict(&values, 1, &good), ValueVerdict::Short);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verdict(&values, 1, &bytes), ValueVerdict::Bad(Damage::Prefix), "bit {bit}");
        }
        assert_eq!(verdict(&values, 2, &good), ValueVerdict::Bad(Damage::Prefix), "another key's");
        assert_eq!(verdict(&values, 1, &good[..10]), ValueVerdict::Short, "a cut that cannot be seen");
        assert_eq!(verdict(&values, 1, &[]), ValueVerdict::Short, "another");
        assert_eq!(
            verdict(&maker(200.0), 1, &good),
            ValueVerdict::Short,
            "a process with other sizes wrote it"
        );
    }

    #[test]
    fn pieces_are_good_in_any_order_and_number() {
        let values = maker(60.0);
        let piece =
            |count| written_of_len(&values, PIECES + 5, Version::new(1, count), 24 + count as usize % 50);
        let mut all: Vec<Vec<u8>> = (1..=40).map(piece).collect();
        assert_eq!(verdict(&values, PIECES + 5, &all.concat()), ValueVerdict::Pieces);
        all.reverse();
        all.rotate_left(13);
        assert_eq!(verdict(&values, PIECES + 5, &all.concat()), ValueVerdict::Pieces);
        assert_eq!(verdict(&values, PIECES + 5, &all[0]), ValueVerdict::Pieces);
        assert_eq!(verdict(&values, PIECES + 5, &[]), ValueVerdict::Bad(Damage::Length));
        all.insert(7, written(&values, PIECES + 6, Version::new(1, 7)));
        assert_eq!(verdict(&values, PIECES + 5, &all.concat()), ValueVerdict::Bad(Damage::Tag));
    }

    #[test]
    fn every_damage_to_pieces_is_seen() {
        let values = maker(60.0);
        let lens = [24, 40, 24, 31];
        let piece =
            |(i, &len): (usize, &usize)| written_of_len(&values, PIECES, Version::new(1, 1 + i as u64), len);
        let good: Vec<u8> = lens.iter().enumerate().flat_map(piece).collect();
        assert_eq!(verdict(&values, PIECES, &good), ValueVerdict::Pieces);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(is_bad(verdict(&values, PIECES, &bytes)), "bit {bit}");
        }
        let ends = [24, 64, 88, 119];
        for len in (0..good.len()).filter(|len| !ends.contains(len)) {
            assert!(is_bad(verdict(&values, PIECES, &good[..len])), "cut to {len}");
            assert!(
                is_bad(verdict(&values, PIECES, &good[good.len() - len..]))
                    || len == 31
                    || len == 55
                    || len == 95
            );
        }
        assert!(is_bad(verdict(&values, PIECES, &[&good[..], b"x"].concat())));
    }

    #[test]
    fn signed_counters_are_also_numbers_below_0() {
        let check = |signed: bool, text: &str| {
            let values = maker(60.0).with_signed_counters(signed);
            verdict(&values, COUNTERS + 1, text.as_bytes())
        };
        for good in ["-1", "-10", "-9223372036854775808"] {
            assert_eq!(check(true, good), ValueVerdict::Counter, "{good:?}");
            assert_eq!(check(false, good), ValueVerdict::Bad(Damage::Counter), "{good:?} on memcached");
        }
        assert_eq!(check(true, "18446744073709551615"), ValueVerdict::Counter);
        for bad in ["-", "-0", "-01", "-1 ", "--1", "-x", "-9223372036854775809"] {
            assert_eq!(check(true, bad), ValueVerdict::Bad(Damage::Counter), "{bad:?}");
        }
    }

    #[test]
    fn counters_are_numbers_and_spaces() {
        let values = maker(60.0);
        let check = |bytes: &[u8]| verdict(&values, COUNTERS + 1, bytes);
        for good in [
            "1000000000          ",
            "0",
            "7 ",
            "0                   ",
            "18446744073709551615",
            "999999999           ",
        ] {
            assert_eq!(check(good.as_bytes()), ValueVerdict::Counter, "{good:?}");
        }
        assert_eq!(check(COUNTER), ValueVerdict::Counter);
        for bad in [
            "",
            " ",
            " 1",
            "-1",
            "1 1",
            "1\r",
            "1x",
            "x",
            "01",
            "00",
            "1.5",
            "18446744073709551616",
            "99999999999999999999",
            "1                    ",
            "100000000000000000000",
        ] {
            assert_eq!(check(bad.as_bytes()), ValueVerdict::Bad(Damage::Counter), "{bad:?}");
        }
    }

    #[test]
    fn every_cut_of_the_body_gives_the_same_verdict() {
        let values = maker(60.0);
        let frame = written(&values, 7, Version::new(3, 4));
        let pieces: Vec<u8> = [24, 30, 27]
            .iter()
            .flat_map(|&len| written_of_len(&values, PIECES, Version::new(1, 9), len))
            .collect();
        let mut cases = vec![
            (7, frame.clone()),
            (8, frame.clone()),
            (7, frame[..59].to_vec()),
            (7, [&frame[..], b"x"].concat()),
            (PIECES, pieces.clone()),
            (PIECES, pieces[1..].to_vec()),
            (PIECES, pieces[..pieces.len() - 1].to_vec()),
            (COUNTERS, COUNTER.to_vec()),
            (COUNTERS, b"1 0".to_vec()),
            (1, written_of_len(&values, 1, Version::LOADED, 20)),
            (2, written_of_len(&values, 1, Version::LOADED, 20)),
        ];
        for byte in [0, 10, 18, 23, 24, 40, 59] {
            let mut flipped = frame.clone();
            flipped[byte] ^= 0x10;
            cases.push((7, flipped));
        }
        for (index, bytes) in &cases {
            let whole = verdict(&values, *index, bytes);
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let parts = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    assert_eq!(
                        verdict_in_parts(&values, *index, &parts),
                        whole,
                        "cut at {first} and {second}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_that_come_one_by_one_are_checked_as_well() {
        let values = maker(5_000.0);
        let good = written(&values, 7, Version::new(3, 4));
        let parts: Vec<&[u8]> = good.chunks(1).collect();
        assert_eq!(verdict_in_parts(&values, 7, &parts), ValueVerdict::Good(Version::new(3, 4)));
    }

    fn cuts() -> impl Strategy<Value = Vec<usize>> {
        collection::vec(0usize..5_000, 0..8)
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_check_panic_and_cuts_never_matter(
            bytes in collection::vec(any::<u8>(), 0..200),
            index in 0u64..3 * RECORDS,
            cuts in cuts(),
        ) {
            let values = maker(60.0);
            // Half of the time something that begins like a frame.
            let frame = written_of_len(&values, index, Version::new(1, 1), 24 + bytes.len());
            for bytes in [bytes.clone(), [&frame[..], &bytes[..]].concat(), [&frame[..24], &bytes[..]].concat()] {
                let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
                ends.push(0);
                ends.push(bytes.len());
                ends.sort_unstable();
                let parts: Vec<&[u8]> = ends.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect();
                prop_assert_eq!(verdict_in_parts(&values, index, &parts), verdict(&values, index, &bytes));
            }
        }

        #[test]
        fn any_changed_byte_is_seen(len in 24usize..5_000, place in any::<usize>(), change in 1u8..=255, count in 1u64..1 << 40) {
            let values = maker(5_000.0);
            let mut bytes = written_of_len(&values, 3, Version::new(1, count), len);
            bytes[place % len] ^= change;
            prop_assert!(is_bad(verdict(&values, 3, &bytes)));
        }
    }
}
