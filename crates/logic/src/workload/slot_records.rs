//! The records whose keys lie in chosen slots of a cluster: the numbers of their keys, found one after the other.

use crate::client::route::crc16::{SLOTS, crc16_behind};
use crate::decimal::decimal;
use crate::plan::{Data, SlotRange};
use crate::workload::space::Space;

/// Most numbers that are looked at for the records of one space, on average.
const LOOKED_AT_MAX: u64 = 1 << 30;

/// Numbers of a space beyond twice as many as are looked at on average. A million numbers that follow each other hold a number for
/// every slot.
const NUMBERS_MORE: u64 = 2_000_000;

/// One above the largest number of a key: the numbers of keys that are no records begin there.
const NUMBERS_END: u64 = 1_000_000_000_000_000;

/// Numbers of which all but the last two digits are the same.
const HUNDRED: u64 = 100;

/// A set of slots.
pub(super) struct SlotSet(Box<[bool; SLOTS]>);

impl SlotSet {
    /// The slots of these ranges.
    pub(super) fn new(ranges: &[SlotRange]) -> SlotSet {
        let mut is_in = Box::new([false; SLOTS]);
        for range in ranges {
            is_in[range.first.into()..=range.last.into()].fill(true);
        }
        SlotSet(is_in)
    }

    fn contains(&self, slot: u16) -> bool {
        self.0[usize::from(slot) % SLOTS]
    }

    fn count(&self) -> u64 {
        self.0.iter().filter(|is_in| **is_in).count() as u64
    }
}

/// Number of neighbouring records whose keys have the same slot.
fn together(data: &Data) -> u64 {
    data.key_tag.unwrap_or(1)
}

/// The numbers of keys, divided by the number of records in a tag, that each space of this data has room for; `None` where so many
/// records in so few slots take too long to find, or would have numbers with too many digits.
pub(crate) fn numbers_of_space(data: &Data) -> Option<u64> {
    let groups = data.records.div_ceil(together(data));
    let looked_at = groups.checked_mul(SLOTS as u64)?.div_ceil(SlotSet::new(&data.slots).count().max(1));
    let numbers = (2 * looked_at.min(LOOKED_AT_MAX) + NUMBERS_MORE).next_multiple_of(HUNDRED);
    let end = Space::COUNT as u64 * numbers * together(data);
    (looked_at <= LOOKED_AT_MAX && end <= NUMBERS_END).then_some(numbers)
}

/// The numbers of the keys of all records that lie in chosen slots. Each number is that of the record's group, as many records as
/// have a tag in common, with the record's place in the group.
#[derive(Debug)]
pub(super) struct SlotRecords {
    /// The numbers of each space's groups from the first number of the space on, rising; empty for spaces that have no keys.
    found: [Box<[u32]>; Space::COUNT],
    /// Numbers of groups in each space.
    numbers: u64,
    /// Records in a group.
    together: u64,
}

impl SlotRecords {
    /// Finds the records of these spaces. `frame` is the CRC16 of the text that a slot follows from, for the first record of a
    /// group in its space and the number of the group, with a zero in place of each digit of the number.
    ///
    /// # Panics
    /// Panics for data that [`numbers_of_space`] has no numbers for.
    pub(super) fn find(data: &Data, spaces: &[Space], frame: impl Fn(u64, u64) -> u16) -> SlotRecords {
        let numbers = numbers_of_space(data).expect("a plan has as many records as are found");
        let together = together(data);
        let (slots, groups) = (SlotSet::new(&data.slots), data.records.div_ceil(together));
        let lowest: [u16; HUNDRED as usize] = std::array::from_fn(|low| digits_crc(low as u64));
        let found = Space::ALL.map(|space| {
            if !spaces.contains(&space) {
                return Box::default();
            }
            let first = space as u64 * numbers;
            let mut found = Vec::with_capacity(groups as usize);
            for high in (first..first + numbers).step_by(HUNDRED as usize) {
                let high_crc = crc16_behind(digits_crc(high / HUNDRED), &[0, 0]);
                for (number, low_crc) in (high..).zip(lowest) {
                    let record = data.records * space as u64 + found.len() as u64 * together;
                    if slots.contains(frame(record, number) ^ high_crc ^ low_crc) {
                        found.push((number - first) as u32);
                        if found.len() as u64 == groups {
                            return found.into_boxed_slice();
                        }
                    }
                }
            }
            unreachable!("every million numbers hold one for each slot")
        });
        SlotRecords { found, numbers, together }
    }

    /// The number of the key of a space's record.
    ///
    /// # Panics
    /// Panics for a space whose keys were not found.
    #[inline]
    pub(super) fn number(&self, space: Space, record: u64) -> u64 {
        let group = self.found[space as usize][(record / self.together) as usize];
        (space as u64 * self.numbers + u64::from(group)) * self.together + record % self.together
    }
}

/// The CRC16 of the digits of a number below 10^16 in decimal, each as its value. Zeros in front do not change it.
fn digits_crc(number: u64) -> u16 {
    crc16_behind(0, &decimal(number).map(|digit| digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;

    /// Since a CRC is linear, the numbers of any other million have the same counts in another order of the slots.
    #[test]
    fn a_million_numbers_have_at_least_half_their_mean_in_every_slot() {
        let mut counts = vec![0u64; SLOTS];
        (0..1_000_000).for_each(|number| counts[usize::from(digits_crc(number)) % SLOTS] += 1);
        let least = counts.iter().min().copied().unwrap_or(0);
        assert!(least as f64 >= 0.5 * 1e6 / SLOTS as f64, "{least}");
    }

    fn data(records: u64, key_tag: Option<u64>, slots: &str) -> Data {
        let slots = slots.split(',').map(|range| range.parse().expect("a range")).collect();
        Data { records, key_tag, slots, key_size: Dist::Fixed(40.0), ..Data::default() }
    }

    #[test]
    fn records_beyond_what_can_be_looked_at_have_no_numbers() {
        assert!(numbers_of_space(&data(1 << 30, None, "0-16383")).is_some());
        assert_eq!(numbers_of_space(&data((1 << 30) + 1, None, "0-16383")), None);
        assert!(numbers_of_space(&data(65_536, None, "5")).is_some());
        assert_eq!(numbers_of_space(&data(65_537, None, "5")), None);
        assert!(numbers_of_space(&data(65_536_000_000, Some(1_000_000), "5")).is_none(), "too many digits");
        assert!(numbers_of_space(&data(65_536_000, Some(1_000), "5")).is_some());
        assert_eq!(NUMBERS_END, crate::workload::unstored::ABSENT_FROM);
    }
}
