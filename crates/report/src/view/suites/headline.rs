//! The headline of two suites: the words in capitals that hold of any pair of runs, and the exit status.

use super::super::pair::judged::judged;
use super::super::pair::{Headline, Word};
use crate::comparison::{Comparison, NamedPair, SuitesComparison};

/// The words of all pairs of runs together, and the exit status. Suites without a run in common are not decided.
pub fn headline(suites: &SuitesComparison) -> Headline {
    let all: Vec<&Comparison> = suites.pairs.iter().map(|pair| &pair.comparison).collect();
    if all.is_empty() {
        return Headline { words: vec![Word::NotDecided], status: STATUS_NOT_DECIDED };
    }
    let mut headline = Headline::of_each(&all);
    // Some runs that are not decided leave those that are; a gate that cannot be judged does not.
    if headline.status == 0 && suites.pairs.iter().any(|pair| !is_undecided(pair)) {
        headline.words.retain(|word| *word != Word::NotDecided);
    }
    // A run that failed may hide what a gate is about.
    let has_gates = suites.pairs.iter().any(|pair| !pair.comparison.claims.is_empty());
    if has_gates && headline.status == 0 && suites.failed.iter().any(|failed| !failed.is_empty()) {
        headline.words.retain(|word| *word != Word::NotDecided);
        headline.words.insert(0, Word::NotDecided);
        headline.status = STATUS_NOT_DECIDED;
    }
    // A loss that is shown stays one where another run cannot be judged.
    if suites.pairs.iter().any(is_worse) && headline.status != STATUS_WORSE {
        headline.words.retain(|word| *word != Word::Worse);
        headline.words.insert(0, Word::Worse);
        headline.status = STATUS_WORSE;
    }
    headline
}

/// The exit status of a gate that cannot be judged.
const STATUS_NOT_DECIDED: u8 = 1;

/// The exit status of a gate that failed.
const STATUS_WORSE: u8 = 3;

/// Whether a gate of two runs failed.
fn is_worse(pair: &NamedPair) -> bool {
    judged(&pair.comparison).iter().any(|own| own.claim.is_some() && own.word == Some(Word::Worse))
}

/// Whether nothing is known of a judged figure of two runs.
pub(super) fn is_undecided(pair: &NamedPair) -> bool {
    judged(&pair.comparison).iter().any(|own| own.word == Some(Word::NotDecided))
}
