//! Counters that `whole_run` says memcached 1.6.18 has, under memcached's names.

use super::{Json, Stats};

const STORING: [&str; 6] = ["set", "add", "replace", "append", "prepend", "cas"];

/// Counters of a protocol's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Text and binary.
    Classic,
    /// A touch is a get that also sets an expiry, so that where it finds nothing it is counted as any other get.
    Meta,
}

/// memcached counts keys, not requests: those of get and gets in `cmd_get`, those of gat and gats, beside touch, in
/// `cmd_touch` alone, each with hits and misses of its own. A miss that finds something expired is one more `get_expired`.
/// `cmd_set` is every storage command whose value came, stored or not. (As that version was seen to do.)
pub fn counted(result: &Json, dialect: Dialect) -> Vec<(&'static str, u64)> {
    let of = |op: &str, what: &str| result.count_or_none(&format!("whole_run/ops/{op}/{what}"));
    let sum = |ops: &[&str], what: &str| ops.iter().map(|op| of(op, what)).sum::<u64>();
    let (plain, touching) = (["get", "gets"], ["gat", "gats"]);
    let touch_hits = of("touch", "outcomes/touched") + sum(&touching, "hits");
    let touch_misses = of("touch", "outcomes/not_found") + sum(&touching, "misses");
    let (to_get, to_touch) = match dialect {
        Dialect::Classic => (0, touch_misses),
        Dialect::Meta => (touch_misses, 0),
    };
    vec![
        ("cmd_get", sum(&plain, "keys") + to_get),
        ("get_hits", sum(&plain, "hits")),
        ("get_misses", sum(&plain, "misses") + to_get),
        ("cmd_touch", touch_hits + to_touch),
        ("touch_hits", touch_hits),
        ("touch_misses", to_touch),
        ("cmd_set", sum(&STORING, "completed")),
        ("cas_hits", of("cas", "outcomes/stored")),
        ("cas_misses", of("cas", "outcomes/not_found")),
        ("cas_badval", of("cas", "outcomes/exists")),
        ("delete_hits", of("delete", "outcomes/deleted")),
        ("delete_misses", of("delete", "outcomes/not_found")),
        ("incr_hits", of("incr", "outcomes/number")),
        ("incr_misses", of("incr", "outcomes/not_found")),
        ("decr_hits", of("decr", "outcomes/number")),
        ("decr_misses", of("decr", "outcomes/not_found")),
        ("bytes_read", result.count("whole_run/bytes/sent")),
        ("bytes_written", result.count("whole_run/bytes/received")),
    ]
}

/// Counts of memcached between two looks through one connection, without what the looks themselves added.
pub fn between(before: &Stats, after: &Stats, name: &str) -> u64 {
    let own = match name {
        "bytes_read" => "stats\r\n".len() as u64,
        "bytes_written" => before.reply_bytes,
        _ => 0,
    };
    after.get(name) - before.get(name) - own
}

#[track_caller]
pub fn assert_counted(result: &Json, dialect: Dialect, before: &Stats, after: &Stats) {
    for (name, ours) in counted(result, dialect) {
        assert_eq!(ours, between(before, after, name), "{name}: ours and memcached's");
    }
}
