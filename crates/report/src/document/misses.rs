//! The misses of a run and their causes, in words.

use pummel_measure::limit::MISSES_SHARE;
use pummel_measure::misses::{NeverThere, begins_without_load, lost_nothing};
use pummel_measure::words::grouped;

use super::{Document, OpResult, ServerResult, reads};
use crate::words::limit::never_there_words;

impl Document {
    /// The misses and their causes in words, where causes are told apart or there is one alone that can be; `None` for others, and
    /// where there were none.
    pub fn misses_words(&self) -> Option<String> {
        let never = self.were_never_there();
        if let Some(cache) = &self.cache {
            let other = match &never {
                Some(words) => format!("of keys that were {words}"),
                None => "other (evicted, deleted, or stored by the load)".to_owned(),
            };
            return cache.misses(&other);
        }
        let sum = |of: fn(&OpResult) -> u64| {
            self.ops.iter().filter(|(name, _)| reads(name)).map(|(_, op)| of(op)).sum::<u64>()
        };
        let (found, missed) = (sum(|op| op.hits), sum(|op| op.misses));
        let is_much = missed as f64 > MISSES_SHARE * (found + missed) as f64;
        let words = never.filter(|_| is_much)?;
        Some(format!("{} of {} keys were {words}", grouped(missed), grouped(found + missed)))
    }

    /// What is said of the keys that were missed where they were not in the server when the run began; `None` unless that is the only
    /// cause that misses can have: this run stored nothing before, and no server counted a record that it lost.
    fn were_never_there(&self) -> Option<String> {
        let evidence = self.evidence.as_ref().filter(|seen| !seen.servers.is_empty())?;
        let keeps = |server: &ServerResult| {
            server.reading.as_ref().is_some_and(|reading| {
                let is_whole = !reading.restarted && !reading.counters_reset;
                is_whole && lost_nothing(&reading.counts, reading.our_requests, &reading.disturbances)
            })
        };
        let is_kept = evidence.servers.iter().all(keeps);
        let readings = evidence.servers.iter().filter_map(|server| server.reading.as_ref());
        let holds_usual = readings.into_iter().any(|reading| reading.usual_record == Some(true));
        (self.load.is_none() && is_kept && begins_without_load(&self.plan))
            .then(|| never_there_words(&NeverThere::of(&self.plan, holds_usual)))
    }
}
