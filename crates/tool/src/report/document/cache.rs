//! The cache as its clients saw it: misses by cause, bytes that were found and stored, stores after misses.

use pummel_logic::workload::cache_counts::CacheCounts;
use serde::{Deserialize, Serialize};

use super::requests::OpsResult;

/// The cache as its clients saw it, all operations together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheResult {
    /// The counts.
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// The share of the bytes asked for that reads found; null where none were asked for.
    pub hit_share_of_bytes: Option<f64>,
}

impl CacheResult {
    /// The sum over operations; `None` where none of them has such counts.
    pub fn of(ops: &OpsResult) -> Option<CacheResult> {
        let mut counted = ops.iter().filter_map(|(_, op)| op.cache).peekable();
        counted.peek()?;
        let mut counts = CacheCounts::default();
        counted.for_each(|more| counts.merge(&more));
        Some(CacheResult {
            counts,
            hit_share_of_bytes: counts.hit_share_of_bytes().map(|share| (share * 1e6).round() / 1e6),
        })
    }
}
