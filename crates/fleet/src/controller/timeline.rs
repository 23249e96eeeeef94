//! When the phases of a run over agents began, and when its controller stood still.

use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::{MILLISECOND, Nanos, seconds};

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

    /// Notes that the controller looks at its agents at `now`. Returns a sentence where it stood still before.
    pub(super) fn look(&mut self, now: Nanos) -> Option<String> {
        let before = self.looked_at.replace(now)?;
        let length_ns = now.saturating_sub(before);
        if length_ns < STANDSTILL_MIN_NS {
            return None;
        }
        if self.standstill.is_none_or(|(longest_ns, _)| longest_ns < length_ns) {
            self.standstill = Some((length_ns, before));
        }
        Some(self.standstill_words(length_ns, before))
    }

    /// The longest standstill of the controller as a sentence; `None` where it never stood still.
    pub(super) fn longest_standstill(&self) -> Option<String> {
        self.standstill.map(|(length_ns, at)| self.standstill_words(length_ns, at))
    }

    fn standstill_words(&self, length_ns: Nanos, at: Nanos) -> String {
        format!("the controller stood still for {:.1} s, {}", seconds(length_ns), self.moment(at))
    }

    /// The moment `at` as the end of a sentence.
    pub(super) fn moment(&self, at: Nanos) -> String {
        let Some(&(number, began)) = self.begun.iter().rev().find(|(_, began)| *began <= at) else {
            return "before the first phase".to_owned();
        };
        let phase = &self.plan.phases[number];
        let since = seconds(at - began);
        match &phase.work {
            Work::Load(_) => format!("{since:.1} s after the beginning of the load"),
            _ if phase.recorded => format!("{since:.1} s into the measurement"),
            Work::Mix(_) => format!("{since:.1} s after the beginning of the warm-up"),
            _ => format!("{since:.1} s after the beginning of phase '{}'", phase.name),
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
        for (at, words) in [
            (SECOND / 2, "before the first phase"),
            (SECOND + SECOND / 2, "0.5 s after the beginning of the load"),
            (2 * SECOND, "0.0 s after the beginning of the warm-up"),
            (5 * SECOND, "2.0 s into the measurement"),
        ] {
            assert_eq!(timeline.moment(at), words);
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
        let long = "the controller stood still for 2.0 s, 1.0 s after the beginning of the load";
        assert_eq!(timeline.look(4 * SECOND - 1).as_deref(), Some(long));
        assert!(timeline.look(5 * SECOND + SECOND / 2).is_some_and(|words| words.contains("for 1.5 s")));
        assert_eq!(timeline.longest_standstill().as_deref(), Some(long));
    }
}
