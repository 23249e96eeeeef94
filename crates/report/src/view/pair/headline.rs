//! The headline of a comparison: the words in capitals that hold, and the exit status that follows from them.

use pummel_measure::measurement::Status;

use super::judged::{Judged, judged, open_doubts};
use super::word::Word;
use crate::comparison::Comparison;

/// The most words that a result begins with.
const WORDS_MAX: usize = 2;

/// The words that a comparison begins with; none where all is as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// The first words, the most important one first.
    pub words: Vec<Word>,
    /// The exit status of the command that compared.
    pub status: u8,
}

impl Headline {
    /// The words of the comparisons of one side or more with the first.
    pub fn of(comparisons: &[Comparison]) -> Headline {
        Headline::of_each(&comparisons.iter().collect::<Vec<_>>())
    }

    /// The words of several comparisons together.
    pub(in crate::view) fn of_each(comparisons: &[&Comparison]) -> Headline {
        let has = |wanted: &dyn Fn(&Comparison) -> bool| comparisons.iter().any(|pair| wanted(pair));
        let says = |word: Word, is_claim: bool| {
            let is_said = |own: &Judged<'_>| own.word == Some(word) && (own.claim.is_some() || !is_claim);
            has(&|pair| judged(pair).iter().any(is_said))
        };
        let is_interrupted = has(&|pair| pair.status == Status::Interrupted);
        let is_partial = has(&|pair| pair.status == Status::Partial);
        // Values that the runs of a comparison found wrong are a result of their own.
        let is_open_claim = |pair: &Comparison, own: &Judged<'_>| {
            own.claim.is_some() && own.word == Some(Word::NotDecided) && !open_doubts(pair, own).is_empty()
        };
        let is_undecided = has(&|pair| judged(pair).iter().any(|own| is_open_claim(pair, own)));
        // Values that were wrong in stored results are told, and judge nothing: the command that measured them said so.
        let is_wrong = has(&|pair| pair.asked_pairs.is_some() && pair.wrong_values() > 0);
        // Pairs that are missing are the reason already.
        let is_open =
            says(Word::NotDecided, false) && !is_undecided && !is_interrupted && !is_partial && !is_wrong;
        let all = [
            (Word::Interrupted, is_interrupted, 130),
            (Word::Partial, is_partial && !is_interrupted, 1),
            (Word::NotDecided, is_undecided && !is_interrupted && !is_partial, 1),
            (Word::WrongValues, is_wrong, 3),
            (Word::Worse, says(Word::Worse, true), 3),
            (Word::NotSure, says(Word::NotSure, true), 3),
            (Word::NotDecided, is_open, 0),
        ];
        let said: Vec<(Word, u8)> =
            all.into_iter().filter(|(_, holds, _)| *holds).map(|(word, _, status)| (word, status)).collect();
        Headline {
            words: said.iter().map(|(word, _)| *word).take(WORDS_MAX).collect(),
            status: said.first().map_or(0, |(_, status)| *status),
        }
    }
}
