//! The intervals of several results, added up by their numbers.

use std::collections::BTreeMap;

use super::part::Part;
use super::requests::counts_of;
use crate::document::{AnatomyResult, IntervalResult, Named, OpResult};

/// The sums of the intervals with one number: counts, bytes and sketches. Quantiles of a sum are not known, and left out. Nothing
/// where intervals of a part were merged with their neighbours, since their numbers are then of other times.
pub fn intervals_of(parts: &[Part<'_>]) -> Vec<IntervalResult> {
    if parts.iter().any(|part| part.document.intervals_merged > 0) {
        return Vec::new();
    }
    let most = parts.iter().map(|part| part.document.intervals.len()).max().unwrap_or(0);
    let of_number = |number: usize| {
        let all = parts.iter().filter_map(|part| part.document.intervals.get(number));
        sum_of(&all.collect::<Vec<_>>())
    };
    (0..most).map(of_number).collect()
}

fn sum_of(all: &[&IntervalResult]) -> IntervalResult {
    let at_s = all.iter().map(|interval| interval.at_s).fold(f64::MAX, f64::min);
    let end_s = all.iter().map(|interval| interval.at_s + interval.seconds).fold(0.0, f64::max);
    let seconds = end_s - at_s;
    let mut sum = IntervalResult { at_s, seconds, ..IntervalResult::default() };
    let mut ops: BTreeMap<String, OpResult> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for interval in all {
        sum.bytes.merge(&interval.bytes);
        sum.stalls += interval.stalls;
        for (name, op) in interval.ops.iter() {
            if !ops.contains_key(name) {
                order.push(name.to_owned());
            }
            let mut counts = ops.get(name).map(counts_of).unwrap_or_default();
            counts.merge(&counts_of(op));
            ops.insert(name.to_owned(), OpResult::of_counts(&counts));
        }
    }
    let completed: u64 = ops.values().map(|op| op.completed).sum();
    sum.rate = if seconds > 0.0 { (completed as f64 / seconds * 1e3).round() / 1e3 } else { 0.0 };
    sum.ops = Named(
        order
            .into_iter()
            .map(|name| {
                let op = ops.remove(&name).unwrap_or_default();
                (name, op)
            })
            .collect(),
    );
    // Of a part that keeps none, the times of the others would be half of the truth.
    let sketches: Option<Vec<_>> = all.iter().map(|interval| interval.sketch.as_ref()).collect();
    sum.sketch = sketches.and_then(|sketches| {
        let mut sketches = sketches.into_iter();
        let mut first = sketches.next()?.clone();
        sketches.for_each(|more| first.merge(more));
        Some(first)
    });
    sum
}

/// The parts of the responses, by cell; empty if a result lacks them.
pub fn anatomy_of(parts: &[Part<'_>]) -> Vec<AnatomyResult> {
    if parts.iter().any(|part| part.document.anatomy.is_empty() && part.document.totals.completed > 0) {
        return Vec::new();
    }
    let mut sums: BTreeMap<u64, AnatomyResult> = BTreeMap::new();
    for cell in parts.iter().flat_map(|part| &part.document.anatomy) {
        let sum = sums.entry((cell.from_us * 1e3).round() as u64).or_insert_with(|| AnatomyResult {
            from_us: cell.from_us,
            to_us: cell.to_us,
            ..AnatomyResult::default()
        });
        sum.count += cell.count;
        sum.wait_us += cell.wait_us;
        sum.lag_us += cell.lag_us;
        sum.service_us += cell.service_us;
    }
    sums.into_values().collect()
}
