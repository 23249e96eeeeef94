//! The misses of a run and their causes, in words.

use std::cmp::Reverse;

use pummel_measure::limit::MISSES_SHARE;
use pummel_measure::misses::{NeverThere, begins_without_load, lost_nothing};
use pummel_measure::words::grouped;

use super::{Document, OpResult, ServerResult, reads_records};
use crate::words::limit::never_there_words;

/// Servers whose misses are told at most; the JSON has all.
const SERVERS_SHOWN_MAX: usize = 3;

impl Document {
    /// The misses of loaded records in words, with those of each server where there are several; `None` where there were none.
    pub fn unexpected_misses_words(&self) -> Option<String> {
        let all = self.unexpected_misses.filter(|all| *all > 0)?;
        let shards = self.cluster.iter().flat_map(|cluster| &cluster.shards);
        let of_shards = shards.map(|shard| (shard.node.as_str(), shard.unexpected_misses));
        let of_servers =
            self.servers.iter().map(|server| (server.address.as_str(), server.unexpected_misses));
        let by_server: Vec<(&str, Option<u64>)> = match &self.cluster {
            Some(_) => of_shards.collect(),
            None => of_servers.collect(),
        };
        let mut by_server: Vec<(&str, u64)> = by_server
            .into_iter()
            .filter_map(|(name, misses)| Some((name, misses.filter(|misses| *misses > 0)?)))
            .collect();
        by_server.sort_by_key(|(_, misses)| Reverse(*misses));
        let shown: Vec<String> = by_server
            .iter()
            .take(SERVERS_SHOWN_MAX)
            .map(|(name, misses)| format!("{name} {}", grouped(*misses)))
            .collect();
        let more = if by_server.len() > SERVERS_SHOWN_MAX { " and others" } else { "" };
        let of = if shown.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) };
        Some(format!("{} of records that were loaded{of}", grouped(all)))
    }

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
            self.ops.iter().filter(|(name, _)| reads_records(name)).map(|(_, op)| of(op)).sum::<u64>()
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

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Load, Phase, Stop, Work};
    use pummel_measure::measurement::Keep;

    use crate::example::Run;

    /// A run on three masters that loads its records and misses two of them on the second.
    fn missing() -> Run {
        let mut run = Run::new(Keep::Figures);
        let load = Work::Load(Load { depth: 8, ..Load::default() });
        let phase = Phase { name: "load".to_owned(), work: load, stop: Stop::default(), recorded: false };
        run.plan.phases.insert(0, phase);
        run.measurement.evidence = None;
        let mut run = run.on_cluster(3);
        run.measurement.side_times.servers[1].misses = 2;
        run
    }

    #[test]
    fn misses_of_loaded_records_are_told_by_server_and_none_is_told_calmly() {
        let mut document = missing().document(Clone::clone);
        let expected = "100 of records that were loaded: 127.0.0.1:7002 2";
        assert_eq!(document.unexpected_misses_words().as_deref(), Some(expected));
        let shards = &document.cluster.as_ref().expect("it is a cluster").shards;
        let misses: Vec<_> = shards.iter().map(|shard| shard.unexpected_misses).collect();
        assert_eq!(misses, [Some(0), Some(2), Some(0)]);
        assert!(document.servers.iter().all(|server| server.unexpected_misses.is_some()));
        document.unexpected_misses = Some(0);
        assert_eq!(document.unexpected_misses_words(), None);
    }

    #[test]
    fn misses_that_have_a_reason_are_not_unexpected() {
        let mut expiring = missing();
        expiring.plan.data.expiry_s = pummel_logic::dist::Dist::Fixed(9.0);
        let mut partly = missing();
        partly.measurement.load.as_mut().expect("it loads").stored -= 1;
        for run in [expiring, partly] {
            assert_eq!(run.document(|document| document.unexpected_misses), None);
        }
    }
}
