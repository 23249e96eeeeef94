//! memcached's meta commands as requests: the command, and the value that it came with.

use crate::lines::{BAD_FORMAT, ERROR, unsigned, value_len};
use crate::store::{KEY_MAX_BYTES, item_len_bytes};

pummel_logic::words! {
    /// Command of the meta protocol.
    pub enum Meta {
        /// Reads an item, and may set its expiry.
        Get = "mg",
        /// Stores an item.
        Set = "ms",
        /// Removes an item, or marks it as stale.
        Delete = "md",
        /// Adds to a number, or subtracts from it.
        Arithmetic = "ma",
        /// Does nothing, and is answered.
        Noop = "mn",
        /// Shows the marks of an item.
        Debug = "me",
    }
}

/// The value that a command came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    /// No value came with the command.
    None,
    /// Value that the command came with.
    Value(&'a [u8]),
    /// The value did not end as it should.
    Spoiled,
    /// The value was too large, and was skipped.
    TooLarge,
}

/// Length of the value that an ms line announces, and of its item; or the answer to a line without any.
pub(crate) fn announced(line: &[u8]) -> Result<(usize, usize), &'static str> {
    let mut words = words(line).skip(1);
    let key = words.next().ok_or(ERROR)?;
    let len = words.next().and_then(value_len).ok_or(BAD_FORMAT)?;
    if key.len() > KEY_MAX_BYTES {
        return Err(BAD_FORMAT);
    }
    let flags = words.find_map(|word| unsigned(word.strip_prefix(b"F")?)).unwrap_or(0) as u32;
    Ok((len, item_len_bytes(key.len(), flags, len)))
}

pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}
