//! Intervals of the figures of a run, which reports print beside quantiles, means, rates and hit shares.

use crate::figures::{QUANTILES, Unanswered};
use crate::measurement::Measurement;
use crate::recorder::{OpRecord, Span};
use crate::uncertainty::{Batches, Bounds, KEPT, Range, Upper};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, seconds};

/// Independent slow spells beyond a quantile that make it known without a warning.
pub const SPELLS_ENOUGH: f64 = 16.0;

/// Intervals of the figures of some of a run's requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certainty {
    /// The quantiles and the mean of the kept spans, in the order of [`KEPT`].
    pub times: [TimesCertainty; KEPT.len()],
    /// The interval of the completed requests per second.
    pub rate: Option<Range>,
    /// The interval of the share of keys that reads found; `None` also where nothing was read.
    pub hit_share: Option<Range>,
}

/// Intervals of the quantiles and the mean of one span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimesCertainty {
    /// The intervals of the [`QUANTILES`].
    pub quantiles: [Option<Bounds>; QUANTILES.len()],
    /// The interval of the mean, in nanoseconds.
    pub mean: Option<Range>,
}

impl Certainty {
    /// Intervals of the figures of `op`, which has the requests of the groups and verbs that `is_asked` accepts. `None`
    /// where the run has no windows, or was too short.
    pub fn of(
        measurement: &Measurement,
        op: &OpRecord,
        is_asked: impl Fn(usize, Verb) -> bool,
    ) -> Option<Certainty> {
        let windows = measurement.windows.as_ref()?;
        let batches = Batches::of(windows, measurement.measured_ns, is_asked)?;
        let counts = &op.counts;
        let keys = counts.hits + counts.misses;
        let measured_s = seconds(measurement.measured_ns.max(measurement.answered_ns));
        Some(Certainty {
            times: KEPT.map(|span| TimesCertainty::of(&batches, op, span, measurement.timeout_ns)),
            rate: (measured_s > 0.0).then(|| batches.rate(counts.completed as f64 / measured_s)).flatten(),
            hit_share: (keys > 0).then(|| batches.hit_share(counts.hits as f64 / keys as f64)).flatten(),
        })
    }

    /// Intervals of a span; `None` where windows do not keep its times.
    pub fn of_span(&self, span: Span) -> Option<&TimesCertainty> {
        KEPT.iter().position(|kept| *kept == span).map(|at| &self.times[at])
    }
}

/// Number of points of a [`Band`].
const BAND_POINTS: u32 = 40;

/// The interval of one of many quantiles, for pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Quantile from 0 to 1.
    pub quantile: f64,
    /// The ends of its interval in nanoseconds, where they are known.
    pub ends: [Option<Nanos>; 2],
}

/// The intervals of 40 quantiles of all response times, up to 0.9999, at equal distances of the logarithm of what lies
/// beyond. Unknown ones are left out; empty where none is known.
pub fn bands(measurement: &Measurement) -> Vec<Band> {
    let Some(windows) = &measurement.windows else { return Vec::new() };
    let Some(batches) = Batches::of(windows, measurement.measured_ns, |_, _| true) else { return Vec::new() };
    let all = measurement.ops().all();
    let fine = all.times.of(Span::Response);
    let unanswered = Unanswered::of(&all.counts, Span::Response, fine, measurement.timeout_ns).total();
    let quantiles = (1..=BAND_POINTS).map(|point| 1.0 - libm::pow(10.0, -0.1 * f64::from(point)));
    let of = |quantile: f64| Some((quantile, batches.quantile(Span::Response, fine, unanswered, quantile)?));
    let mut known: Vec<(f64, Bounds)> = quantiles.filter_map(of).collect();
    put_in_order(known.iter_mut().map(|(_, bounds)| bounds));
    let band = |(quantile, bounds): (f64, Bounds)| {
        let high = match bounds.high {
            Upper::Known(high) => Some(high),
            Upper::Unanswered | Upper::Open => None,
        };
        Band { quantile, ends: [bounds.low, high] }
    };
    known.into_iter().map(band).collect()
}

/// Raises the ends of intervals, which come in the order of their quantiles, to those of the lesser quantiles. A quantile is at least
/// as great as a lesser one, of which more requests lie beyond, so that its interval is the better known of the two.
fn put_in_order<'a>(intervals: impl Iterator<Item = &'a mut Bounds>) {
    let (mut low, mut high) = (None, Upper::Known(0));
    for bounds in intervals {
        (low, high) = (low.max(bounds.low), high.max(bounds.high));
        (bounds.low, bounds.high) = (low, high);
    }
}

impl TimesCertainty {
    fn of(batches: &Batches, op: &OpRecord, span: Span, timeout_ns: Nanos) -> TimesCertainty {
        let fine = op.times.of(span);
        let unanswered = Unanswered::of(&op.counts, span, fine, timeout_ns).total();
        let mut quantiles = QUANTILES.map(|(_, quantile)| batches.quantile(span, fine, unanswered, quantile));
        put_in_order(quantiles.iter_mut().flatten());
        TimesCertainty { quantiles, mean: fine.moments().mean_ns().and_then(|mean| batches.mean(span, mean)) }
    }

    /// The intervals with the names of their quantiles.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Bounds)> {
        let each = QUANTILES.iter().zip(&self.quantiles);
        each.filter_map(|((name, _), bounds)| Some((*name, (*bounds)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::simulated::Run;
    use pummel_logic::time::SECOND;

    #[test]
    fn the_ends_of_intervals_of_an_interrupted_run_keep_the_order_of_their_quantiles() {
        // The last of 40 batches has all requests without an answer: those that were on their way when the run was ended.
        for unanswered in [10, 60, 500] {
            let requests = (0..40_000u64).map(|number| {
                let time_ns = 50_000 + number * 7_919 % 100_003;
                (number * SECOND / 10_000, (number < 40_000 - unanswered).then_some(time_ns))
            });
            let measurement = Run::of(4 * SECOND, requests).measurement();
            let all = measurement.ops().all();
            let certainty = Certainty::of(&measurement, &all, |_, _| true).unwrap();
            let [response, _] = &certainty.times;
            let each: Vec<Bounds> = response.named().map(|(_, bounds)| bounds).collect();
            assert_eq!(each.len(), QUANTILES.len(), "{unanswered}");
            for two in each.windows(2) {
                assert!(two[0].low <= two[1].low && two[0].high <= two[1].high, "{unanswered}: {two:?}");
            }
            let bands = bands(&measurement);
            assert!(bands.windows(2).all(|two| two[0].ends[0] <= two[1].ends[0]), "{unanswered}: {bands:?}");
        }
    }

    #[test]
    fn intervals_that_are_in_order_stay_as_they_are() {
        let bounds = |low, high| Bounds { low, high, effective: 1.0, spells: 1.0 };
        let kept =
            [bounds(None, Upper::Known(5)), bounds(Some(3), Upper::Unanswered), bounds(Some(4), Upper::Open)];
        let mut each = kept;
        put_in_order(each.iter_mut());
        assert_eq!(each, kept);
        let mut each =
            [bounds(Some(3), Upper::Unanswered), bounds(Some(2), Upper::Known(9)), bounds(None, Upper::Open)];
        put_in_order(each.iter_mut());
        let ends = each.map(|bounds| (bounds.low, bounds.high));
        assert_eq!(
            ends,
            [(Some(3), Upper::Unanswered), (Some(3), Upper::Unanswered), (Some(3), Upper::Open)]
        );
    }
}
