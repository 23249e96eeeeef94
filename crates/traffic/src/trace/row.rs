//! A recorded request, in the form that all formats of traces share, and the kind of what else a line or a record can be.

use crate::trace::sizes::Store;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::hash::hash_bytes;

/// The longest key that a request may have, in bytes; longer ones are cut (`protocol.txt` of memcached).
pub const KEY_MAX_BYTES: usize = 250;

/// The longest value that a row may have, in bytes: the largest item that memcached can be set to take.
pub const VALUE_MAX_BYTES: u32 = 1 << 30;

/// The byte that a key is filled up with to the length that its trace names: one that ids do not end with, so that no two keys
/// become one.
pub const PADDING: u8 = b'~';

/// A recorded request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Time of the request, in nanoseconds of the trace's own clock.
    pub at_ns: Nanos,
    /// Precision of `at_ns`, in nanoseconds: the request was made within this time from `at_ns` on. At most one second.
    pub resolution_ns: u32,
    /// Operation of the request.
    pub verb: Verb,
    /// The key as it stands in the trace, 1 to [`KEY_MAX_BYTES`] bytes.
    pub key: &'a [u8],
    /// Length of the key in bytes that is sent, at least that of `key`; the rest is [`PADDING`].
    pub key_bytes: u16,
    /// Length of the value in bytes; `None` where the trace does not say it.
    pub value_bytes: Option<u32>,
    /// Time to live in seconds, 0 for none.
    pub ttl_s: u32,
    /// The number of the client that made the request; `None` if the trace does not say it.
    pub client: Option<u64>,
    /// Whether the read found nothing when the trace was recorded.
    pub missed: bool,
    /// Number of equal requests, at least 1.
    pub count: u32,
    /// Whether the row continues the one before it: both are one row of the trace, of which some requests missed and
    /// others did not.
    pub continues: bool,
}

impl<'a> Row<'a> {
    /// A read of `key` at time 0, once, with nothing else known.
    pub fn read(key: &'a [u8]) -> Row<'a> {
        Row {
            at_ns: 0,
            resolution_ns: 1,
            verb: Verb::Get,
            key,
            key_bytes: key.len() as u16,
            value_bytes: None,
            ttl_s: 0,
            client: None,
            missed: false,
            count: 1,
            continues: false,
        }
    }

    /// The row, made within a whole second from its time on.
    pub fn within_second(self) -> Row<'a> {
        Row { resolution_ns: SECOND as u32, ..self }
    }

    /// Whether the request stores a value.
    pub fn stores(&self) -> bool {
        self.verb.stores()
    }

    /// The value that the request stores; `None` if it stores none. Bytes that are added to a value keep its time to live, and
    /// have a length that is not that of the value.
    pub fn stored(&self) -> Option<Store> {
        match self.verb {
            Verb::Append | Verb::Prepend => None,
            verb if verb.stores() => Some(Store { bytes: self.value_bytes, ttl_s: Some(self.ttl_s) }),
            _ => None,
        }
    }

    /// Length of the value that the request reads or stores, in bytes; `None` if the trace does not say it, or if the request
    /// has no value, such as a delete.
    pub fn known_value_bytes(&self) -> Option<u32> {
        self.value_bytes.filter(|_| self.verb.reads() || self.stores())
    }

    /// Writes the key that is sent into `into`: its bytes and its padding.
    pub fn write_key(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(self.key);
        into.resize(start + usize::from(self.key_bytes).max(self.key.len()), PADDING);
    }

    /// 64 bits that belong to the key as it stands in the trace.
    pub fn key_hash(&self) -> u64 {
        hash_bytes(self.key)
    }
}

/// Whether these bytes are a key that servers take: 1 to [`KEY_MAX_BYTES`] bytes without blanks and control characters.
pub fn is_key(key: &[u8]) -> bool {
    pummel_logic::protocol::lines::is_key(key)
}

/// The operations of Twitter's traces; those of libCacheSim's twr are numbered from 1 in this order.
#[rustfmt::skip]
pub(super) const VERBS: [Verb; 11] = [
    Verb::Get, Verb::Gets, Verb::Set, Verb::Add, Verb::Cas, Verb::Replace, Verb::Append, Verb::Prepend,
    Verb::Delete, Verb::Incr, Verb::Decr,
];

/// The operation of [`VERBS`] with this name.
pub(super) fn verb_named(word: &[u8]) -> Option<Verb> {
    VERBS.into_iter().find(|verb| verb.name().as_bytes() == word)
}

/// The kind of a line or a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Requests, which were handed over.
    Rows,
    /// A line without a request: a header, an empty line, an end.
    Nothing,
    /// An operation that is not replayed.
    Skipped,
    /// Line or record that is no request of the format.
    Bad,
    /// A note that this many requests were not recorded.
    Lost(u64),
}

/// A receiver of rows.
pub(super) type Sink<'a> = dyn FnMut(&Row<'_>) + 'a;
