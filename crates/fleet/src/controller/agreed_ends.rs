//! The ends of phases that a run with agents finds while it runs: the controller adds up the ticks of all members and
//! tests them like those of one process.

use std::collections::BTreeMap;

use pummel_logic::plan::Plan;
use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::interval::{Interval, take_whole};
use pummel_measure::measurement::{WarmUp, WarmUpEnd};
use pummel_measure::parcel::{Misfit, Parcel};
use pummel_measure::uncertainty::{EarlyEnds, lead_ns, tick_ns};

use super::slices::{OPEN_MAX, empty_slice};

/// Greatest difference in nanoseconds by which a member may have measured less than the agreed time: the clocks of machines drift, and the
/// estimate of their difference changes during a run.
const CLOCKS_APART_NS: Nanos = 100 * MILLISECOND;

/// The ends of phases that members agree on while they go on.
pub(super) struct AgreedEnds<'a> {
    plan: &'a Plan,
    ends: EarlyEnds,
    /// The phase under way.
    phase: u32,
    /// Beginning of the phase, on the controller's monotonic clock.
    began: Nanos,
    /// Agreed end of the phase, on the same clock.
    agreed: Option<Nanos>,
    /// Ticks that lack the part of a member, by index; at most twice [`OPEN_MAX`] beyond those that were tested.
    open: BTreeMap<u64, Box<Interval>>,
    /// The ticks before this one were tested.
    looked_at: u64,
    /// Empty ticks for reuse, at most as many as were open at one time. They are boxed as they are in `open`.
    #[allow(clippy::vec_box)]
    spares: Vec<Box<Interval>>,
    /// The end of the warm-up; `None` before it, and if the plan has no warm-up whose end is found.
    pub(super) warm_up: Option<WarmUp>,
}

impl<'a> AgreedEnds<'a> {
    pub(super) fn new(plan: &'a Plan) -> AgreedEnds<'a> {
        AgreedEnds {
            plan,
            ends: EarlyEnds::of(plan),
            phase: 0,
            began: 0,
            agreed: None,
            open: BTreeMap::new(),
            looked_at: 0,
            spares: Vec::new(),
            warm_up: None,
        }
    }

    /// Notes that a phase begins at `at` of the controller's monotonic clock; the one before it is over.
    pub(super) fn begin(&mut self, phase: u32, at: Nanos) {
        self.end_warm_up(at, false);
        (self.phase, self.began, self.agreed, self.looked_at) = (phase, at, None, 0);
        let Self { open, spares, .. } = self;
        spares.extend(std::mem::take(open).into_values().map(emptied));
    }

    /// Records that the run is over at `now` of the controller's monotonic clock, whatever its phase.
    pub(super) fn finish(&mut self, now: Nanos) {
        self.end_warm_up(now, true);
    }

    /// Records the end of the warm-up, if the phase under way is one whose end is found. `is_cut`: the run ended in it.
    fn end_warm_up(&mut self, now: Nanos, is_cut: bool) {
        if self.began == 0 || !self.settles(self.phase) {
            return;
        }
        let longest_ns = self.plan.phases[self.phase as usize].stop.time_ns.unwrap_or(Nanos::MAX);
        let ended = self.agreed.unwrap_or(now);
        let settled = self.ends.has_settled();
        self.warm_up.get_or_insert(WarmUp {
            until: WarmUpEnd::of(self.plan),
            elapsed_ns: ended.saturating_sub(self.began).min(longest_ns),
            settled,
            cut_short: is_cut && !settled,
        });
    }

    /// Whether a phase is a warm-up whose end is found while it runs.
    fn settles(&self, phase: u32) -> bool {
        let measured = self.plan.phases.iter().position(|phase| phase.recorded);
        self.plan.adaptive.ends_warm_up() && measured == Some(phase as usize + 1)
    }

    /// Adds a member's part of a tick. Ticks of phases that are over, and ticks that were already tested, are left out.
    ///
    /// # Errors
    /// Returns [`Misfit`] when the part does not belong to this plan.
    pub(super) fn add_part(&mut self, phase: u32, part: &Parcel) -> Result<(), Misfit> {
        if phase != self.phase || part.index < self.looked_at {
            return Ok(());
        }
        let (plan, spares) = (self.plan, &mut self.spares);
        let tick =
            self.open.entry(part.index).or_insert_with(|| spares.pop().unwrap_or_else(|| empty_slice(plan)));
        let is_first = tick.end_ns == 0;
        part.add_to(tick, is_first)
    }

    /// Tests the ticks before number `end`, for which all members have sent their parts. Returns the end of the phase
    /// under way, in nanoseconds from its beginning, if it is found: once in a phase.
    pub(super) fn look(&mut self, end: u64) -> Option<Nanos> {
        let is_measured = self.plan.phases.get(self.phase as usize).is_some_and(|phase| phase.recorded);
        let tick_ns = tick_ns(self.plan.interval_ns);
        let Self { open, spares, ends, looked_at, .. } = self;
        // The last of the ticks that have waited for too long.
        let overdue = open.len().checked_sub(OPEN_MAX + 1).and_then(|at| open.keys().nth(at));
        let end = overdue.map_or(end, |overdue| end.max(overdue.saturating_add(1)));
        let mut found = None;
        loop {
            // Nor is a tick waited for that is longer than all that wait.
            let end = if open.len() > 2 * OPEN_MAX { u64::MAX } else { end };
            let give_back = |part| spares.push(emptied(part));
            let Some(mut tick) = take_whole(open, end, tick_ns, give_back) else { return found };
            let end_ns =
                if is_measured { ends.measured_slice(&mut tick) } else { ends.warm_up_slice(&mut tick) };
            found = found.or(end_ns);
            *looked_at = (*looked_at).max(tick.end_ns.div_ceil(tick_ns)).max(tick.index.saturating_add(1));
            spares.push(emptied(tick));
        }
    }

    /// Agrees that the phase under way ends so many nanoseconds after its beginning, or as soon as all members can know it: a
    /// command takes `command_ns`. Returns the phase, and the moment on the controller's monotonic clock.
    pub(super) fn agree(&mut self, end_ns: Nanos, now: Nanos, command_ns: Nanos) -> (u32, Nanos) {
        let known = now.saturating_add(lead_ns(self.plan.interval_ns)).saturating_add(command_ns);
        let at = self.began.saturating_add(end_ns).max(known);
        self.agreed = Some(at);
        (self.phase, at)
    }

    /// The least time that a member must measure in a run whose measurement has an agreed end; `None` if it ends as the
    /// plan says.
    pub(super) fn least_measured_ns(&self) -> Option<Nanos> {
        let is_measured = self.plan.phases.get(self.phase as usize).is_some_and(|phase| phase.recorded);
        let at = self.agreed.filter(|_| is_measured)?;
        Some(at.saturating_sub(self.began).saturating_sub(CLOCKS_APART_NS))
    }
}

fn emptied(mut tick: Box<Interval>) -> Box<Interval> {
    tick.restart(0, 0);
    tick
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Adaptive, Settle, Until, Work};
    use pummel_logic::protocol::{Outcome, Verb};
    use pummel_logic::time::{MICROSECOND, SECOND};
    use pummel_measure::measurement::Keep;
    use pummel_measure::recorder::Sample;

    use super::*;
    use pummel_report::example::Run;

    /// A plan with a warm-up of blocks of 2 s that settles, and a measurement until the median is known to 50 %.
    fn plan() -> Plan {
        let mut plan = Run::new(Keep::Figures).plan;
        let mut run = plan.phases.pop().expect("it has phases");
        run.stop.time_ns = Some(60 * SECOND);
        let mut warm_up = run.clone();
        warm_up.recorded = false;
        assert!(matches!(run.work, Work::Mix(_)), "requests are drawn");
        plan.phases = vec![warm_up, run];
        plan.interval_ns = SECOND;
        plan.adaptive = Adaptive {
            settle: Some(Settle { discard_ns: SECOND, block_ns: 2 * SECOND }),
            until: Some(Until { quantile: 0.5, half_width: 0.5, least_ns: 2 * SECOND }),
            ..Adaptive::default()
        };
        plan
    }

    /// A member's part of tick `index`: a few requests of 40 to 60 us.
    fn part(plan: &Plan, index: u64) -> Parcel {
        let mut tick = empty_slice(plan);
        tick.restart(index, index * 100 * MILLISECOND);
        tick.end_ns = tick.start_ns + 100 * MILLISECOND;
        for number in 0..20 {
            let time_ns = (40 + (index * 7 + number * 13) % 20) * MICROSECOND;
            tick.groups[0].record(&Sample {
                verb: Verb::Get,
                outcome: Outcome::Hit,
                keys: 1,
                hits: 1,
                due: 0,
                ready: 0,
                sent: 0,
                arrived: time_ns,
                read: time_ns,
                noreply: false,
            });
        }
        Parcel::of_responses(&mut tick)
    }

    #[test]
    fn a_phase_ends_when_the_ticks_of_all_members_together_say_so() {
        let plan = plan();
        let mut ends = AgreedEnds::new(&plan);
        ends.begin(0, 100 * SECOND);
        let mut found = None;
        for index in 0..200 {
            for _ in 0..2 {
                ends.add_part(0, &part(&plan, index)).expect("it fits");
                ends.add_part(1, &part(&plan, index)).expect("that phase is not under way");
            }
            // The slower member has come so far.
            found = found.or(ends.look(index.saturating_sub(3)).map(|end_ns| (index, end_ns)));
        }
        let (index, end_ns) = found.expect("the load is level");
        assert_eq!(
            (index, end_ns),
            (53, 5 * SECOND),
            "after two blocks, when the slower member has come to their end"
        );
        let (phase, at) = ends.agree(end_ns, 105 * SECOND, 100 * MILLISECOND);
        assert_eq!((phase, at), (0, 105 * SECOND + 600 * MILLISECOND), "members have to know it before");
        assert_eq!(ends.least_measured_ns(), None, "the measurement has not begun");

        ends.begin(1, 106 * SECOND);
        let warm_up = WarmUp {
            until: WarmUpEnd::Settled,
            elapsed_ns: 5 * SECOND + 600 * MILLISECOND,
            settled: true,
            cut_short: false,
        };
        assert_eq!(ends.warm_up, Some(warm_up));
        let mut found = None;
        for index in 0..30 {
            (0..2).for_each(|_| ends.add_part(1, &part(&plan, index)).expect("it fits"));
            found = found.or(ends.look(index + 1));
        }
        assert_eq!(found, Some(2_500 * MILLISECOND), "the look at 2 s, and a quarter more");
        assert_eq!(ends.agree(2_500 * MILLISECOND, 108 * SECOND, 0), (1, 108_500 * MILLISECOND));
        assert_eq!(ends.least_measured_ns(), Some(2_400 * MILLISECOND));
        ends.finish(109 * SECOND);
        assert_eq!(ends.warm_up, Some(warm_up));
    }

    #[test]
    fn a_member_that_gives_no_ticks_is_not_waited_for_for_ever() {
        let plan = plan();
        let mut ends = AgreedEnds::new(&plan);
        ends.begin(1, 100 * SECOND);
        let mut found = None;
        for index in 0..200 {
            ends.add_part(1, &part(&plan, index)).expect("it fits");
            found = found.or(ends.look(0));
            assert!(ends.open.len() <= OPEN_MAX, "{}", ends.open.len());
        }
        assert_eq!(found, Some(2_500 * MILLISECOND), "what the other one gives is looked at");
        ends.add_part(1, &part(&plan, 3)).expect("it fits");
        assert_eq!(ends.open.len(), OPEN_MAX, "it comes too late");
    }

    #[test]
    fn a_run_that_ends_in_its_warm_up_has_cut_it_short() {
        let plan = plan();
        let mut ends = AgreedEnds::new(&plan);
        ends.begin(0, 100 * SECOND);
        ends.finish(103 * SECOND);
        let warm_up =
            WarmUp { until: WarmUpEnd::Settled, elapsed_ns: 3 * SECOND, settled: false, cut_short: true };
        assert_eq!(ends.warm_up, Some(warm_up));
        let mut unsettled = AgreedEnds::new(&plan);
        unsettled.begin(0, 100 * SECOND);
        unsettled.begin(1, 161 * SECOND);
        let warm_up =
            WarmUp { until: WarmUpEnd::Settled, elapsed_ns: 60 * SECOND, settled: false, cut_short: false };
        assert_eq!(unsettled.warm_up, Some(warm_up), "its time was over");
    }
}
