//! Stored requests turned back into records: counts, and histograms with their exact extremes and sums.

use pummel_logic::plan::Plan;
use pummel_logic::protocol::{Fault, Verb};
use pummel_measure::histogram::{Histogram, Moments};
use pummel_measure::recorder::{Counts, OpRecord, Ops, Outcomes, Span, Tally, Times};

use super::part::{NotMerged, Part};
use crate::document::{OpResult, OpsResult, TimeFigures};

/// The requests of a result by group.
///
/// # Errors
/// Returns [`NotMerged`] where the result lacks a group or a histogram.
pub fn ops_of(part: &Part<'_>, plan: &Plan) -> Result<Vec<Ops>, NotMerged> {
    let document = part.document;
    let each: Vec<&OpsResult> = match document.groups.as_slice() {
        [] => vec![&document.ops],
        groups => groups.iter().map(|group| &group.ops).collect(),
    };
    if each.len() != plan.groups.len() {
        let (has, wanted) = (each.len(), plan.groups.len());
        return Err(NotMerged(format!("{}: it has {has} groups, and its plan {wanted}", part.name)));
    }
    each.into_iter().map(|ops| records_of(part, ops, plan)).collect()
}

fn records_of(part: &Part<'_>, results: &OpsResult, plan: &Plan) -> Result<Ops, NotMerged> {
    let mut ops = Ops::default();
    for (name, op) in results.iter() {
        let unknown = || NotMerged(format!("{}: no operation is called '{name}'", part.name));
        let verb = verb_of(name, plan).ok_or_else(unknown)?;
        let record =
            OpRecord { counts: counts_of(op), times: times_of(part, name, op)?, ..OpRecord::default() };
        ops.add(verb, &record);
    }
    Ok(ops)
}

/// The counts of a whole run; operations of unknown names are left out.
pub fn tally_of(results: &OpsResult, plan: &Plan) -> Tally {
    let mut tally = Tally::default();
    for (verb, op) in results.iter().filter_map(|(name, op)| Some((verb_of(name, plan)?, op))) {
        tally.counts(verb).merge(&counts_of(op));
    }
    tally
}

fn verb_of(name: &str, plan: &Plan) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| plan.name_of(*verb) == name)
}

/// The greatest count of a stored result: no run makes as many requests, and sums of such counts stay within 64 bits.
const COUNT_MAX: u64 = 1 << 52;

/// The counts of an operation. A count that no run can have is the greatest one.
pub fn counts_of(op: &OpResult) -> Counts {
    let count = |count: u64| count.min(COUNT_MAX);
    let outcome = |name: &str| count(op.outcomes.get(name).copied().unwrap_or(0));
    Counts {
        completed: count(op.completed),
        keys: count(op.keys),
        hits: count(op.hits),
        misses: count(op.misses),
        outcomes: Outcomes {
            stored: outcome("stored"),
            not_stored: outcome("not_stored"),
            exists: outcome("exists"),
            not_found: outcome("not_found"),
            conflict: outcome("conflict"),
            deleted: outcome("deleted"),
            touched: outcome("touched"),
            number: outcome("number"),
            ok: outcome("ok"),
            stale: outcome("stale"),
            win: outcome("win"),
            recaching: outcome("recaching"),
        },
        errors: Fault::ALL.map(|fault| count(op.errors.get(fault.name()).copied().unwrap_or(0))),
        unfinished: count(op.unfinished),
        unsent: count(op.unsent),
        unsent_estimated: count(op.unsent_estimated),
        cache: op.cache.unwrap_or_default(),
    }
}

fn times_of(part: &Part<'_>, name: &str, op: &OpResult) -> Result<Times, NotMerged> {
    let mut times: [Histogram; Span::COUNT] = Default::default();
    for span in Span::ALL {
        let wrong = |why: &str| NotMerged(format!("{}: {name}, {}: {why}", part.name, span.name()));
        let Some(text) = op.histograms.get(span.name()) else {
            return Err(wrong("the result keeps no histogram of it"));
        };
        times[span as usize] =
            histogram_of(text, op.times.of_span(span)).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(Times::of_histograms(times))
}

/// A histogram with the least, greatest and mean that stand beside it, which are exact to the nanosecond.
fn histogram_of(
    text: &str,
    figures: &TimeFigures,
) -> Result<Histogram, pummel_measure::histogram::NotAHistogram> {
    let cells = Histogram::from_base64(text)?;
    let (Some(min), Some(mean), Some(stddev)) = (figures.min, figures.mean, figures.stddev) else {
        return Ok(cells);
    };
    let ns = |us: f64| (us * 1e3).round() as u64;
    let count = cells.count();
    let (mean, stddev) = (mean * 1e3, stddev * 1e3);
    let exact = Moments {
        count,
        min: ns(min),
        // The greatest of all may be unknown, and that of the answered ones then is as exact as its cell.
        max: figures.max.map_or(cells.moments().max, ns),
        sum: (mean * count as f64).round() as u128,
        sum_squares: ((stddev * stddev + mean * mean) * count as f64).round() as u128,
    };
    Histogram::from_parts(text, exact).or(Ok(cells))
}
