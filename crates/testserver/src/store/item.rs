//! A stored item: its value, its expiry, its marks, and its size as memcached counts it.

use std::sync::Arc;

use pummel_logic::time::Nanos;

/// Longest key in bytes (memcached's `protocol.txt`, "Keys").
pub const KEY_MAX_BYTES: usize = 250;

/// Bytes that memcached 1.6 on a 64-bit machine adds to key and value of an item: header, CAS unique, the zero byte
/// after the key and the line end after the value.
const ITEM_OVERHEAD_BYTES: usize = 59;

/// Bytes that an item needs in addition where its flags are not zero.
const FLAGS_BYTES: usize = 4;

/// A stored item.
#[derive(Clone, Debug)]
pub struct StoredItem {
    pub(super) key: Arc<[u8]>,
    /// Value of the item.
    pub value: Arc<[u8]>,
    /// The flags that the client stored beside the value.
    pub flags: u32,
    /// The CAS unique, which changes with every store.
    pub cas: u64,
    /// Time at which the item ought to expire, in nanoseconds.
    pub(crate) expires: Nanos,
    /// Whether the item was asked for since eviction last looked at it.
    pub(super) used: bool,
    /// The form of the value's bytes.
    pub(crate) form: Form,
    pub(crate) marks: Marks,
    /// Time at which the item was last read, or else stored, in nanoseconds.
    pub(crate) last_read: Nanos,
}

/// Meaning of the bytes of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Bytes of a string.
    #[default]
    Plain,
    /// The fields of a hash, as `resp::hash` writes them.
    Hash,
}

/// Marks of an item for the meta commands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Whether a client read the item.
    pub(crate) read: bool,
    /// Whether the item was marked as stale.
    pub(crate) stale: bool,
    /// Whether a reader was asked to renew the item.
    pub(super) token_sent: bool,
    /// Whether the item's key came in base64.
    pub(crate) key_encoded: bool,
}

impl StoredItem {
    pub(super) fn new(
        key: Arc<[u8]>,
        value: Arc<[u8]>,
        flags: u32,
        cas: u64,
        expires: Nanos,
        now: Nanos,
    ) -> StoredItem {
        let (form, marks) = (Form::default(), Marks::default());
        StoredItem { key, value, flags, cas, expires, used: false, form, marks, last_read: now }
    }

    /// The key of the item.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn len_bytes(&self) -> usize {
        item_len_bytes(self.key.len(), self.flags, self.value.len())
    }
}

pub(crate) fn item_len_bytes(key_len: usize, flags: u32, value_len: usize) -> usize {
    ITEM_OVERHEAD_BYTES + key_len + value_len + if flags == 0 { 0 } else { FLAGS_BYTES }
}
