//! The cache as its clients saw it: misses by cause, bytes that were found and stored, stores after misses.

use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::words::grouped;
use serde::{Deserialize, Serialize};

/// The cache as its clients saw it, all operations together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CacheResult {
    /// The counts.
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// The share of the bytes asked for that reads found; null where none were asked for, and where keys were that do not exist.
    pub hit_share_of_bytes: Option<f64>,
}

impl CacheResult {
    /// The sum of the counts of operations; `None` if there are none.
    pub fn of(counted: impl Iterator<Item = CacheCounts>) -> Option<CacheResult> {
        let counts = counted.reduce(|mut sum, more| {
            sum.merge(&more);
            sum
        })?;
        let share = |share: f64| (share * 1e6).round() / 1e6;
        Some(CacheResult { counts, hit_share_of_bytes: counts.hit_share_of_bytes().map(share) })
    }

    /// The misses and the shares of their causes; `None` where there were none. `other` is what may have been the cause of those
    /// whose cause is not known.
    pub(super) fn misses(&self, other: &str) -> Option<String> {
        let all = self.counts.misses();
        let causes = self.counts.by_cause().into_iter().filter(|(_, count)| *count > 0);
        let words = causes.map(|(cause, count)| {
            let words = match cause {
                "first_touch" => "of keys never stored before",
                "absent" => "of keys that do not exist",
                "other" => other,
                cause => cause,
            };
            format!("{:.1} % {words}", 100.0 * count as f64 / all as f64)
        });
        (all > 0).then(|| format!("{}: {}", grouped(all), words.collect::<Vec<_>>().join(", ")))
    }
}
