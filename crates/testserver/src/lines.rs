//! Lines of text from the server's side: taken off the input in pieces, read as numbers, and written as answers.

use super::owed::ReplyBuffer;

/// A line that is longer and has no end yet closes the connection, unless it asks for many keys.
pub(super) const LINE_MAX_BYTES: usize = 16 * 1024;

pub(super) const NOT_A_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
pub(super) const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
pub(super) const ERROR: &str = "ERROR";
pub(super) const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
pub(super) const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk";

/// The state of the line at the front of the input.
pub(super) enum RequestLine<'i> {
    Need,
    TooLong,
    /// The line is complete and lies in the input.
    Whole(&'i [u8]),
    /// The line is complete and lies in the parser's buffer.
    Kept,
}

/// Takes a line off the input, or what there is of it into `kept`.
pub(super) fn take_line<'i>(
    kept: &mut Vec<u8>,
    input: &mut &'i [u8],
    max_bytes: fn(&[u8]) -> usize,
) -> RequestLine<'i> {
    let end = input.iter().position(|&byte| byte == b'\n');
    if kept.is_empty()
        && let Some(end) = end
    {
        let (line, rest) = input.split_at(end + 1);
        *input = rest;
        return if end > LINE_MAX_BYTES && end > max_bytes(line) {
            RequestLine::TooLong
        } else {
            RequestLine::Whole(without_end(line))
        };
    }
    let taken = end.map_or(input.len(), |end| end + 1);
    kept.extend_from_slice(&input[..taken]);
    *input = &input[taken..];
    let len = kept.len() - usize::from(end.is_some());
    if len > LINE_MAX_BYTES && len > max_bytes(kept) {
        RequestLine::TooLong
    } else if end.is_some() {
        RequestLine::Kept
    } else {
        RequestLine::Need
    }
}

pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A decimal number; 64 bits.
pub(super) fn unsigned(word: &[u8]) -> Option<u64> {
    decimal(word.strip_prefix(b"+").unwrap_or(word))
}

/// A decimal number with a sign. memcached reads 64 bits and keeps the lower 32.
pub(super) fn signed(word: &[u8]) -> Option<i32> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let number = i64::try_from(decimal(digits)?).ok()?;
    Some(if negative { -number } else { number } as i32)
}

/// The length of a value, as a line announces it.
pub(super) fn value_len(word: &[u8]) -> Option<usize> {
    signed(word).filter(|len| (0..=i32::MAX - 2).contains(len)).map(|len| len as usize)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Writes a line.
pub(super) fn say(line: &str, reply: &mut ReplyBuffer) {
    reply.push(line.as_bytes());
    reply.push(b"\r\n");
}
