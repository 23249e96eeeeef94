//! Lines of the recordings that mutilate's options `--read_file` and `--twitter_trace` name.

use crate::trace::row::{Found, Row, Sink, is_key};
use pummel_logic::protocol::Verb;

/// The longest value that a line of format 1 asks for, in bytes: mutilate cuts longer ones.
const VALUE_MAX_BYTES: u32 = 524_000;

/// Takes in a line of format `number`, from 0 to 2.
pub(super) fn line(number: u8, line: &[u8], sink: &mut Sink<'_>) -> Found {
    match row(number, line) {
        Some(row) => {
            sink(&row);
            Found::Rows
        }
        None => Found::Bad,
    }
}

fn row(number: u8, line: &[u8]) -> Option<Row<'_>> {
    // A line of another number of columns than these has no request.
    let mut columns = [&[][..]; 8];
    let mut count = 0;
    for column in line.split(|&byte| byte == b',') {
        *columns.get_mut(count)? = column;
        count += 1;
    }
    let (verb, key, value_bytes) = match (number, &columns[..count]) {
        (0, &[key, length]) => (Verb::Get, key, length_of(length)?),
        (0, &[_, _, op, key, length]) => (verb_of(op, &[b"read"], b"write")?, key, length_of(length)?),
        (1, &[_, key, _, length, _, op, _]) => {
            // A length of 0 is that of a read that missed; mutilate takes it for 1.
            let length = length_of(length)?.clamp(1, VALUE_MAX_BYTES);
            (verb_of(op, &[b"get", b"gets"], b"set")?, key, length)
        }
        (2, &[_, _, op, key, length]) => (verb_of(op, &[b"1"], b"2")?, key, length_of(length)?),
        _ => return None,
    };
    is_key(key).then(|| Row { verb, value_bytes: Some(value_bytes), ..Row::read(key) })
}

fn verb_of(op: &[u8], reads: &[&[u8]], writes: &[u8]) -> Option<Verb> {
    match op {
        op if reads.contains(&op) => Some(Verb::Get),
        op if op == writes => Some(Verb::Set),
        _ => None,
    }
}

/// A length in bytes, at most the largest value that memcached can be set to take.
fn length_of(text: &[u8]) -> Option<u32> {
    let number: u32 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    (number <= 1 << 30).then_some(number)
}
