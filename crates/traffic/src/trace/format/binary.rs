//! Records of libCacheSim's binary traces, little-endian and packed.

use crate::trace::number::seconds;
use crate::trace::row::{Found, KEY_MAX_BYTES, Row, Sink, VALUE_MAX_BYTES, VERBS};
use pummel_logic::time::Nanos;

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Record {
    /// u32 time in seconds, u64 object, u32 size, i64 next request.
    Oracle,
    /// u32 time in seconds, u64 object, u32 key size and value size, u32 operation and TTL.
    Twr,
    /// The fields of [`Record::Twr`], and a name space of 16 bits behind them.
    TwrNs,
}

impl Record {
    /// Length of a record in bytes.
    pub(in crate::trace) fn bytes(self) -> usize {
        match self {
            Record::Oracle => 24,
            Record::Twr => 20,
            Record::TwrNs => 22,
        }
    }

    /// Reads consecutive records, and returns the kind of each.
    pub(in crate::trace) fn take_all(self, bytes: &[u8], sink: &mut Sink<'_>, note: &mut impl FnMut(Found)) {
        let mut digits = [0; 32];
        match self {
            Record::Oracle => {
                for record in bytes.as_chunks::<24>().0 {
                    sink(&oracle(record, &mut digits));
                    note(Found::Rows);
                }
            }
            Record::Twr => {
                for record in bytes.as_chunks::<20>().0 {
                    note(twr(record, decimal(u64_at(record, 4), &mut digits), sink));
                }
            }
            Record::TwrNs => {
                for record in bytes.as_chunks::<22>().0 {
                    // Two objects of different name spaces are two keys.
                    let (space, mut key) = (u16::from_le_bytes([record[20], record[21]]), [0; 32]);
                    let key = spaced(space, decimal(u64_at(record, 4), &mut digits), &mut key);
                    let begin = record.first_chunk().expect("it is longer");
                    note(twr(begin, key, sink));
                }
            }
        }
    }
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}

/// Time of a record, in nanoseconds.
fn at_ns(record: &[u8]) -> Nanos {
    seconds(u32_at(record, 0).into()).expect("32 bits of seconds fit")
}

#[inline]
fn oracle<'a>(record: &[u8; 24], digits: &'a mut [u8; 32]) -> Row<'a> {
    let key = decimal(u64_at(record, 4), digits);
    let value_bytes = Some(u32_at(record, 12).min(VALUE_MAX_BYTES));
    Row { at_ns: at_ns(record), value_bytes, ..Row::read(key) }.within_second()
}

#[inline]
fn twr(record: &[u8; 20], key: &[u8], sink: &mut Sink<'_>) -> Found {
    let (sizes, op) = (u32_at(record, 12), u32_at(record, 16));
    let Some(&verb) = ((op >> 24) as usize).checked_sub(1).and_then(|place| VERBS.get(place)) else {
        return Found::Bad;
    };
    let key_bytes = ((sizes >> 22) as usize).clamp(key.len(), KEY_MAX_BYTES) as u16;
    let value_bytes = sizes & 0x3f_ffff;
    let missed = verb.reads() && value_bytes == 0;
    let row = Row { at_ns: at_ns(record), verb, key_bytes, ttl_s: op & 0xff_ffff, missed, ..Row::read(key) };
    sink(&Row { value_bytes: (!missed).then_some(value_bytes), ..row }.within_second());
    Found::Rows
}

/// A number in decimal digits, two of which are made at a time.
fn decimal(mut number: u64, into: &mut [u8; 32]) -> &[u8] {
    let mut start = into.len();
    while number >= 10 {
        let two = (number % 100) as u8;
        number /= 100;
        start -= 2;
        into[start] = b'0' + two / 10;
        into[start + 1] = b'0' + two % 10;
    }
    if number > 0 || start == into.len() {
        start -= 1;
        into[start] = b'0' + number as u8;
    }
    &into[start..]
}

/// A key in a name space: the space, a colon, the key.
fn spaced<'a>(space: u16, key: &[u8], into: &'a mut [u8; 32]) -> &'a [u8] {
    let mut digits = [0; 32];
    let space = decimal(space.into(), &mut digits);
    let end = space.len() + 1 + key.len();
    into[..space.len()].copy_from_slice(space);
    into[space.len()] = b':';
    into[space.len() + 1..end].copy_from_slice(key);
    &into[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_all_their_digits() {
        for number in (0..1_200).chain([9_999, 10_000, 12_345, 1_000_000, u64::MAX - 1, u64::MAX]) {
            assert_eq!(decimal(number, &mut [0; 32]), number.to_string().as_bytes());
        }
    }
}
