//! What becomes of each judged figure of two sides: what was claimed of it, and what may be said.

use crate::comparison::{ClaimKind, ClaimResult, Comparison, Doubt, Outcome, Row, Word as RowWord};

use super::word::Word;

/// A judged figure.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Judged<'a> {
    /// The figure.
    pub(in crate::view) row: &'a Row,
    /// What was claimed of it, and what became of that.
    pub(in crate::view) claim: Option<&'a ClaimResult>,
    /// The word in capitals that it gives the result.
    pub(in crate::view) word: Option<Word>,
}

/// The judged figures, those that matter most first.
pub(in crate::view) fn judged(pair: &Comparison) -> Vec<Judged<'_>> {
    let claimed = pair.claims.iter().map(|claim| {
        let row = pair.row(claim.claim.metric);
        Judged { row, claim: Some(claim), word: word_of_claim(claim, row, pair.tests_in_all.is_none()) }
    });
    let is_claimed = |row: &Row| pair.claims.iter().any(|claim| claim.claim.metric == row.metric);
    let others = pair.rows.iter().filter(|row| row.is_judged && !is_claimed(row)).map(|row| {
        let word = is_undecided(pair, row).then_some(Word::NotDecided);
        Judged { row, claim: None, word }
    });
    let mut all: Vec<Judged<'_>> = claimed.chain(others).collect();
    let is_shown = |one: &Judged<'_>| one.row.word == RowWord::Differ;
    // A claim that was made is told before what was only looked at.
    all.sort_by_key(|one| (one.claim.is_none(), one.word.is_none(), one.word, !is_shown(one)));
    // What is shown of one figure is not hidden by another that is not decided.
    if pair.claims.is_empty()
        && !pair.doubts.iter().any(|doubt| !doubt.leaves_intervals())
        && all.iter().any(is_shown)
    {
        all.sort_by_key(|one| !is_shown(one));
    }
    all
}

fn word_of_claim(claim: &ClaimResult, row: &Row, is_alone: bool) -> Option<Word> {
    match (&claim.outcome, claim.claim.kind) {
        (Outcome::Held, _) => None,
        (Outcome::NotJudged(_), _) => Some(Word::NotDecided),
        (Outcome::Violated, ClaimKind::Worse) => Some(Word::Worse),
        (Outcome::Violated, ClaimKind::Within) => {
            // An interval is of its pair alone: beside others the figures have to differ too.
            let may_be_worse = is_alone || row.word == RowWord::Differ;
            let is_worse = may_be_worse && row.worsening().is_some_and(|(low, _)| low > claim.claim.limit);
            Some(if is_worse { Word::Worse } else { Word::NotSure })
        }
    }
}

/// Whether nothing may be said of a figure.
fn is_undecided(pair: &Comparison, row: &Row) -> bool {
    let is_doubtful = pair.doubts.iter().any(|doubt| !doubt.leaves_intervals());
    is_doubtful
        || match row.word {
            _ if row.change.is_none() => true,
            RowWord::NotKnown | RowWord::NotComparable => true,
            RowWord::NoDifference => pair.doubts.iter().any(Doubt::leaves_intervals),
            RowWord::Differ | RowWord::NotJudged => false,
        }
}

/// Why a figure is not decided.
pub(in crate::view) fn doubts_of(pair: &Comparison, judged: &Judged<'_>) -> Vec<Doubt> {
    if let Some(Outcome::NotJudged(why)) = judged.claim.map(|claim| &claim.outcome) {
        return without_repeated(why.clone());
    }
    let is_decisive = |doubt: &&Doubt| !doubt.leaves_intervals();
    let mut why: Vec<Doubt> =
        pair.doubts.iter().filter(is_decisive).cloned().chain(pair.too_few_for_figures()).collect();
    if why.is_empty() {
        why = match judged.row.word {
            _ if judged.row.change.is_none() => vec![Doubt::UnknownFigure { metric: judged.row.metric }],
            RowWord::NotComparable => {
                pair.hidden_by_generator(judged.row.metric).into_iter().flatten().collect()
            }
            _ => pair.doubts.clone(),
        };
    }
    without_repeated(why)
}

/// Why a figure is not decided, without wrong values that were found while it was measured, which are a result of their own.
pub(in crate::view) fn open_doubts(pair: &Comparison, judged: &Judged<'_>) -> Vec<Doubt> {
    let mut why = doubts_of(pair, judged);
    why.retain(|doubt| pair.asked_pairs.is_none() || !matches!(doubt, Doubt::WrongValues { .. }));
    why
}

/// The doubts without those that other lines tell: where runs are too few, their order and their loads decide nothing.
fn without_repeated(mut why: Vec<Doubt>) -> Vec<Doubt> {
    if why.iter().any(|doubt| matches!(doubt, Doubt::FewRuns { .. })) {
        why.retain(|doubt| !matches!(doubt, Doubt::NoAlternation | Doubt::Loads { .. } | Doubt::Unsteady(_)));
    }
    if why.iter().any(|doubt| !doubt.leaves_intervals()) {
        why.retain(|doubt| !doubt.leaves_intervals());
    }
    why
}
