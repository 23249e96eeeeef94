//! A value whose size is known before its bytes arrive, followed by a line end.

use super::Malformed;

/// Reports that a value is not followed by its line end.
const NO_VALUE_END: Malformed =
    Malformed("a value is not followed by CR LF: its length is not what the server said");

/// Position of the next byte in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePosition {
    /// The next byte belongs to the value.
    Bytes,
    /// The next byte is the carriage return after the value.
    Return,
    /// The next byte is the line feed after the value.
    Feed,
}

/// The part of a value that was taken from the input.
#[derive(Debug)]
pub enum ValuePart<'i> {
    /// The input is empty, and more is needed.
    Need,
    /// Some bytes of the value.
    Bytes(&'i [u8]),
    /// The line end: the value is complete.
    End,
}

impl ValuePosition {
    /// The position at the beginning of a value of this size.
    #[inline(always)]
    pub fn at_start(size: u32) -> ValuePosition {
        if size > 0 { ValuePosition::Bytes } else { ValuePosition::Return }
    }

    /// Takes the next part of a value off the front of `input`. `left` is the number of bytes of the value that are
    /// still to come.
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

/// The bytes after a value of this size and its line end, with which `bytes` begin; `None` if they are not complete.
#[inline(always)]
pub fn after_value(bytes: &[u8], size: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(u32::try_from(size).ok()?).ok()?..)?.strip_prefix(b"\r\n")
}
