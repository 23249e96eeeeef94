//! One worker's account of the cache: the counts of a reply, and the keys that the worker stored.

use crate::time::{Nanos, SECOND};
use crate::workload::cache_counts::CacheCounts;
use crate::workload::own_stores::OwnStores;

/// The account of the cache that one worker keeps.
#[derive(Debug)]
pub(super) struct CacheAccount {
    /// The counts of the answer that is being handled.
    pub(super) noted: CacheCounts,
    /// The keys that the worker stored or found.
    pub(super) stores: OwnStores,
    /// Time, in nanoseconds, by which a server may let a key expire before its expiry.
    pub(super) early_ns: Nanos,
}

impl CacheAccount {
    /// An empty account of a server that counts the time in `whole_seconds`, as memcached does, so that a key may expire up to
    /// one second sooner than it was asked to, or of one that does not.
    pub(super) fn new(whole_seconds: bool) -> CacheAccount {
        let early_ns = if whole_seconds { SECOND } else { 0 };
        CacheAccount { noted: CacheCounts::default(), stores: OwnStores::new(), early_ns }
    }
}
