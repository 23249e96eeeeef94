//! The extent of a reply, determined without a codec.

use crate::protocol::lines;

/// The last line of a whole reply to a read.
pub(super) const END: &[u8] = b"END\r\n";

/// The extent of a reply, determined without a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Complete items and the end of the reply; also a reply that is not to a read, and any reply that only a codec
    /// can judge.
    Ended {
        /// Number of items.
        items: usize,
    },
    /// Complete items, after which the bytes end.
    Open,
    /// The bytes end in the middle of an item or a line.
    Cut,
}

/// Returns the extent of the reply in these bytes.
pub fn shape(mut bytes: &[u8]) -> Shape {
    let mut items = 0;
    while bytes.starts_with(b"VALUE ") {
        let Some(item) = ItemExtent::of(bytes) else { return Shape::Ended { items } };
        let Some(rest) = bytes.get(item.len_bytes..) else { return Shape::Cut };
        bytes = rest;
        items += 1;
    }
    let is_line = items == 0
        || [END, b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR"].iter().any(|word| bytes.starts_with(word));
    match bytes {
        [] if items > 0 => Shape::Open,
        _ if is_line && bytes.ends_with(b"\r\n") => Shape::Ended { items },
        _ => Shape::Cut,
    }
}

/// An item's first line.
pub(super) struct ItemExtent<'a> {
    pub(super) key: &'a [u8],
    /// Bytes of the item, with its first line and the line end behind the value.
    pub(super) len_bytes: usize,
}

impl<'a> ItemExtent<'a> {
    /// Reads `VALUE <key> <flags> <bytes> [<cas unique>]` and its line end; `None` when it is not of that form.
    pub(super) fn of(bytes: &'a [u8]) -> Option<ItemExtent<'a>> {
        let rest = bytes.strip_prefix(b"VALUE ")?;
        let (key, rest) = rest.split_at(lines::key_len(rest));
        let (_, digits) = lines::decimal(rest.strip_prefix(b" ")?)?;
        let rest = &rest[1 + digits..];
        let (size, digits) = lines::decimal(rest.strip_prefix(b" ")?)?;
        let rest = &rest[1 + digits..];
        let rest = match rest.strip_prefix(b" ") {
            Some(cas) => &cas[lines::decimal(cas)?.1..],
            None => rest,
        };
        let rest = rest.strip_prefix(b"\r\n")?;
        let first_line = bytes.len() - rest.len();
        let len_bytes = usize::try_from(size).ok()?.checked_add(first_line + 2)?;
        Some(ItemExtent { key, len_bytes })
    }
}
