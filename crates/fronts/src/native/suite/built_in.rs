//! The suites that this program knows by name.

/// Names of suites, a sentence about each, and their texts.
const SUITES: [(&str, &str, &str); 4] = [
    (
        "memcached",
        "memcached: get, set, multi-get, touch, cas and meta, with values of 100 bytes and of 100 KiB",
        include_str!("files/memcached.toml"),
    ),
    (
        "redis-benchmark",
        "the tests of redis-benchmark in their order, 200,000 requests each",
        include_str!("files/redis-benchmark.toml"),
    ),
    (
        "valkey-benchmark",
        "the tests of valkey-benchmark in their order, 200,000 requests each",
        include_str!("files/valkey-benchmark.toml"),
    ),
    ("ycsb", "the six workloads of YCSB, A to F, with 100,000 records", include_str!("files/ycsb.toml")),
];

/// All suites by name, with a sentence about each.
pub fn listed() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    SUITES.iter().map(|(name, about, _)| (*name, *about))
}

/// The text of the suite with this name.
pub(super) fn find(name: &str) -> Option<&'static str> {
    SUITES.iter().find(|(known, ..)| *known == name).map(|(_, _, text)| *text)
}
