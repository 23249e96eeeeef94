//! Lines of Twitter's traces (github.com/twitter/cache-trace): `time,key,key size,value size,client,operation,TTL`.

use crate::trace::number::{seconds, whole, whole_32};
use crate::trace::row::{Found, KEY_MAX_BYTES, Row, Sink, VALUE_MAX_BYTES, is_key, verb_named};

/// Takes in a line.
pub(super) fn line(line: &[u8], sink: &mut Sink<'_>) -> Found {
    let mut columns = line.split(|&byte| byte == b',');
    let mut next = || columns.next();
    let (Some(at), Some(key), Some(key_bytes), Some(value), Some(client), Some(verb), Some(ttl), None) =
        (next(), next(), next(), next(), next(), next(), next(), next())
    else {
        return Found::Bad;
    };
    let numbers =
        (whole(at).and_then(seconds), whole_32(key_bytes), whole_32(value), whole(client), whole_32(ttl));
    let (Some(at_ns), Some(key_bytes), Some(value_bytes), Some(client), Some(ttl_s)) = numbers else {
        return Found::Bad;
    };
    if !is_key(key) || value_bytes > VALUE_MAX_BYTES {
        return Found::Bad;
    }
    let Some(verb) = verb_named(verb) else { return Found::Bad };
    let reads = verb.reads();
    // A read without a value found nothing when it was recorded (cacheMon/cache_dataset).
    let missed = reads && value_bytes == 0;
    let padded = (key_bytes as usize).clamp(key.len(), KEY_MAX_BYTES) as u16;
    let row = Row { at_ns, verb, key_bytes: padded, ttl_s, client: Some(client), missed, ..Row::read(key) };
    sink(&Row { value_bytes: (!missed).then_some(value_bytes), ..row }.within_second());
    Found::Rows
}
