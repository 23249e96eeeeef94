//! Lines of `lru_crawler metadump` (memcached): `key=k exp=-1 la=1588598718 cas=1 fetch=no cls=1 size=80`. An item becomes a
//! store, with the time to live that is left.

use super::quoted::percent_decoded;
use crate::trace::number::{seconds, whole, whole_32};
use crate::trace::row::{Found, Row, Sink, VALUE_MAX_BYTES, is_key};
use pummel_logic::protocol::Verb;

/// Bytes of an item beside its key and value: the head, the end of the key, and the end of the value (`items.c`).
const ITEM_BYTES: u32 = 48 + 1 + 2;

/// Bytes of a CAS unique and of flags, which an item has where they are not 0.
const CAS_BYTES: u32 = 8;
const FLAGS_BYTES: u32 = 4;

/// Reads a line. With a time in seconds since 1970, items that have expired by then are skipped, and the others keep
/// their remaining time; without, no item expires.
pub(super) fn line(line: &[u8], now_s: Option<u64>, scratch: &mut Vec<u8>, sink: &mut Sink<'_>) -> Found {
    if line == b"END" || line.starts_with(b"OK") {
        return Found::Nothing;
    }
    match item(line, scratch) {
        None => Found::Bad,
        Some(item) => match (item.expires_s, now_s) {
            (Some(at), Some(now)) if at <= now => Found::Skipped,
            (expires_s, now_s) => {
                let left_s = expires_s.zip(now_s).map_or(0, |(at, now)| (at - now).min(u32::MAX.into()));
                let at_ns = item.used_s.and_then(seconds).unwrap_or(0);
                let value_bytes = Some(item.value_bytes);
                let row =
                    Row { verb: Verb::Set, at_ns, value_bytes, ttl_s: left_s as u32, ..Row::read(scratch) };
                sink(&row.within_second());
                Found::Rows
            }
        },
    }
}

struct Item {
    /// Expiry of the item, in seconds since 1970.
    expires_s: Option<u64>,
    /// Time of the last use of the item, in seconds since 1970.
    used_s: Option<u64>,
    value_bytes: u32,
}

fn item(line: &[u8], key: &mut Vec<u8>) -> Option<Item> {
    key.clear();
    let (mut expires_s, mut used_s, mut size, mut has_cas, mut has_flags) = (None, None, None, true, false);
    for field in line.split(|&byte| byte == b' ').filter(|field| !field.is_empty()) {
        let equals = field.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&field[..equals], &field[equals + 1..]);
        match name {
            b"key" => percent_decoded(value, key)?,
            b"exp" if value == b"-1" => {}
            b"exp" => expires_s = Some(whole(value)?),
            b"la" => used_s = Some(whole(value)?),
            b"cas" => has_cas = value != b"0",
            b"flags" => has_flags = value != b"0",
            b"size" => size = Some(whole_32(value)?),
            _ => {}
        }
    }
    let beside = ITEM_BYTES
        + key.len() as u32
        + if has_cas { CAS_BYTES } else { 0 }
        + if has_flags { FLAGS_BYTES } else { 0 };
    let value_bytes = size?.saturating_sub(beside).min(VALUE_MAX_BYTES);
    is_key(key).then_some(Item { expires_s, used_s, value_bytes })
}
