//! The misses of a run and their causes, in words.

use pummel_logic::measure::evidence::server::FLUSHED;
use pummel_logic::measure::limit::MISSES_SHARE;
use pummel_logic::measure::words::grouped;
use pummel_logic::plan::{Phase, Work};

use super::{Document, OpResult, ServerResult, reads};

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
