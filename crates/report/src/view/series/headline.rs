//! The words in capitals that the result of a series begins with, and the exit status that follows from them.

use pummel_measure::measurement::Status;

use crate::document::CurveDocument;
use crate::view::Tone;
use crate::view::run::Word;

/// A word in capitals, in the order in which the words stand where several hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesWord {
    /// A word that runs have too.
    OfRun(Word),
    /// A search found no rate, and no run that met the goal.
    NoAnswer,
}

impl SeriesWord {
    /// The word.
    pub fn text(self) -> &'static str {
        match self {
            SeriesWord::OfRun(word) => word.text(),
            SeriesWord::NoAnswer => "NO ANSWER",
        }
    }

    /// The tone: a failure, or a doubt.
    pub fn tone(self) -> Tone {
        match self {
            SeriesWord::OfRun(word) => word.tone(),
            SeriesWord::NoAnswer => Tone::Warning,
        }
    }
}

/// The most words that a result begins with.
const WORDS_MAX: usize = 2;

/// The words that the result of a series begins with; none where all is as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesHeadline {
    /// The first words, the most important one first.
    pub words: Vec<SeriesWord>,
    /// The exit status of the series.
    pub status: u8,
}

impl SeriesHeadline {
    /// The words of a series.
    pub fn of(curve: &CurveDocument) -> SeriesHeadline {
        let ended = match (curve.status, &curve.reason) {
            (Status::Interrupted, _) => Some(Word::Interrupted),
            (Status::Partial, _) | (Status::Complete, Some(_)) => Some(Word::Partial),
            (Status::Complete, None) => None,
        };
        let is_search = curve.command == "search";
        // A search looks for runs on both sides of its goal; the others have one that every run is to meet.
        let is_judged = !is_search && !curve.goals.is_empty();
        let has = |met: Option<bool>| is_judged && curve.runs.iter().any(|run| run.met == met);
        let goal = match (has(Some(false)), has(None)) {
            (true, _) => Some(Word::GoalMissed),
            (false, true) => Some(Word::GoalUndecided),
            (false, false) => None,
        };
        let wrong = (curve.wrong_values() > 0).then_some(Word::WrongValues);
        let words = [ended, goal, wrong].into_iter().flatten().map(SeriesWord::OfRun);
        let answer =
            (is_search && curve.found_rate.is_none() && ended.is_none()).then(
                || match super::search::unproven(curve) {
                    Some(_) => SeriesWord::OfRun(Word::NotSure),
                    None => SeriesWord::NoAnswer,
                },
            );
        let words: Vec<SeriesWord> = words.chain(answer).take(WORDS_MAX).collect();
        let status = match words.first() {
            None => 0,
            Some(SeriesWord::OfRun(Word::Interrupted)) => 130,
            Some(SeriesWord::OfRun(Word::Partial)) => 1,
            Some(_) => 3,
        };
        SeriesHeadline { words, status }
    }

    /// Whether a word is among them.
    pub fn has(&self, word: Word) -> bool {
        self.words.contains(&SeriesWord::OfRun(word))
    }
}
