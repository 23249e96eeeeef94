//! The contract of all protocols: an [`Op`] becomes bytes, bytes become [`Step`]s; nobody here owns a connection.

use crate::connection::outbox::Outbox;

mod batch;
pub mod binary;
#[cfg(any(test, fuzzing))]
pub mod contract;
pub mod handshake;
pub mod lines;
pub mod meta;
pub mod resp;
pub mod text;
pub mod udp;

/// What is asked of the server. Figures are kept apart by verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Verb {
    /// Read one or many keys.
    Get,
    /// Read one or many keys with their CAS unique.
    Gets,
    /// Read and set a new expiry.
    Gat,
    /// Read with CAS unique and set a new expiry.
    Gats,
    /// Store.
    Set,
    /// Store where nothing is stored yet.
    Add,
    /// Store where something is stored already.
    Replace,
    /// Add bytes at the end of a value.
    Append,
    /// Add bytes at the beginning of a value.
    Prepend,
    /// Store where nobody else stored since the CAS unique was read.
    Cas,
    /// Add to a decimal value.
    Incr,
    /// Subtract from a decimal value, down to 0.
    Decr,
    /// Remove.
    Delete,
    /// Set a new expiry.
    Touch,
    /// Ask for the server's version: the smallest exchange there is.
    Version,
    /// Read a field of a hash (RESP).
    Hget,
    /// Store in a field of a hash (RESP).
    Hset,
    /// Store under one or many keys (RESP).
    Mset,
    /// The command of the template (RESP).
    Command,
}

impl Verb {
    /// Every verb, in the order of reports. `ALL[v as usize] == v`.
    pub const ALL: [Verb; 19] = [
        Verb::Get,
        Verb::Gets,
        Verb::Gat,
        Verb::Gats,
        Verb::Set,
        Verb::Add,
        Verb::Replace,
        Verb::Append,
        Verb::Prepend,
        Verb::Cas,
        Verb::Incr,
        Verb::Decr,
        Verb::Delete,
        Verb::Touch,
        Verb::Version,
        Verb::Hget,
        Verb::Hset,
        Verb::Mset,
        Verb::Command,
    ];

    /// Number of verbs.
    pub const COUNT: usize = Verb::ALL.len();

    /// The word of the command line, of the JSON result and of the text protocol.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Gets => "gets",
            Verb::Gat => "gat",
            Verb::Gats => "gats",
            Verb::Set => "set",
            Verb::Add => "add",
            Verb::Replace => "replace",
            Verb::Append => "append",
            Verb::Prepend => "prepend",
            Verb::Cas => "cas",
            Verb::Incr => "incr",
            Verb::Decr => "decr",
            Verb::Delete => "delete",
            Verb::Touch => "touch",
            Verb::Version => "version",
            Verb::Hget => "hget",
            Verb::Hset => "hset",
            Verb::Mset => "mset",
            Verb::Command => "command",
        }
    }

    /// The verb of that name.
    pub fn from_name(name: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Whether replies carry values, so that keys are counted as hits and misses.
    pub fn reads(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Hget)
    }

    /// Whether the request stores a value. [`Verb::Command`] may carry one, and nobody knows what becomes of it.
    pub fn stores(self) -> bool {
        matches!(self, Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas)
            || matches!(self, Verb::Hset | Verb::Mset)
    }

    /// Whether requests of this verb carry an expiry.
    #[inline]
    pub fn has_expiry(self) -> bool {
        self.stores() && !self.is_resp_only() || matches!(self, Verb::Gat | Verb::Gats | Verb::Touch)
    }

    /// Whether a request of this verb can end so: an answer of another kind belongs to another request, or to none.
    #[inline]
    pub fn can_end(self, outcome: &Outcome) -> bool {
        ENDS[self as usize] >> outcome.kind() & 1 != 0
    }

    /// Whether only servers that speak RESP know it.
    pub fn is_resp_only(self) -> bool {
        matches!(self, Verb::Hget | Verb::Hset | Verb::Mset | Verb::Command)
    }
}

/// The keys of a request: one, or for a multi-get many in one block.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// A single key.
    One(&'a [u8]),
    /// Several keys, end to end in `bytes`; `ends[n]` is where key n stops.
    Many {
        /// All keys, end to end.
        bytes: &'a [u8],
        /// Where each key stops.
        ends: &'a [u32],
    },
    /// Several keys with a value each, for [`Verb::Mset`]; other verbs see the keys.
    Pairs(Pairs<'a>),
}

/// Several keys, and what to store under each.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// Keys and values.
    pub list: &'a PairList,
    /// The block that values share.
    pub block: &'a [u8],
}

/// Keys and values that lie side by side.
#[derive(Clone, Debug, Default)]
pub struct PairList {
    /// All keys, end to end.
    pub bytes: Vec<u8>,
    /// Where each key stops.
    pub ends: Vec<u32>,
    /// The values, one for each key.
    pub values: Vec<PairValue>,
}

/// Most bytes that a value in a list has of its own.
const OWN_MAX_BYTES: usize = 24;

/// A value that lies in a list of them.
#[derive(Clone, Copy, Debug)]
pub struct PairValue {
    /// Room for its first bytes.
    pub own: [u8; OWN_MAX_BYTES],
    /// How many of them it has.
    pub own_bytes: u8,
    /// Where in the shared block the rest begins.
    pub shared_at: usize,
    /// How long the rest is.
    pub shared_bytes: usize,
}

impl<'a> Pairs<'a> {
    /// The value of key `n`.
    pub fn value(&self, n: usize) -> Value<'a> {
        let value = &self.list.values[n];
        Value {
            own: &value.own[..usize::from(value.own_bytes)],
            shared: &self.block[value.shared_at..value.shared_at + value.shared_bytes],
            shared_at: value.shared_at,
        }
    }
}

impl PairValue {
    /// This value, so that it can lie in a list.
    ///
    /// # Panics
    /// When more than 24 of its bytes are its own.
    pub fn of(value: &Value<'_>) -> PairValue {
        let mut own = [0; OWN_MAX_BYTES];
        own[..value.own.len()].copy_from_slice(value.own);
        PairValue {
            own,
            own_bytes: value.own.len() as u8,
            shared_at: value.shared_at,
            shared_bytes: value.shared.len(),
        }
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

    /// Key `n`.
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

/// The value of a request: bytes of its own, then a range of the block that all values of the run are cut from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Value<'a> {
    /// The first bytes.
    pub own: &'a [u8],
    /// The rest: a range of the shared block.
    pub shared: &'a [u8],
    /// Where in the shared block `shared` begins.
    pub shared_at: usize,
}

impl<'a> Value<'a> {
    /// A value that shares nothing.
    pub fn plain(own: &'a [u8]) -> Value<'a> {
        Value { own, shared: &[], shared_at: 0 }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.own.len() + self.shared.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One request, as a codec sees it. Fields that the verb does not use are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// What is asked.
    pub verb: Verb,
    /// Of which key, or keys.
    pub keys: Keys<'a>,
    /// What to store.
    pub value: Value<'a>,
    /// Flags stored beside the value.
    pub flags: u32,
    /// Expiry in seconds, 0 for none; as memcached's protocol document says, negative is expired at once and more
    /// than 30 days is an absolute time.
    pub expiry_s: i64,
    /// CAS unique, for [`Verb::Cas`].
    pub cas: u64,
    /// Amount, for [`Verb::Incr`] and [`Verb::Decr`]; the number of a [`Verb::Command`], for which pummel takes
    /// that of the record.
    pub delta: u64,
    /// Ask the server not to answer.
    pub noreply: bool,
    /// What only the meta protocol can ask.
    pub meta: MetaAsk,
    /// The key, if it is one, is known to be one of the text protocols: whoever makes keys has looked once for all.
    pub key_is_sure: bool,
}

/// Wishes that only memcached's meta protocol can express; other codecs ignore them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// Whether nothing is asked for.
    pub fn is_nothing(&self) -> bool {
        *self == MetaAsk::default()
    }

    /// Whether reads may be told to renew what they read.
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

/// Number that a request carries and its reply repeats, in protocols that have one.
pub type Tag = u32;

/// What an encoded request is going to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// One reply.
    Reply,
    /// None: complete when handed over.
    Nothing,
}

/// A request that the protocol cannot express; a mistake in the plan, found before anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// Why a verb of RESP is none of memcached's.
const NOT_MEMCACHED: Refused =
    Refused("hget, hset, mset and command are asked of servers that speak RESP; memcached has none of them");

/// Bytes that the protocol does not allow; the connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Why a request has no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fault {
    /// The server said that it failed (`SERVER_ERROR`).
    Server,
    /// The server said that the request was wrong, or not allowed (`CLIENT_ERROR`).
    Client,
    /// The server does not know the command (`ERROR`), or answered what the protocol does not allow.
    Protocol,
    /// No answer in time.
    Timeout,
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// The connection was closed, by the peer or because another request on it failed.
    Closed,
    /// The server said that another one has the key (`MOVED` and `ASK` of a Redis cluster).
    Moved,
}

impl Fault {
    /// Every fault, in the order of reports. `ALL[f as usize] == f`.
    pub const ALL: [Fault; 8] = [
        Fault::Server,
        Fault::Client,
        Fault::Protocol,
        Fault::Timeout,
        Fault::Refused,
        Fault::Reset,
        Fault::Closed,
        Fault::Moved,
    ];

    /// Number of faults.
    pub const COUNT: usize = Fault::ALL.len();

    /// The word of the JSON result.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Server => "server",
            Fault::Client => "client",
            Fault::Protocol => "protocol",
            Fault::Timeout => "timeout",
            Fault::Refused => "refused",
            Fault::Reset => "reset",
            Fault::Closed => "closed",
            Fault::Moved => "moved",
        }
    }

    /// Whether the request ended without any answer, so that its true duration is not known.
    pub fn unanswered(self) -> bool {
        matches!(self, Fault::Timeout | Fault::Refused | Fault::Reset | Fault::Closed)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A read found at least one key.
    Hit,
    /// A read found nothing.
    Miss,
    /// Stored.
    Stored,
    /// Not stored, because the verb's condition did not hold.
    NotStored,
    /// Not stored, because somebody else stored since the CAS unique was read.
    Exists,
    /// The key does not exist.
    NotFound,
    /// Removed.
    Deleted,
    /// A new expiry is set.
    Touched,
    /// The value after incr or decr.
    Number(u64),
    /// Done; also a request without reply that was handed over.
    Ok,
    /// It failed.
    Error(Fault),
    /// A read found a value that was marked as stale, and another client has been told to renew it.
    Stale,
    /// A read won the right to renew what it found, or to make what it did not find.
    Win,
    /// A read found a value, or a place for one, that another client has been told to renew.
    Recaching,
}

impl Outcome {
    /// Its number among the outcomes, whatever it carries.
    #[inline]
    const fn kind(&self) -> u32 {
        match self {
            Outcome::Hit => 0,
            Outcome::Miss => 1,
            Outcome::Stored => 2,
            Outcome::NotStored => 3,
            Outcome::Exists => 4,
            Outcome::NotFound => 5,
            Outcome::Deleted => 6,
            Outcome::Touched => 7,
            Outcome::Number(_) => 8,
            Outcome::Ok => 9,
            Outcome::Error(_) => 10,
            Outcome::Stale => 11,
            Outcome::Win => 12,
            Outcome::Recaching => 13,
        }
    }
}

/// How requests of each verb can end: bit k stands for the outcome of kind k.
const ENDS: [u16; Verb::COUNT] = {
    const READ: &[Outcome] = &[Outcome::Hit, Outcome::Miss, Outcome::Stale, Outcome::Win, Outcome::Recaching];
    const STORE: &[Outcome] = &[Outcome::Stored, Outcome::NotStored, Outcome::Exists, Outcome::NotFound];
    const COUNT: &[Outcome] =
        &[Outcome::Number(0), Outcome::Ok, Outcome::NotFound, Outcome::NotStored, Outcome::Exists];
    let mut all = [0; Verb::COUNT];
    let mut v = 0;
    while v < Verb::COUNT {
        let ends = match Verb::ALL[v] {
            Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Hget => READ,
            Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas => STORE,
            Verb::Hset | Verb::Mset => STORE,
            Verb::Incr | Verb::Decr => COUNT,
            Verb::Delete => &[Outcome::Deleted, Outcome::NotFound, Outcome::Exists],
            Verb::Touch => &[Outcome::Touched, Outcome::NotFound],
            Verb::Version => &[Outcome::Ok],
            Verb::Command => &[Outcome::Ok, Outcome::Number(0), Outcome::NotFound],
        };
        all[v] = 1 << Outcome::Error(Fault::Server).kind();
        let mut n = 0;
        while n < ends.len() {
            all[v] |= 1 << ends[n].kind();
            n += 1;
        }
        v += 1;
    }
    all
};

/// What a codec found in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// All input was taken; more is needed.
    Need,
    /// An item begins; its `size` bytes follow as [`Step::Body`], in as many pieces as they arrive in.
    Item {
        /// Which request it belongs to; `None`: the oldest.
        tag: Option<Tag>,
        /// The key as the server sent it; empty where the protocol does not repeat it.
        key: &'a [u8],
        /// Length of the value in bytes.
        size: u64,
        /// CAS unique, 0 if none was sent.
        cas: u64,
        /// Flags.
        flags: u32,
    },
    /// Some of the item's bytes, as they pass; never empty.
    Body(&'a [u8]),
    /// A request is answered.
    Reply {
        /// Which request; `None`: the oldest.
        tag: Option<Tag>,
        /// How it ended. For reads: [`Outcome::Hit`] when an item came before.
        outcome: Outcome,
        /// The server's words, without line end, where it said something beyond the outcome (errors, version); may be
        /// cut off where they are long.
        message: &'a [u8],
    },
    /// A request that asked for no reply has failed.
    QuietError {
        /// The server's words, without line end; may be cut off where they are long.
        message: &'a [u8],
    },
}

/// A whole reply that was taken without showing its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skimmed {
    /// How the request ended.
    pub outcome: Outcome,
    /// Items that the reply had.
    pub items: u32,
}

/// One protocol. A codec keeps what a reply needs while it is cut over several reads, and nothing else.
///
/// The contract, which the tests of every codec check: `decode` takes bytes off the front of `input`; it returns
/// [`Step::Need`] only when `input` is empty; the sequence of steps, with the pieces of a body joined, is the same for
/// every way of cutting the stream; no input makes it panic; after [`Malformed`] it is not called again.
pub trait Codec {
    /// Whether an error line ends a reply wherever it stands, so that what a server sends of that reply all the same is
    /// taken for the next one.
    const ERRORS_END_ANYWHERE: bool = false;

    /// A codec at the beginning of a connection, with nothing set.
    fn new() -> Self;

    /// A codec at the beginning of another connection, with what was set on this one. Codecs with settings have their
    /// own.
    fn renew(&self) -> Self
    where
        Self: Sized,
    {
        Self::new()
    }

    /// Writes `op` at the end of `out`, or writes nothing and says why it cannot be written.
    ///
    /// # Errors
    /// Returns [`Refused`] for a request that the protocol cannot express; nothing is written then.
    fn encode(&mut self, op: &Op<'_>, tag: Tag, out: &mut Outbox) -> Result<Expect, Refused>;

    /// Takes the next step in the stream of replies.
    ///
    /// # Errors
    /// Returns [`Malformed`] for bytes that the protocol does not allow. The connection cannot be used any more.
    fn decode<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Step<'s>, Malformed>;

    /// Writes what the codec itself has to ask, to learn which request an error was for that it has decoded. The answer
    /// gives no [`Step`] of its own.
    #[inline]
    fn inquire(&mut self, _out: &mut Outbox) {}

    /// Takes a whole reply to the oldest request, whose tag is `oldest`, off the front of `input`, for a caller that looks
    /// at none of its items: a short cut through the steps up to its [`Step::Reply`], which has that tag or none, and no
    /// message. `None`, and nothing is taken, where there is no short cut: in the middle of a reply, and for what is not
    /// whole, not common or not right.
    #[inline]
    fn skim(&mut self, _oldest: Tag, _input: &mut &[u8]) -> Option<Skimmed> {
        None
    }
}
