//! Whole numbers from weighted ranges, as a distribution with a quantile function.

use std::fmt;

use super::error::{DistError, INTEGER_MAX, NUMBER_MAX, WEIGHTED, refused};

/// A range of a [`Weighted`] distribution: whole numbers from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lowest number of the range.
    pub low: u64,
    /// The highest number of the range, at least `low` and at most 2^53.
    pub high: u64,
    /// Weight of the range, above 0. The probability of the range is its weight divided by the sum of all weights.
    pub weight: f64,
}

/// A distribution of whole numbers: a range is chosen by its weight, then each number of the range is equally likely.
/// Ranges may overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    ranges: Vec<Range>,
    /// The distribution as steps that ascend and do not overlap, in which quantiles are looked up.
    steps: Vec<Step>,
}

/// A range of equally likely numbers in a [`Weighted`] distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    low: u64,
    high: u64,
    /// Share of the distribution up to and including `high`; 1 in the last step.
    until: f64,
}

impl Weighted {
    /// The distribution over these ranges.
    ///
    /// # Errors
    /// Returns [`DistError::Refused`] without a range, and for a range whose `low` is above `high`, that goes beyond
    /// 2^53, or whose weight is 0, negative or above 1e18.
    pub fn new(ranges: Vec<Range>) -> Result<Weighted, DistError> {
        let legal = |range: &Range| {
            range.low <= range.high
                && range.high <= INTEGER_MAX
                && range.weight > 0.0
                && range.weight <= NUMBER_MAX
        };
        if ranges.is_empty() || !ranges.iter().all(legal) {
            return Err(refused(&ranges_text(&ranges), WEIGHTED));
        }
        let steps = steps_of(&ranges);
        Ok(Weighted { ranges, steps })
    }

    /// The ranges as they were given.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    pub(super) fn quantile(&self, u: f64) -> f64 {
        let index = self.steps.partition_point(|step| step.until <= u).min(self.steps.len() - 1);
        let from = if index == 0 { 0.0 } else { self.steps[index - 1].until };
        let Step { low, high, until } = self.steps[index];
        let share = (u - from) / (until - from);
        let ahead = (share * (high - low + 1) as f64) as u64;
        (low + ahead.min(high - low)) as f64
    }

    pub(super) fn mean(&self) -> f64 {
        let total: f64 = self.ranges.iter().map(|range| range.weight).sum();
        let middle = |range: &Range| (range.low as f64 + range.high as f64) / 2.0;
        self.ranges.iter().map(|range| middle(range) * (range.weight / total)).sum()
    }

    pub(super) fn support(&self) -> (f64, f64) {
        (self.steps[0].low as f64, self.steps[self.steps.len() - 1].high as f64)
    }
}

/// Divides legal ranges at the ends of all others: between two neighbouring cuts all numbers are equally likely.
fn steps_of(ranges: &[Range]) -> Vec<Step> {
    let mut cuts: Vec<u64> = ranges.iter().flat_map(|range| [range.low, range.high + 1]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut steps = Vec::new();
    let mut sum = 0.0;
    // Parts of the least weights that a number can hold would be rounded to nothing. A power of two changes no digit of any other.
    let greatest = ranges.iter().map(|range| range.weight).fold(0.0, f64::max);
    let (_, exponent) = libm::frexp(greatest);
    for cut in cuts.windows(2) {
        let (low, high) = (cut[0], cut[1] - 1);
        let count = (high - low + 1) as f64;
        let mass: f64 = ranges
            .iter()
            .filter(|range| range.low <= low && high <= range.high)
            .map(|range| libm::ldexp(range.weight, -exponent) * (count / (range.high - range.low + 1) as f64))
            .sum();
        if mass > 0.0 {
            sum += mass;
            steps.push(Step { low, high, until: sum });
        }
    }
    for step in &mut steps {
        step.until /= sum;
    }
    steps
}

/// The text that parses to the same ranges, legal or not.
fn ranges_text(ranges: &[Range]) -> String {
    let each: Vec<String> =
        ranges.iter().map(|Range { low, high, weight }| format!("{low}-{high}@{weight}")).collect();
    format!("weighted:{}", each.join(","))
}

impl fmt::Display for Weighted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&ranges_text(&self.ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three overlapping ranges of this weight each.
    fn alike(weight: f64) -> Weighted {
        let range = |low: u64| Range { low, high: low + 2, weight };
        Weighted::new((0..3).map(range).collect()).expect("it is legal")
    }

    #[test]
    fn weights_count_relative_to_each_other_however_small_they_are() {
        let usual = alike(1.0);
        for weight in [5e-324, 1e-310, f64::MIN_POSITIVE, 0.5, NUMBER_MAX] {
            let small = alike(weight);
            assert_eq!((small.support(), small.mean()), ((0.0, 4.0), 2.0), "{weight}");
            for draw in 0..100 {
                let u = f64::from(draw) / 100.0;
                assert_eq!(small.quantile(u), usual.quantile(u), "{weight}: {u}");
            }
        }
    }

    #[test]
    fn a_weight_that_is_nothing_beside_another_takes_no_place() {
        let ranges = [(7, 5e-324), (9, 1.0)].map(|(low, weight)| Range { low, high: low, weight });
        let lopsided = Weighted::new(ranges.to_vec()).expect("it is legal");
        assert_eq!((lopsided.quantile(0.0), lopsided.quantile(0.999)), (9.0, 9.0));
    }
}
