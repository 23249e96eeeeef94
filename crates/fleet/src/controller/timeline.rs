//! When the phases of a run over agents began, and when its controller stood still.

use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::reason::{ControllerStandstill, Moment};

/// The time without a look at the agents from which on the controller counts as having stood still.
const STANDSTILL_MIN_NS: Nanos = 1_000 * MILLISECOND;

/// The past of a run, on the controller's monotonic clock.
pub(super) struct Timeline<'a> {
    plan: &'a Plan,
    /// The phases that have begun, by index in the plan, and when each did.
    begun: Vec<(usize, Nanos)>,
    /// When the controller last looked at its agents; `None` before the first look.
    looked_at: Option<Nanos>,
    /// The longest standstill of the controller: its length in nanoseconds and its beginning.
    standstill: Option<(Nanos, Nanos)>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(plan: &'a Plan) -> Timeline<'a> {
        Timeline { plan, begun: Vec::new(), looked_at: None, standstill: None }
    }

    /// Notes that a phase begins at `at`.
    pub(super) fn begin(&mut self, phase: usize, at: Nanos) {
        self.begun.push((phase, at));
    }

    /// When the first measured phase began; `None` before that.
    pub(super) fn measured_at(&self) -> Option<Nanos> {
        let mut measured = self.begun.iter().filter(|(phase, _)| self.plan.phases[*phase].recorded);
        measured.next().map(|(_, at)| *at)
    }

    /// Notes that the controller looks at its agents at `now`. Returns the standstill before where it stood still.
    pub(super) fn look(&mut self, now: Nanos) -> Option<ControllerStandstill> {
        let before = self.looked_at.replace(now)?;
        let length_ns = now.saturating_sub(before);
        if length_ns < STANDSTILL_MIN_NS {
            return None;
        }
        if self.standstill.is_none_or(|(longest_ns, _)| longest_ns < length_ns) {
            self.standstill = Some((length_ns, before));
        }
        Some(ControllerStandstill { length_ns, at: self.moment(before) })
    }

    /// The longest standstill of the controller; `None` where it never stood still.
    pub(super) fn longest_standstill(&self) -> Option<ControllerStandstill> {
        let (length_ns, at) = self.standstill?;
        Some(ControllerStandstill { length_ns, at: self.moment(at) })
    }

    /// The moment `at` by the phase that began last before it.
    pub(super) fn moment(&self, at: Nanos) -> Moment {
        let Some(&(number, began)) = self.begun.iter().rev().find(|(_, began)| *began <= at) else {
            return Moment::BeforePhases;
        };
        let phase = &self.plan.phases[number];
        let since_ns = at - began;
        match &phase.work {
            Work::Load(_) => Moment::Load(since_ns),
            _ if phase.recorded => Moment::Measurement(since_ns),
            Work::Mix(_) => Moment::WarmUp(since_ns),
            _ => Moment::Phase(phase.name.clone(), since_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Load, Mix, Phase, Stop};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::SECOND;

    use super::*;

    fn plan() -> Plan {
        let mix = || Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phases = [(Work::Load(Load::default()), false), (mix(), false), (mix(), true)];
        let phase =
            |(work, recorded)| Phase { name: "phase".to_owned(), work, stop: Stop::default(), recorded };
        Plan { phases: phases.into_iter().map(phase).collect(), ..Plan::default() }
    }

    #[test]
    fn a_moment_is_told_by_the_phase_that_began_last_before_it() {
        let plan = plan();
        let mut timeline = Timeline::new(&plan);
        (0..3).for_each(|phase| timeline.begin(phase, (phase as Nanos + 1) * SECOND));
        assert_eq!(timeline.measured_at(), Some(3 * SECOND));
        for (at, moment) in [
            (SECOND / 2, Moment::BeforePhases),
            (SECOND + SECOND / 2, Moment::Load(SECOND / 2)),
            (2 * SECOND, Moment::WarmUp(0)),
            (5 * SECOND, Moment::Measurement(2 * SECOND)),
        ] {
            assert_eq!(timeline.moment(at), moment);
        }
    }

    #[test]
    fn a_controller_that_did_not_look_for_a_second_stood_still() {
        let plan = plan();
        let mut timeline = Timeline::new(&plan);
        timeline.begin(0, SECOND);
        for at in [SECOND, 2 * SECOND - 1] {
            assert_eq!(timeline.look(at), None);
        }
        let long = ControllerStandstill { length_ns: 2 * SECOND, at: Moment::Load(SECOND - 1) };
        assert_eq!(timeline.look(4 * SECOND - 1).as_ref(), Some(&long));
        let short = timeline.look(5 * SECOND + SECOND / 2).map(|standstill| standstill.length_ns);
        assert_eq!(short, Some(SECOND + SECOND / 2 + 1));
        assert_eq!(timeline.longest_standstill(), Some(long));
    }
}
