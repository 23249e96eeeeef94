//! A slice of the measured phase on its way from one process to another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::connections::SERVERS_TIMED_MAX;
use crate::counters::Counters;
use crate::histogram::{CoarseHistogram, SparseHistogram};
use crate::interval::Interval;
use crate::ops::{Ops, Times};
use crate::parts::{ServerRecord, SlicePart};
use crate::recorder::Span;
use crate::side_times::SideTimes;
use pummel_logic::merge::Merge;
use pummel_logic::plan::PARTS_MAX;
use pummel_logic::time::Nanos;

/// Part of a slice of one process: small, and without a loss.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parcel {
    /// Number of the slice, from 0.
    pub index: u64,
    start_ns: Nanos,
    end_ns: Nanos,
    /// Requests and times of each group of the Plan.
    groups: Vec<Ops<SparseHistogram>>,
    /// Requests that were due in each part of the phase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<usize, Ops<SparseHistogram>>,
    counters: Counters,
    side_times: SideTimes<SparseHistogram>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    evicted: bool,
}

/// Error about a parcel of another plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit;

impl Parcel {
    /// The parcel of a whole slice.
    pub fn of(interval: &mut Interval) -> Parcel {
        Parcel {
            groups: interval.groups.iter_mut().map(|recorder| Ops::copy_of(recorder.ops())).collect(),
            parts: interval
                .parts
                .iter_mut()
                .map(|(&number, part)| (number, Ops::copy_of(part.ops())))
                .collect(),
            counters: interval.counters,
            side_times: SideTimes::copy_of(&interval.side_times),
            ..Parcel::empty(interval)
        }
    }

    /// The part of a slice that decides when a phase is over: counts and response times. All else is left out.
    pub fn of_responses(interval: &mut Interval) -> Parcel {
        let groups = interval.groups.iter_mut().map(|recorder| {
            let mut responses = Ops::default();
            for (verb, op) in recorder.ops().iter() {
                let packed = responses.entry(verb);
                packed.counts = op.counts;
                packed.times = Times::of_response(op.times.of(Span::Response).to_sparse());
            }
            responses
        });
        Parcel { groups: groups.collect(), ..Parcel::empty(interval) }
    }

    /// A parcel of nothing at the time of a slice.
    fn empty(interval: &Interval) -> Parcel {
        let Interval { index, start_ns, end_ns, evicted, .. } = *interval;
        Parcel { index, start_ns, end_ns, evicted, ..Parcel::default() }
    }

    /// Adds the parcel to the parts of the same slice from other processes. `is_first` gives an empty slice the number and
    /// the times of the parcel.
    ///
    /// # Errors
    /// Returns [`Misfit`] for a parcel of another plan; nothing was added then.
    pub fn add_to(&self, interval: &mut Interval, is_first: bool) -> Result<(), Misfit> {
        if self.groups.len() != interval.groups.len() || self.side_times.servers.len() > SERVERS_TIMED_MAX {
            return Err(Misfit);
        }
        if is_first {
            (interval.index, interval.start_ns, interval.end_ns) = (self.index, self.start_ns, self.end_ns);
        }
        interval.start_ns = interval.start_ns.min(self.start_ns);
        interval.end_ns = interval.end_ns.max(self.end_ns);
        for (recorder, ops) in interval.groups.iter_mut().zip(&self.groups) {
            recorder.merge(ops);
        }
        for (number, ops) in self.parts.iter().filter(|(number, _)| **number < PARTS_MAX) {
            interval.part(*number).merge(ops);
        }
        interval.counters.merge(&self.counters);
        interval.side_times.merge(&self.side_times);
        interval.evicted |= self.evicted;
        Ok(())
    }

    /// Adds a later slice of the same process: together they are a slice that is as long as both. It stays as small as the
    /// cells that were counted in.
    ///
    /// # Errors
    /// Returns [`Misfit`] for a parcel of another plan; nothing was added then.
    pub fn append(&mut self, later: &Parcel) -> Result<(), Misfit> {
        if later.groups.len() != self.groups.len() {
            return Err(Misfit);
        }
        self.start_ns = self.start_ns.min(later.start_ns);
        self.end_ns = self.end_ns.max(later.end_ns);
        self.groups.merge(&later.groups);
        for (number, ops) in later.parts.iter().filter(|(number, _)| **number < PARTS_MAX) {
            self.parts.entry(*number).or_default().merge(ops);
        }
        self.counters.merge(&later.counters);
        self.side_times.merge(&later.side_times);
        self.evicted |= later.evicted;
        Ok(())
    }

    /// The process's part of the slice: counts, quantiles of its response times and of its lag, within 3 %, and how
    /// long its workers were busy.
    pub fn part(&self) -> SlicePart {
        let mut all = ServerRecord::default();
        let mut lag = CoarseHistogram::default();
        for (_, op) in self.groups.iter().flat_map(Ops::iter) {
            all.completed += op.counts.completed;
            all.unanswered += op.counts.unanswered();
            all.failed += op.counts.requests().saturating_sub(op.counts.completed);
            op.times.of(Span::Response).fold_into(&mut all.service);
            op.times.of(Span::Lag).fold_into(&mut lag);
        }
        // Requests without an answer are among those that were not completed.
        all.failed = all.failed.saturating_sub(all.unanswered);
        SlicePart { lag_p99_ns: lag.quantile(0.99), busy_ns: self.counters.turns.busy_ns, ..all.part() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Sample;
    use pummel_logic::protocol::{Outcome, Verb};
    use pummel_logic::workload::cache_counts::CacheCounts;

    fn slice(requests: u64, outstanding: bool) -> Interval {
        let mut interval = Interval::new([[Verb::Get], [Verb::Get]]);
        interval.side_times.outstanding = outstanding.then(Box::default);
        interval.restart(3, 30);
        interval.end_ns = 30 + requests;
        for at in 0..requests {
            let sample = Sample {
                verb: if at % 3 == 0 { Verb::Set } else { Verb::Get },
                outcome: if at % 7 == 0 { Outcome::Miss } else { Outcome::Hit },
                keys: 1,
                hits: 1,
                due: at,
                ready: at + 5,
                sent: at + 9,
                arrived: at * at * 50 + 10,
                read: at * at * 60 + 10,
                noreply: false,
            };
            let cache =
                CacheCounts { first_touch: at % 5, hit_bytes: at * 100, fills: 1, ..CacheCounts::default() };
            interval.groups[(at % 2) as usize].record(&sample);
            interval.groups[(at % 2) as usize].counts(sample.verb).cache.add(&cache);
            interval.part((at / 30) as usize).record(&sample);
            interval.part((at / 30) as usize).counts(sample.verb).cache.add(&cache);
            if let Some(histogram) = &mut interval.side_times.outstanding {
                histogram.record(at);
            }
        }
        interval.evicted = requests > 50;
        interval.counters.bytes.sent = requests;
        interval.counters.turns.stalls = requests;
        interval
    }

    #[test]
    fn parcels_of_two_processes_make_the_slice_that_one_would_have_made() {
        for outstanding in [false, true] {
            let mut whole = slice(40, outstanding);
            whole.merge(&mut slice(90, outstanding));
            let mut joined = Interval::new([[Verb::Get], [Verb::Get]]);
            for (at, requests) in [40, 90].into_iter().enumerate() {
                let text = serde_json::to_string(&Parcel::of(&mut slice(requests, outstanding))).unwrap();
                let parcel: Parcel = serde_json::from_str(&text).unwrap();
                parcel.add_to(&mut joined, at == 0).unwrap();
            }
            assert_eq!(Parcel::of(&mut joined), Parcel::of(&mut whole));
        }
    }

    #[test]
    fn slices_that_were_joined_as_parcels_are_those_that_were_joined_as_slices() {
        for outstanding in [(false, false), (true, true), (false, true)] {
            let mut joined = Interval::new([[Verb::Get], [Verb::Get]]);
            let mut sum = Parcel::of(&mut slice(0, outstanding.0));
            for (at, requests) in [0, 2, 90, 40].into_iter().enumerate() {
                let parcel = Parcel::of(&mut slice(requests, outstanding.1));
                parcel.add_to(&mut joined, at == 0).unwrap();
                sum.append(&parcel).unwrap();
            }
            let mut unpacked = Interval::new([[Verb::Get], [Verb::Get]]);
            sum.add_to(&mut unpacked, true).unwrap();
            assert_eq!(Parcel::of(&mut unpacked), Parcel::of(&mut joined));
        }
    }

    #[test]
    fn a_parcel_of_another_plan_is_refused() {
        let mut parcel = Parcel::of(&mut slice(3, false));
        assert_eq!(parcel.add_to(&mut Interval::new([[Verb::Get]]), true), Err(Misfit));
        let foreign = Parcel::of(&mut Interval::new([[Verb::Get]]));
        assert_eq!(parcel.append(&foreign), Err(Misfit));
    }
}
