//! The ends of the phases of a Plan, and the time for which they wait for servers.

use super::{Plan, Work};
use crate::time::{NEVER, Nanos, SECOND};

/// The drain of a phase lasts at most this long, and at most as long as a request may take.
const DRAIN_MAX_NS: Nanos = SECOND;

/// The longest silence of a server that is waited for: a number of timeouts, and at least a time.
struct LongestSilence {
    timeouts: u64,
    least_ns: Nanos,
}

/// For how long a server may be silent while records are stored.
const LOAD_SILENCE: LongestSilence = LongestSilence { timeouts: 3, least_ns: 3 * SECOND };

/// Longest silence of a server otherwise, and also while records are stored where connections are opened again:
/// a server then may take its time to come back.
const SILENCE: LongestSilence = LongestSilence { timeouts: 10, least_ns: 10 * SECOND };

/// A server is waited for no longer than this, unless one timeout is longer: by then a server that restarts is back.
const SILENCE_MAX_NS: Nanos = 60 * SECOND;

impl Plan {
    /// The longest time in nanoseconds that a phase waits for its last answers.
    pub fn drain_ns(&self) -> Nanos {
        self.timeout_ns.min(DRAIN_MAX_NS)
    }

    /// The longest time in nanoseconds that a server may answer nothing in a load that only its number of requests ends.
    pub fn load_silence_max_ns(&self) -> Nanos {
        self.wait_ns(if self.reconnect { SILENCE } else { LOAD_SILENCE })
    }

    /// The longest time in nanoseconds that a server may answer nothing in any other phase that only its number of
    /// requests ends.
    pub fn silence_max_ns(&self) -> Nanos {
        self.wait_ns(SILENCE)
    }

    fn wait_ns(&self, longest: LongestSilence) -> Nanos {
        let most_ns = SILENCE_MAX_NS.max(self.timeout_ns);
        self.timeout_ns.saturating_mul(longest.timeouts).max(longest.least_ns).min(most_ns)
    }
}

/// The beginning and the end of a phase, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Time at which the phase begins.
    pub begin: Nanos,
    /// Time at which the time limit of the phase is over, `begin` or later; [`NEVER`] if only its requests end it.
    pub end: Nanos,
    /// The moment that the phase's time counts from: `begin`, or the beginning of the recorded phase that it goes on
    /// with.
    since: Nanos,
}

impl PhaseTimes {
    /// The times before the first phase.
    pub const NONE: PhaseTimes = PhaseTimes { begin: 0, end: NEVER, since: 0 };

    /// The times of phase `number` of a plan, which begins at `begin`, in a run that began at `run_began`; `self` are those
    /// of the phase before it.
    pub fn next(self, plan: &Plan, number: usize, begin: Nanos, run_began: Nanos) -> PhaseTimes {
        let phase = &plan.phases[number];
        let runs_on = plan.runs_on(number);
        let since = if runs_on { self.since } else { begin };
        let end = match &phase.work {
            Work::Pause(pause) => {
                run_began.saturating_add(pause.until_ns).max(begin.saturating_add(pause.for_ns))
            }
            Work::Delete(_) if runs_on => self.end,
            _ => phase.stop.time_ns.map_or(NEVER, |time_ns| since.saturating_add(time_ns)),
        };
        PhaseTimes { begin, end: end.max(begin), since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Delete, Load, Mix, Pause, Phase, Stop};
    use crate::protocol::Verb;
    use crate::time::MILLISECOND;

    #[test]
    fn the_longest_silence_is_some_timeouts_and_between_some_seconds_and_a_minute() {
        // Timeout, reconnection; drain, longest silence in a load, longest silence in any other phase.
        let rows = [
            (SECOND / 10, false, [SECOND / 10, 3 * SECOND, 10 * SECOND]),
            (SECOND, false, [SECOND, 3 * SECOND, 10 * SECOND]),
            (2 * SECOND, false, [SECOND, 6 * SECOND, 20 * SECOND]),
            (2 * SECOND, true, [SECOND, 20 * SECOND, 20 * SECOND]),
            (30 * SECOND, false, [SECOND, 60 * SECOND, 60 * SECOND]),
            (90 * SECOND, true, [SECOND, 90 * SECOND, 90 * SECOND]),
            (NEVER, false, [SECOND, NEVER, NEVER]),
        ];
        for (timeout_ns, reconnect, expected) in rows {
            let plan = Plan { timeout_ns, reconnect, ..Plan::default() };
            assert_eq!(
                [plan.drain_ns(), plan.load_silence_max_ns(), plan.silence_max_ns()],
                expected,
                "{timeout_ns}"
            );
        }
    }

    fn plan(phases: impl IntoIterator<Item = (Work, Option<Nanos>, bool)>) -> Plan {
        let phase = |(work, time_ns, recorded)| Phase {
            name: "phase".to_owned(),
            work,
            stop: Stop { time_ns, requests: None },
            recorded,
        };
        Plan { phases: phases.into_iter().map(phase).collect(), ..Plan::default() }
    }

    /// The ends of the phases of a plan in a run that began at 1 s, each of which begins a millisecond after the end
    /// of the one before, or 10 ms after its beginning.
    fn ends(plan: &Plan) -> Vec<Nanos> {
        let mut times = PhaseTimes::NONE;
        let mut at = SECOND;
        let mut ends = Vec::new();
        for number in 0..plan.phases.len() {
            times = times.next(plan, number, at, SECOND);
            ends.push(times.end);
            at = if times.end == NEVER { at + 10 * MILLISECOND } else { times.end + MILLISECOND };
        }
        ends
    }

    #[test]
    fn a_phase_ends_by_its_time_or_never() {
        let mix = || Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let delete = || Work::Delete(Delete { share: 0.5, depth: 1 });
        let pause = |until_ns| Work::Pause(Pause { until_ns, for_ns: 0 });
        let load = Work::Load(Load::default());
        let (s, ms) = (SECOND, MILLISECOND);
        assert_eq!(ends(&plan([(load, None, false), (mix(), Some(s), true)])), [NEVER, 2 * s + 10 * ms]);
        assert_eq!(ends(&plan([(mix(), Some(NEVER), true)])), [NEVER]);
        // A pause counts from the beginning of the run, and is over at once where that has passed.
        assert_eq!(ends(&plan([(mix(), Some(s), false), (pause(3 * s), None, false)])), [2 * s, 4 * s]);
        assert_eq!(ends(&plan([(mix(), Some(s), false), (pause(ms), None, false)])), [2 * s, 2 * s + ms]);
        let settle = Work::Pause(Pause { until_ns: ms, for_ns: s });
        assert_eq!(ends(&plan([(mix(), Some(s), true), (settle, None, false)])), [2 * s, 3 * s + ms]);
        // A deletion that divides a recorded phase takes its time from that, and so does the second part.
        let divided = [(mix(), Some(s), true), (delete(), None, false), (mix(), Some(2 * s), true)];
        assert_eq!(ends(&plan(divided)), [2 * s, 2 * s + ms, 3 * s]);
    }
}
