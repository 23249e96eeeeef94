//! memcached's meta commands as requests: the command, and the value that it came with.

use crate::lines::{BAD_FORMAT, ERROR, signed, unsigned};
use crate::store::{KEY_MAX_BYTES, item_len_bytes};

/// Command of the meta protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meta {
    Get,
    Set,
    Delete,
    Arithmetic,
    Noop,
    Debug,
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

impl Meta {
    /// The command that a line begins with.
    pub(crate) fn from_word(word: &[u8]) -> Option<Meta> {
        Some(match word {
            b"mg" => Meta::Get,
            b"ms" => Meta::Set,
            b"md" => Meta::Delete,
            b"ma" => Meta::Arithmetic,
            b"mn" => Meta::Noop,
            b"me" => Meta::Debug,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Meta::Get => "mg",
            Meta::Set => "ms",
            Meta::Delete => "md",
            Meta::Arithmetic => "ma",
            Meta::Noop => "mn",
            Meta::Debug => "me",
        }
    }
}

/// Length of the value that an ms line announces, and of its item; or the answer to a line without any.
pub(crate) fn announced(line: &[u8]) -> Result<(usize, usize), &'static str> {
    let mut words = words(line).skip(1);
    let key = words.next().ok_or(ERROR)?;
    let len =
        words.next().and_then(signed).filter(|len| (0..=i32::MAX - 2).contains(len)).ok_or(BAD_FORMAT)?;
    if key.len() > KEY_MAX_BYTES {
        return Err(BAD_FORMAT);
    }
    let flags = words.find_map(|word| unsigned(word.strip_prefix(b"F")?)).unwrap_or(0) as u32;
    Ok((len as usize, item_len_bytes(key.len(), flags, len as usize)))
}

pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}
