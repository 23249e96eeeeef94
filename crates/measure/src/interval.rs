//! A slice of the measured phase, of one worker or of all of them.

use std::collections::BTreeMap;

use crate::counters::Counters;
use crate::recorder::{Counts, Recorder};
use crate::side_times::SideTimes;
use pummel_logic::merge::{Clear as _, Merge as _};
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

/// A slice of time. A worker records into it, hands it over at the tick and gets an empty one back; slices of different
/// workers with the same index are merged.
#[derive(Debug)]
pub struct Interval {
    /// Number of the slice, from 0.
    pub index: u64,
    /// Beginning of the slice, in nanoseconds from the start of the measured phase.
    pub start_ns: Nanos,
    /// End of the slice, in nanoseconds from the start of the measured phase. The last slice ends with the drain.
    pub end_ns: Nanos,
    /// The recorders, by group of the Plan.
    pub groups: Vec<Recorder>,
    /// The requests of all groups by the part of the phase in which they were due, by number; empty where the phase has no parts.
    pub parts: BTreeMap<usize, Box<Recorder>>,
    /// Everything that only adds up, beside the requests.
    pub counters: Counters,
    /// The histograms beside those of the requests.
    pub side_times: SideTimes,
    /// Whether a server has evicted a record since the run began; only in slices of a warm-up that ends with the first
    /// eviction.
    pub evicted: bool,
    /// Number of the worker whose memory the slice is; merging and restarting leave it.
    pub worker: usize,
}

impl Interval {
    /// An empty slice for groups that ask with these verbs.
    pub fn new<V: IntoIterator<Item = Verb>>(groups: impl IntoIterator<Item = V>) -> Interval {
        Interval {
            index: 0,
            start_ns: 0,
            end_ns: 0,
            groups: groups.into_iter().map(|verbs| Recorder::new(verbs.into_iter())).collect(),
            parts: BTreeMap::new(),
            counters: Counters::default(),
            side_times: SideTimes::default(),
            evicted: false,
            worker: 0,
        }
    }

    /// Marks the memory of the slice as that of this worker.
    pub fn of_worker(self, worker: usize) -> Interval {
        Interval { worker, ..self }
    }

    /// An empty slice of the same worker, which takes the memory of its requests' times with the first of them.
    pub fn another(&self) -> Interval {
        let groups = self.groups.iter().map(|_| std::iter::empty());
        let own = &self.side_times;
        let side_times = SideTimes {
            outstanding: own.outstanding.as_ref().map(|_| Box::default()),
            pairs: own.pairs.as_ref().map(|_| Box::default()),
            hops: own.hops.as_ref().map(|_| Box::default()),
            transmit: own.transmit.as_ref().map(|_| Box::default()),
            servers: Vec::new(),
        };
        Interval { side_times, worker: self.worker, ..Interval::new(groups) }
    }

    /// Adds another worker's part of the same slice.
    ///
    /// # Panics
    /// Panics when `other` is another slice, or has other groups.
    pub fn merge(&mut self, other: &mut Interval) {
        assert_eq!(self.index, other.index, "only parts of the same slice are merged");
        assert_eq!(self.groups.len(), other.groups.len(), "all workers have the same groups");
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        for (recorder, more) in self.groups.iter_mut().zip(&mut other.groups) {
            recorder.merge(more.ops());
        }
        for (number, more) in &mut other.parts {
            self.part(*number).merge(more.ops());
        }
        self.counters.merge(&other.counters);
        self.side_times.merge(&other.side_times);
        self.evicted |= other.evicted;
    }

    /// The recorder of a part of the phase, which takes its memory with the first request.
    pub fn part(&mut self, number: usize) -> &mut Recorder {
        self.parts.entry(number).or_insert_with(|| Box::new(Recorder::new(std::iter::empty())))
    }

    /// The counts of all verbs and groups of the slice together.
    pub fn counts(&mut self) -> Counts {
        let mut all = Counts::default();
        for recorder in &mut self.groups {
            recorder.ops().iter().for_each(|(_, op)| all.merge(&op.counts));
        }
        all
    }

    /// Makes the slice empty again, with the number `index` and the beginning `start_ns`, and keeps its memory.
    pub fn restart(&mut self, index: u64, start_ns: Nanos) {
        self.index = index;
        self.start_ns = start_ns;
        self.end_ns = start_ns;
        self.groups.iter_mut().for_each(Recorder::clear);
        self.parts.clear();
        self.counters = Counters::default();
        self.side_times.clear();
        self.evicted = false;
    }
}

/// Adds a worker's part of a slice to `open`, which has slices by number, none of which overlap. Slices that the part
/// overlaps are merged with it, under the least number; the memory of all but one of those parts is handed to `spare`
/// at once, so that a worker that is behind the others never waits for its own memory.
pub fn add_part(
    open: &mut BTreeMap<u64, Box<Interval>>,
    mut part: Box<Interval>,
    mut spare: impl FnMut(Box<Interval>),
) {
    let mut number = part.index;
    match open.range_mut(..=part.index).next_back() {
        Some((_, present)) if present.index == part.index || present.end_ns > part.start_ns => {
            number = present.index;
            part.index = number;
            present.merge(&mut part);
            spare(part);
        }
        _ => _ = open.insert(number, part),
    }
    let Some(mut whole) = open.remove(&number) else { unreachable!("it was just put there") };
    while let Some((&next, _)) = open.range(number..).next().filter(|(_, next)| next.start_ns < whole.end_ns)
    {
        let Some(mut part) = open.remove(&next) else { break };
        part.index = number;
        whole.merge(&mut part);
        spare(part);
    }
    open.insert(number, whole);
}

/// Takes the first slice out of `open`, which has them by number, if it is whole: all workers have given their parts of
/// the slices before number `end`, and a slice is `length_ns` long. A worker that comes too late to its ticks gives several
/// slices as one; those of the others that lie in it go into it, so that no two slices that are taken overlap. Those are
/// handed to `spare` then, to be used again.
pub fn take_whole(
    open: &mut BTreeMap<u64, Box<Interval>>,
    end: u64,
    length_ns: Nanos,
    mut spare: impl FnMut(Box<Interval>),
) -> Option<Box<Interval>> {
    let mut reach_ns = open.first_key_value().filter(|(index, _)| **index < end)?.1.end_ns;
    for slice in open.values().skip(1) {
        if slice.start_ns >= reach_ns {
            break;
        }
        reach_ns = reach_ns.max(slice.end_ns);
    }
    if reach_ns.div_ceil(length_ns) > end {
        return None;
    }
    let (_, mut whole) = open.pop_first()?;
    while let Some(next) = open.first_entry().filter(|next| next.get().start_ns < whole.end_ns) {
        let mut part = next.remove();
        part.index = whole.index;
        whole.merge(&mut part);
        spare(part);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Sample;

    fn slice(index: u64, start_ns: Nanos, end_ns: Nanos, requests: u64) -> Interval {
        let mut interval = Interval::new([[Verb::Get]]);
        interval.restart(index, start_ns);
        interval.end_ns = end_ns;
        for at in 0..requests {
            interval.groups[0].record(&Sample { read: at + 60, ..Sample::hit(at, 50) });
        }
        interval.counters.turns.stalls = requests;
        interval
    }

    #[test]
    fn parts_of_a_slice_add_up_and_cover_the_time_of_both() {
        let mut one = slice(3, 30, 39, 2);
        one.merge(&mut slice(3, 31, 41, 5));
        assert_eq!((one.start_ns, one.end_ns, one.counters.turns.stalls), (30, 41, 7));
        assert_eq!(one.groups[0].ops().all().counts.completed, 7);
    }

    #[test]
    #[should_panic(expected = "same slice")]
    fn different_slices_are_not_merged() {
        slice(3, 0, 1, 0).merge(&mut slice(4, 0, 1, 0));
    }

    /// Slices of ten nanoseconds that are taken while everything before number `end` is there: number, beginning, end and
    /// requests of each.
    fn taken(open: &mut BTreeMap<u64, Box<Interval>>, end: u64) -> Vec<(u64, Nanos, Nanos, u64)> {
        let mut taken = Vec::new();
        while let Some(mut whole) = take_whole(open, end, 10, drop) {
            let requests = whole.groups[0].ops().all().counts.completed;
            taken.push((whole.index, whole.start_ns, whole.end_ns, requests));
        }
        taken
    }

    fn opened(slices: impl IntoIterator<Item = Interval>) -> BTreeMap<u64, Box<Interval>> {
        slices.into_iter().map(|slice| (slice.index, Box::new(slice))).collect()
    }

    #[test]
    fn slices_are_taken_one_by_one_as_far_as_they_are_whole() {
        let mut open = opened([slice(2, 20, 30, 1), slice(3, 30, 40, 2), slice(4, 40, 50, 3)]);
        assert!(taken(&mut open, 2).is_empty());
        assert_eq!(taken(&mut open, 4), [(2, 20, 30, 1), (3, 30, 40, 2)]);
        assert_eq!(taken(&mut open, u64::MAX), [(4, 40, 50, 3)]);
    }

    const NONE: [usize; 0] = [];

    /// Adds a worker's part; returns the workers whose memory is free then.
    fn add(open: &mut BTreeMap<u64, Box<Interval>>, part: Interval, worker: usize) -> Vec<usize> {
        let mut freed = Vec::new();
        add_part(open, Box::new(part.of_worker(worker)), |spare| freed.push(spare.worker));
        freed
    }

    #[test]
    fn a_part_of_a_slice_that_is_there_is_merged_and_its_memory_is_free_at_once() {
        let mut open = BTreeMap::new();
        assert_eq!(add(&mut open, slice(0, 0, 10, 1), 0), NONE);
        assert_eq!(add(&mut open, slice(1, 10, 20, 1), 0), NONE);
        assert_eq!(add(&mut open, slice(0, 0, 10, 2), 1), [1]);
        assert_eq!(add(&mut open, slice(1, 10, 20, 2), 1), [1]);
        assert_eq!(taken(&mut open, 2), [(0, 0, 10, 3), (1, 10, 20, 3)]);
    }

    #[test]
    fn a_worker_that_is_behind_gets_its_memory_back_however_long_the_slices_of_others_are() {
        let mut open = BTreeMap::new();
        // One worker had no memory left at 10 and gave the next slices as one; the other is still behind.
        assert_eq!(add(&mut open, slice(0, 0, 10, 1), 0), NONE);
        assert_eq!(add(&mut open, slice(1, 10, 60, 5), 0), NONE);
        for index in 0..6 {
            assert_eq!(add(&mut open, slice(index, index * 10, index * 10 + 10, 1), 1), [1]);
        }
        assert_eq!(taken(&mut open, 6), [(0, 0, 10, 2), (1, 10, 60, 10)]);
    }

    #[test]
    fn a_long_slice_takes_in_the_short_ones_of_others_that_lie_in_it() {
        let mut open = BTreeMap::new();
        for index in 0..6 {
            assert_eq!(add(&mut open, slice(index, index * 10, index * 10 + 10, 1), 1), NONE);
        }
        assert_eq!(add(&mut open, slice(2, 20, 50, 7), 0), [0, 1, 1]);
        let expected = [(0, 0, 10, 1), (1, 10, 20, 1), (2, 20, 50, 10), (5, 50, 60, 1)];
        assert_eq!(taken(&mut open, 6), expected);
    }

    #[test]
    fn slices_that_one_worker_gave_as_one_become_one_of_all() {
        // One worker was away from 20 to 40, another from 30 to 60.
        let late = || [slice(2, 20, 40, 1), slice(3, 30, 60, 2), slice(4, 40, 50, 4), slice(6, 60, 70, 8)];
        let mut open = opened(late());
        // What the first has from 50 to 60 is still to come.
        assert!(taken(&mut open, 5).is_empty());
        assert_eq!(taken(&mut open, 6), [(2, 20, 60, 7)]);
        assert_eq!(taken(&mut open, 7), [(6, 60, 70, 8)]);
    }

    #[test]
    fn the_last_slice_waits_for_the_end_of_the_drain() {
        let mut open = opened([slice(9, 90, 117, 1)]);
        assert!(taken(&mut open, 10).is_empty());
        assert_eq!(taken(&mut open, u64::MAX), [(9, 90, 117, 1)]);
    }

    #[test]
    fn a_restarted_slice_is_empty() {
        let mut used = slice(0, 0, 10, 4);
        used.restart(1, 10);
        assert_eq!((used.index, used.start_ns, used.end_ns, used.counters), (1, 10, 10, Counters::default()));
        assert_eq!(used.groups[0].ops().all().counts.requests(), 0);
    }
}
