//! The faults of `--fail-on` that a run had.

use pummel_logic::plan::FailOn;
use pummel_measure::outcome::RunOutcome;

use super::limit_line::GENERATOR;
use super::outcomes::OtherOutcomes;
use super::{AuditResult, Document};

/// Whether a run had a fault of `--fail-on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailOnAnswer {
    /// The run had the fault.
    Yes(Evidence),
    /// The run was not so.
    No,
    /// The fault cannot be determined.
    Unknown(Undetermined),
}

/// Evidence of a fault of `--fail-on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Sentences of the result: of its verdict, its trust or its outcome.
    Says(String),
    /// Requests that failed or got no answer.
    Requests {
        /// Number of these requests.
        missing: u64,
        /// Number of all requests.
        all: u64,
    },
    /// Requests that were answered and stored or found nothing.
    Outcomes {
        /// Number of these requests.
        without_effect: u64,
        /// Number of the answered requests that may store or find nothing.
        answered: u64,
    },
    /// The run was not at one level.
    NotAtOneLevel,
    /// The queue grew to the end of the run.
    GrowingQueue,
    /// Acknowledged writes were lost.
    Lost {
        /// Keys whose newest acknowledged write was lost.
        lost: u64,
        /// Keys that were written.
        keys: u64,
    },
}

/// Reason why a fault of `--fail-on` cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undetermined {
    /// Sentences of the verdict.
    Says(String),
    /// No request was made.
    NoRequest,
    /// No request was completed.
    NothingCompleted,
    /// No request that may store or find nothing was answered.
    NoneAnswered,
    /// No request was completed, so that there are no times.
    NoTimes,
    /// The result does not say what the limit was.
    NoLimit,
    /// The result does not say whether its times may be believed.
    NoTrust,
    /// The steadiness of the run is not judged.
    SteadinessNotJudged,
    /// The run did not read back what it wrote.
    NoAudit,
    /// The load changes by plan, so that the steadiness of the run is not judged.
    ChangingLoad,
}

impl Document {
    /// The faults named by the plan that the run had or may have had; empty if it is known to have had none.
    pub fn failures(&self) -> Vec<(FailOn, FailOnAnswer)> {
        let answers = self.plan.fail_on.iter().map(|on| (*on, self.answer(*on)));
        answers.filter(|(_, answer)| *answer != FailOnAnswer::No).collect()
    }

    /// Whether the run had a fault of `--fail-on`.
    pub fn answer(&self, on: FailOn) -> FailOnAnswer {
        match on {
            FailOn::Limited => self.is_limited(),
            FailOn::Untrusted => self.is_untrusted(),
            FailOn::Errors => {
                let totals = &self.totals;
                match (totals.requests.saturating_sub(totals.completed), totals.requests) {
                    (0, 0) => FailOnAnswer::Unknown(Undetermined::NoRequest),
                    (0, _) => FailOnAnswer::No,
                    (missing, all) => FailOnAnswer::Yes(Evidence::Requests { missing, all }),
                }
            }
            FailOn::Overloaded => match (self.outcome, self.totals.requests) {
                (RunOutcome::Overloaded, _) => {
                    FailOnAnswer::Yes(Evidence::Says(self.outcome_says.clone().unwrap_or_default()))
                }
                (_, 0) => FailOnAnswer::Unknown(Undetermined::NoRequest),
                _ => FailOnAnswer::No,
            },
            FailOn::Lost => match &self.audit {
                None => FailOnAnswer::Unknown(Undetermined::NoAudit),
                Some(AuditResult { inconclusive: Some(why), .. }) => {
                    FailOnAnswer::Unknown(Undetermined::Says(why.clone()))
                }
                Some(AuditResult { lost: 0, .. }) => FailOnAnswer::No,
                Some(audit) => FailOnAnswer::Yes(Evidence::Lost { lost: audit.lost, keys: audit.keys }),
            },
            FailOn::Outcomes(parts) => self.has_other_outcomes(f64::from(parts) / 1e6),
            FailOn::Unsteady => match self.steady {
                Some(true) => FailOnAnswer::No,
                Some(false) => FailOnAnswer::Yes(Evidence::NotAtOneLevel),
                None if self.outcome == RunOutcome::Overloaded => FailOnAnswer::Yes(Evidence::GrowingQueue),
                None if self.plan.changes.is_nothing() => {
                    FailOnAnswer::Unknown(Undetermined::SteadinessNotJudged)
                }
                None => FailOnAnswer::Unknown(Undetermined::ChangingLoad),
            },
        }
    }

    /// Whether more than a share of the answered requests that may store or find nothing did so.
    fn has_other_outcomes(&self, share: f64) -> FailOnAnswer {
        let all = self.other_outcomes();
        let sum = |of: fn(&OtherOutcomes) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
        let (without_effect, answered) = (sum(OtherOutcomes::all), sum(|others| others.answered));
        match (self.totals.completed, answered) {
            (0, _) => FailOnAnswer::Unknown(Undetermined::NothingCompleted),
            (_, 0) if !all.is_empty() => FailOnAnswer::Unknown(Undetermined::NoneAnswered),
            _ if without_effect as f64 <= share * answered as f64 => FailOnAnswer::No,
            _ => FailOnAnswer::Yes(Evidence::Outcomes { without_effect, answered }),
        }
    }

    /// Whether the generator was the limit.
    fn is_limited(&self) -> FailOnAnswer {
        let Some(verdict) = &self.verdict else { return FailOnAnswer::Unknown(Undetermined::NoLimit) };
        match self.limit() {
            Some(GENERATOR) => FailOnAnswer::Yes(Evidence::Says(verdict.says.clone())),
            Some("unknown") => FailOnAnswer::Unknown(Undetermined::Says(verdict.says.clone())),
            _ => FailOnAnswer::No,
        }
    }

    /// Whether the times may not be believed.
    fn is_untrusted(&self) -> FailOnAnswer {
        match &self.trust {
            None => FailOnAnswer::Unknown(Undetermined::NoTrust),
            Some(trust) if !trust.ok => FailOnAnswer::Yes(Evidence::Says(trust.says.clone())),
            Some(_) if self.totals.completed == 0 => FailOnAnswer::Unknown(Undetermined::NoTimes),
            Some(_) => FailOnAnswer::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{TrustResult, VerdictResult};
    use crate::example::Run;
    use crate::words::fail_on::answer_words;
    use pummel_logic::plan::Part;
    use pummel_measure::measurement::Keep;

    #[test]
    fn a_run_fails_on_outcomes_above_the_share_of_those_that_may_have_them() {
        let of = |count, name: &'static str, others: u64| {
            let op = Run::new(Keep::Figures).document(|document| document.ops.get("set").cloned());
            let mut op = op.expect("a tenth of the requests");
            (op.requests, op.completed) = (count, count);
            op.outcomes = [("stored", count - others), (name, others)].into_iter().collect();
            op
        };
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let answer = |document: &Document, share| document.answer(FailOn::Outcomes(share));
        // Gets that miss and sets are none of them.
        assert_eq!(answer(&document, 0), FailOnAnswer::No);
        let ops = [
            ("set", of(800, "ok", 0)),
            ("add", of(150, "not_stored", 20)),
            ("touch", of(50, "not_found", 5)),
        ];
        document.ops = ops.into_iter().collect();
        let words = "25 of 200 answered requests that may store or find nothing did so".to_owned();
        assert_eq!(answer_words(&answer(&document, 124_999)), Some(words));
        assert_eq!(answer(&document, 125_000), FailOnAnswer::No);
        // What requests without a reply did is not known.
        document.ops = [("add", of(150, "ok", 150))].into_iter().collect();
        assert_eq!(answer(&document, 0), FailOnAnswer::Unknown(Undetermined::NoneAnswered));
        document.ops = [("add", of(0, "ok", 0))].into_iter().collect();
        assert_eq!(answer(&document, 0), FailOnAnswer::No, "none was asked for");
        document.totals.completed = 0;
        assert_eq!(answer(&document, 0), FailOnAnswer::Unknown(Undetermined::NothingCompleted));
    }

    #[test]
    fn a_run_fails_on_what_it_was_not_to_be_and_on_nothing_else() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let failed = |document: &Document| {
            let names = document.failures();
            let names = names.iter().map(|(on, answer)| match answer {
                FailOnAnswer::Unknown(_) => format!("{}?", on.name()),
                _ => on.name().to_owned(),
            });
            names.collect::<Vec<_>>().join(" ")
        };
        let none = VerdictResult { limit: "none".to_owned(), ..VerdictResult::default() };
        document.verdict = Some(none);
        document.steady = Some(true);
        document.audit = Some(AuditResult::default());
        document.plan.fail_on = FailOn::ALL.to_vec();
        assert_eq!(failed(&document), "", "{:?}", document.failures());
        document.verdict = Some(VerdictResult { limit: "generator".to_owned(), ..VerdictResult::default() });
        document.trust = Some(TrustResult { ok: false, ..TrustResult::default() });
        document.totals.completed -= 7;
        document.steady = Some(false);
        assert_eq!(failed(&document), "limited untrusted errors unsteady");
        let missing = Evidence::Requests { missing: 7, all: 2_000 };
        assert_eq!(document.failures()[2].1, FailOnAnswer::Yes(missing));
        document.plan.fail_on = vec![FailOn::Unsteady];
        assert_eq!(failed(&document), "unsteady");
        (document.verdict, document.trust) = (None, None);
        document.plan.fail_on = vec![FailOn::Limited, FailOn::Untrusted];
        assert_eq!(failed(&document), "limited? untrusted?", "a result of a version that did not say");
    }

    #[test]
    fn what_is_not_known_is_neither_yes_nor_no() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        let says = "Nothing was measured.".to_owned();
        let is_unknown = |document: &Document, on, why| {
            assert_eq!(document.answer(on), FailOnAnswer::Unknown(why));
        };
        document.steady = None;
        is_unknown(&document, FailOn::Unsteady, Undetermined::SteadinessNotJudged);
        document.plan.changes.parts = vec![Part::plain("first".to_owned(), 0)];
        is_unknown(&document, FailOn::Unsteady, Undetermined::ChangingLoad);
        document.verdict = Some(VerdictResult {
            limit: "unknown".to_owned(),
            says: says.clone(),
            ..VerdictResult::default()
        });
        is_unknown(&document, FailOn::Limited, Undetermined::Says(says));
        document.trust = Some(TrustResult { ok: true, ..TrustResult::default() });
        document.totals = Default::default();
        is_unknown(&document, FailOn::Untrusted, Undetermined::NoTimes);
        is_unknown(&document, FailOn::Errors, Undetermined::NoRequest);
    }
}
