//! The detection of a trace's format from its first bytes.

use crate::trace::format::{Format, Lines, Record};
use crate::trace::ptr::MAGIC;
use crate::trace::reader::BYTE_ORDER_MARK;
use crate::trace::row::Found;

/// Lines and records that are examined.
const LOOKED_AT_MAX: usize = 32;

/// Formats of lines in the order in which they are tried: those with stricter lines first.
#[rustfmt::skip]
const OF_LINES: [Format; 7] = [
    Format::Monitor, Format::Watch, Format::Metadump, Format::Twitter, Format::Kvcache, Format::Cdn,
    Format::Csv(None),
];

/// The format that the first bytes of a trace have, some thousands of them or all of a shorter trace; `None` where they have
/// none. Formats of mutilate are not detected: its option says the format.
pub fn detect(first: &[u8]) -> Option<Format> {
    if first.starts_with(&MAGIC) {
        return Some(Format::Ptr);
    }
    let text = first.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(first);
    let lines: Vec<&[u8]> = text
        .split_inclusive(|&byte| byte == b'\n')
        .take(LOOKED_AT_MAX)
        // The last line may be cut, but where it is the only one.
        .filter(|line| line.ends_with(b"\n") || !text.contains(&b'\n'))
        .map(|line| line.trim_ascii_end())
        .filter(|line| !line.is_empty())
        .collect();
    let is_text = lines.iter().all(|line| line.iter().all(|&byte| byte == b'\t' || byte >= b' '));
    if is_text && !lines.is_empty() {
        return OF_LINES.into_iter().find(|format| has_lines(format, &lines));
    }
    // Few records of one of Twitter's kinds look like the oracle's, and none of the oracle's like Twitter's but with huge values.
    let of_records = [Format::Twr, Format::TwrNs, Format::Oracle];
    of_records.into_iter().find(|format| format.record().is_some_and(|record| has_records(record, first)))
}

/// Whether most of these lines are of the format, and one of them is a request or a header.
fn has_lines(format: &Format, lines: &[&[u8]]) -> bool {
    // Others name such columns too; these are CacheLib's own.
    let is_cachelibs = |header: &&[u8]| header.windows(3).any(|word| word == b"op_");
    if *format == Format::Kvcache && !lines.first().is_some_and(is_cachelibs) {
        return false;
    }
    let Some(mut reader) = Lines::of(format, None) else { return false };
    let (mut good, mut bad) = (0, 0);
    for line in lines {
        match reader.take(line, &mut |_| {}) {
            Found::Bad => bad += 1,
            Found::Rows | Found::Skipped | Found::Lost(_) => good += 1,
            // A header is the first line of a format with columns.
            Found::Nothing
                if good + bad == 0 && matches!(format, Format::Kvcache | Format::Cdn | Format::Csv(_)) =>
            {
                good += 1
            }
            Found::Nothing => {}
        }
    }
    good > 0 && good >= bad
}

/// Whether the first records can be of this kind: their times ascend, and the fields that have invalid values have
/// none.
fn has_records(record: Record, first: &[u8]) -> bool {
    let u32_at =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut last_time = 0;
    let mut seen = 0;
    for (number, bytes) in first.chunks_exact(record.bytes()).take(LOOKED_AT_MAX).enumerate() {
        let time = u32_at(bytes, 0);
        // A gap of a day within the first requests is no trace of a cache.
        let ascends = number == 0 || time >= last_time && time - last_time <= 86_400;
        let is_good = match record {
            Record::Oracle => {
                let next = i64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
                u32_at(bytes, 12) < 1 << 31 && (next == -1 || next > number as i64)
            }
            Record::Twr | Record::TwrNs => {
                (1..=11).contains(&(u32_at(bytes, 16) >> 24)) && u32_at(bytes, 12) >> 22 > 0
            }
        };
        if !ascends || !is_good {
            return false;
        }
        (last_time, seen) = (time, seen + 1);
    }
    seen > 0
}
