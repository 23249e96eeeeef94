//! The lines on what happened beside the answer of a series, which stand only where something did.

use pummel_measure::words::{counted, was};

use super::headline::SeriesHeadline;
use super::result::{goal, of_all, wrong};
use crate::document::CurveDocument;
use crate::view::run::Word;
use crate::view::several::without_effect;
use crate::view::{Line, Text};

/// The lines between the result and the trust.
pub(super) fn before_trust(curve: &CurveDocument, headline: &SeriesHeadline) -> Vec<Line> {
    let first = headline.words.first().copied();
    let is_first = |word: Word| first == Some(super::SeriesWord::OfRun(word));
    let is_judged = curve.command != "search" && !curve.goals.is_empty() && !curve.runs.is_empty();
    let is_told = is_first(Word::GoalMissed) || is_first(Word::GoalUndecided);
    let has_missed = curve.runs.iter().any(|run| run.met == Some(false));
    let goal = (is_judged && !is_told).then(|| match has_missed {
        true => Line::new("Goal", Text::plain(format!("missed: {}", goal(curve)))),
        false => Line::new("Goal", Text::plain(goal(curve))),
    });
    let verify = (curve.wrong_values() > 0 && !is_first(Word::WrongValues))
        .then(|| Line::new("Verify", Text::plain(format!("wrong: {}", wrong(curve)))));
    let again = (curve.made_again > 0).then(|| {
        let count = u64::from(curve.made_again);
        let words = format!("{} failed and {} made again", counted(count, "run"), was(count));
        Line::new("Again", Text::plain(words))
    });
    let others = curve.runs.iter().flat_map(|run| &run.other_outcomes);
    let outcomes = without_effect([(others, String::new())]);
    goal.into_iter().chain(verify).chain(outcomes).chain(again).collect()
}

/// The runs that were not at one level from their beginning to their end.
pub(super) fn unsteady(curve: &CurveDocument) -> Option<Line> {
    let some = curve.runs.iter().filter(|run| run.is_unsteady()).count();
    (some > 0).then(|| Line::warning("Unsteady", of_all(some, curve.runs.len())))
}
