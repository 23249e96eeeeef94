//! pummel's own format: a header of 64 bytes and a record of 32 for each request, little-endian.
//!
//! | header bytes | content |
//! |---|---|
//! | 0..8 | [`MAGIC`] |
//! | 8..12 | the layout, [`SCHEMA`] |
//! | 12..16 | how exact times are, in nanoseconds, 1 to 1,000,000,000 |
//! | 16..24 | number of records; 0 where it was not known when the header was written |
//! | 24..28 | the place of the source's format in the table of formats, plus 1 |
//! | 28..32 | what the conversion lost: bit 0, key bytes; bit 1, counts that were spread |
//! | 32..64 | 0 |
//!
//! | record bytes | content |
//! |---|---|
//! | 0..8 | time in nanoseconds of the trace's clock |
//! | 8..16 | hash of the key |
//! | 16..20 | length of the value in bytes |
//! | 20..24 | TTL in seconds, 0 for none |
//! | 24..28 | client |
//! | 28..30 | length of the key in bytes |
//! | 30 | the operation's place in [`Verb::ALL`] |
//! | 31 | flags: 1 missed, 2 the length of the value is not known, 4 the client is not known, 8 the time is exact to a second, or, where the header says a second, to a nanosecond |

use crate::trace::row::{KEY_MAX_BYTES, PADDING, Row, VALUE_MAX_BYTES};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::scramble;
use pummel_logic::time::SECOND;

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"pummeltr";

/// The layout that this version writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 64;

/// Length of a record in bytes.
pub const RECORD_BYTES: usize = 32;

/// Characters of six bits that the bits of a key's hash are written as.
const HASH_CHARACTERS: usize = 11;

/// The first bytes of a key, which are made together.
const BEGIN_BYTES: usize = 16;

const MISSED: u8 = 1;
const SIZE_UNKNOWN: u8 = 2;
const CLIENT_UNKNOWN: u8 = 4;
const OTHER_RESOLUTION: u8 = 8;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Precision of times, in nanoseconds.
    pub resolution_ns: u32,
    /// Number of records; 0 where it is not known.
    pub rows: u64,
    /// The place of the source's format in the table of formats, plus 1; 0 where it is not known.
    pub source: u32,
    /// Losses of the conversion: [`LOST_KEYS`], [`LOST_COUNTS`].
    pub lost: u32,
}

/// The conversion kept the hashes and lengths of keys alone.
pub const LOST_KEYS: u32 = 1;

/// The conversion spread rows that stand for several requests.
pub const LOST_COUNTS: u32 = 2;

impl Header {
    /// The bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&SCHEMA.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.resolution_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.rows.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.source.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.lost.to_le_bytes());
        bytes
    }

    /// The header in these bytes; `None` if they are not a header of this version.
    pub fn of(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = bytes.try_into().ok()?;
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let rows = u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32;
        let header = Header { resolution_ns: u32_at(12), rows, source: u32_at(24), lost: u32_at(28) };
        let is_ours = bytes[..8] == MAGIC && u32_at(8) == SCHEMA;
        (is_ours && (1..=SECOND).contains(&u64::from(header.resolution_ns))).then_some(header)
    }
}

/// The record of one request of a row, in a file whose header says `resolution_ns`; a row that stands for several requests has
/// as many records.
pub fn record(row: &Row<'_>, resolution_ns: u32) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    bytes[..8].copy_from_slice(&row.at_ns.to_le_bytes());
    bytes[8..16].copy_from_slice(&row.key_hash().to_le_bytes());
    bytes[16..20].copy_from_slice(&row.value_bytes.unwrap_or(0).to_le_bytes());
    bytes[20..24].copy_from_slice(&row.ttl_s.to_le_bytes());
    let client = row.client.map_or(0, |client| u32::try_from(client).unwrap_or(scramble(client) as u32));
    bytes[24..28].copy_from_slice(&client.to_le_bytes());
    bytes[28..30].copy_from_slice(&row.key_bytes.to_le_bytes());
    bytes[30] = row.verb as u8;
    bytes[31] = flag(row.missed, MISSED)
        | flag(row.value_bytes.is_none(), SIZE_UNKNOWN)
        | flag(row.client.is_none(), CLIENT_UNKNOWN)
        | flag(is_whole_second(row.resolution_ns) != is_whole_second(resolution_ns), OTHER_RESOLUTION);
    bytes
}

/// The request of a record, with its key made in `key`; `None` for bytes that are no record.
pub(super) fn row<'a>(header: &Header, record: &[u8], key: &'a mut [u8; KEY_MAX_BYTES]) -> Option<Row<'a>> {
    let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
    let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let key_bytes = u16::from_le_bytes([record[28], record[29]]);
    let verb = *Verb::ALL.get(usize::from(record[30]))?;
    let (at_ns, value_bytes, flags) = (u64_at(0), u32_at(16), record[31]);
    let is_row = (1..=KEY_MAX_BYTES).contains(&usize::from(key_bytes))
        && is_replayed(verb)
        && value_bytes <= VALUE_MAX_BYTES
        && flags < 16;
    let resolution_ns = match flags & OTHER_RESOLUTION != 0 {
        true if is_whole_second(header.resolution_ns) => 1,
        true => SECOND as u32,
        // A time between the steps of the header is exact, whatever the header says.
        false if !at_ns.is_multiple_of(header.resolution_ns.into()) => 1,
        false => header.resolution_ns,
    };
    is_row.then(|| Row {
        at_ns,
        resolution_ns,
        verb,
        key: made_key(u64_at(8), key_bytes.into(), key),
        key_bytes,
        value_bytes: (flags & SIZE_UNKNOWN == 0).then_some(value_bytes),
        ttl_s: u32_at(20),
        client: (flags & CLIENT_UNKNOWN == 0).then_some(u32_at(24).into()),
        missed: flags & MISSED != 0,
        count: 1,
        continues: false,
    })
}

/// Whether rows of traces have this operation.
pub fn is_replayed(verb: Verb) -> bool {
    verb != Verb::Version && !verb.is_resp_only()
}

/// A key of `len` bytes that is made from a hash: up to eleven characters of six bits, and padding behind them. Keys of fewer
/// than eleven bytes hold a part of the hash alone.
pub fn made_key(hash: u64, len: usize, into: &mut [u8; KEY_MAX_BYTES]) -> &[u8] {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // Of a fixed length, so that no count is kept while it is made.
    let mut begin = [PADDING; BEGIN_BYTES];
    for (place, byte) in begin.iter_mut().take(HASH_CHARACTERS).enumerate() {
        *byte = CHARACTERS[(hash >> (6 * place) & 63) as usize];
    }
    into[..BEGIN_BYTES].copy_from_slice(&begin);
    if len > BEGIN_BYTES {
        into[BEGIN_BYTES..len].fill(PADDING);
    }
    &into[..len]
}

/// Whether times of this resolution are exact to a whole second only.
fn is_whole_second(resolution_ns: u32) -> bool {
    u64::from(resolution_ns) == SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_records_are_read_as_they_were_written() {
        let header = Header { resolution_ns: 1_000, rows: 1 << 40, source: 3, lost: LOST_KEYS };
        assert_eq!(Header::of(&header.to_bytes()), Some(header));
        assert_eq!(Header::of(&header.to_bytes()[..63]), None);
        let row = Row {
            at_ns: 5 * SECOND + 7,
            verb: Verb::Replace,
            key_bytes: 30,
            value_bytes: Some(99),
            ttl_s: 60,
            client: Some(77),
            ..Row::read(b"a-key")
        };
        let mut key = [0; KEY_MAX_BYTES];
        let back = super::row(&header, &record(&row, 1_000), &mut key).expect("a record");
        assert_eq!(back.key.len(), 30);
        assert_eq!(Row { key: row.key, ..back }, row);
        let unknown = Row { value_bytes: None, client: None, missed: true, ..row };
        let back = super::row(&header, &record(&unknown, 1_000), &mut key).expect("a record");
        assert_eq!((back.value_bytes, back.client, back.missed), (None, None, true));
    }

    #[test]
    fn times_are_as_exact_as_they_were_whatever_the_header_says() {
        for resolution_ns in [1, 1_000_000, SECOND as u32] {
            let header = Header { resolution_ns, rows: 0, source: 0, lost: 0 };
            for (row, is_second) in [
                (Row { at_ns: 2 * SECOND, ..Row::read(b"k") }.within_second(), true),
                (Row { at_ns: 2 * SECOND, ..Row::read(b"k") }, false),
                (Row { at_ns: 2 * SECOND + 7, ..Row::read(b"k") }, false),
            ] {
                let mut key = [0; KEY_MAX_BYTES];
                let back = super::row(&header, &record(&row, resolution_ns), &mut key).expect("a record");
                assert_eq!(back.at_ns, row.at_ns);
                assert_eq!(is_whole_second(back.resolution_ns), is_second, "{resolution_ns} {row:?}");
            }
        }
        // A record without the flag, as a file whose header was taken from its first row has them.
        let header = Header { resolution_ns: SECOND as u32, rows: 0, source: 0, lost: 0 };
        let plain = record(&Row { at_ns: SECOND / 2, ..Row::read(b"k") }, 1);
        let mut key = [0; KEY_MAX_BYTES];
        assert_eq!(row(&header, &plain, &mut key).expect("a record").resolution_ns, 1);
    }

    #[test]
    fn keys_of_different_hashes_differ_and_can_be_sent() {
        let mut made = std::collections::BTreeSet::new();
        for number in 0..10_000u64 {
            let mut key = [0; KEY_MAX_BYTES];
            let key = made_key(scramble(number), 11 + (number % 40) as usize, &mut key);
            assert!(crate::trace::row::is_key(key));
            made.insert(key.to_vec());
        }
        assert_eq!(made.len(), 10_000);
    }

    #[test]
    fn bytes_that_are_no_record_are_none() {
        let header = Header { resolution_ns: 1, rows: 0, source: 0, lost: 0 };
        let good = record(&Row::read(b"k"), 1);
        for (place, byte) in
            [(28, 0), (28, 251), (29, 1), (30, 19), (30, Verb::Version as u8), (31, 16), (19, 0x41)]
        {
            let mut bad = good;
            bad[place] = byte;
            assert_eq!(row(&header, &bad, &mut [0; KEY_MAX_BYTES]), None, "{place}");
        }
    }
}
