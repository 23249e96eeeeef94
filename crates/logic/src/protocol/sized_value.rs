//! A value whose size is known before it comes, and the line end behind it.

use super::Malformed;

/// Reports that a value is not followed by its line end.
const NO_VALUE_END: Malformed =
    Malformed("a value is not followed by CR LF: its length is not what the server said");

/// Position of the next byte in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePosition {
    /// In its bytes.
    Bytes,
    /// Before the carriage return behind it.
    Return,
    /// Before the line feed behind it.
    Feed,
}

/// Part of a value that was taken.
#[derive(Debug)]
pub enum ValuePart<'i> {
    /// Nothing: more input is needed.
    Need,
    /// Some of its bytes.
    Bytes(&'i [u8]),
    /// Its line end: the value is complete.
    End,
}

impl ValuePosition {
    /// The beginning of a value of this size.
    #[inline(always)]
    pub fn at_start(size: u32) -> ValuePosition {
        if size > 0 { ValuePosition::Bytes } else { ValuePosition::Return }
    }

    /// Takes the next part of a value off the front of `input`. `left` of its bytes are still to come.
    ///
    /// # Errors
    /// Returns [`Malformed`] for a value that is not followed by CR LF.
    #[inline(always)]
    pub fn take<'i>(&mut self, left: &mut u32, input: &mut &'i [u8]) -> Result<ValuePart<'i>, Malformed> {
        let Some((&first, behind)) = input.split_first() else { return Ok(ValuePart::Need) };
        if *self == ValuePosition::Bytes {
            let (bytes, rest) = input.split_at(input.len().min(*left as usize));
            *input = rest;
            *left -= bytes.len() as u32;
            if *left == 0 {
                *self = ValuePosition::Return;
            }
            return Ok(ValuePart::Bytes(bytes));
        }
        let mut last = (first, behind);
        if *self == ValuePosition::Return {
            if first != b'\r' {
                return Err(NO_VALUE_END);
            }
            (*input, *self) = (behind, ValuePosition::Feed);
            let Some((&feed, behind)) = behind.split_first() else { return Ok(ValuePart::Need) };
            last = (feed, behind);
        }
        if last.0 != b'\n' {
            return Err(NO_VALUE_END);
        }
        *input = last.1;
        Ok(ValuePart::End)
    }
}

/// Returns the bytes after the value of this size that `bytes` begin with and its line end, if all of it is there.
#[inline(always)]
pub fn after_value(bytes: &[u8], size: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(u32::try_from(size).ok()?).ok()?..)?.strip_prefix(b"\r\n")
}
