//! The order of the runs of a series, what each of them counts for, and the choice of those that the screen shows.

use pummel_measure::summary::QUANTILES;

use crate::document::{CurveDocument, CurveRun};

/// A series of at most so many runs is shown whole.
const WHOLE_MAX: usize = 8;

/// Runs that are shown of a longer series.
const SHOWN: usize = 7;

/// The resource that a scan in closed loop varies; `None` for other series.
pub(super) fn level_of(curve: &CurveDocument) -> Option<&str> {
    curve.runs.iter().find_map(|run| run.level.as_ref().map(|level| level.of.as_str()))
}

/// The place of a run on the axis of its series: the level, or the rate that was asked for; without bound in closed loop.
pub(super) fn place(run: &CurveRun) -> f64 {
    let level = run.level.as_ref().map(|level| f64::from(level.n));
    level.or(run.asked_rate).unwrap_or(f64::INFINITY)
}

/// The runs by level or rate, those in closed loop last.
pub(super) fn sorted(curve: &CurveDocument) -> Vec<&CurveRun> {
    let mut runs: Vec<&CurveRun> = curve.runs.iter().collect();
    runs.sort_by(|one, other| place(one).total_cmp(&place(other)));
    runs
}

/// The name of the figure that a curve is of: the quantile of its first goal, or the 99th percentile.
pub(super) fn quantile(curve: &CurveDocument) -> &'static str {
    let goal = curve.goals.first().and_then(|goal| QUANTILES.iter().find(|(_, of)| *of == goal.quantile));
    goal.map_or("p99", |(name, _)| name)
}

/// A quantile of a run in microseconds, where it is known.
pub(super) fn time(run: &CurveRun, name: &str) -> Option<f64> {
    run.response_us.get(name).copied().flatten()
}

/// The runs that the screen shows, in their order: all of a short series; else those whose rates are nearest to the answer of a search,
/// or those at which a curve bends.
pub(super) fn shown(curve: &CurveDocument, answer: Option<f64>) -> Vec<&CurveRun> {
    let all = sorted(curve);
    if all.len() <= WHOLE_MAX {
        return all;
    }
    let mut chosen: Vec<usize> = match answer {
        Some(rate) => nearest(&all, rate),
        None => bends(curve, &all),
    };
    chosen.sort_unstable();
    chosen.into_iter().map(|at| all[at]).collect()
}

/// The runs whose rates are nearest to an answer.
fn nearest(runs: &[&CurveRun], answer: f64) -> Vec<usize> {
    let mut found: Vec<usize> = (0..runs.len()).filter(|at| !runs[*at].is_after_overload()).collect();
    let distance = |at: &usize| (place(runs[*at]) - answer).abs();
    found.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
    found.truncate(SHOWN);
    found
}

/// The runs without which the others would show another curve: the last before the generator was the limit, or else the first; the last;
/// that in closed loop; and one after the other the run that is furthest, in the logarithm of its time, from the line between its shown
/// neighbours.
fn bends(curve: &CurveDocument, runs: &[&CurveRun]) -> Vec<usize> {
    let name = quantile(curve);
    let is_on_axis = |at: &usize| place(runs[*at]).is_finite();
    let axis: Vec<usize> = (0..runs.len()).filter(is_on_axis).collect();
    let mut chosen: Vec<usize> = (0..runs.len()).filter(|at| !is_on_axis(at)).take(SHOWN).collect();
    let limited = axis.iter().position(|at| runs[*at].is_of_generator());
    let reliable = limited.and_then(|at| at.checked_sub(1)).and_then(|at| axis.get(at));
    chosen.extend(reliable.or(axis.first()).copied());
    chosen.extend(axis.last().copied());
    chosen.sort_unstable();
    chosen.dedup();
    while chosen.len() < SHOWN {
        let point = |at: usize| Some((place(runs[at]), time(runs[at], name)?.max(1e-3).ln()));
        let distance = |at: usize| {
            let below = chosen.iter().rev().find(|shown| **shown < at).and_then(|shown| point(*shown));
            let above = chosen.iter().find(|shown| **shown > at).and_then(|shown| point(*shown));
            let (x, y) = point(at)?;
            let line = match (below, above.filter(|(x, _)| x.is_finite())) {
                (Some((x0, y0)), Some((x1, y1))) if x1 > x0 => y0 + (x - x0) / (x1 - x0) * (y1 - y0),
                (Some((_, beside)), _) | (None, Some((_, beside))) => beside,
                (None, None) => y,
            };
            Some((y - line).abs())
        };
        let left = axis.iter().copied().filter(|at| !chosen.contains(at));
        let furthest = left
            .map(|at| (distance(at).unwrap_or(0.0), at))
            .reduce(|one, other| if other.0 > one.0 { other } else { one });
        let Some((_, at)) = furthest else { break };
        chosen.push(at);
        chosen.sort_unstable();
    }
    chosen
}
