//! The slices of a run over agents: each is made of the parts of all members, and goes into the measurement so far.

use std::collections::BTreeMap;

use pummel_engine::run::Watch;
use pummel_logic::merge::Merge as _;
use pummel_logic::plan::Plan;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::interval::{Interval, take_whole};
use pummel_measure::measurement::{Keep, Measurement, Status, intervals_merged_notice};
use pummel_measure::parcel::{Misfit, Parcel};
use pummel_measure::parts::{MEMBERS_TIMED_MAX, SlicePart};
use pummel_measure::reason::Reason;

/// Most slices that wait for a member's part where that is some seconds of them: one that is silent for that long is given up, and
/// one that sends no parts is not waited for any longer.
pub(super) const OPEN_MAX: usize = 64;

/// For how long slices wait for a member's part at least, in nanoseconds: a controller that stood still hears its members one after
/// the other.
const OPEN_NS: Nanos = 5 * SECOND;

/// The slices of a run, and the measurement that they make.
pub(super) struct MergedSlices<'a> {
    plan: &'a Plan,
    /// Measurement so far. Its status says that the run is not over, since a result that is written before the end
    /// may be the last one that is written.
    pub(super) so_far: Measurement,
    /// Slices that not all members have given their part of, by index; at most twice `open_max`.
    open: BTreeMap<u64, Box<Interval>>,
    /// Most slices that wait for a member's part.
    open_max: usize,
    /// The slices before this one are handed over.
    next: u64,
    /// Empty slices for reuse, at most as many as were open at one time. They are boxed as they are in `open`.
    #[allow(clippy::vec_box)]
    spares: Vec<Box<Interval>>,
    /// Number of members whose parts are kept one by one; 0 if there are too many.
    members: usize,
    /// The members' parts of the slices that are open, by index of the slice.
    parts: BTreeMap<u64, Vec<SlicePart>>,
}

impl<'a> MergedSlices<'a> {
    pub(super) fn new(plan: &'a Plan, connections_asked: u64, members: usize) -> MergedSlices<'a> {
        let mut so_far = empty_measurement(plan);
        so_far.mark(Status::Partial, Reason::NotOver);
        so_far.connections.asked = connections_asked;
        let members = if (2..=MEMBERS_TIMED_MAX).contains(&members) { members } else { 0 };
        let (open, parts) = (BTreeMap::new(), BTreeMap::new());
        let open_max = OPEN_MAX.max((OPEN_NS / plan.interval_ns.max(1)) as usize);
        MergedSlices { plan, so_far, open, open_max, next: 0, spares: Vec::new(), members, parts }
    }

    /// Adds the part of a slice of the member of this number. Parts of slices that are handed over are left out.
    ///
    /// # Errors
    /// Returns [`Misfit`] when the part is none of this plan.
    pub(super) fn add_part(&mut self, part: &Parcel, member: usize) -> Result<(), Misfit> {
        if part.index < self.next {
            return Ok(());
        }
        let (plan, spares) = (self.plan, &mut self.spares);
        let spare = || spares.pop().unwrap_or_else(|| empty_slice(plan));
        let slice = self.open.entry(part.index).or_insert_with(spare);
        let is_first = slice.end_ns == 0;
        part.add_to(slice, is_first)?;
        if member < self.members {
            let parts =
                self.parts.entry(part.index).or_insert_with(|| vec![SlicePart::default(); self.members]);
            parts[member].merge(&part.part());
        }
        Ok(())
    }

    /// The number of the first slice that is waited for: those before it have waited for too long.
    pub(super) fn overdue(&self) -> u64 {
        let last = self.open.len().checked_sub(self.open_max + 1).and_then(|at| self.open.keys().nth(at));
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Takes the parts of all slices up to this number, which have become one.
    fn take_parts(parts: &mut BTreeMap<u64, Vec<SlicePart>>, last: u64) -> Vec<SlicePart> {
        let later = parts.split_off(&last.saturating_add(1));
        let mut all = Vec::new();
        std::mem::replace(parts, later).into_values().for_each(|more| all.merge(&more));
        all
    }

    /// Hands the slices before `end` to the watch, and adds them to the measurement.
    pub(super) fn hand_over(&mut self, end: u64, watch: &mut dyn Watch) {
        let (length_ns, spares) = (self.plan.interval_ns, &mut self.spares);
        let mut give_back = |mut slice: Box<Interval>| {
            slice.restart(0, 0);
            spares.push(slice);
        };
        loop {
            // Nor is a slice waited for that is longer than all that wait.
            let end = if self.open.len() > 2 * self.open_max { u64::MAX } else { end };
            let Some(mut slice) = take_whole(&mut self.open, end, length_ns, &mut give_back) else { return };
            self.next = self.next.max(slice.end_ns.div_ceil(length_ns)).max(slice.index.saturating_add(1));
            watch.interval(&mut slice);
            let index = slice.index;
            let merged_before = self.so_far.intervals_merged;
            self.so_far.add(&mut slice, watch.wants().keep);
            if merged_before == 0 && self.so_far.intervals_merged > 0 {
                watch.notice(&intervals_merged_notice());
            }
            let kept = self.so_far.intervals.iter_mut().rev().find(|kept| kept.index == index);
            let later = self.open.keys().next().copied().unwrap_or(u64::MAX);
            let parts =
                MergedSlices::take_parts(&mut self.parts, later.saturating_sub(1).min(end.saturating_sub(1)));
            if let Some(kept) = kept {
                kept.members.merge(&parts);
            }
            self.so_far.measured_ns = self.so_far.measured_ns.max(slice.end_ns);
            give_back(slice);
            watch.slice(&self.so_far);
        }
    }
}

/// Part of a lost member in the measured phase, of which `sum` has all slices.
pub(super) fn measurement_of(sum: Option<Box<Parcel>>, plan: &Plan) -> Measurement {
    let mut measurement = empty_measurement(plan);
    if let Some(sum) = sum {
        let mut slice = empty_slice(plan);
        // Each of its parts fitted, and so does their sum.
        if sum.add_to(&mut slice, true).is_ok() {
            measurement.measured_ns = slice.end_ns;
            measurement.add(&mut slice, Keep::Figures);
        }
    }
    measurement
}

/// A measurement of the groups of a plan in which nothing was measured.
pub(super) fn empty_measurement(plan: &Plan) -> Measurement {
    let names = plan.groups.iter().map(|group| group.name.clone());
    Measurement::new(names, plan.engine.clock, plan.timeout_ns)
}

pub(super) fn empty_slice(plan: &Plan) -> Box<Interval> {
    Box::new(Interval::new(plan.groups.iter().map(|_| std::iter::empty::<Verb>())))
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::MILLISECOND;
    use pummel_measure::measurement::Slice;

    use super::*;
    use pummel_report::example::{Run, sample};

    struct Silent;

    impl Watch for Silent {}

    /// A member's part of the slice of this number, with so many requests.
    fn part(plan: &Plan, index: u64, requests: u64) -> Parcel {
        let mut slice = empty_slice(plan);
        slice.restart(index, index * SECOND);
        slice.end_ns = (index + 1) * SECOND;
        slice.counters.turns.busy_ns = requests * MILLISECOND;
        (0..requests).for_each(|number| slice.groups[0].record(&sample(number)));
        Parcel::of(&mut slice)
    }

    #[test]
    fn each_interval_says_what_each_of_a_few_members_had_of_it() {
        let mut plan = Run::new(Keep::Figures).plan;
        plan.interval_ns = SECOND;
        let mut slices = MergedSlices::new(&plan, 4, 2);
        for (index, requests) in [(0, [30, 50]), (1, [20, 0])] {
            for (member, requests) in requests.into_iter().enumerate() {
                slices.add_part(&part(&plan, index, requests), member).expect("it fits");
            }
        }
        slices.hand_over(2, &mut Silent);
        let members: Vec<Vec<u64>> = slices
            .so_far
            .intervals
            .iter()
            .map(|slice| slice.members.iter().map(|part| part.completed).collect())
            .collect();
        assert_eq!(members, [[30, 50], [20, 0]]);
        let first = &slices.so_far.intervals[0].members;
        assert!(first.iter().all(|part| part.p99_ns.is_some() && part.lag_p99_ns.is_some()), "{first:?}");
        assert_eq!(first.iter().map(|part| part.busy_ns / MILLISECOND).collect::<Vec<_>>(), [30, 50]);
        assert_eq!(slices.so_far.intervals[1].members[1].p99_ns, None);
        assert!(slices.parts.is_empty(), "nothing is kept of slices that are over");

        let mut many = MergedSlices::new(&plan, 4, MEMBERS_TIMED_MAX + 1);
        many.add_part(&part(&plan, 0, 9), 0).expect("it fits");
        many.hand_over(1, &mut Silent);
        assert!(many.so_far.intervals[0].members.is_empty(), "of very many the intervals say nothing");
    }

    #[test]
    fn a_member_that_gives_no_parts_is_not_waited_for_for_ever() {
        let mut plan = Run::new(Keep::Figures).plan;
        plan.interval_ns = SECOND;
        let mut slices = MergedSlices::new(&plan, 4, 2);
        let all = OPEN_MAX as u64 + 36;
        for index in 0..all {
            slices.add_part(&part(&plan, index, 2), 0).expect("it fits");
            let overdue = slices.overdue();
            slices.hand_over(overdue, &mut Silent);
            assert!(slices.open.len() <= OPEN_MAX && slices.parts.len() <= OPEN_MAX, "{}", slices.open.len());
        }
        let indexes: Vec<u64> = slices.so_far.intervals.iter().map(|slice| slice.index).collect();
        assert_eq!(indexes, (0..36).collect::<Vec<u64>>(), "what the other one gives is there");
        slices.add_part(&part(&plan, 3, 9), 1).expect("it fits");
        assert_eq!((slices.open.len(), slices.parts.len()), (OPEN_MAX, OPEN_MAX), "it comes too late");
        slices.add_part(&part(&plan, all - 1, 9), 1).expect("it fits");
        slices.hand_over(all, &mut Silent);
        let completed = |slice: &Slice| slice.counts().completed;
        assert_eq!(slices.so_far.intervals.last().map(completed), Some(11), "it may come back");
        let short = Plan { interval_ns: 10 * MILLISECOND, ..plan.clone() };
        assert_eq!(MergedSlices::new(&short, 4, 2).open_max, 500, "short slices wait for as long");
    }

    #[test]
    fn a_slice_without_an_end_is_not_waited_for_for_ever() {
        let mut plan = Run::new(Keep::Figures).plan;
        plan.interval_ns = SECOND;
        let mut slices = MergedSlices::new(&plan, 4, 2);
        let mut endless = empty_slice(&plan);
        endless.end_ns = u64::MAX;
        slices.add_part(&Parcel::of(&mut endless), 1).expect("it fits");
        for index in 0..5 * OPEN_MAX as u64 {
            slices.add_part(&part(&plan, index, 1), 0).expect("it fits");
            let overdue = slices.overdue();
            slices.hand_over(overdue, &mut Silent);
            assert!(slices.open.len() <= 2 * OPEN_MAX, "{}", slices.open.len());
        }
        let ends: Vec<u64> = slices.so_far.intervals.iter().map(|slice| slice.end_ns).collect();
        assert_eq!(ends, [u64::MAX], "it was taken, with all that lie in it");
    }
}
