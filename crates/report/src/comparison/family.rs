//! Judged figures of one comparison or of several as one family: each p is corrected for the number of all of them.

use pummel_measure::compare::{ALPHA, Change, Design, RUNS_TO_CLAIM, adjusted, can_differ, change_of};

use super::claim::{Claim, ClaimKind};
use super::row::{Row, Word};
use super::side::Side;

/// A figure that is judged, with what its word depends on.
pub(super) struct JudgedRow<'a> {
    /// The figure, which gets its word.
    pub(super) row: &'a mut Row,
    /// The change of the figure; `None` where there is none.
    pub(super) change: Option<Change>,
    /// Relation between the runs of the sides.
    pub(super) design: Design,
    /// Number of runs of each side.
    pub(super) runs: [usize; 2],
    /// Whether the sides may be called different at all, in the order in which their runs were made.
    pub(super) may_differ: bool,
}

/// Corrects the p of judged figures by Holm for the number of all of them, and gives each figure its word. Returns that number.
pub(super) fn judge(all: &mut [JudgedRow<'_>]) -> usize {
    let tests: Vec<f64> = all.iter().filter_map(|one| one.row.p).collect();
    let mut corrected = adjusted(&tests).into_iter();
    for JudgedRow { row, change, design, runs, may_differ } in all {
        row.is_judged = true;
        let seen = change.and_then(|change| change.seen_among(tests.len().max(1)));
        row.would_have_been_seen = seen.map(f64::exp_m1).filter(|change| change.is_finite());
        row.p_corrected = row.p.and_then(|_| corrected.next());
        let is_enough = change
            .is_some_and(|change| change.runs >= RUNS_TO_CLAIM && can_differ(*design, *runs, tests.len()));
        row.word = match row.p_corrected {
            Some(p) if is_enough && *may_differ && p <= ALPHA => Word::Differ,
            Some(_) if is_enough && *may_differ => Word::NoDifference,
            _ => Word::NotKnown,
        };
    }
    tests.len()
}

/// The two-sided p of the hypothesis that the second side is worse by just the limit of a regression gate; 1 where the estimate is that
/// it is less. `None` for a proof of no harm, and where there is no test.
pub(super) fn excess_p(claim: &Claim, sides: &[Side; 2], design: Design) -> Option<f64> {
    let rising = claim.metric.is_better_when_greater();
    let factor = if rising { 1.0 - claim.limit } else { 1.0 + claim.limit };
    if claim.kind == ClaimKind::Within || factor <= 0.0 {
        return None;
    }
    let values = |side: &Side, factor: f64| -> Option<Vec<f64>> {
        side.runs.iter().map(|run| Some(run.figure(claim.metric)?.value * factor)).collect()
    };
    let change = change_of(design, &values(&sides[0], factor)?, &values(&sides[1], 1.0)?)?;
    let is_beyond = if rising { change.estimate < 0.0 } else { change.estimate > 0.0 };
    change.p.map(|p| if is_beyond { p } else { 1.0 })
}

/// Whether each of these p is small enough for all of them, corrected by Holm; false where there is no test.
pub(super) fn are_shown(all: &[Option<f64>]) -> Vec<bool> {
    let tests: Vec<f64> = all.iter().flatten().copied().collect();
    let mut corrected = adjusted(&tests).into_iter();
    all.iter().map(|p| p.and_then(|_| corrected.next()).is_some_and(|p| p <= ALPHA)).collect()
}
