//! The requests that were answered without an error and changed nothing: nothing was stored, or nothing was found.

use pummel_logic::plan::Plan;
use pummel_logic::protocol::{Outcome, Verb};
use pummel_measure::summary::{Summary, Totals};
use serde::{Deserialize, Serialize};

use super::figures::is_zero;
use super::{Document, OpResult};

/// The share of the answered requests, in percent, from which on an operation is said to have done nothing.
const NEARLY_ALL_PERCENT: u128 = 99;

/// The answered requests of one operation that may store or find nothing, and those that did so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OtherOutcomes {
    /// Name of the operation.
    pub op: String,
    /// Requests that were answered without an error.
    pub answered: u64,
    /// Requests whose record was there, or was not, against the condition of the operation; absent where there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_stored: u64,
    /// Requests whose record another client had stored in between; absent where there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub exists: u64,
    /// Requests that found no record, and commands that were answered with nil; absent where there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_found: u64,
    /// Transactions that were not carried out, since another client had changed what they watch; absent where there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub conflict: u64,
}

impl OtherOutcomes {
    /// The requests of a run that may store or find nothing, by operation.
    pub fn of_summary(summary: &Summary, plan: &Plan) -> Vec<OtherOutcomes> {
        let others = |(verb, totals): &(Verb, Totals)| {
            let op = OpResult::of_counts(&totals.counts);
            OtherOutcomes::of(plan.name_of(*verb), &op, plan.protocol.is_resp())
        };
        summary.ops.iter().filter_map(others).collect()
    }

    /// The outcomes of an operation; `None` where no request was made, for reads, which have hits and misses, and for
    /// operations that always have an effect.
    fn of(name: &str, op: &OpResult, is_resp: bool) -> Option<OtherOutcomes> {
        let has_condition = Verb::ALL.iter().any(|verb| verb.name() == name && verb.has_condition());
        let count = |outcome: Outcome| op.outcomes.get(outcome.name()).copied().unwrap_or(0);
        let [not_stored, exists, not_found, conflict] = Outcome::WITHOUT_EFFECT.map(count);
        // With memcached only a request without a reply ends so. RESP answers all, also with what is neither a number nor nil.
        let unanswered = if is_resp { 0 } else { count(Outcome::Ok) };
        let answered = op.completed.saturating_sub(unanswered);
        let others = OtherOutcomes { op: name.to_owned(), answered, not_stored, exists, not_found, conflict };
        (op.requests > 0 && (has_condition || others.all() > 0)).then_some(others)
    }

    /// All of these requests that stored or found nothing.
    pub fn all(&self) -> u64 {
        let without_record = self.not_stored.saturating_add(self.exists).saturating_add(self.not_found);
        without_record.saturating_add(self.conflict)
    }

    /// Whether the operation is a command of the user, whose nil may mean anything.
    pub fn is_command(&self) -> bool {
        Verb::from_name(&self.op).is_none_or(Verb::is_command)
    }

    /// Whether the times of the operation are those of requests that did nothing.
    pub fn is_nearly_all(&self) -> bool {
        let (all, answered) = (u128::from(self.all()), u128::from(self.answered));
        !self.is_command() && all > 0 && all * 100 >= answered * NEARLY_ALL_PERCENT
    }

    /// The sums of each operation.
    pub fn sums<'a>(all: impl IntoIterator<Item = &'a OtherOutcomes>) -> Vec<OtherOutcomes> {
        let mut sums: Vec<OtherOutcomes> = Vec::new();
        for more in all {
            let Some(sum) = sums.iter_mut().find(|sum| sum.op == more.op) else {
                sums.push(more.clone());
                continue;
            };
            let fields = [
                (&mut sum.answered, more.answered),
                (&mut sum.not_stored, more.not_stored),
                (&mut sum.exists, more.exists),
                (&mut sum.not_found, more.not_found),
                (&mut sum.conflict, more.conflict),
            ];
            fields.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        sums
    }
}

impl Document {
    /// The requests that may store or find nothing, by operation.
    pub fn other_outcomes(&self) -> Vec<OtherOutcomes> {
        let is_resp = self.plan.protocol.is_resp();
        self.ops.iter().filter_map(|(name, op)| OtherOutcomes::of(name, op, is_resp)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Run, sample};
    use pummel_measure::measurement::Keep;
    use pummel_measure::recorder::Sample;

    #[test]
    fn a_run_of_a_series_has_the_outcomes_that_its_own_report_has() {
        let mut run = Run::new(Keep::Figures);
        run.interval(2, Keep::Figures, |interval| {
            let other = Sample { verb: Verb::Set, outcome: Outcome::NotStored, ..sample(0) };
            (0..7).for_each(|_| interval.groups[0].record(&other));
        });
        let told = run.report(|report| OtherOutcomes::of_summary(report.summary, report.plan));
        let set =
            OtherOutcomes { op: "set".to_owned(), answered: 207, not_stored: 7, ..OtherOutcomes::default() };
        assert_eq!(told, [set]);
        assert_eq!(run.document(Document::other_outcomes), told);
    }
}
