//! The summary of a measurement: the figures that reports print, their reliability, and what set the rate.

use crate::agents::Agents;
use crate::certainty::Certainty;
use crate::evidence::CpuCost;
use crate::headroom::ResourceUse;
use crate::limit::{Case, Limit, Verdict};
use crate::measurement::{Measurement, Status};
use crate::outcome::Ending;
use crate::recorder::{Counts, OpRecord, Ops, Span};
use crate::trust::Trust;
use crate::uncertainty::UntilResult;
use crate::uncertainty::steadiness::{LevelChange, Steadiness, has_constant_load};
use pummel_logic::plan::{Goal, Part, Plan};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MICROSECOND, Nanos, seconds};

pub use crate::figures::{Figures, QUANTILES, Quantile, Unanswered, quantile, time_text};

/// Figures of a run that reports print.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Status at the end of the run.
    pub status: Status,
    /// Outcome of the run, by the answers to its requests.
    pub ending: Option<Ending>,
    /// Length of the measured phase, without its drain.
    pub seconds: f64,
    /// Result of the test whether the run was at one level from its beginning to its end; `None` where that was not
    /// tested. The figures of a run that was not have no [`Certainty`].
    pub steadiness: Option<Steadiness>,
    /// Certainty of the quantile until whose interval was narrow the run went on; `None` where only time ended it.
    pub until: Option<UntilResult>,
    /// Figures of all verbs and groups together.
    pub totals: Totals,
    /// Figures of each verb, all groups together.
    pub ops: Vec<(Verb, Totals)>,
    /// Figures of each group.
    pub groups: Vec<GroupSummary>,
    /// Time that opening a connection took.
    pub connect: Figures,
    /// Time that TLS handshakes took; empty without TLS.
    pub handshake: Figures,
    /// The goals of the Plan, and whether the run met them.
    pub goals: Vec<GoalResult>,
    /// CPU time of the generator for each request that was completed or failed; `None` when nothing was completed, and
    /// where a process was lost with its CPU time.
    pub cpu_us_per_request: Option<f64>,
    /// Reliability of the times.
    pub trust: Trust,
    /// Limit of the run: what set the rate, or the waiting.
    pub verdict: Verdict,
    /// Use of every resource that is known.
    pub headroom: Vec<ResourceUse>,
    /// CPU time of the servers for each request that they counted, in nanoseconds; absent where one of the two is not
    /// known.
    pub server_cpu_ns_per_request: Option<f64>,
}

/// Requests of one verb, or of several together.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// Counts of the requests by their end.
    pub counts: Counts,
    /// Completed requests per second of the measured phase; 0 when it has no length.
    pub rate: f64,
    /// The times of the requests, by [`Span`].
    pub figures: [Figures; Span::COUNT],
    /// Intervals of the figures; `None` where they are not known.
    pub certainty: Option<Certainty>,
}

/// The requests of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSummary {
    /// Name of the group in the Plan.
    pub name: String,
    /// Figures of all verbs together.
    pub totals: Totals,
    /// Figures of each verb.
    pub ops: Vec<(Verb, Totals)>,
}

/// The requests that were due in one part of the measured phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PartSummary {
    /// Name of the part in the Plan.
    pub name: String,
    /// Beginning of the part, in nanoseconds from the beginning of the phase.
    pub at_ns: Nanos,
    /// Length of the part, in nanoseconds.
    pub length_ns: Nanos,
    /// Figures of all verbs together.
    pub totals: Totals,
    /// Figures of each verb.
    pub ops: Vec<(Verb, Totals)>,
}

impl PartSummary {
    /// The parts of a measurement that was made after `plan`, as far as the phase went.
    pub fn all_of(measurement: &Measurement, plan: &Plan) -> Vec<PartSummary> {
        let sure = Sure { measurement, is_level: false };
        let parts = &plan.changes.parts;
        let ends = parts.iter().skip(1).map(|part| part.at_ns).chain(std::iter::once(Nanos::MAX));
        let nothing = Ops::default();
        let of = |(number, (part, end_ns)): (usize, (&Part, Nanos))| {
            let length_ns = end_ns.min(measurement.measured_ns).saturating_sub(part.at_ns);
            let ops = measurement.parts.get(number).unwrap_or(&nothing);
            (length_ns > 0).then(|| PartSummary {
                name: part.name.clone(),
                at_ns: part.at_ns,
                length_ns,
                totals: Totals::of(sure, &ops.all(), seconds(length_ns), None),
                ops: Totals::by_verb(sure, ops, seconds(length_ns), None),
            })
        };
        parts.iter().zip(ends).enumerate().filter_map(of).collect()
    }
}

/// A goal of the Plan and its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalResult {
    /// Goal of the Plan.
    pub goal: Goal,
    /// The quantile of the response time of all requests.
    pub reached: Quantile,
    /// Whether the quantile is known and within the limit. `None` where the run was not steady, and the goal was met before
    /// the change or after it and not both times.
    pub met: Option<bool>,
}

/// Share of the due requests of an open loop that must have been answered for its rate to count as carried.
pub const CARRIED_SHARE: f64 = 0.99;

impl Summary {
    /// The figures of `measurement`, which was made after `plan`.
    pub fn of(measurement: &Measurement, plan: &Plan) -> Summary {
        let timeout_ns = measurement.timeout_ns;
        // A backlog that is worked off in the drain must not look like a higher rate.
        let measured_s = seconds(measurement.measured_ns.max(measurement.answered_ns));
        let together = measurement.ops();
        let all = together.all();
        let steadiness = Steadiness::of(measurement, plan, &all);
        let change = steadiness.as_ref().and_then(Steadiness::change);
        // Figures of no level have no certainty: the windows of a load that changes by plan, or with its trace, differ by more than
        // chance.
        let is_steady = steadiness.as_ref().is_none_or(Steadiness::is_steady);
        let case = Case::of(measurement, plan, &all);
        let verdict = Verdict::of(&case);
        let ending = Ending::of(&case, &verdict);
        // A queue that grows has no level.
        let is_level = is_steady && has_constant_load(plan) && !matches!(ending, Some(Ending::Overloaded(_)));
        let sure = Sure { measurement, is_level };
        let totals = Totals::of(sure, &all, measured_s, None);
        let groups = measurement.groups.iter().enumerate().map(|(number, group)| GroupSummary {
            name: group.name.clone(),
            totals: Totals::of(sure, &group.ops.all(), measured_s, Some(number)),
            ops: Totals::by_verb(sure, &group.ops, measured_s, Some(number)),
        });
        let until = UntilResult::of(measurement, plan, &all, totals.certainty.as_ref());
        let cpu_ns = measurement.generator.cpu_user_ns + measurement.generator.cpu_system_ns;
        let completed = all.counts.completed;
        let is_cpu_known = measurement.agents.as_ref().is_none_or(Agents::have_all_reported);
        Summary {
            status: measurement.status,
            ending,
            seconds: measured_s,
            ops: Totals::by_verb(sure, &together, measured_s, None),
            groups: groups.collect(),
            connect: Figures::of(Span::Service, &measurement.connections.connect, &Unanswered::default()),
            handshake: Figures::of(Span::Service, &measurement.connections.handshake, &Unanswered::default()),
            goals: plan.goals.iter().map(|goal| GoalResult::of(*goal, &all, timeout_ns, change)).collect(),
            cpu_us_per_request: (completed > 0 && is_cpu_known)
                .then(|| cpu_ns as f64 / MICROSECOND as f64 / (completed + all.counts.failed()) as f64),
            trust: Trust::of(&case, &totals.figures, &together),
            verdict,
            headroom: ResourceUse::all_of(&case),
            server_cpu_ns_per_request: CpuCost::at_all(case.readings(), case.ours())
                .map(|cost| cost.per_request_ns),
            totals,
            steadiness,
            until,
        }
    }

    /// The limit of the run as its report names it, where `skipped` due requests were not made. Lag of an open loop whose rate was
    /// carried is a matter of trust, and no limit.
    pub fn limit(&self, is_open: bool, skipped: u64) -> Limit {
        let counts = &self.totals.counts;
        let due = counts.requests().saturating_add(skipped);
        let answered = counts.requests().saturating_sub(counts.unanswered());
        let is_carried = self.ending.is_none() && answered as f64 >= CARRIED_SHARE * due as f64;
        match is_open && is_carried && self.verdict.cause.is_of_trust() {
            true => Limit::None,
            false => self.verdict.limit,
        }
    }

    /// The figures of each part of the measured phase, as far as it went. The limit and the trust are those of the
    /// whole phase; groups are left out.
    pub fn of_parts(measurement: &Measurement, plan: &Plan) -> Vec<Summary> {
        let whole = Summary::of(measurement, plan);
        let nothing = Ops::default();
        let of = |(number, part): (usize, PartSummary)| {
            let all = measurement.parts.get(number).unwrap_or(&nothing).all();
            let goal = |goal: &Goal| GoalResult::of(*goal, &all, measurement.timeout_ns, None);
            Summary {
                seconds: seconds(part.length_ns),
                totals: part.totals,
                ops: part.ops,
                groups: Vec::new(),
                goals: plan.goals.iter().map(goal).collect(),
                ..whole.clone()
            }
        };
        PartSummary::all_of(measurement, plan).into_iter().enumerate().map(of).collect()
    }

    /// Whether a goal was missed, or may have been missed.
    pub fn missed_a_goal(&self) -> bool {
        self.goals.iter().any(|result| result.met != Some(true))
    }

    /// The change that keeps the figures of the run from being at one level; `None` where none was found.
    pub fn change(&self) -> Option<&LevelChange> {
        self.steadiness.as_ref()?.change()
    }
}

/// A measurement, and whether its figures are at one level.
#[derive(Clone, Copy)]
struct Sure<'a> {
    measurement: &'a Measurement,
    is_level: bool,
}

impl Sure<'_> {
    /// Intervals of the figures of some requests; `None` where the run was not at one level.
    fn certainty(self, op: &OpRecord, is_asked: impl Fn(usize, Verb) -> bool) -> Option<Certainty> {
        self.is_level.then(|| Certainty::of(self.measurement, op, is_asked)).flatten()
    }
}

impl Totals {
    /// The figures of all verbs of one group, or of all groups.
    fn of(sure: Sure<'_>, op: &OpRecord, measured_s: f64, group: Option<usize>) -> Totals {
        Totals::of_those(sure, op, measured_s, |one, _| group.is_none_or(|group| group == one))
    }

    /// The figures of each verb of one group, or of all groups.
    fn by_verb(sure: Sure<'_>, ops: &Ops, measured_s: f64, group: Option<usize>) -> Vec<(Verb, Totals)> {
        let of = |(verb, op)| {
            let is_asked = |one, other| other == verb && group.is_none_or(|group| group == one);
            (verb, Totals::of_those(sure, op, measured_s, is_asked))
        };
        ops.iter().map(of).collect()
    }

    /// The figures of `op`, which has the requests of the groups and verbs that `is_asked` accepts.
    fn of_those(
        sure: Sure<'_>,
        op: &OpRecord,
        measured_s: f64,
        is_asked: impl Fn(usize, Verb) -> bool,
    ) -> Totals {
        Totals {
            counts: op.counts,
            rate: if measured_s > 0.0 { op.counts.completed as f64 / measured_s } else { 0.0 },
            figures: Figures::of_op(op, sure.measurement.timeout_ns),
            certainty: sure.certainty(op, is_asked),
        }
    }
}

impl GoalResult {
    fn of(goal: Goal, all: &OpRecord, timeout_ns: Nanos, change: Option<&LevelChange>) -> GoalResult {
        let times = all.times.of(Span::Response);
        let unanswered = Unanswered::of(&all.counts, Span::Response, times, timeout_ns);
        let reached = quantile(Span::Response, times, &unanswered, goal.quantile);
        let met = match change.map(|change| change.goal_holds(&goal, all)) {
            None => Some(reached.known().is_some_and(|value| value <= goal.limit_ns)),
            Some([before, after]) => (before == after).then_some(before),
        };
        GoalResult { goal, reached, met }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::protocol::Fault;

    #[test]
    fn a_goal_beyond_what_is_known_is_missed() {
        let mut op = OpRecord::default();
        op.counts.errors[Fault::Timeout as usize] = 100;
        let goal = Goal { quantile: 0.99, limit_ns: 10_000 };
        let result = GoalResult::of(goal, &op, 5_000, None);
        assert_eq!((result.met, result.reached), (Some(false), Quantile::Above(5_000)));
    }
}
