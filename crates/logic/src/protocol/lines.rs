//! Helpers for the text protocols: the end of a key, decimal numbers, and lines that arrive in pieces.

use super::{Malformed, Refused};
use crate::connection::outbox::Outbox;

/// Longest key, as memcached's `protocol.txt` says, section "Keys".
pub const KEY_MAX_BYTES: usize = 250;

/// Longest line that is kept, with its carriage return. All lines of memcached with a key, four numbers or an error
/// message are shorter.
pub const LINE_MAX_BYTES: usize = 2048;

/// A 64-bit word in which each byte is `byte`.
const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Length of the key that `bytes` begin with: up to the first byte that a key cannot have in the text protocol, or all
/// of them.
///
/// `protocol.txt` allows no control characters, but memcached itself takes all that do not end a word or a line, and
/// memaslap's keys have those from 0x10 on.
///
/// The function looks at eight bytes at a time, because it runs twice for each request. `(word - n) & !word` has the
/// high bit set in the lowest byte that is below n; bytes above that one may be wrong, which does no harm.
#[inline]
pub fn key_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    let (chunks, _) = bytes.as_chunks::<8>();
    for chunk in chunks {
        let ends = word_ends(u64::from_le_bytes(*chunk));
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().position(|&byte| byte < 0x10 || byte == b' ').unwrap_or(bytes.len() - at)
}

/// The high bits of the bytes that end a key on the wire. Only the lowest set bit is reliable.
#[inline]
fn word_ends(word: u64) -> u64 {
    let low = word.wrapping_sub(eight(0x10)) & !word;
    let blank = word ^ eight(b' ');
    let blank = blank.wrapping_sub(eight(1)) & !blank;
    (low | blank) & eight(0x80)
}

/// Whether the text protocol can carry `key`: it has 1 to [`KEY_MAX_BYTES`] bytes, and none that ends a key on the
/// wire.
#[inline]
pub fn is_word(key: &[u8]) -> bool {
    is_free_of(key, word_ends, |byte| byte < 0x10 || byte == b' ')
}

/// The high bits of the bytes that may not be in a key. Only the lowest set bit is reliable.
#[inline]
fn key_ends(word: u64) -> u64 {
    let blank = word.wrapping_sub(eight(b' ' + 1)) & !word;
    let delete = word ^ eight(0x7f);
    let delete = delete.wrapping_sub(eight(1)) & !delete;
    (blank | delete) & eight(0x80)
}

/// Whether `key` is valid by `protocol.txt`: it has 1 to [`KEY_MAX_BYTES`] bytes, without blanks and control
/// characters.
#[inline]
pub fn is_key(key: &[u8]) -> bool {
    is_free_of(key, key_ends, |byte| byte <= b' ' || byte == 0x7f)
}

/// Whether a key has a length that keys may have, and nothing that ends it, by eight bytes or by one.
#[inline(always)]
fn is_free_of(key: &[u8], word: impl Fn(u64) -> u64, ends_at: impl Fn(u8) -> bool) -> bool {
    if key.len() > KEY_MAX_BYTES {
        return false;
    }
    // The last eight bytes are looked at together, some of them for the second time, rather than one by one.
    let Some(last) = key.last_chunk::<8>() else {
        return !key.is_empty() && !key.iter().any(|&byte| ends_at(byte));
    };
    let ends = key.chunks_exact(8).fold(word(u64::from_le_bytes(*last)), |ends, chunk| {
        ends | chunk.try_into().map_or(0, |chunk| word(u64::from_le_bytes(chunk)))
    });
    ends == 0
}

/// Most digits that a 64-bit number can have.
const DIGITS_MAX: usize = 20;

/// Most digits with which a number always fits in 64 bits.
const DIGITS_SURE: usize = 19;

/// The decimal number at the beginning of `bytes`, and its number of digits. `None` without a digit, for a number
/// above 64 bits, and for more than 20 digits, so that leading zeros are limited.
#[inline]
pub fn decimal(bytes: &[u8]) -> Option<(u64, usize)> {
    short_decimal(bytes).or_else(|| any_decimal(bytes))
}

/// A number of up to seven digits, with at least eight bytes to look at: all digits at once. They are moved to the
/// upper end of the word, so that zeros stand before them, and put together in pairs, then fours, then all.
#[inline]
fn short_decimal(bytes: &[u8]) -> Option<(u64, usize)> {
    let digits = u64::from_le_bytes(*bytes.first_chunk()?) ^ eight(b'0');
    // The high bit of a byte that is above 9; bytes above the lowest such one may be wrong.
    let others = (digits.wrapping_add(eight(0x7f - 9)) | digits) & eight(0x80);
    let count = others.trailing_zeros() as usize / 8;
    if !(1..8).contains(&count) {
        return None;
    }
    let digits = digits << (64 - 8 * count);
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some(((fours * 10_000 + (fours >> 32)) & 0xffff_ffff, count))
}

/// The decimal number of any length that `bytes` begin with, and its number of digits, as [`decimal`] returns them.
fn any_decimal(bytes: &[u8]) -> Option<(u64, usize)> {
    let (mut number, mut digits) = (0u64, 0);
    for byte in bytes.iter().take(DIGITS_SURE) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number * 10 + u64::from(digit);
        digits += 1;
    }
    match digits {
        0 => None,
        DIGITS_SURE => long_decimal(number, bytes),
        _ => Some((number, digits)),
    }
}

/// The remaining digits of a number that has at least [`DIGITS_SURE`] digits.
#[cold]
fn long_decimal(mut number: u64, bytes: &[u8]) -> Option<(u64, usize)> {
    let mut digits = DIGITS_SURE;
    while let Some(digit) = bytes.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
    {
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
        digits += 1;
    }
    (digits <= DIGITS_MAX).then_some((number, digits))
}

/// The decimal number that makes up all of `bytes`; `None` if they are anything else.
#[inline]
pub fn whole_decimal(bytes: &[u8]) -> Option<u64> {
    decimal(bytes).filter(|&(_, digits)| digits == bytes.len()).map(|(number, _)| number)
}

/// Checks that an expiry fits in 32 bits (`protocol.txt`, "Expiration times"); memcached refuses others too.
///
/// # Errors
/// Returns [`Refused`] for an expiry of more than 32 bits.
#[inline]
pub fn check_expiry(expiry_s: i64) -> Result<(), Refused> {
    if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&expiry_s) {
        Ok(())
    } else {
        Err(Refused("an expiry must fit in 32 bits"))
    }
}

/// Writes the authentication for a memcached that has a file of users (`protocol.txt`, "Authentication"): a set whose
/// value is user and password. The server answers `STORED` where it accepts them and `CLIENT_ERROR` where it does not.
///
/// # Errors
/// Returns [`Refused`] for a user that is empty or has blanks, control characters or colons, and for a password with
/// control characters.
pub fn push_auth(user: &[u8], password: &[u8], out: &mut Outbox) -> Result<(), Refused> {
    if !is_key(user) || user.contains(&b':') {
        return Err(Refused("a user must not be empty, nor have blanks, control characters or colons"));
    }
    if password.iter().any(|byte| byte.is_ascii_control()) {
        return Err(Refused("a password must not have control characters"));
    }
    out.push(b"set auth 0 0 ");
    out.push_decimal((user.len() + 1 + password.len()) as u64);
    for part in [&b"\r\n"[..], user, b" ", password, b"\r\n"] {
        out.push(part);
    }
    Ok(())
}

/// Whether a line that begins like this ends with a message for people, which may be of any length.
pub fn is_error(line: &[u8]) -> bool {
    [&b"ERROR "[..], b"CLIENT_ERROR ", b"SERVER_ERROR "].iter().any(|word| line.starts_with(word))
}

/// Appends a decimal number that may be negative.
#[inline]
pub fn push_signed(out: &mut Outbox, number: i64) {
    if number < 0 {
        out.push(b"-");
    }
    out.push_decimal(number.unsigned_abs());
}

/// Splits the input into lines. A line that arrives whole is not copied; a line that arrives in pieces is collected
/// in a buffer, which is allocated with the first such line.
#[derive(Debug, Default)]
pub struct Lines {
    cut: Option<Box<Cut>>,
}

/// The buffer for a line that arrives in pieces.
#[derive(Debug, Default)]
struct Cut {
    /// The line's first bytes, up to [`LINE_MAX_BYTES`].
    bytes: Vec<u8>,
    /// Whether the line was longer than [`LINE_MAX_BYTES`].
    long: bool,
    /// Whether the last byte was a carriage return.
    returned: bool,
    /// Whether the line has ended; its bytes are kept until the next line begins.
    ended: bool,
}

const NO_RETURN: Malformed = Malformed("a line ends in a bare line feed, where the protocol has CR LF");
const TOO_LONG: Malformed = Malformed("a line is longer than any that the protocol has");

impl Lines {
    /// Whether the next byte of input is the first of a line.
    #[inline]
    pub fn at_start(&self) -> bool {
        self.cut.as_ref().is_none_or(|cut| cut.ended)
    }

    /// Takes a line off the front of `input` and returns it without its line end; takes all input and returns `None`
    /// where the line goes on. A longer line than [`LINE_MAX_BYTES`] is cut off there when `may_be_long` holds for its
    /// beginning, and malformed otherwise.
    ///
    /// # Errors
    /// Returns [`Malformed`] for a line without a carriage return at its end, and for one that is longer than
    /// [`LINE_MAX_BYTES`] and may not be.
    pub fn take<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        may_be_long: fn(&[u8]) -> bool,
    ) -> Result<Option<&'s [u8]>, Malformed> {
        Ok(self.advance(input, may_be_long)?.map(|line| self.line(line)))
    }

    /// Takes a line as [`Lines::take`] does, for a caller that looks at the line before it decides whether to show it.
    /// The result is a handle whose bytes [`Lines::line`] returns.
    ///
    /// # Errors
    /// Returns [`Malformed`] for a line without a carriage return at its end, and for one that is longer than
    /// [`LINE_MAX_BYTES`] and may not be.
    pub fn advance<'i>(
        &mut self,
        input: &mut &'i [u8],
        may_be_long: fn(&[u8]) -> bool,
    ) -> Result<Option<Line<'i>>, Malformed> {
        let bytes = *input;
        let feed = bytes.iter().position(|&byte| byte == b'\n');
        let piece = &bytes[..feed.unwrap_or(bytes.len())];
        *input = &bytes[feed.map_or(bytes.len(), |at| at + 1)..];
        if feed.is_some() && self.at_start() {
            return whole(piece, may_be_long).map(|line| Some(Line(Some(line))));
        }
        let cut = self.cut.get_or_insert_default();
        cut.add(piece, may_be_long)?;
        if feed.is_none() {
            return Ok(None);
        }
        cut.end().map(|()| Some(Line(None)))
    }

    /// The bytes of the last line that was taken.
    #[inline]
    pub fn line<'s>(&'s self, line: Line<'s>) -> &'s [u8] {
        line.0.unwrap_or_else(|| self.cut.as_ref().map_or(&[], |cut| cut.line()))
    }
}

/// A handle of a line that was taken: a slice of the input, or the buffer of [`Lines`].
#[derive(Clone, Copy, Debug)]
pub struct Line<'i>(Option<&'i [u8]>);

/// The line that `piece` is, which ends before the line feed.
fn whole(piece: &[u8], may_be_long: fn(&[u8]) -> bool) -> Result<&[u8], Malformed> {
    if piece.len() > LINE_MAX_BYTES {
        let kept = &piece[..LINE_MAX_BYTES];
        return match (may_be_long(kept), piece.ends_with(b"\r")) {
            (false, _) => Err(TOO_LONG),
            (true, false) => Err(NO_RETURN),
            (true, true) => Ok(kept),
        };
    }
    piece.strip_suffix(b"\r").ok_or(NO_RETURN)
}

impl Cut {
    fn add(&mut self, piece: &[u8], may_be_long: fn(&[u8]) -> bool) -> Result<(), Malformed> {
        if self.ended {
            self.bytes.clear();
            self.long = false;
            self.returned = false;
            self.ended = false;
        }
        let room = LINE_MAX_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room && !self.long {
            if !may_be_long(&self.bytes) {
                return Err(TOO_LONG);
            }
            self.long = true;
        }
        if let Some(&last) = piece.last() {
            self.returned = last == b'\r';
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Malformed> {
        self.ended = true;
        if self.returned { Ok(()) } else { Err(NO_RETURN) }
    }

    /// The line, which has ended, without its line end.
    fn line(&self) -> &[u8] {
        if self.long { &self.bytes } else { &self.bytes[..self.bytes.len() - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn slow_key_len(bytes: &[u8]) -> usize {
        bytes.iter().take_while(|&&byte| byte >= 0x10 && byte != 0x20).count()
    }

    proptest! {
        #[test]
        fn eight_bytes_at_a_time_find_the_same_end_of_key(bytes: Vec<u8>) {
            prop_assert_eq!(key_len(&bytes), slow_key_len(&bytes));
        }

        #[test]
        fn one_byte_that_is_not_of_a_key_is_found_wherever_it_stands(at in 0usize..40, byte: u8) {
            let mut bytes = [b'k'; 40];
            bytes[at] = byte;
            prop_assert_eq!(key_len(&bytes), slow_key_len(&bytes));
            prop_assert_eq!(is_word(&bytes), slow_key_len(&bytes) == bytes.len());
            prop_assert_eq!(is_key(&bytes), byte > 0x20 && byte != 0x7f);
        }

        #[test]
        fn short_numbers_are_read_at_once_as_they_are_one_by_one(
            number in 0u64..100_000_000,
            zeros in 0usize..4,
            behind in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let mut text = format!("{}{number}", "0".repeat(zeros)).into_bytes();
            text.extend_from_slice(&behind);
            prop_assert!(short_decimal(&text).is_none_or(|found| Some(found) == any_decimal(&text)));
            prop_assert_eq!(decimal(&text), any_decimal(&text));
        }

        #[test]
        fn decimals_are_read_as_they_are_written(number in any::<u64>()) {
            let text = number.to_string();
            prop_assert_eq!(whole_decimal(text.as_bytes()), Some(number));
        }
    }

    #[test]
    fn what_is_not_a_64_bit_decimal_is_none() {
        for text in [
            "",
            "-1",
            "+1",
            " 1",
            "x",
            "18446744073709551616",
            "99999999999999999999999",
            "000000000000000000001",
        ] {
            assert_eq!(decimal(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(decimal(b"12 "), Some((12, 2)));
        assert_eq!(whole_decimal(b"12 "), None);
    }

    #[test]
    fn signed_numbers_keep_their_sign() {
        for (number, text) in
            [(0, "0"), (-1, "-1"), (i64::MIN, "-9223372036854775808"), (i64::MAX, "9223372036854775807")]
        {
            let mut out = Outbox::default();
            push_signed(&mut out, number);
            assert_eq!(crate::protocol::contract::sent(&out), text.as_bytes());
        }
    }

    fn taken(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(line) = lines.take(&mut input, |start| start.starts_with(b"long"))? {
                found.push(line.to_vec());
            }
            assert!(input.is_empty(), "a line that goes on leaves no input");
        }
        Ok(found)
    }

    #[test]
    fn lines_at_the_limit_are_the_same_for_every_cut() {
        for (word, len) in
            [("long", 2046), ("long", 2047), ("long", 2048), ("long", 2049), ("long", 5000), ("other", 2047)]
        {
            let mut line = word.as_bytes().to_vec();
            line.resize(len, b'x');
            let mut stream = line.clone();
            stream.extend_from_slice(b"\r\nnext\r\n");
            let kept = if len + 1 > LINE_MAX_BYTES { LINE_MAX_BYTES } else { len };
            let expected = Ok(vec![line[..kept].to_vec(), b"next".to_vec()]);
            for cut in 0..stream.len() {
                assert_eq!(taken(&[&stream[..cut], &stream[cut..]]), expected, "{word} {len} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_line_that_must_not_be_long_is_malformed_without_its_end_and_for_every_cut() {
        let stream = [b'x'; LINE_MAX_BYTES + 1];
        for cut in 0..stream.len() {
            assert_eq!(taken(&[&stream[..cut], &stream[cut..]]), Err(TOO_LONG), "cut at {cut}");
        }
        assert_eq!(taken(&[&stream[1..]]), Ok(vec![]), "one byte less may still be a line");
    }

    #[test]
    fn a_bare_line_feed_is_malformed_for_every_cut() {
        let mut long = b"long".to_vec();
        long.resize(3000, b'x');
        long.push(b'\n');
        for stream in [&b"one\n"[..], b"\n", &long] {
            for cut in 0..stream.len() {
                assert_eq!(taken(&[&stream[..cut], &stream[cut..]]), Err(NO_RETURN), "cut at {cut}");
            }
        }
    }
}
