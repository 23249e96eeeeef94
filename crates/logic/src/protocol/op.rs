//! One request as a codec sees it: its verb, its keys, its value, and its options.

use super::verb::Verb;
use crate::bodies::Bodies;
use crate::connection::outbox::Outbox;

/// The keys of a request: one, or for a multi-get many in one block.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// A single key.
    One(&'a [u8]),
    /// Several keys, end to end in `bytes`; `ends[n]` is where key n stops. Of a command of the user, the first is the key and the
    /// others fill its places.
    Many {
        /// All keys, end to end.
        bytes: &'a [u8],
        /// End of each key in `bytes`.
        ends: &'a [u32],
    },
    /// Several keys with a value each, for [`Verb::Mset`]; other verbs see the keys.
    Pairs(Pairs<'a>),
}

/// Several keys, and the value to store under each.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// Keys and values.
    pub list: &'a PairList,
    /// The bodies of the values.
    pub bodies: &'a Bodies,
}

/// Several keys and values in shared memory.
#[derive(Clone, Debug, Default)]
pub struct PairList {
    /// All keys, end to end.
    pub bytes: Vec<u8>,
    /// End of each key in `bytes`.
    pub ends: Vec<u32>,
    /// The values, one for each key.
    pub values: Vec<PairValue>,
}

/// Most own bytes of a value in a list.
const OWN_MAX_BYTES: usize = 24;

/// A value in a [`PairList`].
#[derive(Clone, Copy, Debug)]
pub struct PairValue {
    /// Room for the value's own bytes, which come first.
    pub own: [u8; OWN_MAX_BYTES],
    /// Number of own bytes.
    pub own_bytes: u8,
    /// Seed of the body that is the rest of the value.
    pub body_seed: u64,
    /// Length of the rest of the value in bytes.
    pub body_bytes: usize,
}

impl<'a> Pairs<'a> {
    /// The value of key `n`.
    pub fn value(&self, n: usize) -> Value<'a> {
        let value = &self.list.values[n];
        Value {
            own: &value.own[..usize::from(value.own_bytes)],
            rest: Rest::Body { bodies: self.bodies, seed: value.body_seed, len_bytes: value.body_bytes },
        }
    }
}

impl PairValue {
    /// The form of `value` that lies in a [`PairList`].
    ///
    /// # Panics
    /// Panics if the value has more than 24 own bytes, or bytes of a shared text.
    pub fn of(value: &Value<'_>) -> PairValue {
        let mut own = [0; OWN_MAX_BYTES];
        own[..value.own.len()].copy_from_slice(value.own);
        let (body_seed, body_bytes) = match value.rest {
            Rest::Body { seed, len_bytes, .. } => (seed, len_bytes),
            Rest::Text { bytes, .. } => {
                assert!(bytes.is_empty(), "pairs have no texts");
                (0, 0)
            }
        };
        PairValue { own, own_bytes: value.own.len() as u8, body_seed, body_bytes }
    }
}

impl<'a> Keys<'a> {
    /// Number of keys.
    pub fn count(&self) -> usize {
        match self {
            Keys::One(_) => 1,
            Keys::Many { ends, .. } => ends.len(),
            Keys::Pairs(pairs) => pairs.list.ends.len(),
        }
    }

    /// Returns key `n`.
    pub fn key(&self, n: usize) -> &'a [u8] {
        let (bytes, ends) = match *self {
            Keys::One(key) => {
                assert!(n == 0, "a single key has the index 0");
                return key;
            }
            Keys::Many { bytes, ends } => (bytes, ends),
            Keys::Pairs(Pairs { list, .. }) => (&list.bytes[..], &list.ends[..]),
        };
        let start = if n == 0 { 0 } else { ends[n - 1] as usize };
        &bytes[start..ends[n] as usize]
    }
}

/// The value of a request: bytes of its own, then the rest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Value<'a> {
    /// The first bytes.
    pub own: &'a [u8],
    /// The bytes behind the first ones.
    pub rest: Rest<'a>,
}

/// The bytes of a value behind its own ones.
#[derive(Clone, Copy, Debug)]
pub enum Rest<'a> {
    /// A range of a text that all values of the run are cut from.
    Text {
        /// The bytes of the range.
        bytes: &'a [u8],
        /// Offset in the text at which they begin.
        at: usize,
    },
    /// The beginning of a body, which is made when it is sent.
    Body {
        /// The maker of its bytes.
        bodies: &'a Bodies,
        /// Seed of the body.
        seed: u64,
        /// Length in bytes.
        len_bytes: usize,
    },
}

impl Default for Rest<'_> {
    fn default() -> Self {
        Rest::Text { bytes: &[], at: 0 }
    }
}

impl<'a> Value<'a> {
    /// A value that has bytes of its own alone.
    pub fn plain(own: &'a [u8]) -> Value<'a> {
        Value { own, rest: Rest::default() }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.own.len()
            + match self.rest {
                Rest::Text { bytes, .. } => bytes.len(),
                Rest::Body { len_bytes, .. } => len_bytes,
            }
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the value to what waits to be sent.
    #[inline]
    pub fn push_to(&self, out: &mut Outbox) {
        out.push(self.own);
        match self.rest {
            Rest::Text { bytes, at } => out.push_text(bytes, at),
            Rest::Body { bodies, seed, len_bytes } => out.push_body(bodies, seed, len_bytes),
        }
    }

    /// All bytes of the value.
    #[cfg(test)]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = self.own.to_vec();
        match self.rest {
            Rest::Text { bytes: text, .. } => bytes.extend_from_slice(text),
            Rest::Body { bodies, seed, len_bytes } => bodies.append(seed, len_bytes, &mut bytes),
        }
        bytes
    }
}

/// One request, as a codec sees it. Fields that the verb does not use are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// The request's verb.
    pub verb: Verb,
    /// The key or keys of the request.
    pub keys: Keys<'a>,
    /// The value to store.
    pub value: Value<'a>,
    /// Flags stored beside the value.
    pub flags: u32,
    /// Expiry in seconds, 0 for none; as memcached's protocol document says, negative is expired at once and more
    /// than 30 days is an absolute time.
    pub expiry_s: i64,
    /// CAS unique, for [`Verb::Cas`]; of a sequence of commands, which of them are sent
    /// ([`Sending`](super::resp::sequence::Sending)).
    pub cas: u64,
    /// Amount, for [`Verb::Incr`] and [`Verb::Decr`]; for commands of the user the number that fills `__number__`, which
    /// is the index of the record.
    pub delta: u64,
    /// Whether the server is asked not to answer.
    pub noreply: bool,
    /// Options that only the meta protocol can express.
    pub meta: MetaAsk,
    /// Whether a single key is known to be valid in the text protocols, because the maker of keys has checked all of
    /// them.
    pub key_is_sure: bool,
}

/// Options that only memcached's meta protocol can express; other codecs ignore them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MetaAsk {
    /// A read that finds nothing makes an empty item with this expiry in seconds, and wins the right to fill it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vivify_s: Option<u32>,
    /// A read of an item that expires in less than this many seconds wins the right to renew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recache_s: Option<u32>,
    /// A read also asks for the remaining time, the size, whether the item was read before, and when. They are checked
    /// for their form and not handed on.
    pub details: bool,
    /// A delete marks the item as stale for this many seconds, 0 for ever, and does not remove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_s: Option<u32>,
}

impl MetaAsk {
    /// Whether no option is set.
    pub fn is_nothing(&self) -> bool {
        *self == MetaAsk::default()
    }

    /// Whether servers may ask reads to renew what they read.
    pub fn renews(&self) -> bool {
        self.vivify_s.is_some() || self.recache_s.is_some() || self.stale_s.is_some()
    }
}

impl<'a> Op<'a> {
    /// A request of `verb` for one key, everything else empty or zero.
    pub fn new(verb: Verb, key: &'a [u8]) -> Op<'a> {
        Op {
            verb,
            keys: Keys::One(key),
            value: Value::default(),
            flags: 0,
            expiry_s: 0,
            cas: 0,
            delta: 0,
            noreply: false,
            meta: MetaAsk::default(),
            key_is_sure: false,
        }
    }
}
