//! Records of libCacheSim's binary traces, little-endian and packed.

use crate::protocol::Verb;
use crate::trace::found::{Found, Sink, seconds};
use crate::trace::row::{KEY_MAX_BYTES, Row, VALUE_MAX_BYTES};

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

/// The operations of twr, from 1.
const VERBS: [Verb; 11] = [
    Verb::Get,
    Verb::Gets,
    Verb::Set,
    Verb::Add,
    Verb::Cas,
    Verb::Replace,
    Verb::Append,
    Verb::Prepend,
    Verb::Delete,
    Verb::Incr,
    Verb::Decr,
];

impl Record {
    /// Length of a record in bytes.
    pub(in crate::trace) fn bytes(self) -> usize {
        match self {
            Record::Oracle => 24,
            Record::Twr => 20,
            Record::TwrNs => 22,
        }
    }

    /// Takes in a record of the right length.
    pub(in crate::trace) fn take(self, record: &[u8], sink: &mut Sink<'_>) -> Found {
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
        let at_ns = seconds(u32_at(0).into()).expect("32 bits of seconds fit");
        let mut digits = [0; 32];
        let object = u64::from_le_bytes(record[4..12].try_into().expect("eight bytes"));
        match self {
            Record::Oracle => {
                let key = decimal(object, &mut digits);
                let value_bytes = Some(u32_at(12).min(VALUE_MAX_BYTES));
                sink(&Row { at_ns, value_bytes, ..Row::read(key) }.within_second());
                Found::Rows
            }
            Record::Twr | Record::TwrNs => {
                let (sizes, op) = (u32_at(12), u32_at(16));
                let Some(&verb) = ((op >> 24) as usize).checked_sub(1).and_then(|place| VERBS.get(place))
                else {
                    return Found::Bad;
                };
                let space = match self {
                    Record::TwrNs => u16::from_le_bytes([record[20], record[21]]),
                    _ => 0,
                };
                // Two objects of different name spaces are two keys.
                let mut key = [0; 32];
                let key = match self {
                    Record::TwrNs => spaced(space, decimal(object, &mut digits), &mut key),
                    _ => decimal(object, &mut digits),
                };
                let key_bytes = ((sizes >> 22) as usize).clamp(key.len(), KEY_MAX_BYTES) as u16;
                let value_bytes = sizes & 0x3f_ffff;
                let missed = verb.reads() && value_bytes == 0;
                let row = Row { at_ns, verb, key_bytes, ttl_s: op & 0xff_ffff, missed, ..Row::read(key) };
                sink(&Row { value_bytes: (!missed).then_some(value_bytes), ..row }.within_second());
                Found::Rows
            }
        }
    }
}

/// A number in decimal digits.
fn decimal(mut number: u64, into: &mut [u8; 32]) -> &[u8] {
    let mut start = into.len();
    loop {
        start -= 1;
        into[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &into[start..];
        }
    }
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
