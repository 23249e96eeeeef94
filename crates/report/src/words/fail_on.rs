//! The words for the faults of `--fail-on`: the evidence of one, and the reason why one cannot be determined.

use pummel_measure::words::{counted, grouped};

use crate::document::{Evidence, FailOnAnswer, Undetermined};

/// The evidence of a fault, or the reason why it cannot be determined; `None` where the run was not so.
pub fn answer_words(answer: &FailOnAnswer) -> Option<String> {
    match answer {
        FailOnAnswer::Yes(evidence) => Some(evidence_words(evidence)),
        FailOnAnswer::No => None,
        FailOnAnswer::Unknown(why) => Some(undetermined_words(why).to_owned()),
    }
}

fn evidence_words(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Says(words) => words.clone(),
        Evidence::Requests { missing, all } => {
            format!("{} of {} requests failed or got no answer", grouped(*missing), grouped(*all))
        }
        Evidence::Outcomes { without_effect, answered } => format!(
            "{} of {} that may store or find nothing did so",
            grouped(*without_effect),
            counted(*answered, "answered request")
        ),
        Evidence::NotAtOneLevel => "the run was not at one level".to_owned(),
        Evidence::Lost { lost, keys } => format!("{} of {} lost", grouped(*lost), counted(*keys, "key")),
        Evidence::GrowingQueue => "the queue grew to the end of the run".to_owned(),
    }
}

fn undetermined_words(why: &Undetermined) -> &str {
    match why {
        Undetermined::Says(words) => words,
        Undetermined::NoRequest => "no request was made",
        Undetermined::NothingCompleted => "no request was completed",
        Undetermined::NoneAnswered => "no request that may store or find nothing was answered",
        Undetermined::NoTimes => "no request was completed: there are no times",
        Undetermined::NoLimit => "the result does not say what the limit was",
        Undetermined::NoTrust => "the result does not say whether its times may be believed",
        Undetermined::SteadinessNotJudged => "whether the run was steady is not judged",
        Undetermined::NoAudit => "the run did not read back what it wrote (--audit)",
        Undetermined::ChangingLoad => {
            "the load changes by plan, and whether the run was steady is not judged"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_by_its_evidence_and_a_doubt_by_its_reason() {
        let missing = Evidence::Requests { missing: 7, all: 2_000 };
        for (answer, words) in [
            (FailOnAnswer::Yes(missing), Some("7 of 2,000 requests failed or got no answer")),
            (FailOnAnswer::Unknown(Undetermined::NoRequest), Some("no request was made")),
            (FailOnAnswer::No, None),
        ] {
            assert_eq!(answer_words(&answer).as_deref(), words);
        }
    }
}
