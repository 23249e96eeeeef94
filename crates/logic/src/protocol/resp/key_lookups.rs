//! The keys that a server counts as found or missed for a command, and what replies tell of them.

use super::command_table::{Access, CommandRow, Tells};

/// The lookups of keys that `keyspace_hits` and `keyspace_misses` of a server count for each request of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLookups {
    /// Keys that are counted for each request.
    pub per_request: u32,
    /// Knowledge that replies give of those keys.
    pub told: Told,
}

/// Knowledge that replies give of the keys that their commands looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Replies say of each key whether it exists.
    Keys,
    /// Replies say something else: whether an element was found, for one.
    Other,
    /// Replies say nothing.
    Nothing,
}

/// Reads that no counter counts.
const UNCOUNTED: &[&str] = &["KEYS", "MEMORY USAGE", "RANDOMKEY", "SCAN"];

/// Writes for which the counters count all keys.
const COUNTED_WRITES: &[&str] = &["GETDEL", "GETEX", "GETSET", "PFMERGE", "XACK", "XAUTOCLAIM", "XCLAIM"];

/// Writes for which the counters count all keys but that to which they write.
const STORED_ELSEWHERE: &[&str] = &[
    "BITOP",
    "COPY",
    "GEOSEARCHSTORE",
    "SDIFFSTORE",
    "SINTERSTORE",
    "SUNIONSTORE",
    "ZDIFFSTORE",
    "ZINTERSTORE",
    "ZRANGESTORE",
    "ZUNIONSTORE",
];

/// Commands for which a key counts twice.
const COUNTED_TWICE: &[&str] = &["XREAD", "XREADGROUP"];

/// Commands whose words decide which keys the counters count.
const VARIED: &[&str] = &["BITFIELD", "GEORADIUS", "GEORADIUSBYMEMBER", "SORT", "SORT_RO"];

/// Commands whose replies say of each key whether it exists.
#[rustfmt::skip]
const TELLING_OF_KEYS: &[&str] = &[
    "DUMP", "EXISTS", "EXPIRETIME", "GET", "GETDEL", "GETEX", "GETSET", "HGETALL", "HKEYS", "HLEN", "HRANDFIELD", "HVALS", "LLEN", "MGET",
    "OBJECT ENCODING", "OBJECT FREQ", "OBJECT IDLETIME", "OBJECT REFCOUNT", "PEXPIRETIME", "PTTL", "SCARD", "SET", "SMEMBERS",
    "SRANDMEMBER", "TOUCH", "TTL", "TYPE", "ZCARD", "ZRANDMEMBER",
];

impl KeyLookups {
    /// The lookups of a command with so many keys, whose words behind its name are asked for; `None` where it is not known what a
    /// server counts. The counts were measured on Redis 7.0.15 and Valkey.
    pub(super) fn of(
        row: &CommandRow,
        keys: usize,
        tells: Tells,
        mut has_word: impl FnMut(&str) -> bool,
    ) -> Option<KeyLookups> {
        let is_in = |names: &[&str]| names.contains(&row.name);
        let counted = match row.access {
            // Other commands without an access, such as a script, may look up any key.
            Access::Neither if matches!(row.name, "PUBLISH" | "SPUBLISH" | "WAIT" | "WATCH" | "UNWATCH") => 0,
            Access::Neither => return None,
            _ if is_in(VARIED) || row.calls_others() => return None,
            _ if is_in(COUNTED_TWICE) => 2 * keys,
            Access::Read if is_in(UNCOUNTED) => 0,
            Access::Read => keys,
            Access::Write if is_in(STORED_ELSEWHERE) => keys.saturating_sub(1),
            Access::Write if is_in(COUNTED_WRITES) || row.name == "SET" && has_word("GET") => keys,
            Access::Write => 0,
        };
        let told = match tells {
            Tells::No => Told::Nothing,
            _ if is_in(TELLING_OF_KEYS) => Told::Keys,
            _ => Told::Other,
        };
        Some(KeyLookups { per_request: u32::try_from(counted).ok()?, told })
    }
}
