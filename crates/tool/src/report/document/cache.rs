//! The cache as its clients saw it: misses by cause, bytes that were found and stored, stores after misses.

use pummel_logic::measure::evidence::server::FLUSHED;
use pummel_logic::measure::limit::MISSES_SHARE;
use pummel_logic::measure::words::grouped;
use pummel_logic::plan::{Phase, Work};
use pummel_logic::workload::cache_counts::CacheCounts;
use serde::{Deserialize, Serialize};

use super::{Document, OpResult, ServerResult, reads};

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
    fn misses(&self, other: &str) -> Option<String> {
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

impl Document {
    /// The misses and their causes in words, where causes are told apart or there is one alone that can be; `None` for others, and
    /// where there were none.
    pub fn misses_words(&self) -> Option<String> {
        let never = self.were_never_there();
        if let Some(cache) = &self.cache {
            let other = match &never {
                Some(which) => format!("of keys that were not in the server when the run began ({which})"),
                None => "other (evicted, deleted, or stored by the load)".to_owned(),
            };
            return cache.misses(&other);
        }
        let sum = |of: fn(&OpResult) -> u64| {
            self.ops.iter().filter(|(name, _)| reads(name)).map(|(_, op)| of(op)).sum::<u64>()
        };
        let (found, missed) = (sum(|op| op.hits), sum(|op| op.misses));
        let is_much = missed as f64 > MISSES_SHARE * (found + missed) as f64;
        let which = never.filter(|_| is_much)?;
        let all = grouped(found + missed);
        Some(format!("{} of {all} keys were not in the server when the run began ({which})", grouped(missed)))
    }

    /// Which keys were asked for that were not in the server when the run began, as words; `None` unless that is the only cause that
    /// misses can have: this run stored nothing before, and no server counted a record that it lost.
    fn were_never_there(&self) -> Option<String> {
        let plan = &self.plan;
        let is_load = |phase: &Phase| matches!(phase.work, Work::Load(_));
        let evidence = self.evidence.as_ref().filter(|seen| !seen.servers.is_empty())?;
        let keeps = |server: &ServerResult| {
            let reading = server.reading.as_ref()?;
            let lost = reading.counts.evictions? + reading.counts.expired?;
            let is_emptied = reading.disturbances.iter().any(|words| words.starts_with(FLUSHED));
            Some(lost == 0 && !is_emptied && !reading.restarted && !reading.counters_reset)
        };
        let is_kept = evidence.servers.iter().all(|server| keeps(server) == Some(true));
        let deletes = self.ops.iter().any(|(name, op)| name == "delete" && op.completed > 0);
        let is_plain = plan.trace().is_none()
            && plan.window().is_none()
            && plan.changes.events.is_empty()
            && !plan.phases.iter().any(is_load);
        (self.load.is_none() && is_plain && is_kept && !deletes && plan.data.expiry_s.support() == (0.0, 0.0))
            .then(|| format!("keys {} bytes, prefix '{}'", plan.data.key_size, plan.data.key_prefix))
    }
}
