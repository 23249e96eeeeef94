//! A slice of the measured phase on its way from one process to another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::histogram::{CellSums, CoarseHistogram, NotAHistogram, SparseHistogram};
use crate::interval::Interval;
use crate::parts::{ServerRecord, SlicePart, are_sound, merge_servers};
use crate::recorder::{Counts, Recorder, Span};
use crate::transmit::SparseTransmitTimes;
use pummel_logic::plan::PARTS_MAX;
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

/// Part of a slice of one process: small, and without a loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parcel {
    /// Number of the slice, from 0.
    pub index: u64,
    start_ns: Nanos,
    end_ns: Nanos,
    /// Requests and times of each group of the Plan.
    groups: Vec<BTreeMap<Verb, Packed>>,
    /// Requests that were due in each part of the phase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<usize, BTreeMap<Verb, Packed>>,
    counters: Counters,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outstanding: Option<SparseHistogram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<SparseHistogram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transmit: Option<SparseTransmitTimes>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    evicted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    servers: Vec<ServerRecord>,
}

/// Requests of one verb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    counts: Counts,
    times: [SparseHistogram; Span::COUNT],
    #[serde(default, skip_serializing_if = "CellSums::is_zero")]
    lag_by_response: CellSums,
    #[serde(default, skip_serializing_if = "CellSums::is_zero")]
    wait_by_response: CellSums,
}

/// Reason why a parcel does not belong to the slices that it came for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The parcel has other groups.
    Groups,
    /// The times of the parcel are no histograms.
    Times(NotAHistogram),
}

impl Parcel {
    /// The parcel of a whole slice.
    pub fn of(interval: &mut Interval) -> Parcel {
        let groups = interval.groups.iter_mut().map(packed).collect();
        let parts = interval.parts.iter_mut().map(|(number, recorder)| (*number, packed(recorder))).collect();
        Parcel {
            index: interval.index,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            groups,
            parts,
            counters: interval.counters,
            outstanding: interval.outstanding.as_ref().map(|histogram| histogram.to_sparse()),
            pairs: interval.pairs.as_ref().map(|histogram| histogram.to_sparse()),
            transmit: interval.transmit.as_ref().map(|times| SparseTransmitTimes::of(times)),
            evicted: interval.evicted,
            servers: interval.servers.clone(),
        }
    }

    /// The part of a slice that decides when a phase is over: counts and response times. All else is left out.
    pub fn of_responses(interval: &mut Interval) -> Parcel {
        let groups = interval.groups.iter_mut().map(|recorder| {
            let packed = recorder.ops().iter().map(|(verb, op)| {
                let times = Span::ALL.map(|span| match span {
                    Span::Response => op.times.of(span).to_sparse(),
                    _ => SparseHistogram::empty(),
                });
                let (lag_by_response, wait_by_response) = (CellSums::default(), CellSums::default());
                (verb, Packed { counts: op.counts, times, lag_by_response, wait_by_response })
            });
            packed.collect()
        });
        Parcel {
            index: interval.index,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            groups: groups.collect(),
            parts: BTreeMap::new(),
            counters: Counters::default(),
            outstanding: None,
            pairs: None,
            transmit: None,
            evicted: interval.evicted,
            servers: Vec::new(),
        }
    }

    /// Adds the parcel to the parts of the same slice from other processes. `is_first` gives an empty slice the number and
    /// the times of the parcel.
    ///
    /// # Errors
    /// Returns [`Misfit::Groups`] for a parcel of another plan, and [`Misfit::Times`] for one whose times are no
    /// histograms; parts of it may have been added then.
    pub fn add_to(&self, interval: &mut Interval, is_first: bool) -> Result<(), Misfit> {
        if self.groups.len() != interval.groups.len() {
            return Err(Misfit::Groups);
        }
        if !are_sound(&self.servers) {
            return Err(Misfit::Times(NotAHistogram(
                "the times of a server are beyond the table".to_owned(),
            )));
        }
        if is_first {
            (interval.index, interval.start_ns, interval.end_ns) = (self.index, self.start_ns, self.end_ns);
        }
        interval.start_ns = interval.start_ns.min(self.start_ns);
        interval.end_ns = interval.end_ns.max(self.end_ns);
        for (recorder, ops) in interval.groups.iter_mut().zip(&self.groups) {
            for (verb, packed) in ops {
                let Packed { counts, times, lag_by_response, wait_by_response } = packed;
                let sums = [lag_by_response, wait_by_response];
                recorder.merge_sparse(*verb, counts, times, sums).map_err(Misfit::Times)?;
            }
        }
        for (number, ops) in self.parts.iter().filter(|(number, _)| **number < PARTS_MAX) {
            for (verb, Packed { counts, times, lag_by_response, wait_by_response }) in ops {
                let sums = [lag_by_response, wait_by_response];
                interval.part(*number).merge_sparse(*verb, counts, times, sums).map_err(Misfit::Times)?;
            }
        }
        interval.counters.merge(&self.counters);
        if let Some(more) = &self.outstanding {
            interval.outstanding.get_or_insert_default().merge_sparse(more).map_err(Misfit::Times)?;
        }
        if let Some(more) = &self.pairs {
            interval.pairs.get_or_insert_default().merge_sparse(more).map_err(Misfit::Times)?;
        }
        if let Some(more) = &self.transmit {
            more.add_to(interval.transmit.get_or_insert_default()).map_err(Misfit::Times)?;
        }
        interval.evicted |= self.evicted;
        merge_servers(&mut interval.servers, &self.servers);
        Ok(())
    }

    /// Adds a later slice of the same process: together they are a slice that is as long as both. It stays as small as the
    /// cells that were counted in.
    ///
    /// # Errors
    /// Returns [`Misfit::Groups`] for a parcel of another plan; nothing was added then.
    pub fn append(&mut self, later: &Parcel) -> Result<(), Misfit> {
        if later.groups.len() != self.groups.len() {
            return Err(Misfit::Groups);
        }
        self.start_ns = self.start_ns.min(later.start_ns);
        self.end_ns = self.end_ns.max(later.end_ns);
        for (ops, more) in self.groups.iter_mut().zip(&later.groups) {
            append_ops(ops, more);
        }
        for (number, more) in &later.parts {
            append_ops(self.parts.entry(*number).or_default(), more);
        }
        self.counters.merge(&later.counters);
        match (&mut self.outstanding, &later.outstanding) {
            (Some(outstanding), Some(more)) => outstanding.merge(more),
            (None, Some(more)) => self.outstanding = Some(more.clone()),
            (_, None) => {}
        }
        match (&mut self.pairs, &later.pairs) {
            (Some(pairs), Some(more)) => pairs.merge(more),
            (None, Some(more)) => self.pairs = Some(more.clone()),
            (_, None) => {}
        }
        match (&mut self.transmit, &later.transmit) {
            (Some(transmit), Some(more)) => transmit.merge(more),
            (None, Some(more)) => self.transmit = Some(more.clone()),
            (_, None) => {}
        }
        self.evicted |= later.evicted;
        merge_servers(&mut self.servers, &later.servers);
        Ok(())
    }

    /// The process's part of the slice: counts, quantiles of its response times and of its lag, within 3 %, and how
    /// long its workers were busy.
    pub fn part(&self) -> SlicePart {
        let mut all = ServerRecord { service: CoarseHistogram::default(), ..ServerRecord::default() };
        let mut lag = CoarseHistogram::default();
        for packed in self.groups.iter().flat_map(BTreeMap::values) {
            all.completed += packed.counts.completed;
            all.unanswered += packed.counts.unanswered();
            all.failed += packed.counts.requests().saturating_sub(packed.counts.completed);
            packed.times[Span::Response as usize].fold_into(&mut all.service);
            packed.times[Span::Lag as usize].fold_into(&mut lag);
        }
        // Requests without an answer are among those that were not completed.
        all.failed = all.failed.saturating_sub(all.unanswered);
        SlicePart { lag_p99_ns: lag.quantile(0.99), busy_ns: self.counters.turns.busy_ns, ..all.part() }
    }
}

/// The recorder's histograms of each verb, packed.
fn packed(recorder: &mut Recorder) -> BTreeMap<Verb, Packed> {
    let packed = recorder.ops().iter().map(|(verb, op)| {
        let times = Span::ALL.map(|span| op.times.of(span).to_sparse());
        let sums = (op.lag_by_response.clone(), op.wait_by_response.clone());
        let (lag_by_response, wait_by_response) = sums;
        (verb, Packed { counts: op.counts, times, lag_by_response, wait_by_response })
    });
    packed.collect()
}

fn append_ops(ops: &mut BTreeMap<Verb, Packed>, more: &BTreeMap<Verb, Packed>) {
    for (verb, more) in more {
        match ops.get_mut(verb) {
            Some(packed) => packed.merge(more),
            None => drop(ops.insert(*verb, more.clone())),
        }
    }
}

impl Packed {
    fn merge(&mut self, other: &Packed) {
        self.counts.merge(&other.counts);
        self.times.iter_mut().zip(&other.times).for_each(|(times, more)| times.merge(more));
        self.lag_by_response.merge(&other.lag_by_response);
        self.wait_by_response.merge(&other.wait_by_response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Sample;
    use pummel_logic::protocol::Outcome;
    use pummel_logic::workload::cache_counts::CacheCounts;

    fn slice(requests: u64, outstanding: bool) -> Interval {
        let mut interval = Interval::new([[Verb::Get], [Verb::Get]]).counting(outstanding);
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
            interval.groups[(at % 2) as usize].note_cache(sample.verb, &cache);
            interval.part((at / 30) as usize).record(&sample);
            interval.part((at / 30) as usize).note_cache(sample.verb, &cache);
            if let Some(histogram) = &mut interval.outstanding {
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
        assert_eq!(parcel.add_to(&mut Interval::new([[Verb::Get]]), true), Err(Misfit::Groups));
        let foreign = Parcel::of(&mut Interval::new([[Verb::Get]]));
        assert_eq!(parcel.append(&foreign), Err(Misfit::Groups));
    }
}
