//! The words in capitals that the result of several runs begins with, and the exit status that follows from them.

use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;

use crate::repetition::Repetition;
use crate::view::run::{Headline, Word};

/// The most words that a result begins with.
const WORDS_MAX: usize = 2;

/// The words of several runs. Runs that failed or were overloaded give the result their word where they are more than half of all.
pub fn headline(repetition: &Repetition) -> Headline {
    let is_of_most = |outcome: RunOutcome| {
        let some = repetition.runs.iter().filter(|run| run.outcome == outcome).count();
        2 * some > repetition.runs.len()
    };
    let is_interrupted = repetition.status == Status::Interrupted;
    let has_failed = is_of_most(RunOutcome::Failed);
    let all = [
        (Word::Interrupted, is_interrupted, 130),
        (Word::Failed, has_failed, 1),
        (Word::Partial, repetition.status == Status::Partial && !has_failed, 1),
        (Word::GoalMissed, repetition.missed().0 > 0, 3),
        (Word::WrongValues, repetition.wrong_values() > 0, 3),
        (Word::Overloaded, is_of_most(RunOutcome::Overloaded), 0),
    ];
    let said: Vec<(Word, u8)> =
        all.into_iter().filter(|(_, holds, _)| *holds).map(|(word, _, status)| (word, status)).collect();
    Headline {
        words: said.iter().map(|(word, _)| *word).take(WORDS_MAX).collect(),
        status: said.first().map_or(0, |(_, status)| *status),
    }
}
