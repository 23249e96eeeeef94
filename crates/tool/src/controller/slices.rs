//! The slices of a run over agents: each is made of the parts of all members, and goes into the measurement so far.

use std::collections::BTreeMap;

use pummel_engine::run::Watch;

use pummel_logic::measure::interval::{Interval, take_whole};
use pummel_logic::measure::measurement::{Keep, Measurement, Status, intervals_merged_notice};
use pummel_logic::measure::parcel::{Misfit, Parcel};
use pummel_logic::plan::Plan;
use pummel_logic::protocol::Verb;

/// The slices of a run, and the measurement that they make.
pub(super) struct MergedSlices<'a> {
    plan: &'a Plan,
    /// What was measured so far. Its status says that the run is not over, since a result that is written before the end
    /// may be the last one that is written.
    pub(super) so_far: Measurement,
    /// Slices that not all members have given their part of, by index.
    open: BTreeMap<u64, Box<Interval>>,
    /// Empty slices for reuse, at most as many as were open at one time. They are boxed as they are in `open`.
    #[allow(clippy::vec_box)]
    spares: Vec<Box<Interval>>,
}

impl<'a> MergedSlices<'a> {
    pub(super) fn new(plan: &'a Plan, connections_asked: u64) -> MergedSlices<'a> {
        let mut so_far = empty_measurement(plan);
        so_far.mark(Status::Partial, "the run is not over");
        so_far.connections.asked = connections_asked;
        MergedSlices { plan, so_far, open: BTreeMap::new(), spares: Vec::new() }
    }

    /// Adds a member's part of a slice.
    ///
    /// # Errors
    /// Returns [`Misfit`] when the part is none of this plan.
    pub(super) fn add_part(&mut self, part: &Parcel) -> Result<(), Misfit> {
        let (plan, spares) = (self.plan, &mut self.spares);
        let spare = || spares.pop().unwrap_or_else(|| empty_slice(plan));
        let slice = self.open.entry(part.index).or_insert_with(spare);
        let is_first = slice.end_ns == 0;
        part.add_to(slice, is_first)
    }

    /// Hands the slices before `end` to the watch, and adds them to the measurement.
    pub(super) fn hand_over(&mut self, end: u64, watch: &mut dyn Watch) {
        let (length_ns, spares) = (self.plan.interval_ns, &mut self.spares);
        let mut give_back = |mut slice: Box<Interval>| {
            slice.restart(0, 0);
            slice.outstanding = None;
            spares.push(slice);
        };
        while let Some(mut slice) = take_whole(&mut self.open, end, length_ns, &mut give_back) {
            watch.interval(&mut slice);
            let merged_before = self.so_far.intervals_merged;
            self.so_far.add(&mut slice, watch.wants().keep);
            if merged_before == 0 && self.so_far.intervals_merged > 0 {
                watch.notice(&intervals_merged_notice());
            }
            self.so_far.measured_ns = self.so_far.measured_ns.max(slice.end_ns);
            give_back(slice);
            watch.slice(&self.so_far);
        }
    }
}

/// What a lost member had said of the measured phase, of which `sum` has all slices.
pub(super) fn measurement_of(sum: Option<Box<Parcel>>, plan: &Plan) -> Measurement {
    let mut measurement = empty_measurement(plan);
    if let Some(sum) = sum {
        let mut slice = empty_slice(plan);
        // Each of its parts fitted, so only a member that claims more requests than can be counted does not.
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

fn empty_slice(plan: &Plan) -> Box<Interval> {
    Box::new(Interval::new(plan.groups.iter().map(|_| std::iter::empty::<Verb>())))
}
