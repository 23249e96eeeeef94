//! The faults of `--fail-on` that a run had.

use pummel_logic::plan::FailOn;
use pummel_measure::outcome::RunOutcome;

use super::limit_line::GENERATOR;
use super::outcomes::OtherOutcomes;
use super::{Document, reads};
use crate::numbers::grouped;

/// A fault of `--fail-on` that a run had, or may have had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The fault.
    pub on: FailOn,
    /// Whether the result shows the fault; false if that cannot be determined.
    pub is_known: bool,
    /// Evidence of the fault, or the reason why it cannot be determined.
    pub says: String,
}

/// Whether a run had a fault of `--fail-on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailOnAnswer {
    /// The run had the fault; the words are the evidence.
    Yes(String),
    /// The run was not so.
    No,
    /// The fault cannot be determined, for the reason in the words.
    Unknown(String),
}

impl Document {
    /// The faults named by the plan that the run had or may have had; empty if it is known to have had none.
    pub fn failures(&self) -> Vec<Failure> {
        let failure = |on: &FailOn| match self.answer(*on) {
            FailOnAnswer::Yes(says) => Some(Failure { on: *on, is_known: true, says }),
            FailOnAnswer::No => None,
            FailOnAnswer::Unknown(says) => Some(Failure { on: *on, is_known: false, says }),
        };
        self.plan.fail_on.iter().filter_map(failure).collect()
    }

    /// Whether the run had a fault of `--fail-on`.
    pub fn answer(&self, on: FailOn) -> FailOnAnswer {
        match on {
            FailOn::Limited => self.is_limited(),
            FailOn::Untrusted => self.is_untrusted(),
            FailOn::Errors => {
                let totals = &self.totals;
                let missing = totals.requests.saturating_sub(totals.completed);
                match (missing, totals.requests) {
                    (0, 0) => FailOnAnswer::Unknown("no request was made".to_owned()),
                    (0, _) => FailOnAnswer::No,
                    (missing, all) => FailOnAnswer::Yes(format!(
                        "{} of {} requests failed or got no answer",
                        grouped(missing),
                        grouped(all)
                    )),
                }
            }
            FailOn::Overloaded => match (self.outcome, self.totals.requests) {
                (RunOutcome::Overloaded, _) => {
                    FailOnAnswer::Yes(self.outcome_says.clone().unwrap_or_default())
                }
                (_, 0) => FailOnAnswer::Unknown("no request was made".to_owned()),
                _ => FailOnAnswer::No,
            },
            FailOn::Outcomes(parts) => self.has_other_outcomes(f64::from(parts) / 1e6),
            FailOn::Unsteady => match self.steady {
                Some(true) => FailOnAnswer::No,
                Some(false) => FailOnAnswer::Yes("the run was not at one level".to_owned()),
                None if self.outcome == RunOutcome::Overloaded => {
                    FailOnAnswer::Yes("the queue grew to the end of the run".to_owned())
                }
                None if self.plan.changes.is_nothing() => {
                    FailOnAnswer::Unknown("whether the run was steady is not judged".to_owned())
                }
                None => FailOnAnswer::Unknown(
                    "the load changes by plan, and whether the run was steady is not judged".to_owned(),
                ),
            },
        }
    }

    /// Whether more than a share of the answered requests other than reads ended otherwise than they are for.
    fn has_other_outcomes(&self, share: f64) -> FailOnAnswer {
        let others = self.other_outcomes();
        let other: u64 = others.iter().map(OtherOutcomes::all).sum();
        let ended: u64 = self.ops.iter().filter(|(name, _)| !reads(name)).map(|(_, op)| op.completed).sum();
        if self.totals.completed == 0 {
            return FailOnAnswer::Unknown("no request was completed".to_owned());
        }
        if other as f64 <= share * ended as f64 {
            return FailOnAnswer::No;
        }
        FailOnAnswer::Yes(others.iter().map(OtherOutcomes::words).collect::<Vec<_>>().join("; "))
    }

    /// Whether the generator was the limit.
    fn is_limited(&self) -> FailOnAnswer {
        let Some(verdict) = &self.verdict else {
            return FailOnAnswer::Unknown("the result does not say what the limit was".to_owned());
        };
        match self.limit() {
            Some(GENERATOR) => FailOnAnswer::Yes(verdict.says.clone()),
            Some("unknown") => FailOnAnswer::Unknown(verdict.says.clone()),
            _ => FailOnAnswer::No,
        }
    }

    /// Whether the times may not be believed.
    fn is_untrusted(&self) -> FailOnAnswer {
        match &self.trust {
            None => {
                FailOnAnswer::Unknown("the result does not say whether its times may be believed".to_owned())
            }
            Some(trust) if !trust.ok => FailOnAnswer::Yes(trust.says.clone()),
            Some(_) if self.totals.completed == 0 => {
                FailOnAnswer::Unknown("no request was completed: there are no times".to_owned())
            }
            Some(_) => FailOnAnswer::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{TrustResult, VerdictResult};
    use crate::example::Run;
    use pummel_logic::plan::Part;
    use pummel_measure::measurement::Keep;

    #[test]
    fn a_run_fails_on_outcomes_above_the_share_and_not_on_misses() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let mut op = document.ops.get("set").expect("a tenth of the requests").clone();
        op.outcomes = [("stored", op.completed - 20), ("not_stored", 20)].into_iter().collect();
        let share = 20_000_000 / op.completed as u32;
        let words = format!("set: 20 of {} not stored", op.completed);
        document.ops = [("set", op)].into_iter().collect();
        assert_eq!(document.answer(FailOn::Outcomes(share - 1)), FailOnAnswer::Yes(words));
        assert_eq!(document.answer(FailOn::Outcomes(share)), FailOnAnswer::No);
        document.totals.completed = 0;
        assert!(matches!(document.answer(FailOn::Outcomes(0)), FailOnAnswer::Unknown(_)));
    }

    #[test]
    fn a_run_fails_on_what_it_was_not_to_be_and_on_nothing_else() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let failed = |document: &Document| {
            let names = document.failures();
            let names = names.iter().map(|failure| match failure.is_known {
                true => failure.on.name().to_owned(),
                false => format!("{}?", failure.on.name()),
            });
            names.collect::<Vec<_>>().join(" ")
        };
        let none = VerdictResult { limit: "none".to_owned(), ..VerdictResult::default() };
        document.verdict = Some(none);
        document.steady = Some(true);
        document.plan.fail_on = FailOn::ALL.to_vec();
        assert_eq!(failed(&document), "", "{:?}", document.failures());
        document.verdict = Some(VerdictResult { limit: "generator".to_owned(), ..VerdictResult::default() });
        document.trust = Some(TrustResult { ok: false, ..TrustResult::default() });
        document.totals.completed -= 7;
        document.steady = Some(false);
        assert_eq!(failed(&document), "limited untrusted errors unsteady");
        assert_eq!(document.failures()[2].says, "7 of 2,000 requests failed or got no answer");
        document.plan.fail_on = vec![FailOn::Unsteady];
        assert_eq!(failed(&document), "unsteady");
        (document.verdict, document.trust) = (None, None);
        document.plan.fail_on = vec![FailOn::Limited, FailOn::Untrusted];
        assert_eq!(failed(&document), "limited? untrusted?", "a result of a version that did not say");
    }

    #[test]
    fn what_is_not_known_is_neither_yes_nor_no() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let reason = |document: &Document, on| match document.answer(on) {
            FailOnAnswer::Unknown(says) => says,
            answer => format!("{answer:?}"),
        };
        document.steady = None;
        assert_eq!(reason(&document, FailOn::Unsteady), "whether the run was steady is not judged");
        document.plan.changes.parts =
            vec![Part { name: "first".to_owned(), at_ns: 0, ops: None, popularity: None, churn: None }];
        let changes = "the load changes by plan, and whether the run was steady is not judged";
        assert_eq!(reason(&document, FailOn::Unsteady), changes);
        let says = "Nothing was measured.".to_owned();
        document.verdict =
            Some(VerdictResult { limit: "unknown".to_owned(), says, ..VerdictResult::default() });
        assert_eq!(reason(&document, FailOn::Limited), "Nothing was measured.");
        document.trust = Some(TrustResult { ok: true, ..TrustResult::default() });
        document.totals = Default::default();
        assert_eq!(reason(&document, FailOn::Untrusted), "no request was completed: there are no times");
        assert_eq!(reason(&document, FailOn::Errors), "no request was made");
    }
}
